"""Arrays in memory: images or rows of features with their labels."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import InputError
from ..kinds import Kind
from ..kinds.features import Features
from ..kinds.images import Images, as_images
from ..samples import Samples

Array = NDArray[Any]


def from_arrays(name: str, x: Array, y: Array | None, *, test: tuple[Array, Array] | None = None) -> Samples:
    """Samples of arrays `x` and `y`, evaluated on those of `test`; without `y`, samples without labels."""
    kind, inputs = as_inputs(name, x)
    if y is not None and len(np.atleast_1d(y)) != len(inputs):
        raise InputError(f"{name} has {len(inputs)} samples in x but {len(np.atleast_1d(y))} labels in y")
    rows = range(len(inputs))
    held = None if test is None else from_arrays(f"the test set of {name}", *test)
    return Samples.read(
        name,
        kind,
        inputs,
        None if y is None else label_values(name, y),
        ids=[str(row) for row in rows],
        locations=[f"{name} row {row}" for row in rows],
        test=held,
    )


def as_inputs(name: str, x: Array) -> tuple[Kind, Tensor]:
    """Samples as a tensor, uint8 images with channels first or float32 features, and which kind they are."""
    if x.ndim == 2 and x.dtype.kind in "fiub":
        with np.errstate(over="ignore"):
            return Features(), torch.from_numpy(x.astype(np.float32))
    images = as_images(name, x)
    if images is None:
        raise InputError(
            f"{name} has x of shape {x.shape} and type {x.dtype}; images are uint8 or floats in 0..1, [N, height, "
            "width], [N, height, width, channels] or [N, channels, height, width] with 1 or 3 channels, features are "
            "numbers [N, columns]"
        )
    return Images(flips=images.shape[1] == 3), images


def label_values(name: str, y: Array) -> list[object]:
    """Labels as plain values: numbers, truth values or text."""
    if y.ndim != 1 or y.dtype.kind not in "iufbSUO":
        raise InputError(f"{name} has y of shape {y.shape} and type {y.dtype}; labels are one number or text a sample")
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8")
    values: list[object] = y.tolist()
    return values
