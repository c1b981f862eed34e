import pytest
import torch

from labelmend.core import generator
from labelmend.data import inject, open_source
from labelmend.data.noise import NoiseSpec, wrong_rate


def noisy_digits(text, seed=0):
    return inject(open_source("digits"), NoiseSpec.parse(text), generator(seed, "noise"))


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_symmetric_noise_may_keep_the_true_label_so_a_tenth_less_is_wrong(rate):
    real = wrong_rate(noisy_digits(f"symmetric:{rate}").labels)
    assert real == pytest.approx(0.9 * rate, abs=0.03)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8, 1.0])
def test_noise_that_excludes_the_true_label_is_wrong_at_its_nominal_rate(rate):
    assert wrong_rate(noisy_digits(f"symmetric-excl:{rate}").labels) == pytest.approx(rate, abs=1e-3)


def test_wrong_labels_are_spread_evenly_over_the_other_classes():
    labels = noisy_digits("symmetric-excl:1").labels
    shift = (labels.observed - labels.truth) % 10
    counts = torch.bincount(shift, minlength=10)
    assert counts[0] == 0
    expected = len(shift) / 9
    assert float(((counts[1:] - expected) ** 2 / expected).sum()) < 26  # chi-squared, 8 degrees of freedom, p = 0.001


def test_zero_noise_changes_nothing_and_the_truth_is_kept():
    labels = noisy_digits("symmetric:0").labels
    assert torch.equal(labels.observed, labels.truth)


def test_the_same_seed_makes_the_same_noise():
    first, second, other = (noisy_digits("symmetric:0.5", seed).labels.observed for seed in (3, 3, 4))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
