"""Which box around a public law: the one that serves public examples best.

With m = b mu the mean divergence from the examples to their projections is convex in m [design, T1], and so in b: one number, found by a
golden section search between e^-epsilon and 1. `upper` = b (e^epsilon - 1)/(1 - b) says the same.

The floor need not be a multiple of mu: any measure that is a function of public things serves [design, T1], and the one that suits
a population is rarely mu itself. `fitted_box` looks among those around mu^(1/T): flatter, for T > 1, than mu, so that what is rare in
public may become likelier by a larger factor than what is frequent.

Examples must be public: contexts of the same kind as the private ones, that nobody minds being known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from discreet.divergences import divergence
from discreet.errors import DiscreetError
from discreet.privacy import check_epsilon
from discreet.torch._sampling import output

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 16  # b to within 0.0005 of the interval's length
_TEMPERATURE_STEPS = 6
_HOTTEST = math.log(2.0)  # temperatures of the reference that are looked at reach from 1 to 2
_NEAR, _NEARBY_STEPS = (
    0.15,
    6,
)  # how far from the place of the box around the reference itself that of another is looked for


@dataclass(frozen=True)
class FittedBox:
    """A box around a public law: `release(logits=..., reference=public / reference_temperature, upper=upper, epsilon=...)`.

    Attributes:
        upper: how many times likelier than in the reference an outcome may be for the clients that it is made for.
        reference_temperature: what the public logits are divided by to be the reference.
        value: the mean divergence from the examples to what would be drawn for them.
    """

    upper: float
    reference_temperature: float
    value: float


class _PublicExamples:
    """Public rows, and how well a box serves them in the mean."""

    def __init__(
        self, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str, temperature: float
    ) -> None:
        self._budget, self._f = check_epsilon(epsilon), divergence(measure)
        if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or not len(logits):
            raise DiscreetError("logits holds no examples; pass a tensor (n, k) of at least one row")
        self._logits, self._reference, self._temperature = logits, reference, temperature
        self._laws = torch.softmax(logits.double() / temperature, -1).cpu().numpy()

    def upper_of(self, place: float) -> float:
        """place in (0, 1) is how far b is from e^-epsilon to 1."""
        b = math.exp(-self._budget) + place * -math.expm1(-self._budget)
        return max(1.0 + 1e-6, b * math.expm1(min(self._budget, 700.0)) / (1.0 - b))

    def mean(self, place: float, hotter: float = 1.0) -> float:
        """The mean divergence with the box at this place around the reference at this temperature."""
        served = output(
            logits=self._logits,
            reference=self._reference if hotter == 1.0 else self._reference / hotter,
            epsilon=self._budget,
            upper=self.upper_of(place),
            temperature=self._temperature,
        )
        return float(np.mean(self._f(self._laws, served.double().cpu().numpy())))


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
    examples = _PublicExamples(epsilon, logits, reference, measure, temperature)
    return examples.upper_of(_golden_minimum(examples.mean, 0.0, 1.0, _STEPS)[0])


def fitted_box(
    *, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str = "kl", temperature: float = 1.0
) -> FittedBox:
    """The box that serves public examples best among those around the reference at a temperature of 1 to 2.

    For each temperature that is looked at the best `upper` near the one of `fitted_upper` is taken; what is found is never worse for the
    examples than that one.

    Args:
        epsilon: the privacy budget of one outcome.
        logits: public examples of what clients hold, (n, k): next-token logits after public texts that stand for private ones.
        reference: the public logits beside each, (n, k) or (k,).
        measure: the name of the divergence to make small: "kl", "tv", ...
        temperature: what the examples' logits are divided by.

    Returns:
        A `FittedBox`: divide the public logits by its `reference_temperature`, and pass its `upper`.

    Raises:
        DiscreetError: for no examples, or rows that are no laws.

    Example:
        >>> box = fitted_box(epsilon=2.0, logits=after_public_letters, reference=after_nothing)
    """
    examples = _PublicExamples(epsilon, logits, reference, measure, temperature)
    place, value = _golden_minimum(examples.mean, 0.0, 1.0, _STEPS)
    plain = FittedBox(examples.upper_of(place), 1.0, value)
    near = max(0.0, place - _NEAR), min(1.0, place + _NEAR)

    def best(warmth: float) -> FittedBox:
        hotter = math.exp(warmth)
        there, served = _golden_minimum(partial(examples.mean, hotter=hotter), *near, _NEARBY_STEPS)
        return FittedBox(examples.upper_of(there), hotter, served)

    warmth, served = _golden_minimum(lambda warmth: best(warmth).value, 0.0, _HOTTEST, _TEMPERATURE_STEPS)
    return best(warmth) if served < value else plain


def _golden_minimum(function: Callable[[float], float], low: float, high: float, steps: int) -> tuple[float, float]:
    """(where a function is least between two ends, its value there), by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)
