"""The list of all clients: a file, a column or a list in memory, as 64-bit integers or as texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from discreet._files import read_lines
from discreet._tables._arrow import checked, is_text, plain
from discreet._tables._coding import is_whole
from discreet._tables._formats import TEXTS
from discreet._tables._sources import file_source, format_found
from discreet.errors import DiscreetError


def client_array(clients: Any) -> pa.Array:
    """All clients as 64-bit integers or as texts; what comes as Arrow is checked in full before it is read."""
    if isinstance(clients, (str, bytes, Mapping)):  # each letter would be a client
        raise DiscreetError(
            f"clients is a {type(clients).__name__}; pass a list of texts or of integers, or the Path of a file that lists them"
        )
    try:
        column = clients.to_arrow() if isinstance(clients, pl.Series) else clients
        if not isinstance(column, (pa.Array, pa.ChunkedArray)):
            column = pa.array(column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_arrays([chunk], names=["client"]) for chunk in chunks]
        found = [plain(checked(batch, "clients").column(0)) for batch in batches] or [pa.array([], column.type)]
        kinds = {pa.int64(): pa.types.is_integer, pa.large_string(): is_text}
        kind = next((kind for kind, fits in kinds.items() if fits(found[0].type)), found[0].type)
        whole = pa.concat_arrays([part.cast(kind) for part in found])
    except DiscreetError:
        raise
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise DiscreetError(
            "clients is not a list of texts or of integers of 64 bits; list every client once"
        ) from None
    if whole.null_count:
        raise DiscreetError(f"clients holds {whole.null_count} nulls; nobody is called null, leave them out")
    if kind not in kinds and kind != pa.null():
        raise DiscreetError(f"the list holds {kind} values; clients are texts or integers")
    return whole


def client_list(path: Path, column: str, *, integers: bool) -> pa.Array:
    """All clients: a table with that column, or a text file that is called like no table, with one client on each line."""
    if format_found(str(path)) == "csv" and path.suffix.lower() not in TEXTS:
        return _client_column(read_lines(path, "client list", each="a client"), path, integers=integers)
    source = file_source(str(path))
    if column not in source.schema:
        raise DiscreetError(f"column {column!r} is not in {path}; it has {', '.join(map(repr, source.schema))}")
    found = list(source.frames(lambda frame: frame.select(column).unique(), [column]))
    clients = pl.concat(found).to_series() if found else pl.Series(column, [], dtype=source.schema[column])
    if clients.null_count():
        raise DiscreetError(f"column {column!r} of {path} holds nulls; filter them out")
    return _client_column(clients.to_list(), path, integers=integers) if source.untyped else clients.to_arrow()


def _client_column(texts: list[str], path: Path, *, integers: bool) -> pa.Array:
    """Texts as the clients they stand for."""
    if not integers:
        return pa.array(texts, pa.large_string())
    for number, text in enumerate(texts, start=1):
        if not is_whole(text):
            raise DiscreetError(f"{path}, client {number} is no integer, but the clients of the table are")
    return pa.array(map(int, texts), pa.int64())
