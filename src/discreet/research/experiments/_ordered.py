"""Real clients with ordered outcomes: how far a client's sample law is from its own, in the outcomes' unit, by mechanism at equal epsilon.

The Wasserstein-1 distance on a line is the area between two distribution functions, so that everything here is computed, not sampled. Beside
the transport sampler (`discreet.mechanisms._transport`), which has the smallest worst case that any epsilon-LDP sampler has: Q* and the
mollifier, which know no order, and discretised Laplace noise of scale range/epsilon on a raw draw, clamped to the range: what is done
without this library.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.families import Simplex
from discreet.mechanisms import MollifierSampler, OptimalSampler, TransportSampler
from discreet.research.experiments.client_sets import CLIENT_SETS, DELAY, HDL, ClientSet, names_present

Floats = NDArray[np.float64]

ORDERED = {  # by set: the unit, and how far neighbouring outcomes are apart in it
    "delays": ("minutes", (DELAY.high - DELAY.low) / len(DELAY.names)),
    "cholesterol": ("mg/dl", (HDL.high - HDL.low) / len(HDL.names)),
    "ratings": ("stars", 0.5),
    "lectures": ("points", 1.0),
}
ORDERED_MECHANISMS = ("transport", "optimal", "mollifier", "laplace")


@dataclass(frozen=True)
class Distances:
    """Wasserstein-1 distances of one mechanism: mean and largest of the real clients, and of those that could hold one outcome only."""

    mean: float
    largest: float
    single_outcome: float


@dataclass(frozen=True)
class OrderedSet:
    """One set at one budget; and one of its clients, the one in the middle by the transport sampler, with its laws by mechanism."""

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
    distances: dict[str, Distances]
    shown: tuple[float, ...]
    shown_outputs: dict[str, tuple[float, ...]]


def clamped_laplace(size: int, epsilon: float) -> Floats:
    """The law of every outcome after discretised Laplace noise of scale (size - 1)/epsilon, what falls outside put to the nearest end."""
    shrink = np.exp(-epsilon / (size - 1))
    steps = np.abs(np.arange(size)[:, None] - np.arange(size))
    law = (1.0 - shrink) / (1.0 + shrink) * shrink**steps
    for end in (0, size - 1):
        law[:, end] = shrink ** steps[:, end] / (1.0 + shrink)
    return np.asarray(law)


@final
@dataclass(frozen=True)
class OrderedComparison:
    """Distances on every ordered set that is at hand. A unit is one set at one epsilon."""

    name: str = "ordered"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    quick: bool = False
    seed: int | None = None
    most: int | None = None  # clients of a set, for quick runs
    sets: tuple[ClientSet, ...] = tuple(one for one in CLIENT_SETS if one.name in ORDERED)
    computes: str = "how far each client's sample law is from its own on an ordered axis, by mechanism"
    record: type[OrderedSet] = OrderedSet

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "most": self.most, "sets": [one.name for one in self.sets]}

    @property
    def units(self) -> Sequence[str]:
        return [f"{name}/{epsilon:g}" for name in names_present(self.sets) for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[OrderedSet]]:
        for unit in units:
            name, epsilon = unit.split("/")
            declared = next(one for one in self.sets if one.name == name)
            yield [_compare_mechanisms(unit, declared, declared.laws[: self.most], float(epsilon))]


def _compare_mechanisms(unit: str, declared: ClientSet, laws: Floats, epsilon: float) -> OrderedSet:
    measure, step = ORDERED[declared.name]
    size = laws.shape[1]
    transport = TransportSampler(step * np.arange(size), epsilon=epsilon)
    noise = clamped_laplace(size, epsilon)
    outputs = {
        "transport": transport.output,
        "optimal": OptimalSampler(Simplex(size), epsilon=epsilon).output,
        "mollifier": MollifierSampler(Simplex(size), epsilon=epsilon).output,
        "laplace": lambda p: p @ noise,
    }
    found, own, singles = {}, {}, np.eye(size)
    for name, output in outputs.items():
        own[name] = output(laws)
        away = np.asarray(transport.distance(laws, own[name]))
        alone = float(np.max(transport.distance(singles, output(singles))))
        found[name] = Distances(float(away.mean()), float(away.max()), alone)
    by_transport = np.asarray(transport.distance(laws, own["transport"]))
    shown = int(np.argsort(by_transport, kind="stable")[len(laws) // 2])
    return OrderedSet(
        unit=unit,
        set=declared.name,
        title=declared.title,
        who=declared.clients,
        measure=measure,
        step=step,
        places=_places(declared, step),
        clients=len(laws),
        epsilon=epsilon,
        certified=transport.bound,
        distances=found,
        shown=tuple(laws[shown].tolist()),
        shown_outputs={name: tuple(q[shown].tolist()) for name, q in own.items()},
    )


def _places(declared: ClientSet, step: float) -> tuple[float, ...]:
    """Where the outcomes lie: the middles of cells, or the values themselves."""
    intervals = {"delays": DELAY, "cholesterol": HDL}
    if declared.name in intervals:
        low = intervals[declared.name].low + step / 2.0
        return tuple(low + step * cell for cell in range(len(declared.outcomes)))
    return tuple(float(value) for value in declared.outcomes)
