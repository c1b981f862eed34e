import numpy as np
import pytest
import torch

from labelmend.core import Ledger
from labelmend.labels.judge import judge


def ledger(passes):
    kept = Ledger(passes.shape[1])
    for losses in passes:
        kept.losses = torch.from_numpy(losses).float()
        kept.close_epoch()
    return kept


def two_groups(rng, rate=0.3, samples=2000, passes=5):
    wrong = rng.random(samples) < rate
    base = np.where(wrong, rng.lognormal(1.3, 0.4, samples), rng.lognormal(-2.5, 0.8, samples))
    return base * rng.lognormal(0, 0.1, (passes, samples)), wrong


def test_rate_precision_and_recall_are_right_on_two_groups():
    losses, wrong = two_groups(np.random.default_rng(0))
    found = judge([ledger(losses)], epochs=50)
    flagged = found.probability.numpy() > 0.5
    assert found.rate == pytest.approx(wrong.mean(), abs=0.02)
    assert wrong[flagged].mean() > 0.97
    assert flagged[wrong].mean() > 0.97


def test_one_unlucky_epoch_does_not_decide():
    losses, wrong = two_groups(np.random.default_rng(1))
    victim = int(np.flatnonzero(~wrong)[0])
    losses[:, victim] = 0.05
    losses[-1, victim] = 2.0
    assert judge([ledger(losses)], epochs=50).probability[victim] < 0.5
    assert judge([ledger(losses)], epochs=5).probability[victim] > 0.5


def test_one_group_of_losses_is_no_evidence_and_nothing_is_flagged():
    losses = np.random.default_rng(2).lognormal(-3, 1, (5, 2000))
    found = judge([ledger(losses)], epochs=50)
    assert "single hump" in found.verdict
    assert found.mixture is None
    assert (found.probability == 0).all()
