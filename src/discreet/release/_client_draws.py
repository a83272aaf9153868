"""Clients as columns, the common plan of their draws, and the draws in numpy and the standard library.

The draws have the same words, outcomes, digest and errors as those of `_client_draws_compiled` in numba. For a few thousand clients they
finish before compiled code would have been loaded. BLAKE2b is `hashlib`'s, laws in whole numbers are those of `discreet.release._randomness`,
slopes those of `discreet.projection`; integers are Python's. Plans, columns and the codes of invalid input are plain values for both.
"""

import hashlib
import math
import operator
import struct
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.projection import (
    NARROW as NOT_LONG,
    NEGLIGIBLE,
    Affine,
    laws_times_slopes,
    solve_slopes_and_lifts_of_padded_lists,
    solve_slopes_and_lifts_over_uniform,
)
from discreet.release import _randomness as keyed
from discreet.release._lattice import TOTAL, Integers, Lattice, are_row_sums_at_most
from discreet.release._randomness import BITS, RunKey

LOWER, UPPER, SIZE, BEFORE = 0, 1, 2, 3  # columns of `ReferencePlan.outcome_table`
FLOOR, CEILING = 4, 5  # columns of `ReferencePlan.bounds`
ROW = 8  # columns of both: one cache line
# reasons to reject a client
REFUSED_OUTSIDE, REFUSED_NAN, REFUSED_NEGATIVE, REFUSED_INFINITE, REFUSED_OVERFLOW, REFUSED_TOO_MANY = range(1, 7)
SINGLE_BLOCKS, MASKED_BLOCKS, RANKED_BLOCKS, AFFINE_BLOCKS = 0, 1, 2, 3  # kinds of blocks of a `ReportPlan`
ROOM_BITS = 31  # bits: sums of room are kept in two halves
LONGEST = (1 << 31) - 1  # records of one client: with more, sums could overflow unnoticed


class UniformPlan(NamedTuple):
    """The common part of all draws over a uniform reference, as plain numbers for compiled code."""

    size: int
    floor: float
    ceiling: float
    lower: int
    upper: int
    projecting: bool
    slope: float
    lift: float


class ReferencePlan(NamedTuple):
    """The common part of all draws over any other reference: a table of outcomes, and the running sums that are searched.

    `outcome_table` has L, U, S and the sum of S before it for each outcome. `bounds`, the same memory read as floats, has its floor and
    its ceiling beside them, so that one look-up fetches them all. `edges` are sums of L, `portions` of S (`discreet.release._lattice`).
    `room` are sums of U - L in units of 2^31 and `rest_of_room` of the remainders, since they can exceed 64 bits. The guides say where to
    search: `guide[i]` is the last place whose sum is at most i 2^shift.
    """

    size: int
    outcome_table: Integers
    bounds: NDArray[np.float64]
    edges: Integers
    portions: Integers
    room: Integers
    rest_of_room: Integers
    shift: int
    edge_guide: NDArray[np.int32]
    portion_guide: NDArray[np.int32]


class ReportPlan(NamedTuple):
    """The common part of all draws of reports: N, b and r, and what the blocks of its kind are made of (`discreet.release._keyed_reports`).

    `width` is the number of members of a subset. `binomials` has C(x, i) in row x for masks, and in row i for ranks.
    """

    size: int
    kind: int
    uniform_weight: int
    blocks: int
    holding: int
    width: int
    prime: int
    digits: int
    window: int
    binomials: NDArray[np.uint64]


def make_draw_plan_of_lattice(lattice: Lattice, mixing: Affine | None) -> UniformPlan | ReferencePlan:
    """The plan of a lattice. `mixing` None: project onto the box."""
    box = lattice.box
    if isinstance(lattice.lower, int):
        assert isinstance(lattice.upper, int)
        slope, lift = (1.0, 0.0) if mixing is None else (mixing.slope, mixing.lift)
        return UniformPlan(
            box.size, float(box.lower), float(box.ceiling), lattice.lower, lattice.upper, mixing is None, slope, lift
        )
    assert mixing is None, "no table is released by the linear mechanism over a reference that is not uniform"
    room = np.asarray(lattice.upper) - lattice.lower
    edges, portions = _running_sums(lattice.lower), _running_sums(lattice.portions)
    shift = max(0, BITS - box.size.bit_length())
    table = _aligned_zero_rows(box.size)
    bounds = table.view(np.float64)
    for column, values in enumerate((lattice.lower, np.asarray(lattice.upper), lattice.portions, portions[:-1])):
        table[:, column] = values
    bounds[:, FLOOR], bounds[:, CEILING] = box.lower, box.ceiling
    return ReferencePlan(
        size=box.size,
        outcome_table=_as_contiguous_read_only(table),
        bounds=_as_contiguous_read_only(bounds),
        edges=edges,
        portions=portions,
        room=_running_sums(room >> ROOM_BITS),
        rest_of_room=_running_sums(room & ((1 << ROOM_BITS) - 1)),
        shift=shift,
        edge_guide=_search_guide_of_sums(edges, shift),
        portion_guide=_search_guide_of_sums(portions, shift),
    )


def _aligned_zero_rows(number: int) -> Integers:
    """Rows of zeros, each aligned to one cache line."""
    buffer = np.zeros((number + 1) * ROW, dtype=np.int64)
    first = -buffer.ctypes.data // buffer.itemsize % ROW
    return buffer[first : first + number * ROW].reshape(number, ROW)


def _search_guide_of_sums(sums: Integers, shift: int) -> NDArray[np.int32]:
    steps = np.arange((TOTAL >> shift) + 2) << shift
    return _as_contiguous_read_only((np.searchsorted(sums[:-1], steps, side="right") - 1).astype(np.int32))


def _running_sums(values: Integers) -> Integers:
    return _as_contiguous_read_only(np.concatenate([[0], np.cumsum(values)]))


def _as_contiguous_read_only(values: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(values)
    array.setflags(write=False)
    return array


class ClientColumns(NamedTuple):
    """Columns of many clients: their identities (integers, or texts in Arrow's layout), and lists of their outcomes.

    `counts` (whole numbers) or `weights` (any numbers of at least 0) say how often or how much; both are empty if every record counts once.
    They make a law in different ways: see `discreet.release._randomness`.
    """

    integers: NDArray[np.int64]
    text_ends: NDArray[np.int64]
    text: NDArray[np.uint8]
    ends: NDArray[np.int64]
    outcomes: NDArray[np.uint32] | NDArray[np.uint64]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return self.ends.size - 1


def _excesses_over_lower_bounds(
    plan: ReferencePlan, masses: NDArray[np.float64], lengths: NDArray[np.int64], outcomes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The excess over L of each client's outcomes, from lists padded with zeros."""
    present = np.arange(masses.shape[1]) < lengths[:, None]
    low, high = (np.where(present, plan.bounds[outcomes, column], 0.0) for column in (FLOOR, CEILING))
    lower, upper = plan.outcome_table[outcomes, LOWER], plan.outcome_table[outcomes, UPPER]
    shared_total = int(plan.edges[-1])
    outside_floor = (shared_total - np.where(present, lower, 0).sum(axis=1)).astype(np.float64) / TOTAL
    slope = np.full(len(masses), np.inf)
    rows = ~are_row_sums_at_most(np.where(present, upper - lower, 0), TOTAL - shared_total)
    if rows.any():
        slope[rows], _ = solve_slopes_and_lifts_of_padded_lists(
            masses[rows], lengths[rows], low[rows], high[rows], outside_floor[rows]
        )
    with np.errstate(over="ignore"):
        value = laws_times_slopes(masses, slope[:, None] * TOTAL)
    clipped_value = np.fmin(np.fmax(lower.astype(np.float64), value), upper.astype(np.float64))
    return np.asarray(clipped_value.astype(np.int64) - lower)


def _outcome_beyond_shared_part_by_reference_plan(
    plan: ReferencePlan, outcomes: list[int], excesses: list[int], uniform: int
) -> int:
    """The outcome of an integer beyond the shared part, for a client with `excesses` at `outcomes`."""
    shared_total = int(plan.edges[-1])
    rest = uniform - shared_total
    for outcome, excess in zip(outcomes, excesses, strict=True):
        if rest < excess:
            return outcome
        rest -= excess
    before = 0  # S of held outcomes so far
    size_total = int(plan.portions[-1]) - sum(plan.outcome_table[outcomes, SIZE].tolist())
    limit = min(TOTAL - shared_total - sum(excesses), size_total * (TOTAL - shared_total) // TOTAL)
    if rest < limit:
        target = rest * size_total // limit
        for outcome in outcomes:
            if target < plan.portions[outcome]:
                break
            target += int(plan.outcome_table[outcome, SIZE])
        return int(np.searchsorted(plan.portions, target, side="right")) - 1
    rest -= limit

    def portions_outside_support_before(outcome: int) -> int:
        """Portions of the outcomes outside the support before this one."""
        return -(-(int(plan.portions[outcome]) - before) * limit // size_total) if limit else 0

    def remaining_capacity_between(first: int, last: int) -> int:
        """How much outcomes first..last - 1, all outside the support, can still take up to their upper bounds."""
        high = int(plan.room[last] - plan.room[first])
        return (
            (high << ROOM_BITS)
            + int(plan.rest_of_room[last] - plan.rest_of_room[first])
            - portions_outside_support_before(last)
            + portions_outside_support_before(first)
        )

    first = 0
    for outcome, excess in zip([*outcomes, plan.size], [*excesses, 0], strict=True):
        gap = remaining_capacity_between(first, outcome)
        if rest < gap:
            low, high = first, outcome
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if remaining_capacity_between(first, middle) <= rest else (low, middle)
            return low
        rest -= gap
        if outcome < plan.size:
            room = int(plan.outcome_table[outcome, UPPER] - plan.outcome_table[outcome, LOWER]) - excess
            if rest < room:
                return outcome
            rest -= room
            before += int(plan.outcome_table[outcome, SIZE])
        first = outcome + 1
    return -1  # unreachable: the lattice was built with sum U >= 2^62


_MOST_COUNTS = (1 << 63) - 1
_ENTRIES = 1 << 20  # in a matrix of masses

Law = tuple[NDArray[np.uint64], NDArray[np.uint64]]  # outcomes in increasing order, and their numbers


class RefusedRow(Exception):
    """A row that is refused: which, which of its records, and why."""

    def __init__(self, row: int, place: int, why: int) -> None:
        super().__init__(row, place, why)
        self.row, self.place, self.why = row, place, why


def choose_client_draw_functions(*, compiled: bool) -> ModuleType:
    """The module with `initial_state_of_run` and `draw_outcomes_of_clients`: the compiled one, or this one in numpy.

    Both draw alike; only compiled code draws rows of a survey.
    """
    return import_module(f"{__name__}_compiled" if compiled else __name__)


def initial_state_of_run(key: RunKey) -> RunKey:
    """The common start of all clients of a run: the key itself."""
    return key


def draw_outcomes_of_clients(
    plan: UniformPlan | ReferencePlan,
    clients: ClientColumns,
    key: RunKey,
    first: int,
    last: int,
    outcomes: NDArray[np.int64],
    order: NDArray[np.uint64],
    positions: NDArray[np.float64],
    digest: NDArray[np.uint64],
    problem: NDArray[np.int64],
) -> int:
    """As `_client_draws_compiled.draw_outcomes_of_clients`. If a row is rejected, the outputs stay unfilled."""
    if first == last:
        return -1
    try:
        laws, messages = integer_laws_and_messages(plan.size, clients, first, last)
    except RefusedRow as refusal:
        problem[0], problem[1] = refusal.place, refusal.why
        return refusal.row
    words = pseudo_random_word_rows(key, messages)
    uniform = (words[:, 0] >> np.uint64(64 - BITS)).astype(np.int64)
    if isinstance(plan, UniformPlan):
        outcomes[first:last], shared_total = uniform // plan.lower, plan.size * plan.lower
    else:
        outcomes[first:last], shared_total = np.searchsorted(plan.edges, uniform, side="right") - 1, int(plan.edges[-1])
    late_rows = np.flatnonzero(uniform >= shared_total)
    for row, outcome in zip(
        late_rows,
        _outcomes_beyond_shared_part(plan, [laws[row] for row in late_rows], uniform[late_rows].tolist()),
        strict=True,
    ):
        outcomes[first + row] = outcome
    store_sort_words_and_add_digest(words, slice(first, last), order, digest)
    if positions.size:
        positions[first:last] = fractions_of_upper_53_bits(words[:, 2])
    return -1


def fractions_of_upper_53_bits(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The upper 53 bits of each word as a number in [0, 1), which a double holds exactly."""
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def integer_laws_and_messages(
    size: int, clients: ClientColumns, first: int, last: int
) -> tuple[list[Law], list[bytes]]:
    """What clients hold in whole numbers, and their canonical inputs; raises `RefusedRow` for the first that is refused."""
    lengths = np.diff(clients.ends[first : last + 1])
    if (lengths > LONGEST).any():
        raise RefusedRow(first + int(np.argmax(lengths > LONGEST)), 0, REFUSED_OVERFLOW)
    if clients.counts.size or clients.weights.size:
        laws = list(_iterate_laws_of_counts_or_weights(size, clients, first, last))
        return laws, list(map(_encode_message, _iterate_message_heads(clients, first, last), laws))
    outcomes, numbers, edges = _count_records_by_outcome(size, clients, first, last, lengths)
    laws = [(outcomes[begin:end], numbers[begin:end]) for begin, end in pairwise(edges)]
    if numbers.size and (int(numbers.max()) >> 32 or int(outcomes.max()) >> 32):
        return laws, list(map(_encode_message, _iterate_message_heads(clients, first, last), laws))
    # all at once: as `_encode_message` writes each
    law_bytes = ((outcomes << np.uint64(32)) | numbers).astype("<u8").tobytes()
    parts = (law_bytes[8 * begin : 8 * end] for begin, end in pairwise(edges))
    return laws, list(map(operator.add, _iterate_message_heads_in_narrow_form(clients, first, last), parts))


def pseudo_random_word_rows(key: RunKey, messages: list[bytes]) -> NDArray[np.uint64]:
    """The eight words of each client, a row each, as `discreet.release._randomness.pseudo_random_words_of_client` gives them."""
    digests = [
        hashlib.blake2b(message, key=key.value, person=keyed.DRAW_PERSON, digest_size=8 * keyed.WORDS).digest()
        for message in messages
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, keyed.WORDS)


def store_sort_words_and_add_digest(
    words: NDArray[np.uint64], rows: slice, order: NDArray[np.uint64], digest: NDArray[np.uint64]
) -> None:
    """Take from the words what to sort clients by and what the digest of the input adds up, where they are asked for."""
    if order.size:
        order[rows] = words[:, 1]
    if digest.size:
        digest += words[:, keyed.WORDS - keyed.DIGEST_WORDS :].sum(axis=0, dtype=np.uint64)


def _iterate_laws_of_counts_or_weights(size: int, clients: ClientColumns, first: int, last: int) -> Iterator[Law]:
    """The law of each client in whole numbers, where records have counts or weights."""
    for row in range(first, last):
        span = slice(clients.ends[row], clients.ends[row + 1])
        outcomes = clients.outcomes[span].tolist()
        if clients.counts.size:
            yield _law_as_number_arrays(_law_of_counts(row, size, outcomes, clients.counts[span].tolist()))
        else:
            yield _law_as_number_arrays(_law_of_weights(row, size, outcomes, clients.weights[span].tolist()))


def _count_records_by_outcome(
    size: int, clients: ClientColumns, first: int, last: int, lengths: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], list[int]]:
    """(the outcomes of all clients, how often each came over their common divisor, where each client's begin and end)."""
    start = clients.ends[first]
    records = clients.outcomes[start : clients.ends[last]]
    rows = np.repeat(np.arange(last - first, dtype=np.uint64), lengths)
    if records.size and int(records.max()) >= size:
        index = int(np.argmax(records >= size))
        row = first + int(rows[index])
        raise RefusedRow(row, int(start + index - clients.ends[row]), REFUSED_OUTSIDE)
    owners, outcomes, numbers = _count_outcomes_by_row(rows, records)
    edges = np.searchsorted(owners, np.arange(last - first + 1, dtype=np.uint64))
    nonempty = np.diff(edges) > 0  # of an empty stretch `reduceat` would give the number after it
    divisors = np.gcd.reduceat(numbers, edges[:-1][nonempty]) if nonempty.any() else numbers
    return outcomes, numbers // np.repeat(divisors, np.diff(edges)[nonempty]), edges.tolist()


def _count_outcomes_by_row(rows: NDArray[np.uint64], records: NDArray[Any]) -> tuple[NDArray[np.uint64], ...]:
    """The distinct pairs of a client's row and an outcome, in order, and how often each comes."""
    if records.itemsize < 8:
        pairs, counts = np.unique((rows << np.uint64(32)) | records, return_counts=True)
        return pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF), counts.astype(np.uint64)
    order = np.lexsort((records, rows))
    owners, outcomes = rows[order], records[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (outcomes[1:] != outcomes[:-1])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(order)))
    return owners[starts], outcomes[starts], counts.astype(np.uint64)


def _law_of_counts(row: int, size: int, outcomes: list[int], counts: list[int]) -> dict[int, int]:
    total = 0
    for index, (outcome, count) in enumerate(zip(outcomes, counts, strict=True)):
        if outcome >= size or count < 0 or count > _MOST_COUNTS - total:
            raise RefusedRow(
                row, index, REFUSED_OUTSIDE if outcome >= size else REFUSED_NEGATIVE if count < 0 else REFUSED_OVERFLOW
            )
        total += count
    return keyed.integer_law_of_counts(outcomes, counts)


def _law_of_weights(row: int, size: int, outcomes: list[int], weights: list[float]) -> dict[int, int]:
    for index, (outcome, weight) in enumerate(zip(outcomes, weights, strict=True)):
        if outcome >= size or not 0.0 <= weight < math.inf:
            why = REFUSED_OUTSIDE if outcome >= size else REFUSED_INFINITE if weight > 0.0 else REFUSED_NEGATIVE
            raise RefusedRow(row, index, REFUSED_NAN if weight != weight else why)
    sums: dict[int, float] = {}  # in the order in which compiled code adds them, for where they overflow
    for outcome, weight in sorted(zip(outcomes, weights, strict=True), key=lambda record: record[0]):
        sums[outcome] = sums.get(outcome, 0.0) + weight
    total = 0.0
    for amount in sums.values():
        total += amount
    if total == math.inf:
        raise RefusedRow(row, 0, REFUSED_OVERFLOW)
    return keyed.integer_law_of_weighted_records(outcomes, weights)


def _law_as_number_arrays(numbers: dict[int, int]) -> Law:
    return np.array(list(numbers), dtype=np.uint64), np.array(list(numbers.values()), dtype=np.uint64)


_LONGEST_INTEGER = 20  # characters


class _MessageHead(NamedTuple):
    """A client's identity as the start of its message: the header of the narrow form, and the rest."""

    header: int
    rest: bytes


def _iterate_message_heads(clients: ClientColumns, first: int, last: int) -> Iterator[_MessageHead]:
    if clients.integers.size:
        yield from map(_encode_integer_message_head, clients.integers[first:last].tolist())
        return
    start = int(clients.text_ends[first])
    text = clients.text[start : clients.text_ends[last]].tobytes()
    ends = (clients.text_ends[first : last + 1] - start).tolist()
    for begin, end in pairwise(ends):
        name = text[begin:end]
        client = (
            keyed.integer_or_text_name(name.decode())
            if end - begin <= _LONGEST_INTEGER and name[-1:].isdigit()
            else name
        )
        if isinstance(client, int):
            yield _encode_integer_message_head(client)
        else:
            yield _MessageHead(
                keyed.TEXT_CLIENT + 256 * keyed.NARROW_FORM + 65536 * (end - begin), name + bytes((begin - end) % 8)
            )


def _iterate_message_heads_in_narrow_form(clients: ClientColumns, first: int, last: int) -> Iterator[bytes]:
    """The same as bytes, where all messages have the narrow form."""
    if not clients.integers.size:
        for head in _iterate_message_heads(clients, first, last):
            yield struct.pack("<Q", head.header) + head.rest
        return
    words = np.empty((last - first, 2), dtype="<u8")
    words[:, 0], words[:, 1] = (
        keyed.INTEGER_CLIENT + 256 * keyed.NARROW_FORM,
        clients.integers[first:last].view(np.uint64),
    )
    content = words.tobytes()
    yield from (content[start : start + 16] for start in range(0, len(content), 16))


def _encode_integer_message_head(client: int) -> _MessageHead:
    return _MessageHead(keyed.INTEGER_CLIENT + 256 * keyed.NARROW_FORM, struct.pack("<q", client))


def _encode_message(head: _MessageHead, law: Law) -> bytes:
    """As `discreet.release._randomness.client_message`."""
    outcomes, numbers = law
    if numbers.size and (int(numbers.max()) >> 32 or int(outcomes[-1]) >> 32):
        pairs = np.column_stack((outcomes, numbers)).astype("<u8").tobytes()
        return struct.pack("<Q", head.header + 256 * (keyed.WIDE_FORM - keyed.NARROW_FORM)) + head.rest + pairs
    return struct.pack("<Q", head.header) + head.rest + ((outcomes << np.uint64(32)) | numbers).astype("<u8").tobytes()


def _outcomes_beyond_shared_part(plan: UniformPlan | ReferencePlan, laws: list[Law], uniform: list[int]) -> list[int]:
    """The outcomes of integers beyond the shared part."""
    outcomes = [
        0 if numbers.size else _outcome_without_records(plan, uniform[row]) for row, (_, numbers) in enumerate(laws)
    ]
    for group in _iterate_padded_laws_by_length(laws):
        if isinstance(plan, UniformPlan):
            excesses, base = _client_excesses_over_common_lower_bound(plan, group.masses, group.lengths)
        else:
            excesses = _excesses_over_lower_bounds(plan, group.masses, group.lengths, group.outcomes)
        for index, row in enumerate(group.rows):
            number = group.lengths[index]
            support, row_excesses = group.outcomes[index, :number].tolist(), excesses[index, :number].tolist()
            if isinstance(plan, UniformPlan):
                outcomes[row] = _outcome_beyond_shared_part_by_uniform_plan(
                    plan, support, row_excesses, int(base[index, 0]), uniform[row]
                )
            else:
                outcomes[row] = _outcome_beyond_shared_part_by_reference_plan(plan, support, row_excesses, uniform[row])
    return outcomes


def _outcome_without_records(plan: UniformPlan | ReferencePlan, uniform: int) -> int:
    """The outcome of a client without records: one of the reference."""
    if isinstance(plan, UniformPlan):
        return _outcome_beyond_shared_part_by_uniform_plan(plan, [], [], TOTAL // plan.size - plan.lower, uniform)
    return _outcome_beyond_shared_part_by_reference_plan(plan, [], [], uniform)


def _client_excesses_over_common_lower_bound(
    plan: UniformPlan, masses: NDArray[np.float64], lengths: NDArray[np.int64]
) -> tuple[Any, Any]:
    """The excess over L of outcomes in the support, and of those outside."""
    slope, lift = np.full(len(masses), plan.slope), np.full(len(masses), plan.lift)
    if plan.projecting:
        slope, lift = solve_slopes_and_lifts_over_uniform(masses, lengths, plan.size, plan.floor, plan.ceiling)
    return _excess_over_common_lower_bound(plan, masses, slope, lift), _excess_over_common_lower_bound(
        plan, np.zeros((len(masses), 1)), slope, lift
    )


class _PaddedLaws(NamedTuple):
    """The laws of some clients, a row each, padded with zeros: the clients, their numbers of outcomes, the outcomes, the masses."""

    rows: list[int]
    lengths: NDArray[np.int64]
    outcomes: NDArray[np.int64]
    masses: NDArray[np.float64]


def _iterate_padded_laws_by_length(laws: list[Law]) -> Iterator[_PaddedLaws]:
    """The non-empty laws, those of similar length together."""
    masses, law_rows, supports = [], [], []
    for row, (outcomes, numbers) in enumerate(laws):
        if numbers.size:
            mass = numbers.astype(np.float64) / float(np.add.reduce(numbers, dtype=np.uint64))
            present = mass > NEGLIGIBLE
            masses.append(mass[present])
            supports.append(outcomes[present])
            law_rows.append(row)
    lengths = np.array([mass.size for mass in masses], dtype=np.int64)
    for rows in _iterate_rows_of_similar_length(lengths):
        shape = rows.size, int(lengths[rows].max())
        padded_outcomes, padded_masses = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        for index, row in enumerate(rows):
            padded_outcomes[index, : lengths[row]], padded_masses[index, : lengths[row]] = supports[row], masses[row]
        yield _PaddedLaws([law_rows[row] for row in rows], lengths[rows], padded_outcomes, padded_masses)


def _iterate_rows_of_similar_length(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Groups of rows of similar length, to be padded to one length; long rows stay alone."""
    kinds = np.ceil(np.log2(np.maximum(lengths, 1)))
    for kind in sorted(set(kinds.tolist())):  # np.unique would load numpy.ma
        rows = np.flatnonzero(kinds == kind)
        step = 1 if 2**kind > NOT_LONG else max(1, _ENTRIES >> int(kind))
        yield from (rows[start : start + step] for start in range(0, rows.size, step))


def _excess_over_common_lower_bound(
    plan: UniformPlan, mass: NDArray[np.float64], slope: NDArray[np.float64], lift: NDArray[np.float64]
) -> Any:
    """As `_compiled._outcome_excess_over_lower_bound`: the affine law in units of 2^-62, clipped to [L, U], rounded down, less L."""
    total = float(TOTAL)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled_slope = (slope * total)[:, None]
        client_part = np.where(scaled_slope != np.inf, mass * scaled_slope, np.where(mass > NEGLIGIBLE, total, 0.0))
        value = client_part + (lift * plan.floor * total)[:, None]
    return np.fmin(np.fmax(float(plan.lower), value), float(plan.upper)).astype(np.int64) - plan.lower


def _outcome_beyond_shared_part_by_uniform_plan(
    plan: UniformPlan, outcomes: list[int], excesses: list[int], base: int, uniform: int
) -> int:
    """The outcome of an integer beyond the shared part."""
    outcome, rest = _locate_outcome_by_lengths(uniform - plan.size * plan.lower, base, excesses, outcomes, plan.size)
    if outcome >= 0:
        return outcome
    room = plan.upper - plan.lower
    return _locate_outcome_by_lengths(rest, room - base, [room - excess for excess in excesses], outcomes, plan.size)[0]


def _locate_outcome_by_lengths(
    rest: int, base: int, lengths: list[int], outcomes: list[int], size: int
) -> tuple[int, int]:
    """As `_client_draws_compiled._locate_outcome_by_lengths`."""
    next_outcome = 0
    for index in range(len(outcomes) + 1):
        outcome = outcomes[index] if index < len(outcomes) else size
        if base > 0:
            steps = rest // base
            if steps < outcome - next_outcome:
                return next_outcome + steps, 0
            rest -= base * (outcome - next_outcome)
        if index < len(outcomes):
            if rest < lengths[index]:
                return outcome, 0
            rest -= lengths[index]
            next_outcome = outcome + 1
    return -1, rest
