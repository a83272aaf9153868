"""`discreet plan`: choose epsilon, mechanism and number of clients before a collection.

With `--agreement` the plan is for the sampler of an existing agreement, designed or not. With `--samples J` it compares several samples of
each client under one budget with one sample at the whole budget.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from discreet import plots
from discreet._base.showing import confidence_text, json_number_or_null, pluralise, round_up_to_digits
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
    SurveyFile,
    choose_mechanism_and_note,
    client_column_option,
    refuse_given_options,
    refuse_options_beside_survey,
    required_domain_from_options,
    survey_sampler_from_options,
    value_column_option,
    value_option,
)
from discreet.cli._plan._agreed import (
    REHEARSED,
    client_count_text,
    print_plan_for_agreement,
    print_survey_plan,
    rehearsal_cell_texts,
)
from discreet.cli._printing import (
    dataclass_fields_as_json,
    empty_table,
    format_number,
    margin_text,
    print_json,
    print_text_blocks,
    safe_text,
)
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_count
from discreet.estimation import (
    LEAST_EPSILON,
    MOST_CLIENTS,
    MOST_REHEARSED,
    PlanAtEpsilon,
    PopulationWay,
    Rehearsal,
    Ways,
    compare_population_ways,
    plan_at_epsilon,
    rehearse_collections,
    report_sampler_if_better,
    smallest_epsilon_or_none,
    ways_to_spend,
)
from discreet.families import Simplex
from discreet.mechanisms import SERVING, LinearSampler
from discreet.plots import USUAL_EPSILONS, refuse_wrong_picture_ending

_ACCURACY, _CONFIDENCE = 0.05, 0.95
_PURPOSES = {
    "each": "that a sample looks drawn from its client",
    "together": "that all samples of a client look like draws from it",
    "population": "to estimate the population",
}


def _spending_ways_text_blocks(comparisons: Sequence[Ways]) -> list[Any]:
    """The report as blocks: a table, and the best way for each purpose."""
    first = comparisons[0]
    clients_text = (
        "at worst, over clients that hold 1, 2, ... outcomes alike"
        if first.worst
        else "on average over the example's clients"
    )
    best = {purpose: _best_spending_way_text(comparisons, purpose) for purpose in _PURPOSES}
    choices = "; ".join(f"{words}: {best[purpose]}" for purpose, words in _PURPOSES.items() if best[purpose])
    return [
        f"[bold]{first.samples} samples of each client under one budget[/bold], or one sample at all of it:",
        _spending_ways_table(comparisons),
        "each: TV distance of one sample's distribution from its client's. together: TV distance of all samples from as many draws of the "
        f"client's distribution. Both are {clients_text}. population: expected TV distance of the estimated population, with linear. "
        "single: one "
        "sample. joint: all drawn at once, release(p, size=...). product: the same around the product, JointSampler(..., around='product'). "
        "composed: each with a share of the budget.",
        f"Best, {choices}.",
    ]


def _best_spending_way_text(comparisons: Sequence[Ways], purpose: str) -> str:
    """The best way for a purpose, or each way with its epsilons; empty if none is for it."""
    budgets: dict[str, list[str]] = {}
    for comparison in comparisons:
        if any(getattr(way, purpose) is not None for way in comparison.ways):
            budgets.setdefault(comparison.best(purpose).name, []).append(f"{comparison.epsilon:g}")
    if len(budgets) == 1:
        return f"[bold]{next(iter(budgets))}[/bold]"
    return ", ".join(f"[bold]{name}[/bold] at epsilon = {', '.join(epsilons)}" for name, epsilons in budgets.items())


def _spending_ways_table(comparisons: Sequence[Ways]) -> Table:
    table = empty_table("epsilon", "way", "samples", "epsilon each", "each", "together", "population", texts=2)
    for comparison in comparisons:
        for index, way in enumerate(comparison.ways):
            share = "" if way.name in ("joint", "product") else f"{way.epsilon:.3g}"
            costs = (format_number(cost, 3) for cost in (way.each, way.together, way.population))
            table.add_row(
                f"{comparison.epsilon:g}" if not index else "", way.name, str(way.samples), share, *costs,
                end_section=index + 1 == len(comparison.ways),
            )  # fmt: skip
    return table


def _spending_ways_json_records(comparisons: Sequence[Ways]) -> list[dict[str, Any]]:
    """The report as JSON values."""
    return [
        {
            "epsilon": comparison.epsilon,
            "samples": comparison.samples,
            "over": "worst" if comparison.worst else "examples",
            "ways": [dataclass_fields_as_json(way) for way in comparison.ways],
        }
        for comparison in comparisons
    ]


def plan_collection(
    clients: Annotated[int, value_option("N", "Number of clients that will release a sample.")],
    goal: ServedGoal = None,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    survey: SurveyFile = None,
    agreement: Annotated[
        Path | None, value_option("FILE", "Instead: outcomes, epsilon and sampler as agreed, such as a designed one.")
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        value_option("E", "Privacy budget; may be repeated. [default: 0.5, 1, 2, 4, 8]"),
    ] = None,
    samples: Annotated[
        int | None, value_option("J", "Also compare J samples of each client with one sample, under the same budget.")
    ] = None,
    bins: Annotated[
        int | None,
        value_option("N", "Bins of an agreed continuous family. [default: as `discreet estimate`]"),
    ] = None,
    accuracy: Annotated[float, value_option("A", "The largest error of a share to accept.")] = _ACCURACY,
    confidence: Confidence = _CONFIDENCE,
    example: Annotated[
        str | None, value_option("IN", "Public records for a rehearsal (never the records to protect).")
    ] = None,
    client: Annotated[str | None, client_column_option(", in the example")] = None,
    value: Annotated[str | None, value_column_option(", in the example")] = None,
    other: Other = None,
    nulls: Nulls = "error",
    seed: Annotated[int, value_option("S", "Seed of the rehearsal.")] = 0,
    plot: PictureFile = None,
    json: JsonOutput = False,
) -> None:
    """Choose epsilon and mechanism before anything is collected.

    The plan shows the cost of one sample (the smallest possible worst case), the accuracy of the population's shares, and the number of
    clients for an accuracy. With example records it rehearses the collection.
    """
    check_count("clients", clients, most=MOST_CLIENTS)
    unused_by_surveys = {
        "bins": bins, "accuracy": None if accuracy == _ACCURACY else accuracy,
        "confidence": None if confidence == _CONFIDENCE else confidence, "example": example, "client": client, "value": value,
        "other": other, "nulls": None if nulls == "error" else nulls, "seed": seed or None,
    }  # fmt: skip
    if survey is not None:
        if agreement is not None:
            raise DiscreetError("--survey plans an agreement, and --agreement is one; give one of them")
        unused_options = unused_by_surveys | {
            "domain": domain, "domain_size": domain_size, "bounds": bounds, "cells": cells, "samples": samples, "plot": plot,
        }  # fmt: skip
        budgets = sorted(set(epsilon or USUAL_EPSILONS))
        samplers = [survey_sampler_from_options(survey, budget, goal, **unused_options) for budget in budgets]
        print_survey_plan(samplers, clients, json=json)
        return
    read_examples = partial(_read_example_distributions, example, client, value, other, nulls, seed)
    if agreement is not None:
        if any(x is not None for x in (goal, domain, domain_size, bounds, cells, epsilon, samples, plot)):
            raise DiscreetError(
                "--agreement states the sampler; leave out --for, --epsilon, --samples, --plot and the options of "
                "the domain"
            )
        terms = Agreement.read(agreement)
        if terms.survey is not None:
            refuse_options_beside_survey(**unused_by_surveys)
        elif terms.blocks is None:
            refuse_given_options(
                {"--accuracy": unused_by_surveys["accuracy"]},
                "is for a plan before an agreement, or for agreed reports; leave it out",
            )
        print_plan_for_agreement(
            terms, read_examples, clients=clients, accuracy=accuracy, confidence=confidence, bins=bins, seed=seed,
            json=json,
        )  # fmt: skip
        return
    if bins is not None:
        raise DiscreetError("--bins is for an --agreement on a continuous family; say --cells with --bounds")
    mechanism, note = choose_mechanism_and_note(goal, None, may_ask=not json)
    OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
    if plot is not None:
        refuse_wrong_picture_ending(plot)
    family = Simplex(required_domain_from_options(domain, domain_size, bounds, cells))
    budgets = sorted(set(epsilon or USUAL_EPSILONS))
    rows = [
        plan_at_epsilon(family, epsilon=budget, clients=clients, accuracy=accuracy, confidence=confidence)
        for budget in budgets
    ]
    smallest = {
        (name, together): smallest_epsilon_or_none(
            kind, family, clients=clients, accuracy=accuracy, confidence=confidence, together=together
        )
        for name, kind in SERVING.items()
        for together in (False, True)
    }
    laws = read_examples(family.domain)
    comparisons: list[Ways] = []
    if samples is not None:
        spend = partial(ways_to_spend, family, samples=samples, clients=clients, examples=laws)
        comparisons = [spend(epsilon=budget) for budget in budgets]
    rehearsals = {} if laws is None else _rehearse_mechanisms(family, laws, budgets, clients, seed, confidence)
    ways = _rehearse_ways_to_estimate_population(family, laws, budgets, clients, seed, mechanism)
    if plot is not None:
        figure = plots.plan(family, clients=clients, epsilons=budgets, accuracy=accuracy, confidence=confidence)
        plots.save(figure, plot)
    if json:
        spending_record = {"several": _spending_ways_json_records(comparisons)} if comparisons else {}
        ways_record = {
            "population_ways": [
                {"epsilon": e, **asdict(way)} for e, epsilon_ways in ways.items() for way in epsilon_ways
            ]
        }
        record = _plan_json_record(rows, smallest, rehearsals, accuracy, confidence)
        print_json({"mechanism": mechanism, **record, **(ways_record if ways else {}), **spending_record})
        return
    blocks: list[Any] = [
        f"[bold]{pluralise(clients, 'client')}, {pluralise(family.size, 'outcome')}[/bold]: one sample each.",
        _accuracy_by_epsilon_table(rows, accuracy),
        "TV and KL: the smallest possible worst case of the divergence of a client's distribution from its output distribution. "
        f"+-: margin of the {confidence_text(confidence)} interval of a share, in every population. rare: margin for an outcome that nobody "
        f"holds. whole law: expected TV distance of all shares together. clients: the number for a margin of +-{accuracy:g} with linear. "
        f"These margins are for each share alone; of many shares, some will be further off. [bold]All {family.size:,} at "
        f"once[/bold], with {confidence_text(confidence)} confidence:",
        _accuracy_of_all_shares_table(rows, accuracy),
        _recommended_mechanism_text(mechanism, smallest, clients, accuracy),
        *(_reports_advantage_text_blocks(rows, accuracy) if mechanism == LinearSampler.name else []),
        *([] if note is None else [note]),
        *(_spending_ways_text_blocks(comparisons) if comparisons else []),
    ]
    if rehearsals:
        blocks += [
            f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times.",
            _rehearsal_table(rehearsals),
            *(_estimation_ways_text_blocks(ways) if ways else []),
        ]
    if plot is not None:
        blocks.append(f"Written: {safe_text(plot)}")
    print_text_blocks(*blocks)


def _reports_advantage_text_blocks(rows: list[PlanAtEpsilon], accuracy: float) -> list[Any]:
    """What reports spare, where they spare anything."""
    if all(row.reports is None for row in rows):
        return []
    return [
        "[bold]If only the population matters[/bold], let clients send reports, which are not samples of their records "
        f"(`discreet agree --for population`). The table has the number of clients for a margin of +-{accuracy:g}. taken: what --for "
        "population agrees on. over the least: the variance of a share in the uniform population over that of the best subset selection.",
        _reports_versus_values_table(rows, accuracy),
    ]


def _reports_versus_values_table(rows: list[PlanAtEpsilon], accuracy: float) -> Table:
    """What the population takes by reports and by values, at each epsilon, and how far each is from the least possible variance."""
    clients = (f"clients for {accuracy:g}\nby reports", "\nby values")
    table = empty_table("epsilon", *clients, "times", "taken", "over the least\nreports", "\nvalues", texts=0)
    for row in rows:
        has_both = row.clients is not None and row.report_clients is not None
        times = f"{(row.clients or 0) / (row.report_clients or 1):.3g}" if has_both else "1"
        counts = client_count_text(row.clients_for_population), client_count_text(row.clients)
        excesses = ("" if excess is None else f"{excess:.4g}" for excess in row.report_and_value_variance_excess)
        table.add_row(f"{row.epsilon:g}", *counts, times, row.population_mechanism, *excesses)
    return table


def _read_example_distributions(
    example: str | None, client: str | None, value: str | None, other: str | None, nulls: str, seed: int, domain: Domain
) -> Any:
    if example is None:
        if (client, value, other, nulls, seed) != (None, None, None, "error", 0):
            raise DiscreetError(
                "--client, --value, --other, --nulls and --seed are about the rows of --example; give that too"
            )
        return None
    if client is None or value is None:
        raise DiscreetError("--example needs --client COLUMN and --value COLUMN")
    from discreet.domain import Coding
    from discreet.tables import client_laws, file_source  # polars, which a plan without examples does not need

    return client_laws(file_source(example), Coding(domain, other, nulls), value=value, client=client)


def _rehearse_mechanisms(
    family: Simplex, laws: Any, budgets: list[float], clients: int, seed: int, confidence: float
) -> dict[tuple[float, str], Rehearsal]:
    return {
        (budget, name): rehearse_collections(
            kind(family, epsilon=budget), laws, clients=clients, seed=seed, confidence=confidence
        )
        for budget in budgets
        for name, kind in SERVING.items()
    }


def _rehearse_ways_to_estimate_population(
    family: Simplex, laws: Any, budgets: list[float], clients: int, seed: int, mechanism: str
) -> dict[float, list[PopulationWay]]:
    """What each way tells of the population at each epsilon; nothing without several examples, or for other purposes."""
    example_laws = None if laws is None else np.atleast_2d(family.as_rows(laws, "laws"))
    if (
        example_laws is None
        or len(example_laws) < 2
        or mechanism != LinearSampler.name
        or clients > MOST_REHEARSED
        or family.size < 2
    ):
        return {}
    reported_budgets = [budget for budget in budgets if report_sampler_if_better(family, budget) is not None]
    return {
        budget: compare_population_ways(family, example_laws, epsilon=budget, clients=clients, seed=seed)
        for budget in reported_budgets
    }


def _estimation_ways_text_blocks(ways: dict[float, list[PopulationWay]]) -> list[Any]:
    """The ways to the population as a table, with the one to take if clients are like the examples."""
    names = [way.name for way in next(iter(ways.values()))]
    table = empty_table("epsilon", *names, "nearest with samples", "reports need for that", texts=0)
    for epsilon, epsilon_ways in ways.items():
        best = min((way for way in epsilon_ways if way.name != names[-1]), key=lambda way: way.total)
        needs = "" if best.name == names[0] else f"about {best.by_reports:,.0f}"
        table.add_row(f"{epsilon:g}", *(format_number(way.total, 2) for way in epsilon_ways), best.name, needs)
    return [
        "[bold]Which way to the population[/bold]: the TV error of all shares together, if half of the example's clients are public and the "
        "others are asked. Reports assume nothing about clients. The ways with examples are for clients like the examples "
        "(`discreet design`, `discreet estimate --examples`). Where the examples alone are as near, you need not ask anybody.",
        table,
    ]


def _accuracy_by_epsilon_table(rows: list[PlanAtEpsilon], accuracy: float) -> Table:
    columns = ("epsilon", "TV", "KL", "linear\n+-", "rare\n+-", "whole\nlaw", "optimal\n+-")
    table = empty_table(*columns, f"clients\nfor {accuracy:g}", texts=0)
    for row in rows:
        forecast = row.linear
        risks, margins = (format_number(x, 3) for x in (row.tv, row.kl)), (forecast.at_worst, forecast.if_rare)
        table.add_row(
            f"{row.epsilon:g}",
            *risks,
            *map(margin_text, margins),
            format_number(forecast.total, 3),
            margin_text(row.optimal.at_worst),
            client_count_text(row.clients),
        )
    return table


def _accuracy_of_all_shares_table(rows: list[PlanAtEpsilon], accuracy: float) -> Table:
    table = empty_table("epsilon", "linear\n+-", "optimal\n+-", f"clients\nfor {accuracy:g}", texts=0)
    for row in rows:
        margins = margin_text(row.linear.together), margin_text(row.optimal.together)
        table.add_row(f"{row.epsilon:g}", *margins, client_count_text(row.together))
    return table


def _recommended_mechanism_text(
    mechanism: str, smallest: dict[tuple[str, bool], float | None], clients: int, accuracy: float
) -> str:
    """What to take for whom the samples are to serve, and from which epsilon on it is accurate enough."""
    linear, optimal = (_sufficient_epsilons_text(smallest[name, False], smallest[name, True]) for name in SERVING)
    clients_text = pluralise(clients, "client")
    if linear is None:
        verb = "is" if clients == 1 else "are"
        return (
            f"[bold]{clients_text} {verb} too few[/bold] for +-{accuracy:g}, even without privacy: accept a larger error, or ask more "
            "clients."
        )
    target = f"+-{accuracy:g} with {clients_text}"
    if mechanism == "linear":
        advice = f"[bold]To estimate the population: linear[/bold]. It reaches {target} {linear}"
        return advice + (
            "." if optimal is None else f"; optimal, whose samples only narrow a share down to a range, {optimal}."
        )
    range_of = "at no epsilon" if optimal is None else optimal
    return (
        "[bold]To serve each client: optimal[/bold]. It has the same worst case as linear, and for every client it is at least as "
        f"close. Its samples narrow a share of the population only down to a range: {target} {range_of}; linear {linear}."
    )


def _sufficient_epsilons_text(share_epsilon: float | None, joint_epsilon: float | None) -> str | None:
    """From which epsilon on each share is accurate, and from which all at once."""
    if share_epsilon is None:
        return None
    if share_epsilon == joint_epsilon:
        return _epsilon_threshold_text(share_epsilon)
    joint_text = "at no epsilon" if joint_epsilon is None else _epsilon_threshold_text(joint_epsilon)
    return f"{_epsilon_threshold_text(share_epsilon)} for each share, {joint_text} for all at once"


def _epsilon_threshold_text(epsilon: float) -> str:
    return "at any epsilon" if epsilon <= LEAST_EPSILON else f"from epsilon = {round_up_to_digits(epsilon, 3):g} on"


def _rehearsal_table(rehearsals: dict[tuple[float, str], Rehearsal]) -> Table:
    table = empty_table("epsilon", "mechanism", "TV of a client", *REHEARSED, texts=2)
    for (budget, name), rehearsal in rehearsals.items():
        head = f"{budget:g}" if name == "linear" else ""
        table.add_row(head, name, *rehearsal_cell_texts(rehearsal), end_section=name == "optimal")
    return table


def _plan_json_record(
    rows: list[PlanAtEpsilon],
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
                "worst_case": {"tv": row.tv, "kl": json_number_or_null(row.kl)},
                "linear": asdict(row.linear),
                "optimal": asdict(row.optimal),
                "clients_for_accuracy": row.clients,
                "clients_for_accuracy_together": row.together,
                "population": row.population_mechanism,
                "clients_for_accuracy_by_reports": row.clients_for_population,
                "times_the_least_variance": dict(
                    zip(("reports", "values"), row.report_and_value_variance_excess, strict=True)
                ),
            }
            for row in rows
        ],
        "smallest_epsilon": {name: smallest[name, False] for name in SERVING},
        "smallest_epsilon_together": {name: smallest[name, True] for name in SERVING},
        "rehearsals": [
            {"epsilon": budget, "mechanism": name, **asdict(rehearsal)}
            for (budget, name), rehearsal in rehearsals.items()
        ],
    }
