import numpy as np
import pytest
import torch
from made import made, symmetric

from labelmend.detect import dynamics
from labelmend.detect.dynamics import _judge_margins, judge_ledgers, judge_passes
from labelmend.detect.judge import CLEAN, FOUND, UNKNOWN, best_threshold, judge_predictions
from labelmend.detect.ledger import Ledger
from labelmend.errors import InputError
from labelmend.mixture.margins import CONDENSED_FROM, MarginMixture, Points

CLASSES = 4


def by_margins(ledgers, labels):
    return _judge_margins(ledgers, torch.from_numpy(labels), CLASSES)


def both(ledgers, labels):
    return judge_ledgers(ledgers, torch.from_numpy(labels), CLASSES)


def ledger(passes, labels, keep=False):
    """A ledger after passes of logits [P, N, C]."""
    kept = Ledger(len(labels))
    if keep:
        kept.keep_mean_probs(passes.shape[2])
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


def softmax(logits):
    return torch.from_numpy(logits).float().softmax(dim=-1).numpy()


@pytest.mark.parametrize("keep", [False, True], ids=["margins", "margins and predictions"])
def test_rate_precision_recall_and_rival_are_right_on_two_groups(keep):
    logits, labels, truth, wrong = two_groups(np.random.default_rng(0))
    found = both([ledger(logits, labels, keep=keep)], labels)
    flagged = found.flagged
    assert found.finding == FOUND
    assert found.rate == pytest.approx(wrong.mean(), abs=0.02)
    assert found.interval[0] < wrong.mean() < found.interval[1]
    assert wrong[flagged].mean() > 0.97
    assert flagged[wrong].mean() > 0.97
    assert (found.rival[wrong] == truth[wrong]).mean() > 0.97


@pytest.mark.parametrize("judge", [by_margins, both])
def test_one_unlucky_epoch_does_not_decide(judge):
    logits, labels, truth, wrong = two_groups(np.random.default_rng(1))
    victim = int(np.flatnonzero(~wrong)[0])
    logits[:, victim] = 0
    logits[:, victim, truth[victim]] = 5
    logits[-1, victim] = np.roll(logits[-1, victim], 1)
    found = judge([ledger(logits, labels, keep=True)], labels)
    assert found.probability[victim] < 0.5
    assert found.steadiness[victim] == pytest.approx(0.2)
    assert judge([ledger(logits[-1:], labels, keep=True)], labels).probability[victim] > 0.5


def test_one_group_of_margins_is_no_evidence_and_nothing_is_flagged():
    logits, labels, _, _ = two_groups(np.random.default_rng(2), rate=0)
    found = by_margins([ledger(logits, labels)], labels)
    assert "single group" in found.reason
    assert found.finding == CLEAN
    assert found.mixture is None
    assert (found.probability == 0).all()
    assert found.interval[0] == 0
    together = both([ledger(logits, labels, keep=True)], labels)
    assert together.finding == CLEAN
    assert not together.flagged.any()


def test_of_two_networks_margins_are_averaged_and_the_surer_one_names_the_rival():
    logits, labels, truth, wrong = two_groups(np.random.default_rng(3))
    sure, unsure = ledger(logits, labels), ledger(logits * 0.2, labels)
    found = both([unsure, sure], labels)
    assert found.margin == pytest.approx(((sure.margins + unsure.margins) / 2).double().numpy())
    assert (found.rival[wrong] == truth[wrong]).mean() > 0.97


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
    found = by_margins([kept], np.zeros(len(margins), dtype=np.int64))
    assert reason in found.reason
    assert (found.probability == 0).all()


def test_a_network_that_doubts_many_labels_without_telling_them_apart_is_called_too_weak():
    rng = np.random.default_rng(7)
    labels = rng.integers(CLASSES, size=2000)
    logits = rng.normal(0, 0.3, (5, 2000, CLASSES))
    found = by_margins([ledger(logits, labels)], labels)
    assert "learned too little" in found.reason
    assert found.finding == UNKNOWN
    assert found.interval[1] > 0.5
    assert both([ledger(logits, labels, keep=True)], labels).finding == UNKNOWN


def test_groups_of_margins_far_apart_decide_alone():
    logits, labels, _, _ = two_groups(np.random.default_rng(8), samples=600)
    kept = ledger(logits, labels, keep=True)
    margins, found = by_margins([kept], labels), both([kept], labels)
    assert margins.fitted["gap"] > dynamics.FAR_APART
    assert np.array_equal(found.probability, margins.probability)
    assert np.array_equal(found.score, margins.score)
    assert found.interval == margins.interval


def test_the_log_odds_of_both_judges_are_averaged_where_groups_are_nearer(monkeypatch):
    monkeypatch.setattr(dynamics, "FAR_APART", np.inf)
    logits, labels, _, _ = two_groups(np.random.default_rng(8), samples=600)
    kept = ledger(logits, labels, keep=True)
    margins, predictions = by_margins([kept], labels), judge_predictions(labels, kept.mean_probs.numpy())
    assert margins.finding == predictions.finding == FOUND
    found = both([kept], labels)
    for row in range(600):
        odds = [np.clip(p, 1e-6, 1 - 1e-6) for p in (margins.probability[row], predictions.probability[row])]
        first, second = (np.log(p / (1 - p)) for p in odds)
        mean = (2 * first + second) / 3
        assert found.probability[row] == pytest.approx(1 / (1 + np.exp(-mean)))
    assert found.threshold == best_threshold(found.probability)
    assert found.interval[0] == min(margins.interval[0], predictions.interval[0])
    assert found.interval[1] == max(margins.interval[1], predictions.interval[1])
    assert found.mixture == margins.mixture
    assert found.fitted == margins.fitted | predictions.fitted


def test_where_one_judge_finds_nothing_the_judge_of_predictions_counts():
    logits, labels, _, _ = two_groups(np.random.default_rng(9))
    kept = ledger(logits, labels, keep=True)
    kept.margins.fill_(-3.0)  # a mixture cannot be fitted to these
    kept.disagreement_rate.zero_()
    found, alone = both([kept], labels), judge_predictions(labels, kept.mean_probs.numpy())
    assert by_margins([kept], labels).finding == CLEAN
    assert found.finding == alone.finding == FOUND
    assert np.array_equal(found.probability, alone.probability)
    assert found.mixture is None


def test_a_rough_judgement_is_by_margins_without_an_interval_or_by_predictions_where_they_form_no_groups():
    logits, labels, _, _ = two_groups(np.random.default_rng(14), samples=600)
    kept = ledger(logits, labels, keep=True)
    rough, margins = judge_ledgers([kept], torch.from_numpy(labels), CLASSES, rough=True), by_margins([kept], labels)
    assert np.array_equal(rough.probability, margins.probability)
    assert rough.interval != margins.interval
    kept.margins.fill_(-3.0)
    kept.disagreement_rate.zero_()
    rough = judge_ledgers([kept], torch.from_numpy(labels), CLASSES, rough=True)
    assert np.array_equal(rough.probability, judge_predictions(labels, kept.mean_probs.numpy(), rough=True).probability)


def test_a_sample_that_is_missing_from_a_pass_has_the_mean_of_the_others():
    logits, labels, _, _ = two_groups(np.random.default_rng(15), samples=50)
    kept, own = Ledger(50), torch.from_numpy(labels)
    kept.keep_mean_probs(CLASSES)
    kept.keep_mean_log_probs(CLASSES)
    for number, one in enumerate(logits):
        rows = torch.arange(50)[number % 2 :: 2]  # even samples in passes 0, 2 and 4, odd ones in 1 and 3
        kept.open_pass()
        kept.write(rows, own[rows], torch.from_numpy(one).float()[rows])
    even, odd = ledger(logits[::2], labels, keep=True), ledger(logits[1::2], labels, keep=True)
    for name in ("margins", "rival_log_odds", "disagreement_rate", "rivals", "rival_vote", "mean_probs", "counts"):
        found = kept.recorded()[name]
        assert torch.equal(found[::2], even.recorded()[name][::2]), name
        assert torch.equal(found[1::2], odd.recorded()[name][1::2]), name
    first = torch.from_numpy(logits[1]).float().log_softmax(dim=1)[1::2]
    second = torch.from_numpy(logits[3]).float().log_softmax(dim=1)[1::2]
    assert torch.allclose(kept.mean_log_probs[1::2].float(), (first + second) / 2, atol=0.01)


def test_a_sample_that_several_networks_predict_in_one_pass_was_recorded_once():
    logits, labels, _, _ = two_groups(np.random.default_rng(16), samples=50, passes=3)
    kept, rows = ledger(logits[:2], labels, keep=True), torch.arange(50)
    kept.open_pass()
    for _ in range(2):
        kept.write(rows, torch.from_numpy(labels), torch.from_numpy(logits[2]).float())
    assert (kept.counts == 3).all()


def test_a_ledger_of_version_0_1_has_recorded_every_sample_in_every_pass():
    logits, labels, _, _ = two_groups(np.random.default_rng(17), samples=50)
    kept, taken = ledger(logits, labels), Ledger(50)
    state = {name: value for name, value in kept.state_dict().items() if name != "counts"}
    taken.load_state_dict(state)
    assert torch.equal(taken.counts, kept.counts)
    assert (taken.counts == 5).all()


def test_records_with_weights_give_weighted_means():
    logits, labels, _, _ = two_groups(np.random.default_rng(18), samples=50, passes=3)
    kept, own, weights = Ledger(50), torch.from_numpy(labels), torch.tensor([0.2, 0.5, 0.1])
    kept.keep_weights()
    kept.keep_mean_probs(CLASSES)
    for one, weight in zip(logits, weights, strict=True):
        kept.open_pass()
        kept.write(torch.arange(50), own, torch.from_numpy(one).float(), weight=weight)
    probs = torch.from_numpy(softmax(logits))
    assert torch.allclose(kept.mean_probs, (weights[:, None, None] * probs).sum(dim=0) / 0.8, atol=1e-6)
    assert torch.allclose(kept.weights, torch.tensor(0.8))


def test_mean_probabilities_of_several_networks_are_averaged():
    logits, labels, _, _ = two_groups(np.random.default_rng(10))
    first, second = ledger(logits, labels, keep=True), ledger(logits * 0.3, labels, keep=True)
    mean = (first.mean_probs + second.mean_probs) / 2
    fitted = judge_predictions(labels, mean.numpy()).fitted
    assert {name: both([first, second], labels).fitted[name] for name in fitted} == fitted


def test_one_pass_is_judged_as_predictions_are():
    data = made(symmetric(0.2, 5), samples=1000)
    one, plain = judge_passes(data.labels, data.predictions[None]), judge_predictions(data.labels, data.predictions)
    assert np.array_equal(one.probability, plain.probability)
    assert (one.finding, one.rate, one.interval, one.fitted) == (
        plain.finding,
        plain.rate,
        plain.interval,
        plain.fitted,
    )


def test_passes_are_judged_as_the_ledger_of_their_logits():
    logits, labels, _, _ = two_groups(np.random.default_rng(11))
    counted = ledger(logits[1:], labels, keep=True)  # one of five passes is the first fifth
    found, expected = judge_passes(labels, softmax(logits)), both([counted], labels)
    assert found.probability == pytest.approx(expected.probability, abs=0.01)
    assert np.array_equal(found.flagged, expected.flagged)


def test_passes_whose_rows_do_not_sum_to_one_are_normalised():
    logits, labels, _, _ = two_groups(np.random.default_rng(13), samples=500)
    passes = softmax(logits)
    plain, scaled = judge_passes(labels, passes), judge_passes(labels, passes * 1e-9)
    assert scaled.probability == pytest.approx(plain.probability, abs=1e-4)


def test_the_first_fifth_of_the_passes_does_not_count():
    logits, labels, _, _ = two_groups(np.random.default_rng(12), passes=10)
    nonsense = np.random.default_rng(0).normal(0, 5, logits[:2].shape)
    passes = softmax(np.concatenate([nonsense, logits[2:]]))
    found, later = judge_passes(labels, passes), judge_passes(labels, softmax(logits))
    for name in ("probability", "margin", "steadiness", "rival", "agreement"):
        assert getattr(found, name) == pytest.approx(getattr(later, name), abs=1e-4), name
    third = passes.copy()
    third[2] = passes[0]
    assert np.abs(judge_passes(labels, third).margin - later.margin).max() > 0.1


ROWS = np.full((2, 4, 3), 1 / 3)


def with_cell(value):
    changed = ROWS.copy()
    changed[1, 2, 0] = value
    return changed


@pytest.mark.parametrize(
    ("labels", "passes", "sentence"),
    [
        ([0, 1, 2, 0], with_cell(np.nan), "of pass 2 are negative, not finite or all zero"),
        ([0, 1, 2, 0], with_cell(-1.0), "of pass 2 are negative"),
        ([0, 1, 2, 0], ROWS * np.array([1, 0])[:, None, None], "of pass 2 are negative"),
        ([0, 1, 2, 0], ROWS[0], "must be [passes, samples, classes], not of shape (4, 3)"),
        ([0, 1, 2], ROWS, "for 3 labels"),
        ([0, 1, 2, 0], ROWS[:0], "not of shape (0, 4, 3)"),
        ([0, 1, 3, 0], ROWS, "from 0 to 2"),
        ([0.5, 1, 2, 0], ROWS, "whole numbers"),
        (0, ROWS, "for 1 labels"),
        ([], ROWS[:, :0], "at least one sample"),
        ([0] * 4, ROWS[:, :, :1], "two classes"),
        ([0, 1, 2, 0], ROWS.astype(str), "must be numbers"),
    ],
)
def test_passes_that_cannot_be_judged_are_refused_by_one_sentence(labels, passes, sentence):
    with pytest.raises(InputError) as refused:
        judge_passes(labels, passes)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
