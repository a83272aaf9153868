from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.research._flights import FlightRelease, Guarantee, release_flights
from discreet.research.data import Logbooks, logbooks
from discreet.research.experiments import PAPER_DIVERGENCES


@pytest.fixture(scope="module")
def books() -> Logbooks:
    return logbooks()


@pytest.fixture(scope="module", params=[0.5, 2.0, 6.0])
def run(books: Logbooks, request: pytest.FixtureRequest) -> FlightRelease:
    return release_flights(books, epsilon=request.param)


@pytest.mark.slow
def test_no_two_real_clients_are_told_apart_by_more_than_e_to_the_epsilon(run: FlightRelease, books: Logbooks) -> None:
    """Definition 2.1 on the weights that are really drawn with, between all pairs, in integers."""
    family = dc.Simplex(books.outcomes)
    weights = dc.OptimalSampler(family, epsilon=run.epsilon).weights(family.law(counts=books.counts))
    bound = exp_lower(run.epsilon)
    for column in weights.T.tolist():
        assert max(column) * bound.denominator <= min(column) * bound.numerator
    assert run.guarantee.holds
    assert run.guarantee.observed_ratio == max(Fraction(max(c), min(c)) for c in weights.T.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("measure", PAPER_DIVERGENCES)
def test_no_client_costs_more_than_the_worst_case(run: FlightRelease, measure: str) -> None:
    """Section 2.2: the risk bounds every real client; single-destination aircraft attain it."""
    for mechanism in ("optimal", "linear", "mollifier"):
        cost = run.mechanism_cost(mechanism, measure)
        assert cost.cost_summary.worst == pytest.approx(cost.worst_case, rel=1e-12)
    assert run.mechanism_cost("optimal", measure).worst_case < run.mechanism_cost("mollifier", measure).worst_case


@pytest.mark.slow
@pytest.mark.parametrize("measure", PAPER_DIVERGENCES)
def test_the_linear_mechanism_is_better_for_nobody(run: FlightRelease, measure: str) -> None:
    """Section 3.3: both are minimax-optimal, the projection is at least as good for each client."""
    optimal, linear = (
        run.mechanism_cost("optimal", measure).divergences,
        run.mechanism_cost("linear", measure).divergences,
    )
    assert (optimal <= linear + 1e-12).all()
    assert (optimal < linear - 1e-6).any()
    assert run.count_clients_closer_than_optimal("linear", measure) == 0


def test_the_mollifier_is_better_for_some_and_the_count_says_so(run: FlightRelease) -> None:
    rival, ours = run.mechanism_cost("mollifier", "kl").divergences, run.mechanism_cost("optimal", "kl").divergences
    counted = sum(1 for a, b in zip(rival.tolist(), ours.tolist(), strict=True) if a < b - 1e-12)
    assert run.count_clients_closer_than_optimal("mollifier", "kl") == counted
    assert 0 < counted < len(ours)


def test_each_aircraft_releases_one_public_destination(run: FlightRelease, books: Logbooks) -> None:
    assert len(run.released_destinations) == len(books.clients)
    assert set(run.released_destinations.tolist()) <= set(books.outcomes)
    flown = [
        books.counts[i, books.outcomes.index(where)] > 0 for i, where in enumerate(run.released_destinations.tolist())
    ]
    assert run.own_count == sum(flown)
    shown = books.clients.index(run.client.name)
    assert run.client.released_destination == run.released_destinations[shown]
    assert run.client.records == books.counts[shown].sum()


@pytest.mark.slow
def test_two_runs_draw_afresh(books: Logbooks) -> None:
    """From the operating system's entropy: 4,043 equal draws would have a chance below 10^-1000."""
    first, second = (release_flights(books, epsilon=2.0).released_destinations for _ in range(2))
    assert (first != second).any()


def test_releases_follow_the_laws(books: Logbooks) -> None:
    """The number of own destinations released is within 6 standard deviations of what the output laws say."""
    run = release_flights(books, epsilon=4.0)
    family = dc.Simplex(books.outcomes)
    output = dc.OptimalSampler(family, epsilon=4.0).output(family.law(counts=books.counts))
    chances = np.where(books.counts > 0, output, 0.0).sum(axis=1)
    assert abs(run.own_count - chances.sum()) <= 6 * np.sqrt((chances * (1 - chances)).sum())


def test_a_chosen_aircraft_is_shown(books: Logbooks) -> None:
    assert release_flights(books, epsilon=1.0, aircraft="N14228").client.name == "N14228"
    with pytest.raises(dc.DiscreetError, match="aircraft = 'N0'"):
        release_flights(books, epsilon=1.0, aircraft="N0")


def test_a_guarantee_that_fails_says_so() -> None:
    good = Guarantee(
        lower=10, upper=27, total=100, possible=Fraction(27, 10), observed_ratio=Fraction(2), bound=exp_lower(1.0)
    )
    assert good.holds
    assert not replace(good, possible=Fraction(28, 10)).holds
    assert not replace(good, observed_ratio=Fraction(28, 10)).holds
