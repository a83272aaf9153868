"""`output_function`: the output of a sampler as a function of JAX arrays, for jit, vmap and grad.

It computes the projection onto a sampler's box, or the linear mechanism's mixture, on the outcomes of a finite family. It describes and does
not release: integers and entropy are `sampler.release`'s.

Take the slopes a at which outcomes reach their bounds, in order. Between them the mass G(a) = sum clip(a p, lower, upper) is linear. Running
sums find the segment with G(a) = 1, and on it a = (1 - clipped mass)/p(M), where M is the set between the bounds. Where the held outcomes fit
at their ceilings there is no such a: they get their ceilings, and the others a common multiple of their floors.

The derivative is that of q = s p/p(M) on M, with M and s = 1 - clipped mass held fixed, as `discreet.torch` has it. JAX is imported when a
function is made: `pip install '.[jax]'`. Its arrays have 32 bits unless `jax_enable_x64` is set.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from discreet.errors import DiscreetError, raise_missing_extra
from discreet.projection._box import Affine, Box

__all__ = ["output_function"]

_ROUNDING = 4.0  # units in the last place, for each outcome


class BoxSampler(Protocol):
    """What is needed of a sampler: its box, and whether it projects or mixes."""

    @property
    def box(self) -> Box: ...
    @property
    def mixing(self) -> Affine | None: ...


def output_function(sampler: BoxSampler) -> Callable[[Any], Any]:
    """The output of a sampler as a JAX function: probabilities (..., k) in, output probabilities (..., k) out.

    Inputs are not checked, since a compiled function cannot raise for a number: a row that is no distribution has no meaningful output.

    Args:
        sampler: an `OptimalSampler`, `LinearSampler` or `MollifierSampler` on a finite family.

    Returns:
        A function that can be compiled (`jax.jit`), mapped (`jax.vmap`) and differentiated (`jax.grad`).

    Raises:
        DiscreetError: for what has no box, or whose output is not the projection onto it: a mechanism of one's own.
        MissingExtraError: where JAX is not installed.
    """
    box, mixing = getattr(sampler, "box", None), getattr(sampler, "mixing", None)
    if not isinstance(box, Box) or hasattr(sampler, "law"):
        raise DiscreetError(
            f"sampler = {sampler!r} does not project onto a box or mix into it; pass OptimalSampler(...), LinearSampler(...) or "
            "MollifierSampler(...), and write a law of your own with jax.numpy"
        )
    if getattr(sampler, "discretisation", None) is not None:
        raise DiscreetError(f"sampler = {sampler!r} is on a continuous family; a JAX function is for outcomes")
    try:
        import jax.numpy as jnp
        from jax.lax import stop_gradient
    except ImportError as error:
        raise_missing_extra("jax", error)
    low, high, ceiling = (
        np.broadcast_to(np.asarray(bound, dtype=np.float64), box.size) for bound in (box.lower, box.upper, box.ceiling)
    )

    def mix_rows(p: Any) -> Any:
        assert mixing is not None
        return jnp.clip(mixing.slope * p + mixing.lift * low, low, high)

    def project_rows(p: Any) -> Any:
        lower, upper = jnp.asarray(low, dtype=p.dtype), jnp.asarray(high, dtype=p.dtype)
        constant_p = stop_gradient(p)
        slope = _unit_mass_slope(jnp, constant_p, lower, jnp.asarray(ceiling, dtype=p.dtype))
        free = (slope * constant_p > lower) & (slope * constant_p < upper)
        clipped_law = jnp.where(free, 0.0, jnp.clip(slope * constant_p, lower, upper))
        rest = 1.0 - clipped_law.sum(-1, keepdims=True)
        free_mass = jnp.where(free, p, 0.0)
        mass = free_mass.sum(-1, keepdims=True)
        law = jnp.where(free, rest * free_mass / jnp.where(mass > 0.0, mass, 1.0), clipped_law)
        support = constant_p > 0.0
        full = jnp.where(support, upper, 0.0).sum(-1, keepdims=True)
        floors = jnp.where(support, 0.0, lower).sum(-1, keepdims=True)
        lifted_law = jnp.where(support, upper, lower * (1.0 - full) / jnp.where(floors > 0.0, floors, 1.0))
        return jnp.where(full + floors < 1.0, stop_gradient(lifted_law), law)

    return project_rows if mixing is None else mix_rows


def _unit_mass_slope(jnp: Any, p: Any, lower: Any, upper: Any) -> Any:
    """The slope a with mass 1 in each row (..., 1); where there is none, one at which all held outcomes are at their ceilings."""
    in_support = p > 0.0
    starts, ends = (jnp.where(in_support, bound / jnp.where(in_support, p, 1.0), jnp.inf) for bound in (lower, upper))
    breaks = jnp.concatenate([starts, ends], axis=-1)
    changes = jnp.concatenate([jnp.where(in_support, p, 0.0), jnp.where(in_support, -p, 0.0)], axis=-1)
    order = jnp.argsort(breaks, axis=-1)
    sorted_breaks, steps = jnp.take_along_axis(breaks, order, axis=-1), jnp.take_along_axis(changes, order, axis=-1)
    finite = jnp.where(jnp.isfinite(sorted_breaks), sorted_breaks, 0.0)
    rises = jnp.cumsum(steps, axis=-1)[..., :-1]
    widths = jnp.where(jnp.isfinite(sorted_breaks[..., 1:]), finite[..., 1:] - finite[..., :-1], 0.0)
    masses = jnp.sum(lower) + jnp.cumsum(rises * widths, axis=-1)
    # a flat piece at 1 may be a little below it
    is_reached = masses >= 1.0 - _ROUNDING * p.shape[-1] * jnp.finfo(p.dtype).eps
    last = jnp.isfinite(sorted_breaks).sum(-1, keepdims=True) - 1  # the segment after the last break, which has no end
    segment = jnp.where(is_reached.any(-1, keepdims=True), jnp.argmax(is_reached, axis=-1, keepdims=True), last)
    left = jnp.take_along_axis(finite, segment, axis=-1)
    right = jnp.take_along_axis(finite, jnp.minimum(segment + 1, last), axis=-1)
    middle = jnp.where(segment < last, 0.5 * (left + right), 2.0 * left)
    free = (middle * p > lower) & (middle * p < upper)
    clipped_mass = jnp.where(free, 0.0, jnp.clip(middle * p, lower, upper)).sum(-1, keepdims=True)
    mass = jnp.where(free, p, 0.0).sum(-1, keepdims=True)
    return jnp.where(mass > 0.0, (1.0 - clipped_mass) / jnp.where(mass > 0.0, mass, 1.0), middle)
