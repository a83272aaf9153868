"""Compile the boosted baseline's kernels once, as `discreet.mechanisms.warm_up` does: `python -m discreet.research.warm_up`."""

import importlib.util

from discreet.families import GaussianMixtures, Mixture
from discreet.research._boosted import BoostedSampler, Training

__all__ = ["warm_up"]


def warm_up() -> None:
    """Train one client minimally. Without numba there is nothing to compile."""
    if importlib.util.find_spec("numba") is None:
        return
    little = Training(rounds=2, samples=2, batch=1, epochs=1, burn_in=1)
    BoostedSampler(GaussianMixtures(1), epsilon=1.0, training=little).output(Mixture([1.0], [0.0]))


if __name__ == "__main__":
    warm_up()
