"""Slow, endless and broken requests: each has an end, and is answered by a status code and one sentence where it can be."""

import contextlib
import json
import re
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.collect._requests import MOST_BODY, MOST_CONNECTIONS, MOST_HEAD
from tests.collect.postgres import until
from tests.collect.running import PATIENCE, Collector, agreed, one, running


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("impatient")
    agreed(folder)
    with running(folder, "agreement.json", "--patience", "0.5") as found:
        yield found
        assert found.get("/health").json == {"status": "ok"}
        assert found.said == ""


@contextlib.contextmanager
def connected(collector: Collector) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", collector.port), timeout=PATIENCE) as found:
        yield found


def answered(connection: socket.socket) -> tuple[int, dict[str, str]]:
    """The status and the body of the last thing that is said before the connection ends."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            found += part
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


HEAD = b"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /health HT", 408),
        (HEAD, 408),
        (HEAD + b"Content-Length: 100\r\n\r\n{", 408),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 408),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET http:// HTTP/1.1\r\n\r\n", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /" + b"a" * MOST_HEAD + b" HTTP/1.1\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * MOST_HEAD, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * MOST_HEAD, 431),
    ],
)  # fmt: skip
def test_what_is_slow_or_endless_or_no_request_is_ended(collector: Collector, sent: bytes, status: int) -> None:
    with connected(collector) as connection:
        connection.sendall(sent)
        found, said = answered(connection)
    assert found == status
    assert said.keys() == {"error"}


def test_a_body_that_says_it_is_too_large_is_refused_at_once(collector: Collector) -> None:
    with connected(collector) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (MOST_BODY + 1))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_a_body_of_chunks_that_is_too_large_is_refused(collector: Collector) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MOST_BODY // (1 << 16) + 1):
            yield b" " * (1 << 16)

    answer = collector.ask("POST", "/samples", chunks(), {"Content-Type": "application/json"})
    assert answer.status == 413


def test_an_answer_that_nobody_reads_is_not_kept(collector: Collector) -> None:
    with connected(collector) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 12)
    assert collector.get("/health").status == 200


def test_requests_that_come_ahead_of_answers_are_answered_in_their_order(collector: Collector) -> None:
    paths = [b"/health", b"/nowhere", b"/estimate", b"/samples"]
    with connected(collector) as connection:
        requests = [b"GET %s HTTP/1.1\r\nHost: localhost\r\n" % path for path in paths]
        connection.sendall(b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    assert re.findall(rb"HTTP/1.1 (\d+)", found) == [b"200", b"404", b"200", b"405"]


def test_whoever_has_said_all_is_answered_all_the_same(collector: Collector) -> None:
    with connected(collector) as connection:
        connection.sendall(b"GET /estimate HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    assert found.startswith(b"HTTP/1.1 200 OK\r\n")
    assert found.endswith(b"}")


def test_too_many_requests_ahead_end_the_connection(collector: Collector) -> None:
    with connected(collector) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000)
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                found += part
    assert found.count(b"200 OK") < 5000


def test_whoever_goes_away_leaves_nothing_behind(collector: Collector) -> None:
    for sent in (b"", b"GET", HEAD, HEAD + b"Content-Length: 10\r\n\r\n{", HEAD + b"Content-Length: 2\r\n\r\n{}"):
        with connected(collector) as connection:
            connection.sendall(sent)
    assert collector.get("/health").status == 200


def test_a_sender_is_answered_who_waits_to_be_asked_for_the_body(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    body = json.dumps(one(agreement, "ann", 1)).encode()
    with running(tmp_path, "agreement.json") as collector, connected(collector) as connection:
        connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(body)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")


def test_more_connections_than_there_may_be_are_told_to_come_again(tmp_path: Path) -> None:
    agreed(tmp_path)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * MOST_CONNECTIONS), most))
    with running(tmp_path, "agreement.json") as collector:
        with contextlib.ExitStack() as held:
            for _ in range(MOST_CONNECTIONS):
                held.enter_context(connected(collector))
            with connected(collector) as one_more:
                told = b""
                with contextlib.suppress(ConnectionError):
                    while part := one_more.recv(1 << 16):
                        told += part
        assert told.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1\r\n" in told
        until(lambda: collector.get("/health").status == 200, "connections stay taken")
        assert collector.said == ""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n\r\n", 400),
        (HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", 400),
        (
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
            200,
        ),
        (b"CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    ],
)
def test_what_follows_a_request_for_another_protocol_is_not_read_as_requests(
    collector: Collector, sent: bytes, status: int
) -> None:
    """Behind a proxy that counts it as a body, answers to it would go to whoever asks next."""
    inside = b"GET /collection HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(collector) as connection:
        connection.sendall(sent % len(inside) if b"%" in sent else sent)
        with contextlib.suppress(ConnectionError):
            connection.sendall(inside)
        found, said = answered(connection)  # the only answer: two would not be JSON
    assert found == status
    assert "collection" not in said
