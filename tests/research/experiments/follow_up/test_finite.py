"""The follow-up's values on ten outcomes, and that nobody is served worse by the projection."""

from dataclasses import replace

import pytest

from discreet.research import _published as published
from discreet.research.experiments._follow_up import LocalFinite
from tests.soaking import wide


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_published_values(kind: str) -> None:
    [row] = next(replace(LocalFinite(), clients=8).results([f"10/{kind}/1"]))
    for name in ("global", "local"):
        found = row.classes[name]
        assert found.tight
        for f, value in published.FOLLOW_UP_FINITE[kind, 1.0, name].items():
            halved = 2.0 if f == "hellinger" else 1.0
            assert found.minimax[f] / halved == pytest.approx(value / halved, abs=6e-6)
            assert found.published_minimax[f] == pytest.approx(found.minimax[f], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pure", "approximate", "gaussian", "functional"])
def test_nobody_is_served_worse(kind: str) -> None:
    experiment = replace(LocalFinite(), kinds=(kind,), budgets=wide((0.5, 2.0), (2.0,)), clients=wide(80, 20))
    for rows in experiment.results(experiment.units):
        for row in rows:
            for name, found in row.classes.items():
                assert found.clients == experiment.clients
                for f, one in found.pointwise.items():
                    assert one.worse == 0, (row.unit, name, f)
                    if f in found.minimax:
                        assert one.projection <= found.minimax[f] * (1 + 1e-9) + 1e-12, (row.unit, name, f)
