"""`discreet reproduce`: the paper's figures, the numbers behind them, and a page that lays them beside the published ones.

`discreet reproduce population` is the comparison on real clients, with a page of its own.
"""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from discreet import __version__
from discreet.cli import population
from discreet.cli.printing import Terminal, number, plain, say, table
from discreet.research.experiments.paper import FIGURES, POPULATION, chosen, experiment
from discreet.research.experiments.records import Row
from discreet.research.experiments.running import run

PAGE = "report.html"


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[fig1 ... fig7 | all | population]",
            help="Which figures. [default: all] population: real clients, samples against frequency oracles.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for records, pictures and the page.")] = Path(
        "out/paper"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer clients and repetitions, less training: a look in two minutes.")
    ] = False,
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where the boosted baseline is trained.")] = "cpu",
    corrected: Annotated[
        bool, typer.Option(help="Also train the baseline with its budget corrected (takes as long again).")
    ] = True,
    restart: Annotated[
        bool, typer.Option("--restart", help="Throw away what an earlier run left and start anew.")
    ] = False,
) -> None:
    """Every figure of the paper, with its numbers beside the published ones.

    Results are written as they are found; a run that is interrupted goes on where it stopped. Training the baseline takes
    most of the time. The population is run when it is named, and writes a page of its own.
    """
    start = time.perf_counter()
    runs: dict[str, tuple[Row, list[Row]]] = {}
    names = chosen(figures or [])
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
            records = run(
                planned_one,
                out / "records",
                lambda done, total, task=task: bars.update(task, completed=done, total=total),  # type: ignore[misc]
                restart=restart,
            )
            runs[planned_one.name] = records.first, _in_order(records.rows, list(planned_one.units))
    clients = runs.pop(POPULATION, None)
    if runs:
        page = _page(runs, _drawn(runs, out), out)
        if quick:
            say(
                "[bold red]QUICK RUN[/bold red]: fewer clients and less training than in the paper; the finite figures are exact."
            )
        for name in ("fig4", "fig1"):
            if name in runs:
                say(*(_mixtures(runs[name][1]) if name == "fig4" else _ring(runs[name][1])))
        say(
            f"{len(runs)} of {len(FIGURES)} figures in {time.perf_counter() - start:.1f} s. Page: [bold]{plain(page)}[/bold]; "
            f"pictures and records beside it."
        )
    if clients:
        page = population.written(*clients, out)
        if quick:
            say("[bold red]QUICK RUN[/bold red]: few repetitions, so that more cases are undecided.")
        say(*population.told(clients[1]))
        say(
            f"{len(clients[1])} cases in {time.perf_counter() - start:.1f} s. Page: [bold]{plain(page)}[/bold]; "
            f"pictures and records beside it."
        )


def _in_order(rows: list[Row], units: list[str]) -> list[Row]:
    order = {unit: place for place, unit in enumerate(units)}
    return sorted(rows, key=lambda row: order.get(row["unit"], len(order)))


def _drawn(runs: dict[str, tuple[Row, list[Row]]], out: Path) -> dict[str, bytes]:
    from discreet.plots.style import save
    from discreet.research.figures.paper import paper_figure

    found = {}
    for name, (first, rows) in runs.items():
        picture = paper_figure(first, rows)
        stem = f"{name}.quick" if first["quick"] else name
        for suffix in (".png", ".pdf"):
            save(picture, out / f"{stem}{suffix}")
        found[name] = (out / f"{stem}.png").read_bytes()
    return found


def _page(runs: dict[str, tuple[Row, list[Row]]], pictures: dict[str, bytes], out: Path) -> Path:
    from discreet.research.reports.paper import report_page

    path = out / PAGE
    path.write_text(report_page(runs, pictures, version=__version__), encoding="utf-8")
    return path


def _mixtures(rows: list[Row]) -> tuple[str, Table]:
    from discreet.research.reports.summaries import STATISTICS, costs, epsilons, mechanisms, realised_epsilon, summary

    made = table("epsilon", "mechanism", *(f"{name} KL" for name in STATISTICS), "spent", texts=2)
    for epsilon in epsilons(rows):
        for name in mechanisms(rows):
            told = summary(costs(rows, epsilon, name, "kl"))
            cells = [number(told[statistic]) for statistic in STATISTICS]
            label = f"{epsilon:g}" if name == "proposed" else ""
            made.add_row(
                label, name.replace("_", " "), *cells, number(realised_epsilon(rows, epsilon, name)),
                end_section=name == mechanisms(rows)[-1],
            )  # fmt: skip
    return "[bold]Figure 4[/bold]: KL of each client; spent: largest log-ratio between two clients' laws.", made


def _ring(rows: list[Row]) -> tuple[str, Table]:
    made = table("law", "KL", "TV", "squared Hellinger", "c2")
    for row in rows:
        if "kl" in row:
            made.add_row(
                row["unit"].replace("_", " "),
                *(number(row[f]) for f in ("kl", "tv", "hellinger")),
                number(row["c2"]) if "c2" in row else "",
            )
    return "[bold]Figure 1[/bold]: from the Gaussian ring to what is sampled instead.", made
