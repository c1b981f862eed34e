"""Bring what `labelmend reproduce` wrote into a page: each block between `<!-- NAME -->` and `<!-- /NAME -->`.

    python benchmarks/fill_results.py docs/reproduction.md docs/results/small

The text is that of NAME.md without its heading, with pictures found from the page's own folder.
"""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"(<!-- (?P<name>[\w-]+) -->\n).*?(\n<!-- /(?P=name) -->)", re.DOTALL)
PICTURE = re.compile(r"(!\[[^\]]*\]\()")


def filled(page: str, results: Path, *, seen_from: Path) -> str:
    """The page with the results as they are now."""
    place = results.relative_to(seen_from).as_posix()

    def block(found: re.Match[str]) -> str:
        text = (results / f"{found['name']}.md").read_text(encoding="utf-8")
        _, _, body = text.partition("\n")
        return found[1] + PICTURE.sub(rf"\g<1>{place}/", body.strip()) + found[3]

    return BLOCK.sub(block, page)


if __name__ == "__main__":
    page, results = Path(sys.argv[1]), Path(sys.argv[2])
    page.write_text(filled(page.read_text(encoding="utf-8"), results, seen_from=page.parent), encoding="utf-8")
