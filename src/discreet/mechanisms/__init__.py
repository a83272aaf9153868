"""Private samplers: law in, law out; and the exact release of one sample."""

from discreet.mechanisms._cells_and_points import Cells, Density, Points
from discreet.mechanisms._linear import LinearSampler
from discreet.mechanisms._mechanism_names import MECHANISMS, SERVED, check_mechanism, mechanism_for, sampler_named
from discreet.mechanisms._mollifier import MollifierSampler
from discreet.mechanisms._multisets import Multisets
from discreet.mechanisms._optimal import OptimalSampler, nearest_member
from discreet.mechanisms._output_law import OutputLaw
from discreet.mechanisms._reports import ReportCounts, ReportSampler
from discreet.mechanisms._sampler import Sampler
from discreet.mechanisms._several_samples import ComposedSampler, JointSampler
from discreet.mechanisms._transport_sampler import TransportSampler

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
    "ReportCounts",
    "ReportSampler",
    "Sampler",
    "TransportSampler",
    "check_mechanism",
    "mechanism_for",
    "nearest_member",
    "sampler_named",
]
