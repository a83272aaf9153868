import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet import Interval, OptimalSampler, Simplex
from discreet.agreement import Agreement

Run = Callable[..., Any]


def test_write_and_check(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path, labels = str(tmp_path / "a.json"), tmp_path / "labels.txt"
    labels.write_text("red\ngreen\nblue\n")
    terms = ("--epsilon", "0.5", "--domain", str(labels), "--rounds", "3", "--purpose", "colours", "--for", "clients")
    made = run("agree", path, *terms)
    assert made.exit_code == 0, made.output
    expected = Agreement.of(OptimalSampler(Simplex(["red", "green", "blue"]), epsilon=0.5), rounds=3, purpose="colours")
    assert expected.id in made.stdout.replace("\n", "")
    assert Agreement.read(path) == expected
    assert Agreement.read(path).domain.labels == ("red", "green", "blue")
    assert run("agree", path, *terms).exit_code == 0
    record = json.loads(run("agree", path, "--check", "--json").stdout)
    assert record == {"id": expected.id, "agreement": expected.document}
    assert "exists already" in refusal("agree", path, "--epsilon", "0.5", "--outcomes", "3")
    banded = run(
        "agree",
        str(tmp_path / "b.json"),
        "--epsilon",
        "1",
        "--outcomes",
        "4",
        "--lower",
        "0.5",
        "--upper",
        "2",
        "--json",
    )
    assert json.loads(banded.stdout)["agreement"]["family"]["lower"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "needs --epsilon"),
        (("--epsilon", "1"), "give the public domain once"),
        (("--epsilon", "nan", "--outcomes", "3"), "epsilon = nan"),
        (("--epsilon", "1", "--outcomes", "3", "--mechanism", "best"), "'best'"),
        (("--epsilon", "1", "--outcomes", "3", "--rounds", "0"), "rounds = 0"),
        (("--epsilon", "1", "--domain", "nowhere.txt"), "nowhere.txt"),
        (("--check",), "new.json"),
    ],
)
def test_mistakes_get_one_line(
    refusal: Callable[..., str], arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refusal("agree", "new.json", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_cells_of_an_interval(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path = str(tmp_path / "cells.json")
    made = run("agree", path, "--epsilon", "1", "--bounds", "-1", "4", "--cells", "10", "--mechanism", "optimal")
    assert made.exit_code == 0, made.output
    assert Agreement.read(path) == Agreement.of(OptimalSampler(Simplex(Interval(-1.0, 4.0, cells=10)), epsilon=1.0))
    for arguments, says in (
        (("--bounds", "0", "1"), "go together"),
        (("--outcomes", "3", "--cells", "3"), "go together"),
        (("--outcomes", "3", "--bounds", "0", "1", "--cells", "3"), "give the public domain once"),
        (("--bounds", "1", "0", "--cells", "3"), "do not enclose an interval"),
        (("--bounds", "0", "1", "--cells", "0"), "cells = 0"),
    ):
        assert says in refusal("agree", str(tmp_path / "new.json"), "--epsilon", "1", *arguments)
