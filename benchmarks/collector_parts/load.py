"""A load of requests over connections that are kept: each sends its next one when the last is answered. In one process, on uvloop."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import uvloop


@dataclass
class Load:
    """What came of a load: seconds of each answer, how many were not 200, how long all of it took, and seconds of the server's processor."""

    latencies: list[float] = field(default_factory=list)
    refused: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which so many percent were answered."""
        return 1e3 * float(np.percentile(self.latencies, share))


class _Sender(asyncio.Protocol):
    """One connection."""

    def __init__(self, requests: Iterator[bytes], load: Load, done: "asyncio.Future[None]") -> None:
        self._requests, self._load, self._done = requests, load, done
        self._read = b""
        self._began = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._read += data
        head = self._read.find(b"\r\n\r\n")
        if head < 0:
            return
        start = self._read.find(b"content-length: ", 0, head) + 16
        if len(self._read) < head + 4 + int(self._read[start : self._read.find(b"\r\n", start)]):
            return
        self._load.latencies.append(time.perf_counter() - self._began)
        self._load.refused += not self._read.startswith(b"HTTP/1.1 200 ")
        self._read = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("closed"))

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._done.set_result(None)
            self._transport.close()
        else:
            self._began = time.perf_counter()
            self._transport.write(request)


def sent(port: int, requests: Iterator[bytes], connections: int) -> Load:
    """Send all of them over so many connections."""
    load = Load()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        ends = [loop.create_future() for _ in range(connections)]
        for end in ends:
            await loop.create_connection(partial(_Sender, requests, load, end), "127.0.0.1", port)
        await asyncio.gather(*ends)
        load.seconds = time.perf_counter() - began

    uvloop.run(main())
    return load


def post(body: bytes, kind: str) -> bytes:
    """A request with samples."""
    head = f"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
