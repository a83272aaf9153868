"""Bounds on the population from the released distribution: P lies between two signed mixtures of the reference mu and of Q.

Write P for the average of the clients' distributions, Q for the average of their output distributions. A `Line`
a mu + s Q is a signed measure. An `Inversion` is two of them with low <= P <= high on every outcome, for all clients.

* Linear mechanism, Q = gamma P + (1 - gamma) mu: both lines are (Q - (1 - gamma) mu)/gamma, so P is known once Q is.
* Any projection onto a box, for members of the family: r1 Q <= P <= r2 Q [paper, Appendix C]. If an outcome is not clipped,
  P/Q is the client's scale r; if it is clipped, P/Q lies between r and c1/b or c2/B; and r1 <= r <= r2, since an r outside
  would leave the projection of even the most spread out member with a mass other than one.
* A projection for all clients, over mu: P <= r Q where Q is below its ceiling B mu, and P <= 1 = Q/(B mu) at the ceiling; and r <=
  1/(1 - b), since 1 = sum clip(P/r, b mu, B mu) <= sum (P/r + b mu) = 1/r + b. There is no lower bound: r may be 0.
* Q* on the simplex, more: let L = 1/(e^eps + k - 1), U = e^eps L, and lambda = (Q - L)/(U - L), a distribution. Then

      U lambda  <=  P  <=  (L + U lambda)/(L + U)                                                                  (*)

  There Q = max(P/r, L) with 1 <= r: a ceiling is reached only where all others are at the floor, because U + (k - 1) L = 1.
  Take an outcome with P = t, Q = q. If L < q < U then t = r q. Since r >= 1, t >= q >= U lambda; since the others hold 1 - r q
  and one of them at least is above the floor, with L + U - q if it is alone, 1 - r q >= r (L + U - q), so t <= q/(L + U) <= the
  right side. If q = L then lambda = 0, t <= r L, and the others have 1 - t >= r U: again t <= L/(L + U). If q = U then
  lambda = 1 and U <= t <= 1. Both sides of (*) are affine in q, so averaging over clients keeps them. Both are attained.
* J samples drawn together, the distribution P^J on multisets projected onto a box around a reference there: if r1 Q <= P^J <= r2 Q, then
  the same holds for any single sample, since the share of an outcome among J draws of P is P(x) on average, and the share among those
  released is its Q(x). Around the envelope r1 and r2 are those of its band (above). Around a product or a design Q <= 1, so P^J <= 1 <=
  Q/(B mu) where Q is at its ceiling, and r <= 1/(1 - b) elsewhere, as for a projection for all clients.

Lines that differ describe identifiability, not noise: even if Q is known perfectly, P may be anywhere between them.

**Lower ends that hold together** add up to at most 1 whenever they hold, since the shares do. If they add up to more, some of them miss, and
`lower_ends_with_sum_at_most_one` lowers them alike. It only widens intervals, so their coverage stays.

**Nearest distribution.** An unbiased estimate may have negative entries. `nearest_law` is the distribution nearest to it in Euclidean
distance: clip(v - t, lower, upper) with t such that it sums to one. It is nearer to every possible truth (projection onto a convex set that
contains the truth), but no longer unbiased.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError, Range
from discreet.families import SUM_TOLERANCE, Band, Bounds, Simplex, as_floats, serves_everybody
from discreet.mechanisms import (
    AnyFamily,
    JointSampler,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    OwnSampler,
    ProjectingSampler,
    Sampler,
)
from discreet.privacy.tradeoff import Constants

Floats = NDArray[np.float64]
_LEAST_WEIGHT = 1e-100  # of a client in its output distribution: with less, estimates would overflow


@dataclass(frozen=True)
class Line:
    """The signed measure reference * mu + released * Q.

    Attributes:
        reference: the factor of mu.
        released: the factor of Q.
    """

    reference: float
    released: float

    def __call__(self, mu: Any, q: Any) -> Any:
        """The value on events with these masses under mu and Q."""
        return self.reference * mu + self.released * q

    @property
    def total(self) -> float:
        """The value on the whole space."""
        return self.reference + self.released


_SAME = Line(0.0, 1.0)


@dataclass(frozen=True)
class Inversion:
    """low <= P <= high for every outcome; what that says of an event takes its complement into account.

    Attributes:
        low: the lower bound, as a line.
        high: the upper bound, as a line.
    """

    low: Line
    high: Line

    @property
    def exact(self) -> bool:
        """Whether Q determines P."""
        return self.low == self.high

    def least(self, mu: Any, q: Any) -> Any:
        """The least possible P(A), given mu(A) and Q(A); it grows with Q(A)."""
        return np.maximum(self.low(mu, q), 1.0 - self.high.total + self.high(mu, q))

    def most(self, mu: Any, q: Any) -> Any:
        """The largest possible P(A), given mu(A) and Q(A); it grows with Q(A)."""
        return np.minimum(self.high(mu, q), 1.0 - self.low.total + self.low(mu, q))


def invert_released_intervals(
    inversion: Inversion, bounds: Bounds, mu: Floats, released: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Intervals of P's shares from intervals of Q's, for events with these reference masses and clients within the bounds."""
    least, most = share_bounds_from_family_alone(bounds, mu)
    low, high = inversion.least(mu, released[0]), inversion.most(mu, released[1])
    top = np.clip(high, least, most)
    return np.minimum(np.clip(low, least, most), top), top  # samples outside the box can make the lines cross


def lower_ends_with_sum_at_most_one(low: Floats, least: Floats | float = 0.0) -> Floats:
    """Lower ends that hold together: max(low - t, least), with the least t >= 0 such that they add up to at most 1."""
    return low if low.sum() <= 1.0 else nearest_law(low, least, low)


def share_bounds_from_family_alone(bounds: Bounds, mu: Floats) -> tuple[Floats, Floats]:
    """The bounds of events with these reference masses that follow from membership in the family alone."""
    most = np.minimum(1.0 - bounds.lower * (1.0 - mu), np.minimum(bounds.upper * mu, 1.0))
    least = np.maximum(bounds.lower * mu, 1.0 - bounds.upper * (1.0 - mu))
    return least, np.maximum(most, least)


def inversion_of(sampler: Sampler[AnyFamily]) -> Inversion:
    """The lines of a sampler whose clients are members of its family.

    Args:
        sampler: the one that released the samples.

    Returns:
        An `Inversion`.

    Raises:
        DiscreetError: for a sampler whose samples tell nothing of the population.
    """
    if not isinstance(sampler, Sampler):
        raise DiscreetError(f"sampler = {sampler!r} is not a sampler; pass the one that released the samples")
    if isinstance(sampler, OwnSampler):
        raise DiscreetError(
            f"{sampler!r} is not a mechanism whose samples are known to determine or to bound shares; use "
            "inverted_population(sampler, samples=...) if its law is linear"
        )
    constants = sampler.constants
    if constants.r1 == constants.r2 or (isinstance(sampler.family, (Simplex, Band)) and sampler.family.size == 1):
        return Inversion(_SAME, _SAME)  # the identity, or a single outcome
    if constants.gamma < _LEAST_WEIGHT:
        if isinstance(sampler, MollifierSampler) and sampler.given_reference is not None:
            raise DiscreetError(
                f"the clients of {sampler!r} are unbounded relative to its reference, so samples do not determine "
                f"the population; give a DensityBand as reference=, which bounds them"
            )
        raise DiscreetError(
            f"epsilon = {sampler.epsilon:g}: the output distribution depends too little on the client for any "
            f"number of samples to be useful; agree on a larger epsilon"
        )
    mean = Line(-(1.0 - constants.gamma) / constants.gamma, 1.0 / constants.gamma)
    match sampler:
        case LinearSampler():
            return Inversion(mean, mean)
        case OptimalSampler(family=Simplex(size=size)):
            floor, ceiling = constants.b / size, constants.B / size
            total = floor + ceiling
            return Inversion(
                Line(ceiling * mean.reference, ceiling * mean.released),
                Line((constants.b + ceiling * mean.reference) / total, ceiling * mean.released / total),
            )
        case ProjectingSampler(family=family) if serves_everybody(family):
            return _inversion_for_all_clients(constants, float(np.min(sampler.reference)))
        case ProjectingSampler():
            return Inversion(Line(0.0, constants.r1), Line(0.0, constants.r2))
    raise DiscreetError(f"{sampler!r}: there is no estimate of the population from its samples")


def inversion_of_joint_sample(joint: JointSampler) -> Inversion:
    """The lines of any single one of several samples drawn together."""
    if joint.samples == 1 and joint.around is not None:
        return inversion_of(OptimalSampler(joint.family, privacy=joint.privacy))
    constants = joint.constants
    if joint.around == "envelope":
        if constants.r1 == constants.r2:
            return Inversion(_SAME, _SAME)
        return Inversion(Line(0.0, constants.r1), Line(0.0, constants.r2))
    least = float(np.min(joint.reference))
    if not (1.0 - constants.b > _LEAST_WEIGHT and constants.B * least > _LEAST_WEIGHT):
        raise DiscreetError(
            f"{joint!r}: the output distribution depends too little on the client for any number of samples to be "
            f"useful; take a larger epsilon"
        )
    return _inversion_for_all_clients(constants, least)


def _inversion_for_all_clients(constants: Constants, least: float) -> Inversion:
    """The lines of a projection for all clients, over a reference whose smallest mass is `least`."""
    return Inversion(Line(0.0, 0.0), Line(0.0, max(1.0 / (1.0 - constants.b), 1.0 / (constants.B * least))))


_ROUNDS = 3
_ENTRIES = Range(-1e300, 1e300)


def nearest_law(vector: ArrayLike, lower: ArrayLike = 0.0, upper: ArrayLike = 1.0) -> Floats:
    """The law between `lower` and `upper` that is nearest to the vector. Exact: t lies on a segment between breakpoints.

    Args:
        vector: a number for each outcome.
        lower: a bound for all outcomes, or one for each.
        upper: a bound for all outcomes, or one for each.

    Returns:
        The law.

    Raises:
        DiscreetError: for bounds that no law lies between.
    """
    v = as_floats(vector, "vector")
    if v.ndim != 1 or not v.size:
        raise DiscreetError(f"vector has shape {v.shape}; it has one number for each outcome")
    for extreme in (v.min(), v.max()):
        _ENTRIES.check("vector", float(extreme), "every entry has to be")
    low, high = _broadcast_bound(lower, "lower", v.size), np.minimum(_broadcast_bound(upper, "upper", v.size), 1.0)
    if not ((low >= 0.0) & (low <= high)).all():
        raise DiscreetError("lower and upper are not bounds of probabilities: 0 <= lower <= upper, lower <= 1")
    if not (low.sum() <= 1.0 + SUM_TOLERANCE and high.sum() >= 1.0 - SUM_TOLERANCE):
        raise DiscreetError(f"no distribution lies between bounds that sum to {low.sum():g} and {high.sum():g}")
    for _ in range(_ROUNDS):
        shift, law = _shift_and_clip_to_distribution(v, low, high)
        if abs(law.sum() - 1.0) <= SUM_TOLERANCE:
            break
        v = v - shift  # large entries would lose t to rounding: shift the relevant ones near 0
    return law


def _broadcast_bound(end: ArrayLike, name: str, size: int) -> Floats:
    bound = as_floats(end, name)
    if bound.shape not in ((), (size,)):
        raise DiscreetError(f"{name} has shape {bound.shape}; it is one number, or one for each of the {size} outcomes")
    return np.broadcast_to(bound, size)


def _shift_and_clip_to_distribution(v: Floats, low: Floats, high: Floats) -> tuple[float, Floats]:
    """t and the distribution clip(v - t, low, high), up to the rounding of v."""
    breaks = np.sort(np.concatenate([v - low, v - high]))
    first, last = 0, len(breaks) - 1  # the mass falls from sum(high) at the first break to sum(low) at the last
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if np.clip(v - breaks[middle], low, high).sum() >= 1.0 else (first, middle)
    middle_of_segment = v - 0.5 * (breaks[first] + breaks[last])
    free = (middle_of_segment > low) & (middle_of_segment < high)
    clipped_mass = np.clip(middle_of_segment, low, high)[~free].sum()
    ends = breaks[first], breaks[last]
    shift = float((v[free].sum() + clipped_mass - 1.0) / free.sum() if free.any() else ends[int(clipped_mass > 1.0)])
    return shift, np.asarray(np.clip(v - shift, low, high))
