"""`discreet explore`: the page on which one sees what privacy costs."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from discreet._explorer import Explorer, page
from discreet._files import atomic_write
from discreet.cli._printing import plain, say, write_json


def explore(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page to a new file, and serve nothing."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Serve at this port; by default one that is free.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: the file or the address, and the size in bytes.")
    ] = False,
) -> None:
    """Move a client's bars and the budget, and see at once what is hidden, what it costs, and what the population still tells.

    The page is one file without a network. It is served to this machine alone until you press Ctrl-C, or written with -o. Its second tab says
    what an agreement file asks of a person, in plain words.
    """
    content = page()
    size = len(content.encode())
    if output is not None:
        with atomic_write(output, what="page", folders=True) as file:
            file.write(content.encode())
        if json:
            write_json({"file": str(output), "bytes": size})
        else:
            say(f"wrote {plain(output)}; open it in a browser")
        return
    explorer = Explorer(content, port=port)
    if json:
        write_json({"address": explorer.address, "bytes": size})
    else:
        say(f"{explorer.address} (this machine alone; Ctrl-C ends it)")
    if browser:
        webbrowser.open(explorer.address)
    with suppress(KeyboardInterrupt):
        explorer.serve()
