"""Locally private sampling: release one sample that looks drawn from your law, and is epsilon-LDP as a statement about integers."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from discreet._base import __version__, imports_on_first_use, make_old_module_names_importable


class _Package(ModuleType):
    """Keeps `discreet.design` the function: importing the room of that name would put the room in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "design" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package  # before other threads can import the room

with imports_on_first_use(globals()):
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


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Every public module resolves as `discreet.name`, and is imported when it is first used."""


make_old_module_names_importable()
