"""Designs for real clients whom they have not seen: made on a fifth of each set, measured on the others, beside every other sampler.

For each set, epsilon and split: the mean divergences of Q*, the linear mechanism, the mollifier, the best uniform floor (its
spread tuned on the examples) and the design over the clients that were not used; and the certified floor, below which no sampler
whatever could go, had it been made for those very clients.

The design is made for the examples by the rules of `discreet.design._smoothing`, which see nobody else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.design import Design, design
from discreet.design._smoothing import (
    ANYBODY,
    FOLDS,
    HALF,
    KEEP_SMOOTHED,
    MARGIN,
    MODEL,
    PARTS,
    PAYING,
    SEEN,
    STRAY,
    SURELY,
    Smoother,
    Smoothing,
    sampler_costs,
)
from discreet.families import Simplex
from discreet.families._on_outcomes import FiniteFamily
from discreet.mechanisms import MECHANISMS, OptimalSampler
from discreet.mechanisms._sampler import Sampler
from discreet.numerics import log_bracket
from discreet.research.experiments._population import POPULATION_BUDGETS
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet, names_present

Floats = NDArray[np.float64]

DESIGN_RIVALS = (*MECHANISMS, "uniform")


def mean_divergences(laws: Floats, sampler: Sampler[FiniteFamily]) -> dict[str, float]:
    """The mean divergence of each kind over clients."""
    return {name: float(each.mean()) for name, each in sampler_costs(laws, sampler).items()}


@dataclass(frozen=True)
class DesignedSplit:
    """One set at one budget in one split: mean divergences by sampler and name over the clients served, and what none can go below.

    `gap` is that between the floor and what a design for the served clients themselves reaches, relative to the latter; `exact_gap` is the
    same in rationals, from the integers that a sample is drawn with, of the first split.
    """

    unit: str
    set: str
    title: str
    epsilon: float
    split: int
    examples: int
    served: int
    parts: tuple[float, ...] | None
    means: dict[str, dict[str, float]]
    floor: float
    gap: float
    exact_gap: float | None
    kept: float

    @property
    def above_floor(self) -> float:
        """The design's mean KL as a multiple of the certified floor."""
        return self.means["designed"]["kl"] / self.floor


@final
@dataclass(frozen=True)
class DesignComparison:
    """Designs against every other sampler on clients they were not made on. A unit is one set at one epsilon in one split."""

    name: str = "designs"
    epsilons: tuple[float, ...] = POPULATION_BUDGETS
    splits: int = 5
    share: float = 0.2
    keep: float = KEEP_SMOOTHED
    clients: int | None = None  # of each set; all of them by default
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
            "clients": self.clients,
            "parts": PARTS,
            "model": [MODEL, STRAY, ANYBODY, MARGIN, HALF, SURELY, SEEN, PAYING],
            "sets": {one.name: len(one.outcomes) for one in self.sets},
        }

    @property
    def units(self) -> Sequence[str]:
        return [
            f"{name}/{epsilon:g}/{split}"
            for name in names_present(self.sets)
            for epsilon in self.epsilons
            for split in range(self.splits)
        ]

    def results(self, units: Sequence[str]) -> Iterator[list[DesignedSplit]]:
        held: tuple[ClientSet, Floats] | None = None
        for unit in units:
            name, epsilon, split = unit.split("/")
            if held is None or held[0].name != name:  # one set in memory at a time
                declared = next(one for one in self.sets if one.name == name)
                held = declared, declared.laws[: self.clients]
            yield [self.row(*held, float(epsilon), int(split))]

    def row(self, declared: ClientSet, laws: Floats, epsilon: float, split: int) -> DesignedSplit:
        """Everything recorded of one split."""
        examples, served = split_of(laws, self.share, self.seed or 0, split)
        family = Simplex(laws.shape[1])
        smoother = Smoother(epsilon, self.keep)
        choice = smoother.choose(examples)
        sampler = choice.sampler
        floor = design(family, epsilon=epsilon, clients=served, keep=0.0)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            **{name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()},
            "uniform": smoother.best_uniform(examples),
            "designed": sampler,
        }
        return DesignedSplit(
            unit=f"{declared.name}/{epsilon:g}/{split}",
            set=declared.name,
            title=declared.title,
            epsilon=epsilon,
            split=split,
            examples=len(examples),
            served=len(served),
            parts=parts_of(choice.smoothing),
            means={kind: mean_divergences(served, one) for kind, one in samplers.items()},
            floor=floor.bound,
            gap=(floor.value - floor.bound) / floor.value if floor.value else 0.0,
            exact_gap=exact_gap(floor, served) if split == 0 and not self.quick else None,
            kept=(1.0 - float(sampler.risk("tv"))) / (1.0 - float(samplers[OptimalSampler.name].risk("tv"))),
        )


def parts_of(smoothing: Smoothing) -> tuple[float, ...] | None:
    """How the weight was divided: (redrawn examples, point masses), for the model also the share of the safe floor; None for no design."""
    parts = smoothing.redrawn, smoothing.points
    return {"parts": parts, "model": (*parts, HALF)}.get(smoothing.rule)


def split_of(laws: Floats, share: float, seed: int, split: int) -> tuple[Floats, Floats]:
    """Examples and clients to serve."""
    order = np.random.default_rng([seed, split]).permutation(len(laws))
    number = max(FOLDS, round(share * len(laws)))
    return laws[order[:number]], laws[order[number:]]


def exact_gap(found: Design, laws: Floats) -> float:
    """How far a KL design's mean is above its floor, relative to the mean, from rationals alone.

    The mean is that of the integers which samples are drawn with, the laws are the floats as they stand (the floor's own, each divided
    by its sum), and logarithms are bounded from above.
    """
    examples, weights = found.certificate.examples, found.sampler.weights(laws)
    total = sum(map(int, weights[0]))
    mean = Fraction(0)
    outcome = examples.seen[examples.outcome]
    for client, x, p in zip(examples.client.tolist(), outcome.tolist(), examples.mass.tolist(), strict=True):
        ratio = Fraction(p) * total / int(weights[client, x])
        mean += Fraction(p) * (log_bracket(ratio)[1] if ratio >= 1 else -log_bracket(1 / ratio)[0])
    mean /= len(examples)
    return float((mean - found.certificate.exact()) / mean)
