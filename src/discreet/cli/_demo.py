"""`discreet demo`: a tour of the package on real data, explained step by step."""

from dataclasses import asdict
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from discreet._base.numerics import LARGEST_EXPONENT
from discreet._base.showing import json_number_or_null, pluralise
from discreet.cli._options import flag_option, value_option
from discreet.cli._printing import empty_table, print_json_or_text, safe_text
from discreet.mechanisms import MECHANISMS, OptimalSampler
from discreet.plots import divergence_label, save
from discreet.research import (
    PAPER_DIVERGENCES,
    DesignedFlights,
    DestinationEstimate,
    FlightRelease,
    TimeZoneEstimate,
    design_gain_figure,
    destinations_figure,
    estimate_destinations,
    estimate_time_zones,
    flight_release_figure,
    release_flights,
    release_flights_with_design,
    time_zones_figure,
)
from discreet.research.data import logbooks, zone_logbooks

PICTURE = "demo.png"
POPULATION_PICTURE = "demo_population.png"
REPORTS_PICTURE = "demo_destinations.png"
DESIGN_PICTURE = "demo_design.png"
_SHOWN = 6


def show_demo_on_flights(
    epsilon: Annotated[float, value_option("E", "Privacy budget of each aircraft.")] = 2.0,
    aircraft: Annotated[
        str | None, value_option("TAIL", "Tail number to show in detail. [default: the one with most flights]")
    ] = None,
    out: Annotated[Path, value_option("DIR", "Folder for the pictures.")] = Path("out"),
    json: Annotated[bool, flag_option("--json", "Print JSON instead.")] = False,
) -> None:
    """4,043 aircraft each release one destination of their flight log, privately.

    Bundled real data: every flight that left New York in 2013. The tour shows the data and the sample of one client, the guarantee in whole
    numbers, and the cost beside two other mechanisms. It then estimates the population, by samples and by reports, and uses the first
    half-year as public examples for the second. It draws four pictures.
    """
    run = release_flights(logbooks(), epsilon=epsilon, aircraft=aircraft)
    zones = estimate_time_zones(zone_logbooks(), epsilon=epsilon, aircraft=run.client.name)
    destinations = estimate_destinations(logbooks(), epsilon=epsilon, aircraft=run.client.name)
    design_run = release_flights_with_design(logbooks(range(1, 7)), logbooks(range(7, 13)), epsilon=epsilon)
    sections = {
        "release": (_release_section(run), flight_release_figure(run), PICTURE),
        "population": (_time_zones_section(zones), time_zones_figure(zones), POPULATION_PICTURE),
        "reports": (_destinations_section(destinations), destinations_figure(destinations), REPORTS_PICTURE),
        "design": (_design_section(design_run), design_gain_figure(design_run), DESIGN_PICTURE),
    }
    records: dict[str, Any] = {}
    blocks: list[Any] = []
    for name, ((record, texts), figure, file) in sections.items():
        save(figure, out / file)
        records[name] = {**record, "picture": str(out / file)}
        blocks += [*texts, f"Picture: [bold]{safe_text(out / file)}[/bold]"]
    blocks.append(
        "[bold]Not covered[/bold]: several samples (budgets add up: an aircraft in all five collections above, that by values "
        f"included, spent {5 * run.epsilon:g}), the fact of taking part, timing."
    )
    print_json_or_text({**records.pop("release"), **records}, *blocks, json=json)


Section = tuple[dict[str, Any], list[Any]]  # a part of the tour: its numbers as JSON, and its blocks of text


def _release_section(run: FlightRelease) -> Section:
    """One client's distribution, its sample, the guarantee in integers, and the cost of each mechanism."""
    client, guarantee = run.client, run.guarantee
    record = {
        "epsilon": run.epsilon,
        "aircraft": len(run.released_destinations),
        "flights": run.flights,
        "destinations": len(run.destinations),
        "client": {
            "aircraft": client.name,
            "flights": client.records,
            "released": client.released_destination,
            "held": {
                run.destinations[index]: float(client.law[index]) for index in np.flatnonzero(client.law).tolist()
            },
            "drawn_from": dict(zip(run.destinations, client.drawn_from.tolist(), strict=True)),
        },
        "released_own_destination": run.own_count,
        "guarantee": {
            "lower": guarantee.lower,
            "upper": guarantee.upper,
            "total": guarantee.total,
            "largest_possible_ratio": str(guarantee.possible),
            "largest_observed_ratio": str(guarantee.observed_ratio),
            "lower_bound_of_e_to_the_epsilon": str(guarantee.bound),
            "holds": guarantee.holds,
        },
        "costs": [
            {
                "mechanism": cost.mechanism,
                "divergence": cost.divergence,
                **{name: json_number_or_null(value) for name, value in asdict(cost.cost_summary).items()},
                "serves_better_than_optimal": run.count_clients_closer_than_optimal(cost.mechanism, cost.divergence),
            }
            for cost in run.costs
        ],
    }
    table = empty_table("destination", "held", "drawn from")
    top = [int(index) for index in np.argsort(-client.law, kind="stable")[:_SHOWN] if client.law[index] > 0]
    for index in top:
        table.add_row(run.destinations[index], f"{client.law[index]:.2%}", f"{client.drawn_from[index]:.2%}")
    rest = np.setdiff1d(np.arange(len(client.law)), top)
    if rest.size:
        sums = client.law[rest].sum(), client.drawn_from[rest].sum()
        table.add_row(f"{rest.size} others together", *(f"{share:.2%}" for share in sums))
    kinds = pluralise(int((client.law > 0).sum()), "destination")
    return record, [
        f"[bold]{len(run.released_destinations):,} aircraft[/bold] made {run.flights:,} flights from New York in 2013, "
        f"to {len(run.destinations)} destinations.\n"
        f"Each keeps its own log and releases [bold]one destination[/bold], at epsilon = {run.epsilon:g}.",
        f"[bold]One client[/bold]: {client.name} holds {pluralise(client.records, 'flight')} to {kinds}. "
        f"It released [bold]{client.released_destination}[/bold].",
        table,
        _guarantee_text(run),
        "[bold]What it cost[/bold]: divergence of the client's distribution from its output distribution.",
        _mechanism_costs_table(run),
        _closest_mechanism_text(run),
    ]


def _time_zones_section(zones: TimeZoneEstimate) -> Section:
    """The average aircraft's time zones, from one sample of each."""
    record = {
        "time_zones": _shares_json_record(zones),
        "client": {"aircraft": zones.client, "released": zones.released_zone},
    }
    law, table = zones.population.law, empty_table("time zone", "truth", "estimate", "interval")
    for index in np.argsort(-zones.truth, kind="stable").tolist():
        table.add_row(
            str(zones.population.domain.names[index]),
            f"{zones.truth[index]:.1%}",
            f"{law.estimate[index]:.1%}",
            f"{law.low[index]:.1%} to {law.high[index]:.1%}",
        )
    return record, [
        f"[bold]What the curator learns[/bold]: in another collection each of the {zones.population.clients:,} aircraft releases "
        "one [bold]time zone[/bold], drawn privately from its log by the linear mechanism, again at "
        f"epsilon = {zones.population.sampler.epsilon:g}. "
        f"{zones.client} released [bold]{zones.released_zone}[/bold]. The average aircraft's shares, with 95 % intervals:",
        table,
        f"{zones.covering_interval_count} of {len(zones.truth)} intervals contain the truth; in the long run 95 % do. An estimate is "
        "unbiased, so it may be negative. Samples of the optimal mechanism would give wider intervals: see discreet estimate.",
    ]


def _destinations_section(estimate: DestinationEstimate) -> Section:
    """The population's destinations, from one report of each aircraft, beside one value of each."""
    law, values, size = estimate.population.law, estimate.by_values.law, len(estimate.truth)
    errors = (
        estimate.total_variation_from_truth(estimate.population),
        estimate.total_variation_from_truth(estimate.by_values),
    )
    record = {
        "client": {"aircraft": estimate.client, "named": list(estimate.named_destinations)},
        "destinations": _shares_json_record(estimate),
        "off_by": {"reports": errors[0], "values": errors[1]},
        "aircraft_that_values_need": estimate.clients_needed_if_samples_sent,
    }
    table = empty_table("destination", "truth", "by reports", "interval", "by values", "interval")
    for index in np.argsort(-estimate.truth, kind="stable")[:_SHOWN].tolist():
        cells = [f"{estimate.truth[index]:.1%}"]
        for shares in (law, values):
            cells += [f"{shares.estimate[index]:.1%}", f"{shares.low[index]:.1%} to {shares.high[index]:.1%}"]
        table.add_row(str(estimate.population.domain.names[index]), *cells)
    return record, [
        f"[bold]If only the population matters[/bold]: each of the {estimate.population.clients:,} aircraft sends one "
        f"[bold]report[/bold] on all {size} destinations, at epsilon = {estimate.population.sampler.epsilon:g}. "
        f"A report names several destinations. One of them may be the aircraft's own. {estimate.client}'s report names "
        f"{len(estimate.named_destinations)}: {', '.join(estimate.named_destinations[:4])}, ... The largest "
        "shares, with 95 % intervals:",
        table,
        f"{estimate.covering_interval_count} of {size} intervals from reports contain the truth. The error of all {size} shares together, in "
        f"total variation, is {errors[0]:.2f} by reports and {errors[1]:.2f} by single values. Single values would need "
        f"[bold]{estimate.clients_needed_if_samples_sent:,} aircraft[/bold] for the same precision. "
        "(Samples look like an aircraft's own records; reports do not.)",
    ]


def _design_section(run: DesignedFlights) -> Section:
    """A design made on public logs of one half-year, which serves the other half."""
    record = {
        "examples": run.examples,
        "aircraft": len(run.released_destinations),
        "flights": run.flights,
        "released_own_destination": run.own_count,
        "floor": json_number_or_null(run.floor),
        "samplers": {
            name: {
                **{
                    f"mean_{measure}": json_number_or_null(float(cost.mean()))
                    for measure, cost in sampler.costs.items()
                },
                **{f"worst_{measure}": json_number_or_null(worst) for measure, worst in sampler.worst.items()},
                "own": sampler.own_share,
            }
            for name, sampler in run.samplers.items()
        },
    }
    table = empty_table("sampler", "mean TV", "mean KL", "worst KL here", "possible", "own")
    for name, sampler in run.samplers.items():
        means = (f"{sampler.costs[measure].mean():.3f}" for measure in ("tv", "kl"))
        table.add_row(
            name, *means, f"{sampler.costs['kl'].max():.3f}", f"{sampler.worst['kl']:.3f}", f"{sampler.own_share:.0%}"
        )
    table.add_row("no sampler is below", "", f"{np.floor(1e3 * run.floor) / 1e3:.3f}", "", "", "")
    return record, [
        f"[bold]What public examples can do[/bold]: suppose that the logs of January to June are public ({run.examples:,} aircraft). "
        "The best sampler for clients like these, with a certificate, then serves "
        f"{len(run.released_destinations):,} aircraft in July to December, at epsilon = {run.epsilon:g}. It was made without "
        "any flight of that half, although most of these aircraft flew in the first half too. A design made on the logs "
        "that it serves would break their guarantee.",
        table,
        "own: the probability that the sample is a destination to which the aircraft really flew; this time "
        f"{run.own_count:,} of {len(run.released_destinations):,} are. "
        "The last line is a proved lower bound, also for samplers made for these very "
        "aircraft. The price of the design is a larger worst case over all clients (possible). --keep limits it: see discreet design.",
    ]


def _shares_json_record(estimate: DestinationEstimate | TimeZoneEstimate) -> dict[str, dict[str, float]]:
    law = estimate.population.law
    columns = {"truth": estimate.truth, "estimate": law.estimate, "low": law.low, "high": law.high}
    return {
        str(name): {column: float(values[index]) for column, values in columns.items()}
        for index, name in enumerate(estimate.population.domain.names)
    }


def _guarantee_text(run: FlightRelease) -> str:
    guarantee, clients = run.guarantee, len(run.released_destinations)
    exponent = min(run.epsilon, LARGEST_EXPONENT)
    verdict = "as exact rationals" if guarantee.holds else "NO: THIS IS A BUG, DO NOT RELEASE"
    return (
        f"[bold]The guarantee, in whole numbers[/bold]: of {guarantee.total:,} equally\n"
        "likely draws, each destination gets, for every possible log,\n"
        f"  at least {guarantee.lower:>25,}\n"
        f"  at most  {guarantee.upper:>25,}\n"
        f"which is {_ratio_rounded_down_text(guarantee.possible)} times as many; e^{exponent:g} is more:\n"
        f"         {_ratio_rounded_down_text(guarantee.bound)} ({verdict}).\n"
        f"Largest ratio between any two of these {clients:,} clients: {_ratio_rounded_down_text(guarantee.observed_ratio)}.\n"
        f"Seeing a destination shifts the odds between any two logs by e^{run.epsilon:g} at most.\n"
        f"{run.own_count:,} of the {clients:,} released destinations are ones the aircraft really flew to."
    )


def _ratio_rounded_down_text(ratio: Fraction) -> str:
    """The first 21 digits, rounded down, so that a smaller number never looks larger."""
    context = Context(prec=21, rounding="ROUND_DOWN")
    return f"{context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)):f}"


def _mechanism_costs_table(run: FlightRelease) -> Table:
    table = empty_table("divergence", "mechanism", "worst possible", "worst here", "median", "mean", texts=2)
    for measure in PAPER_DIVERGENCES:
        summaries = {name: run.mechanism_cost(name, measure).cost_summary for name in MECHANISMS}
        for name in MECHANISMS:
            cells = []
            for column in ("worst_case", "worst", "median", "mean"):
                best = min(getattr(summary, column) for summary in summaries.values())
                cell = f"{getattr(summaries[name], column):.3f}"
                cells.append(f"[bold green]{cell}*[/bold green]" if cell == f"{best:.3f}" else f"{cell} ")
            label = divergence_label(measure) if name == OptimalSampler.name else ""
            table.add_row(label, name, *cells, end_section=name == [*MECHANISMS][-1])
    return table


def _closest_mechanism_text(run: FlightRelease) -> str:
    """Which mechanism is closest for which clients, as measured. The optimal mechanism is best in the worst case only."""
    clients = len(run.released_destinations)
    lines = [
        "*: best of the three. No sampler has a smaller worst case than the optimal one.",
        "linear: the client's distribution mixed with uniform; mollifier: the earlier baseline.",
    ]
    for name in [*MECHANISMS][1:]:
        closer_counts = {measure: run.count_clients_closer_than_optimal(name, measure) for measure in PAPER_DIVERGENCES}
        if any(closer_counts.values()):
            counts = ", ".join(f"{count:,} ({divergence_label(measure)})" for measure, count in closer_counts.items())
            lines.append(f"The {name} is closer than optimal for part of the {clients:,}:\n  {counts}.")
        else:
            lines.append(f"The {name} mechanism is closer than optimal for no client.")
    return "\n".join(lines)
