"""Mollified boosted density estimation: a law near P inside Husain et al.'s ball around Q_0, learnt from samples of P.

Q_T is proportional to Q_0 exp(sum_t theta^t c_t) with bounded c_t, so its privacy follows from the bounds alone, and is stated and
measured here, not assumed (`discreet.research._boosted._presets`). The exact projection that it stands in for is
`MollifierSampler`. It is a baseline to compare with: laws to look at, nothing to release.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from discreet import divergences
from discreet._quadrature import ORDER
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_kind
from discreet.families import ContinuousFamily, DensityBand, Mixture
from discreet.families._clients import as_clients, is_many, largest_log_ratios, log_ratios
from discreet.families._continuous import LARGEST_CHARTED, Nodes
from discreet.families._densities import LogDensity, as_points, shape_of_points
from discreet.families._seen import warn_of_unresolved_masses
from discreet.privacy._pure import check_epsilon
from discreet.research._boosted._learning import Learner, Seed
from discreet.research._boosted._networks import Floats, Singles, boost
from discreet.research._boosted._presets import Preset, Training, preset_named
from discreet.tradeoff import warn_of_large_epsilon

_SPLIT = {1: 16, 2: 2, 3: 1}  # finer than the reference needs: a clipped logit has kinks


@dataclass(frozen=True, eq=False)
class BoostedLaw:
    """The boosted law of a client, or those of many (then every result has a leading client axis)."""

    reference: DensityBand
    preset: Preset
    width: int
    clients: tuple[LogDensity, ...]
    many: bool
    weights: Floats  # (n, rounds)
    networks: Singles  # (n, rounds, parameters)
    nodes: Nodes

    @cached_property
    def _boosts(self) -> Floats:
        """(n, nodes) of sum_t theta^t c_t."""
        return self._boosts_at(self.nodes.x.reshape(-1, self.reference.dim))

    @cached_property
    def _log_normalisers(self) -> Floats:
        masses = self.nodes.masses.ravel()
        return np.asarray(np.log((np.exp(self._boosts) * masses).sum(axis=1) / masses.sum()))

    def _boosts_at(self, x: Floats) -> Floats:
        rows = zip(self.networks, self.weights, strict=True)
        return np.stack([boost(nets, weights.tolist(), x, self.width, self.preset) for nets, weights in rows])

    def log_relative(self, x: ArrayLike) -> Floats:
        """log q/q_0 at points (n,) in one dimension or (n, dim)."""
        points = as_points(x, self.reference.dim)
        found = self._boosts_at(points) - self._log_normalisers[:, None]
        shape = shape_of_points(x, self.reference.dim)
        return found.reshape((len(found), *shape)) if self.many else found.reshape(shape)

    def pdf(self, x: ArrayLike) -> Floats:
        """The density q at points (n,) in one dimension or (n, dim); normalised by quadrature."""
        return np.asarray(np.exp(self.log_relative(x)) * self.reference.pdf(x))

    @property
    def largest_log_ratio(self) -> float | Floats:
        """The largest |log q/q_0| on the nodes: at least so much each law really spends (a ball of radius epsilon/2 allows epsilon/2)."""
        return self._each(np.abs(self._boosts - self._log_normalisers[:, None]).max(axis=1))

    @property
    def largest_pairwise_log_ratio(self) -> float:
        """The largest |log q/q'| on the nodes between any two of these clients' laws."""
        found = self._boosts - self._log_normalisers[:, None]
        return float((found.max(axis=0) - found.min(axis=0)).max())

    def divergence(self, name: str | FDivergence) -> float | Floats:
        """D_f(P||Q) by quadrature, P restricted to the box; warns of a client whose mass the nodes did not see."""
        masses = self.nodes.masses.ravel()
        log_ratio = log_ratios(self.clients, self.nodes).reshape(len(self.clients), -1)
        shift = largest_log_ratios(log_ratio)
        p = np.exp(log_ratio - shift[:, None]) * masses
        warn_of_unresolved_masses(self.reference, self.clients, shift + np.log(p.sum(axis=1)), np.zeros(len(p)))
        q = np.exp(self._boosts) * masses
        f = divergences.divergence(name)
        return self._each(np.asarray(f(p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True))))

    def _each(self, values: Floats) -> float | Floats:
        return values if self.many else float(values[0])


@final
class BoostedSampler:
    """Husain et al.'s Algorithm 1 around N(0, I) restricted to the family's box.

    `preset` is "published" (as run for the paper's Figures 1 and 4) or "corrected"; `training` says how much; `device` is "cpu"
    or a torch device. Training draws from seeded generators: nothing here is private but the law.
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
        return self.preset.weights(self.epsilon, self.training.rounds)

    @property
    def largest_log_ratio(self) -> float:
        """What any two clients' laws can differ by at most: the epsilon that is really used."""
        return self.preset.largest_log_ratio(self.epsilon, self.training.rounds)

    @cached_property
    def reference(self) -> DensityBand:
        """Q_0 as a family of its own, for its density and nodes."""
        box = getattr(self.family, "box", None)
        return DensityBand(Mixture([1.0], np.zeros((1, self.family.dim))), box, lower=0.0, upper=2.0)

    @cached_property
    def learner(self) -> Learner:
        """What trains: also for clients of several budgets at once."""
        low, high = np.ascontiguousarray(np.array(self.reference.box).T)  # one layout, one compiled kernel
        return Learner(low, high, self.preset, self.training, self.device)

    def output(self, p: Any, *, seeds: Sequence[Seed] | None = None) -> BoostedLaw:
        """The law learnt for a client, or for each of a list. `seeds` decide the training of each; by default 0, 1, ..."""
        clients = as_clients(p, self.family)
        chosen: Sequence[Seed] = range(len(clients)) if seeds is None else seeds
        if len(chosen) != len(clients):
            raise DiscreetError(f"seeds has {len(chosen)} entries for {len(clients)} clients; give one for each")
        weights = np.tile(self.weights, (len(clients), 1))
        return self.law(clients, self.learner.networks(clients, weights, chosen), many=is_many(p))

    def law(self, clients: Sequence[LogDensity], networks: Singles, *, many: bool = True) -> BoostedLaw:
        """The laws that given networks (n, rounds, parameters) stand for."""
        weights = np.tile(self.weights, (len(clients), 1))
        return BoostedLaw(
            self.reference, self.preset, self.training.width, tuple(clients), many, weights, networks, self._nodes
        )

    @cached_property
    def _nodes(self) -> Nodes:
        dim = self.family.dim
        return self.reference.nodes_of(self.reference.panels.split(_SPLIT[dim]), ORDER[dim])

    def __repr__(self) -> str:
        return f"BoostedSampler({self.family!r}, epsilon={self.epsilon:g}, preset={self.preset.name!r})"
