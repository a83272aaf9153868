"""The ledger: durable charges, repeated requests, many processes, and every fault a disk can have."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError, OptimalSampler, Simplex
from discreet.accounting import BoxProfile, profile_of
from discreet.agreement import Agreement
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import Budget, Ledger, _book as book, _client_ledger as file
from discreet.ledger._book import Book
from discreet.ledger._client_ledger import Destination
from tests.ledger import kills
from tests.ledger.charging import ONE, OTHER, PROFILE, charge

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger", Budget(epsilon=2.0))


def test_the_same_request_gets_the_same_sample_and_is_charged_once(ledger: Ledger) -> None:
    assert charge(ledger, 1, sample=3) == 3
    assert charge(ledger, 1, sample=4) == 3
    assert charge(Ledger(ledger.path), 1, sample=5) == 3
    assert charge(ledger, 2, sample=6) == 6
    assert charge(ledger, 1, sample=8, agreement=OTHER) == 8
    assert [(e.number, e.agreement, e.round, e.sample) for e in ledger.entries()] == [
        (1, ONE, 1, 3), (2, ONE, 2, 6), (3, OTHER, 1, 8),
    ]  # fmt: skip
    assert ledger.spent().basic == Fraction(3, 2)


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_no_ledger_has_a_name_under_which_another_one_keeps_a_part(tmp_path: Path, suffix: str) -> None:
    """The first use of a ledger "x" removed a ledger "x-journal", with all that was spent in it."""
    path, part = tmp_path / "x", tmp_path / f"x{suffix}"
    with pytest.raises(LedgerError, match="choose another name"):
        Ledger.create(part, Budget(epsilon=2.0))
    earlier = Ledger.create(tmp_path / "earlier", Budget(epsilon=2.0))
    charge(earlier, 1, sample=3)
    earlier.path.rename(part)
    with pytest.raises(LedgerError, match=r"is there, .* restore .* Otherwise choose another name"):
        Ledger.create(path, Budget(epsilon=2.0))
    assert charge(Ledger(part), 1, sample=4) == 3
    assert os.listdir(tmp_path) == [part.name]


def test_a_ledger_in_use_exists_already(tmp_path: Path) -> None:
    """Its own journal was taken for what is left of a lost ledger."""
    ledger = Ledger.create(tmp_path / "x", Budget(epsilon=2.0))
    (tmp_path / "x-journal").touch(mode=0o600)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, Budget(epsilon=2.0))


def charge_without_removing_the_journal(ledger: Ledger, round: int, sample: int, patch: pytest.MonkeyPatch) -> Path:
    """The files of a crash in the middle of a commit: the new line is written, and the journal that undoes it is still there."""
    journal, second_name = (ledger.path.with_name(f"{ledger.path.name}{suffix}") for suffix in ("-journal", "-kept"))
    add_line = book.BookWriter.add_line

    def keep_journal(self: book.BookWriter, line: Any) -> None:
        add_line(self, line)
        os.link(journal, second_name)

    with patch.context() as patched:
        patched.setattr(book.BookWriter, "add_line", keep_journal)
        charge(ledger, round, sample=sample)
    second_name.rename(journal)
    return journal


def advised_moves(error: LedgerError) -> list[tuple[str, str]]:
    """The two moves that an error advises: of the journal of a renamed file, and of the journal that a lost original left."""
    renamed, lost = re.findall(r"mv (\S+) (\S+?)[.,] ", str(error))
    return [renamed, lost]


def test_a_ledger_that_is_renamed_after_a_crash_needs_its_journal(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample that was released under the new name was undone, and drawn anew, once the file had its earlier name again."""
    charge(ledger, 1, sample=3)
    journal = charge_without_removing_the_journal(ledger, 2, 5, monkeypatch)
    ledger.path.rename(tmp_path / "renamed")
    with pytest.raises(LedgerError, match="was renamed or restored after a crash") as caught:
        Ledger(tmp_path / "renamed")
    moved, _ = advised_moves(caught.value)
    assert moved == (str(journal), f"{tmp_path / 'renamed'}-journal")
    os.rename(*moved)
    renamed = Ledger(tmp_path / "renamed")
    assert [entry.round for entry in renamed.entries()] == [1]
    assert charge(renamed, 1, sample=4) == 3
    assert charge(renamed, 2, sample=4) == 4  # the sample of the interrupted charge was never returned
    journal.touch(mode=0o600)  # of another ledger, by now
    assert charge(renamed, 3, sample=5) == 5


@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("released", [1, 2])
def test_a_copy_that_is_restored_beside_the_journal_of_a_lost_ledger_keeps_its_charges(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, choice: int, released: int
) -> None:
    """The error said that it was renamed. Neither of the moves that it now advises undoes a charge, with the latest copy or an older one."""
    charge(ledger, 1, sample=1)
    shutil.copy2(ledger.path, tmp_path / "copy")
    for number in range(2, released + 1):
        charge(ledger, number, sample=number)
    charge_without_removing_the_journal(ledger, 3, 3, monkeypatch)
    ledger.path.unlink()
    with pytest.raises(
        LedgerError, match=r"First copy both files .* use only a copy made after the last release"
    ) as caught:
        Ledger(tmp_path / "copy")
    os.rename(*advised_moves(caught.value)[choice])
    assert charge(Ledger(tmp_path / "copy"), 1, sample=9) == 1


def test_past_the_budget_it_refuses_and_says_what_is_left(ledger: Ledger) -> None:
    for number in range(1, 4):
        charge(ledger, number)
    large = BoxProfile(epsilon=0.75, alpha=0.1)
    with pytest.raises(BudgetError) as caught:
        ledger.charged_sample(ONE, round=9, profile=large, draw=lambda: 0)
    assert "epsilon = 2, of which 1.5 is spent and 0.5 is left: not enough for a sample at epsilon = 0.75" in str(
        caught.value
    )
    assert len(ledger.entries()) == 3
    charge(ledger, 4)
    with pytest.raises(BudgetError):
        charge(ledger, 5)
    assert charge(ledger, 4, sample=99) == 7  # what is paid for stays available


def test_a_sampler_releases_through_it(ledger: Ledger) -> None:
    sampler = OptimalSampler(Simplex(["red", "green", "blue"]), epsilon=0.5)
    agreed = Agreement.of(sampler, rounds=2)
    colour = ledger.release(sampler, [0.2, 0.3, 0.5], agreement=agreed)
    assert colour in ("red", "green", "blue")
    for _ in range(20):
        assert ledger.release(sampler, np.array([0.2, 0.3, 0.5]), agreement=agreed) == colour
    numbered = OptimalSampler(Simplex(3), epsilon=0.5)
    other = Agreement.of(numbered, rounds=5)
    assert ledger.release(numbered, [0.2, 0.3, 0.5], agreement=other, round=5) in (0, 1, 2)
    assert [(e.agreement, e.round, e.epsilon) for e in ledger.entries()] == [(agreed.id, 1, 0.5), (other.id, 5, 0.5)]
    assert ledger.entries()[0].alpha == profile_of(sampler).alpha


def test_bad_requests_are_refused_before_anything_is_charged(ledger: Ledger) -> None:
    sampler = OptimalSampler(Simplex(3), epsilon=0.5)
    agreed = Agreement.of(sampler)
    stranger = Agreement.of(OptimalSampler(Simplex(3), epsilon=0.25))
    requests: list[tuple[Any, Agreement, int, str]] = [
        ([0.2, 0.3, 0.4], agreed, 1, "sums to 0.9"),
        ([np.nan, 0.3, 0.4], agreed, 1, "NaN"),
        ([[0.2, 0.3, 0.5]], agreed, 1, "one distribution"),
        ([0.2, 0.3, 0.5], stranger, 1, f"belongs to agreement {agreed.id}, not to {stranger.id}"),
        ([0.2, 0.3, 0.5], agreed, 0, "round = 0"),
        ([0.2, 0.3, 0.5], agreed, 2, "round = 2 is more than the 1 agreed on"),
    ]
    for law, agreement, number, says in requests:
        with pytest.raises(DiscreetError) as caught:
            ledger.release(sampler, law, agreement=agreement, round=number)
        assert says in str(caught.value)
    for word in ("key", "identity"):  # with which other lines of the file begin
        with pytest.raises(DiscreetError, match=f"agreement = '{word}' begins other lines of a ledger"):
            ledger.charged_sample(word, round=1, profile=PROFILE, draw=lambda: 0)
    assert ledger.entries() == []


def test_a_round_may_be_an_integer_of_numpy(ledger: Ledger) -> None:
    sampler = OptimalSampler(Simplex(3), epsilon=0.1)
    agreed = Agreement.of(sampler, rounds=3)
    numbers: list[Any] = [np.int64(2), 2, np.uint8(2)]
    samples = [ledger.release(sampler, [0.2, 0.3, 0.5], agreement=agreed, round=number) for number in numbers]
    assert len(set(samples)) == len(ledger.entries()) == 1


def test_a_charge_is_flushed_all_the_way_before_it_counts(ledger: Ledger) -> None:
    """What a power cut needs, which no kill can test: synchronous = EXTRA (3) and a rollback journal, in every writing transaction."""
    with ledger._book.using_write_transaction() as pen:
        database = pen._database
        assert database.execute("PRAGMA synchronous").fetchone() == (3,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert database.in_transaction
        with (
            pytest.raises(LedgerError, match="another process"),
            Book(ledger.path, kind=file.FORMAT, wait=0.01).using_write_transaction(),
        ):
            pass  # the lock is taken already, before anything was read


def test_a_sample_is_not_returned_before_its_charge_is_committed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the commit fails, whatever the reason, there is an error in place of the sample."""
    real = book.using_sqlite_connection

    @contextmanager
    def failing(*arguments: Any) -> Iterator[Any]:
        with real(*arguments) as database:
            yield Uncommitted(database)

    class Uncommitted:
        def __init__(self, database: sqlite3.Connection) -> None:
            self._database = database

        def __getattr__(self, name: str) -> Any:
            return getattr(self._database, name)

        def execute(self, statement: str, *values: Any) -> Any:
            if statement == "COMMIT":
                raise sqlite3.OperationalError("the power is gone")
            return self._database.execute(statement, *values)

    with monkeypatch.context() as patch:
        patch.setattr(book, "using_sqlite_connection", failing)
        with pytest.raises(LedgerError, match="no sample was released"):
            charge(ledger, 1, sample=3)
    assert ledger.entries() == []
    assert charge(ledger, 1, sample=4) == 4


def test_a_failed_draw_is_not_charged(ledger: Ledger) -> None:
    def broken() -> int:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ledger.charged_sample(ONE, round=1, profile=PROFILE, draw=broken)
    assert ledger.entries() == []


def test_a_budget_at_delta_survives_the_file(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "loose", Budget(epsilon=0.3, delta=1e-7))
    loose = Ledger(tmp_path / "loose")
    assert loose.budget == Budget(epsilon=0.3, delta=1e-7)
    small = BoxProfile(epsilon=0.01, alpha=0.1)
    for number in range(1, 41):
        loose.charged_sample(ONE, round=number, profile=small, draw=lambda: 0)
    assert loose.spent().basic > 0.3 > loose.spent().epsilon


def test_answers_and_refusals_do_not_depend_on_the_data(tmp_path: Path) -> None:
    """Neither a sample nor a refusal tells whether the data have changed since the round was released."""
    sampler = OptimalSampler(Simplex(1000), epsilon=0.5)
    agreed = Agreement.of(sampler, rounds=3)
    laws = np.eye(1000)
    for changed in (False, True):
        ledger = Ledger.create(tmp_path / str(changed), Budget(epsilon=0.5))
        first = ledger.release(sampler, laws[0], agreement=agreed)
        for number in range(1, 20):
            assert ledger.release(sampler, laws[number if changed else 0], agreement=agreed) == first
        with pytest.raises(BudgetError):
            ledger.release(sampler, laws[int(changed)], agreement=agreed, round=2)
        assert len(ledger.entries()) == 1


def test_ten_tenths_are_one_and_what_is_left_is_told_apart_from_what_is_needed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "tenths", Budget(epsilon=1.0))
    tenth = BoxProfile(epsilon=0.1, alpha=0.1)
    for number in range(1, 11):
        ledger.charged_sample(ONE, round=number, profile=tenth, draw=lambda: 0)
    with pytest.raises(
        BudgetError, match=r"of which 1 is spent and 0 is left: not enough for a sample at epsilon = 0\.1;"
    ):
        ledger.charged_sample(ONE, round=11, profile=tenth, draw=lambda: 0)
    for budget, epsilon in [(0.3, 0.10000000000000002), (1.0, 0.5000000001), (0.7, 0.35000000000000003)]:
        short = Ledger.create(tmp_path / str(budget), Budget(epsilon=budget))
        profile = BoxProfile(epsilon=epsilon, alpha=0.1)
        fitting = int(Fraction(str(budget)) / Fraction(str(epsilon)))
        for number in range(1, fitting + 1):
            short.charged_sample(ONE, round=number, profile=profile, draw=lambda: 0)
        with pytest.raises(BudgetError) as caught:
            short.charged_sample(ONE, round=fitting + 1, profile=profile, draw=lambda: 0)
        left, needed = re.findall(r"and (\S+) is left: not enough for a sample at epsilon = (\S+);", str(caught.value))[
            0
        ]
        assert left != needed
        assert float(left) < float(needed)


def test_a_budget_at_delta_counts_repetitions_of_one_sampler_as_such(tmp_path: Path) -> None:
    """What was charged and what is asked for are one kind of sample, whose composition is exact."""
    sampler = OptimalSampler(Simplex(2), epsilon=0.1)
    agreed = Agreement.of(sampler, rounds=1000)
    budget = Budget(epsilon=1.0, delta=1e-6)
    ledger = Ledger.create(tmp_path / "exact", budget)
    profile = BoxProfile(epsilon=0.1, alpha=profile_of(sampler).alpha)
    most = max(count for count in range(1, 60) if budget.allows(budget.spent([(profile, count)])))
    for number in range(1, most + 1):
        ledger.release(sampler, [1.0, 0.0], agreement=agreed, round=number)
    with pytest.raises(BudgetError, match="would make that"):
        ledger.release(sampler, [1.0, 0.0], agreement=agreed, round=most + 1)


@pytest.mark.parametrize(
    ("notion", "delta"),
    [(dc.Approximate(1.0, delta=1e-3), 1e-3), (dc.Gaussian(1.0), dc.Gaussian(1.0).profile(1.0))],
    ids=str,
)
def test_one_release_of_exactly_the_budget_fits_and_nothing_after_it(
    tmp_path: Path, notion: dc.privacy.Privacy, delta: float
) -> None:
    sampler = OptimalSampler(Simplex(10), privacy=notion)
    agreed = Agreement.of(sampler, rounds=2)
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0, delta=delta))
    number = ledger.release(sampler, np.eye(10)[0], agreement=agreed)
    assert ledger.release(sampler, np.eye(10)[1], agreement=agreed) == number
    for _ in range(2):
        with pytest.raises(BudgetError):
            ledger.release(sampler, np.eye(10)[0], agreement=agreed, round=2)
    small = OptimalSampler(Simplex(10), epsilon=1e-6)
    with pytest.raises(BudgetError):
        ledger.release(small, np.eye(10)[0], agreement=Agreement.of(small))
    assert len(ledger.entries()) == 1
    tight = Ledger.create(tmp_path / "tight", Budget(epsilon=1.0, delta=0.999 * profile_of(sampler).delta(1.0)))
    with pytest.raises(BudgetError):
        tight.release(sampler, np.eye(10)[0], agreement=agreed)


def test_files_that_are_no_ledgers_are_named(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "text").write_text("this is not a database, but a text that is long enough to be looked at " * 20)
    (tmp_path / "empty").write_bytes(b"")
    Book(tmp_path / "future", kind="discreet ledger 4").create({})
    sqlite3.connect(tmp_path / "first").executescript(
        """CREATE TABLE terms (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
        CREATE TABLE charges (number INTEGER PRIMARY KEY, data BLOB NOT NULL, epsilon REAL NOT NULL) STRICT;
        INSERT INTO charges VALUES (1, x'00', 0.25), (2, x'01', 0.5)"""
    ).connection.close()
    for name in ("text", "empty", "first"):
        (tmp_path / name).chmod(0o600)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, says in [
        ("missing", "there is no ledger"),
        ("text", "it is not a ledger"),
        (
            "empty",
            "is empty, so it is damaged. Restore a copy made after the last release (an older one would release later rounds again)",
        ),
        ("future", "'discreet ledger 4', not a 'discreet ledger 3'"),
        ("first", "it holds 2 charges that add up to epsilon = 0.75: keep it, and create a new ledger"),
        ("pipe", "is not a plain file"),
        (".", "is not a plain file"),
    ]:
        with pytest.raises(LedgerError) as caught:
            Ledger(tmp_path / name)
        assert says in str(caught.value)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, Budget(epsilon=100.0))
    assert Ledger(ledger.path).budget.epsilon == 2.0
    with pytest.raises(LedgerError, match="exists already"):  # it may be one that lost its content
        Ledger.create(tmp_path / "empty", Budget(epsilon=1.0))


@pytest.mark.parametrize("path", [".", "", "/", "a\0b", "nowhere/ledger"])
def test_what_can_be_no_ledger_s_name_is_an_error(path: str) -> None:
    with pytest.raises(LedgerError, match=r"exists already|cannot be made"):
        Ledger.create(path, Budget(epsilon=1.0))


def test_a_file_with_two_names_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    """After a crash at a commit, the line would count under one name and be undone under the other."""
    sampler = OptimalSampler(Simplex(3), epsilon=0.5)
    agreed = Agreement.of(sampler)
    os.link(ledger.path, tmp_path / "second name")
    for path in (ledger.path, tmp_path / "second name"):
        with pytest.raises(LedgerError, match="has a second name"):
            Ledger(path)
    with pytest.raises(LedgerError, match="has a second name"):
        ledger.release(sampler, [1, 0, 0], agreement=agreed)
    (tmp_path / "second name").unlink()
    assert ledger.release(sampler, [1, 0, 0], agreement=agreed) in (0, 1, 2)


def test_what_a_creation_leaves_that_is_cut_short_is_removed(tmp_path: Path, ledger: Ledger) -> None:
    """Killed before or after the file has its name: the next creation works, and the next use removes the second name."""
    (tmp_path / "new.new-0123").touch(mode=0o600)
    assert Ledger.create(tmp_path / "new", Budget(epsilon=1.0)).entries() == []
    left = ledger.path.with_name(f"{ledger.path.name}.new-4567")
    os.link(ledger.path, left)
    assert ledger.entries() == []
    assert not left.exists()
    assert ledger.path.stat().st_nlink == 1


def test_of_many_that_create_one_ledger_at_the_same_time_one_does(tmp_path: Path) -> None:
    """The others find it whole."""
    refusals: list[str] = []

    def create(budget: int) -> float | None:
        try:
            return Ledger.create(tmp_path / "shared", Budget(epsilon=float(budget))).budget.epsilon
        except LedgerError as error:
            refusals.append(str(error))
            return None

    with ThreadPoolExecutor(8) as pool:
        made = [each for each in pool.map(create, range(1, 17)) if each is not None]
    assert made == [Ledger(tmp_path / "shared").budget.epsilon]
    assert len(refusals) == 15
    assert all("exists already" in each for each in refusals)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("shared")] == ["shared"]


def test_a_locked_file_is_a_clear_error(ledger: Ledger) -> None:
    patient = sqlite3.connect(ledger.path, isolation_level=None)
    try:
        patient.execute("BEGIN EXCLUSIVE")
        impatient = Ledger.__new__(Ledger)
        impatient.__dict__ |= ledger.__dict__ | {"_book": Book(ledger.path, kind=file.FORMAT, wait=0.05)}
        with pytest.raises(
            LedgerError, match=r"another process has been using it for too long; try again; no sample was released"
        ):
            charge(impatient, 1)
        with pytest.raises(LedgerError, match="another process"):
            Ledger(ledger.path, wait=0.05)
    finally:
        patient.execute("ROLLBACK")
        patient.close()
    assert charge(ledger, 1) == 7


def in_another_process(program: str, *arguments: object) -> str:
    """What a program prints when run from the repository's root; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


FULL_DISK = """
    import resource, signal, sys
    from discreet.errors import LedgerError
    from discreet.ledger import Ledger
    from tests.ledger.charging import charge
    ledger = Ledger(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # Python would leave parts of modules behind
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    try:
        print("charged", charge(ledger, 3, sample=5))
    except LedgerError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 512, 4096])
def test_a_full_disk_is_a_clear_error_and_loses_nothing(ledger: Ledger, room: int) -> None:
    """Files may not grow past a limit, so neither journal nor database can be written."""
    charge(ledger, 1)
    said = in_another_process(FULL_DISK, ledger.path, room)
    assert "the disk" in said
    assert "no sample was released" in said
    assert [entry.round for entry in ledger.entries()] == [1]
    assert charge(ledger, 3, sample=6) == 6


READ_ONLY = """
    import os, sys
    from discreet.errors import LedgerError
    from discreet.ledger import Ledger
    from tests.ledger.charging import charge
    if os.getuid() == 0:
        os.setuid(65534)  # nobody: the superuser may write anything
    ledger = Ledger(sys.argv[1])
    print(len(ledger.entries()))
    try:
        charge(ledger, 2)
    except LedgerError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_read_only_file_can_be_shown_but_not_charged() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        ledger = Ledger.create(Path(folder) / "ledger", Budget(epsilon=2.0))
        charge(ledger, 1)
        ledger.path.chmod(0o400)
        if os.getuid() == 0:
            os.chown(ledger.path, 65534, 65534)
        said = in_another_process(READ_ONLY, ledger.path)
        assert said.startswith("1\n")
        assert "it is read-only; make the file and its folder writable; no sample was released" in said
        assert [entry.round for entry in ledger.entries()] == [1]


FORBIDDEN = (
    READ_ONLY[: READ_ONLY.index("    ledger =")]
    + """
    try:
        Ledger(sys.argv[1])
    except LedgerError as error:
        print(error)
"""
)


@pytest.mark.slow
def test_a_folder_that_may_not_be_entered_is_a_clear_error() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger", Budget(epsilon=2.0))
        os.chmod(folder, 0o600 if os.getuid() else 0o700)
        try:
            assert "cannot be opened: Permission denied" in in_another_process(FORBIDDEN, ledger.path)
        finally:
            os.chmod(folder, 0o700)


def test_a_clock_that_goes_backwards_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        times = iter(
            [datetime(2030, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)]
        )

        @classmethod
        def now(cls, zone: Any) -> datetime:
            return next(cls.times)

    monkeypatch.setattr(book, "datetime", Clock)
    assert [charge(ledger, number, sample=number) for number in (1, 2, 3)] == [1, 2, 3]
    assert [entry.round for entry in ledger.entries()] == [1, 2, 3]
    assert [entry.time[:4] for entry in ledger.entries()] == ["2030", "1970", "2029"]
    assert charge(ledger, 1, sample=9) == 1
    assert ledger.spent().basic == 1.5


def test_a_damaged_file_is_refused(ledger: Ledger) -> None:
    for number in range(1, 5):
        charge(ledger, number)
    content = bytearray(ledger.path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerError):
        charge(Ledger(ledger.path), 5)


def test_a_file_that_was_cut_off_is_damaged(ledger: Ledger) -> None:
    """Where the name of the file was to be read, SQLite gave nothing, and an error of Python came."""
    sampler = OptimalSampler(Simplex(3), epsilon=0.1)
    ledger.release(sampler, [0.2, 0.3, 0.5], agreement=Agreement.of(sampler))
    content = ledger.path.read_bytes()
    for lost in (300, 590, 4096):
        ledger.path.write_bytes(content[:-lost])
        with pytest.raises(LedgerError, match="damaged"):
            Ledger(ledger.path)


RACE = """
    import sys
    from discreet.errors import BudgetError
    from discreet.ledger import Ledger
    from tests.ledger.charging import charge
    ledger = Ledger(sys.argv[1])
    paid = 0
    for number in range(1, 60):
        try:
            charge(ledger, number, agreement=sys.argv[2] * 64)
            paid += 1
        except BudgetError:
            pass
    print(paid)
"""


@pytest.mark.slow
def test_processes_that_share_a_file_cannot_overspend(tmp_path: Path) -> None:
    shared = Ledger.create(tmp_path / "shared", Budget(epsilon=0.5 * 40))
    command = [sys.executable, "-c", textwrap.dedent(RACE), str(shared.path)]
    racing = [subprocess.Popen([*command, name], cwd=ROOT, stdout=subprocess.PIPE, text=True) for name in "abc"]
    paid = [int(process.communicate()[0]) for process in racing]
    assert [process.returncode for process in racing] == [0, 0, 0]
    assert sum(paid) == 40 == len(shared.entries())
    assert shared.spent().basic == 20


def killed(*options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", kills.__name__, "--kills", "40", *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_killed_writers_lose_nothing_and_overspend_nothing() -> None:
    """40 kills here; `make soak` does 1,000."""
    done = killed()
    assert done.returncode == 0, done.stderr
    assert "nothing lost, nothing overspent" in done.stdout


@pytest.mark.slow
def test_killing_would_find_a_writer_that_publishes_before_it_is_charged() -> None:
    done = killed("--careless", "--kills", "4000")  # it ends with the first that is found: more where a machine is slow
    assert done.returncode == 1
    assert "a sample left without its charge" in done.stderr


def test_what_was_released_is_known_and_costs_nothing(tmp_path: Path) -> None:
    families: list[Any] = [dc.Simplex(["a", "b", "c"]), dc.GaussianMixtures(1, box=(-4.0, 4.0))]
    for number, family in enumerate(families):
        ledger = Ledger.create(tmp_path / f"{number}", Budget(epsilon=1.0))
        sampler: Any = dc.LinearSampler(family, epsilon=0.5)
        agreement = Agreement.of(sampler, rounds=2)
        assert ledger.released_sample(sampler, agreement=agreement) is None
        held: Any = [0.2, 0.3, 0.5] if number == 0 else family.law(records=[0.5])
        sample = ledger.release(sampler, held, agreement=agreement)
        assert ledger.released_sample(sampler, agreement=agreement) == sample
        assert ledger.released_sample(sampler, agreement=agreement, round=2) is None
        assert len(ledger.entries()) == 1
        with pytest.raises(DiscreetError, match="round = 3"):
            ledger.released_sample(sampler, agreement=agreement, round=3)


def test_a_collector_s_question_is_looked_up_in_as_few_readings_as_it_takes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = Book._read_and_verify_lines

    def counted(self: Book, database: sqlite3.Connection) -> list[Any]:
        reads.append("read")
        return read(self, database)

    monkeypatch.setattr(Book, "_read_and_verify_lines", counted)
    to = Destination("https://a.example", "0" * 64, ONE)
    for number in (2, 1):  # the first one also notes the key, under the lock
        reads.clear()
        assert ledger.answer_to(to, 1) is None
        assert len(reads) == number


@pytest.mark.parametrize(
    ("agreement", "profile", "draw", "message"),
    [
        (3, BoxProfile(epsilon=1.0, alpha=0.5), lambda: 1, "agreement = 3 is not a str"),
        (None, BoxProfile(epsilon=1.0, alpha=0.5), lambda: 1, "agreement = None is not a str"),
        ("0" * 64, None, lambda: 1, "profile = None is not a BoxProfile"),
        ("0" * 64, BoxProfile(epsilon=1.0, alpha=0.5), 3, "draw = 3 cannot be called"),
        ("0" * 64, BoxProfile(epsilon=1.0, alpha=0.5), lambda: None, r"draw\(\) = None is not a whole number"),
        ("0" * 64, BoxProfile(epsilon=1.0, alpha=0.5), lambda: 1.5, r"draw\(\) = 1.5 is not a whole number"),
        ("0" * 64, BoxProfile(epsilon=1.0, alpha=0.5), lambda: -1, r"draw\(\) = -1 is less than 0"),
    ],
)
def test_a_charge_that_is_none_leaves_the_ledger_as_it_was(
    tmp_path: Path, agreement: Any, profile: Any, draw: Any, message: str
) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=3.0))
    before = ledger.path.read_bytes()
    with pytest.raises(DiscreetError, match=message):
        ledger.charged_sample(agreement, round=1, profile=profile, draw=draw)
    assert ledger.path.read_bytes() == before
    with pytest.raises(DiscreetError, match="agreement = None is not a Agreement"):
        ledger.released_sample(OptimalSampler(Simplex(3), epsilon=1.0), agreement=None)  # type: ignore[arg-type]
