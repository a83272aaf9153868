"""Families of blocks that a report can name: all subsets of one width, or affine blocks over a prime field.

A family has K points, of which the first k are outcomes and the others padding that no client holds. Each of its b blocks has w points,
each point lies in r blocks, and each pair of points in the same number of blocks (a 2-design). Hence a block that holds x also holds
another given point with probability (w - 1)/(K - 1), whichever the two are, and an estimate that uses this number is unbiased.

* `SingleOutcomes`: the k single outcomes; a report is an outcome number.
* `MaskedSubsets`: all subsets of w of at most 64 outcomes; a report is a mask, bit x for outcome x.
* `RankedSubsets`: all subsets of a few of many outcomes; a report is the rank C(x_1, 1) + ... + C(x_w, w) of x_1 < ... < x_w.
* `AffineBlocks`: q prime, K = q^t, outcomes as vectors of their t digits in base q, the lowest first. A vector a other than 0 and a shift
  s < q make the block {x : (<a, x> + s) mod q < c}. A report is (a - 1) q + s, where a is read as a number in base q. *Balance.*
  For x != y and given a, the shifts that take both into the window number max(c - d, 0) + max(c + d - q, 0) with d = <a, x - y> mod q. As a
  runs over all vectors, d takes each value equally often (K/q times), and a = 0 takes away the same for every pair.   QED

Every report is below 2^62, a mask below 2^64; reports are held as uint64.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError

Integers = NDArray[np.int64]
Reports = NDArray[np.uint64]
LARGEST_MASK = 64  # outcomes that have a bit of their own
LARGEST_COUNT = 1 << 62  # blocks of a family at most
LARGEST_TABLE = 2 * 10**7  # points whose counts are held in memory
_ONE = np.uint64(1)
_MOST_ENTRIES = 10**7  # of tables of binomial coefficients
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # of composite numbers; they suffice below 3.3e24
BLOCK_KINDS: dict[str, tuple[str, ...]] = {"values": (), "masks": ("w",), "ranks": ("w",), "affine": ("q", "t", "c")}


class RankedReports(Protocol):
    """Reports by rank, equally many of which hold each outcome: all that a private draw needs."""

    @property
    def block_count(self) -> int: ...
    @property
    def blocks_per_point(self) -> int: ...
    def reports_of_ranks(self, rank: Integers) -> Reports: ...
    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports: ...


@dataclass(frozen=True)
class BlockFamily(abc.ABC):
    """Blocks of equal width that are balanced over pairs of points."""

    size: int
    name: ClassVar[str]

    @property
    @abc.abstractmethod
    def point_count(self) -> int:
        """K: outcomes and padding."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """w: points of a block."""

    @property
    @abc.abstractmethod
    def block_count(self) -> int:
        """b: how many blocks there are."""

    @property
    def blocks_per_point(self) -> int:
        """r: how many blocks hold a given point."""
        return self.block_count * self.width // self.point_count

    @property
    def largest_report(self) -> int:
        """A number that no report exceeds."""
        return self.block_count - 1

    @property
    def distinct_report_count(self) -> int:
        """How many reports there are: one for each block."""
        return self.block_count

    def all_reports(self) -> Reports:
        """All reports, in order."""
        return np.sort(self.reports_of_ranks(np.arange(self.block_count)))

    def rank_counts_of_reports(self, reports: Reports) -> Integers:
        """How many ranks each report has: one."""
        return np.ones(reports.shape, dtype=np.int64)

    @property
    def blocks_per_pair(self) -> int:
        """lambda: how many blocks hold two given points; the same for every pair."""
        return self.blocks_per_point * (self.width - 1) // (self.point_count - 1) if self.point_count > 1 else 0

    @property
    def chance_of_holding_point(self) -> Fraction:
        """w/K: the probability that a uniform block holds a given point."""
        return Fraction(self.width, self.point_count)

    @property
    def chance_of_holding_second_point(self) -> Fraction:
        """The probability that a uniform block which holds one point holds another given one."""
        return Fraction(self.width - 1, self.point_count - 1) if self.point_count > 1 else Fraction(0)

    def reports_of_ranks(self, rank: Integers) -> Reports:
        """The block of each rank below `block_count`, which is the rank itself unless a report says it otherwise."""
        return rank.astype(np.uint64)

    @abc.abstractmethod
    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        """The block of each rank below `blocks_per_point` among those that hold an outcome."""

    def are_valid_reports(self, reports: Reports) -> NDArray[np.bool_]:
        """Which numbers are reports."""
        return np.asarray(reports < np.uint64(self.block_count))

    @abc.abstractmethod
    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        """Whether each report's block holds each outcome; arrays are broadcast."""

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, int]:
        """What tells these blocks from others of their kind, by the letters of the proofs: q, t and c, or w."""

    def outcomes_of(self, report: int) -> Integers:
        """The outcomes of a block, without padding."""
        outcomes = np.arange(self.size, dtype=np.int64)
        return outcomes[self.holds(np.array([report], dtype=np.uint64), outcomes)]

    def check_reports(self, reports: Any) -> Reports:
        """Reports as uint64, or an error that shows the first number that is not a report."""
        numbers = require_report_numbers(reports, self.report_description)
        valid = self.are_valid_reports(numbers)
        if not valid.all():
            raise DiscreetError(
                f"reports holds {int(numbers[~valid].flat[0])}, which is no report; {self.report_description}"
            )
        return numbers

    @property
    @abc.abstractmethod
    def report_description(self) -> str:
        """What a report is, for messages."""


@final
@dataclass(frozen=True)
class SingleOutcomes(BlockFamily):
    """Single outcomes: k-ary randomised response."""

    name = "values"

    @property
    def point_count(self) -> int:
        return self.size

    @property
    def width(self) -> int:
        return 1

    @property
    def block_count(self) -> int:
        return self.size

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        return outcomes.astype(np.uint64)

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        return np.asarray(reports == outcomes.astype(np.uint64))

    @property
    def parameters(self) -> dict[str, int]:
        return {}

    @property
    def report_description(self) -> str:
        return f"a report is an outcome number below {self.size:,}"


@dataclass(frozen=True)
class _Subsets(BlockFamily):
    """All subsets of `members` outcomes, however they are written."""

    members: int

    @property
    def width(self) -> int:
        return self.members

    @property
    def parameters(self) -> dict[str, int]:
        return {"w": self.width}

    @property
    def point_count(self) -> int:
        return self.size

    @property
    def block_count(self) -> int:
        return math.comb(self.size, self.width)


@final
@dataclass(frozen=True)
class MaskedSubsets(_Subsets):
    """All subsets of `members` outcomes out of at most 64, as bit masks."""

    name = "masks"

    def __post_init__(self) -> None:
        if not 2 <= self.size <= LARGEST_MASK or not 1 <= self.members < self.size:
            raise DiscreetError(f"subsets of {self.members} of {self.size} outcomes are no masks of 64 bits")

    @property
    def largest_report(self) -> int:
        return (1 << self.size) - 1

    @cached_property
    def binomials(self) -> Reports:
        """C(x, i) for x up to 63, by rows, and i up to w; all are below 2^62."""
        rows = [[math.comb(x, i) for i in range(self.members + 1)] for x in range(self.size)]
        return np.array(rows, dtype=np.uint64)

    def _mask_of_rank(self, rank: Integers, members: int, size: int) -> Reports:
        """The subset of a rank: from the largest outcome down, x belongs to it if the rank is at least C(x, members that are left).

        Once none is left the rest is 0 and C(x, 0) = 1. A difference below 0 wraps around, and the smaller of the two is taken.
        """
        members_left, rest = np.full(rank.shape, members), rank.astype(np.uint64)
        below, is_member = np.empty_like(rest), np.empty(rank.shape, dtype=np.bool_)
        mask = np.zeros(rank.shape, dtype=np.uint64)
        for x in range(size - 1, -1, -1):
            np.take(self.binomials[x], members_left, out=below, mode="clip")
            np.greater_equal(rest, below, out=is_member)
            np.subtract(rest, below, out=below)
            np.minimum(rest, below, out=rest)
            members_left -= is_member
            mask += mask
            mask += is_member
        return mask

    def reports_of_ranks(self, rank: Integers) -> Reports:
        return self._mask_of_rank(rank, self.members, self.size)

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        other_mask = self._mask_of_rank(rank, self.members - 1, self.size - 1)
        bit = _ONE << outcomes.astype(np.uint64)
        low_bits = bit - _ONE
        return np.asarray((other_mask & low_bits) | ((other_mask & ~low_bits) << _ONE) | bit)

    def are_valid_reports(self, reports: Reports) -> NDArray[np.bool_]:
        in_range = reports <= np.uint64((1 << self.size) - 1)
        return np.asarray(in_range & (np.bitwise_count(reports) == self.members))

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        return np.asarray((reports >> outcomes.astype(np.uint64)) & _ONE == _ONE)

    @property
    def report_description(self) -> str:
        return f"a report is a mask of {self.members} of {self.size} bits"


@final
@dataclass(frozen=True)
class RankedSubsets(_Subsets):
    """All subsets of `members` out of many outcomes, as ranks in the combinatorial number system."""

    name = "ranks"

    def __post_init__(self) -> None:
        fits = 1 <= self.members < self.size and (self.members + 1) * self.size <= _MOST_ENTRIES
        if not fits or self.block_count > LARGEST_COUNT:
            raise DiscreetError(f"subsets of {self.members} of {self.size:,} outcomes have no rank of 62 bits")

    @cached_property
    def binomials(self) -> Integers:
        """C(x, i) for x up to k, in row i; each row by running sums of the one before."""
        rows = np.zeros((self.members + 1, self.size + 1), dtype=np.int64)
        rows[0] = 1
        for i in range(self.members):
            np.cumsum(rows[i, :-1], out=rows[i + 1, 1:])
        return rows

    def subset_members_of_rank(self, rank: Integers, members: int) -> list[Integers]:
        """The outcomes of each subset, from the largest to the smallest."""
        rest, outcomes = rank.copy(), []
        for i in range(members, 0, -1):
            x = np.searchsorted(self.binomials[i], rest, side="right") - 1
            rest -= self.binomials[i][x]
            outcomes.append(x)
        return outcomes

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        other_members = self.subset_members_of_rank(rank, self.members - 1)
        total = np.zeros(rank.shape, dtype=np.int64)
        above = np.zeros(rank.shape, dtype=np.int64)
        for position, member in zip(range(self.members - 1, 0, -1), other_members, strict=True):
            past = member >= outcomes
            above += past
            shifted_members = member + past
            total += np.where(
                past, self.binomials[position + 1][shifted_members], self.binomials[position][shifted_members]
            )
        order = self.members - above  # the outcome's own place among the members, from the smallest
        for i in range(1, self.members + 1):
            total += np.where(order == i, self.binomials[i][outcomes], 0)
        return total.astype(np.uint64)

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        members = self.subset_members_of_rank(reports.astype(np.int64), self.members)
        return np.asarray(np.any([member == outcomes for member in members], axis=0))

    @property
    def report_description(self) -> str:
        return f"a report is the rank of {self.members} of {self.size:,} outcomes, below {self.block_count:,}"


@final
@dataclass(frozen=True)
class AffineBlocks(BlockFamily):
    """Blocks {x : (<a, x> + s) mod q < c} of vectors over the field of q elements."""

    prime: int
    digits: int
    window: int
    name = "affine"

    def __post_init__(self) -> None:
        q = self.prime
        if not is_prime(q) or not 1 <= self.digits <= LARGEST_COUNT.bit_length() or not 1 <= self.window < q:
            raise DiscreetError(f"q = {q}, t = {self.digits}, c = {self.window}: q is prime, t >= 1 and 1 <= c < q")
        points = self.point_count
        if not 2 <= self.size <= points or points * q > LARGEST_COUNT:
            raise DiscreetError(f"{self.size:,} outcomes on {points:,} points: k <= q^t and q^(t+1) <= 2^62 are needed")

    @property
    def point_count(self) -> int:
        return int(self.prime**self.digits)

    @property
    def width(self) -> int:
        return self.window * self.point_count // self.prime

    @property
    def block_count(self) -> int:
        return (self.point_count - 1) * self.prime

    def inner_product(self, vectors: Integers, outcomes: Integers) -> Integers:
        """<a, x> mod q. Digits are below q <= 2^31 and products below 2^62; each is reduced before it is added."""
        q = self.prime
        if self.digits == 1:
            product = vectors * outcomes
            return np.asarray(product - (product // q) * q)
        total: Any = 0
        for _ in range(self.digits):
            next_a, next_x = vectors // q, outcomes // q
            product = (vectors - next_a * q) * (outcomes - next_x * q)
            total = total + (product - (product // q) * q)
            vectors, outcomes = next_a, next_x
        return np.asarray(total - (total // q) * q)

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        vector = rank // self.window
        offset = rank - vector * self.window
        shift = offset - self.inner_product(vector + 1, outcomes)
        shift += self.prime * (shift < 0)
        return (vector * self.prime + shift).astype(np.uint64)

    def vectors_and_shifts_of_reports(self, reports: Reports) -> tuple[Integers, Integers]:
        """The vector a of each report, as a number, and its shift s."""
        numbers = reports.astype(np.int64)
        vectors = numbers // self.prime
        return vectors + 1, numbers - vectors * self.prime

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        vector, shift = self.vectors_and_shifts_of_reports(reports)
        value = self.inner_product(vector, outcomes) + shift
        return np.asarray(value - self.prime * (value >= self.prime) < self.window)

    @property
    def parameters(self) -> dict[str, int]:
        return {"q": self.prime, "t": self.digits, "c": self.window}

    @property
    def report_description(self) -> str:
        return f"a report is (a - 1) q + s with q = {self.prime:,}, below {self.block_count:,}"


def make_blocks_of_kind(kind: str, size: int, parameters: Mapping[str, int]) -> BlockFamily:
    """The blocks of one of the `BLOCK_KINDS` on so many outcomes, with the parameters that it has; others are refused."""
    match kind:
        case "values":
            return SingleOutcomes(size)
        case "masks":
            return MaskedSubsets(size, parameters["w"])
        case "ranks":
            return RankedSubsets(size, parameters["w"])
        case "affine":
            return AffineBlocks(size, parameters["q"], parameters["t"], parameters["c"])
    raise DiscreetError(f"blocks.kind = {kind!r} is not one of {', '.join(BLOCK_KINDS)}")


def require_report_numbers(reports: Any, layout: str) -> Reports:
    """Whole numbers from 0 to 2^64 - 1 as uint64; an error for others, which ends with `layout`, what a report is."""
    try:  # in a list numpy makes floats of whole numbers on both sides of 2^63
        numbers = np.array(reports, dtype=object) if isinstance(reports, (list, tuple, int)) else np.asarray(reports)
        if numbers.dtype.kind == "O" and numbers.size and all(map(_is_whole_number, numbers.ravel().tolist())):
            numbers = numbers.astype(np.uint64) if min(numbers.flat) >= 0 else numbers.astype(np.int64)
    except (OverflowError, ValueError):
        raise DiscreetError(f"reports holds what is no whole number from 0 to 2^64 - 1; {layout}") from None
    if numbers.size == 0:
        return np.zeros(numbers.shape, dtype=np.uint64)
    if numbers.dtype.kind not in "iu":
        raise DiscreetError(f"reports is not an array of whole numbers; {layout}")
    if numbers.dtype.kind == "i" and bool((numbers < 0).any()):
        raise DiscreetError(f"reports holds {int(numbers.min())}, which is negative; {layout}")
    return numbers.astype(np.uint64)


def _is_whole_number(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, (bool, np.bool_))


@lru_cache(maxsize=1 << 16)
def is_prime(number: int) -> bool:
    """Whether a number below 2^64 is prime, by the strong test with bases that leave no exception there."""
    if number < 2:
        return False
    for small in _WITNESSES:
        if number % small == 0:
            return number == small
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in _WITNESSES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
