"""The atoms are points X_1, ..., X_N drawn from h independently of the client, of reference mass 1/N, with p_i proportional to p(X_i)/h(X_i).

Any dimension, no normalisation. With fresh points for every release the law of the released point is within O(1/N) of Q*. With a public
seed all clients share the same points, whose luck does not average out: shares of regions then depart from those of Q* by O(1/sqrt N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from discreet.domain._canonical import digest
from discreet.errors import DiscreetError, OutsideFamilyWarning, check_count, warn_caller
from discreet.families._outsiders import Outsiders
from discreet.families._seen import NodeSummary, outsiders_of, sampling_deviation
from discreet.mechanisms._carriers._carrier import Floats, Integers
from discreet.mechanisms._carriers._densities import Densities, DensityAtoms

DEFAULT_POINTS = 1 << 16
_POINTS_IN_A_BLOCK = 4096


@dataclass(frozen=True)
class Points:
    """Release by points, in any dimension. `count`: how many. `seed`: a public seed that everybody shares.

    Without a seed every release draws fresh points. With one, client and curator know the same points (on the same numpy version) and the
    client needs to send only a number. The law of a sample then departs from Q* by O(1/sqrt(count)), without a seed by O(1/count). A seed
    must be chosen before the data are looked at, and is no secret.

    Args:
        count: how many points.
        seed: a public seed, at least 0.

    Raises:
        DiscreetError: for numbers out of range.
    """

    count: int = DEFAULT_POINTS
    seed: int | None = None

    def __post_init__(self) -> None:
        check_count("count", self.count, 2)
        if self.seed is not None:
            check_count("seed", self.seed, 0)


@dataclass(frozen=True, eq=False)
class LawsOnPoints:
    """Clients on points that can be drawn again from their seed."""

    rows: Floats
    carrier: PointAtoms
    seed: int

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        return self.carrier.at(numbers, self.seed)


@final
@dataclass(frozen=True, eq=False)
class PointAtoms(DensityAtoms):
    """Points drawn from the reference of one family, in blocks that can be drawn again."""

    how: Points

    @property
    def size(self) -> int:
        """Number of points."""
        return self.how.count

    @property
    def reference(self) -> float:
        """1/N each."""
        return 1.0 / self.how.count

    @cached_property
    def digest(self) -> str:
        """Of the points of the public seed."""
        assert self.how.seed is not None
        blocks = (self.block(number, self.how.seed) for number in range(math.ceil(self.size / _POINTS_IN_A_BLOCK)))
        return digest(b"".join(block.astype("<f4").tobytes() for block in blocks))

    def block(self, number: int, seed: int) -> Floats:
        """The points from number * 4096 on."""
        count = min(_POINTS_IN_A_BLOCK, self.how.count - number * _POINTS_IN_A_BLOCK)
        return self.family.draw(count, np.random.default_rng([seed, number]))

    def samples(self, numbers: Integers, rng: np.random.Generator) -> Floats:
        """The points of the given numbers under the public seed."""
        assert self.how.seed is not None
        return self.at(numbers, self.how.seed)

    def at(self, numbers: Integers, seed: int) -> Floats:
        """The points of the given numbers: (n, dim)."""
        out = np.empty((len(numbers), self.family.dim))
        for number in np.unique(numbers // _POINTS_IN_A_BLOCK):
            rows = numbers // _POINTS_IN_A_BLOCK == number
            out[rows] = self.block(int(number), seed)[numbers[rows] % _POINTS_IN_A_BLOCK]
        return out

    def put(self, clients: Densities) -> tuple[LawsOnPoints, Outsiders | None]:
        """p_i proportional to p(X_i)/h(X_i); uniform for a client that none of the points can see."""
        seed = (
            int.from_bytes(np.random.SeedSequence().generate_state(4).tobytes())
            if self.how.seed is None
            else self.how.seed
        )
        log_ratio = np.empty((len(clients), self.how.count))
        for number in range(math.ceil(self.how.count / _POINTS_IN_A_BLOCK)):
            x = self.block(number, seed)
            columns = slice(number * _POINTS_IN_A_BLOCK, number * _POINTS_IN_A_BLOCK + len(x))
            log_reference = self.family.log_reference(x)
            for row, p in enumerate(clients):
                log_ratio[row, columns] = p.log_density(x) - log_reference
        shift, smallest = log_ratio.max(axis=1), log_ratio.min(axis=1)
        seen = np.isfinite(shift)
        if not seen.all():
            warn_caller(
                f"{int((~seen).sum())} of {len(clients)} clients are 0 at each of the {self.how.count} points: what is released for "
                "them is a draw of the reference; take more points, a family nearer to the clients, or (where a density underflows) "
                "family.law(log_density=...)",
                OutsideFamilyWarning,
            )
        rows = np.exp(log_ratio - np.where(seen, shift, 0.0)[:, None])
        rows[~seen] = 1.0
        total = rows.sum(axis=1)
        of_points = NodeSummary(
            (shift + np.log(total / self.size))[seen],
            smallest[seen],
            shift[seen],
            sampling_deviation(self.family.bounds, self.size),
        )
        visible = [p for p, held in zip(clients, seen, strict=True) if held]
        outsiders = outsiders_of(self.family, visible, of_points, self.whose)
        if outsiders is not None:
            numbers = np.flatnonzero(seen)[list(outsiders.numbers)]
            outsiders = replace(outsiders, numbers=numbers.tolist(), clients=len(clients))
        return LawsOnPoints(rows / total[:, None], self, seed), outsiders

    def check_shared(self, method: str) -> None:
        if self.how.seed is None:
            raise DiscreetError("fresh points are known to the client alone; give everybody Points(seed=...)")
