"""Arrow columns: those from outside checked in full before anything reads what they point to, and their memory as numpy arrays.

What Arrow and polars, who read them, find wrong becomes one of our errors, which show no value of a record.

An Arrow buffer is a claim by whoever wrote it: its offsets, lengths and indices may point anywhere in this process. A column that
has passed `checked` points inside its own buffers alone, and its texts are UTF-8. No check looks at what a value is, so no message
shows one. (Arrays are shared without pyarrow's own conversions, which import pandas wherever it is installed: that takes longer than
a small release.)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.errors import DiscreetError

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

_TOLD = {  # what polars says, and what we do
    "found more fields": "a row has more fields than the header; correct it",
    "invalid utf-8": "it holds text that is not UTF-8; write it in UTF-8",
    "could not parse": "a quote is not closed, or stands where none may; correct it",
    "csv malformed": "its quotes do not pair up; correct them",
    "exploded columns": "lists of values and of their counts differ in length; correct them",
    "unable to find column": "a column is of a kind that is not read: numbers, texts and lists of these are",
    "more than once": "two of its columns have one name; rename one of them",
}


def checked(batch: pa.RecordBatch, where: str, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The columns of a batch (all, unless named), each checked to its last offset, index and byte of text."""
    names_of(batch.schema, where)
    found = batch if columns is None else batch.select(list(columns))
    for name, column in zip(found.schema.names, found.columns, strict=True):
        try:
            column.validate(full=True)
        except (pa.ArrowException, UnicodeDecodeError):
            raise _damaged(where, f"column {name!r}") from None
    try:
        batch.validate()
    except pa.ArrowException:
        raise _damaged(where, "a batch") from None
    return found


def names_of(schema: pa.Schema, where: str) -> list[str]:
    """The names of the columns, each of which is a text and comes once."""
    try:
        names = list(schema.names)
    except UnicodeDecodeError:
        raise _damaged(where, "the name of a column") from None
    refuse_repeated(names, where)
    return names


def refuse_repeated(names: Sequence[str], where: str) -> None:
    """Refuse a table with two columns of one name: which of them is meant cannot be told."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise DiscreetError(f"column {name!r} comes twice in {where}; rename one of them")
        seen.add(name)


def schema_of(schema: pa.Schema, where: str) -> pl.Schema:
    """The columns as polars will see them; those that no engine reads are of type Unknown."""
    names_of(schema, where)
    return pl.Schema({field.name: _polars_type(field.type) for field in schema})


def pieces(batch: pa.RecordBatch) -> Iterator[pl.DataFrame]:
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
        columns = [plain(column) for column in piece.columns]
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


def plain(column: pa.Array) -> pa.Array:
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


def as_column(numbers: NDArray[Any]) -> pa.Array:
    """An array of numbers or truth values as a column."""
    if numbers.dtype == np.bool_:
        return as_column(numbers.view(np.uint8)).cast(pa.bool_())
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def as_array(column: pa.Array) -> NDArray[Any]:
    """A column of numbers without nulls as an array."""
    kind = np.dtype(column.type.to_pandas_dtype())
    _, content = column.buffers()
    if content is None or not len(column):
        return np.empty(0, dtype=kind)
    return np.frombuffer(content, dtype=kind)[column.offset : column.offset + len(column)]


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A list of texts or integers as a column."""
    return pl.Series(values, strict=True).to_arrow().cast(kind)


def client_arrays(clients: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """(integers, ends of texts, texts): those that do not apply are empty."""
    none = np.empty(0, dtype=np.int64)
    if pa.types.is_integer(clients.type):
        try:
            return as_array(clients.cast(pa.int64())), none, np.empty(0, dtype=np.uint8)
        except pa.ArrowInvalid:
            raise DiscreetError("column 'client' holds integers past 2^63 - 1; cast it to text") from None
    if pa.types.is_dictionary(clients.type) and is_text(clients.type.value_type):
        clients = plain(clients)
        if clients.null_count:  # a word of the dictionary, which no index shows to be null
            raise DiscreetError(f"column 'client' holds {clients.null_count} nulls; leave those rows out")
    if not is_text(clients.type):
        raise DiscreetError(f"column 'client' holds {clients.type} values; clients are texts or integers")
    texts = clients.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return none, ends, np.frombuffer(content, dtype=np.uint8) if content is not None else np.empty(0, dtype=np.uint8)


def frozen(array: Any) -> Any:
    """A read-only view: compiled code comes in one version, for arrays that it may not write to."""
    view = array.view()
    view.setflags(write=False)
    return view


@contextmanager
def arrow_errors(name: str, what: str) -> Iterator[None]:
    """What Arrow finds wrong with data from outside, as one of our errors."""
    try:
        yield
    except DiscreetError:
        raise
    except OSError as error:
        why = error.strerror if error.strerror else _first_line(error)
        raise DiscreetError(f"{name} {what}: {why}") from None
    except (pa.ArrowException, UnicodeDecodeError, ValueError, KeyError, MemoryError, OverflowError) as error:
        raise DiscreetError(f"{name} {what}: {_first_line(error)}") from None


@contextmanager
def reader_errors(name: str) -> Iterator[None]:
    """What polars says about the user's data, as one of our errors: in our words, since its own may show values."""
    try:
        yield
    except pl.exceptions.PanicException:
        raise DiscreetError(f"{name}: it is damaged, or holds what its reader does not know; write it again") from None
    except pl.exceptions.PolarsError as error:
        text = str(error).lower()
        told = next((ours for theirs, ours in _TOLD.items() if theirs in text), None)
        raise DiscreetError(
            f"{name}: {told or f'it is damaged, or not what it seems to be ({type(error).__name__})'}"
        ) from None
    except OSError as error:
        raise DiscreetError(f"{name} cannot be read: {error.strerror or type(error).__name__}") from None


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


def _damaged(where: str, what: str) -> DiscreetError:
    return DiscreetError(
        f"{where}: {what} is damaged: it points outside of what was sent, or holds text that is not UTF-8; write it again"
    )


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
