"""How a text file writes a table: encoding, delimiter, quotes and decimal sign, found out from its content."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ...errors import InputError
from ..limits import regular

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
USUAL = {".csv": ",", ".tsv": "\t"}
"""What stands between cells where a file has nothing that tells."""
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252 (Latin-1)",
    "latin-1": "Latin-1",
}
SAMPLE_CHARACTERS, SAMPLE_ROWS = 4 << 20, 200
CHUNK = 4 << 20
COMMA_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
POINT_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)\.\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:[.,]\d{3})+")
"""Digits in groups of three: a whole number with separators, or one with three decimals."""
SEPARATOR_LINE = re.compile(r"sep=([,;|\t])\r?\n", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a text file are written; `preamble` is Excel's first line `sep=;`, where there is one."""

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    bom: bytes = b""
    decimal: str = "."
    preamble: str = ""

    @property
    def codec(self) -> str:
        """The name under which Python and Arrow decode the file, its byte order mark included."""
        return "utf-16" if self.encoding.startswith("utf-16") else self.encoding

    def decoded(self, content: bytes) -> str:
        """The text of a file of this dialect, without its byte order mark."""
        return content[len(self.bom) :].decode(self.encoding)

    def encoded(self, text: str) -> bytes:
        """The bytes of a text; of one that `decoded` gave, those of the file."""
        return self.bom + text.encode(self.encoding)

    def header(self, text: str) -> list[str]:
        """The cells of the first row of a text that has something in it, as they are written."""
        return next((row for row in self._parsed(text) if row), [])

    def rows(self, text: str) -> list[list[str]]:
        """The first rows of a text; what the reader of Python refuses has none."""
        try:
            return [row for row in islice(self._parsed(text), SAMPLE_ROWS) if row]
        except csv.Error:
            return []

    def said(self, suffix: str) -> str:
        """What is not as usual for files that are named so, in words; empty if nothing is."""
        words = []
        if self.delimiter != USUAL.get(suffix, ","):
            words.append(f"{DELIMITERS[self.delimiter]} between cells")
        if self.quote != '"':
            words.append("single quotes around cells")
        if self.encoding != "utf-8" or self.bom:
            words.append(ENCODINGS[self.encoding] + (" with a byte order mark" if self.bom else ""))
        if self.decimal != ".":
            words.append("decimal commas")
        return ", ".join(words)

    def _parsed(self, text: str) -> Iterator[list[str]]:
        content = io.StringIO(text.removeprefix(self.preamble), newline="")
        return csv.reader(content, delimiter=self.delimiter, quotechar=self.quote)


def detect_dialect(path: Path) -> tuple[Dialect, list[str]]:
    """The dialect of a file, and the cells of its header; InputError if it is no text."""
    encoding, bom = _encoding(regular(path))
    with path.open(encoding=encoding, newline="", errors="strict") as file:
        text = file.read(SAMPLE_CHARACTERS).removeprefix("\ufeff")
    said = SEPARATOR_LINE.match(text)
    preamble = said[0] if said else ""
    candidates = [said[1]] if said else list(DELIMITERS)
    found = [Dialect(each, '"', encoding, bom, preamble=preamble) for each in candidates]
    if '"' not in text and "'" in text:
        found += [Dialect(each, "'", encoding, bom, preamble=preamble) for each in candidates]
    usual = USUAL.get(path.suffix, ",")
    best = max(found, key=lambda each: (*_fit(each, text), each.delimiter == usual))
    if _fit(best, text)[0] == 0 and not said:
        best = Dialect(usual, '"', encoding, bom)
    decimal = _decimal(best.rows(text)[1:], best.delimiter)
    return Dialect(best.delimiter, best.quote, encoding, bom, decimal, preamble), best.header(text)


def column_names(header: Sequence[str]) -> list[str]:
    """Names for the cells of a header: trimmed, `column 3` for an empty third, `x (2)` for the second of two `x`.

    >>> column_names(["x", " y ", "", "x"])
    ['x', 'y', 'column 3', 'x (2)']
    """
    names: list[str] = []
    taken = {cell.strip() for cell in header}
    seen = set[str]()
    for number, cell in enumerate(header, 1):
        name = wished = cell.strip() or f"column {number}"
        copy = 2
        while name in seen or (name != cell.strip() and name in taken):
            name, copy = f"{wished} ({copy})", copy + 1
        seen.add(name)
        names.append(name)
    return names


def _encoding(path: Path) -> tuple[str, bytes]:
    """The first of UTF-8, Windows-1252 and Latin-1 that the whole file is in, or what its byte order mark says."""
    with path.open("rb") as file:
        start = file.read(4)
    bom = next((mark for mark in BOMS if start.startswith(mark)), b"")
    tried = [BOMS[bom]] if bom else ["utf-8", "cp1252", "latin-1"]
    decoders = {name: codecs.getincrementaldecoder(name)() for name in tried}
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if not bom.startswith((b"\xff", b"\xfe")) and b"\0" in chunk:
                raise InputError(
                    f"{path} has NUL bytes, as a damaged file or UTF-16 without a byte order mark has; save it as UTF-8"
                )
            for name, decoder in list(decoders.items()):
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    del decoders[name]
            if not decoders:
                break
    for name, decoder in decoders.items():
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        return name, bom
    raise InputError(f"{path} begins as {ENCODINGS[tried[0]]} but is not; save it as UTF-8")


def _fit(dialect: Dialect, text: str) -> tuple[float, int]:
    """The share of rows with as many cells as the header, and how many; nothing where the header has one cell."""
    rows = dialect.rows(text)
    if len(text) == SAMPLE_CHARACTERS:
        rows = rows[:-1]
    width = len(rows[0]) if rows else 0
    if width < 2:
        return 0.0, 0
    if dialect.quote == "'" and not any(cell.startswith("'") for cell in text.split(dialect.delimiter)):
        return 0.0, 0
    return sum(len(row) == width for row in rows) / len(rows), width


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """The decimal sign of most numbers; `1,234` tells nothing, unless semicolons show that commas are decimal."""
    cells = [cell.strip() for row in rows for cell in row if "," in cell or "." in cell]
    sure = [cell for cell in cells if not THOUSANDS.fullmatch(cell)]
    commas = sum(COMMA_NUMBER.fullmatch(cell) is not None for cell in sure)
    points = sum(POINT_NUMBER.fullmatch(cell) is not None for cell in sure)
    if commas == points == 0 and delimiter == ";":
        commas = sum("," in cell and THOUSANDS.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."
