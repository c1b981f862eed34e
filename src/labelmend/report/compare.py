"""Build `comparison.html` from several run directories."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ..detect.judge import UNKNOWN
from ..files import write_atomic
from ..run.directory import RunDirectory
from .build import check_replaceable, render
from .embedding import PALETTE
from .figures import accuracy_curves
from .read import Findings, read_findings
from .svg import both_widths

MOST_DISPUTED = 15


def build_comparison(runs: Sequence[RunDirectory], out: Path) -> None:
    """Write a page that compares finished runs; only a page that labelmend wrote is replaced."""
    check_replaceable(out)
    found = [read_findings(run) for run in runs]
    names = distinct_names(found)
    colours = [PALETTE[number % len(PALETTE)] for number in range(len(found))]
    by_run = [(findings.epochs, colour) for findings, colour in zip(found, colours, strict=True)]
    tested = any(findings.summary["last_accuracy"] is not None for findings in found)
    pairs = combinations(zip(names, found, strict=True), 2)
    page = render(
        "comparison.html",
        title="comparison",
        runs=list(zip(names, colours, map(overview, found), strict=True)),
        curves=both_widths(accuracy_curves, by_run) if tested else None,
        agreements=[agreement(*first, *second) for first, second in pairs if same_data(first[1], second[1])],
    )
    write_atomic(out, page)


def distinct_names(found: Sequence[Findings]) -> list[str]:
    """Folder names, or whole paths if two folders have the same name."""
    names = [findings.name for findings in found]
    if len(set(names)) == len(names):
        return names
    return [str(findings.run.path) for findings in found]


def overview(findings: Findings) -> dict[str, Any]:
    """The row of a run in the table of runs."""
    described, summary, noise = findings.described, findings.summary, findings.noise
    config, chosen, known = described["config"], described.get("chosen") or {}, described.get("noise")
    named = config.get("noise") or (config.get("labels") if findings.trained else None)
    return {
        "method": chosen.get("method", config.get("method")) if findings.trained else "judged",
        "finding": noise["finding"],
        "data": described["data"]["name"],
        "samples": described["data"]["samples"],
        "noise": named or "as given",
        "net": chosen.get("net"),
        "epochs": chosen.get("epochs"),
        "best": summary["best_accuracy"],
        "last": summary["last_accuracy"],
        "auc": summary["auc"],
        "rate": None if noise["finding"] == UNKNOWN else noise["rate"],
        "real": known["real"] if known else None,
        "flagged": noise["flagged"],
        "seconds": summary["seconds"],
    }


def same_data(first: Findings, second: Findings) -> bool:
    """Whether both runs judged the same labels of the same samples."""
    columns = [[f.table[name].combine_chunks() for name in ("id", "given")] for f in (first, second)]
    return columns[0] == columns[1]


def agreement(name: str, findings: Findings, other_name: str, other: Findings) -> dict[str, Any]:
    """How many labels two runs on the same data both flag, and the samples on which they differ most."""
    one, two = findings.flagged, other.flagged
    apart = np.abs(findings.column("noisy_probability") - other.column("noisy_probability"))
    disputed = np.argsort(-apart, kind="stable")[:MOST_DISPUTED]
    rows = zip(findings.table.take(disputed).to_pylist(), other.table.take(disputed).to_pylist(), strict=True)
    either = int((one | two).sum())
    return {
        "names": (name, other_name),
        "flagged": (int(one.sum()), int(two.sum())),
        "both": int((one & two).sum()),
        "overlap": (one & two).sum() / either if either else None,
        "rows": [pair for pair, gap in zip(rows, apart[disputed], strict=True) if gap > 0.05],
    }
