"""The finite problem behind an output law: a family, the box around its reference, and clients known on nodes.

On nodes with reference masses mu_i and client masses p_i, slope and lift are what `discreet.projection` finds exactly. How good the
nodes are is the business of whoever chose them: `one_client`, `many_clients` or `public_points`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.families._clients import largest_log_ratios
from discreet.families._continuous import ContinuousFamily
from discreet.families._densities import LogDensity
from discreet.families._outsiders import report_outsiders
from discreet.families._seen import BAND_SLACK, NodeSummary, outsiders_of, warn_of_unresolved_masses
from discreet.mechanisms._continuous._output_law import OutputLaw
from discreet.projection import Affine, Box
from discreet.tradeoff import Constants

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OutputProblem:
    """A family, the constants of a box around its reference, the epsilon it is calibrated to, and how it mixes (None: it projects)."""

    family: ContinuousFamily
    constants: Constants
    epsilon: float
    mixing: Affine | None
    members: ContinuousFamily | None = None  # who the clients may be, where the box is around another reference

    def box(self, masses: Floats) -> Box:
        """The box on nodes of these reference masses (m,)."""
        return Box.around(masses, masses.size, self.constants, self.epsilon)

    def tell_outside(self, clients: Sequence[LogDensity], seen: NodeSummary) -> None:
        """Warn about clients outside the band; refuse them where the law is linear."""
        outsiders = outsiders_of(self.family, clients, seen, self.members)
        if outsiders is not None:
            whose = self.family if self.members is None else self.members
            report_outsiders(whose, whose.bounds, outsiders, refuse=self.mixing is not None)

    def solve(
        self,
        clients: Sequence[LogDensity],
        many: bool,
        masses: Floats,
        log_ratio: Floats,
        slack: float | Floats = BAND_SLACK,
    ) -> OutputLaw:
        """Every client on the same nodes (m,), from its log p/h there (n, m); `slack`: how well those know its mass."""
        shift = largest_log_ratios(log_ratio)
        client = np.exp(log_ratio - shift[:, None])
        smallest = log_ratio.min(axis=1, where=masses > 0, initial=np.inf)
        client *= masses
        mass = client.sum(axis=1)
        client /= mass[:, None]
        seen = NodeSummary(shift + np.log(mass), smallest, shift, slack)
        self.tell_outside(clients, seen)
        if self.mixing is not None:
            slope, lift = np.full(len(clients), self.mixing.slope), np.full(len(clients), self.mixing.lift)
        else:
            box = self.box(masses)
            with np.errstate(divide="ignore"):
                slope, lift = np.asarray(1.0 / box.scale(client)), np.zeros(len(clients))
            for row in np.flatnonzero(np.isinf(slope)):
                slope[row], lift[row] = box.slope_and_lift(client[row])
        return OutputLaw(
            self.family, self.constants, self.mixing, tuple(clients), many, masses, client, shift + np.log(mass),
            slope, lift, np.zeros(len(clients)),
        )  # fmt: skip

    def with_known_masses(self, law: OutputLaw) -> OutputLaw:
        """The law with its errors as the clients themselves would have them, where they know their mass."""
        errors, known = warn_of_unresolved_masses(self.family, law.clients, law.log_mass, law.errors)
        return replace(law, errors=errors, mass_known=known)
