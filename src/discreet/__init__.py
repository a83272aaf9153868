"""Locally private sampling: release one sample that looks drawn from your law, and is epsilon-LDP as a statement about integers."""

from importlib import import_module
from typing import Any

from discreet import forks as forks  # from now on it is noted what a fork leaves behind
from discreet._version import __version__
from discreet.agreement import Agreement
from discreet.design import Design, design
from discreet.divergences import FDivergence, divergence
from discreet.errors import (
    DiscreetError,
    ImpossibleError,
    LargeEpsilonWarning,
    MissingExtraError,
    NotPrivateWarning,
    OutsideFamilyError,
    OutsideFamilyWarning,
    UnresolvedWarning,
)
from discreet.families import (
    Band,
    DensityBand,
    GaussianMixtures,
    HistogramFit,
    KernelFit,
    LaplaceMixtures,
    Mixture,
    MixtureFit,
    Simplex,
    Tabulated,
)
from discreet.mechanisms import (
    BoostedSampler,
    Cells,
    Density,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    OutputLaw,
    Points,
    nearest_member,
)
from discreet.tradeoff import Constants, Risk, minimax_risk
from discreet.worst_case import epsilon_for

__all__ = [
    "Agreement",
    "Band",
    "BoostedSampler",
    "Cells",
    "Constants",
    "Density",
    "DensityBand",
    "Design",
    "DiscreetError",
    "FDivergence",
    "GaussianMixtures",
    "HistogramFit",
    "ImpossibleError",
    "KernelFit",
    "LaplaceMixtures",
    "LargeEpsilonWarning",
    "LinearSampler",
    "MissingExtraError",
    "Mixture",
    "MixtureFit",
    "MollifierSampler",
    "NotPrivateWarning",
    "OptimalSampler",
    "OutputLaw",
    "OutsideFamilyError",
    "OutsideFamilyWarning",
    "Points",
    "Risk",
    "Simplex",
    "Tabulated",
    "UnresolvedWarning",
    "__version__",
    "design",
    "divergence",
    "epsilon_for",
    "minimax_risk",
    "nearest_member",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "engines", "estimation"])


def __getattr__(name: str) -> Any:
    """`discreet.engines` and `discreet.estimation` are imported when they are first used: they need more than numpy."""
    if name in ("engines", "estimation"):
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
