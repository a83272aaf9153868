"""Experiments: they compute and write records; pictures are drawn from those records elsewhere.

Results are JSON lines, appended and synced as soon as they are known, so that a killed run loses no finished unit. The first line states
the experiment, version, seed and parameters. Every other line is one finished unit of work. An incomplete last line, from a process that
died, is removed and its unit repeated. `run_experiment` continues where the records end.

`CostSummary` summarises a mechanism's costs, D_f from each client's distribution to its output distribution, in four numbers.
`named_experiment` gives every experiment of `discreet reproduce`, full or quick: the figures of the paper and of its follow-up, and the
comparison on real clients.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from discreet._base import __version__, imports_on_first_use
from discreet.errors import DiscreetError, check_flag, check_path, raise_missing_extra

if TYPE_CHECKING:
    from discreet.research.experiments import client_sets

with imports_on_first_use(globals()):
    from discreet.research.experiments._designs import (
        DESIGN_RIVALS as DESIGN_RIVALS,
        SAFE as SAFE,
        DesignedSplit as DesignedSplit,
        KeptAtBudget as KeptAtBudget,
        LearnedRun as LearnedRun,
        ShiftedDesign as ShiftedDesign,
    )
    from discreet.research.experiments._follow_up import (
        ORDERED as ORDERED,
        ORDERED_MECHANISMS as ORDERED_MECHANISMS,
        ClassAtBudget as ClassAtBudget,
        FiniteClasses as FiniteClasses,
        MixtureClasses as MixtureClasses,
        OrderedSet as OrderedSet,
        PlaneLaw as PlaneLaw,
    )
    from discreet.research.experiments._paper_figures import (
        EPSILONS as EPSILONS,
        FiniteLaw as FiniteLaw,
        MixtureClient as MixtureClient,
        RingLaw as RingLaw,
        WorstCases as WorstCases,
    )
    from discreet.research.experiments._population import ReweightedSet as ReweightedSet, SetAtBudget as SetAtBudget

__all__ = ["client_sets"]


class Record(Protocol):
    """One finished unit of work: a frozen dataclass with JSON values."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def unit(self) -> str: ...


R = TypeVar("R", bound=Record)
R_co = TypeVar("R_co", bound=Record, covariant=True)


class Experiment(Protocol[R_co]):
    """A declared experiment: its name, description, parameters, seed and units of work."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def is_quick(self) -> bool: ...
    @property
    def record_type(self) -> type[R_co]:
        """The type of a finished unit."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters that determine the results, as JSON."""

    @property
    def work_unit_names(self) -> Sequence[str]:
        """The names of all units of work, in order."""

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[Sequence[R_co]]:
        """Finished units, some at a time."""


@dataclass(frozen=True)
class Header:
    """The first line of an experiment's records."""

    experiment: str
    computes: str
    version: str
    seed: int | None
    quick: bool
    parameters: Mapping[str, Any]

    @classmethod
    def of_experiment(cls, experiment: Experiment[Record]) -> "Header":
        """The header of an experiment, as it will read back."""
        parameters = json.loads(json.dumps(dict(experiment.parameters)))
        return cls(
            experiment.name, experiment.description, __version__, experiment.seed, experiment.is_quick, parameters
        )


@dataclass(frozen=True)
class RecordedRun(Generic[R]):
    """The records of one run: its header and its finished units.

    Attributes:
        header: the experiment, the version, the seed and the parameters.
        rows: a record for each finished unit.
    """

    header: Header
    rows: Sequence[R]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The rows by column, as `pandas.DataFrame` and `polars.DataFrame` take them; a field inside another is named "costs.kl"."""
        flat = [_flatten_record_fields(asdict(row)) for row in self.rows]
        names = dict.fromkeys(name for row in flat for name in row)
        return {name: [row.get(name) for row in flat] for name in names}

    def frame(self) -> Any:
        """The rows as a polars data frame.

        Returns:
            A frame with a row for each finished unit.

        Raises:
            MissingExtraError: where polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise_missing_extra("cli", error)
        return pl.DataFrame(self.columns, strict=False)


def exact_budget_text(budget: float) -> str:
    """A budget in the name of a unit of work: at most six digits where these are exact, otherwise all digits."""
    short = f"{budget:g}"
    return short if float(short) == budget else repr(float(budget))


def require_one_seed_per_budget(name: str, budgets: Sequence[float], seeds: Sequence[int]) -> None:
    """Raise an error unless there is one seed for each budget."""
    if len(budgets) != len(seeds):
        raise DiscreetError(
            f"{name} has {len(budgets)} entries and seeds has {len(seeds)}; give one seed for each budget"
        )


def _flatten_record_fields(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of a record, those of records inside it by their path."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        is_record = isinstance(value, Mapping)
        flat.update(_flatten_record_fields(value, f"{prefix}{name}.") if is_record else {f"{prefix}{name}": value})
    return flat


class RecordFile(Generic[R]):
    """The records of one experiment in one file that can be extended."""

    def __init__(self, path: Path, header: Header, kind: type[R]) -> None:
        self.path, self.header = path, header
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _append_json_lines(path, [asdict(header)])
        first, *rest = _read_rows_and_cut_torn_line(path) or [asdict(header)]
        _refuse_line_that_is_no_header(path, first)
        if not path.stat().st_size:
            _append_json_lines(path, [first])
        expected_header = asdict(header)
        if first != expected_header:
            different = [key for key in expected_header if first.get(key) != expected_header[key]]
            raise DiscreetError(
                f"{path} holds another run ({', '.join(different)} differ); give another --out, or --restart to replace it"
            )
        self.rows = _decode_rows(path, kind, rest)

    @property
    def finished_units(self) -> set[str]:
        """The finished units."""
        return {row.unit for row in self.rows}

    def append_rows(self, rows: Sequence[R]) -> None:
        """Append finished units and wait until they are on the disk."""
        _append_json_lines(self.path, map(asdict, rows))
        self.rows.extend(rows)


def read_records(path: Path, kind: type[R]) -> RecordedRun[R]:
    """The header and the finished units of a records file."""
    first, *rest = _read_whole_json_lines_and_length(path)[0] or [None]
    _refuse_line_that_is_no_header(path, first)
    return RecordedRun(_decode_value(Header, first), _decode_rows(path, kind, rest))


def _refuse_line_that_is_no_header(path: Path, line: Any) -> None:
    if not isinstance(line, dict) or any(field.name not in line for field in fields(Header)):
        raise DiscreetError(
            f"{path} does not begin with the header of an experiment; give another --out, or --restart to replace it"
        )


def _decode_rows(path: Path, kind: type[R], rows: Sequence[Any]) -> list[R]:
    try:
        return [_decode_value(kind, row) for row in rows]
    except (KeyError, TypeError, AttributeError):
        raise DiscreetError(
            f"{path} holds no {kind.__name__} records of this version; give another --out, or --restart to replace it"
        ) from None


def _decode_value(kind: Any, value: Any) -> Any:
    """A JSON value as the type that it was written from: dataclasses, tuples, mappings by name, and plain JSON types."""
    if is_dataclass(kind):
        types = get_type_hints(kind)
        return kind(**{field.name: _decode_value(types[field.name], value[field.name]) for field in fields(kind)})  # type: ignore[operator]
    parts = get_args(kind)
    match get_origin(kind):
        case origin if origin is tuple:
            return tuple(_decode_value(parts[0], item) for item in value)
        case origin if origin is dict:
            return {key: _decode_value(parts[1], item) for key, item in value.items()}
        case origin if origin is UnionType:
            return None if value is None else _decode_value(parts[0], value)
    return value


def _append_json_lines(path: Path, rows: Iterable[Any]) -> None:
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    with path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _read_rows_and_cut_torn_line(path: Path) -> list[Any]:
    rows, length = _read_whole_json_lines_and_length(path)
    if length < path.stat().st_size:
        with path.open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())
    return rows


def _read_whole_json_lines_and_length(path: Path) -> tuple[list[Any], int]:
    """The complete lines, and their length in bytes. A crash can tear the last line; any other that is no JSON is an error."""
    rows: list[Any] = []
    length = 0
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break
        try:
            rows.append(json.loads(line))
        except ValueError:
            if number < len(lines):
                raise DiscreetError(
                    f"{path} is damaged: line {number} of {len(lines)} is no JSON. Mend or delete that line, or --restart to replace the file"
                ) from None
            break
        length += len(line)
    return rows, length


PAPER_DIVERGENCES = ("kl", "tv", "hellinger")  # the paper's


@dataclass(frozen=True)
class CostSummary:
    """One mechanism under one divergence: the worst case over all possible clients; mean, median and worst of the real ones."""

    worst_case: float
    mean: float
    median: float
    worst: float

    @classmethod
    def from_divergences(cls, worst_case: float, realised: NDArray[np.float64]) -> "CostSummary":
        """The summary of clients with these divergences."""
        return cls(worst_case, float(realised.mean()), float(np.median(realised)), float(realised.max()))


Progress = Callable[[int, int], None]


def records_path(experiment: Experiment[Record], folder: Path) -> Path:
    """The path of an experiment's records; names of quick runs say so."""
    return folder / f"{experiment.name}{'.quick' if experiment.is_quick else ''}.jsonl"


def run_experiment(
    experiment: Experiment[R], folder: Path, progress: Progress | None = None, *, restart: bool = False
) -> RecordedRun[R]:
    """The complete records of the experiment in that folder, in order; finished units are not repeated.

    `progress` is called with the number of finished units and of all units.
    """
    path = records_path(experiment, folder)
    if restart:
        path.unlink(missing_ok=True)
    records = RecordFile(path, Header.of_experiment(experiment), experiment.record_type)
    finished_units, units = records.finished_units, experiment.work_unit_names
    missing = [unit for unit in units if unit not in finished_units]
    if progress:
        progress(len(units) - len(missing), len(units))
    for rows in experiment.compute_records_in_batches(missing) if missing else ():
        records.append_rows(rows)
        if progress:
            progress(len(records.rows), len(units))
    order = {unit: index for index, unit in enumerate(units)}
    rows = [row for row in records.rows if row.unit in order]  # earlier versions had other names for some budgets
    return RecordedRun(records.header, sorted(rows, key=lambda row: order[row.unit]))


FIGURES = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7")
FOLLOW_UP, POPULATION = "follow-up", "population"
REPORTS = {  # the experiments of each report
    "paper": FIGURES,
    FOLLOW_UP: ("local_finite", "local_mixtures", "local_plane", "ordered"),
    POPULATION: ("population",),
    "designs": ("designs", "keeps", "shifts"),
    "learned": ("learned", "reweighted"),
}
EXPERIMENTS = tuple(name for names in REPORTS.values() for name in names)
OUTCOMES = {"fig3": 10, "fig5": 5, "fig6": 20, "fig7": 100}
QUICK_CLIENTS = 20
QUICK_REPETITIONS = 20
QUICK_SET = 300


def requested_experiment_names(names: list[str]) -> list[str]:
    """The requested figures in the paper's order; "all", or nothing, is all of them. The other experiments run only when named."""
    unknown_names = [name for name in names if name not in (*FIGURES, FOLLOW_UP, POPULATION, "all")]
    if unknown_names:
        choices = ", ".join((*FIGURES, FOLLOW_UP, POPULATION, "compare"))
        raise DiscreetError(f"figure = {unknown_names[0]!r} is not one of all, {choices}")
    figures = [name for name in FIGURES if not names or name in names or "all" in names]
    following = REPORTS[FOLLOW_UP] if FOLLOW_UP in names else ()
    on_clients = (POPULATION, "designs", "learned") if POPULATION in names else ()
    return [*figures, *following, *(name for report in on_clients for name in REPORTS[report])]


def named_experiment(
    name: str, *, quick: bool = False, device: str = "cpu", corrected: bool = True
) -> Experiment[Record]:
    """An experiment by name. Quick runs have fewer clients, repetitions and less training; finite figures are the same."""
    from discreet.research.experiments import _designs as designs, _follow_up as follow_up, _paper_figures as paper
    from discreet.research.experiments._population import PopulationComparison, ReweightedComparison

    presets = ("published", "corrected") if corrected else ("published",)
    mixtures, keeps, shifts = follow_up.LocalMixtureExperiment(), designs.KeepComparison(), designs.ShiftComparison()
    learned_comparison, reweighted_comparison = designs.LearnedComparison(), ReweightedComparison()
    plans: dict[str, tuple[Any, dict[str, Any]]] = {  # the full experiment, and what a quick one changes
        "fig1": (paper.RingExperiment(device=device, presets=presets), {"training": paper.QUICK_TRAINING}),
        "fig2": (paper.FiniteLawExperiment(), {}),
        "fig4": (
            paper.MixtureExperiment(device=device, presets=presets), {"clients": QUICK_CLIENTS, "training": paper.QUICK_TRAINING},
        ),
        **{figure: (paper.WorstCaseExperiment(figure, outcomes), {}) for figure, outcomes in OUTCOMES.items()},
        "local_finite": (follow_up.LocalFiniteExperiment(), {"outcomes": (10,), "clients": QUICK_CLIENTS}),
        "local_mixtures": (mixtures, {"shapes": mixtures.shapes[:1], "clients": QUICK_CLIENTS}),
        "local_plane": (follow_up.LocalPlaneExperiment(), {}),
        "ordered": (follow_up.OrderedComparison(), {"epsilons": (1.0, 2.0), "most": QUICK_SET}),
        "population": (PopulationComparison(), {"repetitions": QUICK_REPETITIONS}),
        "designs": (designs.DesignComparison(), {"epsilons": (2.0,), "splits": 1, "clients": QUICK_SET}),
        "keeps": (keeps, {"epsilons": (1.0,), "sets": keeps.sets[-1:]}),
        "shifts": (shifts, {"epsilons": (1.0,), "shifts": shifts.shifts[-1:]}),
        "learned": (
            learned_comparison, {"epsilons": (1.0,), "times": (1,), "splits": 1, "sets": learned_comparison.sets[-1:]},
        ),
        "reweighted": (
            reweighted_comparison, {"epsilons": (1.0,), "repetitions": 2, "sets": reweighted_comparison.sets[-1:]},
        ),
    }  # fmt: skip
    full, changes = plans[name]
    return cast("Experiment[Record]", replace(full, is_quick=True, **changes) if quick else full)


def reproduce(name: str, folder: str | Path, *, quick: bool = False, **changes: Any) -> RecordedRun[Any]:
    """Run one experiment of the paper or of the follow-up, as published or with changes, and keep its records in a folder.

    An interrupted run continues where it stopped. Records of other parameters in the folder are an error, not overwritten.

    Args:
        name: "fig1" to "fig7", or a part of the others: "local_finite", "ordered", "population", "designs", ...
        folder: for the records, as JSON lines.
        quick: fewer clients and less training.
        changes: fields of the experiment to replace, such as `outcomes=50`, `epsilons=(1.0, 2.0)`, `clients=20`, `seed=7`.
            An experiment that draws clients takes as many `seeds` as budgets.

    Returns:
        The records: `.rows`, `.columns`, `.frame()`.

    Raises:
        DiscreetError: for another name, a field that the experiment does not have, or records of another run in the folder.
    """
    if not isinstance(name, str) or name not in EXPERIMENTS:
        raise DiscreetError(f"name = {name!r} is not one of {', '.join(EXPERIMENTS)}")
    experiment: Any = named_experiment(name, quick=check_flag("quick", quick))
    field_names = [
        field.name
        for field in fields(experiment)
        if field.name not in ("name", "record_type", "description", "is_quick")
    ]
    for change in changes:
        if change not in field_names:
            raise DiscreetError(f"{name} has no field {change!r} to change; it has {', '.join(field_names)}")
    return run_experiment(replace(experiment, **changes), check_path("folder", folder))
