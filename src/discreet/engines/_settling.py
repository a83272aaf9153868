"""A release that a population's ledger has a say in: all is drawn, then settled at once, and only then may anything leave.

The ledger knows clients by a keyed digest of their names. The kernel computes it: the words of a client that holds nothing, under
a key of the ledger's own. The order of samples that are published without their clients is made likewise, from the round and
the name alone: were it made from the data, a round that is asked for again on changed data would come in another order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from discreet._tables._coding import Coding
from discreet.domain import Interval
from discreet.engines._kernel import Draws, Kernel
from discreet.engines._request import Job
from discreet.families import Simplex
from discreet.ledger._population import PopulationLedger, Round, Settlement
from discreet.ledger._segments import ClientDigests
from discreet.mechanisms import OptimalSampler
from discreet.release._clients import ClientColumns
from discreet.release._keyed import RunKey

if TYPE_CHECKING:
    from discreet.engines._parts import ClientGroup

_CELLS = Interval(0.0, 1.0, cells=2)  # any domain whose draw also gives a place within a cell


@dataclass(frozen=True)
class UnsettledGroup:
    """A group of clients: what was drawn for them, and who they are to the ledger."""

    clients: pa.Array
    drawn: Draws
    names: ClientDigests


class LedgerSettlement:
    """What a release asks of a ledger; `known` and `over_budget` count clients once it is settled."""

    def __init__(
        self, job: Job, ledger: PopulationLedger, round_number: int, *, over_budget: str, ordered: bool
    ) -> None:
        self._ledger, self._over_budget = ledger, over_budget
        self._round = Round(
            agreement=job.agreement.id,
            question=job.question,
            number=round_number,
            epsilon=job.agreement.epsilon,
        )
        self._kernel = Kernel(job)
        self._naming = _word_kernel(job, ledger.names_key())
        self._ordering = _word_kernel(job, ledger.order_key(self._round)) if ordered else None
        self.known = self.over_budget = 0

    def draw_group(self, group: "ClientGroup") -> UnsettledGroup:
        """Draw for a group of clients. Nothing of it may leave yet."""
        drawn, empty = self._kernel.draw(group.clients), _clients_without_records(group.clients)
        if self._ordering is not None:
            drawn = replace(drawn, order=self._ordering.draw(empty, ordered=True).order)
        words = self._naming.draw(empty, ordered=True)
        return UnsettledGroup(
            group.names, drawn, ClientDigests(words.order, (words.within * 2.0**53).astype(np.uint64))
        )

    def settle_parts(self, parts: Sequence[Sequence[UnsettledGroup]]) -> Iterator[list[tuple[pa.Array, Draws]]]:
        """Charge all groups of all parts at once, durably; then the samples that may leave, part by part."""
        groups = [group for part in parts for group in part]
        if not groups:
            return
        found = self._ledger.settle(
            self._round,
            ClientDigests(
                *(np.concatenate([getattr(group.names, word) for group in groups]) for word in ("first", "second"))
            ),
            np.concatenate([group.drawn.outcomes for group in groups]),
            np.concatenate([group.drawn.within for group in groups]),
            over_budget=self._over_budget,
        )
        self.known, self.over_budget = found.known, found.over_budget
        start = 0
        for part in parts:
            kept = []
            for group in part:
                kept.append(_allowed_samples(group, found, slice(start, start + len(group.clients))))
                start += len(group.clients)
            yield kept


def _allowed_samples(group: UnsettledGroup, found: Settlement, here: slice) -> tuple[pa.Array, Draws]:
    """The clients of a group that may leave, with the samples that they leave with."""
    kept = found.kept[here]
    drawn = replace(
        group.drawn,
        outcomes=found.outcomes[here][kept],
        order=group.drawn.order[kept] if group.drawn.order.size else group.drawn.order,
        within=found.within[here][kept] if found.within.size else found.within,
    )
    return group.clients.filter(pl.Series(kept).to_arrow()), drawn


def _word_kernel(job: Job, key: RunKey) -> Kernel:
    reading = replace(job.reading, coding=Coding(_CELLS))
    return Kernel(replace(job, key=key, reading=reading, sampler=OptimalSampler(Simplex(_CELLS), epsilon=1.0)))


def _clients_without_records(clients: ClientColumns) -> ClientColumns:
    """The same clients without any records."""
    held = {name: getattr(clients, name)[:0] for name in clients._fields[clients._fields.index("outcomes") :]}
    ends = np.zeros_like(clients.ends)
    ends.setflags(write=False)
    return ClientColumns(**{**clients._asdict(), "ends": ends, **held})
