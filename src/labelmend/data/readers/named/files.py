"""What the readers of published data sets share: where files are looked for, and how they are read."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ....errors import InputError
from ...kinds.images import ImageFiles, Images
from ...limits import regular
from ...samples import Samples

Bytes = NDArray[np.uint8]
Labelled = tuple[Bytes, Bytes]
"""Images [N, channels, height, width] and the number of the class of each."""


def folders(name: str, root: Path | None) -> list[Path]:
    """Where a data set is looked for."""
    return [Path("data") / name if root is None else root]


def with_subfolder(places: Sequence[Path], folder: str) -> list[Path]:
    """The folders themselves, each followed by its subfolder of this name."""
    return [candidate for place in places for candidate in (place, place / folder)]


def absent(name: str, places: Sequence[Path], wanted: str) -> InputError:
    """The error that says what is missing and where to put it."""
    where = " or ".join(map(str, places))
    return InputError(f"{name} is not in {where}; put {wanted} there, or name the folder that holds them with --root")


def in_memory(name: str, train: Labelled, test: Labelled, names: Sequence[str], *, flips: bool) -> Samples:
    """Training and test images that came as arrays."""

    def split(part: str, labelled: Labelled, held: Samples | None) -> Samples:
        images, labels = labelled
        return Samples.read(
            name,
            Images(flips=flips),
            torch.from_numpy(images.copy()),
            [names[label] for label in labels.tolist()],
            ids=row_ids(part, len(images)),
            locations=row_ids(part, len(images)),
            declared=names,
            test=held,
        )

    return split("train", train, split("test", test, None))


def in_files(name: str, root: Path, pairs: Sequence[tuple[Path, str]], names: dict[str, str]) -> Samples:
    """Image files with the code of the class of each; `names` are all class names by their codes."""
    ids = [path.relative_to(root).as_posix() for path, _ in pairs]
    files = ImageFiles([path for path, _ in pairs], ids, root)
    labels = [names[code] for _, code in pairs]
    return Samples.read(name, Images(), files, labels, ids=ids, locations=ids, declared=list(names.values()))


def row_ids(split: str, count: int) -> list[str]:
    """Ids of samples that are rows of a file."""
    return [f"{split}/{row:05d}" for row in range(count)]


def checked_labels(path: Path, labels: Bytes, classes: int) -> Bytes:
    """The labels, if all of them are numbers of classes."""
    if labels.max() >= classes:
        raise InputError(f"{path} is damaged: row {labels.argmax()} has the label {labels.max()} of {classes} classes")
    return labels


def content(path: Path) -> bytes:
    """The bytes of a regular file."""
    try:
        return regular(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def lines(path: Path) -> list[tuple[int, str]]:
    """Lines that are not blank, with their numbers from 1."""
    try:
        text = content(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is not UTF-8 text ({error.reason})") from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def distinct(names: Sequence[str], codes: Sequence[object]) -> list[str]:
    """The names, with the code added to any that several classes share: 'crane' is a bird and a machine."""
    return [f"{name} ({code})" if names.count(name) > 1 else name for name, code in zip(names, codes, strict=True)]


def relative(file: Path, number: int, text: str) -> str:
    """The text, if it is a path that stays below its folder: the lists are not ours, so they may say anything."""
    leaves = re.match(r"[/\\~]|.:", text) or "\0" in text or ".." in re.split(r"[/\\]", text)
    if leaves or not text:
        raise InputError(
            f"{file} line {number}: {text!r:.100} is not a path below the folder; '..' and '/' are refused"
        )
    return text
