"""Locally private sampling: release one sample that looks drawn from your law, and is epsilon-LDP as a statement about integers."""

from importlib import import_module
from typing import Any

from discreet._version import __version__
from discreet.agreement import Agreement
from discreet.divergences import FDivergence, divergence
from discreet.errors import DiscreetError, ImpossibleError, MissingExtraError, NotPrivateWarning, OutsideFamilyError
from discreet.families import Band, Simplex
from discreet.mechanisms import LinearSampler, MollifierSampler, OptimalSampler
from discreet.tradeoff import Constants, Risk, epsilon_for, minimax_risk

__all__ = [
    "Agreement",
    "Band",
    "Constants",
    "DiscreetError",
    "FDivergence",
    "ImpossibleError",
    "LinearSampler",
    "MissingExtraError",
    "MollifierSampler",
    "NotPrivateWarning",
    "OptimalSampler",
    "OutsideFamilyError",
    "Risk",
    "Simplex",
    "__version__",
    "divergence",
    "epsilon_for",
    "minimax_risk",
]


def __getattr__(name: str) -> Any:
    """`discreet.engines` is imported when it is first used: it needs more than numpy."""
    if name == "engines":
        return import_module("discreet.engines")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
