"""`discreet design`: write an agreement on the best sampler for clients like public examples.

With `--from` the design is learned from earlier private samples instead. Files of samples and stores of collections are read with their
agreements. If the samples are too few for a design that is surely better, the agreement is on the better of the samplers that need none,
and the report says so.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import plots
from discreet._base.files import check_output_path, refuse_same_file
from discreet._base.showing import json_number_or_null, pluralise
from discreet.agreement import Agreement, ContinuousTerms, purpose_with_sources
from discreet.cli._options import (
    AllowLarge,
    Bounds,
    CellCount,
    CountColumn,
    DomainFile,
    DomainSize,
    JsonOutput,
    Nulls,
    Other,
    Purpose,
    Rounds,
    WeightColumn,
    budget_spending_text,
    client_column_option,
    flag_option,
    positional_argument,
    read_agreement_of_samples,
    refuse_given_options,
    refuse_large_epsilon,
    refuse_large_total_epsilon,
    required_domain_from_options,
    value_column_option,
    value_option,
)
from discreet.cli._printing import (
    SilentStages,
    dataclass_fields_as_json,
    empty_table,
    format_number,
    notes_as_text_blocks,
    print_json_or_text,
    safe_text,
    showing_stage_progress,
)
from discreet.collect import is_store_name, open_store
from discreet.design import Design, Learned, design as best_design, learn
from discreet.domain import Coding
from discreet.errors import PROBABILITY, DiscreetError, spell_out_invisible
from discreet.estimation import (
    SamplerCost,
    coding_and_sampler,
    compare_samplers,
    refuse_clients_in_several_sources,
    tally_samples,
)
from discreet.families import Simplex
from discreet.mechanisms import MECHANISMS, Sampler
from discreet.plots import refuse_wrong_picture_ending
from discreet.privacy.tradeoff import weak_total_of_rounds_warning_text
from discreet.tables import Columns, Reading, file_source, outcome_counts_by_client

LEARNED_KEEP, LEARNED_CONFIDENCE = 0.01, 0.8
NO_SMOOTHING, AUTO = "none", "auto"
SMOOTHING_EPSILON = 4.0  # above this, clients unlike the few examples dominate the mean
FRONTIER = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)


def design_sampler(
    epsilon: Annotated[float, value_option("E", "Privacy budget of each sample.")],
    output: Annotated[
        Path, value_option("FILE", "The agreement on the designed sampler, a new file.", "--output", "-o")
    ],
    source: Annotated[
        str | None,
        positional_argument("EXAMPLES", "Public records: a file, a folder or a glob. NOT the records to protect."),
    ] = None,
    client: Annotated[str | None, client_column_option()] = None,
    value: Annotated[str | None, value_column_option()] = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    other: Other = None,
    nulls: Nulls = "error",
    count: CountColumn = None,
    weight: WeightColumn = None,
    keep: Annotated[
        float | None,
        value_option(
            "T",
            "Share of the best worst case to keep, 0 to 1; 1 is Q* itself. 0.01 by default, 0.001 with "
            "--smoothing auto.",
        ),
    ] = None,
    smoothing: Annotated[
        str,
        value_option(
            "RULE", "none: use the examples as they are. auto: choose by cross-validation, in about twenty designs."
        ),
    ] = NO_SMOOTHING,
    divergence: Annotated[
        str, value_option("NAME", "The divergence whose mean is minimised: kl, tv, hellinger or chi2.")
    ] = "kl",
    rounds: Rounds = 1,
    purpose: Purpose = "",
    released: Annotated[
        list[str] | None,
        value_option(
            "FILE",
            "Instead of EXAMPLES: private samples of other clients, a table or a collector's store; may be repeated.",
            "--from",
        ),
    ] = None,
    agreements: Annotated[
        list[Path] | None,
        value_option("FILE", "The agreement of each --from, if the file does not carry it.", "--agreement"),
    ] = None,
    spread: Annotated[
        str | None, value_option("FILE", "With --from: samples of one bit about each client's own spread.")
    ] = None,
    spread_agreement: Annotated[Path | None, value_option("FILE", "The agreement of --spread.")] = None,
    confidence: Annotated[
        float, value_option("C", "With --from: the confidence that the design beats the safe samplers.")
    ] = LEARNED_CONFIDENCE,
    plot: Annotated[
        Path | None, value_option("FILE", "Draw the mean against the worst case over --keep: .png, .svg, .pdf.")
    ] = None,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
    quiet: Annotated[bool, flag_option("--quiet", "No progress.", "-q")] = False,
) -> None:
    """Design the best private sampler for clients like the given ones, and write it as an agreement for `discreet sample --agreement`.

    The command prints a floor: no epsilon-LDP sampler has a smaller mean over the examples. THE EXAMPLES MUST BE PUBLIC, or their clients
    must have spent a budget on it. A design made from the clients that it then serves breaks their guarantee.

    With --from it is learned from private samples of earlier clients instead. If they do not show with --confidence that a design is
    better, the agreement is on the optimal sampler or the mollifier, and the command says so.
    """
    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    refuse_large_total_epsilon(weak_total_of_rounds_warning_text(epsilon, rounds), allowed=allow_large_epsilon)
    if smoothing not in (NO_SMOOTHING, AUTO):
        raise DiscreetError(f"--smoothing {smoothing} is not one of none, auto")
    if keep is not None:
        PROBABILITY.check("keep", keep, "it is the share of the best worst case that must remain")
    if released:
        refuse_given_options(
            {
                "--smoothing": smoothing if smoothing != NO_SMOOTHING else None,
                "EXAMPLES": source, "--client": client, "--value": value, "--domain": domain, "--domain-size": domain_size,
                "--bounds": bounds, "--cells": cells, "--other": other,
                "--nulls": None if nulls == "error" else nulls, "--count": count, "--weight": weight, "--plot": plot,
            },
            "is for public examples; --from FILE learns from private samples, whose agreement states the outcomes",
        )  # fmt: skip
        files = SampleFiles(tuple(released), tuple(agreements or ()), spread, spread_agreement)
        check_output_path(output, what="agreement")
        files.refuse_contradicting_options(output)
        keep_share = LEARNED_KEEP if keep is None else keep
        with showing_stage_progress(quiet=quiet) as stages:
            learned_agreement = _learn_agreement_from_samples(
                files, epsilon=epsilon, divergence=divergence, keep=keep_share, confidence=confidence, rounds=rounds, purpose=purpose,
                begin_stage=stages.begin_stage,
            )  # fmt: skip
        _write_learned_agreement(learned_agreement, output, json=json, quiet=quiet)
        return
    if agreements or spread or spread_agreement or confidence != LEARNED_CONFIDENCE:
        raise DiscreetError(
            "--agreement, --spread and --confidence belong to --from FILE, private samples of earlier clients; give that too"
        )
    if source is None or client is None or value is None:
        raise DiscreetError(
            "give public records as EXAMPLES with --client COLUMN and --value COLUMN, or private samples with --from FILE"
        )
    check_output_path(output, what="agreement")
    if plot is not None:
        refuse_wrong_picture_ending(plot)
        refuse_same_file(plot, {"examples": source, "list of outcomes": domain, "agreement": output}, what="picture")
    coding = Coding(required_domain_from_options(domain, domain_size, bounds, cells), other, nulls)
    columns = Columns(client=client, value=value, count=count, weight=weight)
    with showing_stage_progress(quiet=quiet) as stages:
        stages.begin_stage("reading the examples")
        examples = file_source(source)
        untyped_columns, where = examples.untyped_columns, examples.name
        reading = Reading.for_table_columns(
            columns, coding, examples.schema, untyped=untyped_columns, where=where, show_values=True
        )
        counts, family = outcome_counts_by_client(examples, reading), Simplex(reading.values[0].coding.domain)
        stages.begin_stage(
            f"designing for {pluralise(counts.shape[0], 'example')} on {pluralise(counts.shape[1], 'outcome')}"
        )
        smoothing_rule = AUTO if smoothing == AUTO else None
        design_at = partial(
            best_design,
            family,
            epsilon=epsilon,
            clients=counts,
            divergence=divergence,
            smoothing=smoothing_rule,
            progress=stages.show_finished_share,
        )
        design = design_at(keep=keep)
        stages.begin_stage("comparing")
        rows = compare_samplers(design, counts)
        agreement = Agreement.of(design.sampler, rounds=rounds, purpose=purpose)
        frontier = [] if plot is None else _compute_frontier_designs(design_at, design, stages)
    agreement.write(output)
    if plot is not None:
        others = {row.name: (row.worst, row.mean) for row in rows if row.name in MECHANISMS}
        plots.save(plots.frontier(frontier, others=others), plot)
    print_json_or_text(
        _design_json_record(design, rows, frontier, agreement),
        *_design_text_blocks(design, rows),
        _agreement_written_text(agreement, output) + (f"; picture: {safe_text(plot)}" if plot else ""),
        json=json,
    )


def _compute_frontier_designs(
    design_at: Callable[..., Design], first_design: Design, stages: SilentStages
) -> list[Design]:
    """Designs at other shares of the best worst case."""
    designs = [first_design]
    for keep in FRONTIER:
        if keep != first_design.keep:
            stages.begin_stage(f"designing with --keep {keep:g}")
            designs.append(design_at(keep=keep))
    return sorted(designs, key=lambda design: -design.keep)


def _design_text_blocks(design: Design, rows: list[SamplerCost]) -> list[Any]:
    name = design.divergence.name
    table = empty_table(f"{name} to a client's own distribution", "mean", "median", "largest", "worst of all")
    for row in rows:
        parts = [format_number(part) for part in (row.mean, row.median, row.largest, row.worst)]
        table.add_row(row.name, *parts, end_section=row is rows[-1])
    table.add_row("no sampler is below", format_number(_round_bound_down(design.bound)), "", "", "")
    return [
        f"[bold]{pluralise(design.examples, 'example')}, {pluralise(design.family.size, 'outcome')}, epsilon = {design.epsilon:g}[/bold], "
        f"keeping {design.keep:g} of the best worst case.",
        "[bold red]Note[/bold red]: the examples must be public, or their clients must have spent a budget on this. "
        "A design made from the clients that it then serves breaks their guarantee, however small epsilon is.",
        *_notes_on_smoothed_examples(design),
        table,
        "Mean, median and largest are over the examples; the last column is over all possible clients. The last "
        "line is proved: no "
        f"epsilon-LDP sampler that keeps as much has a smaller mean {name} over these examples.",
    ]


def _notes_on_smoothed_examples(design: Design) -> list[str]:
    """How the examples were smoothed, or the advice to do so if they are few for their epsilon."""
    if design.smoothing is not None:
        return [f"Smoothing, chosen by the examples: {design.smoothing.description}."]
    if design.epsilon < SMOOTHING_EPSILON and design.examples >= math.exp(design.epsilon):
        return []
    return [
        "[bold]Note[/bold]: at this epsilon rare clients decide much of the mean, and examples leave them out. `--smoothing auto` holds "
        "examples back to choose how much to allow for them."
    ]


def _round_bound_down(bound: float) -> float:
    """A lower bound, rounded down to four digits, or to eight if it is small."""
    unit = 10.0 ** (4 if bound >= 0.01 else 8)
    return max(0.0, math.floor(bound * unit) / unit)


def _design_json_record(
    design: Design, rows: list[SamplerCost], frontier: list[Design], agreement: Agreement
) -> dict[str, Any]:
    return {
        "agreement": agreement.id,
        "epsilon": design.epsilon,
        "divergence": design.divergence.name,
        "keep": design.keep,
        "examples": design.examples,
        "outcomes": design.family.size,
        "mean": design.value,
        "floor": design.bound,
        "worst": json_number_or_null(float(design.worst(design.divergence))),
        "smoothing": None if design.smoothing is None else asdict(design.smoothing),
        "samplers": [dataclass_fields_as_json(row) for row in rows],
        "frontier": [
            {
                "keep": point.keep,
                "mean": point.value,
                "floor": point.bound,
                "worst": json_number_or_null(float(point.worst(point.divergence))),
            }
            for point in frontier
        ],
    }


_LISTED = 10  # outcomes of the mean to show
_NARROWED = (
    "samples under this agreement narrow the population's shares down to intervals that do not shrink to nothing: they serve each client, "
    "and no estimate from them is unbiased. To estimate shares, keep collecting under a linear agreement or one on reports (discreet agree "
    "--for population); the stages are estimated together: discreet estimate FIRST SECOND"
)


@dataclass(frozen=True)
class SampleFiles:
    """Files of samples or stores of collections, with their agreements. A file of `discreet sample` may carry its own."""

    samples: tuple[str, ...]
    agreements: tuple[Path, ...]
    spread: str | None = None
    spread_agreement: Path | None = None

    def refuse_contradicting_options(self, output: Path) -> None:
        """Raise an error for options that contradict each other, and for an output that would replace an input."""
        if self.agreements and len(self.agreements) != len(self.samples):
            raise DiscreetError(
                f"--from was given {len(self.samples)} times and --agreement {len(self.agreements)} times; give one agreement for each file "
                "of samples, in the same order, or none where the files carry theirs"
            )
        if self.spread_agreement is not None and self.spread is None:
            raise DiscreetError("--spread-agreement is that of --spread FILE; give both")
        for path in (*self.samples, *map(str, self.agreements), self.spread):
            refuse_same_file(output, {"samples": path}, what="agreement")


@dataclass(frozen=True, eq=False)
class LearnedAgreement:
    """A learned design, with the agreements it was learned from and their outcomes."""

    learning_result: Learned
    rounds: tuple[tuple[Agreement, int], ...]
    agreement: Agreement
    names: Sequence[Any]
    doubts: tuple[str, ...]

    @property
    def determines_average_client(self) -> bool:
        """Whether samples under the agreement determine the average client."""
        return self.learning_result.sampler.mixing is not None


def _learn_agreement_from_samples(
    files: SampleFiles,
    *,
    epsilon: float,
    divergence: str,
    keep: float,
    confidence: float,
    rounds: int,
    purpose: str,
    begin_stage: Callable[[str], None],
) -> LearnedAgreement:
    """Read every file, learn a design, and return its agreement."""
    begin_stage("reading the samples")
    agreements = [*files.agreements, *[None] * (len(files.samples) - len(files.agreements))]
    inputs = [_read_counts_of_file_or_store(name, path) for name, path in zip(files.samples, agreements, strict=True)]
    tallies = [tally for sample_source in inputs for tally in sample_source.rounds]
    domain = tallies[0][1].family.domain
    for earlier_agreement, sampler, _ in tallies[1:]:
        if sampler.family.domain.digest != domain.digest:
            raise DiscreetError(
                f"agreement {earlier_agreement.id[:12]} is on other outcomes than {tallies[0][0].id[:12]}; learn from samples on one domain"
            )
    spread_tally = None
    if files.spread is not None:
        inputs.append(_read_counts_of_file_or_store(files.spread, files.spread_agreement))
        spread_tally, *others = inputs[-1].rounds
        if others:
            raise DiscreetError(
                "--spread names a collection of several agreements; give samples on two outcomes, under one"
            )
    sources = [sample_source.source for sample_source in inputs if sample_source.source is not None]
    distinct = refuse_clients_in_several_sources(sources) and (len(inputs) == 1 or len(sources) == len(inputs))
    family = Simplex(domain)
    begin_stage(
        f"learning from {sum(int(counts.sum()) for _, _, counts in tallies):,} samples on {family.size:,} outcomes"
    )
    learning_result = learn(
        family,
        epsilon=epsilon,
        rounds=[(sampler, counts) for _, sampler, counts in tallies],
        spread=None if spread_tally is None else (spread_tally[1], spread_tally[2]),
        divergence=divergence,
        keep=keep,
        confidence=confidence,
    )
    ids = [earlier_agreement.id for sample_source in inputs for earlier_agreement, *_ in sample_source.rounds]
    stated_purpose = purpose or tallies[0][0].stated_purpose
    agreement = Agreement.of(learning_result.sampler, rounds=rounds, purpose=purpose_with_sources(stated_purpose, ids))
    doubts = [] if distinct else ["not all files name their clients; it is not checked that each sent one sample"]
    if any(
        sample_source.source is None and earlier_agreement.rounds > 1
        for sample_source in inputs
        for earlier_agreement, *_ in sample_source.rounds
    ):
        doubts.append("only the first of several rounds is used: each client has a sample in every round")
    rounds_read = tuple((earlier_agreement, int(counts.sum())) for earlier_agreement, _, counts in tallies)
    return LearnedAgreement(learning_result, rounds_read, agreement, domain.names, tuple(doubts))


@dataclass(frozen=True, eq=False)
class _SampleSource:
    """The samples behind one name: (agreement, sampler, counts) for each agreement, and the table they were read from, if any."""

    rounds: list[tuple[Agreement, Sampler[Any], Any]]
    source: Any = None


def _read_counts_of_file_or_store(name: str, path: Path | None) -> _SampleSource:
    """The samples of a file, under the agreement that it carries or that is named; or those of a collection in a store."""
    if is_store_name(name):
        return _SampleSource(_read_sample_counts_of_store(name, path))
    source = file_source(name)
    agreement = read_agreement_of_samples(source, path)
    coding, sampler = _coding_and_sampler_to_learn_from(agreement)
    return _SampleSource([(agreement, sampler, tally_samples(source, agreement, coding).counts)], source)


def _read_sample_counts_of_store(name: str, path: Path | None) -> list[tuple[Agreement, Sampler[Any], Any]]:
    """The counts under every agreement of a collection: the only one of a store, or that of the named agreement."""
    agreement_id = None if path is None else Agreement.read(path).id
    with closing(open_store(name, create=False)) as store:
        stored_agreements = store.agreements()
        collections = {
            entry.collection
            for entry in stored_agreements
            if agreement_id is None or entry.agreement.id == agreement_id
        }
        if agreement_id is not None and not collections:
            raise DiscreetError(
                f"the store holds no samples under agreement {agreement_id}, which --agreement {path} is"
            )
        if len(collections) > 1:
            raise DiscreetError(
                f"the store holds {len(collections)} collections, of other clients each; say which one: --agreement FILE, any of its "
                "agreements"
            )
        counts_by_agreement = [
            (entry.agreement, store.outcome_counts(entry.agreement.id, 1))
            for entry in stored_agreements
            if entry.collection in collections
        ]
    rounds = [
        (agreement, _coding_and_sampler_to_learn_from(agreement)[1], counts)
        for agreement, counts in counts_by_agreement
        if counts.any()
    ]
    if not rounds:
        raise DiscreetError("the store holds no samples yet; there is nothing to learn from")
    return rounds


def _coding_and_sampler_to_learn_from(agreement: Agreement) -> tuple[Coding, Sampler[Any]]:
    """The coding of the samples, and the sampler."""
    if isinstance(agreement.family, ContinuousTerms):
        raise DiscreetError(
            f"agreement {agreement.id[:12]} is on {agreement.family.description}; a design is learned from samples on a list of "
            "outcomes, or on the equal cells of an interval (--bounds LO HI --cells N)"
        )
    if agreement.blocks is not None:
        raise DiscreetError(
            f"agreement {agreement.id[:12]} is on reports, and a design is learned from samples; collect under --mechanism linear or optimal"
        )
    return coding_and_sampler(agreement)


def _write_learned_agreement(learned_agreement: LearnedAgreement, output: Path, *, json: bool, quiet: bool) -> None:
    """Write the agreement, and print what it rests on."""
    if not learned_agreement.determines_average_client and not quiet:
        typer.echo(spell_out_invisible(f"discreet: {_NARROWED}"), err=True)
    learned_agreement.agreement.write(output)
    message = _agreement_written_text(learned_agreement.agreement, output)
    print_json_or_text(
        _learned_design_json_record(learned_agreement),
        *_learned_design_text_blocks(learned_agreement),
        message,
        json=json,
    )


def _agreement_written_text(agreement: Agreement, output: Path) -> str:
    """Which agreement was written where, with the total budget of its rounds if there are several."""
    budget_text = f" ({budget_spending_text(agreement)})" if agreement.rounds > 1 else ""
    return f"Agreement {agreement.id[:12]}{budget_text}: {safe_text(output)}"


def _learned_design_text_blocks(learned_agreement: LearnedAgreement) -> list[Any]:
    """The learned design as blocks of text."""
    learning_result = learned_agreement.learning_result
    shares = empty_table("outcome", "mean, %")
    for index in (-learning_result.mean).argsort()[:_LISTED].tolist():
        shares.add_row(safe_text(learned_agreement.names[index], most=200), f"{100 * learning_result.mean[index]:.1f}")
    kind = "a designed sampler" if learning_result.published else "no design"
    earlier_ids = ", ".join(agreement_id[:12] for agreement_id in learned_agreement.agreement.learned_from)
    agreements_text, samples_text = (
        pluralise(len(learned_agreement.rounds), "agreement"),
        pluralise(learning_result.samples, "private sample"),
    )
    return [
        f"[bold]Learned from {samples_text}[/bold] under {agreements_text}: {kind}, epsilon = {learning_result.design.epsilon:g}.",
        *notes_as_text_blocks(learned_agreement.doubts),
        f"Why: {safe_text(learning_result.reason)} (expected gain {learning_result.gain:.0%}). The gain assumes a model of the clients: "
        f"spread around a mean, in clusters, or with one value each. Private samples cannot confirm the model.",
        f"[bold red]Note[/bold red]: serve other clients. A client with a sample under {earlier_ids} would "
        f"spend a second budget. The agreement names these in its purpose; `discreet collect --follows` takes no "
        f"client twice.",
        shares,
        f"The likeliest mean of the clients; concentration {format_number(learning_result.concentration)} (small: each client has "
        f"few outcomes; large: all are like the mean).",
    ]


def _learned_design_json_record(learned_agreement: LearnedAgreement) -> dict[str, Any]:
    """The learned design as a JSON object."""
    learning_result = learned_agreement.learning_result
    return {
        "agreement": learned_agreement.agreement.id,
        "mechanism": learned_agreement.agreement.mechanism,
        "epsilon": learning_result.design.epsilon,
        "divergence": learning_result.design.divergence.name,
        "keep": learning_result.design.keep,
        "published": learning_result.published,
        "identifiable": learned_agreement.determines_average_client,
        "better_under": learning_result.better,
        "confidence": learning_result.confidence,
        "expected_gain": json_number_or_null(learning_result.gain),
        "reason": learning_result.reason,
        "samples": learning_result.samples,
        "learned_from": [
            {"agreement": agreement.id, "samples": samples} for agreement, samples in learned_agreement.rounds
        ],
        "concentration": learning_result.concentration,
        "kinds": learning_result.kinds,
        "expected_gain_by_kind": learning_result.gain_by_kind,
        "better_by_kind": learning_result.better_by_kind,
        "held_out": {
            "samples": learning_result.held_out.samples,
            "log_likelihood": learning_result.held_out.log_likelihood,
            "rejected": list(learning_result.held_out.rejected),
        },
        "mean": [
            {"outcome": name, "share": float(share)}
            for name, share in zip(learned_agreement.names, learning_result.mean, strict=True)
        ],
        "worst": json_number_or_null(float(learning_result.sampler.risk(learning_result.design.divergence))),
        "notes": list(learned_agreement.doubts),
    }
