"""What `discreet.torch` does on the host: it checks inputs, makes the box of a kernel, and draws the rows that no GPU draws.

`TensorRows` holds logits or probabilities and a public reference of the same kind. Shapes, dtypes and devices are checked here, the numbers
where they are drawn. `Terms` holds the notion of privacy and `upper`. `DeviceBox` has what a kernel needs of both.

Around the uniform reference the box is the lattice of `OptimalSampler(Simplex(k))`, or of the band 0 <= dP/dmu <= upper. Around a reference
that differs from row to row, the device makes the lattice row by row from masses e_x and their sum Z, all in float32:

    L_x = max(1, floor(e_x (2^62 b/Z))),    U_x = min(2^62, floor(rho L_x))      rho <= (B/b)(1 - 2^-22), itself a float32

A product in float32 is off by a factor of at most 1 + 2^-24, so U_x <= e^epsilon L_x holds between the integers (B/b is e^epsilon for pure
privacy). float32 holds both exactly. Z is off by a factor of at most 1 +- 2^-14, since at most 2^10 terms are added one after the other.
Hence, over k outcomes,

    sum L <= (1 + 2^-13) b 2^62 + k  <=  2^62  <=  (1 - 2^-23) rho ((1 - 2^-13) b 2^62 - k) - k  <=  sum U

if b keeps that distance from both ends. `DeviceBox.from_size_and_terms` checks this in rational numbers.

Notions other than pure epsilon depend on sum L too. All distributions lie between L and rho' L, rho' = (1 + 2^-24) rho. With s = sum L/2^62
the two points (`discreet.privacy._notion`) are l = min(1 - s, rho' s - 1)/(rho' - 1) and rho' l. On the line of the points (l, 1 - rho' l),
those above a convex trade-off function are an interval that begins at l = 0. What is allowed at the largest possible l is therefore allowed
at every s. rho is lowered until that l is allowed.

`draw_outcomes_on_host` draws for tensors that are not on a GPU, for float64 on any device, and where Triton is missing. The distribution is
that of `discreet.OptimalSampler`: rows become float64 in numpy, logits are normalised by `law_of_logits`, probabilities in fewer digits are
renormalised, and `discreet.release` draws. For the same integer the outcome is therefore that of the numpy path, bit for bit, and a row
has the same integers in every batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from discreet.errors import POSITIVE, DiscreetError, Range
from discreet.families import (
    Band,
    Bounds,
    FiniteFamily,
    Simplex,
    law_of_logits,
    raise_error_for_bad_row,
    renormalise_rounded_laws,
    rows_are_laws,
)
from discreet.mechanisms import OptimalSampler
from discreet.privacy import Privacy, Pure, chosen_privacy, largest_ratio_for_epsilon
from discreet.privacy.tradeoff import constants_of_box_for_privacy, refuse_useless_or_raw_privacy
from discreet.release import TOTAL, outcomes, weights as weights_of

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class TensorRows(NamedTuple):
    """The clients' rows (n, k), and the public reference as (n, k) or (1, k); `logits` tells whether both are logits.

    Attributes:
        p: the clients' logits or probabilities.
        reference: the public ones, or None for a uniform reference.
        logits: whether these are logits.
        temperature: divides the clients' logits.
        shape: the leading shape of the input and of results.
    """

    p: torch.Tensor
    reference: torch.Tensor | None
    logits: bool
    temperature: float
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """k, the number of outcomes."""
        return int(self.p.shape[1])

    @property
    def argument_name(self) -> str:
        """The name of the argument with the rows."""
        return "logits" if self.logits else "probabilities"

    @property
    def has_float64(self) -> bool:
        """Whether any of these is float64."""
        return self.p.dtype == torch.float64 or (self.reference is not None and self.reference.dtype == torch.float64)


def read_tensor_rows(logits: Any, probabilities: Any, reference: Any, temperature: float) -> TensorRows:
    """The given rows, or the error about their shapes, dtypes or devices."""
    if (logits is None) == (probabilities is None):
        raise DiscreetError("pass either logits= or probabilities=, exactly one of them")
    name, tensor = ("logits", logits) if logits is not None else ("probabilities", probabilities)
    _refuse_wrong_tensor(name, tensor)
    size = int(tensor.shape[-1])
    if size < 2:
        raise DiscreetError(
            f"{name} has shape {tuple(tensor.shape)}; its last axis holds one number for each of at least 2 outcomes"
        )
    if type(temperature) is not float or temperature != 1.0:
        POSITIVE.check("temperature", temperature, "1 leaves the logits as they are")
        if temperature != 1.0 and logits is None:
            raise DiscreetError(
                f"temperature = {temperature:g} is for logits; raise probabilities to a power before you pass them"
            )
    if reference is not None:
        _refuse_wrong_tensor("reference", reference)
        if int(reference.shape[-1]) != size:
            raise DiscreetError(
                f"reference has {int(reference.shape[-1])} outcomes and {name} has {size}; both are over one vocabulary"
            )
        if reference.ndim != 1 and reference.shape != tensor.shape:
            raise DiscreetError(
                f"reference has shape {tuple(reference.shape)} and {name} has {tuple(tensor.shape)}; "
                f"pass one of the same shape, or a single row ({size},) for all"
            )
        if reference.device != tensor.device:
            raise DiscreetError(
                f"reference is on {reference.device} and {name} on {tensor.device}; move one to the other"
            )
        reference = _as_rows_without_gradients(reference, size)
    return TensorRows(
        _as_rows_without_gradients(tensor, size),
        reference,
        logits is not None,
        float(temperature),
        tuple(tensor.shape[:-1]),
    )


def _as_rows_without_gradients(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """The tensor as rows without gradients; the tensor itself if it is that already."""
    return tensor if tensor.ndim == 2 and not tensor.requires_grad else tensor.detach().reshape(-1, size)


def _refuse_wrong_tensor(name: str, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        raise DiscreetError(
            f"{name} = {type(value).__name__} is not a torch.Tensor; for arrays use OptimalSampler(...).release"
        )
    if value.dtype not in _DTYPES:
        dtypes = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise DiscreetError(f"{name} has dtype {value.dtype}; it takes {dtypes}")
    if value.layout != torch.strided or value.is_meta:
        raise DiscreetError(f"{name} is a {value.layout} tensor on {value.device}; pass a dense one that holds numbers")
    if value.ndim == 0:
        raise DiscreetError(f"{name} is a single number; its last axis holds one number for each outcome")


LARGEST_SIZE = 1 << 19  # outcomes on a GPU, by the bound on Z
_MARGIN = Fraction(1, 1 << 13)
_INWARDS = range(22, 3, -1)  # powers of two by which rho is lowered until a notion is kept
_UPPER = Range(1.0, math.inf, low_open=True, high_open=True)


@dataclass(frozen=True)
class Terms:
    """The requested notion of privacy and `upper`, checked.

    Attributes:
        privacy: of one release.
        upper: the largest dP/dmu that the box is made for; None: that of the simplex, or the mollifier's if there is a reference.
    """

    privacy: Privacy
    upper: float | None

    @property
    def family_bounds(self) -> Bounds:
        """The band around a reference that the box is made for: up to `upper`. By default upper is e^(epsilon/2) + 1 for a pure epsilon,
        which gives Husain's mollifier with b = e^(-epsilon/2).
        """
        if self.upper is not None:
            return Bounds(0.0, self.upper)
        if not isinstance(self.privacy, Pure):
            raise DiscreetError(
                f"upper = None is for a pure epsilon; with a reference and privacy = {self.privacy!r} say upper=, how many times likelier "
                "than in the reference an outcome may be for a client"
            )
        return Bounds(0.0, math.exp(min(self.privacy.epsilon, 1000.0) / 2.0) + 1.0)


def make_terms(*, epsilon: float | None = None, privacy: Privacy | None = None, upper: float | None = None) -> Terms:
    """The terms, or the error about them."""
    if upper is not None:
        _UPPER.check(
            "upper", upper, "it bounds how many times likelier than in the reference an outcome may be for a client"
        )
    return Terms(chosen_privacy(epsilon, privacy), None if upper is None else float(upper))


@dataclass(frozen=True)
class DeviceBox:
    """b mu <= q <= B mu in the form of a kernel: rho, the integer from which on none is shared, and up to which all are."""

    b: float
    B: float
    ratio: float
    first_unshared: int
    surely_shared: int

    @classmethod
    def from_size_and_terms(cls, size: int, terms: Terms) -> DeviceBox:
        """The box around references over `size` outcomes; too small a budget, or too many outcomes, is an error."""
        bounds = terms.family_bounds
        if not isinstance(terms.privacy, Pure):
            refuse_useless_or_raw_privacy(terms.privacy, bounds)
        constants = constants_of_box_for_privacy(terms.privacy, bounds)
        error = DiscreetError(
            f"{terms.privacy} with upper = {bounds.upper:g} over {size:,} outcomes leaves no room "
            "for rounding in float32; pass float64 tensors, which are drawn in the arithmetic of OptimalSampler"
        )
        if constants.b == 0.0 or math.isinf(constants.B):
            raise error
        b = Fraction(constants.b)
        largest_sum = (1 + _MARGIN) * b * TOTAL + size
        smallest_sum = (1 - _MARGIN) * b * TOTAL - size
        ratio = _largest_private_ratio(
            terms.privacy, Fraction(constants.B) / b, smallest_sum / TOTAL, largest_sum / TOTAL
        )
        ceiling_sum = (1 - Fraction(1, 1 << 23)) * Fraction(ratio) * smallest_sum - size
        if size > LARGEST_SIZE or largest_sum > TOTAL or ceiling_sum < TOTAL:
            raise error
        return cls(constants.b, constants.B, ratio, math.ceil(largest_sum), math.floor(smallest_sum))


def _largest_private_ratio(privacy: Privacy, widest: Fraction, least: Fraction, most: Fraction) -> float:
    """rho: the largest known ratio that keeps the notion for every shared part between the two; 1 if there is none."""
    if isinstance(privacy, Pure):
        return _float32_below(largest_ratio_for_epsilon(privacy.epsilon) * (1 - Fraction(1, 1 << 22)))
    for shift in _INWARDS:
        ratio = _float32_below(1 + (widest - 1) * (1 - Fraction(1, 1 << shift)))
        true_ratio = Fraction(ratio) * (1 + Fraction(1, 1 << 24))
        share = min(max(2 / (1 + true_ratio), least), most)  # where the two points are extreme
        lower = min(1 - share, true_ratio * share - 1) / (true_ratio - 1) if true_ratio > 1 else Fraction(0)
        if privacy.allows(max(lower, Fraction(0)), max(true_ratio * lower, Fraction(0))):
            return ratio
    return 1.0


def _float32_below(value: Fraction) -> float:
    """The largest float32 at most `value`, or the one below; from 2^62 on all are equivalent."""
    nearest = np.float32(float(min(value, Fraction(TOTAL))))
    return float(nearest if Fraction(float(nearest)) <= value else np.nextafter(nearest, np.float32(0.0)))


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_VANISHING = 1e-300  # a smaller share of the reference counts as 0


@lru_cache(maxsize=64)
def sampler_around_uniform_reference(size: int, terms: Terms) -> OptimalSampler[FiniteFamily]:
    """The sampler around the uniform reference: that of the simplex, or of the band given by `upper`."""
    family = (
        Simplex(size) if terms.upper is None else Band(np.ones(size), lower=0.0, upper=terms.upper, any_client=True)
    )
    return OptimalSampler(family, privacy=terms.privacy)


@dataclass(frozen=True)
class _ReferenceGroup:
    """Rows that share a reference: their numbers, the possible outcomes, their distributions on these, and their sampler."""

    rows: slice
    columns: Integers | slice
    laws: Floats
    sampler: OptimalSampler[FiniteFamily] | None  # None if only one outcome can occur


def client_laws(rows: TensorRows) -> Floats:
    """The clients' distributions in float64, checked."""
    return _laws_of_tensor(rows.p, rows.argument_name, rows.logits, rows.temperature)


def reference_laws(rows: TensorRows) -> Floats | None:
    """The reference distributions in float64, checked; None if there are none."""
    return None if rows.reference is None else _laws_of_tensor(rows.reference, "reference", rows.logits, 1.0)


def _laws_of_tensor(tensor: torch.Tensor, name: str, logits: bool, temperature: float) -> Floats:
    array = tensor.to("cpu", torch.float64).contiguous().numpy()
    if logits:
        if temperature == 1.0:
            return law_of_logits(array, array.shape[1], name)
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused
            return law_of_logits(array / temperature, array.shape[1], f"{name} / temperature")
    laws = renormalise_rounded_laws(array, torch.finfo(tensor.dtype).eps) if tensor.dtype != torch.float64 else array
    are_laws = rows_are_laws(laws)
    if not are_laws.all():
        raise_error_for_bad_row(laws, int(np.argmin(are_laws)), name)
    return laws


def _iterate_row_groups_by_reference(rows: TensorRows, terms: Terms) -> Iterator[_ReferenceGroup]:
    clients, references = client_laws(rows), reference_laws(rows)
    if references is None:
        yield _ReferenceGroup(
            slice(0, len(clients)), slice(None), clients, sampler_around_uniform_reference(rows.size, terms)
        )
        return
    for row, law in enumerate(references):
        members = slice(row, row + 1) if len(references) == len(clients) else slice(0, len(clients))
        columns = np.flatnonzero(law > _VANISHING)
        weights = law[columns]
        if columns.size == 1:
            yield _ReferenceGroup(members, columns, np.ones((len(clients[members]), 1)), None)
            continue
        laws = (
            clients[members]
            if columns.size == rows.size
            else _restrict_laws_to_possible_outcomes(clients[members].take(columns, axis=1), weights)
        )
        family = Band(weights, lower=0.0, upper=terms.family_bounds.upper, any_client=True)
        yield _ReferenceGroup(members, columns, laws, OptimalSampler(family, privacy=terms.privacy))


def _restrict_laws_to_possible_outcomes(laws: Floats, weights: Floats) -> Floats:
    """The clients' distributions on the possible outcomes, normalised; a client without mass there counts as the reference.

    Rows are contiguous in memory (an index array would lay them out by columns), so that each is summed in the same order in every batch.
    """
    total = laws.sum(axis=1, keepdims=True)
    has_mass = total > _VANISHING
    return np.where(has_mass, laws / np.where(has_mass, total, 1.0), weights / weights.sum())


def draw_outcomes_on_host(rows: TensorRows, terms: Terms, uniform: Integers) -> Integers:
    """One outcome for each row, from one uniform integer each."""
    outcome_numbers = np.empty(len(rows.p), dtype=np.int64)
    for group in list(_iterate_row_groups_by_reference(rows, terms)):  # all are checked before the first is drawn
        if group.sampler is None:
            positions = np.zeros(len(group.laws), dtype=np.int64)
        else:
            positions = outcomes(group.sampler.lattice, group.laws, None, uniform[group.rows])
        outcome_numbers[group.rows] = positions if isinstance(group.columns, slice) else group.columns[positions]
    return outcome_numbers


def integer_weights_on_host(rows: TensorRows, terms: Terms) -> Integers:
    """The integers (n, k) that `draw_outcomes_on_host` draws from."""
    integers = np.zeros(tuple(rows.p.shape), dtype=np.int64)
    for group in _iterate_row_groups_by_reference(rows, terms):
        integers[group.rows, group.columns] = (
            TOTAL if group.sampler is None else weights_of(group.sampler.lattice, group.laws, None)
        )
    return integers


def output_laws_on_host(rows: TensorRows, terms: Terms) -> Floats:
    """The output distributions (n, k) in floating point."""
    laws = np.zeros(tuple(rows.p.shape))
    for group in _iterate_row_groups_by_reference(rows, terms):
        laws[group.rows, group.columns] = 1.0 if group.sampler is None else group.sampler.box.project(group.laws)
    return laws


def output_laws_and_free_outcomes(rows: TensorRows, terms: Terms) -> tuple[Floats, NDArray[np.bool_]]:
    """The output distributions (n, k), and which outcomes lie strictly between their bounds."""
    laws, free = np.zeros(tuple(rows.p.shape)), np.zeros(tuple(rows.p.shape), dtype=bool)
    for group in _iterate_row_groups_by_reference(rows, terms):
        if group.sampler is None:
            laws[group.rows, group.columns] = 1.0
            continue
        box = group.sampler.box
        law = box.project(group.laws)
        laws[group.rows, group.columns] = law
        free[group.rows, group.columns] = (law > box.lower) & (law < box.upper)
    return laws, free


def raise_error_for_bad_rows(rows: TensorRows) -> None:
    """Raise the error for rows that a GPU found not to be distributions."""
    client_laws(rows)
    reference_laws(rows)
    raise DiscreetError(
        f"{rows.argument_name} or reference holds a row that is not a distribution in float32: logits are numbers or -inf, "
        f"at least one of them finite; "
        "probabilities sum to 1"
    )
