import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet import OptimalSampler, Simplex
from discreet.agreement import Agreement
from discreet.ledger import Ledger

Run = Callable[..., Any]


def test_create_charge_and_show(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    assert run("ledger", "create", path, "--epsilon", "2").exit_code == 0
    assert "Spent 0.0000, left 2.0000" in run("ledger", "show", path).stdout
    sampler = OptimalSampler(Simplex(3), epsilon=0.5)
    agreed = Agreement.of(sampler)
    Ledger(path).release(sampler, [1.0, 0.0, 0.0], agreement=agreed)
    shown = run("ledger", "show", path).stdout
    assert agreed.id[:12] in shown
    assert "Spent 0.5000, left 1.5000" in shown
    record = json.loads(run("ledger", "show", path, "--json").stdout)
    assert (record["budget"], record["left"]) == ({"epsilon": 2.0, "delta": 0.0}, 1.5)
    assert record["charges"][0]["agreement"] == agreed.id
    assert "exists already" in refusal("ledger", "create", path, "--epsilon", "5")
    assert "there is no ledger" in refusal("ledger", "show", path + "x")
    assert "epsilon = -1" in refusal("ledger", "create", path + "y", "--epsilon", "-1")
    assert not Path(path + "y").exists()


def test_create_prints_json(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    record = json.loads(run("ledger", "create", path, "--epsilon", "2", "--delta", "1e-6", "--json").stdout)
    assert record == {"file": path, "budget": {"epsilon": 2.0, "delta": 1e-6}}
    assert Ledger(path).budget.epsilon == 2.0


def test_a_budget_at_delta_shows_both_sums(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    run("ledger", "create", path, "--epsilon", "1", "--delta", "1e-6")
    ledger = Ledger(path)
    sampler = OptimalSampler(Simplex(50), epsilon=0.1)
    for number in range(1, 9):
        ledger.release(sampler, [1.0] + [0.0] * 49, agreement=Agreement.of(sampler, rounds=8), round=number)
    shown = run("ledger", "show", path).stdout
    assert "at delta = 1e-06" in shown
    assert "add up to 0.8000" in shown
