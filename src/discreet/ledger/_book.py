"""What was spent: `Budget` decides whether a release is allowed, `Book` is a file that keeps charges, `Rounds` those of a secret.

**Budget.** Releases stay within (epsilon, delta) even if each is chosen after seeing earlier samples. Three sums are kept, and a release is
allowed if any of them stays within the budget:

* basic: the epsilons, as exact rationals, add up to at most epsilon. An epsilon counts as the decimal that was written if the
  nearest float is larger (ten times 0.1 is 1). Samplers draw at most at that epsilon (`stated_decimal`), so the sum holds for the draws;
* same: all releases have one profile, and their exact composition is at most epsilon at delta/2. Stopping early is a
  function of the whole sequence, so the bound for the largest number of releases holds at every stopping time;
* Renyi: the divergences at one order, fixed with the budget, add up to at most epsilon at delta/2. This also holds if later
  releases depend on earlier samples (Feldman and Zrnic, NeurIPS 2021, Theorem 3.1: a Renyi filter).

A run ends within at least one of the three sums. Split any event by which sum that is. The parts lose (epsilon, 0), (epsilon, delta/2) and
(epsilon, delta/2), together (epsilon, delta). At delta = 0 only the first sum is used.

A single release may use the whole delta: it is chosen before any sample is seen, so nothing has to be split. If it does not fit into
delta/2, nothing is allowed after it, because all three sums grow with every release. So a release that promises (epsilon, delta) fits into
a budget of (epsilon, delta), by its promise (`covers`) if not by its profile.

**Book**, an append-only SQLite file that detects changes. Each line is durable before it counts, and every lost or changed bit is detected:

    mark of a line  =  BLAKE2b-128(mark of the line before | the line),      last = (number of lines, mark of the last one)

Line 0 states what the file is. Before any line is used, all lines are read in the order of the table and all marks are recomputed. (There
is no index that could be wrong.) A line that is changed, removed, added or moved breaks the chain or its end. Marks are not signatures:
anyone who can write the file can compute new marks, or restore an old copy.

The file uses a rollback journal with synchronous = EXTRA. Under SQLite's default FULL, the removal of the journal may not survive a power
cut. A journal that comes back would undo a line after its release. (A write-ahead log with FULL is as safe, but needs three files.) File
and journal are readable by their owner alone (0600). Each operation opens the file anew, so processes, threads and forks can share a book.

A book gets its name once its first line is durable, so an empty file of that name is damaged and never started anew. A file with two names
(a hard link) is refused: SQLite looks for the journal beside the name that it is given, so a line that a crash leaves uncommitted would
count under one name and be undone under the other. For the same reason a book notes under which name it was written last. While that name
is gone and its journal is left, the book is refused under other names: either it was renamed after a crash, and the journal belongs to it,
or it is a restored copy, and the journal belongs to the lost original. The file cannot tell which, so the error gives a safe way for each.

**Rounds** ensures that a round is released once under a secret. Equal data give equal samples, so a second release of a round on changed data
would reveal, by the samples that differ, that they changed (`discreet.release._randomness`). Before any sample of a round appears, the book
therefore notes its agreement, question and number with a keyed digest of the whole input. Releasing the same input again is allowed and
gives the same samples. Another input is an error.

The notes are in a book beside the secret's file (`Secret.state`). For a secret without a file they are in the memory of this process alone,
so use such a secret for a single release. A secret that serves a population's ledger serves only that ledger, which answers by agreement
and round without looking at the data.
"""

import hashlib
import json
import math
import os
import secrets
import shlex
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet._base.files import (
    NEW_FILE,
    error_reason,
    refuse_file_open_to_others,
    refuse_system_without_file_owners,
    sync_folder,
)
from discreet._base.numerics import stated_decimal
from discreet.accounting import MOST_SAMPLES, BoxProfile, compose, renyi
from discreet.agreement import Agreement
from discreet.errors import NON_NEGATIVE, DiscreetError, LedgerError, check_path
from discreet.privacy import DELTA, EXPONENT, Privacy, Pure, check_epsilon
from discreet.release import Question, Secret

_ROUNDING = 1.0 + 1e-12
_ORDERS = (1e-3, 1e6)  # above 1
_NO_DELTA = 1e-250  # too small to gain anything


@dataclass(frozen=True)
class Spent:
    """What releases have cost.

    Attributes:
        basic: the plain sum of their epsilons.
        accounted: the accountant's epsilon at the budget's delta.
    """

    basic: Fraction
    accounted: float

    @property
    def epsilon(self) -> float:
        """The smaller of `basic` and `accounted`."""
        return min(float(self.basic), self.accounted)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """All releases of one client together are to be (epsilon, delta)-LDP.

    Args:
        epsilon: of all releases together.
        delta: of all releases together; 0 for the pure guarantee.

    Raises:
        DiscreetError: for arguments out of range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        delta = DELTA.check(
            "delta", self.delta, "the chance with which the budget may be exceeded; 0 for the pure guarantee"
        )
        object.__setattr__(self, "delta", delta)

    @property
    def order(self) -> float:
        """The Renyi order of the filter: the best one for a total of epsilon spread over many small releases."""
        log_inverse = -math.log(self.delta / 2.0)
        excess = (
            math.sqrt(log_inverse) * (math.sqrt(log_inverse + self.epsilon) + math.sqrt(log_inverse)) / self.epsilon
        )
        return 1.0 + min(max(excess, _ORDERS[0]), _ORDERS[1])

    def spent(self, releases: Sequence[tuple[BoxProfile, int]]) -> Spent:
        """The cost of the given number of releases from each box."""
        basic = sum((Fraction(stated_decimal(profile.epsilon)) * count for profile, count in releases), Fraction(0))
        accounted_epsilon = math.inf
        if self.delta > _NO_DELTA and releases:
            accounted_epsilon = self._epsilon_by_renyi(releases)
            if len(releases) == 1 and releases[0][1] <= MOST_SAMPLES:
                delta = self.delta if releases[0][1] == 1 else self.delta / 2.0
                accounted_epsilon = min(accounted_epsilon, compose(releases).epsilon(delta))
        return Spent(basic, accounted_epsilon)

    def allows(self, spent: Spent) -> bool:
        """Whether `spent` is within the budget."""
        return spent.basic <= Fraction(stated_decimal(self.epsilon)) or spent.accounted <= self.epsilon

    def covers(self, privacy: Privacy) -> bool:
        """Whether a single release with that promise is within the budget."""
        if not self.delta and not isinstance(privacy, Pure):  # a positive profile may underflow to 0
            return False
        return privacy.profile(min(self.epsilon, EXPONENT.high)) <= self.delta

    def left(self, spent: Spent) -> float:
        """The remaining epsilon, rounded down."""
        remainder = max(Fraction(0), Fraction(stated_decimal(self.epsilon)) - spent.basic)
        epsilon = float(remainder)
        if Fraction(stated_decimal(epsilon)) > remainder:
            epsilon = math.nextafter(epsilon, 0.0)
        return max(epsilon, self.epsilon - spent.accounted)

    def _epsilon_by_renyi(self, releases: Sequence[tuple[BoxProfile, int]]) -> float:
        order = self.order
        divergence = math.fsum(count * renyi(profile, order=order) for profile, count in releases) * _ROUNDING
        return divergence + math.log1p(-1.0 / order) - math.log(self.delta / 2.0 * order) / (order - 1.0)

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:g}" + (f" at delta = {self.delta:g}" if self.delta else "")


def numbers_as_distinct_texts(first: float, second: float) -> tuple[str, str]:
    """Two different numbers as texts with enough digits to tell them apart."""
    for digits in range(6, 17):  # more would spell out 0.3 as 0.29999999999999999
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(first), repr(second)


WAIT_SECONDS = 10.0
PARTIAL = ".new-"  # in the name of a file that is not a book yet
_SCHEMA = (
    "CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL, mark BLOB NOT NULL) STRICT",
    "CREATE TABLE last (number INTEGER PRIMARY KEY, mark BLOB NOT NULL) STRICT",
)
_PLACE = "CREATE TABLE IF NOT EXISTS place (path BLOB NOT NULL) STRICT"  # books of earlier versions get it when they are written
_JOURNAL = b"-journal"  # SQLite's suffix
_SQLITE_SUFFIXES = ("-journal", "-wal", "-shm")  # of files beside a database
LATEST_COPY = "a copy made after the last release (an older one would release later rounds again)"
_DAMAGED = f"the file is damaged; restore {LATEST_COPY}, and do not start a new one: what was spent stays spent"
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
    """The lines of one file. `kind` is the name of its format in line 0, and `what` its name in messages.

    `older`: names of earlier formats that can also be read and written.
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
        self.path, self.kind, self.what, self.older = check_path(what, path), kind, what, older
        self.wait = NON_NEGATIVE.check("wait", wait, "it is seconds")

    def refuse_unsafe_file(self) -> None:
        """Raise an error if the file is missing, is not a plain file or is readable by others."""
        try:
            status = self.path.stat()
        except (OSError, ValueError) as error:  # a folder without permission, a name with a zero byte
            raise LedgerError(f"{self.what} {self.path} cannot be opened: {error_reason(error)}") from None
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"{self.what} {self.path} is not a plain file; check the name")
        refuse_file_open_to_others(
            self.path,
            status,
            what=self.what,
            after=f" (if it is a {self.what}; otherwise check the name)",
            error=LedgerError,
        )
        if status.st_nlink > 1:
            self._refuse_hard_linked_file()

    def _refuse_hard_linked_file(self) -> None:
        """Raise an error for a file with a second name, unless that is what a creation left that was cut short; then remove it."""
        path = Path(os.path.realpath(self.path))
        with suppress(OSError):  # a folder that cannot be listed or written
            for leftover in path.parent.iterdir():
                if leftover.name.startswith(f"{path.name}{PARTIAL}") and leftover.samefile(path):
                    leftover.unlink(missing_ok=True)
        if path.stat().st_nlink > 1:
            raise LedgerError(
                f"{self.what} {self.path} has a second name (a hard link), and a charge that a crash interrupts under one name is undone "
                "under the other. Keep the name beside which NAME-journal lies, if there is one, and remove the other (find "
                f"{shlex.quote(str(path.parent))} -samefile {shlex.quote(str(path))}, then in higher folders)"
            )

    def create(self, terms: dict[str, Any]) -> None:
        """Make the file, whole with its first line. A file of that name is never replaced, not even an empty one."""
        refuse_system_without_file_owners(self.path, what=self.what, error=LedgerError)
        self._refuse_name_shared_with_sqlite()
        partial = self.path.parent / f"{self.path.name}{PARTIAL}{secrets.token_hex(8)}"
        try:
            handle = os.open(partial, os.O_RDWR | NEW_FILE, 0o600)
            os.fchmod(handle, 0o600)  # regardless of the umask; journals take the same mode
            os.close(handle)
            with self._using_connection(partial) as database, self._durable_transaction(database):
                for statement in _SCHEMA:
                    database.execute(statement)
                _append_line(database, [], {"format": self.kind, **terms})
                self._note_file_path(database)
            os.link(partial, self.path)
            sync_folder(self.path.parent)
        except FileExistsError:
            raise LedgerError(
                f"{self.path} exists already, and replacing it would forget what was spent; use another name"
            ) from None
        except LedgerError:
            raise
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            raise LedgerError(f"{self.what} {self.path} cannot be made: {error_reason(error)}") from None
        finally:
            with suppress(OSError, ValueError):
                partial.unlink()

    def _refuse_name_shared_with_sqlite(self) -> None:
        """Raise an error if SQLite would take the new file for a part of another one, or another file for a part of the new one.

        It applies and removes such parts: a ledger "x-journal" was removed by the first use of a ledger "x".
        """
        for suffix in _SQLITE_SUFFIXES:
            if self.path.name.endswith(suffix):
                raise LedgerError(
                    f"{self.what} {self.path} would be removed by the first use of a file without the {suffix!r} at its end, since SQLite "
                    "keeps a part of that file under this name; choose another name"
                )
            part = f"{self.path}{suffix}"
            if os.path.lexists(part) and not os.path.lexists(self.path):  # whose own part it is, while it is used
                raise LedgerError(
                    f"{part} is there, which SQLite would take for a part of the new {self.what} {self.path}, and remove. If a {self.what} "
                    f"of this name was there before, restore {LATEST_COPY}: what was spent stays spent. Otherwise choose another name"
                )

    def read_lines(self) -> list[Any]:
        """All lines, verified; the first states what the file is."""
        with self._using_connection() as database:
            database.execute("BEGIN")  # so that all queries see one state of the file
            return self._read_and_verify_lines(database)

    @contextmanager
    def using_write_transaction(self) -> Iterator["BookWriter"]:
        """One transaction that locks before it reads. At the end all of it is on disk, or nothing."""
        with self._using_connection() as database, self._durable_transaction(database):
            lines = self._read_and_verify_lines(database)
            if database.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise LedgerError(self._refusal_text(_DAMAGED))
            self._note_file_path(database)
            yield BookWriter(database, lines)

    @property
    def _real_path_bytes(self) -> bytes:
        return os.fsencode(os.path.realpath(self.path))

    def _note_file_path(self, database: sqlite3.Connection) -> None:
        """Note the file's name with what is written under it."""
        database.execute(_PLACE)
        if database.execute("SELECT path FROM place").fetchall() != [(self._real_path_bytes,)]:
            database.execute("DELETE FROM place")
            database.execute("INSERT INTO place VALUES (?)", (self._real_path_bytes,))

    def _refuse_journal_left_behind(self, database: sqlite3.Connection) -> None:
        """Raise an error if a crash left a journal under the earlier name: it may undo the last line, if this file was renamed.

        If it is a restored copy, the journal may be of another state. So the advice begins with copies, and removes nothing.
        """
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'place'").fetchone():
            return
        for (noted_path,) in database.execute("SELECT path FROM place").fetchall():
            if not isinstance(noted_path, bytes):
                raise LedgerError(self._refusal_text(_DAMAGED))
            journal = noted_path + _JOURNAL
            if (
                b"\0" not in noted_path
                and noted_path != self._real_path_bytes
                and not os.path.lexists(noted_path)
                and os.path.lexists(journal)
            ):
                journal_text, target_text, aside_text = (
                    shlex.quote(os.fsdecode(path))
                    for path in (journal, self._real_path_bytes + _JOURNAL, journal + b".lost")
                )
                raise LedgerError(
                    f"{self.what} {self.path} was renamed or restored after a crash, which left {journal_text} beside its earlier name. "
                    "First copy both files to another folder. If the file was renamed, the journal belongs to it, and undoes the unfinished "
                    f"charge: mv {journal_text} {target_text}. If the file is a restored copy, the journal belongs to the lost original: "
                    f"mv {journal_text} {aside_text}, and use only {LATEST_COPY}"
                )

    def _read_and_verify_lines(self, database: sqlite3.Connection) -> list[Any]:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'last'").fetchone():
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'charges'").fetchone():
                raise LedgerError(_advice_on_first_format(self.path, database))
            if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise LedgerError(
                    f"{self.what} {self.path} is empty, so it is damaged. Restore {LATEST_COPY}; do not start a new one: what was "
                    "spent stays spent. Remove it only if you know that nothing was ever released with it"
                )
            raise LedgerError(f"{self.path} is not a {self.what}; check the name")
        self._refuse_journal_left_behind(database)
        rows = database.execute("SELECT number, line, mark FROM lines NOT INDEXED ORDER BY number").fetchall()
        ends = database.execute("SELECT number, mark FROM last").fetchall()
        mark = b""
        for index, (number, line, stored_mark) in enumerate(rows):
            mark = _chained_line_digest(mark, line) if isinstance(line, str) else b""
            if number != index or stored_mark != mark:
                raise LedgerError(self._refusal_text(_DAMAGED))
        if ends != [(len(rows), mark)] or not rows:
            raise LedgerError(self._refusal_text(_DAMAGED))
        lines = [json.loads(line) for _, line, _ in rows]
        if lines[0].get("format") not in (self.kind, *self.older):
            raise LedgerError(
                f"{self.path} says that it is a {lines[0].get('format')!r}, not a {self.kind!r}; check the name, or upgrade "
                "discreet to read it"
            )
        return lines

    def _refusal_text(self, reason: str) -> str:
        return f"{self.what} {self.path}: {reason}; no sample was released"

    @contextmanager
    def _durable_transaction(self, database: sqlite3.Connection) -> Iterator[None]:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("PRAGMA fullfsync = ON")  # otherwise macOS flushes to the drive's cache only
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")

    @contextmanager
    def _using_connection(self, partial: Path | None = None) -> Iterator[sqlite3.Connection]:
        """A connection. SQLite errors become errors that name the file, the reason and what is known about the charge.

        `partial`: the file while it has no name of its own yet.
        """
        if partial is None:
            self.refuse_unsafe_file()
        try:
            with using_sqlite_connection(partial or self.path, self.wait) as database:
                yield database
        except sqlite3.Error as error:
            reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
            raise LedgerError(self._refusal_text(reason)) from error
        except (UnicodeDecodeError, OverflowError) as error:  # raised by SQLite on a damaged file
            raise LedgerError(self._refusal_text(_DAMAGED)) from error


class BookWriter:
    """The lines of a book during a transaction, and a method to add one."""

    def __init__(self, database: sqlite3.Connection, lines: list[Any]) -> None:
        self._database, self.lines = database, lines

    def add_line(self, line: Any) -> None:
        """Append a line, durable when the transaction ends."""
        _append_line(self._database, self.lines, line)


def _append_line(database: sqlite3.Connection, lines: list[Any], line: Any) -> None:
    text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    last_row = database.execute("SELECT mark FROM last").fetchone()
    mark = _chained_line_digest(b"" if last_row is None else last_row[0], text)
    database.execute("INSERT INTO lines VALUES (?, ?, ?)", (len(lines), text, mark))
    lines.append(line)
    database.execute("DELETE FROM last")
    database.execute("INSERT INTO last VALUES (?, ?)", (len(lines), mark))


def _chained_line_digest(mark: bytes, line: str) -> bytes:
    return hashlib.blake2b(mark + line.encode(), digest_size=16, person=b"discreet line").digest()


def utc_timestamp() -> str:
    """The present second, for people: nothing is decided by it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def using_sqlite_connection(path: Path, wait: float) -> Iterator[sqlite3.Connection]:
    """A connection to an SQLite file, closed at the end."""
    location = f"{path.absolute().as_uri()}?mode=rw"
    database = sqlite3.connect(location, uri=True, timeout=wait, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


def _advice_on_first_format(path: Path, database: sqlite3.Connection) -> str:
    """What to do with a ledger of the first format, whose answers depended on the data and so revealed changes."""
    charges = [epsilon for (epsilon,) in database.execute("SELECT epsilon FROM charges")]
    return (
        f"{path} is of the first format, whose answers told whether the data had changed; it holds {len(charges):,} charges that "
        f"add up to epsilon = {math.fsum(charges):g}: keep it, and create a new ledger with what is left of its budget"
    )


FORMAT = "discreet rounds 1"
_ROUND, _LEDGER = "round", "ledger"
_NOTES_IN_MEMORY: dict[bytes, list[Any]] = {}  # by a digest of the secret, for secrets without a file
_MEMORY_LOCK = threading.RLock()


@dataclass(frozen=True)
class _NotesUnderSecret:
    """What is noted under a secret, and how to add a line."""

    lines: list[Any]
    add: Callable[[Any], None]


class Rounds:
    """The rounds released under one secret."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._book = None if secret.state is None else Book(secret.state, kind=FORMAT, what="record of rounds")

    def note_released_round(self, agreement: Agreement, question: Question, number: int, digest: bytes) -> None:
        """Note that this round is released on the input with this digest; an error if it was released on another input."""
        columns = [question.value, question.count, question.weight]
        with self._using_notes_under_lock() as notes:
            self._refuse_if_ledger_noted(notes.lines)
            digests = {
                line[3]: line[4] for line in notes.lines if line[0] == _ROUND and line[1:3] == [agreement.id, columns]
            }
            if number not in digests:
                notes.add([_ROUND, agreement.id, columns, number, digest.hex()])
            elif digests[number] != digest.hex():
                mechanism = agreement.own
                cause = (
                    "" if mechanism is None else f", or the law of {mechanism.name!r} answered otherwise for the same data (its code, or its "
                    "arithmetic on this machine, is another)"
                )  # fmt: skip
                raise DiscreetError(
                    f"round {number} of agreement {agreement.id[:12]}... was released on other data in column "
                    f"{question.value!r}{cause}, and samples that differ would tell that they changed; "
                    + _next_round_advice(agreement, digests)
                )

    @property
    def number_of_questions(self) -> int:
        """How many agreements were released under this secret, each column of values counted by itself."""
        return len({repr(line[1:3]) for line in self._read_notes() if line[0] == _ROUND})

    def note_ledger_of_secret(self, ledger: str) -> None:
        """Note that this secret serves the population's ledger with that id.

        An error if it serves another ledger, or if rounds were released under it without one.
        """
        with self._using_notes_under_lock() as notes:
            ledgers = [line[1] for line in notes.lines if line[0] == _LEDGER]
            if ledgers == [ledger]:
                return
            if ledgers:
                raise LedgerError(
                    "this secret serves another ledger, and this one knows nothing of what was spent there; give that ledger, or "
                    "make a new secret for a new one, whose budget is what is left"
                )
            if any(line[0] == _ROUND for line in notes.lines):
                raise LedgerError(
                    "rounds were released under this secret without a ledger, so a ledger would not count them. Make a new secret for the "
                    "ledger. Subtract from its budget what those rounds have cost: what was spent stays spent"
                )
            notes.add([_LEDGER, ledger])

    def serves_ledger(self, ledger: str) -> bool:
        """Whether this secret serves the population's ledger with that id."""
        return [_LEDGER, ledger] in self._read_notes()

    def refuse_if_secret_has_ledger(self) -> None:
        """Raise an error if this secret serves a ledger."""
        self._refuse_if_ledger_noted(self._read_notes())

    def _read_notes(self) -> list[Any]:
        """What is noted so far, without the lock."""
        if self._book is None:
            return _NOTES_IN_MEMORY.get(self._key_of_notes_in_memory, [])
        return self._book.read_lines()[1:] if os.path.lexists(self._book.path) else []

    def _refuse_if_ledger_noted(self, lines: list[Any]) -> None:
        if any(line[0] == _LEDGER for line in lines):
            raise LedgerError(
                "this secret serves a ledger, which counts what every client spends; give that ledger: ledger= (--ledger)"
            )

    @property
    def _key_of_notes_in_memory(self) -> bytes:
        return hashlib.blake2b(b"held", key=self._secret.value, digest_size=32).digest()

    @contextmanager
    def _using_notes_under_lock(self) -> Iterator[_NotesUnderSecret]:
        if self._book is None:
            with _MEMORY_LOCK:
                lines = _NOTES_IN_MEMORY.setdefault(self._key_of_notes_in_memory, [])
                yield _NotesUnderSecret(lines, lines.append)
            return
        if not os.path.lexists(self._book.path):
            self._create_book(self._book)
        with self._book.using_write_transaction() as writer:
            yield _NotesUnderSecret(writer.lines[1:], writer.add_line)

    def _create_book(self, book: Book) -> None:
        """Create the book, unless another process has just done so."""
        try:
            book.create({})
        except LedgerError as error:
            if not os.path.lexists(book.path):
                raise LedgerError(
                    f"{error}; say where else to keep it: read_secret(path, state=) (--state), the same place for every release"
                ) from None
            book.read_lines()


def forget_rounds_in_memory() -> None:
    """Forget the rounds of all secrets without a file; for tests that simulate several processes."""
    with _MEMORY_LOCK:
        _NOTES_IN_MEMORY.clear()


def _next_round_advice(agreement: Agreement, digests: dict[int, str]) -> str:
    next_round = next((number for number in range(1, agreement.rounds + 1) if number not in digests), None)
    if next_round is None:
        released = (
            "the one round agreed on is" if agreement.rounds == 1 else f"all {agreement.rounds} rounds agreed on are"
        )
        return (
            f"{released} released: make an agreement with more, whose rounds spend epsilon on top of "
            "these, or give the data as they were"
        )
    return f"new data are a new round, with fresh randomness: round={next_round} (--round {next_round}), which spends epsilon again"
