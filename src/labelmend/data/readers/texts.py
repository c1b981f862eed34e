"""Texts: lists of them, a folder of .txt files with one subfolder per class, or single files without labels."""

import codecs
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import InputError, visible
from ...files import is_inside
from ..kinds.text import Text, Texts
from ..preflight import BROKEN, Problem
from ..samples import Samples

SUFFIX = ".txt"
LARGEST_FILE = 4 << 20
MOST_BYTES = 2 << 30
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class UnusableTextError(Exception):
    """Why a file cannot be read as text."""


def from_texts(
    name: str,
    texts: Sequence[str | None],
    labels: Sequence[object] | None,
    *,
    ids: Sequence[str] | None = None,
    locations: Sequence[str] | None = None,
    column: str | None = None,
    declared: Sequence[str] | None = None,
) -> Samples:
    """Samples of texts, None being a missing one; `column` is the name of theirs, if they come from a table."""
    if labels is not None and len(labels) != len(texts):
        raise InputError(f"{name} has {len(texts)} texts but {len(labels)} labels")
    rows = range(len(texts))
    return Samples.read(
        name,
        Text(() if column is None else (column,)),
        Texts([BROKEN.sub("\ufffd", text or "") for text in texts]),
        labels,
        ids=ids or [str(row) for row in rows],
        locations=locations or [f"{name} row {row}" for row in rows],
        declared=declared,
    )


def from_text_files(root: Path, paths: Sequence[Path], labels: Sequence[str] | None) -> Samples:
    """Texts of these files below the root; what is no text is among the problems, and the id is the path."""
    texts, problems, size = [], [], 0
    locations = [visible(str(path)) for path in paths]
    for path, location in zip(paths, locations, strict=True):
        try:
            content = _content(path, root)
            size += len(content)
            texts.append(decoded(content))
        except UnusableTextError as error:
            problems.append(Problem(location, str(error)))
            texts.append("?")
        if size > MOST_BYTES:
            raise InputError(f"the texts of {root} have more than {MOST_BYTES >> 30} GiB, and must fit in memory")
    ids = [path.relative_to(root).as_posix() for path in paths]
    samples = from_texts(root.name, texts, labels, ids=ids, locations=locations)
    return replace(samples, problems=[*samples.problems, *problems])


def decoded(content: bytes) -> str:
    r"""Text by its byte order mark, or as UTF-8, or else as Latin-1 with the additions of Windows.

    >>> decoded("né".encode("utf-16")), decoded("né".encode()), decoded("né".encode("latin-1"))
    ('né', 'né', 'né')
    """
    encoding = next((name for mark, name in BOMS if content.startswith(mark)), None)
    try:
        return content.decode(encoding or "utf-8").replace("\0", "")
    except UnicodeDecodeError:
        if encoding is not None:
            raise UnusableTextError(f"not the {encoding} that its first bytes announce") from None
    if b"\0" in content:
        raise UnusableTextError("not a text: it holds zero bytes")
    return content.decode("cp1252", errors="replace").replace("\ufffd", " ")


def _content(path: Path, root: Path) -> bytes:
    if path.suffix.lower() != SUFFIX:
        raise UnusableTextError(f"not a {SUFFIX} file, as the others are")
    try:
        if not is_inside(path, root):
            raise UnusableTextError(f"leads outside {root}")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnusableTextError("not a regular file")
        if status.st_size > LARGEST_FILE:
            raise UnusableTextError(f"a file of {status.st_size >> 20} MiB; at most {LARGEST_FILE >> 20} are taken")
        return path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:
        raise UnusableTextError(f"cannot be read ({error})") from None
