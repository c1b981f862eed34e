"""Excel workbooks written again with other labels: only the label cells of the first sheet are changed."""

import posixpath
import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from ..errors import InputError

RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ROW = re.compile(r"<row\b[^>]*?(?:/>|>.*?</row>)", re.DOTALL)
CELL = re.compile(r"<c\b([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
ATTRIBUTE = re.compile(r'([\w:]+)="([^"]*)"')
FILLED = re.compile(r"<(?:v|t)\b[^>]*>[^<]")
LETTERS = 26


class _Cell(NamedTuple):
    """A cell in the text of a sheet: where it is, its attributes and what is in it."""

    begin: int
    end: int
    attributes: dict[str, str]
    content: str


def rewrite_workbook(source: Path, to: Path, label: int, donors: Sequence[int | None]) -> None:
    """Write a workbook again: each row takes the label of its donor, another row or itself; without one it is dropped.

    `label` is the position of the column. Styles, other sheets and everything else stay as they are.
    """
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(to, "w") as new:
        sheet = _first_sheet(old)
        text = _relabelled(source, old.read(sheet).decode("utf-8"), label, donors)
        for entry in old.infolist():
            info = zipfile.ZipInfo(entry.filename, entry.date_time)
            info.compress_type, info.external_attr = entry.compress_type, entry.external_attr
            if entry.filename == sheet:
                new.writestr(info, text.encode("utf-8"))
                continue
            with old.open(entry) as reader, new.open(info, "w") as writer:
                shutil.copyfileobj(reader, writer)


def _first_sheet(archive: zipfile.ZipFile) -> str:
    """The member that holds the first sheet."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    first = next(element for element in book.iter() if element.tag.endswith("}sheet"))
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(each.attrib["Target"] for each in relations if each.attrib["Id"] == first.attrib[f"{RELATIONS}id"])
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"xl/{target}")


def _relabelled(source: Path, text: str, label: int, donors: Sequence[int | None]) -> str:
    rows = [found.span() for found in ROW.finditer(text) if FILLED.search(found[0])][1:]
    if len(rows) != len(donors):
        raise InputError(f"{source} has {len(rows)} rows where {len(donors)} were read; save it as CSV")
    letters = _letters(label)
    cells = [_cell(text, *span, letters) for span in rows]
    pieces, done = [], 0
    for row, donor in enumerate(donors):
        own, given = cells[row], None if donor is None else cells[donor]
        if donor is None:
            begin, end = rows[row]
            pieces.append(text[done:begin])
            done = end
        elif donor != row and own is not None and given is not None:
            pieces += [text[done : own.begin], _written(own, given)]
            done = own.end
    return "".join([*pieces, text[done:]])


def _cell(text: str, begin: int, end: int, letters: str) -> _Cell | None:
    """The cell of a row in the column with these letters."""
    for found in CELL.finditer(text, begin, end):
        attributes = dict(ATTRIBUTE.findall(found[1]))
        if attributes.get("r", "").rstrip("0123456789") == letters:
            return _Cell(found.start(), found.end(), attributes, found[2] or "")
    return None


def _written(own: _Cell, given: _Cell) -> str:
    """The cell at its own place and in its own style with the value of another."""
    kept = {name: value for name, value in own.attributes.items() if name != "t"}
    kept |= {name: value for name, value in given.attributes.items() if name == "t"}
    attributes = " ".join(f'{name}="{value}"' for name, value in kept.items())
    return f"<c {attributes}>{given.content}</c>"


def _letters(position: int) -> str:
    """The name that Excel gives to a column.

    >>> _letters(0), _letters(25), _letters(26)
    ('A', 'Z', 'AA')
    """
    letters, number = "", position + 1
    while number:
        number, rest = divmod(number - 1, LETTERS)
        letters = chr(ord("A") + rest) + letters
    return letters
