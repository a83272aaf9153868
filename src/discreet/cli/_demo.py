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
    served = release_flights_with_design(logbooks(range(1, 7)), logbooks(range(7, 13)), epsilon=epsilon)
    sections = {
        "release": (_release_section(run), flight_release_figure(run), PICTURE),
        "population": (_time_zones_section(zones), time_zones_figure(zones), POPULATION_PICTURE),
        "reports": (_destinations_section(destinations), destinations_figure(destinations), REPORTS_PICTURE),
        "design": (_design_section(served), design_gain_figure(served), DESIGN_PICTURE),
    }
    records: dict[str, Any] = {}
    blocks: list[Any] = []
    for name, ((record, said), drawn, file) in sections.items():
        save(drawn, out / file)
        records[name] = {**record, "picture": str(out / file)}
        blocks += [*said, f"Picture: [bold]{safe_text(out / file)}[/bold]"]
    blocks.append(
        "[bold]Not covered[/bold]: several samples (budgets add up: an aircraft in all four collections above spent "
        f"{4 * run.epsilon:g}), the fact of taking part, timing."
    )
    print_json_or_text({**records.pop("release"), **records}, *blocks, json=json)


Section = tuple[dict[str, Any], list[Any]]  # a part of the tour: its numbers as JSON, and its blocks of text


def _release_section(run: FlightRelease) -> Section:
    """One client's distribution, its sample, the guarantee in integers, and the cost of each mechanism."""
    client, exact = run.client, run.guarantee
    record = {
        "epsilon": run.epsilon,
        "aircraft": len(run.released),
        "flights": run.flights,
        "destinations": len(run.destinations),
        "client": {
            "aircraft": client.name,
            "flights": client.records,
            "released": client.released,
            "held": {
                run.destinations[place]: float(client.held[place]) for place in np.flatnonzero(client.held).tolist()
            },
            "drawn_from": dict(zip(run.destinations, client.drawn_from.tolist(), strict=True)),
        },
        "released_own_destination": run.own,
        "guarantee": {
            "lower": exact.lower,
            "upper": exact.upper,
            "total": exact.total,
            "largest_possible_ratio": str(exact.possible),
            "largest_observed_ratio": str(exact.observed),
            "lower_bound_of_e_to_the_epsilon": str(exact.bound),
            "holds": exact.holds,
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
    made = empty_table("destination", "held", "drawn from")
    top = [int(place) for place in np.argsort(-client.held, kind="stable")[:_SHOWN] if client.held[place] > 0]
    for place in top:
        made.add_row(run.destinations[place], f"{client.held[place]:.2%}", f"{client.drawn_from[place]:.2%}")
    rest = np.setdiff1d(np.arange(len(client.held)), top)
    if rest.size:
        sums = client.held[rest].sum(), client.drawn_from[rest].sum()
        made.add_row(f"{rest.size} others together", *(f"{share:.2%}" for share in sums))
    kinds = pluralise(int((client.held > 0).sum()), "destination")
    return record, [
        f"[bold]{len(run.released):,} aircraft[/bold] made {run.flights:,} flights from New York in 2013, "
        f"to {len(run.destinations)} destinations.\n"
        f"Each keeps its own log and releases [bold]one destination[/bold], at epsilon = {run.epsilon:g}.",
        f"[bold]One client[/bold]: {client.name} holds {pluralise(client.records, 'flight')} to {kinds}. "
        f"It released [bold]{client.released}[/bold].",
        made,
        _guarantee_text(run),
        "[bold]What it cost[/bold]: divergence of the client's distribution from its output distribution.",
        _mechanism_costs_table(run),
        _closest_mechanism_text(run),
    ]


def _time_zones_section(zones: TimeZoneEstimate) -> Section:
    """The average aircraft's time zones, from one sample of each."""
    record = {
        "time_zones": _shares_json_record(zones),
        "client": {"aircraft": zones.client, "released": zones.released},
    }
    law, made = zones.found.law, empty_table("time zone", "truth", "estimate", "interval")
    for place in np.argsort(-zones.truth, kind="stable").tolist():
        made.add_row(
            str(zones.found.domain.names[place]),
            f"{zones.truth[place]:.1%}",
            f"{law.estimate[place]:.1%}",
            f"{law.low[place]:.1%} to {law.high[place]:.1%}",
        )
    return record, [
        f"[bold]What the curator learns[/bold]: in another collection each of the {zones.found.clients:,} aircraft releases "
        "one [bold]time zone[/bold], drawn privately from its log by the linear mechanism, again at "
        f"epsilon = {zones.found.sampler.epsilon:g}. "
        f"{zones.client} released [bold]{zones.released}[/bold]. The average aircraft's shares, with 95 % intervals:",
        made,
        f"{zones.covering_interval_count} of {len(zones.truth)} intervals contain the truth; in the long run 95 % do. An estimate is "
        "unbiased, so it may be negative. Samples of the optimal mechanism would give wider intervals: see discreet estimate.",
    ]


def _destinations_section(found: DestinationEstimate) -> Section:
    """The population's destinations, from one report of each aircraft, beside one value of each."""
    law, values, size = found.found.law, found.by_values.law, len(found.truth)
    off = found.total_variation_from_truth(found.found), found.total_variation_from_truth(found.by_values)
    record = {
        "client": {"aircraft": found.client, "named": list(found.named)},
        "destinations": _shares_json_record(found),
        "off_by": {"reports": off[0], "values": off[1]},
        "aircraft_that_values_need": found.clients_needed_if_samples_sent,
    }
    made = empty_table("destination", "truth", "by reports", "interval", "by values", "interval")
    for place in np.argsort(-found.truth, kind="stable")[:_SHOWN].tolist():
        cells = [f"{found.truth[place]:.1%}"]
        for each in (law, values):
            cells += [f"{each.estimate[place]:.1%}", f"{each.low[place]:.1%} to {each.high[place]:.1%}"]
        made.add_row(str(found.found.domain.names[place]), *cells)
    return record, [
        f"[bold]If only the population matters[/bold]: each of the {found.found.clients:,} aircraft sends one [bold]report[/bold] on all "
        f"{size} destinations, at epsilon = {found.found.sampler.epsilon:g}. A report names several destinations. One of them may be "
        f"the aircraft's own. {found.client}'s report names {len(found.named)}: {', '.join(found.named[:4])}, ... The largest shares, with "
        "95 % intervals:",
        made,
        f"{found.covering_interval_count} of {size} intervals from reports contain the truth. The error of all {size} shares together, in "
        f"total variation, is {off[0]:.2f} by reports and {off[1]:.2f} by single values. Single values would need "
        f"[bold]{found.clients_needed_if_samples_sent:,} aircraft[/bold] for the same precision. "
        "(Samples look like an aircraft's own records; reports do not.)",
    ]


def _design_section(served: DesignedFlights) -> Section:
    """A design made on public logs of one half-year, which serves the other half."""
    record = {
        "examples": served.examples,
        "aircraft": len(served.released),
        "flights": served.flights,
        "released_own_destination": served.own,
        "floor": json_number_or_null(served.floor),
        "samplers": {
            name: {
                **{f"mean_{measure}": json_number_or_null(float(cost.mean())) for measure, cost in one.costs.items()},
                **{f"worst_{measure}": json_number_or_null(worst) for measure, worst in one.worst.items()},
                "own": one.own,
            }
            for name, one in served.samplers.items()
        },
    }
    made = empty_table("sampler", "mean TV", "mean KL", "worst KL here", "possible", "own", texts=1)
    for name, one in served.samplers.items():
        means = (f"{one.costs[measure].mean():.3f}" for measure in ("tv", "kl"))
        made.add_row(name, *means, f"{one.costs['kl'].max():.3f}", f"{one.worst['kl']:.3f}", f"{one.own:.0%}")
    made.add_row("no sampler is below", "", f"{np.floor(1e3 * served.floor) / 1e3:.3f}", "", "", "")
    return record, [
        f"[bold]What public examples can do[/bold]: suppose that the logs of January to June are public ({served.examples:,} aircraft). "
        "The best sampler for clients like these, with a certificate, then serves "
        f"{len(served.released):,} aircraft in July to December, at epsilon = {served.epsilon:g}. It was made without "
        "any flight of that half, although most of these aircraft flew in the first half too. A design made on the logs "
        "that it serves would break their guarantee.",
        made,
        "own: the probability that the sample is a destination to which the aircraft really flew; this time "
        f"{served.own:,} of {len(served.released):,} are. The last line is a proved lower bound, also for samplers made for these very "
        "aircraft. The price of the design is a larger worst case over all clients (possible). --keep limits it: see discreet design.",
    ]


def _shares_json_record(found: DestinationEstimate | TimeZoneEstimate) -> dict[str, dict[str, float]]:
    law = found.found.law
    columns = {"truth": found.truth, "estimate": law.estimate, "low": law.low, "high": law.high}
    return {
        str(name): {column: float(values[place]) for column, values in columns.items()}
        for place, name in enumerate(found.found.domain.names)
    }


def _guarantee_text(run: FlightRelease) -> str:
    exact, clients = run.guarantee, len(run.released)
    known = min(run.epsilon, LARGEST_EXPONENT)
    verdict = "as exact rationals" if exact.holds else "NO: THIS IS A BUG, DO NOT RELEASE"
    return (
        f"[bold]The guarantee, in whole numbers[/bold]: of {exact.total:,} equally\n"
        "likely draws, each destination gets, for every possible log,\n"
        f"  at least {exact.lower:>25,}\n"
        f"  at most  {exact.upper:>25,}\n"
        f"which is {_ratio_rounded_down_text(exact.possible)} times as many; e^{known:g} is more:\n"
        f"         {_ratio_rounded_down_text(exact.bound)} ({verdict}).\n"
        f"Largest ratio between any two of these {clients:,} clients: {_ratio_rounded_down_text(exact.observed)}.\n"
        f"Seeing a destination shifts the odds between any two logs by e^{run.epsilon:g} at most.\n"
        f"{run.own:,} of the {clients:,} released destinations are ones the aircraft really flew to."
    )


def _ratio_rounded_down_text(ratio: Fraction) -> str:
    """The first 21 digits, rounded down, so that a smaller number never looks larger."""
    context = Context(prec=21, rounding="ROUND_DOWN")
    return f"{context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)):f}"


def _mechanism_costs_table(run: FlightRelease) -> Table:
    made = empty_table("divergence", "mechanism", "worst possible", "worst here", "median", "mean", texts=2)
    for measure in PAPER_DIVERGENCES:
        summaries = {name: run.mechanism_cost(name, measure).cost_summary for name in MECHANISMS}
        for name in MECHANISMS:
            cells = []
            for column in ("worst_case", "worst", "median", "mean"):
                best = min(getattr(summary, column) for summary in summaries.values())
                cell = f"{getattr(summaries[name], column):.3f}"
                cells.append(f"[bold green]{cell}*[/bold green]" if cell == f"{best:.3f}" else f"{cell} ")
            label = divergence_label(measure) if name == OptimalSampler.name else ""
            made.add_row(label, name, *cells, end_section=name == [*MECHANISMS][-1])
    return made


def _closest_mechanism_text(run: FlightRelease) -> str:
    """Which mechanism is closest for which clients, as measured. The optimal mechanism is best in the worst case only."""
    clients = len(run.released)
    lines = [
        "*: best of the three. No sampler has a smaller worst case than the optimal one.",
        "linear: the client's distribution mixed with uniform; mollifier: the earlier baseline.",
    ]
    for name in [*MECHANISMS][1:]:
        better = {measure: run.count_clients_closer_than_optimal(name, measure) for measure in PAPER_DIVERGENCES}
        if any(better.values()):
            counts = ", ".join(f"{count:,} ({divergence_label(measure)})" for measure, count in better.items())
            lines.append(f"The {name} is closer than optimal for part of the {clients:,}:\n  {counts}.")
        else:
            lines.append(f"The {name} mechanism is closer than optimal for no client.")
    return "\n".join(lines)
