"""Continuous clients as they come: one or many, p/h on nodes, and whether they are in the band at all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, OutsideFamilyError, OutsideFamilyWarning, warn_caller
from discreet.families.continuous import ContinuousFamily, Nodes
from discreet.families.densities import LogDensity, as_density
from discreet.families.kernels import Mixture, log_densities
from discreet.mechanisms.outputs import OutputLaw

Floats = NDArray[np.float64]

_LEAST_MASS = 1e-290


def is_many(p: Any) -> bool:
    """Whether p is a list of clients."""
    return isinstance(p, (list, tuple))


def as_clients(p: Any, family: ContinuousFamily) -> tuple[LogDensity, ...]:
    """One density or a list of them, behind the one interface."""
    if not is_many(p):
        return (as_density(p, family.dim),)
    if not p:
        raise DiscreetError("p is an empty list of clients")
    return tuple(as_density(one, family.dim, f"p[{i}]") for i, one in enumerate(p))


def log_ratios(clients: Sequence[LogDensity], nodes: Nodes) -> Floats:
    """log p/h of every client at every node: (n, panels, nodes); minus infinity where p or h is zero."""
    x = nodes.x.reshape(-1, nodes.x.shape[-1])
    mixtures = [p for p in clients if isinstance(p, Mixture)]
    if len(mixtures) == len(clients) > 1 and len({p.kernel for p in mixtures}) == 1:
        found = log_densities(mixtures, x)
    else:
        found = np.stack([p.log_density(x) for p in clients])
    with np.errstate(invalid="ignore"):
        found -= nodes.log_reference.ravel()
    found[:, nodes.element.ravel() <= 0.0] = -np.inf
    return found.reshape(len(clients), *nodes.weights.shape)


def largest_log_ratios(log_ratio: Floats) -> Floats:
    """(n,) the largest log p/h of each client (n, ...), taken off before exponentials so that no normalisation overflows."""
    largest = log_ratio.reshape(len(log_ratio), -1).max(axis=1)
    unseen = np.isneginf(largest)
    if unseen.any():
        which = "p" if len(largest) == 1 else f"p[{int(np.argmax(unseen))}]"
        raise DiscreetError(
            f"{which} has zero mass in the family's space: it is 0 at every node; check its support against the family's box"
        )
    return np.asarray(largest)


def check_masses(masses: Floats | float) -> None:
    """Refuse clients whose mass, relative to their largest p/h, is lost in rounding."""
    smallest = np.atleast_1d(masses)
    if not (smallest > _LEAST_MASS).all():
        which = "p" if len(smallest) == 1 else f"p[{int(np.argmin(smallest > _LEAST_MASS))}]"
        raise DiscreetError(
            f"{which} has nearly all of its mass where the reference has next to none (less than {_LEAST_MASS:g} of it), which "
            "cannot be resolved; take a smaller box, or a reference with heavier tails"
        )


def tell_outside(
    family: ContinuousFamily, clients: Sequence[LogDensity], ratio: Floats, slack: float, refuse: bool
) -> None:
    """Warn about clients with p/h (n, m) outside the band, or refuse them where a mechanism is only for members.

    `slack` is how well the mass that p was divided by is known, relatively.
    """
    bounds = family.bounds
    smallest, largest = ratio.min(axis=1), ratio.max(axis=1)
    bad = (largest > bounds.upper * (1.0 + slack)) | (smallest < bounds.lower * (1.0 - slack))
    outside = [i for i in map(int, np.flatnonzero(bad)) if not _is_member(family, clients[i])]
    if not outside:
        return
    first = outside[0]
    who = "p" if len(clients) == 1 else f"p[{first}]" + (f" and {len(outside) - 1} more" if len(outside) > 1 else "")
    what = (
        f"{who} is outside {family!r}: p/h runs from {smallest[first]:g} to {largest[first]:g}, the band from "
        f"{bounds.lower:g} to {bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{what}; the linear mechanism would publish more of it than it may: release nearest_member(family, p), or use "
            "OptimalSampler, which is private for every law"
        )
    warn_caller(f"{what}; its release is private all the same, the bound on its utility is lost", OutsideFamilyWarning)


def _is_member(family: ContinuousFamily, p: LogDensity) -> bool:
    """Whether p is in the band by its parameters, or because it was clipped to one inside."""
    if isinstance(p, OutputLaw):
        bounds, constants = family.bounds, p.constants
        return p.family == family and bounds.lower <= constants.b and bounds.upper >= constants.B
    return family.certainly_contains(p)
