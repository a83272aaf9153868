"""What every sampler shares: finitely many atoms, a box around their reference masses, its integer lattice.

On a finite family the atoms are its outcomes, and a client is a row of probabilities. On a continuous family they are cells or
points (`discreet.mechanisms.atoms`), a client is a density, and `output` describes the law on the whole space.
A sampler is a frozen value, validated once. Its guarantee rests on the lattice alone (`discreet.release.lattice`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import release
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_kind
from discreet.families import Band, ContinuousFamily, FiniteFamily
from discreet.families.band import Bounds
from discreet.families.densities import HasLogPdf, LogDensity
from discreet.families.kinds import check_family
from discreet.families.laws import as_floats, as_laws
from discreet.labelled import LawLike
from discreet.mechanisms.atoms import Atoms, Cells, Density, Held, How, Points, atoms_of, default_how
from discreet.mechanisms.clients import as_clients, is_many
from discreet.mechanisms.outputs import OutputLaw
from discreet.mechanisms.solving import OutputSolver
from discreet.projection import Affine, Box
from discreet.release import Lattice, Randomness, SystemEntropy
from discreet.showing import table
from discreet.tradeoff import Constants, Risk, check_epsilon, warn_of_large

Client = LogDensity | HasLogPdf | Callable[..., Any]
_BLOCK = 1 << 22  # clients times atoms held at a time


class Sampler(abc.ABC):
    """An epsilon-LDP sampler on finitely many atoms. Final classes say which box, and whether they project or mix.

    `how` says how a continuous client is released: by `Cells` or by `Points`; by default cells up to three dimensions.
    (`Density` only describes: it sets the box as the paper does for its numerical integrals, and releases nothing.)

    Args:
        family: who the clients may be.
        epsilon: the privacy budget of one release, in (0, inf).
        how: how a continuous client is released.

    Raises:
        DiscreetError: for something that is no family, an epsilon that is none, or a `how` that does not fit the family.
    """

    def __init__(self, family: FiniteFamily | ContinuousFamily, *, epsilon: float, how: How | None = None) -> None:
        check_family(family)
        self._family = family
        self._epsilon = check_epsilon(epsilon)
        warn_of_large(self._epsilon)
        self._how = _checked_how(family, how)

    @property
    def family(self) -> Any:
        """Who the clients may be."""
        return self._family

    @property
    def epsilon(self) -> float:
        """The privacy budget of one release."""
        return self._epsilon

    @property
    def how(self) -> How | None:
        """How a continuous client is released; None on a finite family."""
        return self._how

    @property
    @abc.abstractmethod
    def constants(self) -> Constants:
        """alpha, b, B, r1, r2, gamma under the paper's names."""

    @abc.abstractmethod
    def risk(self, divergence: str | FDivergence) -> Risk:
        """Worst-case divergence from a client's law to what is released for it, over the whole family.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.
        """

    @property
    def reference(self) -> float | NDArray[np.float64]:
        """mu of every atom, around which the box is; one number where it is uniform."""
        return self._atoms.reference if self._continuous else self.family.reference

    @property
    def bounds(self) -> Bounds:
        """Those whom risks are stated for, as a band around `reference`."""
        served: Bounds = self.family.served if isinstance(self.family, Band) else self.family.bounds
        return served

    @property
    def _mixing(self) -> Affine | None:
        """None for the samplers that project."""
        return None

    @property
    def _box_epsilon(self) -> float:
        """What the box is calibrated to: epsilon, less what `Density` sets aside for its tolerances."""
        return self.how.calibrated(self.epsilon) if isinstance(self.how, Density) else self.epsilon

    @cached_property
    def box(self) -> Box:
        """{Q : b mu <= Q <= B mu}, in floating point."""
        size = self._atoms.size if self._continuous else self.family.size
        return Box.around(self.reference, size, self.constants, self.epsilon)

    @cached_property
    def lattice(self) -> Lattice:
        """The same box in integers: what the guarantee rests on."""
        return Lattice.of(self.box, self.epsilon)

    @overload
    def output(self, p: Client | Sequence[Client]) -> OutputLaw: ...
    @overload
    def output(self, p: LawLike) -> NDArray[np.float64]: ...
    def output(self, p: Any) -> Any:
        """The law Q(.|P) that a sample is drawn from.

        Finite: (k,) -> (k,), or (..., k) -> (..., k) for many clients. Continuous: a density, or a list of them, to an
        `OutputLaw` with `.pdf(x)`, `.scale`, `.divergence(name)`.

        Args:
            p: what one client or many hold. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label. Continuous: a
                density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            The same shape as p on a finite family, an `OutputLaw` on a continuous one.

        Raises:
            DiscreetError: for what is no law; the message says which entry, and why.
        """
        return self._solver.law(p) if self._continuous else self.box.project(self._laws(p))

    def weights(self, p: LawLike | Client | Sequence[Client]) -> NDArray[np.int64]:
        """The law in the integers it is really drawn with: each row sums to 2^62, and for any two clients whatever
        every entry is at most e^epsilon times the other's. Anybody can check that with whole numbers alone.

        Args:
            p: what one client or many hold. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label. Continuous: a
                density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            Whole numbers (..., k), or (n, atoms) for the cells or points of a continuous family.

        Raises:
            DiscreetError: for what is no law.
        """
        if self._continuous:
            rows = release.weights(self.lattice, self._held(p).rows, self._mixing)
            return rows if is_many(p) else rows[0]
        laws = self._laws(p)  # type: ignore[arg-type]
        rows = release.weights(self.lattice, laws.reshape(-1, self.family.size), self._mixing)
        return rows.reshape(laws.shape)

    def weights_on_atoms(self, laws: LawLike) -> NDArray[np.int64]:
        """As `weights`, for laws (..., size) given on the atoms themselves: outcomes, or the cells or points of a continuous family.

        Args:
            laws: probabilities on the atoms, (size,) or (..., size).

        Returns:
            Whole numbers of the same shape.

        Raises:
            DiscreetError: for rows that are no laws.
        """
        given: Any = laws
        rows = as_laws(given, "laws", self.box.size) if self._continuous else self.family.as_rows(given, "laws")
        found = release.weights(self.lattice, rows.reshape(-1, self.box.size), self._mixing)
        return found.reshape(rows.shape)

    def release(
        self,
        p: LawLike | Client | Sequence[Client],
        *,
        rng: np.random.Generator | None = None,
        constant_time: bool = False,
    ) -> Any:
        """One private sample for each client: an outcome number, or its label where the family has labels; on a continuous
        family a point (a number in one dimension, else (dim,)), for a list of n clients (n,) or (n, dim).

        Drawn from the operating system's entropy with `weights(p)`. `rng` makes it reproducible and therefore NOT private.
        Each call spends epsilon anew: two samples of one client are 2 epsilon-LDP together. `constant_time`, for one client of a
        finite family: by the same instructions whatever it holds and whatever is drawn, where somebody may be timing.

        Args:
            p: what one client or many hold. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label. Continuous: a
                density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.
            rng: a seeded generator, for experiments; then it is NOT private, and warns so.
            constant_time: take the same instructions whatever the client holds.

        Returns:
            One sample, or an array of them.

        Raises:
            DiscreetError: for what is no law, before anything is drawn.
        """
        randomness: Randomness = SystemEntropy() if rng is None else release.seeded(rng)
        if constant_time:
            return self._released_in_constant_time(p, randomness)
        if self._continuous:
            points = self._released(p, randomness, release.generator(rng))
            return self._spelled(points, is_many(p))
        laws = self._laws(p)  # type: ignore[arg-type]
        rows = laws.reshape(-1, self.family.size)
        drawn = release.outcomes(self.lattice, rows, self._mixing, randomness.integers(len(rows)))
        return self.family.named(drawn.reshape(laws.shape[:-1]))

    def release_number(self, p: Client | Sequence[Client], *, rng: np.random.Generator | None = None) -> Any:
        """As `release`, but only the number of the cell or of the shared point: all that a client has to send.

        Args:
            p: a density, or a list of them.
            rng: a seeded generator, for experiments; then it is NOT private.

        Returns:
            A whole number, or an array of them.

        Raises:
            DiscreetError: on a finite family, and where every client draws points of its own.
        """
        self._need_shared_atoms("release_number")
        randomness: Randomness = SystemEntropy() if rng is None else release.seeded(rng)
        held = self._held(p)
        numbers = release.outcomes(self.lattice, held.rows, self._mixing, randomness.integers(len(held.rows)))
        return numbers if is_many(p) else int(numbers[0])

    def points(self, numbers: ArrayLike, *, rng: np.random.Generator | None = None) -> Any:
        """The points that released numbers stand for: what the curator does with them. It spends nothing.

        Args:
            numbers: what `release_number` gave, one or many.
            rng: a generator for the place within a cell.

        Returns:
            A point, or an array of them.

        Raises:
            DiscreetError: for numbers that stand for nothing.
        """
        self._need_shared_atoms("points")
        wanted = np.atleast_1d(as_floats(numbers, "numbers"))
        good = (wanted >= 0) & (wanted < self._atoms.size) & (wanted == np.floor(wanted))
        if not good.all():
            raise DiscreetError(
                f"numbers holds {wanted[~good][0]:g}; it takes whole numbers between 0 and {self._atoms.size - 1}, as "
                "release_number gives them"
            )
        found = self._atoms.shared_points(wanted.astype(np.int64), release.generator(rng))
        return self._spelled(found, np.ndim(numbers) > 0)

    # finite clients

    def _released_in_constant_time(self, p: Any, randomness: Randomness) -> Any:
        if self._continuous:
            raise DiscreetError(
                f"constant_time is for finite families: what a density costs to evaluate depends on the client; {self!r} is "
                "continuous: bin its clients, and release on a Simplex"
            )
        law = self._laws(p)
        if law.ndim != 1:
            raise DiscreetError(f"p has shape {law.shape}; constant_time is for one client: release one law at a time")
        number = release.outcome_in_constant_time(self.lattice, law, self._mixing, int(randomness.integers(1)[0]))
        return self.family.named(np.asarray(number))

    def _laws(self, p: LawLike) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.family.as_rows(p)
        return rows

    # continuous clients

    @property
    def _continuous(self) -> bool:
        return isinstance(self.family, ContinuousFamily)

    @cached_property
    def _atoms(self) -> Atoms:
        assert self.how is not None
        return atoms_of(self.family, self.how)

    @cached_property
    def _solver(self) -> OutputSolver:
        return OutputSolver(self.family, self.constants, self._box_epsilon, self._mixing)

    def _held(self, p: Any) -> Held:
        return self._atoms.held(as_clients(p, self.family), refuse=self._mixing is not None)

    def _released(self, p: Any, randomness: Randomness, rng: np.random.Generator) -> NDArray[np.float64]:
        clients = as_clients(p, self.family)
        step = max(1, _BLOCK // self._atoms.size)
        found = []
        for start in range(0, len(clients), step):
            held = self._atoms.held(clients[start : start + step], refuse=self._mixing is not None)
            numbers = release.outcomes(self.lattice, held.rows, self._mixing, randomness.integers(len(held.rows)))
            found.append(held.points(numbers, rng))
        return np.concatenate(found)

    def _spelled(self, points: NDArray[np.float64], many: bool) -> Any:
        flat = points[:, 0] if self.family.dim == 1 else points
        if many:
            return flat
        return float(flat[0]) if self.family.dim == 1 else flat[0]

    def _need_shared_atoms(self, method: str) -> None:
        if not self._continuous:
            raise DiscreetError(
                f"{method} is for continuous families; on {self.family!r} release(p) gives an outcome itself"
            )
        if isinstance(self.how, Points) and self.how.seed is None:
            raise DiscreetError("fresh points are known to the client alone; give everybody Points(seed=...)")

    def __repr__(self) -> str:
        given = "" if self.how is None or self.how == default_how(self.family) else f", how={self.how!r}"
        return f"{type(self).__name__}({self.family!r}, epsilon={self.epsilon:g}{given})"

    def _repr_html_(self) -> str:
        promise = f"whatever two clients hold, no sample is more than e^{self.epsilon:g} times as likely from one as from the other"
        rows = [("clients", repr(self.family)), ("epsilon", f"{self.epsilon:g}"), ("promise", promise)]
        if self.how is not None:
            rows.append(("released by", repr(self.how)))
        return table(type(self).__name__, rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sampler) and type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), *self._identity()))

    def _identity(self) -> tuple[Any, ...]:
        return (self.family, self.epsilon, self.how)


def check_sampler(sampler: Any) -> None:
    """Refuse whatever is not a sampler that can release: a family, a class, the boosted baseline."""
    check_kind("sampler", sampler, Sampler, "pass OptimalSampler(...), LinearSampler(...) or MollifierSampler(...)")


def _checked_how(family: Any, how: How | None) -> How | None:
    if isinstance(family, ContinuousFamily):
        if how is not None and not isinstance(how, (Cells, Points, Density)):
            raise DiscreetError(f"how = {how!r} is not one of Cells(...), Points(...), Density(...)")
        return default_how(family) if how is None else how
    if how is not None:
        raise DiscreetError(f"how = {how!r} is for continuous families; {family!r} is released outcome by outcome")
    return None
