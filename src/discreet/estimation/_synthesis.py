"""Synthetic data: samples are some already; weights, or rows drawn anew from the debiased law, make them look like the population.

Only where the average client is identifiable is there a debiased law. Elsewhere the nearest law is that of the samples, and so are these.

Everything here is computed from samples that were released, so it costs no privacy.
"""

import numpy as np
from numpy.typing import NDArray

from discreet.errors import check_count
from discreet.estimation._population import Population

Floats = NDArray[np.float64]


def outcome_weights(found: Population) -> Floats:
    """What a sample of each outcome should count for, so that weighted shares are those of `found.nearest`; they average one.

    An outcome without samples gets none of its share (`unreached_share`).
    """
    frequencies = found.released_shares.estimate
    reached = np.where(frequencies > 0.0, found.nearest, 0.0)
    weights: Floats = np.zeros_like(reached)
    np.divide(reached / reached.sum(), frequencies, out=weights, where=frequencies > 0.0)
    return weights


def unreached_share(found: Population) -> float:
    """The share of the estimated population that lies on outcomes of which there is no sample."""
    return float(found.nearest[found.counts == 0].sum())


def synthetic_counts(found: Population, rows: int) -> NDArray[np.int64]:
    """How many of `rows` rows should have each outcome: shares of `found.nearest`, off by less than one row each."""
    wanted: Floats = found.nearest * (check_count("rows", rows, most=10**9 - 1) / found.nearest.sum())
    whole = np.floor(wanted).astype(np.int64)
    missing = rows - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:missing]] += 1
    return whole


def points_within(found: Population, numbers: NDArray[np.int64], place: Floats) -> Floats:
    """Points of the bins of a continuous family: `place` in [0, 1) says where in each, in shares of the reference.

    A bin may reach far into a tail; the estimate says how much it holds, and the reference how that is spread.
    """
    cells = found if found.finest is None else found.finest
    ends, within = cells.domain.edges, found.domain.edges
    assert ends is not None
    assert within is not None
    upto = np.append(0.0, np.cumsum(cells.reference))
    below = np.interp(within, ends, upto)
    return np.asarray(np.interp(below[numbers] + np.diff(below)[numbers] * place, upto, ends))
