"""The cache of compiled functions on disk, and the files it may trust.

Numba's own cache checks the file of a function, but not the files of the functions it calls: after a change in one of those the old machine
code keeps running. Here a function is stored in a folder whose name is a digest of

* the source of every module whose functions it can reach, as imported,
* the value of every constant in those modules, wherever it was defined (compiling freezes them),
* the versions of Python, numba, llvmlite and numpy, and the kind of machine,

and inside the folder under the types of its arguments, with the fields of tuples in their order, and the processor. There it is stored
twice: as numba stores it, and as machine code that runs without numba (`_machine_code`). So outdated code is not loaded, even in an
editable install after a `git pull`, and two versions never write to one file. A function that was compiled after a constant had changed in
this process is not stored.

Folders are tried in this order, all of them for reading, the first writable one for writing: `$DISCREET_CACHE`, numba's `$NUMBA_CACHE_DIR`,
`__pycache__` in this package, the user's cache. Without a writable folder, functions are compiled in memory.

A compiled function is stored as a pickle, and reading a pickle runs it; machine code runs as it is. So a file is read only if

* it is a plain file that belongs to a trusted owner: this user, root or the owner of this package, whose code runs here anyway,
* neither its group nor others may write to it, and
* the same holds of every folder from the root of the cache down to it.

A function whose file fails a check is compiled anew. Each check is on the descriptor that is then read. A folder below the root is opened
from the descriptor of the folder above it, and links are not followed there, so nothing can be exchanged between a check and the reading. A
hard link shows the owner and the mode of its file. (An access list that lets somebody write shows up in the bits of the group.)

A signature would protect no better: its key would lie in a file protected by owner and mode alone, and users without a key must be able to
read code that root compiled into an image.

Where the system has no owners and modes of files (Windows), nothing is stored: functions are compiled in memory.

Files and folders are made with modes 0644 and 0755, less what the umask takes away: several users may read one cache, and under every
umask only its owner may write to it.
"""

import errno
import hashlib
import logging
import os
import pickle
import platform
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from discreet._base.kernels._machine_code import (
    MachineCode,
    UnstorableError,
    argument_kinds_text_of_types,
    parse_header_and_object_file,
    processor_description,
    serialise_machine_code,
    tuple_classes_and_fields_in_types,
)

_PACKAGE_FOLDER = Path(__file__).parents[2]
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
_CAN_CHECK = all(hasattr(os, name) for name in ("geteuid", "O_DIRECTORY", "O_NOFOLLOW"))  # not on Windows
_OPEN_TO_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UntrustedFile(PermissionError):
    """Another user may have written this file."""


@contextmanager
def using_trusted_root(path: Path) -> Iterator[int]:
    """A descriptor of a cache's root folder, after any link of that name.

    Raises:
        UntrustedFile: Others own it or may write to it.
        OSError: It cannot be opened.
    """
    if not _CAN_CHECK:
        raise OSError(errno.ENOTSUP, "owners and modes of files cannot be checked on this system")
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _refuse_untrusted_file(handle, str(path))
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_subfolder_if_trusted(name: str, *, within: int) -> Iterator[int]:
    """A descriptor of a folder directly within another one."""
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        _refuse_untrusted_file(handle, name)
        yield handle
    finally:
        os.close(handle)


def read_trusted_file(name: str, *, within: int) -> bytes:
    """The content of a file directly within a folder."""
    # do not wait for a pipe: it is an error
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
    with os.fdopen(handle, "rb") as file:
        _refuse_untrusted_file(handle, name)
        return file.read()


def write_trusted_file(name: str, content: bytes, *, within: int) -> None:
    """Write a file and give it this name in one step, replacing the previous one."""
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
    """Make a folder directly within another one; False if it exists already."""
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=within)
    except FileExistsError:
        return False
    return True


def make_trusted_path(path: Path) -> None:
    """Make a folder and its missing parents, none of which others may write to."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def _refuse_untrusted_file(handle: int, name: str) -> None:
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


_HOME = __name__.rpartition(".")[0]  # not compiled itself
_NAME = __name__.partition(".")[0]
_TRIED_NUMBA = {(0, 68)}  # versions of numba
_FORMAT = "with machine code, 3"  # of what is stored
_MOST_FOLDERS = 64  # folders that are kept, of the latest versions
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DAMAGED = (
    OSError,
    EOFError,
    pickle.PickleError,
    ValueError,
    TypeError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
)

_log = logging.getLogger("discreet")
_sources: dict[str, tuple[ModuleSpec | None, bytes]] = {}  # digests, by module, and with which loading they were noted
_warned_about: set[str] = set()


class FunctionCache:
    """The cache of one function, with the interface that numba expects."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        return module_code_digest(self._function.__module__)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The function compiled for these types, or None."""
        _initialise_numba_runtime(context)
        key = self._overload_key(signature, context.codegen())
        for root in cache_roots():
            files = self._cached_files_in_root(root)
            try:
                data = files.load_overload_data(key)
                if data is not None:
                    # if it is damaged, both are made anew
                    is_complete = files.has_or_cannot_store_machine_code(signature)
                    result = import_module("numba.core.compiler").CompileResult._rebuild(context, *data)
                    if not is_complete:
                        self._store_machine_code_and_data(signature, result)
                    return result
            except FileNotFoundError:
                continue
            except UntrustedFile as error:
                _warn_of_untrusted_root(root, error)
            except _DAMAGED:  # a damaged file counts as missing
                files.clear_index()
        _warn_of_compiling()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store the function, if a folder is writable."""
        if result.library.has_dynamic_globals or not _is_module_code_unchanged(self._function.__module__):
            return
        self._store_machine_code_and_data(signature, result, key=self._overload_key(signature, result.codegen))

    def _store_machine_code_and_data(self, signature: Any, result: Any, *, key: Any = None) -> None:
        """Store the machine code and, with a key, what numba stores."""
        root = writable_cache_root()
        if root is None:
            return
        try:
            files = self._cached_files_in_root(root)
            if key is not None:
                files.save_overload_data(key, result._reduce())
            with suppress(UnstorableError):
                kinds = argument_kinds_text_of_types(signature)
                files.save_machine_code(kinds, serialise_machine_code(result, files.machine_code_identity_text(kinds)))
        except UntrustedFile as error:
            _warn_of_untrusted_root(root, error)
        except OSError as error:
            _log_warning_once(
                "full", f"compiled code could not be kept in {root}: {error.strerror}; it is compiled again next time"
            )

    def flush(self) -> None:
        """Remove the stored versions of this function."""
        for root in cache_roots():
            self._cached_files_in_root(root).clear_index()

    def _overload_key(self, signature: Any, codegen: Any) -> Any:
        code = hashlib.sha256(self._function.__code__.co_code).hexdigest()
        return signature, tuple_classes_and_fields_in_types(signature), codegen.magic_tuple(), code

    def _cached_files_in_root(self, root: Path) -> "_FunctionFiles":
        return _cached_files_of_function(self._function, root)


def _cached_files_of_function(function: Any, root: Path) -> "_FunctionFiles":
    name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
    return _FunctionFiles(root, module_code_digest(function.__module__), name)


def load_machine_code_of_function(function: Any, kinds: str) -> MachineCode | None:
    """The stored machine code of a function for these kinds of arguments, if there is some that may be trusted."""
    if find_spec("llvmlite") is None or find_spec("numba") is None:
        return None
    for root in cache_roots():
        try:
            files = _cached_files_of_function(function, root)
            return MachineCode(files.load_machine_code(kinds), files.machine_code_identity_text(kinds))
        except (FileNotFoundError, UnstorableError):
            continue
        except _DAMAGED as error:  # it is compiled anew, and then replaced
            if isinstance(error, UntrustedFile):
                _warn_of_untrusted_root(root, error)
            files.clear_index()
    return None


def _numba_settings() -> Iterator[tuple[str, str]]:
    """The settings of numba in the environment, which may change what it compiles."""
    return (
        (name, value) for name, value in os.environ.items() if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR"
    )


@dataclass(frozen=True)
class _FunctionFiles:
    """One function's files in a folder: an index (`.nbi`) of the types it was compiled for, and a file of code (`.nbc`) for each of them.

    They have numba's own layout: the version and then (digest, {key: name of the file}), both as pickles.
    """

    root: Path
    digest: str
    name: str

    def load_overload_data(self, key: Any) -> Any:
        """The compiled version that numba stored under this key, or None."""
        with using_trusted_root(self.root) as root, open_subfolder_if_trusted(self.digest, within=root) as folder:
            file = self._read_index(folder).get(key)
            return None if file is None else pickle.loads(read_trusted_file(file, within=folder))

    def save_overload_data(self, key: Any, data: Any) -> None:
        """Store numba's data of a compiled version under this key."""
        with self._open_own_folder() as folder:
            try:
                index = self._read_index(folder)
            except _DAMAGED:  # an untrusted index is replaced as well
                index = {}
            # no name that another process may take meanwhile
            file = index.get(key) or f"{self.name}.{uuid.uuid4().hex}.nbc"
            # the code first, so that an index names only existing files
            write_trusted_file(file, _pickle_by_numba(data), within=folder)
            self._write_index({**index, key: file}, folder)

    @contextmanager
    def _open_own_folder(self) -> Iterator[int]:
        """A descriptor of the folder of this version, which is made if necessary."""
        with using_trusted_root(self.root) as root:
            if make_trusted_folder(self.digest, within=root):
                _remove_oldest_cache_folders(self.root)
            with open_subfolder_if_trusted(self.digest, within=root) as folder:
                yield folder

    def load_machine_code(self, kinds: str) -> bytes:
        """The machine code stored for these kinds of arguments."""
        with using_trusted_root(self.root) as root, open_subfolder_if_trusted(self.digest, within=root) as folder:
            return read_trusted_file(self._machine_code_file_name(kinds), within=folder)

    def has_or_cannot_store_machine_code(self, types: Any) -> bool:
        """Whether machine code for these types of arguments is stored, or cannot be."""
        with suppress(UnstorableError):
            kinds = argument_kinds_text_of_types(types)
            try:
                parse_header_and_object_file(self.load_machine_code(kinds), self.machine_code_identity_text(kinds))
            except FileNotFoundError:
                return False
        return True

    def save_machine_code(self, kinds: str, code: bytes) -> None:
        """Store machine code for these kinds of arguments, beside the data of the same version."""
        with self._open_own_folder() as folder:
            write_trusted_file(self._machine_code_file_name(kinds), code, within=folder)

    def machine_code_identity_text(self, kinds: str) -> str:
        """Everything that machine code depends on."""
        return "\n".join((self.digest, self.name, kinds, processor_description(), str(sorted(_numba_settings()))))

    def _machine_code_file_name(self, kinds: str) -> str:
        return f"{self.name}.{hashlib.blake2b(self.machine_code_identity_text(kinds).encode(), digest_size=16).hexdigest()}.code"

    def clear_index(self) -> None:
        """Replace an existing index by an empty one, if it is writable."""
        with (
            suppress(OSError),
            using_trusted_root(self.root) as root,
            open_subfolder_if_trusted(self.digest, within=root) as folder,
        ):
            self._write_index({}, folder)

    def _read_index(self, folder: int) -> dict[Any, str]:
        try:
            content = BytesIO(read_trusted_file(f"{self.name}.nbi", within=folder))
        except FileNotFoundError:
            return {}
        if pickle.load(content) != _package_version("numba"):
            return {}
        digest, index = pickle.load(content)
        return cast(dict[Any, str], index) if digest == self.digest else {}

    def _write_index(self, index: dict[Any, str], folder: int) -> None:
        content = pickle.dumps(_package_version("numba"), protocol=-1) + _pickle_by_numba((self.digest, index))
        write_trusted_file(f"{self.name}.nbi", content, within=folder)


def note_module_sources(module: str) -> None:
    """Note the source of a module of kernels, and of what it can reach, as it is now: when it is imported, or loaded again."""
    for name in _reachable_modules(module):
        spec, source = sys.modules[name].__spec__, _sources.get(name)
        if source is None or source[0] is not spec:
            _sources[name] = spec, _source_digest(sys.modules[name])
            module_code_digest.cache_clear()


@cache
def module_code_digest(module: str) -> str:
    """The digest of everything that determines the compiled functions of a module."""
    note_module_sources(module)
    digest = hashlib.blake2b(digest_size=16)
    for fact in (
        _FORMAT,
        sys.version,
        platform.machine(),
        _numba_version_text(),
        *map(_package_version, ("llvmlite", "numpy")),
    ):
        digest.update(f"{fact}\n".encode())
    for name in sorted(_reachable_modules(module)):
        digest.update(f"{name}\n".encode() + _sources[name][1])
        for constant, value in sorted(vars(sys.modules[name]).items()):
            if not constant.startswith("__") and (text := _constant_text(value)):
                digest.update(f"{constant} {text}\n".encode())
    return digest.hexdigest()


def _is_module_code_unchanged(module: str) -> bool:
    """Whether the constants that a function was just compiled with are those of the digest that it would be stored under."""
    return module_code_digest.__wrapped__(module) == module_code_digest(module)


def cache_roots() -> Iterator[Path]:
    """The possible folders of compiled functions, in the order in which they are tried."""
    for variable in ("DISCREET_CACHE", "NUMBA_CACHE_DIR"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "discreet-kernels"
    yield _PACKAGE_FOLDER / "__pycache__" / "kernels"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home) / "discreet-kernels"


def writable_cache_root() -> Path | None:
    """The first writable folder; it is made if necessary."""
    for root in cache_roots():
        try:
            make_trusted_path(root)
            with using_trusted_root(root):
                tempfile.TemporaryFile(dir=root).close()  # permissions alone do not tell
                return root
        except UntrustedFile as error:
            _warn_of_untrusted_root(root, error)
        except OSError:
            continue
    return None


def _warn_of_untrusted_root(root: Path, error: UntrustedFile) -> None:
    # not chmod: that would trust files that may have been tampered with
    _log_warning_once(
        str(root), f"compiled code in {root} is not used: {error}; remove that folder, or name another DISCREET_CACHE"
    )


def _remove_oldest_cache_folders(root: Path) -> None:
    """Remove the oldest folders."""
    with suppress(FileNotFoundError):  # another process removes them
        folders = sorted(
            (folder for folder in root.iterdir() if folder.is_dir()), key=lambda folder: folder.stat().st_mtime
        )
        for folder in folders[:-_MOST_FOLDERS]:
            shutil.rmtree(folder, ignore_errors=True)


def _reachable_modules(module: str) -> set[str]:
    """The modules of this package whose functions a module's functions can call, that module included."""
    modules, queue = set(), {module}
    while queue:
        name = queue.pop()
        modules.add(name)
        for value in list(vars(sys.modules[name]).values()):
            origin = getattr(value, "__module__", None)
            if (
                callable(value)
                and not isinstance(value, type)
                and isinstance(origin, str)
                and _is_package_module(origin)
            ):
                queue |= {origin} - modules
    return modules


def _is_package_module(module: str) -> bool:
    return module in sys.modules and f"{module}.".startswith(f"{_NAME}.") and not f"{module}.".startswith(f"{_HOME}.")


def _source_digest(module: ModuleType) -> bytes:
    loader = module.__spec__.loader if module.__spec__ is not None else None
    text = getattr(loader, "get_source", lambda name: None)(module.__name__)
    if text is None:  # without a source file the loaded code cannot be identified
        return os.urandom(16)
    return hashlib.blake2b(text.encode()).digest()


def _constant_text(value: Any) -> str:
    """A constant as text; empty if it is not one."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (tuple, set, frozenset)):
        texts = [_constant_text(entry) for entry in value]
        return f"{type(value).__name__}({', '.join(texts if isinstance(value, tuple) else sorted(texts))})"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype.str} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return ""


def _package_version(module: str) -> str:
    return str(import_module(module).__version__)


def _numba_version_text() -> str:
    """The file in which numba has its version: importing numba takes long."""
    spec = find_spec("numba")
    return "" if spec is None or spec.origin is None else Path(spec.origin).with_name("_version.py").read_text()


def _pickle_by_numba(value: Any) -> bytes:
    return cast(bytes, import_module("numba.core.serialize").dumps(value))


def _initialise_numba_runtime(context: Any) -> None:
    """Make numba ready to load a function.

    Numba itself would import everything that it needs to compile one, which takes several times as long as loading. Compiled code needs only
    its memory manager, in the versions of numba in which this was tested.
    """
    numba = import_module("numba")
    if numba.version_info.short in _TRIED_NUMBA:
        import_module("numba.core.runtime").rtsys.initialize(context)
    else:
        context.refresh()


def _warn_of_compiling() -> None:
    if writable_cache_root() is not None:
        _log_warning_once("compiling", "compiling the kernels, once: half a minute or so")
    else:
        roots = ", ".join(map(str, cache_roots()))
        _log_warning_once(
            "compiling",
            f"compiling the kernels for this process alone, half a minute or so: none of {roots} can be written; "
            "set DISCREET_CACHE, or run python -m discreet.tables.warm_up where the image is built",
        )


def _log_warning_once(what: str, line: str) -> None:
    """Print one line, once in a process."""
    if what not in _warned_about:
        _warned_about.add(what)
        _log.warning("discreet: %s", line)
