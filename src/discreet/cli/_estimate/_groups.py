"""`discreet estimate` of several groups or files: groups side by side, the change between two files, and stages together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
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
    reported_population,
    tally_releases_by_group,
    tally_reports,
    tally_samples,
)
from discreet.families import serves_everybody
from discreet.mechanisms import AnyFamily, ReportSampler, Sampler
from discreet.plots import privacy_label, shorten_name
from discreet.tables import Source, file_source, is_among_inputs

TOP_OF_GROUPS, TOP_CHANGES = 8, 15  # outcomes to list where nobody says how many
_MOST_NAMED = 5  # groups in a note
_MOST_LISTED = 50  # groups in a table
_WIDE = 0.1  # margin of a share from which a group says little


@dataclass(frozen=True, eq=False)
class _CountedTable:
    """A table of samples or reports that was counted, with its agreement."""

    agreed: Agreement
    sampler: Sampler[AnyFamily] | ReportSampler
    tallied: SampleTally | ReportTally
    column: str

    @classmethod
    def count_table(cls, records: Source, agreed: Agreement, asked: EstimateOptions) -> "_CountedTable":
        """Count a table once, with all checks of an estimate."""
        stated = domain_from_options(asked.domain, None, None, None)
        if agreed.joint is not None:
            raise DiscreetError(
                f"agreement {agreed.id[:12]} is on {agreed.joint.samples} samples of each client drawn together; groups and changes are for "
                "one sample of each client"
            )
        if agreed.blocks is None:
            coding, sampler = coding_and_sampler(agreed, stated)
            return cls(agreed, sampler, tally_samples(records, agreed, coding, sample=asked.sample), asked.sample)
        column = asked.report_column
        reports = tally_reports(records, agreed, stated, column=column, keep=bool(asked.statistic))
        return cls(agreed, reports.counts.sampler, reports, column)

    @property
    def release_kind(self) -> str:
        """What one client released."""
        return "report" if isinstance(self.tallied, ReportTally) else "sample"

    def estimate_population(self, confidence: float, bins: int | None) -> AnyPopulation:
        """The estimate from all of it."""
        if isinstance(self.tallied, ReportTally):
            return reported_population(self.tallied.counts.sampler, counts=self.tallied.counts, confidence=confidence)
        assert not isinstance(self.sampler, ReportSampler)
        return population(self.sampler, counts=self.tallied.counts, bins=bins, confidence=confidence)

    def notes_on_estimate(self, found: AnyPopulation) -> list[str]:
        """What a reader of an estimate from it should know."""
        return notes_on_estimate(found, self.agreed, named=self.tallied.named, distinct=self.tallied.distinct)

    @property
    def mechanism_and_agreement_text(self) -> str:
        """The mechanism and the agreement."""
        kind = mechanism_text(self.agreed.mechanism, any_client=serves_everybody(self.sampler.family))
        promise = privacy_promise_text(self.agreed.promise, self.agreed.epsilon)
        return f"{kind} on {safe_text(self.agreed.family.description, most=300)}, {promise} (agreement {self.agreed.id[:12]})"


def print_estimate_by_group(
    asked: EstimateOptions, by: str, clients_table: str | None, client: str | None, null_groups: str | None
) -> None:
    """`--by`: every group of a public column, with intervals that hold all at once."""
    if client is not None and clients_table is None:
        raise DiscreetError("--client names the clients in --clients-table FILE; give that too")
    asked.refuse_stdin_and_unusable_picture({} if clients_table is None else {"--clients-table": clients_table})
    records = file_source(asked.source)
    clients = None if clients_table is None else file_source(clients_table)
    if clients is not None and client is None:
        client = _default_client_column(records, clients)
    agreed = read_agreement_of_samples(records, asked.agreement)
    if agreed.survey is not None:
        _refuse_options_for_surveys(asked)
        if (
            clients is None
            and by not in records.schema
            and isinstance(agreed.family, RowTerms)
            and by in agreed.family.columns
        ):
            refuse_estimate_options_beside("groups that are private", {"--plot": asked.plot})
            print_survey_shares_within_groups(asked, records, agreed, by)
            return
        groups = ClientGroups.read(by, null_groups or "error", clients, client)
        print_survey_estimate_by_group(asked, records, agreed, groups)
        return
    groups = ClientGroups.read(by, null_groups or "error", clients, client)
    read = _CountedTable.count_table(records, agreed, asked)
    counts, reports, missing = tally_releases_by_group(
        records, read.tallied, groups, column=read.column, keep=bool(asked.statistic)
    )
    found = estimate_groups(read.sampler, counts=counts, bins=asked.bins, confidence=asked.confidence)
    if reports:
        found = GroupedPopulation(found.groups, found.confidence, reports)
    statistics = {name: found.statistic(name) for name in asked.statistic}
    doubts = [*read.notes_on_estimate(found.whole), *_notes_on_groups(found, missing, groups)]
    said = (
        json_record_of_group_estimates(found, read.agreed, doubts, by=by, statistics=statistics, listed=groups.listed)
        if asked.json
        else {}
    )
    blocks = [] if asked.json else _group_text_blocks(found, read, by, statistics, doubts, groups.listed, asked.top)
    title = _picture_title_with_purpose(
        read, f"{found.clients:,} private {read.release_kind}s by {shorten_name(by, 30)}"
    )
    asked.save_picture(lambda plots: plots.groups(found, most=asked.top or TOP_OF_GROUPS, title=title))
    asked.print_estimate(said, blocks)


def _refuse_options_for_surveys(asked: EstimateOptions) -> None:
    """Refuse the options that groups and changes of a survey do not have."""
    given = {"--domain": asked.domain, "--statistic": asked.statistic or None, "--bins": asked.bins}
    refuse_estimate_options_beside("groups or changes of a survey", given)


def _default_client_column(records: Source, clients: Source) -> str:
    """The column of clients in a table of them: the one that the samples have too."""
    first = next(iter(records.schema))
    for name in (first, "client"):
        if name in clients.schema:
            return name
    raise DiscreetError(
        f"{clients.name} has no column {first!r}, which names the clients of {records.name}; say which one does: --client COLUMN"
    )


def _picture_title_with_purpose(read: _CountedTable, what: str) -> str:
    promised = f"{what} {privacy_label(read.agreed.promise, read.agreed.epsilon)}"
    return f"{shorten_name(read.agreed.purpose, 60)}: {promised}" if read.agreed.purpose else promised


def _notes_on_groups(found: GroupedPopulation, missing: int, groups: ClientGroups) -> list[str]:
    said = []
    if missing and groups.nulls == "drop":
        said.append(f"{pluralise(missing, 'client')} without a group were left out")
    if found.silent:
        sizes = [f"{name!r} ({found.groups[name].clients:,})" for name in found.silent]
        more = f" and {len(sizes) - _MOST_NAMED:,} more" if len(sizes) > _MOST_NAMED else ""
        said.append(
            f"{pluralise(len(sizes), 'group')} with so few clients that intervals cover three quarters of what is possible, or more: "
            f"{', '.join(sizes[:_MOST_NAMED])}{more}; join small groups, or wait for more clients"
        )
    wide = sum(margin > _WIDE and name not in found.silent for name, margin in found.margins.items())
    if wide > 0:
        said.append(
            f"{wide:,} of {len(found.groups):,} groups tell some share to no better than +-{100 * _WIDE:g} %: see the column +-"
        )
    return said


def _group_text_blocks(
    found: GroupedPopulation,
    read: _CountedTable,
    by: str,
    statistics: Mapping[str, Mapping[Any, Estimate]],
    doubts: list[str],
    listed: Mapping[str, int] | None,
    top: int | None,
) -> list[Any]:
    whole, first = found.whole, next(iter(found.groups.values()))
    size = len(first.counts)
    shown = outcome_numbers_shown_in_table(-whole.law.estimate, first.domain.edges is not None, top, TOP_OF_GROUPS)
    blocks: list[Any] = [
        f"[bold]{pluralise(found.clients, read.release_kind)}[/bold] in {pluralise(len(found.groups), 'group')} by {safe_text(by)}, "
        f"{read.mechanism_and_agreement_text}.",
        *notes_as_text_blocks(doubts),
        _group_shares_table(found, shown, listed),
    ]
    hidden = [f"{pluralise(size - len(shown), 'more outcome')} (--top, --json)"] * (size > len(shown))
    hidden += [f"{pluralise(len(found.groups) - _MOST_LISTED, 'more group')} (--json)"] * (
        len(found.groups) > _MOST_LISTED
    )
    if hidden:
        blocks.append(f"Not shown: {', '.join(hidden)}.")
    if statistics:
        blocks.append(_group_statistics_table(found, statistics))
    what = "unbiased estimates of the average client's" if first.exact else "those among the samples"
    return [
        *blocks,
        f"[bold]Intervals[/bold] hold for all {len(found.groups):,} groups and {size:,} outcomes at once, also for those that you pick "
        "after looking: two groups differ where theirs do not overlap. "
        f"Shares are {what} in each group, by itself. +- is the longest reach of an interval in the group.",
        "[bold]Groups[/bold] are public: whoever reads this file knows each client's. A group that is private has to be part of what "
        "clients release.",
    ]


def _group_shares_table(found: GroupedPopulation, shown: list[int], listed: Mapping[str, int] | None) -> Table:
    first = next(iter(found.groups.values()))
    names = first.domain.names
    made = empty_table(
        "group",
        "outcome",
        "clients",
        "+-, %",
        "share, %" if first.exact else "samples, %",
        f"{confidence_text(found.confidence)} interval, all at once",
        texts=2,
    )
    for name in list(found.groups)[:_MOST_LISTED]:
        law, clients = found.laws[name], f"{found.groups[name].clients:,}"
        if listed is not None:
            clients += f" of {listed.get(name, 0):,}"
        for row, place in enumerate(shown):
            head = (
                (safe_text(name, most=60), clients, margin_text(100.0 * found.margins[name], 2))
                if row == 0
                else ("", "", "")
            )
            ends = f"{percent_text(law.all_low[place])} to {percent_text(law.all_high[place])}"
            label = safe_text(names[place], most=60)
            made.add_row(head[0], label, head[1], head[2], percent_text(law.estimate[place]), ends)
    return made


def _group_statistics_table(found: GroupedPopulation, statistics: Mapping[str, Mapping[Any, Estimate]]) -> Table:
    blurred = any(each.blur for estimates in statistics.values() for each in estimates.values())
    together = f"{confidence_text(found.confidence)} interval, all groups at once"
    made = empty_table("group", "statistic", "estimate", together, *(["of it: cells"] if blurred else []), texts=2)
    for name in list(found.groups)[:_MOST_LISTED]:
        for statistic, estimates in statistics.items():
            cells = _statistic_cell_texts(estimates[name], blurred=blurred)
            made.add_row(safe_text(name, most=60), safe_text(statistic), *cells)
    return made


def _statistic_cell_texts(each: Estimate, *, blurred: bool) -> list[str]:
    """The estimate, its interval and, where a table is `blurred` by cells of an interval, their part in it."""
    cells = [format_number(each.estimate), interval_text(each.low, each.high)]
    return [*cells, f"+-{format_number(each.blur)}"] if blurred else cells


def print_change_between_files(asked: EstimateOptions, compare: str) -> None:
    """`--compare`: the difference between two files, IN less the other."""
    asked.refuse_stdin_and_unusable_picture({"--compare": compare})
    later, earlier = file_source(asked.source), file_source(compare)
    if is_among_inputs(asked.source, compare) and is_among_inputs(compare, asked.source):
        raise DiscreetError(f"--compare {compare} is the same file; name the one to compare with")
    agreements = [
        read_agreement_of_samples(
            records, None if records.agreement is not None and records is earlier else asked.agreement
        )
        for records in (earlier, later)
    ]
    if all(agreed.survey is not None for agreed in agreements):
        _refuse_options_for_surveys(asked)
        sides = tuple(zip((earlier, later), agreements, strict=True))
        shared = count_shared_and_unshared_clients(earlier, later, asked.sample)
        print_survey_change(asked, sides, _shared_clients_notes(shared))
        return
    reads = [
        _CountedTable.count_table(records, agreed, asked)
        for records, agreed in zip((earlier, later), agreements, strict=True)
    ]
    before, after = (read.estimate_population(asked.confidence, asked.bins) for read in reads)
    if before.finest is not None and len(before.counts) != len(after.counts):  # as many bins as suit the fewer clients
        bins = min(len(before.counts), len(after.counts))
        before, after = (read.estimate_population(asked.confidence, bins) for read in reads)
    found = change(before, after)
    kept = [read.tallied.reports for read in reads if isinstance(read.tallied, ReportTally)]
    sent = (kept[0], kept[1]) if len(kept) == 2 and kept[0] is not None and kept[1] is not None else None
    statistics = [found.statistic(name, reports=sent) for name in asked.statistic]
    shared = count_shared_and_unshared_clients(earlier, later, asked.sample)
    doubts = [*_notes_of_both_files(found, reads), *_shared_clients_notes(shared)]
    said = (
        json_record_of_change(found, (reads[0].agreed, reads[1].agreed), doubts, statistics=statistics)
        if asked.json
        else {}
    )
    if asked.json and shared is not None:
        said["clients"] = {"only_before": shared.before, "both": shared.both, "only_after": shared.after}
    blocks = (
        [] if asked.json else _change_text_blocks(found, reads, statistics, doubts, (compare, asked.source), asked.top)
    )
    purpose, clients = reads[1].agreed.purpose, f"{before.clients:,} to {after.clients:,} clients"
    title = f"{shorten_name(purpose, 60)}: change from {clients}" if purpose else None
    asked.save_picture(lambda plots: plots.change(found, most=asked.top or TOP_CHANGES, title=title))
    asked.print_estimate(said, blocks)


def print_estimate_from_stages(asked: EstimateOptions, sources: Sequence[str], *, numbered: bool) -> None:
    """`estimate IN IN...`: the average client of several stages, each of other clients. `numbered`: names of clients are no names."""
    asked.refuse_stdin_and_unusable_picture({f"IN {place}": name for place, name in enumerate(sources, start=1)})
    for one, other in permutations(sources, 2):
        if is_among_inputs(one, other):
            raise DiscreetError(
                f"a file is named twice, by {one} and by {other}; stages are samples of different clients"
            )
    files = [file_source(name) for name in sources]
    agreements = [
        read_agreement_of_samples(each, None if each.agreement is not None else asked.agreement) for each in files
    ]
    if any(agreed.survey is not None for agreed in agreements):
        raise DiscreetError(
            "stages of a survey are not estimated together; estimate each file by itself, or the change: --compare"
        )
    apart = False if numbered else _refuse_clients_in_two_stages(files, asked.sample)
    reads = [
        _CountedTable.count_table(records, agreed, asked) for records, agreed in zip(files, agreements, strict=True)
    ]
    found = pooled_population([read.estimate_population(asked.confidence, None) for read in reads])
    doubts = [] if apart else ["that no client is in two of the files is assumed: not all of them name their clients"]
    doubts += found.doubts
    blocks = _stages_text_blocks(found, reads, sources, doubts, asked.top)
    print_json_or_text(json_record_of_pooled_estimate(found, dict(enumerate(agreements, start=1)), doubts), *blocks, json=asked.json)


def _refuse_clients_in_two_stages(files: Sequence[Source], sample: str) -> bool:
    try:
        return refuse_clients_in_several_sources(files, sample)
    except DiscreetError as error:
        raise DiscreetError(
            f"{error}. If the files are exports of a store, whose rows are numbered and name nobody, say --numbered"
        ) from None


def _stages_text_blocks(
    found: PooledPopulation,
    reads: Sequence[_CountedTable],
    files: Sequence[str],
    doubts: Sequence[str],
    top: int | None,
) -> list[Any]:
    size = len(found.law.estimate)
    shown = outcome_numbers_shown_in_table(-found.law.estimate, found.domain.edges is not None, top, TOP_CHANGES)
    heads = [
        f"[bold]Stage {place}[/bold]: {safe_text(file)}, {pluralise(each.clients, read.release_kind)}, {read.mechanism_and_agreement_text}."
        for place, (file, each, read) in enumerate(zip(files, found.stages, reads, strict=True), start=1)
    ]
    made = empty_table(
        "outcome",
        *(f"stage {place}, %" for place in range(1, len(files) + 1)),
        "together, %",
        f"{confidence_text(found.confidence)} interval, all {size:,} at once",
    )
    for place in shown:
        made.add_row(
            safe_text(found.domain.names[place], most=60),
            *(percent_text(each.law.estimate[place]) for each in found.stages),
            percent_text(found.law.estimate[place]),
            f"{percent_text(found.law.all_low[place])} to {percent_text(found.law.all_high[place])}",
        )
    more = [f"{pluralise(size - len(shown), 'more outcome')}: --top, --json."] if size > len(shown) else []
    return [
        "\n".join(heads),
        *notes_as_text_blocks(doubts),
        made,
        *more,
        f"[bold]Together[/bold]: the average of all {found.clients:,} clients, each of whom counts the same. Intervals hold for all outcomes "
        "at once, whatever the stages have in common.",
    ]


def _notes_of_both_files(found: Change, reads: list[_CountedTable]) -> list[str]:
    before, after = (
        read.notes_on_estimate(each) for each, read in zip((found.before, found.after), reads, strict=True)
    )
    both = [note for note in before if note in after]
    said = [f"before: {note}" for note in before if note not in both]
    return [*both, *said, *(f"after: {note}" for note in after if note not in both)]


def _shared_clients_notes(shared: SharedClients | None) -> list[str]:
    """Who took part in both, and what that means."""
    if shared is None:
        return ["a file does not name its clients, so it is not known how many are in both"]
    if not shared.both:
        return ["no client is in both files: the change is between two sets of clients, and who they are is part of it"]
    if not (shared.before or shared.after):
        return [f"the same {shared.both:,} clients are in both files: the change is theirs"]
    return [
        f"{shared.both:,} clients are in both files, {shared.before:,} only before, {shared.after:,} only after: the change is that of the "
        "average client of each file, from whoever took part. If those who took part once differ from the others, that is part of it; "
        "for the change of the same clients, give the files of those in both"
    ]


def _change_text_blocks(
    found: Change,
    reads: list[_CountedTable],
    statistics: list[Estimate],
    doubts: list[str],
    files: tuple[str, str],
    top: int | None,
) -> list[Any]:
    size = len(found.law.estimate)
    along = found.after.domain.edges is not None
    shown = outcome_numbers_shown_in_table(-np.abs(found.law.estimate), along, top, TOP_CHANGES)
    heads = [
        f"[bold]{side}[/bold]: {safe_text(file)}, {pluralise(each.clients, read.release_kind)}, {read.mechanism_and_agreement_text}."
        for side, file, each, read in zip(("Before", "After"), files, (found.before, found.after), reads, strict=True)
    ]
    blocks: list[Any] = [
        "\n".join(heads),
        *notes_as_text_blocks(doubts),
        _share_changes_table(found, shown),
    ]
    if size > len(shown):
        blocks.append(f"{pluralise(size - len(shown), 'more outcome')}: --top, --json.")
    if statistics:
        blurred = any(each.blur for each in statistics)
        interval = f"{confidence_text(found.confidence)} interval"
        made = empty_table("change of", "estimate", interval, *(["of it: cells"] if blurred else []))
        for each in statistics:
            made.add_row(safe_text(each.name), *_statistic_cell_texts(each, blurred=blurred))
        blocks.append(made)
    picked = "that you pick after looking" if along else "with the largest changes, which are listed first"
    return [
        *blocks,
        f"[bold]Intervals[/bold] hold for all {size:,} outcomes at once, so also for those {picked}. They are about the average client of "
        "each file, and hold the chance of its draws. They do not hold who took part, nor lies.",
    ]


def _share_changes_table(found: Change, shown: list[int]) -> Table:
    names, law = found.after.domain.names, found.law
    together = f"{confidence_text(found.confidence)} interval, all {len(law.estimate):,} at once"
    what = "" if found.exact else "samples "
    made = empty_table("outcome", f"{what}before, %", f"{what}after, %", "change", together, "")
    for place in shown:
        low, high = law.all_low[place], law.all_high[place]
        made.add_row(
            safe_text(names[place], most=60),
            percent_text(found.before.law.estimate[place]),
            percent_text(found.after.law.estimate[place]),
            percent_text(law.estimate[place], "+"),
            f"{percent_text(low, '+')} to {percent_text(high, '+')}",
            "rose" if low > 0.0 else "fell" if high < 0.0 else "",
        )
    return made
