"""Any scikit-learn classifier on labels that may be wrong: judged held-out, and taught corrected labels.

What `methods/mend.py` does with networks, for models that have no gradients. The samples are divided in folds, and a
copy of the classifier judges what it did not learn. With 3, 7 or 13 folds there are two rounds: in the first each copy
leaves out a line of a finite projective plane, in the second one fold, and learns labels that were corrected by a copy
that saw neither them nor what is judged. A soft target is a row for each class that it gives a share, weighted by that
share, where the classifier takes weights, and else the class of the largest share.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..detect.judge import FOUND, Judgement, judge_predictions
from ..detect.predictions import Floats, Ints
from ..errors import InputError
from ..methods.fold_plan import LINES, left_out, lines_between, stratified_folds
from ..methods.mend import MOST_KEPT, corrected
from ..nets.trees import weighted_rows

FEW_ROWS, REPEATS = 1_000, 4
"""Rows up to which folds are drawn several times by default: which rows are learned together matters there."""
FOLDS = 7
MOST_SEED = 1 << 31
WEIGHT = "sample_weight"


@dataclass(frozen=True)
class BaseLearner:
    """A classifier to make copies of, what they learn from, and the classes that labels are positions in.

    Parts of the classifier whose `random_state` is None get one of `rng`, unless that is None too.
    """

    estimator: Any
    rows: Any
    classes: NDArray[Any]
    rng: np.random.RandomState | None = None
    sample_weight: Floats | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: Any,
        classes: NDArray[Any],
        rng: np.random.RandomState | None,
        fit_params: Mapping[str, Any],
    ) -> "BaseLearner":
        """The learner for arguments of `fit`, of which `sample_weight` goes with the rows."""
        from sklearn.utils import indexable
        from sklearn.utils.validation import _check_sample_weight

        (rows,) = indexable(rows)
        rest = {name: value for name, value in fit_params.items() if name != WEIGHT}
        weights = fit_params.get(WEIGHT)
        weights = None if weights is None else _check_sample_weight(weights, rows, dtype=np.float64)
        return cls(estimator, rows, classes, rng, weights, rest)

    def copied(self) -> Any:
        """A copy that is not fitted."""
        from sklearn.base import clone

        copy = clone(self.estimator)
        if self.rng is not None and hasattr(copy, "get_params"):
            unset = [name for name, value in sorted(copy.get_params().items()) if value is None]
            seeded = [name for name in unset if name == "random_state" or name.endswith("__random_state")]
            copy.set_params(**{name: int(self.rng.randint(MOST_SEED)) for name in seeded})
        return copy

    def fitted(self, rows: Ints, labels: Ints, weights: Floats | None = None) -> Any:
        """A copy that learned these rows with these labels; of a single class, one that always predicts it."""
        from sklearn.dummy import DummyClassifier
        from sklearn.utils import _safe_indexing

        copy = self.copied() if len(np.unique(labels)) > 1 else DummyClassifier(strategy="prior")
        own = None if self.sample_weight is None else self.sample_weight[rows]
        weights = own if weights is None else weights if own is None else weights * own
        named = weight_parameter(copy)
        given = {} if weights is None or named is None else {named: weights}
        return copy.fit(_safe_indexing(self.rows, rows), self.classes[labels], **self.fit_params, **given)

    def taught(self, rows: Ints, targets: Floats) -> Any:
        """A copy that learned these rows with soft targets [n, C]."""
        if weight_parameter(self.estimator) is None or (targets.max(axis=1) == 1).all():
            return self.fitted(rows, targets.argmax(axis=1))
        of, labels, weights = weighted_rows(targets)
        return self.fitted(rows[of], labels, weights)

    def predicted(self, fitted: Any, rows: Ints) -> Floats:
        """Probabilities of all classes, [n, C], also of those that the copy did not see."""
        from sklearn.utils import _safe_indexing

        found = np.zeros((len(rows), len(self.classes)))
        found[:, np.searchsorted(self.classes, fitted.classes_)] = fitted.predict_proba(_safe_indexing(self.rows, rows))
        return found


def check_base(estimator: Any, fit_params: Mapping[str, Any]) -> None:
    """Refuse what cannot be cross-fitted, and say what to do about it."""
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputError(f"base_estimator is the class {estimator.__name__}; give an object: {estimator.__name__}()")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise InputError(
            f"base_estimator is a {name}, which has no fit or no get_params; give a scikit-learn classifier"
        )
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{name} has no predict_proba, which labels are judged by; a classifier can be given one: "
            f"CalibratedClassifierCV({name}())"
        )
    if fit_params.get(WEIGHT) is not None and weight_parameter(estimator) is None:
        raise InputError(f"{name} takes no sample_weight; leave it out, or give another base_estimator")


def weight_parameter(estimator: Any) -> str | None:
    """The name by which `fit` takes weights of samples, in a pipeline that of its last step; None if it takes none."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if isinstance(last, str) else weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return WEIGHT if has_fit_parameter(estimator, WEIGHT) else None


def held_out(
    learner: BaseLearner | None,
    labels: Ints,
    *,
    folds: int | None,
    repeats: int | None,
    rng: np.random.RandomState,
    own: Any,
    verbose: bool,
) -> Floats:
    """Held-out probabilities [n, C]: the user's own where they are given, or those of cross-fitting."""
    if learner is None or own is not None:
        found = np.asarray(own, dtype=np.float64)
        classes = int(labels.max()) + 1
        if found.shape != (len(labels), classes):
            raise InputError(
                f"pred_probs have the shape {found.shape}; for {len(labels):,} labels of {classes} classes it must be "
                f"({len(labels)}, {classes})"
            )
        return found
    for name, value, least in (("cv", folds, 2), ("repeats", repeats, 1)):
        if value is not None and (not isinstance(value, int | np.integer) or value < least):
            raise InputError(f"{name} is {value!r}, but it must be a whole number from {least} on")
    folds = FOLDS if folds is None else int(folds)
    with _fits_shown(verbose, count_fits(len(labels), folds, repeats)) as advance:
        return cross_fit(learner, labels, folds=folds, repeats=repeats, rng=rng, advance=advance)


def count_fits(samples: int, folds: int, repeats: int | None) -> int:
    """How many copies are fitted to judge so many samples.

    >>> count_fits(5_000, 7, None), count_fits(5_000, 5, None)
    (14, 5)
    """
    rounds = 2 if folds in LINES else 1
    return rounds * folds * _repeats(samples, repeats)


@contextmanager
def _fits_shown(verbose: bool, total: int) -> Iterator[Callable[[], None]]:
    """What to call for every fitted copy, so that a bar shows it."""
    if not verbose:
        yield lambda: None
        return
    from rich.console import Console

    from .progress import progress_bar

    with progress_bar(Console(stderr=True)) as progress:
        task = progress.add_task("fits", total=total, state=f"of {total}")
        yield lambda: progress.advance(task)


def cross_fit(
    learner: BaseLearner,
    labels: Ints,
    *,
    folds: int,
    repeats: int | None,
    rng: np.random.RandomState,
    advance: Callable[[], None] = lambda: None,
) -> Floats:
    """Probabilities [n, C] by copies that did not learn the sample, the mean over several divisions in folds.

    `advance` is told of every fitted copy.
    """
    folds = min(folds, len(labels))
    kept = len(labels) * len(learner.classes) * len(LINES.get(folds, ()))
    one_draw = _two_rounds if 0 < kept <= MOST_KEPT // 4 else _one_round  # of 8 bytes each, in place of 2
    total = np.zeros((len(labels), len(learner.classes)))
    times = _repeats(len(labels), repeats)
    for _ in range(times):
        order, fold = rng.permutation(len(labels)), np.empty(len(labels), dtype=np.int64)
        fold[order] = stratified_folds(torch.from_numpy(labels[order]), folds).numpy()
        total += one_draw(learner, labels, fold, folds, advance)
    found: Floats = total / times
    return found


def judged(labels: Ints, probabilities: Any) -> Judgement:
    """The judgement of labels by held-out probabilities; a label that no other sample has is not doubted.

    Nobody could learn that class from the other samples.
    """
    alone = np.bincount(labels)[labels] == 1
    found = judge_predictions(labels, probabilities)
    return found.trusting(np.flatnonzero(alone)) if alone.any() else found


def corrected_targets(labels: Ints, wrong: Floats, probabilities: Floats) -> Floats:
    """Labels moved by P(wrong) toward the predictions for the other classes (Eq. 10), [n, C].

    >>> corrected_targets(np.array([0]), np.array([0.5]), np.array([[0.2, 0.6, 0.2]])).round(3).tolist()
    [[0.5, 0.375, 0.125]]
    """
    given = torch.eye(probabilities.shape[1], dtype=torch.float64)[torch.from_numpy(labels)]
    predicted = torch.from_numpy(np.asarray(probabilities, dtype=np.float64))
    known = (predicted * (1 - given)).sum(dim=1) > 0  # who predicts the given class alone names no other one
    doubted = torch.from_numpy(np.asarray(wrong, dtype=np.float64)) * known
    found: Floats = corrected(given, doubted, predicted).numpy()
    return found


def refitted(learner: BaseLearner, labels: Ints, judgement: Judgement, probabilities: Floats) -> Any:
    """A copy that learned all rows, their labels corrected as far as wrong ones were found."""
    wrong = judgement.probability * (judgement.finding == FOUND)
    return learner.taught(np.arange(len(labels)), corrected_targets(labels, wrong, probabilities))


def _repeats(samples: int, asked: int | None) -> int:
    return asked or (REPEATS if samples <= FEW_ROWS else 1)


def _one_round(learner: BaseLearner, labels: Ints, fold: Ints, folds: int, advance: Callable[[], None]) -> Floats:
    """Held-out probabilities by copies that learned the labels as they are, [n, C]."""
    found = np.zeros((len(labels), len(learner.classes)))
    for rows, others in _divided(fold == number for number in range(folds)):
        found[rows] = learner.predicted(learner.fitted(others, labels[others]), rows)
        advance()
    return found


def _two_rounds(learner: BaseLearner, labels: Ints, fold: Ints, folds: int, advance: Callable[[], None]) -> Floats:
    """Held-out probabilities by copies that learned labels which others corrected, [n, C]."""
    out = left_out(folds, whole_lines=True).numpy()
    position, between = (table.numpy() for table in lines_between(folds))
    lines, classes = len(LINES[folds]), len(learner.classes)
    wrong, guessed = np.zeros((len(labels), lines)), np.zeros((len(labels), lines, classes))
    rare = (np.bincount(labels, minlength=classes) < folds)[labels]
    for number, (rows, others) in enumerate(_divided(out[number, fold] for number in range(folds))):
        line = position[(fold[rows] - number) % folds]
        predicted = learner.predicted(learner.fitted(others, labels[others]), rows)
        judgement = judge_predictions(labels[rows], predicted, rough=True)
        wrong[rows, line] = judgement.probability * (judgement.finding == FOUND) * ~rare[rows]
        guessed[rows, line] = predicted
        advance()
    found = np.zeros((len(labels), classes))
    for number, (rows, others) in enumerate(_divided(fold == number for number in range(folds))):
        line = between[number, fold[others]]
        targets = corrected_targets(labels[others], wrong[others, line], guessed[others, line])
        found[rows] = learner.predicted(learner.taught(others, targets), rows)
        advance()
    return found


def _divided(masks: Iterable[NDArray[np.bool_]]) -> list[tuple[Ints, Ints]]:
    """Rows that are judged and rows that are learned."""
    return [(np.flatnonzero(mask), np.flatnonzero(~mask)) for mask in masks]
