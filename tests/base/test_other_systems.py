"""The core works where the system lacks what Windows lacks. It was not tried on Windows itself."""

import subprocess
import sys
from pathlib import Path

import pytest

import discreet

MODULES = ("resource", "fcntl", "pwd", "grp", "termios", "readline")
OF_OS = (
    "fork", "forkpty", "register_at_fork", "sysconf", "sysconf_names", "getuid", "geteuid", "getgid", "getegid", "getgroups", "fchmod",
    "fchown", "chown", "pread", "preadv", "pwrite", "pwritev", "sched_getaffinity", "killpg", "setsid", "getpgid", "uname", "statvfs",
    "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK",
)  # fmt: skip
OF_SIGNAL = ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1")

# other people's packages are loaded first: they are made for each system
WITHOUT = f"""
import asyncio, concurrent.futures, concurrent.futures.thread, importlib, logging, multiprocessing, os, pkgutil, signal, sqlite3, sys
import tempfile, uuid
for name in {{loaded!r}}:
    importlib.import_module(name)
for name in {MODULES!r}:
    sys.modules[name] = None
for name in {OF_OS!r}:
    if hasattr(os, name):
        delattr(os, name)
for name in {OF_SIGNAL!r}:
    delattr(signal, name)
"""

CORE = """
import discreet as dc
from discreet import estimation, audit
sampler = dc.LinearSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0)
counts = [0, 0, 0]
for _ in range(200):
    counts["abc".index(sampler.release([0.7, 0.2, 0.1]))] += 1
print(estimation.population(sampler, counts=counts).law.estimate.sum().round(9))
line = dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0, discretisation=dc.Cells(16))
print(type(line.release(dc.Mixture([1.0], [0.0]))).__name__)
print(audit.certificate(sampler).holds)
print(dc.design(dc.Simplex(3), epsilon=1.0, clients=[[0.7, 0.2, 0.1]]).family.size)
"""

COMMAND = """
from discreet.cli._app import app
app(["tradeoff", "--outcomes", "10", "--epsilon", "1"], standalone_mode=False)
"""

FILES = """
import polars as pl
import discreet as dc
from discreet.errors import DiscreetError, LedgerError
from discreet.ledger import Budget, Ledger
from discreet.tables import read_secret, sample, write_secret
from discreet.tables._sources._files import ScratchFile
import numpy as np
table = pl.DataFrame({"who": ["a", "b"], "what": [0, 1]})
print(sample(table, client="who", value="what", domain=2, epsilon=1.0).num_rows)
dc.Agreement.of(dc.LinearSampler(dc.Simplex(3), epsilon=1.0)).write("agreement.json")
print(dc.Agreement.read("agreement.json").epsilon)
scratch = ScratchFile(None)
block = scratch.append_arrays([np.arange(5), np.arange(3.0)])
print([array.tolist() for array in scratch.read_arrays(block)])
for refused in (lambda: write_secret("secret"), lambda: read_secret("agreement.json"), lambda: Ledger.create("ledger", Budget(epsilon=1.0))):
    try:
        refused()
    except DiscreetError as error:
        print("cannot be kept from others" in str(error))
"""

EVERYTHING = """
for name in {names!r}:
    importlib.import_module(name)
print("imported")
"""
PACKAGE = Path(discreet.__file__).parent
LEFT_OUT = (
    "torch/",
    "tables/spark",
    "research/_boosted_tensors",
    "__main__",
)  # which need torch or Spark, or run


def run_without(script: str, folder: Path, loaded: tuple[str, ...] = ()) -> str:
    found = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            WITHOUT.format(loaded=("numpy", "scipy.optimize", "scipy.stats", *loaded)) + script,
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout


@pytest.mark.slow
def test_samplers_estimates_audits_and_designs_work(tmp_path: Path) -> None:
    assert run_without(CORE, tmp_path).split() == ["1.0", "float", "True", "3"]


@pytest.mark.slow
def test_a_command_works(tmp_path: Path) -> None:
    assert "optimal" in run_without(COMMAND, tmp_path, ("typer", "rich.console", "rich.table", "polars", "pyarrow"))


@pytest.mark.slow
def test_tables_and_agreements_work_and_secrets_are_refused(tmp_path: Path) -> None:
    """Nobody can say there who may read a file, so nothing that has to stay private is kept in one."""
    lines = run_without(FILES, tmp_path, ("polars", "pyarrow", "pyarrow.parquet", "numba")).splitlines()
    assert lines == ["2", "1.0", "[[0, 1, 2, 3, 4], [0.0, 1.0, 2.0]]", "True", "True", "True"]
    assert [path.name for path in tmp_path.iterdir()] == ["agreement.json"]


@pytest.mark.slow
def test_every_module_is_imported(tmp_path: Path) -> None:
    others = (
        "typer",
        "polars",
        "pyarrow",
        "numba",
        "matplotlib.figure",
        "starlette.applications",
        "uvicorn",
        "psycopg",
        "prometheus_client",
    )
    paths = [path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py")]
    names = [
        f"discreet/{path}".removesuffix("/__init__").replace("/", ".")
        for path in paths
        if not path.startswith(LEFT_OUT)
    ]
    assert len(names) > 150
    assert run_without(EVERYTHING.format(names=sorted(names)), tmp_path, others) == "imported\n"
