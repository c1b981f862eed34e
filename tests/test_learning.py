"""Learning: the paper's claim on real images, in seconds here and at full length under `make proofs`."""

import statistics

import pytest

from labelmend.config import TrainConfig
from labelmend.train import prepare, train


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
