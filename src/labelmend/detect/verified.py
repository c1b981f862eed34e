"""What verified labels teach: P(wrong), noise rate, what is left, and whom to ask about next.

Arrays in, arrays out: n samples, m answers. The judge's findings are a `Judged`, what people said `Answers`, and
`recalibrate` gives what follows for all samples; nothing is trained again.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .predictions import Floats, Ints
from .recalibration import BANDS, EDGES, Cells, Fit, fit_models, logistic, monotone

FEWEST = 20
"""Answers from which on verdicts of samples that nobody looked at are revised."""
DRAWS, FEWEST_DRAWS, MOST_DRAWN = 2_000, 200, 2_000_000
"""Draws of all cells for an interval, and how many numbers they may be together."""
LEVEL = 0.95
WIDER = 1.1
"""By what the interval is widened, because the model of the judge's mistakes is not exact either."""
BELIEVED = 0.1
"""Weight from which on a model counts when it is asked what is not known yet."""
DOUBT, TEACH, CHANCE = "d", "t", "c"
TURNS = ((40, "tdtdctdtdttdtdctdtdt"), (100, "dddddcddddtddddcdddd"), (0, "ddddddddddddddcddddd"))
"""Which kind of sample is asked about in turn: in the first 40 answers, up to the hundredth, and from then on."""


@dataclass(frozen=True)
class Judged:
    """What the judge found, arrays [n]: P(wrong), the given class as an index, and which labels it would replace.

    `confidence` is how likely the suggested label is right, where there is one.
    """

    probability: Floats
    given: Ints
    relabel: NDArray[np.bool_]
    confidence: Floats

    def __post_init__(self) -> None:
        sizes = {len(self.probability), len(self.given), len(self.relabel), len(self.confidence)}
        if len(sizes) > 1 or not len(self.given):
            raise InputError(f"the columns of a judged table have {sizes} rows; all need the same, and at least one")


@dataclass(frozen=True)
class Answers:
    """What people found out: rows [m] of samples, and whether the given label of each is wrong.

    `skipped` are rows that somebody looked at and could not tell; they are not asked again.
    """

    rows: Ints
    wrong: NDArray[np.bool_]
    skipped: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.wrong) or len(np.unique(self.rows)) != len(self.rows):
            raise InputError(f"{len(self.rows)} answers with {len(self.wrong)} outcomes; each sample has one")


@dataclass(frozen=True)
class Rate:
    """A share, and where it lies with 95 % probability; of a group of `samples`, `answered` were looked at."""

    share: float
    low: float
    high: float
    samples: int = 0
    answered: int = 0
    wrong: int = 0
    judged: float = 0.0


@dataclass(frozen=True)
class Recalibrated:
    """What holds of all samples after the answers; arrays [n]."""

    judged: Judged
    answers: Answers
    cells: Cells
    fits: list[Fit]
    weights: Floats

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """Samples that nobody has answered yet."""
        left = np.ones(len(self.judged.given), dtype=bool)
        left[self.answers.rows] = False
        return left

    @cached_property
    def probability(self) -> Floats:
        """P(wrong) after the answers: 0 or 1 where somebody looked, and never turned over within a class elsewhere."""
        found = np.zeros(len(self.judged.given))
        for fit, weight in zip(self.fits, self.weights, strict=True):
            log_odds = _monotone_cells(fit, self.cells)[self.cells.of] + fit.slope * self.cells.ahead
            found += weight * logistic(log_odds / fit.damping[self.cells.of])
        found[self.answers.rows] = self.answers.wrong
        return found

    @cached_property
    def confidence(self) -> Floats:
        """How likely a suggested label is right after the answers, given what the judge made of it if wrong."""
        judged = self.judged
        agreement = np.clip(judged.confidence / np.maximum(judged.probability, 1e-12), 0, 1)
        return self.probability * agreement

    @cached_property
    def relabel(self) -> NDArray[np.bool_]:
        """Suggested labels that are still likelier than the given ones; fewer answers than `FEWEST` change nothing."""
        if len(self.answers.rows) < FEWEST:
            return self.judged.relabel
        found: NDArray[np.bool_] = self.judged.relabel & (self.confidence > 1 - self.probability)
        return found

    @cached_property
    def error(self) -> Floats:
        """P(the label is wrong in a corrected data set): 0 where somebody answered."""
        left: Floats = np.where(self.relabel, 1 - self.confidence, self.probability) * self.open
        return left

    @cached_property
    def shares(self) -> Floats:
        """Shares of wrong labels in each cell, [cells, draws], as likely as the answers make them."""
        rng = np.random.default_rng(0)
        draws = min(max(MOST_DRAWN // len(self.cells.size), FEWEST_DRAWS), DRAWS)
        counts = rng.multinomial(draws, self.weights)
        drawn = [fit.drawn(self.cells, n, rng) for fit, n in zip(self.fits, counts, strict=True) if n]
        return np.concatenate(drawn, axis=1)

    @cached_property
    def drawn(self) -> Floats:
        """Numbers of wrong labels among the open samples of each cell, [cells, draws]."""
        size = np.bincount(self.cells.of[self.open], minlength=len(self.cells.size))
        return np.random.default_rng(1).binomial(size[:, None], self.shares).astype(np.float64)

    @cached_property
    def noise(self) -> Rate:
        """The share of wrong labels among all samples, those that were corrected by now included."""
        return self._rate(np.ones(len(self.cells.size), dtype=bool))

    def bands(self) -> list[tuple[float, float, Rate]]:
        """For each band of P(wrong) with samples: from, to, and the share of wrong labels in it."""
        ends = [0.0, *EDGES.tolist(), 1.0]
        shown = [band for band in range(BANDS) if (self.cells.band == band).any()]
        return [(ends[band], ends[band + 1], self._rate(self.cells.band == band)) for band in shown]

    def classes(self) -> dict[int, Rate]:
        """For each given class with samples, the share of wrong labels in it."""
        return {int(given): self._rate(self.cells.given == given) for given in np.unique(self.cells.given)}

    def _rate(self, chosen: NDArray[np.bool_]) -> Rate:
        inside = chosen[self.cells.of]
        wrong = np.bincount(self.cells.of[self.answers.rows], self.answers.wrong, len(chosen))[chosen].sum()
        samples, answered = int(inside.sum()), int(inside[self.answers.rows].sum())
        low, middle, high = _interval((self.drawn[chosen].sum(axis=0) + wrong) / samples)
        judged = float(self.judged.probability[inside].mean())
        return Rate(middle, max(low, 0.0), min(high, 1.0), samples, answered, int(wrong), judged)


@dataclass(frozen=True)
class Left:
    """Wrong labels that a corrected data set would still have, and how many more answers until few enough are left."""

    expected: float
    low: float
    high: float
    answers: int | None


def recalibrate(judged: Judged, answers: Answers) -> Recalibrated:
    """What holds of all samples after the answers.

    >>> rng = np.random.default_rng(0)
    >>> said = rng.random(2_000) ** 4                       # P(wrong) by the judge, which promises too much:
    >>> wrong = rng.random(2_000) < said / 2
    >>> judged = Judged(said, np.arange(2_000) % 5, said > 0.5, said)
    >>> rows = np.argsort(-said)[::5][:200]
    >>> found = recalibrate(judged, Answers(rows, wrong[rows]))
    >>> bool(said.mean() > found.noise.high), bool(found.noise.low < wrong.mean() < found.noise.high)
    (True, True)
    """
    cells = Cells.made(judged.probability, judged.given)
    fits, weights = fit_models(cells, answers.rows, answers.wrong)
    return Recalibrated(judged, answers, cells, fits, weights)


def expected_left(found: Recalibrated, *, wish: float = 0.01) -> Left:
    """How many labels of a corrected data set are still wrong, and the answers until at most the share `wish` is.

    That many more answers about the most doubtful samples are expected to be needed; 0 if few enough are wrong already.
    """
    errors = np.sort(found.error)[::-1]
    expected = float(errors.sum())
    after = np.concatenate([[expected], expected - np.cumsum(errors)])
    enough = np.flatnonzero(after <= wish * len(errors) + 1e-9)
    low, middle, high = _interval(_errors_drawn(found))
    moved = expected - middle
    return Left(expected, max(low + moved, 0.0), high + moved, int(enough[0]) if len(enough) else None)


def _errors_drawn(found: Recalibrated) -> Floats:
    """Numbers of wrong labels in a corrected data set, [draws], as likely as the answers make them."""
    cells, judged = found.cells, found.judged
    agreement = np.clip(judged.confidence / np.maximum(judged.probability, 1e-12), 0, 1)
    replaced = found.open & found.relabel
    change = np.where(replaced, -agreement, 1.0) * found.open
    slope = np.bincount(cells.of, weights=change, minlength=len(cells.size))
    chance = np.random.default_rng(2).normal(size=found.shares.shape[1])
    spread = np.sqrt(float((found.error * (1 - found.error)).sum()))
    drawn: Floats = replaced.sum() + slope @ found.shares + spread * chance
    return drawn


def next_to_ask(found: Recalibrated, *, count: int = 50, seed: int = 0) -> Ints:
    """Rows of the samples to ask about next, at most `count`: the same for the same answers and seed.

    Three kinds take turns. Most turns go to the labels that are most likely wrong in a corrected data set: those near
    the threshold between two labels, and those that look wrong without a sure suggestion. In the first 40 answers every
    second turn goes to a sample of the cell that says most about the noise rate, taken at random from it. One in ten,
    and one in twenty after 100 answers, is taken at random from the labels that the judge keeps: whatever the judge
    believes, the rest is estimated from a sample of it too.
    """
    waiting = found.open.copy()
    waiting[found.answers.skipped] = False
    rows = np.flatnonzero(waiting)
    chance = np.random.default_rng(seed).random(len(waiting))
    begun = len(found.answers.rows) + len(found.answers.skipped)
    turns = [_turn(number) for number in range(begun, begun + min(count, len(rows)))]
    kept = rows[~found.judged.relabel[rows] & (found.error[rows] < 0.5)]
    queues = {
        DOUBT: rows[np.lexsort((chance[rows], -found.error[rows]))].tolist()[::-1],
        CHANCE: kept[np.argsort(chance[kept])].tolist()[::-1],
        TEACH: _teaching(found, rows, chance, turns.count(TEACH))[::-1],
    }
    asked = dict[int, None]()
    for turn in turns:
        queue = queues[turn] or queues[DOUBT]
        while queue and queue[-1] in asked:
            queue.pop()
        queue = queue or queues[DOUBT]
        while queue and queue[-1] in asked:
            queue.pop()
        asked[queue.pop()] = None
    return np.fromiter(asked, dtype=np.int64, count=len(asked))


def _turn(number: int) -> str:
    """The kind of sample that is asked about as this one, counted from 0."""
    pattern = next(pattern for until, pattern in TURNS if number < until or not until)
    return pattern[number % len(pattern)]


def _teaching(found: Recalibrated, rows: Ints, chance: Floats, count: int) -> list[int]:
    """Rows whose answers make the number of wrong labels surer, each at random from its cell.

    What one more answer does to the standard deviation follows from the normal beliefs of the model, which are updated
    after each choice as if it had been answered. It is divided by the answers about the class: a judge is mostly off by
    classes, and the model is not to be believed about one that few have looked at.
    """
    cells = found.cells
    fit = found.fits[int(np.flatnonzero(found.weights >= BELIEVED)[-1])]
    order = rows[np.argsort(chance[rows])]
    members: dict[int, list[int]] = {}
    for row in order[::-1].tolist():
        members.setdefault(int(cells.of[row]), []).append(row)
    size = np.bincount(cells.of[rows], minlength=len(cells.size)).astype(np.float64)
    probability = logistic(fit.mean / fit.damping)
    information = probability * (1 - probability)
    effect = size * information / fit.damping
    covariance, own = fit.covariance, fit.own + fit.class_variance * fit.apart
    heard = 1 + np.bincount(found.judged.given[found.answers.rows], minlength=int(cells.given.max()) + 1)
    chosen: list[int] = []
    for _ in range(min(count, len(rows))):
        reach = fit.loads @ covariance
        with_total = reach @ (fit.loads.T @ effect) + own * effect
        variance = np.einsum("ij,ij->i", reach, fit.loads) + own
        gain = np.sqrt(information / (1 + information * variance)) * np.abs(with_total) / heard[cells.given]
        best = int(np.where(size > 0, gain, -1.0).argmax())
        chosen.append(members[best].pop())
        size[best] -= 1
        heard[cells.given[best]] += 1
        scale = information[best] / (1 + information[best] * variance[best])
        covariance = covariance - scale * np.outer(reach[best], reach[best])
        own = own.copy()
        own[best] /= 1 + information[best] * own[best]
    return chosen


def _monotone_cells(fit: Fit, cells: Cells) -> Floats:
    """The log-odds of the cells, made to rise from band to band within every class; cells are sorted so."""
    found = fit.mean.copy()
    starts = np.flatnonzero(np.r_[True, cells.given[1:] != cells.given[:-1]])
    for begin, end in zip(starts, [*starts[1:], len(found)], strict=True):
        if (np.diff(found[begin:end]) < 0).any():
            found[begin:end] = monotone(found[begin:end].tolist(), cells.size[begin:end].tolist())
    return found


def _interval(values: Floats) -> tuple[float, float, float]:
    """Lower end, median and upper end of what is drawn, the ends widened."""
    low, middle, high = np.quantile(values, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]).tolist()
    return middle - WIDER * (middle - low), middle, middle + WIDER * (high - middle)
