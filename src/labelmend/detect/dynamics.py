"""Labels judged by the many passes of a training run, on samples that the network was trained on.

A network that is trained on a label comes to believe it, so that the predictions of a run are biased towards the given
labels: what is memorised looks right. Two things speak against that. The ledger leaves out what the network thought
before it had learned anything, and averages all later passes, most of which come before memorisation. And two judges
that fail differently are asked: a mixture of the log-odds against each label, which looks for a group of samples that
lies apart, and the judge of predictions, which looks for labels that contradict the network where it should be sure.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import generator
from ..errors import InputError
from ..mixture.margins import MarginMixture, Points, why_unfit
from .controls import judge_with_controls
from .judge import CLEAN, FOUND, UNKNOWN, Average, Finding, Judgement, best_threshold, judge_predictions, ranks
from .ledger import Ledger
from .predictions import Floats, as_array, checked

RESAMPLED = 50
INTERVAL = (0.025, 0.975)
MANY_DOUBTED = 0.1
LEAST = 1e-6
FAR_APART = 5.0
"""Standard deviations between the two groups of margins from which they alone decide, as in training."""


def judge_passes(labels: Any, probabilities: Any) -> Judgement:
    """Judge labels [n] by the probabilities of many passes, [passes, n, C], the earliest first."""
    given, values = as_array(labels, "labels"), as_array(probabilities, "probabilities")
    if values.ndim != 3 or not len(values):
        raise InputError(f"probabilities must be [passes, samples, classes], not of shape {tuple(values.shape)}")
    given, _ = checked(given, values[0])
    if len(values) == 1:
        return judge_predictions(given, values[0])
    ledger, classes = Ledger(len(given)), values.shape[2]
    ledger.keep_mean_probs(classes)
    for number, one in enumerate(values, start=1):
        rows = np.array(one, dtype=np.float32)  # a copy: torch takes no read-only memory, as of a file
        total = rows.sum(axis=1, keepdims=True)
        if not np.isfinite(total).all() or (rows < 0).any() or not (total > 0).all():
            raise InputError(f"the probabilities of pass {number} are negative, not finite or all zero in a row")
        ledger.open_pass(number / len(values))
        logits = torch.from_numpy(rows / total).clamp_min(LEAST).log()
        ledger.write(torch.arange(len(given)), torch.from_numpy(given), logits)
    return judge_ledgers([ledger], torch.from_numpy(given), classes)


def judge_ledgers(
    ledgers: Sequence[Ledger],
    labels: Tensor,
    classes: int,
    *,
    by_predictions: bool = False,
    held_out: bool = True,
    controls: Tensor | None = None,
    average: Average | None = None,
    rough: bool = False,
) -> Judgement:
    """Judge all labels by what the tracking passes of a run recorded, one ledger for each network.

    `by_predictions` leaves the margins out, which tell nothing more where labels were held out or corrected by the same
    judge; the networks that predicted then learned other samples, unless not `held_out`, and then `controls` are those
    that they did not learn. `average` is that of `judge_predictions`. A `rough` judgement is by the margins where they
    form two groups and else by predictions, and has no interval, which is enough to train by. Paper: judges by the loss
    of one epoch and has no such step. What is averaged over training ranks labels better, as Pleiss et al. (2020) found
    for margins between logits.
    """
    means = [ledger.mean_probs for ledger in ledgers]
    if rough or any(mean is None for mean in means):
        by_margins = _judge_margins(ledgers, labels.cpu(), classes, rough=rough)
        if by_margins.finding == FOUND or any(mean is None for mean in means):
            return by_margins
    mean = torch.stack([mean.float().cpu() for mean in means if mean is not None]).mean(dim=0)
    in_sample = by_predictions and not held_out
    if in_sample and not rough and controls is not None and len(controls):
        return judge_with_controls(labels.cpu().numpy(), mean.numpy(), controls.cpu().numpy())
    judged = judge_predictions(labels.cpu().numpy(), mean.numpy(), rough=rough, in_sample=in_sample, average=average)
    return judged if by_predictions or rough else _combined(_judge_margins(ledgers, labels.cpu(), classes), judged)


def _combined(margins: Judgement, predictions: Judgement) -> Judgement:
    """Both judges together: whether there are wrong labels is for the judge of predictions to say, which ones for both.

    Groups of margins that lie far apart leave nothing to ask; nearer ones count twice, because they rest on every pass.
    """
    if predictions.finding != FOUND or margins.finding != FOUND:
        probability, interval, mixture = predictions.probability, predictions.interval, None
    elif margins.fitted["gap"] >= FAR_APART:
        return replace(margins, reason=predictions.reason, fitted=margins.fitted | predictions.fitted)
    else:
        odds = (2 * _log_odds(margins.probability) + _log_odds(predictions.probability)) / 3
        probability, mixture = 1 / (1 + np.exp(-odds)), margins.mixture
        ends = margins.interval, predictions.interval
        interval = min(low for low, _ in ends), max(high for _, high in ends)
    return replace(
        margins,
        probability=probability,
        score=ranks(probability) + ranks(margins.score),
        threshold=best_threshold(probability),
        rate=float(probability.mean()),
        interval=interval,
        mixture=mixture,
        finding=predictions.finding,
        reason=predictions.reason,
        fitted=margins.fitted | predictions.fitted,
    )


def _judge_margins(ledgers: Sequence[Ledger], labels: Tensor, classes: int, *, rough: bool = False) -> Judgement:
    """Judge by a mixture of the mean log-odds against each label; both groups are close to Gaussian."""
    margin = torch.stack([ledger.margins for ledger in ledgers]).double().mean(dim=0).cpu()
    steadiness = torch.stack([ledger.disagreement_rate for ledger in ledgers]).double().mean(dim=0).cpu()
    lead, surest = torch.stack([ledger.rival_vote for ledger in ledgers]).max(dim=0)
    rival = torch.stack([ledger.rivals for ledger in ledgers]).gather(0, surest[None])[0]
    reason, mixture, interval, odds, gap = why_unfit(margin, steadiness), None, None, margin, 0.0
    if reason is None:
        points = Points.of(margin, labels, steadiness, classes)
        fitted = MarginMixture().fit(points, classes)
        reason, odds, gap = fitted.why_not(len(margin)), fitted.log_odds(margin, labels), fitted.gap
        if reason is None:
            mixture, interval = fitted.described(), None if rough else _interval(fitted, points, classes)
    probability = (torch.sigmoid(odds) if mixture is not None else torch.zeros_like(margin)).numpy()
    doubted = float((steadiness > 0.5).double().mean())
    weak = reason is not None and doubted > MANY_DOUBTED
    if weak:
        reason = f"the network learned too little to tell: it doubts {doubted:.0%} of the labels, and {reason}"
    finding: Finding = FOUND if reason is None else UNKNOWN if weak else CLEAN
    return Judgement(
        probability=probability,
        score=ranks(margin.numpy()) + ranks(odds.numpy()),
        rival=rival.cpu().numpy().astype(np.int64),
        agreement=((1 + lead.double().cpu()) / 2).numpy(),
        margin=margin.numpy(),
        steadiness=steadiness.numpy(),
        loss=ledgers[0].losses.double().cpu().numpy(),
        threshold=0.5,
        rate=float(probability.mean()),
        interval=interval or (0.0, doubted),
        transition=None,
        finding=finding,
        reason=reason or "the margins form two groups",
        mixture=mixture,
        fitted={"gap": gap},
    )


def _log_odds(probability: Floats) -> Floats:
    clipped = np.clip(probability, LEAST, 1 - LEAST)
    return np.log(clipped) - np.log1p(-clipped)


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
