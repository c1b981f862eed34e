"""One-dimensional mixtures on per-sample losses (Sec. 3.1)."""

from .base import Iterations, Mixture
from .beta import BetaMixture
from .gaussian import GaussianMixture
from .noise_model import MAX_NORMALISED, PERCENTILES, NoiseModel, Scaling

MIXTURES: dict[str, type[Mixture]] = {kind.name: kind for kind in (BetaMixture, GaussianMixture)}

__all__ = [
    "MAX_NORMALISED",
    "MIXTURES",
    "PERCENTILES",
    "BetaMixture",
    "GaussianMixture",
    "Iterations",
    "Mixture",
    "NoiseModel",
    "Scaling",
]
