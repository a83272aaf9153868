"""Estimates of what has come so far, computed from counts: the cost of one grows with the outcomes, not with the samples.

Each is computed once for all who ask, in a thread, and kept until counts change: whoever asks again is told by its tag that nothing has
changed. After it was computed an estimate rests a few times as long as that took, so that pollers, however many, take up a part of one
core at most; who asks meanwhile waits, and gets what was counted by then.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.collect._catalogue import CollectedAgreement
from discreet.collect._problems import RequestProblem, bad_request, unavailable
from discreet.collect._store import Store
from discreet.errors import StoreError
from discreet.estimation import population
from discreet.estimation._record import notes, record

CONFIDENCES = ("0.5", "0.8", "0.9", "0.95", "0.98", "0.99", "0.995", "0.999")
USUAL_CONFIDENCE = "0.95"
MOST_LISTED = 20_000  # outcomes of an answer
MOST_KEPT = 64  # answers, of agreements, rounds and confidences
OTHERS_SECONDS = 1.0  # for which counts are taken not to change if this process has written nothing
_ESTIMATE_REST, _MOST_REST = 4.0, 1.0  # times as long as it took, and seconds at most


@dataclass(frozen=True)
class TaggedEstimate:
    """An estimate as it is sent, and the tag that stands for it."""

    tag: str
    body: bytes


@dataclass
class _CachedEstimate:
    """What was told last of an agreement, a round and a confidence."""

    told: TaggedEstimate | None = None
    version: int = -1
    read: float = -1e9
    rests_until: float = -1e9


class Estimates:
    """The estimates of a store.

    Args:
        store: where the counts are.
        version: a number that changes when this process has written.
        took: is told how long each took.
    """

    def __init__(self, store: Store, version: Callable[[], int], took: Callable[[float], None]) -> None:
        self._store, self._version, self._took = store, version, took
        self._last: dict[tuple[str, int, str], _CachedEstimate] = {}
        self._one = asyncio.Lock()

    async def of(self, collected: CollectedAgreement, round_number: int, confidence: str) -> TaggedEstimate:
        """The estimate by now."""
        if confidence not in CONFIDENCES:
            raise bad_request(f"confidence is not one of {', '.join(CONFIDENCES)}")
        if collected.coding.size > MOST_LISTED:
            raise RequestProblem(
                422,
                f"the agreement has more than {MOST_LISTED:,} outcomes, too many to list here; estimate from an export: discreet export",
            )
        asked = (collected.id, round_number, confidence)
        last = self._last.pop(asked, None) or _CachedEstimate()
        self._last[asked] = last
        if len(self._last) > MOST_KEPT:
            del self._last[next(iter(self._last))]  # the one that was not asked for the longest
        if self._current(last):
            assert last.told is not None
            return last.told
        async with self._one:
            wait = last.rests_until - time.monotonic()
            if wait > 0.0 and not self._current(last):
                await asyncio.sleep(wait)
            if not self._current(last):
                await asyncio.get_running_loop().run_in_executor(
                    None, self._refresh, last, collected, round_number, float(confidence)
                )
        assert last.told is not None
        return last.told

    def _current(self, last: _CachedEstimate) -> bool:
        unread = time.monotonic() - last.read < OTHERS_SECONDS
        return last.told is not None and last.version == self._version() and unread

    def _refresh(
        self, last: _CachedEstimate, collected: CollectedAgreement, round_number: int, confidence: float
    ) -> None:
        version, began = self._version(), time.monotonic()
        try:
            counts = self._store.counts(collected.id, round_number)
            days = self._store.by_day(collected.id, round_number)
        except StoreError:
            raise unavailable("the store cannot be read now") from None
        tag = _tag(collected.id, round_number, confidence, counts, days)
        if last.told is None or last.told.tag != tag:
            said = {**estimate_document(collected, counts, confidence), "round": round_number, "days": days}
            last.told = TaggedEstimate(tag, json.dumps(said, allow_nan=False).encode())
            took = time.monotonic() - began
            self._took(took)
            last.rests_until = time.monotonic() + min(_ESTIMATE_REST * took, _MOST_REST)
        last.version, last.read = version, began


def estimate_document(collected: CollectedAgreement, counts: NDArray[np.int64], confidence: float) -> dict[str, Any]:
    """What counts tell, as `discreet estimate --json` prints it; before the first sample, that there is none."""
    agreed = collected.agreement
    if counts.any():
        found = population(collected.sampler, counts=counts, confidence=confidence)
        return record(found, agreed, notes(found, agreed))
    return {
        "samples": 0,
        "agreement": agreed.id,
        "mechanism": agreed.mechanism,
        "epsilon": agreed.epsilon,
        "confidence": confidence,
        "shares": [],
        "statistics": [],
        "notes": ["there are no samples yet"],
    }


def _tag(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode() + b"\0")
    return f'"{found.hexdigest()[:32]}"'
