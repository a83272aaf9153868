"""A few kills of services and of a database; `make soak` has hundreds."""

import pytest

from tests.collect.kills import run, stores


@pytest.mark.slow
def test_what_is_acknowledged_survives_kills_of_services() -> None:
    with stores("sqlite") as (where, _):
        seen = run(where, 8, seed=1)
    assert sum(seen.killed.values()) == 8
    assert seen.acknowledged


@pytest.mark.slow
def test_what_is_acknowledged_survives_kills_of_services_and_of_their_database() -> None:
    with stores("postgresql") as (where, database):
        seen = run(where, 4, seed=2, database=database, database_kills=2)
    assert seen.killed["database"] == 2
    assert seen.acknowledged


@pytest.mark.soak
def test_a_store_that_writes_after_it_has_answered_is_found_out() -> None:
    """Within 300 kills: each of a service that serves loses what it has acknowledged in the last twentieth of a second."""
    with stores("sqlite") as (where, _), pytest.raises(AssertionError, match="acknowledged samples were lost"):
        run(where, 300, seed=3, careless=True)
