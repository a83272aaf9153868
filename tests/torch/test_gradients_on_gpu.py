"""The derivative of `output` on CUDA tensors: finite differences, the host's numbers, and seeded draws. Needs a GPU, so it is for a soak."""

from typing import Any

import numpy as np
import pytest
import torch

from discreet import NotPrivateWarning
from discreet.torch import output, release
from tests.needed import cannot_run
from tests.torch.test_gradients import check_finite_differences

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def gpu() -> None:
    if not torch.cuda.is_available():
        cannot_run("torch.cuda.is_available() is false: these tests need a GPU and torch's CUDA build")


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("with_reference", [False, True])
def test_gradients_are_those_of_finite_differences_on_a_thousand_laws(kind: str, with_reference: bool) -> None:
    check_finite_differences(1_000, kind, with_reference=with_reference, device="cuda")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("outcomes", [8, 1_000, 32_768])
def test_gradients_are_those_of_the_host(dtype: torch.dtype, outcomes: int) -> None:
    """Rows, weights and gradients cross the bus without a change of the result; they come back on the rows' device, in their dtype."""
    generator = torch.Generator().manual_seed(outcomes)
    logits = (2 * torch.randn(50, outcomes, generator=generator)).to(dtype)
    weights = torch.randn(outcomes, generator=generator).to(dtype)

    def run(device: str) -> tuple[Any, Any]:
        given = logits.to(device, copy=True).requires_grad_(True)
        found = output(logits=given, epsilon=2.0)
        assert (found.device.type, found.dtype) == (device, dtype)
        (found * weights.to(device)).sum().backward()
        assert given.grad is not None
        assert (given.grad.device.type, given.grad.dtype) == (device, dtype)
        return found.detach().cpu(), given.grad.cpu()

    (law, slope), (host_law, host_slope) = run("cuda"), run("cpu")
    assert torch.equal(law, host_law)
    largest = float(host_slope.abs().max())
    assert largest > 0.0
    rounding = 8 * torch.finfo(dtype).eps  # sums run in another order there
    assert torch.allclose(slope, host_slope, rtol=rounding, atol=rounding * largest)


def test_the_kernels_and_the_differentiable_output_describe_one_law() -> None:
    """Without gradients float32 rows take the GPU's kernels, with gradients the host's float64: within 1e-5 of each other, as documented."""
    logits = torch.randn(200, 1_000, device="cuda")
    by_kernels = output(logits=logits, epsilon=2.0)
    differentiable = output(logits=logits.clone().requires_grad_(True), epsilon=2.0).detach()
    assert 0.5 * float((by_kernels.double() - differentiable.double()).abs().sum(1).max()) < 1e-5


def test_seeded_draws_are_reproducible_and_warn() -> None:
    logits = torch.randn(2_000, 50, device="cuda", requires_grad=True)
    for seeded in (np.random.default_rng, lambda seed: torch.Generator("cuda").manual_seed(seed)):
        with pytest.warns(NotPrivateWarning):
            first = release(logits=logits, epsilon=1.0, rng=seeded(4))
        with pytest.warns(NotPrivateWarning):
            assert torch.equal(first, release(logits=logits, epsilon=1.0, rng=seeded(4)))
        with pytest.warns(NotPrivateWarning):
            assert not torch.equal(first, release(logits=logits, epsilon=1.0, rng=seeded(5)))
        assert first.is_cuda
        assert not first.requires_grad
