"""Small tables are released without compiled code; what it draws must be the same, so tests of releases run with either."""

from collections.abc import Iterator

import pytest

from discreet.kernels import Code, only


@pytest.fixture(params=Code, ids=lambda code: code.value)
def either_code(request: pytest.FixtureRequest) -> Iterator[None]:
    with only(request.param):
        yield
