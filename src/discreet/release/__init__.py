"""The only place that draws for real: integer weights within an integer box, and uniform integers to draw with."""

from discreet.release._drawing import outcome_in_constant_time as outcome_in_constant_time
from discreet.release._drawing import outcomes, weights
from discreet.release._lattice import TOTAL, Lattice
from discreet.release._randomness import Randomness, SystemEntropy, generator, seeded_randomness

__all__ = [
    "TOTAL",
    "Lattice",
    "Randomness",
    "SystemEntropy",
    "generator",
    "outcome_in_constant_time",
    "outcomes",
    "seeded_randomness",
    "weights",
]
