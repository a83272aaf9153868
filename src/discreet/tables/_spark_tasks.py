"""What the tasks of Spark run: they read records, combine them by buckets of clients, and draw for whole buckets.

A row that Spark moves holds all records of a bucket of clients in one partition, since Spark's work is by row. Lists of numbers are bytes in
it, which Spark passes on unchanged (`discreet.tables.spark`).
"""

import gc
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.kernels import read_only_view
from discreet.domain import Coding, column_expression
from discreet.mechanisms import ReportSampler
from discreet.release import DIGEST_WORDS
from discreet.survey import SurveySampler
from discreet.tables._drawing import Kernel
from discreet.tables._parts import (
    RecordArrays,
    choose_grouping_functions,
    client_names_as_arrays,
    group_records_by_client,
    unlisted_clients_error,
)
from discreet.tables._reading import CodedRows, RecordReader
from discreet.tables._request import Job
from discreet.tables._sources import ParquetSource, RowGroups, check_batch, distinct_values

Batches = Iterator[pa.RecordBatch]
ReadRecords = Callable[[RecordReader, Job, Batches], Iterator[CodedRows]]
"""The checked records of what a task gets."""

READ_AT_ONCE = 1 << 18  # rows
DIGEST_FORMAT = f"<{DIGEST_WORDS}Q"
DECIMAL_DIGITS = 20  # of a report of 64 bits
_COMBINED = 1 << 27  # bytes of records that a task groups by client before it passes them on
_BUCKET_BITS = 12  # 2^12 buckets of clients, each of which is drawn at once
_DRAWN_AT_ONCE = 1 << 24  # bytes of combined records that a task groups and draws at a time


def arrow_type_of_samples(job: Job) -> pa.DataType:
    """The type of what is released. Spark has no unsigned integers: reports have 64 bits, or decimal digits."""
    if isinstance(job.sampler, (ReportSampler, SurveySampler)):
        largest = job.sampler.blocks.largest_report if isinstance(job.sampler, ReportSampler) else job.sampler.largest
        return pa.int64() if largest < 1 << 63 else pa.decimal128(DECIMAL_DIGITS, 0)
    assert isinstance(job.reading.coding, Coding)
    return job.reading.coding.arrow_type_of_samples


def make_record_combiner(
    job: Job,
    seed: np.uint64,
    tallies: list[Any] | None,
    read_records: ReadRecords,
) -> Callable[[Batches], Batches]:
    """A function from what a task gets to rows that each hold the records of many clients, as bytes."""

    def combine_records_of_batches(batches: Batches) -> Batches:
        _exempt_modules_from_garbage_collection()
        reader = RecordReader(job.reading)
        queue: list[RecordArrays] = []
        for clients, outcomes, counts in read_records(reader, job, batches):
            amounts = np.empty(0) if counts is None else counts
            queue.append(RecordArrays(*client_names_as_arrays(clients), outcomes, amounts))
            if sum(piece.nbytes for piece in queue) >= _COMBINED:
                yield from pack_records_into_bucket_batches(RecordArrays.join_pieces(queue), seed)
                queue = []
        reader.refuse_bad_rows_with_counts()
        if tallies is not None:
            misfits = reader.total_missing_and_outside_counts
            for total, number in zip(
                tallies,
                (reader.rows, 0, misfits.nulls, misfits.not_numbers, misfits.outside, reader.nameless),
                strict=True,
            ):
                total.add(number)
        if queue:
            yield from pack_records_into_bucket_batches(RecordArrays.join_pieces(queue), seed)

    return combine_records_of_batches


@cache
def _exempt_modules_from_garbage_collection() -> None:
    """Make garbage collection skip what this Python worker has loaded: it runs after every task, and would take 40 ms each time."""
    gc.collect()
    gc.freeze()


def read_records_of_rows(reader: RecordReader, job: Job, batches: Batches) -> Iterator[CodedRows]:
    """The checked records of the rows that a task gets."""
    named_batches = (batch.rename_columns(job.reading.columns.all_column_names) for batch in batches)
    for table in join_small_batches((check_batch(batch, "the data frame") for batch in named_batches), READ_AT_ONCE):
        raw = pl.from_arrow(table)
        yield from reader.iterate_checked_records(job.reading.prepare_rows(raw), partial(_distinct_example_values, raw))


def _distinct_example_values(raw: Any, prepare: Callable[[Any], Any], column: str, number: int) -> list[Any]:
    return distinct_values(prepare(raw), column, number)


def join_small_batches(batches: Batches, rows: int) -> Iterator[pa.Table]:
    """Small batches joined to tables of at least that many rows, except the last."""
    queue: list[pa.RecordBatch] = []
    queued_rows = 0
    for batch in batches:
        queue.append(batch)
        queued_rows += batch.num_rows
        if queued_rows >= rows:
            yield pa.Table.from_batches(queue)
            queue, queued_rows = [], 0
    if queued_rows:
        yield pa.Table.from_batches(queue)


def make_file_reader(
    source: str, kinds: Mapping[str, Any], parts: Sequence[Sequence[tuple[str, RowGroups]]]
) -> ReadRecords:
    """A function that gives the checked records of the parts whose numbers a task gets.

    Args:
        source: the name of the input in messages.
        kinds: the columns to read, with the types that Spark reads them as.
        parts: paths of Parquet files, and row groups of each.
    """

    def read_records_of_files(reader: RecordReader, job: Job, batches: Batches) -> Iterator[CodedRows]:
        def cast_and_prepare_rows(rows: Any) -> Any:
            return job.reading.prepare_rows(
                rows.select(column_expression(name).cast(kind) for name, kind in kinds.items())
            )

        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            paths, row_groups = zip(*parts[number], strict=True)
            files = ParquetSource(source, paths, row_groups)
            for frame in files.read_prepared_frames(cast_and_prepare_rows, list(kinds)):
                yield from reader.iterate_checked_records(frame, files.example_values)

    return read_records_of_files


def pack_records_into_bucket_batches(records: RecordArrays, seed: np.uint64) -> Iterator[pa.RecordBatch]:
    """A row for each bucket of clients: whom it holds, the number of outcomes of each, all outcomes[, their counts], each as bytes."""
    code = choose_grouping_functions(records.outcomes.size)
    starts, *arrays = code.records_by_part(*map(read_only_view, records), _BUCKET_BITS, seed)
    buckets = np.flatnonzero(np.diff(starts[:-1]))
    if not buckets.size:
        return
    clients = group_records_by_client(RecordArrays(*arrays), seed=seed).clients  # in order of bucket
    record_ends = np.append(starts[buckets], starts[-2])
    client_ends = np.searchsorted(clients.ends, record_ends)
    columns = {
        "bucket": pa.array(buckets),
        "lengths": _lists_as_bytes(client_ends, np.diff(clients.ends)),
        "outcomes": _lists_as_bytes(record_ends, clients.outcomes),
    }
    if clients.text_ends.size:
        columns["clients"] = _lists_as_bytes(clients.text_ends[client_ends], clients.text)
        columns["text_lengths"] = _lists_as_bytes(client_ends, np.diff(clients.text_ends))
    else:
        columns["clients"] = _lists_as_bytes(client_ends, clients.integers)
    amounts = clients.counts if clients.counts.size else clients.weights
    if amounts.size:
        columns["counts"] = _lists_as_bytes(record_ends, amounts)
    yield pa.RecordBatch.from_pydict(columns)


def _lists_as_bytes(ends: NDArray[np.int64], values: NDArray[Any]) -> pa.Array:
    """Lists of numbers as a column of bytes: Spark would pass on lists element by element."""
    offsets = pa.py_buffer((ends * values.itemsize).astype(np.int64))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends) - 1, [None, offsets, pa.py_buffer(values)]
    ).cast(pa.binary())


def make_sample_drawer(
    job: Job, has_list: bool, words: Sequence[str], tallies: list[Any] | None
) -> Callable[[Batches], Batches]:
    """A function from combined rows in order of bucket to samples. `words`: "order" and "digest", if these are needed too."""

    def draw_samples_of_batches(batches: Batches) -> Batches:
        _exempt_modules_from_garbage_collection()
        kernel = Kernel(job)
        queue: list[pa.RecordBatch] = []
        for batch in batches:
            queue.append(batch)
            if sum(piece.nbytes for piece in queue) >= _DRAWN_AT_ONCE:
                table = pa.Table.from_batches(queue)
                buckets = table.column("bucket").to_numpy()
                complete_rows = int(np.searchsorted(buckets, buckets[-1]))  # the last bucket may not be complete yet
                yield from _draw_samples_in_task(table.slice(0, complete_rows), kernel, job, has_list, words, tallies)
                queue = table.slice(complete_rows).to_batches()
        if queue:
            yield from _draw_samples_in_task(pa.Table.from_batches(queue), kernel, job, has_list, words, tallies)

    return draw_samples_of_batches


def _draw_samples_in_task(
    table: pa.Table, kernel: Kernel, job: Job, has_list: bool, words: Sequence[str], tallies: list[Any] | None
) -> Batches:
    if not table.num_rows:
        return
    records, lengths = unpack_bucket_records_and_lengths(
        table, job.reading.columns.count_or_weight_numpy_dtype, job.reading.coding.record_type
    )
    group = group_records_by_client(records, seed=np.uint64(secrets.randbits(64)), lengths=lengths)
    if has_list:
        group, unlisted_count = group.remove_marks_and_count_unlisted()
        if unlisted_count:
            raise unlisted_clients_error(unlisted_count, len(group.names))
    if tallies is not None and (has_list or job.reading.columns.count_or_weight_column is not None):
        tallies[1].add(group.number_of_clients_without_records)
    draws = kernel.draw(group.clients, ordered="order" in words, digested="digest" in words)
    batch = kernel.publish(group.names, draws)
    columns = {
        "client": batch.column("client").cast(pa.int64() if job.reading.are_clients_integers else pa.string()),
        **{name: batch.column(name).cast(arrow_type_of_samples(job)) for name in job.sample_columns},
    }
    if "order" in words:
        columns["order"] = pa.array(draws.order.view(np.int64))
    if "digest" in words:
        digest = struct.pack(DIGEST_FORMAT, *draws.digest.words)
        columns["digest"] = pa.array([digest] + [None] * (len(group.names) - 1), pa.binary())
    yield pa.RecordBatch.from_pydict(columns)


def unpack_bucket_records_and_lengths(
    table: pa.Table, amounts: Any, outcome_type: Any = np.uint32
) -> tuple[RecordArrays, NDArray[np.int64]]:
    """The records of such rows, and the number of outcomes of each client in each row. `amounts`: the type of counts."""
    are_texts = "text_lengths" in table.column_names
    kinds = {"outcomes": outcome_type, "counts": amounts, "clients": np.uint8 if are_texts else np.int64}
    arrays = {
        name: _numbers_from_bytes(table.column(name), kinds.get(name, np.int64)) for name in table.column_names[1:]
    }
    empty = np.empty(0, dtype=np.int64)
    return RecordArrays(
        empty if are_texts else arrays["clients"],
        np.concatenate(([0], np.cumsum(arrays["text_lengths"]))) if are_texts else empty,
        arrays["clients"] if are_texts else np.empty(0, dtype=np.uint8),
        arrays["outcomes"],
        arrays.get("counts", np.empty(0)),
    ), arrays["lengths"]


def _numbers_from_bytes(column: pa.ChunkedArray, kind: Any) -> NDArray[Any]:
    """The numbers of all lists."""
    pieces = []
    for rows in column.cast(pa.large_binary()).chunks:
        _, offsets, content = rows.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64, count=len(rows) + 1, offset=8 * rows.offset)
        pieces.append(np.frombuffer(content, dtype=np.uint8, count=ends[-1] - ends[0], offset=ends[0]))
    return np.concatenate(pieces).view(kind)
