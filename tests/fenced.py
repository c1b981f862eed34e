"""The programs and commands of README and docs: their fenced blocks, and whether a page says why one cannot run."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs/gallery"
"""Pages of programs that are files, which `test_gallery.py` runs."""
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.parent != GALLERY]
PYTHON, SHELL = ("python", "py", "pycon"), ("sh", "bash", "shell")
NOT_EXECUTED = re.compile(r"\s*<!-- not executed: \S.* -->")
FENCE = re.compile(r"(\s*)```(\w*)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the line that its code begins in, the code, and whether the page says why it cannot run."""

    line: int
    code: str
    excused: bool


def blocks(page: str, languages: tuple[str, ...]) -> list[Block]:
    """Every fenced block of a page in one of these languages, in order."""
    lines, found, start = page.splitlines(), [], None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence and start is None:
            start, language = number, fence[2]
        elif fence and start is not None:
            if language in languages:
                code = textwrap.dedent("\n".join(lines[start + 1 : number]))
                found.append(Block(start + 2, code, bool(start and NOT_EXECUTED.fullmatch(lines[start - 1]))))
            start = None
    assert start is None, f"the block of line {start} is not closed"
    return found
