"""Writing files completely or not at all, and keeping paths inside a folder. Imports nothing of ours."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path to write to; the file replaces `path` at the end, and is removed if anything fails.

    A reader, or a crash, sees the old content or the new content, never a part of it. Processes that write the
    same file at the same time do not disturb each other; the last one wins.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace the content of a file, completely or not at all."""
    with atomic(path) as temporary:
        temporary.write_bytes(content)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the directory entries of a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def to_json(value: Any) -> bytes:
    """Indented JSON; NaN and infinities are refused."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path lies below the root (or is the root) once symbolic links and `..` are resolved."""
    return path.resolve().is_relative_to(root.resolve())
