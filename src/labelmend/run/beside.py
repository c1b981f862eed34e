"""What stands beside a suspect: the samples most like it in two classes, what is unusual about it, and its loud words.

The two classes are the given one and its rival, the class that it should be if it is wrong. Suspects are compared with
samples whose labels are kept: what looks wrong itself is no example of its class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data import Samples
from ..data.kinds.encoded import Encoded
from ..data.kinds.text import SHOWN, Texts
from ..data.words import loudest_words
from ..detect.table import LabelTable
from .model import Model

MOST_COMPARED = 200
"""Suspects whose neighbours are kept whole: those of a report. Of all others it is known which rows they are."""
AT_ONCE = 200
"""Suspects whose features are computed together."""
NEAREST = 3
WIDE = 64
"""Columns from which rows are compared by their direction: in wide spaces, lengths differ by more than meanings do."""
MOST_UNUSUAL = 4
FEWEST = 5
"""Samples that a class must have to tell what is usual in it."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
QUARTILES_APART = 1.349
"""Standard deviations between the quartiles of a normal distribution."""
Named = dict[str, Any]


@dataclass(frozen=True)
class Reference:
    """Samples that suspects are compared with: their rows in the data, given classes, features and, of rows, values."""

    rows: NDArray[np.int64]
    given: NDArray[np.int64]
    features: Tensor
    values: NDArray[np.float32] | None
    _classes: dict[int, tuple[NDArray[np.int64], Tensor]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, data: Samples, table: LabelTable, rows: NDArray[np.int64], features: Tensor) -> "Reference":
        """Those of these samples whose labels are kept; all of them, if none is."""
        kept = np.flatnonzero(~table.flagged[rows])
        kept = kept if len(kept) else np.arange(len(rows))
        values = data.shown_numbers(rows[kept].tolist())
        given = table.given[rows[kept]].astype(np.int64)
        return cls(rows[kept], given, features[torch.from_numpy(kept)], None if values is None else values.numpy())

    def nearest(self, features: Tensor, row: int, label: int) -> list[int]:
        """Rows of the samples of a class that are most like this one, which is not among them."""
        rows, others = self._of_class(label)
        if others.shape[1] >= WIDE:
            features = torch.nn.functional.normalize(features, dim=-1)
        away = (others - features).square().sum(dim=1)
        away[torch.from_numpy(rows == row)] = torch.inf
        order = away.argsort(stable=True)[:NEAREST].tolist()
        return [int(rows[place]) for place in order if rows[place] != row]

    def _of_class(self, label: int) -> tuple[NDArray[np.int64], Tensor]:
        """Rows and features of a class; wide features have the length one."""
        if label not in self._classes:
            places = np.flatnonzero(self.given == label)
            others = self.features[torch.from_numpy(places)]
            wide = others.shape[1] >= WIDE
            self._classes[label] = self.rows[places], torch.nn.functional.normalize(others, dim=-1) if wide else others
        return self._classes[label]

    def usual(self, label: int) -> NDArray[np.float64] | None:
        """Quantiles of each value in a class, [5, columns], NaN where too few have one; None if the class is small."""
        if self.values is None or (self.given == label).sum() < FEWEST:
            return None
        own = self.values[self.given == label].astype(np.float64)
        few = np.isfinite(own).sum(axis=0) < FEWEST
        own = np.where(np.isfinite(own), own, np.nan)
        own[:, few] = 0.0
        found: NDArray[np.float64] = np.nanquantile(own, QUANTILES, axis=0)
        found[:, few] = np.nan
        return found


def unusual_values(
    values: NDArray[np.float32], given: NDArray[np.float64] | None, rival: NDArray[np.float64] | None
) -> list[Named]:
    """The values outside the middle 80 % of the given class, those first that its rival explains best.

    Each has its column, and the middle 80 % of both classes. What is compared are distances from the median of a class,
    in standard deviations by its quartiles. None, of a class with too few samples, gives nothing.
    """
    if given is None or rival is None:
        return []
    gain = _distance(values, given) - _distance(values, rival)
    order = np.argsort(-gain, kind="stable")[:MOST_UNUSUAL]
    return [
        {
            "column": int(column),
            "value": float(values[column]),
            "given": [float(given[0, column]), float(given[-1, column])],
            "rival": [float(rival[0, column]), float(rival[-1, column])],
        }
        for column in order
        if gain[column] > 0 and not given[0, column] <= values[column] <= given[-1, column]
    ]


def _distance(values: NDArray[np.float32], usual: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far values are from the middle of a class; one that never varies there has the width of its own size."""
    _, low, middle, high, _ = usual
    width = (high - low) / QUARTILES_APART
    width = np.where(width > 0, width, np.maximum((usual[-1] - usual[0]) / 2, 1e-3 + 0.1 * np.abs(middle)))
    distance = np.abs(values - middle) / width
    return np.where(np.isfinite(distance), distance, 0.0)


def beside(
    data: Samples, table: LabelTable, model: Model, suspects: Sequence[int], reference: Reference
) -> tuple[list[Named], list[int]]:
    """For each suspect what stands beside it, and the rows of the samples beside the first ones, without repetition.

    `near_given` and `near_rival` are rows of the data set, `like_given` and `like_rival` places among those samples.
    """
    compared = list(suspects)
    parts = [compared[begin : begin + AT_ONCE] for begin in range(0, len(compared), AT_ONCE)]
    features = torch.cat(
        [torch.zeros(0, reference.features.shape[1])] + [model.features(data.loaded(p)) for p in parts]
    )
    numbers = data.shown_numbers(compared)
    values = np.zeros((len(compared), 0), np.float32) if numbers is None else numbers.numpy()
    classes = {int(label) for each in (table.given, table.rival) for label in each[compared]}
    usual = {label: reference.usual(label) for label in sorted(classes)}
    found, named = [], dict[int, int]()
    for place, row in enumerate(compared):
        entry: Named = {"rival": table.class_names[int(table.rival[row])]}
        for key, label in (("given", int(table.given[row])), ("rival", int(table.rival[row]))):
            near = reference.nearest(features[place], row, label)
            entry[f"near_{key}"] = near
            if place < MOST_COMPARED:
                entry[f"like_{key}"] = [named.setdefault(other, len(named)) for other in near]
        if reference.values is not None:
            entry["unusual"] = unusual_values(values[place], usual[int(table.given[row])], usual[int(table.rival[row])])
        found.append(entry)
    return found, list(named)


def marked_words(data: Samples, table: LabelTable, model: Model, suspects: Sequence[int]) -> list[list[int]] | None:
    """Begin and end of the words of each suspect that speak most against its given label and for its rival, in a list.

    None if the samples are no texts, or the model is not linear in their words.
    """
    encoder = data.kind.fitted if isinstance(data.kind, Encoded) else None
    weights = None if encoder is None else model.linear_weights()
    if encoder is None or weights is None or not isinstance(data.originals, Texts):
        return None
    found = []
    for row in suspects:
        direction = weights[int(table.rival[row])] - weights[int(table.given[row])]
        spans = loudest_words(encoder, data.originals[row], direction.numpy(), within=SHOWN)
        found.append([place for span in spans for place in span])
    return found
