"""Locally private sampling: release one sample that looks drawn from your law, and is epsilon-LDP as a statement about integers."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from discreet._base import __version__  # first: from now on it is noted what a fork leaves behind
from discreet._base.doors import MOVED, keep_old_names
from discreet.agreement import Agreement
from discreet.design import design, minimax_risk
from discreet.divergences import FDivergence, divergence
from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.errors import (
    BudgetError,
    DiscreetError,
    ImpossibleError,
    LargeEpsilonWarning,
    LedgerError,
    NotPrivateWarning,
    OutsideFamilyError,
    OutsideFamilyWarning,
)
from discreet.families import (
    Band,
    ContinuousFamily,
    DensityBand,
    GaussianMixtures,
    LaplaceMixtures,
    Mixture,
    Near,
    Preserving,
    Simplex,
)
from discreet.mechanisms import (
    Cells,
    Density,
    JointSampler,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    OwnSampler,
    Points,
    ReportSampler,
    Sampler,
    TransportSampler,
    epsilon_for,
    nu_for,
)
from discreet.privacy import Approximate, Functional, Gaussian, Pure

__all__ = [
    "Agreement",
    "Approximate",
    "Band",
    "BudgetError",
    "Cells",
    "ContinuousFamily",
    "Density",
    "DensityBand",
    "DiscreetError",
    "Domain",
    "FDivergence",
    "Functional",
    "Gaussian",
    "GaussianMixtures",
    "ImpossibleError",
    "Interval",
    "JointSampler",
    "Labels",
    "LaplaceMixtures",
    "LargeEpsilonWarning",
    "LedgerError",
    "LinearSampler",
    "Mixture",
    "MollifierSampler",
    "Near",
    "NotPrivateWarning",
    "Numbers",
    "OptimalSampler",
    "OutsideFamilyError",
    "OutsideFamilyWarning",
    "OwnSampler",
    "Points",
    "Preserving",
    "Pure",
    "ReportSampler",
    "Sampler",
    "Simplex",
    "TransportSampler",
    "__version__",
    "design",
    "divergence",
    "epsilon_for",
    "minimax_risk",
    "nu_for",
]


keep_old_names()


def _modules() -> set[str]:
    """The public modules and packages there are."""
    return {found.name for found in iter_modules(__path__) if not found.name.startswith("_")}


def __dir__() -> list[str]:
    return sorted({*__all__, *_modules()})


def __getattr__(name: str) -> Any:
    """Every public module resolves as `discreet.name`, and is imported when it is first used: some need more than numpy."""
    if not name.startswith("_") and (name in _modules() or f"discreet.{name}" in MOVED):
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
