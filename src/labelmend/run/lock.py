"""One owner of a run directory at a time."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import InputError


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own a run directory, or name its owner in an InputError.

    The operating system releases the lock when its owner ends, however it ends. The lock file holds the owner's name.
    """
    path = folder / ".lock"
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(f"{folder} is in use by {path.read_text().strip() or 'another process'}") from None
    try:
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield
    finally:
        lock.release()
