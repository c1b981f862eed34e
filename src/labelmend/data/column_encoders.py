"""Columns of a table as columns of one matrix: what is learned from the training rows is kept as plain values.

Each encoder is fitted to the cells of one column, writes float32 columns, and can be stored as JSON. Numbers come near
to zero mean and unit spread, with far outliers drawn in; gaps are filled and marked in a column of their own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .cells import Cells
from .columns import TOLERATED
from .text import TextEncoder

Matrix = NDArray[np.float32]
FAR = 4.0
"""Spreads from the median beyond which numbers grow by their logarithm only."""
NORMAL_QUARTILES = 1.349
"""Distance of the quartiles of a normal distribution of unit spread."""
PARTS = ("year", "month", "weekday", "days", "hour")


class UnfitColumnError(ValueError):
    """The cells are of another type than those that the encoder was fitted to; the message says what they are."""


@dataclass(frozen=True)
class ColumnEncoder(ABC):
    """Makes columns of the matrix from the cells of one column of the table."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """Names of what is made, each after the name of the column."""

    @abstractmethod
    def encode(self, cells: Cells, out: Matrix) -> str:
        """Write the columns into `out`, [rows, columns]; gives what is worth knowing, or nothing."""

    def described(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def tensors(self) -> dict[str, Tensor]:
        """What is too large for plain values."""
        return {}


@dataclass(frozen=True)
class Scale:
    """Where the middle of numbers is, and how far they spread."""

    center: float
    spread: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Scale":
        """Median and quartiles; the standard deviation where half of the values are the same."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls(0.0, 1.0)
        low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
        spread = (high - low) / NORMAL_QUARTILES
        if not spread > abs(middle) * 1e-12:
            spread = float(np.std(known))
        usable = math.isfinite(spread) and spread > 0
        return cls(float(middle), float(spread) if usable else 1.0)

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values in spreads from the middle, far ones drawn in; zero where there is none."""
        with np.errstate(over="ignore"):
            scaled = (values - self.center) / self.spread
        size = np.abs(scaled)
        far = size > FAR
        if far.any():
            size = np.minimum(size, np.finfo(np.float64).max)
            scaled[far] = (np.sign(scaled) * (FAR + np.log(np.maximum(size - FAR + 1, 1))))[far]
        scaled[np.isnan(scaled)] = 0.0
        return np.asarray(scaled)


@dataclass(frozen=True)
class Numbers(ColumnEncoder):
    """A number, and whether it is missing where the training rows have gaps."""

    scale: Scale
    gaps: bool

    @classmethod
    def fit(cls, cells: Cells) -> "Numbers":
        """Numbers like these."""
        values = cells.numbers.values
        return cls(Scale.of(values), bool(np.isnan(values).any()))

    @property
    def columns(self) -> list[str]:
        return ["", " is missing"][: 1 + self.gaps]

    def encode(self, cells: Cells, out: Matrix) -> str:
        read = cells.numbers
        said = _tolerated(cells, read.unreadable, read.examples, "numbers")
        out[:, 0] = self.scale(read.values)
        _mark_gaps(read.values, out, self.gaps)
        return said


@dataclass(frozen=True)
class Truths(ColumnEncoder):
    """Yes as 1 and no as 0; a gap as the share of yes, marked where the training rows have gaps."""

    share: float
    gaps: bool

    @classmethod
    def fit(cls, cells: Cells) -> "Truths":
        """Truth values like these."""
        values = cells.truths.values
        known = values[~np.isnan(values)]
        return cls(float(known.mean()) if len(known) else 0.5, bool(np.isnan(values).any()))

    @property
    def columns(self) -> list[str]:
        return ["", " is missing"][: 1 + self.gaps]

    def encode(self, cells: Cells, out: Matrix) -> str:
        read = cells.truths
        said = _tolerated(cells, read.unreadable, read.examples, "yes or no")
        out[:, 0] = np.where(np.isnan(read.values), self.share, read.values)
        _mark_gaps(read.values, out, self.gaps)
        return said


@dataclass(frozen=True)
class Dates(ColumnEncoder):
    """Year, month, weekday, days and hour, as far as they differ between training rows; gaps are marked."""

    form: str
    parts: Mapping[str, Scale]
    gaps: bool

    @classmethod
    def fit(cls, cells: Cells, form: str) -> "Dates":
        """Dates in this form."""
        moments = cells.moments(form)
        assert moments is not None
        parts = moments.parts
        kept = {name: Scale.of(parts[name]) for name in PARTS if _varies(parts[name])}
        return cls(form, kept, bool(np.isnan(moments.seconds).any()))

    @property
    def columns(self) -> list[str]:
        return [f": {name}" for name in self.parts] + ([" is missing"] if self.gaps else [])

    def encode(self, cells: Cells, out: Matrix) -> str:
        moments = cells.moments(None if self.form == "stored" else self.form)
        if moments is None and cells.missing == len(cells):
            moments = cells.moments("2024-03-31")
        if moments is None:
            raise UnfitColumnError(_held(cells, (), f"dates written like {self.form}"))
        said = _tolerated(cells, moments.unreadable, moments.examples, f"dates written like {self.form}")
        parts = moments.parts
        for number, (name, scale) in enumerate(self.parts.items()):
            out[:, number] = scale(parts[name])
        _mark_gaps(moments.seconds, out, self.gaps)
        return said


@dataclass(frozen=True)
class FreeText(ColumnEncoder):
    """Free text, as the text encoder makes it; gaps are empty texts."""

    encoder: TextEncoder
    width: int

    @classmethod
    def fit(cls, cells: Cells, *, seed: int) -> "FreeText":
        """FreeText like these."""
        texts = _texts(cells)
        encoder = TextEncoder.fit(texts, seed=seed)
        return cls(encoder, int(encoder.transform(texts[:1]).shape[1]))

    @property
    def columns(self) -> list[str]:
        return [f": text {number}" for number in range(1, self.width + 1)]

    def encode(self, cells: Cells, out: Matrix) -> str:
        out[:] = self.encoder.transform(_texts(cells)).numpy()
        return ""

    def described(self) -> dict[str, Any]:
        return {"encoder": self.encoder.described(), "width": self.width}

    def tensors(self) -> dict[str, Tensor]:
        return self.encoder.tensors()


def stored_scale(described: Mapping[str, Any]) -> Scale:
    """The scale that was stored so; ValueError if it is none."""
    found = Scale(float(described["center"]), float(described["spread"]))
    if not (math.isfinite(found.center) and found.spread > 0):
        raise ValueError(f"numbers around {found.center} with a spread of {found.spread}")
    return found


def _varies(values: NDArray[np.float64]) -> bool:
    known = values[~np.isnan(values)]
    return bool(len(known) and known.min() != known.max())


def _mark_gaps(values: NDArray[np.float64], out: Matrix, gaps: bool) -> None:
    if gaps:
        out[:, -1] = np.isnan(values)


def _texts(cells: Cells) -> list[str]:
    texts: list[str] = cells.texts.fill_null("").to_pylist()
    return texts


def _tolerated(cells: Cells, unreadable: int, examples: Sequence[str], wanted: str) -> str:
    """What to say of a few cells of another type, which count as missing; many are refused."""
    if unreadable > TOLERATED * (len(cells) - cells.missing):
        raise UnfitColumnError(_held(cells, examples, wanted))
    if not unreadable:
        return ""
    return f"{unreadable:,} cells count as missing, such as {examples[0]!r:.40}"


def _held(cells: Cells, examples: Sequence[str], wanted: str) -> str:
    shown = examples or cells.texts.drop_null().slice(0, 1).to_pylist()
    return f"holds {shown[0]!r:.40} where {wanted} are expected"
