"""Entropy of the operating system, however much is asked for."""

import os

import numpy as np
import pytest

from discreet.release import TOTAL, SystemEntropy, entropy_bytes
from discreet.release._randomness import _TOGETHER, _WORTH_A_THREAD

pytestmark = pytest.mark.entropy


@pytest.mark.parametrize(
    "count", [0, 1, 1000, _WORTH_A_THREAD, _WORTH_A_THREAD + 1, _TOGETHER - 1, _TOGETHER + 1, 5 * _TOGETHER + 3]
)
def test_every_integer_asked_for_is_there_and_fresh(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads each read a part, and the parts make up the whole: no byte is used twice, none is left out."""
    asked: list[bytes] = []
    real = os.urandom

    def noted(number: int) -> bytes:
        asked.append(real(number))
        return asked[-1]

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(os, "urandom", noted)
    found = SystemEntropy().integers(count)
    assert found.shape == (count,)
    assert ((found >= 0) & (found < TOTAL)).all()
    assert sum(map(len, asked)) == 8 * count
    assert max(map(len, asked), default=0) <= 8 * _TOGETHER
    assert (len(asked) > 1) == (count > _WORTH_A_THREAD)
    assert np.unique(found).size == count


def test_places_are_filled_from_the_first_on() -> None:
    places = np.full(3 * _TOGETHER, -1, dtype=np.int64)
    told = []
    for there in SystemEntropy().fill_by_parts(places):
        assert (places[:there] >= 0).all()
        told.append(there)
    assert told == sorted(set(told))
    assert told[-1] == len(places)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_reads_by_threads_of_its_own_and_draws_other_integers() -> None:
    """The threads of the parent are not copied by a fork: a child that waited for them would never end."""
    mine = SystemEntropy().integers(_TOGETHER)  # the threads are there
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "wb") as told:
                told.write(SystemEntropy().integers(_TOGETHER)[:100].tobytes())
        finally:
            os._exit(0)  # without the parent's tests; one that failed has told too little
    os.close(writing)
    with os.fdopen(reading, "rb") as heard:
        theirs = np.frombuffer(heard.read(), dtype=np.int64)
    assert os.waitpid(child, 0)[1] == 0
    assert len(theirs) == 100
    assert not np.isin(theirs, mine).any()


def test_the_integers_are_the_upper_bits_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.arange(1, 6, dtype=np.uint64) << np.uint64(2)
    monkeypatch.setattr(os, "urandom", lambda number: given.tobytes()[:number])
    assert SystemEntropy().integers(5).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_keys_are_read_anew_each_time_and_in_each_process() -> None:
    """A key of a draw elsewhere is never kept: a fork has no state to copy."""
    mine = [entropy_bytes(32) for _ in range(100)]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writing, "wb") as told:
                told.write(entropy_bytes(32))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as heard:
        theirs = heard.read()
    assert os.waitpid(child, 0)[1] == 0
    assert len(set(mine) | {theirs}) == 101
    assert {len(key) for key in (*mine, theirs)} == {32}
