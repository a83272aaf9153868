"""Private samplers: law in, law out; and the exact release of one sample."""

from discreet.mechanisms.atoms import Cells, Density, Points
from discreet.mechanisms.linear import LinearSampler
from discreet.mechanisms.mollifier import MollifierSampler
from discreet.mechanisms.optimal import OptimalSampler
from discreet.mechanisms.outputs import OutputLaw
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.solving import nearest_member

__all__ = [
    "Cells",
    "Density",
    "LinearSampler",
    "MollifierSampler",
    "OptimalSampler",
    "OutputLaw",
    "Points",
    "Sampler",
    "nearest_member",
]
