"""`discreet plan` for a survey, and for an existing agreement, designed or not (`--agreement FILE`): what so many clients will tell.

The plan for samples states their worst cases; the plan for reports states how many clients an accuracy takes. Public examples rehearse both.
The plan for a survey states the error of each question.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.table import Table

from discreet._base.showing import confidence_text, json_number_or_null, pluralise, round_up_to_digits
from discreet.agreement import Agreement
from discreet.cli._options import mechanism_text, privacy_promise_text, round_schedule_lines
from discreet.cli._printing import (
    dataclass_fields_as_json,
    empty_table,
    format_number,
    margin_text,
    print_json_or_text,
    print_text_blocks,
    safe_text,
)
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError
from discreet.estimation import (
    Rehearsal,
    RoundsCost,
    SurveyOutlook,
    bins_of_about_equal_reference_mass,
    clients_needed_or_none,
    line_cells_of_sampler,
    outlook,
    rehearse_collections,
    rounds_cost,
    survey_outlook,
)
from discreet.families import ContinuousFamily, serves_everybody
from discreet.mechanisms import AnyFamily, ReportSampler, Sampler, worst_case_on_atoms
from discreet.survey import SurveySampler

_DIVERGENCES = ("tv", "kl")
REHEARSED = ("share off by", "whole law off by", "intervals +-", "covered")  # columns of a rehearsal


def print_survey_plan(samplers: list[SurveySampler], clients: int, *, json: bool) -> None:
    """Print what so many clients will tell of each question, at each epsilon."""
    outlooks = [survey_outlook(sampler, clients) for sampler in samplers]
    plans: list[dict[str, Any]] = []
    blocks: list[Any] = []
    for sampler, question_outlooks in zip(samplers, outlooks, strict=True):
        questions = [
            {**vars(question_outlook), "question": question_outlook.question.title}
            for question_outlook in question_outlooks
        ]
        plans.append({"epsilon": sampler.epsilon, "questions": questions})
        blocks.append(
            f"[bold]{pluralise(clients, 'client')}, epsilon = {sampler.epsilon:g}[/bold]: one report of each client, which answers one "
            "question with the whole budget."
        )
        blocks.append(_survey_outlook_table(question_outlooks))
    hopeless = any(
        question_outlook.hopeless for question_outlooks in outlooks for question_outlook in question_outlooks
    )
    blocks.append(
        "asked: clients that get this question. standard error: of one share in the uniform population; of a mean in the worst one, in its "
        "unit; of a distribution function on average. whole table off by: half the expected sum of absolute errors of all shares. enough: "
        "clients for a whole table off by 0.1; of other questions, for twice the standard error at 0.1 of the range."
    )
    if hopeless:
        blocks.append(
            "[bold red]no[/bold red]: the answer would tell next to nothing. Leave such questions out, ask coarser columns, or ask more "
            "clients: each question takes clients from the others."
        )
    print_json_or_text({"clients": clients, "plans": plans}, *blocks, json=json)


def _survey_outlook_table(question_outlooks: list[SurveyOutlook]) -> Table:
    table = empty_table("question", "asked", "standard\nerror", "whole table\noff by", "tells", "enough")
    for question_outlook in question_outlooks:
        table_error = format_number(question_outlook.total_variation, 2)
        tells = "[bold red]no[/bold red]" if question_outlook.hopeless else "yes"
        enough = (
            f"{question_outlook.enough:,}"
            if question_outlook.enough < 10**9
            else f"{round_up_to_digits(question_outlook.enough, 2):.2g}"
        )
        table.add_row(
            safe_text(question_outlook.question.title, most=60),
            f"{question_outlook.asked:,.0f}",
            format_number(question_outlook.standard_error, 3),
            table_error,
            tells,
            enough,
        )
    return table


def print_plan_for_agreement(
    agreement: Agreement,
    read_examples: Callable[[Domain], Any],
    *,
    clients: int,
    accuracy: float,
    confidence: float,
    bins: int | None,
    seed: int,
    json: bool,
) -> None:
    """Print the plan for an agreement; `read_examples` gives the examples' distributions on its outcomes, or None without examples."""
    if agreement.survey is not None:
        print_survey_plan([agreement.survey_sampler()], clients, json=json)
        return
    if not json:
        print_text_blocks(*round_schedule_lines(agreement))
    rounds = rounds_cost(agreement)
    if agreement.blocks is not None:
        report_sampler = agreement.report_sampler()
        _refuse_bins_option(bins)
        OPEN_UNIT.check("accuracy", accuracy, "five percent is 0.05")
        laws = read_examples(report_sampler.family.domain)
        rehearsal = None
        if laws is not None:
            rehearsal = rehearse_collections(report_sampler, laws, clients=clients, seed=seed, confidence=confidence)
        _print_reports_plan(report_sampler, rounds, rehearsal, clients, accuracy, confidence, json=json)
        return
    sampler: Sampler[AnyFamily] = agreement.sampler()
    family = sampler.family
    laws = read_examples(line_cells_of_sampler(sampler) if isinstance(family, ContinuousFamily) else family.domain)
    rehearsal = None
    if laws is not None:
        rehearsal = rehearse_collections(sampler, laws, clients=clients, seed=seed, confidence=confidence, bins=bins)
    _print_samples_plan(sampler, rounds, rehearsal, clients, confidence, bins, json=json)


def _print_reports_plan(
    sampler: ReportSampler,
    rounds: RoundsCost | None,
    rehearsal: Rehearsal | None,
    clients: int,
    accuracy: float,
    confidence: float,
    *,
    json: bool,
) -> None:
    """Print how far intervals of shares behind reports reach, and how many clients an accuracy takes."""
    forecast = outlook(sampler, mechanism=sampler.name, clients=clients, confidence=confidence)
    clients_needed = clients_needed_or_none(sampler, accuracy, confidence)
    record = {
        "epsilon": sampler.epsilon, "confidence": confidence, "accuracy": accuracy, "outcomes": sampler.family.size,
        "blocks": {"kind": sampler.blocks.name, **sampler.blocks.parameters}, "excess": sampler.excess,
        "outlook": dataclass_fields_as_json(forecast), "clients_for_accuracy": clients_needed, "rehearsal": _rehearsal_json_record(rehearsal),
        **_rounds_cost_json_record(rounds),
    }  # fmt: skip
    table = empty_table("a share +-", "rare +-", "all at once +-", "whole law", f"clients for {accuracy:g}", texts=0)
    margins = (forecast.at_worst, forecast.if_rare, forecast.together)
    table.add_row(*map(margin_text, margins), format_number(forecast.total, 3), client_count_text(clients_needed))
    print_json_or_text(
        record,
        f"[bold]{pluralise(clients, 'client')}, {pluralise(sampler.family.size, 'outcome')}, epsilon = {sampler.epsilon:g}[/bold], "
        "reports as agreed: one of each client.",
        table,
        f"+-: how far the {confidence_text(confidence)} interval of a share reaches, whatever the population. In the uniform "
        f"population the variance of a share is {sampler.excess:.4g} times that of the best subset selection.",
        *_rounds_cost_lines(rounds),
        *_rehearsal_text_blocks(rehearsal, clients, "nearest laws"),
        json=json,
    )


def _print_samples_plan(
    sampler: Sampler[AnyFamily],
    rounds: RoundsCost | None,
    rehearsal: Rehearsal | None,
    clients: int,
    confidence: float,
    bins: int | None,
    *,
    json: bool,
) -> None:
    """Print the cost of a sample, and the margins of the intervals."""
    risks = {name: float(sampler.risk(name)) for name in _DIVERGENCES}
    on_atoms = _worst_cases_on_atoms(sampler)
    outcomes = _number_of_shares_to_estimate(sampler, clients, bins)
    forecast = outlook(sampler, mechanism=sampler.name, clients=clients, confidence=confidence, bins=bins)
    record = {
        "epsilon": sampler.epsilon, "confidence": confidence, "outcomes": outcomes,
        "worst": {name: json_number_or_null(value) for name, value in risks.items()},
        "outlook": dataclass_fields_as_json(forecast), "rehearsal": _rehearsal_json_record(rehearsal),
        **({} if on_atoms is None else {"worst_on_atoms": on_atoms}),
        **_rounds_cost_json_record(rounds),
    }  # fmt: skip
    table = empty_table("TV", "KL", "a share +-", "rare +-", "all at once +-", texts=0)
    margins = (forecast.at_worst, forecast.if_rare, forecast.together)
    table.add_row(*(format_number(x, 3) for x in (risks["tv"], risks["kl"])), *map(margin_text, margins))
    noun = "bin" if isinstance(sampler.family, ContinuousFamily) else "outcome"
    kind = mechanism_text(sampler.name, any_client=serves_everybody(sampler.family))
    print_json_or_text(
        record,
        f"[bold]{pluralise(clients, 'client')}, {pluralise(outcomes, noun)}, "
        f"{privacy_promise_text(sampler.privacy, sampler.epsilon)}[/bold], the agreed sampler, {kind}: one sample each.",
        table,
        "TV and KL: divergence of a client's distribution from its output distribution, in the worst case. +-: "
        f"margin of the {confidence_text(confidence)} interval of a share, for every population.",
        *([] if on_atoms is None else [_worst_cases_on_atoms_text(sampler, on_atoms)]),
        *_rounds_cost_lines(rounds),
        *_rehearsal_text_blocks(rehearsal, clients, "samples as they are"),
        json=json,
    )


def _rounds_cost_json_record(rounds: RoundsCost | None) -> dict[str, Any]:
    return {} if rounds is None else {"rounds": {"rounds": rounds.rounds, "factor": rounds.factor}}


def _rounds_cost_lines(rounds: RoundsCost | None) -> list[str]:
    return [] if rounds is None else [f"[bold]Rounds[/bold]: {rounds}."]


def _rehearsal_json_record(rehearsal: Rehearsal | None) -> dict[str, Any] | None:
    """A rehearsal as JSON; of reports without the distance of a client from its sample."""
    return (
        None
        if rehearsal is None
        else {name: value for name, value in dataclass_fields_as_json(rehearsal).items() if value is not None}
    )


def _rehearsal_text_blocks(rehearsal: Rehearsal | None, clients: int, estimates: str) -> list[Any]:
    """A rehearsal as a table, if there was one; `estimates` says what is compared with the truth."""
    if rehearsal is None:
        return []
    table = empty_table(*([] if rehearsal.client_tv is None else ["TV of a client"]), *REHEARSED, texts=0)
    table.add_row(*rehearsal_cell_texts(rehearsal))
    return [
        f"[bold]Rehearsal[/bold]: {pluralise(clients, 'client')} drawn from the example's, 20 times; {estimates}.",
        table,
    ]


def rehearsal_cell_texts(rehearsal: Rehearsal) -> list[str]:
    """The numbers of a rehearsal: how far a client is from its sample, where there are samples, and those of `REHEARSED`."""
    first = [] if rehearsal.client_tv is None else [rehearsal.client_tv]
    numbers = [*first, rehearsal.largest, rehearsal.total, rehearsal.width]
    return [*(format_number(x, 3) for x in numbers), f"{100 * rehearsal.covered:.1f} %"]


def client_count_text(clients: int | None) -> str:
    """A number of clients that fits its column; empty if no number is enough."""
    if clients is None:
        return ""
    return f"{clients:,}" if clients < 10**8 else f"{round_up_to_digits(clients, 2):.2g}"


def _refuse_bins_option(bins: int | None) -> None:
    if bins is not None:
        raise DiscreetError("--bins is for an agreement on a continuous family; the outcomes of this one are listed")


def _number_of_shares_to_estimate(sampler: Sampler[AnyFamily], clients: int, bins: int | None) -> int:
    """The number of shares to estimate."""
    if isinstance(sampler.family, ContinuousFamily):
        return bins_of_about_equal_reference_mass(sampler, clients=clients, count=bins).bins.size
    _refuse_bins_option(bins)
    return sampler.family.size


def _worst_cases_on_atoms(sampler: Sampler[AnyFamily]) -> dict[str, float] | None:
    """The worst cases over every distribution on the atoms of a sampler designed on a line; None for other samplers."""
    if not isinstance(sampler.family, ContinuousFamily) or not sampler.family.any_client:
        return None
    least_mass = float(np.min(sampler.reference))
    return {name: float(worst_case_on_atoms(sampler.constants, least_mass, name)) for name in _DIVERGENCES}


def _worst_cases_on_atoms_text(sampler: Sampler[AnyFamily], worst: dict[str, float]) -> str:
    """What holds for every client on a line, in words."""
    atoms = f"{sampler.carrier.size:,} {type(sampler.discretisation).__name__.lower()}"
    return (
        "A designed reference claims nothing about clients, and over all densities no private sampler has a worst case below the largest "
        f"there is. On the {atoms} that samples are drawn by, which are all that a list of values is seen on, it is TV "
        f"{format_number(worst['tv'], 3)}, KL {format_number(worst['kl'], 3)}, whoever the client is."
    )
