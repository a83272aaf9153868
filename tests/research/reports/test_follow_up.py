"""What the page of the follow-up says is what its records hold."""

from dataclasses import replace
from typing import Any

from discreet.research._reports._follow_up import (
    follow_up_findings,
    minimax_values_table,
    mixture_divergences_table,
    ordered_distances_table,
    published_numbers_table,
)
from discreet.research.experiments import Header, RecordedRun
from discreet.research.experiments._follow_up import (
    ClassAtBudget,
    FiniteClasses,
    MixtureClasses,
    OrderedSet,
    PlaneLaw,
    PointwiseComparison,
    WassersteinDistances,
)

SERVED = PointwiseComparison(projection=0.2, projection_mean=0.1, linear=0.4, linear_mean=0.2, worse=0, excess=-1e-3)
VALUES = {"kl": 0.24504, "tv": 0.34072, "hellinger": 0.12998}
CLASS = ClassAtBudget(
    lower=0.25, upper=4.0, weight=0.4, published_weight=0.4, tight=True, minimax=VALUES, published_minimax=VALUES,
    clients=50, pointwise={"kl": SERVED, "tv": SERVED, "hellinger": SERVED},
)  # fmt: skip
WIDE = replace(CLASS, weight=0.5, published_weight=0.25, published_minimax={**VALUES, "kl": 0.3})
FINITE = FiniteClasses("10/gaussian/1", "gaussian", 1.0, "1-Gaussian LDP", 10, {"local": CLASS, "wide": WIDE})
MIXTURE = MixtureClasses(
    "laplace/gaussian/1", "laplace", "mixtures", "gaussian", 1.0, "1-Gaussian LDP", {"local": CLASS}
)
PLANE = PlaneLaw("gaussian/local/linear", "local", "1.5-Gaussian LDP", "linear", 1.0633, {"kl": 0.0}, 2.0, (0.1,))
NEAR, FAR = WassersteinDistances(10.0, 30.0, 40.0), WassersteinDistances(20.0, 50.0, 90.0)
ORDERED = OrderedSet(
    unit="delays/1", set="delays", title="arrival delays", who="aircraft", measure="minutes", step=10.0, places=(0.0, 10.0), clients=5,
    epsilon=1.0, certified=40.0, distances={"transport": FAR, "optimal": FAR, "mollifier": NEAR, "laplace": FAR}, shown=(1.0, 0.0),
    shown_outputs={},
)  # fmt: skip
HEADER = Header("any", "anything", "0", None, False, {})


def said(**changed: Any) -> str:
    rows: dict[str, Any] = {
        "local_finite": FINITE,
        "local_mixtures": MIXTURE,
        "local_plane": PLANE,
        "ordered": ORDERED,
    } | changed
    runs: dict[str, RecordedRun[Any]] = {name: RecordedRun(HEADER, [row]) for name, row in rows.items()}
    return " ".join(f"{headline} {text}" for headline, text in follow_up_findings(runs))


def test_findings_come_from_the_records() -> None:
    text = said()
    assert "is never worse" in text
    assert "In 450 comparisons" in text
    assert "it is 0.2500, and 0.5000 is allowed. The worst KL is 0.30000 instead of 0.24504" in text
    assert "the weight 1.0633" in text
    assert "0.50 to 0.50 times" in text
    assert "smallest worst case in 0 of 1" in text  # of these made-up records
    assert "ε = 1: mollifier on 1 of 1 sets" in text


def test_a_client_that_is_served_worse_would_be_told_of() -> None:
    hurt = replace(MIXTURE, classes={"local": replace(CLASS, pointwise={"kl": replace(SERVED, worse=3, excess=0.01)})})
    assert "worse somewhere" in said(local_mixtures=hurt)
    assert "it is worse in 3" in said(local_mixtures=hurt)


def test_tables() -> None:
    assert minimax_values_table([FINITE], 10)[1][0][:4] == ["1-Gaussian LDP", "local", "0.24504", "0.24504"]
    assert minimax_values_table([FINITE], 20)[1] == []
    assert mixture_divergences_table([MIXTURE])[1] == [
        ["mixtures", "1-Gaussian LDP", "local", "0.40000", "0.20000", "0.20000", "0.10000", "0 of 150"]
    ]
    lines = published_numbers_table([FINITE], [MIXTURE])[1]
    assert ["10 outcomes, minimax", "1-Gaussian LDP", "local", "KL", "0.24504", "0.24504"] in lines
    assert ["largest of 50 mixtures, linear", "1-Gaussian LDP", "local", "KL", "0.0767", "0.40000"] in lines
    assert ordered_distances_table([ORDERED])[1][0][2:] == ["20 (90)", "20 (90)", "10 (40)", "20 (90)", "(40)"]
