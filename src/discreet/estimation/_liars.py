"""`liars`: the effect of false samples or reports on an estimate.

m of n samples are arbitrary: sent in place of honest ones, or added to them. Let c be the count of an outcome (or an event) among all n
samples, c' among the n' >= n - m honest ones. In place of an honest sample a lie changes c by one at most; added to them it raises n by
one, and c by 0 or 1. Of a lies added and m - a sent in place of others therefore n' = n - a and c - m <= c' <= c + m - a, and

* a share moves by at most m/n: c'/n' <= (c + m - a)/(n - a) <= (c + m)/n as long as c + m <= n, and c'/n' <= 1 otherwise; from below the
  same holds for the complement. So an estimate a mu + s Q moves by at most s m/n: with the linear mechanism by
  m/(gamma n), where without privacy it would be m/n. So do both ends of the band that a projection leaves between two lines, with the
  larger of their slopes: `least` and `most` of an `Inversion` are a maximum and a minimum of lines with these slopes.
* the ends of Clopper and Pearson's intervals grow with the count; and P[Bin(n, q) <= c + a] >= P[Bin(n - a, q) <= c], since the a further
  trials add at most a: hence the upper end of c' among n' is at most that of c + m among n, and the lower one at least that of c - m among
  n. The interval between the two contains the interval of the honest samples alone. It therefore covers the honest clients' average as
  often, however the lies were chosen, even by an attacker who has seen all samples. (Ends move by more than m/n if there are few samples:
  from none of n to one, the upper end of a 95 % interval moves by 1.9/n.) The intervals of an estimate are sharper
  (`discreet.estimation._intervals`) and lie inside these.

If each client released several samples, a liar is a client with all its samples, and n is the number of clients. Their intervals are
Gaffke's, whose bound grows with every client's share and with every client that is added at the top.

**Reports.** A lie changes by at most one how many reports hold x, for every outcome x. So the above holds of these numbers: a share moves by
at most m/((p_in - p_out) n). A report holds many outcomes at once, so the same lie moves all of a block: the estimated share of a set A
moves by at most m (max |A and B| - min |A and B|)/((p_in - p_out) n), over blocks B.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, check_count, check_kind
from discreet.estimation._intervals import Ends, clopper_pearson
from discreet.estimation._population import AnyPopulation, Population, ReportedPopulation, Shares
from discreet.mechanisms import AffineBlocks, BlockFamily

_MOST_CHECKED = 10**7  # pairs of a block and an outcome that are looked at one by one
_TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class Liars:
    """The possible effect of a number of liars among the clients. Made by `liars`.

    Attributes:
        number: how many there are.
        shift: by how much they can have moved the estimate of a share, at most.
        band_shift: by how much they can have moved each end of the range that would be left for it without any noise; the same where that
            is the estimate.
        found: the estimate itself.
    """

    number: int
    shift: float
    band_shift: float
    found: Population = field(repr=False)

    @cached_property
    def law(self) -> Shares:
        """The estimate, with intervals that hold despite the liars."""
        return _law_despite_liars(self.found, self.number)


@dataclass(frozen=True, eq=False)
class ReportLiars:
    """What so many liars among the clients can have done. Made by `report_liars`.

    Attributes:
        number: how many there are.
        shift: by how much they can have moved the estimate of any single share, at most.
        found: the estimate itself.
    """

    number: int
    shift: float
    found: ReportedPopulation = field(repr=False)

    @property
    def band_shift(self) -> float:
        """By how much they can have moved what would be left of a share without noise: the same."""
        return self.shift

    def shift_of(self, outcomes: Iterable[Any]) -> float:
        """By how much they can have moved the estimated share of a set of outcomes together, at most.

        Args:
            outcomes: labels or outcome numbers.

        Returns:
            A bound; the largest shift itself for subsets, and for affine blocks where few enough can be looked at.

        Raises:
            DiscreetError: for outcomes outside the domain.
        """
        chosen = np.unique(self.found.sampler.family.numbers(list(outcomes)))
        least, most = overlaps(self.found.sampler.blocks, chosen)
        return self.shift * (most - least)

    @cached_property
    def law(self) -> Shares:
        """The estimate, with intervals that hold despite them."""
        return _law_despite_liars(self.found, self.number)


def liars(found: AnyPopulation, number: int = 1) -> Liars | ReportLiars:
    """What liars among the clients can have done to an estimate.

    Args:
        found: the estimate.
        number: the number of false samples, in place of honest ones or in addition to them; if clients released several samples, the
            number of such clients.

    Returns:
        The largest shift of a share, and intervals that hold despite the liars.

    Raises:
        DiscreetError: for an invalid number, or one larger than that of the clients.
    """
    if isinstance(found, ReportedPopulation):
        return report_liars(found, number)
    if not isinstance(found, Population):
        raise DiscreetError(f"found = {found!r} is not an estimate; pass the result of population(...)")
    number = check_count("number", number, least=0, most=found.clients, fix="it is how many of the clients may lie")
    inversion = found.inversion
    estimate_slope = (
        inversion.low.released if found.exact else 1.0
    )  # otherwise the estimate is the share among the samples
    slope = max(inversion.low.released, inversion.high.released)
    shift, band_shift = (number * each / found.clients for each in (estimate_slope, slope))
    return Liars(number, shift, band_shift if found.exact else min(band_shift, 1.0), found)


def liars_per_half_interval(found: AnyPopulation) -> int:
    """How many liars can move a share by half the length of the longest interval."""
    longest = float((found.law.high - found.law.low).max())
    return math.ceil(0.5 * longest / liars(found, 1).shift - 1e-9)


def _law_despite_liars(found: AnyPopulation, number: int) -> Shares:
    """The estimate, with intervals that hold if `number` of the clients lie."""
    if number == 0:
        return found.law
    each, (all_low, all_high) = (_ends_despite_liars(found, number, among) for among in (1, len(found.counts)))
    return Shares(
        found.law.estimate, *each, np.minimum(all_low, found.law.all_low), all_high
    )  # these may have been lowered


def _ends_despite_liars(found: AnyPopulation, number: int, among: int) -> Ends:
    """The ends of the hull of all intervals that honest clients can give if `number` of the clients lie."""
    if found.rows is not None:
        fewer, more = (found.rows.ends(found.confidence, among=among, liars=each) for each in (-number, number))
    else:
        changed = np.maximum(found.counts - number, 0), np.minimum(found.counts + number, found.clients)
        fewer, more = (clopper_pearson(each, found.clients, found.confidence, among=among) for each in changed)
    return found.share_intervals(fewer)[0], found.share_intervals(more)[1]


def report_liars(found: ReportedPopulation, number: int = 1) -> ReportLiars:
    """What liars among the clients can have done to an estimate.

    Args:
        found: the estimate.
        number: how many of its reports may be lies, in place of honest ones or in addition to them.

    Returns:
        By how much they can have shifted a share or a set of shares, and intervals that hold despite them.

    Raises:
        DiscreetError: for a number that is none, or larger than that of the clients.
    """
    check_kind("found", found, ReportedPopulation, "pass what reported_population(...) returned")
    number = check_count("number", number, least=0, most=found.clients, fix="it is how many of the clients may lie")
    return ReportLiars(number, number / (found.sampler.chances.gap * found.clients), found)


def overlaps(blocks: BlockFamily, outcomes: NDArray[np.int64]) -> tuple[int, int]:
    """The least and the most of these outcomes that a block holds; for many affine blocks, bounds of them."""
    size, others = len(outcomes), blocks.points - len(outcomes)
    least, most = max(0, blocks.width - others), min(size, blocks.width)
    if not isinstance(blocks, AffineBlocks) or blocks.blocks * size > _MOST_CHECKED or not size:
        return least, most
    found = np.zeros(blocks.blocks, dtype=np.int64)
    reports = blocks.report(np.arange(blocks.blocks))
    for start in range(0, blocks.blocks, _TOGETHER):
        part = reports[start : start + _TOGETHER]
        for outcome in outcomes:
            found[start : start + _TOGETHER] += blocks.holds(part, np.array([outcome]))
    return int(found.min()), int(found.max())
