"""Designs learned from private samples, and the population estimated from designed samples with public examples.

`LearnedComparison`: each client of a set sends one sample, in a random order. The first twentieth releases one bit each about its own
spread. The next tenth releases one sample each by a sampler without learning: a design for the prior, or one of Q* and the mollifier. The
others, the *served*, come in five batches. Before each batch a design is learned from everything released so far
(`discreet.design._learned`), and the batch releases by the design, or by the safe sampler if the samples are too few. Costs are mean KL
over the served, each under the sampler of its own batch. The *gap* is from the better of Q* and the mollifier to the certified floor of the
served, a lower bound for every sampler. With `times` above 1, that many times the clients are drawn from the set with replacement. Their
samples are then independent draws from the average output distribution of the set, and costs are exact expectations.

`ReweightedComparison`: for each set and epsilon, over seeded splits, a fifth of the clients are public examples. A design is made on them;
the other four fifths, the *served*, release one sample each by it. The target is the average distribution of the served. The comparison has
these estimates: the raw samples, biased towards the reference; the examples reweighted to explain the samples
(`discreet.estimation._reweighting`); the samples less the bias of the reweighted examples; the examples alone; and those that need no
examples: block reports (`ReportSampler`), subset selection, unary encoding and local hashing on one raw draw of each served client, and
linear samples inverted, all projected onto the simplex, and samples of Q* and the mollifier as they are.

Examples are drawn at random, so that they are like the served, or skewed: a client becomes an example with odds e^z, z its coordinate along
the first principal axis of the set in standard deviations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.design import Learned, concentration_law, design, learn
from discreet.divergences import divergence
from discreet.estimation import inversion_of, nearest_law, reweight_examples
from discreet.families import Simplex
from discreet.mechanisms import MECHANISMS, LinearSampler, MollifierSampler, OptimalSampler, ReportSampler, Sampler
from discreet.research.experiments import _population as population
from discreet.research.experiments._population import MeanEstimate
from discreet.research.experiments.client_sets import ClientSet, SetComparison, each_with_laws

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BATCHES = 5
BITS, FIRST = 0.05, 0.10  # shares of the clients


@dataclass(frozen=True)
class Batch:
    """Clients served together: the decision before them, and their mean costs."""

    published: bool
    sampler: str
    better: float
    gain: float
    concentration: float
    cost: float
    optimal: float
    mollifier: float
    designed: float


@dataclass(frozen=True)
class LearnedRun:
    """One set at one budget and number of clients, in one order: mean KL over the served, and the floor."""

    unit: str
    set: str
    title: str
    epsilon: float
    times: int
    split: int
    clients: int
    outcomes: int
    learned: float
    optimal: float
    mollifier: float
    floor: float
    batches: tuple[Batch, ...]

    @property
    def safe(self) -> float:
        """The cost of the better of Q* and the mollifier."""
        return min(self.optimal, self.mollifier)

    @property
    def gap_share(self) -> float:
        """The closed share of the gap between the better of the two and the floor."""
        return (self.safe - self.learned) / (self.safe - self.floor)

    @property
    def worse(self) -> float:
        """The relative cost above the better of the two; negative if it is smaller."""
        return self.learned / self.safe - 1.0


@final
@dataclass(frozen=True)
class LearnedComparison(SetComparison):
    """Designs learned privately, batch after batch. A unit is one set at one epsilon and number of clients, in one order."""

    name: str = "learned"
    times: tuple[int, ...] = (1, 10, 100)
    splits: int = 3
    computes: str = "mean KL of clients served by designs that were learned from private samples of earlier clients"
    record: type[LearnedRun] = LearnedRun

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "times": self.times,
            "splits": self.splits,
            "batches": BATCHES,
            "shares": [BITS, FIRST],
            "sets": self.set_sizes,
        }

    @property
    def units(self) -> Sequence[str]:
        splits = {times: range(self.splits if times == 1 else 1) for times in self.times}
        return self.units_at(*(f"{times}/{split}" for times, each in splits.items() for split in each))

    def results(self, units: Sequence[str]) -> Iterator[list[LearnedRun]]:
        for unit, (declared, laws, (epsilon, times, split)) in zip(
            units, each_with_laws(units, self.sets), strict=True
        ):
            yield [self.row(unit, declared, laws, float(epsilon), int(times), int(split))]

    def row(self, unit: str, declared: ClientSet, laws: Floats, epsilon: float, times: int, split: int) -> LearnedRun:
        """Everything recorded of one unit."""
        rng = self.unit_chances(unit)
        crowd = _ClientQueue(laws, rng) if times == 1 else _ResampledClients(laws, rng, times)
        family, bit = Simplex(laws.shape[1]), OptimalSampler(Simplex(2), epsilon=epsilon)
        spread = bit, crowd.samples(crowd.next(BITS), bit, of_spread=True)
        first = learn(family, epsilon=epsilon).sampler
        rounds: list[tuple[Sampler[Any], Any]] = [(first, crowd.samples(crowd.next(FIRST), first))]
        share = (1.0 - BITS - FIRST) / BATCHES
        batches, held = [], []
        for _ in range(BATCHES):
            found = learn(family, epsilon=epsilon, rounds=rounds, spread=spread)
            those = crowd.next(share)
            batches.append(_batch_results(found, those, family, epsilon))
            rounds.append((found.sampler, crowd.samples(those, found.sampler)))
            held.append(those)
        sizes = np.array([len(those) for those in held], dtype=np.float64)
        means = {
            name: float(sizes @ [getattr(one, name) for one in batches] / sizes.sum())
            for name in ("cost", "optimal", "mollifier")
        }
        served = np.vstack(held) if times == 1 else laws
        return LearnedRun(
            unit=unit,
            set=declared.name,
            title=declared.title,
            epsilon=epsilon,
            times=times,
            split=split,
            clients=times * len(laws),
            outcomes=family.size,
            learned=means["cost"],
            optimal=means["optimal"],
            mollifier=means["mollifier"],
            floor=design(family, epsilon=epsilon, clients=served, keep=0.0).bound,
            batches=tuple(batches),
        )


def _batch_results(found: Learned, laws: Floats, family: Simplex, epsilon: float) -> Batch:
    safe = {kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)}
    used = "designed" if found.published else found.sampler.name
    costs = {name: _mean_kl_cost(laws, sampler) for name, sampler in {**safe, "designed": found.design.sampler}.items()}
    return Batch(found.published, used, found.better, found.gain, found.concentration, costs[used], **costs)


def _mean_kl_cost(laws: Floats, sampler: Sampler[Any]) -> float:
    return float(np.mean(divergence("kl")(laws, sampler.output(laws))))


class _ClientQueue:
    """The clients of a set in a random order, each once."""

    def __init__(self, laws: Floats, rng: np.random.Generator) -> None:
        self._laws, self._rng, self._share = laws[rng.permutation(len(laws))], rng, 0.0

    def next(self, share: float) -> Floats:
        """The distributions of the next share of the clients."""
        start, self._share = self._share, self._share + share
        ends = [round(end * len(self._laws)) for end in (start, self._share)]
        return self._laws[ends[0] : ends[1]]

    def samples(self, laws: Floats, sampler: Sampler[Any], *, of_spread: bool = False) -> Integers:
        """The count of each outcome released by these clients, one sample each; seeded, so not private."""
        held = concentration_law(laws) if of_spread else laws
        drawn = population.raw_draws(np.asarray(sampler.output(held)), self._rng)
        return np.bincount(drawn, minlength=held.shape[1])


class _ResampledClients:
    """`times` as many clients as in a set, drawn from it with replacement; the set itself represents every share of them."""

    def __init__(self, laws: Floats, rng: np.random.Generator, times: int) -> None:
        self._laws, self._rng, self._number, self._asked = laws, rng, times * len(laws), 0

    def next(self, share: float) -> Floats:
        """The set, for as many clients as the share contains."""
        self._asked = round(share * self._number)
        return self._laws

    def samples(self, laws: Floats, sampler: Sampler[Any], *, of_spread: bool = False) -> Integers:
        """The count of each outcome released by the clients of the last share."""
        held = concentration_law(laws) if of_spread else laws
        average = np.asarray(sampler.output(held)).mean(axis=0)
        return np.asarray(self._rng.multinomial(self._asked, average / average.sum()))


REWEIGHTED_BUDGETS = (0.5, 1.0, 2.0, 4.0)
SKEWS = {"random": 0.0, "skewed": 1.0}
KEEP = 0.01


@dataclass(frozen=True)
class ReweightedSet:
    """One set at one budget with one way to draw examples: mean TV and squared errors by estimate, to the average of the served."""

    unit: str
    set: str
    title: str
    epsilon: float
    drawn: str
    examples: int
    served: int
    repetitions: int
    errors: dict[str, MeanEstimate]
    squared: dict[str, MeanEstimate]


@final
@dataclass(frozen=True)
class ReweightedComparison(SetComparison):
    """Designed samples, raw and with reweighted examples, against frequency oracles. A unit is one set at one epsilon."""

    name: str = "reweighted"
    epsilons: tuple[float, ...] = REWEIGHTED_BUDGETS
    repetitions: int = 10
    share: float = 0.2
    computes: str = (
        "the error of the estimated average law of clients who are no examples, from designed samples and from oracles"
    )
    record: type[ReweightedSet] = ReweightedSet

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "repetitions": self.repetitions,
            "share": self.share,
            "keep": KEEP,
            "skews": SKEWS,
            "without examples": ["reports", *MECHANISMS],
            "sets": self.set_sizes,
        }

    @property
    def units(self) -> Sequence[str]:
        return self.units_at(*SKEWS)

    def results(self, units: Sequence[str]) -> Iterator[list[ReweightedSet]]:
        for unit, (declared, laws, (epsilon, drawn)) in zip(units, each_with_laws(units, self.sets), strict=True):
            yield [self.row(unit, declared, laws, float(epsilon), drawn)]

    def row(self, unit: str, declared: ClientSet, laws: Floats, epsilon: float, drawn: str) -> ReweightedSet:
        """Everything recorded of one set at one budget."""
        rng = self.unit_chances(unit)
        axis = SKEWS[drawn] * _principal_coordinates(laws)
        number = max(1, round(self.share * len(laws)))
        found: dict[str, dict[str, list[float]]] = {"tv": {}, "mse": {}}
        reporting = rng.spawn(1)[0]  # the draws of others stay as they are
        for _ in range(self.repetitions):
            order = np.argsort(-(axis + rng.gumbel(size=len(laws))))
            examples, served = laws[order[:number]], laws[order[number:]]
            estimates, target = _population_estimates(examples, served, epsilon, rng)
            estimates |= _estimates_without_examples(served, epsilon, reporting)
            for name, law in estimates.items():
                away = population.estimate_distances(law, target)
                for measure, each in found.items():
                    each.setdefault(name, []).append(float(away[measure]))
        errors, squared = (
            {name: MeanEstimate(float(np.mean(one)), _standard_error(one)) for name, one in each.items()}
            for each in found.values()
        )
        served_number = len(laws) - number
        return ReweightedSet(
            unit,
            declared.name,
            declared.title,
            epsilon,
            drawn,
            number,
            served_number,
            self.repetitions,
            errors,
            squared,
        )


def _population_estimates(
    examples: Floats, served: Floats, epsilon: float, rng: np.random.Generator
) -> tuple[dict[str, Floats], Floats]:
    """Every estimate of the average served client, and that client."""
    k = served.shape[1]
    sampler = design(Simplex(k), epsilon=epsilon, clients=examples, keep=KEEP).sampler
    counts = np.bincount(population.raw_draws(np.asarray(sampler.output(served)), rng), minlength=k)
    found = reweight_examples([(sampler, counts)], examples)
    raw = population.raw_draws(served, rng)
    oracles = {
        "subset": population.SubsetSelection(k, epsilon=epsilon),
        "unary": population.UnaryEncoding(k, epsilon=epsilon),
        "hashing": population.LocalHashing(k, epsilon=epsilon),
    }
    return {
        "samples": counts / counts.sum(),
        "reweighted": found.law,
        "debiased": found.debiased,
        "examples": examples.mean(axis=0),
        **{name: nearest_law(oracle.estimate(raw, rng)) for name, oracle in oracles.items()},
    }, served.mean(axis=0)


def _estimates_without_examples(served: Floats, epsilon: float, rng: np.random.Generator) -> dict[str, Floats]:
    """Block reports, and samples of the mechanisms that take no examples."""
    family = Simplex(served.shape[1])
    found = {
        "reports": population.reported_shares(
            ReportSampler(family, epsilon=epsilon), population.raw_draws(served, rng), rng
        )
    }
    for name, kind in MECHANISMS.items():
        sampler = kind(family, epsilon=epsilon)
        drawn = population.raw_draws(np.asarray(sampler.output(served)), rng)
        found[name] = np.bincount(drawn, minlength=family.size) / len(served)
        if isinstance(sampler, LinearSampler):
            found[name] = np.asarray(inversion_of(sampler).low(family.reference, found[name]))
    return {name: nearest_law(law) for name, law in found.items()}


def _principal_coordinates(laws: Floats) -> Floats:
    """Each client's coordinate along the axis of largest variance, in standard deviations."""
    centred = laws - laws.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    along = centred @ vectors[:, -1]
    along *= np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])  # fixes the sign of the eigenvector
    return np.asarray(along / max(float(along.std()), 1e-300))


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
