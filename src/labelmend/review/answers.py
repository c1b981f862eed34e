"""What reviewers answered: written to decisions.csv before it is acknowledged, and kept as arrays beside the labels."""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, lookup, visible
from ..run.decisions import (
    KEEP,
    LONGEST_REVIEWER,
    RELABEL,
    SKIP,
    UNDO,
    WORDS,
    Decision,
    DecisionLog,
    Standing,
    Standings,
)
from ..run.directory import RunDirectory
from .labels import Ints, JudgedLabels

MOST_AT_ONCE = 200
MOST_REVIEWERS = 500
PACED = 60
"""Answers of a reviewer that tell how fast they come."""
PAUSE = 120.0
"""Seconds after which a reviewer did something else."""
ANSWERS = tuple(word for word in WORDS if word != UNDO)
_CODES = {word: code for code, word in enumerate(ANSWERS, 1)}
Mask = NDArray[np.bool_]
Answer = tuple[int, str, int | None]
"""A row of the label table, the word of a decision, and the position of the class if it is `relabel`."""


@dataclass
class _Waiting:
    """Answers, by the ids of their samples, that are not on the disk yet."""

    answers: dict[str, Decision]
    written: bool = False
    failed: Exception | None = None


class Answers:
    """The answers of all reviewers so far, also of those who answer at another server or with another tool."""

    def __init__(self, run: RunDirectory, labels: JudgedLabels) -> None:
        self.labels = labels
        self._log = DecisionLog(run.decisions, ids=labels.row_of, classes=labels.class_names)
        self._lock = threading.Lock()
        self._waiting = deque[_Waiting]()
        self._last = datetime.fromtimestamp(0, UTC)
        self._forget()
        with self._lock:
            self._hear()

    def _forget(self) -> None:
        count = len(self.labels)
        self.heard = 0
        self._standings = Standings()
        self._code = np.zeros(count, dtype=np.int8)
        self._conflict = np.zeros(count, dtype=bool)
        self._wrong = np.zeros(count, dtype=bool)
        self._asked = defaultdict[str, Counter[int]](Counter)
        self._done = defaultdict[str, list[tuple[int, str]]](list)
        self._times = defaultdict[str, deque[float]](lambda: deque(maxlen=PACED))

    def decide(self, answers: Sequence[Answer], reviewer: str) -> None:
        """Write answers that belong together; when this returns, they are on the disk.

        What the reviewer already says is not written again, so that a page may repeat what was not acknowledged. All
        that arrives while the disk is busy is written together.
        """
        named = [(self.labels.ids[row], word, self._class(word, label)) for row, word, label in answers]
        self._check(reviewer)
        mine = _Waiting({id: Decision(id, word, name, reviewer) for id, word, name in named})
        self._waiting.append(mine)
        with self._lock:
            if not mine.written:
                self._write_waiting()
        if mine.failed is not None:
            raise mine.failed

    def _write_waiting(self) -> None:
        """Write what waits, in one piece; if that fails, it fails for all."""
        waiting, said = list[_Waiting](), dict[Decision, Decision]()
        while self._waiting:
            waiting.append(self._waiting.popleft())
            time = self._time()
            answers = waiting[-1].answers.values()
            said |= {each: replace(each, time=time) for each in answers if each not in said and not self._repeats(each)}
        failed: Exception | None = None
        try:
            self._log.append_all(said.values())
        except Exception as error:  # whatever it is, nobody who waits may be told that all is well
            failed = error
        with suppress(InputError, OSError):  # the file was edited so that it cannot be read: `refresh` says so
            self._hear()
        for each in waiting:
            each.written, each.failed = True, failed

    def undo(self, reviewer: str) -> list[int]:
        """Take back the last answer of a reviewer, all samples of it; gives their rows, none if there is nothing."""
        self._check(reviewer)
        with self._lock:
            self._write_waiting()
            self._hear()
            done = self._done[reviewer]
            rows = [row for row, time in done if time == done[-1][1]] if done else []
            time = self._time()
            self._log.append_all(Decision(self.labels.ids[row], UNDO, "", reviewer, time) for row in rows)
            self._hear()
        return rows

    def refresh(self) -> None:
        """Hear what others wrote; InputError if somebody edited the file so that it cannot be read."""
        with self._lock:
            self._hear()

    def standing(self, row: int) -> Standing | None:
        """What holds of a sample."""
        return self._standings.of(self.labels.ids[row])

    def verified(self) -> tuple[Ints, Mask, Ints]:
        """Rows that somebody decided, whether the given label of each is wrong, and rows that were skipped."""
        rows = np.flatnonzero(self.mask("decided", ""))
        return rows, self._wrong[rows], np.flatnonzero(self.mask("skipped", ""))

    def mask(self, shown: str, reviewer: str) -> Mask:
        """The samples of which this holds: undecided, mine (not decided by this reviewer), decided, and so on."""
        code = self._code
        if shown == "mine":
            found = np.ones(len(code), dtype=bool)
            found[list(self._asked.get(reviewer, ()))] = False
            return found
        masks: dict[str, Mask] = {
            "undecided": code == 0,
            "decided": (code > 0) & (code != _CODES[SKIP]),
            "skipped": code == _CODES[SKIP],
            "conflicts": self._conflict,
            "all": code >= 0,
        }
        return masks[shown]

    def progress(self, reviewer: str) -> dict[str, Any]:
        """How far the review is: counts, reviewers, and seconds that an answer of this reviewer takes."""
        flagged, code = self.labels.flagged, self._code
        return {
            "samples": len(code),
            "suspects": int(flagged.sum()),
            "suspects_decided": int((flagged & (code > 0)).sum()),
            "decided": int((code > 0).sum()),
            "skipped": int((code == _CODES[SKIP]).sum()),
            "conflicts": int(self._conflict.sum()),
            "reviewers": {name: len(rows) for name, rows in list(self._asked.items()) if rows},
            "mine": len(self._done.get(reviewer, ())),
            "pace": self._pace(reviewer),
        }

    def _hear(self) -> None:
        """Take in what was appended to the file since the last time, by whomever."""
        news, anew = self._log.news()
        if anew:
            self._forget()
        for decision in news:
            self._take(decision)

    def _take(self, decision: Decision) -> None:
        row, reviewer = self.labels.row_of[decision.id], decision.reviewer
        self.heard += 1
        holds = self._standings.add(decision)
        self._code[row] = 0 if holds is None else _CODES[holds.decision]
        self._conflict[row] = holds is not None and holds.conflict
        self._wrong[row] = holds is not None and self._is_wrong(row, holds)
        done, asked = self._done[reviewer], self._asked[reviewer]
        if decision.decision != UNDO:
            asked[row] += 1
            done.append((row, decision.time))
            self._times[reviewer].append(_seconds(decision.time))
            return
        place = next((at for at in range(len(done) - 1, -1, -1) if done[at][0] == row), None)
        if place is not None:
            done.pop(place)
            asked[row] -= 1
            if not asked[row]:
                del asked[row]

    def _is_wrong(self, row: int, holds: Standing) -> bool:
        """A label is wrong unless somebody says that it is right."""
        given = self.labels.class_names[self.labels.given[row]]
        return holds.decision != KEEP and not (holds.decision == RELABEL and holds.label == given)

    def _pace(self, reviewer: str) -> float | None:
        times = np.array(self._times.get(reviewer, ()))
        gaps = np.diff(times)
        gaps = gaps[(gaps >= 0) & (gaps < PAUSE)]
        return float(gaps.mean()) if len(gaps) >= 3 else None

    def _repeats(self, decision: Decision) -> bool:
        holds = self._standings.of(decision.id)
        said = [] if holds is None else [each for each in holds.opinions if each.reviewer == decision.reviewer]
        return any((each.decision, each.label) == (decision.decision, decision.label) for each in said)

    def _class(self, word: str, label: int | None) -> str:
        lookup("decision", word, dict.fromkeys(ANSWERS))
        if word != RELABEL:
            return ""
        if label is None or not 0 <= label < len(self.labels.class_names):
            raise InputError(f"the decision relabel takes a class from 0 to {len(self.labels.class_names) - 1}")
        return self.labels.class_names[label]

    def _check(self, reviewer: str) -> None:
        if not reviewer.strip() or len(reviewer) > LONGEST_REVIEWER or visible(reviewer) != reviewer:
            raise InputError(f"a reviewer has a name of one line and at most {LONGEST_REVIEWER} letters")
        if reviewer not in self._asked and len(self._asked) >= MOST_REVIEWERS:
            raise InputError(f"there are {MOST_REVIEWERS} reviewers already")

    def _time(self) -> str:
        """The time, in the words of `run.decisions.now`; later than that of the answer before, whose it must not be."""
        self._last = max(datetime.now(UTC), self._last + timedelta(milliseconds=1))
        return self._last.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(time: str) -> float:
    """A time of decisions.csv in seconds; an edited file may have anything there."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return 0.0
