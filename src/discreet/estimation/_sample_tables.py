"""Tables of released samples: counted in one streaming pass, checked for repeated clients, and written as synthetic data.

Counts of outcomes are all that an estimate needs (`tally`). Every record is checked against the agreement on the way: one made under
another agreement, or a sample that the agreement does not know, is refused by name before anything is estimated. A client that comes twice
is refused where records name their clients, because samples of one client are not those of several. Texts are told apart by 128 bits of
hash; past `MOST_TOLD_APART` records a part of the clients is looked at, which still notices a second release.

`check_clients_apart` refuses clients who occur in several files: a client who released under two agreements has spent twice, and counts
twice in what is learned from both. Files that do not name their clients are taken on trust, and the caller is told.

Synthetic data are the samples with weights, or rows drawn from the debiased law, which look like the population. A debiased law exists only
where the average client is identifiable; elsewhere the nearest law is that of the samples. Synthetic data come from released samples, so
they cost no privacy.
"""

from collections.abc import Sequence
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
from discreet.mechanisms import AnyFamily, JointSampler, ReportCounts, Sampler
from discreet.tables import (
    FEW,
    FIRST_MARK,
    Coding,
    Columns,
    Reading,
    Source,
    agreed_coding,
    agreed_family,
    client_name_texts,
    first_few,
    fit_coding,
    format_of,
    outcome_codes,
    refuse_domain,
    resolve_marks,
    sample_texts,
    samples_of,
    writer_to,
)

_LARGEST_TABLE = 10**8  # clients times outcomes
REPORT, AGREEMENT = "report", "agreement"
_KEY, _OTHERS = "key", "made under another agreement"
_NOBODY = "of nobody"
_EVERYBODY = "\0everybody"  # a column of ours: no header can hold it
MOST_TOLD_APART = 2**25  # records, of 8 or 16 bytes each


@dataclass(frozen=True)
class SampleTally:
    """Counts by outcome number. `named`: whether the records say under which agreement they were made.

    `distinct`: whether they name their clients, each of them once; else that is taken on trust. `rows`: where every client comes several
    times, its samples, a row for each.
    """

    counts: NDArray[np.int64]
    coding: Coding
    named: bool
    distinct: bool
    rows: NDArray[Any] | None = None


def coding_and_sampler(agreement: Agreement, domain: Any = None) -> tuple[Coding, Sampler[AnyFamily]]:
    """How samples of an agreement are read, and its sampler. `domain`: needed where it holds but a digest of its labels.

    On a continuous family they are read by its cells, which an estimate puts together to bins.
    """
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
    """The same for an agreement on several samples of each client drawn at once."""
    coding = agreed_coding(agreement, domain)
    return coding, agreement.joint_sampler(agreed_family(agreement, coding))


def tally(
    source: Source,
    agreement: Agreement,
    coding: Coding,
    *,
    sample: str = "sample",
    agreement_column: str = "agreement",
    client_column: str | None = None,
    rounds: int = 1,
) -> SampleTally:
    """Count the samples of a source, one of each client. `client_column`: that of the clients, unless it stands where releases have it.

    `rounds`: every client comes so many times, and is to be told apart from others.
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
    key, typed = _typed_column(source, sample, coding)
    named = agreement_column in source.schema
    others = pl.col(agreement_column).ne_missing(agreement.id) if named else pl.lit(False)
    who = client_column_name(source, sample, agreement_column) if client_column is None else client_column
    clients = _DistinctClients(source, who) if who in source.schema else None

    def count_frame(frame: Any) -> Any:
        keys = outcome_codes(typed, _KEY) if typed.has_cells else pl.col(_KEY)
        return (
            frame.select(key.alias(_KEY), others.alias(_OTHERS), *(clients.told if clients else ()))
            .with_columns(keys.alias(_KEY))
            .group_by(_KEY)
            .agg(pl.len().alias("samples"), pl.col(_OTHERS).sum(), *(clients.gathered if clients else ()))
        )

    counts = np.zeros(typed.size, dtype=np.int64)
    strange: list[Any] = []
    needed = [sample, *([agreement_column] if named else []), *([who] if clients else [])]
    for frame in source.frames(count_frame, list(dict.fromkeys(needed)), client=who if clients else None):
        if frame[_OTHERS].sum():
            _refuse_other_agreements(source, agreement, agreement_column)
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
            clients.note(frame)
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
    """Reports counted by outcome, and how they are read; `named` and `distinct` as for samples. `reports`: where they were asked for."""

    counts: ReportCounts
    coding: Coding
    named: bool
    distinct: bool
    reports: NDArray[np.uint64] | None


def tally_reports(
    source: Source, agreement: Agreement, domain: Any = None, *, column: str = REPORT, keep: bool = False
) -> ReportTally:
    """Count the reports of a source, one of each client. `keep`: hold them too, for averages."""
    coding = agreed_coding(agreement, domain)
    sampler = agreement.report_sampler(agreed_family(agreement, coding))
    if column not in source.schema:
        fix = f"; agreement {agreement.id} is on reports, and these are samples under another" * (
            "sample" in source.schema
        )
        raise DiscreetError(
            f"column {column!r} is not in {source.name}; it has {', '.join(map(repr, source.schema))}{fix}"
        )
    if not (source.is_untyped or source.schema[column].is_integer()):
        raise DiscreetError(
            f"column {column!r} of {source.name} holds {source.schema[column]}; reports are whole numbers (64 bits, without a sign)"
        )
    named = AGREEMENT in source.schema
    others = pl.col(AGREEMENT).ne_missing(agreement.id) if named else pl.lit(False)
    who = client_column_name(source, column)
    clients = _DistinctClients(source, who) if who in source.schema else None
    whole = pl.col(column).cast(pl.UInt64, strict=False).alias(_KEY)

    def count_frame(frame: Any) -> Any:
        return (
            frame.select(whole, others.alias(_OTHERS), *(clients.told if clients else ()))
            .group_by(_KEY)
            .agg(pl.len().alias("reports"), pl.col(_OTHERS).sum(), *(clients.gathered if clients else ()))
        )

    counted, kept = ReportCounts(sampler), list[NDArray[np.uint64]]()
    needed = [column, *([AGREEMENT] if named else []), *([who] if clients else [])]
    for frame in source.frames(count_frame, list(dict.fromkeys(needed)), client=who if clients else None):
        if frame[_OTHERS].sum():
            _refuse_other_agreements(source, agreement, AGREEMENT)
        if frame[_KEY].null_count():
            raise DiscreetError(
                f"column {column!r} of {source.name} holds what is no whole number from 0 to 2^64 - 1; {sampler.blocks.layout}"
            )
        reports = np.repeat(frame[_KEY].to_numpy(), frame["reports"].to_numpy())
        counted.add(reports)
        if keep:
            kept.append(reports)
        if clients:
            clients.note(frame)
    if clients:
        clients.check()
    return ReportTally(counted, coding, named, clients is not None, np.concatenate(kept) if kept else None)


def tally_joint(
    source: Source, agreement: Agreement, coding: Coding, *, samples: int, sample: str = "sample"
) -> SampleTally:
    """Count several samples of each client that were drawn at once, with a row of them for each client.

    They stand in columns sample_1, sample_2, ... with one record for each client, or in one column with as many records for each client.
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
    typed = [_typed_column(source, column, coding)[0].alias(column) for column in columns]
    frames = [frame.select(columns).rows() for frame in source.frames(lambda rows: rows.select(typed), columns)]
    rows = np.array([row for frame in frames for row in frame], dtype=object)
    one = parts[0]
    return SampleTally(sum((part.counts for part in parts), 0 * one.counts), one.coding, one.named, one.distinct, rows)


def _rows_by_client(source: Source, sample: pl.Expr, client: str, rounds: int) -> NDArray[Any]:
    """The samples of each client, (n, rounds): for as many as fit into memory."""
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
            f"column {client!r} of {source.name} names clients {int(often.min())} to {int(often.max())} times, not {rounds} times each; "
            "give the samples of as many rounds, and leave out who missed one"
        )
    return np.array(held[_KEY].to_list(), dtype=object)


def client_column_name(source: Source, sample: str = "sample", agreement: str = "agreement") -> str:
    """The column that names clients: a release begins with it, under any name; elsewhere it is called client."""
    first, *others = source.schema
    return first if others[:2] == [sample, agreement] else "client"


class _DistinctClients:
    """Whose samples are counted: each of them once, or they are refused."""

    def __init__(self, source: Source, column: str) -> None:
        self._where = f"column {column!r} of {source.name}"
        whole = source.schema[column].is_integer()
        name = pl.col(column) if whole else client_name_texts(source, column)
        words = [name] if whole else [name.hash(seed=1), name.hash(seed=2)]
        parts = -(-(source.rows or 0) // MOST_TOLD_APART)
        if parts > 1:
            told = name.hash(seed=3) % parts == 0
            words = [pl.when(told).then(word) for word in words]
        self._called = [f"word {number}" for number in range(len(words))]
        nulls = name.is_null().alias(_NOBODY)
        self.told = [nulls, *(word.alias(called) for word, called in zip(words, self._called, strict=True))]
        self.gathered = [pl.col(_NOBODY).sum(), *map(pl.col, self._called)]
        self._seen: list[pl.DataFrame] = []

    def note(self, frame: pl.DataFrame) -> None:
        """Remember who is behind the records of a frame."""
        if frame[_NOBODY].sum():
            raise DiscreetError(f"{self._where} holds nulls: samples of nobody; filter them out")
        self._seen.append(frame.select(self._called).explode(self._called).drop_nulls())

    def check(self) -> None:
        """Refuse clients that came more than once, and say in how many records."""
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


def average_law(source: Source, coding: Coding, *, value: str, client: str | None = None) -> NDArray[np.float64]:
    """The true average client of a table of raw records, to compare an estimate with; without `client`, of all records."""
    held, size = _raw_counts(source, coding, value, client)
    share = held.select(pl.col("len") / pl.col("len").sum().over("client")).to_series().to_numpy()
    return np.bincount(held["outcome"].to_numpy(), weights=share, minlength=size) / held["client"].n_unique()


def client_laws(source: Source, coding: Coding, *, value: str, client: str) -> NDArray[np.float64]:
    """The law of every client of a table of raw records, one in each row: for examples that fit into memory."""
    held, size = _raw_counts(source, coding, value, client)
    rows = held["client"].rank("dense").to_numpy().astype(np.int64) - 1
    if (int(rows.max()) + 1) * size > _LARGEST_TABLE:
        raise DiscreetError(f"{rows.max() + 1:,} clients on {size:,} outcomes are too many for an example; give fewer")
    counts = np.zeros((int(rows.max()) + 1, size))
    counts[rows, held["outcome"].to_numpy()] = held["len"].to_numpy()
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _raw_counts(source: Source, coding: Coding, value: str, client: str | None) -> tuple[pl.DataFrame, int]:
    """(client, outcome number, how often) of raw records, and how many outcomes there are; without a client all rows are one's."""
    columns = Columns(client=_EVERYBODY if client is None else client, value=value)
    schema = pl.Schema({**source.schema, **({_EVERYBODY: pl.Int64()} if client is None else {})})
    reading = Reading.of(columns, coding, schema, untyped=source.is_untyped, where=source.name, agreed=True)

    def count_frame(frame: Any) -> Any:
        whole = frame.with_columns(pl.lit(0).alias(_EVERYBODY)) if client is None else frame
        return reading.prepare_rows(whole).group_by("client", "outcome").len()

    parts = list(source.frames(count_frame, [value] if client is None else [value, client], client=client))
    held = pl.concat(parts) if parts else pl.DataFrame()
    if not held.height:
        raise DiscreetError(f"{source.name} holds no records")
    if held["client"].null_count():
        unnamed = int(held.filter(pl.col("client").is_null())["len"].sum())
        raise DiscreetError(reading.without_client_message(unnamed, int(held["len"].sum()), of=source.name))
    outcomes, found = resolve_marks(reading.coding, held["outcome"].to_numpy())
    where = f"column {value!r} of {source.name} holds"
    if found.unreadable:
        raise DiscreetError(f"{where} texts that are no numbers; correct them")
    if coding.nulls == "error" and (found.nulls or found.not_numbers):
        raise DiscreetError(f"{where} nulls or NaN; filter them out, or say nulls='drop' or 'other' (--nulls)")
    if found.outside and coding.other is None:
        raise DiscreetError(
            f"{where} values outside the domain; correct them, or say other= (--other) which of its outcomes they become"
        )
    kept = held.with_columns(pl.Series("outcome", outcomes)).filter(pl.col("outcome") < int(FIRST_MARK))
    if not kept.height:
        raise DiscreetError(f"{source.name} holds no records in the domain")
    return kept.group_by("client", "outcome").agg(pl.col("len").sum()), coding.size


def _typed_column(source: Source, column: str, coding: Coding) -> tuple[pl.Expr, Coding]:
    """A column with the type its domain needs (one of CSV has none of its own), and how it is read."""
    if not source.is_untyped:
        return pl.col(column), fit_coding(coding, column, source.schema[column], agreed=True)
    kind = coding.text_kind
    return sample_texts(source, column).cast(kind, strict=False), fit_coding(coding, column, kind, agreed=True)


def _refuse_other_agreements(source: Source, agreement: Agreement, column: str) -> None:
    """Name an agreement that some of the records were made under instead."""

    def elsewhere(frame: Any) -> Any:
        return frame.filter(pl.col(column).ne_missing(agreement.id)).with_columns(pl.col(column).cast(pl.String))

    found = source.examples(elsewhere, column, 1)
    agreement.check_record(found[0] if found else None)


def _refuse_points(source: Source, coding: Coding, key: pl.Expr, sample: str) -> None:
    """Name points that lie in no cell."""
    edges = np.asarray(coding.domain.edges)

    def outside(frame: Any) -> Any:
        return frame.select(key.alias(sample)).filter(outcome_codes(coding, sample) >= int(FIRST_MARK))

    raise DiscreetError(
        f"column {sample!r} holds samples that the agreement does not know: {first_few(source.examples(outside, sample, FEW + 1))}; "
        f"it is on [{edges[0]:g}, {edges[-1]:g}]"
    )


def check_clients_apart(sources: Sequence[Source]) -> bool:
    """Refuse clients that several sources name; whether all of them name their clients."""
    columns = [(source, client_column_name(source)) for source in sources]
    named = [(source, column) for source, column in columns if column in source.schema]
    words = [f"word {seed}" for seed in (1, 2)]
    seen: pl.DataFrame | None = None
    for source, column in named:
        name = client_name_texts(source, column)
        parts = list(source.frames(partial(_hash_names, name=name, words=words), [column], client=column))
        if not parts:
            continue
        who = pl.concat(parts).unique()
        again = 0 if seen is None else who.join(seen, on=words, how="semi").height
        if again:
            raise DiscreetError(
                f"{again:,} of the {who.height:,} clients in {source.name} occur in another file too: each client speaks once, or "
                "its budget is spent twice; leave one of its samples out"
            )
        seen = who if seen is None else pl.concat([seen, who])
    return len(named) == len(sources)


def _hash_names(frame: Any, name: pl.Expr, words: Sequence[str]) -> Any:
    return frame.select(name.hash(seed=seed).alias(word) for seed, word in enumerate(words, start=1))


Floats = NDArray[np.float64]


def outcome_weights(found: Population) -> Floats:
    """What a sample of each outcome should count for, so that weighted shares are those of `found.nearest`; they average one.

    An outcome without samples gets none of its share (`unreached_share`).
    """
    frequencies = found.released_shares.estimate
    reached = np.where(frequencies > 0.0, found.nearest, 0.0)
    weights: Floats = np.zeros_like(reached)
    np.divide(reached / reached.sum(), frequencies, out=weights, where=frequencies > 0.0)
    return weights


def unreached_share(found: Population) -> float:
    """The share of the estimated population that lies on outcomes of which there is no sample."""
    return float(found.nearest[found.counts == 0].sum())


def synthetic_counts(found: Population | ReportedPopulation, rows: int) -> NDArray[np.int64]:
    """How many of `rows` rows should have each outcome: shares of `found.nearest`, off by less than one row each."""
    wanted: Floats = found.nearest * (check_count("rows", rows, most=10**9 - 1) / found.nearest.sum())
    whole = np.floor(wanted).astype(np.int64)
    missing = rows - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:missing]] += 1
    return whole


def points_within(found: Population, numbers: NDArray[np.int64], place: Floats) -> Floats:
    """Points of the bins of a continuous family: `place` in [0, 1) says where in each, in shares of the reference.

    A bin may reach far into a tail; the estimate says how much it holds, and the reference how that is spread.
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
    """Every sample of the source with its weight; how many there are."""
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
