"""The documentation as a site: built strictly, complete in itself, and searchable from the disk."""

import html
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from axe import needs_axe, violations

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, whose build fails on a dead link, a page that is missing in the navigation, or any other warning."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?([^\"' >]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]*rel=[\"']?(?:stylesheet|icon|preconnect)[^>]*href=[\"']?([^\"' >]+)", page.read_text()
        )
        assert not [url for url in loaded if url.startswith(("http:", "https:", "//"))], page


@pytest.mark.parametrize("width", [1280, 390])
def test_the_site_reads_well_from_the_disk_at_every_width(site, visit, width):
    for name in ("index", "start", "understand", "glossary", "reference/python"):
        page = visit(site / f"{name}.html", viewport={"width": width, "height": 900})
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.fixture(scope="module")
def ids(site):
    """What can be linked to in each page: the page itself, and every element with a name."""
    named = re.compile(r"\s(?:id|name)=(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))")
    return {
        page.resolve(): {html.unescape(next(filter(None, found), "")) for found in named.findall(page.read_text())}
        for page in site.rglob("*.html")
    }


def test_no_link_of_the_site_is_dead(site, ids):
    dead = []
    for page in ids:
        if page.name == "404.html":  # its links begin at the root of a server
            continue
        for found in re.findall(r"<a\s[^>]*?href=(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", page.read_text()):
            link = urllib.parse.urlsplit(html.unescape(next(filter(None, found), "")))
            if link.scheme or link.netloc:
                continue
            target = (page.parent / urllib.parse.unquote(link.path)).resolve() if link.path else page
            target = target / "index.html" if target.is_dir() else target
            anchor = urllib.parse.unquote(link.fragment)
            if not target.is_file() or (anchor and target in ids and anchor not in ids[target]):
                dead.append(f"{page.relative_to(site)}: {link.geturl()}")
    assert dead == []


@needs_axe
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_of_the_site_can_be_used_by_everybody(site, visit, scheme):
    wrong = {}
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # it is for servers: its styles begin at their root
            continue
        page = visit(path, color_scheme=scheme)
        if found := violations(page):
            wrong[str(path.relative_to(site))] = found
    assert wrong == {}


def test_search_finds_pages_without_a_server(site, visit):
    page = visit(site / "reference/files.html")
    page.locator("[data-md-component=search-query]").press_sequentially("transition matrix")
    page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
    assert "glossary" in " ".join(
        page.eval_on_selector_all(".md-search-result__link", "links => links.map(l => l.href)")
    )


def test_the_page_of_the_command_line_is_what_the_commands_say(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from command_line_page import PAGE, command_line_page

    assert PAGE.read_text() == command_line_page()
