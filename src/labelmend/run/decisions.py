"""decisions.csv: what people decided of samples, one line an answer, in the order in which they were given."""

import csv
import io
import os
import re
import threading
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from filelock import FileLock

from ..data.limits import sized
from ..data.readers.dialect import detect_dialect
from ..errors import InputError, lookup, visible
from ..files import sync_folder, write_atomic
from .directory import RunDirectory
from .labels import FORMULA_STARTS, read_label_table
from .standing import KEEP, LEFT_OUT, RELABEL, SKIP, UNDO, WORDS, Decision, Standing, Standings, overlay, standing

__all__ = [
    "KEEP",
    "LEFT_OUT",
    "RELABEL",
    "SKIP",
    "UNDO",
    "WORDS",
    "Decision",
    "DecisionLog",
    "Standing",
    "Standings",
    "csv_cell",
    "decided_labels",
    "now",
    "overlay",
    "read_decisions",
    "run_decisions",
    "standing",
]

COLUMNS = ("id", "decision", "label", "reviewer", "time")
HEADER = (",".join(COLUMNS) + "\n").encode()
NEEDED = ("id", "decision", "label")
LONGEST_REVIEWER = 100
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FORMULA = re.compile(f"'*[{re.escape(''.join(FORMULA_STARTS))}]")
"""A text that a spreadsheet would run, with any number of apostrophes in front: it gets one more when written."""
QUOTED = re.compile(r'[,;"\t\n\r|]|^\s|\s$')
"""What is written in quotes; the semicolon because a spreadsheet may take it for the end of the cell."""
WAIT = 0.002
"""Seconds between attempts to get the lock: those of a second server must not be felt by a person."""


def now() -> str:
    """The time as decisions.csv has it: ISO 8601, UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_decisions(
    path: Path, *, classes: Sequence[str] | None = None, ids: Container[str] | None = None
) -> list[Decision]:
    """The decisions of a file in their order; InputError, with the line, for what the run does not know.

    A file that somebody edited is read too, in whatever dialect a spreadsheet saved it. It needs the columns `id`,
    `decision` and `label`; a row with a label and no decision says that this label is right, and one with neither says
    nothing. Of a file that labelmend wrote, a last line that a crash tore is not a decision. `classes` and `ids` are
    those of the run; None checks nothing.
    """
    known = None if classes is None else dict.fromkeys(classes)
    return _decisions(path, sized(str(path)).read_bytes(), known, ids)


def run_decisions(run: RunDirectory, file: Path | None = None) -> list[Decision]:
    """The decisions of a run, or those of another file, checked against the run; none where nobody decided yet."""
    if file is None and not run.decisions.is_file():
        return []
    ids = set(read_label_table(run)["id"].to_pylist())
    return read_decisions(run.decisions if file is None else file, classes=_classes(run), ids=ids)


def decided_labels(run: RunDirectory, file: Path | None = None) -> pa.Table:
    """The label table with what people decided over what the machine found; as it is where nobody decided anything.

    The decisions are those of the run, or of another file. See `standing.overlay`.
    """
    table, holds = read_label_table(run), standing(run_decisions(run, file))
    return overlay(table, holds) if holds else table


class DecisionLog:
    """The decisions of a run, to which several threads and processes can append at once.

    >>> import tempfile
    >>> log = DecisionLog(Path(tempfile.mkdtemp()) / "decisions.csv", ids={"a.png"}, classes=["cat", "dog"])
    >>> log.append(Decision("a.png", "relabel", "dog", "ann", now()))
    >>> [(answer.id, answer.label) for answer in log.read()]
    [('a.png', 'dog')]
    """

    def __init__(self, path: Path, *, ids: Container[str] | None = None, classes: Sequence[str] | None = None) -> None:
        self.path = path
        self.ids = ids
        self.classes = classes
        self._known = None if classes is None else dict.fromkeys(classes)
        self._file_lock = FileLock(path.with_name(f".{path.name}.lock"), poll_interval=WAIT)
        self._thread_lock = threading.Lock()
        self._left: tuple[int, int, int] | None = None
        self._heard: tuple[int, int] | None = None

    @classmethod
    def of(cls, run: RunDirectory) -> "DecisionLog":
        """The log of a finished run, which knows the samples and classes of the run."""
        return cls(run.decisions, ids=frozenset(read_label_table(run)["id"].to_pylist()), classes=_classes(run))

    def read(self) -> list[Decision]:
        """All decisions so far, by whomever."""
        return read_decisions(self.path, classes=self.classes, ids=self.ids) if self.path.is_file() else []

    def news(self) -> tuple[list[Decision], bool]:
        """Decisions that were added since the last call, by whomever; or all of them, and True, if the file is new.

        A new file is one that was not there, or was replaced or edited. Called by one thread at a time.
        """
        if not self.path.is_file():
            anew, self._heard = self._heard is not None, None
            return [], anew
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._heard == (status.st_ino, status.st_size):
                return [], False
            inode, begin = self._heard or (0, 0)
            self._heard = (0, 0)  # whatever comes next is new, if this cannot be read
            known = inode == status.st_ino and len(HEADER) <= begin < status.st_size and _grew(file, begin)
            file.seek(begin if known else 0)
            content = (HEADER if known else b"") + file.read(status.st_size)
        found = _decisions(self.path, content, self._known, self.ids)
        end = _whole(content) if content.startswith(HEADER) else len(content)
        self._heard = status.st_ino, end + (begin - len(HEADER) if known else 0)
        return found, not known

    def append(self, decision: Decision) -> None:
        """Add a decision; when this returns, it is on the disk. InputError if the run does not know what it names."""
        self.append_all([decision])

    def append_all(self, decisions: Iterable[Decision]) -> None:
        """Add decisions in one piece, after all of them were checked."""
        checked = [_checked(decision, self._known, self.ids) for decision in decisions]
        if not checked:
            return
        content = "".join(map(_line, checked)).encode(errors="surrogateescape")
        with self._thread_lock, self._file_lock:
            new = not self.path.is_file()
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                end = os.fstat(file).st_size if _stamp(os.fstat(file)) == self._left else self._repair(file)
                if end is None:  # somebody else's dialect, which was replaced by a file in ours
                    os.close(file)
                    file = os.open(self.path, os.O_RDWR | os.O_APPEND)
                    end = os.fstat(file).st_size
                _write(file, content if end else HEADER + content, end)
                self._left = _stamp(os.fstat(file))
            finally:
                os.close(file)
            if new:
                sync_folder(self.path.parent)

    def _repair(self, file: int) -> int | None:
        """Where the next line begins once a torn one is removed; None if the whole file was written anew."""
        content = os.pread(file, os.fstat(file).st_size, 0)
        if HEADER.startswith(content):
            if content != HEADER:
                os.ftruncate(file, 0)
            return len(content) if content == HEADER else 0
        if not content.startswith(HEADER):
            kept = read_decisions(self.path, classes=self.classes, ids=self.ids)
            text = "".join(map(_line, kept)).encode(errors="surrogateescape")
            write_atomic(self.path, HEADER + text)
            return None
        end = _whole(content)
        if end < len(content):
            os.ftruncate(file, end)
        if content[end - 1 : end] != b"\n":
            os.write(file, b"\n")
            end += 1
        return end


def _write(file: int, content: bytes, end: int) -> None:
    """Append to the file and wait until it is on the disk; what could not be written whole leaves nothing behind."""
    try:
        written = os.write(file, content)
        while written < len(content):
            written += os.write(file, content[written:])
        os.fsync(file)
    except OSError:
        os.ftruncate(file, end)
        raise


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    """What changes when somebody else writes to a file."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def _whole(content: bytes) -> int:
    """Where the last whole line of a file of ours ends: one without its newline is whole if its time is.

    A newline ends a line if it stands outside of quotes, that is, after an even number of them.
    """
    quotes, end = content.count(b'"'), len(content)
    while end:
        found = content.rfind(b"\n", 0, end)
        quotes -= content.count(b'"', found + 1, end)
        end = found + 1
        if quotes % 2 == 0:
            break
        end = found
    rest = content[end:].decode(errors="surrogateescape")
    cells = next(csv.reader(io.StringIO(rest, newline="")), []) if rest.count('"') % 2 == 0 else []
    return len(content) if len(cells) == len(COLUMNS) and TIME.fullmatch(cells[-1]) else end


def _grew(file: BinaryIO, begin: int) -> bool:
    """Whether a file of ours still has a line that ends where the last known one did."""
    header = file.read(len(HEADER))
    file.seek(begin - 1)
    return header == HEADER and file.read(1) == b"\n"


def _decisions(
    path: Path, content: bytes, classes: Mapping[str, None] | None, ids: Container[str] | None
) -> list[Decision]:
    """The decisions in the content of a file."""
    text, delimiter, quote = _text(path, content)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, strict=True)
    try:
        return list(_parsed(path, rows, classes, ids))
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num} cannot be read as CSV: {error}") from None


def _text(path: Path, content: bytes) -> tuple[str, str, str]:
    """The text of a file of decisions, and its delimiter and quotes; its first line is the header."""
    if content.startswith(HEADER):
        return content[: _whole(content)].decode(errors="surrogateescape"), ",", '"'
    if HEADER.startswith(content):
        return HEADER.decode(), ",", '"'
    dialect, _ = detect_dialect(path)
    return dialect.decoded(content).removeprefix(dialect.preamble), dialect.delimiter, dialect.quote


def _parsed(
    path: Path, rows: Iterator[list[str]], classes: Mapping[str, None] | None, ids: Container[str] | None
) -> Iterator[Decision]:
    """The decisions of the rows of a file; the first row names the columns."""
    names = [name.strip().lower() for name in next(rows, [])]
    if missing := [name for name in NEEDED if name not in names]:
        raise InputError(
            f"{path} has no column {missing[0]!r}; the first line of a file of decisions is {','.join(COLUMNS)}"
        )
    place = {name: names.index(name) for name in COLUMNS if name in names}
    line = 2
    for row in rows:
        number, line = line, rows.line_num + 1  # type: ignore[attr-defined]
        if not any(row):
            continue
        if len(row) < len(names):
            raise InputError(f"{path}, line {number} has {len(row)} cells where the first line names {len(names)}")
        cells = {name: row[at] for name, at in place.items()}
        word = cells["decision"].strip().lower() or (RELABEL if cells["label"] else "")
        if not word:
            continue
        decision = Decision(
            _unescaped(cells["id"], ids),
            word,
            _unescaped(cells["label"], classes),
            _unescaped(cells.get("reviewer", ""), None),
            cells.get("time", ""),
        )
        try:
            yield _checked(decision, classes, ids)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None


def _checked(decision: Decision, classes: Mapping[str, None] | None, ids: Container[str] | None) -> Decision:
    """The decision, with a label only where one is taken; InputError if the run does not know what it names."""
    lookup("decision", decision.decision, WORDS)
    if ids is not None and decision.id not in ids:
        raise InputError(
            f"there is no sample {visible(decision.id)!r:.200} in this run; are these decisions of another run?"
        )
    if decision.label and classes is not None:
        lookup("class", decision.label, classes)
    if decision.decision == RELABEL and not decision.label and (classes is None or "" not in classes):
        raise InputError(f"the decision relabel of {visible(decision.id)!r:.200} names no label")
    if len(decision.reviewer) > LONGEST_REVIEWER or visible(decision.reviewer) != decision.reviewer:
        raise InputError(
            f"the reviewer {visible(decision.reviewer)!r:.120} is not a name: one line of at most {LONGEST_REVIEWER} "
            "letters"
        )
    return decision if decision.decision == RELABEL else replace(decision, label="")


def _line(decision: Decision) -> str:
    cells = (decision.id, decision.decision, decision.label, decision.reviewer, decision.time)
    return ",".join(map(csv_cell, cells)) + "\n"


def csv_cell(text: str) -> str:
    """The text as a cell of CSV that no spreadsheet takes for a formula and that `_unescaped` gives back exactly."""
    text = f"'{text}" if FORMULA.match(text) else text
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def _unescaped(text: str, known: Container[str] | None) -> str:
    """The text of a cell, without the apostrophe that kept it from being a formula."""
    if not text.startswith("'") or not FORMULA.match(text) or (known is not None and text[1:] not in known):
        return text
    return text[1:]


def _classes(run: RunDirectory) -> list[str]:
    return [str(name) for name in run.read()["data"]["classes"]]
