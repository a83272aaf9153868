"""Hostile surveys: columns and questions, reports of rows and tables, and the answers that rest on them."""

import json
import math
import os
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import estimation
from discreet.release import RunKey
from discreet.survey import Dates, Number, Survey, SurveySampler, histogram, linear, mean, quantiles, shares
from tests.fuzz.chooser import NUMBERS, Chooser
from tests.fuzz.estimates import hostile_confidence

ROWS: list[Any] = [0, 1, -1, 2**62, 2**64, None, 0.5, math.nan, True, "0", [0], 10**400]
DAYS: list[Any] = [
    "2026-01-01",
    "2026-01-03",
    "2025-12-31",
    "x",
    None,
    3,
    "2026-02-30",
    "2027-12-31",
    "10000-01-01",
    "",
]
NAMES = ["a", "b", "n", "day", "x", "", "\x00"]
COLUMNS: dict[str, Any] = {
    "a": ["red", "green"],
    "b": 3,
    "n": Number(0.0, 10.0),
    "day": Dates("2026-01-01", "2026-01-05"),
}


def _column(c: Chooser) -> Any:
    """What a column is declared as: mostly outcomes, bounds or days."""
    what = c.below(8)
    if what == 0:
        return Number(c.among([0.0, -1.0, c.number()]), c.among([1.0, 1e300, c.number()]), c.among(["", "kg", None, 3]))
    if what == 1:
        return Dates(c.among(DAYS), c.among(DAYS))
    if what == 2:
        return c.among(
            [
                dc.Interval(0.0, 1.0, cells=4),
                dc.Numbers(3),
                dc.Labels(["x", "y"]),
                dc.Simplex(3),
                c.number(),
                ["x", "x"],
                [],
                "ab",
            ]
        )
    return c.among(list(COLUMNS.values()))


def _question(c: Chooser, names: list[str]) -> Any:
    """One of the five questions, mostly about columns that there are."""
    column = c.among(names) if c.below(16) else c.among([*NAMES, *NUMBERS])
    other = c.among(names)
    weight = c.among([1.0, 1.0, 1.0, 2.0, c.number()]) if c.below(4) == 0 else 1.0
    what = c.below(10)
    if what == 0:
        return histogram(column, cells=c.among([2, 4, 7, 5000, c.number()]), weight=weight)
    if what in (1, 2):
        return mean(column, weight=weight)
    if what == 3:
        return quantiles(
            column, at=c.among([(0.5,), (0.1, 0.9), (0.9, 0.1), (), (c.number(),), c.number(), "5"]), weight=weight
        )
    if what == 4:
        matrix = c.among(
            [
                [[1.0, 0.0]],
                [[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]],
                np.ones((2, 6)),
                [1.0, 2.0],
                [[c.number()] * 2],
                c.number(),
                [[1], [1, 2]],
            ]
        )
        return linear(matrix, column, weight=weight)
    if what == 5:
        return c.among([None, "shares", shares, c.number()])
    return shares(column, other, weight=weight) if what == 6 and other != column else shares(column, weight=weight)


def _survey(c: Chooser) -> Survey:
    """Mostly a survey of one to four columns."""
    names = c.among([("a",), ("a", "b"), ("a", "b", "n"), ("n",), ("day", "n"), ("b", "day"), tuple(COLUMNS)])
    columns: Any = {name: COLUMNS[name] for name in names}
    if c.below(4) == 0:
        columns = {**columns, c.among(NAMES): _column(c)}
    if c.below(32) == 0:
        columns = c.among([{}, None, ["a"], {1: 2}, "a", {"a": None}])
        return Survey(columns, [shares("a")])
    wanted: Any = [_question(c, list(columns)) if c.below(8) == 0 else _fitting(c, name, columns) for name in columns]
    wanted = wanted[: 1 + c.below(len(wanted))]
    if c.below(32) == 0:
        wanted = c.among([[], None, shares("a"), tuple(wanted), "shares", {0: wanted[0]}])
    return Survey(columns, wanted)


def _fitting(c: Chooser, name: str, columns: dict[str, Any]) -> Any:
    """A question that fits the column of that name."""
    if isinstance(columns[name], (Number, dc.Interval)):
        return c.among([mean(name), histogram(name, cells=4), quantiles(name)])
    other = [each for each in columns if each != name and not isinstance(columns[each], (Number, dc.Interval))]
    return shares(name, c.among(other)) if other and c.below(2) else shares(name)


def _sampler(c: Chooser) -> SurveySampler:
    survey = _survey(c) if c.below(32) else c.among([None, COLUMNS, "survey"])
    return SurveySampler(
        survey, epsilon=c.among([0.5, 1.0, 2.0, 4.0, 1e-11, 40.0, c.number()]) if c.below(4) == 0 else 1.0
    )


def _reports(c: Chooser, sampler: SurveySampler) -> Any:
    """Reports, mostly those of some rows."""
    what = c.below(16)
    if what == 0:
        return c.among([[], None, "01", [[0, 1]], [[0], [0, 1]], np.zeros(2), [c.among(ROWS)], c.number(), {0: 1}])
    if what == 1:
        return [c.among([*ROWS, 0, sampler.largest, sampler.largest + 1, 2**64 - 1])]
    size = sampler.survey.columns.size
    rows = (c.below(256) * 10**9 + c.below(256) * 10**3) * np.arange(1 + c.below(256)) % size
    drawn = sampler.release_rows(rows if c.below(4) else rows[:2])
    return drawn.tolist() if what == 2 else drawn


def surveys(c: Chooser) -> Any:
    """Surveys and their samplers, by all their methods."""
    what = c.below(10)
    if what == 0:
        return _survey_file(c)
    if what == 1:
        return _survey_terms(c)
    sampler = _sampler(c)
    columns = sampler.survey.columns
    assert sum(sampler.exact_shares, Fraction(0)) == 1
    if what == 2:
        table: Any = {"a": ["red", "green"], "b": [0, 2], "n": [1.5, 10.0], "day": ["2026-01-01", "2026-01-05"]}
        for _ in range(c.below(3)):
            table[c.among(sorted(COLUMNS))] = c.among([
                [], ["red"], [None, None], [math.nan, 1.0], [1, 2, 3], "ab", 3, np.ma.array([1, 2], mask=[False, True]), np.zeros((2, 2)),
                [c.number(), 1],
            ])  # fmt: skip
        if c.below(8) == 0:
            table = c.among([None, [], "table", [table], 3, np.zeros((2, 4))])
        return sampler.release_table(table)
    if what == 3:
        return [
            sampler.release_rows(_rows(c, columns.size)),
            sampler.release(_rows(c, columns.size)),
            sampler.release_number(_rows(c, columns.size)),
        ]
    if what == 4:
        key: Any = RunKey(os.urandom(64)) if c.below(8) else c.among([None, b"", "key"])
        client = c.among(["a", 1, "", -1, 2**64, None, True, "\ud800"])
        rows, counts = _rows(c, columns.size), c.among([[1], [1, 2], [0], [2**62, 2**62], None, [c.number()], [1] * 9])
        drawn = sampler.release_keyed(key, client, rows, counts)
        assert drawn == sampler.release_keyed(key, client, rows, counts)
        return sampler.part_of(drawn)
    if what == 5:
        return _law_of_reports(c, sampler)
    if what == 6:
        place = c.below(len(sampler.survey.questions))
        return [
            sampler.variance(place),
            sampler.question_share(place),
            sampler.uniform_weight,
            repr(sampler),
            list(sampler.split(_reports(c, sampler))),
        ]
    if what == 7:
        agreement = dc.Agreement.of(sampler, rounds=c.among([1, 3, c.number()]), purpose=c.text())
        assert dc.Agreement.from_json(agreement.text).survey_sampler() == sampler
        return agreement.id
    outlooks = estimation.survey_outlook(sampler, c.among([1, 1000, 10**15, c.number()]))
    assert len(outlooks) == len(sampler.survey.questions)
    return outlooks


def _rows(c: Chooser, size: int) -> Any:
    """Numbers of rows, mostly."""
    if c.below(8) == 0:
        return c.among([[], None, "01", [[0]], [c.among(ROWS)], np.zeros(2), c.number(), [0, None]])
    return [c.below(256) * 10 ** c.below(10) % size for _ in range(1 + c.below(3))]


def _law_of_reports(c: Chooser, sampler: SurveySampler) -> Any:
    """The exact probabilities of reports from clients with one row."""
    size = sampler.survey.columns.size
    reports, row = _reports(c, sampler), c.among([0, size - 1, c.among(ROWS)])
    chances = [
        sampler.probability(each, row) for each in (reports if isinstance(reports, list) else np.ravel(reports)[:3])
    ]
    assert all(0 < each <= 1 for each in chances)
    listed = sampler.reports()
    if len(listed) <= 100:
        assert sum((sampler.probability(int(each), row) for each in listed), Fraction(0)) == 1
    assert (sampler.check_reports(listed) == listed).all()
    return [float(each) for each in chances]


def _survey_file(c: Chooser) -> Any:
    """Written and read again, a survey is the same; other files are refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / c.among(["survey.json", "survey.json", "nowhere/survey.json", "\x00", "."])
        if c.below(2):
            made = _survey(c)
            made.write(path)
            assert Survey.read(path) == made
            assert Survey.read(path).digest == made.digest
            return made.digest
        (Path(folder) / "survey.json").write_bytes(
            c.among([b"", b"{}", b"[" * 5000, b"\xff", b'{"columns": {}, "columns": {}}', b"nan"])
        )
        return Survey.read(path).digest


def _survey_terms(c: Chooser) -> Any:
    """A survey as JSON, with one value replaced."""
    columns = {
        "a": {"labels": ["x", "y"]},
        "n": {"low": 0, "high": 1, "unit": "kg"},
        "day": {"first": "2026-01-01", "last": "2026-01-03"},
    }
    questions: list[Any] = [{"shares": ["a", "day"]}, {"mean": "n", "weight": 2}, {"quantiles": "n", "at": [0.5]}]
    questions += [{"histogram": "n", "cells": 4}, {"linear": "a", "matrix": [[1, 0]]}]
    terms: Any = {"columns": columns, "questions": questions}
    value = terms
    while isinstance(value, (dict, list)) and value:
        key = c.among(list(value)) if isinstance(value, dict) else c.below(len(value))
        if not isinstance(value[key], (dict, list)) or not value[key] or c.below(4) == 0:
            break
        value = value[key]
    value[key] = c.among([None, True, 0, 1, -1, 1.5, 1e400, "", "x", "a", [], {}, [[]], 10**400, math.nan, c.json()])
    if c.below(8) == 0:
        terms = c.json()
    made = Survey.from_terms(terms)
    assert Survey.from_terms(json.loads(json.dumps(made.terms))) == made
    return made.digest


def survey_answers(c: Chooser) -> Any:
    """Answers to surveys, of groups and of two rounds, and the shares within private groups."""
    what = c.below(5)
    sampler = _sampler(c)
    reports = _reports(c, sampler)
    if what == 0:
        groups: Any = (
            {"north": reports, 1: reports} if c.below(4) else c.among([{}, None, [reports], {"a": []}, {None: reports}])
        )
        grouped = estimation.answer_groups(sampler, groups, confidence=hostile_confidence(c))
        return [_checked(each) for each in grouped.values()]
    if what == 1:
        other = c.among([sampler, sampler, SurveySampler(sampler.survey, epsilon=2.0), _sampler(c), None])
        later = reports if other == sampler else _reports(c, sampler if other is None else other)
        moved = estimation.survey_change(sampler, reports, other, later, confidence=hostile_confidence(c))
        for law in moved.laws:
            assert (law.low <= law.high).all()
            assert (law.all_low <= law.all_high).all()
        return [[law.low, law.high, law.all_low, law.all_high] for law in moved.laws]
    found = estimation.answer_survey(
        sampler, reports, confidence=hostile_confidence(c), among=c.among([1, 1, 1, 7, c.number()])
    )
    if what == 2:
        place = c.among([0, c.below(len(found.answers)), c.number()])
        within = estimation.shares_within(
            found, place, c.among([*found[0].question.columns, "a", "b", *NAMES, c.number()])
        )
        for law in within.values():
            assert (law.low >= 0.0).all()
            assert (law.low <= law.high).all()
            assert (law.high <= 1.0).all()
        return [[law.low, law.high] for law in within.values()]
    if what == 3:
        place = c.among([0, c.below(len(found.answers)), c.below(len(found.answers)), -1, c.number()])
        total, low, high = found.total(place)
        assert low <= high
        return [low, high, total if found[place].is_known else 0.0]
    return _checked(found)


def _checked(found: estimation.SurveyAnswers) -> list[Any]:
    """The ends of all intervals, which are ordered and in each other; those of shares lie in [0, 1]."""
    ends: list[Any] = []
    for answer in found:
        law = answer.law
        assert (law.low <= law.high).all()
        assert (law.all_low <= law.all_high).all()
        assert (law.all_low <= law.low + 1e-9 * np.abs(law.low)).all()
        assert (law.all_high >= law.high - 1e-9 * np.abs(law.high)).all()
        if answer.has_shares:
            assert 0.0 <= law.all_low.min() <= law.all_high.max() <= 1.0
            if answer.is_known:
                assert abs(answer.consistent.sum() - 1.0) <= 1e-9 * max(1.0, np.abs(answer.consistent).max())
                assert abs(answer.nearest.sum() - 1.0) <= 1e-9
        assert len(answer.rows()) == len(answer.names) == law.low.size
        assert answer.clients <= found.clients
        ends += [law.low, law.high, law.all_low, law.all_high]
    return ends
