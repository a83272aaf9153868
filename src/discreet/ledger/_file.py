"""The ledger of one client: its budget and its charges, each with its sample, in a book that only grows.

    lock, read and verify | is this (agreement, round) there? -> its sample, no charge | does the budget allow it? -> else refuse
                          | add charge and sample | commit, flushed to the disk | only now return the sample

So a crash before the commit leaves neither, and no sample has left; a crash after it leaves both, and asking again returns
the same sample. The lock is taken before anything is read, so that processes cannot both spend what is left once.

Answers depend on (agreement, round) alone. Whatever is asked, and however often, what leaves is a function of one sample for
each (agreement, round), each charged when it was drawn, and of nothing else of the data: not of whether they have changed since,
and neither does a refusal. (Were changed data drawn anew, two samples that differ would prove that the data do.) New data are
a new round. So no data, no digest of them and no key are in the file. No clock decides anything: charges are numbered, their
times are only shown.
"""

import math
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from discreet._labelled import LawLike
from discreet.accounting import BoxProfile, profile_of
from discreet.agreement import Agreement
from discreet.errors import BudgetError, DiscreetError, LedgerError, check_count
from discreet.families import ContinuousFamily
from discreet.ledger._book import WAIT_SECONDS, Book
from discreet.ledger._budget import Budget, Spent, told_apart
from discreet.mechanisms._sampler import AnyFamily, Client, Sampler, check_sampler
from discreet.privacy import Privacy

FORMAT = "discreet ledger 2"


@dataclass(frozen=True)
class Entry:
    """One charge: `sample` is the number of the outcome, cell or point that was released for it.

    Under an agreement on a continuous family `place` is the seed of the point's place within its cell: drawn without a look at the data,
    and kept so that asking again gives the same point.
    """

    number: int
    agreement: str
    round: int
    epsilon: float
    alpha: float
    sample: int
    time: str
    place: int | None = None


class Ledger:
    """The budget of one client and all that was charged to it. `Ledger.create(path, budget)` once, `Ledger(path)` ever after."""

    def __init__(self, path: str | Path, *, wait: float = WAIT_SECONDS) -> None:
        """An existing ledger. One that is missing is an error: starting anew would forget what was spent.

        `wait`: seconds to wait for other processes before giving up.
        """
        self._book = Book(path, kind=FORMAT, wait=wait)
        try:
            self.path.stat()
        except FileNotFoundError:
            raise LedgerError(
                f"there is no ledger {self.path}; make one with Ledger.create or: discreet ledger create"
            ) from None
        except (OSError, ValueError):  # which the book explains
            pass
        self.budget = _budget(self._book.lines()[0])

    @classmethod
    def create(cls, path: str | Path, budget: Budget) -> "Ledger":
        """A new ledger with that budget. An existing one is never replaced."""
        Book(path, kind=FORMAT).create({"epsilon": budget.epsilon.hex(), "delta": budget.delta.hex()})
        return cls(path)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._book.path

    def release(
        self,
        sampler: Sampler[AnyFamily],
        p: LawLike | Client,
        *,
        agreement: Agreement,
        round: int = 1,
    ) -> Any:
        """One private sample of this client, paid for. The same agreement and round return the same sample, whatever p is by then."""
        check_sampler(sampler)
        shape = sampler.carrier.read(p).shape
        if shape:
            raise DiscreetError(f"p holds {math.prod(shape)} laws; a ledger is one client's, who has one law")
        agreement.check_sampler(sampler)
        agreement.check_round(round)

        def draw() -> tuple[int, int | None]:
            within = secrets.randbits(62) if isinstance(sampler.family, ContinuousFamily) else None
            return int(sampler.release_number(p)), within

        number, place = self._charged(
            agreement.id, round=round, profile=profile_of(sampler), draw=draw, privacy=sampler.privacy
        )
        return _spelled(sampler, number, place)

    def known(self, sampler: Sampler[AnyFamily], *, agreement: Agreement, round: int = 1) -> Any:
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
        found = _sample(self._book.lines(), (agreement.id, agreement.check_round(round)))
        return None if found is None else _spelled(sampler, *found)

    def charged_sample(self, agreement: str, *, round: int, profile: BoxProfile, draw: Callable[[], int]) -> int:
        """The sample of this agreement and round: the one already paid for, or a new one once its charge is durable.

        `draw` may be called although its sample is then not used (and never seen by anybody).
        """
        return self._charged(agreement, round=round, profile=profile, draw=lambda: (int(draw()), None))[0]

    def _charged(
        self,
        agreement: str,
        *,
        round: int,
        profile: BoxProfile,
        draw: Callable[[], tuple[int, int | None]],
        privacy: Privacy | None = None,
    ) -> tuple[int, int | None]:
        """The sample, and the seed of its place where it has one. `privacy`: what one release promises, if that is known."""
        key = (agreement, check_count("round", round))
        known = _sample(self._book.lines(), key)
        if known is not None:
            return known
        number, place = draw()  # outside the lock: it may take long
        with self._book.writing() as pen:
            known = _sample(pen.lines, key)
            if known is not None:
                return known
            self._check(pen.lines, profile, privacy)
            pen.add([*key, profile.epsilon, profile.alpha, number, _now(), *([] if place is None else [place])])
        return number, place

    def entries(self) -> list[Entry]:
        """All charges, in the order they were made."""
        return [Entry(number, *line) for number, line in enumerate(self._book.lines()) if number]

    def spent(self) -> Spent:
        """What all charges together cost."""
        return self.budget.spent(_releases(self._book.lines()))

    def _check(self, lines: list[Any], profile: BoxProfile, privacy: Privacy | None) -> None:
        before = _releases(lines)
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
            shown, needed = told_apart(left, asked.epsilon)
            why = f"is spent and {shown} is left: not enough for a sample at epsilon = {needed}"
        raise BudgetError(
            f"the budget of {self.path} is {self.budget}, of which {spent.epsilon:.6g} {why}; nothing was charged"
        )


def is_made(path: str | Path) -> bool:
    """Whether a ledger is there, or anything else than what the creation of one leaves that is cut short."""
    if not os.path.lexists(path):
        return False
    try:
        return not Book(path, kind=FORMAT).is_blank()
    except LedgerError:  # whoever opens it says what is wrong with it
        return True


def _spelled(sampler: Sampler[AnyFamily], number: int, place: int | None) -> Any:
    return sampler.points(number, rng=None if place is None else np.random.default_rng(place))


def _budget(terms: Any) -> Budget:
    return Budget(epsilon=float.fromhex(terms["epsilon"]), delta=float.fromhex(terms["delta"]))


def _sample(lines: list[Any], key: tuple[str, int]) -> tuple[int, int | None] | None:
    found = next((Entry(0, *line) for line in lines[1:] if (line[0], line[1]) == key), None)
    return None if found is None else (int(found.sample), found.place)


def _releases(lines: list[Any]) -> list[tuple[BoxProfile, int]]:
    counts: dict[tuple[float, float], int] = {}
    for _, _, epsilon, alpha, *_ in lines[1:]:
        counts[epsilon, alpha] = counts.get((epsilon, alpha), 0) + 1
    return [(BoxProfile(epsilon=epsilon, alpha=alpha), count) for (epsilon, alpha), count in counts.items()]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
