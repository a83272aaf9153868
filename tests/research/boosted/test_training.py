"""The compiled training, the batched one and torch's own autograd and SGD are one computation."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch.optim.sgd import sgd

import discreet as dc
from discreet.research import _boosted as networks, _boosted_compiled as compiled, _boosted_tensors as tensors
from discreet.research._boosted import PRESETS, BoostedSampler, Learner, Training

SMALL = Training(epochs=12, samples=600, batch=300, burn_in=40)
PLAIN: Any = {"weight_decay": 0.0, "dampening": 0.0, "maximize": False, "foreach": False}
INTERVAL = (np.array([-4.0]), np.array([4.0]))


def points(dim: int, clients: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(dim)
    fresh = np.stack([networks.draw_initial_parameters(dim, SMALL.width, rng) for _ in range(clients)])
    p = (0.5 + rng.standard_normal((clients, dim, SMALL.samples))).astype(np.float32)
    return fresh, p, rng.standard_normal(p.shape).astype(np.float32)


def trained_by_autograd(row: Any, p: Any, q: Any) -> Any:
    dim, w = len(p), SMALL.width
    stack: list[Any] = []
    for inputs in (dim, w, w):
        stack += [torch.nn.Linear(inputs, w), torch.nn.Tanh()]
    network = torch.nn.Sequential(*stack, torch.nn.Linear(w, 1), torch.nn.Sigmoid())
    torch.nn.utils.vector_to_parameters(torch.tensor(row), network.parameters())
    parameters, moving = list(network.parameters()), [None] * len(list(network.parameters()))
    terms: Any = {"lr": SMALL.rate, "momentum": SMALL.momentum, "nesterov": True}
    label = torch.cat([torch.ones(SMALL.batch), torch.zeros(SMALL.batch)])[:, None]
    for _ in range(SMALL.epochs):
        for start in range(0, SMALL.samples, SMALL.batch):
            rows = slice(start, start + SMALL.batch)
            network.zero_grad()
            x = torch.tensor(np.concatenate([p[:, rows], q[:, rows]], axis=1).T)
            torch.nn.functional.binary_cross_entropy(network(x), label).backward()
            with torch.no_grad():  # what `torch.optim.SGD` does in a step; the class would import a compiler first
                sgd(parameters, [each.grad for each in parameters], moving, **terms, **PLAIN)
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2])
def test_three_ways_of_training_agree(dim: int) -> None:
    fresh, p, q = points(dim)
    batched = tensors.train_networks(fresh, p, q, SMALL, "cpu")
    moved = np.abs(batched - fresh).max()
    assert moved > 0.01
    for i, row in enumerate(fresh):
        alone = row.copy()
        compiled.train_client_network_in_place(
            alone, p[i], q[i], SMALL.width, SMALL.epochs, SMALL.batch, SMALL.rate, SMALL.momentum
        )
        np.testing.assert_allclose(alone, batched[i], atol=1e-5 * moved)
        np.testing.assert_allclose(alone, trained_by_autograd(row, p[i], q[i]), atol=1e-5 * moved)


def test_the_activation_is_tanh() -> None:
    x = np.linspace(-20.0, 20.0, 200_001).astype(np.float32)
    found = np.empty_like(x)
    compiled.write_tanh_of_row(x, found)
    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)), rtol=6e-7)


@pytest.mark.parametrize("dim", [1, 2])
def test_the_network_is_the_same_in_every_place(dim: int) -> None:
    fresh, p, _ = points(dim, clients=1)
    exact = networks.logits(fresh[0], p[0].T.astype(np.float64), SMALL.width)
    np.testing.assert_allclose(compiled.logits(fresh[0], p[0], SMALL.width), exact, atol=2e-6)
    layers = tensors.layer_views(torch.tensor(fresh), dim, SMALL.width)
    np.testing.assert_allclose(tensors.logits(layers, torch.tensor(p))[0].numpy(), exact, atol=2e-6)


def strong_network(dim: int) -> Any:
    """A network that is far from constant, so that Q_1 is far from Q_0."""
    row = networks.draw_initial_parameters(dim, SMALL.width, np.random.default_rng(5))
    return (4.0 * row).astype(np.float32)


def inverted(count: int, preset: str) -> NDArray[np.float64]:
    learner = Learner(*INTERVAL, PRESETS[preset], Training(samples=count, batch=count, sampling="exact"))
    uniform = (np.arange(count) + 0.5) / count
    return np.asarray(
        learner._draw_boosted_points_by_inversion(strong_network(1)[None], np.array([3.0]), uniform)[0],
        dtype=np.float64,
    )


@pytest.mark.parametrize("preset", list(PRESETS))
def test_inverse_transform_draws_from_the_law(preset: str) -> None:
    """Evenly spread uniforms give points whose distribution function is that of the density, integrated independently."""
    x = np.linspace(-4.0, 4.0, 40_001)
    density = np.exp(
        networks.boosted_density_exponents(strong_network(1)[None], [3.0], x[:, None], SMALL.width, PRESETS[preset])
        - 0.5 * x * x
    )
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    drawn = inverted(5_000, preset)
    np.testing.assert_allclose(np.interp(drawn, x, below / below[-1]), (np.arange(5_000) + 0.5) / 5_000, atol=2e-5)
    plain = np.interp(drawn, x, stats.norm.cdf(x))
    assert stats.kstest(plain, "uniform").pvalue < 1e-6, "the network changes nothing: the test would be empty"


@pytest.mark.parametrize("preset", list(PRESETS))
def test_chains_draw_from_the_law(preset: str) -> None:
    exact, weights, count = inverted(20_000, preset), np.array([3.0]), 2_500
    chosen = PRESETS[preset]
    walked = compiled.draw_points_by_metropolis(
        strong_network(1)[None],
        weights,
        SMALL.width,
        chosen.is_clipped,
        chosen.high,
        *INTERVAL,
        count,
        100,
        np.random.default_rng(1),
    )[0]
    training = Training(samples=count, batch=count, burn_in=100)
    batched = tensors.draw_points_by_metropolis(
        strong_network(1)[None, None], weights[None], *INTERVAL, training, chosen, 1, "cpu"
    )[0, 0]
    for found in (walked, batched):
        assert stats.ks_2samp(found, exact).pvalue > 1e-4
        assert np.abs(found).max() <= 4.0


def test_chains_in_the_plane_draw_from_the_law() -> None:
    """Against importance weights: the mean of cos(x + 2 y) under Q_1."""
    chosen, row = PRESETS["corrected"], strong_network(2)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((200_000, 2))
    weight = np.exp(networks.boosted_density_exponents(row[None], [2.0], x, SMALL.width, chosen))
    value = np.cos(x[:, 0] + 2.0 * x[:, 1])
    expected = float((weight * value).sum() / weight.sum())
    low, high = np.full(2, -np.inf), np.full(2, np.inf)
    training = Training(samples=6_000, batch=6_000, burn_in=60)
    walked = compiled.draw_points_by_metropolis(
        row[None], np.array([2.0]), SMALL.width, True, chosen.high, low, high, 6_000, 61, rng
    )
    batched = tensors.draw_points_by_metropolis(
        row[None, None], np.array([[2.0]]), low, high, training, chosen, 3, "cpu"
    )[0]
    for found in (walked, batched):
        mean = float(np.cos(found[0] + 2.0 * found[1]).mean())
        assert abs(mean - expected) < 5.0 / math.sqrt(6_000)


def test_a_client_does_not_depend_on_who_is_trained_beside_it() -> None:
    family = dc.GaussianMixtures(1, box=(-4.0, 4.0))
    clients = [dc.Mixture([1.0], [centre]) for centre in (-0.5, 0.9)]
    sampler = BoostedSampler(family, epsilon=2.0, training=SMALL)
    both = sampler.output(clients, seeds=[11, 12]).networks
    alone = sampler.output(clients[1], seeds=[12]).networks
    assert (both[1] == alone[0]).all()
    assert (both[0] != both[1]).any()


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    sampler = BoostedSampler(dc.GaussianMixtures(1, box=(-4.0, 4.0)), epsilon=1.0, training=SMALL, device="cuda")
    with pytest.raises(dc.DiscreetError, match="sees no CUDA device"):
        sampler.output(dc.Mixture([1.0], [0.0]))


def test_a_device_of_another_kind_is_refused() -> None:
    with pytest.raises(dc.DiscreetError, match="device = 'tpu' is neither cpu nor cuda"):
        tensors.require_torch_device("tpu")
