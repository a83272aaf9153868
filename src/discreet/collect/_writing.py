"""`StoreWriter`: group commit. Samples of all waiting requests go into the store together, and are answered once on disk.

One thread writes. While it waits for the disk, further samples arrive and share the next transaction. Many simultaneous clients therefore
cost as many transactions as the disk can make, not one each. The queue is bounded; beyond that a request is rejected before it is taken.

Tokens are looked up right before samples are written, so every process rejects a revoked token at once. After the answers have left, at the
latest after `SETTLE_SECONDS`, the store overwrites its earlier versions.
"""

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.collect._counting import Arrival, Verdict
from discreet.collect._requests import unavailable
from discreet.collect._store import Store, today
from discreet.errors import StoreError

MOST_WAITING = 100_000  # samples
MOST_TOGETHER = 50_000  # in one transaction, unless a single request has more
SETTLE_SECONDS = 0.25


class UnknownToken(Exception):
    """A client's token is not in the store, or was revoked. `place`: the first such sample of the request."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


@dataclass(eq=False)
class _WaitingRequest:
    """The samples of one request, and where its answer goes. `tokens`: digests that must be enrolled, one for each sample; or none."""

    agreement: str
    round: int
    arrivals: Sequence[Arrival]
    tokens: Sequence[bytes]
    answer: asyncio.Future[list[Verdict]] = field(repr=False)


class StoreWriter:
    """A writer to a store, for the coroutines of one event loop.

    Args:
        store: the store.
        wrote: called with the results of each transaction's samples.
        failed: called with an unexpected error.
    """

    def __init__(
        self, store: Store, *, wrote: Callable[[list[Verdict]], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._store, self._wrote, self._failed = store, wrote, failed
        self._queue: deque[_WaitingRequest] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """The number of samples that wait or are being written."""
        return self._waiting

    async def take(
        self, agreement: str, round_number: int, arrivals: Sequence[Arrival], tokens: Sequence[bytes] = ()
    ) -> list[Verdict]:
        """What became of samples, once that is durable. `tokens`: digests that must be enrolled, else `UnknownToken` is raised."""
        answer: asyncio.Future[list[Verdict]] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed:
                raise unavailable("the collector is stopping")
            if self._waiting + len(arrivals) > MOST_WAITING:
                raise unavailable("more samples wait than can be written")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
                self._thread.start()
            self._queue.append(_WaitingRequest(agreement, round_number, arrivals, tokens, answer))
            self._waiting += len(arrivals)
            self._changed.notify()
        try:
            return await answer
        except StoreError:
            raise unavailable("the store cannot be written now") from None

    def close(self) -> None:
        """Write what was taken, and take no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        settled, last = True, time.monotonic()
        while True:
            with self._changed:
                while not self._queue and not self._closed and settled:
                    self._changed.wait()
                if not self._queue and not self._closed:
                    self._changed.wait(SETTLE_SECONDS)
                done = self._closed and not self._queue
                taken = self._next()
            groups: dict[tuple[str, int], list[_WaitingRequest]] = {}
            for each in taken:
                groups.setdefault((each.agreement, each.round), []).append(each)
            for (agreement, round_number), group in groups.items():
                self._write(agreement, round_number, group)
            with self._changed:
                self._waiting -= sum(len(each.arrivals) for each in taken)
                idle = not self._queue
            if idle or time.monotonic() - last > SETTLE_SECONDS:
                settled, last = self._settle(), time.monotonic()
            if done:
                return

    def _next(self) -> list[_WaitingRequest]:
        """The requests to write together next."""
        taken: list[_WaitingRequest] = []
        many = 0
        while self._queue and (not taken or many + len(self._queue[0].arrivals) <= MOST_TOGETHER):
            taken.append(self._queue.popleft())
            many += len(taken[-1].arrivals)
        return taken

    def _settle(self) -> bool:
        try:
            return self._store.settle()
        except StoreError:
            return True  # opening the store before the next write settles it
        except Exception as error:
            self._failed(error)
            return True

    def _write(self, agreement: str, round_number: int, group: list[_WaitingRequest]) -> None:
        found: dict[int, Any] = {}
        try:
            found |= self._unknown_tokens(group)
            known = [each for each in group if id(each) not in found]
            if known:
                arrivals = [arrival for each in known for arrival in each.arrivals]
                verdicts = self._store.count(agreement, round_number, arrivals, today())
                ends = itertools.accumulate((len(each.arrivals) for each in known), initial=0)
                spans = itertools.pairwise(ends)
                found |= {id(each): verdicts[first:last] for each, (first, last) in zip(known, spans, strict=True)}
                self._wrote(verdicts)
        except StoreError as error:
            found = {id(each): error for each in group}
        except Exception as error:  # any error must be answered, and others served
            self._failed(error)
            found = {id(each): StoreError("not written") for each in group}
        _schedule_on_loop(
            group[0].answer.get_loop(), lambda: _answer_requests(group, [found[id(each)] for each in group])
        )

    def _unknown_tokens(self, group: list[_WaitingRequest]) -> dict[int, UnknownToken]:
        """The requests with a token that is not enrolled, and the place of its first sample."""
        tokens = sorted({token for each in group for token in each.tokens})
        if not tokens:
            return {}
        known = self._store.known_tokens(tokens)
        unknown = {id(each): [token in known for token in each.tokens] for each in group}
        return {which: UnknownToken(there.index(False)) for which, there in unknown.items() if not all(there)}


def _answer_requests(group: list[_WaitingRequest], found: list[Any]) -> None:
    for each, answer in zip(group, found, strict=True):
        if each.answer.done():
            continue
        if isinstance(answer, Exception):
            each.answer.set_exception(answer)
        else:
            each.answer.set_result(answer)


def _schedule_on_loop(loop: asyncio.AbstractEventLoop, said: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(said)
