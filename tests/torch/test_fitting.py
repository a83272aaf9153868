"""The box that is chosen on examples is the best of its kind for them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import discreet as dc
from discreet.errors import DiscreetError
from discreet.torch import fitted_box, fitted_upper, output
from tests.soaking import wide


def examples(spread: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    public = 2.0 * torch.randn(30, 20, generator=generator).double()
    return public + spread * torch.randn(30, 20, generator=generator).double(), public


def mean(logits: torch.Tensor, public: torch.Tensor, epsilon: float, upper: float, measure: str) -> float:
    served = output(logits=logits, reference=public, epsilon=epsilon, upper=upper)
    return float(np.mean(dc.divergence(measure)(torch.softmax(logits, -1).numpy(), served.numpy())))


@pytest.mark.parametrize("epsilon", wide([0.5, 2.0, 5.0], [2.0]))
@pytest.mark.parametrize("measure", ["kl", "tv"])
def test_no_other_upper_on_a_fine_grid_serves_the_examples_better(epsilon: float, measure: str) -> None:
    for spread in (0.4, 2.0):
        logits, public = examples(spread, 3)
        found = fitted_upper(epsilon=epsilon, logits=logits, reference=public, measure=measure)
        best = mean(logits, public, epsilon, found, measure)
        for step in range(1, 40, wide(1, 6)):
            b = math.exp(-epsilon) + step / 40 * (1 - math.exp(-epsilon))
            upper = b * math.expm1(epsilon) / (1 - b)
            assert best <= mean(logits, public, epsilon, upper, measure) * 1.001 + 1e-9


def test_contexts_that_change_more_want_more_room() -> None:
    small, large = (
        fitted_upper(epsilon=2.0, logits=logits, reference=public)
        for logits, public in (examples(0.3, 4), examples(3.0, 4))
    )
    assert small < large


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_box_around_a_flatter_law_serves_as_it_says_and_never_worse(epsilon: float) -> None:
    """Contexts under which all of the public law is half as sharp want a box around such a law; others keep the law itself."""
    logits, public = examples(1.0, 5)
    for clients, flatter in ((0.5 * logits, True), (public + 0.1, False)):
        upper = fitted_upper(epsilon=epsilon, logits=clients, reference=public)
        found = fitted_box(epsilon=epsilon, logits=clients, reference=public)
        around = public / found.reference_temperature
        assert found.value == pytest.approx(mean(clients, around, epsilon, found.upper, "kl"), rel=1e-9, abs=1e-12)
        assert found.value <= mean(clients, public, epsilon, upper, "kl")
        assert (found.reference_temperature > 1.2) == flatter


@pytest.mark.parametrize("fitted", [fitted_upper, fitted_box], ids=lambda found: found.__name__)
def test_no_examples_are_no_choice(fitted: Callable[..., object]) -> None:
    with pytest.raises(DiscreetError, match="examples"):
        fitted(epsilon=1.0, logits=torch.zeros(0, 5), reference=torch.zeros(5))


def test_examples_are_read_as_they_are_or_refused() -> None:
    rows = torch.tensor([[0.1, 0.2, 0.3]], dtype=torch.float64)
    plain = fitted_upper(epsilon=1.0, logits=rows, reference=rows)
    grown = rows.clone().requires_grad_()
    assert fitted_upper(epsilon=1.0, logits=grown, reference=grown) == plain
    with pytest.raises(DiscreetError, match=r"logits has dtype torch.complex64; pass a tensor of floats"):
        fitted_upper(epsilon=1.0, logits=rows.to(torch.complex64), reference=rows)


def test_a_vanishing_budget_has_an_upper() -> None:
    rows = torch.tensor([[0.1, 0.2, 0.3]], dtype=torch.float64)
    assert 1.0 < fitted_upper(epsilon=1e-300, logits=rows, reference=rows) < math.inf
