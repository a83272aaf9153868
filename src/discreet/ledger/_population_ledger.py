"""`PopulationLedger`: the spending of every client of a population, over all rounds and agreements, in a folder.

Charges are durable before any sample appears:

    draw all  |  lock, read and verify  |  clients known in this (agreement, question, round) -> their stored samples
      |  the others: within the budget? -> else dropped, or the run is an error  |  write their charges and samples
      |  commit, flushed to the disk  |  only now let samples out

Answers depend on (client, agreement, question, round) alone, as in a single client's ledger. Everything that leaves about a client is a
function of one sample for each, charged when it was drawn. A round may therefore be repeated on changed data, on fewer clients or on more.
Whether a client is over its budget depends on its questions, never on its data.

The folder (0700) contains a book with a line for each run (`discreet.ledger._book`), and for each run a file with the charges of its
clients. The line is the commit. A file without a line comes from an interrupted run, counts for nothing and is removed by the next run.
Files are written once, whole (`discreet._base.files`), and never changed. They contain columns in order of client, and an error is raised
if their digest is not the one in the book.

A client is two words of a keyed digest of its name; names are not stored. The key comes from the secret, which is not in the ledger. A
reader without the secret learns how many clients released which outcomes, but not which clients. A client pays at most once for a run. If
the sum over all runs is within the budget, no client's past is looked up; otherwise it is added up exactly.
"""

import hashlib
import hmac
import math
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.files import atomic_write, error_reason, refuse_file_open_to_others
from discreet._base.numerics import stated_decimal
from discreet.errors import BudgetError, DiscreetError, LedgerError, check_choice, check_path
from discreet.ledger import OVER_BUDGET
from discreet.ledger._book import LATEST_COPY, PARTIAL, Book, Budget, Rounds, numbers_as_distinct_texts, utc_timestamp
from discreet.ledger._client_ledger import Destination, is_key_note
from discreet.release import Question, RunKey, Secret, as_secret

_HEAD = b"discreet charges 1\n"
_DAMAGED = (
    f"is damaged; restore {LATEST_COPY} of the whole folder, and do not start a new ledger: what was spent stays spent; "
    "no sample was released"
)


def refuse_budget_below_one_sample(budget: float, epsilon: float, folder: Path) -> None:
    """Raise an error for the budget of a new ledger that pays for no sample at epsilon. Call this before it is made: it keeps its budget."""
    if budget < epsilon:
        raise BudgetError(
            f"{_sample_beyond_budget_text(budget, epsilon)}, so no ledger {folder} was made: agree on a smaller epsilon, or give a larger "
            "budget= (--budget)"
        )


def _sample_beyond_budget_text(budget: float, epsilon: float) -> str:
    budget_text, cost_text = numbers_as_distinct_texts(budget, epsilon)
    return f"a sample costs epsilon = {cost_text}, and a client's whole budget is {budget_text}"


@dataclass(frozen=True)
class ClientDigests:
    """Many clients, each as two words of a keyed digest of its name."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.first.size

    def select_clients(self, selection: Any) -> "ClientDigests":
        """The clients at these indices, or where a mask is true."""
        return ClientDigests(self.first[selection], self.second[selection])


@dataclass(frozen=True)
class Segment:
    """Clients in order of their first words, with the outcome released for each. `within` is empty unless outcomes are cells."""

    names: ClientDigests
    outcomes: NDArray[np.uint32]
    within: NDArray[np.float64]

    def find_client_rows(self, names: ClientDigests) -> NDArray[np.int64]:
        """The row of each client in the segment; -1 for absent ones."""
        candidates = np.searchsorted(self.names.first, names.first)
        rows = np.full(len(names), -1, dtype=np.int64)
        pending = np.arange(len(names))
        while pending.size:  # repeated only for clients that share a first word
            pending = pending[candidates[pending] < len(self.names)]
            pending = pending[self.names.first[candidates[pending]] == names.first[pending]]
            matches = self.names.second[candidates[pending]] == names.second[pending]
            rows[pending[matches]] = candidates[pending[matches]]
            pending = pending[~matches]
            candidates[pending] += 1
        return rows

    def write(self, path: Path) -> str:
        """Write the columns to a new file and return their digest."""
        columns = (
            self.names.first.astype("<u8"),
            self.names.second.astype("<u8"),
            self.outcomes.astype("<u4"),
            self.within.astype("<f8"),
        )
        digest = hashlib.blake2b(_HEAD, digest_size=32)
        with atomic_write(path, what="charges", private=True) as file:
            file.write(_HEAD)
            for column in columns:
                content = column.tobytes()
                digest.update(content)
                file.write(content)
        return digest.hexdigest()

    @classmethod
    def read(cls, path: Path, *, clients: int, cells: bool, digest: str) -> "Segment":
        """The columns in a file; an error unless they have the digest."""
        kinds = [("<u8", clients), ("<u8", clients), ("<u4", clients), ("<f8", clients if cells else 0)]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise LedgerError(
                f"ledger {path.parent}: {path.name} cannot be read: {error_reason(error)}; restore it"
            ) from None
        if hashlib.blake2b(content, digest_size=32).hexdigest() != digest or not content.startswith(_HEAD):
            raise LedgerError(f"ledger {path.parent}: {path.name} {_DAMAGED}")
        columns, start = list[NDArray[Any]](), len(_HEAD)
        for kind, number in kinds:
            columns.append(np.frombuffer(content, dtype=kind, count=number, offset=min(start, len(content) - 1)))
            start += columns[-1].nbytes
        return cls(ClientDigests(columns[0], columns[1]), columns[2], columns[3])


POPULATION_FORMAT, OLDER = "discreet population 2", ("discreet population 1",)
_BOOK, _SUFFIX = "book", ".charges"
_WAIT_SECONDS = 600.0
_EXACT = 1 << 62  # sums below it fit into 64 bits


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of one question under one agreement. A client answers it once and pays epsilon once."""

    agreement: str
    question: Question
    number: int
    epsilon: float

    @property
    def round_identity(self) -> tuple[Any, ...]:
        """What tells its question from others: the agreement, the columns and the number of the round."""
        return self.agreement, self.question.value, self.question.count, self.question.weight, self.number


@dataclass(frozen=True, kw_only=True)
class Run:
    """The charges of one run: how many clients, which round, which file. `to`: the collector it was for, or None."""

    round: Round
    clients: int
    cells: bool
    file: str
    digest: str
    time: str
    to: Destination | None = None

    @classmethod
    def from_ledger_line(cls, line: Sequence[Any]) -> "Run":
        """The run in a line of the book."""
        agreement, (value, count, weight), number, epsilon, clients, cells, file, digest, time, *to = line
        question = Question(value=value, count=count, weight=weight)
        question_round = Round(agreement=agreement, question=question, number=number, epsilon=epsilon)
        destination = Destination.from_ledger_line(to[0]) if to else None
        return cls(
            round=question_round, clients=clients, cells=cells, file=file, digest=digest, time=time, to=destination
        )

    @property
    def as_ledger_line(self) -> list[Any]:
        """The run as a line of the book."""
        question_round, question = self.round, self.round.question
        columns = [question.value, question.count, question.weight]
        terms = [question_round.agreement, columns, question_round.number, question_round.epsilon]
        run = [*terms, self.clients, self.cells, self.file, self.digest, self.time]
        return run if self.to is None else [*run, self.to.as_ledger_line]


@dataclass(frozen=True)
class Settlement:
    """What may leave: an outcome (and its place within a cell) for the clients where `may_leave` is true. `known_clients` had one before."""

    may_leave: NDArray[np.bool_]
    outcomes: NDArray[np.int64]
    within: NDArray[np.float64]
    known_clients: int
    over_budget: int


class PopulationLedger:
    """The budget of each client of a population, in a folder. `create` once, `PopulationLedger(folder, secret)` ever after.

    Args:
        folder: of an existing ledger.
        secret: the one it was created with, or its file: under another one every client would look new.
        to: the collector that samples are drawn for, by a gateway. What another one was given is then not given to it.

    Raises:
        LedgerError: for a ledger that is missing, cannot be read or was created with another secret.
        DiscreetError: for what is not a folder or a secret.
    """

    settle = OldName("charge_clients_once")
    destination = OldName("destination_of_round")

    def __init__(self, folder: str | Path, secret: Secret | str | Path, *, to: Destination | None = None) -> None:
        secret = _require_secret(secret)
        self._to = to
        self.folder = check_path("folder", folder)
        self._book = _open_population_book(self.folder)
        terms = self._book.read_lines()[0]
        self.budget = Budget(epsilon=float.fromhex(terms["epsilon"]))
        self.id: str = terms["id"]
        self._secret = secret
        if not hmac.compare_digest(_secret_check_value(secret, self.id), terms["secret"]):
            raise LedgerError(
                f"ledger {self.folder} was created with another secret, under which its clients have other digests; give that one"
            )
        Rounds(secret).note_ledger_of_secret(self.id)

    @classmethod
    def create(cls, folder: str | Path, *, budget: float, secret: Secret | str | Path) -> "PopulationLedger":
        """Create a ledger in a new folder that only its owner may enter. Every client starts with nothing spent."""
        secret = _require_secret(secret)
        client_budget, path, ledger_id = Budget(epsilon=budget), check_path("folder", folder), secrets.token_hex(16)
        try:
            path.mkdir(mode=0o700)
            path.chmod(0o700)  # regardless of the umask
        except FileExistsError:
            if population_ledger_exists(path):
                raise LedgerError(
                    f"{path} exists already, and replacing it would forget what was spent; use another name"
                ) from None
        except (OSError, ValueError) as error:
            raise LedgerError(f"ledger {path} cannot be made: {error_reason(error)}") from None
        book = _open_population_book(path)
        book.create(
            {"id": ledger_id, "epsilon": client_budget.epsilon.hex(), "secret": _secret_check_value(secret, ledger_id)}
        )
        try:
            return cls(path, secret)
        except LedgerError:
            is_uncharged = len(book.read_lines()) == 1
            # a disk that failed may have kept the note: without its ledger the secret would serve none
            if is_uncharged and not Rounds(secret).serves_ledger(ledger_id):
                with suppress(OSError):
                    book.path.unlink()
                    path.rmdir()
            raise

    @property
    def secret(self) -> Secret:
        """The secret it was created with."""
        return self._secret

    def client_digest_key(self) -> RunKey:
        """The key under which this ledger computes the digests of clients' names."""
        return self._derive_key_from_secret(b"names")

    def client_order_key(self, asked: Round) -> RunKey:
        """The key of an order of clients that depends on the round and not on their data."""
        columns = "\0".join(repr(part) for part in asked.round_identity)
        return self._derive_key_from_secret(b"order" + columns.encode("utf-8", "surrogatepass"))

    def charge_clients_once(
        self,
        asked: Round,
        names: ClientDigests,
        outcomes: NDArray[np.int64],
        within: NDArray[np.float64],
        *,
        over_budget: str = "refuse",
    ) -> Settlement:
        """Charge the clients that are new to this round with their draws, and return the stored samples of the others.

        `over_budget`: "refuse" the run if a client cannot pay, or "drop" such clients.
        """
        check_choice("over_budget", over_budget, OVER_BUDGET)
        order = np.argsort(names.first, kind="stable")
        names = names.select_clients(order)
        draws = Segment(names, outcomes[order].astype(np.uint32), within[order] if within.size else within)
        with self._book.using_write_transaction() as writer:
            note = None if self._to is None else self._to.check_key_and_make_key_note(writer.lines[1:])
            runs = _parse_runs(writer.lines)
            self._refuse_other_destination(asked, runs)
            if note is not None:
                writer.add_line(note)
            has_sample = self._replace_draws_by_stored_samples(
                draws, [run for run in runs if run.round.round_identity == asked.round_identity]
            )
            cannot_pay = self._clients_over_budget(
                names,
                ~has_sample,
                asked,
                [run for run in runs if run.round.round_identity != asked.round_identity],
            )
            if cannot_pay.any() and over_budget == "refuse":
                if self.budget.epsilon < asked.epsilon:
                    raise BudgetError(
                        f"{_sample_beyond_budget_text(self.budget.epsilon, asked.epsilon)} in ledger {self.folder}; nothing was charged: "
                        "agree on a smaller epsilon. The ledger keeps its budget, and what was spent stays spent"
                    )
                raise BudgetError(
                    f"{int(cannot_pay.sum()):,} of {len(names):,} clients would spend more than epsilon = {self.budget.epsilon:g} in "
                    f"ledger {self.folder}; nothing was charged: leave them out with over_budget='drop' (--over-budget drop)"
                )
            is_new = ~has_sample & ~cannot_pay
            self._remove_stray_files(runs)
            if is_new.any():
                writer.add_line(self._write_segment_of_run(asked, draws, is_new).as_ledger_line)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        may_leave = ~cannot_pay[inverse]
        within = draws.within[inverse] if within.size else within
        return Settlement(
            may_leave, draws.outcomes[inverse].astype(np.int64), within, int(has_sample.sum()), int(cannot_pay.sum())
        )

    def for_destination(self, to: Destination) -> "PopulationLedger":
        """This ledger, for samples that go to a collector."""
        return PopulationLedger(self.folder, self._secret, to=to)

    def refuse_wrong_destination(self, asked: Round) -> None:
        """Raise an error, before anything is drawn, if the round may not be released to this collector.

        `charge_clients_once` checks again, under its lock.
        """
        lines = self._book.read_lines()
        if self._to is not None:
            self._to.check_key_and_make_key_note(lines[1:])
        self._refuse_other_destination(asked, _parse_runs(lines))

    def destination_of_round(self, asked: Round) -> Destination | None:
        """Where the samples of a round went when it was first charged; if it was not, where they will go."""
        return next(
            (
                run.to
                for run in read_budget_and_runs(self.folder)[1]
                if run.round.round_identity == asked.round_identity
            ),
            self._to,
        )

    def _refuse_other_destination(self, question_round: Round, runs: Sequence[Run]) -> None:
        if self._to is None:
            return
        for run in runs:
            run_round = run.round
            if run_round.round_identity == question_round.round_identity:
                if not self._to.is_same_collector_as(run.to):
                    recipient = "for nobody in particular" if run.to is None else f"for {run.to.address}"
                    raise LedgerError(
                        f"round {question_round.number} of agreement {question_round.agreement[:12]}... was released "
                        f"{recipient} under this secret, so "
                        f"{self._to.address} would be given the same samples. Use another secret and ledger for another collector. Subtract "
                        "from its budget what was spent here. If an earlier version began to send this round, finish with that version"
                    )
            elif run_round.number == question_round.number and self._to.is_answered_by_earlier_sample(
                run.to, run_round.agreement
            ):
                raise LedgerError(
                    f"in round {question_round.number} of the collection clients were released under agreement "
                    f"{run_round.agreement} on column {run_round.question.value!r}, and a client answers once: send that again with "
                    f"agreement={run_round.agreement} "
                    "(--agreement). Other clients than those need another secret and ledger"
                )

    def _replace_draws_by_stored_samples(self, draws: Segment, runs: Sequence[Run]) -> NDArray[np.bool_]:
        """Replace draws by the stored samples of this round; return which clients had one."""
        has_sample = np.zeros(len(draws.names), dtype=np.bool_)
        for run in runs:
            segment = read_segment(self.folder, run)
            rows = segment.find_client_rows(draws.names)
            matches = rows >= 0
            draws.outcomes[matches] = segment.outcomes[rows[matches]]
            if run.cells:
                draws.within[matches] = segment.within[rows[matches]]
            has_sample |= matches
        return has_sample

    def _clients_over_budget(
        self, names: ClientDigests, is_new: NDArray[np.bool_], question_round: Round, runs: Sequence[Run]
    ) -> NDArray[np.bool_]:
        """Which of the clients that are new to this round cannot pay."""
        cannot_pay = np.zeros(len(names), dtype=np.bool_)
        price, budget = Fraction(stated_decimal(question_round.epsilon)), Fraction(stated_decimal(self.budget.epsilon))
        round_costs = {run.round.round_identity: Fraction(stated_decimal(run.round.epsilon)) for run in runs}
        if price + sum(round_costs.values()) <= budget or not is_new.any():
            return cannot_pay
        scale = math.lcm(price.denominator, *(cost.denominator for cost in round_costs.values()))
        fits_int64 = (price + sum(round_costs.values())) * scale < _EXACT
        payers = names.select_clients(is_new)
        totals: NDArray[Any] = np.full(len(payers), int(price * scale), dtype=np.int64 if fits_int64 else object)
        for run in runs:
            took_part = read_segment(self.folder, run).find_client_rows(payers) >= 0
            totals[took_part] += int(round_costs[run.round.round_identity] * scale)
        cannot_pay[is_new] = totals > math.floor(budget * scale)
        return cannot_pay

    def _write_segment_of_run(self, question_round: Round, draws: Segment, is_new: NDArray[np.bool_]) -> Run:
        within = draws.within[is_new] if draws.within.size else draws.within
        segment = Segment(draws.names.select_clients(is_new), draws.outcomes[is_new], within)
        file = secrets.token_hex(8) + _SUFFIX
        digest = segment.write(self.folder / file)
        number, cells, time = len(segment.names), bool(within.size), utc_timestamp()
        return Run(round=question_round, clients=number, cells=cells, file=file, digest=digest, time=time, to=self._to)

    def _remove_stray_files(self, runs: Sequence[Run]) -> None:
        """Remove the files of interrupted runs. The lock is held, so no run is still writing."""
        files = {run.file for run in runs}
        for path in self.folder.iterdir():
            if path.name not in files and _SUFFIX in path.suffixes:  # whole or partial
                path.unlink()

    def _derive_key_from_secret(self, purpose: bytes) -> RunKey:
        content = bytes.fromhex(self.id) + purpose
        return RunKey(hashlib.blake2b(content, key=self._secret.value, person=b"discreet books 1").digest())

    destined = OldName("for_destination")


def read_budget_and_runs(folder: str | Path) -> tuple[Budget, list[Run]]:
    """The budget of a population's ledger and its runs; needs no secret."""
    lines = _open_population_book(Path(folder)).read_lines()
    return Budget(epsilon=float.fromhex(lines[0]["epsilon"])), _parse_runs(lines)


def _parse_runs(lines: Sequence[Any]) -> list[Run]:
    """The runs among the lines of a book."""
    return [Run.from_ledger_line(line) for line in lines[1:] if not is_key_note(line)]


def costs_by_client(folder: str | Path, runs: Sequence[Run]) -> NDArray[np.float64]:
    """What each client has spent, as floats, in an order that carries no information; for a summary."""
    digests = [read_segment(Path(folder), run).names for run in runs]
    if not digests:
        return np.empty(0)
    first, second = (np.concatenate([getattr(names, word) for names in digests]) for word in ("first", "second"))
    costs = np.repeat([run.round.epsilon for run in runs], [run.clients for run in runs])
    order = np.lexsort((second, first))
    is_first = np.ones(order.size, dtype=np.bool_)
    is_first[1:] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    return np.bincount(np.cumsum(is_first) - 1, weights=costs[order]).astype(np.float64)


def read_segment(folder: Path, run: Run) -> Segment:
    """The charges of a run."""
    return Segment.read(folder / run.file, clients=run.clients, cells=run.cells, digest=run.digest)


def population_ledger_exists(folder: str | Path) -> bool:
    """Whether a ledger, or anything but the remains of an interrupted creation, is in this folder."""
    path = Path(folder)
    if not os.path.lexists(path):
        return False
    if not path.is_dir():
        return True
    return any(not entry.name.startswith(f"{_BOOK}{PARTIAL}") for entry in path.iterdir())


def new_ledger_message(ledger: PopulationLedger, *, empty_folder: bool) -> str:
    """What to say of a ledger that was made. `empty_folder`: whether its folder was there, and might have lost a ledger."""
    warning = (
        "; its folder was there and empty: if it held a ledger before, stop, and restore that one"
        if empty_folder
        else ""
    )
    return (
        f"made ledger {ledger.folder}: {ledger.budget} for each client, nothing spent in it so far (what they spent under another secret or "
        f"ledger is not counted){warning}"
    )


def _open_population_book(folder: Path) -> Book:
    try:
        status = folder.stat()
    except FileNotFoundError:
        raise LedgerError(
            f"there is no ledger {folder}; make one by giving its budget too: budget= (--budget)"
        ) from None
    except (OSError, ValueError) as error:
        raise LedgerError(f"ledger {folder} cannot be opened: {error_reason(error)}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise LedgerError(f"{folder} is no folder, so no ledger of a population; check the name")
    refuse_file_open_to_others(
        folder, status, what="ledger", after=" (if it is a ledger; otherwise check the name)", error=LedgerError
    )
    return Book(folder / _BOOK, kind=POPULATION_FORMAT, wait=_WAIT_SECONDS, older=OLDER)


def _require_secret(secret: Any) -> Secret:
    ledger_secret = as_secret(secret)
    if ledger_secret is None:
        raise DiscreetError(
            "a ledger needs a secret, under which it knows its clients; make one with: discreet secret FILE"
        )
    return ledger_secret


def _secret_check_value(secret: Secret, ledger_id: str) -> str:
    """A value that tells whether a secret is the one a ledger was created with."""
    content = bytes.fromhex(ledger_id)
    return hashlib.blake2b(content, key=secret.value, person=b"discreet check 1", digest_size=16).hexdigest()
