"""`discreet` with a clock that goes backwards: every transaction of a service is of the day before the last one's."""

from datetime import UTC, datetime, timedelta
from itertools import count

from discreet.cli import main
from discreet.collect import _samples as writing

_earlier = count()


def yesterday() -> str:
    return (datetime.now(UTC).date() - timedelta(days=next(_earlier))).isoformat()


if __name__ == "__main__":
    vars(writing)["today_in_utc"] = yesterday
    main()
