"""Bad input: one clear error each, before anything is drawn, whichever way the client is released."""

import math
from typing import Any, cast

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from tests.mechanisms.continuous.clients import interval_family

INTERVAL = interval_family()
PLANE = dc.GaussianMixtures(2)

BAD_CLIENTS: dict[str, tuple[Any, Any, str]] = {
    "NaN": (INTERVAL, lambda x: np.where(x > 0, np.nan, 1.0), r"p\(.*\) = nan is not a number"),
    "negative": (INTERVAL, lambda x: np.where(x > 0, -1.0, 1.0), r"p\(.*\) = -1 is negative"),
    "infinite": (INTERVAL, lambda x: np.where(x > 0, np.inf, 1.0), r"p\(.*\) = inf is infinite"),
    "wrong shape": (INTERVAL, lambda x: np.ones((len(x), 2)), "it must give one number for each point"),
    "one number for all": (INTERVAL, lambda x: 1.0, "it must give one number for each point"),
    "not vectorised": (INTERVAL, lambda x: 1.0 if x > 0 else 2.0, "write it with numpy"),
    "zero mass": (INTERVAL, stats.uniform(10.0, 1.0), "zero mass"),
    "one dimension too few": (PLANE, stats.norm(), "dimension 1, the family lives in dimension 2"),
    "one dimension too many": (
        INTERVAL,
        stats.multivariate_normal([0.0, 0.0]),
        "dimension 2, the family lives in dimension 1",
    ),
    "mixture of another dimension": (PLANE, dc.Mixture([1.0], [0.0]), "dimension 1, the family lives in dimension 2"),
    "records": (INTERVAL, np.array([0.1, 0.2]), r"family\.law\(records="),
    "numbers": (INTERVAL, [0.1, 0.2], r"p\[0\] = float is not a density"),
    "nobody": (INTERVAL, [], "empty list of clients"),
    "one of many": (INTERVAL, [stats.norm(), lambda x: -x], r"p\[1\]\(.*\) = .* is negative"),
}


@pytest.mark.parametrize("what", BAD_CLIENTS)
@pytest.mark.parametrize("discretisation", [None, dc.Points(100, seed=1)], ids=["cells", "points"])
@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler])
def test_bad_clients(what: str, discretisation: Any, kind: Any) -> None:
    family, p, message = BAD_CLIENTS[what]
    sampler = kind(family, epsilon=1.0, discretisation=discretisation)
    if what == "zero mass" and isinstance(
        discretisation, dc.Points
    ):  # not bad input: chance, which must not stop a release
        with pytest.warns(dc.OutsideFamilyWarning, match="a draw of the reference"):
            sampler.release(p)
        return
    with pytest.raises(dc.DiscreetError, match=message):
        sampler.release(p)
    if discretisation is None:
        with pytest.raises(dc.DiscreetError, match=message):
            sampler.output(p)
        with pytest.raises(dc.DiscreetError, match=message):
            sampler.weights(p)


def ones(x: Any) -> Any:
    return np.ones(len(x))


UNIT = [(0.0, 1.0)]
LINE = [(-math.inf, math.inf)]
BAD_FAMILIES: dict[str, tuple[Any, str]] = {
    "NaN": (
        lambda: dc.DensityBand(lambda x: x * np.nan, UNIT, lower=0, upper=2),
        r"density\(.*\) = nan is not a number",
    ),
    "negative": (lambda: dc.DensityBand(lambda x: x - 0.5, UNIT, lower=0, upper=2), "is negative"),
    "shape": (lambda: dc.DensityBand(lambda x: np.ones(3), UNIT, lower=0, upper=2), "one number for each point"),
    "zero": (lambda: dc.DensityBand(lambda x: 0.0 * x, UNIT, lower=0, upper=2), "zero mass in box"),
    "pole": (lambda: dc.DensityBand(lambda x: 1.0 / x, UNIT, lower=0, upper=2), "does not seem to be integrable"),
    "flat line": (lambda: dc.DensityBand(ones, LINE, lower=0, upper=2), "does not seem to be integrable"),
    "heavy tail": (lambda: dc.DensityBand(lambda x: 1 / (1 + np.abs(x)), LINE, lower=0, upper=2), "integrable"),
    "flat plane": (lambda: dc.DensityBand(ones, LINE * 2, lower=0, upper=2), "does not seem to be integrable"),
    "c1 > c2": (lambda: dc.DensityBand(ones, UNIT, lower=2.0, upper=0.5), "lower = 2 exceeds upper = 0.5"),
    "c1 = c2": (lambda: dc.DensityBand(ones, UNIT, lower=0.5, upper=0.5), "no law satisfies"),
    "c1 > 1": (lambda: dc.DensityBand(ones, UNIT, lower=1.5, upper=2.0), "no law satisfies"),
    "c2 = 1": (lambda: dc.DensityBand(stats.multivariate_normal(np.zeros(5)), lower=0.5, upper=1), "reference alone"),
    "c2 < 1/mass": (lambda: dc.DensityBand(ones, [(0.0, 4.0)], lower=0, upper=0.2), "take lower < 0.25 < upper"),
    "no box": (lambda: dc.DensityBand(ones, lower=0, upper=2), "box is missing"),
    "box order": (lambda: dc.GaussianMixtures(box=(4.0, -4.0)), "every low must be less than its high"),
    "box shape": (lambda: dc.GaussianMixtures(2, box=[(0.0, 1.0)] * 3), r"one \(low, high\) for each of the 2 axes"),
    "box far away": (lambda: dc.GaussianMixtures(box=(40.0, 50.0)), "almost nothing"),
    "box in 4D": (lambda: dc.GaussianMixtures(4, box=(-1.0, 1.0)), "up to dimension 3"),
    "function in 6D": (lambda: dc.DensityBand(ones, UNIT * 6, lower=0, upper=2), "draw from itself"),
    "dim": (lambda: dc.GaussianMixtures(0), "dim = 0 is less than 1"),
    "radius": (lambda: dc.GaussianMixtures(radius=math.nan), r"radius = nan is not in \(0, inf\)"),
    "scale": (lambda: dc.LaplaceMixtures(scale=-1.0), r"scale = -1 is not in \(0, inf\)"),
    "wide": (lambda: dc.LaplaceMixtures(radius=1e4), "would overflow"),
    "too many dimensions": (lambda: dc.GaussianMixtures(100_000, radius=10.0), "too wide to be useful"),
    "table": (lambda: dc.families.Tabulated([0.0, 1.0], [1.0, 2.0, 3.0]), "one value for each point, or edges"),
    "table order": (lambda: dc.families.Tabulated([1.0, 0.0], [1.0, 2.0]), "increasing"),
    "table negative": (lambda: dc.families.Tabulated([0.0, 1.0], [1.0, -2.0]), r"values\[1\] = -2"),
    "weights": (lambda: dc.Mixture([0.0, 0.0], [0.0, 1.0]), "all zero"),
    "weights negative": (lambda: dc.Mixture([1.0, -1.0], [0.0, 1.0]), r"weights\[1\] = -1 is negative"),
    "means": (lambda: dc.Mixture([1.0], [0.0, 1.0]), "means has shape"),
    "scales": (lambda: dc.Mixture([1.0], [0.0], 0.0), "scales = 0.0 is not in"),
    "kernel": (lambda: dc.Mixture([1.0], [0.0], kernel="cauchy"), "gaussian, laplace"),
    "centre": (lambda: INTERVAL.mixture([1.0], [1.5]), "allows 1 in dimension 1"),
    "empty records": (lambda: INTERVAL.law(records=[]), "records is empty"),
    "record outside": (lambda: INTERVAL.law(records=[0.0, 5.0]), r"records\[1\] = 5 is outside"),
    "record NaN": (lambda: INTERVAL.law(records=[math.nan]), r"records\[0\] = nan is outside"),
    "record far away": (lambda: PLANE.law(records=[[0.0, 1e300]]), r"records\[0\] = \[0, 1e\+300\] is outside"),
    "no fit": (lambda: INTERVAL.law(records=[0.0], fit=80.0), "fit = 80.0 is not a fit"),  # type: ignore[arg-type]
    "bins": (lambda: dc.families.HistogramFit(math.nan), "bins = nan"),  # type: ignore[arg-type]
    "bandwidth": (lambda: dc.families.KernelFit(-1.0), "bandwidth = -1"),
    "components": (lambda: dc.families.MixtureFit(0), "components = 0"),
    "radius too long": (lambda: dc.GaussianMixtures(radius=1e300), "radius = 1e\\+300 is not in .*other units"),
    "scale too short": (lambda: dc.Mixture([1.0], [0.0], 1e-300), "other units"),
    "box too long": (lambda: dc.GaussianMixtures(box=(0.0, 1e300)), "other units"),
    "box of almost nothing": (lambda: dc.LaplaceMixtures(3, radius=700.0, box=(0.0, 700.0)), "c2 = e.* would overflow"),
    "cells": (lambda: INTERVAL.cells(0), "cells = 0"),
    "too many cells": (lambda: INTERVAL.cells(1e300), "cells = 1e\\+300 is not a whole number"),  # type: ignore[arg-type]
    "table without axes": (lambda: dc.families.Tabulated([], [1.0]), "axes"),
    "point": (lambda: INTERVAL.pdf([0.0, math.nan]), "x holds nan"),
}


@pytest.mark.parametrize("what", BAD_FAMILIES)
def test_bad_families_and_laws(what: str) -> None:
    make, message = BAD_FAMILIES[what]
    with pytest.raises(dc.DiscreetError, match=message):
        make()


BAD_SAMPLERS: dict[str, tuple[Any, str]] = {
    "how": (lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation="cells"), "Cells"),  # type: ignore[arg-type]
    "how on a simplex": (
        lambda: dc.OptimalSampler(dc.Simplex(3), epsilon=1.0, discretisation=dc.Cells()),
        "continuous families",
    ),
    "cells in 5D": (
        lambda: dc.OptimalSampler(dc.GaussianMixtures(5), epsilon=1.0, discretisation=dc.Cells()).lattice,
        "cells are for dimension at most 3",
    ),
    "weights of a density": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Density()).weights(stats.norm()),
        "releases nothing",
    ),
    "release of a density": (
        lambda: dc.LinearSampler(INTERVAL, epsilon=1.0, discretisation=dc.Density()).release(stats.norm()),
        r"releases nothing.*discretisation=Cells",
    ),
    "tolerances": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1e-6, discretisation=dc.Density()).constants,
        "leaves nothing",
    ),
    "reference of the mollifier": (
        lambda: dc.MollifierSampler(INTERVAL, epsilon=1.0, reference=[0.5, 0.5]),
        "reference = list is not a density",
    ),
    "fresh points by number": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Points(10)).release_number(stats.norm()),
        "only the client knows its points",
    ),
    "numbers of a density": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Density()).release_number(stats.norm()),
        "releases nothing",
    ),
    "points of a density": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=dc.Density()).points(0),
        "nothing",
    ),
    "number too large": (lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).points(10**9), "between 0 and"),
    "number not whole": (lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).points([1, 0.5]), "holds 0.5"),
    "number not a number": (lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).points("one"), "numbers is not an array"),
    "numbers of outcomes": (lambda: dc.OptimalSampler(dc.Simplex(3), epsilon=1.0).points(3), "between 0 and 2"),
    "seed for a generator": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).points(0, rng=cast(Any, 7)),
        "rng = 7 is not",
    ),
    "seed of a sample": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).output(stats.norm()).sample(3, rng=7),
        "rng = 7 is not",
    ),
    "count": (lambda: dc.Points(1), "count = 1 is less than 2"),
    "delta": (lambda: dc.Density(delta1=1.0), r"delta1 = 1 is not in \[0, 1\)"),
    "sample of many": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).output([stats.norm()]).sample(3),
        "ask for the output of one",
    ),
    "many as one": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).output(
            dc.OptimalSampler(INTERVAL, epsilon=1.0).output([stats.norm(), stats.norm()])
        ),
        "ask for the output of one",
    ),
    "cost of a density": (
        lambda: dc.OptimalSampler(INTERVAL, epsilon=1.0).estimation_cost(stats.norm(), records=5),
        "needs a histogram",
    ),
}


@pytest.mark.parametrize("what", BAD_SAMPLERS)
def test_bad_samplers_and_uses(what: str) -> None:
    use, message = BAD_SAMPLERS[what]
    with pytest.raises(dc.DiscreetError, match=message):
        use()


@pytest.mark.parametrize("discretisation", [dc.Cells(50), dc.Points(2000, seed=0)])
def test_outside_the_family(discretisation: Any) -> None:
    """Told, but private, by the samplers that project; refused by the one whose law it would bend."""
    stranger = stats.norm(3.0, 0.3)
    with pytest.warns(dc.OutsideFamilyWarning, match="equally private"):
        dc.OptimalSampler(INTERVAL, epsilon=1.0, discretisation=discretisation).release(stranger)
    with pytest.raises(dc.OutsideFamilyError, match="nearest_member"):
        dc.LinearSampler(INTERVAL, epsilon=1.0, discretisation=discretisation).release(stranger)
    assert (
        -4.0
        <= dc.LinearSampler(INTERVAL, epsilon=1.0, discretisation=discretisation).release(
            dc.mechanisms.nearest_member(INTERVAL, stranger)
        )
        <= 4.0
    )


def test_the_warning_points_at_the_callers_line() -> None:
    with pytest.warns(dc.OutsideFamilyWarning) as caught:
        dc.OptimalSampler(INTERVAL, epsilon=1.0).release(stats.norm(3.0, 0.3))
    assert caught[0].filename == __file__


def test_points_of_a_small_box_are_drawn_from_it() -> None:
    """One try in ten million on R^3 would lie in this box."""
    family = dc.GaussianMixtures(3, radius=17.0, scale=3.0, box=(0.0, 0.1))
    x = family.draw(2000, np.random.default_rng(0))
    assert ((x >= 0.0) & (x <= 0.1)).all()
    assert np.abs(x.mean(axis=0) - 0.05).max() < 0.004  # the reference is flat there
    wide = dc.GaussianMixtures(2, box=[(0.0, 3.0), (-1.0, 2.0)])  # both ways of drawing, one law
    free = wide._draw_on_whole_space(200_000, np.random.default_rng(1))
    free = free[wide._points_are_inside_box(free)]
    boxed = wide.draw(60_000, np.random.default_rng(2))
    assert np.abs(free.mean(axis=0) - boxed.mean(axis=0)).max() < 0.02
    assert np.abs(free.std(axis=0) - boxed.std(axis=0)).max() < 0.02


@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler])
def test_clients_on_the_whole_line_need_no_warnings(kind: Any) -> None:
    """Far out the reference is 0 in floating point, and so is the client."""
    family = dc.DensityBand(stats.norm(), lower=0.0, upper=1.5)
    law = kind(family, epsilon=1.0).output([stats.norm(0.0, 0.8), stats.norm()])
    assert np.isfinite(law.divergence("kl")).all()


def test_a_client_that_sits_where_the_reference_does_not_is_told() -> None:
    family = dc.DensityBand(lambda x: np.exp(-x), (0.0, 1400.0), lower=0.0, upper=4.0)
    with pytest.raises(dc.DiscreetError, match="where the reference has almost none"):
        dc.OptimalSampler(family, epsilon=1.0).output(lambda x: np.ones(len(x)))


class Own:
    """Somebody's own law, with the method that the library's laws have."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def log_density(self, x: Any) -> Any:
        return self._value(np.asarray(x).reshape(-1))


@pytest.mark.parametrize(("value", "message"), [
    (lambda x: x * np.nan, r"p\.log_density\(.*\) = nan is not a number"),
    (lambda x: x + np.inf, r"p\.log_density\(.*\) = inf is infinite"),
    (lambda x: 1.0, "one number for each point"),
    (lambda x: "many", "write it with numpy"),
])  # fmt: skip
def test_laws_of_ones_own_are_checked_as_functions_are(value: Any, message: str) -> None:
    sampler = dc.OptimalSampler(INTERVAL, epsilon=1.0)
    bad: Any = Own(value)
    good: Any = Own(lambda x: -0.5 * np.square(x))
    for use in (sampler.release, sampler.output, sampler.weights):
        with pytest.raises(dc.DiscreetError, match=message):
            use(bad)
    assert -4.0 <= sampler.release(good) <= 4.0


@pytest.mark.parametrize("discretisation", [dc.Cells(30), dc.Points(30, seed=1)], ids=str)
def test_a_function_that_works_in_place_harms_nobody(discretisation: Any) -> None:
    """It is given points of its own: neither it nor the next client finds them changed."""

    def in_place(x: Any) -> Any:
        x -= 0.5
        return np.exp(-0.5 * np.square(x, out=x), out=x)

    sampler = dc.OptimalSampler(dc.GaussianMixtures(box=(-4.0, 4.0)), epsilon=1.0, discretisation=discretisation)
    clients = [lambda x: np.exp(-0.5 * np.square(x - 0.5)), in_place, lambda x: np.exp(-0.5 * np.square(x - 0.5))]
    first, second, third = sampler.weights(clients).tolist()
    assert first == second == third
    assert sampler.weights(in_place).tolist() == first


def test_values_that_are_no_real_numbers_are_refused() -> None:
    line = dc.GaussianMixtures(1, box=(-4.0, 4.0))
    sampler = dc.OptimalSampler(line, epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="its values are complex"):
        sampler.output(lambda x: np.exp(-(x**2)) * (1.0 + 1.0j))
    with pytest.raises(dc.DiscreetError, match="neither a density nor a list of numbers"):
        dc.design(line, epsilon=1.0, clients=[[10**400]], cells=8)
    ragged: Any = [[1, [2]]]
    with pytest.raises(dc.DiscreetError, match=r"is not a list of \(low, high\) pairs"):
        dc.DensityBand(np.ones_like, ragged, lower=0.0, upper=3.0)
