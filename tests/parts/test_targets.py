import pytest
import torch
from counting import Counting
from torch.nn import functional as F  # noqa: N812

from labelmend.core import Batch, Learner, Mix, Step
from labelmend.methods.recipe import Recipe
from labelmend.parts.mixing import Mixup
from labelmend.parts.targets import Corrected, Fixed, Tempered, given, hard, soft

CLASSES = 3


def make_step(*, samples=8, mixed=False, epoch=1, seed=0):
    rng = torch.Generator().manual_seed(seed)
    network = Counting()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))
    inputs = 3 + 2 * torch.randn(samples, 4, generator=rng)
    labels = torch.randint(CLASSES, (samples,), generator=rng)
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    step = Step(learner, Batch(inputs, labels, torch.arange(samples)), epoch, rng, CLASSES)
    if mixed:
        step.mix = Mixup(32.0)(step)
    return step


def shares(values):
    return lambda step: torch.as_tensor(values, dtype=torch.float32)


def distinct_logits():
    rng = torch.Generator().manual_seed(0)
    return torch.stack([torch.randperm(10, generator=rng).float() for _ in range(50)])


def test_given_targets_are_the_observed_labels():
    step = make_step()
    assert torch.equal(given(step), torch.eye(CLASSES)[step.batch.labels])


def test_tempered_guess_near_zero_temperature_is_the_hard_guess():
    logits = distinct_logits()
    torch.testing.assert_close(Tempered(lambda epoch: 0.001)(logits, 1), hard(logits, 1), rtol=0, atol=1e-12)


def test_tempered_guess_at_temperature_one_is_the_soft_guess():
    logits = distinct_logits()
    assert torch.equal(Tempered(lambda epoch: 1.0)(logits, 1), soft(logits, 1))


def test_tempered_guess_is_the_literal_formula_at_the_epoch_s_temperature():
    logits = distinct_logits()
    powers = (logits.double() / 0.5).exp()
    guess = Tempered(lambda epoch: 1 / epoch)(logits, 2)
    torch.testing.assert_close(guess.double(), powers / powers.sum(dim=1, keepdim=True), rtol=1e-5, atol=1e-7)


def test_tempered_guess_stays_finite_with_large_logits():
    guess = Tempered(lambda epoch: 0.001)(torch.tensor([[1e4, 0.0, -1e4]]), 1)
    assert guess.tolist() == [[1.0, 0.0, 0.0]]


def test_hard_guess_is_one_at_the_most_probable_class():
    assert hard(torch.tensor([[0.1, 2.0, -1.0], [3.0, 2.0, 1.0]]), 1).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("guess", [hard, soft])
@pytest.mark.parametrize("mixed", [False, True])
def test_corrected_targets_are_the_literal_bootstrapping_sum(guess, mixed):
    step = make_step(mixed=mixed)
    weights = torch.linspace(0, 1, 8)
    targets = Corrected(guess, shares(weights))(step)
    predicted = guess(step.clean_logits(training=not mixed), 1)
    for i, w in enumerate(weights.tolist()):
        label = F.one_hot(step.batch.labels[i], CLASSES)
        torch.testing.assert_close(targets[i], (1 - w) * label + w * predicted[i])


def test_zero_share_gives_the_given_labels_and_full_share_the_guess():
    step = make_step()
    assert torch.equal(Corrected(hard, Fixed(0.0))(step), given(step))
    assert torch.equal(Corrected(hard, Fixed(1.0))(step), hard(step.logits, 1))


@pytest.mark.parametrize("guess", [hard, soft, Tempered(lambda epoch: 0.1)])
def test_corrected_targets_are_distributions_without_gradient(guess):
    targets = Corrected(guess, Fixed(0.3))(make_step())
    assert not targets.requires_grad
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(8))


def test_fixed_share_is_the_same_for_every_sample():
    assert Fixed(0.2)(make_step()).tolist() == pytest.approx([0.2] * 8)


def test_unmixed_guess_needs_no_pass_of_its_own():
    step = make_step()
    Recipe("bootstrapping", targets=Corrected(hard, Fixed(0.5))).objective(step)
    assert step.learner.network.passes == [("train", True)]


def test_mixed_guess_comes_from_one_clean_pass_in_evaluation_mode():
    step = make_step()
    Recipe("bootstrapping", targets=Corrected(hard, Fixed(0.5)), mixing=Mixup(32.0)).objective(step)
    assert step.learner.network.passes == [("eval", False), ("train", True)]


def test_clean_pass_is_not_run_unless_somebody_asks():
    step = make_step(mixed=True)
    _ = step.logits, step.labels
    assert step.learner.network.passes == [("train", True)]


def test_clean_pass_is_run_once_whoever_asks():
    step = make_step(mixed=True)
    first = step.clean_logits()
    step.clean_losses()
    assert step.clean_logits() is first
    assert step.learner.network.passes == [("eval", False)]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_clean_logits_carry_no_gradient(training, mixed):
    assert not make_step(mixed=mixed).clean_logits(training=training).requires_grad


@pytest.mark.parametrize("mode", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_clean_pass_leaves_the_network_in_the_mode_it_had(training, mode):
    step = make_step(mixed=True)
    step.learner.network.train(mode)
    step.clean_logits(training=training)
    assert all(module.training is mode for module in step.learner.network.modules())


def test_clean_pass_in_evaluation_mode_leaves_batchnorm_statistics_alone():
    step = make_step(mixed=True)
    norm = step.learner.network.norm
    before = norm.running_mean.clone(), norm.running_var.clone(), norm.num_batches_tracked.clone()
    step.clean_logits()
    assert torch.equal(norm.running_mean, before[0])
    assert torch.equal(norm.running_var, before[1])
    assert torch.equal(norm.num_batches_tracked, before[2])


def test_clean_pass_in_training_mode_moves_batchnorm_statistics():
    step = make_step(mixed=True)
    norm = step.learner.network.norm
    expected = 0.9 * norm.running_mean + 0.1 * step.batch.inputs.mean(dim=0)
    step.clean_logits(training=True)
    torch.testing.assert_close(norm.running_mean, expected)
    assert step.learner.network.passes == [("train", False)]


def test_unmixed_training_pass_is_the_learning_pass_itself():
    step = make_step()
    assert torch.equal(step.clean_logits(training=True), step.logits.detach())
    assert step.learner.network.passes == [("train", True)]


def test_clean_losses_are_cross_entropy_of_the_unmixed_inputs():
    step = make_step(mixed=True)
    network = step.learner.network.eval()
    expected = F.cross_entropy(network(step.batch.inputs), step.batch.labels, reduction="none")
    network.train()
    torch.testing.assert_close(step.clean_losses(), expected.detach())


def test_mixed_logits_are_those_of_the_mixed_inputs():
    step = make_step()
    partner = torch.arange(8).flip(0)
    share = torch.linspace(0, 1, 8)
    step.mix = Mix(partner, share, share)
    x = step.batch.inputs
    mixed = torch.stack([share[i] * x[i] + (1 - share[i]) * x[partner[i]] for i in range(8)])
    torch.testing.assert_close(step.logits, step.learner.network(mixed))
