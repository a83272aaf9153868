"""The band {P : c1 <= dP/dmu <= c2} that makes a family, its worst members, distributions as arrays, and clients outside.

**Bounds.** alpha = (1 - c1)/(c2 - c1) determines the box and the risk. The class is the same for (c1, c2, h) and (c1/t, c2/t, t h), so the
reference is always normalised to a probability measure [paper, eq. (normalizationCond)]. With c1 >= 1 or c2 <= 1 the class is empty or
contains mu alone; both are errors.

If mu has atoms, no member may attain a bound. If all other outcomes are at c1, an outcome of mass m has density at most c1 + (1 - c1)/m;
likewise its density is at least c2 - (c2 - 1)/m. The class is the same for the attained bounds, and the answers must be. Both are extreme at
the smallest atom. It has mass at most 1/2, so moving one bound in never makes the other one move.

**Decomposable references** [paper, Thm C.4, is exact for them]. Sets of mass exactly alpha cover the space evenly: the constant vector alpha
is a mixture of indicators of sets A with mu(A) = alpha. For a uniform mu on k outcomes this holds exactly when alpha k is a whole number
(sets of alpha k outcomes, chosen cyclically), so it holds for the simplex. For other references it is decided on up to `LARGEST_ENUMERATED`
outcomes, finally by whole numbers; beyond that it is not claimed. Masses within a factor 1 +- `_SAME_MASS` of alpha count as alpha; otherwise
weights such as 0.1 could never be divided evenly. The risk then has a relative error of about 1e-12/(1 - alpha).

**Worst members**, where they are known. The divergence F(P) = D_f(P || project P) is convex in P [D_f is jointly convex, the box is convex].
So on any family its maximum lies at extreme members: the vertices of a band, the single kernels of mixtures. Two facts select among them.

*Only the distribution of R = dP/dmu under mu matters, and more spread is worse.* Let R' be R averaged by a Markov kernel that preserves mu.
Then P' and every distribution of the box are such averages too, the averaged box lies in the box, and averaging does not increase D_f: F(P')
<= F(P). By Blackwell's theorem this holds as soon as G(t) = integral of (p - t h)_+ is at least as large for P as for P', at every t (R
exceeds R' in convex order). The same holds for gamma P + (1 - gamma) mu in place of the projection.

*Uniform bands*: all vertices have the same R, up to the order of the outcomes: upper on j of them, lower on the others, one between.

`discreet.families._mixtures` has the worst members of mixtures. Where nothing is proved (bands with many unequal weights), the family names
no worst member.

**Distributions** have shape (..., k), are non-negative and finite, and each row sums to one within `SUM_TOLERANCE`. A row passed as a
distribution must be one. Declare counts and logits with `family.law(counts=...)` and `family.law(logits=...)`.

A row that was normalised in float32 or float16 does not sum to one in float64. Normalising k numbers with unit roundoff u, added up in any
order, leaves a sum within (k + 4) u of one to first order. This error is accepted in such arrays, up to `_MOST_ROUNDING`, and they are
normalised again. Rows of float64 must be within `SUM_TOLERANCE`.

The message about a client outside its family is the same for outcomes, cells and points and for every mechanism. A mechanism that projects
warns: the release is equally private, since the box does not depend on the client, and only the bound on that client's utility is lost. A
mechanism that mixes raises an error: its output would not be linear in p, and inversion relies on that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base import OldName
from discreet._base.labelled import refuse_masked_array
from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, OutsideFamilyError, OutsideFamilyWarning, warn_caller

if TYPE_CHECKING:
    from discreet.families._finite import FiniteFamily

Floats = NDArray[np.float64]
SUM_TOLERANCE = 1e-9
_HINTS = {  # for what other packages compute with
    "torch": "; for a tensor that records gradients use discreet.torch.output, or pass p.detach()",
    **dict.fromkeys(
        ("jax", "jaxlib"),
        "; inside a JAX transformation use discreet.projection.jax.output_function(sampler), and release outside of it",
    ),
}
_MOST_ROUNDING = 0.01  # of a sum: a larger error is a mistake in any precision
_PAST = Fraction(2**1023)  # where floats end, nearly
_BAND_ROUNDING = 1e-9
_VERTEX_ROUNDING = 1e-13  # of a mass that is 1 less the sum of up to 11 others
LARGEST_ENUMERATED = 12
_SAME_MASS = 1e-12
_LARGEST_DENOMINATOR = 1 << 16  # vertices of 0/1 systems in 12 unknowns have denominators of at most 3,645


@dataclass(frozen=True)
class Bounds:
    """0 <= lower < 1 < upper: bounds of dP/dmu for a probability measure mu."""

    lower: float
    upper: float

    @property
    def alpha(self) -> float:
        """The mu-mass of the set where an extreme client is at the upper bound: alpha upper + (1 - alpha) lower = 1."""
        return (1.0 - self.lower) / (self.upper - self.lower)


def bounds_heading_and_rows(bounds: Bounds, ratio: str, *, any_client: bool) -> tuple[str, list[tuple[str, str]]]:
    """The bounds as a heading and rows of a table; a band that serves everybody shows only its box."""
    if any_client:
        return "it serves everybody", [("box around the reference", f"that of {ratio} up to {bounds.upper:g}")]
    return "the client distributions", [
        (f"least {ratio}", f"{bounds.lower:g}"),
        (f"most {ratio}", f"{bounds.upper:g}"),
    ]


def bounds_for_normalised_reference(lower: float, upper: float, reference_mass: float = 1.0) -> Bounds:
    """The bounds with respect to mu = h / mass(h), from the bounds with respect to h; trivial classes are errors."""
    lower = NON_NEGATIVE.check("lower", lower) * reference_mass
    upper = POSITIVE.check("upper", upper, "give an upper bound of dP/dmu") * reference_mass
    rescaling = "" if reference_mass == 1.0 else f" (after rescaling by the reference's mass {reference_mass:g})"
    fix = f"take lower < {1.0 / reference_mass:g} < upper"
    if lower > upper:
        raise DiscreetError(f"lower = {lower:g} exceeds upper = {upper:g}{rescaling}: no law satisfies both; swap them")
    if lower > 1.0 or upper < 1.0:
        raise DiscreetError(
            f"no law satisfies {lower:g} <= dP/dmu <= {upper:g}{rescaling}: dP/dmu averages to 1; {fix}"
        )
    if lower == 1.0 or upper == 1.0:
        raise DiscreetError(
            f"{lower:g} <= dP/dmu <= {upper:g}{rescaling} holds for the reference alone: there is nothing to keep private; "
            f"{fix}"
        )
    return Bounds(lower, upper)


def attained_bounds(bounds: Bounds, least_mass: Fraction) -> Bounds:
    """The bounds that members of the band attain if the smallest atom of the reference has this mass."""
    lower, upper = Fraction(bounds.lower), Fraction(bounds.upper)
    most = lower + (1 - lower) / least_mass
    least = upper - (upper - 1) / least_mass
    if (most < _PAST and float(most) == bounds.upper) or (least >= 0 and float(least) == bounds.lower):
        return bounds  # equal up to rounding; else on two equal atoms each bound would move the other for ever
    if upper > most:
        return Bounds(bounds.lower, float(most))
    return Bounds(float(least), bounds.upper) if lower < least else bounds


def read_any_client_flag(any_client: Any, lower: Any) -> bool:
    """Whether a band is to serve everybody; it then needs a lower bound of 0."""
    if not isinstance(any_client, (bool, np.bool_)):
        raise DiscreetError(f"any_client = {any_client!r} is neither True nor False")
    if any_client and NON_NEGATIVE.check("lower", lower) != 0.0:
        raise DiscreetError(f"lower = {lower!r} is a claim about clients; any_client=True needs lower=0")
    return bool(any_client)


def read_agreed_any_client_flag(flag: Any, lower: float) -> bool | None:
    """Check an agreement's `any_client`: True (with a lower bound of 0) or absent."""
    if flag is None or (flag is True and lower == 0.0):  # 1 == True, but their canonical forms differ
        return flag
    raise DiscreetError(
        f"family.everybody = {flag!r} with family.lower = {lower:g}; give true with family.lower = 0, or leave it out"
    )


class BandFamily:
    """The common parts of all families: the bounds of dP/dmu, and whether they make a claim about clients."""

    bounds: Bounds
    any_client: bool = False  # whether the bounds only choose a box, and make no claim about clients
    everybody = OldName("any_client")
    served = OldName("served_bounds")

    @property
    def served_bounds(self) -> Bounds:
        """Bounds of dP/dmu for the clients that risks hold for: the members."""
        return self.bounds

    @property
    def contains_whole_band(self) -> bool:
        """Whether the family contains its whole band."""
        return True


def refuse_non_family(family: Any) -> None:
    """Reject an argument that is not a family: a number of outcomes, a sampler, a class instead of a value."""
    has_bounds = isinstance(getattr(family, "bounds", None), Bounds)
    if not has_bounds or not (isinstance(family, BandFamily) or isinstance(getattr(family, "size", None), int)):
        raise DiscreetError(f"family = {family!r} is not a family; pass Simplex(...), Band(...) or a continuous one")


def serves_everybody(family: Any) -> bool:
    """Whether it is a band that only chooses a box, as designs do; risks then hold for all distributions."""
    return isinstance(family, BandFamily) and family.any_client


def is_alpha_times_size_whole(size: int, alpha: float) -> bool:
    """Whether alpha k is a whole number: the uniform reference on k outcomes is then decomposable."""
    return math.isclose(alpha * size, round(alpha * size), rel_tol=_SAME_MASS)


def can_split_into_equal_groups(mu: Floats, alpha: float) -> bool:
    """Whether the outcomes can be divided into n groups of mass 1/n each, for some n of which alpha n is a whole number.

    Then mu is decomposable. Moreover, seen through the groups it is uniform on n exchangeable outcomes.
    """
    return any(
        math.isclose(alpha * n, round(alpha * n), rel_tol=_SAME_MASS)
        and _can_fill_bins(sorted(mu, reverse=True), [1.0 / n] * n)
        for n in range(2, mu.size + 1)
    )


def _can_fill_bins(masses: list[float], bins: list[float]) -> bool:
    """Whether masses, the largest first, fill bins of equal size; each is tried in every bin where it fits."""
    if not masses:
        return all(abs(room) <= _SAME_MASS for room in bins)
    rooms = set()
    for index, room in enumerate(bins):
        if masses[0] <= room + _SAME_MASS and round(room, 12) not in rooms:
            rooms.add(round(room, 12))
            if _can_fill_bins(masses[1:], [*bins[:index], room - masses[0], *bins[index + 1 :]]):
                return True
    return False


def sets_of_mass_alpha_cover_evenly(mu: Floats, alpha: float) -> bool:
    """Whether sets of mass alpha can be mixed so that every outcome is covered equally often (then with probability alpha).

    First the sets of that mass are found. Then the question is whether (1, ..., 1) is in the cone of their indicators. The solver proposes a
    vertex, and fractions check it, since a solver's tolerance proves nothing.
    """
    from scipy.optimize import linprog  # imported here because it is slow

    members = np.array(list(itertools.product((0.0, 1.0), repeat=mu.size)))
    sets = members[np.abs(members @ mu - alpha) <= _SAME_MASS * alpha]
    if not len(sets):
        return False
    solution = linprog(np.zeros(len(sets)), A_eq=sets.T, b_eq=np.ones(mu.size), method="highs-ds")
    if solution.status != 0:
        return False
    shares = [Fraction(float(share)).limit_denominator(_LARGEST_DENOMINATOR) for share in solution.x]
    coverage = [sum(share for share, members in zip(shares, column, strict=True) if members) for column in sets.T]
    return min(shares) >= 0 and all(count == 1 for count in coverage)


class MembersOnAtoms(NamedTuple):
    """Distributions (n, m) on atoms with reference masses (m,)."""

    reference: Floats
    laws: Floats


WorstMembers = Callable[[Sequence[float]], MembersOnAtoms]
"""The worst members on atoms that end where log dP/dmu has the given levels, at which a projection has its kinks."""


def vertex_of_uniform_band(size: int, lower: float, upper: float) -> MembersOnAtoms:
    """A vertex of a band around the uniform distribution: three kinds of outcomes, as three atoms."""
    count_at_upper = (1.0 - lower) / (upper - lower) * size
    full = min(int(count_at_upper), size - 1)
    between = lower + (count_at_upper - full) * (upper - lower)
    reference = np.array([full, 1.0, size - full - 1.0]) / size
    positive = reference > 0.0
    return members_proportional_to_ratios(reference[positive], np.array([upper, between, lower])[None, positive])


def band_vertices(mu: Floats, lower: float, upper: float) -> MembersOnAtoms:
    """Every vertex of a band: each outcome but one at a bound."""
    rows = []
    for free in range(mu.size):
        ratio = np.array(list(itertools.product((lower, upper), repeat=mu.size - 1)))
        ratio = np.insert(ratio, free, 0.0, axis=1)
        with np.errstate(over="ignore"):  # a very rare outcome would overflow: no vertex
            mass_left = 1.0 - ratio @ mu
            ratio[:, free] = mass_left / mu[free]
        # the slack is one of mass: in multiples of a rare outcome's mu it would be large, and let distributions outside the band pass
        inside = (mass_left >= lower * mu[free] - _VERTEX_ROUNDING) & (mass_left <= upper * mu[free] + _VERTEX_ROUNDING)
        rows.append(ratio[inside])
    return members_proportional_to_ratios(mu, np.clip(np.concatenate(rows), lower, upper))


def names_and_extreme_laws_of_band(mu: Floats, bounds: Bounds, most: int) -> tuple[tuple[str, ...], Floats]:
    """Extreme points of a band around mu: for each of several outcomes, a distribution that maximises it and one that minimises it.

    An extreme distribution is at a bound everywhere except at one outcome. On the simplex these are the point masses.
    """
    size = len(mu)
    outcomes = sorted({int(x) for x in np.linspace(0, size - 1, max(1, min(size, most // 2)))})
    names, laws = [], []
    for outcome in outcomes:
        for is_most in (True, False):
            order = np.roll(np.arange(size), -outcome if is_most else -outcome - 1)
            names.append(f"{'most' if is_most else 'least'} of outcome {outcome}")
            laws.append(_law_raised_to_upper_in_order(mu, bounds.lower, bounds.upper, order))
    return tuple(names), np.array(laws)


def _law_raised_to_upper_in_order(mu: Floats, lower: float, upper: float, order: NDArray[np.int64]) -> Floats:
    """Raise outcomes from lower mu to upper mu in order until the mass is used up."""
    room = (upper - lower) * mu[order]
    ends = np.minimum(np.cumsum(room), 1.0 - lower)
    law = lower * mu
    law[order] += np.diff(ends, prepend=0.0)
    return np.asarray(law / law.sum())


def members_proportional_to_ratios(reference: Floats, ratio: Floats) -> MembersOnAtoms:
    """The distributions with dP/dmu in proportion to `ratio` (n, m) on atoms of reference masses (m,), both normalised."""
    reference = reference / reference.sum()
    laws = reference * ratio
    return MembersOnAtoms(reference, laws / laws.sum(axis=1, keepdims=True))


def as_floats(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """The values as a contiguous float64 array whose last axis has length `size`; contents are not checked."""
    return _as_float64_rows(_as_number_array(values, name), name, size)


def as_renormalised_laws(values: ArrayLike, name: str, size: int) -> Floats:
    """As `as_floats`, but rows of float32 or float16 whose own rounding explains their sum are normalised; other rows are unchanged."""
    array = _as_number_array(values, name)
    laws = _as_float64_rows(array, name, size)
    if array.dtype.kind != "f" or array.dtype.itemsize >= 8:
        return laws
    return renormalise_rounded_laws(laws, float(np.finfo(array.dtype).eps))


def largest_rounding_of_sum(size: int, spacing: float) -> float:
    """The largest distance from one of the sum of `size` numbers normalised in floats with this spacing at one."""
    return min((size + 4) * spacing / 2, _MOST_ROUNDING)


def renormalise_rounded_laws(laws: Floats, spacing: float) -> Floats:
    """The rows (..., k); those whose sum is explained by floats with this spacing at one are normalised again, others unchanged."""
    rounding = largest_rounding_of_sum(laws.shape[-1], spacing)
    with np.errstate(invalid="ignore", over="ignore"):
        total = laws.sum(axis=-1, keepdims=True)
        deviation = np.abs(total - 1.0)
        is_rounded = (deviation > SUM_TOLERANCE) & (deviation <= rounding) & (laws.min(axis=-1, keepdims=True) >= 0.0)
        return np.where(is_rounded, laws / np.where(is_rounded, total, 1.0), laws)


def _as_number_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """The values as an array of their own number type."""
    refuse_masked_array(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and all(isinstance(entry, Real) for entry in array.flat):
            array = array.astype(np.float64)  # fractions, and columns that allow for missing values
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor that still records gradients
        kind = type(values).__module__.partition(".")[0]
        first: Any = values
        while isinstance(first, (list, tuple)) or (isinstance(first, np.ndarray) and first.ndim):
            first = first[0] if len(first) else None
        first = first.item() if isinstance(first, np.ndarray) else first
        if isinstance(first, str) and name == "p":
            hint = "; family.law(records=...) makes one of records"
        elif isinstance(first, Iterator):
            hint = "; pass list(...) of it"
        elif isinstance(first, Decimal):
            hint = "; pass float(...) of each entry"
        else:
            hint = _HINTS.get(kind, "")
        raise DiscreetError(f"{name} is not an array of numbers with rows of equal length{hint}") from None
    return array


def _as_float64_rows(array: NDArray[Any], name: str, size: int | None) -> Floats:
    floats = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    if size is not None and (floats.ndim == 0 or floats.shape[-1] != size):
        shape = f"has shape {floats.shape}" if floats.ndim else "is a single number"
        raise DiscreetError(f"{name} {shape}; its last axis must have one entry for each of the {size} outcomes")
    return floats


def rows_are_laws(rows: Floats) -> NDArray[np.bool_]:
    """For each row of an (n, k) array, whether it is a distribution."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum(axis=1)
        return np.asarray((np.abs(total - 1.0) <= SUM_TOLERANCE) & (rows.min(axis=1) >= 0.0))


def refuse_bad_laws(laws: Floats) -> None:
    """Raise an error that names the first invalid row of (..., k) and the reason."""
    rows = laws.reshape(-1, laws.shape[-1])
    valid = rows_are_laws(rows)
    if not valid.all():
        raise_error_for_bad_row(rows, int(np.argmin(valid)))


def raise_error_for_bad_row(rows: Floats, row: int, name: str = "p") -> None:
    """Raise an error that says why one row of an (n, k) array is not a distribution."""
    law = rows[row]
    where = name if len(rows) == 1 else f"{name}[{row}]"
    refuse_bad_entries(law, where)
    with np.errstate(over="ignore"):
        total = law.sum()
    raise DiscreetError(
        f"{where} sums to {total:.12g}, not to 1 (within {SUM_TOLERANCE:g}); "
        "normalise it, or declare counts with family.law(counts=...)"
    )


def refuse_bad_entries(row: Floats, where: str) -> None:
    """Raise for the first NaN, infinite or negative entry of a row."""
    for problem, mask in (("NaN", np.isnan(row)), ("infinite", np.isinf(row)), ("negative", row < 0)):
        if mask.any():
            index = int(np.argmax(mask))
            raise DiscreetError(f"{where}[{index}] = {row[index]:g} is {problem}; entries are finite and at least 0")


def law_of_counts(counts: ArrayLike, size: int) -> Floats:
    """Relative frequencies count/total of counts (..., size); every client needs at least one record.

    Whole numbers are added up exactly (below 2^53), so the result does not depend on their order or on zeros in between.
    """
    array = as_floats(counts, "counts", size)
    rows = array.reshape(-1, size)
    if not ((rows >= 0).all() and np.isfinite(rows).all()):
        bad = int(np.argmin(((rows >= 0) & np.isfinite(rows)).all(axis=1)))
        refuse_bad_entries(rows[bad], "counts" if len(rows) == 1 else f"counts[{bad}]")
    largest = rows.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        subject = "counts is" if len(rows) == 1 else f"counts[{int(np.argmin(largest[:, 0]))}] is"
        raise DiscreetError(
            f"{subject} all zero: a client without records has no law; leave it out, or let it release from the reference"
        )
    with np.errstate(over="ignore"):
        total = rows.sum(axis=1, keepdims=True)
    huge = np.isinf(total[:, 0])
    if huge.any():  # the sum overflows, though every count is finite
        rows = np.where(huge[:, None], rows / largest, rows)
        total = rows.sum(axis=1, keepdims=True)
    return np.asarray((rows / total).reshape(array.shape))


def law_of_logits(logits: ArrayLike, size: int, name: str = "logits") -> Floats:
    """softmax(logits) of logits (..., size), in float64: e^(logit - largest), normalised. Minus infinity is a probability of 0."""
    array = as_floats(logits, name, size)
    rows = array.reshape(-1, size)
    for problem, mask in (("NaN", np.isnan(rows)), ("infinite", np.isposinf(rows))):
        if mask.any():
            row, index = (int(i) for i in np.argwhere(mask)[0])
            where = name if len(rows) == 1 else f"{name}[{row}]"
            raise DiscreetError(f"{where}[{index}] = {rows[row, index]:g} is {problem}; logits are numbers or -inf")
    largest = rows.max(axis=1, keepdims=True)
    empty = np.isneginf(largest[:, 0])
    if empty.any():
        subject = f"{name} is" if len(rows) == 1 else f"{name}[{int(np.argmax(empty))}] is"
        raise DiscreetError(f"{subject} -inf everywhere: no outcome could occur; leave at least one finite")
    with np.errstate(over="ignore", under="ignore"):  # a difference that overflows is a probability of 0
        shares = np.exp(rows - largest)
    return np.asarray((shares / shares.sum(axis=1, keepdims=True)).reshape(array.shape))


@dataclass(frozen=True)
class Outsiders:
    """The clients that are outside, and the smallest and largest density relative to the reference of the first of them."""

    numbers: Sequence[int]
    clients: int
    least: float
    most: float

    def as_part_of_longer_list(self, clients: int, first: int) -> Outsiders:
        """The same as part of a longer list of clients, with `first` before it."""
        return replace(self, numbers=[first + number for number in self.numbers], clients=clients)

    def concat(self, later: Outsiders) -> Outsiders:
        """These, and those of a later part of the same clients."""
        return replace(self, numbers=[*self.numbers, *later.numbers])


def laws_are_outside_band(laws: Floats, mu: float | Floats, bounds: Bounds) -> NDArray[np.bool_]:
    """For each of the distributions (..., k) around mu, whether it leaves the bounds by more than rounding explains."""
    slack = _BAND_ROUNDING * bounds.upper
    return np.asarray(((laws < (bounds.lower - slack) * mu) | (laws > (bounds.upper + slack) * mu)).any(axis=-1))


def find_finite_outsiders(family: FiniteFamily, rows: Floats) -> Outsiders | None:
    """The distributions (n, k) outside the family's served bounds; None if there are none."""
    bounds, mu = family.served_bounds, family.reference
    if bounds.lower == 0.0 and bounds.upper * float(np.min(mu)) >= 1.0 - _BAND_ROUNDING:
        return None  # the bounds contain all distributions
    numbers = np.flatnonzero(laws_are_outside_band(rows, mu, bounds))
    if not numbers.size:
        return None
    refuse_bad_laws(rows)
    with np.errstate(over="ignore"):  # a very rare outcome
        ratio = rows[numbers[0]] / mu
    return Outsiders(numbers.tolist(), len(rows), float(ratio.min()), float(ratio.max()))


def client_numbers_in_words(numbers: Sequence[int] | NDArray[np.intp], clients: int) -> str:
    """Some clients in words: the first, and how many more."""
    return "p" if clients == 1 else f"p[{numbers[0]}]" + (f" and {len(numbers) - 1} more" if len(numbers) > 1 else "")


def warn_of_or_refuse_outsiders(family: BandFamily, outsiders: Outsiders, *, refuse: bool) -> None:
    """Warn about clients outside the family, or raise an error if a mechanism is only for members."""
    message = (
        f"{client_numbers_in_words(outsiders.numbers, outsiders.clients)} is outside {family!r}: relative to the reference it runs from "
        f"{outsiders.least:g} to {outsiders.most:g}, the band from {family.bounds.lower:g} to {family.bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{message}; the law released for it would not be linear in p: release nearest_member(family, p), or use "
            "OptimalSampler, which projects it"
        )
    warn_caller(
        f"{message}; its release is equally private, but the bound on its utility is lost", OutsideFamilyWarning
    )
