"""Results as data: one JSON line each, appended and synced as soon as it is known, so that a killed run loses nothing finished.

The first line says what was run: experiment, version, seed, parameters. Every other line is one finished unit of work. A last line
without its end was being written when the process died: it is cut off, and its unit is done again.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from discreet._version import __version__
from discreet.errors import DiscreetError

Row = dict[str, Any]


class Experiment(Protocol):
    """A declared experiment: what it is called, what it computes, with which parameters and seed, in which units of work."""

    @property
    def name(self) -> str: ...
    @property
    def computes(self) -> str: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def quick(self) -> bool: ...
    @property
    def parameters(self) -> Mapping[str, Any]:
        """What decides the results, as JSON."""

    @property
    def units(self) -> Sequence[str]:
        """The names of all units of work, in order."""

    def results(self, units: Sequence[str]) -> Iterator[list[Row]]:
        """Finished units, some at a time, each a row with its name under "unit"."""


def header(experiment: Experiment) -> Row:
    """What the first line of an experiment's records says."""
    said = {
        "experiment": experiment.name,
        "computes": experiment.computes,
        "version": __version__,
        "seed": experiment.seed,
        "quick": experiment.quick,
        "parameters": dict(experiment.parameters),
    }
    return dict(json.loads(json.dumps(said)))  # as it will read back


class Records:
    """The records of one experiment in one file."""

    def __init__(self, path: Path, first: Row) -> None:
        self.path = path
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _append(path, [first])
        whole = _without_torn_line(path)
        if not whole:
            _append(path, [first])
            whole = [first]
        if whole[0] != first:
            different = [key for key in first if whole[0].get(key) != first[key]]
            raise DiscreetError(
                f"{path} holds another run ({', '.join(different)} differ); give another --out, or --restart to replace it"
            )
        self.first, self.rows = first, whole[1:]

    @property
    def finished(self) -> set[str]:
        """The units that are there."""
        return {row["unit"] for row in self.rows}

    def add(self, rows: Sequence[Row]) -> None:
        """Append finished units and wait until they are on the disk."""
        _append(self.path, rows)
        self.rows.extend(rows)


def read(path: Path) -> tuple[Row, list[Row]]:
    """The first line and the finished units of a records file."""
    first, *rows = _whole_lines(path)[0]
    return first, rows


def _append(path: Path, rows: Iterable[Row]) -> None:
    text = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    with path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _without_torn_line(path: Path) -> list[Row]:
    rows, length = _whole_lines(path)
    if length < path.stat().st_size:
        with path.open("r+b") as file:
            file.truncate(length)
            os.fsync(file.fileno())
    return rows


def _whole_lines(path: Path) -> tuple[list[Row], int]:
    """The lines that were written to their end, and how many bytes they take."""
    rows: list[Row] = []
    length = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
        length += len(line)
    return rows, length
