"""`discreet enrol`: tokens by which a collector knows whom to take samples of."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._printing import plain, say, write_json
from discreet.collect._enrolment import write_tokens


def enrol(
    number: Annotated[int, typer.Argument(metavar="N", help="How many tokens.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A new file, one token on each line.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON; the tokens themselves are never printed.")] = False,
) -> None:
    """Make tokens for `discreet collect --tokens` or `--gateways`, in a new file that only you may read.

    A client that holds one may speak once in each round. Hand them out so that you do not note who got which: whoever knows that can
    tell who took part and on which day, though no table says who said what.
    """
    write_tokens(output, number)
    if json:
        write_json({"file": str(output), "tokens": number, "mode": "0600"})
    else:
        say(f"wrote {number:,} tokens to {plain(output)} (mode 0600)")
