"""The demo from its first line to its report, on few photographs and epochs."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from labelmend.data.noise import read_matrix
from labelmend.data.readers.named.clothes import NAMES
from labelmend.faces.demo import MISTAKES, Judged, frequent_mistakes, tell
from labelmend.faces.stories import CLOTHES, DIGITS, STORIES, make_room
from labelmend.run.directory import RunDirectory
from labelmend.training.signals import Signals


def told(folder, *, story=CLOTHES, limit=200, **options):
    """What the demo prints after its opening."""
    file = io.StringIO()
    console = Console(file=file, width=90, _environ={}, legacy_windows=False, **options)
    make_room(folder)
    tell(story, folder, epochs=1, limit=limit, seed=0, threads=1, console=console, signals=Signals())
    return file.getvalue()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, told(folder, force_terminal=True, color_system="truecolor")


def test_the_demo_compares_shows_pictures_and_ends_with_a_report(demo):
    folder, shown = demo
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "Accuracy on 500 test photographs with right labels" in plain
    assert "plain training (ce)" in plain
    assert f"labelmend ({CLOTHES.method})" in plain
    assert "The most suspicious labels" in plain
    assert plain.count("▀" * 28) >= 3 * 14
    assert re.search(r"Wrong labels: \d+\.\d% before, \d+\.\d% after taking", plain)
    report = folder / CLOTHES.method / "report.html"
    assert f"Report:      {report}" in plain
    assert 'class="small"' in report.read_text()


def test_both_trainings_differ_in_nothing_but_the_method(demo):
    folder, _ = demo
    robust, plain = (json.loads((folder / name / "run.json").read_text()) for name in (CLOTHES.method, "ce"))
    same = ("net", "epochs", "batch_size", "augment")
    assert [robust["chosen"][name] for name in same] == [plain["chosen"][name] for name in same]
    assert robust["data"] == plain["data"]


def test_a_fifth_of_the_labels_is_wrong_as_people_err(demo):
    folder, _ = demo
    rates = read_matrix(str(folder / MISTAKES)).numpy()
    shirt, t_shirt = NAMES.index("Shirt"), NAMES.index("T-shirt")
    assert 0.19 < 1 - rates.diagonal().mean() < 0.22
    assert rates[shirt].argsort()[-2] == t_shirt
    assert rates[t_shirt].argsort()[-2] == shirt
    assert (rates > 0).all()


def test_elsewhere_than_on_a_colour_terminal_suspects_are_a_table(tmp_path):
    shown = told(tmp_path / "demo", limit=100)
    assert "The 10 most suspicious labels" in shown
    assert len(re.findall(r"^train/\d{5} ", shown, re.MULTILINE)) == 10
    assert "▀" not in shown
    assert "\x1b" not in shown


def test_digits_are_trained_on_as_they_always_were(tmp_path, labelmend):
    told(tmp_path / "demo", story=DIGITS, limit=100)
    words = ["--method", "m-dyr-h", "--noise", "symmetric:0.5", "--epochs", 1, "--threads", 1, "--limit", 100]
    assert labelmend("train", "digits", "--out", tmp_path / "run", *words).returncode == 0
    for name in ("labels.csv", "model.safetensors"):
        assert (tmp_path / "demo/m-dyr-h" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_the_stories_names_are_classes():
    for source, targets in CLOTHES.taken_for.items():
        assert {source, *targets} <= set(NAMES)
        assert source not in targets


def test_frequent_mistakes_are_counted_and_not_shown_twice():
    columns = {
        "given": np.array(["a", "a", "b", "a", "c"]),
        "suggested": np.array(["b", "b", "c", "b", "c"]),
        "verdict": np.array(["relabel", "relabel", "relabel", "relabel", "look"]),
        "rank": np.array([3, 1, 2, 4, 5]),
    }
    judged = Judged(RunDirectory(Path("nowhere")), columns)
    assert frequent_mistakes(judged, without=[1]) == [(0, 3), (2, 1)]
    assert frequent_mistakes(judged, without=[2]) == [(1, 3)]


def test_the_opening_comes_before_what_is_slow():
    program = "import sys, labelmend.faces.stories; print([m for m in ('torch', 'pyarrow') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--data", "shoes"], "valid: clothes, digits"), (["--epochs", "0"], "--epochs must be at least 1, not 0")],
)
def test_bad_options_are_refused_before_a_folder_is_made(words, message, tmp_path, labelmend):
    ended = labelmend("demo", "--out", tmp_path / "demo", *words)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert not (tmp_path / "demo").exists()


def test_only_a_folder_of_the_demo_is_replaced(tmp_path, labelmend):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    ended = labelmend("demo", "--out", tmp_path / "mine")
    assert ended.returncode == 2
    assert "was not made by the demo" in ended.stderr
    make_room(tmp_path / "demo")
    (tmp_path / "demo" / "old").touch()
    make_room(tmp_path / "demo")
    assert not (tmp_path / "demo" / "old").exists()


def test_every_story_can_be_asked_for():
    assert list(STORIES) == ["clothes", "digits"]
