"""Compile the numba kernels once and for all: `python -m discreet.mechanisms.warm_up`.

Numba compiles a function when it is first called, and the result is kept (`discreet._base.kernels._cache`), so that only the first
large release ever made on a machine waits for it (half a minute or so). Running this at installation time moves that wait
there. Without numba there is nothing to compile, and it returns at once.
"""

import importlib.util

from discreet._base.kernels import Code, use_only
from discreet.families import Band, Simplex
from discreet.mechanisms._linear import LinearSampler
from discreet.mechanisms._optimal import OptimalSampler

__all__ = ["warm_up"]


def warm_up() -> None:
    """Call every kernel once for a uniform reference and once for another: the two kinds of code there are."""
    if importlib.util.find_spec("numba") is None:
        return
    law = [0.2, 0.3, 0.5]
    with use_only(Code.COMPILED):
        for family in (Simplex(3), Band([1.0, 1.0, 2.0], lower=0.5, upper=2.0)):
            projecting, mixing = OptimalSampler(family, epsilon=1.0), LinearSampler(family, epsilon=1.0)
            projecting.output(law)
            projecting.weights(law)
            projecting.scale(law)
            mixing.output(law)


if __name__ == "__main__":
    warm_up()
