"""What is wrong with the data, found before the first epoch and named by path or row."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import InputError, visible

SHOWN = 20
LONGEST_NAME = 200
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
BROKEN = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where."""

    location: str
    what: str

    def __str__(self) -> str:
        return visible(f"{self.location}: {self.what}")


@dataclass
class Preflight:
    """Problems, which stop a run unless they may be skipped, and notes, which are only worth knowing."""

    checked: int = 0
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    skipped: int = 0

    def to_dict(self) -> dict[str, object]:
        """As plain values, for preflight.json."""
        return {
            "checked": self.checked,
            "skipped": self.skipped,
            "problems": [{"place": p.location, "what": p.what} for p in self.problems],
            "notes": [{"place": n.location, "what": n.what} for n in self.notes],
        }


class PreflightError(InputError):
    """The data has problems; the message lists the first of them."""

    def __init__(self, name: str, preflight: Preflight) -> None:
        found = preflight.problems
        lines = [f"{name} has {len(found):,} unusable samples; mend them or go on without them with --skip-bad"]
        lines += [f"  {problem}" for problem in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(f"  and {len(found) - SHOWN:,} more")
        super().__init__("\n".join(lines))
        self.preflight = preflight


def clean_label(value: object) -> str:
    """A label as the name of its class: text trimmed and in Unicode's composed form, whole floats as integers.

    Every distinct name is a class of its own, so that `01` and `1` stay apart. Raises ValueError with the reason
    where there is no usable name.
    """
    if value is None or value != value:
        raise ValueError("no label")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("an infinite label")
        if value.is_integer():
            return str(int(value))
    name = unicodedata.normalize("NFC", str(value)).strip()
    if not name:
        raise ValueError("an empty label")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a label of {len(name):,} characters; at most {LONGEST_NAME} are taken")
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in name):
        raise ValueError(f"a label with control or formatting characters: {ascii(name)[:60]}")
    return name


def class_order(names: Iterable[str]) -> list[str]:
    """Class names sorted, numbers by value."""
    found = set(names)
    numbers = all(NUMBER.fullmatch(name) for name in found)
    return sorted(found, key=lambda name: (float(name) if numbers else 0, name))


def check_ids(ids: Sequence[str], locations: Sequence[str]) -> list[Problem]:
    """Ids that more than one sample has."""
    counts = Counter(ids)
    pairs = zip(locations, ids, strict=True)
    return [Problem(location, f"id {id!r} is used {counts[id]} times") for location, id in pairs if counts[id] > 1]


def check_names(ids: Sequence[str], locations: Sequence[str]) -> list[Problem]:
    """Ids that no file of ours could hold, such as names of files in another encoding."""
    pairs = [pair for pair in zip(locations, ids, strict=True) if not pair[1].isascii()]
    return [Problem(location, "a name that is not valid UTF-8") for location, id in pairs if BROKEN.search(id)]


def check_spelling(class_names: Sequence[str]) -> list[Problem]:
    """Classes whose names differ only by case or by spaces inside them."""
    alike: dict[str, list[str]] = {}
    for name in class_names:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [
        Problem(f"classes {' and '.join(map(repr, names))}", "differ only by case or spaces; are they one class?")
        for names in alike.values()
        if len(names) > 1
    ]


def check_classes(labels: Sequence[str]) -> list[Problem]:
    """Classes with a single sample."""
    return [Problem(f"class {name}", "has one sample") for name, count in Counter(labels).items() if count == 1]
