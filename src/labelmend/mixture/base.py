"""Expectation maximisation for two components on one dimension, written once (Eqs. 2, 4, 6-9)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

Iterations = int | Literal["converged"]
Parameters = tuple[float, float]

CONVERGED = 1e-9
CONVERGED_LIMIT = 10_000
RESPONSIBILITY_FLOOR = 1e-12
FEWEST = 10


def moments(powers: Tensor, masses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Total mass, mean and variance of each row of `masses` over points given as [1, x, x^2] (Eqs. 6-8)."""
    total, first, second = (masses @ powers).unbind(dim=1)
    mean = first / total
    return total, mean, (second / total - mean.square()).clamp_min(0)


def unfit_reason(values: Tensor, what: str) -> str | None:
    """Why no mixture can be fitted to these values, called `what`; None if one can."""
    if len(values) < FEWEST:
        return f"too few samples: {len(values)}, at least {FEWEST} are needed"
    lost = int((~values.isfinite()).sum())
    return f"non-finite {what}: {lost} of {len(values)}" if lost else None


def alternate(
    turn: Callable[[Tensor], tuple[Tensor, tuple[float, ...]]], noisy: Tensor, *, limit: int, until_converged: bool
) -> Tensor:
    """Expectation maximisation from P(noisy) of each point; gives P(noisy) at the end.

    A `turn` fits the parameters to P(noisy) and gives P(noisy) by these parameters, with numbers of about unit size
    that stop changing at convergence.
    """
    before: tuple[float, ...] | None = None
    for _ in range(limit):
        noisy, after = turn(noisy)
        if until_converged and before and max(abs(a - b) for a, b in zip(after, before, strict=True)) <= CONVERGED:
            break
        before = after
    return noisy


class Mixture(ABC):
    """Two components on values inside (0, 1); after `fit`, the second is the one with the higher mean.

    A subclass says how moments become parameters, what its log-density is and where the odds turn; the rest is
    here. Fitted attributes end in an underscore and are plain floats, so that `posterior` runs on any device
    without a transfer.
    """

    parameter_names: ClassVar[tuple[str, str]]

    def __init__(self, *, iterations: Iterations = 10) -> None:
        self.iterations = iterations
        self.weights_: Parameters = (1.0, 0.0)
        self.means_: Parameters = (0.25, 0.75)
        self.variances_: Parameters = (0.1, 0.1)
        self.parameters_: tuple[Parameters, Parameters] = ((1.0, 1.0), (1.0, 1.0))

    @abstractmethod
    def match(self, mean: float, variance: float) -> Parameters:
        """Parameters of a component with this mean and variance (the M-step, Eq. 5)."""

    @abstractmethod
    def log_density(self, features: Tensor, parameters: Parameters) -> Tensor:
        """Logarithm of one component's density (Eq. 3), from the `features` of the values."""

    def features(self, values: Tensor) -> Tensor:
        """What the density needs of the values and no parameter changes: computed once for all EM steps."""
        return values

    @abstractmethod
    def turning_point(self) -> tuple[float, bool] | None:
        """Where the noisy-to-clean odds turn, and whether that is their lowest point; None if they only rise."""

    def fit(self, values: Tensor, counts: Tensor | None = None, *, start: Tensor | None = None) -> Self:
        """Fit by EM to values, each standing for `counts` samples: a histogram fits as its samples do.

        `start` is P(noisy) of each value to begin with; by default the value itself, which is what Beta(1, 2) against
        Beta(2, 1) with equal weights gives. Paper: gives no start; this one is in the released code.
        """
        points = values.detach().to("cpu", torch.float64).flatten()
        copies = torch.ones_like(points) if counts is None else counts.to("cpu", torch.float64).flatten()
        powers, features = torch.stack([torch.ones_like(points), points, points.square()], dim=1), self.features(points)

        def turn(noisy: Tensor) -> tuple[Tensor, tuple[float, ...]]:
            shares = torch.stack([1 - noisy, noisy]).clamp_min(RESPONSIBILITY_FLOOR)
            total, mean, variance = moments(powers, shares * copies)
            low, high = (total / total.sum()).tolist()
            self.weights_, self.means_ = (low, high), (mean[0].item(), mean[1].item())
            self.variances_ = (variance[0].item(), variance[1].item())
            first, second = (self.match(*pair) for pair in zip(self.means_, self.variances_, strict=True))
            self.parameters_ = (first, second)
            return torch.sigmoid(self.log_odds(features)), (*self.weights_, *self.means_, *self.variances_)

        limit = CONVERGED_LIMIT if self.iterations == "converged" else self.iterations
        noisy = points if start is None else start
        alternate(turn, noisy, limit=limit, until_converged=self.iterations == "converged")
        if self.means_[0] > self.means_[1]:
            for fitted in ("weights_", "means_", "variances_", "parameters_"):
                setattr(self, fitted, getattr(self, fitted)[::-1])
        return self

    def log_odds(self, features: Tensor) -> Tensor:
        """Log of P(noisy | value) / P(clean | value), before it is made monotone (Eq. 9)."""
        clean, noisy = (max(weight, 1e-300) for weight in self.weights_)
        prior = math.log(noisy) - math.log(clean)
        return prior + self.log_density(features, self.parameters_[1]) - self.log_density(features, self.parameters_[0])

    def posterior(self, values: Tensor) -> Tensor:
        """P(noisy | value), never falling as the value grows (Eq. 9).

        The odds of either mixture turn at most once. Beyond the turn the value is held there, so that a larger
        loss can never look cleaner. Paper: silent; Released: holds the right side only, on a 100-bin table.
        """
        turn = self.turning_point()
        if turn is not None:
            point, lowest = turn
            values = values.clamp_min(point) if lowest else values.clamp_max(point)
        return torch.sigmoid(self.log_odds(self.features(values)))

    def density(self, values: Tensor) -> Tensor:
        """Weighted density of each component, [2, n] (the terms of Eq. 2)."""
        features, pairs = self.features(values), zip(self.weights_, self.parameters_, strict=True)
        return torch.stack([weight * self.log_density(features, p).exp() for weight, p in pairs])

    def named_parameters(self) -> dict[str, float]:
        """Every fitted number under its name, clean component first."""
        named = {"weight_clean": self.weights_[0], "weight_noisy": self.weights_[1]}
        for side, values in zip(("clean", "noisy"), self.parameters_, strict=True):
            named |= {f"{name}_{side}": v for name, v in zip(self.parameter_names, values, strict=True)}
        return named
