"""Rows of a table as one matrix of numbers, by the names of their columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from ..errors import InputError, listed
from .categories import MOST_ONE_HOT, Categories
from .cells import Cells, shown_cells
from .column_encoders import PARTS, ColumnEncoder, Dates, FreeText, Numbers, Truths, UnfitColumnError, stored_scale
from .columns import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT, USED, Column, ColumnWishes, typed_column
from .text import TextEncoder

LARGEST_MATRIX = 1 << 28
"""Numbers in the matrix of a large table; its categories get fewer columns where they would make more."""
FEWEST_ONE_HOT = 4
WIDEST = 1 << 20


@dataclass(frozen=True)
class Beside:
    """A column that is not learned from because it has another part: that of the labels or of the ids."""

    name: str
    role: str
    reason: str


@dataclass(frozen=True)
class TableRows:
    """Rows as they stand in a table, without the columns `beside`; texts are not interpreted yet.

    `decimal` is the decimal sign of texts.
    """

    table: pa.Table
    decimal: str = "."
    wishes: ColumnWishes = field(default_factory=ColumnWishes)
    beside: Sequence[Beside] = ()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, rows: Sequence[int]) -> "TableRows":
        """Only these rows, in this order."""
        return replace(self, table=self.table.take(pa.array(list(rows), pa.int64())))

    def cells(self, name: str) -> Cells:
        """One column."""
        return Cells(self.table[name], self.decimal)

    def only_text(self) -> str | None:
        """The column to learn from, if it is the only one and holds free text."""
        wanted = [name for name in self.table.column_names if self.wishes.takes(name)]
        if len(wanted) != 1:
            return None
        return wanted[0] if typed_column(wanted[0], self.cells(wanted[0]), self.wishes).role == TEXT else None

    def texts(self, column: str, name: str) -> list[str | None]:
        """The cells of a column as texts, for models that take them."""
        self.check_has(column, name)
        return [None if cell is None else str(cell) for cell in self.table[column].to_pylist()]

    def check_has(self, column: str, name: str) -> None:
        """Refuse rows without a column that a model was trained on."""
        if not self.table.schema.get_all_field_indices(column):  # quick, however many columns there are
            raise InputError(
                f"{name} has no column {column!r}, which the model was trained on; add it, with empty cells where "
                "values are unknown"
            )

    def as_numbers(self, columns: Sequence[str], name: str) -> Tensor:
        """These columns as they are, float32 [n, columns], for models that take numbers; NaN where one is missing."""
        matrix = np.empty((len(self), len(columns)), dtype=np.float32)
        for number, column in enumerate(columns):
            self.check_has(column, name)
            read = self.cells(column).numbers
            if read.unreadable:
                raise InputError(f"column {column!r} of {name} holds {read.examples[0]!r:.40}, not numbers only")
            matrix[:, number] = read.values
        return torch.from_numpy(matrix)

    def shown(self, names: Sequence[str], rows: Sequence[int]) -> list[list[str]]:
        """The cells of some rows and columns as a person reads them."""
        return shown_cells(self.table, names, rows)


@dataclass(frozen=True)
class TableEncoding:
    """What was made of each column of a training table; encodes other rows in the same way, by their names."""

    columns: Sequence[Column]
    encoders: Mapping[str, ColumnEncoder]

    @classmethod
    def fit(cls, rows: TableRows, name: str, *, seed: int = 0) -> "TableEncoding":
        """The encoding that suits these rows; InputError if no column is left to learn from."""
        rows.wishes.check([*rows.table.column_names, *(each.name for each in rows.beside)], name)
        columns, encoders = (
            [Column(each.name, each.role, each.reason, {}) for each in rows.beside],
            dict[str, ColumnEncoder](),
        )
        waiting = list[Column]()
        for each in rows.table.column_names:
            cells = rows.cells(each)
            column = typed_column(each, cells, rows.wishes)
            columns.append(column)
            if column.role == CATEGORY:
                waiting.append(column)
            elif column.used:
                encoders[each] = _fitted_encoder(column, cells, seed=seed, most_values=0)
        free = LARGEST_MATRIX // max(1, len(rows)) - sum(len(encoder.columns) for encoder in encoders.values())
        most = min(MOST_ONE_HOT, max(FEWEST_ONE_HOT, free // max(1, len(waiting))))
        for column in waiting:
            encoders[column.name] = _fitted_encoder(column, rows.cells(column.name), seed=seed, most_values=most)
        if not encoders:
            _refuse_nothing(name, columns[len(rows.beside) :])
        return cls(columns, {column.name: encoders[column.name] for column in columns if column.used})

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [f"{name}{made}" for name, encoder in self.encoders.items() for made in encoder.columns]

    @property
    def width(self) -> int:
        """Columns of the matrix."""
        return sum(len(encoder.columns) for encoder in self.encoders.values())

    def text_columns(self) -> list[slice]:
        """Where in the matrix the columns of each free text are."""
        found, start = [], 0
        for encoder in self.encoders.values():
            stop = start + len(encoder.columns)
            if isinstance(encoder, FreeText):
                found.append(slice(start, stop))
            start = stop
        return found

    def encode(self, rows: TableRows, name: str) -> tuple[Tensor, list[str]]:
        """The matrix of these rows, float32 [n, width], and what is worth knowing about them.

        InputError if a column is missing or holds something of another type.
        """
        matrix = np.zeros((len(rows), self.width), dtype=np.float32)
        notes, start = [], 0
        for column, encoder in self.encoders.items():
            rows.check_has(column, name)
            end = start + len(encoder.columns)
            try:
                said = encoder.encode(rows.cells(column), matrix[:, start:end])
            except (UnfitColumnError, pa.ArrowException) as error:
                raise InputError(
                    f"column {column!r} of {name} {str(error).splitlines()[0]:.200}, as in the table that the model "
                    "was trained on; mend the column or train again"
                ) from None
            notes += [f"column {column!r} has {said}"] if said else []
            start = end
        return torch.from_numpy(matrix), notes

    def unknown(self, rows: TableRows) -> list[str]:
        """Columns of these rows that the training table did not have."""
        known = {column.name for column in self.columns}
        return [name for name in rows.table.column_names if name not in known]

    def made(self) -> list[dict[str, Any]]:
        """What was made of each column, as plain values for run.json."""
        widths = {name: len(encoder.columns) for name, encoder in self.encoders.items()}
        return [column.described() | {"features": widths.get(column.name, 0)} for column in self.columns]

    def described(self) -> list[dict[str, Any]]:
        """Everything but tensors, as plain values for model.json."""
        fitted = {name: encoder.described() for name, encoder in self.encoders.items()}
        return [column.described() | {"fitted": fitted.get(column.name)} for column in self.columns]

    def tensors(self) -> dict[str, Tensor]:
        """What is too large for model.json, by the number of the column and its own name."""
        numbers = {column.name: number for number, column in enumerate(self.columns)}
        return {
            f"{numbers[name]}/{key}": tensor
            for name, encoder in self.encoders.items()
            for key, tensor in encoder.tensors().items()
        }

    @classmethod
    def restored(cls, described: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]) -> "TableEncoding":
        """The encoding that was stored so; raises whatever damaged values make Python raise."""
        columns, encoders = [], dict[str, ColumnEncoder]()
        for number, about in enumerate(described):
            column = Column(str(about["name"]), str(about["role"]), str(about["reason"]), {})
            columns.append(column)
            if column.role in USED:
                prefix = f"{number}/"
                own = {key.removeprefix(prefix): each for key, each in tensors.items() if key.startswith(prefix)}
                encoders[column.name] = _restored_encoder(column.role, about["fitted"], own)
        encoding = cls(columns, encoders)
        if not 0 < encoding.width <= WIDEST:
            raise ValueError(f"its columns make {encoding.width} features")
        return encoding


def _refuse_nothing(name: str, columns: Sequence[Column]) -> None:
    """Refuse a table of which nothing is learned from; `columns` are those beside the labels and ids."""
    if not columns:
        raise InputError(f"{name} has neither an image column nor feature columns beside the label")
    why = listed(f"{column.name!r:.60} ({column.role})" for column in columns)
    raise InputError(f"{name} has no column to learn from: {why}; --columns NAME takes an id all the same")


def _fitted_encoder(column: Column, cells: Cells, *, seed: int, most_values: int) -> ColumnEncoder:
    """The encoder of a column that is used."""
    if column.role == TEXT:
        return FreeText.fit(cells, seed=seed)
    if column.role == DATE:
        return Dates.fit(cells, column.details["form"])
    if column.role == CATEGORY:
        return Categories.fit(cells, most=most_values)
    return {NUMBER: Numbers, BOOLEAN: Truths}[column.role].fit(cells)  # type: ignore[attr-defined, no-any-return]


def _restored_encoder(role: str, described: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ColumnEncoder:
    """The encoder that was stored so; raises whatever damaged values make Python raise."""
    if role == TEXT:
        return FreeText(TextEncoder.restored(described["encoder"], tensors), int(described["width"]))
    gaps = bool(described["gaps"])
    if role == DATE:
        parts = {name: stored_scale(described["parts"][name]) for name in PARTS if name in described["parts"]}
        return Dates(str(described["form"]), parts, gaps)
    if role == NUMBER:
        return Numbers(stored_scale(described["scale"]), gaps)
    if role == BOOLEAN:
        return Truths(float(described["share"]), gaps)
    values = [str(value) for value in described["values"]]
    counts = [int(count) for count in described["counts"]]
    kept, rows = int(described["kept"]), int(described["rows"])
    if role != CATEGORY or len(values) != len(counts) or not 0 <= kept <= len(values) or rows < 1:
        raise ValueError(f"the column is a {role!r:.40} with {len(values)} values, of which {kept} are kept")
    return Categories(values, counts, kept, bool(described["others"]), gaps, rows, bool(described["complete"]))
