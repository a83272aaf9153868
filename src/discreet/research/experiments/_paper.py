"""The figures of the paper and of its follow-up, and the comparison on real clients, as declared experiments, full and quick."""

from dataclasses import replace

from discreet.errors import DiscreetError
from discreet.research.experiments._design_keeps import KeepComparison
from discreet.research.experiments._design_shifts import ShiftComparison
from discreet.research.experiments._designs import DesignComparison
from discreet.research.experiments._finite_figures import FiniteMechanism, FiniteWorstCases
from discreet.research.experiments._follow_up._finite import LocalFinite
from discreet.research.experiments._follow_up._mixtures import LocalMixtures
from discreet.research.experiments._follow_up._plane import LocalPlane
from discreet.research.experiments._learned import LearnedComparison
from discreet.research.experiments._mixtures import QUICK_TRAINING, RandomMixtures
from discreet.research.experiments._ordered import OrderedComparison
from discreet.research.experiments._population import PopulationComparison
from discreet.research.experiments._records import Experiment, Record
from discreet.research.experiments._reweighted import ReweightedComparison
from discreet.research.experiments._ring import GaussianRing

FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7")
POPULATION = "population"
DESIGNS = ("designs", "keeps", "shifts")  # run with the population
LEARNED = ("learned", "reweighted")  # likewise
FOLLOW_UP = "follow-up"
FOLLOWING = ("local_finite", "local_mixtures", "local_plane", "ordered")  # what it consists of
OUTCOMES = {"fig3": 10, "fig5": 5, "fig6": 20, "fig7": 100}
QUICK_CLIENTS = 20
QUICK_REPETITIONS = 20
QUICK_SET = 300


def choose_experiments(names: list[str]) -> list[str]:
    """The figures asked for in the paper's order; "all", or nothing, is all of them. The others are run when they are named."""
    unknown = [name for name in names if name not in (*FIGURES, FOLLOW_UP, POPULATION, "all")]
    if unknown:
        known = ", ".join((*FIGURES, FOLLOW_UP, POPULATION))
        raise DiscreetError(f"figure = {unknown[0]!r} is not one of all, {known}")
    figures = [name for name in FIGURES if not names or name in names or "all" in names]
    following = FOLLOWING if FOLLOW_UP in names else ()
    population = (POPULATION, *DESIGNS, *LEARNED) if POPULATION in names else ()
    return [*figures, *following, *population]


def experiment(name: str, *, quick: bool = False, device: str = "cpu", corrected: bool = True) -> Experiment[Record]:
    """One of them. Quick runs have fewer clients, repetitions and less training; finite figures take no time and are the same."""
    presets = ("published", "corrected") if corrected else ("published",)
    match name:
        case "fig1":
            ring = GaussianRing(device=device, presets=presets)
            return replace(ring, quick=True, training=QUICK_TRAINING) if quick else ring
        case "fig2":
            return FiniteMechanism(quick=quick)
        case "fig4":
            mixtures = RandomMixtures(device=device, presets=presets)
            return replace(mixtures, quick=True, clients=QUICK_CLIENTS, training=QUICK_TRAINING) if quick else mixtures
        case "local_finite":
            finite = LocalFinite()
            return replace(finite, quick=True, outcomes=(10,), clients=QUICK_CLIENTS) if quick else finite
        case "local_mixtures":
            near = LocalMixtures()
            return replace(near, quick=True, shapes=near.shapes[:1], clients=QUICK_CLIENTS) if quick else near
        case "local_plane":
            return LocalPlane(quick=quick)
        case "ordered":
            ordered = OrderedComparison()
            return replace(ordered, quick=True, epsilons=(1.0, 2.0), most=QUICK_SET) if quick else ordered
        case "population":
            full = PopulationComparison()
            return replace(full, quick=True, repetitions=QUICK_REPETITIONS) if quick else full
        case "designs":
            designs = DesignComparison()
            return replace(designs, quick=True, epsilons=(2.0,), splits=1, clients=QUICK_SET) if quick else designs
        case "keeps":
            keeps = KeepComparison()
            return replace(keeps, quick=True, epsilons=(1.0,), sets=keeps.sets[-1:]) if quick else keeps
        case "shifts":
            shifts = ShiftComparison()
            return replace(shifts, quick=True, epsilons=(1.0,), shifts=shifts.shifts[-1:]) if quick else shifts
        case "learned":
            learned = LearnedComparison()
            return (
                replace(learned, quick=True, epsilons=(1.0,), times=(1,), splits=1, sets=learned.sets[-1:])
                if quick
                else learned
            )
        case "reweighted":
            reweighted = ReweightedComparison()
            return (
                replace(reweighted, quick=True, epsilons=(1.0,), repetitions=2, sets=reweighted.sets[-1:])
                if quick
                else reweighted
            )
        case _:
            return FiniteWorstCases(name, OUTCOMES[name], quick=quick)
