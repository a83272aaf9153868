"""The files of one input as one table: which files they are, their formats, and the columns that they share.

Files of one input may drift: one has a column more, a column of 32-bit integers in one is 64 bits wide in another, texts are plain here
and a dictionary there, or columns stand in another order. `FileColumns` holds the columns of all files. Only the columns that are used have
to agree; one that is missing, or of another kind, is an error that names the file and the column.

| kinds of one column | read as |
|---|---|
| integers of any width | 64-bit integers (128 bits beside unsigned ones of 64, which are then checked one by one) |
| texts, dictionaries of texts | texts |
| floats of 32 and 64 bits, integers beside floats | 64-bit floats, if the column is one of numbers; for clients and labels an error |
| dates, times to the millisecond or microsecond | times: midnight of a date |
| a column of nulls alone | nulls of the kind in the other files |

A folder named `month=01` in the path of a file is a column `month` of that file, the text `01` in each of its rows (a *partition key*, as
Hive and Spark write them), unless the file has a column of that name. Keys have no types, as the columns of a CSV file have none.
"""

import glob
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from discreet.errors import DiscreetError
from discreet.tables._disk import IN_FOLDERS, READ, TEXTS, is_packed, partition_keys, table_ending
from discreet.tables._text_files import begins_with_an_object, read_head

MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow stream"}
_GZIP = b"\x1f\x8b"
_PACKED = (_GZIP, b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"BZh", b"\xfd7zXZ", b"PK\x03\x04")
_SQLITE = b"SQLite format 3\0"
_HEAD = 1 << 16  # bytes read for a first line
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum)
_TEXTS_IN_FOLDERS = IN_FOLDERS.intersection(TEXTS)
_TIMES = (pl.Datetime("ms"), pl.Datetime("us"))  # without a time zone
_WIDE = (pl.UInt64, pl.Int128)


@dataclass(frozen=True)
class InputFile:
    """A file of an input: its path, its name in messages, and the kinds of its columns."""

    path: str
    name: str
    kinds: Mapping[str, Any]

    @cached_property
    def keys(self) -> dict[str, str | None]:
        """The values of the partition keys in its path that are not columns of its own."""
        return {key: value for key, value in partition_keys(self.path).items() if key not in self.kinds}

    def kind(self, column: str) -> Any:
        """The kind of a column or of a partition key; None if it has neither."""
        return pl.String() if column in self.keys else self.kinds.get(column)

    def own_columns(self, columns: Iterable[str]) -> list[str]:
        """The columns to read for these: a column at least, to know the number of rows."""
        return [column for column in columns if column in self.kinds] or list(self.kinds)[:1]

    def shape(self, columns: Iterable[str]) -> Any:
        """Equal for files whose columns can be scanned together."""
        return tuple(self.kinds.items()), tuple(self.keys[column] for column in columns if column in self.keys)


class FileColumns:
    """The columns of one or several files. `schema`: all of them, with the kind that all files can be read as, or that of the first file."""

    def __init__(self, name: str, files: Sequence[InputFile]) -> None:
        self.name, self.files = name, files
        names = dict.fromkeys(column for file in files for column in file.kinds)
        self.keys = frozenset(key for file in files for key in file.keys if key not in names)
        names.update(dict.fromkeys(key for file in files for key in file.keys))
        self._drifting = {column for column in names if len({file.kind(column) for file in files}) > 1}
        self.schema = pl.Schema({column: self._kind(column) for column in names})

    def check(self, columns: Iterable[str], numbers: Collection[str] = ()) -> None:
        """Raise an error, with its file, for a column that a file lacks or that is of different kinds.

        `numbers`: columns of numbers, in which integers and floats may be mixed.
        """
        for column in columns:
            if column not in self._drifting:
                continue
            first = next(file for file in self.files if file.kind(column) is not None)
            for file in self.files:
                here, there = file.kind(column), first.kind(column)
                if here is None:
                    raise DiscreetError(
                        f"{file.name} has no column {column!r}, and {first.name} has one; add it there, or name files that have it: "
                        f"it has {', '.join(map(repr, file.kinds))}"
                    )
                kinds = [known for known in (there, here) if known != pl.Null]
                if common_kind(kinds, numbers=column in numbers) is None:
                    raise DiscreetError(
                        f"{file.name}: column {column!r} holds {here} values, but {there} values in {first.name}; write it in one way in "
                        "all files"
                    )
                if there == pl.Null:
                    first = file

    def align(self, frame: Any, file: InputFile, columns: Sequence[str]) -> Any:
        """The columns of a frame (lazy or not) of that file, of the kinds in which they are read."""
        keys = [pl.lit(file.keys[column], pl.String).alias(column) for column in columns if column in file.keys]
        if keys:
            frame = frame.with_columns(keys)
        kinds = {column: self._kind(column, numbers=True) for column in columns}
        return frame.select(
            pl.col(column) if file.kind(column) == kind else pl.col(column).cast(kind) for column, kind in kinds.items()
        )

    def by_shape(self, columns: Sequence[str]) -> list[list[InputFile]]:
        """The files, those together whose columns can be scanned together."""
        groups: dict[Any, list[InputFile]] = {}
        for file in self.files:
            groups.setdefault(file.shape(columns), []).append(file)
        return list(groups.values())

    def _kind(self, column: str, *, numbers: bool = False) -> Any:
        """The kind that a column is read as. `numbers`: also integers beside floats have one."""
        kinds = [kind for file in self.files if (kind := file.kind(column)) is not None]
        if column not in self._drifting:
            return kinds[0]
        found = common_kind([kind for kind in kinds if kind != pl.Null], numbers=numbers)
        if found is not None:
            return found
        return next(
            (kind for kind in kinds if kind.is_integer()), kinds[0]
        )  # of numbers: `check` names the file with floats


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
    if all(kind == pl.Date or kind in _TIMES for kind in kinds):
        return pl.Datetime("us")
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
