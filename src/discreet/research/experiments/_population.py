"""Real clients at budgets from 0.1 to 8: what a private sample costs each of them, and what a curator learns from one of each.

(a) For every client, the divergence from its law to the law its sample is drawn from, computed without sampling, for Q*, the linear
mechanism and the exact mollifier. "Own" is the chance that a released outcome is one that the client really holds.

(b) The error of the estimated average law (1/n) sum_i P_i from one report of each client, over seeded repetitions:

* linear samples, inverted: with f the samples' frequencies, (f - (1 - gamma) mu)/gamma is unbiased. On the simplex this IS k-ary randomised
  response on a raw draw, the frequency oracle called k-RR, direct encoding or GRR.
* Q* and mollifier samples taken as they are: biased by the average of what (a) measures, however many clients there are. That
  bias, TV(average P_i, average Q_i), is recorded exactly.
* frequency oracles on one raw draw of each client (`discreet.research.experiments._frequency_oracles`), the same draws for all of them.
* two lines to read the others by: the raw draws themselves (no privacy), and the uniform law (asking nobody).

Every estimate is recorded raw and after the same post-processing, the Euclidean projection onto the simplex. For a raw estimate, which
may be no law, "tv" is half the l1 distance.
"""

import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.divergences import divergence
from discreet.errors import NotPrivateWarning
from discreet.estimation import inversion_of, nearest_law
from discreet.families import FiniteFamily, Simplex
from discreet.mechanisms import MECHANISMS, LinearSampler
from discreet.mechanisms._sampler import Sampler
from discreet.research.experiments._costs import PAPER_DIVERGENCES, CostSummary
from discreet.research.experiments._frequency_oracles import (
    FrequencyOracle,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet, names_present

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

POPULATION_BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class MeanEstimate:
    """A mean over repetitions, and how far chance may have moved it."""

    mean: float
    standard_error: float


@dataclass(frozen=True)
class EstimateErrors:
    """An estimate's mean distances to the truth by measure: as it is, and projected onto the simplex."""

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


def raw_draws(laws: Floats, rng: np.random.Generator) -> Integers:
    """One outcome of each client's own law (n,): what an oracle is asked about. Not private."""
    cumulative = np.cumsum(laws, axis=1)
    cumulative /= cumulative[:, -1:]  # ends in exactly 1, so that no outcome of probability 0 can be drawn
    return np.asarray((rng.random((len(laws), 1)) >= cumulative).sum(axis=1))


def distances(estimates: Floats, law: Floats) -> dict[str, Floats]:
    """Half the l1, the l2 and the largest difference to the law, for each row."""
    gap = np.abs(estimates - law)
    return {"tv": gap.sum(axis=-1) / 2.0, "l2": np.sqrt(np.square(gap).sum(axis=-1)), "max": gap.max(axis=-1)}


@final
@dataclass(frozen=True)
class PopulationComparison:
    """Per-client cost and population error on every client set that is installed. A unit is one set at one epsilon."""

    name: str = "population"
    epsilons: tuple[float, ...] = POPULATION_BUDGETS
    repetitions: int = 200
    seed: int | None = 7
    quick: bool = False
    sets: tuple[ClientSet, ...] = CLIENT_SETS
    computes: str = (
        "per-client divergences, and the error of the estimated average law, of samples and of frequency oracles"
    )
    record: type[SetAtBudget] = SetAtBudget

    @property
    def parameters(self) -> Mapping[str, Any]:
        declared = {
            one.name: {"outcomes": len(one.outcomes), "domain": one.domain, "source": one.source} for one in self.sets
        }
        return {"epsilons": self.epsilons, "repetitions": self.repetitions, "sets": declared}

    @property
    def units(self) -> Sequence[str]:
        return [f"{name}/{epsilon:g}" for name in names_present(self.sets) for epsilon in self.epsilons]

    def results(self, units: Sequence[str]) -> Iterator[list[SetAtBudget]]:
        held: tuple[str, ClientSetLaws] | None = None
        for unit in units:
            name, epsilon = unit.split("/")
            if held is None or held[0] != name:  # one set in memory at a time
                held = name, ClientSetLaws(next(one for one in self.sets if one.name == name))
            rng = np.random.default_rng([self.seed or 0, zlib.crc32(unit.encode())])
            yield [held[1].row(float(epsilon), self.repetitions, rng)]


@final
@dataclass(frozen=True)
class ClientSetLaws:
    """A client set with its laws read."""

    declared: ClientSet

    @cached_property
    def laws(self) -> Floats:
        return self.declared.laws

    @cached_property
    def average(self) -> Floats:
        """The target: the average client's law."""
        return np.asarray(self.laws.mean(axis=0))

    def row(self, epsilon: float, repetitions: int, rng: np.random.Generator) -> SetAtBudget:
        """Everything recorded of this set at one budget."""
        family = Simplex(len(self.declared.outcomes))
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
        estimates: dict[str, list[Floats]] = {name: [] for name in (*samplers, *oracles, "raw")}
        for _ in range(repetitions):
            for name, sampler in samplers.items():
                estimates[name].append(self._frequencies(_release_seeded(sampler, self.laws, rng)))
            raw = raw_draws(self.laws, rng)
            for name, oracle in oracles.items():
                estimates[name].append(oracle.estimate(raw, rng))
            estimates["raw"].append(self._frequencies(raw))
        found = {name: np.array(rows) for name, rows in estimates.items()}
        found["linear"] = inversion_of(linear).low(family.reference, found["linear"])
        uniform = distances(np.full(family.size, family.reference), self.average)
        outputs = {name: sampler.output(self.laws) for name, sampler in samplers.items()}
        return SetAtBudget(
            unit=f"{self.declared.name}/{epsilon:g}",
            set=self.declared.name,
            title=self.declared.title,
            who=self.declared.clients,
            domain=self.declared.domain,
            source=self.declared.source,
            clients=len(self.laws),
            outcomes=family.size,
            epsilon=epsilon,
            repetitions=repetitions,
            subset_size=subset.size,
            realised={name: self._costs(sampler, outputs[name]) for name, sampler in samplers.items()},
            own={name: float(np.where(self.laws > 0, q, 0.0).sum(axis=1).mean()) for name, q in outputs.items()},
            bias={name: float(distances(q.mean(axis=0), self.average)["tv"]) for name, q in outputs.items()},
            errors={name: self._errors(rows) for name, rows in found.items()},
            uniform={measure: float(value) for measure, value in uniform.items()},
        )

    def _costs(self, sampler: Sampler[FiniteFamily], q: Floats) -> dict[str, CostSummary]:
        return {
            f: CostSummary.of(float(sampler.risk(f)), np.asarray(divergence(f)(self.laws, q)))
            for f in PAPER_DIVERGENCES
        }

    def _errors(self, estimates: Floats) -> EstimateErrors:
        projected = np.array([nearest_law(row) for row in estimates])
        return EstimateErrors(
            *(
                {name: _mean(values) for name, values in distances(rows, self.average).items()}
                for rows in (estimates, projected)
            )
        )

    def _frequencies(self, outcomes: Integers) -> Floats:
        return np.bincount(outcomes, minlength=len(self.declared.outcomes)) / len(outcomes)


def _release_seeded(sampler: Sampler[FiniteFamily], laws: Floats, rng: np.random.Generator) -> Integers:
    """The library's own release, with a seed: an experiment on published data, not a private one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return np.asarray(sampler.release(laws, rng=rng))


def _mean(values: Floats) -> MeanEstimate:
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return MeanEstimate(float(values.mean()), spread / len(values) ** 0.5)
