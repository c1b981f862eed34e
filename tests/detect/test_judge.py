import numpy as np
import pytest
import torch

from labelmend.detect import judge as judging
from labelmend.detect.ledger import Ledger
from labelmend.mixture.margins import CONDENSED_FROM, MarginMixture, Points

CLASSES = 4


def judge(ledgers, labels):
    return judging.judge(ledgers, torch.from_numpy(labels), CLASSES)


def ledger(passes, labels):
    """A ledger after passes of logits [P, N, C]."""
    kept = Ledger(len(labels))
    for logits in passes:
        kept.open_pass()
        kept.write(torch.arange(len(labels)), torch.from_numpy(labels), torch.from_numpy(logits).float())
    return kept


def two_groups(rng, rate=0.3, samples=2000, passes=5, classes=CLASSES):
    """Logits of a network that knows the truth, and labels of which some are wrong."""
    truth = rng.integers(classes, size=samples)
    wrong = rng.random(samples) < rate
    labels = np.where(wrong, (truth + 1) % classes, truth)
    logits = rng.normal(0, 0.5, (passes, samples, classes))
    logits[:, np.arange(samples), truth] += rng.normal(4, 1, samples)
    return logits, labels, truth, wrong


def test_rate_precision_recall_and_rival_are_right_on_two_groups():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(0))
    found = judge([ledger(logits, labels)], labels)
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
    found = judge([ledger(logits, labels)], labels)
    assert found.probability[victim] < 0.5
    assert found.steadiness[victim] == pytest.approx(0.2)
    assert judge([ledger(logits[-1:], labels)], labels).probability[victim] > 0.5


def test_one_group_of_margins_is_no_evidence_and_nothing_is_flagged():
    logits, labels, _, _ = two_groups(np.random.default_rng(2), rate=0)
    found = judge([ledger(logits, labels)], labels)
    assert "single group" in found.reason
    assert found.mixture is None
    assert (found.probability == 0).all()
    assert found.interval[0] == 0


def test_of_two_networks_margins_are_averaged_and_the_surer_one_names_the_rival():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(3))
    sure, unsure = ledger(logits, labels), ledger(logits * 0.2, labels)
    found = judge([unsure, sure], labels)
    assert torch.allclose(found.margin, ((sure.margins + unsure.margins) / 2).double())
    assert (found.rival.numpy()[wrong] == truth[wrong]).mean() > 0.97


def test_a_class_that_is_often_confused_is_not_taken_for_wrong():
    rng = np.random.default_rng(4)
    labels = rng.integers(CLASSES, size=4000)
    wrong = rng.random(4000) < 0.15
    margins = np.where(wrong, rng.normal(1, 0.6, 4000), np.where(labels < 2, -4.5, -1.5) + rng.normal(0, 0.6, 4000))
    tensors = torch.from_numpy(margins), torch.from_numpy(labels), torch.from_numpy((margins > 0).astype(float))
    mixture = MarginMixture().fit(Points.of(*tensors, CLASSES), CLASSES)
    flagged = mixture.log_odds(torch.from_numpy(margins), torch.from_numpy(labels)).numpy() > 0
    assert mixture.weight == pytest.approx(wrong.mean(), abs=0.01)
    assert wrong[flagged].mean() > 0.95
    assert mixture.centres.numpy() == pytest.approx([-4.5, -4.5, -1.5, -1.5], abs=0.1)


def test_odds_never_fall_as_the_margin_grows():
    rng = np.random.default_rng(5)
    grid, classes = torch.linspace(-15, 15, 3000, dtype=torch.float64), torch.arange(3000) % 3
    for _ in range(100):
        mixture = MarginMixture()
        mixture.weight, mixture.centres = rng.random(), torch.from_numpy(rng.normal(-2, 1, 3))
        mixture.noisy_mean, mixture.clean_variance, mixture.noisy_variance = 2.0, *rng.gamma(1, 1, 2) + 0.01
        odds = mixture.log_odds(grid, classes)
        assert all((odds[classes == c].diff() >= -1e-9).all() for c in range(3))


def test_in_a_large_set_cells_of_class_and_bin_give_the_mixture_of_all_samples():
    rng = np.random.default_rng(6)
    samples = 2 * CONDENSED_FROM
    labels = torch.from_numpy(rng.integers(CLASSES, size=samples))
    margins = torch.from_numpy(
        np.where(rng.random(samples) < 0.3, rng.normal(3, 1, samples), rng.normal(-3, 1, samples))
    )
    disagreement_rate = (margins > 0).double()
    condensed = Points.of(margins, labels, disagreement_rate, CLASSES)
    assert len(condensed.margins) < 1000
    assert condensed.counts.sum() == samples
    whole = MarginMixture().fit(Points(margins, labels, disagreement_rate, torch.ones_like(margins)), CLASSES)
    assert MarginMixture().fit(condensed, CLASSES).weight == pytest.approx(whole.weight, abs=1e-3)


@pytest.mark.parametrize(
    ("margins", "reason"),
    [([-3.0] * 5, "too few"), ([float("nan")] * 20, "non-finite margins"), ([-3.0] * 20, "believed every label")],
)
def test_margins_that_allow_no_mixture_say_why(margins, reason):
    kept = Ledger(len(margins))
    kept.margins = torch.tensor(margins)
    found = judge([kept], np.zeros(len(margins), dtype=np.int64))
    assert reason in found.reason
    assert (found.probability == 0).all()


def test_a_network_that_doubts_many_labels_without_telling_them_apart_is_called_too_weak():
    rng = np.random.default_rng(7)
    labels = rng.integers(CLASSES, size=2000)
    found = judge([ledger(rng.normal(0, 0.3, (5, 2000, CLASSES)), labels)], labels)
    assert "learned too little" in found.reason
    assert found.interval[1] > 0.5
