"""The experiments of `discreet demo` on the bundled flights: a release, two estimates of a population, and a design.

`released_flights`: 4,043 aircraft each release one destination. The guarantee is read off the integers twice: from the lattice, which
bounds every possible output distribution, and from the weights of these clients' draws. Both are compared with a rational lower bound of
e^epsilon in exact arithmetic.

`learnt_time_zones`: each aircraft releases the time zone of one of its flights by the linear mechanism, from which the average log can be
estimated without bias. The truth is known here and compared with the estimate.

`reported_destinations`: each aircraft sends one report on all 104 destinations, and beside it, for comparison, one value by the linear
mechanism at the same epsilon.

`designed_flights`: the logs of the first half-year are the public examples, and every aircraft of the second half releases one destination
of that half's log. A design made from the logs that it serves would break their guarantee; this one has seen none of them. Most aircraft
flew in both halves, so the served resemble the examples more closely than unrelated clients would.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.numerics import exp_lower
from discreet.design import design
from discreet.divergences import divergence
from discreet.errors import DiscreetError
from discreet.estimation import Population, ReportedPopulation, population, reported_population
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import (
    MECHANISMS,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    ReportSampler,
    Sampler,
)
from discreet.release import TOTAL
from discreet.research.data import Logbooks
from discreet.research.experiments._records import PAPER_DIVERGENCES, CostSummary


@dataclass(frozen=True)
class ShownAircraft:
    """One aircraft: its distribution, its output distribution, and its sample. Arrays follow the public destinations."""

    name: str
    records: int
    held: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    released: str


@dataclass(frozen=True)
class Guarantee:
    """The integers of a draw, out of `total`, and the largest ratios between any two clients' integers."""

    lower: int
    upper: int
    total: int
    possible: Fraction
    observed: Fraction
    bound: Fraction

    @property
    def holds(self) -> bool:
        """observed <= possible <= bound <= e^epsilon, between exact rationals."""
        return self.observed <= self.possible <= self.bound


@dataclass(frozen=True)
class MechanismCost:
    """One mechanism under one divergence: the worst case over all possible clients, and the value for each real one."""

    mechanism: str
    divergence: str
    worst_case: float
    realised: NDArray[np.float64]

    @property
    def summary(self) -> CostSummary:
        """The worst case over all possible clients; mean, median and worst over the real ones."""
        return CostSummary.of(self.worst_case, self.realised)


@dataclass(frozen=True)
class FlightRelease:
    """The results of one run."""

    epsilon: float
    destinations: tuple[str, ...]
    flights: int
    released: NDArray[Any]
    own: int  # released destinations that the aircraft really flew to
    client: ShownAircraft
    guarantee: Guarantee
    costs: tuple[MechanismCost, ...]

    def cost(self, mechanism: str, measure: str) -> MechanismCost:
        """The cost of that mechanism under that divergence."""
        return next(c for c in self.costs if (c.mechanism, c.divergence) == (mechanism, measure))

    def better_off(self, mechanism: str, measure: str) -> int:
        """The number of clients for which that mechanism is strictly closer than the optimal one."""
        rival, ours = self.cost(mechanism, measure).realised, self.cost(OptimalSampler.name, measure).realised
        return int((rival < ours - 1e-12).sum())  # equal up to rounding


def released_flights(logbooks: Logbooks, *, epsilon: float, aircraft: str | None = None) -> FlightRelease:
    """Release one destination for every aircraft; show `aircraft` in detail (by default the one with most flights)."""
    family = Simplex(logbooks.outcomes)
    laws = family.law(counts=logbooks.counts)
    sampler = OptimalSampler(family, epsilon=epsilon)
    released = np.asarray(sampler.release(laws))
    rivals: dict[str, Sampler[FiniteFamily]] = {
        name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()
    }
    shown = _aircraft_number(logbooks, aircraft)
    records = logbooks.counts[shown].sum()
    client = ShownAircraft(
        logbooks.clients[shown], int(records), laws[shown], sampler.output(laws[shown]), str(released[shown])
    )
    flown = logbooks.counts[np.arange(len(laws)), family.numbers(released.tolist())] > 0
    return FlightRelease(
        epsilon=sampler.epsilon,
        destinations=logbooks.outcomes,
        flights=int(logbooks.counts.sum()),
        released=released,
        own=int(flown.sum()),
        client=client,
        guarantee=_measured_guarantee(sampler, laws),
        costs=tuple(_mechanism_costs(rivals, laws)),
    )


def _aircraft_number(logbooks: Logbooks, aircraft: str | None) -> int:
    if aircraft is None:
        return int(np.argmax(logbooks.counts.sum(axis=1)))
    if aircraft not in logbooks.clients:
        few = ", ".join(logbooks.clients[:3])
        raise DiscreetError(f"aircraft = {aircraft!r} did not leave New York in 2013; take one of {few}, ...")
    return logbooks.clients.index(aircraft)


def _measured_guarantee(sampler: OptimalSampler[FiniteFamily], laws: NDArray[np.float64]) -> Guarantee:
    weights = sampler.weights(laws)
    pairs = zip(weights.max(axis=0).tolist(), weights.min(axis=0).tolist(), strict=True)
    lattice = sampler.lattice
    return Guarantee(
        lower=int(np.min(lattice.lower)),
        upper=int(np.max(lattice.upper)),
        total=TOTAL,
        possible=lattice.largest_ratio,
        observed=max(Fraction(high, low) for high, low in pairs),
        bound=exp_lower(sampler.epsilon),
    )


def _mechanism_costs(samplers: Mapping[str, Sampler[FiniteFamily]], laws: NDArray[np.float64]) -> list[MechanismCost]:
    outputs = {name: sampler.output(laws) for name, sampler in samplers.items()}
    return [
        MechanismCost(name, measure, float(sampler.risk(measure)), np.asarray(divergence(measure)(laws, outputs[name])))
        for measure in PAPER_DIVERGENCES
        for name, sampler in samplers.items()
    ]


DESIGNED = "designed"


@dataclass(frozen=True)
class ServedCosts:
    """A sampler's cost for each served aircraft, its worst case over all clients, and how often the sample is an own destination."""

    costs: dict[str, NDArray[np.float64]]
    worst: dict[str, float]
    own: float


@dataclass(frozen=True)
class DesignedFlights:
    """The results: each sampler's costs in the second half-year, and the lower bound on the mean KL."""

    epsilon: float
    examples: int
    flights: int
    samplers: dict[str, ServedCosts]
    floor: float
    released: NDArray[np.str_]
    own: int  # released destinations that the aircraft flew to in the second half


def designed_flights(first: Logbooks, second: Logbooks, *, epsilon: float) -> DesignedFlights:
    """Design on the first logbooks, and release one destination of every aircraft of the second."""
    family = Simplex(second.outcomes)
    examples, laws = family.law(counts=first.counts), family.law(counts=second.counts)
    made = design(family, epsilon=epsilon, clients=examples)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        OptimalSampler.name: OptimalSampler(family, epsilon=epsilon),
        MollifierSampler.name: MollifierSampler(family, epsilon=epsilon),
        DESIGNED: made.sampler,
    }
    released = np.asarray(made.sampler.release(laws))
    numbers = family.numbers(released.tolist())
    return DesignedFlights(
        epsilon=made.epsilon,
        examples=len(examples),
        flights=int(second.counts.sum()),
        samplers={name: _served_costs(sampler, laws) for name, sampler in samplers.items()},
        floor=design(family, epsilon=epsilon, clients=laws, keep=0.0).bound,
        released=released,
        own=int((second.counts[np.arange(len(laws)), numbers] > 0).sum()),
    )


def _served_costs(sampler: Sampler[FiniteFamily], laws: NDArray[np.float64]) -> ServedCosts:
    q = sampler.output(laws)
    return ServedCosts(
        costs={name: np.asarray(divergence(name)(laws, q)) for name in ("tv", "kl")},
        worst={name: float(sampler.risk(name)) for name in ("tv", "kl")},
        own=float(np.where(laws > 0.0, q, 0.0).sum(axis=1).mean()),
    )


@dataclass(frozen=True)
class TimeZoneEstimate:
    """The estimate, the truth, and the release of one aircraft."""

    found: Population
    truth: NDArray[np.float64]
    client: str
    records: int
    held: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    released: str

    @property
    def covering_intervals(self) -> int:
        """The number of intervals that cover the truth."""
        return int(((self.found.law.low <= self.truth) & (self.truth <= self.found.law.high)).sum())


def learnt_time_zones(logbooks: Logbooks, *, epsilon: float, aircraft: str) -> TimeZoneEstimate:
    """Release one time zone for every aircraft and estimate the population; show `aircraft` in detail."""
    family = Simplex(logbooks.outcomes)
    sampler = LinearSampler(family, epsilon=epsilon)
    laws = family.law(counts=logbooks.counts)
    released = np.asarray(sampler.release(laws))
    place = logbooks.clients.index(aircraft)
    return TimeZoneEstimate(
        found=population(sampler, samples=released.tolist()),
        truth=laws.mean(axis=0),
        client=aircraft,
        records=int(logbooks.counts[place].sum()),
        held=laws[place],
        drawn_from=np.asarray(sampler.output(laws[place])),
        released=str(released[place]),
    )


@dataclass(frozen=True)
class DestinationEstimate:
    """The population's destinations by reports and by values, the truth, and the report of one aircraft."""

    found: ReportedPopulation
    by_values: Population
    truth: NDArray[np.float64]
    client: str
    named: tuple[str, ...]

    @property
    def covering_intervals(self) -> int:
        """The number of intervals that cover the truth."""
        return int(((self.found.law.low <= self.truth) & (self.truth <= self.found.law.high)).sum())

    @property
    def values_needed(self) -> int:
        """How many aircraft values would need to tell a share as well, in the uniform population."""
        reports = self.found.sampler
        return int(np.ceil(self.found.clients * reports.by_values().variance() / reports.variance()))

    def distance(self, found: ReportedPopulation | Population) -> float:
        """The total variation distance of an estimated law from the truth."""
        return float(0.5 * np.abs(found.nearest - self.truth).sum())


def reported_destinations(logbooks: Logbooks, *, epsilon: float, aircraft: str) -> DestinationEstimate:
    """Send one report for every aircraft and estimate the population, by reports and by values; show the report of `aircraft`."""
    family = Simplex(logbooks.outcomes)
    laws = family.law(counts=logbooks.counts)
    sampler, values = ReportSampler(family, epsilon=epsilon), LinearSampler(family, epsilon=epsilon)
    reports = np.asarray(sampler.release(laws))
    mine = int(reports[logbooks.clients.index(aircraft)])
    return DestinationEstimate(
        found=reported_population(sampler, reports=reports),
        by_values=population(values, samples=np.asarray(values.release(laws)).tolist()),
        truth=laws.mean(axis=0),
        client=aircraft,
        named=tuple(map(str, sampler.outcomes_of(mine))),
    )
