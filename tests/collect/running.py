"""A collector in a process of its own, on this machine, as `discreet collect` starts it: real sockets, a real store."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet import LinearSampler, Simplex
from discreet._protocol import JSON, SAMPLES
from discreet.agreement import Agreement

PATIENCE = 120.0  # seconds, on machines that do other things as well


@dataclass(frozen=True)
class Answer:
    """What a request was answered with."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Collector:
    """A running service."""

    process: subprocess.Popen[str]
    address: str
    log: Path

    @property
    def port(self) -> int:
        found = urlsplit(self.address).port
        assert found is not None
        return found

    @property
    def said(self) -> str:
        """All that it has said on standard error."""
        return self.log.read_text()

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def send(self, document: Any, kind: str = JSON, **headers: str) -> Answer:
        """Send samples: a document, or bytes as they are."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.ask("POST", SAMPLES, body, {"Content-Type": kind, **headers})

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """Tell it to stop, and its exit status."""
        self.process.send_signal(sig)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def running(
    folder: Path, *arguments: str, log: str = "log.txt", port: int = 0, program: str = "discreet", **environment: str
) -> Iterator[Collector]:
    """`discreet collect ARGUMENTS` in that folder, until the end of the block; at a free port unless one is named."""
    command = [sys.executable, "-m", program, "collect", *arguments, "--port", str(port), "--json"]
    path = folder / log
    with path.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
    assert process.stdout is not None
    slow = threading.Timer(PATIENCE, process.kill)
    slow.start()
    try:
        line = process.stdout.readline()
        slow.cancel()
        assert line, path.read_text()
        yield Collector(process, json.loads(line)["address"], path)
    finally:
        slow.cancel()
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def agreed(folder: Path, outcomes: Any = 5, *, name: str = "agreement.json", **more: Any) -> Agreement:
    """An agreement on so many outcomes, written to a file of a folder."""
    sampler = LinearSampler(Simplex(outcomes), epsilon=1.0)
    made = Agreement.of(sampler, **{"purpose": "tests", **more})
    made.write(folder / name)
    return made


def one(agreement: Agreement, client: str, sample: Any, *, key: str | None = None, round: int = 1) -> dict[str, Any]:
    """What a client sends."""
    said = {"agreement": agreement.id, "round": round, "client": client, "key": key or f"key-{client}"}
    return {**said, "sample": sample}
