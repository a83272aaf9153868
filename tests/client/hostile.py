"""A server that misbehaves, on a real socket: it says what it is told to, in turn, and remembers what it was asked."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from discreet.agreement import Agreement
from discreet.client._protocol import AGREEMENT, COLLECTION, JSON, SAMPLES, WEIGHTS

PATIENCE = 60.0  # seconds, on machines that do other things as well
Reply = Callable[["Server", socket.socket], None]


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Server:
    """What is said at each path, in turn, and the last of it for ever; and what was asked."""

    address: str
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0  # bytes of those that send without end

    def samples(self) -> list[Any]:
        return [each.json for each in self.asked if each.path == SAMPLES]

    def reply(self, path: str) -> Reply:
        waiting = self.replies.get(path, [said(404)])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


def said(status: int, body: bytes | dict[str, Any] = b"", **headers: str) -> Reply:
    """An answer like others."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def reply(_: Server, line: socket.socket) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", f"Content-Type: {JSON}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        line.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    return reply


def hung_up(_: Server, line: socket.socket) -> None:
    """No answer at all."""


def cut_short(_: Server, line: socket.socket) -> None:
    """A part of an answer."""
    line.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"counted": 1')


def raw(content: bytes) -> Reply:
    """Whatever these bytes are."""

    def reply(_: Server, line: socket.socket) -> None:
        line.sendall(content)

    return reply


def endless(head: bytes, part: bytes) -> Reply:
    """A beginning, and then the same for ever, until nobody takes it any more."""

    def reply(server: Server, line: socket.socket) -> None:
        line.sendall(head)
        while True:
            line.sendall(part)
            server.sent += len(part)

    return reply


def dripping(head: bytes, pause: float) -> Reply:
    """A beginning, and then a byte now and then, for ever."""

    def reply(server: Server, line: socket.socket) -> None:
        line.sendall(head)
        while True:
            line.sendall(b" ")
            server.sent += 1
            time.sleep(pause)

    return reply


def offering(agreed: Agreement, /, **changes: Any) -> dict[str, Any]:
    """What a collection says of itself."""
    listed = {"agreement": agreed.id, "follows": None, "rounds": agreed.rounds, "open": [1], "purpose": ""}
    good = {
        "collection": agreed.id,
        "agreement": agreed.id,
        "round": 1,
        "enrolment": False,
        "agreements": [listed],
    }
    return {**good, **changes}


COUNTED = {"counted": 1, "again": 0, "refused": []}


def replies(agreed: Agreement, /, **changes: Reply | list[Reply]) -> dict[str, list[Reply]]:
    """Those of a collector that behaves, but for the changes: collection=, agreement=, samples=, weights=."""
    found: dict[str, Reply | list[Reply]] = {
        "collection": said(200, offering(agreed)),
        "agreement": said(200, agreed.text.encode()),
        "samples": said(200, COUNTED),
        "weights": said(404),
        **changes,
    }
    paths = {"collection": COLLECTION, "agreement": AGREEMENT, "samples": SAMPLES, "weights": WEIGHTS}
    return {paths[name]: reply if isinstance(reply, list) else [reply] for name, reply in found.items()}


@contextlib.contextmanager
def serving(
    behaviour: dict[str, list[Reply]], wrap: Callable[[socket.socket], socket.socket] | None = None
) -> Iterator[Server]:
    """A server that behaves like this, one connection at a time in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(f"http://127.0.0.1:{listening.getsockname()[1]}", behaviour)
        lines: list[socket.socket] = []
        ended = threading.Event()

        def stay() -> None:
            while not ended.is_set():
                try:
                    line, _ = listening.accept()
                except OSError:
                    return
                lines.append(line)
                threading.Thread(target=answer, args=(line,), daemon=True).start()

        def answer(line: socket.socket) -> None:
            with contextlib.suppress(OSError, ValueError), line:
                line.settimeout(PATIENCE)
                talk = line if wrap is None else wrap(line)
                with talk:
                    asked = _request(talk)
                    server.asked.append(asked)
                    server.reply(asked.path.partition("?")[0])(server, talk)

        thread = threading.Thread(target=stay, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            for line in lines:
                with contextlib.suppress(OSError):
                    line.close()
            thread.join(PATIENCE)


def _request(line: socket.socket) -> Asked:
    with line.makefile("rb") as file:
        method, path, _ = file.readline().decode().split()
        headers = {}
        while (header := file.readline().decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, body)
