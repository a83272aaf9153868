"""Plain code draws what compiled code draws, bit for bit: outcomes, order, places in cells, digest, and what it refuses."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet._base.kernels import read_only_view
from discreet.mechanisms._sampler import Sampler
from discreet.release import _client_draws as plain, _client_draws_compiled as sparse
from discreet.release._client_draws import ClientColumns, make_draw_plan_of_lattice
from discreet.release._randomness import DIGEST_WORDS, Question, Secret
from tests.soaking import wide

KEY = Secret(bytes(range(32))).run_key("ab" * 32, 3, Question(value="v"))
SAMPLERS = (dc.OptimalSampler, dc.LinearSampler)

SIZES = st.one_of(st.integers(1, 12), st.sampled_from([64, 1000, 10**8, 2**32 - 4]))
COUNTS = st.one_of(st.integers(0, 6), st.integers(0, 2**40), st.sampled_from([2**32 - 1, 2**32, 2**62, 2**63 - 1, -1]))
WEIGHTS = st.one_of(
    st.floats(0.0, 10.0),
    st.floats(min_value=0.0, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 2.0**-44, 0.1, 0.2, 0.3, 1e308, float("nan"), float("inf"), -1.0, -0.5]),
)


NAMES = st.one_of(
    st.text(max_size=30), st.integers(-(2**65), 2**65).map(str), st.text(st.sampled_from("-+01 9"), max_size=22)
)
NAMES = st.one_of(
    st.text(max_size=30),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(
        ["0", "-0", "007", "+1", "--1", "1_0", " 1", "1 ", "-", "²", "١", str(-(2**63)), str(2**63), "-9" * 9]
    ),
)


def read_only(*arrays: Any) -> ClientColumns:
    """Columns as the engines give them, for which compiled code is kept; others would be compiled for tests alone."""
    return ClientColumns(*map(read_only_view, arrays))


@st.composite
def clients_on(draw: st.DrawFn, size: int) -> ClientColumns:
    """Clients of any kind on so many outcomes, some of whose records may be bad."""
    outcome = st.integers(0, size - 1)
    if draw(st.integers(0, 9)) == 0:
        outcome = st.one_of(outcome, st.integers(size, 2**32 - 1))
    lists = draw(st.lists(st.lists(outcome, max_size=40), min_size=1, max_size=6))
    total = sum(map(len, lists))
    kind = draw(st.sampled_from(["records", "counts", "weights"]))
    counts = draw(st.lists(COUNTS, min_size=total, max_size=total)) if kind == "counts" else []
    weights = draw(st.lists(WEIGHTS, min_size=total, max_size=total)) if kind == "weights" else []
    texts = draw(st.booleans())
    integers = [] if texts else [draw(st.integers(-(2**63), 2**63 - 1)) for _ in lists]
    encoded = [draw(NAMES).encode() for _ in lists] if texts else []
    return read_only(
        np.array(integers, dtype=np.int64),
        np.cumsum([0, *map(len, encoded)]) if texts else np.empty(0, dtype=np.int64),
        np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(),
        np.cumsum([0, *map(len, lists)]),
        np.array([x for each in lists for x in each], dtype=np.uint32),
        np.array(counts, dtype=np.int64),
        np.array(weights, dtype=np.float64),
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[Sampler[Any], ClientColumns]:
    """A sampler, and clients of any kind."""
    size = draw(SIZES)
    epsilon = draw(st.sampled_from([0.05, 1.0, 4.0, 12.0, 30.0]))
    return draw(st.sampled_from(SAMPLERS))(dc.Simplex(size), epsilon=epsilon), draw(clients_on(size))


def told(code: ModuleType, sampler: Sampler[Any], clients: ClientColumns, first: int, last: int) -> Any:
    """All that a draw says: of a refused row which it is, where and why; else everything that is drawn."""
    out, order, within = np.zeros(len(clients), np.int64), np.zeros(len(clients), np.uint64), np.zeros(len(clients))
    digest, problem = np.full(DIGEST_WORDS, 2**63 + 5, np.uint64), np.zeros(2, np.int64)
    plan = make_draw_plan_of_lattice(sampler.lattice, sampler.mixing)
    bad = code.draw_outcomes_of_clients(
        plan, clients, code.initial_state_of_run(KEY), first, last, out, order, within, digest, problem
    )
    if bad >= 0:
        return bad, problem.tolist()
    return out.tolist(), order.tolist(), within.tolist(), digest.tolist()


@pytest.mark.slow
@settings(max_examples=wide(600, 60), deadline=None)
@given(problems(), st.data())
def test_the_two_say_the_same_of_any_clients(problem: tuple[Sampler[Any], ClientColumns], data: st.DataObject) -> None:
    sampler, clients = problem
    first = data.draw(st.integers(0, len(clients) - 1))
    last = data.draw(st.integers(first + 1, len(clients)))
    assert told(plain, sampler, clients, first, last) == told(sparse, sampler, clients, first, last)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 200, 10**5])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
@pytest.mark.parametrize("mechanism", SAMPLERS)
def test_thousands_of_clients(size: int, epsilon: float, mechanism: type[Sampler[Any]]) -> None:
    """Records of unlike number, from none to more than a vector passes over at once."""
    rng = np.random.default_rng(size)
    lengths = np.concatenate([rng.integers(0, 12, 3000), rng.integers(0, 300, 30), [0, 1, 9000]])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    outcomes = np.minimum(rng.geometric(5 / size if size > 5 else 0.5, ends[-1]) - 1, size - 1).astype(np.uint32)
    none = np.empty(0, dtype=np.int64)
    clients = read_only(np.arange(len(lengths)), none, np.empty(0, np.uint8), ends, outcomes, none, np.empty(0))
    sampler = mechanism(dc.Simplex(size), epsilon=epsilon)
    assert told(plain, sampler, clients, 0, len(clients)) == told(sparse, sampler, clients, 0, len(clients))
