"""Files written whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file by new content so that a reader, or a crash, sees the old one or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    write_synced(temporary, content)
    temporary.replace(path)
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def to_json(value: Any) -> bytes:
    """Readable JSON; NaN and infinities are refused."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
