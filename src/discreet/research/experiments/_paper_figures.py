"""The experiments behind Figures 1 to 7 of the paper: finite mechanisms, random Gaussian mixtures, and the Gaussian ring.

Figures 2, 3, 5, 6 and 7: the finite mechanism on one distribution, and worst cases in closed form [paper, Thm 3.1, App. F.1].

Figure 4: a hundred random Gaussian mixtures on [-4, 4] for each budget, and their costs under each mechanism [paper, App. F.2]. For each
epsilon, clients are drawn one after the other from a fresh generator: Poisson(k0) + 1 components, at most K; uniform centres; uniform
weights. The published run drew its chains from the same generator, so only the first client is the same one.

Figure 1: the Gaussian ring and its output distributions at epsilon = 0.5 [paper, App. F.3]. The paper's envelope decays like exp(-d^2/(2
s)) where 2 s^2 is tight: valid, but its class is larger than necessary, c2 = 4.522 against 3.772. Both are computed, to show the cost of
the slack.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.families import ContinuousFamily, DensityBand, GaussianMixtures, Mixture, Simplex
from discreet.mechanisms import Density, MollifierSampler, OptimalSampler
from discreet.projection import processor_count
from discreet.research._boosted import BoostedSampler, Training
from discreet.research.experiments import PAPER_DIVERGENCES, exact_budget_text, require_one_seed_per_budget

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
SEEDS = (1, 2, 3, 4, 5)
DELTA = 1e-5


@dataclass(frozen=True)
class FiniteLaw:
    """One client's output distribution at one budget."""

    unit: str
    epsilon: float
    law: tuple[float, ...]
    optimal: tuple[float, ...]
    scale: float


@dataclass(frozen=True)
class WorstCases:
    """The largest divergences on a number of outcomes at one budget, by mechanism and divergence."""

    unit: str
    epsilon: float
    outcomes: int
    risks: dict[str, dict[str, float]]


@final
@dataclass(frozen=True)
class FiniteLawExperiment:
    """Q*(.|P) for one P at several budgets."""

    name: str = "fig2"
    law: tuple[float, ...] = (0.3, 0.25, 0.2, 0.15, 0.1)
    epsilons: tuple[float, ...] = (1.0, 0.5, 0.1)
    is_quick: bool = False
    seed: int | None = None
    description: str = "the law that one client's sample is drawn from, on five outcomes"
    record_type: type[FiniteLaw] = FiniteLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"law": self.law, "epsilons": self.epsilons}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [exact_budget_text(epsilon) for epsilon in self.epsilons]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[FiniteLaw]]:
        family = Simplex(len(self.law))
        for unit in units:
            optimal = OptimalSampler(family, epsilon=float(unit))
            q = tuple(optimal.output(self.law).tolist())
            yield [FiniteLaw(unit, optimal.epsilon, self.law, q, float(optimal.scale(self.law)))]


@final
@dataclass(frozen=True)
class WorstCaseExperiment:
    """The largest divergence over all clients on k outcomes, of the optimal sampler and of the mollifier around uniform."""

    name: str
    outcomes: int
    epsilons: tuple[float, ...] = EPSILONS
    is_quick: bool = False
    seed: int | None = None
    description: str = "worst-case divergences over every law on k outcomes, in closed form"
    record_type: type[WorstCases] = WorstCases

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"outcomes": self.outcomes, "epsilons": self.epsilons}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [exact_budget_text(epsilon) for epsilon in self.epsilons]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[WorstCases]]:
        family = Simplex(self.outcomes)
        for unit in units:
            epsilon = float(unit)
            samplers = {kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)}
            risks = {name: {f: float(sampler.risk(f)) for f in PAPER_DIVERGENCES} for name, sampler in samplers.items()}
            yield [WorstCases(unit, epsilon, self.outcomes, risks)]


Floats = NDArray[np.float64]

RADIUS, MIXTURE_HALF_WIDTH = 1.0, 4.0
GRID = np.linspace(-MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH, 81)  # where log q is recorded, to compare any two clients
QUICK_TRAINING = Training().scale_down(epochs=40, samples=2_000, burn_in=100)


def mixture_family() -> GaussianMixtures:
    """Unit variance, centres in [-1, 1], restricted to [-4, 4]."""
    return GaussianMixtures(dim=1, radius=RADIUS, scale=1.0, box=(-MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH))


def mollifier_reference_band() -> DensityBand:
    """The baseline's reference, N(0, 1) restricted to [-4, 4], with bounds that hold for every client."""
    low, high = math.exp(-RADIUS * MIXTURE_HALF_WIDTH - 0.5), math.exp(RADIUS * MIXTURE_HALF_WIDTH - 0.5)
    return DensityBand(
        Mixture([1.0], [0.0]), [(-MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH)], lower=0.9 * low, upper=1.1 * high
    )


def draw_random_clients(count: int, *, seed: int, most: int, mean_extra: float) -> list[Mixture]:
    """The first `count` clients of a fresh generator."""
    rng = np.random.default_rng(seed)
    clients = []
    for _ in range(count):
        components = min(int(rng.poisson(mean_extra)) + 1, most)
        means = rng.uniform(-RADIUS, RADIUS, (components, 1))
        clients.append(Mixture(rng.dirichlet(np.ones(components)), means))
    return clients


@dataclass(frozen=True)
class MixtureLaw:
    """One mechanism's output for one client: its divergences by name, log q on the grid, and facts of some mechanisms only."""

    costs: dict[str, float]
    seconds: float
    log_density: tuple[float, ...]
    scale: float | None = None
    mass_error: float | None = None
    largest_log_ratio: float | None = None
    largest_possible_log_ratio: float | None = None


@dataclass(frozen=True)
class MixtureClient:
    """One client at one budget, with its output distributions by mechanism."""

    unit: str
    epsilon: float
    client: int
    components: int
    laws: dict[str, MixtureLaw]


@final
@dataclass(frozen=True)
class MixtureExperiment:
    """Realised divergences of the proposed mechanism, of the exact mollifier and of the boosted baseline for each client.

    A unit is one client at one epsilon. On a CPU a few are finished at a time; on a GPU all missing ones are trained at once.
    """

    name: str = "fig4"
    clients: int = 100
    epsilons: tuple[float, ...] = EPSILONS
    seeds: tuple[int, ...] = SEEDS
    most: int = 10
    mean_extra: float = 2.0
    delta: float = DELTA
    presets: tuple[str, ...] = ("published", "corrected")
    training: Training = field(default_factory=Training)
    device: str = "cpu"
    is_quick: bool = False
    description: str = "divergences from each random client to its output law, by mechanism"
    record_type: type[MixtureClient] = MixtureClient

    def __post_init__(self) -> None:
        require_one_seed_per_budget("epsilons", self.epsilons, self.seeds)

    @property
    def seed(self) -> int | None:
        return self.seeds[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        settings = {
            name: getattr(self, name) for name in ("clients", "epsilons", "seeds", "most", "mean_extra", "delta")
        }
        return {**settings, "presets": self.presets, "training": asdict(self.training), "device": self.device}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [f"{exact_budget_text(epsilon)}/{client}" for epsilon in self.epsilons for client in range(self.clients)]

    @cached_property
    def _clients_by_unit(self) -> dict[str, Mixture]:
        clients: dict[str, Mixture] = {}
        for epsilon, seed in zip(self.epsilons, self.seeds, strict=True):
            mixtures = draw_random_clients(self.clients, seed=seed, most=self.most, mean_extra=self.mean_extra)
            clients |= {f"{exact_budget_text(epsilon)}/{client}": p for client, p in enumerate(mixtures)}
        return clients

    @cached_property
    def _projection_samplers(
        self,
    ) -> dict[float, dict[str, OptimalSampler[ContinuousFamily] | MollifierSampler[ContinuousFamily]]]:
        discretisation, family, reference = (
            Density(self.delta, self.delta),
            mixture_family(),
            mollifier_reference_band(),
        )
        return {
            epsilon: {
                "proposed": OptimalSampler(family, epsilon=epsilon, discretisation=discretisation),
                "mollifier": MollifierSampler(reference, epsilon=epsilon),
            }
            for epsilon in self.epsilons
        }

    @cached_property
    def _boosted_samplers(self) -> dict[tuple[str, float], BoostedSampler]:
        family = mixture_family()
        return {
            (preset, epsilon): BoostedSampler(
                family, epsilon=epsilon, preset=preset, training=self.training, device=self.device
            )
            for preset in self.presets
            for epsilon in self.epsilons
        }

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[MixtureClient]]:
        batch_size = max(1, len(units) if self.device != "cpu" else processor_count())
        for start in range(0, len(units), batch_size):
            yield self._compute_client_records(units[start : start + batch_size])

    def _compute_client_records(self, units: Sequence[str]) -> list[MixtureClient]:
        laws = {unit: self._compute_projected_laws(unit) for unit in units}
        for preset in self.presets:
            for unit, law in self._train_boosted_laws(preset, units).items():
                laws[unit][baseline_name_in_records(preset)] = law
        rows = []
        for unit in units:
            epsilon, number = unit.split("/")
            components = len(self._clients_by_unit[unit].weights)
            rows.append(MixtureClient(unit, float(epsilon), int(number), components, laws[unit]))
        return rows

    def _compute_projected_laws(self, unit: str) -> dict[str, MixtureLaw]:
        epsilon, p = float(unit.split("/")[0]), self._clients_by_unit[unit]
        laws = {}
        for name, sampler in self._projection_samplers[epsilon].items():
            start = time.perf_counter()
            law = sampler.output(p)
            costs = {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES}
            laws[name] = MixtureLaw(
                costs,
                seconds=time.perf_counter() - start,
                log_density=_round_log_density(np.log(law.pdf(GRID))),
                scale=float(law.scale),
                mass_error=float(law.mass_error),
            )
        return laws

    def _train_boosted_laws(self, preset: str, units: Sequence[str]) -> dict[str, MixtureLaw]:
        """Every unit's networks in one run, for all epsilons."""
        start = time.perf_counter()
        samplers = [self._boosted_samplers[preset, float(unit.split("/")[0])] for unit in units]
        clients = [self._clients_by_unit[unit] for unit in units]
        weights = np.array([sampler.weights for sampler in samplers])
        networks = samplers[0].learner.train_networks(clients, weights, [self._training_seed(unit) for unit in units])
        seconds = (time.perf_counter() - start) / len(units)
        laws = {}
        for unit, sampler, p, client_networks in zip(units, samplers, clients, networks, strict=True):
            law = sampler.law([p], client_networks[None], many=False)
            laws[unit] = MixtureLaw(
                {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES},
                seconds=seconds,
                log_density=_round_log_density(np.log(law.pdf(GRID))),
                largest_log_ratio=float(law.largest_log_ratio),
                largest_possible_log_ratio=sampler.largest_log_ratio,
            )
        return laws

    def _training_seed(self, unit: str) -> tuple[int, int]:
        epsilon, number = unit.split("/")
        index = [exact_budget_text(budget) for budget in self.epsilons].index(epsilon)
        return self.seeds[index], int(number)


def baseline_name_in_records(preset: str) -> str:
    """The name of a boosted baseline in the records: the published one is the paper's and gets the plain name."""
    return "boosted" if preset == "published" else f"boosted_{preset}"


def _round_log_density(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(value), 7) for value in values)


RING_HALF_WIDTH, RING_SIDE = 3.0, 121


def gaussian_ring(modes: int, variance: float) -> Mixture:
    """Equal Gaussians with equally spaced means on the unit circle, one of them at (1, 0)."""
    angles = 2.0 * math.pi * np.arange(1, modes + 1) / modes
    return Mixture(np.ones(modes), np.stack([np.cos(angles), np.sin(angles)], axis=1), math.sqrt(variance))


def published_envelope_function(variance: float) -> Callable[[Floats], Floats]:
    """The paper's h~: exp(-d^2/(2 s)) beyond the unit disc, with s where s^2 suffices."""
    scale = math.sqrt(variance)

    def envelope_at(x: Floats) -> Floats:
        distances = np.maximum(0.0, np.sqrt(np.square(x).sum(axis=-1)) - 1.0)
        return np.asarray(np.exp(-np.square(distances) / (2.0 * scale)) / (2.0 * math.pi * variance))

    return envelope_at


@dataclass(frozen=True)
class RingFacts:
    """Facts beside a density: class and scale, or the largest budget of a learnt one."""

    c2: float | None = None
    scale: float | None = None
    mass_error: float | None = None
    largest_log_ratio: float | None = None
    largest_possible_log_ratio: float | None = None
    worst_case: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RingLaw:
    """The ring itself, or one mechanism's output: divergences from the ring by name (none for itself), density on a grid."""

    unit: str
    epsilon: float
    seconds: float
    costs: dict[str, float]
    facts: RingFacts
    half_width: float
    density: tuple[float, ...]


@final
@dataclass(frozen=True)
class RingExperiment:
    """The ring, the exact mollifier, the boosted baselines, Q* as published and Q* with the tight class, on a grid."""

    name: str = "fig1"
    epsilon: float = 0.5
    modes: int = 3
    variance: float = 0.5
    delta: float = DELTA
    presets: tuple[str, ...] = ("published", "corrected")
    training: Training = field(default_factory=Training)
    device: str = "cpu"
    seed: int | None = 0
    is_quick: bool = False
    description: str = "densities on a grid, and divergences from the ring to each law"
    record_type: type[RingLaw] = RingLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        settings = {
            name: getattr(self, name) for name in ("epsilon", "modes", "variance", "delta", "presets", "device")
        }
        return {**settings, "training": asdict(self.training)}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return ["original", "mollifier", "proposed", "tight", *map(baseline_name_in_records, self.presets)]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[RingLaw]]:
        p = gaussian_ring(self.modes, self.variance)
        axis = np.linspace(-RING_HALF_WIDTH, RING_HALF_WIDTH, RING_SIDE)
        points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        for unit in units:
            start = time.perf_counter()
            law, facts = self._law_and_facts_of_unit(unit, p)
            costs = {} if law is p else {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES}
            density = law.pdf(points)
            seconds = time.perf_counter() - start
            values = tuple(float(f"{value:.5g}") for value in density)
            yield [RingLaw(unit, self.epsilon, seconds, costs, facts, RING_HALF_WIDTH, values)]

    def _law_and_facts_of_unit(self, unit: str, p: Mixture) -> tuple[Any, RingFacts]:
        discretisation = Density(self.delta, self.delta)
        sampler: OptimalSampler[ContinuousFamily] | MollifierSampler[ContinuousFamily]
        match unit:
            case "original":
                return p, RingFacts()
            case "mollifier":
                # sup p/q_0 = e/s^2 for variance s^2 = 1/2: at twice a mean, where -|x - m|^2/(2 s^2) + |x|^2/2 is largest
                reach = 1.0 / (1.0 - self.variance)
                bound = math.exp(0.5 * reach) / self.variance
                reference = DensityBand(Mixture([1.0], np.zeros((1, 2))), lower=0.0, upper=1.001 * bound)
                sampler = MollifierSampler(reference, epsilon=self.epsilon, discretisation=discretisation)
            case "proposed":
                plane = [(-math.inf, math.inf)] * 2
                sampler = OptimalSampler(
                    DensityBand(published_envelope_function(self.variance), plane, lower=0.0, upper=1.0),
                    epsilon=self.epsilon,
                    discretisation=discretisation,
                )
            case "tight":
                family = GaussianMixtures(2, radius=1.0, scale=math.sqrt(self.variance))
                sampler = OptimalSampler(family, epsilon=self.epsilon, discretisation=discretisation)
            case _:
                return self._boosted_law_and_facts(
                    next(preset for preset in self.presets if baseline_name_in_records(preset) == unit), p
                )
        law = sampler.output(p)
        return law, RingFacts(
            c2=sampler.family.bounds.upper,
            scale=float(law.scale),
            mass_error=float(law.mass_error),
            worst_case={f: float(sampler.risk(f)) for f in PAPER_DIVERGENCES},
        )

    def _boosted_law_and_facts(self, preset: str, p: Mixture) -> tuple[Any, RingFacts]:
        family = GaussianMixtures(2, radius=1.0, scale=math.sqrt(self.variance))
        sampler = BoostedSampler(
            family, epsilon=self.epsilon, preset=preset, training=self.training, device=self.device
        )
        assert self.seed is not None
        law = sampler.output(p, seeds=[self.seed])
        return law, RingFacts(
            largest_log_ratio=float(law.largest_log_ratio), largest_possible_log_ratio=sampler.largest_log_ratio
        )
