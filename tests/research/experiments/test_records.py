"""Records lose nothing that was finished and repeat nothing, whatever the last line looks like."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.research.experiments.records import Row, read
from discreet.research.experiments.running import records_path, run


@dataclass(frozen=True)
class Squares:
    """Squares of the first numbers, one a unit; stops with an error when it is told to."""

    count: int = 6
    fail_at: int | None = None
    name: str = "squares"
    computes: str = "squares"
    seed: int | None = 7
    quick: bool = False
    done: list[str] = field(default_factory=list)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"count": self.count, "bounds": (0, 1.5)}

    @property
    def units(self) -> Sequence[str]:
        return [str(i) for i in range(self.count)]

    def results(self, units: Sequence[str]) -> Iterator[list[Row]]:
        for unit in units:
            if self.fail_at == int(unit):
                raise KeyboardInterrupt
            self.done.append(unit)
            yield [{"unit": unit, "value": int(unit) ** 2}]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Squares(fail_at=4), tmp_path)
    second = Squares()
    records = run(second, tmp_path)
    assert second.done == ["4", "5"]
    assert [row["value"] for row in records.rows] == [0, 1, 4, 9, 16, 25]
    third = Squares()
    assert run(third, tmp_path).rows == records.rows
    assert third.done == []


@pytest.mark.parametrize("torn", [b'{"unit": "5", "val', b'{"unit": "5", "value": 25}', b"\x00\x00\x00"])
def test_a_torn_last_line_is_done_again(tmp_path: Path, torn: bytes) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Squares(fail_at=5), tmp_path)
    path = records_path(Squares(), tmp_path)
    with path.open("ab") as file:
        file.write(torn)
    again = Squares()
    run(again, tmp_path)
    assert again.done == ["5"]
    assert [json.loads(line) for line in path.read_bytes().splitlines()][1:] == read(path)[1]
    assert len(read(path)[1]) == 6


def test_even_the_first_line_may_be_torn(tmp_path: Path) -> None:
    path = records_path(Squares(), tmp_path)
    path.write_bytes(b'{"exper')
    assert len(run(Squares(), tmp_path).rows) == 6
    assert read(path)[0]["seed"] == 7


def test_records_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    run(Squares(), tmp_path)
    with pytest.raises(dc.DiscreetError, match=r"parameters differ.*--restart"):
        run(Squares(count=7), tmp_path)
    assert len(run(Squares(count=7), tmp_path, restart=True).rows) == 7


def test_the_header_says_what_was_run(tmp_path: Path) -> None:
    run(Squares(), tmp_path)
    first, _ = read(records_path(Squares(), tmp_path))
    assert first["version"] == dc.__version__
    assert (first["experiment"], first["seed"], first["quick"]) == ("squares", 7, False)
    assert first["parameters"] == {"count": 6, "bounds": [0, 1.5]}


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run(Squares(count=3), tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
