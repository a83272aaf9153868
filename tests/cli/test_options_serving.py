"""To estimate a population, or to serve each client: asked on a terminal, else the population, and said."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

from discreet.agreement import Agreement
from discreet.cli import _options as options
from discreet.errors import DiscreetError

Run = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"who": range(30), "what": ["a", "b", "a"] * 10}).write_csv("in.csv")
    Path("labels.txt").write_text("a\nb\n")
    return tmp_path


TABLE = (
    "sample",
    "in.csv",
    "--client",
    "who",
    "--value",
    "what",
    "--domain",
    "labels.txt",
    "--epsilon",
    "1",
    "--force",
)
SAMPLE = (*TABLE, "--write-agreement", "agreed.json", "-o", "out.csv")


def sampled(run: Run, *more: str) -> tuple[str, str]:
    Path("agreed.json").unlink(missing_ok=True)
    result = run(*SAMPLE, *more)
    assert result.exit_code == 0, result.output
    return Agreement.read("agreed.json").mechanism, result.stderr


def test_elsewhere_the_population_is_meant_and_said(folder: Path, run: Run) -> None:
    mechanism, told = sampled(run)
    assert mechanism == "linear"
    assert options.LINEAR_BY_DEFAULT in told
    assert sampled(run, "--quiet") == ("linear", "")
    made = run("agree", "a.json", "--epsilon", "1", "--outcomes", "3")
    assert options.LINEAR_BY_DEFAULT in " ".join(made.stdout.split())
    assert Agreement.read("a.json").mechanism == "linear"


@pytest.mark.slow
def test_what_is_said_is_taken_without_a_word(folder: Path, run: Run) -> None:
    for said, mechanism in (
        (("--for", "population"), "linear"), (("--for", "clients"), "optimal"), (("--mechanism", "optimal"), "optimal"),
        (("--mechanism", "mollifier"), "mollifier"), (("--for", "clients", "--mechanism", "optimal"), "optimal"),
    ):  # fmt: skip
        found, told = sampled(run, *said)
        assert found == mechanism
        assert "was taken" not in told
        planned = (
            json.loads(run("plan", "--outcomes", "3", "--clients", "99", *said[:2], "--json").stdout)
            if said[0] == "--for"
            else None
        )
        assert planned is None or planned["mechanism"] == mechanism


def test_contradictions_are_refused_by_name(folder: Path, refusal: Callable[..., str]) -> None:
    for command in (SAMPLE, ("agree", "a.json", "--epsilon", "1", "--outcomes", "3")):
        said = refusal(*command, "--for", "population", "--mechanism", "optimal")
        assert "(--for) takes the mechanism 'linear', not 'optimal'" in said
        assert "(--for) is not one of population, clients" in refusal(*command, "--for", "everybody")
    assert "--for is for a new agreement" in refusal("agree", "a.json", "--check", "--for", "clients")
    assert not Path("out.csv").exists()
    assert not Path("a.json").exists()


def test_an_agreement_has_decided_it(folder: Path, run: Run, refusal: Callable[..., str]) -> None:
    assert run("agree", "a.json", "--epsilon", "1", "--domain", "labels.txt", "--for", "clients").exit_code == 0
    under = ("sample", "in.csv", "--client", "who", "--value", "what", "--agreement", "a.json", "-o", "out.csv")
    assert "mechanism = 'linear' is not the mechanism = 'optimal'" in refusal(*under, "--for", "population")
    result = run(*under, "--for", "clients")
    assert result.exit_code == 0, result.output
    assert "was taken" not in result.stderr


@pytest.mark.parametrize(("answer", "mechanism"), [("population", "linear"), ("c", "optimal"), ("Clients ", "optimal")])
def test_on_a_terminal_it_is_asked(monkeypatch: pytest.MonkeyPatch, answer: str, mechanism: str) -> None:
    asked: list[str] = []

    def prompt(text: str, **how: Any) -> str:
        asked.append(text)
        assert how["err"]
        return answer

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert options.choose_mechanism_and_note(None, None) == (mechanism, None)
    assert asked == ["Estimate a population, or serve each client? (population or clients)"]
    assert options.choose_mechanism_and_note("clients", None) == ("optimal", None)
    assert options.choose_mechanism_and_note(None, "linear") == ("linear", None)
    assert options.choose_mechanism_and_note(None, None, may_ask=False) == ("linear", options.LINEAR_BY_DEFAULT)
    assert len(asked) == 1


def test_a_question_without_an_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-D and Ctrl-C end the question without a traceback."""

    def prompt(text: str, **how: Any) -> str:
        raise typer.Abort

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with pytest.raises(
        DiscreetError, match="the question was not answered, and nothing was done; say --for population"
    ):
        options.choose_mechanism_and_note(None, None)
