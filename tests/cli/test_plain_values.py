"""Values that the command line reads without typer's validation are what typer makes of them, for every option of every command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

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
    except Exception as error:
        return type(error), getattr(error, "message", str(error))
    return type(found), repr(found)


def first_non_number(value: Any, kind: Any) -> str | None:
    """The first typed text that is no number, where numbers are asked for: its message is our own."""
    for number in (int, float):
        for text in (value,) if isinstance(value, str) else value or ():
            try:
                number(text)
            except ValueError:
                if number in (kind, *get_args(kind)):
                    return str(text)
    return None


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ledger"])
def test_plain_values_are_read_as_typer_reads_them(name: str, tmp_path: Path) -> None:
    group: Any = get_command(app)
    command = group.get_command(None, name)
    assert isinstance(command, TyperCommand)
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0)
    context: Any = type(group).context_class(command)
    parameters: list[Any] = command.get_params(context)
    for parameter in parameters:
        if not hasattr(parameter, "get_runtime_param"):
            pytest.skip("this version of typer reads values itself")
        ours: Any = parameter.get_runtime_param()
        typers = type(parameter).get_runtime_param(parameter)
        many = parameter.multiple or parameter.nargs == -1
        for text in [None, *TYPED, str(tmp_path), str(unreadable), str(tmp_path / "none")]:
            value = (text, "b") if many and text is not None else text
            found, expected = (outcome(reader, value, parameter, context) for reader in (ours, typers))
            wrong = first_non_number(value, parameter.type_descriptor.annotation)
            if wrong is not None and isinstance(expected[0], type) and issubclass(expected[0], Exception):
                assert found[0] == expected[0]
                assert found[1].startswith(repr(wrong)[:40]), (parameter.name, text)
                assert " is not a" in found[1]
            else:
                assert found == expected, (parameter.name, text)


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
        (("--outcomes", "9" * 5000, "--clients", "9"), f"'{'9' * 60}'... (5,000 characters) has too many digits"),
        (("--epsilon", "x" * 5000, "--clients", "9"), f"'{'x' * 60}'... (5,000 characters) is not a number"),
    ],
)
def test_a_number_that_is_none_is_shown(refusal: Callable[..., str], options: tuple[str, ...], says: str) -> None:
    said = refusal("plan", *options)
    assert says in said
    assert len(said) < 250
