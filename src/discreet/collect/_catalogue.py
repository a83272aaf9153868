"""The agreements of a store, each with how its samples are read: those of this process, and those that another one adds meanwhile."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from discreet._protocol import SAMPLES
from discreet._tables._coding import Coding
from discreet.agreement import Agreement, ContinuousTerms
from discreet.collect._keeping import LEAST_PREFIX, id_with_prefix
from discreet.collect._outcomes import Outcomes
from discreet.collect._problems import RequestProblem, unprocessable
from discreet.collect._store import Arrival, Store, StoredAgreement, digest
from discreet.errors import DiscreetError, StoreError
from discreet.estimation._binning import cells_as_bins
from discreet.estimation._counting import LARGEST, reference_on
from discreet.estimation._tallies import coding_and_sampler
from discreet.mechanisms._sampler import AnyFamily, Sampler

_REST = 50.0  # times as long as a look took, until the next: agreements can be large
FRESH_SECONDS = 2.0  # for which the list of agreements is taken to be that of the store


@dataclass(frozen=True)
class CollectedAgreement:
    """An agreement of a store. `rounds`: those in which samples are taken now."""

    kept: StoredAgreement
    coding: Coding
    sampler: Sampler[AnyFamily]
    rounds: tuple[int, ...]

    @property
    def agreement(self) -> Agreement:
        """What was agreed on."""
        return self.kept.agreement

    @property
    def id(self) -> str:
        """Of the agreement."""
        return self.kept.agreement.id

    @cached_property
    def text(self) -> bytes:
        """The agreement as its file holds it: made once, however often it is asked for."""
        return self.agreement.text.encode() + b"\n"

    @cached_property
    def weights(self) -> bytes | None:
        """The weights beside it, where they are too many for it."""
        return self.agreement.family.beside

    @cached_property
    def outcomes(self) -> Outcomes:
        """What samples have to be."""
        return Outcomes(self.coding)

    @property
    def round(self) -> int:
        """The newest of the rounds that are open, or that were agreed on."""
        return self.rounds[-1] if self.rounds else self.agreement.rounds

    def check_open(self, round_number: int) -> None:
        """Refuse a round in which no samples are taken."""
        if round_number not in self.rounds:
            said = ", ".join(map(str, self.rounds)) or "none"
            raise unprocessable(f"round is not one that is open: of this agreement they are {said}")

    def arrivals(
        self, round_number: int, clients: Sequence[str], keys: Sequence[str], outcomes: Any, gateway: str | None = None
    ) -> list[Arrival]:
        """What a store counts: digests in place of names and keys. `gateway`: the id of the one that gave the names."""
        place: tuple[str, ...] = ("discreet speaker", self.kept.collection, str(round_number))
        if gateway is not None and self.kept.apart:
            place = ("discreet speaker of a gateway", self.kept.collection, str(round_number), gateway)
        return [
            Arrival(digest(*place, client), digest("discreet sent", key), outcome)
            for client, key, outcome in zip(clients, keys, outcomes.tolist(), strict=True)
        ]


def collectable(agreement: Agreement, domain: Any = None) -> tuple[Agreement, Coding, Sampler[AnyFamily]]:
    """The agreement with its labels, how samples are read, and the sampler; refused if samples of it cannot be counted or estimated."""
    coding, sampler = coding_and_sampler(agreement, domain)
    if coding.size > LARGEST:
        raise DiscreetError(f"the agreement has {coding.size:,} outcomes; at most {LARGEST:,} can be estimated")
    if isinstance(agreement.family, ContinuousTerms):
        cells_as_bins(sampler)
        return agreement, coding, sampler
    reference_on(coding.domain, sampler.reference)
    return replace(agreement, family=agreement.family.on(coding.domain)), coding, sampler


class Catalogue:
    """What is collected in a store.

    Args:
        store: where.
        rounds: those in which samples are taken, of agreements that have so many.
    """

    def __init__(self, store: Store, rounds: Iterable[int]) -> None:
        self._store = store
        self._rounds = tuple(sorted(set(rounds)))
        self._all: dict[str, CollectedAgreement] = {}
        self._stale = 0.0  # when the store is to be looked at again
        self.read(strict=True)

    @property
    def all(self) -> list[CollectedAgreement]:
        """Every agreement, in the order they came."""
        return list(self._all.values())

    def read(self, *, strict: bool = False) -> None:
        """Read what the store holds by now; `strict`: refuse it if it holds what cannot be collected, else leave that out."""
        began = time.monotonic()
        found = {}
        for kept in self._store.agreements():
            known = self._all.get(kept.agreement.id)
            if known is None:
                try:
                    _, coding, sampler = collectable(kept.agreement)
                except DiscreetError:
                    if strict:
                        raise
                    continue
                rounds = tuple(number for number in self._rounds if number <= kept.agreement.rounds)
                known = CollectedAgreement(kept, coding, sampler, rounds)
            elif known.kept.signed != kept.signed:
                known = replace(known, kept=kept)
            found[known.id] = known
        now = time.monotonic()
        self._all, self._stale = found, now + max(FRESH_SECONDS, _REST * (now - began))

    async def _fresh(self) -> None:
        if time.monotonic() > self._stale:
            self._stale = time.monotonic() + FRESH_SECONDS
            with suppress(StoreError):  # what was there is there
                await asyncio.get_running_loop().run_in_executor(None, self.read)

    async def find_agreement(self, prefix: str | None) -> CollectedAgreement:
        """The agreement of that id, or whose id alone begins so; by default the newest."""
        await self._fresh()
        if prefix is None:
            if not self._all:
                raise RequestProblem(404, "no agreement is collected here yet")
            return self.all[-1]
        found = id_with_prefix(self._all, prefix)
        if found is not None:
            return self._all[found]
        raise RequestProblem(
            404,
            f"agreement is not the id of one that is collected here, nor {LEAST_PREFIX} or more of its first digits",
        )

    async def of(self, agreement: str) -> CollectedAgreement:
        """The agreement of samples."""
        if agreement not in self._all:
            await self._fresh()
        found = self._all.get(agreement)
        if found is None:
            raise unprocessable(
                f"agreement is not one that is collected here; {SAMPLES} takes those that /collection lists"
            )
        return found

    def following(self, collection: str) -> list[CollectedAgreement]:
        """The agreements of a collection, in the order they came."""
        return [each for each in self._all.values() if each.kept.collection == collection]
