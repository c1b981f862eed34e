import numpy as np
import pytest
from made import made, pairwise, symmetric

from labelmend.detect.predictions import read_predictions, softmax
from labelmend.detect.two_ways import MOST_PAIRED, Habits, fit_two_ways, posterior, sharpened

CLASSES = 4


def fitted(labels, belief, ambiguity=0.5, shares=None):
    """Both ways of a network that knows P(truth | x), and how labels fall, `shares`."""
    truth, given = read_predictions(labels, belief), read_predictions(labels, belief if shares is None else shares)
    return fit_two_ways(softmax(truth.log_probs), given.of_given(softmax(given.log_probs)), truth, ambiguity=ambiguity)


def beliefs(transition, **options):
    """Made data with P(truth | x) in place of P(label | x)."""
    data = made(transition, **options)
    return data.labels, data.predictions @ np.linalg.inv(transition), data


def test_habits_refind_a_transition_matrix():
    rng = np.random.default_rng(0)
    transition = 0.7 * np.eye(CLASSES) + 0.3 * rng.dirichlet(np.ones(CLASSES), CLASSES)
    labels, belief, _ = beliefs(transition, samples=20_000, known=3.0)
    habits, _, _ = fitted(labels, belief.clip(0), ambiguity=0.0)
    assert habits.pairs == pytest.approx(transition, abs=0.02)
    assert habits.pairs.sum(axis=1) == pytest.approx(np.ones(CLASSES))
    assert habits.right == pytest.approx(transition.diagonal(), abs=0.02)


def test_a_class_without_samples_keeps_the_common_rate():
    data = made(symmetric(0.2, CLASSES), shares=np.array([0.4, 0.3, 0.3, 0.0]))
    labels, belief = np.where(data.labels == 3, 0, data.labels), data.predictions @ np.linalg.inv(symmetric(0.2, 4))
    habits, _, _ = fitted(labels, belief.clip(0), ambiguity=0.0)
    assert habits.pairs[3, 3] == pytest.approx(1 - habits.rate, abs=0.01)


@pytest.mark.parametrize("transition", [symmetric(0.3, CLASSES), pairwise(0.3, CLASSES)])
def test_ambiguity_vanishes_where_habits_with_classes_explain_what_the_doubt_of_a_sample_does_not(transition):
    labels, belief, _ = beliefs(transition, samples=20_000, known=4.0)
    doubt = np.random.default_rng(0).dirichlet(np.ones(CLASSES), len(labels))
    habits, ambiguity, _ = fitted(labels, belief.clip(0), shares=belief.clip(0) + doubt)
    assert ambiguity < 0.03
    assert habits.pairs == pytest.approx(transition, abs=0.02)


def test_ambiguity_is_found_where_labels_are_drawn_from_soft_predictions():
    rng = np.random.default_rng(0)
    soft = softmax(rng.normal(0, 1.5, (20_000, CLASSES)))
    labels = (soft.cumsum(axis=1) > rng.random(len(soft))[:, None]).argmax(axis=1)
    _, ambiguity, _ = fitted(labels, soft**8, shares=soft)
    assert ambiguity > 0.9


def test_ambiguity_of_zero_leaves_the_second_way_out():
    labels, belief, _ = beliefs(symmetric(0.2, CLASSES))
    assert fitted(labels, belief.clip(0), ambiguity=0.0)[1] == 0.0


@pytest.mark.parametrize("classes", [CLASSES, 40])
def test_the_posterior_is_that_of_a_loop(classes):
    data = made(symmetric(0.2, classes), samples=50, known=2.0)
    predictions = read_predictions(data.labels, data.predictions)
    habits = Habits(classes)
    habits.pairs = np.random.default_rng(0).dirichlet(np.ones(classes), classes)
    truth, share = sharpened(predictions, np.full(classes, 2.0)), np.linspace(0.01, 1, 50)
    found = posterior(truth, share, predictions, habits, 0.3)
    for row in range(50):
        joint = [
            truth[row, column] * (0.7 * habits.pairs[k, data.labels[row]] + 0.3 * share[row])
            for column, k in enumerate(predictions.classes[row])
        ]
        assert found[row] == pytest.approx(np.array(joint) / sum(joint))


def test_one_step_of_the_fit_is_that_of_a_loop():
    data = made(symmetric(0.2, CLASSES), samples=60, known=2.0)
    predictions = read_predictions(data.labels, data.predictions)
    truth, share, start = softmax(predictions.log_probs), np.linspace(0.1, 1, 60), Habits(CLASSES)
    sums, made_by_ambiguity, likelihood = np.zeros((CLASSES, CLASSES)), 0.0, 0.0
    for row, label in enumerate(data.labels):
        ways = [0.6 * truth[row, k] * start.pairs[k, label] for k in range(CLASSES)]
        total = sum(ways) + 0.4 * share[row]
        sums[:, label] += np.array(ways) / total
        made_by_ambiguity += 0.4 * share[row] / total / 60
        likelihood += np.log(total) / 60
    rate = (sums.sum() - sums.trace() + 0.5) / (sums.sum() + 1)
    even = rate / (CLASSES - 1) * (1 - np.eye(CLASSES)) + (1 - rate) * np.eye(CLASSES)
    habits, ambiguity, found = fit_two_ways(truth, share, predictions, ambiguity=0.4, iterations=1)
    assert found == pytest.approx(likelihood)
    assert ambiguity == pytest.approx(made_by_ambiguity)
    assert habits.pairs == pytest.approx((sums + 20 * even) / (sums.sum(axis=1) + 20)[:, None])


def test_beyond_pairs_every_class_has_a_rate_of_its_own_drawn_to_the_common_one():
    rng, classes, samples = np.random.default_rng(0), MOST_PAIRED + 88, 12_000
    truth = np.arange(samples) % classes
    wrong = rng.random(samples) < np.where(truth < 300, 0.4, 0.1)
    labels = np.where(wrong, (truth + rng.integers(1, classes, samples)) % classes, truth)
    knows = np.eye(classes, dtype=np.float32)[truth]
    habits, _, _ = fitted(labels, knows, ambiguity=0.0)
    assert habits.pairs is None
    of_class = np.array([wrong[truth == label].mean() for label in range(classes)])
    each = samples / classes
    shrunk = (of_class * each + wrong.mean() * 20) / (each + 20)
    assert 1 - habits.right == pytest.approx(shrunk, abs=0.01)
    predictions = read_predictions(labels[:40], knows[:40])
    for given, kept, row in zip(labels, predictions.classes, habits.of(predictions), strict=False):
        right = habits.right[kept]
        assert row == pytest.approx(np.where(kept == given, right, (1 - right) / (classes - 1)))


def test_sharpening_takes_the_exponent_of_the_predicted_class():
    data = made(symmetric(0.2, 3), samples=40, known=2.0)
    predictions = read_predictions(data.labels, data.predictions)
    found = sharpened(predictions, np.array([1.0, 2.0, 4.0]))
    for row, own in enumerate(data.predictions):
        powers = own ** [1, 2, 4][int(own.argmax())]
        assert found[row] == pytest.approx(powers / powers.sum(), abs=1e-5)
