"""From devices to an estimate, on real records and with every part in a process of its own."""

import pytest

from tests.client import flights


@pytest.mark.slow
def test_devices_take_part_and_the_estimate_is_that_of_the_export() -> None:
    """60 aircraft here; `python -m tests.client.flights` sends all 4,043."""
    flights.run(60, processes=1)
