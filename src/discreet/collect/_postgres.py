"""A store in a PostgreSQL database, for several services at once: what is committed is on the server's disk.

The primary key of `discreet_spoken` decides who has spoken: INSERT ... ON CONFLICT DO NOTHING waits for whoever is about to insert the same
client, and says which rows are new; the keys of the others are read in the next statement, which sees what was waited for (READ COMMITTED).
Rows are written in the order of their keys, spoken before counted before arrived, so that no two transactions wait for each other in a
circle. Counts are kept in blocks (`discreet.collect._blocks`), and in a few slots that are added up when they are read: services of
different slots do not wait for each other's.

Whatever fails, the connection is dropped and the next call opens another one; a connection that turns out to be dead before anything was
asked of it is replaced at once. A server that says nothing any more is given up after a time-out, here and not only there.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.agreement import Agreement
from discreet.collect._blocks import EMPTY, added, totals, written_with
from discreet.collect._keeping import Place, check_follows, kept_from, outcomes_of, place_of, tallied
from discreet.collect._store import Arrival, Kept, Verdict
from discreet.errors import DiscreetError, StoreError, need_extra

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    need_extra("collect", error)

WAIT_SECONDS = 10.0
FORMAT = 1
SLOTS = 8
_LONGER = 3  # times as long may it take to write many rows as to begin
_LOCK = 0x64637374  # of those who make tables or add agreements
_SCHEMA = """
CREATE TABLE discreet_store (format integer NOT NULL);
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
_BEGIN = """BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('statement_timeout', '{wait}', true), set_config('idle_in_transaction_session_timeout', '{wait}', true),
    set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)"""
_SPEAK = """INSERT INTO discreet_spoken SELECT %s, %s, client, key FROM unnest(%b::bytea[], %b::bytea[]) AS new (client, key)
ORDER BY client ON CONFLICT DO NOTHING RETURNING client"""
_SAID = "SELECT client, key FROM discreet_spoken WHERE collection = %s AND round = %s AND client = ANY(%b)"
_MAKE = """INSERT INTO discreet_counted SELECT %s, %s, block, %s, %b FROM unnest(%b::integer[]) AS new (block)
ORDER BY block ON CONFLICT DO NOTHING"""
_HELD = """SELECT block, counts FROM discreet_counted WHERE agreement = %s AND round = %s AND slot = %s AND block = ANY(%b)
ORDER BY block FOR UPDATE"""
_COUNT = """UPDATE discreet_counted SET counts = new.counts FROM unnest(%b::integer[], %b::bytea[]) AS new (block, counts)
WHERE agreement = %s AND round = %s AND slot = %s AND discreet_counted.block = new.block"""
_ARRIVE = """INSERT INTO discreet_arrived VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (agreement, round, day, slot) DO UPDATE SET n = discreet_arrived.n + excluded.n"""

Connection = psycopg.Connection[Any]


class PostgresStore:
    """The store in a database; tables that are not there are made where `create` says so."""

    def __init__(self, address: str, *, create: bool = True, wait: float = WAIT_SECONDS) -> None:
        self._writer, self._reader = _Line(address, wait), _Line(address, wait)
        with self._writer.transaction() as database:
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            (there,) = _row(database.execute("SELECT to_regclass('discreet_store') IS NOT NULL"))
            if not there:
                if not create:
                    raise StoreError(f"there is no store in {self._writer.shown}; check the name of the database")
                database.execute(_SCHEMA)
                database.execute("INSERT INTO discreet_store VALUES (%s)", (FORMAT,))
            (version,) = _row(database.execute("SELECT max(format) FROM discreet_store"))
            if version != FORMAT:
                raise StoreError(
                    f"the store in {self._writer.shown} is of format {version}, not {FORMAT}; upgrade discreet to read it"
                )

    def add(self, agreement: Agreement, *, follows: str | None = None) -> None:
        """Keep an agreement."""
        outcomes = outcomes_of(agreement)
        with self._writer.transaction() as database:
            database.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            rows = database.execute(
                "SELECT one.id, other.id FROM discreet_agreements one LEFT JOIN discreet_agreements other ON one.follows = other.number"
            )
            if not check_follows(dict(rows.fetchall()), agreement.id, follows):
                return
            database.execute(
                "INSERT INTO discreet_agreements SELECT latest, %s, coalesce((SELECT collection FROM discreet_agreements WHERE id = %s), "
                "latest), (SELECT number FROM discreet_agreements WHERE id = %s), %s, %s, %s, %s "
                "FROM (SELECT 1 + coalesce(max(number), 0) AS latest FROM discreet_agreements) AS place",
                (agreement.id, follows, follows, agreement.rounds, outcomes, agreement.text, agreement.family.beside),
            )

    def kept(self) -> list[Kept]:
        """All agreements, in the order they came."""
        with self._reader.transaction() as database:
            rows = database.execute(
                "SELECT first.id, other.id, one.text, one.weights, one.id FROM discreet_agreements one "
                "JOIN discreet_agreements first ON one.collection = first.number "
                "LEFT JOIN discreet_agreements other ON one.follows = other.number ORDER BY one.number"
            ).fetchall()
        return kept_from(rows)

    def count(self, agreement: str, round: int, arrivals: Sequence[Arrival], day: str) -> list[Verdict]:
        """What becomes of each of these."""
        slot = os.getpid() % SLOTS
        with self._writer.transaction() as database:
            place = _place(database, self._writer.places, agreement)
            place.check(round, arrivals)
            verdicts = _verdicts(database, place.collection, round, arrivals)
            new = tallied(arrivals, verdicts)
            if new:
                where = (place.number, round, slot)
                numbers = written_with(new, place.outcomes)
                held = _held(database, where, numbers)
                database.execute(_COUNT, (numbers, added(held, new), *where))
                database.execute(_ARRIVE, (place.number, round, day, slot, sum(many for _, many in new)))
        return verdicts

    def counts(self, agreement: str, round: int) -> NDArray[np.int64]:
        """How often each outcome came."""
        with self._reader.transaction() as database:
            place = _place(database, self._reader.places, agreement)
            rows = "SELECT block, counts FROM discreet_counted WHERE agreement = %s AND round = %s"
            with database.cursor("counts", binary=True) as cursor:  # one that the server holds: there may be many
                return totals(cursor.execute(rows, (place.number, round)), place.outcomes)

    def by_day(self, agreement: str, round: int) -> list[tuple[str, int]]:
        """How many samples came on each day."""
        with self._reader.transaction() as database:
            place = _place(database, self._reader.places, agreement)
            rows = "SELECT day, sum(n)::bigint FROM discreet_arrived WHERE agreement = %s AND round = %s GROUP BY day ORDER BY day"
            return database.execute(rows, (place.number, round)).fetchall()

    def close(self) -> None:
        """Let go of the connections."""
        self._reader.close()
        self._writer.close()


def _row(cursor: Any) -> Any:
    found = cursor.fetchone()
    assert found is not None
    return found


def _place(database: Connection, known: dict[str, Place], agreement: str) -> Place:
    row = "SELECT number, collection, outcomes, rounds FROM discreet_agreements WHERE id = %s"
    return place_of(known, agreement, lambda: database.execute(row, (agreement,)).fetchone())


def _verdicts(database: Connection, collection: int, round: int, arrivals: Sequence[Arrival]) -> list[Verdict]:
    """Whose rows are new; for the others, whether their key is the one that they came with."""
    first: dict[bytes, bytes] = {}
    for arrival in arrivals:
        first.setdefault(arrival.client, arrival.key)
    clients = sorted(first)
    rows = database.execute(_SPEAK, (collection, round, clients, [first[client] for client in clients]), binary=True)
    new = {client for (client,) in rows.fetchall()}
    before = [client for client in clients if client not in new]
    said = dict(database.execute(_SAID, (collection, round, before), binary=True).fetchall()) if before else {}
    verdicts = []
    for arrival in arrivals:
        if arrival.client in new:
            new.remove(arrival.client)
            said[arrival.client] = first[arrival.client]
            verdicts.append(Verdict.COUNTED)
        else:
            verdicts.append(Verdict.AGAIN if said[arrival.client] == arrival.key else Verdict.SPOKEN)
    return verdicts


def _held(database: Connection, where: tuple[int, int, int], numbers: list[int]) -> dict[int, bytes]:
    """What these blocks hold, locked in their order; those that are not there yet are made."""
    held = dict(database.execute(_HELD, (*where, numbers), binary=True).fetchall())
    if len(held) < len(numbers):
        database.execute(_MAKE, (*where, EMPTY, numbers))
        held = dict(database.execute(_HELD, (*where, numbers), binary=True).fetchall())
    return held


class _Line:
    """One connection to the server, for one thread at a time; opened when it is needed, and anew after a failure or a fork."""

    def __init__(self, address: str, wait: float) -> None:
        self._address, self._wait = address, wait
        self.shown = shown_address(address)
        self._lock = threading.Lock()
        self._database: Connection | None = None
        self._process = 0
        self._forgotten: list[Connection] = []
        self.places: dict[str, Place] = {}  # of agreements, in the database that is open

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of it on the server's disk at the end, or nothing. What PostgreSQL says is raised as StoreError."""
        if not self._lock.acquire(timeout=self._wait):
            raise self._refused("it has been busy for too long; try again")
        try:
            database = self._begun()
            with _given_up(database, _LONGER * self._wait):
                yield database
                if database.execute("COMMIT").statusmessage != "COMMIT":
                    raise self._refused("it did not commit; try again")
        except psycopg.Error as error:
            self._drop()
            raise self._refused(_why(error)) from error
        except BaseException:
            self._drop()
            raise
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._drop()

    def _begun(self) -> Connection:
        """A connection in a transaction. One that has died since it was last used is replaced: nothing was asked of it yet."""
        if self._database is not None and self._process != os.getpid():
            self._forgotten.append(self._database)  # the parent's: closing it here would end it there
            self._database = None
        if self._database is not None:
            began = time.monotonic()
            try:
                return self._begin(self._database)
            except psycopg.OperationalError:
                if time.monotonic() - began > self._wait / 2:  # it hangs, and so would another one
                    raise
                self._drop()
        self.places.clear()
        self._process = os.getpid()
        self._database = psycopg.connect(
            self._address,
            autocommit=True,
            prepare_threshold=None,  # a pooler between us may give every transaction to another connection
            connect_timeout=max(2, round(self._wait)),
            application_name="discreet",
        )
        return self._begin(self._database)

    def _begin(self, database: Connection) -> Connection:
        with _given_up(database, self._wait):
            database.execute(_BEGIN.format(wait=round(1000 * _LONGER * self._wait)))
        return database

    def _drop(self) -> None:
        if self._database is not None:
            with suppress(psycopg.Error):
                self._database.close()  # which undoes what was not committed
            self._database = None

    def _refused(self, why: str) -> StoreError:
        return StoreError(f"store {self.shown}: {why}")


@contextmanager
def _given_up(database: Connection, wait: float) -> Iterator[None]:
    """Cut the connection if this takes longer: a server that is stopped, or a network that is gone, would be waited for without end."""
    done, guard = False, threading.Lock()

    def cut() -> None:
        with guard:
            if not done:
                with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(database.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(wait, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            done = True
        timer.cancel()


def _why(error: psycopg.Error) -> str:
    """What happened, in a line; PostgreSQL's own words, which hold no password."""
    said = error.diag.message_primary or str(error) or type(error).__name__
    return f"{' '.join(said.split())}; try again"


def shown_address(address: str) -> str:
    """The address without its password."""
    try:
        parts = conninfo_to_dict(address)
    except psycopg.Error:
        raise DiscreetError(
            "the address of the store is not one that PostgreSQL understands: postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
