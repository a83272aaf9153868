"""Distributions as arrays: shape (..., k), non-negative, finite, each row summing to one within `SUM_TOLERANCE`.

A row passed as a distribution must be one. Declare counts and logits with `family.law(counts=...)` and `family.law(logits=...)`.

A row that was normalised in float32 or float16 does not sum to one in float64. Normalising k numbers with unit roundoff u, added up in any
order, leaves a sum within (k + 4) u of one to first order. This error is accepted in such arrays, up to `_MOST_ROUNDING`, and they are
normalised again. Rows of float64 must be within `SUM_TOLERANCE`.

The message about a client outside its family is the same for outcomes, cells and points and for every mechanism. A mechanism that projects
warns: the release is equally private, since the box does not depend on the client, and only the bound on that client's utility is lost. A
mechanism that mixes raises an error: its output would not be linear in p, and inversion relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import DiscreetError, OutsideFamilyError, OutsideFamilyWarning, warn_caller

if TYPE_CHECKING:
    from discreet.families._band import Bounds
    from discreet.families._finite import FiniteFamily

Floats = NDArray[np.float64]

SUM_TOLERANCE = 1e-9
_HINTS = {  # for what other packages compute with
    "torch": "; for a tensor that records gradients use discreet.torch.output, or pass p.detach()",
    **dict.fromkeys(
        ("jax", "jaxlib"),
        "; inside a JAX transformation use discreet.projection.jax.output_function(sampler), and release outside of it",
    ),
}
_MOST_ROUNDING = 0.01  # of a sum: a larger error is a mistake in any precision


def as_floats(values: ArrayLike, name: str, size: int | None = None) -> NDArray[np.float64]:
    """The values as a contiguous float64 array whose last axis has length `size`; contents are not checked."""
    return _as_float64_rows(_as_numbers(values, name), name, size)


def as_laws(values: ArrayLike, name: str, size: int) -> NDArray[np.float64]:
    """As `as_floats`, but rows of float32 or float16 whose own rounding explains their sum are normalised; other rows are unchanged."""
    given = _as_numbers(values, name)
    laws = _as_float64_rows(given, name, size)
    if given.dtype.kind != "f" or given.dtype.itemsize >= 8:
        return laws
    return renormalise_laws(laws, float(np.finfo(given.dtype).eps))


def sum_rounding(size: int, spacing: float) -> float:
    """The largest distance from one of the sum of `size` numbers normalised in floats with this spacing at one."""
    return min((size + 4) * spacing / 2, _MOST_ROUNDING)


def renormalise_laws(laws: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """The rows (..., k); those whose sum is explained by floats with this spacing at one are normalised again, others unchanged."""
    rounding = sum_rounding(laws.shape[-1], spacing)
    with np.errstate(invalid="ignore", over="ignore"):
        total = laws.sum(axis=-1, keepdims=True)
        off = np.abs(total - 1.0)
        rounded = (off > SUM_TOLERANCE) & (off <= rounding) & (laws.min(axis=-1, keepdims=True) >= 0.0)
        return np.where(rounded, laws / np.where(rounded, total, 1.0), laws)


def _as_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """The values as an array of their own number type."""
    if isinstance(values, np.ma.MaskedArray):
        raise DiscreetError(f"{name} is a masked array, whose hidden values would be used; fill it first")
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor that still records gradients
        kind = type(values).__module__.partition(".")[0]
        raise DiscreetError(
            f"{name} is not an array of numbers with rows of equal length{_HINTS.get(kind, '')}"
        ) from None
    return array


def _as_float64_rows(array: NDArray[Any], name: str, size: int | None) -> NDArray[np.float64]:
    floats = np.ascontiguousarray(array, dtype=np.float64) if array.ndim else array.astype(np.float64)
    if size is not None and (floats.ndim == 0 or floats.shape[-1] != size):
        shape = f"has shape {floats.shape}" if floats.ndim else "is a single number"
        raise DiscreetError(f"{name} {shape}; its last axis must have one entry for each of the {size} outcomes")
    return floats


def is_law(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """For each row of an (n, k) array, whether it is a distribution."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = rows.sum(axis=1)
        return np.asarray((np.abs(total - 1.0) <= SUM_TOLERANCE) & (rows.min(axis=1) >= 0.0))


def check_laws(laws: NDArray[np.float64]) -> None:
    """Raise an error that names the first invalid row of (..., k) and the reason."""
    rows = laws.reshape(-1, laws.shape[-1])
    good = is_law(rows)
    if not good.all():
        refuse_bad_law(rows, int(np.argmin(good)))


def refuse_bad_law(rows: NDArray[np.float64], row: int, name: str = "p") -> None:
    """Raise an error that says why one row of an (n, k) array is not a distribution."""
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

    Whole numbers are added up exactly (below 2^53), so the result does not depend on their order or on zeros in between.
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


def law_of_logits(logits: ArrayLike, size: int, name: str = "logits") -> NDArray[np.float64]:
    """softmax(logits) of logits (..., size), in float64: e^(logit - largest), normalised. Minus infinity is a probability of 0."""
    array = as_floats(logits, name, size)
    rows = array.reshape(-1, size)
    for problem, mask in (("NaN", np.isnan(rows)), ("infinite", np.isposinf(rows))):
        if mask.any():
            row, place = (int(i) for i in np.argwhere(mask)[0])
            where = name if len(rows) == 1 else f"{name}[{row}]"
            raise DiscreetError(f"{where}[{place}] = {rows[row, place]:g} is {problem}; logits are numbers or -inf")
    largest = rows.max(axis=1, keepdims=True)
    empty = np.isneginf(largest[:, 0])
    if empty.any():
        which = f"{name} is" if len(rows) == 1 else f"{name}[{int(np.argmax(empty))}] is"
        raise DiscreetError(f"{which} -inf everywhere: no outcome could occur; leave at least one finite")
    with np.errstate(over="ignore", under="ignore"):  # a difference that overflows is a probability of 0
        shares = np.exp(rows - largest)
    return np.asarray((shares / shares.sum(axis=1, keepdims=True)).reshape(array.shape))


_BAND_ROUNDING = 1e-9


@dataclass(frozen=True)
class Outsiders:
    """The clients that are outside, and the smallest and largest density relative to the reference of the first of them."""

    numbers: Sequence[int]
    clients: int
    least: float
    most: float

    def among(self, clients: int, first: int) -> Outsiders:
        """The same as part of a longer list of clients, with `first` before it."""
        return replace(self, numbers=[first + number for number in self.numbers], clients=clients)

    def concat(self, later: Outsiders) -> Outsiders:
        """These, and those of a later part of the same clients."""
        return replace(self, numbers=[*self.numbers, *later.numbers])


def is_outside(laws: Floats, mu: float | Floats, bounds: Bounds) -> NDArray[np.bool_]:
    """For each of the distributions (..., k) around mu, whether it leaves the bounds by more than rounding explains."""
    slack = _BAND_ROUNDING * bounds.upper
    return np.asarray(((laws < (bounds.lower - slack) * mu) | (laws > (bounds.upper + slack) * mu)).any(axis=-1))


def outsiders_on_outcomes(family: FiniteFamily, rows: Floats) -> Outsiders | None:
    """The distributions (n, k) outside the family's served bounds; None if there are none."""
    bounds, mu = family.served_bounds, family.reference
    if bounds.lower == 0.0 and bounds.upper * float(np.min(mu)) >= 1.0 - _BAND_ROUNDING:
        return None  # the bounds contain all distributions
    numbers = np.flatnonzero(is_outside(rows, mu, bounds))
    if not numbers.size:
        return None
    check_laws(rows)
    with np.errstate(over="ignore"):  # a very rare outcome
        first = rows[numbers[0]] / mu
    return Outsiders(numbers.tolist(), len(rows), float(first.min()), float(first.max()))


def name_clients(numbers: Sequence[int] | NDArray[np.intp], clients: int) -> str:
    """Some clients in words: the first, and how many more."""
    return "p" if clients == 1 else f"p[{numbers[0]}]" + (f" and {len(numbers) - 1} more" if len(numbers) > 1 else "")


def report_outsiders(family: Any, bounds: Bounds, outsiders: Outsiders, *, refuse: bool) -> None:
    """Warn about clients outside the family, or raise an error if a mechanism is only for members."""
    what = (
        f"{name_clients(outsiders.numbers, outsiders.clients)} is outside {family!r}: relative to the reference it runs from "
        f"{outsiders.least:g} to {outsiders.most:g}, the band from {bounds.lower:g} to {bounds.upper:g}"
    )
    if refuse:
        raise OutsideFamilyError(
            f"{what}; the law released for it would not be linear in p: release nearest_member(family, p), or use "
            "OptimalSampler, which projects it"
        )
    warn_caller(f"{what}; its release is equally private, but the bound on its utility is lost", OutsideFamilyWarning)
