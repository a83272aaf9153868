"""`Kernel`, one sample for each client of an Arrow batch, and `LedgerSettlement`, a whole release under a population's ledger.

Every engine ends in `Kernel`: lists of outcomes (and counts) for each client in, a sample for each client out. It draws the core's
distribution, integer for integer (`discreet.release._client_draws_compiled`, and for small work `discreet.release._client_draws`). Its randomness is a keyed
function of client and data (`discreet.release._randomness`), so a second call gives the same samples.

With a ledger, `LedgerSettlement` draws everything, settles it in one transaction, and only then releases anything. The ledger knows clients
by a keyed digest of their names. The kernel computes it as the words of a client without records, under the ledger's own key. The order of
samples published without their clients comes likewise from the round and the name alone: an order made from the data would change if a
round is repeated on changed data.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base.kernels import compiled_for, read_only_view
from discreet.domain import Interval
from discreet.errors import DiscreetError, check_kind
from discreet.families import Simplex
from discreet.ledger import ClientDigests, PopulationLedger, Round, Settlement
from discreet.mechanisms import JointSampler, OptimalSampler, OwnSampler, ReportSampler, draw_from_weights
from discreet.release import (
    BITS,
    DIGEST_WORDS,
    REFUSED_INFINITE,
    REFUSED_NAN,
    REFUSED_NEGATIVE,
    REFUSED_OUTSIDE,
    REFUSED_OVERFLOW,
    REFUSED_TOO_MANY,
    TOTAL,
    WORDS,
    ClientColumns,
    InputDigest,
    RefusedRow,
    RunKey,
    draw_word_rows,
    laws_and_messages,
    note_order_and_digest,
    plan_of,
)
from discreet.survey import SurveySampler
from discreet.tables._arrow import check_batch, column_numbers, is_list, names_of, take_rows
from discreet.tables._clients import plain_clients
from discreet.tables._coding import Coding
from discreet.tables._outputs import published_batch, published_joint, published_reports
from discreet.tables._parts import SECONDS_A_ROW, client_arrays, counts_and_weights, grouping_for
from discreet.tables._request import Job
from discreet.tables._row_reading import RowReading

if TYPE_CHECKING:
    from discreet.tables._parts import ClientGroup

_REPORTS_TOGETHER = 1 << 16
_LAW_ENTRIES = 1 << 22  # of laws that are held at a time, where all of a law is needed
_DRAWN_PERSON = b"discreet drawn"
_WORTH_SHARING = 8192  # clients for each thread
_SECONDS_AN_AMOUNT, _SECONDS_A_CLIENT, _SECONDS_A_REPORT = 2e-6, 1e-5, 3e-5  # roughly, without compiled code
_PROBLEMS = {
    REFUSED_OUTSIDE: "an outcome is not in the domain",
    REFUSED_NAN: "a count is not a number",
    REFUSED_NEGATIVE: "a count is negative",
    REFUSED_INFINITE: "a count is infinite",
    REFUSED_TOO_MANY: "its counts, without their common divisor, add up to more than 2^62",
    REFUSED_OVERFLOW: "its counts add up to more than 2^63 - 1, or its weights past the largest float, or 2^31 records",
}


@dataclass(frozen=True)
class Draws:
    """The result of a draw: for each client an outcome, a word to sort by and a place in [0, 1) within a cell; and a digest.

    Of samples drawn together, `outcomes` holds the number of the multiset, and `within` 53 bits that choose the order of its members. Of a
    report, `outcomes` holds the lower 32 bits and `within` the upper ones over 2^32, which no double rounds: so a ledger keeps samples
    and reports alike. `digest` is that of the clients and all they hold: those of several draws add up (`discreet.release._randomness`).
    """

    outcomes: NDArray[np.int64]
    order: NDArray[np.uint64]
    within: NDArray[np.float64]
    digest: InputDigest

    def at_rows(self, rows: NDArray[np.int64]) -> "Draws":
        """The same draws in another order of clients."""
        order = self.order[rows] if self.order.size else self.order
        within = self.within[rows] if self.within.size else self.within
        return Draws(self.outcomes[rows], order, within, self.digest)


class Kernel:
    """RecordBatch(client, outcomes[, counts]) -> RecordBatch(client, sample, agreement), or (client, report, agreement).

    `client` holds integers or texts, each client once (checked, at no cost where they are in order); `outcomes` lists of
    outcome numbers, in any order and with repetitions; `counts`, if present, lists of how often each of them counts (lists
    of integers) or how much (any numbers, and whatever the job calls a weight). An empty list draws from the reference.

    Args:
        job: a request fitted to a table, `Request(...).job(schema)`.

    Raises:
        DiscreetError: for what is not a job. A call raises it for a mechanism of somebody's own, and for samples drawn together.
    """

    def __init__(self, job: Job) -> None:
        check_kind("job", job, Job, "pass Request(...).job(schema)")
        self.coding = job.reading.coding
        self.agreement_id = job.agreement.id
        self._reports: ReportSampler | SurveySampler | None = None
        self._outcome_type = pa.from_numpy_dtype(job.outcome_type)
        self._plan: Any = None
        self._own: OwnSampler | None = None
        self._joint: JointSampler | None = None
        self._asking = Lock()
        match job.sampler:
            case SurveySampler():
                self._reports, self._size = job.sampler, job.sampler.survey.columns.size
            case ReportSampler():
                self._reports, self._plan, self._size = job.sampler, job.sampler.plan, job.sampler.family.size
            case OwnSampler():
                self._own, self._size = job.sampler, job.sampler.carrier.size
            case JointSampler():
                self._joint, self._size = job.sampler, job.sampler.family.size
                self._plan = job.sampler.lattice  # made here, before threads ask for it
            case sampler:
                self._plan, self._size = plan_of(sampler.lattice, sampler.mixing), sampler.carrier.size
        self._columns = job.reading.columns
        self._key: RunKey = job.key

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._own is not None:
            raise DiscreetError(
                f"the kernel does not draw by {self._own.name!r}, a mechanism of somebody's own: asked again, its law could answer "
                "differently, and two samples from one random integer may tell more than epsilon allows; use sample or spark.sample"
            )
        if self._joint is not None:
            raise DiscreetError(
                f"the kernel does not draw {self._joint.samples} samples of each client together: nothing compares its draws, and a machine "
                "that rounds differently could give two of them for one random integer; use sample or spark.sample"
            )
        if not isinstance(batch, pa.RecordBatch):  # not shown: it may contain clients' data
            raise DiscreetError(
                f"the batch is a {type(batch).__name__}; pass a pyarrow.RecordBatch (a Table has to_batches())"
            )
        names = names_of(batch.schema, "the batch")
        for name in ("client", "outcomes"):
            if name not in names:
                raise DiscreetError(f"the batch has no column {name!r}; it has {', '.join(names)}")
        batch = check_batch(batch, "the batch", [name for name in ("client", "outcomes", "counts") if name in names])
        counts = batch.column("counts") if "counts" in names else None
        weighted = self._columns.weight is not None
        called = batch.column("client")
        if pa.types.is_floating(called.type):
            called = plain_clients(called)
        clients = clients_of(
            called, batch.column("outcomes"), counts, weighted=weighted, outcome_type=self._outcome_type
        )
        if clients.weights.size and self._columns.count is not None:
            raise DiscreetError(
                "column 'counts' holds lists of numbers that are not integers; cast them, since the count was asked for (weight= is "
                "another question, whose samples spend an epsilon of their own)"
            )
        refuse_repeated_clients(clients)
        drawn = self.draw(clients, digested=False, threads=os.cpu_count() or 1)
        return self.publish(called, drawn)

    def publish(self, clients: pa.Array, drawn: Draws) -> pa.RecordBatch:
        """What was drawn for clients, as records."""
        if self._reports is not None:
            return published_reports(clients, _joined_bits(drawn), self.agreement_id)
        assert isinstance(self.coding, Coding)
        if self._joint is not None:
            seeds = (drawn.within * 2.0**53).astype(np.uint64)
            return published_joint(clients, self.coding, self._joint, drawn.outcomes, seeds, self.agreement_id)
        return published_batch(clients, self.coding, drawn.outcomes, drawn.within, self.agreement_id)

    def draw(self, clients: ClientColumns, *, ordered: bool = False, digested: bool = True, threads: int = 1) -> Draws:
        """One outcome for each client. `ordered`: also the words to sort by. `digested`: also the digest of the input."""
        number = len(clients)
        compiled = self._own is None and self._joint is None and _is_worth_compiling(clients, self._reports is not None)
        code = import_module(
            "discreet.release._client_draws_compiled" if compiled else "discreet.release._client_draws"
        )
        draw: Any = code.draw if compiled or self._reports is None else _draw_reports
        plan: Any = self._plan if compiled or self._reports is None else self._reports
        if self._own is not None:
            draw, plan, threads = partial(_draw_by_law, partial(_own_numbers, self._asking, self._own)), self._size, 1
        if self._joint is not None:
            draw, plan = partial(_draw_by_law, partial(_joint_numbers, self._joint)), self._size
        state = code.draw_state(self._key)
        if compiled and isinstance(self._reports, SurveySampler):
            draw, plan, state = _draw_survey, self._reports, (self._key, state)
        outcomes = np.empty(number, dtype=np.int64)
        order = np.empty(number if ordered else 0, dtype=np.uint64)
        placed = self._reports is not None or self._joint is not None or self.coding.has_cells
        within = np.empty(number if placed else 0)

        def rows(first: int, last: int) -> tuple[int, Any, InputDigest]:
            problem, sums = np.zeros(2, dtype=np.int64), np.zeros(DIGEST_WORDS if digested else 0, dtype=np.uint64)
            bad = draw(plan, clients, state, first, last, outcomes, order, within, sums, problem)
            return bad, problem, InputDigest.of(sums)

        parts = max(1, min(threads, number // _WORTH_SHARING))
        if parts == 1:
            found = [rows(0, number)]
        else:
            edges = [number * part // parts for part in range(parts + 1)]
            with ThreadPoolExecutor(parts) as pool:
                found = list(pool.map(rows, edges[:-1], edges[1:]))
        for bad, problem, _ in found:
            if bad >= 0:
                self._refuse(bad, int(problem[1]))
        return Draws(outcomes, order, within, sum((digest for _, _, digest in found), InputDigest()))

    def _refuse(self, row: int, problem: int) -> None:
        """Raise the error for a row, without its client or outcome, which are private."""
        fixes = {
            REFUSED_OUTSIDE: f"outcomes are 0 to {self._size - 1}",
            REFUSED_TOO_MANY: "a report chooses among at most 2^62 records; round the counts to multiples of a larger number",
        }
        fix = fixes.get(problem, "counts are finite and at least 0")
        raise DiscreetError(f"row {row} of the batch: {_PROBLEMS[problem]}; {fix}")

    def __reduce__(self) -> Any:
        raise TypeError("a Kernel holds a key and is not pickled; make one from its job where it is needed")


def _draw_survey(
    sampler: SurveySampler,
    clients: ClientColumns,
    keys: tuple[RunKey, NDArray[np.uint64]],
    first: int,
    last: int,
    low: NDArray[np.int64],
    order: NDArray[np.uint64],
    high: NDArray[np.float64],
    digest: NDArray[np.uint64],
    problem: NDArray[np.int64],
) -> int:
    """As the functions that draw samples: reports on a survey, whose words and rows compiled code finds."""
    code, size = import_module("discreet.release._client_draws_compiled"), sampler.survey.columns.size
    context = np.frombuffer(sampler.context, dtype="<u8").astype(np.uint64)
    number = len(clients)
    words, rows = np.empty((number, WORDS), dtype=np.int64), np.empty(number, dtype=np.int64)
    states = np.empty(number, dtype=np.int8)
    bad = code.draw_survey_rows(
        size, context, clients, keys[1], first, last, words, rows, states, order, digest, problem
    )
    if bad >= 0:
        return int(bad)
    reports, again = sampler.release_words(words[first:last], rows[first:last], states[first:last])
    for row in np.flatnonzero(again).tolist():
        laws, messages = laws_and_messages(size, clients, first + row, first + row + 1)
        reports[row] = sampler.release_messages(keys[0], messages, laws)[0]
    _write_halves(reports, low[first:last], high[first:last])
    return -1


def _own_numbers(
    asking: Lock, sampler: OwnSampler, rows: NDArray[np.float64], some: NDArray[np.bool_], uniform: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The outcomes that integers fall on, by the integer weights of a mechanism of somebody's own, whose law is asked once a client."""
    weights = np.tile(sampler.reference_weights, (len(rows), 1))
    with asking:  # one thread at a time: it is somebody's own code
        weights[some] = sampler.weights(rows[some])
    return draw_from_weights(weights, uniform)


def _joint_numbers(
    sampler: JointSampler, rows: NDArray[np.float64], some: NDArray[np.bool_], uniform: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The multisets that integers fall on."""
    found = np.empty(len(rows), dtype=np.int64)
    for here, laws in ((some, rows[some]), (~some, None)):
        if here.any():
            found[here] = sampler.numbers_of_integers(laws, uniform[here])
    return found


def _draw_by_law(
    numbers_of: Callable[[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]], NDArray[np.int64]],
    size: int,
    clients: ClientColumns,
    key: RunKey,
    first: int,
    last: int,
    drawn: NDArray[np.int64],
    order: NDArray[np.uint64],
    within: NDArray[np.float64],
    digest: NDArray[np.uint64],
    problem: NDArray[np.int64],
) -> int:
    """As the functions that draw samples: `numbers_of` says what integers fall on, for laws (n, size) and whether each client has one.

    The digest covers what was drawn. So if a law of somebody's own answers differently for the same input, or another machine rounds
    differently, and a sample changes, a second release of the round is an error, as of other data.
    """
    step = max(1, min(_REPORTS_TOGETHER, _LAW_ENTRIES // size))
    for start in range(first, last, step):
        stop = min(start + step, last)
        try:
            laws, messages = laws_and_messages(size, clients, start, stop)
        except RefusedRow as bad:
            problem[0], problem[1] = bad.place, bad.why
            return bad.row
        words, rows = draw_word_rows(key, messages), np.zeros((stop - start, size))
        for row, (outcomes, numbers) in zip(rows, laws, strict=True):
            row[outcomes.astype(np.int64)] = numbers.astype(np.float64)
        totals = rows.sum(axis=1)
        some = totals > 0.0
        rows[some] /= totals[some, None]
        uniform = (words[:, 0] >> np.uint64(64 - BITS)).astype(np.int64)
        drawn[start:stop] = numbers_of(rows, some, uniform)
        note_order_and_digest(words, slice(start, stop), order, digest[:0])
        if digest.size:
            digest += _digest_drawn(key, words, drawn[start:stop])
        if within.size:
            within[start:stop] = (words[:, 2] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return -1


def _digest_drawn(key: RunKey, words: NDArray[np.uint64], drawn: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The digest of clients, all they hold and what was drawn for them: a sum, so that the order of clients does not matter."""
    rows = np.column_stack([words.astype("<u8"), drawn.astype("<u8")])
    each = (
        hashlib.blake2b(row.tobytes(), key=key.value, person=_DRAWN_PERSON, digest_size=8 * DIGEST_WORDS).digest()
        for row in rows
    )
    found = np.frombuffer(b"".join(each), dtype="<u8").reshape(-1, DIGEST_WORDS)
    return np.asarray(found.sum(axis=0, dtype=np.uint64))


def _write_halves(reports: NDArray[np.uint64], low: NDArray[np.int64], high: NDArray[np.float64]) -> None:
    """Reports as `Draws` holds them."""
    low[:] = (reports & np.uint64(0xFFFFFFFF)).astype(np.int64)
    high[:] = (reports >> np.uint64(32)).astype(np.float64) * 2.0**-32


def _draw_reports(
    sampler: ReportSampler | SurveySampler,
    clients: ClientColumns,
    key: RunKey,
    first: int,
    last: int,
    low: NDArray[np.int64],
    order: NDArray[np.uint64],
    high: NDArray[np.float64],
    digest: NDArray[np.uint64],
    problem: NDArray[np.int64],
) -> int:
    """As the functions that draw samples: reports of some clients, in halves of 32 bits."""
    size = sampler.survey.columns.size if isinstance(sampler, SurveySampler) else sampler.family.size
    for start in range(first, last, _REPORTS_TOGETHER):
        stop = min(start + _REPORTS_TOGETHER, last)
        try:
            laws, messages = _reportable_laws(size, clients, start, stop)
        except RefusedRow as bad:
            problem[0], problem[1] = bad.place, bad.why
            return bad.row
        reports = sampler.release_messages(key, messages, laws)
        _write_halves(reports, low[start:stop], high[start:stop])
        if order.size or digest.size:
            note_order_and_digest(draw_word_rows(key, messages), slice(start, stop), order, digest)
    return -1


def _reportable_laws(size: int, clients: ClientColumns, first: int, last: int) -> Any:
    """The laws and messages of some clients; the first of them that cannot report is refused, for whichever reason."""
    try:
        laws, messages = laws_and_messages(size, clients, first, last)
    except RefusedRow as bad:
        if bad.row > first:
            _refuse_too_many(laws_and_messages(size, clients, first, bad.row)[0], first)
        raise
    _refuse_too_many(laws, first)
    return laws, messages


def _refuse_too_many(laws: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]], first: int) -> None:
    """Refuse the first client with more records than a word of 62 bits can choose among."""
    for row, (_, numbers) in enumerate(laws):
        if int(numbers.sum(dtype=np.uint64)) > TOTAL:
            raise RefusedRow(first + row, 0, REFUSED_TOO_MANY)


def _joined_bits(drawn: Draws) -> NDArray[np.uint64]:
    """The reports of which a draw holds two halves."""
    upper = (drawn.within * 2.0**32).astype(np.uint64)
    return (upper << np.uint64(32)) | drawn.outcomes.astype(np.uint64)


def _is_worth_compiling(clients: ClientColumns, reports: bool) -> bool:
    """Whether `release._sparse` draws for the clients rather than `release._plain`, with the same results."""
    each = _SECONDS_AN_AMOUNT if clients.counts.size or clients.weights.size else SECONDS_A_ROW
    seconds = (_SECONDS_A_REPORT if reports else _SECONDS_A_CLIENT) * len(clients) + each * clients.outcomes.size
    return compiled_for(seconds)


def clients_of(
    clients: pa.Array,
    outcomes: pa.Array,
    counts: pa.Array | None,
    *,
    weighted: bool = False,
    outcome_type: pa.DataType | None = None,
) -> ClientColumns:
    """Arrow columns as the arrays that compiled code reads, without copying if the layout allows.

    Lists of integers are counts unless they are `weighted`; lists of other numbers are weights.
    """
    for name, column in (("client", clients), ("outcomes", outcomes), ("counts", counts)):
        if column is not None and column.null_count:
            raise DiscreetError(f"column {name!r} holds {column.null_count} nulls; leave those rows out")
    integers, text_ends, text = client_arrays(plain_clients(clients))
    ends, numbers = _lists(
        outcomes, pa.uint32() if outcome_type is None else outcome_type, "outcomes", "outcome numbers"
    )
    amounts: NDArray[Any] = np.empty(0)
    if counts is not None:
        whole = not weighted and _holds_integers(counts.type)
        kind, what = (pa.int64(), "whole numbers below 2^63") if whole else (pa.float64(), "numbers")
        count_ends, amounts = _lists(counts, kind, "counts", what)
        if not np.array_equal(count_ends, ends):
            raise DiscreetError("columns 'outcomes' and 'counts' hold lists of different lengths")
    return ClientColumns(*map(read_only_view, (integers, text_ends, text, ends, numbers, *counts_and_weights(amounts))))


def _holds_integers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(getattr(kind, "value_type", kind)))


def refuse_repeated_clients(clients: ClientColumns) -> None:
    """Raise an error for a repeated client, which would release two samples and spend epsilon twice. Order makes this cheap."""
    seed, code = np.uint64(secrets.randbits(64)), grouping_for(len(clients))
    if clients.integers.size:
        if not code.integers_increase(clients.integers):
            numbers = code.numbered_integers(clients.integers, seed, len(clients))[1]
            _refuse_repeats(numbers)
    elif not code.texts_increase(clients.text_ends, clients.text):
        numbers = code.numbered_texts(clients.text_ends, clients.text, seed, len(clients))[1]
        _refuse_repeats(numbers)


def _refuse_repeats(numbers: NDArray[np.uint32]) -> None:
    repeated = np.flatnonzero(numbers != np.arange(len(numbers)))
    if repeated.size:
        again = int(repeated[0])
        raise DiscreetError(
            f"the client of row {int(numbers[again])} comes twice in the batch, again in row {again}: it would spend epsilon twice; join "
            "its lists into one row"
        )


def _lists(column: pa.Array, inner: pa.DataType, name: str, what: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """(ends from 0 on, values) of a column of lists."""
    refusal = DiscreetError(f"column {name!r} holds {column.type} values, not lists of {what}")
    if not is_list(column.type):
        raise refusal
    try:
        lists = column.cast(pa.large_list(inner))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise refusal from None
    ends = column_numbers(lists.offsets)
    values = lists.values.slice(ends[0], ends[-1] - ends[0])
    if values.null_count:
        raise DiscreetError(f"column {name!r} holds lists with nulls; leave those records out")
    return ends - ends[0], column_numbers(values)


_CELLS = Interval(0.0, 1.0, cells=2)  # any domain with cells, whose draw also gives a place


@dataclass(frozen=True)
class UnsettledGroup:
    """A group of clients: their draws, and their digests in the ledger."""

    clients: pa.Array
    drawn: Draws
    names: ClientDigests
    parts: NDArray[np.uint16] | None


class LedgerSettlement:
    """A release under a ledger; `known` and `over_budget` count clients once it is settled."""

    def __init__(
        self, job: Job, ledger: PopulationLedger, round_number: int, *, over_budget: str, ordered: bool
    ) -> None:
        self._ledger, self._over_budget = ledger, over_budget
        self._round = Round(
            agreement=job.agreement.id,
            question=job.question,
            number=round_number,
            epsilon=job.agreement.epsilon,
        )
        self._kernel = Kernel(job)
        self._naming = _word_kernel(job, ledger.names_key())
        self._ordering = _word_kernel(job, ledger.order_key(self._round)) if ordered else None
        self.known = self.over_budget = 0

    def draw_group(self, group: "ClientGroup") -> UnsettledGroup:
        """Draw for a group of clients, without releasing anything yet."""
        drawn, empty = self._kernel.draw(group.clients, digested=False), _clients_without_records(group.clients)
        if self._ordering is not None:
            drawn = replace(drawn, order=self._ordering.draw(empty, ordered=True, digested=False).order)
        words = self._naming.draw(empty, ordered=True, digested=False)
        return UnsettledGroup(
            group.names, drawn, ClientDigests(words.order, (words.within * 2.0**53).astype(np.uint64)), group.parts
        )

    def settle_parts(self, parts: Sequence[Sequence[UnsettledGroup]]) -> Iterator[list[tuple[pa.Array, Draws, Any]]]:
        """Charge all groups of all parts in one durable transaction; then return the released samples, part by part."""
        groups = [group for part in parts for group in part]
        if not groups:
            return
        found = self._ledger.settle(
            self._round,
            ClientDigests(
                *(np.concatenate([getattr(group.names, word) for group in groups]) for word in ("first", "second"))
            ),
            np.concatenate([group.drawn.outcomes for group in groups]),
            np.concatenate([group.drawn.within for group in groups]),
            over_budget=self._over_budget,
        )
        self.known, self.over_budget = found.known, found.over_budget
        start = 0
        for part in parts:
            kept = []
            for group in part:
                kept.append(_allowed_samples(group, found, slice(start, start + len(group.clients))))
                start += len(group.clients)
            yield kept


def _allowed_samples(group: UnsettledGroup, found: Settlement, here: slice) -> tuple[pa.Array, Draws, Any]:
    """The released clients of a group, with their samples and their parts."""
    kept = found.kept[here]
    drawn = replace(
        group.drawn,
        outcomes=found.outcomes[here][kept],
        order=group.drawn.order[kept] if group.drawn.order.size else group.drawn.order,
        within=found.within[here][kept] if found.within.size else found.within,
    )
    return take_rows(group.clients, np.flatnonzero(kept)), drawn, None if group.parts is None else group.parts[kept]


def _word_kernel(job: Job, key: RunKey) -> Kernel:
    own = job.reading.parts[0] if isinstance(job.reading, RowReading) else job.reading
    reading = replace(own, coding=Coding(_CELLS))
    return Kernel(replace(job, key=key, reading=reading, sampler=OptimalSampler(Simplex(_CELLS), epsilon=1.0)))


def _clients_without_records(clients: ClientColumns) -> ClientColumns:
    """The same clients without any records."""
    held = {name: getattr(clients, name)[:0] for name in clients._fields[clients._fields.index("outcomes") + 1 :]}
    held["outcomes"] = read_only_view(np.empty(0, dtype=np.uint32))
    ends = np.zeros_like(clients.ends)
    ends.setflags(write=False)
    return ClientColumns(**{**clients._asdict(), "ends": ends, **held})
