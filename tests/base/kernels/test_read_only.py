"""A hardened container: a package that nobody may write to, no home, no privileges. Everything works, and warmed kernels are found."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet._base.kernels import _cache as cache
from discreet.tables import warm_up
from tests.base.kernels.test_cache import CALLEE, CALLER, COMPILING
from tests.soaking import wide

RELEASE = """
import discreet as dc, polars as pl
from discreet.tables import Secret
from discreet._base.kernels import Code, force_implementation
rows = pl.DataFrame({"who": ["a", "b", "c"] * 10, "what": [0, 1, 2] * 10})
found = []
for code in Code:
    with force_implementation(code):
        dc.OptimalSampler(dc.Simplex(3), epsilon=1.0).release([[0.2, 0.3, 0.5]] * 10)
        table = dc.tables.sample(rows, client="who", value="what", domain=3, epsilon=1.0, secret=Secret(bytes(32)))
        found.append(table.to_pylist())
print(found[0] == found[1])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A read-only copy of the package with the kernels that were compiled for it, and two functions that were not."""
    warm_up.warm_up()
    folder = tmp_path_factory.mktemp("site")
    package = folder / "discreet"
    shutil.copytree(Path(discreet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in [name for name in sys.modules if name.startswith("discreet.") and name not in ("discreet.cli",)]:
        for root in cache.cache_roots():
            kept = root / cache.module_code_digest(module)
            if kept.is_dir():
                shutil.copytree(kept, package / "__pycache__" / "kernels" / kept.name, dirs_exist_ok=True)
    (package / "constants.py").write_text("FACTOR = 2\n")
    (package / "callee.py").write_text(CALLEE.format(expression="FACTOR * x"))
    (package / "caller.py").write_text(CALLER)
    everything = [folder, *folder.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)


def confined(site: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python with that package, without a home and without the right to write where modes forbid it (which root has)."""
    unprivileged = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    forgotten = ("XDG_CACHE_HOME", "DISCREET_CACHE", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in forgotten}
    return subprocess.run(
        [*unprivileged, sys.executable, *arguments],
        env={**environment, "HOME": os.devnull, "PYTHONPATH": str(site), "MPLCONFIGDIR": str(cwd)},
        cwd=cwd,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_copy_cannot_be_written_to(site: Path, tmp_path: Path) -> None:
    done = confined(site, "-c", f"open({str(site / 'discreet' / 'new')!r}, 'w')", cwd=tmp_path)
    assert "Permission" in done.stderr


@pytest.mark.slow
def test_warmed_kernels_are_found(site: Path, tmp_path: Path) -> None:
    done = confined(site, "-c", RELEASE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert COMPILING not in done.stderr


@pytest.mark.slow
def test_without_them_it_works_and_one_line_says_what_happens(site: Path, tmp_path: Path) -> None:
    done = confined(site, "-c", "from discreet.caller import answer; print(answer(10))", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "21\n"), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"discreet: {COMPILING} for this process alone")
    assert "DISCREET_CACHE" in line


@pytest.mark.slow
@pytest.mark.parametrize("command", wide(["sample", "demo"], ["sample"]))
def test_commands_run(command: str, site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("who,what\n" + "ann,tea\nbob,coffee\n" * 5)
    (tmp_path / "drinks.txt").write_text("tea\ncoffee\n")
    options = {
        "sample": [
            "rows.csv",
            "--client",
            "who",
            "--value",
            "what",
            "--domain",
            "drinks.txt",
            "--epsilon",
            "1",
            "-o",
            "private.csv",
            "-q",
        ],
        "demo": ["--epsilon", "2"],
    }
    done = confined(site, "-c", "from discreet.cli import main; main()", command, *options[command], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert COMPILING not in done.stderr
    if command == "sample":
        assert len((tmp_path / "private.csv").read_text().splitlines()) == 3
