"""docs/gallery: every program of examples/ with what it printed.

    python scripts/gallery.py [NAME...]

A program is run in an empty folder, and its page has the title and text of its docstring, its code, and its output.
"""

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGES = ROOT / "examples", ROOT / "docs/gallery"
NAMES = tuple(sorted(path.stem for path in EXAMPLES.glob("*.py")))


def parted(source: str) -> tuple[str, str, str]:
    """Title and text of a program's docstring, and its code."""
    words = ast.get_docstring(ast.parse(source)) or ""
    title, _, text = words.partition("\n")
    code = source.split('"""', 2)[2]
    return title.strip(), text.strip(), code.strip()


def page(name: str, printed: str) -> str:
    """The page of a program."""
    title, text, code = parted((EXAMPLES / f"{name}.py").read_text())
    about = f"The program is `examples/{name}.py`."
    return f"# {title}\n\n{text}\n{about}\n\n```python\n{code}\n```\n\nIt prints:\n\n```text\n{printed.rstrip()}\n```\n"


def printed_by(name: str) -> str:
    """What a program prints in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"examples/{name}.py failed:\n{done.stderr}")
        return re.sub(re.escape(folder) + "/?", "", done.stdout)


def main() -> None:
    """Run what is named, or everything, and write the pages."""
    for name in sys.argv[1:] or NAMES:
        print(name, flush=True)
        (PAGES / f"{name}.md").write_text(page(name, printed_by(name)))


if __name__ == "__main__":
    main()
