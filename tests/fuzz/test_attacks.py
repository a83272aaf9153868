"""A defined result or one of our errors, from every public entry point, whatever it is given."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.attacks import ATTACKS, attack

EXAMPLES = {"ledgers": 60, "commands": 60, "accounting": 200, "auditing": 200}


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_entry_point_keeps_the_contract(name: str) -> None:
    @given(st.binary(max_size=48))
    @settings(
        deadline=None, max_examples=EXAMPLES.get(name, 500), suppress_health_check=list(HealthCheck), database=None
    )
    def attacked(data: bytes) -> None:
        attack(name, data)

    attacked()
