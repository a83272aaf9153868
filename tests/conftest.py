"""Settings of all tests: no deadline for a single example, since these machines are noisy and kernels load when first used.

A random test has 25 examples here, the same ones in every run, and 100 new ones in a soak, unless it says otherwise. Nor does any other
chance decide in `make test`: see `tests.chance`.

Each test stands for a process of its own: rounds that another one released under a secret in memory are forgotten before it.

Tests that are marked long start first. Workers take tests from each other, so they end together unless one is left alone with a long test.

Small tables are released without compiled code; what it draws must be the same, so tests of releases run with either.
"""

import gc
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from discreet._base.kernels import Code, force_implementation
from discreet.ledger._book import forget_rounds_in_memory
from tests.chance import seeded_by
from tests.mechanism_packages import install as install
from tests.soaking import SOAKING, examples

settings.register_profile("discreet", deadline=None, max_examples=examples(100), derandomize=not SOAKING)
settings.load_profile("discreet")


gc.disable()  # until all tests are there: modules and tests stay to the end, and looking through them takes a second and more


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(10_000)  # of 700: looking for garbage took a thirtieth of the time
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with seeded_by(item.nodeid, real=SOAKING or item.get_closest_marker("entropy") is not None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """What tests share is the same whichever of them comes first."""
    name = f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"
    with seeded_by(name, real=SOAKING or fixturedef.scope == "function"):
        return (yield)


@pytest.fixture(autouse=True)
def _forget_rounds() -> None:
    forget_rounds_in_memory()


@pytest.fixture(params=Code, ids=lambda code: code.value)
def either_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with force_implementation(request.param):
        yield
