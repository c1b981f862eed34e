from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from made import made, pairwise, symmetric

from labelmend.detect.judge import CLEAN, FOUND, UNKNOWN, _finding, best_threshold, judge_predictions, ranks
from labelmend.detect.sharpness import Sharpness

REAL = [parent / "shared" / "data" / "predictions" for parent in Path(__file__).parents]
RARE = np.array([0.3, 0.3, 0.2, 0.19, 0.01])


def judged(data):
    return judge_predictions(data.labels, data.predictions)


@pytest.mark.parametrize(
    ("transition", "options"),
    [
        pytest.param(symmetric(0.1, 10), {}, id="symmetric 10 %"),
        pytest.param(symmetric(0.4, 10), {}, id="symmetric 40 %"),
        pytest.param(pairwise(0.3, 10), {}, id="asymmetric 30 %"),
        pytest.param(symmetric(0.1, 5), {"shares": RARE}, id="rare class"),
        pytest.param(symmetric(0.1, 2), {}, id="2 classes"),
        pytest.param(pairwise(0.2, 3), {"samples": 300}, id="few samples"),
        pytest.param(symmetric(0.1, 300), {"samples": 6000}, id="300 classes"),
    ],
)
def test_known_noise_is_found_with_an_honest_rate_and_precision(transition, options):
    data = made(transition, **options)
    found, wrong = judged(data), data.wrong
    flagged = found.flagged
    assert found.finding == FOUND
    assert found.rate == pytest.approx(wrong.mean(), abs=0.03)
    assert found.interval[0] <= wrong.mean() <= found.interval[1]
    assert found.probability[flagged].mean() == pytest.approx(wrong[flagged].mean(), abs=0.07)
    assert flagged[wrong].mean() > 0.97
    assert wrong[flagged].mean() > 0.93
    assert (found.rival[wrong] == data.truth[wrong]).mean() > 0.95


def test_a_rare_class_is_not_taken_for_wrong():
    data = made(symmetric(0.1, 5), shares=RARE, samples=10_000)
    rare = data.truth == 4
    flagged = judged(data).flagged
    assert data.wrong[rare & flagged].mean() > 0.8
    assert flagged[rare & data.wrong].mean() > 0.8


@pytest.mark.parametrize("known", [3.0, 5.0, 8.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_clean_labels_look_clean_and_at_most_one_percent_is_flagged(classes, known):
    found = judged(made(np.eye(classes), known=known))
    assert found.flagged.mean() <= 0.01
    assert found.finding == CLEAN
    assert found.interval[0] == 0


@pytest.mark.parametrize("classes", [2, 10])
def test_random_labels_cannot_be_judged_and_none_is_flagged(classes):
    data = made(np.full((classes, classes), 1 / classes))
    sure = made(np.eye(classes), seed=1)
    for predictions in (data.predictions, sure.predictions):
        found = judge_predictions(data.labels, predictions)
        assert found.finding == UNKNOWN
        assert "learned nothing, or the labels are random" in found.reason
        assert not found.flagged.any()


def test_too_few_samples_cannot_be_judged():
    data = made(symmetric(0.3, 3), samples=9)
    assert judged(data).finding == UNKNOWN
    assert "too few" in judged(data).reason


@pytest.mark.parametrize("temperature", [0.6, 3.0])
def test_the_temperature_of_predictions_does_not_matter(temperature):
    data = made(symmetric(0.2, 6))
    hotter = data.predictions ** (1 / temperature)
    plain, found = judged(data), judge_predictions(data.labels, hotter)
    assert found.probability == pytest.approx(plain.probability, abs=0.01)
    assert np.array_equal(found.flagged, plain.flagged)


def test_permuted_samples_give_permuted_results():
    data = made(symmetric(0.2, 4), samples=3000)
    order = np.random.default_rng(0).permutation(3000)
    plain, found = judged(data), judge_predictions(data.labels[order], data.predictions[order])
    assert found.rate == pytest.approx(plain.rate, abs=1e-4)
    for name in ("probability", "agreement", "margin", "loss"):
        assert getattr(found, name) == pytest.approx(getattr(plain, name)[order], abs=1e-3)
    assert np.array_equal(found.rival, plain.rival[order])
    assert np.array_equal(found.flagged, plain.flagged[order])


@pytest.mark.parametrize("classes", [4, 40])
def test_permuted_classes_give_permuted_results(classes):
    data = made(pairwise(0.2, classes), samples=3000)
    new_name = np.random.default_rng(0).permutation(classes)
    columns = np.argsort(new_name)
    plain, found = judged(data), judge_predictions(new_name[data.labels], data.predictions[:, columns])
    assert found.probability == pytest.approx(plain.probability, abs=1e-3)
    assert np.array_equal(found.rival[plain.flagged], new_name[plain.rival[plain.flagged]])
    assert found.transition[np.ix_(new_name, new_name)] == pytest.approx(plain.transition, abs=1e-3)


def test_the_transition_matrix_is_refound():
    data = made(pairwise(0.3, 4), samples=10_000)
    counts = np.zeros((4, 4))
    np.add.at(counts, (data.truth, data.labels), 1)
    assert judged(data).transition == pytest.approx(counts / counts.sum(axis=1, keepdims=True), abs=0.02)


def test_trusted_labels_are_right_and_least_suspicious():
    data = made(symmetric(0.3, 4), samples=1000)
    rows = np.flatnonzero(data.wrong)[:20]
    found, trusting = judged(data), judged(data).trusting(rows)
    assert (trusting.probability[rows] == 0).all()
    assert (trusting.score[rows] < trusting.score.max()).all()
    assert not trusting.flagged[rows].any()
    assert trusting.rate < found.rate
    assert (found.probability[rows] > 0.5).all()


def test_flags_have_the_best_expected_f1_of_all_thresholds_up_to_one_half():
    for seed in range(20):
        probability = np.random.default_rng(seed).beta(0.2, 1.0, 60)
        scores = []
        for threshold in np.unique(probability):
            taken = probability >= threshold
            scores.append((2 * probability[taken].sum() / (taken.sum() + probability.sum()), -threshold))
        assert best_threshold(probability) == pytest.approx(min(-max(scores)[1], 0.5))


def test_ranks_go_from_zero_to_one_and_one_sample_has_rank_zero():
    assert ranks(np.array([3.0, 1.0, 2.0])).tolist() == [1.0, 0.0, 0.5]
    assert ranks(np.array([3.0])).tolist() == [0.0]


def test_lists_and_half_precision_are_judged_as_arrays_are():
    data = made(symmetric(0.2, 3), samples=500)
    plain = judged(data)
    lists = judge_predictions(data.labels.tolist(), data.predictions.tolist())
    for one, other in ((lists, plain), (lists.sharpness, plain.sharpness)):
        for field in fields(one):
            if field.name != "sharpness":
                assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
    half = judge_predictions(data.labels.astype(np.int8), data.predictions.astype(np.float16))
    assert np.array_equal(half.flagged, plain.flagged)


@pytest.mark.parametrize(
    ("name", "least"),
    [("synthetic20-resnet18", 0.955), ("synthetic20-swin", 0.990), ("cifar10n-aggre-resnet18", 0.795)],
)
def test_flags_on_released_predictions_are_as_good_as_promised(name, least):
    paths = [path for folder in REAL if (path := folder / f"{name}.npz").exists()]
    if not paths:
        pytest.skip(f"there is no shared/data/predictions/{name}.npz")
    with np.load(paths[0]) as kept:
        labels, probabilities, wrong = kept["labels"], kept["pred_probs"], kept["is_wrong"]
    found = judge_predictions(labels, probabilities)
    both = (found.flagged & wrong).sum()
    assert 2 * both / (found.flagged.sum() + wrong.sum()) >= least
    assert found.rate == pytest.approx(wrong.mean(), abs=0.02)
    assert found.interval[0] <= wrong.mean() <= found.interval[1]


@pytest.mark.parametrize(
    ("learned", "gain", "finding"),
    [(0.6, 0.005, FOUND), (0.49, 0.012, UNKNOWN), (0.49, 0.019, FOUND), (0.6, 0.0009, UNKNOWN)],
)
def test_a_network_that_knows_less_than_half_of_the_labels_needs_a_plain_gain(learned, gain, finding):
    sharpness = Sharpness(np.ones(2), np.ones((1, 2)), overall=1.4, strength=0.0, habit_gain=gain, likely=1.4)
    assert _finding(2_000, learned, 20.0, 0.35, sharpness, 0.001)[0] == finding
