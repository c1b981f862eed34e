"""What the paper says of its methods: the runs that decide each statement, the effect over seeds, and the verdict."""

import csv
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from scipy.stats import t

from .catalogue import CIFAR, TABLES, Asked, Experiment, Planned, planned
from .protocol import Scale
from .runs import Result
from .tables import Results, csv_text, short

HOLDS, FAILS, OPEN = "holds", "does not hold", "too close to call"
MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?"}
CONFIDENCE = 0.9
"""Of the interval over seeds: a claim is decided where all of it lies on one side of a bound."""
MEASURES: dict[str, Callable[[Result], float | None]] = {
    "last": lambda result: None if result.last is None else 100 * result.last,
    "dropped": lambda result: None if result.best is None or result.last is None else 100 * (result.best - result.last),
    "largest": lambda result: None if result.largest is None else 100 * result.largest,
    "auc": lambda result: result.auc,
}
"""Of a run, in percent but for the AUC: accuracy after the last epoch, how far that is under the best, the share of
test samples in the network's favourite class, and how well the noise model tells wrong labels from right ones."""


@dataclass(frozen=True)
class Needed:
    """A run that decides a claim."""

    row: str
    noise: int
    kind: str = "symmetric"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper: what is measured on a run, or how far it is above another run's, in which bounds."""

    id: str
    says: str
    where: str
    measure: str
    first: Needed
    second: Needed | None = None
    least: float = -math.inf
    most: float = math.inf

    def planned(self, scale: Scale, asked: Asked, data: str) -> list[Planned]:
        """Its runs on one data set: those of the first, seed by seed, and then those of the second."""
        needed = [need for need in (self.first, self.second) if need is not None]
        found = [planned(scale, asked, [need.row], [need.noise], data=[data], kind=need.kind) for need in needed]
        return [run for runs in found for run in runs] if all(found) else []

    def effect(self, results: list[Result]) -> float | None:
        """What is measured on the first run, less that on the second; None if a run diverged."""
        values = [value for result in results if (value := MEASURES[self.measure](result)) is not None]
        return values[0] - sum(values[1:]) if len(values) == len(results) else None

    @property
    def wanted(self) -> str:
        """What the effect must come to, in words."""
        if self.least == -self.most:
            return f"within ±{self.most:g}"
        if self.least == 0:
            return "above 0"
        return f"at least {self.least:g}" if math.isfinite(self.least) else f"at most {self.most:g}"


def _read_claims() -> tuple[Claim, ...]:
    text = files(__package__).joinpath("claims.csv").read_text(encoding="utf-8")
    claims = []
    for line in csv.DictReader(text.splitlines()):
        noise = int(line["noise"])
        second = Needed(line["second"], noise, line["second_kind"]) if line["second"] else None
        bounds = float(line["least"] or -math.inf), float(line["most"] or math.inf)
        described = line["id"], line["says"], line["where"], line["measure"]
        claims.append(Claim(*described, Needed(line["first"], noise), second, *bounds))
    return tuple(claims)


CLAIMS = _read_claims()


def shown_anyway(scale: Scale, asked: Asked) -> dict[str, int] | None:
    """Runs that tables of a costly scale show, by key with their seeds; None where claims have runs of their own."""
    if not scale.costly:
        return None
    return {run.key: run.config.seed for table in TABLES.values() for run in table.runs(scale, asked)}


def deciding(claim: Claim, scale: Scale, asked: Asked, data: str, shown: dict[str, int] | None) -> list[list[Planned]]:
    """The runs that decide a claim on one data set, for each seed, among those that are `shown_anyway`."""
    wide = asked if shown is None else replace(asked, seeds=1 + max(shown.values(), default=0))
    runs = [run for run in claim.planned(scale, wide, data) if shown is None or run.key in shown]
    needed = 1 if claim.second is None else 2
    by_seed = [[run for run in runs if run.config.seed == seed] for seed in sorted({run.config.seed for run in runs})]
    return [same for same in by_seed if len(same) == needed]


def claimed(scale: Scale, asked: Asked) -> list[Planned]:
    """Every run that some claim needs, each once."""
    shown = shown_anyway(scale, asked)
    every = [
        run for claim in CLAIMS for data in CIFAR for same in deciding(claim, scale, asked, data, shown) for run in same
    ]
    return list({run.key: run for run in every}.values())


EXPERIMENT = Experiment("claims", "What the paper says, checked", claimed)


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
        digits, sign = 3 if self.claim.measure == "auc" else 1, "" if self.claim.second is None else "+"
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

    @property
    def mark(self) -> str:
        """The verdict as a sign; in brackets what a single seed came to, which decides nothing."""
        if self.spread is not None:
            return MARKS[self.verdict]
        return f"({MARKS[HOLDS if self.claim.least <= self.mean <= self.claim.most else FAILS]})"


def judge_claims(scale: Scale, asked: Asked, results: Results) -> list[Verdict]:
    """A verdict on every claim, for every data set on which its runs were asked for, are made and did not diverge."""
    verdicts, shown = [], shown_anyway(scale, asked)
    for claim in CLAIMS:
        for data in CIFAR:
            by_seed = deciding(claim, scale, asked, data, shown)
            made = [same for same in by_seed if all(run.key in results for run in same)]
            effects = [claim.effect([results[run.key] for run in same]) for same in made]
            known = tuple(effect for effect in effects if effect is not None)
            if known:
                verdicts.append(Verdict(claim, scale.stages[data].source, known))
    return verdicts


def verdict_lines(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Header and body: what is claimed, where, what it wants, and for each data set the mark and the effect."""
    sources = list(dict.fromkeys(each.source for each in verdicts))
    shown: dict[str, list[str]] = {}
    for each in verdicts:
        claim = each.claim
        row = shown.setdefault(claim.id, [claim.says, claim.where, claim.wanted, *("" for _ in sources)])
        row[3 + sources.index(each.source)] = f"{each.mark} {each.effect}"
    return [["claim", "in the paper", "wanted", *sources], *shown.values()]


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many of each verdict, and what the marks mean."""
    several = [each for each in verdicts if each.spread is not None]
    hold, fail, near = (sum(each.verdict == word for each in several) for word in MARKS)
    words = f"{hold} hold (✓), {fail} do not hold (✗) and {near} are too close to call (?)"
    single = len(verdicts) - len(several)
    undecided = f"; {single} have one seed, which decides nothing (in brackets)" if single else ""
    return f"Of {len(verdicts)} checks, {words}{undecided}"


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
