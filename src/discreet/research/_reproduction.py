"""The experiments of `discreet reproduce`, full and quick, and the pictures and pages it writes into a folder.

The experiments are the figures of the paper and of its follow-up, and the comparison on real clients.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from discreet.errors import DiscreetError, check_flag, check_path
from discreet.plots import Figure, save
from discreet.research._reports._designs import design_figure, design_page, learned_page
from discreet.research._reports._follow_up import follow_up_figures, follow_up_page
from discreet.research._reports._paper import paper_figure, report_page
from discreet.research._reports._population import population_figures, population_page
from discreet.research.experiments._designs import DesignComparison, KeepComparison, ShiftComparison
from discreet.research.experiments._follow_up import LocalFinite, LocalMixtures, LocalPlane, OrderedComparison
from discreet.research.experiments._learned import LearnedComparison, ReweightedComparison
from discreet.research.experiments._paper_figures import (
    QUICK_TRAINING,
    FiniteMechanism,
    FiniteWorstCases,
    GaussianRing,
    RandomMixtures,
)
from discreet.research.experiments._population import PopulationComparison, SetAtBudget
from discreet.research.experiments._records import Experiment, Header, Record, RecordedRun, run_experiment

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7")
POPULATION = "population"
DESIGNS = ("designs", "keeps", "shifts")  # run with the population
LEARNED = ("learned", "reweighted")  # likewise
FOLLOW_UP = "follow-up"
FOLLOWING = ("local_finite", "local_mixtures", "local_plane", "ordered")  # its parts
EXPERIMENTS = (*FIGURES, *FOLLOWING, POPULATION, *DESIGNS, *LEARNED)
OUTCOMES = {"fig3": 10, "fig5": 5, "fig6": 20, "fig7": 100}
QUICK_CLIENTS = 20
QUICK_REPETITIONS = 20
QUICK_SET = 300


def choose_experiments(names: list[str]) -> list[str]:
    """The requested figures in the paper's order; "all", or nothing, is all of them. The other experiments run only when named."""
    unknown = [name for name in names if name not in (*FIGURES, FOLLOW_UP, POPULATION, "all")]
    if unknown:
        known = ", ".join((*FIGURES, FOLLOW_UP, POPULATION))
        raise DiscreetError(f"figure = {unknown[0]!r} is not one of all, {known}")
    figures = [name for name in FIGURES if not names or name in names or "all" in names]
    following = FOLLOWING if FOLLOW_UP in names else ()
    population = (POPULATION, *DESIGNS, *LEARNED) if POPULATION in names else ()
    return [*figures, *following, *population]


def experiment(name: str, *, quick: bool = False, device: str = "cpu", corrected: bool = True) -> Experiment[Record]:
    """An experiment by name. Quick runs have fewer clients, repetitions and less training; finite figures are the same."""
    presets = ("published", "corrected") if corrected else ("published",)
    near, keeps, shifts = LocalMixtures(), KeepComparison(), ShiftComparison()
    learned, reweighted = LearnedComparison(), ReweightedComparison()
    planned: dict[str, tuple[Any, dict[str, Any]]] = {  # the full experiment, and what a quick one changes
        "fig1": (GaussianRing(device=device, presets=presets), {"training": QUICK_TRAINING}),
        "fig2": (FiniteMechanism(), {}),
        "fig4": (
            RandomMixtures(device=device, presets=presets), {"clients": QUICK_CLIENTS, "training": QUICK_TRAINING},
        ),
        **{figure: (FiniteWorstCases(figure, outcomes), {}) for figure, outcomes in OUTCOMES.items()},
        "local_finite": (LocalFinite(), {"outcomes": (10,), "clients": QUICK_CLIENTS}),
        "local_mixtures": (near, {"shapes": near.shapes[:1], "clients": QUICK_CLIENTS}),
        "local_plane": (LocalPlane(), {}),
        "ordered": (OrderedComparison(), {"epsilons": (1.0, 2.0), "most": QUICK_SET}),
        "population": (PopulationComparison(), {"repetitions": QUICK_REPETITIONS}),
        "designs": (DesignComparison(), {"epsilons": (2.0,), "splits": 1, "clients": QUICK_SET}),
        "keeps": (keeps, {"epsilons": (1.0,), "sets": keeps.sets[-1:]}),
        "shifts": (shifts, {"epsilons": (1.0,), "shifts": shifts.shifts[-1:]}),
        "learned": (learned, {"epsilons": (1.0,), "times": (1,), "splits": 1, "sets": learned.sets[-1:]}),
        "reweighted": (reweighted, {"epsilons": (1.0,), "repetitions": 2, "sets": reweighted.sets[-1:]}),
    }  # fmt: skip
    full, changes = planned[name]
    return cast("Experiment[Record]", replace(full, quick=True, **changes) if quick else full)


def reproduce(name: str, folder: str | Path, *, quick: bool = False, **changes: Any) -> RecordedRun[Any]:
    """Run one experiment of the paper or of the follow-up, as published or with changes, and keep its records in a folder.

    An interrupted run continues where it stopped. Records of other parameters in the folder are an error, not overwritten.

    Args:
        name: "fig1" to "fig7", or a part of the others: "local_finite", "ordered", "population", "designs", ...
        folder: for the records, as JSON lines.
        quick: fewer clients and less training.
        changes: fields of the experiment to replace, such as `epsilons=(1.0, 2.0)`, `outcomes=50`, `clients=20`, `seed=7`.

    Returns:
        The records: `.rows`, `.columns`, `.frame()`.

    Raises:
        DiscreetError: for another name, a field that the experiment does not have, or records of another run in the folder.
    """
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise DiscreetError(f"name = {name!r} is not one of {', '.join(EXPERIMENTS)}")
    planned: Any = experiment(name, quick=check_flag("quick", quick))
    known = [each.name for each in fields(planned) if each.name not in ("name", "record", "computes", "quick")]
    for field in changes:
        if field not in known:
            raise DiscreetError(f"{name} has no field {field!r} to change; it has {', '.join(known)}")
    return run_experiment(replace(planned, **changes), check_path("folder", folder))


def write_paper(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """Draw every figure as .png and .pdf, and write their page; return its path."""
    pictures = {name: _save_picture(paper_figure(run), name, run.header, folder) for name, run in runs.items()}
    return _save_page(report_page(runs, pictures), folder / "report.html")


def write_population(run: RecordedRun[SetAtBudget], folder: Path) -> Path:
    """The same for the comparison on real clients."""
    figures = population_figures(run).items()
    pictures = {name: _save_picture(figure, name, run.header, folder) for name, figure in figures}
    return _save_page(population_page(run, pictures), folder / "population.html")


def write_designs(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The same for designs: on unseen clients, with the worst case kept, and on clients of another kind."""
    designs = runs["designs"]
    picture = _save_picture(design_figure(designs), "designs", designs.header, folder)
    return _save_page(design_page(designs, runs["keeps"], runs["shifts"], picture), folder / "designs.html")


def write_learned(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The page on designs learned privately and on the population behind designed samples."""
    return _save_page(learned_page(runs["learned"], runs["reweighted"]), folder / "learned.html")


def write_follow_up(runs: Mapping[str, RecordedRun[Any]], folder: Path) -> Path:
    """The same for the follow-up paper: its figures, theirs and ours, and ordered outcomes of real clients."""
    drawn = follow_up_figures(runs)
    pictures = {
        name: _save_picture(picture, f"follow-up-{name}", runs[name].header, folder) for name, picture in drawn.items()
    }
    return _save_page(follow_up_page(runs, pictures), folder / "follow-up.html")


def _save_picture(figure: Figure, name: str, header: Header, folder: Path) -> bytes:
    """The picture as PNG bytes, after writing it; names of quick runs say so."""
    stem = f"{name}.quick" if header.quick else name
    for suffix in (".pdf", ".png"):
        save(figure, folder / f"{stem}{suffix}")
    return (folder / f"{stem}.png").read_bytes()


def _save_page(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
