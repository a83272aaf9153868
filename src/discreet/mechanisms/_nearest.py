"""The member of a family closest to a law, for every f-divergence at once: clip(p/r, c1 mu, c2 mu) [paper, Prop. C.8]."""

from __future__ import annotations

import math
import warnings
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import LawLike
from discreet.errors import OutsideFamilyWarning
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families._clients import as_clients, is_many
from discreet.families._kinds import check_family
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.mechanisms._continuous._problem import OutputProblem
from discreet.mechanisms._continuous._solver import OutputSolver
from discreet.projection import Box
from discreet.tradeoff import Constants

Floats = NDArray[np.float64]

_NO_FLOOR = 1e-290


@overload
def nearest_member(family: ContinuousFamily, p: Any) -> OutputLaw: ...
@overload
def nearest_member(family: FiniteFamily, p: LawLike) -> Floats: ...
def nearest_member(family: ContinuousFamily | FiniteFamily, p: Any) -> OutputLaw | Floats:
    """The law of the family closest to p for every f-divergence at once: clip(p/r, c1 mu, c2 mu) [paper, Prop. C.8].

    On a finite family laws (..., k) go to laws (..., k). On a continuous one it is an `OutputLaw`, between the bounds at every
    point, whose mass is one as far as its `mass_error` knows.

    Args:
        family: a finite or a continuous family.
        p: one law or many, as samplers take them.

    Returns:
        Laws of the shape of p, or an `OutputLaw`.

    Raises:
        DiscreetError: for something that is no family or no law.
    """
    check_family(family)
    if isinstance(family, ContinuousFamily):
        return _nearest_density(family, p)
    return _nearest_law(family, p)


def _nearest_law(family: FiniteFamily, p: LawLike) -> Floats:
    """The projection onto the band as a box. With c1 = 0 a floor that no float notices stands in for 0, and is taken off again."""
    reference = np.broadcast_to(family.reference, family.size)
    lower = max(family.bounds.lower, _NO_FLOOR) * reference
    box = Box(family.size, lower, np.minimum(np.maximum(family.bounds.upper * reference, lower), 1.0))
    found = box.project(family.as_rows(p))
    if family.bounds.lower == 0.0:
        found[found <= 2.0 * lower] = 0.0
    return found


def _nearest_density(family: ContinuousFamily, p: Any) -> OutputLaw:
    bounds = family.bounds
    lower = max(bounds.lower, 1e-12 * bounds.upper)
    constants = Constants(bounds.alpha, lower, bounds.upper, 1.0, 1.0, 1.0, 0.0, 0.0)
    problem = OutputProblem(family, constants, math.log(bounds.upper / lower) + 1e-9, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideFamilyWarning)
        return OutputSolver(problem).law(as_clients(p, family), many=is_many(p))
