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
    found: AnyPopulation, agreed: Agreement, *, named: bool = True, distinct: bool = True
) -> list[str]:
    """What a reader should know. `named`: the samples say which agreement they were made under; `distinct`: each is another client's."""
    trusted = notes_on_unverified_records(agreed, named=named, distinct=distinct)
    return (
        [*trusted, *found.doubts]
        if isinstance(found, ReportedPopulation)
        else [*trusted, *_notes_on_clients_outside_family(found), *found.doubts]
    )


def json_record_of_estimate(
    found: AnyPopulation,
    agreed: Agreement,
    notes: Sequence[str],
    *,
    statistics: Sequence[Estimate] = (),
    truth: Floats | None = None,
    lies: Liars | ReportLiars | None = None,
) -> dict[str, Any]:
    """All of an estimate as JSON holds it. `truth`: the average client's law, where it is known. `lies`: what so many liars can have done."""
    one, released = liars(found), "reports" if isinstance(found, ReportedPopulation) else "samples"
    columns: dict[str, Any] = {
        "outcome": found.domain.names,
        released: found.counts.tolist(),
        "released": found.released_shares,
        "law": found.law,
        **({} if lies is None else {"despite_liars": lies.law}),
    }
    if found.exact:
        columns["nearest"] = found.nearest.tolist()
    if found.reweighted is not None:
        columns["reweighted"] = found.reweighted.law.tolist()
    if truth is not None:
        columns["truth"] = np.asarray(truth, dtype=np.float64).tolist()
    made: dict[str, Any] = {
        released: found.samples,
        **_agreement_json_fields(agreed),
        "confidence": found.confidence,
        "identifiable": found.exact,
        **({} if isinstance(found, ReportedPopulation) else {"largest_bias_of_samples": found.largest_bias}),
        "margin_at_worst": found.margin_at_worst,
        "shares": _columns_to_rows(columns),
        "statistics": [asdict(each) for each in statistics],
        "notes": list(notes),
        "liars": _liar_json_fields(found.law, one.shift, one.band_shift),
    }
    if lies is not None:
        made["liars"] |= {"number": lies.number, "shift": lies.shift}
    if found.reweighted is not None:
        made["reweighted"] = {
            "examples": len(found.reweighted.weights),
            "counting_as_samples": found.reweighted.pull,
            "gap": found.reweighted.gap,
            "strain": json_number_or_null(found.reweighted.strain),
        }
    if truth is not None:
        made["fidelity"] = {
            name: {key: None if part is None else json_number_or_null(part) for key, part in asdict(each).items()}
            for name, each in fidelities_of_estimated_laws(found, truth).items()
        }
    excess = variance_excess_or_none(found.sampler)
    if excess is not None:
        made["times_the_least_variance"] = excess
    cost = rounds_cost(agreed)
    if cost is not None:
        made["rounds"] = {"rounds": cost.rounds, "factor": cost.factor}
    return made


def _agreement_json_fields(agreed: Agreement) -> dict[str, Any]:
    return {"agreement": agreed.id, "mechanism": agreed.mechanism, "epsilon": agreed.epsilon}


def _liar_json_fields(law: Shares, shift: float, band_shift: float) -> dict[str, Any]:
    """What one liar can have done, and how many can move a share by half of its longest interval."""
    return {
        "one": shift,
        "one_at_ends": band_shift,
        "as_far_as_intervals": count_shifts_fitting_half_interval(law, shift),
    }


def json_record_of_inverted_estimate(
    found: InvertedPopulation, agreed: Agreement, notes: Sequence[str]
) -> dict[str, Any]:
    """An estimate from the samples of a mechanism of somebody's own, in the fields of `json_record_of_estimate`."""
    columns = {
        "outcome": found.domain.names,
        "samples": found.counts.tolist(),
        "released": found.released_shares,
        "law": found.law,
        "nearest": found.nearest.tolist(),
    }
    return {
        "samples": found.samples,
        **_agreement_json_fields(agreed),
        "confidence": found.confidence,
        "identifiable": True,
        "shares": _columns_to_rows(columns),
        "statistics": [],
        "notes": list(notes),
        "liars": _liar_json_fields(found.law, found.liar_shift, found.liar_shift),
    }


def json_record_of_group_estimates(
    found: GroupedPopulation,
    agreed: Agreement,
    notes: Sequence[str],
    *,
    by: str,
    statistics: Mapping[str, Mapping[Any, Estimate]],
    listed: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Estimates of groups as JSON holds them. `listed`: how many clients of each group a table of clients has."""
    first = next(iter(found.groups.values()))
    released = "reports" if isinstance(first, ReportedPopulation) else "samples"
    groups = []
    for name, each in found.groups.items():
        told: dict[str, Any] = {"group": name, "clients": each.clients}
        if listed is not None:
            told["listed"] = listed.get(name, 0)
        told |= {
            "margin_all_at_once": found.margins[name],
            "tells_nothing": name in found.silent,
            "shares": _columns_to_rows(
                {"outcome": each.domain.names, released: each.counts.tolist(), "law": found.laws[name]}
            ),
            "statistics": [asdict(estimates[name]) for estimates in statistics.values()],
        }
        groups.append(told)
    return {
        released: found.clients,
        **_agreement_json_fields(agreed),
        "confidence": found.confidence,
        "identifiable": first.exact,
        "by": by,
        "all_at_once": len(found.groups) * len(first.counts),
        "groups": groups,
        "notes": list(notes),
    }


def json_record_of_change(
    found: Change, agreed: tuple[Agreement, Agreement], notes: Sequence[str], *, statistics: Sequence[Estimate] = ()
) -> dict[str, Any]:
    """A change as JSON holds it; `agreed`: the agreements before and after."""
    sides = [
        {"clients": each.clients, **_agreement_json_fields(terms)}
        for each, terms in zip((found.before, found.after), agreed, strict=True)
    ]
    columns = {
        "outcome": found.after.domain.names,
        "before": found.before.law.estimate.tolist(),
        "after": found.after.law.estimate.tolist(),
        "change": found.law,
    }
    return {
        "before": sides[0],
        "after": sides[1],
        "confidence": found.confidence,
        "identifiable": found.exact,
        "changes": _columns_to_rows(columns),
        "statistics": [asdict(each) for each in statistics],
        "notes": list(notes),
    }


def json_record_of_pooled_estimate(
    found: PooledPopulation, agreed: Sequence[Agreement], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The average client of several stages as JSON holds it; `agreed`: the agreement of each stage."""
    stages = [
        {
            "agreement": terms.id,
            "purpose": terms.purpose,
            "mechanism": terms.mechanism,
            "epsilon": terms.epsilon,
            "clients": each.clients,
            "identifiable": each.exact,
        }
        for each, terms in zip(found.stages, agreed, strict=True)
    ]
    return {
        "clients": found.clients,
        "confidence": found.confidence,
        "identifiable": found.exact,
        "stages": stages,
        "shares": _columns_to_rows({"outcome": found.domain.names, "law": found.law}),
        "notes": list(notes),
    }


def _columns_to_rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as a list of rows; shares with their intervals become objects."""
    plain = {name: _shares_as_json(part) if isinstance(part, Shares) else part for name, part in columns.items()}
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _shares_as_json(shares: Shares) -> list[dict[str, float]]:
    fields = vars(shares)
    return [
        dict(zip(fields, ends, strict=True)) for ends in zip(*(each.tolist() for each in fields.values()), strict=True)
    ]


def fidelities_of_estimated_laws(found: AnyPopulation, truth: Floats) -> dict[str, Fidelity]:
    """How near to the truth each of the laws is that an estimate holds. The supports of reports are no law."""
    laws = {} if isinstance(found, ReportedPopulation) else {"the samples": found.released_shares.estimate}
    if found.exact:
        laws["the nearest law"] = found.nearest
    if found.reweighted is not None:
        laws["the weighted examples"] = found.reweighted.law
    return {name: measure_fidelity_to_truth(truth, law, found.domain) for name, law in laws.items()}


def notes_on_unverified_records(agreed: Agreement, *, named: bool = True, distinct: bool = True) -> list[str]:
    """Notes on what the records themselves leave open."""
    said = []
    if not named:
        said.append("the records do not say which agreement they were made under; this one is taken on trust")
    if not distinct:
        rounds = f" (the agreement has {agreed.rounds:,} rounds: estimate one at a time)" if agreed.rounds > 1 else ""
        said.append(f"the records do not name their clients; that each of them is another's is taken on trust{rounds}")
    return said


def _notes_on_clients_outside_family(found: Population) -> list[str]:
    """Notes on clients that the intervals exclude: clients of a table are lists of values, and short lists are in no band of densities."""
    if found.finest is None or found.exact or serves_everybody(found.sampler.family):
        return []
    family, upper = found.sampler.family, found.bounds.upper
    heaviest = np.sort(found.finest.reference)[::-1]
    least = 1 + int(np.searchsorted(np.cumsum(upper * heaviest), 1.0)) if not found.bounds.lower else len(heaviest)
    return [
        f"intervals speak for clients inside {family!r}; a client of a table, a list of values, is surely outside if they lie in fewer "
        f"than {least:,} of the {len(heaviest):,} cells that bins are made of, and nothing is promised of it"
    ]


def json_record_of_survey_answers(found: SurveyAnswers, agreed: Agreement, notes: Sequence[str]) -> dict[str, Any]:
    """The answers to a survey as JSON holds them; what is not known is null."""
    return {
        **json_record_of_unanswered_survey(agreed, found.clients, found.confidence),
        "questions": [
            {
                "question": answer.question.title,
                "kind": answer.question.kind,
                "columns": list(answer.question.columns),
                "unit": answer.unit or None,
                "clients": answer.clients,
                "answers": [{name: _null_if_nan(value) for name, value in row.items()} for row in answer.rows()],
                **_json_record_of_total(found, place),
            }
            for place, answer in enumerate(found)
        ],
        "notes": list(notes),
    }


def json_record_of_unanswered_survey(agreed: Agreement, clients: int, confidence: float) -> dict[str, Any]:
    """The record of a survey that has no answers and no notes yet."""
    about = {"id": agreed.id, "epsilon": agreed.epsilon, "mechanism": agreed.mechanism, "purpose": agreed.purpose}
    return {"agreement": about, "clients": clients, "confidence": confidence, "questions": [], "notes": []}


def _null_if_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _json_record_of_total(found: SurveyAnswers, place: int) -> dict[str, Any]:
    """The total beside a mean that is known."""
    if found[place].question.kind != "mean" or not found[place].is_known:
        return {}
    return {"total": dict(zip(("estimate", "low", "high"), found.total(place), strict=True))}


def named_share_rows(names: Sequence[str], law: Shares) -> list[dict[str, Any]]:
    """A row for each name, with its estimate and intervals; what is not known is null."""
    keys = ("estimate", "low", "high", "all_low", "all_high")
    values = (list(map(_null_if_nan, np.ravel(getattr(law, key)).tolist())) for key in keys)
    return [{"name": name, **dict(zip(keys, row, strict=True))} for name, *row in zip(names, *values, strict=True)]


def notes_on_unverified_reports(*, named: bool, distinct: bool) -> list[str]:
    """What reports on a survey leave open: under which agreement, and by whom."""
    said = []
    if not named:
        said.append("the reports do not name their agreement; that they were made under this one is assumed")
    if not distinct:
        said.append("the reports do not name their clients; that each client sent one is assumed")
    return said


def notes_on_survey_answers(found: SurveyAnswers, *, named: bool = True, distinct: bool = True) -> list[str]:
    """What a reader of the answers should know."""
    silent = [answer.question.title for answer in found if not answer.is_known]
    asked = [f"nobody was asked {', '.join(silent)}, since few clients take part"] if silent else []
    return [*notes_on_unverified_reports(named=named, distinct=distinct), *asked]


def json_record_of_survey_groups(
    found: Mapping[Any, SurveyAnswers], agreed: Agreement, notes: Sequence[str], *, by: str
) -> dict[str, Any]:
    """The answers of every public group as JSON holds them."""
    return {
        "by": by,
        "groups": {str(name): json_record_of_survey_answers(each, agreed, []) for name, each in found.items()},
        "notes": list(notes),
    }


def json_record_of_survey_change(
    found: SurveyChange, agreed: tuple[Agreement, Agreement], notes: Sequence[str]
) -> dict[str, Any]:
    """The change of every answer as JSON holds it; `agreed`: the agreements before and after."""
    changes = zip(found.after, found.laws, strict=True)
    return {
        "confidence": found.confidence,
        "before": json_record_of_survey_answers(found.before, agreed[0], []),
        "after": json_record_of_survey_answers(found.after, agreed[1], []),
        "changes": [
            {"question": answer.question.title, "answers": named_share_rows(answer.names, law)}
            for answer, law in changes
        ],
        "notes": list(notes),
    }


def places_of_questions_with_group_shares(found: SurveyAnswers, column: str) -> list[int]:
    """The places of the questions that tell shares within the private groups of a column."""
    return [
        place
        for place, answer in enumerate(found)
        if answer.question.kind == "shares" and len(answer.question.columns) > 1 and column in answer.question.columns
    ]


def outcome_names_without_group_column(found: SurveyAnswers, place: int, column: str) -> list[str]:
    """The outcomes of the other columns of a question, in the order of `shares_within`."""
    return joint_labels(
        found.sampler.survey.columns, [name for name in found[place].question.columns if name != column]
    )


def json_record_of_shares_within_groups(found: SurveyAnswers, notes: Sequence[str], *, by: str) -> dict[str, Any]:
    """Shares within the private groups of a column as JSON holds them; without questions that tell them, none."""
    return {
        "by": by,
        "clients": found.clients,
        "confidence": found.confidence,
        "questions": [
            {
                "question": found[place].question.title,
                "groups": {
                    str(group): named_share_rows(outcome_names_without_group_column(found, place, by), law)
                    for group, law in shares_within(found, place, by).items()
                },
            }
            for place in places_of_questions_with_group_shares(found, by)
        ],
        "notes": list(notes),
    }
