"""The last word on every label: a mixture fitted to what the whole run saw, not only its last epoch."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core import Ledger, generator
from ..mixture import MARGINS, GaussianMixture, NoiseModel, histogram

RESAMPLED = 200
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Judgement:
    """What the run found out about each label and about all of them.

    `rival` is the class that the label should be if it is wrong, and `agreement` how sure that is. `interval` is where
    the noise rate lies with 95 % confidence; `reason` says why there is no evidence of wrong labels, if there is none.
    """

    probability: Tensor
    margin: Tensor
    steadiness: Tensor
    rival: Tensor
    agreement: Tensor
    rate: float
    interval: tuple[float, float]
    mixture: dict[str, float] | None
    reason: str | None


def judge(ledgers: list[Ledger]) -> Judgement:
    """Judge all labels by their mean margin over the tracking passes, so that one unlucky epoch does not decide.

    Paper: judges by the loss of one epoch and has no such step. Margins averaged over training rank labels better
    (Pleiss et al. 2020), and both of their humps are close to Gaussian, so that the mixture also counts right: the
    moments of a beta component on losses are pulled by its tail, which makes it call too few labels wrong.
    """
    margin = torch.stack([ledger.margins for ledger in ledgers]).double().mean(dim=0)
    steadiness = torch.stack([ledger.doubts for ledger in ledgers]).double().mean(dim=0)
    lead, surest = torch.stack([ledger.leads for ledger in ledgers]).max(dim=0)
    rival = torch.stack([ledger.rivals for ledger in ledgers]).gather(0, surest[None])[0]
    model = NoiseModel(GaussianMixture(iterations="converged"), MARGINS).fit(margin)
    probability = model.posterior(margin)
    return Judgement(
        probability=probability,
        margin=margin,
        steadiness=steadiness,
        rival=rival,
        agreement=(1 + lead.double()) / 2,
        rate=float(probability.mean()),
        interval=_interval(model, margin, steadiness),
        mixture=None if model.degenerate else model.described(),
        reason=model.verdict,
    )


def _interval(model: NoiseModel, margin: Tensor, steadiness: Tensor) -> tuple[float, float]:
    """Where the rate lies if the samples had been drawn again; without evidence, up to the share steadily doubted.

    It tells of chance in the samples, not of how far their margins are from two Gaussian humps.
    """
    if model.degenerate:
        return 0.0, float((steadiness > 0.5).double().mean())
    points, counts = histogram(margin.cpu(), model.scale)
    start = model.mixture.posterior(points)
    rng = generator(0, "noise rate interval")
    draws = [torch.poisson(counts, generator=rng) for _ in range(RESAMPLED)]
    rates = [GaussianMixture(iterations="converged").fit(points, drawn, start=start).weights_[1] for drawn in draws]
    low, high = np.quantile(rates, INTERVAL)
    return float(low), float(high)
