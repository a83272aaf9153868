"""Who the clients may be: a reference measure mu and a band c1 <= dP/dmu <= c2 [paper, eq. (possibleDensityAssumption)]."""

from discreet.families.continuous import ContinuousFamily
from discreet.families.densities import Tabulated
from discreet.families.density_band import DensityBand
from discreet.families.finite import Band, Simplex
from discreet.families.fits import HistogramFit, KernelFit, MixtureFit
from discreet.families.kernels import Mixture
from discreet.families.mixtures import GaussianMixtures, LaplaceMixtures
from discreet.families.near import Near
from discreet.families.on_outcomes import FiniteFamily
from discreet.families.preserving import Preserving

__all__ = [
    "Band",
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
