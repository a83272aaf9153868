import sys
from collections import Counter

import numpy as np
import pytest

from discreet.errors import MissingExtraError
from discreet.research.data import destinations, flights, logbooks


def test_the_flights_are_those_with_a_tail_number() -> None:
    table = flights()
    assert table.num_rows == 334_264
    assert table.column_names == ["tailnum", "dest", "arr_delay", "air_time", "month"]
    assert table["tailnum"].null_count == table["dest"].null_count == table["month"].null_count == 0
    tails = table["tailnum"].to_numpy()
    assert (tails[:-1] <= tails[1:]).all()
    months = table["month"].to_numpy()
    assert (months.min(), months.max()) == (1, 12)
    # cancelled flights have neither time nor delay; diverted ones may have a time
    assert 0 < table["air_time"].null_count <= table["arr_delay"].null_count


def test_every_flight_goes_to_a_public_destination() -> None:
    public = destinations()
    assert len(public) == len(set(public)) == 104
    assert list(public) == sorted(public)
    assert set(flights()["dest"].to_pylist()) <= set(public)


def test_logbooks_count_each_aircraft_by_itself() -> None:
    books, table = logbooks(), flights()
    assert books.counts.shape == (4043, 104)
    assert books.outcomes == destinations()
    expected = Counter(zip(table["tailnum"].to_pylist(), table["dest"].to_pylist(), strict=True))
    rows, columns = np.nonzero(books.counts)
    found = {(books.clients[i], books.outcomes[j]): int(books.counts[i, j]) for i, j in zip(rows, columns, strict=True)}
    assert found == expected


def test_logbooks_of_some_months_add_up_to_the_year() -> None:
    year, halves = logbooks(), [logbooks(months) for months in (range(1, 7), range(7, 13))]
    assert sum(int(half.counts.sum()) for half in halves) == int(year.counts.sum())
    assert set(halves[0].clients) | set(halves[1].clients) == set(year.clients)
    assert all(half.counts.sum(axis=1).min() > 0 for half in halves)


def test_without_pyarrow_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[cli\]'"):
        flights()
