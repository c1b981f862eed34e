"""CSV, TSV and parquet: images by path or as bytes with a label column, or numeric feature columns."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ...errors import InputError, listed, lookup
from ..limits import ROW_BYTES, check_unpacked, regular
from ..listing import ImageRef, Listing

IMAGE_NAMES = ("image", "img", "path", "file", "filename", "file_name", "filepath", "image_path")
LABEL_NAMES = ("label", "labels", "fine_label", "class", "target", "y", "category")
ID_NAMES = ("id", "ids")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LONGEST_HEADER = 4 << 20
LARGEST_FOOTER = 16 << 20
MOST_COLUMNS = 32_768
SUFFIXES = (*DELIMITERS, ".parquet")


@dataclass(frozen=True)
class Columns:
    """Which column is what; None is found by its name."""

    image: str | None = None
    label: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class FeatureTable:
    """Rows of numbers with labels."""

    name: str
    features: np.ndarray[Any, np.dtype[np.float32]]
    labels: Sequence[object]
    ids: Sequence[str]
    places: Sequence[str]
    columns: Sequence[str] = ()


def open_table(
    path: Path, columns: Columns, *, root: Path | None = None, labelled: bool = True
) -> "Listing | FeatureTable":
    """What a table holds: images to decode, or features; without labels if they are not needed and not there.

    Image paths are relative to the root, by default the table's folder, and may not lead out of it.
    """
    table = _read(path, columns)
    if table.num_rows == 0:
        raise InputError(f"{path} has no samples: not one row below its header")
    names = {name: name for name in table.column_names}
    label = label_column(path, table.column_names, columns)
    if label is None and labelled:
        raise InputError(f"{path} has no label column; name it with --label-column ({listed(names)})")
    image = _find("image", columns.image, IMAGE_NAMES, names, path)
    id_column = _find("id", columns.id, ID_NAMES, names, path)
    labels = [None] * table.num_rows if label is None else _label_values(table, label)
    places = [f"{path.name} row {row}" for row in range(1, table.num_rows + 1)]
    ids = [str(value) for value in table[id_column].to_pylist()] if id_column else None
    if image is not None and _holds_images(table.schema.field(image).type):
        folder = root or path.parent
        images, found = _images(table[image], folder)
        classes = class_label_names(table.schema, label)
        return Listing(path.name, images, labels, ids or found or _rows(table), places, classes, folder)
    rest = [name for name in table.column_names if name not in (label, id_column)]
    return FeatureTable(path.name, _features(table, rest, path), labels, ids or _rows(table), places, rest)


def label_column(path: Path, names: Sequence[str], columns: Columns) -> str | None:
    """Which of the columns of a table holds the labels."""
    return _find("label", columns.label, LABEL_NAMES, {name: name for name in names}, path)


def _read(path: Path, columns: Columns) -> pa.Table:
    regular(path)
    try:
        return read_parquet(path) if path.suffix == ".parquet" else _read_delimited(path, columns)
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
        _check_columns(path, file.metadata.num_columns)
        check_unpacked(path, file.metadata.num_rows * (ROW_BYTES + 4 * file.metadata.num_columns))
    return pq.read_table(path)


def _read_delimited(path: Path, columns: Columns) -> pa.Table:
    delimiter = DELIMITERS[path.suffix]
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(io.StringIO(file.read(LONGEST_HEADER), newline=""), delimiter=delimiter), [])
    _check_columns(path, len(header))
    names = {name: name for name in header}
    kinds = (("label", columns.label, LABEL_NAMES), ("image", columns.image, IMAGE_NAMES), ("id", columns.id, ID_NAMES))
    found = {_find(kind, asked, usual, names, path) for kind, asked, usual in kinds}
    as_text = {name: pa.string() for name in header if name in found}
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types=as_text, strings_can_be_null=False),
    )


def _check_columns(path: Path, count: int) -> None:
    """Refuse what the reader would take 10 kB a column for, however short the columns are."""
    if count > MOST_COLUMNS:
        raise InputError(f"{path} has {count:,} columns, and at most {MOST_COLUMNS:,} are taken; save it as .npz")


def _find(kind: str, asked: str | None, usual: Sequence[str], names: dict[str, str], path: Path) -> str | None:
    if asked is not None:
        return lookup(f"{kind} column of {path.name}", asked, names)
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _holds_images(kind: pa.DataType) -> bool:
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_bytes or pa.types.is_struct(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _images(column: pa.ChunkedArray, folder: Path) -> tuple[list[ImageRef], list[str] | None]:
    """Image references, and ids where the column has them: paths, or the paths stored beside the bytes."""
    values = column.to_pylist()
    if pa.types.is_struct(column.type):
        names = [(value or {}).get("path") for value in values]
        content = [(value or {}).get("bytes") for value in values]
        images: list[ImageRef] = [
            c if c is not None else folder / (n or "") for c, n in zip(content, names, strict=True)
        ]
        return images, [str(n) for n in names] if all(names) else None
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = [value or "" for value in values]
        return [folder / text for text in texts], texts
    return [value or b"" for value in values], None


def _label_values(table: pa.Table, label: str) -> list[Any]:
    names = class_label_names(table.schema, label)
    values: list[Any] = table[label].to_pylist()
    if names is None:
        return values
    return [names[v] if isinstance(v, int) and 0 <= v < len(names) else v for v in values]


def class_label_names(schema: pa.Schema, label: str | None) -> list[str] | None:
    """Names of a Hugging Face ClassLabel, where the table's metadata has them."""
    try:
        described = json.loads((schema.metadata or {})[b"huggingface"])
        names = described["info"]["features"][label]["names"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return None
    return [str(name) for name in names] if isinstance(names, list) else None


def _features(table: pa.Table, names: list[str], path: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    if not names:
        raise InputError(f"{path} has neither an image column nor feature columns beside the label")
    arrays = []
    for name in names:
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"column {name!r} of {path} holds {kind}, not numbers; drop it or name the image column")
        arrays.append(
            table[name].cast(pa.float32() if not pa.types.is_boolean(kind) else pa.int8(), safe=False).to_numpy()
        )
    return np.stack([array.astype(np.float32) for array in arrays], axis=1)


def _rows(table: pa.Table) -> list[str]:
    return [str(row) for row in range(table.num_rows)]
