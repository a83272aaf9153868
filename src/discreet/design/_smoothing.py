"""`design(smoothing="auto")`: designs from few examples, by rules that use the examples alone.

Few examples miss rare clients. So a part of the weight goes to **redrawn** examples, and a part to the k point masses. A redrawn example
keeps the shares of an example, and gives them to outcomes drawn anew by their popularity among the examples. Cross-validation on the examples
chooses the size of these parts. The better of Q* and the best uniform floor stays unless the design serves the held-out examples better by
more than one standard error.

**Fewer examples than e^eps** cannot judge each other. An outcome deserves the largest possible floor, e^-eps, as soon as one client in e^eps
/ P(x is outside a client's support) is sure of it, and fewer examples do not show clients that rare. (A client who is sure of x pays
-log(e^eps m_x). A smaller m_x saves the clients without x as much as it is smaller, so the best e^eps m_x is the least of 1 and e^eps P(sure
of x)/P(x is not in the support).)

A model then replaces the examples. Nearly all of the weight goes to redrawn examples. Those that are sure of one outcome are counted instead
of drawn, each outcome by its popularity, a twelfth of which is spread evenly. Every point mass weighs a sixteenth of the weight that would
give its outcome the largest floor. No example can tell whether the model is right. So where four times the floor that the largest share seen
would need, up to the largest possible, exceeds the model's floor, the outcome's floor is halfway between the two. The mean is convex in the
floor, so half the way has at least half of the gain, or at most half of the loss.

A design by parts replaces the model's if held-out examples favour it by two standard errors of mean KL, TV and squared Hellinger alike, and
ten of them or more pay 0.1 in KL for it. The last condition is needed because a mean without rare clients has too small a standard error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import divergences
from discreet._base import OldName
from discreet.design._floors import band_of_floor
from discreet.divergences import FDivergence, divergence
from discreet.families import Band, FiniteFamily, Simplex
from discreet.mechanisms import OptimalSampler, Sampler

if TYPE_CHECKING:
    from discreet.design._designs import Design

Floats = NDArray[np.float64]
BandSampler = OptimalSampler[Band[Any]]
Rule = Callable[[Floats, Floats], BandSampler]  # from examples (n, k) and their weights (n,)

JUDGES = ("kl", "tv", "hellinger")
# shares of the weight: redrawn examples, point masses
PARTS = ((0.01, 0.0), (0.1, 0.0), (0.3, 0.0), (0.1, 0.001), (0.1, 0.003))
FOLDS = 3
ENOUGH = 1000  # redrawn examples, or as many as there are examples
SPREADS = 25
KEEP_SMOOTHED = 0.001
MODEL = 0.95  # share of the weight: redrawn examples, if there are too few examples to judge
STRAY = 0.08  # share of their popularity that is spread evenly
ANYBODY = 1.0 / 16.0  # a point mass's weight, as a share of the largest weight that matters
MARGIN = 4.0  # times the largest share of an outcome that an example has
HALF = 0.5
SURELY = 2.0  # standard errors
SURE = 1.0 - 1e-9
SEEN, PAYING = 10, 0.1  # this many examples that pay this much more make a standard error credible
LARGEST_SMOOTHED = 1 << 22  # examples times outcomes


@dataclass(frozen=True)
class Smoothing:
    """How a design was smoothed, and its result on held-out examples.

    Attributes:
        rule: "parts": redrawn examples and point masses count beside the examples. "model": a model replaces too few examples. "uniform" and
            "optimal": no design did better on held-out examples than the best uniform reference, or than Q*.
        redrawn: the share of the weight that redrawn examples have.
        points: the share of the weight that the k point masses have.
        held_out: the mean divergence of held-out examples, each under the sampler from the other folds; None for a single example.
        unsmoothed: the same for designs from the other folds without smoothing; None for a single example.
    """

    rule: str
    redrawn: float
    points: float
    held_out: float | None
    unsmoothed: float | None

    @property
    def description(self) -> str:
        """A description in words."""
        shares = f"redrawn examples have {self.redrawn:.3g} of the weight, point masses {self.points:.3g}"
        text = {
            "parts": shares,
            "model": f"the examples are few, so a model replaces them ({shares}, halfway to a safe floor)",
            "uniform": "the examples do not speak for a design, so the best uniform reference stays",
            "optimal": "the examples do not speak for a design, so the optimal sampler stays",
        }[self.rule]
        if self.held_out is None:
            return text
        return f"{text}; mean over examples held back {self.held_out:.4g}, without smoothing {self.unsmoothed:.4g}"

    described = OldName("description")


@dataclass(frozen=True, eq=False)
class SmoothingChoice:
    """The chosen sampler, and how it was smoothed."""

    sampler: BandSampler
    smoothing: Smoothing


def redraw_outcomes_of_examples(examples: Floats, rng: np.random.Generator, weights: Floats | None = None) -> Floats:
    """Clients with the masses of the examples, on outcomes drawn without replacement by their popularity (plus half a client)."""
    popularity = examples.sum(axis=0) if weights is None else len(examples) * (weights @ examples)
    return _redraw_outcomes_by_popularity(examples, popularity + 0.5, rng)


def _redraw_outcomes_by_popularity(examples: Floats, popularity: Floats, rng: np.random.Generator) -> Floats:
    n, k = examples.shape
    masses = -np.sort(-examples, axis=1)
    clients = np.zeros((-(-ENOUGH // n), n, k))
    for copy in clients:
        order = np.argsort(rng.exponential(size=(n, k)) / popularity, axis=1)
        np.put_along_axis(copy, order, masses, axis=1)
    return clients.reshape(-1, k)


@dataclass(frozen=True, eq=False)
class Smoother:
    """The rules for one budget, one divergence and one share of the best worst case that must remain."""

    epsilon: float
    keep: float = KEEP_SMOOTHED
    f: FDivergence = divergences.kl

    def choose_sampler_and_smoothing(self, examples: Floats, weights: Floats | None = None) -> SmoothingChoice:
        """Choose a sampler and its smoothing from the examples."""
        weights = _equal_weights(examples) if weights is None else weights
        if len(examples) < 2:
            return SmoothingChoice(
                self.sampler_between_model_and_seen_shares(examples, weights),
                Smoothing("model", *self._smoothing_parts_of_model(examples), None, None),
            )
        costs = self._held_out_costs(examples, weights, self._make_sampler_rule_of_parts((0.0, 0.0)))[self.f.name]
        unsmoothed_cost = float(weights @ costs)
        choose = (
            self._choose_smoothing_or_model
            if _effective_example_count(weights) < math.exp(self.epsilon)
            else self._choose_smoothing_or_safe_rule
        )
        rule, parts, held_out, sampler = choose(examples, weights)
        return SmoothingChoice(sampler, Smoothing(rule, *parts, held_out, unsmoothed_cost))

    def design_with_smoothing_parts(
        self, examples: Floats, parts: tuple[float, float], weights: Floats | None = None
    ) -> "Design":
        """The design for examples with these parts of the weight on redrawn examples and on the k point masses."""
        k, weights = examples.shape[1], _equal_weights(examples) if weights is None else weights
        redrawn_examples = redraw_outcomes_of_examples(examples, np.random.default_rng(0), weights)
        copies = len(redrawn_examples) // len(examples)
        shares = (1.0 - sum(parts), *parts)
        part_weights = (weights, np.tile(weights, copies) / copies, np.full(k, 1.0 / k))
        return self._design_for_weighted_clients(
            np.vstack([examples, redrawn_examples, np.eye(k)]),
            np.concatenate([share * part for share, part in zip(shares, part_weights, strict=True)]),
        )

    def design_for_model(self, examples: Floats, weights: Floats | None = None) -> "Design":
        """The design for the model that replaces examples if there are too few."""
        k, weights = examples.shape[1], _equal_weights(examples) if weights is None else weights
        popularity = (1.0 - STRAY) * (weights @ examples) + STRAY / k
        sure = examples.max(axis=1) >= SURE
        unsure = examples[~sure]
        model = _redraw_outcomes_by_popularity(unsure, popularity, np.random.default_rng(0)) if len(unsure) else unsure
        copies = max(len(model) // max(len(unsure), 1), 1)
        point = ANYBODY * math.exp(-self.epsilon)
        shares = (
            (1.0 - MODEL) * weights,
            MODEL * np.tile(weights[~sure], copies) / copies,
            MODEL * weights[sure].sum() * popularity + point,
        )
        return self._design_for_weighted_clients(np.vstack([examples, model, np.eye(k)]), np.concatenate(shares))

    def best_uniform_floor_sampler(self, examples: Floats, weights: Floats | None = None) -> Sampler[FiniteFamily]:
        """The uniform floor with the smallest mean over the examples."""
        family, weights = Simplex(examples.shape[1]), _equal_weights(examples) if weights is None else weights
        spreads = np.exp(np.linspace(0.0, math.log(0.999 * family.size), SPREADS))
        samplers = [OptimalSampler(family.spread(float(s)), epsilon=self.epsilon) for s in spreads]
        return min(
            samplers,
            key=lambda sampler: float(
                weights @ several_divergences_of_clients(examples, sampler, (self.f,))[self.f.name]
            ),
        )

    def sampler_between_model_and_seen_shares(self, examples: Floats, weights: Floats | None = None) -> BandSampler:
        """The sampler of the floor halfway between the model's and `MARGIN` times the largest shares seen, where the latter is larger."""
        outcomes, model = (
            Simplex(examples.shape[1]),
            self._floor_of_sampler(self.design_for_model(examples, weights).sampler),
        )
        seen_floor = np.minimum(1.0, MARGIN * examples.max(axis=0)) * self._floor_of_sampler(
            OptimalSampler(outcomes, epsilon=self.epsilon)
        )
        return self._sampler_keeping_worst_case((1.0 - HALF) * model + HALF * np.maximum(model, seen_floor))

    def _design_for_weighted_clients(self, clients: Floats, weights: Floats) -> "Design":
        from discreet.design._designs import design  # a circular import

        return design(
            Simplex(clients.shape[1]),
            epsilon=self.epsilon,
            clients=clients,
            weights=weights,
            divergence=self.f,
            keep=self.keep,
        )

    def _make_sampler_rule_of_parts(self, parts: tuple[float, float]) -> Rule:
        return partial(self._sampler_with_smoothing_parts, parts)

    def _sampler_with_smoothing_parts(
        self, parts: tuple[float, float], examples: Floats, weights: Floats
    ) -> BandSampler:
        return OptimalSampler(self.design_with_smoothing_parts(examples, parts, weights).family, epsilon=self.epsilon)

    def _choose_smoothing_or_safe_rule(
        self, examples: Floats, weights: Floats
    ) -> tuple[str, tuple[float, float], float, BandSampler]:
        optimal = self._sampler_keeping_worst_case(
            self._floor_of_sampler(OptimalSampler(Simplex(examples.shape[1]), epsilon=self.epsilon))
        )
        rules: dict[str, Rule] = {
            "optimal": lambda clients, client_weights: optimal,
            "uniform": self._best_uniform_sampler_keeping_worst_case,
        }
        safe_costs = {rule: self._held_out_costs(examples, weights, make)[self.f.name] for rule, make in rules.items()}
        costs = {
            parts: self._held_out_costs(examples, weights, self._make_sampler_rule_of_parts(parts))[self.f.name]
            for parts in PARTS
        }
        best = min(costs, key=lambda parts: float(weights @ costs[parts]))
        safe = min(safe_costs, key=lambda rule: float(weights @ safe_costs[rule]))
        if not _is_credible_gain(safe_costs[safe] - costs[best], weights, 1.0):
            return safe, (0.0, 0.0), float(weights @ safe_costs[safe]), rules[safe](examples, weights)
        return (
            "parts",
            best,
            float(weights @ costs[best]),
            self._sampler_with_smoothing_parts(best, examples, weights),
        )

    def _choose_smoothing_or_model(
        self, examples: Floats, weights: Floats
    ) -> tuple[str, tuple[float, float], float, BandSampler]:
        model, winners = (self._held_out_costs(examples, weights, self.sampler_between_model_and_seen_shares), {})
        for parts in PARTS:
            costs = self._held_out_costs(examples, weights, self._make_sampler_rule_of_parts(parts))
            gains = {name: model[name] - costs[name] for name in model}
            better = all(_is_credible_gain(gain, weights, SURELY) for gain in gains.values())
            if better and np.count_nonzero(gains["kl"] < -PAYING) >= SEEN:
                winners[parts] = float(weights @ costs[self.f.name])
        if winners:
            best = min(winners, key=lambda parts: winners[parts])
            return "parts", best, winners[best], self._sampler_with_smoothing_parts(best, examples, weights)
        held_out = float(weights @ model[self.f.name])
        return (
            "model",
            self._smoothing_parts_of_model(examples),
            held_out,
            self.sampler_between_model_and_seen_shares(examples, weights),
        )

    def _smoothing_parts_of_model(self, examples: Floats) -> tuple[float, float]:
        return MODEL, examples.shape[1] * ANYBODY * math.exp(-self.epsilon)

    def _best_uniform_sampler_keeping_worst_case(self, examples: Floats, weights: Floats) -> BandSampler:
        return self._sampler_keeping_worst_case(
            self._floor_of_sampler(self.best_uniform_floor_sampler(examples, weights))
        )

    def _held_out_costs(self, examples: Floats, weights: Floats, make_sampler: Rule) -> dict[str, Floats]:
        """The cost of every example under the sampler from the other folds."""
        judges = tuple({f.name: f for f in (self.f, *map(divergence, JUDGES))}.values())
        costs = {f.name: np.zeros(len(examples)) for f in judges}
        order = np.random.default_rng(0).permutation(len(examples))
        for held_out in (fold for fold in np.array_split(order, FOLDS) if fold.size):
            other_weights = np.delete(weights, held_out)
            sampler = make_sampler(np.delete(examples, held_out, axis=0), other_weights / other_weights.sum())
            for name, score in several_divergences_of_clients(examples[held_out], sampler, judges).items():
                costs[name][held_out] = score
        return costs

    def _floor_of_sampler(self, sampler: Sampler[FiniteFamily]) -> Floats:
        """m of a sampler whose family is a Simplex or a band with lower = 0 (`discreet.design._floors`)."""
        family = sampler.family
        total = 1.0 / (1.0 + math.expm1(self.epsilon) / family.bounds.upper)
        return np.asarray(total * np.broadcast_to(family.reference, family.size))

    def _sampler_keeping_worst_case(self, floor: Floats) -> BandSampler:
        """The sampler of a floor, moved towards that of Q* as far as `keep` requires (T2: what it keeps is concave in the floor)."""
        ratio, k = math.exp(self.epsilon), len(floor)
        best, required_mass = ratio / (ratio + k - 1), self.keep * ratio / (ratio + k - 1)
        attained_mass = min(float((ratio * floor).min()), float((1.0 - floor.sum() + floor).min()))
        share = (
            0.0
            if attained_mass >= required_mass
            else min(1.0, (required_mass - attained_mass) / (best - attained_mass) * (1.0 + 1e-9))
        )
        mixed_floor = (1.0 - share) * floor + share / (ratio + k - 1)
        return OptimalSampler(band_of_floor(mixed_floor, self.epsilon, Simplex(k)), epsilon=self.epsilon)


def several_divergences_of_clients(
    clients: Floats, sampler: Sampler[FiniteFamily], judges: Sequence[str | FDivergence] = JUDGES
) -> dict[str, Floats]:
    """The divergences of every client, by name."""
    q = sampler.output(clients)
    return {f.name: np.asarray(f(clients, q)) for f in map(divergence, judges)}


def _equal_weights(examples: Floats) -> Floats:
    return np.full(len(examples), 1.0 / len(examples))


def _effective_example_count(weights: Floats) -> float:
    """The effective number of examples of equal weight."""
    return float(1.0 / np.square(weights).sum())


def _is_credible_gain(gain: Floats, weights: Floats, errors: float) -> bool:
    """Whether the mean gain exceeds that many standard errors."""
    mean = float(weights @ gain)
    return mean > errors * math.sqrt(float(weights @ np.square(gain - mean)) / _effective_example_count(weights))
