"""One private sample for each client of a Spark data frame: Spark groups the records by client, the kernel draws.

Every sample is a keyed function of client, data, agreement and round. A task that is retried, run twice by speculation or recomputed by a
second action therefore gives the same sample again. (A fresh draw each time would spend epsilon again.)

Rows are first grouped by client within each input partition, as a combiner does. Clients fall into buckets by a hash of their names, and
the shuffle moves one row for each bucket and partition, since Spark's work is by row. Lists of numbers travel as bytes, which Spark passes on
unchanged. The shuffle then sorts by bucket with Spark's own means, which spill to disk. A task draws whole buckets: no client is drawn twice
as long as every task finds the same bucket for it, so the seed of the hash is that of the release. Executors get the key of this run, never
the secret it comes from.

Handing rows from the JVM to Python takes longer than everything that Python does with them. So the tasks of `sample_files` read Parquet files
on this machine themselves, by row groups, where Spark and polars read the columns alike.

Spark's adaptive execution joins small partitions before the draw, so the number of Python tasks follows the amount of data. (Where a session
has it switched off, there are as many as it has shuffle partitions.) A second shuffle, of the samples alone, then puts them into as many
partitions as the cluster has cores, by client: the layout of the output depends on the clients and not on their data.

Under a secret a round is released on one input (`discreet.ledger._book`), but a lazy frame could be computed again after its source has
changed. The samples are then computed at once and kept (a checkpoint), with the digest of their input. The round is noted, or an error
raised, before the caller has them; later actions read the kept samples.
"""

import os
import re
import secrets
import shutil
import struct
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.agreement import Agreement
from discreet.domain import MARK_LISTED, widened_mark_for_records
from discreet.errors import DiscreetError, check_flag, check_kind, check_path, raise_missing_extra
from discreet.ledger import Rounds
from discreet.mechanisms import JointSampler, OwnSampler
from discreet.release import InputDigest
from discreet.tables._columns import (
    bound_of_exact_integers_in_float_type,
    is_integer_client_type,
    normalise_client_names,
    read_client_list_file,
    refuse_unusable_client_type,
    warn_if_client_column_holds_floats,
)
from discreet.tables._parts import (
    RecordArrays,
    client_names_as_arrays,
)
from discreet.tables._reading import RecordReader
from discreet.tables._request import Job, Request, RequestTerms, Summary
from discreet.tables._sources import (
    AGREEMENT_FILE,
    METADATA,
    NUMBER,
    RUN,
    TEXTS,
    ParquetSource,
    choose_output_format,
    partition_keys_in_path,
)
from discreet.tables._spark_tasks import (
    DECIMAL_DIGITS,
    DIGEST_FORMAT,
    READ_AT_ONCE,
    Batches,
    ReadRecords,
    arrow_type_of_samples,
    join_small_batches,
    make_file_reader,
    make_record_combiner,
    make_sample_drawer,
    pack_records_into_bucket_batches,
    read_records_of_rows,
)

__all__ = ["sample", "sample_files"]


try:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession, functions as F, types as T
except ImportError as missing:
    raise_missing_extra("spark", missing)

_SPARK_ERRORS = (PySparkException, Py4JJavaError)  # the second: errors of Java that pyspark does not translate
_NARROW = (T.ByteType, T.ShortType, T.IntegerType)

_READ_ALIKE = (pl.Int64(), pl.Float32(), pl.Float64(), pl.Boolean(), pl.String())  # by Spark and by polars
_NARROW_INTEGERS = (pl.Int8(), pl.Int16(), pl.Int32(), pl.UInt8(), pl.UInt16(), pl.UInt32())
_PART_BYTES = 1 << 27  # of files that a task reads
_MOST_CHUNKS = 10_000  # of a file whose footer every task reads
_BATCH_ROWS, _BATCH_BYTES = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"
_PARTITIONS_BY_SIZE = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")


def sample(
    frame: DataFrame,
    *,
    clients: DataFrame | None = None,
    drop_client: bool = False,
    **terms: Unpack[RequestTerms],
) -> DataFrame:
    """Release one private sample for each client of a Spark data frame.

    With a secret, by a mechanism of one's own and for several samples drawn together, the samples are computed when this function is called,
    and kept: in the session's checkpoint folder if it has one, else on the executors. Otherwise the frame is lazy, and the key is drawn when
    this function is called. Actions on the frame agree as long as its source does not change; another call is another release. A mechanism
    of one's own has to be installed on every worker, in the agreed version.

    Args:
        frame: rows of (client, value).
        clients: all clients: a data frame with the client column.
        drop_client: whether to return only the samples, in random order.
        terms: the keywords of `discreet.tables.Request`.

    Returns:
        A data frame of the client column under its own name, `sample` and `agreement`; under an agreement on reports with a column
        `report` in place of `sample`, of long integers, or of decimals of 20 digits for masks of 64 outcomes; under one on J samples
        drawn together with columns `sample_1` to `sample_J`.

    Raises:
        DiscreetError: if the frame cannot be released.
    """
    request = Request(**terms)
    check_kind("frame", frame, DataFrame, "pass a Spark data frame")
    if clients is not None:
        check_kind("clients", clients, DataFrame, "pass a Spark data frame with the client column")
    drop_client = check_flag("drop_client", drop_client)
    job = _make_spark_job(request, frame, "the data frame")
    try:
        return _release_spark_frame(frame, job, clients, request, drop_client=drop_client, tallies=None)
    except _SPARK_ERRORS as error:
        raise DiscreetError(_task_error_message(error)) from None


def sample_files(
    path: str,
    output: str,
    request: Request,
    *,
    clients: str | None = None,
    drop_client: bool = False,
    output_format: str | None = None,
    agreement_file: Path | None = None,
) -> Summary:
    """As `discreet.tables.sample_file`, by the Spark session there is (or a local one), to a folder of files.

    Args:
        path: Parquet files to read.
        output: the folder to write; one that exists is refused.
        request: what is asked for.
        clients: the path of a list of all clients.
        drop_client: samples alone, in random order.
        output_format: "parquet" or "csv", where the ending of the output does not say it.
        agreement_file: where the agreement is written.

    Returns:
        What was read, left out and written.

    Raises:
        DiscreetError: for what cannot be read, released or written.
    """
    check_kind("request", request, Request, "pass Request(...)")
    for name, file in (("path", path), ("output", output), ("clients", clients), ("agreement_file", agreement_file)):
        if file is not None or name in ("path", "output"):
            check_path(name, file)
    path, output = os.fspath(path), os.fspath(output)
    kind = choose_output_format(output, output_format)
    if kind == "arrow" or "-" in (path, output):
        raise DiscreetError(
            "the Spark engine reads Parquet and writes Parquet or CSV, no standard streams and no Arrow files"
        )
    if path.lower().endswith((*TEXTS, ".txt", ".gz")):
        raise DiscreetError(
            f"the Spark engine reads Parquet, not {path}. Spark reads text differently from the local engine (quotes, spaces, long rows, "
            "names that are not UTF-8), so the clients would differ. Convert it to Parquet, or use --engine local"
        )
    path, output = _absolute_path(path), _absolute_path(output)
    if not _is_remote_path(output) and os.path.exists(output):
        raise DiscreetError(f"output {output} exists; Spark writes a folder of that name, remove the old one first")
    start = time.perf_counter()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # our own session encrypts its disk files, under a key that ends with it
    session = SparkSession.builder.appName("discreet").config("spark.io.encryption.enabled", "true").getOrCreate()
    try:
        frame, keys, files = _read_parquet_frame_keys_and_files(session, path, request.columns.all_column_names)
        job = _make_spark_job(request, frame, path, keys)
        if agreement_file is not None:
            job.agreement.check_file(agreement_file)
        client_list = (
            None if clients is None else _read_client_list_into_spark_frame(session, _absolute_path(clients), job)
        )
        context = session.sparkContext
        tallies = [context.accumulator(0) for _ in range(6)]  # a task that is run twice counts twice
        try:
            with _without_byte_limit_of_batches(_select_columns_of_job(frame, job)):
                samples = _release_spark_frame(
                    frame, job, client_list, request, drop_client=drop_client, tallies=tallies, files=files
                )
                _write_release_folder(samples, output, kind, job.agreement)
        except _SPARK_ERRORS as error:
            if _is_discreet_error(error) and not request.show_values:
                _refuse_bad_rows_of_frame(frame, job)
            raise
        if agreement_file is not None:
            job.agreement.write(agreement_file)
    except _SPARK_ERRORS as error:
        raise DiscreetError(_task_error_message(error)) from None
    rows, without_records, nulls, not_numbers, outside, nameless = (int(tally.value) for tally in tallies)
    return Summary(
        agreement=job.agreement,
        rows=rows,
        clients=_count_written_rows(session, output, kind),
        nulls=nulls,
        not_numbers=not_numbers,
        outside=outside,
        without_records=without_records,
        spilled_bytes=0,
        seconds=time.perf_counter() - start,
        nameless=nameless,
    )


def _release_spark_frame(
    frame: DataFrame,
    job: Job,
    clients: DataFrame | None,
    request: Request,
    *,
    drop_client: bool,
    tallies: list[Any] | None,
    files: ParquetSource | None = None,
) -> DataFrame:
    """The samples. `files`: the same rows, if the tasks can read them without Spark."""
    if request.secret is not None:
        Rounds(request.secret).refuse_if_secret_has_ledger()
    job.reading.warn_if_client_columns_hold_floats()  # here: warnings of a task are not seen
    if clients is not None:
        _refuse_list_of_composite_clients(job)
    seed = np.uint64(secrets.randbits(64))  # of the buckets, the same in all tasks
    task_rows, read_records = (
        (_select_columns_of_job(frame, job), read_records_of_rows)
        if files is None
        else _make_part_numbers_frame_and_reader(frame, files, job)
    )
    bucket_rows = task_rows.mapInArrow(
        make_record_combiner(job, seed, tallies, read_records), _spark_schema_of_buckets(job)
    )
    if clients is not None:
        bucket_rows = bucket_rows.unionByName(_make_marks_of_listed_clients(clients, job, seed))
    words = [*(["order"] if drop_client else []), *([] if request.secret is None else ["digest"])]
    # without a number: Spark joins small partitions, so that few rows are not drawn in many tasks
    draws = (
        bucket_rows.repartition("bucket")
        .sortWithinPartitions("bucket")
        .mapInArrow(make_sample_drawer(job, clients is not None, words, tallies), _spark_schema_of_draws(job, words))
    )
    # a law of one's own may answer otherwise the next time, and a joint draw takes as many integers as there are multisets
    asked_once = isinstance(job.sampler, (OwnSampler, JointSampler))
    if request.secret is not None or asked_once:
        draws = (
            draws.localCheckpoint()
            if frame.sparkSession.sparkContext.getCheckpointDir() is None
            else draws.checkpoint()
        )
    if request.secret is not None:
        digest = _sum_digests(draws).keyed_hash(job.key)
        Rounds(request.secret).note_released_round(job.agreement, job.question, request.round, digest)
    # the same in all rows, so it need not travel; a literal alone would make a column without nulls, another type than in files
    agreement_id = F.when(F.col(job.sample_columns[0]).isNotNull(), job.agreement.id)
    agreement = agreement_id.alias("agreement", metadata={METADATA.decode(): job.agreement.text})
    if drop_client:
        return draws.orderBy("order").select(*job.sample_columns, agreement)
    # a number of the cluster's: which clients share a partition, and so a file, must not depend on the sizes of their data
    session = frame.sparkSession
    limit = int(str(session.conf.get("spark.sql.shuffle.partitions")))
    partitions = max(1, min(limit, session.sparkContext.defaultParallelism))
    samples = draws.select("client", *job.sample_columns).repartition(partitions, "client")
    by_client = samples.sortWithinPartitions("client")
    return by_client.select(F.col("client").alias(job.output_columns[0]), *job.sample_columns, agreement)


def _sum_digests(draws: DataFrame) -> InputDigest:
    """The digest of all input of the draw: the sum of the digests of its batches, each in the batch's first row."""
    rows = draws.select("digest").where(F.col("digest").isNotNull()).collect()
    words = (struct.unpack(DIGEST_FORMAT, bytes(row["digest"])) for row in rows)
    return sum((InputDigest((a, b, c, d)) for a, b, c, d in words), InputDigest())


@contextmanager
def _without_byte_limit_of_batches(frame: DataFrame) -> Iterator[None]:
    """While a frame is computed, its session limits Arrow batches by their rows alone; its setting comes back afterwards.

    Under the limit in bytes Spark computes the size of a batch again for every row that it adds, which is a fifth of a release. The limit
    stays if somebody has set it, if nothing else limits batches, and for lists, of which 10,000 may not fit into memory. It also stays if
    Spark does not join shuffled partitions by their size: a task could then get all its combined rows in one batch.
    """
    settings = frame.sparkSession.conf
    try:
        settings.get(_BATCH_BYTES)
        rows_limited = int(str(settings.get(_BATCH_ROWS))) > 0
        joined_by_size = all(settings.get(name) == "true" for name in _PARTITIONS_BY_SIZE)
    except _SPARK_ERRORS:  # Spark 4.0 has no limit in bytes
        rows_limited = joined_by_size = False
    has_nested_columns = any(
        isinstance(field.dataType, (T.ArrayType, T.MapType, T.StructType)) for field in frame.schema.fields
    )
    if has_nested_columns or not rows_limited or not joined_by_size or _BATCH_BYTES in settings.getAll:
        yield
        return
    settings.set(_BATCH_BYTES, str(2**31 - 1))
    try:
        yield
    finally:
        settings.unset(_BATCH_BYTES)


def _refuse_bad_rows_of_frame(frame: DataFrame, job: Job) -> None:
    """Raise the error of a frame's rows, if there is one, with the numbers of the whole frame: a task knows those of its own rows alone."""

    def count_rows_by_problem(batches: Batches) -> Batches:
        reader = RecordReader(job.reading)
        for _ in read_records_of_rows(reader, job, batches):
            pass
        yield pa.RecordBatch.from_pydict({"counted": [reader.row_counts_by_problem]})

    total_reader = RecordReader(job.reading)
    for row in _select_columns_of_job(frame, job).mapInArrow(count_rows_by_problem, "counted array<bigint>").collect():
        total_reader.add_row_counts_by_problem(row["counted"])
    total_reader.refuse_bad_rows_with_counts()


def _make_part_numbers_frame_and_reader(
    frame: DataFrame, files: ParquetSource, job: Job
) -> tuple[DataFrame, ReadRecords]:
    """A frame of the numbers of parts of files, one for each task, and what reads the parts."""
    schema = _polars_schema_of_spark_frame(frame)
    kinds = {name: schema[name] for name in job.reading.columns.all_column_names}
    session = frame.sparkSession
    size = sum(os.path.getsize(file.path) for file in files.columns.files)
    parts = files.row_groups_by_part(max(session.sparkContext.defaultParallelism, -(-size // _PART_BYTES)))
    return session.range(0, len(parts), 1, max(1, len(parts))), make_file_reader(files.name, kinds, parts)


def _can_tasks_read_like_spark(files: ParquetSource, frame: DataFrame, columns: Sequence[str]) -> bool:
    """Whether tasks can read these columns as Spark does: integers, floats, truth values and texts, in files without a huge footer."""
    schema = _polars_schema_of_spark_frame(frame)
    if files.columns.keys or files.most_column_chunks_of_a_file > _MOST_CHUNKS:
        return False
    return all(
        name in files.schema
        and schema.get(name) in _READ_ALIKE
        and (
            files.schema[name] == schema[name] or (files.schema[name] in _NARROW_INTEGERS and schema[name] == pl.Int64)
        )
        for name in columns
    )


def _read_parquet_frame_keys_and_files(
    session: SparkSession, path: str, columns: Sequence[str]
) -> tuple[DataFrame, list[str], ParquetSource | None]:
    """Parquet files, and those of the columns that are partition keys: texts, as on the local engine (Spark would read 01 as 1). The third
    is the source of the files, if they are on this machine and tasks can read them without Spark.

    Files on this machine are checked first, since Spark fills a column that one of them lacks with nulls. Integers are read as 64 bits wide.
    """
    parts = path.split("/")
    base = next((index for index, part in enumerate(parts) if re.search(r"[=*?\[{]", part)), None)
    options = {} if base is None else {"basePath": "/".join(parts[:base])}
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    previous = session.conf.get(setting)
    session.conf.set(setting, "false")
    try:
        frame = session.read.options(**options).parquet(path)
        fields = [
            T.StructField(field.name, T.LongType() if isinstance(field.dataType, _NARROW) else field.dataType)
            for field in frame.schema.fields
        ]
        frame = session.read.options(**options).schema(T.StructType(fields)).parquet(path)
    finally:
        session.conf.set(setting, str(previous))
    files = [urlsplit(url) for url in sorted(frame.inputFiles())]
    source = None
    if files and not any(file.netloc or file.scheme != "file" for file in files):
        source = ParquetSource(path, [unquote(file.path) for file in files])
        source.columns.refuse_mismatched_columns(columns)
        if not _can_tasks_read_like_spark(source, frame, columns):
            source = None
    keys = [name for name in columns if files and name in partition_keys_in_path(files[0].path)]
    own_columns = session.read.option("recursiveFileLookup", "true").parquet(path).columns if keys else []
    for name in (name for name in keys if name in own_columns):
        raise DiscreetError(
            f"column {name!r} is in the files of {path} and in the names of their folders, and Spark reads the names; use --engine "
            "local, which reads the files, or give the column another name"
        )
    return frame, keys, source


def _make_spark_job(request: Request, frame: DataFrame, where: str, keys: Collection[str] = ()) -> Job:
    """The job on a Spark frame; an error for terms that only the local engine supports. `keys`: columns of texts without a type."""
    if request.coding.lenient:
        raise DiscreetError(
            "outside = 'agreed' is for the local engine; on Spark say what becomes of such values: other="
        )
    return request.job(_polars_schema_of_spark_frame(frame), untyped=keys, where=where)


def _spark_type_of_samples(job: Job) -> T.DataType:
    kinds = {
        pa.string(): T.StringType(),
        pa.int64(): T.LongType(),
        pa.float64(): T.DoubleType(),
        pa.decimal128(DECIMAL_DIGITS, 0): T.DecimalType(DECIMAL_DIGITS, 0),
    }
    return kinds[arrow_type_of_samples(job)]


def _spark_schema_of_buckets(job: Job) -> T.StructType:
    """The columns of `pack_records_into_bucket_batches`."""
    lists = ["lengths", "outcomes", "clients"]
    if not job.reading.are_clients_integers:
        lists.append("text_lengths")
    if job.reading.columns.count_or_weight_column is not None:
        lists.append("counts")
    return T.StructType(
        [T.StructField("bucket", T.LongType()), *(T.StructField(name, T.BinaryType()) for name in lists)]
    )


def _spark_schema_of_draws(job: Job, words: Sequence[str]) -> T.StructType:
    sample_type = _spark_type_of_samples(job)
    return T.StructType(
        [
            T.StructField("client", _spark_type_of_clients(job)),
            *(T.StructField(name, sample_type) for name in job.sample_columns),
            *(T.StructField(name, T.LongType() if name == "order" else T.BinaryType()) for name in words),
        ]
    )


def _spark_type_of_clients(job: Job) -> T.DataType:
    return T.LongType() if job.reading.are_clients_integers else T.StringType()


def _refuse_list_of_composite_clients(job: Job) -> None:
    if not isinstance(job.reading.columns.client, str):
        raise DiscreetError(
            "a list of clients whom several columns name is for the local engine; use --engine local, or name clients by one column"
        )


def _make_marks_of_listed_clients(clients: DataFrame, job: Job, seed: np.uint64) -> DataFrame:
    """For each client of the list a record whose outcome is the mark LISTED, combined as those of the frame."""
    column = job.reading.columns.client_columns[0]
    if column not in clients.columns:
        raise DiscreetError(f"column {column!r} is not in the list of clients; it has {', '.join(clients.columns)}")
    kind = _polars_type_of_spark(clients.schema[column].dataType)
    where = f"column {column!r} of the list of clients"
    refuse_unusable_client_type(where, kind)
    warn_if_client_column_holds_floats(where, kind)
    if is_integer_client_type(kind) != job.reading.are_clients_integers:  # a cast would invent clients or nulls
        table_kind, list_kind = ("integers", "texts") if job.reading.are_clients_integers else ("texts", "integers")
        raise DiscreetError(
            f"the list of clients holds {list_kind} but the clients of the table are {table_kind}; cast the integers to text: "
            "7 and '7' are one client"
        )
    name, names = _spark_column(column), _spark_type_of_clients(job)
    if kind.is_float():
        is_astray = F.isnan(name) | (F.abs(name) >= bound_of_exact_integers_in_float_type(kind))
        name = F.when(~is_astray, F.when(name.cast(names) == name, name))

    def pack_marks_of_listed_clients(batches: Batches) -> Batches:
        for table in join_small_batches(batches, READ_AT_ONCE):
            client_names = table.column("client").combine_chunks()
            if client_names.null_count:
                raise DiscreetError(
                    "the list of clients holds nulls, or floats that are no integers; nobody is called so, leave them out"
                )
            outcomes: NDArray[Any] = np.zeros(len(client_names), dtype=job.reading.coding.record_type)
            outcomes[:] = widened_mark_for_records(MARK_LISTED, outcomes)
            columns = job.reading.columns
            counts = np.ones(
                0 if columns.count_or_weight_column is None else len(client_names),
                dtype=columns.count_or_weight_numpy_dtype,
            )
            arrays = client_names_as_arrays(normalise_client_names(client_names))
            yield from pack_records_into_bucket_batches(RecordArrays(*arrays, outcomes, counts), seed)

    return clients.select(name.cast(names).alias("client")).mapInArrow(
        pack_marks_of_listed_clients, _spark_schema_of_buckets(job)
    )


def _polars_schema_of_spark_frame(frame: DataFrame) -> pl.Schema:
    return pl.Schema({field.name: _polars_type_of_spark(field.dataType) for field in frame.schema.fields})


def _polars_type_of_spark(kind: T.DataType) -> Any:
    match kind:
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return pl.Int64()
        case T.FloatType():
            return pl.Float32()
        case T.DoubleType():
            return pl.Float64()
        case T.DecimalType():
            return pl.Decimal(kind.precision, kind.scale)
        case T.StringType() | T.CharType() | T.VarcharType():
            return pl.String()
        case T.BooleanType():
            return pl.Boolean()
        case T.DateType():
            return pl.Date()
        case T.TimestampNTZType():
            return pl.Datetime("us")
        case T.TimestampType():  # of the session's time zone
            return pl.Datetime("us", "UTC")
        case T.ArrayType():
            return pl.List(_polars_type_of_spark(kind.elementType))
    return pl.Object()


def _read_client_list_into_spark_frame(session: SparkSession, path: str, job: Job) -> DataFrame:
    """A list of clients: Parquet by Spark, anything else by the reader of the local engine."""
    if path.lower().endswith((".parquet", ".pq")):
        return session.read.parquet(path)
    if _is_remote_path(path):
        raise DiscreetError(f"the list of clients {path} is not Parquet; convert it, or put it on this machine")
    _refuse_list_of_composite_clients(job)
    column = job.reading.columns.client_columns[0]
    client_names = read_client_list_file(Path(path), column, integers=job.reading.are_clients_integers)
    return session.createDataFrame(
        [(client,) for client in client_names.to_pylist()],
        T.StructType([T.StructField(column, _spark_type_of_clients(job))]),
    )


def _write_release_folder(frame: DataFrame, output: str, kind: str, agreement: Agreement) -> None:
    """Write a folder of files, which gets its name only once complete, with the agreement in it if CSV cannot carry it."""
    if _is_remote_path(output):
        _write_spark_frame(frame, output, kind)
        return
    target = Path(output)
    partial_folder = target.parent / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        _write_spark_frame(frame, str(partial_folder), kind)
        if kind == "csv":
            (partial_folder / AGREEMENT_FILE).write_text(agreement.text, encoding="utf-8")
        os.rename(partial_folder, target)
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)


def _write_spark_frame(frame: DataFrame, path: str, kind: str) -> None:
    if kind == "csv":
        texts = [field.name for field in frame.schema.fields if isinstance(field.dataType, T.StringType)]
        guarded_frame = frame.withColumns(
            {name: _spreadsheet_guarded_spark_column(_spark_column(name)) for name in texts}
        )
        guarded_frame.write.option("header", True).csv(path)
    else:
        frame.write.parquet(path)


def _select_columns_of_job(frame: DataFrame, job: Job) -> DataFrame:
    """The columns of a frame that a job reads, by their numbers: `mapInArrow` asks for columns by name without quotes."""
    names = job.reading.columns.all_column_names
    return frame.select(*(_spark_column(name).alias(str(number)) for number, name in enumerate(names)))


def _spark_column(name: str) -> Any:
    """The column of exactly that name: without quotes Spark reads a dot as a field of a struct, and a star as all columns."""
    return F.col("`" + name.replace("`", "``") + "`")


def _spreadsheet_guarded_spark_column(text: Any) -> Any:
    """The same as `discreet.tables._sources._text_files.spreadsheet_guarded_expression`, for Spark."""
    is_formula = text.rlike(f"^'*{RUN}") & ~text.rlike(NUMBER)
    return F.when(is_formula, F.concat(F.lit("'"), text)).otherwise(text)


def _count_written_rows(session: SparkSession, output: str, kind: str) -> int:
    if kind != "csv" and not _is_remote_path(output):  # files say it themselves
        return sum(pq.read_metadata(path).num_rows for path in Path(output).glob("*.parquet"))
    return (session.read.option("header", True).csv(output) if kind == "csv" else session.read.parquet(output)).count()


def _absolute_path(path: str) -> str:
    """A local path relative to this process: Spark's own process may have started in another folder."""
    return path if _is_remote_path(path) else os.path.abspath(path)


def _is_remote_path(path: str) -> bool:
    return "://" in path


_OURS = re.compile(r"^discreet\.errors\.\w+: (.*)$", re.MULTILINE)


def _is_discreet_error(error: Exception) -> bool:
    """Whether a task raised an error of ours."""
    return _OURS.search(str(error)) is not None


def _task_error_message(error: Exception) -> str:
    """The message of an error that a task raised, without Spark's trace; otherwise Spark's line with the name of its error, or its first."""
    messages = _OURS.findall(str(error)) or re.findall(r"(\[[A-Z_.]+\] .*)", str(error))[:1]
    return str(messages[-1]) if messages else str(error).strip().splitlines()[0]
