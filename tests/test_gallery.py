"""The programs of the gallery: their pages show them as they are, and they run."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.fixture
def gallery(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield __import__("gallery")
    sys.modules.pop("gallery")


def test_title_text_and_code_of_a_program_are_parted(gallery):
    assert gallery.parted('"""A title\n\nText.\n"""\n\nx = 1\n') == ("A title", "Text.", "x = 1")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_program_and_what_it_printed(gallery, name):
    text = (ROOT / f"docs/gallery/{name}.md").read_text()
    printed = re.search(r"It prints:\n\n```text\n(.+)\n```\n", text, re.DOTALL)[1]
    assert text == gallery.page(name, printed)
    assert f"({name}.md)" in (ROOT / "docs/gallery/index.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_and_prints_as_many_lines_as_its_page_shows(gallery, name):
    text = (ROOT / f"docs/gallery/{name}.md").read_text()
    assert len(gallery.page(name, gallery.printed_by(name)).splitlines()) == len(text.splitlines())
