"""What is in each column of a table, told by its content: numbers, categories, dates, texts, ids and what is no use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import lookup
from .cells import Cells, Readable
from .dates import DIGITS, Moments

NUMBER, BOOLEAN, CATEGORY, DATE, TEXT = "number", "boolean", "category", "date", "text"
ID, CONSTANT, EMPTY, DROPPED, UNUSABLE = "id", "constant", "empty", "dropped", "unusable"
USED = (NUMBER, BOOLEAN, CATEGORY, DATE, TEXT)
TOLERATED = 0.05
"""Share of the cells that may be of another type than the rest; they count as missing."""
FEW_VALUES = 50
"""Distinct values up to which words that repeat are categories, however long they are."""
FEWEST_FOR_IDS = 20
"""Rows from which on values that never repeat are ids."""
NEARLY_ALL = 0.9
EXPECTED_REPEATS = 10
"""Repeats that whole numbers of this range would have by chance; without any, they are numbers of rows or things."""
WORDS_OF_TEXT, WORDS_OF_LONG_TEXT, LONG = 4, 2, 25
LETTERS_WITHOUT_SPACES = 6
SPACELESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{2}"
ID_NAME = re.compile(r"(?:^|[ _.-])(?:ids?|uuid|guid|index|idx|key)$|[a-z]I[dD]$", re.IGNORECASE)
SHOWN_VALUES = 3
LONGEST_SHOWN = 24


@dataclass(frozen=True)
class Column:
    """What a column of a table was taken as, and why; `details` are what reading it needs, as the form of dates."""

    name: str
    role: str
    reason: str
    details: Mapping[str, Any]

    @property
    def used(self) -> bool:
        """Whether it is learned from."""
        return self.role in USED

    def described(self) -> dict[str, Any]:
        """As plain values, for run.json."""
        return {"name": self.name, "role": self.role, "reason": self.reason}


@dataclass(frozen=True)
class ColumnWishes:
    """What the user says about columns; what is not named is told by its content. No `only` means all columns."""

    only: Sequence[str] = ()
    drop: Sequence[str] = ()
    category: Sequence[str] = ()
    text: Sequence[str] = ()

    def takes(self, name: str) -> bool:
        """Whether a column may be learned from."""
        return name not in self.drop and (not self.only or name in self.only)

    def check(self, names: Sequence[str], source: str) -> None:
        """Refuse names that no column has."""
        known = {name: name for name in names}
        for name in (*self.only, *self.drop, *self.category, *self.text):
            lookup(f"column of {source}", name, known)


def typed_column(name: str, cells: Cells, wishes: ColumnWishes) -> Column:
    """What a column is: as the user says, or by its content."""
    if not wishes.takes(name):
        return Column(name, DROPPED, "left out, as asked", {})
    if not cells.is_understood:
        return Column(name, UNUSABLE, f"left out: it holds {cells.type}, which cannot be learned from", {})
    if cells.missing == len(cells):
        return Column(name, EMPTY, "left out: no row has a value", {})
    if name in wishes.text:
        return _text(name, cells, "as asked")
    if name in wishes.category:
        return _category(name, cells, "as asked")
    return _by_content(name, cells, asked=name in wishes.only)


def _by_content(name: str, cells: Cells, *, asked: bool) -> Column:
    """The first that fits of constant, truth values, date, number or id, and what words may be."""
    if _is_constant(cells):
        return Column(name, CONSTANT, f"left out: every row has {_short(cells.texts[0].as_py())}", {})
    if cells.is_moment:
        return _date(name, cells, cells.moments())
    if cells.is_declared_category:
        return _category(name, cells, "")
    truths = cells.truths if _may_be_truths(cells) else None
    if truths is not None and truths.unreadable == 0 and _both(truths):
        return Column(name, BOOLEAN, _joined("yes or no", _gaps(cells)), {})
    numbers = None if cells.are_codes else cells.numbers
    if numbers is not None and _nearly_all(cells, numbers.unreadable):
        return _numeric(name, cells, numbers, asked=asked)
    moments = cells.moments()
    if moments is not None and _nearly_all(cells, moments.unreadable):
        return _date(name, cells, moments)
    return _worded(name, cells, asked=asked)


def _numeric(name: str, cells: Cells, numbers: Readable, *, asked: bool) -> Column:
    values = numbers.values[~np.isnan(numbers.values)]
    if not len(values) or values.min() == values.max():
        kept = cells.texts.drop_null()
        if cells.missing == 0 or not len(values):
            return Column(name, CONSTANT, f"left out: every row has {_short(kept[0].as_py())}", {})
    whole = bool((values == np.floor(values)).all())
    if whole and len(values) and values.min() >= 19_000_101 and values.max() <= 21_001_231:
        moments = cells.moments(DIGITS)
        if moments is not None and moments.unreadable == 0:
            return _date(name, cells, moments)
    if whole and not asked:
        repeats = len(values) - len(np.unique(values))
        expected = len(values) ** 2 / (2 * (values.max() - values.min() + 1))
        named = ID_NAME.search(name) is not None
        if repeats == 0 and len(values) >= FEWEST_FOR_IDS and (named or expected >= EXPECTED_REPEATS):
            return Column(name, ID, "left out: whole numbers that never repeat, as numbers of rows or things do", {})
        if named and repeats and cells.is_text:
            return _category(name, cells, "numbers that are named like ids")
    said = f"numbers from {values.min():.4g} to {values.max():.4g}"
    return Column(name, NUMBER, _joined(said, _gaps(cells), _odd(numbers, "numbers")), {})


def _worded(name: str, cells: Cells, *, asked: bool) -> Column:
    """Words: few values are categories, many that read like sentences text, and many that never repeat ids."""
    distinct, present = len(cells.distinct.texts), len(cells) - cells.missing
    if distinct <= FEW_VALUES and 2 * distinct <= present:
        return _category(name, cells, "")
    if _reads_like_text(cells.distinct.texts):
        return _text(name, cells, "")
    if not asked and present >= FEWEST_FOR_IDS and distinct >= NEARLY_ALL * present:
        return Column(name, ID, f"left out: {distinct:,} different values in {present:,} rows, as ids have", {})
    return _category(name, cells, "")


def _category(name: str, cells: Cells, why: str) -> Column:
    distinct = cells.distinct
    order = np.argsort(-distinct.counts, kind="stable")[:SHOWN_VALUES]
    shown = ", ".join(_short(distinct.texts[int(i)].as_py()) for i in order)
    count = len(distinct.texts)
    said = f"{count:,} value{'s' * (count != 1)}: {shown}{', ...' if count > SHOWN_VALUES else ''}"
    return Column(name, CATEGORY, _joined(said, _gaps(cells), why), {})


def _text(name: str, cells: Cells, why: str) -> Column:
    words = pc.mean(pc.add(pc.count_substring_regex(cells.distinct.texts, r"\s+"), 1)).as_py()
    return Column(name, TEXT, _joined(f"texts of {words:.0f} words on average", _gaps(cells), why), {})


def _date(name: str, cells: Cells, moments: Moments | None) -> Column:
    assert moments is not None
    days = moments.seconds[np.isfinite(moments.seconds)] / 86_400
    first, last = (str(np.datetime64(int(np.floor(day)), "D")) for day in (days.min(), days.max()))
    like = "" if moments.form == "stored" else f"written like {moments.form}"
    odd = _odd(Readable(moments.seconds, moments.unreadable, moments.examples), "dates")
    said = _joined(f"dates from {first} to {last}", like, _gaps(cells), odd)
    return Column(name, DATE, said, {"form": moments.form})


def _is_constant(cells: Cells) -> bool:
    """Whether every cell is there and the same; one value beside missing ones says which are missing."""
    if cells.missing:
        return False
    plain = cells.plain_numbers
    if plain is not None and not cells.are_codes:
        return bool(plain.min() == plain.max())
    return bool(pc.count_distinct(cells.texts).as_py() == 1)


def _may_be_truths(cells: Cells) -> bool:
    return cells.plain_numbers is not None or not cells.is_text or len(cells.distinct.texts) <= FEW_VALUES


def _both(truths: Readable) -> bool:
    return bool((truths.values == 1).any() and (truths.values == 0).any())


def _nearly_all(cells: Cells, unreadable: int) -> bool:
    return unreadable <= TOLERATED * (len(cells) - cells.missing)


def _reads_like_text(texts: pa.Array) -> bool:
    """Whether values are sentences: several words, or long, or of a script that is written without spaces."""
    words = pc.mean(pc.add(pc.count_substring_regex(texts, r"\s+"), 1)).as_py() or 0
    letters = pc.mean(pc.utf8_length(texts)).as_py() or 0
    spaceless = pc.mean(pc.match_substring_regex(texts, SPACELESS).cast(pa.int8())).as_py() or 0
    if spaceless > 0.5 and letters >= LETTERS_WITHOUT_SPACES:
        return True
    return bool(words >= WORDS_OF_TEXT or (words >= WORDS_OF_LONG_TEXT and letters >= LONG))


def _gaps(cells: Cells) -> str:
    return f"{cells.missing:,} missing" if cells.missing else ""


def _odd(read: Readable, what: str) -> str:
    if not read.unreadable:
        return ""
    shown = ", ".join(map(_short, read.examples))
    return f"{read.unreadable:,} no {what} and so counted as missing ({shown})"


def _short(text: str | None) -> str:
    value = str(text)
    return repr(value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}...")


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
