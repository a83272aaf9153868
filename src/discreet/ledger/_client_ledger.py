"""`Ledger`, the budget, charges and samples of one client, and `Destination`, the collector that a sample was sent to.

A ledger is a book that only grows. Each charge is stored with its sample:

    lock, read and verify  |  is this (agreement, round) there? -> its sample, no charge  |  does the budget allow it? -> else an error
      |  add charge and sample  |  commit, flushed to the disk  |  only now return the sample

A crash before the commit leaves neither charge nor sample, and no sample has left. A crash after it leaves both, and a second call returns
the same sample. The lock is taken before reading, so two processes cannot both spend the same remainder.

Answers depend on (agreement, round) alone. Everything that leaves is a function of one sample for each (agreement, round), charged when it
was drawn. Neither samples nor errors depend on whether the data changed later. (If changed data were drawn anew, two different samples
would prove the change.) New data need a new round. The file contains no data, no digest of data and no key. Clocks decide nothing: charges
are numbered, and their times are only shown.

A sample for a collector is stored with its destination. A collector states its collection, its agreements and its signing key, and may
state anything. The ledger therefore notes the address that was connected to, the key that signed there, and the collection's name at that
time:

    one collector   the same address, or the same signing key (which names its addresses itself)
    its key         the one noted last for the address that was connected to, before anything is sent; a signature that names other
                    addresses says nothing about them
    one question    one collector, one round, and one collection: the same name of it, or an agreement stated to be in it

A sample given to one collector is given to no other. A question with an answer is answered by that sample, never by a fresh one. Answers
then depend on collector, collection and round, all looked up under the lock under which a new sample is charged.

A device also has an identity: a secret in a separate file from which its names are derived. The ledger notes a digest of it once. The two
belong together, and a device that has lost one of them gets an error instead of starting anew.
"""

import math
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet._base import OldName
from discreet._base.labelled import LawLike
from discreet.accounting import BoxProfile, profile_of
from discreet.agreement import Agreement
from discreet.errors import (
    BudgetError,
    CollectorError,
    DiscreetError,
    LedgerError,
    check_callable,
    check_count,
    check_kind,
)
from discreet.families import ContinuousFamily, refuse_bad_laws
from discreet.ledger._book import (
    LATEST_COPY,
    WAIT_SECONDS,
    Book,
    BookWriter,
    Budget,
    Spent,
    numbers_as_distinct_texts,
    utc_timestamp,
)
from discreet.mechanisms import AnyFamily, Client, JointSampler, ReportSampler, Sampler, refuse_non_sampler
from discreet.privacy import Privacy
from discreet.survey import SurveySampler

_KEY = "key"
_LARGEST_NUMBER = (1 << 64) - 1  # of a sample or a report


@dataclass(frozen=True)
class Destination:
    """A collection of one collector, as a ledger notes it.

    Args:
        address: the collector's address, as connected to.
        key: the public key that signs there, 64 hexadecimal digits; None if nothing is signed.
        collection: the id of the agreement that the collection began with, as the collector states it.
        agreements: the agreements of the collection, as the collector states them; not stored.
        trusted: whether the device's owner has named this key, or stated that there is none; not stored.
    """

    address: str
    key: str | None
    collection: str
    agreements: frozenset[str] = field(default=frozenset(), compare=False)
    trusted: bool = field(default=False, compare=False)

    @property
    def document(self) -> dict[str, str | None]:
        """The destination as JSON values."""
        return {"address": self.address, "key": self.key, "collection": self.collection}

    @property
    def as_ledger_line(self) -> list[str | None]:
        """The destination as a line of a ledger."""
        return [self.address, self.key, self.collection]

    @classmethod
    def from_ledger_line(cls, line: Any) -> "Destination | None":
        """The destination in a line of a ledger; None for a sample without one."""
        return None if line is None else cls(*line)

    def is_same_collector_as(self, destination: "Destination | None") -> bool:
        """Whether an earlier sample went to this collector."""
        if destination is None:
            return False
        return destination.address == self.address or (self.key is not None and destination.key == self.key)

    def is_answered_by_earlier_sample(self, destination: "Destination | None", agreement: str) -> bool:
        """Whether an earlier sample under that agreement answers this collection's question in its round."""
        if destination is None or not self.is_same_collector_as(destination):
            return False
        return destination.collection == self.collection or agreement in self.agreements or agreement == self.collection

    def check_key_and_make_key_note(self, lines: Iterable[Any]) -> list[Any] | None:
        """The line to add to a ledger before anything is sent; None if the key is already noted.

        Raises:
            CollectorError: if the key is not the last one noted for the address, unless the device's owner trusts the new one.
        """
        notes = [line for line in lines if is_key_note(line) and self.address in line[2]]
        # earlier versions noted a key for every address that its signature named, so for other collectors' too
        keys = [key for _, key, addresses in notes if addresses == [self.address]]
        last_key = keys[-1] if keys else notes[-1][1] if notes else None
        if last_key is not None and last_key != self.key and not self.trusted:
            change = "signs nothing now" if self.key is None else f"signs with key {self.key} now"
            raise CollectorError(
                f"the collector at {self.address} signed with key {last_key} before, and {change}: nothing was sent. Ask "
                f"its operator through another channel; if the change is intended, name the key to trust, or "
                f"'none': key= (--key)"
            )
        if keys[-1:] == [self.key] or (not notes and self.key is None):
            return None
        return [_KEY, self.key, [self.address]]


def is_key_note(line: Any) -> bool:
    """Whether a line of a ledger notes a collector's key and is not a charge."""
    return isinstance(line, list) and line[0] == _KEY


FORMAT, OLDER = "discreet ledger 3", ("discreet ledger 2",)
IDENTITY = ".identity"  # suffix of a device's identity file, after its ledger's name
PASSING = ".new"  # a second suffix while it is being written
_BOUND = "identity"  # the line with the ledger's identity


@dataclass(frozen=True)
class Entry:
    """One charge.

    Attributes:
        number: its place in the ledger.
        agreement: the id of the agreement.
        round: in which round.
        epsilon: of the release.
        alpha: as in `BoxProfile`.
        sample: the number of the outcome, cell, point or multiset that was released for it, or the report itself.
        time: when.
        place: under an agreement on a continuous family the seed of the point's place within its cell; of several samples drawn at once the
            seed of their order. It is drawn without a look at the data, and kept so that asking again gives the same.
        to: the collector that the sample was drawn for; None where it was drawn for nobody in particular.
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

    def as_released(self, sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler) -> Any:
        """The sample as it was released: an outcome, or a point; a report is a whole number."""
        if isinstance(sampler, (ReportSampler, SurveySampler)):
            return self.sample
        return sampler.points(self.sample, rng=None if self.place is None else np.random.default_rng(self.place))

    spelled = OldName("as_released")


class Ledger:
    """The budget of one client and all that was charged to it. `Ledger.create(path, budget)` once, `Ledger(path)` ever after.

    Args:
        path: of an existing ledger. One that is missing is an error: starting anew would forget what was spent.
        wait: seconds to wait for other processes before giving up.

    Raises:
        LedgerError: for a ledger that is missing or cannot be read.
        DiscreetError: for what is not a path.
    """

    binding = OldName("locked_identity_binding")

    def __init__(self, path: str | Path, *, wait: float = WAIT_SECONDS) -> None:
        self._book = Book(path, kind=FORMAT, wait=wait, older=OLDER)
        try:
            self.path.stat()
        except FileNotFoundError:
            raise LedgerError(
                f"there is no ledger {self.path}; if it was there before, restore {LATEST_COPY}: what was spent stays spent. "
                "A client that has released nothing yet makes one with Ledger.create or: discreet ledger create"
            ) from None
        except (OSError, ValueError):  # the book raises the error that explains it
            pass
        terms = self._book.read_lines()[0]
        self.budget = Budget(epsilon=float.fromhex(terms["epsilon"]), delta=float.fromhex(terms["delta"]))

    @classmethod
    def create(cls, path: str | Path, budget: Budget) -> "Ledger":
        """Create a ledger with that budget. An error if it exists, or if its identity file does."""
        refuse_new_ledger_of_used_identity(path, f"{path}{IDENTITY}")
        Book(path, kind=FORMAT).create({"epsilon": budget.epsilon.hex(), "delta": budget.delta.hex()})
        return cls(path)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._book.path

    def release(
        self,
        sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler,
        p: LawLike | Client,
        *,
        agreement: Agreement,
        round: int = 1,
    ) -> Any:
        """One private sample of this client, charged to the budget. The same agreement and round return the same sample, even if p has
        changed.

        On outcomes, and of reports, the draw takes the same instructions whatever the client holds. Of a `JointSampler` it is all the
        samples that are drawn at once, for one charge. Of a `SurveySampler`, p is the table of this client's rows.
        """
        if isinstance(sampler, SurveySampler):
            rows = sampler.survey.columns.encode(p)
            return self._release_and_charge(
                sampler, lambda: sampler.release_number(rows), agreement=agreement, round=round
            ).sample
        if isinstance(sampler, ReportSampler):
            laws = sampler.family.as_rows(p)
            if laws.ndim != 1:
                raise DiscreetError(
                    f"p holds {math.prod(laws.shape[:-1])} laws; a ledger is one client's, who has one law"
                )
            refuse_bad_laws(laws)
            return self._release_and_charge(
                sampler, lambda: sampler.release_number(laws), agreement=agreement, round=round
            ).sample
        if not isinstance(sampler, JointSampler):
            refuse_non_sampler(sampler)
        client: Any = p
        shape = sampler.carrier.read_clients(client).shape
        if shape:
            raise DiscreetError(
                f"p holds {math.prod(shape)} distributions; a ledger belongs to one client, with one distribution"
            )

        def draw_release_number() -> int:
            if isinstance(sampler, JointSampler):
                return int(sampler.release_number(client))
            return int(sampler.release_number(client, constant_time=sampler.can_draw_in_constant_time))

        return self._release_and_charge(sampler, draw_release_number, agreement=agreement, round=round).as_released(
            sampler
        )

    def release_to(
        self,
        to: Destination,
        sampler: Sampler[AnyFamily] | ReportSampler | SurveySampler,
        draw: Callable[[], int],
        *,
        agreement: Agreement,
        round: int,
    ) -> Entry:
        """The answer to a collector's question: the stored one, perhaps under another agreement, or a new one that is charged.

        Args:
            to: the collector and its collection.
            sampler: the agreed sampler.
            draw: draws the number of an outcome, a cell or a point. It may be called without its result being used.
            agreement: the agreement of a new sample.
            round: the number of the round.

        Returns:
            The charge, with its sample.

        Raises:
            CollectorError: for a collector whose key has changed.
            BudgetError: if the budget does not allow a new sample.
        """
        return self._release_and_charge(sampler, draw, agreement=agreement, round=round, to=to)

    def answer_to(self, to: Destination, round: int) -> Entry | None:
        """The charge that answers this collector's question in this round, or None. Nothing is charged.

        The collector's key is noted: from then on another key at this address is an error until the device's owner trusts it.
        """
        lines = self._book.read_lines()
        if to.check_key_and_make_key_note(lines[1:]) is not None:
            with self._book.using_write_transaction() as writer:
                _note_collector_key(writer, to)
                lines = writer.lines
        return self._find_charge_for_question(lines, agreement="", round=round, to=to)

    def _release_and_charge(
        self,
        sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler,
        draw: Callable[[], int],
        *,
        agreement: Agreement,
        round: int,
        to: Destination | None = None,
    ) -> Entry:
        agreement.check_sampler(sampler)
        round_number = agreement.check_round(round)
        needs_seed = isinstance(sampler, JointSampler) or (
            not isinstance(sampler, SurveySampler) and isinstance(sampler.family, ContinuousFamily)
        )
        return self._find_or_add_charge(
            agreement.id,
            round=round_number,
            profile=profile_of(sampler),
            draw=draw,
            place=secrets.randbits(62) if needs_seed else None,
            privacy=sampler.privacy,
            to=to,
        )

    def released_sample(
        self,
        sampler: Sampler[AnyFamily] | JointSampler | ReportSampler | SurveySampler,
        *,
        agreement: Agreement,
        round: int = 1,
    ) -> Any:
        """The sample released under this agreement in this round, or None. Nothing is drawn or charged.

        Args:
            sampler: the agreed sampler.
            agreement: the agreement it was released under.
            round: the number of the round.

        Returns:
            What `release` returned, and will return again.

        Raises:
            DiscreetError: for another agreement than that on the sampler, and a round that it does not have.
            LedgerError: for a ledger that cannot be read.
        """
        check_kind("agreement", agreement, Agreement, "pass the agreement that the sample was released under")
        agreement.check_sampler(sampler)
        entry = self._find_charge_for_question(
            self._book.read_lines(), agreement=agreement.id, round=agreement.check_round(round), to=None
        )
        return None if entry is None else entry.as_released(sampler)

    def charged_sample(self, agreement: str, *, round: int, profile: BoxProfile, draw: Callable[[], int]) -> int:
        """The sample of this agreement and round: the stored one, or a new one once its charge is durable.

        `draw` may be called without its sample being used or seen.
        """
        check_kind("agreement", agreement, str, "pass the id of the agreement")
        if agreement in (_KEY, _BOUND):
            raise DiscreetError(
                f"agreement = {agreement!r} begins other lines of a ledger; pass the id of the agreement"
            )
        check_kind("profile", profile, BoxProfile, "pass profile_of(sampler)")
        check_callable("draw", draw, "pass a function that draws the number of a sample")
        return self._find_or_add_charge(agreement, round=round, profile=profile, draw=draw).sample

    def _find_or_add_charge(
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
        """The charge for this question: the stored one, or a new one. `privacy`: the promise of one release, if it is known."""
        round = check_count("round", round)
        entry = self._find_charge_for_question(self._book.read_lines(), agreement=agreement, round=round, to=to)
        if entry is not None:
            return entry
        number = check_count("draw()", draw(), least=0, most=_LARGEST_NUMBER)  # outside the lock: it may take long
        with self._book.using_write_transaction() as writer:
            _note_collector_key(writer, to)
            entry = self._find_charge_for_question(writer.lines, agreement=agreement, round=round, to=to)
            if entry is not None:
                return entry
            self._refuse_over_budget(writer.lines, profile, privacy)
            line = [agreement, round, profile.epsilon, profile.alpha, number, utc_timestamp(), place]
            writer.add_line([*line, to.as_ledger_line] if to is not None else line[: 6 if place is None else 7])
            return _entries_from_lines(writer.lines)[-1]

    def _find_charge_for_question(
        self, lines: list[Any], *, agreement: str, round: int, to: Destination | None
    ) -> Entry | None:
        """The charge among these lines that answers a question."""
        entries = _entries_from_lines(lines)
        if to is None:
            matches = (entry for entry in entries if entry.to is None and entry.agreement == agreement)
        else:
            matches = (entry for entry in entries if to.is_answered_by_earlier_sample(entry.to, entry.agreement))
        return next((entry for entry in matches if entry.round == round), None)

    @contextmanager
    def locked_identity_binding(self) -> Iterator["IdentityBinding"]:
        """The identity this ledger belongs to, under its lock: no other process looks or binds meanwhile."""
        with self._book.using_write_transaction() as writer:
            yield IdentityBinding(writer)

    def entries(self) -> list[Entry]:
        """All charges, in the order they were made."""
        return _entries_from_lines(self._book.read_lines())

    def spent(self) -> Spent:
        """The cost of all charges together."""
        return self.budget.spent(_charged_profile_counts(self._book.read_lines()))

    def _refuse_over_budget(self, lines: list[Any], profile: BoxProfile, privacy: Privacy | None) -> None:
        profile_counts = _charged_profile_counts(lines)
        if not profile_counts and privacy is not None and self.budget.covers(privacy):
            return
        counts = dict(profile_counts)
        new_profile = BoxProfile(epsilon=profile.epsilon, alpha=profile.alpha)
        counts[new_profile] = counts.get(new_profile, 0) + 1
        total = self.budget.spent(list(counts.items()))
        if self.budget.allows(total):
            return
        spent = self.budget.spent(profile_counts)
        remainder = self.budget.left(spent)
        if self.budget.delta:  # the sums are not sums of epsilons, so a remainder says little about what may be added
            reason = f"is spent; a sample at epsilon = {new_profile.epsilon!r} would make that {total.epsilon:.6g}"
        else:
            remainder_text, cost_text = numbers_as_distinct_texts(remainder, new_profile.epsilon)
            reason = f"is spent and {remainder_text} is left: not enough for a sample at epsilon = {cost_text}"
        raise BudgetError(
            f"the budget of {self.path} is {self.budget}, of which {spent.epsilon:.6g} {reason}; nothing was charged"
        )

    known = OldName("released_sample")


def client_ledger_exists(path: str | Path) -> bool:
    """Whether a ledger, or anything else, is at this path."""
    return os.path.lexists(path)


def _note_collector_key(writer: BookWriter, to: Destination | None) -> None:
    note = None if to is None else to.check_key_and_make_key_note(writer.lines[1:])
    if note is not None:
        writer.add_line(note)


class IdentityBinding:
    """The digest of the identity that a ledger belongs to, or None.

    `used`: whether the ledger may already have met an identity without noting it, as those of an earlier format have.
    """

    def __init__(self, writer: BookWriter) -> None:
        self._pen = writer
        digests = [line[1] for line in writer.lines[1:] if line[0] == _BOUND]
        self.identity: str | None = digests[0] if digests else None
        self.used = writer.lines[0]["format"] in OLDER

    def bind_identity(self, identity: str) -> None:
        """Note the identity. A ledger is bound once."""
        assert self.identity is None
        self._pen.add_line([_BOUND, identity])
        self.identity = identity


def refuse_new_ledger_of_used_identity(ledger: str | Path, identity: str | Path) -> None:
    """Raise an error if a missing ledger's identity exists: a new ledger would forget what the device sent and spent."""
    if os.path.lexists(identity) or os.path.lexists(f"{identity}{PASSING}"):
        raise LedgerError(
            f"ledger {ledger} is missing or empty, but its identity {identity} is there: this device has spent from that ledger. Restore "
            f"{LATEST_COPY}. To start anew on purpose, remove {identity} as well. Collectors will then count this device as another "
            "one. What it spent before stays spent"
        )


def _entries_from_lines(lines: list[Any]) -> list[Entry]:
    """The charges among the lines of a ledger, numbered from 1."""
    charges = (line for line in lines[1:] if line[0] != _BOUND and not is_key_note(line))
    return [
        Entry(number, *line[:7], *(Destination.from_ledger_line(to) for to in line[7:]))
        for number, line in enumerate(charges, start=1)
    ]


def _charged_profile_counts(lines: list[Any]) -> list[tuple[BoxProfile, int]]:
    counts = Counter((entry.epsilon, entry.alpha) for entry in _entries_from_lines(lines))
    return [(BoxProfile(epsilon=epsilon, alpha=alpha), count) for (epsilon, alpha), count in counts.items()]
