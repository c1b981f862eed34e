"""Judged labels as a user of scikit-learn or cleanlab takes them: by the labels' own values, in the user's order."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..detect.predictions import Floats, Ints
from ..detect.table import LabelTable
from ..errors import InputError

CLASSES = ("given", "suggested")
FLAG = "is_label_issue"


JUDGED = ("label_issues_", "noise_rate_", "noise_interval_", "transition_", "finding_", "_issues")
"""Attributes of an estimator that tell of its labels."""


class JudgedLabels:
    """What an estimator knows of its labels, by the names that cleanlab's CleanLearning has for it."""

    transition_: Floats | None
    _issues: Any

    def get_label_issues(self) -> Any:
        """What `find_label_issues` gave, or `fit` found."""
        from sklearn.exceptions import NotFittedError

        if not hasattr(self, "_issues"):
            raise NotFittedError("no labels were judged yet, or save_space forgot them; call find_label_issues or fit")
        return self._issues

    def save_space(self) -> None:
        """Forget what was found about the labels, and keep what is needed to predict."""
        for name in JUDGED:
            self.__dict__.pop(name, None)

    @property
    def label_issues_df(self) -> Any:
        """The frame that `get_label_issues` gives, by cleanlab's name."""
        return self.get_label_issues()

    @property
    def label_issues_mask(self) -> NDArray[np.bool_]:
        """Which labels are flagged, by cleanlab's name."""
        return np.asarray(self.get_label_issues()[FLAG])

    @property
    def noise_matrix(self) -> Any:
        """The transpose of `transition_`, as cleanlab has it: its columns sum to 1."""
        return None if self.transition_ is None else self.transition_.T


def label_frame(table: LabelTable, classes: NDArray[Any], index: Any) -> Any:
    """The label table as a DataFrame with the caller's index; without pandas, the table itself."""
    try:
        import pandas
    except ImportError:
        return table
    columns = {name: table[name] for name in table.columns}
    columns |= {name: classes[getattr(table, name)] for name in CLASSES}
    return pandas.DataFrame(columns, index=index)


def issue_frame(table: LabelTable, classes: NDArray[Any]) -> Any:
    """The columns that cleanlab's CleanLearning has, a DataFrame with rows numbered from 0; a dict without pandas.

    `label_quality` is 1 - P(wrong). `predicted_label` is the class that a flagged label should be if it is wrong; of
    other labels, whichever is likelier of that class and the given one.
    """
    wrong = table.noisy_probability
    other = table.flagged | (wrong * table.agreement > 1 - wrong)
    columns = {
        FLAG: table.flagged,
        "label_quality": 1 - wrong,
        "given_label": classes[table.given],
        "predicted_label": classes[np.where(other, table.rival, table.given)],
    }
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def flag_frame(issues: Any, flagged: NDArray[np.bool_]) -> Any:
    """A `label_issues` argument as a frame, which it may be already."""
    if hasattr(issues, "columns"):
        return issues
    try:
        import pandas
    except ImportError:
        return {FLAG: flagged}
    return pandas.DataFrame({FLAG: flagged})


def flagged_rows(issues: Any, labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which samples a `label_issues` argument flags: a frame with `is_label_issue`, a mask, or positions."""
    count = len(labels)
    if hasattr(issues, "columns") or isinstance(issues, dict):
        if FLAG not in issues:
            raise InputError(f"label_issues has no column {FLAG}, which find_label_issues gives it")
        if "given_label" in issues and not np.array_equal(np.asarray(issues["given_label"]), labels):
            raise InputError("label_issues['given_label'] differs from the labels; were the rows sorted or filtered?")
        issues = issues[FLAG]
    found = np.asarray(issues)
    if found.dtype == bool and found.shape == (count,):
        return found
    if found.ndim == 1 and found.dtype.kind in "iu" and (not len(found) or 0 <= found.min() <= found.max() < count):
        mask = np.zeros(count, dtype=bool)
        mask[found] = True
        return mask
    raise InputError(
        f"label_issues must be what find_label_issues gave, a mask of {count:,} truth values, or positions below "
        f"{count:,}, not {found.dtype} of shape {found.shape}"
    )


def sample_count(X: Any) -> int:  # noqa: N803
    """How many samples there are."""
    from sklearn.utils.validation import _num_samples

    if isinstance(X, str | bytes | PathLike):
        raise InputError(f"X is a single {_name(X)}; give the samples themselves, such as a list of texts")
    count: int = _num_samples(X)
    return count


def one_of(name: str, value: Any, alias: str, other: Any) -> Any:
    """The value of an argument that has two names; InputError if both are given."""
    if value is not None and other is not None:
        raise InputError(f"{name} and {alias} are two names of the same argument; give one of them")
    return value if other is None else other


def index_of(X: Any, y: Any) -> Any:  # noqa: N803
    """The index of whichever is a pandas object, the samples first; None if neither is."""
    return next((values.index for values in (X, y) if hasattr(values, "iloc")), None)


def class_labels(y: Any, samples: int | None) -> tuple[NDArray[Any], Ints]:
    """The classes that occur, sorted, and the position of each label among them."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InputError("LabelMendClassifier requires y to be passed, but the target y is None")
    y = y.detach().cpu().numpy() if hasattr(y, "detach") else y
    values = column_or_1d(y, warn=True)
    if samples is not None and len(values) != samples:
        raise InputError(f"X has {samples:,} samples, but there are {len(values):,} labels; give each sample one label")
    _refuse_gaps(values)
    if values.dtype == object and all(isinstance(value, int | float) for value in values):
        values = np.array(values.tolist())
    try:
        check_classification_targets(values)
        classes, labels = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({_name(value) for value in values.tolist()})
        raise InputError(f"labels are of several types, {' and '.join(kinds)}; give all of one, as text: str") from None
    if len(classes) < 2:
        only = f"are of one class, {classes.tolist()[0]!r:.60}" if len(classes) else "are none"
        raise InputError(f"the labels {only}; at least two classes are needed")
    return classes, labels.astype(np.int64)


def _refuse_gaps(values: NDArray[Any]) -> None:
    """Refuse labels that are missing."""
    if values.dtype.kind not in "fO":
        return
    missing = np.array([value is None or _name(value) == "NAType" or value != value for value in values.tolist()])
    if missing.any():
        raise InputError(
            f"{int(missing.sum()):,} labels are missing (NaN or None), the first in row {int(missing.argmax())}; leave "
            "these samples out"
        )


def _name(value: Any) -> str:
    return type(value).__name__
