"""How weights are changed: the optimiser's settings that suit a network, and learning rates over a run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from ..errors import InputError
from ..nets import FAST_NETS, NETS, parameter_groups
from .config import Optimisation
from .muon import Muon

Rates = Literal["published", "triangular"]
RISE, START, END = 0.23, 0.2, 0.01
"""Share of a run in which the triangular rate rises, and what it starts from and ends with."""
FAST_BATCH, FAST_FILTERS = 256, 0.05
"""Batch size that the learning rates of the fast networks are for, and the rate of their filters.

Others change the rate in proportion, and that of the filters, whose steps have a fixed length, by the square root."""
SMALL_SCALE, SMALLEST_SIDE = 0.75, 22
"""How much of their height and width images have in the first part of a run, and the side from which on that is so."""


@dataclass(frozen=True)
class OptimiserSettings:
    """What the optimiser of a run works with.

    `average` is the decay of averaged weights, None for none of them; `filter_rate` is the learning rate of
    orthogonalised steps for convolution filters, None to treat them as all other weights; `small_until` is the share of
    a run in which networks are shown smaller images, which take half as long and teach almost as much.
    """

    learning_rate: float
    momentum: float
    weight_decay: float
    nesterov: bool
    rates: Rates
    average: float | None
    filter_rate: float | None = None
    small_until: float = 0.0

    def build(self, network: nn.Module) -> torch.optim.Optimizer:
        """SGD on the weights of a network, its filters by orthogonalised steps where that is set."""
        settings: dict[str, Any] = {
            "lr": self.learning_rate,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "nesterov": self.nesterov and self.momentum > 0,
        }
        if self.filter_rate:
            return Muon(network.parameters(), filter_rate=self.filter_rate, **settings)
        return torch.optim.SGD(parameter_groups(network, self.learning_rate), **settings)


PAPER = OptimiserSettings(0.1, 0.9, 1e-4, nesterov=False, rates="published", average=None)
"""Appendix B: SGD whose rate drops at the method's published epochs."""
FAST = OptimiserSettings(
    0.2, 0.85, 1.3e-3, nesterov=True, rates="triangular", average=0.99, filter_rate=FAST_FILTERS, small_until=0.5
)
"""For short runs of the fast networks."""

HEADS = OptimiserSettings(0.1, 0.9, 0.01, nesterov=True, rates="triangular", average=None)
"""For classifiers of feature rows that start anew in every round; their weight decay is better chosen by the data."""


def optimiser_settings(
    net: str, batch_size: int, asked: Optimisation, *, suited: OptimiserSettings | None = None, side: int | None = None
) -> tuple[OptimiserSettings, str]:
    """The settings that suit a network, with those asked for in place of them, and why; `suited` were chosen before.

    `side` is the shorter one of the images, None for other samples.
    """
    if suited is not None:
        why = f"weight decay {suited.weight_decay:g}, which predicts held-out labels best"
    elif net in FAST_NETS:
        ratio = batch_size / FAST_BATCH
        suited = replace(FAST, learning_rate=FAST.learning_rate * ratio, filter_rate=FAST_FILTERS * ratio**0.5)
        why = (
            "orthogonalised steps, a rate that rises and falls once, averaged weights: for short runs of a fast network"
        )
    elif net == "linear":
        suited, why = HEADS, "a rate that rises and falls once: for short runs of a linear classifier"
    else:
        suited, why = PAPER, "the paper's"
    if asked.filter_rate and net not in FAST_NETS:
        raise InputError(f"setting filter_rate is for networks that normalise after every convolution, not {net}")
    large = side is not None and side >= SMALLEST_SIDE
    if asked.small_until and not large:
        raise InputError(f"setting small_until shows smaller images first, and is for images from {SMALLEST_SIDE} px")
    if asked.small_until and (net not in NETS or not NETS[net].smallest):
        raise InputError(f"setting small_until shows smaller images first, which {net} may not take; leave it out")
    if not large or asked.rates == "published":
        suited = replace(suited, small_until=0.0)
    names = ("learning_rate", "momentum", "weight_decay", "filter_rate", "small_until")
    given = {name: getattr(asked, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if asked.rates != "auto":
        given["rates"] = asked.rates
    if asked.average != "auto":
        given["average"] = None if asked.average == "none" else asked.average
    return replace(suited, **given), f"{why}; {', '.join(sorted(given))} as asked" if given else why


def rates_of(settings: OptimiserSettings) -> Callable[[float], float] | None:
    """The learning rate at each share of a run, as a multiple of the set one; None leaves it to the method."""
    return triangular if settings.rates == "triangular" else None


def triangular(progress: float) -> float:
    """Up in a straight line, and down again until the end of the run.

    >>> [round(triangular(progress), 2) for progress in (0, 0.23, 0.615, 1)]
    [0.2, 1.0, 0.51, 0.01]
    """
    if progress < RISE:
        return START + (1 - START) * progress / RISE
    return END + (1 - END) * (1 - progress) / (1 - RISE)
