"""CSV, TSV and parquet: images by path or as bytes, texts or numeric feature columns, with a label column."""

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
import torch
from torch import Tensor

from ...errors import InputError, listed, lookup
from ..kinds.decode import ImageRef
from ..kinds.features import Features
from ..kinds.images import ImageFiles, Images
from ..limits import ROW_BYTES, check_unpacked, regular
from ..samples import Samples
from ..text import is_free_text
from .texts import from_texts

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
    """Which column of a table is what; None is found by its name."""

    image: str | None = None
    label: str | None = None
    id: str | None = None


def open_table(
    path: Path,
    columns: Columns,
    *,
    root: Path | None = None,
    labelled: bool = True,
    features: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> Samples:
    """Samples of a file of rows; without labels if they are not needed and not there.

    Image paths are relative to the root, by default the table's folder, and may not lead out of it. `features` names
    the feature columns to take, in their order; by default all that are neither labels nor ids. `class_names` are those
    that numbers stand for, if the table itself has none.
    """
    return from_table(
        path.name,
        _read(path, columns),
        columns,
        root=root or path.parent,
        labelled=labelled,
        features=features,
        class_names=class_names,
    )


def from_table(
    name: str,
    table: pa.Table,
    columns: Columns,
    *,
    root: Path | None,
    labelled: bool = True,
    features: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> Samples:
    """Samples of an Arrow table; `class_names` are those that numbers stand for, if the table itself has none.

    A table whose only column beside labels and ids is free text is a set of texts, whatever that column is called.
    """
    if table.num_rows == 0:
        raise InputError(f"{name} has no samples: not one row below its header")
    names = {column: column for column in table.column_names}
    label = label_column(name, table.column_names, columns) if labelled else None
    if label is None and labelled:
        raise InputError(f"{name} has no label column; name it with --label-column ({listed(names)})")
    image = _find("image", columns.image, IMAGE_NAMES, names, name) if features is None else None
    id_column = _find("id", columns.id, ID_NAMES, names, name)
    locations = [f"{name} row {row}" for row in range(1, table.num_rows + 1)]
    declared = class_label_names(table.schema, label) or class_names
    labels = None if label is None else _label_values(table, label, declared)
    known = [str(value) for value in table[id_column].to_pylist()] if id_column else None
    usual = label_column(name, table.column_names, columns)
    rest = [column for column in table.column_names if column not in (label, usual, id_column)]
    text = _text_column(table, rest if features is None else features)
    if text is not None:
        values = table[text].to_pylist()
        return from_texts(name, values, labels, ids=known, locations=locations, column=text, declared=declared)
    inputs: Tensor | ImageFiles
    if image is not None and _holds_images(table.schema.field(image).type):
        refs, paths = _images(table[image], root)
        kind: Images | Features = Images()
        inputs = ImageFiles(refs, locations, root)
    else:
        chosen, paths = list(rest if features is None else features), None
        kind, inputs = Features(chosen), _features(table, chosen, name)
    return Samples.read(
        name,
        kind,
        inputs,
        labels,
        ids=known or paths or [str(row) for row in range(table.num_rows)],
        locations=locations,
        declared=declared,
    )


def _text_column(table: pa.Table, columns: Sequence[str]) -> str | None:
    """The only one of these columns, if it holds free text."""
    if len(columns) != 1 or columns[0] not in table.column_names:
        return None
    kind = table.schema.field(columns[0]).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    return columns[0] if is_free_text(table[columns[0]].to_pylist()) else None


def named_columns(name: str, columns: Sequence[str]) -> list[str]:
    """The feature columns that a model takes, which must be known: by position, a wrong order would go unnoticed."""
    if not columns:
        raise InputError(
            f"{name} has named columns, but the model does not know the names of those it was trained on (it was "
            "trained on arrays, or by version 0.1); give an array, or train again on the table"
        )
    return list(columns)


def label_column(name: str, names: Sequence[str], columns: Columns) -> str | None:
    """Which of the columns of a table holds the labels."""
    return _find("label", columns.label, LABEL_NAMES, {column: column for column in names}, name)


def _read(path: Path, columns: Columns) -> pa.Table:
    regular(path)
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        names = {column: column for column in _header(path)}
        kinds = (
            ("label", columns.label, LABEL_NAMES),
            ("image", columns.image, IMAGE_NAMES),
            ("id", columns.id, ID_NAMES),
        )
        found = {_find(kind, asked, usual, names, path.name) for kind, asked, usual in kinds}
        return read_delimited(path, text=[name for name in names if name in found])
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


def read_delimited(path: Path, *, text: Sequence[str] | None = None) -> pa.Table:
    """A CSV or TSV file; the columns of `text`, by default all, are read as text."""
    names = _header(path)
    return pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter=DELIMITERS[path.suffix], newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names if text is None else text, pa.string()), strings_can_be_null=False
        ),
    )


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        start = io.StringIO(file.read(LONGEST_HEADER), newline="")
    header = next(csv.reader(start, delimiter=DELIMITERS[path.suffix]), [])
    _check_columns(path, len(header))
    return header


def _check_columns(path: Path, count: int) -> None:
    """Refuse what the reader would take 10 kB a column for, however short the columns are."""
    if count > MOST_COLUMNS:
        raise InputError(f"{path} has {count:,} columns, and at most {MOST_COLUMNS:,} are taken; save it as .npz")


def _find(kind: str, asked: str | None, usual: Sequence[str], names: dict[str, str], table: str) -> str | None:
    if asked is not None:
        return lookup(f"{kind} column of {table}", asked, names)
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _holds_images(kind: pa.DataType) -> bool:
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_bytes or pa.types.is_struct(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _images(column: pa.ChunkedArray, root: Path | None) -> tuple[list[ImageRef], list[str] | None]:
    """Image references, and ids where the column has them: paths, or the paths stored beside the bytes."""
    values, folder = column.to_pylist(), root or Path()
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


def _label_values(table: pa.Table, label: str, names: Sequence[str] | None) -> list[Any]:
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


def _features(table: pa.Table, columns: list[str], name: str) -> Tensor:
    if not columns:
        raise InputError(f"{name} has neither an image column nor feature columns beside the label")
    arrays = []
    for column in columns:
        if column not in table.column_names:
            raise InputError(f"{name} has no column {column!r}, which the model was trained on")
        kind = table.schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise InputError(f"column {column!r} of {name} holds {kind}, not numbers; drop it or name the image column")
        numbers = table[column].cast(pa.int8() if pa.types.is_boolean(kind) else pa.float32(), safe=False)
        arrays.append(numbers.to_numpy().astype(np.float32))
    return torch.from_numpy(np.stack(arrays, axis=1))
