"""Weights in the file format that torch wrote before 1.6, read without unpickling: pickles first, then raw numbers."""

import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..inert_pickle import InertReader, Marker

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
LARGEST = 1 << 30
ORDERED = "collections OrderedDict"
TENSOR = "torch._utils _rebuild_tensor_v2"
STORAGES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str
    count: int


@dataclass(frozen=True)
class _View:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _WeightsReader(InertReader):
    """Dictionaries whose values are views of storages that follow in the file."""

    markers: ClassVar[frozenset[str]] = frozenset({ORDERED, TENSOR, *STORAGES})

    def reduced(self, function: object, arguments: object) -> object:
        match function, arguments:
            case Marker(name), () if name == ORDERED:
                return {}
            case Marker(name), (_Storage() as storage, int(offset), tuple(shape), tuple(strides), *_) if name == TENSOR:
                numbers = (offset, *shape, *strides)
                if len(shape) != len(strides) or any(type(value) is not int or value < 0 for value in numbers):
                    raise InputError("a tensor in it has no sensible shape")
                return _View(storage, offset, shape, strides)
        return super().reduced(function, arguments)

    def build(self, target: object, state: object) -> None:
        """Of a dictionary of weights, the state is the versions of its layers, which nothing here needs."""
        if not isinstance(target, dict):
            super().build(target, state)

    def persistent(self, key: object) -> object:
        match key:
            case ("storage", Marker(kind), str(name), str(), int(count), None) if kind in STORAGES and count >= 0:
                return _Storage(name, STORAGES[kind], count)
        return super().persistent(key)


def read_torch_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a file that `torch.save` wrote of a state dictionary before version 1.6; InputError if it is none."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"it has more than {LARGEST >> 20} MiB")
        stream = io.BytesIO(path.read_bytes())
        if InertReader(stream).read() != MAGIC or InertReader(stream).read() != VERSION:
            raise InputError("it does not begin as torch's files do")
        InertReader(stream).read()  # the sizes of types on the machine that wrote it, all of which the format fixes
        views, keys = _WeightsReader(stream).read(), InertReader(stream).read()
        if not isinstance(views, dict) or not isinstance(keys, list):
            raise InputError("it holds no dictionary of weights")
        storages = _storages(stream, keys, [view for view in views.values() if isinstance(view, _View)])
        return {str(name): _tensor(view, storages) for name, view in views.items() if isinstance(view, _View)}
    except InputError as error:
        raise InputError(f"the weights in {path} are refused: {error}") from None
    except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise InputError(f"the weights in {path} cannot be read: {error}") from None


def _storages(stream: io.BytesIO, keys: list[object], views: list[_View]) -> dict[str, NDArray[Any]]:
    wanted, found = {view.storage.key: view.storage for view in views}, {}
    for key in keys:
        storage = wanted[str(key)]
        count, size = int.from_bytes(stream.read(8), "little"), np.dtype(storage.dtype).itemsize
        content = stream.read(count * size) if count == storage.count else b""
        if len(content) != count * size:
            raise InputError("its raw numbers are cut off")
        found[storage.key] = np.frombuffer(content, dtype=storage.dtype)
    return found


def _tensor(view: _View, storages: dict[str, NDArray[Any]]) -> Tensor:
    """A copy of its own, whatever it shares with others in the file."""
    flat = torch.from_numpy(storages[view.storage.key].copy())
    last = view.offset + sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    if math.prod(view.shape) > len(flat) or last >= len(flat):
        raise InputError("a tensor in it reaches beyond its numbers")
    return flat.as_strided(view.shape, view.strides, view.offset).contiguous()
