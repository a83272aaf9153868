"""Figure 4: a hundred random Gaussian mixtures on [-4, 4] for each budget, and what each mechanism costs them [paper, App. F.2].

For each epsilon, clients are drawn one after the other from a fresh generator: Poisson(k0) + 1 components, at most K; uniform
centres; uniform weights. The published run drew its chains from the same generator, so only the first client is the same one.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.families import ContinuousFamily, DensityBand, GaussianMixtures, Mixture
from discreet.mechanisms import Density, MollifierSampler, OptimalSampler
from discreet.projection._threads import processor_count
from discreet.research._boosted import BoostedSampler, Training
from discreet.research._published import DELTA, EPSILONS, SEEDS
from discreet.research.experiments._costs import PAPER_DIVERGENCES

Floats = NDArray[np.float64]

RADIUS, MIXTURE_HALF_WIDTH = 1.0, 4.0
GRID = np.linspace(
    -MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH, 81
)  # where log q is recorded, so that any two clients' laws can be compared
QUICK_TRAINING = Training().scale_down(epochs=40, samples=2_000, burn_in=100)


def mixture_family() -> GaussianMixtures:
    """Unit variance, centres in [-1, 1], restricted to [-4, 4]."""
    return GaussianMixtures(dim=1, radius=RADIUS, scale=1.0, box=(-MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH))


def mollifier_ball() -> DensityBand:
    """The baseline's reference, N(0, 1) restricted to [-4, 4], with bounds that hold for every client."""
    low, high = math.exp(-RADIUS * MIXTURE_HALF_WIDTH - 0.5), math.exp(RADIUS * MIXTURE_HALF_WIDTH - 0.5)
    return DensityBand(
        Mixture([1.0], [0.0]), [(-MIXTURE_HALF_WIDTH, MIXTURE_HALF_WIDTH)], lower=0.9 * low, upper=1.1 * high
    )


def random_clients(count: int, *, seed: int, most: int, mean_extra: float) -> list[Mixture]:
    """The first `count` clients of a fresh generator."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        components = min(int(rng.poisson(mean_extra)) + 1, most)
        means = rng.uniform(-RADIUS, RADIUS, (components, 1))
        found.append(Mixture(rng.dirichlet(np.ones(components)), means))
    return found


@dataclass(frozen=True)
class MixtureLaw:
    """One mechanism's law for one client: its divergences by name, log q on the grid, and what only some mechanisms have."""

    costs: dict[str, float]
    seconds: float
    log_density: tuple[float, ...]
    scale: float | None = None
    mass_error: float | None = None
    largest_log_ratio: float | None = None
    largest_possible_log_ratio: float | None = None


@dataclass(frozen=True)
class MixtureClient:
    """One client at one budget, with its laws by mechanism."""

    unit: str
    epsilon: float
    client: int
    components: int
    laws: dict[str, MixtureLaw]


@final
@dataclass(frozen=True)
class RandomMixtures:
    """Realised divergences of the proposed mechanism, of the exact mollifier and of the boosted baseline for each client.

    A unit is one client at one epsilon. On a CPU a few are finished at a time; on a GPU all that are missing are trained at once.
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
    quick: bool = False
    computes: str = "divergences from each random client to its output law, by mechanism"
    record: type[MixtureClient] = MixtureClient

    @property
    def seed(self) -> int | None:
        return self.seeds[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        shown = {name: getattr(self, name) for name in ("clients", "epsilons", "seeds", "most", "mean_extra", "delta")}
        return {**shown, "presets": self.presets, "training": asdict(self.training), "device": self.device}

    @property
    def units(self) -> Sequence[str]:
        return [f"{epsilon:g}/{client}" for epsilon in self.epsilons for client in range(self.clients)]

    @cached_property
    def _clients(self) -> dict[str, Mixture]:
        found: dict[str, Mixture] = {}
        for epsilon, seed in zip(self.epsilons, self.seeds, strict=True):
            drawn = random_clients(self.clients, seed=seed, most=self.most, mean_extra=self.mean_extra)
            found |= {f"{epsilon:g}/{client}": p for client, p in enumerate(drawn)}
        return found

    @cached_property
    def _projecting(
        self,
    ) -> dict[float, dict[str, OptimalSampler[ContinuousFamily] | MollifierSampler[ContinuousFamily]]]:
        how, ours, theirs = Density(self.delta, self.delta), mixture_family(), mollifier_ball()
        return {
            epsilon: {
                "proposed": OptimalSampler(ours, epsilon=epsilon, how=how),
                "mollifier": MollifierSampler(theirs, epsilon=epsilon),
            }
            for epsilon in self.epsilons
        }

    @cached_property
    def _boosting(self) -> dict[tuple[str, float], BoostedSampler]:
        space = mixture_family()
        return {
            (preset, epsilon): BoostedSampler(
                space, epsilon=epsilon, preset=preset, training=self.training, device=self.device
            )
            for preset in self.presets
            for epsilon in self.epsilons
        }

    def results(self, units: Sequence[str]) -> Iterator[list[MixtureClient]]:
        together = len(units) if self.device != "cpu" else processor_count()
        for start in range(0, len(units), max(1, together)):
            yield self._rows(units[start : start + max(1, together)])

    def _rows(self, units: Sequence[str]) -> list[MixtureClient]:
        laws = {unit: self._projected_laws(unit) for unit in units}
        for preset in self.presets:
            for unit, found in self._boosted_laws(preset, units).items():
                laws[unit][baseline_name(preset)] = found
        rows = []
        for unit in units:
            epsilon, number = unit.split("/")
            components = len(self._clients[unit].weights)
            rows.append(MixtureClient(unit, float(epsilon), int(number), components, laws[unit]))
        return rows

    def _projected_laws(self, unit: str) -> dict[str, MixtureLaw]:
        epsilon, p = float(unit.split("/")[0]), self._clients[unit]
        found = {}
        for name, sampler in self._projecting[epsilon].items():
            start = time.perf_counter()
            law = sampler.output(p)
            costs = {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES}
            found[name] = MixtureLaw(
                costs,
                seconds=time.perf_counter() - start,
                log_density=_round_log_density(np.log(law.pdf(GRID))),
                scale=float(law.scale),
                mass_error=float(law.mass_error),
            )
        return found

    def _boosted_laws(self, preset: str, units: Sequence[str]) -> dict[str, MixtureLaw]:
        """Every unit's networks in one go, whatever its epsilon."""
        start = time.perf_counter()
        samplers = [self._boosting[preset, float(unit.split("/")[0])] for unit in units]
        clients = [self._clients[unit] for unit in units]
        weights = np.array([sampler.weights for sampler in samplers])
        networks = samplers[0].learner.networks(clients, weights, [self._training_seed(unit) for unit in units])
        seconds = (time.perf_counter() - start) / len(units)
        found = {}
        for unit, sampler, p, own in zip(units, samplers, clients, networks, strict=True):
            law = sampler.law([p], own[None], many=False)
            found[unit] = MixtureLaw(
                {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES},
                seconds=seconds,
                log_density=_round_log_density(np.log(law.pdf(GRID))),
                largest_log_ratio=float(law.largest_log_ratio),
                largest_possible_log_ratio=sampler.largest_log_ratio,
            )
        return found

    def _training_seed(self, unit: str) -> tuple[int, int]:
        epsilon, number = unit.split("/")
        place = [f"{each:g}" for each in self.epsilons].index(epsilon)
        return self.seeds[place], int(number)


def baseline_name(preset: str) -> str:
    """What the records call a boosted baseline: the published one is the paper's, so it gets the plain name."""
    return "boosted" if preset == "published" else f"boosted_{preset}"


def _round_log_density(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(value), 7) for value in values)
