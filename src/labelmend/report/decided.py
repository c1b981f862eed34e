"""What reviewers decided of the labels of a run, and what is left."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..run.decisions import SKIP, WORDS
from .read import Findings

MOST_CONFLICTS = 50


@dataclass(frozen=True)
class Decided:
    """How many samples reviewers decided: in all, by what they said and by reviewer; `left` are suspects that wait.

    `conflicts` are ids with who says what, of samples about which reviewers disagree.
    """

    samples: int
    words: Sequence[tuple[str, str, int]]
    reviewers: Sequence[tuple[str, int]]
    left: int
    conflicts: Sequence[tuple[str, str]]
    conflicts_total: int


def decided(findings: Findings) -> Decided | None:
    """What was decided; None if nobody decided anything."""
    if not findings.holds:
        return None
    every = findings.holds.values()
    words = Counter(each.decision for each in every)
    waiting = sum(
        (flagged and (holds := findings.holds.get(id)) is None) or (holds is not None and holds.decision == SKIP)
        for id, flagged in zip(findings.table["id"].to_pylist(), findings.flagged.tolist(), strict=True)
    )
    split = [each for each in every if each.conflict]
    said = [
        (each.id, "; ".join(f"{one.reviewer or 'somebody'}: {one.label or one.decision}" for one in each.opinions))
        for each in split[:MOST_CONFLICTS]
    ]
    return Decided(
        samples=sum(words.values()) - words[SKIP],
        words=[(word, meaning, words[word]) for word, meaning in WORDS.items() if words[word]],
        reviewers=Counter(each.reviewer for each in every).most_common(),
        left=waiting,
        conflicts=said,
        conflicts_total=len(split),
    )
