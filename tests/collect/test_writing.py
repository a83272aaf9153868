"""Group commit: those who wait share a transaction, each is told what became of its own, and past what can wait nobody is taken."""

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from discreet.agreement import Agreement
from discreet.collect import _samples as writing, open_store
from discreet.collect._counting import Arrival, Verdict, text_digest
from discreet.collect._requests import RequestProblem
from discreet.collect._samples import StoreWriter
from discreet.collect._store import today_in_utc
from discreet.errors import StoreError
from tests.collect.running import agreed


class Gated:
    """A real store, whose writes wait at a gate or fail by a plan."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.sizes: list[int] = []
        self.failures: list[Exception] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def count_arrivals(self, agreement: str, round: int, arrivals: Sequence[Arrival], day: str) -> list[Verdict]:
        self.entered.set()
        assert self.gate.wait(60)
        self.sizes.append(len(arrivals))
        if self.failures:
            raise self.failures.pop()
        found: list[Verdict] = self._store.count_arrivals(agreement, round, arrivals, day)
        return found


@pytest.fixture
def agreement(tmp_path: Path) -> Agreement:
    return agreed(tmp_path)


@pytest.fixture
def store(tmp_path: Path, agreement: Agreement) -> Iterator[Gated]:
    opened = open_store(tmp_path / "samples.db")
    opened.add(agreement)
    yield Gated(opened)
    opened.close()


def arrivals(*names: str) -> list[Arrival]:
    return [Arrival(text_digest(name), text_digest("key"), 0) for name in names]


def writer(store: Any, faults: list[BaseException] | None = None) -> StoreWriter:
    return StoreWriter(store, wrote=lambda verdicts: None, failed=(faults if faults is not None else []).append)


def test_those_who_wait_are_written_together_and_each_is_told_its_own(store: Gated, agreement: Agreement) -> None:
    one = writer(store)

    async def main() -> list[list[Verdict]]:
        store.gate.clear()
        first = asyncio.create_task(one.write_samples(agreement.id, 1, arrivals("first")))
        await asyncio.to_thread(store.entered.wait, 60)
        others = [
            asyncio.create_task(one.write_samples(agreement.id, 1, arrivals("first", f"c{n}"))) for n in range(20)
        ]
        while one.waiting_sample_count < 41:
            await asyncio.sleep(0.001)
        store.gate.set()
        return [await first, *[await other for other in others]]

    first, *others = asyncio.run(main())
    assert first == [Verdict.COUNTED]
    assert others == [[Verdict.AGAIN, Verdict.COUNTED]] * 20
    assert store.sizes == [1, 40]
    one.close()


def test_past_what_can_wait_nobody_is_taken(
    store: Gated, agreement: Agreement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING", 3)
    one = writer(store)

    async def main() -> None:
        store.gate.clear()
        held = asyncio.create_task(one.write_samples(agreement.id, 1, arrivals("a", "b")))
        await asyncio.to_thread(store.entered.wait, 60)
        with pytest.raises(RequestProblem) as refused:
            await one.write_samples(agreement.id, 1, arrivals("c", "d"))
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
        store.gate.set()
        assert await held == [Verdict.COUNTED] * 2
        while one.waiting_sample_count:
            await asyncio.sleep(0.001)
        assert await one.write_samples(agreement.id, 1, arrivals("c", "d")) == [Verdict.COUNTED] * 2

    asyncio.run(main())
    one.close()


@pytest.mark.parametrize("failure", [StoreError("full"), KeyError("a bug")])
def test_a_failure_is_told_to_all_who_waited_and_the_next_are_written(
    store: Gated, agreement: Agreement, failure: Exception
) -> None:
    faults: list[BaseException] = []
    one = writer(store, faults)
    store.failures = [failure]

    async def main() -> None:
        with pytest.raises(RequestProblem) as refused:
            await one.write_samples(agreement.id, 1, arrivals("a"))
        assert refused.value.status == 503
        assert await one.write_samples(agreement.id, 1, arrivals("a")) == [Verdict.COUNTED]

    asyncio.run(main())
    assert faults == ([] if isinstance(failure, StoreError) else [failure])
    one.close()


def test_what_was_taken_before_the_end_is_written_and_nothing_after_it(store: Gated, agreement: Agreement) -> None:
    one = writer(store)

    async def main() -> None:
        store.gate.clear()
        held = asyncio.create_task(one.write_samples(agreement.id, 1, arrivals("a")))
        await asyncio.to_thread(store.entered.wait, 60)
        closing = asyncio.create_task(asyncio.to_thread(one.close))
        while not one._closed:
            await asyncio.sleep(0.001)
        with pytest.raises(RequestProblem, match="is stopping"):
            await one.write_samples(agreement.id, 1, arrivals("b"))
        store.gate.set()
        assert await held == [Verdict.COUNTED]
        await closing

    asyncio.run(main())


def test_of_the_time_a_sample_came_the_day_is_kept() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today_in_utc())
