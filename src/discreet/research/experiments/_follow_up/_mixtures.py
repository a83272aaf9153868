"""Figures 4, 10 and 11 of the follow-up: a hundred random mixtures near a public law, by the global and by the local class.

Clients are those of the published scripts: min(Poisson(2) + 1, 10) components, Dirichlet weights, seeds 1 to 4 for the four budgets. Laplace
mixtures of scale 1 with centres in [-1, 1] are within a factor e of Laplace(0, 1): the local class has gamma = 3, the global one
c1 = e^-1/3, c2 = 3 e. In the plane centres lie in the l1 ball and everything on [-10, 10]^2. Gaussian mixtures on [-2, 2], centres in
[-1/2, 1/2], are ours: within a factor 3 of N(0, 1) restricted, 9 for the global class.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.families import DensityBand, Mixture
from discreet.research.experiments._follow_up._comparing import CostFunction, by_divergence, compare_class
from discreet.research.experiments._follow_up._notions import (
    FOLLOW_UP_BUDGETS,
    NOTION_KINDS,
    ClassAtBudget,
    privacy_notion,
)

FOLLOW_UP_SEEDS = (1, 2, 3, 4)
MEAN_EXTRA, MOST = 2.0, 10
MIXTURE_CENTRES = {"laplace": 1.0, "gaussian": 0.5}  # of one dimension: how far from 0
_WORDS = {
    "laplace": "Laplace mixtures on the line",
    "plane": "Laplace mixtures in the plane",
    "gaussian": "Gaussian mixtures on [-2, 2]",
}


@dataclass(frozen=True)
class MixtureClasses:
    """A hundred clients of one shape under one notion, served by the global and by the local class."""

    unit: str
    shape: str
    title: str
    kind: str
    budget: float
    notion: str
    classes: dict[str, ClassAtBudget]


def draw_client(shape: str, rng: np.random.Generator) -> Mixture:
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


def mixture_classes(shape: str) -> dict[str, DensityBand]:
    """The global and the local class of a shape, around its public law."""
    wide, density, box = (math.exp(-1.0) / 3.0, 3.0 * math.e), Mixture([1.0], [[0.0]], kernel="laplace"), None
    match shape:
        case "plane":
            density, box = Mixture([1.0], [[0.0, 0.0]], kernel="laplace"), [(-10.0, 10.0)] * 2
        case "gaussian":
            wide, density, box = (1 / 9, 9.0), Mixture([1.0], [[0.0]]), [(-2.0, 2.0)]
    bounds = {"global": wide, "local": (1 / 3, 3.0)}
    return {name: DensityBand(density, box, lower=lower, upper=upper) for name, (lower, upper) in bounds.items()}


@final
@dataclass(frozen=True)
class LocalMixtures:
    """The largest and the mean divergence of the published clients, by the published linear mechanism and by the projection."""

    name: str = "local_mixtures"
    shapes: tuple[str, ...] = ("laplace", "plane", "gaussian")
    kinds: tuple[str, ...] = NOTION_KINDS
    budgets: tuple[float, ...] = FOLLOW_UP_BUDGETS
    seeds: tuple[int, ...] = FOLLOW_UP_SEEDS
    clients: int = 100
    quick: bool = False
    computes: str = (
        "divergences of random mixtures to their output laws, by the global and the local class, by both mechanisms"
    )
    record: type[MixtureClasses] = MixtureClasses

    @property
    def seed(self) -> int | None:
        return self.seeds[0]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("shapes", "kinds", "budgets", "seeds", "clients")}

    @property
    def units(self) -> Sequence[str]:
        return [f"{shape}/{kind}/{budget:g}" for shape in self.shapes for kind in self.kinds for budget in self.budgets]

    def results(self, units: Sequence[str]) -> Iterator[list[MixtureClasses]]:
        seeds = dict(zip(self.budgets, self.seeds, strict=True))
        for unit in units:
            shape, kind, told = unit.split("/")
            budget, privacy = float(told), privacy_notion(kind, float(told))
            rng = np.random.default_rng(seeds[budget])
            costs = _costs_of([draw_client(shape, rng) for _ in range(self.clients)])
            found = {
                name: compare_class(family, privacy, self.clients, costs)
                for name, family in mixture_classes(shape).items()
            }
            yield [MixtureClasses(unit, shape, _WORDS[shape], kind, budget, str(privacy), found)]


def _costs_of(laws: Sequence[Mixture]) -> CostFunction:
    return lambda sampler: by_divergence(laws, sampler.output)
