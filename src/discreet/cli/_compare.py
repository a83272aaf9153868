"""`discreet reproduce compare`: mechanisms side by side on one's own outcomes, budgets, divergences and clients, as tables for a paper.

Clients are the rows of a public table, or drawn from a symmetric Dirichlet distribution with a seed. Mechanisms are named: ours, those that
installed packages offer, or MODULE:CLASS of a file in this folder. Divergences likewise: ours, or MODULE:NAME.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import plots
from discreet._base.files import check_apart
from discreet.cli._audit import load_callable
from discreet.cli._options import require_domain, stated_family
from discreet.cli._printing import empty_table, format_number, print_blocks, safe_text, write_json
from discreet.divergences import FDivergence, divergence, is_divergence_name
from discreet.domain import Coding, Domain
from discreet.errors import POSITIVE, DiscreetError, check_count
from discreet.research import Comparison, compare
from discreet.tables import Columns, Reading, example_counts, file_source

COMPARE = "compare"
_CLIENTS, _SPREAD, _EPSILONS = 1_000, 0.3, (0.5, 1.0, 2.0, 4.0)
_MECHANISMS, _DIVERGENCES = ("optimal", "linear", "mollifier"), ("kl", "tv", "hellinger")


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
    def stated_options(self) -> list[str]:
        """The options that were given, for a run that has no comparison."""
        renamed = {"epsilons": "epsilon", "divergences": "divergence", "mechanisms": "mechanism"}
        found = [name for name, value in vars(self).items() if value is not None and name != "show"]
        return [f"--{renamed.get(name, name)}" for name in found]


def run_comparison(options: ComparisonOptions, *, json: bool) -> None:
    """Compare, write the files that were asked for, and print a table."""
    domain = require_domain(options.domain, options.outcomes, options.bounds, options.cells)
    for path in (options.csv, options.latex, options.pgf, options.plot):
        if path is not None:
            check_apart(path, {"list of outcomes": options.domain, "records": options.data}, what="output")
    found = compare(
        stated_family(domain, options.lower or None, options.upper),
        _client_laws(options, domain),
        mechanisms=[_mechanism(name) for name in options.mechanisms or _MECHANISMS],
        epsilons=options.epsilons or _EPSILONS,
        divergences=[_divergence(name) for name in options.divergences or _DIVERGENCES],
    )
    written = _write_files(found, options)
    if json:
        write_json({"records": _json_records(found), "files": [str(path) for path in written]})
        return
    print_blocks(
        _heading(found, options),
        _table(found, options.show),
        *([] if not written else [f"Written: {', '.join(safe_text(path) for path in written)}"]),
    )


def _mechanism(name: str) -> Any:
    """A name, or the class of a module."""
    return load_callable(name) if ":" in name else name


def _divergence(name: str) -> str | FDivergence:
    """A name of ours, or a divergence of a module; a function there is its f."""
    if is_divergence_name(name):
        return name
    if ":" not in name:
        try:
            return divergence(name)
        except DiscreetError as error:
            raise DiscreetError(f"{error}, or MODULE:NAME of your own") from error
    found: Any = load_callable(name)
    return found if isinstance(found, FDivergence) else FDivergence(found, name=name.rpartition(":")[2])


def _client_laws(options: ComparisonOptions, domain: Domain) -> Any:
    """The clients of a table, or random ones."""
    if options.data is None:
        for name, column in (("--client", options.client), ("--value", options.value)):
            if column is not None:
                raise DiscreetError(f"{name} names a column of --data FILE; give the file too")
        spread = POSITIVE.check("spread", _SPREAD if options.spread is None else options.spread)
        number = check_count("clients", _CLIENTS if options.clients is None else options.clients, most=10**7)
        seed = check_count("seed", options.seed or 0, least=0)
        return np.random.default_rng(seed).dirichlet(np.full(domain.size, spread), size=number)
    for name, value in (("--clients", options.clients), ("--spread", options.spread), ("--seed", options.seed)):
        if value is not None:
            raise DiscreetError(f"{name} is for random clients; leave it out beside --data")
    if options.client is None or options.value is None:
        raise DiscreetError("--data needs --client COLUMN and --value COLUMN")
    source = file_source(options.data)
    columns = Columns(client=options.client, value=options.value, count=None, weight=None)
    reading = Reading.of(
        columns, Coding(domain), source.schema, untyped=source.untyped_columns, where=source.name, show_values=True
    )
    counts = example_counts(source, reading).toarray()
    return counts / counts.sum(axis=1, keepdims=True)


def _write_files(found: Comparison, options: ComparisonOptions) -> list[Path]:
    written = []
    if options.csv is not None:
        found.to_csv(options.csv)
        written.append(options.csv)
    if options.latex is not None:
        found.to_latex(options.latex, value=options.show)
        written.append(options.latex)
    if options.pgf is not None:
        names = list(dict.fromkeys(record.divergence for record in found.records))
        for name in names:
            stem = options.pgf.stem if len(names) == 1 else f"{options.pgf.stem}-" + re.sub(r"[^\w.]+", "-", name)
            path = options.pgf.with_stem(stem)
            found.to_pgf(path, value=options.show, divergence=name)
            written.append(path)
    if options.plot is not None:
        plots.save(found.plot(value=options.show), options.plot)
        written.append(options.plot)
    return written


def _heading(found: Comparison, options: ComparisonOptions) -> str:
    """What the numbers are, and whose."""
    count = found.records[0].clients
    whose = (
        f"{count:,} clients of {safe_text(options.data)}" if options.data is not None else f"{count:,} random clients"
    )
    if options.show == "worst_case":
        return "[bold]Worst case[/bold] over all distributions of the family; in the last column the smallest of any private sampler."
    return f"[bold]{options.show.capitalize()}[/bold] divergence of {whose} from their output distributions; smaller is better."


def _table(found: Comparison, show: str) -> Any:
    """Budgets and divergences by mechanism; beside worst cases the smallest possible one, which bounds no mean."""
    last = ["smallest possible"] if show == "worst_case" else []
    made = empty_table("privacy", "divergence", *(safe_text(name) for name in found.mechanisms), *last, texts=2)
    settings = list(dict.fromkeys((record.privacy, record.divergence) for record in found.records))
    for privacy, name in settings:
        rows = {each.mechanism: each for each in found.records if (each.privacy, each.divergence) == (privacy, name)}
        cells = [_cell(rows[each], show) if each in rows else "" for each in found.mechanisms]
        least = [format_number(next(iter(rows.values())).smallest)] if last else []
        made.add_row(privacy, safe_text(plots.divergence_label(name)), *cells, *least)
    return made


def _cell(record: Any, show: str) -> str:
    """A number; an upper bound says so."""
    shown = format_number(getattr(record, show))
    return f"≤ {shown}" if show == "worst_case" and not record.exact else shown


def _json_records(found: Comparison) -> list[dict[str, Any]]:
    """The records with null in place of NaN and infinity."""
    rows = [dict(zip(found.columns, row, strict=True)) for row in zip(*found.columns.values(), strict=True)]
    return [
        {name: None if isinstance(value, float) and not np.isfinite(value) else value for name, value in row.items()}
        for row in rows
    ]
