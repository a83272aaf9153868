"""Who holds the public law releases it, to the last integer; and nobody fares worse than by the published linear mechanism."""

import math

import numpy as np
import pytest

import discreet as dc
from discreet.release import TOTAL


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_public_law_is_its_own_output(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(int(rng.integers(2, 12))))
    sampler = dc.OptimalSampler(dc.Preserving(q), epsilon=epsilon)
    assert sampler.output(q) == pytest.approx(q, rel=1e-12)
    assert np.abs(sampler.weights(q) - q * TOTAL).max() <= 1e-12 * TOTAL


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_nobody_fares_worse_than_by_the_published_mechanism(epsilon: float) -> None:
    """lambda P + (1 - lambda) q, lambda = (e^eps - 1) q_min/(1 + (e^eps - 1) q_min)."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        k = int(rng.integers(2, 9))
        q = rng.dirichlet(np.ones(k)) + 1e-3
        q /= q.sum()
        weight = math.expm1(epsilon) * q.min() / (1.0 + math.expm1(epsilon) * q.min())
        laws = np.vstack([np.eye(k), rng.dirichlet(np.full(k, 0.5), 50)])
        sampler = dc.OptimalSampler(dc.Preserving(q), epsilon=epsilon)
        for name in ("kl", "tv", "hellinger", "chi2"):
            f = dc.divergence(name)
            ours, theirs = (
                np.asarray(f(laws, sampler.output(laws))),
                np.asarray(f(laws, weight * laws + (1 - weight) * q)),
            )
            assert (ours <= theirs + 1e-9 * (1 + theirs)).all()
            assert float(sampler.risk(name)) == pytest.approx(ours.max(), rel=1e-9)
            assert ours.max() == pytest.approx(theirs.max(), rel=1e-9)


def test_labels_and_what_is_no_law() -> None:
    family = dc.Preserving({"a": 3, "b": 1})
    assert family.labels == ("a", "b")
    assert family == dc.Preserving([3, 1], labels=["a", "b"])
    with pytest.raises(dc.DiscreetError, match=r"weights\[1\] = 0 is not in"):
        dc.Preserving([1, 0])
