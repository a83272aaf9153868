"""The typer application. Every problem a user can cause is one line on stderr and exit code 2, without a traceback.

A command's module is imported when the command is called, so the list of commands loads none of them.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from discreet import __version__
from discreet.errors import (
    ClientNameWarning,
    DiscreetError,
    LargeEpsilonWarning,
    MissingExtraError,
    OutsideFamilyWarning,
    WideBracketWarning,
    spell_out_invisible,
)

USER_ERROR = 2
_LONGEST = 60  # characters of a value in a message
_ARGUMENT_BESIDE_OPTION = re.compile(r"\b[a-z_]+=(?:'[^']*'|[^\s()']*) \((--[^()]*)\)")
COMMANDS = {  # in the order of the work: the module of a command, its function there, and its summary
    "demo": ("demo", "show_demo_on_flights", "A tour on bundled real data, with pictures."),
    "plan": ("plan", "plan_collection", "Choose epsilon and mechanism before anything is collected."),
    "agree": ("agree", "write_or_check_agreement", "Write an agreement between clients and curator."),
    "design": ("design", "design_sampler", "The best sampler for clients like public examples."),
    "secret": ("gateway", "make_secret_file", "Make the secret that makes a release repeatable."),
    "sample": ("sample", "release_samples_of_table", "One private sample for each client of a table."),
    "tokens": ("sample", "generate_private_text", "A private text of a language model, and its guarantee."),
    "collect": ("collect", "serve_collection", "A service that collects samples and shows estimates."),
    "enrol": ("collect", "make_or_change_tokens", "Make tokens for the clients of a collection."),
    "invite": ("collect", "invite_clients", "Links and QR codes for taking part, one for each token."),
    "send": ("gateway", "send_samples_of_table", "Send a private sample for each client of a table."),
    "export": ("collect", "export_collected_samples", "The samples of a collection, as a table to estimate from."),
    "close": ("collect", "close_collection_for_good", "End a collection: nothing more is counted."),
    "publish": ("collect", "publish_closed_collection", "The result of a closed collection, as a folder."),
    "estimate": ("estimate", "print_population_estimate", "Estimate the population from samples, with intervals."),
    "tradeoff": ("tradeoff", "print_tradeoff", "The cost of privacy, and the epsilon for a target."),
    "explore": ("tradeoff", "serve_explorer_page", "A page to explore the cost of privacy, and agreements."),
    "account": ("tradeoff", "print_total_privacy_loss", "The total loss of several samples, and of shuffling."),
    "audit": ("audit", "audit_mechanism", "Try to refute a claim of privacy from samples."),
    "certify": ("audit", "write_privacy_certificate", "Prove a sampler's privacy in integers, as a file."),
    "reproduce": ("reproduce", "reproduce_paper_figures", "Every figure of the paper, beside the published numbers."),
    "ledger": ("gateway", "ledger", "A client's budget, charged before a sample leaves."),
}
_STYLE: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}


class OneLineErrorGroup(TyperGroup):
    """A command group whose failures are one line. A bug keeps its traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which take plain values."""
        return _bypass_typer_for_plain_values(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; its module is imported now."""
        if cmd_name not in COMMANDS:
            names: dict[str, Any] = dict.fromkeys(COMMANDS)
            self.commands = {**names, **self.commands}  # for suggestions of similar names
            return None
        if self.commands.get(cmd_name) is None:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summary of each command without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, _, purpose) in COMMANDS.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LargeEpsilonWarning)  # commands that release raise an error instead
                warnings.showwarning = _make_one_line_warning_printer(warnings.showwarning)
                code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except (DiscreetError, MissingExtraError) as problem:
            _print_error_and_exit(str(problem))
        except OSError as problem:
            _print_error_and_exit(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))
        except Exception as problem:
            message = getattr(problem, "format_message", None)  # an error of the parser, in every version of typer
            if message is None:
                raise
            _print_error_and_exit(message())
        sys.exit(code if isinstance(code, int) else 0)


def _make_one_line_warning_printer(fallback: Callable[..., None]) -> Callable[..., None]:
    """A function that shows warnings: those about clients and designs as one line, others as usual."""

    def show_warning(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if issubclass(category, (OutsideFamilyWarning, ClientNameWarning, WideBracketWarning)):
            print_message(f"discreet: {message}")
        else:
            fallback(message, category, *where)

    return show_warning


def _print_error_and_exit(message: str) -> NoReturn:
    with suppress(OSError):  # of a standard error that is closed or full: the status still says that it was a mistake
        print_message(f"discreet: {message}")
    sys.exit(USER_ERROR)


def print_message(message: str) -> None:
    """Print one line on stderr. An argument of Python beside its option, as `replace=True (--force)`, becomes the option."""
    line = _ARGUMENT_BESIDE_OPTION.sub(r"\1", " ".join(message.split()))
    typer.echo(spell_out_invisible(line), err=True)


app = typer.Typer(
    cls=OneLineErrorGroup,
    **_STYLE,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def show_version_or_help(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Locally private sampling: release one sample that looks drawn from your data."""
    if version:
        typer.echo(f"discreet {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _load_command(name: str) -> Any:
    module, function, purpose = COMMANDS[name]
    command = getattr(import_module(f"discreet.cli._{module}"), function)
    if not isinstance(command, typer.Typer):
        wrapper = typer.Typer(**_STYLE)
        wrapper.command(name, cls=PlainCommand, short_help=purpose)(command)
        return get_command(wrapper)
    group = get_command(command)
    group.name, group.short_help, group.help = name, purpose, "A client's budget."
    return group


class PlainValueReader:
    """Reads values that are spelled plainly as typer would, without the library that typer loads for them. The rest goes to typer.

    Typer 0.29 validates with pydantic, which takes a third as long to load as polars.
    """

    def __init__(self, parameter: Any) -> None:
        self._kind, self._by_typer = parameter.type_descriptor.annotation, parameter.get_runtime_param

    def __getattr__(self, name: str) -> Any:
        """All else is typer's own: a later version may ask for more."""
        return getattr(self._by_typer(), name)

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter for what was typed. Typer calls it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = self._parse_plain_value_or_none(value)
        if plain is not None:
            return plain
        try:
            return self._by_typer().coerce(value, param=param, ctx=ctx)
        except Exception as error:
            mistake = self._number_mistake_text_or_none(value)
            if mistake is not None and hasattr(error, "message"):
                error.message = mistake
            raise

    def _number_mistake_text_or_none(self, value: Any) -> str | None:
        """The first value that is no number, where numbers are asked for. Typer's message does not show it."""
        for number_type, name in ((int, "a whole number"), (float, "a number, such as 0.5")):
            if number_type in (self._kind, *get_args(self._kind)):
                for text in (value,) if isinstance(value, str) else value:
                    try:
                        number_type(text)
                    except ValueError:
                        quoted_text = (
                            repr(text)
                            if len(text) <= _LONGEST
                            else f"{text[:_LONGEST]!r}... ({len(text):,} characters)"
                        )
                        has_too_many_digits = number_type is int and re.fullmatch(r"\s*[+-]?\d+(_\d+)*\s*", text)
                        return f"{quoted_text} {'has too many digits' if has_too_many_digits else f'is not {name}'}"
        return None

    def _parse_plain_value_or_none(self, value: Any) -> Any:
        if self._kind == list[str] and value and all(isinstance(text, str) and text.isprintable() for text in value):
            return list(value)
        if not isinstance(value, str) or not value.isprintable():
            return None
        if self._kind is Path and (os.access(value, os.R_OK) or not os.path.exists(value)):
            return Path(value)
        spelling = {str: ".*", int: "[0-9]{1,15}", float: r"[0-9]{1,15}(\.[0-9]{1,15})?"}.get(self._kind)
        return None if spelling is None or not re.fullmatch(spelling, value) else self._kind(value)


class PlainCommand(TyperCommand):
    """A command whose parameters take plain values."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _bypass_typer_for_plain_values(super().get_params(ctx))


def _bypass_typer_for_plain_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)  # absent before typer 0.29
        if kind is not None and hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
            reader = PlainValueReader(parameter)
            parameter.get_runtime_param = lambda reader=reader: reader
    return parameters
