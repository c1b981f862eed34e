"""Labels that live in a file of their own: noise written down once, or labels that people gave."""

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import InputError
from ..files import atomic
from .limits import sized
from .noise import NoiseSpec, nominal_rate, wrong_rate
from .readers.delimited import read_delimited
from .readers.inert_pickle import read_inert_pickle
from .readers.npz import read_npz
from .samples import NoisyLabels, Samples

Columns = Mapping[str, NDArray[np.generic]]
SUFFIXES = (".npz", ".csv", ".pt")
NOT_LABELS = ("ids", "class_names", "meta")


def write_label_file(path: Path, data: Samples, *, spec: NoiseSpec | None, seed: int) -> None:
    """Write the labels, the truth where known, and how they were made, to an .npz file without pickles."""
    if path.suffix != ".npz":
        raise InputError(f"{path} does not end in .npz, as a label file must")
    columns: dict[str, Any] = {
        "label": data.labels.observed.numpy().astype(np.int64),
        "ids": np.array(list(data.ids), dtype=np.str_),
        "class_names": np.array(list(data.class_names), dtype=np.str_),
    }
    if data.labels.truth is not None:
        columns["clean_label"] = data.labels.truth.numpy().astype(np.int64)
    meta = {
        "sha256": _digest(columns),
        "seed": seed,
        "noise": None if spec is None else str(spec),
        "nominal_rate": None if spec is None else nominal_rate(data, spec),
        "real_rate": wrong_rate(data.labels),
        "samples": len(data),
    }
    try:
        with atomic(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **columns, meta=np.array(json.dumps(meta)))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error}") from None


def read_labels(text: str, data: Samples) -> Samples:
    """The data set with the labels of `FILE` or `FILE:KEY`, and with the truth if the file holds a `clean_label`."""
    file, key = _split_key(text)
    columns = READERS[Path(file).suffix](file)
    if "meta" in columns:
        _check_unchanged(file, columns)
    if not key and "label" not in columns:
        keys = [name for name in columns if name not in NOT_LABELS]
        raise InputError(f"{file} has no column 'label'; name one of {', '.join(keys) or 'none'} as {file}:KEY")
    key = key or "label"
    if key not in columns or key in NOT_LABELS:
        raise InputError(f"{file} has no labels {key!r}; it holds {', '.join(columns)}")
    order = _order(file, columns.get("ids"), data)
    observed = class_numbers(f"{file}:{key}", columns[key], columns.get("class_names"), data)
    if len(observed) != len(data):
        raise InputError(f"{file}:{key} has {len(observed)} labels but {data.name} has {len(data)} samples")
    truth = None
    if "clean_label" in columns and columns["clean_label"].shape == observed.shape:
        truth = class_numbers(f"{file}:clean_label", columns["clean_label"], columns.get("class_names"), data)[order]
    labels = NoisyLabels(torch.from_numpy(observed[order]), None if truth is None else torch.from_numpy(truth))
    return replace(data, labels=labels)


def _split_key(text: str) -> tuple[str, str]:
    file, key = text, ""
    if Path(text).suffix not in SUFFIXES:
        file, _, key = text.rpartition(":")
    if Path(file).suffix not in SUFFIXES:
        raise InputError(f"labels cannot be read from {text!r}; give an .npz, .csv or .pt file, or FILE:KEY")
    return file, key


def _read_pt(file: str) -> Columns:
    """Arrays of a dictionary that torch saved, as CIFAR-N is published; nothing in the file is run."""
    entries = read_inert_pickle(sized(file))
    return {name: value for name, value in entries.items() if isinstance(value, np.ndarray)}


def _read_npz(file: str) -> Columns:
    return read_npz(sized(file))


def read_csv(file: str) -> Columns:
    """The columns of a .csv file by name, its ids under `ids`."""
    try:
        table = read_delimited(sized(file))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{file} cannot be read as a .csv file: {str(error).splitlines()[0]:.300}") from None
    if "id" not in table.column_names:
        raise InputError(f"{file} has no column 'id'; its first line names the columns, as in id,label")
    return {
        "ids" if name == "id" else name: np.array(table[name].to_pylist(), dtype=np.str_)
        for name in table.column_names
        if name not in NOT_LABELS
    }


def _check_unchanged(file: str, columns: Columns) -> None:
    try:
        unchanged = json.loads(str(columns["meta"]))["sha256"] == _digest(columns)
    except (ValueError, TypeError, KeyError, RecursionError):
        unchanged = False
    if not unchanged:
        raise InputError(f"the label file was changed: {file} does not match the sha256 it was written with")


def _digest(columns: Columns) -> str:
    """SHA-256 over ids, class names and both label columns."""
    kept = {name: values.tolist() for name, values in columns.items() if name != "meta"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def _order(file: str, ids: NDArray[np.generic] | None, data: Samples) -> NDArray[np.int64] | slice:
    """Where each sample of the data set stands in the file."""
    if ids is None:
        return slice(None)
    given = [str(name) for name in np.atleast_1d(ids).tolist()]
    place = {name: row for row, name in enumerate(given)}
    known = set(data.ids)
    refuse_ids(file, "occur more than once", [name for row, name in enumerate(given) if place[name] != row])
    refuse_ids(file, "are missing", [name for name in data.ids if name not in place])
    refuse_ids(file, f"are not in {data.name}", [name for name in given if name not in known])
    return np.array([place[name] for name in data.ids], dtype=np.int64)


def refuse_ids(file: str, fault: str, ids: Sequence[str]) -> None:
    """Refuse a file that has ids with this fault."""
    if ids:
        raise InputError(f"{file} has ids that {fault}: {len(ids)} of them, the first {ids[0]!r}")


def class_numbers(
    source: str, values: NDArray[np.generic], file_names: NDArray[np.generic] | None, data: Samples
) -> NDArray[np.int64]:
    """Labels as positions in the data set's classes.

    Text is a class name. A number is a position in the file's class names if it has them; otherwise a class name where
    the classes are numbers, so that classes 1..10 are not shifted by one, and a position where they are not.
    """
    if values.ndim != 1 or values.dtype.kind not in "iufU":
        raise InputError(
            f"{source} has shape {values.shape} and type {values.dtype}; labels are one number or name each"
        )
    known = {name: i for i, name in enumerate(data.class_names)}
    if values.dtype.kind != "U" and file_names is not None:
        known = {str(i): known[str(name)] for i, name in enumerate(file_names.tolist()) if str(name) in known}
    elif values.dtype.kind != "U" and not all(name.lstrip("-").isdecimal() for name in data.class_names):
        known = {str(i): i for i in range(len(data.class_names))}
    distinct, inverse = np.unique(values, return_inverse=True)
    found = np.array([known.get(_text(value), -1) for value in distinct.tolist()], dtype=np.int64)[inverse]
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        raise InputError(
            f"{source} has {len(wrong)} labels that are none of the {len(data.class_names)} classes of {data.name}, "
            f"the first {_text(values[wrong[0]].item())!r} in row {wrong[0]}"
        )
    return found


def _text(value: int | float | str) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


READERS = {".npz": _read_npz, ".csv": read_csv, ".pt": _read_pt}
