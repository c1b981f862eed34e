"""Label files written again with other labels and nothing else changed; new labels are copied from rows with them."""

import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from torch import Tensor

from ..data.preflight import clean_label
from ..data.readers.delimited import EXCEL, class_label_names, read_table
from ..data.readers.dialect import Dialect, column_names, detect_dialect
from ..data.readers.table import Columns, label_column
from ..data.samples import Samples
from ..errors import InputError
from .workbook import rewrite_workbook

END_OF_ROW = r"(?:\r\n|\r|\n|\Z)"
BLANK_LINES = re.compile(r"[\r\n]*")


@dataclass(frozen=True)
class Relabelling:
    """The class of every row of a source as it is and as it is wanted; None drops the row."""

    names: Sequence[str]
    wanted: Sequence[str | None]

    @property
    def kept(self) -> list[int]:
        """Rows that are not dropped."""
        return [row for row, name in enumerate(self.wanted) if name is not None]

    @property
    def changed(self) -> list[int]:
        """Rows that get another label or are dropped."""
        return [row for row, name in enumerate(self.wanted) if name != self.names[row]]

    def donors(self, further: Sequence[str] = ()) -> list[int]:
        """For each kept row, the row whose label it takes: itself, or the first row of the class that is wanted.

        So a label keeps the type, spelling and quotes of the source. Further classes count as rows after the last.
        """
        first: dict[str | None, int] = {}
        for row, name in enumerate([*self.names, *further]):
            first.setdefault(name, row)
        return [row if self.wanted[row] == self.names[row] else first[self.wanted[row]] for row in self.kept]


def rewrite(source: Path, to: Path, columns: Columns, rows: Relabelling) -> None:
    """Write a label file again with the labels that are wanted."""
    if source.suffix == ".npz":
        _rewrite_npz(source, to, rows)
    elif source.suffix == ".parquet":
        _rewrite_parquet(source, to, columns, rows)
    elif source.suffix in EXCEL:
        _rewrite_workbook(source, to, columns, rows)
    else:
        _rewrite_delimited(source, to, columns, rows)


def _rewrite_delimited(source: Path, to: Path, columns: Columns, rows: Relabelling) -> None:
    dialect, header = detect_dialect(source)
    content, names = dialect.decoded(source.read_bytes()), column_names(header)
    first = BLANK_LINES.match(content, len(dialect.preamble)).end()  # type: ignore[union-attr]
    _, _, body = _row(content, _row_pattern(dialect, 0), first)
    pattern = _row_pattern(dialect, names.index(label_column(source.name, names, columns) or ""))
    spans, end = [], body
    while (begin := BLANK_LINES.match(content, end).end()) < len(content):  # type: ignore[union-attr]
        *cell, end = _row(content, pattern, begin)
        spans.append((begin, *cell, end))
    if len(spans) != len(rows.names):
        raise InputError(f"{source} has {len(spans)} rows where {len(rows.names)} were read; save it as plain CSV")
    pieces, done = [], 0
    donors = dict(zip(rows.kept, rows.donors(), strict=True))
    for row in rows.changed:
        begin, cell_begin, cell_end, end = spans[row]
        if row in donors:
            _, new_begin, new_end, _ = spans[donors[row]]
            pieces += [content[done:cell_begin], content[new_begin:new_end]]
            done = cell_end
        else:
            pieces.append(content[done:begin])
            done = end
    to.write_bytes(dialect.encoded("".join([*pieces, content[done:]])))


def _row_pattern(dialect: Dialect, before: int) -> re.Pattern[str]:
    """One row; the group is the cell with `before` others before it. Possessive, so that no input makes it slow."""
    comma, quote = re.escape(dialect.delimiter), dialect.quote
    cell = rf"(?:{quote}(?:[^{quote}]++|{quote}{quote})*+{quote})?+[^\r\n{comma}]*+"
    return re.compile(rf"(?:{cell}{comma}){{{before}}}({cell})(?:{comma}{cell})*+{END_OF_ROW}")


def _row(content: str, pattern: re.Pattern[str], begin: int) -> tuple[int, int, int]:
    found = pattern.match(content, begin)
    if found is None:
        raise InputError(f"the row at character {begin} has no cell for a label")
    return (*found.span(1), found.end())


def _rewrite_workbook(source: Path, to: Path, columns: Columns, rows: Relabelling) -> None:
    names = read_table(source).table.column_names
    donors = dict(zip(rows.kept, rows.donors(), strict=True))
    label = names.index(label_column(source.name, names, columns) or "")
    rewrite_workbook(source, to, label, [donors.get(row) for row in range(len(rows.names))])


def _rewrite_parquet(source: Path, to: Path, columns: Columns, rows: Relabelling) -> None:
    with pq.ParquetFile(source) as file:
        table, stored = file.read(), file.metadata.row_group(0)
    chunks = [stored.column(i) for i in range(stored.num_columns)]
    codecs = {c.path_in_schema: "NONE" if c.compression == "UNCOMPRESSED" else c.compression for c in chunks}
    label = label_column(source.name, table.column_names, columns)
    column, further = table[label], class_label_names(table.schema, label)
    if further and pa.types.is_integer(column.type):  # a class without samples has a number too
        column = pa.chunked_array([*column.chunks, pa.array(range(len(further)), column.type)])
    labels = column.take(pa.array(rows.donors([clean_label(name) for name in further or ()]), pa.int64()))
    kept = table.filter(pa.array([name is not None for name in rows.wanted]))
    arrays = [labels if name == label else kept[name] for name in table.column_names]
    result = pa.Table.from_arrays(arrays, schema=table.schema)
    pq.write_table(result, to, compression=codecs, row_group_size=max(stored.num_rows, 1))


def _rewrite_npz(source: Path, to: Path, rows: Relabelling) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(to, "w") as new:
        for entry in old.infolist():
            info = zipfile.ZipInfo(entry.filename, entry.date_time)
            info.compress_type, info.external_attr = entry.compress_type, entry.external_attr
            array = _new_member(old, entry, rows)
            with old.open(entry) as reader, new.open(info, "w", force_zip64=True) as writer:
                if array is None:
                    shutil.copyfileobj(reader, writer)
                else:
                    np.lib.format.write_array(writer, array, allow_pickle=False)


def _new_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, rows: Relabelling) -> NDArray[Any] | None:
    """The array that replaces a member, or None if it stays: labels and, on dropping, arrays of one row per sample."""
    name, kept = entry.filename.removesuffix(".npy"), rows.kept
    if name in ("x_test", "y_test") or (name != "y" and len(kept) == len(rows.wanted)):
        return None
    with archive.open(entry) as file:
        try:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        except ValueError:  # pickled objects, which are never read
            return None
    if name == "y":
        return array[rows.donors()]
    return array[kept] if array.ndim and len(array) == len(rows.wanted) else None


def write_arrays(to: Path, data: Samples, names: Sequence[str | None]) -> None:
    """An .npz archive of a data set in memory with these labels; None leaves a sample out."""
    kept = [row for row, name in enumerate(names) if name is not None]
    arrays: dict[str, Any] = {
        "x": _channels_last(data.inputs)[kept],
        "y": _labels([names[row] or "" for row in kept], data),
    }
    if data.test is not None:
        held = data.test.label_names
        arrays |= {"x_test": _channels_last(data.test.inputs), "y_test": _labels(held, data)}
    np.savez(to, **arrays)


def _channels_last(inputs: object) -> NDArray[Any]:
    assert isinstance(inputs, Tensor)
    images: NDArray[Any] = inputs.permute(0, 2, 3, 1).numpy()
    return images[..., 0] if images.shape[-1] == 1 else images


def _labels(names: Sequence[str], data: Samples) -> NDArray[Any]:
    numbers = all(name.isdecimal() and str(int(name)) == name for name in data.class_names)
    return np.array([int(name) for name in names]) if numbers else np.array(names, dtype=np.str_)
