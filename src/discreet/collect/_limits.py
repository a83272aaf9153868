"""What one sender can take up: bytes of a body, seconds until it is whole, and of all of them together the bytes that are held at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from discreet.collect._problems import RequestProblem, bad_request, unavailable

MOST_BODY = 4 << 20  # bytes: the largest batch has about two million, with names of 64 digits
MOST_HELD = 64 << 20  # bytes of the bodies of all requests together
PATIENCE = 30.0  # seconds until a request has to be whole


class RequestLimits:
    """The bytes of bodies that are held at once, by all requests of a process, each whole within so many seconds."""

    def __init__(self, patience: float) -> None:
        self._left = MOST_HELD
        self._patience = patience

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request, whole and within its limits; room for it is held as long as it is looked at."""
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
    """How long a body says it is."""
    lengths = request.headers.getlist("content-length")
    if not lengths:
        return None
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
        raise bad_request("Content-Length is not one whole number")
    return int(lengths[0])


def _too_large() -> RequestProblem:
    return RequestProblem(413, f"the body is larger than {MOST_BODY:,} bytes; send less in one request")
