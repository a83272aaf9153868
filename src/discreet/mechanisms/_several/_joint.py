"""J samples of one client that are epsilon-LDP together: one draw from the box around mu^J, on multisets.

Let b be the floor of the optimal box at eps/J, so that B = e^(eps/J) b is its ceiling. The joint box is

    b^J mu^J  <=  Q  <=  e^eps b^J mu^J        on sequences of J outcomes,

and a client's P^J is projected onto it. Any two laws in it are eps-LDP, whatever the client holds.

Theorem. For every client and every f-divergence the projection is at least as close to P^J as J independent draws at eps/J are.
Proof. These have the law q(x_1) ... q(x_J) with b mu <= q <= B mu, which lies in the joint box, and the projection of P^J is the nearest
law there for every f at once [paper, Prop. C.8].   QED

The worst client of all is sure of the rarest outcome, and has the divergence R_f = t f(1/t) + (1 - t) f(0) with t = min(B^J mu0^J,
1 - b^J (1 - mu0^J)): no law on multisets has a larger one (`discreet.design._floors`, T2: the least reference mass decides, and that
of a multiset is least for J times the rarest outcome), and that client's is a product law. Where B^J mu0^J is the smaller of the two, as
on the simplex, that is as bad as J draws at eps/J: what is gained is gained by everybody else. Other floors serve the worst better. The
best for given clients is a design on the multisets, which is handed over as `band`.

Where a client holds so few outcomes that all multisets of them fit at their ceiling, no divergence says where the rest of the mass goes: the
client holds nothing there. It goes to multisets with as many outcomes of the client's as can be, so that a single sample looks like it too:
P is then taken as P + t mu for a tiny t, whose projection has the same values on what the client holds (but for
multisets so rare that t mu, about 1e-18, is more than the client's mass there).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import divergences, release
from discreet._labelled import LawLike
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_count
from discreet.families import Band, ContinuousFamily, FiniteFamily, Simplex
from discreet.families._kinds import check_family
from discreet.families._laws import check_laws
from discreet.mechanisms._carriers._outcomes import OutcomeCarrier
from discreet.mechanisms._several._multisets import SAMPLES_ARE, Multisets
from discreet.privacy import Privacy, Pure, promised
from discreet.projection import Box
from discreet.release import Lattice, SystemEntropy
from discreet.tradeoff import Constants, Risk, optimal_constants, warn_of_little

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rng = np.random.Generator | None
_TINY = 1e-18  # of the reference, in clients who hold little
_LEAST_KEPT = 1e-300
_ENTRIES = 1 << 22  # of laws on multisets that are held at once


class JointSampler:
    """Several samples of one client that are epsilon-LDP together, each client's drawn at once.

    For every client it is at least as close to so many independent draws as samples at an equal share of the budget each. `release` of an
    `OptimalSampler` with `size=` uses it where the multisets of outcomes can be listed.

    Args:
        family: who the clients may be: `Simplex(...)` or a `Band(...)`.
        samples: how many samples of each client.
        epsilon: the budget of all of them together.
        privacy: `Pure(epsilon)` in place of epsilon.
        band: a `Band` on the multisets in place of the product of the family's reference, such as
            `design(Simplex(len(joint.multisets)), epsilon=..., clients=joint.laws(examples)).family`.

    Raises:
        DiscreetError: for a family that is not finite, more samples than can be drawn jointly, a notion other than pure epsilon.

    Example:
        >>> joint = JointSampler(Simplex(["red", "green", "blue"]), samples=3, epsilon=2.0)
        >>> three = joint.release([0.7, 0.2, 0.1])
    """

    def __init__(
        self,
        family: FiniteFamily,
        *,
        samples: int,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        band: Band | None = None,
    ) -> None:
        check_family(family)
        if isinstance(family, ContinuousFamily):
            raise DiscreetError(f"family = {family!r} is continuous; a joint draw is for finitely many outcomes")
        notion = promised(epsilon, privacy)
        if not isinstance(notion, Pure):
            raise DiscreetError(
                f"privacy = {notion!r}: a joint draw is for pure epsilon; OptimalSampler(..., privacy=...).release(p, size=...) draws one by "
                "one with a share of it each"
            )
        self._family, self._privacy = family, notion
        self._multisets = Multisets(family.size, check_count("samples", samples, fix=SAMPLES_ARE))
        self._carrier = OutcomeCarrier(family)
        if band is not None and not (isinstance(band, Band) and band.size == len(self._multisets)):
            raise DiscreetError(f"band = {band!r} is not a Band on the {len(self._multisets):,} multisets")
        self._band = band
        warn_of_little(notion)

    @property
    def family(self) -> FiniteFamily:
        """Who the clients may be."""
        return self._family

    @property
    def samples(self) -> int:
        """How many samples of each client are released."""
        return self._multisets.samples

    @property
    def privacy(self) -> Pure:
        """What all samples of a client together promise."""
        return self._privacy

    @property
    def epsilon(self) -> float:
        """The budget of all samples of a client together."""
        return self._privacy.epsilon

    @property
    def multisets(self) -> Multisets:
        """What is really drawn: multisets of outcomes, whose order is then chosen at random."""
        return self._multisets

    @cached_property
    def reference(self) -> float | Floats:
        """mu of every multiset."""
        if self._band is not None:
            return self._band.reference
        rows = np.broadcast_to(self.family.reference, self.family.size).astype(np.float64)
        return np.asarray(self.multisets.laws(rows[None, :])[0])

    @cached_property
    def constants(self) -> Constants:
        """The constants of the joint box: b is that of one draw at an equal share, to the power of the samples."""
        if self._band is not None:
            return optimal_constants(self._band.bounds, self.epsilon)
        one = optimal_constants(self.family.bounds, self.epsilon / self.samples)
        b, top = one.b**self.samples, _power(one.B, self.samples)
        alpha = (1.0 - b) / (top - b) if top > b else 1.0
        return Constants(alpha, b, top, 0.0, math.inf, 0.0, 1.0, math.inf)

    @cached_property
    def box(self) -> Box:
        """The joint box on multisets, in floating point."""
        return Box.around(self.reference, len(self.multisets), self.constants, self.epsilon)

    @cached_property
    def lattice(self) -> Lattice:
        """The same box in integers: what the guarantee rests on."""
        return Lattice.keeping(self.box, self.privacy)

    def laws(self, p: LawLike) -> Floats:
        """What a client holds, as the law of so many independent draws on multisets.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., multisets).

        Raises:
            DiscreetError: for what is no law.
        """
        given = self._carrier.read(p)
        found = [self.multisets.laws(rows) for rows in self._blocks(given.clients)]
        return np.concatenate(found).reshape(*given.shape, len(self.multisets))

    def output(self, p: LawLike) -> Floats:
        """The law Q(.|P) on multisets that the samples are drawn from.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., multisets); `multisets.members` says which they are.

        Raises:
            DiscreetError: for what is no law.
        """
        given = self._carrier.read(p)
        found = [self.box.project(self._told(rows)) for rows in self._blocks(given.clients)]
        return np.concatenate(found).reshape(*given.shape, len(self.multisets))

    def each(self, p: LawLike) -> Floats:
        """The law of any single one of the samples.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., k).

        Raises:
            DiscreetError: for what is no law.
        """
        found = self.output(p)
        return self.multisets.each(found.reshape(-1, len(self.multisets))).reshape(*found.shape[:-1], self.family.size)

    def weights(self, p: LawLike) -> Integers:
        """The law in the integers that multisets are really drawn with: each row sums to 2^62, and for any two clients whatever every
        entry is at most e^epsilon times the other's.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Whole numbers (..., multisets).

        Raises:
            DiscreetError: for what is no law.
        """
        given = self._carrier.read(p)
        found = [release.weights(self.lattice, self._told(rows), None) for rows in self._blocks(given.clients)]
        return np.concatenate(found).reshape(*given.shape, len(self.multisets))

    def release(self, p: LawLike, *, rng: Rng = None) -> NDArray[Any]:
        """The samples of each client: outcome numbers, or their labels. All samples of a client together spend epsilon, once.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
            rng: a seeded generator, for experiments; then it is NOT private, and warns so.

        Returns:
            An array (..., samples), in an order that says nothing.

        Raises:
            DiscreetError: for what is no law, before anything is drawn.
        """
        randomness, order = SystemEntropy() if rng is None else release.seeded(rng), release.generator(rng)
        given = self._carrier.read(p)
        found = [
            release.outcomes(self.lattice, self._told(rows), None, randomness.integers(len(rows)))
            for rows in self._blocks(given.clients)
        ]
        drawn = self.multisets.sequences(np.concatenate(found), order)
        return np.asarray(self._carrier.spelled(drawn, (*given.shape, self.samples)))

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The largest divergence from the law of so many independent draws of a client to that of what is released for it.

        Over every client there is, which is exact where the family holds them all; for a narrower one it is an upper bound. It is never
        called tight: other floors serve the worst client better.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        f, b, top = divergences.divergence(divergence), self.constants.b, self.constants.B
        least = float(np.min(self.reference))
        kept = min(top * least, 1.0 - b + b * least, 1.0)
        if kept < _LEAST_KEPT:  # a multiset so rare that it is as good as never released
            return Risk(f.maximum, tight=False, attained=False)
        everybody = isinstance(self.family, Simplex) or (isinstance(self.family, Band) and self.family.everybody)
        return Risk(f.chord_at_one(1.0, 1.0 / kept - 1.0), tight=False, attained=everybody and self._band is None)

    def _blocks(self, clients: Floats) -> Iterator[Floats]:
        """Clients' laws on the outcomes, checked, as many at a time as fit when they are put on multisets."""
        rows = self._carrier.held(clients, refuse=False).rows
        check_laws(rows)
        many = max(1, _ENTRIES // len(self.multisets))
        for start in range(0, max(1, len(rows)), many):
            yield rows[start : start + many]

    def _told(self, rows: Floats) -> Floats:
        """The laws on multisets that are projected: of clients who hold little with a tiny part of the reference."""
        laws = self.multisets.laws(rows)
        little = np.where(laws > 0.0, self.box.upper, 0.0).sum(axis=1) <= 1.0
        if little.any():
            mu = np.broadcast_to(self.family.reference, self.family.size)
            laws[little] = self.multisets.laws((rows[little] + _TINY * mu) / (1.0 + _TINY))
        return laws

    def __repr__(self) -> str:
        given = "" if self._band is None else f", band={self._band!r}"
        return f"JointSampler({self.family!r}, samples={self.samples}, epsilon={self.epsilon:g}{given})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JointSampler) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((JointSampler, *self._identity()))

    def _identity(self) -> tuple[Any, ...]:
        return (self.family, self.samples, self.privacy, self._band)


def _power(value: float, exponent: int) -> float:
    """Infinite past every float: of a box whose ceiling says nothing."""
    try:
        return value**exponent
    except OverflowError:
        return math.inf
