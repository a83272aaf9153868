"""The population behind samples and reports: `Population` and `ReportedPopulation`, with shares, statistics and intervals.

Counts of samples estimate Q, the average output distribution. An `Inversion` turns bounds on Q into bounds on P, the average client. For
the linear mechanism that is the unbiased estimate (Q - (1 - gamma) mu)/gamma of variance (1/(n gamma)^2) sum_i Var_{Q_i}(phi). The samples
alone show that it is at most Var_Q(phi)/(n gamma^2), with equality for clients drawn from a population. For a projection Q does not
determine P: an interval then consists of a band that no number of clients narrows, and of the noise around its ends.

**Reports.** S_x of n reports hold outcome x. A client's report holds x with probability p_out + (p_in - p_out) P(x), where P is its own law,
so (S_x/n - p_out)/(p_in - p_out) estimates the average client's share of x without bias, and its intervals are those of S_x/n under the same
map. S_x is a sum of independent coins with unequal chances. The intervals of `discreet.estimation._inference` hold for such sums: the
binomial law with the mean chance has the heavier tails [Hoeffding 1956], as is proved there.

**Averages behind reports.** For values phi of outcomes a report B gives V = sum of phi over B. (mean of V - p_out sum of phi)/(p_in - p_out)
estimates the population's average of phi without bias. From the reports themselves its interval is Gaffke's for the mean of V
(`reported_average`); from their counts alone it is that of `discreet.estimation._inference._statistics`. A set has phi = 1.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName, accept_renamed_keywords
from discreet._base.showing import round_up_to_digits
from discreet.domain import Bins, Domain
from discreet.errors import OPEN_UNIT, DiscreetError, ImpossibleError
from discreet.estimation import _planning as planning
from discreet.estimation._counting import ReportRows, SampleRows, count_cells_cut_by_bins
from discreet.estimation._inference import (
    AT_LIMIT,
    Ends,
    Estimate,
    Inversion,
    OutcomeFunction,
    Reweighted,
    Shares,
    SupportStatistics,
    average_upper_bound,
    clopper_pearson_interval_ends,
    evaluate_function_on_outcomes,
    exact_interval_ends,
    first_outcome_with_share_beyond_limit,
    invert_released_intervals,
    lower_ends_with_sum_at_most_one,
    nearest_law,
    numeric_outcomes,
    one_sided_miss_probability,
    outcome_value_function,
    parse_statistic_parameter,
    quantile_interval_fields,
    quantile_of_shares,
    released_interval_ends_for_inversion,
    share_bounds_from_family_alone,
    squared_deviation_function,
    threshold_indicator,
)
from discreet.families import Bounds, Simplex
from discreet.mechanisms import AnyFamily, JointSampler, PointAtoms, ReportSampler, Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_WIDE = 0.1  # half-width of a share's interval above which a note suggests more clients
_IMPOSSIBLE = 1e-9  # probability of the samples below which their agreement is doubted


class PopulationEstimate(ABC):
    """What estimates from samples and from reports have in common: counts of releases, and intervals of clients' shares from them.

    Attributes:
        domain: the outcomes.
        counts: how many releases each outcome has.
        clients: how many there are.
        confidence: of every interval.
        rows: where each client released several times, whose the releases are.
        reweighted: the population that public examples have when they are weighted so as to explain the releases.
    """

    domain: Domain
    counts: Integers
    clients: int
    confidence: float
    rows: SampleRows | ReportRows | None
    reweighted: Reweighted | None

    @property
    @abstractmethod
    def samples(self) -> int:
        """How many releases there are: one of each client, unless each released several times."""

    @property
    @abstractmethod
    def share_bounds(self) -> Ends:
        """The least and the largest share of each outcome that clients can have."""

    @property
    @abstractmethod
    def share_estimates(self) -> Floats:
        """The estimate of the average client's distribution, without intervals."""

    @abstractmethod
    def client_intervals_from_released_intervals(self, released: Ends, mu: Floats | None = None) -> Ends:
        """Intervals of the average client's shares from intervals of the released ones; `mu`: the reference masses of the events."""

    client_intervals_from_released = OldName("client_intervals_from_released_intervals")

    @abstractmethod
    def _estimate_average(self, name: str, phi: OutcomeFunction, *, among: int = 1) -> Estimate:
        """The average of a function; `among`: the number of intervals that share the error."""

    @abstractmethod
    def _estimate_quantile(self, name: str, level: float) -> Estimate:
        """The quantile of a level; outcomes must be numbers."""

    @cached_property
    def _released_frequencies(self) -> Floats:
        return self.counts / self.samples

    def _released_share_interval_ends(self, among: int) -> Ends:
        """Intervals of the released shares."""
        if self.rows is not None:
            return self.rows.share_interval_ends(self.confidence, among=among)
        return exact_interval_ends(self.counts, self.clients, self.confidence, among=among)

    @cached_property
    def released_shares(self) -> Shares:
        """The estimate of the average output distribution; of reports, of the probabilities that one holds each outcome."""
        ends, all_ends = (self._released_share_interval_ends(among) for among in (1, len(self.counts)))
        return Shares(self._released_frequencies, *ends, *all_ends)

    @accept_renamed_keywords(each="ends", together="all_ends")
    def law_from_released_intervals(self, ends: Ends, all_ends: Ends) -> Shares:
        """The average client's distribution from intervals of the released shares: of each alone, and of all together."""
        all_low, all_high = self.client_intervals_from_released_intervals(all_ends)
        all_low = lower_ends_with_sum_at_most_one(all_low, self.share_bounds[0])
        return Shares(self.share_estimates, *self.client_intervals_from_released_intervals(ends), all_low, all_high)

    @cached_property
    def nearest(self) -> Floats:
        """The estimate as a distribution: the nearest member of the family. It has a smaller error, but is biased."""
        return nearest_law(self.share_estimates, *self.share_bounds)

    def statistic(self, wanted: str | Callable[[Any], float]) -> Estimate:
        """The average of a function of the outcome, or a named one: "mean", "variance", "median", "quantile:0.9", "at-most:30".

        Args:
            wanted: a name, or a function that gives each outcome a number.

        Returns:
            An estimate and its interval. It is unbiased if the average client is identifiable; a variance has the bias of a square, and a
            quantile behind reports is that of the nearest law.

        Raises:
            DiscreetError: for names that are none, and for named statistics of outcomes that are labels.
        """
        if callable(wanted):
            name = getattr(wanted, "__name__", "statistic")
            return self._estimate_average(name, evaluate_function_on_outcomes(self.domain, wanted))
        name, _, parameter = str(wanted).partition(":")
        match name:
            case "mean" if not parameter:
                return self._estimate_average(name, outcome_value_function(self.domain))
            case "variance" if not parameter:
                return self._estimate_variance()
            case "median" if not parameter:
                return self._estimate_quantile(wanted, 0.5)
            case "quantile":
                level = OPEN_UNIT.check("quantile", parse_statistic_parameter(wanted, parameter))
                return self._estimate_quantile(wanted, level)
            case "at-most":
                threshold = parse_statistic_parameter(wanted, parameter)
                return self._estimate_average(wanted, threshold_indicator(self.domain, threshold))
        raise DiscreetError(
            f"statistic = {wanted!r} is not one of mean, variance, median, quantile:P, at-most:X, nor a function of an outcome"
        )

    def _estimate_variance(self) -> Estimate:
        """E (x - c)^2 - (E x - c)^2, each with half of the error probability; c near the mean keeps both small."""
        first = self._estimate_average("mean", outcome_value_function(self.domain), among=2)
        centre = 0.5 * (first.low + first.high)
        second = self._estimate_average("squares", squared_deviation_function(self.domain, centre), among=2)
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

    def _first_outcome_with_share_beyond_limit(self, limits: Floats, *, above: bool) -> int | None:
        """The first outcome whose released share is almost surely beyond its limit."""
        among = len(self.counts)
        if self.rows is None:
            miss = one_sided_miss_probability(1.0 - 2.0 * _IMPOSSIBLE, among)
            return first_outcome_with_share_beyond_limit(self.counts, self.clients, limits, miss, above=above)
        low, high = self.rows.share_interval_ends(1.0 - 2.0 * _IMPOSSIBLE, among=among)
        outcomes = np.flatnonzero(low > limits * (1.0 + AT_LIMIT) if above else high < limits * (1.0 - AT_LIMIT))
        return int(outcomes[0]) if len(outcomes) else None

    @property
    @abstractmethod
    def doubts_about_agreement(self) -> tuple[str, ...]:
        """Warnings of released shares that no clients can have under the agreement."""

    def _doubts_about_examples(self, releases: str) -> tuple[str, ...]:
        """The doubt that weighted examples raise, if there are any that do not explain the releases."""
        if self.reweighted is None or self.reweighted.explains:
            return ()
        return (
            f"no weights of the examples explain the {releases} ({self.reweighted.strain:.0f} standard deviations off): these clients are "
            "unlike the examples, and so is the reweighted population",
        )


@dataclass(frozen=True, eq=False)
class Population(PopulationEstimate):
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
    def clients(self) -> int:  # type: ignore[override]  # a field of the other
        """The number of clients: that of samples, unless each released several."""
        return self.samples if self.rows is None else self.rows.client_count

    @property
    def exact(self) -> bool:
        """Whether the average client is identifiable: then estimates are unbiased, and intervals contain only noise."""
        return self.inversion.exact

    @cached_property
    def largest_bias(self) -> float:
        """The worst-case TV: the largest difference between an event's shares under P and Q, for all clients."""
        # for several samples drawn together: of all of them, so of any single one
        return float(self.sampler.risk("tv"))

    @cached_property
    def law(self) -> Shares:
        """The average client's distribution. Its estimate is unbiased (and may be negative) if `exact`, else the released shares."""
        ends, all_ends = (
            self.rows.share_interval_ends(self.confidence, among=among)
            if self.rows is not None
            else released_interval_ends_for_inversion(
                self.counts, self.clients, self.confidence, self.inversion, self.reference, among=among
            )
            for among in (1, len(self.counts))
        )
        return self.law_from_released_intervals(ends, all_ends)

    @property
    def share_bounds(self) -> Ends:
        """The least and the largest share of each outcome that clients inside the family can have."""
        return share_bounds_from_family_alone(self.bounds, self.reference)

    @cached_property
    def share_estimates(self) -> Floats:
        """The estimate of the average client's distribution, without intervals."""
        frequencies = self._released_frequencies
        return np.asarray(self.inversion.low(self.reference, frequencies)) if self.exact else frequencies

    def client_intervals_from_released_intervals(self, released: Ends, mu: Floats | None = None) -> Ends:
        """Intervals of P's shares from intervals of Q's; `mu`: the masses of the events, by default of the outcomes."""
        return invert_released_intervals(self.inversion, self.bounds, self.reference if mu is None else mu, released)

    def statistic(self, wanted: str | Callable[[Any], float]) -> Estimate:
        """The average of a function of the outcome, or a named one: "mean", "variance", "median", "quantile:0.9", "at-most:30"."""
        if self.finest is None:
            return super().statistic(wanted)
        same = self.finest.confidence == self.confidence
        return (self.finest if same else replace(self.finest, confidence=self.confidence)).statistic(wanted)

    @cached_property
    def margin_at_worst(self) -> float:
        """The longest reach of a share's interval from its estimate, for every population with that many clients."""
        noise = planning.SamplingNoise(self.clients, self.confidence)
        return planning.longest_interval_half_width(self.inversion, self.sampler, self.reference, noise)

    @cached_property
    def doubts_about_agreement(self) -> tuple[str, ...]:
        """Warnings of shares among the samples that no clients can have under the agreement."""
        doubts = []
        constants = self.sampler.constants
        for above, limit, word in (
            (True, constants.B * self.reference, "more than"),
            (False, constants.b * self.reference, "less than"),
        ):
            outcome = self._first_outcome_with_share_beyond_limit(limit, above=above)
            if outcome is not None:
                doubts.append(
                    f"{self.domain.names[outcome]!r} makes up {self._released_frequencies[outcome]:.3g} of the samples, {word} the "
                    f"{limit[outcome]:.3g} that this agreement allows for any clients; are these "
                    "raw values instead of samples, or samples of another agreement"
                )
        return tuple(doubts)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Warnings to read before trusting the numbers; empty if there are none."""
        doubts = list(self.doubts_about_agreement)
        width = self.margin_at_worst
        if width > _WIDE:
            try:
                enough = planning.clients_for_half_width(
                    self.inversion, self.sampler, self.reference, _WIDE, self.confidence
                )
                fix = f"about {enough:,} clients would bring it to +-{_WIDE:g}"
            except ImpossibleError:
                fix = f"+-{_WIDE:g} needs a larger epsilon" + (
                    "" if self.exact or not isinstance(self.sampler.family, Simplex) else " or the linear mechanism"
                )
            clients = "one client" if self.clients == 1 else f"{self.clients:,} clients"
            doubts.append(f"with {clients} the margin of a share can be +-{round_up_to_digits(width, 2):g}; {fix}")
        carrier = self.sampler.carrier
        if isinstance(carrier, PointAtoms):
            largest = float(self.reference.max())
            error = math.sqrt(self.bounds.upper * largest * (1.0 - largest) / carrier.size)
            doubts.append(
                f"samples are some of {carrier.size:,} points, and a share is that of clients on these points: it differs from their own by "
                f"about {error:.1g}, which no interval covers"
            )
        cut_cells = 0
        if isinstance(self.domain, Bins) and isinstance(self.sampler, Sampler):
            cut_cells = count_cells_cut_by_bins(self.sampler, self.domain)
        if cut_cells:
            doubts.append(
                f"edges lie inside {cut_cells:,} of the cells that are released: inside a cell samples follow the reference, so shares "
                "beside such an edge are those of clients that do so too; say bins= to keep to whole cells"
            )
        return (*doubts, *self._doubts_about_examples("samples"))

    def _cumulative_share_interval_ends(self, order: NDArray[np.int64], counts: NDArray[np.int64]) -> Ends:
        """Intervals of the cumulative shares of the outcomes in this order, with these cumulative counts."""
        if self.rows is not None:
            return self.rows.cumulative_share_interval_ends(order, self.confidence)
        return clopper_pearson_interval_ends(counts, self.clients, self.confidence)

    def _estimate_average(self, name: str, phi: OutcomeFunction, *, among: int = 1) -> Estimate:
        least, most = float(phi.low.min()), float(phi.high.max())
        event = phi.low == most
        if self.rows is None and least < most and ((phi.low == phi.high) & (event | (phi.low == least))).all():
            low, high = (least + (most - least) * end for end in self._event_share_interval(event, among))
        else:
            low = min(max(-self._average_upper_bound(-phi.low, among), least), most)
            high = min(max(self._average_upper_bound(phi.high, among), least), most)
        estimate = float(self.share_estimates @ phi.values) if self.exact else None
        blur = 0.5 * float(self.nearest @ (phi.high - phi.low))
        bias = float(phi.values.max() - phi.values.min()) * self.largest_bias
        released_average = float(self._released_frequencies @ phi.values)
        return Estimate(name, estimate, min(low, high), max(low, high), released_average, blur, bias)

    def _event_share_interval(self, event: NDArray[np.bool_], among: int) -> tuple[float, float]:
        """The interval of the share of an event: the average of a function with two values."""
        counts, mu = np.array([self.counts[event].sum()]), np.array([min(float(self.reference[event].sum()), 1.0)])
        ends = released_interval_ends_for_inversion(
            counts, self.clients, self.confidence, self.inversion, mu, among=among
        )
        low, high = self.client_intervals_from_released_intervals(ends, mu)
        return float(low[0]), float(high[0])

    def _average_upper_bound(self, phi: Floats, among: int) -> float:
        """The largest average of phi that P can have given the counts, with the noise of that end.

        max {P(phi) : low <= P <= high} = min over c of c + high((phi - c)+) - low((c - phi)+), which is affine in Q for each c. The best c
        changes the value only to second order, so the noise is that of an average of n samples.
        """
        low, high = self.inversion.low, self.inversion.high
        order = np.argsort(-phi)
        least = low(self.reference, self._released_frequencies)
        room = np.cumsum(np.maximum(high(self.reference, self._released_frequencies) - least, 0.0)[order])
        index = min(int(np.searchsorted(room, 1.0 - least.sum())), len(phi) - 1)
        c = float(phi[order[index]])
        above, below = np.maximum(phi - c, 0.0), np.maximum(c - phi, 0.0)
        coefficients = high.released * above - low.released * below
        constant = c + float(self.reference @ (high.reference * above - low.reference * below))
        if self.rows is not None:
            return constant + self.rows.average_upper_bound(coefficients, self.confidence, among=among)
        return constant + average_upper_bound(coefficients, self.counts, self.confidence, among=among)

    def _estimate_quantile(self, name: str, level: float) -> Estimate:
        """All thresholds whose cumulative share has an interval that contains the level; outcomes must be in order."""
        values = numeric_outcomes(self.domain, name)
        order = np.argsort(values, kind="stable")
        cumulative_counts = np.cumsum(self.counts[order])
        mu = np.minimum(np.cumsum(self.reference[order]), 1.0)
        low, high = self.client_intervals_from_released_intervals(
            self._cumulative_share_interval_ends(order, cumulative_counts), mu
        )
        low[-1] = high[-1] = 1.0
        first = int(np.argmax(high >= level))
        last = int(len(low) - np.argmax((low < level)[::-1])) if (low < level).any() else 0
        estimate = None
        if self.exact:
            estimate = quantile_of_shares(self.share_estimates[order], values[order], level, first, last)
        released_quantile = float(values[order][np.argmax(cumulative_counts / self.samples >= level)])
        return Estimate(
            name, estimate, *quantile_interval_fields(self.domain, values[order], first, last, released_quantile)
        )

    released = OldName("released_shares")


@dataclass(frozen=True, eq=False)
class ReportedPopulation(PopulationEstimate):
    """What the reports of one sampler tell. Made by `reported_population`.

    Attributes:
        domain: the outcomes.
        counts: how many reports hold each outcome; they add up to more than the clients.
        clients: how many there are.
        sampler: what released the reports.
        confidence: of every interval.
        rows: where each client sent several reports, whose they are; `counts` are then of all of them.
        reweighted: the population that public examples have when they are weighted so as to explain the reports. It rests on the examples;
            everything else here does not.
    """

    domain: Domain
    counts: Integers
    clients: int
    sampler: ReportSampler
    confidence: float
    rows: ReportRows | None = None
    reweighted: Reweighted | None = None

    def __repr__(self) -> str:
        return f"<ReportedPopulation behind {self.samples:,} reports of {self.sampler!r}>"

    @property
    def samples(self) -> int:
        """How many reports there are: one of each client, unless each sent several."""
        return self.clients if self.rows is None else self.rows.reports.size

    @property
    def exact(self) -> bool:
        """Whether the average client is identifiable: it is."""
        return True

    @property
    def finest(self) -> None:
        """Finer bins, of which there are none."""
        return

    @cached_property
    def law(self) -> Shares:
        """The average client's law. Its estimate is unbiased and may be negative; intervals lie in [0, 1]."""
        released_shares = self.released_shares
        return self.law_from_released_intervals(
            (released_shares.low, released_shares.high), (released_shares.all_low, released_shares.all_high)
        )

    @property
    def share_bounds(self) -> Ends:
        """The least and the largest share that there can be: 0 and 1."""
        return np.zeros(len(self.counts)), np.ones(len(self.counts))

    @property
    def share_estimates(self) -> Floats:
        """The estimate of the average client's law, without intervals."""
        return self._unbiased_shares_from_support(self._released_frequencies)

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the estimates, from the counts; those of the very clients at hand are no larger."""
        frequencies = self._released_frequencies
        return np.asarray(np.sqrt(frequencies * (1.0 - frequencies) / self.clients) / self.sampler.chances.gap)

    @cached_property
    def margin_at_worst(self) -> float:
        """How far the longest interval of a share reaches from its estimate, at most."""
        law = self.law
        inside = np.clip(law.estimate, 0.0, 1.0)
        return float(np.maximum(law.high - inside, inside - law.low).max())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings to read before trusting the numbers; empty if there are none."""
        return (*self.doubts_about_agreement, *self._doubts_about_examples("reports"))

    @cached_property
    def doubts_about_agreement(self) -> tuple[str, ...]:
        """Warnings of outcomes that more or fewer reports hold than any clients can explain under the agreement."""
        doubts, chances = [], self.sampler.chances
        for above, limit, word in ((True, chances.inside, "more than"), (False, chances.outside, "less than")):
            outcome = self._first_outcome_with_share_beyond_limit(np.full(len(self.counts), limit), above=above)
            if outcome is not None:
                doubts.append(
                    f"{self._released_frequencies[outcome]:.3g} of the reports hold {self.domain.names[outcome]!r}, {word} the {limit:.3g} "
                    "that this agreement allows for any clients; are these reports of another agreement"
                )
        return tuple(doubts)

    def client_intervals_from_released_intervals(self, released: Ends, mu: Floats | None = None) -> Ends:
        """Intervals of the probabilities that a report holds an outcome, as intervals of its share; no reference counts in them."""
        low, high = (np.clip(self._unbiased_shares_from_support(end), 0.0, 1.0) for end in released)
        return low, high

    def _unbiased_shares_from_support(self, frequencies: Floats) -> Floats:
        chances = self.sampler.chances
        return (frequencies - chances.outside) / chances.gap

    @cached_property
    def _support_statistics(self) -> SupportStatistics | ReportRows:
        return SupportStatistics(self.sampler, self.counts, self.clients) if self.rows is None else self.rows

    def _estimate_average(self, name: str, phi: OutcomeFunction, *, among: int = 1) -> Estimate:
        least, most = float(phi.low.min()), float(phi.high.max())
        miss = one_sided_miss_probability(self.confidence, among)
        lower_bound = -self._support_statistics.mean_upper_bound(-phi.low, miss)
        low = min(max(lower_bound, least), most) + 0.0  # which is never -0.0
        high = min(max(self._support_statistics.mean_upper_bound(phi.high, miss), least), most)
        mean = float(phi.values.mean())
        mean_sum = float((phi.values - mean) @ self.counts) / self.samples
        blur = 0.5 * float(self.nearest @ (phi.high - phi.low))
        return Estimate(
            name, mean + mean_sum / self.sampler.chances.gap, min(low, high), max(low, high), mean + mean_sum, blur
        )

    def _estimate_quantile(self, name: str, level: float) -> Estimate:
        """All thresholds whose share is not rejected; outcomes must be numbers."""
        values = numeric_outcomes(self.domain, name)
        order = np.argsort(values, kind="stable")
        miss = one_sided_miss_probability(self.confidence)
        first, last = self._support_statistics.quantile_index_range(order, level, miss)
        estimate = quantile_of_shares(self.share_estimates[order], values[order], level, first, last)
        return Estimate(name, estimate, *quantile_interval_fields(self.domain, values[order], first, last, estimate))


AnyPopulation = Population | ReportedPopulation


def merge_populations(populations: Sequence[AnyPopulation]) -> AnyPopulation:
    """The estimate from the releases of several groups of clients together, all of one sampler."""
    first, *others = populations
    counts = sum((population.counts for population in others), first.counts)
    if isinstance(first, ReportedPopulation):
        return replace(first, counts=counts, clients=sum(population.clients for population in populations))
    if first.finest is None:
        return replace(first, counts=counts)
    finest = [population.finest.counts for population in populations if population.finest is not None]
    return replace(first, counts=counts, finest=replace(first.finest, counts=np.sum(finest, axis=0)))
