"""Laws as arrays: shape (..., k), non-negative, finite, each row summing to one within `SUM_TOLERANCE`.

Counts are welcome where counts are declared (`family.law(counts=...)`); a row passed as a law must be one.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError

SUM_TOLERANCE = 1e-9


def as_floats(values: ArrayLike, name: str, size: int | None = None) -> NDArray[np.float64]:
    """The values as a contiguous float64 array whose last axis has length `size`; contents are not looked at."""
    if isinstance(values, np.ma.MaskedArray):
        raise DiscreetError(f"{name} is a masked array, whose hidden values would be used; fill it first")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
        array = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DiscreetError(f"{name} is not an array of numbers with rows of equal length") from None
    if size is not None and (array.ndim == 0 or array.shape[-1] != size):
        shape = f"has shape {array.shape}" if array.ndim else "is a single number"
        raise DiscreetError(f"{name} {shape}; its last axis must have one entry for each of the {size} outcomes")
    return array


def is_law(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """For each row of an (n, k) array, whether it is a law."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum(axis=1)
        return np.asarray((np.abs(total - 1.0) <= SUM_TOLERANCE) & (rows.min(axis=1) >= 0.0))


def checked_laws(p: ArrayLike, size: int) -> NDArray[np.float64]:
    """p as laws (..., size), or the error that says which row is none and why."""
    laws = as_floats(p, "p", size)
    rows = laws.reshape(-1, size)
    good = is_law(rows)
    if not good.all():
        refuse_bad_law(rows, int(np.argmin(good)))
    return laws


def refuse_bad_law(rows: NDArray[np.float64], row: int, name: str = "p") -> None:
    """Raise the error that says what is wrong with one row of an (n, k) array of would-be laws."""
    law = rows[row]
    where = name if len(rows) == 1 else f"{name}[{row}]"
    refuse_bad_entries(law, where)
    with np.errstate(over="ignore"):
        total = law.sum()
    raise DiscreetError(
        f"{where} sums to {total:.12g}, not to 1 (within {SUM_TOLERANCE:g}); "
        "normalise it, or declare counts with family.law(counts=...)"
    )


def refuse_bad_entries(row: NDArray[np.float64], where: str) -> None:
    """Raise for the first NaN, infinite or negative entry of a row."""
    for problem, mask in (("NaN", np.isnan(row)), ("infinite", np.isinf(row)), ("negative", row < 0)):
        if mask.any():
            place = int(np.argmax(mask))
            raise DiscreetError(f"{where}[{place}] = {row[place]:g} is {problem}; entries are finite and at least 0")


def law_of_counts(counts: ArrayLike, size: int) -> NDArray[np.float64]:
    """Relative frequencies count/total of counts (..., size); every client needs at least one record.

    Whole numbers are added up exactly (below 2^53), so the law does not depend on their order or on zeros in between.
    """
    array = as_floats(counts, "counts", size)
    rows = array.reshape(-1, size)
    if not ((rows >= 0).all() and np.isfinite(rows).all()):
        bad = int(np.argmin(((rows >= 0) & np.isfinite(rows)).all(axis=1)))
        refuse_bad_entries(rows[bad], "counts" if len(rows) == 1 else f"counts[{bad}]")
    largest = rows.max(axis=1, keepdims=True)
    if not (largest > 0).all():
        which = "counts is" if len(rows) == 1 else f"counts[{int(np.argmin(largest[:, 0]))}] is"
        raise DiscreetError(
            f"{which} all zero: a client without records has no law; leave it out, or let it release from the reference"
        )
    with np.errstate(over="ignore"):
        total = rows.sum(axis=1, keepdims=True)
    huge = np.isinf(total[:, 0])
    if huge.any():  # the sum overflows, though every count is finite
        rows = np.where(huge[:, None], rows / largest, rows)
        total = rows.sum(axis=1, keepdims=True)
    return np.asarray((rows / total).reshape(array.shape))
