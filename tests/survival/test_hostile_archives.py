"""Archives that unpack to more than they should are refused before they are unpacked."""

import gzip
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile import FROM_PROC, Corpus, cifar, noise, npy_header, with_labels

corpus = Corpus()
pytestmark = FROM_PROC


def packed(path: Path, name: str, head: bytes, size: int, fill: bytes = b"\0") -> None:
    """An archive with one member of so many equal bytes after its head."""
    archive = zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open(name, "w", force_zip64=True) as file:
        file.write(head)
        for _ in range(size >> 20):
            file.write(fill * (1 << 20))


@corpus.case("npz", quick=True)
def zip_bomb_as_npz(world):
    packed(world.here / "x.npz", "x.npy", npy_header((1 << 20, 1 << 10)), 1 << 30)
    packed(world.here / "x.npz", "y.npy", npy_header((1 << 20,)), 1 << 20)
    return noise(world, "x.npz")


@corpus.case("npz")
def npz_of_many_tiny_rows(world):
    for name, shape in (("x.npy", (24 << 20, 1)), ("y.npy", (24 << 20,))):
        packed(world.here / "x.npz", name, npy_header(shape), 24 << 20)
    return noise(world, "x.npz")


@corpus.case("npz")
def npz_that_claims_petabytes(world):
    for name, shape in (("x.npy", (1 << 40, 1 << 10)), ("y.npy", (1 << 40,))):
        packed(world.here / "x.npz", name, npy_header(shape), 0)
    return noise(world, "x.npz")


@corpus.case("npz")
def npz_of_rows_without_content(world):
    packed(world.here / "x.npz", "x.npy", npy_header((1 << 28, 0), "<f4"), 0)
    packed(world.here / "x.npz", "y.npy", npy_header((1 << 28,), "|S0"), 0)
    return noise(world, "x.npz")


@corpus.case("npz")
def npz_members_outside_the_root(world):
    with zipfile.ZipFile(world.here / "x.npz", "w") as archive:
        for name in ("../../../x.npy", "/tmp/y.npy", "x.npy"):
            archive.writestr(name, npy_header((4, 2)) + bytes(8))
    return noise(world, "x.npz")


@corpus.case("labels file")
def labels_without_content(world):
    packed(world.here / "evil.npz", "label.npy", npy_header((1 << 28,), "<U0"), 0)
    return with_labels(world, "evil.npz")


@corpus.case("labels file")
def zip_bomb_as_labels(world):
    packed(world.here / "evil.pt", "evil/data.pkl", b"\x80\x02", 600 << 20, b"N")
    return with_labels(world, "evil.pt")


@corpus.case("labels file")
def endless_steps_as_labels(world):
    world.write("evil.pt", b"\x80\x02" + b"N" * (60 << 20) + b".")
    return with_labels(world, "evil.pt")


@corpus.case("named")
def names_inside_names_inside_names(world):
    laughs: object = "ha"
    for _ in range(60):
        laughs = [laughs, laughs]
    cifar(world, pickle.dumps({"label_names": [laughs] * 10}))
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@corpus.case("named")
def gzip_bomb_as_mnist(world):
    for name, shape in (("images-idx3", (1 << 18, 64, 64)), ("labels-idx1", (1 << 18,))):
        head = struct.pack(f">{len(shape) + 1}I", 0x800 + len(shape), *shape)
        with gzip.open(world.here / f"train-{name}-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(head)
            for _ in range(int(np.prod(shape)) >> 18):
                file.write(bytes(1 << 18))
    return noise(world, "mnist", "pair:0.1", "--root", world.here)


@pytest.mark.parametrize("name", corpus.names())
def test_a_bomb_is_not_unpacked(name, world, usual):
    corpus.meet(name, world, usual)
