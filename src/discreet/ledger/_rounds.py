"""Which rounds were released under a secret, and a keyed digest of what each was released on: a round is released once.

Equal data give equal samples, so a round that is released again on changed data tells, by the samples that differ, that they
changed (`discreet.release._keyed`). So before any sample of a round appears, its agreement, its question and its number are
noted here with the digest of the whole input; the same again is allowed, and gives the same samples; another input is refused.

The notes lie in a book beside the secret's file (`Secret.state`). A secret that is in no file has them in the memory of this
process alone: another process knows nothing of them, so keep such a secret for what is released once. A secret that serves a
ledger of a population serves that ledger alone, which then answers by agreement and round, whatever the data.
"""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from discreet.agreement import Agreement
from discreet.errors import DiscreetError, LedgerError
from discreet.ledger._book import Book
from discreet.release._keyed import Question, Secret

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
