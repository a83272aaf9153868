"""A defined result or one of our errors, from every public entry point, whatever it is given."""

import inspect
import sys
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from typer.main import get_command

import discreet
from discreet import accounting, audit, client, estimation, families, ledger, mechanisms, tables as engines
from discreet.cli._app import COMMANDS, app
from tests.fuzz.attacks import ATTACKS, attack
from tests.soaking import examples

EXAMPLES = {
    "ledgers": 60, "commands": 100, "collectors": 100, "accounting": 200, "auditing": 200, "continuous families": 200,
    "continuous samplers": 60, "tables": 200, "table files": 100, "population ledgers": 60, "designs": 100, "several": 100,
    "reports": 300, "reported populations": 200, "inverted populations": 300, "surveys": 100, "survey answers": 60,
}  # fmt: skip
ROLES = {"Domain", "ContinuousFamily", "FiniteFamily"}  # have no constructor of their own
TOLD = {
    "BudgetError",
    "DiscreetError",
    "ImpossibleError",
    "LargeEpsilonWarning",
    "LedgerError",
    "NotPrivateWarning",
    "OutsideFamilyError",
    "OutsideFamilyWarning",
}
RESULTS = {
    "BlackBoxAudit",
    "Certificate",
    "Entry",
    "Estimate",
    "GaussianLoss",
    "Inversion",
    "Liars",
    "Line",
    "Outlook",
    "OutputLaw",
    "Population",
    "RoundsCost",
    "PrivacyLoss",
    "Receipt",
    "Sent",
    "Shares",
    "Spent",
    "Summary",
    "TestedEvent",
    "Way",
    "Ways",
}
TRIES = {"commands": 60, "accounting": 8, "continuous samplers": 20, "continuous families": 30}
SLOW_COMMANDS = {"demo", "reproduce"}  # the attacks choose them now and then, too rarely to be waited for here


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_entry_point_keeps_the_contract(name: str) -> None:
    @given(st.binary(max_size=48))
    @settings(
        deadline=None,
        max_examples=examples(EXAMPLES.get(name, 500)),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def attacked(data: bytes) -> None:
        attack(name, data)

    attacked()


def entry_points() -> dict[str, CodeType]:
    """The code behind every public name that does something: functions, constructors and commands."""
    found = {}
    for module in (discreet, accounting, audit, client, engines, estimation, families, ledger, mechanisms):
        for name in set(module.__all__) - TOLD - RESULTS - ROLES - {"__version__"}:
            value: Any = getattr(module, name)
            made = inspect.getattr_static(value, "__init__") if isinstance(value, type) else value
            if callable(made):
                found[f"{module.__name__}.{name}"] = inspect.unwrap(made).__code__
    group: Any = get_command(app)
    for name in COMMANDS.keys() - SLOW_COMMANDS:
        command = group.get_command(None, name)
        for part in getattr(command, "commands", {name: command}).values():
            found[f"the command {name} {part.name}"] = inspect.unwrap(part.callback).__code__
    return found


@pytest.mark.soak
def test_every_entry_point_is_attacked() -> None:
    """Not only named: reached, by a few hundred random inputs."""
    wanted = entry_points()
    assert len(wanted) > 50
    reached: set[CodeType] = set()

    def note(frame: FrameType, _event: str, _: object) -> None:
        """Told of every call, and of nothing within it: a profile would be told of every end and of all of C as well."""
        reached.add(frame.f_code)

    rng = np.random.default_rng(0)
    for _ in range(20):
        missing = [name for name, code in wanted.items() if code not in reached]
        if not missing:
            return
        sys.settrace(note)
        try:
            for name in ATTACKS:
                for _ in range(TRIES.get(name, 15)):
                    attack(name, rng.bytes(48))
        finally:
            sys.settrace(None)
    assert not missing
