"""The paper's mixture: two beta components."""

import math

import torch
from torch import Tensor

from .base import Mixture, Parameters

NARROWEST = 1e-6
OPEN = 1e-12


class BetaMixture(Mixture):
    """Two beta components (Eqs. 3-9), which fit the skew of clean losses toward zero."""

    parameter_names = ("alpha", "beta")

    def match(self, mean: float, variance: float) -> Parameters:
        """Beta parameters with this mean and variance (Eq. 5).

        The ratio of the variance to the largest possible one is kept off 0 and 1, because a component that
        owns one distinct loss has no variance.
        """
        mean = min(max(mean, OPEN), 1 - OPEN)
        ratio = min(max(variance / (mean * (1 - mean)), NARROWEST), 1 - NARROWEST)
        concentration = 1 / ratio - 1
        return mean * concentration, (1 - mean) * concentration

    def features(self, values: Tensor) -> Tensor:
        """Logarithms of the value and of its distance from 1, [2, n]."""
        return torch.stack([values.log(), torch.log1p(-values)])

    def log_density(self, features: Tensor, parameters: Parameters) -> Tensor:
        a, b = parameters
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        return constant + (a - 1) * features[0] + (b - 1) * features[1]

    def turning_point(self) -> tuple[float, bool] | None:
        """Where (a1 - a0) / l = (b1 - b0) / (1 - l), if that lies inside (0, 1)."""
        (a0, b0), (a1, b1) = self.parameters_
        rise, fall = a1 - a0, b1 - b0
        if rise * fall <= 0:
            return None
        return rise / (rise + fall), rise < 0
