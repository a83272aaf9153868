"""Mollified boosted density estimation (Husain et al. 2020, Algorithm 1), the baseline of the paper's Figures 1 and 4.

In each round a fresh classifier distinguishes P from Q_(t-1), and Q_t ~ Q_(t-1) exp(theta^t c_t), so Q_T is proportional to
Q_0 exp(sum_t theta^t c_t) with bounded c_t. Its privacy follows from the bounds alone, and is stated and measured here, not assumed. With
every c_t in [low, high] and S = theta + ... + theta^T, two clients' output distributions differ by a factor of at most e^(2 S (high - low)):
S (high - low) from the exponents, and as much from the normalisers.

* `published`: c is the classifier's sigmoid, in (0, 1), and theta = eps/(eps + 4). Then 2 S < eps/2: half the budget is never used.
* `corrected`: c is its logit clipped to [-log 2, log 2], and theta = eps/(eps + 4 log 2). Then 2 S 2 log 2 < eps, and tends to it.

The classifiers d -> w -> w -> w -> 1 with tanh are rows of one float32 array: (weights, bias) of each layer in turn, weights by rows, as
torch flattens such a network. Fresh ones are drawn uniformly from +-1/sqrt(inputs of the layer). On a CPU every client has its own thread
and generator (`discreet.research._boosted_compiled`), so its networks depend on its seed alone. On another device all clients are one
batched computation (`discreet.research._boosted_tensors`), and the chains share one generator.

The exact projection that it approximates is `MollifierSampler`. This is a baseline for comparison and releases nothing.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import divergences
from discreet._base import OldName
from discreet._base.quadrature import ORDER
from discreet.divergences import FDivergence
from discreet.errors import (
    OPEN_UNIT,
    POSITIVE,
    DiscreetError,
    check_choice,
    check_count,
    check_kind,
    raise_missing_extra,
)
from discreet.families import (
    LARGEST_CHARTED,
    ContinuousFamily,
    DensityBand,
    Drawable,
    LogDensity,
    Mixture,
    Nodes,
    as_client_densities,
    as_points,
    is_list_of_clients,
    largest_log_ratios,
    log_ratios_at_nodes,
    shape_of_point_values,
    update_mass_errors_and_warn,
)
from discreet.privacy import check_epsilon
from discreet.privacy.tradeoff import warn_of_large_epsilon
from discreet.projection import processor_count

__all__ = ["PRESETS", "BoostedLaw", "BoostedSampler", "Preset", "Training"]

Sampling = Literal["metropolis", "exact"]


@dataclass(frozen=True)
class Preset:
    """A bounded function c of the classifier's logit, and the divisor of theta."""

    name: str
    is_clipped: bool  # the logit clipped to [low, high], or else its sigmoid
    low: float
    high: float
    divisor: float

    def first_round_weight(self, epsilon: float) -> float:
        """The weight theta of the first boosting round: epsilon/(epsilon + divisor)."""
        return epsilon / (epsilon + self.divisor)

    def round_weights(self, epsilon: float, rounds: int) -> list[float]:
        """The weight of each boosting round: theta, theta^2, ..."""
        return [self.first_round_weight(epsilon) ** t for t in range(1, rounds + 1)]

    def largest_pairwise_log_ratio(self, epsilon: float, rounds: int) -> float:
        """The largest possible log-ratio between two clients' output distributions: the budget that is really used."""
        return 2.0 * (self.high - self.low) * sum(self.round_weights(epsilon, rounds))


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("published", is_clipped=False, low=0.0, high=1.0, divisor=4.0),
        Preset("corrected", is_clipped=True, low=-math.log(2.0), high=math.log(2.0), divisor=4.0 * math.log(2.0)),
    )
}


def preset_named(name: str | Preset) -> Preset:
    """The preset "published" or "corrected"; a preset stays as it is."""
    if isinstance(name, Preset):
        return name
    if not isinstance(name, str) or name not in PRESETS:
        raise DiscreetError(f"preset = {name!r} is not one of {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True)
class Training:
    """How each round's classifier is trained, and how Q is sampled for it. The defaults: the paper's Figures 1 and 4.

    Args:
        rounds: of boosting.
        samples: of P and of Q in each round.
        batch: of P and as many of Q.
        epochs: over the samples.
        rate: of learning.
        momentum: of the optimiser.
        width: of the hidden layer.
        burn_in: steps of a Markov chain before its samples are taken.
        sampling: "metropolis" or "exact".

    Raises:
        DiscreetError: for arguments out of range, and a batch that does not divide the samples.
    """

    rounds: int = 3
    samples: int = 10_000
    batch: int = 5_000  # points of P, and as many of Q
    epochs: int = 750
    rate: float = 0.01
    momentum: float = 0.9
    width: int = 25
    burn_in: int = 1_000
    sampling: Sampling = "metropolis"

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "batch", "width"):
            check_count(name, getattr(self, name))
        for name in ("epochs", "burn_in"):
            check_count(name, getattr(self, name), 0)
        if self.samples % self.batch:
            raise DiscreetError(f"batch = {self.batch} does not divide samples = {self.samples}; take one that does")
        POSITIVE.check("rate", self.rate)
        OPEN_UNIT.check("momentum", self.momentum)
        check_choice("sampling", self.sampling, ("metropolis", "exact"))

    def scale_down(self, epochs: int, samples: int, burn_in: int) -> "Training":
        """The same with less training, for a quick preview."""
        return replace(self, epochs=epochs, samples=samples, batch=samples // 2, burn_in=burn_in)

    shortened = OldName("scale_down")


Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_BLOCK = 1 << 14


def layer_shapes(dim: int, width: int) -> list[tuple[int, int]]:
    """The shape (outputs, inputs) of the weights of each layer of the network."""
    return [(width, dim), (width, width), (width, width), (1, width)]


def parameter_count(dim: int, width: int) -> int:
    """The number of weights and biases of one network."""
    return sum(rows * (columns + 1) for rows, columns in layer_shapes(dim, width))


def draw_initial_parameters(dim: int, width: int, rng: np.random.Generator) -> Singles:
    """Draw the random initial parameters of one network, as one row."""
    parts = []
    for rows, columns in layer_shapes(dim, width):
        parts.append(rng.uniform(-1.0, 1.0, rows * (columns + 1)) / math.sqrt(columns))
    return np.concatenate(parts).astype(np.float32)


def network_layers(row: NDArray[np.floating], dim: int, width: int) -> list[tuple[Floats, Floats]]:
    """(weights, bias) of each layer of one network, in float64."""
    layers, offset = [], 0
    flat = row.astype(np.float64)
    for rows, columns in layer_shapes(dim, width):
        weights = flat[offset : offset + rows * columns].reshape(rows, columns)
        offset += rows * columns
        layers.append((weights, flat[offset : offset + rows]))
        offset += rows
    return layers


def logits(row: NDArray[np.floating], x: Floats, width: int) -> Floats:
    """The classifier's log-odds at points (n, dim)."""
    *hidden_layers, (last, shift) = network_layers(row, x.shape[1], width)
    out = np.empty(len(x))
    for start in range(0, len(x), _BLOCK):
        values = x[start : start + _BLOCK]
        for weights, bias in hidden_layers:
            values = np.tanh(values @ weights.T + bias)
        out[start : start + _BLOCK] = (values @ last.T + shift)[:, 0]
    return out


def bounded_logit(logit: Floats, preset: Preset) -> Floats:
    """The bounded logit c: the sigmoid of the logit, or the logit clipped."""
    return np.clip(logit, preset.low, preset.high) if preset.is_clipped else 0.5 + 0.5 * np.tanh(0.5 * logit)


def boosted_density_exponents(
    networks: Singles, weights: Sequence[float], x: Floats, width: int, preset: Preset
) -> Floats:
    """The exponent of the boosted density, sum_t theta^t c_t, at points (n, dim), for the networks (rounds, parameters) of one client."""
    total = np.zeros(len(x))
    for row, weight in zip(networks, weights, strict=False):
        total += weight * bounded_logit(logits(row, x, width), preset)
    return total


Seed = int | Sequence[int]

_GRID = 1 << 14
_REACH = 9.0  # standard deviations: nothing beyond is ever drawn
_TRIES = 10_000


@dataclass(frozen=True)
class Learner:
    """The common part of all clients' networks: the box of the reference N(0, I), preset and training."""

    low: Floats
    high: Floats
    preset: Preset
    training: Training
    device: str = "cpu"

    def train_networks(self, clients: Sequence[LogDensity], weights: Floats, seeds: Sequence[Seed]) -> Singles:
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
            kernels = load_compiled_kernels()
            with ThreadPoolExecutor(processor_count()) as pool:
                jobs = zip(clients, weights, seeds, strict=True)
                return np.stack(list(pool.map(lambda job: self._train_client_networks(kernels, *job), jobs)))
        return self._train_networks_on_device(clients, weights, seeds)

    def _train_client_networks(self, kernels: ModuleType, p: LogDensity, weights: Floats, seed: Seed) -> Singles:
        training, preset, dim = self.training, self.preset, len(self.low)
        rng = np.random.default_rng(seed)
        networks = np.empty((training.rounds, parameter_count(dim, training.width)), np.float32)
        for t in range(training.rounds):
            client_points = self._draw_points_of_client(p, rng)
            if training.sampling == "exact":
                boosted_points = self._draw_boosted_points_by_inversion(
                    networks[:t], weights, rng.random(training.samples)
                )
            else:
                boosted_points = kernels.draw_points_by_metropolis(
                    networks[:t], weights[:t], training.width, preset.is_clipped, preset.high, self.low, self.high,
                    training.samples, training.burn_in + 1, rng,
                )  # fmt: skip
            networks[t] = draw_initial_parameters(dim, training.width, rng)
            kernels.train_client_network_in_place(
                networks[t],
                client_points,
                boosted_points,
                training.width,
                training.epochs,
                training.batch,
                training.rate,
                training.momentum,
            )
        return networks

    def _train_networks_on_device(
        self, clients: Sequence[LogDensity], weights: Floats, seeds: Sequence[Seed]
    ) -> Singles:
        from discreet.research import _boosted_tensors as tensors

        training, dim = self.training, len(self.low)
        rngs = [np.random.default_rng(seed) for seed in seeds]
        networks = np.empty((len(clients), training.rounds, parameter_count(dim, training.width)), np.float32)
        for t in range(training.rounds):
            client_points = np.stack(
                [self._draw_points_of_client(p, rng) for p, rng in zip(clients, rngs, strict=True)]
            )
            earlier_networks = networks[:, :t]
            if training.sampling == "exact":
                uniform = [rng.random(training.samples) for rng in rngs]
                rows = zip(earlier_networks, weights, uniform, strict=True)
                boosted_points = np.stack([self._draw_boosted_points_by_inversion(*row) for row in rows])
            else:
                seed = int(rngs[0].integers(2**62))
                boosted_points = tensors.draw_points_by_metropolis(
                    earlier_networks, weights[:, :t], self.low, self.high, training, self.preset, seed, self.device
                )
            fresh = np.stack([draw_initial_parameters(dim, training.width, rng) for rng in rngs])
            networks[:, t] = tensors.train_networks(fresh, client_points, boosted_points, training, self.device)
        return networks

    def _draw_points_of_client(self, p: LogDensity, rng: np.random.Generator) -> Singles:
        """Points (dim, samples) of P inside the box."""
        assert isinstance(p, Drawable)
        batches, missing = [], self.training.samples
        for _ in range(_TRIES):
            x = p.draw(missing, rng)
            batches.append(x[np.all((x >= self.low) & (x <= self.high), axis=1)])
            missing -= len(batches[-1])
            if not missing:
                return np.ascontiguousarray(np.concatenate(batches).T, dtype=np.float32)
        raise DiscreetError("p has almost no mass inside the family's box; widen the box")

    def _draw_boosted_points_by_inversion(self, networks: Singles, weights: Floats, uniform: Floats) -> Singles:
        """Points (1, samples) of Q_t on an interval by inverting its distribution function on a fine grid."""
        x = np.linspace(max(self.low[0], -_REACH), min(self.high[0], _REACH), _GRID + 1)
        log_density = (
            boosted_density_exponents(networks, weights.tolist(), x[:, None], self.training.width, self.preset)
            - 0.5 * x * x
        )
        density = np.exp(log_density - log_density.max())
        below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        return np.interp(uniform, below / below[-1], x)[None, :].astype(np.float32)


def load_compiled_kernels() -> ModuleType:
    """The numba kernels, or the error that says how to install numba."""
    try:
        from discreet.research import _boosted_compiled as compiled
    except ImportError as missing:
        raise_missing_extra("cli", missing)
    return compiled


_SPLIT = {1: 16, 2: 2, 3: 1}  # finer than for the reference: a clipped logit has kinks


@dataclass(frozen=True, eq=False)
class BoostedLaw:
    """The boosted law of a client, or those of many (then every result has a leading client axis).

    Attributes:
        reference: what the law is boosted from.
        preset: the rule for the weights of rounds.
        width: of the networks.
        clients: their densities.
        many: whether results have a client axis.
        weights: of each client's rounds, (n, rounds).
        networks: of each client's rounds, (n, rounds, parameters).
        nodes: of the quadrature that normalises the law.
    """

    reference: DensityBand
    preset: Preset
    width: int
    clients: tuple[LogDensity, ...]
    many: bool
    weights: Floats  # (n, rounds)
    networks: Singles  # (n, rounds, parameters)
    nodes: Nodes

    @cached_property
    def _density_exponents_at_nodes(self) -> Floats:
        """(n, nodes) of sum_t theta^t c_t."""
        return self._density_exponents_at(self.nodes.x.reshape(-1, self.reference.dim))

    @cached_property
    def _log_normalisers(self) -> Floats:
        masses = self.nodes.masses.ravel()
        return np.asarray(np.log((np.exp(self._density_exponents_at_nodes) * masses).sum(axis=1) / masses.sum()))

    @property
    def _log_relative_at_nodes(self) -> Floats:
        """(n, nodes) of log q/q_0."""
        return self._density_exponents_at_nodes - self._log_normalisers[:, None]

    def _density_exponents_at(self, x: Floats) -> Floats:
        rows = zip(self.networks, self.weights, strict=True)
        return np.stack(
            [boosted_density_exponents(nets, weights.tolist(), x, self.width, self.preset) for nets, weights in rows]
        )

    def log_relative(self, x: ArrayLike) -> Floats:
        """log q/q_0 at points (n,) in one dimension or (n, dim)."""
        points = as_points(x, self.reference.dim)
        log_ratios = self._density_exponents_at(points) - self._log_normalisers[:, None]
        shape = shape_of_point_values(x, self.reference.dim)
        return log_ratios.reshape((len(log_ratios), *shape)) if self.many else log_ratios.reshape(shape)

    def pdf(self, x: ArrayLike) -> Floats:
        """The density q at points (n,) in one dimension or (n, dim); normalised by quadrature."""
        return np.asarray(np.exp(self.log_relative(x)) * self.reference.pdf(x))

    @property
    def largest_log_ratio(self) -> float | Floats:
        """The largest |log q/q_0| on the nodes: the budget that each distribution spends at least (a ball of radius epsilon/2 allows
        epsilon/2).
        """
        return self._scalar_if_one_client(np.abs(self._log_relative_at_nodes).max(axis=1))

    @property
    def largest_pairwise_log_ratio(self) -> float:
        """The largest |log q/q'| on the nodes between any two of these clients' output distributions."""
        log_ratios = self._log_relative_at_nodes
        return float((log_ratios.max(axis=0) - log_ratios.min(axis=0)).max())

    def divergence(self, name: str | FDivergence) -> float | Floats:
        """D_f(P||Q) by quadrature, P restricted to the box; warns of a client whose mass the nodes miss."""
        masses = self.nodes.masses.ravel()
        log_ratio = log_ratios_at_nodes(self.clients, self.nodes).reshape(len(self.clients), -1)
        shift = largest_log_ratios(log_ratio)
        p = np.exp(log_ratio - shift[:, None]) * masses
        update_mass_errors_and_warn(self.reference, self.clients, shift + np.log(p.sum(axis=1)), np.zeros(len(p)))
        q = np.exp(self._density_exponents_at_nodes) * masses
        f = divergences.divergence(name)
        return self._scalar_if_one_client(
            np.asarray(f(p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)))
        )

    def _scalar_if_one_client(self, values: Floats) -> float | Floats:
        return values if self.many else float(values[0])


@final
class BoostedSampler:
    """Husain et al.'s Algorithm 1 around N(0, I) restricted to the family's box.

    Training draws from seeded generators: nothing here is private but the law.

    Args:
        family: a continuous family in few dimensions.
        epsilon: the budget of one release.
        preset: "published" (as run for the paper's Figures 1 and 4) or "corrected".
        training: how much.
        device: "cpu" or a torch device.

    Raises:
        DiscreetError: for another family, and for arguments out of range.
    """

    def __init__(
        self,
        family: ContinuousFamily,
        *,
        epsilon: float,
        preset: str | Preset = "published",
        training: Training | None = None,
        device: str = "cpu",
    ) -> None:
        if not isinstance(family, ContinuousFamily) or family.dim > LARGEST_CHARTED:
            raise DiscreetError(
                f"family = {family!r}: boosting is for continuous families in up to {LARGEST_CHARTED} dimensions"
            )
        self.family = family
        self.epsilon = check_epsilon(epsilon)
        warn_of_large_epsilon(self.epsilon)
        self.preset = preset_named(preset)
        self.training = Training() if training is None else training
        check_kind("training", self.training, Training, "pass Training(...), or leave it out")
        self.device = device

    @property
    def weights(self) -> list[float]:
        """theta, theta^2, ..."""
        return self.preset.round_weights(self.epsilon, self.training.rounds)

    @property
    def largest_log_ratio(self) -> float:
        """The largest possible log-ratio between two clients' output distributions: the epsilon that is really used."""
        return self.preset.largest_pairwise_log_ratio(self.epsilon, self.training.rounds)

    @cached_property
    def reference(self) -> DensityBand:
        """Q_0 as a family, for its density and nodes."""
        box = getattr(self.family, "box", None)
        return DensityBand(Mixture([1.0], np.zeros((1, self.family.dim))), box, lower=0.0, upper=2.0)

    @cached_property
    def learner(self) -> Learner:
        """The learner, also for clients of several budgets at once."""
        low, high = np.ascontiguousarray(np.array(self.reference.box).T)  # one layout, one compiled kernel
        return Learner(low, high, self.preset, self.training, self.device)

    def output(self, p: Any, *, seeds: Sequence[Seed] | None = None) -> BoostedLaw:
        """The learnt distribution of a client, or of each of a list. `seeds` fix the training of each; by default 0, 1, ..."""
        clients = as_client_densities(p, self.family)
        client_seeds: Sequence[Seed] = range(len(clients)) if seeds is None else seeds
        if len(client_seeds) != len(clients):
            raise DiscreetError(f"seeds has {len(client_seeds)} entries for {len(clients)} clients; give one for each")
        weights = np.tile(self.weights, (len(clients), 1))
        return self.law(
            clients, self.learner.train_networks(clients, weights, client_seeds), many=is_list_of_clients(p)
        )

    def law(self, clients: Sequence[LogDensity], networks: Singles, *, many: bool = True) -> BoostedLaw:
        """The distributions of given networks (n, rounds, parameters)."""
        weights = np.tile(self.weights, (len(clients), 1))
        return BoostedLaw(
            self.reference,
            self.preset,
            self.training.width,
            tuple(clients),
            many,
            weights,
            networks,
            self._quadrature_nodes,
        )

    @cached_property
    def _quadrature_nodes(self) -> Nodes:
        dim = self.family.dim
        return self.reference.nodes_of_panels(self.reference.panels.split_every_panel(_SPLIT[dim]), ORDER[dim])

    def __repr__(self) -> str:
        return f"BoostedSampler({self.family!r}, epsilon={self.epsilon:g}, preset={self.preset.name!r})"
