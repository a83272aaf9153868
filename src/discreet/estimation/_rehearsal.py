"""Mechanisms tried on example clients: the cost of each sampler, and a rehearsal of a whole collection.

`compare_samplers` gives the mean, the median and the largest divergence over the examples, beside the worst case of all clients.
`rehearsal` draws clients from the examples, lets them release, estimates the population, and compares it with the known truth.
`population_ways` compares what reports, values and samples with reweighted examples tell of it: one half of the examples is public, the
other half are the clients.

Randomness is seeded and no sample leaves: this is for planning, and not private. The examples must not be the data to protect.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design import Design, design
from discreet.divergences import FDivergence, divergence
from discreet.errors import DiscreetError, check_count
from discreet.estimation._counting import bin_cells, line_of
from discreet.estimation._from_samples import population
from discreet.estimation._planning import MOST_CLIENTS
from discreet.estimation._population import Population
from discreet.estimation._reports import ReportedPopulation, reported_population
from discreet.estimation._reweighting import reweight_examples
from discreet.families import ContinuousFamily, FiniteFamily, Simplex, as_laws
from discreet.mechanisms import MECHANISMS, AnyFamily, CellAtoms, LinearSampler, OptimalSampler, ReportSampler, Sampler
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
        "best uniform": best_uniform(counts, epsilon, f),
        "designed": designed.sampler,
    }
    return [_sampler_cost(name, sampler, counts, f) for name, sampler in samplers.items()]


def best_uniform(counts: Any, epsilon: float, f: FDivergence) -> Sampler[FiniteFamily]:
    """The sampler with a uniform floor of the best mass b, by golden section: the mean is convex in b (`discreet.design._floors`, T1).

    b = k/(s e^eps + k - s) is the floor for clients with s outcomes each.
    """
    family = Simplex(counts.shape[1])
    k, growth = family.size, math.exp(epsilon)

    def sampler(b: float) -> Sampler[FiniteFamily]:
        spread = (k / b - k) / (growth - 1.0)
        return OptimalSampler(family.spread(min(max(spread, 1.0), k * (1.0 - 1e-9))), epsilon=epsilon)

    def mean(b: float) -> float:
        return float(divergences(sampler(b), counts, f).mean())

    low, high = 1.0 / growth, k / (growth + k - 1.0)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [mean(b) for b in inner]
    for _ in range(_STEPS):
        if values[0] <= values[1]:
            high, inner, values = inner[1], [inner[1] - _GOLDEN * (inner[1] - low), inner[0]], [math.nan, values[0]]
            values[0] = mean(inner[0])
        else:
            low, inner, values = inner[0], [inner[1], inner[0] + _GOLDEN * (high - inner[0])], [values[1], math.nan]
            values[1] = mean(inner[1])
    return sampler(inner[0] if values[0] <= values[1] else inner[1])


def divergences(sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> Floats:
    """The divergence of every client (a row of counts) from its output distribution."""
    found = [np.atleast_1d(f(laws, sampler.output(laws))) for laws in _client_law_blocks(counts)]
    return np.concatenate(found)


def _sampler_cost(name: str, sampler: Sampler[FiniteFamily], counts: Any, f: FDivergence) -> SamplerCost:
    found = divergences(sampler, counts, f)
    return SamplerCost(name, float(found.mean()), float(np.median(found)), float(found.max()), float(sampler.risk(f)))


def _client_law_blocks(counts: Any) -> Iterator[Floats]:
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


def rehearsal(
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
    client_tv, collect_once, truth = (
        _report_collection(sampler, laws, clients, confidence)
        if isinstance(sampler, ReportSampler)
        else _sample_collection(sampler, laws, clients, confidence, bins)
    )
    check_count("repetitions", repetitions)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    found = []
    for _ in range(repetitions):
        each = collect_once(rng)
        law, off = each.law, np.abs(each.nearest - truth)
        covered = ((law.low <= truth) & (truth <= law.high)).mean()
        found.append((off.max(), 0.5 * off.sum(), covered, 0.5 * (law.high - law.low).mean()))
    return Rehearsal(client_tv, *(float(np.mean(each)) for each in zip(*found, strict=True)))


_Collection = tuple[float | None, Callable[[np.random.Generator], Population | ReportedPopulation], Floats]


def _sample_collection(
    sampler: Sampler[AnyFamily], laws: ArrayLike, clients: int, confidence: float, bins: int | None
) -> _Collection:
    """The mean distance of a client from its sample's distribution, a function that collects samples once, and the true shares."""
    check_count("clients", clients, most=MOST_CLIENTS)
    held, drawn_from, truth = _laws_and_truth(sampler, laws, clients, bins)

    def collect_once(rng: np.random.Generator) -> Population:
        times = rng.multinomial(clients, np.full(len(held), 1.0 / len(held)))
        counts = rng.multinomial(times, drawn_from / drawn_from.sum(axis=1, keepdims=True)).sum(axis=0)
        return population(sampler, counts=counts, bins=bins, confidence=confidence)

    return float(np.asarray(divergence("tv")(held, drawn_from)).mean()), collect_once, truth


def _laws_and_truth(
    sampler: Sampler[AnyFamily], laws: ArrayLike, clients: int, bins: int | None
) -> tuple[Floats, Floats, Floats]:
    """The clients' distributions, their output distributions, and the true shares."""
    family = sampler.family
    if not isinstance(family, ContinuousFamily):
        held = np.atleast_2d(family.as_rows(laws, "laws"))
        return held, np.asarray(sampler.output(held)), held.mean(axis=0)
    if sampler.mixing is not None or not isinstance(sampler.carrier, CellAtoms):
        raise DiscreetError(
            f"{sampler!r} does not release tables, which examples are: they are released by cells, and by a mechanism that serves clients "
            "outside the family too (optimal or mollifier)"
        )
    held = np.atleast_2d(as_laws(laws, "laws", sampler.carrier.size))
    shares = held.mean(axis=0)[line_of(sampler).order]
    return held, sampler.weights_on_atoms(held) / TOTAL, bin_cells(sampler, clients=clients, count=bins).of(shares)


def _report_collection(sampler: ReportSampler, laws: ArrayLike, clients: int, confidence: float) -> _Collection:
    """The same for reports, which have no distribution to compare with the client's."""
    check_count("clients", clients, most=MOST_REHEARSED, fix="reports are drawn one by one; rehearse with fewer")
    held = _normalise_rows(np.atleast_2d(sampler.family.as_rows(laws, "laws")))
    plain = ReportSampler(Simplex(sampler.family.size), privacy=sampler.privacy, blocks=sampler.blocks)

    def collect_once(rng: np.random.Generator) -> ReportedPopulation:
        reports = _seeded_reports(plain, held, clients, rng)[1]
        return reported_population(plain, reports=reports, confidence=confidence)

    return None, collect_once, held.mean(axis=0)


def _seeded_reports(
    sampler: ReportSampler, held: Floats, clients: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """How often each example is drawn as a client, and their reports, without private randomness."""
    times = rng.multinomial(clients, np.full(len(held), 1.0 / len(held)))
    records = np.repeat(np.arange(held.shape[1]), rng.multinomial(times, held).sum(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seeded draw is not private
        return times, sampler.release_records(records, rng=rng)


REPORTS, VALUES, ALONE = "reports", "values", "examples alone"
REWEIGHTED, DESIGNED = "samples, reweighted", "designed, reweighted"
_MOST_PUBLIC = 300  # examples that are designed on and reweighted, so that a rehearsal takes seconds


@dataclass(frozen=True)
class PopulationWay:
    """A way to learn the population. `total`: mean TV distance of the whole estimated law from the truth.

    `by_reports`: about how many clients reports need for that distance, by the square root law.
    """

    name: str
    total: float
    by_reports: float


def population_ways(
    family: Simplex, laws: ArrayLike, *, epsilon: float, clients: int, repetitions: int = 3, seed: int = 0
) -> list[PopulationWay]:
    """How near to the truth each way comes that uses one report or sample of each client, if clients are like the examples.

    A half of the examples is public, 300 at most: they are reweighted, and designed on. Clients are drawn from the other half.
    """
    check_count("clients", clients, most=MOST_REHEARSED)
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    given = np.atleast_2d(family.as_rows(laws, "laws"))
    if len(given) < 2:
        raise DiscreetError("examples of one client cannot be halved; give records of more clients")
    order = rng.permutation(len(given))
    plain, public, held = Simplex(family.size), given[order[::2][:_MOST_PUBLIC]], _normalise_rows(given[order[1::2]])
    truth, reports = held.mean(axis=0), ReportSampler(plain, epsilon=epsilon)
    linear = LinearSampler(plain, epsilon=epsilon)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        REWEIGHTED: OptimalSampler(plain, epsilon=epsilon),
        DESIGNED: design(plain, epsilon=epsilon, clients=public).sampler,
    }
    law_behind: dict[str, Callable[[NDArray[np.int64]], Floats]] = {
        VALUES: lambda counts: population(linear, counts=counts).nearest,
        REWEIGHTED: lambda counts: reweight_examples([(samplers[REWEIGHTED], counts)], public).law,
        DESIGNED: lambda counts: reweight_examples([(samplers[DESIGNED], counts)], public).law,
    }
    outputs = {name: _normalise_rows(sampler.output(held)) for name, sampler in {VALUES: linear, **samplers}.items()}
    totals: dict[str, list[float]] = {ALONE: [_distance(public.mean(axis=0), truth)]}
    for _ in range(repetitions):
        times, reported = _seeded_reports(reports, held, clients, rng)
        totals.setdefault(REPORTS, []).append(_distance(reported_population(reports, reports=reported).nearest, truth))
        for name, released in outputs.items():
            counts = rng.multinomial(times, released).sum(axis=0)
            totals.setdefault(name, []).append(_distance(law_behind[name](counts), truth))
    means = {name: float(np.mean(totals[name])) for name in (REPORTS, *outputs, ALONE)}
    return [
        PopulationWay(name, total, clients * (means[REPORTS] / max(total, 1e-12)) ** 2) for name, total in means.items()
    ]


def _normalise_rows(laws: Floats) -> Floats:
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def _distance(law: Floats, truth: Floats) -> float:
    return float(0.5 * np.abs(law - truth).sum())
