"""`discreet demo` on the bundled flights: a release, two estimates of a population, a design, and their pictures.

`release_flights`: 4,043 aircraft each release one destination. The guarantee is read off the integers twice: from the lattice, which
bounds every possible output distribution, and from the weights of these clients' draws. Both are compared with a rational lower bound of
e^epsilon in exact arithmetic.

`estimate_time_zones`: each aircraft releases the time zone of one of its flights by the linear mechanism, from which the average log can be
estimated without bias. The truth is known here and compared with the estimate.

`estimate_destinations`: each aircraft sends one report on all 104 destinations, and beside it, for comparison, one value by the linear
mechanism at the same epsilon.

`release_flights_with_design`: the logs of the first half-year are the public examples. Every aircraft of the second half releases one
destination of that half's log. A design made from the logs that it serves would break their guarantee; this one has seen none of them. Most
aircraft flew in both halves, so the served resemble the examples more closely than unrelated clients would.
"""

from collections.abc import Mapping, Sequence
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
from discreet.plots import (
    COLOURS,
    INK,
    Axes,
    Figure,
    divergence_label,
    empty_figure,
    output,
    population as draw_population,
    shorten_name,
    using_library_style,
    write_panel_title,
)
from discreet.release import TOTAL
from discreet.research._reports import set_figure_title
from discreet.research.data import Logbooks
from discreet.research.experiments import PAPER_DIVERGENCES, CostSummary


@dataclass(frozen=True)
class ShownAircraft:
    """One aircraft: its distribution, its output distribution, and its sample. Arrays follow the public destinations."""

    name: str
    records: int
    law: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    released_destination: str


@dataclass(frozen=True)
class Guarantee:
    """The integers of a draw, out of `total`, and the largest ratios between any two clients' integers."""

    lower: int
    upper: int
    total: int
    possible: Fraction
    observed_ratio: Fraction
    bound: Fraction

    @property
    def holds(self) -> bool:
        """observed_ratio <= possible <= bound <= e^epsilon, between exact rationals."""
        return self.observed_ratio <= self.possible <= self.bound


@dataclass(frozen=True)
class MechanismCost:
    """One mechanism under one divergence: the worst case over all possible clients, and the value for each real one."""

    mechanism: str
    divergence: str
    worst_case: float
    divergences: NDArray[np.float64]

    @property
    def cost_summary(self) -> CostSummary:
        """The worst case over all possible clients; mean, median and worst over the real ones."""
        return CostSummary.from_divergences(self.worst_case, self.divergences)


@dataclass(frozen=True)
class FlightRelease:
    """The results of one run."""

    epsilon: float
    destinations: tuple[str, ...]
    flights: int
    released_destinations: NDArray[Any]
    own_count: int  # released destinations that the aircraft really flew to
    client: ShownAircraft
    guarantee: Guarantee
    costs: tuple[MechanismCost, ...]

    def mechanism_cost(self, mechanism: str, measure: str) -> MechanismCost:
        """The cost of that mechanism under that divergence."""
        return next(c for c in self.costs if (c.mechanism, c.divergence) == (mechanism, measure))

    def count_clients_closer_than_optimal(self, mechanism: str, measure: str) -> int:
        """The number of clients for which that mechanism is strictly closer than the optimal one."""
        rival, ours = (
            self.mechanism_cost(mechanism, measure).divergences,
            self.mechanism_cost(OptimalSampler.name, measure).divergences,
        )
        return int((rival < ours - 1e-12).sum())  # equal up to rounding


def release_flights(logbooks: Logbooks, *, epsilon: float, aircraft: str | None = None) -> FlightRelease:
    """Release one destination for every aircraft; show `aircraft` in detail (by default the one with most flights)."""
    family = Simplex(logbooks.outcomes)
    laws = family.law(counts=logbooks.counts)
    sampler = OptimalSampler(family, epsilon=epsilon)
    released_destinations = np.asarray(sampler.release(laws))
    rivals: dict[str, Sampler[FiniteFamily]] = {
        name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()
    }
    row = _row_of_aircraft(logbooks, aircraft)
    records = logbooks.counts[row].sum()
    client = ShownAircraft(
        logbooks.clients[row], int(records), laws[row], sampler.output(laws[row]), str(released_destinations[row])
    )
    has_flown_there = logbooks.counts[np.arange(len(laws)), family.numbers(released_destinations.tolist())] > 0
    return FlightRelease(
        epsilon=sampler.epsilon,
        destinations=logbooks.outcomes,
        flights=int(logbooks.counts.sum()),
        released_destinations=released_destinations,
        own_count=int(has_flown_there.sum()),
        client=client,
        guarantee=_measure_guarantee(sampler, laws),
        costs=tuple(_mechanism_costs(rivals, laws)),
    )


def _row_of_aircraft(logbooks: Logbooks, aircraft: str | None) -> int:
    if aircraft is None:
        return int(np.argmax(logbooks.counts.sum(axis=1)))
    if aircraft not in logbooks.clients:
        few = ", ".join(logbooks.clients[:3])
        raise DiscreetError(f"aircraft = {aircraft!r} did not leave New York in 2013; take one of {few}, ...")
    return logbooks.clients.index(aircraft)


def _measure_guarantee(sampler: OptimalSampler[FiniteFamily], laws: NDArray[np.float64]) -> Guarantee:
    weights = sampler.weights(laws)
    pairs = zip(weights.max(axis=0).tolist(), weights.min(axis=0).tolist(), strict=True)
    lattice = sampler.lattice
    return Guarantee(
        lower=int(np.min(lattice.lower)),
        upper=int(np.max(lattice.upper)),
        total=TOTAL,
        possible=lattice.largest_ratio,
        observed_ratio=max(Fraction(high, low) for high, low in pairs),
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
    own_share: float


@dataclass(frozen=True)
class DesignedFlights:
    """The results: each sampler's costs in the second half-year, and the lower bound on the mean KL."""

    epsilon: float
    examples: int
    flights: int
    samplers: dict[str, ServedCosts]
    floor: float
    released_destinations: NDArray[np.str_]
    own_count: int  # released destinations that the aircraft flew to in the second half


def release_flights_with_design(first: Logbooks, second: Logbooks, *, epsilon: float) -> DesignedFlights:
    """Design on the first logbooks, and release one destination of every aircraft of the second."""
    family = Simplex(second.outcomes)
    examples, laws = family.law(counts=first.counts), family.law(counts=second.counts)
    flight_design = design(family, epsilon=epsilon, clients=examples)
    samplers: dict[str, Sampler[FiniteFamily]] = {
        OptimalSampler.name: OptimalSampler(family, epsilon=epsilon),
        MollifierSampler.name: MollifierSampler(family, epsilon=epsilon),
        DESIGNED: flight_design.sampler,
    }
    released_destinations = np.asarray(flight_design.sampler.release(laws))
    numbers = family.numbers(released_destinations.tolist())
    return DesignedFlights(
        epsilon=flight_design.epsilon,
        examples=len(examples),
        flights=int(second.counts.sum()),
        samplers={name: _measure_sampler_costs(sampler, laws) for name, sampler in samplers.items()},
        floor=design(family, epsilon=epsilon, clients=laws, keep=0.0).bound,
        released_destinations=released_destinations,
        own_count=int((second.counts[np.arange(len(laws)), numbers] > 0).sum()),
    )


def _measure_sampler_costs(sampler: Sampler[FiniteFamily], laws: NDArray[np.float64]) -> ServedCosts:
    q = sampler.output(laws)
    return ServedCosts(
        costs={name: np.asarray(divergence(name)(laws, q)) for name in ("tv", "kl")},
        worst={name: float(sampler.risk(name)) for name in ("tv", "kl")},
        own_share=float(np.where(laws > 0.0, q, 0.0).sum(axis=1).mean()),
    )


@dataclass(frozen=True)
class TimeZoneEstimate:
    """The estimate, the truth, and the release of one aircraft."""

    population: Population
    truth: NDArray[np.float64]
    client: str
    records: int
    law: NDArray[np.float64]
    drawn_from: NDArray[np.float64]
    released_zone: str

    @property
    def covering_interval_count(self) -> int:
        """The number of intervals that cover the truth."""
        return int(((self.population.law.low <= self.truth) & (self.truth <= self.population.law.high)).sum())


def estimate_time_zones(logbooks: Logbooks, *, epsilon: float, aircraft: str) -> TimeZoneEstimate:
    """Release one time zone for every aircraft and estimate the population; show `aircraft` in detail."""
    family = Simplex(logbooks.outcomes)
    sampler = LinearSampler(family, epsilon=epsilon)
    laws = family.law(counts=logbooks.counts)
    released_zones = np.asarray(sampler.release(laws))
    row = logbooks.clients.index(aircraft)
    return TimeZoneEstimate(
        population=population(sampler, samples=released_zones.tolist()),
        truth=laws.mean(axis=0),
        client=aircraft,
        records=int(logbooks.counts[row].sum()),
        law=laws[row],
        drawn_from=np.asarray(sampler.output(laws[row])),
        released_zone=str(released_zones[row]),
    )


@dataclass(frozen=True)
class DestinationEstimate:
    """The population's destinations by reports and by values, the truth, and the report of one aircraft."""

    population: ReportedPopulation
    by_values: Population
    truth: NDArray[np.float64]
    client: str
    named_destinations: tuple[str, ...]

    @property
    def covering_interval_count(self) -> int:
        """The number of intervals that cover the truth."""
        return int(((self.population.law.low <= self.truth) & (self.truth <= self.population.law.high)).sum())

    @property
    def clients_needed_if_samples_sent(self) -> int:
        """How many aircraft values would need to tell a share as well, in the uniform population."""
        reports = self.population.sampler
        return int(np.ceil(self.population.clients * reports.by_values().variance() / reports.variance()))

    def total_variation_from_truth(self, population_estimate: ReportedPopulation | Population) -> float:
        """The total variation distance of an estimated law from the truth."""
        return float(0.5 * np.abs(population_estimate.nearest - self.truth).sum())


def estimate_destinations(logbooks: Logbooks, *, epsilon: float, aircraft: str) -> DestinationEstimate:
    """Send one report for every aircraft and estimate the population, by reports and by values; show the report of `aircraft`."""
    family = Simplex(logbooks.outcomes)
    laws = family.law(counts=logbooks.counts)
    sampler, values = ReportSampler(family, epsilon=epsilon), LinearSampler(family, epsilon=epsilon)
    reports = np.asarray(sampler.release(laws))
    report = int(reports[logbooks.clients.index(aircraft)])
    return DestinationEstimate(
        population=reported_population(sampler, reports=reports),
        by_values=population(values, samples=np.asarray(values.release(laws)).tolist()),
        truth=laws.mean(axis=0),
        client=aircraft,
        named_destinations=tuple(map(str, sampler.outcomes_of(report))),
    )


_DRAWN = "kl"
_LISTED = 12  # destinations of a picture
_COLOURS = {**COLOURS, DESIGNED: "#CC79A7"}


@dataclass(frozen=True)
class CostProfile:
    """A mechanism's realised divergences, one for each client, with an optional note."""

    mechanism: str
    divergences: NDArray[np.float64]
    note: str = ""


def flight_release_figure(run: FlightRelease) -> Figure:
    """One client on the left, the costs of all clients on the right."""
    client, profiles = run.client, []
    for name in MECHANISMS:
        better = run.count_clients_closer_than_optimal(name, _DRAWN)
        note = f"is closer for\n{better:,} aircraft" if better else ""
        profiles.append(CostProfile(name, run.mechanism_cost(name, _DRAWN).divergences, note))
    with using_library_style():
        figure = empty_figure(11.6, 5.6)
        set_figure_title(
            figure,
            f"{len(run.released_destinations):,} aircraft each release one destination at ε = {run.epsilon:g}",
            14,
        )
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.0))
        write_panel_title(
            left,
            f"{client.name}: its distribution and its output distribution",
            f"probability of each destination; this time it released {client.released_destination}",
        )
        sampler = OptimalSampler(Simplex(run.destinations), epsilon=run.epsilon)
        output(sampler, client.law, released=client.released_destination, ax=left)
        _draw_cost_profiles(right, profiles, divergence_label(_DRAWN))
    return figure


def time_zones_figure(estimate: TimeZoneEstimate) -> Figure:
    """The curator's estimate on the left, one client's release on the right; outcomes in the same order."""
    estimated_population, epsilon = estimate.population, estimate.population.sampler.epsilon
    with using_library_style():
        figure = empty_figure(12.0, 1.9 + 0.42 * len(estimate.truth))
        set_figure_title(
            figure, f"{estimated_population.clients:,} aircraft each release one time zone at ε = {epsilon:g}", 14
        )
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
        write_panel_title(
            left, "The curator's estimate", "the true population, and its estimate from one sample of each aircraft"
        )
        draw_population(estimated_population, truth=estimate.truth, most=len(estimate.truth), ax=left)
        write_panel_title(
            right,
            f"What one aircraft gave away: “{estimate.released_zone}”",
            f"{estimate.client} holds {estimate.records:,} flights; its one sample could have been any of these",
        )
        _draw_client_release(right, estimate)
    return figure


def destinations_figure(estimate: DestinationEstimate) -> Figure:
    """The largest destinations as reports tell them on the left, and as values of the same aircraft do on the right."""
    estimated_population = estimate.population
    size, epsilon = len(estimate.truth), estimated_population.sampler.epsilon
    with using_library_style():
        figure = empty_figure(12.0, 6.2)
        set_figure_title(
            figure,
            f"{estimated_population.clients:,} aircraft each send one report on {size} destinations at ε = {epsilon:g}",
            14,
        )
        axes = figure.subplots(1, 2)
        notes = [
            f"all {size} together are off by {estimate.total_variation_from_truth(population_estimate):.2f} (TV)"
            for population_estimate in (estimated_population, estimate.by_values)
        ]
        write_panel_title(axes[0], "By reports", f"the {_LISTED} largest destinations; {notes[0]}")
        draw_population(estimated_population, truth=estimate.truth, most=_LISTED, ax=axes[0])
        write_panel_title(
            axes[1],
            "By values, the old way",
            f"{notes[1]}; as good with {estimate.clients_needed_if_samples_sent:,} aircraft",
        )
        draw_population(estimate.by_values, truth=estimate.truth, most=_LISTED, ax=axes[1])
        limits = [panel.get_xlim() for panel in axes]
        for panel in axes:
            panel.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    return figure


def design_gain_figure(flights: DesignedFlights) -> Figure:
    """The cost of each sampler for the aircraft of the second half-year, in two divergences."""
    with using_library_style():
        figure = empty_figure(12.0, 5.4)
        set_figure_title(
            figure, f"July to December, served by a design made on January to June, ε = {flights.epsilon:g}", 14
        )
        for axes, name in zip(figure.subplots(1, 2), ("tv", "kl"), strict=True):
            profiles = [
                CostProfile(kind, sampler_costs.costs[name]) for kind, sampler_costs in flights.samplers.items()
            ]
            _draw_cost_profiles(axes, profiles, divergence_label(name))
    return figure


def _draw_cost_profiles(axes: Axes, profiles: Sequence[CostProfile], measure: str) -> None:
    clients = len(profiles[0].divergences)
    write_panel_title(
        axes,
        f"Cost for {clients:,} aircraft",
        f"{measure} divergence of each client's output distribution, sorted for each mechanism",
    )
    share = (np.arange(clients) + 0.5) / clients
    ends = [(float(profile.divergences.max()), profile.mechanism) for profile in profiles]
    for profile in reversed(profiles):  # the first one on top
        sorted_divergences = np.sort(profile.divergences)
        axes.plot(share, sorted_divergences, color=_COLOURS[profile.mechanism], linewidth=2.2)
        quarter = clients // 4
        axes.annotate(
            profile.note, (share[quarter], sorted_divergences[quarter]), (6, -6), textcoords="offset points",
            color=_COLOURS[profile.mechanism], ha="left", va="top", fontsize=9,
        )  # fmt: skip
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(bottom=0.0)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of aircraft with at most this cost")
    axes.locator_params(axis="y", nbins=6)
    for height, name in _spread_label_heights(ends, 0.1 * axes.get_ylim()[1]):
        worst = next(value for value, owner in ends if owner == name)
        axes.annotate(
            f"{name}\n{worst:.2f} at worst",
            (1.0, height), (8, 0), xycoords="data", textcoords="offset points",
            color=_COLOURS[name], va="center", annotation_clip=False,
        )  # fmt: skip


def _spread_label_heights(ends: Sequence[tuple[float, str]], gap: float) -> list[tuple[float, str]]:
    """The heights of the names, moved down if two would collide."""
    heights: list[tuple[float, str]] = []
    for height, name in sorted(ends, key=lambda end: -round(end[0], 9)):
        ceiling = heights[-1][0] - gap if heights else np.inf
        heights.append((min(height, ceiling), name))
    return heights


def _draw_client_release(axes: Axes, estimate: TimeZoneEstimate) -> None:
    order = np.argsort(-estimate.truth, kind="stable")
    names = [str(estimate.population.domain.names[index]) for index in order]
    rows, colour = np.arange(len(order)), COLOURS["linear"]
    axes.barh(rows - 0.19, estimate.law[order], height=0.34, color=COLOURS["held"], label="it holds")
    bars = axes.barh(
        rows + 0.19, estimate.drawn_from[order], height=0.34, color=colour, label="its output distribution"
    )
    for bar, index, name in zip(bars, order.tolist(), names, strict=True):
        is_released = name == estimate.released_zone
        axes.annotate(
            f"{100 * estimate.drawn_from[index]:.0f} %" + ("  released" if is_released else ""),
            (bar.get_width(), bar.get_y() + 0.5 * bar.get_height()), (4, 0), textcoords="offset points", va="center",
            fontsize=9, color=colour, fontweight="bold" if is_released else "normal",
        )  # fmt: skip
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_yticks(rows, [shorten_name(name) for name in names], color=INK, parse_math=False)
    axes.set_xlim(0.0, 1.12 * max(float(estimate.law.max()), float(estimate.drawn_from.max())))
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_xlabel(
        f"for any other data, no green bar changes by more than a factor of e$^{{{estimate.population.sampler.epsilon:g}}}$"
    )
    axes.legend(loc="lower right", frameon=False, labelcolor=INK)
