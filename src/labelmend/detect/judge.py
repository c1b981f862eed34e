"""The last word on every label: a mixture fitted to what the whole run saw, not only its last epoch."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import generator
from ..mixture.margins import MarginMixture, Points, why_unfit
from .ledger import Ledger

RESAMPLED = 50
INTERVAL = (0.025, 0.975)
MANY_DOUBTED = 0.1


@dataclass(frozen=True)
class Judgement:
    """What the run found out about each label and about all of them.

    `score` ranks the labels, the most suspicious highest: the mean of the orders by margin, which takes no account
    of the class, and by P(wrong), which does; it is right more often than either. `rival` is the class that the
    label should be if it is wrong, and `agreement` how sure that is. `interval` is where the noise rate lies with
    95 % confidence; `reason` says why there is no evidence of wrong labels, if there is none.
    """

    probability: Tensor
    score: Tensor
    margin: Tensor
    steadiness: Tensor
    rival: Tensor
    agreement: Tensor
    rate: float
    interval: tuple[float, float]
    mixture: dict[str, Any] | None
    reason: str | None

    def trusting(self, index: Tensor) -> "Judgement":
        """The same, with these labels known to be right."""
        probability, score = self.probability.clone(), self.score.clone()
        probability[index], score[index] = 0.0, -1.0
        return replace(self, probability=probability, score=score, rate=float(probability.mean()))


def judge(ledgers: list[Ledger], labels: Tensor, classes: int) -> Judgement:
    """Judge all labels by their mean margin over the tracking passes, so that one unlucky epoch does not decide.

    Paper: judges by the loss of one epoch and has no such step. What is averaged over training ranks labels better, as
    Pleiss et al. (2020) found for margins between logits; and both groups of log-odds are close to Gaussian, so that
    the mixture also counts right: the moments of a beta component on losses are pulled by its tail, which makes it call
    too few labels wrong.
    """
    margin = torch.stack([ledger.margins for ledger in ledgers]).double().mean(dim=0).cpu()
    steadiness = torch.stack([ledger.disagreement_rate for ledger in ledgers]).double().mean(dim=0).cpu()
    lead, surest = torch.stack([ledger.rival_vote for ledger in ledgers]).max(dim=0)
    rival = torch.stack([ledger.rivals for ledger in ledgers]).gather(0, surest[None])[0]
    labels = labels.cpu()
    reason, mixture, interval, odds = why_unfit(margin, steadiness), None, None, margin
    if reason is None:
        points = Points.of(margin, labels, steadiness, classes)
        fitted = MarginMixture().fit(points, classes)
        reason, odds = fitted.why_not(len(margin)), fitted.log_odds(margin, labels)
        if reason is None:
            mixture, interval = fitted.described(), _interval(fitted, points, classes)
    probability = torch.sigmoid(odds) if mixture is not None else torch.zeros_like(margin)
    doubted = float((steadiness > 0.5).double().mean())
    if reason is not None and doubted > MANY_DOUBTED:
        reason += f"; the network doubted {doubted:.0%} of the labels, so it may have learned too little to judge them"
    return Judgement(
        probability=probability,
        score=_places(margin) + _places(odds),
        margin=margin,
        steadiness=steadiness,
        rival=rival.cpu(),
        agreement=(1 + lead.double().cpu()) / 2,
        rate=float(probability.mean()),
        interval=interval or (0.0, doubted),
        mixture=mixture,
        reason=reason,
    )


def _places(values: Tensor) -> Tensor:
    """Place of each value among all, from 0 for the lowest to 1."""
    return values.argsort(stable=True).argsort().double() / max(len(values) - 1, 1)


def _interval(mixture: MarginMixture, points: Points, classes: int) -> tuple[float, float]:
    """A bootstrap interval of the noise rate.

    It measures sampling error, not how far the margins are from two Gaussian components.
    """
    start = torch.sigmoid(mixture.log_odds(points.margins, points.classes))
    rng = generator(0, "noise rate interval")
    draws = (points.resampled(rng) for _ in range(RESAMPLED))
    rates = [MarginMixture().fit(drawn, classes, start=start).weight for drawn in draws]
    low, high = np.quantile(rates, INTERVAL)
    return float(low), float(high)
