"""The book: every flipped bit and every missing line shows, nobody else may read it, and one that others may read is refused."""

import os
import random
import stat
from pathlib import Path

import pytest

from discreet.errors import BudgetError, LedgerError
from discreet.ledger import Budget, Entry, Ledger
from discreet.ledger._book import Book, using_sqlite_connection
from tests.ledger.charging import OTHER, charge
from tests.soaking import wide

CHARGES = 12


def filled(path: Path, left: float = 0.0) -> Ledger:
    ledger = Ledger.create(path, Budget(epsilon=0.5 * CHARGES + left))
    for number in range(1, CHARGES + 1):
        charge(ledger, number, sample=number * 1001)
    return ledger


def flipped(content: bytes, chosen: random.Random) -> bytes:
    place = chosen.randrange(8 * len(content))
    damaged = bytearray(content)
    damaged[place // 8] ^= 1 << (place % 8)
    return bytes(damaged)


@pytest.mark.slow
def test_a_flipped_bit_is_harmless_or_refused(tmp_path: Path) -> None:
    """Flips anywhere in the file: the same answers, charges and refusals as before, or one of our errors."""
    ledger = filled(tmp_path / "ledger")
    whole, entries = ledger.path.read_bytes(), ledger.entries()
    chosen, refused = random.Random(0), 0
    flips = wide(3000, 250)
    for _ in range(flips):
        ledger.path.write_bytes(flipped(whole, chosen))
        try:
            found = Ledger(ledger.path)
            assert found.budget == ledger.budget
            assert found.entries() == entries
            number = chosen.randrange(1, CHARGES + 1)
            assert charge(found, number, sample=5) == number * 1001
            with pytest.raises(BudgetError):
                charge(found, 1, agreement=OTHER)
        except LedgerError:
            refused += 1
        Path(f"{ledger.path}-journal").unlink(missing_ok=True)
    assert refused > flips / 10


@pytest.mark.slow
def test_a_flipped_bit_is_not_made_worse_by_writing(tmp_path: Path) -> None:
    """After a charge to a file with a flipped bit, all charges are there, or the file is refused; none is forgotten in silence."""
    ledger = filled(tmp_path / "ledger", left=10.0)
    whole, entries = ledger.path.read_bytes(), ledger.entries()
    chosen = random.Random(1)
    for _ in range(wide(400, 150)):
        ledger.path.write_bytes(flipped(whole, chosen))
        try:
            charge(ledger, 99, sample=7)
            found: list[Entry] = Ledger(ledger.path).entries()
        except LedgerError:
            continue
        assert found[:-1] == entries
        assert (found[-1].round, found[-1].sample) == (99, 7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM lines WHERE number = 5",
        "DELETE FROM lines WHERE number = 12",
        "DELETE FROM lines",
        "DELETE FROM last",
        "UPDATE lines SET line = replace(line, '1001', '1002') WHERE number = 1",
        "UPDATE lines SET mark = zeroblob(16) WHERE number = 12",
        "UPDATE lines SET number = -number WHERE number = 3",
        "INSERT INTO lines SELECT 13, line, mark FROM lines WHERE number = 12",
        "UPDATE lines SET line = replace(line, '0x1.8', '0x1.9') WHERE number = 0",
        "DROP TABLE last",
    ],
)
def test_a_line_that_is_removed_changed_added_or_moved_is_noticed(tmp_path: Path, statement: str) -> None:
    ledger = filled(tmp_path / "ledger")
    with using_sqlite_connection(ledger.path, 1.0) as database:
        assert database.execute(statement).rowcount != 0
    for use in (ledger.entries, ledger.spent, lambda: charge(ledger, 1), lambda: Ledger(ledger.path)):
        with pytest.raises(LedgerError, match=r"damaged|not a ledger"):
            use()


def test_only_its_owner_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = filled(tmp_path / "ledger", left=1.0)
        with ledger._book.using_write_transaction() as pen:
            pen.add_line(["x", 1, 0.5, 0.1, 0, ""])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {"ledger": 0o600, "ledger-journal": 0o600}
    finally:
        os.umask(before)
    for mode in (0o644, 0o640, 0o620, 0o604, 0o602):
        ledger.path.chmod(mode)
        for use in (ledger.entries, lambda: charge(ledger, 1), lambda: Ledger(ledger.path)):
            with pytest.raises(
                LedgerError,
                match=rf"has mode {mode:04o}.*run: chmod 600 .* \(if it is a ledger; otherwise check the name\)$",
            ):
                use()
    ledger.path.chmod(0o600)
    assert charge(ledger, 1) == 1001


def test_nothing_of_the_data_and_no_key_is_in_it(tmp_path: Path) -> None:
    ledger = filled(tmp_path / "ledger")
    assert [sorted(line) for line in ledger._book.read_lines()[:1]] == [["delta", "epsilon", "format"]]
    with using_sqlite_connection(ledger.path, 1.0) as database:
        columns = database.execute("SELECT name FROM sqlite_master").fetchall()
    assert columns == [("lines",), ("last",), ("place",)]


def test_a_book_of_another_kind_is_named(tmp_path: Path) -> None:
    Book(tmp_path / "other", kind="discreet diary 1").create({})
    with pytest.raises(LedgerError, match="'discreet diary 1', not a 'discreet ledger 3'"):
        Ledger(tmp_path / "other")


def test_readers_beside_a_writer_see_whole_states(tmp_path: Path) -> None:
    """A charge that is committed between two queries of a reader is no damage."""
    ledger = filled(tmp_path / "ledger", left=100.0)
    with ledger._book._using_connection() as database:
        database.execute("BEGIN")
        lines = database.execute("SELECT count(*) FROM lines").fetchone()
        with (
            pytest.raises(LedgerError, match="another process"),
            Book(ledger.path, kind="discreet ledger 3", wait=0.01).using_write_transaction() as pen,
        ):
            pen.add_line([])  # the commit has to wait for readers
        assert database.execute("SELECT number FROM last").fetchone() == lines
    assert len(ledger.entries()) == CHARGES
