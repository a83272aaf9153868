"""Files of tables: their endings and formats, the footers of Parquet, and scratch files for records that do not fit into memory.

This module imports neither polars nor Arrow: commands that read no table import it at start-up.

**Parquet.** A few kilobytes may unpack to gigabytes, so the unpacked size of a row group is found in its page headers before it is read. The
sums in a file's footer may be wrong, but page headers cannot, since readers unpack by them. Files with modest row groups are left to polars,
which reads whole row groups. Others are read by Arrow, a page and a slice of rows at a time. Footers and headers are written in Thrift's
compact protocol. Reading them always ends: every field takes at least one byte, and a place beyond the end is an IndexError. (Arrow's own
metadata reader is not used on files from others: on bad input it may end the process.)

**Scratch files.** Such a file has no name in any folder, so it lives only as long as the process that has it open. After a signal, a crash or
an error the system reclaims its blocks. If the system cannot make a file without a name, the name is removed before the first byte is
written.
"""

import glob
import gzip
import json
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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import translating_read_errors
from discreet.errors import DiscreetError, check_choice, check_path, refuse_repeated_column_names

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
MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
_GZIP = b"\x1f\x8b"
_PACKED = (_GZIP, b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_SQLITE = b"SQLite format 3\0"
_HEAD = 1 << 16  # bytes read for a first line, or for a header
_TEXTS_IN_FOLDERS = IN_FOLDERS.intersection(TEXTS)
FORMATS = ("parquet", "csv", "arrow")  # that are written
REPLACE_HINT = "name another file, or replace it: replace=True (--force)"

_PARQUET_MARK = b"PAR1"
_PAGE_HEADER = 1 << 12  # bytes read for a page's header; statistics can make it longer
_LARGEST_PAGE_HEADER = 1 << 24
_LARGEST_PAGE = 1 << 28  # bytes, unpacked
_ROWS = 1 << 17  # at a time
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # of physical types: booleans, integers, floats
_TEXT_TYPE = 6  # the physical type of texts
_VIEW = 16  # bytes for a text in addition to its own
_DEEPEST = 32  # nested fields
# kinds of fields
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_WIDTHS_WITHOUT_VALUE = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}  # bytes of fields that are passed over
_AT_ONCE = 1 << 20  # bytes
_ALWAYS, _RATIO = 1 << 30, 200  # a packed text may unpack to this many bytes, or to this many times its size
_STALE = 86400.0  # seconds after which an untouched folder is abandoned
_LEFT = re.compile(r"discreet-[a-z0-9_]{8}")


def table_ending_without_gz(path: str | Path) -> str:
    """The ending that tells the format of a table, in small letters: .csv for in.csv.gz."""
    name = Path(path)
    return Path(name.stem).suffix.lower() if has_gzip_ending(path) else name.suffix.lower()


def has_gzip_ending(path: str | Path) -> bool:
    """Whether a file is called a packed one (.gz)."""
    return Path(path).suffix.lower() == GZIP


def partition_keys_in_path(path: str) -> dict[str, str | None]:
    """The partition keys in the names of a file's folders; None for Hive's name of a missing value."""
    pairs = (part.partition("=") for part in Path(path).parts[:-1])
    values = {unquote(key): unquote(value) for key, equals, value in pairs if key and equals}
    return {key: None if value == _HIVE_NULL else value for key, value in values.items()}


@contextmanager
def open_text_unpacked(path: str, name: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The bytes of a text, unpacked if it is packed. `name`: its name in messages."""
    if not has_gzip_ending(path):
        with open(path, "rb") as file:
            yield file
        return
    try:
        with gzip.open(path, "rb") as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DiscreetError(f"{name} is damaged: it ends early or cannot be unpacked; write it again") from None


def read_first_bytes(file: str, name: str) -> bytes:
    """The first bytes of a text, unpacked, with its header."""
    with open_text_unpacked(file, name) as stream:
        return stream.read(_HEAD)


def begins_with_json_object(head: bytes) -> bool:
    """Whether the first line of a file is a JSON object."""
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):  # ValueError: no JSON, or no UTF-8
        return False


def list_input_files(path: str) -> list[str]:
    """The files of an input: a file, those in a folder, or those that a glob names."""
    if os.path.isdir(path):
        files = sorted(str(file) for file in Path(path).rglob("*") if _is_table_file_refusing_packed_twin(file))
        if not files:
            raise DiscreetError(f"folder {path} holds no {', '.join(sorted(IN_FOLDERS))} file")
        return files
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise DiscreetError(f"{path} is no ordinary file; give - and pipe it to standard input")
        return [path]
    files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise DiscreetError(f"{path} does not exist")
    return files


def _is_table_file_refusing_packed_twin(file: Path) -> bool:
    """Whether a file in a folder is read. A text that lies there packed and unpacked is an error: its rows would count twice."""
    if has_gzip_ending(file):
        if table_ending_without_gz(file) not in _TEXTS_IN_FOLDERS or not file.is_file():
            return False
        if file.with_suffix("").exists():
            raise DiscreetError(f"{file} lies beside {file.with_suffix('').name}; name one of them, or move one away")
        return True
    return file.suffix in IN_FOLDERS and file.is_file()


def detect_file_format(path: str, name: str | None = None) -> str:
    """The format of a file. `name`: its name in messages.

    The first bytes decide between Parquet, Arrow and text; among texts the ending decides. A text with another ending is JSON lines if its
    first line is an object, else CSV.
    """
    label = path if name is None else name
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DiscreetError(f"{label} cannot be read: {error.strerror}") from None
    if not head:
        raise DiscreetError(f"{label} is empty")
    if head.startswith(_GZIP) and has_gzip_ending(path):
        head = read_first_bytes(path, label)
        if MAGIC.get(head[:4]) is not None:
            raise DiscreetError(f"{label} is a packed {MAGIC[head[:4]]} file; unpack it (it may be compressed inside)")
        if not head:
            raise DiscreetError(f"{label} is empty")
    if head.startswith(_PACKED):
        raise DiscreetError(
            f"{label} is packed; unpack it first (texts may be packed by gzip and called .csv.gz, .tsv.gz, .jsonl.gz or .ndjson.gz; Parquet "
            "and Arrow files may be compressed inside)"
        )
    if head.startswith(_SQLITE):
        raise DiscreetError(
            f"{label} is a database; write a table of it first (of the samples of a collection with: discreet export)"
        )
    suffix, kind = table_ending_without_gz(path), MAGIC.get(head[:4])
    if kind is None:
        declared_format = READ.get(suffix, "text")
        if declared_format not in (*TEXTS.values(), "text"):
            raise DiscreetError(f"{label} is called {declared_format} but holds text")
        return TEXTS.get(suffix) or ("json lines" if begins_with_json_object(head) else "csv")
    declared_format = READ.get(suffix, kind)
    if declared_format != kind and not {declared_format, kind} <= {"arrow", "arrow stream"}:
        raise DiscreetError(f"{label} is called {declared_format} but holds {kind}")
    return kind


def choose_output_format(path: str, declared: str | None = None) -> str:
    """The format to write: the declared one, or that of the file's ending; Arrow for standard output."""
    if declared is not None:
        check_choice("format", declared, FORMATS)
        return declared
    if isinstance(path, str) and path == STANDARD:
        return "arrow"
    suffix = check_path("output", path).suffix.lower()
    if suffix not in WRITTEN:
        raise DiscreetError(f"output {path} ends in none of {', '.join(WRITTEN)}; rename it or give a format")
    return WRITTEN[suffix]


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group: its unpacked bytes, whether it contains lists, and whether it has a dictionary of texts."""

    column: str
    unpacked_bytes: int
    has_lists: bool
    dictionary: bool


class RowGroups(NamedTuple):
    """Some row groups of a Parquet file, one after the other, and the number of its rows when they were chosen."""

    numbers: range
    rows_of_file: int


class ParquetFile:
    """A Parquet file's columns and metadata, and the unpacked size of its columns.

    `row_groups`: those that are read; by default all.
    """

    def __init__(self, path: str, name: str, row_groups: RowGroups | None = None) -> None:
        self.path, self.name = path, name
        with translating_read_errors(name, "is no whole Parquet file"), open(path, "rb") as file:
            footer = self._read_footer(file)
        with self._translating_damage_errors("its footer cannot be read"):
            self.columns = list(_iterate_column_names_of_schema(footer[2]))
            groups = footer.get(4, [])
            self.rows_of_groups = [group.get(3, 0) for group in groups]
            self.rows_of_file = max(0, footer.get(3, 0))
            self._row_groups = range(len(groups)) if row_groups is None else row_groups.numbers
            self._groups = groups[self._row_groups.start : self._row_groups.stop]
            self.rows = self.rows_of_file if row_groups is None else self.span_of_rows[1]
            self.metadata = {pair[1]: pair.get(2, b"") for pair in footer.get(5, [])}
        refuse_repeated_column_names(self.columns, name)
        if self._row_groups.stop > len(groups) or (
            row_groups is not None and row_groups.rows_of_file != self.rows_of_file
        ):
            raise DiscreetError(f"{name} has changed while it was read; run the same again")

    @property
    def span_of_rows(self) -> tuple[int, int]:
        """The first row of the row groups that are read, and the number of their rows."""
        start, stop = self._row_groups.start, self._row_groups.stop
        return sum(self.rows_of_groups[:start]), sum(self.rows_of_groups[start:stop])

    def iterate_column_chunk_layouts(self, columns: Sequence[str] | None) -> Iterator[list[ColumnChunk]]:
        """The chunks of these columns (all, unless named) for each row group."""
        with (
            translating_read_errors(self.name, "is damaged"),
            self._translating_damage_errors("a page has no header"),
            open(self.path, "rb") as file,
        ):
            for group in self._groups:
                chunks = (chunk[3] for chunk in group.get(1, []))
                yield [
                    self._read_column_chunk_layout(file, chunk, group.get(3, 0))
                    for chunk in chunks
                    if columns is None or chunk[3][0].decode() in columns
                ]

    def read_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of these columns, a slice at a time, not checked yet; dictionary columns stay dictionaries."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        coded_columns = {
            chunk.column for group in self.iterate_column_chunk_layouts(columns) for chunk in group if chunk.dictionary
        }
        texts = [name for name in columns if name in coded_columns]
        with translating_read_errors(self.name, "is damaged", pa.ArrowException):
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts)
            rows = file.iter_batches(batch_size=_ROWS, row_groups=list(self._row_groups), columns=list(columns))
        while True:
            with translating_read_errors(self.name, "is damaged", pa.ArrowException):
                try:
                    batch = next(rows)
                except StopIteration:
                    return
            yield batch

    def _read_footer(self, file: Any) -> Any:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _PARQUET_MARK or not 0 < length <= size - 12:
            raise DiscreetError(f"{self.name} is no whole Parquet file: it does not end like one; write it again")
        file.seek(size - 8 - length)
        with self._translating_damage_errors("its footer cannot be read"):
            return _read_thrift_struct(file.read(length), 0)[0]

    def _read_column_chunk_layout(self, file: Any, chunk: Any, rows: int) -> ColumnChunk:
        column, kind, start = chunk[3][0].decode(), chunk[1], chunk[9]
        dictionary_start = chunk.get(11) or 0
        without_values = start == 0 and rows == 0 and chunk[5] == 0  # Arrow then writes the dictionary alone
        if dictionary_start > 0 and (dictionary_start < start or without_values):
            start = dictionary_start
        values = page_bytes = largest = 0
        position, end = start, start + chunk[7]
        while position < end:
            header, packed_bytes, unpacked_bytes, count = _read_parquet_page_header(file, position)
            position += header + packed_bytes
            values += count
            page_bytes += unpacked_bytes
            largest = max(largest, unpacked_bytes)
        if largest > _LARGEST_PAGE and chunk[4]:  # packed
            raise DiscreetError(
                f"{self.name}: a page of column {column!r} would unpack to {largest:,} bytes; write the file with smaller pages"
            )
        unpacked_bytes = max(values, rows) * _WIDTHS.get(kind, _VIEW) + (0 if kind in _WIDTHS else page_bytes)
        has_lists = len(chunk[3]) > 1
        return ColumnChunk(
            column, unpacked_bytes, has_lists, bool(dictionary_start) and kind == _TEXT_TYPE and not has_lists
        )

    @contextmanager
    def _translating_damage_errors(self, why: str) -> Iterator[None]:
        """Turn missing or wrong fields into an error that the file is damaged."""
        try:
            yield
        except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError, OverflowError):
            raise DiscreetError(f"{self.name} is damaged: {why}; write it again") from None


def _read_parquet_page_header(file: Any, position: int) -> tuple[int, int, int, int]:
    """(length of its header, packed bytes, unpacked bytes, values) of the page at that place."""
    length = _PAGE_HEADER
    while True:
        file.seek(position if position >= 0 else 1 << 62)
        head = file.read(length)
        try:
            fields, header_length = _read_thrift_struct(head, 0)
            break
        except IndexError:
            if len(head) < length or length >= _LARGEST_PAGE_HEADER:
                raise
            length *= 8
    unpacked_bytes, packed_bytes = fields[2], fields[3]
    count = fields.get(5, fields.get(8, {})).get(1, 0)
    if min(unpacked_bytes, packed_bytes, count) < 0:
        raise IndexError
    return header_length, packed_bytes, unpacked_bytes, count


def _iterate_column_names_of_schema(schema: list[dict[int, Any]]) -> Iterator[str]:
    """The names of the columns: the children of the first element of a schema, which is stored depth first."""
    remaining = [schema[0].get(5, 0)]  # remaining children at each level
    for element in schema[1:]:
        while remaining and remaining[-1] <= 0:
            remaining.pop()
        if not remaining:
            raise IndexError
        if len(remaining) == 1:
            yield element[4].decode()
        remaining[-1] -= 1
        if element.get(5, 0) > 0:
            remaining.append(element[5])


def _read_thrift_varint(data: bytes, position: int) -> tuple[int, int]:
    """(an unsigned number, its end)."""
    value = shift = 0
    while shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise IndexError


def _read_thrift_struct(data: bytes, position: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """(the fields of a struct by their numbers in parquet.thrift, its end)."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[position]:
        position += 1
        if head >> 4:
            number += head >> 4
        else:
            number, position = _read_thrift_value(data, position, _SHORT, depth)
        fields[number], position = _read_thrift_value(data, position, head & 15, depth)
    return fields, position + 1


def _read_thrift_value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    """(a whole number, bytes, a list or a struct, its end); None in place of truth values, single bytes and floats."""
    if _SHORT <= kind <= _LONG:
        value, position = _read_thrift_varint(data, position)
        return (value >> 1) ^ -(value & 1), position
    if kind == _BINARY:
        length, position = _read_thrift_varint(data, position)
        if position + length > len(data):
            raise IndexError
        return data[position : position + length], position + length
    if kind in _WIDTHS_WITHOUT_VALUE:
        return None, position + _WIDTHS_WITHOUT_VALUE[kind]
    if depth == _DEEPEST:
        raise IndexError
    if kind == _STRUCT:
        return _read_thrift_struct(data, position, depth + 1)
    if kind not in (_LIST, _SET):
        raise IndexError  # Parquet has no maps
    head = data[position]
    size, position = (head >> 4, position + 1) if head < 0xF0 else _read_thrift_varint(data, position + 1)
    item_kind = head & 15
    if item_kind in (_TRUE, _FALSE):
        return None, position + size  # a byte each
    values = []
    for _ in range(size):
        value, position = _read_thrift_value(data, position, item_kind, depth + 1)
        values.append(value)
        if position > len(data):
            raise IndexError
    return values, position


class ScratchBlock(NamedTuple):
    """The places and types of arrays in the file."""

    offset: int
    kinds: tuple[tuple[Any, int], ...]


class ScratchFile:
    """Arrays in a file without a name. Threads may read blocks in any order."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = _scratch_folder_or_default(folder)
        remove_stale_scratch_folders(self._folder)
        self._file = _open_unnamed_file(self._folder)
        self._end = 0
        self._seeking = threading.Lock()  # where the system cannot read and write at a place (Windows)
        weakref.finalize(self, self._file.close)

    def append_arrays(self, arrays: Sequence[NDArray[Any]]) -> ScratchBlock:
        """Append arrays."""
        block = ScratchBlock(self._end, tuple((array.dtype, array.size) for array in arrays))
        for array in arrays:
            view = memoryview(np.ascontiguousarray(array).view(np.uint8).data) if array.size else memoryview(b"")
            while view:
                try:
                    count = self._write_bytes_at_offset(view, self._end)
                except OSError as error:
                    raise DiscreetError(
                        f"records larger than memory could not be put into {self._folder}: {error.strerror}; give a larger memory "
                        "budget (--memory), or a folder on a larger disk (--scratch)"
                    ) from None
                self._end += count
                view = view[count:]
        return block

    def read_arrays(self, block: ScratchBlock) -> list[NDArray[Any]]:
        """The arrays of a block."""
        offset, arrays = block.offset, []
        for kind, size in block.kinds:
            array = np.empty(size, dtype=kind)
            view = memoryview(array.view(np.uint8).data) if size else memoryview(b"")
            while view:
                try:
                    count = self._fill_buffer_from_offset(view, offset)
                except OSError as error:
                    raise DiscreetError(f"records put into {self._folder} cannot be read: {error.strerror}") from None
                if not count:
                    raise DiscreetError(f"records put into {self._folder} are gone; is its disk failing?")
                offset += count
                view = view[count:]
            arrays.append(array)
        return arrays

    def _write_bytes_at_offset(self, content: memoryview, offset: int) -> int:
        """Write at a place; return how many bytes were written."""
        handle = self._file.fileno()
        if hasattr(os, "pwrite"):
            return os.pwrite(handle, content, offset)
        with self._seeking:
            os.lseek(handle, offset, os.SEEK_SET)
            return os.write(handle, content)

    def _fill_buffer_from_offset(self, buffer: memoryview, offset: int) -> int:
        """Read at a place; return how many bytes were read."""
        handle = self._file.fileno()
        if hasattr(os, "preadv"):
            return os.preadv(handle, [buffer], offset)
        with self._seeking:
            os.lseek(handle, offset, os.SEEK_SET)
            content = os.read(handle, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()


@contextmanager
def using_path_of_unpacked_text(path: str, name: str, folder: Path | None) -> Iterator[str]:
    """A path under which this process can open a text: its own, or that of a file without a name to which it is unpacked."""
    if not has_gzip_ending(path):
        yield path
        return
    limit = max(_ALWAYS, _RATIO * os.path.getsize(path))
    with (
        open_text_unpacked(path, name) as stream,
        using_path_of_spooled_stream(stream, folder, name, most=limit) as unpacked_path,
    ):
        yield unpacked_path


@contextmanager
def using_path_of_spooled_stream(
    stream: IO[bytes] | gzip.GzipFile, folder: Path | None, name: str = "standard input", *, most: int | None = None
) -> Iterator[str]:
    """Put all of a stream into a file without a name, and return a path under which this process can open it.

    `most`: the bytes beyond which a packed file is an error.
    """
    scratch_folder = _scratch_folder_or_default(folder)
    remove_stale_scratch_folders(scratch_folder)
    with _open_unnamed_file(scratch_folder) as file:
        size = 0
        while piece := stream.read(_AT_ONCE):
            size += len(piece)
            if most is not None and size > most:
                raise DiscreetError(f"{name} would unpack to more than {most:,} bytes; unpack it yourself")
            try:
                file.write(piece)
                file.flush()
            except OSError as error:
                raise DiscreetError(
                    f"{name} could not be put on disk: {error.strerror}; say where (--scratch)"
                ) from None
        path = f"/proc/self/fd/{file.fileno()}"
        yield path if os.path.exists(path) else f"/dev/fd/{file.fileno()}"


def remove_stale_scratch_folders(folder: Path) -> None:
    """Remove this user's old folders that earlier versions left when they were killed."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if _LEFT.fullmatch(entry.name) and _is_stale_scratch_folder(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_stale_scratch_folder(entry: "os.DirEntry[str]") -> bool:
    if not hasattr(os, "getuid"):
        return False
    if not entry.is_dir(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    paths = [Path(entry.path), *Path(entry.path).rglob("*")]
    is_ours = all(path.is_dir() or path.name == "input" or path.name.isdigit() for path in paths)
    return is_ours and all(time.time() - path.stat().st_mtime > _STALE for path in paths)


def _scratch_folder_or_default(folder: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if folder is None else folder


def _open_unnamed_file(folder: Path) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="discreet-", dir=folder)
    except OSError as error:
        raise DiscreetError(
            f"no file can be made in {folder}: {error.strerror}; name another folder (--scratch)"
        ) from None
