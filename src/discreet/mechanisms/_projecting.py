"""What samplers share that project onto their box: the scale r_P, and how far their output moves when the client does [paper, Prop. 4.1]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet._labelled import LawLike
from discreet.errors import OPEN_UNIT, check_count
from discreet.mechanisms._sampler import Client, F, Sampler


class ProjectingSampler(Sampler[F]):
    """A sampler that projects onto its box: it has a scale r_P, and is continuous in P."""

    def scale(self, p: LawLike | Client | Sequence[Client]) -> float | NDArray[np.float64]:
        """The paper's r_P, exactly: Q = clip(P/r_P, b mu, B mu). Where several serve (they give the same law) it is one
        of them; 0 where P sits on so small a set that none does, which never happens to a member of an optimal sampler's family.

        Args:
            p: what one client or many hold. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label. Continuous: a
                density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            One number, or one for each client.

        Raises:
            DiscreetError: for what is no law.
        """
        return self._outputs.scale(self.carrier.read(p))

    def sensitivity(self, p: LawLike | Client | Sequence[Client]) -> float | NDArray[np.float64]:
        """How far the output can move when P does: TV(Q(P), Q(P')) <= sensitivity(P) TV(P, P') [paper, Prop. 4.1].

        It is 2/r_P, so it can be computed from the estimate a client has instead of the truth.

        Args:
            p: what one client or many hold. Finite: probabilities (k,) or (..., k), or a dict, a Series or a frame by label. Continuous: a
                density (a function, a scipy distribution, a `Mixture`, ...) or a list of them.

        Returns:
            One number, or one for each client.

        Raises:
            DiscreetError: for what is no law.
        """
        with np.errstate(divide="ignore"):
            found = 2.0 / np.asarray(self.scale(p))
        return found if found.ndim else float(found)

    def estimation_cost(
        self, p: LawLike | Client, *, records: int, confidence: float = 0.95
    ) -> float | NDArray[np.float64]:
        """A bound on TV(Q(P), Q(P_hat)) when p is the empirical law of that many independent records of P.

        E TV(P, P_hat) <= sqrt((k - 1)/n)/2 (Cauchy-Schwarz), and one record moves it by at most 1/n (McDiarmid), so with the
        given confidence TV(P, P_hat) <= sqrt((k - 1)/n)/2 + sqrt(log(1/(1 - confidence))/(2 n)); times `sensitivity(p)`, and
        never more than min(1 - b, B - 1), the diameter of the box. It is a loss of utility: privacy has no part in it.

        On a continuous family p is a histogram fit, k its cells, and P stands for P averaged over each cell: what binning
        itself costs depends on how much p/h varies inside a cell, and is not in the bound.

        Args:
            p: the empirical law, or on a continuous family a histogram fit.
            records: how many records it comes from.
            confidence: how sure the bound is, in (0, 1).

        Returns:
            The bound, for one client or for each.

        Raises:
            DiscreetError: for counts or a confidence out of range, or a continuous client that is no histogram.
        """
        n = min(check_count("records", records), 10**300)  # what a float can hold
        OPEN_UNIT.check("confidence", confidence)
        moved = 0.5 * math.sqrt((self.carrier.bins(p) - 1) / n) + math.sqrt(-math.log1p(-confidence) / (2 * n))
        diameter = min(1.0 - self.constants.b, self.constants.B - 1.0)
        bound = np.minimum(np.asarray(self.sensitivity(p)) * min(moved, 1.0), diameter)
        return bound if bound.ndim else float(bound)
