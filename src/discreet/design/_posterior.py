"""Inference from private samples: model clients of several shapes, and a posterior over their mean distribution and shape.

**Model clients** vary around a mean distribution mu; their average is mu for every shape. *Dirichlet*: P ~ Dirichlet(s mu). The concentration
s says how similar a client is to the mean, and E sum_x P_x^2 = (1 + s sum_x mu_x^2)/(1 + s). Real clients differ in how spread out they are,
so each draws its own concentration, s times a factor around 1. *Clusters*: the outcomes fall into groups at random. A client belongs to a
group with the probability that mu gives it, and has the distribution mu inside that group. With as many groups as outcomes, clients are point
masses.

Samples of a sampler that is linear in P have a distribution that depends on mu alone, and cannot distinguish the shapes. Samples of a
projection can, a little; private bits about the clients' own spread (`concentration_law`) do so well.

**The posterior.** A round is a sampler and how often it released each outcome, for clients who spoke in no other round. A round's samples
have on average the distribution E Q(.|P) over the clients. For the linear mechanism that is affine in mu. For a projection it is replaced by
its regression on P over model clients, which is affine in mu too:

    E Q(.|P) ~ c + A mu,        A = Cov(Q, P) Cov(P, P)^-1,        c = E Q - A E P.

So all rounds have one likelihood, sum over rounds and outcomes of counts times log(c + A mu). mu = softmax(theta) with theta ~ N(0, tau^2)
around the uniform distribution; tau has the largest evidence among a few. The shape of the clients (a concentration from a grid, clusters, or
point masses) has a posterior, and theta is normal around its mode (Laplace's approximation). With few samples theta stays as wide as its
prior: this is the shrinkage, and it needs no tuning.

All computations use released samples and constants only, so they cost no privacy (`discreet.design._learned`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.families import as_floats, refuse_bad_laws
from discreet.mechanisms import LinearSampler, Sampler

Floats = NDArray[np.float64]

DIFFERENCES = 0.5  # standard deviation of the logarithm of a client's own factor
_LEAST = 1e-3  # parameters of a Dirichlet law below it are drawn as if they were this
_DUST = 1e-6  # smaller shares of a client count as zero
_AVERAGED = 400  # model clients whose agreement stands for that of clusters


def draw_dirichlet_clients(mean: Floats, concentration: Floats, rng: np.random.Generator) -> Floats:
    """One distribution for each row of means (n, k) with the concentrations (n,)."""
    concentrations = concentration * np.exp(DIFFERENCES * rng.standard_normal(len(mean)))
    shape = np.maximum(concentrations[:, None] * mean, _LEAST)
    # Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms so that small parameters do not underflow
    amounts = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
    laws = np.exp(amounts - amounts.max(axis=1, keepdims=True))
    laws[laws < _DUST] = 0.0
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Dirichlet:
    """Clients around the mean distribution, with a concentration."""

    concentration: float
    kind: str = "spread around a mean"

    def draw_clients(self, mean: Floats, rng: np.random.Generator) -> Floats:
        """One client for each row of means (n, k)."""
        return draw_dirichlet_clients(mean, np.full(len(mean), self.concentration), rng)

    def mean_chance_of_equal_draws(self, mean: Floats) -> float:
        """How often two draws of one client agree, as `concentration_law` scales it, averaged over clients around a mean (k,)."""
        return expected_chance_of_equal_draws(mean, self.concentration)


@dataclass(frozen=True)
class Clusters:
    """Clients with the mean distribution inside one of that many groups of outcomes; point masses if every outcome is a group."""

    groups: int
    size: int

    @property
    def kind(self) -> str:
        return "of one value each" if self.groups >= self.size else "in clusters"

    def draw_clients(self, mean: Floats, rng: np.random.Generator) -> Floats:
        group = np.argsort(rng.random(mean.shape), axis=1) % self.groups
        outcome = (np.cumsum(mean, axis=1) < rng.random((len(mean), 1))).sum(axis=1).clip(max=mean.shape[1] - 1)
        laws = mean * (group == np.take_along_axis(group, outcome[:, None], axis=1))
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))

    def mean_chance_of_equal_draws(self, mean: Floats) -> float:
        laws = self.draw_clients(np.tile(mean, (_AVERAGED, 1)), np.random.default_rng(0))
        return float(concentration_law(laws)[:, 1].mean())


ClientShape = Dirichlet | Clusters


def concentration_law(laws: Floats) -> Floats:
    """A client's own spread, as distributions (n, 2) on (spread out, of one kind).

    The second probability is (sum_x p_x^2 - 1/k)/(1 - 1/k): that two of its draws agree, between 0 for the uniform law and 1 for a point
    mass. A sample of it, by any sampler on two outcomes, is one private bit.

    Args:
        laws: of the clients, (n, k), or of one, (k,), on two or more outcomes.

    Returns:
        Laws on two outcomes, (n, 2) or (2,).

    Raises:
        DiscreetError: for rows that are no laws.
    """
    laws = as_floats(laws, "laws")
    k = laws.shape[-1] if laws.ndim else 1
    if k < 2:
        raise DiscreetError(f"laws has shape {laws.shape}; it has one number for each of two or more outcomes")
    refuse_bad_laws(laws)
    agreement = (np.square(laws).sum(axis=-1) - 1.0 / k) / (1.0 - 1.0 / k)
    share = np.clip(agreement, 0.0, 1.0)
    return np.stack([1.0 - share, share], axis=-1)


def expected_chance_of_equal_draws(mean: Floats, concentration: float) -> float:
    """How often two draws of one client agree, scaled likewise, averaged over Dirichlet clients."""
    k = len(mean)
    agreement = (1.0 + concentration * float(mean @ mean)) / (1.0 + concentration)
    return min(max((agreement - 1.0 / k) / (1.0 - 1.0 / k), 0.0), 1.0)


Response = tuple[Floats, Floats]  # (A, c): the distribution of a sample is about A mu + c

CONCENTRATIONS = tuple(0.5 * 2.0**step for step in range(8))
WIDTHS = (0.25, 0.5, 1.0, 1.5)  # of the logarithms of the mean distribution
_POINTS, _CLUSTERS = 0.2, 0.1  # the probability of point masses and of clusters, before any sample
_IN_CLUSTER = 4  # about so many outcomes in a cluster
_USUAL, _SPREAD = math.log(5.0), 1.5  # of the logarithm of the concentration, before any sample
_MODEL, _FOR_EACH = 400, 8  # model clients in a regression: at least, and for each outcome
_TRUSTED = 50_000.0  # number of samples beyond which the regression's error exceeds chance
_STEPS = 40
# how far theta may move, in any outcome, before a new regression
_FIRST_REACH, _REACH = ((1.5, 0.7), (0.7, 0.3))
_FAR_REACH = (4.0, 2.0, 1.0, 0.5)  # the same for clusters, from the mode of other shapes
LEAST_SHARE = 1e-12
_LEAST_CONCENTRATION = 0.01  # stands for point masses in averages of logarithms


@dataclass(frozen=True, eq=False)
class RoundCounts:
    """Samples of clients who took part in one agreement and no other: the sampler, and how often it released each outcome."""

    sampler: Sampler[Any]
    counts: Floats

    @property
    def has_affine_response(self) -> bool:
        """Whether its samples' distribution is affine in the mean distribution, for all clients."""
        return isinstance(self.sampler, LinearSampler)

    @property
    def down_weighted_counts(self) -> Floats:
        """The counts, scaled down where the error of a regression would exceed that of chance."""
        number = float(self.counts.sum())
        return self.counts if self.has_affine_response else self.counts / (1.0 + number / _TRUSTED)

    def regress_response(self, model: Floats) -> Response:
        """(A, c), regressed on model clients (n, k)."""
        k = model.shape[1]
        # for point masses the output is linear in the mean
        if self.has_affine_response or bool((model.max(axis=1) == 1.0).all()):
            return np.asarray(self.sampler.output(np.eye(k))).T, np.zeros(k)
        outputs = np.asarray(self.sampler.output(model))
        p, q = model.mean(axis=0), outputs.mean(axis=0)
        deviations = model - p
        covariance = deviations.T @ deviations
        covariance[np.diag_indices(k)] += 1e-6 * np.trace(covariance) / k + 1e-12
        matrix = np.linalg.solve(covariance, deviations.T @ (outputs - q)).T
        return matrix, q - matrix @ p


@dataclass(frozen=True, eq=False)
class Mode:
    """The likeliest theta for one shape, the curvature there, and the logarithm of the evidence."""

    shape: ClientShape
    theta: Floats
    curvature: Floats
    evidence: float

    def regress_round_responses(self, rounds: Sequence[RoundCounts], rng: np.random.Generator) -> list[Response]:
        """(A, c) of each round, regressed on model clients of this shape."""
        return _regress_model_responses(rounds, self.shape, self.theta, rng)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The modes of each shape, and their probabilities."""

    modes: tuple[Mode, ...]
    logarithms: Floats  # of the probabilities, up to a constant

    @property
    def mode_probabilities(self) -> Floats:
        """The probability of each mode."""
        return softmax(self.logarithms)

    @property
    def mode_probabilities_in_kind(self) -> Floats:
        """The probability of each mode given its kind of clients."""
        kinds = np.array([mode.shape.kind for mode in self.modes])
        probabilities = np.empty(len(kinds))
        for kind in np.unique(kinds):
            probabilities[kinds == kind] = softmax(self.logarithms[kinds == kind])
        return probabilities

    @property
    def mean_law(self) -> Floats:
        """The mean distribution, averaged over the modes."""
        return np.asarray(self.mode_probabilities @ np.stack([softmax(mode.theta) for mode in self.modes]))

    @property
    def mean_concentration(self) -> float:
        """The concentration of Dirichlet clients as spread out as those of the modes, averaged in logarithms."""
        return float(np.exp(self.mode_probabilities @ np.log([_equivalent_concentration(mode) for mode in self.modes])))

    @property
    def kind_probabilities(self) -> dict[str, float]:
        """The probability of each kind of clients."""
        probabilities: dict[str, float] = {}
        for mode, weight in zip(self.modes, self.mode_probabilities.tolist(), strict=True):
            probabilities[mode.shape.kind] = probabilities.get(mode.shape.kind, 0.0) + weight
        return probabilities

    def draw_hypotheses(
        self, number: int, rng: np.random.Generator, kind: str | None = None
    ) -> tuple[Floats, NDArray[np.int64]]:
        """That many mean distributions (number, k) and the numbers of their modes (number,), of one kind of clients or of all."""
        weights = self.mode_probabilities
        if kind is not None:
            weights = self.mode_probabilities_in_kind * [mode.shape.kind == kind for mode in self.modes]
        mode_numbers = rng.choice(len(self.modes), number, p=weights / weights.sum())
        k = len(self.modes[0].theta)
        means = np.empty((number, k))
        for mode_number in np.unique(mode_numbers):
            mode, rows = self.modes[mode_number], np.flatnonzero(mode_numbers == mode_number)
            noise = np.linalg.solve(np.linalg.cholesky(mode.curvature).T, rng.standard_normal((k, rows.size))).T
            means[rows] = [softmax(theta) for theta in mode.theta + noise]
        return means, mode_numbers

    def draw_clients_of_hypotheses(
        self, means: Floats, mode_numbers: NDArray[np.int64], count: int, rng: np.random.Generator
    ) -> Floats:
        """That many model clients of each hypothesis, one hypothesis after the other."""
        laws = np.empty((len(means), count, means.shape[1]))
        for mode_number in np.unique(mode_numbers):
            rows = np.flatnonzero(mode_numbers == mode_number)
            repeated_means = np.repeat(means[rows], count, axis=0)
            laws[rows] = self.modes[mode_number].shape.draw_clients(repeated_means, rng).reshape(rows.size, count, -1)
        return laws.reshape(-1, means.shape[1])


def softmax(theta: Floats) -> Floats:
    """The distribution with these logarithms, up to a constant."""
    law = np.exp(theta - theta.max())
    return np.asarray(law / law.sum())


def fit_posterior(
    size: int, rounds: Sequence[RoundCounts], spread: RoundCounts | None, rng: np.random.Generator
) -> Posterior:
    """The posterior given the rounds, on `size` outcomes; `spread`: a round on two outcomes about the clients' own spread."""
    start, middle = np.zeros(size), Dirichlet(CONCENTRATIONS[len(CONCENTRATIONS) // 2])
    widths = WIDTHS if rounds else WIDTHS[2:3]
    candidates = [(_find_posterior_mode(rounds, middle, width, start, _FIRST_REACH, rng), width) for width in widths]
    best, width = max(candidates, key=lambda candidate: candidate[0].evidence)
    shapes = _client_shapes_with_prior_probabilities(size)
    modes = tuple(
        _find_posterior_mode(rounds, shape, width, best.theta, _REACH, rng)
        if isinstance(shape, Dirichlet)
        else _best_mode_over_prior_widths(rounds, shape, widths, best.theta, rng)
        for shape in shapes
    )
    logarithms = [
        mode.evidence + math.log(shapes[mode.shape]) + _log_likelihood_of_spread_round(mode, spread) for mode in modes
    ]
    return Posterior(modes, np.array(logarithms))


def _best_mode_over_prior_widths(
    rounds: Sequence[RoundCounts], shape: ClientShape, widths: Sequence[float], start: Floats, rng: np.random.Generator
) -> Mode:
    """The mode of a shape unlike the others: its mean distribution and width may differ from theirs."""
    modes = [_find_posterior_mode(rounds, shape, width, start, _FAR_REACH, rng) for width in widths]
    return max(modes, key=lambda mode: mode.evidence)


def _client_shapes_with_prior_probabilities(size: int) -> dict[ClientShape, float]:
    """The possible shapes of clients on that many outcomes, with their prior probabilities."""
    weights = np.exp([-0.5 * ((math.log(s) - _USUAL) / _SPREAD) ** 2 for s in CONCENTRATIONS])
    others: dict[ClientShape, float] = {Clusters(size, size): _POINTS}
    if size >= 2 * _IN_CLUSTER:
        others[Clusters(-(-size // _IN_CLUSTER), size)] = _CLUSTERS
    rest = 1.0 - sum(others.values())
    return {
        **{Dirichlet(s): rest * float(p) for s, p in zip(CONCENTRATIONS, weights / weights.sum(), strict=True)},
        **others,
    }


def _equivalent_concentration(mode: Mode) -> float:
    """s with (1 + s a)/(1 + s) = E sum_x P_x^2, a = sum_x mu_x^2."""
    if isinstance(mode.shape, Dirichlet):
        return mode.shape.concentration
    law = softmax(mode.theta)
    k, mean_agreement = len(law), float(law @ law)
    agreement = mode.shape.mean_chance_of_equal_draws(law) * (1.0 - 1.0 / k) + 1.0 / k
    return max((1.0 - agreement) / max(agreement - mean_agreement, 1e-12), _LEAST_CONCENTRATION)


def _log_likelihood_of_spread_round(mode: Mode, spread: RoundCounts | None) -> float:
    if spread is None:
        return 0.0
    law = sample_law_in_spread_round(spread, mode.shape.mean_chance_of_equal_draws(softmax(mode.theta)))
    return float(spread.counts @ np.log(np.maximum(law, LEAST_SHARE)))


def sample_law_in_spread_round(spread: RoundCounts, agreement: float) -> Floats:
    """The distribution of a sample in a round about the clients' own spread, if two draws of one agree that often."""
    ends = np.asarray(spread.sampler.output(np.eye(2)))
    return np.asarray((1.0 - agreement) * ends[0] + agreement * ends[1])


def _find_posterior_mode(
    rounds: Sequence[RoundCounts],
    shape: ClientShape,
    width: float,
    start: Floats,
    reach: Sequence[float],
    rng: np.random.Generator,
) -> Mode:
    """The mode by a few regressions, each used within its reach: if an outcome is at its ceiling for all clients, its slope is zero."""
    theta, k = start, len(start)
    counts = [round_counts.down_weighted_counts for round_counts in rounds]
    for limit in [math.inf] if all(round_counts.has_affine_response for round_counts in rounds) else reach:
        fit = ResponseFit(_regress_model_responses(rounds, shape, theta, rng), counts, width)
        theta = theta + np.clip(fit.climb_to_mode(theta) - theta, -limit, limit)
    _, curvature = fit.gradient_and_curvature(theta)
    evidence = fit.log_posterior_density(theta) - k * math.log(width) - 0.5 * float(np.linalg.slogdet(curvature)[1])
    return Mode(shape, theta, curvature, evidence)


def _regress_model_responses(
    rounds: Sequence[RoundCounts], shape: ClientShape, theta: Floats, rng: np.random.Generator
) -> list[Response]:
    """(A, c) of each round, regressed on clients drawn from this shape around the mean of theta."""
    number = max(_MODEL, _FOR_EACH * len(theta))
    model = shape.draw_clients(np.tile(softmax(theta), (number, 1)), rng)
    return [round_counts.regress_response(model) for round_counts in rounds]


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """The posterior density of theta if every round's shares are affine in the mean distribution."""

    responses: Sequence[Response]
    counts: Sequence[Floats]
    width: float

    def expected_released_shares(self, law: Floats) -> list[Floats]:
        return [np.maximum(matrix @ law + offset, LEAST_SHARE) for matrix, offset in self.responses]

    def log_posterior_density(self, theta: Floats) -> float:
        """The logarithm of the posterior density at theta, up to a constant."""
        fits = zip(self.counts, self.expected_released_shares(softmax(theta)), strict=True)
        return sum(float(c @ np.log(y)) for c, y in fits) - 0.5 * float(theta @ theta) / self.width**2

    def gradient_and_curvature(self, theta: Floats) -> tuple[Floats, Floats]:
        """The gradient of the logarithm, and the expected curvature."""
        law = softmax(theta)
        tangent = np.diag(law) - np.outer(law, law)
        gradient, curvature = -theta / self.width**2, np.eye(len(theta)) / self.width**2
        for (matrix, _), c, y in zip(self.responses, self.counts, self.expected_released_shares(law), strict=True):
            share_slopes = matrix @ tangent
            gradient = gradient + share_slopes.T @ (c / y)
            curvature += share_slopes.T @ ((c.sum() / y)[:, None] * share_slopes)
        return gradient, curvature

    def log_likelihood_upper_bound(self, theta: Floats) -> float:
        """An upper bound on the log-likelihood under every mean distribution: it is concave, so it stays below its tangent at theta."""
        law = softmax(theta)
        shares = self.expected_released_shares(law)
        value = sum(float(c @ np.log(y)) for c, y in zip(self.counts, shares, strict=True))
        slope = sum(m.T @ (c / y) for (m, _), c, y in zip(self.responses, self.counts, shares, strict=True))
        return value + float(np.max(slope - slope @ law))

    def climb_to_mode(self, theta: Floats) -> Floats:
        """The end of scoring steps from theta."""
        value = self.log_posterior_density(theta)
        for _ in range(_STEPS):
            gradient, curvature = self.gradient_and_curvature(theta)
            step, length = np.linalg.solve(curvature, gradient), 1.0
            while length > 1e-4 and not self.log_posterior_density(theta + length * step) >= value:
                length *= 0.5
            if length <= 1e-4:
                break
            theta = theta + length * step
            gain, value = self.log_posterior_density(theta) - value, self.log_posterior_density(theta)
            if gain < 1e-6:
                break
        return theta
