"""Which modules a record passes on its way through `discreet sample`, and by how many doors each is entered: measured, by tracing a run.

`python -m tests.tables.walk` prints, in the order of the walk, every module of the command line, the tables and the engines in which
anything runs, from which others it is entered, and the functions that they call there (properties and operators aside).
"""

import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import polars as pl
from typer.testing import CliRunner

import discreet
from discreet.cli._app import app

ROOT = str(Path(discreet.__file__).parent) + os.sep
ROOMS = ("cli", "_tables", "engines")


def walked() -> dict[str, dict[str, set[str]]]:
    """{module: {function: the other modules that call it}}, in the order in which a release of a small file enters them."""
    doors: dict[str, dict[str, set[str]]] = {}

    def noted(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (module := _module(frame.f_code)) is None:
            return
        caller = frame.f_back
        while caller is not None and _module(caller.f_code) is None:
            caller = caller.f_back
        outside = None if caller is None else _module(caller.f_code)
        if outside != module and module.split(".")[0] in ROOMS and _is_door(module, frame.f_code):
            callers = doors.setdefault(module, {}).setdefault(frame.f_code.co_qualname, set())
            if outside is not None:  # else it is where a thread starts, or the command
                callers.add(outside)

    with _small_table() as command:
        CliRunner().invoke(app, [*command, "-o", "first.parquet"], catch_exceptions=False)  # imports run once
        threading.setprofile(noted)
        sys.setprofile(noted)
        try:
            found = CliRunner().invoke(app, [*command, "-o", "out.parquet"], catch_exceptions=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert found.exit_code == 0, found.output
    return doors


def _module(code: CodeType) -> str | None:
    """The module of ours that a function lies in; None for others, and for what runs as modules are loaded."""
    if not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
        return None
    return code.co_filename[len(ROOT) :].removesuffix(".py").replace(os.sep, ".")


def _is_door(module: str, code: CodeType) -> bool:
    """Whether calling it is going there: properties and operators are looked at in passing."""
    if code.co_name.startswith("__") and code.co_name != "__init__":
        return False
    held: Any = sys.modules[f"discreet.{module}"]
    for part in code.co_qualname.split(".<locals>")[0].split("."):
        held = inspect.getattr_static(held, part, None)
    return not isinstance(held, property)


@contextmanager
def _small_table() -> Iterator[list[str]]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            rows = range(400)
            table = pl.DataFrame({"who": [f"c{row % 50}" for row in rows], "what": ["abc"[row % 3] for row in rows]})
            table.write_parquet("in.parquet")
            Path("labels.txt").write_text("a\nb\nc\n")
            asked = "sample in.parquet --client who --value what --domain labels.txt --epsilon 1"
            yield asked.split()
        finally:
            os.chdir(before)


if __name__ == "__main__":
    found = walked()
    for module, doors in found.items():
        callers = ", ".join(sorted(set().union(*doors.values()))) or "outside"
        print(f"{module} from {callers} by {len(doors)}: {', '.join(doors)}")  # noqa: T201
    print(f"{len(found)} modules, {sum(map(len, found.values()))} doors")  # noqa: T201
