"""f-divergences, by name or with a user's own f: D_f(P||Q) = sum_x q_x f(p_x / q_x) for convex f with f(1) = 0.

See [paper, Section 2.1 and Appendix B]. Zero conventions, with f(0) the limit at zero and f*(0) = lim f(x)/x the slope at infinity (either
may be infinite):

    0 f(0/0) = 0,    q f(0/q) = q f(0),    0 f(p/0) = p f*(0).

Hence 0 <= D_f(P||Q) <= M_f = f(0) + f*(0) for distributions, with equality on the right for disjoint supports.

Each divergence is the sum of its perspective q f(p/q), a convex function of (p, q) that is homogeneous of degree one. The built-in ones
evaluate it without forming a ratio that overflows. Densities on quadrature nodes and partial sums are summed as given, but the theorems
assume equal masses: f and f + c (x - 1) are one divergence between distributions (x^2 - 1 and (x - 1)^2 are both chi-squared), and two
different sums otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.labelled import LawLike, align_laws, refuse_masked_array
from discreet.divergences._perspectives import (
    Function,
    HockeyStickPerspective,
    PowerPerspective,
    RatioPerspective,
    chi_squared_terms,
    evaluate_generator,
    hellinger_terms,
    jensen_shannon_terms,
    le_cam_terms,
    limit_of_sequence,
    refuse_limits_below_chords,
    refuse_unless_convex_generator,
    relative_entropy_terms,
    reverse_relative_entropy_terms,
    total_variation_terms,
)
from discreet.errors import NON_NEGATIVE, POSITIVE, DiscreetError, Range, check_kind

FloatArray = NDArray[np.float64]
Perspective = Callable[[FloatArray, FloatArray], FloatArray]
Tangent = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

_REAL = Range(-math.inf, math.inf, low_open=True, high_open=True)
_LIMIT = Range(-math.inf, math.inf, low_open=True)
_TOWARDS_ZERO = 2.0 ** -np.arange(30.0, 961.0, 30.0)


@dataclass(frozen=True)
class _Generator:
    """f(x) = g(x) + c (x - 1), with c = `slope_at_one` a slope of f at 1, so that g >= 0.

    `tangent` is the perspective of g on positive p and q, as a function of p, q and p - q (which may be known to more digits than p and q
    show). Between distributions it has the same sum as that of f but no negative term: nothing cancels, and rounding cannot make a divergence
    negative. `exact` is the perspective of f itself, given where adding c (p - q) back would cancel. (A user's own f is summed as given: c =
    0.)
    """

    tangent: Tangent
    slope_at_one: float = 0.0
    exact: Perspective | None = None

    def perspective(self, p: FloatArray, q: FloatArray) -> FloatArray:
        return self.exact(p, q) if self.exact else self.terms_above_tangent(p, q) + self.slope_at_one * (p - q)

    def terms_above_tangent(self, p: FloatArray, q: FloatArray) -> FloatArray:
        return self.tangent(p, q, p - q)

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.perspective(x, np.ones_like(x))


@dataclass(frozen=True, init=False)
class FDivergence:
    """The divergence of one convex f with f(1) = 0, as a value: `d(p, q)`, `d.f(x)`, `d.maximum`.

    `f` is a vectorised function of positive floats. It is tested on a grid; an f that is not convex there is an error. The limits f(0) and
    f*(0) = lim f(x)/x are found numerically unless `at_zero` and `slope_at_infinity` are given. Given limits are an error only where a convex
    f cannot have them: below what its chords on the grid reach. Larger ones are taken as they are.

    A user's own f is as accurate as its floats: where p/q or f(p/q) overflows, the limit f(0) or f*(0) is used.

    Args:
        f: convex on the positive numbers with f(1) = 0, written with numpy.
        name: its name in messages.
        at_zero: the limit f(0); found numerically unless given.
        slope_at_infinity: the limit of f(x)/x; found numerically unless given.

    Raises:
        DiscreetError: for an f that is not convex, not 0 at 1 or not a number somewhere, limits that cannot be found or that no convex f
            with these values has, or a name that is not a text.
    """

    name: str
    at_zero: float
    slope_at_infinity: float
    _generator: _Generator = field(repr=False)

    def __init__(
        self, f: Function, *, name: str = "f", at_zero: float | None = None, slope_at_infinity: float | None = None
    ) -> None:
        refuse_unless_convex_generator(f)
        if at_zero is None:
            at_zero = limit_of_sequence("at_zero", evaluate_generator(f, _TOWARDS_ZERO))
        if slope_at_infinity is None:
            slope_at_infinity = limit_of_sequence(
                "slope_at_infinity", evaluate_generator(f, 1.0 / _TOWARDS_ZERO) * _TOWARDS_ZERO
            )
        at_zero = _LIMIT.check("at_zero", at_zero)
        slope_at_infinity = _LIMIT.check("slope_at_infinity", slope_at_infinity)
        check_kind("name", name, str, "pass a name for messages, tables and pictures")
        if not isinstance(f, _Generator):
            refuse_limits_below_chords(f, at_zero, slope_at_infinity)
        generator = f if isinstance(f, _Generator) else _Generator(RatioPerspective(f, at_zero, slope_at_infinity))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "at_zero", at_zero)
        object.__setattr__(self, "slope_at_infinity", slope_at_infinity)
        object.__setattr__(self, "_generator", generator)

    @property
    def maximum(self) -> float:
        """M_f = f(0) + f*(0): the largest divergence of two distributions, attained by disjoint supports."""
        return self.at_zero + self.slope_at_infinity

    def f(self, x: ArrayLike) -> float | FloatArray:
        """f(x) for x >= 0, with f(0) the limit; a float for a number, an array for an array."""
        entries = _read_nonnegative_entries("x", x)
        return _float_or_array(
            self._terms_extended_to_zeros(self._generator.perspective, 0.0, entries, np.ones_like(entries))
        )

    def perspective(self, p: ArrayLike, q: ArrayLike) -> float | FloatArray:
        """q f(p/q) entry by entry, with the zero conventions; p and q broadcast."""
        p, q = _broadcast_laws(_read_nonnegative_entries("p", p), _read_nonnegative_entries("q", q))
        return _float_or_array(self._terms_extended_to_zeros(self._generator.perspective, 0.0, p, q))

    def chord_at_one(self, below: float, above: float, *, low: float | None = None) -> float:
        """The height at 1 of the chord of f from 1 - below to 1 + above, which is the paper's risk.

        The tangent of f at 1 is subtracted first: it is a chord of height 0, and without it nothing cancels. The two distances are passed
        instead of the ends, because 1 + 1e-20 is not a float. Nor is 1 - 1e-20: pass the lower end, `low`, where it may be that close to 0.
        (A user's own f is evaluated at floats: below distances of about 1e-8 its values near 1 have few digits.)
        """
        if below <= 0.0 or above <= 0.0:
            return 0.0
        weight, end = below / (below + above), 1.0 - below if low is None else low
        lower_end = self._excess_above_tangent(end, -below)
        return weight * self._excess_above_tangent(1.0 + above, above) + above / (below + above) * lower_end

    def _excess_above_tangent(self, x: float, t: float) -> float:
        """f(x) - c t at x = 1 + t >= 0, with c the generator's slope at 1."""
        generator = self._generator
        if x <= 0.0:
            return self.at_zero + generator.slope_at_one
        with np.errstate(all="ignore"):  # on overflow the result exceeds the largest float
            return float(generator.tangent(np.array([x]), np.ones(1), np.array([t]))[0])

    def __call__(self, p: LawLike, q: LawLike, *, weights: ArrayLike | None = None) -> float | FloatArray:
        """D_f(P||Q) over the last axis: a float for two distributions, an array for batches (leading axes broadcast).

        With `weights`, one per node, p and q are densities and the result is sum(weights * q f(p/q)). Masses that agree up to rounding count
        as equal, so that between distributions the result is never negative; other masses are used as given.
        """
        p, q = _align_labelled_laws(p, q)
        nodes = _read_node_weights(weights, p.shape[-1])
        generator = self._generator
        total = _sum_over_nodes(
            self._terms_extended_to_zeros(generator.terms_above_tangent, generator.slope_at_one, p, q), nodes
        )
        equal = _masses_agree(p, q, nodes) if generator.slope_at_one else np.True_
        if not np.all(equal):
            total = np.where(
                equal, total, _sum_over_nodes(self._terms_extended_to_zeros(generator.perspective, 0.0, p, q), nodes)
            )
        return _float_or_array(total)

    def _terms_extended_to_zeros(
        self, perspective: Perspective, slope: float, p: FloatArray, q: FloatArray
    ) -> FloatArray:
        """The perspective of f(x) - slope (x - 1), extended from positive entries to zeros by the conventions."""
        terms = np.zeros(p.shape)  # 0 f(0/0) = 0
        both, only_q, only_p = (p > 0) & (q > 0), (p == 0) & (q > 0), (p > 0) & (q == 0)
        with np.errstate(all="ignore"):  # on overflow the result exceeds the largest float
            terms[both] = perspective(p[both], q[both])
            terms[only_q] = q[only_q] * (self.at_zero + slope)  # q f(0/q) = q f(0)
            terms[only_p] = p[only_p] * (self.slope_at_infinity - slope)  # 0 f(p/0) = p f*(0)
        return terms


# Input: finite non-negative entries, one shared last axis.


def _read_nonnegative_entries(name: str, values: ArrayLike) -> FloatArray:
    refuse_masked_array(values, name)
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex entries")
        entries = np.asarray(values, dtype=np.float64)
    except (
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
    ) as cause:  # torch's, for a tensor that records gradients
        raise DiscreetError(f"{name} is not an array of real numbers: {cause}") from cause
    valid = (entries >= 0) & (entries < np.inf)
    if not valid.all():
        index = tuple(int(i) for i in np.argwhere(~valid)[0])
        label = f"{name}[{', '.join(map(str, index))}]" if index else name
        raise DiscreetError(f"{label} = {entries[index]:g} is not in {NON_NEGATIVE}")
    return entries


def _align_labelled_laws(p: LawLike, q: LawLike) -> tuple[FloatArray, FloatArray]:
    ordered_p, ordered_q = align_laws(p, q)
    first, second = _read_nonnegative_entries("p", ordered_p), _read_nonnegative_entries("q", ordered_q)
    if first.ndim == 0 or first.shape[-1:] != second.shape[-1:]:
        raise _error_for_different_shapes(first, second)
    return _broadcast_laws(first, second)


def _broadcast_laws(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    try:
        first, second = np.broadcast_arrays(p, q)
    except ValueError:
        raise _error_for_different_shapes(p, q) from None
    return first, second


def _error_for_different_shapes(p: FloatArray, q: FloatArray) -> DiscreetError:
    return DiscreetError(
        f"p has shape {p.shape} but q has {q.shape}; the last axis of both must hold the same outcomes"
    )


def _read_node_weights(weights: ArrayLike | None, size: int) -> FloatArray | None:
    if weights is None:
        return None
    nodes = _read_nonnegative_entries("weights", weights)
    if nodes.shape != (size,):
        raise DiscreetError(f"weights has shape {nodes.shape}; give one weight for each of the {size} nodes")
    return nodes


def _sum_over_nodes(terms: FloatArray, nodes: FloatArray | None) -> FloatArray:
    with np.errstate(all="ignore"):
        weighted_terms = terms if nodes is None else np.where(nodes > 0, nodes * terms, 0.0)  # weight 0 adds nothing
        return np.asarray(weighted_terms.sum(axis=-1))


def _masses_agree(p: FloatArray, q: FloatArray, nodes: FloatArray | None) -> NDArray[np.bool_]:
    """Whether two masses differ by no more than the rounding of normalising k floats to one (or overflow)."""
    mass_p, mass_q = _sum_over_nodes(p, nodes), _sum_over_nodes(q, nodes)
    with np.errstate(all="ignore"):
        rounding = p.shape[-1] * np.finfo(np.float64).eps * (mass_p + mass_q)
        return np.asarray(~(np.abs(mass_p - mass_q) > rounding))


def _float_or_array(values: FloatArray) -> float | FloatArray:
    return float(values) if values.ndim == 0 else values


# The built-in divergences.


def _make_divergence(name: str, at_zero: float, slope_at_infinity: float, generator: _Generator) -> FDivergence:
    return FDivergence(generator, name=name, at_zero=at_zero, slope_at_infinity=slope_at_infinity)


kl = _make_divergence("kl", 0.0, math.inf, _Generator(PowerPerspective(1.0), 1.0, relative_entropy_terms))
reverse_kl = _make_divergence(
    "reverse_kl", math.inf, 0.0, _Generator(PowerPerspective(0.0), -1.0, reverse_relative_entropy_terms)
)
tv = _make_divergence("tv", 0.5, 0.5, _Generator(total_variation_terms))
hellinger = _make_divergence("hellinger", 1.0, 1.0, _Generator(hellinger_terms))
chi2 = _make_divergence("chi2", -1.0, math.inf, _Generator(chi_squared_terms, 2.0))
jensen_shannon = _make_divergence("jensen_shannon", math.log(2) / 2, math.log(2) / 2, _Generator(jensen_shannon_terms))
le_cam = _make_divergence("le_cam", 0.5, 0.5, _Generator(le_cam_terms))


def alpha(order: float) -> FDivergence:
    """f(x) = (x^a - a x + a - 1)/(a (a - 1)), with its limits x log x - x + 1 at a = 1 and x - 1 - log x at a = 0.

    Order 2 is half of chi-squared, order 1/2 twice the squared Hellinger distance.

    Args:
        order: a, any real number.

    Returns:
        The divergence.

    Raises:
        DiscreetError: for an argument that is not a number.
    """
    order = _REAL.check("order", order)
    at_zero = 1.0 / order if order > 0 else math.inf
    slope_at_infinity = 1.0 / (1.0 - order) if order < 1 else math.inf
    return _make_divergence(
        f"alpha:{_shortest_decimal(order)}", at_zero, slope_at_infinity, _Generator(PowerPerspective(order))
    )


def hockey_stick(gamma: float) -> FDivergence:
    """f(x) = max(x - gamma, 0) - max(1 - gamma, 0): total variation at 1, the delta of (epsilon, delta) at e^epsilon.

    Args:
        gamma: a positive number.

    Returns:
        The divergence.

    Raises:
        DiscreetError: for an argument that is not a positive number.
    """
    gamma = POSITIVE.check("gamma", gamma)
    generator = _Generator(HockeyStickPerspective(gamma), 1.0 if gamma < 1 else 0.0)
    return _make_divergence(f"hockey_stick:{_shortest_decimal(gamma)}", min(gamma, 1.0) - 1.0, 1.0, generator)


@final
class RenyiDivergence(FDivergence):
    """log(sum p^a q^(1-a))/(a - 1) = log(1 + a (a-1) D_alpha)/(a - 1): an increasing function of the alpha divergence of the same order.

    What is nearest, worst or minimax for the alpha divergence is so for this one, and its worst case is that function of the other's. Its
    mean over clients is not a function of the other's mean, which is why designs refuse it. `f`, `perspective`, `at_zero` and
    `slope_at_infinity` are those of the alpha divergence, `alpha`.

    Args:
        order: a, positive; `renyi` gives the one of order 1.

    Raises:
        DiscreetError: for an order out of range.
    """

    def __init__(self, order: float) -> None:
        order = POSITIVE.check("order", order, "a Renyi divergence has a positive order; 1 is 'kl'")
        if order == 1.0:
            raise DiscreetError("order = 1 is not a Renyi divergence of its own; renyi(1) is 'kl'")
        base = alpha(order)
        super().__init__(
            base._generator,
            name=f"renyi:{_shortest_decimal(order)}",
            at_zero=base.at_zero,
            slope_at_infinity=base.slope_at_infinity,
        )
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "alpha", base)

    order: float
    alpha: FDivergence

    @property
    def maximum(self) -> float:
        """Infinite: distributions with disjoint supports are infinitely far apart."""
        return math.inf

    def __call__(self, p: LawLike, q: LawLike, *, weights: ArrayLike | None = None) -> float | FloatArray:
        """The divergence of distributions over the last axis, as for `FDivergence`."""
        alpha_values = np.asarray(self.alpha(p, q, weights=weights))
        first, second = _align_labelled_laws(p, q)
        nodes = _read_node_weights(weights, first.shape[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = self.order * np.log(first) + (1.0 - self.order) * np.log(second)
            terms = terms if nodes is None else terms + np.log(nodes)
        terms[(first == 0.0) | np.isnan(terms)] = -np.inf  # 0^a q^(1-a) = 0
        return _float_or_array(self._renyi_from_alpha(alpha_values, np.logaddexp.reduce(terms, axis=-1)))

    def chord_at_one(self, below: float, above: float, *, low: float | None = None) -> float:
        """The same function of the height at 1 of the chord of the alpha generator: the paper's risk."""
        if below <= 0.0 or above <= 0.0:
            return 0.0
        end = 1.0 - below if low is None else low
        log_of_end = math.log1p(-below) if end >= 0.5 else math.log(end) if end > 0.0 else -math.inf
        at_high = math.log(below) + self.order * math.log1p(above)
        at_low = math.log(above) + self.order * log_of_end
        log_sum = np.logaddexp(at_high, at_low) - math.log(below + above)
        chord = self.alpha.chord_at_one(below, above, low=low)
        return float(self._renyi_from_alpha(np.asarray(chord), np.asarray(log_sum)))

    def _renyi_from_alpha(self, alpha_values: FloatArray, log_sum: FloatArray) -> FloatArray:
        """log(1 + a (a-1) alpha_values)/(a - 1) where that keeps its digits; elsewhere from `log_sum`, since the sum may overflow."""
        with np.errstate(all="ignore"):  # on overflow log_sum is used
            growth = self.order * (self.order - 1.0) * alpha_values
            is_small = np.abs(growth) <= 0.5
            values = np.where(is_small, np.log1p(np.where(is_small, growth, 0.0)), log_sum) / (self.order - 1.0)
        return np.asarray(np.maximum(values, 0.0))


def renyi(order: float) -> FDivergence:
    """The Renyi divergence of a positive order; of order 1 it is KL.

    Args:
        order: a positive number.

    Returns:
        The divergence.

    Raises:
        DiscreetError: for an argument that is not a positive number.
    """
    order = POSITIVE.check("order", order, "a Renyi divergence has a positive order; 1 is 'kl'")
    return kl if order == 1.0 else RenyiDivergence(order)


def _shortest_decimal(value: float) -> str:
    """The shortest decimal that reads back as the same float."""
    return np.format_float_positional(value, trim="-")


_NAMED = {d.name: d for d in (kl, reverse_kl, tv, hellinger, chi2, jensen_shannon, le_cam)}
_FAMILIES: dict[str, Callable[[float], FDivergence]] = {"alpha": alpha, "hockey_stick": hockey_stick, "renyi": renyi}
_ALIASES = {
    "kullback_leibler": "kl",
    "relative_entropy": "kl",
    "total_variation": "tv",
    "total_variation_distance": "tv",
    "squared_hellinger": "hellinger",
    "chi_squared": "chi2",
    "chi_square": "chi2",
    "js": "jensen_shannon",
    "rényi": "renyi",
}

BUILT_IN: tuple[str, ...] = tuple(_NAMED)


def divergence(name: str | FDivergence) -> FDivergence:
    """The divergence called "kl", "total variation", "Jensen-Shannon", "alpha:0.5", "renyi:2", "hockey stick:2", ...

    Args:
        name: a name, in which case, spaces and hyphens do not matter; or a divergence, which is returned unchanged.

    Returns:
        A function of two distributions, an `FDivergence`; "renyi:..." is an increasing function of one, and its worst cases are too.

    Raises:
        DiscreetError: for an unknown name; the message lists the known ones.
    """
    if isinstance(name, FDivergence):
        return name
    if not isinstance(name, str):
        raise DiscreetError(f"divergence = {name!r} is neither a name nor an FDivergence")
    stem, colon, parameter = _split_divergence_name(name)
    if stem in _NAMED and not colon:
        return _NAMED[stem]
    if stem in _FAMILIES and colon:
        try:
            value = float(parameter)
        except ValueError:
            raise DiscreetError(f"divergence = {name!r}: {parameter!r} is not a number") from None
        return _FAMILIES[stem](value)
    choices = ", ".join([*BUILT_IN, *(f"{family}:<number>" for family in _FAMILIES)])
    raise DiscreetError(f"divergence = {name!r} is not one of {choices}")


def has_form_of_divergence_name(name: str) -> bool:
    """Whether a name is one of ours, up to the number that an order takes: "kl", "renyi:2", also "renyi:two"."""
    stem, colon, _ = _split_divergence_name(name)
    return stem in (_FAMILIES if colon else _NAMED)


def _split_divergence_name(name: str) -> tuple[str, str, str]:
    """The name in its one spelling, a colon or nothing, and the parameter after it."""
    stem, colon, parameter = name.strip().lower().partition(":")
    stem = re.sub(r"[\s_-]+", "_", stem.strip())
    return _ALIASES.get(stem, stem), colon, parameter
