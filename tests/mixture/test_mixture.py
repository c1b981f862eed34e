import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.mixture import GaussianMixture as SklearnGaussianMixture

from labelmend.mixture import MIXTURES, BetaMixture, GaussianMixture
from labelmend.mixture.base import moments
from labelmend.mixture.noise_model import histogram

GRID = torch.linspace(1e-4, 1 - 1e-4, 2001, dtype=torch.float64)


def two_humps(samples, *, noisy_share=0.4, clean=(2, 8), noisy=(8, 2), seed=0):
    rng = np.random.default_rng(seed)
    wrong = rng.random(samples) < noisy_share
    values = np.where(wrong, rng.beta(*noisy, size=samples), rng.beta(*clean, size=samples))
    return torch.from_numpy(values).clamp(1e-4, 1 - 1e-4)


def beta_from_moments(mean, variance):
    alpha = mean * (mean * (1 - mean) / variance - 1)
    return alpha, alpha * (1 - mean) / mean


def naive_fit(values, density, from_moments, iterations):
    """Eqs. 4-8, one sample at a time, from Beta(1, 2) and Beta(2, 1) with equal weights."""
    weights = [0.5, 0.5]
    parameters = [(1, 2), (2, 1)]
    weigh = stats.beta.pdf
    for _ in range(iterations):
        responsibilities = []
        for value in values:
            terms = [weights[k] * weigh(value, *parameters[k]) for k in (0, 1)]
            responsibilities.append([term / sum(terms) for term in terms])
        for k in (0, 1):
            total = sum(g[k] for g in responsibilities)
            mean = sum(g[k] * v for g, v in zip(responsibilities, values, strict=True)) / total
            variance = sum(g[k] * (v - mean) ** 2 for g, v in zip(responsibilities, values, strict=True)) / total
            weights[k] = total / len(values)
            parameters[k] = from_moments(mean, variance)
        weigh = density
    return weights, parameters


def normal_density(value, mean, variance):
    return math.exp(-((value - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@pytest.mark.parametrize("iterations", [1, 2, 10])
def test_beta_mixture_equals_a_loop_written_from_the_equations(iterations):
    values = two_humps(200)
    weights, parameters = naive_fit(values.tolist(), stats.beta.pdf, beta_from_moments, iterations)
    fitted = BetaMixture(iterations=iterations).fit(values)
    np.testing.assert_allclose(fitted.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(fitted.parameters_, parameters, rtol=1e-7)


def test_gaussian_mixture_equals_a_loop_written_from_the_equations():
    values = two_humps(200)
    weights, parameters = naive_fit(values.tolist(), normal_density, lambda mean, variance: (mean, variance), 10)
    fitted = GaussianMixture(iterations=10).fit(values)
    np.testing.assert_allclose(fitted.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(fitted.parameters_, parameters, rtol=1e-9)


def test_moments_are_the_weighted_ones_of_numpy():
    points, *masses = torch.from_numpy(np.random.default_rng(0).random((3, 50)))
    masses = torch.stack(masses)
    powers = torch.stack([torch.ones_like(points), points, points.square()], dim=1)
    total, mean, variance = moments(powers, masses)
    for k in (0, 1):
        expected = np.average(points, weights=masses[k])
        assert total[k].item() == pytest.approx(masses[k].sum().item())
        assert mean[k].item() == pytest.approx(expected)
        assert variance[k].item() == pytest.approx(np.average((points.numpy() - expected) ** 2, weights=masses[k]))


@pytest.mark.parametrize(("mean", "variance"), [(0.2, 0.01), (0.5, 0.2), (0.93, 0.001)])
def test_matched_beta_component_has_the_moments_it_was_matched_to(mean, variance):
    expected = stats.beta.stats(*BetaMixture().match(mean, variance))
    np.testing.assert_allclose(expected, (mean, variance), rtol=1e-9)


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_a_component_without_variance_gets_finite_positive_parameters(kind):
    for mean in (0.0, 1e-4, 0.5, 1.0):
        first, second = kind().match(mean, 0.0)
        assert math.isfinite(first)
        assert math.isfinite(second)
        assert second > 0


def test_log_densities_are_those_of_scipy():
    values = GRID.numpy()
    beta = BetaMixture().log_density(BetaMixture().features(GRID), (0.7, 12.0))
    normal = GaussianMixture().log_density(GaussianMixture().features(GRID), (0.3, 0.02))
    np.testing.assert_allclose(beta, stats.beta.logpdf(values, 0.7, 12.0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(normal, stats.norm.logpdf(values, 0.3, math.sqrt(0.02)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("noisy_share", "clean", "noisy"), [(0.4, (2, 8), (8, 2)), (0.2, (1, 9), (9, 3)), (0.6, (3, 20), (20, 5))]
)
def test_beta_mixture_refinds_the_parameters_that_the_values_were_drawn_from(noisy_share, clean, noisy):
    values = two_humps(50_000, noisy_share=noisy_share, clean=clean, noisy=noisy)
    fitted = BetaMixture(iterations="converged").fit(values)
    assert fitted.weights_[1] == pytest.approx(noisy_share, abs=0.01)
    np.testing.assert_allclose(fitted.parameters_, (clean, noisy), rtol=0.06)
    np.testing.assert_allclose(fitted.means_, [a / (a + b) for a, b in (clean, noisy)], atol=0.01)


@pytest.mark.parametrize("iterations", [10, "converged"])
@pytest.mark.parametrize("kind", MIXTURES.values())
def test_fit_on_the_histogram_agrees_with_fit_on_every_value(kind, iterations):
    values = two_humps(50_000)
    every = kind(iterations=iterations).fit(values).named_parameters()
    binned = kind(iterations=iterations).fit(*histogram(values, lambda chunk: chunk)).named_parameters()
    assert every.keys() == binned.keys()
    for name, value in every.items():
        assert binned[name] == pytest.approx(value, abs=1e-3), name


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_counts_stand_for_repeated_values(kind):
    values, counts = torch.tensor([0.1, 0.2, 0.7, 0.9]), torch.tensor([30, 20, 5, 40])
    counted = kind().fit(values, counts).named_parameters()
    repeated = kind().fit(values.repeat_interleave(counts)).named_parameters()
    assert counted == pytest.approx(repeated)


def test_histogram_keeps_the_number_and_the_sum_of_the_values():
    values = two_humps(30_000)
    points, counts = histogram(values, lambda chunk: chunk, bins=64)
    assert counts.sum().item() == 30_000
    assert (points * counts).sum().item() == pytest.approx(values.sum().item())
    assert ((points[1:] - points[:-1]) > 0).all()


def random_mixtures(kind, count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        mixture = kind()
        if kind is BetaMixture:
            components = [tuple(10 ** rng.uniform(-1, 2.5, size=2)) for _ in range(2)]
            means = [a / (a + b) for a, b in components]
        else:
            components = [(rng.uniform(0.01, 0.99), 10 ** rng.uniform(-4, 0)) for _ in range(2)]
            means = [mean for mean, _ in components]
        clean, noisy = sorted(range(2), key=means.__getitem__)
        weight = rng.uniform(0.01, 0.99)
        mixture.weights_ = (1 - weight, weight)
        mixture.means_ = (means[clean], means[noisy])
        mixture.parameters_ = (components[clean], components[noisy])
        yield mixture


def falls(curve):
    return bool((curve.diff() < -1e-9).any())


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_posterior_never_falls_as_the_value_grows_although_the_raw_odds_do(kind):
    turning = 0
    for mixture in random_mixtures(kind, 500, seed=1):
        turning += falls(mixture.log_odds(mixture.features(GRID)))
        curve = mixture.posterior(GRID)
        assert not curve.isnan().any()
        assert (curve.diff() >= -1e-12).all(), mixture.named_parameters()
    assert 50 < turning < 500


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_posterior_is_bayes_rule_wherever_the_odds_have_not_turned(kind):
    for mixture in random_mixtures(kind, 100, seed=2):
        clean, noisy = mixture.density(GRID)
        turn = mixture.turning_point()
        keep = (clean + noisy > 1e-200) & (clean + noisy < 1e200)
        if turn is not None:
            keep &= turn[0] <= GRID if turn[1] else turn[0] >= GRID
        expected = (noisy / (clean + noisy))[keep]
        torch.testing.assert_close(mixture.posterior(GRID)[keep], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_turning_point_is_where_the_odds_change_direction(kind):
    checked = 0
    for mixture in random_mixtures(kind, 200, seed=3):
        turn = mixture.turning_point()
        if turn is None or not 0.01 < turn[0] < 0.99:
            continue
        point, lowest = turn
        around = torch.tensor([point - 0.005, point, point + 0.005]).double()
        left, middle, right = mixture.log_odds(mixture.features(around))
        assert (middle < left and middle < right) if lowest else (middle > left and middle > right)
        checked += 1
    assert checked > 20


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_noisy_component_is_the_one_with_the_higher_mean(kind):
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = 10 ** rng.uniform(-1, 2, size=4)
        values = two_humps(200, noisy_share=rng.random(), clean=shape[:2], noisy=shape[2:], seed=rng)
        mixture = kind(iterations=int(rng.integers(1, 40))).fit(values)
        assert mixture.means_[0] <= mixture.means_[1]
        if kind is BetaMixture:
            clean, noisy = (a / (a + b) for a, b in mixture.parameters_)
        else:
            clean, noisy = (mean for mean, _ in mixture.parameters_)
        assert clean == pytest.approx(mixture.means_[0], abs=1e-9)
        assert noisy == pytest.approx(mixture.means_[1], abs=1e-9)


def test_gaussian_mixture_agrees_with_scikit_learn_on_separated_values():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0.25, 0.04, 3000), rng.normal(0.7, 0.06, 2000)]).clip(1e-4, 1 - 1e-4)
    fitted = GaussianMixture(iterations="converged").fit(torch.from_numpy(values))
    peer = SklearnGaussianMixture(2, means_init=[[0.2], [0.8]], tol=1e-14, max_iter=10_000, reg_covar=0.0)
    peer.fit(values[:, None])
    np.testing.assert_allclose(fitted.weights_, peer.weights_, rtol=1e-6)
    expected = np.column_stack([peer.means_.ravel(), peer.covariances_.ravel()])
    np.testing.assert_allclose(fitted.parameters_, expected, rtol=1e-6)
    posterior = fitted.posterior(torch.from_numpy(values[(values > 0.25) & (values < 0.7)]))
    np.testing.assert_allclose(
        posterior, peer.predict_proba(values[(values > 0.25) & (values < 0.7)][:, None])[:, 1], atol=1e-6
    )


@pytest.mark.parametrize("kind", MIXTURES.values())
def test_a_second_fit_forgets_the_first(kind):
    first, second = two_humps(500, seed=1), two_humps(500, clean=(2, 20), seed=2)
    again = kind().fit(first).fit(second)
    assert again.named_parameters() == kind().fit(second).named_parameters()
