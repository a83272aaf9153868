"""The ledger of a population: who pays once, who cannot pay, what is recalled, what damage shows, and whom it names to nobody."""

import json
import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from discreet import DiscreetError
from discreet.errors import BudgetError, LedgerError
from discreet.ledger import PopulationLedger, refuse_budget_below_one_sample
from discreet.ledger._book import Book, Rounds
from discreet.ledger._population_ledger import ClientDigests, Round, Settlement, costs_by_client, read_budget_and_runs
from discreet.release._randomness import Question, Secret, read_secret, write_secret
from tests.ledger import population_kills
from tests.soaking import wide

ROOT = Path(__file__).parents[2]
NO_CELLS = np.empty(0)


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    write_secret(tmp_path / "secret")
    return read_secret(tmp_path / "secret")


@pytest.fixture
def ledger(tmp_path: Path, secret: Secret) -> PopulationLedger:
    return PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=secret)


def asked(number: int = 1, epsilon: float = 0.5, agreement: str = "a" * 64, column: str = "value") -> Round:
    return Round(agreement=agreement, question=Question(value=column), number=number, epsilon=epsilon)


def names(clients: list[int]) -> ClientDigests:
    """Stands for keyed digests: first words that are all over the place, some of them shared by two clients."""
    first = (np.array(clients, dtype=np.uint64) // np.uint64(2)) * np.uint64(0x9E3779B97F4A7C15)
    return ClientDigests(first, np.array(clients, dtype=np.uint64))


def settle(ledger: PopulationLedger, clients: list[int], drawn: int, what: Round, **how: Any) -> dict[int, int]:
    """Client -> sample, where `drawn` plus the client's number was drawn for each."""
    outcomes = np.array(clients, dtype=np.int64) + drawn
    found = ledger.charge_clients_once(what, names(clients), outcomes, NO_CELLS, **how)
    return {client: int(found.outcomes[place]) for place, client in enumerate(clients) if found.may_leave[place]}


def test_a_repeated_round_gives_the_stored_samples_to_fewer_clients_and_to_more(ledger: PopulationLedger) -> None:
    assert settle(ledger, [3, 1, 2], 100, asked()) == {3: 103, 1: 101, 2: 102}
    assert settle(ledger, [1, 2, 3], 200, asked()) == {1: 101, 2: 102, 3: 103}
    assert settle(ledger, [2], 300, asked()) == {2: 102}
    assert settle(ledger, [9, 2, 8, 3], 400, asked()) == {9: 409, 2: 102, 8: 408, 3: 103}
    assert settle(ledger, [9, 8, 7], 500, asked()) == {9: 409, 8: 408, 7: 507}
    assert [run.clients for run in read_budget_and_runs(ledger.folder)[1]] == [3, 2, 1]  # nobody was charged twice
    again = PopulationLedger(ledger.folder, ledger.secret)
    assert settle(again, [1, 9, 7], 600, asked()) == {1: 101, 9: 409, 7: 507}


def test_places_within_cells_are_recalled_too(ledger: PopulationLedger) -> None:
    clients = names([5, 6, 4])
    first = ledger.charge_clients_once(asked(), clients, np.array([1, 2, 3]), np.array([0.25, 0.5, 0.75]))
    second = ledger.charge_clients_once(asked(), clients.select_clients([2, 0]), np.array([9, 9]), np.array([0.0, 0.0]))
    assert first.within.tolist() == [0.25, 0.5, 0.75]
    assert (second.outcomes.tolist(), second.within.tolist()) == ([3, 1], [0.75, 0.25])


def test_another_round_agreement_or_question_is_paid_for(ledger: PopulationLedger) -> None:
    assert settle(ledger, [1], 10, asked()) == {1: 11}
    for number, other in enumerate(
        [asked(2, 0.1), asked(agreement="b" * 64, epsilon=0.1), asked(column="x", epsilon=0.1)]
    ):
        assert settle(ledger, [1], 20 + number, other) == {1: 21 + number}
    assert costs_by_client(ledger.folder, read_budget_and_runs(ledger.folder)[1]).tolist() == [pytest.approx(0.8)]


def test_clients_over_budget_stop_the_run_or_are_left_out_and_counted(ledger: PopulationLedger) -> None:
    settle(ledger, [1, 2], 0, asked(1))
    settle(ledger, [2, 3], 0, asked(2))
    with pytest.raises(BudgetError) as caught:
        settle(ledger, [1, 2, 3, 4], 50, asked(3))
    assert "1 of 4 clients would spend more than epsilon = 1" in str(caught.value)
    assert "nothing was charged" in str(caught.value)
    assert len(read_budget_and_runs(ledger.folder)[1]) == 2
    assert settle(ledger, [1, 2, 3, 4], 50, asked(3), over_budget="drop") == {1: 51, 3: 53, 4: 54}
    found = ledger.charge_clients_once(asked(4), names([1, 2, 3, 4]), np.arange(4), NO_CELLS, over_budget="drop")
    assert (found.may_leave.tolist(), found.over_budget, found.known_clients) == ([False, False, False, True], 3, 0)
    assert settle(ledger, [1, 2], 99, asked(1)) == {1: 1, 2: 2}  # what is paid for stays available
    with pytest.raises(DiscreetError, match="over_budget = 'x' is not one of refuse, drop"):
        settle(ledger, [1], 0, asked(), over_budget="x")


def test_what_to_do_about_a_budget_below_one_sample_never_forgets_what_was_spent(
    tmp_path: Path, ledger: PopulationLedger
) -> None:
    """For a ledger with charges the advice was a larger budget and a new secret, under which nothing is spent."""
    settle(ledger, [1], 0, asked(1, 1.0))
    dear = asked(2, 1.0000000000000002)
    with pytest.raises(BudgetError) as caught:
        settle(ledger, [1, 2], 0, dear)
    assert "costs epsilon = 1.0000000000000002, and a client's whole budget is 1.0 in ledger" in str(caught.value)
    assert str(caught.value).endswith(
        "agree on a smaller epsilon. The ledger keeps its budget, and what was spent stays spent"
    )
    with pytest.raises(
        BudgetError, match=r"budget is 0\.3, so no ledger .*: .* or give a larger budget= \(--budget\)$"
    ):
        refuse_budget_below_one_sample(0.3, 0.30000000000000004, tmp_path / "new")


def test_whether_a_client_is_over_budget_does_not_depend_on_what_was_drawn(ledger: PopulationLedger) -> None:
    settle(ledger, [1], 0, asked(1, 0.9))
    for drawn in range(50):
        with pytest.raises(BudgetError, match="1 of 1 clients"):
            settle(ledger, [1], drawn, asked(2, 0.2))


@pytest.mark.slow
@pytest.mark.parametrize("tiny", [0.1, 1e-17, 1e-30])
def test_ten_tenths_are_one_for_each_client(tmp_path: Path, tiny: float) -> None:
    """Also where the common unit of all epsilons is too small for 64 bits."""
    ledger = PopulationLedger.create(tmp_path / "tenths", budget=1.0, secret=Secret(bytes(32)))
    settle(ledger, [1], 0, asked(99, tiny))
    for number in range(1, 10):
        settle(ledger, [1, 2], 0, asked(number, 0.1))
    assert settle(ledger, [1, 2], 0, asked(10, 0.1), over_budget="drop") == {2: 2}
    assert settle(ledger, [2], 0, asked(11, 5e-324), over_budget="drop") == {}


OPERATIONS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), min_size=1, max_size=8, unique=True),
        st.integers(1, 5),
        st.sampled_from([0.1, 0.25, 0.3, 1.0]),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPERATIONS)
def test_it_is_a_dictionary_that_never_overspends(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[list[int], int, float]]
) -> None:
    """Against the plain model: (client, round) -> sample, and an exact sum for each client."""
    ledger = PopulationLedger.create(tmp_path_factory.mktemp("l") / "ledger", budget=1.0, secret=Secret(os.urandom(32)))
    known: dict[tuple[int, int, float], int] = {}
    for drawn, (clients, number, epsilon) in enumerate(operations):
        what = Round(agreement=f"{epsilon}", question=Question(value="x"), number=number, epsilon=epsilon)
        expected = {}
        for client in clients:
            spent = sum((Fraction(str(cost)) for who, _, cost in known if who == client), Fraction(str(epsilon)))
            if (client, number, epsilon) not in known and spent <= 1:
                known[client, number, epsilon] = client + 1000 * drawn
            if (client, number, epsilon) in known:
                expected[client] = known[client, number, epsilon]
        assert settle(ledger, clients, 1000 * drawn, what, over_budget="drop") == expected


def test_only_its_owner_may_enter_it_and_no_client_is_named(tmp_path: Path, secret: Secret) -> None:
    before = os.umask(0)
    try:
        ledger = PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=secret)
        settle(ledger, [1, 2], 0, asked())
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in ledger.folder.iterdir()}
    assert (stat.S_IMODE(ledger.folder.stat().st_mode), modes) == (0o700, {0o600})
    assert secret.value not in b"".join(path.read_bytes() for path in ledger.folder.iterdir())
    assert secret.value.hex().encode() not in b"".join(path.read_bytes() for path in ledger.folder.iterdir())
    for mode in (0o755, 0o750, 0o701):
        ledger.folder.chmod(mode)
        with pytest.raises(LedgerError, match=re.escape(f"has mode {mode:04o}") + ".*chmod 700"):
            PopulationLedger(ledger.folder, secret)


def test_a_ledger_and_a_secret_belong_together(tmp_path: Path, ledger: PopulationLedger, secret: Secret) -> None:
    with pytest.raises(LedgerError, match="created with another secret"):
        PopulationLedger(ledger.folder, Secret(bytes(32)))
    with pytest.raises(LedgerError, match="serves another ledger"):
        PopulationLedger.create(tmp_path / "second", budget=1.0, secret=secret)
    assert not (tmp_path / "second").exists()
    with pytest.raises(LedgerError, match="give that ledger"):
        Rounds(secret).refuse_if_secret_has_ledger()
    with pytest.raises(LedgerError, match="exists already"):
        PopulationLedger.create(ledger.folder, budget=5.0, secret=secret)
    with pytest.raises(LedgerError, match="there is no ledger"):
        PopulationLedger(tmp_path / "missing", secret)
    (tmp_path / "file").write_text("x")
    with pytest.raises(LedgerError, match="is no folder"):
        PopulationLedger(tmp_path / "file", secret)
    assert PopulationLedger(ledger.folder, tmp_path / "secret").budget.epsilon == 1.0  # a file of a secret will do
    for nothing in (None, 5):
        with pytest.raises(DiscreetError, match="discreet secret FILE"):
            PopulationLedger(ledger.folder, nothing)  # type: ignore[arg-type]


def test_a_creation_that_was_cut_short_is_done_again(tmp_path: Path, secret: Secret) -> None:
    for number, left in enumerate(([], ["book.new-0123"], ["book.new-0123", "book.new-0123-journal"])):
        folder = tmp_path / str(number)
        folder.mkdir(mode=0o700)
        for name in left:
            (folder / name).touch(mode=0o600)
        write_secret(tmp_path / f"secret {number}")
        assert PopulationLedger.create(folder, budget=1.0, secret=tmp_path / f"secret {number}").budget.epsilon == 1.0
    for name in ("notes", "book"):  # an empty book may be one that lost its content
        other = tmp_path / f"other {name}"
        other.mkdir(mode=0o700)
        (other / name).touch(mode=0o600)
        with pytest.raises(LedgerError, match="exists already"):
            PopulationLedger.create(other, budget=1.0, secret=secret)
    with pytest.raises(LedgerError, match="is empty, so it is damaged"):
        PopulationLedger(tmp_path / "other book", secret)


def test_whoever_comes_second_to_make_a_ledger_leaves_the_first_one_s_alone(
    tmp_path: Path, secret: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have found an empty folder; by the time the second makes its book, the first has made one and charged to it."""
    folder, create = tmp_path / "ledger", Book.create

    def meanwhile(book: Book, terms: dict[str, Any]) -> None:
        monkeypatch.setattr(Book, "create", create)
        settle(PopulationLedger.create(folder, budget=1.0, secret=secret), [1, 2], 10, asked())
        create(book, terms)

    monkeypatch.setattr(Book, "create", meanwhile)
    with pytest.raises(LedgerError, match="exists already"):
        PopulationLedger.create(folder, budget=1.0, secret=secret)
    assert settle(PopulationLedger(folder, secret), [1, 2], 50, asked()) == {1: 11, 2: 12}


def test_a_disk_that_fails_after_it_noted_the_ledger_of_a_secret_leaves_that_ledger(
    tmp_path: Path, secret: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note was on the disk, the ledger was removed, and the secret served a ledger that nobody had."""
    note = Rounds.note_ledger_of_secret

    def note_and_fail(rounds: Rounds, ledger: str) -> None:
        note(rounds, ledger)
        raise LedgerError("the disk failed")

    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "note_ledger_of_secret", note_and_fail)
        with pytest.raises(LedgerError, match="the disk failed"):
            PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=secret)
    assert settle(PopulationLedger(tmp_path / "ledger", secret), [1], 10, asked()) == {1: 11}


def test_a_folder_of_somebody_else_s_stays(tmp_path: Path, secret: Secret) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(LedgerError, match="has mode 0755"):
        PopulationLedger.create(folder, budget=1.0, secret=secret)
    assert folder.is_dir()


def _when_written(path: Path) -> tuple[str, int]:
    """An order that does not depend on names, which are drawn at random."""
    return path.suffix, path.stat().st_mtime_ns


def flips(ledger: PopulationLedger, number: int) -> Iterator[None]:
    """One flipped bit at a time, anywhere in the folder."""
    chosen = random.Random(0)
    files = sorted(filter(lambda path: path.stat().st_size, ledger.folder.iterdir()), key=_when_written)
    whole = {path: path.read_bytes() for path in files}
    for _ in range(number):
        path = chosen.choices(files, [len(whole[file]) for file in files])[0]
        place = chosen.randrange(8 * len(whole[path]))
        damaged = bytearray(whole[path])
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        yield
        path.write_bytes(whole[path])


@pytest.mark.slow
def test_a_flipped_bit_is_harmless_or_refused(ledger: PopulationLedger) -> None:
    settle(ledger, [*range(40)], 100, asked(1))
    settle(ledger, [*range(20, 60)], 200, asked(2))
    refused, tries = 0, wide(600, 200)
    for _ in flips(ledger, tries):
        try:
            again = PopulationLedger(ledger.folder, ledger.secret)
            assert again.budget == ledger.budget
            assert settle(again, [1, 30], 900, asked(1)) == {1: 101, 30: 130}
            assert settle(again, [30, 50], 900, asked(2)) == {30: 230, 50: 250}
            with pytest.raises(BudgetError):
                settle(again, [30], 0, asked(3))
        except LedgerError:
            refused += 1
    assert refused > tries / 12  # the others are in free space, or in the name under which the book was written


def test_what_a_run_that_was_cut_short_leaves_counts_for_nothing_and_goes(
    ledger: PopulationLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.ledger._book.BookWriter.add_line", cut)
        with pytest.raises(KeyboardInterrupt):
            settle(ledger, [1, 2], 100, asked())
    assert len([path for path in ledger.folder.iterdir() if path.suffix == ".charges"]) == 1
    (ledger.folder / ".x.charges.0123.partial").write_bytes(b"x")
    assert settle(ledger, [1, 2], 200, asked()) == {1: 201, 2: 202}
    assert settle(ledger, [1], 300, asked()) == {1: 201}
    assert sorted(path.suffix for path in ledger.folder.iterdir()) == ["", ".charges"]


@pytest.mark.slow
def test_a_lost_file_of_charges_is_an_error(ledger: PopulationLedger) -> None:
    settle(ledger, [1, 2], 100, asked())
    (found,) = ledger.folder.glob("*.charges")
    found.unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        settle(ledger, [1, 2], 200, asked())


def test_nothing_leaves_before_the_charges_are_committed(
    ledger: PopulationLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of charges is on the disk before its line is, and the line before the samples are returned."""
    events: list[str] = []
    real: Callable[[int], None] = os.fsync

    def flushed(handle: int) -> None:
        events.append(f"flushed {Path(os.readlink(f'/proc/self/fd/{handle}')).suffix or 'folder'}")
        real(handle)

    def added(pen: Any, line: Any) -> None:
        events.append("line")
        raise LedgerError("the power is gone")

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr("discreet.ledger._book.BookWriter.add_line", added)
    with pytest.raises(LedgerError, match="the power is gone"):
        settle(ledger, [1], 0, asked())
    assert events == ["flushed .partial", "flushed folder", "line"]


RACE = """
import json, sys
import numpy as np
from discreet.errors import BudgetError
from discreet.ledger import PopulationLedger
from discreet.release._randomness import read_secret
from tests.ledger.test_population import asked, settle
ledger = PopulationLedger(sys.argv[1], read_secret(sys.argv[2]))
start = int(sys.argv[3])
for number in range(1, 8):
    clients = list(range(start, start + 30))
    print(number, json.dumps([*settle(ledger, clients, 1000 * start, asked(number, 0.25), over_budget="drop").items()]))
"""


@pytest.mark.slow
def test_runs_at_the_same_time_charge_each_client_once(tmp_path: Path, secret: Secret) -> None:
    ledger = PopulationLedger.create(tmp_path / "ledger", budget=1.0, secret=secret)
    command = [sys.executable, "-c", RACE, str(ledger.folder), str(tmp_path / "secret")]
    racing = [
        subprocess.Popen([*command, str(start)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for start in (0, 10, 20)
    ]
    seen: dict[tuple[str, int], int] = {}
    for process in racing:
        for line in process.communicate()[0].splitlines():
            number, _, answers = line.partition(" ")
            for client, sample in json.loads(answers):
                assert seen.setdefault((number, client), sample) == sample
        assert process.returncode == 0
    spent = costs_by_client(ledger.folder, read_budget_and_runs(ledger.folder)[1])
    assert spent.max() == 1.0
    charged = sum(run.clients for run in read_budget_and_runs(ledger.folder)[1])
    assert charged == len(seen)


def killed(*options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", population_kills.__name__, "--kills", "30", *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_killed_runs_lose_nothing_and_overspend_nothing() -> None:
    """30 kills here; `make soak` does 1,000."""
    done = killed()
    assert done.returncode == 0, done.stderr
    assert "nothing lost, nothing overspent" in done.stdout


@pytest.mark.slow
def test_killing_would_find_a_run_that_publishes_before_it_is_charged() -> None:
    done = killed("--careless", "--kills", "4000")  # it ends with the first that is found: more where a machine is slow
    assert done.returncode == 1
    assert "a sample left without its charge" in done.stderr


def test_no_clients_are_nothing_to_settle(ledger: PopulationLedger) -> None:
    found = ledger.charge_clients_once(asked(), names([]), np.empty(0, dtype=np.int64), NO_CELLS)
    assert isinstance(found, Settlement)
    assert found.may_leave.size == 0
    assert read_budget_and_runs(ledger.folder)[1] == []
