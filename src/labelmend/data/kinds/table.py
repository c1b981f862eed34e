"""Rows of a table: trained on as a matrix that is made of its columns, shown as they were written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..columns import BOOLEAN, CATEGORY, NUMBER
from ..preflight import Problem
from ..table_encoding import TableEncoding, TableRows
from .features import Features
from .normaliser import Normaliser

if TYPE_CHECKING:
    from . import Inputs

MISSING = "(empty)"


@dataclass(frozen=True)
class Table(Features):
    """Rows of a table; `encoding` says what was made of each column, once that is decided, and `columns` name that."""

    name: str = "table"
    encoding: TableEncoding | None = None

    @classmethod
    def encoded_by(cls, encoding: TableEncoding) -> "Table":
        """Rows that are encoded so."""
        return cls(columns=encoding.names, encoding=encoding)

    def problems(self, inputs: "Inputs", locations: Sequence[str]) -> list[Problem]:
        """None: what is missing is filled in, and marked."""
        return []

    def normaliser(self, inputs: "Inputs") -> Normaliser:
        """Mean and standard deviation of each column; those of one text, whose scales mean something, share one."""
        found = super().normaliser(inputs)
        std = found.std.clone()
        for columns in () if self.encoding is None else self.encoding.text_columns():
            std[columns] = std[columns].square().mean().sqrt()
        return Normaliser(found.mean, std)

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """A multilayer perceptron."""
        used = 0 if self.encoding is None else len(self.encoding.encoders)
        return ("mlp",), f"the samples are rows of {used} columns, encoded in {shape[0]}"

    def shown(self, inputs: Tensor, originals: "Inputs | None", rows: Sequence[int]) -> dict[str, list[Any]]:
        """The cells of each row as they were written."""
        if not isinstance(originals, TableRows):
            return super().shown(inputs, originals, rows)
        return {"cells": originals.shown(self.shown_columns(originals), rows)}

    def shown_columns(self, originals: "Inputs | None") -> Sequence[str]:
        """The columns that are learned from; all, where that is not decided."""
        if not isinstance(originals, TableRows):
            return self.columns
        return list(originals.table.column_names if self.encoding is None else self.encoding.encoders)

    def numbers(self, rows: TableRows) -> Tensor:
        """The cells of the columns that `shown_columns` names, float32 [n, columns], NaN where one is no number."""
        roles = self._roles()
        matrix = torch.full((len(rows), len(self.shown_columns(rows))), torch.nan)
        for place, name in enumerate(self.shown_columns(rows)):
            if roles.get(name) == NUMBER:
                matrix[:, place] = torch.from_numpy(rows.cells(name).numbers.values).float()
        return matrix

    def words(self, rows: TableRows) -> list[list[str | None]]:
        """The cells of the columns of `shown_columns` that hold categories or truth values, None in other columns.

        A missing cell is a word of its own.
        """
        roles, names = self._roles(), self.shown_columns(rows)
        columns = [
            [cell or MISSING for (cell,) in rows.shown([name], range(len(rows)))]
            if roles.get(name) in (CATEGORY, BOOLEAN)
            else [None] * len(rows)
            for name in names
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    def _roles(self) -> dict[str, str]:
        return {} if self.encoding is None else {column.name: column.role for column in self.encoding.columns}

    def described(self) -> dict[str, Any]:
        """What was made of each column."""
        return {} if self.encoding is None else {"columns": self.encoding.made()}
