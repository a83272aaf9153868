"""The follow-up's classes on ten outcomes: nobody is served worse by the projection."""

from dataclasses import replace

import pytest

from discreet.research.experiments._follow_up import LocalFiniteExperiment
from tests.soaking import wide


@pytest.mark.slow
@pytest.mark.parametrize("kind", wide(["pure", "approximate", "gaussian", "functional"], ["approximate", "gaussian"]))
def test_nobody_is_served_worse(kind: str) -> None:
    experiment = replace(LocalFiniteExperiment(), kinds=(kind,), budgets=wide((0.5, 2.0), (2.0,)), clients=wide(80, 20))
    for rows in experiment.compute_records_in_batches(experiment.work_unit_names):
        for row in rows:
            for name, found in row.classes.items():
                assert found.clients == experiment.clients
                for f, one in found.pointwise.items():
                    assert one.worse == 0, (row.unit, name, f)
                    if f in found.minimax:
                        assert one.projection <= found.minimax[f] * (1 + 1e-9) + 1e-12, (row.unit, name, f)
