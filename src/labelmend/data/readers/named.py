"""Well-known data sets, read from the user's own files in the forms in which they are published."""

import gzip
import math
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import InputError
from ..limits import most_unpacked, regular
from ..listing import Listing
from ..preflight import clean_label
from ..samples import Dataset, NoisyLabels, Split
from .inert_pickle import read_inert_pickle
from .table import Columns, open_table

Loaded = Dataset | tuple[Listing, Listing | None]
Bytes = NDArray[np.uint8]
Labelled = tuple[Bytes, Bytes]

CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FASHION_NAMES = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]
DEBIAN_FASHION = Path("/usr/share/datasets/fashion-mnist")


@dataclass(frozen=True)
class _Cifar:
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

    def load(self, root: Path | None) -> Loaded:
        places = _places(self.name, root)
        for place in _below(places, self.folder):
            if (place / self.train[0]).is_file():
                return self._dataset(place, self._batch, "")
        for place in _below(places, self.binary_folder):
            if (place / f"{self.train[0]}.bin").is_file():
                return self._dataset(place, self._rows, ".bin")
        if (places[0] / "train.parquet").is_file():
            return _parquets(self.name, places[0], "test", self.class_names)
        wanted = f"the folder {self.folder} or {self.binary_folder}, or train.parquet and test.parquet,"
        raise _absent(self.name, places, wanted)

    def _dataset(self, place: Path, read: Callable[[Path], Labelled], suffix: str) -> Dataset:
        images, labels = zip(*(read(place / f"{file}{suffix}") for file in self.train), strict=True)
        test = read(place / f"{self.test}{suffix}")
        names = self._class_names(place / self.names[0])
        return _dataset(self.name, (np.concatenate(images), np.concatenate(labels)), test, names, flips=True)

    def _batch(self, path: Path) -> Labelled:
        entries = read_inert_pickle(path)
        images, labels = entries.get("data"), entries.get(self.labels_key)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or not isinstance(labels, list):
            raise InputError(f"{path} is damaged: it lacks an array 'data' of bytes or a list {self.labels_key!r}")
        if images.ndim != 2 or images.shape[1] != 3072 or len(images) != len(labels) or not labels:
            raise InputError(f"{path} is damaged: {len(labels)} labels and data of shape {images.shape}, not [N, 3072]")
        if not all(type(label) is int and 0 <= label <= 255 for label in labels):
            raise InputError(f"{path} is damaged: not all of {self.labels_key!r} are small numbers")
        return images.reshape(-1, 3, 32, 32), _checked(path, np.array(labels, np.uint8), len(self.class_names))

    def _rows(self, path: Path) -> Labelled:
        length = self.label_bytes + 3072
        content = np.frombuffer(_content(path), np.uint8)
        if not len(content) or len(content) % length:
            raise InputError(f"{path} is damaged: its {len(content)} bytes are not rows of {length}")
        labels, images = np.split(content.reshape(-1, length), [self.label_bytes], axis=1)
        return images.reshape(-1, 3, 32, 32), _checked(path, labels[:, -1], len(self.class_names))

    def _class_names(self, path: Path) -> Sequence[str]:
        if not path.is_file():
            return self.class_names
        found = read_inert_pickle(path).get(self.names[1])
        listed = [name for name in found if isinstance(name, str | bytes)] if isinstance(found, list) else []
        names = [_usable_name(path, name.decode("latin1") if isinstance(name, bytes) else name) for name in listed]
        if len(set(names)) != len(self.class_names):
            raise InputError(f"{path} is damaged: {self.names[1]!r} should be {len(self.class_names)} different names")
        return names


def cifar10(root: Path | None) -> Loaded:
    """CIFAR-10 from its python or binary batches, or from parquet files."""
    layout = _Cifar(
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


def cifar100(root: Path | None) -> Loaded:
    """CIFAR-100 with its fine labels, from its python or binary files, or from parquet files."""
    layout = _Cifar(
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


def mnist(root: Path | None) -> Loaded:
    """Handwritten digits from IDX files; a mirrored digit is another thing, so there are no flips."""
    return _idx_dataset("mnist", _places("mnist", root), [str(digit) for digit in range(10)], flips=False)


def fashion_mnist(root: Path | None) -> Loaded:
    """Fashion-MNIST from IDX files: the user's own, or those of Debian's package dataset-fashion-mnist."""
    places = _places("fashion-mnist", root) + ([DEBIAN_FASHION] if root is None else [])
    return _idx_dataset("fashion-mnist", places, FASHION_NAMES, flips=True)


def tiny_imagenet(root: Path | None) -> Loaded:
    """TinyImageNet from its official tree or from parquet files; its validation images are the test listing."""
    places = _places("tiny-imagenet", root)
    for place in _below(places, "tiny-imagenet-200"):
        if (place / "wnids.txt").is_file():
            return _tiny_tree(place)
        if (place / "train.parquet").is_file():
            return _parquets("tiny-imagenet", place, "val", None)
    raise _absent("tiny-imagenet", places, "the folder tiny-imagenet-200, or train.parquet and val.parquet,")


def clothing1m(root: Path | None) -> Loaded:
    """Clothing1M: noisy training keys with their noisy labels, and clean test keys with their clean labels."""
    place = _places("clothing1m", root)[0]
    train = "noisy_train_key_list.txt", "noisy_label_kv.txt"
    for file in (*train, "category_names_eng.txt"):
        if not (place / file).is_file():
            raise _absent("clothing1m", [place], f"{file}, the other official lists and the folder images")
    names = [line for _, line in _lines(place / "category_names_eng.txt")]
    held = place / "clean_test_key_list.txt"
    test = _keyed(place, held.name, "clean_label_kv.txt", names) if held.is_file() else None
    return _keyed(place, *train, names), test


NAMED: dict[str, Callable[[Path | None], Loaded]] = {
    "cifar10": cifar10,
    "cifar100": cifar100,
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "tiny-imagenet": tiny_imagenet,
    "clothing1m": clothing1m,
}


def _places(name: str, root: Path | None) -> list[Path]:
    return [Path("data") / name if root is None else root]


def _below(places: Sequence[Path], folder: str) -> list[Path]:
    return [candidate for place in places for candidate in (place, place / folder)]


def _absent(name: str, places: Sequence[Path], wanted: str) -> InputError:
    where = " or ".join(map(str, places))
    return InputError(f"{name} is not in {where}; put {wanted} there, or name the folder that holds them with --root")


def _dataset(name: str, train: Labelled, test: Labelled, names: Sequence[str], *, flips: bool) -> Dataset:
    inputs, observed, held, held_labels = (torch.from_numpy(part.copy()) for part in (*train, *test))
    return Dataset(
        name=name,
        inputs=inputs,
        labels=NoisyLabels(observed.long()),
        class_names=names,
        ids=_row_ids("train", len(inputs)),
        test=Split(held, held_labels.long()),
        flips=flips,
    )


def _row_ids(split: str, count: int) -> list[str]:
    return [f"{split}/{row:05d}" for row in range(count)]


def _checked(path: Path, labels: Bytes, classes: int) -> Bytes:
    if labels.max() >= classes:
        raise InputError(f"{path} is damaged: row {labels.argmax()} has the label {labels.max()} of {classes} classes")
    return labels


def _content(path: Path) -> bytes:
    try:
        return regular(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _lines(path: Path) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1."""
    try:
        text = _content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is not UTF-8 text ({error.reason})") from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _idx_dataset(name: str, places: Sequence[Path], names: Sequence[str], *, flips: bool) -> Dataset:
    for place in _below(places, "MNIST/raw" if name == "mnist" else "FashionMNIST/raw"):
        if any((place / f"train-images-idx3-ubyte{suffix}").is_file() for suffix in ("", ".gz")):
            train, test = (_idx_split(place, part, len(names)) for part in ("train", "t10k"))
            if train[0].shape[1:] != test[0].shape[1:]:
                raise InputError(
                    f"{place} has training images of {train[0].shape[2:]}, test ones of {test[0].shape[2:]}"
                )
            return _dataset(name, train, test, names, flips=flips)
    files = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte"
    raise _absent(name, places, f"{files} (each plain or .gz)")


def _idx_split(place: Path, part: str, classes: int) -> Labelled:
    images, path = _idx(place / f"{part}-images-idx3-ubyte", 3)
    labels, labels_path = _idx(place / f"{part}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise InputError(f"{path} has {len(images)} images, but {labels_path} has {len(labels)} labels")
    return images[:, None], _checked(labels_path, labels, classes)


def _idx(plain: Path, dimensions: int) -> tuple[Bytes, Path]:
    """The array of an IDX file of bytes, and the file that it was in: the plain one, or the one ending in .gz."""
    path = plain if plain.is_file() else plain.with_name(f"{plain.name}.gz")
    try:
        with gzip.open(path) if path != plain else path.open("rb") as file:
            header = np.frombuffer(file.read(4 + 4 * dimensions).ljust(4 + 4 * dimensions), dtype=">u4").tolist()
            if header[0] != 0x800 + dimensions:
                raise InputError(f"{path} is damaged: it does not begin like an IDX file of {dimensions} dimensions")
            expected = math.prod(header[1:])
            # a header may promise any size, so nothing is read that the file on disk could not hold
            largest = path.stat().st_size if path == plain else most_unpacked(path)
            content = file.read(expected + 1) if 0 < expected <= largest else b""
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if len(content) != expected or not expected:
        raise InputError(f"{path} is damaged: its header promises {expected} bytes, which it does not hold exactly")
    return np.frombuffer(content, dtype=np.uint8).reshape(header[1:]), path


def _parquets(name: str, place: Path, test: str, usual: Sequence[str] | None) -> tuple[Listing, Listing | None]:
    held = place / f"{test}.parquet"
    train = _parquet(name, place / "train.parquet", usual)
    return train, _parquet(name, held, usual) if held.is_file() else None


def _parquet(name: str, path: Path, usual: Sequence[str] | None) -> Listing:
    """Images as encoded bytes; class names from Hugging Face's metadata, else the usual ones, else numbers."""
    listing = open_table(path, Columns())
    if not isinstance(listing, Listing):
        raise InputError(f"{path} has no column 'image' that holds encoded images")
    names = listing.class_names or usual
    labels, known = [_class_name(value, names) for value in listing.labels], set(names or ())
    for row, (image, label) in enumerate(zip(listing.images, labels, strict=True)):
        if not isinstance(image, bytes) or not image:
            raise InputError(f"{path} is damaged: row {row} has no image bytes")
        if known and label not in known:
            raise InputError(f"{path} is damaged: row {row} has the label {label!r:.40}, which is no class")
    ids = _row_ids(path.stem, len(listing))
    return replace(listing, name=name, labels=labels, ids=ids, class_names=names)


def _class_name(value: object, names: Sequence[str] | None) -> str:
    return names[value] if names and isinstance(value, int) and 0 <= value < len(names) else str(value)


def _usable_name(path: Path, name: str) -> str:
    try:
        return clean_label(name)
    except ValueError as error:
        raise InputError(f"{path} is damaged: it has {error}") from None


def _distinct(names: Sequence[str], codes: Sequence[object]) -> list[str]:
    """The names, with the code added to any that several classes share: 'crane' is a bird and a machine."""
    return [f"{name} ({code})" if names.count(name) > 1 else name for name, code in zip(names, codes, strict=True)]


def _tiny_tree(place: Path) -> tuple[Listing, Listing | None]:
    file = place / "wnids.txt"
    wnids = list(dict.fromkeys(_relative(file, number, line) for number, line in _lines(file)))
    words = place / "words.txt"
    pairs = [line.partition("\t") for _, line in _lines(words)] if words.is_file() else []
    described = {wnid: text.split(",")[0].strip() for wnid, _, text in pairs}
    names = dict(zip(wnids, _distinct([described.get(wnid) or wnid for wnid in wnids], wnids), strict=True))
    found = [(path, wnid) for wnid in wnids for path in (place / "train" / wnid / "images").glob("*.JPEG")]
    order = {wnid: number for number, wnid in enumerate(wnids)}
    found.sort(key=lambda pair: (order[pair[1]], len(pair[0].name), pair[0].name))  # _2 before _10
    if not found:
        raise InputError(f"{place / 'train'} has no images; they belong in train/<wnid>/images/*.JPEG")
    annotations, held = place / "val" / "val_annotations.txt", []
    for number, line in _lines(annotations) if annotations.is_file() else []:
        image, _, rest = line.partition("\t")
        wnid = rest.split("\t")[0]
        if wnid not in names:
            raise InputError(f"{annotations} line {number} has the class {wnid!r:.40}, which wnids.txt does not list")
        held.append((place / "val" / "images" / _relative(annotations, number, image), wnid))
    train, test = (_listed("tiny-imagenet", place, pairs, names) for pairs in (found, held))
    return train, test if held else None


def _listed(name: str, place: Path, pairs: Sequence[tuple[Path, str]], names: dict[str, str]) -> Listing:
    ids = [path.relative_to(place).as_posix() for path, _ in pairs]
    return Listing(
        name=name,
        images=[path for path, _ in pairs],
        labels=[names[code] for _, code in pairs],
        ids=ids,
        places=ids,
        class_names=list(names.values()),
        root=place,
    )


def _keyed(place: Path, keys: str, labels: str, names: Sequence[str]) -> Listing:
    numbered = {str(number): name for number, name in enumerate(_distinct(names, range(len(names))))}
    given = dict(line.rpartition(" ")[::2] for _, line in _lines(place / labels))
    pairs = []
    for number, line in _lines(place / keys):
        key = _relative(place / keys, number, line)
        label = given.get(key)
        if label not in numbered:
            fault = "no label" if label is None else f"the label {label!r:.40}, which is no class number,"
            raise InputError(f"{place / keys} line {number}: {key!r:.100} has {fault} in {labels}")
        pairs.append((place / key, label))
    if not pairs:
        raise InputError(f"{place / keys} lists no images")
    return _listed("clothing1m", place, pairs, numbered)


def _relative(file: Path, number: int, text: str) -> str:
    """The text, if it is a path that stays below its folder: the lists are not ours, so they may say anything."""
    leaves = re.match(r"[/\\~]|.:", text) or "\0" in text or ".." in re.split(r"[/\\]", text)
    if leaves or not text:
        raise InputError(
            f"{file} line {number}: {text!r:.100} is not a path below the folder; '..' and '/' are refused"
        )
    return text
