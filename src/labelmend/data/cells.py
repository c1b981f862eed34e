"""The cells of a column as text, numbers, truth values or distinct values, all at once and never cell by cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .dates import DIGITS, Moments, read_moments

MISSING = ("", "na", "n/a", "nan", "<na>", "#n/a", "null", "none", "nil", "missing", "?", "-", "--", ".", "#value!")
"""Texts, in lower case, that stand for no value."""
TRUE = ("true", "yes", "y", "t", "on")
FALSE = ("false", "no", "n", "f", "off")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?[iI]nf(inity)?$"
AROUND = r"^[$€£¥]\s*|\s*[%$€£¥]$"
"""Currency signs and percent signs, which every number of a column may have."""
GROUPS = r"^[+-]?\d{1,3}([ \x{a0}\x{202f}'’]\d{3})+([.,]\d+)?$"
COMMA_GROUPS = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"
POINT_GROUPS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"
CODE = r"^\s*0\d+\s*$"
EXAMPLES = 3
LONGEST_SHOWN = 2_000
TRIED = 1_000
"""Cells that tell quickly that a column has no numbers."""


@dataclass(frozen=True)
class Readable:
    """Values of a column, NaN where a cell is missing or cannot be read, and the distinct texts that cannot be."""

    values: NDArray[np.float64]
    unreadable: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Distinct:
    """The distinct texts of a column, how often each occurs, and for each cell which it is: -1 where it is missing."""

    texts: pa.Array
    counts: NDArray[np.int64]
    codes: NDArray[np.int64]

    def spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each cell the value of its text; NaN where the cell is missing."""
        return np.append(values, np.nan)[self.codes]


class Cells:
    """One column of a table; what is asked of it is computed once."""

    def __init__(self, column: pa.ChunkedArray | pa.Array, decimal: str = ".") -> None:
        chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        is_coded = pa.types.is_dictionary(chunked.type)
        self.is_declared_category = is_coded
        self.column = chunked.cast(chunked.type.value_type) if is_coded else chunked
        self.decimal = decimal

    def __len__(self) -> int:
        return len(self.column)

    @property
    def type(self) -> pa.DataType:
        """The type in Arrow's words."""
        return self.column.type

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts, whose meaning is yet to be found out."""
        return bool(pa.types.is_string(self.type) or pa.types.is_large_string(self.type) or _is_view(self.type))

    @property
    def is_number(self) -> bool:
        """Whether the cells are stored as numbers."""
        return bool(pa.types.is_integer(self.type) or pa.types.is_floating(self.type) or pa.types.is_decimal(self.type))

    @property
    def is_moment(self) -> bool:
        """Whether the cells are stored as dates or times."""
        return bool(pa.types.is_timestamp(self.type) or pa.types.is_date(self.type))

    @property
    def is_understood(self) -> bool:
        """Whether the cells are of a type that can be learned from at all."""
        return bool(
            self.is_text or self.is_number or self.is_moment or pa.types.is_boolean(self.type)
        ) or pa.types.is_null(self.type)

    @cached_property
    def texts(self) -> pa.ChunkedArray:
        """The cells as trimmed texts, null where they are missing; whole numbers are written without a point."""
        if self.is_number:
            values = self.stored_numbers
            whole = bool(np.all(np.isnan(values) | (values == np.floor(values))))
            plain = pa.array(values, from_pandas=True)
            return pa.chunked_array([(plain.cast(pa.int64(), safe=False) if whole else plain).cast(pa.string())])
        texts = pc.utf8_trim_whitespace(self.column.cast(pa.string()))
        missing = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(MISSING))
        return pc.if_else(missing, pa.scalar(None, pa.string()), texts)

    @cached_property
    def stored_numbers(self) -> NDArray[np.float64]:
        """Cells that are stored as numbers or truth values; NaN where they are missing or infinite."""
        values = self.column.cast(pa.int8()) if pa.types.is_boolean(self.type) else self.column
        found = np.array(values.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def plain_numbers(self) -> NDArray[np.float64] | None:
        """Texts as numbers if every one is written plainly, NaN where it is missing or infinite; quick to find out."""
        if not self.is_text:
            return None
        nothing = pa.scalar(None, self.type)
        found = self._cast(pc.if_else(pc.equal(self.column.slice(0, TRIED), ""), nothing, self.column.slice(0, TRIED)))
        if found is not None:
            found = self._cast(pc.if_else(pc.equal(self.column, ""), nothing, self.column))
        if found is None:
            found = self._cast(self.texts)
        if found is not None:
            found[~np.isfinite(found)] = np.nan
        return found

    def _cast(self, texts: pa.ChunkedArray) -> NDArray[np.float64] | None:
        if self.decimal == ",":
            if pc.any(pc.match_substring(texts, ".")).as_py():
                return None
            texts = pc.replace_substring(texts, ",", ".")
        try:
            return np.array(texts.cast(pa.float64()).to_numpy(), dtype=np.float64)
        except pa.ArrowException:
            return None

    @cached_property
    def are_codes(self) -> bool:
        """Whether digits are names, not numbers: some have a zero in front, and all are of one length."""
        if not self.is_text or not pc.any(pc.match_substring_regex(self.column, CODE)).as_py():
            return False
        lengths = pc.min_max(pc.utf8_length(self.texts))
        return bool(lengths["min"].as_py() == lengths["max"].as_py())

    @cached_property
    def distinct(self) -> Distinct:
        """The distinct texts."""
        coded = self.texts.dictionary_encode()
        texts = coded.chunks[0].dictionary if coded.num_chunks else pa.array([], pa.string())
        codes = [np.asarray(chunk.indices.fill_null(-1), dtype=np.int64) for chunk in coded.chunks]
        found = np.concatenate([*codes, np.empty(0, np.int64)])
        return Distinct(texts, np.bincount(found[found >= 0], minlength=len(texts)), found)

    @cached_property
    def missing(self) -> int:
        """How many cells have no value."""
        plain = self.stored_numbers if self.is_number else self.plain_numbers
        if plain is not None:
            return int(np.isnan(plain).sum())
        return int(self.texts.null_count) if self.is_text else int(self.column.null_count)

    @cached_property
    def numbers(self) -> Readable:
        """The cells as numbers; infinite ones count as missing."""
        if self.is_number or pa.types.is_boolean(self.type):
            return Readable(self.stored_numbers)
        if not self.is_text:
            return self._unreadable()
        if self.plain_numbers is not None:
            return Readable(self.plain_numbers)
        return self._read(parsed_numbers(self.distinct.texts, self.decimal))

    @cached_property
    def truths(self) -> Readable:
        """The cells as 1 for yes and 0 for no; numbers are read where they are 0 and 1."""
        stored = self.is_number or pa.types.is_boolean(self.type)
        values = self.stored_numbers if stored else self.plain_numbers
        if values is not None:
            odd = ~np.isnan(values) & (values != 0) & (values != 1)
            examples = tuple(f"{value:g}" for value in values[odd][:EXAMPLES])
            return Readable(np.where(odd, np.nan, values), int(odd.sum()), examples)
        words = pc.utf8_lower(self.distinct.texts)
        yes, no = (np.asarray(pc.is_in(words, value_set=pa.array(those))) for those in ((*TRUE, "1"), (*FALSE, "0")))
        return self._read(np.where(yes, 1.0, np.where(no, 0.0, np.nan)))

    def moments(self, form: str | None = None) -> Moments | None:
        """The cells as dates in this form, or in the one that most of them have; None if hardly any has one."""
        if self.is_moment:
            seconds = np.array(self.column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).to_numpy(), np.float64)
            return Moments("stored", seconds, 0, ())
        if not self.is_text and not (self.is_number and form == DIGITS):
            return None
        found = read_moments(self.distinct.texts, form)
        if found is None:
            return None
        read = self._read(found.seconds)
        return Moments(found.form, read.values, read.unreadable, read.examples)

    def _read(self, values: NDArray[np.float64]) -> Readable:
        """What the distinct texts were read as, spread over the cells."""
        odd = np.isnan(values)
        examples = self.distinct.texts.filter(pa.array(odd)).slice(0, EXAMPLES).to_pylist()
        spread = self.distinct.spread(np.where(np.isfinite(values), values, np.nan))
        return Readable(spread, int(self.distinct.counts[odd].sum()), tuple(examples))

    def _unreadable(self) -> Readable:
        return Readable(np.full(len(self), np.nan), len(self) - self.missing, (str(self.type),))


def parsed_numbers(texts: pa.Array, decimal: str = ".") -> NDArray[np.float64]:
    """Numbers as people write them, NaN where a text is none: `1,234.5`, `1 234,5`, `12 %`, `$3`.

    >>> import pyarrow
    >>> parsed_numbers(pyarrow.array(["1,234.5", "12%", "$3", "x"])).tolist()
    [1234.5, 12.0, 3.0, nan]
    >>> parsed_numbers(pyarrow.array(["1.234,5", "0,25"]), decimal=",").tolist()
    [1234.5, 0.25]
    """
    if not len(texts):
        return np.empty(0)
    texts = pc.replace_substring_regex(texts, AROUND, "")
    spaced = pc.match_substring_regex(texts, GROUPS)
    texts = pc.if_else(spaced, pc.replace_substring_regex(texts, r"[ \x{a0}\x{202f}'’]", ""), texts)
    groups, other = (POINT_GROUPS, ".") if decimal == "," else (COMMA_GROUPS, ",")
    grouped = pc.match_substring_regex(texts, groups)
    texts = pc.if_else(grouped, pc.replace_substring(texts, other, ""), texts)
    if decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    numeric = pc.match_substring_regex(texts, NUMBER)
    readable = pc.if_else(numeric, texts, pa.scalar(None, pa.string()))
    return np.array(readable.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def shown_cells(table: pa.Table, names: Sequence[str], rows: Sequence[int]) -> list[list[str]]:
    """The cells of some rows as a person reads them."""
    some = table.select(list(names)).take(pa.array(list(rows), pa.int64()))
    columns = [
        ["" if value is None else str(value)[:LONGEST_SHOWN] for value in column.to_pylist()] for column in some.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in rows]


def _is_view(kind: pa.DataType) -> bool:
    return hasattr(pa.types, "is_string_view") and bool(pa.types.is_string_view(kind))
