"""`discreet demo`: a tour of the package on real data, explained step by step."""

from dataclasses import asdict
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from discreet._base.numerics import LARGEST_EXPONENT
from discreet._base.showing import json_number, pluralise
from discreet.cli._options import option, switch
from discreet.cli._printing import empty_table, print_blocks, safe_text, write_json
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
    serve_flights_by_design,
    time_zones_figure,
)
from discreet.research.data import logbooks, zone_logbooks

PICTURE = "demo.png"
POPULATION_PICTURE = "demo_population.png"
REPORTS_PICTURE = "demo_destinations.png"
DESIGN_PICTURE = "demo_design.png"
_SHOWN = 6


def demo(
    epsilon: Annotated[float, option("E", "Privacy budget of each aircraft.")] = 2.0,
    aircraft: Annotated[
        str | None, option("TAIL", "Tail number to show in detail. [default: the one with most flights]")
    ] = None,
    out: Annotated[Path, option("DIR", "Folder for the picture.")] = Path("out"),
    json: Annotated[bool, switch("--json", "Print JSON instead.")] = False,
) -> None:
    """4,043 aircraft each release one destination of their flight log, privately.

    Bundled real data: every flight that left New York in 2013. The tour shows the data and the sample of one client, the guarantee in whole
    numbers, and the cost beside two other mechanisms. It then estimates the population, by samples and by reports, and uses the first
    half-year as public examples for the second. It draws four pictures.
    """
    run = release_flights(logbooks(), epsilon=epsilon, aircraft=aircraft)
    lesson = estimate_time_zones(zone_logbooks(), epsilon=epsilon, aircraft=run.client.name)
    told = estimate_destinations(logbooks(), epsilon=epsilon, aircraft=run.client.name)
    served = serve_flights_by_design(logbooks(range(1, 7)), logbooks(range(7, 13)), epsilon=epsilon)
    picture, learnt, designed = out / PICTURE, out / POPULATION_PICTURE, out / DESIGN_PICTURE
    reported = out / REPORTS_PICTURE
    for drawn, path in (
        (flight_release_figure(run), picture),
        (time_zones_figure(lesson), learnt),
        (destinations_figure(told), reported),
        (design_gain_figure(served), designed),
    ):
        save(drawn, path)
    if json:
        records = {
            "population": _time_zones_record(lesson, learnt),
            "reports": _destinations_record(told, reported),
            "design": _design_record(served, designed),
        }
        write_json({**_release_record(run, picture), **records})
        return
    print_blocks(
        f"[bold]{len(run.released):,} aircraft[/bold] made {run.flights:,} flights from New York in 2013, "
        f"to {len(run.destinations)} destinations.\n"
        f"Each keeps its own log and releases [bold]one destination[/bold], at epsilon = {run.epsilon:g}.",
        _client_text(run),
        _client_table(run),
        _guarantee_text(run),
        "[bold]What it cost[/bold]: divergence of the client's distribution from its output distribution.",
        _cost_table(run),
        _mechanism_verdict(run),
        f"Picture: [bold]{safe_text(picture)}[/bold]",
        _time_zones_text(lesson),
        _time_zones_table(lesson),
        _time_zones_verdict(lesson),
        f"Picture: [bold]{safe_text(learnt)}[/bold]",
        _destinations_text(told),
        _destinations_table(told),
        _destinations_verdict(told),
        f"Picture: [bold]{safe_text(reported)}[/bold]",
        _design_text(served),
        _design_table(served),
        _design_verdict(served),
        f"Picture: [bold]{safe_text(designed)}[/bold]",
        "[bold]Not covered[/bold]: a second sample (budgets add up: whoever did all four of the above spent "
        f"{4 * run.epsilon:g}), taking part at all, timing.",
    )


def _design_text(served: DesignedFlights) -> str:
    return (
        f"[bold]What public examples can do[/bold]: suppose that the logs of January to June are public ({served.examples:,} aircraft). "
        "The best sampler for clients like these, with a certificate, then serves "
        f"{len(served.released):,} aircraft in July to December, at epsilon = {served.epsilon:g}. It has seen no flight "
        "of that half (most of these aircraft flew in the first half too): a design made on the logs that it serves "
        "would break their guarantee."
    )


def _design_table(served: DesignedFlights) -> Table:
    made = empty_table("sampler", "mean TV", "mean KL", "worst KL here", "possible", "own", texts=1)
    for name, one in served.samplers.items():
        means = (f"{one.costs[measure].mean():.3f}" for measure in ("tv", "kl"))
        made.add_row(name, *means, f"{one.costs['kl'].max():.3f}", f"{one.worst['kl']:.3f}", f"{one.own:.0%}")
    made.add_row("no sampler is below", "", f"{np.floor(1e3 * served.floor) / 1e3:.3f}", "", "", "")
    return made


def _design_verdict(served: DesignedFlights) -> str:
    return (
        "own: the chance that the sample is a destination which the aircraft really flew to; this time "
        f"{served.own:,} of {len(served.released):,} are. The last line is proved, even for a sampler that was made for these very "
        "aircraft. The price is the worst case over everybody (possible), which --keep limits: see discreet design."
    )


def _design_record(served: DesignedFlights, picture: Path) -> dict[str, Any]:
    return {
        "examples": served.examples,
        "aircraft": len(served.released),
        "flights": served.flights,
        "released_own_destination": served.own,
        "floor": json_number(served.floor),
        "samplers": {
            name: {
                **{f"mean_{measure}": json_number(float(cost.mean())) for measure, cost in one.costs.items()},
                **{f"worst_{measure}": json_number(worst) for measure, worst in one.worst.items()},
                "own": one.own,
            }
            for name, one in served.samplers.items()
        },
        "picture": str(picture),
    }


def _time_zones_text(lesson: TimeZoneEstimate) -> str:
    return (
        f"[bold]What the curator learns[/bold]: in another collection each of the {lesson.found.clients:,} aircraft releases "
        "one [bold]time zone[/bold], drawn privately from its log by the linear mechanism, again at "
        f"epsilon = {lesson.found.sampler.epsilon:g}. "
        f"{lesson.client} released [bold]{lesson.released}[/bold]. The average aircraft's shares, with 95 % intervals:"
    )


def _time_zones_table(lesson: TimeZoneEstimate) -> Table:
    law, made = lesson.found.law, empty_table("time zone", "truth", "estimate", "interval")
    for place in np.argsort(-lesson.truth, kind="stable").tolist():
        made.add_row(
            str(lesson.found.domain.names[place]),
            f"{lesson.truth[place]:.1%}",
            f"{law.estimate[place]:.1%}",
            f"{law.low[place]:.1%} to {law.high[place]:.1%}",
        )
    return made


def _time_zones_verdict(lesson: TimeZoneEstimate) -> str:
    zones = len(lesson.truth)
    return (
        f"{lesson.covering_interval_count} of {zones} intervals hold the truth; 95 % do in the long run. An estimate is unbiased, so it may "
        "be negative. From samples of the optimal mechanism a share could not be told as well: see discreet estimate."
    )


def _destinations_text(told: DestinationEstimate) -> str:
    size, epsilon = len(told.truth), told.found.sampler.epsilon
    names = ", ".join(told.named[:4])
    return (
        f"[bold]If only the population matters[/bold]: each of the {told.found.clients:,} aircraft sends one [bold]report[/bold] on all "
        f"{size} destinations, at epsilon = {epsilon:g}. A report names several at once, and one of them is the aircraft's own, perhaps. "
        f"{told.client}'s names {len(told.named)}: {names}, ... The largest shares, with 95 % intervals:"
    )


def _destinations_table(told: DestinationEstimate) -> Table:
    law, values = told.found.law, told.by_values.law
    made = empty_table("destination", "truth", "by reports", "interval", "by values", "interval")
    for place in np.argsort(-told.truth, kind="stable")[:_SHOWN].tolist():
        cells = [f"{told.truth[place]:.1%}"]
        for each in (law, values):
            cells += [f"{each.estimate[place]:.1%}", f"{each.low[place]:.1%} to {each.high[place]:.1%}"]
        made.add_row(str(told.found.domain.names[place]), *cells)
    return made


def _destinations_verdict(told: DestinationEstimate) -> str:
    size = len(told.truth)
    off = (told.distance_from_truth(told.found), told.distance_from_truth(told.by_values))
    return (
        f"{told.covering_interval_count} of {size} intervals behind reports hold the truth. All {size} shares together are off by "
        f"{off[0]:.2f} in total variation; by single values, the old way, by {off[1]:.2f}. Values would need "
        f"[bold]{told.clients_needed_by_values:,} aircraft[/bold] to tell a share as well. "
        "(Samples look like an aircraft's own records; reports do not.)"
    )


def _shares_record(told: DestinationEstimate | TimeZoneEstimate) -> dict[str, dict[str, float]]:
    law = told.found.law
    return {
        str(name): {
            "truth": float(told.truth[place]),
            "estimate": float(law.estimate[place]),
            "low": float(law.low[place]),
            "high": float(law.high[place]),
        }
        for place, name in enumerate(told.found.domain.names)
    }


def _destinations_record(told: DestinationEstimate, picture: Path) -> dict[str, Any]:
    return {
        "client": {"aircraft": told.client, "named": list(told.named)},
        "destinations": _shares_record(told),
        "off_by": {"reports": told.distance_from_truth(told.found), "values": told.distance_from_truth(told.by_values)},
        "aircraft_that_values_need": told.clients_needed_by_values,
        "picture": str(picture),
    }


def _time_zones_record(lesson: TimeZoneEstimate, picture: Path) -> dict[str, Any]:
    return {
        "time_zones": _shares_record(lesson),
        "client": {"aircraft": lesson.client, "released": lesson.released},
        "picture": str(picture),
    }


def _client_text(run: FlightRelease) -> str:
    client = run.client
    kinds = pluralise(int((client.held > 0).sum()), "destination")
    return (
        f"[bold]One client[/bold]: {client.name} holds {pluralise(client.records, 'flight')} to {kinds}. "
        f"It released [bold]{client.released}[/bold]."
    )


def _client_table(run: FlightRelease) -> Table:
    client = run.client
    made = empty_table("destination", "held", "drawn from")
    top = [int(place) for place in np.argsort(-client.held, kind="stable")[:_SHOWN] if client.held[place] > 0]
    for place in top:
        made.add_row(run.destinations[place], f"{client.held[place]:.2%}", f"{client.drawn_from[place]:.2%}")
    rest = np.setdiff1d(np.arange(len(client.held)), top)
    if rest.size:
        made.add_row(
            f"{rest.size} others together", f"{client.held[rest].sum():.2%}", f"{client.drawn_from[rest].sum():.2%}"
        )
    return made


def _guarantee_text(run: FlightRelease) -> str:
    exact, clients = run.guarantee, len(run.released)
    known = min(run.epsilon, LARGEST_EXPONENT)
    verdict = "as exact rationals" if exact.holds else "NO: THIS IS A BUG, DO NOT RELEASE"
    return (
        f"[bold]The guarantee, in whole numbers[/bold]: of {exact.total:,} equally\n"
        "likely draws, each destination gets, whatever a log says,\n"
        f"  at least {exact.lower:>25,}\n"
        f"  at most  {exact.upper:>25,}\n"
        f"which is {_ratio_digits(exact.possible)} times as many; e^{known:g} is more:\n"
        f"         {_ratio_digits(exact.bound)} ({verdict}).\n"
        f"Largest ratio between any two of these {clients:,} clients: {_ratio_digits(exact.observed)}.\n"
        f"Seeing a destination shifts the odds between any two logs by e^{run.epsilon:g} at most.\n"
        f"{run.own:,} of the {clients:,} released destinations are ones the aircraft really flew to."
    )


def _ratio_digits(ratio: Fraction) -> str:
    """The first 21 digits, rounded down, so that a smaller number never looks larger."""
    context = Context(prec=21, rounding="ROUND_DOWN")
    return f"{context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)):f}"


def _cost_table(run: FlightRelease) -> Table:
    made = empty_table("divergence", "mechanism", "worst possible", "worst here", "median", "mean", texts=2)
    for measure in PAPER_DIVERGENCES:
        summaries = {name: run.cost(name, measure).summary for name in MECHANISMS}
        for name in MECHANISMS:
            cells = []
            for column in ("worst_case", "worst", "median", "mean"):
                best = min(getattr(summary, column) for summary in summaries.values())
                cell = f"{getattr(summaries[name], column):.3f}"
                cells.append(f"[bold green]{cell}*[/bold green]" if cell == f"{best:.3f}" else f"{cell} ")
            label = divergence_label(measure) if name == OptimalSampler.name else ""
            made.add_row(label, name, *cells, end_section=name == [*MECHANISMS][-1])
    return made


def _mechanism_verdict(run: FlightRelease) -> str:
    """Which mechanism is closest for which clients, as measured. The optimal mechanism is best in the worst case only."""
    clients = len(run.released)
    lines = [
        "*: best of the three. No sampler has a smaller worst case than the optimal one.",
        "linear: the client's distribution mixed with uniform; mollifier: the earlier baseline.",
    ]
    for name in [*MECHANISMS][1:]:
        better = {measure: run.clients_better_off(name, measure) for measure in PAPER_DIVERGENCES}
        if any(better.values()):
            counts = ", ".join(f"{count:,} ({divergence_label(measure)})" for measure, count in better.items())
            lines.append(f"The {name} is closer than optimal for part of the {clients:,}:\n  {counts}.")
        else:
            lines.append(f"The {name} mechanism is closer than optimal for no client.")
    return "\n".join(lines)


def _release_record(run: FlightRelease, picture: Path) -> dict[str, Any]:
    client, exact = run.client, run.guarantee
    return {
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
                **{name: json_number(value) for name, value in asdict(cost.summary).items()},
                "serves_better_than_optimal": run.clients_better_off(cost.mechanism, cost.divergence),
            }
            for cost in run.costs
        ],
        "picture": str(picture),
    }
