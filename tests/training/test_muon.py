import pytest
import torch

from labelmend.core import Learner, generator
from labelmend.errors import InputError
from labelmend.nets import build_net
from labelmend.training.config import Optimisation
from labelmend.training.muon import ITERATIONS, Muon, orthogonalised
from labelmend.training.optimiser import FAST, optimiser_settings


@pytest.mark.parametrize("shape", [(8, 4, 3, 3), (40, 2, 3, 3), (5, 5)])
def test_orthogonalised_values_have_the_singular_vectors_of_the_original_and_similar_singular_values(shape):
    values = torch.randn(shape, generator=generator(0, "values"))
    left, _, right = torch.linalg.svd(values.flatten(1), full_matrices=False)
    inside = left.T @ orthogonalised(values).flatten(1) @ right.T
    sizes = torch.diagonal(inside)
    assert (inside - torch.diag(sizes)).abs().max() < 1e-4
    assert sizes.max() < 1.3
    assert sizes[: len(sizes) // 2].min() > 0.6, f"{ITERATIONS} iterations leave the larger half near 1"


def test_a_step_of_filters_has_the_set_length_whatever_the_size_of_the_gradient():
    moved = []
    for size in (1e-3, 1e3):
        weight = torch.nn.Parameter(torch.randn(6, 3, 3, 3, generator=generator(0, "w")))
        weight.data.mul_(6**0.5 / weight.data.norm())
        before = weight.detach().clone()
        weight.grad = size * torch.randn(6, 3, 3, 3, generator=generator(0, "g"))
        Muon([weight, torch.nn.Parameter(torch.zeros(1))], filter_rate=0.1, lr=1.0).step()
        moved.append(weight.detach() - before)
    assert torch.allclose(moved[0], moved[1], atol=1e-5)
    assert 0.5 < moved[0].norm() / (0.1 * 6**0.5) < 1.3


def test_all_other_weights_are_moved_as_by_sgd():
    def stepped(build):
        rows = torch.nn.Parameter(torch.ones(3, 2))
        optimiser = build(rows)
        for step in range(3):
            rows.grad = torch.full((3, 2), 0.1 * (step + 1))
            optimiser.step()
        return rows.detach()

    settings = {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}
    filters = torch.nn.Parameter(torch.ones(2, 1, 3, 3))
    muon = stepped(lambda rows: Muon([rows, filters], filter_rate=0.1, **settings))
    assert torch.equal(muon, stepped(lambda rows: torch.optim.SGD([rows], **settings)))


def test_the_schedule_moves_the_rates_of_filters_and_of_all_other_weights_alike():
    network = build_net("fast-16", (1, 16, 16), 3, rng=generator(0, "n"))
    learner = Learner(network, FAST.build(network))
    learner.set_rate(0.5)
    rates = [group["lr"] for group in learner.optimiser.param_groups]
    assert rates == [0.5 * FAST.learning_rate, 0.5 * FAST.filter_rate]


def test_a_filter_rate_of_zero_is_plain_sgd_and_other_networks_refuse_one():
    settings, _ = optimiser_settings("fast-16", 256, Optimisation(filter_rate=0.0))
    network = build_net("fast-16", (1, 16, 16), 3, rng=generator(0, "n"))
    assert type(settings.build(network)) is torch.optim.SGD
    with pytest.raises(InputError, match="filter_rate is for networks that normalise"):
        optimiser_settings("convnet", 256, Optimisation(filter_rate=0.1))
