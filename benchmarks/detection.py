"""Who finds the wrong labels: labelmend's one run against cleanlab on five-fold predictions, at equal compute.

    pip install "labelmend[cleanlab]"
    python benchmarks/detection.py --out benchmarks/results/detection.json [--rows digits-50,...] [--seeds 0,1,2]

Every system sees the same samples, the same wrong labels and the same network. One unit of compute is a forward and a
backward pass over all samples; a forward pass alone is a third of it. labelmend's run (details=paper) takes a tracking
pass in every epoch and, after the warm-up, a clean pass in every step. cleanlab's five networks train on four fifths of
the samples each and predict the last fifth; they get as many epochs as cost the same. `cleanlab` is trained with plain
cross-entropy, `cleanlab-mixup` with mixup, which memorises less and is the kinder choice. `labelmend-bmm` is labelmend
with the paper's beta mixture in training in place of the default.

Rows already in the output file are not measured again; `--table` prints them as Markdown.
"""

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from common import mean_of
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from labelmend.data import Samples
from labelmend.data.samples import NoisyLabels
from labelmend.methods.paper import PUBLISHED
from labelmend.run.model import load_model
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import Prepared, prepare
from labelmend.training.session import train

SHARED = Path(__file__).parents[2] / "shared" / "data"
FOLDS = 5


@dataclass(frozen=True)
class Row:
    source: str
    noise: str | None = None
    labels: str | None = None
    limit: int | None = None
    net: str | None = None
    epochs: int | None = None
    size: int | None = None


CIFAR = str(SHARED / "cifar10" / "train.parquet")
HUMAN = str(SHARED / "cifar10n" / "labels.npz")
ROWS = {
    "digits-20": Row("digits", "symmetric:0.2"),
    "digits-50": Row("digits", "symmetric:0.5"),
    "digits-80": Row("digits", "symmetric:0.8"),
    "digits-asymmetric-40": Row("digits", "asymmetric:0.4"),
    "fashion-mnist-20": Row("fashion-mnist", "symmetric:0.2", limit=6000, net="mlp", epochs=60),
    "fashion-mnist-50": Row("fashion-mnist", "symmetric:0.5", limit=6000, net="mlp", epochs=60),
    "fashion-mnist-80": Row("fashion-mnist", "symmetric:0.8", limit=6000, net="mlp", epochs=60),
    "cifar10n-random1": Row(CIFAR, labels=f"{HUMAN}:random_label1", limit=3000, net="convnet", epochs=20, size=16),
    "cifar10n-aggre": Row(CIFAR, labels=f"{HUMAN}:aggre_label", limit=3000, net="convnet", epochs=20, size=16),
}


def prepared(row: Row, seed: int, out: str, **settings: str) -> Prepared:
    config = TrainConfig(
        row.source, out, net=row.net, epochs=row.epochs, noise=row.noise, labels=row.labels, limit=row.limit,
        size=row.size, seed=seed, threads=1, device="cpu", settings=settings,
    )  # fmt: skip
    return prepare(config)


def labelmend(row: Row, seed: int, noise_model: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        ready = prepared(row, seed, f"{folder}/run", noise_model=noise_model, details="paper")
        run, _ = train(ready)
        summary, labels = run.read()["summary"], pq.read_table(run.labels_parquet).to_pydict()
        noise = json.loads(run.noise_json.read_bytes())
    given, suggested, truth, verdict = (np.array(labels[k]) for k in ("given", "suggested", "truth", "verdict"))
    found = scores(given != truth, -np.array(labels["rank"]), verdict != "keep", suggested == truth)
    return found | {
        "wrong_after": float((suggested != truth).mean()),
        "estimated_rate": noise["rate"],
        "interval": noise["interval"],
        "expected_precision": noise["expected_precision"],
        "accuracy": summary["last_accuracy"],
        "epochs": ready.choices.epochs,
        "units": units(ready.choices.epochs),
    }


def cleanlab(row: Row, seed: int, method: str) -> dict[str, Any]:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    with tempfile.TemporaryDirectory() as folder:
        whole = prepared(row, seed, f"{folder}/whole")
        epochs = max(1, round((units(whole.choices.epochs) - 1 / 3) / (FOLDS - 1)))
        given, truth = whole.data.labels.observed.numpy(), whole.data.labels.truth.numpy()
        probabilities = out_of_fold(whole, method, epochs, Path(folder))
    flagged = find_label_issues(given, probabilities, n_jobs=1)
    suspicion = 1 - get_label_quality_scores(given, probabilities)
    suggested = np.where(flagged, probabilities.argmax(axis=1), given)
    found = scores(given != truth, suspicion, flagged, suggested == truth)
    return found | {
        "wrong_after": float((suggested != truth).mean()),
        "estimated_rate": float(flagged.mean()),
        "epochs": epochs,
        "units": (FOLDS - 1) * epochs + 1 / 3,
    }


def out_of_fold(whole: Prepared, method: str, epochs: int, folder: Path, *, folds: int = FOLDS) -> Any:
    """Each sample's probabilities by a network that did not see it."""
    data, given = whole.data, whole.data.labels.observed.numpy()
    probabilities = np.zeros((len(given), len(data.class_names)))
    splits = StratifiedKFold(folds, shuffle=True, random_state=whole.config.seed).split(given, given)
    for number, (kept, held) in enumerate(splits):
        config = replace(
            whole.config, out=str(folder / f"fold{number}"), method=method, epochs=epochs, net=whole.choices.net,
            noise=None, labels=None, limit=None, settings={"batch_size": str(whole.choices.batch_size)},
        )  # fmt: skip
        run, _ = train(prepare(config, data=subset(data, kept)))
        probabilities[held] = load_model(run).probabilities(data.loaded(held.tolist()))
    return probabilities


def subset(data: Samples, rows: Any) -> Samples:
    """Some of the samples, with given labels only."""
    part = data.take(rows.tolist())
    return replace(part, labels=NoisyLabels(part.labels.observed), test=None)


def units(epochs: int) -> float:
    """Cost of a run of m-dyr-h in forward-and-backward passes over all samples."""
    published, _, warm_up = PUBLISHED["mixup"]
    return epochs * (1 + 1 / 3 + (1 - warm_up / published) / 3)


def scores(wrong: Any, suspicion: Any, flagged: Any, right_after: Any) -> dict[str, Any]:
    """How well the wrong labels are ranked, flagged and replaced."""
    hits = int((wrong & flagged).sum())
    return {
        "auc": float(roc_auc_score(wrong, suspicion)),
        "average_precision": float(average_precision_score(wrong, suspicion)),
        "precision": hits / max(int(flagged.sum()), 1),
        "recall": hits / max(int(wrong.sum()), 1),
        "suggestions_right": float(right_after[wrong & flagged].mean()) if hits else None,
        "real_rate": float(wrong.mean()),
    }


SYSTEMS = {
    "labelmend": lambda row, seed: labelmend(row, seed, "auto"),
    "labelmend-bmm": lambda row, seed: labelmend(row, seed, "bmm"),
    "cleanlab": lambda row, seed: cleanlab(row, seed, "ce"),
    "cleanlab-mixup": lambda row, seed: cleanlab(row, seed, "m"),
}


COLUMNS = {
    "auc": ("AUC", 4),
    "average_precision": ("average precision", 4),
    "precision": ("precision", 3),
    "recall": ("recall", 3),
    "suggestions_right": ("suggestions right", 3),
    "wrong_after": ("wrong after", 3),
    "estimated_rate": ("estimated rate", 3),
    "real_rate": ("real rate", 3),
}


def table(measured: list[dict[str, Any]]) -> str:
    """Means over the seeds as Markdown, with the smallest and the largest AUC."""
    lines = ["| row | system | seeds | " + " | ".join(title for title, _ in COLUMNS.values()) + " | AUC from, to |"]
    lines.append("|---|---|---|" + "---|" * (len(COLUMNS) + 1))
    for row in ROWS:
        for system in SYSTEMS:
            found = [m for m in measured if m["row"] == row and m["system"] == system]
            if found:
                values = [mean_of(found, key, digits) for key, (_, digits) in COLUMNS.items()]
                span = f"{min(m['auc'] for m in found):.4f}, {max(m['auc'] for m in found):.4f}"
                lines.append(f"| {row} | `{system}` | {len(found)} | {' | '.join(values)} | {span} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--table", action="store_true", help="only print what the output file holds, as Markdown")
    asked = parser.parse_args()
    if asked.table:
        print(table(json.loads(asked.out.read_text())["rows"]))
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    versions = {name: version(name) for name in ("labelmend", "cleanlab", "torch", "scikit-learn")}
    measured = json.loads(asked.out.read_text())["rows"] if asked.out.exists() else []
    done = {(m["row"], m["system"], m["seed"]) for m in measured}
    for name in asked.rows.split(","):
        for seed in map(int, asked.seeds.split(",")):
            for system in asked.systems.split(","):
                if (name, system, seed) in done:
                    continue
                started = time.perf_counter()
                found = SYSTEMS[system](ROWS[name], seed)
                seconds = round(time.perf_counter() - started, 1)
                measured.append(
                    {"row": name, "system": system, "seed": seed, **found, "seconds": seconds, "commit": commit}
                )
                print(json.dumps(measured[-1]), flush=True)
                asked.out.write_text(json.dumps({"versions": versions, "rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
