"""Plans before a collection: the accuracy of shares, and the clients or epsilon that an accuracy needs.

If x of n clients release an outcome, the curator reports Clopper and Pearson's interval [l(x), h(x)] of its released share q, carried
through the lines of `discreet.estimation._inference` to an interval of its true share. q can be anything in [q0, q1] that leaves both the
outcome, b mu <= q <= B mu, and its complement in the box. With the given confidence the interval covers q, and then x is one of the counts
with h(x) >= q0 and l(x) <= q1. The longest reach of an interval over these counts is therefore a guarantee:

    for every population, with that confidence the interval covers the true share and reaches no further.

Where P is identifiable the reach is that from the unbiased estimate to the farther end, so the estimate is no further from the truth
either; elsewhere it is half of the interval. That is a promise for each share alone: of k shares (1 - confidence) k may be missed. For
all of them together every interval gets a k-th of what the confidence leaves (Bonferroni), as `Shares.all_low` and `all_high` do.

For reports q is the probability that a report holds the outcome. It can be anything from p_out to p_in, and the same argument holds.

**The least variance.** Let each client's record be drawn from the population and its report from Q_i(.|x), any epsilon-LDP mechanism on
records; E = e^epsilon. In the uniform population on k outcomes the variances of unbiased estimates of the shares add up to at least
(k - 1)^2/(n max_w J(w)), with J(w) = (E - 1)^2 k w (k - w)/(k + (E - 1) w)^2 over whole numbers 0 < w < k. *Proof.* On directions that sum to
0, client i has Fisher information of trace sum_y sum_x (Q_i(y|x) - q(y))^2/q(y), where q(y) is the mean of Q_i(y|x) over x. The term of y is
convex and homogeneous of degree 1 in the column Q_i(y|.), whose entries differ by a factor of at most E. Such a column is a sum of columns
with entries m or E m, and the term of one with w large entries is J(w) times its mean. The means add up to 1, so the trace is at most max J.
The variances add up to at least the trace of the inverse of the sum over clients [Cramer and Rao], which is at least (k - 1)^2 over its
trace.   QED   Subset selection with w outcomes has exactly (k - 1)^2/(n J(w)), so the best of them has the least: `variance_excess` is the
factor above it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet.errors import OPEN_UNIT, POSITIVE, PROBABILITY, DiscreetError, ImpossibleError, check_count, check_flag
from discreet.estimation._counting import bins_of_about_equal_reference_mass
from discreet.estimation._inference import (
    Ends,
    Inversion,
    Line,
    clopper_pearson_ends_for_miss,
    inversion_of,
    invert_released_intervals,
    one_sided_miss_probability,
)
from discreet.families import ContinuousFamily, FiniteFamily, Simplex, as_floats, refuse_non_family
from discreet.mechanisms import (
    SERVING,
    AnyFamily,
    JointSampler,
    LinearSampler,
    ReportSampler,
    Sampler,
    best_subset_width_and_variance,
    fraction_below_exp_epsilon,
    population_mechanism,
)
from discreet.privacy import Pure

Floats = NDArray[np.float64]
Released = Sampler[AnyFamily] | JointSampler | ReportSampler  # what shares among samples or reports are of
_PLACES, _MOST_COUNTS = 129, 4096
_PEAKS, _CLOSER, _PARTS = 4, 4, 17  # refinement of the search around the longest reach
_MANY = 1e8  # clients from which on a slightly longer normal interval replaces the exact one
MOST_CLIENTS = 10**15
LEAST_EPSILON, _MOST_EPSILON = 1e-6, 200.0


@dataclass(frozen=True)
class SamplingNoise:
    """The sampling noise of a number of clients, at that confidence; `among`: for that many shares together."""

    clients: float
    confidence: float
    among: int = 1

    @property
    def end_miss_probability(self) -> float:
        """The probability that one end of an interval misses."""
        return one_sided_miss_probability(self.confidence, self.among)

    def released_share_intervals(self, shares: Floats) -> Ends:
        """The intervals of released shares that are observed to be these."""
        if math.isinf(self.clients):
            return shares, shares
        if self.clients < _MANY:
            return clopper_pearson_ends_for_miss(shares * self.clients, self.clients, self.end_miss_probability)
        half_width = self._normal_half_width(shares)
        return np.maximum(shares - half_width, 0.0), np.minimum(shares + half_width, 1.0)

    def compatible_frequency_range(self, least: float, most: float) -> tuple[float, float]:
        """The range of shares of the samples whose interval covers a released share in [least, most]."""
        n, miss = self.clients, self.end_miss_probability
        if math.isinf(n):
            return least, most
        if n >= _MANY:
            reach = self._normal_half_width(np.array([least, most])).tolist()
            return max(0.0, least - reach[0]), min(1.0, most + reach[1])

        def lower_tail_excess(share: float) -> float:  # the lower tail, under the least share
            return (float(scipy.special.betaincc(share * n + 1.0, n - share * n, least)) if share < 1.0 else 1.0) - miss

        def upper_tail_excess(share: float) -> float:  # the upper tail, under the largest share
            return (float(scipy.special.betainc(share * n, n - share * n + 1.0, most)) if share > 0.0 else 1.0) - miss

        lowest = (
            0.0
            if lower_tail_excess(0.0) >= 0.0
            else float(scipy.optimize.brentq(lower_tail_excess, 0.0, 1.0, xtol=1e-15))
        )
        highest = (
            1.0
            if upper_tail_excess(1.0) >= 0.0
            else float(scipy.optimize.brentq(upper_tail_excess, 0.0, 1.0, xtol=1e-15))
        )
        return min(lowest, least), max(highest, most)

    def shares_to_evaluate(self, least: float, most: float) -> Floats:
        """Shares in [least, most], in order, at which intervals are evaluated: a grid, 1/2, and for few clients all possible shares."""
        grids = [np.linspace(least, most, _PLACES), np.array([min(max(least, 0.5), most)])]  # noise is largest at 1/2
        if (most - least) * self.clients <= _MOST_COUNTS:
            counts = np.arange(math.ceil(least * self.clients), math.floor(most * self.clients) + 1)
            grids.append(np.clip(counts / self.clients, least, most))
        return np.unique(np.concatenate(grids))

    def _normal_half_width(self, q: Floats) -> Floats:
        """z sqrt(q (1 - q)/n), plus more than the excess length of the exact interval."""
        z = -float(scipy.special.ndtri(self.end_miss_probability))
        half_width: Floats = z * np.sqrt(q * (1.0 - q) / self.clients) + (z**2 + 2.0) / self.clients
        return half_width


@dataclass(frozen=True)
class Outlook:
    """The accuracy of one mechanism at one epsilon: the reach of a share's interval from its estimate (or half its width).

    Attributes:
        mechanism: its name.
        epsilon: the budget.
        clients: how many there are.
        at_worst: the reach for each share, for every population.
        together: the reach for all shares at once.
        if_rare: the reach for an outcome that nobody holds.
        band: the part of `at_worst` that no number of clients removes.
        total: expected total variation distance of the whole estimated law; None if it is not identifiable.
    """

    mechanism: str
    epsilon: float
    clients: int
    at_worst: float
    together: float
    if_rare: float
    band: float
    total: float | None


def outlook(
    sampler: Sampler[AnyFamily] | ReportSampler,
    *,
    mechanism: str,
    clients: int,
    confidence: float = 0.95,
    bins: int | None = None,
) -> Outlook:
    """The accuracy of the share that is hardest to estimate (any outcome, if the reference is uniform).

    Args:
        sampler: what will release the samples.
        mechanism: the name to show.
        clients: how many there are.
        confidence: of every interval.
        bins: on a continuous family in one dimension outcomes are bins of its cells: so many, or as many as an estimate would take.

    Returns:
        An `Outlook`.

    Raises:
        DiscreetError: for arguments out of range.
    """
    check_count("clients", clients)
    OPEN_UNIT.check("confidence", confidence)
    inversion = _sampler_inversion(sampler)
    if isinstance(sampler, Sampler) and isinstance(sampler.family, ContinuousFamily):
        masses = bins_of_about_equal_reference_mass(sampler, clients=clients, count=bins).reference
        size = len(masses)
    else:
        # one number may stand for 2^40 outcomes
        masses, size = (_reference_masses_or_common_mass(sampler), _number_of_shares(sampler))
    noise = SamplingNoise(clients, confidence)
    rare_share = np.array([_released_share_range(sampler, float(masses.max()))[0]])
    total = None
    if inversion.exact:
        # the mean of |N(0, s^2)| is s sqrt(2/pi); a population like the reference has q = mu
        released_shares = masses
        if isinstance(sampler, ReportSampler):
            # the probability that a report holds an outcome in the uniform population
            released_shares = np.array([sampler.chances.outside + sampler.chances.gap / size])
        spread = np.sqrt(released_shares * (1.0 - released_shares) / clients).mean() * size * inversion.low.released
        total = min(1.0, 0.5 * math.sqrt(2.0 / math.pi) * float(spread))
    return Outlook(
        mechanism,
        sampler.epsilon,
        clients,
        longest_interval_half_width(inversion, sampler, masses, noise),
        longest_interval_half_width(inversion, sampler, masses, SamplingNoise(clients, confidence, size)),
        float(_share_half_widths(inversion, sampler, float(masses.max()), rare_share, noise)[0]),
        longest_interval_half_width(inversion, sampler, masses, SamplingNoise(math.inf, confidence)),
        total,
    )


def longest_interval_half_width(
    inversion: Inversion, sampler: Released, masses: ArrayLike, noise: SamplingNoise
) -> float:
    """The longest reach of a share's interval, over outcomes with these reference masses and every population."""
    longest = 0.0
    for mass in _masses_whose_released_share_nears_half(np.asarray(masses, dtype=np.float64)):
        shares = noise.shares_to_evaluate(*noise.compatible_frequency_range(*_released_share_range(sampler, mass)))
        reach = _share_half_widths(inversion, sampler, mass, shares, noise)
        longest = max(longest, float(reach.max()))
        peaks = np.argsort(-reach, kind="stable")[:_PEAKS]  # it may be a little longer between the places
        low, high = shares[np.maximum(peaks - 1, 0)], shares[np.minimum(peaks + 1, len(shares) - 1)]
        for _ in range(_CLOSER):
            grid = np.linspace(low, high, _PARTS)
            reach = _share_half_widths(inversion, sampler, mass, grid.ravel(), noise).reshape(grid.shape)
            longest = max(longest, float(reach.max()))
            best, columns = np.argmax(reach, axis=0), np.arange(len(peaks))
            low, high = grid[np.maximum(best - 1, 0), columns], grid[np.minimum(best + 1, _PARTS - 1), columns]
    return longest


def _masses_whose_released_share_nears_half(masses: Floats) -> list[float]:
    """The masses whose shares can come nearest to 1/2, where noise and bands are widest: the largest, and the largest up to 1/2.

    A released share ranges from below its mass to above it, and both ends grow with the mass; at most one mass exceeds 1/2.
    """
    small = masses[masses <= 0.5]
    return sorted({float(masses.max()), float(small.max())} if small.size else {float(masses.max())})


def _sampler_inversion(sampler: Sampler[AnyFamily] | ReportSampler) -> Inversion:
    """The lines of a sampler; for reports the line from a probability that a report holds an outcome to its share."""
    if not isinstance(sampler, ReportSampler):
        return inversion_of(sampler)
    chances = sampler.chances
    line = Line(-sampler.family.size * chances.outside / chances.gap, 1.0 / chances.gap)
    return Inversion(line, line)


def _number_of_shares(sampler: Sampler[AnyFamily] | ReportSampler) -> int:
    """How many shares there are."""
    return sampler.family.size if isinstance(sampler, ReportSampler) else sampler.carrier.size


def _released_share_range(sampler: Released, mass: float) -> tuple[float, float]:
    """The least and the largest share under laws in the box of an outcome with that reference mass."""
    if isinstance(sampler, ReportSampler):
        return sampler.chances.outside, sampler.chances.inside
    b, B = sampler.constants.b, sampler.constants.B
    others = 1.0 - mass
    least = max(b * mass, 1.0 - B * others) if others else 1.0  # B may be infinite
    return least, max(least, min(B * mass, 1.0 - b * others))


def _reference_masses_or_common_mass(sampler: Sampler[AnyFamily] | ReportSampler) -> Floats:
    if isinstance(sampler, ReportSampler):
        return np.array([1.0 / sampler.family.size])
    if isinstance(sampler.family, ContinuousFamily):
        raise DiscreetError(f"{sampler!r}: the number of clients depends on the share; give mass=, its reference mass")
    return np.atleast_1d(np.asarray(sampler.reference, dtype=np.float64))


def _share_half_widths(
    inversion: Inversion, sampler: Released, mass: float, shares: Floats, noise: SamplingNoise
) -> Floats:
    if mass == 1.0:
        return np.zeros_like(shares)  # a single outcome has the share 1
    low, high = noise.released_share_intervals(shares)
    if inversion.exact:
        first, last = _released_share_range(sampler, mass)  # only shares that can be released count
        reach = np.maximum(shares - np.maximum(low, first), np.minimum(high, last) - shares)
        return np.minimum(inversion.low.released * reach, 1.0)
    assert not isinstance(sampler, ReportSampler)  # which determine the population
    least, most = invert_released_intervals(inversion, sampler.bounds, np.full_like(shares, mass), (low, high))
    return 0.5 * (most - least)


def clients_for(
    sampler: Sampler[AnyFamily] | ReportSampler,
    *,
    accuracy: float,
    confidence: float = 0.95,
    mass: float | None = None,
    together: bool = False,
) -> int:
    """How many clients bring each share within `accuracy`, for every population, with that confidence for each of them.

    Args:
        sampler: what will release the samples or reports.
        accuracy: how far the interval of a share may reach.
        confidence: with which it holds.
        mass: of the outcome in question under the reference, if not the one whose share is hardest to know.
        together: the confidence is to be that of all shares at once.

    Returns:
        The number of clients.

    Raises:
        ImpossibleError: if no number of clients is enough.
        DiscreetError: for arguments out of range.
    """
    POSITIVE.check("accuracy", accuracy)
    OPEN_UNIT.check("confidence", confidence)
    together = check_flag("together", together)
    inversion = _sampler_inversion(sampler)
    masses = _reference_masses_or_common_mass(sampler) if mass is None else np.array([PROBABILITY.check("mass", mass)])
    return clients_for_half_width(
        inversion, sampler, masses, accuracy, confidence, _number_of_shares(sampler) if together else 1
    )


def clients_for_half_width(
    inversion: Inversion, sampler: Released, masses: Floats, accuracy: float, confidence: float, among: int = 1
) -> int:
    """The number of clients that brings the share of every outcome with one of these reference masses within the accuracy."""

    def accuracy_shortfall(clients: float) -> float:
        return (
            longest_interval_half_width(inversion, sampler, masses, SamplingNoise(clients, confidence, among))
            - accuracy
        )

    if accuracy_shortfall(float(MOST_CLIENTS)) > 0.0:
        limit = longest_interval_half_width(inversion, sampler, masses, SamplingNoise(math.inf, confidence))
        if limit < accuracy:
            raise ImpossibleError(
                f"more than {MOST_CLIENTS:,} clients would be needed to bring {sampler!r} within {accuracy:g}; use a larger epsilon"
            )
        raise ImpossibleError(
            f"no number of clients brings {sampler!r} within {accuracy:g}: any number of samples determines a share "
            f"only to +-{limit:.3g}; use the linear mechanism or a larger epsilon"
        )
    if accuracy_shortfall(1.0) <= 0.0:
        return 1
    root = scipy.optimize.brentq(lambda log: accuracy_shortfall(math.exp(log)), 0.0, math.log(MOST_CLIENTS), xtol=1e-12)
    count = math.ceil(math.exp(float(root)))
    while accuracy_shortfall(float(count)) > 0.0:  # rounding
        count += max(1, count // 10**12)
    return count


def epsilon_for_accuracy(
    mechanism: type[Sampler[Any]] | type[ReportSampler],
    family: FiniteFamily,
    *,
    clients: int,
    accuracy: float,
    confidence: float = 0.95,
    together: bool = False,
) -> float:
    """The smallest epsilon at which that many clients bring each share within `accuracy`, for every population.

    Args:
        mechanism: `LinearSampler`, `OptimalSampler` or `ReportSampler`.
        family: who the clients may be.
        clients: how many there are.
        accuracy: how far the interval of a share may reach.
        confidence: with which it holds.
        together: the confidence is to be that of all shares at once.

    Returns:
        The epsilon, at least `LEAST_EPSILON`: an accuracy that this reaches is one that takes nothing.

    Raises:
        ImpossibleError: if the clients are too few even without privacy.
        DiscreetError: for arguments out of range.
    """
    if not (isinstance(mechanism, type) and issubclass(mechanism, (Sampler, ReportSampler))):
        raise DiscreetError(
            f"mechanism = {mechanism!r} is not a kind of sampler; pass LinearSampler, OptimalSampler or ReportSampler"
        )
    make: Callable[..., Any] = mechanism
    POSITIVE.check("accuracy", accuracy)
    check_count("clients", clients)
    OPEN_UNIT.check("confidence", confidence)
    refuse_non_family(family)
    noise = SamplingNoise(clients, confidence, family.size if check_flag("together", together) else 1)

    def accuracy_shortfall(log_epsilon: float) -> float:
        sampler = make(family, epsilon=math.exp(log_epsilon))
        return (
            longest_interval_half_width(
                _sampler_inversion(sampler), sampler, _reference_masses_or_common_mass(sampler), noise
            )
            - accuracy
        )

    low, high = math.log(LEAST_EPSILON), math.log(_MOST_EPSILON)
    if accuracy_shortfall(high) > 0.0:
        raise ImpossibleError(
            f"{clients:,} clients do not bring every share within {accuracy:g} even without privacy; take more "
            f"clients, or a larger accuracy"
        )
    if accuracy_shortfall(low) <= 0.0:
        return LEAST_EPSILON
    return math.exp(float(scipy.optimize.brentq(accuracy_shortfall, low, high, xtol=1e-9)))


def variance_excess(sampler: LinearSampler[Any] | ReportSampler) -> float:
    """How many times the least variance that any epsilon-LDP report allows the variance of an estimated share is.

    Both are in the uniform population, averaged over outcomes. The least one is that of every unbiased estimate from one report of each
    client on one of its records, by whichever mechanism; as many times the clients are needed for the same standard error.

    Args:
        sampler: a `ReportSampler`, or a `LinearSampler` on a simplex, under pure privacy.

    Returns:
        At least 1, but for rounding.

    Raises:
        DiscreetError: for samplers on other families, under other notions of privacy, or without an unbiased estimate.
    """
    if isinstance(sampler, ReportSampler):
        return sampler.excess
    if not isinstance(sampler, LinearSampler) or not isinstance(sampler.family, Simplex):
        raise DiscreetError(f"{sampler!r}: the least variance is known for reports, and for LinearSampler on a Simplex")
    if not isinstance(sampler.privacy, Pure):
        raise DiscreetError(f"privacy = {sampler.privacy!r}: the least variance is known for pure privacy, Pure(...)")
    size = sampler.family.size
    if size == 1:
        return 1.0
    bound = fraction_below_exp_epsilon(sampler.privacy)  # or an error: no sample says anything
    variance = (1.0 - 1.0 / size) / size / sampler.constants.gamma**2
    return variance / best_subset_width_and_variance(size, float(bound))[1]


def variance_excess_or_none(sampler: Sampler[AnyFamily] | ReportSampler | JointSampler) -> float | None:
    """`variance_excess`; None where no least variance is known, or samples do not determine a share."""
    if not isinstance(sampler, (LinearSampler, ReportSampler)):
        return None
    try:
        return variance_excess(sampler)
    except DiscreetError:
        return None


def exact_variance(sampler: LinearSampler[FiniteFamily], laws: ArrayLike, phi: ArrayLike) -> float:
    """The variance of the unbiased estimate of phi's average over clients whose laws are known: (n gamma)^-2 sum_i Var_{Q_i}(phi).

    Args:
        sampler: a `LinearSampler` on finitely many outcomes.
        laws: of the clients, (n, k).
        phi: a number for each outcome.

    Returns:
        The variance.

    Raises:
        DiscreetError: for another sampler, and for laws or numbers that do not fit it.
    """
    if not isinstance(sampler, LinearSampler) or isinstance(sampler.family, ContinuousFamily):
        raise DiscreetError(f"{sampler!r} has no unbiased estimate; pass a LinearSampler on finitely many outcomes")
    q, values = sampler.output(laws), as_floats(phi, "phi")
    if q.ndim != 2 or values.shape != (q.shape[1],) or not np.isfinite(values).all():
        raise DiscreetError("laws has one row for each client and phi one finite number for each outcome")
    means = q @ values
    variances = q @ np.square(values) - np.square(means)
    return float(variances.sum() / (len(q) * sampler.constants.gamma) ** 2)


@dataclass(frozen=True)
class PlanAtEpsilon:
    """The expected accuracy at one epsilon."""

    epsilon: float
    tv: float
    kl: float
    linear: Outlook
    optimal: Outlook
    clients: int | None  # that the linear mechanism needs for the accuracy asked for, of each share
    together: int | None  # and of all of them at once
    reports: ReportSampler | None  # what reports would be; None where epsilon is too small for any
    report_clients: int | None  # that they need for the same accuracy of each share
    values_excess: float | None  # the variance of a share by values over the least that any report has

    @property
    def population_mechanism(self) -> str:
        """What `--for population` agrees on."""
        return LinearSampler.name if self.reports is None else ReportSampler.name

    @property
    def clients_for_population(self) -> int | None:
        """How many clients that needs for the accuracy of each share."""
        return self.clients if self.reports is None else self.report_clients

    @property
    def report_and_value_variance_excess(self) -> tuple[float | None, float | None]:
        """The variance of a share over the least possible, by reports (where values are none worse, by values) and by values."""
        return (self.values_excess if self.reports is None else self.reports.excess), self.values_excess


def plan_at_epsilon(
    family: Simplex, *, epsilon: float, clients: int, accuracy: float, confidence: float
) -> PlanAtEpsilon:
    """The accuracy to expect of so many clients at one epsilon, and how many clients the accuracy asked for takes."""
    samplers = {name: kind(family, epsilon=epsilon) for name, kind in SERVING.items()}
    outlooks = {
        name: outlook(sampler, mechanism=name, clients=clients, confidence=confidence)
        for name, sampler in samplers.items()
    }
    clients_each, clients_together = (
        clients_needed_or_none(samplers["linear"], accuracy, confidence, together=together)
        for together in (False, True)
    )
    reports = report_sampler_if_better(family, epsilon)
    report_clients = None if reports is None else clients_needed_or_none(reports, accuracy, confidence)
    optimal = samplers["optimal"]
    risks = float(optimal.risk("tv")), float(optimal.risk("kl"))
    excess = variance_excess_or_none(samplers["linear"])
    return PlanAtEpsilon(
        optimal.epsilon,
        *risks,
        outlooks["linear"],
        outlooks["optimal"],
        clients_each,
        clients_together,
        reports,
        report_clients,
        excess,
    )


def report_sampler_if_better(family: Simplex, epsilon: float) -> ReportSampler | None:
    """Reports where values need more clients; None where values are as good, or on an interval."""
    if population_mechanism(family, Pure(epsilon)) != ReportSampler.name:
        return None
    return ReportSampler(family, epsilon=epsilon)


def clients_needed_or_none(
    sampler: Sampler[AnyFamily] | ReportSampler, accuracy: float, confidence: float, *, together: bool = False
) -> int | None:
    """How many clients an accuracy takes; None where no number is enough."""
    try:
        return clients_for(sampler, accuracy=accuracy, confidence=confidence, together=together)
    except ImpossibleError:
        return None


def smallest_epsilon_or_none(
    kind: type[Sampler[Any]],
    family: Simplex,
    *,
    clients: int,
    accuracy: float,
    confidence: float,
    together: bool,
) -> float | None:
    """The smallest epsilon that reaches an accuracy; None where none does."""
    try:
        return epsilon_for_accuracy(
            kind, family, clients=clients, accuracy=accuracy, confidence=confidence, together=together
        )
    except ImpossibleError:
        return None
