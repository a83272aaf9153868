"""One set of options for the domain: every command that takes one says it in the same words and means the same."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer.main

from discreet.cli._app import app
from tests.cli.conftest import Run

STATED = ("--domain", "--domain-size", "--bounds", "--cells")
COMMANDS = {
    "sample": ("sample", "in.parquet", "--client", "who", "--value", "what", "--epsilon", "1", "-o", "out.parquet"),
    "design": ("design", "in.parquet", "--client", "who", "--value", "what", "--epsilon", "1", "-o", "out.json"),
    "agree": ("agree", "out.json", "--epsilon", "1"),
    "plan": ("plan", "--clients", "100", "--example", "in.parquet", "--client", "who", "--value", "what"),
}


def options(command: str) -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    found = group.get_command(None, command)
    return {option: parameter for parameter in found.params for option in parameter.opts}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_states_a_domain_in_the_same_words(command: str) -> None:
    for name in STATED + (() if command == "agree" else ("--other", "--nulls")):
        here, there = options(command)[name], options("sample")[name]
        assert (here.opts, here.help, here.metavar) == (there.opts, there.help, there.metavar)


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ((), "give the public domain once"),
        (("--domain", "labels.txt", "--outcomes", "3"), "give the public domain once"),
        (("--bounds", "0", "1"), "--bounds LO HI and --cells N go together"),
        (("--cells", "3"), "--bounds LO HI and --cells N go together"),
        (("--bounds", "1", "0", "--cells", "3"), "bounds 1 and 0 do not enclose an interval"),
        (("--bounds", "1e16", "10000000000000010", "--cells", "30"), "floats cannot tell so many apart"),
        (("--domain-size", "0"), "domain size = 0 is less than 1"),
        (("--domain", "twice.txt"), "domain file twice.txt: duplicate labels: 'a'"),
        (("--domain", "empty.txt"), "domain file empty.txt is empty; each line is a label"),
        (("--domain", "in.parquet"), "called like a table"),
    ],
)
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_mistakes_are_the_same_everywhere(
    refusal: Callable[..., str],
    command: str,
    stated: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.txt").write_text("a\nb\n")
    Path("twice.txt").write_text("a\na\n")
    Path("empty.txt").write_text("")
    pl.DataFrame({"who": [1], "what": ["a"]}).write_parquet("in.parquet")
    assert says in refusal(*COMMANDS[command], *stated)
    assert not Path("out.json").exists()
    assert not Path("out.parquet").exists()


def test_examples_and_truth_are_read_as_a_release_reads_them(
    run: Run, refusal: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = pl.DataFrame({"who": [0, 0, 1, 2, 3], "what": [0.1, None, 0.7, 9.0, 0.2]})
    records.write_parquet("in.parquet")
    stated = ("--bounds", "0", "1", "--cells", "2")
    columns = ("--client", "who", "--value", "what")
    others = ("--nulls", "drop", "--other", "nearest")
    planned = ("plan", "--clients", "50", "--epsilon", "2", *stated, "--example", "in.parquet", *columns, "--json")
    assert "holds nulls (1 in 5 rows)" in refusal(*planned)
    assert "values outside the domain" in refusal(*planned, "--nulls", "drop")
    assert json.loads(run(*planned, *others).stdout)["rehearsals"]
    released = ("sample", "in.parquet", *columns, *stated, *others, "--epsilon", "2", "-o", "out.parquet", "-q")
    assert run(*released).exit_code == 0
    compared = run("estimate", "out.parquet", "--truth", "in.parquet", *columns, *others, "--json")
    shares = json.loads(compared.stdout)["shares"]
    assert [share["truth"] for share in shares] == [0.5, 0.5]
    assert [share["outcome"] for share in shares] == ["0.000 to 0.500", "0.500 to 1.000"]
