"""The population behind private reports: unbiased shares, and intervals that hold.

S_x of n reports hold outcome x. A client's report holds x with probability p_out + (p_in - p_out) P(x), where P is its own law, so
(S_x/n - p_out)/(p_in - p_out) estimates the average client's share of x without bias, and its intervals are those of S_x/n under the same
map. S_x is a sum of independent coins with unequal chances. The intervals of `discreet.estimation._intervals` hold for such sums: the
binomial law with the mean chance has the heavier tails [Hoeffding 1956], as is proved there.

**Averages.** For values phi of outcomes a report B gives V = sum of phi over B. (mean of V - p_out sum of phi)/(p_in - p_out) estimates the
population's average of phi without bias. From the reports themselves its interval is Gaffke's for the mean of V
(`reported_average`); from their counts alone it is that of `discreet.estimation._report_statistics`. A set has phi = 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.agreement import Agreement
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._intervals import Ends, exact_ends, largest_average, tail
from discreet.estimation._inversion import lower_ends_together, nearest_law
from discreet.estimation._population import (
    Estimate,
    Phi,
    Population,
    Shares,
    compute_statistic,
    first_moment,
    numeric_outcomes,
    parse_parameter,
    quantile_ends,
    quantile_of_law,
    threshold_indicator,
)
from discreet.estimation._report_statistics import ReportRows, SupportStatistics, largest_sum, sums_over_blocks
from discreet.estimation._reweighting import Reweighted, reported_example_laws, reweight_reported
from discreet.families import as_floats
from discreet.mechanisms import ReportCounts, ReportSampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReportedPopulation:
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
    def released_shares(self) -> Shares:
        """The probabilities that a report holds each outcome."""
        return Shares(self.counts / self.samples, *self._ends(1), *self._ends(len(self.counts)))

    @cached_property
    def law(self) -> Shares:
        """The average client's law. Its estimate is unbiased and may be negative; intervals lie in [0, 1]."""
        released = self.released_shares
        return self.law_within((released.low, released.high), (released.all_low, released.all_high))

    def law_within(self, each: Ends, together: Ends) -> Shares:
        """The average client's law from intervals of the released shares: of each alone, and of all together."""
        all_low, all_high = self.share_intervals(together)
        return Shares(self.share_estimates, *self.share_intervals(each), lower_ends_together(all_low), all_high)

    @property
    def share_bounds(self) -> Ends:
        """The least and the largest share that there can be: 0 and 1."""
        return np.zeros(len(self.counts)), np.ones(len(self.counts))

    @property
    def share_estimates(self) -> Floats:
        """The estimate of the average client's law, without intervals."""
        return self._shares(self.counts / self.samples)

    @cached_property
    def nearest(self) -> Floats:
        """The law that is nearest to the estimate. Smaller error, but biased."""
        return nearest_law(self.share_estimates)

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the estimates, from the counts; those of the very clients at hand are no larger."""
        held = self.counts / self.samples
        return np.asarray(np.sqrt(held * (1.0 - held) / self.clients) / self.sampler.chances.gap)

    @cached_property
    def margin_at_worst(self) -> float:
        """How far the longest interval of a share reaches from its estimate, at most."""
        law = self.law
        inside = np.clip(law.estimate, 0.0, 1.0)
        return float(np.maximum(law.high - inside, inside - law.low).max())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings to read before trusting the numbers; empty if there are none."""
        if self.reweighted is None or self.reweighted.explains:
            return ()
        return (
            f"no weights of the examples explain the reports ({self.reweighted.strain:.0f} standard deviations off): these clients are "
            "unlike the examples, and so is the reweighted population",
        )

    def share_intervals(self, released: Ends) -> Ends:
        """Intervals of the probabilities that a report holds an outcome, as intervals of its share."""
        low, high = (np.clip(self._shares(end), 0.0, 1.0) for end in released)
        return low, high

    def _shares(self, held: Floats) -> Floats:
        chances = self.sampler.chances
        return (held - chances.outside) / chances.gap

    def statistic(self, wanted: str | Callable[[Any], float]) -> Estimate:
        """The average of a function of the outcome, or a named one: "mean", "variance", "median", "quantile:0.9", "at-most:30".

        Args:
            wanted: a name, or a function that gives each outcome a number.

        Returns:
            An unbiased estimate and its interval, or for a quantile that of the nearest law; a variance has the bias of a square.

        Raises:
            DiscreetError: for names that are none, and for named statistics of outcomes that are labels.
        """
        return compute_statistic(wanted, self.domain, self._average, self._quantile)

    @cached_property
    def _statistics(self) -> SupportStatistics | ReportRows:
        return SupportStatistics(self.sampler, self.counts, self.clients) if self.rows is None else self.rows

    def _average(self, name: str, phi: Phi, *, among: int = 1) -> Estimate:
        least, most, miss = float(phi.low.min()), float(phi.high.max()), tail(self.confidence, among)
        low = min(max(-self._statistics.largest_mean(-phi.low, miss), least), most)
        high = min(max(self._statistics.largest_mean(phi.high, miss), least), most)
        middle = float(phi.values.mean())
        held = float((phi.values - middle) @ self.counts) / self.samples
        blur = 0.5 * float(self.nearest @ (phi.high - phi.low))
        return Estimate(
            name, middle + held / self.sampler.chances.gap, min(low, high), max(low, high), middle + held, blur
        )

    def _quantile(self, name: str, level: float) -> Estimate:
        """All thresholds whose share is not rejected; outcomes must be numbers."""
        values = numeric_outcomes(self.domain, name)
        order = np.argsort(values, kind="stable")
        first, last = self._statistics.quantile_range(order, level, tail(self.confidence))
        estimate = quantile_of_law(self.nearest[order], values[order], level)
        return Estimate(name, estimate, *quantile_ends(self.domain, values[order], first, last, estimate))

    def _ends(self, among: int) -> Ends:
        if self.rows is not None:
            return self.rows.ends(self.confidence, among=among)
        return exact_ends(self.counts, self.clients, self.confidence, among=among)


def reported_population(
    sampler: ReportSampler | Agreement,
    *,
    reports: ArrayLike | None = None,
    counts: ReportCounts | None = None,
    examples: Any = None,
    confidence: float = 0.95,
) -> ReportedPopulation:
    """The population behind reports, one of each client, or of as many rounds from each.

    Args:
        sampler: what released them, or the agreement on it.
        reports: the reports (n,); or (n, J), a row for each client with its reports of J rounds.
        counts: instead: what counted them.
        examples: the distributions of public clients (N, k), to be weighted so as to explain the reports; it needs `reports`, one of each
            client.
        confidence: of every interval.

    Returns:
        Shares of the average client, with intervals.

    Raises:
        DiscreetError: for numbers that are no reports of this sampler, counts of another, or nothing at all.
    """
    OPEN_UNIT.check("confidence", confidence)
    if isinstance(sampler, Agreement):
        sampler = sampler.report_sampler()
    check_kind("sampler", sampler, ReportSampler, "pass the one that released the reports")
    rows = None
    if counts is None and reports is not None:
        given = sampler.check_reports(reports)
        if given.ndim > 2:
            raise DiscreetError(f"reports has shape {given.shape}; it is (n,), or (n, J) for reports of J rounds")
        counts = ReportCounts(sampler).add(given)
        rows = ReportRows(sampler, given) if given.ndim == 2 and given.shape[1] > 1 and given.size else None
    elif counts is None or reports is not None:
        raise DiscreetError("pass either reports= (what was released) or counts= (a ReportCounts)")
    check_kind("counts", counts, ReportCounts, "pass what counted the reports")
    if counts.sampler != sampler:
        raise DiscreetError(f"counts are of reports of {counts.sampler!r}, not of {sampler!r}")
    if not counts.reports:
        raise DiscreetError("there are no reports; an estimate needs at least one, and a useful one hundreds")
    clients, supports, resting = counts.reports if rows is None else rows.clients, counts.supports(), None
    if examples is not None:
        if reports is None or rows is not None:
            raise DiscreetError(
                "examples are weighted to explain reports=, one of each client; counts and rounds do not tell them apart"
            )
        given = sampler.check_reports(reports).ravel()
        resting = reweight_reported(sampler, given, reported_example_laws(sampler, examples), supports)
    return ReportedPopulation(sampler.family.domain, supports, clients, sampler, float(confidence), rows, resting)


def reported_average(
    sampler: ReportSampler, *, reports: ArrayLike, values: ArrayLike, confidence: float = 0.95, name: str = "average"
) -> Estimate:
    """The population's average of a value of each outcome, behind reports: a mean, or the share of a set (values 1 and 0).

    Args:
        sampler: what released the reports.
        reports: the reports, one of each client. Supports alone do not tell how reports spread, so these are needed again.
        values: a finite number for each outcome.
        confidence: of the interval.
        name: what the average is called.

    Returns:
        An unbiased estimate and its interval, which lies between the least and the largest value.

    Raises:
        DiscreetError: for no reports, numbers that are none, and values that are not one for each outcome.
    """
    OPEN_UNIT.check("confidence", confidence)
    check_kind("sampler", sampler, ReportSampler, "pass the one that released the reports")
    given, phi = sampler.check_reports(reports).ravel(), as_floats(values, "values")
    if phi.shape != (sampler.family.size,) or not np.isfinite(phi).all():
        raise DiscreetError(
            f"values has shape {phi.shape}; it is one finite number for each of {sampler.family.size:,} outcomes"
        )
    if not given.size:
        raise DiscreetError("there are no reports; an estimate needs at least one, and a useful one hundreds")
    least, most, middle = float(phi.min()), float(phi.max()), float(phi.mean())
    centred = phi - middle  # a constant has no noise
    distinct, often = np.unique(given, return_counts=True)
    sums, chances = sums_over_blocks(sampler.blocks, distinct, centred), sampler.chances

    def share(mean: float) -> float:
        return middle + (mean - chances.outside * float(centred.sum())) / chances.gap

    ends = []
    for sign in (-1.0, 1.0):
        possible = np.append(sign * sums, largest_sum(sampler.blocks, sign * centred))  # the last was not seen
        found = sign * largest_average(possible, np.append(often, 0), confidence)
        ends.append(min(max(share(found), least), most))
    mean = float(often @ sums) / len(given)
    return Estimate(name, share(mean), ends[0], ends[1], mean)


def reported_statistic(found: ReportedPopulation, name: str, reports: ArrayLike | None = None) -> Estimate:
    """A statistic of outcomes that are numbers, behind reports: "mean", "variance", "median", "quantile:P" or "at-most:X".

    Args:
        found: the estimate.
        name: which statistic.
        reports: the reports that it was made from. With them means and shares of outcomes that are single numbers get Gaffke's interval;
            without them all comes from the counts, as `found.statistic(name)`.

    Returns:
        An estimate and its interval.

    Raises:
        DiscreetError: for outcomes that are no numbers, and for names that are none.
    """
    check_kind("found", found, ReportedPopulation, "pass what reported_population(...) gave")
    check_kind("name", name, str, 'pass "mean", "median" or "at-most:X"')
    numbers, (kind, _, at) = found.domain.values, name.partition(":")
    if reports is None or found.rows is not None or numbers is None or found.domain.edges is not None:
        return found.statistic(name)
    if kind == "mean" and not at:
        phi = first_moment(found.domain)
    elif kind == "at-most":
        phi = threshold_indicator(found.domain, parse_parameter(name, at))
    else:
        return found.statistic(name)
    return reported_average(found.sampler, reports=reports, values=phi.values, confidence=found.confidence, name=name)


AnyPopulation = Population | ReportedPopulation
