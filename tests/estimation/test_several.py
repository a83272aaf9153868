"""Which way to spend a budget serves what: the numbers are what samplers really do, and the advice follows from them."""

import math
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.estimation import exact_variance, rounds_cost, ways_to_spend


def test_costs_are_those_of_the_samplers() -> None:
    family = dc.Simplex(4)
    laws = np.random.default_rng(0).dirichlet([0.5] * 4, 30)
    found = ways_to_spend(family, samples=3, epsilon=2.0, clients=500, examples=laws)
    single, joint, product, composed = found.ways
    tv = dc.divergence("tv")
    several = dc.JointSampler(family, samples=3, epsilon=2.0)
    share = dc.OptimalSampler(family, epsilon=2.0 / 3).output(laws)
    assert single.each == pytest.approx(float(np.mean(tv(laws, dc.OptimalSampler(family, epsilon=2.0).output(laws)))))
    assert joint.each == pytest.approx(float(np.mean(tv(laws, several.output_of_each(laws)))))
    assert joint.together == pytest.approx(float(np.mean(tv(several.laws(laws), several.output(laws)))))
    assert composed.each == pytest.approx(float(np.mean(tv(laws, share))))
    assert composed.together == pytest.approx(float(np.mean(tv(several.laws(laws), several.multisets.laws(share)))))
    assert joint.together is not None
    assert composed.together is not None
    assert joint.together < composed.together
    around = dc.JointSampler(family, samples=3, epsilon=2.0, around="product")
    assert product.each == pytest.approx(float(np.mean(tv(laws, around.output_of_each(laws)))))
    assert product.together == pytest.approx(float(np.mean(tv(around.laws(laws), around.output(laws)))))
    assert [found.best(purpose).name for purpose in ("each", "together", "population")] == [
        "single",
        "product",  # on average over spread-out clients; at worst the other one
        "single",
    ]
    assert ways_to_spend(family, samples=3, epsilon=2.0, clients=500).best("together").name == "joint"


@pytest.mark.parametrize(("k", "samples", "epsilon"), [(2, 2, 0.5), (20, 10, 4.0), (10, 3, 2.0)])
def test_one_sample_at_the_whole_budget_knows_the_population_best(k: int, samples: int, epsilon: float) -> None:
    """k = 20, total 4, ten samples: an error of 0.72 against 0.08."""
    found = ways_to_spend(dc.Simplex(k), samples=samples, epsilon=epsilon, clients=1000)
    costs = {way.name: way.population for way in found.ways}
    assert found.best("population").name == "single"
    assert costs["single"] is not None
    assert costs["composed"] is not None
    assert costs["single"] < costs["composed"]
    assert found.worst


def test_rounds_cost_what_the_variance_says() -> None:
    """The standard error of all rounds against that of one sample at their sum, for clients like the reference."""
    family = dc.Simplex(20)
    each, whole = dc.LinearSampler(family, epsilon=0.4), dc.LinearSampler(family, epsilon=4.0)
    clients, phi = np.full((100, 20), 1 / 20), np.eye(20)[0]
    of_ten, of_one = exact_variance(each, clients, phi) / 10, exact_variance(whole, clients, phi)
    found = rounds_cost(dc.Agreement.of(each, rounds=10))
    assert found is not None
    assert found.factor == pytest.approx(math.sqrt(of_ten / of_one))
    assert found.factor > 9
    assert str(found).startswith("10 rounds spend 4-LDP together; one sample of each client at that would estimate")


def test_one_round_has_nothing_to_be_compared_with() -> None:
    assert rounds_cost(dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0))) is None
    band = dc.Agreement.of(dc.OptimalSampler(dc.Band([3, 2, 1], lower=0.5, upper=1.5), epsilon=0.5), rounds=4)
    gaussian = dc.Agreement.of(dc.LinearSampler(dc.Simplex(9), privacy=dc.Gaussian(0.5)), rounds=4)
    assert getattr(rounds_cost(band), "factor", 2.0) > 1.0
    found = rounds_cost(gaussian)
    assert found is not None
    assert found.together == dc.Gaussian(1.0)


def test_mistakes_are_named() -> None:
    good: dict[str, Any] = {"family": dc.Simplex(3), "samples": 2, "epsilon": 1.0, "clients": 10}
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"samples": 1}, "samples = 1 is less than 2"),
        ({"samples": 2.0}, "samples = 2.0 is not a whole number"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"clients": 0}, "clients = 0"),
        ({"family": dc.Band([2, 1], lower=0, upper=1.5)}, "is not a Simplex"),
        ({"examples": [[1.0, 1.0, 0.0]]}, "sums to 2"),
    ]
    for changed, says in mistakes:
        arguments = {**good, **changed}
        with pytest.raises(dc.DiscreetError) as caught:
            ways_to_spend(arguments.pop("family"), **arguments)
        assert says in str(caught.value)
    with pytest.raises(dc.DiscreetError, match="purpose = 'fun' is not one of"):
        ways_to_spend(dc.Simplex(3), samples=2, epsilon=1.0, clients=10).best("fun")
