"""The experiments of the follow-up paper (Ghoukasian, Lee and Asoodeh, NeurIPS 2025), ours beside them, and ordered real outcomes.

Its linear mechanism lambda P + (1 - lambda) mu takes, as published, the weight

    lambda = inf over beta >= 0 of (e^beta - 1 + t delta(beta)) / ((1 - c1) e^beta + c2 - 1),      t = (c2 - c1)/(1 - c1)

by a bounded search, without a cap at 1. Ours is the largest weight that the corners of the trade-off function allow, in rationals
(`discreet.privacy._notion`), with the smaller t = 1/min(alpha, 1 - alpha). The client is then projected onto the same box, not mixed.

`LocalFiniteExperiment`, Figures 3 and 5 to 9: worst cases on k outcomes, over all clients and over clients near a public uniform
distribution. The local class is 1/gamma <= k P(x) <= gamma with gamma = k/2 - 1. A third class is ours: 1/2 <= k P(x) <= 9/8, whose extreme
clients cover four fifths of the space, where the published t = 1/alpha is larger than necessary. Clients are drawn at random and moved into
the class, so that both mechanisms can be compared one client at a time.

`LocalMixtureExperiment`, Figures 4, 10 and 11: a hundred random mixtures near a public distribution, by the global and by the local class.
Clients are those of the published scripts: min(Poisson(2) + 1, 10) components, Dirichlet weights, seeds 1 to 4 for the four budgets.
Laplace mixtures of scale 1 with centres in [-1, 1] are within a factor e of Laplace(0, 1): the local class has gamma = 3, the global one c1
= e^-1/3, c2 = 3 e. In the plane centres lie in the l1 ball and everything on [-10, 10]^2. Gaussian mixtures on [-2, 2], centres in [-1/2,
1/2], are ours: within a factor 3 of N(0, 1) restricted, 9 for the global class.

`LocalPlaneExperiment`, Figure 1: four Laplace distributions of scale 2 in the plane, and their output distributions, by both classes and
two notions. Centres (+-1, 0) and (0, +-1); epsilon = 1 and nu = 1.5. Around Laplace(0, 2) on both axes the global class is e^(-1/2)/3 <=
dP/dP0 <= 3 e^(1/2), and the local one has gamma = 2. The published picture has the projection under pure and linear mixing under Gaussian
privacy; the projection under Gaussian privacy is ours.

`OrderedComparison`: the distance of a client's output distribution from its own, in the outcomes' unit, by mechanism at equal epsilon. The
Wasserstein-1 distance on a line is the area between two distribution functions, so everything is computed, not sampled. Beside the
transport sampler (`discreet.mechanisms._transport_sampler`), which has the smallest worst case of any epsilon-LDP sampler, are Q* and the
mollifier, which ignore the order, and discretised Laplace noise of scale range/epsilon on a raw draw, clamped to the range: the usual
method without this library.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.divergences import divergence
from discreet.errors import LargeEpsilonWarning
from discreet.families import Band, Bounds, DensityBand, FiniteFamily, Mixture, Simplex
from discreet.mechanisms import LinearSampler, MollifierSampler, OptimalSampler, TransportSampler, nearest_member
from discreet.privacy import Approximate, Functional, Gaussian, Privacy, Pure
from discreet.research.experiments import exact_budget_text, require_one_seed_per_budget
from discreet.research.experiments.client_sets import (
    CLIENT_SETS,
    DELAY,
    HDL,
    ClientSet,
    SetComparison,
)

Floats = NDArray[np.float64]

NOTION_KINDS = ("pure", "approximate", "gaussian", "functional")
FOLLOW_UP_BUDGETS = (0.1, 0.5, 1.0, 2.0)  # the published ones: epsilon, epsilon, nu, and the Laplace mechanism's mu
FOLLOW_UP_DELTA = 1e-3
FOLLOW_UP_DIVERGENCES = ("kl", "tv", "hellinger", "chi2", "reverse_kl", "jensen_shannon", "le_cam")
_ROUNDING = 1e-9  # of quadrature and sums: a smaller difference does not count
_FARTHEST = 50.0  # largest beta of the published search


def privacy_from_laplace_tradeoff(mu: float) -> Functional:
    """The trade-off function of Laplace(0, 1) against Laplace(mu, 1): neither pure nor Gaussian, and stricter than mu-LDP."""

    def tradeoff_at(x: float) -> float:
        if x < math.exp(-mu) / 2.0:
            return 1.0 - math.exp(mu) * x
        return math.exp(-mu) / (4.0 * x) if x <= 0.5 else math.exp(-mu) * (1.0 - x)

    return Functional(tradeoff_at)


def privacy_notion_at_budget(kind: str, budget: float) -> Privacy:
    """One of `NOTION_KINDS` at a budget."""
    match kind:
        case "pure":
            return Pure(budget)
        case "approximate":
            return Approximate(budget, delta=FOLLOW_UP_DELTA)
        case "gaussian":
            return Gaussian(budget)
        case _:
            return privacy_from_laplace_tradeoff(budget)


def published_mixing_weight(privacy: Privacy, bounds: Bounds) -> float:
    """lambda by the published infimum over beta, as their code searches for it."""
    t = (bounds.upper - bounds.lower) / (1.0 - bounds.lower)

    def mixing_weight_at_beta(beta: float) -> float:
        growth = math.exp(beta)
        return (growth - 1.0 + t * privacy.profile(beta)) / ((1.0 - bounds.lower) * growth + bounds.upper - 1.0)

    match privacy:
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return mixing_weight_at_beta(epsilon)  # the notion has one beta
        case _:
            minimum = scipy.optimize.minimize_scalar(mixing_weight_at_beta, bounds=(0.0, _FARTHEST), method="bounded")
            return float(minimum.fun)


@dataclass(frozen=True)
class PointwiseComparison:
    """The projection against the published linear mechanism by one divergence: largest and mean over the same clients.

    `worse`: clients for which the projection is worse, by more than rounding; `excess`: the largest difference, negative if it is never
    worse.
    """

    projection: float
    projection_mean: float
    linear: float
    linear_mean: float
    worse: int
    excess: float

    @classmethod
    def from_divergences(cls, projection: Floats, linear: Floats) -> "PointwiseComparison":
        """The comparison for clients with these divergences."""
        excess = projection - linear
        worse = int((excess > _ROUNDING * np.maximum(1.0, linear)).sum())
        means = float(projection.mean()), float(linear.mean())
        return cls(float(projection.max()), means[0], float(linear.max()), means[1], worse, float(excess.max()))


@dataclass(frozen=True)
class ClassAtBudget:
    """One class of clients under one notion: its bounds, both weights, minimax values, and clients of the class one by one."""

    lower: float
    upper: float
    weight: float
    published_weight: float
    tight: bool
    minimax: dict[str, float]
    published_minimax: dict[str, float]
    clients: int
    pointwise: dict[str, PointwiseComparison]


CostFunction = Callable[[Any], dict[str, Floats]]  # from a sampler to the divergences of all clients, by name


def compare_mechanisms_on_class(family: Any, privacy: Privacy, clients: int, costs: CostFunction) -> ClassAtBudget:
    """Compare the projection with the linear mechanism on a class; `costs` gives a sampler's cost for each client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)  # nothing is released
        optimal, linear = (kind(family, privacy=privacy) for kind in (OptimalSampler, LinearSampler))
    projected_costs, mixed_costs = costs(optimal), costs(linear)
    published_weight, bounds = published_mixing_weight(privacy, family.bounds), family.bounds
    risks = {f: float(optimal.risk(f)) for f in FOLLOW_UP_DIVERGENCES}
    return ClassAtBudget(
        lower=bounds.lower,
        upper=bounds.upper,
        weight=float(privacy.mixing(bounds)),
        published_weight=published_weight,
        tight=optimal.risk("kl").tight,
        minimax={f: risk for f, risk in risks.items() if np.isfinite(risk)},
        published_minimax=_minimax_values_by_published_formula(bounds.lower, bounds.upper, published_weight),
        clients=clients,
        pointwise={
            f: PointwiseComparison.from_divergences(projected_costs[f], mixed_costs[f]) for f in projected_costs
        },
    )


def _minimax_values_by_published_formula(lower: float, upper: float, weight: float) -> dict[str, float]:
    """The published closed form: (1 - r1)/(r2 - r1) f(r2) + (r2 - 1)/(r2 - r1) f(r1); empty if the weight is 1 or more."""
    if weight >= 1.0:
        return {}
    low, high = 1.0 - weight * (1.0 - lower), 1.0 + weight * (upper - 1.0)
    p = np.array([upper, lower]) * (share := np.array([1.0 - lower, upper - 1.0]) / (upper - lower))
    q = np.array([high, low]) * share
    values = {f: float(np.sum(divergence(f)(p, q))) for f in FOLLOW_UP_DIVERGENCES}
    return {f: value for f, value in values.items() if np.isfinite(value)}


def costs_by_divergence(laws: Sequence[Any], output: Callable[[Any], Any]) -> dict[str, Floats]:
    """The divergences of continuous clients to their output distributions, one at a time."""
    rows = [[float(law.divergence(f)) for f in FOLLOW_UP_DIVERGENCES] for law in map(output, laws)]
    return {f: np.array(column) for f, column in zip(FOLLOW_UP_DIVERGENCES, np.transpose(rows), strict=True)}


@dataclass(frozen=True)
class FiniteClasses:
    """All clients on k outcomes ("global"), those near uniform ("local") and those spread widely ("wide"), under one notion."""

    unit: str
    kind: str
    budget: float
    notion: str
    outcomes: int
    classes: dict[str, ClassAtBudget]


@final
@dataclass(frozen=True)
class LocalFiniteExperiment:
    """Minimax values of both classes by both calibrations, and the projection against the linear mechanism on random clients."""

    name: str = "local_finite"
    outcomes: tuple[int, ...] = (10, 20, 100)
    kinds: tuple[str, ...] = NOTION_KINDS
    budgets: tuple[float, ...] = FOLLOW_UP_BUDGETS
    clients: int = 400
    seed: int | None = 11
    is_quick: bool = False
    description: str = (
        "minimax values of three classes of clients under four notions of privacy, and clients one by one"
    )
    record_type: type[FiniteClasses] = FiniteClasses

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("outcomes", "kinds", "budgets", "clients")}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [
            f"{k}/{kind}/{exact_budget_text(budget)}"
            for k in self.outcomes
            for kind in self.kinds
            for budget in self.budgets
        ]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[FiniteClasses]]:
        for unit in units:
            size, kind, budget = unit.split("/")
            k, privacy = int(size), privacy_notion_at_budget(kind, float(budget))
            families: dict[str, FiniteFamily] = {
                "global": Simplex(k),
                "local": Band([1] * k, lower=2 / (k - 2), upper=k / 2 - 1),
                "wide": Band([1] * k, lower=0.5, upper=1.125),
            }
            classes = {name: self._compare_mechanisms_on_clients(family, privacy) for name, family in families.items()}
            yield [FiniteClasses(unit, kind, float(budget), str(privacy), k, classes)]

    def _compare_mechanisms_on_clients(self, family: FiniteFamily, privacy: Any) -> ClassAtBudget:
        laws = self._draw_clients(family)

        def costs_of_sampler(sampler: Any) -> dict[str, Floats]:
            q = sampler.output(laws)
            return {f: np.asarray(divergence(f)(laws, q)) for f in FOLLOW_UP_DIVERGENCES}

        return compare_mechanisms_on_class(family, privacy, len(laws), costs_of_sampler)

    def _draw_clients(self, family: FiniteFamily) -> Floats:
        """Clients of all shapes: from nearly uniform to nearly one outcome."""
        rng = np.random.default_rng([self.seed or 0, family.size])
        shapes = (0.1, 0.5, 1.0, 5.0)
        batches = [rng.dirichlet(np.full(family.size, shape), self.clients // len(shapes)) for shape in shapes]
        return nearest_member(family, np.maximum(np.vstack(batches), 1e-12))


FOLLOW_UP_SEEDS = (1, 2, 3, 4)
MEAN_EXTRA, MOST = 2.0, 10
MIXTURE_CENTRES = {"laplace": 1.0, "gaussian": 0.5}  # in one dimension: largest distance from 0
_WORDS = {
    "laplace": "Laplace mixtures on the line",
    "plane": "Laplace mixtures in the plane",
    "gaussian": "Gaussian mixtures on [-2, 2]",
}


@dataclass(frozen=True)
class MixtureClasses:
    """A hundred clients of one shape under one notion, by the global and by the local class."""

    unit: str
    shape: str
    title: str
    kind: str
    budget: float
    notion: str
    classes: dict[str, ClassAtBudget]


def draw_mixture_client(shape: str, rng: np.random.Generator) -> Mixture:
    """The next client of a generator, by the published order of draws."""
    components = min(int(rng.poisson(MEAN_EXTRA)) + 1, MOST)
    if shape == "plane":
        signs = rng.choice([-1, 1], size=(components, 2))
        shares = rng.exponential(scale=1.0, size=(components, 2))
        radii = rng.uniform(0, 1, size=(components, 1))
        means = signs * shares / shares.sum(axis=1, keepdims=True) * radii
    else:
        means = rng.uniform(-MIXTURE_CENTRES[shape], MIXTURE_CENTRES[shape], (components, 1))
    weights = rng.dirichlet(np.ones(components))
    return Mixture(weights, means, kernel="gaussian" if shape == "gaussian" else "laplace")


def global_and_local_mixture_families(shape: str) -> dict[str, DensityBand]:
    """The global and the local class of a shape, around its public distribution."""
    global_bounds, density, box = (math.exp(-1.0) / 3.0, 3.0 * math.e), Mixture([1.0], [[0.0]], kernel="laplace"), None
    match shape:
        case "plane":
            density, box = Mixture([1.0], [[0.0, 0.0]], kernel="laplace"), [(-10.0, 10.0)] * 2
        case "gaussian":
            global_bounds, density, box = (1 / 9, 9.0), Mixture([1.0], [[0.0]]), [(-2.0, 2.0)]
    bounds = {"global": global_bounds, "local": (1 / 3, 3.0)}
    return {name: DensityBand(density, box, lower=lower, upper=upper) for name, (lower, upper) in bounds.items()}


@final
@dataclass(frozen=True)
class LocalMixtureExperiment:
    """The largest and the mean divergence of the published clients, by the published linear mechanism and by the projection."""

    name: str = "local_mixtures"
    shapes: tuple[str, ...] = ("laplace", "plane", "gaussian")
    kinds: tuple[str, ...] = NOTION_KINDS
    budgets: tuple[float, ...] = FOLLOW_UP_BUDGETS
    seeds: tuple[int, ...] = FOLLOW_UP_SEEDS
    clients: int = 100
    is_quick: bool = False
    description: str = (
        "divergences of random mixtures to their output laws, by the global and the local class, by both mechanisms"
    )
    record_type: type[MixtureClasses] = MixtureClasses

    def __post_init__(self) -> None:
        require_one_seed_per_budget("budgets", self.budgets, self.seeds)

    @property
    def seed(self) -> int | None:
        return self.seeds[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("shapes", "kinds", "budgets", "seeds", "clients")}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [
            f"{shape}/{kind}/{exact_budget_text(budget)}"
            for shape in self.shapes
            for kind in self.kinds
            for budget in self.budgets
        ]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[MixtureClasses]]:
        seeds = dict(zip(self.budgets, self.seeds, strict=True))
        for unit in units:
            shape, kind, budget_text = unit.split("/")
            budget, privacy = float(budget_text), privacy_notion_at_budget(kind, float(budget_text))
            rng = np.random.default_rng(seeds[budget])
            costs = _mixture_cost_function([draw_mixture_client(shape, rng) for _ in range(self.clients)])
            classes = {
                name: compare_mechanisms_on_class(family, privacy, self.clients, costs)
                for name, family in global_and_local_mixture_families(shape).items()
            }
            yield [MixtureClasses(unit, shape, _WORDS[shape], kind, budget, str(privacy), classes)]


def _mixture_cost_function(laws: Sequence[Mixture]) -> CostFunction:
    return lambda sampler: costs_by_divergence(laws, sampler.output)


SCALE, PLANE_HALF_WIDTH, PLANE_SIDE = 2.0, 2.0, 81
PLANE_CENTRES = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
BOUNDS = {"global": (math.exp(-0.5) / 3.0, 3.0 * math.exp(0.5)), "local": (0.5, 2.0)}
NOTIONS: dict[str, Privacy] = {"pure": Pure(1.0), "gaussian": Gaussian(1.5)}


@dataclass(frozen=True)
class PlaneLaw:
    """A density on the grid, row by row from below; its cost to the client (none for the client's own); the published weight."""

    unit: str
    family: str | None
    notion: str | None
    mechanism: str | None
    published_weight: float | None
    costs: dict[str, float]
    half_width: float
    density: tuple[float, ...]


@final
@dataclass(frozen=True)
class LocalPlaneExperiment:
    """The client, and its output distributions by class, notion and mechanism."""

    name: str = "local_plane"
    side: int = PLANE_SIDE
    is_quick: bool = False
    seed: int | None = None
    description: str = "densities of four Laplace laws in the plane and of what is sampled instead"
    record_type: type[PlaneLaw] = PlaneLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"side": self.side, "scale": SCALE, "centres": PLANE_CENTRES, "bounds": BOUNDS}

    @property
    def work_unit_names(self) -> Sequence[str]:
        laws = [f"{kind}/{family}/projection" for kind in NOTIONS for family in BOUNDS]
        return ["client", *laws, *(f"gaussian/{family}/linear" for family in BOUNDS)]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[PlaneLaw]]:
        axis = np.linspace(-PLANE_HALF_WIDTH, PLANE_HALF_WIDTH, self.side)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        p = Mixture(np.ones(4), PLANE_CENTRES, SCALE, kernel="laplace")
        public = Mixture([1.0], [[0.0, 0.0]], SCALE, kernel="laplace")
        for unit in units:
            if unit == "client":
                yield [PlaneLaw(unit, None, None, None, None, {}, PLANE_HALF_WIDTH, _round_density(p.pdf(grid)))]
                continue
            kind, name, mechanism = unit.split("/")
            family = DensityBand(public, lower=BOUNDS[name][0], upper=BOUNDS[name][1])
            sampler = (OptimalSampler if mechanism == "projection" else LinearSampler)(family, privacy=NOTIONS[kind])
            law = sampler.output(p)
            costs = {f: float(law.divergence(f)) for f in FOLLOW_UP_DIVERGENCES}
            density, weight = (
                _round_density(np.asarray(law.pdf(grid))),
                published_mixing_weight(NOTIONS[kind], family.bounds),
            )
            yield [PlaneLaw(unit, name, str(NOTIONS[kind]), mechanism, weight, costs, PLANE_HALF_WIDTH, density)]


def _round_density(values: Any) -> tuple[float, ...]:
    return tuple(round(float(value), 9) for value in values)


ORDERED = {  # by set: the unit, and the distance of neighbouring outcomes in it
    "delays": ("minutes", (DELAY.high - DELAY.low) / len(DELAY.names)),
    "cholesterol": ("mg/dl", (HDL.high - HDL.low) / len(HDL.names)),
    "ratings": ("stars", 0.5),
    "lectures": ("points", 1.0),
}
ORDERED_MECHANISMS = ("transport", "optimal", "mollifier", "laplace")


@dataclass(frozen=True)
class WassersteinDistances:
    """Wasserstein-1 distances of one mechanism: mean and largest of the real clients, and of possible clients with a single outcome."""

    mean: float
    largest: float
    single_outcome: float


@dataclass(frozen=True)
class OrderedSet:
    """One set at one budget; and its median client by the transport sampler, with its distributions by mechanism."""

    unit: str
    set: str
    title: str
    who: str
    measure: str
    step: float
    places: tuple[float, ...]
    clients: int
    epsilon: float
    certified: float
    distances: dict[str, WassersteinDistances]
    shown: tuple[float, ...]
    shown_outputs: dict[str, tuple[float, ...]]


def clamped_laplace_output_matrix(size: int, epsilon: float) -> Floats:
    """The output distribution of every outcome under discretised Laplace noise of scale (size - 1)/epsilon, clamped to the range."""
    shrink = np.exp(-epsilon / (size - 1))
    steps = np.abs(np.arange(size)[:, None] - np.arange(size))
    law = (1.0 - shrink) / (1.0 + shrink) * shrink**steps
    for end in (0, size - 1):
        law[:, end] = shrink ** steps[:, end] / (1.0 + shrink)
    return np.asarray(law)


@final
@dataclass(frozen=True)
class OrderedComparison(SetComparison):
    """Wasserstein-1 distances on every available ordered set. A unit is one set at one epsilon."""

    name: str = "ordered"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    seed: int | None = None
    most: int | None = None  # clients of a set, for quick runs
    sets: tuple[ClientSet, ...] = tuple(client_set for client_set in CLIENT_SETS if client_set.name in ORDERED)
    description: str = "how far each client's sample law is from its own on an ordered axis, by mechanism"
    record_type: type[OrderedSet] = OrderedSet

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "most": self.most, "sets": [client_set.name for client_set in self.sets]}

    def compute_unit_record(self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float) -> OrderedSet:
        """Everything recorded of one set at one budget."""
        laws = laws[: self.most]
        measure, step = ORDERED[client_set.name]
        size = laws.shape[1]
        transport = TransportSampler(step * np.arange(size), epsilon=epsilon)
        noise = clamped_laplace_output_matrix(size, epsilon)
        outputs = {
            "transport": transport.output,
            "optimal": OptimalSampler(Simplex(size), epsilon=epsilon).output,
            "mollifier": MollifierSampler(Simplex(size), epsilon=epsilon).output,
            "laplace": lambda p: p @ noise,
        }
        distances, output_laws, singles = {}, {}, np.eye(size)
        for name, output in outputs.items():
            output_laws[name] = output(laws)
            client_distances = np.asarray(transport.distance(laws, output_laws[name]))
            worst_single = float(np.max(transport.distance(singles, output(singles))))
            distances[name] = WassersteinDistances(
                float(client_distances.mean()), float(client_distances.max()), worst_single
            )
        by_transport = np.asarray(transport.distance(laws, output_laws["transport"]))
        median = int(np.argsort(by_transport, kind="stable")[len(laws) // 2])
        return OrderedSet(
            unit=unit,
            set=client_set.name,
            title=client_set.title,
            who=client_set.clients,
            measure=measure,
            step=step,
            places=_outcome_positions(client_set, step),
            clients=len(laws),
            epsilon=epsilon,
            certified=transport.bound,
            distances=distances,
            shown=tuple(laws[median].tolist()),
            shown_outputs={name: tuple(q[median].tolist()) for name, q in output_laws.items()},
        )


def _outcome_positions(client_set: ClientSet, step: float) -> tuple[float, ...]:
    """The positions of the outcomes: the middles of cells, or the values themselves."""
    intervals = {"delays": DELAY, "cholesterol": HDL}
    if client_set.name in intervals:
        low = intervals[client_set.name].low + step / 2.0
        return tuple(low + step * cell for cell in range(len(client_set.outcomes)))
    return tuple(float(value) for value in client_set.outcomes)
