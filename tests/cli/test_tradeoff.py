import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from tests.pictures import assert_picture
from tests.soaking import wide

Run = Callable[..., Any]
Refusal = Callable[..., str]
USUAL = ("kl", "tv", "hellinger", "chi2")


def record(run: Run, *arguments: str) -> dict[str, Any]:
    result = run("tradeoff", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_json_holds_the_values_of_the_library(run: Run) -> None:
    found = record(run, "--outcomes", "10", "--epsilon", "1", "--epsilon", "0.3")
    family = dc.Simplex(10)
    assert found["family"] == {"outcomes": 10, "lower": 0.0, "upper": 10.0, "alpha": 0.1}
    assert [(row["epsilon"], row["divergence"]) for row in found["risks"]] == [
        (e, d) for e in (1.0, 0.3) for d in USUAL
    ]
    for row in found["risks"]:
        optimal = dc.OptimalSampler(family, epsilon=row["epsilon"]).risk(row["divergence"])
        mollifier = dc.MollifierSampler(family, epsilon=row["epsilon"]).risk(row["divergence"])
        assert row["optimal"] == {"value": optimal.value, "tight": True}
        assert row["mollifier"] == {"value": mollifier.value, "tight": True}


@pytest.mark.parametrize("divergence", USUAL)
def test_values_are_attained_by_point_masses(run: Run, divergence: str) -> None:
    """Theorem 3.1 and Appendix F.1: on the simplex both worst cases are the divergence of a point mass from its output."""
    (row,) = record(run, "--outcomes", "7", "--epsilon", "1.5", "--divergence", divergence)["risks"]
    mass = np.eye(7)[0]
    for name, sampler in (("optimal", dc.OptimalSampler), ("mollifier", dc.MollifierSampler)):
        output = sampler(dc.Simplex(7), epsilon=1.5).output(mass)
        assert row[name]["value"] == pytest.approx(dc.divergence(divergence)(mass, output), rel=1e-12)


def test_the_default_of_lower_may_be_said(run: Run) -> None:
    terms = ("tradeoff", "--outcomes", "3", "--epsilon", "1", "--divergence", "kl")
    assert run(*terms, "--lower", "0").stdout == run(*terms).stdout


def test_a_range_is_geometric_and_keeps_its_ends(run: Run) -> None:
    rows = record(run, "--outcomes", "4", "--epsilon", "0.1:5:20", "--divergence", "tv")["risks"]
    epsilons = np.array([row["epsilon"] for row in rows])
    assert (len(epsilons), epsilons[0], epsilons[-1]) == (20, 0.1, 5.0)
    assert np.allclose(epsilons[1:] / epsilons[:-1], 50 ** (1 / 19))


def test_risk_finds_the_smallest_budget_of_each_mechanism(run: Run) -> None:
    found = record(run, "--outcomes", "10", "--risk", "0.3")
    assert found["risks"] == []
    assert [row["divergence"] for row in found["budgets"]] == list(USUAL)
    family = dc.Simplex(10)
    for row in found["budgets"]:
        assert row["optimal"] == dc.epsilon_for(family, divergence=row["divergence"], risk=0.3)
        assert row["nu"] == dc.nu_for(family, divergence=row["divergence"], risk=0.3)
        for name, sampler in (("optimal", dc.OptimalSampler), ("mollifier", dc.MollifierSampler)):
            assert sampler(family, epsilon=row[name]).risk(row["divergence"]).value <= 0.3
            assert sampler(family, epsilon=row[name] * (1 - 1e-6)).risk(row["divergence"]).value > 0.3
        assert row["optimal"] < row["mollifier"]


@pytest.mark.parametrize(("lower", "upper"), [("0.5", "2"), ("0.1", "3"), ("0.2", None), (None, "4")])
def test_a_band_reaches_risk_zero_or_says_why_not(
    run: Run, refusal: Refusal, lower: str | None, upper: str | None
) -> None:
    band = [*(["--lower", lower] if lower else []), *(["--upper", upper] if upper else [])]
    arguments = ["--outcomes", "8", *band, "--risk", "0", "--divergence", "kl"]
    if lower is None:
        assert "no epsilon reaches kl = 0" in refusal("tradeoff", *arguments)
        return
    found = record(run, *arguments)
    low, high = float(lower), float(upper or 6.6)  # with the others at 0.2, an outcome has no more
    assert (found["family"]["lower"], found["family"]["upper"]) == (low, high)
    (row,) = found["budgets"]
    assert row["optimal"] == pytest.approx(np.log(high / low))
    assert row["mollifier"] == pytest.approx(2 * max(np.log(high), -np.log(low)))


def test_upper_bounds_are_marked_and_exact_values_are_not(run: Run) -> None:
    loose = run("tradeoff", "--outcomes", "5", "--lower", "0.5", "--upper", "2", "--epsilon", "0.5")
    exact = run("tradeoff", "--outcomes", "6", "--lower", "0.5", "--upper", "2", "--epsilon", "0.5")
    assert "<= 0.2148" in loose.stdout
    assert "upper bounds" in loose.stdout
    assert "0.2148" in exact.stdout
    assert "<=" not in exact.stdout
    (row,) = record(run, "--outcomes", "5", "--lower", "0.5", "--upper", "2", "--epsilon", "0.5", "--divergence", "tv")[
        "risks"
    ]
    assert row["optimal"]["tight"] is False
    assert row["attained"] == pytest.approx(0.1933, abs=5e-5)
    assert row["mollifier"] == {"value": pytest.approx(0.1864, abs=5e-5), "tight": True}


def test_the_table_shows_both_mechanisms_and_their_ratio(run: Run) -> None:
    shown = run("tradeoff", "--outcomes", "10", "--epsilon", "1")
    lines = {line.split("  ")[0]: line.split() for line in shown.stdout.splitlines()}
    for name, divergence in (
        ("KL", "kl"),
        ("total variation", "tv"),
        ("squared Hellinger", "hellinger"),
        ("chi-squared", "chi2"),
    ):
        optimal = float(dc.minimax_risk(dc.Simplex(10), epsilon=1.0, divergence=divergence))
        mollifier = float(dc.MollifierSampler(dc.Simplex(10), epsilon=1.0).risk(divergence))
        assert lines[name][-3:] == [f"{optimal:.4f}", f"{mollifier:.4f}", f"{mollifier / optimal:.2f}"]


@pytest.mark.parametrize("epsilon", [("0.5",), ("0.1:3:4",)], ids=str)
@pytest.mark.parametrize("more", [(), ("--bracket",), ("--delta", "0.001")], ids=str)
def test_the_ratio_is_that_of_the_two_columns_before_it(run: Run, epsilon: tuple[str], more: tuple[str, ...]) -> None:
    """On five outcomes within 0.5 to 2 the optimal sampler's own worst case is neither the bound nor the bracket."""
    band = ("--outcomes", "5", "--lower", "0.5", "--upper", "2", "--epsilon", *epsilon)
    shown = run("tradeoff", *band, *more).stdout
    assert "ratio: mollifier / attained" in shown
    lines = [line.split() for line in shown.splitlines() if line.startswith(("KL", "total variation"))]
    assert len(lines) == 2 * (1 if ":" not in epsilon[0] else 4)
    for line in lines:
        attained, mollifier, ratio = map(float, line[-3:])
        if attained:
            assert ratio == pytest.approx(mollifier / attained, abs=0.02)
        else:
            assert (mollifier, ratio) == (0.0, 1.0)
    if epsilon == ("0.5",) and not more:
        total = next(line for line in lines if line[0] == "total")
        assert total[-4:] == ["0.2148", "0.1933", "0.1864", "0.96"]


def test_infinite_is_null_in_json_and_a_word_in_the_table(run: Run) -> None:
    arguments = ("--outcomes", "3", "--epsilon", "1", "--divergence", "reverse_kl")
    assert record(run, *arguments)["risks"][0]["optimal"]["value"] is None
    shown = run("tradeoff", *arguments)
    assert "infinite" in shown.stdout
    assert "no epsilon helps" in shown.stdout


@pytest.mark.parametrize("arguments", [("1", "1"), ("10", "1000"), ("10000000", "0.5"), ("2", "1e-6")])
def test_corners_have_values(run: Run, arguments: tuple[str, str]) -> None:
    outcomes, epsilon = arguments
    for row in record(run, "--outcomes", outcomes, "--epsilon", epsilon)["risks"]:
        assert 0.0 <= row["optimal"]["value"] <= row["mollifier"]["value"]
    assert run("tradeoff", "--outcomes", outcomes, "--epsilon", epsilon).exit_code == 0


def test_any_divergence_by_name(run: Run) -> None:
    names = ["Jensen-Shannon", "le_cam", "alpha:0.5", "hockey_stick:2"]
    rows = record(run, "--outcomes", "6", "--epsilon", "1", *(x for n in names for x in ("--divergence", n)))["risks"]
    assert [row["divergence"] for row in rows] == ["jensen_shannon", "le_cam", "alpha:0.5", "hockey_stick:2"]
    for row in rows:
        assert (
            row["optimal"]["value"] == dc.minimax_risk(dc.Simplex(6), epsilon=1.0, divergence=row["divergence"]).value
        )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--epsilon", "1"), "'--outcomes'"),
        (("--outcomes", "ten", "--epsilon", "1"), "'--outcomes'"),
        (("--outcomes", "0", "--epsilon", "1"), "outcomes = 0 is less than 1"),
        (("--outcomes", "10"), "--epsilon (what does it cost?) or --risk"),
        (("--outcomes", "10", "--epsilon", "nan"), "epsilon = nan is not in (0, inf)"),
        (("--outcomes", "10", "--epsilon", "inf"), "epsilon = inf is not in (0, inf)"),
        (("--outcomes", "10", "--epsilon", "-1"), "epsilon = -1 is not in (0, inf)"),
        (("--outcomes", "10", "--epsilon", "0"), "epsilon = 0 is not in (0, inf)"),
        (("--outcomes", "10", "--epsilon", "one"), "'one' is neither a number nor LOW:HIGH:COUNT"),
        (("--outcomes", "10", "--epsilon", "1:2"), "'1:2' is neither a number nor LOW:HIGH:COUNT"),
        (("--outcomes", "10", "--epsilon", "2:1:5"), "0 < LOW < HIGH"),
        (("--outcomes", "10", "--epsilon", "1:2:2.5"), "whole COUNT"),
        (("--outcomes", "10", "--epsilon", "1:2:nan"), "whole COUNT"),
        (("--outcomes", "10", "--epsilon", "1:2:inf"), "whole COUNT of 2 to 10,000"),
        (("--outcomes", "10", "--epsilon", "1:2:1e12"), "whole COUNT of 2 to 10,000"),
        (("--outcomes", "10", "--epsilon", "1", "--divergence", "distance"), "'distance' is not one of kl"),
        (("--outcomes", "10", "--risk", "nan"), "risk = nan is not in [0, inf)"),
        (("--outcomes", "10", "--risk", "0"), "no epsilon reaches kl = 0"),
        (("--outcomes", "10", "--epsilon", "1", "--lower", "2"), "no law satisfies 2 <= dP/dmu"),
        (("--outcomes", "10", "--epsilon", "1", "--upper", "-1"), "upper = -1 is not in (0, inf)"),
        (("--outcomes", "10", "--epsilon", "1:2:3", "--plot", "curve.bmp"), "does not end in .png, .svg, .pdf"),
        (("--outcomes", "10", "--epsilon", "1", "--plot", "curve.png"), "at least 2 values of epsilon"),
        (("--outcomes", "10", "--risk", "0.5", "--plot", "curve.png"), "give a range"),
        (("--outcomes", "10", "--epsilon", "1", "--no-such-option"), "--no-such-option"),
    ],
)
def test_mistakes_get_one_line(
    refusal: Refusal, arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refusal("tradeoff", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("suffix", wide([".png", ".svg", ".pdf"], [".svg"]))
def test_plot_writes_the_picture_and_makes_its_folder(run: Run, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / f"curve{suffix}"
    result = run("tradeoff", "--outcomes", "10", "--epsilon", "0.1:10:12", "--plot", str(path))
    assert result.exit_code == 0, result.output
    assert "Picture:" in result.stdout
    assert_picture(path)


def test_the_picture_has_the_bracket_that_was_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(dc.plots, "save", lambda figure, _: drawn.append(figure))
    band = ("--outcomes", "5", "--lower", "0.5", "--upper", "2", "--epsilon", "0.1:3:3", "--divergence", "tv")
    for more in ((), ("--bracket",)):
        assert run("tradeoff", *band, *more, "--plot", str(tmp_path / "curve.png")).exit_code == 0
    plain, asked = ([text.get_text() for text in figure.axes[0].texts] for figure in drawn)
    assert any("upper bound" in text.replace("\n", " ") for text in plain)
    assert not any("upper bound" in text for text in asked)
    assert any("between certified sides" in text for text in asked)


def test_a_place_that_cannot_be_written_is_one_line(refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    said = refusal("tradeoff", "--outcomes", "3", "--epsilon", "1:2:3", "--plot", str(tmp_path / "file" / "curve.png"))
    assert "file" in said


def test_other_promises_than_epsilon(run: Run, refusal: Refusal) -> None:
    terms = ("--outcomes", "10", "--epsilon", "1", "--risk", "0.3", "--divergence", "tv")
    found = record(run, *terms, "--delta", "0.01", "--nu", "1", "--nu", "0.5")
    family = dc.Simplex(10)
    assert found["delta"] == 0.01
    (row,) = found["risks"]
    expected = dc.minimax_risk(family, privacy=dc.Approximate(1.0, delta=0.01), divergence="tv")
    assert row["optimal"] == {"value": expected.value, "tight": True}
    assert row["mollifier"] == record(run, *terms)["risks"][0]["mollifier"]
    for each, nu in zip(found["gaussian"], (1.0, 0.5), strict=True):
        value = float(dc.minimax_risk(family, privacy=dc.Gaussian(nu), divergence="tv"))
        assert each == {"nu": nu, "divergence": "tv", "optimal": {"value": value, "tight": True}, "attained": value}
    (budget,) = found["budgets"]
    assert budget["optimal"] == dc.epsilon_for(family, divergence="tv", risk=0.3, delta=0.01)
    assert {"delta", "gaussian"}.isdisjoint(record(run, *terms))
    shown = run("tradeoff", *terms, "--delta", "0.01", "--nu", "1").stdout
    assert "no sampler with the same promise has a smaller worst case" in shown
    assert "delta = 1 is not in" in refusal("tradeoff", *terms, "--delta", "1")
    assert "nu = -1 is not in" in refusal("tradeoff", "--outcomes", "10", "--nu", "-1")
    assert "--plot draws curves of pure epsilon" in refusal("tradeoff", *terms, "--nu", "1", "--plot", "x.png")


def test_a_bracket_where_the_formula_is_only_a_bound(run: Run, refusal: Refusal) -> None:
    band = ("--outcomes", "5", "--lower", "0.5", "--upper", "2", "--epsilon", "0.5", "--divergence", "tv")
    (plain,), (asked,) = (record(run, *band, *more)["risks"] for more in ((), ("--bracket",)))
    assert "least" not in plain["optimal"]
    assert asked["optimal"]["least"] == pytest.approx(0.1764, abs=5e-5)
    assert asked["optimal"]["least"] <= asked["optimal"]["value"] < plain["optimal"]["value"]
    shown = run("tradeoff", *band, "--bracket").stdout
    assert "0.1764" in shown
    assert "certified from both sides" in shown.replace("\n", " ")
    assert "--bracket is for pure epsilon" in refusal("tradeoff", *band, "--bracket", "--delta", "1e-6")
