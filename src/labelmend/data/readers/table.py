"""Tables, from files or as Arrow tables: images by path or as bytes, texts, or columns to learn from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InputError, listed, lookup
from ..columns import ID_NAME, ColumnWishes
from ..kinds.decode import SUFFIXES, ImageRef
from ..kinds.images import ImageFiles, Images
from ..kinds.table import Table
from ..preflight import Problem
from ..samples import Samples
from ..table_encoding import Beside, TableRows
from .delimited import class_label_names, read_table
from .texts import from_texts

IMAGE_NAMES = ("image", "img", "path", "file", "filename", "file_name", "filepath", "image_path")
IMAGE_SUFFIX = rf"(?i)({'|'.join(re.escape(suffix) for suffix in SUFFIXES)})$"
LABEL_NAMES = ("label", "labels", "fine_label", "class", "target", "y", "category")
ID_NAMES = ("id", "ids")
LOOKED_AT, TRIED = 1_000, 20
"""Values that tell whether a column holds paths of images, and how many of them are looked for on the disk."""
LONGEST_PATH = 1_024


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what; None is found by its name. Wishes are about the columns to learn from."""

    image: str | None = None
    label: str | None = None
    id: str | None = None
    wishes: ColumnWishes = field(default_factory=ColumnWishes)


def open_table(
    path: Path,
    columns: Columns,
    *,
    root: Path | None = None,
    labelled: bool = True,
    images: bool = True,
    class_names: Sequence[str] | None = None,
) -> Samples:
    """Samples of a file of rows; without labels if they are not needed and not there.

    Image paths are relative to the root, by default the table's folder, and may not lead out of it. Without `images`
    every table is one of columns to learn from. `class_names` are those that numbers stand for, if the table itself has
    none.
    """
    read = read_table(path)
    notes = [Problem(path.name, f"read with {read.said}")] if read.said else []
    return from_table(
        path.name,
        read.table,
        columns,
        root=root or path.parent,
        labelled=labelled,
        images=images,
        class_names=class_names,
        decimal=read.decimal,
        notes=notes,
    )


def from_table(
    name: str,
    table: pa.Table,
    columns: Columns,
    *,
    root: Path | None,
    labelled: bool = True,
    images: bool = True,
    class_names: Sequence[str] | None = None,
    decimal: str = ".",
    notes: Sequence[Problem] = (),
) -> Samples:
    """Samples of an Arrow table; `class_names` are those that numbers stand for, if the table itself has none.

    A labelled table whose only column beside labels and ids is free text is a set of texts, whatever that column is
    called.
    """
    if table.num_rows == 0:
        raise InputError(f"{name} has no samples: not one row below its header")
    names = {column: column for column in table.column_names}
    label = label_column(name, table.column_names, columns) if labelled else None
    if label is None and labelled:
        raise InputError(f"{name} has no label column; name it with --label-column ({listed(names)})")
    if label is not None and f"{label} (2)" in names:
        raise InputError(f"{name} has two columns named {label!r}, and labels are in one; rename or remove the other")
    image = _image_column(table, columns, names, name, root) if images else None
    id_column = _id_column(table, columns, names, name, label)
    locations = [f"{name} row {row}" for row in range(1, table.num_rows + 1)]
    declared = class_label_names(table.schema, label) or class_names
    labels = None if label is None else _label_values(table, label, declared)
    known = [str(value) for value in table[id_column].to_pylist()] if id_column else None
    inputs: TableRows | ImageFiles
    paths = None
    if image is not None:
        refs, paths = _images(table[image], root)
        kind: Images | Table = Images()
        inputs = ImageFiles(refs, locations, root)
    else:
        kind, inputs = Table(), _rows(table, columns, decimal, label, id_column)
        text = inputs.only_text() if labelled else None
        if text is not None:
            return from_texts(
                name, table[text].to_pylist(), labels, ids=known, locations=locations, column=text, declared=declared
            )
    return Samples.read(
        name,
        kind,
        inputs,
        labels,
        ids=known or paths or [str(row) for row in range(table.num_rows)],
        locations=locations,
        declared=declared,
        notes=notes,
    )


def label_column(name: str, names: Sequence[str], columns: Columns) -> str | None:
    """Which of the columns of a table holds the labels."""
    return _find("label", columns.label, LABEL_NAMES, {column: column for column in names}, name)


def _find(kind: str, asked: str | None, usual: Sequence[str], names: dict[str, str], table: str) -> str | None:
    if asked is not None:
        return lookup(f"{kind} column of {table}", asked, names)
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _id_column(table: pa.Table, columns: Columns, names: dict[str, str], name: str, label: str | None) -> str | None:
    """The column that names the samples: as asked, `id`, or one named like `patient_id` that has no value twice."""
    found = _find("id", columns.id, ID_NAMES, names, name)
    if found is not None:
        return found
    for each in names:
        if each != label and ID_NAME.search(each) and _is_plain(table.schema.field(each).type):
            column = table[each]
            if column.null_count == 0 and pc.count_distinct(column).as_py() == len(column) > 1:
                return each
    return None


def _rows(table: pa.Table, columns: Columns, decimal: str, label: str | None, id_column: str | None) -> TableRows:
    """The columns to learn from, and what the others are."""
    beside = []
    if id_column is not None:
        beside.append(Beside(id_column, "id", "names the samples, and is not learned from"))
    if label is not None:
        beside.append(Beside(label, "label", "the given labels"))
    taken = {column.name for column in beside}
    rest = [column for column in table.column_names if column not in taken]
    return TableRows(table.select(rest), decimal, columns.wishes, tuple(beside))


def _image_column(table: pa.Table, columns: Columns, names: dict[str, str], name: str, root: Path | None) -> str | None:
    """The column of images: as asked, or one with a usual name that holds bytes or paths of images."""
    found = _find("image", columns.image, IMAGE_NAMES, names, name)
    if found is None:
        return None
    kind = table.schema.field(found).type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_struct(kind):
        return found
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    return found if columns.image is not None or _are_paths(table[found], root) else None


def _are_paths(column: pa.ChunkedArray, root: Path | None) -> bool:
    """Whether texts name images: most end like image files, or one of the first is a file."""
    some = column.drop_null().slice(0, LOOKED_AT)
    if not len(some):
        return False
    if pc.mean(pc.match_substring_regex(pc.utf8_trim_whitespace(some), IMAGE_SUFFIX).cast(pa.int8())).as_py() > 0.5:
        return True
    paths = [text for text in some.slice(0, TRIED).to_pylist() if 0 < len(text) <= LONGEST_PATH and "\0" not in text]
    return any(_is_file((root or Path()) / path) for path in paths)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


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
