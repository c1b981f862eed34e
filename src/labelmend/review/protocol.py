"""Clients that are slow on purpose: a connection ends where a request or the reading of its answer takes too long."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""For a request to arrive whole, from the connection or its first byte on."""
REPLY_SECONDS = 120.0
"""For an answer to be made and taken."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with deadlines; uvicorn alone waits forever for the rest of a request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect(REQUEST_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._expect(REQUEST_SECONDS)
        super().data_received(data)
        arrived = self.conn.their_state not in (h11.IDLE, h11.SEND_BODY)
        if arrived and self.cycle is not None and not self.cycle.response_complete:
            self._expect(REPLY_SECONDS)

    def on_response_complete(self) -> None:
        self._forget()
        if self.transport.get_write_buffer_size():
            self._expect(REPLY_SECONDS)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _expect(self, seconds: float) -> None:
        self._forget()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        answered = self.cycle is not None and self.cycle.response_complete
        waiting = self.conn.their_state is h11.IDLE and answered and not self.transport.get_write_buffer_size()
        if not waiting:
            self.transport.abort()
