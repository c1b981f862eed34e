"""What is released: built twice with the same bytes, and of use in an empty environment outside of the repository."""

import doctest
import json
import os
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    """A script of the folder scripts by name."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return __import__


def test_the_lowest_versions_are_those_that_the_project_allows(script):
    lowest = script("lowest")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = (ROOT / "constraints.txt").read_text()
    found = dict(line.split("==") for line in lowest.lowest(project, pins))
    assert found["numpy"] == "1.26"
    assert found["torch"] in pins
    names = {lowest.LOWEST.match(each)[1] for each in lowest.requirements(project)}
    assert names <= set(found)
    assert doctest.testmod(lowest) == (0, 2)
    with pytest.raises(SystemExit, match="no lowest version"):
        lowest.lowest(project | {"dependencies": ["numpy"]}, pins)


def photos(folder):
    """Sixty small pictures, red ones in the folder of blue ones too."""
    rng = np.random.default_rng(0)
    for number in range(60):
        pixels = rng.integers(0, 60, (16, 16, 3), dtype=np.uint8)
        pixels[:, :, number % 3] += 150
        given = folder / "rgb"[(number + (number % 10 == 0)) % 3]
        given.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(given / f"{number}.png")


@pytest.mark.slow
def test_a_release_is_the_same_bytes_twice_and_works_where_nothing_else_is_installed(script, tmp_path):
    release = script("release")
    files = {path.suffix: path for path in release.built_alike(tmp_path / "dist")}
    python = release.empty_environment(tmp_path / "env", files[".whl"])
    home = tmp_path / "home"
    photos(home / "photos")
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    np.save(home / "probabilities.npy", (np.eye(3)[labels] + rng.random((300, 3))) / (1 + 1.5))
    np.save(home / "labels.npy", np.where(rng.random(300) < 0.1, (labels + 1) % 3, labels))

    def command(*words):
        alone = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        words = [str(python.with_name("labelmend")), *words]
        return subprocess.run(words, cwd=home, env=alone | {"HOME": str(home)}, capture_output=True, text=True)

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert command("--version").stdout.strip() == f"labelmend {version}"
    for words in (
        ("judge", "probabilities.npy", "--labels", "labels.npy", "--out", "judged"),
        ("train", "photos", "--epochs", "3", "--out", "trained"),
        ("apply", "trained", "--out", "fixed", "--write"),
        ("demo", "--out", "shown"),
    ):
        done = command(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert all((home / name / "report.html").is_file() for name in ("judged", "trained"))
    refused = command("review", "trained", "--no-browser")
    assert refused.returncode == 2
    assert "labelmend[review]" in refused.stderr

    release.bill_of_materials(python, tmp_path / "bill.json")
    bill = json.loads((tmp_path / "bill.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert {"torch", "numpy", "scikit-learn"} <= {part["name"] for part in bill["components"]}
    assert "torch" in release.licences(python)
