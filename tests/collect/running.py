"""A collector in a process of its own, on this machine, as `discreet collect` starts it: real sockets, a real store.

Most are forked from a process that has imported everything, which saves each a second; `fresh=True` starts Python anew.
"""

import contextlib
import http.client
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet import LinearSampler, Simplex
from discreet.agreement import Agreement
from discreet.client._protocol import JSON, SAMPLES

PATIENCE = 120.0  # seconds, on machines that do other things as well
PRELOADED = ["discreet.cli._collect", "discreet.collect._serving", "tests.collect.mortal", "uvloop", "httptools"]


def forking() -> ForkServerContext:
    """Processes that begin with all of a service imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


class ForkedService:
    """A service that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(self, arguments: list[str], folder: Path, errors: int, environment: dict[str, str]) -> None:
        reading, writing = os.pipe()
        self.stdout = os.fdopen(reading, encoding="utf-8")
        with Connection(writing, readable=False) as output, Connection(os.dup(errors), readable=False) as complaints:
            given = (arguments, str(folder), environment, output, complaints)  # connections are passed on, not copied
            self._process = forking().Process(target=_run_command, args=given)
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("discreet collect", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, sig: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run_command(
    arguments: list[str], folder: str, environment: dict[str, str], output: Connection, complaints: Connection
) -> None:
    """Be `python -m discreet ARGUMENTS`, in a process that has just been forked."""
    for given, place in ((output, 1), (complaints, 2)):
        os.dup2(given.fileno(), place)
        given.close()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["discreet", *arguments]
    runpy.run_module("discreet", run_name="__main__", alter_sys=True)


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

    process: subprocess.Popen[str] | ForkedService
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
    folder: Path,
    *arguments: str,
    log: str = "log.txt",
    port: int = 0,
    program: str = "discreet",
    fresh: bool = False,
    **environment: str,
) -> Iterator[Collector]:
    """`discreet collect ARGUMENTS` in that folder, until the end of the block; at a free port unless one is named."""
    words = ["collect", *arguments, "--port", str(port), "--json"]
    path = folder / log
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    process: subprocess.Popen[str] | ForkedService
    with path.open("w") as errors:
        if fresh or environment or program != "discreet":
            command = [sys.executable, "-m", program, *words]
            process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables
            )
        else:
            process = ForkedService(words, folder, errors.fileno(), variables)
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
