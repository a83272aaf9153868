"""The only place that draws for real: integer weights within an integer box, and uniform integers to draw with."""

from discreet.release.constant_time import outcome as outcome_in_constant_time
from discreet.release.drawing import outcomes, weights
from discreet.release.lattice import TOTAL, Lattice
from discreet.release.randomness import Randomness, SystemEntropy, generator, seeded

__all__ = [
    "TOTAL",
    "Lattice",
    "Randomness",
    "SystemEntropy",
    "generator",
    "outcome_in_constant_time",
    "outcomes",
    "seeded",
    "weights",
]
