"""The library as a scikit-learn classifier: fit it on labels that may be wrong, and see which of them are."""

# ruff: noqa: N803, N806  # X is scikit-learn's name of the samples

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..detect.judge import Judgement
from ..detect.predictions import Floats, Ints
from ..detect.summary import MOST_PAIRED, transition
from ..detect.table import LabelTable
from ..errors import InputError
from .cross_fit import MOST_SEED, BaseLearner, check_base, held_out, judged, refitted
from .label_issues import (
    JudgedLabels,
    class_labels,
    flag_frame,
    flagged_rows,
    index_of,
    issue_frame,
    label_frame,
    one_of,
    sample_count,
)
from .own_learner import FRAME, ROWS, check_finite, fit_own, kind_of, own_config

SHAPE = ("n_features_in_", "feature_names_in_")
ALIASES = (("base_estimator", "clf"), ("cv", "cv_n_folds"), ("random_state", "seed"))


class LabelMendClassifier(JudgedLabels, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for labels that may be wrong, and a judge of each of them.

    Without `base_estimator`, labelmend's own learner is trained as `labelmend.train` does it: on numbers (arrays or
    sparse matrices), DataFrames with columns of any type, texts, or images [n, height, width] or [n, height, width,
    channels]. For rows it is a linear classifier, an MLP or boosted trees, whichever predicts held-out labels best.
    `net`, `epochs`, `time` and the dictionary `options` are options of `labelmend.train`.

    With `base_estimator`, any scikit-learn classifier that has `predict_proba`, copies of it are cross-fitted in `cv`
    folds (7), each label is judged by copies that did not learn it, and one more copy learns the corrected labels. With
    3, 7 or 13 folds there are two rounds, of which the second learns corrected labels too. `repeats` is how often the
    folds are drawn: by default 4 times for up to 1,000 samples, and else once.

    `clf`, `cv_n_folds` and `seed` are cleanlab's names of `base_estimator`, `cv` and `random_state`. `verbose=1` shows
    progress. Nothing is written to disk.

    After `fit`, `label_issues_` is the label table, `noise_rate_` and `noise_interval_` the estimated share of wrong
    labels, `transition_` [C, C] P(labelled j | should be i), `finding_` what can be said at all, and `estimator_` the
    fitted copy of `base_estimator`.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> x, y = load_iris(return_X_y=True)
    >>> y[[3, 70, 130]] = 1, 0, 0
    >>> found = LabelMendClassifier(LogisticRegression(max_iter=300), repeats=1, random_state=0).fit(x, y)
    >>> sorted(found.label_issues_.sort_values("rank").index[:3])
    [3, 70, 130]
    """

    def __init__(
        self,
        base_estimator: Any = None,
        *,
        cv: int | None = None,
        repeats: int | None = None,
        net: str | None = None,
        epochs: int | None = None,
        time: str | None = None,
        options: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
        clf: Any = None,
        cv_n_folds: int | None = None,
        seed: Any = None,
    ) -> None:
        self.base_estimator = base_estimator
        self.cv = cv
        self.repeats = repeats
        self.net = net
        self.epochs = epochs
        self.time = time
        self.options = options
        self.random_state = random_state
        self.verbose = verbose
        self.clf = clf
        self.cv_n_folds = cv_n_folds
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        labels: Any = None,
        label_issues: Any = None,
        pred_probs: Any = None,
        **more: Any,
    ) -> Self:
        """Judge the labels, and learn X with the labels corrected; gives the estimator itself.

        `labels` is another name of `y`. `label_issues`, as `find_label_issues` gives them, a mask or positions, are
        samples to leave out: then no label is judged or corrected. `pred_probs` [n, C] are held-out probabilities of
        your own to judge the labels by, in the order of the sorted classes. More arguments, such as `sample_weight`,
        are for the `base_estimator`.
        """
        self._check_names()
        y = one_of("y", y, "labels", labels)
        classes, given = class_labels(y, sample_count(X))
        if label_issues is not None:
            return self._fit_rest(X, classes, given, label_issues, more)
        rng = self._rng()
        if self._base is None:
            _refuse("labelmend's own learner", more if pred_probs is None else {"pred_probs": pred_probs})
            judgement = self._fit_own(X, given, rng)
        else:
            learner = self._learner(X, classes, rng, more)
            probabilities = self._held_out(learner, given, rng, pred_probs)
            judgement = judged(given, probabilities)
            self._take(refitted(learner, given, judgement, probabilities))
        self._remember(judgement, classes, given, index_of(X, y))
        self.classes_ = classes
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, [n, C], in the order of `classes_`."""
        check_is_fitted(self)
        if hasattr(self, "estimator_"):
            found: Floats = self.estimator_.predict_proba(X)
            return found
        own: Floats = self.model_.predict_proba(self._taken(X, reset=False))
        return own

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sample."""
        check_is_fitted(self)
        if hasattr(self, "estimator_"):
            found: NDArray[Any] = self.estimator_.predict(X)
            return found
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    @available_if(lambda self: self._base is None or hasattr(self._base, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, [n], or logarithms of the probabilities of all classes, [n, C]."""
        check_is_fitted(self)
        if hasattr(self, "estimator_"):
            found: Floats = self.estimator_.decision_function(X)
            return found
        logs: Floats = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def find_label_issues(
        self, X: Any = None, labels: Any = None, *, y: Any = None, pred_probs: Any = None, save_space: bool = False
    ) -> Any:
        """Judge the labels, and give a frame with `is_label_issue, label_quality, given_label, predicted_label`.

        Its rows are numbered from 0, in the order of the data. Copies of a `base_estimator` are cross-fitted, and none
        is fitted to all samples; labelmend's own learner judges while it learns, so that the estimator is fitted
        afterwards. `pred_probs` are held-out probabilities of your own, for which X is not needed. With `save_space`
        nothing is remembered.
        """
        self._check_names()
        y = one_of("labels", labels, "y", y)
        if X is None and pred_probs is None:
            raise InputError("find_label_issues needs X, or pred_probs: held-out probabilities of your own")
        if self._base is None and pred_probs is None:
            self.fit(X, y)
        else:
            classes, given = class_labels(y, None if X is None else sample_count(X))
            rng = self._rng()
            learner = self._learner(X, classes, rng, {}) if pred_probs is None else None
            judgement = judged(given, self._held_out(learner, given, rng, pred_probs))
            self._remember(judgement, classes, given, index_of(X, y))
        issues = self.get_label_issues()
        if save_space:
            self.save_space()
        return issues

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._base is None:
            tags.input_tags.sparse = tags.input_tags.string = tags.input_tags.three_d_array = True
        else:
            tags.input_tags = get_tags(self._base).input_tags
        return tags

    @property
    def _base(self) -> Any:
        """The classifier to cross-fit, by either name; None is labelmend's own learner."""
        return self.base_estimator if self.clf is None else self.clf

    def _check_names(self) -> None:
        for name, alias in ALIASES:
            one_of(name, getattr(self, name), alias, getattr(self, alias))

    def _rng(self) -> np.random.RandomState:
        rng: np.random.RandomState = check_random_state(self.random_state if self.seed is None else self.seed)
        return rng

    def _learner(self, X: Any, classes: NDArray[Any], rng: np.random.RandomState, more: dict[str, Any]) -> BaseLearner:
        """The base estimator with what it learns from."""
        check_base(self._base, more)
        seeded = self.random_state is not None or self.seed is not None
        return BaseLearner.of(self._base, X, classes, rng if seeded else None, more)

    def _held_out(
        self, learner: BaseLearner | None, given: Ints, rng: np.random.RandomState, pred_probs: Any
    ) -> Floats:
        """Held-out probabilities [n, C]: the user's own, or those of cross-fitting."""
        folds = self.cv if self.cv_n_folds is None else self.cv_n_folds
        return held_out(
            learner, given, folds=folds, repeats=self.repeats, rng=rng, own=pred_probs, verbose=bool(self.verbose)
        )

    def _take(self, fitted: Any) -> None:
        """Predict by this copy of the base estimator from now on."""
        self._forget_model()
        self.estimator_ = fitted
        for name in SHAPE:
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _fit_own(self, X: Any, given: Ints, rng: np.random.RandomState) -> Judgement:
        """Train labelmend's own learner, and give its judgement of the labels."""
        self._forget_model()
        chosen = {"net": self.net, "epochs": self.epochs, "time": self.time, "seed": int(rng.randint(MOST_SEED))}
        config = own_config(self.options or {}, **chosen)
        judgement, self.model_ = fit_own(self._taken(X, reset=True), given, config, verbose=bool(self.verbose))
        return judgement

    def _fit_rest(self, X: Any, classes: NDArray[Any], given: Ints, label_issues: Any, more: dict[str, Any]) -> Self:
        """Learn all samples but those that are flagged, with their labels as they are."""
        flagged = flagged_rows(label_issues, classes[given])
        rows, rng = np.flatnonzero(~flagged), self._rng()
        known, rest = class_labels(classes[given[rows]], None)
        if self._base is None:
            _refuse("labelmend's own learner", more)
            self._fit_own(_safe_indexing(indexable(X)[0], rows), rest, rng)
        else:
            self._take(self._learner(X, classes, rng, more).fitted(rows, given[rows]))
        self.classes_ = known
        if len(getattr(self, "label_issues_", ())) != len(given):
            self.save_space()
            self.label_issues_, self.noise_rate_ = flag_frame(label_issues, flagged), float(flagged.mean())
        self._issues = flag_frame(label_issues, flagged)
        return self

    def _forget_model(self) -> None:
        for name in ("estimator_", "model_", "_kind", *SHAPE):
            self.__dict__.pop(name, None)

    def _remember(self, judgement: Judgement, classes: NDArray[Any], given: Ints, index: Any) -> None:
        """Keep what was found, by the labels' own values."""
        ids = [str(id) for id in (range(len(given)) if index is None else index)]
        table = LabelTable.of(judgement, given, ids=ids, class_names=[str(name) for name in classes.tolist()])
        self._issues = issue_frame(table, classes)
        self.label_issues_ = label_frame(table, classes, index)
        self.noise_rate_, self.noise_interval_ = judgement.rate, judgement.interval
        self.transition_ = judgement.transition
        if self.transition_ is None and len(classes) <= MOST_PAIRED:
            self.transition_ = transition(table)
        self.finding_ = judgement.finding

    def _taken(self, X: Any, *, reset: bool) -> Any:
        """X as labelmend's own learner takes it, checked as scikit-learn checks it."""
        kind = kind_of(X)
        if reset:
            self._kind = kind
        if self._kind == ROWS:
            X = validate_data(self, X, reset=reset, accept_sparse="csr", ensure_all_finite=False)
            check_finite(X)
        elif self._kind == FRAME:
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif kind != self._kind:
            raise InputError(f"X is {kind}, but the classifier was fitted on {self._kind}")
        return np.array(X) if isinstance(X, np.ndarray) and not X.flags.writeable else X


def _refuse(who: str, arguments: dict[str, Any]) -> None:
    for name in [name for name, value in arguments.items() if value is not None]:
        raise InputError(f"{who} takes no {name}; leave it out, or give a base_estimator that takes it")
