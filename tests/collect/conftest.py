"""One PostgreSQL for all tests of a process."""

from collections.abc import Iterator

import pytest

from tests.collect.postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running
