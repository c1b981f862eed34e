"""P(wrong) corrected by answers of people: a small Bayesian model of how far the judge is off, by band and by class.

Samples are put into cells: those of one band of P(wrong) and one given class. The log-odds of a wrong label in a cell
are a line in those of the judge, plus an effect of the band, of the class and of the cell itself, all of which are
zero unless answers say otherwise. So few answers leave P(wrong) as the judge has it, answers about a class move that
class, and many answers about a cell make it what was counted there. Three models that differ in how much classes and
cells may deviate are averaged by how well they predict the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .predictions import Floats, Ints

EDGES = np.array([0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
"""Where one band of P(wrong) ends and the next begins."""
BANDS = len(EDGES) + 1
LOWEST, HIGHEST = 0.005, 0.97
"""P(wrong) beyond which the judge is not believed before somebody looked."""
SLOPED = -2.944, 2.197
"""Log-odds (5 % and 90 %) between which answers can change the slope: beyond, few samples would decide for many."""
SHIFT_SD, SLOPE_SD, BAND_SD = 0.7, 0.3, 0.3
"""Prior deviations, in log-odds, of all labels together, of the slope, and of a band."""
DEVIATIONS = ((0.3, 0.3), (1.0, 0.7), (2.5, 1.2))
"""Prior deviations of a class and of a cell, one pair a model."""
STEEPER = 0.5
"""How much of the flattening by averaging over unlike cells, of a judge that is right on average, is undone in each."""
MOST_CLASSES = 200
"""Classes with an effect that is fitted: those with the most answers, then with the most samples."""
LONGEST_STEP, STEPS, ENOUGH = 1.5, 60, 1e-7
PROBIT = np.pi / 8
"""The mean of a logistic function of a normal variable is that function of mean / sqrt(1 + PROBIT variance)."""


def band_of(probability: Floats) -> Ints:
    """The band of each P(wrong), from 0."""
    return np.searchsorted(EDGES, probability, side="right").astype(np.int64)


def logistic(log_odds: Floats) -> Floats:
    """Probabilities of log-odds."""
    result: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    return result


@dataclass(frozen=True)
class Cells:
    """Samples by band and given class; arrays [m] have a row for each cell that has samples.

    `of` [n] is the cell of each sample and `ahead` [n] by how much its log-odds are above the cell's mean.
    """

    of: Ints
    ahead: Floats
    size: Ints
    band: Ints
    given: Ints
    log_odds: Floats

    @classmethod
    def made(cls, probability: Floats, given: Ints) -> "Cells":
        """The cells of samples with these P(wrong) and classes."""
        clipped = np.clip(probability, LOWEST, HIGHEST)
        log_odds = np.log(clipped) - np.log1p(-clipped)
        key, of = np.unique(given.astype(np.int64) * BANDS + band_of(probability), return_inverse=True)
        size = np.bincount(of, minlength=len(key))
        mean = np.bincount(of, weights=log_odds, minlength=len(key)) / size
        return cls(of, log_odds - mean[of], size, key % BANDS, key // BANDS, mean)


@dataclass(frozen=True)
class Fit:
    """One fitted model: normal beliefs about the log-odds of every cell.

    They are `mean` [m] plus `loads` [m, s] times shared effects with `covariance`, plus what each cell has of its own,
    with variance `own` [m]; classes in `apart` have an unknown effect in common to their cells, with its variance.
    """

    mean: Floats
    slope: float
    loads: Floats
    covariance: Floats
    own: Floats
    apart: NDArray[np.bool_]
    class_variance: float
    evidence: float

    @cached_property
    def variance(self) -> Floats:
        """Variance of the log-odds of each cell."""
        shared = np.einsum("ij,jk,ik->i", self.loads, self.covariance, self.loads, optimize=True)
        found: Floats = shared + self.own + self.class_variance * self.apart
        return found

    @cached_property
    def damping(self) -> Floats:
        """By what log-odds are divided to have their mean probability."""
        found: Floats = np.sqrt(1 + PROBIT * self.variance)
        return found

    def drawn(self, cells: Cells, count: int, rng: np.random.Generator) -> Floats:
        """Probabilities of the cells, [m, count], as likely as the answers make them."""
        root = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(self.covariance)))
        shared = self.loads @ (root @ rng.normal(size=(len(root), count)))
        log_odds = self.mean[:, None] + shared + np.sqrt(self.own)[:, None] * rng.normal(size=(len(self.mean), count))
        if self.apart.any():
            classes, at = np.unique(cells.given[self.apart], return_inverse=True)
            log_odds[self.apart] += np.sqrt(self.class_variance) * rng.normal(size=(len(classes), count))[at]
        return logistic(log_odds)


def fit_models(cells: Cells, rows: Ints, wrong: NDArray[np.bool_]) -> tuple[list[Fit], Floats]:
    """The models fitted to answers about these rows, and the weight of each."""
    asked = np.bincount(cells.of[rows], minlength=len(cells.size)).astype(np.float64)
    found = np.bincount(cells.of[rows], weights=wrong.astype(np.float64), minlength=len(cells.size)).astype(np.float64)
    fits = [_fitted(cells, asked, found, deviations) for deviations in DEVIATIONS]
    evidence = np.array([fit.evidence for fit in fits])
    weight = np.exp(evidence - evidence.max())
    return fits, weight / weight.sum()


def _fitted(cells: Cells, asked: Floats, found: Floats, deviations: tuple[float, float]) -> Fit:
    """The mode of the posterior and the normal distribution around it, by Newton's method.

    The effects of cells are eliminated from each step: no other effect depends on them but through their own cell.
    """
    class_sd, cell_sd = deviations
    design, apart, precision = _design(cells, asked, class_sd)
    prior = np.zeros(design.shape[1])
    flattened = np.sqrt(1 + PROBIT * (SHIFT_SD**2 + BAND_SD**2 + class_sd**2 + cell_sd**2))
    prior[1] = 1 + STEEPER * (flattened - 1)
    beyond = prior[1] * (cells.log_odds - design[:, 1])
    seen, tie = asked > 0, 1 / cell_sd**2
    x, n, k, start = design[seen], asked[seen], found[seen], beyond[seen]
    shared, own = prior.copy(), np.zeros(len(n))
    for _ in range(STEPS):
        probability = logistic(start + x @ shared + own)
        weight = n * probability * (1 - probability)
        left = k - n * probability
        inner = x.T @ ((weight * tie / (weight + tie))[:, None] * x) + np.diag(precision)
        pull = left - tie * own
        step = np.linalg.solve(
            inner, x.T @ left - precision * (shared - prior) - x.T @ (weight * pull / (weight + tie))
        )
        own_step = (pull - weight * (x @ step)) / (weight + tie)
        longest = max(float(np.abs(step).max()), float(np.abs(own_step).max(initial=0.0)))
        scale = min(1.0, LONGEST_STEP / max(longest, 1e-12))
        shared, own = shared + scale * step, own + scale * own_step
        if longest < ENOUGH:
            break
    probability = np.clip(logistic(start + x @ shared + own), 1e-12, 1 - 1e-12)
    weight = n * probability * (1 - probability)
    inner = x.T @ ((weight * tie / (weight + tie))[:, None] * x) + np.diag(precision)
    likelihood = float((k * np.log(probability) + (n - k) * np.log1p(-probability)).sum())
    penalty = float((precision * (shared - prior) ** 2).sum() + tie * (own**2).sum())
    volume = float(np.log(precision).sum() + len(n) * np.log(tie) - np.log(weight + tie).sum())
    mean, loads, spread = beyond + design @ shared, design.copy(), np.full(len(asked), cell_sd**2)
    mean[seen] += own
    loads[seen] *= (tie / (weight + tie))[:, None]
    spread[seen] = 1 / (weight + tie)
    return Fit(
        mean=mean,
        slope=max(float(shared[1]), 0.0),
        loads=loads,
        covariance=np.linalg.inv(inner),
        own=spread,
        apart=apart,
        class_variance=class_sd**2,
        evidence=likelihood + (volume - penalty - float(np.linalg.slogdet(inner)[1])) / 2,
    )


def _design(cells: Cells, asked: Floats, class_sd: float) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """What the shared effects are multiplied by in each cell, cells of classes without an effect, and precisions."""
    answers, samples = np.bincount(cells.given, weights=asked), np.bincount(cells.given, weights=cells.size)
    classes = np.lexsort((-samples, -answers))[: min(MOST_CLASSES, int((samples > 0).sum()))]
    column = np.full(len(answers), -1)
    column[classes] = np.arange(len(classes))
    design = np.zeros((len(asked), 2 + BANDS + len(classes)))
    rows, at = np.arange(len(asked)), column[cells.given]
    design[:, 0], design[:, 1] = 1, np.clip(cells.log_odds, *SLOPED)
    design[rows, 2 + cells.band] = 1
    design[rows[at >= 0], 2 + BANDS + at[at >= 0]] = 1
    sds = [SHIFT_SD, SLOPE_SD, *[BAND_SD] * BANDS, *[class_sd] * len(classes)]
    return design, at < 0, 1 / np.array(sds) ** 2


def monotone(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest values that never fall, by pooling neighbours that do (weighted least squares).

    >>> monotone([1.0, 3.0, 2.0], [1, 1, 3])
    [1.0, 2.25, 2.25]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((float(value), float(weight), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, a, m), (high, b, n) = pools[-2:]
            pools[-2:] = [((low * a + high * b) / (a + b), a + b, m + n)]
    return [value for value, _, count in pools for _ in range(count)]
