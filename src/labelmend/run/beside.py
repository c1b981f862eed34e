"""What stands beside a suspect: the samples most like it in two classes, what is unusual about it, and its loud words.

The two classes are the given one and its rival, the class that it should be if it is wrong. Suspects are compared with
samples whose labels are kept: what looks wrong itself is no example of its class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
"""Suspects that others are put beside: those of a report."""
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
        places = np.flatnonzero((self.given == label) & (self.rows != row))
        if not len(places):
            return []
        others = self.features[torch.from_numpy(places)]
        if others.shape[1] >= WIDE:
            others, features = (torch.nn.functional.normalize(each, dim=-1) for each in (others, features))
        order = (others - features).square().sum(dim=1).argsort(stable=True)[:NEAREST]
        return [int(self.rows[place]) for place in places[order.numpy()]]

    def usual(self, label: int) -> Usual | None:
        """What is usual in a class; None if it is small, or has neither numbers nor words."""
        if self.values is None:
            return None
        places = np.flatnonzero(self.given == label).tolist()
        return Usual.of(self.values[places], None if self.words is None else [self.words[place] for place in places])


def beside(
    data: Samples, table: LabelTable, model: Model, suspects: Sequence[int], reference: Reference
) -> tuple[list[Named], list[int]]:
    """For each suspect what stands beside it, and the rows of all samples that are named there, without repetition."""
    compared = list(suspects[:MOST_COMPARED])
    features = model.features(data.loaded(compared)) if compared else torch.zeros(0, 1)
    numbers = data.shown_numbers(compared)
    values = np.zeros((len(compared), 0), np.float32) if numbers is None else numbers.numpy()
    words: Words = data.shown_words(compared) or [()] * len(compared)
    classes = {int(label) for each in (table.given, table.rival) for label in each[compared]}
    usual = {label: reference.usual(label) for label in sorted(classes)}
    found, named = [], dict[int, int]()
    for place, row in enumerate(compared):
        entry: Named = {"rival": table.class_names[int(table.rival[row])]}
        for key, label in (("like_given", int(table.given[row])), ("like_rival", int(table.rival[row]))):
            near = reference.nearest(features[place], row, label)
            entry[key] = [named.setdefault(other, len(named)) for other in near]
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
