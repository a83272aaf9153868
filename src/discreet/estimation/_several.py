"""One sample or J samples of each client under one budget: which is better for which purpose, computed for given clients.

There are four ways to spend epsilon on a client. *Single*: one sample at the whole budget. *Joint*: J samples drawn together
(`JointSampler`), as `release(p, size=J)` does. *Product*: the same around the product. *Composed*: J samples at epsilon/J each.

There are three purposes: one sample looks drawn from its client, TV(P, distribution of one sample); all J together look like J draws from
it, TV(P^J, distribution of the samples); the population is estimated, the expected TV of its estimate.

The last purpose uses linear samples, whose estimate is unbiased with a variance inversely proportional to gamma^2 n J. As epsilon falls,
gamma falls about in proportion, so J samples at epsilon/J have about J^2/J = J times the variance of one at epsilon: more samples carry
less information. `rounds_cost` is the factor for an agreement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.agreement import Agreement, FamilyTerms
from discreet.divergences import divergence
from discreet.errors import DiscreetError, check_count, check_kind
from discreet.estimation._planning import outlook
from discreet.families import Bounds, FiniteFamily, Simplex
from discreet.mechanisms import AROUND, JointSampler, LinearSampler, Multisets, OptimalSampler, ReportSampler
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import constants_for_privacy

Floats = NDArray[np.float64]
_SPREADS = 12  # typical clients if there are no examples
_ENTRIES = 1 << 22  # of distributions on multisets in memory at once
PURPOSES = ("each", "together", "population")


@dataclass(frozen=True)
class Way:
    """One way to spend a budget on a client, with its costs: total variation distances, None if there is nothing to compare.

    Attributes:
        name: of the way.
        samples: how many samples of each client.
        epsilon: of one draw; samples that are drawn at once share it.
        each: from a client's law to that of one of its samples.
        together: from so many draws of it to its samples.
        population: the expected distance of the estimated population from the truth.
    """

    name: str
    samples: int
    epsilon: float
    each: float
    together: float | None
    population: float | None


@dataclass(frozen=True)
class Ways:
    """The ways to spend a budget beside each other.

    Attributes:
        samples: how many samples of each client.
        epsilon: of all samples of a client together.
        clients: how many there are.
        worst: whether costs are over clients that hold 1, 2, ... outcomes alike; otherwise they are means over examples.
        ways: all of them.
    """

    samples: int
    epsilon: float
    clients: int
    worst: bool
    ways: tuple[Way, ...]

    def best(self, purpose: str) -> Way:
        """The way with the least cost for a purpose: "each", "together" or "population"."""
        if purpose not in PURPOSES:
            raise DiscreetError(f"purpose = {purpose!r} is not one of {', '.join(PURPOSES)}")
        found = [way for way in self.ways if getattr(way, purpose) is not None]
        if not found:
            raise DiscreetError(
                f"nothing is known for the purpose {purpose!r}: {self.samples} samples are too many to look at together"
            )
        return min(found, key=lambda way: round(float(getattr(way, purpose)), 9))  # the first of equal ones


def ways_to_spend(family: Simplex, *, samples: int, epsilon: float, clients: int, examples: Any = None) -> Ways:
    """The costs of one sample at epsilon, of J samples drawn together around the envelope or the product, and of J samples at epsilon/J
    each.

    Args:
        family: the public outcomes, a `Simplex`.
        samples: J, the number of samples of each client, at least 2.
        epsilon: the budget of each client.
        clients: the number of clients, for the population's estimate.
        examples: public distributions (n, k) over which costs are averaged; without them the largest cost over clients uniform on 1 to k
            outcomes.

    Returns:
        A `Ways`, with a `Way` called "single", "composed" and, if multisets can be listed, "joint" and "product".

    Raises:
        DiscreetError: for numbers out of range, a family other than a simplex, or invalid examples.
    """
    if not isinstance(family, Simplex):
        raise DiscreetError(f"family = {family!r} is not a Simplex; give the public outcomes, as Simplex(outcomes)")
    count = check_count("samples", samples, least=2, most=10**4, fix="one sample is one at the whole budget")
    check_count("clients", clients)
    laws = (
        _evenly_spread_clients(family.size) if examples is None else np.atleast_2d(family.as_rows(examples, "examples"))
    )
    whole = OptimalSampler(family, epsilon=epsilon)
    share = OptimalSampler(family, epsilon=whole.epsilon / count)
    costs = _ClientDistances(laws, worst=examples is None)
    multisets = Multisets(family.size, count) if Multisets.fit(family.size, count) else None
    error = _linear_error(family, whole.epsilon, clients)
    found = [Way("single", 1, whole.epsilon, costs.over(laws, whole.output(laws)), None, error)]
    if multisets is not None:
        for name, around in (("joint", AROUND[0]), ("product", AROUND[1])):
            joint = JointSampler(family, samples=count, epsilon=whole.epsilon, around=around)
            found.append(Way(name, count, whole.epsilon, *costs.of(joint), None))
    together = None if multisets is None else costs.on(multisets, share.output(laws))
    error = _linear_error(family, share.epsilon, clients * count)
    found.append(Way("composed", count, share.epsilon, costs.over(laws, share.output(laws)), together, error))
    return Ways(count, whole.epsilon, clients, examples is None, tuple(found))


class _ClientDistances:
    """Total variation distances of some clients, averaged or at worst."""

    def __init__(self, laws: Floats, *, worst: bool) -> None:
        self._laws, self._put = laws, (np.max if worst else np.mean)

    def over(self, held: Floats, released: Floats) -> float:
        return float(self._put(np.atleast_1d(divergence("tv")(held, released))))

    def on(self, multisets: Multisets, released: Floats) -> float:
        """The distances for independent draws, as multisets."""
        parts = [
            divergence("tv")(multisets.laws(self._laws[rows]), multisets.laws(released[rows]))
            for rows in self._blocks(len(multisets))
        ]
        return float(self._put(np.concatenate([np.atleast_1d(part) for part in parts])))

    def of(self, joint: JointSampler) -> tuple[float, float]:
        """The distances for one sample of a joint draw, and for all of them."""
        each, together = [], []
        for rows in self._blocks(len(joint.multisets)):
            held, released = joint.laws(self._laws[rows]), joint.output(self._laws[rows])
            together.append(np.atleast_1d(divergence("tv")(held, released)))
            each.append(np.atleast_1d(divergence("tv")(self._laws[rows], joint.multisets.marginals(released))))
        return float(self._put(np.concatenate(each))), float(self._put(np.concatenate(together)))

    def _blocks(self, size: int) -> list[slice]:
        many = max(1, _ENTRIES // size)
        return [slice(start, start + many) for start in range(0, len(self._laws), many)]


def _evenly_spread_clients(size: int) -> Floats:
    """Clients uniform on 1, ..., k outcomes: on the simplex it does not matter which."""
    held = np.unique(np.round(np.geomspace(1, size, _SPREADS)).astype(np.int64))
    return np.array([(np.arange(size) < s) / s for s in held])


def _linear_error(family: FiniteFamily, epsilon: float, samples: int) -> float | None:
    return outlook(LinearSampler(family, epsilon=epsilon), mechanism="linear", clients=samples).total


@dataclass(frozen=True)
class RoundsCost:
    """The error of an estimate from an agreement's rounds, compared with one sample of each client at their total budget.

    Attributes:
        rounds: how many there are.
        together: what they spend.
        factor: how many times larger the error of an estimate from all rounds is.
    """

    rounds: int
    together: Privacy
    factor: float

    def __str__(self) -> str:
        return (
            f"{self.rounds:,} rounds spend {self.together} together; one sample of each client at that would estimate a population "
            f"{self.factor:.3g} times as precisely as all {self.rounds:,} of them"
        )


def rounds_cost(agreement: Agreement) -> RoundsCost | None:
    """The cost of an agreement's rounds compared with one sample of each client; None for one round, or if rounds are better.

    Linear samples of clients like the reference: the error of n J samples is proportional to 1/(gamma sqrt(n J)). Other samplers are judged
    by the linear one of the same promise, since their samples leave a range of populations. Of reports the variances are compared.

    Args:
        agreement: on finitely many outcomes; None is returned for a continuous family.

    Returns:
        A `RoundsCost`, or None.

    Raises:
        DiscreetError: for what is not an agreement.
    """
    check_kind("agreement", agreement, Agreement, "pass Agreement.read(path) or Agreement.of(sampler)")
    terms, rounds, promise = agreement.family, agreement.rounds, agreement.promise
    if rounds == 1 or not isinstance(terms, FamilyTerms) or terms.size == 1 or agreement.joint is not None:
        return None
    if agreement.blocks is not None:
        outcomes = Simplex(terms.size)  # labels may be known by their digest alone
        single = ReportSampler(outcomes, privacy=agreement.privacy_of_all_rounds)
        report = ReportSampler(outcomes, privacy=promise, blocks=agreement.blocks.on(terms.size))
        factor = math.sqrt(report.variance() / (rounds * single.variance()))
        return RoundsCost(rounds, agreement.privacy_of_all_rounds, factor) if factor > 1.0 else None
    whole = terms.lower is None or terms.upper is None or terms.everybody
    bounds = Bounds(0.0, float(terms.size)) if whole else Bounds(float(terms.lower or 0.0), float(terms.upper or 0.0))
    together = agreement.privacy_of_all_rounds
    one, each = (constants_for_privacy(notion, bounds).gamma for notion in (together, promise))
    factor = one / (each * math.sqrt(rounds))
    return RoundsCost(rounds, together, factor) if factor > 1.0 else None
