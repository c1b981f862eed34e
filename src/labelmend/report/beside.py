"""What a report shows beside a suspect: the text with its loud words, unusual values, and the samples most like it.

Evidence may come from anywhere: places and rows that do not exist are passed over.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .picture import Picture, as_picture

MOST_COLUMNS = 12
LONGEST_CELL = 120
SNIPPET = 280
"""Characters of a text that stands beside a suspect."""
SIDE = 96
"""Largest side of a picture that stands beside a suspect, in pixels."""
MARGIN = 0.04
Part = tuple[str, bool]


@dataclass(frozen=True)
class Neighbour:
    """A sample that is like a suspect, as a person sees it; `cells` are its values."""

    id: str
    given: str
    picture: Picture | None
    text: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Bar:
    """A value of a suspect and where it lies: in percent of a line, with the middle 80 % of two classes on it."""

    name: str
    value: float
    at: float
    given: tuple[float, float]
    rival: tuple[float, float]
    given_range: tuple[float, float]
    rival_range: tuple[float, float]


@dataclass(frozen=True)
class WordBar:
    """A word of a suspect, and the shares of two classes that have it, in percent."""

    name: str
    word: str
    given: float
    rival: float


def text_parts(text: str | None, marks: Sequence[int] | None) -> list[Part]:
    """A text in parts, each with whether it is marked; marks are begin and end of each, one after the other.

    >>> text_parts("a good film", [2, 6])
    [('a ', False), ('good', True), (' film', False)]
    """
    if not text:
        return []
    parts, done = list[Part](), 0
    places = list(marks or ())
    for begin, end in zip(places[::2], places[1::2], strict=False):
        if done <= begin < end <= len(text):
            parts += [(text[done:begin], False), (text[begin:end], True)]
            done = end
    return [part for part in [*parts, (text[done:], False)] if part[0]]


def unusual_bars(unusual: Sequence[Mapping[str, Any]] | None, columns: Sequence[str]) -> list[Bar | WordBar]:
    """A bar for each number or word that is unusual for the given class."""
    found = list[Bar | WordBar]()
    for entry in unusual or ():
        column, value, word = (entry.get(key) for key in ("column", "value", "word"))
        given, rival = (tuple(sorted(entry.get(key) or ())) for key in ("given", "rival"))
        if column is None or not 0 <= column < len(columns) or not all(map(math.isfinite, (*given, *rival))):
            continue
        if word is not None and len(given) == len(rival) == 1:
            shares = [100 * min(max(share, 0.0), 1.0) for share in (*given, *rival)]
            found.append(WordBar(columns[column], str(word)[:LONGEST_CELL], *shares))
        elif value is not None and len(given) == len(rival) == 2 and math.isfinite(value):
            found.append(_bar(columns[column], value, given, rival))
    return found


def _bar(name: str, value: float, given: tuple[float, ...], rival: tuple[float, ...]) -> Bar:
    low, high = min(value, *given, *rival), max(value, *given, *rival)
    span = (high - low) or 1.0

    def place(number: float) -> float:
        return round(100 * (MARGIN + (1 - 2 * MARGIN) * (number - low) / span), 1)

    ranges = [(each[0], each[1]) for each in (given, rival)]
    places = [(place(each[0]), place(each[1])) for each in ranges]
    return Bar(name, value, place(value), places[0], places[1], ranges[0], ranges[1])


def neighbours_of(
    rows: Sequence[int] | None, known: Sequence[Mapping[str, Any]], *, columns: int = 0
) -> list[Neighbour]:
    """The samples in these rows of the known ones, if they have as many values."""
    found = []
    for row in rows or ():
        if 0 <= row < len(known) and len(cells_of(known[row])) == columns:
            shown = known[row]
            text = str(shown.get("text") or "")
            found.append(
                Neighbour(
                    str(shown.get("id")),
                    str(shown.get("given")),
                    as_picture(shown.get("picture"), side=SIDE),
                    text[:SNIPPET] + ("…" if len(text) > SNIPPET else ""),
                    cells_of(shown),
                )
            )
    return found


def cells_of(shown: Mapping[str, Any]) -> list[str]:
    """The values of a sample as they are written; none of a picture or a text."""
    if shown.get("cells") is not None:
        return [str(cell or "")[:LONGEST_CELL] for cell in shown["cells"]]
    return [f"{value:.4g}" for value in shown.get("features") or ()]


def compared_cells(
    cells: Sequence[str],
    like: Sequence[Neighbour],
    columns: Sequence[str],
    bars: Sequence[Bar | WordBar],
    *,
    most: int = MOST_COLUMNS,
) -> list[tuple[str, bool, list[str]]]:
    """Rows of a table: a column's name, whether it is unusual, and the cells of the suspect and of its neighbours.

    Unusual columns come first, as their bars do; at most `most` are shown.
    """
    unusual = [bar.name for bar in bars]
    place = {name: number for number, name in enumerate(unusual)}
    order = sorted(range(min(len(columns), len(cells))), key=lambda column: place.get(columns[column], len(place)))
    return [
        (columns[column], columns[column] in unusual, [cells[column], *(each.cells[column] for each in like)])
        for column in order[:most]
    ]
