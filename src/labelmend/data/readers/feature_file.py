"""Features that the user computed: one row per sample, in `.safetensors` or `.npz`; nothing is unpickled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import InputError, listed
from ..encode import as_encoded
from ..kinds.encoded import Encoding
from ..kinds.features import Features
from ..limits import regular
from ..samples import Samples
from .npz import read_npz

SUFFIXES = (".npz", ".safetensors")
PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".joblib", ".ckpt")
NAMES = ("features", "x", "embeddings")
TEST_NAMES = ("features_test", "x_test", "embeddings_test")
IDS = "ids"
LARGEST_HEADER = 4 << 20
FROM_FILE = "file"


@dataclass(frozen=True)
class FeatureFile:
    """Rows of features, the ids they belong to where the file has them, and rows of the test set where it has those."""

    name: str
    rows: Tensor
    ids: Sequence[str] | None = None
    test: Tensor | None = None

    def check_length(self, samples: Samples) -> None:
        """Refuse a file that cannot belong to these samples, all that the source has."""
        if self.ids is None and len(self.rows) != len(samples):
            raise InputError(
                f"{self.name} has {len(self.rows):,} rows of features for {len(samples):,} samples of {samples.name}; "
                "it takes one a sample in the order of the source, or an array 'ids' beside them"
            )

    def given_to(self, samples: Samples, all_ids: Sequence[str]) -> Samples:
        """The samples as these rows; `all_ids` are those of the whole source, in its order."""
        rows = _matched(self.rows, self.ids or all_ids, samples.ids, self.name)
        encoding = Encoding(FROM_FILE)
        found = as_encoded(samples, rows, encoding)
        if samples.test is None:
            return found
        if self.test is None or len(self.test) != len(samples.test):
            has = "none" if self.test is None else f"{len(self.test):,}"
            raise InputError(
                f"{samples.name} has {len(samples.test):,} test samples, but {self.name} has {has} in an array "
                f"{TEST_NAMES[0]!r}; give one row per sample there too"
            )
        return replace(found, test=as_encoded(samples.test, self.test, encoding))


def open_features(path: Path) -> Samples:
    """The rows of a file as samples without labels."""
    file = read_feature_file(path)
    ids = file.ids or [str(row) for row in range(len(file.rows))]
    locations = [f"{path.name} row {row}" for row in range(len(ids))]
    return Samples.read(path.name, Features(), file.rows, None, ids=ids, locations=locations)


def read_feature_file(path: Path) -> FeatureFile:
    """The features in a file: in an array `features`, `x` or `embeddings`, or in the only one of two dimensions."""
    if path.suffix in PICKLED:
        raise InputError(
            f"{path} is a pickle by its name, which could run code and is not read; save the features as .npz or "
            ".safetensors"
        )
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} is no file of features; they are taken from {' or '.join(SUFFIXES)}")
    arrays: Mapping[str, NDArray[Any]] = read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    rows = next((arrays[name] for name in NAMES if name in arrays), None)
    if rows is None:
        tables = [array for name, array in arrays.items() if array.ndim == 2 and name not in TEST_NAMES]
        if len(tables) != 1:
            present = listed(map(repr, arrays)) or "nothing"
            raise InputError(f"{path} has no array {NAMES[0]!r} of [samples, columns]; it holds {present}")
        (rows,) = tables
    test = next((arrays[name] for name in TEST_NAMES if name in arrays), None)
    ids = arrays.get(IDS)
    if ids is not None and (ids.ndim != 1 or ids.dtype.kind not in "iuU" or len(ids) != len(rows)):
        raise InputError(f"{path} has ids of shape {ids.shape} and type {ids.dtype} for {len(rows):,} rows of features")
    found = _checked(path, rows)
    held = None if test is None else _checked(path, test)
    if held is not None and held.shape[1] != found.shape[1]:
        raise InputError(f"{path} has {found.shape[1]} features a sample, but {held.shape[1]} for the test set")
    return FeatureFile(path.name, found, None if ids is None else [str(value) for value in ids.tolist()], held)


def _read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    regular(path)
    try:
        with path.open("rb") as file:
            if int.from_bytes(file.read(8), "little") > LARGEST_HEADER:
                raise InputError(f"{path} cannot be read as safetensors: its header is too long")
        with safe_open(path, framework="pt") as content:
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from None
    floats = (torch.float16, torch.bfloat16)
    return {name: (value.float() if value.dtype in floats else value).numpy() for name, value in tensors.items()}


def _checked(path: Path, rows: NDArray[Any]) -> Tensor:
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or 0 in rows.shape:
        raise InputError(
            f"{path} has features of shape {rows.shape} and type {rows.dtype}; they are numbers [samples, columns]"
        )
    with np.errstate(over="ignore"):
        values = torch.from_numpy(rows.astype(np.float32))
    bad = (~values.isfinite()).any(dim=1).nonzero()[:, 0]
    if len(bad):
        raise InputError(f"{path} has a missing or infinite value in row {int(bad[0])} of its features")
    return values


def _matched(rows: Tensor, ids: Sequence[str], wanted: Sequence[str], name: str) -> Tensor:
    """Rows of the wanted ids, in their order; of rows with one id the first counts."""
    position: dict[str, int] = {}
    for row, id in enumerate(ids):
        position.setdefault(id, row)
    missing = [id for id in wanted if id not in position]
    if missing:
        raise InputError(
            f"{name} has no features of {len(missing):,} samples, the first of which is {missing[0]!r:.200}"
        )
    return rows[[position[id] for id in wanted]]
