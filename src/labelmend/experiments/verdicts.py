"""What came of each claim: the effect over seeds, its interval, and holds, does not hold or too close to call."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t

from . import text
from .catalogue import CIFAR, Asked
from .claims import CLAIMS, Claim
from .protocol import Scale
from .tables import Results

HOLDS, FAILS, OPEN = "holds", "does not hold", "too close to call"
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
    """Header and body: what is claimed, on which data, what it wants, the effect and the verdict."""
    shown = [["claim", "in the paper", "data", "wanted", "effect", "verdict"]]
    for each in verdicts:
        digits, sign = each.claim.digits, "" if each.claim.second is None else "+"
        spread = "" if each.spread is None else f" ± {each.spread:.{digits}f}"
        effect = f"{each.mean:{sign}.{digits}f}{spread}"
        shown.append([each.claim.says, each.claim.where, each.source, each.claim.wanted, effect, each.verdict])
    return shown


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many of each verdict, in words."""
    counts = {word: sum(each.verdict == word for each in verdicts) for word in (HOLDS, FAILS, OPEN)}
    return f"{len(verdicts)} checks: " + ", ".join(f"{count} {word}" for word, count in counts.items())


def by_seed_csv(verdicts: Sequence[Verdict]) -> str:
    """One line a verdict, with the effect of every seed."""
    rows: list[list[object]] = [
        ["id", "source", "claim", "where", "wanted", "effect", "low", "high", "by_seed", "verdict"]
    ]
    for each in verdicts:
        claim, by_seed = each.claim, " ".join(f"{effect:.5g}" for effect in each.effects)
        measured = [each.mean, *each.interval, by_seed, each.verdict]
        rows.append([claim.id, each.source, claim.says, claim.where, claim.wanted, *measured])
    return text.csv_text(rows)
