"""Names from data stay text, in HTML and in Markdown."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelmend.markup import LONGEST, html_block, html_facts, html_lines, html_table, html_text, markdown_text

HOSTILE = "<script>alert(1)</script>\"'&</td><img src=x onerror=y>"


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_data(self, data):
        self.text += data


def page(name):
    return html_block(
        html_lines(name, name), html_facts([(name, name)]), html_table((name, name), [(name, 0.5)], below=name)
    )


@given(st.text(max_size=60))
def test_whatever_a_name_is_the_page_has_the_same_tags(name):
    assert Tags(page(f"{name}x")).tags == Tags(page("x")).tags


def test_hostile_names_are_shown_as_they_are():
    assert HOSTILE[:20] in Tags(page(HOSTILE)).text
    assert "<script" not in page(HOSTILE)
    assert "url(" not in page(HOSTILE)


def test_a_long_name_is_cut_and_a_table_without_rows_is_nothing():
    assert len(html_text("a" * 1000)) == LONGEST
    assert html_table(("a",), [], below="none") == ""


@pytest.mark.parametrize(
    "name",
    [
        "*b*",
        "_b_",
        "`b`",
        "[a](b)",
        "![a](b)",
        "a | b",
        "<b>",
        "a\n# b",
        "http://a.b",
        "www.a.b",
        "WWW.a.b",
        "$b$",
        "#1",
    ],
)
def test_markdown_keeps_names_as_text_of_one_line(name):
    special = set("\\`*_#!|~$^:@[]<>{}&")
    found = markdown_text(name)
    assert "\n" not in found
    bare = [c for before, c in zip(f" {found}", found, strict=False) if c in special - {"\\", "&"} and before != "\\"]
    assert not bare
    assert "www." not in found.lower()
