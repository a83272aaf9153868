"""Hostile notions of privacy, classes around a public law, and metrics."""

import math
from typing import Any

import numpy as np

import discreet as dc
from discreet import accounting, estimation
from tests.fuzz.chooser import NUMBERS, WORDS, Chooser

CURVES: list[Any] = [
    lambda x: 1.0 - x, lambda x: max(0.0, 1.0 - 2.0 * x), lambda x: (1.0 - x) ** 2, lambda x: 1.0 - x**2, lambda x: 0.0, lambda x: 2.0,
    lambda x: math.nan, lambda x: None, lambda x: 1.0 / x, lambda: 0, 3, [(0.0, 1.0), (1.0, 0.0)], [(0.0, 0.9), (0.4, 0.4), (1.0, 0.0)],
    [(0.0, 1.0)], [(0.0, 1.0), (0.0, 0.5), (1.0, 0.0)], [(0, "1"), (1, None)], "ab", {},
]  # fmt: skip


def _notion(c: Chooser) -> Any:
    what = c.below(5)
    if what == 0:
        return dc.Pure(c.number())
    if what == 1:
        return dc.Approximate(c.number(), delta=c.among([1e-6, 0.01, 0.5, c.number()]))
    if what == 2:
        return dc.Gaussian(c.number())
    return dc.Functional(c.among(CURVES)) if what == 3 else c.among([None, 1.0, "pure", dc.Pure])


def notions(c: Chooser) -> Any:
    """Boxes, samplers and budgets under every notion."""
    what = c.below(5)
    if what == 0:
        notion = _notion(c)
        if not isinstance(notion, dc.privacy.Privacy):
            return None
        return [notion.tradeoff(c.among([0.0, 0.3, 1.0, c.number()])), notion.profile(c.number()), str(notion)]
    if what == 1:
        kind = c.among([dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
        family = c.family()
        sampler = kind(family, privacy=_notion(c))
        weights = sampler.weights(np.full(family.size, 1.0 / family.size))
        assert int(weights.sum()) == 1 << 62
        return [sampler.risk(c.among(WORDS)), weights]
    if what == 2:
        return dc.minimax_risk(c.family(), privacy=_notion(c), divergence=c.among(WORDS))
    if what == 3:
        return dc.nu_for(c.family(), divergence=c.among(WORDS), risk=c.number())
    return dc.epsilon_for(c.family(), divergence=c.among(WORDS), risk=c.number(), delta=c.among([1e-6, c.number()]))


def several(c: Chooser) -> Any:
    """Several samples of one client under one budget, and budgets split and added up."""
    family: Any = c.family()
    count = c.among([1, 2, 3, 7, 30, 0, -1, 2.5, True, None, 10**6, c.number()])
    what = c.below(8)
    if what == 7:
        odometer = accounting.Odometer(delta=c.among([1e-6, 0.0, c.number()]))
        profile = accounting.BoxProfile(epsilon=c.number(), alpha=c.among([0.1, 0.5, c.number()]))
        return [odometer.with_releases(profile, samples=c.among([1, 64, count])).epsilon, odometer.pure]
    if what == 5:
        return estimation.ways_to_spend(
            family, samples=count, epsilon=c.number(), clients=c.among([10, 1000, c.number()])
        )
    if what == 6:
        sampler = dc.LinearSampler(family, privacy=_notion(c))
        rows = [[c.below(family.size) for _ in range(c.among([2, 2, 3, 0]))] for _ in range(c.below(5))]
        agreement = dc.Agreement.of(sampler, rounds=c.among([2, 10, count]))
        return [estimation.rounds_cost(agreement), estimation.population(agreement, samples=rows).law]
    if what == 0:
        around: Any = c.among(["envelope", "product", None])
        joint = dc.JointSampler(family, samples=count, epsilon=c.number(), around=around)
        law = c.law(family.size)
        assert int(joint.weights(np.full(family.size, 1.0 / family.size)).sum()) == 1 << 62
        return [
            joint.laws(law),
            joint.output(law),
            joint.output_of_each(law),
            joint.release(law),
            joint.risk(c.among(WORDS)),
        ]
    if what == 1:
        sampler = c.among([dc.OptimalSampler, dc.LinearSampler])(family, privacy=_notion(c))
        return sampler.release(c.law(family.size), size=c.among([2, 3, count]))
    if what == 2:
        return accounting.equal_share(_notion(c), samples=c.among([2, 3, count]), bounds=family.bounds)
    if what == 3:
        loss = accounting.compose([(_notion(c), c.among([1, 3, count])), (_notion(c), c.among([1, 2, count]))])
        return [loss.delta(c.among([0.5, 3.0, c.number()])), loss.epsilon(c.among([1e-6, 0.1, c.number()]))]
    return dc.mechanisms.Multisets(c.among([1, 2, 5, 10**9]), count)


def around(c: Chooser) -> Any:
    """Classes around a public law, and samplers that preserve it."""
    law = c.law(1 + c.below(6))
    if c.below(2):
        family = dc.Near(law, factor=c.among([2.0, 3.0, c.number()]), labels=c.among([None, None, ["a", "b"]]))
    else:
        family = dc.Preserving(law, labels=c.among([None, None, ["a", "b"]]))
    assert isinstance(family, dc.Band)
    return dc.OptimalSampler(family, epsilon=c.number()).output(c.law(family.size))


def transports(c: Chooser) -> Any:
    """Samplers by distance, over points and metrics that are none."""
    size = 1 + c.below(5)
    what = c.below(4)
    if what == 0:
        given: dict[str, Any] = {"points": [c.among([*NUMBERS, 0.5, 2.5]) for _ in range(size)]}
    elif what == 1:
        metric = np.array([[float(c.below(9)) for _ in range(size)] for _ in range(size)])
        given = {"metric": metric if c.below(3) == 0 else (metric + metric.T + 20.0) * (1 - np.eye(size))}
    elif what == 2:
        given = {"points": np.array([[float(c.below(50)), float(c.below(50))] for _ in range(size)])}
    else:
        given = {"points": np.arange(size) * c.among([1.0, 1e-300, 1e300, 0.1])}
    sampler = dc.TransportSampler(**given, epsilon=c.among([0.5, 2.0, c.number()]))
    law = c.law(size)
    assert int(sampler.weights(np.full(size, 1.0 / size)).sum()) == 1 << 62
    return [sampler.worst, sampler.bound, sampler.output(law), sampler.release(law)]
