"""The table of README: wrong labels found by labelmend and by cleanlab, from the committed results of the benchmarks.

    python scripts/readme_table.py

`tests/test_docs.py` checks that the table is what this gives.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
README = ROOT / "README.md"
TABLES = {
    "clinic": "a table of a clinic: numbers, categories, dates, gaps",
    "diamonds": "a table of diamonds, 4 classes",
    "rare": "a table with a class of 5 %",
    "fortunes": "1,800 short texts, 8 classes",
}
PREDICTIONS = {
    "cifar10n-aggre-resnet18": "CIFAR-10, labels by people, predictions of a ResNet-18",
    "roman-resnet18": "handwritten Roman numerals, predictions of a ResNet-18",
}


def against_cleanlab() -> str:
    """A line for each set: the share of wrong labels, and F1 of the flags of both with their defaults."""
    lines = ["| data | labels wrong | labelmend | cleanlab |", "|---|---|---|---|"]
    rows = json.loads((RESULTS / "rows.json").read_text())["rows"]
    for name, title in TABLES.items():
        ours = _mean(rows, name, "labelmend", "f1")
        theirs = max(_mean(rows, name, system, "f1") for system in _others(rows, name))
        lines.append(_line(title, _mean(rows, name, "labelmend", "real_rate"), ours, theirs))
    sets = json.loads((RESULTS / "judging.json").read_text())["sets"]
    for name, title in PREDICTIONS.items():
        found = {system["system"]: system for system in sets[name]["systems"]}
        ours, theirs = found["labelmend"], found["cleanlab prune_by_noise_rate"]
        lines.append(_line(title, ours["real_rate"], ours["f1"], theirs["f1"]))
    return "\n".join(lines)


def _line(title: str, rate: float, ours: float, theirs: float) -> str:
    return f"| {title} | {rate:.0%} | **{ours:.2f}** | {theirs:.2f} |"


def _others(rows: list[dict[str, Any]], name: str) -> set[str]:
    return {row["system"] for row in rows if row["row"] == name and not row["system"].startswith("labelmend")}


def _mean(rows: list[dict[str, Any]], name: str, system: str, key: str) -> float:
    found = [row[key] for row in rows if (row["row"], row["system"]) == (name, system)]
    return float(sum(found) / len(found))


def filled(page: str) -> str:
    """README with the table as the results have it now."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from common import filled_blocks

    return str(filled_blocks(page, {"against cleanlab": against_cleanlab()}))


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
