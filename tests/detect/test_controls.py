"""Samples that a network did not learn tell how far it memorised the others."""

import numpy as np
import pytest
from made import made, symmetric

from labelmend.detect.controls import judge_with_controls, moved_to
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


def test_a_rate_lies_between_those_of_both_groups_where_both_tell_one():
    found = made(symmetric(0.3, 5), samples=6_000, known=4)
    judged = judge_with_controls(found.labels, found.predictions, np.arange(0, 6_000, 5))
    low, high = sorted((judged.fitted["learned_rate"], judged.fitted["control_rate"]))
    assert low < judged.rate < high


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
