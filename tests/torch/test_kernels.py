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

from benchmarks.torch import FORK, RFC_8439, keystream

from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError
from discreet.release import TOTAL, SystemEntropy
from discreet.release._randomness import FixedIntegers
from discreet.torch import _gpu as gpu, _host as host, release, weights
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
        found = [gpu.draw_outcomes(rows, terms, SystemEntropy()) for _ in range(2)]
        assert [len(each) for each in read[-2:]] == [asked, asked]
        assert count == 1 or not torch.equal(*found)
    assert len(set(read)) == len(read) == 2 * len(cases)


def test_outcomes_of_a_keystream_are_those_of_its_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "entropy_bytes", lambda count: bytes(range(count)))
    many = few_rows(monkeypatch) + 88
    rows, terms = read_tensor_rows(torch.randn((many, 9), device=DEVICE), None, None, 1.0), make_terms(epsilon=3.0)
    words = keystream(bytes(range(32)), bytes(12), 0, many).cpu().numpy().view(np.uint64)
    integers = (words >> np.uint64(2)).astype(np.int64)
    found = gpu.draw_outcomes(rows, terms, SystemEntropy())
    assert torch.equal(found, gpu.draw_outcomes(rows, terms, FixedIntegers(integers)))


def test_more_rows_than_a_counter_is_made_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_MOST_ROWS", 5)
    rows = read_tensor_rows(torch.zeros((5, 3), device=DEVICE), None, None, 1.0)
    with pytest.raises(DiscreetError, match="logits has 5 rows"):
        gpu.draw_outcomes(rows, make_terms(epsilon=1.0), SystemEntropy())


def _place(part: torch.Tensor, integer: torch.Tensor) -> torch.Tensor:
    return torch.searchsorted(torch.cumsum(part, 1), integer[:, None].contiguous(), right=True)[:, 0]


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
    lower, excess, fill = gpu.weight_parts(rows, terms)
    found = lower + excess + fill
    assert (found.sum(1) == TOTAL).all()
    assert (lower == lower[0]).all()
    pairs = zip(found.max(0).values.tolist(), found.min(0).values.tolist(), strict=True)
    assert max(Fraction(most, least) for most, least in pairs) <= exp_lower(epsilon)
    assert np.abs(found.cpu().numpy() / TOTAL - host.output(rows, terms)).sum(1).max() < 2e-5
    integers = np.random.default_rng(size).integers(0, TOTAL, 6)
    integers[:2] = 0, TOTAL - 1
    uniform, shared = torch.from_numpy(integers).to(DEVICE), lower.sum(1)
    rest = TOTAL - 1 - uniform if referenced else uniform - shared
    place = torch.where(uniform < shared, _place(lower, uniform), -1)
    place = torch.where((place < 0) & (rest < excess.sum(1)), _place(excess, rest), place)
    place = torch.where(place < 0, _place(fill, rest - excess.sum(1)), place)
    assert torch.equal(gpu.draw_outcomes(rows, terms, FixedIntegers(integers)), place)


@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_row_that_is_no_distribution_is_refused(size: int, wrong: float) -> None:
    p = torch.zeros((70, size), device=DEVICE)
    p[69] = wrong
    with pytest.raises(DiscreetError, match=r"logits\[69\]"):
        gpu.draw_outcomes(read_tensor_rows(p, None, None, 1.0), make_terms(epsilon=1.0), SystemEntropy())


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
                        gpu.draw_outcomes(rows, terms, FixedIntegers(integers))
                    continue
                found = gpu.draw_outcomes(rows, terms, FixedIntegers(integers))
                with torch.cuda.stream(torch.cuda.Stream()):  # which waits for nothing: the call has ended
                    seen = found.clone()
                    torch.cuda.current_stream().synchronize()
                expected = gpu.draw_outcomes(rows, terms, FixedIntegers(integers))
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
