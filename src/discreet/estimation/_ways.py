"""Ways to spend a budget, compared: samplers on example clients, rehearsals of a whole collection, one sample of each client or several.

`compare_samplers` gives the mean, the median and the largest divergence over the examples, beside the worst case of all clients.
`rehearse_collections` draws clients from the examples, lets them release, estimates the population, and compares it with the known truth.
`compare_population_ways` compares what reports, values and samples with reweighted examples tell of it: one half of the examples is public,
the other half are the clients. Randomness is seeded and no sample leaves: this is for planning, and not private. The examples must not be
the data to protect.

**One sample or several** (`ways_to_spend`). There are four ways to spend epsilon on a client. *Single*: one sample at the whole budget.
*Joint*: J samples drawn together (`JointSampler`), as `release(p, size=J)` does. *Product*: the same around the product. *Composed*: J
samples at epsilon/J each.

There are three purposes: one sample looks drawn from its client, TV(P, distribution of one sample); all J together look like J draws from
it, TV(P^J, distribution of the samples); the population is estimated, the expected TV of its estimate.

The last purpose uses linear samples, whose estimate is unbiased with a variance inversely proportional to gamma^2 n J. As epsilon falls,
gamma falls about in proportion, so J samples at epsilon/J have about J^2/J = J times the variance of one at epsilon: more samples carry
less information. `rounds_cost` is the factor for an agreement.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.agreement import Agreement, FamilyTerms
from discreet.design import Design, design
from discreet.divergences import FDivergence, divergence
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.estimation._counting import bins_of_about_equal_reference_mass, line_cells_of_sampler
from discreet.estimation._from_releases import population, reported_population
from discreet.estimation._inference import reweight_examples
from discreet.estimation._planning import MOST_CLIENTS, outlook
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation
from discreet.families import Bounds, ContinuousFamily, FiniteFamily, Simplex, as_renormalised_laws
from discreet.mechanisms import (
    AROUND,
    MECHANISMS,
    AnyFamily,
    CellAtoms,
    JointSampler,
    LinearSampler,
    Multisets,
    OptimalSampler,
    ReportSampler,
    Sampler,
)
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import constants_of_box_for_privacy
from discreet.release import TOTAL

Floats = NDArray[np.float64]

_BLOCK = 1 << 22  # numbers in memory at a time
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 24
MOST_REHEARSED = 10**6  # clients whose reports are drawn


@dataclass(frozen=True)
class SamplerCost:
    """A sampler's divergences over the examples (mean, median, largest), and its worst case over all clients."""

    name: str
    mean: float
    median: float
    largest: float
    worst: float


def compare_samplers(designed: Design, counts: Any) -> list[SamplerCost]:
    """Q*, the linear mechanism, the mollifier, the best uniform floor and a design, over clients given as counts (n, k)."""
    size, epsilon, f = designed.family.size, designed.epsilon, designed.divergence
    family = Simplex(size)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        **{name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()},
        "best uniform": _sampler_with_best_uniform_floor(counts, epsilon, f),
        "designed": designed.sampler,
    }
    return [_sampler_cost(name, sampler, counts, f) for name, sampler in samplers.items()]


def _sampler_with_best_uniform_floor(counts: Any, epsilon: float, f: FDivergence) -> Sampler[FiniteFamily]:
    """The sampler with a uniform floor of the best mass b, by golden section: the mean is convex in b (`discreet.design._floors`, T1).

    b = k/(s e^eps + k - s) is the floor for clients with s outcomes each.
    """
    family = Simplex(counts.shape[1])
    exponent = min(epsilon, LARGEST_FLOAT_EXPONENT)
    k, growth = family.size, math.exp(exponent)

    def sampler_with_floor_mass(b: float) -> Sampler[FiniteFamily]:
        spread = (k / b - k) / math.expm1(exponent)
        return OptimalSampler(family.spread(min(max(spread, 1.0), k * (1.0 - 1e-9))), epsilon=epsilon)

    def mean_divergence(b: float) -> float:
        return float(_client_divergences(sampler_with_floor_mass(b), counts, f).mean())

    low, high = 1.0 / growth, k / (growth + k - 1.0)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [mean_divergence(b) for b in inner]
    for _ in range(_STEPS):
        if values[0] <= values[1]:
            high, inner, values = inner[1], [inner[1] - _GOLDEN * (inner[1] - low), inner[0]], [math.nan, values[0]]
            values[0] = mean_divergence(inner[0])
        else:
            low, inner, values = inner[0], [inner[1], inner[0] + _GOLDEN * (high - inner[0])], [values[1], math.nan]
            values[1] = mean_divergence(inner[1])
    return sampler_with_floor_mass(inner[0] if values[0] <= values[1] else inner[1])


def _client_divergences(sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> Floats:
    """The divergence of every client (a row of counts) from its output distribution."""
    divergences = [np.atleast_1d(f(laws, sampler.output(laws))) for laws in _iterate_client_laws_in_batches(counts)]
    return np.concatenate(divergences)


def _sampler_cost(name: str, sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> SamplerCost:
    costs = _client_divergences(sampler, counts, f)
    return SamplerCost(name, float(costs.mean()), float(np.median(costs)), float(costs.max()), float(sampler.risk(f)))


def _iterate_client_laws_in_batches(counts: Any) -> Iterator[Floats]:
    """Distributions (some, k) of the clients, in blocks that fit in memory."""
    step = max(1, _BLOCK // counts.shape[1])
    for start in range(0, counts.shape[0], step):
        dense = counts[start : start + step].toarray()
        yield dense / dense.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Rehearsal:
    """Averages over repetitions. `client_tv`: mean TV from a client's distribution to its output distribution; None for reports.

    `largest` and `total`: largest error of a share and TV distance of the estimated distribution (the nearest one; for projections, the
    samples themselves); `covered`: how often a share's interval covered the truth; `width`: mean half-width of these intervals.
    """

    client_tv: float | None
    largest: float
    total: float
    covered: float
    width: float


def rehearse_collections(
    sampler: Sampler[AnyFamily] | ReportSampler,
    laws: ArrayLike,
    *,
    clients: int,
    repetitions: int = 20,
    seed: int = 0,
    confidence: float = 0.95,
    bins: int | None = None,
) -> Rehearsal:
    """Repeated collections of `clients` clients drawn from the examples. On a continuous family `laws` are on its cells, as tables are
    released.
    """
    client_tv, simulate_one_collection, truth = (
        _prepare_simulated_report_collection(sampler, laws, clients, confidence)
        if isinstance(sampler, ReportSampler)
        else _prepare_simulated_sample_collection(sampler, laws, clients, confidence, bins)
    )
    check_count("repetitions", repetitions)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    rows = []
    for _ in range(repetitions):
        estimate = simulate_one_collection(rng)
        law, errors = estimate.law, np.abs(estimate.nearest - truth)
        coverage = ((law.low <= truth) & (truth <= law.high)).mean()
        rows.append((errors.max(), 0.5 * errors.sum(), coverage, 0.5 * (law.high - law.low).mean()))
    return Rehearsal(client_tv, *(float(np.mean(column)) for column in zip(*rows, strict=True)))


_Collection = tuple[float | None, Callable[[np.random.Generator], AnyPopulation], Floats]


def _prepare_simulated_sample_collection(
    sampler: Sampler[AnyFamily], laws: ArrayLike, clients: int, confidence: float, bins: int | None
) -> _Collection:
    """The mean distance of a client from its sample's distribution, a function that collects samples once, and the true shares."""
    check_count("clients", clients, most=MOST_CLIENTS)
    client_laws, output_laws, truth = _client_laws_outputs_and_true_shares(sampler, laws, clients, bins)

    def simulate_one_collection(rng: np.random.Generator) -> Population:
        draws = rng.multinomial(clients, np.full(len(client_laws), 1.0 / len(client_laws)))
        counts = rng.multinomial(draws, output_laws / output_laws.sum(axis=1, keepdims=True)).sum(axis=0)
        return population(sampler, counts=counts, bins=bins, confidence=confidence)

    return float(np.asarray(divergence("tv")(client_laws, output_laws)).mean()), simulate_one_collection, truth


def _client_laws_outputs_and_true_shares(
    sampler: Sampler[AnyFamily], laws: ArrayLike, clients: int, bins: int | None
) -> tuple[Floats, Floats, Floats]:
    """The clients' distributions, their output distributions, and the true shares."""
    family = sampler.family
    if not isinstance(family, ContinuousFamily):
        client_laws = np.atleast_2d(family.as_rows(laws, "laws"))
        return client_laws, np.asarray(sampler.output(client_laws)), client_laws.mean(axis=0)
    if sampler.mixing is not None or not isinstance(sampler.carrier, CellAtoms):
        raise DiscreetError(
            f"{sampler!r} does not release tables, which examples are: they are released by cells, and by a mechanism that serves clients "
            "outside the family too (optimal or mollifier)"
        )
    client_laws = np.atleast_2d(as_renormalised_laws(laws, "laws", sampler.carrier.size))
    shares = client_laws.mean(axis=0)[line_cells_of_sampler(sampler).order]
    return (
        client_laws,
        sampler.weights_on_atoms(client_laws) / TOTAL,
        bins_of_about_equal_reference_mass(sampler, clients=clients, count=bins).sum_by_bin(shares),
    )


def _prepare_simulated_report_collection(
    sampler: ReportSampler, laws: ArrayLike, clients: int, confidence: float
) -> _Collection:
    """The same for reports, which have no distribution to compare with the client's."""
    check_count("clients", clients, most=MOST_REHEARSED, fix="reports are drawn one by one; rehearse with fewer")
    client_laws = _normalise_rows(np.atleast_2d(sampler.family.as_rows(laws, "laws")))
    plain_sampler = ReportSampler(Simplex(sampler.family.size), privacy=sampler.privacy, blocks=sampler.blocks)

    def simulate_one_collection(rng: np.random.Generator) -> ReportedPopulation:
        reports = _draw_clients_and_seeded_reports(plain_sampler, client_laws, clients, rng)[1]
        return reported_population(plain_sampler, reports=reports, confidence=confidence)

    return None, simulate_one_collection, client_laws.mean(axis=0)


def _draw_clients_and_seeded_reports(
    sampler: ReportSampler, client_laws: Floats, clients: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """How often each example is drawn as a client, and their reports, without private randomness."""
    draws = rng.multinomial(clients, np.full(len(client_laws), 1.0 / len(client_laws)))
    records = np.repeat(np.arange(client_laws.shape[1]), rng.multinomial(draws, client_laws).sum(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seeded draw is not private
        return draws, sampler.release_records(records, rng=rng)


REPORTS, VALUES, ALONE = "reports", "values", "examples alone"
REWEIGHTED, DESIGNED = "samples, reweighted", "designed, reweighted"
_REPETITIONS = 3  # of a collection by every way
_MOST_PUBLIC = 300  # examples that are designed on and reweighted, so that a rehearsal takes seconds


@dataclass(frozen=True)
class PopulationWay:
    """A way to learn the population. `total`: mean TV distance of the whole estimated law from the truth.

    `by_reports`: about how many clients reports need for that distance, by the square root law.
    """

    name: str
    total: float
    by_reports: float


def compare_population_ways(
    family: Simplex, laws: ArrayLike, *, epsilon: float, clients: int, seed: int = 0
) -> list[PopulationWay]:
    """How near to the truth each way comes that uses one report or sample of each client, if clients are like the examples.

    A half of the examples is public, 300 at most: they are reweighted, and designed on. Clients are drawn from the other half.
    """
    check_count("clients", clients, most=MOST_REHEARSED)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    rows = np.atleast_2d(family.as_rows(laws, "laws"))
    if len(rows) < 2:
        raise DiscreetError("examples of one client cannot be halved; give records of more clients")
    order = rng.permutation(len(rows))
    simplex, public_laws = Simplex(family.size), rows[order[::2][:_MOST_PUBLIC]]
    client_laws = _normalise_rows(rows[order[1::2]])
    truth, report_sampler = client_laws.mean(axis=0), ReportSampler(simplex, epsilon=epsilon)
    linear = LinearSampler(simplex, epsilon=epsilon)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        REWEIGHTED: OptimalSampler(simplex, epsilon=epsilon),
        DESIGNED: design(simplex, epsilon=epsilon, clients=public_laws).sampler,
    }
    estimators: dict[str, Callable[[NDArray[np.int64]], Floats]] = {
        VALUES: lambda counts: population(linear, counts=counts).nearest,
        REWEIGHTED: lambda counts: reweight_examples([(samplers[REWEIGHTED], counts)], public_laws).law,
        DESIGNED: lambda counts: reweight_examples([(samplers[DESIGNED], counts)], public_laws).law,
    }
    outputs = {
        name: _normalise_rows(sampler.output(client_laws)) for name, sampler in {VALUES: linear, **samplers}.items()
    }
    totals: dict[str, list[float]] = {ALONE: [_total_variation(public_laws.mean(axis=0), truth)]}
    for _ in range(_REPETITIONS):
        draws, reports = _draw_clients_and_seeded_reports(report_sampler, client_laws, clients, rng)
        totals.setdefault(REPORTS, []).append(
            _total_variation(reported_population(report_sampler, reports=reports).nearest, truth)
        )
        for name, output_laws in outputs.items():
            counts = rng.multinomial(draws, output_laws).sum(axis=0)
            totals.setdefault(name, []).append(_total_variation(estimators[name](counts), truth))
    means = {name: float(np.mean(totals[name])) for name in (REPORTS, *outputs, ALONE)}
    return [
        PopulationWay(name, total, clients * (means[REPORTS] / max(total, 1e-12)) ** 2) for name, total in means.items()
    ]


def _normalise_rows(laws: Floats) -> Floats:
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def _total_variation(law: Floats, truth: Floats) -> float:
    return float(0.5 * np.abs(law - truth).sum())


_SPREADS = 12  # typical clients if there are no examples
_ENTRIES = 1 << 22  # of distributions on multisets in memory at once
PURPOSES = ("each", "together", "population")


@dataclass(frozen=True)
class Way:
    """One way to spend a budget on a client, with its costs: total variation distances, None if there is nothing to compare.

    Attributes:
        name: of the way.
        samples: how many samples of each client.
        epsilon: of one draw; samples that are drawn at once share it.
        each: from a client's law to that of one of its samples.
        together: from so many draws of it to its samples.
        population: the expected distance of the estimated population from the truth.
    """

    name: str
    samples: int
    epsilon: float
    each: float
    together: float | None
    population: float | None


@dataclass(frozen=True)
class Ways:
    """The ways to spend a budget beside each other.

    Attributes:
        samples: how many samples of each client.
        epsilon: of all samples of a client together.
        clients: how many there are.
        worst: whether costs are over clients that hold 1, 2, ... outcomes alike; otherwise they are means over examples.
        ways: all of them.
    """

    samples: int
    epsilon: float
    clients: int
    worst: bool
    ways: tuple[Way, ...]

    def best(self, purpose: str) -> Way:
        """The way with the least cost for a purpose: "each", "together" or "population"."""
        if purpose not in PURPOSES:
            raise DiscreetError(f"purpose = {purpose!r} is not one of {', '.join(PURPOSES)}")
        candidates = [way for way in self.ways if getattr(way, purpose) is not None]
        if not candidates:
            raise DiscreetError(
                f"nothing is known for the purpose {purpose!r}: {self.samples} samples are too many to look at together"
            )
        return min(candidates, key=lambda way: round(float(getattr(way, purpose)), 9))  # the first of equal ones


def ways_to_spend(family: Simplex, *, samples: int, epsilon: float, clients: int, examples: Any = None) -> Ways:
    """The costs of one sample at epsilon, of J samples drawn together around the envelope or the product, and of J samples at epsilon/J
    each.

    Args:
        family: the public outcomes, a `Simplex`.
        samples: J, the number of samples of each client, at least 2.
        epsilon: the budget of each client.
        clients: the number of clients, for the population's estimate.
        examples: public distributions (n, k) over which costs are averaged; without them the largest cost over clients uniform on 1 to k
            outcomes.

    Returns:
        A `Ways`, with a `Way` called "single", "composed" and, if multisets can be listed, "joint" and "product".

    Raises:
        DiscreetError: for numbers out of range, a family other than a simplex, or invalid examples.
    """
    if not isinstance(family, Simplex):
        raise DiscreetError(f"family = {family!r} is not a Simplex; give the public outcomes, as Simplex(outcomes)")
    count = check_count("samples", samples, least=2, most=10**4, fix="one sample is one at the whole budget")
    check_count("clients", clients)
    laws = (
        _uniform_clients_by_outcome_count(family.size)
        if examples is None
        else np.atleast_2d(family.as_rows(examples, "examples"))
    )
    single = OptimalSampler(family, epsilon=epsilon)
    composed_sampler = OptimalSampler(family, epsilon=single.epsilon / count)
    costs = _TotalVariations(laws, worst=examples is None)
    multisets = Multisets(family.size, count) if Multisets.can_be_listed(family.size, count) else None
    error = _population_error_of_linear_sampler(family, single.epsilon, clients)
    ways = [Way("single", 1, single.epsilon, costs.mean_or_worst_distance(laws, single.output(laws)), None, error)]
    if multisets is not None:
        for name, around in (("joint", AROUND[0]), ("product", AROUND[1])):
            joint = JointSampler(family, samples=count, epsilon=single.epsilon, around=around)
            ways.append(Way(name, count, single.epsilon, *costs.distances_of_one_and_all_joint_draws(joint), None))
    together_cost = (
        None if multisets is None else costs.mean_or_worst_distance_of_draws(multisets, composed_sampler.output(laws))
    )
    error = _population_error_of_linear_sampler(family, composed_sampler.epsilon, clients * count)
    ways.append(
        Way(
            "composed",
            count,
            composed_sampler.epsilon,
            costs.mean_or_worst_distance(laws, composed_sampler.output(laws)),
            together_cost,
            error,
        )
    )
    return Ways(count, single.epsilon, clients, examples is None, tuple(ways))


class _TotalVariations:
    """Total variation distances of some clients, averaged or at worst."""

    def __init__(self, laws: Floats, *, worst: bool) -> None:
        self._laws, self._put = laws, (np.max if worst else np.mean)

    def mean_or_worst_distance(self, laws: Floats, output_laws: Floats) -> float:
        return float(self._put(np.atleast_1d(divergence("tv")(laws, output_laws))))

    def mean_or_worst_distance_of_draws(self, multisets: Multisets, output_laws: Floats) -> float:
        """The distances for independent draws, as multisets."""
        parts = [
            divergence("tv")(multisets.laws(self._laws[rows]), multisets.laws(output_laws[rows]))
            for rows in self._client_slices_fitting_memory(len(multisets))
        ]
        return float(self._put(np.concatenate([np.atleast_1d(part) for part in parts])))

    def distances_of_one_and_all_joint_draws(self, joint: JointSampler) -> tuple[float, float]:
        """The distances for one sample of a joint draw, and for all of them."""
        sample_costs, draw_costs = [], []
        for rows in self._client_slices_fitting_memory(len(joint.multisets)):
            laws, outputs = joint.laws(self._laws[rows]), joint.output(self._laws[rows])
            draw_costs.append(np.atleast_1d(divergence("tv")(laws, outputs)))
            sample_costs.append(np.atleast_1d(divergence("tv")(self._laws[rows], joint.multisets.marginals(outputs))))
        return float(self._put(np.concatenate(sample_costs))), float(self._put(np.concatenate(draw_costs)))

    def _client_slices_fitting_memory(self, size: int) -> list[slice]:
        step = max(1, _ENTRIES // size)
        return [slice(start, start + step) for start in range(0, len(self._laws), step)]


def _uniform_clients_by_outcome_count(size: int) -> Floats:
    """Clients uniform on 1, ..., k outcomes: on the simplex it does not matter which."""
    support_sizes = np.unique(np.round(np.geomspace(1, size, _SPREADS)).astype(np.int64))
    return np.array([(np.arange(size) < s) / s for s in support_sizes])


def _population_error_of_linear_sampler(family: FiniteFamily, epsilon: float, samples: int) -> float | None:
    return outlook(LinearSampler(family, epsilon=epsilon), mechanism="linear", clients=samples).total


@dataclass(frozen=True)
class RoundsCost:
    """The error of an estimate from an agreement's rounds, compared with one sample of each client at their total budget.

    Attributes:
        rounds: how many there are.
        together: what they spend.
        factor: how many times larger the error of an estimate from all rounds is.
    """

    rounds: int
    together: Privacy
    factor: float

    def __str__(self) -> str:
        return (
            f"{self.rounds:,} rounds spend {self.together} together; one sample of each client at that would estimate a population "
            f"{self.factor:.3g} times as precisely as all {self.rounds:,} of them"
        )


def rounds_cost(agreement: Agreement) -> RoundsCost | None:
    """The cost of an agreement's rounds compared with one sample of each client; None for one round, or if rounds are better.

    Linear samples of clients like the reference: the error of n J samples is proportional to 1/(gamma sqrt(n J)). Other samplers are judged
    by the linear one of the same promise, since their samples leave a range of populations. Of reports the variances are compared.

    Args:
        agreement: on finitely many outcomes; None is returned for a continuous family.

    Returns:
        A `RoundsCost`, or None.

    Raises:
        DiscreetError: for what is not an agreement.
    """
    check_kind("agreement", agreement, Agreement, "pass Agreement.read(path) or Agreement.of(sampler)")
    terms, rounds, promise = agreement.family, agreement.rounds, agreement.promise
    if rounds == 1 or not isinstance(terms, FamilyTerms) or terms.size == 1 or agreement.joint is not None:
        return None
    if agreement.blocks is not None:
        outcomes = Simplex(terms.size)  # labels may be known by their digest alone
        single = ReportSampler(outcomes, privacy=agreement.privacy_of_all_rounds)
        report = ReportSampler(outcomes, privacy=promise, blocks=agreement.blocks.on(terms.size))
        factor = math.sqrt(report.variance() / (rounds * single.variance()))
        return RoundsCost(rounds, agreement.privacy_of_all_rounds, factor) if factor > 1.0 else None
    serves_all = terms.lower is None or terms.upper is None or terms.everybody
    bounds = (
        Bounds(0.0, float(terms.size)) if serves_all else Bounds(float(terms.lower or 0.0), float(terms.upper or 0.0))
    )
    together = agreement.privacy_of_all_rounds
    total_gamma, round_gamma = (constants_of_box_for_privacy(notion, bounds).gamma for notion in (together, promise))
    factor = total_gamma / (round_gamma * math.sqrt(rounds))
    return RoundsCost(rounds, together, factor) if factor > 1.0 else None
