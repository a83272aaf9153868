"""A range says what is wrong with a number, also where six digits would not show it."""

import math
from decimal import Decimal

import numpy as np
import pytest

from discreet.errors import OPEN_UNIT, DiscreetError, Range


@pytest.mark.parametrize(
    ("limits", "value", "says"),
    [
        (Range(1e-300, 1.0), 1.0000001, "x = 1.0000001 is not in [1e-300, 1]"),
        (OPEN_UNIT, 1.0 + 2.0**-52, "x = 1.0000000000000002 is not in (0, 1)"),
        (OPEN_UNIT, 1.0, "x = 1 is not in (0, 1)"),
        (Range(0.0, 1e6), 1e6 + 1.0, "x = 1000001.0 is not in [0, 1e+06]"),
        (Range(2.0, 3.0), 2.0 - 1e-10, "x = 1.9999999999 is not in [2, 3]"),
        (OPEN_UNIT, 1.23456789, "x = 1.23457 is not in (0, 1)"),
        (OPEN_UNIT, math.nan, "x = nan is not in (0, 1)"),
        (OPEN_UNIT, -math.inf, "x = -inf is not in (0, 1)"),
    ],
)
def test_the_message_shows_why_a_number_is_outside(limits: Range, value: float, says: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        limits.check("x", value)
    assert str(caught.value) == says


@pytest.mark.parametrize("value", [Decimal("0.5"), np.array(0.5)])
def test_what_holds_one_number_is_told_how_to_become_one(value: object) -> None:
    with pytest.raises(DiscreetError, match=r"is not a number; pass float\(\.\.\.\) of it; choose one"):
        OPEN_UNIT.check("x", value, "choose one")


@pytest.mark.parametrize("value", ["0.5", None, True, 0.5j, [0.5], np.array([0.5])])
def test_what_holds_none_is_not(value: object) -> None:
    with pytest.raises(DiscreetError, match="is not a number; choose one"):
        OPEN_UNIT.check("x", value, "choose one")
