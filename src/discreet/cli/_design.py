"""`discreet design`: write an agreement on the best sampler for clients like public examples.

With `--from` the design is learned from earlier private samples instead. If these are too few, the agreement is on the better of the
samplers that need no design.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from discreet import plots
from discreet._base.files import check_apart, check_output_path
from discreet._base.showing import json_number, pluralise
from discreet.agreement import Agreement
from discreet.cli._learned_design import SampleFiles, learn_agreement, write_learned, written_text
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
    argument,
    client_option,
    option,
    refuse_given,
    refuse_large_epsilon,
    refuse_large_total_epsilon,
    require_domain,
    switch,
    value_option,
)
from discreet.cli._printing import empty_table, format_number, json_values, print_blocks, safe_text, write_json
from discreet.cli._progress import SilentStages, stage_bar
from discreet.design import Design, design as best
from discreet.domain import Coding
from discreet.errors import PROBABILITY, DiscreetError
from discreet.estimation import SamplerCost, compare_samplers
from discreet.families import Simplex
from discreet.mechanisms import MECHANISMS
from discreet.plots import check_picture
from discreet.privacy.tradeoff import weak_pure_rounds_warning
from discreet.tables import Columns, Reading, example_counts, file_source

LEARNED_KEEP = 0.01
NO_SMOOTHING, AUTO = "none", "auto"
SMOOTHING_EPSILON = 4.0  # above this, clients unlike the few examples dominate the mean
FRONTIER = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)


def design(
    epsilon: Annotated[float, option("E", "Privacy budget of each sample.")],
    output: Annotated[Path, option("FILE", "The agreement on the designed sampler, a new file.", "--output", "-o")],
    source: Annotated[
        str | None, argument("EXAMPLES", "Public records: a file, a folder or a glob. NOT the records to protect.")
    ] = None,
    client: Annotated[str | None, client_option()] = None,
    value: Annotated[str | None, value_option()] = None,
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
        option(
            "T",
            "Share of the best worst case to keep, 0 to 1; 1 is Q* itself. 0.01 by default, 0.001 with "
            "--smoothing auto.",
        ),
    ] = None,
    smoothing: Annotated[
        str,
        option(
            "RULE", "none: use the examples as they are. auto: choose by cross-validation, in about twenty designs."
        ),
    ] = NO_SMOOTHING,
    divergence: Annotated[
        str, option("NAME", "The divergence whose mean is minimised: kl, tv, hellinger or chi2.")
    ] = "kl",
    rounds: Rounds = 1,
    purpose: Purpose = "",
    released: Annotated[
        list[str] | None,
        option(
            "FILE",
            "Instead of EXAMPLES: private samples of other clients, a table or a collector's store; may be repeated.",
            "--from",
        ),
    ] = None,
    agreements: Annotated[
        list[Path] | None, option("FILE", "The agreement of each --from, if the file does not carry it.", "--agreement")
    ] = None,
    spread: Annotated[
        str | None, option("FILE", "With --from: samples of one bit about each client's own spread.")
    ] = None,
    spread_agreement: Annotated[Path | None, option("FILE", "The agreement of --spread.")] = None,
    confidence: Annotated[
        float, option("C", "With --from: the confidence that the design beats the safe samplers.")
    ] = 0.8,
    plot: Annotated[
        Path | None, option("FILE", "Draw the mean against the worst case over --keep: .png, .svg, .pdf.")
    ] = None,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
    quiet: Annotated[bool, switch("--quiet", "No progress.", "-q")] = False,
) -> None:
    """Design the best private sampler for clients like the given ones, and write it as an agreement for `discreet sample --agreement`.

    The command prints a floor: no epsilon-LDP sampler has a smaller mean over the examples. THE EXAMPLES MUST BE PUBLIC, or their clients
    must have spent a budget on it. A design made from the clients that it then serves breaks their guarantee.

    With --from it is learned from private samples of earlier clients instead. If these are too few for a design that is surely better, the
    agreement is on the optimal sampler or the mollifier, and the command says so.
    """
    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    refuse_large_total_epsilon(weak_pure_rounds_warning(epsilon, rounds), allowed=allow_large_epsilon)
    if smoothing not in (NO_SMOOTHING, AUTO):
        raise DiscreetError(f"--smoothing {smoothing} is not one of none, auto")
    if keep is not None:
        PROBABILITY.check("keep", keep, "it is the share of the best worst case that must remain")
    if released:
        refuse_given(
            {
                "--smoothing": smoothing if smoothing != NO_SMOOTHING else None,
                "EXAMPLES": source, "--client": client, "--value": value, "--domain": domain, "--domain-size": domain_size,
                "--bounds": bounds, "--cells": cells, "--other": other, "--count": count, "--weight": weight, "--plot": plot,
            },
            "is for public examples; --from FILE learns from private samples, whose agreement states the outcomes",
        )  # fmt: skip
        files = SampleFiles(tuple(released), tuple(agreements or ()), spread, spread_agreement)
        check_output_path(output, what="agreement")
        files.check(output)
        kept = LEARNED_KEEP if keep is None else keep
        with stage_bar(quiet=quiet) as stages:
            learned = learn_agreement(
                files, epsilon=epsilon, divergence=divergence, keep=kept, confidence=confidence, rounds=rounds, purpose=purpose,
                begin_stage=stages.begin,
            )  # fmt: skip
        write_learned(learned, output, json=json, quiet=quiet)
        return
    if agreements or spread or spread_agreement:
        raise DiscreetError(
            "--agreement and --spread belong to --from FILE, private samples of earlier clients; give that too"
        )
    if source is None or client is None or value is None:
        raise DiscreetError(
            "give public records as EXAMPLES with --client COLUMN and --value COLUMN, or private samples with --from FILE"
        )
    check_output_path(output, what="agreement")
    if plot is not None:
        check_picture(plot)
        check_apart(plot, {"examples": source, "list of outcomes": domain, "agreement": output}, what="picture")
    coding = Coding(require_domain(domain, domain_size, bounds, cells), other, nulls)
    columns = Columns(client=client, value=value, count=count, weight=weight)
    with stage_bar(quiet=quiet) as stages:
        stages.begin("reading the examples")
        examples = file_source(source)
        untyped, where = examples.untyped_columns, examples.name
        reading = Reading.of(columns, coding, examples.schema, untyped=untyped, where=where, show_values=True)
        counts, family = example_counts(examples, reading), Simplex(reading.values[0].coding.domain)
        stages.begin(
            f"designing for {pluralise(counts.shape[0], 'example')} on {pluralise(counts.shape[1], 'outcome')}"
        )
        smoothed = AUTO if smoothing == AUTO else None
        design_at = partial(
            best,
            family,
            epsilon=epsilon,
            clients=counts,
            divergence=divergence,
            smoothing=smoothed,
            progress=stages.share,
        )
        found = design_at(keep=keep)
        stages.begin("comparing")
        rows = compare_samplers(found, counts)
        agreement = Agreement.of(found.sampler, rounds=rounds, purpose=purpose)
        frontier = [] if plot is None else _frontier_designs(design_at, found, stages)
    agreement.write(output)
    if plot is not None:
        others = {row.name: (row.worst, row.mean) for row in rows if row.name in MECHANISMS}
        plots.save(plots.frontier(frontier, others=others), plot)
    if json:
        write_json(_design_record(found, rows, frontier, agreement))
        return
    print_blocks(
        *_design_report(found, rows),
        written_text(agreement, output) + (f"; picture: {safe_text(plot)}" if plot else ""),
    )


def _frontier_designs(design_at: Callable[..., Design], found: Design, stages: SilentStages) -> list[Design]:
    """Designs at other shares of the best worst case."""
    designs = [found]
    for keep in FRONTIER:
        if keep != found.keep:
            stages.begin(f"designing with --keep {keep:g}")
            designs.append(design_at(keep=keep))
    return sorted(designs, key=lambda one: -one.keep)


def _design_report(found: Design, rows: list[SamplerCost]) -> list[Any]:
    name = found.divergence.name
    made = empty_table(f"{name} to a client's own distribution", "mean", "median", "largest", "worst of all")
    for row in rows:
        parts = [format_number(part) for part in (row.mean, row.median, row.largest, row.worst)]
        made.add_row(row.name, *parts, end_section=row is rows[-1])
    made.add_row("no sampler is below", format_number(_round_down(found.bound)), "", "", "")
    return [
        f"[bold]{pluralise(found.examples, 'example')}, {pluralise(found.family.size, 'outcome')}, epsilon = {found.epsilon:g}[/bold], "
        f"keeping {found.keep:g} of the best worst case.",
        "[bold red]Note[/bold red]: the examples must be public, or their clients must have spent a budget on this. "
        "A design made from the clients that it then serves breaks their guarantee, however small epsilon is.",
        *_smoothing_text(found),
        made,
        "Mean, median and largest are over the examples; the last column is over all possible clients. The last "
        "line is proved: no "
        f"epsilon-LDP sampler that keeps as much has a smaller mean {name} over these examples.",
    ]


def _smoothing_text(found: Design) -> list[str]:
    """How the examples were smoothed, or the advice to do so if they are few for their epsilon."""
    if found.smoothing is not None:
        return [f"Smoothing, chosen by the examples: {found.smoothing.description}."]
    if found.epsilon < SMOOTHING_EPSILON and found.examples >= math.exp(found.epsilon):
        return []
    return [
        "[bold]Note[/bold]: at this epsilon rare clients decide much of the mean, and examples leave them out. `--smoothing auto` holds "
        "examples back to choose how much to allow for them."
    ]


def _round_down(bound: float) -> float:
    """A floor as text: four digits, rounded down."""
    unit = 10.0 ** (4 if bound >= 0.01 else 8)
    return max(0.0, math.floor(bound * unit) / unit)


def _design_record(
    found: Design, rows: list[SamplerCost], frontier: list[Design], agreement: Agreement
) -> dict[str, Any]:
    return {
        "agreement": agreement.id,
        "epsilon": found.epsilon,
        "divergence": found.divergence.name,
        "keep": found.keep,
        "examples": found.examples,
        "outcomes": found.family.size,
        "mean": found.value,
        "floor": found.bound,
        "worst": json_number(float(found.worst(found.divergence))),
        "smoothing": None if found.smoothing is None else asdict(found.smoothing),
        "samplers": [json_values(row) for row in rows],
        "frontier": [
            {
                "keep": one.keep,
                "mean": one.value,
                "floor": one.bound,
                "worst": json_number(float(one.worst(one.divergence))),
            }
            for one in frontier
        ],
    }
