"""Data that is already in Python: arrays, DataFrames, torch data sets and Hugging Face data sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError
from ..samples import Dataset
from .arrays import from_arrays
from .table import LABEL_NAMES


def as_dataset(data: Any, labels: Any = None, *, test: Any = None, name: str = "data") -> Dataset:
    """A data set from what Python code has.

    `data` is an array of images or features with `labels`; a DataFrame of feature columns and a label column; a torch
    data set of (image or features, label) pairs; or a Hugging Face data set with a label and an image or features.
    For columns, `labels` names the label's, if its name is not a usual one. `test` is of the same kind, or an (inputs,
    labels) pair.
    """
    held = None
    if test is not None:
        pair = (
            test if isinstance(test, tuple) and len(test) == 2 else _pair(test, None if _is_array(labels) else labels)
        )
        held = dict(zip(("x", "y"), (np.asarray(part) for part in pair), strict=True))
    x, y = _pair(data, labels)
    return from_arrays(name, {"x": x, "y": y}, held)


def _pair(data: Any, labels: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if isinstance(data, Tensor | np.ndarray | list):
        if labels is None:
            raise InputError("an array of samples needs its labels beside it: as_dataset(x, y)")
        return np.asarray(data), np.asarray(labels)
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return _from_hugging_face(data, labels)
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        label = _label_column([str(column) for column in data.columns], labels)
        return data.drop(columns=label).to_numpy(dtype=np.float32), data[label].to_numpy()
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        pairs = [data[i] for i in range(len(data))]
        return np.stack([_pixels(x) for x, _ in pairs]), np.asarray([int(y) if _is_array(y) else y for _, y in pairs])
    raise InputError(f"a {type(data).__name__} is no array, DataFrame, torch data set or Hugging Face data set")


def _from_hugging_face(data: Any, labels: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    label = _label_column(data.column_names, labels)
    values = np.asarray(data[label])
    names = getattr(data.features[label], "names", None)
    y = values if names is None else np.asarray(names)[values]
    if "image" in data.column_names:
        return np.stack([_pixels(image) for image in data["image"]]), y
    rest = [column for column in data.column_names if column != label]
    return np.stack([np.asarray(data[column], dtype=np.float32) for column in rest], axis=1), y


def _label_column(columns: Sequence[str], asked: Any) -> str:
    if asked is not None and asked not in columns:
        raise InputError(f"there is no column {asked!r}; there are {', '.join(columns)}")
    found = asked if asked is not None else next((name for name in LABEL_NAMES if name in columns), None)
    if found is None:
        raise InputError(f"no column looks like labels; name one of {', '.join(columns)}")
    return str(found)


def _pixels(value: Any) -> np.ndarray[Any, Any]:
    """An image as uint8, channels where they were; floats in 0..1, as transforms to tensors give, are scaled back."""
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.ndim >= 2:
        if array.min() < 0 or array.max() > 1:
            raise InputError("images of floats must lie in 0..1; give them before normalisation")
        return (array * 255).round().astype(np.uint8)
    return array


def _is_array(value: Any) -> bool:
    return isinstance(value, torch.Tensor | np.ndarray | list)
