"""J samples with a share of one budget each: what all of them together tell is within it, of the integers themselves."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.mechanisms import ComposedSampler
from discreet.privacy import Privacy
from discreet.release import TOTAL

NOTIONS = [
    dc.Pure(1.0),
    dc.Approximate(1.0, delta=1e-3),
    dc.Gaussian(0.7),
    dc.Functional([(0, 0.99), (0.3, 0.4), (0.4, 0.3), (0.99, 0), (1, 0)]),
]


def together(weights: Any, samples: int, epsilon: Fraction) -> Fraction:
    """sum (P^J - e^eps Q^J)_+ over every sequence of outcomes, in rationals, for two rows of integers."""
    first, second = ([Fraction(int(w), TOTAL) for w in row] for row in weights)
    return sum(
        (
            max(Fraction(0), math.prod(first[x] for x in places) - epsilon * math.prod(second[x] for x in places))
            for places in itertools.product(range(len(first)), repeat=samples)
        ),
        Fraction(0),
    )


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler])
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_all_sequences_of_the_integers_keep_the_notion(notion: Privacy, kind: Any) -> None:
    sampler = kind(dc.Simplex(3), privacy=notion)
    composed = ComposedSampler(sampler, samples=3)
    assert composed.privacy == notion
    weights = composed.share.weights(np.eye(3)[:2])
    for beta in (0.0, 0.2, 0.5, 1.0, 1.5):
        assert together(weights, 3, exp_lower(beta)) <= Fraction(notion.profile(beta)) + Fraction(1, 10**15)
    if not isinstance(notion, dc.Pure):  # and a share that is a little larger does not
        more = dc.OptimalSampler(dc.Simplex(3), epsilon=1.02 * composed.share.epsilon).weights(np.eye(3)[:2])
        betas = np.linspace(0.0, 3.5, 200)
        assert any(together(more, 3, exp_lower(float(b))) > Fraction(notion.profile(float(b))) for b in betas)


def test_shapes_labels_and_points() -> None:
    linear = dc.LinearSampler(dc.Simplex(["a", 1, 2.5]), epsilon=2.0)
    assert set(linear.release([0.5, 0.5, 0.0], size=20).tolist()) <= {"a", 1, 2.5}
    assert linear.release(np.eye(3), size=4).shape == (3, 4)
    line = dc.OptimalSampler(dc.GaussianMixtures(), epsilon=2.0)
    assert line.release(scipy.stats.norm(), size=3).shape == (3,)
    assert line.release([scipy.stats.norm()] * 2, size=3).shape == (2, 3)
    plane = dc.OptimalSampler(dc.GaussianMixtures(dim=2), epsilon=2.0, discretisation=dc.Cells(16))
    one = scipy.stats.multivariate_normal([0.0, 0.0])
    assert plane.release(one, size=3).shape == (3, 2)
    assert plane.release([one] * 4, size=3).shape == (4, 3, 2)


def test_a_mollifier_keeps_its_own_reference() -> None:
    sampler = dc.MollifierSampler(dc.Simplex(3), epsilon=1.0, reference=[0.2, 0.3, 0.5])
    composed = sampler.with_samples(2)
    assert isinstance(composed, ComposedSampler)
    assert composed.share == dc.MollifierSampler(dc.Simplex(3), epsilon=0.5, reference=[0.2, 0.3, 0.5])


def test_more_than_a_budget_can_be_split_into_is_refused() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(200), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="samples is more than 50,000"):
        sampler.with_samples(50_001)
    with pytest.raises(dc.DiscreetError, match="size is more than 50,000"):
        sampler.release(np.eye(200)[0], size=50_001)
    with pytest.raises(dc.DiscreetError, match="epsilon"):
        dc.LinearSampler(dc.Simplex(3), epsilon=1e-14).release([1, 0, 0], size=1000)
