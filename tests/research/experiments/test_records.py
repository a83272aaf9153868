"""Records lose nothing that was finished and repeat nothing, whatever the last line looks like."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.research.experiments import RecordedRun, read_records, records_path, run_experiment


@dataclass(frozen=True)
class Square:
    unit: str
    value: int


@dataclass(frozen=True)
class Squares:
    """Squares of the first numbers, one a unit; stops with an error when it is told to."""

    count: int = 6
    fail_at: int | None = None
    name: str = "squares"
    description: str = "squares"
    seed: int | None = 7
    is_quick: bool = False
    done: list[str] = field(default_factory=list)
    record_type: type[Square] = Square

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"count": self.count, "bounds": (0, 1.5)}

    @property
    def unit_names(self) -> Sequence[str]:
        return [str(i) for i in range(self.count)]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[Square]]:
        for unit in units:
            if self.fail_at == int(unit):
                raise KeyboardInterrupt
            self.done.append(unit)
            yield [Square(unit, int(unit) ** 2)]


def squares(path: Path) -> RecordedRun[Square]:
    return read_records(path, Square)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(Squares(fail_at=4), tmp_path)
    second = Squares()
    records = run_experiment(second, tmp_path)
    assert second.done == ["4", "5"]
    assert [row.value for row in records.rows] == [0, 1, 4, 9, 16, 25]
    third = Squares()
    assert run_experiment(third, tmp_path).rows == records.rows
    assert third.done == []


@pytest.mark.parametrize("torn", [b'{"unit": "5", "val', b'{"unit": "5", "value": 25}', b"\x00\x00\x00"])
def test_a_torn_last_line_is_done_again(tmp_path: Path, torn: bytes) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(Squares(fail_at=5), tmp_path)
    path = records_path(Squares(), tmp_path)
    with path.open("ab") as file:
        file.write(torn)
    again = Squares()
    run_experiment(again, tmp_path)
    assert again.done == ["5"]
    rows = squares(path).rows
    assert [json.loads(line) for line in path.read_bytes().splitlines()][1:] == [asdict(row) for row in rows]
    assert len(rows) == 6


def test_even_the_first_line_may_be_torn(tmp_path: Path) -> None:
    path = records_path(Squares(), tmp_path)
    path.write_bytes(b'{"exper')
    assert len(run_experiment(Squares(), tmp_path).rows) == 6
    assert squares(path).header.seed == 7


def test_records_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    run_experiment(Squares(), tmp_path)
    with pytest.raises(dc.DiscreetError, match=r"parameters differ.*--restart"):
        run_experiment(Squares(count=7), tmp_path)
    assert len(run_experiment(Squares(count=7), tmp_path, restart=True).rows) == 7


def test_the_header_says_what_was_run(tmp_path: Path) -> None:
    run_experiment(Squares(), tmp_path)
    header = squares(records_path(Squares(), tmp_path)).header
    assert header.version == dc.__version__
    assert (header.experiment, header.seed, header.quick) == ("squares", 7, False)
    assert header.parameters == {"count": 6, "bounds": [0, 1.5]}


@dataclass(frozen=True)
class Inner:
    names: dict[str, float]
    maybe: float | None = None


@dataclass(frozen=True)
class Nested:
    unit: str
    numbers: tuple[float, ...]
    inner: dict[str, Inner]
    one: Inner


@dataclass(frozen=True)
class Nests:
    """One unit of everything that a record may hold."""

    name: str = "nests"
    description: str = "nests"
    seed: int | None = None
    is_quick: bool = True
    record_type: type[Nested] = Nested

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {}

    @property
    def unit_names(self) -> Sequence[str]:
        return ["a"]

    def compute_records_in_batches(self, units: Sequence[str]) -> Iterator[list[Nested]]:
        yield [Nested("a", (1.0, 0.1 + 0.2), {"x": Inner({"kl": 1e-300}), "y": Inner({}, 2.5)}, Inner({"tv": 0.5}))]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    written = run_experiment(Nests(), tmp_path)
    assert read_records(records_path(Nests(), tmp_path), Nested) == written
    assert run_experiment(Nests(), tmp_path) == written


def test_records_of_another_form_are_named(tmp_path: Path) -> None:
    run_experiment(Squares(), tmp_path)
    path = records_path(Squares(), tmp_path)
    path.write_text(path.read_text().replace('"value"', '"other"'))
    with pytest.raises(dc.DiscreetError, match=r"holds no Square records of this version.*--restart"):
        run_experiment(Squares(), tmp_path)


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run_experiment(Squares(count=3), tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
