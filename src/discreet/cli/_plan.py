"""`discreet plan`: choose epsilon, mechanism and number of clients before a collection.

With `--agreement` the plan is for the sampler of an existing agreement, designed or not. With `--samples J` it compares several samples of
each client under one budget with one sample at the whole budget.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from discreet import plots
from discreet._base.showing import json_number, pluralise
from discreet.agreement import Agreement
from discreet.cli._options import (
    Bounds,
    CellCount,
    Confidence,
    DomainFile,
    DomainSize,
    JsonOutput,
    Nulls,
    Other,
    PictureFile,
    ServedGoal,
    choose_mechanism,
    client_option,
    mechanism_text,
    option,
    promise_text,
    require_domain,
    schedule_lines,
    value_option,
)
from discreet.cli._printing import empty_table, format_number, print_blocks, safe_text, write_json
from discreet.cli._survey import SurveyFile, print_survey_plan, stated_survey
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, ImpossibleError, check_count
from discreet.estimation import (
    LEAST_EPSILON,
    MOST_CLIENTS,
    MOST_REHEARSED,
    Outlook,
    PopulationWay,
    Rehearsal,
    ReportRehearsal,
    RoundsCost,
    Ways,
    bin_cells,
    clients_for,
    epsilon_for_accuracy,
    known_excess,
    line_of,
    outlook,
    population_ways,
    rehearsal,
    rehearse_reports,
    rounds_cost,
    ways_to_spend,
)
from discreet.families import ContinuousFamily, Simplex, serves_everybody
from discreet.mechanisms import (
    SERVING,
    AnyFamily,
    LinearSampler,
    ReportSampler,
    Sampler,
    population_mechanism,
    risk_on_atoms,
)
from discreet.plots import USUAL_EPSILONS, check_picture
from discreet.privacy import Pure

_DIVERGENCES = ("tv", "kl")


def agreed_sampler(agreement: Agreement) -> tuple[Domain, Sampler[AnyFamily] | ReportSampler, RoundsCost | None]:
    """The outcomes that samples of an agreement are counted as, on a continuous family its cells; its sampler; and what rounds cost."""
    if agreement.blocks is not None:
        reports = agreement.report_sampler()
        return reports.family.domain, reports, rounds_cost(agreement)
    sampler: Sampler[AnyFamily] = agreement.sampler()
    family = sampler.family
    domain = line_of(sampler) if isinstance(family, ContinuousFamily) else family.domain
    return domain, sampler, rounds_cost(agreement)


def print_reports_plan(
    sampler: ReportSampler,
    rounds: RoundsCost | None,
    clients: int,
    accuracy: float,
    confidence: float,
    laws: Any,
    seed: int,
    *,
    json: bool,
) -> None:
    """Print how far intervals of shares behind reports reach, how many clients an accuracy takes, and a rehearsal with examples, if any."""
    rehearsed = None
    if laws is not None:
        rehearsed = rehearse_reports(sampler, laws, clients=clients, seed=seed, confidence=confidence)
    look = outlook(sampler, mechanism=sampler.name, clients=clients, confidence=confidence)
    needed = _clients_or_none(sampler, accuracy, confidence)
    if json:
        write_json({
            "epsilon": sampler.epsilon, "confidence": confidence, "accuracy": accuracy, "outcomes": sampler.family.size,
            "blocks": {"kind": sampler.blocks.name, **sampler.blocks.parameters}, "excess": sampler.excess,
            "outlook": _numbers(look), "clients_for_accuracy": needed,
            "rehearsal": None if rehearsed is None else asdict(rehearsed),
            **({} if rounds is None else {"rounds": {"rounds": rounds.rounds, "factor": rounds.factor}}),
        })  # fmt: skip
        return
    made = empty_table("a share +-", "rare +-", "all at once +-", "whole law", f"clients for {accuracy:g}", texts=0)
    numbers = (look.at_worst, look.if_rare, look.together, look.total)
    made.add_row(*("" if x is None else format_number(x, 3) for x in numbers), _many(needed))
    print_blocks(
        f"[bold]{pluralise(clients, 'client')}, {pluralise(sampler.family.size, 'outcome')}, epsilon = {sampler.epsilon:g}[/bold], "
        "reports as agreed: one of each client.",
        made,
        f"+-: how far the {100 * confidence:g} % interval of a share reaches, whatever the population. In the uniform "
        f"population the variance of a share is {sampler.excess:.4g} times that of the best subset selection.",
        *([] if rounds is None else [f"[bold]Rounds[/bold]: {rounds}."]),
        *([] if rehearsed is None else _rehearsed_reports(rehearsed, clients)),
    )


def _rehearsed_reports(found: ReportRehearsal, clients: int) -> list[Any]:
    """The rehearsal of reports as blocks."""
    practice = empty_table("share off by", "whole law off by", "intervals +-", "covered", texts=0)
    practice.add_row(
        *(format_number(x, 3) for x in (found.largest, found.total, found.width)), f"{100 * found.covered:.1f} %"
    )
    return [
        f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times; nearest laws.",
        practice,
    ]


def _clients_or_none(
    sampler: Sampler[AnyFamily] | ReportSampler, accuracy: float, confidence: float, *, together: bool = False
) -> int | None:
    """How many clients an accuracy takes; None where no number is enough."""
    try:
        return clients_for(sampler, accuracy=accuracy, confidence=confidence, together=together)
    except ImpossibleError:
        return None


def print_agreed_plan(
    sampler: Sampler[AnyFamily],
    rounds: RoundsCost | None,
    clients: int,
    confidence: float,
    bins: int | None,
    laws: Any,
    seed: int,
    *,
    json: bool,
) -> None:
    """Print the cost of a sample, the margins of the intervals, and a rehearsal with the examples' distributions, if any."""
    risks = {name: float(sampler.risk(name)) for name in _DIVERGENCES}
    on_atoms = _on_atoms(sampler)
    outcomes = _outcomes(sampler, clients, bins)
    look = outlook(sampler, mechanism=sampler.name, clients=clients, confidence=confidence, bins=bins)
    rehearsed = None
    if laws is not None:
        rehearsed = rehearsal(sampler, laws, clients=clients, seed=seed, confidence=confidence, bins=bins)
    if json:
        write_json({
            "epsilon": sampler.epsilon, "confidence": confidence, "outcomes": outcomes,
            "worst": {name: json_number(value) for name, value in risks.items()},
            "outlook": _numbers(look), "rehearsal": None if rehearsed is None else _numbers(rehearsed),
            **({} if on_atoms is None else {"worst_on_atoms": on_atoms}),
            **({} if rounds is None else {"rounds": {"rounds": rounds.rounds, "factor": rounds.factor}}),
        })  # fmt: skip
        return
    made = empty_table("TV", "KL", "a share +-", "rare +-", "all at once +-", texts=0)
    made.add_row(*(format_number(x, 3) for x in (risks["tv"], risks["kl"], look.at_worst, look.if_rare, look.together)))
    what = "bin" if isinstance(sampler.family, ContinuousFamily) else "outcome"
    kind = mechanism_text(sampler.name, any_client=serves_everybody(sampler.family))
    said: list[Any] = [
        f"[bold]{pluralise(clients, 'client')}, {pluralise(outcomes, what)}, "
        f"{promise_text(sampler.privacy, sampler.epsilon)}[/bold], the agreed sampler, {kind}: one sample each.",
        made,
        "TV and KL: divergence of a client's distribution from its output distribution, in the worst case. +-: "
        f"margin of the {100 * confidence:g} % interval of a share, for every population.",
        *([] if on_atoms is None else [_everybody(sampler, on_atoms)]),
        *([] if rounds is None else [f"[bold]Rounds[/bold]: {rounds}."]),
    ]
    if rehearsed is not None:
        practice = empty_table("TV of a client", "share off by", "whole law off by", "intervals +-", "covered", texts=0)
        numbers = (rehearsed.client_tv, rehearsed.largest, rehearsed.total, rehearsed.width)
        practice.add_row(*(format_number(x, 3) for x in numbers), f"{100 * rehearsed.covered:.1f} %")
        said += [
            f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times; samples as they are.",
            practice,
        ]
    print_blocks(*said)


def _outcomes(sampler: Sampler[AnyFamily], clients: int, bins: int | None) -> int:
    """The number of shares to estimate."""
    if isinstance(sampler.family, ContinuousFamily):
        return bin_cells(sampler, clients=clients, count=bins).bins.size
    if bins is not None:
        raise DiscreetError("--bins is for an agreement on a continuous family; the outcomes of this one are listed")
    return sampler.family.size


def _on_atoms(sampler: Sampler[AnyFamily]) -> dict[str, float] | None:
    """The worst cases over every distribution on the atoms of a sampler designed on a line; None for other samplers."""
    if not isinstance(sampler.family, ContinuousFamily) or not sampler.family.any_client:
        return None
    least = float(np.min(sampler.reference))
    return {name: float(risk_on_atoms(sampler.constants, least, name)) for name in _DIVERGENCES}


def _everybody(sampler: Sampler[AnyFamily], worst: dict[str, float]) -> str:
    """What holds for every client on a line, in words."""
    atoms = f"{sampler.carrier.size:,} {type(sampler.discretisation).__name__.lower()}"
    return (
        "A designed reference claims nothing about clients, and over all densities no private sampler has a worst case below the largest "
        f"there is. On the {atoms} that samples are drawn by, which are all that a list of values is seen on, it is TV "
        f"{format_number(worst['tv'], 3)}, KL {format_number(worst['kl'], 3)}, whoever the client is."
    )


def _numbers(found: Any) -> dict[str, Any]:
    return {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(found).items()}


_PURPOSES = {
    "each": "that a sample looks drawn from its client",
    "together": "that all samples of a client look like draws from it",
    "population": "to estimate the population",
}


def several_ways(family: Simplex, budgets: Sequence[float], samples: int, clients: int, laws: Any) -> list[Ways]:
    """The ways to spend each budget on several samples."""
    return [
        ways_to_spend(family, samples=samples, epsilon=budget, clients=clients, examples=laws) for budget in budgets
    ]


def several_blocks(found: Sequence[Ways]) -> list[Any]:
    """The report as blocks: a table, and the best way for each purpose."""
    first = found[0]
    over = (
        "at worst, over clients that hold 1, 2, ... outcomes alike"
        if first.worst
        else "on average over the example's clients"
    )
    best = {purpose: _best(found, purpose) for purpose in _PURPOSES}
    said = "; ".join(f"{words}: {best[purpose]}" for purpose, words in _PURPOSES.items() if best[purpose])
    return [
        f"[bold]{first.samples} samples of each client under one budget[/bold], or one sample at all of it:",
        _table(found),
        "each: TV distance of one sample's law from its client's; together: of the samples from so many draws of it; both "
        f"{over}. population: expected TV distance of the estimated population, linear. single: one sample; joint: all drawn at once, "
        "release(p, size=...); product: the same around the product, JointSampler(..., around='product'); composed: each with a share of the "
        "budget.",
        f"Serves best, {said}.",
    ]


def _best(found: Sequence[Ways], purpose: str) -> str:
    """The best way for a purpose, or each way with its epsilons; empty if none is for it."""
    budgets: dict[str, list[str]] = {}
    for one in found:
        if any(getattr(way, purpose) is not None for way in one.ways):
            budgets.setdefault(one.best(purpose).name, []).append(f"{one.epsilon:g}")
    if len(budgets) == 1:
        return f"[bold]{next(iter(budgets))}[/bold]"
    return ", ".join(f"[bold]{name}[/bold] at epsilon = {', '.join(where)}" for name, where in budgets.items())


def _table(found: Sequence[Ways]) -> Table:
    made = empty_table("epsilon", "way", "samples", "epsilon each", "each", "together", "population", texts=2)
    for one in found:
        for place, way in enumerate(one.ways):
            share = "" if way.name in ("joint", "product") else f"{way.epsilon:.3g}"
            costs = (
                "" if cost is None else format_number(cost, 3) for cost in (way.each, way.together, way.population)
            )
            made.add_row(
                f"{one.epsilon:g}" if not place else "", way.name, str(way.samples), share, *costs,
                end_section=place + 1 == len(one.ways),
            )  # fmt: skip
    return made


def several_record(found: Sequence[Ways]) -> list[dict[str, Any]]:
    """The report as JSON values."""
    return [
        {
            "epsilon": one.epsilon,
            "samples": one.samples,
            "over": "worst" if one.worst else "examples",
            "ways": [
                {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(way).items()}
                for way in one.ways
            ],
        }
        for one in found
    ]


@dataclass(frozen=True)
class PlanRow:
    """The expected accuracy at one epsilon."""

    epsilon: float
    tv: float
    kl: float
    linear: Outlook
    optimal: Outlook
    clients: int | None  # that the linear mechanism needs for the accuracy asked for, of each share
    together: int | None  # and of all of them at once
    reports: ReportSampler | None  # what reports would be; None where epsilon is too small for any
    report_clients: int | None  # that they need for the same accuracy of each share
    values_excess: float | None  # the variance of a share by values over the least that any report has

    @property
    def excess(self) -> tuple[float | None, float | None]:
        """The variance of a share over the least possible, by reports (where values are none worse, by values) and by values."""
        return (self.values_excess if self.reports is None else self.reports.excess), self.values_excess


def plan(
    clients: Annotated[int, option("N", "Number of clients that will release a sample.")],
    goal: ServedGoal = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    survey: SurveyFile = None,
    agreement: Annotated[
        Path | None, option("FILE", "Instead: outcomes, epsilon and sampler as agreed, such as a designed one.")
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        option("E", "Privacy budget; may be repeated. [default: 0.5, 1, 2, 4, 8]"),
    ] = None,
    samples: Annotated[
        int | None, option("J", "Also compare J samples of each client with one sample, under the same budget.")
    ] = None,
    bins: Annotated[
        int | None,
        option("N", "Bins of an agreed continuous family. [default: as `discreet estimate`]"),
    ] = None,
    accuracy: Annotated[float, option("A", "The largest error of a share to accept.")] = 0.05,
    confidence: Confidence = 0.95,
    example: Annotated[
        str | None, option("IN", "Public records for a rehearsal (never the records to protect).")
    ] = None,
    client: Annotated[str | None, client_option(", in the example")] = None,
    value: Annotated[str | None, value_option(", in the example")] = None,
    other: Other = None,
    nulls: Nulls = "error",
    seed: Annotated[int, option("S", "Seed of the rehearsal.")] = 0,
    plot: PictureFile = None,
    json: JsonOutput = False,
) -> None:
    """Choose epsilon and mechanism before anything is collected.

    The plan shows the cost of one sample (the smallest possible worst case), the accuracy of the population's shares, and the number of
    clients for an accuracy. With example records it rehearses the collection.
    """
    check_count("clients", clients, most=MOST_CLIENTS)
    if survey is not None:
        unused = {
            "domain": domain, "domain_size": domain_size, "bounds": bounds, "cells": cells, "agreement": agreement, "samples": samples,
            "bins": bins, "example": example, "plot": plot,
        }  # fmt: skip
        print_survey_plan(
            [stated_survey(survey, each, **unused) for each in sorted(set(epsilon or USUAL_EPSILONS))],
            clients,
            json=json,
        )
        return
    if agreement is not None:
        if any(x is not None for x in (goal, domain, domain_size, bounds, cells, epsilon, samples, plot)):
            raise DiscreetError(
                "--agreement states the sampler; leave out --for, --epsilon, --samples, --plot and the options of "
                "the domain"
            )
        agreed = Agreement.read(agreement)
        if agreed.survey is not None:
            print_survey_plan([agreed.survey_sampler()], clients, json=json)
            return
        outcomes, sampler, rounds = agreed_sampler(agreed)
        if not json:
            print_blocks(*schedule_lines(agreed))
        if isinstance(sampler, ReportSampler):
            if bins is not None:
                raise DiscreetError(
                    "--bins is for an agreement on a continuous family; the outcomes of this one are listed"
                )
            OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
            laws = _example(example, client, value, other, nulls, outcomes)
            print_reports_plan(sampler, rounds, clients, accuracy, confidence, laws, seed, json=json)
            return
        laws = _example(example, client, value, other, nulls, outcomes)
        print_agreed_plan(sampler, rounds, clients, confidence, bins, laws, seed, json=json)
        return
    if bins is not None:
        raise DiscreetError("--bins is for an --agreement on a continuous family; say --cells with --bounds")
    mechanism, taken = choose_mechanism(goal, None, may_ask=not json)
    OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
    if plot is not None:
        check_picture(plot)
    family = Simplex(require_domain(domain, domain_size, bounds, cells))
    budgets = sorted(set(epsilon or USUAL_EPSILONS))
    rows = [_row(family, budget, clients, accuracy, confidence) for budget in budgets]
    smallest = {
        (name, together): _smallest(kind, family, clients, accuracy, confidence, together=together)
        for name, kind in SERVING.items()
        for together in (False, True)
    }
    laws = _example(example, client, value, other, nulls, family.domain)
    compared = [] if samples is None else several_ways(family, budgets, samples, clients, laws)
    rehearsals = {} if laws is None else _rehearsals(family, laws, budgets, clients, seed, confidence)
    roads = _population_roads(family, laws, budgets, clients, seed, mechanism)
    if plot is not None:
        drawn = plots.plan(family, clients=clients, epsilons=budgets, accuracy=accuracy, confidence=confidence)
        plots.save(drawn, plot)
    if json:
        several = {"several": several_record(compared)} if compared else {}
        told = {"population_ways": [{"epsilon": e, **asdict(way)} for e, found in roads.items() for way in found]}
        record = _record(rows, smallest, rehearsals, accuracy, confidence)
        write_json({"mechanism": mechanism, **record, **(told if roads else {}), **several})
        return
    blocks: list[Any] = [
        f"[bold]{pluralise(clients, 'client')}, {pluralise(family.size, 'outcome')}[/bold]: one sample each.",
        _promises(rows, accuracy),
        "TV and KL: divergence of a client's distribution from its output distribution, in the worst case, the "
        "smallest possible. "
        f"+-: how far the {100 * confidence:g} % interval of a share reaches, whatever the population; rare: of an outcome that nobody "
        f"holds; whole law: expected TV distance; clients: so many bring a share within +-{accuracy:g} with linear. That is for each "
        f"share alone; of many some will be further off. [bold]All {family.size:,} at once[/bold], together with {100 * confidence:g} %:",
        _together(rows, accuracy),
        _answer(mechanism, smallest, clients, accuracy),
        *(_reports_blocks(rows, accuracy) if mechanism == LinearSampler.name else []),
        *([] if taken is None else [taken]),
        *(several_blocks(compared) if compared else []),
    ]
    if rehearsals:
        blocks += [
            f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times.",
            _rehearsal_table(rehearsals),
            *(_roads_blocks(roads) if roads else []),
        ]
    if plot is not None:
        blocks.append(f"Written: {safe_text(plot)}")
    print_blocks(*blocks)


def _row(family: Simplex, epsilon: float, clients: int, accuracy: float, confidence: float) -> PlanRow:
    samplers = {name: kind(family, epsilon=epsilon) for name, kind in SERVING.items()}
    looks = {
        name: outlook(sampler, mechanism=name, clients=clients, confidence=confidence)
        for name, sampler in samplers.items()
    }
    each, together = (
        _clients_or_none(samplers["linear"], accuracy, confidence, together=together) for together in (False, True)
    )
    reports = _reports_at(family, epsilon)
    by_reports = None if reports is None else _clients_or_none(reports, accuracy, confidence)
    optimal = samplers["optimal"]
    risks = float(optimal.risk("tv")), float(optimal.risk("kl"))
    over = known_excess(samplers["linear"])
    return PlanRow(
        optimal.epsilon, *risks, looks["linear"], looks["optimal"], each, together, reports, by_reports, over
    )


def _reports_at(family: Simplex, epsilon: float) -> ReportSampler | None:
    """Reports where values need more clients; None where values are as good, or on an interval."""
    if population_mechanism(family, Pure(epsilon)) != ReportSampler.name:
        return None
    return ReportSampler(family, epsilon=epsilon)


def _reports_blocks(rows: list[PlanRow], accuracy: float) -> list[Any]:
    """What reports spare, where they spare anything."""
    if all(row.reports is None for row in rows):
        return []
    return [
        "[bold]If only the population matters[/bold], let clients send reports, which are no samples of their records "
        f"(`discreet agree --for population`). Clients that bring a share within +-{accuracy:g}; over the least: the variance of a share in "
        "the uniform population over that of the best subset selection; taken: what --for population agrees on.",
        _by_reports(rows, accuracy),
    ]


def _by_reports(rows: list[PlanRow], accuracy: float) -> Table:
    """What the population takes by reports and by values, at each epsilon, and how far each is from the least possible variance."""
    made = empty_table(
        "epsilon",
        f"clients for {accuracy:g}\nby reports",
        "\nby values",
        "times",
        "taken",
        "over the least\nreports",
        "\nvalues",
        texts=0,
    )
    for row in rows:
        chosen = LinearSampler.name if row.reports is None else ReportSampler.name
        both = row.clients is not None and row.report_clients is not None
        times = f"{(row.clients or 0) / (row.report_clients or 1):.3g}" if both else ""
        by_reports = row.clients if row.reports is None else row.report_clients
        over = ("" if each is None else f"{each:.4g}" for each in row.excess)
        made.add_row(f"{row.epsilon:g}", _many(by_reports), _many(row.clients), times or "1", chosen, *over)
    return made


def _smallest(
    kind: type[Sampler[Any]],
    family: Simplex,
    clients: int,
    accuracy: float,
    confidence: float,
    *,
    together: bool,
) -> float | None:
    try:
        return epsilon_for_accuracy(
            kind, family, clients=clients, accuracy=accuracy, confidence=confidence, together=together
        )
    except ImpossibleError:
        return None


def _example(
    example: str | None, client: str | None, value: str | None, other: str | None, nulls: str, domain: Domain
) -> Any:
    if example is None:
        if (client, value, other, nulls) != (None, None, None, "error"):
            raise DiscreetError("--client, --value, --other and --nulls are about the rows of --example; give that too")
        return None
    if client is None or value is None:
        raise DiscreetError("--example needs --client COLUMN and --value COLUMN")
    from discreet.tables import Coding, client_laws, file_source  # polars, which a plan without examples does not need

    return client_laws(file_source(example), Coding(domain, other, nulls), value=value, client=client)


def _rehearsals(
    family: Simplex, laws: Any, budgets: list[float], clients: int, seed: int, confidence: float
) -> dict[tuple[float, str], Rehearsal]:
    return {
        (budget, name): rehearsal(kind(family, epsilon=budget), laws, clients=clients, seed=seed, confidence=confidence)
        for budget in budgets
        for name, kind in SERVING.items()
    }


def _population_roads(
    family: Simplex, laws: Any, budgets: list[float], clients: int, seed: int, mechanism: str
) -> dict[float, list[PopulationWay]]:
    """What each way tells of the population at each epsilon; nothing without several examples, or for other purposes."""
    held = None if laws is None else np.atleast_2d(family.as_rows(laws, "laws"))
    if held is None or len(held) < 2 or mechanism != LinearSampler.name or clients > MOST_REHEARSED or family.size < 2:
        return {}
    reported = [budget for budget in budgets if _reports_at(family, budget) is not None]
    return {each: population_ways(family, held, epsilon=each, clients=clients, seed=seed) for each in reported}


def _roads_blocks(roads: dict[float, list[PopulationWay]]) -> list[Any]:
    """The ways to the population as a table, with the one to take if clients are like the examples."""
    names = [way.name for way in next(iter(roads.values()))]
    made = empty_table("epsilon", *names, "nearest with samples", "reports need for that", texts=0)
    for epsilon, found in roads.items():
        best = min((way for way in found if way.name != names[-1]), key=lambda way: way.total)
        needs = "" if best.name == names[0] else f"about {best.by_reports:,.0f}"
        made.add_row(f"{epsilon:g}", *(format_number(way.total, 2) for way in found), best.name, needs)
    return [
        "[bold]Which way to the population[/bold]: whole law off by (TV), where half of the example's clients are public and the others are "
        "asked. Reports assume nothing about clients. The ways with examples hold for clients like the examples alone: take them "
        "(`discreet design`, `discreet estimate --examples`) if these are, and where the examples alone are as near, nobody need be asked.",
        made,
    ]


def _promises(rows: list[PlanRow], accuracy: float) -> Table:
    made = empty_table(
        "epsilon",
        "TV",
        "KL",
        "linear\n+-",
        "rare\n+-",
        "whole\nlaw",
        "optimal\n+-",
        f"clients\nfor {accuracy:g}",
        texts=0,
    )
    for row in rows:
        total = row.linear.total
        made.add_row(
            f"{row.epsilon:g}", format_number(row.tv, 3), format_number(row.kl, 3), format_number(row.linear.at_worst, 3),
            format_number(row.linear.if_rare, 3),
            "" if total is None else format_number(total, 3), format_number(row.optimal.at_worst, 3), _many(row.clients),
        )  # fmt: skip
    return made


def _together(rows: list[PlanRow], accuracy: float) -> Table:
    made = empty_table("epsilon", "linear\n+-", "optimal\n+-", f"clients\nfor {accuracy:g}", texts=0)
    for row in rows:
        reaches = format_number(row.linear.together, 3), format_number(row.optimal.together, 3)
        made.add_row(f"{row.epsilon:g}", *reaches, _many(row.together))
    return made


def _many(clients: int | None) -> str:
    """A number of clients that fits its column; empty if no number is enough."""
    if clients is None:
        return ""
    return f"{clients:,}" if clients < 10**8 else f"{clients:.2g}"


def _answer(mechanism: str, smallest: dict[tuple[str, bool], float | None], clients: int, accuracy: float) -> str:
    """What to take for whom the samples are to serve, and from which epsilon on it is accurate enough."""
    linear, optimal = (_each_and_together(smallest[name, False], smallest[name, True]) for name in SERVING)
    who = pluralise(clients, "client")
    if linear is None:
        few = "is" if clients == 1 else "are"
        return f"[bold]{who} {few} too few[/bold] for +-{accuracy:g}, even without privacy: ask for less, or ask more of them."
    reached = f"+-{accuracy:g} with {who}"
    if mechanism == "linear":
        said = f"[bold]To estimate the population: linear[/bold]. It reaches {reached} {linear}"
        return said + (
            "." if optimal is None else f"; optimal, whose samples only narrow a share down to a range, {optimal}."
        )
    range_of = "at no epsilon" if optimal is None else optimal
    return (
        "[bold]To serve each client: optimal[/bold]. It has the same worst case as linear, and serves every client at least as "
        f"well. Its samples narrow a share of the population down to a range: {reached} {range_of}; linear {linear}."
    )


def _each_and_together(each: float | None, together: float | None) -> str | None:
    """From which epsilon on each share is accurate, and from which all at once."""
    if each is None:
        return None
    if each == together:
        return _from_epsilon(each)
    rest = "at no epsilon" if together is None else _from_epsilon(together)
    return f"{_from_epsilon(each)} for each share, {rest} for all at once"


def _from_epsilon(epsilon: float) -> str:
    return "at any epsilon" if epsilon <= LEAST_EPSILON else f"from epsilon = {epsilon:.3g} on"


def _rehearsal_table(rehearsals: dict[tuple[float, str], Rehearsal]) -> Table:
    made = empty_table(
        "epsilon", "mechanism", "TV of a client", "share off by", "whole law off by", "intervals +-", "covered", texts=2
    )
    for (budget, name), each in rehearsals.items():
        made.add_row(
            f"{budget:g}" if name == "linear" else "", name, format_number(each.client_tv, 3), format_number(each.largest, 3),
            format_number(each.total, 3), format_number(each.width, 3), f"{100 * each.covered:.1f} %",
            end_section=name == "optimal",
        )  # fmt: skip
    return made


def _record(
    rows: list[PlanRow],
    smallest: dict[tuple[str, bool], float | None],
    rehearsals: dict[tuple[float, str], Rehearsal],
    accuracy: float,
    confidence: float,
) -> dict[str, Any]:
    return {
        "accuracy": accuracy,
        "confidence": confidence,
        "rows": [
            {
                "epsilon": row.epsilon,
                "worst_case": {"tv": row.tv, "kl": json_number(row.kl)},
                "linear": asdict(row.linear),
                "optimal": asdict(row.optimal),
                "clients_for_accuracy": row.clients,
                "clients_for_accuracy_together": row.together,
                "population": LinearSampler.name if row.reports is None else ReportSampler.name,
                "clients_for_accuracy_by_reports": row.clients if row.reports is None else row.report_clients,
                "times_the_least_variance": dict(zip(("reports", "values"), row.excess, strict=True)),
            }
            for row in rows
        ],
        "smallest_epsilon": {name: smallest[name, False] for name in SERVING},
        "smallest_epsilon_together": {name: smallest[name, True] for name in SERVING},
        "rehearsals": [
            {"epsilon": budget, "mechanism": name, **asdict(each)} for (budget, name), each in rehearsals.items()
        ],
    }
