"""Public examples, reweighted to explain the samples: an estimate of the population that depends on the examples.

Samples of a projection do not determine the average client. But if clients are like public examples p_1, ..., p_N in unknown numbers w,
samples have the distribution sum_i w_i q_i with q_i the output distribution of p_i, and the average client is sum_i w_i p_i. The weights
that make the samples most likely solve a concave problem with a certificate. Samples of several agreements have one likelihood: their
output distributions are concatenated.

**The problem** (`iterate_best_mixtures`). Given are distributions q_1, ..., q_N on the outcomes, shares f of the counts, and a pull
tau >= 0 towards equal weights. Find the weights w on the simplex that maximise

    L(w) = sum_x f_x log y_x + tau/N sum_i log w_i,        y = sum_i w_i q_i:

the likelihood of the counts and of tau more for each of them, which fell on the N distributions in equal parts. L is concave.

**Certificate.** Write g_i = sum_x f_x q_ix/y_x and h_i = (g_i + tau/(N w_i))/(1 + tau). For every w' on the simplex

    L(w') - L(w) = sum_x f_x log(y'_x/y_x) + tau/N sum_i log(w'_i/w_i) <= (1 + tau) log(sum_i w'_i h_i) <= (1 + tau) log max_i h_i

by Jensen's inequality, because sum_x f_x y'_x/y_x = sum_i w'_i g_i. So `gap` = (1 + tau) log max h bounds the gain of any other weights.
All terms are positive, so rounding changes h by a factor of at most 1 + 4 (N + k) 2^-53, which is added.

**Solving.** At the best w every h_i is 1: w_i s_i = tau/N with s = 1 + tau - Q v >= 0 and v = f/y. That is the central path of the dual,
whose parameter is the pull itself. A path of falling pulls costs a few Newton steps each, with one matrix of outcomes by outcomes. The step
w_i -> w_i h_i (expectation maximisation) never lowers L and ends every solve.

**Distance from equal weights.** The most likely weights alone follow the noise of the samples. So the examples count too, as `pull` further
samples that fell on them in equal parts. Leave-one-out, to first order, shows how well the rest predicts a sample. The pull is the
strongest one that is within a standard error of the best, and at least one sample for each outcome. If the examples are like the clients,
they stay as they are; otherwise the samples move them.

**Reports** (`reweight_examples_to_reports`). A report is an outcome of the output distribution on blocks, and blocks that nobody reported
have f = 0: the problem, its certificate and the choice of the pull are the same on the blocks that were reported. These can be many; the
matrix of a step is then one of examples by examples (Woodbury's identity).

**Samples less their bias.** The average client is the average output distribution plus E(P - Q), and only the second term needs examples.
`debiased` is the shares of the samples plus sum_i w_i (p_i - q_i), projected to the nearest distribution. It has the noise of the samples,
which `law` has not. Its error is the difference between the bias of the clients and that of the weighted examples. That is less than the
difference between the clients and the examples, and vanishes once epsilon is so large that Q is P. So if the examples are unlike the
clients, `debiased` is closer.

The estimate uses only released samples and public examples, so it costs no privacy. It assumes that the examples represent the clients:
what no weights of the examples can explain is missing, and `strain` shows it if the samples do.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are first used
from numpy.typing import NDArray

from discreet._base.showing import with_short_repr
from discreet.design import as_example_clients
from discreet.errors import DiscreetError
from discreet.estimation._inference._inversion import nearest_law
from discreet.families import ContinuousFamily, as_floats
from discreet.mechanisms import AnyFamily, CellAtoms, Reports, ReportSampler, Sampler
from discreet.release import TOTAL

Floats = NDArray[np.float64]

TOLERANCE = 1e-10  # of the gap, relative to 1 + tau
_STEPS = 60
_INSIDE = 0.99  # share of the way to the boundary
_UNIT = 2.0**-53
_MANY_OUTCOMES = 1500  # past which a matrix of examples is solved instead of one of outcomes


@dataclass(frozen=True, eq=False)
class ExampleMixture:
    """Weights (N,) of the distributions, their mixture (k,), and a bound on the gain in L of any other weights."""

    weights: Floats
    law: Floats
    pull: float
    gap: float

    def log_likelihood(self, shares: Floats) -> float:
        """sum_x f_x log y_x: the log-likelihood of the counts alone, for each."""
        support = shares > 0.0
        return float(shares[support] @ np.log(self.law[support]))

    def leave_one_out_log_likelihood_losses(self, laws: Floats, shares: Floats) -> Floats:
        """The fall of log y_x, times the number of counts, when one count of x is left out (k,); 0 where there is none.

        To first order, by differentiating w_i (1 + tau - g_i) = tau/N: dy/y = (I + A diag(f))^-1 A df, A = sum_i (w_i/s_i) (q_i/y)
        (q_i/y)^T. The mean over the counts is the optimism of their likelihood about each further one.
        """
        support = shares > 0.0
        f, q = shares[support], laws[:, support] / self.law[support]
        slack = self.pull / len(laws) / self.weights  # as the path has it: w s = tau/N
        losses = np.zeros_like(shares)
        if len(f) > _MANY_OUTCOMES:  # (I + U U' F)^-1 U U' = U (I + U' F U)^-1 U'
            u = (q * np.sqrt(self.weights / slack)[:, None]).T
            inner = np.linalg.solve(np.eye(len(laws)) + (u.T * f) @ u, u.T)
            losses[support] = (u * inner.T).sum(axis=1) - u @ (inner @ f)
            return losses
        spread = (q * (self.weights / slack)[:, None]).T @ q
        response = np.linalg.solve(np.eye(len(f)) + spread * f, spread)
        losses[support] = np.diag(response) - response @ f
        return losses


def iterate_best_mixtures(laws: Floats, shares: Floats, pulls: Sequence[float]) -> Iterator[ExampleMixture]:
    """The best mixture of distributions (N, k) for shares (k,) at each of falling pulls."""
    support = shares > 0.0
    q, f = np.ascontiguousarray(laws[:, support]), shares[support]
    number = len(q)
    w = np.full(number, 1.0 / number)
    v = f / (w @ q)
    for pull in pulls:
        w, v = _solve_weights_and_dual_by_newton(q, f, w, v, pull)
        w, gap = _normalise_weights_and_bound_gap(q, f, w, pull)
        v = f / (w @ q)
        yield ExampleMixture(w, w @ laws, pull, gap)


def _solve_weights_and_dual_by_newton(q: Floats, f: Floats, w: Floats, v: Floats, pull: float) -> tuple[Floats, Floats]:
    """Newton steps towards w s = pull/N and v y = f, from weights and dual of a larger pull."""
    target = pull / len(q)
    best, least = (w, v), math.inf
    for _ in range(_STEPS):
        g = q @ v
        excess = float(g.max() / (1.0 + pull))
        if excess >= 1.0:  # shrink an infeasible dual
            v, g = v * (0.999 / excess), g * (0.999 / excess)
        s = 1.0 + pull - g
        y = w @ q
        miss = max(float(np.abs(w * s - target).sum()), float(np.abs(v * y - f).sum())) / (1.0 + pull)
        if miss < least:
            best, least = (w, v), miss
        if miss <= 0.1 * TOLERANCE:
            break
        aim = max(target, 0.1 * float(w @ s) / len(q)) if pull == 0.0 else target
        try:
            dv = _solve_newton_step(q, w / s, y / v, (f - v * y) / v - ((aim - w * s) / s) @ q)
        except np.linalg.LinAlgError:
            break
        ds = -(q @ dv)
        dw = (aim - w * s - w * ds) / s
        length = min(1.0, *(_INSIDE * _longest_positive_step(*pair) for pair in ((v, dv), (w, dw), (s, ds))))
        if not length > 1e-12:
            break
        w, v = w + length * dw, v + length * dv
    return best


def _solve_newton_step(q: Floats, weights: Floats, diagonal: Floats, right: Floats) -> Floats:
    """The solution of (Q' diag(weights) Q + diag(diagonal)) x = right; of many outcomes by way of a matrix of examples (Woodbury)."""
    if q.shape[1] <= _MANY_OUTCOMES:
        matrix = (q * weights[:, None]).T @ q
        matrix[np.diag_indices_from(matrix)] += diagonal
        factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))
    u = q * np.sqrt(weights)[:, None]
    inner = (u / diagonal) @ u.T
    inner[np.diag_indices_from(inner)] += 1.0
    factor = scipy.linalg.cho_factor(inner, overwrite_a=True, check_finite=False)
    plain = right / diagonal
    return np.asarray(plain - (scipy.linalg.cho_solve(factor, u @ plain, check_finite=False) @ u) / diagonal)


def _longest_positive_step(value: Floats, step: Floats) -> float:
    """The longest step along which no entry of a positive value turns negative; infinite if none falls."""
    fastest = float((-step / value).max())
    return 1.0 / fastest if fastest > 0.0 else math.inf


def _normalise_weights_and_bound_gap(q: Floats, f: Floats, w: Floats, pull: float) -> tuple[Floats, float]:
    """Normalised weights, one step of expectation maximisation further, and their gap."""
    w = w / w.sum()
    rounding = 4.0 * (q.shape[0] + q.shape[1]) * _UNIT
    candidates = []
    for _ in range(3):
        h = (q @ (f / (w @ q)) + pull / len(q) / w) / (1.0 + pull)
        candidates.append(((1.0 + pull) * (max(0.0, math.log(float(h.max()))) + rounding), w))
        w = w * h
        w = w / w.sum()
    gap, w = min(candidates, key=lambda candidate: candidate[0])
    return w, gap


Integers = NDArray[np.int64]

LARGEST_TABLE = 5 * 10**7  # examples times outcomes
# relative to the number of samples, from nearly fixed weights down
PULLS = tuple(100.0 * 4.0**-step for step in range(15))
STRANGE = 6.0  # standard deviations above which samples count as unlike the examples


@with_short_repr
@dataclass(frozen=True, eq=False)
class Reweighted:
    """The examples with the weights that make the samples most likely.

    Attributes:
        law: the average of the examples with these weights (k,): an estimate of the average client.
        debiased: the samples less the bias of the weighted examples (k,): closer if the examples are unlike the clients.
        weights: of each example (N,).
        pull: the number of samples that the examples themselves count for.
        gap: an upper bound on the gain of any other weights in log-likelihood, including the pull, for each sample.
        strain: the excess distance of the samples from the weighted examples' output, in standard deviations.
    """

    law: Floats
    debiased: Floats
    weights: Floats
    pull: float
    gap: float
    strain: float

    @property
    def explains(self) -> bool:
        """Whether weighted examples explain the samples, as far as the samples show."""
        return self.strain < STRANGE


def reweight_examples(
    rounds: Sequence[tuple[Sampler[Any], Integers]], laws: Floats, *, pull: float | None = None
) -> Reweighted:
    """Examples (N, k) reweighted to explain the counts of one or several samplers on the same outcomes; `pull` in samples, or chosen."""
    counts = np.concatenate([round_counts for _, round_counts in rounds]).astype(np.float64)
    output_laws = np.hstack([_output_laws_of_examples(sampler, laws) for sampler, _ in rounds])
    number = float(counts.sum())
    shares = counts / number
    mixture, optimism = _fit_example_mixture_and_optimism(output_laws, shares, number, laws.shape[1], pull)
    law = np.asarray(mixture.weights @ laws)
    unexplained_shares = (
        (shares - mixture.law * _sample_fraction_of_each_sampler(rounds, number)).reshape(len(rounds), -1).sum(axis=0)
    )
    return Reweighted(
        law,
        nearest_law(law + unexplained_shares),
        mixture.weights,
        mixture.pull * number,
        mixture.gap,
        _standardised_pearson_statistic(rounds, mixture, optimism),
    )


def reweight_examples_to_reports(
    sampler: ReportSampler, reports: Reports, laws: Floats, supports: Integers
) -> Reweighted:
    """Examples (N, k) reweighted to explain reports. A report is an outcome of the law on blocks, so all of the above holds for it.

    Blocks that nobody reported have no share in the likelihood, and need not be listed. `strain` compares supports with those of the
    weighted examples, in standard deviations of a sum of k - 1 squares; `debiased` adds what supports have beyond them.
    """
    distinct, counts = np.unique(reports, return_counts=True)
    if len(laws) * len(distinct) > LARGEST_TABLE:
        raise DiscreetError(
            f"{len(laws):,} examples and {len(distinct):,} different reports: more than {LARGEST_TABLE:,} pairs; take fewer "
            "examples, at random"
        )
    number, blocks = float(counts.sum()), sampler.blocks
    masses = np.zeros((len(laws), len(distinct)))
    for outcome in range(blocks.size):
        masses[:, blocks.holds(distinct, np.array([outcome]))] += laws[:, outcome, None]
    beta = sampler.uniform_weight / TOTAL
    # times the number of blocks, which changes no weight
    output_laws = beta + (1.0 - beta) * masses * (blocks.block_count / blocks.blocks_per_point)
    shares = counts / number
    mixture, optimism = _fit_example_mixture_and_optimism(output_laws, shares, number, laws.shape[1])
    law, chances = np.asarray(mixture.weights @ laws), sampler.chances
    expected_shares = chances.outside + chances.gap * law
    excess = supports / number - expected_shares
    spread = np.maximum(
        expected_shares * (1.0 - expected_shares), 1e-300
    )  # nothing, of an outcome that every report holds
    squares = float(np.sum(np.square(excess) / spread)) * number
    freedom = max(len(law) - 1.0, 1.0)
    strain = (squares - max(freedom - optimism, 0.0)) / math.sqrt(2.0 * freedom)
    return Reweighted(law, nearest_law(law + excess), mixture.weights, mixture.pull * number, mixture.gap, strain)


def _fit_example_mixture_and_optimism(
    output_laws: Floats, shares: Floats, number: float, outcomes: int, pull: float | None = None
) -> tuple[ExampleMixture, float]:
    """The best mixture at the pull that is given, or else chosen, and the optimism of its likelihood."""
    path = list(
        iterate_best_mixtures(
            output_laws, shares, _regularisation_path_down_to(outcomes if pull is None else pull, number)
        )
    )
    losses = [mixture.leave_one_out_log_likelihood_losses(output_laws, shares) for mixture in path]
    index = (
        len(path) - 1 if pull is not None else _strongest_index_within_one_standard_error(path, losses, shares, number)
    )
    return path[index], float(shares @ losses[index])


def _output_laws_of_examples(sampler: Sampler[Any], laws: Floats) -> Floats:
    """The output distributions of distributions (N, k) on the outcomes, or on the cells of a line."""
    if not isinstance(sampler.family, ContinuousFamily):
        return np.asarray(sampler.output(laws), dtype=np.float64)
    return sampler.weights_on_atoms(laws) / TOTAL


def _sample_fraction_of_each_sampler(rounds: Sequence[tuple[Sampler[Any], Integers]], number: float) -> Floats:
    """Each round's share of the samples, for every outcome of every round."""
    return np.concatenate([np.full(len(counts), float(counts.sum()) / number) for _, counts in rounds])


def _strongest_index_within_one_standard_error(
    path: Sequence[ExampleMixture], losses: Sequence[Floats], shares: Floats, number: float
) -> int:
    """The strongest pull whose leave-one-out prediction is within one standard error of the best."""
    support = shares > 0.0
    f = shares[support]
    predictions = [
        np.log(mixture.law[support]) - loss[support] / number for mixture, loss in zip(path, losses, strict=True)
    ]
    best = max(predictions, key=lambda prediction: float(f @ prediction))
    for index, prediction in enumerate(predictions):
        deficit = best - prediction
        mean = float(f @ deficit)
        if mean <= float(np.sqrt(f @ np.square(deficit - mean) / number)):
            return index
    raise AssertionError("the best is no worse than itself")


def example_laws_for_reports(sampler: ReportSampler, examples: Any) -> Floats:
    """Examples as distributions (N, k) on the outcomes that are reported."""
    rows = examples if hasattr(examples, "tocsr") else sampler.family.as_rows(examples, "examples")
    return as_example_clients(rows, None, sampler.family.size, name="examples").dense_laws()


def example_laws(sampler: Sampler[AnyFamily], examples: Any) -> Floats:
    """Examples as distributions (N, k): dense rows, or a scipy.sparse matrix of counts or distributions; on outcomes, or on the cells of a
    line.
    """
    family: AnyFamily = sampler.family
    rows = examples
    if isinstance(family, ContinuousFamily):
        if not isinstance(sampler.carrier, CellAtoms):
            raise DiscreetError(
                f"examples are distributions on cells, by which {sampler!r} does not release; leave them out"
            )
        rows = rows if hasattr(rows, "tocsr") else as_floats(rows, "examples")
    elif not hasattr(examples, "tocsr"):
        rows = family.as_rows(examples, "examples")
    shape: tuple[int, ...] = tuple(rows.shape)
    if len(shape) == 2 and shape[0] * shape[1] > LARGEST_TABLE:
        raise DiscreetError(
            f"examples has {shape[0]:,} rows on {shape[1]:,} outcomes, more than {LARGEST_TABLE:,} numbers; take fewer of them, at random"
        )
    return as_example_clients(rows, None, sampler.carrier.size, name="examples").dense_laws()


def _regularisation_path_down_to(least: float, number: float) -> list[float]:
    """The path down to a pull of that many samples, each relative to the number of samples."""
    return [*(pull for pull in PULLS if pull > least / number), least / number]


def _standardised_pearson_statistic(
    rounds: Sequence[tuple[Sampler[Any], Integers]], mixture: ExampleMixture, optimism: float
) -> float:
    """Pearson's statistic in standard deviations: sum (c - n y)^2/(n y), of mean (outcomes - 1 for each round) less what was fitted.

    Its variance under the mixture is 2 (k - 1) + (sum 1/y - k^2 - 2k + 2)/n, exactly, which allows for outcomes that are hardly ever
    released.
    """
    statistic, mean, variance, start = 0.0, 0.0, 0.0, 0
    for _, counts in rounds:
        number, k = float(counts.sum()), len(counts)
        y = mixture.law[start : start + k]
        start += k
        if not number:
            continue
        statistic += float(np.sum(np.square(counts - number * y) / (number * y)))
        mean += k - 1
        variance += 2.0 * (k - 1) + max(0.0, float(np.sum(1.0 / y)) - k * k - 2.0 * k + 2.0) / number
    return (statistic - max(mean - optimism, 0.0)) / math.sqrt(max(variance, 1e-300))
