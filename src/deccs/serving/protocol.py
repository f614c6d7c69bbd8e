"""HTTP connections that do not wait for ever: uvicorn's, with clocks and limits for what it leaves open."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deccs.serving.limits import Limits

MOST_UNUSED = 2**15  # bytes that are neither a whole header nor a part of a body
TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 50\r\n"
    b"retry-after: 1\r\nconnection: close\r\n\r\n"
    b'{"error":"There are too many connections already"}'
)


class PatientProtocol(HttpToolsProtocol):
    """A connection with one clock: for a request to arrive, to be answered, or for its answer to be taken.

    uvicorn closes connections that are idle between two requests. It waits for ever for a request that comes byte by
    byte and for a client that does not read, keeps headers of any length, and takes any number of connections.
    """

    limits = Limits()  # of a service, in a subclass

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.clock: asyncio.TimerHandle | None = None
        self.is_receiving = False  # a request that has begun and is not complete
        self.n_unused = 0
        self.has_progress = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.write(TOO_MANY)
            transport.close()
        self._start(self.limits.seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self.has_progress = False
        super().data_received(data)
        self.n_unused = 0 if self.has_progress else self.n_unused + len(data)
        if self.n_unused > MOST_UNUSED:
            self.transport.abort()
        elif self.clock is None and not self.transport.is_closing():
            self._start(self.limits.seconds)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.is_receiving = True
        self._start(self.limits.seconds)

    def on_headers_complete(self) -> None:
        self.has_progress = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.has_progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.has_progress, self.is_receiving = True, False
        self._start(self.limits.seconds_to_answer + self.limits.seconds)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            self._start(self.limits.seconds)  # for what the client has not read yet
        elif self.pipeline:
            self._start(self.limits.seconds_to_answer + self.limits.seconds)
        elif not self.is_receiving:
            self._stop()

    def _start(self, seconds: float) -> None:
        self._stop()
        self.clock = self.loop.call_later(seconds, self._give_up)

    def _stop(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None

    def _give_up(self) -> None:
        """The time is over. A client that has taken its answer and asks nothing more is left to uvicorn."""
        self.clock = None
        is_idle = self.cycle is not None and self.cycle.response_complete and not self.is_receiving
        is_done = is_idle and not self.pipeline and not self.transport.is_closing()
        if not (is_done and not self.transport.get_write_buffer_size()):
            self.transport.abort()
