"""Data that is already in Python: arrays, texts, DataFrames, Arrow tables, torch and Hugging Face data sets."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from torch import Tensor

from ...errors import InputError
from ..columns import ColumnWishes
from ..kinds import Kind
from ..kinds.images import ImageFiles, Images
from ..samples import Samples
from .arrays import from_arrays, label_values
from .dialect import column_names
from .table import IMAGE_NAMES, LABEL_NAMES, Columns, from_table
from .texts import from_texts

TAKEN = "an array, a list of texts, a DataFrame, an Arrow table, a torch data set or a Hugging Face data set"
AS_THEY_ARE = ColumnWishes()
INPUT_KEYS = (*IMAGE_NAMES, "pixel_values", "x", "input", "inputs", "features")


def from_objects(
    data: Any,
    labels: Any = None,
    *,
    label: str | None = None,
    image: str | None = None,
    test: Any = None,
    name: str = "data",
    wishes: ColumnWishes = AS_THEY_ARE,
) -> Samples:
    """Samples of what Python code has.

    `data` is an array of images or features, or a list of texts, with `labels`, or a pair of both; a table of columns
    to learn from, or with an `image` column of paths, bytes or pictures, and a `label` column; or a sequence such as a
    torch data set of pairs or dictionaries. `test` is of the same form. Wishes are about the columns of a table to
    learn from.
    """
    if isinstance(labels, str):
        labels, label = None, labels
    columns = Columns(image, label, wishes=wishes)
    samples = _read(data, labels, columns, name)
    if test is None:
        return samples
    held = _read(test, None, columns, f"the test set of {name}")
    return replace(samples, test=held)


def inputs_from_objects(data: Any, kind: Kind, *, name: str = "data") -> Samples:
    """Samples without labels, for a model of this kind: arrays, pictures, texts, or a table."""
    table = _as_table(data, Columns())
    if isinstance(table, pa.Table):
        return from_table(name, table, Columns(), root=None, labelled=False, images=kind.name == Images.name)
    if isinstance(table, dict):
        data = list(table[next(column for column in IMAGE_NAMES if column in table)])
    values = [data] if isinstance(data, Image.Image) else _listed(data)
    texts = _as_texts(values)
    if texts is not None:
        return from_texts(name, texts, None)
    if not isinstance(values, Tensor | np.ndarray | list | tuple):
        raise InputError(f"a {type(data).__name__} is not {TAKEN}")
    return replace(_from_values(values, np.zeros(len(values), dtype=np.int64), name), problems=())


def _read(data: Any, labels: Any, columns: Columns, name: str) -> Samples:
    if isinstance(data, tuple) and len(data) == 2 and labels is None:
        data, labels = data
    table = _as_table(data, columns)
    if table is not None:
        return _from_columns(table, labels, columns, name)
    data = _listed(data)
    if isinstance(data, Tensor | np.ndarray | list | tuple):
        if labels is None and not _are_pairs(data):
            raise InputError(f"{name} is an array of samples without labels; give them too: train((x, y)) or labels=y")
        if labels is not None:
            return _from_values(data, _plain(labels), name)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, str | bytes):
        items = [data[i] for i in range(len(data))]
        inputs, found = zip(*(_pair(item, columns, name) for item in items), strict=True) if items else ((), ())
        names = getattr(data, "classes", None)
        plain = [value.item() if hasattr(value, "item") else value for value in found]
        if isinstance(names, list | tuple) and all(isinstance(v, int) and 0 <= v < len(names) for v in plain):
            plain = [str(names[value]) for value in plain]
        return _from_values(list(inputs), np.asarray(plain), name)
    raise InputError(f"a {type(data).__name__} is not {TAKEN}")


def _as_table(data: Any, columns: Columns) -> "pa.Table | dict[str, Any] | None":
    """Columns by name, as an Arrow table where their types allow it."""
    if isinstance(data, pa.Table):
        return _plain_types(data)
    if hasattr(data, "features") and hasattr(data, "with_format") and hasattr(data, "column_names"):
        return data.with_format("arrow")[:]  # a Hugging Face data set
    is_frame = hasattr(data, "iloc") and hasattr(data, "columns")
    if hasattr(data, "__arrow_c_stream__") and not is_frame:
        try:
            return _plain_types(pa.table(data))  # polars, DuckDB and others
        except (pa.ArrowException, TypeError):
            return None
    if not is_frame:
        return None
    image = columns.image or next((name for name in IMAGE_NAMES if name in data.columns), None)
    if image is not None and len(data) and not isinstance(data[image].iloc[0], str | bytes | Mapping):
        return {str(name): data[name].to_numpy() for name in data.columns}  # pictures, which Arrow does not know
    names = column_names([str(name) for name in data.columns])
    return _plain_types(
        pa.Table.from_arrays([_series(data.iloc[:, number]) for number in range(len(names))], names=names)
    )


def _series(values: Any) -> "pa.Array | pa.ChunkedArray":
    """A column of a DataFrame; one of mixed types as text."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, OverflowError):
        missing = values.isna().to_numpy()
        return pa.array([None if gap else str(value) for gap, value in zip(missing, values, strict=True)], pa.string())


def _plain_types(table: pa.Table) -> pa.Table:
    """The same columns, texts as Arrow's usual type for them."""
    fields = [
        field.with_type(pa.large_string()) if str(field.type) == "string_view" else field for field in table.schema
    ]
    return table.cast(pa.schema(fields, table.schema.metadata)).rename_columns(column_names(table.column_names))


def _from_columns(table: "pa.Table | dict[str, Any]", labels: Any, columns: Columns, name: str) -> Samples:
    names = list(table) if isinstance(table, dict) else table.column_names
    for kind, asked in (("label", columns.label), ("image", columns.image)):
        if asked is not None and asked not in names:
            raise InputError(f"{name} has no {kind} column {asked!r}; its columns are {', '.join(names)}")
    found = columns.label or next((column for column in LABEL_NAMES if column in names), None)
    if labels is not None:
        found = "labels given beside it"
        values = _plain(labels)
        given = values if isinstance(table, dict) else pa.array(label_values(name, values))
        if len(values) != (len(next(iter(table.values()))) if isinstance(table, dict) else table.num_rows):
            raise InputError(f"{name} has {len(values)} labels for another number of rows")
        table = table | {found: given} if isinstance(table, dict) else table.append_column(found, given)
    if found is None:
        raise InputError(f"no column of {name} looks like labels; name it: label= one of {', '.join(names)}")
    if isinstance(table, dict):
        image = columns.image or next(column for column in IMAGE_NAMES if column in names)
        return _from_values(list(table[image]), np.asarray(table[found]), name)
    return from_table(name, table, replace(columns, label=found), root=None)


def _listed(data: Any) -> Any:
    """The values of a column, such as a Series of pandas; anything else as it is."""
    is_column = hasattr(data, "to_numpy") and not hasattr(data, "columns") and getattr(data, "ndim", 1) == 1
    return data.to_numpy() if is_column else data


def _as_texts(values: Any) -> "list[str | None] | None":
    """The values as texts, if they are such, with None for missing ones; else None."""
    if isinstance(values, np.ndarray):
        values = values.tolist() if values.ndim == 1 and values.dtype.kind in "UOT" else None
    if not isinstance(values, list | tuple) or not any(isinstance(value, str) for value in values):
        return None
    missing = [value is None or type(value).__name__ in ("float", "NAType") for value in values]
    texts = [value if isinstance(value, str) else None for value in values]
    return None if any(t is None and not gone for t, gone in zip(texts, missing, strict=True)) else texts


def _from_values(values: Any, labels: np.ndarray[Any, Any], name: str) -> Samples:
    """Samples of texts, of arrays, or of a list of arrays or pictures, which may differ in size."""
    texts = _as_texts(values)
    if texts is not None:
        return from_texts(name, texts, label_values(name, labels))
    if isinstance(values, Tensor | np.ndarray) and np.asarray(values).dtype != object:
        return from_arrays(name, _plain(values), labels)
    items = [np.asarray(_upright(value)) for value in values]
    shapes = {item.shape for item in items}
    if len(shapes) == 1 and items[0].dtype != object:
        return from_arrays(name, np.stack(items), labels)
    if len(labels) != len(items):
        raise InputError(f"{name} has {len(items)} samples but {len(labels)} labels")
    locations = [f"{name} row {row}" for row in range(len(items))]
    files = ImageFiles([_encoded(item, where) for item, where in zip(items, locations, strict=True)], locations)
    ids = [str(row) for row in range(len(items))]
    return Samples.read(name, Images(), files, label_values(name, labels), ids=ids, locations=locations)


def _encoded(item: np.ndarray[Any, Any], where: str) -> bytes:
    """A picture as a PNG file, so that pictures of several sizes take the way of files."""
    if item.dtype.kind == "f" and item.ndim >= 2 and item.size and item.min() >= 0 and item.max() <= 1:
        item = (item * 255).round().astype(np.uint8)
    if item.ndim == 3 and item.shape[0] in (1, 3) and item.shape[-1] not in (1, 3):
        item = np.moveaxis(item, 0, -1)
    if item.dtype != np.uint8 or not (item.ndim == 2 or (item.ndim == 3 and item.shape[-1] in (1, 3))):
        raise InputError(
            f"{where} has shape {item.shape} and type {item.dtype}, and the samples differ in shape; only pictures may"
        )
    buffer = io.BytesIO()
    Image.fromarray(item[..., 0] if item.ndim == 3 and item.shape[-1] == 1 else item).save(buffer, "PNG")
    return buffer.getvalue()


def _upright(value: Any) -> Any:
    """A PIL image in grey or RGB; anything else as it is."""
    if isinstance(value, Image.Image):
        return value if value.mode in ("L", "RGB") else value.convert("RGB")
    return value


def _pair(item: Any, columns: Columns, name: str) -> tuple[Any, Any]:
    """Input and label of one item of a data set."""
    if isinstance(item, Mapping):
        inputs = _key(item, columns.image, INPUT_KEYS, "input", name)
        return item[inputs], item[_key(item, columns.label, LABEL_NAMES, "label", name)]
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    raise InputError(f"an item of {name} is a {type(item).__name__}; it must be a pair of input and label, or a dict")


def _key(item: Mapping[str, Any], asked: str | None, usual: Sequence[str], kind: str, name: str) -> str:
    found = next((key for key in ([asked] if asked else usual) if key in item), None)
    if found is None:
        raise InputError(f"an item of {name} has no {kind}; its keys are {', '.join(map(str, item))}")
    return found


def _are_pairs(data: Any) -> bool:
    return isinstance(data, list | tuple) and len(data) > 0 and isinstance(data[0], tuple | Mapping)


def _plain(values: Any) -> np.ndarray[Any, Any]:
    """A tensor, Series or list as an array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
