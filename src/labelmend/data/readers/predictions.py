"""Predictions of anybody's model: probabilities, labels and ids in .npy, .npz, CSV, TSV, parquet and text files.

Files may come from anywhere: nothing is unpickled, and nothing is unpacked to far more than the file is.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...errors import InputError, listed
from ..limits import check_filled, regular, sized
from ..preflight import clean_label
from .delimited import class_label_names, read_delimited, read_parquet
from .dialect import USUAL
from .npz import read_npz
from .table import ID_NAMES, LABEL_NAMES

Array = NDArray[Any]
TABLES = (*USUAL, ".parquet")
PROBABILITY_SUFFIXES = (".npy", ".npz", *TABLES)
SUFFIXES = (*PROBABILITY_SUFFIXES, ".txt")
PROBABILITY_KEYS = ("pred_probs", "probabilities", "probs")
LABEL_KEYS = (*LABEL_NAMES, "given", "given_label")
TRUTH_KEYS = ("truth", "true_label", "true_labels", "clean_label", *LABEL_NAMES)
BESIDE = {*LABEL_KEYS, *TRUTH_KEYS, "predicted", "predicted_label", "suggested"}
"""Columns that may stand beside probabilities, unless they hold fractions."""
IDS_AS_TEXT = [spelled for name in ID_NAMES for spelled in (name, name.upper(), name.title())]


@dataclass(frozen=True)
class Probabilities:
    """Probabilities [n, C] or [passes, n, C], and names of classes and samples where the file has them."""

    values: Array
    class_names: list[str] | None = None
    ids: list[str] | None = None


@dataclass(frozen=True)
class Column:
    """One value a sample, and names of the samples where the file has them."""

    values: Array
    ids: list[str] | None = None


def read_probabilities(text: str) -> Probabilities:
    """The probabilities of `FILE` or `FILE:KEY`; an .npy file stays on the disk, and is read as it is used."""
    path, key = _split(text, "probabilities", PROBABILITY_SUFFIXES)
    if path.suffix in TABLES:
        if key:
            raise InputError(f"{text} names a column, but every class has one; give {path} alone")
        return _probability_columns(path, _read_table(path, IDS_AS_TEXT))
    if path.suffix == ".npy":
        return Probabilities(_floats(path, _read_npy(path)))
    arrays = read_npz(path)
    matrices = [name for name, array in arrays.items() if array.ndim in (2, 3) and array.dtype.kind == "f"]
    usual = PROBABILITY_KEYS if len(matrices) != 1 else (*PROBABILITY_KEYS, *matrices)
    values = _floats(path, arrays[_key(path, arrays, key, "probabilities", usual)])
    names, ids = arrays.get("class_names"), next((arrays[name] for name in ID_NAMES if name in arrays), None)
    return Probabilities(
        values, None if names is None else _cleaned(path, _texts(names)), None if ids is None else _texts(ids)
    )


def read_labels(text: str, *, usual: Sequence[str] = LABEL_KEYS) -> Column:
    """The labels of `FILE` or `FILE:KEY`, by default those under a usual name; whole numbers as such, else text."""
    path, values, ids = _read_column(text, "labels", usual)
    return Column(_labels(path, values), ids)


def read_ids(text: str) -> list[str]:
    """The ids of `FILE` or `FILE:KEY`, as text."""
    return _texts(_read_column(text, "ids", ID_NAMES)[1])


def _read_column(text: str, what: str, usual: Sequence[str]) -> tuple[Path, Any, list[str] | None]:
    """The file, the values that are asked for, and the ids that stand beside them."""
    path, key = _split(text, what, SUFFIXES)
    if path.suffix == ".txt":
        return path, _lines(path), None
    if path.suffix == ".npy":
        return path, _read_npy(path), None
    if path.suffix == ".npz":
        arrays = read_npz(path)
        beside = next((_texts(arrays[name]) for name in ID_NAMES if name in arrays), None)
        return path, arrays[_key(path, arrays, key, what, usual)], beside
    table = _read_table(path, None)
    key = _key(path, table.column_names, key, what, usual)
    values, names = table[key].to_pylist(), class_label_names(table.schema, key)
    if names is not None:
        values = [names[v] if isinstance(v, int) and 0 <= v < len(names) else v for v in values]
    return path, values, _id_column(table)


def read_class_names(text: str) -> list[str]:
    """Class names in the order of the columns: a file with a name a line, or the names joined by commas."""
    if Path(text).suffix == ".txt" or Path(text).is_file():
        return _cleaned(Path(text), _lines(Path(text)))
    return _cleaned(Path("--class-names"), text.split(","))


def in_order_of(ids: Sequence[str], column: Column, what: str) -> Array:
    """The values of a column in the order of these ids; as they are where the column has none."""
    if column.ids is None or column.ids == list(ids):
        return column.values
    row_of = {id: row for row, id in enumerate(column.ids)}
    missing = [id for id in ids if id not in row_of]
    if missing or len(row_of) != len(column.ids) or len(row_of) != len(ids):
        first = f", the first {missing[0]!r:.60}" if missing else ""
        raise InputError(f"{what} and probabilities have different ids: {len(missing):,} are missing{first}")
    return np.asarray(column.values[[row_of[id] for id in ids]])


def _split(text: str, what: str, suffixes: Sequence[str]) -> tuple[Path, str]:
    file, key = text, ""
    if Path(text).suffix not in suffixes:
        file, _, key = text.rpartition(":")
    if Path(file).suffix not in suffixes:
        raise InputError(f"{what} cannot be read from {text!r}; give FILE or FILE:KEY with {', '.join(suffixes)}")
    return Path(file), key


def _key(path: Path, found: Iterable[str], asked: str, what: str, usual: Sequence[str]) -> str:
    """The entry that is asked for, or has a usual name, or is the only one."""
    entries = list(found)
    likely = [asked] if asked else [name for name in usual if name in entries] or entries
    if likely[:1] and likely[0] in entries and (asked or likely is not entries or len(entries) == 1):
        return likely[0]
    missing = f"no {asked!r:.60}" if asked else f"no entry that is named like {what}"
    raise InputError(f"{path} has {missing}; name one of {listed(entries) or 'none'} as {path}:KEY")


def _read_npy(path: Path) -> Array:
    regular(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header raises whatever its text makes Python raise
        raise InputError(f"{path} cannot be read as an .npy file of plain values: {error!s:.200}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an archive; name it .npz")
    check_filled(path, "the array", array)
    return array


def _read_table(path: Path, text: Sequence[str] | None) -> pa.Table:
    regular(path)
    try:
        return read_parquet(path) if path.suffix == ".parquet" else read_delimited(path, text=text)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).splitlines()[0]:.300}") from None


def _id_column(table: pa.Table) -> list[str] | None:
    name = next((name for name in table.column_names if name.lower() in ID_NAMES), None)
    return None if name is None else _texts(table[name].to_pylist())


def _probability_columns(path: Path, table: pa.Table) -> Probabilities:
    """Numeric columns; those that `labelmend predict` wrote are p(CLASS)."""
    wrapped = [name for name in table.column_names if name.startswith("p(") and name.endswith(")")]
    chosen = wrapped or [field.name for field in table.schema if _may_be_class(field)]
    if chosen and all(_is_number(name) for name in chosen) and not all(name.isdecimal() for name in chosen):
        raise InputError(f"{path} has no header: its first line must name the classes")
    values = np.empty((table.num_rows, len(chosen)), np.float32)
    for column, name in enumerate(chosen):
        kind = table.schema.field(name).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InputError(f"column {name!r:.60} of {path} holds {kind}, not probabilities; leave it out")
        values[:, column] = table[name].to_numpy()
    names = [name[2:-1] for name in wrapped] if wrapped else chosen
    return Probabilities(values, _cleaned(path, names), _id_column(table))


def _may_be_class(field: pa.Field) -> bool:
    name = field.name.lower()
    return name not in ID_NAMES and (name not in BESIDE or pa.types.is_floating(field.type))


def _texts(values: Any) -> list[str]:
    return [str(value) for value in np.atleast_1d(np.asarray(values, dtype=object)).tolist()]


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _floats(path: Path, array: Array) -> Array:
    if array.dtype.kind not in "fiu" or array.ndim not in (2, 3):
        raise InputError(
            f"{path} holds {array.dtype} of shape {array.shape}; probabilities are numbers, [samples, classes] or "
            "[passes, samples, classes]"
        )
    return array


def _labels(path: Path, values: Any) -> Array:
    """Labels as whole numbers where all are such, else as clean names."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1 or values.dtype.kind not in "iufbSU":
            raise InputError(f"{path} holds {values.dtype} of shape {values.shape}; labels are one value a sample")
        if values.dtype.kind in "iub":
            return np.array(values)
        values = values.tolist()
    names = _cleaned(path, values)
    if all(name.lstrip("-").isdecimal() and len(name) < 19 and str(int(name)) == name for name in set(names)):
        return np.array([int(name) for name in names], np.int64)
    return np.array(names, dtype=object)


def _cleaned(path: Path, values: Iterable[Any]) -> list[str]:
    """Values as names of classes; each distinct one is looked at once."""
    known: dict[Any, str] = {}
    found = []
    for row, value in enumerate(values):
        if value not in known:
            plain = value.decode(errors="replace") if isinstance(value, bytes) else value
            try:
                known[value] = clean_label(plain)
            except ValueError as error:
                raise InputError(f"{path} has {error} in row {row + 1}") from None
        found.append(known[value])
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = sized(str(path)).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8") from None
    return text.removesuffix("\n").split("\n")
