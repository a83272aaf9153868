"""The command `discreet`. It parses, calls the library and prints; it holds no mathematics.

`app` holds the typer application and registers the commands, each of which lives in a module of its own.
"""

import sys

from discreet.errors import MissingExtraError, need_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the packages it needs, say in one line how to get them."""
    try:
        from discreet.cli._app import app
    except ImportError as missing:
        try:
            need_extra("cli", missing)
        except MissingExtraError as advice:
            sys.stderr.write(f"discreet: {advice}\n")
            raise SystemExit(1) from None
    app()
