"""Groups of clients as rows that travel between machines: lists of numbers as bytes, which Spark passes on as they are."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet._tables._clients import plain_clients
from discreet.engines._parts import ClientGroup, RecordArrays, client_arrays


def pack_group(group: ClientGroup) -> pa.RecordBatch:
    """A row (client, outcomes[, counts]) for each client of a group."""
    columns = {
        "client": group.names.cast(pa.string()) if group.clients.text_ends.size else group.names,
        "outcomes": _as_bytes(group.clients.ends, group.clients.outcomes),
    }
    amounts = group.clients.counts if group.clients.counts.size else group.clients.weights
    if amounts.size:
        columns["counts"] = _as_bytes(group.clients.ends, amounts)
    return pa.RecordBatch.from_pydict(columns)


def unpack_records(batch: pa.RecordBatch, amounts: Any) -> tuple[RecordArrays, NDArray[np.int64]]:
    """The records of such rows, and how many each row has. `amounts`: the type of counts."""
    lengths, outcomes = _from_bytes(batch.column("outcomes"), np.uint32)
    counts = np.empty(0)
    if "counts" in batch.schema.names:
        counts = _from_bytes(batch.column("counts"), amounts)[1]
    return RecordArrays(*client_arrays(plain_clients(batch.column("client"))), outcomes, counts), lengths


def _as_bytes(ends: NDArray[np.int64], values: NDArray[Any]) -> pa.Array:
    """Lists of numbers as a column of bytes: lists themselves would be passed on element by element."""
    offsets = pa.py_buffer((ends * values.itemsize).astype(np.int64))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, offsets, pa.py_buffer(values)]
    ).cast(pa.binary())


def _from_bytes(column: pa.Array, kind: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(how many numbers in each row, the numbers)."""
    rows = column.cast(pa.large_binary())
    _, offsets, content = rows.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[rows.offset : rows.offset + len(rows) + 1]
    size = np.dtype(kind).itemsize
    values = np.frombuffer(content, dtype=kind, count=(ends[-1] - ends[0]) // size, offset=ends[0])
    return np.diff(ends) // size, values
