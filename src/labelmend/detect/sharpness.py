"""How much of a network's doubt is about the truth, and how much only about how people label.

Predictions that are calibrated against the given labels, s(x), are unsure for two reasons: the network does not know,
or the labels are wrong. Only the first is doubt of the truth, c(x) ~ s(x)^g. The likelihood cannot tell g, because
labels that are drawn from s(x) fit any c(x). Two things that can be measured without the truth can:

- *Easy samples.* A network that has learned is sure of its easiest quarter; the doubt left there is the labels'.
- *Likelihood with class habits alone*, which sees habits well and people's doubt about single samples hardly.

Where easy and middling samples are doubted alike, the doubt is noise in the labels, and easy samples decide. Where the
doubts differ much, the network is weak, and the likelihood decides.
"""

from dataclasses import dataclass

import numpy as np

from .predictions import Floats, Predictions, softmax
from .two_ways import Habits, fit_two_ways

EASY, SURE = 0.25, 0.001
"""A network that knows leaves this doubt of the truth on this share of the samples."""
WEAK, STRONG = 0.45, 0.65
"""Exponent of the easiest tenth over that of the easier half, from a weak network to a strong one."""
OVERSHOOT = 0.8
"""Power on the likelihood's exponent: it takes samples that the network is surely wrong about for wrong labels.

Of samples that it learned, a network is seldom surely wrong."""
LEARNED_STRENGTH = 0.4
"""Of the strength, for samples that the network learned: what it doubts of the easiest is in part the smoothing of its
targets."""
LARGEST = 100.0
"""Exponent up to which is searched; doubts of weak networks must not all end at it, or they would look alike."""
CLASS_SHRINKAGE = 50.0
"""Samples by which the exponent of a class is drawn to the common one."""
FEWEST_OF_CLASS = 10
UNSURE = (1.25, 1.5)
"""Factors by which the exponent may be larger or smaller, as far as the interval of the noise rate goes."""


@dataclass(frozen=True)
class Sharpness:
    """Exponents g for samples that are taken for each class, [C]: the estimate, and others that are plausible, [k, C].

    `overall` is their mean before the allowance for overshoot, `strength` how far easy samples decide, from 0 to 1,
    `habit_gain` the log-likelihood a label that class habits gain over none, and `likely` the exponent at which it is
    largest.
    """

    estimate: Floats
    plausible: Floats
    overall: float
    strength: float
    habit_gain: float
    likely: float


def estimate_sharpness(predictions: Predictions, *, in_sample: bool = False) -> Sharpness:
    """The exponents of calibrated predictions; `in_sample` ones are of samples that the network learned."""
    likely, habit_gain = _likely_exponent(predictions)
    tenth, pooled, half = (float(np.log(_easy_exponent(predictions.log_probs, share))) for share in (0.1, EASY, 0.5))
    strength = float(np.clip((np.exp(tenth - half) - WEAK) / (STRONG - WEAK), 0, 1))
    strength, overshoot = (strength * LEARNED_STRENGTH, 1.0) if in_sample else (strength, OVERSHOOT)
    taken_for = predictions.predicted()
    counts = np.bincount(taken_for, minlength=predictions.class_count)
    easy = np.full(predictions.class_count, pooled)
    for label in np.flatnonzero(counts >= FEWEST_OF_CLASS):
        own = np.log(_easy_exponent(predictions.log_probs[taken_for == label], EASY))
        easy[label] = (own * counts[label] + pooled * CLASS_SHRINKAGE) / (counts[label] + CLASS_SHRINKAGE)
    by_likelihood = float(np.log(likely))
    estimate = strength * easy + (1 - strength) * overshoot * by_likelihood
    steps = [sign * float(np.log(factor)) for factor in UNSURE for sign in (-1, 1)]
    plausible = np.stack([*(estimate + step for step in steps), easy, np.full_like(easy, overshoot * by_likelihood)])
    overall = float(np.exp((strength * easy + (1 - strength) * by_likelihood) @ counts / counts.sum()))
    return Sharpness(np.exp(estimate), np.exp(np.maximum(plausible, 0)), overall, strength, habit_gain, likely)


def _easy_exponent(log_probs: Floats, share: float) -> float:
    """The least exponent, from 1 on, at which this share of the samples is all but sure."""

    def doubt(exponent: float) -> float:
        return float(np.quantile(1 - softmax(exponent * log_probs).max(axis=1), share))

    if doubt(1.0) <= SURE:
        return 1.0
    low, high = 0.0, float(np.log(LARGEST))
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if doubt(float(np.exp(middle))) > SURE else (low, middle)
    return float(np.exp(high))


def _likely_exponent(predictions: Predictions) -> tuple[float, float]:
    """The exponent that fits best when all wrong labels are class habits, and its gain in log-likelihood a label."""
    grid, nothing, habits = np.linspace(0, np.log(8), 13), np.zeros(len(predictions)), Habits(predictions.class_count)
    found = []
    for exponent in np.exp(grid):
        truth = softmax(exponent * predictions.log_probs)
        found.append(fit_two_ways(truth, nothing, predictions, ambiguity=0.0, start=habits, iterations=40)[2])
    at = int(np.argmax(found))
    best = grid[at]
    if 0 < at < len(grid) - 1:  # the top of the parabola through three points
        low, middle, high = found[at - 1 : at + 2]
        best += (grid[1] - grid[0]) * 0.5 * (low - high) / min(low - 2 * middle + high, -1e-12)
    return float(np.exp(best)), found[at] - found[0]
