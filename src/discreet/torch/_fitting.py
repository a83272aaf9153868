"""Which box around a public law: the one that serves public examples best.

With m = b mu the mean divergence from the examples to their projections is convex in m [design, T1], and so in b: one number, found by a
golden section search between e^-epsilon and 1. `upper` = b (e^epsilon - 1)/(1 - b) says the same. Examples must be public: contexts of
the same kind as the private ones, that nobody minds being known.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from discreet.divergences import divergence
from discreet.errors import DiscreetError
from discreet.privacy._pure import check_epsilon
from discreet.torch._sampling import output

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 16  # b to within 0.0005 of the interval's length


def fitted_upper(
    *, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str = "kl", temperature: float = 1.0
) -> float:
    """The `upper` with the smallest mean divergence from public examples to what would be drawn for them.

    Args:
        epsilon: the privacy budget of one outcome.
        logits: public examples of what clients hold, (n, k): next-token logits after public texts that stand for private ones.
        reference: the public logits beside each, (n, k) or (k,).
        measure: the name of the divergence to make small: "kl", "tv", ...
        temperature: what the examples' logits are divided by.

    Returns:
        `upper` for `release`, above 1.

    Raises:
        DiscreetError: for no examples, or rows that are no laws.

    Example:
        >>> upper = fitted_upper(epsilon=2.0, logits=after_public_letters, reference=after_nothing)
    """
    budget, f = check_epsilon(epsilon), divergence(measure)
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or not len(logits):
        raise DiscreetError("logits holds no examples; pass a tensor (n, k) of at least one row")
    laws = torch.softmax(logits.double() / temperature, -1).cpu().numpy()

    def upper_of(place: float) -> float:
        """place in (0, 1) is how far alpha is from 0 to 1, on the scale of b."""
        b = math.exp(-budget) + place * -math.expm1(-budget)
        return max(1.0 + 1e-6, b * math.expm1(min(budget, 700.0)) / (1.0 - b))

    def mean(place: float) -> float:
        served = output(
            logits=logits, reference=reference, epsilon=budget, upper=upper_of(place), temperature=temperature
        )
        return float(np.mean(f(laws, served.double().cpu().numpy())))

    low, high = 0.0, 1.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = mean(left), mean(right)
    for _ in range(_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = mean(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = mean(right)
    return upper_of(left if at_left <= at_right else right)
