"""A survey file through the commands: plan, agree, sample, estimate."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from discreet.agreement import Agreement
from discreet.estimation import answer_survey, survey_change
from discreet.survey import Number, Survey, SurveySampler, histogram, mean, quantiles, shares
from tests.pictures import assert_picture

Run = Callable[..., Any]
SURVEY = Survey(
    {"region": ["north", "south", "[bold]west"], "hour": 24, "amount": Number(0, 500, "euro")},
    [shares("region"), shares("region", "hour"), mean("amount"), quantiles("amount", at=(0.5,))],
)
PEOPLE = 3000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    SURVEY.write(tmp_path / "survey.json")
    rows = {
        "who": np.arange(2 * PEOPLE) // 2,
        "region": rng.choice(["north", "south", "[bold]west"], 2 * PEOPLE, p=[0.6, 0.3, 0.1]),
        "hour": rng.integers(0, 24, 2 * PEOPLE),
        "amount": rng.uniform(0, 100, 2 * PEOPLE),
    }
    pl.DataFrame(rows).write_csv(tmp_path / "rows.csv")
    return tmp_path


def _agree(run: Run, folder: Path, *more: str) -> Agreement:
    result = run("agree", folder / "a.json", "--survey", folder / "survey.json", "--epsilon", "2", *more)
    assert result.exit_code == 0, result.output
    return Agreement.read(folder / "a.json")


def test_a_survey_from_the_plan_to_the_picture(run: Run, folder: Path) -> None:
    agreed = _agree(run, folder, "--purpose", "spending", "--rounds", "2")
    assert agreed.survey_sampler() == SurveySampler(SURVEY, epsilon=2.0)
    assert "asks: shares of region x hour" in run("agree", folder / "a.json", "--check").output
    planned = run("plan", "--agreement", folder / "a.json", "--clients", "3000", "--json")
    found = json.loads(planned.stdout)["plans"][0]["questions"]
    assert [each["question"] for each in found] == [question.title for question in SURVEY.questions]
    assert "enough" in run("plan", "--survey", folder / "survey.json", "--clients", "30", "--epsilon", "1").output

    run("secret", folder / "secret")
    options = ["--client", "who", "--agreement", folder / "a.json", "--secret", folder / "secret"]
    for output in ("r.parquet", "again.parquet"):
        made = run("sample", folder / "rows.csv", *options, "-o", folder / output)
        assert made.exit_code == 0, made.output
        assert "3,000 reports to" in made.output
    reports = pl.read_parquet(folder / "r.parquet")
    assert reports.equals(pl.read_parquet(folder / "again.parquet"))
    wanted = answer_survey(agreed.survey_sampler(), reports["report"].to_numpy())
    told = run("estimate", folder / "r.parquet", "--json")
    answers = json.loads(told.stdout)
    assert answers["clients"] == PEOPLE
    for answer, said in zip(wanted, answers["questions"], strict=True):
        assert said["clients"] == answer.clients
        assert [row["estimate"] for row in said["answers"]] == answer.consistent.tolist()
        assert [row["all_high"] for row in said["answers"]] == answer.law.all_high.tolist()
    text = run("estimate", folder / "r.parquet", "--plot", folder / "p.png", "--top", "2").output
    assert "[bold]west" in text or "north" in text
    assert "70 more: --top, --json" in text
    assert re.search(r"The total over 3,000 clients: [0-9,.]+ \([0-9,.]+ to [0-9,.]+\)\.", text.replace("\n", " "))
    assert "An estimate may fall below 0 by chance" in " ".join(text.split())
    assert_picture(folder / "p.png")


def test_what_a_survey_does_not_take_is_refused(run: Run, folder: Path) -> None:
    _agree(run, folder)
    survey = ("--survey", folder / "survey.json")
    for command, match in (
        (("agree", folder / "b.json", *survey), "--epsilon is missing"),
        (("agree", folder / "b.json", *survey, "--epsilon", "1", "--domain-size", "3"), "--domain-size has no meaning"),
        (("agree", folder / "b.json", *survey, "--epsilon", "1", "--for", "clients"), "--for clients has no meaning"),
        (("agree", folder / "b.json", *survey, "--epsilon", "30"), "--allow-large-epsilon"),
        (("plan", *survey, "--clients", "10", "--bins", "3"), "--bins has no meaning"),
        (("sample", folder / "rows.csv", "--client", "who", "-o", folder / "x.csv", *survey), "epsilon is not given"),
        (("sample", folder / "rows.csv", "--client", "who", "-o", folder / "x.csv"), "--value is missing"),
        (
            (
                "sample",
                folder / "rows.csv",
                "--client",
                "who",
                "--agreement",
                folder / "a.json",
                *survey,
                "-o",
                "x.csv",
            ),
            "give one of them",
        ),
        (
            (
                "sample",
                folder / "rows.csv",
                "--client",
                "who",
                "--value",
                "hour",
                *survey,
                "--epsilon",
                "1",
                "-o",
                "x.csv",
            ),
            "has no meaning for a survey",
        ),
    ):
        result = run(*command)
        assert result.exit_code != 0
        assert match in " ".join(result.output.split()), result.output
    assert not (folder / "b.json").exists()
    assert not (folder / "x.csv").exists()
    run("sample", folder / "rows.csv", "--client", "who", *survey, "--epsilon", "1", "-o", folder / "r.parquet", "-q")
    for options, match in (
        (("--statistic", "mean"), "--statistic does not go with a survey; leave it out"),
        (("--liars", "3"), "--liars does not go with"),
        (("--by", "amount"), "no question of the survey asks for shares of 'amount' together"),
        (("--by", "colour"), "column 'colour' is not in"),
        (("--by", "region", "--plot", folder / "p.png"), "--plot does not go with groups that are private"),
        (("--compare", folder / "r.parquet"), "reads the same file as"),
    ):
        result = run("estimate", folder / "r.parquet", *options)
        assert result.exit_code != 0
        assert match in " ".join(result.output.split()), result.output


def test_a_plan_of_a_survey_refuses_what_it_does_not_use(run: Run, refusal: Run, folder: Path) -> None:
    _agree(run, folder)
    plan = ("plan", "--clients", "10")
    survey, agreed = ("--survey", str(folder / "survey.json")), ("--agreement", str(folder / "a.json"))
    for options in (
        ("--bins", "3"), ("--example", "rows.csv"), ("--client", "who"), ("--value", "hour"), ("--other", "x"), ("--nulls", "drop"),
        ("--accuracy", "0.1"), ("--confidence", "0.9"), ("--seed", "1"),
    ):  # fmt: skip
        for terms in (survey, agreed):
            assert f"{options[0]} has no meaning with a survey" in refusal(*plan, *terms, *options)
    assert "--for clients has no meaning" in refusal(*plan, *survey, "--for", "clients")
    assert "--survey plans an agreement, and --agreement is one" in refusal(*plan, *survey, *agreed)
    assert run(*plan, *survey, "--epsilon", "1", "--for", "population").exit_code == 0


def test_long_histograms_say_which_cells_are_listed(run: Run, tmp_path: Path) -> None:
    survey = Survey({"amount": Number(0, 100, "euro")}, [histogram("amount", cells=100)])
    agreed = Agreement.of(SurveySampler(survey, epsilon=2.0))
    agreed.write(tmp_path / "a.json")
    rows = {"who": range(100), "amount": np.linspace(0, 100, 100), "plan": ["free", "paid"] * 50}
    pl.DataFrame(rows).write_csv(tmp_path / "rows.csv")
    terms = ("--client", "who", "--agreement", tmp_path / "a.json")
    run("sample", tmp_path / "rows.csv", *terms, "-o", tmp_path / "r.parquet", "-q")
    told = " ".join(run("estimate", tmp_path / "r.parquet").output.split())
    assert "36 more: --top, --json. The first 64 are listed" in told
    by = ("estimate", tmp_path / "r.parquet", "--by", "plan", "--clients-table", tmp_path / "rows.csv")
    assert "68 more: --top, --json." in run(*by).output
    assert "more:" not in run(*by, "--top", "100").output


def test_groups_and_changes_of_a_survey(run: Run, folder: Path) -> None:
    agreed = _agree(run, folder)
    for output in ("may.parquet", "june.parquet"):
        run(
            "sample",
            folder / "rows.csv",
            "--client",
            "who",
            "--agreement",
            folder / "a.json",
            "-o",
            folder / output,
            "-q",
        )
    people = {"who": range(PEOPLE), "plan": ["free", "paid", None] * (PEOPLE // 3)}
    pl.DataFrame(people).write_csv(folder / "people.csv")
    by = ("--by", "plan", "--clients-table", folder / "people.csv")
    assert "1,000 of 3,000 clients have no group" in " ".join(
        run("estimate", folder / "may.parquet", *by).output.split()
    )
    told = json.loads(run("estimate", folder / "may.parquet", *by, "--null-groups", "drop", "--json").stdout)
    assert {name: each["clients"] for name, each in told["groups"].items()} == {"free": 1000, "paid": 1000}
    assert told["notes"] == ["1,000 clients without a group were left out"]
    text = run("estimate", folder / "may.parquet", *by, "--null-groups", "group").output
    assert "hold for all 3 groups" in " ".join(text.split())
    within = json.loads(run("estimate", folder / "may.parquet", "--by", "region", "--json").stdout)
    groups = within["questions"][0]["groups"]
    assert list(groups) == ["north", "south", "[bold]west"]
    assert sum(row["estimate"] for row in groups["north"]) == pytest.approx(1.0)
    text = run("estimate", folder / "may.parquet", "--by", "region").output
    assert "[bold]west" in text
    assert "16 more: --top, --json." in text
    compared = ("estimate", folder / "june.parquet", "--compare", folder / "may.parquet")
    change = json.loads(run(*compared, "--json").stdout)
    wanted = survey_change(
        agreed.survey_sampler(), pl.read_parquet(folder / "may.parquet")["report"].to_numpy(),
        agreed.survey_sampler(), pl.read_parquet(folder / "june.parquet")["report"].to_numpy(),
    )  # fmt: skip
    assert [row["estimate"] for row in change["changes"][0]["answers"]] == wanted.laws[0].estimate.tolist()
    told = " ".join(run(*compared, "--plot", folder / "c.svg").output.split())
    assert "the same 3,000 clients are in both files" in told
    assert "64 more: --top, --json." in told
    assert "c.svg" in told
    assert (folder / "c.svg").stat().st_size > 10_000


def test_reports_of_another_survey_are_no_reports(run: Run, folder: Path) -> None:
    agreed = _agree(run, folder)
    pl.DataFrame({"who": [1, 2], "report": [3, 2**60], "agreement": [agreed.id] * 2}).write_csv(folder / "bad.csv")
    result = run("estimate", folder / "bad.csv", "--agreement", folder / "a.json")
    assert "is no report of this survey" in " ".join(result.output.split())
    pl.DataFrame({"who": [1, 1], "report": [3, 3], "agreement": [agreed.id] * 2}).write_csv(folder / "twice.csv")
    assert run("estimate", folder / "twice.csv", "--agreement", folder / "a.json").exit_code != 0
    pl.DataFrame({"who": [1], "report": [3], "agreement": ["0" * 64]}).write_csv(folder / "other.csv")
    result = run("estimate", folder / "other.csv", "--agreement", folder / "a.json")
    assert "another agreement" in " ".join(result.output.split()) or "made under" in result.output


def test_hostile_names_and_files_are_told_in_one_line(run: Run, refusal: Callable[..., str], folder: Path) -> None:
    names = {"age\nepsilon = 0.1, survey on rows of age": 3, "[/foo]": 2, "[conceal]": 2}
    Survey(names, [shares(name) for name in names]).write(folder / "hostile.json")
    made = run("agree", folder / "h.json", "--survey", folder / "hostile.json", "--epsilon", "3")
    assert made.exit_code == 0, made.output
    told = run("agree", folder / "h.json", "--check").output
    assert "[/foo]" in told
    assert "[conceal]" in told
    assert not any(line.startswith("epsilon = 0.1") for line in told.splitlines())
    for content, match in (
        ("[" * 100_000, "cannot be read"),
        ('{"columns": {"a": {"size": 2}, "a": {"size": 3}}, "questions": []}', "twice"),
        (
            '{"columns": {"a": {"size": 2}}, "questions": [{"linear": "a", "matrix": [[1' + "0" * 400 + ", 0]]}]}",
            "matrix",
        ),
        ('{"columns": {"a": {"labels": ["x", " x"]}}, "questions": [{"shares": "a"}]}', "cannot be told apart"),
    ):
        (folder / "bad.json").write_text(content)
        assert match in refusal("agree", folder / "b.json", "--survey", folder / "bad.json", "--epsilon", "1")
    rows = pl.read_csv(folder / "rows.csv").with_columns(region=pl.lit("east"))
    rows.write_csv(folder / "east.csv")
    options = ("--client", "who", "--survey", folder / "survey.json", "--epsilon", "1", "-o", folder / "x.csv")
    shown = " ".join(run("sample", folder / "east.csv", *options, "--show-values").output.split())
    assert "such as 'east'" in shown
    assert "--show-values" not in shown
    assert "such as" not in run("sample", folder / "east.csv", *options).output


def test_wider_tables_are_named_where_people_read_what_is_asked(run: Run, folder: Path) -> None:
    survey = Survey(dict.fromkeys("abcd", 2), [shares(name) for name in "abcd"])
    survey.write(folder / "wide.json")
    told = run("agree", folder / "w.json", "--survey", folder / "wide.json", "--epsilon", "4").output
    assert "may also ask, to tell these: shares of" in told
    assert "a x b" in told
