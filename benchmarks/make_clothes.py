"""Rebuild the embedded set `clothes` from the files of Fashion-MNIST; the result is the same to the byte.

    python benchmarks/make_clothes.py [--root FOLDER] [--out src/labelmend/data/embedded]

Every class gives as many pictures as every other: 200 of the training file and 50 of the test file, those whose
numbers have the smallest SHA-256. A hash chooses at random and, unlike a generator of random numbers, stays the same
in every version of every library. All pictures are on one sheet, clothes.png, in the order of clothes.csv.
"""

import argparse
import hashlib
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelmend.data.readers.named.clothes import ACROSS, EMBEDDED, NAMES, SIDE
from labelmend.data.readers.named.idx import FASHION_NAMES, fashion_mnist
from labelmend.data.samples import Samples

Bytes = NDArray[np.uint8]
PER_CLASS = {"train": 200, "test": 50}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, help="folder of the IDX files; by default Debian's dataset-fashion-mnist")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    asked = parser.parse_args()
    for name, content in built(asked.root).items():
        (asked.out / name).write_bytes(content)
        print(f"{asked.out / name}: {len(content):,} bytes")


def built(root: Path | None = None) -> dict[str, bytes]:
    """The two files by name."""
    train = fashion_mnist(root)
    assert train.test is not None
    pictures, lines = [], ["id,label"]
    for split, samples in (("train", train), ("test", train.test)):
        rows = chosen(split, samples)
        pictures.append(samples.loaded(rows).numpy()[:, 0])
        labels = [NAMES[FASHION_NAMES.index(samples.label_names[row])] for row in rows]
        lines += [f"{samples.ids[row]},{label}" for row, label in zip(rows, labels, strict=True)]
    return {
        "clothes.png": png(contact_sheet(np.concatenate(pictures))),
        "clothes.csv": ("\n".join(lines) + "\n").encode(),
    }


def chosen(split: str, samples: Samples) -> list[int]:
    """Rows of a balanced choice, in their order."""
    rows: list[int] = []
    for name in FASHION_NAMES:
        members = [row for row, label in enumerate(samples.label_names) if label == name]
        members.sort(key=lambda row: hashlib.sha256(f"clothes {split} {row}".encode()).digest())
        rows += members[: PER_CLASS[split]]
    return sorted(rows)


def contact_sheet(pictures: Bytes) -> Bytes:
    """Pictures [n, side, side] as one, row by row."""
    return pictures.reshape(-1, ACROSS, SIDE, SIDE).transpose(0, 2, 1, 3).reshape(-1, ACROSS * SIDE)


def png(pixels: Bytes) -> bytes:
    """A grey PNG. Not Pillow's: the compressor that it brings along changes from version to version."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(filtered(pixels).tobytes(), 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def filtered(pixels: Bytes) -> Bytes:
    """Each line by the PNG filter that leaves the smallest differences, after the number of that filter."""
    here = pixels.astype(np.int16)
    padded = np.pad(here, ((1, 0), (1, 0)))
    left, up, corner = padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1]
    guess = left + up - corner
    to_left, to_up, to_corner = (np.abs(guess - near) for near in (left, up, corner))
    paeth = np.where((to_left <= to_up) & (to_left <= to_corner), left, np.where(to_up <= to_corner, up, corner))
    predicted = np.stack([np.zeros_like(here), left, up, (left + up) // 2, paeth])
    differences = (here - predicted).astype(np.uint8)
    cost = np.abs(differences.view(np.int8).astype(np.int64)).sum(axis=2)
    best = cost.argmin(axis=0)
    lines = differences[best, np.arange(len(pixels))]
    return np.concatenate([best[:, None].astype(np.uint8), lines], axis=1)


if __name__ == "__main__":
    main()
