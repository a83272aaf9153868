"""Equal records of a client counted together, without rounding: what they add up to stays the same to the last bit.

Whole numbers below 2^53 add up exactly. Weights of one power of two add up as whole numbers of 53 bits, in two halves that leave room for
2^26 of them.
"""

import numpy as np
import polars as pl

_EXACT = 2.0**53  # below this, whole numbers add up without rounding
_HALF = 26  # bits


def combine_equal_rows(records: pl.DataFrame) -> pl.DataFrame:
    """Records (client, outcome, count) with the counts of equal ones added up; as they are, where that would round."""
    counts = records["count"].to_numpy()
    if (counts == np.floor(counts)).all() and float(counts.sum(dtype=np.float64)) < _EXACT:
        return records.group_by("client", "outcome").agg(pl.col("count").sum())
    if counts.dtype != np.float64 or counts.size >= 1 << _HALF:
        return records
    digits, powers = np.frexp(counts)
    whole = (digits * _EXACT).astype(np.int64)
    halves = {"high": whole >> _HALF, "low": whole & ((1 << _HALF) - 1)}
    split = records.select("client", "outcome").with_columns(power=powers, **halves)
    sums = split.group_by("client", "outcome", "power").agg(pl.col(*halves).sum())
    parts = []
    for half, shift in (("high", _HALF - 53), ("low", -53)):
        weights = np.ldexp(sums[half].to_numpy().astype(np.float64), sums["power"].to_numpy() + shift)
        parts.append(sums.select("client", "outcome").with_columns(count=weights))
    return pl.concat(parts)
