import math
import statistics

import pytest
import torch
from torch import nn

from labelmend.core import Batch, Learner, Task, generator
from labelmend.methods.d2l import D2LOptions, DimensionalityDriven, local_dimension, trust, turning_point

FALLING = [9.0, 7.0, 6.1, 6.0, 5.9, 6.0, 5.9, 5.8]


def make_method(epochs=40, samples=60, **options):
    method = DimensionalityDriven(D2LOptions(**options), epochs)
    method.begin(Task(torch.arange(samples) % 3, classes=3, epochs=epochs))
    return method


def make_learner():
    network = nn.Linear(4, 3)
    with torch.no_grad():
        network.weight.copy_(torch.randn(3, 4, generator=generator(0, "weights")))
        network.bias.zero_()
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))


def make_batch(samples, first=0):
    index = torch.arange(first, first + samples)
    return Batch(torch.randn(samples, 4, generator=generator(first, "inputs")), index % 3, index)


def run_epochs(method, dimensions, first=1):
    """Begin one epoch after each of these dimensionalities; gives the share of given labels in each."""
    shares = []
    for epoch, dimension in enumerate(dimensions, first):
        method.local.fill_(dimension)
        method.epoch_begin([], epoch + 1)
        shares.append(float(method.alpha))
    return shares


def test_a_turning_point_is_two_standard_deviations_above_its_window():
    bound = statistics.mean(FALLING[3:]) + 2 * statistics.pstdev(FALLING[3:])
    assert turning_point([*FALLING, bound - 1e-6], 1, 5) is None
    assert turning_point([*FALLING, bound + 1e-6], 1, 5) == len(FALLING)


def test_no_turning_point_is_looked_for_before_the_first_epochs_and_a_window_are_over():
    dimensions = [5.0, 5.0, 5.0, 9.0, 1.0, 1.0, 1.0]
    assert turning_point(dimensions, 0, 3) == 3
    assert turning_point(dimensions, 1, 3) is None


def test_a_turning_point_is_not_forgotten_when_dimensions_fall_again():
    assert turning_point([*FALLING, 9.0, 3.0, 2.0, 1.0], 1, 5) == len(FALLING)


def test_trust_falls_with_progress_and_with_the_growth_over_the_least_dimensionality_before():
    assert trust([8.0, 4.0, 5.0, 6.0], 0.5) == pytest.approx(math.exp(-0.5 * 6 / 4))
    assert trust([8.0, 4.0, 2.0], 0.5) == pytest.approx(math.exp(-0.5 * 2 / 4))


def test_labels_are_as_given_up_to_the_turning_point_and_adapted_from_then_on():
    method = make_method(pace=1.0)
    shares = run_epochs(method, [*FALLING, 8.0, 7.0])
    expected = [math.exp(-9 / 40 * 8 / 5.8), math.exp(-10 / 40 * 7 / 5.8)]
    assert shares == pytest.approx([1.0] * len(FALLING) + expected, rel=1e-5)
    torch.testing.assert_close(method.dimensions[:10], torch.tensor([*FALLING, 8.0, 7.0]))
    assert method.phase(11) == "adapted labels"


def test_the_pace_multiplies_the_share_of_epochs_that_is_over():
    method = make_method(pace=3.0)
    assert run_epochs(method, [*FALLING, 8.0])[-1] == pytest.approx(math.exp(-3 * 9 / 40 * 8 / 5.8), rel=1e-5)


def test_falling_dimensions_leave_all_labels_as_given():
    method = make_method()
    assert run_epochs(method, FALLING) == [1.0] * len(FALLING)
    assert method.phase(9) == "given labels"


@pytest.mark.parametrize("alpha", [1.0, 0.25])
def test_a_step_learns_the_given_label_by_alpha_and_the_predicted_class_by_the_rest(alpha):
    method, learner, batch = make_method(), make_learner(), make_batch(12)
    method.alpha.fill_(alpha)
    logs = (batch.inputs @ learner.network.weight.detach().T).log_softmax(dim=1)
    rows = zip(logs.tolist(), batch.labels.tolist(), strict=True)
    losses = [-alpha * row[label] - (1 - alpha) * max(row) for row, label in rows]
    before = learner.network.weight.detach().clone()
    loss = method.step([learner], batch, 1, torch.Generator())
    assert float(loss) == pytest.approx(statistics.mean(losses), rel=1e-5)
    assert not torch.equal(learner.network.weight, before)


def test_a_step_notes_the_dimensionality_of_what_goes_into_the_last_layer():
    method, batch = make_method(neighbours=5), make_batch(20, first=10)
    method.step([make_learner()], batch, 1, torch.Generator())
    assert torch.equal(method.local[10:30], local_dimension(batch.inputs, 5))
    assert not method.local[:10].any()
    assert not method.local[30:].any()


def test_a_batch_of_few_samples_is_learned_and_leaves_the_dimensionality_as_it_was():
    method = make_method()
    method.local.fill_(3.0)
    for samples in (1, 2, 7):
        assert method.step([make_learner()], make_batch(samples), 1, torch.Generator()).isfinite()
    assert method.local.tolist() == [3.0] * 60


def test_what_was_measured_survives_the_state_dict():
    method, other = make_method(), make_method()
    run_epochs(method, [*FALLING, 8.0])
    other.load_state_dict(method.state_dict())
    assert run_epochs(other, [8.5], first=10) == run_epochs(method, [8.5], first=10) != [1.0]
