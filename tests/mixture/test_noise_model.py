import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from labelmend.mixture import MAX_NORMALISED, MIXTURES, PERCENTILES, BetaMixture, NoiseModel
from labelmend.mixture import noise_model as named_model
from labelmend.mixture.noise_model import HISTOGRAM_FROM, Scaling

SCALINGS = {"max": (MAX_NORMALISED, None), "percentiles": (PERCENTILES, None), "table": (PERCENTILES, 100)}
KINDS = [(scaling, mixture) for scaling in SCALINGS for mixture in MIXTURES]
NOT_NUMBERS = (math.nan, math.inf, -math.inf)

every_kind = pytest.mark.parametrize(("scaling", "mixture"), KINDS)


def noise_model(scaling="max", mixture="bmm"):
    bounds, table = SCALINGS[scaling]
    return NoiseModel(MIXTURES[mixture](), bounds, table=table)


def two_humps(samples=1000, seed=0):
    """Losses of mostly learned samples and of a third with wrong labels."""
    rng = np.random.default_rng(seed)
    wrong = np.arange(samples) % 3 == 0
    return torch.from_numpy(np.where(wrong, rng.gamma(20, 0.2, samples), rng.gamma(1, 0.2, samples)))


def assert_sound(model, losses):
    posterior = model.posterior(losses)
    assert posterior.shape == losses.shape
    assert posterior.dtype == losses.dtype
    assert ((posterior >= 0) & (posterior <= 1)).all()
    if model.degenerate:
        assert model.verdict
        assert not posterior.any()
    else:
        assert all(math.isfinite(value) for value in model.described().values())
        assert model.span > 0


magnitudes = st.builds(lambda sign, power: sign * 10.0**power, st.sampled_from([1, 1, 1, 1, -1]), st.floats(-30, 30))
ordinary = st.floats(0, 20)
lengths = st.sampled_from([(10, 300), (301, 3000), (3001, 100_000), (0, 9)]).flatmap(lambda ends: st.integers(*ends))


@st.composite
def loss_vectors(draw):
    """A few drawn values spread over a vector of any length, perhaps jittered, perhaps with a few odd ones."""
    kind = draw(st.sampled_from([ordinary, magnitudes, st.one_of(ordinary, magnitudes, st.just(0.0))]))
    values = draw(st.lists(kind, min_size=1, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    losses = rng.choice(values, size=draw(lengths))
    if draw(st.booleans()):
        losses = losses * rng.gamma(draw(st.sampled_from([0.1, 1.0, 50.0])), size=len(losses))
    odd = draw(st.sampled_from([None] * 12 + [*NOT_NUMBERS]))
    if odd is not None and len(losses):
        losses[rng.integers(len(losses), size=2)] = odd
    return torch.from_numpy(losses).to(draw(st.sampled_from([torch.float32, torch.float64])))


@settings(max_examples=500, deadline=None)
@given(loss_vectors())
def test_any_loss_vector_gives_a_sound_mixture_or_a_verdict(losses):
    for scaling, mixture in KINDS:
        assert_sound(noise_model(scaling, mixture).fit(losses), losses)


@settings(max_examples=100, deadline=None)
@given(loss_vectors())
def test_a_fitted_model_judges_any_loss_vector(losses):
    for scaling, mixture in KINDS:
        assert_sound(noise_model(scaling, mixture).fit(two_humps(200)), losses)


ODD = {
    "empty": [],
    "all equal": [0.7] * 1000,
    "all zero": [0.0] * 1000,
    "one sample": [0.7],
    "two samples": [0.1, 0.9],
    "one NaN in 1000": [math.nan, *np.linspace(0.1, 3, 999)],
    "a tenth infinite": [*[math.inf] * 100, *np.linspace(0.1, 3, 900)],
    "a tenth minus infinite": [*[-math.inf] * 100, *np.linspace(0.1, 3, 900)],
    "all NaN": [math.nan] * 1000,
}


@every_kind
@pytest.mark.parametrize("name", ODD)
def test_an_odd_loss_vector_gets_a_verdict_and_counts_as_clean(name, scaling, mixture):
    losses = torch.tensor(ODD[name], dtype=torch.float32)
    model = noise_model(scaling, mixture).fit(losses)
    assert model.degenerate
    assert model.verdict
    assert not model.posterior(losses).any()


@every_kind
def test_losses_too_small_for_their_span_to_be_inverted_give_a_sound_mixture_or_a_verdict(scaling, mixture):
    losses = torch.linspace(1, 500, 1000, dtype=torch.float64) * 5e-324
    assert_sound(noise_model(scaling, mixture).fit(losses), losses)


@every_kind
def test_verdicts_name_what_is_wrong(scaling, mixture):
    def verdict(name):
        return noise_model(scaling, mixture).fit(torch.tensor(ODD[name], dtype=torch.float64)).verdict

    assert verdict("two samples") == "too few samples: 2, at least 10 are needed"
    assert verdict("all equal") == "the losses between the bounds are all equal"
    assert verdict("one NaN in 1000") == "non-finite losses: 1 of 1000"
    assert verdict("a tenth infinite") == "non-finite losses: 100 of 1000"


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (1000, "one component of the mixture holds fewer than two samples"),
        (10_000, "both components have the same mean"),
    ],
)
def test_losses_that_scaling_makes_one_point_are_called_a_single_group(samples, reason, mixture):
    losses = 1e-7 * two_humps(samples)
    model = noise_model("percentiles", mixture).fit(losses)
    assert model.verdict == f"the losses form a single group: {reason}"
    assert not model.posterior(losses).any()


@every_kind
def test_ninety_nine_percent_zeros_are_sound_and_the_zeros_count_as_clean(scaling, mixture):
    losses = torch.cat([torch.zeros(990), torch.linspace(0.5, 3, 10)])
    model = noise_model(scaling, mixture).fit(losses)
    assert_sound(model, losses)
    assert (model.posterior(losses)[:990] < 0.5).all()


@every_kind
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.1, 2.0), (1.0, 1.2), (0.5, 8.0), (2.0, 2.02)])
def test_of_two_separate_losses_exactly_the_upper_half_is_flagged(low, high, scaling, mixture):
    losses = torch.tensor([low, high]).repeat(500)
    flagged = noise_model(scaling, mixture).fit(losses).posterior(losses) > 0.5
    assert flagged.tolist() == [False, True] * 500


@every_kind
def test_nan_and_infinite_losses_are_judged_as_the_least_and_the_greatest(scaling, mixture):
    model = noise_model(scaling, mixture).fit(two_humps())
    nan, low, least, inf, greatest = model.posterior(torch.tensor([math.nan, -math.inf, -1e9, math.inf, 1e9]))
    assert nan == low == least < 0.5
    assert inf == greatest > 0.5


@every_kind
def test_posterior_never_falls_as_the_loss_grows(scaling, mixture):
    for seed in range(20):
        model = noise_model(scaling, mixture).fit(two_humps(seed=seed))
        curve = model.posterior(torch.linspace(-1, 12, 2000, dtype=torch.float64))
        assert not model.degenerate
        assert (curve.diff() >= -1e-12).all()


@every_kind
def test_most_of_two_humps_is_told_apart(scaling, mixture):
    losses = two_humps(3000)
    flagged = noise_model(scaling, mixture).fit(losses).posterior(losses) > 0.5
    assert (flagged == (torch.arange(3000) % 3 == 0)).double().mean() > 0.95


@every_kind
def test_fitted_state_survives_json_to_the_last_bit(scaling, mixture):
    losses = two_humps()
    model = noise_model(scaling, mixture).fit(losses)
    other = noise_model(scaling, mixture)
    other.set_extra_state(json.loads(json.dumps(model.get_extra_state(), allow_nan=False)))
    assert not other.degenerate
    assert torch.equal(other.posterior(losses), model.posterior(losses))
    assert torch.equal(other.posterior(losses.float()), model.posterior(losses.float()))
    assert other.described() == model.described()


@every_kind
def test_a_verdict_survives_json(scaling, mixture):
    model = noise_model(scaling, mixture).fit(torch.zeros(100))
    other = noise_model(scaling, mixture).fit(two_humps())
    other.set_extra_state(json.loads(json.dumps(model.get_extra_state(), allow_nan=False)))
    assert other.verdict == model.verdict == "the losses between the bounds are all equal"
    assert not other.posterior(two_humps()).any()


def test_state_travels_in_the_state_dict():
    model = noise_model().fit(two_humps())
    other = noise_model()
    other.load_state_dict(model.state_dict())
    assert other.described() == model.described()


def test_an_unfitted_model_says_so_and_finds_everybody_clean():
    model = noise_model()
    assert model.verdict == "not fitted yet"
    assert not model.posterior(two_humps()).any()


def test_a_good_fit_after_a_degenerate_one_clears_the_verdict():
    model = noise_model().fit(torch.zeros(100))
    assert model.degenerate
    assert not model.fit(two_humps()).degenerate


def test_max_normalisation_does_not_depend_on_the_unit_of_the_loss():
    losses = two_humps()
    once, scaled = noise_model().fit(losses), noise_model().fit(losses * 1024)
    assert scaled.mixture.named_parameters() == once.mixture.named_parameters()
    assert torch.equal(scaled.posterior(losses * 1024), once.posterior(losses))


@pytest.mark.parametrize("mixture", MIXTURES)
def test_large_sets_are_fitted_by_histogram_and_agree_with_the_mixture_on_every_loss(mixture):
    losses = two_humps(2 * HISTOGRAM_FROM)
    model = noise_model("max", mixture).fit(losses)
    every = MIXTURES[mixture]().fit(model.scale(losses)).named_parameters()
    assert model.mixture.named_parameters() == pytest.approx(every, abs=1e-3)


def test_the_order_of_the_samples_does_not_matter():
    losses = two_humps()
    order = torch.randperm(len(losses), generator=torch.Generator().manual_seed(0))
    straight, shuffled = noise_model().fit(losses), noise_model().fit(losses[order])
    torch.testing.assert_close(shuffled.posterior(losses), straight.posterior(losses), rtol=1e-9, atol=1e-12)


def test_losses_of_any_shape_keep_it():
    losses = two_humps(900)
    model = NoiseModel(BetaMixture()).fit(losses.view(30, 30))
    assert torch.equal(model.posterior(losses.view(30, 30)).flatten(), model.posterior(losses))


def test_components_that_converged_onto_each_other_are_called_degenerate():
    rng = np.random.default_rng(0)
    noisy = rng.random(50_000) < 0.4
    losses = torch.from_numpy(np.where(noisy, rng.beta(8, 3, 50_000), rng.beta(2, 10, 50_000)) * 5)
    model = NoiseModel(BetaMixture(iterations="converged")).fit(losses)
    assert "both components have the same mean" in model.verdict
    assert not model.posterior(losses).any()


@pytest.mark.parametrize("kind", ["bmm", "gmm"])
def test_every_noise_model_rises_with_the_loss_and_survives_what_is_not_a_number(kind):
    rng = np.random.default_rng(1)
    losses = torch.from_numpy(np.concatenate([rng.gamma(1, 0.1, 500), rng.normal(4, 1, 300).clip(0)]))
    model = named_model(kind).fit(losses)
    assert not model.degenerate
    posterior = model.posterior(torch.linspace(0, 9, 2000, dtype=torch.float64))
    assert (posterior.diff() >= -1e-12).all()
    odd = model.posterior(torch.tensor([float("nan"), float("inf"), -1.0, 0.0]))
    assert odd.isfinite().all()


@pytest.mark.parametrize("kind", ["humps", "equal but one", "few values", "wide"])
def test_the_bounds_are_order_statistics(kind):
    rng = np.random.default_rng(0)
    values = {
        "humps": np.concatenate([rng.gamma(1, 0.2, 90_000), rng.gamma(30, 0.1, 60_000)]),
        "equal but one": np.r_[np.full(999, 2.0), 5.0],
        "few values": rng.integers(0, 4, 5_000).astype(float),
        "wide": np.r_[rng.random(10_000) * 1e-6, 1e6],
    }[kind]
    losses = torch.from_numpy(rng.permutation(values)).float()
    for trim in (1e-12, 1e-4, 0.05, 0.25):
        cut = round(trim * (len(losses) - 1))
        assert Scaling(trim=trim).bounds(losses) == tuple(losses.sort().values[[cut, -1 - cut]].tolist())
