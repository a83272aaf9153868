"""Continuous clients as they come: one or many, and p/h of each on nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families._densities import LogDensity, as_density
from discreet.families._interval_masses import kernel_rows
from discreet.families._kernels import Mixture, log_densities

if TYPE_CHECKING:
    from discreet.families._continuous import ContinuousFamily, Nodes

Floats = NDArray[np.float64]

LEAST_MASS = 1e-290
_FAINT = 1e-4  # a mass that differences of a distribution function know to 12 digits


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
    mixtures = mixtures_of_one_kernel(clients) if len(clients) > 1 else None
    found = log_densities(mixtures, x) if mixtures else np.stack([p.log_density(x) for p in clients])
    with np.errstate(invalid="ignore"):
        found -= nodes.log_reference.ravel()
    found[:, nodes.element.ravel() <= 0.0] = -np.inf
    return found.reshape(len(clients), *nodes.weights.shape)


def known_interval_masses(clients: Sequence[LogDensity], edges: Floats) -> list[Floats | None]:
    """What each client has between consecutive edges of a line; None for one that does not know, or has next to nothing there."""
    mixtures = mixtures_of_one_kernel(clients)
    if mixtures is not None:
        rows: list[Floats | None] = list(kernel_rows(mixtures, edges))
    else:
        rows = [p.plain_masses(edges) if hasattr(p, "plain_masses") else None for p in clients]
    for place, (p, row) in enumerate(zip(clients, rows, strict=True)):
        if (row is None or row.sum() < _FAINT) and hasattr(p, "interval_masses"):  # tails need differences of tails
            known = p.interval_masses(edges)
            rows[place] = known.mass if known is not None and known.enough else None
    return rows


def largest_log_ratios(log_ratio: Floats) -> Floats:
    """(n,) the largest log p/h of each client (n, ...), taken off before exponentials so that no normalisation overflows."""
    largest = log_ratio.reshape(len(log_ratio), -1).max(axis=1)
    zero = np.isneginf(largest)
    if zero.any():
        raise unseen_error("p" if len(largest) == 1 else f"p[{int(np.argmax(zero))}]")
    return np.asarray(largest)


def unseen_error(who: str) -> DiscreetError:
    """The error for a client that is zero wherever it was looked at."""
    return DiscreetError(
        f"{who} has zero mass in the family's space: it is 0 at every node; check its support against the family's box"
    )


def check_masses(masses: Floats | float) -> None:
    """Refuse clients whose mass, relative to their largest p/h, is lost in rounding."""
    smallest = np.atleast_1d(masses)
    if not (smallest > LEAST_MASS).all():
        which = "p" if len(smallest) == 1 else f"p[{int(np.argmin(smallest > LEAST_MASS))}]"
        raise DiscreetError(
            f"{which} has nearly all of its mass where the reference has next to none (less than {LEAST_MASS:g} of it), which "
            "cannot be resolved; take a smaller box, or a reference with heavier tails"
        )


def mixtures_of_one_kernel(clients: Sequence[LogDensity]) -> list[Mixture] | None:
    """The clients where all of them are mixtures of the same kernel."""
    mixtures = [p for p in clients if isinstance(p, Mixture) and p.kernel.separable]
    return mixtures if len(mixtures) == len(clients) and len({p.kernel for p in mixtures}) == 1 else None
