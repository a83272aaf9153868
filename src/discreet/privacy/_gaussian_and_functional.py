"""`Gaussian`: nu-Gaussian LDP. `Functional`: f-LDP for a trade-off function of one's own. And every notion as the JSON of an agreement.

**Gaussian LDP.** Two clients are as hard to distinguish as N(0, 1) and N(nu, 1) are from one sample.

    f(x) = Phi(Phi^-1(1 - x) - nu),      delta(beta) = Phi(nu/2 - beta/nu) - e^beta Phi(-nu/2 - beta/nu)

A box keeps it if and only if Phi^-1(m B) - Phi^-1(m b) <= nu: one comparison where the published calibration takes an infimum over beta. It
is decided between rationals: Phi(x) <= m b for an x that is found first, and m B <= Phi(x + nu). Releases at nu_1, ..., nu_n are sqrt(nu_1^2
+ ... + nu_n^2) together (Dong, Roth and Su 2022, Cor. 3.3).

**Phi between two rationals** that are certainly below and above it:

    Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + x^7/(3 5 7) + ...)

for x >= 0, all terms positive. `Decimal` rounds each operation correctly, so n terms are off by at most 4 n units in the last place
relatively, the density by x^2 + 8 (its exponent is off by x^2 units), and together by less than 10^5 of them. The omitted terms sum to less
than the last one that is added. With 100 digits both are below 10^-92.

**f-LDP.** A user's own f is stored and checked as a table. A function is evaluated at public points of [0, 1], closest together near 0 and 1.
Between two of them f is at most the chord, because it is convex. So a sampler that keeps the broken line through the table keeps f too. If
the function is not convex between two points, the guarantee is that of the table. Its values are used as exact rationals. If rounding makes
them miss convexity or 1 - x by less than 1e-9, their convex hull is kept; a larger deviation is an error.

    delta(beta) = 1 - min over the table of (f(x) + e^beta x)

f need not be symmetric: T >= f holds for both orders of two clients.

**Documents** state the kind of a notion and its numbers. A trade-off function is stated by the corners of its broken line, as rationals
"a/b". So the agreed function is exactly the one that is kept.
"""

from __future__ import annotations

import bisect
import decimal
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet._base.numerics import LARGEST_EXPONENT, exp_lower, exp_upper, float_rounded_up, stated_decimal
from discreet.errors import DiscreetError, Range
from discreet.privacy._notion import ERROR, EXPONENT, Approximate, Privacy, read_budget_in_range, require_masses_of_box

_CONTEXT = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
_CDF_ERROR = Fraction(1, 10**90)
_FARTHEST = Fraction(30)  # Phi(-30) is below 10^-197
_ROOT_OF_TWO_PI = "2.50662827463100050241576528481104525300698674060993831662992357634229365460784197494659583837805726611600997266520"
LEAST_PROBABILITY = Fraction(1, 10**60)
_NEWTON_STEPS = 3  # each doubles the digits, from 15
_NU = Range(0.0, math.inf, low_open=True, high_open=True)
_ROOT_HALF = math.sqrt(0.5)
Point = tuple[Fraction, Fraction]
_ROUNDING = Fraction(1, 10**9)
_NEAR_OCTAVES, _NEAR_STEPS = 12, 128
_FAR_OCTAVES, _FAR_STEPS = 60, 16
_EVEN = 512
_KINDS = {"approximate": ("epsilon", "delta"), "gaussian": ("nu",), "functional": ("points",)}
_RATIONAL = re.compile("[0-9]{1,400}(/[1-9][0-9]{0,399})?")
MOST_POINTS = 8192


def normal_cdf_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals low <= Phi(x) <= high, at most 2e-90 apart; beyond 30 deviations those of Phi(30)."""
    if x < 0:
        low, high = normal_cdf_bounds(-x)
        return 1 - high, 1 - low
    if x > _FARTHEST:
        return normal_cdf_bounds(_FARTHEST)[0], Fraction(1)
    with decimal.localcontext(_CONTEXT):
        value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        square = value * value
        term, total, odd = value, value, 1
        while True:
            odd += 2
            term = term * square / odd
            total += term
            if 2 * square < odd and term < decimal.Decimal("1e-95"):
                break
        area = Fraction(total * (-square / 2).exp() / decimal.Decimal(_ROOT_OF_TWO_PI))
    return Fraction(1, 2) + area - _CDF_ERROR, min(Fraction(1), Fraction(1, 2) + area + _CDF_ERROR)


def normal_quantile_below(probability: Fraction) -> Fraction | None:
    """A rational x with Phi(x) <= probability for certain, within 1e-25 of equality; None for a probability below 1e-60. At most 1/2.

    Newton's steps only propose it; `normal_cdf_bounds` decides.
    """
    if probability < LEAST_PROBABILITY:
        return None
    x = Fraction(statistics.NormalDist().inv_cdf(float(probability)))
    for _ in range(_NEWTON_STEPS):
        with decimal.localcontext(_CONTEXT):
            value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
            slope = Fraction((-value * value / 2).exp() / decimal.Decimal(_ROOT_OF_TWO_PI))
        low, high = normal_cdf_bounds(x)
        x = x - ((low + high) / 2 - probability) / slope
        x = Fraction(round(x * 10**64), 10**64)  # so that fractions do not grow from step to step
    step = Fraction(1, 10**60)
    while normal_cdf_bounds(x)[1] > probability:
        x, step = x - step, 4 * step
    return x


@dataclass(frozen=True)
class Gaussian(Privacy):
    """nu-Gaussian LDP, the notion under which many releases add up exactly.

    Args:
        nu: how many standard deviations two clients may be apart, in (0, inf); 0.5 to 2 is usual.

    Raises:
        DiscreetError: for a nu out of range.
    """

    nu: float

    def __post_init__(self) -> None:
        nu = read_budget_in_range(
            _NU, "nu", self.nu, "it is how far apart two clients may be, in standard deviations; 0.5 to 2 is usual"
        )
        object.__setattr__(self, "nu", nu)

    def tradeoff(self, x: float) -> float:
        error = ERROR.check("x", x)
        if error in (0.0, 1.0):
            return 1.0 - error
        return 0.5 * math.erfc((statistics.NormalDist().inv_cdf(error) + self.nu) * _ROOT_HALF)

    def profile(self, beta: float) -> float:
        exponent, nu = Fraction(EXPONENT.check("beta", beta)), Fraction(self.nu)
        if beta > 100.0 * max(self.nu, self.nu * self.nu):  # positive, but below every float
            return math.ulp(0.0)
        high, low = normal_cdf_bounds(nu / 2 - exponent / nu)[1], normal_cdf_bounds(-nu / 2 - exponent / nu)[0]
        if low <= 0:  # more than 30 deviations away
            return float_rounded_up(high)
        power = exp_lower(float(beta)) if beta <= LARGEST_EXPONENT else 1 / exp_upper(-float(beta))
        return float_rounded_up(max(Fraction(0), high - power * low))

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        lower, upper = require_masses_of_box(lower, upper)
        if lower == upper:
            return True
        quantile = normal_quantile_below(lower)
        return quantile is not None and upper <= normal_cdf_bounds(quantile + self.exact_nu)[0]

    @property
    def exact_nu(self) -> Fraction:
        """nu as a rational: the smaller of the float and the decimal as written."""
        return min(Fraction(self.nu), Fraction(stated_decimal(self.nu)))

    @property
    def may_reveal_client_by_chance(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.nu:g}-Gaussian LDP"


class Functional(Privacy):
    """f-LDP: a test that distinguishes two clients with error probabilities x and y has y >= f(x).

    Args:
        f: a convex, non-increasing function from [0, 1] to [0, 1] with f(x) <= 1 - x; or a table of it, pairs (x, f(x)) with x from 0 to 1.

    Raises:
        DiscreetError: for an argument that is not a trade-off function; the message says where, and why.
    """

    def __init__(self, f: Callable[[float], float] | Iterable[tuple[float | Fraction, float | Fraction]]) -> None:
        table = _trade_off_points_of_function(f) if callable(f) else _trade_off_points_of_pairs(f)
        self._points = _lower_hull_of_nearly_convex_points(_read_exact_trade_off_points(table))

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """The corners (x, f(x)) of the broken line."""
        return tuple((float(x), float(y)) for x, y in self._points)

    @property
    def corners(self) -> tuple[Point, ...]:
        """The corners (x, f(x)) of the broken line as exact rationals."""
        return self._points

    def tradeoff(self, x: float) -> float:
        return float(self._exact_tradeoff_value(Fraction(ERROR.check("x", x))))

    def profile(self, beta: float) -> float:
        """As for every notion; the smaller of f and its inverse."""
        factor = exp_lower(EXPONENT.check("beta", beta))
        return float_rounded_up(
            max(
                Fraction(0),
                1
                - max(
                    self._least_weighted_error_sum(Fraction(1), factor),
                    self._least_weighted_error_sum(factor, Fraction(1)),
                ),
            )
        )

    def allows(self, lower: Fraction, upper: Fraction) -> bool:
        lower, upper = require_masses_of_box(lower, upper)
        return self._exact_tradeoff_value(lower) <= 1 - upper and self._exact_tradeoff_value(1 - upper) <= lower

    @property
    def may_reveal_client_by_chance(self) -> bool:
        return self._points[0][1] < 1

    def _exact_tradeoff_value(self, x: Fraction) -> Fraction:
        """The broken line through the points, exactly."""
        index = min(bisect.bisect_right(self._corner_abscissas, x), len(self._points) - 1)
        (left, high), (right, low) = self._points[index - 1], self._points[index]
        return high + (low - high) * (x - left) / (right - left)

    def _least_weighted_error_sum(self, first: Fraction, second: Fraction) -> Fraction:
        """min (first f(x) + second x), at the corner where the slope passes -second/first."""
        x, y = self._points[bisect.bisect_left(self._side_slopes, -second / first)]
        return first * y + second * x

    @cached_property
    def _side_slopes(self) -> list[Fraction]:
        """The slopes of the sides, increasing because the line is convex."""
        return [(low - high) / (right - left) for (left, high), (right, low) in itertools.pairwise(self._points)]

    @cached_property
    def _corner_abscissas(self) -> list[Fraction]:
        return [x for x, _ in self._points]

    def __repr__(self) -> str:
        return f"Functional(<{len(self._points)} points>)"

    def __str__(self) -> str:
        return f"f-LDP (f through {len(self._points)} points)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Functional) and self._points == other._points

    def __hash__(self) -> int:
        return hash((Functional, self._points))


def _trade_off_evaluation_points() -> list[float]:
    """The points at which a function is evaluated: evenly spaced, and denser towards 0 and 1."""
    near = [2.0 ** -(1 + step / _NEAR_STEPS) for step in range((_NEAR_OCTAVES - 1) * _NEAR_STEPS)]
    far = [2.0 ** -(_NEAR_OCTAVES + step / _FAR_STEPS) for step in range((_FAR_OCTAVES - _NEAR_OCTAVES) * _FAR_STEPS)]
    even_points = [step / _EVEN for step in range(_EVEN + 1)]
    return sorted({*near, *far, *even_points, *(1.0 - x for x in near), *(1.0 - x for x in far)})


def _trade_off_points_of_function(f: Callable[[float], float]) -> list[tuple[Any, Any]]:
    table = []
    for x in _trade_off_evaluation_points():
        try:
            table.append((x, f(x)))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise DiscreetError(
                f"f({x!r}) fails with {type(error).__name__}: {error}; a trade-off function takes a number in [0, 1] and gives one"
            ) from error
    return table


def _trade_off_points_of_pairs(f: Any) -> list[tuple[Any, Any]]:
    try:
        table = [(x, y) for x, y in f]
    except (TypeError, ValueError):
        raise DiscreetError(f"f = {f!r} is neither a function nor a table of pairs (x, f(x))") from None
    if len(table) < 2:
        raise DiscreetError(
            f"f has {len(table)} of the two or more points of a table, which begins at x = 0 and ends at x = 1"
        )
    return table


def _read_exact_trade_off_points(table: list[tuple[Any, Any]]) -> list[Point]:
    """The table in rationals; an error says why it is not that of a trade-off function."""
    points = [(_read_exact_coordinate("x", x, x), _read_exact_coordinate("f(x)", y, x)) for x, y in table]
    abscissas = [x for x, _ in points]
    if abscissas[0] != 0 or abscissas[-1] != 1 or any(left >= right for left, right in itertools.pairwise(abscissas)):
        raise DiscreetError("f is a table whose x do not grow from 0 to 1; sort them, and begin and end there")
    x, y = max(points, key=lambda point: max(-point[1], point[0] + point[1] - 1))  # where it is furthest outside
    if y < -_ROUNDING or y > 1 - x + _ROUNDING:
        raise DiscreetError(
            f"f({float(x):g}) = {float(y):g} is not between 0 and 1 - x = {float(1 - x):g}: a random guess attains 1 - x, and "
            "no mechanism can be more private than that"
        )
    for (left, high), (right, low) in itertools.pairwise(points):
        if low > high + _ROUNDING:
            raise DiscreetError(
                f"f grows from {float(high):g} at {float(left):g} to {float(low):g} at {float(right):g}; a trade-off function does not"
            )
    return [(x, min(max(y, Fraction(0)), 1 - x)) for x, y in points]


def _read_exact_coordinate(name: str, value: Any, x: Any) -> Fraction:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise DiscreetError(f"{name} = {value!r} at x = {x!r} is not a number")
    return Fraction(value) if isinstance(value, (Fraction, Decimal)) else Fraction(number)


def _lower_hull_of_nearly_convex_points(points: list[Point]) -> tuple[Point, ...]:
    """The lower convex hull; it is an error if a point is off by more than rounding."""
    hull: list[Point] = []
    for point in points:
        while len(hull) >= 2 and _is_above_chord(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    side = 0
    for x, y in points:
        while hull[side + 1][0] < x:
            side += 1
        (left, high), (right, low) = hull[side], hull[side + 1]
        if y - (high + (low - high) * (x - left) / (right - left)) > _ROUNDING:
            raise DiscreetError(
                f"f is not convex: at {float(x):g} it lies above the chord from {float(left):g} to {float(right):g}; a trade-off "
                "function is convex (a coin toss between two tests attains the chord)"
            )
    return tuple(hull)


def _is_above_chord(first: Point, middle: Point, last: Point) -> bool:
    """Whether the middle point lies on or above the chord between the others."""
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (middle[0] - first[0])


def privacy_document(privacy: Privacy) -> dict[str, Any]:
    """The notion as JSON values; a pure one is an epsilon alone."""
    match privacy:
        case Approximate(epsilon=epsilon, delta=delta) if delta > 0.0:
            return {"kind": "approximate", "epsilon": epsilon, "delta": delta}
        case Gaussian(nu=nu):
            return {"kind": "gaussian", "nu": nu}
        case Functional(corners=corners) if len(corners) <= MOST_POINTS:
            return {"kind": "functional", "points": [[str(x), str(y)] for x, y in corners]}
        case Functional(corners=corners):
            raise DiscreetError(
                f"privacy = {privacy!r} has {len(corners):,} points, more than {MOST_POINTS:,}; state f by a table of fewer"
            )
    raise DiscreetError(
        f"privacy = {privacy!r} cannot be agreed on; agree on epsilon, Approximate(...), Gaussian(...) or Functional(...)"
    )


def read_privacy(fields: Any) -> Privacy:
    """The notion in such values; an error names the invalid part."""
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise DiscreetError(f"privacy = {fields!r} is not an object whose kind is one of {', '.join(_KINDS)}")
    names = _KINDS[kind]
    if set(fields) != {"kind", *names}:
        raise DiscreetError(
            f"privacy of kind {kind!r} has the fields {', '.join(('kind', *names))}, not {', '.join(fields)}"
        )
    numbers = {name: fields[name] for name in names}
    notion: Privacy
    if kind == "functional":
        notion = Functional(_read_trade_off_corners(fields["points"]))
    else:
        notion = Gaussian(**numbers) if kind == "gaussian" else Approximate(**numbers)
    if privacy_document(notion) != fields:
        raise DiscreetError(
            f"privacy of kind {kind!r} does not state its numbers as discreet writes them; write {privacy_document(notion)!r}"
        )
    return notion


def _read_trade_off_corners(corners: Any) -> list[tuple[Fraction, Fraction]]:
    """The corners in a document."""
    if not isinstance(corners, list) or not 2 <= len(corners) <= MOST_POINTS:
        raise DiscreetError(f"privacy.points is not a list of 2 to {MOST_POINTS:,} pairs of rationals")
    for pair in corners:
        if not (
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(entry, str) and _RATIONAL.fullmatch(entry) for entry in pair)
        ):
            raise DiscreetError(
                f'privacy.points holds {pair!r}, which is not a pair of rationals such as ["1/3", "1/2"]'
            )
    return [(Fraction(x), Fraction(y)) for x, y in corners]
