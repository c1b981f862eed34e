"""The alternative that the paper compares with: two Gaussian components."""

import math

from torch import Tensor

from .base import Mixture, Parameters

LEAST_VARIANCE = 1e-8


def log_normal(values: Tensor, mean: Tensor | float, variance: float) -> Tensor:
    """Logarithm of the normal density."""
    return -0.5 * ((values - mean).square() / variance + math.log(2 * math.pi * variance))


class GaussianMixture(Mixture):
    """Two Gaussian components (Eq. 2); Appendix A finds them worse than beta components."""

    parameter_names = ("mean", "variance")

    def match(self, mean: float, variance: float) -> Parameters:
        """Mean and variance themselves; the variance is floored, because one distinct loss has none."""
        return mean, max(variance, LEAST_VARIANCE)

    def log_density(self, features: Tensor, parameters: Parameters) -> Tensor:
        return log_normal(features, *parameters)

    def turning_point(self) -> tuple[float, bool] | None:
        (mean0, variance0), (mean1, variance1) = self.parameters_
        if math.isclose(variance0, variance1):
            return None
        point = (mean1 / variance1 - mean0 / variance0) / (1 / variance1 - 1 / variance0)
        return point, variance1 > variance0
