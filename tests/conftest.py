"""Settings of all tests: no deadline for a single example, since these machines are noisy and kernels load when first used.

A random test has 12 examples here and 100 in a soak, unless it says otherwise.

Each test stands for a process of its own: rounds that another one released under a secret in memory are forgotten before it.

Tests that are marked long start first. Workers take tests from each other, so they end together unless one is left alone with a long test.

Small tables are released without compiled code; what it draws must be the same, so tests of releases run with either.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from discreet._base.kernels import Code, use_only
from discreet.ledger._book import forget_rounds_in_memory
from tests.soaking import examples

settings.register_profile("discreet", deadline=None, max_examples=examples(100))
settings.load_profile("discreet")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def _forget_rounds() -> None:
    forget_rounds_in_memory()


@pytest.fixture(params=Code, ids=lambda code: code.value)
def either_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with use_only(request.param):
        yield
