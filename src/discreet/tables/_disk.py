"""Tables on disk: file endings and formats, and scratch files for records that do not fit into memory.

This module imports neither polars nor Arrow: commands that read no table import it at start-up.

A scratch file has no name in any folder, so it lives only as long as the process that has it open. After a signal, a crash or an error the
system reclaims its blocks. If the system cannot make a file without a name, the name is removed before the first byte is written.
"""

import gzip
import os
import re
import shutil
import tempfile
import threading
import time
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError

STANDARD = "-"
WRITTEN = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
TEXTS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json lines", ".ndjson": "json lines", ".json": "json lines"}
READ = {**WRITTEN, ".arrows": "arrow stream", **TEXTS}
IN_FOLDERS = {*READ} - {".json"}  # often a document beside a table
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"  # the name of a folder for rows without the key
GZIP = ".gz"  # texts may be packed: .csv.gz
AGREEMENT_FILE = "_agreement.json"  # the agreement in a folder of samples, if its files cannot carry it


_AT_ONCE = 1 << 20  # bytes
_ALWAYS, _RATIO = 1 << 30, 200  # a packed text may unpack to this many bytes, or to this many times its size
_STALE = 86400.0  # seconds after which an untouched folder is abandoned
_LEFT = re.compile(r"discreet-[a-z0-9_]{8}")


class ScratchBlock(NamedTuple):
    """The places and types of arrays in the file."""

    offset: int
    kinds: tuple[tuple[Any, int], ...]


class Scratch:
    """Arrays in a file without a name. Threads may read blocks in any order."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = _scratch_folder(folder)
        remove_stale_folders(self._folder)
        self._file = _unnamed_file(self._folder)
        self._end = 0
        self._seeking = threading.Lock()  # where the system cannot read and write at a place (Windows)
        weakref.finalize(self, self._file.close)

    def write(self, arrays: Sequence[NDArray[Any]]) -> ScratchBlock:
        """Append arrays."""
        block = ScratchBlock(self._end, tuple((array.dtype, array.size) for array in arrays))
        for array in arrays:
            left = memoryview(np.ascontiguousarray(array).view(np.uint8).data) if array.size else memoryview(b"")
            while left:
                try:
                    written = self._write_at(left, self._end)
                except OSError as error:
                    raise DiscreetError(
                        f"records larger than memory could not be put into {self._folder}: {error.strerror}; give a larger memory "
                        "budget (--memory), or a folder on a larger disk (--scratch)"
                    ) from None
                self._end += written
                left = left[written:]
        return block

    def read(self, block: ScratchBlock) -> list[NDArray[Any]]:
        """The arrays of a block."""
        offset, found = block.offset, []
        for kind, size in block.kinds:
            array = np.empty(size, dtype=kind)
            left = memoryview(array.view(np.uint8).data) if size else memoryview(b"")
            while left:
                try:
                    got = self._read_at(left, offset)
                except OSError as error:
                    raise DiscreetError(f"records put into {self._folder} cannot be read: {error.strerror}") from None
                if not got:
                    raise DiscreetError(f"records put into {self._folder} are gone; is its disk failing?")
                offset += got
                left = left[got:]
            found.append(array)
        return found

    def _write_at(self, content: memoryview, offset: int) -> int:
        """Write at a place; return how many bytes were written."""
        handle = self._file.fileno()
        if hasattr(os, "pwrite"):
            return os.pwrite(handle, content, offset)
        with self._seeking:
            os.lseek(handle, offset, os.SEEK_SET)
            return os.write(handle, content)

    def _read_at(self, room: memoryview, offset: int) -> int:
        """Read at a place; return how many bytes were read."""
        handle = self._file.fileno()
        if hasattr(os, "preadv"):
            return os.preadv(handle, [room], offset)
        with self._seeking:
            os.lseek(handle, offset, os.SEEK_SET)
            content = os.read(handle, len(room))
        room[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()


def table_ending(path: str | Path) -> str:
    """The ending that tells the format of a table, in small letters: .csv for in.csv.gz."""
    name = Path(path)
    return Path(name.stem).suffix.lower() if is_packed(path) else name.suffix.lower()


def is_packed(path: str | Path) -> bool:
    """Whether a file is called a packed one (.gz)."""
    return Path(path).suffix.lower() == GZIP


def partition_keys(path: str) -> dict[str, str | None]:
    """The partition keys in the names of a file's folders; None for Hive's name of a missing value."""
    pairs = (part.partition("=") for part in Path(path).parts[:-1])
    found = {unquote(key): unquote(value) for key, equals, value in pairs if key and equals}
    return {key: None if value == _HIVE_NULL else value for key, value in found.items()}


@contextmanager
def open_text(path: str, name: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The bytes of a text, unpacked if it is packed. `name`: its name in messages."""
    if not is_packed(path):
        with open(path, "rb") as file:
            yield file
        return
    try:
        with gzip.open(path, "rb") as packed:
            yield packed
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DiscreetError(f"{name} is damaged: it ends early or cannot be unpacked; write it again") from None


@contextmanager
def unpacked_text(path: str, name: str, folder: Path | None) -> Iterator[str]:
    """A path under which this process can open a text: its own, or that of a file without a name to which it is unpacked."""
    if not is_packed(path):
        yield path
        return
    most = max(_ALWAYS, _RATIO * os.path.getsize(path))
    with open_text(path, name) as packed, spool_stream(packed, folder, name, most=most) as unpacked:
        yield unpacked


@contextmanager
def spool_stream(
    stream: IO[bytes] | gzip.GzipFile, folder: Path | None, name: str = "standard input", *, most: int | None = None
) -> Iterator[str]:
    """Put all of a stream into a file without a name, and return a path under which this process can open it.

    `most`: the bytes beyond which a packed file is an error.
    """
    found = _scratch_folder(folder)
    remove_stale_folders(found)
    with _unnamed_file(found) as file:
        written = 0
        while piece := stream.read(_AT_ONCE):
            written += len(piece)
            if most is not None and written > most:
                raise DiscreetError(f"{name} would unpack to more than {most:,} bytes; unpack it yourself")
            try:
                file.write(piece)
                file.flush()
            except OSError as error:
                raise DiscreetError(
                    f"{name} could not be put on disk: {error.strerror}; say where (--scratch)"
                ) from None
        own = f"/proc/self/fd/{file.fileno()}"
        yield own if os.path.exists(own) else f"/dev/fd/{file.fileno()}"


def remove_stale_folders(folder: Path) -> None:
    """Remove this user's old folders that earlier versions left when they were killed."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _LEFT.fullmatch(entry.name) and _is_stale(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_stale(entry: "os.DirEntry[str]") -> bool:
    if not hasattr(os, "getuid"):
        return False
    if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    held = [Path(entry.path), *Path(entry.path).rglob("*")]
    ours = all(path.is_dir() or path.name == "input" or path.name.isdigit() for path in held)
    return ours and all(time.time() - path.stat().st_mtime > _STALE for path in held)


def _scratch_folder(folder: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if folder is None else folder


def _unnamed_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="discreet-", dir=folder)
    except OSError as error:
        raise DiscreetError(
            f"no file can be made in {folder}: {error.strerror}; name another folder (--scratch)"
        ) from None
