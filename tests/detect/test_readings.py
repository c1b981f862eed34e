"""Several readings of the same predictions: what is promised of flagged labels holds on tables."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelmend.detect.judge import FOUND, judge_predictions
from labelmend.detect.predictions import calibration_factor, read_predictions, softmax
from labelmend.detect.readings import averaged_readings
from labelmend.detect.sharpness import estimate_sharpness


def table(seed, count=900, wrong=0.15, steepness=2.0, overconfident=2.0):
    """Two classes with a border that is blurred, predicted surer than they are, and labels that are wrong at random."""
    rng = np.random.default_rng(seed)
    side = rng.normal(0, 2, count) * steepness
    truth = (rng.random(count) < 1 / (1 + np.exp(-side))).astype(np.int64)
    labels = np.where(rng.random(count) < wrong, 1 - truth, truth)
    second = 1 / (1 + np.exp(-overconfident * side))
    return labels, np.stack([1 - second, second], axis=1), labels != truth


def promised_and_real(judgement, wrong):
    return judgement.probability[judgement.flagged].mean(), wrong[judgement.flagged].mean()


def measured(seed, columns):
    """Columns of the breast cancer set, 15 % of its labels wrong, predicted by logistic regression in five folds."""
    x, truth = load_breast_cancer(return_X_y=True)
    labels = np.where(np.random.default_rng(seed).random(len(truth)) < 0.15, 1 - truth, truth)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return labels, cross_val_predict(model, x[:, :columns], labels, cv=5, method="predict_proba"), labels != truth


def mean_gap(columns, **options):
    gaps = []
    for seed in range(4):
        labels, probabilities, wrong = measured(seed, columns)
        promised, real = promised_and_real(judge_predictions(labels, probabilities, **options), wrong)
        gaps.append(abs(promised - real))
    return float(np.mean(gaps))


@pytest.mark.parametrize("columns", [5, 10])
def test_what_is_promised_of_flagged_labels_is_nearer_to_what_holds(columns):
    averaged, single = mean_gap(columns, average=averaged_readings), mean_gap(columns)
    assert averaged < 0.05
    assert averaged < single


@pytest.mark.parametrize("seed", [0, 1])
def test_the_noise_rate_is_found(seed):
    labels, probabilities, wrong = table(seed)
    judgement = judge_predictions(labels, probabilities, average=averaged_readings)
    assert judgement.finding == FOUND
    assert judgement.rate == pytest.approx(wrong.mean(), abs=0.04)
    assert judgement.interval[0] <= judgement.rate <= judgement.interval[1]


def test_probabilities_of_the_truth_sum_to_one():
    labels, probabilities, _ = table(0)
    raw = read_predictions(labels, probabilities)
    predictions = raw.scaled(calibration_factor(raw))
    own = predictions.of_given(softmax(predictions.log_probs))
    rows = np.arange(len(labels))
    after, ambiguity = averaged_readings(predictions, own, rows, estimate_sharpness(predictions))
    assert after.sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert 0 <= ambiguity <= 1


def test_labels_that_look_clean_are_judged_as_without_it():
    labels, probabilities, _ = table(0, wrong=0.0, steepness=8.0, overconfident=1.0)
    with_it, without = (
        judge_predictions(labels, probabilities, average=averaged_readings),
        judge_predictions(labels, probabilities),
    )
    assert with_it.finding == without.finding != FOUND
    assert (with_it.probability == without.probability).all()
