import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from labelmend.core import Batch, Learner, Mix, Step
from labelmend.methods.recipe import Recipe
from labelmend.parts.mixing import DynamicMixup, Mixup, draw_partner, draw_share, unmixed

SAMPLES, CLASSES = 12, 4


def image_step(seed=0):
    rng = torch.Generator().manual_seed(7)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 2 * 2, CLASSES))
    with torch.no_grad():
        network[1].weight.copy_(torch.randn(CLASSES, 12, generator=rng))
        network[1].bias.zero_()
    inputs = torch.randn(SAMPLES, 3, 2, 2, generator=rng)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=rng)
    learner = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1))
    batch = Batch(inputs, labels, torch.arange(SAMPLES))
    return Step(learner, batch, 1, torch.Generator().manual_seed(seed), CLASSES)


def noisy(values):
    return lambda step: torch.as_tensor(values, dtype=torch.float32)


def test_unmixed_is_no_mix():
    assert unmixed(image_step()) is None


def test_shares_have_the_mean_and_variance_of_the_beta_distribution():
    rng = torch.Generator().manual_seed(0)
    shares = np.array([draw_share(32.0, rng) for _ in range(5000)])
    assert shares.mean() == pytest.approx(0.5, abs=0.004)
    assert shares.var() == pytest.approx(32 * 32 / (64**2 * 65), rel=0.08)
    assert stats.kstest(shares, stats.beta(32, 32).cdf).pvalue > 0.01


def test_the_same_generator_state_gives_the_same_share():
    rng = torch.Generator().manual_seed(3)
    state = rng.get_state()
    first, second = draw_share(32.0, rng), draw_share(32.0, rng)
    rng.set_state(state)
    assert draw_share(32.0, rng) == first
    assert draw_share(32.0, rng) == second
    assert first != second


def test_drawing_touches_no_global_generator():
    step = image_step()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    Mixup(32.0)(step)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


def test_partners_are_a_permutation():
    for seed in range(5):
        assert sorted(draw_partner(image_step(seed)).tolist()) == list(range(SAMPLES))


def test_mixup_uses_one_share_a_batch_for_inputs_and_targets():
    mix = Mixup(32.0)(image_step())
    assert len(mix.input_share.unique()) == 1
    assert torch.equal(mix.input_share, mix.target_share)
    assert 0 < mix.input_share[0] < 1


def test_the_same_generator_state_gives_the_same_mix_and_another_another():
    first, again, other = (Mixup(32.0)(image_step(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.partner, again.partner)
    assert torch.equal(first.input_share, again.input_share)
    assert not torch.equal(first.input_share, other.input_share)


def test_inputs_and_targets_are_blended_one_sample_with_its_partner():
    step = image_step()
    partner = draw_partner(step)
    input_share, target_share = torch.rand(2, SAMPLES, generator=step.rng)
    mix = Mix(partner, input_share, target_share)
    inputs, targets = mix.inputs(step.batch.inputs), mix.targets(step.labels)
    for p, q in enumerate(partner.tolist()):
        x = input_share[p] * step.batch.inputs[p] + (1 - input_share[p]) * step.batch.inputs[q]
        t = target_share[p] * step.labels[p] + (1 - target_share[p]) * step.labels[q]
        torch.testing.assert_close(inputs[p], x)
        torch.testing.assert_close(targets[p], t)


def test_full_share_leaves_everything_as_it_was():
    step = image_step()
    mix = Mix(draw_partner(step), torch.ones(SAMPLES), torch.ones(SAMPLES))
    assert torch.equal(mix.inputs(step.batch.inputs), step.batch.inputs)
    assert torch.equal(mix.targets(step.labels), step.labels)


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("alpha", [None, 32.0])
def test_equal_posteriors_give_an_input_share_of_one_half(alpha, probability):
    mix = DynamicMixup(noisy([probability] * SAMPLES), alpha)(image_step())
    assert mix.input_share.tolist() == [0.5] * SAMPLES


def test_dynamic_mixup_with_equal_posteriors_is_mixup_with_a_share_of_one_half():
    def halves(step):
        half = torch.full((SAMPLES,), 0.5)
        return Mix(draw_partner(step), half, half)

    dynamic = Recipe("dynamic", mixing=DynamicMixup(noisy([0.3] * SAMPLES), None)).objective(image_step())
    assert dynamic == Recipe("plain", mixing=halves).objective(image_step())


def test_dynamic_mixup_weighs_each_input_by_how_clean_it_is_in_its_pair():
    wrong = torch.linspace(0.01, 0.99, SAMPLES)
    mix = DynamicMixup(noisy(wrong), 32.0)(image_step())
    for p, q in enumerate(mix.partner.tolist()):
        clean_p, clean_q = 1 - wrong[p].item(), 1 - wrong[q].item()
        assert mix.input_share[p].item() == pytest.approx(clean_p / (clean_p + clean_q), rel=1e-5)


def test_samples_that_are_each_others_partners_get_shares_that_sum_to_one():
    pairs = 0
    for seed in range(40):
        mix = DynamicMixup(noisy(torch.linspace(0.01, 0.99, SAMPLES)), 32.0)(image_step(seed))
        for p, q in enumerate(mix.partner.tolist()):
            if mix.partner[q] == p:
                assert float(mix.input_share[p] + mix.input_share[q]) == pytest.approx(1)
                pairs += p != q
    assert pairs


def test_a_surely_noisy_input_gives_way_to_a_clean_one():
    wrong = torch.tensor([0.0, 1.0] * (SAMPLES // 2))
    mix = DynamicMixup(noisy(wrong), 32.0)(image_step())
    mixed_pairs = wrong != wrong[mix.partner]
    assert mixed_pairs.any()
    torch.testing.assert_close(mix.input_share[mixed_pairs], 1 - wrong[mixed_pairs], rtol=0, atol=1e-5)


def test_dynamic_mixup_has_a_target_share_of_its_own():
    wrong = noisy(torch.linspace(0, 1, SAMPLES))
    drawn, half = DynamicMixup(wrong, 32.0)(image_step()), DynamicMixup(wrong, None)(image_step())
    assert len(drawn.target_share.unique()) == 1
    assert drawn.target_share[0] != 0.5
    assert half.target_share.tolist() == [0.5] * SAMPLES
    assert torch.equal(drawn.partner, half.partner)
    assert torch.equal(drawn.input_share, half.input_share)
