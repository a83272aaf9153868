"""Notions in agreements: a field of its own where it is not pure epsilon, under which tables are sampled and populations estimated."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.estimation import population
from discreet.tables import sample

NOTIONS = [
    dc.Approximate(1.0, delta=1e-3),
    dc.Gaussian(1.0),
    dc.Functional([(0, 1), (0.2, 0.5), (0.5, 0.2), (1, 0)]),
    dc.Functional(dc.Gaussian(0.9).tradeoff),
]


def test_ids_of_pure_agreements_are_what_they_were() -> None:
    document = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)).document
    assert "privacy" not in document
    pure = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), privacy=dc.Pure(1.0)))
    assert pure.id == dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)).id


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_an_agreement_reads_back_and_draws_the_same(notion: Any, tmp_path: Path) -> None:
    families: list[Any] = [dc.Simplex(["a", "b", "c"]), dc.Near([3, 2, 1], factor=2.0)]
    for family in families:
        sampler = dc.OptimalSampler(family, privacy=notion)
        agreement = dc.Agreement.of(sampler)
        path = tmp_path / f"{family.size}-{type(family).__name__}.json"
        agreement.write(path)
        read = dc.Agreement.read(path)
        assert read.id == agreement.id
        assert read.promise == notion
        assert read.epsilon == sampler.epsilon
        assert read.sampler() == sampler
        assert read.sampler().lattice.keeps_privacy(notion)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_a_table_is_sampled_and_its_population_estimated(notion: Any) -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"who": np.arange(4000), "what": rng.choice(["a", "b", "c"], 4000, p=[0.6, 0.3, 0.1])})
    agreement = dc.Agreement.of(dc.LinearSampler(dc.Simplex(["a", "b", "c"]), privacy=notion))
    released = sample(table, client="who", value="what", agreement=agreement)
    assert set(released["agreement"].to_pylist()) == {agreement.id}
    found = population(agreement, samples=released["sample"].to_pylist())
    assert np.abs(found.nearest - [0.6, 0.3, 0.1]).max() < 0.15


def changed(**fields: Any) -> str:
    document = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(3), privacy=dc.Gaussian(1.0))).document
    return json.dumps({**document, **fields})


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ({"kind": "gaussian"}, "has the fields kind, nu"),
        ({"kind": "gaussian", "nu": 1.0, "delta": 0.1}, "has the fields kind, nu"),
        ({"kind": "gaussian", "nu": -1.0}, "nu = -1 is not in"),
        ({"kind": "gaussian", "nu": "1"}, "nu = '1' is not a number"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": 0.0}, "cannot be agreed on"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": 1.0}, r"delta = 1 is not in \[0, 1\)"),
        ({"kind": "pure", "epsilon": 1.0}, "kind is one of approximate, gaussian"),
        ({"kind": ["gaussian"], "nu": 1.0}, "kind is one of approximate, gaussian"),
        ({"kind": "functional", "points": [["0", "1"]]}, "is not a list of 2 to"),
        ({"kind": "functional", "points": [["0", "1"], ["1", 0]]}, "which is not a pair of rationals"),
        (
            {"kind": "functional", "points": [["0", "1"], ["-1/2", "1/2"], ["1", "0"]]},
            "which is not a pair of rationals",
        ),
        ({"kind": "functional", "points": [["0", "1"], ["2/4", "1/4"], ["1", "0"]]}, "as discreet writes them"),
        ({"kind": "functional", "points": [["0", "1"], ["1/2", "3/4"], ["1", "0"]]}, "is not between 0 and 1 - x"),
        (None, "privacy = None is not an object"),
        (3, "privacy = 3 is not an object"),
    ],
    ids=str,
)
def test_what_is_no_notion_in_a_document_is_refused(privacy: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        dc.Agreement.from_json(changed(privacy=privacy))


def test_an_epsilon_that_is_not_the_boxs_is_refused() -> None:
    """It is what ledgers charge: an agreement cannot state less than its box spends."""
    with pytest.raises(
        dc.DiscreetError, match=r"epsilon = 0\.1 is not the pure budget of 1-Gaussian LDP, which is 1\.00"
    ):
        dc.Agreement.from_json(changed(epsilon=0.1)).sampler()
