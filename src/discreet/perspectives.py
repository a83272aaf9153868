"""q f(p/q) for the divergences shipped, on positive p and q of any size, without a ratio that overflows or a difference that cancels.

A perspective is a convex function of (p, q), homogeneous of degree one. It is given p - q too, which may be known to more digits than p
and q show.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def log_ratio(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """log(p/q), exact near p = q and free of overflow: mantissas and exponents are divided apart."""
    grown = difference / q
    (mantissa_p, exponent_p), (mantissa_q, exponent_q) = np.frexp(p), np.frexp(q)
    apart = np.log(mantissa_p / mantissa_q) + (exponent_p - exponent_q) * math.log(2)
    return np.where(np.abs(grown) <= 0.5, np.log1p(grown), apart)


def contrast(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """(p - q)/(p + q) without the sum that may overflow."""
    larger = np.maximum(p, q)
    return np.asarray(difference / larger / (1 + np.minimum(p, q) / larger))


def power_series(t: FloatArray, order: float) -> FloatArray:
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
        if self.order < 0.5:  # order 1 - a is order a with p and q exchanged; no division by a small a is left
            return PowerPerspective(1.0 - self.order)(q, p, -difference)
        from scipy.special import exprel  # here, because importing it costs more than most commands do

        t, exponent = difference / q, (self.order - 1.0) * log_ratio(p, q, difference)
        grown = np.where(exponent < 600.0, p * exprel(exponent), np.exp(np.log(p) + exponent - np.log(exponent)))
        values = np.asarray((log_ratio(p, q, difference) * grown - difference) / self.order)
        near = np.abs(t) * max(1.0, self.order) <= 0.125  # where that cancels, and the series does not
        values[near] = q[near] * power_series(t[near], self.order)
        return values


@dataclass(frozen=True)
class Excess:
    """max(p - gamma q, 0); for gamma < 1 with its tangent taken off, which leaves max(gamma q - p, 0)."""

    gamma: float

    def __call__(self, p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
        side = -1.0 if self.gamma < 1 else 1.0
        apart = difference if self.gamma == 1 else p - self.gamma * q
        return np.maximum(side * apart, 0.0)


def relative_entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    return p * log_ratio(p, q, p - q)


def reverse_relative_entropy(p: FloatArray, q: FloatArray) -> FloatArray:
    return q * log_ratio(q, p, q - p)


def half_difference(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.abs(difference) / 2


def squared_root_difference(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.asarray(difference / (np.sqrt(p) + np.sqrt(q))) ** 2


def squared_difference(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.square(difference / np.sqrt(q))  # neither p^2 nor p/q is formed


def entropy_gap(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    """(p log(p/m) + q log(q/m))/2 with m = (p + q)/2 is m (k(s) + k(-s))/2: p = m (1 + s), q = m (1 - s)."""
    s = contrast(p, q, difference)
    return (p / 2 + q / 2) * (entropy_excess(s) + entropy_excess(-s)) / 2


def entropy_excess(t: FloatArray) -> FloatArray:
    """k(t) = (1 + t) log(1 + t) - t on [-1, 1]."""
    grown = 1.0 + t
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(grown > 0.0, grown * np.log1p(t), 0.0) - t  # 0 log 0 = 0
    near = np.abs(t) <= 0.125
    values[near] = power_series(t[near], 1.0)
    return values


def triangular(p: FloatArray, q: FloatArray, difference: FloatArray) -> FloatArray:
    return np.abs(difference) * np.abs(contrast(p, q, difference)) / 2
