"""Reports on a short list of blocks, each of which counts so many times, and the best such list for given sums of shares.

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

**The best blocks for given sums of shares** (`optimise_blocks`): linear queries under local privacy [McKenna et al., VLDB 2020].

**Blocks suffice.** A strategy Q[y, x] is a list of rows q_y >= 0 with max q_y <= E min q_y that add up to 1 for every outcome x. In the
uniform population its information on shares is M = k sum_y q_y q_y'/(1'q_y), and sums W of shares have the best unbiased estimate with
covariance W (M^-1 - 11'/k^2) W'. *Some optimal strategy has rows that are multiples of 1 + (E - 1) 1[x in B] alone.* Proof: a row with
least entry m is

    q = integral over t from 0 to (E - 1) m of (1 + (E - 1) 1[q - m > t])/(E - 1) dt,

a sum of such rows. For every h, (h'q)^2/(1'q) is convex in q and homogeneous of degree 1, so it is at most the sum of its values at
these. Hence M grows when rows are split up, and M^-1 falls.   QED

So a strategy is a probability p on blocks with sum_B p_B v_B = 0, and C = sum_B p_B v_B v_B' is its information on contrasts. Let G be the
mean of w w' over the sums w, centred. Then f(p) = tr(G C^-1) is the mean of their variances, and convex in p. It is what is minimised.

**How good any report can be.** Let g = E - 1.
(a) v_B has the squared length g^2 k s(k - s)/(k + g s)^2 for s = |B|, so tr C <= T, the largest of these.
(b) h'C h <= L |h|^2 with L = k (g/(g + 2))^2. Proof: let h add up to 0, let r = q/(1'q) for a row q, and t = 2 E min r/(E + 1). Then
|1 - t/r| <= g/(g + 2), and E_r[h/r] = 0. So (E_r h)^2 = (E_r[h (1 - t/r)])^2 <= (g/(g + 2))^2 E_r h^2, that is
k (h'q)^2/(1'q) <= L sum_x q(x) h(x)^2. Add up over the rows.   QED
By von Neumann's inequality f is at least the minimum of sum_i G_i/c_i over c_i <= L with sum_i c_i <= T, where G_i are the eigenvalues of G:
`sum_variance_lower_bound`. ((a) alone is the bound of McKenna et al.) For single shares subset selection attains (a): nothing is better.

(c) Let p be any strategy, with f and K = C^-1 G C^-1, and l any vector. Let m be the largest v_B'K v_B - l'v_B of all blocks. *Every strategy
has a mean variance of at least f^2/m.* Proof: let C' be its information. tr(K C') is its mean of v_B'K v_B - l'v_B, at most m. For t > 0,
tr(G C'^-1) + t tr(K C') >= 2 sqrt(t) tr((G^1/2 K G^1/2)^1/2) = 2 sqrt(t) f. Take t = (f/m)^2.   QED
Up to 16 outcomes all blocks are gone through once, and (c) says how far those that were found are from the best ones.

**How blocks are found.** The first ones are thresholds of Gaussian vectors with covariance G^(3/4) (if C were near G^(1/2) it would attain
(a)), of random combinations of neighbouring sums, sums themselves, unions of sums, and single outcomes. An interior-point method finds
their p. Then blocks join that lower f most, which a local search by flips of outcomes comes across; those with little weight leave; and so
on, a fixed number of times. (Up to 8 outcomes all blocks are there from the start. Up to 12 all are gone through in each round.) At last p is
rounded to whole numbers of copies, and single outcomes fill up what an outcome lacks. This module decides about precision alone: whole
numbers decide about privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, islice
from typing import Any, ClassVar

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.mechanisms import Reports
from discreet.survey._columns import Integers

Floats = NDArray[np.float64]
MOST_OUTCOMES = 200
MOST_ENTRIES = 10**7  # of a matrix of sums
_ALL_BLOCKS = 8  # outcomes all of whose blocks are looked at
_LISTED, _MOST_BOUNDED = 12, 16  # outcomes all of whose blocks are gone through: in each round, and once for a bound
_LEAST_BLOCKS = 320  # that may be looked at together
_MOST_BLOCKS = 1200  # that are looked at together
_PER_OUTCOME = 8  # blocks that are looked at together
_SINGLE = 1e-4  # of the probability, which single outcomes have: it keeps C regular
_COVER = 1 << 40  # copies that hold an outcome, about
_DUST = 1e-4  # of an average block's probability, below which one is left out
_ROUGH, _FINE = 1e-2, 2e-4  # gaps between f and its least value on given blocks
_STEPS, _LAST_STEPS = 12, 40  # of an interior-point method, at most
_FEW_OUTCOMES, _MANY_ROUNDS, _FEW_ROUNDS = 64, 8, 5  # of exchange, up to so many outcomes and beyond
_FIRST_GAP = 0.5  # with which the interior-point method begins
_SHRINK = 0.15  # of the barrier, after a long step
_MISSING = 1e-6  # of the equations, at most
_POWER = 0.75  # of G, as the covariance of first blocks
_WIDTHS, _LARGE_GAIN = (1, 1, 2, 4), 8.0  # multiples of k/(E + 1) that blocks are wide, where E is large
_FLIPS, _NEIGHBOURS = 8, 3  # of a local search, and blocks that are kept at each of its steps
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
        pairs = list(zip(self.masks, self.copies, strict=True))
        coverage = copies_by_outcome(pairs, self.size)
        if min(coverage) != max(coverage):
            raise DiscreetError(
                f"outcomes are held by {min(coverage):,} to {max(coverage):,} copies; privacy needs one number"
            )
        if max(sum(self.copies), coverage[0] * self.size) > MOST_COPIES:
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
        masks, copies = terms["blocks"], terms["copies"]
        if (
            not isinstance(masks, list)
            or not isinstance(copies, list)
            or not all(type(count) is int for count in copies)
        ):
            raise DiscreetError("blocks is a list of hexadecimal masks, and copies one of whole numbers")
        for mask in masks:
            if not isinstance(mask, str) or not mask or not set(mask) <= set("0123456789abcdef") or mask[0] == "0":
                raise DiscreetError(
                    f"blocks holds {mask!r}, which is no hexadecimal mask such as '3f'; outcome x is bit x"
                )
        return cls(size, tuple(int(mask, 16) for mask in masks), tuple(copies))

    @cached_property
    def block_count(self) -> int:
        """b: the copies of all blocks."""
        return sum(self.copies)

    @cached_property
    def blocks_per_point(self) -> int:
        """r: the copies of the blocks that hold a given outcome."""
        return sum(count for mask, count in zip(self.masks, self.copies, strict=True) if mask & 1)

    @property
    def largest_report(self) -> int:
        """The largest report."""
        return len(self.masks) - 1

    @property
    def distinct_report_count(self) -> int:
        """How many reports there are."""
        return len(self.masks)

    def all_reports(self) -> Reports:
        """All reports, in order."""
        return np.arange(len(self.masks), dtype=np.uint64)

    def rank_counts_of_reports(self, reports: Reports) -> Integers:
        """How many copies each report has."""
        return np.asarray(self._copies_of_each_block[reports.astype(np.int64)])

    @cached_property
    def _copies_of_each_block(self) -> Integers:
        return np.array(self.copies, dtype=np.int64)

    @cached_property
    def membership_matrix(self) -> NDArray[np.bool_]:
        """Which outcomes each block holds, (blocks, outcomes)."""
        width = -(-self.size // 8)
        content = b"".join(mask.to_bytes(width, "little") for mask in self.masks)
        bits = np.frombuffer(content, dtype=np.uint8).reshape(len(self.masks), width)
        return np.unpackbits(bits, axis=1, count=self.size, bitorder="little").astype(np.bool_)

    @cached_property
    def _cumulative_block_copies(self) -> Integers:
        """The sums of copies of the blocks up to each."""
        return np.cumsum(self._copies_of_each_block)

    @cached_property
    def _blocks_and_copies_by_outcome(self) -> tuple[Integers, Integers]:
        """The blocks with outcome 0, those with outcome 1 and so on in one list, and the sums of copies up to each place of it."""
        _, blocks = np.nonzero(self.membership_matrix.T)
        return blocks, np.cumsum(self._copies_of_each_block[blocks])

    def reports_of_ranks(self, rank: Integers) -> Reports:
        """The report of each rank below `block_count`; a block has as many ranks as copies."""
        return np.searchsorted(self._cumulative_block_copies, rank, side="right").astype(np.uint64)

    def reports_of_ranks_holding_outcomes(self, outcomes: Integers, rank: Integers) -> Reports:
        """The report of each rank below `blocks_per_point` among the copies that hold an outcome."""
        blocks, ends = self._blocks_and_copies_by_outcome
        positions = np.searchsorted(ends, outcomes * self.blocks_per_point + rank, side="right")
        return blocks[positions].astype(np.uint64)

    def are_valid_reports(self, reports: Reports) -> NDArray[np.bool_]:
        """Which numbers are reports."""
        return np.asarray(reports < np.uint64(len(self.masks)))

    def holds(self, reports: Reports, outcomes: Integers) -> NDArray[np.bool_]:
        """Whether each report's block holds each outcome; arrays are broadcast."""
        return np.asarray(self.membership_matrix[reports.astype(np.int64), outcomes])

    def likelihood_excess_of_each_block(self, gain: float) -> Floats:
        """v_B at g = `gain`, (blocks, outcomes): the likelihood of a block from an outcome over its mean, less 1."""
        return scaled_likelihood_excesses(self.membership_matrix.astype(np.float64), gain) * (gain / (1.0 + gain))

    def probability_of_each_block(self, gain: float) -> Floats:
        """p_B at g = `gain`, in the uniform population."""
        widths = self.membership_matrix.sum(axis=1)
        return np.asarray(
            self._copies_of_each_block
            * (self.size + gain * widths)
            / (self.size * (self.block_count + gain * self.blocks_per_point))
        )

    def _cholesky_of_information(self, gain: float) -> tuple[Floats, bool]:
        """C with its constant direction, in which it has nothing, filled up; as a Cholesky factor."""
        directions = self.likelihood_excess_of_each_block(gain)
        information = (directions * self.probability_of_each_block(gain)[:, None]).T @ directions
        information += np.trace(information) / self.size**2
        factor: tuple[Floats, bool] = scipy.linalg.cho_factor(information, lower=True)
        return factor

    def unbiased_sum_values_of_reports(self, matrix: Floats, gain: float) -> Floats:
        """The value of each report for each sum of shares, (blocks, sums), whose expectation is the sum less the mean of its row."""
        centred_matrix = centred_rows(matrix)
        coefficients = scipy.linalg.cho_solve(self._cholesky_of_information(gain), centred_matrix.T)
        return np.asarray(self.likelihood_excess_of_each_block(gain) @ coefficients)

    def determines_sums(self, matrix: Floats) -> bool:
        """Whether the blocks determine these sums of shares: their rows, less their means, lie in the span of the blocks."""
        centred_matrix = centred_rows(matrix)
        members = self.membership_matrix - self.membership_matrix.mean(axis=1, keepdims=True)
        weights, *_ = np.linalg.lstsq(members.T, centred_matrix.T, rcond=None)
        residual = np.abs(members.T @ weights - centred_matrix.T).max()
        has_full_rank = np.linalg.matrix_rank(members) == self.size - 1  # what the estimate inverts
        return bool(has_full_rank and residual <= 1e-8 * max(1.0, float(np.abs(centred_matrix).max())))

    def sum_variances_per_client_if_uniform(self, matrix: Floats, gain: float) -> Floats:
        """n times the variance of each sum of shares in the uniform population."""
        centred_matrix = centred_rows(matrix)
        return np.asarray(
            (centred_matrix * scipy.linalg.cho_solve(self._cholesky_of_information(gain), centred_matrix.T).T).sum(
                axis=1
            )
        )


def centred_rows(matrix: Floats) -> Floats:
    """A matrix with the mean of each row taken off."""
    return np.asarray(matrix - matrix.mean(axis=1, keepdims=True))


def scaled_likelihood_excesses(members: Floats, gain: float) -> Floats:
    """v_B E/g of blocks, given as rows of zeros and ones; neither small nor large at any g."""
    size, widths = members.shape[1], members.sum(axis=1, keepdims=True)
    return np.asarray((members - widths / size) * ((1.0 + gain) * size / (size + gain * widths)))


def copies_by_outcome(pairs: Sequence[tuple[int, int]], size: int) -> list[int]:
    """How many copies hold each outcome, for pairs of a mask and its number of copies."""
    return [sum(count for mask, count in pairs if mask >> x & 1) for x in range(size)]


def block_as_bit_mask(members: NDArray[np.bool_]) -> int:
    """A row of zeros and ones as a whole number, bit x for outcome x."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


@dataclass(frozen=True, eq=False)
class OptimisedBlocks:
    """Blocks for given sums of shares.

    Attributes:
        blocks: with their copies.
        mean: n times the mean variance of the sums in the uniform population.
        largest: n times the largest of their variances.
        least: a lower bound on the mean variance, for every report of the same budget.
    """

    blocks: WeightedBlocks
    mean: float
    largest: float
    least: float


def optimise_blocks(matrix: Floats, bound: Fraction) -> OptimisedBlocks:
    """A list of blocks with a small mean variance of the sums in the rows of a matrix, at a rational bound of e^epsilon."""
    return _optimise_blocks_cached(np.ascontiguousarray(matrix, dtype=np.float64).tobytes(), len(matrix), bound)


@lru_cache(maxsize=64)
def _optimise_blocks_cached(content: bytes, sums: int, bound: Fraction) -> OptimisedBlocks:
    matrix, gain = np.frombuffer(content).reshape(sums, -1), float(bound - 1)
    centred_matrix, scale = _centred_unit_rows_and_their_scale(matrix)
    blocks, least = _find_blocks_and_variance_bound(centred_matrix, gain)
    variances = blocks.sum_variances_per_client_if_uniform(centred_matrix, gain) * scale**2
    least = max(least, sum_variance_lower_bound(centred_matrix, gain)) * scale**2
    return OptimisedBlocks(blocks, float(variances.mean()), float(variances.max()), least)


def _centred_unit_rows_and_their_scale(matrix: Floats) -> tuple[Floats, float]:
    """Centred sums, the longest of which has length 1, and its length."""
    largest = float(np.abs(matrix).max()) or 1.0
    centred_matrix = centred_rows(matrix / largest)
    length = float(np.sqrt(np.square(centred_matrix).sum(axis=1).max())) or 1.0
    return centred_matrix / length, largest * length


def sum_variance_lower_bound(matrix: Floats, gain: float) -> float:
    """A lower bound on n times the mean variance of the sums in the uniform population, for every report with E = 1 + gain."""
    centred_matrix, scale = _centred_unit_rows_and_their_scale(matrix)
    size = centred_matrix.shape[1]
    squares = np.linalg.eigvalsh(centred_matrix.T @ centred_matrix / len(centred_matrix))
    roots = np.sqrt(np.maximum(squares - 1e-13 * squares[-1], 0.0))[::-1]  # rounding is not to raise the bound
    widths = np.arange(1, size)
    total = float((gain**2 * size * widths * (size - widths) / np.square(size + gain * widths)).max(initial=0.0))
    limit = size * (gain / (gain + 2.0)) ** 2
    for capped_count in range(size):  # so many of the largest eigenvalues have the largest information
        root_sum, remainder = roots[capped_count:].sum(), total - capped_count * limit
        if root_sum <= 0.0 or remainder <= 0.0 or roots[capped_count] * remainder <= limit * root_sum * (1.0 + 1e-12):
            break
    if root_sum <= 0.0:
        return float(np.square(roots).sum() / limit) * scale**2
    return float(np.square(roots[:capped_count]).sum() / limit + root_sum**2 / max(remainder, 1e-300)) * scale**2


def _find_blocks_and_variance_bound(centred_matrix: Floats, gain: float) -> tuple[WeightedBlocks, float]:
    """The blocks that some rounds find, and the bound (c) where there are few outcomes, else 0."""
    size = centred_matrix.shape[1]
    target = centred_matrix.T @ centred_matrix / len(centred_matrix)
    if not target.any():  # constants
        return _weighted_blocks_from_chances(np.eye(size), np.full(size, 1.0 / size), gain), 0.0
    most = min(max(_PER_OUTCOME * size, _LEAST_BLOCKS), _MOST_BLOCKS)
    blocks = (
        all_blocks_on_outcomes(size) if size <= _ALL_BLOCKS else _candidate_blocks(centred_matrix, target, gain, most)
    )
    chances = np.full(len(blocks), 1.0 / len(blocks))
    rounds = 0 if size <= _ALL_BLOCKS else _MANY_ROUNDS if size <= _FEW_OUTCOMES else _FEW_ROUNDS
    barrier = _FIRST_GAP
    for _ in range(rounds):
        solution = _best_block_chances(blocks, gain, target, chances, barrier, _ROUGH, _STEPS)
        blocks, chances = _swap_weak_blocks_for_worthier(blocks, solution, gain, most)
        barrier = 3.0 * _ROUGH
    solution = _best_block_chances(blocks, gain, target, chances, barrier, _FINE, _LAST_STEPS)
    least = 0.0
    if size <= _MOST_BOUNDED:
        least = (solution.value * (1.0 + gain) / gain) ** 2 / float(
            solution.net_block_worths(all_blocks_on_outcomes(size), gain).max()
        )
    return _weighted_blocks_from_chances(blocks, solution.chances, gain), least


def all_blocks_on_outcomes(size: int) -> Floats:
    """Every block of a few outcomes but the empty and the full one, as rows of zeros and ones."""
    return np.asarray(np.arange(1, (1 << size) - 1)[:, None] >> np.arange(size) & 1, dtype=np.float64)


def _candidate_blocks(centred_matrix: Floats, target: Floats, gain: float, most: int) -> Floats:
    """Thresholds of Gaussian vectors and of random combinations of neighbouring sums, single outcomes, and the sums themselves."""
    size = centred_matrix.shape[1]
    rng = np.random.default_rng(size)  # public and always the same
    values, vectors = np.linalg.eigh(target)
    root = vectors * np.maximum(values, 1e-13 * values[-1]) ** (0.5 * _POWER)
    smooth = 3 * most // 8
    bases = [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(-(-smooth // size))]
    rows = [*(np.concatenate(bases)[:smooth] @ root.T)]
    for _ in range(most // 8):
        count = min(1 << int(rng.integers(0, 8)), len(centred_matrix))
        start = int(rng.integers(0, len(centred_matrix) - count + 1))
        rows.append(rng.standard_normal(count) @ centred_matrix[start : start + count])
    directions, block_lists = np.array(rows), [np.eye(size)]
    multiples = _WIDTHS if gain > _LARGE_GAIN else (1,)
    for index, multiple in enumerate(multiples):
        width = min(max(multiple * size / (gain + 2.0), 1.0), size / 2.0)
        block_lists += [
            _blocks_of_largest_entries(sign * directions[index :: len(multiples)], width) for sign in (1.0, -1.0)
        ]
    sum_blocks = np.unique(centred_matrix > 1e-9, axis=0).astype(np.float64)
    sum_blocks = sum_blocks[(sum_blocks.sum(axis=1) > 0) & (sum_blocks.sum(axis=1) < size)]
    sum_blocks = sum_blocks[
        np.linspace(0, len(sum_blocks) - 1, min(len(sum_blocks), size // 2)).round().astype(np.int64)
    ]
    unions = _unions_of_neighbouring_sums(centred_matrix, gain, most // 4)
    return np.unique(np.concatenate([*block_lists, sum_blocks, 1.0 - sum_blocks, unions]), axis=0)


def _unions_of_neighbouring_sums(centred_matrix: Floats, gain: float, most: int) -> Floats:
    """Unions of neighbouring sums that have no outcome in common, such as all shares of one of several columns."""
    size, runs, is_covered = (
        centred_matrix.shape[1],
        list[list[NDArray[np.bool_]]](),
        np.zeros(centred_matrix.shape[1], dtype=np.bool_),
    )
    for row in centred_matrix > 1e-9:
        if not runs or (is_covered & row).any():
            runs.append([])
            is_covered = np.zeros(size, dtype=np.bool_)
        runs[-1].append(row)
        is_covered = is_covered | row
    long_runs = [np.array(run) for run in runs if 2 < len(run) < size]
    block_lists = [np.zeros((0, size))]
    for run in long_runs[:most]:
        width, share = max(1, round(len(run) / (gain + 2.0))), most // len(long_runs)
        unions = np.array(list(islice(combinations(range(len(run)), width), share + 1)))
        if len(unions) > share:  # random ones, else all of them
            unions = np.argsort(np.random.default_rng(width).random((share, len(run))), axis=1)[:, :width]
        block_lists.append(run[unions].any(axis=1).astype(np.float64))
    candidates = np.concatenate(block_lists)
    return np.asarray(candidates[(candidates.sum(axis=1) > 0.0) & (candidates.sum(axis=1) < size)])


def _blocks_of_largest_entries(rows: Floats, width: float) -> Floats:
    """About so many of the largest entries of each row, as rows of zeros and ones; equal entries stay together."""
    order = np.argsort(-rows, axis=1, kind="stable")
    steps = -np.diff(np.take_along_axis(rows, order, axis=1), axis=1)
    cut = steps > 1e-9 * np.ptp(rows, axis=1, keepdims=True)
    distances = np.where(cut, np.abs(np.log(np.arange(1, rows.shape[1]) / width)), np.inf)
    thresholds = np.take_along_axis(rows, np.take_along_axis(order, distances.argmin(axis=1)[:, None], axis=1), axis=1)
    return np.asarray(rows >= thresholds, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _BlockChances:
    """Probabilities of blocks, and what a further block is worth.

    v'Kv - prices'v for v = v_B E/g is at most `value` for every block if p is optimal, and f falls at this rate less `value` if B joins.
    """

    chances: Floats
    worth: Floats
    prices: Floats
    value: float

    def net_block_worths(self, blocks: Floats, gain: float) -> Floats:
        """v'Kv - prices'v of each block."""
        points = scaled_likelihood_excesses(blocks, gain)
        return np.asarray((points @ self.worth * points).sum(axis=1) - points @ self.prices)


def _best_block_chances(
    blocks: Floats, gain: float, target: Floats, start: Floats, barrier: float, gap: float, steps: int
) -> _BlockChances:
    """min tr(G C^-1) over probabilities of given blocks with sum_B p_B v_B = 0, by a primal-dual interior-point method.

    They are within `gap` of the best, or what so many steps bring; `barrier`: the gap with which to begin.
    """
    points, count, size = scaled_likelihood_excesses(blocks, gain), len(blocks), target.shape[0]
    singles = scaled_likelihood_excesses(np.eye(size), gain)
    fixed_information = _SINGLE / size * singles.T @ singles + np.ones((size, size)) / size
    values, vectors = np.linalg.eigh(target)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    equations = np.concatenate([np.ones((1, count)), points.T])
    aims = np.append(1.0 - _SINGLE, np.zeros(size))
    chances = np.maximum(start, 0.05 / count)
    chances *= (1.0 - _SINGLE) / chances.sum()
    slack, prices, step = np.zeros(0), np.zeros(size), 0.0
    for number in range(steps + 1):
        spread = np.linalg.inv((points * chances[:, None]).T @ points + fixed_information)
        spread_points = points @ spread
        loads = spread_points @ root  # whose squares add up to v'Kv
        value = float((target * spread).sum())
        if not number:
            slack = barrier * value / count / chances
        residuals, duality_gap = aims - equations @ chances, float(chances @ slack)
        if number == steps or (number and duality_gap < 1.5 * gap * value and np.abs(residuals).max() < _MISSING):
            break
        shrink = _SHRINK if step > 0.8 else 0.4 if step > 0.5 else 1.0
        centre = max(shrink * duality_gap, 0.9 * gap * value) / count
        hessian = 2.0 * (spread_points @ points.T) * (loads @ loads.T)
        hessian[np.diag_indices(count)] += slack / chances + 1e-13 * hessian.diagonal().max()
        try:
            move, prices = _solve_newton_equations(
                hessian, np.square(loads).sum(axis=1) + centre / chances, equations, residuals
            )
        except np.linalg.LinAlgError:
            break  # what was found so far is a strategy too
        slack_move = centre / chances - slack - slack / chances * move
        step = min(1.0, 0.95 / max(1e-300, (-move / chances).max(), (-slack_move / slack).max()))
        chances, slack = chances + step * move, slack + step * slack_move
    return _BlockChances(chances, spread @ target @ spread, prices, value)


def _solve_newton_equations(
    hessian: Floats, slope: Floats, equations: Floats, residuals: Floats
) -> tuple[Floats, Floats]:
    """The x with H x + A'y = slope and A x = missing, and y without its first entry."""
    size = len(residuals) - 1
    lower = scipy.linalg.cholesky(hessian, lower=True, check_finite=False, overwrite_a=True)
    solution_columns = scipy.linalg.solve_triangular(
        lower, np.column_stack([equations.T, slope]), lower=True, check_finite=False
    )
    equations_part, slope_part = solution_columns[:, :-1], solution_columns[:, -1]
    system = equations_part.T @ equations_part
    system[1:, 1:] += np.trace(system) / size**2  # v_B has nothing in the constant direction
    system[np.diag_indices(size + 1)] *= 1.0 + 1e-10
    factor = scipy.linalg.cho_factor(system, lower=True, check_finite=False)
    multipliers = scipy.linalg.cho_solve(factor, equations_part.T @ slope_part - residuals, check_finite=False)
    move = scipy.linalg.solve_triangular(
        lower, slope_part - equations_part @ multipliers, lower=True, trans=1, check_finite=False
    )
    return move, multipliers[1:]


def _swap_weak_blocks_for_worthier(
    blocks: Floats, solution: _BlockChances, gain: float, most: int
) -> tuple[Floats, Floats]:
    """The blocks with the largest probabilities, and near them blocks that are worth more than they cost."""
    heaviest = np.argsort(-solution.chances, kind="stable")[: most * 5 // 8]
    heaviest = heaviest[solution.chances[heaviest] > 0.03 / len(blocks)]
    keys = {row.tobytes() for row in blocks[heaviest]}
    size = blocks.shape[1]
    candidates = (
        _worthiest_of_all_blocks(size, solution, gain, most)
        if size <= _LISTED
        else _blocks_by_local_search(blocks[heaviest], solution, gain, most)
    )
    new_rows = [row for row in candidates if row.tobytes() not in keys]
    new_blocks = np.array(new_rows[: most - len(heaviest)]).reshape(-1, blocks.shape[1])
    chances = np.append(solution.chances[heaviest], np.full(len(new_blocks), 0.2 / (len(heaviest) + len(new_blocks))))
    return np.concatenate([blocks[heaviest], new_blocks]), chances


def _worthiest_of_all_blocks(size: int, solution: _BlockChances, gain: float, count: int) -> Floats:
    """Of all blocks of a few outcomes so many that are worth most."""
    blocks = all_blocks_on_outcomes(size)
    worth = solution.net_block_worths(blocks, gain)
    order = np.argsort(-worth, kind="stable")[:count]
    return np.asarray(blocks[order[worth[order] > solution.value]])


def _blocks_by_local_search(blocks: Floats, solution: _BlockChances, gain: float, count: int) -> Floats:
    """About so many blocks that are worth their price, of all those that a local search by flips of single outcomes comes across."""
    size, least = blocks.shape[1], solution.value * (1.0 + _ROUGH)
    lengths = (1.0 + gain) * size / (size + gain * np.arange(size + 1.0))
    lengths[[0, -1]] = 0.0
    rows, widths, diagonal = blocks.copy(), blocks.sum(axis=1).astype(np.int64), solution.worth.diagonal()
    sums = rows @ solution.worth
    squares, costs = (rows * sums).sum(axis=1), rows @ solution.prices
    current_worths = lengths[widths] * (lengths[widths] * squares - costs)
    active, visited_blocks, worths = np.arange(len(rows)), [], []
    for _ in range(_FLIPS):
        sign = 1.0 - 2.0 * rows[active]
        flipped_widths = widths[active, None] + sign.astype(np.int64)
        length = lengths[flipped_widths]
        change = 2.0 * sign * sums[active] + diagonal
        worth = length * (length * (squares[active, None] + change) - (costs[active, None] + sign * solution.prices))
        indices = np.arange(len(active))
        best = np.argpartition(-worth, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS]
        for flip in best.T:
            worthy = worth[indices, flip] > least
            neighbours = rows[active[worthy]]
            neighbours[np.arange(len(neighbours)), flip[worthy]] = (
                1.0 - neighbours[np.arange(len(neighbours)), flip[worthy]]
            )
            visited_blocks.append(np.packbits(neighbours.astype(np.bool_), axis=1))
            worths.append(worth[indices, flip][worthy])
        flip = worth.argmax(axis=1)
        improves = worth[indices, flip] > current_worths[active] + 1e-9 * least
        movers, flip, indices = active[improves], flip[improves], indices[improves]
        squares[movers] += change[indices, flip]
        costs[movers] += sign[indices, flip] * solution.prices[flip]
        widths[movers] = flipped_widths[indices, flip]
        current_worths[movers] = worth[indices, flip]
        sums[movers] += sign[indices, flip, None] * solution.worth[flip]
        rows[movers, flip] = 1.0 - rows[movers, flip]
        active = movers
        if not active.size:
            break
    packed_blocks, first = np.unique(np.concatenate(visited_blocks), axis=0, return_index=True)
    order = np.argsort(-np.concatenate(worths)[first], kind="stable")
    order = order[np.linspace(0, len(order) - 1, min(len(order), 2 * count)).astype(np.int64)]
    return np.unpackbits(packed_blocks[order], axis=1, count=size).astype(np.float64)


def _weighted_blocks_from_chances(blocks: Floats, chances: Floats, gain: float) -> WeightedBlocks:
    """Blocks with whole numbers of copies in about these probabilities; single outcomes fill up what outcomes lack."""
    size = blocks.shape[1]
    masks = [block_as_bit_mask(row) for row in blocks.astype(np.bool_)]
    shares = np.where(chances > _DUST / len(blocks), chances, 0.0) / (size + gain * blocks.sum(axis=1))
    single = _SINGLE / (size * (size + gain))
    scale = _COVER / float((blocks.T @ shares).mean() + single)
    copies = dict.fromkeys((1 << x for x in range(size)), round(single * scale))
    for mask, share in zip(masks, shares.tolist(), strict=True):
        copies[mask] = copies.get(mask, 0) + round(share * scale)
    pairs = sorted((mask, count) for mask, count in copies.items() if count)
    coverage = copies_by_outcome(pairs, size)
    for x in range(size):
        copies[1 << x] += max(coverage) - coverage[x]
    pairs = sorted((mask, count) for mask, count in copies.items() if count)
    return WeightedBlocks(size, tuple(mask for mask, _ in pairs), tuple(count for _, count in pairs))
