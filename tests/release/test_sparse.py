"""The sparse draw is the dense draw: the same integer weights, the same outcome for the same integer, at any domain size."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

import discreet as dc
from discreet import release
from discreet.mechanisms._sampler import Sampler
from discreet.release import TOTAL, _client_draws as plain, _client_draws_compiled as sparse
from discreet.release._client_draws import (
    REFUSED_INFINITE,
    REFUSED_NAN,
    REFUSED_NEGATIVE,
    REFUSED_OUTSIDE,
    REFUSED_OVERFLOW,
)
from discreet.release._randomness import (
    DIGEST_WORDS,
    INTEGER_CLIENT,
    TEXT_CLIENT,
    InputDigest,
    Question,
    Secret,
    client_message,
    integer_law_of_weighted_records,
    pseudo_random_words_of_client,
    uniform_62_bit_integer_of_word,
)
from tests.release.test_plain import read_only
from tests.soaking import examples
from tests.strategies import epsilons

SAMPLERS = (dc.OptimalSampler, dc.LinearSampler)
KEY = Secret(bytes(32)).run_key("cd" * 32, 1, Question(value="value"))

Histogram = dict[int, float]


@st.composite
def problems(draw: st.DrawFn, largest: int = 60) -> tuple[Sampler[Any], Histogram]:
    """A sampler and a client's counts: few and many outcomes, equal and unequal counts."""
    k = draw(st.integers(1, largest))
    sampler = draw(st.sampled_from(SAMPLERS))(dc.Simplex(k), epsilon=draw(epsilons(1e-3, 30.0)))
    held = draw(st.sets(st.integers(0, k - 1), min_size=1, max_size=k))
    top = draw(st.sampled_from([1, 3, 1000, 2**40]))
    return sampler, {x: float(draw(st.integers(1, top))) for x in sorted(held)}


def law(sampler: Sampler[Any], counts: Histogram) -> NDArray[np.float64]:
    dense = np.zeros(sampler.family.size)
    dense[list(counts)] = list(counts.values())
    return np.asarray(sampler.family.law(counts=dense)[None])


def sparse_outcomes(sampler: Sampler[Any], counts: Histogram, integers: Any) -> list[int]:
    plan = plain.make_draw_plan_of_lattice(sampler.lattice, sampler.mixing)
    outcomes = np.array(sorted(counts), dtype=np.uint32)
    masses = np.array([counts[x] for x in sorted(counts)])
    masses = masses / masses.sum() if masses.size else masses
    own = np.empty(masses.size, dtype=np.int64)
    return [int(sparse.outcome_by_uniform_plan(plan, outcomes, masses, own, int(u))) for u in integers]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(problems())
@example((dc.OptimalSampler(dc.Simplex(3), epsilon=1.0), {1: 1.0}))
@example((dc.OptimalSampler(dc.Simplex(1), epsilon=1.0), {0: 5.0}))
def test_the_two_laws_are_one(problem: tuple[Sampler[Any], Histogram]) -> None:
    """Two step functions of the integer that agree on both sides of every step of one of them, and have as many, are equal."""
    sampler, counts = problem
    lattice, dense = sampler.lattice, law(sampler, counts)
    _, slope, lift = release._lattice._draw_outcomes_with_slopes_and_lifts(
        lattice, dense, sampler.mixing, np.array([lattice.shared_total])
    )
    excess, fill = lattice.weight_parts(dense, slope, lift)
    lower = np.broadcast_to(lattice.lower, sampler.family.size)
    ends = np.cumsum([int(n) for n in (*lower, *excess[0], *fill[0])], dtype=object)
    integers = sorted({int(u) for end in (0, *ends) for u in (end - 1, end) if 0 <= u < TOTAL})
    expected = release.outcomes(lattice, np.repeat(dense, len(integers), axis=0), sampler.mixing, np.array(integers))
    assert sparse_outcomes(sampler, counts, integers) == expected.tolist()


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(problems(largest=40), st.data())
def test_any_integer_gives_the_same_outcome(problem: tuple[Sampler[Any], Histogram], data: st.DataObject) -> None:
    sampler, counts = problem
    integers = data.draw(st.lists(st.integers(0, TOTAL - 1), min_size=1, max_size=30))
    dense = np.repeat(law(sampler, counts), len(integers), axis=0)
    expected = release.outcomes(sampler.lattice, dense, sampler.mixing, np.array(integers))
    assert sparse_outcomes(sampler, counts, integers) == expected.tolist()


@pytest.mark.parametrize("k", [2, 7, 1000, 10**8, 2**32 - 4])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 12.0])
def test_a_client_without_records_draws_from_the_reference(k: int, epsilon: float) -> None:
    """Outcome x has floor(2^62/k) integers, the first ones a few more; and that lies in the box."""
    sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=epsilon)
    lattice = sampler.lattice
    lower, upper, share = int(lattice.lower), int(lattice.upper), TOTAL // k
    assert lower <= share
    assert share + TOTAL % k <= upper
    shared, own = lattice.shared_total, share - lower
    assert sparse_outcomes(sampler, {}, [0, lower - 1, lower, shared - 1]) == [0, 0, min(1, k - 1), k - 1]
    if own:
        steps = [shared, shared + own - 1, shared + own, shared + k * own - 1]
        assert sparse_outcomes(sampler, {}, steps) == [0, 0, 1, k - 1]
    if TOTAL % k:
        assert sparse_outcomes(sampler, {}, [TOTAL - 1]) == [0]


@pytest.mark.parametrize("k", [10**3, 10**6, 10**8, 2**32 - 4])
@pytest.mark.parametrize("mechanism", SAMPLERS)
def test_the_weights_of_a_client_on_a_huge_domain(k: int, mechanism: type[Sampler[Any]]) -> None:
    """Found by bisection on the steps of the draw itself: within the box, hence within e^epsilon of any other client's."""
    sampler = mechanism(dc.Simplex(k), epsilon=3.0)
    lattice = sampler.lattice
    counts = {0: 3.0, k // 3: 1.0, k - 1: 2.0}

    def first_not_below(outcome: int, low: int, high: int) -> int:
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if sparse_outcomes(sampler, counts, [middle])[0] < outcome else (low, middle)
        return low

    def last_excess() -> int:
        """Where the excess ends and the fill starts over from the first outcome (or the end)."""
        low, high = first_not_below(k - 1, lattice.shared_total, TOTAL - 1), TOTAL
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if sparse_outcomes(sampler, counts, [middle])[0] == k - 1 else (low, middle)
        return low

    end = last_excess()
    assert TOTAL - end < k + 2**16, "what is filled in is rounding: at most a unit for each outcome"
    for outcome, p in ((0, 1 / 2), (k // 3, 1 / 6), (k - 1, 1 / 3)):
        start, stop = (
            first_not_below(outcome, lattice.shared_total, end),
            first_not_below(outcome + 1, lattice.shared_total, end),
        )
        weight = int(lattice.lower) + stop - start
        assert int(lattice.lower) <= weight <= int(lattice.upper)
        assert weight / TOTAL == pytest.approx(unclipped(sampler, p), rel=1e-6)


def unclipped(sampler: Sampler[Any], p: float) -> float:
    """Q of an outcome of mass p for the client above, in closed form: none of its outcomes is clipped."""
    k, b, gamma = sampler.family.size, sampler.constants.b, sampler.constants.gamma
    if isinstance(sampler, dc.LinearSampler):
        return float(gamma * p + (1 - gamma) / k)
    return float(max(p * (1 - (k - 3) * b / k), b / k))


def columns(
    lists: list[list[int]],
    counts: list[list[int]] | None = None,
    names: list[str] | None = None,
    weights: list[list[float]] | None = None,
) -> plain.ClientColumns:
    ends = np.cumsum([0, *map(len, lists)])
    text = "".join(names or []).encode()
    return read_only(
        np.arange(len(lists)) if names is None else np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.int64) if names is None else np.cumsum([0, *(len(name.encode()) for name in names)]),
        np.frombuffer(text, dtype=np.uint8).copy(),
        ends,
        np.array([x for each in lists for x in each], dtype=np.uint32),
        np.array([c for each in counts or [] for c in each], dtype=np.int64),
        np.array([w for each in weights or [] for w in each], dtype=np.float64),
    )


Draw = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64], NDArray[np.uint64]]


def drawn(sampler: Sampler[Any], clients: plain.ClientColumns) -> Draw:
    """What compiled code and plain code both draw."""
    compiled, other = by(sparse, sampler, clients), by(plain, sampler, clients)
    assert all((one == two).all() for one, two in zip(compiled, other, strict=True))
    return compiled


def by(code: ModuleType, sampler: Sampler[Any], clients: plain.ClientColumns) -> Draw:
    out, order, within = np.empty(len(clients), np.int64), np.empty(len(clients), np.uint64), np.empty(len(clients))
    plan = plain.make_draw_plan_of_lattice(sampler.lattice, sampler.mixing)
    digest, problem = np.zeros(DIGEST_WORDS, np.uint64), np.zeros(2, np.int64)
    bad = code.draw_outcomes_of_clients(
        plan, clients, code.initial_state_of_run(KEY), 0, len(clients), out, order, within, digest, problem
    )
    assert bad == -1
    return out, order, within, digest


LISTS = st.lists(st.lists(st.integers(0, 199), max_size=150), min_size=1, max_size=8)


WRITTEN = ["0", "7", "-1", "-12", "10", str(2**63 - 1), str(-(2**63)), "1234567890123456789"]
NOT_WRITTEN = [
    "", "-", "-0", "00", "07", "+7", "7.0", " 7", "7 ", "7a", "a7", "\u0663", "\uff17", "1_0", "--1", "1-", "7\0", str(2**63),
    str(-(2**63) - 1), "9" * 19, "9" * 20, "9" * 40, "-" + "9" * 20, str(2**64), str(2**64 + 7),
]  # fmt: skip


def test_a_text_that_is_how_an_integer_is_written_is_that_integer_and_no_other_text_is() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(50), epsilon=1.0)
    texts = columns([[3, 4]] * len(WRITTEN), names=WRITTEN)
    integers = columns([[3, 4]] * len(WRITTEN))._asdict() | {"integers": np.array([int(name) for name in WRITTEN])}
    as_texts, as_integers = drawn(sampler, texts), drawn(sampler, read_only(*integers.values()))
    assert all((one == two).all() for one, two in zip(as_texts, as_integers, strict=True))
    for name in [*WRITTEN, *NOT_WRITTEN]:
        expected = pseudo_random_words_of_client(KEY, name, [3, 4], [1, 1])
        assert drawn(sampler, columns([[3, 4]], names=[name]))[1].tolist() == [expected[1]]
        kind = client_message(name, [3, 4], [1, 1])[0]
        assert kind == (INTEGER_CLIENT if name in WRITTEN else TEXT_CLIENT)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(LISTS, st.randoms(use_true_random=False), st.sampled_from([200, 10**4, 10**8]))
def test_order_does_not_matter_and_the_words_are_those_of_the_standard_library(lists: Any, random: Any, k: int) -> None:
    """Through every way of sorting there is (short, counted in bits, digit by digit), with integers and with texts."""
    sampler = dc.OptimalSampler(dc.Simplex(k), epsilon=4.0)
    shuffled = [random.sample(each, len(each)) for each in lists]
    for names in (None, [f"client {'x' * place}" for place in range(len(lists))]):
        out, order, within, digest = drawn(sampler, columns(lists, names=names))
        again = drawn(sampler, columns(shuffled, names=names))
        assert all((one == two).all() for one, two in zip((out, order, within, digest), again, strict=True))
        sums = InputDigest()
        for row, each in enumerate(lists):
            counts = {x: each.count(x) for x in sorted(set(each))}
            expected = pseudo_random_words_of_client(
                KEY, row if names is None else names[row], list(counts), list(counts.values())
            )
            assert int(order[row]) == expected[1]
            assert within[row] == (expected[2] >> 11) * 2.0**-53
            assert out[row] == sparse_outcomes(sampler, dict(counts), [uniform_62_bit_integer_of_word(expected[0])])[0]
            a, b, c, d = expected[4:]
            sums += InputDigest((a, b, c, d))
        assert tuple(digest.tolist()) == sums.words


def first_words(sampler: Sampler[Any], clients: plain.ClientColumns) -> tuple[int, int]:
    """(outcome, second word) of the first client."""
    out, order, _, _ = drawn(sampler, clients)
    return int(out[0]), int(order[0])


COUNTS = st.one_of(st.integers(0, 5), st.sampled_from([6, 2**31, 2**32, 3 * 2**32, 2**53 + 1, 2**55]))


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), COUNTS), min_size=1, max_size=100), st.randoms(use_true_random=False))
def test_counts_are_added_up_in_integers(records: list[tuple[int, int]], random: Any) -> None:
    """In whatever order, split over however many rows, and times 3: one message, that of the exact sums."""
    sampler = dc.LinearSampler(dc.Simplex(10), epsilon=4.0)
    shuffled = random.sample(records, len(records))
    split = [(x, part) for x, count in records for part in (count // 2, count - count // 2)]
    tripled = [(x, 3 * count) for x, count in records]
    expected = pseudo_random_words_of_client(KEY, 0, [x for x, _ in records], [count for _, count in records])[1]
    for side in (records, shuffled, split, tripled):
        _, second = first_words(sampler, columns([[x for x, _ in side]], [[count for _, count in side]]))
        assert second == expected


WEIGHTS = st.one_of(
    st.integers(0, 5).map(float),
    st.floats(1e-3, 1e3),
    st.floats(0.0, 1e300),
    st.sampled_from([5e-324, 2.0**-1022, 2.0**-44, 2.0**-22, 1.0, 2.0**52 + 1.0]),
)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), WEIGHTS), min_size=1, max_size=100),
    st.randoms(use_true_random=False),
)
def test_weights_are_put_on_the_grid(records: list[tuple[int, float]], random: Any) -> None:
    """In whatever order: the words, and the sample, of the whole numbers that exact arithmetic finds."""
    sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=4.0)
    shuffled = random.sample(records, len(records))
    law = integer_law_of_weighted_records([x for x, _ in records], [weight for _, weight in records])
    found = pseudo_random_words_of_client(KEY, 0, list(law), list(law.values()))
    numbers = {x: float(number) for x, number in law.items()}
    expected = sparse_outcomes(sampler, numbers, [uniform_62_bit_integer_of_word(found[0])])[0], found[1]
    for side in (records, shuffled):
        clients = columns([[x for x, _ in side]], weights=[[weight for _, weight in side]])
        assert first_words(sampler, clients) == expected


@pytest.mark.parametrize("outcomes", [2, 3, 4, 9, 1000])
@pytest.mark.parametrize("nudge", [0.0, 5e-324, 2.0**-60, -(2.0**-60)])
def test_shares_on_a_line_of_the_grid_are_decided_exactly(outcomes: int, nudge: float) -> None:
    """q_x = k + 1/2 up to less than any float can tell: the nudge is a row of its own, here or at another outcome."""
    sampler = dc.LinearSampler(dc.Simplex(outcomes), epsilon=1.0)
    bits = 20 + (outcomes - 1).bit_length()
    unit = 2.0 ** -(bits + 1)
    weights = [unit * (2 * place + 1) for place in range(outcomes - 1)]
    weights.append(1.0 - sum(weights))
    on_the_lines = integer_law_of_weighted_records(range(outcomes), weights)
    for place in (0, outcomes - 1):
        rows, held = list(range(outcomes)), list(weights)
        if nudge > 0.0:
            rows, held = [place, *rows], [nudge, *held]
        elif nudge:
            held[place] += nudge
        law = integer_law_of_weighted_records(rows, held)
        assert nudge <= 0.0 or place == 0 or law != on_the_lines, "what is on a line is rounded up, and below it down"
        second = first_words(sampler, columns([rows], weights=[held]))[1]
        assert second == pseudo_random_words_of_client(KEY, 0, list(law), list(law.values()))[1]


def test_what_counts_as_none_is_decided_exactly() -> None:
    """A share of 2^-44, and less than any float can tell above and below it: whether it counts decides the grid of the others."""
    rows, held = [0, 1, 2], [3.0**20, 1.0, 2.0**44 - 1.0 - 3.0**20]
    laws = []
    for more in ([], [1], [0]):
        law = integer_law_of_weighted_records([*more, *rows], [5e-324] * len(more) + held)
        clients = columns([[*more, *rows]], weights=[[5e-324] * len(more) + held])
        second = first_words(dc.LinearSampler(dc.Simplex(3), epsilon=1.0), clients)[1]
        assert second == pseudo_random_words_of_client(KEY, 0, list(law), list(law.values()))[1]
        laws.append(law)
    assert laws[0] == laws[1] != laws[2]


def test_many_rows_are_decided_exactly() -> None:
    """So many that floating-point sums are off by more than a line: 2^17 rows that are each lost beside the first."""
    rows, held = [0] + [0] * (1 << 17) + [1] * 3, [1.0] + [2.0**-54] * (1 << 17) + [2.0**-30] * 3
    law = integer_law_of_weighted_records(rows, held)
    second = first_words(dc.LinearSampler(dc.Simplex(2), epsilon=1.0), columns([rows], weights=[held]))[1]
    assert second == pseudo_random_words_of_client(KEY, 0, list(law), list(law.values()))[1]


def test_a_count_stands_for_repetitions() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(50), epsilon=4.0)
    repeated = drawn(sampler, columns([[7] * 3 + [2] * 4 + [49]] * 200))
    counted = drawn(sampler, columns([[2, 7, 49, 7, 5]] * 200, [[4, 1, 1, 2, 0]] * 200))
    assert (repeated[0] == counted[0]).all()
    assert len(set(repeated[0].tolist())) > 1


@pytest.mark.parametrize(
    ("records", "counts", "weights", "place", "why"),
    [
        ([1, 3, 2], None, None, 1, REFUSED_OUTSIDE),
        ([0] * 100 + [3], None, None, 100, REFUSED_OUTSIDE),
        ([1, 3], [1, 1], None, 1, REFUSED_OUTSIDE),
        ([1, 2], [-1, 1], None, 0, REFUSED_NEGATIVE),
        ([1, 2], [1, -(2**63)], None, 1, REFUSED_NEGATIVE),
        ([1, 2], [2**62, 2**62], None, 1, REFUSED_OVERFLOW),
        ([1, 3], None, [1.0, 1.0], 1, REFUSED_OUTSIDE),
        ([1, 2], None, [1.0, float("nan")], 1, REFUSED_NAN),
        ([1, 2], None, [-1.0, 1.0], 0, REFUSED_NEGATIVE),
        ([1, 2], None, [1.0, float("inf")], 1, REFUSED_INFINITE),
        ([1, 2], None, [1e308, 1e308], 0, REFUSED_OVERFLOW),
    ],
)
def test_a_bad_record_is_pointed_at(
    records: list[int], counts: list[int] | None, weights: list[float] | None, place: int, why: int
) -> None:
    clients = columns(
        [[0, 1], records],
        None if counts is None else [[1, 1], counts],
        weights=None if weights is None else [[1.0, 1.0], weights],
    )
    assert refused(clients) == (1, place, why)


def test_more_records_than_can_be_added_up_are_refused() -> None:
    """The lengths alone: nothing is read."""
    small = columns([[0, 1], [1]])
    clients = read_only(*small[:3], np.array([0, 2, 2 + 2**31]), *small[4:])
    assert refused(clients) == (1, 0, REFUSED_OVERFLOW)


def refused(clients: plain.ClientColumns) -> tuple[int, int, int]:
    """(which client, which of its records, why), by both."""
    sampler = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
    plan = plain.make_draw_plan_of_lattice(sampler.lattice, sampler.mixing)
    found = []
    for code in (sparse, plain):
        problem, empty = np.zeros(2, np.int64), np.empty(0)
        none, digest = empty.astype(np.uint64), np.zeros(DIGEST_WORDS, np.uint64)
        bad = code.draw_outcomes_of_clients(
            plan, clients, code.initial_state_of_run(KEY), 0, 2, np.empty(2, np.int64), none, empty, digest, problem
        )
        found.append((bad, int(problem[0]), int(problem[1])))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.slow
def test_draws_follow_the_law() -> None:
    """40,000 clients with the same three records: chi-squared within the 1e-6 quantile of its 9 degrees of freedom."""
    sampler = dc.OptimalSampler(dc.Simplex(10), epsilon=2.0)
    out = drawn(sampler, columns([[1, 1, 4]] * 40_000))[0]
    expected = sampler.output(sampler.family.law(counts=[0, 2, 0, 0, 1, 0, 0, 0, 0, 0])) * 40_000
    seen = np.bincount(out, minlength=10)
    assert ((seen - expected) ** 2 / expected).sum() < 46.0
