"""Files made to harm: each is refused or neutralised, runs nothing, and takes no more memory than a harmless one."""

import gzip
import io
import json
import os
import pickle
import pty
import random
import shutil
import socket
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.numpy import save as save_tensors

from labelmend.data.readers.named.digits import digits
from labelmend.report.build import build_report
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

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
pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A harmless image folder, a finished run on it, and the corrected set of that run."""
    from labelmend.fix.plan import plan

    place = tmp_path_factory.mktemp("finished")
    for number in range(40):
        path = place / "images" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed=number))
    train(prepare(TrainConfig(source=str(place / "images"), out=str(place / "run"), epochs=1, threads=1)))
    plan(place / "run").write(place / "corrected")
    return place


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
        pq.write_table(pa.table({"f": np.arange(40), "label": np.arange(40) % 2}), world.here / "x.parquet")
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


Make = Callable[[World], list[object]]
CASES: dict[str, tuple[str, Make]] = {}
QUICK: set[str] = set()


def case(kind: str, *, quick: bool = False) -> Callable[[Make], Make]:
    """One file of the corpus, and the kind of command that meets it; a quick one is in the default suite."""

    def register(make: Make) -> Make:
        name = make.__name__.replace("_", "-")
        CASES[name] = kind, make
        if quick:
            QUICK.add(name)
        return make

    return register


def replaced(name: str, kind: str, *more: object) -> None:
    """A case for a file of a run that is a pickle."""
    label = f"pickle-as-{name.replace('/', '-')}-for-{kind}"
    CASES[label] = kind, lambda world: [kind, world.run(name, world.pickled()), *more]


# Pickles under any name.


@case("npz")
def pickle_as_npz(world):
    world.write("x.npz", world.pickled())
    return noise(world, "x.npz")


@case("npz", quick=True)
def objects_inside_npz(world):
    np.savez(world.here / "x.npz", x=np.array([world.trap] * 4, dtype=object), y=np.array([world.trap] * 4))
    return noise(world, "x.npz")


@case("npz")
def npy_of_objects_as_npz(world):
    with (world.here / "x.npz").open("wb") as file:
        np.lib.format.write_array(file, np.array([world.trap], dtype=object))
    return noise(world, "x.npz")


@case("csv")
def pickle_as_csv(world):
    world.write("x.csv", world.pickled())
    return noise(world, "x.csv")


@case("parquet")
def pickle_as_parquet(world):
    world.write("x.parquet", world.pickled())
    return noise(world, "x.parquet")


@case("folder")
def pickle_as_png(world):
    return train_on(world.images("a/evil.png", world.pickled()), world)


@case("named", quick=True)
def pickle_as_cifar_batch(world):
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        world.write(name, world.pickled())
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@case("named")
def pickle_as_cifar_names(world):
    cifar(world, pickle.dumps({"label_names": world.trap}))
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@case("labels file")
def torch_archive_as_labels(world):
    torch.save({"label": world.trap}, world.here / "evil.pt")
    return with_labels(world, "evil.pt")


@case("labels file")
def pickle_as_labels(world):
    world.write("evil.pt", world.pickled())
    return with_labels(world, "evil.pt")


@case("labels file")
def objects_inside_labels(world):
    np.savez(world.here / "evil.npz", label=np.array([world.trap] * 4, dtype=object))
    return with_labels(world, "evil.npz")


@case("labels file")
def pickle_as_csv_labels(world):
    world.write("evil.csv", world.pickled())
    return with_labels(world, "evil.csv")


@case("init")
def pickle_as_weights(world):
    return with_init(world, world.pickled())


@case("init")
def torch_archive_as_weights(world):
    torch.save({"head.weight": world.trap}, world.here / "evil.pt")
    return with_init(world, (world.here / "evil.pt").read_bytes())


@case("undo")
def pickle_as_undo_log(world):
    return ["undo", world.corrected(world.pickled())]


@case("folder")
def pickles_as_checkpoints(world):
    run = world.run()
    for path in (run / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(world.pickled())
    return ["train", world.finished / "images", *TRAIN, "--out", run, "--resume"]


for _file in ("model.safetensors", "model.json"):
    replaced(_file, "predict", "digits")
for _file in ("run.json", "labels.parquet", "noise.json", "epochs.jsonl"):
    replaced(_file, "report")
for _file in ("evidence/suspects.parquet", "evidence/features.safetensors", "evidence/losses.f16"):
    replaced(_file, "report")
replaced("labels.parquet", "labels")
replaced("labels.parquet", "apply", "--out", "dest")
replaced("run.json", "apply", "--out", "dest")
replaced("preflight.json", "apply", "--out", "dest")


# Safetensors that lie about themselves.


def lying(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(begin: int, end: int, size: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [size], "data_offsets": [begin, end]}


@case("init")
def header_of_an_exabyte(world):
    return with_init(world, struct.pack("<Q", 2**60) + b"{}")


@case("predict", quick=True)
def header_of_ninety_megabytes(world):
    entries = b",".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1_500_000))
    return ["predict", world.run("model.safetensors", struct.pack("<Q", len(entries) + 2) + b"{" + entries + b"}"), "x"]


@case("init")
def header_of_ninety_megabytes_as_weights(world):
    entries = b",".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1_500_000))
    return with_init(world, struct.pack("<Q", len(entries) + 2) + b"{" + entries + b"}")


@case("init")
def overlapping_tensors(world):
    return with_init(world, lying({"a": tensor(0, 16, 4), "b": tensor(8, 24, 4)}, bytes(24)))


@case("predict")
def tensors_beyond_the_end(world):
    return ["predict", world.run("model.safetensors", lying({"0/a": tensor(0, 2**40, 2**38)})), world.images()]


@case("report")
def features_of_no_sample(world):
    content = save_tensors({"index": np.array([10**9]), "features": np.zeros((1, 2), np.float32)})
    return ["report", world.run("evidence/features.safetensors", content)]


# Models that claim to be other than they are.


def described(world: World, **changes: object) -> list[object]:
    model = json.loads((world.finished / "run" / "model.json").read_text()) | changes
    return ["predict", world.run("model.json", json.dumps(model)), world.images()]


@case("predict")
def model_of_absurd_size(world):
    return described(world, net="mlp", shape=[3, 4000, 4000])


@case("predict")
def model_for_absurd_images(world):
    return described(world, shape=[1, 10**6, 10**6])


@case("predict")
def billions_of_networks(world):
    return described(world, networks=10**10)


@case("predict")
def no_network(world):
    return described(world, networks=0)


@case("predict")
def network_from_a_hub(world):
    return described(world, net="timm:hf-hub:evil/model")


@case("predict")
def statistics_of_another_shape(world):
    return described(world, mean=[0.0] * 100_000)


@case("predict")
def class_names_that_steer_the_terminal(world):
    return described(world, classes=[EVIL, "b\nc"])


# Bombs.


def packed(path: Path, name: str, head: bytes, size: int, fill: bytes = b"\0") -> None:
    """An archive with one member of so many equal bytes after its head."""
    archive = zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open(name, "w", force_zip64=True) as file:
        file.write(head)
        for _ in range(size >> 20):
            file.write(fill * (1 << 20))


def npy_header(shape: tuple[int, ...], dtype: str = "|u1") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


@case("npz", quick=True)
def zip_bomb_as_npz(world):
    packed(world.here / "x.npz", "x.npy", npy_header((1 << 20, 1 << 10)), 1 << 30)
    packed(world.here / "x.npz", "y.npy", npy_header((1 << 20,)), 1 << 20)
    return noise(world, "x.npz")


@case("npz")
def npz_of_many_tiny_rows(world):
    for name, shape in (("x.npy", (24 << 20, 1)), ("y.npy", (24 << 20,))):
        packed(world.here / "x.npz", name, npy_header(shape), 24 << 20)
    return noise(world, "x.npz")


@case("npz")
def npz_that_claims_petabytes(world):
    for name, shape in (("x.npy", (1 << 40, 1 << 10)), ("y.npy", (1 << 40,))):
        packed(world.here / "x.npz", name, npy_header(shape), 0)
    return noise(world, "x.npz")


@case("npz")
def npz_of_rows_without_content(world):
    packed(world.here / "x.npz", "x.npy", npy_header((1 << 28, 0), "<f4"), 0)
    packed(world.here / "x.npz", "y.npy", npy_header((1 << 28,), "|S0"), 0)
    return noise(world, "x.npz")


@case("npz")
def npz_members_outside_the_root(world):
    with zipfile.ZipFile(world.here / "x.npz", "w") as archive:
        for name in ("../../../x.npy", "/tmp/y.npy", "x.npy"):
            archive.writestr(name, npy_header((4, 2)) + bytes(8))
    return noise(world, "x.npz")


@case("labels file")
def labels_without_content(world):
    packed(world.here / "evil.npz", "label.npy", npy_header((1 << 28,), "<U0"), 0)
    return with_labels(world, "evil.npz")


@case("labels file")
def zip_bomb_as_labels(world):
    packed(world.here / "evil.pt", "evil/data.pkl", b"\x80\x02", 600 << 20, b"N")
    return with_labels(world, "evil.pt")


@case("labels file")
def endless_steps_as_labels(world):
    world.write("evil.pt", b"\x80\x02" + b"N" * (60 << 20) + b".")
    return with_labels(world, "evil.pt")


@case("named")
def names_inside_names_inside_names(world):
    laughs: object = "ha"
    for _ in range(60):
        laughs = [laughs, laughs]
    cifar(world, pickle.dumps({"label_names": [laughs] * 10}))
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@case("named")
def gzip_bomb_as_mnist(world):
    for name, shape in (("images-idx3", (1 << 18, 64, 64)), ("labels-idx1", (1 << 18,))):
        head = struct.pack(f">{len(shape) + 1}I", 0x800 + len(shape), *shape)
        with gzip.open(world.here / f"train-{name}-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(head)
            for _ in range(int(np.prod(shape)) >> 18):
                file.write(bytes(1 << 18))
    return noise(world, "mnist", "pair:0.1", "--root", world.here)


@case("folder", quick=True)
def png_bomb(world):
    return train_on(world.images("a/bomb.png", png_claiming(60_000, 60_000)), world)


@case("folder")
def png_bomb_below_the_library_limit(world):
    return train_on(world.images("a/bomb.png", png_claiming(9_400, 9_400)), world)


@case("folder")
def png_with_a_text_bomb(world):
    text = zlib.compress(bytes(200 << 20), 9)
    return train_on(world.images("a/bomb.png", png_claiming(8, 8, (b"zTXt", b"a\0\0" + text))), world)


@case("folder")
def jpeg_bomb(world):
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    content = bytearray(file.getvalue())
    start = content.index(b"\xff\xc0") + 5
    content[start : start + 4] = struct.pack(">HH", 65_000, 65_000)
    return train_on(world.images("a/bomb.jpg", bytes(content)), world)


@case("folder")
def gif_of_five_thousand_frames(world):
    frames = [Image.new("L", (8, 8), number % 256) for number in range(5000)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return train_on(world.images("a/film.gif", file.getvalue()), world)


@case("folder")
def svg_and_html_as_png(world):
    world.images("a/evil.png", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    world.write("images/b/evil.png", "<!doctype html><script>alert(1)</script>")
    return train_on(world.here / "images", world)


@case("folder")
def postscript_as_png(world):
    script = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n({world.canary}) (w) file closefile\n"
    return train_on(world.images("a/evil.png", script.encode()), world)


@case("parquet")
def parquet_of_millions_of_equal_rows(world):
    pq.write_table(
        pa.table({"f": np.zeros(20_000_000, np.int8), "label": np.zeros(20_000_000, np.int8)}), world.here / "x.parquet"
    )
    return noise(world, "x.parquet")


@case("labels")
def labels_table_of_millions_of_equal_rows(world):
    run = world.run()
    table = pq.read_table(run / "labels.parquet").slice(0, 1)
    pq.write_table(table.take(pa.array(np.zeros(2_000_000, np.int64))), run / "labels.parquet")
    return ["labels", run]


@case("parquet")
def parquet_with_a_million_class_names(world):
    names = {"info": {"features": {"label": {"names": [str(i) for i in range(1_000_000)]}}}}
    rows = pa.table({"image": [png(seed=i) for i in range(4)], "label": pa.array([0, 1, 0, 1])})
    pq.write_table(rows.replace_schema_metadata({"huggingface": json.dumps(names)}), world.here / "x.parquet")
    return noise(world, "x.parquet")


@case("report")
def picture_bomb_in_the_evidence(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    flagged = pa.array(["look"] * labels.num_rows)
    pq.write_table(labels.set_column(labels.column_names.index("verdict"), "verdict", flagged), run / "labels.parquet")
    pictures = pa.array([png_claiming(60_000, 60_000)] * labels.num_rows, pa.binary())
    pq.write_table(pa.table({"id": labels["id"], "picture": pictures}), run / "evidence" / "suspects.parquet")
    return ["report", run]


@case("csv")
def cell_of_fifty_megabytes(world):
    world.write("x.csv", b"f,label\n1,a\n2," + b"b" * (50 << 20) + b"\n")
    return noise(world, "x.csv")


@case("csv")
def header_of_fifty_megabytes(world):
    world.write("x.csv", b"b" * (50 << 20))
    return noise(world, "x.csv")


@case("csv")
def csv_of_nothing_but_nul(world):
    world.write("x.csv", b"f,label\n" + b"\0" * (1 << 20))
    return noise(world, "x.csv")


@case("csv")
def hundred_thousand_columns(world):
    world.write("x.csv", "".join(",".join(f"{p}{i}" for i in range(100_000)) + "\n" for p in ("c", "", "")))
    return noise(world, "x.csv")


@case("csv")
def unknown_column_of_a_hundred_thousand(world):
    world.write("x.csv", "".join(",".join(f"{p}{i}" for i in range(100_000)) + "\n" for p in ("c", "", "")))
    return noise(world, "x.csv", "pair:0.1", "--label-column", "nowhere")


# JSON, deep and of the wrong kind.

DEEP = b"[" * 100_000


@case("report", quick=True)
def deep_run_json(world):
    return ["report", world.run("run.json", DEEP)]


@case("report")
def deep_noise_json(world):
    return ["report", world.run("noise.json", DEEP)]


@case("report")
def deep_epochs(world):
    return ["report", world.run("epochs.jsonl", DEEP)]


@case("predict")
def deep_model_json(world):
    return ["predict", world.run("model.json", DEEP), world.images()]


@case("undo")
def deep_undo_log(world):
    return ["undo", world.corrected(DEEP)]


@case("named")
def deep_class_map(world):
    return noise(world, "digits", f"asymmetric:0.2:{world.write('map.json', DEEP)}")


@case("named")
def deep_matrix(world):
    return noise(world, "digits", f"matrix:{world.write('matrix.json', DEEP)}")


@case("named")
def yaml_as_matrix(world):
    evil = f"!!python/object/apply:os.system ['touch {world.canary}']"
    return noise(world, "digits", f"matrix:{world.write('matrix.json', evil)}")


@case("named")
def absurd_shape_as_matrix(world):
    return noise(world, "digits", f"matrix:{world.write('matrix.npy', npy_header((1 << 40, 1 << 40), '<f8'))}")


@case("report")
def run_json_of_wrong_kinds(world):
    text = {"status": "finished", "config": [], "data": EVIL, "summary": 7, "noise": {"real": "x"}}
    return ["report", world.run("run.json", json.dumps(text))]


@case("apply")
def run_json_with_wrong_options(world):
    run = json.loads((world.finished / "run" / "run.json").read_text())
    run["config"] |= {"size": "x", "memory": None}
    return ["apply", world.run("run.json", json.dumps(run)), "--out", world.here / "dest"]


# Paths that lead elsewhere.


@case("folder")
def image_linked_from_outside(world):
    world.images()
    (world.here / "images" / "a" / "link.png").symlink_to(world.finished / "images" / "a" / "0.png")
    return train_on(world.here / "images", world)


@case("folder")
def class_folder_linked_to_the_whole_disk(world):
    world.images()
    (world.here / "images" / "c").symlink_to("/")
    return train_on(world.here / "images", world)


@case("folder", quick=True)
def pipes_and_endless_devices_as_images(world):
    world.images()
    os.mkfifo(world.here / "images" / "a" / "pipe.png")
    (world.here / "images" / "b" / "zero.png").symlink_to("/dev/zero")
    return train_on(world.here / "images", world)


@case("csv")
def endless_device_as_table(world):
    (world.here / "x.csv").symlink_to("/dev/zero")
    return noise(world, "x.csv")


@case("npz")
def pipe_as_npz(world):
    os.mkfifo(world.here / "x.npz")
    return noise(world, "x.npz")


@case("predict")
def endless_device_as_model_json(world):
    run = world.run()
    (run / "model.json").unlink()
    (run / "model.json").symlink_to("/dev/zero")
    return ["predict", run, world.finished / "images"]


@case("report")
def endless_device_as_noise_json(world):
    run = world.run()
    (run / "noise.json").unlink()
    (run / "noise.json").symlink_to("/dev/zero")
    return ["report", run]


@case("csv", quick=True)
def paths_out_of_the_root_in_a_table(world):
    paths = ["../../etc/passwd", "/etc/passwd", "a\0b.png", "~root/x.png", str(world.finished / "images/a/0.png")]
    world.write("x.csv", "image,label\n" + "".join(f"{path},{'ab'[i % 2]}\n" for i, path in enumerate(paths)))
    return noise(world, "x.csv")


@case("apply")
def ids_out_of_the_root(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    ids = pa.array([f"../../{id}" for id in labels["id"].to_pylist()])
    pq.write_table(labels.set_column(0, "id", ids), run / "labels.parquet")
    return ["apply", run, "--out", world.here / "dest", "--write"]


@case("undo")
def moves_out_of_the_root(world):
    record = json.loads((world.finished / "corrected" / "undo.json").read_text())
    record["moves"] = [["a/0.png", "../../escaped.png"], ["/etc/passwd", "a/0.png"]]
    return ["undo", world.corrected(json.dumps(record)), "--force"]


# Names that steer the terminal, or are far too long.


@case("folder")
def file_names_that_steer_the_terminal(world):
    return train_on(world.images(f"a/{EVIL.replace('/', '')}\n.png", b"no image"), world)


@case("folder")
def file_names_that_are_no_text(world):
    return train_on(world.images(b"a/\xff\xfe\x1b.png", png(seed=99)), world)


@case("folder")
def class_folder_that_steers_the_terminal(world):
    world.images()
    folder = world.here / "images" / EVIL.replace("/", "")
    folder.mkdir()
    (folder / "0.png").write_bytes(png(seed=99))
    return train_on(world.here / "images", world)


@case("csv")
def cells_that_steer_the_terminal(world):
    header = f"f,{EVIL},label,id\n".replace("\r", "")
    rows = "".join(f'{i},{i},"{EVIL}{i % 2}","{EVIL}{i}"\n' for i in range(8))
    world.write("x.csv", header + rows)
    return noise(world, "x.csv")


@case("npz")
def array_labels_that_steer_the_terminal(world):
    np.savez(world.here / "x.npz", x=np.zeros((8, 2)), y=np.array([EVIL, "plain"] * 4))
    return noise(world, "x.npz")


@case("npz")
def labels_of_a_megabyte(world):
    np.savez_compressed(world.here / "x.npz", x=np.zeros((8, 2)), y=np.array(["x" * (1 << 20), "y"] * 4))
    return noise(world, "x.npz")


@case("labels")
def labels_table_that_steers_the_terminal(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    for column in ("id", "given", "suggested"):
        evil = pa.array([f"{EVIL}{i}" for i in range(labels.num_rows)])
        labels = labels.set_column(labels.column_names.index(column), column, evil)
    pq.write_table(labels, run / "labels.parquet")
    return ["labels", run, "--verdict", "keep,relabel,look"]


@case("report")
def arguments_that_steer_the_terminal(world):
    return ["report", world.here / EVIL.replace("/", ""), f"--{EVIL}"]


def train_on(source: Path, world: World) -> list[object]:
    return ["train", source, *TRAIN, "--out", world.here / "out"]


def with_labels(world: World, name: str) -> list[object]:
    return ["train", "digits", "--labels", world.here / name, *TRAIN, "--out", world.here / "run"]


def with_init(world: World, content: bytes) -> list[object]:
    weights = world.write("weights.safetensors", content)
    return ["train", "digits", "--init", weights, *TRAIN, "--out", world.here / "run"]


def cifar(world: World, names: bytes) -> None:
    batch = {"data": np.zeros((10, 3072), np.uint8), "labels": list(range(10))}
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        world.write(name, pickle.dumps(batch))
    world.write("batches.meta", names)


def png_claiming(width: int, height: int, *more: tuple[bytes, bytes]) -> bytes:
    """A PNG whose header promises this size, and whose pixels are all alike."""
    rows = zlib.compressobj(9)
    pixels = b"".join([*(rows.compress(bytes(width + 1)) for _ in range(min(height, 10_000))), rows.flush()])
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), *more, (b"IDAT", pixels), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


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


@pytest.fixture
def world(tmp_path, finished):
    (tmp_path / "case").mkdir()
    return World(tmp_path / "case", tmp_path / "canary", finished)


@pytest.fixture(scope="module")
def usual(finished, tmp_path_factory):
    """Peak memory of the harmless command of a kind, measured once."""
    known: dict[str, int] = {}

    def measure(kind: str) -> int:
        if kind not in known:
            here = tmp_path_factory.mktemp("harmless")
            ended = in_child(harmless(kind, World(here, here / "canary", finished)), here)
            assert ended.code == 0, ended.shown
            known[kind] = ended.peak
        return known[kind]

    return measure


CORPUS = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in CASES]


@pytest.mark.parametrize("name", CORPUS)
def test_a_hostile_file_is_refused_or_neutralised(name, world, usual):
    kind, make = CASES[name]
    before = usual(kind)
    words = make(world)
    outside = sorted(world.here.parent.iterdir())
    ended = in_child(words, world.here, terminal=name == "class-names-that-steer-the-terminal")
    print(f"\n{name}: exit {ended.code}, {(ended.peak - before) / 1024:+.0f} MB: {ended.shown.strip()[-300:]!r}")
    assert not world.canary.exists()
    assert sorted(world.here.parent.iterdir()) == outside
    assert "Traceback" not in ended.shown
    assert ended.code in (0, 2), ended.shown
    assert not STEERING & set(ended.shown)
    assert len(ended.shown) < 20_000
    assert ended.peak - before < ALLOWANCE


def test_the_corpus_is_large_enough():
    assert len(CASES) >= 30


# Command lines that nobody would type.

ODD = [
    "", " ", "-", "--", "0", "-1", "1", "2", "1e999", "nan", "-inf", "9" * 30, "9" * 5000, "0x10", "1,5", "½", "٣",
    "None", "..", "/proc/nowhere/x", "~", "*", "nowhere", "nowhere/x.csv", "x.npz", "x" * 300, "a:b:c", "=", "a=b",
    "--out", "-h", "[/red]", "[bold]", "日本", "\u202eabc", "\x1b[31m", "\r", "a\nb", "\udcff", "%s", "{0}",
    "; reboot", "digits", "cifar10", "rows.csv", "rows.npz", "run", "new", "keep,look", "symmetric:0.5",
    "symmetric:nan", "matrix:", "asymmetric:1:nowhere.json", "pca",
]  # fmt: skip
SENSIBLE = {
    "--noise": ["symmetric:0.2", "pair:0.1", "instance:0.1"],
    "--out": ["new", "new.npz", "new.csv", "new.parquet", "new.html"],
    "--set": ["eta=1", "details=paper", "batch_size=16", "learning_rate=0.1"],
    "--method": ["ce", "m-dyr-h"],
    "--net": ["mlp", "convnet"],
    "--device": ["cpu"],
    "--labels": ["rows.npz:y"],
    "--verdict": ["keep", "relabel,look"],
    "--embedding": ["pca"],
}
OPTIONS = {
    "train": [
        "--out", "--method", "--net", "--epochs", "--noise", "--labels", "--test", "--root", "--image-column", "--size",
        "--label-column", "--id-column", "--memory", "--workers", "--init", "--limit", "--seed", "--device",
        "--threads", "--compile", "--set", "--save-every",
    ],
    "demo": ["--out", "--epochs", "--seed", "--threads"],
    "predict": ["--out", "--root", "--image-column", "--id-column"],
    "noise": ["--noise", "--out", "--seed", "--root", "--label-column", "--id-column"],
    "report": ["--out", "--suspects", "--embedding"],
    "labels": ["--out", "--verdict", "--top"],
    "apply": ["--out", "--confidence"],
    "undo": ["--out"],
    "methods": [],
}  # fmt: skip
FLAGS = [
    "--skip-bad",
    "--resume",
    "--allow-drift",
    "--write",
    "--drop",
    "--link",
    "--force",
    "--cleanlab",
    "--help",
    "-x",
]
PLACES = {"train": 1, "predict": 2, "noise": 1, "report": 1, "labels": 1, "apply": 1, "undo": 1, "methods": 1}
NUMBERS = ["1", "2", "16", "0.5", "100"]


def command_line(rng: random.Random) -> list[str]:
    """A command line of our grammar, half of it sensible."""
    command = rng.choice([*OPTIONS, *OPTIONS, rng.choice(ODD)])
    words = [command]
    for place in range(PLACES.get(command, 0) + (rng.random() < 0.1)):
        usual = "run" if command not in ("train", "noise", "methods") and place == 0 else "digits"
        words.append(usual if rng.random() < 0.6 else rng.choice(["rows.csv", "rows.npz", rng.choice(ODD)]))
    asked = [option for option in ("--out", "--noise") if option in OPTIONS.get(command, ()) and rng.random() < 0.8]
    for option in [*asked, *(rng.choice(OPTIONS.get(command) or FLAGS) for _ in range(rng.randrange(4)))]:
        words += [option, rng.choice(SENSIBLE.get(option, NUMBERS)) if rng.random() < 0.6 else rng.choice(ODD)]
    words += rng.sample(FLAGS, rng.choice([0, 0, 0, 1, 2]))
    return [word for word in words if word != "--resume" or rng.random() < 0.5]


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_random_command_lines_end_with_a_documented_code(count, tmp_path, labelmend, train_digits, monkeypatch):
    run = train_digits("kept")
    monkeypatch.setattr("labelmend.faces.terminal.train", lambda prepared, **rest: (run, []))
    monkeypatch.setattr("labelmend.report.build.build_report", lambda *rest, **more: None)
    rng, codes = random.Random(count), dict[int, int]()
    for number in range(count):
        here = tmp_path / str(number)
        here.mkdir()
        monkeypatch.chdir(here)
        (here / "run").symlink_to(run.path)
        (here / "rows.csv").write_text("f,g,label\n" + "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(40)))
        np.savez(here / "rows.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
        words = command_line(rng)
        try:
            ended = labelmend(*words)
        except BaseException as error:
            raise AssertionError(f"{words} ended with {type(error).__name__}: {error}") from error
        assert ended.returncode in (0, 1, 2, 130, 143), words
        assert not STEERING & set(ended.stdout + ended.stderr), words
        codes[ended.returncode] = codes.get(ended.returncode, 0) + 1
    torch.set_num_threads(1)
    print(f"\n{count} command lines: {codes}")
    assert codes[0] > count // 20
    assert codes[2] > count // 5


def test_a_run_needs_no_network(train_digits, monkeypatch):
    def refuse(*words, **more):
        raise AssertionError(f"the network was asked for: {words}")

    for place, name in ((socket.socket, "connect"), (socket.socket, "connect_ex"), (socket, "getaddrinfo")):
        monkeypatch.setattr(place, name, refuse)
    assert train_digits(afterwards=build_report).report.is_file()
