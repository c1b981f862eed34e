"""The photographs that the package carries."""

import hashlib
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from labelmend.data.kinds.images import Images
from labelmend.data.readers.named import NAMED
from labelmend.data.readers.named.clothes import EMBEDDED
from labelmend.data.readers.named.idx import DEBIAN_FASHION
from labelmend.data.sources import open_source
from labelmend.errors import InputError

ROOT = Path(__file__).parents[2]
needs_debian = pytest.mark.skipif(
    not (DEBIAN_FASHION / "train-images-idx3-ubyte.gz").is_file(), reason="Debian's dataset-fashion-mnist is not here"
)


@pytest.fixture(scope="module")
def samples():
    return NAMED["clothes"](None)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import make_clothes

    return make_clothes


def test_classes_are_alike_in_number_and_may_be_mirrored(samples):
    for part, count in ((samples, 200), (samples.test, 50)):
        assert part.inputs.shape == (10 * count, 1, 28, 28)
        assert part.labels.observed.bincount().tolist() == [count] * 10
    assert samples.kind == Images(flips=True)
    assert list(samples.class_names)[:2] == ["T-shirt", "Trouser"]


def test_no_picture_is_there_twice(samples):
    pictures = [*samples.inputs, *samples.test.inputs]
    assert len({hashlib.sha256(picture.numpy().tobytes()).digest() for picture in pictures}) == len(pictures)
    assert len({*samples.ids, *samples.test.ids}) == len(pictures)


def test_the_preflight_finds_nothing():
    checked, preflight = open_source("clothes")
    assert not preflight.problems
    assert not preflight.notes
    assert len(checked) == 2_000


@needs_debian
def test_the_script_rebuilds_the_embedded_files_byte_by_byte(script):
    for name, content in script.built().items():
        assert content == (EMBEDDED / name).read_bytes(), name


def test_the_script_writes_what_pillow_reads(script, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 40), dtype=np.uint8)
    pixels[20:] //= 64
    (tmp_path / "sheet.png").write_bytes(script.png(pixels))
    with Image.open(tmp_path / "sheet.png") as image:
        assert (np.array(image) == pixels).all()


def test_the_files_are_small_and_their_licence_is_beside_them():
    assert sum(path.stat().st_size for path in EMBEDDED.iterdir()) < 1_200_000
    licence = (EMBEDDED / "clothes-LICENSE.txt").read_text()
    assert "Copyright (c) 2017 Zalando SE" in licence
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "data/embedded/*" in project["tool"]["setuptools"]["package-data"]["labelmend"]
    assert "src/labelmend/data/embedded/clothes-LICENSE.txt" in project["project"]["license-files"]


@pytest.mark.parametrize("fault", ["missing", "cut", "another picture"])
def test_a_damaged_installation_is_named(fault, tmp_path, monkeypatch):
    for path in EMBEDDED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sheet = tmp_path / "clothes.png"
    if fault == "missing":
        sheet.unlink()
    elif fault == "cut":
        sheet.write_bytes(sheet.read_bytes()[:10_000])
    else:
        Image.new("RGB", (10, 10)).save(sheet)
    monkeypatch.setattr(sys.modules["labelmend.data.readers.named.clothes"], "EMBEDDED", tmp_path)
    with pytest.raises(InputError, match=r"clothes\.png .*install labelmend again"):
        NAMED["clothes"](None)
