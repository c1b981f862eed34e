"""Errors that a user can act on. Imports nothing of ours, and nothing slow."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


class InputError(ValueError):
    """What the user gave cannot be used; the message is one sentence that they can act on."""


def choose(kind: str, name: str, known: Mapping[str, Entry]) -> Entry:
    """The entry called `name`, or an error that names the nearest valid one."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"unknown {kind} {name!r}; {hint}valid: {', '.join(sorted(known))}")
