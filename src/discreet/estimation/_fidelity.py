"""How near an estimated law is to a known one: total variation, KL, squared Hellinger, largest share off, earth mover's distance."""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.divergences import divergence
from discreet.domain import Domain

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fidelity:
    """Distances from the truth to an estimate; `wasserstein` (in units of the outcomes) is None if they are no numbers."""

    tv: float
    kl: float
    hellinger: float
    largest: float
    wasserstein: float | None


def fidelity(truth: Floats, law: Floats, domain: Domain) -> Fidelity:
    """Of a law to the truth. KL is infinite if the law rules out what the truth does not."""
    return Fidelity(
        float(divergence("tv")(truth, law)),
        float(divergence("kl")(truth, law)),
        float(divergence("hellinger")(truth, law)),
        float(np.abs(truth - law).max()),
        None
        if domain.values is None
        else float(scipy.stats.wasserstein_distance(domain.values, domain.values, truth, law)),
    )
