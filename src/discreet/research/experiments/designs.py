"""Designs for real clients whom they have not seen: made on a fifth of each set, measured on the others, beside every other sampler.

For each set, epsilon and split: the mean divergences of Q*, the linear mechanism, the mollifier, the best uniform floor (its
spread tuned on the examples) and the design over the clients that were not used; and the certified floor, below which no sampler
whatever could go, had it been made for those very clients. How much the k point masses count among the examples (nothing to 3e-3 in
all), or that Q* had better stay, is decided by cross-validation on the examples alone: the most cautious choice that is not
worse than the best by more than one standard error of the difference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.design import Design, design
from discreet.divergences import divergence
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, OptimalSampler
from discreet.mechanisms.sampler import Sampler
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet, missing_sets
from discreet.research.experiments.costs import DIVERGENCES
from discreet.research.experiments.population import BUDGETS

Floats = NDArray[np.float64]

OTHERS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3)  # what the point masses may count
FOLDS = 3
SPREADS = 25


def means(laws: Floats, sampler: Sampler[FiniteFamily]) -> dict[str, float]:
    """The mean divergence of each kind over clients."""
    q = sampler.output(laws)
    return {name: float(np.mean(divergence(name)(laws, q))) for name in DIVERGENCES}


def designed(examples: Floats, epsilon: float, keep: float, others: float) -> Design:
    """The KL design for examples among which the k point masses count `others` in all."""
    n, k = examples.shape
    if not others:
        return design(Simplex(k), epsilon=epsilon, clients=examples, keep=keep)
    weights = np.append(np.full(n, (1.0 - others) / n), np.full(k, others / k))
    return design(Simplex(k), epsilon=epsilon, clients=np.vstack([examples, np.eye(k)]), weights=weights, keep=keep)


def chosen(examples: Floats, epsilon: float, keep: float) -> tuple[float | None, Sampler[FiniteFamily]]:
    """What the point masses should count, or None for Q*, judged by examples that were held back; and that sampler."""
    optimal = OptimalSampler(Simplex(examples.shape[1]), epsilon=epsilon)
    scores = {others: np.zeros(len(examples)) for others in (*OTHERS, None)}  # from bold to cautious
    for held in np.array_split(np.random.default_rng(0).permutation(len(examples)), FOLDS):
        rest = np.delete(examples, held, axis=0)
        for others in scores:
            sampler = optimal if others is None else designed(rest, epsilon, keep, others).sampler
            scores[others][held] = divergence("kl")(examples[held], sampler.output(examples[held]))
    best = min(scores.values(), key=lambda score: float(score.mean()))
    worse = {others: score - best for others, score in scores.items()}
    near = [others for others, more in worse.items() if more.mean() <= more.std() / math.sqrt(len(examples))]
    return near[-1], optimal if near[-1] is None else designed(examples, epsilon, keep, near[-1]).sampler


def best_uniform(examples: Floats, epsilon: float) -> Sampler[FiniteFamily]:
    """The uniform floor with the smallest mean KL over the examples."""
    family = Simplex(examples.shape[1])
    spreads = np.exp(np.linspace(0.0, math.log(0.999 * family.size), SPREADS))
    samplers = [OptimalSampler(family.spread(float(s)), epsilon=epsilon) for s in spreads]
    return min(samplers, key=lambda sampler: means(examples, sampler)["kl"])


@dataclass(frozen=True)
class DesignedSplit:
    """One set at one budget in one split: mean divergences by sampler and name over the clients served, and what none can go below."""

    unit: str
    set: str
    epsilon: float
    split: int
    examples: int
    served: int
    others: float | None
    means: dict[str, dict[str, float]]
    floor: float
    gap: float
    kept: float


@final
@dataclass(frozen=True)
class DesignComparison:
    """Designs against every other sampler on clients they were not made on. A unit is one set at one epsilon in one split."""

    name: str = "designs"
    epsilons: tuple[float, ...] = BUDGETS
    splits: int = 5
    share: float = 0.2
    keep: float = 0.001
    seed: int | None = 7
    quick: bool = False
    sets: tuple[ClientSet, ...] = CLIENT_SETS
    computes: str = "mean divergences of designs on clients they were not made on, and what no sampler can go below"
    record: type[DesignedSplit] = DesignedSplit

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "splits": self.splits,
            "share": self.share,
            "keep": self.keep,
            "sets": {one.name: len(one.outcomes) for one in self.sets},
        }

    @property
    def units(self) -> Sequence[str]:
        missing = missing_sets()
        present = [one.name for one in self.sets if one not in missing]
        return [
            f"{name}/{epsilon:g}/{split}"
            for name in present
            for epsilon in self.epsilons
            for split in range(self.splits)
        ]

    def results(self, units: Sequence[str]) -> Iterator[list[DesignedSplit]]:
        held: tuple[str, Floats] | None = None
        for unit in units:
            name, epsilon, split = unit.split("/")
            if held is None or held[0] != name:  # one set in memory at a time
                held = name, next(one for one in self.sets if one.name == name).laws
            yield [self.row(name, held[1], float(epsilon), int(split))]

    def row(self, name: str, laws: Floats, epsilon: float, split: int) -> DesignedSplit:
        """Everything recorded of one split."""
        order = np.random.default_rng([self.seed or 0, split]).permutation(len(laws))
        number = max(FOLDS, round(self.share * len(laws)))
        examples, served = laws[order[:number]], laws[order[number:]]
        family = Simplex(laws.shape[1])
        others, sampler = chosen(examples, epsilon, self.keep)
        floor = design(family, epsilon=epsilon, clients=served, keep=0.0)
        samplers = {
            **{name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()},
            "uniform": best_uniform(examples, epsilon),
            "designed": sampler,
        }
        return DesignedSplit(
            unit=f"{name}/{epsilon:g}/{split}",
            set=name,
            epsilon=epsilon,
            split=split,
            examples=len(examples),
            served=len(served),
            others=others,
            means={kind: means(served, one) for kind, one in samplers.items()},
            floor=floor.bound,
            gap=(floor.value - floor.bound) / floor.value if floor.value else 0.0,
            kept=(1.0 - float(sampler.risk("tv"))) / (1.0 - float(samplers["optimal"].risk("tv"))),
        )
