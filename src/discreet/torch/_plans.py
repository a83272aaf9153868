"""What a call needs that does not depend on the numbers in its tensors, kept from one call to the next; and launching by it.

A plan knows neither how many rows there are nor whether they share a reference: what it launches is one compiled kernel, which adds a
reference up in one order. A kernel that was compiled anew for a stride of 0 adds up in another one, and has other integers.
"""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any

import torch
from triton.runtime import driver

from discreet.families._laws import sum_rounding
from discreet.release import TOTAL
from discreet.torch import _host as host
from discreet.torch import _tiles as tiles
from discreet.torch._boxes import DeviceBox, Terms

SPLITS = (8, 4)  # programs that share a row, if all of them fit on the device at once
_MOST_SPLIT = 32  # rows that are shared
_UNBOUNDED = 1e30  # a ceiling that the floors of the other outcomes imply
_FLOAT32_SLACK = 1e-5  # what summing in float32 may add to what a sum misses
_BITS_OF_E = math.log2(math.e)
_FAR = 1 << 14  # rows from which on integers are copied to the device
_RESIDENT = 64  # warps that a processor holds
_OPTIONS = {"num_warps", "maxnreg", "launch_cooperative_grid"}  # of a launch, and no constants of a kernel


class LaunchPlan:
    """Terms, shape and dtypes of a call as its kernels take them, and the kernels compiled for them.

    Attributes:
        shared: from which integer on none is shared.
        reals: b, B, rho, 2^62 b, L, U for the kernels.
        whole: L, from where nothing is shared, and up to where all is, for the kernels.
        scales: what logits are multiplied by.
        tolerances: how far from one the sums of probabilities may be.
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
        """How many programs share a row: several where few are solved, so that all of them run at once."""
        if self.kind["REFERENCE"] or rows > _MOST_SPLIT:
            return 1
        return next((split for split in SPLITS if rows * split <= self.processors), 1)

    def programs(self, tasks: int, warps: int) -> int:
        """How many programs take turns at so many tasks: what the device holds at once, since to start a program takes time too."""
        return min(tasks, self.processors * (_RESIDENT // warps)) if self.processors else tasks

    def launch(
        self, function: Any, programs: int, arguments: tuple[Any, ...], constants: dict[str, Any], stream: Any
    ) -> None:
        """Run a kernel on a stream, as `stream` gives it; its constants are in the order in which it takes them.

        What Triton compiled is called again as it is, which takes a fraction of the time of looking it up. A plan holds all that a kernel
        is specialised on, dtypes and numbers, but for the constants, and addresses, which are all aligned alike."""
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
        """The current stream of the current device as kernels are launched on it; None where they are interpreted."""
        return driver.active.get_current_stream(self._device) if self._device is not None else None


plan_of = lru_cache(maxsize=256)(LaunchPlan)


class KernelBuffers:
    """Memory that the kernels of one thread on one device use from call to call: every call waits for its kernels before the next.

    Attributes:
        solved: what is known of solved rows.
        sums: what programs that share a row add up.
        spans: the same as integers.
        counters: how many of them have come to a point; 0 between calls.
        bad: set if some row is no law; memory of the host, as `uniform` is.
        uniform: the integers of a call.
        near: the same in the device's memory, where there are so many that reading them one by one would take long.
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
            self.side: Any = torch.cuda.Stream(device)  # on which rows are solved while all are checked
            self.before, self.after = torch.cuda.Event(), torch.cuda.Event()
        else:  # interpreted: nothing runs beside anything
            self.side = None

    def stream(self, handle: int) -> Any:
        """A stream by its handle, as torch has it: it is made once, which takes as long as a launch."""
        found = self._streams.get(handle)
        if found is None:
            found = self._streams[handle] = torch.cuda.ExternalStream(handle)
        return found


class _BufferPool(threading.local):
    def __init__(self) -> None:
        self._of: dict[torch.device, KernelBuffers] = {}

    def on(self, device: torch.device, rows: int) -> KernelBuffers:
        """The room of this thread on a device, for so many rows."""
        room = self._of.get(device)
        if room is None or room.solved.shape[0] < rows:
            room = self._of[device] = KernelBuffers(device, max(1024, rows))
        return room


BUFFERS = _BufferPool()
