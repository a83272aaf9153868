"""The ledger file: one SQLite database, in which a charge and its sample become durable together, before the sample is returned.

    begin immediate | is this (agreement, data, round) there? -> its sample, no charge | does the budget allow it? -> else refuse
                    | insert charge and sample | commit, flushed to the disk | only now return the sample

So a crash before the commit leaves neither, and no sample has left; a crash after it leaves both, and asking again returns
the same sample. The lock is taken before anything is read, so that processes cannot both spend what is left once.

Rollback journal with synchronous = EXTRA: in SQLite's default FULL the removal of the journal may not survive a power cut,
and a journal that comes back would undo a charge whose sample has left. (A write-ahead log with FULL is as safe, but is three
files.) No clock decides anything: charges are numbered, their times are only shown. Each operation opens the file anew,
so that a ledger may be shared between processes, threads and forks.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting import BoxProfile, profile_of
from discreet.agreement import Agreement
from discreet.errors import BudgetError, DiscreetError, LedgerError, check_count
from discreet.families.laws import as_floats
from discreet.ledger.budget import Budget, Spent
from discreet.mechanisms.sampler import Sampler

FORMAT = "discreet ledger 1"
_WAIT_SECONDS = 10.0
_SCHEMA = (
    "CREATE TABLE terms (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    """CREATE TABLE charges (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        agreement TEXT NOT NULL,
        data BLOB NOT NULL,
        round INTEGER NOT NULL,
        epsilon REAL NOT NULL,
        alpha REAL NOT NULL,
        sample INTEGER NOT NULL,
        time TEXT NOT NULL,
        UNIQUE (agreement, data, round)
    ) STRICT""",
)


@dataclass(frozen=True)
class Entry:
    """One charge: `sample` is the number of the outcome that was released for it."""

    number: int
    agreement: str
    round: int
    epsilon: float
    alpha: float
    sample: int
    time: str


class Ledger:
    """The budget of one client and all that was charged to it. `Ledger.create(path, budget)` once, `Ledger(path)` ever after."""

    def __init__(self, path: str | Path, *, wait: float = _WAIT_SECONDS) -> None:
        """An existing ledger. One that is missing is an error: starting anew would forget what was spent.

        `wait`: seconds to wait for other processes before giving up.
        """
        self.path = Path(path)
        self._wait = wait
        try:
            self.path.stat()
        except FileNotFoundError:
            raise LedgerError(
                f"there is no ledger {self.path}; make one with Ledger.create or: discreet ledger create"
            ) from None
        except (OSError, ValueError) as error:  # a folder that may not be entered, a name with a zero byte
            raise LedgerError(f"ledger {self.path} cannot be opened: {getattr(error, 'strerror', error)}") from None
        with self._reading() as database:
            self.budget, self._key = _terms(self.path, database)

    @classmethod
    def create(cls, path: str | Path, budget: Budget) -> "Ledger":
        """A new ledger with that budget. An existing one is never replaced."""
        found = cls.__new__(cls)
        found.path, found._wait = Path(path), _WAIT_SECONDS
        found.budget, found._key = budget, os.urandom(32)
        with found._writing(create=True) as database:
            if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise LedgerError(
                    f"{found.path} exists already, and replacing it would forget what was spent; use another name"
                )
            for statement in _SCHEMA:
                database.execute(statement)
            terms = {
                "format": FORMAT.encode(),
                "epsilon": budget.epsilon.hex().encode(),
                "delta": budget.delta.hex().encode(),
                "key": found._key,
            }
            database.executemany("INSERT INTO terms VALUES (?, ?)", terms.items())
        return found

    def release(self, sampler: Sampler, p: ArrayLike, *, agreement: Agreement, round: int = 1) -> Any:
        """One private sample of this client, paid for: the same again for the same agreement, law and round."""
        law = as_floats(p, "p", sampler.family.size)
        if law.ndim != 1:
            raise DiscreetError(f"p has shape {law.shape}; a ledger is one client's, who has one law")
        agreement.check_sampler(sampler)
        agreement.check_round(round)

        def draw() -> int:
            return int(sampler.family.numbers([sampler.release(law)])[0])

        data = (law + 0.0).astype("<f8").tobytes()  # + 0.0: -0.0 and 0.0 are one number
        number = self.charged_sample(agreement.id, data, round=round, profile=profile_of(sampler), draw=draw)
        return sampler.family.named(np.asarray(number))

    def charged_sample(
        self, agreement: str, data: bytes, *, round: int, profile: BoxProfile, draw: Callable[[], int]
    ) -> int:
        """The sample of this agreement, data and round: the one already paid for, or a new one once its charge is durable.

        `draw` may be called although its sample is then not used (and never seen by anybody).
        """
        key = (agreement, self._digest(data), check_count("round", round))
        with self._reading() as database:
            known = _sample(database, key)
        if known is not None:
            return known
        drawn = int(draw())  # outside the lock: it may take long
        with self._writing() as database:
            known = _sample(database, key)
            if known is not None:
                return known
            self._check(database, profile)
            database.execute(
                "INSERT INTO charges (agreement, data, round, epsilon, alpha, sample, time) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*key, profile.epsilon, profile.alpha, drawn, _now()),
            )
        return drawn

    def entries(self) -> list[Entry]:
        """All charges, in the order they were made."""
        with self._reading() as database:
            rows = database.execute(
                "SELECT number, agreement, round, epsilon, alpha, sample, time FROM charges ORDER BY number"
            ).fetchall()
        return [Entry(*row) for row in rows]

    def spent(self) -> Spent:
        """What all charges together cost."""
        with self._reading() as database:
            return self.budget.spent(_releases(database))

    def _check(self, database: sqlite3.Connection, profile: BoxProfile) -> None:
        before = _releases(database)
        counts = dict(before)
        counts[profile] = counts.get(profile, 0) + 1
        if self.budget.allows(self.budget.spent(list(counts.items()))):
            return
        spent = self.budget.spent(before)
        left = max(0.0, self.budget.epsilon - spent.epsilon)
        raise BudgetError(
            f"the budget of {self.path} is {self.budget}, of which {spent.epsilon:.6g} is spent and {left:.6g} is left: "
            f"not enough for a sample at epsilon = {profile.epsilon:g}; nothing was charged"
        )

    def _digest(self, data: bytes) -> bytes:
        """Keyed, so that equal data cannot be recognised across ledgers."""
        return hashlib.blake2b(data, key=self._key, digest_size=32).digest()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), _opened(self.path, "rw", self._wait) as database:
            yield database

    @contextmanager
    def _writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it on the disk at the end, or nothing."""
        with self._errors(), _opened(self.path, "rwc" if create else "rw", self._wait) as database:
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA fullfsync = ON")  # where flushing otherwise stops at the drive's cache
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What SQLite says, as an error that names the file, the reason and what is known about the charge."""
        try:
            yield
        except sqlite3.Error as error:
            reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error))
            raise LedgerError(f"ledger {self.path}: {reason}; no sample was released") from error


_REASONS = {
    sqlite3.SQLITE_BUSY: "another process has been using it for too long; try again",
    sqlite3.SQLITE_LOCKED: "another process has been using it for too long; try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it, or its journal beside it, cannot be opened; check that file and folder are writable",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check it",
    sqlite3.SQLITE_NOTADB: "it is not a ledger; check the name",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it, and do not start a new one: what was spent stays spent",
}


@contextmanager
def _opened(path: Path, mode: str, wait: float) -> Iterator[sqlite3.Connection]:
    location = f"{path.absolute().as_uri()}?mode={mode}"
    database = sqlite3.connect(location, uri=True, timeout=wait, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


def _terms(path: Path, database: sqlite3.Connection) -> tuple[Budget, bytes]:
    try:
        terms: dict[str, bytes] = dict(database.execute("SELECT name, value FROM terms"))
        if terms["format"] != FORMAT.encode():
            raise DiscreetError(
                f"its format is {terms['format'].decode()!r}, not {FORMAT!r}; upgrade discreet to read it"
            )
        numbers = [float.fromhex(terms[name].decode()) for name in ("epsilon", "delta")]
        return Budget(epsilon=numbers[0], delta=numbers[1]), terms["key"]
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        raise LedgerError(
            f"{path} is not a ledger, or its creation was cut short; check the name, or create it"
        ) from None
    except (KeyError, ValueError, AttributeError) as error:
        raise LedgerError(f"{path} is not a ledger that this version can read: {error}") from None


def _sample(database: sqlite3.Connection, key: tuple[str, bytes, int]) -> int | None:
    row: Any = database.execute(
        "SELECT sample FROM charges WHERE agreement = ? AND data = ? AND round = ?", key
    ).fetchone()
    return None if row is None else int(row[0])


def _releases(database: sqlite3.Connection) -> list[tuple[BoxProfile, int]]:
    rows = database.execute("SELECT epsilon, alpha, count(*) FROM charges GROUP BY epsilon, alpha").fetchall()
    return [(BoxProfile(epsilon=epsilon, alpha=alpha), count) for epsilon, alpha, count in rows]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
