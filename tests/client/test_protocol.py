"""Signed statements: a signature stands for one statement by one key, and for nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from discreet.client import _protocol as protocol
from discreet.client._protocol import (
    CollectionStatement,
    CollectorKey,
    has_valid_signature,
    read_collector_key,
    signature_from_json_or_none,
)
from discreet.errors import DiscreetError

KEY, OTHER = CollectorKey(bytes(32)), CollectorKey(bytes(31) + b"\1")
STATEMENT = CollectionStatement(agreement="a" * 64, collection="b" * 64, follows=None, addresses=("https://a.example",))
CHANGES: list[dict[str, Any]] = [
    {"agreement": "c" * 64},
    {"collection": "a" * 64},
    {"follows": "b" * 64},
    {"addresses": ("https://b.example",)},
    {"addresses": ("https://a.example", "https://b.example")},
]


def test_a_statement_is_signed_by_its_key() -> None:
    signed = KEY.sign(STATEMENT)
    assert has_valid_signature(STATEMENT, signed)
    assert signature_from_json_or_none(signed.document) == signed


@pytest.mark.parametrize("change", CHANGES)
def test_no_other_statement_is(change: dict[str, Any]) -> None:
    signed = KEY.sign(STATEMENT)
    other = replace(STATEMENT, **change)
    assert not has_valid_signature(other, signed)
    assert not has_valid_signature(other, replace(signed, addresses=other.addresses))


def test_no_other_key_vouches_for_it() -> None:
    signed = KEY.sign(STATEMENT)
    assert not has_valid_signature(STATEMENT, replace(signed, key=OTHER.public))
    assert not has_valid_signature(STATEMENT, replace(OTHER.sign(STATEMENT), key=KEY.public))


@given(st.integers(0, 511))
def test_no_flipped_bit_passes(bit: int) -> None:
    signed = KEY.sign(STATEMENT)
    damaged = int(signed.signature, 16) ^ (1 << bit)
    assert not has_valid_signature(STATEMENT, replace(signed, signature=f"{damaged:0128x}"))


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {**KEY.sign(STATEMENT).document, "more": 1},
        {**KEY.sign(STATEMENT).document, "key": "A" * 64},
        {**KEY.sign(STATEMENT).document, "key": "0" * 63},
        {**KEY.sign(STATEMENT).document, "signature": 7},
        {**KEY.sign(STATEMENT).document, "addresses": []},
        {**KEY.sign(STATEMENT).document, "addresses": ["https://a.example"] * 17},
        {**KEY.sign(STATEMENT).document, "addresses": [None]},
        {**KEY.sign(STATEMENT).document, "addresses": ["https://a.example\n"]},
    ],
)
def test_what_is_no_signature_is_not_read_as_one(document: object) -> None:
    assert signature_from_json_or_none(document) is None


def test_a_key_lies_in_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "collector.key"
    protocol.create_collector_key_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert protocol.is_public_key(read_collector_key(path).public)
    assert "seed" not in repr(read_collector_key(path))
    with pytest.raises(DiscreetError, match="devices have pinned its key"):
        protocol.create_collector_key_file(path)
    path.chmod(0o644)
    with pytest.raises(DiscreetError, match="chmod 600"):
        read_collector_key(path)
    path.chmod(0o600)
    path.write_text("something else")
    with pytest.raises(DiscreetError, match="does not hold a collector's key"):
        read_collector_key(path)


def test_addresses_are_spelled_as_devices_spell_them() -> None:
    assert protocol.normalise_addresses(["https://a.example/"]) == ("https://a.example",)
    spelled = ["HTTPS://A.Example:443", "https://a.example:0443/", "https://\uff41.example"]
    assert protocol.normalise_addresses(spelled) == ("https://a.example",) * 3
    assert protocol.normalise_addresses(["http://10.0.0.1:8000/folder/"]) == ("http://10.0.0.1:8000/folder",)
    for wrong in ([], ["a.example"], ["https://a example"]):
        with pytest.raises(DiscreetError, match="address"):
            protocol.normalise_addresses(wrong)


def test_the_format_does_not_change() -> None:
    message = (
        b'discreet statement 1\n{"addresses":["https://a.example"],"agreement":"'
        + b"a" * 64
        + b'","collection":"'
        + b"b" * 64
    )
    assert STATEMENT.signed_bytes == message + b'","follows":null}'
    assert (
        KEY.public == "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    )  # of 32 zeros: RFC 8032 gives it


@pytest.mark.parametrize(
    ("addresses", "message"), [(3, "addresses = 3 is not a list"), ([None], "holds None, which is not a text")]
)
def test_addresses_that_are_no_list_of_texts_are_refused(addresses: Any, message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        protocol.normalise_addresses(addresses)
