"""What the functions of `discreet.torch` are given: rows of logits or probabilities, and a public reference of the same kind.

Here everything is checked that can be told without looking at a number: shapes, dtypes, devices. Numbers are checked where they lie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from discreet.errors import POSITIVE, DiscreetError

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class TensorRows(NamedTuple):
    """What clients hold as rows (n, k), and what everybody knows as (n, k) or (1, k); `logits` says whether both are logits.

    Attributes:
        p: the clients' logits or probabilities.
        reference: the public ones, or None for a uniform reference.
        logits: whether these are logits.
        temperature: what the clients' logits are divided by.
        shape: the leading shape of what was given, which results have.
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
    def name(self) -> str:
        """The argument that the rows came by."""
        return "logits" if self.logits else "probabilities"

    @property
    def double(self) -> bool:
        """Whether any of these is float64."""
        return self.p.dtype == torch.float64 or (self.reference is not None and self.reference.dtype == torch.float64)


def rows_of(logits: Any, probabilities: Any, reference: Any, temperature: float) -> TensorRows:
    """The rows that were given, or the error that says what is wrong with their shapes, dtypes or devices."""
    if (logits is None) == (probabilities is None):
        raise DiscreetError("pass either logits= or probabilities=, not both and not neither")
    name, given = ("logits", logits) if logits is not None else ("probabilities", probabilities)
    _check_tensor(name, given)
    size = int(given.shape[-1])
    if size < 2:
        raise DiscreetError(
            f"{name} has shape {tuple(given.shape)}; its last axis holds one number for each of at least 2 outcomes"
        )
    POSITIVE.check("temperature", temperature, "1 leaves the logits as they are")
    if temperature != 1.0 and logits is None:
        raise DiscreetError(
            f"temperature = {temperature:g} is for logits; raise probabilities to a power before you pass them"
        )
    if reference is not None:
        _check_tensor("reference", reference)
        if int(reference.shape[-1]) != size:
            raise DiscreetError(
                f"reference has {int(reference.shape[-1])} outcomes and {name} has {size}; both are over one vocabulary"
            )
        if reference.ndim != 1 and reference.shape != given.shape:
            raise DiscreetError(
                f"reference has shape {tuple(reference.shape)} and {name} has {tuple(given.shape)}; "
                f"pass one of the same shape, or a single row ({size},) for all"
            )
        if reference.device != given.device:
            raise DiscreetError(
                f"reference is on {reference.device} and {name} on {given.device}; move one to the other"
            )
        reference = _rows(reference, size)
    return TensorRows(_rows(given, size), reference, logits is not None, float(temperature), tuple(given.shape[:-1]))


def _rows(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """The tensor as rows, without what records gradients: itself if it is that already, which takes no time."""
    return tensor if tensor.ndim == 2 and not tensor.requires_grad else tensor.detach().reshape(-1, size)


def _check_tensor(name: str, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        raise DiscreetError(
            f"{name} = {type(value).__name__} is not a torch.Tensor; for arrays use OptimalSampler(...).release"
        )
    if value.dtype not in _DTYPES:
        allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise DiscreetError(f"{name} has dtype {value.dtype}; it takes {allowed}")
    if value.layout != torch.strided or value.is_meta:
        raise DiscreetError(f"{name} is a {value.layout} tensor on {value.device}; pass a dense one that holds numbers")
    if value.ndim == 0:
        raise DiscreetError(f"{name} is a single number; its last axis holds one number for each outcome")
