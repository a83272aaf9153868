"""Reports for estimating a population: families of blocks, the mechanism that draws them, and how often each outcome is in them."""

from discreet.mechanisms._reports._sampler import ReportSampler
from discreet.mechanisms._reports._supports import ReportCounts

__all__ = ["ReportCounts", "ReportSampler"]
