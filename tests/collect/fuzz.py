"""Hostile requests to a running service: `python -m tests.collect.fuzz --requests 100000`.

Requests that were good until they were changed, at the level of fields, of bytes and of headers; Arrow streams with bytes changed; bytes that
are nothing; connections that are slow, broken off or reset. In between, good ones. Afterwards: no answer was a 5xx but a declared
503, every refusal was one sentence, nothing was printed, memory is what it was, and the good ones are all counted, each once.
"""

import argparse
import asyncio
import contextlib
import io
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.agreement import Agreement
from discreet.client._protocol import ARROW, JSON
from tests.collect.running import Collector, agreed, running

TOGETHER = 48  # connections
WAIT = 20.0  # seconds for an answer
GROWTH = 256 << 20  # bytes of memory that a service may hold more of than after the first requests
HOSTILE: list[Any] = [
    None, True, False, 0, -1, 3, 5, 2**63, 2**64, 10**40, 1.0, 0.5, -0.0, 1e308, "", " ", "0", "1", "a", "é", "\0", "\ud800", "\u202e",
    "a" * 199, "a" * 201, "a" * 5000, [], {}, [[]], [0], {"a": 1}, "ann", "' OR 1=1 --", "../../etc/passwd", "<script>", "%00", "\r\nX: y",
]  # fmt: skip
PATHS = [
    "/samples", "/estimate", "/collection", "/agreement", "/weights", "/health", "/metrics", "/", "/take-part", "/pages/live.js", "/nowhere",
    "/samples/", "//samples", "/samples/../estimate", "/%73amples", "/samples%00", "/samples?x=1", "*", "http://localhost/estimate", "/é",
]  # fmt: skip
HEADERS = [
    ("Host", ["", "localhost", "127.0.0.1:1", "elsewhere.example", "[::1]", "localhost:", ":", "a" * 300, "localhost\x00"]),
    ("Origin", ["null", "http://localhost", "https://elsewhere.example", "", "://"]),
    ("Content-Type", [JSON, ARROW, "text/plain", "", "application/json; charset=utf-16", "multipart/form-data", "APPLICATION/JSON", "é"]),
    ("Content-Length", ["0", "1", "-1", "+1", "1e3", "5, 5", "99999999", "18446744073709551616", "", "0x10", "５"]),
    ("Transfer-Encoding", ["chunked", "gzip, chunked", "identity", "chunked, chunked", "CHUNKED", "xchunked", ""]),
    ("Content-Encoding", ["gzip", "identity", "br", ""]),
    ("Authorization", ["Bearer", "Bearer x", "Basic abc", "é", "Bearer " + "a" * 3000, ""]),
    ("If-None-Match", ["*", '"', 'W/"x"', "a," * 1000, ""]),
    ("Expect", ["100-continue", "200-ok"]),
    ("Connection", ["close", "keep-alive", "upgrade", "Upgrade, HTTP2-Settings", ""]),
    ("Upgrade", ["websocket", "h2c", "TLS/1.0"]),
    ("Range", ["bytes=0-1", "bytes=9-0,-1", "x"]),
    ("X-Forwarded-For", ["1.2.3.4", "é"]),
    ("Accept-Encoding", ["gzip", "*;q=0", "é"]),
    ("Cookie", ["a=b", "=" * 500]),
    ("X" * 300, ["y"]),
    ("X-Long", ["y" * 20_000]),
]  # fmt: skip
METHODS = [
    "GET",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "CONNECT",
    "get",
    "PRI",
    "",
    "G\x00T",
    "A" * 100,
]


@dataclass
class Seen:
    """What the service answered, and what went wrong."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Attacker:
    """Makes requests of every kind, reproducibly."""

    def __init__(self, agreement: Agreement, seed: int) -> None:
        self.random = random.Random(seed)
        self._agreement = agreement.id

    def request(self) -> bytes:
        """Bytes to send."""
        kinds: list[tuple[Callable[[], bytes], int]] = [
            (self._fields, 30), (self._bytes, 20), (self._arrow, 20), (self._headers, 15), (self._query, 8), (self._noise, 5),
            (self._large, 2),
        ]  # fmt: skip
        make = self.random.choices([each for each, _ in kinds], [weight for _, weight in kinds])[0]
        found = make()
        if self.random.random() < 0.05:
            found += make()  # ahead of the answer
        return found[: self.random.randrange(len(found) + 1)] if self.random.random() < 0.05 else found

    def _row(self) -> dict[str, Any]:
        return {"client": f"m{self.random.getrandbits(40):x}", "key": "k", "sample": self.random.randrange(5)}

    def _document(self) -> dict[str, Any]:
        about = {"agreement": self._agreement, "round": 1}
        if self.random.random() < 0.5:
            return {**about, **self._row()}
        return {**about, "samples": [self._row() for _ in range(self.random.choice([1, 2, 3, 30]))]}

    def _fields(self) -> bytes:
        document = self._document()
        for _ in range(self.random.randrange(3)):
            target = document
            if "samples" in document and isinstance(document["samples"], list) and self.random.random() < 0.7:
                rows = [row for row in document["samples"] if isinstance(row, dict)]
                target = self.random.choice(rows) if rows else document
            name = self.random.choice([*target, "more", "samples", "sample", ""])
            match self.random.randrange(4):
                case 0:
                    target.pop(name, None)
                case 1:
                    target[name] = self.random.choice(HOSTILE)
                case 2:
                    target[name] = [self.random.choice(HOSTILE) for _ in range(3)]
                case 3:
                    target[self.random.choice(list(target) or ["x"])] = self.random.choice(HOSTILE)
        body = json.dumps(document).encode()
        match self.random.randrange(12):
            case 0:
                body = body.replace(b'"round"', b'"round": 1, "round"', 1)
            case 1:
                body = body.replace(
                    b"1", self.random.choice([b"NaN", b"1e999", b"-Infinity", b"9" * 5000, b"01", b"1."]), 1
                )
            case 2:
                depth = self.random.choice([10, 990, 1010, 50_000])
                body = body.replace(b'"k"', b"[" * depth + b"]" * depth, 1)
            case 3:
                body = body.decode().encode(self.random.choice(["utf-16", "utf-8-sig", "utf-32"]))
        return post(body, JSON)

    def _changed(self, content: bytes) -> bytes:
        found = bytearray(content)
        for _ in range(self.random.choice([1, 1, 2, 5, 30])):
            place = self.random.randrange(len(found) + 1)
            match self.random.randrange(4):
                case 0 if place < len(found):
                    found[place] = self.random.randrange(256)
                case 1:
                    found[place:place] = self.random.randbytes(self.random.choice([1, 4, 40]))
                case 2:
                    del found[place : place + self.random.choice([1, 4, 40])]
                case 3 if place < len(found):
                    found[place] ^= 1 << self.random.randrange(8)
        return bytes(found)

    def _bytes(self) -> bytes:
        body = json.dumps(self._document()).encode()
        if self.random.random() < 0.7:
            return post(self._changed(body), JSON)
        return self._changed(post(body, JSON))

    def _arrow(self) -> bytes:
        rows = self.random.choice([0, 1, 3, 100])
        names = pa.array([f"a{self.random.getrandbits(40):x}" for _ in range(rows)], pa.string())
        samples: Any = pa.array([self.random.randrange(5) for _ in range(rows)], pa.int64())
        columns = {"client": names, "key": names, "sample": samples}
        match self.random.randrange(8):
            case 0:
                columns["client"] = names.dictionary_encode()
            case 1:
                kind = self.random.choice([pa.float64(), pa.string(), pa.bool_(), pa.int8(), pa.uint64(), pa.binary()])
                columns["sample"] = samples.cast(pa.string()).cast(kind) if kind == pa.binary() else samples.cast(kind)
            case 2:
                columns["sample"] = pa.array([None] * rows, self.random.choice([pa.int64(), pa.null(), pa.string()]))
            case 3:
                columns["more"] = pa.array(
                    [[1]] * rows, self.random.choice([pa.list_(pa.int8()), pa.list_view(pa.int8())])
                )
        metadata = {"agreement": self._agreement, "round": self.random.choice(["1", "1", "1", "0", "x", "2", ""])}
        table = pa.table(columns).replace_schema_metadata(metadata if self.random.random() < 0.9 else None)
        options = pa.ipc.IpcWriteOptions(compression=self.random.choice([None, None, "lz4", "zstd"]))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        body = sink.getvalue()
        return post(self._changed(body) if self.random.random() < 0.85 else body, ARROW)

    def _headers(self) -> bytes:
        method, path = self.random.choice(METHODS), self.random.choice(PATHS)
        version = self.random.choice(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "", "http/1.1"])
        lines = (
            [f"{method} {path} {version}", "Host: localhost"] if self.random.random() < 0.8 else [f"{method} {path}"]
        )
        for _ in range(self.random.randrange(5)):
            name, values = self.random.choice(HEADERS)
            lines.append(f"{name}{self.random.choice([': ', ':', ' : ', ''])}{self.random.choice(values)}")
        end = self.random.choice(["\r\n", "\r\n", "\r\n", "\n", "\r"])
        body = self.random.choice(
            [
                b"",
                b"{}",
                b"0\r\n\r\n",
                b"5\r\nhello\r\n0\r\nX: y\r\n\r\n",
                b"fffffffffffffffff\r\n",
                b"2;a=b\r\n{}\r\n0\r\n\r\n",
            ]
        )
        return (end.join(lines) + end + end).encode() + body

    def _query(self) -> bytes:
        path = self.random.choice(["/estimate", "/agreement", "/collection", "/weights", "/health", "/metrics"])
        names = ["agreement", "round", "confidence", "x", ""]
        values = [
            self._agreement,
            self._agreement[:12],
            "1",
            "0",
            "2",
            "0.95",
            "0.5",
            "nan",
            "-1",
            "%00",
            "%ff",
            "9" * 400,
            "a" * 3000,
            "%D9%A3",
            "",
        ]
        query = "&".join(
            f"{self.random.choice(names)}={self.random.choice(values)}" for _ in range(self.random.randrange(4))
        )
        return f"{self.random.choice(['GET', 'HEAD'])} {path}?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def _noise(self) -> bytes:
        return self.random.randbytes(self.random.choice([1, 10, 100, 5000, 40_000]))

    def _large(self) -> bytes:
        """Bodies that unfold to much, or never end."""
        unit = self.random.choice([b"{},", b"[],", b'{"a":1},', b"0,", b'"",', b" ", b"[", b"9"])
        size = self.random.choice([100_000, 1_000_000, 4_000_000, 5_000_000])
        body = b"[" + unit * (size // len(unit))
        if self.random.random() < 0.3:
            return self._head(b"Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        return post(body, JSON)

    @staticmethod
    def _head(length: bytes) -> bytes:
        return b"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + length + b"\r\n\r\n"


def post(body: bytes, kind: str) -> bytes:
    """A request with a body."""
    head = f"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answers(reader: asyncio.StreamReader, seen: Seen, *, heads: bool) -> bool:
    """Read one answer and hold it to what is promised; False where there is none. `heads`: it may be one without its body."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        if status == 100:
            return await answers(reader, seen, heads=heads)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        seen.statuses[str(status)] += 1
        if status >= 500 and not (status == 503 and headers.get("retry-after")):
            seen.wrong.append(f"{status}: {head!r}")
        if heads:
            return False
        length = int(headers.get("content-length", 0))
        body = b"" if status in (204, 304) else await asyncio.wait_for(reader.readexactly(length), WAIT)
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return False
    if status >= 400 and headers.get("content-type") == JSON:
        said = json.loads(body)
        if not (isinstance(said.get("error"), str) and said["error"].isprintable()):
            seen.wrong.append(f"{status}: {body[:200]!r}")
    elif status >= 400:
        seen.wrong.append(f"{status} without a sentence: {head!r}")
    return True


async def attack(port: int, attacker: Attacker, seen: Seen) -> None:
    """One hostile request, on a connection that may be slow or end badly."""
    sent, manner = attacker.request(), attacker.random.random()
    cut = attacker.random.randrange(1, len(sent) + 1) if sent else 0
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), WAIT)
    except OSError:
        return
    try:
        if manner < 0.05:  # in two parts, a moment apart
            writer.write(sent[:cut])
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(sent[cut:])
        else:
            writer.write(sent)
        if manner > 0.95:
            if manner > 0.975:
                writer.close()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3.0 if manner > 0.93 else 0.5):  # the longer is past the service's patience
                await writer.drain()
                for _ in range(sent.count(b" HTTP/1.1\r\n") or 1):
                    if not await answers(reader, seen, heads=b"HEAD" in sent):
                        break
    except OSError:
        pass
    finally:
        writer.transport.abort()


async def good(port: int, agreement: Agreement, name: str, seen: Seen) -> None:
    """One good request, sent again until it is answered."""
    row = {"agreement": agreement.id, "round": 1, "client": name, "key": f"key-{name}", "sample": 2}
    for _ in range(200):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(post(json.dumps(row).encode(), JSON))
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT)
            finally:
                writer.transport.abort()
            if head.split()[1] == b"200":
                return
            if head.split()[1] != b"503":
                seen.wrong.append(f"a good request was answered by {head!r}")
                return
        except (OSError, EOFError, TimeoutError):
            pass
        await asyncio.sleep(0.1)
    seen.wrong.append("a good request was never answered")


def memory(collector: Collector, which: str = "VmRSS") -> int:
    """Bytes that a process holds, or has held at most (VmHWM)."""
    status = Path(f"/proc/{collector.process.pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(which)).split()[1])


async def attacks(collector: Collector, target: Agreement, own: Agreement, first: int, last: int, seen: Seen) -> int:
    """Requests numbered first to last, many at a time; one in ten is good. How many were."""
    numbers = iter(range(first, last))

    async def one_after_another() -> int:
        sent = 0
        for number in numbers:
            if number % 10 == 0:
                await good(collector.port, own, f"good-{number}", seen)
                sent += 1
            else:
                await attack(collector.port, Attacker(target, number), seen)
        return sent

    return sum(await asyncio.gather(*(one_after_another() for _ in range(TOGETHER))))


def run(requests: int, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Send so many, and what was seen; anything that must not be is an AssertionError."""
    own, target = agreed(folder), agreed(folder, name="target.json", purpose="attacked")
    seen = Seen()
    offset = 10**9 * seed
    with running(folder, "agreement.json", "target.json", "--patience", "1") as collector:
        began, warm = time.monotonic(), max(requests // 5, 10)
        sent = asyncio.run(attacks(collector, target, own, offset, offset + warm, seen))
        before = memory(collector)
        sent += asyncio.run(attacks(collector, target, own, offset + warm, offset + requests, seen))
        seconds = time.monotonic() - began
        after, most = memory(collector), memory(collector, "VmHWM")
        found = collector.get(f"/estimate?agreement={own.id}").json
        counted = [share["samples"] for share in found["shares"]]
        assert seen.wrong == [], seen.wrong[:5]
        assert counted == [0, 0, sent, 0, 0], (counted, sent)
        assert collector.said == "", collector.said[:2000]
        assert after - before < GROWTH, (before, after)
        assert collector.stop() == 0
    return {
        "requests": requests,
        "good": sent,
        "statuses": dict(sorted(seen.statuses.items())),
        "memory": {"before": before >> 20, "after": after >> 20, "most": most >> 20},
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(arguments.requests, Path(folder), arguments.seed)

    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
