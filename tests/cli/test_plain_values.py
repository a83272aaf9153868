"""Values that the command line reads without typer's validation are what typer makes of them, for every option of every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperCommand
from typer.main import get_command

from discreet.cli._app import COMMANDS, app

TYPED = [
    *("", "a", " a ", "-", "0", "1", "007", "12", "-3", "+3", "1_000", "2.5", "2.", ".5", "1e3", "nan", "inf", "true"),
    *("²", "٣", "a\nb", "\ud800", "a\0b"),
]


def outcome(reader: Any, value: Any, parameter: Any, context: Any) -> Any:
    try:
        found = reader.coerce(value, param=parameter, ctx=context)
    except Exception as error:  # a number's message is our own, with the value
        return type(error), None
    return type(found), repr(found)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ledger"])
def test_plain_values_are_read_as_typer_reads_them(name: str, tmp_path: Path) -> None:
    group: Any = get_command(app)
    command = group.get_command(None, name)
    assert isinstance(command, TyperCommand)
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0)
    context: Any = type(group).context_class(command)
    for parameter in command.get_params(context):
        if not hasattr(parameter, "get_runtime_param"):
            pytest.skip("this version of typer reads values itself")
        ours: Any = parameter.get_runtime_param()
        typers = type(parameter).get_runtime_param(parameter)
        many = parameter.multiple or parameter.nargs == -1
        for text in [None, *TYPED, str(tmp_path), str(unreadable), str(tmp_path / "none")]:
            value = (text, "b") if many and text is not None else text
            found = [outcome(reader, value, parameter, context) for reader in (ours, typers)]
            assert found[0] == found[1], (parameter.name, text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--outcomes", "3", "--epsilon", "1,5", "--clients", "9"), "'--epsilon': '1,5' is not a number, such as 0.5"),
        (
            ("--outcomes", "3", "--epsilon", "1", "--epsilon", "2%", "--clients", "9"),
            "'2%' is not a number, such as 0.5",
        ),
        (("--bounds", "0", "--cells", "3", "--clients", "9"), "'--bounds': '--cells' is not a number"),
        (("--outcomes", "3.5", "--clients", "9"), "'--domain-size' / '--outcomes': '3.5' is not a whole number"),
    ],
)
def test_a_number_that_is_none_is_shown(refusal: Callable[..., str], options: tuple[str, ...], says: str) -> None:
    assert says in refusal("plan", *options)
