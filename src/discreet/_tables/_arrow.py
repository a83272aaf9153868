"""Arrow columns from outside, checked in full before anything reads what they point to.

What Arrow finds wrong becomes one of our errors, which show no value of a record.

An Arrow buffer is a claim by whoever wrote it: its offsets, lengths and indices may point anywhere in this process. A column that
has passed `check_batch` points inside its own buffers alone, and its texts are UTF-8. No check looks at what a value is, so no message
shows one.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from discreet._files import translate_read_errors
from discreet.errors import DiscreetError, check_columns

_ROWS = 1 << 19  # in a piece
_BYTES = 1 << 26  # of text in a piece, once it is written out
_NUMBERS = {
    pa.bool_(): pl.Boolean(),
    **dict(zip(
        (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        (pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt16(), pl.UInt32(), pl.UInt64()),
        strict=True,
    )),
    pa.float16(): pl.Float32(),
    pa.float32(): pl.Float32(),
    pa.float64(): pl.Float64(),
}  # fmt: skip


def check_batch(batch: pa.RecordBatch, where: str, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The columns of a batch (all, unless named), each checked to its last offset, index and byte of text."""
    names_of(batch.schema, where)
    found = batch if columns is None else batch.select(list(columns))
    for name, column in zip(found.schema.names, found.columns, strict=True):
        try:
            column.validate(full=True)
        except (pa.ArrowException, UnicodeDecodeError):
            raise _damage_error(where, f"column {name!r}") from None
    try:
        batch.validate()
    except pa.ArrowException:
        raise _damage_error(where, "a batch") from None
    return found


def names_of(schema: pa.Schema, where: str) -> list[str]:
    """The names of the columns, each of which is a text and comes once."""
    try:
        names = list(schema.names)
    except UnicodeDecodeError:
        raise _damage_error(where, "the name of a column") from None
    check_columns(names, where)
    return names


def schema_of(schema: pa.Schema, where: str) -> pl.Schema:
    """The columns as polars will see them; those that no engine reads are of type Unknown."""
    names_of(schema, where)
    return pl.Schema({field.name: _polars_type(field.type) for field in schema})


def bounded_frames(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
    """A checked batch as frames of a bounded size, whatever its dictionaries unpack to. Columns that no engine reads are left out."""
    readable = [field.name for field in batch.schema if is_readable(field.type)]
    batch = batch.select(readable)
    waiting = [batch.slice(first, _ROWS) for first in range(0, batch.num_rows, _ROWS)]
    while waiting:
        piece = waiting.pop(0)
        if piece.num_rows > 1 and sum(map(_unpacked_bytes, piece.columns)) > _BYTES:
            half = piece.num_rows // 2
            waiting[:0] = [piece.slice(0, half), piece.slice(half)]
            continue
        columns = [without_dictionaries(column) for column in piece.columns]
        yield pl.DataFrame(pa.Table.from_arrays(columns, names=piece.schema.names))


def batches_of_table(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The batches of a table in memory. They are not checked yet."""
    try:
        table.validate()  # its columns are of one length, or cutting it into batches would read past them
    except pa.ArrowException:
        raise DiscreetError(
            "the table is damaged: its columns are not of one length, or point outside; make it again"
        ) from None
    yield from table.to_batches()


def batches_of_stream(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream in memory, as they come. They are not checked yet."""
    while True:
        with arrow_errors("the stream", "ends early or is damaged"):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch


def without_dictionaries(column: pa.Array) -> pa.Array:
    """A checked column with its dictionaries written out."""
    wanted = _plain_type(column.type)
    if pa.types.is_dictionary(column.type):  # whose words may be views, which Arrow cannot look up
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(wanted))
    return column if wanted == column.type else column.cast(wanted)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are texts, however they are laid out."""
    view = bool(pa.types.is_string_view(kind)) if hasattr(pa.types, "is_string_view") else False
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or view)


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, laid out end to end. (Views are not read: Arrow's cast of them reads past its own buffer.)"""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_readable(kind: pa.DataType) -> bool:
    """Whether an engine reads such columns: numbers, texts, dictionaries of texts, and lists of these."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    if is_list(kind):
        return not is_list(kind.value_type) and is_readable(kind.value_type)
    return is_text(kind) or kind in _NUMBERS or bool(pa.types.is_decimal128(kind))


def arrow_errors(name: str, what: str) -> AbstractContextManager[None]:
    """What Arrow finds wrong with data from outside, as one of our errors."""
    return translate_read_errors(name, what, pa.ArrowException)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.large_string()
    if is_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    return pa.float32() if kind == pa.float16() else kind


def _polars_type(kind: pa.DataType) -> Any:
    if is_text(kind) or (pa.types.is_dictionary(kind) and is_readable(kind)):
        return pl.String()
    if is_list(kind):
        return pl.List(_polars_type(kind.value_type)) if is_readable(kind) else pl.Unknown()
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if pa.types.is_decimal128(kind):
        return pl.Decimal(kind.precision, kind.scale)
    told = {pa.types.is_date: pl.Date(), pa.types.is_timestamp: pl.Datetime()}
    return next((name for found, name in told.items() if found(kind)), pl.Unknown())


def _unpacked_bytes(column: pa.Array) -> int:
    """How many bytes of text the dictionary of a column stands for."""
    while is_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return 0
    lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
    return int(pc.sum(pc.take(lengths, column.indices)).as_py() or 0)


def _damage_error(where: str, what: str) -> DiscreetError:
    return DiscreetError(
        f"{where}: {what} is damaged: it points outside of what was sent, or holds text that is not UTF-8; write it again"
    )
