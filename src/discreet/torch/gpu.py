"""Launching the kernels: what they are given, and the one look at the device that tells whether every row was a law."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families.laws import sum_rounding
from discreet.release import TOTAL
from discreet.torch import host, kernel, picking, small, tiles
from discreet.torch.boxes import DeviceBox, Terms
from discreet.torch.inputs import Rows

Integers = NDArray[np.int64]

_UNBOUNDED = 1e30  # a ceiling that the floors of the other outcomes imply
_ALIGNMENT = 16  # bytes
_FLOAT32_SLACK = 1e-5  # what summing in float32 may add to what a sum misses
_SMALL = 2048  # outcomes of which a program holds whole rows
_BITS_OF_E = math.log2(math.e)


# How rows are cut. With a reference it is the same for every batch, so that the reference has the same integers in all of them; without
# one few rows are left to be solved, each by as many threads as there may be.
_CHECK = {"BLOCK": 8192, "num_warps": 8}
_SOLVE = {
    True: {"DEPTH": 4, "BLOCK": 1024, "SAMPLE": 1024, "num_warps": 8},
    False: {"DEPTH": 4, "BLOCK": 2048, "SAMPLE": 1024, "num_warps": 16},
}
_SPLITS = (8, 4)  # programs that share a row, if all of them fit on the device at once
_MOST_SPLIT = 32  # rows that are shared
_PICK = {True: {"BLOCK": 4096, "num_warps": 8}, False: {"BLOCK": 8192, "num_warps": 16}}


@dataclass(frozen=True)
class _Box:
    """The numbers that the kernels read (b, B, rho, 2^62 b, L, U; then as integers L, from where nothing is shared, up to where all is),
    and what the host needs of them: L and sum L over a uniform reference."""

    reals: torch.Tensor
    whole: torch.Tensor
    lower: int
    shared: int


@lru_cache(maxsize=256)
def _box(size: int, terms: Terms, referenced: bool, device: torch.device) -> _Box:
    if referenced:
        box = DeviceBox.around(size, terms)
        reals, lower, shared = (box.b, min(box.B, _UNBOUNDED), box.ratio, box.b * TOTAL, 0.0, 0.0), 1, box.unshared
        whole = (lower, shared, box.surely_shared)
    else:
        sampler = host.uniform_sampler(size, terms)
        lattice, ceiling = sampler.lattice, float(sampler.box.ceiling)
        lower, upper, shared = int(lattice.lower), int(lattice.upper), lattice.shared  # one number each: it is uniform
        top = ceiling * size if ceiling < math.inf else _UNBOUNDED
        reals = (float(sampler.box.lower) * size, top, 1.0, 0.0, float(lower), float(upper))
        whole = (lower, shared, shared)
    return _Box(
        torch.tensor(reals, dtype=torch.float64, device=device),
        torch.tensor(whole, dtype=torch.int64, device=device),
        lower,
        shared,
    )


_COMPILED: dict[Any, Any] = {}
_OPTIONS = {"num_warps", "launch_cooperative_grid"}  # of a launch, and no constants of a kernel


def _launched(
    function: Any, programs: int, key: Any, arguments: tuple[Any, ...], constants: dict[str, Any], stream: Any
) -> None:
    """Run a kernel; its constants are in the order in which it takes them. What Triton compiled for a key is kept and called as it is, which
    takes a fraction of the time of looking it up; so a key holds all that a kernel is specialised on: dtypes and numbers, but for
    addresses, which are all aligned alike."""
    found = _COMPILED.get((function.__name__, key))
    if found is None:
        with torch.cuda.stream(stream):
            _COMPILED[function.__name__, key] = function[(programs,)](*arguments, **constants)
    else:
        values = [value for name, value in constants.items() if name not in _OPTIONS]
        found[(programs, 1, 1)](*arguments, *values, stream=stream.cuda_stream)


class _Host(threading.local):
    """Memory of the host that kernels read and write in place: the integers of a call, and a flag that some row is no law.

    Each thread has its own, and every call waits for its kernels, so that one never meets another's."""

    def __init__(self) -> None:
        self.bad = torch.zeros(1, dtype=torch.int32, pin_memory=torch.cuda.is_available())
        self.flag = self.bad.numpy()
        self._room = torch.zeros(0, dtype=torch.int64)

    def integers(self, count: int) -> tuple[torch.Tensor, Integers]:
        """Room for so many integers, as a tensor and as an array."""
        if len(self._room) < count:
            self._room = torch.zeros(max(1024, 2 * count), dtype=torch.int64, pin_memory=torch.cuda.is_available())
            self._array = self._room.numpy()
        return self._room, self._array


class _Scratch(threading.local):
    """What the kernels that a thread launches on one device leave for each other. Every call waits for its kernels before the next."""

    def __init__(self) -> None:
        self._of: dict[torch.device, _Room] = {}

    def on(self, device: torch.device, rows: int) -> _Room:
        room = self._of.get(device)
        if room is None or room.solved.shape[0] < rows:
            room = self._of[device] = _Room(device, rows)
        return room


class _Room:
    """What is known of solved rows; and what programs that share a row tell each other by, for up to `_MOST_SPLIT` rows: sums, and how many
    have come to a point (0 between calls). Beside it a stream, so that rows are solved while all are checked."""

    def __init__(self, device: torch.device, rows: int) -> None:
        turns, split = tiles.TURNS.value, _SPLITS[0]
        self.solved = torch.empty((rows, tiles.COLUMNS.value), dtype=torch.float64, device=device)
        self.sums = torch.zeros(_MOST_SPLIT * 16 * split * turns, dtype=torch.float32, device=device)
        self.counters = torch.zeros(_MOST_SPLIT * turns, dtype=torch.int32, device=device)
        self.picked = torch.zeros(_MOST_SPLIT * 2 * split, dtype=torch.int64, device=device)
        self.pickers = torch.zeros(_MOST_SPLIT * 2, dtype=torch.int32, device=device)
        if device.type == "cuda":
            self.side = torch.cuda.Stream(device)
            self.before, self.after = torch.cuda.Event(), torch.cuda.Event()


_HOST = _Host()
_SCRATCH = _Scratch()


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its rows lie one after the other on an aligned address, else a copy: one layout for the kernels."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


@lru_cache(maxsize=16)
def _processors(device: torch.device) -> int:
    """Programs that surely run at once: one on each multiprocessor."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@lru_cache(maxsize=256)
def _tolerance(size: int, dtype: torch.dtype) -> float:
    return sum_rounding(size, torch.finfo(dtype).eps) + _FLOAT32_SLACK


class _Launch:
    """The kernels on some rows: `out` has their outcomes, `solved` what was found of those that were solved."""

    def __init__(self, rows: Rows, terms: Terms, uniform: Integers) -> None:
        self.rows, self.device, self.size = rows, rows.p.device, rows.size
        self.referenced = rows.reference is not None
        self.box = _box(self.size, terms, self.referenced, self.device)
        self.p = _ready(rows.p)
        self.m = self.p if rows.reference is None else _ready(rows.reference)
        self.count = int(self.p.shape[0])
        self.layout = (
            self.size, self.size, self.size if self.m.shape[0] == self.count else 0, _BITS_OF_E / rows.temperature, _BITS_OF_E,
        )  # fmt: skip
        self.tolerances = _tolerance(self.size, self.p.dtype), _tolerance(self.size, self.m.dtype)
        self.kind = {"REFERENCE": self.referenced, "LOGITS": rows.logits}
        self.key = self.device, self.p.dtype, self.m.dtype, self.layout[:3], self.referenced, rows.logits
        count = self.count
        with torch.cuda.device_of(self.p):
            self.stream = torch.cuda.current_stream() if self.p.is_cuda else None
            self.out = torch.empty(count, dtype=torch.int64, device=self.device)
            self.room = _SCRATCH.on(self.device, count)
            self.solved = self.room.solved
            step = count + count % 2  # so that what follows is aligned
            self.uniform, array = _HOST.integers(3 * step)
            array[:count] = uniform
            if self.size <= _SMALL:
                self._draw_small()
            elif self.referenced:
                self._solve_and_pick(count, self.uniform, self.uniform, self.stream)
            else:
                own = np.flatnonzero(uniform >= self.box.shared)
                array[step : step + own.size] = own
                array[2 * step : 2 * step + own.size] = uniform[own] - self.box.shared
                self._draw_large(own.size, self.uniform[step:], self.uniform[2 * step :])
            if self.stream is not None:
                self.stream.synchronize()
        if _HOST.flag[0]:
            _HOST.flag[0] = 0
            host.refuse(rows)

    def _draw_small(self) -> None:
        block = triton.next_power_of_2(self.size)
        together = max(1, 512 // block)
        arguments = (
            self.p, self.m, self.uniform, self.solved, self.out, _HOST.bad, self.box.reals, self.box.whole, self.count, *self.layout,
            *self.tolerances,
        )  # fmt: skip
        constants = {**self.kind, "ROWS": together, "BLOCK": block, "num_warps": 1 if block <= 1024 else 4}
        _launched(small.draw, triton.cdiv(self.count, together), self.key, arguments, constants, self.stream)

    def _draw_large(self, own: int, listed: torch.Tensor, rest: torch.Tensor) -> None:
        """Over a uniform reference: whose integer is shared has its outcome at once, and the others are solved while all are checked."""
        if self.stream is None or not own:
            self._check()
            if own:
                self._solve_and_pick(own, rest, listed, None)
            return
        room = self.room
        room.before.record(self.stream)
        room.before.wait(room.side)
        self._solve_and_pick(own, rest, listed, room.side)
        room.after.record(room.side)
        self._check()
        room.after.wait(self.stream)

    def _check(self) -> None:
        arguments = self.p, self.uniform, self.out, _HOST.bad, self.box.whole, self.size, self.size, self.tolerances[0]
        _launched(kernel.check, self.count, self.key, arguments, {"LOGITS": self.rows.logits, **_CHECK}, self.stream)

    def _split(self, rows: int) -> int:
        """How many programs share a row."""
        if self.referenced or not self.p.is_cuda or rows > _MOST_SPLIT:
            return 1
        together = _processors(self.device)
        return next((split for split in _SPLITS if rows * split <= together), 1)

    def _solve_and_pick(self, rows: int, uniform: torch.Tensor, listed: torch.Tensor, stream: Any) -> None:
        split, room = self._split(rows), self.room
        some = {"SPLIT": split, "launch_cooperative_grid": split > 1}
        constants = {**self.kind, **_SOLVE[self.referenced], **some}
        sample = constants["SAMPLE"]
        step = max(triton.cdiv(self.size, sample) // kernel.SAMPLED.value, 1) * sample
        shared = self.p, self.m, listed, uniform, self.solved
        solving = (
            *shared, _HOST.bad, self.box.reals, self.box.whole, room.sums, room.counters, room.pickers, *self.layout, *self.tolerances, step,
        )  # fmt: skip
        key = self.key, split
        _launched(kernel.solve, rows * split, key, solving, constants, stream)
        more = (
            *shared,
            self.out,
            self.box.reals,
            self.box.whole,
            room.picked,
            room.pickers,
            room.counters,
            *self.layout,
        )
        _launched(picking.pick, rows * split, key, more, {**self.kind, **_PICK[self.referenced], **some}, stream)

    def parts(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """L, E cut off at 2^62, and the fill, (n, k) each, of rows that were all solved."""
        shape = self.count, self.size
        lower, upper, excess = (torch.empty(shape, dtype=torch.int64, device=self.device) for _ in range(3))
        with torch.cuda.device_of(self.p):
            picking.write[(shape[0], triton.cdiv(self.size, 1024))](
                self.p,
                self.m,
                self.solved,
                lower,
                upper,
                excess,
                self.box.reals,
                *self.layout,
                **self.kind,
                BLOCK=1024,
            )
        available = TOTAL - lower.sum(1, keepdim=True)
        given = _handed_out(excess, available)
        return lower, given, _handed_out(upper - lower - given, available - given.sum(1, keepdim=True))


def drawn(rows: Rows, terms: Terms, uniform: Integers) -> torch.Tensor:
    """One outcome for each row, from one integer in [0, 2^62) each."""
    if not len(rows.p):
        return torch.empty(0, dtype=torch.int64, device=rows.p.device)
    return _Launch(rows, terms, uniform).out


def parts(rows: Rows, terms: Terms) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """L, E and the fill of each row: what the integers are given out to, read off the kernels' own functions."""
    return _Launch(
        rows, terms, np.full(len(rows.p), TOTAL - 1, dtype=np.int64)
    ).parts()  # an integer that nobody shares


def weights(rows: Rows, terms: Terms) -> torch.Tensor:
    """W = L + E + fill: the integers that `drawn` draws from."""
    if not len(rows.p):
        return torch.empty(tuple(rows.p.shape), dtype=torch.int64, device=rows.p.device)
    lower, excess, fill = parts(rows, terms)
    found = lower + excess + fill
    if not bool((found.sum(1) == TOTAL).all()):
        raise DiscreetError(
            "weights do not sum to 2^62: these are not the integers that are drawn with; please report this"
        )
    return found


def _handed_out(wanted: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """How much each outcome gets when `available` units are handed out in order: sums that pass 2^63 do so behind the last unit."""
    ends = torch.cumsum(wanted, 1)
    past = torch.cummax(((ends > available) | (ends < 0)).to(torch.int8), 1).values > 0
    return torch.diff(torch.where(past, available, ends), dim=1, prepend=torch.zeros_like(available))
