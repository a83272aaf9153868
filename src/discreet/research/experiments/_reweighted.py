"""What a curator learns from designed samples when some clients are public: the samples as they are, the public ones reweighted, and oracles.

For each set and epsilon, over seeded splits: a fifth of the clients are public examples. A design is made on them; the other four
fifths, the *served*, release one sample each by it. The target is the average law of the served, who are not the examples. Compared are

* the samples as they are, biased towards the reference;
* the examples reweighted until they explain the samples (`discreet.estimation._reweighting`);
* the samples less the bias that the reweighted examples have;
* the examples as they are, without asking anybody: the line that says whether samples were needed at all;
* subset selection, unary encoding and local hashing on one raw draw of each served client, projected onto the simplex.

Examples are drawn in two ways: at random, so that they are like the served; and skewed, so that they are not: a client becomes an
example with odds e^z, z its coordinate along the first principal axis of the set in standard deviations.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.design import design
from discreet.estimation import nearest_law
from discreet.estimation._reweighting import reweight_examples
from discreet.families import Simplex
from discreet.research.experiments._frequency_oracles import LocalHashing, SubsetSelection, UnaryEncoding
from discreet.research.experiments._population import MeanEstimate, distances, raw_draws
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet, names_present

Floats = NDArray[np.float64]

REWEIGHTED_BUDGETS = (0.5, 1.0, 2.0, 4.0)
SKEWS = {"random": 0.0, "skewed": 1.0}
KEEP = 0.01


@dataclass(frozen=True)
class ReweightedSet:
    """One set at one budget with one way to draw examples: mean TV errors by estimate, to the average law of the served."""

    unit: str
    set: str
    title: str
    epsilon: float
    drawn: str
    examples: int
    served: int
    repetitions: int
    errors: dict[str, MeanEstimate]


@final
@dataclass(frozen=True)
class ReweightedComparison:
    """Designed samples, as they are and by reweighted examples, against frequency oracles. A unit is one set at one epsilon."""

    name: str = "reweighted"
    epsilons: tuple[float, ...] = REWEIGHTED_BUDGETS
    repetitions: int = 10
    share: float = 0.2
    seed: int | None = 7
    quick: bool = False
    sets: tuple[ClientSet, ...] = CLIENT_SETS
    computes: str = (
        "the error of the estimated average law of clients who are no examples, from designed samples and from oracles"
    )
    record: type[ReweightedSet] = ReweightedSet

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {
            "epsilons": self.epsilons,
            "repetitions": self.repetitions,
            "share": self.share,
            "keep": KEEP,
            "skews": SKEWS,
            "sets": {one.name: len(one.outcomes) for one in self.sets},
        }

    @property
    def units(self) -> Sequence[str]:
        return [
            f"{name}/{epsilon:g}/{drawn}"
            for name in names_present(self.sets)
            for epsilon in self.epsilons
            for drawn in SKEWS
        ]

    def results(self, units: Sequence[str]) -> Iterator[list[ReweightedSet]]:
        held: tuple[ClientSet, Floats] | None = None
        for unit in units:
            name, epsilon, drawn = unit.split("/")
            if held is None or held[0].name != name:  # one set in memory at a time
                declared = next(one for one in self.sets if one.name == name)
                held = declared, declared.laws
            yield [self.row(unit, *held, float(epsilon), drawn)]

    def row(self, unit: str, declared: ClientSet, laws: Floats, epsilon: float, drawn: str) -> ReweightedSet:
        """Everything recorded of one set at one budget."""
        rng = np.random.default_rng([self.seed or 0, zlib.crc32(unit.encode())])
        axis = SKEWS[drawn] * _first_axis(laws)
        number = max(1, round(self.share * len(laws)))
        found: dict[str, list[float]] = {}
        for _ in range(self.repetitions):
            order = np.argsort(-(axis + rng.gumbel(size=len(laws))))
            estimates, target = _estimates(laws[order[:number]], laws[order[number:]], epsilon, rng)
            for name, law in estimates.items():
                found.setdefault(name, []).append(float(distances(law, target)["tv"]))
        errors = {name: MeanEstimate(float(np.mean(one)), _standard_error(one)) for name, one in found.items()}
        return ReweightedSet(
            unit, declared.name, declared.title, epsilon, drawn, number, len(laws) - number, self.repetitions, errors
        )


def _estimates(
    examples: Floats, served: Floats, epsilon: float, rng: np.random.Generator
) -> tuple[dict[str, Floats], Floats]:
    """Every estimate of the average served client, and that client."""
    k = served.shape[1]
    sampler = design(Simplex(k), epsilon=epsilon, clients=examples, keep=KEEP).sampler
    counts = np.bincount(raw_draws(np.asarray(sampler.output(served)), rng), minlength=k)
    found = reweight_examples([(sampler, counts)], examples)
    raw = raw_draws(served, rng)
    oracles = {
        "subset": SubsetSelection(k, epsilon=epsilon),
        "unary": UnaryEncoding(k, epsilon=epsilon),
        "hashing": LocalHashing(k, epsilon=epsilon),
    }
    return {
        "samples": counts / counts.sum(),
        "reweighted": found.law,
        "debiased": found.debiased,
        "examples": examples.mean(axis=0),
        **{name: nearest_law(oracle.estimate(raw, rng)) for name, oracle in oracles.items()},
    }, served.mean(axis=0)


def _first_axis(laws: Floats) -> Floats:
    """Each client's coordinate along the axis on which clients differ most, in standard deviations."""
    centred = laws - laws.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    along = centred @ vectors[:, -1]
    along *= np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])  # eigenvectors have no sign of their own
    return np.asarray(along / max(float(along.std()), 1e-300))


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
