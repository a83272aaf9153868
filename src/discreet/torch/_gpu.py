"""Drawing on a GPU: the kernels of a call, the plan and memory kept between calls, and the one wait at the end.

A `LaunchPlan` holds everything that does not depend on the numbers in the tensors, and the compiled kernels. It does not depend on the
number of rows or on whether they share a reference. Every batch therefore runs the same compiled kernel, which sums a reference in one
order. A kernel compiled for a stride of 0 would sum in another order and have other integers. After the kernels, one flag tells whether
every row was a distribution.

Randomness: each row has one 64-bit word, and its integer is the upper 62 bits. Up to 512 rows take their words from the operating system.
More rows take them from ChaCha20 on the device, under a key of 256 bits that the call reads from the operating system and never keeps
(`discreet.torch._keystream`). A call within the capture of a CUDA graph is refused: each replay would draw with the same words.

Streams: everything runs on the stream that is current at the call, and the call ends when that stream has finished. Where the host knows the
words, all rows are checked there while a second stream, of higher priority, solves some. Each of the two waits for the other. The check needs
no words, so it starts before the host reads them, unless they are few.
"""

from __future__ import annotations

import math
import struct
import threading
from contextlib import nullcontext, suppress
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import driver

from discreet.errors import DiscreetError
from discreet.families import largest_rounding_of_sum
from discreet.release import BITS, TOTAL, FixedIntegers, IntegerFiller, SystemEntropy, entropy_bytes
from discreet.torch import (
    _host as host,
    _keystream as keystream,
    _long_rows as long,
    _short_rows as short,
    _tiles as tiles,
)
from discreet.torch._host import DeviceBox, TensorRows, Terms

_UNBOUNDED = 1e30  # a ceiling that the floors of the other outcomes imply
_FLOAT32_SLACK = 1e-5  # error of summing in float32
_BITS_OF_E = math.log2(math.e)
# of a launch, not constants of a kernel
_OPTIONS = {"num_warps", "maxnreg", "launch_cooperative_grid", "enable_fp_fusion"}
_FEW = 512  # rows whose words are read from the operating system: that takes no more time than a launch
_NO_NONCE = (0, 0, 0)
_MOST_ROWS = 1 << 31  # far from 2^35, where the counter of ChaCha20 would wrap around
_KEY = struct.Struct("<8i")


class LaunchPlan:
    """Terms, shape and dtypes of a call in the form of its kernels, and the compiled kernels.

    Attributes:
        reals: b, B, rho, 2^62 b, L, U, 2^62/k for the kernels.
        whole: L, the bound from which on nothing is shared, the bound up to which everything is, and 2^64/L, for the kernels.
        scales: factors of the logits.
        tolerances: of the sums of probabilities.
        kind: whether there is a reference, and whether these are logits.
        short: the constants of the kernel for short rows, or nothing.
        units: of a long row, at most.
        solving: the number of programs that solve listed rows.
        most_split: how many of these may share a row; over a reference, how many programs may.
        sums_of_group: floats in which the programs that share a row leave their sums.
        sample_step: columns between the parts of a row's sample.
        shared_total: the first integer that is not shared by all clients, over a uniform reference.
        checked, solved: the constants of the kernels for long rows.
        portions: into which the columns of a long row are cut.
    """

    def __init__(
        self, size: int, terms: Terms, referenced: bool, logits: bool, temperature: float, dtypes: tuple[torch.dtype, torch.dtype],
        device: torch.device,
    ) -> None:  # fmt: skip
        if referenced:
            box = DeviceBox.from_size_and_terms(size, terms)
            reals = (box.b, min(box.B, _UNBOUNDED), box.ratio, box.b * TOTAL, 0.0, 0.0, 0.0)
            integers = (1, box.first_unshared, box.surely_shared, 0)
            ceiling = box.B
        else:
            sampler = host.sampler_around_uniform_reference(size, terms)
            lattice = sampler.lattice
            ceiling = float(sampler.box.ceiling) * size
            lower, upper = int(lattice.lower), int(lattice.upper)  # one number each: it is uniform
            reciprocal = min((1 << 64) // lower, (1 << 64) - 1)
            reals = (
                float(sampler.box.lower) * size, min(ceiling, _UNBOUNDED), 1.0, 0.0, float(lower), float(upper), TOTAL / size,
            )  # fmt: skip
            # as int64
            integers = (lower, lattice.shared_total, lattice.shared_total, reciprocal - (reciprocal >> 63 << 64))
        self.shared_total, self.surely_shared = integers[1:3]
        self.reals = torch.tensor(reals, dtype=torch.float64, device=device)
        self.whole = torch.tensor(integers, dtype=torch.int64, device=device)
        self.scales = _BITS_OF_E / temperature, _BITS_OF_E
        self.tolerances = tuple(
            largest_rounding_of_sum(size, torch.finfo(dtype).eps) + _FLOAT32_SLACK for dtype in dtypes
        )
        self.kind = {"REFERENCE": referenced, "LOGITS": logits}
        self.processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 0
        self._device = device.index if device.type == "cuda" else None
        self._compiled: dict[Any, Any] = {}
        self.short = self._short_row_constants(size, dtypes, ceiling < _UNBOUNDED) if size <= _SHORT else {}
        self.units = triton.next_power_of_2(triton.cdiv(size, long.UNIT.value))
        self.solving = self.processors or 1
        smallest = min(dtype.itemsize for dtype in dtypes)
        lanes = _THREADS * max(1, _LEAST_READ // smallest)  # of a program, at least
        self.most_split: int = min(_MOST_SPLIT, self.units)
        if referenced:  # else lanes would be added up in another order than those that one program sums
            self.most_split = _LANES // lanes if size % _ALIGNMENT == 0 else 1
        width = _THREADS * _ALIGNMENT // smallest  # then a thread reads as much at a time as it can
        sample_parts = _SAMPLE // width
        self.sample_step = max(-(-size // width) // sample_parts, 1) * width
        self.checked = {"LOGITS": logits, **_CHECK}
        self.solved = {
            **self.kind, "DEPTH": _DEEP // _LANES, "BLOCK": _LANES, "SAMPLED": sample_parts, "WIDTH": width, "UNITS": self.units,
            "EACH": triton.next_power_of_2(triton.cdiv(size, _LANES)), "SPLIT": 1, "num_warps": _THREADS // 32,
            "maxnreg": _REGISTERS[referenced], "launch_cooperative_grid": self.processors > 0 and not referenced, "enable_fp_fusion": False,
        }  # fmt: skip
        self.portions = _LANES if referenced else self.units
        self.sums_of_group = 2 * self.portions * long.SUMS.value

    def _short_row_constants(self, size: int, dtypes: tuple[torch.dtype, torch.dtype], ceiling: bool) -> dict[str, Any]:
        """The constants of `draw_short_rows`: a row belongs to as many threads as leave 16 numbers to each, and to one warp at most."""
        block = max(triton.next_power_of_2(size), 4)
        alignment = math.gcd(size, 4)
        threads = min(max(block // 16, 1), 32)
        width = min(threads * alignment, block)
        return {
            **self.kind, "CEILING": ceiling, "KEEP": False, "ALIGNED": alignment, "CHUNKS": block // width,
            "ROWS": 32 // threads, "WIDTH": width, "num_warps": 1, "maxnreg": 64 if block <= 128 else 128,
        }  # fmt: skip

    def number_of_programs_to_check_row(self, rows: int) -> int:
        """The number of programs that check one row: several if there are few rows."""
        return (
            max(1, min(long.MOST_PARTS.value, self.units, self.processors * _WAVES // rows))
            if rows <= _MOST_SHARED
            else 1
        )

    def number_of_programs_to_solve_row(self, rows: int) -> int:
        """The number of programs that solve one row over a reference: several if there are few rows."""
        split = self.most_split
        while split > 1 and split * rows > _RESIDENT * self.processors:
            split //= 2
        return split

    def launch_kernel(
        self, function: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any], stream: Any
    ) -> None:
        """Run a kernel on a stream, or interpret it; its constants are in the kernel's order.

        Compiled kernels are called directly, which takes a fraction of the time of Triton's look-up. A plan fixes everything that a kernel
        is specialised on, except its constants and addresses, which are all aligned alike.
        """
        key = function.__name__, constants.get("KEEP"), constants.get("SPLIT")
        entry = self._compiled.get(key)
        if entry is None:
            with nullcontext() if stream is None else torch.cuda.stream(stream):
                compiled_kernel = function[(programs,)](*arguments, **constants)
            if stream is not None:
                options = compiled_kernel.function, compiled_kernel.packed_metadata, None, None, None  # without hooks
                values = [value for name, value in constants.items() if name not in _OPTIONS]
                self._compiled[key] = compiled_kernel.run, options, values
        else:
            launch, options, values = entry
            launch(programs, 1, 1, stream.cuda_stream, *options, *arguments, *values)

    def current_stream_handle(self) -> int:
        """The handle of the stream that is current on the device of the plan; 0 also stands for interpreted kernels."""
        return driver.active.get_current_stream(self._device) if self._device is not None else 0


cached_launch_plan = lru_cache(maxsize=256)(LaunchPlan)


class KernelBuffers:
    """Memory for the kernels of one thread on one device, reused between calls: every call waits for its kernels.

    Attributes:
        rows, solving, programs, sums_of_group: what they suffice for: states of rows are kept if `solving`.
        few: words of a small batch, in host memory, and `few_array`, the same for numpy.
        own: the rows of a small batch that are solved, likewise.
        bad: set if some row is not a distribution; in host memory, and `flag`, the same for numpy.
        words: words of any other batch.
        solved: the state of solved rows.
        every: the numbers of all rows.
        listed: rows to be solved.
        counts: how many these are, and of programs that are done; 0 between calls.
        seen: what programs that check a row together have seen.
        sums: sums of the portions of rows in work.
        counters: the number of programs of a group that have reached a point; 0 between calls.
    """

    def __init__(self, device: torch.device, rows: int, solving: bool, programs: int, sums_of_group: int) -> None:
        on_gpu = device.type == "cuda"
        self.rows, self.solving, self.programs, self.sums_of_group = rows, solving, programs, sums_of_group
        self.few = torch.zeros(_FEW, dtype=torch.int64, pin_memory=on_gpu)
        self.few_array = self.few.numpy().view(np.uint64)
        self.own = torch.zeros(_FEW, dtype=torch.int64, pin_memory=on_gpu)
        self.own_array = self.own.numpy()
        self.bad = torch.zeros(1, dtype=torch.int32, pin_memory=on_gpu)
        self.flag = self.bad.numpy()
        self.words = torch.empty(rows, dtype=torch.int64, device=device)
        self.solved = torch.empty((rows if solving else 1, tiles.COLUMNS.value), dtype=torch.float64, device=device)
        self.every = torch.arange(rows if solving else 1, dtype=torch.int64, device=device)
        self.listed = torch.empty(rows if solving else 1, dtype=torch.int64, device=device)
        self.counts = torch.zeros(2 + _MOST_SHARED, dtype=torch.int32, device=device)
        self.seen = torch.empty(_MOST_SHARED * long.MOST_PARTS.value, dtype=torch.float32, device=device)
        self.sums = torch.empty(programs * sums_of_group, dtype=torch.float32, device=device)
        self.counters = torch.zeros(programs * 2, dtype=torch.int32, device=device)
        self._device = device if on_gpu else None
        self._streams: dict[int, Any] = {}
        if on_gpu:
            self.side = torch.cuda.Stream(device, priority=-1)  # solves rows while all are checked
            self.before, self.after = torch.cuda.Event(), torch.cuda.Event()

    def torch_stream_of_handle(self, handle: int) -> Any:
        """The torch stream of a handle, made once, since that takes as long as a launch; None where kernels are interpreted.

        Handle 0 is the default stream. `ExternalStream(0)` would be a new stream, which waits for nothing.
        """
        if self._device is None:
            return None
        stream = self._streams.get(handle)
        if stream is None:
            stream = self._streams[handle] = (
                torch.cuda.ExternalStream(handle, self._device) if handle else torch.cuda.default_stream(self._device)
            )
        return stream


class _BufferPool(threading.local):
    def __init__(self) -> None:
        self._of: dict[torch.device, KernelBuffers] = {}

    def drop_buffers(self, device: torch.device) -> None:
        """Forget the buffers of a call that did not end: its kernels may still use them, and their counters are not 0."""
        if device.type == "cuda":
            with suppress(RuntimeError):
                torch.cuda.synchronize(device)
        self._of.pop(device, None)

    def buffers_on_device(
        self, device: torch.device, rows: int, solving: bool, programs: int, sums_of_group: int
    ) -> KernelBuffers:
        """The buffers of this thread on a device: at least so large, and `solving` if states of rows are kept."""
        buffers = self._of.get(device)
        if buffers is None:
            buffers = self._of[device] = KernelBuffers(device, max(1024, rows), solving, programs, sums_of_group)
        elif (
            rows > buffers.rows
            or solving > buffers.solving
            or programs > buffers.programs
            or sums_of_group > buffers.sums_of_group
        ):
            sizes = (
                max(rows, buffers.rows),
                solving or buffers.solving,
                max(programs, buffers.programs),
                max(sums_of_group, buffers.sums_of_group),
            )
            buffers = self._of[device] = KernelBuffers(device, *sizes)
        return buffers


BUFFERS = _BufferPool()

_ALIGNMENT = 16  # bytes
_SHORT = 2048  # most outcomes of a row that a warp holds
_MOST_SHARED = 1024  # most rows that several programs check together
_WAVES = 32  # programs that check rows, for each processor: short ones, so that rows that are solved need not wait for their end
_AT_ONCE = 64  # rows whose words are read from the operating system before anything is launched
_MOST_SPLIT = 16  # programs that solve one row together, over a uniform reference

# Each lane of a program sums what it reads, four lanes a thread, or fewer where programs share a row. A lane adds the same numbers in the
# same order in every batch. No product is fused with a sum. So a reference has the same integers in all batches.
_CHECK = {"BLOCK": 8192, "num_warps": 8}
_THREADS = 256  # of a program that solves a row
_LANES = 1024  # of a row that is solved
_LEAST_READ = 4  # bytes that a thread reads at a time, at least
_RESIDENT = 2  # programs that share a processor, over a reference
_DEEP = 4096  # numbers that it reads at a time
_REGISTERS = {True: 128, False: 255}  # of a thread: over a reference as many as leave room for two programs
_STREAM = {"num_warps": 4}
_SHARED = {"BLOCK": _FEW, "num_warps": 4}
_STREAM_STEP = keystream.WORDS * keystream.LANES.value  # words of a program
_SAMPLE = 4096  # numbers of a row from which its slope is guessed


def _as_aligned_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if its rows are contiguous and aligned, else a copy: one layout for the kernels."""
    if not tensor.is_contiguous():
        return tensor.contiguous()
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _using_device_of(tensor: torch.Tensor) -> Any:
    """A context in which the tensor's device is the current one."""
    is_current = not tensor.is_cuda or tensor.device.index == torch.cuda.current_device()
    return nullcontext() if is_current else torch.cuda.device_of(tensor)


class _Launch:
    """The kernels on some rows: `out` has their outcomes after construction; a row that is not a distribution is an error.

    Python's work before the first kernel starts costs time, its later work does not: everything that can wait is done later.
    """

    def __init__(self, rows: TensorRows, terms: Terms, source: IntegerFiller, keep: bool = False) -> None:
        self.p = p = _as_aligned_rows(rows.p)
        self.m = m = p if rows.reference is None else _as_aligned_rows(rows.reference)
        self.count, self.size = p.shape
        self.referenced, self.keep = rows.reference is not None, keep
        self.plan = plan = cached_launch_plan(
            self.size, terms, self.referenced, rows.logits, rows.temperature, (p.dtype, m.dtype), p.device
        )
        # number of outcomes, also the stride of rows, and the step in rows of reference for each row of clients
        self.layout = self.size, self.size, int(m.shape[0] > 1), *plan.scales
        if self.count >= _MOST_ROWS:
            raise DiscreetError(
                f"{rows.argument_name} has {self.count:,} rows; one call draws fewer than 2^31: pass it in parts"
            )
        self.room = buffers = BUFFERS.buffers_on_device(
            p.device, self.count, keep or not plan.short, plan.solving, plan.sums_of_group
        )
        with _using_device_of(p):
            stream = buffers.torch_stream_of_handle(plan.current_stream_handle())
            self.source = source
            self.out = torch.empty(self.count, dtype=torch.int64, device=p.device)
            if keep:  # of the portions of long rows: surely L, at most L, wanted and fullest totals
                self.portions = torch.empty((self.count, 4, plan.portions), dtype=torch.int64, device=p.device)
            buffers.flag[0] = 0
            try:
                self._launch_kernels(stream)
                if stream is not None:
                    stream.synchronize()
            except BaseException:
                BUFFERS.drop_buffers(p.device)
                raise
        if buffers.flag[0]:
            host.raise_error_for_bad_rows(rows)

    def _launch_kernels(self, stream: Any) -> None:
        """Start the kernels that these rows need."""
        buffers = self.room
        if self.plan.short:
            self._draw_short_rows(self._make_random_words(stream), stream)
        elif self.referenced:
            words = self._make_random_words(stream)
            self._solve_rows_and_draw_outcomes(words, self._rows_in_solving_order(), self.count, stream)
        elif self.count <= _FEW and stream is not None:
            self._draw_few_rows(stream)
        else:
            words = self._make_random_words(stream)
            self._check_rows_and_draw_without_solving(words, True, stream)
            self._solve_rows_and_draw_outcomes(words, buffers.listed, -1, stream)

    def _make_random_words(self, stream: Any) -> torch.Tensor:
        """One 64-bit word for each row, whose upper 62 bits are its integer; few of them are in host memory."""
        buffers, count, source = self.room, self.count, self.source
        if count <= _FEW or not isinstance(source, SystemEntropy):
            if isinstance(source, SystemEntropy):
                words = np.frombuffer(entropy_bytes(8 * count), dtype=np.uint64)
            else:
                integers = np.empty(count, dtype=np.int64)
                for _ in source.fill_by_parts(integers):
                    pass
                words = integers.view(np.uint64) << np.uint64(64 - BITS)
            if count > _FEW:
                buffers.words[:count].copy_(torch.from_numpy(words.view(np.int64)))
                return buffers.words
            buffers.few_array[:count] = words
            return buffers.few
        key = _KEY.unpack(entropy_bytes(_KEY.size))
        arguments = buffers.words, 0, count, *key, *_NO_NONCE
        self.plan.launch_kernel(keystream.write_keystream, -(-count // _STREAM_STEP), arguments, _STREAM, stream)
        return buffers.words

    def _rows_in_solving_order(self) -> torch.Tensor:
        """All rows; where the host knows the integers, those first that take longest, because they are solved."""
        buffers = self.room
        if self.count > _FEW:
            return buffers.every
        is_shared = buffers.few_array[: self.count] >> np.uint64(64 - BITS) < np.uint64(self.plan.surely_shared)
        unshared_rows = np.flatnonzero(~is_shared)
        buffers.own_array[: unshared_rows.size] = unshared_rows
        buffers.own_array[unshared_rows.size : self.count] = np.flatnonzero(is_shared)
        return buffers.own

    def _draw_few_rows(self, stream: Any) -> None:
        """Draw over a uniform reference where the host knows the integers: rows that share theirs are only checked.

        The others are solved meanwhile, on a stream of higher priority. Words of more than a few rows take longer than a launch. Then the
        check starts before they are read, and a kernel of its own draws what is shared.
        """
        buffers, plan, at_once = self.room, self.plan, self.count <= _AT_ONCE
        unshared_count = self._make_words_and_list_unshared_rows(stream) if at_once else 0
        if at_once and not unshared_count:
            self._check_rows_and_draw_without_solving(buffers.few, False, stream)
            return
        buffers.before.record(stream)
        self._check_rows_and_draw_without_solving(buffers.few if at_once else None, False, stream)
        buffers.side.wait_event(buffers.before)
        if not at_once:
            unshared_count = self._make_words_and_list_unshared_rows(stream)
        if unshared_count:
            self._solve_rows_and_draw_outcomes(buffers.few, buffers.own, unshared_count, buffers.side)
        if not at_once:
            arguments = buffers.few, self.out, plan.whole, self.count
            plan.launch_kernel(long.store_shared_outcomes, 1, arguments, _SHARED, buffers.side)
        buffers.after.record(buffers.side)
        stream.wait_event(buffers.after)

    def _make_words_and_list_unshared_rows(self, stream: Any) -> int:
        """Read the words of few rows. The number of rows whose integers are not shared, which are listed in `room.own`."""
        self._make_random_words(stream)
        integers = self.room.few_array[: self.count] >> np.uint64(64 - BITS)
        unshared_rows = np.flatnonzero(integers >= np.uint64(self.plan.shared_total))
        self.room.own_array[: unshared_rows.size] = unshared_rows
        return unshared_rows.size

    def _draw_short_rows(self, words: torch.Tensor, stream: Any) -> None:
        """Draw rows that fit into registers."""
        plan, buffers = self.plan, self.room
        constants = {**plan.short, "KEEP": True} if self.keep else plan.short
        alignment, rows_per_program = constants["ALIGNED"], constants["ROWS"]
        arguments = (
            self.p, self.m, words, buffers.solved, self.out, buffers.bad, plan.reals, plan.whole, self.count, self.size // alignment,
            *self.layout[2:], *plan.tolerances,
        )  # fmt: skip
        plan.launch_kernel(short.draw_short_rows, -(-self.count // rows_per_program), arguments, constants, stream)

    def _check_rows_and_draw_without_solving(self, words: torch.Tensor | None, listing: bool, stream: Any) -> None:
        """Check rows over a uniform reference. With words, draw those whose integers are shared, and list the others on request."""
        plan, buffers, parts = self.plan, self.room, self.plan.number_of_programs_to_check_row(self.count)
        arguments = (
            self.p, buffers.few if words is None else words, self.out, buffers.listed, buffers.counts, buffers.seen, buffers.bad, plan.whole,
            self.size, self.size, plan.tolerances[0], parts, int(words is not None), int(listing),
        )  # fmt: skip
        plan.launch_kernel(long.check_long_rows_and_draw_shared, self.count * parts, arguments, plan.checked, stream)

    def _solve_rows_and_draw_outcomes(
        self, words: torch.Tensor, row_numbers: torch.Tensor, rows: int, stream: Any
    ) -> None:
        """Solve rows and find their outcomes: all rows over a reference, the listed ones over a uniform one; -1 for all that are listed."""
        plan, buffers = self.plan, self.room
        arguments = (
            self.p, self.m, row_numbers, buffers.counts, words, buffers.solved, self.portions if self.keep else buffers.words, self.out,
            buffers.bad, plan.reals, plan.whole, buffers.sums, buffers.counters, *self.layout, *plan.tolerances, plan.sample_step, rows,
            plan.most_split, int(self.keep),
        )  # fmt: skip
        constants = plan.solved
        if self.referenced:
            split = plan.number_of_programs_to_solve_row(rows)
            programs = rows * split
            if split > 1:
                depth = plan.solved["DEPTH"] * split  # so that a program reads as many numbers at a time
                constants = {**plan.solved, "DEPTH": depth, "SPLIT": split, "launch_cooperative_grid": True}
        else:
            programs = plan.solving if rows < 0 else min(plan.solving, rows * plan.most_split)
        plan.launch_kernel(long.solve_long_rows_and_draw_outcomes, programs, arguments, constants, stream)

    def compute_integer_bounds_and_excess(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """L, U and E, (n, k) each, of rows that were all solved."""
        shape, plan = (self.count, self.size), self.plan
        lower, upper, excess = (torch.empty(shape, dtype=torch.int64, device=self.p.device) for _ in range(3))
        arguments = self.p, self.m, self.room.solved, lower, upper, excess, plan.reals, *self.layout
        with torch.cuda.device_of(self.p):
            long.write_integer_bounds_and_excess[(self.count, triton.cdiv(self.size, 1024))](
                *arguments, **plan.kind, BLOCK=1024
            )
        return lower, upper, excess

    def compute_lower_bounds_excess_and_fill(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """L, E as far as it is given out, and the fill, (n, k) each, of rows that were all solved."""
        lower, upper, excess = self.compute_integer_bounds_and_excess()
        if self.plan.short:
            return lower, *_hand_out_excess_and_fill(lower, upper, excess, TOTAL)
        low, high, extra = (self.cut_into_portions(numbers) for numbers in (lower, upper, excess))
        _, least, wanted_totals, full_totals = self.portions.unbind(1)
        totals = least + sum(_hand_out_excess_and_fill(least, full_totals, wanted_totals - least, TOTAL))
        in_portions = [
            self.join_portions(numbers) for numbers in _hand_out_excess_and_fill(low, high, extra, totals[:, :, None])
        ]
        in_one = _hand_out_excess_and_fill(lower, upper, excess, TOTAL)
        cuttable = least[:, :1] >= 0
        return lower, *(torch.where(cuttable, cut, uncut) for cut, uncut in zip(in_portions, in_one, strict=True))

    def cut_into_portions(self, numbers: torch.Tensor) -> torch.Tensor:
        """(n, k) as (n, portions, columns of each), with zeros behind the last column."""
        columns = -(-self.size // self.plan.portions) if self.referenced else long.UNIT.value
        padded_numbers = torch.nn.functional.pad(numbers, (0, columns * self.plan.portions - self.size))
        shape = (columns, self.plan.portions) if self.referenced else (self.plan.portions, columns)
        portions = padded_numbers.view(len(numbers), *shape)
        return portions.mT if self.referenced else portions

    def join_portions(self, portions: torch.Tensor) -> torch.Tensor:
        """What `cut_into_portions` has cut."""
        return (portions.mT if self.referenced else portions).reshape(len(portions), -1)[:, : self.size]


def draw_outcomes_on_gpu(rows: TensorRows, terms: Terms, source: IntegerFiller) -> torch.Tensor:
    """One outcome for each row, from one integer in [0, 2^62) each."""
    if not len(rows.p):
        return torch.empty(0, dtype=torch.int64, device=rows.p.device)
    return _Launch(rows, terms, source).out


def launch_with_all_rows_solved(rows: TensorRows, terms: Terms) -> _Launch:
    """The kernels on rows of which none shares its integer, with what `compute_lower_bounds_excess_and_fill` needs."""
    nobody_shares = np.full(len(rows.p), TOTAL - 1, dtype=np.int64)
    return _Launch(rows, terms, FixedIntegers(nobody_shares), keep=True)


def integer_weights_on_gpu(rows: TensorRows, terms: Terms) -> torch.Tensor:
    """W = L + E + fill: the integers that `draw_outcomes_on_gpu` draws from."""
    if not len(rows.p):
        return torch.empty(tuple(rows.p.shape), dtype=torch.int64, device=rows.p.device)
    lower, excess, fill = launch_with_all_rows_solved(rows, terms).compute_lower_bounds_excess_and_fill()
    weights = lower + excess + fill
    if not bool((weights.sum(1) == TOTAL).all()):
        raise DiscreetError("weights do not sum to 2^62: these are not the integers of the draw; please report this")
    return weights


def _hand_out_excess_and_fill(
    lower: torch.Tensor, upper: torch.Tensor, excess: torch.Tensor, totals: torch.Tensor | int
) -> tuple[torch.Tensor, torch.Tensor]:
    """How much of the excess each outcome gets, and of the fill after it, beyond `lower`, along the last axis; all sum to `totals`."""
    available = totals - lower.sum(-1, keepdim=True)
    shares = _hand_out_units_in_order(excess, available)
    return shares, _hand_out_units_in_order(upper - lower - shares, available - shares.sum(-1, keepdim=True))


def _hand_out_units_in_order(requests: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """How much each outcome gets when `available` units are handed out in order; sums beyond 2^63 occur only behind the last unit."""
    ends = torch.cumsum(requests, -1)
    is_past = torch.cummax(((ends > available) | (ends < 0)).to(torch.int8), -1).values > 0
    return torch.diff(torch.where(is_past, available, ends), dim=-1, prepend=torch.zeros_like(available))
