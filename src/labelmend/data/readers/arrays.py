"""Arrays: the embedded digits and `.npz` archives."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...core import generator
from ...errors import InputError, listed
from ..limits import ROW_BYTES, check_filled, check_unpacked, regular
from ..preflight import clean_label
from ..samples import Dataset, NoisyLabels, Split

Arrays = Mapping[str, NDArray[np.generic]]
DIGITS_TEST_SHARE = 0.2


def digits() -> Dataset:
    """scikit-learn's 1,797 handwritten digits of 8x8 pixels; a fixed fifth is the test split."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    inputs = torch.from_numpy((loaded.images * (255 / 16)).round().astype(np.uint8))[:, None]
    labels = torch.from_numpy(loaded.target.astype(np.int64))
    order = torch.randperm(len(labels), generator=generator(0, "digits test split"))
    held = round(DIGITS_TEST_SHARE * len(labels))
    test, train = order[:held].sort().values, order[held:].sort().values
    return Dataset(
        name="digits",
        inputs=inputs[train],
        labels=NoisyLabels(labels[train]),
        class_names=[str(digit) for digit in range(10)],
        ids=[str(i) for i in train.tolist()],
        test=Split(inputs[test], labels[test]),
        flips=False,
    )


def read_npz(path: Path, *, needed: tuple[str, ...] = ("x", "y")) -> Arrays:
    """Arrays of an archive with at least those needed; nothing in it is unpickled."""
    regular(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            check_unpacked(path, sum(entry.file_size for entry in archive.zip.infolist()))
            arrays = {name: archive[name] for name in archive.files if name in ("x", "y", "x_test", "y_test")}
            present = archive.files
    except InputError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {error}") from None
    except Exception as error:  # a damaged zip raises zipfile and zlib errors of its own
        raise InputError(f"{path} is a damaged archive: {error}") from None
    for name in needed:
        if name not in arrays:
            raise InputError(f"{path} has no array {name!r}; it holds {listed(map(repr, present)) or 'nothing'}")
    for name, array in arrays.items():
        check_filled(path, name, array)
    check_unpacked(path, sum(array.nbytes + ROW_BYTES * np.atleast_1d(array).shape[0] for array in arrays.values()))
    return arrays


def from_arrays(name: str, arrays: Arrays, test: Arrays | None = None) -> Dataset:
    """A data set of arrays `x` and `y`, evaluated on `test` or on `x_test` and `y_test` where given."""
    if test is None and "x_test" in arrays and "y_test" in arrays:
        test = {"x": arrays["x_test"], "y": arrays["y_test"]}
    inputs = as_inputs(name, arrays["x"], arrays["y"])
    values, labels = np.unique(_label_column(name, arrays["y"]), return_inverse=True)
    split = None
    if test is not None:
        split = _split(name, test, values, inputs)
    return Dataset(
        name=name,
        inputs=inputs,
        labels=NoisyLabels(torch.from_numpy(labels.astype(np.int64))),
        class_names=[_class_name(name, value) for value in values],
        ids=[str(i) for i in range(len(inputs))],
        test=split,
        flips=inputs.dim() == 4 and inputs.shape[1] == 3,
    )


def _class_name(name: str, value: object) -> str:
    try:
        clean_label(str(value))
    except ValueError as error:
        raise InputError(f"{name} has {error} in y") from None
    return str(value)


def _split(name: str, test: Arrays, values: NDArray[np.generic], inputs: Tensor) -> Split:
    held = as_inputs(name, test["x"], test["y"])
    if held.shape[1:] != inputs.shape[1:] or held.dtype != inputs.dtype:
        raise InputError(
            f"test samples of shape {tuple(held.shape[1:])} do not match training samples of "
            f"shape {tuple(inputs.shape[1:])}"
        )
    column = _label_column(name, test["y"])
    unknown = np.setdiff1d(column, values)
    if len(unknown):
        raise InputError(f"the test labels hold {unknown[0]!r}, which no training sample has")
    return Split(held, torch.from_numpy(np.searchsorted(values, column).astype(np.int64)))


def as_inputs(name: str, x: NDArray[np.generic], y: NDArray[np.generic]) -> Tensor:
    """Samples as a tensor: uint8 images with channels first, or float32 features."""
    if len(np.atleast_1d(x)) != len(np.atleast_1d(y)):
        raise InputError(f"{name} has {len(x)} samples in x but {len(y)} labels in y")
    if x.ndim == 2 and x.dtype.kind in "fiub":
        features = torch.from_numpy(x.astype(np.float32))
        if not features.isfinite().all():
            row = int((~features.isfinite()).any(dim=1).nonzero()[0])
            raise InputError(f"{name} has a missing or infinite feature in row {row} of x; fill or drop it first")
        return features
    if x.ndim in (3, 4) and x.dtype == np.uint8:
        images = x[..., None] if x.ndim == 3 else x
        if images.shape[-1] in (1, 3):
            images = np.moveaxis(images, -1, 1)
        if images.shape[1] in (1, 3):
            return torch.from_numpy(np.ascontiguousarray(images))
    raise InputError(
        f"{name} has x of shape {x.shape} and type {x.dtype}; images are uint8 [N, height, width], [N, height, width, "
        "channels] or [N, channels, height, width] with 1 or 3 channels, features are numbers [N, columns]"
    )


def _label_column(name: str, y: NDArray[np.generic]) -> NDArray[np.generic]:
    if y.ndim != 1 or y.dtype.kind not in "iufbSU":
        raise InputError(f"{name} has y of shape {y.shape} and type {y.dtype}; labels are one number or text a sample")
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y.astype(np.float64)))
        if len(bad):
            raise InputError(f"{name} has {len(bad)} labels that are NaN or infinite, the first in row {bad[0]}")
        if (y == np.floor(y.astype(np.float64))).all():
            return y.astype(np.int64)
    return y
