"""The local class around a public law: the band that it is, on outcomes and on continuous spaces, and what is no such class."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import discreet as dc
from discreet.errors import DiscreetError


def test_on_outcomes_it_is_the_band() -> None:
    weights = [4.0, 3.0, 2.0, 1.0]
    assert dc.Near(weights, factor=2.0) == dc.Band(weights, lower=0.5, upper=2.0)
    by_label = dict(zip("nsew", weights, strict=True))
    assert dc.Near(by_label, factor=2.0) == dc.Band(weights, lower=0.5, upper=2.0, labels=list("nsew"))
    assert dc.Near(weights, factor=2.0, labels=list("nsew")) == dc.Near(by_label, factor=2.0)


def test_members_are_those_within_the_factor() -> None:
    family = dc.Near([1, 1, 2], factor=1.5)
    assert isinstance(family, dc.Band)
    assert family.contains([0.25 * 1.4, 0.25 / 1.4, 1 - 0.25 * 1.4 - 0.25 / 1.4])
    assert not family.contains([0.25 * 1.6, 0.25 / 1.5, 1 - 0.25 * 1.6 - 0.25 / 1.5])


@pytest.mark.parametrize("factor", [1.1, 3.0, 40.0])
def test_densities_need_not_be_normalised(factor: float) -> None:
    """A truncated distribution and a function times anything: the class is relative to the law that they stand for."""
    families: list[Any] = [
        dc.Near(scipy.stats.norm(), factor=factor),
        dc.Near(scipy.stats.norm(), factor=factor, box=(-1.0, 2.0)),
        dc.Near(lambda x: 17.0 * np.exp(-np.abs(x)), factor=factor, box=(-3.0, 3.0)),
        dc.Near(dc.Mixture([0.5, 0.5], [[-1.0], [1.0]]), factor=factor),
        dc.Near(dc.families.Tabulated([[0.0, 1.0, 3.0]], [2.0, 0.5]), factor=factor),
    ]
    for family in families:
        assert isinstance(family, dc.DensityBand)
        assert family.bounds.lower == pytest.approx(1.0 / factor, rel=1e-12)
        assert family.bounds.upper == pytest.approx(factor, rel=1e-12)
        assert family.bounds.alpha == pytest.approx(1.0 / (factor + 1.0), rel=1e-12)


def test_in_a_hundred_dimensions() -> None:
    family = dc.Near(scipy.stats.multivariate_normal(np.zeros(100)), factor=3.0)
    assert (family.bounds.lower, family.bounds.upper) == pytest.approx((1 / 3, 3.0), rel=1e-14)


def test_a_factor_whose_square_is_within_the_budget_costs_nothing() -> None:
    for P0 in ([3, 2, 2, 1], scipy.stats.norm()):
        near = dc.Near(P0, factor=1.6)
        assert dc.OptimalSampler(near, epsilon=2 * np.log(1.6) + 1e-9).identity
        assert not dc.OptimalSampler(dc.Near([1] * 6, factor=1.6), epsilon=2 * np.log(1.6) - 1e-9).identity


BAD: list[tuple[Any, str]] = [
    (lambda: dc.Near([1, 2], factor=1.0), r"factor = 1 is not in \(1, inf\)"),
    (lambda: dc.Near([1, 2], factor=0.5), r"factor = 0.5 is not in \(1, inf\)"),
    (lambda: dc.Near([1, 2], factor=float("inf")), "factor = inf is not in"),
    (lambda: dc.Near([1, 2], factor=float("nan")), "factor = nan is not in"),
    (lambda: dc.Near([1, 0], factor=2.0), r"weights\[1\] = 0 is not in"),
    (lambda: dc.Near([1, 2], factor=2.0, box=(0, 1)), "box = .* is for densities"),
    (lambda: dc.Near(scipy.stats.norm(), factor=2.0, labels=["a"]), "labels are for finitely many outcomes"),
    (lambda: dc.Near(np.cos, factor=2.0), "box is missing"),
    (lambda: dc.Near("abc", factor=2.0), "weights"),
    (
        lambda: dc.Near(scipy.stats.poisson(3.0), factor=2.0),
        r"a distribution on whole numbers.*such as P0.pmf\(range\(20\)\)",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_no_local_class_is_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        wrong()
