"""`PostgresStore`: a store in a PostgreSQL database, for several services at once.

What is committed is on the server's disk. The primary key of `discreet_spoken` decides whether a client is new: INSERT ... ON CONFLICT DO
NOTHING waits for a transaction that inserts the same client, and returns the new rows. The keys of the others are read in the next
statement, which sees that transaction's rows (READ COMMITTED). Rows are written in the order of their keys, spoken before pool before
counted before arrived, so that transactions cannot deadlock. Counts and pools are kept in a few slots that are added up when read; services
of different slots do not wait for each other. Pools and counts are read in one snapshot (REPEATABLE READ), so that outcomes that move
between them are counted once.

**Blocks.** Counts are kept in blocks of 128 outcomes, each a row of 64-bit numbers, so that no row shows which outcome was counted last.
PostgreSQL shows every reader of a table which transaction wrote each row, and a join finds the rows of one transaction. A row for each
outcome would show which outcomes a transaction counted. A block narrows them down to 128 outcomes. If there are few blocks, all of them are
written every time, which shows nothing. `discreet.collect._counting` explains how many are counted at a time. Reports on a survey have a row
each: a join shows those of one batch, of `KEPT` clients or more.

PostgreSQL keeps earlier versions of a row for old snapshots and until vacuum, and its log keeps all of them. They cannot be removed from
here, so the pool is sealed against them (`discreet.collect._counting`).

A store of an earlier format is upgraded in one transaction when it is opened; its counts stay.

A transaction that counts holds an advisory lock in common with the others. Closing a collection takes that lock alone. So what was counted
before is seen by whoever closes, and nothing is counted after.

After a failure the connection is dropped and the next call opens another one. A connection that is found dead before its first statement is
replaced at once. A server that does not answer is given up after a time-out on this side too.
"""

import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.collect._counting import (
    DAMAGED,
    AgreementRow,
    Arrival,
    Group,
    Seal,
    Verdict,
    fetch_outcome_counts_from_rows,
    require_possible_counts,
)
from discreet.collect._store import ADDING, EngineConnection, Store
from discreet.errors import DiscreetError, StoreError, raise_missing_extra

BLOCK = 128  # outcomes: a kilobyte, updated within its page
FEW_BLOCKS = 8  # up to this number, all blocks are written together
_NUMBERS = np.dtype("<i8")
EMPTY = bytes(BLOCK * _NUMBERS.itemsize)


def block_numbers_to_write(increments: Sequence[tuple[int, int]], outcomes: int) -> list[int]:
    """The blocks to write, in order, for new counts (outcome, number)."""
    block_count = -(-outcomes // BLOCK)
    return (
        list(range(block_count))
        if block_count <= FEW_BLOCKS
        else sorted({outcome // BLOCK for outcome, _ in increments})
    )


def blocks_with_counts_added(blocks: Mapping[int, bytes], increments: Iterable[tuple[int, int]]) -> list[bytes]:
    """The content of the blocks, in the order of their numbers, after adding new counts."""
    counts = {block: _decode_block_counts(content).copy() for block, content in sorted(blocks.items())}
    for outcome, count in increments:
        counts[outcome // BLOCK][outcome % BLOCK] += count
    return [content.tobytes() for content in counts.values()]


def fetch_outcome_counts_from_blocks(cursor: Any, outcomes: int) -> NDArray[np.int64]:
    """The counts of all outcomes, from rows (block, content), several for a block; read in parts."""
    counts = np.zeros(-(-outcomes // BLOCK) * BLOCK, dtype=np.int64)
    while rows := cursor.fetchmany(1000):
        for block, content in rows:
            if not 0 <= block < len(counts) // BLOCK:
                raise StoreError(DAMAGED)
            counts[block * BLOCK : (block + 1) * BLOCK] += _decode_block_counts(content)
    if counts[outcomes:].any():
        raise StoreError(DAMAGED)
    return require_possible_counts(counts[:outcomes])


def _decode_block_counts(content: bytes) -> NDArray[np.int64]:
    if len(content) != len(EMPTY):
        raise StoreError(DAMAGED)
    return np.frombuffer(content, dtype=_NUMBERS).astype(np.int64)


try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as error:
    raise_missing_extra("collect", error)

WAIT_SECONDS = 10.0
FORMAT = 4
SLOTS = 8
_LONGER = 3  # times the wait for beginning: limit for writing many rows
_FIRST_SCHEMA = """
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
_UPGRADES = {  # from each format to the next
    1: f"""
ALTER TABLE discreet_agreements ADD COLUMN apart smallint NOT NULL DEFAULT 0;
CREATE TABLE discreet_pool (slot smallint PRIMARY KEY, content bytea NOT NULL) WITH (fillfactor = 10);
ALTER TABLE discreet_pool ALTER content SET STORAGE EXTERNAL;
INSERT INTO discreet_pool SELECT slot, decode('00', 'hex') FROM generate_series(0, {SLOTS - 1}) AS every (slot);
CREATE TABLE discreet_tokens (digest bytea PRIMARY KEY, revoked smallint NOT NULL);
CREATE TABLE discreet_gateways (digest bytea PRIMARY KEY, id text NOT NULL, revoked smallint NOT NULL);
CREATE TABLE discreet_signatures (agreement integer PRIMARY KEY, signer text NOT NULL, signature text NOT NULL, addresses text NOT NULL);
""",
    2: "CREATE TABLE discreet_collections (collection integer PRIMARY KEY, closed text, least bigint NOT NULL);",
    3: """
CREATE TABLE discreet_reported (
    agreement integer NOT NULL, round bigint NOT NULL, report bigint NOT NULL, slot smallint NOT NULL, n bigint NOT NULL,
    PRIMARY KEY (agreement, round, report, slot)
);
ALTER TABLE discreet_collections ADD COLUMN shown text, ADD COLUMN ticket text;
CREATE TABLE discreet_questions (agreement integer PRIMARY KEY, words text NOT NULL);
""",
}
_BEGIN = """BEGIN ISOLATION LEVEL {isolation};
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
_REPORT = """INSERT INTO discreet_reported SELECT %s, %s, report, %s, n FROM unnest(%b::bigint[], %b::bigint[]) AS new (report, n)
ORDER BY report ON CONFLICT (agreement, round, report, slot) DO UPDATE SET n = discreet_reported.n + excluded.n"""
_ARRIVE = """INSERT INTO discreet_arrived VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (agreement, round, day, slot) DO UPDATE SET n = discreet_arrived.n + excluded.n"""
_POOL = "SELECT content FROM discreet_pool WHERE slot = %s FOR UPDATE"
_FILL = "UPDATE discreet_pool SET content = %b WHERE slot = %s"
_TABLES = re.compile(r"\b(agreements|arrived|collections|questions|spoken|tokens|gateways|signatures)\b")

Connection = psycopg.Connection[Any]


class PostgresStore(Store):
    """The store in a database; missing tables are created if `create` is true. `seal`: the encoding of its pools."""

    def __init__(
        self, address: str, *, create: bool = True, wait: float = WAIT_SECONDS, seal: Seal | None = None
    ) -> None:
        writer = _PostgresConnection(address, wait, "READ COMMITTED")
        super().__init__(writer, _PostgresConnection(address, wait, "REPEATABLE READ"), seal)
        with self._writer.transaction(writes=True) as database:
            self._lock_until_transaction_ends(database, ADDING)
            (exists,) = _fetch_required_row(database.execute("SELECT to_regclass('discreet_store') IS NOT NULL"))
            if not exists:
                if not create:
                    raise StoreError(f"there is no store in {self._writer.shown}; check the name of the database")
                database.execute(_FIRST_SCHEMA)
                database.execute("INSERT INTO discreet_store VALUES (1)")
            (version,) = _fetch_required_row(database.execute("SELECT max(format) FROM discreet_store"))
            if version in _UPGRADES:
                for earlier in range(version, FORMAT):
                    database.execute(_UPGRADES[earlier])
                version = FORMAT
                database.execute("UPDATE discreet_store SET format = %s", (version,))
            if version != FORMAT:
                raise StoreError(
                    f"the store in {self._writer.shown} is of format {version}, not {FORMAT}; upgrade discreet to read it"
                )

    @property
    def _slot_number_of_process(self) -> int:
        return os.getpid() % SLOTS

    def erase_overwritten_data(self) -> bool:
        """Do nothing: the seal protects against earlier versions of rows."""
        return True

    def _read_counts_and_pools(
        self, database: Connection, row: AgreementRow, round: int
    ) -> tuple[NDArray[np.int64], list[bytes]]:
        pool_rows = database.execute("SELECT content FROM discreet_pool", binary=True).fetchall()
        source = "report, n FROM discreet_reported" if row.is_survey else "block, counts FROM discreet_counted"
        query = f"SELECT {source} WHERE agreement = %s AND round = %s"
        with database.cursor("counts", binary=True) as cursor:  # a server-side cursor: there may be many
            count_rows = cursor.execute(query, (row.number, round))
            counts = (
                fetch_outcome_counts_from_rows(count_rows, row)
                if row.is_survey
                else fetch_outcome_counts_from_blocks(count_rows, row.outcomes)
            )
        return counts, [content for (content,) in pool_rows]

    def seal_pool_if_key_given(self) -> None:
        with self._transaction_without_samples() as database:
            query = "SELECT slot, content FROM discreet_pool ORDER BY slot FOR UPDATE"
            pools = {
                slot: self._seal.decode_pool(content)
                for slot, content in database.execute(query, binary=True).fetchall()
            }
            if len(pools) != SLOTS:
                raise StoreError(DAMAGED)
            for slot, pool in pools.items() if self._seal.has_secret else ():
                database.execute(_FILL, (self._seal.encode_pool(pool), slot))

    def _transaction_without_samples(self) -> AbstractContextManager[Connection]:
        return self._writer.transaction(writes=True)

    def _translate_sql_for_engine(self, statement: str) -> str:
        return _TABLES.sub(r"discreet_\1", statement).replace("?", "%s")

    def _lock_until_transaction_ends(self, database: Connection, lock: int, *, shared: bool = False) -> None:
        database.execute(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)", (lock,))

    def _insert_missing_rows(self, database: Connection, table: str, columns: Sequence[Sequence[Any]]) -> int:
        kinds = {bytes: "bytea[]", str: "text[]", int: "smallint[]"}
        if not columns[0]:
            return 0
        arrays = ", ".join(f"%s::{kinds[type(column[0])]}" for column in columns)
        statement = f"INSERT INTO discreet_{table} SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"
        return database.execute(statement, [list(column) for column in columns]).rowcount

    def _unrevoked_tokens_among(self, database: Connection, digests: Sequence[bytes]) -> set[bytes]:
        query = "SELECT digest FROM discreet_tokens WHERE revoked = 0 AND digest = ANY(%s)"
        return {digest for (digest,) in database.execute(query, (list(digests),), binary=True).fetchall()}

    def _insert_arrivals(
        self, database: Connection, collection: int, round: int, arrivals: Sequence[Arrival], *, is_closed: bool
    ) -> list[Verdict]:
        first_keys: dict[bytes, bytes] = {}
        for arrival in arrivals:
            first_keys.setdefault(arrival.client, arrival.key)
        clients = sorted(first_keys)
        new_clients: set[bytes] = set()
        if not is_closed:
            keys = [first_keys[client] for client in clients]
            rows = database.execute(_SPEAK, (collection, round, clients, keys), binary=True)
            new_clients = {client for (client,) in rows.fetchall()}
        earlier_clients = [client for client in clients if client not in new_clients]
        stored_keys = (
            dict(database.execute(_SAID, (collection, round, earlier_clients), binary=True).fetchall())
            if earlier_clients
            else {}
        )
        verdicts = []
        for arrival in arrivals:
            if arrival.client in new_clients:
                new_clients.remove(arrival.client)
                stored_keys[arrival.client] = first_keys[arrival.client]
                verdicts.append(Verdict.COUNTED)
            elif arrival.client not in stored_keys:
                verdicts.append(Verdict.CLOSED)
            else:
                verdicts.append(Verdict.AGAIN if stored_keys[arrival.client] == arrival.key else Verdict.SPOKEN)
        return verdicts

    def _read_stored_pool(self, database: Connection) -> bytes:
        return bytes(_fetch_required_row(database.execute(_POOL, (self._slot_number_of_process,), binary=True))[0])

    def _replace_stored_pool(self, database: Connection, content: bytes) -> None:
        database.execute(_FILL, (content, self._slot_number_of_process))

    def _add_counts(
        self, database: Connection, group: Group, row: AgreementRow, increments: Sequence[tuple[int, int]]
    ) -> None:
        slot_key = (*group, self._slot_number_of_process)
        if row.is_survey:
            reports, counts = map(list, zip(*increments, strict=True))
            database.execute(_REPORT, (*slot_key, reports, counts))
        else:
            blocks = block_numbers_to_write(increments, row.outcomes)
            database.execute(
                _COUNT,
                (
                    blocks,
                    blocks_with_counts_added(_lock_and_read_blocks(database, slot_key, blocks), increments),
                    *slot_key,
                ),
            )

    def _add_day_count(self, database: Connection, group: Group, day: str, count: int) -> None:
        database.execute(_ARRIVE, (*group, day, self._slot_number_of_process, count))

    def _request_erasure_if_few_samples(self, count: int) -> None:
        pass  # nothing to erase


def _fetch_required_row(cursor: Any) -> Any:
    row = cursor.fetchone()
    assert row is not None
    return row


def _lock_and_read_blocks(database: Connection, slot_key: tuple[int, int, int], numbers: list[int]) -> dict[int, bytes]:
    """The content of these blocks, locked in their order; missing blocks are created."""
    contents = dict(database.execute(_HELD, (*slot_key, numbers), binary=True).fetchall())
    if len(contents) < len(numbers):
        database.execute(_MAKE, (*slot_key, EMPTY, numbers))
        contents = dict(database.execute(_HELD, (*slot_key, numbers), binary=True).fetchall())
    return contents


class _PostgresConnection(EngineConnection):
    """A connection to the server, at its own level of isolation."""

    def __init__(self, address: str, wait: float, isolation: str) -> None:
        super().__init__(address_without_password(address), wait, (psycopg.Error,))
        self._address, self._isolation = address, isolation
        self._process = 0

    @contextmanager
    def _engine_transaction(self, *, writes: bool) -> Iterator[Connection]:
        database = self._begin_transaction()
        with _cutting_connection_after_timeout(database, _LONGER * self._wait):
            yield database
            if database.execute("COMMIT").statusmessage != "COMMIT":
                raise self._store_error("it did not commit; try again")

    def _failure_reason(self, error: Exception) -> str:
        """PostgreSQL's own words in one line, which contain no password."""
        assert isinstance(error, psycopg.Error)
        message = error.diag.message_primary or str(error) or type(error).__name__
        return f"{' '.join(message.split())}; try again"

    def _begin_transaction(self) -> Connection:
        """A connection in a transaction. One that died since its last use is replaced, since nothing was asked of it yet."""
        if self._database is not None and self._process != os.getpid():
            self._forgotten.append(self._database)
            self._database = None
        if self._database is not None:
            start = time.monotonic()
            try:
                return self._begin_transaction_on(self._database)
            except psycopg.OperationalError:
                if time.monotonic() - start > self._wait / 2:  # the server hangs, and a new connection would too
                    raise
                self._drop_connection()
        self.places.clear()
        self._process = os.getpid()
        self._database = psycopg.connect(
            self._address,
            autocommit=True,
            prepare_threshold=None,  # a pooler may move transactions between connections
            connect_timeout=max(2, round(self._wait)),
            application_name="discreet",
        )
        return self._begin_transaction_on(self._database)

    def _begin_transaction_on(self, database: Connection) -> Connection:
        with _cutting_connection_after_timeout(database, self._wait):
            database.execute(_BEGIN.format(isolation=self._isolation, wait=round(1000 * _LONGER * self._wait)))
        return database


@contextmanager
def _cutting_connection_after_timeout(database: Connection, wait: float) -> Iterator[None]:
    """Cut the connection if the block takes longer: a stopped server or a lost network would be waited for without end."""
    done, guard = False, threading.Lock()

    def shut_connection() -> None:
        with guard:
            if not done:
                with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(database.fileno())) as server_socket:
                    server_socket.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(wait, shut_connection)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            done = True
        timer.cancel()


def address_without_password(address: str) -> str:
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
