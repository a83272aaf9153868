"""Figure 1: the Gaussian ring and what is sampled instead of it at epsilon = 0.5 [paper, App. F.3].

The paper's envelope decays like exp(-d^2/(2 s)) where 2 s^2 is tight: valid, but its class is larger than need be, c2 = 4.522
against 3.772. Both are computed, so that what the slack costs can be seen.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.families import ContinuousFamily, DensityBand, GaussianMixtures, Mixture
from discreet.mechanisms import Density, MollifierSampler, OptimalSampler
from discreet.research._boosted import BoostedSampler, Training
from discreet.research._published import DELTA
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._mixtures import baseline_name

Floats = NDArray[np.float64]

RING_HALF_WIDTH, RING_SIDE = 3.0, 121


def ring(modes: int, variance: float) -> Mixture:
    """Equal Gaussians with equally spaced means on the unit circle, one of them at (1, 0)."""
    angles = 2.0 * math.pi * np.arange(1, modes + 1) / modes
    return Mixture(np.ones(modes), np.stack([np.cos(angles), np.sin(angles)], axis=1), math.sqrt(variance))


def published_envelope(variance: float) -> Callable[[Floats], Floats]:
    """The paper's h~: exp(-d^2/(2 s)) beyond the unit disc, with s where s^2 would do."""
    scale = math.sqrt(variance)

    def envelope(x: Floats) -> Floats:
        beyond = np.maximum(0.0, np.sqrt(np.square(x).sum(axis=-1)) - 1.0)
        return np.asarray(np.exp(-np.square(beyond) / (2.0 * scale)) / (2.0 * math.pi * variance))

    return envelope


@dataclass(frozen=True)
class RingFacts:
    """What is known of a law beside its density: its class and scale, or the budget that a learnt one can spend."""

    c2: float | None = None
    scale: float | None = None
    mass_error: float | None = None
    largest_log_ratio: float | None = None
    largest_possible_log_ratio: float | None = None
    worst_case: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RingLaw:
    """The ring itself, or what one mechanism samples instead: divergences from the ring by name (none for itself), density on a grid."""

    unit: str
    epsilon: float
    seconds: float
    costs: dict[str, float]
    facts: RingFacts
    half_width: float
    density: tuple[float, ...]


@final
@dataclass(frozen=True)
class GaussianRing:
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
    quick: bool = False
    computes: str = "densities on a grid, and divergences from the ring to each law"
    record: type[RingLaw] = RingLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        shown = {name: getattr(self, name) for name in ("epsilon", "modes", "variance", "delta", "presets", "device")}
        return {**shown, "training": asdict(self.training)}

    @property
    def units(self) -> Sequence[str]:
        return ["original", "mollifier", "proposed", "tight", *map(baseline_name, self.presets)]

    def results(self, units: Sequence[str]) -> Iterator[list[RingLaw]]:
        p = ring(self.modes, self.variance)
        axis = np.linspace(-RING_HALF_WIDTH, RING_HALF_WIDTH, RING_SIDE)
        points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        for unit in units:
            start = time.perf_counter()
            law, facts = self._law(unit, p)
            costs = {} if law is p else {f: float(law.divergence(f)) for f in PAPER_DIVERGENCES}
            density = law.pdf(points)
            seconds = time.perf_counter() - start
            values = tuple(float(f"{value:.5g}") for value in density)
            yield [RingLaw(unit, self.epsilon, seconds, costs, facts, RING_HALF_WIDTH, values)]

    def _law(self, unit: str, p: Mixture) -> tuple[Any, RingFacts]:
        how = Density(self.delta, self.delta)
        sampler: OptimalSampler[ContinuousFamily] | MollifierSampler[ContinuousFamily]
        match unit:
            case "original":
                return p, RingFacts()
            case "mollifier":
                # sup p/q_0 = e/s^2 for variance s^2 = 1/2: at twice a mean, where -|x - m|^2/(2 s^2) + |x|^2/2 is largest
                reach = 1.0 / (1.0 - self.variance)
                bound = math.exp(0.5 * reach) / self.variance
                around = DensityBand(Mixture([1.0], np.zeros((1, 2))), lower=0.0, upper=1.001 * bound)
                sampler = MollifierSampler(around, epsilon=self.epsilon, how=how)
            case "proposed":
                whole = [(-math.inf, math.inf)] * 2
                sampler = OptimalSampler(
                    DensityBand(published_envelope(self.variance), whole, lower=0.0, upper=1.0),
                    epsilon=self.epsilon,
                    how=how,
                )
            case "tight":
                family = GaussianMixtures(2, radius=1.0, scale=math.sqrt(self.variance))
                sampler = OptimalSampler(family, epsilon=self.epsilon, how=how)
            case _:
                return self._boosted_law(next(preset for preset in self.presets if baseline_name(preset) == unit), p)
        law = sampler.output(p)
        return law, RingFacts(
            c2=sampler.family.bounds.upper,
            scale=float(law.scale),
            mass_error=float(law.mass_error),
            worst_case={f: float(sampler.risk(f)) for f in PAPER_DIVERGENCES},
        )

    def _boosted_law(self, preset: str, p: Mixture) -> tuple[Any, RingFacts]:
        space = GaussianMixtures(2, radius=1.0, scale=math.sqrt(self.variance))
        sampler = BoostedSampler(space, epsilon=self.epsilon, preset=preset, training=self.training, device=self.device)
        assert self.seed is not None
        law = sampler.output(p, seeds=[self.seed])
        return law, RingFacts(
            largest_log_ratio=float(law.largest_log_ratio), largest_possible_log_ratio=sampler.largest_log_ratio
        )
