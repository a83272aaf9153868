"""`discreet secret`: the key that makes a release repeatable."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._printing import write_json
from discreet.errors import visible
from discreet.release._keyed import write_secret


def secret(
    file: Annotated[Path, typer.Argument(help="The file to make. An existing file is never replaced.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON; the secret itself is never printed.")] = False,
) -> None:
    """Make a secret for `discreet sample --secret`: 32 random bytes in a new file that only you may read.

    With the same secret, data, agreement and round, a release gives the same samples again. Whoever holds it can undo the
    privacy of every sample made with it, so keep it as you would keep the data, and not beside the samples.
    """
    write_secret(file)
    if json:
        write_json({"file": str(file), "mode": "0600"})
        return
    typer.echo(
        f"wrote {visible(str(file))} (mode 0600); back it up like the data, never publish it, never pass it on a command line"
    )
