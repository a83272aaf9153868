"""The store in a PostgreSQL database: what every store does, and a server that ends, hangs and comes back."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from discreet.collect import _store, open_store
from discreet.collect._counting import KEPT, Arrival, Verdict
from discreet.collect._postgres import PostgresStore
from discreet.collect._store import Store
from discreet.errors import DiscreetError, StoreError
from tests.collect.behaviour import DAY, Behaviour, agreed, arrival
from tests.collect.postgres import Server, server, until

pytestmark = pytest.mark.slow  # a server is started
FIRST = agreed(3)


class TestPostgres(Behaviour):
    @pytest.fixture
    def where(self, postgres: Server) -> str:
        return postgres.database()


@pytest.fixture
def where(postgres: Server) -> str:
    """A store with one sample."""
    address = postgres.database()
    store = open_store(address)
    store.add(FIRST)
    store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY)
    store.close()
    return address


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server of a test's own, to be ended."""
    with server() as running:
        yield running


def counts(where: str) -> list[int]:
    """What the store counts, as somebody finds it who comes now."""
    with closing(open_store(where, create=False)) as store:
        return [int(count) for count in store.outcome_counts(FIRST.id, 1)]


@contextmanager
def impatient(store: PostgresStore) -> Iterator[None]:
    """It waits a moment where it would wait long."""
    before, store._writer._wait = store._writer._wait, 0.3
    try:
        yield
    finally:
        store._writer._wait = before


def test_what_is_committed_is_on_the_disk(where: str) -> None:
    """synchronous_commit is put on where it is off, and left where it asks for more."""
    with psycopg.connect(where, autocommit=True) as admin:
        for before, after in {"off": "on", "on": "on", "remote_apply": "remote_apply"}.items():
            admin.execute(f"ALTER ROLE postgres SET synchronous_commit = {before}")
            store = PostgresStore(where)
            with store._writer.transaction() as database:
                assert database.execute("SHOW synchronous_commit").fetchone() == (after,)
            store.close()
        admin.execute("ALTER ROLE postgres RESET synchronous_commit")


def test_what_is_no_store_is_refused(postgres: Server, where: str) -> None:
    empty = postgres.database()
    with pytest.raises(StoreError, match="there is no store in postgresql://"):
        open_store(empty, create=False)
    with psycopg.connect(empty) as admin:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema"
        assert admin.execute(tables).fetchone() == (0,)
        admin.execute("CREATE TABLE discreet_spoken (recipe text)")
    with pytest.raises(StoreError, match='relation "discreet_spoken" already exists'):
        open_store(empty)
    with psycopg.connect(where) as admin:
        admin.execute("UPDATE discreet_store SET format = 5")
    with pytest.raises(StoreError, match="of format 5, not 4; upgrade discreet"):
        open_store(where)
    with pytest.raises(StoreError, match='database "nowhere" does not exist'):
        open_store(postgres.address("nowhere"))


def test_no_message_holds_the_password(tmp_path: os.PathLike[str]) -> None:
    for address in (
        f"postgresql://me:hunter2@/store?host={tmp_path}",
        "postgresql://me:hunter2@host:port/store",
        "postgresql://me:hunter2@[host/store",
        "postgresql://me:hunter2@host/store?nonsense=1",
        f"postgresql:///store?host={tmp_path}&password=hunter2",
    ):
        with pytest.raises(DiscreetError) as caught:
            open_store(address)
        assert "postgresql://" in str(caught.value)
        assert "hunter2" not in str(caught.value)


def test_several_processes_count_each_client_once(where: str) -> None:
    program = f"""
import random
from discreet.collect import open_store
from tests.collect.behaviour import DAY, agreed, arrival
store, first = open_store({where!r}), agreed(3)
store.add(first)
chosen, clients = random.Random(), list(range(400))
chosen.shuffle(clients)
verdicts = [one for at in range(0, 400, 8) for one in store.count_arrivals(first.id, 1, [arrival(c, c % 3) for c in clients[at:at + 8]], DAY)]
print(sum(one.value == "counted" for one in verdicts), sum(one.value == "again" for one in verdicts))
"""
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [tuple(map(int, one.communicate()[0].split())) for one in started]
    assert sum(counted for counted, _ in told) == 400
    assert sum(again for _, again in told) == 800
    assert counts(where) == [135, 133, 133]


def test_a_session_that_is_ended_is_replaced(where: str) -> None:
    store = PostgresStore(where)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
    with psycopg.connect(where, autocommit=True) as admin:
        store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
        admin.execute(ended)
        # before anything was asked of it
        assert store.count_arrivals(FIRST.id, 1, [arrival("cid")], DAY) == [Verdict.COUNTED]

        def cut_short() -> None:
            with store._writer.transaction() as database:
                admin.execute(ended)
                database.execute("SELECT 1")

        with pytest.raises(StoreError, match=r"terminating connection|closed"):
            cut_short()
        assert store.count_arrivals(FIRST.id, 1, [arrival("dan")], DAY) == [Verdict.COUNTED]
    store.close()
    assert counts(where) == [4, 0, 0]


def test_a_commit_whose_answer_is_lost_is_settled_by_its_keys(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = psycopg.Connection.execute

    def lost(self: Any, query: str, *rest: Any, **options: Any) -> Any:
        found = real(self, query, *rest, **options)
        if query == "COMMIT":
            raise psycopg.OperationalError("the line is dead")
        return found

    store, batch = PostgresStore(where), [arrival("bob", 1), arrival("eve", 2)]
    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", lost)
        with pytest.raises(StoreError, match="the line is dead; try again"):
            store.count_arrivals(FIRST.id, 1, batch, DAY)
    assert store.count_arrivals(FIRST.id, 1, batch, DAY) == [Verdict.AGAIN, Verdict.AGAIN]
    store.close()
    assert counts(where) == [1, 1, 1]


def test_a_lock_that_is_held_too_long_is_said(where: str) -> None:
    store = PostgresStore(where)
    with psycopg.connect(where) as admin:
        admin.execute("LOCK TABLE discreet_spoken IN EXCLUSIVE MODE")
        with impatient(store), pytest.raises(StoreError, match=r"statement timeout|connection"):
            store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
    assert store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY) == [Verdict.COUNTED]
    store.close()


def test_a_server_that_is_gone_is_said_and_found_again(mortal: Server) -> None:
    where = mortal.database()
    store = open_store(where)
    store.add(FIRST)
    assert store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY) == [Verdict.COUNTED]
    for end in (mortal.stop, mortal.kill):
        end()
        for ask in (
            lambda: store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY),
            lambda: store.outcome_counts(FIRST.id, 1),
        ):
            with pytest.raises(StoreError, match=r"connection|shut"):
                ask()
        mortal.start()
        assert store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY) == [Verdict.AGAIN]
        assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 0]
    store.close()


def test_a_server_that_hangs_is_given_up_and_found_again(mortal: Server) -> None:
    where = mortal.database()
    store = PostgresStore(where)
    store.add(FIRST)
    mortal.tell_all(signal.SIGSTOP)
    try:
        for _ in range(2):  # on the connection that is there, and on a new one
            with impatient(store), pytest.raises(StoreError, match=r"connection|timeout"):
                store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY)
    finally:
        mortal.tell_all(signal.SIGCONT)

    def counted() -> bool:
        try:
            return bool(store.count_arrivals(FIRST.id, 1, [arrival("ann")], DAY))
        except StoreError:
            return False

    until(counted, "it did not come back")
    assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 0]
    store.close()


def test_a_full_disk_is_said_and_recovered_from(mortal: Server) -> None:
    """The system lets no file of the server grow past a limit, as a disk without room would not."""
    where = mortal.database()
    store = open_store(where)
    store.add(FIRST)
    batches = [[arrival(f"{number} {each}") for each in range(2000)] for number in range(30)]
    mortal.limit(2 << 20)
    counted = 0

    def count_all() -> None:
        nonlocal counted
        for batch in batches:
            store.count_arrivals(FIRST.id, 1, batch, DAY)
            counted += len(batch)

    with pytest.raises(StoreError, match=r"could not extend|too large|No space"):
        count_all()
    assert 0 < counted < 60_000
    assert store.outcome_counts(FIRST.id, 1).tolist() == [counted, 0, 0]
    mortal.limit(None)
    for batch in batches:
        store.count_arrivals(FIRST.id, 1, batch, DAY)
    assert store.outcome_counts(FIRST.id, 1).tolist() == [60_000, 0, 0]
    store.close()


@pytest.mark.parametrize(("hide", "expected"), [("least", (50, "always")), ("shown", (0, "never"))])
def test_a_collection_added_while_estimates_are_hidden_is_hidden_too(
    where: str, monkeypatch: pytest.MonkeyPatch, hide: str, expected: tuple[int, str]
) -> None:
    has_inherited, execute = threading.Event(), Store._execute_sql

    def execute_and_wait(self: Store, database: Any, statement: str, parameters: Any = ()) -> Any:
        found = execute(self, database, statement, parameters)
        if statement == _store._INHERIT:
            has_inherited.set()
            is_hidden.wait(0.5)
        return found

    def add() -> None:
        with closing(open_store(where)) as store:
            store.add(agreed(4))

    is_hidden, adding = threading.Event(), threading.Thread(target=add)
    monkeypatch.setattr(Store, "_execute_sql", execute_and_wait)
    with closing(open_store(where)) as store:
        adding.start()
        has_inherited.wait()
        if hide == "least":
            store.hide_estimates_below(50)
        else:
            store.set_estimate_visibility("never")
        is_hidden.set()
        adding.join()
        assert [(stored.least, stored.shown) for stored in store.agreements()] == [expected] * 2


def test_threads_of_many_stores_do_not_wait_in_a_circle(where: str) -> None:
    """Each sends the same clients in an order of its own, in batches that overlap: no deadlock, and each is counted once."""
    clients = [arrival(number, number % 3) for number in range(200)]
    failures: list[BaseException] = []

    def send(shift: int) -> None:
        try:
            store = open_store(where)
            for start in range(0, 200, 20):
                batch: list[Arrival] = [clients[(shift + start + each) % 200] for each in range(60)]
                store.count_arrivals(FIRST.id, 1, batch[::-1] if shift % 2 else batch, DAY)
            store.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(37 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(counts(where)) == 201


def test_a_forked_child_connects_anew(where: str) -> None:
    store = open_store(where)
    store.count_arrivals(FIRST.id, 1, [arrival("bob")], DAY)
    child = os.fork()
    if not child:
        os._exit(0 if store.count_arrivals(FIRST.id, 1, [arrival("eve")], DAY) == [Verdict.COUNTED] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.count_arrivals(FIRST.id, 1, [arrival("fay")], DAY) == [Verdict.COUNTED]
    store.close()
    assert counts(where) == [4, 0, 0]


@pytest.mark.parametrize("outcomes", [3, 1024])
def test_a_batch_writes_every_block_where_there_are_few(postgres: Server, outcomes: int) -> None:
    """Rows of one transaction can be joined by its number: the counts that it wrote are all there are, whatever it counted."""
    where, one = postgres.database(), agreed(outcomes)
    store = open_store(where)
    store.add(one)
    for turn, outcome in enumerate((0, outcomes - 1, 1)):
        store.count_arrivals(one.id, 1, [arrival(f"{turn} {client}", outcome) for client in range(2 * KEPT)], DAY)
    store.close()
    with psycopg.connect(where) as admin:
        last = "SELECT xmin FROM discreet_spoken ORDER BY ctid DESC LIMIT 1"
        joined = f"SELECT count(DISTINCT block) FROM discreet_counted WHERE xmin = ({last})"
        assert admin.execute(joined).fetchone() == (-(-outcomes // 128),)


def test_counts_that_cannot_be_are_damage(where: str) -> None:
    with closing(open_store(where)) as store:
        store.count_arrivals(FIRST.id, 1, [arrival(number) for number in range(2 * KEPT)], DAY)
    for change in ("block = 1", "counts = substr(counts, 2)", r"counts = overlay(counts placing '\xff' from 8)"):
        with psycopg.connect(where) as admin:
            (before,) = admin.execute("SELECT counts FROM discreet_counted").fetchone() or ()
            admin.execute(f"UPDATE discreet_counted SET {change}")
        with pytest.raises(StoreError, match="it counts what cannot be"):
            counts(where)
        with psycopg.connect(where) as admin:
            admin.execute("UPDATE discreet_counted SET block = 0, counts = %s", (before,))
    assert counts(where) == [1 + 2 * KEPT, 0, 0]
