"""Counts in blocks: what is added is what is read, whatever the number of outcomes."""

from collections import Counter

from hypothesis import given, strategies as st

from discreet.collect._postgres import (
    BLOCK,
    EMPTY,
    FEW_BLOCKS,
    block_numbers_to_write,
    blocks_with_counts_added,
    fetch_outcome_counts_from_blocks,
)


class Rows:
    """Rows as a cursor gives them."""

    def __init__(self, rows: list[tuple[int, bytes]]) -> None:
        self._rows = rows

    def fetchmany(self, size: int) -> list[tuple[int, bytes]]:
        first, self._rows = self._rows[:size], self._rows[size:]
        return first


@given(st.data(), st.integers(1, 20 * BLOCK))
def test_what_is_added_in_several_slots_is_what_is_read(data: st.DataObject, outcomes: int) -> None:
    outcome = st.integers(0, outcomes - 1)
    expected: Counter[int] = Counter()
    slots: list[dict[int, bytes]] = [{}, {}]
    for _ in range(4):
        counted = Counter(data.draw(st.lists(outcome, min_size=1)))
        held = data.draw(st.sampled_from(slots))
        numbers = block_numbers_to_write(sorted(counted.items()), outcomes)
        assert numbers == sorted(set(numbers))
        assert {each // BLOCK for each in counted} <= set(numbers)
        if outcomes <= FEW_BLOCKS * BLOCK:
            assert len(numbers) == -(-outcomes // BLOCK)  # all of them, whatever was counted
        before = {number: held.get(number, EMPTY) for number in numbers}
        held.update(zip(numbers, blocks_with_counts_added(before, counted.items()), strict=True))
        expected += counted
    found = fetch_outcome_counts_from_blocks(Rows([row for held in slots for row in held.items()]), outcomes)
    assert found.tolist() == [expected[each] for each in range(outcomes)]
