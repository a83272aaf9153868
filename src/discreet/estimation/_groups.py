"""Several groups of clients side by side, and the change between two estimates, with intervals that hold all at once.

`estimate_groups` estimates every group of a public column by itself. `change` is the difference of two estimates: two files, two rounds, or
two groups.

**Groups.** Clients draw independently, so groups of different clients are independent. If the intervals of each of G groups hold together
with probability c^(1/G), those of all groups and all outcomes hold together with probability c. Inside a group the error is shared among
the outcomes (Bonferroni). Beyond a hundred groups, intervals are Clopper and Pearson's, which are a little longer and take less time. The
groups are public: a group that is private has to be part of what is released.

**Change.** Counts X of n clients and Y of m clients are sums of independent coins with mean chances q and r; the clients may be the same,
since each draw has its own randomness. Write U_x(q) for the upper tail of the binomial distribution and N for the normal one, and let

    z(x; q) = N^-1(1 - U_x(q)) where that is positive and x >= n q + 1, else 0     (n q in place of U_1(q))

measure how far x lies above its mean. For t > 0, {z >= t} is an upper tail of X that starts at least one above the mean, so its probability
is at most 1 - N(t) [Hoeffding 1956, Thm 5], and for x = 1 by Markov's inequality. Hence z is stochastically smaller than the positive part
of a standard normal variable, whoever the clients are. Let z' be the same for the lower tail, u^2 + w^2 = 1 fixed weights, m a cap, and Z, Z'
independent and normal. Growing functions keep the order, so

    P[u z(Y; r) + w z'(X; q) >= c or z >= m or z' >= m]  <=  P[u Z+ + w Z'+ >= c or Z >= m or Z' >= m]

Choose c such that the right side is half of the error. The (q, r) without this event contain the truth, and the smallest difference among
them is the lower end: the minimum over 0 <= s <= m of the least share after with z <= s, less the largest share before with
z' <= min(m, (c - u s)/w). QED. The minimum is taken over steps of s with the worse end of each on either side, which makes it smaller. The
weights are public: those of equal shares before and after. For many clients the interval is then 1.03 to 1.08 times as long as the normal
one. The cap takes an eighth of the error; it keeps intervals short where a share is near 0, or where the two are far apart. (Two intervals
that share the error, subtracted from each other, are 1.6 times as long as the normal one.)

**What a change is about**: the average client of each file. It holds the chance of the draws. Who took part is not part of it: if other
clients answered, their difference is part of the change. For the same clients it says how they changed; it says so of the population
that they were drawn from too, unless clients tend to swap their outcomes.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import ArrayLike, NDArray

from discreet._base.quadrature import gauss_rule
from discreet.agreement import Agreement
from discreet.audit import least_probability
from discreet.domain import Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_kind
from discreet.estimation._counting import LARGEST, column_as_list, line_of, usual_bin_count
from discreet.estimation._from_samples import population
from discreet.estimation._intervals import Ends, clopper_pearson
from discreet.estimation._inversion import invert_intervals, lower_ends_together, membership_bounds
from discreet.estimation._population import Estimate, Population, Shares
from discreet.estimation._reports import ReportedPopulation, reported_population, reported_statistic
from discreet.families import ContinuousFamily
from discreet.mechanisms import AnyFamily, LineCells, ReportCounts, ReportSampler, Sampler

Floats = NDArray[np.float64]
AnyPopulation = Population | ReportedPopulation
STEPS = 64  # of the split of a change between its two counts
_STATISTIC_STEPS = 12
_CAPPED = 0.125  # of the error that one end may miss with, for the cap
_LEAST_SCORE = 0.01
_NODES = 64
_MANY = 100  # groups, beyond which intervals are Clopper and Pearson's
_LITTLE = 0.75  # of what clients can have: an interval that long tells next to nothing
_TOGETHER = 1 << 15  # outcomes whose changes are computed in one go


@dataclass(frozen=True, eq=False)
class GroupedPopulation:
    """Estimates of several groups of clients. Made by `estimate_groups`.

    Attributes:
        groups: the estimate of each group by itself, in order.
        confidence: of every interval.
        reports: the reports of each group, where they are there; statistics of reports need them.
    """

    groups: Mapping[Any, AnyPopulation]
    confidence: float
    reports: Mapping[Any, NDArray[np.uint64]] | None = None

    def __repr__(self) -> str:
        return f"<GroupedPopulation of {len(self.groups):,} groups, {self.clients:,} clients>"

    @property
    def clients(self) -> int:
        """The number of clients in all groups."""
        return sum(found.clients for found in self.groups.values())

    @property
    def group_confidence(self) -> float:
        """The confidence that each group needs by itself, such that all groups hold together."""
        return math.pow(self.confidence, 1.0 / len(self.groups))

    @cached_property
    def laws(self) -> dict[Any, Shares]:
        """The average client's distribution in each group. `all_low` and `all_high` hold for all outcomes of all groups at once."""
        confidence, laws = self.group_confidence, {}
        for name, found in self.groups.items():
            if len(self.groups) > _MANY:
                laws[name] = _quick_law(found, confidence)
                continue
            together = replace(found, confidence=confidence).law
            laws[name] = replace(found.law, all_low=together.all_low, all_high=together.all_high)
        return laws

    @cached_property
    def whole(self) -> AnyPopulation:
        """The estimate from the clients of all groups together."""
        first, *others = self.groups.values()
        counts = sum((each.counts for each in others), first.counts)
        if isinstance(first, ReportedPopulation):
            return replace(first, counts=counts, clients=self.clients)
        if first.finest is None:
            return replace(first, counts=counts)
        finest = [each.finest.counts for each in self.groups.values() if isinstance(each.finest, Population)]
        return replace(first, counts=counts, finest=replace(first.finest, counts=np.sum(finest, axis=0)))

    @cached_property
    def margins(self) -> dict[Any, float]:
        """How far the longest interval of each group reaches from its estimate, all groups at once."""
        found = {}
        for name, law in self.laws.items():
            inside = np.clip(law.estimate, law.all_low, law.all_high)
            found[name] = float(np.maximum(law.all_high - inside, inside - law.all_low).max())
        return found

    @cached_property
    def silent(self) -> tuple[Any, ...]:
        """The groups that are too small to tell anything: every interval covers three quarters of what clients can have, or more."""
        return tuple(name for name, law in self.laws.items() if _excludes_little(self.groups[name], law))

    def statistic(self, wanted: str | Callable[[Any], float]) -> dict[Any, Estimate]:
        """A statistic of each group, with intervals that hold for all groups at once.

        Args:
            wanted: as for `Population.statistic`; of reports "mean" or "at-most:X".

        Returns:
            An estimate for each group.

        Raises:
            DiscreetError: for an unknown statistic, and for reports that were only counted.
        """
        found = {}
        for name, group in self.groups.items():
            wide = replace(group, confidence=self.group_confidence)
            if isinstance(wide, Population):
                found[name] = wide.statistic(wanted)
                continue
            if self.reports is None:
                raise DiscreetError("statistics of reports need the reports themselves; pass reports= and groups=")
            check_kind("wanted", wanted, str, 'pass "mean" or "at-most:X"')
            found[name] = reported_statistic(wide, str(wanted), self.reports[name])
        return found


def _quick_law(found: AnyPopulation, confidence: float) -> Shares:
    """The shares of one group; `confidence`: of all its intervals together. By Clopper and Pearson's ends, which take less time."""
    each = clopper_pearson(found.counts, found.clients, found.confidence)
    together = clopper_pearson(found.counts, found.clients, confidence, among=len(found.counts))
    if isinstance(found, ReportedPopulation):
        low, high = found.share_intervals(together)
        return Shares(found.share_estimates, *found.share_intervals(each), lower_ends_together(low), high)
    lines, mu = (found.inversion, found.bounds, found.reference), found.reference
    low, high = invert_intervals(*lines, together)
    low = lower_ends_together(low, membership_bounds(found.bounds, mu)[0])
    return Shares(found.share_estimates, *invert_intervals(*lines, each), low, high)


def _excludes_little(found: AnyPopulation, law: Shares) -> bool:
    if isinstance(found, ReportedPopulation):
        least, most = np.zeros(len(law.estimate)), np.ones(len(law.estimate))
    else:
        least, most = membership_bounds(found.bounds, found.reference)
    return bool((law.all_high - law.all_low >= _LITTLE * (most - least)).all())


def estimate_groups(
    sampler: Sampler[AnyFamily] | ReportSampler | Agreement,
    *,
    samples: ArrayLike | None = None,
    reports: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    counts: Mapping[Any, Any] | None = None,
    bins: int | None = None,
    confidence: float = 0.95,
) -> GroupedPopulation:
    """Estimate every group of clients by itself, with intervals that hold for all groups and outcomes at once.

    Args:
        sampler: the sampler that released the samples or reports, or its agreement.
        samples: one sample of each client: labels, outcome numbers, or points of an interval.
        reports: or one report of each client.
        groups: the public group of each client, in the same order.
        counts: instead of these, for each group the count of each outcome, or a `ReportCounts`.
        bins: on a continuous family, the number of bins, the same in all groups.
        confidence: of every interval.

    Returns:
        An estimate of each group.

    Raises:
        DiscreetError: for clients without a group (with their number), and for samples that this sampler cannot have released.

    Example:
        >>> found = estimate_groups(LinearSampler(Simplex(2), epsilon=1.0), samples=[0, 1, 1], groups=["north", "south", "south"])
        >>> found.laws["south"].all_low
    """
    OPEN_UNIT.check("confidence", confidence)
    if isinstance(sampler, Agreement):
        if sampler.joint is not None:
            raise DiscreetError(f"{sampler!r} is on several samples of each client; groups are for one of each")
        sampler = sampler.sampler() if sampler.blocks is None else sampler.report_sampler()
    reported = isinstance(sampler, ReportSampler)
    if not reported:
        check_kind("sampler", sampler, Sampler, "pass the one that released the samples or reports, or its agreement")
    if counts is not None:
        check_kind("counts", counts, Mapping, "pass the counts of each group, by its name")
    given, other = (reports, samples) if reported else (samples, reports)
    if other is not None:
        what, wanted = ("reports", "reports=") if reported else ("samples", "samples=")
        raise DiscreetError(f"{sampler!r} releases {what}; pass {wanted}")
    if (counts is None) == (given is None) or (given is None) != (groups is None):
        raise DiscreetError("pass samples= (or reports=) with groups=, the group of each; or counts= of each group")
    kept: dict[Any, Any] | None = None
    if counts is None:
        split = _split_by_group(given, groups)
        if isinstance(sampler, ReportSampler):
            kept = {name: sampler.check_reports(np.asarray(part)) for name, part in split.items()}
            counts = {name: ReportCounts(sampler).add(part) for name, part in kept.items()}
        else:
            counts = {name: _count_outcomes(sampler, part) for name, part in split.items()}
    if not counts:
        raise DiscreetError("there are no groups; an estimate needs at least one client")
    return GroupedPopulation(_populations(sampler, counts, bins, float(confidence)), float(confidence), kept)


def _populations(
    sampler: Sampler[AnyFamily] | ReportSampler, counts: Mapping[Any, Any], bins: int | None, confidence: float
) -> dict[Any, AnyPopulation]:
    """The estimate of each group by itself."""
    if isinstance(sampler, ReportSampler):
        if bins is not None:
            raise DiscreetError("bins are for continuous families, which have no reports; leave them out")
        size = sampler.family.size
    else:
        size = _released_domain(sampler).size
        if (
            isinstance(sampler.family, ContinuousFamily) and bins is None
        ):  # the same for all groups: those of the middle one
            bins = usual_bin_count(sampler, int(np.median([np.sum(each) for each in counts.values()])))
    if size * len(counts) > LARGEST:
        raise DiscreetError(
            f"{len(counts):,} groups of {size:,} outcomes are more than {LARGEST:,} shares; take a column with fewer groups"
        )
    found: dict[Any, AnyPopulation] = {}
    for name, each in counts.items():
        if isinstance(sampler, ReportSampler):
            found[name] = reported_population(sampler, counts=each, confidence=confidence)
        else:
            found[name] = population(sampler, counts=each, bins=bins, confidence=confidence)
    return found


def _count_outcomes(sampler: Sampler[AnyFamily], samples: list[Any]) -> NDArray[np.int64]:
    domain = _released_domain(sampler)
    return np.bincount(domain.numbers(samples), minlength=domain.size).astype(np.int64)


def _released_domain(sampler: Sampler[AnyFamily]) -> Domain | LineCells:
    """The outcomes that samples are counted on: those of a finite family, or the cells of a line."""
    return line_of(sampler) if isinstance(sampler.family, ContinuousFamily) else sampler.family.domain


def _split_by_group(given: Any, groups: Any) -> dict[Any, list[Any]]:
    """What each group released, groups in order."""
    try:
        values, names = list(column_as_list(given)), list(column_as_list(groups))
    except TypeError:
        raise DiscreetError("groups is not a list, one group for each client") from None
    if len(values) != len(names):
        raise DiscreetError(f"groups names {len(names):,} groups for {len(values):,} clients; name one for each")
    missing = sum(name is None or name != name for name in names)
    if missing:
        raise DiscreetError(
            f"{missing:,} of {len(names):,} clients have no group; leave them out, or name a group for them"
        )
    found: dict[Any, list[Any]] = {}
    for name, value in zip(names, values, strict=True):
        if not isinstance(name, Hashable):
            raise DiscreetError(f"groups holds {name!r}, which cannot name a group; pass texts or numbers")
        found.setdefault(name, []).append(value)
    return {name: found[name] for name in _order_groups(found)}


def _order_groups(names: Any) -> list[Any]:
    """Groups in the order of their values; of several kinds in the order of their texts."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=str)


@dataclass(frozen=True, eq=False)
class Change:
    """The difference between two estimates, the later less the earlier. Made by `change`.

    Attributes:
        before: the estimate that is compared with.
        after: the other.
        confidence: of every interval.
    """

    before: AnyPopulation
    after: AnyPopulation
    confidence: float

    def __repr__(self) -> str:
        return f"<Change from {self.before.clients:,} to {self.after.clients:,} clients>"

    @property
    def exact(self) -> bool:
        """Whether both average clients are identifiable; otherwise the estimate is the change among the samples."""
        return self.before.exact and self.after.exact

    @cached_property
    def law(self) -> Shares:
        """The change of every share, between -1 and 1: an estimate, its interval, and intervals that hold all at once."""
        estimate = self.after.law.estimate - self.before.law.estimate
        return Shares(estimate, *self._ends(1), *self._ends(len(estimate)))

    def statistic(
        self, wanted: str | Callable[[Any], float], *, reports: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Estimate:
        """The change of an average: "mean", "at-most:X", or a function of an outcome.

        Args:
            wanted: the statistic.
            reports: behind reports, those before and those after.

        Returns:
            The difference of the two estimates, and its interval.

        Raises:
            DiscreetError: for a statistic that is no average.
        """
        if isinstance(wanted, str) and wanted.partition(":")[0] not in ("mean", "at-most"):
            raise DiscreetError(f"statistic = {wanted!r} has no interval of its change; ask for mean or at-most:X")

        def bounds(found: AnyPopulation, score: float, place: int) -> Estimate:
            miss = float(scipy.special.ndtr(-max(score, _LEAST_SCORE)))
            if isinstance(found, Population):
                ends = (
                    2.0 if wanted == "mean" and found.domain.size > 2 else 1.0
                )  # of two values, one end may use all of the error
                return replace(found, confidence=1.0 - ends * miss).statistic(wanted)
            wide = replace(found, confidence=1.0 - 2.0 * miss)
            if reports is None:
                raise DiscreetError("statistics of reports need the reports themselves; pass reports=(before, after)")
            return reported_statistic(wide, str(wanted), reports[place])

        scores = self._scores(1, _STATISTIC_STEPS)
        before = [bounds(self.before, float(score), 0) for score in scores.before]
        after = [bounds(self.after, float(score), 1) for score in scores.after]
        ends = list(zip(before[:-1], after[1:], strict=True))  # of each step, where both are widest
        low = min(later.low - earlier.high for earlier, later in ends)
        high = max(later.high - earlier.low for earlier, later in ends)
        first, last = before[0], after[0]
        estimate = None if first.estimate is None or last.estimate is None else last.estimate - first.estimate
        name = getattr(wanted, "__name__", "statistic") if callable(wanted) else wanted
        return Estimate(name, estimate, low, high, last.released - first.released, first.blur + last.blur)

    def _scores(self, among: int, steps: int) -> "SplitScores":
        noise = usual_noise(self.before), usual_noise(self.after)
        return SplitScores.of(noise, 0.5 * (1.0 - self.confidence) / among, steps)

    def _ends(self, among: int) -> Ends:
        scores = self._scores(among, STEPS)
        before, after = (
            ShareBounds.of(found, steps) for found, steps in ((self.before, scores.before), (self.after, scores.after))
        )
        return _differences(before, after)


@dataclass(frozen=True, eq=False)
class SplitScores:
    """How the evidence against a change may be split: on each step, so many standard deviations before, and so many after.

    `before[j + 1]` and `after[j]` are the ends of step j on which both are larger: the first falls while the second grows.
    """

    before: Floats
    after: Floats

    @classmethod
    def of(cls, noise: tuple[float, float], error: float, steps: int) -> "SplitScores":
        """`noise`: of what is told before and after. `error`: of one end."""
        u, w = noise[1] / math.hypot(*noise), noise[0] / math.hypot(*noise)
        cap = -float(scipy.special.ndtri(_CAPPED * error))
        c = critical_score(error, (u, w), cap)
        after = np.linspace(0.0, min(cap, c / u), steps + 1)
        return cls(np.clip((c - u * after) / w, 0.0, cap), after)


def critical_score(error: float, weights: tuple[float, float], cap: float) -> float:
    """The c with P[u Z+ + w Z'+ >= c or Z >= cap or Z' >= cap] = error, for independent standard normal Z and Z'."""
    u, w = weights
    nodes, masses = gauss_rule(_NODES)

    def exceeding(z: Floats, c: float) -> Floats:
        """The density of Z = z >= 0, times the probability that Z' then exceeds."""
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return np.asarray(density * scipy.special.ndtr(-np.minimum(cap, (c - u * z) / w)))

    def excess(c: float) -> float:
        first, second = min(cap, c / u), min(cap, c / w)
        kink = min(max((c - w * cap) / u, 0.0), first)  # up to there the cap comes first
        inside = kink * float(masses @ exceeding(kink * nodes, c))
        inside += (first - kink) * float(masses @ exceeding(kink + (first - kink) * nodes, c))
        alone = float(scipy.special.ndtr(-first) + 0.5 * scipy.special.ndtr(-second))
        return (alone + inside) / error - 1.0

    return float(scipy.optimize.brentq(excess, 0.0, 4.0 * cap, xtol=1e-12))


def usual_noise(found: AnyPopulation) -> float:
    """The standard error of a share of one k-th, from public numbers alone."""
    if isinstance(found, ReportedPopulation):
        share, slope = found.sampler.chances.outside, 1.0 / found.sampler.chances.gap
    else:
        share, slope = 1.0 / len(found.counts), max(found.inversion.low.released, found.inversion.high.released)
    return slope * math.sqrt(max(share * (1.0 - share), 1e-6) / found.clients)


@dataclass(frozen=True, eq=False)
class ShareBounds:
    """The least and the largest share at each score, for each distinct (count, reference mass); `places`: which one an outcome has."""

    low: Floats
    high: Floats
    places: NDArray[np.int64]

    @classmethod
    def of(cls, found: AnyPopulation, scores: Floats) -> "ShareBounds":
        masses = np.zeros(len(found.counts)) if isinstance(found, ReportedPopulation) else found.reference
        pairs, places = np.unique(
            np.stack([found.counts.astype(np.float64), masses], axis=1), axis=0, return_inverse=True
        )
        tails = scipy.special.ndtr(-scores)
        low = _least_released(pairs[:, :1], found.clients, tails)
        high = 1.0 - _least_released(found.clients - pairs[:, :1], found.clients, tails)
        if isinstance(found, ReportedPopulation):
            return cls(*found.share_intervals((low, high)), places.ravel())
        mu = np.broadcast_to(pairs[:, 1:], low.shape)
        return cls(*invert_intervals(found.inversion, found.bounds, mu, (low, high)), places.ravel())


def _least_released(counts: Floats, clients: int, tails: Floats) -> Floats:
    """The least q with z(x; q) at most the score of each tail; 0 for a count of 0."""
    exact = np.nan_to_num(least_probability(counts, clients, tails), nan=0.0)
    next_to_mean = np.maximum(counts - 1.0, 0.0) / clients  # z is 0 from there on
    one = np.broadcast_to(tails / clients, exact.shape)  # Markov's inequality in place of the tail
    return np.asarray(np.where(counts == 1.0, one, np.minimum(exact, next_to_mean)))


def _differences(before: ShareBounds, after: ShareBounds) -> Ends:
    """The least and the largest difference over all steps, for every outcome."""
    size = len(before.places)
    low, high = np.empty(size), np.empty(size)
    for start in range(0, size, _TOGETHER):
        part = slice(start, start + _TOGETHER)
        earlier, later = before.places[part], after.places[part]
        low[part] = (after.low[later, 1:] - before.high[earlier, :-1]).min(axis=1)
        high[part] = (after.high[later, 1:] - before.low[earlier, :-1]).max(axis=1)
    return low, high


def change(before: AnyPopulation, after: AnyPopulation, *, confidence: float | None = None) -> Change:
    """The difference between two estimates on the same outcomes: of two rounds, two files, or two groups.

    The two may come from the same clients, from overlapping ones or from others, and from different mechanisms and budgets.

    Args:
        before: what `population`, `reported_population` or a group of `estimate_groups` gave.
        after: the same, from other releases.
        confidence: of every interval; by default that of the estimates.

    Returns:
        The change of every share, after less before, with intervals.

    Raises:
        DiscreetError: for estimates on different outcomes, and for several samples of each client.
    """
    for name, found in (("before", before), ("after", after)):
        if not isinstance(found, ReportedPopulation):
            check_kind(name, found, Population, "pass what population(...) or reported_population(...) gave")
        if found.rows is not None:
            raise DiscreetError(f"{name} has several samples of each client; estimate one round at a time")
    if before.domain.size != after.domain.size or list(before.domain.names) != list(after.domain.names):
        raise DiscreetError(
            f"before and after are on different outcomes ({before.domain.size:,} and {after.domain.size:,}); a change needs the same"
        )
    wanted = min(before.confidence, after.confidence) if confidence is None else confidence
    return Change(before, after, float(OPEN_UNIT.check("confidence", wanted)))
