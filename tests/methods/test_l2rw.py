import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.errors import InputError
from labelmend.methods import find
from labelmend.methods.l2rw import ReweightOptions, helpfulness, shares


def make_batch(samples, seed, *, dtype=torch.float32):
    rng = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 4, generator=rng, dtype=dtype)
    return Batch(inputs, torch.randint(3, (samples,), generator=rng), torch.arange(samples))


def make_network(dtype=torch.float32):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)
        return nn.Sequential(*layers).to(dtype)


def trusting(batch):
    """Trusted samples that are always drawn whole."""

    class Whole:
        index = torch.arange(len(batch))

        def __len__(self):
            return len(batch)

        def draw(self, size, rng):
            return batch

    return Task(batch.labels, classes=3, epochs=10, trusted=Whole())


def make_method(trusted):
    method = find("l2rw").build(ReweightOptions(), 10)
    method.begin(trusting(trusted))
    return method


def make_learner(network, **options):
    return Learner(network, torch.optim.SGD(network.parameters(), lr=0.1, **options))


def trusted_loss_after(network, batch, trusted, epsilon, rate):
    """The definition: take a step of SGD on the weighted losses, then look at the trusted samples."""
    moved = copy.deepcopy(network)
    losses = F.cross_entropy(moved(batch.inputs), batch.labels, reduction="none")
    (epsilon * losses).sum().backward()
    with torch.no_grad():
        for weight in moved.parameters():
            weight -= rate * weight.grad
        return F.cross_entropy(moved(trusted.inputs), trusted.labels).item()


def test_the_weights_are_those_that_finite_differences_of_the_definition_give():
    network, rate, width = make_network(torch.float64), 0.3, 1e-5
    batch, trusted = make_batch(7, 1, dtype=torch.float64), make_batch(5, 2, dtype=torch.float64)
    expected = []
    for nudge in width * torch.eye(7, dtype=torch.float64):
        up, down = (trusted_loss_after(network, batch, trusted, sign * nudge, rate) for sign in (1, -1))
        expected.append((down - up) / (2 * width))
    expected = torch.tensor(expected, dtype=torch.float64)
    found = helpfulness(network, batch, trusted)
    torch.testing.assert_close(rate * found, expected, rtol=1e-5, atol=1e-8)
    assert 0 < (expected > 0).sum() < 7
    positive = torch.tensor([max(0.0, value) for value in expected.tolist()], dtype=torch.float64)
    torch.testing.assert_close(shares(found), positive / positive.sum(), rtol=1e-5, atol=1e-8)


def test_shares_are_the_positive_part_and_sum_to_one():
    assert shares(torch.tensor([3.0, -2.0, 1.0, 0.0])).tolist() == [0.75, 0.0, 0.25, 0.0]


def test_a_batch_that_cannot_help_has_weights_of_zero():
    assert shares(torch.tensor([-1.0, 0.0, -3.0])).tolist() == [0.0, 0.0, 0.0]


def test_looking_for_weights_leaves_the_network_as_it_was():
    network = make_network()
    before = copy.deepcopy(network.state_dict())
    helpfulness(network, make_batch(7, 1), make_batch(5, 2))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(weight.grad is None for weight in network.parameters())


def test_a_step_learns_by_the_weighted_loss_and_moves_the_statistics_once():
    batch, trusted = make_batch(7, 1), make_batch(5, 2)
    network, other = make_network(), make_network()
    weights = shares(helpfulness(other, batch, trusted))
    loss = (weights * F.cross_entropy(other(batch.inputs), batch.labels, reduction="none")).sum()
    loss.backward()
    torch.optim.SGD(other.parameters(), lr=0.1).step()
    given = make_method(trusted).step([make_learner(network)], batch, 1, torch.Generator())
    torch.testing.assert_close(given, loss.detach())
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name])


def test_a_batch_that_only_contradicts_the_trusted_samples_teaches_nothing():
    inputs = torch.eye(4)
    trusted = Batch(inputs, torch.tensor([0, 1, 2, 0]), torch.arange(4))
    wrong = Batch(inputs, torch.tensor([1, 2, 0, 1]), torch.arange(4))
    network = nn.Linear(4, 3, bias=False)
    nn.init.zeros_(network.weight)
    loss = make_method(trusted).step([make_learner(network)], wrong, 1, torch.Generator())
    assert loss == 0
    assert network.weight.abs().max() == 0


def test_of_one_right_and_one_wrong_label_only_the_right_one_counts():
    trusted = Batch(torch.eye(4)[:2], torch.tensor([0, 1]), torch.arange(2))
    batch = Batch(torch.eye(4)[:2], torch.tensor([0, 2]), torch.arange(2))
    network = nn.Linear(4, 3, bias=False)
    nn.init.zeros_(network.weight)
    assert shares(helpfulness(network, batch, trusted)).tolist() == [1.0, 0.0]


def test_frozen_and_unused_weights_do_no_harm():
    network = make_network()
    network[0].weight.requires_grad_(False)
    network.unused = nn.Parameter(torch.ones(2))
    network.forward = lambda inputs: network[5](network[3](network[2](network[1](network[0](inputs)))))
    assert helpfulness(network, make_batch(7, 1), make_batch(5, 2)).isfinite().all()


@pytest.mark.parametrize("trusted", [None, trusting(make_batch(1, 0)).trusted])
def test_fewer_than_two_trusted_samples_are_refused(trusted):
    with pytest.raises(InputError, match=r"at least 2 .* --trusted"):
        find("l2rw").build(ReweightOptions(), 10).begin(Task(torch.zeros(9), 3, 10, trusted))


def test_the_rate_drops_at_half_and_at_three_quarters():
    rate = find("l2rw").build(ReweightOptions(), 160).rate
    assert [rate(epoch) for epoch in (1, 80, 81, 120, 121, 160)] == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
