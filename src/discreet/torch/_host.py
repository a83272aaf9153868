"""Drawing on the CPU: the distribution of `discreet.OptimalSampler` for tensors on the CPU, and for float64 on any device.

Rows are converted to numpy unchanged, logits are normalised in float64 by `law_of_logits`, and `discreet.release` draws. For the same
integer the outcome is therefore that of the numpy path, bit for bit, and a row has the same integers in every batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families import Band, FiniteFamily, Simplex, is_law, law_of_logits, refuse_bad_law, renormalise_laws
from discreet.mechanisms import OptimalSampler
from discreet.release import TOTAL, outcomes, weights as weights_of
from discreet.torch._inputs import TensorRows, Terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_VANISHING = 1e-300  # a smaller share of the reference counts as 0


@lru_cache(maxsize=64)
def uniform_sampler(size: int, terms: Terms) -> OptimalSampler[FiniteFamily]:
    """The sampler around the uniform reference: that of the simplex, or of the band given by `upper`."""
    family = Simplex(size) if terms.upper is None else Band(np.ones(size), lower=0.0, upper=terms.upper, everybody=True)
    return OptimalSampler(family, privacy=terms.privacy)


@dataclass(frozen=True)
class _ReferenceGroup:
    """Rows that share a reference: their numbers, the possible outcomes, their distributions on these, and their sampler."""

    rows: slice
    columns: Integers | slice
    laws: Floats
    sampler: OptimalSampler[FiniteFamily] | None  # None if only one outcome can occur


def laws(rows: TensorRows) -> Floats:
    """The clients' distributions in float64, checked."""
    return _laws(rows.p, rows.name, rows.logits, rows.temperature)


def references(rows: TensorRows) -> Floats | None:
    """The reference distributions in float64, checked; None if there are none."""
    return None if rows.reference is None else _laws(rows.reference, "reference", rows.logits, 1.0)


def _laws(tensor: torch.Tensor, name: str, logits: bool, temperature: float) -> Floats:
    array = tensor.to("cpu", torch.float64).contiguous().numpy()
    if logits:
        return law_of_logits(array if temperature == 1.0 else array / temperature, array.shape[1], name)
    found = renormalise_laws(array, torch.finfo(tensor.dtype).eps) if tensor.dtype != torch.float64 else array
    good = is_law(found)
    if not good.all():
        refuse_bad_law(found, int(np.argmin(good)), name)
    return found


def _reference_groups(rows: TensorRows, terms: Terms) -> Iterator[_ReferenceGroup]:
    own, public = laws(rows), references(rows)
    if public is None:
        yield _ReferenceGroup(slice(0, len(own)), slice(None), own, uniform_sampler(rows.size, terms))
        return
    for row, law in enumerate(public):
        which = slice(row, row + 1) if len(public) == len(own) else slice(0, len(own))
        columns = np.flatnonzero(law > _VANISHING)
        weights = law[columns]
        if columns.size == 1:
            yield _ReferenceGroup(which, columns, np.ones((len(own[which]), 1)), None)
            continue
        held = own[which] if columns.size == rows.size else _restrict_rows(own[which].take(columns, axis=1), weights)
        family = Band(weights, lower=0.0, upper=terms.bounds.upper, everybody=True)
        yield _ReferenceGroup(which, columns, held, OptimalSampler(family, privacy=terms.privacy))


def _restrict_rows(held: Floats, weights: Floats) -> Floats:
    """The clients' distributions on the possible outcomes, normalised; a client without mass there counts as the reference.

    Rows are contiguous in memory (an index array would lay them out by columns), so that each is summed in the same order in every batch.
    """
    total = held.sum(axis=1, keepdims=True)
    some = total > _VANISHING
    return np.where(some, held / np.where(some, total, 1.0), weights / weights.sum())


def draw_outcomes(rows: TensorRows, terms: Terms, uniform: Integers) -> Integers:
    """One outcome for each row, from one uniform integer each."""
    found = np.empty(len(rows.p), dtype=np.int64)
    for part in list(_reference_groups(rows, terms)):  # all are checked before the first is drawn
        if part.sampler is None:
            number = np.zeros(len(part.laws), dtype=np.int64)
        else:
            number = outcomes(part.sampler.lattice, part.laws, None, uniform[part.rows])
        found[part.rows] = number if isinstance(part.columns, slice) else part.columns[number]
    return found


def weights(rows: TensorRows, terms: Terms) -> Integers:
    """The integers (n, k) that `draw_outcomes` draws from."""
    found = np.zeros(tuple(rows.p.shape), dtype=np.int64)
    for part in _reference_groups(rows, terms):
        found[part.rows, part.columns] = (
            TOTAL if part.sampler is None else weights_of(part.sampler.lattice, part.laws, None)
        )
    return found


def output(rows: TensorRows, terms: Terms) -> Floats:
    """The output distributions (n, k) in floating point."""
    found = np.zeros(tuple(rows.p.shape))
    for part in _reference_groups(rows, terms):
        found[part.rows, part.columns] = 1.0 if part.sampler is None else part.sampler.box.project(part.laws)
    return found


def refuse(rows: TensorRows) -> None:
    """Raise the error for rows that a GPU found not to be distributions."""
    laws(rows)
    references(rows)
    raise DiscreetError(
        f"{rows.name} or reference holds a row that is not a distribution in float32: logits are numbers or -inf, "
        f"at least one of them finite; "
        "probabilities sum to 1"
    )
