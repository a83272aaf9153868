"""What a density tells of itself: where it is narrow, and how much of its mass a box holds.

Nodes see a function at finitely many places, and a spike between them not at all. A client that is more than a function knows better:
a mixture has centres and scales, a distribution quantiles, a table cells. Panels are split there until nodes cannot miss the
feature, and the mass that the client says it has is compared with the mass that the nodes saw. Where nothing is known,
whatever is computed from nodes may be wrong, and says so. No privacy guarantee rests on any of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._quadrature import Panels
from discreet.families._charts import Chart

Floats = NDArray[np.float64]

_REACH = 4.0  # scales around its place in which a feature has nearly all of its mass
_LARGEST_BLOCK = 1 << 20  # panels times features held at a time


@dataclass(frozen=True, eq=False)
class Features:
    """Places (k, dim) around which a density changes over lengths `scales` (k,)."""

    places: Floats
    scales: Floats

    @classmethod
    def concat(cls, several: "Iterable[Features]", dim: int) -> "Features":
        """All of them, without those that have no place or no width."""
        found = list(several)
        places = np.concatenate([np.empty((0, dim)), *(one.places for one in found)])
        scales = np.concatenate([np.empty(0), *(one.scales for one in found)])
        good = np.isfinite(places).all(axis=1) & np.isfinite(scales) & (scales > 0.0)
        return cls(places[good], scales[good])


def features_of(clients: Iterable[Any], dim: int) -> Features:
    """The features of all clients that tell theirs, by a method `narrow_places()`."""
    return Features.concat((p.narrow_places() for p in clients if hasattr(p, "narrow_places")), dim)


def split_at(
    features: Features, panels: Panels, chart: Chart, *, widest: float, most: int
) -> tuple[Panels, NDArray[np.intp]]:
    """Panels halved until none near a feature is wider than `widest` of its scales, with the panel each is a part of.

    Stops at `most` panels: then features may be missed.
    """
    middles = chart.coordinates(features.places)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        widths = features.scales[:, None] / chart.stretches(middles)
    good = np.isfinite(middles).all(axis=1) & (widths > 0.0).all(axis=1)
    middles, widths = middles[good], widths[good]
    if chart.turn:  # the last coordinate goes around: what is near one end is near the other
        middles = np.concatenate([middles + shift * np.eye(panels.dim)[-1] for shift in (-chart.turn, 0.0, chart.turn)])
        widths = np.tile(widths, (3, 1))
    done, owners = panels[np.zeros(len(panels), dtype=bool)], np.empty(0, dtype=np.intp)
    active, owner = panels, np.arange(len(panels))
    smallest = np.broadcast_to(panels.narrowest, (panels.dim,))
    while len(active) and len(middles):
        excess = _excess_widths(active, middles, widths) / widest
        excess[active.upper - active.lower <= 2.0 * smallest] = 0.0
        wide = excess.max(axis=1) > 1.0
        if not wide.any() or len(done) + len(active) + int(wide.sum()) > most:
            break
        done, owners = done.concat(active[~wide]), np.concatenate([owners, owner[~wide]])
        active, owner = active[wide].halve(np.argmax(excess[wide], axis=1)), np.tile(owner[wide], 2)
    return done.concat(active), np.concatenate([owners, owner])


def _excess_widths(panels: Panels, middles: Floats, widths: Floats) -> Floats:
    """(n, dim) how many of the narrowest nearby feature's scales each side of a panel is long; 0 with no feature nearby."""
    found = np.zeros((len(panels), panels.dim))
    step = max(1, _LARGEST_BLOCK // max(1, len(panels)))
    for start in range(0, len(middles), step):
        middle, width = middles[start : start + step], widths[start : start + step]
        reach = _REACH * width
        near = np.all((panels.lower[:, None, :] < middle + reach) & (panels.upper[:, None, :] > middle - reach), axis=2)
        for axis in range(panels.dim):
            narrowest = np.where(near, width[:, axis], np.inf).min(axis=1)
            found[:, axis] = np.maximum(found[:, axis], (panels.upper - panels.lower)[:, axis] / narrowest)
    return found
