"""The output as a JAX function: numpy's to 1e-12, compiled and mapped, with the derivative of finite differences.

`test_jax.py` runs this file in a process of its own: once JAX is imported, a fork of the process warns, and other tests fork.
"""

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError, Simplex
from discreet.projection.jax import output_function
from tests.soaking import wide

jax: Any = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp: Any = jax.numpy


def clients(k: int, number: int = 400) -> Any:
    rng = np.random.default_rng(k)
    spread = rng.dirichlet(np.ones(k), size=number // 2)
    narrow = rng.dirichlet(np.full(k, 0.1), size=number // 2)
    return np.vstack([np.eye(k), np.full((1, k), 1 / k), spread, narrow])


SAMPLERS: list[Any] = [
    *(dc.OptimalSampler(Simplex(k), epsilon=e) for k, e in ((2, 1.0), (5, 0.1), (40, 1.0), (40, 6.0), (5, 1.0))),
    dc.LinearSampler(Simplex(5), epsilon=1.0),
    dc.MollifierSampler(Simplex(6), epsilon=1.0, reference=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]),
    dc.OptimalSampler(Simplex(5).spread(2.0), epsilon=1.0),
    dc.OptimalSampler(dc.Band([4, 3, 2, 1], lower=0.0, upper=2.0, any_client=True), epsilon=0.5),
    dc.OptimalSampler(Simplex(4), privacy=dc.Gaussian(1.0)),
]


@pytest.mark.parametrize("sampler", wide(SAMPLERS, [SAMPLERS[2], SAMPLERS[6], SAMPLERS[8], SAMPLERS[9]]), ids=repr)
def test_it_is_what_numpy_computes(sampler: Any) -> None:
    laws = clients(sampler.family.size)
    found = np.asarray(jax.jit(output_function(sampler))(jnp.asarray(laws)))
    assert np.abs(found - sampler.output(laws)).max() < 1e-12


def test_it_is_mapped_and_called_without_a_compiler() -> None:
    laws, function = clients(5, 20), output_function(SAMPLERS[4])
    wanted = SAMPLERS[4].output(laws)
    assert np.abs(np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(laws))) - wanted).max() < 1e-12
    assert np.abs(np.asarray(function(jnp.asarray(laws[7]))) - wanted[7]).max() < 1e-12


@pytest.mark.parametrize("sampler", wide([SAMPLERS[4], SAMPLERS[6], SAMPLERS[7]], [SAMPLERS[6]]), ids=repr)
def test_its_derivative_is_that_of_finite_differences(sampler: Any) -> None:
    k = sampler.family.size
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(k), size=1_000)
    weights, along = jnp.asarray(rng.normal(size=k)), rng.normal(size=laws.shape)
    along = (along - along.mean(axis=1, keepdims=True)) * laws.min(axis=1, keepdims=True)
    function = output_function(sampler)

    def value(p: Any) -> Any:
        return (function(p) * weights).sum(-1)

    slopes = np.asarray(
        jax.jit(jax.vmap(jax.grad(value)))(jnp.asarray(laws))
    )  # compiled whole, not operation by operation
    found = (slopes * along).sum(axis=1)
    compiled = jax.jit(value)

    def difference(step: float) -> Any:
        above, below = compiled(jnp.asarray(laws + step * along)), compiled(jnp.asarray(laws - step * along))
        return np.asarray(above - below) / (2 * step)

    coarse, fine = difference(1e-4), difference(1e-5)
    smooth = np.abs(coarse - fine) <= 1e-6 * (1 + np.abs(fine))
    assert smooth.mean() > 0.97
    assert np.abs(found - fine)[smooth].max() < 1e-6


def test_other_mechanisms_are_refused() -> None:
    with pytest.raises(DiscreetError, match="does not project onto a box"):
        output_function(dc.TransportSampler([0, 1, 5], epsilon=1.0))
    with pytest.raises(DiscreetError, match="does not project onto a box"):
        output_function(Simplex(3))  # type: ignore[arg-type]
    with pytest.raises(DiscreetError, match="is on a continuous family"):
        output_function(dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0))


def test_a_tracer_gets_the_sentence_that_helps() -> None:
    sampler = dc.OptimalSampler(Simplex(3), epsilon=1.0)
    for use in (sampler.output, sampler.release, sampler.weights):
        with pytest.raises(DiscreetError, match=r"output_function\(sampler\), and release outside of it"):
            jax.jit(use)(jnp.ones(3) / 3)
