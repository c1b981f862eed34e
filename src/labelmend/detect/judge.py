"""The judge: P(wrong) of every label, from what a network predicted for the samples."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .predictions import Floats, Ints, Predictions, calibration_factor, read_predictions, softmax
from .sharpness import Sharpness, estimate_sharpness
from .two_ways import MOST_PAIRED, by_class_and_label, fit_two_ways, posterior, sharpened

Finding = Literal["wrong labels found", "looks clean", "cannot judge"]
FOUND: Finding = "wrong labels found"
CLEAN: Finding = "looks clean"
UNKNOWN: Finding = "cannot judge"

FITTED = 20_000
"""Samples that parameters are fitted to; all samples are judged."""
START_AMBIGUITY = 0.6
"""Share of labels that ambiguity is taken to have made before labels say otherwise."""
REFITTED = 5_000
"""Samples of rough judgements, and of the refits for the interval of the noise rate, which tell differences only."""
FEWEST = 10
SHARPENED = 1.5
"""Exponent of the truth from which labels contradict the network where it should be sure."""
HABIT_GAIN, HABIT_GAIN_EACH, KNOWS = 10.0, 0.004, 0.5
"""Or: log-likelihood that class habits gain, in all and a label, for a network that explains half of the labels."""
SHARPER, SHARPER_GAIN_EACH = 1.25, 0.001
"""Or: an exponent of the truth under that, from which on a smaller gain is enough."""
PLAIN_GAIN_EACH = 0.016
"""Or: a gain that weak networks do not come to where labels are right, so that it is enough for them too."""
IN_SAMPLE_GAIN_EACH = 0.0003
"""Or, of samples that the network learned, whose predictions gain nothing where labels are right: this is enough."""
LEARNED, LEARNED_SIGMAS = 0.025, 2.5
"""Share of the labels' entropy, and its standard errors, below which predictions say nothing of the labels."""
FEW_DOUBTS = 0.15
"""Share of labels that a network may doubt, of all that it is unsure of, while they look clean."""


@dataclass(frozen=True)
class Judgement:
    """What is known of each label, arrays [n], and of all of them.

    `probability` is P(wrong), and a higher `score` is a more suspicious label. `rival` is the class that the label
    should be if it is wrong, and `agreement` P(that class | wrong). `margin` is the log-odds against the given label
    and `steadiness` the share of passes in which another class was more probable. Labels from `threshold` on are
    flagged if the finding is that there are wrong ones. `interval` is where the noise rate lies: sampling error, and
    what the judge's own assumptions leave open. `reason` explains the finding; `mixture` has the parameters of the
    mixture of margins and `fitted` those of the judge; `sharpness` is what it took the truth for.
    """

    probability: Floats
    score: Floats
    rival: Ints
    agreement: Floats
    margin: Floats
    steadiness: Floats
    loss: Floats
    threshold: float
    rate: float
    interval: tuple[float, float]
    transition: Floats | None
    finding: Finding
    reason: str
    mixture: dict[str, Any] | None = None
    fitted: dict[str, float] = field(default_factory=dict)
    sharpness: Sharpness | None = None

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Labels that look wrong."""
        found: NDArray[np.bool_] = (self.probability >= self.threshold) & (self.finding == FOUND)
        return found

    def trusting(self, rows: Ints) -> "Judgement":
        """The same, with these labels known to be right."""
        probability, score = self.probability.copy(), self.score.copy()
        probability[rows], score[rows] = 0.0, -1.0
        return replace(self, probability=probability, score=score, rate=float(probability.mean()))


Average = Callable[[Predictions, Floats, Ints, Sharpness], tuple[Floats, float]]
"""How several readings of predictions become one, such as `readings.averaged_readings`."""


def judge_predictions(
    labels: ArrayLike,
    probabilities: Any,
    *,
    rough: bool = False,
    in_sample: bool = False,
    average: Average | None = None,
    beside: Judgement | None = None,
) -> Judgement:
    """Judge labels [n] by probabilities [n, C] of a network that was not trained on the sample it predicts.

    One setting serves all data. Predictions are calibrated against the given labels, so that their temperature does not
    matter; then two ways to be wrong are fitted (see `two_ways`), for a truth as sharp as can be told (see
    `sharpness`). A `rough` judgement is fitted to fewer samples and has no interval, which is enough to train by.
    `average` takes several readings of the predictions into account, as is better for tables and texts.

    Predictions of samples that the network was trained on give too few wrong labels where it memorised them: what is
    memorised looks right. `in_sample` is for those of a run too short for that. What such a network doubts of its
    easiest samples is in part the smoothing of its targets, so that they count less than the likelihood. If wrong
    labels were found `beside` them, among samples that the same network did not learn, they are here too, and the truth
    is as sharp as there.

    >>> import numpy
    >>> truth = numpy.arange(300) % 3
    >>> labels = numpy.where(numpy.arange(300) % 10 == 0, (truth + 1) % 3, truth)
    >>> judgement = judge_predictions(labels, 0.9 * numpy.eye(3)[truth] + 0.1 / 3)
    >>> judgement.finding, int(judgement.flagged.sum())
    ('wrong labels found', 30)
    """
    raw = read_predictions(labels, probabilities)
    rows = np.sort(np.random.default_rng(0).permutation(len(raw))[: REFITTED if rough else FITTED])
    factor = calibration_factor(raw.take(rows))
    predictions = raw.scaled(factor)
    some = predictions.take(rows)
    own = predictions.of_given(softmax(predictions.log_probs))
    sharpness = estimate_sharpness(some, in_sample=in_sample)
    doubted = predictions.predicted() != predictions.labels
    learned, sigmas = _learned(predictions, own)
    enough = IN_SAMPLE_GAIN_EACH if in_sample else _gain_needed(sharpness)
    finding, reason = _finding(len(predictions), learned, sigmas, float(doubted.mean()), sharpness, enough)
    if beside is not None and beside.sharpness is not None and beside.finding == FOUND:
        finding, reason, sharpness = FOUND, beside.reason, beside.sharpness
    if finding == FOUND and average is not None:
        after, ambiguity = average(predictions, own, rows, sharpness)
    else:
        exponents = sharpness.estimate if finding == FOUND else np.ones(predictions.class_count)
        start = START_AMBIGUITY if finding == FOUND else 0.0
        habits, ambiguity, _ = fit_two_ways(sharpened(some, exponents), own[rows], some, ambiguity=start)
        after = posterior(sharpened(predictions, exponents), own, predictions, habits, ambiguity)
    probability = np.clip(1 - predictions.of_given(after).astype(np.float64), 0, 1)
    rival, agreement = _rivals(predictions, after, probability)
    rate = float(probability.mean())
    interval = 0.0, max(float(doubted.mean()), rate) if finding == CLEAN else 1.0
    if finding == FOUND and not rough:
        few = rows[:: -(-len(rows) // REFITTED)]
        interval = _interval(predictions.take(few), own[few], sharpness, probability, few)
    clipped = np.clip(own.astype(np.float64), 1e-12, 1 - 1e-12)
    return Judgement(
        probability=probability,
        score=_score(probability, own, 1.0 if in_sample and finding == FOUND else sharpness.strength),
        rival=rival,
        agreement=agreement,
        margin=np.log1p(-clipped) - np.log(clipped),
        steadiness=doubted.astype(np.float64),
        loss=-np.log(clipped),
        threshold=best_threshold(probability),
        rate=rate,
        interval=interval,
        transition=_transition(predictions, after),
        finding=finding,
        reason=reason,
        fitted={
            "temperature": 1 / factor,
            "sharpness": sharpness.overall,
            "strength": sharpness.strength,
            "ambiguity": ambiguity,
            "learned": learned,
            "doubted": float(doubted.mean()),
        },
        sharpness=sharpness,
    )


def best_threshold(probability: Floats) -> float:
    """P(wrong) from which labels are flagged: where the expected F1 is best, and at most one half.

    Where labels cannot be told surely, half of the best expected F1 lies under one half: then a label is worth a look
    although it is likelier right than wrong.
    """
    ordered = np.sort(probability)[::-1]
    f1 = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum() + 1e-12)
    return min(float(ordered[f1.argmax()]), 0.5)


def _score(probability: Floats, own: Floats, strength: float) -> Floats:
    """Suspicion: by P(wrong) where the network is strong, by what it gives the label where it is weak."""
    return strength * ranks(probability) + (1 - strength) * ranks(-own)


def ranks(values: Floats) -> Floats:
    """Rank of each value among all, from 0 for the lowest to 1."""
    return values.argsort(kind="stable").argsort() / max(len(values) - 1, 1)


def _gain_needed(sharpness: Sharpness) -> float:
    """Log-likelihood a label that class habits must gain for wrong labels to be found by it."""
    return SHARPER_GAIN_EACH if sharpness.overall >= SHARPER else HABIT_GAIN_EACH


def _finding(
    samples: int, learned: float, sigmas: float, doubted: float, sharpness: Sharpness, enough: float
) -> tuple[Finding, str]:
    """What can be said of the labels as a whole, and why; `enough` is what class habits must gain a label."""
    if samples < FEWEST:
        return UNKNOWN, f"{samples} samples are too few"
    if learned < LEARNED or sigmas < LEARNED_SIGMAS:
        return (
            UNKNOWN,
            "the network predicts labels no better than chance: it learned nothing, or the labels are random",
        )
    if sharpness.overall >= SHARPENED:
        return FOUND, "labels contradict the network where it should be sure"
    gain = sharpness.habit_gain
    if gain * samples >= HABIT_GAIN and (gain >= PLAIN_GAIN_EACH or (gain >= enough and learned >= KNOWS)):
        return FOUND, "more labels contradict the network than it can be wrong about"
    if doubted <= FEW_DOUBTS:
        return CLEAN, f"the network doubts {doubted:.1%} of the labels, no more than it is unsure of"
    return UNKNOWN, f"the network doubts {doubted:.0%} of the labels and is as unsure itself, so that it is too weak"


def _learned(predictions: Predictions, own: Floats) -> tuple[float, float]:
    """The share of the labels' entropy that the predictions explain, and how many standard errors that is."""
    base = np.bincount(predictions.labels, minlength=predictions.class_count) / len(predictions)
    gained = np.log(own.astype(np.float64) + 1e-30) - np.log(base[predictions.labels])
    entropy = -float((base[base > 0] * np.log(base[base > 0])).sum())
    error = gained.std() / np.sqrt(len(gained)) + 1e-9
    return float(gained.mean()) / max(entropy, 1e-9), float(gained.mean() / error)


def _rivals(predictions: Predictions, after: Floats, probability: Floats) -> tuple[Ints, Floats]:
    """The likeliest class other than the given one, and its share in P(wrong)."""
    others = after.copy()
    np.put_along_axis(others, predictions.given[:, None], -1.0, axis=1)
    best = others.argmax(axis=1)[:, None]
    share = np.take_along_axis(others, best, 1)[:, 0].astype(np.float64)
    agreement = np.clip(share / np.maximum(probability, 1e-12), 0, 1)
    return np.take_along_axis(predictions.classes, best, 1)[:, 0].astype(np.int64), agreement


def _interval(
    some: Predictions, own: Floats, sharpness: Sharpness, probability: Floats, rows: Ints
) -> tuple[float, float]:
    """The noise rates refitted with every plausible sharpness, and 1.96 standard errors more."""
    rate, refitted = float(probability.mean()), []
    for exponents in sharpness.plausible:
        truth = sharpened(some, exponents)
        habits, ambiguity, _ = fit_two_ways(truth, own, some, ambiguity=START_AMBIGUITY)
        after = posterior(truth, own, some, habits, ambiguity)
        refitted.append(float(1 - some.of_given(after).mean()) - float(probability[rows].mean()))
    error = 1.96 * float(np.sqrt(rate * (1 - rate) / len(probability)))
    return max(rate + min(*refitted, 0.0) - error, 0.0), min(rate + max(*refitted, 0.0) + error, 1.0)


def _transition(predictions: Predictions, after: Floats) -> Floats | None:
    """P(labelled j | should be i), [C, C]; None where there are too many classes."""
    if predictions.class_count > MOST_PAIRED:
        return None
    counts = by_class_and_label(predictions, after) + 1e-9 * np.eye(predictions.class_count)
    found: Floats = counts / counts.sum(axis=1, keepdims=True)
    return found
