"""A run is made once, whoever asks and however often it was stopped."""

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from labelmend.errors import InputError, InterruptedRunError
from labelmend.reproduce import runs
from labelmend.reproduce.catalogue import ROWS, key
from labelmend.reproduce.runs import InUseError, RunStore, commit
from labelmend.run.lock import owned
from labelmend.training.finite import NotFiniteError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


@pytest.fixture
def config(tiny):
    return dataclasses.replace(tiny.config("cifar10", ROWS["M-DYR-H"], 50, 0), threads=1)


def test_a_run_is_made_once_and_remembered(store, config, monkeypatch):
    assert store.missing([config, config]) == [config]
    made = store.make(config)
    monkeypatch.setattr(runs, "train", lambda *_, **__: pytest.fail("made again"))
    assert store.make(config) == store.result(config) == made
    assert store.missing([config]) == []
    recorded = store.run(config).epochs()
    assert made.last == recorded[-1]["test_accuracy"]
    assert made.best == max(record["test_accuracy"] for record in recorded)
    assert made.auc == recorded[-1]["auc"]
    assert 0.1 <= made.largest <= 1
    assert not store.run(config).checkpoints.exists()
    assert not store.run(config).report.exists()


def test_a_run_that_was_stopped_is_taken_up(store, config, after, tmp_path):
    whole = RunStore(tmp_path / "whole").make(config)
    with pytest.raises(InterruptedRunError):
        store.make(config, signals=after(3))
    assert store.result(config) is None
    with pytest.raises(InterruptedRunError):
        store.make(dataclasses.replace(config, threads=2), signals=after(3))
    made = store.make(config)
    assert dataclasses.replace(made, seconds=0) == dataclasses.replace(whole, seconds=0)


def test_a_run_that_another_process_makes_is_left_to_it(store, config):
    home = store.folder / key(config)
    home.mkdir(parents=True)
    with owned(home), pytest.raises(InUseError):
        store.make(config)
    assert store.missing([config]) == [config]


def test_a_run_that_diverges_is_kept_as_such(store, config, monkeypatch):
    def diverge(prepared, **_):
        prepared.run.create(prepared.description())
        raise NotFiniteError("the training loss of epoch 1 is not a finite number")

    monkeypatch.setattr(runs, "train", diverge)
    made = store.make(config)
    assert made.best is made.last is None
    assert "not a finite number" in made.error
    assert store.missing([config]) == []


def test_other_configurations_have_other_folders(store, tiny):
    configs = [tiny.config("cifar10", row, 50, seed) for row in (ROWS["CE"], ROWS["M-DYR-H"]) for seed in (0, 1)]
    assert len({store.run(config).path for config in configs}) == 4


def test_a_damaged_result_is_named(store, config):
    path = store.folder / key(config) / "result.json"
    path.parent.mkdir(parents=True)
    for damage in ("{", json.dumps({"best": 1})):
        path.write_text(damage)
        with pytest.raises(InputError, match="is damaged"):
            store.result(config)


def test_the_commit_is_that_of_the_source_or_unknown(monkeypatch, tmp_path):
    asked = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    if asked.returncode == 0:
        assert asked.stdout.startswith(commit().removesuffix("-dirty"))
    (tmp_path / "runs.py").touch()
    monkeypatch.setattr(runs, "__file__", str(tmp_path / "runs.py"))
    assert commit() is None
