import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.main import get_command

import discreet
from discreet import cli, plots
from discreet.cli import _demo as demo
from discreet.cli._app import COMMANDS, app

Run = Callable[..., Any]


def test_version(run: Run) -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"discreet {discreet.__version__}\n")


def test_without_arguments_it_shows_its_help(run: Run) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout == run("--help").stdout
    assert "tradeoff" in result.stdout
    assert "demo" in result.stdout


def test_every_command_prints_json() -> None:
    group: Any = get_command(app)
    for name in COMMANDS:
        command = group.get_command(None, name)
        for part in getattr(command, "commands", {name: command}).values():
            assert "--json" in {option for parameter in part.params for option in parameter.opts}, part.name


NOT_NEEDED = {"pandas", "pyarrow.compute", "rich", "numba", "matplotlib", "discreet.estimation"} | {
    "numpy.random", "numpy.ma", "scipy", "sqlite3", "discreet.accounting._composition", "discreet.agreement._continuous_terms",
    "discreet.agreement._mechanism_terms", "discreet.families._continuous", "discreet.ledger._book",
    "discreet.mechanisms._reports", "discreet.mechanisms._several_samples", "discreet.survey._sampler",
}  # fmt: skip


def test_a_small_release_loads_only_what_it_needs(tmp_path: Path) -> None:
    """None of these is needed, and together they take longer to load than the release itself."""
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"who": ["a", "b", "b"], "what": [0, 1, 1]}).write_parquet(source)
    terms = ["sample", str(source), "--client", "who", "--value", "what", "--domain-size", "2", "--epsilon", "1"]
    program = (
        f"import sys; sys.argv = ['discreet', *{terms!r}, '-o', {str(output)!r}, '--quiet']\n"
        "from discreet.cli import main\n"
        "try:\n    main()\nfinally:\n"
        f"    print(*sorted({NOT_NEEDED!r}.intersection(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")
    assert pl.read_parquet(output).height == 2


@pytest.mark.parametrize(
    ("arguments", "threads"),
    [
        (["sample", "in.parquet", "--domain-size", "2"], "1"),
        (["sample", "in.parquet", "--agreement", "terms.json"], None),
        (["sample", "in.parquet", "--survey=questions.json"], None),
        (["estimate", "samples.parquet"], None),
    ],
)
def test_only_a_release_on_a_list_of_outcomes_sets_the_threads_of_blas(
    arguments: list[str], threads: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers rounded by another number of threads would make another design of a survey, and another id."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "to be restored")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == threads


def test_an_unknown_command_is_one_line(refusal: Callable[..., str]) -> None:
    assert "'nonsense'" in refusal("nonsense")


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    for module in [name for name in sys.modules if name.startswith("discreet.cli.")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert (
        capsys.readouterr().err
        == "discreet: typer is not installed. In a checkout of discreet, install it with: pip install '.[cli]'\n"
    )


def test_a_missing_plot_library_is_one_line(refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in [name for name in sys.modules if name.startswith("discreet.plots.")]:
        monkeypatch.delitem(sys.modules, module)
    for name in plots.__all__:  # loaded already by another test
        monkeypatch.delitem(vars(plots), name, raising=False)
    said = refusal("tradeoff", "--outcomes", "3", "--epsilon", "1:2:3", "--plot", "curve.png")
    assert (
        said
        == "discreet: matplotlib is not installed. In a checkout of discreet, install it with: pip install '.[cli]'\n"
    )


def test_main_runs_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["discreet", "--version"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"discreet {discreet.__version__}\n"


@pytest.mark.slow
def test_the_package_is_the_command() -> None:
    program = [sys.executable, "-m", "discreet", "--version"]
    found = subprocess.run(program, check=True, capture_output=True, text=True)
    assert found.stdout == f"discreet {discreet.__version__}\n"


def test_a_bug_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One-line errors are for what users can mend; hiding anything else would hide bugs."""

    def broken() -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(demo, "logbooks", broken)
    assert isinstance(run("demo").exception, ZeroDivisionError)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_mistake_has_its_status_where_it_cannot_be_told() -> None:
    """Status 1 of an audit says that a claim is refuted."""
    command = [sys.executable, "-m", "discreet", "audit", "optimal", "--epsilon", "1"]
    with open("/dev/full", "w") as full:
        assert subprocess.run(command, stdout=subprocess.PIPE, stderr=full, check=False).returncode == 2
