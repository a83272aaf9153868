"""What compiled code does to tables, numpy and Arrow do too, with the same results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines import grouping, plain_grouping
from discreet.tables.marks import LISTED, MISSING, OUTSIDE

SEEDS = st.integers(0, 2**64 - 1).map(np.uint64)
INTEGERS = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=40).map(
    lambda each: np.array(each, dtype=np.int64)
)
TEXTS = st.lists(st.one_of(st.sampled_from(["", "a", "ab", "b"]), st.text(max_size=25)), max_size=40)
MARKS = [int(MISSING), int(OUTSIDE), int(LISTED), 0, 1, 7]


def laid_out(texts: list[str]) -> tuple[Any, Any]:
    encoded = [each.encode("utf-8", "surrogatepass") for each in texts]
    return np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()


def same(one: Any, other: Any) -> None:
    """Equal arrays of equal types, or tuples of them."""
    if isinstance(one, tuple):
        assert isinstance(other, tuple)
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            same(first, second)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist()
    else:
        assert one == other


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(INTEGERS, SEEDS)
def test_integers(clients: Any, seed: Any) -> None:
    same(grouping.numbered_integers(clients, seed, 4), plain_grouping.numbered_integers(clients, seed, 4))
    same(grouping.integers_increase(clients), plain_grouping.integers_increase(clients))
    same(grouping.integers_increase(np.unique(clients)), plain_grouping.integers_increase(np.unique(clients)))
    for bits in (1, 7):
        same(grouping.parts_of_integers(clients, bits, seed), plain_grouping.parts_of_integers(clients, bits, seed))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(TEXTS, SEEDS)
def test_texts(texts: list[str], seed: Any) -> None:
    for each in (texts, sorted(texts), sorted(set(texts), key=lambda text: text.encode("utf-8", "surrogatepass"))):
        ends, text = laid_out(each)
        same(grouping.numbered_texts(ends, text, seed, 4), plain_grouping.numbered_texts(ends, text, seed, 4))
        same(grouping.texts_increase(ends, text), plain_grouping.texts_increase(ends, text))
        same(grouping.parts_of_texts(ends, text, 7, seed), plain_grouping.parts_of_texts(ends, text, 7, seed))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(TEXTS, st.data())
def test_rows_in_order_of_part(texts: list[str], data: st.DataObject) -> None:
    ends, text = laid_out(texts)
    number = len(texts)
    parts = data.draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    outcomes = data.draw(st.lists(st.sampled_from(MARKS), min_size=number, max_size=number))
    missing_to, outside_to = (np.uint32(data.draw(st.sampled_from([int(MISSING), 5]))) for _ in range(2))
    found = []
    for code in (grouping, plain_grouping):
        own_parts, own_outcomes = np.array(parts, dtype=np.uint16), np.array(outcomes, dtype=np.uint32)
        tally = np.array([3, 4])
        starts = code.part_starts(own_parts, 4, own_outcomes, missing_to, outside_to, tally)
        found.append(
            (
                starts, own_parts, own_outcomes, tally,
                code.in_order(own_parts, starts, own_outcomes),
                code.in_order(own_parts, starts, np.arange(number) * 0.5),
                *code.texts_in_order(own_parts, starts, ends, text),
            )
        )  # fmt: skip
    same(*found)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.sampled_from(["records", "counts", "weights"]))
def test_lists(data: st.DataObject, uneven: bool, kind: str) -> None:
    numbers = np.array(data.draw(st.lists(st.integers(0, 5), max_size=30)), dtype=np.uint32)
    lengths = np.array([1 + number % 3 for number in numbers] if uneven else [], dtype=np.int64)
    size = int(lengths.sum()) if uneven and len(numbers) else len(numbers)
    values = np.array(data.draw(st.lists(st.sampled_from(MARKS), min_size=size, max_size=size)), dtype=np.uint32)
    same(grouping.lists(numbers, 6, values, lengths), plain_grouping.lists(numbers, 6, values, lengths))
    ends, gathered = grouping.lists(numbers, 6, values, lengths)
    counts = np.arange(size if kind == "counts" else 0)
    weights = np.arange(size if kind == "weights" else 0) * 0.5
    same(
        grouping.without_marks(ends, gathered, counts, weights),
        plain_grouping.without_marks(ends, gathered, counts, weights),
    )


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_next_to_nothing(rows: int) -> None:
    ends, text = laid_out(["x"] * rows)
    for code in (grouping, plain_grouping):
        assert code.texts_increase(ends, text) == (rows < 2)
        assert code.integers_increase(np.arange(rows))
        assert code.texts_increase(np.empty(0, dtype=np.int64), text[:0])
