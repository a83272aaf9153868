"""Pictures and pages of finished experiments, into a folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.plots._style import Figure, save
from discreet.research._figures._designs import design_figure
from discreet.research._figures._follow_up import follow_up_figures
from discreet.research._figures._paper import paper_figure
from discreet.research._figures._population import population_figures
from discreet.research._reports._design_page import design_page
from discreet.research._reports._follow_up import follow_up_page
from discreet.research._reports._learned import learned_page
from discreet.research._reports._paper import report_page
from discreet.research._reports._population import population_page
from discreet.research.experiments._population import SetAtBudget
from discreet.research.experiments._records import Header, RecordedRun


def write_paper(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """Draw every figure as .png and .pdf, and write the page that holds them all; the page's path."""
    pictures = {name: _save_picture(paper_figure(run), name, run.header, folder) for name, run in runs.items()}
    return _page(report_page(runs, pictures), folder / "report.html")


def write_population(run: RecordedRun[SetAtBudget], folder: Path) -> Path:
    """The same for the comparison on real clients."""
    figures = population_figures(run).items()
    pictures = {name: _save_picture(figure, name, run.header, folder) for name, figure in figures}
    return _page(population_page(run, pictures), folder / "population.html")


def write_designs(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The same for designs: how they do on clients they were not made on, with the worst case kept, and on clients of another kind."""
    designs = runs["designs"]
    picture = _save_picture(design_figure(designs), "designs", designs.header, folder)
    return _page(design_page(designs, runs["keeps"], runs["shifts"], picture), folder / "designs.html")


def write_learned(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The page on designs learned privately and on the population behind designed samples."""
    return _page(learned_page(runs["learned"], runs["reweighted"]), folder / "learned.html")


def write_follow_up(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The same for the follow-up paper: its figures, theirs and ours, and ordered outcomes of real clients."""
    drawn = follow_up_figures(runs)
    pictures = {
        name: _save_picture(picture, f"follow-up-{name}", runs[name].header, folder) for name, picture in drawn.items()
    }
    return _page(follow_up_page(runs, pictures), folder / "follow-up.html")


def _save_picture(figure: Figure, name: str, header: Header, folder: Path) -> bytes:
    """The picture as PNG, once it is on the disk; those of quick runs are named so."""
    stem = f"{name}.quick" if header.quick else name
    for suffix in (".pdf", ".png"):
        save(figure, folder / f"{stem}{suffix}")
    return (folder / f"{stem}.png").read_bytes()


def _page(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
