"""The command `discreet`. It parses options, calls the library and prints; it contains no mathematics.

`COMMANDS` in `_app` says which function of which module each command is.
"""

import gc
import os
import sys

from discreet.errors import MissingExtraError, raise_missing_extra

__all__ = ["main"]

# Imports make some hundred thousand objects that stay. Looking through them for garbage every 700 takes a tenth of the start.
_OBJECTS_TO_COLLECT = 200_000


def main() -> None:
    """Run the command line with the arguments of this process; without the packages it needs, say in one line how to get them."""
    gc.set_threshold(_OBJECTS_TO_COLLECT)
    if _command_needs_no_linear_algebra(sys.argv[1:]):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads, a twentieth of the start
    try:
        from discreet.cli._app import app
    except ImportError as missing:
        try:
            raise_missing_extra("cli", missing)
        except MissingExtraError as advice:
            sys.stderr.write(f"discreet: {advice}\n")
            raise SystemExit(1) from None
    try:
        app()
    finally:
        gc.freeze()  # when Python ends, it looks for garbage among all objects that are not frozen


def _command_needs_no_linear_algebra(arguments: list[str]) -> bool:
    """Whether a command releases samples on a list of outcomes, without a survey or an agreement.

    These may need BLAS, whose last bits depend on the number of threads. So they keep the threads that they always had.
    """
    prefixes = ("--survey", "--agreement")
    return arguments[:1] == ["sample"] and not any(argument.startswith(prefixes) for argument in arguments)
