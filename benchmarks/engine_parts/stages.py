"""Where the time of `discreet sample` goes, from inside: processor time up to each stage, in a process of its own.

`python -m benchmarks.engine_parts.stages ARGUMENTS OF discreet` prints a JSON object of seconds by stage.
"""

import json
import sys
import time
from typing import Any

STAGES = ("python", "numpy, polars, pyarrow", "typer", "discreet", "numba", "read and group", "draw and write")


def main() -> None:
    """Load what the command loads in order, then run it."""
    found, last = dict.fromkeys(STAGES, 0.0), 0.0

    def lap(name: str) -> None:
        nonlocal last
        now = time.process_time()
        found[name] += now - last
        last = now

    lap("python")
    import numpy  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    lap("numpy, polars, pyarrow")
    import typer  # noqa: F401

    lap("typer")
    from discreet._base import kernels
    from discreet.cli import main as command
    from discreet.tables import _drawing, _local, _parts  # noqa: F401

    lap("discreet")
    read, load = _local.Release._read_records, kernels._load_numba

    def timed_read(self: Any, parts: Any) -> None:
        lap("discreet")
        read(self, parts)
        lap("read and group")

    def timed_load() -> bool:
        if "numba" in sys.modules:
            return load()
        lap("discreet")
        done = load()
        lap("numba")
        return done

    _local.Release._read_records = timed_read  # type: ignore[method-assign]
    kernels._load_numba = timed_load
    try:
        command()
    except SystemExit as ended:
        if ended.code:
            raise
    lap("draw and write")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
