"""Algorithm 1 of Husain et al.: round after round a fresh classifier tells P from Q_(t-1), and Q_t ~ Q_(t-1) exp(theta^t c_t).

Every client is learnt at once. On a CPU each has a thread and a generator of its own (`compiled`), so its networks depend on its
seed alone; on another device all are one batched computation (`tensors`), and the chains share one generator.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from discreet.errors import DiscreetError, need_extra
from discreet.families._densities import Drawable, LogDensity
from discreet.projection._threads import processor_count
from discreet.research._boosted._networks import Floats, Singles, boost, fresh_network, parameter_count
from discreet.research._boosted._presets import Preset, Training

Seed = int | Sequence[int]

_GRID = 1 << 14
_REACH = 9.0  # of a standard normal: nothing beyond it is ever drawn
_TRIES = 10_000


@dataclass(frozen=True)
class Learner:
    """What the networks of all clients have in common: the box the reference N(0, I) is restricted to, preset and training."""

    low: Floats
    high: Floats
    preset: Preset
    training: Training
    device: str = "cpu"

    def networks(self, clients: Sequence[LogDensity], weights: Floats, seeds: Sequence[Seed]) -> Singles:
        """(n, rounds, parameters) for n clients with boosting weights (n, rounds)."""
        if self.training.sampling == "exact" and len(self.low) != 1:
            raise DiscreetError(
                f"sampling = 'exact' inverts a distribution function: one dimension, not {len(self.low)}"
            )
        for p in clients:
            if not isinstance(p, Drawable):
                raise DiscreetError(
                    f"p = {type(p).__name__} cannot draw from itself; boosting learns from samples: pass a Mixture"
                )
        if self.device == "cpu":
            kernels = compiled_kernels()
            with ThreadPoolExecutor(processor_count()) as pool:
                jobs = zip(clients, weights, seeds, strict=True)
                return np.stack(list(pool.map(lambda job: self._one(kernels, *job), jobs)))
        return self._all(clients, weights, seeds)

    def _one(self, kernels: ModuleType, p: LogDensity, weights: Floats, seed: Seed) -> Singles:
        training, preset, dim = self.training, self.preset, len(self.low)
        rng = np.random.default_rng(seed)
        found = np.empty((training.rounds, parameter_count(dim, training.width)), np.float32)
        for t in range(training.rounds):
            held = self._draw_points(p, rng)
            if training.sampling == "exact":
                own = self._points_by_inversion(found[:t], weights, rng.random(training.samples))
            else:
                own = kernels.walk(
                    found[:t], weights[:t], training.width, preset.clipped, preset.high, self.low, self.high,
                    training.samples, training.burn_in + 1, rng,
                )  # fmt: skip
            found[t] = fresh_network(dim, training.width, rng)
            kernels.train(
                found[t], held, own, training.width, training.epochs, training.batch, training.rate, training.momentum
            )
        return found

    def _all(self, clients: Sequence[LogDensity], weights: Floats, seeds: Sequence[Seed]) -> Singles:
        from discreet.research._boosted import _tensors as tensors

        training, dim = self.training, len(self.low)
        rngs = [np.random.default_rng(seed) for seed in seeds]
        found = np.empty((len(clients), training.rounds, parameter_count(dim, training.width)), np.float32)
        for t in range(training.rounds):
            held = np.stack([self._draw_points(p, rng) for p, rng in zip(clients, rngs, strict=True)])
            so_far = found[:, :t]
            if training.sampling == "exact":
                uniform = [rng.random(training.samples) for rng in rngs]
                rows = zip(so_far, weights, uniform, strict=True)
                own = np.stack([self._points_by_inversion(*row) for row in rows])
            else:
                seed = int(rngs[0].integers(2**62))
                own = tensors.walk_chains(
                    so_far, weights[:, :t], self.low, self.high, training, self.preset, seed, self.device
                )
            fresh = np.stack([fresh_network(dim, training.width, rng) for rng in rngs])
            found[:, t] = tensors.train_networks(fresh, held, own, training, self.device)
        return found

    def _draw_points(self, p: LogDensity, rng: np.random.Generator) -> Singles:
        """Points (dim, samples) of P inside the box."""
        assert isinstance(p, Drawable)
        kept, missing = [], self.training.samples
        for _ in range(_TRIES):
            x = p.draw(missing, rng)
            kept.append(x[np.all((x >= self.low) & (x <= self.high), axis=1)])
            missing -= len(kept[-1])
            if not missing:
                return np.ascontiguousarray(np.concatenate(kept).T, dtype=np.float32)
        raise DiscreetError("p has almost no mass inside the family's box; widen the box")

    def _points_by_inversion(self, networks: Singles, weights: Floats, uniform: Floats) -> Singles:
        """Points (1, samples) of Q_t on an interval by inverting its distribution function on a fine grid."""
        x = np.linspace(max(self.low[0], -_REACH), min(self.high[0], _REACH), _GRID + 1)
        log_density = boost(networks, weights.tolist(), x[:, None], self.training.width, self.preset) - 0.5 * x * x
        density = np.exp(log_density - log_density.max())
        below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        return np.interp(uniform, below / below[-1], x)[None, :].astype(np.float32)


def compiled_kernels() -> ModuleType:
    """The numba kernels, or the line that installs numba."""
    try:
        from discreet.research._boosted import _compiled as compiled
    except ImportError as missing:
        need_extra("cli", missing)
    return compiled
