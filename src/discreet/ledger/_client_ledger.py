"""`Ledger`: the budget, charges and samples of one client, and `Destination`, the collector that a sample was given to.

Whom a sample was given to, and which questions are one question: what a ledger remembers so that no collector can tell it otherwise.

A collector says which collection it is, which agreements belong to it and which key it signs with. It may say anything. So a ledger notes
with every sample where it went: the address that was connected to, the key that signed there, and the collection as it was called then.

    one collector   the same address, or the same signing key (which names its addresses itself)
    its key         the one that was noted last for the address: noted for every address that a signature names, before anything is sent
    one question    one collector, one round, and one collection: the same name of it, or an agreement that is said to be of it

What was given to one collector is given to no other. A question that has an answer is answered by that sample, and by no fresh one.

The ledger of one client: its budget and its charges, each with its sample, in a book that only grows.

    lock, read and verify | is this (agreement, round) there? -> its sample, no charge | does the budget allow it? -> else refuse
                          | add charge and sample | commit, flushed to the disk | only now return the sample

So a crash before the commit leaves neither, and no sample has left; a crash after it leaves both, and asking again returns
the same sample. The lock is taken before anything is read, so that processes cannot both spend what is left once.

Answers depend on (agreement, round) alone. Whatever is asked, and however often, what leaves is a function of one sample for
each (agreement, round), each charged when it was drawn, and of nothing else of the data: not of whether they have changed since,
and neither does a refusal. (Were changed data drawn anew, two samples that differ would prove that the data do.) New data are
a new round. So no data, no digest of them and no key are in the file. No clock decides anything: charges are numbered, their
times are only shown.

A sample that goes to a collector is noted with where it went (`discreet.ledger._client_ledger`). Then answers depend on the collector,
its collection and the round: all are looked up under the same lock under which a new sample is charged.

A device also has an identity, a secret in a file of its own from which its names are made. The ledger notes a digest of it, once: the two
belong together, and a device that has lost one of them is told so and does not start anew.
"""

import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from discreet._base.labelled import LawLike
from discreet._base.moved import OldName
from discreet.accounting import BoxProfile, profile_of
from discreet.agreement import Agreement
from discreet.errors import BudgetError, CollectorError, DiscreetError, LedgerError, check_count
from discreet.families import ContinuousFamily, check_laws
from discreet.ledger._book import WAIT_SECONDS, Book, BookWriter
from discreet.ledger._budget import Budget, Spent, distinguishable_numbers
from discreet.mechanisms import AnyFamily, Client, JointSampler, ReportSampler, Sampler, check_sampler
from discreet.privacy import Privacy

_KEY = "key"


@dataclass(frozen=True)
class Destination:
    """A collection of one collector.

    Args:
        address: where the collector is, as it was connected to.
        key: the public key that signs there, 64 hexadecimal digits; None where nothing is signed.
        collection: the id of the agreement that the collection began with, by the collector's own word.
        agreements: those that it says are of the collection. They are not remembered.
        addresses: all that the key has signed for.
        trusted: whether the owner of the device has named this key, or has said that there is none. It is not remembered.
    """

    address: str
    key: str | None
    collection: str
    agreements: frozenset[str] = field(default=frozenset(), compare=False)
    addresses: tuple[str, ...] = field(default=(), compare=False)
    trusted: bool = field(default=False, compare=False)

    @property
    def document(self) -> dict[str, str | None]:
        """As JSON shows it."""
        return {"address": self.address, "key": self.key, "collection": self.collection}

    @property
    def line(self) -> list[str | None]:
        """As a ledger holds it."""
        return [self.address, self.key, self.collection]

    @classmethod
    def of(cls, line: Any) -> "Destination | None":
        """The destination that a ledger holds; None where a sample was given to nobody in particular."""
        return None if line is None else cls(*line)

    def is_collector_of(self, before: "Destination | None") -> bool:
        """Whether an earlier sample went to this collector."""
        if before is None:
            return False
        return before.address == self.address or (self.key is not None and before.key == self.key)

    def is_question_of(self, before: "Destination | None", agreement: str) -> bool:
        """Whether an earlier sample, under that agreement, answers this collection's question of its round."""
        if before is None or not self.is_collector_of(before):
            return False
        return before.collection == self.collection or agreement in self.agreements or agreement == self.collection

    def note_of_key(self, lines: Iterable[Any]) -> list[Any] | None:
        """The line to add to a ledger with these lines before anything is sent: None where it says nothing new.

        Raises:
            CollectorError: for an address whose key is not the one that was noted for it last, unless its owner trusts the new one.
        """
        noted: dict[str, str | None] = {}
        for line in lines:
            if is_note(line):
                noted |= dict.fromkeys(line[2], line[1])
        known = noted.get(self.address)
        if known is not None and known != self.key and not self.trusted:
            now = "signs nothing now" if self.key is None else f"signs with key {self.key} now"
            raise CollectorError(
                f"the collector at {self.address} signed with key {known} before, and {now}: nothing was sent. Ask whoever runs it by "
                "another way; if the change is meant, name the key to trust, or 'none': key= (--key)"
            )
        addresses = sorted({self.address, *self.addresses})
        if all(noted.get(address) == self.key for address in addresses):
            return None
        return [_KEY, self.key, addresses]


def is_note(line: Any) -> bool:
    """Whether a line of a ledger is about a collector's key, and no charge."""
    return isinstance(line, list) and line[0] == _KEY


FORMAT, OLDER = "discreet ledger 3", ("discreet ledger 2",)
IDENTITY = ".identity"  # what the file of a device's identity is called, after its ledger
PASSING = ".new"  # and after that while it is being made
_BOUND = "identity"  # the line that says which identity a ledger belongs to


@dataclass(frozen=True)
class Entry:
    """One charge: `sample` is the number of the outcome, cell, point or multiset that was released for it, or the report itself.

    Under an agreement on a continuous family `place` is the seed of the point's place within its cell, and of several samples drawn at once
    that of their order: drawn without a look at the data, and kept so that asking again gives the same.
    `to` is the collector it was drawn for, None where it was drawn for nobody in particular.
    """

    number: int
    agreement: str
    round: int
    epsilon: float
    alpha: float
    sample: int
    time: str
    place: int | None = None
    to: Destination | None = None

    def as_released(self, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler) -> Any:
        """The sample as it was released: an outcome, or a point; a report is a whole number."""
        if isinstance(sampler, ReportSampler):
            return self.sample
        return sampler.points(self.sample, rng=None if self.place is None else np.random.default_rng(self.place))

    spelled = OldName("as_released")


class Ledger:
    """The budget of one client and all that was charged to it. `Ledger.create(path, budget)` once, `Ledger(path)` ever after."""

    def __init__(self, path: str | Path, *, wait: float = WAIT_SECONDS) -> None:
        """An existing ledger. One that is missing is an error: starting anew would forget what was spent.

        `wait`: seconds to wait for other processes before giving up.
        """
        self._book = Book(path, kind=FORMAT, wait=wait, older=OLDER)
        try:
            self.path.stat()
        except FileNotFoundError:
            raise LedgerError(
                f"there is no ledger {self.path}; restore it if it was there before, since what was spent stays spent. A client that has "
                "released nothing yet makes one with Ledger.create or: discreet ledger create"
            ) from None
        except (OSError, ValueError):  # which the book explains
            pass
        self.budget = _stated_budget(self._book.lines()[0])

    @classmethod
    def create(cls, path: str | Path, budget: Budget) -> "Ledger":
        """A new ledger with that budget. An existing one is never replaced, and one whose identity is still there is not made anew."""
        refuse_forgetting(path, f"{path}{IDENTITY}")
        Book(path, kind=FORMAT).create({"epsilon": budget.epsilon.hex(), "delta": budget.delta.hex()})
        return cls(path)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._book.path

    def release(
        self,
        sampler: Sampler[AnyFamily] | JointSampler | ReportSampler,
        p: LawLike | Client,
        *,
        agreement: Agreement,
        round: int = 1,
    ) -> Any:
        """One private sample of this client, paid for. The same agreement and round return the same sample, whatever p is by then.

        On outcomes, and of reports, the draw takes the same instructions whatever the client holds. Of a `JointSampler` it is all the
        samples that are drawn at once, for one charge.
        """
        if isinstance(sampler, ReportSampler):
            return self._release_report(sampler, p, agreement=agreement, round=round)
        if not isinstance(sampler, JointSampler):
            check_sampler(sampler)
        held: Any = p
        shape = sampler.carrier.read(held).shape
        if shape:
            raise DiscreetError(f"p holds {math.prod(shape)} laws; a ledger is one client's, who has one law")

        def draw() -> int:
            if isinstance(sampler, JointSampler):
                return int(sampler.release_number(held))
            return int(sampler.release_number(held, constant_time=not isinstance(sampler.family, ContinuousFamily)))

        return self._release(sampler, draw, agreement=agreement, round=round).as_released(sampler)

    def _release_report(self, sampler: ReportSampler, p: Any, *, agreement: Agreement, round: int) -> int:
        laws = sampler.family.as_rows(p)
        if laws.ndim != 1:
            raise DiscreetError(f"p holds {math.prod(laws.shape[:-1])} laws; a ledger is one client's, who has one law")
        check_laws(laws)

        def draw() -> int:
            return sampler.release_number(laws)

        return self._release(sampler, draw, agreement=agreement, round=round).sample

    def release_to(
        self,
        to: Destination,
        sampler: Sampler[AnyFamily] | ReportSampler,
        draw: Callable[[], int],
        *,
        agreement: Agreement,
        round: int,
    ) -> Entry:
        """The answer to a collector's question: the one it was given, perhaps under another agreement, or a new one, paid for.

        Args:
            to: the collector and its collection.
            sampler: the one agreed on.
            draw: draws the number of an outcome, a cell or a point. It may be called although what it draws is then not used.
            agreement: what a new sample is released under.
            round: in which round.

        Returns:
            The charge, with its sample.

        Raises:
            CollectorError: for a collector whose key has changed.
            BudgetError: where the budget does not allow a new sample.
        """
        return self._release(sampler, draw, agreement=agreement, round=round, to=to)

    def answer_to(self, to: Destination, round: int) -> Entry | None:
        """The charge whose sample answers this collector's question in this round; None if there is none. Nothing is charged.

        The collector's key is noted: whatever is sent to it next, another key later is another collector's until its owner says otherwise.
        """
        if to.note_of_key(self._book.lines()[1:]) is not None:
            with self._book.writing() as pen:
                _note_key(pen, to)
        return self._find_entry(self._book.lines(), agreement="", round=round, to=to)

    def _release(
        self,
        sampler: Sampler[AnyFamily] | JointSampler | ReportSampler,
        draw: Callable[[], int],
        *,
        agreement: Agreement,
        round: int,
        to: Destination | None = None,
    ) -> Entry:
        agreement.check_sampler(sampler)
        agreement.check_round(round)
        placed = isinstance(sampler, JointSampler) or isinstance(sampler.family, ContinuousFamily)
        return self._charge(
            agreement.id,
            round=round,
            profile=profile_of(sampler),
            draw=draw,
            place=secrets.randbits(62) if placed else None,
            privacy=sampler.privacy,
            to=to,
        )

    def released_sample(
        self, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler, *, agreement: Agreement, round: int = 1
    ) -> Any:
        """The sample that was released under this agreement in this round; None if none was. Nothing is drawn or charged.

        Args:
            sampler: the one agreed on.
            agreement: what it was released under.
            round: in which round.

        Returns:
            What `release` returned, and will return again.

        Raises:
            LedgerError: for a ledger that cannot be read.
        """
        agreement.check_sampler(sampler)
        found = self._find_entry(
            self._book.lines(), agreement=agreement.id, round=agreement.check_round(round), to=None
        )
        return None if found is None else found.as_released(sampler)

    def charged_sample(self, agreement: str, *, round: int, profile: BoxProfile, draw: Callable[[], int]) -> int:
        """The sample of this agreement and round: the one already paid for, or a new one once its charge is durable.

        `draw` may be called although its sample is then not used (and never seen by anybody).
        """
        return self._charge(agreement, round=round, profile=profile, draw=draw).sample

    def _charge(
        self,
        agreement: str,
        *,
        round: int,
        profile: BoxProfile,
        draw: Callable[[], int],
        place: int | None = None,
        privacy: Privacy | None = None,
        to: Destination | None = None,
    ) -> Entry:
        """The charge for this question: the one there is, or a new one. `privacy`: what one release promises, if that is known."""
        check_count("round", round)
        known = self._find_entry(self._book.lines(), agreement=agreement, round=round, to=to)
        if known is not None:
            return known
        number = int(draw())  # outside the lock: it may take long
        with self._book.writing() as pen:
            _note_key(pen, to)
            known = self._find_entry(pen.lines, agreement=agreement, round=round, to=to)
            if known is not None:
                return known
            self._check(pen.lines, profile, privacy)
            line = [agreement, round, profile.epsilon, profile.alpha, number, _now(), place]
            pen.add([*line, to.line] if to is not None else line[: 6 if place is None else 7])
            return _entries(pen.lines)[-1]

    def _find_entry(self, lines: list[Any], *, agreement: str, round: int, to: Destination | None) -> Entry | None:
        """The charge that answers a question, among these lines."""
        entries = _entries(lines)
        if to is None:
            asked = (entry for entry in entries if entry.to is None and entry.agreement == agreement)
        else:
            asked = (entry for entry in entries if to.is_question_of(entry.to, entry.agreement))
        return next((entry for entry in asked if entry.round == round), None)

    @contextmanager
    def binding(self) -> Iterator["Binding"]:
        """Which identity this ledger belongs to, under its lock: nobody else looks or binds meanwhile."""
        with self._book.writing() as pen:
            yield Binding(pen)

    def entries(self) -> list[Entry]:
        """All charges, in the order they were made."""
        return _entries(self._book.lines())

    def spent(self) -> Spent:
        """What all charges together cost."""
        return self.budget.spent(_charged_releases(self._book.lines()))

    def _check(self, lines: list[Any], profile: BoxProfile, privacy: Privacy | None) -> None:
        before = _charged_releases(lines)
        if not before and privacy is not None and self.budget.covers(privacy):
            return
        counts = dict(before)
        asked = BoxProfile(epsilon=profile.epsilon, alpha=profile.alpha)
        counts[asked] = counts.get(asked, 0) + 1
        after = self.budget.spent(list(counts.items()))
        if self.budget.allows(after):
            return
        spent = self.budget.spent(before)
        left = self.budget.left(spent)
        if self.budget.delta:  # sums that are not of epsilons: what is left says little about what may be added
            why = f"is spent; a sample at epsilon = {asked.epsilon!r} would make that {after.epsilon:.6g}"
        else:
            shown, needed = distinguishable_numbers(left, asked.epsilon)
            why = f"is spent and {shown} is left: not enough for a sample at epsilon = {needed}"
        raise BudgetError(
            f"the budget of {self.path} is {self.budget}, of which {spent.epsilon:.6g} {why}; nothing was charged"
        )

    known = OldName("released_sample")


def client_ledger_exists(path: str | Path) -> bool:
    """Whether a ledger is there, or anything else than what the creation of one leaves that is cut short."""
    if not os.path.lexists(path):
        return False
    try:
        return not Book(path, kind=FORMAT, older=OLDER).is_blank()
    except LedgerError:  # whoever opens it says what is wrong with it
        return True


def _note_key(pen: BookWriter, to: Destination | None) -> None:
    note = None if to is None else to.note_of_key(pen.lines[1:])
    if note is not None:
        pen.add(note)


class Binding:
    """The identity that a ledger belongs to, as a digest; None where it has none yet.

    `used`: whether it may have met an identity already: a sample is charged to it, or it is of a format that noted no identities.
    """

    def __init__(self, pen: BookWriter) -> None:
        self._pen = pen
        found = [line[1] for line in pen.lines[1:] if line[0] == _BOUND]
        self.identity: str | None = found[0] if found else None
        self.used = bool(_entries(pen.lines)) or pen.lines[0]["format"] in OLDER

    def bind(self, identity: str) -> None:
        """Note the identity. A ledger is bound once."""
        assert self.identity is None
        self._pen.add([_BOUND, identity])
        self.identity = identity


def refuse_forgetting(ledger: str | Path, identity: str | Path) -> None:
    """Refuse to make a ledger whose device has an identity already: what it said and spent would be forgotten."""
    if os.path.lexists(identity) or os.path.lexists(f"{identity}{PASSING}"):
        raise LedgerError(
            f"ledger {ledger} is missing or empty, but its identity {identity} is there: this device has spent from that ledger. Restore "
            f"{ledger} from a copy. To start anew on purpose remove {identity} as well: collectors will then count this device as another "
            "one, and what it spent before stays spent"
        )


def _stated_budget(terms: Any) -> Budget:
    return Budget(epsilon=float.fromhex(terms["epsilon"]), delta=float.fromhex(terms["delta"]))


def _entries(lines: list[Any]) -> list[Entry]:
    """The charges among the lines of a ledger, numbered from 1."""
    charges = (line for line in lines[1:] if line[0] != _BOUND and not is_note(line))
    return [
        Entry(number, *line[:7], *(Destination.of(to) for to in line[7:]))
        for number, line in enumerate(charges, start=1)
    ]


def _charged_releases(lines: list[Any]) -> list[tuple[BoxProfile, int]]:
    counts: dict[tuple[float, float], int] = {}
    for entry in _entries(lines):
        counts[entry.epsilon, entry.alpha] = counts.get((entry.epsilon, entry.alpha), 0) + 1
    return [(BoxProfile(epsilon=epsilon, alpha=alpha), count) for (epsilon, alpha), count in counts.items()]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
