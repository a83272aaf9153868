"""The exact draw for clients with few distinct values, on any number of outcomes, over a uniform reference; and the rows of surveys.

The distribution, and the outcome of a given integer, are those of `discreet.release._compiled` on the client's k numbers count/total. (That
module also draws over other references.) All outcomes outside the support are alike, so the walk over outcomes takes the gap between two held
ones in a single step. The cost grows with the number of distinct values and is independent of the domain.

A client without records draws from the reference itself: W_x = floor(2^62/k), and the remainder goes to the first outcomes with room. (It
lies in the box, because L <= 2^62/k <= U.)

The same walk over clients draws reports: a report has words and blocks of its own (`discreet.release._keyed_reports`).

**Surveys.** A row of a survey is a number of up to 62 bits, so its records are wider than outcomes of one column. A client's message is that
of `discreet.release._randomness`, after four words that name the survey. Its first hash gives eight words. The third of them chooses among
its rows; what the others decide is up to `discreet.survey`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.kernels import kernel, overload
from discreet.projection import solve_slope_and_lift_over_uniform
from discreet.release._canonical_records import (
    make_bitmap_scratch,
    read_law,
    write_records_with_counts,
    write_records_with_weights,
    write_records_without_counts,
)
from discreet.release._client_draws import (
    LONGEST,
    REFUSED_OVERFLOW,
    REFUSED_TOO_MANY,
    ReferencePlan,
    ReportPlan,
    UniformPlan,
)
from discreet.release._compiled import (
    IN_EDGES,
    _outcome_excess_over_lower_bound,
    fill_in_pending_outcomes_of_batch,
    locate_outcome_by_reference_plan,
    prefetch_rows_of_held_outcomes,
    store_indices_of_value,
)
from discreet.release._keyed_reports import (
    BLOCK,
    absorb_message,
    draw_report_of_law,
    hash_message_to_report_words,
    keyed_hash_state,
)
from discreet.release._lattice import TOTAL
from discreet.release._randomness import (
    BITS,
    BLOCK_PERSON,
    DIGEST_WORDS,
    DRAW_PERSON,
    INTEGER_CLIENT,
    NARROW_FORM,
    TEXT_CLIENT,
    WIDE_FORM,
    WORDS,
    RunKey,
)

CONTEXT_WORDS = 4  # that name a survey, before the words of a client
_SPARE_BITS = np.uint64(64 - BITS)
_MINUS, _ZERO, _NINE = np.uint8(ord("-")), np.uint8(ord("0")), np.uint8(ord("9"))
_LONGEST_INTEGER, _MOST_DIGITS = 20, 19  # characters
_BATCH = 32  # clients whose look-ups in large tables are batched
_ROOM = 1024  # for their outcomes
_LATE = -1  # in place of an outcome: the draw needs the client's law
_LEAST = np.uint64(1 << 63)  # the absolute value of the least 64-bit integer
_HALF, _LOWER_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel()
def _locate_outcome_by_lengths(rest: Any, base: Any, lengths: Any, outcomes: Any, size: Any) -> Any:
    """The outcome of `rest` if outcomes[i] is lengths[i] units long and every other outcome `base` units, in order.

    Returns (outcome, 0), or (-1, the remaining part of `rest` past the end).
    """
    next_outcome: Any = 0
    for index in range(outcomes.size + 1):
        outcome: Any = np.int64(outcomes[index]) if index < outcomes.size else size
        if base > 0:
            steps = rest // base
            if steps < outcome - next_outcome:
                return next_outcome + steps, 0
            rest -= base * (outcome - next_outcome)
        if index < outcomes.size:
            if rest < lengths[index]:
                return outcome, 0
            rest -= lengths[index]
            next_outcome = outcome + 1
    return -1, rest


@kernel()
def outcome_by_uniform_plan(plan: Any, outcomes: Any, masses: Any, excesses: Any, uniform: Any) -> Any:
    """The outcome of a uniform integer, for a client with `masses` at `outcomes` (`excesses` is scratch)."""
    size, floor, ceiling, lower, upper, projecting, slope, lift = plan
    shared_total = size * lower
    if uniform < shared_total:
        return uniform // lower
    if outcomes.size == 0:
        base = TOTAL // size - lower
    else:
        if projecting:
            slope, lift = solve_slope_and_lift_over_uniform(masses, size - masses.size, floor, ceiling)
        scaled_slope = slope * float(TOTAL)
        base = _outcome_excess_over_lower_bound(np.zeros(1), 0, scaled_slope, lift, floor, lower, upper)
        for index in range(masses.size):
            excesses[index] = _outcome_excess_over_lower_bound(masses, index, scaled_slope, lift, floor, lower, upper)
    outcome, rest = _locate_outcome_by_lengths(uniform - shared_total, base, excesses, outcomes, size)
    if outcome >= 0:
        return outcome
    for index in range(outcomes.size):
        excesses[index] = upper - lower - excesses[index]
    return _locate_outcome_by_lengths(rest, upper - lower - base, excesses, outcomes, size)[0]


def _make_function_chosen_by_plan(
    uniform: Callable[..., Any], reference: Callable[..., Any], report: Callable[..., Any]
) -> Any:
    """A function for kernels that does what one of these does: the one for the class of its first argument, a plan."""

    def raise_outside_compiled_code(plan: Any, *others: Any) -> Any:
        raise TypeError("a function of a plan is called from compiled code")

    @overload(raise_outside_compiled_code, strict=False)  # names of arguments differ
    def choose_by_plan(plan: Any, *others: Any) -> Callable[..., Any]:
        return {UniformPlan: uniform, ReferencePlan: reference, ReportPlan: report}[plan.instance_class]

    return raise_outside_compiled_code


def _shared_outcome_by_uniform_plan(plan: Any, uniform: Any) -> Any:
    return (uniform // plan.lower if uniform < plan.size * plan.lower else np.int64(_LATE)), np.int64(0)


def _shared_outcome_by_reference_plan(plan: Any, uniform: Any) -> Any:
    if uniform >= plan.edges[plan.size]:
        return np.int64(_LATE), np.int64(0)
    return np.int64(IN_EDGES), uniform


# (the outcome of an integer of the shared part or the sum to be searched, the value to be found), or (_LATE, 0)
_shared_outcome = _make_function_chosen_by_plan(
    _shared_outcome_by_uniform_plan,
    _shared_outcome_by_reference_plan,
    lambda plan, uniform: (np.int64(0), np.int64(0)),
)

# prefetch the table rows of held outcomes, if there is a table
_prefetch_rows_of_held_outcomes = _make_function_chosen_by_plan(
    lambda plan, outcomes: None,
    lambda plan, outcomes: prefetch_rows_of_held_outcomes(plan, outcomes),
    lambda plan, outcomes: None,
)

# (the outcome beyond the shared part or the sum to be searched, the value to be found)
_outcome_beyond_shared_part = _make_function_chosen_by_plan(
    lambda plan, outcomes, masses, excesses, low, high, uniform: (
        np.int64(outcome_by_uniform_plan(plan, outcomes, masses, excesses, uniform)),
        np.int64(0),
    ),
    lambda plan, outcomes, masses, excesses, low, high, uniform: locate_outcome_by_reference_plan(
        plan, outcomes, masses, excesses, low, high, uniform
    ),
    lambda plan, outcomes, masses, excesses, low, high, uniform: (np.int64(0), np.int64(0)),
)

# fill in the outcomes that are pending
_fill_in_pending_outcomes_of_batch = _make_function_chosen_by_plan(
    lambda plan, outcomes, targets, numbers: None,
    lambda plan, outcomes, targets, numbers: fill_in_pending_outcomes_of_batch(plan, outcomes, targets, numbers),
    lambda plan, outcomes, targets, numbers: None,
)

# whether an outcome is drawn by the words of the client's draw, rather than by those of its report
_needs_draw_words = _make_function_chosen_by_plan(lambda plan: True, lambda plan: True, lambda plan: False)

# (whether there is one, the report of a client whose law the words hold), where reports are drawn
_draw_report = _make_function_chosen_by_plan(
    lambda plan, keyed, words, offset, number, form, message, state: (True, np.uint64(0)),
    lambda plan, keyed, words, offset, number, form, message, state: (True, np.uint64(0)),
    lambda plan, keyed, words, offset, number, form, message, state: draw_report_of_law(
        plan, keyed, words, offset, number, form, message, state
    ),
)


@kernel()
def _integer_of_text(text: Any, start: int, stop: int) -> Any:
    """(whether the text is the canonical spelling of a 64-bit integer, that integer in two's complement): `integer_or_text_name`."""
    no_integer = False, np.uint64(0)
    if stop == start or stop - start > _LONGEST_INTEGER:
        return no_integer
    negative = text[start] == _MINUS
    first = start + 1 if negative else start
    if first == stop or stop - first > _MOST_DIGITS or (text[first] == _ZERO and (negative or stop - first > 1)):
        return no_integer
    value = np.uint64(0)
    for position in range(first, stop):
        if text[position] < _ZERO or text[position] > _NINE:
            return no_integer
        value = value * np.uint64(10) + np.uint64(text[position] - _ZERO)
    if value > (_LEAST if negative else _LEAST - np.uint64(1)):
        return no_integer
    return True, (~value + np.uint64(1) if negative else value)


@kernel()
def measure_longest_list_and_name(
    integers: Any, text_ends: Any, ends: Any, first: int, last: int, problem: Any
) -> tuple[int, int, int]:
    """(the first client with too many records, or -1; the most records of a client; the most words of a name)."""
    longest, longest_name = 0, 1
    for row in range(first, last):
        longest = max(longest, ends[row + 1] - ends[row])
        if longest > LONGEST:
            problem[0], problem[1] = 0, REFUSED_OVERFLOW
            return row, longest, longest_name
        if not integers.size:
            longest_name = max(longest_name, (text_ends[row + 1] - text_ends[row] + 7) // 8)
    return -1, longest, longest_name


@kernel()
def write_client_name(integers: Any, text_ends: Any, text: Any, row: int, words: Any) -> int:
    """Write header (of the narrow form) and client to `words`; returns the number of words."""
    if integers.size:
        words[0] = np.uint64(INTEGER_CLIENT + 256 * NARROW_FORM)
        words[1] = np.uint64(integers[row])
        return 2
    start, stop = text_ends[row], text_ends[row + 1]
    is_integer, value = _integer_of_text(text, start, stop)
    if is_integer:
        words[0] = np.uint64(INTEGER_CLIENT + 256 * NARROW_FORM)
        words[1] = value
        return 2
    words[0] = np.uint64(TEXT_CLIENT + 256 * NARROW_FORM + 65536 * (stop - start))
    number = 1
    for first in range(start, stop, 8):
        word = np.uint64(0)
        for byte in range(min(8, stop - first)):
            word |= np.uint64(text[first + byte]) << np.uint64(8 * byte)
        words[number] = word
        number += 1
    return number


@kernel()
def _draw_batch_beyond_shared_part(
    plan: Any,
    outcomes: Any,
    targets: Any,
    ends: Any,
    keys: Any,
    masses: Any,
    excesses: Any,
    low: Any,
    high: Any,
    numbers: Any,
) -> None:
    """Draw for the clients of a batch whose integers lie beyond the shared part; their data were prefetched meanwhile."""
    for number in range(store_indices_of_value(_LATE, outcomes, numbers)):
        client = numbers[number]
        start, stop = (ends[client - 1] if client else 0), ends[client]
        length = stop - start
        outcomes[client], targets[client] = _outcome_beyond_shared_part(
            plan, keys[start:stop], masses[start:stop], excesses[:length], low[:length], high[:length], targets[client]
        )
    _fill_in_pending_outcomes_of_batch(plan, outcomes, targets, numbers)


@kernel(nogil=True)
def draw_outcomes_of_clients(
    plan: Any,
    clients: Any,
    keyed: Any,
    first: int,
    last: int,
    outcomes: Any,
    order: Any,
    positions: Any,
    digest: Any,
    problem: Any,
) -> int:
    """Fill `outcomes[first:last]`, and `order` and `positions` unless they are empty; add to `digest` likewise.
    Returns the first bad row, or -1.

    Of a report, `outcomes` gets the lower 32 bits and `positions` the upper ones over 2^32. It has words of its own, so that a draw without
    `order` and `digest` hashes once.

    `problem` then has the place of the bad record of the row, and the reason. The GIL is released: give each thread its own rows.
    """
    size = plan.size
    integers, text_ends, text, ends, records, counts, weights = clients
    bad_row, longest, longest_name = measure_longest_list_and_name(integers, text_ends, ends, first, last, problem)
    if bad_row >= 0:
        return bad_row
    keys, spare = np.empty(longest, dtype=np.uint32), np.empty(longest, dtype=np.uint32)
    amounts, spare_amounts = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    masses = np.empty(longest)
    # the words of a client, after room for one
    message = np.empty(2 + longest_name + 2 * longest + BLOCK, dtype=np.uint64)
    words = message[1:]
    state = np.empty(8, dtype=np.uint64)
    bitmap, tallies = make_bitmap_scratch(size, 0 if counts.size or weights.size else longest)
    targets, late_ends = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH, dtype=np.int64)
    late_keys, late_masses = np.empty(longest + _ROOM, dtype=np.uint32), np.empty(longest + _ROOM)
    numbers, low, high = np.empty(_BATCH, dtype=np.int64), np.empty(longest), np.empty(longest)
    batch_start, batch_records = first, 0
    for row in range(first, last):
        if row - batch_start == _BATCH or batch_records + ends[row + 1] - ends[row] > late_keys.size:
            _draw_batch_beyond_shared_part(
                plan, outcomes[batch_start:row], targets, late_ends, late_keys, late_masses, amounts, low, high, numbers
            )
            batch_start, batch_records = row, 0
        offset = write_client_name(integers, text_ends, text, row, words)
        form = NARROW_FORM
        if counts.size:
            number, form = write_records_with_counts(
                records, counts, ends[row], ends[row + 1], size,
                words, offset, keys, spare, amounts, spare_amounts, problem,
            )  # fmt: skip
        elif weights.size:
            number, form = write_records_with_weights(
                records, weights, ends[row], ends[row + 1], size,
                words, offset, keys, spare, amounts, spare_amounts, masses, problem,
            )  # fmt: skip
        else:
            number = write_records_without_counts(
                records, ends[row], ends[row + 1], size, words, offset, keys, spare, bitmap, tallies, problem
            )
        if number < 0:
            return row
        words[0] += np.uint64(256 * form)
        if digest.size or order.size or _needs_draw_words(plan):
            for index in range(8):
                state[index] = keyed[index]
            absorb_message(state, words, offset + number * (2 if form == WIDE_FORM else 1))
        uniform = np.int64(state[0] >> _SPARE_BITS)
        outcomes[row], targets[row - batch_start] = _shared_outcome(plan, uniform)
        if outcomes[row] == _LATE:
            number = read_law(words, offset, number, form, late_keys[batch_records:], late_masses[batch_records:])
            _prefetch_rows_of_held_outcomes(plan, late_keys[batch_records : batch_records + number])
            targets[row - batch_start] = uniform
            batch_records += number
        late_ends[row - batch_start] = batch_records
        if order.size:
            order[row] = state[1]
        if positions.size:
            positions[row] = np.float64(state[2] >> np.uint64(11)) * 2.0**-53
        for index in range(digest.size):
            digest[index] += state[WORDS - DIGEST_WORDS + index]
        if not _needs_draw_words(plan):
            has_report, report = _draw_report(plan, keyed, words, offset, number, form, message, state)
            if not has_report:
                problem[0], problem[1] = 0, REFUSED_TOO_MANY
                return row
            outcomes[row], positions[row] = np.int64(report & _LOWER_HALF), np.float64(report >> _HALF) * 2.0**-32
    _draw_batch_beyond_shared_part(
        plan, outcomes[batch_start:last], targets, late_ends, late_keys, late_masses, amounts, low, high, numbers
    )
    return -1


def initial_state_of_run(key: RunKey) -> NDArray[np.uint64]:
    """The keyed states from which every client of a run starts: that of its draw, and that of the words of reports."""
    state = np.concatenate([keyed_hash_state(key.value, person, 8 * WORDS) for person in (DRAW_PERSON, BLOCK_PERSON)])
    state.setflags(write=False)
    return state


@kernel(nogil=True)
def draw_survey_rows(
    size: int,
    context: Any,
    clients: Any,
    keyed: Any,
    first: int,
    last: int,
    client_words: Any,
    rows: Any,
    states: Any,
    order: Any,
    digest: Any,
    problem: Any,
) -> int:
    """Fill the words, rows and states of clients first <= row < last; returns the first bad row, or -1, as `draw_outcomes_of_clients` does.

    A state is 0 for a client without rows, 1 for one whose row was drawn, and 2 where the third word has to be drawn anew.
    """
    integers, text_ends, text, ends, records, counts, weights = clients
    bad_row, longest, longest_name = measure_longest_list_and_name(integers, text_ends, ends, first, last, problem)
    if bad_row >= 0:
        return bad_row
    keys, spare = np.empty(longest, dtype=np.uint64), np.empty(longest, dtype=np.uint64)
    amounts, spare_amounts = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    masses, ones = np.empty(longest), np.ones(longest, dtype=np.int64)
    message = np.empty(1 + CONTEXT_WORDS + 1 + longest_name + 2 * longest + BLOCK, dtype=np.uint64)
    for position in range(CONTEXT_WORDS):
        message[1 + position] = context[position]
    words = message[1 + CONTEXT_WORDS :]
    state = np.empty(8, dtype=np.uint64)
    for row in range(first, last):
        offset = write_client_name(integers, text_ends, text, row, words)
        start, stop = ends[row], ends[row + 1]
        if weights.size:
            number, form = write_records_with_weights(
                records, weights, start, stop, size, words, offset, keys, spare, amounts, spare_amounts, masses, problem
            )
        elif counts.size:
            number, form = write_records_with_counts(
                records, counts, start, stop, size, words, offset, keys, spare, amounts, spare_amounts, problem
            )
        else:
            number, form = write_records_with_counts(
                records[start:stop],
                ones,
                0,
                stop - start,
                size,
                words,
                offset,
                keys,
                spare,
                amounts,
                spare_amounts,
                problem,
            )
        if number < 0:
            return row
        words[0] += np.uint64(256 * form)
        step = 2 if form == WIDE_FORM else 1
        length = offset + number * step
        total = np.uint64(0)
        for position in range(offset, length, step):
            total += words[position + 1] if form == WIDE_FORM else words[position] & _LOWER_HALF
        if total > np.uint64(TOTAL):
            problem[0], problem[1] = 0, REFUSED_TOO_MANY
            return row
        if digest.size or order.size:
            for position in range(8):
                state[position] = keyed[position]
            absorb_message(state, words, length)
            if order.size:
                order[row] = state[1]
            for position in range(digest.size):
                digest[position] += state[WORDS - DIGEST_WORDS + position]
        hash_message_to_report_words(keyed, message, 1 + CONTEXT_WORDS + length, 0, state)
        for position in range(WORDS):
            client_words[row, position] = np.int64(state[position] >> _SPARE_BITS)
        rows[row], states[row] = 0, 0
        if total:
            word = np.uint64(client_words[row, 2])
            target = word % total
            states[row] = 1 if word - target <= np.uint64(TOTAL) - total else 2
            position = offset
            while True:
                amount = words[position + 1] if form == WIDE_FORM else words[position] & _LOWER_HALF
                if target < amount:
                    break
                target -= amount
                position += step
            rows[row] = np.int64(words[position] if form == WIDE_FORM else words[position] >> _HALF)
    return -1
