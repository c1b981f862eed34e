"""What is unusual about a row of a table for its given class and usual for its rival: numbers and words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_UNUSUAL = 4
FEWEST = 5
"""Samples that a class must have to tell what is usual in it."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
QUARTILES_APART = 1.349
"""Standard deviations between the quartiles of a normal distribution."""
RARE = 0.1
"""Share of a class under which a word is unusual in it."""
Words = Sequence[Sequence[str | None]]


@dataclass(frozen=True)
class Usual:
    """What is usual in a class of `size` samples.

    `quantiles` of each column's numbers, [5, columns], are NaN where too few have one; `counts` say how often each word
    occurs in each column.
    """

    size: int
    quantiles: NDArray[np.float64]
    counts: Sequence[Counter[str]]

    @classmethod
    def of(cls, values: NDArray[np.float32], words: Words | None = None) -> "Usual | None":
        """From the values [n, columns] of a class, NaN where there is none, and the words; None of a small class."""
        if len(values) < FEWEST:
            return None
        own = values.astype(np.float64)
        few = np.isfinite(own).sum(axis=0) < FEWEST
        own = np.where(np.isfinite(own), own, np.nan)
        own[:, few] = 0.0
        quantiles: NDArray[np.float64] = np.nanquantile(own, QUANTILES, axis=0)
        quantiles[:, few] = np.nan
        columns = zip(*words, strict=True) if words else ()
        return cls(len(values), quantiles, [Counter(word for word in column if word is not None) for column in columns])

    def share(self, column: int, word: str) -> float:
        """How much of the class has this word in a column."""
        return self.counts[column][word] / self.size

    def log_share(self, column: int, word: str) -> float:
        """The logarithm of that share, where what was never seen counts as half a sample."""
        return float(np.log((self.counts[column][word] + 0.5) / (self.size + 1)))


def unusual_values(
    values: NDArray[np.float32], given: Usual | None, rival: Usual | None, words: Sequence[str | None] = ()
) -> list[dict[str, Any]]:
    """What the given class of a sample does not explain, that first which its rival explains best.

    A number counts if it is outside the middle 80 % of the given class: its entry has `column`, `value` and the middle
    80 % of both classes, `given` and `rival`. What is compared are distances from the median of a class, in standard
    deviations by its quartiles. A word counts if less than a tenth of the given class has it: its entry has `column`,
    `word` and the shares of both classes that have it, and what is compared are their logarithms. None, of a class with
    too few samples, gives nothing.
    """
    if given is None or rival is None:
        return []
    gain = _distance(values, given.quantiles) - _distance(values, rival.quantiles)
    outside = ~((given.quantiles[0] <= values) & (values <= given.quantiles[-1]))
    found: list[tuple[float, dict[str, Any]]] = [
        (float(gain[column]), _number(int(column), values, given, rival))
        for column in np.flatnonzero((gain > 0) & outside)
    ]
    for column, word in enumerate(words):
        if word is None or given.share(column, word) >= RARE:
            continue
        shares = [each.share(column, word) for each in (given, rival)]
        better = rival.log_share(column, word) - given.log_share(column, word)
        if shares[1] > shares[0]:
            found.append((better, {"column": column, "word": word, "given": [shares[0]], "rival": [shares[1]]}))
    return [entry for _, entry in sorted(found, key=lambda pair: -pair[0])[:MOST_UNUSUAL]]


def _number(column: int, values: NDArray[np.float32], given: Usual, rival: Usual) -> dict[str, Any]:
    ranges = [[float(each.quantiles[0, column]), float(each.quantiles[-1, column])] for each in (given, rival)]
    return {"column": column, "value": float(values[column]), "given": ranges[0], "rival": ranges[1]}


def _distance(values: NDArray[np.float32], usual: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far values are from the middle of a class; one that never varies there has the width of its own size."""
    _, low, middle, high, _ = usual
    width = (high - low) / QUARTILES_APART
    width = np.where(width > 0, width, np.maximum((usual[-1] - usual[0]) / 2, 1e-3 + 0.1 * np.abs(middle)))
    distance = np.abs(values - middle) / width
    return np.where(np.isfinite(distance), distance, 0.0)
