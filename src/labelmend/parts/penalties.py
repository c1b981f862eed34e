"""Penalties on a batch's predictions as a whole."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class UniformPrior:
    """eta * R: the divergence of the batch's mean prediction from equal class shares (Eq. 14).

    It keeps the network from calling everything one class, which would please its own guesses.
    """

    eta: float

    def __call__(self, logits: Tensor) -> Tensor:
        """A scalar from logits [n, C]; zero when the mean prediction is uniform."""
        log_prior = -math.log(logits.shape[1])
        mean = logits.softmax(dim=1).mean(dim=0).clamp_min(1e-8)
        return self.eta * (log_prior - mean.log()).mean()


@dataclass
class EstimatedPrior:
    """eta * R against the class shares of the given labels, for classes that are not equally frequent.

    Paper: takes classes to be equal, which its data sets are. Where one class is rare, equal shares would have the
    network call many other samples by it. Classes of which none has more than `tolerated` times as many labels as
    another are taken to be equal.
    """

    eta: float
    tolerated: float = 1.0
    shares: Tensor | None = None

    def begin(self, labels: Tensor, classes: int) -> None:
        """Take the shares of these labels, [n]; each class counts one label more, so that none is impossible."""
        counts = torch.bincount(labels, minlength=classes).float()
        equal = float(counts.max()) <= self.tolerated * float(counts.min())
        self.shares = None if equal else (counts + 1) / (counts + 1).sum()

    def __call__(self, logits: Tensor) -> Tensor:
        """A scalar from logits [n, C]; zero when the mean prediction has the shares of the labels."""
        if self.shares is None:
            return UniformPrior(self.eta)(logits)
        mean = logits.softmax(dim=1).mean(dim=0).clamp_min(1e-8)
        return self.eta * (self.shares * (self.shares.log() - mean.log())).sum()
