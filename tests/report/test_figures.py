import numpy as np
import pytest

from labelmend.report.confusion import noisiest, shades, worst_pairs
from labelmend.report.embedding import OTHER, class_colours
from labelmend.report.figures import component_mean, group_densities, mixture_path, phases


def test_the_groups_hold_all_samples():
    mixture = {"weight_clean": 0.7, "weight_noisy": 0.3, "low": -8.0, "span": 12.0}
    mixture |= {"mean_clean": 0.3, "variance_clean": 0.01, "mean_noisy": 0.8, "variance_noisy": 0.01}
    grid = np.linspace(-8, 4, 2001)
    assert np.trapezoid(group_densities(mixture, grid), grid, axis=1) == pytest.approx([0.7, 0.3], abs=0.01)


def test_with_a_clean_group_for_each_class_they_share_the_clean_samples():
    mixture = {"weight_noisy": 0.3, "mean_noisy": 3.0, "variance_noisy": 1.0}
    grid = np.linspace(-12, 12, 4001)
    densities = group_densities(mixture | {"means_clean": [-4.0, -1.0], "variance_clean": 0.5}, grid)
    assert np.trapezoid(densities, grid, axis=1) == pytest.approx([0.7, 0.3], abs=1e-3)


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        ({"alpha_noisy": 3.0, "beta_noisy": 1.0, "low": 0.0, "span": 4.0}, 3.0),
        ({"mean_noisy": 0.5, "low": 1.0, "span": 4.0}, 3.0),
    ],
)
def test_means_of_components_are_losses(mixture, expected):
    assert component_mean(mixture, "noisy") == pytest.approx(expected)


def test_phases_start_where_the_name_changes():
    epochs = [{"epoch": i + 1, "phase": name} for i, name in enumerate("aabbb")]
    assert phases(epochs) == [(1, "a"), (3, "b")]


def test_the_noisiest_classes_are_those_that_lose_or_gain_most():
    transition = np.eye(40)
    transition[35, 36], transition[35, 35] = 0.5, 0.5
    assert {35, 36} <= set(noisiest(transition))
    assert len(noisiest(transition)) == 30


def test_pairs_are_named_by_the_class_that_should_be_first():
    transition = np.array([[0.9, 0.1], [0.3, 0.7]])
    flagged = np.array([[0, 4], [9, 0]])
    assert worst_pairs(transition, ["cat", "dog"], flagged) == [("dog", "cat", 0.3, 9), ("cat", "dog", 0.1, 4)]


def test_the_worst_cell_has_the_strongest_colour():
    cells = shades(np.array([[0.6, 0.4], [0.1, 0.9]]))
    assert cells[0][1] == {"share": 0.4, "strength": 1.0}
    assert cells[1][0]["strength"] == 0.5


def test_with_many_classes_the_rare_ones_are_grey():
    labels = np.repeat(np.arange(25), np.arange(25) + 1)
    colours = class_colours(labels, 25)
    assert (colours[:6] == OTHER).all()
    assert len(set(colours[6:])) == 19


def test_a_mixture_is_drawn_over_the_epochs_in_which_it_decided():
    mixture = {"weight_noisy": 0.3, "mean_clean": 0.2, "mean_noisy": 0.8, "low": -6.0, "span": 12.0}
    epochs = [{"epoch": 1, "phase": "a", "mixture": mixture, "decided_by": "rival_log_odds"}]
    epochs.append({"epoch": 2, "phase": "a", "mixture": None, "decided_by": None})
    assert mixture_path(epochs, "losses") is None
    assert "log-odds" in mixture_path(epochs, "rival_log_odds")
