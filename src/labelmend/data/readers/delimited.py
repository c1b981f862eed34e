"""CSV, TSV and other text files of rows as Arrow tables, in whatever dialect they are written."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ...errors import InputError
from ..limits import ROW_BYTES, check_unpacked, regular
from .dialect import USUAL, Dialect, column_names, detect_dialect

LARGEST_FOOTER = 16 << 20
MOST_COLUMNS = 32_768
EXCEL = (".xlsx", ".xlsm")
SUFFIXES = (*USUAL, ".parquet", *EXCEL)
SHOWN = 60


@dataclass(frozen=True)
class ReadTable:
    """A table as it was read, the decimal sign of its texts, and what its dialect is where that is not usual."""

    table: pa.Table
    decimal: str = "."
    said: str = ""


def read_table(path: Path) -> ReadTable:
    """A file of rows by its suffix, every cell of a text file as text; InputError if it cannot be read."""
    regular(path)
    try:
        if path.suffix == ".parquet":
            return ReadTable(read_parquet(path))
        if path.suffix in EXCEL:
            from .excel import read_excel

            return ReadTable(read_excel(path))
        dialect, header = detect_dialect(path)
        said = dialect.said(path.suffix)
        return ReadTable(_parsed(path, dialect, header, header), dialect.decimal, said)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).splitlines()[0]:.300}") from None


def read_parquet(path: Path) -> pa.Table:
    """A parquet file, unless its few bytes stand for many rows, as repeated values can.

    It ends with a footer, its size and four letters; reading the footer takes ten times the memory.
    """
    with path.open("rb") as raw:
        raw.seek(max(0, path.stat().st_size - 8))
        footer = int.from_bytes(raw.read(4), "little")
    if LARGEST_FOOTER < footer < path.stat().st_size:
        raise InputError(f"{path} has a footer of {footer:,} bytes, and at most {LARGEST_FOOTER:,} are taken")
    with pq.ParquetFile(path) as file:
        check_columns(path, file.metadata.num_columns)
        check_unpacked(path, file.metadata.num_rows * (ROW_BYTES + 4 * file.metadata.num_columns))
    return pq.read_table(path)


def read_delimited(path: Path, *, text: Sequence[str] | None = None) -> pa.Table:
    """A CSV or TSV file in any dialect; the columns of `text`, by default all, are read as text."""
    dialect, header = detect_dialect(path)
    return _parsed(path, dialect, header, header if text is None else [name for name in header if name in text])


def check_columns(path: Path, count: int) -> None:
    """Refuse what the reader would take 10 kB a column for, however short the columns are."""
    if count > MOST_COLUMNS:
        raise InputError(f"{path} has {count:,} columns, and at most {MOST_COLUMNS:,} are taken; save it as .npz")


def class_label_names(schema: pa.Schema, label: str | None) -> list[str] | None:
    """Names of a Hugging Face ClassLabel, where the table's metadata has them."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])
        names = described["info"]["features"][label]["names"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return None
    return [str(name) for name in names] if isinstance(names, list) else None


def _parsed(path: Path, dialect: Dialect, header: Sequence[str], text: Sequence[str]) -> pa.Table:
    check_columns(path, len(header))
    ragged: list[pyarrow.csv.InvalidRow] = []

    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    options = {
        "parse_options": pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True, invalid_row_handler=refuse
        ),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()), strings_can_be_null=False, decimal_point=dialect.decimal
        ),
    }
    reading = {"encoding": dialect.codec, "skip_rows": 1 if dialect.preamble else 0}
    try:
        table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(**reading), **options)
    except pa.ArrowInvalid:
        if not ragged:
            raise
        raise InputError(_about(path, ragged[0])) from None
    return table.rename_columns(column_names(table.column_names))


def _about(path: Path, row: pyarrow.csv.InvalidRow) -> str:
    cells = f"{row.actual_columns} cell{'s' * (row.actual_columns != 1)}"
    return (
        f"{path} cannot be read as a table: a row has {cells} where the header names {row.expected_columns}, namely "
        f"{row.text.strip()!r:.{SHOWN}}; give every row as many cells, and quote those with a delimiter in them"
    )
