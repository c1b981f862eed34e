"""Learning: the paper's claim on real images, in seconds here and at full length under `make proofs`."""

import json
import statistics

import numpy as np
import pyarrow.parquet as pq
import pytest

from labelmend.data.sources import open_source
from labelmend.fix.plan import plan
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train


def outcome(folder, method, rate, seed, epochs):
    name = f"{method}-{rate}-{seed}"
    config = TrainConfig(
        source="digits", out=str(folder / name), method=method, noise=f"symmetric:{rate}", seed=seed, epochs=epochs
    )
    summary = train(prepare(config))[0].read()["summary"]
    print(name, summary)
    return summary


def mean(summaries, key):
    return statistics.mean(summary[key] for summary in summaries)


def test_plain_training_memorises_wrong_labels_and_the_papers_method_does_not(tmp_path):
    plain, robust = (outcome(tmp_path, method, 0.5, 0, 20) for method in ("ce", "m-dyr-h"))
    assert robust["last_accuracy"] > plain["last_accuracy"] + 0.05
    assert robust["auc"] > 0.97


@pytest.mark.slow
def test_half_of_the_labels_redrawn(tmp_path):
    plain, robust = ([outcome(tmp_path, m, 0.5, seed, 60) for seed in range(3)] for m in ("ce", "m-dyr-h"))
    assert mean(plain, "best_accuracy") - mean(plain, "last_accuracy") >= 0.10
    assert mean(robust, "last_accuracy") >= 0.97
    assert mean(robust, "best_accuracy") - mean(robust, "last_accuracy") <= 0.02
    assert mean(robust, "auc") >= 0.99


@pytest.mark.slow
def test_eighty_percent_of_the_labels_redrawn(tmp_path):
    plain, robust = ([outcome(tmp_path, m, 0.8, seed, 60) for seed in range(3)] for m in ("ce", "m-dyr-h"))
    assert mean(robust, "last_accuracy") - mean(plain, "last_accuracy") >= 0.35


def labels_after(run, folder):
    """Precision and recall of the flags, and the share of wrong labels once the verdicts are applied."""
    labels = {name: np.array(column) for name, column in pq.read_table(run.labels_parquet).to_pydict().items()}
    plan(run.path).write(folder)
    corrected = open_source(str(folder / "digits.npz"))[0]
    now = np.array(corrected.class_names)[corrected.labels.observed.numpy()]
    wrong, flagged = labels["given"] != labels["truth"], labels["verdict"] != "keep"
    return (
        (wrong & flagged).sum() / flagged.sum(),
        (wrong & flagged).sum() / wrong.sum(),
        (now != labels["truth"]).mean(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_wrong_labels_are_found_and_fixed(tmp_path, seed):
    run, _ = train(prepare(TrainConfig(source="digits", out=str(tmp_path / "run"), noise="symmetric:0.5", seed=seed)))
    summary = run.read()["summary"]
    precision, recall, wrong_after = labels_after(run, tmp_path / "corrected")
    print(seed, summary["auc"], precision, recall, wrong_after)
    assert summary["auc"] >= 0.998
    assert precision >= 0.97
    assert recall >= 0.97
    assert wrong_after <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_right_labels_are_left_alone(tmp_path, seed):
    plain, robust = (
        train(prepare(TrainConfig(source="digits", out=str(tmp_path / method), method=method, seed=seed)))[0]
        for method in ("ce", "m-dyr-h")
    )
    noise = json.loads(robust.noise_json.read_bytes())
    accuracies = [run.read()["summary"]["last_accuracy"] for run in (plain, robust)]
    print(seed, accuracies, noise["flagged"], noise["reason"])
    assert not noise["evidence"]
    assert noise["flagged"] <= 0.02 * 1438
    assert accuracies[1] >= accuracies[0] - 0.005


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_the_noise_rate_is_estimated_within_three_points(tmp_path, rate):
    for seed in range(3):
        config = TrainConfig(source="digits", out=str(tmp_path / str(seed)), noise=f"symmetric:{rate}", seed=seed)
        described = train(prepare(config))[0].read()
        print(rate, seed, described["summary"]["noise_rate"], described["noise"]["real"])
        assert abs(described["summary"]["noise_rate"] - described["noise"]["real"]) <= 0.03
