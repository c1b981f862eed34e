"""What benchmarks share: runs of the command, scores against the truth, and what is kept beside the figures."""

import csv
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared"
LOOP_COLUMNS = {
    "accuracy": ("last accuracy", 3),
    "auc": ("AUC", 4),
    "f1": ("F1", 3),
    "precision": ("precision", 3),
    "estimated_rate": ("rate", 3),
    "real_rate": ("real rate", 3),
}
"""Figures of a training loop of somebody else, with their titles and digits."""
VERSIONED = ("labelmend", "torch", "numpy", "scikit-learn")


def stamp() -> dict[str, Any]:
    """Commit, versions and machine that a figure came from."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    return {
        "commit": commit,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in VERSIONED},
        "machine": {"processor": processor(), "cores": cores()},
    }


def cores() -> int:
    """Cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0))


def processor() -> str:
    """The processor's name, as far as the system tells."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def kept_results(path: Path) -> list[dict[str, Any]]:
    """Rows measured before, if there are any."""
    return list(json.loads(path.read_text())["rows"]) if path.exists() else []


def mean_of(found: list[dict[str, Any]], key: str, digits: int) -> str:
    """The mean of a figure over some rows, as text; a dash where none has it."""
    known = [row[key] for row in found if row.get(key) is not None]
    return f"{sum(known) / len(known):.{digits}f}" if known else "–"


def results_table(
    measured: list[dict[str, Any]],
    rows: Iterable[str],
    systems: Iterable[str],
    columns: Mapping[str, tuple[str, int]],
    *,
    learner: tuple[str, Callable[[dict[str, Any]], str]],
) -> str:
    """Means over the seeds as Markdown, a line for each row and system; `learner` is a title and what it shows."""
    title, shown = learner
    lines = [f"| row | system | seeds | {title} | " + " | ".join(name for name, _ in columns.values()) + " |"]
    lines.append("|---|---|---|---|" + "---|" * len(columns))
    for row, system in product(rows, systems):
        found = [m for m in measured if m["row"] == row and m["system"] == system]
        if found:
            learners = "; ".join(sorted({shown(m) for m in found if m.get("net")})) or "–"
            values = " | ".join(mean_of(found, key, digits) for key, (_, digits) in columns.items())
            seeds = ", ".join(str(m["seed"]) for m in found)
            lines.append(f"| {row} | {system} | {seeds} | {learners} | {values} |")
    return "\n".join(lines)


def built(trial: str, seed: int, folder: Path) -> Path:
    """Where a set of the trials was built, as a folder of pictures or with .csv; its truth lies beside it."""
    maker = SHARED / "trials/make.py"
    subprocess.run([sys.executable, maker, folder, "--only", trial, "--seed", str(seed)], check=True, stdout=sys.stderr)
    return folder / trial


def labelmend_run(words: list[str], folder: Path, *, truth: Path | None = None) -> dict[str, Any]:
    """Scores of one run of the command, as a user would start it; `truth` where the run itself does not know it."""
    import numpy as np
    import pyarrow.parquet as pq

    words = [*words, "--out", str(folder / "run")]
    command = [str(Path(sys.executable).with_name("labelmend")), "train", *words]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=sys.stderr)
    seconds = time.perf_counter() - started
    described = json.loads((folder / "run/run.json").read_text())
    labels = pq.read_table(folder / "run/labels.parquet").to_pydict()
    columns = {name: np.array(values) for name, values in labels.items()}
    if truth is not None:
        columns["truth"] = true_labels(truth, labels["id"])
    wrong, flagged = columns["given"] != columns["truth"], columns["verdict"] != "keep"
    chosen, probability = described["chosen"], columns["noisy_probability"]
    return scores(wrong, -columns["rank"], flagged) | {
        "accuracy": described["summary"]["last_accuracy"],
        "expected_precision": float(probability[flagged].mean()) if flagged.any() else None,
        "estimated_rate": float(probability.mean()),
        "net": chosen["net"],
        "epochs": chosen["epochs"],
        "method": chosen["method"],
        "seconds": round(seconds, 1),
        "command": " ".join(["labelmend train", *words]).replace(str(folder), "OUT"),
    }


def true_labels(path: Path, ids: list[str]) -> Any:
    """The right labels of these samples."""
    import numpy as np

    with path.open(newline="") as stream:
        known = {line["id"]: line["truth"] for line in csv.DictReader(stream)}
    return np.array([known[id] for id in ids])


def scores(wrong: Any, suspicion: Any, flagged: Any) -> dict[str, Any]:
    """How well wrong labels are ranked and flagged."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    hits, flags = int((wrong & flagged).sum()), int(flagged.sum())
    return {
        "auc": float(roc_auc_score(wrong, suspicion)),
        "average_precision": float(average_precision_score(wrong, suspicion)),
        "f1": 2 * hits / max(flags + int(wrong.sum()), 1),
        "precision": hits / max(flags, 1),
        "recall": hits / max(int(wrong.sum()), 1),
        "real_rate": float(wrong.mean()),
    }


def filled_blocks(page: str, blocks: Mapping[str, str]) -> str:
    """A page whose blocks, between comments of their names, have these texts."""
    for name, text in blocks.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page has no block {name}")
        page = before + begin + text + end + after
    return page
