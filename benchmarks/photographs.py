"""Photographs and embeddings with real label errors: labelmend's defaults, and what a user would do instead.

    python benchmarks/photographs.py --out benchmarks/results/photographs.json [--rows cifar10n-aggre,...] [--seeds 0]
    python benchmarks/photographs.py --out benchmarks/results/photographs.json --page docs/photographs.md

Rows of CIFAR-10 take all 50,000 images with human labels, or half of the labels redrawn; `features` rows take 2,000 of
them as pretrained features; photos4 and photos5 are folders of ../shared/trials. Every row is one run of the command
with nothing but its labels and, where named, a time; seconds are those of the whole command. Needs ../shared beside the
project and the extras photos and cleanlab. Measured on a quiet machine; rows that are there are not made again. --page
also draws the curve over the time, into the folder of images beside the page.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import SHARED, built, filled_blocks, kept_results, labelmend_run, results_table, scores, stamp, true_labels

HUMAN = SHARED / "data/cifar10n/labels.npz"
CIFAR = ["cifar10", "--root", str(SHARED / "data/cifar10")]
SUBSET = 2_000


@dataclass(frozen=True)
class Row:
    """What the command is given: words, or a set of the trials; `limit` samples drawn by the seed."""

    words: tuple[str, ...] = ()
    trial: str | None = None
    limit: int | None = None


def _human(name: str) -> tuple[str, ...]:
    return (*CIFAR, "--labels", f"{HUMAN}:{name}")


NO_FEATURES = ("--features", "none")
TIMES = {"5m": "cifar10n-random1-5m", "10m": "cifar10n-random1-10m", "20m": "cifar10n-random1"} | {
    given: f"cifar10n-random1-{given}" for given in ("40m", "90m")
}
"""Rows of one set by the time that they were given; 20 minutes are the default for it."""
ROWS = {
    "cifar10n-aggre": Row(_human("aggre_label")),
    "cifar10n-random1": Row(_human("random_label1")),
    "cifar10-symmetric50": Row((*CIFAR, "--noise", "symmetric:0.5")),
    **{row: Row((*_human("random_label1"), "--time", t)) for t, row in TIMES.items() if row != "cifar10n-random1"},
    "features-aggre": Row((*_human("aggre_label"), "--features", "efficientnet-lite0"), limit=SUBSET),
    "features-random1": Row((*_human("random_label1"), "--features", "efficientnet-lite0"), limit=SUBSET),
    "photos4": Row(trial="photos4"),
    "photos5": Row(trial="photos5"),
    "photos4-scratch": Row(NO_FEATURES, trial="photos4"),
    "photos5-scratch": Row(NO_FEATURES, trial="photos5"),
}


def labelmend(row: Row, seed: int, folder: Path) -> dict[str, Any]:
    """One run of the command, as a user would start it."""
    source = [] if row.trial is None else [str(built(row.trial, seed, folder))]
    limit = [] if row.limit is None else ["--limit", str(row.limit)]
    seeded = ["--seed", str(seed)] if row.trial is None else []
    words = [*source, *row.words, *limit, *seeded]
    found = labelmend_run(words, folder, truth=None if row.trial is None else folder / f"{row.trial}.truth.csv")
    return found | {"command": found["command"].replace(str(SHARED), "../shared")}


def logistic_regression(row: Row, seed: int, folder: Path) -> dict[str, Any]:
    """The same features, five folds of logistic regression, cleanlab's filter: what a user would do instead."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from labelmend.training.config import TrainConfig
    from labelmend.training.prepare import prepare

    source = str(built(row.trial, seed, folder)) if row.trial is not None else "cifar10"
    given_words = dict(zip(row.words[1::2], row.words[2::2], strict=True)) if row.trial is None else {}
    options = {name.removeprefix("--"): value for name, value in given_words.items()}
    options["features"] = "efficientnet-lite0"
    prepared = prepare(TrainConfig(source, str(folder / "unused"), limit=row.limit, seed=seed, **options))
    data, started = prepared.data, time.perf_counter()
    x, y = data.inputs.numpy(), data.labels.observed.numpy()
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=np.logspace(-4, 0, 5), cv=3, max_iter=300))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
    flagged = find_label_issues(y, probabilities, n_jobs=1)
    truth = data.labels.truth
    if truth is None:
        names = true_labels(folder / f"{row.trial}.truth.csv", list(data.ids))
        right = np.array([list(data.class_names).index(name) for name in names])
    else:
        right = truth.numpy()
    accuracy = None
    if data.test is not None:
        fitted = model.fit(x, y)
        accuracy = float((fitted.predict(data.test.inputs.numpy()) == data.test.labels.observed.numpy()).mean())
    found = scores(right != y, 1 - get_label_quality_scores(y, probabilities), flagged)
    seconds = round(time.perf_counter() - started, 1)
    return found | {"accuracy": accuracy, "estimated_rate": float(flagged.mean()), "seconds": seconds}


def cross_validated(row: Row, seed: int, folder: Path) -> dict[str, Any]:
    """cleanlab at equal compute: the network that labelmend chose, plainly trained in two halves, each half judged.

    Two networks on half of the images each cost as much as one on all of them.
    """
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from detection import out_of_fold

    from labelmend.training.config import TrainConfig
    from labelmend.training.prepare import prepare

    source = str(built(row.trial, seed, folder)) if row.trial is not None else "cifar10"
    words = row.words[1:] if row.trial is None else row.words
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    started = time.perf_counter()
    whole = prepare(TrainConfig(source, str(folder / "whole"), method="ce", seed=seed, **options))
    given = whole.data.labels.observed.numpy()
    probabilities = out_of_fold(whole, "ce", whole.choices.epochs, folder, folds=2)
    flagged = find_label_issues(given, probabilities, n_jobs=1)
    truth = whole.data.labels.truth
    if truth is None:
        names = true_labels(folder / f"{row.trial}.truth.csv", list(whole.data.ids))
        right = np.array([list(whole.data.class_names).index(name) for name in names])
    else:
        right = truth.numpy()
    found = scores(right != given, 1 - get_label_quality_scores(given, probabilities), flagged)
    more = {"net": whole.choices.net, "epochs": whole.choices.epochs, "estimated_rate": float(flagged.mean())}
    return found | more | {"accuracy": None, "seconds": round(time.perf_counter() - started, 1)}


SYSTEMS: dict[str, Callable[[Row, int, Path], dict[str, Any]]] = {
    "labelmend": labelmend,
    "logistic-regression": logistic_regression,
    "cleanlab": cross_validated,
}
COLUMNS = {
    "accuracy": ("accuracy", 3),
    "auc": ("AUC", 4),
    "f1": ("F1", 3),
    "precision": ("precision", 3),
    "expected_precision": ("expected", 3),
    "estimated_rate": ("rate", 3),
    "real_rate": ("real rate", 3),
    "seconds": ("seconds", 0),
}


def table(measured: list[dict[str, Any]]) -> str:
    """Means over the seeds as Markdown."""
    learner = ("network, epochs", lambda m: f"{m['net']}, {m['epochs']}")
    return results_table(measured, ROWS, SYSTEMS, COLUMNS, learner=learner)


def commands(measured: list[dict[str, Any]]) -> str:
    """The command of each row of labelmend, and the commits it was measured at."""
    lines = ["| row | command | commit |", "|---|---|---|"]
    for row in ROWS:
        found = [m for m in measured if m["row"] == row and m["system"] == "labelmend"]
        if found:
            commits = ", ".join(sorted({m["commit"] for m in found}))
            lines.append(f"| {row} | `{found[0]['command']}` | {commits} |")
    return "\n".join(lines)


def curve(measured: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was found in each time, of the times that were measured."""
    found = {m["row"]: m for m in measured if m["system"] == "labelmend"}
    return {given: found[row] for given, row in TIMES.items() if row in found}


def curve_table(measured: list[dict[str, Any]]) -> str:
    """The learning curve over the time as Markdown."""
    lines = [
        "| `--time` | network, epochs | accuracy | AUC | F1 | rate | minutes taken |",
        "|---|---|---|---|---|---|---|",
    ]
    for given, row in curve(measured).items():
        figures = f"{row['accuracy']:.3f} | {row['auc']:.4f} | {row['f1']:.3f} | {row['estimated_rate']:.3f}"
        lines.append(f"| {given} | {row['net']}, {row['epochs']} | {figures} | {row['seconds'] / 60:.1f} |")
    return "\n".join(lines)


def draw_curve(measured: list[dict[str, Any]], folder: Path) -> None:
    """The learning curve over the time as a picture, photographs-time.svg."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "labelmend", "axes.spines.top": False, "axes.spines.right": False})
    found = curve(measured)
    names = {"accuracy": "accuracy on test images", "auc": "AUC of wrong labels", "f1": "F1 of what is flagged"}
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for (key, name), colour in zip(names.items(), ("#2a7f9e", "#d1495b", "#6b705c"), strict=True):
        values = [row[key] for row in found.values()]
        axis.plot(range(len(found)), values, "o-", color=colour, lw=1.5, ms=4)
        axis.annotate(name, (len(found) - 1, values[-1]), (8, 0), textcoords="offset points", color=colour, va="center")
    axis.set_xticks(range(len(found)), list(found))
    axis.set_xlim(right=len(found) - 1 + 0.6 * max(1, len(found) - 1))
    axis.set_xlabel("--time")
    axis.grid(True, color="#eeeeee")
    figure.savefig(folder / "photographs-time.svg", metadata={"Date": None})
    plt.close(figure)


def filled(page: str, measured: list[dict[str, Any]]) -> str:
    """A page with its tables as the results have them now."""
    blocks = {"results": table(measured), "curve": curve_table(measured), "commands": commands(measured)}
    return filled_blocks(page, blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default="cifar10n-aggre,cifar10n-random1,cifar10-symmetric50")
    parser.add_argument("--systems", default="labelmend")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--page", type=Path, help="only bring what the output file holds into this page")
    asked = parser.parse_args()
    measured = kept_results(asked.out)
    if asked.page:
        asked.page.write_text(filled(asked.page.read_text(), measured))
        draw_curve(measured, asked.page.parent / "images")
        return
    done = {(m["row"], m["system"], m["seed"]) for m in measured}
    for name in asked.rows.split(","):
        for seed in map(int, asked.seeds.split(",")):
            for system in asked.systems.split(","):
                if (name, system, seed) in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    found = SYSTEMS[system](ROWS[name], seed, Path(folder))
                measured.append({"row": name, "system": system, "seed": seed, **found, **stamp()})
                print(json.dumps(measured[-1]), flush=True)
                asked.out.write_text(json.dumps({"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
