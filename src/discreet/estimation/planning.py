"""Before anything is collected: how well shares will be known, and what it takes to know them better.

For an outcome of reference mass mu, n clients and a released share q, the interval of its true share is
[low(q - z s), high(q + z s)] with s = sqrt(q (1 - q)/n) and the lines of `discreet.estimation.inversion`; q can be anything that
leaves both the outcome, b mu <= q <= B mu, and its complement in the box. The largest half-width over q is a promise, that at the least q
is what an outcome nobody holds will show.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.errors import OPEN_UNIT, POSITIVE, PROBABILITY, DiscreetError, ImpossibleError, check_count
from discreet.estimation.intervals import deviations
from discreet.estimation.inversion import Inversion, inversion_of
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families.laws import as_floats
from discreet.mechanisms import LinearSampler
from discreet.mechanisms.sampler import Sampler

Floats = NDArray[np.float64]
_PLACES = 129
MOST_CLIENTS = 10**15
LEAST_EPSILON, _MOST_EPSILON = 1e-6, 200.0


@dataclass(frozen=True)
class Noise:
    """The sampling noise of so many clients, at that confidence."""

    clients: float
    confidence: float

    def around(self, q: Floats) -> Floats:
        """z sqrt(q (1 - q)/n)."""
        found: Floats = deviations(self.confidence) * np.sqrt(q * (1.0 - q) / self.clients)
        return found


@dataclass(frozen=True)
class Outlook:
    """What one mechanism promises at one epsilon. Half-widths are of the interval of one outcome's share.

    `at_worst`: whatever the population; `if_rare`: of an outcome that nobody holds; `band`: the part of `at_worst` that no number of
    clients removes; `total`: expected total variation distance of the whole estimated law, None if it is not identifiable.
    """

    mechanism: str
    epsilon: float
    clients: int
    at_worst: float
    if_rare: float
    band: float
    total: float | None


def outlook(sampler: Sampler, *, mechanism: str, clients: int, confidence: float = 0.95) -> Outlook:
    """The promise for the most likely outcome of the reference (any outcome, if it is uniform)."""
    check_count("clients", clients)
    OPEN_UNIT.check("confidence", confidence)
    inversion = inversion_of(sampler)
    mass = _largest_mass(sampler)
    noise = Noise(clients, confidence)
    rare = np.array([_released_range(sampler, mass)[0]])
    total = None
    if inversion.exact:
        # the mean of |N(0, s^2)| is s sqrt(2/pi); a population like the reference has q = mu
        masses = np.asarray(sampler.reference)  # one number stands for every outcome: there may be 2^40
        spread = np.sqrt(masses * (1.0 - masses) / clients).mean() * sampler.family.size * inversion.low.released
        total = min(1.0, 0.5 * math.sqrt(2.0 / math.pi) * float(spread))
    return Outlook(
        mechanism,
        sampler.epsilon,
        clients,
        half_width(inversion, sampler, mass, noise),
        float(_half_widths(inversion, mass, rare, noise)[0]),
        half_width(inversion, sampler, mass, Noise(math.inf, confidence)),
        total,
    )


def half_width(inversion: Inversion, sampler: Sampler, mass: float, noise: Noise) -> float:
    """The largest half-width of the interval of an outcome's share, over every released share that it can have."""
    least, most = _released_range(sampler, mass)
    released = np.append(np.linspace(least, most, _PLACES), min(max(least, 0.5), most))  # the noise is largest at 1/2
    return float(_half_widths(inversion, mass, released, noise).max())


def _released_range(sampler: Sampler, mass: float) -> tuple[float, float]:
    """The least and the largest share under laws in the box of an outcome with that reference mass."""
    b, B = sampler.constants.b, sampler.constants.B
    others = 1.0 - mass
    least = max(b * mass, 1.0 - B * others) if others else 1.0  # B may be infinite
    return least, max(least, min(B * mass, 1.0 - b * others))


def _largest_mass(sampler: Sampler) -> float:
    if isinstance(sampler.family, ContinuousFamily):
        raise DiscreetError(
            f"{sampler!r}: a plan is for finitely many outcomes; plan for its cells, as a Simplex or a Band of as many"
        )
    return float(np.max(sampler.reference))


def _half_widths(inversion: Inversion, mass: float, released: Floats, noise: Noise) -> Floats:
    around = noise.around(released)
    low = np.clip(inversion.least(mass, released - around), 0.0, 1.0)
    high = np.clip(inversion.most(mass, released + around), 0.0, 1.0)
    found: Floats = 0.5 * (high - low) if not inversion.exact else np.minimum(inversion.low.released * around, 0.5)
    return found


def clients_for(sampler: Sampler, *, accuracy: float, confidence: float = 0.95, mass: float | None = None) -> int:
    """How many clients bring every share within `accuracy`, whatever the population.

    `mass`: of the outcome in question under the reference, if not that of the most likely one.
    """
    POSITIVE.check("accuracy", accuracy)
    OPEN_UNIT.check("confidence", confidence)
    inversion = inversion_of(sampler)
    largest = _largest_mass(sampler) if mass is None else PROBABILITY.check("mass", mass)

    def missing(log_clients: float) -> float:
        return half_width(inversion, sampler, largest, Noise(math.exp(log_clients), confidence)) - accuracy

    most = math.log(MOST_CLIENTS)
    if missing(most) > 0.0:
        left = half_width(inversion, sampler, largest, Noise(math.inf, confidence))
        if left < accuracy:
            raise ImpossibleError(
                f"more than {MOST_CLIENTS:,} clients would be needed to bring {sampler!r} within {accuracy:g}; use a larger epsilon"
            )
        raise ImpossibleError(
            f"no number of clients brings {sampler!r} within {accuracy:g}: its samples leave a share open by +-{left:.3g}; "
            "use the linear mechanism or a larger epsilon"
        )
    if missing(0.0) <= 0.0:
        return 1
    return math.ceil(math.exp(float(scipy.optimize.brentq(missing, 0.0, most, xtol=1e-12))))


def epsilon_for_accuracy(
    mechanism: type[Sampler],
    family: FiniteFamily,
    *,
    clients: int,
    accuracy: float,
    confidence: float = 0.95,
) -> float:
    """The smallest epsilon at which that many clients bring every share within `accuracy`, whatever the population.

    Never less than `LEAST_EPSILON`: an accuracy that this reaches is one that takes nothing.
    """
    if not (isinstance(mechanism, type) and issubclass(mechanism, Sampler)):
        raise DiscreetError(f"mechanism = {mechanism!r} is not a kind of sampler; pass LinearSampler or OptimalSampler")
    POSITIVE.check("accuracy", accuracy)
    check_count("clients", clients)
    noise = Noise(clients, OPEN_UNIT.check("confidence", confidence))

    def missing(log_epsilon: float) -> float:
        sampler = mechanism(family, epsilon=math.exp(log_epsilon))
        return half_width(inversion_of(sampler), sampler, _largest_mass(sampler), noise) - accuracy

    low, high = math.log(LEAST_EPSILON), math.log(_MOST_EPSILON)
    if missing(high) > 0.0:
        raise ImpossibleError(
            f"{clients:,} clients do not bring every share within {accuracy:g} even without privacy; ask more of them, or for less"
        )
    if missing(low) <= 0.0:
        return LEAST_EPSILON
    return math.exp(float(scipy.optimize.brentq(missing, low, high, xtol=1e-9)))


def exact_variance(sampler: LinearSampler, laws: ArrayLike, phi: ArrayLike) -> float:
    """The variance of the unbiased estimate of phi's average over clients whose laws are known: (n gamma)^-2 sum_i Var_{Q_i}(phi)."""
    if not isinstance(sampler, LinearSampler) or isinstance(sampler.family, ContinuousFamily):
        raise DiscreetError(f"{sampler!r} has no unbiased estimate; pass a LinearSampler on finitely many outcomes")
    q, values = sampler.output(laws), as_floats(phi, "phi")
    if q.ndim != 2 or values.shape != (q.shape[1],) or not np.isfinite(values).all():
        raise DiscreetError("laws has one row for each client and phi one finite number for each outcome")
    means = q @ values
    variances = q @ np.square(values) - np.square(means)
    return float(variances.sum() / (len(q) * sampler.constants.gamma) ** 2)
