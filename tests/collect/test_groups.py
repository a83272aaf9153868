"""Groups and changes in a service: what it tells is what the command tells from files of the same samples, and hides what is hidden."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.collect import serve
from discreet.collect._catalogue import agreements_differ_in_purpose_alone
from discreet.collect._results import group_names
from discreet.errors import DiscreetError
from discreet.estimation import (
    answer_groups,
    answer_survey,
    change,
    estimate_groups,
    shares_within,
    survey_change,
)
from discreet.mechanisms import ReportCounts, ReportSampler
from discreet.survey import Number, Survey, SurveySampler, mean, shares
from tests.collect.running import one, running

COLOURS = ["red", "green", "blue"]
LINEAR = dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0)
SURVEYED = SurveySampler(
    Survey(
        {"region": ["north", "south"], "trips": 3, "amount": Number(0, 10)}, [shares("region", "trips"), mean("amount")]
    ),
    epsilon=3.0,
)


def agreed(folder: Path, sampler: Any, *purposes: str, rounds: int = 1) -> list[Agreement]:
    """An agreement for each group, in a file of its own."""
    made = [Agreement.of(sampler, purpose=purpose, rounds=rounds) for purpose in purposes]
    for number, each in enumerate(made):
        each.write(folder / f"{number}.json")
    return made


def send(collector: Any, agreement: Agreement, samples: Any, *, prefix: str = "c", round: int = 1) -> None:
    rows = [{"client": f"{prefix}{i}", "key": f"k{i}", "sample": each} for i, each in enumerate(samples)]
    answer = collector.send({"agreement": agreement.id, "round": round, "samples": rows}).json
    assert answer["counted"] == len(rows), answer


def colours(many: int, first: int) -> list[str]:
    return [COLOURS[(first + i * i) % 3] for i in range(many)]


@pytest.mark.slow
def test_groups_of_samples_are_estimated_side_by_side(tmp_path: Path) -> None:
    north, south, west = agreed(tmp_path, LINEAR, "Lunch, north", "Lunch, south", "Lunch, west")
    samples = {"Lunch, north": colours(90, 0), "Lunch, south": colours(140, 1)}
    with running(tmp_path, "0.json", "1.json", "2.json", "--groups", "--least", "20") as collector:
        send(collector, north, samples["Lunch, north"], prefix="n")
        send(collector, south, samples["Lunch, south"], prefix="s")
        send(collector, west, colours(19, 0), prefix="w")
        assert collector.send(one(south, "n0", "red")).status == 409  # one sample of each client, in whichever group
        told = collector.get("/collection").json
        assert (told["groups"], told["within"]) == ([north.id, south.id, west.id], [])
        said, pooled = collector.get("/groups").json, collector.get("/pooled").json
        tag = collector.get("/groups").headers["ETag"]
        assert collector.ask("GET", "/groups", headers={"If-None-Match": tag}).status == 304
        assert collector.get("/groups?by=region").status == 400
        assert collector.get("/groups?round=2").status == 400
        assert collector.get("/groups?confidence=0.7").status == 400
        assert collector.said == ""
    found = estimate_groups(
        LINEAR,
        samples=[each for group in samples.values() for each in group],
        groups=[name for name, group in samples.items() for _ in group],
    )
    assert [group["group"] for group in said["groups"]] == list(samples)
    for group in said["groups"]:
        law = found.laws[group["group"]]
        for name in ("estimate", "low", "high", "all_low", "all_high"):
            assert [share["law"][name] for share in group["shares"]] == getattr(law, name).tolist()
    assert said["notes"] == ["1 group of 3 with fewer than 20 samples not shown"]
    assert said["samples_of_groups"] == {"Lunch, north": 90, "Lunch, south": 140, "Lunch, west": 19}
    assert said["agreements"]["Lunch, south"] == south.id
    assert pooled["clients"] == 230  # without the hidden group, which the difference would tell
    assert [stage["clients"] for stage in pooled["stages"]] == [90, 140]
    assert pooled["notes"][0] == "stage 3 of 3 with too few samples left out"
    with running(tmp_path, log="again.txt") as collector:  # the store remembers which agreements are of one collection
        assert collector.get("/groups").json == said
        assert collector.send(one(west, "s1", "red")).status == 409


@pytest.mark.slow
def test_a_change_of_reports_from_round_to_round(tmp_path: Path) -> None:
    sampler = ReportSampler(dc.Simplex(20), epsilon=2.0)
    (agreement,) = agreed(tmp_path, sampler, "Twice", rounds=3)
    first, second = sampler.release_records(np.arange(300) % 5), sampler.release_records(np.arange(300) % 7)
    with running(tmp_path, "0.json", "--round", "1", "--round", "2", "--round", "3") as collector:
        assert collector.get("/change?round=2").json["changes"] == []
        send(collector, agreement, map(str, first), round=1)
        assert collector.get("/change?round=2").json["notes"] == ["round 2 has too few reports, so no change is shown"]
        send(collector, agreement, map(str, second), round=2)
        said = collector.get("/change?round=2").json
        assert collector.get("/change?round=2&from=1").json == said
        assert collector.get("/change?round=1&from=2").json["changes"][0]["change"]["estimate"] == pytest.approx(
            -said["changes"][0]["change"]["estimate"]
        )
        assert collector.get("/pooled").status == 404  # one agreement is no stage beside another
        for wrong in ("round=1", "round=2&from=2", "round=2&from=0", "round=4", "from=x"):
            assert collector.get(f"/change?{wrong}").status == 400
        assert "no round before round 1" in collector.get("/change?round=1").json["error"]
        assert "from is not a whole number" in collector.get("/change?round=2&from=0").json["error"]
    before, after = (
        dc.estimation.reported_population(sampler, counts=ReportCounts(sampler).add(each)) for each in (first, second)
    )
    law = change(before, after).law
    assert said["rounds"] == [1, 2]
    for name in ("estimate", "low", "high", "all_low", "all_high"):
        assert [each["change"][name] for each in said["changes"]] == getattr(law, name).tolist()


@pytest.mark.slow
def test_groups_and_changes_of_a_survey(tmp_path: Path) -> None:
    north, south = agreed(tmp_path, SURVEYED, "Trips, 2025", "Trips, 2026", rounds=2)
    reports = [SURVEYED.release_rows((np.arange(400) * step) % SURVEYED.survey.columns.size) for step in (1, 7, 31)]
    with running(tmp_path, "0.json", "1.json", "--groups", "--round", "1", "--round", "2") as collector:
        send(collector, north, map(str, reports[0]), prefix="n")
        send(collector, south, map(str, reports[1]), prefix="s")
        send(collector, south, map(str, reports[2]), prefix="s", round=2)
        told = collector.get("/collection").json
        assert told["within"] == ["region", "trips"]
        side_by_side = collector.get("/groups?round=1").json
        within = collector.get(f"/groups?round=1&by=region&agreement={south.id}").json
        moved = collector.get(f"/change?round=2&agreement={south.id}").json
        assert collector.get("/groups?by=amount").status == 400
        assert collector.said == ""
    found = answer_groups(SURVEYED, {"Trips, 2025": reports[0], "Trips, 2026": reports[1]})
    assert list(side_by_side["groups"]) == list(found)
    for name, each in found.items():
        assert [question["answers"] for question in side_by_side["groups"][name]["questions"]] == [
            answer.rows() for answer in each
        ]
    ratios = shares_within(answer_survey(SURVEYED, reports[1]), 0, "region")
    for group, law in ratios.items():
        listed = within["questions"][0]["groups"][str(group)]
        assert [row["all_high"] for row in listed] == law.all_high.tolist()
    expected = survey_change(SURVEYED, reports[1], SURVEYED, reports[2])
    for question, law in zip(moved["changes"], expected.laws, strict=True):
        assert [row["estimate"] for row in question["answers"]] == np.ravel(law.estimate).tolist()
    for number in (1, 2):
        ran = CliRunner().invoke(
            app,
            [
                "export",
                str(tmp_path / "samples.db"),
                "-o",
                f"{tmp_path}/{number}.parquet",
                "--agreement",
                south.id,
                "--round",
                f"{number}",
            ],
        )
        assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(
        app, ["estimate", str(tmp_path / "2.parquet"), "--compare", str(tmp_path / "1.parquet"), "--json"]
    )
    compared = json.loads(ran.stdout)
    assert compared["changes"] == moved["changes"]
    assert any(
        "it is not known how many are in both" in note for note in compared["notes"]
    )  # numbered rows name nobody


def test_agreements_that_differ_in_more_than_their_purpose_are_no_groups(tmp_path: Path) -> None:
    one_of, other = (
        Agreement.of(LINEAR, purpose="a"),
        Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=0.5), purpose="b"),
    )
    assert agreements_differ_in_purpose_alone(one_of, Agreement.of(LINEAR, purpose="b"))
    assert not agreements_differ_in_purpose_alone(one_of, other)
    assert not agreements_differ_in_purpose_alone(one_of, Agreement.of(LINEAR, purpose="a", rounds=2))
    for wrong, said in (([one_of, other], "differ in more than their purpose"), ([one_of], "several agreements")):
        with pytest.raises(DiscreetError, match=said):
            serve(tmp_path / "store.db", wrong, groups=True)
    assert not (tmp_path / "store.db").exists()


def test_groups_with_one_purpose_or_none_are_told_apart() -> None:
    made = [
        Agreement.of(LINEAR, purpose=purpose, rounds=rounds)
        for rounds, purpose in enumerate(["a", "a", "", "b"], start=1)
    ]
    names = group_names(made)
    assert names == [f"a {made[0].id[:12]}", f"a {made[1].id[:12]}", made[2].id[:12], "b"]
