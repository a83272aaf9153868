"""Tables of released samples: counted in one streaming pass, checked for repeated clients, and written as synthetic data.

An estimate needs only counts of outcomes (`tally`). Every record is checked against the agreement: a record of another agreement, or an
unknown sample, is an error that names it, before anything is estimated. If records name their clients, a repeated client is an error,
because samples of one client are not those of several. Texts are compared by 128 bits of hash. Beyond `MOST_TOLD_APART` records a part of
the clients is checked, which still detects a second release.

Memory grows with the domain, not with the records: rows are counted batch by batch, reports by the table of `ReportCounts`. On top come at
most `MOST_TOLD_APART` clients to tell apart, and `_TOGETHER` reports that wait to be counted.

`check_clients_apart` raises an error for clients in several files: a client who released under two agreements has spent twice, and counts
twice in what is learned from both. Files without client names cannot be checked, and the caller is told so.

Synthetic data are the samples with weights, or rows drawn from the debiased distribution, which look like the population. A debiased
distribution exists only if the average client is identifiable; otherwise the nearest distribution is that of the samples. Synthetic data
come from released samples, so they cost no privacy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet.agreement import Agreement, ContinuousTerms
from discreet.errors import DiscreetError, check_count
from discreet.estimation._counting import LARGEST, line_of
from discreet.estimation._population import Population
from discreet.estimation._reports import ReportedPopulation
from discreet.mechanisms import AnyFamily, JointSampler, ReportCounts, ReportSampler, Sampler
from discreet.tables import (
    FEW,
    FIRST_MARK,
    Coding,
    Source,
    agreed_coding,
    agreed_family,
    client_name_texts,
    first_few,
    fit_coding,
    format_of,
    outcome_codes,
    refuse_domain,
    sample_texts,
    samples_of,
    writer_to,
)

REPORT, AGREEMENT = "report", "agreement"
PLACE, COUNTED = "place", "counted"  # columns of a table that reports add up to
_KEY, _OTHERS = "key", "made under another agreement"
_NOBODY = "of nobody"
MOST_TOLD_APART = 2**25  # records, of 8 or 16 bytes each
_TOGETHER = 1 << 23  # reports that are counted at once


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
        refuse_domain(agreement, domain)
        sampler = agreement.sampler()
        return Coding(line_of(sampler)), sampler
    coding = agreed_coding(agreement, domain)
    return coding, agreement.sampler(agreed_family(agreement, coding))


def agreed_joint_outcomes(agreement: Agreement, domain: Any = None) -> tuple[Coding, JointSampler]:
    """The same for an agreement on several samples of each client drawn together."""
    coding = agreed_coding(agreement, domain)
    return coding, agreement.joint_sampler(agreed_family(agreement, coding))


def tally(
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
    if sample not in source.schema:
        fix = f"; agreement {agreement.id} is on samples, and these are reports under another" * (
            REPORT in source.schema
        )
        raise DiscreetError(
            f"column {sample!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}{fix}"
        )
    if coding.size > LARGEST:
        raise DiscreetError(f"the agreement has {coding.size:,} outcomes; at most {LARGEST:,} can be estimated")
    key, typed = typed_column(source, sample, coding)
    named = AGREEMENT in source.schema
    others = pl.col(AGREEMENT).ne_missing(agreement.id) if named else pl.lit(False)
    who = client_column_name(source, sample) if client_column is None else client_column
    clients = _DistinctClients(source, who) if who in source.schema else None

    def read_keys(frame: Any) -> Any:
        keys = outcome_codes(typed, _KEY) if typed.has_cells else pl.col(_KEY)
        told = frame.select(key.alias(_KEY), others.alias(_OTHERS), *(clients.told if clients else ()))
        return told.with_columns(keys.alias(_KEY))

    def count_keys(frame: Any) -> Any:
        return frame.group_by(_KEY).agg(pl.len().alias("samples"), pl.col(_OTHERS).sum())

    counts = np.zeros(typed.size, dtype=np.int64)
    strange: list[Any] = []
    needed = [sample, *([AGREEMENT] if named else []), *([who] if clients else [])]
    prepare = read_keys if clients else lambda frame: count_keys(read_keys(frame))
    for rows in source.frames(prepare, list(dict.fromkeys(needed)), client=who if clients else None):
        frame = count_keys(rows) if clients else rows
        if frame[_OTHERS].sum():
            _refuse_other_agreements(source, agreement)
        outcomes = frame[_KEY] if typed.has_cells else frame.select(outcome_codes(typed, _KEY)).to_series()
        numbers = outcomes.to_numpy().astype(np.int64)
        unknown = numbers >= FIRST_MARK
        if unknown.any():
            strange += frame.filter(pl.Series(unknown))[_KEY].to_list()
            if typed.has_cells:
                _refuse_points(source, typed, key, sample)
            if len(strange) > FEW:
                break
        else:
            np.add.at(counts, numbers, frame["samples"].to_numpy().astype(np.int64))
        if clients:
            clients.note(rows)
    if strange:
        raise DiscreetError(
            f"column {sample!r} holds samples that the agreement does not know: {first_few(strange)}; "
            "they were not made under it, or the domain given is not the one agreed on"
        )
    if rounds > 1:
        return SampleTally(counts, typed, named, True, _rows_by_client(source, key, who, rounds))
    if clients:
        clients.check()
    return SampleTally(counts, typed, named, clients is not None)


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
    sampler = agreement.report_sampler(agreed_family(agreement, coding))
    if {PLACE, COUNTED} <= set(source.schema) and column not in source.schema:
        return _read_report_table(source, agreement, coding, sampler, rounds)
    reader = _ReportReader(source, agreement, column, sampler.blocks.layout)
    counted, kept = ReportCounts(sampler), list[NDArray[np.uint64]]()
    for reports in _join_batches(reader.reports()):
        counted.add(reports)
        if keep:
            kept.append(reports)
    if rounds > 1:
        rows = _rows_by_client(source, pl.col(column).cast(pl.UInt64, strict=False), reader.who, rounds)
        return ReportTally(counted, coding, reader.named, True, rows.astype(np.uint64))
    reader.check()
    return ReportTally(counted, coding, reader.named, reader.distinct, np.concatenate(kept) if kept else None)


def _join_batches(batches: Iterator[NDArray[np.uint64]]) -> Iterator[NDArray[np.uint64]]:
    """The same reports in fewer and larger batches: many are counted together in less time than one by one."""
    waiting, number = list[NDArray[np.uint64]](), 0
    for batch in batches:
        waiting.append(batch)
        number += len(batch)
        if number >= _TOGETHER:
            yield np.concatenate(waiting)
            waiting, number = [], 0
    if waiting:
        yield np.concatenate(waiting)


@dataclass(frozen=True)
class SurveyTally:
    """The reports on a survey; `named` and `distinct` as for samples."""

    reports: NDArray[np.uint64]
    named: bool
    distinct: bool


def read_survey_reports(source: Source, agreement: Agreement, *, column: str = REPORT) -> SurveyTally:
    """The reports of a source on a survey, one of each client."""
    reader = _ReportReader(source, agreement, column, "a survey's report is a whole number")
    reports = list(reader.reports())
    reader.check()
    whole = np.concatenate(reports) if reports else np.zeros(0, dtype=np.uint64)
    return SurveyTally(whole, reader.named, reader.distinct)


class _ReportReader:
    """Reads the reports of a source in batches. Every record is checked against the agreement, and clients are told apart.

    Attributes:
        who: the column of clients.
        named: whether records name their agreement.
        distinct: whether they name their clients.
    """

    def __init__(self, source: Source, agreement: Agreement, column: str, layout: str) -> None:
        if column not in source.schema:
            fix = f"; agreement {agreement.id} is on reports, and these are samples under another" * (
                "sample" in source.schema
            )
            raise DiscreetError(
                f"column {column!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}{fix}"
            )
        kind = source.schema[column]
        if not (source.is_untyped or kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)):
            raise DiscreetError(
                f"column {column!r} of {source.name} holds {kind}; reports are whole numbers (64 bits, without a sign)"
            )
        self._source, self._agreement, self._column, self._layout = source, agreement, column, layout
        self.named = AGREEMENT in source.schema
        self.who = client_column_name(source, column)
        self.distinct = self.who in source.schema
        self._clients = _DistinctClients(source, self.who) if self.distinct else None

    def reports(self) -> Iterator[NDArray[np.uint64]]:
        """The reports, batch by batch."""
        source, clients = self._source, self._clients
        others = pl.col(AGREEMENT).ne_missing(self._agreement.id) if self.named else pl.lit(False)
        whole = pl.col(self._column).cast(pl.UInt64, strict=False).alias(_KEY)

        def read_keys(frame: Any) -> Any:
            return frame.select(whole, others.alias(_OTHERS), *(clients.told if clients else ()))

        needed = [self._column, *([AGREEMENT] if self.named else []), *([self.who] if clients else [])]
        for frame in source.frames(read_keys, list(dict.fromkeys(needed)), client=self.who if clients else None):
            if frame[_OTHERS].any():
                _refuse_other_agreements(source, self._agreement)
            if frame[_KEY].null_count():
                raise DiscreetError(
                    f"column {self._column!r} of {source.name} holds what is no whole number from 0 to 2^64 - 1; {self._layout}"
                )
            yield frame[_KEY].to_numpy()
            if clients:
                clients.note(frame)

    def check(self) -> None:
        """Raise an error for a client that comes twice."""
        if self._clients:
            self._clients.check()


def _read_report_table(
    source: Source, agreement: Agreement, coding: Coding, sampler: ReportSampler, rounds: int
) -> ReportTally:
    """Reports of which a collector kept the table that they add up to, as `discreet export` writes it."""
    if rounds > 1:
        raise DiscreetError(
            f"{source.name} holds what reports add up to, from which those of one client cannot be told; estimate one round at a time"
        )
    named = AGREEMENT in source.schema
    columns = [PLACE, COUNTED, *([AGREEMENT] if named else [])]
    table = pl.concat(list(source.frames(lambda frame: frame.select(columns), columns)))
    if named and table[AGREEMENT].ne_missing(agreement.id).any():
        _refuse_other_agreements(source, agreement)
    counts = ReportCounts(sampler)
    places, counted = (table[name].cast(pl.Int64, strict=False) for name in (PLACE, COUNTED))
    if places.sort().to_list() != list(range(len(counts.table))) or counted.null_count():
        raise DiscreetError(
            f"{source.name} is not a table of reports under agreement {agreement.id}: it has {len(counts.table):,} places, each once, "
            f"with a whole number; export it again"
        )
    whole = np.zeros(len(places), dtype=np.int64)
    whole[places.to_numpy()] = counted.to_numpy()
    return ReportTally(ReportCounts.from_table(sampler, whole), coding, named, True)


def tally_joint(
    source: Source, agreement: Agreement, coding: Coding, *, samples: int, sample: str = "sample"
) -> SampleTally:
    """Count several samples of each client that were drawn together, with a row for each client.

    They are in columns sample_1, sample_2, ... with one record for each client, or in one column with several records for each client.
    """
    columns = [f"{sample}_{place}" for place in range(1, samples + 1)]
    missing = [column for column in columns if column not in source.schema]
    if missing:
        if sample not in source.schema or len(missing) < samples:
            raise DiscreetError(
                f"{source.name} has no column {missing[0]!r}; the agreement is on {samples} samples of each client: give them in columns "
                f"{columns[0]} to {columns[-1]}, or in a column {sample!r} with {samples} records for each client"
            )
        return tally(source, agreement, coding, sample=sample, rounds=samples)
    if f"{sample}_{samples + 1}" in source.schema:
        raise DiscreetError(
            f"{source.name} has a column {sample}_{samples + 1}; the agreement is on {samples} samples of each client"
        )
    first, *others = source.schema
    client = first if others[:samples] == columns else "client"
    parts = [tally(source, agreement, coding, sample=column, client_column=client) for column in columns]
    typed = [typed_column(source, column, coding)[0].alias(column) for column in columns]
    frames = [frame.select(columns).rows() for frame in source.frames(lambda rows: rows.select(typed), columns)]
    rows = np.array([row for frame in frames for row in frame], dtype=object)
    one = parts[0]
    return SampleTally(sum((part.counts for part in parts), 0 * one.counts), one.coding, one.named, one.distinct, rows)


def _rows_by_client(source: Source, sample: pl.Expr, client: str, rounds: int) -> NDArray[Any]:
    """The samples of each client, (n, rounds), in memory."""
    if client not in source.schema:
        raise DiscreetError(
            f"to tell {rounds} samples of each client apart needs records that name their clients, and {source.name} has no column {client!r}"
        )
    names = sample.meta.root_names()
    parts = list(
        source.frames(
            lambda frame: frame.select(pl.col(client), sample.alias(_KEY)), list(dict.fromkeys([client, *names]))
        )
    )
    held = pl.concat(parts).group_by(client).agg(pl.col(_KEY))
    often = held[_KEY].list.len().to_numpy()
    if (often != rounds).any():
        raise DiscreetError(
            f"column {client!r} of {source.name} names clients {int(often.min())} to {int(often.max())} times, not "
            f"{rounds} times each; give the samples of as many rounds, and leave out clients that missed one"
        )
    return np.array(held[_KEY].to_list(), dtype=object)


def client_column_name(source: Source, sample: str = "sample") -> str:
    """The column of clients: the first one of a release, under any name; elsewhere the one called client."""
    first, *others = source.schema
    return first if others[:2] == [sample, AGREEMENT] else "client"


class _DistinctClients:
    """A check that each client occurs once."""

    def __init__(self, source: Source, column: str) -> None:
        self._where = f"column {column!r} of {source.name}"
        whole = source.schema[column].is_integer()
        name = pl.col(column) if whole else client_name_texts(source, column)
        words = [name] if whole else [name.hash(seed=1), name.hash(seed=2)]
        self._called = [f"word {number}" for number in range(len(words))]
        nulls = name.is_null().alias(_NOBODY)
        self.told = [nulls, *(word.alias(called) for word, called in zip(words, self._called, strict=True))]
        rows = source.rows or 0
        self._parts = -(-(rows + rows // 16) // MOST_TOLD_APART)  # one in so many clients is remembered
        self._seen: list[pl.DataFrame] = []
        self._remembered = 0

    def note(self, frame: pl.DataFrame) -> None:
        """Remember the clients of a frame; where there is room for a part of them, those of some hashes."""
        if frame[_NOBODY].any():
            raise DiscreetError(f"{self._where} holds nulls: samples without a client; filter them out")
        self._seen.append(self._chosen(frame.select(self._called)))
        self._remembered += self._seen[-1].height
        while self._remembered > MOST_TOLD_APART:
            self.check()  # clients that are forgotten now came once so far
            self._parts = max(2, 2 * self._parts)
            self._seen = [self._chosen(each) for each in self._seen]
            self._remembered = sum(each.height for each in self._seen)

    def _chosen(self, words: pl.DataFrame) -> pl.DataFrame:
        return words if self._parts < 2 else words.filter(pl.col(self._called[0]).hash(seed=3) % self._parts == 0)

    def check(self) -> None:
        """Raise an error for repeated clients, with the number of records."""
        if not self._seen:
            return
        who = pl.concat(self._seen)
        first = np.sort(who[self._called[0]].to_numpy())
        twice = first[1:][first[1:] == first[:-1]]
        if not len(twice):
            return
        repeated = who.filter(pl.col(self._called[0]).is_in(pl.Series(twice).unique().implode()))
        again = repeated.height - repeated.unique().height
        if again:
            raise DiscreetError(
                f"{self._where} names the same clients again in {again:,} of {who.height:,} records: samples of several rounds, or "
                "one release twice. Give those of one round, or say how many samples of each client there are: --rounds"
            )


def typed_column(source: Source, column: str, coding: Coding) -> tuple[pl.Expr, Coding]:
    """A column with the type that its domain needs (CSV has no types), and its coding."""
    if not source.is_untyped:
        return pl.col(column), fit_coding(coding, column, source.schema[column], agreed=True)
    kind = coding.text_kind
    return sample_texts(source, column).cast(kind, strict=False), fit_coding(coding, column, kind, agreed=True)


def _refuse_other_agreements(source: Source, agreement: Agreement) -> None:
    """Raise an error that names the agreement of records made under another one."""

    def elsewhere(frame: Any) -> Any:
        return frame.filter(pl.col(AGREEMENT).ne_missing(agreement.id)).with_columns(pl.col(AGREEMENT).cast(pl.String))

    found = source.examples(elsewhere, AGREEMENT, 1)
    agreement.check_record(found[0] if found else None)


def _refuse_points(source: Source, coding: Coding, key: pl.Expr, sample: str) -> None:
    """Raise an error that names points outside all cells."""
    edges = np.asarray(coding.domain.edges)

    def outside(frame: Any) -> Any:
        return frame.select(key.alias(sample)).filter(outcome_codes(coding, sample) >= int(FIRST_MARK))

    raise DiscreetError(
        f"column {sample!r} holds samples that the agreement does not know: {first_few(source.examples(outside, sample, FEW + 1))}; "
        f"it is on [{edges[0]:g}, {edges[-1]:g}]"
    )


def check_clients_apart(sources: Sequence[Source]) -> bool:
    """Raise an error for clients in several sources; return whether all sources name their clients. Numbered rows are no names."""
    columns = [(source, client_column_name(source)) for source in sources if not source.numbered]
    named = [(source, column) for source, column in columns if column in source.schema]
    words = [f"word {seed}" for seed in (1, 2)]
    seen: pl.DataFrame | None = None
    for source, column in named:
        name = client_name_texts(source, column)
        parts = list(source.frames(partial(hash_names, name=name, words=words), [column], client=column))
        if not parts:
            continue
        who = pl.concat(parts).unique()
        again = 0 if seen is None else who.join(seen, on=words, how="semi").height
        if again:
            raise DiscreetError(
                f"{again:,} of the {who.height:,} clients in {source.name} occur in another file too: a client with "
                f"two samples has spent two budgets; leave one of them out"
            )
        seen = who if seen is None else pl.concat([seen, who])
    return len(named) == len(sources)


def hash_names(frame: Any, name: pl.Expr, words: Sequence[str]) -> Any:
    """The names of clients as 128 bits, in two columns."""
    return frame.select(name.hash(seed=seed).alias(word) for seed, word in enumerate(words, start=1))


Floats = NDArray[np.float64]


def outcome_weights(found: Population) -> Floats:
    """The weight of a sample of each outcome, such that weighted shares are those of `found.nearest`; their average is one.

    An outcome without samples gets none of its share.
    """
    frequencies = found.released_shares.estimate
    reached = np.where(frequencies > 0.0, found.nearest, 0.0)
    weights: Floats = np.zeros_like(reached)
    np.divide(reached / reached.sum(), frequencies, out=weights, where=frequencies > 0.0)
    return weights


def synthetic_counts(found: Population | ReportedPopulation, rows: int) -> NDArray[np.int64]:
    """How many of `rows` rows should have each outcome: shares of `found.nearest`, off by less than one row each."""
    wanted: Floats = found.nearest * (check_count("rows", rows, most=10**9 - 1) / found.nearest.sum())
    whole = np.floor(wanted).astype(np.int64)
    missing = rows - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:missing]] += 1
    return whole


def points_within(found: Population, numbers: NDArray[np.int64], place: Floats) -> Floats:
    """Points of the bins of a continuous family: `place` in [0, 1) is the position in each, in shares of the reference.

    A bin may reach far into a tail; the estimate gives its mass, and the reference how the mass is spread.
    """
    cells = found if found.finest is None else found.finest
    ends, within = cells.domain.edges, found.domain.edges
    assert ends is not None
    assert within is not None
    upto = np.append(0.0, np.cumsum(cells.reference))
    below = np.interp(within, ends, upto)
    return np.asarray(np.interp(below[numbers] + np.diff(below)[numbers] * place, upto, ends))


_ROWS = 1 << 20


def write_weighted(found: Population, source: Source, coding: Coding, output: str, *, sample: str = "sample") -> int:
    """Write every sample of the source with its weight, and return their number."""
    weights = outcome_weights(found)
    schema = pa.schema([("sample", coding.sample_type), ("weight", pa.float64())])
    written = 0
    with writer_to(output, schema, format_of(output)) as writer:
        for frame in source.frames(
            lambda rows: rows.select(sample_texts(source, sample).cast(coding.text_kind, strict=False).alias("sample")),
            [sample],
        ):
            numbers = frame.select(outcome_codes(coding, "sample")).to_series().to_numpy()
            if (numbers >= len(weights)).any():
                raise DiscreetError(f"{source.name} has changed since it was counted; start again")
            columns = [frame["sample"].to_arrow().cast(coding.sample_type), pa.array(weights[numbers])]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
            written += frame.height
    return written


def write_rows(found: Population | ReportedPopulation, coding: Coding, output: str, rows: int) -> int:
    """So many rows with the shares of the estimated law, in random order, a part of them at a time."""
    rng = np.random.default_rng()
    left = synthetic_counts(found, rows)
    schema = pa.schema([("sample", coding.sample_type)])
    with writer_to(output, schema, format_of(output)) as writer:
        for start in range(0, rows, _ROWS):
            taken = rng.multivariate_hypergeometric(left, min(_ROWS, rows - start), method="marginals")
            left -= taken
            numbers = rng.permutation(np.repeat(np.arange(len(taken)), taken))
            place = rng.random(len(numbers))
            if isinstance(found, Population) and found.finest is not None:
                column = pa.array(points_within(found, numbers, place))
            else:
                column = samples_of(coding, numbers, place)
            writer.write(pa.RecordBatch.from_arrays([column], schema=schema))
    return rows
