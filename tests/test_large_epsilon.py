"""An epsilon that is too large to be meant, such as a percentage: commands refuse it, Python warns, and what only computes does not."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.accounting import BoxProfile, compose
from discreet.cli._app import app
from discreet.ledger import Ledger

FAMILY = dc.Simplex(10)


@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
def test_a_sampler_warns_where_it_is_made(kind: Callable[..., Any]) -> None:
    with pytest.warns(dc.LargeEpsilonWarning, match="epsilon = 95 hides next to nothing.*not a percentage") as told:
        kind(FAMILY, epsilon=95.0)
    assert [Path(each.filename).name for each in told] == [Path(__file__).name]  # once, at the line that asks for it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(FAMILY, epsilon=10.0)


def test_a_release_of_a_table_and_an_agreed_sampler_warn() -> None:
    with pytest.warns(dc.LargeEpsilonWarning):
        dc.tables.sample(_table(), client="who", value="what", domain=3, epsilon=95.0)
    with pytest.warns(dc.LargeEpsilonWarning):
        agreed = dc.Agreement.of(dc.OptimalSampler(FAMILY, epsilon=11.0))
    with pytest.warns(dc.LargeEpsilonWarning):
        dc.Agreement.from_json(agreed.text).sampler()


def test_what_only_computes_does_not_mind() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dc.minimax_risk(FAMILY, epsilon=95.0, divergence="kl")
        dc.epsilon_for(FAMILY, divergence="tv", risk=1e-9)
        compose([(BoxProfile(epsilon=20.0, alpha=0.1), 3)]).epsilon(1e-6)


def _table() -> Any:
    import pyarrow as pa

    return pa.table({"who": ["a", "b"], "what": [0, 1]})


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("who,what\na,0\nb,1\n")

    def invoked(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, arguments)
        return result.exit_code, result.stderr + result.stdout

    return invoked


def test_commands_that_release_or_prepare_it_refuse(told: Callable[..., tuple[int, str]]) -> None:
    sampling = ("sample", "in.csv", "--client", "who", "--value", "what")
    assert told("agree", "large.json", "--outcomes", "3", "--epsilon", "95", "--allow-large-epsilon")[0] == 0
    assert told("secret", "s")[0] == 0
    commands = [
        (*sampling, "--domain-size", "3", "--epsilon", "95", "-o", "out.csv"),
        (*sampling, "--domain-size", "3", "--epsilon", "10.001", "-o", "out.csv"),
        (*sampling, "--agreement", "large.json", "-o", "out.csv"),
        (*sampling, "--domain-size", "3", "--epsilon", "1", "--secret", "s", "--ledger", "l", "--budget", "95", "-o", "out.csv"),
        ("agree", "new.json", "--outcomes", "3", "--epsilon", "95"),
        ("ledger", "create", "books", "--epsilon", "95"),
    ]  # fmt: skip
    for command in commands:
        code, said = told(*command)
        assert code == 2, said
        assert "hides next to nothing" in said
        assert "--allow-large-epsilon" in said
    assert {path.name for path in Path().iterdir()} == {"in.csv", "large.json", "s"}
    for command in commands[2:]:
        code, said = told(*command, *(["--force"] if command[0] == "sample" else []), "--allow-large-epsilon")
        assert code == 0, said
    assert Ledger("books").budget.epsilon == 95.0
    assert "Note: epsilon = 95 hides next to nothing" in told("agree", "large.json", "--check")[1].replace("\n", " ")


def test_rounds_that_are_too_much_together_are_refused(told: Callable[..., tuple[int, str]]) -> None:
    """365 rounds of 1 each are 365 together, which is no less than an epsilon of 365."""
    sampling = ("sample", "in.csv", "--client", "who", "--value", "what")
    rounds = ("--outcomes", "3", "--epsilon", "1", "--rounds", "365")
    assert told("agree", "large.json", *rounds, "--allow-large-epsilon")[0] == 0
    commands = [
        ("agree", "new.json", *rounds),
        ("agree", "nu.json", "--outcomes", "3", "--nu", "0.5", "--rounds", "365"),
        (*sampling, "--domain-size", "3", "--epsilon", "1", "--rounds", "11", "-o", "out.csv"),
        (*sampling, "--agreement", "large.json", "-o", "other.csv"),
        ("design", "in.csv", "--client", "who", "--value", "what", "--domain-size", "3", "--epsilon", "2", "--rounds", "6", "-o", "d.json"),
    ]  # fmt: skip
    for command in commands:
        code, said = told(*command)
        said = " ".join(said.split())
        assert code == 2, said
        assert "together: " in said
        assert "--allow-large-epsilon" in said
    assert {path.name for path in Path().iterdir()} == {"in.csv", "large.json"}
    for command in commands:
        code, said = told(*command, "--allow-large-epsilon")
        assert code == 0, said
    said = " ".join(told("agree", "large.json", "--check")[1].split())
    assert "epsilon = 1 for each of 365 samples (365-LDP for all 365 together)" in said
    assert "365 rounds at 1-LDP each are 365-LDP together: epsilon = 365 hides next to nothing" in said
    code, said = told("agree", "few.json", "--outcomes", "3", "--epsilon", "1", "--rounds", "10")
    assert code == 0, said
    assert json.loads(told("agree", "few.json", "--check", "--json")[1])["together"] == "10-LDP"


def test_an_agreement_on_so_many_rounds_warns() -> None:
    sampler = dc.LinearSampler(FAMILY, epsilon=1.0)
    with pytest.warns(dc.LargeEpsilonWarning, match="11 rounds at 1-LDP each are 11-LDP together"):
        dc.Agreement.of(sampler, rounds=11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dc.Agreement.of(sampler, rounds=10)
        dc.Agreement.of(dc.LinearSampler(FAMILY, privacy=dc.Gaussian(0.1)), rounds=100)  # 1-Gaussian together


def test_commands_that_only_compute_do_not(told: Callable[..., tuple[int, str]]) -> None:
    for command in (
        ("tradeoff", "--outcomes", "3", "--epsilon", "95"),
        ("account", "--outcomes", "3", "--epsilon", "20"),
        ("certify", "--outcomes", "3", "--epsilon", "20", "-o", "certificate.json"),
    ):
        code, said = told(*command)
        assert code == 0, said
        assert "Warning" not in said


@pytest.mark.parametrize("epsilon", ["nan", "inf", "-1", "0"])
def test_what_is_no_epsilon_is_refused_as_such(told: Callable[..., tuple[int, str]], epsilon: str) -> None:
    code, said = told(
        "sample",
        "in.csv",
        "--client",
        "who",
        "--value",
        "what",
        "--domain-size",
        "3",
        "--epsilon",
        epsilon,
        "-o",
        "out.csv",
    )
    assert code == 2
    assert "is not in (0, inf)" in said
    assert "--allow-large-epsilon" not in said
