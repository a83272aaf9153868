"""The typer application: every problem a user can cause becomes one line on stderr and exit code 2, never a traceback."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from discreet import __version__
from discreet.cli.account import account
from discreet.cli.agree import agree
from discreet.cli.audit import audit, certify
from discreet.cli.demo import demo
from discreet.cli.estimate import estimate
from discreet.cli.ledger import ledger
from discreet.cli.plan import plan
from discreet.cli.reproduce import reproduce
from discreet.cli.sample import sample
from discreet.cli.secret import secret
from discreet.cli.tradeoff import tradeoff
from discreet.errors import DiscreetError, MissingExtraError, visible

USER_ERROR = 2


class OneLineErrors(TyperGroup):
    """A group whose failures are one line. What is not the user's doing (a bug) keeps its traceback."""

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
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except (DiscreetError, MissingExtraError) as problem:
            _fail(str(problem))
        except OSError as problem:
            _fail(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))
        except Exception as problem:
            message = getattr(problem, "format_message", None)  # what the parser raises, in every version of typer
            if message is None:
                raise
            _fail(message())
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
    typer.echo(f"discreet: {visible(' '.join(message.split()))}", err=True)
    sys.exit(USER_ERROR)


app = typer.Typer(
    cls=OneLineErrors,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def discreet(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Locally private sampling: release one sample that looks drawn from your law."""
    if version:
        typer.echo(f"discreet {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


# in the order of the work
app.command(short_help="The main job on bundled real data, with pictures.")(demo)
app.command(short_help="Choose epsilon and mechanism before anything is collected.")(plan)
app.command(short_help="Write what client and curator agree on.")(agree)
app.command(short_help="Make the secret that lets a release be repeated.")(secret)
app.command(short_help="One private sample for each client of a table.")(sample)
app.command(short_help="The population behind such samples, with intervals.")(estimate)
app.command(short_help="What privacy costs, and which epsilon a target takes.")(tradeoff)
app.command(short_help="What several samples add up to, and what shuffling buys.")(account)
app.command(short_help="Try to refute a claim of privacy from samples alone.")(audit)
app.command(short_help="Prove a sampler's privacy in integers, as a file.")(certify)
app.command(short_help="Every figure of the paper, beside the published numbers.")(reproduce)
app.add_typer(
    ledger, name="ledger", short_help="A client's budget, charged before a sample leaves.", help="A client's budget."
)
