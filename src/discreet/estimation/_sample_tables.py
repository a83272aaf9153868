"""Tables of released samples and reports: counted in one streaming pass, also by groups, and written as synthetic data.

An estimate needs only counts of outcomes (`tally_samples`, and of every group `tally_releases_by_group`). Every record is checked against the
agreement: a record of another agreement, or an unknown sample, is an error that names it, before anything is estimated. Clients are told
apart (`discreet.estimation._client_tables`).

Memory grows with the domain, not with the records: rows are counted batch by batch, reports by the table of `ReportCounts`. On top come at
most `MOST_TOLD_APART` clients to tell apart, and `_TOGETHER` reports that wait to be counted.

Synthetic data are the samples with weights, or rows drawn from the debiased distribution, which look like the population. A debiased
distribution exists only if the average client is identifiable; otherwise the nearest distribution is that of the samples. Synthetic data
come from released samples, so they cost no privacy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.agreement import Agreement, ContinuousTerms
from discreet.domain import (
    FIRST_MARK,
    Coding,
    column_expression,
    fit_coding_to_column,
    outcome_codes_expression,
    spelling_hint,
)
from discreet.errors import DiscreetError, check_count
from discreet.estimation._client_tables import (
    AGREEMENT,
    KEY,
    NUMBER,
    REPORT,
    ClientGroups,
    GroupReader,
    RepeatedClientCheck,
    client_column_of_source,
    group_sort_key,
    read_samples_by_client,
)
from discreet.estimation._counting import LARGEST, line_cells_of_sampler
from discreet.estimation._population import AnyPopulation, Population
from discreet.mechanisms import AnyFamily, JointSampler, ReportCounts, ReportSampler, Sampler
from discreet.tables import (
    FEW,
    Source,
    agreed_coding,
    agreed_finite_family,
    choose_output_format,
    examples_as_text,
    open_table_writer,
    outcomes_as_samples,
    refuse_domain_beside_continuous_agreement,
    samples_without_spreadsheet_guard,
)

PLACE, COUNTED = "place", "counted"  # columns of a table that reports add up to
_OTHERS = "made under another agreement"
_TOGETHER = 1 << 23  # reports that are counted at once
MOST_GROUPS = 10_000
MOST_SURVEYED_GROUPS = 200


@dataclass(frozen=True)
class SampleTally:
    """Counts by outcome number. `named`: whether the records name their agreement.

    `distinct`: whether they name their clients, each once; otherwise that is assumed. `rows`: the rows of samples if every client has
    several.
    """

    counts: NDArray[np.int64]
    coding: Coding
    named: bool
    distinct: bool
    rows: NDArray[Any] | None = None


def coding_and_sampler(agreement: Agreement, domain: Any = None) -> tuple[Coding, Sampler[AnyFamily]]:
    """The coding of an agreement's samples, and its sampler. `domain`: needed if the agreement contains only a digest of its labels.

    On a continuous family samples are read by its cells, which an estimate joins to bins.
    """
    if agreement.survey is not None:
        raise DiscreetError(
            f"agreement {agreement.id} is on a survey, whose reports are no samples; answer it with `discreet estimate` or "
            "answer_survey(agreement.survey_sampler(), reports)"
        )
    if agreement.blocks is not None:
        raise DiscreetError(
            f"agreement {agreement.id} is on reports, which are no samples; estimate with `discreet estimate` or "
            "reported_population(agreement, reports=...), or agree on samples (--mechanism linear)"
        )
    if isinstance(agreement.family, ContinuousTerms):
        refuse_domain_beside_continuous_agreement(agreement, domain)
        sampler = agreement.sampler()
        return Coding(line_cells_of_sampler(sampler)), sampler
    coding = agreed_coding(agreement, domain)
    return coding, agreement.sampler(agreed_finite_family(agreement, coding))


def coding_and_joint_sampler(agreement: Agreement, domain: Any = None) -> tuple[Coding, JointSampler]:
    """The same for an agreement on several samples of each client drawn together."""
    coding = agreed_coding(agreement, domain)
    return coding, agreement.joint_sampler(agreed_finite_family(agreement, coding))


def tally_samples(
    source: Source,
    agreement: Agreement,
    coding: Coding,
    *,
    sample: str = "sample",
    client_column: str | None = None,
    rounds: int = 1,
) -> SampleTally:
    """Count the samples of a source, one of each client. `client_column`: the column of clients, by default where releases have it.

    `rounds`: the number of samples of each client; records must then name their clients.
    """
    _refuse_missing_column(source, agreement, sample, "samples")
    if coding.size > LARGEST:
        raise DiscreetError(f"the agreement has {coding.size:,} outcomes; at most {LARGEST:,} can be estimated")
    key, column_coding = typed_expression_and_coding(source, sample, coding)
    reader = _ReleaseReader(source, agreement, sample, client_column)
    codes = outcome_codes_expression(column_coding, KEY)
    counts = np.zeros(column_coding.size, dtype=np.int64)
    unknown_samples: list[Any] = []
    for frame in reader.read_record_frames(key, codes if column_coding.has_cells else pl.col(KEY), count=True):
        outcomes = frame[KEY] if column_coding.has_cells else frame.select(codes).to_series()
        numbers = outcomes.to_numpy().astype(np.int64)
        is_unknown = numbers >= FIRST_MARK
        if is_unknown.any():
            unknown_samples += frame.filter(pl.Series(is_unknown))[KEY].to_list()
            if column_coding.has_cells:
                _refuse_points_outside_cells(source, column_coding, key, sample)
            if len(unknown_samples) > FEW:
                break
        else:
            np.add.at(counts, numbers, frame[NUMBER].to_numpy().astype(np.int64))
    if unknown_samples:
        raise DiscreetError(
            f"column {sample!r} holds samples that the agreement does not know: {examples_as_text(unknown_samples)}"
            f"{spelling_hint(unknown_samples[0], column_coding.domain.labels)}; they were not made under it, or the domain given is not the "
            "one agreed on"
        )
    if rounds > 1:
        return SampleTally(
            counts, column_coding, reader.named, True, read_samples_by_client(source, sample, key, reader.who, rounds)
        )
    reader.refuse_repeated_clients()
    return SampleTally(counts, column_coding, reader.named, reader.distinct)


@dataclass(frozen=True)
class ReportTally:
    """Reports counted by outcome, and how they are read; `named` and `distinct` as for samples.

    `reports`: themselves, where they were asked for; (n, J) if every client has J.
    """

    counts: ReportCounts
    coding: Coding
    named: bool
    distinct: bool
    reports: NDArray[np.uint64] | None = None


def tally_reports(
    source: Source,
    agreement: Agreement,
    domain: Any = None,
    *,
    column: str = REPORT,
    keep: bool = False,
    rounds: int = 1,
) -> ReportTally:
    """Count the reports of a source, one of each client. `keep`: hold them too, for averages.

    `rounds`: how many reports each client has; records must then name their clients.
    """
    coding = agreed_coding(agreement, domain)
    sampler = agreement.report_sampler(agreed_finite_family(agreement, coding))
    if {PLACE, COUNTED} <= set(source.schema) and column not in source.schema:
        return _read_reports_tallied_by_collector(source, agreement, coding, sampler, rounds)
    reader = _make_report_reader(source, agreement, column)
    counts, batches = ReportCounts(sampler), list[NDArray[np.uint64]]()
    for reports in _iterate_larger_report_batches(
        _read_reports_in_batches(reader, source, column, sampler.blocks.report_description)
    ):
        counts.add(reports)
        if keep:
            batches.append(reports)
    if rounds > 1:
        rows = read_samples_by_client(source, column, _uint64_or_null_expression(column), reader.who, rounds)
        return ReportTally(counts, coding, reader.named, True, rows.astype(np.uint64))
    reader.refuse_repeated_clients()
    return ReportTally(counts, coding, reader.named, reader.distinct, np.concatenate(batches) if batches else None)


def _iterate_larger_report_batches(batches: Iterator[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
    """The same reports in fewer and larger batches: many are counted together in less time than one by one."""
    pending, number = list[NDArray[np.uint64]](), 0
    for batch in batches:
        pending.append(batch)
        number += len(batch)
        if number >= _TOGETHER:
            yield np.concatenate(pending)
            pending, number = [], 0
    if pending:
        yield np.concatenate(pending)


@dataclass(frozen=True)
class SurveyTally:
    """The reports on a survey; `named` and `distinct` as for samples."""

    reports: NDArray[np.uint64]
    named: bool
    distinct: bool


def read_survey_reports(source: Source, agreement: Agreement, *, column: str = REPORT) -> SurveyTally:
    """The reports of a source on a survey, one of each client."""
    reader = _make_report_reader(source, agreement, column)
    batches = list(_read_reports_in_batches(reader, source, column, "a survey's report is a whole number"))
    reader.refuse_repeated_clients()
    reports = np.concatenate(batches) if batches else np.zeros(0, dtype=np.uint64)
    return SurveyTally(reports, reader.named, reader.distinct)


class _ReleaseReader:
    """Reads the samples or reports of a source in batches. Every record is checked against the agreement, and clients are told apart.

    Attributes:
        who: the column of clients.
        named: whether records name their agreement.
        distinct: whether they name their clients.
    """

    def __init__(self, source: Source, agreement: Agreement, column: str, client_column: str | None = None) -> None:
        self._source, self._agreement, self._column = source, agreement, column
        self.named = AGREEMENT in source.schema
        self.who = client_column_of_source(source, column) if client_column is None else client_column
        self.distinct = self.who in source.schema
        self._clients = RepeatedClientCheck(source, self.who) if self.distinct else None

    def read_record_frames(self, key: pl.Expr, code: pl.Expr, *, count: bool) -> Iterator[pl.DataFrame]:
        """Frames of records, by the code of their key; `count`: of different ones, and how often each came."""
        source, clients = self._source, self._clients
        is_other = pl.col(AGREEMENT).ne_missing(self._agreement.id) if self.named else pl.lit(False)

        def select_keys_of_records(frame: Any) -> Any:
            records = frame.select(key.alias(KEY), is_other.alias(_OTHERS), *(clients.told if clients else ()))
            return records.with_columns(code.alias(KEY))

        def count_records_by_key(frame: Any) -> Any:
            return frame.group_by(KEY).agg(pl.len().alias(NUMBER), pl.col(_OTHERS).sum())

        columns = [self._column, *([AGREEMENT] if self.named else []), *([self.who] if clients else [])]
        prepare = (
            (lambda frame: count_records_by_key(select_keys_of_records(frame)))
            if count and not clients
            else select_keys_of_records
        )
        for records in source.read_prepared_frames(
            prepare, list(dict.fromkeys(columns)), client=self.who if clients else None
        ):
            if records[_OTHERS].sum():
                _refuse_records_of_other_agreements(source, self._agreement)
            yield count_records_by_key(records) if count and clients else records
            if clients:
                clients.remember_clients(records)

    def refuse_repeated_clients(self) -> None:
        """Raise an error for a client that comes twice."""
        if self._clients:
            self._clients.refuse_repeated_clients()


def _refuse_missing_column(source: Source, agreement: Agreement, column: str, kind: str) -> None:
    """Raise an error for a source without the column of the agreed kind: samples or reports."""
    if column not in source.schema:
        other, usual = ("reports", REPORT) if kind == "samples" else ("samples", "sample")
        fix = f"; agreement {agreement.id} is on {kind}, and these are {other} under another" * (usual in source.schema)
        raise DiscreetError(
            f"column {column!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}{fix}"
        )


def _read_reports_in_batches(
    reader: _ReleaseReader, source: Source, column: str, layout: str
) -> Iterator[NDArray[np.uint64]]:
    """The reports of a source, batch by batch; `layout` says what a report is, if one is none."""
    for frame in reader.read_record_frames(_uint64_or_null_expression(column), pl.col(KEY), count=False):
        if frame[KEY].null_count():
            raise DiscreetError(
                f"column {column!r} of {source.name} holds what is no whole number from 0 to 2^64 - 1; {layout}"
            )
        yield frame[KEY].to_numpy()


def _make_report_reader(source: Source, agreement: Agreement, column: str) -> _ReleaseReader:
    """A reader of reports, whose column holds whole numbers."""
    _refuse_missing_column(source, agreement, column, "reports")
    kind = source.schema[column]
    if not (source.is_untyped or kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)):
        raise DiscreetError(
            f"column {column!r} of {source.name} holds {kind}; reports are whole numbers (64 bits, without a sign)"
        )
    return _ReleaseReader(source, agreement, column)


def _uint64_or_null_expression(column: str) -> pl.Expr:
    return column_expression(column).cast(pl.UInt64, strict=False)


def _read_reports_tallied_by_collector(
    source: Source, agreement: Agreement, coding: Coding, sampler: ReportSampler, rounds: int
) -> ReportTally:
    """Reports of which a collector kept the table that they add up to, as `discreet export` writes it."""
    if rounds > 1:
        raise DiscreetError(
            f"{source.name} holds what reports add up to, from which those of one client cannot be told; estimate one round at a time"
        )
    has_agreement = AGREEMENT in source.schema
    columns = [PLACE, COUNTED, *([AGREEMENT] if has_agreement else [])]
    table = pl.concat(list(source.read_prepared_frames(lambda frame: frame.select(columns), columns)))
    if has_agreement and table[AGREEMENT].ne_missing(agreement.id).any():
        _refuse_records_of_other_agreements(source, agreement)
    counts = ReportCounts(sampler)
    indices, sums = (table[name].cast(pl.Int64, strict=False) for name in (PLACE, COUNTED))
    if indices.sort().to_list() != list(range(len(counts.table))) or sums.null_count():
        raise DiscreetError(
            f"{source.name} is not a table of reports under agreement {agreement.id}: it has {len(counts.table):,} places, each once, "
            f"with a whole number; export it again"
        )
    entries = np.zeros(len(indices), dtype=np.int64)
    entries[indices.to_numpy()] = sums.to_numpy()
    return ReportTally(ReportCounts.from_table(sampler, entries), coding, has_agreement, True)


def tally_joint_samples(
    source: Source, agreement: Agreement, coding: Coding, *, samples: int, sample: str = "sample"
) -> SampleTally:
    """Count several samples of each client that were drawn together, with a row for each client.

    They are in columns sample_1, sample_2, ... with one record for each client, or in one column with several records for each client.
    """
    columns = [f"{sample}_{number}" for number in range(1, samples + 1)]
    missing = [column for column in columns if column not in source.schema]
    if missing:
        if sample not in source.schema or len(missing) < samples:
            raise DiscreetError(
                f"{source.name} has no column {missing[0]!r}; the agreement is on {samples} samples of each client: give them in columns "
                f"{columns[0]} to {columns[-1]}, or in a column {sample!r} with {samples} records for each client"
            )
        return tally_samples(source, agreement, coding, sample=sample, rounds=samples)
    if f"{sample}_{samples + 1}" in source.schema:
        raise DiscreetError(
            f"{source.name} has a column {sample}_{samples + 1}; the agreement is on {samples} samples of each client"
        )
    first, *others = source.schema
    client = first if others[:samples] == columns else "client"
    parts = [tally_samples(source, agreement, coding, sample=column, client_column=client) for column in columns]
    expressions = [typed_expression_and_coding(source, column, coding)[0].alias(column) for column in columns]
    frames = [
        frame.select(columns).rows()
        for frame in source.read_prepared_frames(lambda rows: rows.select(expressions), columns)
    ]
    rows = np.array([row for frame in frames for row in frame], dtype=object)
    first_part = parts[0]
    return SampleTally(
        sum((part.counts for part in parts), 0 * first_part.counts),
        first_part.coding,
        first_part.named,
        first_part.distinct,
        rows,
    )


def typed_expression_and_coding(source: Source, column: str, coding: Coding) -> tuple[pl.Expr, Coding]:
    """A column with the type that its domain needs (CSV has no types), and its coding."""
    if not source.is_untyped:
        return column_expression(column), fit_coding_to_column(coding, column, source.schema[column], agreed=True)
    kind = coding.polars_type_to_read_texts_as
    return samples_without_spreadsheet_guard(source, column).cast(kind, strict=False), fit_coding_to_column(
        coding, column, kind, agreed=True
    )


def _refuse_records_of_other_agreements(source: Source, agreement: Agreement) -> None:
    """Raise an error that names the agreement of records made under another one."""

    def select_records_of_other_agreements(frame: Any) -> Any:
        return frame.filter(pl.col(AGREEMENT).ne_missing(agreement.id)).with_columns(pl.col(AGREEMENT).cast(pl.String))

    examples = source.example_values(select_records_of_other_agreements, AGREEMENT, 1)
    agreement.check_record(examples[0] if examples else None)


def _refuse_points_outside_cells(source: Source, coding: Coding, key: pl.Expr, sample: str) -> None:
    """Raise an error that names points outside all cells."""
    edges = np.asarray(coding.domain.edges)

    def select_points_outside_cells(frame: Any) -> Any:
        return frame.select(key.alias(sample)).filter(outcome_codes_expression(coding, sample) >= int(FIRST_MARK))

    raise DiscreetError(
        f"column {sample!r} holds samples that the agreement does not know: "
        f"{examples_as_text(source.example_values(select_points_outside_cells, sample, FEW + 1))}; "
        f"it is on [{edges[0]:g}, {edges[-1]:g}]"
    )


def tally_releases_by_group(
    source: Source, tally: SampleTally | ReportTally, groups: ClientGroups, *, column: str, keep: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[np.uint64]], int]:
    """The counts of each group of a tallied source, its reports where they are to be kept, and how many clients were left out."""
    if isinstance(tally, ReportTally) and column not in source.schema:
        raise DiscreetError(
            f"{source.name} holds what reports add up to, from which those of a group cannot be told; collect each group under an "
            "agreement of its own: discreet collect --groups"
        )
    whole_number = _uint64_or_null_expression(column)
    key, coding = (
        (whole_number, None)
        if isinstance(tally, ReportTally)
        else typed_expression_and_coding(source, column, tally.coding)
    )
    counts: dict[str, Any] = {}
    group_reports: dict[str, list[NDArray[np.uint64]]] = {}
    most = max(1, min(MOST_GROUPS, LARGEST // tally.coding.size))
    reader = GroupReader(source, key, groups, column, most)
    for group, part in reader.read_frames_by_group():
        keys = part[KEY] if coding is None else part.select(outcome_codes_expression(coding, KEY)).to_series()
        numbers, frequencies = keys.to_numpy(), part[NUMBER].to_numpy()
        if isinstance(tally, ReportTally):
            reports = np.repeat(numbers, frequencies)
            counts.setdefault(group, ReportCounts(tally.counts.sampler)).add(reports)
            if keep:
                group_reports.setdefault(group, []).append(reports)
        else:
            group_counts = counts.setdefault(group, np.zeros(len(tally.counts), dtype=np.int64))
            np.add.at(group_counts, numbers.astype(np.int64), frequencies.astype(np.int64))
    total = tally.counts.reports if isinstance(tally, ReportTally) else int(tally.counts.sum())
    if reader.total != total:
        raise DiscreetError(f"{source.name} has changed since it was counted; start again")
    reader.refuse_clients_without_group()
    sorted_counts = {name: counts[name] for name in sorted(counts, key=group_sort_key)}
    return sorted_counts, {name: np.concatenate(parts) for name, parts in group_reports.items()}, reader.missing


def read_survey_reports_by_group(
    source: Source, groups: ClientGroups, *, column: str = REPORT
) -> tuple[dict[str, NDArray[np.uint64]], int]:
    """The reports of each group on a survey, and how many clients were left out."""
    reports: dict[str, list[NDArray[np.uint64]]] = {}
    reader = GroupReader(source, _uint64_or_null_expression(column), groups, column, MOST_SURVEYED_GROUPS)
    for group, part in reader.read_frames_by_group():
        reports.setdefault(group, []).append(np.repeat(part[KEY].to_numpy(), part[NUMBER].to_numpy()))
    reader.refuse_clients_without_group()
    return {name: np.concatenate(reports[name]) for name in sorted(reports, key=group_sort_key)}, reader.missing


Floats = NDArray[np.float64]


def sample_weight_by_outcome(estimate: Population) -> Floats:
    """The weight of a sample of each outcome, such that weighted shares are those of `estimate.nearest`; their average is one.

    An outcome without samples gets none of its share.
    """
    frequencies = estimate.released_shares.estimate
    shares = np.where(frequencies > 0.0, estimate.nearest, 0.0)
    weights: Floats = np.zeros_like(shares)
    np.divide(shares / shares.sum(), frequencies, out=weights, where=frequencies > 0.0)
    return weights


def synthetic_row_counts(estimate: AnyPopulation, rows: int) -> NDArray[np.int64]:
    """How many of `rows` rows should have each outcome: shares of `estimate.nearest`, off by less than one row each."""
    targets: Floats = estimate.nearest * (check_count("rows", rows, most=10**9 - 1) / estimate.nearest.sum())
    counts = np.floor(targets).astype(np.int64)
    missing = rows - int(counts.sum())
    counts[np.argsort(counts - targets, kind="stable")[:missing]] += 1
    return counts


def points_at_positions_in_bins(estimate: Population, numbers: NDArray[np.int64], positions: Floats) -> Floats:
    """Points of the bins of a continuous family; `positions` in [0, 1): where in its bin each lies, in shares of the reference.

    A bin may reach far into a tail; the estimate gives its mass, and the reference how the mass is spread.
    """
    cells = estimate if estimate.finest is None else estimate.finest
    cell_edges, bin_edges = cells.domain.edges, estimate.domain.edges
    assert cell_edges is not None
    assert bin_edges is not None
    cumulative = np.append(0.0, np.cumsum(cells.reference))
    mass_below = np.interp(bin_edges, cell_edges, cumulative)
    return np.asarray(np.interp(mass_below[numbers] + np.diff(mass_below)[numbers] * positions, cumulative, cell_edges))


_ROWS = 1 << 20


def write_weighted_samples(
    estimate: Population,
    source: Source,
    coding: Coding,
    output: str,
    *,
    sample: str = "sample",
    replace: bool = False,
) -> int:
    """Write every sample of the source with its weight, and return their number."""
    weights = sample_weight_by_outcome(estimate)
    schema = pa.schema([("sample", coding.arrow_type_of_samples), ("weight", pa.float64())])
    sample_count = 0
    with open_table_writer(output, schema, choose_output_format(output), replace=replace) as writer:
        for frame in source.read_prepared_frames(
            lambda rows: rows.select(
                samples_without_spreadsheet_guard(source, sample)
                .cast(coding.polars_type_to_read_texts_as, strict=False)
                .alias("sample")
            ),
            [sample],
        ):
            numbers = frame.select(outcome_codes_expression(coding, "sample")).to_series().to_numpy()
            if (numbers >= len(weights)).any():
                raise DiscreetError(f"{source.name} has changed since it was counted; start again")
            columns = [frame["sample"].to_arrow().cast(coding.arrow_type_of_samples), pa.array(weights[numbers])]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
            sample_count += frame.height
    return sample_count


def write_synthetic_rows(
    estimate: AnyPopulation, coding: Coding, output: str, rows: int, *, replace: bool = False
) -> int:
    """So many rows with the shares of the estimated law, in random order, a part of them at a time."""
    rng = np.random.default_rng()
    remaining = synthetic_row_counts(estimate, rows)
    schema = pa.schema([("sample", coding.arrow_type_of_samples)])
    with open_table_writer(output, schema, choose_output_format(output), replace=replace) as writer:
        for start in range(0, rows, _ROWS):
            batch = rng.multivariate_hypergeometric(remaining, min(_ROWS, rows - start), method="marginals")
            remaining -= batch
            numbers = rng.permutation(np.repeat(np.arange(len(batch)), batch))
            positions = rng.random(len(numbers))
            if isinstance(estimate, Population) and estimate.finest is not None:
                column = pa.array(points_at_positions_in_bins(estimate, numbers, positions))
            else:
                column = outcomes_as_samples(coding, numbers, positions)
            writer.write(pa.RecordBatch.from_arrays([column], schema=schema))
    return rows
