"""Start-up and first use, as multiples of what `python -c "import polars"` takes: whole processes, in turns, best of several.

First use is that of a fresh install: a copy of the package with its byte code, as pip leaves it, and without compiled kernels.
"""

import compileall
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

import discreet
from benchmarks.engine_parts.processes import Run, alternated, measured
from benchmarks.engines import shown_table

TIMES = 5
UNIT = "import polars"
MAIN = "from discreet.cli import main; main()"
COMPILED = (
    "import discreet as dc, polars as pl;"
    "from discreet._base.kernels import Code, force_implementation;"
    "rows = pl.DataFrame({'who': [1, 2], 'what': [0, 1]});"
    "chosen = force_implementation(Code.COMPILED);"
    "chosen.__enter__();"
    "dc.tables.sample(rows, client='who', value='what', domain=2, epsilon=1.0)"
)


def run() -> None:
    """One table."""
    console = Console(width=140)
    with tempfile.TemporaryDirectory(prefix="discreet-startup-") as folder:
        found = _measured(Path(folder))
    unit, busy = found[UNIT].seconds, found[UNIT].busy
    shown = shown_table(
        f"Start-up and first use, whole processes, least of {TIMES} in turns",
        "what", "seconds", f"times {UNIT!r}", "processor time, s", "times",
    )  # fmt: skip
    for name, each in found.items():
        shown.add_row(
            name, f"{each.seconds:.2f}", f"{each.seconds / unit:.1f}", f"{each.busy:.2f}", f"{each.busy / busy:.1f}"
        )
    console.print(shown)


def _measured(folder: Path) -> dict[str, Run]:
    flights, airports = folder / "flights.parquet", folder / "airports.txt"
    _write(flights, airports)
    sample = (
        "sample", str(flights), "--client", "tailnum", "--value", "dest", "--domain", str(airports), "--epsilon", "2",
        "-o", str(folder / "private.parquet"), "--force", "--quiet",
    )  # fmt: skip
    fresh = _fresh_install(folder)
    commands = {
        UNIT: _python(UNIT),
        "import discreet": _python("import discreet"),
        "discreet --version": _python(MAIN, "--version"),
        "discreet sample, bundled flights": _python(MAIN, *sample),
        "the same, first use of a fresh install": _python(
            f"import sys; sys.path.insert(0, {str(fresh)!r}); {MAIN}", *sample
        ),
        "two clients by compiled code, warm": _python(COMPILED),
    }
    for command in commands.values():
        measured(command)  # fills the file cache, and compiles what is to be warm
    return alternated(commands, TIMES)


def _python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def _write(flights: Path, airports: Path) -> None:
    import pyarrow.parquet

    from discreet.research.data import destinations, flights as rows

    pyarrow.parquet.write_table(rows(), flights)
    airports.write_text("\n".join(destinations()) + "\n")


def _fresh_install(folder: Path) -> Path:
    site = folder / "site"
    package = Path(discreet.__file__).parent
    shutil.copytree(package, site / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(site, quiet=1, workers=os.cpu_count() or 1)
    return site
