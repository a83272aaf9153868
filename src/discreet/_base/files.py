"""Atomic writes of files with the right mode, and checked reads of private files.

A file is written beside its target, flushed to the disk and only then given its name. A crash, a full disk or a kill at any moment leaves the
old file or the whole new one, never a part. It may leave a file `.NAME.*.partial`, which only its owner may read.

Only a plain file is ever replaced, only if the caller allows it, and it keeps its mode. A link, a device, a pipe or a folder is an error:
renaming over it would replace the link itself rather than its target.
"""

import errno
import os
import secrets
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

from discreet.errors import DiscreetError, check_flag, check_path

# not on Windows, whose modes do not say who may read
CAN_KEEP_PRIVATE = hasattr(os, "geteuid") and hasattr(os, "fchmod")
NEW_FILE = os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # flags of os.open

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_PRIVATE_MODE = 0o600
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}  # a disk without hard links


def error_reason(error: Exception) -> str:
    """Why a file could not be read or written, without its name."""
    return str(getattr(error, "strerror", None) or error)


@contextmanager
def translating_read_errors(name: str, what: str, *library_errors: type[Exception]) -> Iterator[None]:
    """Turn errors of reading outside data (`library_errors`: those of a library) into a `DiscreetError` with their first line."""
    problems: tuple[type[Exception], ...] = (*library_errors, ValueError, KeyError, MemoryError, OverflowError)
    try:
        yield
    except DiscreetError:
        raise
    except OSError as error:
        raise DiscreetError(f"{name} {what}: {error.strerror or _first_line_of_error(error)}") from None
    except problems as error:
        raise DiscreetError(f"{name} {what}: {_first_line_of_error(error)}") from None


def _first_line_of_error(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def read_lines(path: str | Path, what: str, *, each: str) -> list[str]:
    """The lines of a UTF-8 text file; an empty line is an error."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DiscreetError(f"{what} file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DiscreetError(f"{what} file {path} is not UTF-8 text") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, start=1):
        if not line:
            raise DiscreetError(f"{path}, line {number} is empty; each line is {each}: remove it")
    return lines


def check_output_path(
    path: str | Path, *, what: str = "output", replace: bool = False, fix: str = "name another file"
) -> None:
    """Refuse a name under which no file may be written: something else than a plain file, or any file unless `replace`."""
    check_path(what, path)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise DiscreetError(f"{what} {path} cannot be written: {error_reason(error)}") from None
    kind = _KINDS.get(stat.S_IFMT(status.st_mode))
    if kind == "a folder":
        raise DiscreetError(f"{what} {path} is a folder; name a file")
    if kind is not None:
        raise DiscreetError(f"{what} {path} is {kind}, which is never replaced; name a plain file")
    if not check_flag("replace", replace):
        raise DiscreetError(f"{what} {path} exists already; {fix}")


def refuse_same_file(path: str | Path, others: Mapping[str, str | Path | None], *, what: str = "output") -> None:
    """Reject a name that leads, by any path or link, to one of the other files: {its role: its path}."""
    for role, other in others.items():
        if other is not None and leads_to_same_file(path, other):
            raise DiscreetError(f"{what} {path} would replace the {role}; name another file")


def leads_to_same_file(path: str | Path, other: str | Path) -> bool:
    """Whether two names lead to one file, or would once it is made."""
    try:
        if os.path.exists(path) and os.path.exists(other):
            return os.path.samefile(path, other)
        return os.path.realpath(path) == os.path.realpath(other)
    except (OSError, ValueError):  # opening it will raise the right error
        return False


@contextmanager
def atomic_write(
    path: str | Path,
    *,
    what: str = "output",
    replace: bool = False,
    private: bool = False,
    folders: bool = False,
    fix: str = "name another file",
) -> Iterator[IO[bytes]]:
    """A file to write to, which gets its name only on success. `private`: only its owner may read it (0600). `folders`: make missing parents.

    A replaced file passes on its mode. Without `replace`, a file that appears meanwhile is an error too.
    """
    target = check_path(what, path)
    if private:
        refuse_system_without_file_owners(path, what=what)
    if folders:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise DiscreetError(f"{what} {target}: its folder cannot be made: {error_reason(error)}") from None
    check_output_path(path, what=what, replace=replace, fix=fix)
    partial = target.parent / f".{target.name}.{secrets.token_hex(8)}.partial"
    try:
        handle = os.open(partial, os.O_WRONLY | NEW_FILE, 0o600 if private else 0o666)
    except (OSError, ValueError) as error:
        raise DiscreetError(f"{what} {path} cannot be written: {error_reason(error)}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            finished_mode = _mode_of_finished_file(file, target, private=private)
            # for every umask, and until it has its name: it may hold what must not leave yet. Some disks have no such modes (FAT, a bucket)
            with nullcontext() if private else suppress(OSError):
                _set_mode(file, _PRIVATE_MODE)
            yield file
            file.flush()
            _set_mode(file, finished_mode)
            os.fsync(file.fileno())
        check_output_path(path, what=what, replace=replace, fix=fix)
        if replace:
            os.replace(partial, target)
        else:
            _rename_without_replacing(partial, target)
        sync_folder(target.parent)
    except FileExistsError:
        raise DiscreetError(f"{what} {path} exists already; {fix}") from None
    except OSError as error:
        raise DiscreetError(f"{what} {path} could not be written: {error_reason(error)}") from None
    finally:
        with suppress(OSError):  # it has its name by now, or the disk failed, which the error above says
            os.unlink(partial)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A folder to write to, for its owner alone, which gets its name only on success."""
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise DiscreetError(f"folder {str(folder)!r} cannot be made: {error_reason(error)}") from None
    try:
        yield partial
        partial.rename(folder)
    except OSError as error:
        raise DiscreetError(f"folder {str(folder)!r} cannot be written: {error_reason(error)}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _mode_of_finished_file(file: IO[bytes], target: Path, *, private: bool) -> int:
    """The mode of the file that it replaces, or that the umask leaves."""
    if private:
        return _PRIVATE_MODE
    with suppress(FileNotFoundError):
        return stat.S_IMODE(os.lstat(target).st_mode)
    return stat.S_IMODE(os.fstat(file.fileno()).st_mode)


def _set_mode(file: IO[bytes], mode: int) -> None:
    if CAN_KEEP_PRIVATE and stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
        os.fchmod(file.fileno(), mode)


def _rename_without_replacing(partial: Path, target: Path) -> None:
    """Give a file its name, unless the name is taken by now."""
    try:
        os.link(partial, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(partial, target)


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that a new name survives a power cut where the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def refuse_system_without_file_owners(
    path: str | Path, *, what: str, error: type[DiscreetError] = DiscreetError
) -> None:
    """Refuse to keep a secret or a ledger on a system that does not say who may read a file."""
    if not CAN_KEEP_PRIVATE:
        raise error(
            f"{what} {path} cannot be kept from others: this system has no owners and modes of files; use Linux or macOS"
        )


def refuse_file_open_to_others(
    path: str | Path, status: os.stat_result, *, what: str, after: str = "", error: type[DiscreetError] = DiscreetError
) -> None:
    """Reject a file that others than its owner may read or write, with the command that fixes it. `after`: a further instruction."""
    if status.st_mode & 0o077:
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise error(
            f"{what} {path} has mode {stat.S_IMODE(status.st_mode):04o}: others on this machine may read it; "
            f"run: chmod {mode} {shlex.quote(str(path))}{after}"
        )


def read_private_file(
    path: str | Path,
    *,
    what: str,
    most: int,
    fix: str,
    after: str = "",
    own: bool = False,
    check: Callable[[os.stat_result], None] | None = None,
) -> bytes:
    """Read a plain file that only its owner may read or write; the checks are made on the open file itself.

    Args:
        path: the file's path.
        what: the name of the file in errors.
        most: the largest number of bytes to read.
        fix: the advice of errors for a file that cannot be read.
        after: a further instruction if others may have read it.
        own: whether the file must also belong to this user and have no other name: no symbolic link, no second hard link.
        check: a further check of the file's status, which raises an error.

    Returns:
        Its content.

    Raises:
        DiscreetError: for a file that cannot be read, is not plain, or may be read or written by others.
    """
    check_path(what, path)
    refuse_system_without_file_owners(path, what=what)
    no_link = os.O_NOFOLLOW if own else 0
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | no_link)  # do not wait for a pipe
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DiscreetError(f"{what} {path} is not a plain file; {fix}")
            refuse_file_open_to_others(path, status, what=what, after=after)
            if check is not None:
                check(status)
            if own and status.st_uid != os.geteuid():
                raise DiscreetError(f"{what} {path} belongs to another user; {fix}")
            if own and status.st_nlink != 1:
                raise DiscreetError(f"{what} {path} has a second name (a hard link); {fix}")
            return file.read(most)
    except DiscreetError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise DiscreetError(f"{what} {path} is a symbolic link; {fix}") from None
        raise DiscreetError(f"{what} {path} cannot be read: {error_reason(error)}; {fix}") from None
