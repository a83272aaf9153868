"""Stores that an earlier version made are carried on: nothing is lost, nothing is counted twice, and who has spoken has spoken."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest

from discreet.agreement import Agreement
from discreet.collect import open_store
from discreet.collect._catalogue import CollectedAgreement, labelled_agreement_coding_and_sampler
from discreet.collect._counting import Verdict
from discreet.collect._store import Store
from discreet.errors import StoreError
from tests.collect.behaviour import DAY, agreed, arrival
from tests.collect.postgres import Server

FIRST, SECOND = agreed(3), agreed(3, epsilon=0.5)
_SQLITE_1 = """
CREATE TABLE agreements (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, collection INTEGER NOT NULL, follows INTEGER REFERENCES agreements,
    rounds INTEGER NOT NULL, outcomes INTEGER NOT NULL, text TEXT NOT NULL, weights BLOB
) STRICT;
CREATE TABLE spoken (
    collection INTEGER NOT NULL, round INTEGER NOT NULL, client BLOB NOT NULL, key BLOB NOT NULL, PRIMARY KEY (collection, round, client)
) STRICT, WITHOUT ROWID;
CREATE TABLE counted (
    agreement INTEGER NOT NULL, round INTEGER NOT NULL, outcome INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (agreement, round, outcome)
) STRICT, WITHOUT ROWID;
CREATE TABLE arrived (
    agreement INTEGER NOT NULL, round INTEGER NOT NULL, day TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (agreement, round, day)
) STRICT, WITHOUT ROWID;
"""
_POSTGRES_1 = """
CREATE TABLE discreet_store (format integer NOT NULL);
INSERT INTO discreet_store VALUES (1);
CREATE TABLE discreet_agreements (
    number integer PRIMARY KEY, id text NOT NULL UNIQUE, collection integer NOT NULL, follows integer REFERENCES discreet_agreements,
    rounds bigint NOT NULL, outcomes bigint NOT NULL, text text NOT NULL, weights bytea
);
CREATE TABLE discreet_spoken (
    collection integer NOT NULL, round bigint NOT NULL, client bytea NOT NULL, key bytea NOT NULL, PRIMARY KEY (collection, round, client)
);
CREATE TABLE discreet_counted (
    agreement integer NOT NULL, round bigint NOT NULL, block integer NOT NULL, slot smallint NOT NULL, counts bytea NOT NULL,
    PRIMARY KEY (agreement, round, block, slot)
) WITH (fillfactor = 50);
ALTER TABLE discreet_counted ALTER counts SET STORAGE PLAIN;
CREATE TABLE discreet_arrived (
    agreement integer NOT NULL, round bigint NOT NULL, day text NOT NULL, slot smallint NOT NULL, n bigint NOT NULL,
    PRIMARY KEY (agreement, round, day, slot)
) WITH (fillfactor = 50);
"""
SPOKEN = [arrival(name, outcome) for name, outcome in (("ann", 0), ("bob", 2), ("cid", 2))]


def sqlite_1(path: Path) -> None:
    """A file as the earlier version made it, with three samples."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA application_id = {0x64637374}")
        database.execute("PRAGMA user_version = 1")
        database.executescript(_SQLITE_1)
        database.execute("INSERT INTO agreements VALUES (1, ?, 1, NULL, 1, 3, ?, NULL)", (FIRST.id, FIRST.text))
        database.executemany("INSERT INTO spoken VALUES (1, 1, ?, ?)", [(one.client, one.key) for one in SPOKEN])
        database.execute("INSERT INTO counted VALUES (1, 1, 0, 1), (1, 1, 2, 2)")
        database.execute("INSERT INTO arrived VALUES (1, 1, ?, 3)", (DAY,))


def postgres_1(address: str) -> None:
    """The same in a database: counts in a block of 128, in one of the slots."""
    counts = np.zeros(128, dtype="<i8")
    counts[[0, 2]] = 1, 2
    with psycopg.connect(address) as database:
        database.execute(_POSTGRES_1)
        row = "INSERT INTO discreet_agreements VALUES (1, %s, 1, NULL, 1, 3, %s, NULL)"
        database.execute(row, (FIRST.id, FIRST.text))
        for one in SPOKEN:
            database.execute("INSERT INTO discreet_spoken VALUES (1, 1, %s, %s)", (one.client, one.key))
        database.execute("INSERT INTO discreet_counted VALUES (1, 1, 0, 5, %s)", (counts.tobytes(),))
        database.execute("INSERT INTO discreet_arrived VALUES (1, 1, %s, 5, 3)", (DAY,))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of format 1 of each kind."""
    if request.param == "sqlite":
        sqlite_1(tmp_path / "samples.db")
        return str(tmp_path / "samples.db")
    server: Server = request.getfixturevalue("postgres")
    address = server.database()
    postgres_1(address)
    return address


def test_a_store_of_format_1_is_carried_on(where: str) -> None:
    with closing(open_store(where, create=False)) as store:
        assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 2]
        assert store.sample_counts_by_day(FIRST.id, 1) == [(DAY, 3)]
        again, other = arrival("ann", 0), arrival("ann", 1, key="other")
        new = [arrival(number, 1) for number in range(200)]
        verdicts = store.count_arrivals(FIRST.id, 1, [again, other, *new], DAY)
        assert verdicts == [Verdict.AGAIN, Verdict.SPOKEN, *[Verdict.COUNTED] * 200]
        store.add(SECOND, follows=FIRST.id)
        assert store.count_arrivals(SECOND.id, 1, [arrival("bob", 1, key="other")], DAY) == [Verdict.SPOKEN]
        assert not store.read_enrolment().is_needed
        assert [kept.signed for kept in store.agreements()] == [None, None]
    for _ in range(2):
        with closing(open_store(where, create=False)) as store:
            assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 200, 2]


def test_clients_of_gateways_who_spoke_before_have_spoken(where: str) -> None:
    """In a collection that began before gateways had ids, the names that they give are what they were; in a new one they are apart."""

    def digests(store: Store, agreement: Agreement) -> list[bytes]:
        (kept,) = [one for one in store.agreements() if one.agreement.id == agreement.id]
        _, coding, sampler = labelled_agreement_coding_and_sampler(kept.agreement)
        collected = CollectedAgreement(kept, coding, sampler, (1,))
        sent = (["x"], ["key"], np.array([0]))
        return [
            collected.make_arrivals_with_digests(1, *sent, gateway)[0].client for gateway in (None, "first", "second")
        ]

    with closing(open_store(where, create=False)) as store:
        store.add(SECOND, follows=FIRST.id)
        apart = agreed(3, epsilon=0.25)
        store.add(apart)
        assert len(set(digests(store, FIRST))) == len(set(digests(store, SECOND))) == 1
        assert digests(store, FIRST) == digests(store, SECOND)
        assert len(set(digests(store, apart))) == 3


def test_a_file_of_format_2_is_upgraded_and_can_be_closed(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    with closing(open_store(path)) as store:
        store.add(FIRST)
        store.count_arrivals(FIRST.id, 1, SPOKEN, DAY)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TABLE collections")
        database.execute("DROP TABLE questions")
        database.execute("PRAGMA user_version = 2")
    with closing(open_store(path)) as store:
        assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 2]
        assert store.close_collection(FIRST.id, DAY) == DAY
        assert store.count_arrivals(FIRST.id, 1, [arrival("dan"), SPOKEN[0]], DAY) == [Verdict.CLOSED, Verdict.AGAIN]


def test_a_file_of_format_3_is_upgraded_and_can_be_asked_in_words(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    with closing(open_store(path)) as store:
        store.add(FIRST)
        store.hide_estimates_below(7)
        store.close_collection(FIRST.id, DAY)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TABLE questions")
        for column in ("shown", "ticket"):
            database.execute(f"ALTER TABLE collections DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 3")
    with closing(open_store(path)) as store:
        (kept,) = store.agreements()
        assert (kept.closed, kept.least, kept.shown, kept.questions) == (DAY, 7, "always", None)
        store.save_questions(FIRST.id, "{}")
        store.set_estimate_visibility("after")
        (kept,) = store.agreements()
        assert (kept.closed, kept.least, kept.shown, kept.questions) == (DAY, 7, "after", "{}")


def test_an_upgrade_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    sqlite_1(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE gateways (mine TEXT)")  # in the way of ours
    with pytest.raises(StoreError):
        open_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("SELECT 1 FROM sqlite_master WHERE name = 'pool'").fetchone() is None
        database.execute("DROP TABLE gateways")
    with closing(open_store(path)) as store:
        assert store.outcome_counts(FIRST.id, 1).tolist() == [1, 0, 2]


@pytest.mark.slow
def test_processes_that_upgrade_one_store_at_the_same_time_share_it(
    where: str, in_processes: Callable[[str], None]
) -> None:
    in_processes(
        f"""
from contextlib import closing
from discreet.collect import open_store
with closing(open_store({where!r}, create=False)) as store:
    print(store.outcome_counts({FIRST.id!r}, 1).tolist())
"""
    )


@pytest.fixture
def in_processes() -> Callable[[str], None]:
    """Run a program three times at once; each must print the three samples."""

    def run(program: str) -> None:
        begun = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
        assert [one.communicate()[0] for one in begun] == ["[1, 0, 2]\n"] * 3

    return run
