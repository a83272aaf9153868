"""The derivative of `output` against finite differences, and reproducible draws of tensors."""

from typing import Any

import numpy as np
import pytest
import torch

import discreet as dc
from discreet import DiscreetError, NotPrivateWarning, OptimalSampler, Simplex
from discreet.torch import output, release, weights
from tests.soaking import wide


def directional(function: Any, at: Any, along: Any, step: float = 1e-6) -> Any:
    return (function(at + step * along) - function(at - step * along)) / (2 * step)


def check_finite_differences(laws: int, kind: str, *, with_reference: bool, device: str = "cpu") -> None:
    """A kink between the two ends of a difference is found by a second, smaller step, and left out; few are."""
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(laws, 8, dtype=torch.float64, generator=generator).to(device)
    reference = torch.randn(8, dtype=torch.float64, generator=generator).to(device) if with_reference else None
    start = logits if kind == "logits" else torch.softmax(logits, -1)
    public = reference if reference is None or kind == "logits" else torch.softmax(reference, -1)
    weights = torch.randn(8, dtype=torch.float64, generator=generator).to(device)
    along = torch.randn(laws, 8, dtype=torch.float64, generator=generator).to(device)
    if kind == "probabilities":
        along = (along - along.mean(-1, keepdim=True)) * start.min(-1, keepdim=True).values

    def value(rows: Any) -> Any:
        return (output(**{kind: rows}, reference=public, epsilon=1.5) * weights).sum(-1)

    given = start.clone().requires_grad_(True)
    value(given).sum().backward()
    assert given.grad is not None
    assert given.grad.device == given.device
    found = (given.grad * along).sum(-1)
    coarse, fine = directional(value, start, along, 1e-5), directional(value, start, along, 1e-6)
    smooth = (coarse - fine).abs() <= 1e-6 * (1 + fine.abs())
    assert smooth.double().mean() > 0.98
    assert (found - fine).abs()[smooth].max() < 1e-6
    assert (found.abs() > 1e-6).double().mean() > 0.5  # the test sees derivatives that differ from 0


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("with_reference", [False, True])
def test_gradients_are_those_of_finite_differences_on_a_thousand_laws(kind: str, with_reference: bool) -> None:
    check_finite_differences(wide(100_000, 1_000), kind, with_reference=with_reference)


def test_the_output_is_the_same_with_and_without_gradients() -> None:
    logits = torch.randn(5, 7)
    wanted = output(logits=logits, epsilon=1.0, temperature=2.0)
    found = output(logits=logits.clone().requires_grad_(True), epsilon=1.0, temperature=2.0)
    assert found.requires_grad
    assert found.dtype == torch.float32
    assert torch.equal(found.detach(), wanted)
    with torch.no_grad():
        assert not output(logits=logits.requires_grad_(True), epsilon=1.0).requires_grad
    law = torch.softmax(torch.randn(6, dtype=torch.float64), -1)
    one = output(probabilities=law.clone().requires_grad_(True), epsilon=1.0)
    assert np.array_equal(one.detach().numpy(), OptimalSampler(Simplex(6), epsilon=1.0).output(law.numpy()))


def test_gradients_vanish_where_everything_is_clipped() -> None:
    sure = torch.tensor([[30.0, -30.0, -30.0]], dtype=torch.float64, requires_grad=True)
    (output(logits=sure, epsilon=1.0) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert sure.grad is not None
    assert sure.grad.abs().max() < 1e-12


def test_masked_outcomes_get_no_gradient() -> None:
    """-inf in the reference leaves an outcome out: neither its own logit nor a NaN reaches the others."""
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    public = torch.tensor([0.0, 0.5, -torch.inf, 0.2], dtype=torch.float64)
    (output(logits=logits, reference=public, epsilon=2.0) ** 2).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 2] == 0.0).all()


def test_a_step_along_the_gradient_brings_the_output_nearer_to_a_goal() -> None:
    goal = torch.tensor([0.3, 0.3, 0.2, 0.1, 0.1], dtype=torch.float64)
    logits = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    losses = []
    for _ in range(60):
        loss = ((output(logits=logits, epsilon=3.0) - goal) ** 2).sum()
        losses.append(float(loss.detach()))
        (slope,) = torch.autograd.grad(loss, logits)
        logits = (logits - 3.0 * slope).detach().requires_grad_(True)
    assert losses[-1] < 0.01 * losses[0]


def test_what_has_no_derivative_says_so() -> None:
    logits = torch.randn(2, 3)
    with pytest.raises(DiscreetError, match=r"reference needs gradients.*pass reference\.detach\(\)"):
        output(logits=logits, reference=torch.randn(3, requires_grad=True), epsilon=1.0)
    given = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad((output(logits=given, epsilon=5.0) ** 2).sum(), given, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|does not require grad"):
        slope.sum().backward()


def test_a_sample_of_a_tensor_with_gradients_has_none() -> None:
    """A model's logits record gradients unless told otherwise: they are drawn from as they are, and a whole number has no derivative."""
    logits = torch.randn(20, 5, requires_grad=True)
    found = release(logits=logits, epsilon=1.0)
    assert found.dtype == torch.int64
    assert not found.requires_grad
    assert torch.equal(weights(logits=logits, epsilon=1.0), weights(logits=logits.detach(), epsilon=1.0))
    with pytest.warns(NotPrivateWarning):
        first = release(logits=logits, epsilon=1.0, rng=np.random.default_rng(1))
    with pytest.warns(NotPrivateWarning):
        assert torch.equal(first, release(logits=logits.detach(), epsilon=1.0, rng=np.random.default_rng(1)))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_generator_makes_draws_reproducible_and_warns(kind: str) -> None:
    def seeded(seed: int) -> Any:
        return np.random.default_rng(seed) if kind == "numpy" else torch.Generator().manual_seed(seed)

    logits = torch.zeros(200, 5)
    with pytest.warns(NotPrivateWarning, match="NOT private"):
        first = release(logits=logits, epsilon=1.0, rng=seeded(4))
    with pytest.warns(NotPrivateWarning):
        assert torch.equal(first, release(logits=logits, epsilon=1.0, rng=seeded(4)))
    with pytest.warns(NotPrivateWarning):
        assert not torch.equal(first, release(logits=logits, epsilon=1.0, rng=seeded(5)))
    one = seeded(6)
    with pytest.warns(NotPrivateWarning):
        assert not torch.equal(
            release(logits=logits, epsilon=1.0, rng=one), release(logits=logits, epsilon=1.0, rng=one)
        )
    with pytest.raises(DiscreetError, match="rng = 7 is not a numpy Generator"):
        release(logits=logits, epsilon=1.0, rng=7)


def test_seeded_draws_are_those_of_numpy() -> None:
    laws = np.random.default_rng(0).dirichlet(np.ones(6), size=50)
    with pytest.warns(NotPrivateWarning):
        wanted = OptimalSampler(Simplex(6), epsilon=1.0).release(laws, rng=np.random.default_rng(9))
    with pytest.warns(NotPrivateWarning):
        found = release(probabilities=torch.from_numpy(laws), epsilon=1.0, rng=np.random.default_rng(9))
    assert found.tolist() == np.asarray(wanted).tolist()


def test_numpy_samplers_say_where_tensors_with_gradients_go() -> None:
    given = (torch.ones(3) / 3).requires_grad_(True)
    sampler = OptimalSampler(Simplex(3), epsilon=1.0)
    for use in (sampler.output, sampler.release, sampler.weights):
        with pytest.raises(DiscreetError, match=r"use discreet\.torch\.output, or pass p\.detach\(\)"):
            use(given)
    with pytest.raises(DiscreetError, match=r"p is not an array of real numbers: .*detach\(\)"):
        dc.divergence("kl")(given, given)
