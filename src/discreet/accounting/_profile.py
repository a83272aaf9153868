"""`BoxProfile`: the privacy of one release from a box, as (epsilon, delta) for every epsilon.

Over all pairs of distributions in the box b mu <= Q <= B mu with B = e^eps b, and for every beta >= 0,

    sup E_{e^beta}(Q || Q')  =  m (B - e^beta b)_+,      m = min(alpha, 1 - alpha),   alpha = (1 - b)/(B - b)

Proof. On a set of mass a, Q is at most min(B a, 1 - b (1 - a)) and Q' at least max(b a, 1 - B (1 - a)). The difference "largest Q less
e^beta times least Q'" is concave and piecewise linear in a: it grows with slope B - e^beta b up to a = m and never grows after that,
because the next slope is b - e^beta b or B - e^beta B. If mu has a set of mass exactly m inside the extreme sets, the value is attained; if
atoms prevent it (`attained` false), it is an upper bound.

That is the profile of one pair of distributions on three points, the *dominating pair*: the privacy loss is

    +eps with probability m B,    -eps with probability m b,    0 otherwise,

and a pair that dominates at every beta dominates adaptive compositions too (Zhu, Dong and Wang, AISTATS 2022, Theorem 10).

The integers really drawn with obey the same bound: with s = sum L / 2^62 and U <= e^eps L, the argument above with a = L(A)/sum L
is that of the box b = s, so `profile_of` reads alpha off the lattice and holds for what is drawn, not for a formula beside it.
A report is a uniform block with probability N/2^62, so its laws lie in a box with s = N/2^62 and the same argument holds. Two clients never
reach that bound, since some blocks hold the outcomes of both: it is not claimed to be attained.
Every number here is an upper bound: masses and deltas are rounded up.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from discreet._base.numerics import LARGEST_EXPONENT
from discreet.errors import NON_NEGATIVE, DiscreetError, Range, check_kind
from discreet.families import ContinuousFamily, Simplex
from discreet.privacy.tradeoff import is_identity
from discreet.projection import Box
from discreet.release import TOTAL, Lattice

_ALPHA = Range(1e-300, 1.0)
_EPSILON = Range(0.0, 1e6, low_open=True)
_ROUNDING = 1e-9
_ULPS = 2.0**-49  # more than the error of the five operations of alpha
ROUNDED_UP = 1.0 + 1e-14  # more than the error of a dozen operations


@dataclass(frozen=True, kw_only=True)
class BoxProfile:
    """The privacy of one release from a box of ratio e^epsilon whose extreme distributions sit on mu-mass alpha.

    Args:
        epsilon: the logarithm of the box's ratio.
        alpha: 1/k for a simplex on k outcomes; for a family, `family.bounds.alpha`.
        attained: whether two clients reach the bound.

    Raises:
        DiscreetError: for arguments out of range.
    """

    epsilon: float
    alpha: float
    attained: bool = False

    def __post_init__(self) -> None:
        epsilon = _EPSILON.check("epsilon", self.epsilon, "it is the privacy budget; 0.5 to 4 is usual")
        alpha = _ALPHA.check("alpha", self.alpha, "it is the mass of the reference on which an extreme client sits")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "alpha", alpha)

    @property
    def upper_mass(self) -> float:
        """m B: the probability of a privacy loss of +epsilon, rounded up."""
        return min(1.0, self._extreme_mass / (self.alpha + (1.0 - self.alpha) * math.exp(-self.epsilon)) * ROUNDED_UP)

    @property
    def lower_mass(self) -> float:
        """m b: the probability of a privacy loss of -epsilon, rounded up."""
        return self.upper_mass * math.exp(-self.epsilon) * ROUNDED_UP

    def delta(self, epsilon: float) -> float:
        """The smallest delta with which one release is (epsilon, delta)-LDP: m (B - e^epsilon b)_+, rounded up."""
        beta = NON_NEGATIVE.check("epsilon", epsilon)
        if beta >= self.epsilon:
            return 0.0
        return min(1.0, math.nextafter(self.upper_mass * -math.expm1(beta - self.epsilon) * ROUNDED_UP, math.inf))

    @property
    def _extreme_mass(self) -> float:
        return min(self.alpha, 1.0 - self.alpha)


@runtime_checkable
class LatticeSampler(Protocol):
    """The required interface of a sampler: its integers and its family."""

    @property
    def family(self) -> Any: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def reference(self) -> Any: ...
    @property
    def box(self) -> Box: ...
    @property
    def lattice(self) -> Lattice: ...


@runtime_checkable
class ReportingSampler(Protocol):
    """The same of what releases reports: how many of 2^62 words give a report that has nothing to do with the client."""

    @property
    def epsilon(self) -> float: ...
    @property
    def uniform_weight(self) -> int: ...


def check_profile(profile: Any) -> None:
    """Raise an error for anything but the profile of a box."""
    check_kind("profile", profile, BoxProfile, "pass profile_of(sampler) or BoxProfile(...)")


def profile_of(sampler: LatticeSampler | ReportingSampler) -> BoxProfile:
    """The profile of the integers that a sampler draws with, on outcomes, cells or points, or on the blocks of reports.

    Args:
        sampler: such as `OptimalSampler(...)`.

    Returns:
        The profile of one release.

    Raises:
        DiscreetError: for what is not a sampler.
    """
    if isinstance(sampler, type) or not isinstance(sampler, (LatticeSampler, ReportingSampler)):
        raise DiscreetError(
            f"sampler = {sampler!r} is not a sampler; pass OptimalSampler(...), LinearSampler(...), MollifierSampler(...), ReportSampler(...)"
        )
    lattice = sampler if isinstance(sampler, LatticeSampler) else None
    epsilon = min(sampler.epsilon, LARGEST_EXPONENT)  # the lattice never allows a larger ratio
    words = sampler.lattice.shared_total if isinstance(sampler, LatticeSampler) else sampler.uniform_weight
    shared = Fraction(words, TOTAL)  # of all words, those that have nothing to do with the client
    spread = float(shared) * -math.expm1(-epsilon)
    alpha = min(1.0, float(1 - shared) * math.exp(-epsilon) / spread)
    # m b = alpha/(alpha e^eps + 1 - alpha) grows with alpha up to 1/2 and then falls: towards 1/2 is upwards
    nearer = alpha * (1.0 + _ULPS) if alpha < 0.5 else max(0.5, alpha - _ULPS)
    return BoxProfile(
        epsilon=epsilon,
        alpha=max(nearer, _ALPHA.low),
        attained=lattice is not None and _has_extreme_pair(lattice, alpha),
    )


def _has_extreme_pair(sampler: LatticeSampler, alpha: float) -> bool:
    """Whether two members of the family are projected to an extreme pair: sets of alpha k outcomes of a uniform reference."""
    family, size = sampler.family, sampler.box.size
    places = alpha * size
    whole = round(places) >= 1 and abs(places - round(places)) <= _ROUNDING * size
    if not whole or not isinstance(sampler.reference, float) or isinstance(family, ContinuousFamily):
        return False  # on cells or points this needs members on whole ones: not claimed
    if family.size != size:
        return False  # on multisets this needs members whose draws are extreme
    own_box = abs(alpha - family.bounds.alpha) <= _ROUNDING and not is_identity(family.bounds, sampler.epsilon)
    return isinstance(family, Simplex) or own_box
