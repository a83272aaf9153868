"""Text tables: delimited files (CSV, TSV) and JSON lines, in UTF-8, read in bounded memory.

Their columns are untyped (`is_untyped`), so no guess about the data decides the name of a client.

**Delimited files** have a header and follow RFC 4180, with commas, semicolons, tabs or bars. The header alone decides the separator: a
comma if it has one outside of quotes, else the only one of the others in it; a file named .tsv uses tabs. A wrong guess shows at once,
because the requested columns are missing.

A spreadsheet runs a cell that begins with = + - @, or with a tab or line break before one, and a client or label can have such a name.
`spreadsheet_guarded_expression` puts an apostrophe in front of such a text in the tables that we write, and also in front of a text that
already has apostrophes before such a character. Different texts therefore stay different, and `spreadsheet_unguarded_expression` restores
each. A text that is a number, such as -1, stays as it is. Columns of numbers and the header stay as they are.

**JSON lines** have an object on each line. Texts, numbers and truth values are read as written, so 3 and "3" are one label and one client.
A missing name and null are nulls. A list or an object as a value, a repeated name in an object and a line that is not an object are errors
with a line number. In the column of clients, a truth value is an error, and so is a number that is not written as a whole number (1.0, 1e3,
-0): true and "true" must not become one client, nor 1 and 1.0 two. NaN there is a null.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from discreet._base.files import translating_read_errors
from discreet.domain import column_expression
from discreet.errors import DiscreetError, refuse_repeated_column_names
from discreet.tables._sources._files import (
    AGREEMENT_FILE,
    has_gzip_ending,
    open_text_unpacked,
    partition_keys_in_path,
    read_first_bytes,
    using_path_of_unpacked_text,
)
from discreet.tables._sources._source import (
    FileColumns,
    FilesSource,
    FrameRequest,
    InputFile,
    Source,
    StreamSource,
    start_collecting_scan_in_batches,
    translating_polars_errors,
)

_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
RUN = r"[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"  # the last four: = + - @ in full width
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


def text_files_source(kind: str, name: str, files: Sequence[str], folder: Path | None) -> Source:
    """A source from text files of one kind. `folder`: where packed ones are unpacked, one at a time."""
    if kind == "json lines":
        with translating_polars_errors(name):
            lines = JsonLines(name, files)
        return StreamSource(
            name,
            lines.schema,
            lambda request: lines.read_frames(request.columns, request.room, request.client),
            untyped=True,
        )
    separator = "\t" if kind == "tsv" else _separator_of_all_files(name, files)
    inputs = []
    for path in files:
        file = name if len(files) == 1 else path
        with translating_polars_errors(file):
            inputs.append(InputFile(path, file, _read_header_schema(path, file, separator)))
    scan = partial(pl.scan_csv, infer_schema=False, glob=False, separator=separator)
    columns, agreement = FileColumns(name, inputs), _agreement_in_folder_of_samples(name)
    if not any(map(has_gzip_ending, files)):
        return FilesSource(columns, scan, untyped=True, agreement=agreement)

    def read_frames(request: FrameRequest) -> Iterator[pl.DataFrame]:
        names = list(columns.schema) if request.columns is None else list(request.columns)
        columns.refuse_mismatched_columns(names)
        for file in inputs:
            with using_path_of_unpacked_text(file.path, file.name, folder) as path:
                yield from start_collecting_scan_in_batches(
                    file.name, columns.cast_frame_to_common_types(scan([path]), file, names)
                )

    return StreamSource(name, columns.schema, read_frames, untyped=True, guarded=True, agreement=agreement)


def samples_without_spreadsheet_guard(source: Source, column: str) -> pl.Expr:
    """A column of samples as it was before it was guarded for spreadsheets."""
    return (
        spreadsheet_unguarded_expression(column_expression(column)) if source.is_guarded else column_expression(column)
    )


def _separator_of_all_files(name: str, files: Sequence[str]) -> str:
    """The separator of the columns of text tables, if it is the same in all."""
    separators = {_separator_of_header(read_first_bytes(file, name), name) for file in files}
    if len(separators) > 1:
        raise DiscreetError(f"{name}: its files are not separated by one character; name those that are alike")
    return separators.pop()


def _read_header_schema(file: str, name: str, separator: str) -> pl.Schema:
    """The columns of a text table, which are texts."""
    source: Any = BytesIO(read_first_bytes(file, name)) if has_gzip_ending(file) else file
    header = pl.scan_csv([source], has_header=False, infer_schema=False, n_rows=1, glob=False, separator=separator)
    titles = header.collect()
    names = [title or "" for title in (titles.row(0) if titles.height else ())]
    refuse_repeated_column_names(names, name, shown=False)  # a file without a header begins with a record
    return pl.scan_csv([source], infer_schema=False, glob=False, separator=separator).collect_schema()


def spreadsheet_guarded_expression(text: pl.Expr) -> pl.Expr:
    """Texts for a table for people, such that no spreadsheet runs them."""
    runs = text.str.contains(f"^'*{RUN}") & ~text.str.contains(NUMBER)
    return pl.when(runs).then(pl.lit("'") + text).otherwise(text)


def spreadsheet_unguarded_expression(text: pl.Expr) -> pl.Expr:
    """The original texts from such a table."""
    return text.str.replace(f"^'('*{RUN})", "${1}")


def _agreement_in_folder_of_samples(name: str) -> str | None:
    """The agreement in a folder of samples whose files cannot carry it."""
    path = Path(name) / AGREEMENT_FILE
    if not (os.path.isdir(name) and path.is_file()):
        return None
    with translating_read_errors(str(path), "cannot be read"):
        return path.read_text(encoding="utf-8")


def _separator_of_header(head: bytes, name: str) -> str:
    """The separator of a header's columns; a comma if there is one column."""
    header = re.split(rb"[\r\n]", _QUOTED.sub(b"", head), maxsplit=1)[0]
    if b"," in header:
        return ","
    separators = [mark for mark in _OTHERS if mark.encode() in header]
    if len(separators) > 1:
        raise DiscreetError(
            f"{name}: its header holds {' and '.join(_OTHERS[mark] for mark in separators)}, and no comma; it cannot be told what separates "
            "its columns: write it with commas, or put names that hold such characters into quotes"
        )
    return separators[0] if separators else ","


_FIRST, _HEAD = 1000, 1 << 26  # lines whose names are the columns, and their largest size in memory
_LINES = 1 << 16  # at a time
_LONGEST = 1 << 24  # bytes of a line
_TRUTHS = {True: "true", False: "false"}

_SWELLING = 16  # bytes in memory for a byte in the file, about

Chunk = list[tuple[int, dict[str, Any]]]  # lines by their numbers


class JsonLines:
    """Files of JSON lines, one after the other. The columns are the names in the first lines of each."""

    def __init__(self, name: str, files: Sequence[str]) -> None:
        self.name, self._files = name, files
        names: dict[str, None] = {}
        self._keys = {file: partition_keys_in_path(file) for file in files}
        for file in files:
            for number, line in next(self._read_object_chunks(file, _HEAD, _FIRST), []):
                self._refuse_unencodable_texts(line, file, number)
                names.update(dict.fromkeys(line))
        if not names:
            raise DiscreetError(f"{name} holds no JSON object; write one on each line")
        self._names = set(names)
        self.schema = pl.Schema(
            dict.fromkeys([*names, *(key for keys in self._keys.values() for key in keys)], pl.String())
        )

    def read_frames(
        self, columns: Sequence[str] | None, room: int, client: str | Sequence[str] | None = None
    ) -> Iterator[pl.DataFrame]:
        """The rows, some lines at a time. `client`: the column of clients, if any, or several."""
        names = list(self.schema) if columns is None else list(columns)
        clients = [client] if isinstance(client, str) else client or []
        for file in self._files:
            keys = {name: value for name, value in self._keys[file].items() if name not in self._names}
            for name in names:
                if name not in self._names and name not in keys:
                    raise DiscreetError(f"{file} has no column {name!r}: no folder in its path is called {name}=...")
            for chunk in self._read_object_chunks(file, room, _LINES):
                for name in clients:
                    self._refuse_bad_client_names_and_clear_nans(chunk, file, name)
                texts = {
                    name: [keys[name]] * len(chunk) if name in keys else self._column_as_texts(chunk, file, name)
                    for name in names
                }
                yield pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String()))

    def _read_object_chunks(self, file: str, room: int, limit: int) -> Iterator[Chunk]:
        """The objects of a file, a limited number of objects and bytes at a time."""
        chunk: Chunk = []
        size = 0
        for number, line in enumerate(self._read_lines(file), start=1):
            if len(line) > _LONGEST:
                raise self._line_error(
                    file, number, f" is longer than {_LONGEST:,} bytes; write one object on each line"
                )
            if text := (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).strip():
                chunk.append((number, self._parse_object(text, file, number)))
                size += len(text)
            if len(chunk) == limit or size * _SWELLING > room:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _read_lines(self, file: str) -> Iterator[bytes]:
        with open_text_unpacked(file, self.name if len(self._files) == 1 else file) as stream:
            yield from iter(partial(stream.readline, _LONGEST + 1), b"")

    def _parse_object(self, line: bytes, file: str, number: int) -> dict[str, Any]:
        try:
            content = _DECODER.decode(line.decode())
        except UnicodeDecodeError:
            raise self._line_error(file, number, " is not UTF-8; write it in UTF-8") from None
        except _DuplicateName:
            raise self._line_error(file, number, ": a name comes twice in its object; write it once") from None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self._line_error(file, number, " is no JSON object; write one on each line")
        return content

    def _refuse_bad_client_names_and_clear_nans(self, chunk: Chunk, file: str, name: str) -> None:
        """Raise an error for values that cannot name a client, and turn NaN into null."""
        for number, line in chunk:
            value = line.get(name)
            if type(value) is str or value is None:
                continue
            if isinstance(value, bool):
                what = f": {name!r} is a truth value, and clients are texts or integers; name each client by one of its own"
                raise self._line_error(file, number, what)
            if value == _NAN:
                line[name] = None
            elif isinstance(value, _NumberText) and not _WHOLE.fullmatch(value):
                what = (
                    f": {name!r} is a number that is not written as a whole one (1.0, 1e3, -0), and clients are texts or integers; write 1 "
                    "for 1.0, or a text, in quotes, if the client was called so in earlier releases"
                )
                raise self._line_error(file, number, what)

    def _column_as_texts(self, chunk: Chunk, file: str, name: str) -> list[str | None]:
        """A column of a chunk. Remaining non-texts are truth values, or an error."""
        column = [line.get(name) for _, line in chunk]
        if not set(map(type, column)) <= {str, _NumberText, type(None)}:
            for index, value in enumerate(column):
                if isinstance(value, bool):
                    column[index] = _TRUTHS[value]
                elif value is not None and not isinstance(value, str):
                    what = (
                        f": {name!r} is a list or an object; give one value on each line, or lists in Parquet or Arrow"
                    )
                    raise self._line_error(file, chunk[index][0], what)
        for (number, _), value in zip(chunk, column, strict=True):
            if value is not None and not value.isascii():
                self._refuse_unencodable_texts([value], file, number)
        return column

    def _refuse_unencodable_texts(self, texts: Iterable[str], file: str, number: int) -> None:
        """Raise an error for texts that cannot be encoded in UTF-8, such as a lone surrogate."""
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise self._line_error(
                file, number, " holds half a character (a lone surrogate); write it in UTF-8"
            ) from None

    def _line_error(self, file: str, number: int, what: str) -> DiscreetError:
        return DiscreetError(f"{self.name if len(self._files) == 1 else file}, line {number}{what}")


class _NumberText(str):
    """A number as written."""


class _DuplicateName(Exception):
    """A name is repeated in an object."""


def _dict_refusing_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _DuplicateName
    return fields


_NAN = _NumberText("NaN")
_WHOLE = re.compile("0|-?[1-9][0-9]*")
_DECODER = json.JSONDecoder(
    object_pairs_hook=_dict_refusing_repeated_fields,
    parse_int=_NumberText,
    parse_float=_NumberText,
    parse_constant=_NumberText,
)
