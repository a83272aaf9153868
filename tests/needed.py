"""What a test cannot do without. Where it cannot be had the test says why, and where every test has to run (CI=true) it fails."""

import importlib
import os
from typing import Any, NoReturn

import pytest


def cannot_run(reason: str) -> NoReturn:
    """Skip with a reason that the summary prints (`-ra`); fail instead where `CI` is set to anything but false."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false", "no"):
        pytest.fail(f"{reason}; with CI set no test may be left out", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def needed_module(name: str, install: str) -> Any:
    """The module, or no test: `install` is the command that brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        cannot_run(f"{name} cannot be imported ({error}): {install}")
