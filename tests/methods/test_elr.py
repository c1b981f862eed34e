import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Task
from labelmend.methods.elr import EarlyLearning, ElrOptions, disagreement


def make_method(classes=3, samples=6, **options):
    made = EarlyLearning(ElrOptions(**options), 12)
    made.begin(Task(torch.arange(samples) % classes, classes=classes, epochs=12))
    return made


def draw(rows, classes, seed):
    return torch.randn(rows, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_the_gradient_of_the_penalty_is_that_of_the_papers_lemma():
    logits, memory = draw(5, 4, 0).requires_grad_(), draw(5, 4, 1).softmax(dim=1)
    (found,) = torch.autograd.grad(disagreement(logits.softmax(dim=1), memory).sum(), logits)
    p = logits.detach().softmax(dim=1)
    expected = torch.empty_like(p)
    for i in range(5):
        for c in range(4):
            pull = sum((memory[i, k] - memory[i, c]) * p[i, k] for k in range(4))
            expected[i, c] = p[i, c] / (1 - p[i] @ memory[i]) * pull
    torch.testing.assert_close(found, expected)


def test_the_penalty_pulls_toward_what_is_remembered():
    logits = torch.zeros(1, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        disagreement(logits.softmax(dim=1), torch.tensor([[0.8, 0.1, 0.1]])).sum(), logits
    )
    assert gradient[0, 0] < 0 < gradient[0, 1]


def test_the_memory_is_a_moving_mean_of_each_samples_predictions():
    made, first, second = make_method(inertia=0.7), torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([[0.6, 0.2, 0.2]])
    made.remember(torch.tensor([4]), first)
    found = made.remember(torch.tensor([4]), second)
    torch.testing.assert_close(found, 0.7 * 0.3 * first + 0.3 * second)
    assert made.memory[[0, 1, 2, 3, 5]].abs().sum() == 0


def test_a_step_adds_the_penalty_to_cross_entropy_and_learns():
    made = make_method(strength=3.0, inertia=0.7)
    network = nn.Linear(2, 3)
    logits = network(torch.ones(4, 2)).detach()
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    before = network.weight.detach().clone()
    batch = Batch(torch.ones(4, 2), torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 3]))
    loss = made.step([learner], batch, 1, torch.Generator())
    p = logits.softmax(dim=1)
    expected = F.cross_entropy(logits, batch.labels) + 3 * (1 - 0.3 * p.square().sum(dim=1)).log().mean()
    assert float(loss) == pytest.approx(float(expected), abs=1e-5)
    assert not torch.equal(network.weight, before)


def test_without_strength_it_is_cross_entropy():
    made, network = make_method(strength=0.0), nn.Linear(2, 3)
    expected = F.cross_entropy(network(torch.ones(2, 2)), torch.tensor([0, 1])).item()
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    batch = Batch(torch.ones(2, 2), torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert float(made.step([learner], batch, 1, torch.Generator())) == pytest.approx(expected, abs=1e-6)
