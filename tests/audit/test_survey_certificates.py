"""Certificates of surveys: exact chances of all reports, checked by the script that needs nothing of the library."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.agreement import Agreement
from discreet.audit import certificate
from discreet.audit.verify import problems
from discreet.cli._app import app
from discreet.errors import DiscreetError
from discreet.privacy import Approximate, exp_upper
from discreet.survey import Number, Survey, SurveySampler, histogram, linear, mean, quantiles, shares

SURVEYS = {
    "shares": SurveySampler(Survey({"a": 3, "b": ["x", "y"]}, [shares("a"), shares("a", "b")]), epsilon=1.0),
    "mean": SurveySampler(Survey({"n": Number(0, 10)}, [mean("n")]), epsilon=2.5),
    "numbers": SurveySampler(
        Survey(
            {"n": Number(0, 10), "a": 4}, [mean("n"), quantiles("n", at=(0.5,)), histogram("n", cells=4), shares("a")]
        ),
        epsilon=0.7,
    ),
    "sums": SurveySampler(Survey({"a": 6}, [linear(np.tril(np.ones((6, 6))).tolist(), "a")]), epsilon=1.0),
    "many": SurveySampler(Survey({"town": 1000, "hour": 24}, [shares("town"), shares("hour")]), epsilon=3.0),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_a_certificate_holds_and_is_checked_without_the_library(name: str, tmp_path: Path) -> None:
    sampler = SURVEYS[name]
    agreement = Agreement.of(sampler)
    found = certificate(sampler, agreement=agreement)
    assert found.holds
    assert found.largest_epsilon is not None
    assert found.largest_epsilon[1] <= Fraction(sampler.epsilon) + Fraction(1, 10**9)
    assert found.largest_epsilon[0] > Fraction(9, 10) * Fraction(sampler.epsilon)
    assert problems(json.loads(found.to_json())) == []
    changed = json.loads(found.to_json())
    changed["box"]["upper"][0] = int(changed["box"]["lower"][0] * exp_upper(sampler.epsilon)) + 1
    assert problems(changed)


@pytest.mark.parametrize("name", ["shares", "mean", "sums"])
def test_classes_add_up_to_the_law_of_single_reports(name: str) -> None:
    """An independent count: every report by its own rational, added up by the pair of its chances."""
    sampler = SURVEYS[name]
    rows = (0, sampler.survey.columns.size - 1)
    listed: dict[Any, Fraction] = {}
    for report in sampler.reports().tolist():
        chances = tuple(sampler.probability(report, row) for row in rows)
        place = (sampler.part_of(report), chances[0] / chances[1])
        listed[place] = listed.get(place, Fraction(0)) + chances[0]
    classes = sampler.report_classes(rows)
    assert sum(each.chances[0] for each in classes) == sum(each.chances[1] for each in classes) == 1
    assert sum(listed.values()) == 1
    by_ratio: dict[Fraction, Fraction] = {}
    for each in classes:
        ratio = each.chances[0] / each.chances[1]
        by_ratio[ratio] = by_ratio.get(ratio, Fraction(0)) + each.chances[0]
    totals: dict[Fraction, Fraction] = {}
    for (_, ratio), chance in listed.items():
        totals[ratio] = totals.get(ratio, Fraction(0)) + chance
    assert by_ratio == totals


def test_a_claim_that_is_too_strong_does_not_hold() -> None:
    sampler = SURVEYS["shares"]
    assert not certificate(sampler, epsilon=0.9).holds
    with pytest.raises(DiscreetError, match="pure epsilon"):
        certificate(sampler, privacy=Approximate(1.0, delta=1e-6))


def test_the_command_certifies_an_agreement_on_a_survey(tmp_path: Path) -> None:
    Agreement.of(SURVEYS["numbers"]).write(tmp_path / "agreement.json")
    ran = CliRunner().invoke(
        app, ["certify", "--agreement", str(tmp_path / "agreement.json"), "-o", str(tmp_path / "c.json")]
    )
    assert ran.exit_code == 0, ran.output
    assert problems(json.loads((tmp_path / "c.json").read_text())) == []
