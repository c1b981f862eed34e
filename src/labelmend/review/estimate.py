"""How many labels are wrong by what people verified, what is left, and whom to ask next; brought up to date beside."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..detect.table import VERDICTS
from ..detect.verified import Answers as Verified
from ..detect.verified import Judged, Recalibrated, expected_left, next_to_ask, recalibrate
from ..run.decisions import RELABEL
from .answers import Answers
from .labels import Ints, JudgedLabels

EVERY = 5
"""Answers after which the judge is recalibrated, but not before the pause is over."""
PAUSE, SHARE, LONGEST_PAUSE = 2.0, 0.01, 30.0
"""Seconds between two recalibrations at least, and the share of the time that they may take, so that answers are not
slowed down; but no more seconds than this."""
ASKED = 50
"""Samples whose order is by what they teach; the others follow by suspicion."""
MOST_WISHES = 50


@dataclass(frozen=True)
class Told:
    """What follows from the answers that were known at a time."""

    heard: int
    found: Recalibrated
    teaching: Ints
    wishes: dict[float, dict[str, Any]] = field(default_factory=dict)


class Estimate:
    """The judge, recalibrated by answers; the first time at once, and then in a thread of its own."""

    def __init__(self, labels: JudgedLabels, answers: Answers, clock: Callable[[], float]) -> None:
        self.labels = labels
        self.answers = answers
        relabel = labels.verdict == VERDICTS.index(RELABEL)
        self._judged = Judged(labels.probability, labels.given, relabel, labels.confidence)
        self._clock = clock
        self._due = 0.0
        self._busy = threading.Lock()
        self._told: Told | None = None

    def heard(self) -> None:
        """There may be new answers; enough of them are taken into account soon, in a thread of its own."""
        told = self._told
        if told is None or abs(self.answers.heard - told.heard) < EVERY or self._clock() < self._due:
            return
        if self._busy.acquire(blocking=False):
            threading.Thread(target=self._bring_up_to_date, name="estimate", daemon=True).start()

    def teaching(self) -> Ints:
        """Rows of the samples that teach most, the first one most."""
        return self._now().teaching

    def told(self, wish: float) -> dict[str, Any]:
        """The noise rate with its interval, what would still be wrong, and the answers until only the wish is."""
        told = self._now()
        if wish not in told.wishes:
            if len(told.wishes) >= MOST_WISHES:
                told.wishes.clear()
            told.wishes[wish] = self._said(told.found, wish)
        return told.wishes[wish]

    def _said(self, found: Recalibrated, wish: float) -> dict[str, Any]:
        left, rate, count = expected_left(found, wish=wish), found.noise, len(self.labels)
        return {
            "rate": rate.share,
            "interval": [rate.low, rate.high],
            "answers": len(found.answers.rows),
            "rest": left.expected / count,
            "rest_interval": [left.low / count, min(1.0, left.high / count)],
            "until": left.answers,
        }

    def _bring_up_to_date(self) -> None:
        begun = self._clock()
        try:
            self._told = self._computed()
            taken = self._clock() - begun
            self._due = self._clock() + min(max(PAUSE, taken / SHARE), LONGEST_PAUSE)
        finally:
            self._busy.release()

    def _now(self) -> Told:
        if self._told is None:
            with self._busy:
                self._told = self._told or self._computed()
        return self._told

    def _computed(self) -> Told:
        """What follows from the answers by now, also for the wishes of pages: nobody who answers waits for that."""
        heard, wishes = self.answers.heard, [] if self._told is None else list(self._told.wishes)
        found = recalibrate(self._judged, Verified(*self.answers.verified()))
        said = {wish: self._said(found, wish) for wish in wishes}
        return Told(heard, found, next_to_ask(found, count=ASKED).astype(np.int64), said)
