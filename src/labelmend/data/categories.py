"""Categories as columns of a matrix: the frequent values one each, the others together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .cells import Cells
from .column_encoders import ColumnEncoder, Matrix

MOST_ONE_HOT = 50
MOST_STORED = 10_000
RARE = 1_000
"""A value of a category has a column of its own if one row in so many has it, and at least two."""


@dataclass(frozen=True)
class Categories(ColumnEncoder):
    """A column for each of the `kept` most frequent values, one for all others, and one for gaps.

    Of columns with more values than have columns, how frequent a value is makes a further column. Values are stored by
    their frequency; those that the training rows do not have belong to the others.
    """

    values: Sequence[str]
    counts: Sequence[int]
    kept: int
    others: bool
    gaps: bool
    rows: int
    complete: bool = True

    @classmethod
    def fit(cls, cells: Cells, *, most: int = MOST_ONE_HOT) -> "Categories":
        """Categories like these, with at most so many columns of values."""
        distinct = cells.distinct
        order = np.lexsort((np.asarray(pc.rank(distinct.texts)), -distinct.counts))
        counts = distinct.counts[order]
        fewest = max(2, len(cells) // RARE)
        kept = int(min(most, (counts >= fewest).sum()))
        stored = order[:MOST_STORED]
        return cls(
            distinct.texts.take(pa.array(stored)).to_pylist(),
            counts[: len(stored)].tolist(),
            kept,
            len(order) > kept,
            bool((distinct.codes < 0).any()),
            len(cells),
            len(order) <= MOST_STORED,
        )

    @property
    def columns(self) -> list[str]:
        names = [f" = {value:.60}" for value in self.values[: self.kept]]
        names += [" is another value"] if self.others else []
        names += [" is missing"] if self.gaps else []
        return names + ([" (how frequent)"] if self._has_frequency else [])

    @property
    def _has_frequency(self) -> bool:
        return self.others and len(self.values) > MOST_ONE_HOT

    def encode(self, cells: Cells, out: Matrix) -> str:
        distinct = cells.distinct
        found = pc.index_in(distinct.texts, value_set=pa.array(self.values, pa.string())).fill_null(-1)
        known = np.asarray(found, dtype=np.int64)
        rest = self.kept if self.others else -1
        column = np.where((known >= 0) & (known < self.kept), known, rest)
        column = np.append(column, self.kept + self.others if self.gaps else -1)[distinct.codes]
        out[:] = 0
        rows = np.flatnonzero(column >= 0)
        out[rows, column[rows]] = 1
        if self._has_frequency:
            times = np.append(np.asarray(self.counts, dtype=np.float64), 1.0)[known]
            shares = np.log(np.append(times, 1.0) / self.rows)
            out[:, -1] = shares[distinct.codes]
        return self._new(distinct.texts.filter(pa.array(known < 0)))

    def _new(self, texts: pa.Array) -> str:
        if not self.complete or not len(texts):
            return ""
        shown = ", ".join(repr(text[:40]) for text in texts.slice(0, 3).to_pylist())
        one = len(texts) == 1
        return f"{len(texts):,} new value{'' if one else 's'} that count{'s' if one else ''} as unknown: {shown}"
