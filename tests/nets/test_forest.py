"""A forest kept as tensors predicts what scikit-learn's own booster predicts, and takes what a network takes."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch.nn import functional as F  # noqa: N812

from labelmend.core import generator, head_of
from labelmend.errors import InputError
from labelmend.nets import build_net
from labelmend.nets.trees import DEEPEST, LEARNING_RATE, PENALTY, Forest, rounded_down, weighted_rows


def rows(classes, count=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5)).astype(np.float32)
    labels = (x[:, :classes] + rng.normal(0, 0.5, (count, classes))).argmax(axis=1)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, labels


def fitted(x, labels, classes):
    targets = F.one_hot(torch.from_numpy(labels), classes).float()
    forest = Forest(x.shape[1], classes, rounds=12, leaves=7)
    forest.fit(torch.from_numpy(x), targets, seed=0)
    return forest


def probabilities(forest, x):
    with torch.no_grad():
        return forest(torch.from_numpy(x)).softmax(dim=1).numpy()


@pytest.mark.parametrize("classes", [2, 4])
def test_a_forest_predicts_what_the_booster_predicts_also_where_values_are_missing(classes):
    x, labels = rows(classes)
    booster = HistGradientBoostingClassifier(
        learning_rate=LEARNING_RATE,
        max_iter=12,
        max_leaf_nodes=7,
        max_depth=DEEPEST,
        min_samples_leaf=20,
        l2_regularization=PENALTY,
        early_stopping=False,
    ).fit(x, labels)
    assert abs(probabilities(fitted(x, labels, classes), x) - booster.predict_proba(x)).max() < 1e-6


def test_thresholds_are_rounded_so_that_no_float32_changes_sides():
    middles = np.array([0.1, 1 / 3, -0.1, 1e-8, 16777217.0])
    below = rounded_down(middles)
    assert (below <= middles).all()
    assert (np.nextafter(below, np.float32(np.inf)).astype(np.float64) > middles).all()


def test_soft_targets_are_weighted_rows_and_tiny_shares_are_left_out():
    which, labels, weights = weighted_rows(np.array([[0.99, 0.01, 0.0], [0.3, 0.3, 0.4]]))
    assert which.tolist() == [0, 1, 1, 1]
    assert labels.tolist() == [0, 0, 1, 2]
    assert weights.tolist() == pytest.approx([0.99, 0.3, 0.3, 0.4])


def test_a_corrected_label_counts_by_its_share():
    x, labels = rows(2)
    right = F.one_hot(torch.from_numpy(labels), 2).float()
    half = torch.full_like(right, 0.5)
    forest = Forest(5, 2, rounds=12, leaves=7)
    forest.fit(torch.from_numpy(x), half, seed=0)
    assert abs(probabilities(forest, x) - 0.5).max() < 1e-6


def test_a_class_that_is_not_there_to_learn_stays_possible_and_improbable():
    x, labels = rows(3)
    labels = np.where(labels == 1, 0, labels)
    found = probabilities(fitted(x, labels, 3), x)
    assert (found[:, 1] > 0).all()
    assert found[:, 1].max() < 0.05
    assert ((found[:, 2] > found[:, 0]) == (labels == 2)).mean() > 0.8


def test_a_forest_of_one_class_predicts_that_class():
    x, labels = rows(3)
    assert (probabilities(fitted(x, np.full_like(labels, 2), 3), x).argmax(axis=1) == 2).all()


def test_stages_are_the_scores_of_the_first_rounds_only():
    x, labels = rows(4)
    forest, short = fitted(x, labels, 4), Forest(5, 4, rounds=5, leaves=7)
    short.fit(torch.from_numpy(x), F.one_hot(torch.from_numpy(labels), 4).float(), seed=0)
    with torch.no_grad():
        five, twelve = forest.staged(torch.from_numpy(x), (5, 12))
        assert torch.allclose(five, short(torch.from_numpy(x)), atol=1e-6)
        assert torch.allclose(twelve, forest(torch.from_numpy(x)), atol=1e-6)


def test_a_state_dict_carries_a_forest_to_another_one_of_the_same_name():
    x, labels = rows(4)
    built = [build_net("trees-12x7", (5,), 4, rng=generator(0, "unused")) for _ in range(2)]
    built[0].fit(torch.from_numpy(x), F.one_hot(torch.from_numpy(labels), 4).float(), seed=0)
    built[1].load_state_dict(built[0].state_dict())
    assert (probabilities(built[1], x) == probabilities(built[0], x)).all()
    assert head_of(built[1]).in_features == 4


@pytest.mark.parametrize("name", ["trees-0x8", "trees-60", "trees-60x1", "trees-5000x8", "trees-60x8x", "trees-60x99"])
def test_a_name_that_is_no_forest_is_explained(name):
    with pytest.raises(InputError, match="trees-ROUNDSxLEAVES"):
        build_net(name, (5,), 2, rng=generator(0, "unused"))


def test_images_are_refused():
    with pytest.raises(InputError, match="rows of features"):
        build_net("trees-60x8", (3, 8, 8), 2, rng=generator(0, "unused"))


def test_a_forest_is_exported_with_its_comparisons():
    x, labels = rows(2)
    forest = fitted(x, labels, 2)
    program = torch.export.export(forest.eval(), (torch.from_numpy(x[:4]),))
    assert torch.allclose(program.module()(torch.from_numpy(x[:4])), forest(torch.from_numpy(x[:4])), atol=1e-6)


def test_a_new_forest_draws_nothing_from_the_global_generator():
    before = torch.get_rng_state()
    Forest(5, 3, rounds=2, leaves=4)
    assert torch.equal(torch.get_rng_state(), before)
