"""Errors and limits of requests and connections, and `RequestGuard`, the outer ASGI application.

A `RequestProblem` is a status code and one sentence. The sentence says what is allowed, never what was sent. `RequestLimits` bounds the
bytes of a body, the seconds until it is complete, and the bytes of all bodies in memory.

`RequestGuard` checks the host name of a request, adds headers against other sites, and lets no traceback out. A browser that was led here
under another site's name is rejected by the host check. A page of another site can neither read an answer (no CORS header, same-origin
resource policy) nor send a sample (its Origin is not ours), unless its origin is allowed. The operator sees the kind of an error and its
lines of code, never its message, which may quote a request.

`LimitedConnection` bounds the number of connections, the bytes and seconds of a request's head, and idle time. The server underneath limits
neither the length of a request's head nor its time. It waits for ever for a client that does not read its answer, and queues everything that
is sent ahead. A request for another protocol (Upgrade, CONNECT) is treated as HTTP/1.1 and ends its connection, because the parser takes what
follows its head for the other protocol. A body there would be read as further requests, while a proxy in front counts it as a body and would
give their answers to others.
"""

import asyncio
import json
import sys
import traceback
from asyncio import TimerHandle
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from discreet.client import JSON
from discreet.errors import DiscreetError, check_texts, spell_out_invisible

RETRY_SECONDS = 1  # until a rejected request may be sent again


class RequestProblem(Exception):
    """An error in answer to a request."""

    def __init__(self, status: int, sentence: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, dict(headers or {})

    @property
    def response(self) -> Response:
        """The answer to send."""
        body = json.dumps({"error": self.sentence}).encode()
        return Response(
            body, status_code=self.status, media_type=JSON, headers={"Cache-Control": "no-store", **self.headers}
        )


def bad_request_problem(sentence: str) -> RequestProblem:
    """The error for a body or a query that does not have its stated type."""
    return RequestProblem(400, sentence)


def unprocessable_problem(sentence: str) -> RequestProblem:
    """The error for a readable body that does not fit the agreement."""
    return RequestProblem(422, sentence)


def unavailable_problem(sentence: str) -> RequestProblem:
    """The error for a temporary failure: the same request may be sent again, and is counted once."""
    advice = f"{sentence}; send the same again in a moment, under the same keys"
    return RequestProblem(503, advice, headers={"Retry-After": str(RETRY_SECONDS)})


MOST_BODY = 4 << 20  # bytes: the largest batch has about two million, with names of 64 digits
MOST_HELD = 64 << 20  # bytes of all bodies in memory together
PATIENCE = 30.0  # seconds until a request must be complete


class RequestLimits:
    """Limits on the bytes of bodies in memory, over all requests of a process, and on the seconds until each is complete."""

    def __init__(self, patience: float) -> None:
        self._left = MOST_HELD
        self._patience = patience

    @asynccontextmanager
    async def using_body_within_limits(self, request: Request) -> AsyncIterator[bytes]:
        """The complete body of a request within the limits; its bytes are reserved while it is used."""
        length = _announced_body_length(request)
        if length is not None and length > MOST_BODY:
            raise _body_too_large_problem()
        size, parts = 0, []
        try:
            try:
                async with asyncio.timeout(self._patience):
                    more = True
                    while more:
                        message = await request.receive()
                        if message["type"] == "http.disconnect":
                            raise ClientDisconnect
                        part, more = message.get("body", b""), message.get("more_body", False)
                        if size + len(part) > MOST_BODY:
                            raise _body_too_large_problem()
                        if len(part) > self._left:
                            raise unavailable_problem("too much is being sent at once")
                        self._left -= len(part)
                        size += len(part)
                        parts.append(part)
            except TimeoutError:
                raise RequestProblem(408, f"the body was not whole after {self._patience:g} seconds") from None
            yield parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self._left += size


def _announced_body_length(request: Request) -> int | None:
    """The announced length of a body."""
    lengths = request.headers.getlist("content-length")
    if not lengths:
        return None
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
        raise bad_request_problem("Content-Length is not one whole number")
    return int(lengths[0])


def _body_too_large_problem() -> RequestProblem:
    return RequestProblem(413, f"the body is larger than {MOST_BODY:,} bytes; send less in one request")


LOCAL = ("127.0.0.1", "localhost", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "x-frame-options": "DENY",
    }.items()
]
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type, authorization"),
    (b"access-control-max-age", b"600"),
]
FAILED = unavailable_problem("the collector failed on this request")


class RequestGuard:
    """An ASGI application around another one.

    Args:
        app: the inner application.
        hosts: allowed host names, without a port; None: any.
        origins: other sites whose pages may read and send.
        answered: called with the path and status of each answer.
        failed: called with unexpected errors.
        direct: applications by method and path that skip the router; nearly all requests go there.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Sequence[str] | None,
        origins: Iterable[str],
        answered: Callable[[Scope, int], None],
        failed: Callable[[BaseException], None],
        direct: Mapping[tuple[str, str], ASGIApp],
    ) -> None:
        self._direct = direct
        self._app, self._answered, self._failed = app, answered, failed
        names = None if hosts is None else check_texts("hosts", hosts, "pass the names of the service")
        self._hosts = None if names is None else {host.lower().encode() for host in names}
        sites = check_texts("origins", origins, "pass origins such as https://example.org")
        self._origins = {normalise_origin(origin).encode() for origin in sites}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        has_started = False
        extra_headers = list(_HEADERS)

        async def send_with_extra_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message = {**message, "headers": [*message.get("headers", ()), *extra_headers]}
                self._answered(scope, message["status"])
            await send(message)

        try:
            try:
                host, origin = _read_single_header(scope, b"host"), _read_single_header(scope, b"origin")
                self._refuse_disallowed_host(host)
                if self._origins:
                    extra_headers.append((b"vary", b"Origin"))
                if origin in self._origins:
                    extra_headers.append((b"access-control-allow-origin", origin))
                    if scope["method"] == "OPTIONS":
                        await send_with_extra_headers(
                            {"type": "http.response.start", "status": 204, "headers": _PREFLIGHT}
                        )
                        await send_with_extra_headers({"type": "http.response.body", "body": b""})
                        return
                elif origin and scope["method"] not in ("GET", "HEAD") and origin.partition(b"://")[2] != host:
                    raise RequestProblem(403, "pages of other sites may not send to this collector")
                app = self._direct.get((scope["method"], scope["path"]), self._app)
                await app(scope, receive, send_with_extra_headers)
            except ClientDisconnect:
                return
            except asyncio.CancelledError:  # the service is stopping
                if not has_started:
                    await unavailable_problem("the collector is stopping").response(
                        scope, receive, send_with_extra_headers
                    )
            except RequestProblem as problem:
                await problem.response(scope, receive, send_with_extra_headers)
        except Exception as error:  # a bug: the client may retry, the operator sees where it is
            self._failed(error)
            if not has_started:
                await FAILED.response(scope, receive, send_with_extra_headers)

    def _refuse_disallowed_host(self, host: bytes) -> None:
        name = host.lower().rpartition(b":")[0] if host.rpartition(b":")[2].isdigit() else host.lower()
        if self._hosts is not None and name not in self._hosts:
            raise RequestProblem(
                403, "the collector does not have this host name; its operator can allow it: --allow-host"
            )


def print_fault_without_message(error: BaseException) -> None:
    """Print the kind and place of an error on standard error, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = "; ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames[-6:])
    sys.stderr.write(f"discreet: a fault of the collector, {type(error).__name__}: {spell_out_invisible(lines)}\n")


def normalise_origin(origin: str) -> str:
    """An origin as browsers send it: scheme, name and optional port, nothing else."""
    scheme, separator, rest = origin.partition("://")
    if scheme not in ("http", "https") or not separator or not rest or set(rest) & set("/?#@ *") or not rest.isascii():
        raise DiscreetError(f"origin = {origin!r} is not an origin, such as https://example.org")
    return origin.lower()


def _read_single_header(scope: Scope, name: bytes) -> bytes:
    """A header that may occur once; empty if absent."""
    values: list[Any] = [value for header, value in scope["headers"] if header == name]
    if len(values) > 1:
        raise RequestProblem(400, f"the header {name.decode()} comes more than once")
    return values[0] if values else b""


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
            self._refuse_request(503, "there are too many connections; try again in a moment")
        else:
            self._clock = self.loop.call_later(self.patience, self._end_slow_connection)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection."""
        self._cancel_request_timer()
        self._drop_pending_answers()
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
            self._refuse_request(431, f"the head of the request is longer than {MOST_HEAD:,} bytes")
        elif self._unfinished and not self._in_body and self._clock is None:
            self._clock = self.loop.call_later(self.patience, self._end_slow_connection)

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
        self._cancel_request_timer()
        self._in_body, self._unfinished = True, 0
        if len(self.pipeline) >= _MOST_AHEAD:
            raise ValueError  # the parser answers 400
        wants_upgrade = self.parser.should_upgrade()
        if wants_upgrade and any(map(_header_announces_body, self.headers)):
            self._refuse_request(400, "a request with a body cannot ask for another protocol; leave out Upgrade")
            raise ValueError
        super().on_headers_complete()
        if wants_upgrade:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take a complete request."""
        self._cancel_request_timer()
        self._in_body, self._unfinished = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End the connection of a client that neither reads its answer nor ends its request."""
        self._active = None
        super().on_response_complete()
        if self._in_body or self.transport.is_closing():
            self._cancel_request_timer()
            self._clock = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Stop: answer complete requests, and do not wait for others."""
        super().shutdown()
        if self._in_body:
            self.loop.call_later(STOPPING_SECONDS, self._abort_if_body_unfinished)

    def send_400_response(self, msg: str) -> None:
        """Reject data that are not HTTP."""
        self._refuse_request(400, "this is not a request of HTTP/1.1 that can be read")

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the client gets an answer in HTTP/1.1."""

    def _abort_if_body_unfinished(self) -> None:
        if self._in_body:
            self.transport.abort()

    def _end_slow_connection(self) -> None:
        self._clock = None
        if self._unfinished:
            self._refuse_request(408, f"the head of the request was not whole after {self.patience:g} seconds")
        else:
            self.transport.abort()

    def _refuse_request(self, status: int, sentence: str) -> None:
        if self.transport.is_closing():
            return
        if self._active is None or not self._active.response_started:  # else it would become part of another answer
            body = json.dumps({"error": sentence}).encode()
            retry = b"retry-after: %d\r\n" % RETRY_SECONDS if status == 503 else b""
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + retry + head + b"\r\n" + body)
        self._drop_pending_answers()
        self.transport.close()
        self._cancel_request_timer()
        self._clock = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._active = cycle
        super()._start_asgi_task(cycle, app)

    def _drop_pending_answers(self) -> None:
        """Send nothing more, neither to the current request nor to those behind it."""
        self.pipeline.clear()
        if self._active is not None and not self._active.response_complete:
            self._active.disconnected = True
            self._active.message_event.set()

    def _cancel_request_timer(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def _header_announces_body(header: tuple[bytes, bytes]) -> bool:
    """Whether a header announces a body."""
    name, value = header
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 ") != b"")
