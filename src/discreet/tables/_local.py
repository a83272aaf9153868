"""The local engine: read in batches, group records into parts by client, and draw each part in a thread."""

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
import pyarrow as pa

from discreet._base import placeholders_until_used
from discreet._base.files import check_output_path, refuse_same_file
from discreet.agreement import weights_path
from discreet.domain import MARK_LISTED, Coding, widened_mark_for_records
from discreet.errors import (
    DiscreetError,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_path,
)
from discreet.ledger import OVER_BUDGET
from discreet.release import InputDigest
from discreet.tables._columns import client_names_from_list_or_file, normalise_client_names
from discreet.tables._reading import RecordReader
from discreet.tables._request import Job, Progress, Request, RequestTerms, Summary
from discreet.tables._sources import (
    METADATA,
    REPLACE_HINT,
    STANDARD,
    Source,
    arrow_column_as_numbers,
    arrow_column_as_polars_series,
    cast_column,
    choose_output_format,
    is_among_inputs,
    numbers_as_arrow_column,
    open_source,
    open_table_writer,
    source_of_table,
    take_rows_of_column,
)

with placeholders_until_used(globals()):
    from discreet.ledger import PopulationLedger, Rounds

if TYPE_CHECKING:
    from discreet.tables._drawing import Draws
    from discreet.tables._parts import ClientGroup, ClientParts

Result = TypeVar("Result")

_LEAST_MEMORY = 1_000_000
_USUAL_MEMORY = 1 << 30  # bytes, where nobody says how much there is
_LEAST_ROOM = 1 << 23  # bytes to unpack at a time


class Release:
    """A release on this machine, once: `table` or `batches` returns the samples, after which `summary` is known.

    Args:
        table: as in `sample`.
        request: the terms of the release.
        clients: as in `sample`.
        drop_client: whether to return only the samples, in random order.
        memory: bytes of records in memory before they go to disk.
        folder: for records on disk; by default the system's folder for temporary files.
        ledger: as in `sample`.
        over_budget: "refuse" or "drop".
        progress: called with the progress of the release.

    Raises:
        DiscreetError: if the table cannot be released.
    """

    def __init__(
        self,
        table: Any,
        request: Request,
        *,
        clients: Any = None,
        drop_client: bool = False,
        memory: int | None = None,
        folder: Path | None = None,
        ledger: PopulationLedger | None = None,
        over_budget: str = "refuse",
        progress: Progress | None = None,
    ) -> None:
        check_kind("request", request, Request, "pass Request(...)")
        check_choice("over_budget", over_budget, OVER_BUDGET)
        if progress is not None and not all(
            callable(getattr(progress, method, None)) for method in ("rows", "clients")
        ):
            raise DiscreetError(f"progress = {progress!r} has no methods rows(number) and clients(number)")
        if folder is not None:
            folder = check_path("folder", folder)
        if ledger is not None:
            request = _request_with_ledger_secret(request, ledger)
        elif request.secret is not None:
            Rounds(request.secret).refuse_if_secret_has_ledger()
        self._source = source = source_of_table(table)
        self._request = request
        self._drop_client = check_flag("drop_client", drop_client)
        self._budget = _default_memory_bytes() if memory is None else check_count("memory", memory, least=_LEAST_MEMORY)
        self._folder = folder
        self._progress = progress
        self.job: Job = request.job(source.schema, untyped=source.untyped_columns, where=source.name)
        reading = self.job.reading
        columns = reading.columns
        self._clients: pa.Array | None = None
        if clients is not None:
            self._clients = client_names_from_list_or_file(clients, columns, integers=reading.are_clients_integers)
        room = max(_LEAST_ROOM, self._budget // 16)
        # reading starts here, while compiled code is loaded below
        self._reader = RecordReader(reading)
        self._frames = source.read_prepared_frames(
            reading.prepare_rows,
            reading.columns.all_column_names,
            room=room,
            client=reading.columns.client,
            numbers=reading.columns_that_may_mix_integers_and_floats,
        )
        from discreet.tables._drawing import Kernel, LedgerSettlement

        self.kernel = Kernel(self.job)
        self._settling: LedgerSettlement | None = None
        if ledger is not None:
            self._settling = LedgerSettlement(
                self.job, ledger, request.round, over_budget=over_budget, ordered=drop_client
            )
        self._digest = InputDigest()
        self._drawn = self._without_records = self._spilled = 0
        self._started, self._begun, self._finished = time.perf_counter(), False, False
        self._table: pa.Table | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches; its metadata carry the agreement."""
        client = pa.int64() if self.job.reading.are_clients_integers else pa.large_string()
        coding = self.job.reading.coding
        names = self.job.sample_columns
        sample_type = (
            coding.arrow_type_of_samples if isinstance(coding, Coding) and names != ("report",) else pa.uint64()
        )
        kinds = (client, *(sample_type for _ in names), pa.dictionary(pa.int8(), pa.string()))
        fields = list(zip(self.job.output_columns, kinds, strict=True))
        return pa.schema(fields[1:] if self._drop_client else fields, {METADATA: self.job.agreement.text.encode()})

    @property
    def summary(self) -> Summary:
        """The numbers of rows and clients that were read, left out and drawn, after the release."""
        if not self._finished:
            raise DiscreetError("nothing is released yet; take the table() first")
        return Summary(
            agreement=self.job.agreement,
            rows=self._reader.rows,
            clients=self._drawn,
            nulls=self._reader.total_missing_and_outside_counts.nulls,
            not_numbers=self._reader.total_missing_and_outside_counts.not_numbers,
            outside=self._reader.total_missing_and_outside_counts.outside,
            without_records=self._without_records,
            spilled_bytes=self._spilled,
            seconds=time.perf_counter() - self._started,
            known=0 if self._settling is None else self._settling.known,
            over_budget=0 if self._settling is None else self._settling.over_budget,
            nameless=self._reader.nameless,
        )

    def table(self) -> pa.Table:
        """All samples: a table of the client column, `sample` (of reports `report`) and `agreement`. A second call returns the same table.

        Raises:
            DiscreetError: for rows that cannot be released, and after `batches`.
        """
        if self._table is None:
            self._table = pa.Table.from_batches(self.batches(), schema=self.schema).combine_chunks()
        return self._table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The samples, in an order independent of the data. None may leave before the last one is here.

        A round that was released on other data raises its error at the end; with a ledger, everything is charged before the first batch.

        Raises:
            DiscreetError: for rows that cannot be released, and where the samples were already taken: the table is read once.
        """
        from discreet.tables._parts import ClientParts

        self._begin_only_once()
        schema = self.schema
        seed = int.from_bytes(hashlib.blake2b(b"parts", key=self.job.key.value, digest_size=8).digest(), "little")
        with ClientParts(seed=seed, budget=self._budget, folder=self._folder, rows=self._source.rows) as parts:
            self._add_listed_clients_to_parts(parts)
            self._read_records_into_parts(parts)
            batches = (
                self._draw_sample_batches(parts) if self._settling is None else self._charge_and_release_batches(parts)
            )
            for batch in self._sort_batches_by_random_words(batches) if self._drop_client else batches:
                columns = map(cast_column, batch.columns, schema.types)
                yield pa.RecordBatch.from_arrays(list(columns), schema=schema)
            self._spilled = parts.spilled_bytes
        if self._settling is None and self._request.secret is not None:
            job, number = self.job, self._request.round
            digest = self._digest.keyed_hash(job.key)
            Rounds(self._request.secret).note_released_round(job.agreement, job.question, number, digest)
        self._finished = True

    def _begin_only_once(self) -> None:
        """Raise an error for a second run: the rows of the table are used up, and listed clients would get other samples."""
        if self._begun:
            again = (
                "a new Release without a secret is another release, which spends epsilon again"
                if self._request.secret is None
                else "a new Release of the same table under the same secret and round gives the same samples"
            )
            samples = "use the samples of that run" if self._finished else "that run did not come to its end"
            raise DiscreetError(f"this Release was run already, and it reads its table once; {samples}: {again}")
        self._begun = True

    def _add_listed_clients_to_parts(self, parts: "ClientParts") -> None:
        if self._clients is None:
            return
        reading = self.job.reading
        if pa.types.is_integer(self._clients.type) != reading.are_clients_integers:
            kind = "integers" if reading.are_clients_integers else "texts"
            raise DiscreetError(
                f"the list holds {self._clients.type} values but the clients of the table are {kind}; cast the integers to text: 7 and '7' "
                "are one client"
            )
        marks: Any = np.empty(len(self._clients), dtype=reading.coding.record_type)
        marks[:] = widened_mark_for_records(MARK_LISTED, marks)
        columns = reading.columns
        counts = (
            None
            if columns.count_or_weight_column is None
            else np.ones(len(self._clients), dtype=columns.count_or_weight_numpy_dtype)
        )
        parts.add_records(normalise_client_names(self._clients), marks, counts)

    def _read_records_into_parts(self, parts: "ClientParts") -> None:
        for frame in self._frames:
            for rows in self._reader.iterate_checked_records(frame, self._source.example_values):
                parts.add_records(*rows)
                if self._progress is not None:
                    self._progress.rows(len(rows.outcomes))
        self._reader.refuse_bad_rows_with_counts()

    def _draw_sample_batches(self, parts: "ClientParts") -> Iterator[pa.RecordBatch]:
        def draw_group(group: "ClientGroup") -> tuple[pa.RecordBatch, InputDigest]:
            has_secret = self._request.secret is not None
            draws = self.kernel.draw(group.clients, ordered=self._drop_client, digested=has_secret)
            return self._make_ordered_batch_of_group(group.names, draws, group.parts), draws.digest

        for part in self._map_groups_in_threads(parts, draw_group):
            self._digest = sum((digest for _, digest in part), self._digest)
            yield from self._join_batches_in_client_order([batch for batch, _ in part])

    def _charge_and_release_batches(self, parts: "ClientParts") -> Iterator[pa.RecordBatch]:
        assert self._settling is not None
        for part in self._settling.charge_and_release_parts(
            list(self._map_groups_in_threads(parts, self._settling.draw_unsettled_group))
        ):
            yield from self._join_batches_in_client_order(
                [self._make_ordered_batch_of_group(names, draws, parts) for names, draws, parts in part]
            )

    def _make_ordered_batch_of_group(self, names: pa.Array, draws: "Draws", parts: Any = None) -> pa.RecordBatch:
        """The records of a group: in order of part and client, or without clients and with words to sort them by."""
        if self._drop_client:
            batch = self.kernel.publish(names, draws)
            return batch.drop_columns("client").append_column("order", numbers_as_arrow_column(draws.order))
        order = arrow_column_as_polars_series(names).arg_sort().to_numpy()
        if parts is not None:
            order = order[np.argsort(parts[order], kind="stable")]
        return self.kernel.publish(take_rows_of_column(names, order), draws.reorder_rows(order))

    def _join_batches_in_client_order(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The samples of a part as one batch in order of client, even if its records took several groups."""
        if not batches:
            return
        batch = batches[0]
        if len(batches) > 1:
            table = pa.Table.from_batches(batches).unify_dictionaries()
            if "client" in table.schema.names:
                table = table.sort_by("client")
            (batch,) = table.combine_chunks().to_batches() or [batch]
        self._drawn += batch.num_rows
        if self._progress is not None:
            self._progress.clients(batch.num_rows)
        yield batch

    def _sort_batches_by_random_words(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        all_batches = list(batches)
        if all_batches:
            table = pa.Table.from_batches(all_batches)
            words = np.concatenate([arrow_column_as_numbers(batch.column("order")) for batch in all_batches])
            order = numbers_as_arrow_column(np.argsort(words, kind="stable"))
            yield from table.drop_columns("order").take(order).combine_chunks().to_batches()

    def _map_groups_in_threads(
        self, parts: "ClientParts", work: "Callable[[ClientGroup], Result]"
    ) -> "Iterator[list[Result]]":
        """The results of `work` on the groups of each part, in several threads.

        Clients that are not on the list are an error once all groups have been looked at, so that their number does not vary.
        """
        from discreet.tables._parts import unlisted_clients_error

        has_marks = self._clients is not None or self.job.reading.coding.lenient
        has_amounts = self.job.reading.columns.count_or_weight_column is not None
        clients_seen = unlisted_count = 0

        def work_on_group(read_group: "Callable[[], ClientGroup]") -> "tuple[Result | None, int, int, int]":
            group, strangers, empty = read_group(), 0, 0
            if has_marks:
                group, strangers = group.remove_marks_and_count_unlisted()
            if has_marks or has_amounts:
                empty = group.number_of_clients_without_records
            if self._clients is None:
                strangers = 0
            result = None if strangers else work(group)
            return result, group.number_of_clients_with_rows, strangers, empty

        def wait_and_add_up_results(futures: "list[Future[tuple[Result | None, int, int, int]]]") -> "list[Result]":
            nonlocal clients_seen, unlisted_count
            tallies = [future.result() for future in futures]
            clients_seen += sum(clients for _, clients, _, _ in tallies)
            unlisted_count += sum(strangers for _, _, strangers, _ in tallies)
            self._without_records += sum(empty for _, _, _, empty in tallies)
            return [result for result, *_ in tallies if result is not None]

        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            running: deque[list[Future[tuple[Result | None, int, int, int]]]] = deque()
            for groups in parts.iterate_readers_of_client_groups():
                running.append([pool.submit(work_on_group, group) for group in groups])
                if len(running) > 2 * threads:
                    yield wait_and_add_up_results(running.popleft())
            while running:
                yield wait_and_add_up_results(running.popleft())
        if unlisted_count:
            raise unlisted_clients_error(unlisted_count, clients_seen)


def sample(
    table: Any,
    *,
    clients: Any = None,
    drop_client: bool = False,
    memory: int | None = None,
    ledger: PopulationLedger | None = None,
    over_budget: str = "refuse",
    **terms: Unpack[RequestTerms],
) -> pa.Table:
    """Release one private sample for each client of a table of (client, value) rows.

    The terms are the keywords of `Request`: client, value, domain, epsilon, and so on.

    Args:
        table: a pyarrow Table or RecordBatchReader, a frame of polars or pandas, or the path of files
            (Parquet, Arrow, CSV, TSV or JSON lines).
        clients: all clients, as a list or the Path of a file; those without records draw from the reference. By default they are absent.
        drop_client: whether to return only the samples, in random order.
        memory: bytes of records in memory before they go to disk; by default a quarter of the machine's.
        ledger: a `PopulationLedger`, which counts what each client spends and answers a repeated round with the stored samples, even if
            the data changed.
        over_budget: whether clients that cannot pay stop the release ("refuse"), or are left out ("drop").
        terms: the keywords of `Request`.

    Returns:
        A table of the client column under its own name, `sample` and `agreement`; under an agreement on reports with a column `report` of
        64-bit integers in place of `sample`; on J samples drawn together with columns `sample_1` to `sample_J`.
        (`Release` also gives a `Summary`.)

    Raises:
        DiscreetError: before anything is drawn, if the table cannot be released.
    """
    request = Request(**terms)
    release = Release(
        table, request, clients=clients, drop_client=drop_client, memory=memory, ledger=ledger, over_budget=over_budget
    )
    return release.table()


def sample_file(
    path: str,
    output: str,
    request: Request,
    *,
    clients: pa.Array | Path | None = None,
    drop_client: bool = False,
    memory: int | None = None,
    folder: Path | None = None,
    output_format: str | None = None,
    agreement_file: Path | None = None,
    ledger: PopulationLedger | None = None,
    over_budget: str = "refuse",
    replace: bool = False,
    keep: Mapping[str, Path | None] | None = None,
    progress: Callable[[Source], Progress] | None = None,
) -> Summary:
    """As `sample`, from files (or '-') to a file (or '-') that appears only when complete, with its agreement beside it.

    Args:
        path: what to read.
        output: what to write.
        request: what is asked for.
        clients: all there are, or the path of their list.
        drop_client: samples alone, in random order.
        memory: bytes of records to hold before they go to disk.
        folder: where they go then.
        output_format: "parquet", "csv" or "arrow", where the ending of the output does not say it.
        agreement_file: where the agreement is written.
        ledger: what each client spends is counted in it.
        over_budget: clients that cannot pay stop the release ("refuse"), or are left out ("drop").
        replace: whether a plain file of that name may be replaced. Never replaced, by any path or link, are the input, the list of clients,
            the agreement, the state of the secret and the files in `keep`.
        keep: {what it is: where it lies}.
        progress: a function of the source that returns what hears how far the release has come.

    Returns:
        What was read, left out and written.

    Raises:
        DiscreetError: for what cannot be read, released or written.
    """
    check_kind("request", request, Request, "pass Request(...)")
    for name, file in (("path", path), ("output", output), ("agreement_file", agreement_file)):
        if file is not None or name != "agreement_file":
            check_path(name, file)
    path, output = os.fspath(path), os.fspath(output)
    if ledger is not None:
        check_kind("ledger", ledger, PopulationLedger, "open one with PopulationLedger(folder, secret)")
    if keep is not None:
        check_kind("keep", keep, Mapping, "pass {what it is: where it lies}")
    if progress is not None:
        check_callable("progress", progress, "pass a function of the source")
    kind = choose_output_format(output, output_format)
    if output != STANDARD:
        if path != STANDARD and is_among_inputs(path, output):
            raise DiscreetError(f"output {output} would replace what {path} holds, or lie among it; name another file")
        other_files = {"list of clients": clients if isinstance(clients, Path) else None, "agreement": agreement_file}
        if request.secret is not None:
            other_files["record of the secret's rounds"] = request.secret.state
        if ledger is not None and ledger.folder.resolve() in Path(output).resolve().parents:
            raise DiscreetError(f"output {output} would lie in the ledger; name another file")
        if agreement_file is not None:
            other_files["weights of the agreement"] = weights_path(agreement_file)
        for files in (other_files, keep or {}):  # one after the other: both may use a name
            refuse_same_file(output, files)
        warning = (
            ""
            if request.secret is not None
            else "; without a secret this is another release, which spends epsilon again"
        )
        check_output_path(output, replace=replace, fix=f"{REPLACE_HINT}{warning}")

    with open_source(path, folder) as source:
        release = Release(
            source,
            request,
            clients=clients,
            drop_client=drop_client,
            memory=memory,
            folder=folder,
            ledger=ledger,
            over_budget=over_budget,
            progress=None if progress is None else progress(source),
        )
        agreement = release.job.agreement
        if agreement_file is not None:
            agreement.check_file(agreement_file)
        with open_table_writer(output, release.schema, kind, replace=replace) as writer:
            batches = release.batches()
            for batch in list(batches) if output == STANDARD else batches:  # standard output cannot be taken back
                writer.write(batch)
            if agreement_file is not None:
                agreement.write(agreement_file)
        return release.summary


def _request_with_ledger_secret(request: Request, ledger: PopulationLedger) -> Request:
    """The request under the secret of the ledger, the only one under which the ledger knows its clients."""
    if not isinstance(ledger, PopulationLedger):
        raise DiscreetError(
            f"ledger = {ledger!r} is not a PopulationLedger; open one with PopulationLedger(folder, secret)"
        )
    if request.secret not in (None, ledger.secret):
        raise DiscreetError("secret is not the one that the ledger was created with; leave it out")
    return request.with_secret(ledger.secret)


def _default_memory_bytes() -> int:
    """A quarter of this machine's memory, where the system says how much there is."""
    if not hasattr(os, "sysconf"):
        return _USUAL_MEMORY
    return max(_LEAST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
