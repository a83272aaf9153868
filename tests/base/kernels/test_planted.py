"""A pickle that another user of the machine has planted in the cache of compiled code is not run."""

import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import discreet
from discreet._base.kernels import _cache as cache
from discreet._base.kernels._cache import UntrustedFile
from tests.base.kernels.test_cache import CALLEE, CALLER, answer
from tests.needed import cannot_run

SOMEBODY_ELSE = 65534

if os.geteuid() != 0:
    cannot_run("planting files as another user needs root")

AS_SOMEBODY_ELSE = """
import os, sys
from pathlib import Path
os.setgroups([])
os.setresgid({user}, {user}, {user})
os.setresuid({user}, {user}, {user})
root, bomb = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes()
written = 0
for path in sorted(filter(Path.is_file, root.rglob("*"))):
    try:
        path.write_bytes(bomb)
        written += 1
    except OSError:
        pass
for folder in [root, *filter(Path.is_dir, root.rglob("*"))]:
    try:
        (folder / "planted").write_bytes(bomb)
        written += 1
    except OSError:
        pass
print(written)
"""


class Bomb:
    """A pickle that makes a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str, str], object], tuple[str, str]]:
        return open, (str(self.marker), "w")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of the machine can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="discreet-planted-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def plant_as_somebody_else(root: Path, bomb: Path) -> int:
    """How many files another user could write below a folder: every compiled file, and a new one in each folder, are tried."""
    program = AS_SOMEBODY_ELSE.format(user=SOMEBODY_ELSE)
    done = subprocess.run([sys.executable, "-c", program, str(root), str(bomb)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def written_bomb(folder: Path) -> tuple[Path, Path]:
    """A file with the pickle, and the file that reading it would make."""
    marker, bomb = folder / "it ran", folder / "bomb"
    bomb.write_bytes(pickle.dumps(Bomb(marker)))
    pickle.loads(bomb.read_bytes()).close()  # it does run, where it is read
    marker.unlink()
    return bomb, marker


@pytest.mark.slow
def test_a_pickle_that_somebody_else_planted_is_not_run(open_folder: Path) -> None:
    """Under umask 000 nobody else can write; and what was left writable by others, and written, is compiled anew and replaced."""
    package = open_folder / "site" / "discreet"
    shutil.copytree(Path(discreet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    (package / "constants.py").write_text("FACTOR = 2\n")
    (package / "callee.py").write_text(CALLEE.format(expression="FACTOR * x"))
    (package / "caller.py").write_text(CALLER)
    bomb, marker = written_bomb(open_folder)
    named = open_folder / "missing" / "named"
    before = os.umask(0)
    try:
        assert answer(package, DISCREET_CACHE=str(named)) == (21, True)
        made = [named.parent, named, *named.rglob("*")]
        assert any(path.suffix == ".nbc" for path in made)
        assert not [path for path in made if path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)]
        assert plant_as_somebody_else(named, bomb) == 0

        compiled = [path for path in made if path.is_file()]
        for path in compiled:
            path.chmod(0o666)
        assert plant_as_somebody_else(named, bomb) == len(compiled)
        assert answer(package, DISCREET_CACHE=str(named)) == (21, True)
        assert not marker.exists()
        assert answer(package, DISCREET_CACHE=str(named)) == (21, False)
    finally:
        os.umask(before)
    assert not marker.exists()


def given_away(path: Path) -> None:
    os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)


def linked_hard(path: Path) -> None:
    """The name leads to a file that belongs to somebody else."""
    theirs = path.with_name("theirs")
    theirs.write_bytes(path.read_bytes())
    given_away(theirs)
    path.unlink()
    path.hardlink_to(theirs)


def linked(path: Path) -> None:
    """The name is a link out of the cache."""
    moved = path.rename(path.parents[2] / f"moved-{path.name}")
    path.symlink_to(moved)


def opened(bits: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(path.stat().st_mode | bits)


def made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILED = {
    "the file is somebody else's": ("file", given_away),
    "others may write to the file": ("file", opened(stat.S_IWOTH)),
    "its group may write to the file": ("file", opened(stat.S_IWGRP)),
    "the file is a hard link": ("file", linked_hard),
    "the file is a link": ("file", linked),
    "the file is a pipe": ("file", made_a_pipe),
    "the folder is somebody else's": ("folder", given_away),
    "others may write to the folder": ("folder", opened(stat.S_IWOTH)),
    "its group may write to the folder": ("folder", opened(stat.S_IWGRP)),
    "the folder is a link": ("folder", linked),
    "the root is somebody else's": ("root", given_away),
    "others may write to the root": ("root", opened(stat.S_IWOTH)),
    "its group may write to the root": ("root", opened(stat.S_IWGRP)),
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc", ".code"])
@pytest.mark.parametrize("case", SPOILED)
def test_nothing_is_read_that_others_could_have_written(open_folder: Path, case: str, suffix: str) -> None:
    root = open_folder / "above" / "discreet-kernels"
    root.mkdir(parents=True)
    kept = cache._FunctionFiles(root, "0" * 32, "function")
    kept.save_overload_data("key", "value")
    save: Callable[[], None] = partial(kept.save_overload_data, "key", "value")
    load: Callable[[], object] = partial(kept.load_overload_data, "key")
    if suffix == ".code":
        save, load = partial(kept.save_machine_code, "int64", b"value"), partial(kept.load_machine_code, "int64")
    save()
    stored = load()
    folder = root / kept.digest
    (file,) = folder.glob(f"*{suffix}")
    bomb, marker = written_bomb(open_folder)
    file.write_bytes(bomb.read_bytes())
    which, spoil = SPOILED[case]
    spoil({"file": file, "folder": folder, "root": root}[which])
    refusal = OSError if "is a link" in case else UntrustedFile  # a link is not even opened
    with pytest.raises(refusal, match=r"symbolic links|Not a directory|belongs to|has mode|plain file"):
        load()
    assert not marker.exists()
    if which == "file":  # the way back: compiled anew and kept again
        save()
        assert load() == stored
    assert not marker.exists()


def test_code_that_root_compiled_serves_other_users(open_folder: Path) -> None:
    """An image is built by root and run by somebody else: files of root and of the package's owner are read."""
    root = open_folder / "discreet-kernels"
    root.mkdir()
    cache._FunctionFiles(root, "0" * 32, "function").save_overload_data("key", "value")
    program = (
        "import os\nfrom pathlib import Path\nfrom discreet._base.kernels import _cache as cache\n"
        "import numba.core.serialize\n"
        f"os.setgroups([]); os.setresgid(*[{SOMEBODY_ELSE}] * 3); os.setresuid(*[{SOMEBODY_ELSE}] * 3)\n"
        f"print(cache._FunctionFiles(Path({str(root)!r}), '0' * 32, 'function').load_overload_data('key'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "value\n"), done.stderr
