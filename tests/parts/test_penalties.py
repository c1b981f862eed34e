import math

import pytest
import torch

from labelmend.parts.penalties import EstimatedPrior, UniformPrior


def literal_divergence(logits):
    """Eq. 14 as printed, one class at a time."""
    probabilities = logits.double().softmax(dim=1)
    classes = probabilities.shape[1]
    total = 0.0
    for c in range(classes):
        mean = sum(row[c].item() for row in probabilities) / len(probabilities)
        total += (1 / classes) * math.log((1 / classes) / mean)
    return total


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_penalty_is_the_literal_divergence(classes):
    logits = 3 * torch.randn(32, classes, generator=torch.Generator().manual_seed(0))
    penalty = UniformPrior(1.0)(logits).item()
    assert penalty > 0
    assert penalty == pytest.approx(literal_divergence(logits), abs=1e-6)


def test_penalty_is_zero_when_every_prediction_is_uniform():
    assert UniformPrior(1.0)(torch.zeros(8, 10)).item() == pytest.approx(0, abs=1e-6)


def test_penalty_is_zero_when_only_the_mean_prediction_is_uniform():
    assert UniformPrior(1.0)(10 * torch.eye(10)).item() == pytest.approx(0, abs=1e-6)


def test_penalty_is_proportional_to_eta():
    logits = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    assert UniformPrior(0.0)(logits).item() == 0
    assert UniformPrior(2.5)(logits).item() == pytest.approx(2.5 * UniformPrior(1.0)(logits).item())


def test_penalty_stays_finite_when_all_samples_are_called_one_class():
    logits = torch.zeros(8, 10)
    logits[:, 0] = 1e4
    logits.requires_grad_()
    penalty = UniformPrior(1.0)(logits)
    penalty.backward()
    assert math.isfinite(penalty.item())
    assert penalty.item() > 1
    assert logits.grad.isfinite().all()


def test_descending_the_penalty_evens_out_the_mean_prediction():
    logits = torch.randn(32, 4, generator=torch.Generator().manual_seed(0)) + torch.tensor([3.0, 0.0, 0.0, 0.0])
    logits.requires_grad_()
    before = UniformPrior(1.0)(logits)
    before.backward()
    assert UniformPrior(1.0)(logits - 5 * logits.grad) < before


RARE = torch.tensor([0] * 95 + [1] * 5)


def begun(labels, classes, **options):
    penalty = EstimatedPrior(1.0, **options)
    penalty.begin(labels, classes)
    return penalty


def test_a_mean_prediction_with_the_shares_of_the_labels_costs_nothing():
    shares = torch.tensor([96 / 102, 6 / 102])
    assert begun(RARE, 2)(shares.log().expand(8, 2)).item() == pytest.approx(0, abs=1e-6)
    assert UniformPrior(1.0)(shares.log().expand(8, 2)).item() > 0.5


def test_a_rare_class_that_is_never_predicted_costs_something():
    assert begun(RARE, 2)(torch.tensor([[5.0, -5.0]]).expand(8, 2)).item() > 0.1


def test_classes_that_are_nearly_equal_cost_what_the_paper_says():
    logits = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))
    nearly = torch.tensor([0] * 60 + [1] * 40)
    assert torch.equal(begun(nearly, 2, tolerated=2.0)(logits), UniformPrior(1.0)(logits))
    assert not torch.equal(begun(RARE, 2, tolerated=2.0)(logits), UniformPrior(1.0)(logits))


def test_a_class_without_labels_is_not_impossible():
    assert math.isfinite(begun(RARE, 3)(torch.randn(8, 3, generator=torch.Generator().manual_seed(0))).item())
