"""HTTP requests to an untrusted server: an answer that is complete, in time and short enough, or an error that says why not.

`ask_server` asks once. One deadline covers everything, however slowly bytes arrive. It reads at most the given number of bytes,
decompresses nothing and follows no redirect. `NoAnswer` may be retried: it is not known whether the request arrived.

`Patience` retries after a random pause in [0, 2^k), or after the pause that the server requests, until its time is over. Random pauses keep
a thousand devices that failed together from returning together.
"""

import http.client
import io
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from discreet._base.files import error_reason
from discreet._base.showing import pluralise
from discreet.client._protocol import Address
from discreet.errors import POSITIVE, CollectorError, Range

_PART = 1 << 16


class NoAnswer(Exception):
    """There was no complete answer."""


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def ask_server(
    address: Address,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float,
    most: int,
) -> Answer:
    """The answer to one request.

    Args:
        address: of the server.
        method: GET or POST.
        path: after the address's own folder.
        body: of the request.
        headers: in addition to those that are always sent.
        timeout: seconds until the answer must be complete.
        most: the largest number of bytes of the answer's body.

    Returns:
        The answer.

    Raises:
        NoAnswer: if no complete answer arrives in time.
        CollectorError: for a server whose certificate is invalid, and for an answer that is too long.
    """
    deadline = time.monotonic() + timeout
    sent = {"Accept-Encoding": "identity", "Connection": "close", "Host": address.host_and_port, **(headers or {})}
    try:
        line = socket.create_connection((address.host, address.port), timeout=timeout)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"it cannot be reached: {error_reason(error)}") from None
    try:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            line.settimeout(_seconds_left(deadline))
            line = address.tls.wrap_socket(line, server_hostname=address.host)
        talk = http.client.HTTPConnection(address.host, address.port)
        talk.sock = _TimedSocket(line, deadline)
        with suppress(
            BrokenPipeError, ConnectionResetError
        ):  # a server that rejects a long body answers before its end
            talk.request(method, address.folder + path, body=body, headers=sent)
        answer = talk.getresponse()
        content = _read_answer(answer, most, address)
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)
    except ssl.SSLCertVerificationError as error:
        raise CollectorError(f"{address} has no valid certificate: {error.verify_message}") from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":  # OpenSSL's error for an answer in plain text
            raise CollectorError(
                f"{address} does not use TLS; on this machine use http://, elsewhere put a TLS proxy in front of it"
            ) from None
        raise NoAnswer(f"TLS failed: {error_reason(error)}") from None
    except TimeoutError:
        raise NoAnswer(f"no whole answer came within {timeout:g} s") from None
    except OSError as error:
        raise NoAnswer(f"the connection broke: {error_reason(error)}") from None
    except http.client.HTTPException as error:
        raise NoAnswer(f"its answer was cut short, or is not HTTP: {type(error).__name__}") from None
    finally:
        line.close()


def _read_answer(answer: http.client.HTTPResponse, most: int, address: Address) -> bytes:
    parts, length = [], 0
    while part := answer.read(min(_PART, most + 1 - length)):
        parts.append(part)
        length += len(part)
        if length > most:
            raise CollectorError(f"{address} answers with more than {most:,} bytes, more than any valid answer has")
    if answer.length:  # missing bytes of a body whose length was stated
        raise NoAnswer(f"its answer was cut short, {answer.length:,} bytes before its end")
    return b"".join(parts)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError
    return left


class _TimedSocket:
    """A socket for `http.client` with one deadline for all operations; its opener closes it."""

    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._deadline = line, deadline

    def sendall(self, data: bytes) -> None:
        self._line.settimeout(_seconds_left(self._deadline))
        self._line.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_TimedReader(self._line, self._deadline))

    def close(self) -> None:
        """Do nothing: `http.client` closes it after the headers and continues to read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._deadline = line, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self._line.settimeout(_seconds_left(self._deadline))
        return self._line.recv_into(into)


_AGAIN = {
    408,
    425,
    429,
    502,
    503,
    504,
}  # the server or a proxy is busy or restarting; the request itself is fine
_FIRST, _LONGEST = 0.25, 30.0  # seconds
_CHANCE = random.SystemRandom()  # not shared by forked processes
_PATIENCE = Range(0.0, 1e9)


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for one answer, and for all attempts together with their pauses."""

    timeout: float
    total: float

    def __post_init__(self) -> None:
        POSITIVE.check("timeout", self.timeout, "seconds to wait for an answer")
        _PATIENCE.check("patience", self.total, "seconds to keep trying, 0 to try once")

    def answer(self, who: object, ask: Callable[[float], Answer]) -> Answer:
        """The first answer that is no reason to retry. `ask` is called with the seconds it may take."""
        started, pause, tries = time.monotonic(), _FIRST, 0
        while True:
            tries += 1
            said = None
            try:
                answer = ask(self.timeout)
            except NoAnswer as problem:
                why = str(problem)
            else:
                if answer.status not in _AGAIN:
                    return answer
                why, said = f"it answers {answer.status}", retry_seconds(answer.headers)
            wait = _CHANCE.uniform(0.0, pause) + (said or 0.0)
            if time.monotonic() - started + wait > self.total:
                later = "" if said is None else f", and asks to wait {said:.0f} s"
                raise CollectorError(
                    f"{who} does not take it: {why}{later} (asked {pluralise(tries, 'time')}); try again later"
                )
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST)


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, as a number or a date; None if there is no readable value."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:12])
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
