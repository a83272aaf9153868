"""A defined result or one of our errors, from every public entry point, whatever it is given."""

import inspect
import sys
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from typer.main import get_command

from discreet.cli._app import COMMANDS, app
from tests.fuzz.attacks import ATTACKS, attack
from tests.public import is_interface, is_record, public_callables, public_modules
from tests.soaking import examples

EXAMPLES = {
    "ledgers": 60, "commands": 100, "collectors": 100, "accounting": 200, "auditing": 200, "continuous families": 200,
    "continuous samplers": 60, "tables": 200, "table files": 100, "population ledgers": 60, "designs": 100, "several": 100,
    "reports": 400, "reported populations": 400, "inverted populations": 200, "surveys": 200, "survey answers": 120, "domains": 200,
    "terms": 400, "exact numbers": 400, "integer draws": 400, "stores": 200, "pictures": 80, "tensors": 400, "private texts": 120,
    "comparisons": 120, "learned designs": 80, "methods": 200,
}  # fmt: skip
TRIES = {
    "commands": 60,
    "plans": 30,
    "pictures": 30,
    "reported populations": 40,
    "accounting": 8,
    "continuous samplers": 20,
    "continuous families": 30,
}
NOT_ATTACKED = {  # with the reason
    "discreet.cli.main": "reads the arguments of the process; the commands are attacked one by one",
    "discreet.audit.verify.main": "the same, of a script",
    "discreet.collect.serve": "stays; its settings are attacked through the command collect",
    "discreet.mechanisms.warm_up.warm_up": "takes no arguments",
    "discreet.research.warm_up.warm_up": "takes no arguments",
    "discreet.tables.warm_up.warm_up": "takes no arguments",
    "discreet.research.data.destinations": "takes no arguments",
    "discreet.research.data.flights": "takes no arguments",
    "discreet.research.data.time_zones": "takes no arguments",
    "discreet.research.data.zone_logbooks": "takes no arguments",
    "discreet.projection.jax.output_function": "JAX is for a process of its own (tests/projection/test_jax.py)",
    "discreet.tables.spark.sample": "a Spark session takes 15 s to start (tests/tables/test_spark.py)",
    "discreet.tables.spark.sample_files": "a Spark session takes 15 s to start (tests/tables/test_spark.py)",
}
SLOW_COMMANDS = {"demo", "reproduce"}  # the attacks choose them now and then, too rarely to be waited for here


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_entry_point_keeps_the_contract(name: str) -> None:
    @given(st.binary(min_size=48, max_size=48))
    @settings(
        deadline=None,
        max_examples=examples(EXAMPLES.get(name, 500)),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def attacked(data: bytes) -> None:
        attack(name, data)

    attacked()


def has_nothing_to_attack(thing: Any) -> bool:
    """Results, which the library makes and whose docstrings name no arguments, and roles without a constructor of their own."""
    if is_record(thing):
        return "Args:" not in (thing.__doc__ or "")
    return is_interface(thing) and (getattr(thing, "_is_protocol", False) or "__init__" not in vars(thing))


def entry_points() -> dict[str, CodeType]:
    """The code behind every public name that does something: functions, constructors and commands."""
    found: dict[str, CodeType] = {}
    for module in public_modules():
        for name, thing in public_callables(module).items():
            if f"{module}.{name}" in NOT_ATTACKED or has_nothing_to_attack(thing):
                continue
            made: Any = inspect.getattr_static(thing, "__init__") if isinstance(thing, type) else thing
            if made is not object.__init__:
                found[f"{module}.{name}"] = inspect.unwrap(made).__code__
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
