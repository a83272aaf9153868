"""`Population`: estimates of shares and statistics from one private sample of each client, or several, with intervals.

Counts of samples estimate Q, the average output distribution. An `Inversion` turns bounds on Q into bounds on P, the average client. For
the linear mechanism that is the unbiased estimate (Q - (1 - gamma) mu)/gamma of variance (1/(n gamma)^2) sum_i Var_{Q_i}(phi). The samples
alone show that it is at most Var_Q(phi)/(n gamma^2), with equality for clients drawn from a population. For a projection Q does not
determine P: an interval then consists of a band that no number of clients narrows, and of the noise around its ends.

A statistic is the average of a function `Phi` of the outcome. If outcomes are cells, a client's values are known only up to a cell. `low`
and `high` are then the least and the largest value of phi inside each cell, so intervals hold wherever in its cells a client's values lie;
`values` are the averages over the cells.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base.doors import OldName
from discreet._base.quadrature import gauss_rule
from discreet._base.showing import with_short_repr
from discreet.domain import LARGEST_VALUE, Bins, Domain, is_value
from discreet.errors import OPEN_UNIT, DiscreetError, ImpossibleError
from discreet.estimation import _planning as planning
from discreet.estimation._counting import SampleRows, cut_cells
from discreet.estimation._intervals import (
    AT_LIMIT,
    Ends,
    band_ends,
    clopper_pearson,
    exact_ends,
    first_past_limit,
    largest_average,
    tail,
)
from discreet.estimation._inversion import (
    Inversion,
    invert_intervals,
    lower_ends_together,
    membership_bounds,
    nearest_law,
)
from discreet.estimation._reweighting import Reweighted
from discreet.families import Bounds, Simplex
from discreet.mechanisms import AnyFamily, JointSampler, PointAtoms, Sampler

Floats = NDArray[np.float64]
_NODES = 8


@dataclass(frozen=True)
class Phi:
    """A statistic on the outcomes: its value (on a cell, its average), and its least and largest value there."""

    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def sharp(cls, values: Floats) -> "Phi":
        """One value for each outcome."""
        return cls(values, values, values)


def numeric_outcomes(domain: Domain, what: str) -> Floats:
    """The outcomes as numbers, or an error that says what needs them."""
    if domain.values is None:
        raise DiscreetError(
            f"{what} needs numbers, but the outcomes are labels such as "
            f"{next(name for name in domain.names if not is_value(name))!r}; pass a function that gives each label a number"
        )
    return domain.values


def first_moment(domain: Domain) -> Phi:
    """phi(x) = x."""
    values = numeric_outcomes(domain, "mean")
    return Phi.sharp(values) if domain.edges is None else Phi(values, domain.edges[:-1], domain.edges[1:])


def squares_around(domain: Domain, centre: float) -> Phi:
    """phi(x) = (x - centre)^2."""
    if domain.edges is None:
        return Phi.sharp(np.square(numeric_outcomes(domain, "variance") - centre))
    low, high = domain.edges[:-1] - centre, domain.edges[1:] - centre
    ends = np.square(low), np.square(high)
    least = np.where((low < 0.0) & (high > 0.0), 0.0, np.minimum(*ends))
    return Phi((ends[0] + low * high + ends[1]) / 3.0, least, np.maximum(*ends))


def threshold_indicator(domain: Domain, threshold: float) -> Phi:
    """phi(x) = 1 if x <= threshold, else 0. A cell that contains the threshold may count as either."""
    if domain.edges is None:
        return Phi.sharp((numeric_outcomes(domain, "at-most") <= threshold).astype(np.float64))
    low, high = domain.edges[:-1], domain.edges[1:]
    inside = (np.clip(threshold, low, high) - low) / (high - low)
    return Phi(inside, (high <= threshold).astype(np.float64), (low < threshold).astype(np.float64))


def callable_phi(domain: Domain, phi: Callable[[Any], float]) -> Phi:
    """phi of every outcome; on cells, of the ends and of Gauss points of each, from which its average and extremes are estimated."""
    if domain.edges is None:
        return Phi.sharp(np.array([_check_statistic_value(phi, name) for name in domain.names]))
    nodes, weights = gauss_rule(_NODES)
    low, width = domain.edges[:-1, None], np.diff(domain.edges)[:, None]
    points = np.concatenate([low, low + width * nodes, low + width], axis=1)
    values = np.array([[_check_statistic_value(phi, x) for x in row] for row in points.tolist()])
    return Phi(values[:, 1:-1] @ weights, values.min(axis=1), values.max(axis=1))


def _check_statistic_value(phi: Callable[[Any], float], outcome: Any) -> float:
    value = phi(outcome)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"statistic({outcome!r}) = {value!r} is not a number") from None
    if not abs(number) <= LARGEST_VALUE:
        raise DiscreetError(
            f"statistic({outcome!r}) = {number:g} is not in [{-LARGEST_VALUE:g}, {LARGEST_VALUE:g}]; it has to be bounded on the outcomes"
        )
    return number


_WIDE = 0.1  # half-width of a share's interval above which a note suggests more clients
_IMPOSSIBLE = 1e-9  # probability of the samples below which their agreement is doubted


@with_short_repr
@dataclass(frozen=True)
class Shares:
    """For every outcome: an estimate, its own interval, and intervals that hold all at once.

    Attributes:
        estimate: of each share.
        low: the lower end of each interval.
        high: the upper end of each interval.
        all_low: the lower ends of intervals that hold all at once; for a distribution they add up to at most 1.
        all_high: the upper ends of intervals that hold all at once.
    """

    estimate: Floats
    low: Floats
    high: Floats
    all_low: Floats
    all_high: Floats


@dataclass(frozen=True)
class Estimate:
    """A statistic of the population.

    Attributes:
        name: of the statistic.
        estimate: None where it is not identifiable.
        low: the lower end of its interval.
        high: the upper end of its interval.
        released: its value under Q, the law of the samples.
        blur: how much of the interval, on each side, is due to values that are known up to their cell only.
        bias_by_risk: the largest difference between P and Q by the worst-case TV alone, its oscillation times that. The interval uses the
            sharper lines. None: the statistic is no average.
    """

    name: str
    estimate: float | None
    low: float
    high: float
    released: float
    blur: float = 0.0
    bias_by_risk: float | None = None


@dataclass(frozen=True, eq=False)
class Population:
    """The estimates from the samples of one agreement. Made by `population`.

    On a continuous family the average client is that of the masses on cells which the clients released by. A client with a distribution
    function has those to within rounding. A client that is a bare function has what nodes could see of it (`UnresolvedWarning` told it if
    that was little). Nobody but the client knows which it was.

    Attributes:
        domain: the outcomes.
        counts: how many samples each outcome has.
        reference: the mass of each outcome under the family's reference.
        inversion: how the law of the samples bounds that of the clients.
        bounds: of the densities of clients, relative to the reference.
        sampler: what released the samples.
        confidence: of every interval.
        reweighted: the population that public examples have when they are weighted so as to explain the samples. It rests on the examples;
            everything else here does not.
        finest: on a continuous family the same samples on each of its cells. Statistics come from there, since they gain from narrow cells
            what shares would lose to noise.
        rows: where each client released several samples, whose they are; `counts` are then of all of them.
    """

    domain: Domain
    counts: NDArray[np.int64]
    reference: Floats
    inversion: Inversion
    bounds: Bounds
    sampler: Sampler[AnyFamily] | JointSampler
    confidence: float
    reweighted: Reweighted | None = None
    finest: "Population | None" = None
    rows: SampleRows | None = None

    def __repr__(self) -> str:
        return f"<Population behind {self.samples:,} samples of {self.sampler!r}>"

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(self.counts.sum())

    @property
    def clients(self) -> int:
        """The number of clients: that of samples, unless each released several."""
        return self.samples if self.rows is None else self.rows.clients

    @property
    def exact(self) -> bool:
        """Whether the average client is identifiable: then estimates are unbiased, and intervals contain only noise."""
        return self.inversion.exact

    @cached_property
    def largest_bias(self) -> float:
        """The worst-case TV: the largest difference between an event's shares under P and Q, for all clients."""
        return float(
            self.sampler.risk("tv")
        )  # for several samples drawn together: of all of them, so of any single one

    @cached_property
    def released_shares(self) -> Shares:
        """The estimate of the average output distribution."""
        return Shares(self._frequencies, *self._released_ends(1), *self._released_ends(len(self.counts)))

    @cached_property
    def law(self) -> Shares:
        """The average client's distribution. Its estimate is unbiased (and may be negative) if `exact`, else the released shares."""
        each, together = (
            self.rows.ends(self.confidence, among=among)
            if self.rows is not None
            else band_ends(self.counts, self.clients, self.confidence, self.inversion, self.reference, among=among)
            for among in (1, len(self.counts))
        )
        return self.law_within(each, together)

    def law_within(self, each: Ends, together: Ends) -> Shares:
        """The average client's distribution from intervals of the released shares: of each alone, and of all together."""
        all_low, all_high = self.share_intervals(together)
        all_low = lower_ends_together(all_low, self.share_bounds[0])
        return Shares(self.share_estimates, *self.share_intervals(each), all_low, all_high)

    @property
    def share_bounds(self) -> Ends:
        """The least and the largest share of each outcome that clients inside the family can have."""
        return membership_bounds(self.bounds, self.reference)

    @cached_property
    def share_estimates(self) -> Floats:
        """The estimate of the average client's distribution, without intervals."""
        return np.asarray(self.inversion.low(self.reference, self._frequencies)) if self.exact else self._frequencies

    @cached_property
    def nearest(self) -> Floats:
        """The estimate as a distribution: the nearest member of the family. It has a smaller error, but is biased."""
        return nearest_law(self.share_estimates, *self.share_bounds)

    def statistic(self, wanted: str | Callable[[Any], float]) -> Estimate:
        """The average of a function of the outcome, or a named one: "mean", "variance", "median", "quantile:0.9", "at-most:30"."""
        if self.finest is not None:
            return self.finest.statistic(wanted)
        return compute_statistic(wanted, self.domain, self._average, self._quantile)

    @cached_property
    def margin_at_worst(self) -> float:
        """The longest reach of a share's interval from its estimate, for every population with that many clients."""
        noise = planning.Noise(self.clients, self.confidence)
        return planning.half_width(self.inversion, self.sampler, self.reference, noise)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Warnings to read before trusting the numbers; empty if there are none."""
        said = []
        constants = self.sampler.constants
        for above, limit, word in (
            (True, constants.B * self.reference, "more than"),
            (False, constants.b * self.reference, "less than"),
        ):
            place = self._first_impossible(limit, above=above)
            if place is not None:
                said.append(
                    f"{self.domain.names[place]!r} makes up {self._frequencies[place]:.3g} of the samples, {word} the "
                    f"{limit[place]:.3g} that this agreement allows whoever the clients are; are these "
                    "raw values instead of samples, or samples of another agreement"
                )
        width = self.margin_at_worst
        if width > _WIDE:
            try:
                more = planning.clients_within(self.inversion, self.sampler, self.reference, _WIDE, self.confidence)
                fix = f"about {more:,} clients would tell it to +-{_WIDE:g}"
            except ImpossibleError:
                fix = f"to tell it to +-{_WIDE:g} takes a larger epsilon" + (
                    "" if self.exact or not isinstance(self.sampler.family, Simplex) else " or the linear mechanism"
                )
            who = "one client tells" if self.clients == 1 else f"{self.clients:,} clients tell"
            said.append(f"{who} a share to +-{width:.2g} at worst; {fix}")
        carrier = self.sampler.carrier
        if isinstance(carrier, PointAtoms):
            largest = float(self.reference.max())
            off = math.sqrt(self.bounds.upper * largest * (1.0 - largest) / carrier.size)
            said.append(
                f"samples are some of {carrier.size:,} points, and a share is that of clients on these points: it differs from their own by "
                f"about {off:.1g}, which no interval holds"
            )
        cut = 0
        if isinstance(self.domain, Bins) and isinstance(self.sampler, Sampler):
            cut = cut_cells(self.sampler, self.domain)
        if cut:
            said.append(
                f"edges lie inside {cut:,} of the cells that are released: inside a cell samples follow the reference, so shares beside "
                "such an edge are those of clients that do so too; say bins= to keep to whole cells"
            )
        if self.reweighted is not None and not self.reweighted.explains:
            said.append(
                f"no weights of the examples explain the samples ({self.reweighted.strain:.0f} standard deviations off): these clients are "
                "unlike the examples, and so is the reweighted population"
            )
        return tuple(said)

    # shares

    @cached_property
    def _frequencies(self) -> Floats:
        return self.counts / self.samples

    def _released_ends(self, among: int) -> Ends:
        """Intervals of the released shares."""
        if self.rows is not None:
            return self.rows.ends(self.confidence, among=among)
        return exact_ends(self.counts, self.clients, self.confidence, among=among)

    def _first_impossible(self, limits: Floats, *, above: bool) -> int | None:
        """The first outcome whose share is almost surely beyond its limit."""
        among = len(self.counts)
        if self.rows is None:
            return first_past_limit(
                self.counts, self.clients, limits, tail(1.0 - 2.0 * _IMPOSSIBLE, among), above=above
            )
        low, high = self.rows.ends(1.0 - 2.0 * _IMPOSSIBLE, among=among)
        past = np.flatnonzero(low > limits * (1.0 + AT_LIMIT) if above else high < limits * (1.0 - AT_LIMIT))
        return int(past[0]) if len(past) else None

    def _cumulative_ends(self, order: NDArray[np.int64], counts: NDArray[np.int64]) -> Ends:
        """Intervals of the cumulative shares of the outcomes in this order, with these cumulative counts."""
        if self.rows is not None:
            return self.rows.ends_below(order, self.confidence)
        return clopper_pearson(counts, self.clients, self.confidence)

    def share_intervals(self, released: Ends, mu: Floats | None = None) -> Ends:
        """Intervals of P's shares from intervals of Q's; `mu`: the masses of the events, by default of the outcomes."""
        return invert_intervals(self.inversion, self.bounds, self.reference if mu is None else mu, released)

    # statistics

    def _average(self, name: str, phi: Phi, *, among: int = 1) -> Estimate:
        least, most = float(phi.low.min()), float(phi.high.max())
        event = phi.low == most
        if self.rows is None and least < most and ((phi.low == phi.high) & (event | (phi.low == least))).all():
            low, high = (least + (most - least) * end for end in self._event_interval(event, among))
        else:
            low = min(max(-self._largest_average(-phi.low, among), least), most)
            high = min(max(self._largest_average(phi.high, among), least), most)
        estimate = float(self.share_estimates @ phi.values) if self.exact else None
        blur = 0.5 * float(self.nearest @ (phi.high - phi.low))
        bias = float(phi.values.max() - phi.values.min()) * self.largest_bias
        released = float(self._frequencies @ phi.values)
        return Estimate(name, estimate, min(low, high), max(low, high), released, blur, bias)

    def _event_interval(self, event: NDArray[np.bool_], among: int) -> tuple[float, float]:
        """The interval of the share of an event: the average of a function with two values."""
        counts, mu = np.array([self.counts[event].sum()]), np.array([min(float(self.reference[event].sum()), 1.0)])
        ends = band_ends(counts, self.clients, self.confidence, self.inversion, mu, among=among)
        low, high = self.share_intervals(ends, mu)
        return float(low[0]), float(high[0])

    def _largest_average(self, phi: Floats, among: int) -> float:
        """The largest average of phi that P can have given the counts, with the noise of that end.

        max {P(phi) : low <= P <= high} = min over c of c + high((phi - c)+) - low((c - phi)+), which is affine in Q for each c. The best c
        changes the value only to second order, so the noise is that of an average of n samples.
        """
        low, high = self.inversion.low, self.inversion.high
        order = np.argsort(-phi)
        least = low(self.reference, self._frequencies)
        room = np.cumsum(np.maximum(high(self.reference, self._frequencies) - least, 0.0)[order])
        place = min(int(np.searchsorted(room, 1.0 - least.sum())), len(phi) - 1)
        c = float(phi[order[place]])
        above, below = np.maximum(phi - c, 0.0), np.maximum(c - phi, 0.0)
        sampled = high.released * above - low.released * below
        fixed = c + float(self.reference @ (high.reference * above - low.reference * below))
        if self.rows is not None:
            return fixed + self.rows.largest_average(sampled, self.confidence, among=among)
        return fixed + largest_average(sampled, self.counts, self.confidence, among=among)

    def _quantile(self, name: str, level: float) -> Estimate:
        """All thresholds whose cumulative share has an interval that contains the level; outcomes must be in order."""
        values = numeric_outcomes(self.domain, name)
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.counts[order])
        mu = np.minimum(np.cumsum(self.reference[order]), 1.0)
        low, high = self.share_intervals(self._cumulative_ends(order, below), mu)
        low[-1] = high[-1] = 1.0
        first = int(np.argmax(high >= level))
        last = int(len(low) - np.argmax((low < level)[::-1])) if (low < level).any() else 0
        estimate = None
        if self.exact:
            # the nearest distribution follows the noise of narrow cells; cumulative shares do not
            law = self.share_estimates if isinstance(self.domain, Bins) else self.nearest
            estimate = quantile_of_law(law[order], values[order], level)
        released = float(values[order][np.argmax(below / self.samples >= level)])
        return Estimate(name, estimate, *quantile_ends(self.domain, values[order], first, last, released))

    released = OldName("released_shares")


def quantile_of_law(law: Floats, values: Floats, level: float) -> float:
    """The first of the increasing values up to which a law has the level; the last one if rounding leaves it short."""
    reached = np.flatnonzero(np.cumsum(law) >= level - 1e-12)
    return float(values[reached[0] if reached.size else -1])


def quantile_ends(
    domain: Domain, values: Floats, first: int, last: int, released: float
) -> tuple[float, float, float, float]:
    """The fields of an estimate from the interval of a quantile on: its ends, the `released` one, and what cells blur."""
    if domain.edges is None:
        return float(values[first]), float(values[last]), released, 0.0
    blur = float(0.5 * np.diff(domain.edges)[[first, last]].max())
    return float(domain.edges[first]), float(domain.edges[last + 1]), released, blur


class Averaging(Protocol):
    """What estimates the average of a function; `among`: the number of intervals that share the error."""

    def __call__(self, name: str, phi: Phi, *, among: int = 1) -> Estimate:
        """The estimate."""
        ...


def compute_statistic(
    wanted: str | Callable[[Any], float],
    domain: Domain,
    average: Averaging,
    quantile: Callable[[str, float], Estimate],
) -> Estimate:
    """A function's average or a named statistic, by what estimates averages and quantiles."""
    if callable(wanted):
        return average(getattr(wanted, "__name__", "statistic"), callable_phi(domain, wanted))
    name, _, parameter = str(wanted).partition(":")
    match name:
        case "mean" if not parameter:
            return average(name, first_moment(domain))
        case "variance" if not parameter:
            return _variance(domain, average)
        case "median" if not parameter:
            return quantile(wanted, 0.5)
        case "quantile":
            return quantile(wanted, OPEN_UNIT.check("quantile", parse_parameter(wanted, parameter)))
        case "at-most":
            return average(wanted, threshold_indicator(domain, parse_parameter(wanted, parameter)))
    raise DiscreetError(
        f"statistic = {wanted!r} is not one of mean, variance, median, quantile:P, at-most:X, nor a function of an outcome"
    )


def _variance(domain: Domain, average: Averaging) -> Estimate:
    """E (x - c)^2 - (E x - c)^2, each with half of the error probability; c near the mean keeps both small."""
    first = average("mean", first_moment(domain), among=2)
    centre = 0.5 * (first.low + first.high)
    second = average("squares", squares_around(domain, centre), among=2)
    estimate = None
    if first.estimate is not None and second.estimate is not None:
        estimate = second.estimate - (first.estimate - centre) ** 2
    return Estimate(
        "variance",
        estimate,
        max(0.0, second.low - (0.5 * (first.high - first.low)) ** 2),
        second.high,
        second.released - (first.released - centre) ** 2,
        second.blur,
    )


def parse_parameter(wanted: str, parameter: str) -> float:
    """The number after the colon of a statistic's name."""
    try:
        number = float(parameter)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise DiscreetError(f"statistic = {wanted!r} needs a number after the colon")
    return number
