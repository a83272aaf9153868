"""Entropy of the operating system, however much is asked for."""

import os

import numpy as np
import pytest

from discreet.release import TOTAL, SystemEntropy
from discreet.release._randomness import _TOGETHER


@pytest.mark.parametrize("count", [0, 1, 1000, _TOGETHER - 1, _TOGETHER + 1, 4 * _TOGETHER + 3])
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
    assert len(asked) == -(-count // _TOGETHER)
    assert np.unique(found).size == count


def test_the_integers_are_the_upper_bits_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.arange(1, 6, dtype=np.uint64) << np.uint64(2)
    monkeypatch.setattr(os, "urandom", lambda number: given.tobytes()[:number])
    assert SystemEntropy().integers(5).tolist() == [1, 2, 3, 4, 5]
