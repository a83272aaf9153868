"""Derivatives of q f(p/q) in q, and lines below f, for the solvers and certificates of designs.

With t = p/q the term q f(p/q) has the derivative f(t) - t f'(t) and the second derivative t^2 f''(t)/q in q. A certificate uses only lines
below f:

    f(t) >= intercept + slope t    for all t >= 0,    hence    q f(p/q) >= q intercept + p slope    for all p, q >= 0.

Slopes are rounded so that the line lies below f for the very floats returned. Each step of a formula errs by at most one unit in the last
place, logarithms and powers by a few, and `_DOWN` covers more than that.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import log_bracket
from discreet.divergences._divergences import FDivergence, divergence
from discreet.errors import DiscreetError

Floats = NDArray[np.float64]
Formula = Callable[[Floats], Floats]

_DOWN = 2.0**-49
_BELOW = 2.0**-40  # how far below f(0) a line starts: a line from f(0) itself would have infinite slope
_STEP = 1e-7  # of log t, in the differences of a user's f
# the same for its lines: small for a kink, large enough to exceed rounding for a smooth f
_STEPS = (1e-4, 1e-5, 1e-7, 1e-9, 1e-11)
_SMALL = 1e-9  # the same where a kink is looked for
_FAR, _HALVINGS = 12.0, 48  # of log t: how far away a line is looked for, and how finely
_NEAR_ONE = 1e-6  # a line that touches this near to 1 is tried at 1, where most kinks are
_MISSED = 1e4  # cost of an intercept below the requested one, relative to the height of the line
_OWN_ERROR = 2.0**-50  # assumed accuracy of a user's f, relative to it, to t and to t f'(t)


@dataclass(frozen=True)
class SmoothCurve:
    """A smooth convex f by its formulas. A line lies below it when its slope is at most `steepest` of its intercept.

    Attributes:
        at_zero: f(0).
        slope_at_one: f'(1).
        value: f(t).
        tangent_intercept: f(t) - t f'(t), the intercept of the tangent at t; it falls as t grows.
        curvature_times_t_squared: t^2 f''(t).
        steepest: the slope, rounded down, of the steepest line with an intercept.
        highest: the largest intercept that a line gets; larger ones are lowered to it.
    """

    at_zero: float
    slope_at_one: float
    value: Formula
    tangent_intercept: Formula
    curvature_times_t_squared: Formula
    steepest: Formula
    highest: float = math.inf

    def steepest_line_with_intercept(self, intercept: Floats, t: Floats) -> tuple[Floats, Floats]:
        """(slope, intercept) of the steepest line below f with that intercept; t is about where it touches."""
        capped_intercept = np.minimum(intercept, self.highest)
        return self.steepest(capped_intercept), capped_intercept


def _steepest_jensen_shannon_slope(intercept: Floats) -> Floats:
    """log(2 - exp(2 intercept))/2, rounded down."""
    room = 2.0 - np.exp(2.0 * intercept)
    return np.asarray(_sum_rounded_down(0.0, np.log(room) / 2.0) - 2.0 * _DOWN * (2.0 + room) / room)


def alpha_divergence_curve(order: float) -> SmoothCurve:
    """The alpha divergences, f(t) = (t^a - a t + a - 1)/(a (a - 1)): slope <= ((1 - a intercept)^((a - 1)/a) - 1)/(a - 1)."""

    def steepest_slope(intercept: Floats) -> Floats:
        base, power = 1.0 - order * intercept, (order - 1.0) / order
        base_power = base**power
        log_change = (1.0 + np.abs(1.0 - base)) / base + np.abs(np.log(base))
        error = 8.0 * _DOWN * (1.0 + np.abs(power) * log_change) * (1.0 + base_power)
        return np.asarray((base_power - 1.0) / (order - 1.0) - error / abs(order - 1.0))

    at_zero = 1.0 / order if order > 0.0 else math.inf
    return SmoothCurve(
        at_zero,
        0.0,
        lambda t: np.asarray((t**order - order * t + order - 1.0) / (order * (order - 1.0))),
        lambda t: (1.0 - t**order) / order,
        lambda t: np.asarray(t**order),
        steepest_slope,
        at_zero - _BELOW,
    )


@dataclass(frozen=True)
class HockeyStickCurve:
    """f(t) = max(t - gamma, 0), a hockey stick. A line lies below it when 0 <= slope <= 1 and intercept <= -gamma slope."""

    gamma: float
    at_zero: float = 0.0

    @property
    def slope_at_one(self) -> float:
        """The slope of f at 1; at the edge itself, the middle of the two slopes."""
        return 0.5 if self.gamma == 1.0 else float(self.gamma < 1.0)

    def value(self, t: Floats) -> Floats:
        return np.maximum(t - self.gamma, 0.0)

    def tangent_intercept(self, t: Floats) -> Floats:
        return np.where(t > self.gamma, -self.gamma, 0.0)

    def curvature_times_t_squared(self, t: Floats) -> Floats:
        return np.zeros_like(t)

    def steepest_line_with_intercept(self, intercept: Floats, t: Floats) -> tuple[Floats, Floats]:
        slope = np.clip(-intercept / self.gamma, 0.0, 1.0)
        return slope, -slope if self.gamma == 1.0 else np.nextafter(-self.gamma * slope, -np.inf)


@dataclass(frozen=True)
class FiniteDifferenceCurve:
    """A user's f, by differences of its values at t e^-h, t, t e^h. It may have kinks.

    Let f be convex, a and b its slopes from t to the left and to the right point. The line through (t, f(t)) with slope s <= b lies below f
    to the right of the right point. To the left of the left point it exceeds f by at most (a - s)_+ t, and in between by at most (b - a)
    times the width. Both are subtracted, with a and b moved outwards by the possible rounding of the values of f.
    """

    f: FDivergence

    @property
    def at_zero(self) -> float:
        return self.f.at_zero

    @property
    def slope_at_one(self) -> float:
        return float(self._value_and_chord_slopes(np.ones(1), _STEP)[1][0])

    def _value_and_chord_slopes(self, t: Floats, step: float) -> tuple[Floats, Floats, Floats, Floats]:
        """f(t), the middle slope, and the slopes of the chords to the left and to the right."""
        left, right = t * math.exp(-step), t * math.exp(step)
        low, height, high = (np.asarray(self.f.f(x)) for x in (left, t, right))
        before, after = (height - low) / (t - left), (high - height) / (right - t)
        return height, (high - low) / (right - left), np.minimum(before, after), np.maximum(before, after)

    def value(self, t: Floats) -> Floats:
        return np.asarray(self.f.f(t))

    def tangent_intercept(self, t: Floats) -> Floats:
        height, slope, _, _ = self._value_and_chord_slopes(t, _STEP)
        return height - t * slope

    def curvature_times_t_squared(self, t: Floats) -> Floats:
        step = 1e-3  # second differences lose twice as many digits
        low, height, high = (np.asarray(self.f.f(t * math.exp(h))) for h in (-step, 0.0, step))
        slope = (high - low) / (2.0 * step)  # in log t, where f_ss = t^2 f'' + t f'
        return np.asarray(np.maximum((high - 2.0 * height + low) / step**2 - slope, 1e-12))

    def steepest_line_with_intercept(self, intercept: Floats, t: Floats) -> tuple[Floats, Floats]:
        with np.errstate(all="ignore"):  # a candidate that overflows is never the best
            touch_points = self._points_where_lines_touch(intercept, t)
            points = t, touch_points, np.where(np.abs(touch_points - 1.0) < _NEAR_ONE, 1.0, touch_points)
            lines = [self._line_lowered_below_curve(intercept, point, step) for point in points for step in _STEPS]
            slopes, intercepts = (np.stack(values) for values in zip(*lines, strict=True))
            # a certificate multiplies by up to e^eps the amount by which an intercept is below the requested one
            worth = slopes * t + np.minimum(intercepts, intercept) - _MISSED * np.maximum(intercept - intercepts, 0.0)
        return _line_of_largest_worth(worth, slopes, intercepts)

    def tangent_by_best_chords(self, t: Floats) -> tuple[Floats, Floats]:
        """(slope, intercept) of the line through (t, f(t)) with the slope that the chords determine best; it may exceed f by rounding."""
        with np.errstate(all="ignore"):
            lines = []
            for step in _STEPS:
                height, middle, _, _ = self._value_and_chord_slopes(t, step)
                slope, intercept = self._line_lowered_below_curve(height - middle * t, t, step)
                lines.append((slope * t + intercept - height, middle, height - middle * t))
            worth, slopes, intercepts = (np.stack(values) for values in zip(*lines, strict=True))
            return _line_of_largest_worth(worth, slopes, intercepts)

    def _points_where_lines_touch(self, intercept: Floats, t: Floats) -> Floats:
        """About where a line with that intercept touches f; at a kink, within the smallest step that leaves slopes their digits."""
        low, high = np.log(t) - _FAR, np.log(t) + _FAR
        for _ in range(_HALVINGS):
            middle = np.exp((low + high) / 2.0)
            height, slope, _, _ = self._value_and_chord_slopes(middle, _SMALL)
            above = height - middle * slope > intercept  # the intercept falls as t grows
            low, high = np.where(above, np.log(middle), low), np.where(above, high, np.log(middle))
        return np.exp((low + high) / 2.0)

    def _line_lowered_below_curve(self, intercept: Floats, t: Floats, step: float) -> tuple[Floats, Floats]:
        """The line through (t, f(t)) with about that intercept, lowered until it is below f."""
        height, middle, before, after = self._value_and_chord_slopes(t, step)
        rounding = _OWN_ERROR * (np.abs(height) + np.abs(middle) * t + t)
        slope_error = 4.0 * rounding / (step * t)
        before, after = before - slope_error, after + slope_error
        best_slope = np.clip((height - intercept) / t, before, after)
        slope = np.minimum(best_slope, after - 2.0 * slope_error)
        left_excess = np.maximum(before + 2.0 * slope_error - slope, 0.0) * t
        gap = (after - before) * t * math.expm1(step)
        return slope, height - slope * t - left_excess - gap - 4.0 * rounding


ConvexCurve = SmoothCurve | HockeyStickCurve | FiniteDifferenceCurve


def _line_of_largest_worth(worth: Floats, slopes: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
    """(slope, intercept) of the line worth the most, of candidates along the first axis."""
    best = np.argmax(np.where(np.isfinite(worth), worth, -np.inf), axis=0)[None]
    return np.take_along_axis(slopes, best, axis=0)[0], np.take_along_axis(intercepts, best, axis=0)[0]


def tangent_line(curve: ConvexCurve, t: Floats) -> tuple[Floats, Floats]:
    """(slope, intercept) of the tangent of f at t, up to rounding."""
    if isinstance(curve, FiniteDifferenceCurve):
        return curve.tangent_by_best_chords(t)
    intercept = curve.tangent_intercept(t)
    return (curve.value(t) - intercept) / t, intercept


def _sum_rounded_down(first: float, second: Floats) -> Floats:
    """first + second, rounded down."""
    return first + second - _DOWN * (first + np.abs(second))


SMOOTH: dict[str, SmoothCurve] = {
    "kl": SmoothCurve(  # t log t; slope <= 1 + log(-intercept)
        0.0, 1.0,
        lambda t: np.asarray(t * np.log(t)),
        lambda t: -t,
        lambda t: t,
        lambda intercept: _sum_rounded_down(1.0, np.log(-intercept)),
    ),
    "reverse_kl": SmoothCurve(  # -log t
        math.inf, -1.0,
        lambda t: np.asarray(-np.log(t)),
        lambda t: 1.0 - np.log(t),
        np.ones_like,
        lambda intercept: _sum_rounded_down(0.0, -np.exp(intercept - 1.0) * (1.0 + _DOWN * np.abs(intercept))),
    ),
    "hellinger": SmoothCurve(  # (1 - sqrt t)^2; slope <= 1 - 1/(1 - intercept)
        1.0, 0.0,
        lambda t: np.asarray(np.square(1.0 - np.sqrt(t))),
        lambda t: 1.0 - np.sqrt(t),
        lambda t: np.sqrt(t) / 2.0,
        lambda intercept: _sum_rounded_down(1.0, -1.0 / (1.0 - intercept)),
        1.0 - _BELOW,
    ),
    "chi2": SmoothCurve(  # t^2 - 1; slope <= 2 sqrt(-1 - intercept), where -1 - t^2 is rounded for small t
        -1.0, 2.0,
        lambda t: np.asarray(t * t - 1.0),
        lambda t: -1.0 - t * t,
        lambda t: 2.0 * t * t,
        lambda intercept: 2.0 * np.sqrt(-1.0 - intercept) * (1.0 - _DOWN),
        -1.0,
    ),
    "jensen_shannon": SmoothCurve(  # (t log t - (1 + t) log((1 + t)/2))/2
        math.log(2) / 2, 0.0,
        lambda t: np.asarray((t * np.log(t) - (1.0 + t) * np.log((1.0 + t) / 2.0)) / 2.0),
        lambda t: -np.log((1.0 + t) / 2.0) / 2.0,
        lambda t: t / (1.0 + t) / 2.0,
        _steepest_jensen_shannon_slope,
        math.log(2) / 2 - _BELOW,
    ),
    "le_cam": SmoothCurve(  # (t - 1)^2/(2 (t + 1)); slope <= 1/2 - 2 a^2 with a = 1 - sqrt(1/4 - intercept/2)
        0.5, 0.0,
        lambda t: np.asarray(np.square(t - 1.0) / (2.0 * (t + 1.0))),
        lambda t: (1.0 - t) / (1.0 + t) * ((1.0 + 3.0 * t) / (1.0 + t)) / 2.0,
        lambda t: 4.0 * t / (1.0 + t) * (t / (1.0 + t)) / (1.0 + t),
        lambda intercept: 0.5 - 2.0 * np.square(1.0 - np.sqrt(0.25 - intercept / 2.0)) - 8.0 * _DOWN,
        0.5 - _BELOW,
    ),
}  # fmt: skip


CHECKED_IN_RATIONALS = ("kl", "tv", "hellinger", "chi2")


def is_line_below_generator(name: str, slope: Fraction, intercept: Fraction) -> bool:
    """Whether f(t) >= intercept + slope t for all t >= 0, decided in rationals (of total variation, f(t) = max(t - 1, 0))."""
    match name:
        case "kl":
            if intercept >= 0:
                return False
            low = log_bracket(-intercept)[0] if intercept <= -1 else -log_bracket(-1 / intercept)[1]
            return slope <= 1 + low
        case "hellinger":
            return slope < 1 and intercept < 1 and (1 - intercept) * (1 - slope) >= 1
        case "chi2":
            return 4 * (intercept + 1) <= -(max(slope, Fraction(0)) ** 2)
        case "tv":
            return slope <= 1 and intercept <= 0 and slope + intercept <= 0
    raise DiscreetError(f"rationals can check kl, tv, hellinger and chi2, not {name}")


def hockey_stick_gamma_or_none(f: FDivergence) -> float | None:
    """gamma if f is max(t - gamma, 0) up to a multiple of t - 1 and a constant (total variation: gamma = 1), else None."""
    if f == divergence("tv"):
        return 1.0
    return _built_in_parameter_or_none(f, "hockey_stick")


def curve_of_divergence(f: FDivergence) -> ConvexCurve:
    """The smooth curve of a divergence."""
    for name, curve in SMOOTH.items():
        if f == divergence(name):
            return curve
    order = _built_in_parameter_or_none(f, "alpha")
    if order is None:
        return FiniteDifferenceCurve(f)
    # the same divergences between distributions
    return {0.0: SMOOTH["reverse_kl"], 1.0: SMOOTH["kl"]}.get(order) or alpha_divergence_curve(order)


def _built_in_parameter_or_none(f: FDivergence, stem: str) -> float | None:
    """The number in the name of a built-in divergence of that name; None for a user's f of any name."""
    family, _, parameter = f.name.partition(":")
    try:
        return float(parameter) if family == stem and f == divergence(f.name) else None
    except DiscreetError:
        return None
