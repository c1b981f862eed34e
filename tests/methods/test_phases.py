import copy

import pytest
import torch
from torch import nn

from labelmend.core import Batch, Learner, Task
from labelmend.detect.ledger import Ledger
from labelmend.methods.noise_tracker import NoiseTracker
from labelmend.methods.phases import Phases
from labelmend.methods.recipe import Recipe
from labelmend.methods.timeline import Timeline, linear
from labelmend.mixture import BetaMixture, NoiseModel
from labelmend.parts.losses import soft_cross_entropy


def make_phases(drops=(), **changes):
    """Three recipes that learn the same thing with losses of 1, 2 and 3 times the size."""

    def times(factor):
        return lambda logits, targets: factor * soft_cross_entropy(logits, targets)

    recipes = {1: Recipe("one", loss=times(1)), 4: Recipe("two", loss=times(2)), 6: Recipe("three", loss=times(3))}
    noise_tracker = NoiseTracker(NoiseModel(BetaMixture()))
    return Phases(recipes, noise_tracker, Timeline(9, drops, 9), **changes)


def make_task(samples=100):
    return Task(torch.arange(samples) % 2, classes=2, epochs=9)


def filled_ledger(losses):
    ledger = Ledger(len(losses))
    ledger.losses = losses
    return ledger


def two_humps(samples=100):
    return torch.where(torch.arange(samples) % 4 == 0, 4.0, 0.2) + torch.linspace(0, 0.1, samples)


def test_a_timeline_run_in_full_has_the_published_epochs():
    timeline = Timeline(300, (100, 250), 300)
    assert [timeline.after(epoch) for epoch in (1, 105, 300)] == [1, 105, 300]
    assert [timeline.start(epoch) for epoch in (1, 106, 111)] == [1, 106, 111]


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 60, 119, 150, 301, 600])
def test_a_timeline_keeps_the_published_fractions_to_half_an_epoch(epochs):
    timeline = Timeline(300, (100, 250), epochs)
    for epoch in (30, 105, 250, 300):
        exact = epoch * epochs / 300
        assert timeline.after(epoch) >= 1
        assert abs(timeline.after(epoch) - max(1, exact)) <= 0.5


@pytest.mark.parametrize("epochs", range(1, 40))
def test_later_stages_never_start_before_earlier_ones_nor_in_the_first_epoch(epochs):
    timeline = Timeline(300, (100, 250), epochs)
    starts = [timeline.start(epoch) for epoch in (1, 2, 31, 106, 111, 300)]
    assert starts == sorted(starts)
    assert starts[0] == 1
    assert min(starts[1:]) >= 2


def test_the_rate_is_a_tenth_after_each_drop():
    timeline = Timeline(10, (4, 8), 10)
    expected = [1.0] * 4 + [0.1] * 4 + [0.01] * 2
    assert [timeline.rate(epoch) for epoch in range(1, 11)] == pytest.approx(expected)


def test_linear_is_level_outside_and_straight_inside_its_points():
    value = linear((10, 1.0), (20, 0.0))
    assert [value(epoch) for epoch in (1, 10, 15, 20, 99)] == pytest.approx([1, 1, 0.5, 0, 0])


def test_linear_between_points_that_fall_together_is_at_its_end():
    assert linear((2, 1.0), (2, 0.25))(2) == 0.25
    assert linear((3, 1.0), (2, 0.25))(1) == 0.25


def test_each_recipe_is_in_force_from_its_epoch_to_the_next():
    phases = make_phases()
    expected = ["one"] * 3 + ["two"] * 2 + ["three"] * 4
    assert [phases.phase(epoch) for epoch in range(1, 10)] == expected


def test_the_order_in_which_recipes_are_given_does_not_matter():
    first, second = Recipe("first"), Recipe("second")
    phases = Phases({5: second, 1: first}, NoiseTracker(NoiseModel(BetaMixture())), Timeline(9, (), 9))
    assert [phases.phase(epoch) for epoch in (4, 5)] == ["first", "second"]


def test_a_step_learns_by_the_recipe_in_force():
    phases, task = make_phases(), make_task()
    phases.begin(task)
    losses = []
    for epoch in (3, 4, 6):
        network = nn.Linear(3, 2)
        nn.init.zeros_(network.weight)
        nn.init.zeros_(network.bias)
        learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
        batch = Batch(torch.ones(4, 3), task.labels[:4], torch.arange(4))
        losses.append(phases.step([learner], batch, epoch, torch.Generator()).item())
    assert losses == pytest.approx([factor * 0.6931472 for factor in (1, 2, 3)])


def test_the_rate_is_the_one_given():
    assert make_phases(drops=(3,)).rate(4) == 0.1


def test_everybody_is_clean_before_the_first_fit():
    phases = make_phases()
    phases.begin(make_task())
    estimate = phases.estimate()
    assert estimate.probability.tolist() == [0.0] * 100
    assert estimate.rate == 0
    assert estimate.parameters == {}
    assert estimate.degenerate == "not fitted yet"


def test_the_end_of_an_epoch_refits_the_noise_model_on_the_ledger():
    phases, losses = make_phases(), two_humps()
    phases.begin(make_task())
    phases.after_tracking([filled_ledger(losses)], 1)
    estimate = phases.estimate()
    assert torch.equal(estimate.probability, NoiseModel(BetaMixture()).fit(losses).posterior(losses))
    assert (estimate.probability > 0.5).tolist() == [i % 4 == 0 for i in range(100)]
    assert estimate.rate == pytest.approx(0.25, abs=0.01)
    assert estimate.degenerate is None
    assert {"weight_clean", "alpha_noisy", "low", "span"} <= estimate.parameters.keys()


def test_losses_of_several_learners_are_averaged():
    phases, losses = make_phases(), two_humps()
    phases.begin(make_task())
    phases.after_tracking([filled_ledger(losses + 0.1), filled_ledger(losses - 0.1)], 1)
    torch.testing.assert_close(phases.estimate().probability, NoiseModel(BetaMixture()).fit(losses).posterior(losses))


def test_hopeless_losses_leave_everybody_clean_and_say_why():
    phases = make_phases()
    phases.begin(make_task())
    phases.after_tracking([filled_ledger(two_humps())], 1)
    phases.after_tracking([filled_ledger(torch.ones(100))], 2)
    estimate = phases.estimate()
    assert estimate.degenerate == "the losses between the bounds are all equal"
    assert estimate.rate == 0
    assert estimate.parameters == {}


def test_what_is_believed_survives_the_state_dict():
    phases, other = make_phases(), make_phases()
    for each in (phases, other):
        each.begin(make_task())
    phases.after_tracking([filled_ledger(two_humps())], 1)
    other.load_state_dict(phases.state_dict())
    assert torch.equal(other.estimate().probability, phases.estimate().probability)
    assert other.estimate().parameters == phases.estimate().parameters
    assert other.estimate().degenerate is None


EQUAL = torch.ones(100)
LEADS = torch.where(torch.arange(100) % 4 == 0, 6.0, -6.0) + torch.linspace(-0.5, 0.5, 100)


@pytest.mark.parametrize(
    ("losses", "rival_log_odds", "decided_by", "parameter"),
    [
        (two_humps(), LEADS, "rival_log_odds", "mean_noisy"),
        (EQUAL, LEADS, "rival_log_odds", "mean_noisy"),
        (two_humps(), EQUAL, "losses", "alpha_noisy"),
        (EQUAL, EQUAL, None, None),
    ],
)
def test_an_estimate_is_of_the_mixture_that_decided_and_degenerate_only_if_none_did(
    losses, rival_log_odds, decided_by, parameter
):
    tracker, ledger = NoiseTracker.usual(), filled_ledger(losses)
    ledger.rival_log_odds = rival_log_odds
    tracker.begin(make_task(), [ledger])
    tracker.update([ledger])
    estimate = tracker.estimate()
    assert estimate.decided_by == decided_by
    assert (estimate.degenerate is None) == (decided_by is not None)
    assert estimate.rate == pytest.approx(0.25 if decided_by else 0, abs=0.01)
    assert {"mean_noisy", "alpha_noisy"} & estimate.parameters.keys() == ({parameter} if parameter else set())


def test_a_step_goes_down_the_gradient_of_the_objective():
    network, task = nn.Linear(3, 2), make_task()
    twin = copy.deepcopy(network)
    batch = Batch(torch.eye(3), task.labels[:3], torch.arange(3))
    expected = nn.functional.cross_entropy(twin(batch.inputs), batch.labels)
    expected.backward()
    phases, learner = make_phases(), Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    phases.begin(task)
    loss = phases.step([learner], batch, 1, torch.Generator())
    assert not loss.requires_grad
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(network.weight, twin.weight - 0.1 * twin.weight.grad)
