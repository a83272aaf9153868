"""RFC 8785: its own table of numbers, sorted keys, and a text that reads back as what was written."""

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given, strategies as st

from discreet import DiscreetError
from discreet.domain._domain import canonical_json, read_json_number

# Appendix B of RFC 8785: the bits of a float, and its text
TABLE = [
    ("0000000000000000", "0"), ("8000000000000000", "0"), ("0000000000000001", "5e-324"), ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"), ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"), ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"), ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"), ("44b52d02c7e14af7", "1.0000000000000001e+23"), ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"), ("444b1ae4d6e2ef50", "1e+21"), ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"), ("41b3de4355555553", "333333333.3333332"), ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"), ("41b3de4355555556", "333333333.3333334"), ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"), ("43143ff3c1cb0959", "1424953923781206.2"),
]  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.integers(-(2**53), 2**53),
        st.text(st.characters(codec="utf-8")),
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@pytest.mark.parametrize(("bits", "text"), TABLE)
def test_numbers_are_written_as_the_standard_says(bits: str, text: str) -> None:
    assert canonical_json(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


def test_keys_are_sorted_by_code_units() -> None:
    """The example of RFC 8785, section 3.2.3."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = json.loads(
        canonical_json(dict.fromkeys(names, 0)), object_pairs_hook=lambda pairs: [name for name, _ in pairs]
    )
    assert found == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@given(VALUES)
def test_a_text_reads_back_as_what_was_written(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text, parse_int=read_json_number, parse_float=read_json_number) == value
    assert canonical_json(json.loads(text, parse_int=read_json_number, parse_float=read_json_number)) == text


@pytest.mark.parametrize(
    "digits", ["3", "3.0", "3e0", "0.3E1", "300e-2", "1e20", "100000000000000000000.0", "-0.0", "-0"]
)
def test_a_number_is_read_as_its_canonical_form_is_however_it_is_spelled(digits: str) -> None:
    assert isinstance(read_json_number(digits), int)
    assert canonical_json(read_json_number(digits)) == canonical_json(float(digits))


@pytest.mark.parametrize("digits", ["2.5", "1e-7", "1e21", "1" + "0" * 21])
def test_a_number_whose_canonical_form_has_a_point_or_an_exponent_is_a_float(digits: str) -> None:
    assert isinstance(read_json_number(digits), float)


@pytest.mark.parametrize("digits", ["1e999", "-1e999", "1" + "0" * 400])
def test_a_number_past_every_float_is_refused(digits: str) -> None:
    with pytest.raises(DiscreetError, match="a number that no 64-bit float does"):
        read_json_number(digits)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [1.0, math.nan]])
@pytest.mark.parametrize("version", [1, 2])
def test_what_is_no_number_is_refused(value: Any, version: int) -> None:
    with pytest.raises(DiscreetError, match="finite numbers only"):
        canonical_json(value, version)


@pytest.mark.parametrize("version", [1, 2])
def test_half_a_character_is_refused(version: int) -> None:
    with pytest.raises(DiscreetError, match="UTF-8 only"):
        canonical_json({"a": "\ud800"}, version)


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 10**400, 10**23])
def test_a_whole_number_that_no_float_holds_is_refused(whole: int) -> None:
    with pytest.raises(DiscreetError, match="is not a 64-bit float"):
        canonical_json(whole)
    assert canonical_json(whole, 1) == str(whole)
