"""Several samples of each client: clients are counted, not samples, and intervals hold however those of one client hang together."""

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.estimation import population

MEAN = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
FAMILY = dc.Simplex(5)


def sure_clients(rng: np.random.Generator, n: int) -> Any:
    """Clients that each hold one outcome: their samples are as alike as can be."""
    return np.eye(5)[rng.choice(5, size=n, p=MEAN)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_intervals_cover_the_population_where_counting_samples_would_not() -> None:
    rng = np.random.default_rng(0)
    several = dc.LinearSampler(FAMILY, epsilon=12.0).several(4)
    covered, together, naive, tries = 0.0, 0.0, 0.0, 150
    for _ in range(tries):
        drawn = several.release(sure_clients(rng, 150), rng=rng)
        law = population(several, samples=drawn).law
        covered += float(((law.low <= MEAN) & (law.high >= MEAN)).mean()) / tries
        together += float(((law.all_low <= MEAN) & (law.all_high >= MEAN)).all()) / tries
        as_clients = population(several.share, samples=drawn.ravel()).law
        naive += float(((as_clients.low <= MEAN) & (as_clients.high >= MEAN))[:4].mean()) / tries
    assert covered >= 0.94
    assert together >= 0.92
    assert naive < 0.85


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_a_release_that_is_read_twice_tells_no_more() -> None:
    sampler = dc.LinearSampler(dc.Simplex(range(5)), epsilon=2.0)
    drawn = sampler.release(sure_clients(np.random.default_rng(1), 300), rng=np.random.default_rng(2))
    once, twice = population(sampler, samples=drawn), population(sampler, samples=np.stack([drawn, drawn], axis=1))
    assert (twice.clients, twice.samples, once.samples) == (300, 600, 300)
    for name in ("estimate", "low", "high", "all_low", "all_high"):
        assert getattr(twice.law, name) == pytest.approx(getattr(once.law, name), abs=2e-3)
    for statistic in ("mean", "median", "variance", "quantile:0.8", "at-most:2"):
        one, two = once.statistic(statistic), twice.statistic(statistic)
        assert (two.low, two.high) == pytest.approx((one.low, one.high), abs=0.02)


@pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")
def test_independent_samples_of_alike_clients_tell_nearly_what_as_many_clients_do() -> None:
    """Where all clients hold the same, the samples of one are no more alike than those of different ones."""
    rng = np.random.default_rng(3)
    sampler = dc.LinearSampler(dc.Simplex(range(5)), epsilon=2.0)
    drawn = np.stack([sampler.release(np.tile(MEAN, (400, 1)), rng=rng) for _ in range(3)], axis=1)
    rows, flat = population(sampler, samples=drawn), population(sampler, samples=drawn.ravel())
    assert rows.law.estimate == pytest.approx(flat.law.estimate, abs=1e-12)
    assert (rows.law.high - rows.law.low) == pytest.approx(flat.law.high - flat.law.low, rel=0.15)
    mean, same = rows.statistic("mean"), flat.statistic("mean")
    assert mean.estimate == pytest.approx(same.estimate)
    assert mean.high - mean.low == pytest.approx(same.high - same.low, rel=0.15)


def test_labels_shapes_and_mistakes() -> None:
    sampler = dc.LinearSampler(dc.Simplex(["a", "b"]), epsilon=1.0)
    found = population(sampler, samples=[["a", "b"], ["b", "b"], ["a", "a"]], clients=["x", "y", "z"])
    assert (found.clients, found.counts.tolist()) == (3, [3, 3])
    assert "6 samples" in repr(found)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"samples": [["a", "b"], ["b"]]}, "samples has rows of 1 to 2"),
        ({"samples": [["a", "b"], "b"]}, "samples has rows of 0 to 2"),
        ({"samples": [["a", "c"]]}, "'c'"),
        ({"samples": [["a", "b"]], "clients": ["x", "y"]}, "clients names 2 clients for 1 samples"),
        ({"samples": [["a", "b"]], "examples": [[0.5, 0.5]]}, "examples are for one sample of each client"),
    ]
    for arguments, says in wrong:
        with pytest.raises(dc.DiscreetError) as caught:
            population(sampler, **arguments)
        assert says in str(caught.value)
