"""Everybody, by a sampler that leaves one public law exactly as it is: who holds q releases q.

The box mu = q, b = 1/(1 + (e^eps - 1) q_min), B = e^eps b is that of the band 0 <= dP/dq <= 1/q_min, alpha = q_min, which every law obeys.

* q itself lies in it (b < 1 < B), so its projection is q.
* Zamanlooy, Diaz and Asoodeh (arXiv 2411.08791) preserve q by lambda P + (1 - lambda) q, lambda = (e^eps - 1) q_min/(1 + (e^eps - 1) q_min).
  That is the linear mechanism of the same band: lambda = gamma, so its law lies in this box for every P, and the projection, the nearest law
  of the box, is at least as good for every client and every f-divergence.
* The worst case is the same: a point mass at the rarest outcome is sent to B q_min = lambda + (1 - lambda) q_min there by both, and what
  is left is spread in proportion to q by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet._labelled import LawLike
from discreet.families._finite import Band


def Preserving(q: LawLike, *, labels: Sequence[Any] | None = None) -> Band:
    """Every client, served by a box around a public law q that leaves q as it is: who holds q releases q.

    Args:
        q: the public law, as positive numbers in proportion to it, or a dict or Series by label.
        labels: names of the outcomes.

    Returns:
        A `Band` with `everybody=True`: risks are stated for every law there is.

    Raises:
        DiscreetError: for an outcome that q says cannot occur.

    Example:
        >>> family = Preserving({"north": 0.4, "south": 0.3, "east": 0.2, "west": 0.1})
    """
    rarest = Band(q, lower=0.0, upper=2.0, labels=labels, everybody=True).least_mass
    return Band(q, lower=0.0, upper=1.0 / rarest, labels=labels, everybody=True)
