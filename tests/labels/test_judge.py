import numpy as np
import pytest
import torch

from labelmend.core import Ledger
from labelmend.labels.judge import judge


def ledger(passes, labels):
    """A ledger after passes of logits [P, N, C]."""
    kept = Ledger(len(labels))
    for logits in passes:
        kept.open_pass()
        kept.write(torch.arange(len(labels)), torch.from_numpy(labels), torch.from_numpy(logits).float())
    return kept


def two_groups(rng, rate=0.3, samples=2000, passes=5, classes=4):
    """Logits of a network that knows the truth, and labels of which some are wrong."""
    truth = rng.integers(classes, size=samples)
    wrong = rng.random(samples) < rate
    labels = np.where(wrong, (truth + 1) % classes, truth)
    logits = rng.normal(0, 0.5, (passes, samples, classes))
    logits[:, np.arange(samples), truth] += rng.normal(4, 1, samples)
    return logits, labels, truth, wrong


def test_rate_precision_recall_and_rival_are_right_on_two_groups():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(0))
    found = judge([ledger(logits, labels)])
    flagged = found.probability.numpy() > 0.5
    assert found.rate == pytest.approx(wrong.mean(), abs=0.02)
    assert found.interval[0] < wrong.mean() < found.interval[1]
    assert wrong[flagged].mean() > 0.97
    assert flagged[wrong].mean() > 0.97
    assert (found.rival.numpy()[wrong] == truth[wrong]).mean() > 0.97


def test_one_unlucky_epoch_does_not_decide():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(1))
    victim = int(np.flatnonzero(~wrong)[0])
    logits[:, victim] = 0
    logits[:, victim, truth[victim]] = 5
    logits[-1, victim] = np.roll(logits[-1, victim], 1)
    found = judge([ledger(logits, labels)])
    assert found.probability[victim] < 0.5
    assert found.steadiness[victim] == pytest.approx(0.2)
    assert judge([ledger(logits[-1:], labels)]).probability[victim] > 0.5


def test_one_group_of_margins_is_no_evidence_and_nothing_is_flagged():
    logits, labels, _, _ = two_groups(np.random.default_rng(2), rate=0)
    found = judge([ledger(logits, labels)])
    assert "single hump" in found.reason
    assert found.mixture is None
    assert (found.probability == 0).all()
    assert found.interval[0] == 0


def test_of_two_networks_margins_are_averaged_and_the_surer_one_names_the_rival():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(3))
    sure, unsure = ledger(logits, labels), ledger(logits * 0.2, labels)
    found = judge([unsure, sure])
    assert torch.allclose(found.margin, ((sure.margins + unsure.margins) / 2).double())
    assert (found.rival.numpy()[wrong] == truth[wrong]).mean() > 0.97
