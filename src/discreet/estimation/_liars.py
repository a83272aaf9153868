"""`liars`: the effect of false samples on an estimate. m of n samples are arbitrary: sent in place of honest ones, or added to them.

Let c be the count of an outcome (or an event) among all n samples, c' among the n' >= n - m honest ones. In place of an honest sample a lie
changes c by one at most; added to them it raises n by one, and c by 0 or 1. Of a lies added and m - a sent in place of others therefore
n' = n - a and c - m <= c' <= c + m - a, and

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
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from discreet.errors import DiscreetError, check_count
from discreet.estimation._intervals import Ends, clopper_pearson
from discreet.estimation._inversion import invert_intervals
from discreet.estimation._population import Population, Shares
from discreet.estimation._reports import ReportedPopulation, ReportLiars, report_liars


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
        if self.number == 0:
            return self.found.law
        each = _ends_despite_liars(self.found, self.number, among=1)
        all_low, all_high = _ends_despite_liars(self.found, self.number, among=len(self.found.counts))
        together = np.minimum(all_low, self.found.law.all_low), all_high  # these may have been lowered
        return Shares(self.found.law.estimate, *each, *together)


def liars(found: Population | ReportedPopulation, number: int = 1) -> Liars | ReportLiars:
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


def liars_per_half_interval(found: Population | ReportedPopulation) -> int:
    """How many liars can move a share by half the length of the longest interval."""
    longest = float((found.law.high - found.law.low).max())
    return math.ceil(0.5 * longest / liars(found, 1).shift - 1e-9)


def _ends_despite_liars(found: Population, number: int, among: int) -> Ends:
    """The ends of the hull of all intervals that honest samples can give if `number` of the samples are lies."""
    if found.rows is not None:
        fewer = found.rows.ends(found.confidence, among=among, liars=-number)
        more = found.rows.ends(found.confidence, among=among, liars=number)
    else:
        fewer = clopper_pearson(np.maximum(found.counts - number, 0), found.clients, found.confidence, among=among)
        more = clopper_pearson(
            np.minimum(found.counts + number, found.clients), found.clients, found.confidence, among=among
        )
    low, _ = invert_intervals(found.inversion, found.bounds, found.reference, fewer)
    _, high = invert_intervals(found.inversion, found.bounds, found.reference, more)
    return low, high
