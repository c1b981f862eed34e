"""SIGINT and SIGTERM: deferred to where a run can be saved while it trains, immediate before and after."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InterruptedRunError

HEEDED = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """The first signal stops the run, the second the process; calling this gives the first one."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.deferred = False
        for number in HEEDED:
            signal.signal(number, self._note)

    def __call__(self) -> int | None:
        return self.received

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Inside, a signal is only recorded, for the trainer to ask for."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False

    def done(self) -> None:
        """The work is done: a signal while Python ends must not make it look otherwise."""
        for number in HEEDED:
            signal.signal(number, signal.SIG_IGN)

    def _note(self, number: int, frame: Any) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        if not self.deferred:
            raise InterruptedRunError(number)
