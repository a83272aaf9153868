"""Records lose nothing that was finished and repeat nothing, whatever the last line looks like."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.research import reproduce
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
    def work_unit_names(self) -> Sequence[str]:
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
    def work_unit_names(self) -> Sequence[str]:
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


def test_a_damaged_line_in_the_middle_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    run_experiment(Squares(), tmp_path)
    path = records_path(Squares(), tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"garbage\n", *lines[4:]]))
    before = path.read_bytes()
    readers: list[Callable[[], Any]] = [lambda: run_experiment(Squares(), tmp_path), lambda: squares(path)]
    for read in readers:
        with pytest.raises(dc.DiscreetError, match=r"line 4 of 7 is no JSON.*--restart"):
            read()
    assert path.read_bytes() == before


@pytest.mark.parametrize("first", ["", "1\n", "{}\n", "[]\n"])
def test_a_file_without_a_header_is_an_error_in_words(tmp_path: Path, first: str) -> None:
    path = records_path(Squares(), tmp_path)
    path.write_text(first)
    with pytest.raises(dc.DiscreetError, match="does not begin with the header"):
        squares(path)
    if first:
        with pytest.raises(dc.DiscreetError, match="does not begin with the header"):
            run_experiment(Squares(), tmp_path)


def test_records_of_units_that_a_run_does_not_have_are_no_rows_of_it(tmp_path: Path) -> None:
    """Earlier versions named some budgets by fewer digits."""
    run_experiment(Squares(), tmp_path)
    path = records_path(Squares(), tmp_path)
    with path.open("a") as file:
        file.write(json.dumps({"unit": "0.333333", "value": 9}) + "\n")
    assert [row.unit for row in run_experiment(Squares(), tmp_path).rows] == [str(i) for i in range(6)]


def test_units_have_all_digits_of_their_budgets(tmp_path: Path) -> None:
    rows = reproduce("fig2", tmp_path / "fig2", epsilons=(1.0, 1.0000001, 1 / 3)).rows
    assert [row.unit for row in rows] == ["1", "1.0000001", repr(1 / 3)]
    assert [row.epsilon for row in rows] == [1.0, 1.0000001, 1 / 3]
    (row,) = reproduce("fig4", tmp_path / "fig4", epsilons=(1 / 3,), seeds=(1,), clients=1, presets=()).rows
    assert row.epsilon == 1 / 3
    with pytest.raises(dc.DiscreetError, match=r"epsilons has 2 entries and seeds has 5"):
        reproduce("fig4", tmp_path, epsilons=(1.0, 2.0))
