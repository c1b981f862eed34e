"""Controls: samples that a network did not learn, which tell how far it memorised those that it did.

Predictions of samples that a network learned follow their labels, the wrong ones too, so that too few look wrong. How
far they do is seen beside the controls: of all labels that the network would contradict if it had not learned them,
it memorised so many that it contradicts fewer now. It memorises right labels of hard samples more readily than wrong
ones, so the rate that the learned samples show is too low by a factor between 1 and that of the contradictions: on a
logarithmic scale, it is raised three fifths of the way. Where nearly nothing looks wrong among the learned samples,
they are judged anew, with the sharpness of the truth that was found beside the controls. The judge's rate of the
controls themselves is mostly too high, because it takes some confident errors of the network for wrong labels. It is
the upper limit, and is taken as it is only where even then little looks wrong.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from .judge import FOUND, Judgement, best_threshold, judge_predictions, ranks
from .predictions import Floats, Ints

LEAST = 1e-9
"""P(wrong) is kept so far from 0 and 1 before it is moved."""
MEMORISED = 0.6
"""Power of the factor by which there are fewer contradictions: 0 if no wrong labels are memorised, 1 if as many as of
the right ones that the network would contradict."""
HIGHEST = 0.95
"""Up to where rates and the upper ends of their intervals are raised; the lower ends stay, since less may be hidden."""
FARTHEST = 40.0
"""Log-odds up to which it is moved."""
TELLS = 0.2
"""Share of the controls' rate from which on the rate of the others is worth anything."""
OF_EACH_LABEL = ("rival", "agreement", "margin", "steadiness", "loss")
"""What either group keeps as it was judged."""


def judge_with_controls(labels: Ints, probabilities: Floats, controls: Ints, *, rough: bool = False) -> Judgement:
    """Judge labels [n] by probabilities [n, C] of a network that learned all samples but the rows `controls`.

    Where the controls show no wrong labels, they are judged with all others. A `rough` judgement is enough to train by.
    """
    held_out = np.zeros(len(labels), bool)
    held_out[controls] = True
    unlearned = judge_predictions(labels[held_out], probabilities[held_out], rough=rough)
    if unlearned.finding != FOUND:
        return judge_predictions(labels, probabilities, in_sample=True, rough=rough)
    some = labels[~held_out], probabilities[~held_out]
    least = TELLS * unlearned.rate
    learned = judge_predictions(*some, in_sample=True, rough=rough)
    if learned.finding != FOUND or learned.rate < least:
        learned = judge_predictions(*some, in_sample=True, rough=rough, beside=unlearned)
    telling = learned.rate >= least
    contradicted = probabilities.argmax(axis=1) != labels
    fewer = fewer_contradictions(contradicted[held_out], contradicted[~held_out])
    teller = learned if telling else unlearned
    factor = raised(learned.rate, by=fewer, limit=unlearned.rate) / learned.rate if telling else 1.0
    low, high = teller.interval
    rate, high = min(factor * teller.rate, HIGHEST), min(factor * high, HIGHEST)
    each: dict[str, Any] = {
        name: _placed(held_out, getattr(learned, name), getattr(unlearned, name)) for name in OF_EACH_LABEL
    }
    moved = (moved_to(group.probability, rate) for group in (learned, unlearned))
    probability = _placed(held_out, *moved)
    return replace(
        teller,
        **each,
        probability=probability,
        score=ranks(probability),
        threshold=best_threshold(probability),
        rate=rate,
        interval=(low, high),
        fitted=learned.fitted
        | {"learned_rate": learned.rate, "control_rate": unlearned.rate, "fewer_contradictions": fewer},
    )


def fewer_contradictions(controls: NDArray[np.bool_], learned: NDArray[np.bool_]) -> float:
    """By what factor fewer labels are contradicted where they were learned, 1 if not fewer.

    >>> fewer_contradictions(np.array([True, False, True, False]), np.array([True, False, False, False]))
    2.0
    """
    return max(1.0, float(controls.mean()) / max(float(learned.mean()), 1 / len(learned)))


def raised(rate: float, *, by: float, limit: float) -> float:
    """The rate whose logarithm lies three fifths of the way to that of a rate higher by this factor, within the limit.

    >>> round(raised(0.1, by=1.5, limit=0.2), 3), round(raised(0.1, by=9, limit=0.2), 3), raised(0.3, by=2, limit=0.2)
    (0.128, 0.2, 0.3)
    """
    return max(rate, min(rate * math.pow(by, MEMORISED), limit))


def moved_to(probability: Floats, rate: float) -> Floats:
    """The same probabilities with one number added to all log-odds, so that their mean is this rate.

    >>> moved_to(np.array([0.5, 0.1, 0.1, 0.1]), 0.4).round(2)
    array([0.77, 0.28, 0.28, 0.28])
    """
    odds, low, high = logit(np.clip(probability, LEAST, 1 - LEAST)), -FARTHEST, FARTHEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(expit(odds + middle).mean()) < rate else (low, middle)
    moved: Floats = expit(odds + high)
    return moved


def _placed(held_out: NDArray[np.bool_], learned: Floats, unlearned: Floats) -> Floats:
    """What is known of both groups, in the order of the samples."""
    values = np.empty(len(held_out), learned.dtype)
    values[~held_out], values[held_out] = learned, unlearned
    return values
