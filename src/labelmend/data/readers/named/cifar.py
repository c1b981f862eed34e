"""CIFAR-10 and CIFAR-100, as pickled batches, binary batches or parquet files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....errors import InputError
from ...preflight import clean_label
from ...samples import Samples
from ..inert_pickle import read_inert_pickle
from .files import Labelled, absent, checked_labels, content, folders, in_memory, with_subfolder
from .parquet import open_parquets

CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


@dataclass(frozen=True)
class CifarLayout:
    """Where one of the two CIFAR sets keeps what; the last of a binary row's label bytes is the label."""

    name: str
    folder: str
    binary_folder: str
    train: Sequence[str]
    test: str
    names: tuple[str, str]
    labels_key: str
    label_bytes: int
    class_names: Sequence[str]

    def load(self, root: Path | None) -> Samples:
        places = folders(self.name, root)
        for place in with_subfolder(places, self.folder):
            if (place / self.train[0]).is_file():
                return self._samples(place, self._batch, "")
        for place in with_subfolder(places, self.binary_folder):
            if (place / f"{self.train[0]}.bin").is_file():
                return self._samples(place, self._rows, ".bin")
        if (places[0] / "train.parquet").is_file():
            return open_parquets(self.name, places[0], "test", self.class_names)
        wanted = f"the folder {self.folder} or {self.binary_folder}, or train.parquet and test.parquet,"
        raise absent(self.name, places, wanted)

    def _samples(self, place: Path, read: Callable[[Path], Labelled], suffix: str) -> Samples:
        images, labels = zip(*(read(place / f"{file}{suffix}") for file in self.train), strict=True)
        test = read(place / f"{self.test}{suffix}")
        names = self._class_names(place / self.names[0])
        return in_memory(self.name, (np.concatenate(images), np.concatenate(labels)), test, names, flips=True)

    def _batch(self, path: Path) -> Labelled:
        entries = read_inert_pickle(path)
        images, labels = entries.get("data"), entries.get(self.labels_key)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or not isinstance(labels, list):
            raise InputError(f"{path} is damaged: it lacks an array 'data' of bytes or a list {self.labels_key!r}")
        if images.ndim != 2 or images.shape[1] != 3072 or len(images) != len(labels) or not labels:
            raise InputError(f"{path} is damaged: {len(labels)} labels and data of shape {images.shape}, not [N, 3072]")
        if not all(type(label) is int and 0 <= label <= 255 for label in labels):
            raise InputError(f"{path} is damaged: not all of {self.labels_key!r} are small numbers")
        return images.reshape(-1, 3, 32, 32), checked_labels(path, np.array(labels, np.uint8), len(self.class_names))

    def _rows(self, path: Path) -> Labelled:
        length = self.label_bytes + 3072
        rows = np.frombuffer(content(path), np.uint8)
        if not len(rows) or len(rows) % length:
            raise InputError(f"{path} is damaged: its {len(rows)} bytes are not rows of {length}")
        labels, images = np.split(rows.reshape(-1, length), [self.label_bytes], axis=1)
        return images.reshape(-1, 3, 32, 32), checked_labels(path, labels[:, -1], len(self.class_names))

    def _class_names(self, path: Path) -> Sequence[str]:
        if not path.is_file():
            return self.class_names
        found = read_inert_pickle(path).get(self.names[1])
        listed = [name for name in found if isinstance(name, str | bytes)] if isinstance(found, list) else []
        names = [_usable_name(path, name.decode("latin1") if isinstance(name, bytes) else name) for name in listed]
        if len(set(names)) != len(self.class_names):
            raise InputError(f"{path} is damaged: {self.names[1]!r} should be {len(self.class_names)} different names")
        return names


def cifar10(root: Path | None) -> Samples:
    """CIFAR-10 from its python or binary batches, or from parquet files."""
    layout = CifarLayout(
        name="cifar10",
        folder="cifar-10-batches-py",
        binary_folder="cifar-10-batches-bin",
        train=[f"data_batch_{number}" for number in range(1, 6)],
        test="test_batch",
        names=("batches.meta", "label_names"),
        labels_key="labels",
        label_bytes=1,
        class_names=CIFAR10_NAMES,
    )
    return layout.load(root)


def cifar100(root: Path | None) -> Samples:
    """CIFAR-100 with its fine labels, from its python or binary files, or from parquet files."""
    layout = CifarLayout(
        name="cifar100",
        folder="cifar-100-python",
        binary_folder="cifar-100-binary",
        train=["train"],
        test="test",
        names=("meta", "fine_label_names"),
        labels_key="fine_labels",
        label_bytes=2,
        class_names=[str(number) for number in range(100)],
    )
    return layout.load(root)


def _usable_name(path: Path, name: str) -> str:
    try:
        return clean_label(name)
    except ValueError as error:
        raise InputError(f"{path} is damaged: it has {error}") from None
