"""Drawing on a GPU: the kernels of a call, the plan and memory kept between calls, and the one wait at the end.

A `LaunchPlan` holds everything that does not depend on the numbers in the tensors, and the compiled kernels. It does not depend on the
number of rows or on whether they share a reference. Every batch therefore runs the same compiled kernel, which sums a reference in one
order. A kernel compiled for a stride of 0 would sum in another order and have other integers. After the kernels, one flag tells whether
every row was a distribution.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import driver

from discreet.errors import DiscreetError
from discreet.families import sum_rounding
from discreet.release import TOTAL, FixedIntegers, IntegerFiller
from discreet.torch import (
    _host as host,
    _tiles as tiles,
    _triton_kernels as kernel,
    _triton_kernels as picking,
    _triton_kernels as small,
)
from discreet.torch._host import DeviceBox, TensorRows, Terms

SPLITS = (8, 4)  # programs for one row, if all of them fit on the device at once
_MOST_SPLIT = 32  # most rows to split over programs
_UNBOUNDED = 1e30  # a ceiling that the floors of the other outcomes imply
_FLOAT32_SLACK = 1e-5  # error of summing in float32
_BITS_OF_E = math.log2(math.e)
_FAR = 1 << 14  # rows above which integers are copied to the device
_RESIDENT = 64  # warps of a processor
_OPTIONS = {"num_warps", "maxnreg", "launch_cooperative_grid"}  # of a launch, not constants of a kernel


class LaunchPlan:
    """Terms, shape and dtypes of a call in the form of its kernels, and the compiled kernels.

    Attributes:
        shared: the first integer from which on none is shared.
        reals: b, B, rho, 2^62 b, L, U for the kernels.
        whole: L, the bound from which on nothing is shared, and the bound up to which everything is, for the kernels.
        scales: factors of the logits.
        tolerances: of the sums of probabilities.
        kind: whether there is a reference, and whether these are logits.
    """

    def __init__(
        self, size: int, terms: Terms, referenced: bool, logits: bool, temperature: float, dtypes: tuple[torch.dtype, torch.dtype],
        device: torch.device,
    ) -> None:  # fmt: skip
        if referenced:
            box = DeviceBox.around(size, terms)
            reals = (box.b, min(box.B, _UNBOUNDED), box.ratio, box.b * TOTAL, 0.0, 0.0)
            self.shared, whole = box.unshared, (1, box.unshared, box.surely_shared)
        else:
            sampler = host.uniform_sampler(size, terms)
            lattice, ceiling = sampler.lattice, float(sampler.box.ceiling)
            lower, upper = int(lattice.lower), int(lattice.upper)  # one number each: it is uniform
            top = ceiling * size if ceiling < math.inf else _UNBOUNDED
            reals = (float(sampler.box.lower) * size, top, 1.0, 0.0, float(lower), float(upper))
            self.shared, whole = lattice.shared_total, (lower, lattice.shared_total, lattice.shared_total)
        self.reals = torch.tensor(reals, dtype=torch.float64, device=device)
        self.whole = torch.tensor(whole, dtype=torch.int64, device=device)
        self.scales = _BITS_OF_E / temperature, _BITS_OF_E
        self.tolerances = tuple(sum_rounding(size, torch.finfo(dtype).eps) + _FLOAT32_SLACK for dtype in dtypes)
        self.kind = {"REFERENCE": referenced, "LOGITS": logits}
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 0
        self._device = device.index if device.type == "cuda" else None
        self._compiled: dict[Any, Any] = {}

    def split(self, rows: int) -> int:
        """The number of programs for each row: several if few rows are solved, so that all run at once."""
        if self.kind["REFERENCE"] or rows > _MOST_SPLIT:
            return 1
        return next((split for split in SPLITS if rows * split <= self.processors), 1)

    def programs(self, tasks: int, warps: int) -> int:
        """The number of programs for that many tasks: as many as the device runs at once, since starting a program takes time."""
        return min(tasks, self.processors * (_RESIDENT // warps)) if self.processors else tasks

    def launch(
        self, function: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any], stream: Any
    ) -> None:
        """Run a kernel on a stream from `stream`; its constants are in the kernel's order.

        Compiled kernels are called directly, which takes a fraction of the time of Triton's look-up. A plan fixes everything that a kernel
        is specialised on, except its constants and addresses, which are all aligned alike.
        """
        key = function.__name__, constants.get("SPLIT")
        found = self._compiled.get(key)
        if found is None:
            with torch.cuda.stream(torch.cuda.ExternalStream(stream) if stream is not None else None):
                compiled = function[(programs,)](*arguments, **constants)
            self._compiled[key] = compiled, [value for name, value in constants.items() if name not in _OPTIONS]
        elif stream is None:
            function[(programs,)](*arguments, **constants)
        else:
            compiled, values = found
            compiled[(programs, 1, 1)](*arguments, *values, stream=stream)

    def stream(self) -> Any:
        """The current stream of the current device for launches; None if kernels are interpreted."""
        return driver.active.get_current_stream(self._device) if self._device is not None else None


plan_of = lru_cache(maxsize=256)(LaunchPlan)


class KernelBuffers:
    """Memory for the kernels of one thread on one device, reused between calls: every call waits for its kernels.

    Attributes:
        solved: the state of solved rows.
        sums: partial sums of programs that share a row.
        spans: the same as integers.
        counters: the number of programs that have reached a point; 0 between calls.
        bad: set if some row is not a distribution; in host memory, like `uniform`.
        uniform: the integers of a call.
        near: the same in device memory, if there are too many to read one by one.
    """

    def __init__(self, device: torch.device, rows: int) -> None:
        on_gpu = device.type == "cuda"
        split, turns = SPLITS[0], tiles.TURNS.value
        self.solved = torch.empty((rows, tiles.COLUMNS.value), dtype=torch.float64, device=device)
        self.sums = torch.zeros(_MOST_SPLIT * 16 * split * turns, dtype=torch.float32, device=device)
        self.spans = torch.zeros(_MOST_SPLIT * 2 * split, dtype=torch.int64, device=device)
        self.counters = torch.zeros(_MOST_SPLIT * tiles.COUNTERS.value, dtype=torch.int32, device=device)
        self.bad = torch.zeros(1, dtype=torch.int32, pin_memory=on_gpu)
        self.flag = self.bad.numpy()
        step = rows + rows % 2  # so that each part is aligned
        everything = torch.zeros(3 * step, dtype=torch.int64, pin_memory=on_gpu)
        self.uniform, self.listed, self.rest = everything[:step], everything[step : 2 * step], everything[2 * step :]
        self.arrays = self.uniform.numpy(), self.listed.numpy(), self.rest.numpy()
        self.near = self.uniform if not on_gpu or rows < _FAR else torch.empty_like(self.uniform, device=device)
        self._streams: dict[int, Any] = {}
        if on_gpu:
            self.side: Any = torch.cuda.Stream(device)  # solves rows while all are checked
            self.before, self.after = torch.cuda.Event(), torch.cuda.Event()
        else:  # interpreted: nothing runs in parallel
            self.side = None

    def stream(self, handle: int) -> Any:
        """A torch stream by its handle, created once, since that takes as long as a launch."""
        found = self._streams.get(handle)
        if found is None:
            found = self._streams[handle] = torch.cuda.ExternalStream(handle)
        return found


class _BufferPool(threading.local):
    def __init__(self) -> None:
        self._of: dict[torch.device, KernelBuffers] = {}

    def on(self, device: torch.device, rows: int) -> KernelBuffers:
        """The buffers of this thread on a device, for that many rows."""
        room = self._of.get(device)
        if room is None or room.solved.shape[0] < rows:
            room = self._of[device] = KernelBuffers(device, max(1024, rows))
        return room


BUFFERS = _BufferPool()


_ALIGNMENT = 16  # bytes
_SMALL = 2048  # most outcomes of a row that one program holds
_LANES = 128  # numbers of a warp, four to a thread: more do not fit into registers
_MANY = 1 << 17  # rows worth a separate launch

# The split of rows: each thread sums what it reads, 16 bytes at a time. With a reference it is the same for every batch, and so is the
# compiled kernel (`discreet.torch._gpu`), so that the reference has the same integers in all of them.
_CHECK = {"BLOCK": 8192, "num_warps": 8}
_DEEP = 4096  # numbers read by a program at a time
_REGISTERS = {True: 128, False: None}  # of a thread: over a reference two programs share a processor
_SAMPLE = 1024
_PICK = {True: {"BLOCK": 4096, "num_warps": 8}, False: {"BLOCK": 8192, "num_warps": 16}}


def _align_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its rows are contiguous and aligned, else a copy: one layout for the kernels."""
    if not tensor.is_contiguous():
        return tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _on_device(tensor: torch.Tensor) -> Any:
    """A context in which the tensor's device is the current one."""
    here = not tensor.is_cuda or tensor.device.index == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device_of(tensor)


class _Launch:
    """The kernels on some rows: `out` has their outcomes after construction; a row that is not a distribution is an error.

    Python's work before the first kernel starts costs time, its later work does not: everything that can wait is done later.
    """

    def __init__(self, rows: TensorRows, terms: Terms, source: IntegerFiller) -> None:
        self.p = p = _align_rows(rows.p)
        self.m = m = p if rows.reference is None else _align_rows(rows.reference)
        self.count, self.size = p.shape
        self.referenced = rows.reference is not None
        self.plan = plan_of(
            self.size, terms, self.referenced, rows.logits, rows.temperature, (p.dtype, m.dtype), p.device
        )
        # number of outcomes, also the stride of rows, and the step in rows of reference for each row of clients
        self.layout = self.size, self.size, int(m.shape[0] > 1), *self.plan.scales
        self.room = room = BUFFERS.on(p.device, self.count)
        with _on_device(p):
            self.out = torch.empty(self.count, dtype=torch.int64, device=p.device)
            room.flag[0] = 0
            done = source.fill_by_parts(room.arrays[0][: self.count])
            if self.size <= _SMALL:
                self._draw_small(done)
            else:
                for _ in done:
                    pass
                if self.referenced:
                    self._solve(self.count, self.plan.stream())
                else:
                    self._draw_large()
            if p.is_cuda:
                room.stream(self.plan.stream()).synchronize()
        if room.flag[0]:
            host.refuse_bad_rows(rows)

    def _draw_small(self, done: Iterator[int]) -> None:
        """Draw many rows while the integers of the next are read."""
        plan, room = self.plan, self.room
        block = triton.next_power_of_2(self.size)
        together = max(1, _LANES // block)
        warps = max(1, block // (2 * _LANES))
        constants = {
            **plan.kind, "ROWS": together, "BLOCK": block, "num_warps": warps, "maxnreg": 64 if block <= _LANES else 128,
        }  # fmt: skip
        begun = 0
        for there in done:
            if there < self.count:
                there -= there % 16  # aligned as the first row is
                if there - begun < _MANY:
                    continue
            rows = there - begun
            if room.near is not room.uniform:
                room.near[begun:there].copy_(room.uniform[begun:there], non_blocking=True)
            tensors = (self.p, self.m, room.near, room.solved, self.out)
            if begun:
                tensors = tuple(each if len(each) == 1 else each[begun:] for each in tensors)
            arguments = *tensors, room.bad, plan.reals, plan.whole, rows, *self.layout, *plan.tolerances
            programs = plan.programs(triton.cdiv(rows, together), warps)
            plan.launch(small.draw, programs, arguments, constants, plan.stream())
            begun = there

    def _draw_large(self) -> None:
        """Draw over a uniform reference: a shared integer gives its outcome at once, and the other rows are solved while all are checked.

        The few solved rows take longer than the check of all, and need more of a processor: they begin first.
        """
        plan, room = self.plan, self.room
        uniform = room.arrays[0][: self.count]
        own = np.flatnonzero(uniform >= plan.shared)
        stream = aside = plan.stream()
        if own.size:
            room.arrays[1][: own.size] = own
            room.arrays[2][: own.size] = uniform[own] - plan.shared
            if room.side is not None:
                aside = room.side.cuda_stream
                room.before.record(room.stream(stream))
            self._solve(own.size, stream)
        if aside != stream:
            room.before.wait(room.side)
        arguments = self.p, room.uniform, self.out, room.bad, plan.whole, self.size, self.size, plan.tolerances[0]
        plan.launch(kernel.check, self.count, arguments, {"LOGITS": plan.kind["LOGITS"], **_CHECK}, aside)
        if aside != stream:
            room.after.record(room.side)
            room.after.wait(room.stream(stream))

    def _solve(self, rows: int, stream: Any) -> None:
        """Solve rows and find their outcomes: all rows over a reference, the listed ones over a uniform one."""
        plan, room, split = self.plan, self.room, self.plan.split(rows)
        integers = room.uniform if self.referenced else room.rest
        shared = self.p, self.m, room.listed, integers, room.solved, self.out
        block = 1024 if self.p.dtype == torch.float32 else 2048
        constants = {
            **plan.kind, "DEPTH": _DEEP // block, "BLOCK": block, "SAMPLE": _SAMPLE, "SPLIT": split,
            "num_warps": 8, "maxnreg": _REGISTERS[self.referenced], "launch_cooperative_grid": split > 1,
        }  # fmt: skip
        step = max(triton.cdiv(self.size, _SAMPLE) // kernel.SAMPLED.value, 1) * _SAMPLE
        arguments = (
            *shared, room.bad, plan.reals, plan.whole, room.sums, room.spans, room.counters, *self.layout, *plan.tolerances, step,
        )  # fmt: skip
        plan.launch(kernel.solve, rows * split, arguments, constants, stream)
        if split == 1:
            arguments = (*shared, plan.reals, plan.whole, *self.layout)
            plan.launch(picking.pick, rows, arguments, {**plan.kind, **_PICK[self.referenced]}, stream)

    def parts(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """L, E cut off at 2^62, and the fill, (n, k) each, of rows that were all solved."""
        shape, plan = (self.count, self.size), self.plan
        lower, upper, excess = (torch.empty(shape, dtype=torch.int64, device=self.p.device) for _ in range(3))
        arguments = self.p, self.m, self.room.solved, lower, upper, excess, plan.reals, *self.layout
        with torch.cuda.device_of(self.p):
            picking.write[(self.count, triton.cdiv(self.size, 1024))](*arguments, **plan.kind, BLOCK=1024)
        available = TOTAL - lower.sum(1, keepdim=True)
        given = _hand_out(excess, available)
        return lower, given, _hand_out(upper - lower - given, available - given.sum(1, keepdim=True))


def draw_outcomes(rows: TensorRows, terms: Terms, source: IntegerFiller) -> torch.Tensor:
    """One outcome for each row, from one integer in [0, 2^62) each."""
    if not len(rows.p):
        return torch.empty(0, dtype=torch.int64, device=rows.p.device)
    return _Launch(rows, terms, source).out


def parts(rows: TensorRows, terms: Terms) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """L, E and the fill of each row, from the kernels' own functions."""
    nobody_shares = np.full(len(rows.p), TOTAL - 1, dtype=np.int64)
    return _Launch(rows, terms, FixedIntegers(nobody_shares)).parts()


def weights(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """W = L + E + fill: the integers that `draw_outcomes` draws from."""
    if not len(rows.p):
        return torch.empty(tuple(rows.p.shape), dtype=torch.int64, device=rows.p.device)
    lower, excess, fill = parts(rows, terms)
    found = lower + excess + fill
    if not bool((found.sum(1) == TOTAL).all()):
        raise DiscreetError("weights do not sum to 2^62: these are not the integers of the draw; please report this")
    return found


def _hand_out(wanted: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """How much each outcome gets when `available` units are handed out in order; sums beyond 2^63 occur only behind the last unit."""
    ends = torch.cumsum(wanted, 1)
    past = torch.cummax(((ends > available) | (ends < 0)).to(torch.int8), 1).values > 0
    return torch.diff(torch.where(past, available, ends), dim=1, prepend=torch.zeros_like(available))
