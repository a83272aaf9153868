"""Reports on a short list of blocks, each of which counts so many times; the linear estimate from them has no bias.

Block B of k outcomes has t_B copies. A report is drawn like one on a family of equal blocks (`discreet.survey._sampler`): with probability
beta a uniform copy, else a uniform copy of the blocks that hold the client's outcome. Let b be the number of all copies. Each outcome is
held by the same number r of copies, which is checked in whole numbers when the list is made. So

    Q(B | x) = t_B (beta/b + (1 - beta) 1[x in B]/r),

and the proof of privacy there holds word for word: t_B cancels in every ratio.

**Estimates.** Write g = (1 - beta) b/(beta r), s = |B|, p_B for the probability of B in the uniform population, and

    v_B(x) = Q(B | x)/p_B - 1 = (g k/(k + g s)) (1[x in B] - s/k).

Then sum_B p_B v_B = 0, since all x have the same law of sums, and the entries of v_B add up to 0. Let C = sum_B p_B v_B v_B'. For a sum w
of shares let w_0 be w less its mean, and C h = w_0. *The value h'v_B of a report has the expectation w_0(x) from a client with outcome x.*
Proof: sum_B Q(B | x) h'v_B = sum_B p_B (1 + v_B(x)) h'v_B = 0 + (C h)(x) = w_0(x).   QED
In the uniform population its variance is h'C h = w_0'C^-1 w_0. Among all unbiased values of reports this is the smallest one there
(generalised least squares: a value d_B with sum_B p_B d_B (1 + v_B) = w_0 differs from h'v_B by what is uncorrelated with it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.mechanisms import Reports
from discreet.survey._columns import Integers

Floats = NDArray[np.float64]
MOST_COPIES = 1 << 62  # of all blocks together, and of those that hold the outcomes one after another


@dataclass(frozen=True)
class WeightedBlocks:
    """Blocks with their numbers of copies; a report is the place of a block in the list.

    Attributes:
        size: k, how many outcomes there are.
        masks: the blocks, as whole numbers with bit x for outcome x; they increase.
        copies: how often each counts, at least once.

    Raises:
        DiscreetError: for blocks that are none, and outcomes that are held by different numbers of copies.
    """

    size: int
    masks: tuple[int, ...]
    copies: tuple[int, ...]
    name: ClassVar[str] = "weighted"

    def __post_init__(self) -> None:
        full = (1 << self.size) - 1
        increasing = all(first < second for first, second in zip(self.masks, self.masks[1:], strict=False))
        if not self.masks or not increasing or self.masks[0] < 1 or self.masks[-1] > full:
            raise DiscreetError(f"blocks are not increasing masks from 1 to 2^{self.size} - 1; list each block once")
        if len(self.copies) != len(self.masks) or min(self.copies) < 1:
            raise DiscreetError(f"there are {len(self.masks)} blocks; give a whole number of copies from 1 on for each")
        listed = list(zip(self.masks, self.copies, strict=True))
        held = [sum(often for mask, often in listed if mask >> x & 1) for x in range(self.size)]
        if min(held) != max(held):
            raise DiscreetError(f"outcomes are held by {min(held):,} to {max(held):,} copies; privacy needs one number")
        if max(sum(self.copies), held[0] * self.size) > MOST_COPIES:
            raise DiscreetError("the copies of all blocks are more than 2^62; divide them by a common number")

    @property
    def terms(self) -> dict[str, Any]:
        """What a file states of them: blocks as hexadecimal masks, and their copies."""
        return {"blocks": [f"{mask:x}" for mask in self.masks], "copies": list(self.copies)}

    @classmethod
    def from_terms(cls, size: int, terms: Any) -> WeightedBlocks:
        """The blocks of `terms` on so many outcomes."""
        if not isinstance(terms, dict) or set(terms) != {"blocks", "copies"}:
            raise DiscreetError("weighted blocks have the fields blocks and copies, and no others")
        given, often = terms["blocks"], terms["copies"]
        if not isinstance(given, list) or not isinstance(often, list) or not all(type(each) is int for each in often):
            raise DiscreetError("blocks is a list of hexadecimal masks, and copies one of whole numbers")
        for each in given:
            if not isinstance(each, str) or not each or not set(each) <= set("0123456789abcdef") or each[0] == "0":
                raise DiscreetError(
                    f"blocks holds {each!r}, which is no hexadecimal mask such as '3f'; outcome x is bit x"
                )
        return cls(size, tuple(int(each, 16) for each in given), tuple(often))

    @cached_property
    def blocks(self) -> int:
        """b: the copies of all blocks."""
        return sum(self.copies)

    @cached_property
    def holding(self) -> int:
        """r: the copies of the blocks that hold a given outcome."""
        return sum(often for mask, often in zip(self.masks, self.copies, strict=True) if mask & 1)

    @property
    def largest(self) -> int:
        """The largest report."""
        return len(self.masks) - 1

    @property
    def different(self) -> int:
        """How many reports there are."""
        return len(self.masks)

    def every_report(self) -> Reports:
        """All reports, in order."""
        return np.arange(len(self.masks), dtype=np.uint64)

    def copies_of(self, reports: Reports) -> Integers:
        """How many copies each report has."""
        return np.asarray(self._copies[reports.astype(np.int64)])

    @cached_property
    def _copies(self) -> Integers:
        return np.array(self.copies, dtype=np.int64)

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Which outcomes each block holds, (blocks, outcomes)."""
        width = -(-self.size // 8)
        content = b"".join(mask.to_bytes(width, "little") for mask in self.masks)
        bits = np.frombuffer(content, dtype=np.uint8).reshape(len(self.masks), width)
        return np.unpackbits(bits, axis=1, count=self.size, bitorder="little").astype(np.bool_)

    @cached_property
    def _rank_ends(self) -> Integers:
        """The sums of copies of the blocks up to each."""
        return np.cumsum(self._copies)

    @cached_property
    def _copies_by_outcome(self) -> tuple[Integers, Integers]:
        """The blocks with outcome 0, those with outcome 1 and so on in one list, and the sums of copies up to each place of it."""
        _, blocks = np.nonzero(self.members.T)
        return blocks, np.cumsum(self._copies[blocks])

    def report(self, rank: Integers) -> Reports:
        """The report of each rank below `blocks`; a block has as many ranks as copies."""
        return np.searchsorted(self._rank_ends, rank, side="right").astype(np.uint64)

    def report_holding(self, outcomes: Integers, rank: Integers) -> Reports:
        """The report of each rank below `holding` among the copies that hold an outcome."""
        blocks, ends = self._copies_by_outcome
        place = np.searchsorted(ends, outcomes * self.holding + rank, side="right")
        return blocks[place].astype(np.uint64)

    def are_blocks(self, reports: Reports) -> NDArray[np.bool_]:
        """Which numbers are reports."""
        return np.asarray(reports < np.uint64(len(self.masks)))

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        """Whether each report's block holds each outcome; arrays are broadcast."""
        return np.asarray(self.members[reports.astype(np.int64), outcomes])

    def directions(self, gain: float) -> Floats:
        """v_B at g = `gain`, (blocks, outcomes)."""
        return block_directions(self.members.astype(np.float64), gain) * (gain / (1.0 + gain))

    def chances(self, gain: float) -> Floats:
        """p_B at g = `gain`."""
        widths = self.members.sum(axis=1)
        return np.asarray(
            self._copies * (self.size + gain * widths) / (self.size * (self.blocks + gain * self.holding))
        )

    def _information_factor(self, gain: float) -> tuple[Floats, bool]:
        """C with its constant direction, in which it has nothing, filled up; as a Cholesky factor."""
        directions = self.directions(gain)
        information = (directions * self.chances(gain)[:, None]).T @ directions
        information += np.trace(information) / self.size**2
        factor: tuple[Floats, bool] = scipy.linalg.cho_factor(information, lower=True)
        return factor

    def unbiased_values(self, matrix: Floats, gain: float) -> Floats:
        """The value of each report for each sum of shares, (blocks, sums), whose expectation is the sum less the mean of its row."""
        centred = matrix - matrix.mean(axis=1, keepdims=True)
        coefficients = scipy.linalg.cho_solve(self._information_factor(gain), centred.T)
        return np.asarray(self.directions(gain) @ coefficients)

    def tells(self, matrix: Floats) -> bool:
        """Whether the blocks determine these sums of shares: their rows, less their means, lie in the span of the blocks."""
        centred = matrix - matrix.mean(axis=1, keepdims=True)
        members = self.members - self.members.mean(axis=1, keepdims=True)
        weights, *_ = np.linalg.lstsq(members.T, centred.T, rcond=None)
        left = np.abs(members.T @ weights - centred.T).max()
        full = np.linalg.matrix_rank(members) == self.size - 1  # what the estimate inverts
        return bool(full and left <= 1e-8 * max(1.0, float(np.abs(centred).max())))

    def variances(self, matrix: Floats, gain: float) -> Floats:
        """n times the variance of each sum of shares in the uniform population."""
        centred = matrix - matrix.mean(axis=1, keepdims=True)
        return np.asarray((centred * scipy.linalg.cho_solve(self._information_factor(gain), centred.T).T).sum(axis=1))


def block_directions(members: Floats, gain: float) -> Floats:
    """v_B E/g of blocks, given as rows of zeros and ones; neither small nor large at any g."""
    size, widths = members.shape[1], members.sum(axis=1, keepdims=True)
    return np.asarray((members - widths / size) * ((1.0 + gain) * size / (size + gain * widths)))


def mask_of(members: NDArray[np.bool_]) -> int:
    """A row of zeros and ones as a whole number, bit x for outcome x."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")
