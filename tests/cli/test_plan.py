import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import discreet as dc
from discreet.cli._plan import _epsilon_threshold_text
from discreet.cli._plan._agreed import client_count_text
from discreet.cli._printing import margin_text
from discreet.estimation import clients_for, epsilon_for_accuracy, outlook
from discreet.mechanisms import ReportSampler
from tests.pictures import assert_picture

Run = Callable[..., Any]


def test_json_holds_what_to_expect_at_each_epsilon(run: Run) -> None:
    result = run("plan", "--outcomes", "10", "--clients", "10000", "--epsilon", "1", "--epsilon", "4", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    first, second = record["rows"]
    assert first["epsilon"] == 1.0
    gamma = np.expm1(1.0) / (np.expm1(1.0) + 10)
    floor = 1 / (np.e + 9)
    assert first["worst_case"]["tv"] == pytest.approx(1 - np.e * floor)
    exact = stats.beta.isf(0.025, 10000 * floor + 1, 10000 * (1 - floor)) - floor
    assert first["linear"]["if_rare"] == pytest.approx(exact / gamma, rel=1e-9)
    assert first["linear"]["if_rare"] > 1.959964 * np.sqrt(floor * (1 - floor) / 10000) / gamma
    assert first["linear"]["together"] > first["linear"]["at_worst"]
    assert first["clients_for_accuracy_together"] > first["clients_for_accuracy"]
    assert record["smallest_epsilon_together"]["linear"] > record["smallest_epsilon"]["linear"]
    assert first["linear"]["at_worst"] > second["linear"]["at_worst"]
    assert first["linear"]["band"] == 0.0 < first["optimal"]["band"]
    assert record["smallest_epsilon"]["linear"] < record["smallest_epsilon"]["optimal"]
    assert first["clients_for_accuracy"] > 10000 * (first["linear"]["at_worst"] / 0.05) ** 2 * 0.99


def test_several_samples_are_compared_with_one(run: Run) -> None:
    asked = ("plan", "--outcomes", "4", "--clients", "1000", "--epsilon", "2", "--samples", "3")
    record = json.loads(run(*asked, "--json").stdout)
    (found,) = record["several"]
    single, joint, product, composed = found["ways"]
    assert [way["name"] for way in found["ways"]] == ["single", "joint", "product", "composed"]
    assert single["population"] < composed["population"]
    assert joint["together"] <= product["together"] <= composed["together"] + 1e-9
    told = " ".join(run(*asked).stdout.split())
    assert "to estimate the population: single." in told  # at one epsilon there is nothing to tell apart
    both = " ".join(run(*asked, "--epsilon", "1", "--epsilon", "8").stdout.split())
    assert "look like draws from it: joint;" in both
    assert "to estimate the population: single at epsilon = 1, 2, composed at epsilon = 8." in both
    assert "samples = 1 is less than 2" in run("plan", "--outcomes", "4", "--clients", "9", "--samples", "1").stderr


def test_rounds_of_an_agreement_are_compared_with_one(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "agreement.json")
    said = run("agree", path, "--outcomes", "20", "--epsilon", "0.4", "--rounds", "10", "--mechanism", "linear").stdout
    words = "10 rounds spend 4-LDP together; one sample of each client at that would estimate a population 9.6 times"
    assert words in " ".join(said.split())
    assert words in " ".join(run("plan", "--agreement", path, "--clients", "100").stdout.split())
    record = json.loads(run("plan", "--agreement", path, "--clients", "100", "--json").stdout)
    assert record["rounds"]["factor"] == pytest.approx(9.6, rel=0.01)
    said = run("plan", "--agreement", path, "--clients", "100", "--accuracy", "0.001").stderr
    assert "--accuracy is for a plan before an agreement" in " ".join(said.split())


@pytest.mark.slow
def test_people_see_a_table_and_a_picture(run: Run, tmp_path: Path) -> None:
    result = run("plan", "--outcomes", "10", "--clients", "10000", "--plot", str(tmp_path / "plan.png"))
    assert result.exit_code == 0, result.output
    for words in (
        "10,000 clients, 10 outcomes",
        "linear rare whole optimal clients",
        "All 10 at once",
        "To estimate the population: linear. It reaches +-0.05 with 10,000 clients",
        "linear was taken, to estimate the population",
        "for all at once",
        "Written: ",
    ):
        assert words in " ".join(result.stdout.split())
    assert_picture(tmp_path / "plan.png", least_width=1200)


def test_too_few_clients_are_told(run: Run) -> None:
    result = run("plan", "--outcomes", "10", "--clients", "10")
    assert result.exit_code == 0, result.output
    assert "10 clients are too few" in result.stdout


@pytest.mark.slow
def test_the_largest_plans_fit_on_a_page(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    result = run("plan", "--outcomes", str(2**40), "--clients", str(10**15), "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert_picture(picture, least_width=1200)


def test_what_takes_no_epsilon_at_all_is_said(run: Run) -> None:
    result = run("plan", "--outcomes", "1", "--clients", "1", "--epsilon", "1e-9", "--epsilon", "1000")
    assert result.exit_code == 0, result.output
    assert "1 client, 1 outcome:" in result.stdout
    assert "with 1 client at any epsilon" in " ".join(result.stdout.split())


def test_a_rehearsal_on_example_records(run: Run, tmp_path: Path) -> None:
    example = tmp_path / "example.csv"
    rng = np.random.default_rng(0)
    pl.DataFrame({"who": rng.integers(0, 50, 900), "what": rng.integers(0, 4, 900)}).write_csv(example)
    options = ("--example", str(example), "--client", "who", "--value", "what", "--epsilon", "1", "--json")
    result = run("plan", "--outcomes", "4", "--clients", "5000", *options)
    assert result.exit_code == 0, result.output
    linear, optimal = json.loads(result.stdout)["rehearsals"]
    assert (linear["mechanism"], optimal["mechanism"]) == ("linear", "optimal")
    assert 0.8 <= linear["covered"] <= 1.0
    assert optimal["covered"] == 1.0
    again = run("plan", "--outcomes", "4", "--clients", "5000", *options)
    assert again.stdout == result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--clients", "10"), "give the public domain once"),
        (("--clients", "0", "--outcomes", "3"), "clients = 0"),
        (("--clients", str(10**16), "--outcomes", "3"), "clients is more than"),
        (("--clients", "10", "--outcomes", "3", "--plot", "p.xyz"), "does not end in"),
        (("--clients", "10", "--outcomes", "0"), "domain size = 0"),
        (("--clients", "10", "--outcomes", "3", "--epsilon", "-1"), "epsilon = -1"),
        (("--clients", "10", "--outcomes", "3", "--accuracy", "0"), "accuracy = 0"),
        (("--clients", "10", "--outcomes", "3", "--confidence", "nan"), "confidence = nan"),
        (("--clients", "10", "--outcomes", "3", "--client", "who"), "give that too"),
        (("--clients", "10", "--outcomes", "3", "--seed", "7"), "give that too"),
        (("--clients", "10", "--outcomes", "3", "--example", "x"), "--example needs"),
    ],
)
def test_bad_options_are_refused_by_name(refusal: Callable[..., str], options: tuple[str, ...], message: str) -> None:
    assert message in refusal("plan", *options)


def test_a_continuous_agreement_is_planned_on_bins(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    family = dc.GaussianMixtures(1, box=(-4.0, 4.0))
    path, linear = tmp_path / "optimal.json", tmp_path / "linear.json"
    dc.Agreement.of(dc.OptimalSampler(family, epsilon=2.0, discretisation=dc.Cells(12))).write(path)
    dc.Agreement.of(dc.LinearSampler(family, epsilon=2.0)).write(linear)
    rng = np.random.default_rng(0)
    terms = ("plan", "--clients", "1000", "--agreement")
    covered = []
    for spread in (0.2, 1.0):  # far narrower than any member of the family; and like one
        example = tmp_path / f"{spread}.csv"
        values = rng.normal(0.0, spread, 8000).clip(-4, 4)
        pl.DataFrame({"who": np.repeat(np.arange(200), 40), "x": values}).write_csv(example)
        rows = ("--example", str(example), "--client", "who", "--value", "x")
        record = json.loads(run(*terms, str(path), "--json", "--bins", "5", *rows).stdout)
        expected = outlook(dc.Agreement.read(path).sampler(), mechanism="optimal", clients=1000, bins=5)
        assert (record["outcomes"], record["outlook"]["at_worst"]) == (5, expected.at_worst)
        covered.append(record["rehearsal"]["covered"])
    assert covered[0] < 0.9 < covered[1], "a rehearsal tells of clients whom the intervals do not speak for"
    said = run(*terms, str(linear))
    assert "1,000 clients, 32 bins" in said.stdout
    assert "does not release tables" in refusal(*terms, str(linear), *rows)
    assert "--bins is for" in refusal("plan", "--clients", "9", "--outcomes", "3", "--bins", "2")
    dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), epsilon=2.0)).write(tmp_path / "finite.json")
    assert "--bins is for" in refusal(*terms, str(tmp_path / "finite.json"), "--bins", "2")
    dc.Agreement.of(dc.OptimalSampler(dc.GaussianMixtures(2), epsilon=2.0)).write(tmp_path / "plane.json")
    assert "does not release on a line" in refusal(*terms, str(tmp_path / "plane.json"))


def test_one_table_tells_what_reports_and_values_need(run: Run, tmp_path: Path) -> None:
    asked = ("plan", "--outcomes", "104", "--clients", "4043", "--accuracy", "0.01", "--epsilon", "1", "--epsilon", "8")
    first, last = json.loads(run(*asked, "--json").stdout)["rows"]
    reports = ReportSampler(dc.Simplex(104), epsilon=1.0)
    assert (first["population"], last["population"]) == ("reports", "linear")
    assert first["clients_for_accuracy_by_reports"] == clients_for(reports, accuracy=0.01)
    assert 15 * first["clients_for_accuracy_by_reports"] < first["clients_for_accuracy"]
    assert last["clients_for_accuracy_by_reports"] == last["clients_for_accuracy"]
    said = " ".join(run(*asked, "--for", "population").stdout.split())
    assert f"1 {clients_for(reports, accuracy=0.01):,} {first['clients_for_accuracy']:,} 20.3 reports" in said
    assert "let clients send reports" not in " ".join(run(*asked, "--for", "clients").stdout.split())


def test_a_plan_for_agreed_reports_is_of_them(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    sampler = ReportSampler(dc.Simplex(104), epsilon=1.0)
    path = str(tmp_path / "reports.json")
    dc.Agreement.of(sampler).write(path)
    asked = ("plan", "--agreement", path, "--clients", "100000", "--accuracy", "0.01")
    record = json.loads(run(*asked, "--json").stdout)
    look = outlook(sampler, mechanism="reports", clients=100_000)
    assert record["outlook"]["at_worst"] == look.at_worst
    assert record["clients_for_accuracy"] == clients_for(sampler, accuracy=0.01)
    assert record["blocks"] == {"kind": "affine", "q": 107, "t": 1, "c": 28}
    assert f"{record['clients_for_accuracy']:,}" in run(*asked).stdout
    assert "--example needs --client COLUMN and --value COLUMN" in refusal(*asked, "--example", "rows.csv")


@pytest.mark.slow
@pytest.mark.soak
def test_the_plan_says_how_far_each_way_is_from_the_least_variance(run: Run) -> None:
    said = json.loads(run("plan", "--outcomes", "104", "--clients", "4043", "--for", "population", "--json").stdout)
    for row in said["rows"]:
        reports = dc.ReportSampler(dc.Simplex(104), epsilon=row["epsilon"])
        over = row["times_the_least_variance"]
        assert over["values"] == pytest.approx(reports.by_values().excess)
        assert over["reports"] == (reports.excess if row["population"] == "reports" else over["values"])
        assert 1.0 - 1e-12 <= over["reports"] <= over["values"] + 1e-12
    shown = run("plan", "--outcomes", "104", "--clients", "4043", "--for", "population", "--epsilon", "1").stdout
    assert "9.979" in shown


def _write_example(path: Path, clients: int = 60, outcomes: int = 30) -> tuple[str, ...]:
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(clients), 20)
    what = np.minimum(rng.geometric(0.2, len(who)) + rng.integers(0, 5, clients)[who], outcomes) - 1
    pl.DataFrame({"who": who, "what": what}).write_csv(path)
    return "--example", str(path), "--client", "who", "--value", "what"


@pytest.mark.slow
def test_examples_show_which_way_to_the_population_is_nearest(run: Run, tmp_path: Path) -> None:
    options = ("plan", "--outcomes", "30", "--clients", "2000", "--epsilon", "1", "--for")
    example = _write_example(tmp_path / "example.csv")
    ways = json.loads(run(*options, "population", "--json", *example).stdout)["population_ways"]
    totals = {way["name"]: way["total"] for way in ways}
    assert list(totals) == ["reports", "values", "samples, reweighted", "designed, reweighted", "examples alone"]
    assert totals["samples, reweighted"] < totals["reports"]
    assert ways[0]["by_reports"] == pytest.approx(2000)
    assert ways[2]["by_reports"] == pytest.approx(2000 * (totals["reports"] / totals["samples, reweighted"]) ** 2)
    shown = " ".join(run(*options, "population", *example).stdout.split())
    assert "Which way to the population" in shown
    assert "population_ways" not in json.loads(run(*options, "clients", "--json", *example).stdout)


def test_an_agreement_on_reports_is_rehearsed_with_examples(
    run: Run, refusal: Callable[..., str], tmp_path: Path
) -> None:
    dc.Agreement.of(dc.ReportSampler(dc.Simplex(30), epsilon=1.0)).write(tmp_path / "a.json")
    terms = ("plan", "--clients", "3000", "--agreement", str(tmp_path / "a.json"))
    example = _write_example(tmp_path / "example.csv")
    found = json.loads(run(*terms, "--json", *example).stdout)["rehearsal"]
    assert 0.85 <= found["covered"] <= 1.0
    assert 0.0 < found["largest"] < found["total"] < 1.0
    assert "Rehearsal" in run(*terms, *example).stdout
    assert json.loads(run(*terms, "--json").stdout)["rehearsal"] is None
    assert "--bins is for" in refusal(*terms, "--bins", "3")


@pytest.mark.parametrize("together", [False, True])
def test_printed_epsilons_clients_and_margins_are_enough(together: bool) -> None:
    least = epsilon_for_accuracy(dc.LinearSampler, dc.Simplex(6), clients=4000, accuracy=0.06, together=together)
    printed = float(_epsilon_threshold_text(least).split()[3])
    found = outlook(dc.LinearSampler(dc.Simplex(6), epsilon=printed), mechanism="linear", clients=4000)
    assert (found.together if together else found.at_worst) <= 0.06
    assert least <= printed <= 1.01 * least
    assert client_count_text(123_456_789) == "1.3e+08"
    for margin in (0.14401, 0.0501, 0.0012341, 0.9991, 9999.9999, 10443.3, 100400.0):
        assert margin <= float(margin_text(margin)) <= 1.02 * margin
    assert margin_text(math.inf) == "infinite"
