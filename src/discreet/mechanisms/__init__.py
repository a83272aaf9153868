"""Private samplers: law in, law out; and the exact release of one sample."""

from discreet.mechanisms.carriers import Cells, Density, Points
from discreet.mechanisms.continuous.output_law import OutputLaw
from discreet.mechanisms.linear import LinearSampler
from discreet.mechanisms.mollifier import MollifierSampler
from discreet.mechanisms.named import MECHANISMS, SERVED, check_mechanism, mechanism_for, sampler_named
from discreet.mechanisms.nearest import nearest_member
from discreet.mechanisms.optimal import OptimalSampler
from discreet.mechanisms.sampler import Sampler
from discreet.mechanisms.several import ComposedSampler, JointSampler, Multisets
from discreet.mechanisms.transport import TransportSampler

__all__ = [
    "MECHANISMS",
    "SERVED",
    "Cells",
    "ComposedSampler",
    "Density",
    "JointSampler",
    "LinearSampler",
    "MollifierSampler",
    "Multisets",
    "OptimalSampler",
    "OutputLaw",
    "Points",
    "Sampler",
    "TransportSampler",
    "check_mechanism",
    "mechanism_for",
    "nearest_member",
    "sampler_named",
]
