"""Files whose content is run, read only where no other user of the machine could have written them.

A compiled function is kept as a pickle, and reading a pickle runs it. So a file is read only if

* it is a plain file that belongs to a trusted owner: this user, root or the owner of this package, whose code runs here anyway,
* neither its group nor others may write to it, and
* the same holds of every folder from the root of the cache down to it.

Each check looks at the descriptor that is then read. A folder below the root is opened from the descriptor of the folder above
it, and links are not followed there, so nothing can be exchanged between a check and the reading. A hard link shows the owner and
the mode of the file it leads to. (An access list that lets somebody write shows up in the bits of the group.)

A signature would protect no better: its key would lie in a file that only an owner and a mode protect, and code that root
compiled into an image must be readable by users who hold no key.

Files and folders are made with modes 0644 and 0755, less what the umask takes away: several users may read one cache, and under
no umask may anybody but its owner write to it.
"""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_PACKAGE_FOLDER = Path(__file__).parents[1]
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_OPEN_TO_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UntrustedFile(PermissionError):
    """Somebody else may have written this."""


@contextmanager
def open_trusted_root(path: Path) -> Iterator[int]:
    """A descriptor of the folder that a cache is in, wherever a link of that name leads.

    Raises:
        UntrustedFile: Others own it or may write to it.
        OSError: It cannot be opened.
    """
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check_trusted(handle, str(path))
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_trusted_folder(name: str, *, within: int) -> Iterator[int]:
    """A descriptor of a folder directly within another one."""
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        _check_trusted(handle, name)
        yield handle
    finally:
        os.close(handle)


def read_trusted_file(name: str, *, within: int) -> bytes:
    """The content of a file directly within a folder."""
    # a pipe is not waited for: it is refused
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    with os.fdopen(handle, "rb") as file:
        _check_trusted(handle, name)
        return file.read()


def write_trusted_file(name: str, content: bytes, *, within: int) -> None:
    """Write a new file and give it this name in one step, in the place of what had it before."""
    partial = f"{name}.tmp.{uuid.uuid4().hex[:16]}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(partial, flags, _FILE_MODE, dir_fd=within)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(partial, name, src_dir_fd=within, dst_dir_fd=within)
    except OSError:
        with suppress(OSError):
            os.unlink(partial, dir_fd=within)
        raise


def make_trusted_folder(name: str, *, within: int) -> bool:
    """Make a folder directly within another one; False where there is one already."""
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=within)
    except FileExistsError:
        return False
    return True


def make_trusted_path(path: Path) -> None:
    """Make a folder with all that are missing above it, none of which others may write to."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def _check_trusted(handle: int, name: str) -> None:
    status = os.fstat(handle)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        raise UntrustedFile(f"{name} is not a plain file")
    if status.st_uid not in (0, os.geteuid(), _package_owner()):
        raise UntrustedFile(f"{name} belongs to another user")
    if status.st_mode & _OPEN_TO_OTHERS:
        raise UntrustedFile(f"{name} has mode {stat.S_IMODE(status.st_mode):04o}, so other users may write to it")


@cache
def _package_owner() -> int:
    return _PACKAGE_FOLDER.stat().st_uid
