"""Launching the kernels: what they are given, and the one look at the device that tells whether every row was a law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import triton

from discreet.errors import DiscreetError
from discreet.families.laws import sum_rounding
from discreet.release import TOTAL
from discreet.torch import host, kernel
from discreet.torch.boxes import DeviceBox, Terms
from discreet.torch.inputs import Rows

_UNBOUNDED = 1e30  # a ceiling that the floors of the other outcomes imply
_SAMPLED = 8  # blocks that a first guess of the slope is made from
_ALIGNMENT = 16  # bytes
_FLOAT32_SLACK = 1e-5  # what summing in float32 may add to what a sum misses


@dataclass(frozen=True)
class _Tiles:
    """How a row is cut: a function of the number of outcomes alone, so that a reference has the same integers in every batch."""

    rows: int
    block: int
    wide: int
    warps: int
    stages: int

    @classmethod
    def of(cls, size: int) -> _Tiles:
        block = min(triton.next_power_of_2(size), 1024)
        rows = max(1, 1024 // block)
        return cls(
            rows, block, min(triton.next_power_of_2(size), 4096), 4 if size <= 4096 else 8, 3 if size > 4096 else 1
        )


@lru_cache(maxsize=256)
def _constants(size: int, terms: Terms, referenced: bool, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers that `kernel.draw` reads: b, B, rho, 2^62 b, L, U in float64, and L, from where nothing is shared, as integers."""
    if referenced:
        box = DeviceBox.around(size, terms)
        reals, whole = (box.b, min(box.B, _UNBOUNDED), box.ratio, box.b * TOTAL, 0.0, 0.0), (1, box.unshared)
    else:
        sampler = host.uniform_sampler(size, terms)
        lattice, ceiling = sampler.lattice, float(sampler.box.ceiling)
        lower, upper = int(lattice.lower), int(lattice.upper)  # one number each: the reference is uniform
        top = ceiling * size if ceiling < math.inf else _UNBOUNDED
        reals, whole = (
            (float(sampler.box.lower) * size, top, 1.0, 0.0, float(lower), float(upper)),
            (lower, lattice.shared),
        )
    return torch.tensor(reals, dtype=torch.float64, device=device), torch.tensor(
        whole, dtype=torch.int64, device=device
    )


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its rows lie one after the other on an aligned address, else a copy: one layout for the kernels."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _launch(
    rows: Rows, terms: Terms, uniform: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]]:
    """Outcomes, what was solved, and the tensors as the kernels read them; the error of the first row that is no law."""
    device, size = rows.p.device, rows.size
    reals, whole = _constants(size, terms, rows.reference is not None, device)
    tiles = _Tiles.of(size)
    p = _ready(rows.p)
    m = p if rows.reference is None else _ready(rows.reference)
    with torch.cuda.device_of(p):
        out = torch.empty(len(p), dtype=torch.int64, device=device)
        solved = torch.empty((len(p), 5), dtype=torch.float64, device=device)
        bad = torch.zeros(1, dtype=torch.int32, device=device)
        blocks = triton.cdiv(size, tiles.block)
        kernel.draw[(triton.cdiv(len(p), tiles.rows),)](
            p, m, uniform.to(device, non_blocking=True), out, solved, bad, reals, whole, len(p), size, size,
            size if len(m) == len(p) else 0, math.log2(math.e) / rows.temperature, math.log2(math.e),
            _tolerance(p), _tolerance(m), max(1, blocks // _SAMPLED) * tiles.block,
            REFERENCE=rows.reference is not None, LOGITS=rows.logits, ROWS=tiles.rows, BLOCK=tiles.block, WIDE=tiles.wide,
            STAGES=tiles.stages, num_warps=tiles.warps,
        )  # fmt: skip
    if bad.item():
        host.refuse(rows)
    return out, solved, (p, m, reals)


def _tolerance(tensor: torch.Tensor) -> float:
    return sum_rounding(int(tensor.shape[1]), torch.finfo(tensor.dtype).eps) + _FLOAT32_SLACK


def drawn(rows: Rows, terms: Terms, uniform: torch.Tensor) -> torch.Tensor:
    """One outcome for each row, from one integer in [0, 2^62) each."""
    if not len(rows.p):
        return torch.empty(0, dtype=torch.int64, device=rows.p.device)
    return _launch(rows, terms, uniform)[0]


def parts(rows: Rows, terms: Terms) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """L, E cut off at 2^62, and the fill, (n, k) each: what the integers are given out to, read off the kernels' own functions."""
    count, size = rows.p.shape
    _, solved, (p, m, reals) = _launch(rows, terms, torch.full((count,), TOTAL - 1, dtype=torch.int64))
    lower, upper, excess = (torch.empty((count, size), dtype=torch.int64, device=p.device) for _ in range(3))
    block = min(triton.next_power_of_2(size), 1024)
    with torch.cuda.device_of(p):
        kernel.write[(count, triton.cdiv(size, block))](
            p, m, solved, lower, upper, excess, reals, size, size, size if len(m) == len(p) else 0,
            math.log2(math.e) / rows.temperature, math.log2(math.e), REFERENCE=rows.reference is not None, LOGITS=rows.logits,
            BLOCK=block,
        )  # fmt: skip
    available = TOTAL - lower.sum(1, keepdim=True)
    given = _handed_out(excess, available)
    return lower, given, _handed_out(upper - lower - given, available - given.sum(1, keepdim=True))


def weights(rows: Rows, terms: Terms) -> torch.Tensor:
    """W = L + E + fill: the integers that `drawn` draws from."""
    if not len(rows.p):
        return torch.empty(tuple(rows.p.shape), dtype=torch.int64, device=rows.p.device)
    found = sum(parts(rows, terms))
    if not isinstance(found, torch.Tensor) or not bool((found.sum(1) == TOTAL).all()):
        raise DiscreetError(
            "weights do not sum to 2^62: these are not the integers that are drawn with; please report this"
        )
    return found


def _handed_out(wanted: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """How much each outcome gets when `available` units are handed out in order: sums that pass 2^63 do so behind the last unit."""
    ends = torch.cumsum(wanted, 1)
    past = torch.cummax(((ends > available) | (ends < 0)).to(torch.int8), 1).values > 0
    return torch.diff(torch.where(past, available, ends), dim=1, prepend=torch.zeros_like(available))
