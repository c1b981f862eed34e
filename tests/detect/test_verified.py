"""Verified labels move what the judge said, no further than they reach, and intervals keep their promise."""

import numpy as np
import pytest

from labelmend.detect.recalibration import monotone
from labelmend.detect.verified import Answers, Judged, expected_left, next_to_ask, recalibrate
from labelmend.errors import InputError

NONE = np.zeros(0, dtype=np.int64)


def made(seed, *, samples=1_500, shift=0.0, bad_class=0.0):
    """A judged table, and which labels are wrong: the judge is off by `shift` in log-odds, and more in class 0."""
    rng = np.random.default_rng(seed)
    truth = np.clip(rng.beta(0.25, 1.2, samples), 1e-4, 1 - 1e-4)
    given = rng.integers(0, 5, samples)
    odds = np.log(truth / (1 - truth)) + shift + bad_class * (given == 0)
    said = 1 / (1 + np.exp(-odds))
    relabel = said > 0.6
    return Judged(said, given, relabel, np.where(relabel, 0.95 * said, 0.0)), rng.random(samples) < truth


def answered(judged, wrong, count, seed=0, every=10):
    rows = NONE
    while len(rows) < count:
        found = recalibrate(judged, Answers(rows, wrong[rows]))
        rows = np.concatenate([rows, next_to_ask(found, count=every, seed=seed)])
    return recalibrate(judged, Answers(rows, wrong[rows]))


def test_without_answers_the_judge_is_believed():
    judged, _ = made(0)
    found = recalibrate(judged, Answers(NONE, NONE.astype(bool)))
    inside = (judged.probability > 0.01) & (judged.probability < 0.95)
    assert np.abs(found.probability - judged.probability)[inside].max() < 0.12
    assert abs(found.noise.share - judged.probability.mean()) < 0.03
    assert (found.relabel == judged.relabel).all()


def test_what_somebody_looked_at_is_known():
    judged, wrong = made(1)
    rows = np.arange(60)
    found = recalibrate(judged, Answers(rows, wrong[rows]))
    assert (found.probability[rows] == wrong[rows]).all()
    assert (found.error[rows] == 0).all()


def test_answers_about_one_class_move_that_class_and_the_others_hardly():
    judged, wrong = made(2, bad_class=2.5)
    rows = np.flatnonzero(judged.given == 0)[:80]
    found = recalibrate(judged, Answers(rows, wrong[rows]))
    moved = {
        k: float((found.probability - judged.probability)[(judged.given == k) & found.open].mean()) for k in range(5)
    }
    assert moved[0] < -0.1
    assert max(abs(moved[k]) for k in range(1, 5)) < 0.05


def test_the_order_within_a_class_is_never_turned_over():
    judged, wrong = made(3, shift=1.0)
    found = answered(judged, wrong, 100)
    for given in range(5):
        rows = np.flatnonzero((judged.given == given) & found.open)
        bands = np.searchsorted([0.02, 0.1, 0.35, 0.65, 0.9], judged.probability[rows])
        means = [found.probability[rows[bands == band]].mean() for band in range(6) if (bands == band).any()]
        assert all(np.diff(means) > -0.02)


@pytest.mark.parametrize("fault", [{}, {"shift": 1.0}, {"shift": -0.7}, {"bad_class": 2.0}])
def test_the_interval_of_the_noise_rate_holds_the_truth(fault):
    inside, widths, before = 0, [], []
    for seed in range(10):
        judged, wrong = made(100 + seed, **fault)
        noise = answered(judged, wrong, 100, seed).noise
        inside += noise.low <= wrong.mean() <= noise.high
        widths.append(noise.high - noise.low)
        empty = recalibrate(judged, Answers(NONE, NONE.astype(bool))).noise
        before.append(empty.high - empty.low)
    assert inside >= 8
    assert np.mean(widths) < 0.6 * np.mean(before)


def test_everything_answered_leaves_no_doubt():
    judged, wrong = made(4, samples=200)
    found = recalibrate(judged, Answers(np.arange(200), wrong))
    assert found.noise.low == found.noise.high == pytest.approx(wrong.mean())
    assert expected_left(found).expected == 0
    assert expected_left(found).answers == 0
    assert len(next_to_ask(found)) == 0


def test_questions_are_new_and_the_same_for_the_same_answers():
    judged, wrong = made(5)
    rows, skipped = np.arange(50), np.arange(50, 90)
    found = recalibrate(judged, Answers(rows, wrong[rows], skipped))
    asked = next_to_ask(found, count=300, seed=3)
    assert len(asked) == len(set(asked.tolist())) == 300
    assert asked.min() >= 90
    assert (asked == next_to_ask(found, count=300, seed=3)).all()
    assert (asked != next_to_ask(found, count=300, seed=4)).any()


def test_some_questions_are_a_random_sample_of_what_the_judge_keeps():
    judged, _ = made(6)
    found = recalibrate(judged, Answers(NONE, NONE.astype(bool)))
    first = [next_to_ask(found, count=200, seed=seed) for seed in range(2)]
    sure = [set(rows[judged.probability[rows] < 0.02].tolist()) for rows in first]
    assert min(map(len, sure)) >= 3
    assert sure[0] != sure[1]


def test_asking_by_doubt_leaves_fewer_wrong_labels_than_asking_by_rank():
    judged, wrong = made(7, shift=0.5)
    found = answered(judged, wrong, 150)
    by_rank = np.argsort(-judged.probability)[:150]
    ranked = recalibrate(judged, Answers(by_rank, wrong[by_rank]))
    assert expected_left(found).expected < expected_left(ranked).expected


def test_what_is_left_falls_to_the_wish_after_the_answers_that_were_foretold():
    judged, wrong = made(8)
    found = answered(judged, wrong, 100)
    left = expected_left(found, wish=0.03)
    assert left.low < left.expected < left.high
    rows = np.argsort(-found.error)[: left.answers]
    assert found.error.sum() - found.error[rows].sum() <= 0.03 * 1_500 + 1e-6


def test_many_answers_in_a_cell_are_believed_over_the_judge():
    said, given = np.full(4_000, 0.3), np.zeros(4_000, dtype=np.int64)
    judged = Judged(said, given, said > 1, said)
    rows = np.arange(1_000)
    wrong = rows % 10 == 0
    found = recalibrate(judged, Answers(rows, wrong))
    assert found.probability[found.open].mean() == pytest.approx(0.1, abs=0.02)


def test_rising_values_are_the_nearest_by_least_squares():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=9), rng.random(9) + 0.1
    found = np.array(monotone(values.tolist(), weights.tolist()))
    assert (np.diff(found) >= -1e-12).all()
    for begin in range(9):  # minimax formula of isotonic regression
        best = max(
            min(np.average(values[a : b + 1], weights=weights[a : b + 1]) for b in range(begin, 9))
            for a in range(begin + 1)
        )
        assert found[begin] == pytest.approx(best)


def test_answers_that_contradict_themselves_are_refused():
    with pytest.raises(InputError):
        Answers(np.array([1, 1]), np.array([True, False]))
