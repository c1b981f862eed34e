import numpy as np
import pytest
from made import made, symmetric

from labelmend.detect.judge import HABIT_GAIN_EACH
from labelmend.detect.predictions import calibration_factor, read_predictions, softmax
from labelmend.detect.sharpness import EASY, LARGEST, SURE, estimate_sharpness


def exponents(data):
    return estimate_sharpness(read_predictions(data.labels, data.predictions))


def test_sharp_predictions_of_right_labels_need_no_sharpening():
    found = exponents(made(np.eye(5), known=7.0))
    assert found.overall == pytest.approx(1.0, abs=0.02)
    assert found.estimate == pytest.approx(np.ones(5), abs=0.02)
    assert found.strength == 1.0


def test_of_a_strong_network_the_exponent_rises_with_the_noise_that_it_has_learned():
    found = [exponents(made(symmetric(rate, 10), known=6.0)) for rate in (0.0, 0.1, 0.2, 0.4, 0.6)]
    overall = [sharpness.overall for sharpness in found]
    assert overall == sorted(overall)
    assert overall[-1] > overall[1] + 1
    assert all(sharpness.strength == 1.0 for sharpness in found)


def test_at_the_exponent_of_easy_samples_a_quarter_of_them_is_all_but_sure():
    data = made(symmetric(0.3, 10), known=6.0)
    data_of = read_predictions(data.labels, data.predictions)
    found = estimate_sharpness(data_of)
    sure = 1 - softmax(found.overall * data_of.log_probs).max(axis=1) <= SURE * 1.5
    assert sure.mean() >= EASY


def test_the_plausible_exponents_lie_on_both_sides_of_the_estimate_for_every_class():
    for rate, known in ((0.0, 2.0), (0.2, 2.0), (0.4, 5.0)):
        found = exponents(made(symmetric(rate, 6), known=known))
        assert (found.plausible >= 1).all()
        assert (found.plausible.min(axis=0) <= found.estimate + 1e-9).all()
        assert (found.plausible.max(axis=0) >= found.estimate - 1e-9).all()


def test_a_class_that_is_never_predicted_has_the_common_exponent():
    data = made(symmetric(0.2, 4), known=6.0, shares=np.array([0.5, 0.3, 0.2, 0.0]))
    labels = np.where(data.labels == 3, 0, data.labels)
    predictions = data.predictions * [1, 1, 1, 0] + 1e-3
    found = estimate_sharpness(read_predictions(labels, predictions))
    assert found.estimate[:3].min() <= found.estimate[3] <= found.estimate[:3].max()


def test_class_habits_gain_little_where_no_label_is_wrong_and_much_where_a_network_knows_better():
    def habit_gain(transition):
        data = made(transition, known=3.0)
        knows = read_predictions(data.labels, data.predictions @ np.linalg.inv(transition))
        return estimate_sharpness(knows.scaled(calibration_factor(knows))).habit_gain

    assert 0 <= habit_gain(np.eye(5)) < HABIT_GAIN_EACH < 0.02 < habit_gain(symmetric(0.2, 5))


def test_flat_predictions_have_the_largest_exponent_and_stay_finite():
    found = estimate_sharpness(read_predictions(np.arange(100) % 4, np.full((100, 4), 0.25)))
    assert 1 <= found.overall <= LARGEST + 1e-6
    assert np.isfinite(found.plausible).all()
