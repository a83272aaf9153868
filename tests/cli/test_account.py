import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Refusal = Callable[..., str]


@pytest.mark.slow
def test_the_table_and_the_json_agree(run: Run) -> None:
    arguments = ("account", "--epsilon", "0.5", "--outcomes", "10", "--samples", "64", "--clients", "1000")
    record = json.loads(run(*arguments, "--json").stdout)
    (row,) = record["samples"]
    assert (row["samples"], row["basic"], row["attained"]) == (64, 32.0, True)
    assert round(row["composed"], 2) == 10.99
    printed = run(*arguments).stdout
    for value in (row["basic"], row["renyi"], row["composed"], record["shuffled"]["epsilon"]):
        assert f"{value:.4f}" in printed


def test_a_total_is_split(run: Run) -> None:
    record = json.loads(run("account", "--total", "2", "--alpha", "0.01", "--samples", "8", "--json").stdout)
    assert record["samples"][0]["basic"] == 0.25
    assert record["samples"][0]["epsilon"] > 0.25
    assert (
        f"{record['samples'][0]['epsilon']:.4f}"
        in run("account", "--total", "2", "--alpha", "0.01", "--samples", "8").stdout
    )


def test_a_bound_is_not_called_exact(run: Run) -> None:
    assert "upper bound" in run("account", "--epsilon", "1", "--alpha", "0.3").stdout
    assert "two clients reach it" in run("account", "--epsilon", "1", "--outcomes", "3", "--delta", "0").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "either --epsilon"),
        (("--epsilon", "1", "--total", "1", "--outcomes", "3"), "either --epsilon"),
        (("--epsilon", "1"), "either --outcomes"),
        (("--epsilon", "nan", "--outcomes", "3"), "epsilon = nan"),
        (("--epsilon", "1", "--outcomes", "0"), "outcomes = 0"),
        (("--epsilon", "1", "--alpha", "2"), "alpha = 2"),
        (("--epsilon", "1", "--alpha", "0.1", "--samples", "0"), "samples = 0"),
        (("--epsilon", "1", "--alpha", "0.1", "--delta", "2"), "delta = 2"),
        (("--epsilon", "1", "--alpha", "0.1", "--clients", "0"), "clients = 0"),
        (("--total", "1", "--alpha", "0.1", "--clients", "5"), "--clients"),
    ],
)
def test_mistakes_get_one_line(refusal: Refusal, arguments: tuple[str, ...], says: str) -> None:
    assert says in refusal("account", *arguments)
