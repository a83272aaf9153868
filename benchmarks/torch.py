"""Private outcomes of tensors on a GPU: `discreet.torch.release` beside a softmax, a Gumbel draw, and the same law written plainly.

`python -m benchmarks torch` first checks, on the device, what the guarantee says of integers; then it prints a table. Times are medians
over calls from the outside (the one synchronisation of `release`, the operating system's entropy and the launches are in them), on
inputs that take turns so that none is found in cache. Bandwidth is what has to be read once, over the time, as a part of what a copy
of 4 GiB reaches on the same device. Where there is no GPU it measures the CPU.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.profiler import ProfilerActivity, profile

from discreet._base.numerics import exp_lower
from discreet.release import TOTAL, SystemEntropy
from discreet.release._randomness import FixedIntegers
from discreet.torch import _host as host, release, weights
from discreet.torch._host import make_terms, rows_of
from discreet.torch._sampling import draw_outcomes

SHAPES = [(512, 128_256), (64, 128_256), (4_096, 32_000), (100_000, 1_000), (1_000_000, 100)]
DTYPES = [torch.float32, torch.bfloat16]
CPU_SHAPES = [(64, 32_000), (1_000, 1_000)]
EPSILONS = [8.0, 1.0]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ENOUGH = 300_000_000  # bytes of inputs that take turns: several times the cache
NEWTON_STEPS = 8


def run() -> None:
    """On a GPU check, then measure; without one, ratios of the path that draws on the CPU."""
    if not torch.cuda.is_available():
        print("No CUDA device; on the CPU, one public reference for all rows:")
        table(CPU_SHAPES, [torch.float32], math.inf)
        return
    check()
    peak = copied()
    print(f"{torch.cuda.get_device_name()}: a copy moves {peak / 1e12:.2f} TB/s (read and written)")
    start = time.perf_counter()
    SystemEntropy().integers(1_000_000)
    print(f"entropy of the operating system for 1,000,000 rows: {1e3 * (time.perf_counter() - start):.1f} ms")
    table(SHAPES, DTYPES, peak)
    plainly()


def table(shapes: list[tuple[int, int]], dtypes: list[torch.dtype], peak: float) -> None:
    """Print a line for each shape, dtype, epsilon and kind of reference."""
    head = (
        "rows x outcomes",
        "dtype",
        "epsilon",
        "reference",
        "ms",
        "x softmax",
        "x Gumbel",
        "of bandwidth",
        "kernels alone",
    )
    print("  ".join(f"{each:>16}" for each in head))
    for shape in shapes:
        for dtype in dtypes:
            for line in lines(shape, dtype, peak):
                print("  ".join(f"{each:>16}" for each in line), flush=True)


def lines(shape: tuple[int, int], dtype: torch.dtype, peak: float) -> list[tuple[str, ...]]:
    """One line for each epsilon, without and with a reference."""
    sets = inputs(shape, dtype)
    softmax = milliseconds(lambda p, m: torch.softmax(p, -1), sets)
    gumbel = milliseconds(lambda p, m: gumbel_draw(p), sets)
    kind = "per row" if DEVICE == "cuda" else "shared"
    named = f"{shape[0]:,} x {shape[1]:,}", str(dtype).removeprefix("torch.")
    found: list[tuple[str, ...]] = []
    for epsilon in EPSILONS:
        for referenced in (False, True):
            call = partial(released, epsilon=epsilon, referenced=referenced)
            took = milliseconds(call, sets)
            bytes_read = (2 if referenced else 1) * sets[0][0].nbytes
            found.append((
                *named, f"{epsilon:g}", kind if referenced else "none", f"{took:.3f}", f"{took / softmax:.2f}",
                f"{took / gumbel:.2f}", f"{bytes_read / (1e-3 * took) / peak:.2f}", f"{kernels(call, sets):.3f}",
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
                _check_integers(p.to(dtype), public, epsilon, upper)
    rows = torch.randn((10_000, 1_000), generator=generator, device="cuda")
    found = weights(logits=rows, reference=rows[0], epsilon=2.0)
    assert bool((found.sum(1) == TOTAL).all())
    most, least = found.max(0).values.tolist(), found.min(0).values.tolist()
    assert max(Fraction(a, b) for a, b in zip(most, least, strict=True)) <= exp_lower(2.0)
    _check_draws(rows[0], rows[1])
    exact = torch.randn((10_000, 50), generator=generator, device="cuda", dtype=torch.float64)
    uniform = SystemEntropy().integers(len(exact))
    for public in (None, exact[0]):
        given, terms = rows_of(exact, None, public, 1.0), make_terms(epsilon=2.0)
        beside = rows_of(exact.cpu(), None, None if public is None else public.cpu(), 1.0)
        on_device = draw_outcomes(given, terms, FixedIntegers(uniform))
        assert on_device.is_cuda
        assert np.array_equal(on_device.cpu().numpy(), host.draw_outcomes(beside, terms, uniform))
    _check_parts(generator)
    print("integers, ratios, draws and the numpy path: as they should be")
    wrong, settings = check_batches()
    print(f"rows served alone and in batches: other integers in {wrong} of {settings} settings")
    assert not wrong


class _InParts(FixedIntegers):
    """Integers that come part by part, as the operating system's do where there are many."""

    def filled(self, found: NDArray[np.int64]) -> Iterator[int]:
        for there in (*range(70_001, len(found), 70_001), len(found)):
            found[:there] = self._uniform[:there]
            yield there


def _check_parts(generator: torch.Generator) -> None:
    """Rows that are drawn while the integers of others are still read, or on another stream, have the outcomes of their own integers."""
    from discreet.torch import _gpu as gpu

    for shape in ((300_001, 50), (300, 5_000)):
        p = torch.randn(shape, generator=generator, device="cuda")
        integers = SystemEntropy().integers(len(p))
        for public in (None, p[0], -p):
            rows, terms = rows_of(p, None, public, 1.0), make_terms(epsilon=4.0)
            found = gpu.draw_outcomes(rows, terms, FixedIntegers(integers))
            assert torch.equal(found, gpu.draw_outcomes(rows, terms, _InParts(integers)))
            with torch.cuda.stream(torch.cuda.Stream()):
                assert torch.equal(found, gpu.draw_outcomes(rows, terms, FixedIntegers(integers)))


def check_batches() -> tuple[int, int]:
    """In how many settings, of how many, a row over a reference has other integers alone than in a batch, or over one reference for all than
    over one for each; or two clients that were served in different ways are more than e^epsilon apart.
    """
    generator = torch.Generator(device=DEVICE).manual_seed(3)
    settings = [
        (size, dtype, scale, epsilon, masked)
        for size in (3, 100, 1_000, 1_001, 2_049, 5_000, 50_257)
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
        lower, excess, fill = gpu.parts(rows_of(rows, None, public, 1.0), make_terms(epsilon=epsilon))
        return lower, lower + excess + fill

    each = reference.expand(p.shape).contiguous()
    floor, alone = (torch.cat(one) for one in zip(*(served(row[None], reference) for row in p[:4]), strict=True))
    alike = bool((floor == floor[0]).all())
    table = [alone]
    for rows, public, backwards in (
        (p, reference, False), (p, each, False), (p[:2], reference, False), (p[:2], each[:2], False), (p[:1], each[:1], False),
        (p.flip(0), reference, True),
    ):  # fmt: skip
        lower, found = served(rows, public)
        found = found.flip(0) if backwards else found
        some = min(len(alone), len(found))
        alike = alike and bool((lower == floor[0]).all()) and torch.equal(found[:some], alone[:some])
        table.append(found)
    whole = torch.cat(table)
    most, least = whole.max(0).values.tolist(), whole.min(0).values.tolist()
    return alike and max(Fraction(a, b) for a, b in zip(most, least, strict=True) if b) <= exp_lower(epsilon)


def _check_integers(p: torch.Tensor, public: torch.Tensor | None, epsilon: float, upper: float | None) -> None:
    from discreet.torch import _gpu as gpu  # needs Triton, which comes with torch's build for CUDA

    rows, terms = rows_of(p, None, public, 1.0), make_terms(epsilon=epsilon, upper=upper)
    lower, excess, fill = gpu.parts(rows, terms)
    found = lower + excess + fill
    assert bool((found.sum(1) == TOTAL).all())
    assert bool((lower == lower[0]).all()), "one reference, one floor, wherever it stands in a batch"
    most, least = found.max(0).values.tolist(), found.min(0).values.tolist()
    assert max(Fraction(a, b) for a, b in zip(most, least, strict=True) if b) <= exp_lower(epsilon)
    distance = 0.5 * (found.double().cpu() / TOTAL - torch.from_numpy(host.output(rows, terms))).abs().sum(1).max()
    assert distance < 1e-5, (
        f"{float(distance)} from the projection: {p.shape}, {p.dtype}, {epsilon}, {upper}, {public is not None}"
    )
    for _ in range(3):
        integers = SystemEntropy().integers(len(p))
        uniform = torch.from_numpy(integers)
        shared = lower.sum(1).cpu()
        rest = uniform - shared if public is None else TOTAL - 1 - uniform
        place = torch.where(uniform < shared, _place(lower, uniform), -1)
        place = torch.where((place < 0) & (rest < excess.sum(1).cpu()), _place(excess, rest), place)
        place = torch.where(place < 0, _place(fill, rest - excess.sum(1).cpu()), place)
        assert torch.equal(gpu.draw_outcomes(rows, terms, FixedIntegers(integers)).cpu(), place)


def _place(part: torch.Tensor, integer: torch.Tensor) -> torch.Tensor:
    ends = torch.cumsum(part, 1)
    return torch.searchsorted(ends, integer.to(part.device)[:, None].contiguous(), right=True)[:, 0].cpu()


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
