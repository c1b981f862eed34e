"""What comes back from an annotation tool: answers, checked against the run and appended as decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ..errors import InputError, listed, visible
from ..run.decisions import KEEP, RELABEL, TIME, UNDO, Decision, DecisionLog, Standings, now
from ..run.directory import RunDirectory
from ..run.labels import read_label_table


@dataclass(frozen=True)
class Answer:
    """What a person said of a sample in a tool: the right class, or another word of a decision.

    `name` is the id of the sample, or the name of its file where the tool knows nothing else. `chosen` tells whether a
    person chose it, or nobody changed what labelmend wrote; None, where the file does not tell, is the second if it is
    the suggestion.
    """

    name: str
    label: str = ""
    decision: str = ""
    reviewer: str = ""
    time: str = ""
    chosen: bool | None = True


@dataclass(frozen=True)
class Imported:
    """What an import made of the answers of a file: new decisions, and how many it passed over, and why."""

    new: Sequence[Decision]
    standing: int
    untouched: int


def import_answers(
    run: RunDirectory,
    answers: Sequence[Answer],
    *,
    tool: str,
    reviewer: str | None = None,
    accept_suggestions: bool = False,
    id_of: Mapping[str, str] | None = None,
) -> Imported:
    """Append the answers to the decisions of the run, all or none; those that already stand are not added again.

    `reviewer` is who answered, in place of what the file says; a file that says nothing means the `tool`. `id_of` has
    the ids of samples by the names that the tool has for them. An answer that is a suggestion nobody touched counts
    only with `accept_suggestions`.
    """
    log, given, suggested = DecisionLog.of(run), *_labels(run)
    found = [replace(each, name=each.name if id_of is None else id_of.get(each.name, each.name)) for each in answers]
    _check_known(found, given, log.classes or ())
    counted = [each for each in found if accept_suggestions or not _is_untouched(each, suggested)]
    said = [_decision(each, given[each.name], reviewer or each.reviewer or tool) for each in counted]
    new = _new(log.read(), said)
    log.append_all(new)
    return Imported(new, len(counted) - len(new), len(found) - len(counted))


def read_time(value: object) -> str:
    """A time of another program as decisions.csv has it; empty if it is none.

    >>> read_time("2026-03-01T10:00:00.123456+02:00")
    '2026-03-01T08:00:00.123Z'
    """
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else None
        if read is None:
            return ""
        zoned = read if read.tzinfo else read.replace(tzinfo=UTC)
        return zoned.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return ""


def _labels(run: RunDirectory) -> tuple[dict[str, str], dict[str, str]]:
    """Given and suggested labels by ids."""
    table = read_label_table(run)
    ids = table["id"].to_pylist()
    given, suggested = (dict(zip(ids, table[name].to_pylist(), strict=True)) for name in ("given", "suggested"))
    return given, suggested


def _check_known(answers: Iterable[Answer], ids: Mapping[str, str], classes: Sequence[str]) -> None:
    """Refuse samples and classes that the run does not know, with one sentence for all of them."""
    known = set(classes)
    strangers = dict.fromkeys(each.name for each in answers if each.name not in ids)
    labels = dict.fromkeys(each.label for each in answers if each.label and each.label not in known)
    if strangers:
        raise InputError(f"there is no sample {_first(strangers)} in this run; are these answers of another run?")
    if labels:
        raise InputError(f"the run has no class {_first(labels)}; its classes are {listed(classes)}")


def _first(names: Mapping[str, None]) -> str:
    more = f" (and none of {len(names) - 1:,} more)" if len(names) > 1 else ""
    return f"{visible(next(iter(names)))!r:.200}{more}"


def _is_untouched(answer: Answer, suggested: Mapping[str, str]) -> bool:
    return answer.chosen is False or (answer.chosen is None and answer.label == suggested[answer.name])


def _decision(answer: Answer, given: str, reviewer: str) -> Decision:
    """The answer as a decision: the given label is kept, another class is taken."""
    word = answer.decision or (KEEP if answer.label == given else RELABEL)
    time = answer.time if TIME.fullmatch(answer.time) else ""
    return Decision(answer.name, word, answer.label if word == RELABEL else "", reviewer, time)


def _new(before: Sequence[Decision], said: Iterable[Decision]) -> list[Decision]:
    """Those decisions that change what their reviewer says, with a time each.

    One that has its own time is not new if it is in the file already, or if its reviewer said something later.
    """
    standings, lines, time = Standings(before), set(before), now()
    found = []
    for decision in said:
        holds = standings.of(decision.id)
        own = [each for each in holds.opinions if each.reviewer == decision.reviewer] if holds else []
        same = bool(own) and (own[0].decision, own[0].label) == (decision.decision, decision.label)
        late = bool(own and decision.time) and own[0].time > decision.time
        if same or late or decision in lines or (decision.decision == UNDO and not own):
            continue
        found.append(decision if decision.time else replace(decision, time=time))
        standings.add(found[-1])
    return found
