"""Controls: samples that a network did not learn, which tell how far it memorised those that it did.

Predictions of samples that a network learned follow their labels, the wrong ones too, so that too few look wrong. Of
samples that it did not learn it is surely wrong now and then, and the judge takes that for wrong labels, so that too
many do. Both are labelled alike if the controls were drawn at random. So the log-odds of the noise rate are taken to
lie half-way between the two, and those of either group are moved until they say so. A network that memorised so much
that little looks wrong is found out by its controls, whose rate is then that of all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from .judge import FOUND, Judgement, best_threshold, judge_predictions, ranks
from .predictions import Floats, Ints

LEAST = 1e-9
"""P(wrong) is kept so far from 0 and 1 before it is moved."""
FARTHEST = 40.0
"""Log-odds up to which it is moved."""
TELLS = 0.4
"""Share of the controls' rate from which on the rate of the others is worth anything."""
OF_EACH_LABEL = ("rival", "agreement", "margin", "steadiness", "loss")
"""What either group keeps as it was judged."""


def judge_with_controls(labels: Ints, probabilities: Floats, controls: Ints) -> Judgement:
    """Judge labels [n] by probabilities [n, C] of a network that learned all samples but the rows `controls`.

    Where the controls show no wrong labels, they are judged with all others.
    """
    held_out = np.zeros(len(labels), bool)
    held_out[controls] = True
    learned = judge_predictions(labels[~held_out], probabilities[~held_out], in_sample=True)
    unlearned = judge_predictions(labels[held_out], probabilities[held_out])
    if unlearned.finding != FOUND:
        return judge_predictions(labels, probabilities, in_sample=True)
    telling = learned.finding == FOUND and learned.rate >= TELLS * unlearned.rate
    groups = [learned, unlearned] if telling else [unlearned]
    rate, low, high = (
        half_way(values) for values in zip(*((group.rate, *group.interval) for group in groups), strict=True)
    )
    each: dict[str, Any] = {
        name: _placed(held_out, getattr(learned, name), getattr(unlearned, name)) for name in OF_EACH_LABEL
    }
    moved = (moved_to(group.probability, rate) for group in (learned, unlearned))
    probability = _placed(held_out, *moved)
    return replace(
        groups[0],
        **each,
        probability=probability,
        score=ranks(probability),
        threshold=best_threshold(probability),
        rate=rate,
        interval=(low, high),
        fitted=learned.fitted | {"learned_rate": learned.rate, "control_rate": unlearned.rate},
    )


def half_way(rates: Sequence[float]) -> float:
    """The rate whose log-odds are the mean of those of these rates.

    >>> round(half_way([0.1, 0.2]), 3)
    0.143
    """
    return float(expit(logit(np.clip(rates, LEAST, 1 - LEAST)).mean()))


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
