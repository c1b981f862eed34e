"""The samples most like one, and its likeliest classes, from what a run kept: features, evidence and the noise."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError
from ..run.directory import RunDirectory
from ..run.evidence import read_features
from ..run.noise import read_noise
from .labels import JudgedLabels

NEAREST = 3
VOTERS = 15
"""Samples most like one whose classes count as likely."""
LIKELIEST = 10
MOST_TRANSITIONS = 1_000
"""Classes up to which the rates of their confusions are read."""


class Nearest:
    """The kept features of a run: who is near whom among samples whose labels look right."""

    def __init__(self, run: RunDirectory, labels: JudgedLabels) -> None:
        self.labels = labels
        self._rows = np.zeros(0, dtype=np.int64)
        self._components = np.zeros((0, 1), dtype=np.float32)
        try:
            kept = read_features(run)
        except Exception:  # these files may come from anywhere, and break any of this
            kept = None
        if kept is not None and _fits(kept.samples, kept.components, len(labels)):
            self._rows, self._components = kept.samples.astype(np.int64), kept.components
        self._place = {row: place for place, row in enumerate(self._rows.tolist())}
        self._right = ~labels.flagged[self._rows]
        self._given = labels.given[self._rows]

    def like(self, row: int, label: int) -> list[int]:
        """Rows of the samples of a class that are most like this one; none if its features were not kept."""
        return self._nearest(row, self._right & (self._given == label), NEAREST)

    def votes(self, row: int) -> NDArray[np.float64]:
        """For each class the share that it has among the samples most like this one."""
        near = self._nearest(row, self._right, VOTERS)
        counts = np.bincount(self.labels.given[near], minlength=len(self.labels.class_names)).astype(np.float64)
        return counts / max(1, len(near))

    def _nearest(self, row: int, among: NDArray[np.bool_], count: int) -> list[int]:
        place = self._place.get(row)
        if place is None:
            return []
        places = np.flatnonzero(among & (self._rows != row))
        away = np.square(self._components[places] - self._components[place]).sum(axis=1)
        return [int(self._rows[each]) for each in places[np.argsort(away, kind="stable")[:count]]]


def _fits(rows: NDArray[np.int64], components: NDArray[np.float32], count: int) -> bool:
    shaped = rows.ndim == 1 and components.ndim == 2 and len(rows) == len(components)
    return shaped and (not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < count))


class Likely:
    """Which classes a sample may have, the likeliest first."""

    def __init__(self, run: RunDirectory, labels: JudgedLabels, nearest: Nearest) -> None:
        self.labels = labels
        self.nearest = nearest
        self._confused = _confusions(run, labels)

    def classes(self, row: int, rival: int | None) -> list[int]:
        """At most ten classes for the number keys: all in their order if there are no more, so that keys stay.

        Of more classes, the rival first, then by the classes of the most similar samples, and by how often a sample
        with this label really is of each class.
        """
        count, given = len(self.labels.class_names), int(self.labels.given[row])
        if count <= LIKELIEST:
            return list(range(count))
        score = self.nearest.votes(row)
        if self._confused is not None:
            score = score + self._confused[given]
        if rival is not None:
            score[rival] += 2
        score[given] = -1
        return [int(label) for label in np.argsort(-score, kind="stable")[:LIKELIEST]]

    def rival(self, row: int, kept: str | None) -> int | None:
        """The class that a label should be if it is wrong, as far as the run tells; `kept` is what evidence names."""
        given, suggested = int(self.labels.given[row]), int(self.labels.suggested[row])
        if suggested != given:
            return suggested
        if kept in self.labels.class_of:
            return self.labels.class_of[kept]
        score = self.nearest.votes(row)
        score[given] = 0
        return int(score.argmax()) if score.any() else None


def _confusions(run: RunDirectory, labels: JudgedLabels) -> NDArray[np.float64] | None:
    """[given, true]: how often a sample with a label really is of each class; None if the run does not tell."""
    count = len(labels.class_names)
    if count > MOST_TRANSITIONS:
        return None
    try:
        transition: Sequence[Sequence[float]] = read_noise(run)["transition"]
        rates = np.asarray(transition, dtype=np.float64)
    except (InputError, OSError, KeyError, TypeError, ValueError, pa.ArrowException):
        return None
    if rates.shape != (count, count) or not np.isfinite(rates).all() or rates.min() < 0:
        return None
    joint = rates.T * np.bincount(labels.given, minlength=count)[None, :]
    found: NDArray[np.float64] = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-12)
    return found
