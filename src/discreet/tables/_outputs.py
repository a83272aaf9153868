"""Published samples and their files: Parquet, CSV or Arrow, which appear whole or not at all (`discreet._base.files`)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.files import atomic_write
from discreet.domain import CellDomain, Labels
from discreet.errors import DiscreetError, check_choice, check_path
from discreet.mechanisms import JointSampler
from discreet.tables._arrow import as_type, is_text, number_column, series_of, short_texts
from discreet.tables._coding import Coding
from discreet.tables._disk import STANDARD, WRITTEN
from discreet.tables._text_files import guard_text

FORMATS = ("parquet", "csv", "arrow")
REPLACE_HINT = "name another file, or replace it: replace=True (--force)"
_ROW_GROUP = 1 << 20


def published_batch(
    clients: pa.Array, coding: Coding, outcomes: NDArray[np.int64], within: NDArray[np.float64], agreement_id: str
) -> pa.RecordBatch:
    """Clients and the outcomes that were drawn for them, as records (client, sample, agreement)."""
    columns = [clients, samples_of(coding, outcomes, within), _agreement_column(agreement_id, len(clients))]
    return pa.RecordBatch.from_arrays(columns, names=["client", "sample", "agreement"])


def joint_columns(samples: int) -> tuple[str, ...]:
    """The columns of several samples of each client that were drawn together."""
    return tuple(f"sample_{place}" for place in range(1, samples + 1))


def published_joint(
    clients: pa.Array, coding: Coding, joint: JointSampler, numbers: NDArray[np.int64], seeds: Any, agreement_id: str
) -> pa.RecordBatch:
    """Clients and the members of the multisets that were drawn for them, as records (client, sample_1, ..., agreement).

    A seed of each client (53 bits) gives the order of the members, and the place of each within its cell.
    """
    words = _mixed_words(np.asarray(seeds), 2 * joint.samples)
    members = joint.multisets.sequences_by_keys(numbers, words[:, : joint.samples])
    within = (words[:, joint.samples :] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    samples = [samples_of(coding, members[:, place], within[:, place]) for place in range(joint.samples)]
    columns = [clients, *samples, _agreement_column(agreement_id, len(clients))]
    return pa.RecordBatch.from_arrays(columns, names=["client", *joint_columns(joint.samples), "agreement"])


def _mixed_words(seeds: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
    """So many words (n, number) of each seed (n,), by SplitMix64 [Steele, Lea, Flood, OOPSLA 2014]. They are no secret."""
    steps = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = seeds.astype(np.uint64)[:, None] + steps[None, :]  # modulo 2^64
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


def published_reports(clients: pa.Array, reports: NDArray[np.uint64], agreement_id: str) -> pa.RecordBatch:
    """Clients and the reports that were drawn for them, as records (client, report, agreement)."""
    columns = [clients, number_column(reports), _agreement_column(agreement_id, len(clients))]
    return pa.RecordBatch.from_arrays(columns, names=["client", "report", "agreement"])


def _agreement_column(agreement_id: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        number_column(np.zeros(rows, dtype=np.int8)),
        short_texts(pl.Series([agreement_id])),
    )


def samples_of(coding: Coding, outcomes: NDArray[np.int64], within: NDArray[np.float64]) -> pa.Array:
    """Outcome numbers as published: labels, the numbers, or the point `within` each cell."""
    match coding.domain:
        case Labels(labels):
            found = pl.Series(labels, strict=True).gather(series_of(number_column(outcomes)))
            return short_texts(found) if found.dtype == pl.String else as_type(found.to_arrow(), coding.sample_type)
        case CellDomain() as cells:
            return number_column(cells.within(outcomes, within))
        case _:
            return number_column(outcomes)


class TableWriter(Protocol):
    """A writer of batches; `close` completes the file."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class _RowGroupWriter:
    """A writer that joins small batches into row groups of a useful size."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._waiting, self._rows = writer, list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.Table.from_batches(self._waiting).combine_chunks())
        self._waiting, self._rows = [], 0


def format_of(path: str, declared: str | None = None) -> str:
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


@contextmanager
def writer_to(path: str, schema: pa.Schema, kind: str, *, replace: bool = True) -> Iterator[TableWriter]:
    """A writer to a file that appears only on success (`discreet._base.files`), or to standard output ('-').

    A missing folder is created.
    """
    if path == STANDARD:
        writer = _make_writer(sys.stdout.buffer, schema, kind, streaming=True)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with atomic_write(path, replace=replace, folders=True, fix=REPLACE_HINT) as file:
        writer = _make_writer(file, schema, kind, streaming=False)
        try:
            yield writer
        except BaseException:
            with suppress(Exception):
                writer.close()  # else its destructor complains that its file is closed
            raise
        writer.close()


def _make_writer(file: Any, schema: pa.Schema, kind: str, *, streaming: bool) -> TableWriter:
    match kind:
        case "parquet":
            import pyarrow.parquet as pq

            return _RowGroupWriter(pq.ParquetWriter(file, schema, compression="zstd"))
        case "csv":
            from pyarrow import csv

            return _CsvWriter(csv.CSVWriter(file, _csv_schema(schema)), _csv_schema(schema))
    if streaming:
        return pa.ipc.new_stream(file, schema)  # type: ignore[no-any-return]
    return _RowGroupWriter(pa.ipc.new_file(file, schema))


class _CsvWriter:
    """A writer of CSV: dictionary columns become plain texts, and texts are guarded so that no spreadsheet runs them."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [_guard_column(column) for column in batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, names=batch.schema.names).cast(self._schema))

    def close(self) -> None:
        self._writer.close()


def _guard_column(column: pa.Array) -> pa.Array:
    return pl.select(guard_text(pl.lit(series_of(column)))).to_series().to_arrow() if is_text(column.type) else column


def _csv_schema(schema: pa.Schema) -> pa.Schema:
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return pa.schema(fields)
