"""`discreet estimate` of several groups or files: groups side by side, the change between two files, and stages together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from rich.table import Table

from discreet._base.showing import confidence_text, pluralise
from discreet.agreement import Agreement, RowTerms
from discreet.cli._estimate._report import (
    outcome_numbers_shown_in_table,
    print_survey_change,
    print_survey_estimate_by_group,
    print_survey_shares_within_groups,
)
from discreet.cli._options import (
    EstimateOptions,
    domain_from_options,
    mechanism_text,
    privacy_promise_text,
    read_agreement_of_samples,
    refuse_estimate_options_beside,
)
from discreet.cli._printing import (
    empty_table,
    format_number,
    interval_text,
    margin_text,
    notes_as_text_blocks,
    percent_interval_text,
    percent_text,
    print_json_or_text,
    safe_text,
)
from discreet.errors import DiscreetError
from discreet.estimation import (
    AnyPopulation,
    Change,
    ClientGroups,
    Estimate,
    GroupedPopulation,
    PooledPopulation,
    ReportTally,
    SampleTally,
    SharedClients,
    change,
    coding_and_sampler,
    count_shared_and_unshared_clients,
    estimate_groups,
    json_record_of_change,
    json_record_of_group_estimates,
    json_record_of_pooled_estimate,
    notes_on_estimate,
    pooled_population,
    population,
    refuse_clients_in_several_sources,
    refuse_names_that_are_no_row_numbers,
    reported_population,
    tally_releases_by_group,
    tally_reports,
    tally_samples,
)
from discreet.families import serves_everybody
from discreet.mechanisms import AnyFamily, ReportSampler, Sampler
from discreet.plots import privacy_label, shorten_name
from discreet.tables import Source, file_in_both_inputs, file_source

TOP_OF_GROUPS, TOP_CHANGES = 8, 15  # outcomes to list where nobody says how many
_MOST_NAMED = 5  # groups in a note
_MOST_LISTED = 50  # groups in a table
_WIDE = 0.1  # margin of a share from which a group says little


@dataclass(frozen=True, eq=False)
class _CountedTable:
    """A table of samples or reports that was counted, with its agreement."""

    agreement: Agreement
    sampler: Sampler[AnyFamily] | ReportSampler
    tally: SampleTally | ReportTally
    column: str

    @classmethod
    def count_table(cls, records: Source, agreement: Agreement, options: EstimateOptions) -> "_CountedTable":
        """Count a table once, with all checks of an estimate."""
        labels = domain_from_options(options.domain)
        if agreement.joint is not None:
            raise DiscreetError(
                f"agreement {agreement.id[:12]} is on {agreement.joint.samples} samples of each client drawn together; groups and "
                "changes are for one sample of each client"
            )
        if agreement.blocks is None:
            coding, sampler = coding_and_sampler(agreement, labels)
            return cls(
                agreement, sampler, tally_samples(records, agreement, coding, sample=options.sample), options.sample
            )
        column = options.report_column
        reports = tally_reports(records, agreement, labels, column=column, keep=bool(options.statistic))
        return cls(agreement, reports.counts.sampler, reports, column)

    def estimate_population(self, confidence: float, bins: int | None) -> AnyPopulation:
        """The estimate from all of it."""
        if isinstance(self.tally, ReportTally):
            return reported_population(self.tally.counts.sampler, counts=self.tally.counts, confidence=confidence)
        assert not isinstance(self.sampler, ReportSampler)
        return population(self.sampler, counts=self.tally.counts, bins=bins, confidence=confidence)

    def notes_on_estimate(self, estimate: AnyPopulation) -> list[str]:
        """What a reader of an estimate from it should know."""
        return notes_on_estimate(estimate, self.agreement, named=self.tally.named, distinct=self.tally.distinct)

    @property
    def mechanism_and_agreement_text(self) -> str:
        """The mechanism and the agreement."""
        kind = mechanism_text(self.agreement.mechanism, any_client=serves_everybody(self.sampler.family))
        promise = privacy_promise_text(self.agreement.promise, self.agreement.epsilon)
        return f"{kind} on {safe_text(self.agreement.family.description, most=300)}, {promise} (agreement {self.agreement.id[:12]})"


def print_estimate_by_group(
    options: EstimateOptions, by: str, clients_table: str | None, client: str | None, null_groups: str | None
) -> None:
    """`--by`: every group of a public column, with intervals that hold all at once."""
    if client is not None and clients_table is None:
        raise DiscreetError("--client names the clients in --clients-table FILE; give that too")
    options.refuse_stdin_and_unusable_picture({} if clients_table is None else {"--clients-table": clients_table})
    records = file_source(options.source)
    clients = None if clients_table is None else file_source(clients_table)
    if clients is not None and client is None:
        client = _default_client_column(records, clients)
    agreement = read_agreement_of_samples(records, options.agreement)
    if agreement.survey is not None:
        _refuse_options_for_surveys(options)
        if (
            clients is None
            and by not in records.schema
            and isinstance(agreement.family, RowTerms)
            and by in agreement.family.columns
        ):
            refuse_estimate_options_beside("groups that are private", {"--plot": options.plot})
            print_survey_shares_within_groups(options, records, agreement, by)
            return
        groups = ClientGroups.read(by, null_groups or "error", clients, client)
        print_survey_estimate_by_group(options, records, agreement, groups)
        return
    groups = ClientGroups.read(by, null_groups or "error", clients, client)
    table = _CountedTable.count_table(records, agreement, options)
    counts, reports, missing = tally_releases_by_group(
        records, table.tally, groups, column=table.column, keep=bool(options.statistic)
    )
    estimates = estimate_groups(table.sampler, counts=counts, bins=options.bins, confidence=options.confidence)
    if reports:
        estimates = GroupedPopulation(estimates.groups, estimates.confidence, reports)
    statistics = {name: estimates.statistic(name) for name in options.statistic}
    doubts = [*table.notes_on_estimate(estimates.whole), *_notes_on_groups(estimates, missing, groups)]
    record = (
        json_record_of_group_estimates(
            estimates, table.agreement, doubts, by=by, statistics=statistics, listed=groups.listed
        )
        if options.json
        else {}
    )
    blocks = (
        [] if options.json else _group_text_blocks(estimates, table, by, statistics, doubts, groups.listed, options.top)
    )
    title = _picture_title_with_purpose(
        table, f"{estimates.clients:,} private {table.agreement.release_kind}s by {shorten_name(by, 30)}"
    )
    options.save_picture(lambda plots: plots.groups(estimates, most=options.top or TOP_OF_GROUPS, title=title))
    options.print_estimate(record, blocks)


def _refuse_options_for_surveys(options: EstimateOptions) -> None:
    """Refuse the options that groups and changes of a survey do not have."""
    flags = {"--domain": options.domain, "--statistic": options.statistic or None, "--bins": options.bins}
    refuse_estimate_options_beside("groups or changes of a survey", flags)


def _default_client_column(records: Source, clients: Source) -> str:
    """The column of clients in a table of them: the one that the samples have too."""
    first = next(iter(records.schema))
    for name in (first, "client"):
        if name in clients.schema:
            return name
    raise DiscreetError(
        f"{clients.name} has no column {first!r}, which names the clients of {records.name}; say which one does: --client COLUMN"
    )


def _picture_title_with_purpose(table: _CountedTable, what: str) -> str:
    title = f"{what} {privacy_label(table.agreement.promise, table.agreement.epsilon)}"
    return f"{shorten_name(table.agreement.purpose, 60)}: {title}" if table.agreement.purpose else title


def _notes_on_groups(estimates: GroupedPopulation, missing: int, groups: ClientGroups) -> list[str]:
    notes = []
    if missing and groups.nulls == "drop":
        notes.append(f"{pluralise(missing, 'client')} without a group were left out")
    if estimates.silent:
        sizes = [f"{name!r} ({estimates.groups[name].clients:,})" for name in estimates.silent]
        more = f" and {len(sizes) - _MOST_NAMED:,} more" if len(sizes) > _MOST_NAMED else ""
        notes.append(
            f"{pluralise(len(sizes), 'group')} with so few clients that intervals cover three quarters of what is possible, or more: "
            f"{', '.join(sizes[:_MOST_NAMED])}{more}; join small groups, or wait for more clients"
        )
    wide_count = sum(margin > _WIDE and name not in estimates.silent for name, margin in estimates.margins.items())
    if wide_count > 0:
        notes.append(
            f"{wide_count:,} of {len(estimates.groups):,} groups tell some share to no better than +-{100 * _WIDE:g} %: see the column +-"
        )
    return notes


def _group_text_blocks(
    estimates: GroupedPopulation,
    table: _CountedTable,
    by: str,
    statistics: Mapping[str, Mapping[Any, Estimate]],
    doubts: list[str],
    listed_counts: Mapping[str, int] | None,
    top: int | None,
) -> list[Any]:
    all_clients, first = estimates.whole, next(iter(estimates.groups.values()))
    size = len(first.counts)
    outcomes = outcome_numbers_shown_in_table(
        -all_clients.law.estimate, first.domain.edges is not None, top, TOP_OF_GROUPS
    )
    blocks: list[Any] = [
        f"[bold]{pluralise(estimates.clients, table.agreement.release_kind)}[/bold] in {pluralise(len(estimates.groups), 'group')} by "
        f"{safe_text(by)}, {table.mechanism_and_agreement_text}.",
        *notes_as_text_blocks(doubts),
        _group_shares_table(estimates, outcomes, listed_counts),
    ]
    omissions = [f"{pluralise(size - len(outcomes), 'more outcome')} (--top, --json)"] * (size > len(outcomes))
    omissions += [f"{pluralise(len(estimates.groups) - _MOST_LISTED, 'more group')} (--json)"] * (
        len(estimates.groups) > _MOST_LISTED
    )
    if omissions:
        blocks.append(f"Not shown: {', '.join(omissions)}.")
    if statistics:
        blocks.append(_group_statistics_table(estimates, statistics))
    share_kind = "unbiased estimates of the average client's" if first.exact else "those among the samples"
    return [
        *blocks,
        f"[bold]Intervals[/bold] hold for all {len(estimates.groups):,} groups and {size:,} outcomes at once, also for those that you pick "
        "after looking: two groups differ where theirs do not overlap. "
        f"Shares are {share_kind} in each group, by itself. +- is the longest reach of an interval in the group.",
        "[bold]Groups[/bold] are public: whoever reads this file knows each client's. A group that is private has to be part of what "
        "clients release.",
    ]


def _group_shares_table(
    estimates: GroupedPopulation, outcomes: list[int], listed_counts: Mapping[str, int] | None
) -> Table:
    first = next(iter(estimates.groups.values()))
    names = first.domain.names
    table = empty_table(
        "group",
        "outcome",
        "clients",
        "+-, %",
        "share, %" if first.exact else "samples, %",
        f"{confidence_text(estimates.confidence)} interval, all at once",
        texts=2,
    )
    for name in list(estimates.groups)[:_MOST_LISTED]:
        law, clients = estimates.laws[name], f"{estimates.groups[name].clients:,}"
        if listed_counts is not None:
            clients += f" of {listed_counts.get(name, 0):,}"
        for row, outcome in enumerate(outcomes):
            head = (
                (safe_text(name, most=60), clients, margin_text(100.0 * estimates.margins[name], 2))
                if row == 0
                else ("", "", "")
            )
            ends = percent_interval_text(law.all_low[outcome], law.all_high[outcome])
            label = safe_text(names[outcome], most=60)
            table.add_row(head[0], label, head[1], head[2], percent_text(law.estimate[outcome]), ends)
    return table


def _group_statistics_table(estimates: GroupedPopulation, statistics: Mapping[str, Mapping[Any, Estimate]]) -> Table:
    has_blur = any(estimate.blur for by_group in statistics.values() for estimate in by_group.values())
    interval = f"{confidence_text(estimates.confidence)} interval, all groups at once"
    table = empty_table("group", "statistic", "estimate", interval, *(["of it: cells"] if has_blur else []), texts=2)
    for name in list(estimates.groups)[:_MOST_LISTED]:
        for statistic, by_group in statistics.items():
            cells = _statistic_cell_texts(by_group[name], has_blur=has_blur)
            table.add_row(safe_text(name, most=60), safe_text(statistic), *cells)
    return table


def _statistic_cell_texts(estimate: Estimate, *, has_blur: bool) -> list[str]:
    """The estimate, its interval and, where cells of an interval blur some statistic of a table (`has_blur`), their part in it."""
    cells = [format_number(estimate.estimate), interval_text(estimate.low, estimate.high)]
    return [*cells, f"+-{format_number(estimate.blur)}"] if has_blur else cells


def print_change_between_files(options: EstimateOptions, compare: str) -> None:
    """`--compare`: the difference between two files, IN less the other."""
    options.refuse_stdin_and_unusable_picture({"--compare": compare})
    later, earlier = file_source(options.source), file_source(compare)
    shared_file = file_in_both_inputs(compare, options.source)
    if shared_file is not None:
        raise DiscreetError(
            f"--compare {compare} reads the same file as {options.source}: {shared_file}; name others to compare with"
        )
    agreements = [
        read_agreement_of_samples(
            records, None if records.agreement is not None and records is earlier else options.agreement
        )
        for records in (earlier, later)
    ]
    if all(agreement.survey is not None for agreement in agreements):
        _refuse_options_for_surveys(options)
        sides = tuple(zip((earlier, later), agreements, strict=True))
        shared_clients = count_shared_and_unshared_clients(earlier, later, options.sample)
        print_survey_change(options, sides, _shared_clients_notes(shared_clients))
        return
    tables = [
        _CountedTable.count_table(records, agreement, options)
        for records, agreement in zip((earlier, later), agreements, strict=True)
    ]
    before, after = (table.estimate_population(options.confidence, options.bins) for table in tables)
    if before.finest is not None and len(before.counts) != len(after.counts):  # as many bins as suit the fewer clients
        bins = min(len(before.counts), len(after.counts))
        before, after = (table.estimate_population(options.confidence, bins) for table in tables)
    difference = change(before, after)
    reports = [table.tally.reports for table in tables if isinstance(table.tally, ReportTally)]
    both_reports = (
        (reports[0], reports[1]) if len(reports) == 2 and reports[0] is not None and reports[1] is not None else None
    )
    statistics = [difference.statistic(name, reports=both_reports) for name in options.statistic]
    shared_clients = count_shared_and_unshared_clients(earlier, later, options.sample)
    doubts = [*_notes_of_both_files(difference, tables), *_shared_clients_notes(shared_clients)]
    record = (
        json_record_of_change(difference, (tables[0].agreement, tables[1].agreement), doubts, statistics=statistics)
        if options.json
        else {}
    )
    if options.json and shared_clients is not None:
        record["clients"] = {
            "only_before": shared_clients.before,
            "both": shared_clients.both,
            "only_after": shared_clients.after,
        }
    blocks = (
        []
        if options.json
        else _change_text_blocks(difference, tables, statistics, doubts, (compare, options.source), options.top)
    )
    purpose, clients = tables[1].agreement.purpose, f"{before.clients:,} to {after.clients:,} clients"
    title = f"{shorten_name(purpose, 60)}: change from {clients}" if purpose else None
    options.save_picture(lambda plots: plots.change(difference, most=options.top or TOP_CHANGES, title=title))
    options.print_estimate(record, blocks)


def print_estimate_from_stages(options: EstimateOptions, sources: Sequence[str], *, numbered: bool) -> None:
    """`estimate IN IN...`: the average client of several stages, each of other clients. `numbered`: names of clients are no names."""
    options.refuse_stdin_and_unusable_picture({f"IN {number}": name for number, name in enumerate(sources, start=1)})
    files = [file_source(name) for name in sources]
    for first, second in combinations(sources, 2):
        if file_in_both_inputs(first, second) is not None:
            raise DiscreetError(
                f"a file is named twice, by {first} and by {second}; stages are samples of different clients"
            )
    agreements = [
        read_agreement_of_samples(file, None if file.agreement is not None else options.agreement) for file in files
    ]
    if any(agreement.survey is not None for agreement in agreements):
        raise DiscreetError(
            "stages of a survey are not estimated together; estimate each file by itself, or the change: --compare"
        )
    if numbered:
        for file in files:
            refuse_names_that_are_no_row_numbers(file, options.sample)
        disjoint = False
    else:
        disjoint = _refuse_clients_in_two_stages(files, options.sample)
    tables = [
        _CountedTable.count_table(records, agreement, options)
        for records, agreement in zip(files, agreements, strict=True)
    ]
    estimate = pooled_population([table.estimate_population(options.confidence, None) for table in tables])
    assumption = (
        "that no client is in two of the files is assumed, and was not checked: not all of them name their clients"
    )
    doubts = [] if disjoint else [assumption]
    doubts += estimate.doubts
    blocks = _stages_text_blocks(estimate, tables, sources, doubts, options.top)
    record = json_record_of_pooled_estimate(estimate, dict(enumerate(agreements, start=1)), doubts)
    print_json_or_text(record, *blocks, json=options.json)


def _refuse_clients_in_two_stages(files: Sequence[Source], sample: str) -> bool:
    try:
        return refuse_clients_in_several_sources(files, sample)
    except DiscreetError as error:
        raise DiscreetError(
            f"{error}. If they are rounds of one agreement, give them as one input with --rounds. If they are exports of a store, whose rows "
            "are numbered and name nobody, say --numbered"
        ) from None


def _stages_text_blocks(
    estimate: PooledPopulation,
    tables: Sequence[_CountedTable],
    files: Sequence[str],
    doubts: Sequence[str],
    top: int | None,
) -> list[Any]:
    size = len(estimate.law.estimate)
    outcomes = outcome_numbers_shown_in_table(
        -estimate.law.estimate, estimate.domain.edges is not None, top, TOP_CHANGES
    )
    heads = [
        f"[bold]Stage {number}[/bold]: {safe_text(file)}, {pluralise(stage.clients, stage_table.agreement.release_kind)}, "
        f"{stage_table.mechanism_and_agreement_text}."
        for number, (file, stage, stage_table) in enumerate(zip(files, estimate.stages, tables, strict=True), start=1)
    ]
    table = empty_table(
        "outcome",
        *(f"stage {number}, %" for number in range(1, len(files) + 1)),
        "together, %",
        f"{confidence_text(estimate.confidence)} interval, all {size:,} at once",
    )
    for outcome in outcomes:
        table.add_row(
            safe_text(estimate.domain.names[outcome], most=60),
            *(percent_text(stage.law.estimate[outcome]) for stage in estimate.stages),
            percent_text(estimate.law.estimate[outcome]),
            percent_interval_text(estimate.law.all_low[outcome], estimate.law.all_high[outcome]),
        )
    more = [f"{pluralise(size - len(outcomes), 'more outcome')}: --top, --json."] if size > len(outcomes) else []
    return [
        "\n".join(heads),
        *notes_as_text_blocks(doubts),
        table,
        *more,
        f"[bold]Together[/bold]: the average of all {estimate.clients:,} clients, each of whom counts the same. Intervals hold for all "
        "outcomes at once, whatever the stages have in common.",
    ]


def _notes_of_both_files(difference: Change, tables: list[_CountedTable]) -> list[str]:
    before, after = (
        table.notes_on_estimate(estimate)
        for estimate, table in zip((difference.before, difference.after), tables, strict=True)
    )
    both = [note for note in before if note in after]
    earlier_notes = [f"before: {note}" for note in before if note not in both]
    return [*both, *earlier_notes, *(f"after: {note}" for note in after if note not in both)]


def _shared_clients_notes(shared_clients: SharedClients | None) -> list[str]:
    """Who took part in both, and what that means."""
    if shared_clients is None:
        return ["a file does not name its clients, so it is not known how many are in both"]
    if not shared_clients.both:
        return ["no client is in both files: the change is between two sets of clients, and who they are is part of it"]
    if not (shared_clients.before or shared_clients.after):
        return [f"the same {shared_clients.both:,} clients are in both files: the change is theirs"]
    return [
        f"{shared_clients.both:,} clients are in both files, {shared_clients.before:,} only before, {shared_clients.after:,} only "
        "after: the change is that of the "
        "average client of each file, from whoever took part. If those who took part once differ from the others, that is part of it; "
        "for the change of the same clients, give the files of those in both"
    ]


def _change_text_blocks(
    difference: Change,
    tables: list[_CountedTable],
    statistics: list[Estimate],
    doubts: list[str],
    files: tuple[str, str],
    top: int | None,
) -> list[Any]:
    size = len(difference.law.estimate)
    by_value = difference.after.domain.edges is not None
    outcomes = outcome_numbers_shown_in_table(-np.abs(difference.law.estimate), by_value, top, TOP_CHANGES)
    heads = [
        f"[bold]{side}[/bold]: {safe_text(file)}, {pluralise(estimate.clients, side_table.agreement.release_kind)}, "
        f"{side_table.mechanism_and_agreement_text}."
        for side, file, estimate, side_table in zip(
            ("Before", "After"), files, (difference.before, difference.after), tables, strict=True
        )
    ]
    blocks: list[Any] = [
        "\n".join(heads),
        *notes_as_text_blocks(doubts),
        _share_changes_table(difference, outcomes),
    ]
    if size > len(outcomes):
        blocks.append(f"{pluralise(size - len(outcomes), 'more outcome')}: --top, --json.")
    if statistics:
        has_blur = any(statistic.blur for statistic in statistics)
        interval = f"{confidence_text(difference.confidence)} interval"
        table = empty_table("change of", "estimate", interval, *(["of it: cells"] if has_blur else []))
        for statistic in statistics:
            table.add_row(safe_text(statistic.name), *_statistic_cell_texts(statistic, has_blur=has_blur))
        blocks.append(table)
    selection = "that you pick after looking" if by_value else "with the largest changes, which are listed first"
    return [
        *blocks,
        f"[bold]Intervals[/bold] hold for all {size:,} outcomes at once, so also for those {selection}. They are about the average client of "
        "each file, and allow for the chance of its draws. They do not allow for who took part, nor for lies.",
    ]


def _share_changes_table(difference: Change, outcomes: list[int]) -> Table:
    names, law = difference.after.domain.names, difference.law
    interval = f"{confidence_text(difference.confidence)} interval, all {len(law.estimate):,} at once"
    prefix = "" if difference.exact else "samples "
    table = empty_table("outcome", f"{prefix}before, %", f"{prefix}after, %", "change", interval, "")
    for outcome in outcomes:
        low, high = law.all_low[outcome], law.all_high[outcome]
        table.add_row(
            safe_text(names[outcome], most=60),
            percent_text(difference.before.law.estimate[outcome]),
            percent_text(difference.after.law.estimate[outcome]),
            percent_text(law.estimate[outcome], "+"),
            percent_interval_text(low, high, "+"),
            "rose" if low > 0.0 else "fell" if high < 0.0 else "",
        )
    return table
