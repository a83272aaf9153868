"""Samples and frequency oracles on real clients at budgets from 0.1 to 8: the cost to each client, and the curator's error.

(a) For every client, the divergence from its distribution to its output distribution, computed without sampling, for Q*, the linear
mechanism and the exact mollifier. "Own" is the probability that a released outcome is one of the client's own.

(b) The error of the estimated average (1/n) sum_i P_i from one report of each client, over seeded repetitions:

* linear samples, inverted: with f the samples' frequencies, (f - (1 - gamma) mu)/gamma is unbiased. On the simplex this IS k-ary randomised
  response on a raw draw, the frequency oracle called k-RR, direct encoding or GRR.
* raw Q* and mollifier samples: biased by the average of what (a) measures, for any number of clients. That bias,
  TV(average P_i, average Q_i), is recorded exactly.
* frequency oracles on one raw draw of each client, the same draws for all of them; and our own, `ReportSampler`, as it is released.
* two lines for comparison: the raw draws themselves (no privacy), and the uniform distribution (no data).

Every estimate is recorded raw and after the same post-processing, the Euclidean projection onto the simplex. For a raw estimate, which may
not be a distribution, "tv" is half the l1 distance. "mse" is the mean over outcomes of the squared difference.

A frequency oracle estimates a histogram from one raw draw of each client. Each client has one outcome x and sends a report whose
*support* is a set of outcomes. The support contains x with probability p and every other outcome with probability q < p,
so with n clients and C_v supports that contain v

    (C_v/n - q)/(p - q)

is unbiased for the share of clients with outcome v [Wang et al., USENIX Security 2017]. The oracles:

* optimised unary encoding: k independent bits, p = 1/2, q = 1/(e^eps + 1). One client's bits are independent, so given the raw draws
  the C_v are independent, C_v ~ Binomial(n_v, p) + Binomial(n - n_v, q), where n_v clients have outcome v.
* optimised local hashing with an ideal hash: each client draws h : outcomes -> {1..g}, g = round(e^eps) + 1, with independent uniform
  values, and sends h with y, randomised response on h(x); its support is {v : h(v) = y}. It contains x with p = e^eps/(e^eps + g - 1). Given
  (h(x), y) the other h(v) are still independent and uniform, so each v /= x is in with q = 1/g, independently: the same two binomials.
* subset selection [Ye and Barg 2018]: w = max(1, round(k/(e^eps + 1))) outcomes, x among them with p = w e^eps/(w e^eps + k - w), the
  others uniform without replacement: q = p (w - 1)/(k - 1) + (1 - p) w/(k - 1). Supports have a fixed size, so the C_v are dependent and
  every client's support is drawn. For w = 1 it is k-ary randomised response, and so the linear sampler.

The first two are therefore simulated exactly from two binomials an outcome, at a cost that does not grow with n; nothing is approximated.
These are seeded simulations: they measure an oracle's error, and release nothing.

`ReweightedComparison`: for each set and epsilon, over seeded splits, a fifth of the clients are public examples. A design is made on them;
the other four fifths, the *served*, release one sample each by it. The target is the average distribution of the served. The comparison has
these estimates: the raw samples, biased towards the reference; the examples reweighted to explain the samples
(`discreet.estimation._inference`); the samples less the bias of the reweighted examples; the examples alone; and those that need no
examples: block reports (`ReportSampler`), subset selection, unary encoding and local hashing on one raw draw of each served client, and
linear samples inverted, all projected onto the simplex, and samples of Q* and the mollifier as they are.

Examples are drawn at random, so that they are like the served, or skewed: a client becomes an example with odds e^z, z its coordinate along
the first principal axis of the set in standard deviations.
"""

import abc
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.design import design
from discreet.divergences import divergence
from discreet.errors import DiscreetError, NotPrivateWarning, check_count
from discreet.estimation import inversion_of, nearest_law, reweight_examples
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, LinearSampler, ReportCounts, ReportSampler, Sampler
from discreet.privacy import check_epsilon
from discreet.research.experiments import PAPER_DIVERGENCES, CostSummary, exact_budget_text
from discreet.research.experiments.client_sets import ClientSet, SetComparison

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK = 1 << 21  # clients times outcomes drawn at a time
_MOST_BUCKETS = 2**53


@dataclass(frozen=True)
class FrequencyOracle(abc.ABC):
    """An epsilon-LDP report on one raw outcome of each client, defined by its p and q."""

    outcomes: int
    epsilon: float = field(kw_only=True)

    def __post_init__(self) -> None:
        check_count("outcomes", self.outcomes, least=2, fix="with one outcome there is nothing to ask")
        check_epsilon(self.epsilon)

    @property
    @abc.abstractmethod
    def own_support_chance(self) -> float:
        """The probability that a report supports its client's outcome."""

    @property
    @abc.abstractmethod
    def other_support_chance(self) -> float:
        """The probability that a report supports any other outcome."""

    def draw_support_counts(self, raw: Integers, rng: np.random.Generator) -> Integers:
        """The number of reports that support each outcome (k,), for clients with the outcomes `raw` (n,); outcomes are independent."""
        raw_counts = self._count_raw_outcomes(raw)
        return np.asarray(
            rng.binomial(raw_counts, self.own_support_chance)
            + rng.binomial(len(raw) - raw_counts, self.other_support_chance)
        )

    def simulate_share_estimates(self, raw: Integers, rng: np.random.Generator) -> Floats:
        """Unbiased shares (k,) of the clients with each outcome, from one report of each; entries may be negative."""
        return np.asarray(
            (self.draw_support_counts(raw, rng) / len(raw) - self.other_support_chance)
            / (self.own_support_chance - self.other_support_chance)
        )

    def share_variance_times_clients(self, shares: Floats) -> Floats:
        """n Var of the estimate of each outcome, over the reports alone, for these true shares."""
        p, q = self.own_support_chance, self.other_support_chance
        return np.asarray((shares * p * (1.0 - p) + (1.0 - shares) * q * (1.0 - q)) / (p - q) ** 2)

    def _count_raw_outcomes(self, raw: Integers) -> Integers:
        counts = np.bincount(raw, minlength=self.outcomes)
        if counts.size > self.outcomes:
            raise DiscreetError(f"raw holds the outcome {int(raw.max())}; outcomes are 0 to {self.outcomes - 1}")
        return counts


@final
@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    """Optimised unary encoding: k bits, the client's own sent as a fair coin."""

    @property
    def own_support_chance(self) -> float:
        return 0.5

    @property
    def other_support_chance(self) -> float:
        shrink = math.exp(-self.epsilon)
        return shrink / (1.0 + shrink)


@final
@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    """Optimised local hashing with an ideal hash: a random map to g buckets, and randomised response on the bucket."""

    @cached_property
    def bucket_count(self) -> int:
        """g = round(e^eps) + 1."""
        return round(math.exp(self.epsilon)) + 1 if self.epsilon < math.log(_MOST_BUCKETS) else _MOST_BUCKETS

    @property
    def own_support_chance(self) -> float:
        return 1.0 / (1.0 + (self.bucket_count - 1) * math.exp(-self.epsilon))

    @property
    def other_support_chance(self) -> float:
        return 1.0 / self.bucket_count


@final
@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """Subset selection: `subset_size` outcomes, with a larger probability for the client's own."""

    @cached_property
    def subset_size(self) -> int:
        """w = max(1, round(k/(e^eps + 1)))."""
        shrink = math.exp(-self.epsilon)
        return max(1, round(self.outcomes * shrink / (1.0 + shrink)))

    @property
    def own_support_chance(self) -> float:
        return self.subset_size / (self.subset_size + (self.outcomes - self.subset_size) * math.exp(-self.epsilon))

    @property
    def other_support_chance(self) -> float:
        return (
            self.own_support_chance * (self.subset_size - 1) + (1.0 - self.own_support_chance) * self.subset_size
        ) / (self.outcomes - 1)

    def draw_support_counts(self, raw: Integers, rng: np.random.Generator) -> Integers:
        self._count_raw_outcomes(raw)
        counts = np.zeros(self.outcomes, dtype=np.int64)
        step = max(1, _BLOCK // self.outcomes)
        for start in range(0, len(raw), step):
            subsets = self._draw_subsets(raw[start : start + step], rng)
            counts += np.bincount(subsets.ravel(), minlength=self.outcomes)
        return counts

    def _draw_subsets(self, raw: Integers, rng: np.random.Generator) -> Integers:
        """One subset for each client: the outcomes with the smallest keys, where its own comes first or last."""
        keys = rng.random((len(raw), self.outcomes))
        keys[np.arange(len(raw)), raw] = np.where(rng.random(len(raw)) < self.own_support_chance, -1.0, 2.0)
        return np.argpartition(keys, self.subset_size - 1, axis=1)[:, : self.subset_size]


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over repetitions, with its standard error."""

    mean: float
    standard_error: float


@dataclass(frozen=True)
class EstimateErrors:
    """An estimate's mean distances to the truth by measure: raw, and projected onto the simplex."""

    raw: dict[str, MeanEstimate]
    projected: dict[str, MeanEstimate]


@dataclass(frozen=True)
class SetAtBudget:
    """One client set at one budget: costs by mechanism and divergence, errors by kind of report."""

    unit: str
    set: str
    title: str
    who: str
    domain: str
    source: str
    clients: int
    outcomes: int
    epsilon: float
    repetitions: int
    subset_size: int
    realised: dict[str, dict[str, CostSummary]]
    own: dict[str, float]
    bias: dict[str, float]
    errors: dict[str, EstimateErrors]
    uniform: dict[str, float]


def draw_raw_outcomes(laws: Floats, rng: np.random.Generator) -> Integers:
    """One outcome of each client's own distribution (n,), the input of an oracle. Not private."""
    cumulative = np.cumsum(laws, axis=1)
    cumulative /= cumulative[:, -1:]  # ends in exactly 1, so that no outcome of probability 0 can be drawn
    return np.asarray((rng.random((len(laws), 1)) >= cumulative).sum(axis=1))


def distances_from_law(estimates: Floats, law: Floats) -> dict[str, Floats]:
    """Half the l1, the l2, the largest and the mean squared difference to the law, for each row."""
    gap = np.abs(estimates - law)
    squares = np.square(gap)
    return {
        "tv": gap.sum(axis=-1) / 2.0,
        "l2": np.sqrt(squares.sum(axis=-1)),
        "max": gap.max(axis=-1),
        "mse": squares.mean(axis=-1),
    }


def simulate_share_estimates_of_reports(sampler: ReportSampler, raw: Integers, rng: np.random.Generator) -> Floats:
    """Unbiased shares (k,) from one report of each client, drawn and counted as the library does; seeded, so not private."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        reports = sampler.release_records(raw, rng=rng)
    support_shares = ReportCounts(sampler).add(reports).supports() / len(raw)
    return np.asarray((support_shares - sampler.chances.outside) / sampler.chances.gap)


@final
@dataclass(frozen=True)
class PopulationComparison(SetComparison):
    """Per-client cost and population error on every client set that is installed. A unit is one set at one epsilon."""

    name: str = "population"
    repetitions: int = 200
    description: str = (
        "per-client divergences, and the error of the estimated average law, of samples and of frequency oracles"
    )
    record_type: type[SetAtBudget] = SetAtBudget

    @property
    def parameters(self) -> Mapping[str, Any]:
        sets = {
            client_set.name: {
                "outcomes": len(client_set.outcomes),
                "domain": client_set.domain,
                "source": client_set.source,
            }
            for client_set in self.sets
        }
        rivals = [*MECHANISMS, "unary", "hashing", "subset", "raw", "reports"]
        return {"epsilons": self.epsilons, "repetitions": self.repetitions, "sets": sets, "rivals": rivals}

    def compute_unit_record(self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float) -> SetAtBudget:
        """Everything recorded of one set at one budget."""
        return ClientSetLaws(client_set, laws).compute_set_record(
            epsilon, self.repetitions, self.seeded_generator_of_unit(unit)
        )


@final
@dataclass(frozen=True)
class ClientSetLaws:
    """A client set with its distributions read."""

    client_set: ClientSet
    laws: Floats

    @cached_property
    def average_client(self) -> Floats:
        """The target: the average client."""
        return np.asarray(self.laws.mean(axis=0))

    def compute_set_record(self, epsilon: float, repetitions: int, rng: np.random.Generator) -> SetAtBudget:
        """Everything recorded of this set at one budget."""
        family = Simplex(len(self.client_set.outcomes))
        linear = LinearSampler(family, epsilon=epsilon)
        samplers: dict[str, Sampler[FiniteFamily]] = {
            name: kind(family, epsilon=epsilon) for name, kind in MECHANISMS.items()
        }
        subset = SubsetSelection(family.size, epsilon=epsilon)
        oracles: dict[str, FrequencyOracle] = {
            "unary": UnaryEncoding(family.size, epsilon=epsilon),
            "hashing": LocalHashing(family.size, epsilon=epsilon),
            "subset": subset,
        }
        # the draws of others stay as they are
        reports, report_rng = (ReportSampler(family, epsilon=epsilon), rng.spawn(1)[0])
        estimates: dict[str, list[Floats]] = {name: [] for name in (*samplers, *oracles, "raw", "reports")}
        for _ in range(repetitions):
            for name, sampler in samplers.items():
                estimates[name].append(self._outcome_frequencies(_release_with_seed(sampler, self.laws, rng)))
            raw = draw_raw_outcomes(self.laws, rng)
            for name, oracle in oracles.items():
                estimates[name].append(oracle.simulate_share_estimates(raw, rng))
            estimates["raw"].append(self._outcome_frequencies(raw))
            estimates["reports"].append(simulate_share_estimates_of_reports(reports, raw, report_rng))
        stacked_estimates = {name: np.array(rows) for name, rows in estimates.items()}
        stacked_estimates["linear"] = inversion_of(linear).low(family.reference, stacked_estimates["linear"])
        uniform = distances_from_law(np.full(family.size, family.reference), self.average_client)
        outputs = {name: sampler.output(self.laws) for name, sampler in samplers.items()}
        return SetAtBudget(
            unit=f"{self.client_set.name}/{exact_budget_text(epsilon)}",
            set=self.client_set.name,
            title=self.client_set.title,
            who=self.client_set.clients,
            domain=self.client_set.domain,
            source=self.client_set.source,
            clients=len(self.laws),
            outcomes=family.size,
            epsilon=epsilon,
            repetitions=repetitions,
            subset_size=subset.subset_size,
            realised={
                name: self._cost_summary_by_divergence(sampler, outputs[name]) for name, sampler in samplers.items()
            },
            own={name: float(np.where(self.laws > 0, q, 0.0).sum(axis=1).mean()) for name, q in outputs.items()},
            bias={
                name: float(distances_from_law(q.mean(axis=0), self.average_client)["tv"])
                for name, q in outputs.items()
            },
            errors={name: self._summarise_estimate_errors(rows) for name, rows in stacked_estimates.items()},
            uniform={measure: float(value) for measure, value in uniform.items()},
        )

    def _cost_summary_by_divergence(self, sampler: Sampler[FiniteFamily], q: Floats) -> dict[str, CostSummary]:
        return {
            f: CostSummary.from_divergences(float(sampler.risk(f)), np.asarray(divergence(f)(self.laws, q)))
            for f in PAPER_DIVERGENCES
        }

    def _summarise_estimate_errors(self, estimates: Floats) -> EstimateErrors:
        projected_estimates = np.array([nearest_law(row) for row in estimates])
        return EstimateErrors(
            *(
                {
                    name: _mean_with_standard_error(values)
                    for name, values in distances_from_law(rows, self.average_client).items()
                }
                for rows in (estimates, projected_estimates)
            )
        )

    def _outcome_frequencies(self, outcomes: Integers) -> Floats:
        return np.bincount(outcomes, minlength=len(self.client_set.outcomes)) / len(outcomes)


def _release_with_seed(sampler: Sampler[FiniteFamily], laws: Floats, rng: np.random.Generator) -> Integers:
    """The library's own release with a seed: an experiment on published data, not private."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return np.asarray(sampler.release(laws, rng=rng))


def _mean_with_standard_error(values: Floats) -> MeanEstimate:
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return MeanEstimate(float(values.mean()), spread / len(values) ** 0.5)


REWEIGHTED_BUDGETS = (0.5, 1.0, 2.0, 4.0)
SKEWS = {"random": 0.0, "skewed": 1.0}
KEEP = 0.01


@dataclass(frozen=True)
class ReweightedSet:
    """One set at one budget with one way to draw examples: mean TV and squared errors by estimate, to the average of the served."""

    unit: str
    set: str
    title: str
    epsilon: float
    drawn: str
    examples: int
    served: int
    repetitions: int
    errors: dict[str, MeanEstimate]
    squared: dict[str, MeanEstimate]


@final
@dataclass(frozen=True)
class ReweightedComparison(SetComparison):
    """Designed samples, raw and with reweighted examples, against frequency oracles. A unit is one set at one epsilon."""

    name: str = "reweighted"
    epsilons: tuple[float, ...] = REWEIGHTED_BUDGETS
    repetitions: int = 10
    share: float = 0.2
    description: str = (
        "the error of the estimated average law of clients who are no examples, from designed samples and from oracles"
    )
    record_type: type[ReweightedSet] = ReweightedSet

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "repetitions": self.repetitions,
            "share": self.share,
            "keep": KEEP,
            "skews": SKEWS,
            "without examples": ["reports", *MECHANISMS],
            "sets": self.outcome_count_by_set,
        }

    @property
    def unit_name_suffixes(self) -> Sequence[object]:
        return tuple(SKEWS)

    def compute_unit_record(
        self, unit: str, client_set: ClientSet, laws: Floats, epsilon: float, skew: str
    ) -> ReweightedSet:
        """Everything recorded of one set at one budget."""
        rng = self.seeded_generator_of_unit(unit)
        axis = SKEWS[skew] * _first_principal_coordinates(laws)
        example_count = max(1, round(self.share * len(laws)))
        distances: dict[str, dict[str, list[float]]] = {"tv": {}, "mse": {}}
        report_rng = rng.spawn(1)[0]  # the draws of others stay as they are
        for _ in range(self.repetitions):
            order = np.argsort(-(axis + rng.gumbel(size=len(laws))))
            examples, clients = laws[order[:example_count]], laws[order[example_count:]]
            estimates, target = _estimates_and_true_average_client(examples, clients, epsilon, rng)
            estimates |= _estimates_without_examples(clients, epsilon, report_rng)
            for name, law in estimates.items():
                law_distances = distances_from_law(law, target)
                for measure, by_name in distances.items():
                    by_name.setdefault(name, []).append(float(law_distances[measure]))
        errors, squared_errors = (
            {name: _mean_with_standard_error(np.array(values)) for name, values in by_name.items()}
            for by_name in distances.values()
        )
        served_count = len(laws) - example_count
        return ReweightedSet(
            unit,
            client_set.name,
            client_set.title,
            epsilon,
            skew,
            example_count,
            served_count,
            self.repetitions,
            errors,
            squared_errors,
        )


def _estimates_and_true_average_client(
    examples: Floats, clients: Floats, epsilon: float, rng: np.random.Generator
) -> tuple[dict[str, Floats], Floats]:
    """Every estimate of the average served client, and that client."""
    k = clients.shape[1]
    sampler = design(Simplex(k), epsilon=epsilon, clients=examples, keep=KEEP).sampler
    counts = np.bincount(draw_raw_outcomes(np.asarray(sampler.output(clients)), rng), minlength=k)
    reweighted_examples = reweight_examples([(sampler, counts)], examples)
    raw = draw_raw_outcomes(clients, rng)
    oracles = {
        "subset": SubsetSelection(k, epsilon=epsilon),
        "unary": UnaryEncoding(k, epsilon=epsilon),
        "hashing": LocalHashing(k, epsilon=epsilon),
    }
    return {
        "samples": counts / counts.sum(),
        "reweighted": reweighted_examples.law,
        "debiased": reweighted_examples.debiased,
        "examples": examples.mean(axis=0),
        **{name: nearest_law(oracle.simulate_share_estimates(raw, rng)) for name, oracle in oracles.items()},
    }, clients.mean(axis=0)


def _estimates_without_examples(clients: Floats, epsilon: float, rng: np.random.Generator) -> dict[str, Floats]:
    """Block reports, and samples of the mechanisms that take no examples."""
    family = Simplex(clients.shape[1])
    estimates = {
        "reports": simulate_share_estimates_of_reports(
            ReportSampler(family, epsilon=epsilon), draw_raw_outcomes(clients, rng), rng
        )
    }
    for name, kind in MECHANISMS.items():
        sampler = kind(family, epsilon=epsilon)
        outcomes = draw_raw_outcomes(np.asarray(sampler.output(clients)), rng)
        estimates[name] = np.bincount(outcomes, minlength=family.size) / len(clients)
        if isinstance(sampler, LinearSampler):
            estimates[name] = np.asarray(inversion_of(sampler).low(family.reference, estimates[name]))
    return {name: nearest_law(law) for name, law in estimates.items()}


def _first_principal_coordinates(laws: Floats) -> Floats:
    """Each client's coordinate along the axis of largest variance, in standard deviations."""
    deviations = laws - laws.mean(axis=0)
    _, vectors = np.linalg.eigh(deviations.T @ deviations)
    coordinates = deviations @ vectors[:, -1]
    coordinates *= np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])  # fixes the sign of the eigenvector
    return np.asarray(coordinates / max(float(coordinates.std()), 1e-300))
