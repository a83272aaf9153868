"""The attacks of `tests.collect.fuzz`, few of them: `make soak` sends a hundred thousand."""

from pathlib import Path

import pytest

from tests.collect.fuzz import run


@pytest.mark.slow
def test_hostile_requests_are_answered_and_good_ones_counted_once(tmp_path: Path) -> None:
    found = run(1500, tmp_path, seed=1)
    assert found["good"] == 150
    assert found["statuses"].keys() >= {"200", "400", "422"}
