"""`discreet design`: from public examples to an agreement on the best sampler for clients like them."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from discreet import plots
from discreet._files import check_apart, check_target
from discreet._showing import json_number, pluralise
from discreet._tables._coding import Coding, Columns
from discreet._tables._public import example_counts
from discreet._tables._records import Reading
from discreet._tables._sources import file_source
from discreet.agreement import Agreement
from discreet.cli import _learning as learning
from discreet.cli import _terms_told as terms_told
from discreet.cli._learning import SampleFiles
from discreet.cli._options import (
    AllowLarge,
    Bounds,
    CellCount,
    CountColumn,
    DomainFile,
    DomainSize,
    Nulls,
    Other,
    WeightColumn,
    client_option,
    refuse_large,
    refuse_large_together,
    require_domain,
    value_option,
)
from discreet.cli._printing import Terminal, number, plain, say, table, write_json
from discreet.design import Design
from discreet.design import design as best
from discreet.errors import PROBABILITY, DiscreetError
from discreet.estimation._contest import SamplerCost, compare_samplers
from discreet.families import Simplex
from discreet.mechanisms import MECHANISMS
from discreet.plots._formats import check_picture
from discreet.tradeoff import weak_pure_rounds_warning

LEARNED_KEEP = 0.01
NO_SMOOTHING, AUTO = "none", "auto"
SMOOTHING_EPSILON = 4.0  # from which on what a few examples leave out decides much of the mean
FRONTIER = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.01)


def design(
    epsilon: Annotated[float, typer.Option(metavar="E", help="Privacy budget of each sample.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The agreement on the designed sampler, a new file.")
    ],
    source: Annotated[
        str | None,
        typer.Argument(metavar="EXAMPLES", help="Public records: a file, a folder or a glob. NOT those to protect."),
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
        typer.Option(
            metavar="T",
            help="Share of the best worst case that must remain, 0 to 1; 1 is Q* itself. 0.01 by default, 0.001 with --smoothing auto.",
        ),
    ] = None,
    smoothing: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="none: for the examples as they are. auto: cross-validation on them chooses, in about twenty designs.",
        ),
    ] = NO_SMOOTHING,
    divergence: Annotated[
        str, typer.Option(metavar="NAME", help="What to make small on average: kl, tv, hellinger or chi2.")
    ] = "kl",
    rounds: Annotated[int, typer.Option(metavar="N", help="Samples of each client.")] = 1,
    purpose: Annotated[str, typer.Option(metavar="TEXT", help="What the samples are for.")] = "",
    released: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Instead of EXAMPLES: private samples of other clients, a table or a collector's store; may be repeated.",
        ),
    ] = None,
    agreements: Annotated[
        list[Path] | None,
        typer.Option(
            "--agreement", metavar="FILE", help="What each --from was released under, where the file does not carry it."
        ),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --from: samples on two outcomes, of how spread out a client is."),
    ] = None,
    spread_agreement: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What --spread was released under.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="C", help="With --from: how sure a design must be to beat the safe samplers.")
    ] = 0.8,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw mean against worst case as --keep moves: .png, .svg, .pdf."),
    ] = None,
    allow_large_epsilon: AllowLarge = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The best private sampler for clients like the given ones, as an agreement that `discreet sample --agreement` releases under.

    No epsilon-LDP sampler whatever has a smaller mean over the examples than the floor that is printed. THE EXAMPLES MUST BE PUBLIC, or
    their clients must have spent a budget on it: a design fitted on the clients that it then serves breaks their guarantee.

    With --from it is learned from private samples of earlier clients instead. Where these say too little for a design that is surely
    better, the agreement is on the optimal sampler or the mollifier, and says so.
    """

    refuse_large(epsilon, allowed=allow_large_epsilon)
    refuse_large_together(weak_pure_rounds_warning(epsilon, rounds), allowed=allow_large_epsilon)
    if smoothing not in (NO_SMOOTHING, AUTO):
        raise DiscreetError(f"--smoothing {smoothing} is not one of none, auto")
    if keep is not None:
        PROBABILITY.check("keep", keep, "it is the share of the best worst case that must remain")
    if released:
        _refuse_both(
            {
                "--smoothing": smoothing if smoothing != NO_SMOOTHING else None,
                "EXAMPLES": source, "--client": client, "--value": value, "--domain": domain, "--domain-size": domain_size,
                "--bounds": bounds, "--cells": cells, "--other": other, "--count": count, "--weight": weight, "--plot": plot,
            }
        )  # fmt: skip
        files = SampleFiles(tuple(released), tuple(agreements or ()), spread, spread_agreement)
        _learn(
            files,
            output,
            epsilon,
            divergence,
            LEARNED_KEEP if keep is None else keep,
            confidence,
            rounds,
            purpose,
            json=json,
            quiet=quiet,
        )
        return
    if agreements or spread or spread_agreement:
        raise DiscreetError(
            "--agreement and --spread belong to --from FILE, private samples of earlier clients; give that too"
        )
    if source is None or client is None or value is None:
        raise DiscreetError(
            "give public records as EXAMPLES with --client COLUMN and --value COLUMN, or private samples with --from FILE"
        )
    check_target(output, what="agreement")
    if plot is not None:
        check_picture(plot)
        check_apart(plot, {"examples": source, "list of outcomes": domain, "agreement": output}, what="picture")
    coding = Coding(require_domain(domain, domain_size, bounds, cells), other, nulls)
    columns = Columns(client=client, value=value, count=count, weight=weight)
    with _progress(quiet=quiet) as told:
        told("reading the examples")
        examples = file_source(source)
        reading = Reading.of(
            columns,
            coding,
            examples.schema,
            untyped=examples.is_untyped,
            where=examples.name,
            show_values=True,
        )
        counts, family = example_counts(examples, reading), Simplex(reading.coding.domain)
        told(f"designing for {pluralise(counts.shape[0], 'example')} on {pluralise(counts.shape[1], 'outcome')}")
        design_at = partial(_make_design, family, counts, epsilon, divergence, smoothing == AUTO, told)
        found = design_at(keep)
        told("comparing")
        rows = compare_samplers(found, counts)
        agreement = Agreement.of(found.sampler, rounds=rounds, purpose=purpose)
        frontier = [] if plot is None else _frontier(design_at, found, told)
    agreement.write(output)
    if plot is not None:
        _draw(frontier, rows, plot)
    if json:
        write_json(_record(found, rows, frontier, agreement))
        return
    say(
        *_report(found, rows),
        f"Agreement {agreement.id[:12]}{_rounds_text(agreement)}: {plain(output)}"
        + (f"; picture: {plain(plot)}" if plot else ""),
    )


def _rounds_text(agreement: Agreement) -> str:
    """What all rounds spend together, where there are several."""
    return f" ({terms_told.spending_text(agreement)})" if agreement.rounds > 1 else ""


def _refuse_both(given: dict[str, Any]) -> None:
    """Options that speak of public examples, beside private samples."""
    for name, value in given.items():
        if value is not None:
            raise DiscreetError(
                f"{name} speaks of public examples; --from FILE learns from private samples, whose agreement states the outcomes"
            )


def _learn(
    files: SampleFiles,
    output: Path,
    epsilon: float,
    divergence: str,
    keep: float,
    confidence: float,
    rounds: int,
    purpose: str,
    *,
    json: bool,
    quiet: bool,
) -> None:
    check_target(output, what="agreement")
    files.check(output)
    with _progress(quiet=quiet) as told:
        found = learning.learn_agreement(
            files, epsilon=epsilon, divergence=divergence, keep=keep, confidence=confidence, rounds=rounds, purpose=purpose, told=told
        )  # fmt: skip
    found.agreement.write(output)
    if json:
        write_json(learning.learned_record(found))
        return
    say(
        *learning.learned_report(found),
        f"Agreement {found.agreement.id[:12]}{_rounds_text(found.agreement)}: {plain(output)}",
    )


def _make_design(
    family: Simplex,
    counts: Any,
    epsilon: float,
    divergence: str,
    smoothed: bool,
    told: "_SilentProgress",
    keep: float | None,
) -> Design:
    return best(
        family,
        epsilon=epsilon,
        clients=counts,
        divergence=divergence,
        keep=keep,
        smoothing="auto" if smoothed else None,
        progress=told.share,
    )


def _frontier(design_at: Callable[[float], Design], found: Design, told: "_SilentProgress") -> list[Design]:
    """The same at other shares of the best worst case."""
    designs = [found]
    for keep in FRONTIER:
        if keep != found.keep:
            told(f"designing with --keep {keep:g}")
            designs.append(design_at(keep))
    return sorted(designs, key=lambda one: -one.keep)


class _SilentProgress:
    """What is being done, for nobody."""

    def __call__(self, what: str) -> None:
        """The next stage begins."""

    def share(self, done: float) -> None:
        """So much of it is done."""


class _StageBar(_SilentProgress):
    """The same on a terminal: a bar for the stage at hand."""

    def __init__(self, bars: Progress) -> None:
        self._bars, self._stage = bars, bars.add_task("", total=None)

    def __call__(self, what: str) -> None:
        self._bars.reset(self._stage, total=None, description=plain(what))

    def share(self, done: float) -> None:
        self._bars.update(self._stage, total=1.0, completed=done)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[_SilentProgress]:
    """Something to tell the stages to, which shows them on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield _SilentProgress()
        return

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bars:
        yield _StageBar(bars)


def _report(found: Design, rows: list[SamplerCost]) -> list[Any]:
    name = found.divergence.name
    made = table(f"{name} to a client's own distribution", "mean", "median", "largest", "worst of all")
    for row in rows:
        parts = [number(part) for part in (row.mean, row.median, row.largest, row.worst)]
        made.add_row(row.name, *parts, end_section=row is rows[-1])
    made.add_row("no sampler is below", number(_round_down(found.bound)), "", "", "")
    return [
        f"[bold]{pluralise(found.examples, 'example')}, {pluralise(found.family.size, 'outcome')}, epsilon = {found.epsilon:g}[/bold], "
        f"keeping {found.keep:g} of the best worst case.",
        "[bold red]Note[/bold red]: the examples must be public, or their clients must have spent a budget on this. A design that was "
        "fitted on the clients whom it then serves breaks their guarantee, however small epsilon is.",
        *_about_smoothing(found),
        made,
        "Mean, median and largest are over the examples; the last column is over everybody there could be. The last line is proved: no "
        f"epsilon-LDP sampler that keeps as much has a smaller mean {name} over these examples.",
    ]


def _about_smoothing(found: Design) -> list[str]:
    """How the examples were smoothed, or advice to do so where they are few for their epsilon."""
    if found.smoothing is not None:
        return [f"Smoothing, chosen by the examples: {found.smoothing.description}."]
    if found.epsilon < SMOOTHING_EPSILON and found.examples >= math.exp(found.epsilon):
        return []
    return [
        "[bold]Note[/bold]: at this epsilon rare clients decide much of the mean, and examples leave them out. `--smoothing auto` holds "
        "examples back to choose how much to allow for them."
    ]


def _round_down(bound: float) -> float:
    """A floor as it may be printed: four digits, rounded down."""
    unit = 10.0 ** (4 if bound >= 0.01 else 8)
    return max(0.0, math.floor(bound * unit) / unit)


def _record(found: Design, rows: list[SamplerCost], frontier: list[Design], agreement: Agreement) -> dict[str, Any]:
    def numbers(row: SamplerCost) -> dict[str, Any]:
        return {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(row).items()}

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
        "samplers": [numbers(row) for row in rows],
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


def _draw(frontier: list[Design], rows: list[SamplerCost], path: Path) -> None:

    others = {row.name: (row.worst, row.mean) for row in rows if row.name in MECHANISMS}
    plots.save(plots.frontier(frontier, others=others), path)
