"""docs/reference/command-line.md, made from the commands themselves.

    python scripts/command_line_page.py

`tests/test_docs.py` checks that the page is what this gives.
"""

from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from labelmend.__main__ import main  # noqa: F401  (adds `reproduce` to the commands)
from labelmend.faces.cli import app

PAGE = Path(__file__).parents[1] / "docs/reference/command-line.md"


def command_line_page() -> str:
    """The page: every command with its arguments and options."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="labelmend")
    text = get_docs_for_click(obj=command, ctx=context, name="labelmend", title="Command line")
    return f"{text.rstrip()}\n".replace("\\[", "[")  # escaped for the terminal


if __name__ == "__main__":
    PAGE.write_text(command_line_page())
