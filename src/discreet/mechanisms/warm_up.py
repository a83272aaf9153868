"""Compile the numba kernels at installation time: `python -m discreet.mechanisms.warm_up`.

Numba compiles a function at its first call, and the compiled code is cached (`discreet._base.kernels._cache`). So only the first large
release on a machine waits for it, for about half a minute. This command moves the wait to installation time. Without numba there is nothing
to compile, and it returns at once.
"""

import importlib.util

import numpy as np

from discreet._base.kernels import Code, force_implementation
from discreet.families import Band, Simplex
from discreet.mechanisms._optimal_linear_mollifier import LinearSampler, OptimalSampler
from discreet.mechanisms._reports import ReportCounts, ReportSampler

__all__ = ["warm_up"]


def warm_up() -> None:
    """Call every kernel once with a uniform reference and once with another, since these compile separately; and count reports."""
    if importlib.util.find_spec("numba") is None:
        return
    law = [0.2, 0.3, 0.5]
    with force_implementation(Code.COMPILED):
        for family in (Simplex(3), Band([1.0, 1.0, 2.0], lower=0.5, upper=2.0)):
            projecting, mixing = OptimalSampler(family, epsilon=1.0), LinearSampler(family, epsilon=1.0)
            projecting.output(law)
            projecting.weights(law)
            projecting.scale(law)
            mixing.output(law)
        ReportCounts(ReportSampler(Simplex(104), epsilon=1.0)).add(np.arange(10))


if __name__ == "__main__":
    warm_up()
