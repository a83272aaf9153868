"""A book: one SQLite file to which lines are added, each durable before it counts, and in which every lost or changed bit shows.

    mark of a line  =  BLAKE2b-128(mark of the line before | the line),      last = (how many lines, mark of the last one)

Line 0 says what the file is. All lines are read, in the order of the table itself (there is no index that could be wrong), and
all marks are recomputed before any line is believed: a line that is changed, removed, added or moved breaks the chain or its
end. Marks are no signatures: whoever can write the file can make new ones, or put back an old copy.

Rollback journal with synchronous = EXTRA: in SQLite's default FULL the removal of the journal may not survive a power cut,
and a journal that comes back would undo a line on which something was released. (A write-ahead log with FULL is as safe, but
is three files.) The file is its owner's alone (0600), and so is its journal, which takes its mode. Each operation opens the
file anew, so that a book may be shared between processes, threads and forks.
"""

import hashlib
import json
import math
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet._files import check_private, reason
from discreet.errors import LedgerError

WAIT_SECONDS = 10.0
_SCHEMA = (
    "CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL, mark BLOB NOT NULL) STRICT",
    "CREATE TABLE last (number INTEGER PRIMARY KEY, mark BLOB NOT NULL) STRICT",
)
_DAMAGED = "the file is damaged; restore it, and do not start a new one: what was spent stays spent"
_REASONS = {
    sqlite3.SQLITE_BUSY: "another process has been using it for too long; try again",
    sqlite3.SQLITE_LOCKED: "another process has been using it for too long; try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it, or its journal beside it, cannot be opened; check that file and folder are writable",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check it",
    sqlite3.SQLITE_NOTADB: "it is not a ledger; check the name",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}


class Book:
    """The lines of one file. `kind` is its first line's word for what the file is; `what` names it in messages.

    `older`: words of earlier formats that are read and written on too.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        kind: str,
        what: str = "ledger",
        wait: float = WAIT_SECONDS,
        older: tuple[str, ...] = (),
    ) -> None:
        self.path, self.kind, self.what, self.wait, self.older = Path(path), kind, what, wait, older

    def check(self) -> None:
        """Refuse a file that is missing, that is no plain file or that others may read."""
        try:
            status = self.path.stat()
        except (OSError, ValueError) as error:  # a folder that may not be entered, a name with a zero byte
            raise LedgerError(f"{self.what} {self.path} cannot be opened: {reason(error)}") from None
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"{self.what} {self.path} is not a plain file; check the name")
        check_private(self.path, status, what=self.what, error=LedgerError)

    def create(self, terms: dict[str, Any]) -> None:
        """Make the file, with its first line. A file that holds anything is never replaced."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:  # not opened: closing it would let go of the locks that this process holds on it
            pass
        except (OSError, ValueError) as error:
            raise LedgerError(f"{self.what} {self.path} cannot be made: {reason(error)}") from None
        else:
            os.fchmod(handle, 0o600)  # whatever the umask; its journals take the same mode
            os.close(handle)
        with self._connection() as database, self._transaction(database):
            if not _is_blank(database):
                raise LedgerError(
                    f"{self.path} exists already, and replacing it would forget what was spent; use another name"
                )
            for statement in _SCHEMA:
                database.execute(statement)
            _append(database, [], {"format": self.kind, **terms})

    def is_blank(self) -> bool:
        """Whether the file holds nothing: its creation was cut short, and may be tried again."""
        with self._connection() as database:
            return _is_blank(database)

    def lines(self) -> list[Any]:
        """All lines, verified; the first says what the file is."""
        with self._connection() as database:
            database.execute("BEGIN")  # one state of the file, though it is read by several queries
            return self._lines(database)

    @contextmanager
    def writing(self) -> Iterator["BookWriter"]:
        """One transaction, its lock taken before anything is read: all of it on the disk at the end, or nothing."""
        with self._connection() as database, self._transaction(database):
            lines = self._lines(database)
            if database.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise LedgerError(self._refusal(_DAMAGED))
            yield BookWriter(database, lines)

    def _lines(self, database: sqlite3.Connection) -> list[Any]:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'last'").fetchone():
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'charges'").fetchone():
                raise LedgerError(_first_format_advice(self.path, database))
            raise LedgerError(
                f"{self.path} is not a {self.what}, or its creation was cut short; check the name, or create it"
            )
        rows = database.execute("SELECT number, line, mark FROM lines NOT INDEXED ORDER BY number").fetchall()
        ends = database.execute("SELECT number, mark FROM last").fetchall()
        mark = b""
        for place, (number, line, stored) in enumerate(rows):
            mark = _line_mark(mark, line) if isinstance(line, str) else b""
            if number != place or stored != mark:
                raise LedgerError(self._refusal(_DAMAGED))
        if ends != [(len(rows), mark)] or not rows:
            raise LedgerError(self._refusal(_DAMAGED))
        lines = [json.loads(line) for _, line, _ in rows]
        if lines[0].get("format") not in (self.kind, *self.older):
            raise LedgerError(
                f"{self.path} says that it is a {lines[0].get('format')!r}, not a {self.kind!r}; check the name, or upgrade "
                "discreet to read it"
            )
        return lines

    def _refusal(self, why: str) -> str:
        return f"{self.what} {self.path}: {why}; no sample was released"

    @contextmanager
    def _transaction(self, database: sqlite3.Connection) -> Iterator[None]:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("PRAGMA fullfsync = ON")  # where flushing otherwise stops at the drive's cache
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection. What SQLite says becomes an error that names the file, the reason and what is known about the charge."""
        self.check()
        try:
            with sqlite_connection(self.path, self.wait) as database:
                yield database
        except sqlite3.Error as error:
            why = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
            raise LedgerError(self._refusal(why)) from error
        except (UnicodeDecodeError, OverflowError) as error:  # what SQLite hands over from a damaged file
            raise LedgerError(self._refusal(_DAMAGED)) from error


class BookWriter:
    """The lines of a book that is being written to, and the means to add one."""

    def __init__(self, database: sqlite3.Connection, lines: list[Any]) -> None:
        self._database, self.lines = database, lines

    def add(self, line: Any) -> None:
        """One more line, durable when the transaction ends."""
        _append(self._database, self.lines, line)


def _is_blank(database: sqlite3.Connection) -> bool:
    return not database.execute("SELECT 1 FROM sqlite_master").fetchone()


def _append(database: sqlite3.Connection, lines: list[Any], line: Any) -> None:
    text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    before = database.execute("SELECT mark FROM last").fetchone()
    mark = _line_mark(b"" if before is None else before[0], text)
    database.execute("INSERT INTO lines VALUES (?, ?, ?)", (len(lines), text, mark))
    lines.append(line)
    database.execute("DELETE FROM last")
    database.execute("INSERT INTO last VALUES (?, ?)", (len(lines), mark))


def _line_mark(before: bytes, line: str) -> bytes:
    return hashlib.blake2b(before + line.encode(), digest_size=16, person=b"discreet line").digest()


@contextmanager
def sqlite_connection(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """A connection to an SQLite file, closed at the end."""
    location = f"{path.absolute().as_uri()}?mode=rw"
    database = sqlite3.connect(location, uri=True, timeout=wait, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


def _first_format_advice(path: Path, database: sqlite3.Connection) -> str:
    """What to do with a ledger of the first format, which answered by the data as well and so told whether they had changed."""
    charges = [epsilon for (epsilon,) in database.execute("SELECT epsilon FROM charges")]
    return (
        f"{path} is of the first format, whose answers told whether the data had changed; it holds {len(charges):,} charges that "
        f"add up to epsilon = {math.fsum(charges):g}: keep it, and create a new ledger with what is left of its budget"
    )
