"""What `make proofs` saw, as data and as a table, from the report that pytest writes of it.

    make proofs                                             # writes .venv/proofs.xml and .venv/proofs-alone.xml
    python benchmarks/proofs.py .venv/proofs*.xml --out benchmarks/results/proofs.json --page docs/reliability.md

Tests that say what they did and saw (the fixture `shown`) have a row each. The others are counted by their files, which
say in their first line what they are about.
"""

import argparse
import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from common import filled_blocks, stamp

ROOT = Path(__file__).parents[1]


def read_reports(reports: Sequence[Path], root: Path = ROOT) -> dict[str, Any]:
    """Rows in the order of the tests, and how many there were, failed and were skipped, in how many seconds."""
    rows: dict[str, dict[str, Any]] = {}
    counted = {"tests": 0, "failed": 0, "skipped": 0}
    suites = [suite for report in reports for suite in ElementTree.parse(report).getroot().iter("testsuite")]
    for case in (case for suite in suites for case in suite.iter("testcase")):
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        for name, one in (("tests", True), ("failed", failed), ("skipped", skipped)):
            counted[name] += one
        said = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        module = case.attrib["classname"]
        row = rows.setdefault(
            said.get("what", module),
            {"what": said.get("what") or _about(root, module), "seconds": 0.0, "tests": 0, "passed": 0},
        )
        row |= {"seen": said["seen"]} if "seen" in said else {}
        row["seconds"] = round(row["seconds"] + float(case.attrib["time"]), 1)
        row["tests"] += 1
        row["passed"] += not (failed or skipped)
    seconds = sum(float(suite.attrib["time"]) for suite in suites)
    return {**counted, "seconds": round(seconds), "rows": list(rows.values())}


def _about(root: Path, module: str) -> str:
    """The first line of what a test file says of itself."""
    source = (root / module.replace(".", "/")).with_suffix(".py")
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or module).partition("\n")[0].rstrip(".")


def summary(found: dict[str, Any]) -> str:
    """The table of the page, and under it the whole in a sentence."""
    lines = ["| what | seen | seconds |", "|---|---|---:|"]
    for row in found["rows"]:
        passed = f"{row['passed']} of {row['tests']} pass"
        lines.append(f"| {row['what']} | {row.get('seen', passed)} | {row['seconds']:.0f} |")
    counted = f"{found['tests']} proofs, {found['failed']} failed, {found['skipped']} skipped"
    made = f"`make proofs` at commit {found['commit']} on {found['machine']['cores']} cores"
    return "\n".join([*lines, "", f"{made}, {found['seconds'] / 60:.0f} minutes: {counted}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    wishes = parser.parse_args()
    if wishes.reports:
        wishes.out.write_text(json.dumps({**stamp(), **read_reports(wishes.reports)}, indent=1) + "\n")
    if wishes.page:
        found = json.loads(wishes.out.read_text())
        wishes.page.write_text(filled_blocks(wishes.page.read_text(), {"proofs": summary(found)}))


if __name__ == "__main__":
    main()
