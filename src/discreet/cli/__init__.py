"""The command `discreet`. It parses options, calls the library and prints; it contains no mathematics.

`COMMANDS` in `_app` says which function of which module each command is.
"""

import gc
import sys

from discreet.errors import MissingExtraError, need_extra

__all__ = ["main"]

# Imports make some hundred thousand objects that stay. Looking through them for garbage every 700 takes a tenth of the start.
_OBJECTS_TO_COLLECT = 200_000


def main() -> None:
    """Run the command line with the arguments of this process; without the packages it needs, say in one line how to get them."""
    gc.set_threshold(_OBJECTS_TO_COLLECT)
    try:
        from discreet.cli._app import app
    except ImportError as missing:
        try:
            need_extra("cli", missing)
        except MissingExtraError as advice:
            sys.stderr.write(f"discreet: {advice}\n")
            raise SystemExit(1) from None
    app()
