"""`OwnSampler`: a mechanism of one's own that is released exactly.

You state the output law q(p) of one client, and a floor m that it stays above. The rest follows: integer weights, an exact release,
certificates, ledgers, and agreements if a package offers the class under an entry point.

Theorem. A release is epsilon-LDP for every function `law`, right or wrong. *Proof.* The floor is read once, without a client, and gives a
lattice L <= W <= U with U <= e^epsilon L in whole numbers, or the sampler is refused (`discreet.release._lattice`). The law of a client is
asked for once. Its answer may be NaN, have a wrong sum, differ from the one before, or be an exception: in every case it is turned into a row
of integers. The row is compared with L and U, and its sum with 2^62, in integers and without a tolerance. The sample is drawn from that very
row. So for any two clients, and any two answers, W_x <= U_x <= e^epsilon L_x <= e^epsilon W'_x.   QED

A wrong law costs utility. An answer outside the box is projected onto it; where there is no usable answer, the sample is one of the reference
m/|m|. Both are warned of (`OutsideBoxWarning`). Neither is an error, because a missing sample would tell something about the client; a
program that turns warnings into errors loses that. A law that is wrong for public inputs, the extreme members of the family, is refused when
the sampler is made.

The theorem is about one release. A law that remembers one client and uses it for another releases that client twice, and a law is code that
sees the data: it can send them elsewhere, never return, or end the program. Neither is prevented here. Two draws with the same uniform
integer from rows that differ would have no common bound either: code that repeats a keyed draw compares the samples (`discreet.tables`).

`output` is the row of integers over 2^62, so that it describes what is released. Classes that override it, or another method that a release
rests on, are refused, and so are instances that set one. That is a guard against mistakes. Code that works around it on purpose (by
`__getattribute__`, `object.__setattr__`, or by assigning to a class afterwards) is another mechanism, of which nothing is claimed.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import divergences
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, OutsideBoxWarning, check_kind, warn_caller
from discreet.families import (
    Bounds,
    ContinuousFamily,
    FiniteFamily,
    Simplex,
    as_floats,
    refuse_bad_laws,
    refuse_non_family,
)
from discreet.mechanisms._atoms import LawsOnAtoms
from discreet.mechanisms._optimal_linear_mollifier import OneByOneSampler
from discreet.mechanisms._own_weights import (
    column_minima_of_private_matrix,
    lattice_weights_of_laws,
    matrix_of_linear_law,
    names_and_laws_of_test_clients,
    normalised_law_or_problem,
    outcomes_from_uniform_integers,
    outcomes_outside_box,
    read_floor_and_ceiling,
    refuse_bad_law_of_test_client,
)
from discreet.mechanisms._sampler import bounds_around_new_reference, privacy_as_argument_text
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import Constants, Risk
from discreet.projection import Box, point_mass_risk
from discreet.release import TOTAL, Randomness

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RESERVED = ("optimal", "linear", "mollifier", "reports", "survey")
_BLOCK = 1 << 22  # integers held at a time


class OwnSampler(OneByOneSampler[FiniteFamily]):
    """A mechanism of your own on a finite family, released exactly. Subclass it and define `law` and `floor`.

    Set parameters of your own before you call `super().__init__`, and return them from `parameters`. A class with `linear = True` may leave
    `floor` out: its law is then the matrix of the laws of point masses, and the floor the smallest entry of each column.

    Args:
        family: the family of client distributions: `Simplex(...)` or `Band(...)`.
        epsilon: the privacy budget of one release, in (0, inf); short for `privacy=Pure(epsilon)`.
        privacy: a notion of privacy in place of epsilon; other notions than `Pure` need a `ceiling`.

    Raises:
        DiscreetError: for a floor or a ceiling that no law fits between or that does not keep the privacy, and for a law that fails or leaves
            the box for a public client: a point mass or another extreme member of the family.

    Example:
        >>> class Shrink(OwnSampler):
        ...     name = "shrink"
        ...     def law(self, p):
        ...         kept = math.tanh(self.epsilon / 4)
        ...         return kept * p + (1 - kept) / len(p)
        ...     @property
        ...     def floor(self):
        ...         return np.full(self.family.size, (1 - math.tanh(self.epsilon / 4)) / self.family.size)
        >>> colour = Shrink(Simplex(2), epsilon=1.0).release([0.7, 0.3])
    """

    name: str = "own"

    linear: bool = False
    """Whether the law is linear in p. If so it is read off at point masses once, and is p times that matrix from then on."""

    checked_clients: ClassVar[int] = 64
    """For how many extreme members of the family the law is tried when a sampler is made; fewer where a law takes long."""

    _SEALED: ClassVar[frozenset[str]] = frozenset(
        {
            *("output", "box", "constants", "reference", "bounds", "mixing", "matrix"),
            *("can_draw_in_constant_time", "_integer_weights_for_clients", "_draw_atom_numbers"),
            *("_draw_atom_number_in_constant_time", "reference_weights", "_draw_number_from_reference"),
            *("_output_laws_of_clients", "_law_or_problem_of_client"),
        }
    )

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not isinstance(cls.name, str) or not cls.name or cls.name in RESERVED:
            raise DiscreetError(
                f"{cls.__name__}.name = {cls.name!r} is not a name for a mechanism of your own; choose a text other than "
                f"{', '.join(RESERVED)}"
            )

    def __init__(self, family: FiniteFamily, *, epsilon: float | None = None, privacy: Privacy | None = None) -> None:
        refuse_non_family(family)
        if isinstance(family, ContinuousFamily):
            raise DiscreetError(
                f"family = {family!r} is continuous; a mechanism of your own is on outcomes: cut a line into cells, "
                "Simplex(Interval(low, high, cells=n))"
            )
        super().__init__(family, epsilon=epsilon, privacy=privacy)
        self._matrix: Floats | None = None
        self._refuse_law_unfit_for_release()

    def _refuse_law_unfit_for_release(self) -> None:
        """Reject a law whose floor and ceiling are not private, or which fails for public clients."""
        if self.linear:
            answer = partial(self._law_or_problem_of_client, public=True)
            self._matrix = matrix_of_linear_law(type(self).__name__, self.carrier.size, answer)
        if not self.lattice.keeps_privacy(self.privacy):  # decided in rationals
            raise DiscreetError(f"the floor and the ceiling do not keep {self.privacy}; nothing can be drawn")
        self._refuse_law_failing_test_clients()

    @abc.abstractmethod
    def law(self, p: Floats) -> ArrayLike:
        """The output law q(p) of one client: define this.

        Args:
            p: the client's distribution (k,), a copy of its own. Every client comes alone, so that none depends on another.

        Returns:
            k probabilities.
        """

    @property
    def floor(self) -> ArrayLike:
        """m: a positive lower bound of every client's law, for each outcome; define this unless the law is linear.

        It is read once and must not depend on clients. `self.family`, `self.privacy` and, for pure privacy, `self.epsilon` are set. Its sum
        is at most 1. A method without arguments serves as well as a property.
        """
        if self._matrix is None:
            raise DiscreetError(
                f"{type(self).__name__} states no floor; define the property floor: the least probability of each outcome, for any client. "
                "If the law is linear in p, say linear = True in the class, and the floor follows"
            )
        return column_minima_of_private_matrix(self._matrix, self.privacy)

    @property
    def ceiling(self) -> ArrayLike | None:
        """An upper bound of every client's law, for each outcome; None, the default, for e^epsilon times the floor."""
        return None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The further arguments that the sampler was made with, as JSON values; agreements state them."""
        return {}

    @classmethod
    def from_parameters(cls, family: FiniteFamily, privacy: Privacy, parameters: Mapping[str, Any]) -> Self:
        """The sampler that an agreement states: that of a family, a notion of privacy and `parameters`.

        Args:
            family: the family of client distributions.
            privacy: the privacy of one release.
            parameters: as the property gives them.

        Returns:
            The sampler.

        Raises:
            DiscreetError: as for the class.
            TypeError: for parameters that the class does not take.
        """
        check_kind("parameters", parameters, Mapping, "pass what the property parameters gives")
        return cls(family, privacy=privacy, **parameters)

    @property
    def matrix(self) -> Floats | None:
        """The matrix (k, k) of a linear law: row x is the output law of a client that holds x for certain. None for other laws."""
        return self._matrix

    @property
    def mixing(self) -> None:
        return None

    def _refuse_privacy_without_box(self) -> None:
        """The lattice decides, when it is made."""

    @cached_property
    def box(self) -> Box:
        """{Q : floor <= Q <= ceiling}, in floating point."""
        return Box(self.carrier.size, *self._floor_and_ceiling)

    @cached_property
    def constants(self) -> Constants:
        lower, upper = self._floor_and_ceiling
        b, ratio = float(lower.sum()), float(np.max(upper / lower))
        return Constants(
            (1.0 - b) / (b * ratio - b) if ratio > 1.0 else 1.0, b, b * ratio, 0.0, math.inf, 0.0, 1.0, math.inf
        )

    @cached_property
    def reference(self) -> Floats:
        """The floor, normalised: the law of a client about whom nothing is known."""
        reference = np.array(self._floor_and_ceiling[0] / self._floor_and_ceiling[0].sum())
        reference.setflags(write=False)
        return reference

    @property
    def bounds(self) -> Bounds:
        return bounds_around_new_reference(self.reference, self.family.served_bounds, self.family.reference)

    @property
    def can_draw_in_constant_time(self) -> bool:
        """Never: the time that a law of your own takes may depend on the client."""
        return False

    def output(self, p: Any) -> Any:
        """The output distribution Q(.|P): the integers that a sample is drawn with, over 2^62.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities of the same shape.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self.weights(p) / TOTAL

    def risk(self, divergence: str | FDivergence) -> Risk:
        """An upper bound on the divergence of any client from its output; the worst case itself for a linear law on a `Simplex`.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`, which is `attained` in the second case. For other laws it is the worst law in the box for the worst client.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        f = divergences.divergence(divergence)
        if self._matrix is not None:  # D_f(P || P K) is convex in P, so a point mass is worst
            stay_probabilities = np.diagonal(self.output(np.eye(self.family.size)))
        else:
            lower, upper = self._floor_and_ceiling
            stay_probabilities = np.maximum(lower, 1.0 - (upper.sum() - upper))
        least = float(np.min(stay_probabilities))
        exact = self._matrix is not None and isinstance(self.family, Simplex)
        return Risk(point_mass_risk(f, least, 1.0 - least), tight=False, attained=exact)

    def with_privacy(self, privacy: Privacy) -> Self:
        try:
            return self.from_parameters(self.family, privacy, self.parameters)
        except TypeError as error:
            raise DiscreetError(
                f"{type(self).__name__} cannot be made for another budget: {error}; let its constructor take family, privacy= and what "
                "the property parameters returns"
            ) from error

    @staticmethod
    def of(
        family: FiniteFamily,
        law: Callable[[Floats], ArrayLike] | ArrayLike,
        *,
        floor: ArrayLike | None = None,
        ceiling: ArrayLike | None = None,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        name: str = "own",
    ) -> OwnSampler:
        """The sampler of a function or of a matrix. (An agreement, and several samples of a client, need a class: see above.)

        Args:
            family: the family of client distributions.
            law: a function from one client's distribution (k,) to k probabilities; or a matrix (k, k), whose row x is the law of a client
                that holds x for certain.
            floor: a positive lower bound of every client's law, for each outcome; a matrix has the least entries of its columns.
            ceiling: an upper bound of it, by default e^epsilon times the floor.
            epsilon: the privacy budget of one release.
            privacy: a notion of privacy in place of epsilon; other notions than `Pure` need a `ceiling`.
            name: for legends and tables.

        Returns:
            The sampler.

        Raises:
            DiscreetError: as for `OwnSampler(...)`, and for a function without a floor.
        """
        return _LawGivenSampler(family, law, floor, ceiling, name, epsilon=epsilon, privacy=privacy)

    @cached_property
    def _floor_and_ceiling(self) -> tuple[Floats, Floats]:
        """The floor and the ceiling, read once and checked."""
        try:
            return read_floor_and_ceiling(self.floor, self.ceiling, self.carrier.size, self.privacy)
        except AttributeError as error:
            raise DiscreetError(
                f"the floor of {type(self).__name__} cannot be read: {error}; set parameters of your own before super().__init__(...)"
            ) from error

    def _names_and_laws_of_test_clients(self) -> tuple[tuple[str, ...], Floats]:
        return names_and_laws_of_test_clients(self.family, self.checked_clients, linear=self._matrix is not None)

    def check_repeatable(self) -> None:
        """Refuse a law that does not answer the same for the same public client, so that samples under a secret could not be repeated.

        Every public client is asked twice. A law that passes may still answer otherwise elsewhere, or on another machine. Releases under a
        secret therefore compare what they draw with what was drawn before.

        Raises:
            DiscreetError: for a law that answers otherwise the second time.
        """
        if self._matrix is not None:  # it was read once, and is the law from then on
            return
        names, laws = self._names_and_laws_of_test_clients()
        first, second = (self._integer_weights_for_clients(laws) for _ in range(2))
        for name, row, repeat in zip(names, first, second, strict=True):
            if not np.array_equal(row, repeat):
                raise DiscreetError(
                    f"the law of {self.name!r} gives another result when it is called again (for a public client: {name}). Under a secret "
                    "the samples must repeat. Make the law a function of p, without randomness and memory, or leave the secret out"
                )

    def _refuse_law_failing_test_clients(self) -> None:
        """Refuse a law that fails, or leaves the box, for a client whom everybody knows."""
        for name, p in zip(*self._names_and_laws_of_test_clients(), strict=True):
            refuse_bad_law_of_test_client(
                name, self._law_or_problem_of_client(p, public=True), *self._floor_and_ceiling
            )

    def _law_or_problem_of_client(self, p: Floats, *, public: bool = False) -> Floats | str:
        """The law of one client, normalised; or what is wrong with it, which shows no value unless p is public. It is asked for once."""
        if self._matrix is not None:
            return np.asarray(p @ self._matrix)
        return normalised_law_or_problem(self.law, p, public=public)

    def _output_laws_of_clients(self, rows: Floats) -> Floats:
        """The laws of clients (n, k) in the box: as answered, projected where they leave it, the reference where there is none."""
        if self._matrix is None:
            answers = [self._law_or_problem_of_client(p) for p in rows]
            problems = [answer for answer in answers if isinstance(answer, str)]
            laws = [self.reference if isinstance(answer, str) else answer for answer in answers]
        else:
            problems = []
            laws = [p @ self._matrix for p in rows]  # row by row: the same in every batch
        output_laws = np.array(laws).reshape(rows.shape)
        with np.errstate(all="ignore"):  # the law may have asked numpy to raise
            outside = outcomes_outside_box(output_laws, *self._floor_and_ceiling).any(axis=1)
            output_laws[outside] = self.box.project(output_laws[outside])
        if problems:
            _warn_without_raising(
                f"the law of {self.name!r} is not usable for {len(problems)} of {len(rows)} clients ({problems[0]}): their samples are draws "
                "of the reference, and private"
            )
        if outside.any():
            _warn_without_raising(
                f"the law of {self.name!r} leaves its box for {int(outside.sum())} of {len(rows)} clients: their samples follow its "
                "projection, and are private"
            )
        return output_laws

    def _integer_weights_for_clients(self, rows: Floats) -> Integers:
        return np.concatenate(
            [
                lattice_weights_of_laws(self.lattice, self._output_laws_of_clients(batch))
                for batch in self._iterate_client_laws_in_batches(rows)
            ]
        )

    def _draw_atom_numbers(self, laws: LawsOnAtoms, randomness: Randomness) -> Integers:
        outcomes = []
        for rows in self._iterate_client_laws_in_batches(laws.rows):
            weights = lattice_weights_of_laws(self.lattice, self._output_laws_of_clients(rows))
            outcomes.append(outcomes_from_uniform_integers(weights, randomness.integers(len(weights))))
        return np.concatenate(outcomes)

    def _iterate_client_laws_in_batches(self, rows: Floats) -> Iterator[Floats]:
        """Clients' laws, as many at a time as their integers fit in memory; all of them are checked first."""
        refuse_bad_laws(rows)
        step = max(1, _BLOCK // self.box.size)
        return (rows[start : start + step] for start in range(0, max(1, len(rows)), step))

    def _draw_atom_number_in_constant_time(self, p: Any, randomness: Randomness) -> int:
        raise DiscreetError(
            "constant_time is not for a mechanism of your own: the time that its law takes may depend on the client"
        )

    @cached_property
    def reference_weights(self) -> Integers:
        """The integers (k,) that a client without data is drawn with; its law is not asked for."""
        weights = np.array(lattice_weights_of_laws(self.lattice, self.reference[None, :])[0])
        weights.setflags(write=False)
        return weights

    def _draw_number_from_reference(self, law: Floats, uniform: int) -> int:
        return int(outcomes_from_uniform_integers(self.reference_weights[None, :], np.array([uniform]))[0])

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        return f"{type(self).__name__}({self.family!r}, {privacy_as_argument_text(self.privacy)}{arguments})"

    def _comparison_key(self) -> tuple[Any, ...]:
        return (
            *super()._comparison_key(),
            repr(sorted(self.parameters.items())),
            *(bound.tobytes() for bound in self._floor_and_ceiling),
        )


@final
class _LawGivenSampler(OwnSampler):
    """A sampler of a function or a matrix that was given, for one budget."""

    def __init__(
        self,
        family: FiniteFamily,
        law: Any,
        floor: ArrayLike | None,
        ceiling: ArrayLike | None,
        name: str,
        *,
        epsilon: float | None,
        privacy: Privacy | None,
    ) -> None:
        check_kind("name", name, str, "pass a name for legends and tables")
        if not name:
            raise DiscreetError("name = '' is empty; pass a name for legends and tables")
        if name in RESERVED:
            raise DiscreetError(f"name = {name!r} is taken; choose another than {', '.join(RESERVED)}")
        self.linear = not callable(law)
        self._given: Any = _copy_square_matrix(law) if self.linear else law
        self._floor, self._ceiling, self.name = floor, ceiling, name
        super().__init__(family, epsilon=epsilon, privacy=privacy)

    def law(self, p: Floats) -> ArrayLike:
        if not self.linear:
            answer: ArrayLike = self._given(p)
            return answer
        if self._given.shape != (len(p), len(p)):
            raise DiscreetError(f"law has shape {self._given.shape}, and there are {len(p)} outcomes")
        return np.asarray(p @ self._given)

    @property
    def floor(self) -> ArrayLike:
        if self._floor is None and not self.linear:
            raise DiscreetError(
                "floor is not given; pass floor=, the least probability of each outcome for any client (the law is private only if it "
                "stays between a floor and e^epsilon times it)"
            )
        return super().floor if self._floor is None else self._floor

    @property
    def ceiling(self) -> ArrayLike | None:
        return self._ceiling

    def with_privacy(self, privacy: Privacy) -> Self:
        raise DiscreetError(
            f"{self!r} is for one budget; subclass OwnSampler, so that law and floor follow from self.epsilon"
        )

    def __repr__(self) -> str:
        return f"OwnSampler.of({self.family!r}, <{self.name}>, {privacy_as_argument_text(self.privacy)})"

    def _comparison_key(self) -> tuple[Any, ...]:
        return (*super()._comparison_key(), self.name, id(self._given))


def _copy_square_matrix(law: Any) -> Floats:
    """A copy of a matrix with a row and a column for each outcome."""
    matrix = as_floats(law, "law")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DiscreetError(
            f"law has shape {matrix.shape}; a matrix has a row and a column for each outcome, anything else is a function of p"
        )
    return matrix.copy()


def _warn_without_raising(message: str) -> None:
    """Warn of what some clients' laws are, without an error even where warnings are errors: a missing sample would tell of the data."""
    with suppress(OutsideBoxWarning):
        warn_caller(message, OutsideBoxWarning)
