"""`Sampler`: the base class of the private samplers.

A sampler has finitely many atoms, a box around their reference masses, the integer lattice of that box, and one way to release. It is a
frozen value, validated once. Its privacy guarantee rests on the lattice alone (`discreet.release._lattice`).

Samplers vary along two axes. The mechanism chooses the box, and either projects a client's distribution onto it or mixes it in; each
mechanism is a class. The carrier says what an atom is (`discreet.mechanisms._atoms`). On a finite family an atom is an outcome and a
client is a row of probabilities. On a continuous family an atom is a cell or a point, a client is a density, and `output` describes the
distribution on the whole space.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import release
from discreet._base import OldName, accept_renamed_keywords, placeholders_until_used
from discreet._base.labelled import LawLike
from discreet._base.showing import html_table_for_notebook
from discreet.domain import Outcome
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.families import Bounds, FiniteFamily, as_floats, refuse_non_family
from discreet.mechanisms._atoms import (
    Atoms,
    ClientOutputSolver,
    Discretisation,
    LawsOnAtoms,
    default_discretisation,
    discretisation_with_defaults,
    make_atoms,
)
from discreet.privacy import Privacy, Pure, chosen_privacy
from discreet.privacy.tradeoff import (
    Constants,
    Risk,
    epsilon_of_box,
    refuse_useless_or_raw_privacy,
    warn_of_weak_privacy,
)
from discreet.projection import Affine, Box
from discreet.release import Lattice, Randomness

with placeholders_until_used(globals()):
    from discreet.divergences import FDivergence
    from discreet.families import ContinuousFamily, HasLogPdf, LogDensity
    from discreet.mechanisms._points import Density
    from discreet.mechanisms._several_samples import ComposedSampler, JointSampler
    from discreet.projection import OutputLaw

Client = LogDensity | HasLogPdf | Callable[..., Any]
AnyFamily = FiniteFamily | ContinuousFamily
F = TypeVar("F", bound=AnyFamily, covariant=True)
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rng: TypeAlias = "np.random.Generator | None"  # a text: to name the class would load numpy.random
OneLaw = Sequence[float] | Mapping[Any, float]
"""One client's distribution on a finite family, as a list or a dict by label; an array may hold many clients."""
ManyLaws = Sequence[Sequence[float]] | Sequence[Mapping[Any, float]] | Sequence[Floats]
_SET_ONCE = ("_family", "_privacy", "_carrier", "_discretisation")  # what the box is made of, by `__init__`
_OWN = "for a mechanism of your own, subclass OwnSampler and define law(p), or use OwnSampler.of(family, law, ...)"


class Sampler(abc.ABC, Generic[F]):
    """A private sampler on finitely many atoms. Subclasses choose the box, and project onto it or mix into it.

    Args:
        family: the family of client distributions.
        epsilon: the privacy budget of one release, in (0, inf); short for `privacy=Pure(epsilon)`.
        discretisation: how a continuous client is released: `Cells(...)` or `Points(...)`; by default cells up to three dimensions.
            `Density(...)` sets the box as the paper does for its numerical integrals; it describes the output and releases nothing.
        privacy: a notion of privacy, in place of epsilon.

    Raises:
        DiscreetError: for an argument that is not a family, an epsilon out of range, a notion that allows raw draws or no release, or a
            `discretisation` that does not fit the family.
    """

    name: str
    """The mechanism's name in agreements, commands and tables."""

    _SEALED: ClassVar[frozenset[str]] = frozenset(
        {
            *(
                "output",
                "weights",
                "weights_on_atoms",
                "release",
                "release_number",
                "release_reference_number",
                "points",
            ),
            *("box", "lattice", "privacy", "epsilon", "carrier", "can_draw_in_constant_time", "_client_output_solver"),
            *(
                "_client_laws_on_atoms",
                "_integer_weights_for_clients",
                "_draw_atom_numbers",
                "_draw_atom_number_in_constant_time",
                "_draw_number_from_reference",
            ),
        }
    )
    """What describes the mechanism and what releases by it: both rest on the box, so that neither changes without the other."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        _refuse_overridden_sealed_names(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _sealed_names(type(self)) or (name in _SET_ONCE and name in vars(self)):
            raise _SealedError(
                f"{type(self).__name__}.{name} cannot be set: it would describe one mechanism and release another; {_OWN}"
            )
        super().__setattr__(name, value)

    @accept_renamed_keywords(how="discretisation")
    def __init__(
        self,
        family: F,
        *,
        epsilon: float | None = None,
        discretisation: Discretisation | None = None,
        privacy: Privacy | None = None,
    ) -> None:
        refuse_non_family(family)
        self._family = family
        self._refuse_family_without_box()
        self._privacy = chosen_privacy(epsilon, privacy)
        self._discretisation = discretisation_with_defaults(family, discretisation)
        self._carrier = make_atoms(family, self._discretisation)
        self._refuse_privacy_without_box()
        warn_of_weak_privacy(self._privacy)

    @property
    def family(self) -> F:
        """The family of client distributions."""
        return self._family

    @property
    def privacy(self) -> Privacy:
        """The privacy guarantee of one release."""
        return self._privacy

    @property
    def epsilon(self) -> float:
        """The pure budget of one release.

        For a notion other than pure epsilon, it is the pure epsilon that the box implies, log(B/b).
        """
        return self.privacy.epsilon if isinstance(self.privacy, Pure) else epsilon_of_box(self.constants)

    @property
    def discretisation(self) -> Discretisation | None:
        """How a continuous client is released; None on a finite family."""
        return self._discretisation

    how = OldName("discretisation")

    @property
    def carrier(self) -> Atoms[Any]:
        """The atoms that clients are put on: outcomes, cells or points."""
        return self._carrier

    @property
    @abc.abstractmethod
    def constants(self) -> Constants:
        """alpha, b, B, r1, r2, gamma under the paper's names."""

    @abc.abstractmethod
    def risk(self, divergence: str | FDivergence) -> Risk:
        """Worst-case divergence from a client's distribution to its `output`, over the whole family.

        On a continuous family `output` is the distribution Q* on the whole space. A release by cells follows it where p/h is constant inside
        each cell.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`; `float(risk)` is its value.
        """

    @property
    def reference(self) -> float | Floats:
        """mu of every atom, the centre of the box; one number where it is uniform."""
        return self.carrier.reference

    @property
    def bounds(self) -> Bounds:
        """The clients that risks hold for, as a band around `reference`; if the family is everybody, all distributions on its atoms."""
        family: AnyFamily = self.family
        if (
            not isinstance(family, ContinuousFamily)
            or not family.any_client
            or isinstance(self.discretisation, Density)
        ):
            return family.served_bounds
        return Bounds(0.0, 1.0 / float(np.min(self.reference)))

    @property
    def mixing(self) -> Affine | None:
        """How P is mixed with the reference; None for the samplers that project."""
        return None

    def _refuse_family_without_box(self) -> None:
        """Reject a family for which this sampler has no box."""

    def _refuse_privacy_without_box(self) -> None:
        """Reject a notion of privacy for which this sampler has no box."""
        if isinstance(self.privacy, Pure):
            return
        if isinstance(self.discretisation, Density):
            raise DiscreetError(
                f"discretisation = {self.discretisation!r} is for pure epsilon only; leave it out for privacy={self.privacy!r}"
            )
        refuse_useless_or_raw_privacy(self.privacy, self.family.bounds)

    @property
    def calibrated_epsilon(self) -> float:
        """The epsilon that the box is calibrated to: epsilon less the share that `Density` sets aside for its tolerances."""
        return self.carrier.calibrated_epsilon(self.epsilon)

    @property
    def _calibrated_privacy(self) -> Privacy:
        """The notion of privacy that the box is calibrated to."""
        return Pure(self.calibrated_epsilon) if isinstance(self.privacy, Pure) else self.privacy

    @cached_property
    def box(self) -> Box:
        """{Q : b mu <= Q <= B mu}, in floating point."""
        return Box.around(self.reference, self.carrier.size, self.constants, self.epsilon)

    @cached_property
    def lattice(self) -> Lattice:
        """The box in integers; the guarantee rests on it."""
        return Lattice.for_privacy(self.box, self.privacy)

    @overload
    def output(self: Sampler[ContinuousFamily], p: Client | Sequence[Client]) -> OutputLaw: ...
    @overload
    def output(self: Sampler[FiniteFamily], p: LawLike) -> Floats: ...
    @overload
    def output(self, p: LawLike | Client | Sequence[Client]) -> Floats | OutputLaw: ...
    def output(self, p: Any) -> Floats | OutputLaw:
        """The output distribution Q(.|P), from which a sample is drawn.

        Finite: (k,) -> (k,), or (..., k) -> (..., k) for many clients. Continuous: a density, or a list of them, to an `OutputLaw` with
        `.pdf(x)`, `.scale`, `.divergence(name)`.

        Args:
            p: the distribution of one client or of many. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
                Continuous: a density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            The same shape as p on a finite family, an `OutputLaw` on a continuous one.

        Raises:
            DiscreetError: if p is not a distribution; the message says which entry, and why.
        """
        batch = self.carrier.read_clients(p)
        return self._client_output_solver.output_law(batch.clients, batch.shape)

    def weights(self, p: LawLike | Client | Sequence[Client]) -> Integers:
        """The output distribution as the integers that a sample is drawn with.

        Each row sums to 2^62. For any two clients, every entry is at most e^epsilon times the other client's. Whole numbers suffice to check
        this.

        Args:
            p: the distribution of one client or of many. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
                Continuous: a density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            Whole numbers (..., k), or (n, atoms) for the cells or points of a continuous family.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        batch = self.carrier.read_clients(p)
        rows = self._integer_weights_for_clients(self._client_laws_on_atoms(batch.clients).rows)
        return rows.reshape(*batch.shape, self.box.size)

    def weights_on_atoms(self, laws: LawLike) -> Integers:
        """As `weights`, for distributions (..., size) on the atoms themselves: outcomes, or the cells or points of a continuous family.

        Args:
            laws: probabilities on the atoms, (size,) or (..., size).

        Returns:
            Whole numbers of the same shape.

        Raises:
            DiscreetError: for rows that are not distributions.
        """
        rows = self.carrier.read_laws_on_atoms(laws)
        return self._integer_weights_for_clients(rows.reshape(-1, self.box.size)).reshape(rows.shape)

    def with_privacy(self, privacy: Privacy) -> Self:
        """The same sampler with another privacy guarantee.

        Args:
            privacy: the notion of privacy of one release.

        Returns:
            A sampler of the same kind, for the same clients.

        Raises:
            DiscreetError: for a notion for which it has no box.
        """
        return type(self)(self.family, privacy=privacy, discretisation=self.discretisation)

    def with_samples(self, samples: int) -> ComposedSampler | JointSampler:
        """A sampler for several samples of each client under this sampler's budget; `release(p, size=samples)` uses it.

        Args:
            samples: how many samples of each client.

        Returns:
            A `ComposedSampler`, whose draws have a share of the budget each; an `OptimalSampler` gives a `JointSampler` where it can.

        Raises:
            DiscreetError: for a number out of range, or a budget that cannot be split so often.
        """
        return ComposedSampler(self, samples=samples)

    several = OldName("with_samples")

    @overload
    def release(self: Sampler[ContinuousFamily], p: Client, *, rng: Rng = None) -> float | Floats: ...
    @overload
    def release(self: Sampler[ContinuousFamily], p: Sequence[Client], *, rng: Rng = None) -> Floats: ...
    @overload
    def release(
        self: Sampler[FiniteFamily[Outcome]], p: OneLaw, *, rng: Rng = None, constant_time: bool = False
    ) -> Outcome: ...
    @overload
    def release(self: Sampler[FiniteFamily[Outcome]], p: ManyLaws, *, rng: Rng = None) -> NDArray[Any]: ...
    @overload
    def release(
        self: Sampler[FiniteFamily[Outcome]], p: LawLike, *, rng: Rng = None, constant_time: bool = False
    ) -> Outcome | NDArray[Any]: ...
    @overload
    def release(
        self, p: LawLike | Client | Sequence[Client], *, rng: Rng = None, constant_time: bool = False
    ) -> Hashable | NDArray[Any]: ...
    @overload
    def release(self, p: LawLike | Client | Sequence[Client], *, size: int, rng: Rng = None) -> NDArray[Any]: ...
    def release(self, p: Any, *, rng: Rng = None, constant_time: bool = False, size: int | None = None) -> Any:
        """One private sample for each client, drawn with `weights(p)` from the operating system's entropy.

        On a finite family a sample is an outcome number, its label where the family has labels, or the middle of its cell where outcomes are
        the cells of an interval. On a continuous family it is a point: a number in one dimension, else (dim,). A list of n clients gives (n,)
        or (n, dim).

        Each call spends epsilon anew: two samples of one client are 2 epsilon-LDP together. With `size`, all samples of a client TOGETHER
        keep this sampler's guarantee (see `with_samples`). A seeded `rng` makes the draw reproducible and therefore NOT private.

        Args:
            p: the distribution of one client or of many. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
                Continuous: a density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.
            rng: a seeded generator, for experiments; the release is then NOT private, and warns so.
            constant_time: execute the same instructions for every distribution and every outcome, against attackers who measure time. For one
                client of a finite family.
            size: how many samples of each client, under one total budget.

        Returns:
            One sample, or an array of them; with `size` an array with one more axis of that length.

        Raises:
            DiscreetError: if p is not a distribution or size is out of range, before anything is drawn.
        """
        if size is not None:
            from discreet.accounting import MOST_SAMPLES  # loaded for several samples alone
            from discreet.mechanisms._multisets import SAMPLES_FIX

            check_count("size", size, most=MOST_SAMPLES, fix=SAMPLES_FIX)
            if constant_time:
                raise DiscreetError("constant_time is for one sample; leave out size")
            return self.with_samples(size).release(p, rng=rng)
        randomness, point_rng = release.entropy_or_seeded_randomness(rng), release.generator(rng)
        if constant_time:
            return self.carrier.samples_in_user_form(
                np.asarray([self._draw_atom_number_in_constant_time(p, randomness)]), ()
            )
        batch = self.carrier.read_clients(p)
        blocks = self.carrier.iterate_laws_on_atoms_in_batches(batch.clients, refuse=self.mixing is not None)
        samples = [
            self.carrier.samples_from_atom_numbers(self._draw_atom_numbers(laws, randomness), point_rng, laws.seed)
            for laws in blocks
        ]
        return self.carrier.samples_in_user_form(np.concatenate(samples), batch.shape)

    @overload
    def release_number(self: Sampler[ContinuousFamily], p: Client, *, rng: Rng = None) -> int: ...
    @overload
    def release_number(self: Sampler[ContinuousFamily], p: Sequence[Client], *, rng: Rng = None) -> Integers: ...
    @overload
    def release_number(
        self: Sampler[FiniteFamily], p: OneLaw, *, rng: Rng = None, constant_time: bool = False
    ) -> int: ...
    @overload
    def release_number(self: Sampler[FiniteFamily], p: ManyLaws, *, rng: Rng = None) -> Integers: ...
    @overload
    def release_number(
        self, p: LawLike | Client | Sequence[Client], *, rng: Rng = None, constant_time: bool = False
    ) -> int | Integers: ...
    def release_number(self, p: Any, *, rng: Rng = None, constant_time: bool = False) -> int | Integers:
        """As `release`, but only the number of the outcome, of the cell or of the shared point. A client needs to send no more than this.

        Args:
            p: the distribution of one client or of many, as for `release`.
            rng: a seeded generator, for experiments; the release is then NOT private.
            constant_time: execute the same instructions for every distribution and every outcome; for one client of a finite family.

        Returns:
            A whole number, or an array of them.

        Raises:
            DiscreetError: if p is not a distribution, and where every client draws points of its own.
        """
        self.carrier.refuse_unshared_atoms()
        if constant_time:
            return self._draw_atom_number_in_constant_time(p, release.entropy_or_seeded_randomness(rng))
        batch = self.carrier.read_clients(p)
        numbers = self._draw_atom_numbers(
            self._client_laws_on_atoms(batch.clients), release.entropy_or_seeded_randomness(rng)
        ).reshape(batch.shape)
        return numbers if batch.shape else int(numbers)

    def _draw_atom_number_in_constant_time(self, p: Any, randomness: Randomness) -> int:
        law = self._client_laws_on_atoms(self.carrier.client_law_in_constant_time(p)[None, :]).rows[0]
        return release.outcome_in_constant_time(self.lattice, law, self.mixing, int(randomness.integers(1)[0]))

    def release_reference_number(self, *, rng: Rng = None) -> int:
        """A released number for a client without data: one whose distribution is the reference.

        It is drawn from the same integer lattice as for every other client, so missing data are hidden as well as any other data.

        Args:
            rng: a seeded generator, for experiments; the release is then NOT private.

        Returns:
            The number of an outcome, a cell or a shared point.
        """
        self.carrier.refuse_unshared_atoms()
        law = np.broadcast_to(np.asarray(self.reference, dtype=np.float64), (self.carrier.size,))
        return self._draw_number_from_reference(
            law / law.sum(), int(release.entropy_or_seeded_randomness(rng).integers(1)[0])
        )

    def _draw_number_from_reference(self, law: Floats, uniform: int) -> int:
        return release.outcome_in_constant_time(self.lattice, law, self.mixing, uniform)

    @overload
    def points(self: Sampler[ContinuousFamily], numbers: ArrayLike, *, rng: Rng = None) -> float | Floats: ...
    @overload
    def points(self: Sampler[FiniteFamily[Outcome]], numbers: int, *, rng: Rng = None) -> Outcome: ...
    @overload
    def points(
        self: Sampler[FiniteFamily[Outcome]], numbers: ArrayLike, *, rng: Rng = None
    ) -> Outcome | NDArray[Any]: ...
    @overload
    def points(self, numbers: ArrayLike, *, rng: Rng = None) -> Hashable | NDArray[Any]: ...
    def points(self, numbers: ArrayLike, *, rng: Rng = None) -> Any:
        """The points or outcomes that released numbers stand for. The curator calls this; it spends no budget.

        Args:
            numbers: what `release_number` returned, one or many.
            rng: a generator for the place within a cell.

        Returns:
            A point or an outcome, or an array of them.

        Raises:
            DiscreetError: for numbers out of range.
        """
        self.carrier.refuse_unshared_atoms()
        atom_numbers = np.atleast_1d(as_floats(numbers, "numbers"))
        valid = (atom_numbers >= 0) & (atom_numbers < self.carrier.size) & (atom_numbers == np.floor(atom_numbers))
        if not valid.all():
            raise DiscreetError(
                f"numbers holds {atom_numbers[~valid][0]:g}; it takes whole numbers between 0 and {self.carrier.size - 1}, as "
                "release_number gives them"
            )
        samples = self.carrier.samples_from_atom_numbers(atom_numbers.astype(np.int64).ravel(), release.generator(rng))
        return self.carrier.samples_in_user_form(samples, np.shape(numbers))

    @property
    def can_draw_in_constant_time(self) -> bool:
        """Whether `constant_time=True` is possible: on a finite family, for a mechanism that takes the same steps for every client."""
        return not isinstance(self.family, ContinuousFamily)

    @cached_property
    def _client_output_solver(self) -> ClientOutputSolver:
        return self.carrier.make_output_solver(self)

    def _client_laws_on_atoms(self, clients: Any) -> LawsOnAtoms:
        return self.carrier.laws_on_atoms(clients, refuse=self.mixing is not None)

    def _integer_weights_for_clients(self, rows: Floats) -> Integers:
        """The integers (n, size) that atoms are drawn with, for clients' laws (n, size) on the atoms."""
        return release.weights(self.lattice, rows, self.mixing)

    def _draw_atom_numbers(self, laws: LawsOnAtoms, randomness: Randomness) -> Integers:
        """One atom for each client, drawn with its integer weights."""
        return release.outcomes(self.lattice, laws.rows, self.mixing, randomness.integers(len(laws.rows)))

    def __repr__(self) -> str:
        arguments = (
            ""
            if self.discretisation is None or self.discretisation == default_discretisation(self.family)
            else f", discretisation={self.discretisation!r}"
        )
        return f"{type(self).__name__}({self.family!r}, {privacy_as_argument_text(self.privacy)}{arguments})"

    def _repr_html_(self) -> str:
        promise = f"for any two clients, no sample is more than e^{self.epsilon:.6g} times as likely from one as from the other"
        rows = [("clients", repr(self.family)), ("epsilon", f"{self.epsilon:.6g}"), ("promise", promise)]
        if not isinstance(self.privacy, Pure):
            rows.insert(1, ("privacy", str(self.privacy)))
        if self.discretisation is not None:
            rows.append(("released by", repr(self.discretisation)))
        return html_table_for_notebook(type(self).__name__, rows)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sampler)
            and type(self) is type(other)
            and self._comparison_key() == other._comparison_key()
            and self.carrier.has_same_masses_as(other.carrier)
        )

    def __hash__(self) -> int:
        return hash((type(self), *self._comparison_key()))

    def _comparison_key(self) -> tuple[Any, ...]:
        return (self.family, self.privacy, self.discretisation)


def _refuse_overridden_sealed_names(kind: type) -> None:
    """Refuse a class that changes what a mechanism describes without what it releases, or the other way round.

    A class of this package that seals a name itself may define it anew: `OwnSampler` does, for both together.
    """
    if "_SEALED" in vars(kind) and not _is_class_of_this_package(kind):
        raise DiscreetError(f"{kind.__name__} defines _SEALED, which says what no subclass may change; {_OWN}")
    for name in (*_sealed_names(kind), *_SET_ONCE):
        definer = next((base for base in kind.__mro__ if name in vars(base)), None)
        if definer is not None and not (
            _is_class_of_this_package(definer) and name in vars(definer).get("_SEALED", ())
        ):
            raise DiscreetError(
                f"{kind.__name__} overrides {name}, and would describe one mechanism and release another; {_OWN}"
            )


class _SealedError(DiscreetError, AttributeError):
    """The error for setting what describes or releases a mechanism; an AttributeError too, as of any property that cannot be set."""


def _is_class_of_this_package(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def _sealed_names(kind: type) -> set[str]:
    """What no subclass outside this package may define, and no instance set."""
    return {name for base in kind.__mro__ if _is_class_of_this_package(base) for name in vars(base).get("_SEALED", ())}


def refuse_non_sampler(sampler: object) -> None:
    """Reject an argument that cannot release samples: a family, a class, the boosted baseline."""
    check_kind(
        "sampler",
        sampler,
        Sampler,
        "pass OptimalSampler(...), LinearSampler(...), MollifierSampler(...) or an OwnSampler",
    )


def privacy_as_argument_text(privacy: Privacy) -> str:
    """The privacy of a sampler as an argument of it."""
    return f"epsilon={privacy.epsilon:g}" if isinstance(privacy, Pure) else f"privacy={privacy!r}"


def bounds_around_new_reference(reference: Floats, bounds: Bounds, old_reference: float | Floats) -> Bounds:
    """Bounds of a family around `old_reference`, as bounds around `reference`."""
    ratio = old_reference / reference
    return Bounds(bounds.lower * min(1.0, float(ratio.min())), bounds.upper * max(1.0, float(ratio.max())))
