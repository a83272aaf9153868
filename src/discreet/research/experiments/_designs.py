"""Designs measured on unseen real clients: against other samplers, by the worst case they keep, under shifts, and learned privately.

`DesignComparison`: for each set, epsilon and split, a design is made on a fifth of the clients by the rules of `discreet.design._smoothing`
and measured on the others, beside Q*, the linear mechanism, the mollifier and the best uniform floor (its spread tuned on the examples).
The certified floor is recorded too: a lower bound for every sampler, even one made for those very clients.

`KeepComparison`: for each `keep` from 1 to almost 0, the mean KL over clients outside the design, its worst case over all clients, and the
certified lower bound on the mean of any sampler that keeps as much, even one made for those very clients.

`ShiftComparison`: designs for clients of another kind than the examples: a later period, another group, another region. It records the mean
KL of Q*, the mollifier, the best uniform floor, the design made on the first kind and the design made on a fifth of the second kind. All
are measured on the other four fifths of the second kind, with their certified floor.

`LearnedComparison`: each client of a set sends one sample, in a random order. The first twentieth releases one bit each about its own
spread. The next tenth releases one sample each by a sampler without learning: a design for the prior, or one of Q* and the mollifier. The
others, the *served*, come in five batches. Before each batch a design is learned from everything released so far
(`discreet.design._learned`), and the batch releases by the design, or by the safe sampler if the samples are too few. Costs are mean KL
over the served, each under the sampler of its own batch. The *gap* is from the better of Q* and the mollifier to the certified floor of the
served, a lower bound for every sampler. With `times` above 1, that many times the clients are drawn from the set with replacement. Their
samples are then independent draws from the average output distribution of the set, and costs are exact expectations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
    Learned,
    Smoother,
    Smoothing,
    concentration_law,
    design,
    learn,
    several_divergences_of_clients,
)
from discreet.divergences import divergence
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, MollifierSampler, OptimalSampler, Sampler
from discreet.research.experiments import exact_budget_text
from discreet.research.experiments._population import draw_raw_outcomes
from discreet.research.experiments.client_sets import (
    CLIENT_SETS,
    SHIFTS,
    ClientSet,
    SetComparison,
    Shift,
    available_set_names,
    iterate_set_and_laws_of_units,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DESIGN_RIVALS = (*MECHANISMS, "uniform")


def mean_costs_by_divergence(laws: Floats, sampler: Sampler[FiniteFamily]) -> dict[str, float]:
    """The mean divergence of each kind over clients."""
    return {name: float(costs.mean()) for name, costs in several_divergences_of_clients(laws, sampler).items()}


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
    description: str = "mean divergences of designs on clients they were not made on, and what no sampler can go below"
    record_type: type[DesignedSplit] = DesignedSplit

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
            "sets": self.outcome_count_by_set,
        }

    @property
    def unit_name_suffixes(self) -> Sequence[object]:
        return range(self.splits)

    def compute_unit_record(
        self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float, part: str
    ) -> DesignedSplit:
        """Everything recorded of one split."""
        split = int(part)
        examples, clients = split_examples_and_clients(laws[: self.clients], self.share, self.seed or 0, split)
        family = Simplex(laws.shape[1])
        smoother = Smoother(epsilon, self.keep)
        choice = smoother.choose_sampler_and_smoothing(examples)
        sampler = choice.sampler
        floor = design(family, epsilon=epsilon, clients=clients, keep=0.0)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            **{name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()},
            "uniform": smoother.best_uniform_floor_sampler(examples),
            "designed": sampler,
        }
        return DesignedSplit(
            unit=unit,
            set=client_set.name,
            title=client_set.title,
            epsilon=epsilon,
            split=split,
            examples=len(examples),
            served=len(clients),
            parts=smoothing_shares_as_tuple(choice.smoothing),
            means={kind: mean_costs_by_divergence(clients, rival) for kind, rival in samplers.items()},
            floor=floor.bound,
            gap=(floor.value - floor.bound) / floor.value if floor.value else 0.0,
            exact_gap=exact_cost_excess_over_lower_bound(floor, clients) if split == 0 and not self.is_quick else None,
            kept=(1.0 - float(sampler.risk("tv"))) / (1.0 - float(samplers[OptimalSampler.name].risk("tv"))),
        )


def smoothing_shares_as_tuple(smoothing: Smoothing) -> tuple[float, ...] | None:
    """The division of the weight: (redrawn examples, point masses), for the model also the share of the safe floor; None for no design."""
    parts = smoothing.redrawn, smoothing.points
    return {"parts": parts, "model": (*parts, HALF)}.get(smoothing.rule)


def split_examples_and_clients(laws: Floats, share: float, seed: int, split: int) -> tuple[Floats, Floats]:
    """Examples and clients to serve."""
    order = np.random.default_rng([seed, split]).permutation(len(laws))
    number = max(FOLDS, round(share * len(laws)))
    return laws[order[:number]], laws[order[number:]]


def exact_cost_excess_over_lower_bound(kl_design: Design, laws: Floats) -> float:
    """The relative excess of a KL design's mean over its floor, from rationals alone.

    The mean is that of the integers of the draw. The distributions are the given floats (the floor's own, each divided by its sum), and
    logarithms are bounded from above.
    """
    examples, weights = kl_design.certificate.examples, kl_design.sampler.weights(laws)
    total = sum(map(int, weights[0]))
    mean = Fraction(0)
    outcome = examples.seen_outcomes[examples.outcome]
    for client, x, p in zip(examples.client_of_entry.tolist(), outcome.tolist(), examples.mass.tolist(), strict=True):
        ratio = Fraction(p) * total / int(weights[client, x])
        mean += Fraction(p) * (log_bracket(ratio)[1] if ratio >= 1 else -log_bracket(1 / ratio)[0])
    mean /= len(examples)
    return float((mean - kl_design.certificate.exact()) / mean)


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

    def relative_gain_over_optimal(self, keep: float) -> float:
        """The relative reduction of the mean KL compared with Q*, by the design with this `keep`."""
        return 1.0 - self._result_with_keep(keep).mean / self.mean

    def gain_bound_of_any_sampler(self, keep: float) -> float:
        """The proved largest gain of any sampler that keeps this share of the worst case."""
        return 1.0 - self._result_with_keep(keep).floor / self.mean

    def _result_with_keep(self, keep: float) -> KeepResult:
        return next(entry for entry in self.kept if entry.keep == keep)


@final
@dataclass(frozen=True)
class KeepComparison(SetComparison):
    """The bundled sets, designed on a fifth of their clients and measured on the others."""

    name: str = "keeps"
    share: float = 0.2
    sets: tuple[ClientSet, ...] = tuple(client_set for client_set in CLIENT_SETS if client_set.bundled)
    description: str = (
        "the mean KL that designs reach while part of the best worst case is kept, and the least there could be"
    )
    record_type: type[KeptAtBudget] = KeptAtBudget

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "share": self.share,
            "keeps": KEEPS,
            "sets": [client_set.name for client_set in self.sets],
        }

    def compute_unit_record(self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float) -> KeptAtBudget:
        """Everything recorded of one set at one budget."""
        examples, clients = split_examples_and_clients(laws, self.share, self.seed or 0, 0)
        family = Simplex(len(client_set.outcomes))
        optimal = OptimalSampler(family, epsilon=epsilon)
        keep_results = []
        for keep in KEEPS:
            smoothed_design = Smoother(epsilon, keep).design_with_smoothing_parts(examples, SMOOTHING)
            floor = design(family, epsilon=epsilon, clients=clients, keep=keep).bound
            keep_results.append(
                KeepResult(
                    keep,
                    mean_costs_by_divergence(clients, smoothed_design.sampler)["kl"],
                    float(smoothed_design.worst("kl")),
                    floor,
                )
            )
        mean, worst = mean_costs_by_divergence(clients, optimal)["kl"], float(optimal.risk("kl"))
        return KeptAtBudget(unit, client_set.name, client_set.title, epsilon, mean, worst, tuple(keep_results))


SAFE = (OptimalSampler.name, MollifierSampler.name, "uniform")


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
    def smallest_mean_kl_without_design(self) -> float:
        """The mean KL of the best sampler without a design."""
        return min(self.means[name] for name in SAFE)

    @property
    def is_design_better(self) -> bool:
        """Whether the design made elsewhere is better than every sampler without a design."""
        return self.means["elsewhere"] < self.smallest_mean_kl_without_design

    @property
    def closed_gap_share(self) -> float:
        """The share of the gap between the best of those and the floor that the design made elsewhere closes; negative if it is worse."""
        safe = self.smallest_mean_kl_without_design
        return (safe - self.means["elsewhere"]) / (safe - self.floor)


@final
@dataclass(frozen=True)
class ShiftComparison:
    """Every shift at every budget."""

    name: str = "shifts"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    seed: int | None = 7
    is_quick: bool = False
    shifts: tuple[Shift, ...] = SHIFTS
    description: str = "mean KL of designs on clients of another kind than the examples"
    record_type: type[ShiftedDesign] = ShiftedDesign

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "shifts": [shift.name for shift in self.shifts]}

    @property
    def work_unit_names(self) -> Sequence[str]:
        return [
            f"{name}/{exact_budget_text(epsilon)}"
            for name in available_set_names(self.shifts)
            for epsilon in self.epsilons
        ]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[ShiftedDesign]]:
        for shift, (examples, others), (epsilon,) in iterate_set_and_laws_of_units(units, self.shifts):
            yield [self.compute_unit_record(shift, examples, others, float(epsilon))]

    def compute_unit_record(self, shift: Shift, examples: Floats, others: Floats, epsilon: float) -> ShiftedDesign:
        """Everything recorded of one shift at one budget."""
        home_examples, clients = split_examples_and_clients(others, 0.2, self.seed or 0, 0)
        family = Simplex(clients.shape[1])
        smoother = Smoother(epsilon)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            **{kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)},
            "uniform": smoother.best_uniform_floor_sampler(examples),
            "elsewhere": smoother.design_with_smoothing_parts(examples, SMOOTHING).sampler,
            "home": smoother.design_with_smoothing_parts(home_examples, SMOOTHING).sampler,
        }
        return ShiftedDesign(
            unit=f"{shift.name}/{exact_budget_text(epsilon)}",
            shift=shift.name,
            title=shift.title,
            made_on=shift.made_on,
            kind=shift.served,
            epsilon=epsilon,
            examples=len(examples),
            served=len(clients),
            means={name: mean_costs_by_divergence(clients, sampler)["kl"] for name, sampler in samplers.items()},
            floor=design(family, epsilon=epsilon, clients=clients, keep=0.0).bound,
        )


BATCHES = 5
BITS, FIRST = 0.05, 0.10  # shares of the clients


@dataclass(frozen=True)
class ServedBatch:
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
    batches: tuple[ServedBatch, ...]

    @property
    def best_cost_without_design(self) -> float:
        """The cost of the better of Q* and the mollifier."""
        return min(self.optimal, self.mollifier)

    @property
    def closed_gap_share(self) -> float:
        """The closed share of the gap between the better of the two and the floor."""
        return (self.best_cost_without_design - self.learned) / (self.best_cost_without_design - self.floor)

    @property
    def relative_excess_over_no_design(self) -> float:
        """The relative cost above the better of the two; negative if it is smaller."""
        return self.learned / self.best_cost_without_design - 1.0


@final
@dataclass(frozen=True)
class LearnedComparison(SetComparison):
    """Designs learned privately, batch after batch. A unit is one set at one epsilon and number of clients, in one order."""

    name: str = "learned"
    times: tuple[int, ...] = (1, 10, 100)
    splits: int = 3
    description: str = "mean KL of clients served by designs that were learned from private samples of earlier clients"
    record_type: type[LearnedRun] = LearnedRun

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "times": self.times,
            "splits": self.splits,
            "batches": BATCHES,
            "shares": [BITS, FIRST],
            "sets": self.outcome_count_by_set,
        }

    @property
    def unit_name_suffixes(self) -> Sequence[object]:
        splits = {times: range(self.splits if times == 1 else 1) for times in self.times}
        return [f"{times}/{split}" for times, orders in splits.items() for split in orders]

    def compute_unit_record(
        self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float, times_part: str, split_part: str
    ) -> LearnedRun:
        """Everything recorded of one unit."""
        times, split = int(times_part), int(split_part)
        rng = self.seeded_generator_of_unit(unit)
        crowd = _ClientQueue(laws, rng) if times == 1 else _ResampledClients(laws, rng, times)
        family, bit = Simplex(laws.shape[1]), OptimalSampler(Simplex(2), epsilon=epsilon)
        spread = bit, crowd.draw_and_count_samples(crowd.take_next_share_of_clients(BITS), bit, of_spread=True)
        first = learn(family, epsilon=epsilon).sampler
        rounds: list[tuple[Sampler[Any], Any]] = [
            (first, crowd.draw_and_count_samples(crowd.take_next_share_of_clients(FIRST), first))
        ]
        share = (1.0 - BITS - FIRST) / BATCHES
        batches, served_laws = [], []
        for _ in range(BATCHES):
            learning_result = learn(family, epsilon=epsilon, rounds=rounds, spread=spread)
            batch_laws = crowd.take_next_share_of_clients(share)
            batches.append(_measure_costs_of_served_batch(learning_result, batch_laws, family, epsilon))
            rounds.append((learning_result.sampler, crowd.draw_and_count_samples(batch_laws, learning_result.sampler)))
            served_laws.append(batch_laws)
        sizes = np.array([len(batch_laws) for batch_laws in served_laws], dtype=np.float64)
        means = {
            name: float(sizes @ [getattr(batch, name) for batch in batches] / sizes.sum())
            for name in ("cost", "optimal", "mollifier")
        }
        clients = np.vstack(served_laws) if times == 1 else laws
        return LearnedRun(
            unit=unit,
            set=client_set.name,
            title=client_set.title,
            epsilon=epsilon,
            times=times,
            split=split,
            clients=times * len(laws),
            outcomes=family.size,
            learned=means["cost"],
            optimal=means["optimal"],
            mollifier=means["mollifier"],
            floor=design(family, epsilon=epsilon, clients=clients, keep=0.0).bound,
            batches=tuple(batches),
        )


def _measure_costs_of_served_batch(learned: Learned, laws: Floats, family: Simplex, epsilon: float) -> ServedBatch:
    safe = {kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)}
    sampler_name = "designed" if learned.published else learned.sampler.name
    costs = {
        name: _mean_kl_cost(laws, sampler) for name, sampler in {**safe, "designed": learned.design.sampler}.items()
    }
    return ServedBatch(
        learned.published,
        sampler_name,
        learned.better,
        learned.gain,
        learned.concentration,
        costs[sampler_name],
        **costs,
    )


def _mean_kl_cost(laws: Floats, sampler: Sampler[Any]) -> float:
    return float(np.mean(divergence("kl")(laws, sampler.output(laws))))


class _ClientQueue:
    """The clients of a set in a random order, each once."""

    def __init__(self, laws: Floats, rng: np.random.Generator) -> None:
        self._laws, self._rng, self._share = laws[rng.permutation(len(laws))], rng, 0.0

    def take_next_share_of_clients(self, share: float) -> Floats:
        """The distributions of the next share of the clients."""
        start, self._share = self._share, self._share + share
        ends = [round(end * len(self._laws)) for end in (start, self._share)]
        return self._laws[ends[0] : ends[1]]

    def draw_and_count_samples(self, laws: Floats, sampler: Sampler[Any], *, of_spread: bool = False) -> Integers:
        """The count of each outcome released by these clients, one sample each; seeded, so not private."""
        client_laws = concentration_law(laws) if of_spread else laws
        outcomes = draw_raw_outcomes(np.asarray(sampler.output(client_laws)), self._rng)
        return np.bincount(outcomes, minlength=client_laws.shape[1])


class _ResampledClients:
    """`times` as many clients as in a set, drawn from it with replacement; the set itself represents every share of them."""

    def __init__(self, laws: Floats, rng: np.random.Generator, times: int) -> None:
        self._laws, self._rng, self._number, self._asked = laws, rng, times * len(laws), 0

    def take_next_share_of_clients(self, share: float) -> Floats:
        """The set, for as many clients as the share contains."""
        self._asked = round(share * self._number)
        return self._laws

    def draw_and_count_samples(self, laws: Floats, sampler: Sampler[Any], *, of_spread: bool = False) -> Integers:
        """The count of each outcome released by the clients of the last share."""
        client_laws = concentration_law(laws) if of_spread else laws
        average = np.asarray(sampler.output(client_laws)).mean(axis=0)
        return np.asarray(self._rng.multinomial(self._asked, average / average.sum()))
