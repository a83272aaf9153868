"""Agreements on surveys: complete, exact, and refused where a part does not answer its question."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from discreet.agreement import Agreement
from discreet.domain import Labels
from discreet.errors import DiscreetError
from discreet.privacy import largest_ratio_for_epsilon
from discreet.survey import Dates, Number, Survey, SurveySampler, histogram, linear, mean, quantiles, shares
from discreet.survey._columns import NumberPoint
from discreet.survey._strategies import Part
from tests.soaking import wide

COLUMNS: dict[str, Any] = {
    "region": ["north", "south", "west"],
    "hour": 24,
    "day": Dates("2026-01-01", "2026-03-01"),
    "amount": Number(0, 500, "euro"),
}
QUESTIONS = [
    shares("region", weight=2),
    shares("region", "hour"),
    mean("amount"),
    quantiles("amount", at=(0.5, 0.9)),
    histogram("amount", cells=20),
    linear([[1, 0, 0], [0, 1, 0.5]], "region"),
    shares("day"),
]
SAMPLER = SurveySampler(Survey(COLUMNS, QUESTIONS), epsilon=1.3)
AGREED = Agreement.of(SAMPLER, purpose="a survey", rounds=3)


def test_an_agreement_states_all_of_a_survey() -> None:
    again = Agreement.from_json(AGREED.text)
    assert again == AGREED
    assert again.id == AGREED.id
    assert again.sampler() == SAMPLER
    assert again.survey_sampler().exact_shares == SAMPLER.exact_shares
    assert again.survey_sampler().strategies == SAMPLER.strategies
    again.check_sampler(SAMPLER)
    assert list(again.survey_sampler().survey.columns) == list(COLUMNS)
    with pytest.raises(DiscreetError, match="belongs to agreement"):
        AGREED.check_sampler(SurveySampler(Survey(COLUMNS, QUESTIONS[:2]), epsilon=1.3))


@pytest.mark.parametrize("change", ["epsilon", "label", "share", "blocks", "weight", "order"])
def test_every_term_is_part_of_the_id(change: str) -> None:
    document = json.loads(AGREED.text)
    match change:
        case "epsilon":
            document["epsilon"] = 1.4
        case "label":
            document["family"]["columns"][0]["labels"][0] = "North"
        case "share":
            document["survey"]["parts"][0]["share"] += 1
        case "blocks":
            document["survey"]["parts"][1]["blocks"]["c"] += 1
        case "weight":
            document["survey"]["questions"][0]["weight"] = 3
        case "order":
            columns = document["family"]["columns"]
            columns[0], columns[1] = columns[1], columns[0]
    other = Agreement.from_json(json.dumps(document))
    assert other.id != AGREED.id
    assert other.survey_sampler() != SAMPLER or change == "weight"


def _edited(*path: Any, to: Any) -> str:
    document = copy.deepcopy(json.loads(AGREED.text))
    place = document
    for step in path[:-1]:
        place = place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "to", "match"),
    [
        (("survey",), None, "family.kind = 'rows', mechanism = 'survey' and the field survey together"),
        (("mechanism",), "linear", "together"),
        (("survey", "parts"), [], "survey.parts is not a list of 1 to"),
        (("survey", "parts", 0), None, "no part answers question 0"),
        (("survey", "parts", 0, "question"), 7, r"survey.parts\[0\].question"),
        (("survey", "parts", 0, "share"), 0, r"survey.parts\[0\].share"),
        (("survey", "parts", 0, "share"), 1.5, r"survey.parts\[0\].share"),
        (("survey", "parts", 0, "sees"), {"columns": ["hour"]}, "the parts of question 0 do not answer it"),
        (("survey", "parts", 0, "sees"), {"columns": ["nothing"]}, "no column 'nothing'"),
        (("survey", "parts", 0, "blocks"), {"kind": "windows", "w": 1}, "is not one of"),
        (("survey", "parts", 1, "blocks", "q"), 74, "prime"),
        (("survey", "parts", 1, "blocks", "q"), 2**40, "q"),
        (("survey", "parts", 1, "blocks", "w"), 3, "has not the fields of affine"),
        (("survey", "parts", 0, "sees"), {"columns": [["region"]]}, "there is no column"),
        (("survey", "parts", 2, "sees"), {"column": ["amount"], "points": 3}, "there is no column"),
        (("family", "columns", 0, "name"), ["region"], "each with its name"),
        (("family", "columns", 0, "labels"), ["north", None, "west"], "neither all texts nor all whole numbers"),
        (("family", "columns", 0, "labels"), [1, 2.5, 3], "neither all texts nor all whole numbers"),
        (("family", "columns", 1, "size"), 2**33, "more than"),
        (("survey", "questions"), "x", "survey.questions is not a list"),
        (("family", "columns"), {}, "family.columns is not a list"),
        (("family", "columns", 0), {"name": "hour", "size": 3}, "names a column twice"),
        (("other",), 0, "other"),
        (("blocks",), {"kind": "values"}, "a survey is for pure epsilon"),
        (("privacy",), {"kind": "gaussian", "nu": 1.0}, "."),
    ],
)
def test_a_wrong_field_is_named(path: tuple[Any, ...], to: Any, match: str) -> None:
    with pytest.raises(DiscreetError, match=match):
        Agreement.from_json(_edited(*path, to=to))


def test_a_survey_is_no_list_of_outcomes() -> None:
    for use in (lambda: AGREED.domain, AGREED.joint_sampler, AGREED.report_sampler, lambda: AGREED.with_weights(b"")):
        with pytest.raises(DiscreetError):
            use()
    with pytest.raises(DiscreetError, match="no meaning for a survey"):
        Agreement.of(SAMPLER, other="north")
    with pytest.raises(DiscreetError, match="is on no survey"):
        Agreement.from_json(json.dumps(_plain())).survey_sampler()
    with pytest.raises(DiscreetError, match="lists at most"):
        Agreement.of(SurveySampler(Survey({"a": [str(n) for n in range(70_000)]}, [shares("a")]), epsilon=1.0))


def _plain() -> dict[str, Any]:
    return {"discreet": 2, "family": {"kind": "simplex", "size": 3}, "mechanism": "optimal", "epsilon": 1, "bits": 62}


SMALL = Survey(
    {"a": 3, "b": 2, "x": Number(0, 1)},
    [shares("a"), shares("a", "b"), mean("x"), quantiles("x"), histogram("x", cells=5), linear([[1, 0, 0]], "a")],
)


@settings(max_examples=wide(400, 25), deadline=None)
@given(st.data())
def test_no_parts_that_a_curator_may_state_break_the_promise(data: st.DataObject) -> None:
    """Every block, width and share that an agreement accepts keeps e^epsilon for every report and pair of rows, in exact arithmetic."""
    epsilon = data.draw(st.sampled_from([0.1, 1.0, 3.0]))
    document = json.loads(Agreement.of(SurveySampler(SMALL, epsilon=epsilon)).text)
    for part in document["survey"]["parts"]:
        part["share"] = data.draw(st.sampled_from([1, 5, 2**20, 2**30]))
        blocks = part["blocks"]
        if blocks["kind"] == "windows":
            part["sees"]["points"] = data.draw(st.integers(2, 9))
            part["blocks"] = {"kind": "windows", "w": data.draw(st.integers(1, 12))}
        elif part["sees"].get("cells", 6) <= 8:
            part["blocks"] = data.draw(
                st.one_of(
                    st.just({"kind": "values"}),
                    st.builds(lambda w: {"kind": "masks", "w": w}, st.integers(1, 6)),
                    st.builds(lambda w: {"kind": "ranks", "w": w}, st.integers(1, 6)),
                    st.builds(
                        lambda q, t, c: {"kind": "affine", "q": q, "t": t, "c": c},
                        st.sampled_from([2, 3, 5, 7]), st.integers(1, 3), st.integers(1, 6),
                    ),
                    st.builds(
                        lambda masks, copies: {"kind": "weighted", "blocks": masks, "copies": copies},
                        st.just(["1", "2", "4"]), st.lists(st.sampled_from(["1", "2"]), min_size=3, max_size=3),
                    ),
                )
            )  # fmt: skip
    try:
        sampler = Agreement.from_json(json.dumps(document)).survey_sampler()
    except DiscreetError:
        return  # refused before anybody released anything under it
    bound = largest_ratio_for_epsilon(epsilon)
    size = SMALL.columns.size
    rows = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=3, unique=True))
    reports = [int(sampler.release_number([row])) for row in rows for _ in range(5)]
    for report in reports:
        chances = [sampler.probability(report, row) for row in rows]
        assert min(chances) > 0
        assert max(chances) <= bound * min(chances)


@pytest.mark.parametrize(
    ("sees", "blocks", "match"),
    [
        ({"columns": ["day", "hour"]}, {"kind": "values"}, None),
        ({"columns": ["hour"]}, {"kind": "values"}, "a table of two or three columns whose shares are asked"),
        (
            {"column": "hour", "cells": 3},
            {"kind": "values"},
            "a table of two or three columns whose shares are asked",
        ),
        (
            {"columns": ["region", "secret"]},
            {"kind": "values"},
            "a table of two or three columns whose shares are asked",
        ),
        ({"columns": ["region", "huge"]}, {"kind": "values"}, "at most"),
        ({"columns": ["region", "many"]}, {"kind": "ranks", "w": 1}, "too much memory"),
        ({"columns": ["region", "hour"]}, {"kind": "weighted", "blocks": ["1"], "copies": ["1"]}, "survey.parts"),
    ],
)
def test_a_part_without_a_question_asks_no_more_than_the_questions_do(
    sees: Any, blocks: Any, match: str | None
) -> None:
    """Else a client would read one question and answer another."""
    columns = {**COLUMNS, "secret": 3, "huge": 10**7, "many": 10**6}
    del columns["amount"]  # or there were too many rows
    asked = [shares("region"), shares("hour"), shares("day"), shares("huge"), shares("many")]
    document = json.loads(Agreement.of(SurveySampler(Survey(columns, asked), epsilon=1.0)).text)
    document["survey"]["parts"] = [part for part in document["survey"]["parts"] if part["question"] >= 0]
    document["survey"]["parts"].append({"question": -1, "share": 2**30, "sees": sees, "blocks": blocks})
    if match is None:
        assert Agreement.from_json(json.dumps(document)).survey_sampler().parts[-1].question == -1
    else:
        with pytest.raises(DiscreetError, match=match):
            Agreement.from_json(json.dumps(document))


def test_parts_of_another_survey_are_refused() -> None:
    """Blocks on two outcomes for a column of three would give a report that one client alone can send."""
    small = SurveySampler(Survey({"a": 2}, [shares("a")]), epsilon=1.0)
    large = Survey({"a": 3}, [shares("a")])
    with pytest.raises(DiscreetError, match="the blocks are on 2 outcomes, and the part sees 3"):
        SurveySampler(large, epsilon=1.0, parts=small.parts)
    other = SurveySampler(Survey({"b": 3}, [shares("b")]), epsilon=1.0)
    with pytest.raises(DiscreetError, match="no column 'b'"):
        SurveySampler(large, epsilon=1.0, parts=other.parts)
    points = SurveySampler(Survey({"x": Number(0, 1)}, [mean("x")]), epsilon=3.0).parts
    wrong = [Part(part.question, NumberPoint("x", 9), part.blocks, part.share) for part in points]
    with pytest.raises(DiscreetError, match="the part sees 9"):
        SurveySampler(Survey({"x": Number(0, 1)}, [mean("x")]), epsilon=3.0, parts=wrong)


@pytest.mark.parametrize("masks", [["f", "1e", "27", "33", "39", "3c"], ["3f"], ["7", "38"]])
def test_weighted_blocks_that_do_not_tell_the_sums_are_refused(masks: list[str]) -> None:
    survey = Survey({"a": 6}, [linear([[1, 0, 0, 0, 0, 0]], "a")])
    document = json.loads(Agreement.of(SurveySampler(survey, epsilon=3.0)).text)
    document["survey"]["parts"][0]["blocks"] = {"kind": "weighted", "blocks": masks, "copies": ["1"] * len(masks)}
    with pytest.raises(DiscreetError, match="do not answer it"):
        Agreement.from_json(json.dumps(document))


def test_weighted_blocks_of_another_question_are_refused() -> None:
    survey = Survey({"a": 2, "b": 3}, [linear([[1, 0]], "a"), linear([[1, 0, 0]], "b")])
    document = json.loads(Agreement.of(SurveySampler(survey, epsilon=1.0)).text)
    for part, size in zip(document["survey"]["parts"], (2, 3), strict=True):
        single = [f"{1 << x:x}" for x in range(size)]
        part["blocks"] = {"kind": "weighted", "blocks": single, "copies": ["1"] * size}
    assert Agreement.from_json(json.dumps(document)).survey is not None
    document["survey"]["questions"].reverse()
    with pytest.raises(DiscreetError, match="the parts of question 0 do not answer it"):
        Agreement.from_json(json.dumps(document))


def test_surveys_with_other_units_or_another_order_are_others() -> None:
    euro, dollar = (Survey({"x": Number(0, 1, unit), "a": 2}, [mean("x")]) for unit in ("euro", "dollar"))
    turned = Survey({"a": 2, "x": Number(0, 1, "euro")}, [mean("x")])
    assert len({euro, dollar, turned}) == 3
    assert len({SurveySampler(each, epsilon=1.0).context for each in (euro, dollar, turned)}) == 3


def test_columns_of_endless_dates_are_refused_before_a_day_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten columns of all days there are: a document of a kilobyte would otherwise fill a device's memory."""

    def listing(*_: Any) -> Any:
        raise AssertionError("a day was listed")

    monkeypatch.setattr(Labels, "days", listing)
    document = json.loads(Agreement.of(SurveySampler(Survey({"a": 3}, [shares("a")]), epsilon=1.0)).text)
    for many in (1, 10):
        column = {"first": "0001-01-01", "last": "9999-12-31"}
        document["family"]["columns"] = [{"name": f"c{i}", **column} for i in range(many)]
        with pytest.raises(DiscreetError, match="labels, and an agreement on a survey lists at most"):
            Agreement.from_json(json.dumps(document))
    with pytest.raises(DiscreetError, match="more than 2"):
        Survey({f"c{i}": Dates("0001-01-01", "9999-12-31") for i in range(10)}, [shares("c0")])
