"""Drawing on a GPU: which kernels a call runs, and the one wait for them that tells whether every row was a law."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
import triton

from discreet.errors import DiscreetError
from discreet.release import TOTAL
from discreet.release._randomness import FixedIntegers, IntegerFiller
from discreet.torch import _host as host
from discreet.torch import _kernel as kernel
from discreet.torch import _picking as picking
from discreet.torch import _small as small
from discreet.torch._boxes import Terms
from discreet.torch._inputs import TensorRows
from discreet.torch._plans import BUFFERS, plan_of

_ALIGNMENT = 16  # bytes
_SMALL = 2048  # outcomes of which a program holds whole rows
_LANES = 128  # numbers of a warp, four to a thread: with more, what is known of them does not fit into registers
_MANY = 1 << 17  # rows that are worth a launch of their own

# How rows are cut: each thread adds up what it reads in 16 bytes at a time. With a reference it is the same for every batch, and so is the
# compiled kernel (`discreet.torch._plans`), so that the reference has the same integers in all of them.
_CHECK = {"BLOCK": 8192, "num_warps": 8}
_DEEP = 4096  # numbers that a program reads at a time
_REGISTERS = {True: 128, False: None}  # of a thread: over a reference two programs share a processor
_SAMPLE = 1024
_PICK = {True: {"BLOCK": 4096, "num_warps": 8}, False: {"BLOCK": 8192, "num_warps": 16}}


def _align_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its rows lie one after the other on an aligned address, else a copy: one layout for the kernels."""
    if not tensor.is_contiguous():
        return tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _on_device(tensor: torch.Tensor) -> Any:
    """What makes the tensor's device the current one, where it is not already."""
    here = not tensor.is_cuda or tensor.device.index == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device_of(tensor)


class _Launch:
    """The kernels on some rows: `out` has their outcomes once this exists; a row that is no law is an error.

    What Python does before the first kernel starts is on the clock, what it does afterwards is not: all that can wait does."""

    def __init__(self, rows: TensorRows, terms: Terms, source: IntegerFiller) -> None:
        self.p = p = _align_rows(rows.p)
        self.m = m = p if rows.reference is None else _align_rows(rows.reference)
        self.count, self.size = p.shape
        self.referenced = rows.reference is not None
        self.plan = plan_of(
            self.size, terms, self.referenced, rows.logits, rows.temperature, (p.dtype, m.dtype), p.device
        )
        # number of outcomes, which is the stride of rows too, and how many rows of reference each row of clients goes on by
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
            host.refuse(rows)

    def _draw_small(self, done: Iterator[int]) -> None:
        """Many rows are drawn while the integers of the next are read."""
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
        """Over a uniform reference: whose integer is shared has its outcome at once, and the others are solved while all are checked.

        The few that are solved take longer than the check of all, and need more of a processor than it leaves: they begin first."""
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
        """Solve rows and find their outcomes: all of them over a reference, those that are listed over a uniform one."""
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
    """L, E and the fill of each row: what the integers are given out to, read off the kernels' own functions."""
    nobody_shares = np.full(len(rows.p), TOTAL - 1, dtype=np.int64)
    return _Launch(rows, terms, FixedIntegers(nobody_shares)).parts()


def weights(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """W = L + E + fill: the integers that `draw_outcomes` draws from."""
    if not len(rows.p):
        return torch.empty(tuple(rows.p.shape), dtype=torch.int64, device=rows.p.device)
    lower, excess, fill = parts(rows, terms)
    found = lower + excess + fill
    if not bool((found.sum(1) == TOTAL).all()):
        raise DiscreetError(
            "weights do not sum to 2^62: these are not the integers that are drawn with; please report this"
        )
    return found


def _hand_out(wanted: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """How much each outcome gets when `available` units are handed out in order: sums that pass 2^63 do so behind the last unit."""
    ends = torch.cumsum(wanted, 1)
    past = torch.cummax(((ends > available) | (ends < 0)).to(torch.int8), 1).values > 0
    return torch.diff(torch.where(past, available, ends), dim=1, prepend=torch.zeros_like(available))
