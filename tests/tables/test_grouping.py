"""What compiled code does to tables, numpy and Arrow do too, with the same results."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet._base.kernels import read_only_view
from discreet.domain._coding import MARK_LISTED, MARK_MISSING, MARK_OUTSIDE
from discreet.tables import _grouping as grouping
from discreet.tables._parts import PLAIN
from tests.soaking import examples

SEEDS = st.integers(0, 2**64 - 1).map(np.uint64)
INTEGERS = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=40).map(
    lambda each: read_only_view(np.array(each, dtype=np.int64))
)
TEXTS = st.lists(st.one_of(st.sampled_from(["", "a", "ab", "b"]), st.text(max_size=25)), max_size=40)
AMOUNTS = [lambda rows: np.empty(0), np.arange, lambda rows: np.arange(rows) * 0.5]  # none, counts, weights
MARKS = [int(MARK_MISSING), int(MARK_OUTSIDE), int(MARK_LISTED), 0, 1, 7]


def laid_out(texts: list[str]) -> tuple[Any, Any]:
    encoded = [each.encode("utf-8", "surrogatepass") for each in texts]
    text = np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()
    return read_only_view(np.cumsum([0, *map(len, encoded)])), read_only_view(text)


def who(clients: Any) -> tuple[Any, Any, Any]:
    """(integers, ends of texts, texts) of a batch: those that do not apply are empty."""
    if isinstance(clients, np.ndarray):
        return clients, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint8)
    return np.empty(0, dtype=np.int64), *laid_out(clients)


def several(each: st.SearchStrategy[int], number: int) -> st.SearchStrategy[list[int]]:
    return st.lists(each, min_size=number, max_size=number)


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
@settings(max_examples=examples(150), deadline=None)
@given(INTEGERS, SEEDS)
def test_integers(clients: Any, seed: Any) -> None:
    same(
        grouping.assign_numbers_to_integer_clients(clients, seed, 4),
        PLAIN.assign_numbers_to_integer_clients(clients, seed, 4),
    )
    same(grouping.are_integers_increasing(clients), PLAIN.are_integers_increasing(clients))
    once = read_only_view(np.unique(clients))
    same(grouping.are_integers_increasing(once), PLAIN.are_integers_increasing(once))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(TEXTS, SEEDS)
def test_texts(texts: list[str], seed: Any) -> None:
    for each in (texts, sorted(texts), sorted(set(texts), key=lambda text: text.encode("utf-8", "surrogatepass"))):
        ends, text = laid_out(each)
        same(
            grouping.assign_numbers_to_text_clients(ends, text, seed, 4),
            PLAIN.assign_numbers_to_text_clients(ends, text, seed, 4),
        )
        same(grouping.are_texts_increasing(ends, text), PLAIN.are_texts_increasing(ends, text))


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(TEXTS, INTEGERS), SEEDS, st.sampled_from([1, 2, 7, 12]), st.sampled_from(AMOUNTS), st.data())
def test_rows_in_order_of_part(clients: Any, seed: Any, bits: int, amounts: Any, data: st.DataObject) -> None:
    """Records that are left out and whole parts that are empty among them; what was given is not changed."""
    outcomes = np.array(data.draw(several(st.sampled_from(MARKS), len(clients))), dtype=np.uint32)
    arrays = (*who(clients), outcomes, amounts(len(clients)))
    before = [array.copy() for array in arrays]
    compiled, plain = (code.records_by_part(*map(read_only_view, arrays), bits, seed) for code in (grouping, PLAIN))
    same(compiled, plain)
    same(tuple(before), arrays)
    kept = int((outcomes < MARK_OUTSIDE).sum())
    assert compiled[0].size == 2**bits + 2
    assert (compiled[0][-2], compiled[0][-1], compiled[4].size) == (kept, len(clients), kept)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.one_of(TEXTS, INTEGERS), SEEDS, st.booleans(), st.sampled_from(AMOUNTS), st.data())
def test_lists_of_what_clients_hold(clients: Any, seed: Any, uneven: bool, amounts: Any, data: st.DataObject) -> None:
    rows = len(clients)
    lengths = np.array(data.draw(several(st.integers(0, 3), rows)) if uneven else [], dtype=np.int64)
    size = int(lengths.sum()) if lengths.size else rows
    outcomes = np.array(data.draw(several(st.sampled_from(MARKS), size)), dtype=np.uint32)
    arrays = (*who(clients), outcomes, amounts(size))
    compiled, plain = (
        code.records_by_client(*map(read_only_view, arrays), lengths, seed, 4) for code in (grouping, PLAIN)
    )
    same(compiled, plain)
    _, ends, gathered, counts = compiled
    held = (ends, gathered, *(counts if counts.dtype == kind else np.empty(0, kind) for kind in (np.int64, np.float64)))
    held = tuple(map(read_only_view, held))
    same(grouping.remove_marks_of_listed_clients(*held), PLAIN.remove_marks_of_listed_clients(*held))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_next_to_nothing(rows: int) -> None:
    ends, text = laid_out(["x"] * rows)
    for code in (grouping, PLAIN):
        assert code.are_texts_increasing(ends, text) == (rows < 2)
        assert code.are_integers_increasing(read_only_view(np.arange(rows)))
        assert code.are_texts_increasing(read_only_view(np.empty(0, dtype=np.int64)), text[:0])
