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
from .unusual import Usual, Words, unusual_values

MOST_COMPARED = 200
"""Suspects whose neighbours are kept whole: those of a report. Of all others it is known which rows they are."""
AT_ONCE = 200
"""Suspects whose features are computed together."""
NEAREST = 3
WIDE = 64
"""Columns from which rows are compared by their direction: in wide spaces, lengths differ by more than meanings do."""
Named = dict[str, Any]


@dataclass(frozen=True)
class Reference:
    """Samples that suspects are compared with: their rows in the data, given classes and features.

    Of tables also their numbers and their words, as `Samples.shown_numbers` and `Samples.shown_words` give them.
    """

    rows: NDArray[np.int64]
    given: NDArray[np.int64]
    features: Tensor
    values: NDArray[np.float32] | None
    words: Words | None = None
    _classes: dict[int, tuple[NDArray[np.int64], Tensor]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, data: Samples, table: LabelTable, rows: NDArray[np.int64], features: Tensor) -> "Reference":
        """Those of these samples whose labels are kept; all of them, if none is."""
        kept = np.flatnonzero(~table.flagged[rows])
        kept = kept if len(kept) else np.arange(len(rows))
        shown = rows[kept].tolist()
        values, words = data.shown_numbers(shown), data.shown_words(shown)
        numbers = None if values is None else values.numpy()
        given = table.given[rows[kept]].astype(np.int64)
        return cls(rows[kept], given, features[torch.from_numpy(kept)], numbers, words)

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

    def usual(self, label: int) -> Usual | None:
        """What is usual in a class; None if it is small, or has neither numbers nor words."""
        if self.values is None:
            return None
        places = np.flatnonzero(self.given == label).tolist()
        return Usual.of(self.values[places], None if self.words is None else [self.words[place] for place in places])


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
    words: Words = data.shown_words(compared) or [()] * len(compared)
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
            both = usual[int(table.given[row])], usual[int(table.rival[row])]
            entry["unusual"] = unusual_values(values[place], *both, words[place])
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
