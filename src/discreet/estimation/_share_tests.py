"""Sharper intervals of shares: a share is in the interval where an exact test of it accepts the count that was seen.

X of n samples fell on an outcome. Write U_x(q) = P[Bin(n, q) >= x] and L_y(q) = P[Bin(n, q) <= y].

**Identifiable shares** (`exact_ends`). q is rejected where the smaller tail of x, together with the largest opposite tail that is no
larger, has probability at most a = 1 - confidence [Blaker 2000]. The interval is the hull of the q that are not. It lies inside
Clopper and Pearson's, who double the smaller tail.

**Shares between two lines** (`band_ends`). A share P is compatible with every released share q from q_H(P) to q_L(P)
(`discreet.estimation._inversion`), so a test of P is one of q_H <= q <= q_L. Reject in {U_x(q_L) <= t} and {L_y(q_H) <= t}, with t as
large as the level allows: the probability of the two under q is U_x(q) + L_y(q), which falls and then grows with q (its derivative is n
times the difference of two binomial probabilities, whose ratio grows with q), so its largest value over [q_H, q_L] is at an end. Where
the lines are far apart, one of the two tails is next to nothing at either end, and the other may take all of a instead of half of it.

**They hold for the very clients at hand**, whose samples are independent coins with unequal chances of mean q. *Proof.* Both tests accept
whole numbers from lo to hi. If lo <= n q <= hi, a sum of such coins is accepted at least as often as a binomial one [Hoeffding 1956,
Thm 5]. For a < 1/4 and 1 <= n q <= n - 1 that is so: P[Bin >= n q] and P[Bin <= n q] are more than 1/4 [Greenberg and Mohri 2014], so
the numbers next to n q are accepted. If n q < 1, one sample is accepted unless n q <= a, since U_1 is taken as n q, which is no less than
the chance of any sample at all (Markov); and likewise if n (1 - q) < 1, with the complement.   QED
For a confidence of 3/4 or less Clopper and Pearson's intervals are given.

With more than `LARGEST_STEPPED` samples of an outcome and of its complement, Blaker's interval is shorter by one or two hundredths, and
Clopper and Pearson's is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.audit._bounds import least_probability
from discreet.estimation._intervals import Ends, clopper_pearson
from discreet.estimation._inversion import Inversion

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LARGEST_STEPPED = 100  # samples of an outcome up to which its tails are followed step by step
_LARGEST_LEVEL = 0.25  # of a test whose intervals hold for unequal coins
_MOST_PAIRS = 1 << 13  # counts and masses whose bands are worked out one by one
_MOST_SAMPLES = 10**9  # up to which binomial tails are followed
_STEPS, _HALVINGS = 14, 9
_OUTWARDS = 1e-12  # by how much an end is moved outwards, relative to itself


def exact_ends(counts: Integers, samples: int, confidence: float, *, among: int = 1) -> Ends:
    """The ends of intervals of released shares, from so many of all samples; `among`: so many intervals share what the confidence leaves."""
    ends = clopper_pearson(counts, samples, confidence, among=among)
    level = (1.0 - confidence) / among
    if level >= _LARGEST_LEVEL or samples > _MOST_SAMPLES:
        return ends
    distinct, first, places = np.unique(counts, return_index=True, return_inverse=True)
    low, high = (end.ravel()[first] for end in ends)
    few = np.minimum(distinct, samples - distinct) <= LARGEST_STEPPED
    stepped = distinct[few].astype(np.float64)
    low[few] = np.maximum(low[few], _stepped_ends(stepped, samples, level))
    high[few] = np.minimum(high[few], 1.0 - _stepped_ends(samples - stepped, samples, level))
    return low[places].reshape(counts.shape), high[places].reshape(counts.shape)


def band_ends(
    counts: Integers, samples: int, confidence: float, inversion: Inversion, masses: Floats, *, among: int = 1
) -> Ends:
    """Released shares whose lines are the ends of intervals of true shares: of outcomes, or events, with these reference masses.

    Where the two lines are one they are the ends of intervals of released shares.
    """
    if inversion.exact:
        return exact_ends(counts, samples, confidence, among=among)
    ends = clopper_pearson(counts, samples, confidence, among=among)
    level = (1.0 - confidence) / among
    pairs, first, places = np.unique(
        np.stack([counts.astype(np.float64), masses], axis=1), axis=0, return_index=True, return_inverse=True
    )
    if level >= _LARGEST_LEVEL or len(pairs) > _MOST_PAIRS or samples > _MOST_SAMPLES:
        return ends
    low, high = ends[0][first], ends[1][first]
    seen, mu = pairs[:, 0], pairs[:, 1]
    low = np.maximum(low, _one_sided_ends(seen, samples, level, inversion, mu))
    high = np.minimum(high, 1.0 - _one_sided_ends(samples - seen, samples, level, inversion, 1.0 - mu))
    return low[places.ravel()], high[places.ravel()]


def _at_least(counts: Floats, samples: int, q: Floats) -> Floats:
    """U_x(q), with n q in place of U_1(q)."""
    some = np.maximum(counts, 1.0)
    exact = scipy.special.betainc(some, samples - some + 1.0, q)
    return np.where(counts == 1.0, np.minimum(samples * q, 1.0), np.where(counts == 0.0, 1.0, exact))


def _at_most(counts: Floats, samples: int, q: Floats) -> Floats:
    """L_y(q), of real y too; 0 below 0."""
    some = np.clip(counts, 0.0, samples - 1.0)
    exact = scipy.special.betaincc(some + 1.0, samples - some, q)
    return np.where(counts < 0.0, 0.0, np.where(counts >= samples, 1.0, exact))


def _least_share(counts: Floats, samples: int, tail: float) -> Floats:
    """The q with U_x(q) = tail."""
    return np.where(counts == 1.0, tail / samples, least_probability(counts, samples, tail))


def _stepped_ends(counts: Floats, samples: int, level: float) -> Floats:
    """inf {q : q is not rejected} of each count."""
    known = _known_ends(samples, level)
    new = np.array([count for count in counts.tolist() if count not in known])
    if new.size:
        known.update(zip(new.tolist(), _follow_ends(new, samples, level).tolist(), strict=True))
    return np.array([known[count] for count in counts.tolist()])


@functools.lru_cache(maxsize=64)
def _known_ends(samples: int, level: float) -> dict[float, float]:
    """Ends that were found before, by their counts: both ends, and estimates of the same size, ask for many again."""
    return {}


def _follow_ends(counts: Floats, samples: int, level: float) -> Floats:
    """inf {q : q is not rejected}, followed from where one tail is half of the level to where it is all of it.

    In between the opposite tail is that of a y which only grows with q. For each y the sum of the two tails falls and then grows, so it
    passes the level at the beginning of its stretch, or once.
    """
    found = np.zeros_like(counts)
    left, last = _least_share(counts, samples, 0.5 * level), _least_share(counts, samples, level)
    opposite = np.floor(scipy.special.bdtrik(0.5 * level, samples, np.clip(left, 1e-300, 1.0)))
    opposite = np.where(np.isfinite(opposite), opposite, -1.0) + 1.0
    for _ in range(3):  # the quantile may be off by one where it is a step
        opposite -= _at_most(opposite, samples, left) > _at_least(counts, samples, left)
    opposite = np.maximum(opposite, -1.0)
    left_over = np.flatnonzero(counts > 0.0)
    for _ in range(LARGEST_STEPPED):  # far more than there are steps; an end that is not found is Clopper and Pearson's
        if not left_over.size:
            break
        some = _Tails(counts[left_over], samples, opposite[left_over])
        begins = some.both(left[left_over]) > level
        found[left_over[begins]] = left[left_over[begins]]
        left_over = left_over[~begins]
        some = _Tails(counts[left_over], samples, opposite[left_over])
        begin, end = left[left_over], last[left_over]
        right = _root(some.next_step, begin, end)
        ends = some.both(right) > level
        crossed = _Tails(counts[left_over[ends]], samples, opposite[left_over[ends]])
        found[left_over] = end
        found[left_over[ends]] = _root(crossed.past(level), begin[ends], right[ends])
        left[left_over], opposite[left_over] = right, opposite[left_over] + 1.0
        left_over = left_over[~(ends | (right >= end))]
    found[left_over] = 0.0
    return np.asarray(found * (1.0 - _OUTWARDS))


@dataclass(frozen=True)
class _Tails:
    """The tail of each count, and the opposite one that goes with it."""

    counts: Floats
    samples: int
    opposite: Floats

    def both(self, q: Floats) -> Floats:
        """The probability of the two."""
        return _at_least(self.counts, self.samples, q) + _at_most(self.opposite, self.samples, q)

    def past(self, level: float) -> Callable[[Floats], Floats]:
        """How far the two are past a level."""
        return lambda q: self.both(q) - level

    def next_step(self, q: Floats) -> Floats:
        """From 0 on, the opposite tail is a longer one."""
        return _at_least(self.counts, self.samples, q) - _at_most(self.opposite + 1.0, self.samples, q)


def _root(values: Callable[[Floats], Floats], left: Floats, right: Floats) -> Floats:
    """Where a function that is below 0 and then above it passes 0, or a place a little left of it; `right` where it stays below.

    By regula falsi in the form of Illinois: an end that stays counts half.
    """
    low, high, at_low, at_high = left, right, values(left), values(right)
    stays = at_high <= 0.0
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            part = at_low / (at_low - at_high)
        middle = low + (high - low) * np.where(np.isfinite(part), np.clip(part, 0.0, 1.0), 0.5)
        value = values(middle)
        below = value <= 0.0
        at_high = np.where(below, 0.5 * at_high, value)
        at_low = np.where(below, value, 0.5 * at_low)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(stays, right, low)


def _one_sided_ends(counts: Floats, samples: int, level: float, inversion: Inversion, mu: Floats) -> Floats:
    """The least q_L whose share is not rejected: between where one tail is half of the level, and where it is all of it."""
    low, high = _least_share(counts, samples, 0.5 * level), _least_share(counts, samples, level)
    for _ in range(_HALVINGS):  # the lower end stays a share that is rejected
        q = 0.5 * (low + high)
        tail, other = _at_least(counts, samples, q), np.clip(lowest_compatible(inversion, mu, q), 0.0, 1.0)
        nothing = _at_most(np.zeros_like(q), samples, other) > tail  # no count is so few that it would be rejected
        opposite = np.where(nothing, -1.0, _past_quantile(samples, other, tail))
        known = nothing | (_at_most(opposite, samples, other) >= tail)
        both = np.maximum(tail + _at_most(opposite, samples, q), tail + _at_least(counts, samples, other))
        rejected = np.where(known, both, 2.0 * tail) <= level
        low, high = np.where(rejected, q, low), np.where(rejected, high, q)
    return np.asarray(np.where(counts == 0.0, 0.0, low * (1.0 - _OUTWARDS)))


def _past_quantile(samples: int, q: Floats, tail: Floats) -> Floats:
    """A real y with L_y(q) a little above the tail, by the normal law and its first correction; whoever asks checks that it is."""
    spread = np.sqrt(samples * q * (1.0 - q))
    z = scipy.special.ndtri(np.clip(tail, 1e-300, 0.5))
    return np.asarray(np.maximum(samples * q + z * spread + (1.0 - 2.0 * q) * (z * z - 1.0) / 6.0, 0.0))


def lowest_compatible(inversion: Inversion, mu: Floats, q: Floats) -> Floats:
    """q_H(P) for the share P = least(mu, q): the least released share under which a true share may be that large."""
    share, lines = inversion.least(mu, q), (inversion.high, inversion.low)
    totals = (0.0, 1.0 - inversion.low.total)
    found = [
        (share - total - line.reference * mu) / line.released
        for line, total in zip(lines, totals, strict=True)
        if line.released > 0.0
    ]
    return np.asarray(np.minimum(np.max(found, axis=0), q))
