"""Estimates from what was released: `population` from samples, `reported_population` from reports, `inverted_population` for own mechanisms.

Samples are counted first, on the outcomes of a finite family or on the cells of a line. Nothing later depends on who sent what. Bins of a
line are unions of whole cells (`discreet.estimation._counting`), or lie between public edges.

`InvertedPopulation` is for mechanisms of one's own whose law is linear, Q = P K with a matrix K. With A = K^-1 the share of x is the average
over clients of A[Y, x], where Y is the client's sample: an unbiased estimate. Its interval is the one for averages of bounded numbers
(`discreet.estimation._inference._intervals`). A matrix that is nearly singular is refused: other populations would give the same samples.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.labelled import LawLike
from discreet.agreement import Agreement
from discreet.domain import LARGEST_VALUE, Bins, Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_count, check_kind
from discreet.estimation._counting import (
    ReportRows,
    SampleRows,
    bin_reference_masses,
    bins_of_about_equal_reference_mass,
    check_outcome_counts,
    count_samples_by_outcome,
    line_cells_of_sampler,
    one_bin_per_cell,
    outcome_reference_masses,
    refuse_repeated_clients,
    rows_of_several_samples_or_none,
)
from discreet.estimation._inference import (
    Estimate,
    Inversion,
    Shares,
    average_upper_bound,
    clopper_pearson_interval_ends,
    example_laws,
    example_laws_for_reports,
    inversion_of,
    inversion_of_joint_sample,
    largest_report_sum,
    lower_ends_with_sum_at_most_one,
    nearest_law,
    outcome_value_function,
    parse_statistic_parameter,
    reweight_examples,
    reweight_examples_to_reports,
    share_bounds_from_family_alone,
    sum_values_in_each_report,
    threshold_indicator,
)
from discreet.estimation._population import Population, ReportedPopulation
from discreet.families import ContinuousFamily, as_floats
from discreet.mechanisms import (
    AnyFamily,
    ComposedSampler,
    JointSampler,
    Mechanism,
    OwnSampler,
    ReportCounts,
    ReportSampler,
    Sampler,
    refuse_non_mechanism,
)

Floats = NDArray[np.float64]
_WORST_CONDITION = 1e8  # of a matrix that is inverted
_ONE_SAMPLE = "examples are for one sample of each client; give those of one round"
_TRIED, _LINEAR = 64, 1e-9  # clients for whom a law is compared with its matrix, and how far it may be off


def population(
    sampler: Sampler[AnyFamily] | ComposedSampler | JointSampler | Agreement,
    *,
    samples: ArrayLike | None = None,
    counts: LawLike | None = None,
    clients: ArrayLike | None = None,
    rounds: int | None = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    examples: Any = None,
    confidence: float = 0.95,
) -> Population:
    """Estimate the population from released samples, one of each client, or from counts of released outcomes.

    Args:
        sampler: the sampler that released them, or its agreement. For samples of `release(p, size=J)` pass `sampler.with_samples(J)`.
        samples: labels, outcome numbers, or points of an interval, which count for their cells. Several samples of each client are rows
            (n, J): then clients are counted, not samples, with any dependence within a client.
        counts: instead of samples, the count of each outcome; on a continuous family of each cell, or of each bin between `edges`.
        clients: the client of each sample, in the same order. A repeated client is an error: its samples, of several rounds or of one
            release twice, are not those of two clients. Without it the clients are assumed to be different.
        rounds: how often each client released, with the sampler's whole budget each time; samples then have that many columns. Without it,
            rows of samples need an agreement, which states its rounds, or a sampler of several samples.
        edges: on a continuous family in one dimension, the edges of public bins; the outcomes of a finite family are those of its domain.
        bins: or the number of bins, unions of cells of about equal reference mass. By default 4 to 32, such that the noise of an average
            share is half of it.
        examples: distributions (N, k) of public examples, or a scipy.sparse matrix of their counts; on a line, on the released cells.
            `reweighted` is then the population of the examples with the weights that best explain the samples.
        confidence: of every interval.

    Returns:
        Shares and statistics of the average client, with intervals.

    Raises:
        DiscreetError: for samples that this sampler cannot have released, and for invalid counts.
    """
    OPEN_UNIT.check("confidence", confidence)
    if (samples is None) == (counts is None):
        raise DiscreetError("pass either samples= (the released samples) or counts= (the count of each outcome)")
    if clients is not None:
        refuse_repeated_clients(clients, samples)
    releases = _GivenSamples(sampler, samples, counts, rounds, examples is not None)
    if isinstance(sampler, ReportSampler) or (isinstance(sampler, Agreement) and sampler.blocks is not None):
        raise DiscreetError(
            f"{sampler!r} releases reports, which are no samples; use reported_population(..., reports=)"
        )
    if isinstance(sampler, Agreement):
        sampler = sampler.sampler() if sampler.joint is None else sampler.joint_sampler()
    if isinstance(sampler, JointSampler):
        return _population_of_joint_draws(sampler, releases, float(confidence))
    if isinstance(sampler, ComposedSampler):
        sampler = sampler.share
    inversion = inversion_of(sampler)
    if isinstance(sampler.family, ContinuousFamily):
        return _population_on_line(sampler, inversion, float(confidence), releases, edges, bins, examples)
    if edges is not None or bins is not None:
        raise DiscreetError(
            "edges are public bins for a continuous family, and bins how many; the outcomes of this one are those "
            "of its domain: for cells, make it of Interval(low, high, cells=...)"
        )
    domain: Domain = sampler.family.domain
    reference = outcome_reference_masses(domain, sampler.reference)
    outcome_counts, rows = releases.outcome_counts_and_rows(domain)
    reweighted_examples = (
        None if examples is None else reweight_examples([(sampler, outcome_counts)], example_laws(sampler, examples))
    )
    return Population(
        domain,
        outcome_counts,
        reference,
        inversion,
        sampler.bounds,
        sampler,
        float(confidence),
        reweighted_examples,
        rows=rows,
    )


@dataclass(frozen=True, eq=False)
class _GivenSamples:
    """What `population` was given: samples or counts, by whom they were released, and whether there are examples too."""

    released_by: Any
    samples: Any
    counts: Any
    rounds: int | None
    has_examples: bool

    def outcome_counts_and_rows(self, domain: Domain) -> tuple[NDArray[np.int64], SampleRows | None]:
        """The count of each outcome, and the rows of samples if each client released several."""
        rows = None if self.samples is None else rows_of_several_samples_or_none(self.samples, domain)
        _refuse_wrong_samples_per_client(self.released_by, rows, self.rounds)
        if rows is None:
            return _count_samples_or_check_counts(self.samples, self.counts, domain), None
        if self.has_examples:
            raise DiscreetError(_ONE_SAMPLE)
        return rows.outcome_counts, rows


def _refuse_wrong_samples_per_client(released_by: Any, rows: SampleRows | None, rounds: int | None) -> None:
    """Raise an error for samples that the given object did not release: rows of another length, or single samples of several."""
    per_client = 1 if rows is None else rows.numbers.shape[1]
    if isinstance(released_by, (ComposedSampler, JointSampler)):
        if rounds is not None:
            raise DiscreetError(
                f"rounds = {rounds!r} is for samples that were released one at a time; {released_by!r} states their "
                f"number"
            )
        if per_client != released_by.samples:
            raise DiscreetError(
                f"{released_by!r} releases {released_by.samples} samples of each client; give samples= with a row of as many for each client "
                f"(there {'is one sample' if per_client == 1 else f'are {per_client}'} of each)"
            )
        return
    agreed_rounds = released_by.rounds if isinstance(released_by, Agreement) else 1
    if rounds is not None:
        stated_rounds = check_count("rounds", rounds, fix="it is how many times each client released")
        if isinstance(released_by, Agreement):
            check_count("rounds", stated_rounds, most=agreed_rounds, fix=f"the agreement has {agreed_rounds:,}")
        if per_client != stated_rounds:
            raise DiscreetError(
                f"rounds = {stated_rounds}, but there {'is one sample' if per_client == 1 else f'are {per_client} samples'} of each client; "
                f"give samples= with a row of {stated_rounds} for each client"
            )
        return
    if per_client > agreed_rounds:
        offer = (
            f"the agreement has {agreed_rounds:,} rounds"
            if isinstance(released_by, Agreement)
            else f"{released_by!r} releases one"
        )
        raise DiscreetError(
            f"samples has rows of {per_client}, and {offer}: of release(p, size={per_client}) pass sampler.with_samples({per_client}), "
            f"which drew them; if each client released {per_client} times and spent the whole budget each time, pass rounds={per_client}"
        )


def _population_of_joint_draws(joint: JointSampler, releases: _GivenSamples, confidence: float) -> Population:
    """The population from several samples of each client drawn together, by the output distribution of any single one."""
    domain: Domain = joint.family.domain
    if releases.samples is None:
        raise DiscreetError(
            f"{joint!r} releases {joint.samples} samples of each client; counts= do not tell clients apart: give "
            f"samples= with a row for each"
        )
    if releases.has_examples:
        raise DiscreetError(_ONE_SAMPLE)
    outcome_counts, rows = replace(releases, released_by=joint).outcome_counts_and_rows(domain)
    reference = outcome_reference_masses(domain, joint.each_reference)
    return Population(
        domain, outcome_counts, reference, inversion_of_joint_sample(joint), joint.bounds, joint, confidence, rows=rows
    )


def _count_samples_or_check_counts(samples: Any, counts: Any, domain: Domain) -> NDArray[np.int64]:
    return check_outcome_counts(counts, domain) if samples is None else count_samples_by_outcome(samples, domain)


def _population_on_line(
    sampler: Sampler[AnyFamily],
    inversion: Inversion,
    confidence: float,
    releases: _GivenSamples,
    edges: Any,
    bins: Any,
    examples: Any,
) -> Population:
    """The population on bins of a continuous family: between given edges, or unions of whole cells."""

    def population_from_counts(
        domain: Domain, counts: NDArray[np.int64], reference: Floats, rows: SampleRows | None
    ) -> Population:
        return Population(domain, counts, reference, inversion, sampler.bounds, sampler, confidence, rows=rows)

    if edges is not None:
        if bins is not None:
            raise DiscreetError("edges= states the bins; leave out bins=")
        if examples is not None:
            raise DiscreetError(
                "examples are distributions on the cells of the family, which edges= may cut; use bins="
            )
        edge_bins = Bins(edges)
        counts, rows = releases.outcome_counts_and_rows(edge_bins)
        return population_from_counts(edge_bins, counts, bin_reference_masses(sampler, edge_bins), rows)
    cells, line = one_bin_per_cell(sampler), line_cells_of_sampler(sampler)
    cell_counts, rows = releases.outcome_counts_and_rows(line)
    counts = cell_counts[line.order]
    cell_bins = bins_of_about_equal_reference_mass(
        sampler, clients=int(counts.sum()) if rows is None else rows.client_count, count=bins
    )
    line_rows = None if rows is None else rows.renumber_outcomes(np.argsort(line.order), line.size)
    bin_rows = (
        None if line_rows is None else line_rows.renumber_outcomes(cell_bins.bin_of_each_cell, cell_bins.bins.size)
    )
    finest = population_from_counts(cells.bins, counts, cells.reference, line_rows)
    estimate = replace(
        population_from_counts(cell_bins.bins, cell_bins.sum_by_bin(counts), cell_bins.reference, bin_rows),
        finest=finest,
    )
    if examples is None:
        return estimate
    reweighted_examples = reweight_examples([(sampler, cell_counts)], example_laws(sampler, examples))
    law, debiased_law = (
        cell_bins.sum_by_bin(masses[line.order]) for masses in (reweighted_examples.law, reweighted_examples.debiased)
    )
    return replace(estimate, reweighted=replace(reweighted_examples, law=law, debiased=debiased_law))


@dataclass(frozen=True, eq=False)
class InvertedPopulation:
    """Estimates from the samples of a mechanism whose law is linear. Made by `inverted_population`.

    Attributes:
        domain: the outcomes.
        counts: how many samples each outcome has.
        matrix: K; row x is the output law of a client that holds x for certain.
        mechanism: what released the samples.
        confidence: of every interval.
    """

    domain: Domain
    counts: NDArray[np.int64]
    matrix: Floats
    mechanism: Mechanism
    confidence: float

    @property
    def samples(self) -> int:
        """The number of samples, one of each client."""
        return int(self.counts.sum())

    @cached_property
    def _inverse_matrix(self) -> Floats:
        return np.asarray(np.linalg.inv(self.matrix))

    @cached_property
    def law(self) -> Shares:
        """The average client's distribution: an unbiased estimate, which may be negative, and intervals."""
        family = self.mechanism.family
        mu = np.broadcast_to(np.asarray(family.reference, dtype=np.float64), family.size)
        least, most = share_bounds_from_family_alone(family.served_bounds, mu)
        ends, all_ends = (self._share_interval_ends(among, least, most) for among in (1, family.size))
        return Shares(self.share_estimates, *ends, lower_ends_with_sum_at_most_one(all_ends[0], least), all_ends[1])

    def _share_interval_ends(self, among: int, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        columns = self._inverse_matrix.T
        high = [average_upper_bound(column, self.counts, self.confidence, among=among) for column in columns]
        low = [-average_upper_bound(-column, self.counts, self.confidence, among=among) for column in columns]
        top = np.clip(high, least, most)
        return np.minimum(np.clip(low, least, most), top), top

    @cached_property
    def share_estimates(self) -> Floats:
        """The estimate of the average client's distribution, without intervals."""
        return np.asarray((self.counts / self.samples) @ self._inverse_matrix)

    @cached_property
    def nearest(self) -> Floats:
        """The estimate as a distribution: the nearest one. It has a smaller error, but is biased."""
        return nearest_law(self.share_estimates)

    @cached_property
    def released_shares(self) -> Shares:
        """The estimate of the average output distribution."""
        ends = (
            clopper_pearson_interval_ends(self.counts, self.samples, self.confidence, among=n)
            for n in (1, len(self.counts))
        )
        (low, high), (all_low, all_high) = ends
        return Shares(self.counts / self.samples, low, high, lower_ends_with_sum_at_most_one(all_low), all_high)

    @cached_property
    def liar_shift(self) -> float:
        """By how much one false sample can have moved a share: the share of x is the average of A[y, x] over the samples y, A = K^-1."""
        return float(np.ptp(self._inverse_matrix, axis=0).max()) / self.samples

    def __repr__(self) -> str:
        return f"<InvertedPopulation behind {self.samples:,} samples of {self.mechanism!r}>"


def inverted_population(
    mechanism: Mechanism | Agreement,
    *,
    samples: ArrayLike | None = None,
    counts: LawLike | None = None,
    confidence: float = 0.95,
) -> InvertedPopulation:
    """Estimate the population from samples of a mechanism of your own, one of each client, by inverting its matrix.

    Args:
        mechanism: what released the samples, or its agreement. The law of an `OwnSampler` with `linear = True` is its matrix. Of any other
            `Mechanism` the matrix is the output at point masses, and it is compared with the output of 64 more clients.
        samples: labels or outcome numbers, one of each client.
        counts: instead of samples, the count of each outcome.
        confidence: of every interval.

    Returns:
        Shares of the average client, with intervals.

    Raises:
        DiscreetError: for a law that is not linear, a matrix that cannot be inverted, and samples that are no outcomes.
    """
    OPEN_UNIT.check("confidence", confidence)
    if (samples is None) == (counts is None):
        raise DiscreetError("pass either samples= (the released samples) or counts= (the count of each outcome)")
    sampler: Any = mechanism.sampler() if isinstance(mechanism, Agreement) else mechanism
    refuse_non_mechanism(sampler)
    if isinstance(sampler.family, ContinuousFamily):
        raise DiscreetError(f"family = {sampler.family!r} is continuous; a matrix is for a list of outcomes")
    matrix = _matrix_of_linear_mechanism(sampler)
    if not np.linalg.cond(matrix) <= _WORST_CONDITION:
        raise DiscreetError(
            f"the matrix of {sampler.name!r} cannot be inverted: different populations give the same samples; take a mechanism that keeps "
            "them apart, or a larger epsilon"
        )
    outcome_counts = _count_samples_or_check_counts(samples, counts, sampler.family.domain)
    if not outcome_counts.sum():
        raise DiscreetError("there are no samples; nothing can be estimated")
    return InvertedPopulation(sampler.family.domain, outcome_counts, matrix, sampler, float(confidence))


def _matrix_of_linear_mechanism(mechanism: Any) -> Floats:
    """The matrix of a linear law."""
    if isinstance(mechanism, OwnSampler):
        if mechanism.matrix is None:
            raise DiscreetError(
                f"{mechanism!r} does not state a linear law, so its samples tell no shares of the population; set linear = True if it is "
                "linear"
            )
        return mechanism.matrix
    size = mechanism.family.size
    matrix = np.asarray(mechanism.output(np.eye(size)), dtype=np.float64)
    if matrix.shape != (size, size):
        raise DiscreetError(
            f"output of {size} clients has shape {matrix.shape}; it takes (n, {size}) and gives (n, {size})"
        )
    test_laws = np.random.default_rng(0).dirichlet(np.ones(size), size=_TRIED)
    if not np.abs(np.asarray(mechanism.output(test_laws)) - test_laws @ matrix).max() <= _LINEAR:
        raise DiscreetError(
            f"the law of {mechanism.name!r} is not linear in p, so its samples tell no shares of the population"
        )
    return matrix


def _check_reports_and_shape(sampler: ReportSampler, reports: ArrayLike) -> NDArray[np.uint64]:
    """Checked reports (n,), or (n, J) for J of each client; a single number is one report."""
    numbers = np.atleast_1d(sampler.check_reports(reports))
    if numbers.ndim > 2:
        raise DiscreetError(f"reports has shape {numbers.shape}; it is (n,), or (n, J) for reports of J rounds")
    return numbers


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
        numbers = _check_reports_and_shape(sampler, reports)
        counts = ReportCounts(sampler).add(numbers)
        rows = ReportRows(sampler, numbers) if numbers.ndim == 2 and numbers.shape[1] > 1 and numbers.size else None
    elif counts is None or reports is not None:
        raise DiscreetError("pass either reports= (what was released) or counts= (a ReportCounts)")
    check_kind("counts", counts, ReportCounts, "pass what counted the reports")
    if counts.sampler != sampler:
        raise DiscreetError(f"counts are of reports of {counts.sampler!r}, not of {sampler!r}")
    if not counts.reports:
        raise DiscreetError("there are no reports; an estimate needs at least one, and a useful one hundreds")
    clients, supports, reweighted_examples = (
        counts.reports if rows is None else rows.client_count,
        counts.supports(),
        None,
    )
    if examples is not None:
        if reports is None or rows is not None:
            raise DiscreetError(
                "examples are weighted to explain reports=, one of each client; counts and rounds do not tell them apart"
            )
        numbers = sampler.check_reports(reports).ravel()
        reweighted_examples = reweight_examples_to_reports(
            sampler, numbers, example_laws_for_reports(sampler, examples), supports
        )
    return ReportedPopulation(
        sampler.family.domain, supports, clients, sampler, float(confidence), rows, reweighted_examples
    )


def reported_average(
    sampler: ReportSampler, *, reports: ArrayLike, values: ArrayLike, confidence: float = 0.95, name: str = "average"
) -> Estimate:
    """The population's average of a value of each outcome, behind reports: a mean, or the share of a set (values 1 and 0).

    Args:
        sampler: what released the reports.
        reports: the reports (n,), one of each client; or (n, J), a row for each client. Supports alone do not tell how reports spread, so
            these are needed again.
        values: a number for each outcome, of at most 1e100.
        confidence: of the interval.
        name: what the average is called.

    Returns:
        An unbiased estimate and its interval, which lies between the least and the largest value.

    Raises:
        DiscreetError: for no reports, numbers that are none, and values that are not one for each outcome.
    """
    OPEN_UNIT.check("confidence", confidence)
    check_kind("sampler", sampler, ReportSampler, "pass the one that released the reports")
    report_numbers, phi = _check_reports_and_shape(sampler, reports), as_floats(values, "values")
    if phi.shape != (sampler.family.size,) or not (np.abs(phi) <= LARGEST_VALUE).all():
        raise DiscreetError(
            f"values has shape {phi.shape}; it is one number from {-LARGEST_VALUE:g} to {LARGEST_VALUE:g} for each of "
            f"{sampler.family.size:,} outcomes"
        )
    if not report_numbers.size:
        raise DiscreetError("there are no reports; an estimate needs at least one, and a useful one hundreds")
    least, most, phi_mean = float(phi.min()), float(phi.max()), float(phi.mean())
    centred_values = phi - phi_mean  # a constant has no noise
    distinct, counts = np.unique(report_numbers, return_counts=True)
    if report_numbers.size > len(report_numbers):  # several of each client: one value for each is their mean
        distinct, counts = report_numbers.ravel(), np.ones(len(report_numbers), dtype=np.int64)
    sums, chances = sum_values_in_each_report(sampler.blocks, distinct, centred_values), sampler.chances
    sums = sums.reshape(len(counts), -1).mean(axis=1)

    def average_from_mean_report_sum(mean: float) -> float:
        return phi_mean + (mean - chances.outside * float(centred_values.sum())) / chances.gap

    ends = []
    for sign in (-1.0, 1.0):
        # the last one was not seen
        possible_sums = np.append(sign * sums, largest_report_sum(sampler.blocks, sign * centred_values))
        bound = sign * average_upper_bound(possible_sums, np.append(counts, 0), confidence)
        ends.append(min(max(average_from_mean_report_sum(bound), least), most))
    mean = float(counts @ sums) / len(report_numbers)
    return Estimate(name, average_from_mean_report_sum(mean), ends[0], ends[1], mean)


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
    numbers, (kind, _, parameter) = found.domain.values, name.partition(":")
    if reports is None or found.rows is not None or numbers is None or found.domain.edges is not None:
        return found.statistic(name)
    if kind == "mean" and not parameter:
        phi = outcome_value_function(found.domain)
    elif kind == "at-most":
        phi = threshold_indicator(found.domain, parse_statistic_parameter(name, parameter))
    else:
        return found.statistic(name)
    return reported_average(found.sampler, reports=reports, values=phi.values, confidence=found.confidence, name=name)
