"""Clients from a fifth of a cell to 20 cells wide are estimated as what they are, whatever kind of density they are given as."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.errors import UnresolvedWarning
from discreet.estimation import population
from discreet.estimation._counting import line_cells_of_sampler
from discreet.release import TOTAL
from tests.estimation.line_coverage import CELLS, KINDS, WIDTHS, coverage, least_of, settings
from tests.soaking import wide


@pytest.mark.parametrize(("kind", "family", "centre", "width"), settings())
def test_a_release_goes_by_the_client_s_own_masses(kind: str, family: Any, centre: float, width: float) -> None:
    """Of the linear mechanism what is drawn with, undone, is the client: no noise here, and no tolerance for a rule of quadrature."""
    given, below = KINDS[kind](centre, width)
    sampler = dc.LinearSampler(family, epsilon=6.0, discretisation=dc.Cells(CELLS))
    line, gamma = line_cells_of_sampler(sampler), sampler.constants.gamma
    law = np.asarray(sampler.weights(given), dtype=np.float64).ravel() / TOTAL
    found = ((law - (1.0 - gamma) * sampler.reference) / gamma)[line.order]
    truth = np.diff(below(line.edges))
    assert found == pytest.approx(truth / truth.sum(), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", wide([dc.LinearSampler, dc.OptimalSampler], [dc.LinearSampler]))
def test_intervals_hold_the_truth(kind: str, make: Any) -> None:
    for width in wide((WIDTHS[0], WIDTHS[2], WIDTHS[-1]), (WIDTHS[0],)):
        _, family, centre, _ = settings()[0]
        given, below = KINDS[kind](centre, width / CELLS)
        covered = coverage(make(family, epsilon=6.0, discretisation=dc.Cells(CELLS)), given, below, 20_000, 60, seed=3)
        assert covered.min() >= least_of(60)


def test_the_middle_bin_of_a_narrow_client() -> None:
    """A normal law 0.64 cells wide: by one node a cell the interval was [0.622, 0.638] for a share of 0.565."""
    family = dc.DensityBand(lambda x: np.ones(len(x)), box=(0.0, 1.0), lower=0.0, upper=45.0)
    known = stats.norm(0.42946, 0.01)
    for how in (dc.Cells(64), None):
        sampler = dc.LinearSampler(family, epsilon=6.0, discretisation=how)
        counts = np.rint(np.asarray(sampler.weights(known), dtype=np.float64).ravel() / TOTAL * 10**9).astype(np.int64)
        found = population(sampler, counts=counts)
        truth = np.diff(known.cdf(found.domain.edges))
        assert ((found.law.low <= truth) & (truth <= found.law.high)).all()
        assert (found.law.high - found.law.low).max() < 1e-3


def test_a_function_that_nodes_cannot_follow_is_said_to_be_one() -> None:
    sampler = dc.OptimalSampler(
        dc.DensityBand(stats.uniform(), lower=0.0, upper=3.0), epsilon=1.0, discretisation=dc.Cells(64)
    )
    with pytest.warns(UnresolvedWarning, match="changes faster than nodes can follow"):
        sampler.release(lambda x: 1.0 + np.sin(1e7 * x))
