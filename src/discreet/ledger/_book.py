"""`Book`, an append-only SQLite file in which changes show, and `Rounds`, the book of rounds that were released under a secret.

A book: one SQLite file to which lines are added, each durable before it counts, and in which every lost or changed bit shows.

    mark of a line  =  BLAKE2b-128(mark of the line before | the line),      last = (how many lines, mark of the last one)

Line 0 says what the file is. All lines are read, in the order of the table itself (there is no index that could be wrong), and
all marks are recomputed before any line is believed: a line that is changed, removed, added or moved breaks the chain or its
end. Marks are no signatures: whoever can write the file can make new ones, or put back an old copy.

Rollback journal with synchronous = EXTRA: in SQLite's default FULL the removal of the journal may not survive a power cut,
and a journal that comes back would undo a line on which something was released. (A write-ahead log with FULL is as safe, but
is three files.) The file is its owner's alone (0600), and so is its journal, which takes its mode. Each operation opens the
file anew, so that a book may be shared between processes, threads and forks.

Which rounds were released under a secret, and a keyed digest of what each was released on: a round is released once.

Equal data give equal samples, so a round that is released again on changed data tells, by the samples that differ, that they
changed (`discreet.release._keyed`). So before any sample of a round appears, its agreement, its question and its number are
noted here with the digest of the whole input; the same again is allowed, and gives the same samples; another input is refused.

The notes lie in a book beside the secret's file (`Secret.state`). A secret that is in no file has them in the memory of this
process alone: another process knows nothing of them, so keep such a secret for what is released once. A secret that serves a
ledger of a population serves that ledger alone, which then answers by agreement and round, whatever the data.
"""

import hashlib
import json
import math
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from discreet._base.files import check_private, reason
from discreet.agreement import Agreement
from discreet.errors import DiscreetError, LedgerError
from discreet.release import Question, Secret

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


FORMAT = "discreet rounds 1"
_ROUND, _LEDGER = "round", "ledger"
_NOTES_IN_MEMORY: dict[bytes, list[Any]] = {}  # by a digest of the secret, for secrets that are in no file
_MEMORY_LOCK = threading.RLock()


class _Notes(Protocol):
    lines: list[Any]

    def add(self, line: Any) -> None: ...


class _NotesInMemory:
    def __init__(self, lines: list[Any]) -> None:
        self.lines, self.add = lines, lines.append


class Rounds:
    """What was released under one secret."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._book = None if secret.state is None else Book(secret.state, kind=FORMAT, what="record of rounds")

    def note(self, agreement: Agreement, question: Question, number: int, digest: bytes) -> None:
        """Note that this round is released on the input with this digest. Refused if it was released on another one."""
        asked = [question.value, question.count, question.weight]
        with self._writing() as notes:
            self._refuse_ledger(notes.lines)
            released = {
                line[3]: line[4] for line in notes.lines if line[0] == _ROUND and line[1:3] == [agreement.id, asked]
            }
            if number not in released:
                notes.add([_ROUND, agreement.id, asked, number, digest.hex()])
            elif released[number] != digest.hex():
                raise DiscreetError(
                    f"round {number} of agreement {agreement.id[:12]}... was released on other data in column "
                    f"{question.value!r}, and samples that differ would tell that they changed; "
                    + _advice(agreement, released)
                )

    def serve(self, ledger: str) -> None:
        """Note that this secret serves the population's ledger with that id. Refused if it serves another, or served without one."""
        with self._writing() as notes:
            served = [line[1] for line in notes.lines if line[0] == _LEDGER]
            if served == [ledger]:
                return
            if served:
                raise LedgerError(
                    "this secret serves another ledger, and this one knows nothing of what was spent there; give that ledger, or "
                    "make a new secret for a new one, whose budget is what is left"
                )
            if any(line[0] == _ROUND for line in notes.lines):
                raise LedgerError(
                    "rounds were released under this secret without a ledger, which would know nothing of them; make a new secret for the "
                    "ledger, and a budget that is smaller by what those rounds have cost: what was spent stays spent"
                )
            notes.add([_LEDGER, ledger])

    def check_without_ledger(self) -> None:
        """Refuse a release without a ledger under a secret that serves one."""
        self._refuse_ledger(self._read_notes())

    def _read_notes(self) -> list[Any]:
        """All notes there are, for whoever adds none."""
        if self._book is None:
            return _NOTES_IN_MEMORY.get(self._name, [])
        return self._book.lines()[1:] if os.path.lexists(self._book.path) else []

    def _refuse_ledger(self, lines: list[Any]) -> None:
        if any(line[0] == _LEDGER for line in lines):
            raise LedgerError(
                "this secret serves a ledger, which counts what every client spends; give that ledger: ledger= (--ledger)"
            )

    @property
    def _name(self) -> bytes:
        return hashlib.blake2b(b"held", key=self._secret.value, digest_size=32).digest()

    @contextmanager
    def _writing(self) -> Iterator[_Notes]:
        if self._book is None:
            with _MEMORY_LOCK:
                yield _NotesInMemory(_NOTES_IN_MEMORY.setdefault(self._name, []))
            return
        if not os.path.lexists(self._book.path):
            with _MEMORY_LOCK:
                self._make_book(self._book)
        with self._book.writing() as pen:
            yield _NotesInBook(pen)

    def _make_book(self, book: Book) -> None:
        """Make the book, unless another process is quicker."""
        try:
            book.create({})
        except LedgerError as error:
            if not os.path.lexists(book.path):
                raise LedgerError(
                    f"{error}; say where else to keep it: read_secret(path, state=) (--state), the same place for every release"
                ) from None
            book.lines()


class _NotesInBook:
    """The lines of a book after its first one."""

    def __init__(self, pen: _Notes) -> None:
        self.lines, self.add = pen.lines[1:], pen.add


def forget_rounds_in_memory() -> None:
    """Forget the rounds of all secrets that are in no file: for tests, which stand for many processes."""
    with _MEMORY_LOCK:
        _NOTES_IN_MEMORY.clear()


def _advice(agreement: Agreement, released: dict[int, str]) -> str:
    free = next((number for number in range(1, agreement.rounds + 1) if number not in released), None)
    if free is None:
        return (
            f"all {agreement.rounds} rounds agreed on are released: make an agreement with more, whose rounds spend epsilon on top of "
            "these, or give the data as they were"
        )
    return f"new data are a new round, with fresh randomness: round={free} (--round {free}), which spends epsilon again"
