"""Labels and probabilities in whatever form a user has them, judged: the label table of somebody's own predictions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, refuse_unrepeated
from .judge import judge_predictions
from .predictions import Ints
from .summary import summarised
from .table import LabelTable

Array = NDArray[Any]


def judged_table(
    labels: Any,
    probabilities: Any,
    *,
    class_names: Sequence[Any] | None = None,
    ids: Any = None,
    truth: Any = None,
    name: str = "the data",
) -> LabelTable:
    """The label table of labels [n] and probabilities [n, C], or [passes, n, C] with the earliest pass first.

    `labels` and `truth` are positions in the columns, or class names. Those are in `class_names`, or in the header of a
    DataFrame; else the distinct labels in their order, if there are as many as columns.
    """
    values = as_array("probabilities", probabilities)
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise InputError(
            f"probabilities must be [samples, classes] or [passes, samples, classes], not of shape {values.shape}"
        )
    given = as_array("labels", labels)
    count, classes = values.shape[-2:]
    if given.shape != (count,):
        raise InputError(f"there are probabilities of {count:,} samples, but the labels have the shape {given.shape}")
    names = _header(probabilities, classes) if class_names is None else [str(each) for each in class_names]
    _check_names(names, classes)
    positions, names = class_positions("labels", given, names, classes)
    refuse_unrepeated(name, np.bincount(positions).tolist())
    right = None if truth is None else _truth(truth, given, names)
    if values.ndim == 3:
        from .dynamics import judge_passes

        judgement = judge_passes(positions, values)
    else:
        judgement = judge_predictions(positions, values)
    known = _ids(ids, _common_index(labels, probabilities), count)
    return summarised(LabelTable.of(judgement, positions, ids=known, class_names=names, truth=right), judgement)


def as_array(what: str, values: Any) -> Array:
    """A tensor, Series, DataFrame or list as an array; an array, which may be mapped from a file, as it is."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):  # a tensor, whose bfloat16 numpy does not know
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values
    try:
        return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}") from None


def class_positions(what: str, values: Array, names: list[str] | None, classes: int) -> tuple[Ints, list[str]]:
    """Labels as positions in the classes, and the names of the classes.

    A number is a class name where all names are numbers, so that classes 1..10 are not shifted by one, and else a
    position.
    """
    if values.dtype.kind in "SUO":
        values = _plain(what, values)
    if values.dtype.kind == "f" and np.isfinite(values).all() and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    if values.dtype.kind == "b" and classes == 2:
        values = values.astype(np.int64)
    if values.dtype.kind not in "iuU" or values.ndim != 1:
        raise InputError(f"{what} must be one class name or whole number a sample, not {values.dtype} {values.shape}")
    are_names = values.dtype.kind == "U"
    if not are_names and names is not None:
        are_names = all(name.lstrip("-").isdecimal() for name in names)
    if not are_names and values.min() >= 0 and values.max() < classes:
        return values.astype(np.int64), names or [str(column) for column in range(classes)]
    distinct, inverse = np.unique(values, return_inverse=True)
    if names is None and len(distinct) == classes:
        return inverse.astype(np.int64), [str(value) for value in distinct.tolist()]
    if names is None:
        raise InputError(
            f"{what} have {len(distinct):,} distinct values, and probabilities {classes:,} columns; name the class of "
            f"each column, or give whole numbers from 0 to {classes - 1}"
        )
    known = {name: position for position, name in enumerate(names)}
    texts = [str(value) for value in distinct.tolist()]
    found = np.array([known.get(text, -1) for text in texts] if are_names else np.full(len(texts), -1))
    if (found < 0).any():
        raise InputError(f"{what} have {texts[int(found.argmin())]!r:.60}, which is none of the {classes:,} classes")
    return found[inverse].astype(np.int64), names


def _plain(what: str, values: Array) -> Array:
    """Objects and bytes as whole numbers where they are such, else as text; gaps are refused."""
    found = values.tolist()
    for row, value in enumerate(found):
        if value is None or value != value:
            raise InputError(f"{what} have none in row {row}; give every sample one, or leave the sample out")
    if values.dtype.kind != "U" and all(isinstance(value, int | float) for value in found):
        return np.asarray(found)
    return np.array([value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in found])


def _header(probabilities: Any, classes: int) -> list[str] | None:
    """The class names of a DataFrame's columns; the numbers that pandas gives by itself are none."""
    columns = list(getattr(probabilities, "columns", ()))
    return None if columns in ([], list(range(classes))) else [str(column) for column in columns]


def _check_names(names: list[str] | None, classes: int) -> None:
    if names is not None and len(names) != classes:
        raise InputError(f"there are {len(names):,} class names for {classes:,} columns of probabilities")
    if names is not None and len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the class name {twice!r:.60} occurs more than once")


def _truth(truth: Any, given: Array, names: list[str]) -> Ints:
    values = as_array("truth", truth)
    if values.shape != given.shape:
        raise InputError(f"there are {len(given):,} labels, but the truth has the shape {values.shape}")
    if values.dtype.kind == "b" and given.dtype.kind != "b":
        raise InputError("truth must be the right labels, not which of them are wrong")
    return class_positions("truth", values, names, len(names))[0]


def _common_index(labels: Any, probabilities: Any) -> Any:
    """The index of pandas objects; two that differ are refused, since rows would be paired that do not belong."""
    found = [values.index for values in (labels, probabilities) if hasattr(values, "iloc")]
    if len(found) == 2 and not found[0].equals(found[1]):
        raise InputError("labels and probabilities have different indexes; align them, or give arrays: .to_numpy()")
    return found[0] if found else None


def _ids(ids: Any, index: Any, count: int) -> list[str]:
    known = as_array("ids", range(count) if ids is None and index is None else index if ids is None else ids)
    if known.shape != (count,):
        raise InputError(f"there are {count:,} samples, but ids have the shape {known.shape}")
    return [str(id) for id in known.tolist()]
