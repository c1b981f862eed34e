import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from labelmend.parts.transitions import (
    backward_cross_entropy,
    best_temperature,
    bounded_inverse,
    forward_cross_entropy,
    from_certain_samples,
    from_known_samples,
)

NOISE = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.05, 0.15, 0.8]], dtype=torch.float64)
SCORES = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, 0.0], [-1.0, 0.2, 2.0], [4.0, 0.0, -4.0]], dtype=torch.float64)


def expected_over_noise(loss, logits, right, matrix):
    """The mean of a loss over the labels that NOISE gives to samples of the class `right`."""
    given = [loss(logits, torch.full((len(logits),), label), matrix) for label in range(3)]
    return sum(NOISE[right, label] * given[label] for label in range(3))


def test_the_forward_loss_is_that_of_predictions_multiplied_by_the_matrix():
    labels = torch.tensor([2, 0, 1, 2])
    losses = forward_cross_entropy(SCORES, labels, NOISE)
    for scores, label, loss in zip(SCORES, labels, losses, strict=True):
        weights = scores.exp()
        reached = sum(weights[i] / weights.sum() * NOISE[i, label] for i in range(3))
        assert loss.item() == pytest.approx(-reached.log().item())


def test_the_forward_loss_without_noise_is_cross_entropy_and_its_zeros_leave_finite_gradients():
    logits, labels = (100 * SCORES.float()).requires_grad_(), torch.tensor([2, 0, 1, 2])
    losses = forward_cross_entropy(logits, labels, torch.eye(3))
    losses.sum().backward()
    limit = -torch.tensor(torch.finfo(torch.float32).tiny).log()
    torch.testing.assert_close(losses, F.cross_entropy(logits, labels, reduction="none").clamp(max=limit))
    assert logits.grad.isfinite().all()


def test_the_forward_loss_has_its_minimum_at_the_clean_posterior():
    clean = torch.tensor([[0.9, 0.06, 0.04], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], dtype=torch.float64)
    noisy = clean @ NOISE
    logits = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    for _ in range(1000):
        losses = torch.stack([forward_cross_entropy(logits, torch.full((3,), j), NOISE) for j in range(3)], dim=1)
        (gradient,) = torch.autograd.grad((noisy * losses).sum(), logits)
        logits = (logits - 10 * gradient).detach().requires_grad_()
    torch.testing.assert_close(logits.softmax(dim=1).detach(), clean, atol=1e-5, rtol=0)


@pytest.mark.parametrize("right", [0, 1, 2])
def test_the_mean_of_the_backward_loss_over_noisy_labels_is_the_clean_loss(right):
    mean = expected_over_noise(backward_cross_entropy, SCORES, right, torch.linalg.inv(NOISE))
    clean = -(SCORES.softmax(dim=1)[:, right] + 1e-4).log()
    torch.testing.assert_close(mean, clean)


def test_the_backward_loss_is_bounded_where_predictions_vanish():
    logits = torch.tensor([[1e4, 0.0, 0.0]], dtype=torch.float64)
    loss = backward_cross_entropy(logits, torch.tensor([0]), torch.linalg.inv(NOISE))
    assert abs(loss.item()) <= torch.linalg.inv(NOISE)[0].abs().sum().item() * 9.2104


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
def test_the_best_temperature_undoes_predictions_that_are_too_sure_or_not_sure_enough(sharpness):
    posteriors = NOISE.repeat_interleave(20, dim=0)
    labels = torch.cat([torch.repeat_interleave(torch.arange(3), (20 * row).round().long()) for row in NOISE])
    assert best_temperature(sharpness * posteriors.log(), labels) == sharpness


def test_sure_samples_give_the_matrix_whatever_outliers_and_doubtful_samples_there_are():
    outliers = torch.eye(3, dtype=torch.float64)
    sure = NOISE.repeat(10, 1)
    doubtful = (0.6 * NOISE + 0.4 * NOISE.roll(1, 0)).repeat(4, 1)
    probabilities = torch.cat([doubtful, outliers, sure])
    torch.testing.assert_close(from_certain_samples(probabilities, between=(0.1, 0.5)), NOISE)
    assert not torch.allclose(from_certain_samples(probabilities, between=(0.0, 0.5)), NOISE)
    assert not torch.allclose(from_certain_samples(probabilities, between=(0.1, 1.0)), NOISE)


def test_a_class_that_nothing_is_taken_for_has_the_row_of_the_sample_most_sure_of_it():
    probabilities = torch.tensor([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    torch.testing.assert_close(from_certain_samples(probabilities, between=(0.1, 0.5))[1], probabilities[1])


def test_known_samples_give_the_mean_of_each_class():
    probabilities = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6], [0.6, 0.3, 0.1]])
    expected = torch.tensor([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.2, 0.2, 0.6]])
    torch.testing.assert_close(from_known_samples(probabilities, torch.tensor([0, 2, 0])), expected)


def test_a_harmless_matrix_is_inverted_as_it_is():
    torch.testing.assert_close(bounded_inverse(NOISE, largest=10) @ NOISE, torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize("hopeless", [torch.full((3, 3), 1 / 3), torch.tensor([[0.5, 0.5, 0.0]] * 2 + [[0, 0, 1.0]])])
def test_a_singular_matrix_is_mixed_with_as_little_of_the_identity_as_bounds_its_inverse(hopeless):
    inverse = bounded_inverse(hopeless, largest=4.5)
    assert inverse.abs().sum(dim=1).max() <= 4.5
    mixed = torch.linalg.inv(inverse)
    off = hopeless[0, 1]
    share = (1 - mixed[0, 1] / off).item()
    torch.testing.assert_close(mixed, share * torch.eye(3) + (1 - share) * hopeless)
    less = torch.linalg.inv((share - 0.01) * torch.eye(3) + (1.01 - share) * hopeless)
    assert less.abs().sum(dim=1).max() > 4.5


def test_weights_that_may_not_exceed_one_are_those_of_no_noise():
    torch.testing.assert_close(bounded_inverse(NOISE, largest=1.0), torch.eye(3, dtype=torch.float64))
