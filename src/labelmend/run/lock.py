"""One owner of a run directory at a time."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Own a run directory, or say who does. The system takes the lock back when its owner ends, however it ends."""
    path = folder / ".lock"
    with path.open("a+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise InputError(f"{folder} is in use by {file.read().strip() or 'another process'}") from None
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
