"""Who the clients may be: a reference measure mu and a band c1 <= dP/dmu <= c2 [paper, eq. (possibleDensityAssumption)]."""

from discreet.families._continuous import ContinuousFamily
from discreet.families._densities import BoundedDensity, Tabulated
from discreet.families._density_band import DensityBand, Near
from discreet.families._finite import Band, FiniteFamily, Preserving, Simplex
from discreet.families._fits import HistogramFit, KernelFit, MixtureFit
from discreet.families._kernel_mixtures import Mixture
from discreet.families._mixtures import GaussianMixtures, LaplaceMixtures

__all__ = [
    "Band",
    "BoundedDensity",
    "ContinuousFamily",
    "DensityBand",
    "FiniteFamily",
    "GaussianMixtures",
    "HistogramFit",
    "KernelFit",
    "LaplaceMixtures",
    "Mixture",
    "MixtureFit",
    "Near",
    "Preserving",
    "Simplex",
    "Tabulated",
]
