"""`SqliteStore`, a store in one SQLite file, and `open_store`, which opens a file or a PostgreSQL database.

The file has a write-ahead log and synchronous = FULL, so that commits survive a kill and a power cut. The primary key of `spoken` decides
whether a client is new, inside a transaction that has the file's one write lock (BEGIN IMMEDIATE). It needs no earlier look, so no other
process can come between. One connection writes and one reads, each behind its own lock; readers of a write-ahead log never wait for its
writer. After a failure the connection is dropped and the next call opens the file anew: a disk with room again, or a file back in its
place, needs no restart.

The log keeps earlier content until it is copied to the file and its own bytes are overwritten. It is emptied (`wal_checkpoint(TRUNCATE)`)
when the file is opened, when the log is long, and by `erase_overwritten_data` after a transaction of fewer samples than are counted together
(`discreet.collect._counting`). It cannot be emptied while another process reads; the next call tries again. Freed bytes in the file are
overwritten by zeros (`secure_delete`).

The file is made under another name and appears whole or not at all. It states its kind (`application_id`) and format (`user_version`). A
file of an earlier format is upgraded in one transaction when it is opened; its counts stay.
"""

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import atomic_write, error_reason
from discreet.collect._counting import (
    KEPT,
    AgreementRow,
    Arrival,
    Group,
    Seal,
    Verdict,
    fetch_outcome_counts_from_rows,
    read_seal_file,
)
from discreet.collect._store import EngineConnection, Store
from discreet.errors import DiscreetError, StoreError

WAIT_SECONDS = 10.0
APPLICATION = 0x64637374  # "dcst"
FORMAT = 4
_FIRST_SCHEMA = """
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
_UPGRADES = {  # from each format to the next
    1: (
        "ALTER TABLE agreements ADD COLUMN apart INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE pool (slot INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
        "INSERT INTO pool VALUES (0, X'00')",
        "CREATE TABLE tokens (digest BLOB PRIMARY KEY, revoked INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE gateways (digest BLOB PRIMARY KEY, id TEXT NOT NULL, revoked INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE signatures (agreement INTEGER PRIMARY KEY, signer TEXT NOT NULL, signature TEXT NOT NULL, addresses TEXT NOT NULL) "
        "STRICT",
    ),
    2: ("CREATE TABLE collections (collection INTEGER PRIMARY KEY, closed TEXT, least INTEGER NOT NULL) STRICT",),
    3: (
        "ALTER TABLE collections ADD COLUMN shown TEXT",
        "ALTER TABLE collections ADD COLUMN ticket TEXT",
        "CREATE TABLE questions (agreement INTEGER PRIMARY KEY, words TEXT NOT NULL) STRICT",
    ),
}
_SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",  # otherwise macOS flushes to the drive's cache only
    "cache_size = -65536",  # KiB
    "wal_autocheckpoint = 16384",  # pages: digests are spread over all pages, so waiting saves writes
    "journal_size_limit = 0",  # truncate a log that restarts
    "secure_delete = ON",
)
_LONG_LOG = 1 << 26  # bytes, about that many pages
_READERS_SECONDS = 0.2  # to wait for readers before emptying the log
_SPEAK = "INSERT INTO spoken VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SAID = "SELECT key FROM spoken WHERE collection = ? AND round = ? AND client = ?"
_ADD = "ON CONFLICT DO UPDATE SET n = n + excluded.n"
_DAMAGED = "the file is damaged; restore it from a copy"
_REASONS = {
    sqlite3.SQLITE_BUSY: "another process has been writing for too long; try again",
    sqlite3.SQLITE_LOCKED: "another process has been writing for too long; try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it, or its log beside it, cannot be opened; check that file and folder are there and writable",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check it",
    sqlite3.SQLITE_NOTADB: "it is not a store; name another file, or restore it from a copy",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}


class SqliteStore(Store):
    """The store in a file; a missing one is created if `create` is true. `seal`: the encoding of its pool."""

    def __init__(
        self, path: str | Path, *, create: bool = True, wait: float = WAIT_SECONDS, seal: Seal | None = None
    ) -> None:
        self.path = Path(path)
        self._unsettled = False
        if not os.path.lexists(self.path):
            if not create:
                raise StoreError(f"there is no store {self.path}; check the name")
            _create_store_file(self.path)
        self._log_writer = _SqliteConnection(self.path, wait)
        super().__init__(self._log_writer, _SqliteConnection(self.path, wait), seal)
        self.agreements()

    def erase_overwritten_data(self) -> bool:
        """Empty the log after a transaction of few samples or if it is long; return whether that is done."""
        if self._log_writer.empty_log_if_longer_than(0 if self._unsettled else _LONG_LOG):
            self._unsettled = False
        return not self._unsettled

    def _read_counts_and_pools(
        self, database: sqlite3.Connection, row: AgreementRow, round: int
    ) -> tuple[NDArray[np.int64], list[bytes]]:
        query = "SELECT outcome, n FROM counted WHERE agreement = ? AND round = ?"
        counts = fetch_outcome_counts_from_rows(database.execute(query, (row.number, round)), row)
        return counts, [self._read_stored_pool(database)]

    def seal_pool_if_key_given(self) -> None:
        with self._transaction_without_samples() as database:
            pool = self._seal.decode_pool(self._read_stored_pool(database))
            if self._seal.has_secret:
                self._replace_stored_pool(database, self._seal.encode_pool(pool))

    @contextmanager
    def _transaction_without_samples(self) -> Iterator[sqlite3.Connection]:
        with self._writer.transaction(writes=True) as database:
            yield database
        self._unsettled = True
        self.erase_overwritten_data()

    def _translate_sql_for_engine(self, statement: str) -> str:
        return statement

    def _lock_until_transaction_ends(self, database: sqlite3.Connection, lock: int, *, shared: bool = False) -> None:
        pass  # one transaction writes at a time

    def _insert_missing_rows(self, database: sqlite3.Connection, table: str, columns: Sequence[Sequence[Any]]) -> int:
        placeholders = ", ".join("?" * len(columns))
        rows = zip(*columns, strict=True)
        return database.executemany(
            f"INSERT INTO {table} VALUES ({placeholders}) ON CONFLICT DO NOTHING", rows
        ).rowcount

    def _unrevoked_tokens_among(self, database: sqlite3.Connection, digests: Sequence[bytes]) -> set[bytes]:
        query = "SELECT 1 FROM tokens WHERE digest = ? AND revoked = 0"
        return {digest for digest in digests if database.execute(query, (digest,)).fetchone() is not None}

    def _insert_arrivals(
        self, database: sqlite3.Connection, collection: int, round: int, arrivals: Sequence[Arrival], *, is_closed: bool
    ) -> list[Verdict]:
        verdicts = []
        for arrival in arrivals:
            if not is_closed and database.execute(_SPEAK, (collection, round, arrival.client, arrival.key)).rowcount:
                verdicts.append(Verdict.COUNTED)
                continue
            row = database.execute(_SAID, (collection, round, arrival.client)).fetchone()
            verdict = Verdict.CLOSED if row is None else Verdict.SPOKEN
            verdicts.append(Verdict.AGAIN if row is not None and row[0] == arrival.key else verdict)
        return verdicts

    def _read_stored_pool(self, database: sqlite3.Connection) -> bytes:
        row = database.execute("SELECT content FROM pool").fetchone()
        if row is None:
            raise StoreError(_DAMAGED)
        return bytes(row[0])

    def _replace_stored_pool(self, database: sqlite3.Connection, content: bytes) -> None:
        database.execute("UPDATE pool SET content = ?", (content,))

    def _add_counts(
        self, database: sqlite3.Connection, group: Group, row: AgreementRow, increments: Sequence[tuple[int, int]]
    ) -> None:
        database.executemany(
            f"INSERT INTO counted VALUES (?, ?, ?, ?) {_ADD}", [(*group, *increment) for increment in increments]
        )

    def _add_day_count(self, database: sqlite3.Connection, group: Group, day: str, count: int) -> None:
        database.execute(f"INSERT INTO arrived VALUES (?, ?, ?, ?) {_ADD}", (*group, day, count))

    def _request_erasure_if_few_samples(self, count: int) -> None:
        self._unsettled |= 0 < count < KEPT


class _SqliteConnection(EngineConnection):
    """A connection to the file. Damaged texts and numbers in it are failures of the engine too."""

    def __init__(self, path: Path, wait: float) -> None:
        super().__init__(str(path), wait, (sqlite3.Error, UnicodeDecodeError, OverflowError))
        self._path = path
        self._opened_as: tuple[int, ...] = ()

    @contextmanager
    def _engine_transaction(self, *, writes: bool) -> Iterator[sqlite3.Connection]:
        database = self._open_store_file()
        database.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        yield database
        if (os.getpid(), *_store_file_identity(self._path)) != self._opened_as:  # the commit would be lost
            raise self._store_error("another file has taken its place; put it back")
        database.execute("COMMIT")

    def _failure_reason(self, error: Exception) -> str:
        if not isinstance(error, sqlite3.Error):
            return _DAMAGED
        return _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))

    def empty_log_if_longer_than(self, size: int) -> bool:
        """Copy the log to the file and empty it, if it has more than `size` bytes; return whether it is empty."""
        log = Path(f"{self._path}-wal")
        with self._lock:
            if self._database is None or self._opened_as[0] != os.getpid():
                return True  # opening the file empties it
            with suppress(sqlite3.Error, OSError):  # commits are on the disk already
                if log.stat().st_size > size:
                    _truncate_log(self._database, self._wait)
                return log.stat().st_size == 0
        return False

    def _open_store_file(self) -> sqlite3.Connection:
        if self._database is not None and self._opened_as[0] != os.getpid():
            self._forgotten.append(self._database)
            self._database = None
        if self._database is None:
            self.places.clear()
            self._opened_as = (os.getpid(), *_store_file_identity(self._path))
            location = f"{self._path.absolute().as_uri()}?mode=rw"
            database = self._database = sqlite3.connect(
                location, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False
            )
            self._refuse_unknown_file_format(database)
            for setting in _SETTINGS:
                database.execute(f"PRAGMA {setting}")
            with suppress(sqlite3.Error):  # copying the log makes room on a full disk
                _truncate_log(database, self._wait)
        connection: sqlite3.Connection = self._database
        return connection

    def _refuse_unknown_file_format(self, database: sqlite3.Connection) -> None:
        """Raise an error for a file of another program or of an unknown format."""
        ((application,), (version,)) = (
            database.execute(f"PRAGMA {mark}").fetchone() for mark in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise self._store_error("it is an SQLite file, but not a store of a collection; name another file")
        if version in _UPGRADES:
            version = _upgrade_store_file(database)
        if version != FORMAT:
            raise self._store_error(f"it is of format {version}, not {FORMAT}; upgrade discreet to read it")


def _truncate_log(database: sqlite3.Connection, wait: float) -> None:
    """Empty the log; wait for readers only a moment, so that a long reader does not stop all others."""
    database.execute(f"PRAGMA busy_timeout = {round(1000 * min(wait, _READERS_SECONDS))}")
    try:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        database.execute(f"PRAGMA busy_timeout = {round(1000 * wait)}")


def _upgrade_store_file(database: sqlite3.Connection) -> int:
    """Upgrade a file of an earlier format, all of it or nothing, and return its format then."""
    database.execute("BEGIN IMMEDIATE")
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        _upgrade_tables_to_current_format(database, version)  # none, if another process has done it
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _upgrade_tables_to_current_format(database: sqlite3.Connection, version: int) -> None:
    """Bring the tables of a format to the present one."""
    if version not in _UPGRADES:
        return
    for earlier in range(version, FORMAT):
        for statement in _UPGRADES[earlier]:
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {FORMAT}")


def _store_file_identity(path: Path) -> tuple[int, int]:
    """The identity of a file that may be a store. The file is not opened: closing it would release SQLite's locks on it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise StoreError(f"store {path} cannot be opened: {error_reason(error)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"store {path} is not a plain file; name another")
    if not status.st_size:
        raise StoreError(f"{path} is empty, and so not a store; name another file")
    return status.st_dev, status.st_ino


def _create_store_file(path: Path) -> None:
    """Create the file, whole. A file that another process has just created is as good."""
    log = Path(f"{path}-wal")
    if os.path.lexists(log):
        raise StoreError(
            f"{log} is the log of a store that is gone, and may hold samples; put {path} back, or name another file"
        )
    try:
        with tempfile.TemporaryDirectory() as folder:
            content = _bytes_of_empty_store(Path(folder) / "store")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {path} cannot be made: {error_reason(error)}") from None
    try:
        with atomic_write(path, what="store", private=True) as file:
            file.write(content)
    except DiscreetError as error:
        if not os.path.isfile(path):
            raise StoreError(str(error)) from None


def _bytes_of_empty_store(path: Path) -> bytes:
    """The content of an empty store."""
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.executescript(_FIRST_SCHEMA)
        _upgrade_tables_to_current_format(database, 1)
    finally:
        database.close()
    return path.read_bytes()


_POSTGRES = ("postgresql", "postgres")
_SQLITE = b"SQLite format 3\0"  # the first bytes of a file


def is_store_name(where: str) -> bool:
    """Whether a name is that of a store and not of a table: the address of a database, or an SQLite file."""
    scheme, separator, _ = where.partition("://")
    if separator:
        return scheme in _POSTGRES
    try:
        with open(where, "rb") as file:
            return os.path.isfile(where) and file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


def store_display_name(where: str) -> str:
    """A store's name for people: an address without its password."""
    if where.partition("://")[0] not in _POSTGRES:
        return where
    from discreet.collect._postgres import address_without_password

    return address_without_password(where)


def open_store(where: str | Path, *, create: bool = True, seal: str | Path | None = None) -> Store:
    """Open the store of a collection.

    Args:
        where: an SQLite file, or `postgresql://USER@HOST/DATABASE`.
        create: whether to create a missing file, or missing tables in a database.
        seal: the file with the key that seals the store, from the next sample on if it was not sealed; by default the file that the
            variable DISCREET_SEAL names, if any.

    Returns:
        The store.

    Raises:
        StoreError: for what cannot be opened, is no store or is one of a newer version; nothing is overwritten.
        DiscreetError: for what is neither a path nor an address, and a seal that cannot be read.
    """
    if not isinstance(where, str | os.PathLike) or not str(where):
        raise DiscreetError(f"where = {where!r} is not the name of a file or an address postgresql://...")
    scheme, separator, _ = str(where).partition("://")
    if separator and scheme in _POSTGRES:
        from discreet.collect._postgres import PostgresStore  # its driver is not needed for files

        return PostgresStore(str(where), create=create, seal=read_seal_file(seal))
    if separator:
        raise DiscreetError(f"a store is a file, or postgresql://...; {scheme}:// is neither")
    return SqliteStore(where, create=create, seal=read_seal_file(seal))
