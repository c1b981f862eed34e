"""Which labels are wrong, told from the released predictions of real networks: labelmend's judge against others.

    pip install "labelmend[cleanlab]"
    OMP_NUM_THREADS=1 python benchmarks/judging.py [--out benchmarks/results/judging.json] [--only SET]

Every system gets the same labels and the same out-of-sample probabilities, and none gets the truth:

- `differs`: the predicted class differs from the given one;
- `cleanlab FILTER`: each `filter_by` of `find_label_issues`; `cleanlab SCORE`: each of `get_label_quality_scores`;
- `version 0.1`: the judge that labelmend 0.1 had, on one pass that is written to a ledger;
- `labelmend`: `judge_predictions`, one setting for all sets.

Beside that, our judge on changed sets (predictions at other temperatures, fewer rows, right labels, random labels), and
what each of its constants changes. All of it is written to the output file. From the committed one the tables of
docs/judging.md and the pictures of docs/images are made; `--page` only makes these anew.
"""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from common import stamp
from draw_judging import draw
from judging_page import filled
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from labelmend.detect import judge, sharpness, two_ways
from labelmend.detect.dynamics import _judge_margins
from labelmend.detect.judge import Judgement, judge_predictions
from labelmend.detect.ledger import Ledger

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "judging.json"
PREDICTIONS = ROOT.parent / "shared" / "data" / "predictions"
SETS = ("synthetic20-resnet18", "synthetic20-swin", "cifar10n-aggre-resnet18", "cifar10n-aggre-swin", "roman-resnet18")
BINS = 10
CURVE = np.linspace(0.02, 1, 50)
FILTERS = (
    "prune_by_noise_rate",  # the default
    "prune_by_class",
    "both",
    "confident_learning",
    "predicted_neq_given",
    "low_normalized_margin",
    "low_self_confidence",
)
SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")  # the first is the default
ADJUSTABLE = SCORES[:2]
DRAWN = ("labelmend", "cleanlab normalized_margin")
CONSTANTS: tuple[tuple[str, Any, dict[str, float]], ...] = (
    ("EASY .25 to .15", sharpness, {"EASY": 0.15}),
    ("EASY .25 to .35", sharpness, {"EASY": 0.35}),
    ("SURE .001 to .0005", sharpness, {"SURE": 0.0005}),
    ("SURE .001 to .002", sharpness, {"SURE": 0.002}),
    ("WEAK, STRONG .45, .65 to .35, .55", sharpness, {"WEAK": 0.35, "STRONG": 0.55}),
    ("WEAK, STRONG .45, .65 to .55, .75", sharpness, {"WEAK": 0.55, "STRONG": 0.75}),
    ("OVERSHOOT .8 to .7", sharpness, {"OVERSHOOT": 0.7}),
    ("OVERSHOOT .8 to .9", sharpness, {"OVERSHOOT": 0.9}),
    ("SHRINKAGE 20 to 5", two_ways, {"SHRINKAGE": 5.0}),
    ("SHRINKAGE 20 to 60", two_ways, {"SHRINKAGE": 60.0}),
    ("START_AMBIGUITY .6 to .3", judge, {"START_AMBIGUITY": 0.3}),
    ("START_AMBIGUITY .6 to .8", judge, {"START_AMBIGUITY": 0.8}),
    ("SHARPENED 1.5 to 1.3", judge, {"SHARPENED": 1.3}),
    ("SHARPENED 1.5 to 1.7", judge, {"SHARPENED": 1.7}),
    ("HABIT_GAIN 10 to 5", judge, {"HABIT_GAIN": 5.0}),
    ("HABIT_GAIN 10 to 20", judge, {"HABIT_GAIN": 20.0}),
)
Found = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """A set of released predictions."""

    labels: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    wrong: NDArray[np.bool_]
    truth: NDArray[np.int64] | None

    @classmethod
    def read(cls, path: Path) -> "Judged":
        with np.load(path) as arrays:
            truth = arrays["true_label"].astype(np.int64) if "true_label" in arrays else None
            return cls(arrays["labels"].astype(np.int64), arrays["pred_probs"], arrays["is_wrong"], truth)

    def take(self, rows: NDArray[np.int64]) -> "Judged":
        return Judged(self.labels[rows], self.probabilities[rows], self.wrong[rows], None)


def of_flags(wrong: NDArray[np.bool_], flagged: NDArray[np.bool_]) -> Found:
    hits, flags = int((wrong & flagged).sum()), int(flagged.sum())
    return {
        "flagged": float(flagged.mean()),
        "f1": 2 * hits / max(int(wrong.sum()) + flags, 1),
        "precision": hits / flags if flags else None,
        "recall": hits / int(wrong.sum()) if wrong.any() else None,
    }


def of_ranking(wrong: NDArray[np.bool_], suspicion: NDArray[np.float64]) -> Found:
    if not wrong.any():
        return {"auc": None, "average_precision": None, "risk": []}
    order = wrong[np.argsort(suspicion, kind="stable")]
    kept = np.maximum((CURVE * len(wrong)).astype(int), 1)
    return {
        "auc": float(roc_auc_score(wrong, suspicion)),
        "average_precision": float(average_precision_score(wrong, suspicion)),
        "risk": [float(value) for value in np.round(np.cumsum(order)[kept - 1] / kept, 5)],
    }


def of_probability(wrong: NDArray[np.bool_], probability: NDArray[np.float64]) -> Found:
    """Expected calibration error in ten bins of equal width, and the bins: samples, mean P(wrong), share wrong."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    claimed, real = (np.bincount(bins, values, BINS) for values in (probability, wrong.astype(float)))
    filled_bins = [
        [int(count), round(float(said / count), 5), round(float(was / count), 5)]
        for count, said, was in zip(counts, claimed, real, strict=True)
        if count
    ]
    return {"calibration_error": float(np.abs(claimed - real).sum() / len(wrong)), "bins": filled_bins}


def of_judgement(wrong: NDArray[np.bool_], found: Judgement) -> Found:
    flags = of_flags(wrong, found.flagged)
    expected = float(found.probability[found.flagged].mean()) if found.flagged.any() else None
    low, high = found.interval
    return (
        flags
        | of_ranking(wrong, found.score)
        | of_probability(wrong, found.probability)
        | {
            "finding": found.finding,
            "rate": found.rate,
            "interval": [low, high],
            "covers": bool(low <= wrong.mean() <= high),
            "expected_minus_real_precision": None if expected is None else expected - flags["precision"],
            "fitted": found.fitted,
        }
    )


def version_01(given: Judged) -> Judgement:
    """What 0.1 did with predictions: one pass in the ledger, and a mixture of the log-odds against each label."""
    ledger, labels = Ledger(len(given.labels)), torch.from_numpy(given.labels)
    ledger.open_pass()
    logits = torch.from_numpy(given.probabilities).clamp_min(1e-12).log()
    ledger.write(torch.arange(len(labels)), labels, logits)
    return _judge_margins([ledger], labels, given.probabilities.shape[1])


def systems(given: Judged) -> Iterator[tuple[str, Callable[[], Any], Callable[[Any], Found]]]:
    """Every system by name: what it does, and how that is scored."""
    from cleanlab.count import num_label_issues
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    labels, probabilities, wrong = given.labels, given.probabilities, given.wrong

    def of_differs(flagged: Any) -> Found:
        return of_flags(wrong, flagged) | {"rate": float(flagged.mean())}

    def of_scores(scores: Any) -> Found:
        suspicion = 1 - scores.astype(np.float64)
        return of_ranking(wrong, suspicion) | of_probability(wrong, np.clip(suspicion, 0, 1))

    yield "differs", lambda: probabilities.argmax(axis=1) != labels, of_differs
    for name in FILTERS:
        find = partial(find_label_issues, labels, probabilities, filter_by=name, n_jobs=1)
        yield f"cleanlab {name}", find, partial(of_flags, wrong)
    for name in SCORES:
        for adjusted in (False, True) if name in ADJUSTABLE else (False,):
            score = partial(get_label_quality_scores, labels, probabilities, method=name, adjust_pred_probs=adjusted)
            yield f"cleanlab {name}{', adjusted' if adjusted else ''}", score, of_scores
    count = partial(num_label_issues, labels, probabilities)
    yield "cleanlab num_label_issues", count, lambda issues: {"rate": float(issues / len(labels))}
    yield "version 0.1", partial(version_01, given), partial(of_judgement, wrong)
    yield "labelmend", partial(judge_predictions, labels, probabilities), partial(of_judgement, wrong)


def checks(given: Judged) -> Iterator[tuple[str, int, Judged]]:
    """Changed sets by the name of the change, with the number of the draw."""
    rng = np.random.default_rng(0)
    for temperature in (0.5, 2.0):
        powers = np.maximum(given.probabilities.astype(np.float64), 1e-30) ** (1 / temperature)
        scaled = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
        yield f"temperature {temperature:g}", 0, Judged(given.labels, scaled, given.wrong, None)
    for size in (5_000, 1_000):
        for draw_number in range(5 if size < len(given.labels) else 0):
            yield f"{size:,} rows", draw_number, given.take(rng.permutation(len(given.labels))[:size])
    if given.truth is not None:
        yield "right labels", 0, Judged(given.truth, given.probabilities, np.zeros_like(given.wrong), None)
        drawn = rng.integers(0, given.probabilities.shape[1], len(given.labels))
        yield "random labels", 0, Judged(drawn, given.probabilities, drawn != given.truth, None)


def measure(given: Judged, name: str) -> Iterator[tuple[str, Found]]:
    """Rows of the output for a set, each with the section that it belongs to."""
    about = {"set": name, "samples": len(given.labels), "real_rate": float(given.wrong.mean())}
    for system, run, scored in systems(given):
        started = time.perf_counter()
        answer = run()
        seconds = round(time.perf_counter() - started, 3)
        found = scored(answer)
        if system not in DRAWN:
            found = {key: value for key, value in found.items() if key not in ("risk", "bins")}
        yield "systems", about | {"system": system} | found | {"seconds": seconds}
    for check, number, changed in checks(given):
        found = _short(of_judgement(changed.wrong, judge_predictions(changed.labels, changed.probabilities)))
        yield "checks", {"set": name, "check": check, "draw": number, "real_rate": float(changed.wrong.mean())} | found
    for change, module, values in CONSTANTS:
        with ExitStack() as stack:
            for constant, value in values.items():
                stack.enter_context(patch.object(module, constant, value))
            found = _short(of_judgement(given.wrong, judge_predictions(given.labels, given.probabilities)))
        yield "constants", {"set": name, "change": change} | found


def _short(found: Found) -> Found:
    return {key: value for key, value in found.items() if key not in ("risk", "bins", "fitted")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=SETS, help="measure this set; results of the others are kept")
    parser.add_argument("--predictions", type=Path, default=PREDICTIONS, help="folder of the released predictions")
    parser.add_argument("--page", action="store_true", help="measure nothing, only make tables and pictures")
    asked = parser.parse_args()
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {"sets": {}}
    if not asked.page:
        made = stamp()
        made["versions"]["cleanlab"] = version("cleanlab")
        made["command"] = shlex.join(["python", "benchmarks/judging.py", *sys.argv[1:]])
        for name in [asked.only] if asked.only else SETS:
            path = asked.predictions / f"{name}.npz"
            if not path.is_file():
                print(f"skipped: {name}, because {path} is absent")
                continue
            found: dict[str, Any] = {"made": made, "systems": [], "checks": [], "constants": []}
            for section, row in measure(Judged.read(path), name):
                found[section].append(row)
                print(json.dumps(_short(row)), flush=True)
            results["sets"][name] = found
            asked.out.write_text(json.dumps(results, indent=1) + "\n")
    if asked.out.resolve() == RESULTS.resolve():
        page = ROOT / "docs" / "judging.md"
        page.write_text(filled(page.read_text(encoding="utf-8"), results), encoding="utf-8")
        draw(results, ROOT / "docs" / "images")


if __name__ == "__main__":
    main()
