"""The kernels of a GPU: ChaCha20 by RFC 8439, and draws from exactly the integers that are shown.

Where Triton is installed and there is no GPU, they run in Triton's interpreter. `python -m benchmarks torch` checks far more on a GPU.
"""

import math
import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
pytest.importorskip("triton", reason="Triton comes with torch's build for CUDA, or alone: pip install triton")

import triton
import triton.language as tl
from benchmarks.torch import (
    FORK,
    RFC_8439,
    hard_references,
    keystream,
    outcomes_of_integers,
    portions_hold_their_totals,
)

from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError
from discreet.release import TOTAL, SystemEntropy
from discreet.release._randomness import FixedIntegers
from discreet.torch import _gpu as gpu, _host as host, _portions as portions, _tiles as tiles, release, weights
from discreet.torch._host import make_terms, read_tensor_rows
from tests.soaking import wide

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy, which interprets them, is told of every NaN
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LONG = [2_100, 9_001] if DEVICE == "cuda" else []  # the interpreter has no loops whose ends are computed


LAWS: list[tuple[float, float | None]] = [(1.0, None), (6.0, None), (2.0, 5.0)]
ALL_ROWS = [(size, *law, given) for size in (2, 7, 50, 300, *LONG) for law in LAWS for given in (False, True)]
EACH_PAIR_OF_ROWS = [  # of a size and a law, and of either with a reference or without; long rows take long
    *((size, *law, (place + size) % 2 == 0) for size in (2, 7, 50, *LONG) for place, law in enumerate(LAWS)),
    (300, 1.0, None, True),
    (300, 2.0, 5.0, False),
]


def needs_gpu(test: Any) -> Any:
    """A test for a soak on a machine with a GPU; `python -m benchmarks torch` checks the same there."""
    return pytest.mark.soak(pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")(test))


@pytest.mark.parametrize(("key", "nonce", "first", "expected"), RFC_8439)
def test_the_keystream_is_that_of_rfc_8439(key: str, nonce: str, first: int, expected: str) -> None:
    found = keystream(bytes.fromhex(key), bytes.fromhex(nonce), first, 8)
    assert found.cpu().numpy().tobytes().hex() == expected


def test_blocks_of_a_keystream_follow_each_other_and_no_word_comes_twice() -> None:
    key, nonce = bytes(range(32)), bytes(12)
    whole = keystream(key, nonce, 0, 2_500)
    assert torch.equal(whole[1_600:], keystream(key, nonce, 200, 900))
    assert len(torch.unique(whole)) == len(whole)


def few_rows(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many rows read their words: 512, or 32 where an interpreter would take seconds for so many."""
    assert gpu._FEW == 512
    few = 512 if DEVICE == "cuda" else wide(512, 32)
    monkeypatch.setattr(gpu, "_FEW", few)
    monkeypatch.setattr(gpu, "BUFFERS", type(gpu.BUFFERS)())  # which are made for so few
    return few


def test_every_call_reads_a_key_of_its_own_and_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 512 rows read their words, more read 32 bytes; two calls never read the same."""
    read: list[bytes] = []

    def noted(count: int) -> bytes:
        read.append(os.urandom(count))
        return read[-1]

    monkeypatch.setattr(gpu, "entropy_bytes", noted)
    few = few_rows(monkeypatch)
    cases = ((1, 8), (few, 8 * few), (few + 1, 32), (few + 30, 32))
    for count, asked in cases:
        rows, terms = (
            read_tensor_rows(torch.zeros((count, 50), device=DEVICE), None, None, 1.0),
            make_terms(epsilon=1.0),
        )
        found = [gpu.draw_outcomes_on_gpu(rows, terms, SystemEntropy()) for _ in range(2)]
        assert [len(each) for each in read[-2:]] == [asked, asked]
        assert count == 1 or not torch.equal(*found)
    assert len(set(read)) == len(read) == 2 * len(cases)


def test_outcomes_of_a_keystream_are_those_of_its_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "entropy_bytes", lambda count: bytes(range(count)))
    many = few_rows(monkeypatch) + 88
    rows, terms = read_tensor_rows(torch.randn((many, 9), device=DEVICE), None, None, 1.0), make_terms(epsilon=3.0)
    words = keystream(bytes(range(32)), bytes(12), 0, many).cpu().numpy().view(np.uint64)
    integers = (words >> np.uint64(2)).astype(np.int64)
    found = gpu.draw_outcomes_on_gpu(rows, terms, SystemEntropy())
    assert torch.equal(found, gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers)))


def test_more_rows_than_a_counter_is_made_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_MOST_ROWS", 5)
    rows = read_tensor_rows(torch.zeros((5, 3), device=DEVICE), None, None, 1.0)
    with pytest.raises(DiscreetError, match="logits has 5 rows"):
        gpu.draw_outcomes_on_gpu(rows, make_terms(epsilon=1.0), SystemEntropy())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "epsilon", "upper", "referenced"), wide(ALL_ROWS, EACH_PAIR_OF_ROWS))
def test_rows_are_drawn_from_the_integers_that_are_shown(
    size: int, epsilon: float, upper: float | None, referenced: bool
) -> None:
    """Sums, ratios and places without tolerance; the distance from the projection as documented."""
    generator = torch.Generator().manual_seed(size)
    p = 3 * torch.randn((6, size), generator=generator)
    p[1], p[2], p[3] = -1e4, -math.inf, 0.0
    p[1, 0], p[2, -1] = 0.0, 0.0
    reference = 2 * torch.randn(size, generator=generator).to(DEVICE) if referenced else None
    rows, terms = read_tensor_rows(p.to(DEVICE), None, reference, 1.0), make_terms(epsilon=epsilon, upper=upper)
    solved = gpu.launch_with_all_rows_solved(rows, terms)
    lower, excess, fill = solved.compute_lower_bounds_excess_and_fill()
    found = lower + excess + fill
    assert (found.sum(1) == TOTAL).all()
    assert (lower == lower[0]).all()
    pairs = zip(found.max(0).values.tolist(), found.min(0).values.tolist(), strict=True)
    assert max(Fraction(most, least) for most, least in pairs) <= exp_lower(epsilon)
    assert np.abs(found.cpu().numpy() / TOTAL - host.output_laws_on_host(rows, terms)).sum(1).max() < 2e-5
    assert portions_hold_their_totals(solved)
    integers = np.random.default_rng(size).integers(0, TOTAL, 6)
    integers[:2] = 0, TOTAL - 1
    place = outcomes_of_integers(solved, torch.from_numpy(integers).to(DEVICE))
    assert torch.equal(gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers)), place)


@triton.jit  # type: ignore[untyped-decorator]
def bound_portion_totals(z, base, ratio, out, EACH: tl.constexpr, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store what `bound_portion_totals` says of portions of EACH outcomes."""
    lanes = tl.arange(0, LANES)
    each = tl.load(out).to(tl.int32) * 0 + EACH
    surely, least, fullest = portions.bound_portion_totals(
        tl.load(z + lanes), tl.load(base), tl.load(ratio), each, each + portions.MORE_ROUNDINGS
    )
    tl.store(out + lanes, surely)
    tl.store(out + LANES + lanes, least)
    tl.store(out + 2 * LANES + lanes, fullest)


@pytest.mark.parametrize(
    ("each", "epsilon"),
    wide(
        [(each, epsilon) for each in (1, 3, 126, 512) for epsilon in (0.01, 1.0, 8.0, 30.0)],
        [(1, 8.0), (126, 0.01), (512, 1.0), (3, 30.0)],
    ),
)
def test_the_bounds_of_portions_hold_for_sums_in_float32(each: int, epsilon: float) -> None:
    """surely <= sum L <= least and fullest <= sum U, in exact integers, for masses over many powers of two and sums that were rounded."""
    rng, lanes = np.random.default_rng(each), 64
    ratio = np.float32(host._float32_below(exp_lower(epsilon) * (1 - Fraction(1, 1 << 22))))
    for spread in (0.0, 3.0, 60.0):
        masses = np.exp2(-spread * rng.random((each, lanes)) * 2 * rng.random(lanes)).astype(np.float32)
        masses[:, 0], masses[:, 1] = 0.0, np.float32(1.0) + np.arange(each) % 2 * np.float32(2.0**-23)
        masses[rng.random(masses.shape) < 0.1] = 0.0
        z = np.zeros(lanes, dtype=np.float32)
        for row in masses:  # in the order of the kernel
            z += row
        base = np.float32(TOTAL * math.exp(-epsilon / 2)) / z.sum(dtype=np.float32)
        low = np.where(masses > 0, np.maximum(np.floor(masses * base), 1), 0)
        high = np.minimum(low * ratio, np.float32(TOTAL))
        low_sums, high_sums = ([sum(int(x) for x in column) for column in table.T] for table in (low, high))
        given = (torch.tensor(numbers, device=DEVICE) for numbers in (z, [base], [ratio]))
        out = torch.zeros((3, lanes), dtype=torch.int64, device=DEVICE)
        bound_portion_totals[(1,)](*given, out, each, lanes)
        for surely, least, fullest, low_sum, high_sum in zip(*out.tolist(), low_sums, high_sums, strict=True):
            assert surely <= low_sum <= least
            assert fullest <= high_sum
        assert out[:, 0].tolist() == [0, 0, 0]
        nearly = np.minimum((1 - 1e-4) * float(ratio) * out[1].cpu().numpy(), TOTAL)
        assert (out[2].cpu().numpy() >= nearly)[z > z.max() / 1000].all()


@triton.jit  # type: ignore[untyped-decorator]
def order_independent_sum(numbers, out, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Store the sum by `order_independent_sum`."""
    tl.store(out, tiles.order_independent_sum(tl.load(numbers + tl.arange(0, LANES))))


def test_the_sum_of_a_reference_is_the_same_in_every_order() -> None:
    """Also of numbers whose sums in float32 differ: of many powers of two, equal, denormal, almost all 0."""
    rng, lanes = np.random.default_rng(5), 1024
    differing = 0
    for place, numbers in enumerate((
        rng.random(lanes), np.exp2(-60 * rng.random(lanes)), np.full(lanes, 1.0 - 2.0**-24), np.exp2(-149 + 10 * rng.random(lanes)),
        np.eye(lanes)[3] * 7e4, np.exp2(40 * rng.random(lanes)), np.zeros(lanes),
    )):  # fmt: skip
        given = numbers.astype(np.float32)
        sums = []
        for _ in range(4):
            out = torch.zeros(1, dtype=torch.float32, device=DEVICE)
            order_independent_sum[(1,)](torch.from_numpy(given).to(DEVICE), out, lanes)
            sums.append(float(out[0]))
            plain = np.cumsum(given, dtype=np.float32)[-1]
            given = rng.permutation(given)
            differing += plain != np.cumsum(given, dtype=np.float32)[-1]
        assert len(set(sums)) == 1, place
        exact = sum(map(Fraction, given.tolist()))
        assert abs(Fraction(sums[0]) - exact) <= exact / 2**23 + Fraction(1, 2**149)
    assert differing >= 4, "the order would matter in float32"


@needs_gpu
@pytest.mark.parametrize("size", [2_100, 9_001, 100_000])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 12.0])
def test_references_of_very_different_portions_keep_the_promise(size: int, epsilon: float) -> None:
    """Portions without mass, with so little that they are drawn as one, and with almost all of it."""
    generator = torch.Generator().manual_seed(size)
    reference = 2 * torch.randn(size, generator=generator).to(DEVICE)
    p = 3 * torch.randn((20, size), generator=generator).to(DEVICE)
    p[1], p[2], p[3] = -1e4, -math.inf, 0.0
    p[1, 0], p[2, -1] = 0.0, 0.0
    in_one, cut = 0, 0
    for public in hard_references(reference):
        rows, terms = read_tensor_rows(p, None, public, 1.0), make_terms(epsilon=epsilon)
        solved = gpu.launch_with_all_rows_solved(rows, terms)
        lower, excess, fill = solved.compute_lower_bounds_excess_and_fill()
        found = lower + excess + fill
        assert (found.sum(1) == TOTAL).all()
        assert portions_hold_their_totals(solved)
        pairs = zip(found.max(0).values.tolist(), found.min(0).values.tolist(), strict=True)
        assert max(Fraction(most, least) for most, least in pairs if least) <= exp_lower(epsilon)
        assert ((lower > 0) == (found > 0)).all()
        integers = SystemEntropy().integers(20)
        drawn = gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
        assert torch.equal(drawn, outcomes_of_integers(solved, torch.from_numpy(integers).to(DEVICE)))
        in_one += int((solved.portions[:, 1, 0] < 0).any())
        cut += int((solved.portions[:, 1, 0] >= 0).any())
    assert in_one > 0
    assert cut > 0


@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_no_distribution_is_refused(size: int, wrong: float) -> None:
    p = torch.zeros((70, size), device=DEVICE)
    p[69] = wrong
    with pytest.raises(DiscreetError, match=r"logits\[69\]"):
        gpu.draw_outcomes_on_gpu(read_tensor_rows(p, None, None, 1.0), make_terms(epsilon=1.0), SystemEntropy())


@needs_gpu
@pytest.mark.parametrize("shape", [(600, 100), (40, 100_000), (600, 20_000)])
@pytest.mark.parametrize("referenced", [False, True])
def test_a_call_waits_for_what_was_asked_before_and_ends_when_it_is_done(
    shape: tuple[int, int], referenced: bool
) -> None:
    """On the default stream and on another one, rows that are still being computed are checked and drawn as they will be."""
    slow = torch.randn((4_000, 4_000), device="cuda")
    terms = make_terms(epsilon=8.0)
    integers = SystemEntropy().integers(shape[0])
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            expected = None
            for bad in (False, True):
                generator = torch.Generator(device="cuda").manual_seed(shape[1])
                p = torch.full(shape, math.nan, device="cuda")
                m = 3 * torch.randn(shape, generator=generator, device="cuda") if referenced else None
                ready = 3 * torch.randn(shape, generator=generator, device="cuda")
                ready[shape[0] // 2] = math.nan if bad else 0.0
                torch.cuda.synchronize()
                for _ in range(20):
                    slow @ slow
                p.copy_(ready)
                rows = read_tensor_rows(p, None, m, 1.0)
                if bad:
                    with pytest.raises(DiscreetError, match=rf"logits\[{shape[0] // 2}\]"):
                        gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
                    continue
                found = gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
                with torch.cuda.stream(torch.cuda.Stream()):  # which waits for nothing: the call has ended
                    seen = found.clone()
                    torch.cuda.current_stream().synchronize()
                expected = gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
                torch.cuda.synchronize()
                assert torch.equal(seen, expected)


@needs_gpu
@pytest.mark.parametrize("shape", [(8, 100), (100, 100), (100, 5_000)])
def test_a_call_is_not_captured_in_a_cuda_graph(shape: tuple[int, int]) -> None:
    """Each replay would draw with the same randomness."""
    logits, graph = torch.zeros(shape, device="cuda"), torch.cuda.CUDAGraph()
    release(logits=logits, epsilon=1.0)
    with torch.cuda.graph(graph):
        doubled = 2.0 * logits
        for call in (release, weights):
            with pytest.raises(DiscreetError, match="CUDA graph"):
                call(logits=doubled, epsilon=1.0)
    graph.replay()
    assert release(logits=doubled, epsilon=1.0).shape == shape[:1]


@needs_gpu
def test_both_processes_of_a_fork_draw_for_themselves() -> None:
    told = subprocess.run([sys.executable, "-c", FORK], check=True, capture_output=True, text=True).stdout
    first, second = told.split()
    assert first != second
