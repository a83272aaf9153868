"""`fitted_upper` and `fitted_box`: the box around a public distribution that is best for public examples.

With m = b mu the mean divergence from the examples to their projections is convex in m [design, T1], and so in b: one number, found by
golden section search between e^-epsilon and 1. `upper` = b (e^epsilon - 1)/(1 - b) is equivalent.

The floor need not be a multiple of mu: any public measure is allowed [design, T1], and the best one for a population is rarely mu itself.
`fitted_box` searches among boxes around mu^(1/T). For T > 1 this is flatter than mu, so that a publicly rare outcome may gain a larger
factor than a frequent one.

Examples must be public: contexts like the private ones that may be known to everybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from discreet._base.numerics import LARGEST_FLOAT_EXPONENT
from discreet.divergences import divergence
from discreet.errors import POSITIVE, DiscreetError, check_kind
from discreet.privacy import check_epsilon
from discreet.torch._sampling import output

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 16  # golden sections: b to within 0.0005 of the interval's length
_TEMPERATURE_STEPS = 6
_HOTTEST = math.log(2.0)  # temperatures of the reference from 1 to 2 are tried
_NEAR, _NEARBY_STEPS = 0.15, 6  # search range around the box of the reference itself


@dataclass(frozen=True)
class FittedBox:
    """A box around a public distribution: `release(logits=..., reference=public / reference_temperature, upper=upper, epsilon=...)`.

    Attributes:
        upper: the largest ratio of a client's probability to the reference's that it is made for.
        reference_temperature: divides the public logits to give the reference.
        value: the mean divergence from the examples to their output distributions.
    """

    upper: float
    reference_temperature: float
    value: float


class _PublicExamples:
    """Public rows, and the mean divergence of a box on them."""

    def __init__(
        self, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str, temperature: float
    ) -> None:
        self._budget, self._f = check_epsilon(epsilon), divergence(measure)
        if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or not len(logits):
            raise DiscreetError("logits holds no examples; pass a tensor (n, k) of at least one row")
        if not logits.is_floating_point():
            raise DiscreetError(f"logits has dtype {logits.dtype}; pass a tensor of floats")
        check_kind("reference", reference, torch.Tensor, "pass the public logits, (n, k) or (k,)")
        temperature = POSITIVE.check("temperature", temperature)
        self._logits, self._reference, self._temperature = logits.detach(), reference.detach(), temperature
        self._laws = torch.softmax(self._logits.double() / temperature, -1).cpu().numpy()

    def upper_from_box_floor_fraction(self, fraction: float) -> float:
        """`upper` for a fraction in (0, 1), the position of b between e^-epsilon and 1."""
        b = math.exp(-self._budget) + fraction * -math.expm1(-self._budget)
        if b == 1.0:  # the limit of the quotient as epsilon vanishes
            return 1.0 / (1.0 - fraction)
        return max(1.0 + 1e-6, b * math.expm1(min(self._budget, LARGEST_FLOAT_EXPONENT)) / (1.0 - b))

    def mean_divergence_of_box(self, fraction: float, reference_temperature: float = 1.0) -> float:
        """The mean divergence with the box at this fraction around the reference at this temperature."""
        outputs = output(
            logits=self._logits,
            reference=self._reference if reference_temperature == 1.0 else self._reference / reference_temperature,
            epsilon=self._budget,
            upper=self.upper_from_box_floor_fraction(fraction),
            temperature=self._temperature,
        )
        return float(np.mean(self._f(self._laws, outputs.double().cpu().numpy())))


def fitted_upper(
    *, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str = "kl", temperature: float = 1.0
) -> float:
    """The `upper` with the smallest mean divergence from public examples to their output distributions.

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
    return examples.upper_from_box_floor_fraction(
        _minimise_by_golden_sections(examples.mean_divergence_of_box, 0.0, 1.0, _STEPS)[0]
    )


def fitted_box(
    *, epsilon: float, logits: torch.Tensor, reference: torch.Tensor, measure: str = "kl", temperature: float = 1.0
) -> FittedBox:
    """The best box for public examples among those around the reference at a temperature of 1 to 2.

    For each temperature the best `upper` near that of `fitted_upper` is taken; the result is never worse for the examples than that one.

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
    fraction, value = _minimise_by_golden_sections(examples.mean_divergence_of_box, 0.0, 1.0, _STEPS)
    unheated_box = FittedBox(examples.upper_from_box_floor_fraction(fraction), 1.0, value)
    bounds = max(0.0, fraction - _NEAR), min(1.0, fraction + _NEAR)

    def best_box_at_log_temperature(warmth: float) -> FittedBox:
        reference_temperature = math.exp(warmth)
        best_fraction, least = _minimise_by_golden_sections(
            partial(examples.mean_divergence_of_box, reference_temperature=reference_temperature),
            *bounds,
            _NEARBY_STEPS,
        )
        return FittedBox(examples.upper_from_box_floor_fraction(best_fraction), reference_temperature, least)

    warmth, least = _minimise_by_golden_sections(
        lambda warmth: best_box_at_log_temperature(warmth).value, 0.0, _HOTTEST, _TEMPERATURE_STEPS
    )
    return best_box_at_log_temperature(warmth) if least < value else unheated_box


def _minimise_by_golden_sections(
    function: Callable[[float], float], low: float, high: float, steps: int
) -> tuple[float, float]:
    """(the minimiser of a function between two ends, the minimum), by golden sections."""
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
