"""The derivative of `output` in the clients' rows, in closed form.

The projection is q = clip(a p, lower, upper), with a such that q sums to one. Let M be the outcomes between their bounds, s = q(M) and
r_x = p_x/p(M) on M. On M, q_x = s r_x, and s is what the clipped outcomes leave. A small change of p changes neither M nor s, so that

    dq_x = (s/p(M)) (dp_x - r_x sum_M dp)   on M,  else 0;      in logits l of p:   dq_x = q_x (dl_x - sum_M r dl)/T

Where an outcome just reaches a bound the derivative jumps; the one of the clipped side is returned. The box depends on the reference alone,
and nothing is differentiated in it.

A gradient is computed from the client's row and is as private as the row itself: not at all. It is for training and for analysis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from discreet.errors import DiscreetError
from discreet.torch._host import TensorRows, Terms, output_laws_and_free_outcomes


def needs_gradients(given: Any) -> bool:
    """Whether torch records what happens to this tensor."""
    return isinstance(given, torch.Tensor) and given.requires_grad and torch.is_grad_enabled()


def refuse_gradients_of_reference(reference: Any) -> None:
    """Refuse a reference that would get no gradient without a word."""
    if needs_gradients(reference):
        raise DiscreetError(
            "reference needs gradients, and output is differentiated in the clients' rows alone: the box must be public; pass "
            "reference.detach()"
        )


def differentiable_output(given: torch.Tensor, rows: TensorRows, terms: Terms) -> torch.Tensor:
    """`output` as a function of the given tensor (..., k), by the host's arithmetic on every device."""
    found, free = output_laws_and_free_outcomes(rows, terms)
    device = given.device
    laws, inside = torch.from_numpy(found).to(device), torch.from_numpy(free).to(device)
    result: torch.Tensor = _Projection.apply(
        given.reshape(-1, rows.size), laws, inside, rows.temperature if rows.logits else None
    )
    return result.reshape(given.shape)


class _Projection(torch.autograd.Function):
    """The output that was computed, with its derivative."""

    @staticmethod
    def forward(
        ctx: Any, given: torch.Tensor, laws: torch.Tensor, free: torch.Tensor, temperature: float | None
    ) -> torch.Tensor:
        ctx.save_for_backward(given, laws, free)
        ctx.temperature = temperature
        return laws.to(given.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        given, laws, free = ctx.saved_tensors
        kept = torch.where(free, laws, 0.0)
        mass = kept.sum(-1, keepdim=True)
        slope = gradient.to(torch.float64)
        average = (kept * slope).sum(-1, keepdim=True) / torch.where(mass > 0.0, mass, 1.0)
        away = torch.where(free, slope - average, 0.0)
        if ctx.temperature is not None:
            return (kept * away / ctx.temperature).to(given.dtype), None, None, None
        held = torch.where(free, given.to(torch.float64), 0.0).sum(-1, keepdim=True)
        return (mass / torch.where(held > 0.0, held, 1.0) * away).to(given.dtype), None, None, None


def as_numpy_generator(rng: Any) -> Any:
    """A numpy Generator for the one given; a torch Generator is asked for one number, which seeds it."""
    if isinstance(rng, torch.Generator):
        seed = int(torch.randint(1 << 62, (1,), generator=rng, device=rng.device).item())
        return np.random.default_rng(seed)
    return rng
