import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Mix, Step
from labelmend.methods.recipe import Recipe
from labelmend.parts.losses import soft_cross_entropy
from labelmend.parts.penalties import UniformPrior
from labelmend.parts.targets import Corrected, Fixed, hard, soft

SAMPLES, CLASSES = 16, 5


def linear_step(seed=0):
    rng = torch.Generator().manual_seed(seed)
    network = nn.Linear(6, CLASSES, bias=False)
    with torch.no_grad():
        network.weight.copy_(torch.randn(CLASSES, 6, generator=rng))
    inputs = torch.randn(SAMPLES, 6, generator=rng)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=rng)
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    return Step(learner, Batch(inputs, labels, torch.arange(SAMPLES)), 1, rng, CLASSES)


def random_mix(step, *, share=None):
    partner = torch.randperm(SAMPLES, generator=step.rng)
    draw = torch.full((SAMPLES,), share) if share is not None else torch.rand(SAMPLES, generator=step.rng)
    return Mix(partner, draw, draw)


def test_one_hot_targets_give_plain_cross_entropy():
    step = linear_step()
    expected = F.cross_entropy(step.logits, step.batch.labels, reduction="none")
    torch.testing.assert_close(soft_cross_entropy(step.logits, step.labels), expected)


def test_soft_targets_give_the_cross_entropy_of_torch():
    step = linear_step()
    targets = torch.rand(SAMPLES, CLASSES, generator=step.rng).softmax(dim=1)
    expected = F.cross_entropy(step.logits, targets, reduction="none")
    torch.testing.assert_close(soft_cross_entropy(step.logits, targets), expected)


@pytest.mark.parametrize("guess", [hard, soft])
def test_zero_noise_weight_gives_plain_cross_entropy(guess):
    step = linear_step()
    objective = Recipe("bootstrapping", targets=Corrected(guess, Fixed(0.0))).objective(step)
    torch.testing.assert_close(objective, F.cross_entropy(step.logits, step.batch.labels))


def test_mixed_targets_give_the_mixed_loss():
    step = linear_step()
    step.mix = random_mix(step)
    share, partner, labels = step.mix.target_share, step.mix.partner, step.batch.labels
    own = F.cross_entropy(step.logits, labels, reduction="none")
    other = F.cross_entropy(step.logits, labels[partner], reduction="none")
    loss = soft_cross_entropy(step.logits, step.mix.targets(step.labels))
    torch.testing.assert_close(loss, share * own + (1 - share) * other, rtol=0, atol=1e-6)


def literal_loss(step, guess, weights, mix):
    """Eq. 13 as printed, one sample at a time."""
    y = F.one_hot(step.batch.labels, CLASSES).float()
    z = guess(step.learner.network(step.batch.inputs).detach(), 1)
    log_h = step.logits.log_softmax(dim=1)
    losses = []
    for p, q in enumerate(mix.partner.tolist()):
        delta = mix.target_share[p]
        first = -delta * (((1 - weights[p]) * y[p] + weights[p] * z[p]) @ log_h[p])
        second = -(1 - delta) * (((1 - weights[q]) * y[q] + weights[q] * z[q]) @ log_h[p])
        losses.append(first + second)
    return torch.stack(losses)


@pytest.mark.parametrize("share", [None, 0.5, 0.0, 1.0])
@pytest.mark.parametrize("guess", [hard, soft])
def test_the_literal_two_term_loss_is_cross_entropy_on_mixed_corrected_targets(guess, share):
    step = linear_step()
    weights = torch.rand(SAMPLES, generator=step.rng)
    step.mix = random_mix(step, share=share)
    targets = step.mix.targets(Corrected(guess, lambda step: weights)(step))
    loss = soft_cross_entropy(step.logits, targets)
    torch.testing.assert_close(loss, literal_loss(step, guess, weights, step.mix), rtol=0, atol=1e-6)


def test_a_whole_recipe_is_the_mean_of_the_literal_loss_plus_the_penalty():
    step = linear_step()
    weights, mix = torch.rand(SAMPLES, generator=step.rng), random_mix(step)
    recipe = Recipe(
        "all", targets=Corrected(hard, lambda step: weights), mixing=lambda step: mix, penalty=UniformPrior(0.7)
    )
    objective = recipe.objective(step)
    mean = step.logits.softmax(dim=1).mean(dim=0)
    penalty = sum((1 / CLASSES) * torch.log((1 / CLASSES) / mean[c]) for c in range(CLASSES))
    expected = literal_loss(step, hard, weights, mix).mean() + 0.7 * penalty
    torch.testing.assert_close(objective, expected, rtol=0, atol=1e-6)
