"""Questions to a server that need not be a friend: an answer that is whole, in time and not too long, or a sentence that says why not.

`ask_server` asks once. Everything has one deadline, however slowly bytes come in; no more is read than the given number of bytes; nothing
is unpacked, and no redirect is followed: it is an answer like others. `NoAnswer` may be tried again: whether the question arrived is not
known.

`Patience` asks again: after a pause that doubles and is drawn at random, or after the one that the server asks for, until patience ends. A
random pause in [0, 2^k) keeps a thousand devices that failed together from coming back together.
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

from discreet._base.files import reason
from discreet._base.showing import pluralise
from discreet.client._protocol import Address
from discreet.errors import POSITIVE, CollectorError, Range

_PART = 1 << 16


class NoAnswer(Exception):
    """No answer, or a part of one."""


@dataclass(frozen=True)
class Answer:
    """What came back, whole."""

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
    """The answer to one question.

    Args:
        address: whom to ask.
        method: GET or POST.
        path: what for, after the address's own folder.
        body: what to send.
        headers: besides those that are always sent.
        timeout: seconds until all of the answer has to be here.
        most: bytes of the body that are read.

    Returns:
        The answer.

    Raises:
        Missing: where there is none in time, or a part of one.
        CollectorError: for a server that cannot be believed to be the one meant, and for an answer that is too long.
    """
    deadline = time.monotonic() + timeout
    sent = {"Accept-Encoding": "identity", "Connection": "close", "Host": address.host_and_port, **(headers or {})}
    try:
        line = socket.create_connection((address.host, address.port), timeout=timeout)
    except (OSError, UnicodeError) as error:
        raise NoAnswer(f"it cannot be reached: {reason(error)}") from None
    try:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            line.settimeout(_seconds_left(deadline))
            line = address.tls.wrap_socket(line, server_hostname=address.host)
        talk = http.client.HTTPConnection(address.host, address.port)
        talk.sock = _TimedSocket(line, deadline)
        with suppress(BrokenPipeError, ConnectionResetError):  # who refuses a long body answers before its end
            talk.request(method, address.folder + path, body=body, headers=sent)
        answer = talk.getresponse()
        content = _read(answer, most, address)
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)
    except ssl.SSLCertVerificationError as error:
        raise CollectorError(f"{address} is not who it says it is: {error.verify_message}") from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":  # what OpenSSL calls an answer in plain text
            raise CollectorError(
                f"{address} does not speak TLS; on this machine the address begins with http://, elsewhere a proxy speaks TLS for it"
            ) from None
        raise NoAnswer(f"TLS failed: {reason(error)}") from None
    except TimeoutError:
        raise NoAnswer(f"no whole answer came within {timeout:g} s") from None
    except OSError as error:
        raise NoAnswer(f"the connection broke: {reason(error)}") from None
    except http.client.HTTPException as error:
        raise NoAnswer(f"its answer was cut short, or is not HTTP: {type(error).__name__}") from None
    finally:
        line.close()


def _read(answer: http.client.HTTPResponse, most: int, address: Address) -> bytes:
    parts, length = [], 0
    while part := answer.read(min(_PART, most + 1 - length)):
        parts.append(part)
        length += len(part)
        if length > most:
            raise CollectorError(f"{address} answers with more than {most:,} bytes, which is more than there is to say")
    if answer.length:  # of a body whose length was stated: what has not come
        raise NoAnswer(f"its answer was cut short, {answer.length:,} bytes before its end")
    return b"".join(parts)


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError
    return left


class _TimedSocket:
    """A socket as `http.client` uses one, with one deadline for all that it does; whoever opened the line closes it."""

    def __init__(self, line: socket.socket, deadline: float) -> None:
        self._line, self._deadline = line, deadline

    def sendall(self, data: bytes) -> None:
        self._line.settimeout(_seconds_left(self._deadline))
        self._line.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_TimedReader(self._line, self._deadline))

    def close(self) -> None:
        """`http.client` lets go of it once the headers are read, and goes on reading."""


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
}  # busy or being restarted, it or what stands before it: nothing is wrong with the question
_FIRST, _LONGEST = 0.25, 30.0  # seconds
_CHANCE = random.SystemRandom()  # which processes that were forked do not share
_PATIENCE = Range(0.0, 1e9)


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for one answer, and for all of them together with the pauses between."""

    timeout: float
    total: float

    def __post_init__(self) -> None:
        POSITIVE.check("timeout", self.timeout, "seconds to wait for an answer")
        _PATIENCE.check("patience", self.total, "seconds to keep trying, 0 to try once")

    def answer(self, who: object, ask: Callable[[float], Answer]) -> Answer:
        """The first answer that is not a reason to ask again. `ask`: with so many seconds for it."""
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
    """The seconds that a server asks to wait, as a number or a date; None where it does not, or nothing that can be read."""
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
