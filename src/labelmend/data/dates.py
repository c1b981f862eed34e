"""Dates and times in the forms that people write them, read all at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

CLOCK = (
    r"(?:[T ,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[AaPp][Mm])?(?:Z|\s*UTC|[+-]\d{2}:?\d{2})?)?"
)
"""A time behind a date; offsets from UTC are not added, so that a weekday is that of the place."""
YEAR, MONTH, DAY = r"(?P<year>\d{4})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
WORD = r"(?P<word>(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)\.?"
FORMS = {
    "2024-03-31": f"^{YEAR}-{MONTH}-{DAY}{CLOCK}$",
    "2024/03/31": f"^{YEAR}[/.]{MONTH}[/.]{DAY}{CLOCK}$",
    "20240331": r"^(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])$",
    "03/31/2024": f"^{MONTH}/{DAY}/{YEAR}{CLOCK}$",
    "31/03/2024": f"^{DAY}/{MONTH}/{YEAR}{CLOCK}$",
    "31.03.2024": f"^{DAY}[.-]{MONTH}[.-]{YEAR}{CLOCK}$",
    "03-31-2024": f"^{MONTH}-{DAY}-{YEAR}{CLOCK}$",
    "31.03.24": r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<short>\d{2})" + CLOCK + "$",
    "31 Mar 2024": rf"^{DAY}(?:st|nd|rd|th)?[ .-]*{WORD}[ ,-]*{YEAR}{CLOCK}$",
    "Mar 31, 2024": rf"^{WORD}[ -]*{DAY}(?:st|nd|rd|th)?,?[ -]*{YEAR}{CLOCK}$",
    "2024-03": f"^{YEAR}-(?P<month>0[1-9]|1[0-2])$",
}
"""Regular expressions of the known forms by an example of each; where two fit all cells, the earlier one is taken."""
DIGITS = "20240331"
"""The form that is a number too."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FEWEST = 0.95
"""Share of the distinct texts that must be dates for a form to be that of the column."""
LOOKED_AT = 200
"""Texts that decide quickly that a column has no dates."""
EARLIEST, LATEST = 1, 9999


@dataclass(frozen=True)
class Moments:
    """Seconds since 1970, NaN where there is no date; how many cells are none, and examples of them."""

    form: str
    seconds: NDArray[np.float64]
    unreadable: int = 0
    examples: tuple[str, ...] = ()

    @property
    def parts(self) -> dict[str, NDArray[np.float64]]:
        """Year, month, weekday (Monday is 0), days since 1970 and hour, NaN where there is no date."""
        known = np.isfinite(self.seconds)
        whole = np.where(known, self.seconds, 0).astype("int64")
        days = np.floor_divide(whole, 86_400)
        date = days.astype("datetime64[D]")
        months = date.astype("datetime64[M]").astype("int64")
        found = {
            "year": np.floor_divide(months, 12) + 1970,
            "month": np.mod(months, 12) + 1,
            "weekday": np.mod(days + 3, 7),
            "days": days,
            "hour": np.mod(whole, 86_400) / 3600,
        }
        return {name: np.where(known, values, np.nan) for name, values in found.items()}


def read_moments(texts: pa.Array, form: str | None = None) -> Moments | None:
    """Distinct texts as dates in this form, or in the one that fits most of them; None if no form fits nearly all."""
    if not len(texts):
        return Moments(form or "", np.empty(0))
    if form is not None:
        return Moments(form, _seconds(texts, form)) if form in FORMS else None
    some = texts.slice(0, LOOKED_AT)
    likely = [name for name in FORMS if _fit(_seconds(some, name)) >= FEWEST]
    read = {name: _seconds(texts, name) for name in likely}
    best = max(read, key=lambda name: _fit(read[name]), default=None)
    if best is None or _fit(read[best]) < FEWEST:
        return None
    return Moments(best, read[best])


def _fit(seconds: NDArray[np.float64]) -> float:
    return float(np.isfinite(seconds).mean())


def _seconds(texts: pa.Array, form: str) -> NDArray[np.float64]:
    """Seconds since 1970 of texts in one form; NaN where a text has another, or names no day."""
    groups = pc.extract_regex(texts, pattern=FORMS[form])
    known = np.asarray(groups.is_valid())
    names = [field.name for field in groups.type]

    def part(name: str, default: int) -> NDArray[np.int64]:
        if name not in names:
            return np.full(len(texts), default)
        digits = groups.field(name)
        digits = pc.if_else(pc.equal(digits, ""), str(default), digits).fill_null(str(default))
        return np.asarray(digits.cast(pa.int64()))

    year = part("year", 2000)
    if "short" in names:
        short = part("short", 0)
        year = np.where(short < 70, 2000, 1900) + short
    month, day = part("month", 1), part("day", 1)
    if "word" in names:
        word = pc.utf8_lower(pc.utf8_slice_codeunits(groups.field("word"), 0, 3))
        month = np.asarray(pc.index_in(word, value_set=pa.array(MONTHS)).fill_null(0), dtype=np.int64) + 1
    hour, minute, second = part("hour", 0), part("minute", 0), part("second", 0)
    if "half" in names:
        half = np.asarray(pc.utf8_lower(groups.field("half")).fill_null(""), dtype=object)
        hour = np.where(half == "pm", hour % 12 + 12, np.where(half == "am", hour % 12, hour))
    valid = known & (year >= EARLIEST) & (year <= LATEST) & (month >= 1) & (month <= 12) & (day >= 1)
    valid &= (hour < 24) & (minute < 60) & (second < 61)
    start = ((np.where(valid, year, 1970) - 1970) * 12 + np.where(valid, month, 1) - 1).astype("datetime64[M]")
    length = ((start + 1).astype("datetime64[D]") - start.astype("datetime64[D]")).astype("int64")
    valid &= day <= length
    days = start.astype("datetime64[D]").astype("int64") + day - 1
    return np.where(valid, days * 86_400.0 + hour * 3600 + minute * 60 + second, np.nan)
