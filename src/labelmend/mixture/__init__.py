"""One-dimensional mixtures on per-sample losses (Sec. 3.1)."""

from .base import Iterations, Mixture
from .beta import BetaMixture
from .gaussian import GaussianMixture
from .noise_model import FAR_APART, MAX_NORMALISED, PERCENTILES, NoiseModel, Scaling

MIXTURES: dict[str, type[Mixture]] = {"bmm": BetaMixture, "gmm": GaussianMixture}


def noise_model(
    kind: str, *, iterations: Iterations = 10, scaling: Scaling = MAX_NORMALISED, table: int | None = None
) -> NoiseModel:
    """The noise model of this name: beta or Gaussian components on scaled losses."""
    return NoiseModel(MIXTURES[kind](iterations=iterations), scaling, table=table)


__all__ = [
    "FAR_APART",
    "MAX_NORMALISED",
    "MIXTURES",
    "PERCENTILES",
    "BetaMixture",
    "GaussianMixture",
    "Iterations",
    "Mixture",
    "NoiseModel",
    "Scaling",
    "noise_model",
]
