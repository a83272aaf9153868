"""Names of clients: 64-bit integers or texts, in a column, several columns, a file or a list in memory.

A name that is read differently than before is a new client, with a new budget. Whole floats are therefore read as integers (a missing id
turns a column of integers into floats in pandas), as long as no two integers could have become one float. Truth values, dates and other
numbers are errors. Nulls and NaN are rows without a client.

Several columns name a client together by a JSON list of their texts, `["7","north"]`: the list can be read in one way, so that no two
clients share a name. 7 and "7" are one text, as they are one client in a column of its own; dates are written 2026-11-17. A row with a null
in one of the columns has no client.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from discreet._base.files import read_lines
from discreet.errors import ClientNameWarning, DiscreetError, warn_caller
from discreet.tables._arrow import as_type, check_batch, is_text, schema_of, series_of, without_dictionaries
from discreet.tables._coding import is_whole
from discreet.tables._disk import TEXTS, table_ending
from discreet.tables._input_files import detect_format
from discreet.tables._sources import Source, file_source, sample_texts

_WHOLE_BELOW = {pl.Float32(): 2**24, pl.Float64(): 2**53}  # below this, different integers are different floats
_AS_FLOATS = r"^-?[0-9]+\.0+$"
_AS_MISSING = (
    "nan",
    "NaN",
    "NAN",
    "None",
    "null",
    "NULL",
    "<NA>",
    "NaT",
)  # texts that libraries write for missing values
_DROP = ": null_clients='drop' (--null-clients drop)"
_LOOKED_AT = 1000  # names to inspect
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum)
_ESCAPED = {chr(code): json.dumps(chr(code))[1:-1] for code in (*range(32), *map(ord, '"\\'))}  # as JSON writes them


def is_integer_name(kind: Any) -> bool:
    """Whether a column of that type names clients by integers."""
    return bool(kind.is_integer() or kind in _WHOLE_BELOW)


def whole_below(kind: Any) -> int:
    """The bound below which different integers are different floats of that type."""
    return _WHOLE_BELOW[kind]


def check_client_kind(where: str, kind: Any, *, shown: Any = None) -> None:
    """Raise an error for a column whose type cannot name clients. `shown`: the type's name in messages."""
    if not (is_integer_name(kind) or kind in _TEXT_KINDS):
        held = kind if shown is None else shown
        raise DiscreetError(f"{where} holds {held} values; clients are texts or integers: {_client_kind_fix(kind)}")


def warn_of_floats(where: str, kind: Any) -> None:
    """Warn if floats are read as integers."""
    if kind in _WHOLE_BELOW:
        warn_caller(
            f"{where} holds floats: whole ones are read as the integers that they stand for, 1.0 as client 1. If an earlier release cast "
            "them to text, its clients were called '1.0', and these are others to a ledger",
            ClientNameWarning,
        )


def _client_kind_fix(kind: Any) -> str:
    """The fix for a column of another type, such that the next release has the same clients."""
    if kind == pl.Boolean:
        return "name each of them by one of its own"
    if kind.is_decimal():
        return "cast it to integers of 64 bits"
    if kind == pl.Null:
        return "leave out rows without a client"
    return "write them as texts, in the same form in every release, since another form is another client"


def check_part_kind(where: str, kind: Any) -> None:
    """Raise an error for a column that cannot be one of several that name clients."""
    if kind != pl.Date:
        check_client_kind(where, kind)


def composite_name(parts: Iterable[Any]) -> str:
    """The name of a client that several columns name together, from its texts, integers or dates."""
    return json.dumps([str(part) for part in parts], ensure_ascii=False, separators=(",", ":"))


def composite_names(columns: Sequence[str], kinds: Sequence[Any]) -> pl.Expr:
    """The names of clients by several columns; null where one of them has none."""
    texts: list[pl.Expr] = []
    for column, kind in zip(columns, kinds, strict=True):
        part = (pl.col(column) if kind == pl.Date else client_names(column, kind)).cast(pl.String)
        if kind in _TEXT_KINDS:
            part = part.str.replace_many(list(_ESCAPED), list(_ESCAPED.values()))
        texts += [pl.lit('["' if not texts else '","'), part]
    return pl.concat_str(*texts, pl.lit('"]'))


def client_names(column: str, kind: Any) -> pl.Expr:
    """The clients as integers or texts; null for a missing name or a number that is not a 64-bit integer."""
    name = pl.col(column)
    if kind in _WHOLE_BELOW:
        whole = name.is_finite() & (name == name.floor()) & (name.abs() < whole_below(kind))
        return pl.when(whole).then(name.cast(pl.Int64, strict=False))
    return name.cast(pl.Int64 if kind.is_integer() else pl.String, strict=False)


def is_missing_name(column: str, kind: Any) -> pl.Expr:
    """Whether a row has no client: null or NaN, and not a number that cannot be a name."""
    name = pl.col(column)
    return name.is_null() | name.is_nan() if kind.is_float() else name.is_null()


def client_name_texts(source: Source, column: str) -> pl.Expr:
    """The clients in a column of samples as texts, one text for each client, in any file format."""
    kind = source.schema[column]
    name = client_names(column, kind) if is_integer_name(kind) else sample_texts(source, column)
    return name.cast(pl.String)


def nameless_rows_message(where: str, kind: Any, number: int, rows: int) -> str:
    """The error for rows without a client, with the fix."""
    if kind in _WHOLE_BELOW:
        limit = whole_below(kind).bit_length() - 1
        return (
            f"{where} holds floats that name no client ({number:,} in {rows:,} rows): clients are texts or integers, and these are NaN, "
            f"null, not whole, or past 2^{limit}, where two integers become one float. Leave out rows without a client{_DROP}; where others "
            "are left, read the ids as integers or texts from the start, since these floats have lost digits"
        )
    if kind in (pl.UInt64, pl.Int128):
        return (
            f"{where} holds nulls, or integers past 64 bits ({number:,} in {rows:,} rows). Leave out rows without a client "
            f"first{_DROP}, then cast the column to text: 7 and '7' are one client"
        )
    return f"{where} holds nulls ({number:,} in {rows:,} rows): a record without a client cannot be released; leave those rows out{_DROP}"


def warn_of_names(column: str, names: pl.Series, *, first: bool) -> None:
    """Warn of texts that look like missing values or floats cast to text (the latter if these are the first names of a table)."""
    missing = names.filter(names.is_in(pl.Series(_AS_MISSING).implode()))
    if len(missing):
        warn_caller(
            f"column {column!r} names a client {missing[0]!r}, which is how a missing value looks once it was cast to text: if these "
            "rows have no client, leave them out before you cast",
            ClientNameWarning,
        )
    if first and len(names) and names.head(_LOOKED_AT).str.contains(_AS_FLOATS).all():
        warn_caller(
            f"column {column!r} names clients as floats are written ('1.0'): where they are integers, write '1'. To a ledger or a secret "
            "'1.0' and '1' are two clients, each with a budget",
            ClientNameWarning,
        )


def plain_clients(clients: pa.Array) -> pa.Array:
    """A checked column of clients as 64-bit integers or as texts."""
    if pa.types.is_dictionary(clients.type) and is_text(clients.type.value_type):
        clients = without_dictionaries(clients)
        if clients.null_count:  # a null word of the dictionary, not visible in the indices
            raise DiscreetError(f"column 'client' holds {clients.null_count} nulls; leave those rows out")
    return _as_client_names("column 'client'", clients)


def _as_client_names(where: str, clients: pa.Array) -> pa.Array:
    """A column without dictionaries and nulls as 64-bit integers or as texts."""
    if is_text(clients.type):
        return as_type(clients, pa.large_string())
    if pa.types.is_integer(clients.type):
        try:
            return as_type(clients, pa.int64())
        except pa.ArrowInvalid:
            raise DiscreetError(
                f"{where} holds integers past 2^63 - 1; cast it to text: 7 and '7' are one client"
            ) from None
    kind = schema_of(pa.schema([("client", clients.type)]), where)["client"]
    check_client_kind(where, kind, shown=clients.type)
    found = (
        pl.DataFrame({"client": series_of(without_dictionaries(clients))})
        .select(client_names("client", kind))
        .to_series()
    )
    if found.null_count():
        raise DiscreetError(nameless_rows_message(where, kind, found.null_count(), len(found)))
    warn_of_floats(where, kind)
    return found.to_arrow()


def client_array(clients: Any) -> pa.Array:
    """All clients as 64-bit integers or as texts; Arrow data are checked in full first."""
    if isinstance(clients, (str, bytes, Mapping)):  # else each letter would be a client
        raise DiscreetError(
            f"clients is a {type(clients).__name__}; pass a list of texts or of integers, or the Path of a file that lists them"
        )
    try:
        column = clients.to_arrow() if isinstance(clients, pl.Series) else clients
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = pa.array(column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_arrays([chunk], names=["client"]) for chunk in chunks]
        found = [without_dictionaries(check_batch(batch, "clients").column(0)) for batch in batches] or [
            pa.array([], column.type)
        ]
        whole = pa.concat_arrays([_client_names_of_part(part) for part in found])
    except DiscreetError:
        raise
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise DiscreetError(
            "clients is not a list of texts or of integers of 64 bits; list every client once"
        ) from None
    return whole


def _client_names_of_part(part: pa.Array) -> pa.Array:
    """A part of a list of clients; an error if it contains nulls."""
    if part.null_count:
        raise DiscreetError(f"clients holds {part.null_count} nulls; nobody is called null, leave them out")
    return part if part.type == pa.null() else _as_client_names("the list", part)


def composite_list(path: Path, columns: Sequence[str]) -> pa.Array:
    """All clients that several columns name: a table with these columns, or a text file with a JSON list of texts on each line."""
    if detect_format(str(path)) == "csv" and table_ending(path) not in TEXTS:
        return client_texts(read_lines(path, "client list", each="a client"), len(columns), str(path))
    source = file_source(str(path))
    for column in columns:
        if column not in source.schema:
            raise DiscreetError(f"column {column!r} is not in {path}; it has {', '.join(map(repr, source.schema))}")
    kinds = [pl.String() if source.is_untyped else source.schema[column] for column in columns]
    for column, kind in zip(columns, kinds, strict=True):
        check_part_kind(f"column {column!r} of {path}", kind)
    name = composite_names(columns, kinds).alias("client")
    found = list(source.frames(lambda frame: frame.select(name).unique(), columns, client=columns))
    clients = pl.concat(found).to_series() if found else pl.Series("client", [], dtype=pl.String)
    if clients.null_count():
        raise DiscreetError(f"columns {', '.join(map(repr, columns))} of {path} hold nulls; filter them out")
    return clients.to_arrow()


def client_texts(given: Iterable[Any], parts: int, where: str) -> pa.Array:
    """Clients that so many columns name: tuples of texts, integers or dates, or JSON lists of texts as a release writes them."""
    names = []
    for number, client in enumerate(given, start=1):
        found = client
        if isinstance(client, str):
            try:
                found = json.loads(client)
            except ValueError:
                found = None
        if (
            not isinstance(found, (list, tuple))
            or len(found) != parts
            or any(isinstance(each, (bool, float)) or each is None for each in found)
        ):
            raise DiscreetError(
                f"{where}, client {number} is not a name by {parts} columns; write a JSON list of {parts} texts, such as "
                f"{composite_name('ab'[:1] * parts)}"
            )
        names.append(composite_name(found))
    return pa.array(names, pa.large_string())


def client_list(path: Path, column: str, *, integers: bool) -> pa.Array:
    """All clients: a table with that column, or a text file (without a table's ending) with one client on each line."""
    if detect_format(str(path)) == "csv" and table_ending(path) not in TEXTS:
        return _client_column(read_lines(path, "client list", each="a client"), path, integers=integers)
    source = file_source(str(path))
    if column not in source.schema:
        raise DiscreetError(f"column {column!r} is not in {path}; it has {', '.join(map(repr, source.schema))}")
    found = list(source.frames(lambda frame: frame.select(column).unique(), [column], client=column))
    clients = pl.concat(found).to_series() if found else pl.Series(column, [], dtype=source.schema[column])
    if clients.null_count():
        raise DiscreetError(f"column {column!r} of {path} holds nulls; filter them out")
    return _client_column(clients.to_list(), path, integers=integers) if source.is_untyped else clients.to_arrow()


def _client_column(texts: list[str], path: Path, *, integers: bool) -> pa.Array:
    """Texts as clients."""
    if not integers:
        return pa.array(texts, pa.large_string())
    for number, text in enumerate(texts, start=1):
        if not is_whole(text):
            raise DiscreetError(
                f"{path}, client {number} is no integer, but the clients of the table are; write it as the table does (1, not 1.0 or 01)"
            )
    return pa.array(map(int, texts), pa.int64())
