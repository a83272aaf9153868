"""The oracles' reports, enumerated: they are epsilon-LDP, p and q are what is stated, and the simulation draws from that law."""

import itertools
import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.audit import black_box_audit
from discreet.research.experiments._population import (
    FrequencyOracle,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from tests.audit.test_field_bugs import installed, run_there

Law = dict[Any, float]
ORACLES = [UnaryEncoding, LocalHashing, SubsetSelection]


def bernoulli(chances: list[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every 0-1 vector with its probability under independent bits."""
    for bits in itertools.product((0, 1), repeat=len(chances)):
        yield bits, math.prod(c if bit else 1.0 - c for bit, c in zip(bits, chances, strict=True))


def reports(oracle: FrequencyOracle, x: int) -> tuple[Law, Law]:
    """The law of everything a client with outcome x sends, and the law of the support it stands for."""
    k, grow = oracle.outcomes, math.exp(oracle.epsilon)
    match oracle:
        case UnaryEncoding():
            flipped = 1.0 / (grow + 1.0)
            sent: Law = dict(bernoulli([0.5 if v == x else flipped for v in range(k)]))
            return sent, sent
        case LocalHashing():
            sent, supported = {}, Counter[Any]()
            g = oracle.bucket_count
            for h in itertools.product(range(g), repeat=k):
                for y in range(g):
                    chance = (grow if y == h[x] else 1.0) / (grow + g - 1.0) / g**k
                    sent[h, y] = chance
                    supported[tuple(int(h[v] == y) for v in range(k))] += chance
            return sent, dict(supported)
        case SubsetSelection():
            sets = [
                tuple(int(v in chosen) for v in range(k))
                for chosen in itertools.combinations(range(k), oracle.subset_size)
            ]
            weights = [grow if bits[x] else 1.0 for bits in sets]
            sent = {bits: weight / sum(weights) for bits, weight in zip(sets, weights, strict=True)}
            return sent, sent
    raise AssertionError(oracle)


SMALL = [
    *(UnaryEncoding(4, epsilon=epsilon) for epsilon in (0.3, 2.0)),
    *(LocalHashing(3, epsilon=epsilon) for epsilon in (0.3, 0.9, 1.2)),
    *(SubsetSelection(5, epsilon=epsilon) for epsilon in (0.1, 0.5, 3.0)),
]


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_reports_are_private_and_use_the_whole_budget(oracle: FrequencyOracle) -> None:
    first, second = reports(oracle, 0)[0], reports(oracle, 1)[0]
    assert math.fsum(first.values()) == pytest.approx(1.0, rel=1e-12)
    assert first.keys() == second.keys()
    assert max(math.log(first[y] / second[y]) for y in first) == pytest.approx(oracle.epsilon, rel=1e-12)


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_p_and_q_are_those_of_the_reports(oracle: FrequencyOracle) -> None:
    supported = reports(oracle, 1)[1]
    for v in range(oracle.outcomes):
        chance = math.fsum(probability for bits, probability in supported.items() if bits[v])
        assert chance == pytest.approx(oracle.own_support_chance if v == 1 else oracle.other_support_chance, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 0.9, 1.2])
def test_an_ideal_hash_supports_outcomes_independently(epsilon: float) -> None:
    """What allows local hashing to be simulated with binomials: the joint law of a support is a product."""
    oracle = LocalHashing(3, epsilon=epsilon)
    supported = reports(oracle, 2)[1]
    for bits, chance in bernoulli(
        [oracle.other_support_chance, oracle.other_support_chance, oracle.own_support_chance]
    ):
        assert supported.get(bits, 0.0) == pytest.approx(chance, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_supports_are_drawn_from_the_enumerated_law(oracle: FrequencyOracle) -> None:
    """One client at a time, so that the whole joint law is seen: every support within 6 standard deviations."""
    rng, times = np.random.default_rng(1), 6_000
    drawn = Counter(tuple(oracle.draw_support_counts(np.array([1]), rng).tolist()) for _ in range(times))
    law = reports(oracle, 1)[1]
    assert drawn.keys() <= law.keys()
    for bits, chance in law.items():
        assert abs(drawn[bits] - times * chance) <= 6.0 * math.sqrt(times * chance * (1.0 - chance)) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_estimates_are_unbiased_and_have_the_stated_variance(kind: type[FrequencyOracle], epsilon: float) -> None:
    oracle, times = kind(6, epsilon=epsilon), 4_000
    raw = np.repeat(np.arange(5), [40, 20, 10, 5, 5])  # the last outcome is held by nobody
    shares, rng = np.bincount(raw, minlength=6) / len(raw), np.random.default_rng(2)
    found = np.array([oracle.simulate_share_estimates(raw, rng) for _ in range(times)])
    variance = oracle.share_variance_times_clients(shares) / len(raw)
    assert (np.abs(found.mean(axis=0) - shares) <= 5.0 * np.sqrt(variance / times)).all()
    assert found.var(axis=0) == pytest.approx(variance, rel=7.0 * math.sqrt(2.0 / times))


def test_many_clients_are_drawn_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.research.experiments._population._BLOCK", 64)
    oracle, raw = SubsetSelection(10, epsilon=0.5), np.arange(1_000) % 10
    supports = oracle.draw_support_counts(raw, np.random.default_rng(3))
    assert supports.sum() == oracle.subset_size * len(raw)


@pytest.mark.parametrize(("outcomes", "epsilon"), [(5, 1.0), (10, 2.0), (104, 8.0)])
def test_a_subset_of_one_is_the_linear_sampler(outcomes: int, epsilon: float) -> None:
    oracle, mixed = SubsetSelection(outcomes, epsilon=epsilon), dc.LinearSampler(dc.Simplex(outcomes), epsilon=epsilon)
    held = mixed.output(np.eye(outcomes)[3])
    assert oracle.subset_size == 1
    assert oracle.own_support_chance == pytest.approx(held[3], rel=1e-12)
    assert oracle.other_support_chance == pytest.approx(held[0], rel=1e-12)


@pytest.mark.parametrize("kind", ORACLES)
def test_extreme_budgets(kind: type[FrequencyOracle]) -> None:
    raw, rng = np.array([0, 1, 1, 2]), np.random.default_rng(4)
    for epsilon in (1e-6, 40.0, 800.0):
        oracle = kind(3, epsilon=epsilon)
        assert 0.0 <= oracle.other_support_chance < oracle.own_support_chance <= 1.0
        assert np.isfinite(oracle.simulate_share_estimates(raw, rng)).all()


@pytest.mark.parametrize("kind", ORACLES)
def test_bad_input_is_named(kind: type[FrequencyOracle]) -> None:
    with pytest.raises(dc.DiscreetError, match=r"epsilon = nan is not in"):
        kind(3, epsilon=math.nan)
    with pytest.raises(dc.DiscreetError, match=r"outcomes = 1 is less than 2"):
        kind(1, epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="raw holds the outcome 3; outcomes are 0 to 2"):
        kind(3, epsilon=1.0).simulate_share_estimates(np.array([0, 3]), np.random.default_rng(0))


LIBRARY = """
import sys
import numpy as np
import multi_freq_ldpy
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
assert "{folder}" in multi_freq_ldpy.__file__
supports = np.zeros((2, 2, {count}, 5), dtype=np.uint8)
for value in range(2):
    for row in range({count}):
        supports[0, value, row] = UE_Client(value, 5, {epsilon})
        supports[1, value, row, SS_Client(value, 5, {epsilon})] = 1
sys.stdout.buffer.write(supports.tobytes())
"""


def served(drawn: Any) -> Any:
    """A mechanism for two calls on each value: first one half of what was drawn for it, then the other."""
    halves = [iter(np.split(rows, 2)) for rows in drawn]
    return lambda value, n: next(halves[value])[:n]


@pytest.mark.soak
def test_another_library_reports_alike() -> None:
    """multi-freq-ldpy's clients pass an audit, and their supports have our p, q and, between two outcomes, our joint law.

    It is installed from the network, and draws without a seed: seven standard deviations are exceeded once in 10^11 comparisons.
    """
    count, epsilon = 12_000, 0.7
    with tempfile.TemporaryDirectory() as name:
        folder = installed(Path(name), "multi-freq-ldpy==0.2.5", "xxhash<4")
        done = run_there(LIBRARY.format(folder=folder, count=count, epsilon=epsilon), folder)
    drawn = np.frombuffer(done.stdout, dtype=np.uint8).reshape(2, 2, count, 5)
    for theirs, oracle in zip(
        drawn, (UnaryEncoding(5, epsilon=epsilon), SubsetSelection(5, epsilon=epsilon)), strict=True
    ):
        assert not black_box_audit(served(theirs), [0, 1], epsilon=epsilon, draws=count).is_refuted
        law = reports(oracle, 1)[1]
        for v, w in itertools.combinations_with_replacement(range(5), 2):
            chance = math.fsum(probability for bits, probability in law.items() if bits[v] and bits[w])
            together = (theirs[1, :, v] & theirs[1, :, w]).mean()
            assert together == pytest.approx(chance, abs=7.0 * math.sqrt(chance / count))
