"""Penalties on a batch's predictions as a whole."""

import math
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class UniformPrior:
    """eta * R: the divergence of the batch's mean prediction from equal class shares (Eq. 14).

    It keeps the network from calling everything one class, which would please its own guesses.
    """

    eta: float

    def __call__(self, logits: Tensor) -> Tensor:
        """A scalar; zero when the mean prediction is uniform."""
        log_prior = -math.log(logits.shape[1])
        mean = logits.softmax(dim=1).mean(dim=0).clamp_min(1e-8)
        return self.eta * (log_prior - mean.log()).mean()
