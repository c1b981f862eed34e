"""Photographs of clothes that labelmend carries: a part of Fashion-MNIST (Zalando SE, MIT licence)."""

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ....errors import InputError
from ...kinds.images import Images
from ...samples import Samples

EMBEDDED = Path(__file__).parents[2] / "embedded"
SHEET, LABELS = "clothes.png", "clothes.csv"
SIDE = 28
ACROSS = 50
"""Pictures in a line of the sheet."""
NAMES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def clothes(root: Path | None = None) -> Samples:
    """2,000 photographs of clothes to train on and 500 to test on, grey, 28x28 pixels, ten classes alike in number.

    Ids are those of `fashion-mnist`, from which benchmarks/make_clothes.py takes them. `root` is not needed.
    """
    lines = _content(LABELS).decode().splitlines()[1:]
    pictures = _pictures(len(lines))
    rows = {part: [row for row, line in enumerate(lines) if line.startswith(part)] for part in ("train/", "test/")}

    def split(part: str, held: Samples | None) -> Samples:
        ids, labels = zip(*(lines[row].split(",") for row in rows[part]), strict=True)
        return Samples.read(
            "clothes",
            Images(flips=True),
            pictures[rows[part]],
            labels,
            ids=ids,
            locations=ids,
            declared=NAMES,
            test=held,
        )

    return split("train/", split("test/", None))


def _pictures(count: int) -> Tensor:
    """The pictures of the sheet, uint8 [count, 1, side, side]."""
    damaged = f"{EMBEDDED / SHEET} is damaged: it does not hold {count} pictures; install labelmend again"
    try:
        with Image.open(io.BytesIO(_content(SHEET)), formats=("PNG",)) as image:
            sheet = np.array(image)
    except (OSError, ValueError):
        raise InputError(damaged) from None
    if sheet.shape != (count // ACROSS * SIDE, ACROSS * SIDE) or sheet.dtype != np.uint8:
        raise InputError(damaged)
    tiles = sheet.reshape(-1, SIDE, ACROSS, SIDE).transpose(0, 2, 1, 3).reshape(-1, 1, SIDE, SIDE)
    return torch.from_numpy(np.ascontiguousarray(tiles))


def _content(name: str) -> bytes:
    try:
        return (EMBEDDED / name).read_bytes()
    except OSError as error:
        raise InputError(f"{EMBEDDED / name} cannot be read: {error.strerror}; install labelmend again") from None
