"""From raw losses to P(wrong | loss): scaling, the mixture, and an honest verdict when there is none."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from .base import Mixture, unfit_reason

FEWEST_OF_A_COMPONENT = 2.0
COINCIDE = 1e-6
HISTOGRAM_FROM = 20_000
BINS = 2048
CHUNK = 1 << 16
"""Losses at a time: what fits in the cache is several times faster than what does not."""


@dataclass(frozen=True)
class Scaling:
    """How losses are brought into (0, 1).

    `trim` is the share cut off at each end before fitting, `edge` the distance kept from 0 and 1, and the two
    offsets are added to the lower bound and to the span. `least_gap` is how far apart, in standard deviations, the two
    means must be to count as two groups.
    """

    trim: float = 0.0
    edge: float = 1e-4
    low_offset: float = 0.0
    span_offset: float = 0.0
    least_gap: float = 0.0

    def bounds(self, losses: Tensor) -> tuple[float, float]:
        """The least and the greatest loss that take part in the fit; without trimming, 0 and the maximum."""
        if not self.trim:
            return 0.0, float(losses.max())
        ends = [self.cut(len(losses)), len(losses) - 1 - self.cut(len(losses))]
        low, high = np.partition(losses.numpy(), ends)[ends].tolist()
        return low, high

    def cut(self, samples: int) -> int:
        """How many samples are cut off at each end."""
        return round(self.trim * (samples - 1))


MAX_NORMALISED = Scaling()
"""The paper's text: "(max) normalised", bounded to [1e-4, 1 - 1e-4]."""

PERCENTILES = Scaling(trim=0.05, edge=1e-3, low_offset=1e-5, span_offset=1e-6)
"""Released: min-max between the 5th and the 95th percentile, and only what lies between is fitted."""


FAR_APART = Scaling(trim=1e-12, least_gap=5.0)
"""Past the paper: for the rival_log_odds of the ledger in place of losses, in training.

Two groups must leave no doubt: in the first epochs of heavy noise, slow but right labels look wrong, and replacing them
costs the few right labels that there are.
"""


class NoiseModel(nn.Module):
    """P(wrong | loss) from a mixture fitted to all losses of the training set (Sec. 3.1).

    Never raises on a loss vector and never returns NaN: where the losses do not form two groups, `verdict` says why
    and every sample counts as clean. `table` quantises the posterior to that many values, as the released code
    does; None leaves it exact.

    >>> from labelmend.mixture import BetaMixture
    >>> model = NoiseModel(BetaMixture()).fit(torch.tensor([0.1, 0.2, 0.3, 4.0] * 50))
    >>> model.posterior(torch.tensor([0.2, 4.0])).round(decimals=2)
    tensor([0., 1.])
    >>> NoiseModel(BetaMixture()).fit(torch.zeros(4)).verdict
    'too few samples: 4, at least 10 are needed'
    """

    def __init__(self, mixture: Mixture, scaling: Scaling = MAX_NORMALISED, *, table: int | None = None) -> None:
        super().__init__()
        self.mixture = mixture
        self.scaling = scaling
        self.table = table
        self.verdict: str | None = "not fitted yet"
        self.low = 0.0
        self.span = 1.0

    @property
    def degenerate(self) -> bool:
        """Whether the losses gave no usable mixture; `verdict` has the reason."""
        return self.verdict is not None

    def fit(self, losses: Tensor) -> Self:
        """Fit the mixture to the losses of the whole training set, or say why there is none."""
        flat = losses.detach().to("cpu").flatten()
        flat = flat if flat.dtype == torch.float64 else flat.float()
        self.verdict = unfit_reason(flat, "losses")
        if self.verdict is None:
            low, high = self.scaling.bounds(flat)
            if high - max(low, float(flat.min())) <= 1e-9 * abs(high):
                self.verdict = "the losses between the bounds are all equal"
            else:
                self._fit(flat, low, high)
                self.verdict = self._collapsed(len(flat))
        return self

    def posterior(self, losses: Tensor) -> Tensor:
        """P(wrong | loss), in the shape and on the device of the losses; zero wherever the model is degenerate."""
        if self.degenerate:
            return torch.zeros_like(losses)
        return torch.cat([self._posterior(chunk) for chunk in torch.split(losses.flatten(), CHUNK)]).view_as(losses)

    def _posterior(self, losses: Tensor) -> Tensor:
        scaled = self.scale(losses)
        if self.table:
            cell = (scaled * self.table).floor().clamp(0, self.table - 1)
            edge = self.scaling.edge
            scaled = edge + (1 - 2 * edge) * cell / (self.table - 1)
        return self.mixture.posterior(scaled)

    def scale(self, losses: Tensor) -> Tensor:
        """Losses in [edge, 1 - edge]; what is not a number is taken as the least loss."""
        edge = self.scaling.edge
        return (losses - self.low).div_(self.span).nan_to_num_(nan=0.0).clamp_(edge, 1 - edge)

    def described(self) -> dict[str, float]:
        """Parameters of the mixture, and of the scale that it lives on: scaled = (loss - low) / span."""
        return self.mixture.named_parameters() | {"low": self.low, "span": self.span}

    def get_extra_state(self) -> dict[str, Any]:
        """What was fitted, as plain JSON values."""
        mixture = self.mixture
        fitted = [mixture.weights_, mixture.means_, *mixture.parameters_]
        return {"verdict": self.verdict, "low": self.low, "span": self.span, "fitted": [list(pair) for pair in fitted]}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_extra_state` gave."""
        self.verdict, self.low, self.span = state["verdict"], state["low"], state["span"]
        weights, means, first, second = (tuple(pair) for pair in state["fitted"])
        self.mixture.weights_, self.mixture.means_ = weights, means
        self.mixture.parameters_ = (first, second)

    def _fit(self, losses: Tensor, low: float, high: float) -> None:
        self.low = low + self.scaling.low_offset
        self.span = max(high - self.low, 0.0) + self.scaling.span_offset
        if self.scaling.cut(len(losses)):
            losses = losses[(losses >= low) & (losses <= high)]
        if len(losses) < HISTOGRAM_FROM:
            self.mixture.fit(self.scale(losses.double()))
        else:
            self.mixture.fit(*histogram(losses, self.scale))

    def _collapsed(self, samples: int) -> str | None:
        single = "the losses form a single group"
        if min(self.mixture.weights_) * samples < FEWEST_OF_A_COMPONENT:
            return f"{single}: one component of the mixture holds fewer than two samples"
        clean, noisy = self.mixture.means_
        if noisy - clean <= COINCIDE:
            return f"{single}: both components have the same mean"
        apart = (noisy - clean) / math.sqrt(sum(self.mixture.variances_) / 2 + 1e-12)
        if apart < self.scaling.least_gap:
            return f"{single}: the means are {apart:.1f} standard deviations apart, less than {self.scaling.least_gap}"
        return None


def histogram(losses: Tensor, scale: Callable[[Tensor], Tensor], *, bins: int = BINS) -> tuple[Tensor, Tensor]:
    """Mean and count of every occupied bin of the scaled losses, in one pass and constant extra memory.

    Bins are represented by the mean of what they hold, so weighted means are exact and EM on the bins agrees
    with EM on the samples. Sums are taken of the distances from a bin's lower end, which single precision can hold.
    """
    counts = torch.zeros(bins, dtype=torch.float64)
    sums = torch.zeros(bins, dtype=torch.float64)
    for chunk in torch.split(losses, CHUNK):
        scaled = scale(chunk) * bins
        cell = scaled.int()
        counts += torch.bincount(cell, minlength=bins)
        sums += torch.bincount(cell, weights=scaled - cell, minlength=bins)
    occupied = counts.nonzero()[:, 0]
    return (occupied + sums[occupied] / counts[occupied]) / bins, counts[occupied]
