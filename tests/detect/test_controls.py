"""Samples that a network did not learn tell how far it memorised the others."""

import numpy as np
import pytest
from made import made, symmetric

from labelmend.detect.controls import fewer_contradictions, judge_with_controls, moved_to, raised
from labelmend.detect.judge import CLEAN, FOUND, judge_predictions


def memorised(found, odds, learned):
    """The predictions of a network that believes labels by this factor more where it learned them."""
    predictions = found.predictions.copy()
    predictions[learned, found.labels[learned]] *= odds
    return predictions / predictions.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.parametrize("odds", [2, 4, 10])
def test_wrong_labels_that_were_memorised_are_found_by_the_controls(rate, odds):
    found = made(symmetric(rate, 5), samples=6_000, known=4)
    controls = np.arange(0, 6_000, 5)
    learned = np.setdiff1d(np.arange(6_000), controls)
    predictions = memorised(found, odds, learned)
    assert judge_predictions(found.labels, predictions, in_sample=True).rate < rate / 2
    judged = judge_with_controls(found.labels, predictions, controls)
    assert judged.finding == FOUND
    assert judged.rate == pytest.approx(rate, abs=0.03)
    assert judged.interval[0] < rate < judged.interval[1]
    assert (judged.flagged == found.wrong).mean() > 0.97
    for group in (learned, controls):
        assert judged.probability[group].mean() == pytest.approx(judged.rate, abs=1e-4)


@pytest.mark.parametrize(("rate", "share"), [(0.1, 0.2), (0.3, 0.2), (0.3, 0.35)])
def test_where_some_wrong_labels_were_memorised_the_rate_of_the_others_is_raised(rate, share):
    found = made(symmetric(rate, 5), samples=6_000, known=4)
    controls = np.arange(0, 6_000, 5)
    learned = np.setdiff1d(np.arange(6_000), controls)
    wrong = learned[found.wrong[learned]]
    rows, predictions = wrong[: int(share * len(wrong))], found.predictions.copy()
    best, given = predictions[rows].argmax(axis=1), found.labels[rows]
    predictions[rows, best], predictions[rows, given] = predictions[rows, given], predictions[rows, best]
    judged = judge_with_controls(found.labels, predictions, controls)
    beside = judge_predictions(found.labels[controls], predictions[controls])
    some = found.labels[learned], predictions[learned]
    alone = judge_predictions(*some, in_sample=True)
    if alone.rate < beside.rate / 5:
        alone = judge_predictions(*some, in_sample=True, beside=beside)
    fewer = judged.fitted["fewer_contradictions"]
    assert fewer > 1.2
    assert alone.rate < judged.rate == pytest.approx(raised(alone.rate, by=fewer, limit=judged.fitted["control_rate"]))
    assert judged.interval == pytest.approx((alone.interval[0], alone.interval[1] * judged.rate / alone.rate))
    assert abs(judged.rate - rate) < abs(alone.rate - rate)
    assert judged.probability.mean() == pytest.approx(judged.rate, abs=1e-4)


def test_a_network_that_memorised_nothing_is_judged_by_what_it_learned():
    found = made(symmetric(0.3, 5), samples=6_000, known=4)
    judged = judge_with_controls(found.labels, found.predictions, np.arange(0, 6_000, 5))
    assert judged.fitted["fewer_contradictions"] == pytest.approx(1, abs=0.1)
    assert judged.rate == pytest.approx(judged.fitted["learned_rate"], rel=0.05)


def test_a_rate_is_raised_by_three_fifths_of_what_the_network_memorised():
    rng = np.random.default_rng(0)
    controls = rng.random(4_000) < 0.3
    learned = rng.random(40_000) < 0.2
    fewer = fewer_contradictions(controls, learned)
    assert fewer == pytest.approx(1.5, rel=0.05)
    assert raised(0.1, by=fewer, limit=0.5) ** 5 == pytest.approx(0.1**5 * fewer**3)
    assert fewer_contradictions(learned, controls) == 1
    assert raised(0.1, by=1, limit=0.5) == 0.1


def test_a_network_that_contradicts_nothing_that_it_learned_has_a_rate_all_the_same():
    assert np.isfinite(fewer_contradictions(np.ones(10, bool), np.zeros(1_000, bool)))
    assert raised(0.01, by=1e4, limit=0.2) == 0.2


def test_every_sample_keeps_its_place():
    found = made(symmetric(0.2, 4), samples=4_000)
    controls = np.random.default_rng(0).permutation(4_000)[:800]
    judged = judge_with_controls(found.labels, found.predictions, controls)
    own = found.predictions[np.arange(4_000), found.labels]
    assert np.corrcoef(judged.loss, -np.log(own))[0, 1] > 0.95
    assert (judged.rival[judged.flagged] == found.truth[judged.flagged]).mean() > 0.9
    assert (judged.rival != found.labels).all()
    assert (judged.flagged == found.wrong).mean() > 0.95
    assert (np.diff(judged.probability[judged.score.argsort()]) >= 0).all()


def test_labels_that_look_clean_are_judged_as_without_controls():
    found = made(np.eye(4), samples=4_000)
    judged = judge_with_controls(found.labels, found.predictions, np.arange(0, 4_000, 5))
    plain = judge_predictions(found.labels, found.predictions, in_sample=True)
    assert judged.finding == CLEAN
    assert np.array_equal(judged.probability, plain.probability)


@pytest.mark.parametrize("rate", [0.001, 0.2, 0.9])
def test_moved_probabilities_have_the_rate_and_their_order(rate):
    probability = np.array([0.0, 0.05, 0.4, 0.9, 1.0])
    moved = moved_to(probability, rate)
    assert moved.mean() == pytest.approx(rate, abs=1e-6)
    assert (np.diff(moved) > 0).all()
