"""The paper's own release: a point of the density q by rejection from h, accepted with probability q/(B h) [paper, Section 4.1].

A trial is accepted with probability (mass of q)/B, about 1/B for every client alike. The linear mechanism needs no rejection: a
coin of probability gamma chooses between a draw of P and a draw of h. Coins are tossed with the integers of the release.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families.densities import Drawable, LogDensity
from discreet.mechanisms.atoms import Density
from discreet.mechanisms.outputs import OutputLaw
from discreet.release import TOTAL, Randomness

Floats = NDArray[np.float64]

_MOST_TRIALS = 1 << 24


def drawn(laws: list[OutputLaw], how: Density, randomness: Randomness, rng: np.random.Generator) -> Floats:
    """One point (n, dim) for each client's output law."""
    for law in laws:
        error = float(np.max(law.mass_error))
        if error > min(how.delta1, how.delta2):
            raise DiscreetError(
                f"the mass of q is known to {error:.1g} only, but delta1 = {how.delta1:g} and delta2 = {how.delta2:g}; "
                "raise them, or use Cells or Points, which trust no integral"
            )
    return np.stack([_point(law, randomness, rng) for law in laws])


def _point(law: OutputLaw, randomness: Randomness, rng: np.random.Generator) -> Floats:
    if law.mixing is not None:
        from_client = int(randomness.integers(1)[0]) < math.floor(law.mixing.slope * TOTAL)
        return _own_point(law, law.clients[0], rng) if from_client else law.family.draw(1, rng)[0]
    trials, count = 0, 16
    while trials < _MOST_TRIALS:
        x = law.family.draw(count, rng)
        chance = np.floor(law.relative(x) / law.constants.B * TOTAL)
        accepted = np.flatnonzero(randomness.integers(count) < chance)
        if len(accepted):
            return np.asarray(x[accepted[0]])
        trials, count = trials + count, min(2 * count, 1 << 16)
    raise DiscreetError(
        f"none of {trials} trials was accepted: B = {law.constants.B:g} is too large for rejection; use Points"
    )


def _own_point(law: OutputLaw, p: LogDensity, rng: np.random.Generator) -> Floats:
    """A draw of the client's own law inside the family's space: by its own means, or by rejection from upper h."""
    source: Any = p if isinstance(p, Drawable) else None
    top = law.family.bounds.upper
    for _ in range(_MOST_TRIALS >> 8):
        x = law.family.draw(256, rng) if source is None else source.draw(16, rng)
        log_reference = law.family.log_reference(x)
        if source is None:
            ratio = np.exp(p.log_density(x) - law.log_mass[0] - log_reference)
            kept = np.flatnonzero(rng.random(len(x)) * top < ratio)
        else:
            kept = np.flatnonzero(np.isfinite(log_reference))
        if len(kept):
            return np.asarray(x[kept[0]])
    raise DiscreetError("no point of p falls into the family's space; check its support against the family's box")
