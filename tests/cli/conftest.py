from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli._app import app

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("tradeoff", "--outcomes", "10", ...)`: the result of the command, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def refusal(run: Run) -> Callable[..., str]:
    """The one line that a command must fail with: exit code 2, nothing on stdout, no traceback."""

    def line(*arguments: str) -> str:
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("discreet: ")
        assert result.stderr.count("\n") == 1
        return str(result.stderr)

    return line
