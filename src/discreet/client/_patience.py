"""When to ask again: after a pause that doubles and is drawn at random, or after the one that the server asks for; until patience ends.

A random pause in [0, 2^k) keeps a thousand devices that failed together from coming back together.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from discreet._showing import pluralise
from discreet.client._http import Answer, NoAnswer
from discreet.errors import POSITIVE, CollectorError, Range

_AGAIN = {
    408,
    425,
    429,
    502,
    503,
    504,
}  # busy or being restarted, it or what stands before it: nothing is wrong with the question
_FIRST, _LONGEST = 0.25, 30.0  # seconds
_CHANCE = random.SystemRandom()  # which processes that were forked do not share
_PATIENCE = Range(0.0, 1e9)


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for one answer, and for all of them together with the pauses between."""

    timeout: float
    total: float

    def __post_init__(self) -> None:
        POSITIVE.check("timeout", self.timeout, "seconds to wait for an answer")
        _PATIENCE.check("patience", self.total, "seconds to keep trying, 0 to try once")

    def answer(self, who: object, ask: Callable[[float], Answer]) -> Answer:
        """The first answer that is not a reason to ask again. `ask`: with so many seconds for it."""
        started, pause, tries = time.monotonic(), _FIRST, 0
        while True:
            tries += 1
            said = None
            try:
                answer = ask(self.timeout)
            except NoAnswer as problem:
                why = str(problem)
            else:
                if answer.status not in _AGAIN:
                    return answer
                why, said = f"it answers {answer.status}", retry_seconds(answer.headers)
            wait = _CHANCE.uniform(0.0, pause) + (said or 0.0)
            if time.monotonic() - started + wait > self.total:
                later = "" if said is None else f", and asks to wait {said:.0f} s"
                raise CollectorError(
                    f"{who} does not take it: {why}{later} (asked {pluralise(tries, 'time')}); try again later"
                )
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST)


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, as a number or a date; None where it does not, or nothing that can be read."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:12])
    try:
        until = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
