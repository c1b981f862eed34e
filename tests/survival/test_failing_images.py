"""An image or a decoding process that fails under a run is named, and the run goes on when it is back."""

import multiprocessing
import time

import pytest
import torch
from faults import PAIRS, newest, sentence, wrapped
from PIL import Image

import labelmend.training.session as training
from labelmend.core import Learner, generator
from labelmend.training.trainer import Trainer

STAGES = {
    "before the first epoch": (training, "owned", 1),
    "learning": (Trainer, "learn", 2),
    "tracking": (Trainer, "track", 2),
    "the evidence": (training, "judge_ledgers", 1),
}
pytestmark = pytest.mark.usefixtures("without_looks")


@pytest.fixture
def folder(tmp_path):
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(12):
            pixels = torch.randint(0, 256, (8, 8, 3), dtype=torch.uint8, generator=generator(k, i)).numpy()
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    return tmp_path / "set"


class Streamed:
    """The command that trains on an image folder which is read as it goes, and a file of it that fails."""

    def __init__(self, folder, out, workers):
        self.victim, self.out = folder / "dog" / "7.png", out
        self.content = self.victim.read_bytes()
        self.words = ["train", folder, "--out", out, "--memory", 0, "--workers", workers, "--threads", 1]
        self.words += ["--net", "convnet", "--epochs", 3, "--set", "batch_size=8", *PAIRS]

    def damage(self, how):
        if how == "gone":
            self.victim.unlink()
        else:
            self.victim.write_bytes(self.content[:60] if how == "cut" else b"garbage" * 20)

    def mend(self):
        self.victim.write_bytes(self.content)


@pytest.fixture
def streamed(folder, run):
    return lambda name, workers=0: Streamed(folder, run(name).folder, workers)


@pytest.mark.parametrize(
    ("how", "workers", "stage"),
    [
        ("gone", 0, "before the first epoch"),
        ("gone", 2, "learning"),
        ("cut", 0, "tracking"),
        ("garbage", 0, "learning"),
        ("gone", 0, "the evidence"),
        *(
            pytest.param(how, workers, stage, marks=pytest.mark.slow)
            for how in ("gone", "cut", "garbage")
            for workers in (0, 2)
            for stage in STAGES
        ),
    ],
)
def test_an_image_that_fails_under_a_run_is_named_and_the_run_goes_on_when_it_is_back(
    how, workers, stage, streamed, run, labelmend, monkeypatch
):
    cut, whole = streamed("cut", workers), streamed("whole")
    assert labelmend(*whole.words).returncode == 0
    owner, name, call = STAGES[stage]
    with monkeypatch.context() as patch:
        wrapped(patch, owner, name, lambda: cut.damage(how), call=call)
        ended = labelmend(*cut.words)
    assert ended.returncode == 1
    assert f"{cut.victim} was usable before the run and is not now" in sentence(ended)
    before = {"before the first epoch": None, "the evidence": "epoch-00003-step-0000000"}
    assert newest(cut.out) == before.get(stage, "epoch-00001-step-0000000")
    cut.mend()
    assert labelmend(*cut.words, "--resume").returncode == 0
    assert run("cut").digest() == run("whole").digest()


def test_unusable_images_are_refused_even_where_they_cannot_be_listed(streamed, labelmend):
    cut = streamed("run")
    cut.damage("cut")
    cut.out.parent.joinpath("run.preflight.json").mkdir()
    ended = labelmend(*cut.words)
    assert ended.returncode == 2
    assert str(cut.victim) in ended.stderr
    assert "cannot be listed in" in ended.stderr


def test_a_worker_that_is_killed_is_reported_and_the_run_goes_on_later(streamed, run, labelmend, monkeypatch):
    def kill():
        multiprocessing.active_children()[0].kill()
        time.sleep(1)

    cut, whole = streamed("cut", 2), streamed("whole")
    assert labelmend(*whole.words).returncode == 0
    with monkeypatch.context() as patch:
        wrapped(patch, Learner, "descend", kill, call=4)
        ended = labelmend(*cut.words)
    assert ended.returncode == 1
    assert "a process that decodes images ended" in sentence(ended)
    assert newest(cut.out) == "epoch-00001-step-0000000"
    assert labelmend(*cut.words, "--resume").returncode == 0
    assert run("cut").digest() == run("whole").digest()
