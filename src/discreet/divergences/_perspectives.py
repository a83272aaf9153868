"""Perspectives q f(p/q) of the built-in divergences and of a user's own f, on positive p and q of any size.

The built-in ones avoid ratios that overflow and differences that cancel. A user's own f is tested on a grid, followed to its limits and
evaluated by ratios. A perspective is a convex function of (p, q), homogeneous of degree one. It also takes p - q, which may be known to more
digits than p and q show.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError

FloatArray = NDArray[np.float64]
Function = Callable[[FloatArray], FloatArray]

_GRID = 2.0 ** np.linspace(-20.0, 20.0, 641)  # holds 1 exactly


def log_of_ratio(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """log(p/q), exact near p = q and free of overflow: mantissas and exponents are divided apart."""
    growth = difference / q
    (mantissa_p, exponent_p), (mantissa_q, exponent_q) = np.frexp(p), np.frexp(q)
    split_log = np.log(mantissa_p / mantissa_q) + (exponent_p - exponent_q) * math.log(2)
    return np.where(np.abs(growth) <= 0.5, np.log1p(growth), split_log)


def difference_over_sum(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """(p - q)/(p + q) without the sum that may overflow."""
    larger = np.maximum(p, q)
    return np.asarray(difference / larger / (1 + np.minimum(p, q) / larger))


def alpha_generator_series(t: FloatArray, order: float) -> FloatArray:
    """The alpha generator at 1 + t: t^2/2 (1 + (a-2)/3 t (1 + (a-3)/4 t (1 + ...))), for |t| max(1, |a|) <= 1/8."""
    series = np.ones_like(t)
    for n in range(18, 1, -1):
        series *= t
        series *= (order - n) / (n + 1)
        series += 1.0
    return t * t / 2 * series


@dataclass(frozen=True)
class PowerPerspective:
    """(p^a q^(1-a) - a p + (a-1) q) / (a (a-1)), with KL at a = 1 and, by exchanging p and q, reverse KL at a = 0."""

    order: float

    def __call__(self, p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
        if self.order < 0.5:  # order 1 - a is order a with p and q exchanged; this avoids division by a small a
            return PowerPerspective(1.0 - self.order)(q, p, -difference)
        from scipy.special import exprel  # imported here because it is slow

        t, exponent = difference / q, (self.order - 1.0) * log_of_ratio(p, q, difference)
        growth = np.where(exponent < 600.0, p * exprel(exponent), np.exp(np.log(p) + exponent - np.log(exponent)))
        values = np.asarray((log_of_ratio(p, q, difference) * growth - difference) / self.order)
        is_near = np.abs(t) * max(1.0, self.order) <= 0.125  # where that cancels, and the series does not
        values[is_near] = q[is_near] * alpha_generator_series(t[is_near], self.order)
        return values


@dataclass(frozen=True)
class HockeyStickPerspective:
    """max(p - gamma q, 0); for gamma < 1 less its tangent, which gives max(gamma q - p, 0)."""

    gamma: float

    def __call__(self, p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
        side = -1.0 if self.gamma < 1 else 1.0
        excess = difference if self.gamma == 1 else p - self.gamma * q
        return np.maximum(side * excess, 0.0)


def relative_entropy_terms(p: FloatArray, q: FloatArray) -> FloatArray:
    return p * log_of_ratio(p, q, p - q)


def reverse_relative_entropy_terms(p: FloatArray, q: FloatArray) -> FloatArray:
    return q * log_of_ratio(q, p, q - p)


def total_variation_terms(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.abs(difference) / 2


def hellinger_terms(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.asarray(difference / (np.sqrt(p) + np.sqrt(q))) ** 2


def chi_squared_terms(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.square(difference / np.sqrt(q))  # neither p^2 nor p/q is formed


def jensen_shannon_terms(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """(p log(p/m) + q log(q/m))/2 with m = (p + q)/2 is m (k(s) + k(-s))/2: p = m (1 + s), q = m (1 - s)."""
    s = difference_over_sum(p, q, difference)
    return (p / 2 + q / 2) * (kl_generator_at_one_plus(s) + kl_generator_at_one_plus(-s)) / 2


def kl_generator_at_one_plus(t: FloatArray) -> FloatArray:
    """k(t) = (1 + t) log(1 + t) - t on [-1, 1]."""
    base = 1.0 + t
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(base > 0.0, base * np.log1p(t), 0.0) - t  # 0 log 0 = 0
    is_near = np.abs(t) <= 0.125
    values[is_near] = alpha_generator_series(t[is_near], 1.0)
    return values


def le_cam_terms(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.abs(difference) * np.abs(difference_over_sum(p, q, difference)) / 2


# A user's own f: tested on a grid, followed to its limits, evaluated by ratios.


@dataclass(frozen=True)
class RatioPerspective:
    """q f(p/q) through the ratio, for an f known only as a function of floats."""

    f: Function
    at_zero: float
    slope_at_infinity: float

    def __call__(self, p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
        ratio = p / q
        in_range = (ratio > 0) & np.isfinite(ratio)
        values = evaluate_generator(self.f, np.where(in_range, ratio, 1.0))
        _refuse_flagged_generator_values(
            np.isnan(values), ratio, values, "is not a number; rewrite f so that it does not overflow"
        )
        limits = np.where(p > q, p * self.slope_at_infinity, q * self.at_zero)
        return np.where(in_range & np.isfinite(values), q * values, limits)


def evaluate_generator(f: Function, x: FloatArray) -> FloatArray:
    try:
        with np.errstate(all="ignore"):
            given_values = f(x.copy())  # f may change it in place
            if np.iscomplexobj(given_values):
                raise TypeError("complex values")
            values = np.asarray(given_values, dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError) as cause:
        raise DiscreetError(f"f cannot be evaluated on an array of floats ({cause}); write it with numpy") from cause
    if values.shape != x.shape:
        raise DiscreetError(
            f"f maps an array of shape {x.shape} to {values.shape}; write it with numpy, entry by entry"
        )
    return values


def refuse_unless_convex_generator(f: Function) -> None:
    """Reject f unless f(1) = 0 and, on the grid, f is a number and never above the chord of its neighbours."""
    values = evaluate_generator(f, _GRID)
    _refuse_flagged_generator_values(
        np.isnan(values) | np.isneginf(values), _GRID, values, "is not a real number; f must be finite on (0, inf)"
    )
    _refuse_flagged_generator_values(
        (_GRID == 1) & (np.abs(values) > 1e-12), _GRID, values, "is not 0; subtract it from f"
    )
    left, middle, right = _GRID[:-2], _GRID[1:-1], _GRID[2:]
    share = (right - middle) / (right - left)
    with np.errstate(all="ignore"):
        chord = share * values[:-2] + (1 - share) * values[2:]
        rounding = 1e-10 * (1 + middle + np.abs(values[1:-1]))
        above = ~(values[1:-1] <= chord + rounding)
    _refuse_flagged_generator_values(
        above, middle, values[1:-1], "lies above the chord of its neighbours; f must be convex"
    )


def refuse_limits_below_chords(f: Function, at_zero: float, slope_at_infinity: float) -> None:
    """Reject limits that no convex f with the values on the grid has: the outermost chords bound f(0) and lim f(x)/x from below."""
    values = evaluate_generator(f, _GRID)
    with np.errstate(all="ignore"):
        slopes = np.diff(values) / np.diff(_GRID)
        bounds = {
            "at_zero": (at_zero, values[0] - slopes[0] * _GRID[0], values[0]),
            "slope_at_infinity": (slope_at_infinity, slopes[-1], values[-1] / _GRID[-1]),
        }
    for name, (limit, bound, scale) in bounds.items():
        if np.isfinite(bound) and limit < bound - 1e-8 * (1 + abs(scale)):
            raise DiscreetError(
                f"{name} = {limit:g} is too small: a convex f with these values has at least {bound:g}; correct it or leave it out"
            )


def _refuse_flagged_generator_values(bad: NDArray[np.bool_], x: FloatArray, values: FloatArray, problem: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise DiscreetError(f"f({x[first]:g}) = {values[first]:g} {problem}")


def limit_of_sequence(name: str, values: FloatArray) -> float:
    """The limit of a sequence that clearly converges, or inf if it clearly grows for ever; otherwise an error that asks for it.

    A convex f is monotone near its ends, so growth by steps that do not shrink has no finite limit. Overflowing values are ignored beside
    four that do not overflow: x^2/(1 + x) turns infinite long before its slope differs from 1.
    """
    last = values[np.isfinite(values)][-4:]
    steps = np.diff(last)
    if last.size < 4 and np.isposinf(values).any():
        return math.inf
    if last.size == 4 and np.ptp(last) <= 1e-12 * (1 + abs(last[-1])):
        return 0.0 if abs(last[-1]) < abs(steps[-1]) else float(last[-1])  # still falling: x log x on its way to 0
    if last.size == 4 and np.all(steps > 0) and np.all(steps[1:] >= (1 - 1e-10) * steps[:-1]):
        return math.inf
    raise DiscreetError(f"{name} cannot be found numerically (last values {last.tolist()}); give {name}=")
