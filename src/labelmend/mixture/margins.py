"""P(wrong | margin, class): a mixture for margins in which the clean component has a centre for each class."""

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from .base import alternate, unfit_reason
from .gaussian import log_normal

FEWEST_NOISY = 5.0
LEAST_GAP = 2.0
LEAST_VARIANCE = 0.01
PRIOR_SAMPLES = 20.0
ITERATIONS = 2000
SINGLE_GROUP = "the margins form a single group"
CONDENSED_FROM = 20_000
BINS = 128


@dataclass(frozen=True)
class Points:
    """Margins with the class of each, how steadily it was doubted, and how many samples it stands for."""

    margins: Tensor
    classes: Tensor
    disagreement_rate: Tensor
    counts: Tensor

    @classmethod
    def of(cls, margins: Tensor, classes: Tensor, disagreement_rate: Tensor, number: int) -> "Points":
        """Every sample a point, or in large sets the means of every occupied cell of class and bin."""
        margins, disagreement_rate, classes = (
            margins.detach().cpu().double(),
            disagreement_rate.detach().cpu().double(),
            classes.cpu(),
        )
        if len(margins) < CONDENSED_FROM:
            return cls(margins, classes, disagreement_rate, torch.ones_like(margins))
        low, high = margins.min(), margins.max()
        cell = ((margins - low) / (high - low).clamp_min(1e-12) * BINS).long().clamp_(max=BINS - 1) + classes * BINS
        counts = torch.bincount(cell, minlength=number * BINS).double()
        kept = counts.nonzero()[:, 0]
        sums = (torch.bincount(cell, weights=v, minlength=number * BINS)[kept] for v in (margins, disagreement_rate))
        margin, disagreed = (total / counts[kept] for total in sums)
        return cls(margin, kept // BINS, disagreed, counts[kept])

    def resampled(self, rng: torch.Generator) -> "Points":
        """The same points with counts drawn from Poisson distributions: a bootstrap sample."""
        return replace(self, counts=torch.poisson(self.counts, generator=rng))


class MarginMixture:
    """Two Gaussian components of margins: the clean one centred by class, the noisy one shared.

    A margin is the log-odds against the given label. Right labels of a class that is often confused have margins nearer
    to zero than those of an easy one; with one clean centre for all of them they would be taken for wrong. A class's
    centre is drawn to the common one as if by 20 samples. Paper: fits losses, and all classes alike.
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self.centres = torch.zeros(0, dtype=torch.float64)
        self.centre = self.noisy_mean = 0.0
        self.clean_variance = self.noisy_variance = 1.0
        self.doubt = 0.0

    def fit(self, points: Points, number: int, *, start: Tensor | None = None) -> Self:
        """Fit by EM, from P(wrong) of each point; by default, from how steadily it was doubted."""
        x, group, counts = points.margins, points.classes, points.counts

        def turn(wrong: Tensor) -> tuple[Tensor, tuple[float, ...]]:
            clean, noisy = counts * (1 - wrong), counts * wrong
            total = float(noisy.sum())
            self.weight = total / float(counts.sum())
            self.centre = float(clean @ x) / float(clean.sum())
            mass = torch.bincount(group, weights=clean, minlength=number)
            sums = torch.bincount(group, weights=clean * x, minlength=number)
            self.centres = (sums + PRIOR_SAMPLES * self.centre) / (mass + PRIOR_SAMPLES)
            self.noisy_mean = float(noisy @ x) / total
            spread = clean @ (x - self.centres[group]).square() / clean.sum()
            self.clean_variance = max(float(spread), LEAST_VARIANCE)
            self.noisy_variance = max(float(noisy @ (x - self.noisy_mean).square()) / total, LEAST_VARIANCE)
            clean, noisy = self.log_parts(x, group)
            likelihood = float(counts @ torch.logaddexp(clean, noisy)) / float(counts.sum())
            return torch.sigmoid(noisy - clean).clamp(1e-12, 1 - 1e-12), (likelihood,)

        first = (points.disagreement_rate if start is None else start).clamp(0.01, 0.99)
        wrong = alternate(turn, first, limit=ITERATIONS, until_converged=True)
        self.doubt = float((counts * wrong) @ points.disagreement_rate) / float((counts * wrong).sum())
        return self

    def log_parts(self, margins: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of both weighted densities, clean first."""
        weight = min(max(self.weight, 1e-12), 1 - 1e-12)
        clean = math.log1p(-weight) + log_normal(margins, self.centres.to(margins)[classes], self.clean_variance)
        return clean, math.log(weight) + log_normal(margins, self.noisy_mean, self.noisy_variance)

    def log_odds(self, margins: Tensor, classes: Tensor) -> Tensor:
        """Log of P(wrong) / P(right); beyond the point where the odds of a class turn, they are held."""
        clean, noisy = 1 / self.clean_variance, 1 / self.noisy_variance
        if not math.isclose(clean, noisy):
            turn = (self.noisy_mean * noisy - self.centres.to(margins)[classes] * clean) / (noisy - clean)
            margins = torch.minimum(margins, turn) if noisy > clean else torch.maximum(margins, turn)
        clean_part, noisy_part = self.log_parts(margins, classes)
        return noisy_part - clean_part

    @property
    def gap(self) -> float:
        """Distance between the components in standard deviations."""
        return (self.noisy_mean - self.centre) / math.sqrt((self.clean_variance + self.noisy_variance) / 2)

    def why_not(self, samples: int) -> str | None:
        """Why this is no evidence of wrong labels, if it is none."""
        if self.weight * samples < FEWEST_NOISY:
            return f"{SINGLE_GROUP}: {self.weight * samples:.1f} of {samples:,} samples lie apart"
        if self.doubt <= 0.5:
            return f"{SINGLE_GROUP}: there are no samples for which the network preferred another class"
        if self.gap < LEAST_GAP:
            return f"{SINGLE_GROUP}: the components are {self.gap:.1f} standard deviations apart, less than {LEAST_GAP}"
        return None

    def described(self) -> dict[str, float | list[float]]:
        """Every fitted number under its name."""
        return {
            "weight_noisy": self.weight,
            "mean_noisy": self.noisy_mean,
            "variance_noisy": self.noisy_variance,
            "means_clean": self.centres.tolist(),
            "variance_clean": self.clean_variance,
        }


def why_unfit(margins: Tensor, disagreement_rate: Tensor) -> str | None:
    """Why no mixture can be fitted to these margins, if none can."""
    reason = unfit_reason(margins, "margins")
    if reason is None and not (disagreement_rate > 0.5).any():
        reason = f"{SINGLE_GROUP}: the network believed every label"
    return reason
