"""`json_record_of_estimate`: an estimate as plain values for programs, the same from a command and from a service.

Notes tell a reader what to know before trusting the numbers: what the records leave open, which clients the intervals exclude, and doubts
that the samples raise. If the truth is known, `Fidelity` measures the distance of an estimate from it: total variation, KL, squared
Hellinger, largest error of a share, earth mover's distance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base.showing import json_number_or_null
from discreet.agreement import Agreement
from discreet.divergences import divergence
from discreet.domain import Domain
from discreet.estimation._from_releases import InvertedPopulation
from discreet.estimation._groups import GroupedPopulation, PooledPopulation, shares_within
from discreet.estimation._inference import Estimate, Shares
from discreet.estimation._planning import variance_excess_or_none
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation
from discreet.estimation._shifts import (
    Change,
    Liars,
    ReportLiars,
    SurveyChange,
    count_shifts_fitting_half_interval,
    liars,
)
from discreet.estimation._surveys import SurveyAnswers, joint_labels
from discreet.estimation._ways import rounds_cost
from discreet.families import serves_everybody

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fidelity:
    """Distances from the truth to an estimate; `wasserstein` (in units of the outcomes) is None if these are not numbers."""

    tv: float
    kl: float
    hellinger: float
    largest: float
    wasserstein: float | None


def measure_fidelity_to_truth(truth: Floats, law: Floats, domain: Domain) -> Fidelity:
    """The distances from the truth to an estimate. KL is infinite if the estimate excludes an outcome that the truth has."""
    return Fidelity(
        float(divergence("tv")(truth, law)),
        float(divergence("kl")(truth, law)),
        float(divergence("hellinger")(truth, law)),
        float(np.abs(truth - law).max()),
        None
        if domain.values is None
        else float(scipy.stats.wasserstein_distance(domain.values, domain.values, truth, law)),
    )


def notes_on_estimate(
    estimate: AnyPopulation, agreement: Agreement, *, named: bool = True, distinct: bool = True
) -> list[str]:
    """What a reader should know. `named`: the samples say which agreement they were made under; `distinct`: each is another client's."""
    notes = notes_on_unverified_records(agreement, named=named, distinct=distinct)
    if isinstance(estimate, Population):
        notes += _notes_on_clients_outside_family(estimate)
    return [*notes, *estimate.doubts]


def json_record_of_estimate(
    estimate: AnyPopulation,
    agreement: Agreement,
    notes: Sequence[str],
    *,
    statistics: Sequence[Estimate] = (),
    truth: Floats | None = None,
    lies: Liars | ReportLiars | None = None,
) -> dict[str, Any]:
    """All of an estimate as JSON holds it. `truth`: the average client's law, where it is known. `lies`: what so many liars can have done."""
    one_liar, noun = liars(estimate), "reports" if isinstance(estimate, ReportedPopulation) else "samples"
    columns: dict[str, Any] = {
        "outcome": estimate.domain.names,
        noun: estimate.counts.tolist(),
        "released": estimate.released_shares,
        "law": estimate.law,
        **({} if lies is None else {"despite_liars": lies.law}),
    }
    if estimate.exact:
        columns["nearest"] = estimate.nearest.tolist()
    if estimate.reweighted is not None:
        columns["reweighted"] = estimate.reweighted.law.tolist()
    if truth is not None:
        columns["truth"] = np.asarray(truth, dtype=np.float64).tolist()
    record: dict[str, Any] = {
        noun: estimate.samples,
        **_agreement_json_fields(agreement),
        "confidence": estimate.confidence,
        "identifiable": estimate.exact,
        **({} if isinstance(estimate, ReportedPopulation) else {"largest_bias_of_samples": estimate.largest_bias}),
        "margin_at_worst": estimate.margin_at_worst,
        "shares": _columns_to_rows(columns),
        "statistics": [asdict(statistic) for statistic in statistics],
        "notes": list(notes),
        "liars": _liar_json_fields(estimate.law, one_liar.shift, one_liar.band_shift),
    }
    if lies is not None:
        record["liars"] |= {"number": lies.number, "shift": lies.shift}
    if estimate.reweighted is not None:
        record["reweighted"] = {
            "examples": len(estimate.reweighted.weights),
            "counting_as_samples": estimate.reweighted.pull,
            "gap": estimate.reweighted.gap,
            "strain": json_number_or_null(estimate.reweighted.strain),
        }
    if truth is not None:
        record["fidelity"] = {
            name: {
                key: None if distance is None else json_number_or_null(distance)
                for key, distance in asdict(fidelity).items()
            }
            for name, fidelity in fidelities_of_estimated_laws(estimate, truth).items()
        }
    excess = variance_excess_or_none(estimate.sampler)
    if excess is not None:
        record["times_the_least_variance"] = excess
    cost = rounds_cost(agreement)
    if cost is not None:
        record["rounds"] = {"rounds": cost.rounds, "factor": cost.factor}
    return record


def _agreement_json_fields(agreement: Agreement) -> dict[str, Any]:
    return {"agreement": agreement.id, "mechanism": agreement.mechanism, "epsilon": agreement.epsilon}


def _liar_json_fields(law: Shares, shift: float, band_shift: float) -> dict[str, Any]:
    """What one liar can have done, and how many can move a share by half of its longest interval."""
    return {
        "one": shift,
        "one_at_ends": band_shift,
        "as_far_as_intervals": count_shifts_fitting_half_interval(law, shift),
    }


def json_record_of_inverted_estimate(
    estimate: InvertedPopulation, agreement: Agreement, notes: Sequence[str]
) -> dict[str, Any]:
    """An estimate from the samples of a mechanism of somebody's own, in the fields of `json_record_of_estimate`."""
    columns = {
        "outcome": estimate.domain.names,
        "samples": estimate.counts.tolist(),
        "released": estimate.released_shares,
        "law": estimate.law,
        "nearest": estimate.nearest.tolist(),
    }
    return {
        "samples": estimate.samples,
        **_agreement_json_fields(agreement),
        "confidence": estimate.confidence,
        "identifiable": True,
        "shares": _columns_to_rows(columns),
        "statistics": [],
        "notes": list(notes),
        "liars": _liar_json_fields(estimate.law, estimate.liar_shift, estimate.liar_shift),
    }


def json_record_of_group_estimates(
    grouped: GroupedPopulation,
    agreement: Agreement,
    notes: Sequence[str],
    *,
    by: str,
    statistics: Mapping[str, Mapping[Any, Estimate]],
    listed: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Estimates of groups as JSON holds them. `listed`: how many clients of each group a table of clients has."""
    first = next(iter(grouped.groups.values()))
    noun = "reports" if isinstance(first, ReportedPopulation) else "samples"
    groups = []
    for name, group in grouped.groups.items():
        record: dict[str, Any] = {"group": name, "clients": group.clients}
        if listed is not None:
            record["listed"] = listed.get(name, 0)
        record |= {
            "margin_all_at_once": grouped.margins[name],
            "tells_nothing": name in grouped.silent,
            "shares": _columns_to_rows(
                {"outcome": group.domain.names, noun: group.counts.tolist(), "law": grouped.laws[name]}
            ),
            "statistics": [asdict(estimates[name]) for estimates in statistics.values()],
        }
        groups.append(record)
    return {
        noun: grouped.clients,
        **_agreement_json_fields(agreement),
        "confidence": grouped.confidence,
        "identifiable": first.exact,
        "by": by,
        "all_at_once": len(grouped.groups) * len(first.counts),
        "groups": groups,
        "notes": list(notes),
    }


def json_record_of_change(
    change: Change,
    agreements: tuple[Agreement, Agreement],
    notes: Sequence[str],
    *,
    statistics: Sequence[Estimate] = (),
) -> dict[str, Any]:
    """A change as JSON holds it; `agreements`: the agreements before and after."""
    sides = [
        {"clients": side.clients, **_agreement_json_fields(agreement)}
        for side, agreement in zip((change.before, change.after), agreements, strict=True)
    ]
    columns = {
        "outcome": change.after.domain.names,
        "before": change.before.law.estimate.tolist(),
        "after": change.after.law.estimate.tolist(),
        "change": change.law,
    }
    return {
        "before": sides[0],
        "after": sides[1],
        "confidence": change.confidence,
        "identifiable": change.exact,
        "changes": _columns_to_rows(columns),
        "statistics": [asdict(statistic) for statistic in statistics],
        "notes": list(notes),
    }


def json_record_of_pooled_estimate(
    pooled: PooledPopulation, agreements: Mapping[int, Agreement], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The average client of several stages as JSON holds it; `agreements`: the agreement of each stage by its number, as notes name it."""
    stages = [
        {
            "number": number,
            "agreement": agreement.id,
            "purpose": agreement.purpose,
            "mechanism": agreement.mechanism,
            "epsilon": agreement.epsilon,
            "clients": stage.clients,
            "identifiable": stage.exact,
        }
        for stage, (number, agreement) in zip(pooled.stages, agreements.items(), strict=True)
    ]
    return {
        "clients": pooled.clients,
        "confidence": pooled.confidence,
        "identifiable": pooled.exact,
        "stages": stages,
        "shares": _columns_to_rows({"outcome": pooled.domain.names, "law": pooled.law}),
        "notes": list(notes),
    }


def _columns_to_rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as a list of rows; shares with their intervals become objects."""
    plain = {
        name: _shares_as_json(column) if isinstance(column, Shares) else column for name, column in columns.items()
    }
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _shares_as_json(shares: Shares) -> list[dict[str, float]]:
    fields = vars(shares)
    return [
        dict(zip(fields, ends, strict=True))
        for ends in zip(*(column.tolist() for column in fields.values()), strict=True)
    ]


def fidelities_of_estimated_laws(estimate: AnyPopulation, truth: Floats) -> dict[str, Fidelity]:
    """How near to the truth each of the laws is that an estimate holds. The supports of reports are no law."""
    laws = {} if isinstance(estimate, ReportedPopulation) else {"the samples": estimate.released_shares.estimate}
    if estimate.exact:
        laws["the nearest law"] = estimate.nearest
    if estimate.reweighted is not None:
        laws["the weighted examples"] = estimate.reweighted.law
    return {name: measure_fidelity_to_truth(truth, law, estimate.domain) for name, law in laws.items()}


def notes_on_unverified_records(agreement: Agreement, *, named: bool = True, distinct: bool = True) -> list[str]:
    """Notes on what the records themselves leave open."""
    notes = []
    if not named:
        notes.append("the records do not say which agreement they were made under; this one is taken on trust")
    if not distinct:
        rounds = (
            f" (the agreement has {agreement.rounds:,} rounds: estimate one at a time)" if agreement.rounds > 1 else ""
        )
        notes.append(f"the records do not name their clients; that each of them is another's is taken on trust{rounds}")
    return notes


def _notes_on_clients_outside_family(estimate: Population) -> list[str]:
    """Notes on clients that the intervals exclude: clients of a table are lists of values, and short lists are in no band of densities."""
    if estimate.finest is None or estimate.exact or serves_everybody(estimate.sampler.family):
        return []
    family, upper = estimate.sampler.family, estimate.bounds.upper
    heaviest = np.sort(estimate.finest.reference)[::-1]
    least = 1 + int(np.searchsorted(np.cumsum(upper * heaviest), 1.0)) if not estimate.bounds.lower else len(heaviest)
    return [
        f"intervals speak for clients inside {family!r}; a client of a table, a list of values, is surely outside if they lie in fewer "
        f"than {least:,} of the {len(heaviest):,} cells that bins are made of, and nothing is promised of it"
    ]


def json_record_of_survey_answers(answers: SurveyAnswers, agreement: Agreement, notes: Sequence[str]) -> dict[str, Any]:
    """The answers to a survey as JSON holds them; what is not known is null."""
    return {
        **json_record_of_unanswered_survey(agreement, answers.clients, answers.confidence),
        "questions": [
            {
                "question": answer.question.title,
                "kind": answer.question.kind,
                "columns": list(answer.question.columns),
                "unit": answer.unit or None,
                "clients": answer.clients,
                "answers": [{name: _null_if_nan(value) for name, value in row.items()} for row in answer.rows()],
                **_json_record_of_total(answers, number),
            }
            for number, answer in enumerate(answers)
        ],
        "notes": list(notes),
    }


def json_record_of_unanswered_survey(agreement: Agreement, clients: int, confidence: float) -> dict[str, Any]:
    """The record of a survey that has no answers and no notes yet."""
    fields = {
        "id": agreement.id,
        "epsilon": agreement.epsilon,
        "mechanism": agreement.mechanism,
        "purpose": agreement.purpose,
    }
    return {"agreement": fields, "clients": clients, "confidence": confidence, "questions": [], "notes": []}


def _null_if_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _json_record_of_total(answers: SurveyAnswers, number: int) -> dict[str, Any]:
    """The total beside a mean that is known."""
    if answers[number].question.kind != "mean" or not answers[number].is_known:
        return {}
    return {"total": dict(zip(("estimate", "low", "high"), answers.total(number), strict=True))}


def named_share_rows(names: Sequence[str], law: Shares) -> list[dict[str, Any]]:
    """A row for each name, with its estimate and intervals; what is not known is null."""
    keys = ("estimate", "low", "high", "all_low", "all_high")
    values = (list(map(_null_if_nan, np.ravel(getattr(law, key)).tolist())) for key in keys)
    return [{"name": name, **dict(zip(keys, row, strict=True))} for name, *row in zip(names, *values, strict=True)]


def notes_on_unverified_reports(*, named: bool, distinct: bool) -> list[str]:
    """What reports on a survey leave open: under which agreement, and by whom."""
    notes = []
    if not named:
        notes.append("the reports do not name their agreement; that they were made under this one is assumed")
    if not distinct:
        notes.append("the reports do not name their clients; that each client sent one is assumed")
    return notes


def notes_on_survey_answers(answers: SurveyAnswers, *, named: bool = True, distinct: bool = True) -> list[str]:
    """What a reader of the answers should know."""
    unasked_titles = [answer.question.title for answer in answers if not answer.is_known]
    notes = [f"nobody was asked {', '.join(unasked_titles)}, since few clients take part"] if unasked_titles else []
    return [*notes_on_unverified_reports(named=named, distinct=distinct), *notes]


def json_record_of_survey_groups(
    group_answers: Mapping[Any, SurveyAnswers], agreement: Agreement, notes: Sequence[str], *, by: str
) -> dict[str, Any]:
    """The answers of every public group as JSON holds them."""
    return {
        "by": by,
        "groups": {
            str(name): json_record_of_survey_answers(answers, agreement, []) for name, answers in group_answers.items()
        },
        "notes": list(notes),
    }


def json_record_of_survey_change(
    change: SurveyChange, agreements: tuple[Agreement, Agreement], notes: Sequence[str]
) -> dict[str, Any]:
    """The change of every answer as JSON holds it; `agreements`: the agreements before and after."""
    changes = zip(change.after, change.laws, strict=True)
    return {
        "confidence": change.confidence,
        "before": json_record_of_survey_answers(change.before, agreements[0], []),
        "after": json_record_of_survey_answers(change.after, agreements[1], []),
        "changes": [
            {"question": answer.question.title, "answers": named_share_rows(answer.names, law)}
            for answer, law in changes
        ],
        "notes": list(notes),
    }


def places_of_questions_with_group_shares(answers: SurveyAnswers, column: str) -> list[int]:
    """The places of the questions that tell shares within the private groups of a column."""
    return [
        number
        for number, answer in enumerate(answers)
        if answer.question.kind == "shares" and len(answer.question.columns) > 1 and column in answer.question.columns
    ]


def outcome_names_without_group_column(answers: SurveyAnswers, number: int, column: str) -> list[str]:
    """The outcomes of the other columns of a question, in the order of `shares_within`."""
    return joint_labels(
        answers.sampler.survey.columns, [name for name in answers[number].question.columns if name != column]
    )


def json_record_of_shares_within_groups(answers: SurveyAnswers, notes: Sequence[str], *, by: str) -> dict[str, Any]:
    """Shares within the private groups of a column as JSON holds them; without questions that tell them, none."""
    return {
        "by": by,
        "clients": answers.clients,
        "confidence": answers.confidence,
        "questions": [
            {
                "question": answers[number].question.title,
                "groups": {
                    str(group): named_share_rows(outcome_names_without_group_column(answers, number, by), law)
                    for group, law in shares_within(answers, number, by).items()
                },
            }
            for number in places_of_questions_with_group_shares(answers, by)
        ],
        "notes": list(notes),
    }
