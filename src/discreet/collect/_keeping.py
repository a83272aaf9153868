"""What stores of every kind do alike: agreements as rows, and arrivals held against them before anything is written.

The engine decides by its constraints (a primary key on collection, round and client) what becomes of each arrival; what is here needs no
engine.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._protocol import StatementSignature, read_signature
from discreet.agreement import Agreement, ContinuousTerms
from discreet.audit._bounds import MOST_DRAWS
from discreet.collect._pool import Group, Pool
from discreet.collect._store import DIGEST, Arrival, StoredAgreement, Verdict
from discreet.errors import DiscreetError, StoreError, check_count
from discreet.estimation._binning import line_of

_ROWS = 1 << 16
DAMAGED = "the store is damaged: it counts what cannot be; restore it from a copy"
LEAST_PREFIX = 12  # digits by which an agreement may be called


@dataclass(frozen=True)
class AgreementRow:
    """Where an agreement stands in a store: numbers in place of ids, in tables that are long."""

    number: int
    collection: int
    outcomes: int
    rounds: int

    def check(self, round: int, arrivals: Sequence[Arrival]) -> None:
        """Refuse what no reading of a sample gives: whoever calls has read them under the agreement."""
        check_count("round", round, most=self.rounds)
        for arrival in arrivals:
            if not 0 <= arrival.outcome < self.outcomes:
                raise DiscreetError(f"outcome = {arrival.outcome!r} is not one of the {self.outcomes:,} agreed on")
            if len(arrival.client) != DIGEST or len(arrival.key) != DIGEST:
                raise DiscreetError(f"client and key are digests of {DIGEST} bytes; make them with digest(...)")


def find_agreement_row(known: dict[str, AgreementRow], agreement: str, look: Callable[[], Any]) -> AgreementRow:
    """Where an agreement stands; it never moves, so one look (a row, or None) is enough."""
    if agreement not in known:
        found = look()
        if found is None:
            raise DiscreetError(f"agreement {agreement} is not in the store; add it first")
        known[agreement] = AgreementRow(*found)
    return known[agreement]


def outcome_count(agreement: Agreement) -> int:
    """How many outcomes are counted apart: on a continuous family, the cells that an estimate puts together to bins."""
    if isinstance(agreement.family, ContinuousTerms):
        return line_of(agreement.sampler()).size
    return agreement.domain.size


def agreements_from_rows(rows: Iterable[Sequence[Any]]) -> list[StoredAgreement]:
    """Agreements from rows (collection, follows, text, weights, id, whether gateways' names are apart, key, signature, addresses).

    A text that has another id than its row is damage.
    """
    found = []
    for collection, follows, text, weights, identity, apart, *signed in rows:
        agreement = Agreement.from_json(text)
        if weights is not None:
            agreement = agreement.with_weights(weights)
        if agreement.id != identity:
            raise StoreError(f"agreement {identity} in the store is damaged; restore the store from a copy")
        found.append(StoredAgreement(agreement, collection, follows, bool(apart), _read_signature(*signed)))
    return found


def _read_signature(key: str | None, signature: str, addresses: str) -> StatementSignature | None:
    """The signature in a row, None where there is none; whether it is a good one is for devices to check."""
    if key is None:
        return None
    try:
        found = read_signature({"key": key, "signature": signature, "addresses": json.loads(addresses)})
    except ValueError:
        found = None
    if found is None:
        raise StoreError("a signature in the store is damaged; restore the store from a copy")
    return found


def check_follows(kept: Mapping[str, str | None], agreement: str, follows: str | None) -> bool:
    """Whether the agreement is new among those that are kept, {id: which it follows}; what cannot be is refused."""
    if agreement in kept:
        if kept[agreement] != follows:
            raise DiscreetError(
                f"agreement {agreement} is in the store already, and follows {kept[agreement] or 'none'}, not {follows or 'none'}; "
                "whose samples are counted together cannot be changed"
            )
        return False
    if follows is not None and follows not in kept:
        raise DiscreetError(
            f"agreement {follows}, which is to be followed, is not in the store; collect under it first"
        )
    return True


def id_with_prefix(agreements: Iterable[str], prefix: str) -> str | None:
    """The one of these ids that begins so; None if none or several do, or if it is too short to be meant."""
    found = [each for each in agreements if each.startswith(prefix)]
    return found[0] if len(found) == 1 and len(prefix) >= LEAST_PREFIX else None


def choose_agreement(kept: Sequence[StoredAgreement], prefix: str | None) -> StoredAgreement:
    """The agreement of that id, or whose id alone begins so; by default the newest."""
    if not kept:
        raise DiscreetError("the store holds no agreement yet; collect under one first")
    if prefix is None:
        return kept[-1]
    by_id = {each.agreement.id: each for each in kept}
    found = id_with_prefix(by_id, prefix) if isinstance(prefix, str) else None
    if found is None:
        shown = ", ".join(each[:LEAST_PREFIX] for each in by_id)
        raise DiscreetError(
            f"agreement = {prefix!r} is not the id of one in the store, nor {LEAST_PREFIX} or more of its first digits; there are {shown}"
        )
    return by_id[found]


def new_outcomes(arrivals: Sequence[Arrival], verdicts: Sequence[Verdict]) -> list[int]:
    """The outcomes of those that are counted."""
    return [arrival.outcome for arrival, one in zip(arrivals, verdicts, strict=True) if one is Verdict.COUNTED]


def add_waiting(counts: NDArray[np.int64], pools: Iterable[Pool], group: Group) -> NDArray[np.int64]:
    """The counts of an agreement in a round, and what waits in the pools besides."""
    for pool in pools:
        waiting = np.array(pool.get(group, []), dtype=np.int64)
        if waiting.min(initial=0) < 0 or waiting.max(initial=0) >= len(counts):
            raise StoreError(DAMAGED)
        np.add.at(counts, waiting, 1)
    return counts


def counts_from(cursor: Any, outcomes: int) -> NDArray[np.int64]:
    """Counts of all outcomes, from rows (outcome, how many), a part of them at a time."""
    counts = np.zeros(outcomes, dtype=np.int64)
    while rows := cursor.fetchmany(_ROWS):
        read = np.array(rows, dtype=np.int64)
        if read[:, 0].min() < 0 or read[:, 0].max() >= outcomes:
            raise StoreError(DAMAGED)
        counts[read[:, 0]] = read[:, 1]
    return check_stored_counts(counts)


def check_stored_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Counts as they were read, if they can be."""
    if (counts < 0).any() or counts.sum(dtype=np.float64) > MOST_DRAWS:
        raise StoreError(DAMAGED)
    return counts
