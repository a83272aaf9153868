"""The service as processes: it stops when told to and loses nothing, at once when told twice, and several share a socket and a store."""

import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.cli._collect import _other_collections_lines
from discreet.collect import open_store
from discreet.collect._service import METRICS_FOLDER
from discreet.collect._serving import ServiceSettings, _raise_open_file_limit, _WorkerProcesses
from discreet.errors import DiscreetError
from tests.cli.conftest import refusal, run
from tests.collect.postgres import until
from tests.collect.running import PATIENCE, Collector, agreed, one, running

__all__ = ["refusal", "run"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_acknowledged_before_a_signal_is_there_after_it(tmp_path: Path, workers: str) -> None:
    agreement = agreed(tmp_path)
    acknowledged: list[str] = []
    with running(tmp_path, "agreement.json", "--workers", workers) as collector:

        def send(sender: int) -> None:
            for number in range(10_000):
                name = f"{sender}-{number}"
                try:
                    answer = collector.send(one(agreement, name, 0))
                except OSError:
                    return
                assert answer.status in (200, 503), answer
                if answer.status == 200:
                    acknowledged.append(name)

        senders = [threading.Thread(target=send, args=(sender,)) for sender in range(4)]
        for sender in senders:
            sender.start()
        until(lambda: len(acknowledged) >= 50, "too few samples are acknowledged")
        assert collector.stop() == 0
        for thread in senders:
            thread.join()
        assert collector.said == ""
    store = open_store(tmp_path / "samples.db")
    assert 50 <= len(acknowledged) <= store.outcome_counts(agreement.id, 1)[0]
    store.close()
    with running(tmp_path) as collector:
        rows = [{"client": name, "key": f"key-{name}", "sample": 0} for name in acknowledged]
        again = collector.send({"agreement": agreement.id, "round": 1, "samples": rows}).json
        assert again == {"counted": 0, "again": len(acknowledged), "refused": []}


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    agreed(tmp_path)
    with running(tmp_path, "agreement.json") as collector:
        with socket.create_connection(("127.0.0.1", collector.port), timeout=PATIENCE) as waiting:
            waiting.sendall(
                b"POST /samples HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
            )
            collector.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + PATIENCE
            while collector.process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(ProcessLookupError):
                    collector.process.send_signal(signal.SIGTERM)
                time.sleep(0.01)
        assert collector.process.returncode in (0, 128 + signal.SIGTERM)


def children(collector: Collector) -> list[int]:
    """The processes that serve."""
    pid = collector.process.pid
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    serving = []
    for each in found:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                serving.append(each)
    return serving


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_one_of_several_that_dies_is_replaced_and_all_end_with_the_first(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    with running(tmp_path, "agreement.json", "--workers", "2") as collector:
        for number in range(20):
            assert collector.send(one(agreement, f"c{number}", 0)).status == 200
        for line in ('verdict="counted"} 20.0', 'discreet_requests_total{path="/samples",status="200"} 20.0'):
            assert line in collector.get("/metrics").body.decode()
        before = children(collector)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(found := children(collector)) == 2 and before[0] not in found, "it is not replaced")
        assert collector.send(one(agreement, "new", 0)).status == 200
        serving = children(collector)
        collector.process.kill()
        until(lambda: all(map(gone, serving)), "they outlive the first")


class _DeadProcess:
    pid = None

    def is_alive(self) -> bool:
        return False


@pytest.mark.parametrize("folder", [None, "/var/lib/metrics"])
def test_a_process_that_dies_at_the_start_leaves_the_environment_as_it_was(
    monkeypatch: pytest.MonkeyPatch, folder: str | None
) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(folder))
    if folder is None:
        monkeypatch.delenv(METRICS_FOLDER)
    monkeypatch.setattr(_WorkerProcesses, "_start_worker", lambda *_: _DeadProcess())
    with socket.socket() as unused:
        workers = _WorkerProcesses(ServiceSettings(store="unused"), unused, 2, lambda: None)
        with pytest.raises(DiscreetError, match="ended before it could serve"):
            workers.serve_until_stopped()
    assert os.environ.get(METRICS_FOLDER) == folder


@pytest.mark.parametrize(
    ("limits", "changes"),
    [
        ((1024, 4096), [(4096, 4096)]),
        ((1024, 1 << 20), [(1 << 16, 1 << 20)]),
        ((1024, resource.RLIM_INFINITY), [(1 << 16, resource.RLIM_INFINITY)]),
        ((1 << 17, 1 << 20), []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), []),
    ],
)
def test_the_limit_of_open_files_is_only_ever_raised(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], changes: list[tuple[int, int]]
) -> None:
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: changed.append(new))
    _raise_open_file_limit()
    assert changed == changes


def test_what_cannot_be_served_is_told_before_anything_is_written(
    tmp_path: Path, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = agreed(tmp_path)
    (tmp_path / "tokens.txt").write_text("a" * 20)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for said, options in (
            ("cannot be used", ["--port", port]),
            ("is not in [0, 65535]", ["--port", "65536"]),
            ("host", ["--host", "no such host"]),
            ("workers", ["--workers", "0"]),
            ("patience", ["--patience", "0"]),
            ("patience", ["--patience", "nan"]),
            ("round", ["--round", "0"]),
            ("round = 2 is more than the 1 agreed on", ["--round", "2"]),
            ("origin", ["--allow-origin", "*"]),
            ("chmod 600", ["--tokens", "tokens.txt"]),
            ("nowhere", ["--gateways", "nowhere"]),
            ("domain", ["--domain", "labels.txt"]),
        ):
            assert said in refusal("collect", "agreement.json", *options)
        assert "no store" in refusal("collect", "--store", "empty.db", "--port", "0")
        assert "--follows" in refusal("collect", "agreement.json", "agreement.json", "--follows", "a" * 12)
    assert "no store" in refusal("collect", "agreement.json", "--port", "0", "--follows", "0123456789ab")
    assert {path.name for path in tmp_path.iterdir()} == {"agreement.json", "tokens.txt"}
    open_store("samples.db").close()
    assert "keeps no agreement yet" in refusal("collect", "--port", "0")
    for follows in ("0123456789ab", ""):
        assert f"follows = '{follows}'" in refusal("collect", "agreement.json", "--port", "0", "--follows", follows)
    with contextlib.closing(open_store("samples.db")) as store:
        store.add(made)
    agreed(tmp_path, 5, name="second.json", purpose="second")
    for follows in ("", made.id[:11], made.id.upper()):  # such as of a variable that is not set
        said = refusal("collect", "second.json", "--port", "0", "--follows", follows)
        assert f"follows = '{follows}'" in said
        assert made.id[:12] in said


def test_rounds_that_are_open_are_taken_and_no_others(tmp_path: Path) -> None:
    agreement = agreed(tmp_path, rounds=3)
    with running(tmp_path, "agreement.json", "--round", "1", "--round", "2") as collector:
        assert collector.get("/collection").json["round"] == 2
        assert [collector.send(one(agreement, "ann", 0, round=number)).status for number in (1, 2, 3)] == [
            200,
            200,
            422,
        ]
        found = [collector.get(f"/estimate?round={number}").json for number in (1, 2, 3)]
        assert [each["samples"] for each in found] == [1, 1, 0]
        assert collector.get("/estimate").json == found[1]
        assert json.dumps(found[0]["rounds"])


def test_an_agreement_that_another_process_adds_is_collected_too(tmp_path: Path) -> None:
    first = agreed(tmp_path)
    with running(tmp_path, "agreement.json") as collector:
        assert collector.get("/collection").json["agreement"] == first.id
        second = agreed(tmp_path, name="second.json", purpose="second")
        store = open_store(tmp_path / "samples.db")
        store.add(second, follows=first.id)
        store.close()
        until(lambda: collector.get("/collection").json["agreement"] == second.id, "it is not found")
        assert collector.send(one(second, "ann", 0)).status == 200


def test_whoever_adds_to_a_store_learns_what_else_is_collected_there(tmp_path: Path) -> None:
    """A service in the same folder took the same store, and devices of the first collection were given the terms of the second."""
    path = str(tmp_path / "samples.db")
    lunch, drinks = agreed(tmp_path, 4, purpose="lunch"), agreed(tmp_path, 5, name="drinks.json", purpose="")
    assert _other_collections_lines(path) == []
    with contextlib.closing(open_store(path)) as store:
        store.add(lunch)
    assert _other_collections_lines(path) == []
    with contextlib.closing(open_store(path)) as store:
        store.add(drinks)
    (line,) = _other_collections_lines(path)
    assert (
        f"also holds {lunch.id[:12]} (lunch): whoever names no agreement gets the newest one, {drinks.id[:12]}." in line
    )
    with contextlib.closing(open_store(path)) as store:
        store.close_collection(lunch.id, "2026-07-02")
    assert _other_collections_lines(path) == []
