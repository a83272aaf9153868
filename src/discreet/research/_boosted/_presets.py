"""Which boosted function, which weights, how much training: Husain et al.'s Algorithm 1 as it was run, and as it was meant.

Q_T is proportional to Q_0 exp(sum_t theta^t c_t). With every c_t in [low, high] and S = theta + ... + theta^T, two clients' laws
differ by a factor of at most e^(2 S (high - low)): S (high - low) from the exponents, as much from the normalisers.

* `published`: c is the classifier's sigmoid, in (0, 1), and theta = eps/(eps + 4). Then 2 S < eps/2: half the budget is never used.
* `corrected`: c is its logit clipped to [-log 2, log 2], and theta = eps/(eps + 4 log 2). Then 2 S 2 log 2 < eps, and tends to it.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from discreet.errors import OPEN_UNIT, POSITIVE, DiscreetError, check_count

Sampling = Literal["metropolis", "exact"]


@dataclass(frozen=True)
class Preset:
    """A bounded function c of the classifier's logit, and what theta divides by."""

    name: str
    clipped: bool  # the logit clipped to [low, high], or else its sigmoid
    low: float
    high: float
    divisor: float

    def theta(self, epsilon: float) -> float:
        """epsilon/(epsilon + divisor)."""
        return epsilon / (epsilon + self.divisor)

    def weights(self, epsilon: float, rounds: int) -> list[float]:
        """theta, theta^2, ..., one for each round."""
        return [self.theta(epsilon) ** t for t in range(1, rounds + 1)]

    def largest_log_ratio(self, epsilon: float, rounds: int) -> float:
        """What two clients' laws can differ by at most, whatever was learnt: the budget that is really used."""
        return 2.0 * (self.high - self.low) * sum(self.weights(epsilon, rounds))


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("published", clipped=False, low=0.0, high=1.0, divisor=4.0),
        Preset("corrected", clipped=True, low=-math.log(2.0), high=math.log(2.0), divisor=4.0 * math.log(2.0)),
    )
}


def preset_named(name: str | Preset) -> Preset:
    """The preset "published" or "corrected"; a preset stays as it is."""
    if isinstance(name, Preset):
        return name
    if not isinstance(name, str) or name not in PRESETS:
        raise DiscreetError(f"preset = {name!r} is not one of {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True)
class Training:
    """How each round's classifier is trained, and how Q is sampled for it. The defaults: the paper's Figures 1 and 4."""

    rounds: int = 3
    samples: int = 10_000
    batch: int = 5_000  # of P and as many of Q
    epochs: int = 750
    rate: float = 0.01
    momentum: float = 0.9
    width: int = 25
    burn_in: int = 1_000
    sampling: Sampling = "metropolis"

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "batch", "width"):
            check_count(name, getattr(self, name))
        for name in ("epochs", "burn_in"):
            check_count(name, getattr(self, name), 0)
        if self.samples % self.batch:
            raise DiscreetError(f"batch = {self.batch} does not divide samples = {self.samples}; take one that does")
        POSITIVE.check("rate", self.rate)
        OPEN_UNIT.check("momentum", self.momentum)
        if self.sampling not in ("metropolis", "exact"):
            raise DiscreetError(f"sampling = {self.sampling!r} is not one of metropolis, exact")

    def scale_down(self, epochs: int, samples: int, burn_in: int) -> "Training":
        """The same with less of everything, for a quick look."""
        return replace(self, epochs=epochs, samples=samples, batch=samples // 2, burn_in=burn_in)
