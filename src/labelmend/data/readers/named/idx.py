"""MNIST and Fashion-MNIST, as IDX files."""

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....errors import InputError
from ...limits import most_unpacked
from ...samples import Samples
from .files import Bytes, Labelled, absent, checked_labels, folders, in_memory, with_subfolder

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


def mnist(root: Path | None) -> Samples:
    """Handwritten digits from IDX files; a mirrored digit is another thing, so there are no flips."""
    return _idx_samples("mnist", folders("mnist", root), [str(digit) for digit in range(10)], flips=False)


def fashion_mnist(root: Path | None) -> Samples:
    """Fashion-MNIST from IDX files: the user's own, or those of Debian's package dataset-fashion-mnist."""
    places = folders("fashion-mnist", root) + ([DEBIAN_FASHION] if root is None else [])
    return _idx_samples("fashion-mnist", places, FASHION_NAMES, flips=True)


def _idx_samples(name: str, places: Sequence[Path], names: Sequence[str], *, flips: bool) -> Samples:
    for place in with_subfolder(places, "MNIST/raw" if name == "mnist" else "FashionMNIST/raw"):
        if any((place / f"train-images-idx3-ubyte{suffix}").is_file() for suffix in ("", ".gz")):
            train, test = (_idx_split(place, part, len(names)) for part in ("train", "t10k"))
            if train[0].shape[1:] != test[0].shape[1:]:
                raise InputError(
                    f"{place} has training images of {train[0].shape[2:]}, test ones of {test[0].shape[2:]}"
                )
            return in_memory(name, train, test, names, flips=flips)
    files = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte"
    raise absent(name, places, f"{files} (each plain or .gz)")


def _idx_split(place: Path, part: str, classes: int) -> Labelled:
    images, path = _idx(place / f"{part}-images-idx3-ubyte", 3)
    labels, labels_path = _idx(place / f"{part}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise InputError(f"{path} has {len(images)} images, but {labels_path} has {len(labels)} labels")
    return images[:, None], checked_labels(labels_path, labels, classes)


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
