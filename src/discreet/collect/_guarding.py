"""What stands around every request: who may call the service by which name, headers that close it to other sites, and no traceback.

A browser that was led here under another site's name is refused by the name; a page of another site may neither read an answer (no CORS
header, same-origin resource policy) nor send a sample (its Origin is not ours) unless its origin is allowed. What an error was is told to
whoever runs the service by its kind and the lines of code, never by its message, which may quote what somebody sent.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.collect._problems import RequestProblem, unavailable
from discreet.errors import DiscreetError, visible

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
    """An ASGI application around another.

    Args:
        app: the other.
        hosts: names under which the service may be called, without a port; None: any.
        origins: of other sites whose pages may read and send.
        answered: is told the path and status of each answer.
        failed: is told of bugs.
        direct: applications for a method and a path, which need no other look at the request: the way that nearly all of them go.
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
        self._hosts = None if hosts is None else {host.lower().encode() for host in hosts}
        self._origins = {checked_origin(origin).encode() for origin in origins}

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
            except asyncio.CancelledError:  # the service stops, and has waited long enough
                if not started:
                    await unavailable("the collector is stopping").answer(scope, receive, send_guarded)
            except RequestProblem as problem:
                await problem.answer(scope, receive, send_guarded)
        except Exception as error:  # a bug of ours: whoever asked is told to come again, whoever runs this where it is
            self._failed(error)
            if not started:
                await FAILED.answer(scope, receive, send_guarded)

    def _check_host(self, host: bytes) -> None:
        name = host.lower().rpartition(b":")[0] if host.rpartition(b":")[2].isdigit() else host.lower()
        if self._hosts is not None and name not in self._hosts:
            raise RequestProblem(
                403, "the collector is not called by this name; whoever runs it can allow it: --allow-host"
            )


def report(error: BaseException) -> None:
    """Say on standard error what kind of error it was and where, and nothing of what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = "; ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames[-6:])
    sys.stderr.write(f"discreet: a fault of the collector, {type(error).__name__}: {visible(lines)}\n")


def checked_origin(origin: str) -> str:
    """An origin as browsers send it: a scheme and a name, perhaps a port, nothing after it."""
    scheme, found, rest = origin.partition("://")
    if scheme not in ("http", "https") or not found or not rest or set(rest) & set("/?#@ *") or not rest.isascii():
        raise DiscreetError(f"origin = {origin!r} is not an origin, such as https://example.org")
    return origin.lower()


def _single_header(scope: Scope, name: bytes) -> bytes:
    """A header that may come once; empty where it does not."""
    found: list[Any] = [value for header, value in scope["headers"] if header == name]
    if len(found) > 1:
        raise RequestProblem(400, f"the header {name.decode()} comes more than once")
    return found[0] if found else b""
