"""How much is read on a file's word: what never ends, or would unpack to far more than it is, is refused before."""

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..errors import InputError

READ_WHOLE = 64 << 20
UNPACKED_FREELY = 64 << 20
LARGEST_RATIO = 200
ROW_BYTES = 128
"""What Python keeps of a sample beside its values: id, place and label."""


def sized(file: str) -> Path:
    """The path of a file that exists and is small enough to be read whole."""
    if not os.path.isfile(file):
        raise InputError(f"there is no file {file}")
    if os.path.getsize(file) > READ_WHOLE:
        raise InputError(f"{file} has {os.path.getsize(file) >> 20} MB; at most {READ_WHOLE >> 20} MB are read")
    return Path(file)


def regular(path: Path) -> Path:
    """The path, if it leads to a regular file: a pipe would block, and a device never ends."""
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    return path


def most_unpacked(path: Path) -> int:
    """How many bytes may come out of a packed file; honest data is rarely packed by more than a factor of ten."""
    return max(UNPACKED_FREELY, LARGEST_RATIO * path.stat().st_size)


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a packed file that would take so many bytes of memory."""
    if size > most_unpacked(path):
        raise InputError(
            f"{path} has {path.stat().st_size:,} bytes but would unpack to {size >> 20:,} MiB; at most "
            f"{LARGEST_RATIO} times its size is taken, so store it without compression if it is really so"
        )


def check_filled(path: Path, name: str, array: NDArray[Any]) -> None:
    """Refuse an array that claims rows but has no bytes in them."""
    if array.ndim and len(array) > array.nbytes:
        raise InputError(f"{path} has {len(array):,} rows in {name!r}, but nothing in them")
