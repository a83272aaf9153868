"""Private samplers: law in, law out; and the exact release of one sample."""

from discreet.mechanisms.linear import LinearSampler
from discreet.mechanisms.mollifier import MollifierSampler
from discreet.mechanisms.optimal import OptimalSampler

__all__ = ["LinearSampler", "MollifierSampler", "OptimalSampler"]
