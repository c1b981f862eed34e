"""The scikit-learn face beside cleanlab's CleanLearning: one program, in which only the class changes.

    pip install "labelmend[cleanlab]"
    python benchmarks/faces.py --out benchmarks/results/faces.json [--rows wine,...] [--seeds 0,1,2] [--systems ...]
    python benchmarks/faces.py --out benchmarks/results/faces.json --page docs/faces/scikit-learn.md

Rows are sets that scikit-learn carries. A quarter of each is held out with its right labels, the rest is standardised,
and 20 % of its labels are changed to another class at random. `CleanLearning` and `LabelMendClassifier` are called
alike: fit, get_label_issues, score. `default` is each class without a classifier of the user: CleanLearning's logistic
regression, and labelmend's own learner; `logistic` and `forest` are both classes around the same classifier. Settings
were chosen on seeds 100 to 107, logistic regression alone; rows that are there are not made again.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import filled_blocks, kept_results, results_table, scores, stamp

ROWS = ("wine", "breast_cancer", "digits")
WRONG, HELD_OUT = 0.2, 0.25


def classifier(name: str) -> Any:
    """The classifier that both classes get; None for their own."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    made = {"logistic": LogisticRegression(), "forest": RandomForestClassifier(random_state=0)}
    return made.get(name)


def cleanlab(name: str, seed: int) -> Any:
    from cleanlab.classification import CleanLearning

    # In one process, so that its time is counted; this changes nothing that it finds.
    return CleanLearning(classifier(name), seed=seed, find_label_issues_kwargs={"n_jobs": 1})


def labelmend(name: str, seed: int) -> Any:
    from labelmend import LabelMendClassifier

    return LabelMendClassifier(classifier(name), seed=seed)


SYSTEMS: dict[str, Callable[[int], Any]] = {
    f"{maker.__name__}, {name}": lambda seed, maker=maker, name=name: maker(name, seed)
    for name, maker in product(("default", "logistic", "forest"), (cleanlab, labelmend))
}


def measured_once(system: str, row: str, seed: int) -> dict[str, Any]:
    """The program: fit on wrong labels, look at the issues, score on right ones."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = getattr(datasets, f"load_{row}")(return_X_y=True)
    x_train, x_test, truth, y_test = train_test_split(x, y, test_size=HELD_OUT, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(x_train)
    labels = with_wrong(truth, np.random.default_rng([seed, *row.encode()]))
    model = SYSTEMS[system](seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a regression has not converged, which both classes say
        model.fit(scaler.transform(x_train), labels)
    seconds = time.process_time() - started
    issues = model.get_label_issues()
    found = scores(labels != truth, 1 - issues["label_quality"].to_numpy(), issues["is_label_issue"].to_numpy())
    return found | {
        "accuracy": float(model.score(scaler.transform(x_test), y_test)),
        "estimated_rate": float(getattr(model, "noise_rate_", issues["is_label_issue"].mean())),
        "net": model.model_.described["net"] if hasattr(model, "model_") else None,
        "seconds": round(seconds, 1),
    }


def with_wrong(truth: Any, rng: np.random.Generator) -> Any:
    """The labels with a share of them changed to another class."""
    labels, classes = truth.copy(), truth.max() + 1
    rows = rng.choice(len(truth), round(WRONG * len(truth)), replace=False)
    labels[rows] = (truth[rows] + rng.integers(1, classes, len(rows))) % classes
    return labels


COLUMNS = {
    "auc": ("AUC", 4),
    "average_precision": ("average precision", 3),
    "f1": ("F1", 3),
    "precision": ("precision", 3),
    "recall": ("recall", 3),
    "estimated_rate": ("rate", 3),
    "accuracy": ("accuracy", 3),
    "seconds": ("CPU seconds", 1),
}


def table(measured: list[dict[str, Any]]) -> str:
    """Means over the seeds as Markdown."""
    return results_table(measured, ROWS, SYSTEMS, COLUMNS, learner=("learner", lambda m: str(m["net"])))


def filled(page: str, measured: list[dict[str, Any]]) -> str:
    """A page with its table as the results have it now."""
    return filled_blocks(page, {"results": table(measured)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--systems", default=";".join(SYSTEMS), help="joined by ;")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--page", type=Path, help="only bring what the output file holds into this page")
    asked = parser.parse_args()
    measured = kept_results(asked.out)
    if asked.page:
        asked.page.write_text(filled(asked.page.read_text(), measured))
        return
    done = {(m["row"], m["system"], m["seed"]) for m in measured}
    for row, seed, system in product(asked.rows.split(","), map(int, asked.seeds.split(",")), asked.systems.split(";")):
        if (row, system, seed) in done:
            continue
        found = measured_once(system, row, seed)
        measured.append(
            {"row": row, "system": system, "seed": seed, **found, "cleanlab": version("cleanlab"), **stamp()}
        )
        print(json.dumps(measured[-1]), flush=True)
        asked.out.write_text(json.dumps({"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
