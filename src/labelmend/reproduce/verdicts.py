"""What came of each claim: the effect over seeds, its interval, and holds, does not hold or too close to call."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t

from .catalogue import CIFAR, Asked
from .claims import CLAIMS, Claim
from .protocol import Scale
from .tables import Results
from .text import csv_text, short

HOLDS, FAILS, OPEN = "holds", "does not hold", "too close to call"
MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}
CONFIDENCE = 0.9
"""Of the interval over seeds: a claim is decided where all of it lies on one side of a bound."""


@dataclass(frozen=True)
class Verdict:
    """A claim on one data set, with the effect for each seed."""

    claim: Claim
    source: str
    effects: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The effect."""
        return statistics.mean(self.effects)

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds; a single one has none."""
        return statistics.stdev(self.effects) if len(self.effects) > 1 else None

    @property
    def effect(self) -> str:
        """Mean and spread as text, with a sign if it is a difference."""
        digits, sign = self.claim.digits, "" if self.claim.second is None else "+"
        spread = "" if self.spread is None else f" ± {self.spread:.{digits}f}"
        return f"{round(self.mean, digits) + 0.0:{sign}.{digits}f}{spread}"

    @property
    def interval(self) -> tuple[float, float]:
        """Where the effect lies with a confidence of 90 % (Student's t); anywhere, for all that one seed says."""
        if self.spread is None:
            return -math.inf, math.inf
        count = len(self.effects)
        half = float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * self.spread / math.sqrt(count)
        return self.mean - half, self.mean + half

    @property
    def verdict(self) -> str:
        """Holds if the whole interval lies within the bounds, does not if none of it does."""
        low, high = self.interval
        if self.claim.least <= low and high <= self.claim.most:
            return HOLDS
        return FAILS if high < self.claim.least or low > self.claim.most else OPEN


def judge_claims(scale: Scale, asked: Asked, results: Results) -> list[Verdict]:
    """A verdict on every claim, for every data set on which its runs were asked for and did not diverge."""
    verdicts = []
    for claim in CLAIMS:
        for data in CIFAR:
            runs = claim.planned(scale, asked, data)
            by_seed = [[results[run.key] for run in runs if run.config.seed == seed] for seed in range(asked.seeds)]
            effects = [claim.effect(found) for found in by_seed if found]
            known = tuple(effect for effect in effects if effect is not None)
            if known:
                verdicts.append(Verdict(claim, scale.stages[data].source, known))
    return verdicts


def lines(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Header and body: what is claimed, where, what it wants, and for each data set the mark and the effect."""
    sources = list(dict.fromkeys(each.source for each in verdicts))
    shown: dict[str, list[str]] = {}
    for each in verdicts:
        claim = each.claim
        row = shown.setdefault(claim.id, [claim.says, claim.where, claim.wanted, *("" for _ in sources)])
        row[3 + sources.index(each.source)] = f"{MARKS[each.verdict]} {each.effect}"
    return [["claim", "in the paper", "wanted", *sources], *shown.values()]


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many of each verdict, and what the marks mean."""
    hold, fail, near = (sum(each.verdict == word for each in verdicts) for word in MARKS)
    words = f"{hold} hold (✓), {fail} do not hold (✗) and {near} are too close to call (?)"
    return f"Of {len(verdicts)} checks, {words}"


def by_seed_csv(verdicts: Sequence[Verdict]) -> str:
    """One line a verdict, with the effect of every seed."""
    rows: list[list[object]] = [
        ["id", "source", "claim", "where", "wanted", "effect", "low", "high", "by_seed", "verdict"]
    ]
    for each in verdicts:
        claim, by_seed = each.claim, " ".join(map(short, each.effects))
        measured = [short(each.mean), *map(short, each.interval), by_seed, each.verdict]
        rows.append([claim.id, each.source, claim.says, claim.where, claim.wanted, *measured])
    return csv_text(rows)
