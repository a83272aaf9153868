"""Groups and stages of clients: each estimated by itself, with intervals that hold for all groups at once, or pooled.

`estimate_groups` takes samples or reports and the public group of each client, `answer_groups` reports on a survey. `shares_within` gives
the shares within groups that are private, from the answers to a survey. `pooled_population` is the average client of stages that released
under different agreements.

**Samples and reports.** Clients draw independently, so groups of different clients are independent. If the intervals of each of G groups
hold together with probability c^(1/G), those of all groups and all outcomes hold together with probability c. Inside a group the error is
shared among the outcomes (Bonferroni). Beyond a hundred groups, intervals are Clopper and Pearson's, which are a little longer and take
less time. The groups are public: a group that is private has to be part of what is released.

**Surveys.** The reports of each public group are answered by themselves, with intervals that hold for all groups and numbers at once (the
probability of a miss is shared by all of them).

**Private groups.** A column of the survey is a group that only the client knows. Shares within it are ratios j/(j + r), of a cell j of a
table and the other cells r with the same group. The ratio grows with j and falls with r. So where intervals of all cells hold at once, it
lies between low(j)/(low(j) + high(r)) and high(j)/(high(j) + low(r)). A question for the shares of the group itself narrows this.

**Stages.** Stage i has n_i clients, other ones than the other stages, and an average client with the shares theta_i. The average client of
all has the shares sum_i w_i theta_i with w_i = n_i/sum_j n_j, which are public. Stages of one sampler are one stage: their counts add up.

**Two samplers.** The theorem on a change (`discreet.estimation._shifts`) holds for any growing function of the two shares, so for their sum
too: let z and z' measure how far each count lies above its mean. The pairs of chances that u z + w z' < c and the cap leave contain the
truth with probability 1 - error, and the least sum among them is the lower end. The upper end is the same for the lower tails.

**More samplers.** Each of m stages has intervals that miss with an m-th of the error. Where all hold, the sum lies between the sums of their
ends.

Where the average client of a stage is not identifiable, its ends hold every share that could have led to the samples, and so do those here.
The estimate then takes the samples of that stage as they are.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.agreement import Agreement
from discreet.domain import Domain, is_missing
from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._counting import LARGEST, column_as_list, default_bin_count, line_cells_of_sampler
from discreet.estimation._from_releases import population, reported_population, reported_statistic
from discreet.estimation._inference import (
    Ends,
    Estimate,
    Shares,
    clopper_pearson_interval_ends,
    lower_ends_with_sum_at_most_one,
    one_sided_miss_probability,
)
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation, merge_populations
from discreet.estimation._shifts import SPLITS, ShareBounds, SplitScores, standard_error_of_uniform_share
from discreet.estimation._surveys import SurveyAnswers, answer_survey
from discreet.families import ContinuousFamily
from discreet.mechanisms import AnyFamily, LineCells, ReportCounts, ReportSampler, Sampler
from discreet.survey import SurveySampler

Floats = NDArray[np.float64]
_MANY = 100  # groups, beyond which intervals are Clopper and Pearson's
_LITTLE = 0.75  # of what clients can have: an interval that long tells next to nothing


@dataclass(frozen=True, eq=False)
class GroupedPopulation:
    """Estimates of several groups of clients. Made by `estimate_groups`.

    Attributes:
        groups: the estimate of each group by itself, in order.
        confidence: of every interval.
        reports: the reports of each group, where they are there. With them statistics have narrower intervals.
    """

    groups: Mapping[Any, AnyPopulation]
    confidence: float
    reports: Mapping[Any, NDArray[np.uint64]] | None = None

    def __repr__(self) -> str:
        return f"<GroupedPopulation of {len(self.groups):,} groups, {self.clients:,} clients>"

    @property
    def clients(self) -> int:
        """The number of clients in all groups."""
        return sum(group.clients for group in self.groups.values())

    @property
    def group_confidence(self) -> float:
        """The confidence that each group needs by itself, such that all groups hold together."""
        return math.pow(self.confidence, 1.0 / len(self.groups))

    @cached_property
    def laws(self) -> dict[Any, Shares]:
        """The average client's distribution in each group. `all_low` and `all_high` hold for all outcomes of all groups at once."""
        confidence, laws = self.group_confidence, {}
        for name, group in self.groups.items():
            if len(self.groups) > _MANY:  # Clopper and Pearson's ends take less time
                ends = clopper_pearson_interval_ends(group.counts, group.clients, group.confidence)
                all_ends = clopper_pearson_interval_ends(
                    group.counts, group.clients, confidence, among=len(group.counts)
                )
                laws[name] = group.law_from_released_intervals(ends, all_ends)
                continue
            all_law = replace(group, confidence=confidence).law
            laws[name] = replace(group.law, all_low=all_law.all_low, all_high=all_law.all_high)
        return laws

    @cached_property
    def whole(self) -> AnyPopulation:
        """The estimate from the clients of all groups together."""
        return merge_populations(list(self.groups.values()))

    @cached_property
    def margins(self) -> dict[Any, float]:
        """How far the longest interval of each group reaches from its estimate, all groups at once."""
        margins = {}
        for name, law in self.laws.items():
            inside = np.clip(law.estimate, law.all_low, law.all_high)
            margins[name] = float(np.maximum(law.all_high - inside, inside - law.all_low).max())
        return margins

    @cached_property
    def silent(self) -> tuple[Any, ...]:
        """The groups that are too small to tell anything: every interval covers three quarters of what clients can have, or more."""
        names = []
        for name, law in self.laws.items():
            least, most = self.groups[name].share_bounds
            if (law.all_high - law.all_low >= _LITTLE * (most - least)).all():
                names.append(name)
        return tuple(names)

    def statistic(self, wanted: str | Callable[[Any], float]) -> dict[Any, Estimate]:
        """A statistic of each group, with intervals that hold for all groups at once.

        Args:
            wanted: as for `Population.statistic`; of reports "mean" or "at-most:X".

        Returns:
            An estimate for each group.

        Raises:
            DiscreetError: for an unknown statistic, and for outcomes that are no numbers.
        """
        estimates = {}
        for name, group in self.groups.items():
            wide_group = replace(group, confidence=self.group_confidence)
            if isinstance(wide_group, Population):
                estimates[name] = wide_group.statistic(wanted)
                continue
            check_kind("wanted", wanted, str, 'pass "mean" or "at-most:X"')
            group_reports = None if self.reports is None else self.reports[name]
            estimates[name] = reported_statistic(wide_group, str(wanted), group_reports)
        return estimates


def estimate_groups(
    sampler: Sampler[AnyFamily] | ReportSampler | Agreement,
    *,
    samples: ArrayLike | None = None,
    reports: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    counts: Mapping[Any, Any] | None = None,
    bins: int | None = None,
    confidence: float = 0.95,
) -> GroupedPopulation:
    """Estimate every group of clients by itself, with intervals that hold for all groups and outcomes at once.

    Args:
        sampler: the sampler that released the samples or reports, or its agreement.
        samples: one sample of each client: labels, outcome numbers, or points of an interval.
        reports: or one report of each client.
        groups: the public group of each client, in the same order.
        counts: instead of these, for each group the count of each outcome, or a `ReportCounts`.
        bins: on a continuous family, the number of bins, the same in all groups.
        confidence: of every interval.

    Returns:
        An estimate of each group.

    Raises:
        DiscreetError: for clients without a group (with their number), and for samples that this sampler cannot have released.

    Example:
        >>> found = estimate_groups(LinearSampler(Simplex(2), epsilon=1.0), samples=[0, 1, 1], groups=["north", "south", "south"])
        >>> found.laws["south"].all_low
    """
    OPEN_UNIT.check("confidence", confidence)
    if isinstance(sampler, Agreement):
        if sampler.joint is not None:
            raise DiscreetError(f"{sampler!r} is on several samples of each client; groups are for one of each")
        sampler = sampler.sampler() if sampler.blocks is None else sampler.report_sampler()
    has_reports = isinstance(sampler, ReportSampler)
    if not has_reports:
        check_kind("sampler", sampler, Sampler, "pass the one that released the samples or reports, or its agreement")
    if counts is not None:
        check_kind("counts", counts, Mapping, "pass the counts of each group, by its name")
    releases, other = (reports, samples) if has_reports else (samples, reports)
    if other is not None:
        kind, argument = ("reports", "reports=") if has_reports else ("samples", "samples=")
        raise DiscreetError(f"{sampler!r} releases {kind}; pass {argument}")
    if (counts is None) == (releases is None) or (releases is None) != (groups is None):
        raise DiscreetError("pass samples= (or reports=) with groups=, the group of each; or counts= of each group")
    group_reports: dict[Any, Any] | None = None
    if counts is None:
        releases_by_group = _split_releases_by_group(releases, groups)
        if isinstance(sampler, ReportSampler):
            group_reports = {name: sampler.check_reports(np.asarray(part)) for name, part in releases_by_group.items()}
            if any(part.size > len(part) for part in group_reports.values()):
                raise DiscreetError(
                    "reports has a row of several for each client; groups are for one report of each, of one round"
                )
            counts = {name: ReportCounts(sampler).add(part) for name, part in group_reports.items()}
        else:
            domain = _counting_domain_of_sampler(sampler)
            counts = {
                name: np.bincount(domain.numbers(part), minlength=domain.size).astype(np.int64)
                for name, part in releases_by_group.items()
            }
    if not counts:
        raise DiscreetError("there are no groups; an estimate needs at least one client")
    return GroupedPopulation(
        _estimate_each_group(sampler, counts, bins, float(confidence)), float(confidence), group_reports
    )


def _estimate_each_group(
    sampler: Sampler[AnyFamily] | ReportSampler, counts: Mapping[Any, Any], bins: int | None, confidence: float
) -> dict[Any, AnyPopulation]:
    """The estimate of each group by itself."""
    if isinstance(sampler, ReportSampler):
        if bins is not None:
            raise DiscreetError("bins are for continuous families, which have no reports; leave them out")
        size = sampler.family.size
    else:
        size = _counting_domain_of_sampler(sampler).size
        if isinstance(sampler.family, ContinuousFamily) and bins is None:  # for all groups those of the middle one
            bins = default_bin_count(
                sampler, int(np.median([np.sum(group_counts) for group_counts in counts.values()]))
            )
    if size * len(counts) > LARGEST:
        raise DiscreetError(
            f"{len(counts):,} groups of {size:,} outcomes are more than {LARGEST:,} shares; take a column with fewer groups"
        )
    estimates: dict[Any, AnyPopulation] = {}
    for name, group_counts in counts.items():
        if isinstance(sampler, ReportSampler):
            estimates[name] = reported_population(sampler, counts=group_counts, confidence=confidence)
        else:
            estimates[name] = population(sampler, counts=group_counts, bins=bins, confidence=confidence)
    return estimates


def _counting_domain_of_sampler(sampler: Sampler[AnyFamily]) -> Domain | LineCells:
    """The outcomes that samples are counted on: those of a finite family, or the cells of a line."""
    return line_cells_of_sampler(sampler) if isinstance(sampler.family, ContinuousFamily) else sampler.family.domain


def _split_releases_by_group(releases: Any, groups: Any) -> dict[Any, list[Any]]:
    """What each group released, groups in order."""
    try:
        values, names = list(column_as_list(releases)), list(column_as_list(groups))
    except TypeError:
        raise DiscreetError("groups is not a list, one group for each client") from None
    if len(values) != len(names):
        raise DiscreetError(f"groups names {len(names):,} groups for {len(values):,} clients; name one for each")
    missing = sum(map(is_missing, names))
    if missing:
        raise DiscreetError(
            f"{missing:,} of {len(names):,} clients have no group; leave them out, or name a group for them"
        )
    releases_by_group: dict[Any, list[Any]] = {}
    for name, value in zip(names, values, strict=True):
        if not isinstance(name, Hashable):
            raise DiscreetError(f"groups holds {name!r}, which cannot name a group; pass texts or numbers")
        releases_by_group.setdefault(name, []).append(value)
    try:
        group_order = sorted(releases_by_group)
    except TypeError:  # of several kinds: in the order of their texts
        group_order = sorted(releases_by_group, key=str)
    return {name: releases_by_group[name] for name in group_order}


def answer_groups(
    sampler: SurveySampler, reports: Mapping[Any, ArrayLike], *, confidence: float = 0.95
) -> dict[Any, SurveyAnswers]:
    """The answers to a survey in each public group of clients.

    Args:
        sampler: what released the reports.
        reports: by group, the reports of its clients.
        confidence: of every interval; those that hold together hold for all groups too.

    Returns:
        The answers by group, in the same order.

    Raises:
        DiscreetError: for no groups, a group without reports, and numbers that are no reports.
    """
    check_kind("reports", reports, Mapping, "pass a dict with the reports of each group")
    if not reports:
        raise DiscreetError("reports is empty; give at least one group")
    return {
        name: answer_survey(sampler, group_reports, confidence=confidence, among=len(reports))
        for name, group_reports in reports.items()
    }


def shares_within(found: SurveyAnswers, place: int, column: str) -> dict[Any, Shares]:
    """Shares within each private group: of an outcome, among those with the same outcome of one column.

    Args:
        found: what `answer_survey` returned.
        place: of a question for shares of two or three columns.
        column: the one that groups.

    Returns:
        By outcome of that column, the shares of the other columns' outcomes, with intervals that hold for all numbers of the survey at
        once (`low`, `high` and `all_low`, `all_high` are the same). An estimate is not a number in a group without an estimated share.

    Raises:
        DiscreetError: for another question, or a column that is not in it.
    """
    check_kind("found", found, SurveyAnswers, "pass what answer_survey(...) returns")
    check_kind("place", place, int, "pass the place of a question")
    check_kind("column", column, str, "pass the name of a column")
    if not 0 <= place < len(found.answers):
        raise DiscreetError(f"place = {place} is not one of the {len(found.answers)} questions, from 0 on")
    answer = found[place]
    columns = found.sampler.survey.columns
    if answer.question.kind != "shares" or len(answer.question.columns) < 2 or column not in answer.question.columns:
        raise DiscreetError(
            f"question {place} asks for {answer.question.title}; shares within {column!r} are those of a question for shares of that column "
            "and another"
        )
    axis, sizes = answer.question.columns.index(column), columns.column_sizes(answer.question.columns)

    def reshape_to_group_rows(values: Floats) -> Floats:
        return np.moveaxis(values.reshape(sizes), axis, 0).reshape(sizes[axis], -1)

    cells, low, high = (
        reshape_to_group_rows(values) for values in (answer.nearest, answer.law.all_low, answer.law.all_high)
    )
    least, most = _group_share_interval_ends(found, column, low, high)
    names = columns[column].names
    return {
        names[group]: _conditional_cell_shares(cells[group], low[group], high[group], least[group], most[group])
        for group in range(len(cells))
    }


def _group_share_interval_ends(found: SurveyAnswers, column: str, low: Floats, high: Floats) -> Ends:
    """Between what the share of each group lies: by its cells, and by the question for it if there is one."""
    least, most = low.sum(axis=1), np.minimum(high.sum(axis=1), 1.0)
    for answer in found:
        if answer.question.kind == "shares" and answer.question.columns == (column,):
            least, most = np.maximum(least, answer.law.all_low), np.minimum(most, answer.law.all_high)
    return least, most


def _conditional_cell_shares(cells: Floats, low: Floats, high: Floats, least: float, most: float) -> Shares:
    """The shares of cells within their sum, which lies between `least` and `most`."""
    total = cells.sum()
    estimate = cells / total if total > 0.0 else np.full(len(cells), np.nan)
    others_high, others_low = high.sum() - high, low.sum() - low
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(low > 0.0, low / np.minimum(low + others_high, max(most, 1e-300)), 0.0)
        widest = np.maximum(high + others_low, least)
        top = np.where(widest > 0.0, high / widest, 1.0)
    ends = np.clip([bottom, top], 0.0, 1.0)
    least_share, largest_share = ends.min(axis=0), ends.max(axis=0)  # where intervals of cells contradict each other
    return Shares(estimate, least_share, largest_share, least_share, largest_share)


@dataclass(frozen=True, eq=False)
class PooledPopulation:
    """The average client of several stages together. Made by `pooled_population`.

    Attributes:
        stages: the estimate of each stage by itself, in order.
        confidence: of every interval.
    """

    stages: tuple[AnyPopulation, ...]
    confidence: float

    def __repr__(self) -> str:
        return f"<PooledPopulation of {len(self.stages)} stages, {self.clients:,} clients>"

    @property
    def clients(self) -> int:
        """The number of clients in all stages."""
        return sum(stage.clients for stage in self.stages)

    @property
    def domain(self) -> Domain:
        """The outcomes."""
        return self.stages[0].domain

    @property
    def exact(self) -> bool:
        """Whether the average client of every stage is identifiable; otherwise the estimate takes the samples of the others as they are."""
        return all(stage.exact for stage in self.stages)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings to read before trusting the numbers; empty if there are none."""
        return self.doubts_with_stage_numbers(range(1, len(self.stages) + 1))

    def doubts_with_stage_numbers(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The same warnings with other numbers of the stages, where these are not all stages of a collection."""
        doubts = [
            f"stage {number}: {doubt}"
            for number, stage in zip(numbers, self.stages, strict=True)
            for doubt in stage.doubts_about_agreement
        ]
        if not self.exact:
            doubts.append(
                "some stages do not tell their average client without bias: intervals hold every share that could have led to the samples, "
                "and the estimate takes the samples of these stages as they are"
            )
        return tuple(doubts)

    @cached_property
    def law(self) -> Shares:
        """The average client: estimates, their intervals, and intervals that hold for all outcomes at once."""
        weights = self._stage_weights(self.stages)
        estimate = sum((w * stage.law.estimate for w, stage in zip(weights, self.stages, strict=True)), np.zeros(1))
        low, high = self._pooled_share_interval_ends(1)
        all_low, all_high = self._pooled_share_interval_ends(len(estimate))
        return Shares(estimate, low, high, lower_ends_with_sum_at_most_one(all_low), all_high)

    @cached_property
    def _stages_merged_by_sampler(self) -> tuple[AnyPopulation, ...]:
        """The stages, those of one sampler as one."""
        merged_stages: list[AnyPopulation] = []
        for stage in self.stages:
            index = next((i for i, other in enumerate(merged_stages) if other.sampler == stage.sampler), None)
            if index is None:
                merged_stages.append(stage)
            else:
                merged_stages[index] = merge_populations([merged_stages[index], stage])
        return tuple(merged_stages)

    def _stage_weights(self, stages: Sequence[AnyPopulation]) -> list[float]:
        return [stage.clients / self.clients for stage in stages]

    def _pooled_share_interval_ends(self, among: int) -> Ends:
        stages, weights = self._stages_merged_by_sampler, self._stage_weights(self._stages_merged_by_sampler)
        error = one_sided_miss_probability(self.confidence, among)
        if len(stages) == 1:
            law = replace(stages[0], confidence=self.confidence).law
            return (law.low, law.high) if among == 1 else (law.all_low, law.all_high)
        if len(stages) == 2:
            scaled_errors = (
                weights[0] * standard_error_of_uniform_share(stages[0]),
                weights[1] * standard_error_of_uniform_share(stages[1]),
            )
            scores = SplitScores.from_standard_errors(scaled_errors, error, SPLITS)
            first_bounds, second_bounds = (
                ShareBounds.from_estimate_and_scores(stage, steps)
                for stage, steps in zip(stages, (scores.before, scores.after), strict=True)
            )
            # of each step the ends on which both scores are larger: the first falls while the second grows
            low = (
                weights[0] * first_bounds.low[first_bounds.pair_numbers, :-1]
                + weights[1] * second_bounds.low[second_bounds.pair_numbers, 1:]
            )
            high = (
                weights[0] * first_bounds.high[first_bounds.pair_numbers, :-1]
                + weights[1] * second_bounds.high[second_bounds.pair_numbers, 1:]
            )
            return low.min(axis=1), high.max(axis=1)
        stage_error = (1.0 - self.confidence) / (among * len(stages))
        laws = [replace(stage, confidence=1.0 - stage_error).law for stage in stages]
        low = sum((w * law.low for w, law in zip(weights, laws, strict=True)), np.zeros(1))
        return low, sum((w * law.high for w, law in zip(weights, laws, strict=True)), np.zeros(1))


def pooled_population(stages: Sequence[AnyPopulation], *, confidence: float | None = None) -> PooledPopulation:
    """The average client of several stages of a collection, each of other clients and perhaps by another mechanism.

    Args:
        stages: what `population` or `reported_population` gave for each stage.
        confidence: of every interval; by default the smallest of the stages.

    Returns:
        The shares of the average client of all stages, with intervals.

    Raises:
        DiscreetError: for no stages, stages on other outcomes, bins of a continuous family, and several samples of each client.
    """
    check_kind("stages", stages, Sequence, "pass a list of estimates, one of each stage")
    if not stages:
        raise DiscreetError("stages is empty; pass the estimate of each stage")
    for index, stage in enumerate(stages):
        if not isinstance(stage, (Population, ReportedPopulation)):
            raise DiscreetError(
                f"stages[{index}] = {stage!r} is no estimate; pass what population(...) or reported_population(...) gave"
            )
        if stage.rows is not None or stage.finest is not None:
            raise DiscreetError(
                f"stages[{index}] has several samples of each client, or bins of a continuous family; stages are pooled for one sample of "
                "each client on outcomes that can be listed"
            )
        if list(stage.domain.names) != list(stages[0].domain.names):
            raise DiscreetError(f"stages[{index}] is on other outcomes than stages[0]; stages are pooled on the same")
    level = min(stage.confidence for stage in stages) if confidence is None else confidence
    return PooledPopulation(tuple(stages), float(OPEN_UNIT.check("confidence", level)))
