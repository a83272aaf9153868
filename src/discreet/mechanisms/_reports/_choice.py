"""Which blocks a report names: those with the smallest variance, or as good as that and cheaper to count.

With probability beta a report is a uniform block, else a uniform block that holds a draw x of the client. Write f = w/K and
g = (w - 1)/(K - 1). An outcome that is no client's is in a report with probability p_out = beta f + (1 - beta) g, one that is every
client's with p_in = beta f + (1 - beta). Of n clients S_x report a block with x, and (S_x/n - p_out)/(p_in - p_out) estimates the share
of x without bias. The sum of the variances over outcomes is largest for the uniform population, where each is q(1 - q)/(n (p_in - p_out)^2)
with q = p_out + (p_in - p_out)/k: `worst_variance`. It is what choices minimise.

All subsets of w of k outcomes (subset selection) with the best w, near k/(e^epsilon + 1), have the smallest one to leading order of any
epsilon-LDP report [Ye and Barg 2018]. Masks and ranks are exactly these. Affine blocks are as good but for the padding, and for how near
c/q comes to the best fraction; `choose_blocks` takes the smallest window c among those within a thousandth of the best, since a report
costs c additions to count. Where padding costs more than four thousandths and blocks are small, subsets are written as ranks instead.

The choice takes sums, products and quotients of doubles alone, so every machine makes the same one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.mechanisms._reports._blocks import (
    LARGEST_COUNT,
    LARGEST_MASK,
    AffineBlocks,
    BlockFamily,
    MaskedSubsets,
    RankedSubsets,
    Values,
    is_prime,
)

_FEW_RANKED, _MOST_RANKED = (
    4,
    12,
)  # members of subsets that are written as ranks: always, and where affine blocks are too far from the best
_TOO_FAR = 1.004  # times the best variance
_LARGEST_RANKED = 2 * 10**6  # outcomes of which a table of binomial coefficients is held
_AS_GOOD = 1.001  # times the smallest variance
_MOST_POINTS = 2  # times the outcomes, where there is a choice
_PRIMES, _MORE_PRIMES = 6, 60  # that are tried on a line, and in more dimensions
_LEAST_PRIME = 5


@dataclass(frozen=True)
class Chances:
    """What a report says of an outcome: the probability that it holds one that the client has for certain, or has not at all."""

    inside: float
    outside: float

    @property
    def gap(self) -> float:
        """How much more likely a report holds the client's own outcome than another."""
        return self.inside - self.outside

    def variance(self, share: float) -> float:
        """Of the estimate of a share, times the number of clients, who are drawn from a population with that share."""
        held = self.outside + self.gap * share
        return held * (1.0 - held) / (self.gap * self.gap)


def chances(points: int, width: int, growth: float) -> Chances:
    """p_in and p_out of blocks of so many out of so many points, at e^epsilon."""
    fraction = width / points
    own = (growth - 1.0) * fraction / (1.0 + (growth - 1.0) * fraction)  # 1 - beta
    uniform, together = (1.0 - own) * fraction, (width - 1) / (points - 1)
    return Chances(uniform + own, uniform + own * together)


def worst_variance(size: int, points: int, width: int, growth: float) -> float:
    """The variance of a share in the uniform population, times the number of clients."""
    return chances(points, width, growth).variance(1.0 / size)


def best_subset(size: int, growth: float) -> tuple[int, float]:
    """The width and the variance of the best subset selection on so many outcomes."""
    near = size / (growth + 1.0)
    widths = {min(max(w, 1), size - 1) for w in range(math.floor(near) - 1, math.floor(near) + 4)} | {1}
    return min(((w, worst_variance(size, size, w, growth)) for w in sorted(widths)), key=lambda each: each[1])


def affine_candidates(size: int, growth: float) -> Iterator[AffineBlocks]:
    """Affine blocks on at least so many points, with windows on both sides of q/(e^epsilon + 1)."""
    for digits in range(1, size.bit_length() + 1):
        prime = _root_up(size, digits)
        if digits > 1 and prime < _LEAST_PRIME:
            return
        tried, most = 0, _PRIMES if digits == 1 else _MORE_PRIMES
        while tried < most and prime ** (digits + 1) <= LARGEST_COUNT:
            if digits > 1 and tried and prime**digits > _MOST_POINTS * size:
                break
            if is_prime(prime):
                tried += 1
                near = prime / (growth + 1.0)
                for window in {max(math.floor(near), 1), min(max(math.ceil(near), 1), prime - 1)}:
                    yield AffineBlocks(size, prime, digits, window)
            prime += 1


def choose_blocks(size: int, bound: Fraction) -> BlockFamily:
    """The blocks for so many outcomes and a rational bound of e^epsilon."""
    growth = float(bound)
    if size == 1:
        return Values(1)
    width, best = best_subset(size, growth)
    if width == 1:
        return Values(size)
    if size <= LARGEST_MASK:
        return MaskedSubsets(size, width)
    ranks = size <= _LARGEST_RANKED and width <= _MOST_RANKED and math.comb(size, width) <= LARGEST_COUNT
    if ranks and width <= _FEW_RANKED:
        return RankedSubsets(size, width)
    found = [(worst_variance(size, each.points, each.width, growth), each) for each in affine_candidates(size, growth)]
    least = min(variance for variance, _ in found)
    if ranks and least > best * _TOO_FAR:
        return RankedSubsets(size, width)
    enough = max(best, least) * _AS_GOOD
    return min((each for variance, each in found if variance <= enough), key=lambda each: (each.window, each.points))


def _root_up(size: int, digits: int) -> int:
    """The least q with q^digits >= size."""
    root: int = round(math.exp(math.log(size) / digits))
    while root**digits >= size:
        root -= 1
    while root**digits < size:
        root += 1
    return max(root, 2)
