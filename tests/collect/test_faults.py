"""A running service whose disk is full, whose database is gone or hangs, or whose clock goes backwards: clear, and it recovers by itself."""

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.agreement import Agreement
from discreet.client._protocol import JSON
from discreet.collect import open_store
from tests.collect.postgres import Server, server, until
from tests.collect.running import PATIENCE, Answer, Collector, agreed, one, running
from tests.soaking import wide

pytestmark = pytest.mark.slow


def batch(agreement: Agreement, name: str, number: int = 500) -> dict[str, Any]:
    """Samples of so many clients."""
    rows = [{"client": f"{name}-{n}", "key": f"key-{name}-{n}", "sample": n % 5} for n in range(number)]
    return {"agreement": agreement.id, "round": 1, "samples": rows}


def check_not_now(answer: Answer) -> None:
    """It says when to come again, and nothing of what happened inside."""
    assert answer.status == 503, (answer.status, answer.body)
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Content-Type"] == JSON
    assert list(answer.json) == ["error"]
    assert answer.json["error"].endswith("send the same again in a moment, under the same keys")
    for inside in ("sqlite", "postgres", "disk", "/tmp", "psycopg", "Traceback", "database"):
        assert inside not in answer.json["error"]


def sent_at_last(collector: Collector, document: Any) -> Any:
    """The answer that is no 503, with time to recover."""
    answers: list[Answer] = []

    def answered() -> bool:
        answers.append(collector.send(document))
        return answers[-1].status != 503

    until(answered, "it did not recover", PATIENCE)
    assert answers[-1].status == 200, answers[-1].body
    return answers[-1].json


def estimated(collector: Collector) -> int:
    """How many samples the service counts."""
    return int(collector.get("/estimate").json["samples"])


def test_a_full_disk(tmp_path: Path) -> None:
    """The system lets no file of the service grow any more, as a disk without room would not; then it does again."""
    agreement = agreed(tmp_path)
    with running(tmp_path, "agreement.json", "--store", "store.db") as collector:

        def limit(size: int) -> None:
            resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        assert collector.send(batch(agreement, "first")).json["counted"] == 500
        limit(1 << 17)
        more = batch(agreement, "more", 5000)  # which takes more than that
        for _ in range(2):
            check_not_now(collector.send(more))
        assert estimated(collector) == 500  # what is there can be read
        limit(resource.RLIM_INFINITY)
        assert sent_at_last(collector, more) == {"counted": 5000, "again": 0, "refused": []}
        assert collector.send(batch(agreement, "first")).json["again"] == 500
        until(lambda: estimated(collector) == 5500, "the estimate does not go on")
        assert "Traceback" not in collector.said
        assert collector.stop() == 0
    with closing(open_store(tmp_path / "store.db")) as store:
        assert store.outcome_counts(agreement.id, 1).sum() == 5500


@contextmanager
def over_database(folder: Path) -> Iterator[tuple[Server, Collector, Agreement]]:
    """A service of a database of its own."""
    agreement = agreed(folder)
    with server() as database, running(folder, "agreement.json", "--store", database.database()) as collector:
        yield database, collector, agreement
        assert "Traceback" not in collector.said
        assert collector.stop() == 0


@pytest.mark.parametrize("end", wide([Server.stop, Server.kill], [Server.kill]))
def test_a_database_that_is_gone(tmp_path: Path, end: Callable[[Server], None]) -> None:
    with over_database(tmp_path) as (database, collector, agreement):
        assert collector.send(batch(agreement, "first")).json["counted"] == 500
        end(database)
        check_not_now(collector.send(batch(agreement, "second")))
        check_not_now(collector.send(one(agreement, "ann", 1)))
        database.start()
        assert sent_at_last(collector, batch(agreement, "second"))["counted"] == 500
        assert collector.send(batch(agreement, "first")).json["again"] == 500
        until(lambda: estimated(collector) == 1000, "the estimate does not go on")


def test_a_database_that_hangs(tmp_path: Path) -> None:
    with over_database(tmp_path) as (database, collector, agreement):
        assert collector.send(batch(agreement, "first")).json["counted"] == 500
        database.tell_all(signal.SIGSTOP)
        try:
            check_not_now(collector.send(batch(agreement, "second")))
        finally:
            database.tell_all(signal.SIGCONT)
        answer = sent_at_last(collector, batch(agreement, "second"))
        assert answer["counted"] + answer["again"] == 500  # it may have been written, though nobody heard of it
        until(lambda: estimated(collector) == 1000, "the estimate does not go on")


def test_a_file_that_is_moved_away_and_put_back(tmp_path: Path) -> None:
    agreement = agreed(tmp_path)
    with running(tmp_path, "agreement.json", "--store", "store.db") as collector:
        assert collector.send(one(agreement, "ann", 1)).status == 200
        (tmp_path / "store.db").rename(tmp_path / "away.db")
        check_not_now(collector.send(one(agreement, "bob", 1)))
        (tmp_path / "away.db").rename(tmp_path / "store.db")
        assert sent_at_last(collector, one(agreement, "bob", 1))["counted"] == 1
        assert collector.send(one(agreement, "ann", 1)).json["again"] == 1
        assert collector.stop() == 0


def test_a_clock_that_goes_backwards(tmp_path: Path) -> None:
    """Every transaction is of the day before the last one's: days are written down, and decide nothing."""
    agreement = agreed(tmp_path)
    path = os.pathsep.join((str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])))
    with running(tmp_path, "agreement.json", program="tests.collect.backwards", PYTHONPATH=path) as collector:
        for number in range(5):
            assert collector.send(batch(agreement, f"on-{number}", 10)).json["counted"] == 10
            assert collector.send(batch(agreement, f"on-{number}", 10)).json["again"] == 10
        assert collector.send(one(agreement, "on-0-3", 1, key="another")).status == 409
        told = collector.get("/estimate").json
        assert told["samples"] == 50
        days = [day for day, _ in told["days"]]
        assert [count for _, count in told["days"]] == [10] * 5
        assert days == sorted(days)
        assert collector.stop() == 0
