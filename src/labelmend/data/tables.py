"""Rows of a table as a learner takes them: as a matrix, encoded anew or as for a model, or as texts."""

from dataclasses import replace

import pyarrow as pa
from torch import Tensor

from ..errors import InputError, listed
from .kinds import Kind
from .kinds.features import Features
from .kinds.table import Table
from .kinds.text import Text
from .preflight import Problem
from .readers.texts import from_texts
from .samples import Samples
from .table_encoding import TableEncoding, TableRows


def encoded_table(samples: Samples, rows: TableRows, kind: Kind | None, *, seed: int) -> Samples:
    """Rows of a table as the matrix that is trained on, by a new encoding or that of a kind."""
    if not isinstance(kind, Table) or kind.encoding is None:
        if len(rows) == 1:
            raise InputError(f"{samples.name} has one row, and so a single class; at least two classes are needed")
        kind = Table.encoded_by(TableEncoding.fit(rows, samples.name, seed=seed))
        assert kind.encoding is not None
        inputs, _ = kind.encoding.encode(rows, samples.name)
        return replace(samples, inputs=inputs, originals=rows, kind=kind)
    return encoded_like(samples, rows, kind)


def rows_by_position(values: Tensor, kind: Table, name: str) -> TableRows:
    """Rows of an array as those of a table that has the columns which the model learned from, in their order."""
    used = [] if kind.encoding is None else list(kind.encoding.encoders)
    if values.dim() != 2 or values.shape[1] != len(used):
        raise InputError(
            f"{name} has samples of shape {tuple(values.shape[1:])}, but the model takes the columns {listed(used)}; "
            "give a table that names them"
        )
    return TableRows(pa.table({column: values[:, number].numpy() for number, column in enumerate(used)}))


def encoded_like(samples: Samples, rows: TableRows, kind: Features) -> Samples:
    """Rows of a table as a model takes them, which was trained on another one; notes say what differs."""
    if not isinstance(kind, Table) or kind.encoding is None:
        if not kind.columns:
            raise InputError(
                f"{samples.name} has named columns, but the model does not know the names of those it was trained on "
                "(it was trained on arrays, or by version 0.1); give an array, or train again on the table"
            )
        return replace(samples, inputs=rows.as_numbers(kind.columns, samples.name), kind=kind)
    inputs, notes = kind.encoding.encode(rows, samples.name)
    unknown = kind.encoding.unknown(rows)
    if unknown:
        notes.append(f"columns that the model was not trained on are not used: {listed(unknown)}")
    found = [*samples.notes, *(Problem(samples.name, note) for note in notes)]
    return replace(samples, inputs=inputs, originals=rows, kind=kind, notes=found)


def texts_like(samples: Samples, rows: TableRows, kind: Text) -> Samples:
    """The texts of a table that a model takes: the column that it was trained on, or else the only one of texts."""
    column = kind.columns[0] if kind.columns else rows.only_text()
    if column is None:
        raise InputError(f"{samples.name} must have one column of texts, which the model takes, and no other column")
    texts = rows.texts(column, samples.name)
    return from_texts(samples.name, texts, None, ids=samples.ids, locations=samples.locations, column=column)
