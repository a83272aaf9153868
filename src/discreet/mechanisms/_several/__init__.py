"""Several samples of one client that keep one budget together: drawn jointly, or one by one with a share of it each."""

from discreet.mechanisms._several._composed import ComposedSampler
from discreet.mechanisms._several._joint import AROUND, Around, JointSampler
from discreet.mechanisms._several._multisets import MOST_MULTISETS, Multisets

__all__ = ["AROUND", "MOST_MULTISETS", "Around", "ComposedSampler", "JointSampler", "Multisets"]
