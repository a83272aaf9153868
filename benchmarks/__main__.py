"""Every benchmark, or those named: `python -m benchmarks [finite ...]`."""

import importlib
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "field", "rivals"}  # field: what others claim, in an environment of their own


def names() -> list[str]:
    """The benchmark modules of this folder."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def main() -> None:
    chosen = sys.argv[1:] or names()
    unknown = set(chosen) - set(names())
    if unknown:
        sys.exit(f"unknown benchmarks {sorted(unknown)}; there are {names()}")
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").run()


main()
