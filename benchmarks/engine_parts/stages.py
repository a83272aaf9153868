"""Where the time of `discreet sample` goes, from inside: processor time up to each stage, in a process of its own.

`python -m benchmarks.engine_parts.stages ARGUMENTS OF discreet` prints a JSON object of seconds by stage.
"""

import json
import os
import time
from functools import partial
from typing import Any

STAGES = ("python", "numpy, polars, pyarrow", "typer", "discreet", "compiled code", "read and group", "draw and write")


def main() -> None:
    """Load what the command loads in order, then run it."""
    found, last = dict.fromkeys(STAGES, 0.0), 0.0

    def lap(name: str) -> None:
        nonlocal last
        now = time.process_time()
        found[name] += now - last
        last = now

    lap("python")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does
    import numpy  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    lap("numpy, polars, pyarrow")
    import typer  # noqa: F401

    lap("typer")
    from discreet._base.kernels import _functions
    from discreet._base.kernels._machine_code import argument_kinds_text
    from discreet.cli import main as command
    from discreet.tables import _drawing, _local, _parts  # noqa: F401

    lap("discreet")
    read, load_numba = _local.Release._read_records_into_parts, _functions.load_numba
    load_code = _functions.DeferredFunction._stored_machine_code
    stage = "discreet"

    def timed_read(self: Any, parts: Any) -> None:
        nonlocal stage
        lap(stage)
        stage = "read and group"
        read(self, parts)
        lap(stage)
        stage = "draw and write"

    def timed_load(load: Any, *arguments: Any) -> Any:
        lap(stage)
        loaded = load(*arguments)
        lap("compiled code")
        return loaded

    def timed_load_code(self: Any, arguments: Any) -> Any:
        known = argument_kinds_text(arguments) in self._codes
        return load_code(self, arguments) if known else timed_load(load_code, self, arguments)

    _local.Release._read_records_into_parts = timed_read  # type: ignore[method-assign]
    _functions.DeferredFunction._stored_machine_code = timed_load_code  # type: ignore[method-assign]
    _functions.load_numba = partial(timed_load, load_numba)
    try:
        command()
    except SystemExit as ended:
        if ended.code:
            raise
    lap("draw and write")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
