"""The flights that left New York in 2013: 4,043 aircraft (the clients) and their logs of 334,264 flights to 104 destinations.

`README.md` beside this file states their source and preparation. The destinations are a fixed public list: read from a file, never
inferred from the clients' records.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import check_count, check_list, raise_missing_extra

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TIME_ZONES", "Logbooks", "destinations", "flights", "logbooks", "time_zones", "zone_logbooks"]


@dataclass(frozen=True)
class Logbooks:
    """How often each client saw each outcome.

    Attributes:
        clients: the aircraft.
        outcomes: the destinations, or their time zones.
        counts: (clients, outcomes), flights of each aircraft to each.
    """

    clients: tuple[str, ...]
    outcomes: tuple[str, ...]
    counts: NDArray[np.int64]


def flights() -> "pyarrow.Table":
    """One row a flight, sorted by aircraft.

    Returns:
        A table of tailnum, dest, arr_delay (minutes), air_time (minutes) and month.
    """
    try:
        import pyarrow.parquet
    except ImportError as missing:
        raise_missing_extra("cli", missing)
    with resources.as_file(resources.files(__name__) / "flights.parquet") as path:
        return pyarrow.parquet.read_table(path)


def destinations() -> tuple[str, ...]:
    """The public domain: the 104 airports of that year's timetable.

    Returns:
        Their codes, in alphabetical order.
    """
    return tuple((resources.files(__name__) / "destinations.txt").read_text(encoding="ascii").split())


TIME_ZONES = ("Atlantic", "Eastern", "Central", "Mountain", "Pacific", "Alaska", "Hawaii")


def time_zones() -> dict[str, str]:
    """The time zone of each destination: public, as geography is.

    Returns:
        destination -> its time zone, one of `TIME_ZONES`.
    """
    lines = (resources.files(__name__) / "time_zones.csv").read_text(encoding="ascii").splitlines()[1:]
    return dict(line.split(",") for line in lines)


def zone_logbooks() -> Logbooks:
    """Every aircraft with how often it flew to each time zone.

    Returns:
        The counts.
    """
    books, zones = logbooks(), time_zones()
    counts = np.zeros((len(books.clients), len(TIME_ZONES)), dtype=np.int64)
    for column, destination in enumerate(books.outcomes):
        counts[:, TIME_ZONES.index(zones[destination])] += books.counts[:, column]
    return Logbooks(books.clients, TIME_ZONES, counts)


def logbooks(months: Iterable[int] = range(1, 13)) -> Logbooks:
    """Every aircraft that flew in these months with how often it flew to each destination.

    Args:
        months: 1 to 12; the whole year by default.

    Returns:
        The counts.

    Raises:
        DiscreetError: for what is not a month.
    """
    month_list = check_list("months", months, "pass numbers of months, 1 to 12")
    month_numbers = [check_count("months", month, most=12) for month in month_list]
    table, outcomes = flights(), destinations()
    import pyarrow
    import pyarrow.compute

    month_array = pyarrow.array(month_numbers, pyarrow.int8())
    table = table.filter(pyarrow.compute.is_in(table["month"], month_array))

    encoded_tail_numbers = table["tailnum"].combine_chunks().dictionary_encode()
    client = encoded_tail_numbers.indices.to_numpy().astype(np.int64)
    outcome = pyarrow.compute.index_in(table["dest"], pyarrow.array(outcomes)).to_numpy().astype(np.int64)
    shape = (len(encoded_tail_numbers.dictionary), len(outcomes))
    counts = np.bincount(client * shape[1] + outcome, minlength=shape[0] * shape[1]).reshape(shape)
    return Logbooks(tuple(encoded_tail_numbers.dictionary.to_pylist()), outcomes, counts)
