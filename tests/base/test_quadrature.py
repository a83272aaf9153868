"""Panels: splitting keeps the whole, polynomials are integrated exactly, the error estimate is honest about kinks and jumps."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet._base.quadrature import Panels, subdivide_breaks
from discreet.families._integration import Cartesian, Chart, HalfLine, Identity, Polar, Spherical, WholeLine
from tests.soaking import examples

EDGES = [np.array([0.0, 0.3, 1.0]), np.array([-1.0, 0.0, 2.0, 2.5]), np.array([0.0, 1.0])]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_splitting_keeps_the_volume(dim: int) -> None:
    panels = Panels.from_edges(EDGES[:dim])
    whole = float(panels.volume.sum())
    assert panels.split_every_panel(3).volume.sum() == pytest.approx(whole)
    assert len(panels.split_every_panel(3)) == len(panels) * 3**dim
    longest = np.argmax(panels.upper - panels.lower, axis=1)
    assert panels.halve_each_panel_along_its_axis(longest).volume.sum() == pytest.approx(whole)
    assert len(panels[np.arange(len(panels)) > 0].concat(panels)) == 2 * len(panels) - 1


@given(st.integers(1, 3), st.integers(4, 8), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=examples(60))
def test_polynomials_are_exact(dim: int, order: int, seed: int) -> None:
    """Degree 2 order - 1 along each axis, whatever the panels."""
    rng = np.random.default_rng(seed)
    panels = Panels.from_edges(EDGES[:dim])
    powers = rng.integers(0, 2 * order, dim)
    t, weights = panels.nodes_and_weights(order)
    found = float((np.prod(t**powers, axis=-1) * weights).sum())
    exact = math.prod((e[-1] ** (k + 1) - e[0] ** (k + 1)) / (k + 1) for e, k in zip(EDGES, powers, strict=False))
    assert found == pytest.approx(exact, rel=1e-10, abs=1e-10)


FUNCTIONS = {
    "smooth": lambda t: np.exp(np.sin(5.0 * t).sum(axis=-1)),
    "kink": lambda t: np.abs(t.sum(axis=-1) - 0.4321),
    "jump": lambda t: (t.sum(axis=-1) > 0.4321).astype(float),
    "second derivative": lambda t: np.maximum(0.0, t.sum(axis=-1) - 0.4321) ** 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_error_estimate_is_not_too_small(name: str, dim: int) -> None:
    """Against the same panels split finely, added up over random boxes; a power law for all coefficients is never below."""
    rng = np.random.default_rng(dim)
    order = {1: 10, 2: 6, 3: 5}[dim]
    errors = estimates = 0.0
    for _ in range(20):
        panels = Panels.from_edges([np.sort(rng.uniform(-1.0, 1.0, 3)) for _ in range(dim)])
        finer = panels.split_every_panel({1: 512, 2: 24, 3: 5}[dim])
        t, weights = panels.nodes_and_weights(order)
        fine_t, fine_weights = finer.nodes_and_weights(order)
        values = FUNCTIONS[name](t)
        errors += abs(float((values * weights).sum() - (FUNCTIONS[name](fine_t) * fine_weights).sum()))
        estimate = panels.integral_errors(values, order)
        estimates += float(estimate.sum())
        assert (panels.integral_errors(values, order, fast=0.0) >= estimate).all()
    assert errors <= 1.5 * estimates + 1e-13


def test_subdivided_leaves_no_wide_gap() -> None:
    edges = subdivide_breaks(np.array([0.0, 0.1, 1.0]), 0.25)
    assert np.diff(edges).max() <= 0.25 + 1e-12
    assert {0.0, 0.1, 1.0} <= set(edges.tolist())


EMPTY = (np.array([0.0, 1.0]),)


@pytest.mark.parametrize("chart", [
    Cartesian((Identity(), WholeLine(1.0, 2.0), HalfLine(-1.0, -0.5)), EMPTY * 3, EMPTY * 3),
    Polar(EMPTY * 2, EMPTY * 2),
    Spherical(EMPTY * 3, EMPTY * 3),
], ids=lambda chart: type(chart).__name__)  # fmt: skip
def test_charts_go_there_and_back(chart: Chart) -> None:
    """coordinates(points(t)) = t, and the Jacobian is the volume that a small cube of coordinates takes."""
    rng = np.random.default_rng(0)
    dim = 2 if isinstance(chart, Polar) else 3
    t = rng.uniform(0.1, 0.9, (50, dim))
    assert np.allclose(chart.coordinates_of_points(chart.points_at_coordinates(t)), t, atol=1e-12)
    step = 1e-6
    columns = [
        (chart.points_at_coordinates(t + step * e) - chart.points_at_coordinates(t - step * e)) / (2 * step)
        for e in np.eye(dim)
    ]
    assert np.allclose(np.abs(np.linalg.det(np.stack(columns, axis=-1))), chart.jacobian(t), rtol=1e-6)
