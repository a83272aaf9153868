"""`--for`: to estimate a population, or to serve each client? The first question, because it decides which mechanism is the right one.

Who says neither that nor a mechanism is asked, on a terminal; elsewhere the population is meant, and one line says so.
"""

import sys
from typing import Annotated

import typer

from discreet.mechanisms import SERVED, mechanism_for

For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="population|clients",
        help="Estimate a population (mechanism linear), or serve each client (optimal)? Asked on a terminal; elsewhere population.",
    ),
]
Named = Annotated[
    str | None,
    typer.Option(
        metavar="linear|optimal|mollifier",
        help="Instead of --for, the mechanism itself. mollifier: an older one, for comparison.",
    ),
]
TAKEN = "linear was taken, to estimate the population; for samples as close as can be to their own clients say --for clients"


def asked(serve: str | None, mechanism: str | None, *, may_ask: bool = True) -> str | None:
    """Whom samples are to serve, asked for where nothing says it and somebody is there to answer; None where nobody is."""
    if serve is not None or mechanism is not None or not (may_ask and sys.stdin.isatty() and sys.stderr.isatty()):
        return serve
    whole = " or ".join(SERVED)
    said: str = typer.prompt(f"Estimate a population, or serve each client? ({whole})", default="population", err=True)
    return next((name for name in SERVED if said and name.startswith(said.strip().lower())), said)


def chosen(serve: str | None, mechanism: str | None, *, may_ask: bool = True) -> tuple[str, str | None]:
    """The mechanism, and what to tell about it where nobody chose it."""
    whom = asked(serve, mechanism, may_ask=may_ask)
    return mechanism_for(whom, mechanism), TAKEN if whom is None and mechanism is None else None
