"""The choice of blocks: those with the smallest variance, or nearly as good ones that are cheaper to count.

With probability beta a report is a uniform block, else a uniform block that holds a draw x of the client. Write f = w/K and g = (w - 1)/(K -
1). A report holds an outcome that the client does not have with probability p_out = beta f + (1 - beta) g, and one that it has for certain
with p_in = beta f + (1 - beta). Of n clients S_x report a block with x, and (S_x/n - p_out)/(p_in - p_out) estimates the share of x without
bias. The sum of the variances over outcomes is largest for the uniform population, where each is q(1 - q)/(n (p_in - p_out)^2) with q = p_out
+ (p_in - p_out)/k: `share_variance_in_uniform_population`. It is what choices minimise.

All subsets of w of k outcomes (subset selection) with the best w, near k/(e^epsilon + 1), have the smallest one of any epsilon-LDP report
on a record (`discreet.estimation._planning` has the proof; Ye and Barg 2018 to leading order for any population). Masks and ranks are
exactly these. Affine blocks are as good but for the padding, and for how near c/q comes to the best fraction; `choose_blocks` takes the
smallest window c among those within a thousandth of the best, since a report costs c additions to count. Where padding costs more than
four thousandths and blocks are small, subsets are written as ranks instead. Blocks that cannot be counted (more than 20 million points, or
more than 10,000 additions a report) are chosen only where no others are left.

The choice takes sums, products and quotients of doubles alone, so every machine makes the same one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.mechanisms._reports._blocks import (
    LARGEST_COUNT,
    LARGEST_MASK,
    LARGEST_TABLE,
    AffineBlocks,
    BlockFamily,
    MaskedSubsets,
    RankedSubsets,
    SingleOutcomes,
    is_prime,
)

_FEW_RANKED = 4  # members of subsets that are always written as ranks
_MOST_RANKED = 12  # members of subsets that are written as ranks where affine blocks are too far from the best
_TOO_FAR = 1.004  # times the best variance
_LARGEST_RANKED = 2 * 10**6  # outcomes of which a table of binomial coefficients is held
_AS_GOOD = 1.001  # times the smallest variance
_WIDEST = 10**4  # windows of blocks that can be counted
_MOST_POINTS = 2  # times the outcomes, where there is a choice
_PRIMES, _MORE_PRIMES = 6, 60  # that are tried on a line, and in more dimensions
_LEAST_PRIME = 5
_Candidate = tuple[float, int, int, int, int]  # variance, c, K, q, t


@dataclass(frozen=True)
class Chances:
    """The probabilities that a report holds an outcome that the client has for certain (`inside`), or does not have (`outside`)."""

    inside: float
    outside: float

    @property
    def gap(self) -> float:
        """How much more likely a report holds the client's own outcome than another."""
        return self.inside - self.outside

    def share_estimate_variance(self, share: float) -> float:
        """The variance of the estimate of a share, times the number of clients, who are drawn from a population with that share."""
        chance = self.outside + self.gap * share
        return chance * (1.0 - chance) / (self.gap * self.gap)


def own_and_other_outcome_chances(points: int, width: int, growth: float) -> Chances:
    """p_in and p_out of blocks of `width` out of so many points, at e^epsilon = growth."""
    fraction = width / points
    own_chance = (growth - 1.0) * fraction / (1.0 + (growth - 1.0) * fraction)  # 1 - beta
    uniform, other_chance = (1.0 - own_chance) * fraction, (width - 1) / (points - 1)
    return Chances(uniform + own_chance, uniform + own_chance * other_chance)


def share_variance_in_uniform_population(size: int, points: int, width: int, growth: float) -> float:
    """The variance of a share in the uniform population, times the number of clients."""
    return own_and_other_outcome_chances(points, width, growth).share_estimate_variance(1.0 / size)


def best_subset_width_and_variance(size: int, growth: float) -> tuple[int, float]:
    """The width and the variance of the best subset selection on so many outcomes."""
    centre = size / (growth + 1.0)
    widths = {min(max(w, 1), size - 1) for w in range(math.floor(centre) - 1, math.floor(centre) + 4)} | {1}
    return min(
        ((w, share_variance_in_uniform_population(size, size, w, growth)) for w in sorted(widths)),
        key=lambda pair: pair[1],
    )


@lru_cache(maxsize=256)
def affine_primes_and_digit_counts(size: int) -> tuple[tuple[int, int], ...]:
    """(q, t) of affine blocks on at least so many points, and not many more. They do not depend on epsilon."""
    pairs: list[tuple[int, int]] = []
    for digits in range(1, size.bit_length() + 1):
        prime = _integer_root_rounded_up(size, digits)
        if digits > 1 and prime < _LEAST_PRIME:
            break
        count, limit = 0, _PRIMES if digits == 1 else _MORE_PRIMES
        while count < limit and prime ** (digits + 1) <= LARGEST_COUNT:
            if digits > 1 and count and prime**digits > _MOST_POINTS * size:
                break
            if is_prime(prime):
                count += 1
                pairs.append((prime, digits))
            prime += 1
    return tuple(pairs)


def iterate_affine_block_candidates(size: int, growth: float) -> Iterator[_Candidate]:
    """(variance, c, K, q, t) of affine blocks, with windows c on both sides of q/(e^epsilon + 1)."""
    for prime, digits in affine_primes_and_digit_counts(size):
        centre, factor = prime / (growth + 1.0), prime ** (digits - 1)
        for window in {max(math.floor(centre), 1), min(max(math.ceil(centre), 1), prime - 1)}:
            points = factor * prime
            yield (
                share_variance_in_uniform_population(size, points, window * factor, growth),
                window,
                points,
                prime,
                digits,
            )


def choose_blocks(size: int, bound: Fraction) -> BlockFamily:
    """The blocks for so many outcomes and a rational bound of e^epsilon."""
    growth = float(bound)
    if size == 1:
        return SingleOutcomes(1)
    width, best = best_subset_width_and_variance(size, growth)
    if width == 1:
        return SingleOutcomes(size)
    if size <= LARGEST_MASK:
        return MaskedSubsets(size, width)
    can_rank = size <= _LARGEST_RANKED and width <= _MOST_RANKED and math.comb(size, width) <= LARGEST_COUNT
    if can_rank and width <= _FEW_RANKED:
        return RankedSubsets(size, width)
    candidates = list(iterate_affine_block_candidates(size, growth))
    if can_rank and min(candidates)[0] > best * _TOO_FAR:
        return RankedSubsets(size, width)
    choice = _narrowest_of_best_candidates(candidates, best)
    countable = [candidate for candidate in candidates if _can_count_candidate_reports(candidate)]
    if countable and not _can_count_candidate_reports(choice):
        choice = _narrowest_of_best_candidates(countable, best)
    _, window, _, prime, digits = choice
    return AffineBlocks(size, prime, digits, window)


def _narrowest_of_best_candidates(candidates: Sequence[_Candidate], best: float) -> _Candidate:
    """The blocks with the smallest window among those that are as good as the best of them."""
    limit = max(best, min(candidates)[0]) * _AS_GOOD
    return min((candidate for candidate in candidates if candidate[0] <= limit), key=lambda candidate: candidate[1:])


def _can_count_candidate_reports(candidate: _Candidate) -> bool:
    _, window, points, _, _ = candidate
    return points <= LARGEST_TABLE and window <= _WIDEST


def _integer_root_rounded_up(size: int, digits: int) -> int:
    """The least q with q^digits >= size."""
    root: int = round(math.exp(math.log(size) / digits))
    while root**digits >= size:
        root -= 1
    while root**digits < size:
        root += 1
    return max(root, 2)
