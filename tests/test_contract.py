"""What every registered method promises, whatever it does inside."""

import dataclasses
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from labelmend.data import NoisyLabels
from labelmend.errors import InterruptedRunError
from labelmend.methods import methods
from labelmend.report.build import build_report
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

METHODS = sorted(methods())
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
TWICE = {"details": "paper", "noise_model": "bmm", "track_every": "0.5"}


def without_seconds(run):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in run.epochs()]


@pytest.mark.parametrize("method", METHODS)
def test_a_run_leaves_every_file_of_the_contract_and_only_finite_numbers(method, train_digits):
    run = train_digits(method=method, epochs=3, trusted=TRUSTED.get(method), afterwards=build_report)
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
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(method, train_digits):
    first, second, other = (
        train_digits(name, method=method, seed=seed, trusted=TRUSTED.get(method))
        for name, seed in zip("abc", (0, 0, 1), strict=True)
    )
    assert first.labels_csv.read_bytes() == second.labels_csv.read_bytes()
    assert without_seconds(first) == without_seconds(second)
    assert first.model.read_bytes() == second.model.read_bytes()
    assert first.labels_csv.read_bytes() != other.labels_csv.read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_ends_as_an_uninterrupted_one(method, train_digits, tmp_path, after):
    whole = train_digits("whole", method=method, epochs=3, trusted=TRUSTED.get(method))
    config = TrainConfig(**whole.read()["config"] | {"out": str(tmp_path / "cut")})
    for _ in range(3):
        with pytest.raises(InterruptedRunError):
            train(prepare(config), signals=after(5))
        config = dataclasses.replace(config, resume=True)
    run, _ = train(prepare(config))
    assert run.model.read_bytes() == whole.model.read_bytes()
    for name in ("labels.csv", "noise.json", "evidence/losses.f16", "evidence/features.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert without_seconds(run) == without_seconds(whole)


@pytest.mark.parametrize("polls", range(8))
def test_a_run_with_passes_inside_epochs_resumes_exactly_from_anywhere(polls, train_digits, tmp_path, after):
    whole = train_digits("whole", settings=TWICE)
    config = TrainConfig(**whole.read()["config"] | {"out": str(tmp_path / "cut")})
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(polls))
    run, _ = train(prepare(dataclasses.replace(config, resume=True)))
    assert run.model.read_bytes() == whole.model.read_bytes()
    assert run.labels_csv.read_bytes() == whole.labels_csv.read_bytes()
    assert without_seconds(run) == without_seconds(whole)


def test_a_pass_inside_an_epoch_changes_what_is_learned_and_not_what_is_kept_of_epochs(train_digits):
    twice, once = train_digits("twice", settings=TWICE), train_digits("once", settings=TWICE | {"track_every": "1"})
    assert once.model.read_bytes() != twice.model.read_bytes()
    assert once.losses.stat().st_size == twice.losses.stat().st_size


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_does_not_reach_training(method, tmp_path):
    outcomes = []
    for name in ("a", "b"):
        prepared = prepare(
            TrainConfig(
                source="digits",
                out=str(tmp_path / name),
                method=method,
                noise="symmetric:0.5",
                trusted=TRUSTED.get(method),
                epochs=2,
                limit=100,
                threads=1,
            )
        )
        if name == "b":
            shuffled = prepared.data.labels.truth.flip(0)
            labels = NoisyLabels(prepared.data.labels.observed, shuffled)
            prepared.data = dataclasses.replace(prepared.data, labels=labels)
        run, _ = train(prepared)
        outcomes.append((run.model.read_bytes(), pq.read_table(run.labels_parquet)["noisy_probability"].to_pylist()))
    assert outcomes[0] == outcomes[1]


def test_nothing_draws_from_the_global_generator(train_digits):
    before = torch.get_rng_state()
    train_digits(method="md-dyr-sh")
    assert torch.equal(torch.get_rng_state(), before)


def test_run_json_is_plain_json_with_configuration_versions_and_fingerprint(train_digits):
    run = train_digits()
    described = json.loads(run.run_json.read_text())
    assert described["config"]["method"] == "m-dyr-h"
    assert described["versions"]["torch"]
    assert len(described["data"]["fingerprint"]) == 64
    assert set(described["chosen"]["reasons"]) == {"net", "epochs", "batch_size", "augment", "threads"}
