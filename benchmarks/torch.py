"""Private outcomes of tensors on a GPU: `discreet.torch.release` beside a softmax, a Gumbel draw, and the same law written plainly.

`python -m benchmarks torch` first checks, on the device, what the guarantee says of integers and of randomness; then it prints a table. Times
are medians over calls from the outside (the one synchronisation of `release`, its key and the launches are in them), on inputs that take
turns so that none is found in cache. "at least" is the time in which the inputs can be read once, by the bandwidth of a copy of 4 GiB on the
same device. Where there is no GPU it measures the CPU.
"""

import math
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from discreet._base.numerics import exp_lower
from discreet.errors import DiscreetError
from discreet.release import TOTAL, SystemEntropy
from discreet.release._randomness import FixedIntegers
from discreet.torch import _host as host, release, weights
from discreet.torch._host import make_terms, read_tensor_rows
from discreet.torch._sampling import draw_outcomes

SHAPES = [(512, 128_256), (64, 128_256), (1, 128_256), (4_096, 32_000), (100_000, 1_000), (1_000_000, 100)]
DTYPES = [torch.float32, torch.bfloat16]
CPU_SHAPES = [(64, 32_000), (1_000, 1_000)]
EPSILONS = [8.0, 1.0]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ENOUGH = 300_000_000  # bytes of inputs that take turns: several times the cache
NEWTON_STEPS = 8
RFC_8439 = [  # key, nonce, counter, block: section 2.3.2, and appendix A.1, vectors 1 to 5
    (
        bytes(range(32)).hex(), "000000090000004a00000000", 1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        "00" * 32, "00" * 12, 0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "00" * 32, "00" * 12, 1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "00" * 31 + "01", "00" * 12, 1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        "00ff" + "00" * 30, "00" * 12, 2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        "00" * 32, "00" * 11 + "02", 0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c78a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]  # fmt: skip
FORK = """
import os, sys, torch
from discreet.torch import release

child = os.fork()  # before CUDA is initialised: afterwards torch refuses the child
found = release(logits=torch.zeros((1000, 1000), device="cuda"), epsilon=1.0).tolist()
if child:
    os.waitpid(child, 0)
sys.stdout.write("".join(map(str, found)) + "\\n")
sys.stdout.flush()
os._exit(0)
"""


def run() -> None:
    """On a GPU check, then measure; without one, ratios of the path that draws on the CPU."""
    if not torch.cuda.is_available():
        print("No CUDA device; on the CPU, one public reference for all rows:")
        table(times_of_kinds(CPU_SHAPES, [torch.float32]), math.inf)
        return
    check()
    peak = copied()
    print(f"{torch.cuda.get_device_name()}: a copy moves {peak / 1e12:.2f} TB/s (read and written)")
    times = times_of_kinds(SHAPES, DTYPES)
    plainly()
    start = time.perf_counter()
    SystemEntropy().integers(1_000_000)
    took = 1e3 * (time.perf_counter() - start)
    print(
        f"words for 1,000,000 rows: {took:.1f} ms by the operating system, {streamed():.3f} ms by ChaCha20 on the device"
    )
    table(times, peak)


Kind = tuple[tuple[int, int], torch.dtype]


def table(times: dict[Kind, list[float]], peak: float) -> None:
    """Print a line for each shape, dtype, epsilon and kind of reference.

    Kernels are timed after all calls, because every launch takes longer once torch's profiler has run in a process.
    """
    head = (
        "rows x outcomes",
        "dtype",
        "epsilon",
        "reference",
        "ms",
        "x softmax",
        "x Gumbel",
        "at least, ms",
        "kernels alone",
    )
    print("  ".join(f"{each:>16}" for each in head))
    for kind, timed in times.items():
        for line in lines(*kind, timed, peak):
            print("  ".join(f"{each:>16}" for each in line), flush=True)


SETTINGS = [(epsilon, referenced) for epsilon in EPSILONS for referenced in (False, True)]


def times_of_kinds(shapes: list[tuple[int, int]], dtypes: list[torch.dtype]) -> dict[Kind, list[float]]:
    """Milliseconds of the calls on tensors of each shape and dtype."""
    return {(shape, dtype): times_of_calls(inputs(shape, dtype)) for shape in shapes for dtype in dtypes}


def times_of_calls(sets: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    """Milliseconds of a softmax, of a Gumbel draw, and of a release in each of the settings."""
    calls: list[Callable[[Any, Any], Any]] = [lambda p, m: torch.softmax(p, -1), lambda p, m: gumbel_draw(p)]
    calls += [partial(released, epsilon=epsilon, referenced=referenced) for epsilon, referenced in SETTINGS]
    return [milliseconds(call, sets) for call in calls]


def lines(shape: tuple[int, int], dtype: torch.dtype, timed: list[float], peak: float) -> list[tuple[str, ...]]:
    """One line for each epsilon, without and with a reference."""
    sets, (softmax, gumbel, *times) = inputs(shape, dtype), timed
    kind = "per row" if DEVICE == "cuda" else "shared"
    named = f"{shape[0]:,} x {shape[1]:,}", str(dtype).removeprefix("torch.")
    found: list[tuple[str, ...]] = []
    for (epsilon, referenced), took in zip(SETTINGS, times, strict=True):
        bytes_read = (2 if referenced else 1) * sets[0][0].nbytes
        alone = kernels(partial(released, epsilon=epsilon, referenced=referenced), sets)
        found.append((
            *named, f"{epsilon:g}", kind if referenced else "none", f"{took:.3f}", f"{took / softmax:.2f}",
            f"{took / gumbel:.2f}", f"{1e3 * bytes_read / peak:.3f}", f"{alone:.3f}",
        ))  # fmt: skip
    found.append((*named, "", "softmax", f"{softmax:.3f}", "1.00", f"{softmax / gumbel:.2f}", "", ""))
    found.append((*named, "", "Gumbel", f"{gumbel:.3f}", f"{gumbel / softmax:.2f}", "1.00", "", ""))
    return found


def plainly() -> None:
    """The law in plain torch (floating point, torch's generator: not private), as it is and compiled, at the first shape."""
    sets = inputs(SHAPES[0], torch.float32)
    for name, law in (("none", plain_simplex), ("per row", plain_reference)):
        eager, fused = milliseconds(law, sets), milliseconds(torch.compile(law), sets)
        ours = milliseconds(partial(released, epsilon=8.0, referenced=name != "none"), sets)
        print(
            f"512 x 128,256, epsilon 8, reference {name}: plain torch {eager:.2f} ms, torch.compile {fused:.2f} ms, "
            f"release {ours:.3f} ms"
        )


def released(p: torch.Tensor, m: torch.Tensor, *, epsilon: float, referenced: bool) -> torch.Tensor:
    """What is measured."""
    return release(logits=p, reference=m if referenced else None, epsilon=epsilon)


def plain_simplex(p: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """max(a softmax(p), floor), drawn in floating point."""
    law = torch.softmax(p, -1)
    floor = 1.0 / (math.exp(8.0) + p.shape[-1] - 1)
    slope = torch.ones_like(law[:, :1])
    for _ in range(NEWTON_STEPS):
        above = law * slope > floor
        clipped = (~above).sum(-1, keepdim=True) * floor
        slope = (1.0 - clipped) / torch.where(above, law, 0.0).sum(-1, keepdim=True)
    q = torch.clamp_min(law * slope, floor)
    return (q / torch.empty_like(q).exponential_()).argmax(-1)


def plain_reference(p: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """clip(a softmax(p), b mu, B mu), drawn in floating point."""
    law, low, high = torch.softmax(p, -1), math.exp(-4.0) * torch.softmax(m, -1), math.exp(4.0) * torch.softmax(m, -1)
    slope = torch.ones_like(law[:, :1])
    for _ in range(NEWTON_STEPS):
        value = law * slope
        middle = (value > low) & (value < high)
        clipped = torch.where(middle, 0.0, torch.minimum(torch.maximum(value, low), high)).sum(-1, keepdim=True)
        slope = (1.0 - clipped) / torch.where(middle, law, 0.0).sum(-1, keepdim=True)
    q = torch.minimum(torch.maximum(law * slope, low), high)
    return (q / torch.empty_like(q).exponential_()).argmax(-1)


def gumbel_draw(p: torch.Tensor) -> torch.Tensor:
    """A draw from softmax(p) by the framework, which is private to nobody."""
    return (p - torch.empty_like(p).exponential_().log_()).argmax(-1)


def inputs(shape: tuple[int, int], dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of logits, a client's near its reference's as a model's with and without a context are."""
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    count = max(1, -(-ENOUGH // (shape[0] * shape[1] * dtype.itemsize))) if DEVICE == "cuda" else 1
    found = []
    for _ in range(min(count, 8)):
        m = 2.0 * torch.randn(shape, generator=generator, device=DEVICE)
        p = m + torch.randn(shape, generator=generator, device=DEVICE)
        found.append((p.to(dtype), m.to(dtype) if DEVICE == "cuda" else m[0].to(dtype)))
    return found


def milliseconds(
    call: Callable[[Any, Any], Any], sets: list[tuple[torch.Tensor, torch.Tensor]], times: int = 30
) -> float:
    """The median over calls, events on either side."""
    for turn in range(4):
        call(*sets[turn % len(sets)])
    found = []
    for turn in range(times):
        if DEVICE == "cpu":
            begun = time.perf_counter()
            call(*sets[turn % len(sets)])
            found.append(1e3 * (time.perf_counter() - begun))
            continue
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        call(*sets[turn % len(sets)])
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return float(statistics.median(found))


def kernels(call: Callable[[Any, Any], Any], sets: list[tuple[torch.Tensor, torch.Tensor]], times: int = 8) -> float:
    """Milliseconds that the kernels of a call take on the device, the mean: those that run side by side are added up."""
    if DEVICE == "cpu":
        return math.nan
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for turn in range(times):
            call(*sets[turn % len(sets)])
        torch.cuda.synchronize()
    return float(sum(each.device_time_total for each in seen.key_averages())) / times / 1e3


def copied() -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.empty(1 << 32, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    took = milliseconds(lambda p, m: target.copy_(source), [(source, target)], 10)
    return float(2.0 * source.nbytes / (1e-3 * took))


def check() -> None:
    """On the device, without tolerance: sums 2^62, ratios at most e^epsilon, draws that fall where the integers say; and the numpy path."""
    generator = torch.Generator(device="cuda").manual_seed(2)
    distances, hard_distances = [], []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for size, epsilon, upper in (
            (128_256, 8.0, None),
            (32_000, 1.0, None),
            (1_000, 4.0, 30.0),
            (100, 0.5, None),
            (2, 2.0, None),
        ):
            reference = 2.0 * torch.randn(size, generator=generator, device="cuda")
            p = 3.0 * torch.randn((100, size), generator=generator, device="cuda")
            p[1], p[2], p[3], p[4, : size // 2] = -1e4, -math.inf, 0.0, -math.inf
            p[1, 0], p[2, size - 1] = 0.0, 0.0  # two point masses, a flat row, half a row
            for public in (None, reference.to(dtype), reference.expand(p.shape).contiguous().to(dtype)):
                distances.append(_check_integers(p.to(dtype), public, epsilon, upper))
            for public in hard_references(reference) if size > 10_000 and dtype != torch.float16 else ():
                hard_distances.append(_check_integers(p.to(dtype), public.to(dtype), epsilon, upper))
    for count in (512, 600):  # words of the operating system, and of a key
        p = 3.0 * torch.randn((count, 50_257), generator=generator, device="cuda")
        for public in (None, p[0].clone(), p[0].expand(p.shape).contiguous()):
            _check_integers(p, public, 8.0, None)
    rows = torch.randn((10_000, 1_000), generator=generator, device="cuda")
    found = weights(logits=rows, reference=rows[0], epsilon=2.0)
    assert bool((found.sum(1) == TOTAL).all())
    most, least = found.max(0).values.tolist(), found.min(0).values.tolist()
    assert max(Fraction(a, b) for a, b in zip(most, least, strict=True)) <= exp_lower(2.0)
    _check_draws(rows[0], rows[1])
    exact = torch.randn((10_000, 50), generator=generator, device="cuda", dtype=torch.float64)
    uniform = SystemEntropy().integers(len(exact))
    for public in (None, exact[0]):
        given, terms = read_tensor_rows(exact, None, public, 1.0), make_terms(epsilon=2.0)
        beside = read_tensor_rows(exact.cpu(), None, None if public is None else public.cpu(), 1.0)
        on_device = draw_outcomes(given, terms, FixedIntegers(uniform))
        assert on_device.is_cuda
        assert np.array_equal(on_device.cpu().numpy(), host.draw_outcomes_on_host(beside, terms, uniform))
    _check_streams(generator)
    _check_randomness()
    print("integers, ratios, draws and the numpy path: as they should be")
    for name, found in (("usual", distances), ("hard", hard_distances)):
        print(
            f"{name} references: at most {max(found):.1e} from the projection in total variation, median {statistics.median(found):.1e}"
        )
    wrong, settings = check_batches()
    print(f"rows served alone and in batches: other integers in {wrong} of {settings} settings")
    assert not wrong


def hard_references(reference: torch.Tensor) -> list[torch.Tensor]:
    """Public logits whose portions are very different: masked, over a hundred powers of ten, or all but one outcome far below it."""
    some = torch.arange(len(reference), device=reference.device)
    masked = torch.where(some % 1024 < 1000, reference, -math.inf)  # whole lanes
    few = torch.where(some % 97 == 3, reference, -math.inf) if len(reference) > 200 else reference
    far = torch.where(some == len(reference) // 2, 0.0, -30.0)
    return [masked, few, 40.0 * reference, far, torch.where(some % 1024 < 1000, reference, -35.0)]


def keystream(key: bytes, nonce: bytes, first: int, words: int) -> torch.Tensor:
    """64-bit words of ChaCha20's keystream, by the kernel that `release` uses."""
    from discreet.torch._keystream import LANES, WORDS, write_keystream

    out = torch.zeros(words, dtype=torch.int64, device=DEVICE)
    numbers = *struct.unpack("<8i", key), *struct.unpack("<3i", nonce)
    write_keystream[(-(-words // (WORDS * LANES.value)),)](out, first, words, *numbers, num_warps=4)
    return out


def streamed() -> float:
    """Milliseconds for a million words."""
    call = partial(keystream, bytes(range(32)), bytes(12), 0, 1_000_000)
    return kernels(lambda p, m: call(), [(torch.empty(0), torch.empty(0))])


def _check_randomness() -> None:
    """RFC 8439's vectors; no key twice; no capture in a graph; no word in two processes of a fork."""
    for key, nonce, first, expected in RFC_8439:
        found = keystream(bytes.fromhex(key), bytes.fromhex(nonce), first, 8).cpu().numpy().tobytes()
        assert found.hex() == expected, "RFC 8439"
    far = keystream(bytes(32), bytes(12), (1 << 31) - 1, 16)  # the largest counter that a call may reach, and the next
    assert torch.equal(far[8:], keystream(bytes(32), bytes(12), 1 << 31, 8))
    long = keystream(bytes(32), bytes(12), 0, 1_000_003)
    assert len(torch.unique(long)) == len(long)
    assert torch.equal(long[800_000:], keystream(bytes(32), bytes(12), 100_000, 200_003))
    flat = torch.zeros((10_000, 1_000), device="cuda")
    assert int((release(logits=flat, epsilon=1.0) == release(logits=flat, epsilon=1.0)).sum()) < 100
    for shape in ((8, 100), (100, 100), (100, 5_000)):
        logits, graph, refused = torch.zeros(shape, device="cuda"), torch.cuda.CUDAGraph(), 0
        release(logits=logits, epsilon=1.0)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            doubled = 2.0 * logits
            for call in (release, weights):
                try:
                    call(logits=doubled, epsilon=1.0)
                except DiscreetError as error:
                    refused += "CUDA graph" in str(error)
        assert refused == 2
        logits.fill_(1.0)
        graph.replay()
        assert torch.equal(doubled, torch.full(shape, 2.0, device="cuda"))
        release(logits=doubled, epsilon=1.0)  # after a replay, as the error says
    mine, theirs = subprocess.run(
        [sys.executable, "-c", FORK], check=True, capture_output=True, text=True
    ).stdout.split()
    assert mine != theirs
    print("randomness: RFC 8439, keys, graphs and forks as they should be")


def _check_streams(generator: torch.Generator) -> None:
    """Rows that are drawn on another stream have the outcomes of their own integers, call after call."""
    from discreet.torch import _gpu as gpu

    for shape in ((300_001, 50), (300, 5_000), (40, 128_256)):
        p = torch.randn(shape, generator=generator, device="cuda")
        integers = SystemEntropy().integers(len(p))
        for public in (None, p[0], -p):
            rows, terms = read_tensor_rows(p, None, public, 1.0), make_terms(epsilon=9.0)
            found = gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
            with torch.cuda.stream(torch.cuda.Stream()):
                assert torch.equal(found, gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers)))
            for _ in range(200 if shape[1] > 2048 else 3):
                release(logits=p, reference=public, epsilon=9.0)
            assert torch.equal(found, gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers)))


def check_batches() -> tuple[int, int]:
    """In how many settings, of how many, a row over a reference has other integers alone than in a batch, or over one reference for all than
    over one for each; or two clients that were served in different ways are more than e^epsilon apart.
    """
    generator = torch.Generator(device=DEVICE).manual_seed(3)
    settings = [
        (size, dtype, scale, epsilon, masked)
        for size in (3, 100, 1_000, 1_001, 2_049, 5_008, 50_257, 65_536)
        for dtype in (torch.float32, torch.bfloat16, torch.float16)
        for scale, epsilon in ((3.0, 2.0), (0.3, 0.5), (10.0, 8.0))
        for masked in (False, True)
    ]
    wrong = 0
    for size, dtype, scale, epsilon, masked in settings:
        reference = scale * torch.randn(size, generator=generator, device=DEVICE)
        p = reference + torch.randn((33, size), generator=generator, device=DEVICE)
        if masked:
            reference[torch.rand(size, generator=generator, device=DEVICE) < 0.3] = -math.inf
            reference[0] = 0.0
        wrong += not _served_alike(p.to(dtype), reference.to(dtype), epsilon)
    return wrong, len(settings)


def _served_alike(p: torch.Tensor, reference: torch.Tensor, epsilon: float) -> bool:
    """Whether the rows have the same L and the same integers however they are served, and keep the promise across all ways."""
    from discreet.torch import _gpu as gpu

    def served(rows: torch.Tensor, public: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        given = read_tensor_rows(rows, None, public, 1.0)
        lower, excess, fill = gpu.launch_with_all_rows_solved(
            given, make_terms(epsilon=epsilon)
        ).compute_lower_bounds_excess_and_fill()
        return lower, lower + excess + fill

    each = reference.expand(p.shape).contiguous()
    floor, alone = (torch.cat(one) for one in zip(*(served(row[None], reference) for row in p[:4]), strict=True))
    alike = bool((floor == floor[0]).all())
    table = [alone]
    for rows, public, backwards in (
        (p, reference, False), (p, each, False), (p[:2], reference, False), (p[:2], each[:2], False), (p[:1], each[:1], False),
        (p.flip(0), reference, True), *((p.repeat(5, 1)[:count], reference, False) for count in (99, 150)),  # one, two or four programs a row
    ):  # fmt: skip
        lower, found = served(rows, public)
        found = found.flip(0) if backwards else found
        some = min(len(alone), len(found))
        alike = alike and bool((lower == floor[0]).all()) and torch.equal(found[:some], alone[:some])
        table.append(found)
    whole = torch.cat(table)
    most, least = whole.max(0).values.tolist(), whole.min(0).values.tolist()
    return alike and max(Fraction(a, b) for a, b in zip(most, least, strict=True) if b) <= exp_lower(epsilon)


def _check_integers(p: torch.Tensor, public: torch.Tensor | None, epsilon: float, upper: float | None) -> float:
    """The largest distance of a row from its projection, if all else is without fault."""
    from discreet.torch import _gpu as gpu  # needs Triton, which comes with torch's build for CUDA

    rows, terms = read_tensor_rows(p, None, public, 1.0), make_terms(epsilon=epsilon, upper=upper)
    solved = gpu.launch_with_all_rows_solved(rows, terms)
    lower, excess, fill = solved.compute_lower_bounds_excess_and_fill()
    found = lower + excess + fill
    assert bool((found.sum(1) == TOTAL).all())
    assert bool((lower == lower[0]).all()), "one reference, one floor, wherever it stands in a batch"
    assert portions_hold_their_totals(solved)
    most, least = found.max(0).values.tolist(), found.min(0).values.tolist()
    assert max(Fraction(a, b) for a, b in zip(most, least, strict=True) if b) <= exp_lower(epsilon)
    some = read_tensor_rows(p[:100], None, public if public is None or public.ndim == 1 else public[:100], 1.0)
    distance = (
        0.5
        * (found[:100].double().cpu() / TOTAL - torch.from_numpy(host.output_laws_on_host(some, terms)))
        .abs()
        .sum(1)
        .max()
    )
    assert distance < 1e-5, (
        f"{float(distance)} from the projection: {p.shape}, {p.dtype}, {epsilon}, {upper}, {public is not None}"
    )
    for _ in range(3):
        integers = SystemEntropy().integers(len(p))
        drawn = gpu.draw_outcomes_on_gpu(rows, terms, FixedIntegers(integers))
        assert torch.equal(drawn, outcomes_of_integers(solved, torch.from_numpy(integers).to(p.device)))
    return float(distance)


def portions_hold_their_totals(solved: Any) -> bool:
    """Whether every portion of a long row can have each total between its bounds: surely <= sum L <= least, fullest <= sum U."""
    if solved.plan.short:
        return True
    lower, upper, _ = solved.compute_integer_bounds_and_excess()
    surely, least, wanted, fullest = solved.portions.unbind(1)
    low, high = (solved.cut_into_portions(each).sum(2) for each in (lower, upper))
    far_more = (
        solved.cut_into_portions(upper).double().sum(2) > 1.5 * TOTAL
    )  # where the sum of integers might not fit 63 bits
    sound = (surely <= low) & (low <= least) & (least <= wanted) & (wanted <= fullest) & ((fullest <= high) | far_more)
    return bool((sound | (least[:, :1] < 0)).all())


def outcomes_of_integers(solved: Any, integers: torch.Tensor) -> torch.Tensor:
    """The outcome of each row's integer in [0, 2^62), by the integers of all outcomes and the order in which they are assigned."""
    from discreet.torch import _gpu as gpu

    parts = solved.compute_lower_bounds_excess_and_fill()
    shared = parts[0].sum(1)
    if solved.plan.short:  # over a reference the excess is counted from the upper end
        above = TOTAL - 1 - integers + shared
        return _place(parts, torch.where(integers < shared, integers, above) if solved.referenced else integers)
    surely, least, wanted, fullest = solved.portions.unbind(1)
    given, fill = gpu._hand_out_excess_and_fill(least, fullest, wanted - least, TOTAL)
    cut, rest = [solved.cut_into_portions(each) for each in parts], integers
    spans, starts, in_row_order = (
        [surely, least - surely, given, fill],
        [0 * least, surely, least, wanted],
        least[:, 0] < 0,
    )
    if not solved.referenced:  # L of all outcomes comes first
        spans, starts, in_row_order = [given, fill], [0 * least, wanted - least], integers < shared
        cut, rest = cut[1:], integers - shared
    portion, rest = _fall(spans, rest)
    rest += torch.gather(torch.cat(starts, 1), 1, portion[:, None])[:, 0]
    portion %= least.shape[1]
    every = torch.arange(len(rest), device=rest.device)
    place = _place([each[every, portion] for each in cut], rest)
    columns = place * least.shape[1] + portion if solved.referenced else portion * cut[0].shape[2] + place
    return torch.where(in_row_order, _place(parts, integers), columns)


def _fall(parts: Sequence[torch.Tensor], rest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(where each row's integer falls in the sums of the parts, one behind the other; the remainder there)."""
    joined = torch.cat(parts, 1)
    ends = torch.cumsum(joined, 1)
    found = torch.searchsorted(ends, rest[:, None].contiguous(), right=True).clamp(max=joined.shape[1] - 1)
    return found[:, 0], rest - torch.gather(ends - joined, 1, found)[:, 0]


def _place(parts: Sequence[torch.Tensor], rest: torch.Tensor) -> torch.Tensor:
    """The column on which each row's integer falls."""
    return _fall(parts, rest)[0] % parts[0].shape[1]


def _check_draws(p: torch.Tensor, public: torch.Tensor) -> None:
    """Chi-squared of 10^6 draws over the outcomes that are expected at least 20 times each."""
    count = 1_000_000
    law = weights(logits=p[:100], reference=public[:100], epsilon=2.0).double() / TOTAL
    drawn = release(logits=p[:100].expand(count, 100).contiguous(), reference=public[:100], epsilon=2.0)
    seen = torch.bincount(drawn, minlength=100).double()
    enough = law * count >= 20
    statistic = float(((seen - law * count) ** 2 / (law * count))[enough].sum())
    freedom = int(enough.sum())
    assert statistic < freedom + 8.0 * math.sqrt(2.0 * freedom), (statistic, freedom)
