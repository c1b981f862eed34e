"""Sheets of Excel as Arrow tables; needs the extra `excel`."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import InputError
from ..limits import check_unpacked
from .delimited import check_columns
from .dialect import column_names

MOST_CELLS = 50_000_000


def read_excel(path: Path) -> pa.Table:
    """The first sheet of a workbook: its first row that is not empty names the columns; formulas are not computed."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{path} is an Excel workbook, which needs the extra: pip install 'labelmend[excel]'; or save it as CSV"
        ) from None
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            rows = _filled(path, book.worksheets[0])
            header = ["" if cell is None else str(cell) for cell in next(rows, ())]
            check_columns(path, len(header))
            columns = list(zip(*(_fitted(path, row, len(header)) for row in rows), strict=True))
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # a damaged workbook makes its reader raise whatever it likes
        raise InputError(f"{path} cannot be read as an Excel workbook: {str(error).splitlines()[:1]}") from None
    values = columns or [() for _ in header]
    return pa.table(dict(zip(column_names(header), map(_column, values), strict=True)))


def _filled(path: Path, sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Rows with something in them."""
    cells = 0
    for row in sheet.iter_rows(values_only=True):
        cells += len(row) + 1
        if cells > MOST_CELLS:
            raise InputError(f"{path} has more than {MOST_CELLS:,} cells; save it as CSV")
        if any(cell is not None for cell in row):
            yield row


def _fitted(path: Path, row: Sequence[Any], width: int) -> tuple[Any, ...]:
    """A row with as many cells as the header: empty ones at its end are not stored."""
    if any(cell is not None for cell in row[width:]):
        raise InputError(f"{path} has a row with {len(row)} cells where the header names {width}: {row!r:.60}")
    return (*row[:width], *[None] * (width - len(row)))


def _column(values: Sequence[Any]) -> pa.Array:
    """Values of one type as such, whole numbers as integers, and mixed ones as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float} and all(value is None or float(value).is_integer() for value in values):
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
