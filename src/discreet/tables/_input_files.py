"""The files of one input as one table: which files they are, their formats, and the columns that they share.

Files of one input may drift: one has a column more, a column of 32-bit integers in one is 64 bits wide in another, texts are plain here
and a dictionary there, or columns stand in another order. `FileColumns` holds the columns of all files. Only the columns that are used have
to agree; one that is missing, or of another kind, is an error that names the file and the column.

| kinds of one column | read as |
|---|---|
| integers of any width | 64-bit integers (128 bits beside unsigned ones of 64, which are then checked one by one) |
| texts, dictionaries of texts | texts |
| floats of 32 and 64 bits, integers beside floats | 64-bit floats, if the column is one of numbers; for clients and labels an error |
| a column of nulls alone | nulls of the kind in the other files |
"""

import glob
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from discreet.errors import DiscreetError
from discreet.tables._disk import IN_FOLDERS, READ, TEXTS, is_packed, table_ending
from discreet.tables._text_files import begins_with_an_object, read_head

MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
_GZIP = b"\x1f\x8b"
_PACKED = (_GZIP, b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_SQLITE = b"SQLite format 3\0"
_HEAD = 1 << 16  # bytes read for a first line
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum)
_TEXTS_IN_FOLDERS = IN_FOLDERS.intersection(TEXTS)
_WIDE = (pl.UInt64, pl.Int128)


@dataclass(frozen=True)
class InputFile:
    """A file of an input: its path, its name in messages, and the kinds of its columns."""

    path: str
    name: str
    kinds: Mapping[str, Any]

    @property
    def shape(self) -> Any:
        """Equal for files that can be scanned together."""
        return tuple(self.kinds.items())


class FileColumns:
    """The columns of one or several files. `schema`: all of them, with the kind that all files can be read as, or that of the first file."""

    def __init__(self, name: str, files: Sequence[InputFile]) -> None:
        self.name, self.files = name, files
        names = dict.fromkeys(column for file in files for column in file.kinds)
        self._drifting = {column for column in names if len({_kind_of(file, column) for file in files}) > 1}
        self.schema = pl.Schema({column: self._kind(column) for column in names})

    @property
    def has_one_shape(self) -> bool:
        """Whether all files have the same columns of the same kinds, in one order."""
        return len({file.shape for file in self.files}) == 1

    def check(self, columns: Iterable[str], numbers: Collection[str] = ()) -> None:
        """Raise an error, with its file, for a column that a file lacks or that is of different kinds.

        `numbers`: columns of numbers, in which integers and floats may be mixed.
        """
        for column in columns:
            if column not in self._drifting:
                continue
            first = next(file for file in self.files if column in file.kinds)
            for file in self.files:
                if column not in file.kinds:
                    raise DiscreetError(
                        f"{file.name} has no column {column!r}, and {first.name} has one; add it there, or name files that have it: "
                        f"it has {', '.join(map(repr, file.kinds))}"
                    )
                kinds = [known for known in (first.kinds[column], file.kinds[column]) if known != pl.Null]
                if common_kind(kinds, numbers=column in numbers) is None:
                    raise DiscreetError(
                        f"{file.name}: column {column!r} holds {file.kinds[column]} values, but {first.kinds[column]} values in "
                        f"{first.name}; write it in one way in all files"
                    )
                if first.kinds[column] == pl.Null:
                    first = file

    def align(self, frame: Any, file: InputFile, columns: Sequence[str]) -> Any:
        """The columns of a frame (lazy or not) of that file, of the kinds in which they are read."""
        if not self._drifting.intersection(columns):
            return frame.select(columns)
        return frame.select(
            pl.col(column) if file.kinds[column] == kind else pl.col(column).cast(kind)
            for column, kind in ((column, self._kind(column, numbers=True)) for column in columns)
        )

    def by_shape(self) -> Iterator[list[InputFile]]:
        """The files, those together that can be scanned together."""
        groups: dict[Any, list[InputFile]] = {}
        for file in self.files:
            groups.setdefault(file.shape, []).append(file)
        yield from groups.values()

    def _kind(self, column: str, *, numbers: bool = False) -> Any:
        """The kind that a column is read as. `numbers`: also integers beside floats have one."""
        kinds = [file.kinds[column] for file in self.files if column in file.kinds]
        if column not in self._drifting:
            return kinds[0]
        found = common_kind([kind for kind in kinds if kind != pl.Null], numbers=numbers)
        if found is not None:
            return found
        return next(
            (kind for kind in kinds if kind.is_integer()), kinds[0]
        )  # of numbers: `check` names the file with floats


def _kind_of(file: InputFile, column: str) -> Any:
    return file.kinds.get(column, "missing")


def common_kind(kinds: Sequence[Any], *, numbers: bool) -> Any:
    """The kind as which values of several kinds can be read without a loss; None if there is none.

    `numbers`: floats may be of several widths, and beside integers.
    """
    if not kinds:
        return pl.Null()
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(kind.is_integer() for kind in kinds):
        return pl.Int128() if any(kind in _WIDE for kind in kinds) else pl.Int64()
    if all(kind in _TEXT_KINDS for kind in kinds):
        return pl.String()
    if numbers and all(kind.is_integer() or kind.is_float() for kind in kinds):
        return pl.Float64()
    if all(isinstance(kind, pl.List) for kind in kinds):
        inner = common_kind([kind.inner for kind in kinds if kind.inner != pl.Null], numbers=numbers)
        return None if inner is None else pl.List(inner)
    return None


def list_files(path: str) -> list[str]:
    """The files of an input: a file, those in a folder, or those that a glob names."""
    if os.path.isdir(path):
        found = sorted(str(file) for file in Path(path).rglob("*") if _is_table(file))
        if not found:
            raise DiscreetError(f"folder {path} holds no {', '.join(sorted(IN_FOLDERS))} file")
        return found
    if os.path.exists(path):
        if not os.path.isfile(path):
            raise DiscreetError(f"{path} is no ordinary file; give - and pipe it to standard input")
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise DiscreetError(f"{path} does not exist")
    return found


def _is_table(file: Path) -> bool:
    """Whether a file in a folder is read. A text that lies there packed and unpacked is an error: its rows would count twice."""
    if is_packed(file):
        if table_ending(file) not in _TEXTS_IN_FOLDERS or not file.is_file():
            return False
        if file.with_suffix("").exists():
            raise DiscreetError(f"{file} lies beside {file.with_suffix('').name}; name one of them, or move one away")
        return True
    return file.suffix in IN_FOLDERS and file.is_file()


def detect_format(path: str, name: str | None = None) -> str:
    """The format of a file. `name`: its name in messages.

    The first bytes decide between Parquet, Arrow and text; among texts the ending decides. A text with another ending is JSON lines if its
    first line is an object, else CSV.
    """
    called = path if name is None else name
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DiscreetError(f"{called} cannot be read: {error.strerror}") from None
    if not head:
        raise DiscreetError(f"{called} is empty")
    if head.startswith(_GZIP) and is_packed(path):
        head = read_head(path, called)
        if MAGIC.get(head[:4]) is not None:
            raise DiscreetError(f"{called} is a packed {MAGIC[head[:4]]} file; unpack it (it may be compressed inside)")
        if not head:
            raise DiscreetError(f"{called} is empty")
    if head.startswith(_PACKED):
        raise DiscreetError(
            f"{called} is packed; unpack it first (texts may be packed by gzip and called .csv.gz, .tsv.gz, .jsonl.gz or .ndjson.gz; Parquet "
            "and Arrow files may be compressed inside)"
        )
    if head.startswith(_SQLITE):
        raise DiscreetError(
            f"{called} is a database; write a table of it first (of the samples of a collection with: discreet export)"
        )
    suffix, found = table_ending(path), MAGIC.get(head[:4])
    if found is None:
        declared = READ.get(suffix, "text")
        if declared not in (*TEXTS.values(), "text"):
            raise DiscreetError(f"{called} is called {declared} but holds text")
        return TEXTS.get(suffix) or ("json lines" if begins_with_an_object(head) else "csv")
    declared = READ.get(suffix, found)
    if declared != found and not {declared, found} <= {"arrow", "arrow stream"}:
        raise DiscreetError(f"{called} is called {declared} but holds {found}")
    return found
