"""Errors and limits of requests, and `Guard`, the outer ASGI application.

A `RequestProblem` is a status code and one sentence. The sentence says what is allowed, never what was sent. `RequestLimits` bounds the
bytes of a body, the seconds until it is complete, and the bytes of all bodies in memory.

`Guard` checks the host name of a request, adds headers against other sites, and lets no traceback out. A browser that was led here under
another site's name is rejected by the host check. A page of another site can neither read an answer (no CORS header, same-origin resource
policy) nor send a sample (its Origin is not ours), unless its origin is allowed. The operator sees the kind of an error and its lines of
code, never its message, which may quote a request.
"""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.client import JSON
from discreet.errors import DiscreetError, check_texts, visible

RETRY_SECONDS = 1  # until a rejected request may be sent again


class RequestProblem(Exception):
    """An error in answer to a request. `more`: further fields of the answer."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    @property
    def answer(self) -> Response:
        """The answer to send."""
        body = json.dumps({"error": self.sentence, **self.more}).encode()
        return Response(
            body, status_code=self.status, media_type=JSON, headers={"Cache-Control": "no-store", **self.headers}
        )


def bad_request(sentence: str) -> RequestProblem:
    """The error for a body or a query that does not have its stated type."""
    return RequestProblem(400, sentence)


def unprocessable(sentence: str) -> RequestProblem:
    """The error for a readable body that does not fit the agreement."""
    return RequestProblem(422, sentence)


def unavailable(sentence: str) -> RequestProblem:
    """The error for a temporary failure: the same request may be sent again, and is counted once."""
    again = f"{sentence}; send the same again in a moment, under the same keys"
    return RequestProblem(503, again, headers={"Retry-After": str(RETRY_SECONDS)})


MOST_BODY = 4 << 20  # bytes: the largest batch has about two million, with names of 64 digits
MOST_HELD = 64 << 20  # bytes of all bodies in memory together
PATIENCE = 30.0  # seconds until a request must be complete


class RequestLimits:
    """Limits on the bytes of bodies in memory, over all requests of a process, and on the seconds until each is complete."""

    def __init__(self, patience: float) -> None:
        self._left = MOST_HELD
        self._patience = patience

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The complete body of a request within the limits; its bytes are reserved while it is used."""
        length = _announced_length(request)
        if length is not None and length > MOST_BODY:
            raise _too_large()
        held, parts = 0, []
        try:
            try:
                async with asyncio.timeout(self._patience):
                    more = True
                    while more:
                        message = await request.receive()
                        if message["type"] == "http.disconnect":
                            raise ClientDisconnect
                        part, more = message.get("body", b""), message.get("more_body", False)
                        if held + len(part) > MOST_BODY:
                            raise _too_large()
                        if len(part) > self._left:
                            raise unavailable("too much is being sent at once")
                        self._left -= len(part)
                        held += len(part)
                        parts.append(part)
            except TimeoutError:
                raise RequestProblem(408, f"the body was not whole after {self._patience:g} seconds") from None
            yield parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            self._left += held


def _announced_length(request: Request) -> int | None:
    """The announced length of a body."""
    lengths = request.headers.getlist("content-length")
    if not lengths:
        return None
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
        raise bad_request("Content-Length is not one whole number")
    return int(lengths[0])


def _too_large() -> RequestProblem:
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
FAILED = unavailable("the collector failed on this request")


class Guard:
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
        self._origins = {checked_origin(origin).encode() for origin in sites}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        started = False
        extra = list(_HEADERS)

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
                self._answered(scope, message["status"])
            await send(message)

        try:
            try:
                host, origin = _single_header(scope, b"host"), _single_header(scope, b"origin")
                self._check_host(host)
                if self._origins:
                    extra.append((b"vary", b"Origin"))
                if origin in self._origins:
                    extra.append((b"access-control-allow-origin", origin))
                    if scope["method"] == "OPTIONS":
                        await send_guarded({"type": "http.response.start", "status": 204, "headers": _PREFLIGHT})
                        await send_guarded({"type": "http.response.body", "body": b""})
                        return
                elif origin and scope["method"] not in ("GET", "HEAD") and origin.partition(b"://")[2] != host:
                    raise RequestProblem(403, "pages of other sites may not send to this collector")
                app = self._direct.get((scope["method"], scope["path"]), self._app)
                await app(scope, receive, send_guarded)
            except ClientDisconnect:
                return
            except asyncio.CancelledError:  # the service is stopping
                if not started:
                    await unavailable("the collector is stopping").answer(scope, receive, send_guarded)
            except RequestProblem as problem:
                await problem.answer(scope, receive, send_guarded)
        except Exception as error:  # a bug: the client may retry, the operator sees where it is
            self._failed(error)
            if not started:
                await FAILED.answer(scope, receive, send_guarded)

    def _check_host(self, host: bytes) -> None:
        name = host.lower().rpartition(b":")[0] if host.rpartition(b":")[2].isdigit() else host.lower()
        if self._hosts is not None and name not in self._hosts:
            raise RequestProblem(
                403, "the collector does not have this host name; its operator can allow it: --allow-host"
            )


def report_fault(error: BaseException) -> None:
    """Print the kind and place of an error on standard error, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = "; ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames[-6:])
    sys.stderr.write(f"discreet: a fault of the collector, {type(error).__name__}: {visible(lines)}\n")


def checked_origin(origin: str) -> str:
    """An origin as browsers send it: scheme, name and optional port, nothing else."""
    scheme, found, rest = origin.partition("://")
    if scheme not in ("http", "https") or not found or not rest or set(rest) & set("/?#@ *") or not rest.isascii():
        raise DiscreetError(f"origin = {origin!r} is not an origin, such as https://example.org")
    return origin.lower()


def _single_header(scope: Scope, name: bytes) -> bytes:
    """A header that may occur once; empty if absent."""
    found: list[Any] = [value for header, value in scope["headers"] if header == name]
    if len(found) > 1:
        raise RequestProblem(400, f"the header {name.decode()} comes more than once")
    return found[0] if found else b""
