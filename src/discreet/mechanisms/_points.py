"""`Points` and `Density`: discretisations of a continuous family without cells.

`Points`. The atoms are points X_1, ..., X_N drawn from h independently of the client, of reference mass 1/N, with p_i proportional to
p(X_i)/h(X_i). Points work in any dimension and need no normalisation. With fresh points for every release, the distribution of the released
point is within O(1/N) of Q*. With a public seed all clients share the points, so their error does not average out: shares of regions depart
from those of Q* by O(1/sqrt N).

`Density`. The paper's own calibration, without atoms [paper, Section 4.1]. It describes the output distribution and releases nothing. A draw
from a density by rejection is epsilon-LDP only if the density has the stated mass. No finite number of evaluations can certify the integral
of a client's function: a spike between the nodes is missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn, final

import numpy as np

from discreet._base import OldName
from discreet.domain import sha256_digest
from discreet.errors import NON_NEGATIVE, DiscreetError, OutsideFamilyWarning, Range, check_count, warn_caller
from discreet.families import (
    ContinuousFamily,
    NodeSummary,
    Outsiders,
    bound_on_sampled_mass_error,
    find_continuous_outsiders,
)
from discreet.mechanisms._atoms import Densities, DensityAtoms, Discretisation, Floats, Integers, LawsOnAtoms

DEFAULT_POINTS = 1 << 16
_POINTS_IN_A_BLOCK = 4096
_FRACTION = Range(0.0, 1.0, high_open=True)


@final
@dataclass(frozen=True)
class Points(Discretisation):
    """Release by points drawn from the reference, in any dimension.

    Without a seed every release draws fresh points. With a seed, client and curator know the same points (on the same numpy version), and the
    client needs to send only a number. The output distribution departs from Q* by O(1/sqrt(count)) with a seed, by O(1/count) without. Choose
    a seed before you look at the data; it need not be secret.

    Args:
        count: how many points.
        seed: a public seed that all clients share, at least 0.

    Raises:
        DiscreetError: for numbers out of range.
    """

    count: int = DEFAULT_POINTS
    seed: int | None = None

    def __post_init__(self) -> None:
        check_count("count", self.count, 2)
        if self.seed is not None:
            check_count("seed", self.seed, 0)

    def atoms_of_family(self, family: ContinuousFamily, members: ContinuousFamily | None) -> PointAtoms:
        return PointAtoms(family, self, whose=members)


@final
@dataclass(frozen=True, eq=False)
class PointAtoms(DensityAtoms):
    """Points drawn from the reference of one family, in reproducible blocks."""

    discretisation: Points

    @property
    def size(self) -> int:
        """Number of points."""
        return self.discretisation.count

    @property
    def reference(self) -> float:
        """1/N each."""
        return 1.0 / self.discretisation.count

    @cached_property
    def digest(self) -> str:
        """The digest of the points of the public seed."""
        assert self.discretisation.seed is not None
        blocks = (
            self.draw_numbered_batch_of_points(number, self.discretisation.seed)
            for number in range(math.ceil(self.size / _POINTS_IN_A_BLOCK))
        )
        return sha256_digest(b"".join(block.astype("<f4").tobytes() for block in blocks))

    def draw_numbered_batch_of_points(self, number: int, seed: int) -> Floats:
        """The points from number * 4096 on."""
        count = min(_POINTS_IN_A_BLOCK, self.discretisation.count - number * _POINTS_IN_A_BLOCK)
        return self.family.draw(count, np.random.default_rng([seed, number]))

    def samples_from_atom_numbers(self, numbers: Integers, rng: np.random.Generator, seed: int | None = None) -> Floats:
        """The points of the given numbers under that seed, or under the public one."""
        point_seed = self.discretisation.seed if seed is None else seed
        assert point_seed is not None
        return self.numbered_points_of_seed(numbers, point_seed)

    def numbered_points_of_seed(self, numbers: Integers, seed: int) -> Floats:
        """The points of the given numbers: (n, dim)."""
        points = np.empty((len(numbers), self.family.dim))
        for number in np.unique(numbers // _POINTS_IN_A_BLOCK):
            rows = numbers // _POINTS_IN_A_BLOCK == number
            points[rows] = self.draw_numbered_batch_of_points(int(number), seed)[numbers[rows] % _POINTS_IN_A_BLOCK]
        return points

    def laws_on_atoms_with_outside_clients(self, clients: Densities) -> tuple[LawsOnAtoms, Outsiders | None]:
        """p_i proportional to p(X_i)/h(X_i); uniform for a client whose density is 0 at every point."""
        seed = (
            int.from_bytes(np.random.SeedSequence().generate_state(4).tobytes())
            if self.discretisation.seed is None
            else self.discretisation.seed
        )
        log_ratio = np.empty((len(clients), self.discretisation.count))
        for number in range(math.ceil(self.discretisation.count / _POINTS_IN_A_BLOCK)):
            x = self.draw_numbered_batch_of_points(number, seed)
            columns = slice(number * _POINTS_IN_A_BLOCK, number * _POINTS_IN_A_BLOCK + len(x))
            log_reference = self.family.log_reference(x)
            for row, p in enumerate(clients):
                log_ratio[row, columns] = p.log_density(x) - log_reference
        shift, smallest = log_ratio.max(axis=1), log_ratio.min(axis=1)
        visible_rows = np.isfinite(shift)
        if not visible_rows.all():
            warn_caller(
                f"{int((~visible_rows).sum())} of {len(clients)} clients are 0 at each of the {self.discretisation.count} points: "
                "the sample released for "
                "them is a draw of the reference; take more points, a family nearer to the clients, or (where a density underflows) "
                "family.law(log_density=...)",
                OutsideFamilyWarning,
            )
        rows = np.exp(log_ratio - np.where(visible_rows, shift, 0.0)[:, None])
        rows[~visible_rows] = 1.0
        total = rows.sum(axis=1)
        summary = NodeSummary(
            (shift + np.log(total / self.size))[visible_rows],
            smallest[visible_rows],
            shift[visible_rows],
            bound_on_sampled_mass_error(self.family.bounds, self.size),
        )
        visible = [p for p, is_visible in zip(clients, visible_rows, strict=True) if is_visible]
        outsiders = find_continuous_outsiders(self.family, visible, summary, self.whose)
        if outsiders is not None:
            numbers = np.flatnonzero(visible_rows)[list(outsiders.numbers)]
            outsiders = replace(outsiders, numbers=numbers.tolist(), clients=len(clients))
        return LawsOnAtoms(rows / total[:, None], seed), outsiders

    def refuse_unshared_atoms(self) -> None:
        if self.discretisation.seed is None:
            raise DiscreetError(
                "without a seed only the client knows its points; use Points(seed=...) with one public seed for all clients"
            )


@final
@dataclass(frozen=True)
class Density(Discretisation):
    """The paper's calibration for densities of trusted mass in [1 - delta1, 1 + delta2]; it describes outputs and releases nothing.

    The box is that of epsilon' = epsilon - log((1 + delta2)/(1 - delta1)) [paper, Section 4.1], for `output` and `risk`. There is no release,
    because its guarantee would rest on the integral of a client's function.

    Args:
        delta1: how far below 1 the mass may be, in [0, 1).
        delta2: how far above 1 it may be, at least 0.

    Raises:
        DiscreetError: for tolerances out of range.
    """

    delta1: float = 1e-5
    delta2: float = 1e-5

    def __post_init__(self) -> None:
        _FRACTION.check("delta1", self.delta1)
        NON_NEGATIVE.check("delta2", self.delta2)

    def atoms_of_family(self, family: ContinuousFamily, members: ContinuousFamily | None) -> NoAtoms:
        return NoAtoms(family, self, whose=members)

    def calibrated_epsilon(self, epsilon: float) -> float:
        """epsilon', the part of epsilon that is left for the box."""
        box_epsilon = epsilon - math.log1p(self.delta2) + math.log1p(-self.delta1)
        if not box_epsilon > 0.0:
            raise DiscreetError(
                f"epsilon = {epsilon:g} leaves nothing for the box: the tolerances cost {epsilon - box_epsilon:g}; take smaller ones"
            )
        return box_epsilon

    calibrated = OldName("calibrated_epsilon")


@final
@dataclass(frozen=True, eq=False)
class NoAtoms(DensityAtoms):
    """No atoms: outputs are described, and nothing is released."""

    discretisation: Density

    def calibrated_epsilon(self, epsilon: float) -> float:
        return self.discretisation.calibrated_epsilon(epsilon)

    @property
    def size(self) -> int:
        self._refuse_release()

    @property
    def reference(self) -> float:
        self._refuse_release()

    @property
    def digest(self) -> str:
        self._refuse_release()

    def laws_on_atoms_with_outside_clients(self, clients: Densities) -> NoReturn:
        self._refuse_release()

    def samples_from_atom_numbers(self, numbers: Integers, rng: np.random.Generator, seed: int | None = None) -> Floats:
        self._refuse_release()

    def refuse_unshared_atoms(self) -> None:
        self._refuse_release()

    def _refuse_release(self) -> NoReturn:
        raise DiscreetError(
            f"discretisation = {self.discretisation!r} only describes the output and releases nothing. Privacy of a draw from the density "
            "itself would depend on the numerical integral of the client's function. Release with discretisation=Cells(...) or "
            "discretisation=Points(...), which are private for every function"
        )
