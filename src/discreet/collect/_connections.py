"""`LimitedConnection`: connections with limits on their number, on the bytes and seconds of a request's head, and on idle time.

The server underneath limits neither the length of a request's head nor its time. It waits for ever for a client that does not read its
answer, and queues everything that is sent ahead. This class limits each of these.

A request for another protocol (Upgrade, CONNECT) is treated as HTTP/1.1 and ends its connection, because the parser takes what follows its
head for the other protocol. A body there would be read as further requests, while a proxy in front counts it as a body and would give their
answers to others.
"""

import json
from asyncio import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from discreet.collect._requests import PATIENCE, RETRY_SECONDS

MOST_CONNECTIONS = 2_000
MOST_HEAD = 1 << 14  # bytes of a request line and headers, or between two parts of a body
LINGER_SECONDS = 5.0  # for the rest of a request that was answered early, and for an unread answer
STOPPING_SECONDS = 1.0  # for incomplete bodies when the service stops
_MOST_AHEAD = 16  # requests that may be sent before the first is answered


class LimitedConnection(HttpToolsProtocol):
    """One connection of a client, with limits."""

    patience = PATIENCE  # seconds until a head must be complete

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unfinished = 0  # bytes since the last complete part
        self._in_body = False
        self._clock: TimerHandle | None = None
        self._active: RequestResponseCycle | None = None  # the request that is being answered

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, or reject it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "there are too many connections; try again in a moment")
        else:
            self._clock = self.loop.call_later(self.patience, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection."""
        self._stop_clock()
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data, unless a head or part grows too long."""
        if self.transport.is_closing():
            return
        self._unfinished += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unfinished > MOST_HEAD:
            self._refuse(431, f"the head of the request is longer than {MOST_HEAD:,} bytes")
        elif self._unfinished and not self._in_body and self._clock is None:
            self._clock = self.loop.call_later(self.patience, self._too_slow)

    def eof_received(self) -> Any:  # whether the other direction stays open
        """Keep the other direction open: the sender of a complete request may still read its answer."""
        if self._active is None or self._in_body:
            return False
        self.cycle.keep_alive = False
        return True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head; headers after the body are ignored."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check a complete head."""
        self._stop_clock()
        self._in_body, self._unfinished = True, 0
        if len(self.pipeline) >= _MOST_AHEAD:
            raise ValueError  # the parser answers 400
        elsewhere = self.parser.should_upgrade()
        if elsewhere and any(map(_announces_body, self.headers)):
            self._refuse(400, "a request with a body cannot ask for another protocol; leave out Upgrade")
            raise ValueError
        super().on_headers_complete()
        if elsewhere:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take a complete request."""
        self._stop_clock()
        self._in_body, self._unfinished = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End the connection of a client that neither reads its answer nor ends its request."""
        self._active = None
        super().on_response_complete()
        if self._in_body or self.transport.is_closing():
            self._stop_clock()
            self._clock = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Stop: answer complete requests, and do not wait for others."""
        super().shutdown()
        if self._in_body:
            self.loop.call_later(STOPPING_SECONDS, self._abort_unfinished)

    def send_400_response(self, msg: str) -> None:
        """Reject data that are not HTTP."""
        self._refuse(400, "this is not a request of HTTP/1.1 that can be read")

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the client gets an answer in HTTP/1.1."""

    def _abort_unfinished(self) -> None:
        if self._in_body:
            self.transport.abort()

    def _too_slow(self) -> None:
        self._clock = None
        if self._unfinished:
            self._refuse(408, f"the head of the request was not whole after {self.patience:g} seconds")
        else:
            self.transport.abort()

    def _refuse(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        if self._active is None or not self._active.response_started:  # else it would become part of another answer
            body = json.dumps({"error": sentence}).encode()
            retry = b"retry-after: %d\r\n" % RETRY_SECONDS if status == 503 else b""
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + retry + head + b"\r\n" + body)
        self._forget()
        self.transport.close()
        self._stop_clock()
        self._clock = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def _forget(self) -> None:
        """Send nothing more, neither to the current request nor to those behind it."""
        self.pipeline.clear()
        if self._active is not None and not self._active.response_complete:
            self._active.disconnected = True
            self._active.message_event.set()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def _announces_body(header: tuple[bytes, bytes]) -> bool:
    """Whether a header announces a body."""
    name, value = header
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")
