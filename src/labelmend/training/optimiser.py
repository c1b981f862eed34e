"""How weights are changed: the optimiser's settings that suit a network, and learning rates over a run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from ..nets import FAST_NETS
from .config import Optimisation

Rates = Literal["published", "triangular"]
RISE, START, END = 0.23, 0.2, 0.01
"""Share of a run in which the triangular rate rises, and what it starts from and ends with."""
FAST_BATCH = 256
"""Batch size that the learning rate of the fast networks is for; others change it in proportion."""


@dataclass(frozen=True)
class OptimiserSettings:
    """What the optimiser of a run works with; `average` is the decay of averaged weights, None for none of them."""

    learning_rate: float
    momentum: float
    weight_decay: float
    nesterov: bool
    rates: Rates
    average: float | None

    def build(self, groups: Iterable[torch.nn.Parameter] | list[dict[str, object]]) -> torch.optim.Optimizer:
        """SGD on these parameters."""
        return torch.optim.SGD(
            groups,
            lr=self.learning_rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            nesterov=self.nesterov and self.momentum > 0,
        )


PAPER = OptimiserSettings(0.1, 0.9, 1e-4, nesterov=False, rates="published", average=None)
"""Appendix B: SGD whose rate drops at the method's published epochs."""
FAST = OptimiserSettings(0.4, 0.85, 1.3e-3, nesterov=True, rates="triangular", average=0.99)
"""For short runs of the fast networks."""

HEADS = OptimiserSettings(0.1, 0.9, 0.01, nesterov=True, rates="triangular", average=None)
"""For classifiers of feature rows that start anew in every round; their weight decay is better chosen by the data."""


def optimiser_settings(
    net: str, batch_size: int, asked: Optimisation, *, suited: OptimiserSettings | None = None
) -> tuple[OptimiserSettings, str]:
    """The settings that suit a network, with those asked for in place of them, and why; `suited` were chosen before."""
    if suited is not None:
        why = f"weight decay {suited.weight_decay:g}, which predicts held-out labels best"
    elif net in FAST_NETS:
        suited = replace(FAST, learning_rate=FAST.learning_rate * batch_size / FAST_BATCH)
        why = "a rate that rises and falls once, averaged weights: for short runs of a fast network"
    elif net == "linear":
        suited, why = HEADS, "a rate that rises and falls once: for short runs of a linear classifier"
    else:
        suited, why = PAPER, "the paper's"
    given = {name: getattr(asked, name) for name in ("learning_rate", "momentum", "weight_decay")}
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
