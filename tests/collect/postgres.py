"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, reached by a socket in that folder."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg

from tests.needed import cannot_run

_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "log_min_messages": "fatal",
    "fsync": "off",  # processes are killed here, not the machine: what they have written stays
}


class Server:
    """A server that can be stopped, killed and started again; `database()` is the address of a new empty database."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self._programs, self.folder, self._user = programs, folder, user
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, program: str, *arguments: str) -> None:
        """One of PostgreSQL's own programs, as whoever owns the cluster."""
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, user=self._user, capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(done.stderr)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._launch()
        until(self._answers, "PostgreSQL did not start")

    def _launch(self) -> None:
        options = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), *options],
            user=self._user, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:  # sessions of one that was killed still held the folder: once more
            self._launch()
        try:
            psycopg.connect(self.address(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def tell(self, number: int) -> None:
        """Send a signal to the postmaster: SIGINT ends all sessions, SIGQUIT at once, SIGKILL without a word."""
        assert self._process is not None
        self._process.send_signal(number)

    def tell_all(self, number: int) -> None:
        """Send a signal to every process of the server."""
        assert self._process is not None
        for process in [self._process.pid, *_children(self._process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def limit(self, size: int | None) -> None:
        """Let no file of it grow past so many bytes; sessions that are there and those to come."""
        assert self._process is not None
        for process in [self._process.pid, *_children(self._process.pid)]:
            limits = f"--fsize={'unlimited' if size is None else size}:"  # the soft one: it can be taken back
            done = subprocess.run(["prlimit", f"--pid={process}", limits], user=self._user, check=False)
            assert done.returncode == 0 or not Path(f"/proc/{process}").exists()  # its helpers come and go

    def kill(self) -> None:
        """End every process of it without a word."""
        self.tell_all(signal.SIGKILL)
        self.wait()

    def stop(self) -> None:
        """End all sessions, and the server."""
        self.tell(signal.SIGINT)
        self.wait()

    def wait(self) -> None:
        """Until it has ended."""
        assert self._process is not None
        self._process.wait(timeout=60)

    def address(self, database: str = "postgres", schema: str = "public") -> str:
        """Where a schema of a database of it is found."""
        return f"postgresql://postgres@/{database}?host={self.folder}&options=-csearch_path%3D{schema}"

    def database(self) -> str:
        """The address of what is as good as a new empty database: a schema of its own, which is made and removed a hundred times as fast."""
        name = f"collection{next(self._numbers)}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return self.address(schema=name)


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(status.parent.name))
    return found


@contextmanager
def server() -> Iterator[Server]:
    """A running server, gone at the end with all that it holds."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        cannot_run("PostgreSQL is not installed: apt-get install postgresql")
    user = None
    if os.getuid() == 0:  # as whom PostgreSQL refuses to run
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            cannot_run("there is no user postgres, and PostgreSQL does not run as root")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short name: that of a socket may have 107 bytes
    try:
        if user is not None:
            shutil.chown(folder, user)
        one = Server(found[-1].parent, folder, user)
        one.run(
            "initdb",
            "-D",
            str(folder / "data"),
            "-U",
            "postgres",
            "--auth=trust",
            "--no-instructions",
            "--no-sync",
            "--wal-segsize=1",
        )
        one.start()
        try:
            yield one
        finally:
            one.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def until(condition: Callable[[], bool], otherwise: str, seconds: float = 120.0) -> None:
    """Poll a condition; fail with a text if it does not hold in time. Machines that do other things as well need long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)
