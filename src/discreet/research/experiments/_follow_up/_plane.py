"""Figure 1 of the follow-up: four Laplace laws of scale 2 in the plane, and what is sampled instead, by both classes and two notions.

Centres (+-1, 0) and (0, +-1); epsilon = 1 and nu = 1.5. Around Laplace(0, 2) on both axes the global class is
e^(-1/2)/3 <= dP/dP0 <= 3 e^(1/2), and the local one has gamma = 2. The published picture has the projection under pure and linear mixing
under Gaussian privacy; the projection under Gaussian privacy is ours.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.families import DensityBand, Mixture
from discreet.mechanisms import LinearSampler, OptimalSampler
from discreet.privacy import Gaussian, Privacy, Pure
from discreet.research.experiments._follow_up._notions import FOLLOW_UP_DIVERGENCES, published_weight

SCALE, PLANE_HALF_WIDTH, PLANE_SIDE = 2.0, 2.0, 81
PLANE_CENTRES = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
BOUNDS = {"global": (math.exp(-0.5) / 3.0, 3.0 * math.exp(0.5)), "local": (0.5, 2.0)}
NOTIONS: dict[str, Privacy] = {"pure": Pure(1.0), "gaussian": Gaussian(1.5)}


@dataclass(frozen=True)
class PlaneLaw:
    """A density on the grid, row by row from below; what it costs the client, nothing for the client's own; the published weight."""

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
class LocalPlane:
    """The client, and its output laws by class, notion and mechanism."""

    name: str = "local_plane"
    side: int = PLANE_SIDE
    quick: bool = False
    seed: int | None = None
    computes: str = "densities of four Laplace laws in the plane and of what is sampled instead"
    record: type[PlaneLaw] = PlaneLaw

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"side": self.side, "scale": SCALE, "centres": PLANE_CENTRES, "bounds": BOUNDS}

    @property
    def units(self) -> Sequence[str]:
        laws = [f"{kind}/{family}/projection" for kind in NOTIONS for family in BOUNDS]
        return ["client", *laws, *(f"gaussian/{family}/linear" for family in BOUNDS)]

    def results(self, units: Sequence[str]) -> Iterator[list[PlaneLaw]]:
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
            density, weight = _round_density(np.asarray(law.pdf(grid))), published_weight(NOTIONS[kind], family.bounds)
            yield [PlaneLaw(unit, name, str(NOTIONS[kind]), mechanism, weight, costs, PLANE_HALF_WIDTH, density)]


def _round_density(values: Any) -> tuple[float, ...]:
    return tuple(round(float(value), 9) for value in values)
