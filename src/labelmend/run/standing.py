"""What holds of each sample after all decisions, and the label table with it: people over the machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InputError, visible

KEEP, RELABEL, OTHER, BAD, SKIP, UNDO = "keep", "relabel", "other", "bad", "skip", "undo"
WORDS = {
    KEEP: "the label is right as given",
    RELABEL: "another class is right",
    OTHER: "it is none of these classes",
    BAD: "a bad sample: unreadable, empty or ambiguous",
    SKIP: "cannot tell",
    UNDO: "takes back the last decision of the same reviewer on this sample",
}
"""The words of a decision, and what each says."""
LEFT_OUT = (OTHER, BAD)
"""Decisions after which a sample has no right label: it does not belong in a corrected data set."""


@dataclass(frozen=True)
class Decision:
    """One answer of one reviewer about one sample; `label` is the right class where the decision is `relabel`."""

    id: str
    decision: str
    label: str = ""
    reviewer: str = ""
    time: str = ""


@dataclass(frozen=True)
class Standing:
    """What holds of a sample now: the latest of its reviewers' opinions.

    `opinions` has the standing decision of each reviewer, the latest last; with `conflict`, they differ. A `skip` is no
    opinion: it holds only where nobody has one.
    """

    id: str
    decision: str
    label: str
    reviewer: str
    time: str
    conflict: bool
    opinions: tuple[Decision, ...]


class Standings:
    """What holds of each sample, kept up to date answer by answer."""

    def __init__(self, decisions: Iterable[Decision] = ()) -> None:
        self._said: dict[str, dict[str, list[tuple[int, Decision]]]] = {}
        self._count = 0
        for decision in decisions:
            self._hear(decision)

    def add(self, decision: Decision) -> Standing | None:
        """What holds of the sample after one more decision; None if nothing does."""
        self._hear(decision)
        return self.of(decision.id)

    def of(self, id: str) -> Standing | None:
        """What holds of a sample; None where nobody decided, or all was taken back."""
        latest = sorted(said[-1] for said in self._said.get(id, {}).values() if said)
        opinions = [decision for _, decision in latest if decision.decision != SKIP]
        if not latest:
            return None
        holds = opinions[-1] if opinions else latest[-1][1]
        conflict = len({(opinion.decision, opinion.label) for opinion in opinions}) > 1
        every = tuple(decision for _, decision in latest)
        return Standing(holds.id, holds.decision, holds.label, holds.reviewer, holds.time, conflict, every)

    def all(self) -> dict[str, Standing]:
        """What holds of every sample that somebody decided, in the order of its first decision."""
        found = ((id, self.of(id)) for id in self._said)
        return {id: holds for id, holds in found if holds is not None}

    def _hear(self, decision: Decision) -> None:
        self._count += 1
        said = self._said.setdefault(decision.id, {}).setdefault(decision.reviewer, [])
        if decision.decision != UNDO:
            said.append((self._count, decision))
        elif said:
            said.pop()


def standing(decisions: Iterable[Decision]) -> dict[str, Standing]:
    """What holds now of each sample that somebody decided, by its id.

    Of several decisions of one reviewer the last in the file holds; an `undo` takes it back, and the one before holds
    again. Where reviewers disagree, the latest holds and `conflict` is set.

    >>> ann = [Decision("a", "keep", "", "ann"), Decision("b", "bad", "", "ann"), Decision("b", "undo", "", "ann")]
    >>> holds = standing([*ann, Decision("a", "relabel", "dog", "bob")])
    >>> list(holds), holds["a"].label, holds["a"].conflict, len(holds["a"].opinions)
    (['a'], 'dog', True, 2)
    """
    return Standings(decisions).all()


def overlay(table: pa.Table, holds: Mapping[str, Standing]) -> pa.Table:
    """The label table with what people decided in place of what the machine found, and two columns more.

    `keep`: the label is right, P(wrong) is 0. `relabel`: the decided label is suggested, surely. `other` and `bad`: the
    label is wrong and no class is right, so the verdict is `look` and the confidence in the given label 0. `decided` is
    the word of the decision and `reviewer` who made it, empty where nobody did; a `skip` changes nothing else.
    """
    names = ("verdict", "suggested", "noisy_probability", "confidence")
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in names}
    ids, given = table["id"].to_pylist(), table["given"].to_pylist()
    decided, reviewer = [""] * len(ids), [""] * len(ids)
    place = {id: row for row, id in enumerate(ids)}
    for id, what in holds.items():
        if id not in place:
            raise InputError(
                f"there is no sample {visible(id)!r:.200} in this run; are these decisions of another run?"
            )
        row = place[id]
        decided[row], reviewer[row] = what.decision, what.reviewer
        if what.decision != SKIP:
            for name, value in zip(names, _verdict(what, given[row]), strict=True):
                columns[name][row] = value
    for name, values in columns.items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    for name, words in (("decided", decided), ("reviewer", reviewer)):
        table = table.append_column(name, pa.array(words, pa.string()))
    return table


def _verdict(what: Standing, given: str) -> tuple[str, str, float, float]:
    """Verdict, suggested label, P(wrong) and confidence."""
    if what.decision in LEFT_OUT:
        return "look", given, 1.0, 0.0
    if what.decision == KEEP or what.label == given:
        return KEEP, given, 0.0, 1.0
    return RELABEL, what.label, 1.0, 1.0
