"""Who may call the service by which name, whose pages may read it, and what it says of a fault of its own."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.collect._requests import normalise_origin, print_fault_without_message
from discreet.errors import DiscreetError
from tests.collect.running import agreed, one, running

CLOSED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def test_a_service_is_closed_to_other_sites_unless_they_are_allowed(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    ours, theirs = "https://survey.example", "https://elsewhere.example"
    with running(tmp_path, "agreement.json", "--allow-origin", ours, "--allow-host", "collect.example") as collector:
        for host, status in (
            ("collect.example", 200),
            ("collect.example:443", 200),
            ("localhost", 200),
            ("other.example", 403),
        ):
            assert collector.ask("GET", "/estimate", headers={"Host": host}).status == status
        read = collector.ask("GET", "/estimate", headers={"Origin": ours})
        assert (read.headers["Access-Control-Allow-Origin"], read.headers["Vary"]) == (ours, "Origin")
        assert {name: read.headers[name] for name in CLOSED} == CLOSED
        assert (
            collector.ask("GET", "/estimate", headers={"Origin": theirs}).headers["Access-Control-Allow-Origin"] is None
        )
        for origin, status in ((ours, 204), (theirs, 403), ("null", 403)):
            asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            assert collector.ask("OPTIONS", "/samples", headers=asked).status == status
        assert collector.send(one(agreement, "ann", 0), Origin=ours).status == 200
        own = f"http://127.0.0.1:{collector.port}"
        wrong = (theirs, "null", "https://survey.example.elsewhere.example", f"{theirs}://127.0.0.1:{collector.port}")
        for origin in (*wrong, "http://127.0.0.1:1", f"x{own}.elsewhere.example"):
            assert collector.send(one(agreement, "bob", 0), Origin=origin).status == 403
        assert collector.send(one(agreement, "bob", 0), Origin=own).status == 200


@pytest.mark.parametrize(
    "origin", ["", "*", "example.org", "https://", "https://a/b", "https://a b", "ftp://a", "https://é", "https://*.a"]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(DiscreetError, match="is not an origin"):
        normalise_origin(origin)


def test_a_fault_is_told_by_its_kind_and_place_alone(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyError("ann said blue")
    except KeyError as error:
        print_fault_without_message(error)
    said = capsys.readouterr().err
    assert said.startswith("discreet: a fault of the collector, KeyError: ")
    assert "test_guarding.py" in said
    assert "ann" not in said


FAULTY = """
import asyncio, json, sys
from pathlib import Path
from discreet.agreement import Agreement
from discreet.collect import open_store, service

class Broken:
    def __init__(self, store): self._store = store
    def __getattr__(self, name): return getattr(self._store, name)
    def count_arrivals(self, *arguments): raise KeyError("ann said blue")
    def sample_counts_by_day(self, *arguments): raise ZeroDivisionError("ann said blue")

store = open_store("samples.db")
agreement = Agreement.read("agreement.json")
store.add(agreement)
app = service(Broken(store))

async def asked(method, path, body):
    told = []
    async def receive(): return {"type": "http.request", "body": body, "more_body": False}
    async def send(message): told.append(message)
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers, "http_version": "1.1"}
    await app(scope, receive, send)
    return told[0]["status"], dict(told[0]["headers"]).get(b"retry-after"), told[1]["body"].decode()

async def main():
    row = {"agreement": agreement.id, "round": 1, "client": "ann", "key": "k", "sample": 1}
    for answer in (await asked("POST", "/samples", json.dumps(row).encode()), await asked("GET", "/health", b"")):
        print(*answer)
asyncio.run(main())
"""


def test_a_fault_of_the_service_is_a_declared_503_and_shows_nothing(tmp_path: Path) -> None:
    agreed(tmp_path)
    done = subprocess.run([sys.executable, "-c", FAULTY], cwd=tmp_path, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        status, retry, body = line.split(" ", 2)
        assert (status, retry) == ("503", "b'1'")
        assert json.loads(body).keys() == {"error"}
    assert done.stdout.count("\n") == 2
    assert "KeyError" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "blue" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_about_anybody_is_printed(tmp_path: Path) -> None:
    """Good requests, bad ones, broken ones: the output of the whole run holds no name, key, sample or address."""
    agreement = agreed(tmp_path, ["azure-sample", "other"])
    with running(tmp_path, "agreement.json") as collector:
        collector.send(one(agreement, "ann-of-tests", "azure-sample", key="key-of-ann"))
        collector.send(one(agreement, "ann-of-tests", "azure-sample", key="key-of-ann"))
        for wrong in ("no-such-sample", 5, None):
            collector.send(one(agreement, "ann-of-tests", wrong, key="key-of-ann"))
        collector.get("/estimate?agreement=ann-of-tests")
        collector.get("/ann-of-tests")
        with contextlib.suppress(OSError):
            collector.ask("POST", "/samples", b"ann-of-tests", {"Content-Length": "5"})
        metrics = collector.get("/metrics").body.decode()
        assert collector.stop() == 0
        printed = collector.said + (collector.process.stdout.read() if collector.process.stdout else "")
    assert printed == ""
    for secret in ("ann-of-tests", "azure-sample", "key-of-ann", "127.0.0.1"):
        assert secret not in metrics
    assert 'discreet_samples_total{verdict="counted"} 1.0' in metrics
    assert "_created" not in metrics  # the moment of the first request with such an answer
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("samples.db*"))
    assert b"ann-of-tests" not in stored
    assert b"key-of-ann" not in stored
