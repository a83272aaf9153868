"""Samples of requests: their reading, with the outcome of every sample, and `StoreWriter`, which writes them together.

**Reading.** Fields, types, number and outcomes are checked before anything is taken. JSON is read strictly: in UTF-8, each field once, no
unknown field, no NaN. Arrow streams pass the same checks as files from others (`tables/_sources/_arrow.py`), and each column must have its
stated type.

Samples become outcome numbers as `discreet estimate` reads them, but without any conversion: a text is a label, a whole number is a number,
and a point is in its cell; true is not 1, and "1" is neither. Anything else has no outcome. Messages give the place of what is wrong, never
the value.

A report is a whole number. JSON holds its digits as a text, since many readers of JSON round numbers past 2^53; Arrow holds it as an integer.

**Writing** is a group commit, and requests are answered once their samples are on disk. One thread writes. While it waits for the disk,
further samples arrive and share the next transaction. Many simultaneous clients therefore cost as many transactions as the disk can make, not
one each. The queue is bounded; beyond that a request is rejected before it is taken.

Tokens are looked up right before samples are written, so every process rejects a revoked token at once. After the answers have left, at the
latest after `SETTLE_SECONDS`, the store overwrites its earlier versions.
"""

import asyncio
import io
import itertools
import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.client import MOST_BATCH, MOST_NAME
from discreet.collect._counting import NAME_PATTERN, NAME_RULE, Arrival, Verdict, reports_as_signed_integers
from discreet.collect._requests import bad_request_problem, unavailable_problem, unprocessable_problem
from discreet.collect._store import Store, today_in_utc
from discreet.domain import CellDomain, Coding, Labels, Numbers, json_hook_refusing_repeated_fields
from discreet.errors import DiscreetError, StoreError
from discreet.mechanisms import Reports, ReportSampler
from discreet.survey import SurveySampler
from discreet.tables import (
    ArrowStream,
    check_batch,
    column_without_dictionaries,
    is_text_type,
    require_unique_column_names,
)

Integers = NDArray[np.int64]

_LARGEST_WHOLE = 2**63
_NONE = -1
# no report: as a block it would name all of 64 outcomes, and surveys that have it are not collected
_MOST_REPORT = 2**64 - 1
_DIGITS = re.compile("0|[1-9][0-9]{0,19}")


class OutcomeReader:
    """The outcomes of an agreement, and the valid samples.

    Args:
        coding: of the agreement's samples.
    """

    def __init__(self, coding: Coding) -> None:
        self._domain = coding.domain
        self._texts = isinstance(coding.domain, Labels) and isinstance(coding.domain.labels[0], str)
        self.size = coding.size

    @property
    def allowed_samples_text(self) -> str:
        """The valid samples in words."""
        if isinstance(self._domain, Labels):
            return f"one of the agreement's {self.size:,} labels, {'a text' if self._texts else 'a whole number'}"
        if isinstance(self._domain, Numbers):
            return f"a whole number from 0 to {self.size - 1}"
        edges = np.asarray(self._domain.edges)
        return f"a number from {edges[0]:.17g} to {edges[-1]:.17g}, in one of the agreement's cells"

    @property
    def allowed_outcome_numbers_text(self) -> str:
        """The valid outcome numbers in words."""
        return f"the number of an outcome, from 0 to {self.size - 1}"

    def stored_numbers_from_json(self, samples: Sequence[Any]) -> Integers:
        """The outcome of every sample of a JSON document, -1 for what is none."""
        if isinstance(self._domain, CellDomain):
            return self._domain.find_cells(np.array([_number_or_nan(sample) for sample in samples], dtype=np.float64))
        kind = str if self._texts else int
        return self._domain.find_numbers([sample if type(sample) is kind else None for sample in samples])

    def stored_numbers_from_column(self, column: pa.Array) -> Integers:
        """The outcome of every sample of a checked column without nulls, whose type fits.

        Words of a dictionary are looked up once, not unpacked.
        """
        if pa.types.is_dictionary(column.type):
            words = self.stored_numbers_from_json(column.dictionary.cast(pa.large_string()).to_pylist())
            return np.asarray(words[column.indices.to_numpy(zero_copy_only=False)])
        if isinstance(self._domain, Labels):
            return self.stored_numbers_from_json(column.to_pylist())
        if isinstance(self._domain, CellDomain):
            return self._domain.find_cells(column.to_numpy(zero_copy_only=False).astype(np.float64))
        return self.stored_numbers_from_outcome_numbers(column)

    def stored_numbers_from_outcome_numbers(self, column: pa.Array) -> Integers:
        """The numbers in a column of integers without nulls, -1 for what is no outcome's."""
        return Numbers(self.size).find_numbers(column.to_numpy(zero_copy_only=False))

    def accepts_column_type(self, kind: pa.DataType) -> bool:
        """Whether a column of that type can contain samples."""
        if self._texts:
            return is_text_column_type(kind)
        numeric = pa.types.is_floating(kind) and isinstance(self._domain, CellDomain)
        return bool(pa.types.is_integer(kind) or numeric)


class ReportReader:
    """The reports of an agreement, and what a report has to be.

    Args:
        sampler: what releases them.
    """

    def __init__(self, sampler: ReportSampler | SurveySampler) -> None:
        if isinstance(sampler, ReportSampler):
            self._are_reports, layout = sampler.blocks.are_valid_reports, sampler.blocks.report_description
        else:
            self._are_reports, layout = sampler.are_reports, f"a whole number up to {sampler.largest}"
        self.allowed_samples_text = f"a report of the agreement: {layout}, its digits as a text (in Arrow an integer)"
        self.allowed_outcome_numbers_text = self.allowed_samples_text

    def stored_numbers_from_json(self, samples: Sequence[Any]) -> Integers:
        """Every report of a JSON document as stores keep it, -1 for what is none."""
        is_digits = [type(sample) is str and _DIGITS.fullmatch(sample) is not None for sample in samples]
        numbers = [
            int(sample) if is_number else _MOST_REPORT for sample, is_number in zip(samples, is_digits, strict=True)
        ]
        return self._stored_numbers_of_reports(
            np.array([min(number, _MOST_REPORT) for number in numbers], dtype=np.uint64)
        )

    def stored_numbers_from_column(self, column: pa.Array) -> Integers:
        """Every report of a column of integers without nulls, as stores keep it, -1 for what is none."""
        values = column.to_numpy(zero_copy_only=False)
        return self._stored_numbers_of_reports(np.where(values < 0, np.uint64(_MOST_REPORT), values.astype(np.uint64)))

    stored_numbers_from_outcome_numbers = stored_numbers_from_column

    def accepts_column_type(self, kind: pa.DataType) -> bool:
        """Whether a column of that type can hold reports."""
        return bool(pa.types.is_integer(kind))

    def _stored_numbers_of_reports(self, reports: Reports) -> Integers:
        return np.where(self._are_reports(reports), reports_as_signed_integers(reports), _NONE)


def is_text_column_type(kind: pa.DataType) -> bool:
    """Whether a column of that type contains texts, directly or by a dictionary."""
    return is_text_type(kind) or bool(pa.types.is_dictionary(kind) and is_text_type(kind.value_type))


def _number_or_nan(sample: Any) -> float:
    """A number as a float; NaN for anything else."""
    if type(sample) is float or (type(sample) is int and -_LARGEST_WHOLE <= sample < _LARGEST_WHOLE):
        return float(sample)
    return math.nan


_ABOUT = {"agreement", "round"}
_ROW = {"client", "key", "sample"}
_MOST_ROUND = 10**18
_ID_DIGITS = 64
_MOST_TOLD = 300  # characters of an Arrow error to show
_MOST_UNPACKED = 1 << 24  # bytes of a stream's columns


@dataclass(frozen=True)
class SampleRequest:
    """The samples of a request, under one agreement in one round. `alone`: one sample, not a list of one.

    `samples` are JSON values, or a list of Arrow columns. `are_numbers`: the columns contain outcome numbers.
    """

    agreement: str
    round: int
    clients: Sequence[str]
    keys: Sequence[str]
    samples: Sequence[Any]
    alone: bool = False
    columns: bool = False
    are_numbers: bool = False

    def outcome_numbers(self, reader: OutcomeReader | ReportReader) -> NDArray[np.int64]:
        """The outcome of every sample, or every report; one that is none refuses the whole request."""
        if self.columns:
            parts = [self._outcome_numbers_of_column(reader, column) for column in self.samples]
            numbers = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        else:
            numbers = reader.stored_numbers_from_json(self.samples)
        is_wrong = numbers == _NONE
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            allowed_text = reader.allowed_outcome_numbers_text if self.are_numbers else reader.allowed_samples_text
            raise unprocessable_problem(f"{self.describe_field(row, 'sample')} is not {allowed_text}")
        return numbers

    def describe_field(self, number: int, field: str) -> str:
        """The name of a row's field in messages."""
        if self.alone:
            return field
        return f"row {number} of column {field!r}" if self.columns else f"samples[{number}].{field}"

    def _outcome_numbers_of_column(self, reader: OutcomeReader | ReportReader, column: pa.Array) -> NDArray[np.int64]:
        if self.are_numbers:
            return reader.stored_numbers_from_outcome_numbers(column)
        if not reader.accepts_column_type(column.type):
            raise unprocessable_problem(
                f"column 'sample' has a type that does not fit: a sample is {reader.allowed_samples_text}"
            )
        return reader.stored_numbers_from_column(column)


def parse_json_samples(body: bytes) -> SampleRequest:
    """The samples in a JSON document: one, or a list."""
    document = _parse_strict_json(body)
    if not isinstance(document, dict):
        raise bad_request_problem("the body is not a JSON object")
    alone = "samples" not in document
    _refuse_missing_or_unknown_fields(document, _ABOUT | (_ROW if alone else {"samples"}), "the body")
    agreement, round_number = _require_agreement_and_round(document["agreement"], document["round"])
    rows = [document] if alone else document["samples"]
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_BATCH:
        raise unprocessable_problem(f"samples is not a list of 1 to {MOST_BATCH:,}; send more in several requests")
    if not alone:
        for number, row in enumerate(rows):
            if type(row) is not dict:
                raise bad_request_problem(f"samples[{number}] is not a JSON object")
            if row.keys() != _ROW:
                _refuse_missing_or_unknown_fields(row, _ROW, f"samples[{number}]")
    request = SampleRequest(
        agreement,
        round_number,
        [row["client"] for row in rows],
        [row["key"] for row in rows],
        [row["sample"] for row in rows],
        alone=alone,
    )
    _refuse_invalid_clients_and_keys(request)
    return request


def parse_arrow_samples(body: bytes) -> SampleRequest:
    """The samples in an Arrow stream, whose metadata state agreement and round."""
    clients: list[str] = []
    keys: list[str] = []
    samples = []
    try:
        stream = ArrowStream("the body", io.BytesIO(body))
        _refuse_wrong_columns(stream.schema)
        metadata = stream.schema.metadata or {}
        agreement, round_number = _agreement_and_round_in_metadata(metadata)
        are_numbers = _samples_are_outcome_numbers(metadata, stream.schema)
        for batch in _iterate_batches_within_limit(stream):
            clients += _column_texts(batch, "client")
            keys += _column_texts(batch, "key")
            samples.append(batch.column("sample"))
    except DiscreetError as error:
        raise bad_request_problem(str(error)[:_MOST_TOLD]) from None
    if not clients:
        raise unprocessable_problem(f"the Arrow stream does not hold 1 to {MOST_BATCH:,} rows")
    request = SampleRequest(agreement, round_number, clients, keys, samples, columns=True, are_numbers=are_numbers)
    _refuse_invalid_clients_and_keys(request)
    return request


def _refuse_wrong_columns(schema: pa.Schema) -> None:
    if set(require_unique_column_names(schema, "the body")) != _ROW:
        raise bad_request_problem("the columns of the Arrow stream are not client, key and sample")
    for name in ("client", "key"):
        if not is_text_column_type(schema.field(name).type):
            raise unprocessable_problem(f"column {name!r} does not hold texts")
    kind = schema.field("sample").type
    if not (is_text_column_type(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise unprocessable_problem("column 'sample' holds neither texts nor numbers")


def _iterate_batches_within_limit(stream: ArrowStream) -> Iterator[pa.RecordBatch]:
    """The batches of a stream, fully checked and limited in total size: unpacked, they may be larger than the request."""
    rows = size = 0
    for batch in stream:
        rows += batch.num_rows
        if rows > MOST_BATCH:
            raise unprocessable_problem(
                f"the Arrow stream does not hold 1 to {MOST_BATCH:,} rows; send more in several"
            )
        if not batch.num_rows:
            continue
        checked_batch = check_batch(batch, "the body", sorted(_ROW))
        size += checked_batch.nbytes
        if size > _MOST_UNPACKED:
            raise unprocessable_problem(
                f"the Arrow stream unpacks to more than {_MOST_UNPACKED:,} bytes; send less in one"
            )
        for name, column in zip(checked_batch.schema.names, checked_batch.columns, strict=True):
            words = column.dictionary if pa.types.is_dictionary(column.type) else column
            if column.null_count or words.null_count:
                raise unprocessable_problem(f"column {name!r} holds nulls")
        yield checked_batch


def _column_texts(batch: pa.RecordBatch, name: str) -> list[str]:
    """The texts of a column, each at most as long as a name: a dictionary can repeat a word any number of times."""
    column = batch.column(name)
    words = column.dictionary if pa.types.is_dictionary(column.type) else column
    lengths = pc.binary_length(words.cast(pa.large_string()))
    if (pc.max(lengths).as_py() or 0) > MOST_NAME:
        raise unprocessable_problem(f"column {name!r} holds a text that is not {NAME_RULE}")
    return [str(text) for text in column_without_dictionaries(column).to_pylist()]


def _agreement_and_round_in_metadata(metadata: dict[bytes, bytes]) -> tuple[str, int]:
    """Agreement and round from the metadata of a schema."""
    try:
        agreement, number = metadata[b"agreement"].decode("ascii"), metadata[b"round"].decode("ascii")
    except (KeyError, UnicodeDecodeError):
        raise bad_request_problem("the schema's metadata do not hold agreement and round, as texts") from None
    if not (number.isdigit() and len(number) < 19 and (number == "0" or number[0] != "0")):
        raise bad_request_problem("round in the schema's metadata is not a whole number")
    return _require_agreement_and_round(agreement, int(number))


def _samples_are_outcome_numbers(metadata: dict[bytes, bytes], schema: pa.Schema) -> bool:
    """Whether the metadata of the schema state that samples are outcome numbers."""
    kind = metadata.get(b"samples")
    if kind is None:
        return False
    if kind != b"numbers":
        raise bad_request_problem('samples in the schema\'s metadata is not "numbers"')
    if not pa.types.is_integer(schema.field("sample").type):
        raise unprocessable_problem(
            "column 'sample' does not hold whole numbers, as samples in the schema's metadata says"
        )
    return True


def _require_agreement_and_round(agreement: Any, round_number: Any) -> tuple[str, int]:
    if not (isinstance(agreement, str) and len(agreement) == _ID_DIGITS and NAME_PATTERN.fullmatch(agreement)):
        raise unprocessable_problem(f"agreement is not the id of an agreement, {_ID_DIGITS} hexadecimal digits")
    if type(round_number) is not int or not 1 <= round_number <= _MOST_ROUND:
        raise unprocessable_problem("round is not a whole number of at least 1")
    return agreement, round_number


def _refuse_invalid_clients_and_keys(request: SampleRequest) -> None:
    for column, names in (("client", request.clients), ("key", request.keys)):
        for number, name in enumerate(names):
            if type(name) is not str or NAME_PATTERN.fullmatch(name) is None:
                raise unprocessable_problem(f"{request.describe_field(number, column)} is not a text of {NAME_RULE}")


def _refuse_missing_or_unknown_fields(document: dict[str, Any], field_names: set[str], label: str) -> None:
    if document.keys() != field_names:
        raise bad_request_problem(f"{label} does not have exactly the fields {', '.join(sorted(field_names))}")


def _parse_strict_json(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=json_hook_refusing_repeated_fields("the body"),
            parse_constant=_refuse_json_nan_or_infinity,
        )
    except (ValueError, RecursionError):  # also for an integer of thousands of digits
        raise bad_request_problem("the body is not JSON in UTF-8, with each field once and without NaN") from None


def _refuse_json_nan_or_infinity(_: str) -> NoReturn:
    raise ValueError


MOST_WAITING = 100_000  # samples
MOST_JOINT_SAMPLES = 50_000  # in one transaction, unless a single request has more
SETTLE_SECONDS = 0.25


class UnknownToken(Exception):
    """A client's token is not in the store, or was revoked. `place`: the first such sample of the request."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


@dataclass(eq=False)
class _WaitingRequest:
    """The samples of one request, and where its answer goes. `tokens`: digests that must be enrolled, one for each sample; or none."""

    agreement: str
    round: int
    arrivals: Sequence[Arrival]
    tokens: Sequence[bytes]
    answer: asyncio.Future[list[Verdict]] = field(repr=False)


class StoreWriter:
    """A writer to a store, for the coroutines of one event loop.

    Args:
        store: the store.
        wrote: called with the results of each transaction's samples.
        failed: called with an unexpected error.
    """

    def __init__(
        self, store: Store, *, wrote: Callable[[list[Verdict]], None], failed: Callable[[BaseException], None]
    ) -> None:
        self._store, self._wrote, self._failed = store, wrote, failed
        self._queue: deque[_WaitingRequest] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def waiting_sample_count(self) -> int:
        """The number of samples that wait or are being written."""
        return self._waiting

    async def write_samples(
        self, agreement: str, round_number: int, arrivals: Sequence[Arrival], tokens: Sequence[bytes] = ()
    ) -> list[Verdict]:
        """What became of samples, once that is durable. `tokens`: digests that must be enrolled, else `UnknownToken` is raised."""
        answer: asyncio.Future[list[Verdict]] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed:
                raise unavailable_problem("the collector is stopping")
            if self._waiting + len(arrivals) > MOST_WAITING:
                raise unavailable_problem("more samples wait than can be written")
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_queue_until_closed, name="writer", daemon=True)
                self._thread.start()
            self._queue.append(_WaitingRequest(agreement, round_number, arrivals, tokens, answer))
            self._waiting += len(arrivals)
            self._changed.notify()
        try:
            return await answer
        except StoreError:
            raise unavailable_problem("the store cannot be written now") from None

    def close(self) -> None:
        """Write what was taken, and take no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _write_queue_until_closed(self) -> None:
        is_erased, last_erasure = True, time.monotonic()
        while True:
            with self._changed:
                while not self._queue and not self._closed and is_erased:
                    self._changed.wait()
                if not self._queue and not self._closed:
                    self._changed.wait(SETTLE_SECONDS)
                done = self._closed and not self._queue
                requests = self._take_next_requests()
            groups: dict[tuple[str, int], list[_WaitingRequest]] = {}
            for request in requests:
                groups.setdefault((request.agreement, request.round), []).append(request)
            for (agreement, round_number), group in groups.items():
                self._write_requests(agreement, round_number, group)
            with self._changed:
                self._waiting -= sum(len(request.arrivals) for request in requests)
                idle = not self._queue
            if idle or time.monotonic() - last_erasure > SETTLE_SECONDS:
                is_erased, last_erasure = self._erase_overwritten_data(), time.monotonic()
            if done:
                return

    def _take_next_requests(self) -> list[_WaitingRequest]:
        """The requests to write together next."""
        requests: list[_WaitingRequest] = []
        sample_count = 0
        while self._queue and (not requests or sample_count + len(self._queue[0].arrivals) <= MOST_JOINT_SAMPLES):
            requests.append(self._queue.popleft())
            sample_count += len(requests[-1].arrivals)
        return requests

    def _erase_overwritten_data(self) -> bool:
        try:
            return self._store.erase_overwritten_data()
        except StoreError:
            return True  # opening the store before the next write does it
        except Exception as error:
            self._failed(error)
            return True

    def _write_requests(self, agreement: str, round_number: int, group: list[_WaitingRequest]) -> None:
        answers: dict[int, Any] = {}
        try:
            answers |= self._requests_with_unknown_tokens(group)
            enrolled_requests = [request for request in group if id(request) not in answers]
            if enrolled_requests:
                arrivals = [arrival for request in enrolled_requests for arrival in request.arrivals]
                verdicts = self._store.count_arrivals(agreement, round_number, arrivals, today_in_utc())
                ends = itertools.accumulate((len(request.arrivals) for request in enrolled_requests), initial=0)
                spans = itertools.pairwise(ends)
                answers |= {
                    id(request): verdicts[first:last]
                    for request, (first, last) in zip(enrolled_requests, spans, strict=True)
                }
                self._wrote(verdicts)
        except StoreError as error:
            answers = {id(request): error for request in group}
        except Exception as error:  # any error must be answered, and others served
            self._failed(error)
            answers = {id(request): StoreError("not written") for request in group}
        _call_soon_on_loop(
            group[0].answer.get_loop(), lambda: _set_request_answers(group, [answers[id(request)] for request in group])
        )

    def _requests_with_unknown_tokens(self, group: list[_WaitingRequest]) -> dict[int, UnknownToken]:
        """The requests with a token that is not enrolled, and the place of its first sample."""
        tokens = sorted({token for request in group for token in request.tokens})
        if not tokens:
            return {}
        enrolled_tokens = self._store.unrevoked_client_tokens_among(tokens)
        memberships = {id(request): [token in enrolled_tokens for token in request.tokens] for request in group}
        return {
            request_id: UnknownToken(flags.index(False)) for request_id, flags in memberships.items() if not all(flags)
        }


def _set_request_answers(group: list[_WaitingRequest], answers: list[Any]) -> None:
    for request, answer in zip(group, answers, strict=True):
        if request.answer.done():
            continue
        if isinstance(answer, Exception):
            request.answer.set_exception(answer)
        else:
            request.answer.set_result(answer)


def _call_soon_on_loop(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)
