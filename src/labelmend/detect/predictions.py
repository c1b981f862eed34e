"""What a network predicts for every sample: the likeliest classes of each, read in blocks from whatever holds them."""

import mmap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

MOST_WHOLE = 32
"""Classes up to which all are kept of every sample."""
KEPT = 17
"""Classes kept of a sample where there are more: the likeliest ones, with the given one among them."""
BLOCK = 1 << 23
"""Probabilities read at once."""
LEAST = 1e-6
"""The least probability that is told from zero."""


@dataclass(frozen=True)
class Predictions:
    """Log-probabilities of some classes of each sample, [n, k], the given one in column `given`.

    `classes` are the classes of the columns, [n, k]: all of them, or those that are likeliest for the sample.
    """

    labels: Ints
    classes: Ints
    log_probs: Floats
    given: Ints
    class_count: int

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Any) -> "Predictions":
        """Some of the samples."""
        return replace(
            self,
            labels=self.labels[rows],
            classes=self.classes[rows],
            log_probs=self.log_probs[rows],
            given=self.given[rows],
        )

    def scaled(self, factor: float) -> "Predictions":
        """The same at another temperature."""
        return replace(self, log_probs=self.log_probs * np.float32(factor))

    def of_given(self, values: Floats) -> Floats:
        """The column of the given class, of values [n, k]."""
        return np.take_along_axis(values, self.given[:, None], 1)[:, 0]

    def predicted(self) -> Ints:
        """The most probable class of each sample."""
        return np.take_along_axis(self.classes, self.log_probs.argmax(1)[:, None], 1)[:, 0]


def read_predictions(labels: ArrayLike, probabilities: Any) -> Predictions:
    """Labels [n] and probabilities [n, C], checked and normalised; a memory map is read without keeping its pages."""
    given, values = checked(labels, probabilities)
    count, class_count = values.shape
    kept, rows = class_count if class_count <= MOST_WHOLE else KEPT, max(1, BLOCK // class_count)
    classes = np.empty((count, kept), np.int32)
    log_probs = np.empty((count, kept), np.float32)
    for start in range(0, count, rows):
        part = slice(start, start + rows)
        block = np.asarray(values[part], np.float32)
        total = block.sum(axis=1, keepdims=True)
        _refuse_unusable(block, total, start)
        best = _likeliest(block, given[part], kept)
        classes[part] = best
        log_probs[part] = np.log(np.clip(np.take_along_axis(block, best, 1) / total, LEAST, None))
        if isinstance(values, np.memmap) and (pages := getattr(values, "_mmap", None)) is not None:
            pages.madvise(mmap.MADV_DONTNEED)  # what was read would count as memory in use
    return Predictions(given, classes, log_probs, (classes == given[:, None]).argmax(1), class_count)


def as_array(values: Any, what: str) -> Any:
    """Anything with a shape as it is, and lists as an array."""
    try:
        return values if hasattr(values, "shape") else np.asarray(values)
    except ValueError:
        raise InputError(f"{what} must be an array whose rows are equally long") from None


def softmax(values: Floats) -> Floats:
    """Probabilities of scores [n, k]."""
    exponentials: Floats = np.exp(values - values.max(axis=1, keepdims=True))
    exponentials /= exponentials.sum(axis=1, keepdims=True)
    return exponentials


def calibration_factor(predictions: Predictions) -> float:
    """The factor on log-probabilities that fits the given labels best (temperature scaling), by Newton's method."""
    factor, logs = 1.0, predictions.log_probs.astype(np.float64)
    own = predictions.of_given(logs)
    for _ in range(50):
        probabilities = softmax(factor * logs)
        mean = (probabilities * logs).sum(axis=1)
        curvature = ((probabilities * logs * logs).sum(axis=1) - mean * mean).sum()
        step = float((own - mean).sum() / (curvature + 1e-9))
        before, factor = factor, float(np.clip(factor + np.clip(step, -0.5 * factor, factor), 0.05, 50.0))
        if abs(factor - before) < 1e-4 * factor:
            break
    return factor


def checked(labels: ArrayLike, probabilities: Any) -> tuple[Ints, Any]:
    """Labels [n] and probabilities [n, C] whose shapes and types fit together."""
    given, values = as_array(labels, "labels"), as_array(probabilities, "probabilities")
    if values.ndim != 2 or given.ndim != 1 or len(values) != len(given):
        raise InputError(
            f"probabilities must be [samples, classes] for {len(np.atleast_1d(given)):,} labels, not of shape "
            f"{tuple(values.shape)}"
        )
    if len(given) == 0 or values.shape[1] < 2:
        raise InputError(f"at least one sample and two classes are needed, not {len(given)} and {values.shape[1]}")
    if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= values.shape[1]:
        raise InputError(f"labels must be whole numbers from 0 to {values.shape[1] - 1}, the columns of probabilities")
    if values.dtype.kind not in "fiub":
        raise InputError(f"probabilities must be numbers, not {values.dtype}")
    return given.astype(np.int64), values


def _refuse_unusable(block: Floats, total: Floats, start: int) -> None:
    usable = np.isfinite(total[:, 0]) & (block >= 0).all(axis=1) & (total[:, 0] > 0)
    if not usable.all():
        raise InputError(
            f"the probabilities of sample {start + int(usable.argmin())} are negative, not finite or all zero"
        )


def _likeliest(block: Floats, labels: Ints, kept: int) -> Ints:
    """The classes to keep of every row; the given one is always among them."""
    classes = block.shape[1]
    if kept == classes:
        return np.broadcast_to(np.arange(classes), block.shape)
    rows = np.arange(len(block))
    own = block[rows, labels].copy()
    block[rows, labels] = np.inf
    best = np.argpartition(block, classes - kept, axis=1)[:, classes - kept :]
    block[rows, labels] = own
    return best
