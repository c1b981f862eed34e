"""Whether a page can be used by everybody, as far as axe-core finds out."""

import os
from pathlib import Path

import pytest

AXE = Path(os.environ.get("LABELMEND_AXE") or Path(__file__).parents[1] / ".venv" / "axe.min.js")
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason=f"no axe-core here: `make axe` puts it to {AXE}, or set LABELMEND_AXE"
)


def violations(page):
    """What is wrong with an open page: each rule, and the first element that breaks it."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"]]
