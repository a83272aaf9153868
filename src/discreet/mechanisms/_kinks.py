"""Quadrature nodes that end where the output density has a kink.

q = clip(slope p/h + lift b, b, B) h is as smooth as p and h except where p/h passes a level. Panels that a kink crosses are cut into lines,
and every line is cut at its roots. Along one axis of a panel the roots are those of a polynomial through known values; between them
Gauss-Legendre nodes converge as fast as p and h allow. The integrand over the other axes is then smooth except at the ends of the kink, and
its own Legendre coefficients show how well it is resolved. The roots need not be exact: a cut that misses a kink by d costs O(d^2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet._base.quadrature import Panels, errors_on_unit_cube, gauss_rule, tensor_rule
from discreet.families import ContinuousFamily
from discreet.privacy.tradeoff import Constants

Floats = NDArray[np.float64]
_SMALLEST = 1e-300
Evaluate = Callable[[Floats, Floats], Floats]

_STEPS = 5  # of regula falsi, each on all roots at once


@dataclass(frozen=True, eq=False)
class CutLines:
    """Nodes on the segments of the lines of kinked panels: reference masses and p/h (s, order), and each segment's line (s,)."""

    masses: Floats
    ratio: Floats
    line: NDArray[np.intp]
    lines: int
    line_weights: Floats
    order: int
    dim: int

    @property
    def panel(self) -> NDArray[np.intp]:
        """(s,) the panel each segment belongs to."""
        return self.line // len(self.line_weights)

    def errors(self, values: Floats) -> Floats:
        """(panels,) estimated errors of the integrals of values (s, order) times h: along the segments, then across the lines."""
        inside = errors_on_unit_cube(self.masses * values / gauss_rule(self.order)[1], self.order, 1)
        errors = np.bincount(self.panel, inside, minlength=self.lines // len(self.line_weights)).astype(np.float64)
        if self.dim > 1:
            along = np.bincount(self.line, (self.masses * values).sum(axis=1), minlength=self.lines)
            heights = along.reshape(-1, len(self.line_weights)) / self.line_weights
            errors += errors_on_unit_cube(heights, self.order, self.dim - 1, fast=0.0)
        return errors


def cut_lines(
    family: ContinuousFamily, panels: Panels, ratio: Floats, levels: list[float], evaluate: Evaluate
) -> CutLines:
    """Panels with p/h = ratio (n, order^dim) on their nodes, cut where p/h passes a level.

    `evaluate(x, log_reference)` gives p/h, in the same units, at new points.
    """
    dim = family.dim
    order = round(ratio.shape[1] ** (1.0 / dim))
    cube = ratio.reshape((len(panels),) + (order,) * dim)
    variation = [np.abs(np.diff(cube, axis=axis + 1)).reshape(len(panels), -1).sum(axis=1) for axis in range(dim)]
    across = np.argmax(variation, axis=0)  # the axis along which p/h changes most is cut
    outer_places, outer_weights = tensor_rule(order, dim - 1) if dim > 1 else (np.empty((1, 0)), np.ones(1))
    gauss_places, gauss_weights = gauss_rule(order)
    coordinates, weights, owner = [], [], []
    for axis in range(dim):
        group = np.flatnonzero(across == axis)
        if not len(group):
            continue
        values = np.moveaxis(cube[group], axis + 1, -1).reshape(-1, order)
        line, start, stop = line_segments(values, np.asarray(levels)[:, None])
        inner = start[:, None] + (stop - start)[:, None] * gauss_places
        outer = np.broadcast_to(outer_places[line % len(outer_places)][:, None, :], (*inner.shape, dim - 1))
        unit = np.insert(outer, axis, inner, axis=2)
        panel = group[line // len(outer_places)]
        low, width = panels.lower[panel], (panels.upper - panels.lower)[panel]
        coordinates.append(low[:, None, :] + width[:, None, :] * unit)
        share = outer_weights[line % len(outer_places)] * (stop - start) * np.prod(width, axis=1)
        weights.append(share[:, None] * gauss_weights)
        owner.append(panel * len(outer_places) + line % len(outer_places))
    t = np.concatenate(coordinates).reshape(-1, dim)
    x = family.chart.points(t)
    log_reference = family.log_reference(x)
    with np.errstate(invalid="ignore"):
        element = np.nan_to_num(np.exp(log_reference) * family.chart.jacobian(t), nan=0.0).reshape(-1, order)
    masses = np.concatenate(weights) * element
    found = np.where(element > 0.0, evaluate(x, log_reference).reshape(-1, order), 0.0)
    lines = len(panels) * len(outer_places)
    return CutLines(masses, found, np.concatenate(owner), lines, outer_weights, order, dim)


def kink_levels(constants: Constants, slope: Floats, lift: Floats) -> Floats:
    """(4, n) values of p/h where q = clip(slope p/h + lift b, b, B) meets b, meets B, and where p meets q; 0 for none."""
    b, top = constants.b, constants.B
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.isinf(slope)
        from_below = np.where(steep, 0.0, b * (1.0 - lift) / slope)
        from_above = np.where(steep, 0.0, (top - lift * b) / slope)
        inside = np.where(slope < 1.0, lift * b / (1.0 - slope), 0.0)
    return np.stack([from_below, from_above, np.where(slope < 1.0, b, top), inside])


def line_segments(values: Floats, levels: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
    """(line, start, stop) of the pieces of every line (l, order) of ratios between the places where it passes a level.

    Levels (n, 1) are for all lines alike, levels (n, l) each line's own.
    """
    # the logarithm of p/h is closer to a polynomial than p/h itself: a quadratic, for a Gaussian
    root_line, root = _roots(np.log(np.maximum(values, _SMALLEST)), np.log(np.maximum(levels, _SMALLEST)))
    line = np.concatenate([np.arange(len(values)), root_line])
    start = np.concatenate([np.zeros(len(values)), root])
    sorted_by_line = np.lexsort((start, line))
    line, start = line[sorted_by_line], start[sorted_by_line]
    last = np.append(line[1:] != line[:-1], True)
    stop = np.where(last, 1.0, np.append(start[1:], 1.0))
    long_enough = stop - start > 1e-13
    return line[long_enough], start[long_enough], stop[long_enough]


def _roots(values: Floats, levels: Floats) -> tuple[NDArray[np.intp], Floats]:
    """(line, place in [0, 1]) where the polynomials through values (l, order) at the Gauss-Legendre places pass levels (n, l)."""
    order = values.shape[1]
    places = np.concatenate([[0.0], gauss_rule(order)[0], [1.0]])
    ends = values @ at_ends(order)
    sampled = np.concatenate([ends[:, :1], values, ends[:, 1:]], axis=1)
    above = sampled > levels[:, :, None]
    which, line, gap = np.nonzero(above[:, :, :-1] != above[:, :, 1:])
    level = np.broadcast_to(levels, (len(levels), len(values)))[which, line]
    held = values[line] @ to_coefficients(order)
    low, high = places[gap], places[gap + 1]
    at_low, at_high = sampled[line, gap] - level, sampled[line, gap + 1] - level
    place, went_left, went_right = low, np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    for _ in range(_STEPS):  # regula falsi; an end that stays twice has its value halved (the "Illinois" rule)
        place = low + (high - low) * np.clip(at_low / (at_low - at_high), 0.001, 0.999)
        value = legendre_values(held, place) - level
        left = (value > 0.0) == (at_low > 0.0)
        low, high = np.where(left, place, low), np.where(left, high, place)
        at_low = np.where(left, value, np.where(went_right, 0.5, 1.0) * at_low)
        at_high = np.where(left, np.where(went_left, 0.5, 1.0) * at_high, value)
        went_left, went_right = left, ~left
    return line, place


def legendre_values(coefficients: Floats, place: Floats) -> Floats:
    """Polynomials with Legendre coefficients (n, order) on [0, 1], at places (n, ...) of their own (Clenshaw's recurrence)."""
    x = 2.0 * place - 1.0
    terms = coefficients.T.reshape(coefficients.shape[::-1] + (1,) * (place.ndim - 1))
    last, before = np.zeros_like(x), np.zeros_like(x)
    for degree in range(len(terms) - 1, 0, -1):
        last, before = (
            (2 * degree + 1) / (degree + 1) * x * last - (degree + 1) / (degree + 2) * before + terms[degree],
            last,
        )
    return np.asarray(x * last - 0.5 * before + terms[0])


@cache
def to_coefficients(order: int) -> Floats:
    """(order, order): values at the Gauss-Legendre places to the Legendre coefficients of the polynomial through them."""
    nodes, weights = gauss_rule(order)
    basis = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, order - 1)
    return np.ascontiguousarray(weights[:, None] * basis * (2 * np.arange(order) + 1))


@cache
def at_ends(order: int) -> Floats:
    """(order, 2): the map from values at the Gauss-Legendre places to the polynomial's values at 0 and 1."""
    signs = (-1.0) ** np.arange(order)
    return np.ascontiguousarray(to_coefficients(order) @ np.stack([signs, np.ones(order)], axis=1))
