"""No old code runs: what is kept is known by everything that went into it, and is found wherever it was put."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet._base.kernels import _cache as cache

COMPILING = "compiling the kernels"
CALLER = """
from discreet.callee import twice
from discreet._base.kernels import kernel


@kernel()
def answer(x):
    return twice(x) + 1
"""
CALLEE = """
from discreet.constants import FACTOR
from discreet._base.kernels import kernel


@kernel()
def twice(x):
    return {expression}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return make_package(tmp_path / "site")


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = make_package(tmp_path_factory.mktemp("compiled"))
    assert answer(found) == (21, True)
    return found


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of the package whose functions were compiled before it was copied."""
    return Path(shutil.copytree(compiled_once, tmp_path / "copied" / "discreet"))


def make_package(site: Path) -> Path:
    """A copy of the package with three modules more, one of which calls another, which takes a constant from the third."""
    copy = site / "discreet"
    shutil.copytree(Path(discreet.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    (copy / "constants.py").write_text("FACTOR = 2\n")
    (copy / "callee.py").write_text(CALLEE.format(expression="FACTOR * x"))
    (copy / "caller.py").write_text(CALLER)
    return copy


ANSWER = "from discreet.caller import answer; print(answer(10))"


def answer(package: Path, program: str = ANSWER, **environment: str) -> tuple[int, bool]:
    """What the compiled function says to 10 in a fresh process, and whether it had to be compiled."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": str(package.parent),
            "DISCREET_CACHE": "",
            "NUMBA_CACHE_DIR": "",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout), COMPILING in done.stderr


@pytest.mark.slow
def test_a_change_in_what_is_called_is_seen(compiled: Path) -> None:
    """Also in a constant of yet another module; and going back finds what was there before."""
    package = compiled
    (package / "callee.py").write_text(CALLEE.format(expression="FACTOR * x + 100"))
    assert answer(package) == (121, True)
    (package / "constants.py").write_text("FACTOR = 3\n")
    assert answer(package) == (131, True)
    (package / "constants.py").write_text("FACTOR = 2\n")
    assert answer(package) == (121, False)


@pytest.mark.slow
def test_a_module_that_is_loaded_again_is_compiled_again(compiled: Path) -> None:
    """What it compiles is not stored in the place of the old source's code."""
    new = CALLEE.format(expression="FACTOR * x + 100")
    program = f"""
import importlib
from pathlib import Path
from discreet import callee, caller
caller.answer(10)
Path(callee.__file__).write_text({new!r})
importlib.reload(callee)
print(importlib.reload(caller).answer(10))
"""
    assert answer(compiled, program) == (121, True)
    assert answer(compiled) == (121, False)
    (compiled / "callee.py").write_text(CALLEE.format(expression="FACTOR * x"))
    assert answer(compiled) == (21, False)


@pytest.mark.slow
def test_functions_that_get_a_name_while_numba_is_loaded_are_compiled(compiled: Path) -> None:
    """Another thread imports their module at that time."""
    program = """
from discreet import callee, caller
from discreet._base.kernels import _functions
functions = [callee.twice]
_functions.load_numba()
caller.twice = functions[0]
print(int(caller.answer(10.0)))
"""
    assert answer(compiled, program) == (21, True)


def test_processes_that_store_at_once_do_not_mix_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = cache._FunctionFiles(tmp_path, "of a version", "function")
    with monkeypatch.context() as patched:
        patched.setattr(
            cache._FunctionFiles, "_read_index", lambda self, folder: {}
        )  # before the other has written its own
        files.save_overload_data("of integers", 1)
        index = next(tmp_path.rglob("*.nbi"))
        first = index.read_bytes()
        files.save_overload_data("of numbers", 2)
    assert files.load_overload_data("of numbers") == 2
    index.write_bytes(first)
    assert files.load_overload_data("of integers") == 1


@pytest.mark.slow
def test_a_copy_of_the_package_brings_its_kernels_along(compiled: Path) -> None:
    assert answer(compiled) == (21, False)


@pytest.mark.slow
def test_the_folder_that_is_named_is_used(package: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    assert answer(package, DISCREET_CACHE=str(named)) == (21, True)
    assert list(named.rglob("*.nbi"))
    assert not (package / "__pycache__" / "kernels").exists()
    assert answer(package, DISCREET_CACHE=str(named)) == (21, False)


@pytest.mark.slow
def test_damaged_files_are_compiled_anew(compiled: Path) -> None:
    files = [file for file in (compiled / "__pycache__" / "kernels").rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".nbi", ".nbc", ".code"}
    for place, file in enumerate(files):
        file.write_bytes(file.read_bytes()[:20] if place % 2 else b"")
    assert answer(compiled) == (21, True)
    assert answer(compiled) == (21, False)


@pytest.mark.slow
def test_code_that_others_may_have_written_is_not_run(package: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    assert answer(package, DISCREET_CACHE=str(named)) == (21, True)
    folder = named / "discreet-kernels"
    folder.chmod(folder.stat().st_mode | stat.S_IWOTH)
    assert answer(package, DISCREET_CACHE=str(named)) == (21, True)


def test_old_versions_are_removed_in_the_end(tmp_path: Path) -> None:
    for number in range(cache._MOST_FOLDERS + 5):
        folder = tmp_path / f"{number:03}"
        folder.mkdir()
        os.utime(folder, (number, number))
    cache._remove_oldest_cache_folders(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{n:03}" for n in range(5, cache._MOST_FOLDERS + 5)]


def test_every_module_that_compiled_code_reaches_is_an_ingredient() -> None:
    """The draw of the engines calls into the projection, which is a package and two layers away."""
    from discreet.release import _compiled as compiled

    reached = cache._reachable_modules(compiled.__name__)
    assert {"discreet.release._compiled", "discreet.projection._compiled"} <= reached
