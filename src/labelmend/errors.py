"""Errors that a user can act on. Imports nothing of ours, and nothing slow."""

import difflib
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TypeVar

Known = TypeVar("Known")
MOST_NAMED = 40
FEWEST_JUDGED = 20
"""Samples from which on labels must repeat to be classes."""
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence that they can act on."""


class InterruptedRunError(Exception):
    """The run was asked to stop; what was saved can be resumed."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class StorageError(Exception):
    """The disk or the data failed under a run; the message is one sentence."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; the last good checkpoint is kept, and --resume goes on from it")


def visible(text: str) -> str:
    """The text on one line, with what would steer a terminal written out: controls, bidi marks, broken UTF-8."""
    return STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def listed(names: Iterable[str]) -> str:
    """The first of the names, and how many there are beside them."""
    every = list(names)
    more = f" and {len(every) - MOST_NAMED:,} more" if len(every) > MOST_NAMED else ""
    return visible(", ".join(every[:MOST_NAMED])) + more


def refuse_unrepeated(name: str, counts: Iterable[int]) -> None:
    """Refuse labels, counted by their values, that are no classes: most samples have a label of their own."""
    times = list(counts)
    alone = times.count(1)
    if sum(times) >= FEWEST_JUDGED and 2 * alone > sum(times):
        raise InputError(
            f"{alone:,} of {sum(times):,} labels of {name} occur only once, so they are no classes; are they "
            "measurements or ids?"
        )


def lookup(kind: str, name: str, known: Mapping[str, Known]) -> Known:
    """The entry called `name`, or an error that names the nearest valid one."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name[:100], islice(known, 1000), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"unknown {kind} {name!r:.100}; {hint}valid: {listed(sorted(known))}")
