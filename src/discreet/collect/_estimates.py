"""Estimates from the counts of a store: of one round, of groups side by side, of a change from round to round.

Each is what a command prints from a file of the same samples: `discreet estimate --json`, with `--by` or with `--compare`. Estimates of
fewer samples than the store says (`discreet collect --least`) are hidden: from the service, from `export` and from `publish`.

**Groups.** The agreements of one collection may differ in their purpose alone. Then each is the agreement of a public group: a client sends
one sample in each round of the collection, under the agreement of its group. Which group that is, the client states by its choice of the
agreement, and everybody may know it. Private groups are a column of a survey.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.collect._counting import sent_reports
from discreet.collect._store import StoredAgreement
from discreet.errors import DiscreetError
from discreet.estimation import (
    Estimate,
    Population,
    ReportedPopulation,
    answer_groups,
    answer_survey,
    change,
    change_record,
    coding_and_sampler,
    empty_survey_record,
    estimate_groups,
    group_record,
    inverted_population,
    inverted_record,
    notes,
    pooled_population,
    pooled_record,
    population,
    record,
    reported_population,
    survey_change,
    survey_change_record,
    survey_groups_record,
    survey_notes,
    survey_record,
    within_record,
)
from discreet.mechanisms import AnyFamily, OwnSampler, ReportCounts, ReportSampler, Sampler
from discreet.survey import SurveySampler

AnySampler = Sampler[AnyFamily] | ReportSampler | SurveySampler
Counts = NDArray[np.int64]
OWN_ALONE = "samples of a mechanism of one's own are estimated one round at a time, without groups and changes"
BY_AGREEMENT = "agreement"
CHANGE_NOTE = (
    "the later round less the earlier one; intervals hold whether the clients are the same, overlapping or others. If not everybody took "
    "part in both, a change may be one of who took part"
)


def agreed_sampler(agreed: Agreement) -> AnySampler:
    """What released the samples or reports of an agreement."""
    if agreed.survey is not None:
        return agreed.survey_sampler()
    return agreed.report_sampler() if agreed.blocks is not None else coding_and_sampler(agreed)[1]


def count_samples(sampler: AnySampler, counts: Counts) -> int:
    """How many samples, or reports, were counted."""
    if isinstance(sampler, SurveySampler):
        return len(counts)
    if isinstance(sampler, ReportSampler):
        return ReportCounts.from_table(sampler, counts).reports if counts.any() else 0
    return int(counts.sum())


def check_enough(kept: StoredAgreement, round: int, samples: int) -> None:
    """Raise an error for a round without samples, or with fewer than are estimated from."""
    what = kept.agreement.release_kind
    of = f"agreement {kept.agreement.id} has"
    if not samples:
        raise DiscreetError(f"{of} no {what}s in round {round}; there is nothing to export")
    if samples < kept.least:
        raise DiscreetError(
            f"{of} {pluralise(samples, what)} in round {round}, and estimates of fewer than {kept.least:,} are hidden; "
            "wait for more, or choose another number: discreet collect --least N"
        )


def hidden_estimate(
    kept: StoredAgreement, sampler: AnySampler, days: list[tuple[str, int]], round: int
) -> dict[str, Any]:
    """What is said of a round whose estimates are not shown: how many samples came."""
    empty = estimate_counts(kept, sampler, np.zeros(0, dtype=np.int64), 0.95)
    what = "clients" if isinstance(sampler, SurveySampler) else f"{kept.agreement.release_kind}s"
    said = {"hidden": kept.shown, "notes": [], "round": round, "days": days}
    return {
        **empty,
        what: sum(number for _, number in days),
        **said,
        **({"closed": kept.closed} if kept.closed else {}),
    }


def estimate_counts(kept: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float) -> dict[str, Any]:
    """The estimate as `discreet estimate --json` prints it; without estimates where samples are missing, or too few to be shown."""
    agreed = kept.agreement
    samples = count_samples(sampler, counts)
    hidden = {"least": kept.least} if kept.least > 1 else {}
    what = f"{agreed.release_kind}s"
    said = f"estimates are shown from {kept.least:,} {what} on" if hidden else f"there are no {what} yet"
    if isinstance(sampler, SurveySampler):
        if kept.shows(samples):
            answers = answer_survey(sampler, sent_reports(counts), confidence=confidence)
            return survey_record(answers, agreed, survey_notes(answers))
        return {**empty_survey_record(agreed, samples, confidence), "notes": [said], **hidden}
    if kept.shows(samples):
        if not isinstance(sampler, OwnSampler):
            found = _population_of(sampler, counts, confidence)
            return record(found, agreed, notes(found, agreed), statistics=_mean_and_median(found))
        try:
            inverted = inverted_population(sampler, counts=counts, confidence=confidence)
            return inverted_record(inverted, agreed, [])
        except DiscreetError as error:  # the same for all samples: the law is not linear, or its matrix has no inverse
            said = str(error)
    return {
        what: samples,
        "agreement": agreed.id,
        "mechanism": agreed.mechanism,
        "epsilon": agreed.epsilon,
        "confidence": confidence,
        "shares": [],
        "statistics": [],
        "notes": [said],
        **hidden,
    }


def _mean_and_median(found: Population | ReportedPopulation) -> list[Estimate]:
    """Mean and median, where outcomes are numbers and the average client is identifiable."""
    if found.domain.values is None or not found.exact:
        return []
    return [found.statistic(name) for name in ("mean", "median")]


def _population_of(
    sampler: Sampler[AnyFamily] | ReportSampler, counts: Counts, confidence: float
) -> Population | ReportedPopulation:
    if isinstance(sampler, ReportSampler):
        return reported_population(sampler, counts=ReportCounts.from_table(sampler, counts), confidence=confidence)
    return population(sampler, counts=counts, confidence=confidence)


def group_names(agreements: Sequence[Agreement]) -> list[str]:
    """What the group of each agreement is called: its purpose, with digits of its id where that is missing or not its own."""
    purposes = [each.purpose for each in agreements]
    return [
        each.purpose if each.purpose and purposes.count(each.purpose) == 1 else f"{each.purpose} {each.id[:12]}".strip()
        for each in agreements
    ]


def estimate_side_by_side(
    groups: Sequence[StoredAgreement], sampler: AnySampler, counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The estimates of groups as `discreet estimate --by --json` prints them; groups with too few samples are left out, and counted."""
    agreed, what = groups[0].agreement, f"{groups[0].agreement.release_kind}s"
    if isinstance(sampler, OwnSampler):
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": [OWN_ALONE]}
    names = group_names([each.agreement for each in groups])
    many = [count_samples(sampler, each) for each in counts]
    shown = [place for place, samples in enumerate(many) if groups[place].shows(samples)]
    said = []
    if len(shown) < len(groups):
        fewest = max(1, groups[0].least)
        hidden = pluralise(len(groups) - len(shown), "group")
        said.append(
            f"{hidden} of {len(groups)} with fewer than {fewest:,} {what if fewest > 1 else what[:-1]} not shown"
        )
    ids = {names[place]: groups[place].agreement.id for place in range(len(groups))}
    about = {"agreements": ids, "samples_of_groups": dict(zip(names, many, strict=True))}
    if isinstance(sampler, SurveySampler):
        reports = {names[place]: sent_reports(counts[place]) for place in shown}
        answers = answer_groups(sampler, reports, confidence=confidence) if reports else {}
        return {**survey_groups_record(answers, agreed, said, by=BY_AGREEMENT), "confidence": confidence, **about}
    if not shown:
        return {"by": BY_AGREEMENT, "confidence": confidence, "groups": [], "notes": said, **about}
    counted: Mapping[str, Any] = {
        names[place]: ReportCounts.from_table(sampler, counts[place])
        if isinstance(sampler, ReportSampler)
        else counts[place]
        for place in shown
    }
    found = estimate_groups(sampler, counts=counted, confidence=confidence)
    return {**group_record(found, agreed, said, by=BY_AGREEMENT, statistics={}), **about}


def estimate_stages(
    stages: Sequence[StoredAgreement], samplers: Sequence[AnySampler], counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The stages of a collection together as `discreet estimate IN IN --json` prints them; empty while too few have come.

    A stage whose own estimate is hidden is left out: together with the estimates of the others it could be computed.
    """
    used = [
        (kept.agreement, _population_of(sampler, each, confidence))
        for kept, sampler, each in zip(stages, samplers, counts, strict=True)
        if not isinstance(sampler, SurveySampler) and kept.shows(count_samples(sampler, each))
    ]
    hidden = len(stages) - len(used)
    said = [f"{pluralise(hidden, 'stage')} of {len(stages)} with too few samples left out"] if hidden else []
    if not used:
        return {"clients": 0, "confidence": confidence, "stages": [], "shares": [], "notes": said}
    return pooled_record(pooled_population([found for _, found in used]), [agreed for agreed, _ in used], said)


def estimate_change(
    kept: StoredAgreement, sampler: AnySampler, rounds: tuple[int, int], counts: Sequence[Counts], confidence: float
) -> dict[str, Any]:
    """The change from one round to another as `discreet estimate --compare --json` prints it; empty where one has too few samples."""
    agreed, told = kept.agreement, {"rounds": list(rounds)}
    if isinstance(sampler, OwnSampler):
        return {"confidence": confidence, "changes": [], "notes": [OWN_ALONE], **told}
    for number, each in zip(rounds, counts, strict=True):
        if not kept.shows(count_samples(sampler, each)):
            said = f"round {number} has too few {agreed.release_kind}s, so no change is shown"
            return {"confidence": confidence, "changes": [], "notes": [said], **told}
    if isinstance(sampler, SurveySampler):
        earlier, later = map(sent_reports, counts)
        moved = survey_change(sampler, earlier, sampler, later, confidence=confidence)
        return {**survey_change_record(moved, (agreed, agreed), [CHANGE_NOTE]), **told}
    before, after = (_population_of(sampler, each, confidence) for each in counts)
    return {**change_record(change(before, after), (agreed, agreed), [CHANGE_NOTE]), **told}


def estimate_within_groups(
    kept: StoredAgreement, sampler: AnySampler, counts: Counts, confidence: float, by: str
) -> dict[str, Any]:
    """Shares within the private groups of a survey's column as `discreet estimate --by --json` prints them."""
    samples = count_samples(sampler, counts)
    if not isinstance(sampler, SurveySampler) or not kept.shows(samples):
        return {"by": by, "clients": samples, "confidence": confidence, "questions": [], "notes": []}
    return within_record(answer_survey(sampler, sent_reports(counts), confidence=confidence), [], by=by)
