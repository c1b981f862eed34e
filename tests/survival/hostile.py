"""What the tests of hostile files share: a world for one case, the command that meets it, and what must hold after."""

import io
import os
import pickle
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labelmend.data.readers.named.digits import digits

ALLOWANCE = 200 << 10  # KiB, as the system counts
SECONDS = 60
STEERING = {*"\x1b\r\x07\x9b\u061c\u200e\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
EVIL = "\x1b[31mred\x1b]0;owned\x07\r\u202egnp.exe\u2066<script>alert(1)</script>"
CHILD = """
import pathlib, re, resource, runpy, sys
peak = sys.argv.pop(1)
resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))  # so that what gets through hurts only itself
try:
    runpy.run_module("labelmend", run_name="__main__", alter_sys=True)
finally:
    status = pathlib.Path("/proc/self/status").read_text()
    pathlib.Path(peak).write_text(re.search(r"VmHWM:\\s+(\\d+)", status)[1])
"""
TRAIN = ("--epochs", "1", "--threads", "1")
FROM_PROC = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


class Trap:
    """Leaves a canary if it is ever unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self):
        return os.system, (f"touch '{self.canary}'",)


@dataclass
class World:
    """An empty folder for one case, with harmless things to take files from, and a canary outside of it."""

    here: Path
    canary: Path
    finished: Path

    @property
    def trap(self) -> Trap:
        return Trap(self.canary)

    def pickled(self) -> bytes:
        return pickle.dumps({"label": self.trap, "data": self.trap, "labels": self.trap})

    def write(self, name: str, content: bytes | str) -> Path:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run(self, name: str | None = None, content: bytes | str = b"") -> Path:
        """A copy of a finished run, with one of its files replaced."""
        shutil.copytree(self.finished / "run", self.here / "run")
        if name is not None:
            self.write(f"run/{name}", content)
        return self.here / "run"

    def corrected(self, record: bytes | str | None = None) -> Path:
        """A copy of what `apply` wrote, with its undo log replaced."""
        shutil.copytree(self.finished / "corrected", self.here / "corrected")
        if record is not None:
            self.write("corrected/undo.json", record)
        return self.here / "corrected"

    def images(self, name: str | bytes = "", content: bytes = b"") -> Path:
        """A copy of a harmless image folder, with one image more."""
        shutil.copytree(self.finished / "images", self.here / "images")
        if name:
            with open(os.path.join(os.fsencode(self.here / "images"), os.fsencode(name)), "wb") as file:
                file.write(content)
        return self.here / "images"


def png(width: int = 8, height: int = 8, seed: int = 0) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def harmless(kind: str, world: World) -> list[object]:
    """The command of this kind on a file that is what it seems to be."""
    if kind == "folder":
        return ["train", world.images(), *TRAIN, "--out", world.here / "run"]
    if kind == "npz":
        np.savez(world.here / "x.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
        return noise(world, "x.npz")
    if kind == "csv":
        world.write("x.csv", "f,g,label\n" + "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(40)))
        return noise(world, "x.csv")
    if kind == "parquet":
        pq.write_table(pa.table({"f": np.arange(40) / 7, "label": np.arange(40) % 2}), world.here / "x.parquet")
        return noise(world, "x.parquet")
    if kind == "named":
        return noise(world, "digits")
    if kind == "labels file":
        lines = "".join(f"{id},{number % 10}\n" for number, id in enumerate(digits().ids))
        world.write("labels.csv", f"id,label\n{lines}")
        return ["train", "digits", "--labels", world.here / "labels.csv", *TRAIN, "--out", world.here / "run"]
    if kind == "init":
        return ["train", "digits", *TRAIN, "--out", world.here / "run"]
    if kind == "undo":
        return ["undo", world.corrected()]
    words = {
        "predict": [world.finished / "images"],
        "report": [],
        "labels": ["--verdict", "keep,relabel,look"],
        "apply": ["--out", world.here / "dest", "--write"],
    }
    return [kind, world.run(), *words[kind]]


def noise(world: World, source: str, spec: str = "symmetric:0.2", *more: object) -> list[object]:
    """The quickest command that reads a whole source."""
    place = world.here / source if (world.here / source).exists() or "." in source else source
    return ["noise", place, "--noise", spec, "--out", world.here / "noisy.npz", *more]


def npy_header(shape: tuple[int, ...], dtype: str = "|u1") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def cifar(world: World, names: bytes) -> None:
    batch = {"data": np.zeros((10, 3072), np.uint8), "labels": list(range(10))}
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        world.write(name, pickle.dumps(batch))
    world.write("batches.meta", names)


Make = Callable[[World], list[object]]
CASES: dict[str, tuple[str, Make]] = {}


Make = Callable[[World], list[object]]


@dataclass
class Corpus:
    """Files made to harm by their names: the kind of command that meets each, what makes it, and which are quick."""

    cases: dict[str, tuple[str, Make]] = field(default_factory=dict)
    quick: set[str] = field(default_factory=set)

    def case(self, kind: str, *, quick: bool = False) -> Callable[[Make], Make]:
        """Add what a function makes; a quick case is in the default suite."""

        def register(make: Make) -> Make:
            name = make.__name__.replace("_", "-")
            self.cases[name] = kind, make
            if quick:
                self.quick.add(name)
            return make

        return register

    def names(self) -> list[object]:
        """Parameters of a test; the quick ones share a process, and so what harmless commands take."""
        group = pytest.mark.xdist_group("hostile files")
        return [pytest.param(name, marks=group if name in self.quick else pytest.mark.slow) for name in self.cases]

    def meet(self, name: str, world: World, usual: Callable[[str], int], *, terminal: bool = False) -> None:
        """The command refuses or neutralises it: it runs nothing, leaves nothing outside and takes no more memory."""
        kind, make = self.cases[name]
        before = usual(kind)
        words = make(world)
        outside = sorted(world.here.parent.iterdir())
        ended = in_child(words, world.here, terminal=terminal)
        print(f"\n{name}: exit {ended.code}, {(ended.peak - before) / 1024:+.0f} MB: {ended.shown.strip()[-300:]!r}")
        assert not world.canary.exists()
        assert sorted(world.here.parent.iterdir()) == outside
        assert "Traceback" not in ended.shown
        assert ended.code in (0, 2), ended.shown
        assert not STEERING & set(ended.shown)
        assert len(ended.shown) < 20_000
        assert ended.peak - before < ALLOWANCE


def train_on(source: Path, world: World) -> list[object]:
    return ["train", source, *TRAIN, "--out", world.here / "out"]


def with_labels(world: World, name: str) -> list[object]:
    return ["train", "digits", "--labels", world.here / name, *TRAIN, "--out", world.here / "run"]


def with_init(world: World, content: bytes) -> list[object]:
    weights = world.write("weights.safetensors", content)
    return ["train", "digits", "--init", weights, *TRAIN, "--out", world.here / "run"]


@dataclass
class Ended:
    code: int
    shown: str
    peak: int


def in_child(words: list[object], here: Path, *, terminal: bool = False) -> Ended:
    """Run the command in a process of its own, on a terminal if asked for; gives how it ended and its peak memory."""
    peak, command = here / "peak", [sys.executable, "-c", CHILD]
    screen, stdout = pty.openpty() if terminal else (None, subprocess.PIPE)
    process = subprocess.Popen(
        [*command, str(peak), *map(str, words)],
        cwd=here,
        env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    try:
        said, complaints = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"not done after {SECONDS} s")
    if screen is not None:
        os.close(stdout)
        said = read_all(screen).replace(b"\r\n", b"\n")
    return Ended(process.returncode, said.decode() + complaints.decode(), int(peak.read_text()))


def read_all(screen: int) -> bytes:
    content = b""
    try:
        while piece := os.read(screen, 1 << 16):
            content += piece
    except OSError:  # so a terminal says that there is no more
        pass
    os.close(screen)
    return content
