"""One PostgreSQL for all tests of a process, and a store in either engine."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from discreet.collect import open_store
from discreet.collect._store import Store
from tests.collect.postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def either_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store: in a file, and in PostgreSQL."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        where = server.database()
    else:
        where = str(tmp_path / "store.db")
    with closing(open_store(where)) as opened:
        yield opened
