"""Run a declared experiment from where its records end."""

from collections.abc import Callable
from pathlib import Path

from discreet.research.experiments._records import Experiment, Header, R, Record, RecordedRun, RecordFile

Progress = Callable[[int, int], None]


def records_path(experiment: Experiment[Record], folder: Path) -> Path:
    """Where an experiment's records lie; those of quick runs are named so."""
    return folder / f"{experiment.name}{'.quick' if experiment.quick else ''}.jsonl"


def run_experiment(
    experiment: Experiment[R], folder: Path, progress: Progress | None = None, *, restart: bool = False
) -> RecordedRun[R]:
    """The complete records of the experiment in that folder, in order; units that are finished there are not done again.

    `progress` is told how many units are finished, of how many.
    """
    path = records_path(experiment, folder)
    if restart:
        path.unlink(missing_ok=True)
    records = RecordFile(path, Header.of(experiment), experiment.record)
    finished, units = records.finished_units, experiment.units
    missing = [unit for unit in units if unit not in finished]
    if progress:
        progress(len(units) - len(missing), len(units))
    for rows in experiment.results(missing) if missing else ():
        records.add(rows)
        if progress:
            progress(len(records.rows), len(units))
    order = {unit: place for place, unit in enumerate(units)}
    rows = sorted(records.rows, key=lambda row: order.get(row.unit, len(order)))
    return RecordedRun(records.header, rows)
