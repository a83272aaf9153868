import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import rel_entr

import discreet as dc
from discreet.research.data import destinations, flights, logbooks
from tests.pictures import assert_picture

Run = Callable[..., Any]


@pytest.fixture
def record(run: Run, tmp_path: Path) -> dict[str, Any]:
    result = run("demo", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_json_tells_the_whole_story(record: dict[str, Any], tmp_path: Path) -> None:
    assert (record["epsilon"], record["aircraft"], record["flights"], record["destinations"]) == (
        2.0,
        4043,
        334264,
        104,
    )
    assert record["picture"] == str(tmp_path / "demo.png")
    assert_picture(tmp_path / "demo.png", least_width=1200)
    _client_is_the_busiest_and_its_law_is_its_log(record["client"])
    _guarantee_holds_in_integers(record["guarantee"])
    _costs_are_those_of_the_laws(record["costs"])
    assert 0 < record["released_own_destination"] < 4043
    _the_design_has_not_seen_whom_it_serves(record["design"], tmp_path)
    _reports_tell_all_destinations(record["reports"], tmp_path)


def _reports_tell_all_destinations(told: dict[str, Any], folder: Path) -> None:
    books = logbooks()
    laws = dc.Simplex(books.outcomes).law(counts=books.counts)
    assert tuple(told["destinations"]) == destinations()
    assert [each["truth"] for each in told["destinations"].values()] == pytest.approx(laws.mean(axis=0).tolist())
    covered = [each["low"] <= each["truth"] <= each["high"] for each in told["destinations"].values()]
    assert sum(covered) >= 84  # of 104, where 99 are expected
    sampler = dc.ReportSampler(dc.Simplex(104), epsilon=2.0)
    times = sampler.by_values().variance() / sampler.variance()
    assert told["aircraft_that_values_need"] == math.ceil(4043 * times)
    assert (
        told["off_by"]["reports"] < told["off_by"]["values"] + 0.1
    )  # .32 and .51 on average; the difference varies by .06
    assert set(told["client"]["named"]) <= set(destinations())
    assert_picture(folder / "demo_destinations.png", least_width=1200)


def _the_design_has_not_seen_whom_it_serves(design: dict[str, Any], folder: Path) -> None:
    family, kl = dc.Simplex(destinations()), dc.divergence("kl")
    first, second = (family.law(counts=logbooks(months).counts) for months in (range(1, 7), range(7, 13)))
    assert (design["examples"], design["aircraft"]) == (len(first), len(second))
    made = dc.design(family, epsilon=2.0, clients=first)
    assert design["samplers"]["designed"]["mean_kl"] == pytest.approx(
        float(np.mean(kl(second, made.sampler.output(second))))
    )
    assert design["floor"] <= min(one["mean_kl"] for one in design["samplers"].values())
    assert design["samplers"]["designed"]["mean_kl"] < design["samplers"]["optimal"]["mean_kl"]
    assert_picture(folder / "demo_design.png", least_width=1200)


def _client_is_the_busiest_and_its_law_is_its_log(client: dict[str, Any]) -> None:
    table = flights()
    tails, visited = table["tailnum"].to_pylist(), table["dest"].to_pylist()
    own = [where for tail, where in zip(tails, visited, strict=True) if tail == client["aircraft"]]
    assert client["flights"] == len(own) == max(np.unique(tails, return_counts=True)[1])
    assert client["held"] == {where: pytest.approx(own.count(where) / len(own)) for where in set(own)}
    drawn_from = np.array(list(client["drawn_from"].values()))
    floor = 1 / (np.exp(2) + 103)
    assert tuple(client["drawn_from"]) == destinations()
    assert drawn_from.sum() == pytest.approx(1.0)
    assert drawn_from.min() == pytest.approx(floor)
    assert drawn_from.max() <= floor * np.exp(2)
    ratios = [
        client["held"][where] / chance for where, chance in client["drawn_from"].items() if chance > floor * (1 + 1e-9)
    ]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))  # P/Q = r_P wherever nothing was clipped
    assert client["released"] in destinations()


def _guarantee_holds_in_integers(guarantee: dict[str, Any]) -> None:
    lower, upper, total = guarantee["lower"], guarantee["upper"], guarantee["total"]
    observed, possible = Fraction(guarantee["largest_observed_ratio"]), Fraction(guarantee["largest_possible_ratio"])
    assert total == 2**62
    assert 104 * lower <= total <= lower * 103 + upper + 103
    assert possible == Fraction(upper, lower)
    with mpmath.workdps(80):
        assert observed <= possible
        assert mpmath.mpf(possible.numerator) / possible.denominator < mpmath.exp(2)
        bound = Fraction(guarantee["lower_bound_of_e_to_the_epsilon"])
        assert possible <= bound
        assert mpmath.mpf(bound.numerator) / bound.denominator < mpmath.exp(2)
    assert guarantee["holds"] is True


def _costs_are_those_of_the_laws(costs: list[dict[str, Any]]) -> None:
    books = logbooks()
    laws = books.counts / books.counts.sum(axis=1, keepdims=True)
    family = dc.Simplex(books.outcomes)
    samplers = {"optimal": dc.OptimalSampler, "linear": dc.LinearSampler, "mollifier": dc.MollifierSampler}
    independent: dict[str, Callable[..., Any]] = {
        "kl": lambda p, q: rel_entr(p, q).sum(axis=1),
        "tv": lambda p, q: np.abs(p - q).sum(axis=1) / 2,
        "hellinger": lambda p, q: np.square(np.sqrt(p) - np.sqrt(q)).sum(axis=1),
    }
    assert [(row["mechanism"], row["divergence"]) for row in costs] == [(m, d) for d in independent for m in samplers]
    optimal = {
        name: value(laws, samplers["optimal"](family, epsilon=2.0).output(laws)) for name, value in independent.items()
    }
    for row in costs:
        sampler = samplers[row["mechanism"]](family, epsilon=2.0)
        values = independent[row["divergence"]](laws, sampler.output(laws))
        assert row["worst_case"] == sampler.risk(row["divergence"]).value
        assert row["mean"] == pytest.approx(values.mean())
        assert row["median"] == pytest.approx(np.median(values))
        assert row["worst"] == pytest.approx(values.max())
        assert row["serves_better_than_optimal"] == (values < optimal[row["divergence"]] - 1e-9).sum()


@pytest.mark.slow
def test_the_text_shows_client_guarantee_costs_and_limits(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--epsilon", "4", "--aircraft", "N328AA", "--out", str(tmp_path / "new" / "folder"))
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert "N328AA holds 393 flights to 6 destinations" in shown
    assert max(map(len, shown.replace(str(tmp_path), "").splitlines())) <= 80
    for word in ("in whole numbers", "as exact rationals", "optimal", "linear", "mollifier", "Not covered", "Picture"):
        assert word in shown
    assert "five collections above, that by values included, spent 20)" in " ".join(shown.split())
    risk = float(dc.minimax_risk(dc.Simplex(104), epsilon=4.0, divergence="kl"))
    assert f"{risk:.3f}*" in shown
    assert_picture(tmp_path / "new" / "folder" / "demo.png", least_width=1200)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("epsilon", ["1e-6", "1000"])
def test_extreme_budgets_run(run: Run, epsilon: str, tmp_path: Path) -> None:
    result = run("demo", "--epsilon", epsilon, "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["guarantee"]["holds"] is True
    assert_picture(tmp_path / "demo.png", least_width=1200)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--epsilon", "0"), "epsilon = 0 is not in (0, inf)"),
        (("--epsilon", "nan"), "epsilon = nan is not in (0, inf)"),
        (("--epsilon", "two"), "'--epsilon'"),
        (("--aircraft", "N0"), "aircraft = 'N0'"),
    ],
)
def test_mistakes_get_one_line(
    refusal: Callable[..., str], arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    assert says in refusal("demo", *arguments, "--out", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
