"""HTML for notebooks and text for Markdown, in which names from data stay text. Imports nothing slow.

What is shown takes the notebook's own colours, so that it can be read in light and in dark, and loads nothing.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

from .errors import visible

LONGEST = 80
"""Characters of a cell that are shown."""
NUMBER = re.compile(r"[\d.,]+%?")
CELL = "padding:.1em .8em .1em 0"
SPECIAL = re.compile(r"[\\`*_#!|~$^:@\[\]{}]|(?<=www)\.", re.IGNORECASE)
"""What means something to Markdown inside a line, and what makes a link of plain text; <, > and & are apart."""


def html_text(value: object, *, longest: int = LONGEST) -> str:
    """A value as text inside HTML; a long one is cut.

    >>> html_text("<b>")
    '&lt;b&gt;'
    """
    text = visible(f"{value:.3f}" if isinstance(value, float) else str(value))
    return escape(text if len(text) <= longest else f"{text[: longest - 1]}…")


def html_block(*parts: str) -> str:
    """Parts of HTML, one below the other, as a notebook shows them; empty parts are left out."""
    return f'<div style="max-width:60em">{"".join(part for part in parts if part)}</div>'


def html_lines(title: str, *lines: str) -> str:
    """A title and lines below it, all escaped and not cut."""
    below = "".join(f"<div>{escape(visible(line))}</div>" for line in lines if line)
    return f"<div><strong>{escape(visible(title))}</strong></div>{below}"


def html_facts(facts: Iterable[tuple[str, object]]) -> str:
    """Names and what they are, in two columns."""
    return _table(
        "", ((f'<span style="opacity:0.7">{html_text(name)}</span>', html_text(value)) for name, value in facts)
    )


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, below: str = "") -> str:
    """A table with numbers to the right and texts to the left, and a line below it; nothing without rows."""
    cells = [tuple(map(html_text, row)) for row in rows]
    if not cells:
        return ""
    head = "".join(_cell("th", html_text(name)) for name in columns)
    note = f'<div style="opacity:0.7">{html_text(below)}</div>' if below else ""
    return _table(f"<thead><tr>{head}</tr></thead>", cells) + note


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    body = "".join(f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse;margin:.4em 0">{head}<tbody>{body}</tbody></table>'


def _cell(tag: str, content: str) -> str:
    align = "right" if NUMBER.fullmatch(content) else "left"
    return f'<{tag} style="{CELL};text-align:{align}">{content}</{tag}>'


def markdown_text(value: object) -> str:
    r"""A value as text of one line inside Markdown: neither markup, HTML, links nor a cell's end.

    >>> print(markdown_text("*a* | <b>"))
    \*a\* \| &lt;b&gt;
    """
    text = SPECIAL.sub(r"\\\g<0>", visible(str(value)).strip())
    return escape(text, quote=False) or " "


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table whose cells are escaped."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return lines + [f"| {' | '.join(map(markdown_text, row))} |" for row in rows]
