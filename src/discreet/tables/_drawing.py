"""`Kernel`, one sample for each client of an Arrow batch, and `LedgerSettlement`, a whole release under a population's ledger.

Every engine ends in `Kernel`: lists of outcomes (and counts) for each client in, a sample for each client out. Its randomness is a keyed
function of client and data (`discreet.release._randomness`), so a second call gives the same samples. A `DrawingMethod` is the way in which
a mechanism draws: `SampleDrawing`, `ReportDrawing`, `SurveyDrawing`, `OwnDrawing` or `JointDrawing`. The first three have compiled code for
much work (`discreet.release._client_draws_compiled`), and the same in numpy for little.

With a ledger, `LedgerSettlement` draws everything, settles it in one transaction, and only then releases anything. The ledger knows clients
by a keyed digest of their names. It is computed as the words of a client without records, under the ledger's own key. The order of
samples published without their clients comes likewise from the round and the name alone: an order made from the data would change if a
round is repeated on changed data.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet._base import accept_renamed_keywords, placeholders_until_used
from discreet._base.kernels import read_only_view, should_use_compiled_code
from discreet.domain import Coding, Interval
from discreet.errors import DiscreetError, check_kind
from discreet.families import Simplex
from discreet.mechanisms import AnyFamily, OptimalSampler, Sampler
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
    choose_client_draw_functions,
    fractions_of_upper_53_bits,
    integer_laws_and_messages,
    make_draw_plan_of_lattice,
    pseudo_random_word_rows,
    store_sort_words_and_add_digest,
)
from discreet.tables._columns import normalise_client_names
from discreet.tables._parts import SECONDS_A_ROW, clients_and_records_from_arrow, refuse_repeated_clients
from discreet.tables._request import Job, joint_sample_columns
from discreet.tables._sources import (
    agreement_id_column,
    check_batch,
    numbers_as_arrow_column,
    outcomes_as_samples,
    require_unique_column_names,
    take_rows_of_column,
)

with placeholders_until_used(globals()):
    from discreet.ledger import ClientDigests, PopulationLedger, Round, Settlement
    from discreet.mechanisms import JointSampler, OwnSampler, ReportSampler, outcomes_from_uniform_integers
    from discreet.survey import SurveySampler

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

    def reorder_rows(self, rows: NDArray[np.int64]) -> "Draws":
        """The same draws in another order of clients."""
        order = self.order[rows] if self.order.size else self.order
        within = self.within[rows] if self.within.size else self.within
        return Draws(self.outcomes[rows], order, within, self.digest)


class DrawnArrays(NamedTuple):
    """The arrays that a draw fills: as in `Draws`, the sums of the digest, and the place and reason of a bad record. Empty: not asked for."""

    outcomes: NDArray[np.int64]
    order: NDArray[np.uint64]
    within: NDArray[np.float64]
    digest: NDArray[np.uint64]
    problem: NDArray[np.int64]

    def note_reason_of_refused_row(self, row: RefusedRow) -> int:
        """Note why a row is refused; returns its number."""
        self.problem[:] = row.place, row.why
        return row.row


# draws for clients first <= row < last; returns the first bad row, or -1
RowDrawer = Callable[[int, int, DrawnArrays], int]


class DrawingMethod(ABC):
    """The way in which a mechanism draws for clients.

    Attributes:
        size: the number of outcomes.
        fills_within: whether a draw needs `Draws.within`.
        batch_refusal: why `Kernel` does not draw for a batch, or None.
    """

    size: int
    fills_within = True
    batch_refusal: str | None = None
    _coding: Coding

    @abstractmethod
    def make_row_drawer(self, clients: ClientColumns) -> RowDrawer:
        """The function that draws for some of the clients; threads may call it on different rows."""

    def make_released_batch(self, names: pa.Array, draws: Draws, agreement_id: str) -> pa.RecordBatch:
        """What was drawn for clients, as records: a sample for each, unless a method says otherwise."""
        samples = outcomes_as_samples(self._coding, draws.outcomes, draws.within)
        columns = [names, samples, agreement_id_column(agreement_id, len(names))]
        return pa.RecordBatch.from_arrays(columns, names=["client", "sample", "agreement"])

    def draw(self, clients: ClientColumns, *, ordered: bool = False, digested: bool = True, threads: int = 1) -> Draws:
        """One outcome for each client. `ordered`: also the words to sort by. `digested`: also the digest of the input."""
        number, draw_rows = len(clients), self.make_row_drawer(clients)
        outcomes = np.empty(number, dtype=np.int64)
        order = np.empty(number if ordered else 0, dtype=np.uint64)
        within = np.empty(number if self.fills_within else 0)

        def draw_row_range(first: int, last: int) -> InputDigest:
            sums = np.zeros(DIGEST_WORDS if digested else 0, dtype=np.uint64)
            arrays = DrawnArrays(outcomes, order, within, sums, np.zeros(2, dtype=np.int64))
            row = draw_rows(first, last, arrays)
            if row >= 0:
                self._refuse_row(row, int(arrays.problem[1]))
            return InputDigest.from_sums(sums)

        parts = max(1, min(threads, number // _WORTH_SHARING))
        if parts == 1:
            return Draws(outcomes, order, within, draw_row_range(0, number))
        edges = [number * part // parts for part in range(parts + 1)]
        with ThreadPoolExecutor(parts) as pool:
            return Draws(outcomes, order, within, sum(pool.map(draw_row_range, edges[:-1], edges[1:]), InputDigest()))

    def _refuse_row(self, row: int, problem: int) -> None:
        """Raise the error for a row, without its client or outcome, which are private."""
        fixes = {
            REFUSED_OUTSIDE: f"outcomes are 0 to {self.size - 1}",
            REFUSED_TOO_MANY: "a report chooses among at most 2^62 records; round the counts to multiples of a larger number",
        }
        fix = fixes.get(problem, "counts are finite and at least 0")
        raise DiscreetError(f"row {row} of the batch: {_PROBLEMS[problem]}; {fix}")


class SampleDrawing(DrawingMethod):
    """Samples by the integer box of a mechanism."""

    def __init__(self, sampler: Sampler[AnyFamily], coding: Coding, key: RunKey) -> None:
        self.size, self.fills_within = sampler.carrier.size, coding.has_cells
        self._plan, self._coding, self._key = make_draw_plan_of_lattice(sampler.lattice, sampler.mixing), coding, key

    def make_row_drawer(self, clients: ClientColumns) -> RowDrawer:
        code = choose_client_draw_functions(compiled=_should_draw_with_compiled_code(clients, _SECONDS_A_CLIENT))
        return _make_drawer_by_plan(code, self._plan, clients, code.initial_state_of_run(self._key))


class _DrawingOfReports(DrawingMethod):
    """Reports, in halves of 32 bits, as `Draws` holds them."""

    _sampler: Any
    _key: RunKey

    @abstractmethod
    def _make_compiled_drawer(self, code: Any, clients: ClientColumns, state: Any) -> RowDrawer:
        """The function that draws with compiled code."""

    def make_row_drawer(self, clients: ClientColumns) -> RowDrawer:
        if not _should_draw_with_compiled_code(clients, _SECONDS_A_REPORT):
            return lambda first, last, arrays: self.draw_reports_with_numpy(clients, first, last, arrays)
        code = choose_client_draw_functions(compiled=True)
        return self._make_compiled_drawer(code, clients, code.initial_state_of_run(self._key))

    def draw_reports_with_numpy(self, clients: ClientColumns, first: int, last: int, arrays: DrawnArrays) -> int:
        """A `RowDrawer` without compiled code."""
        for start in range(first, last, _REPORTS_TOGETHER):
            rows = slice(start, min(start + _REPORTS_TOGETHER, last))
            try:
                laws, messages = _laws_and_messages_for_reports(self.size, clients, rows.start, rows.stop)
            except RefusedRow as refusal:
                return arrays.note_reason_of_refused_row(refusal)
            _store_reports_as_32_bit_halves(self._sampler.release_messages(self._key, messages, laws), rows, arrays)
            if arrays.order.size or arrays.digest.size:
                store_sort_words_and_add_digest(
                    pseudo_random_word_rows(self._key, messages), rows, arrays.order, arrays.digest
                )
        return -1

    def make_released_batch(self, names: pa.Array, draws: Draws, agreement_id: str) -> pa.RecordBatch:
        upper = (draws.within * 2.0**32).astype(np.uint64)
        reports = (upper << np.uint64(32)) | draws.outcomes.astype(np.uint64)
        columns = [names, numbers_as_arrow_column(reports), agreement_id_column(agreement_id, len(names))]
        return pa.RecordBatch.from_arrays(columns, names=["client", "report", "agreement"])


class ReportDrawing(_DrawingOfReports):
    """Reports that name blocks of outcomes."""

    def __init__(self, sampler: ReportSampler, key: RunKey) -> None:
        self.size, self._sampler, self._key = sampler.family.size, sampler, key
        self._plan = sampler.draw_plan  # made here, before threads ask for it

    def _make_compiled_drawer(self, code: Any, clients: ClientColumns, state: Any) -> RowDrawer:
        return _make_drawer_by_plan(code, self._plan, clients, state)


class SurveyDrawing(_DrawingOfReports):
    """Reports on a survey, whose words and rows compiled code finds."""

    def __init__(self, sampler: SurveySampler, key: RunKey) -> None:
        self.size, self._sampler, self._key = sampler.survey.columns.size, sampler, key

    def _make_compiled_drawer(self, code: Any, clients: ClientColumns, state: Any) -> RowDrawer:
        context = np.frombuffer(self._sampler.context, dtype="<u8").astype(np.uint64)

        def draw_rows(first: int, last: int, arrays: DrawnArrays) -> int:
            number = len(clients)
            words, rows = np.empty((number, WORDS), dtype=np.int64), np.empty(number, dtype=np.int64)
            states = np.empty(number, dtype=np.int8)
            bad_row = code.draw_survey_rows(
                self.size,
                context,
                clients,
                state,
                first,
                last,
                words,
                rows,
                states,
                arrays.order,
                arrays.digest,
                arrays.problem,
            )
            if bad_row >= 0:
                return int(bad_row)
            span = slice(first, last)
            reports, unsure = self._sampler.release_words(words[span], rows[span], states[span])
            for row in np.flatnonzero(unsure).tolist():
                laws, messages = integer_laws_and_messages(self.size, clients, first + row, first + row + 1)
                reports[row] = self._sampler.release_messages(self._key, messages, laws)[0]
            _store_reports_as_32_bit_halves(reports, span, arrays)
            return -1

        return draw_rows


class _DrawingByLaw(DrawingMethod):
    """Outcomes that a client's whole law decides on.

    The digest covers what was drawn. So if a law of somebody's own answers differently for the same input, or another machine rounds
    differently, and a sample changes, a second release of the round is an error, as of other data.
    """

    _key: RunKey

    @abstractmethod
    def _outcomes_of_uniform_integers(
        self, rows: NDArray[np.float64], has_law: NDArray[np.bool_], uniform: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The outcome that each uniform integer falls on, for laws (n, size). `has_law`: whether a client has one."""

    def make_row_drawer(self, clients: ClientColumns) -> RowDrawer:
        return lambda first, last, arrays: self._draw_rows(clients, first, last, arrays)

    def _draw_rows(self, clients: ClientColumns, first: int, last: int, arrays: DrawnArrays) -> int:
        step = max(1, min(_REPORTS_TOGETHER, _LAW_ENTRIES // self.size))
        for start in range(first, last, step):
            span = slice(start, min(start + step, last))
            try:
                laws, messages = integer_laws_and_messages(self.size, clients, span.start, span.stop)
            except RefusedRow as refusal:
                return arrays.note_reason_of_refused_row(refusal)
            words, rows = pseudo_random_word_rows(self._key, messages), np.zeros((len(laws), self.size))
            for row, (outcomes, numbers) in zip(rows, laws, strict=True):
                row[outcomes.astype(np.int64)] = numbers.astype(np.float64)
            totals = rows.sum(axis=1)
            has_law = totals > 0.0
            rows[has_law] /= totals[has_law, None]
            uniform = (words[:, 0] >> np.uint64(64 - BITS)).astype(np.int64)
            arrays.outcomes[span] = self._outcomes_of_uniform_integers(rows, has_law, uniform)
            store_sort_words_and_add_digest(words, span, arrays.order, arrays.digest[:0])
            if arrays.digest.size:
                arrays.digest[:] += _sum_digests_of_clients_and_draws(self._key, words, arrays.outcomes[span])
            if arrays.within.size:
                arrays.within[span] = fractions_of_upper_53_bits(words[:, 2])
        return -1


class OwnDrawing(_DrawingByLaw):
    """Samples by the integer weights of a mechanism of somebody's own, whose law is asked once a client."""

    def __init__(self, sampler: OwnSampler, coding: Coding, key: RunKey) -> None:
        self.size, self.fills_within = sampler.carrier.size, coding.has_cells
        self.batch_refusal = (
            f"the kernel does not draw by {sampler.name!r}, a mechanism of somebody's own: asked again, its law could answer "
            "differently, and two samples from one random integer may tell more than epsilon allows; use sample or spark.sample"
        )
        self._sampler, self._coding, self._key, self._asking = sampler, coding, key, Lock()

    def _outcomes_of_uniform_integers(
        self, rows: NDArray[np.float64], has_law: NDArray[np.bool_], uniform: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        weights = np.tile(self._sampler.reference_weights, (len(rows), 1))
        with self._asking:  # one thread at a time: it is somebody's own code
            weights[has_law] = self._sampler.weights(rows[has_law])
        return outcomes_from_uniform_integers(weights, uniform)


class JointDrawing(_DrawingByLaw):
    """Several samples of each client that are drawn together: a multiset, and a seed of 53 bits for the order of its members."""

    def __init__(self, sampler: JointSampler, coding: Coding, key: RunKey) -> None:
        self.size = sampler.family.size
        self.batch_refusal = (
            f"the kernel does not draw {sampler.samples} samples of each client together: nothing compares its draws, and a machine "
            "that rounds differently could give two of them for one random integer; use sample or spark.sample"
        )
        self._sampler, self._coding, self._key = sampler, coding, key
        _ = sampler.lattice  # made here, before threads ask for it

    def _outcomes_of_uniform_integers(
        self, rows: NDArray[np.float64], has_law: NDArray[np.bool_], uniform: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        outcomes = np.empty(len(rows), dtype=np.int64)
        for mask, laws in ((has_law, rows[has_law]), (~has_law, None)):
            if mask.any():
                outcomes[mask] = self._sampler.numbers_of_integers(laws, uniform[mask])
        return outcomes

    def make_released_batch(self, names: pa.Array, draws: Draws, agreement_id: str) -> pa.RecordBatch:
        """Records (client, sample_1, ..., agreement). The seed also gives the place of each member within its cell."""
        number = self._sampler.samples
        words = _expand_seeds_by_splitmix64((draws.within * 2.0**53).astype(np.uint64), 2 * number)
        members = self._sampler.multisets.members_in_key_order(draws.outcomes, words[:, :number])
        within = fractions_of_upper_53_bits(words[:, number:])
        samples = [outcomes_as_samples(self._coding, members[:, member], within[:, member]) for member in range(number)]
        columns = [names, *samples, agreement_id_column(agreement_id, len(names))]
        return pa.RecordBatch.from_arrays(columns, names=["client", *joint_sample_columns(number), "agreement"])


def choose_drawing_method(job: Job) -> DrawingMethod:
    """The way in which the mechanism of a job draws."""
    coding, key = job.reading.coding, job.key
    match job.sampler:
        case SurveySampler():
            return SurveyDrawing(job.sampler, key)
        case ReportSampler():
            return ReportDrawing(job.sampler, key)
    assert isinstance(coding, Coding)  # only a survey has rows
    match job.sampler:
        case OwnSampler():
            return OwnDrawing(job.sampler, coding, key)
        case JointSampler():
            return JointDrawing(job.sampler, coding, key)
    return SampleDrawing(job.sampler, coding, key)


def _make_drawer_by_plan(code: Any, plan: Any, clients: ClientColumns, state: Any) -> RowDrawer:
    """The function that draws by the plan of a lattice or of blocks."""
    return lambda first, last, arrays: int(code.draw_outcomes_of_clients(plan, clients, state, first, last, *arrays))


def _store_reports_as_32_bit_halves(reports: NDArray[np.uint64], rows: slice, arrays: DrawnArrays) -> None:
    """Store the two halves of each report: the lower 32 bits as the outcome, the upper ones as `within`."""
    arrays.outcomes[rows] = (reports & np.uint64(0xFFFFFFFF)).astype(np.int64)
    arrays.within[rows] = (reports >> np.uint64(32)).astype(np.float64) * 2.0**-32


def _should_draw_with_compiled_code(clients: ClientColumns, seconds_a_client: float) -> bool:
    """Whether compiled code draws for the clients rather than numpy, with the same results."""
    seconds_a_row = _SECONDS_AN_AMOUNT if clients.counts.size or clients.weights.size else SECONDS_A_ROW
    return should_use_compiled_code(seconds_a_client * len(clients) + seconds_a_row * clients.outcomes.size)


def _sum_digests_of_clients_and_draws(
    key: RunKey, words: NDArray[np.uint64], outcomes: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The digest of clients, all they hold and what was drawn for them: a sum, so that the order of clients does not matter."""
    rows = np.column_stack([words.astype("<u8"), outcomes.astype("<u8")])
    digests = (
        hashlib.blake2b(row.tobytes(), key=key.value, person=_DRAWN_PERSON, digest_size=8 * DIGEST_WORDS).digest()
        for row in rows
    )
    numbers = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, DIGEST_WORDS)
    return np.asarray(numbers.sum(axis=0, dtype=np.uint64))


def _laws_and_messages_for_reports(size: int, clients: ClientColumns, first: int, last: int) -> Any:
    """The laws and messages of some clients; the first of them that cannot report is refused, for whichever reason."""
    try:
        laws, messages = integer_laws_and_messages(size, clients, first, last)
    except RefusedRow as refusal:
        if refusal.row > first:
            _refuse_too_many_records(integer_laws_and_messages(size, clients, first, refusal.row)[0], first)
        raise
    _refuse_too_many_records(laws, first)
    return laws, messages


def _refuse_too_many_records(laws: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]], first: int) -> None:
    """Refuse the first client with more records than a word of 62 bits can choose among."""
    for row, (_, numbers) in enumerate(laws):
        if int(numbers.sum(dtype=np.uint64)) > TOTAL:
            raise RefusedRow(first + row, 0, REFUSED_TOO_MANY)


def _expand_seeds_by_splitmix64(seeds: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
    """So many words (n, number) of each seed (n,), by SplitMix64 [Steele, Lea, Flood, OOPSLA 2014]. They are no secret."""
    steps = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = seeds.astype(np.uint64)[:, None] + steps[None, :]  # modulo 2^64
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))


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
        self._method, self._columns, self._agreement_id = (
            choose_drawing_method(job),
            job.reading.columns,
            job.agreement.id,
        )
        self._outcome_type = pa.from_numpy_dtype(job.reading.coding.record_type)
        self.draw = self._method.draw

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._method.batch_refusal is not None:
            raise DiscreetError(self._method.batch_refusal)
        if not isinstance(batch, pa.RecordBatch):  # not shown: it may contain clients' data
            raise DiscreetError(
                f"the batch is a {type(batch).__name__}; pass a pyarrow.RecordBatch (a Table has to_batches())"
            )
        names = require_unique_column_names(batch.schema, "the batch")
        for name in ("client", "outcomes"):
            if name not in names:
                raise DiscreetError(f"the batch has no column {name!r}; it has {', '.join(names)}")
        batch = check_batch(batch, "the batch", [name for name in ("client", "outcomes", "counts") if name in names])
        counts = batch.column("counts") if "counts" in names else None
        is_weighted = self._columns.weight is not None
        client_names = batch.column("client")
        if pa.types.is_floating(client_names.type):
            client_names = normalise_client_names(client_names)
        clients = clients_and_records_from_arrow(
            client_names, batch.column("outcomes"), counts, weighted=is_weighted, outcome_type=self._outcome_type
        )
        if clients.weights.size and self._columns.count is not None:
            raise DiscreetError(
                "column 'counts' holds lists of numbers that are not integers; cast them, since the count was asked for (weight= is "
                "another question, whose samples spend an epsilon of their own)"
            )
        refuse_repeated_clients(clients)
        draws = self.draw(clients, digested=False, threads=os.cpu_count() or 1)
        return self.publish(client_names, draws)

    @accept_renamed_keywords(drawn="draws")
    def publish(self, names: pa.Array, draws: Draws) -> pa.RecordBatch:
        """The draws of clients as a record batch: names, samples and the agreement's id."""
        return self._method.make_released_batch(names, draws, self._agreement_id)

    def __reduce__(self) -> Any:
        raise TypeError("a Kernel holds a key and is not pickled; make one from its job where it is needed")


@dataclass(frozen=True)
class UnsettledGroup:
    """A group of clients: their draws, and their digests in the ledger."""

    clients: pa.Array
    draws: Draws
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
        self._naming = _make_keyed_client_name_hasher(ledger.client_digest_key())
        self._ordering = _make_keyed_client_name_hasher(ledger.client_order_key(self._round)) if ordered else None
        self.known = self.over_budget = 0

    def draw_unsettled_group(self, group: "ClientGroup") -> UnsettledGroup:
        """Draw for a group of clients, without releasing anything yet."""
        draws, empty = self._kernel.draw(group.clients, digested=False), _same_clients_without_records(group.clients)
        if self._ordering is not None:
            draws = replace(draws, order=self._ordering.draw(empty, ordered=True, digested=False).order)
        words = self._naming.draw(empty, ordered=True, digested=False)
        return UnsettledGroup(
            group.names, draws, ClientDigests(words.order, (words.within * 2.0**53).astype(np.uint64)), group.parts
        )

    def charge_and_release_parts(
        self, parts: Sequence[Sequence[UnsettledGroup]]
    ) -> Iterator[list[tuple[pa.Array, Draws, Any]]]:
        """Charge all groups of all parts in one durable transaction; then return the released samples, part by part."""
        groups = [group for part in parts for group in part]
        if not groups:
            return
        settlement = self._ledger.charge_clients_once(
            self._round,
            ClientDigests(
                *(np.concatenate([getattr(group.names, word) for group in groups]) for word in ("first", "second"))
            ),
            np.concatenate([group.draws.outcomes for group in groups]),
            np.concatenate([group.draws.within for group in groups]),
            over_budget=self._over_budget,
        )
        self.known, self.over_budget = settlement.known_clients, settlement.over_budget
        start = 0
        for part in parts:
            group_draws = []
            for group in part:
                group_draws.append(
                    _released_clients_and_draws(group, settlement, slice(start, start + len(group.clients)))
                )
                start += len(group.clients)
            yield group_draws


def _released_clients_and_draws(
    group: UnsettledGroup, settlement: Settlement, span: slice
) -> tuple[pa.Array, Draws, Any]:
    """The released clients of a group, with their samples and their parts."""
    mask = settlement.may_leave[span]
    draws = replace(
        group.draws,
        outcomes=settlement.outcomes[span][mask],
        order=group.draws.order[mask] if group.draws.order.size else group.draws.order,
        within=settlement.within[span][mask] if settlement.within.size else settlement.within,
    )
    return (
        take_rows_of_column(group.clients, np.flatnonzero(mask)),
        draws,
        None if group.parts is None else group.parts[mask],
    )


def _make_keyed_client_name_hasher(key: RunKey) -> DrawingMethod:
    """A drawing method that hashes names under a key: its words, for clients without records, depend on their names alone."""
    cells = Interval(0.0, 1.0, cells=2)  # any domain with cells, whose draw also gives a place
    return SampleDrawing(OptimalSampler(Simplex(cells), epsilon=1.0), Coding(cells), key)


def _same_clients_without_records(clients: ClientColumns) -> ClientColumns:
    """The same clients without any records."""
    empty = {name: getattr(clients, name)[:0] for name in clients._fields[clients._fields.index("outcomes") + 1 :]}
    empty["outcomes"] = read_only_view(np.empty(0, dtype=np.uint32))
    ends = np.zeros_like(clients.ends)
    ends.setflags(write=False)
    return ClientColumns(**{**clients._asdict(), "ends": ends, **empty})
