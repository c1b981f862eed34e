"""Which samples come next: a filter and an order over the label table, without those that others have in hand."""

import math
import threading
import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..detect.table import VERDICTS
from ..errors import InputError, lookup
from .answers import Answers
from .labels import Ints, JudgedLabels

ORDERS = {
    "teaches": "what teaches most",
    "suspicious": "most suspicious first",
    "unsure": "least sure suggestions first",
    "data": "as in the data set",
}
SHOWN = {
    "undecided": "nobody decided yet",
    "mine": "not decided by me",
    "decided": "decided",
    "conflicts": "reviewers disagree",
    "skipped": "skipped",
    "all": "all",
}
"""Which samples are asked for, by what was decided of them."""
SUSPECTS, ANY = "suspects", "any"
"""In place of a verdict: samples whose label looks wrong, to which the order by what teaches adds some; or all."""
HELD = 90.0
"""Seconds for which samples that one page fetched are not given to another one."""
MOST_WITHOUT = 5_000
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Wish:
    """What a page asks for, checked."""

    order: str = "teaches"
    shown: str = "undecided"
    verdict: str = SUSPECTS
    given: int | None = None
    suggested: int | None = None
    least: float = 0.0
    most: float = 1.0

    @classmethod
    def read(cls, asked: Mapping[str, Any], classes: int) -> "Wish":
        """A wish as JSON has it; InputError for what is none."""
        known = {"order": [*ORDERS], "shown": [*SHOWN], "verdict": [SUSPECTS, ANY, *VERDICTS]}
        found: dict[str, Any] = {name: str(asked.get(name, getattr(cls, name))) for name in known}
        for name, words in known.items():
            lookup(name, found[name], dict.fromkeys(words))
        for name in ("given", "suggested"):
            found[name] = asked.get(name)
            if found[name] is not None and (type(found[name]) is not int or not 0 <= found[name] < classes):
                raise InputError(f"{name} must be a class from 0 to {classes - 1}, not {found[name]!r:.40}")
        for name in ("least", "most"):
            found[name] = asked.get(name, getattr(cls, name))
            if type(found[name]) not in (int, float) or not math.isfinite(found[name]):
                raise InputError(f"{name} must be a probability, not {found[name]!r:.40}")
        return cls(**found)


class Queue:
    """Samples in the order in which they are asked for; rows that one page has in hand are not given to another."""

    def __init__(
        self, labels: JudgedLabels, answers: Answers, teaching: Callable[[], Ints], clock: Callable[[], float]
    ) -> None:
        self.labels = labels
        self.answers = answers
        self._teaching = teaching
        self._clock = clock
        self._held = dict[int, tuple[str, float]]()
        self._lock = threading.Lock()
        unsure = np.where(labels.flagged, labels.confidence, np.inf)
        self._orders = {
            "suspicious": np.argsort(labels.rank, kind="stable"),
            "unsure": np.lexsort((labels.rank, unsure)),
            "data": np.arange(len(labels)),
        }

    def next(
        self, wish: Wish, *, count: int, reviewer: str, page: str, without: Container[int] = ()
    ) -> tuple[list[int], int]:
        """Rows that come next for this page, which are then in its hand, and how many fit the wish in all."""
        order = self._order(wish)
        fits = self.matching(wish, reviewer)
        rows = order[fits[order]]
        with self._lock:
            now = self._clock()
            self._held = {row: held for row, held in self._held.items() if held[1] > now}
            free = (row for row in rows.tolist() if row not in without)
            found = list[int]()
            waiting = list[int]()
            for row in free:
                taken = self._held.get(row, (page, 0.0))[0] != page
                (waiting if taken else found).append(row)
                if len(found) == count:
                    break
            found = (found + waiting)[:count]  # the last ones are given to everybody who still asks
            self._held |= dict.fromkeys(found, (page, now + HELD))
        return found, len(rows)

    def matching(self, wish: Wish, reviewer: str) -> Mask:
        """Which samples fit a wish."""
        labels, answers = self.labels, self.answers
        fits = self._wanted(wish) & (labels.probability >= wish.least) & (labels.probability <= wish.most)
        if wish.given is not None:
            fits &= labels.given == wish.given
        if wish.suggested is not None:
            fits &= labels.suggested == wish.suggested
        fits &= answers.mask(wish.shown, reviewer)
        return fits

    def _wanted(self, wish: Wish) -> Mask:
        """Which samples have the verdict that is asked for; where no label looks wrong, all of them are suspects."""
        labels = self.labels
        if wish.verdict == ANY or (wish.verdict == SUSPECTS and not labels.flagged.any()):
            return np.ones(len(labels), dtype=bool)
        if wish.verdict != SUSPECTS:
            return np.asarray(labels.verdict == VERDICTS.index(wish.verdict))
        wanted = labels.flagged.copy()
        if wish.shown != "undecided":
            wanted |= self.answers.mask("decided", "")
        if wish.order == "teaches":
            wanted[self._teaching()] = True
        return wanted

    def _order(self, wish: Wish) -> Ints:
        if wish.order != "teaches":
            return self._orders[wish.order]
        first = self._teaching()
        rest = self._orders["suspicious"]
        new = np.ones(len(rest), dtype=bool)
        new[first] = False
        return np.concatenate([first, rest[new[rest]]])


def steady_clock() -> float:
    """Seconds that only go on."""
    return time.monotonic()
