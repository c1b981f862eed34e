"""What every registered method promises, whatever it does inside."""

import dataclasses
import json
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from labelmend.data import NoisyLabels
from labelmend.errors import InterruptedRunError
from labelmend.methods import methods
from labelmend.report.build import build_report
from labelmend.run.directory import RunDirectory
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

METHODS = [pytest.param(id, marks=pytest.mark.xdist_group(id)) for id in sorted(methods())]
"""All tests of one method are run by one process, which keeps the run that they share."""
TRUSTED = {id: "2-per-class" for id, entry in methods().items() if entry.needs_trusted}
CONTRACT = (
    "run.json",
    "epochs.jsonl",
    "labels.csv",
    "labels.parquet",
    "noise.json",
    "model.safetensors",
    "model.json",
    "report.html",
)
SAME = ("model.safetensors", "labels.csv", "noise.json", "evidence/losses.f16", "evidence/features.safetensors")
TWICE = {"details": "paper", "noise_model": "bmm", "track_every": "0.5"}
together = pytest.mark.xdist_group("passes inside epochs")


def without_seconds(run):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in run.epochs()]


def digits(out, **changes):
    """A short run on a few digits with wrong labels."""
    options = {"noise": "symmetric:0.5", "epochs": 3, "limit": 100, "threads": 1} | changes
    return TrainConfig(source="digits", out=str(out), **options)


def of_method(method, out, **changes):
    return digits(out, method=method, trusted=TRUSTED.get(method), **changes)


def assert_same(run, whole):
    """The two runs left the same bytes, as far as they are not of the time that it took."""
    for name in SAME:
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    assert without_seconds(run) == without_seconds(whole)


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Callable[[str], RunDirectory]:
    """The run of a method, with its report, made once and only read by whoever asks for it."""

    @cache
    def made(method: str) -> RunDirectory:
        config = of_method(method, tmp_path_factory.mktemp("whole") / "run")
        return train(prepare(config), afterwards=build_report)[0]

    return made


@pytest.fixture(scope="session")
def tracked_twice(tmp_path_factory) -> RunDirectory:
    """A run with two tracking passes in each epoch, made once."""
    return train(prepare(digits(tmp_path_factory.mktemp("twice") / "run", epochs=2, settings=TWICE)))[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_leaves_every_file_of_the_contract_and_only_finite_numbers(method, whole):
    run = whole(method)
    assert all((run.path / name).is_file() for name in CONTRACT)
    assert run.read()["status"] == "finished"
    records = run.epochs()
    assert [record["epoch"] for record in records] == [1, 2, 3]
    assert {"phase", "lr", "train_loss", "test_accuracy", "noise_rate", "auc", "seconds"} <= records[0].keys()
    for record in (record for record in records if record["tracked"]):
        assert (record["degenerate"] is None) == (record["decided_by"] is not None) == (record["mixture"] is not None)
        assert record["noise_rate"] == 0 or record["degenerate"] is None
    assert all(np.isfinite(record["train_loss"]) for record in records)
    assert all(tensor.isfinite().all() for tensor in load_file(run.model).values())
    table = pq.read_table(run.labels_parquet)
    promised = ["id", "given", "noisy_probability", "suggested", "confidence", "loss"]
    assert table.column_names == [*promised, "margin", "steadiness", "verdict", "rank", "truth"]
    for name in ("noisy_probability", "confidence"):
        values = table[name].to_numpy()
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bytes_even_if_the_run_is_interrupted_and_resumed(method, whole, tmp_path, after):
    config = of_method(method, tmp_path / "cut")
    for _ in range(3):
        with pytest.raises(InterruptedRunError):
            train(prepare(config), signals=after(5))
        config = dataclasses.replace(config, resume=True)
    assert_same(train(prepare(config))[0], whole(method))


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_gives_other_bytes(method, whole, tmp_path):
    other, _ = train(prepare(of_method(method, tmp_path / "other", seed=1)))
    assert other.labels_csv.read_bytes() != whole(method).labels_csv.read_bytes()
    assert other.model.read_bytes() != whole(method).model.read_bytes()


@together
@pytest.mark.parametrize("polls", range(8))
def test_a_run_with_passes_inside_epochs_resumes_exactly_from_anywhere(polls, tracked_twice, tmp_path, after):
    config = digits(tmp_path / "cut", epochs=2, settings=TWICE)
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(polls))
    assert_same(train(prepare(dataclasses.replace(config, resume=True)))[0], tracked_twice)


@together
def test_a_pass_inside_an_epoch_changes_what_is_learned_and_not_what_is_kept_of_epochs(tracked_twice, train_digits):
    once = train_digits("once", settings=TWICE | {"track_every": "1"})
    assert once.model.read_bytes() != tracked_twice.model.read_bytes()
    assert once.losses.stat().st_size == tracked_twice.losses.stat().st_size


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_does_not_reach_training(method, whole, tmp_path):
    prepared = prepare(of_method(method, tmp_path / "shuffled"))
    labels = prepared.data.labels
    prepared.data = dataclasses.replace(prepared.data, labels=NoisyLabels(labels.observed, labels.truth.flip(0)))
    run, _ = train(prepared)
    assert run.model.read_bytes() == whole(method).model.read_bytes()
    believed, expected = (
        pq.read_table(each.labels_parquet)["noisy_probability"].to_pylist() for each in (run, whole(method))
    )
    assert believed == expected


def test_nothing_draws_from_the_global_generator(train_digits):
    before = torch.get_rng_state()
    train_digits(method="md-dyr-sh")
    assert torch.equal(torch.get_rng_state(), before)


def test_run_json_is_plain_json_with_configuration_versions_and_fingerprint(train_digits):
    run = train_digits()
    described = json.loads(run.run_json.read_text())
    assert described["chosen"]["method"] == "m-dyr-h"
    assert described["versions"]["torch"]
    assert len(described["data"]["fingerprint"]) == 64
    reasons = {"method", "net", "epochs", "batch_size", "augment", "optimiser", "precision", "threads", "features"}
    assert set(described["chosen"]["reasons"]) == reasons
