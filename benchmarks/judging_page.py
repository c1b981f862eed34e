"""The tables of docs/judging.md, from what judging.py measured: blocks between `<!-- NAME -->` and `<!-- /NAME -->`."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from fill_results import BLOCK

DEFAULT_FILTER, DEFAULT_SCORE = "cleanlab prune_by_noise_rate", "cleanlab self_confidence"
SAME_AS_DIFFERS = "cleanlab predicted_neq_given"
Results = dict[str, Any]
Row = dict[str, Any]


def filled(page: str, results: Results) -> str:
    """The page with the tables as they follow from the results."""

    def block(found: re.Match[str]) -> str:
        return found[1] + TABLES[found["name"]](results) + found[3]

    return BLOCK.sub(block, page)


def flags(results: Results) -> str:
    lines = []
    for name, rows in by_system(results):
        best = max(filters(rows), key=lambda row: row["f1"])
        ours = rows["labelmend"]
        compared = [rows["differs"], rows[DEFAULT_FILTER], best, rows["version 0.1"], ours]
        shown = bold([number(row["f1"]) for row in compared], max)
        shown[2] += named(best)
        lines.append([name, number(ours["real_rate"]), *shown, number(ours["precision"]), number(ours["recall"])])
    titles = (
        "set", "really wrong", "differs", "cleanlab, default", "cleanlab, best filter", "version 0.1", "labelmend",
        "its precision", "its recall",
    )  # fmt: skip
    return table(titles, lines)


def ranking(results: Results) -> str:
    lines = []
    for name, rows in by_system(results):
        scored = [row for row in rows.values() if row["system"].startswith("cleanlab") and row.get("auc")]
        best = max(scored, key=lambda row: row["auc"])
        precise = max(scored, key=lambda row: row["average_precision"])
        old, ours = rows["version 0.1"], rows["labelmend"]
        areas = bold([number(row["auc"], 4) for row in (rows[DEFAULT_SCORE], best, old, ours)], max)
        areas[1] += named(best)
        lines.append([name, *areas, *bold([number(row["average_precision"]) for row in (precise, old, ours)], max)])
    titles = (
        "set", "AUC: cleanlab, default", "cleanlab, best", "version 0.1", "labelmend",
        "average precision: cleanlab, best", "version 0.1", "labelmend",
    )  # fmt: skip
    return table(titles, lines)


def calibration(results: Results) -> str:
    lines = []
    for name, rows in by_system(results):
        old, ours = rows["version 0.1"], rows["labelmend"]
        margin, counted = rows["cleanlab normalized_margin"], rows["cleanlab num_label_issues"]
        lines.append([
            name, number(ours["real_rate"]), *(number(row["rate"]) for row in (counted, old, ours)), interval(ours),
            "yes" if ours["covers"] else "**no**",
            *bold([number(row["calibration_error"]) for row in (margin, old, ours)], min),
            signed(ours["expected_minus_real_precision"]),
        ])  # fmt: skip
    titles = (
        "set", "really wrong", "rate: cleanlab", "version 0.1", "labelmend", "its interval", "covers",
        "calibration error: cleanlab", "version 0.1", "labelmend", "its expected - real precision",
    )  # fmt: skip
    return table(titles, lines)


def checks(results: Results) -> str:
    lines = []
    for name, found in results["sets"].items():
        for check in dict.fromkeys(row["check"] for row in found["checks"]):
            rows = [row for row in found["checks"] if row["check"] == check]
            judged = [row for row in rows if row["flagged"]]
            lines.append([
                name, check, findings(rows), span(rows, "flagged"), span(judged, "f1"), span(rows, "rate"),
                span(rows, "real_rate"), f"{sum(row['covers'] for row in judged)} of {len(judged)}" if judged else "–",
                span(rows, "calibration_error"), span(rows, "expected_minus_real_precision", signed),
            ])  # fmt: skip
    titles = (
        "set", "change", "finding", "flagged", "F1", "rate", "really wrong", "interval covers", "calibration error",
        "expected - real precision",
    )  # fmt: skip
    return table(titles, lines)


def constants(results: Results) -> str:
    """What each constant changes: F1, and in brackets expected minus real precision in points."""
    names = list(results["sets"])
    by_change: dict[str, list[Row]] = {"as it is": [rows["labelmend"] for _, rows in by_system(results)]}
    for found in results["sets"].values():
        for row in found["constants"]:
            by_change.setdefault(row["change"], []).append(row)
    lines = [[change, *map(_with_precision, rows)] for change, rows in by_change.items()]
    return table(("constant", *names), lines)


def seconds(results: Results) -> str:
    lines = [
        [
            name,
            f"{rows['labelmend']['samples']:,}",
            number(rows[DEFAULT_FILTER]["seconds"] + rows[DEFAULT_SCORE]["seconds"], 2),
            number(rows["version 0.1"]["seconds"], 2),
            number(rows["labelmend"]["seconds"], 2),
        ]
        for name, rows in by_system(results)
    ]
    return table(("set", "samples", "cleanlab, default filter and score", "version 0.1", "labelmend"), lines)


def made(results: Results) -> str:
    """Where the figures come from."""
    stamps = list({found["made"]["commit"]: found["made"] for found in results["sets"].values()}.values())
    said = [
        f"Commit {stamp['commit']}, cleanlab {stamp['versions']['cleanlab']}, NumPy {stamp['versions']['numpy']}, "
        f"Python {stamp['versions']['python']}, by `{stamp['command']}`."
        for stamp in stamps
    ]
    return "\n".join(said)


TABLES: dict[str, Callable[[Results], str]] = {
    "flags": flags,
    "ranking": ranking,
    "calibration": calibration,
    "checks": checks,
    "constants": constants,
    "seconds": seconds,
    "made": made,
}


def by_system(results: Results) -> list[tuple[str, dict[str, Row]]]:
    return [(name, {row["system"]: row for row in found["systems"]}) for name, found in results["sets"].items()]


def filters(rows: dict[str, Row]) -> list[Row]:
    """cleanlab's filters; one of them is `differs` by another name."""
    return [
        row for name, row in rows.items() if name.startswith("cleanlab") and "f1" in row and name != SAME_AS_DIFFERS
    ]


def table(titles: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    rows = [list(titles), *map(list, lines)]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def bold(values: list[str], best: Callable[[list[str]], str]) -> list[str]:
    """Numbers of equal length, the best of them in bold, or several where they look the same."""
    return [f"**{value}**" if value == best(values) else value for value in values]


def named(row: Row) -> str:
    return f" `{row['system'].removeprefix('cleanlab ')}`"


def number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def interval(row: Row) -> str:
    low, high = row["interval"]
    return f"{low:.3f} to {high:.3f}"


def span(rows: list[Row], key: str, shown: Callable[[float | None], str] = number) -> str:
    """A value, or the smallest and the largest of several draws."""
    values = [row[key] for row in rows if row[key] is not None]
    ends = [shown(min(values)), shown(max(values))] if values else ["–"]
    return " to ".join(dict.fromkeys(ends))


def findings(rows: list[Row]) -> str:
    found = [row["finding"] for row in rows]
    kinds = dict.fromkeys(found)
    return ", ".join(kind if len(kinds) == 1 else f"{found.count(kind)} {kind}" for kind in kinds)


def _with_precision(row: Row) -> str:
    off = row["expected_minus_real_precision"]
    return row["finding"] if off is None else f"{row['f1']:.3f} ({100 * off:+.1f})"
