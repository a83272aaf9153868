"""Hostile calls of families on R^d, their clients and their samplers."""

from typing import Any

import numpy as np

import discreet as dc
from discreet.research import BoostedSampler, Training
from tests.fuzz.chooser import WORDS, Chooser

FITS: list[Any] = [None, dc.families.HistogramFit(4), dc.families.KernelFit(), dc.families.MixtureFit(8)]


def continuous_families(c: Chooser) -> Any:
    what = c.below(8)
    points = c.among([0.3, [0.1, -5.0], [[0.1, 0.2]], [np.nan], [], c.number()])
    if what == 0:
        weights, means = (c.among([[1.0], [1.0, 2.0], [0.0], c.number(), [c.number()]]) for _ in range(2))
        kernel = c.among(["gaussian", "laplace", *WORDS])
        return dc.Mixture(weights, means, c.among([1.0, c.number()]), kernel=kernel).pdf(points)
    if what == 1:
        axis = [c.among([0.0, 1.0, 2.0, c.number()]) for _ in range(c.below(4))]
        return dc.families.Tabulated(axis, [c.number() for _ in range(c.below(4))]).pdf(points)
    if what == 2:
        return [
            c.among([dc.families.HistogramFit, dc.families.KernelFit, dc.families.MixtureFit])(c.number()),
            c.among([dc.Cells, dc.Points, dc.Density])(c.number()),
            dc.families.BoundedDensity(c.density(), lipschitz=c.number()),
        ]
    family = c.continuous_family()
    if what == 3:
        return family.pdf(points)
    if what == 4:
        records = [c.among([0.0, 0.5, -1.0, c.number()]) for _ in range(c.below(5))]
        law = family.law(records=records, fit=c.among([*FITS, c.number()]))
        return law.log_density(np.zeros((2, family.dim)))
    if what == 5:
        return family.cells(c.among([4, 9, c.number()])).masses
    if what == 6 and hasattr(family, "mixture"):
        return family.mixture(c.among([[1.0], [c.number()]]), c.among([[0.0], [[0.2] * 2], [c.number()]])).pdf(points)
    return family.bounds


def continuous_samplers(c: Chooser) -> Any:
    family = c.continuous_family()
    what = c.below(9)
    if what == 0:
        return dc.minimax_risk(family, epsilon=c.number(), divergence=c.among(WORDS))
    if what == 1:
        return dc.mechanisms.nearest_member(family, c.density()).log_density(np.zeros((2, family.dim)))
    if what == 2:
        training = Training(
            rounds=1, samples=20, batch=10, epochs=1, width=3, burn_in=5, sampling=c.among(["exact", "metropolis"])
        )
        preset = c.among(["published", "corrected", *WORDS])
        boosted = BoostedSampler(family, epsilon=c.number(), preset=preset, training=training)
        law = boosted.output(c.density(), seeds=[0])
        return [law.divergence(c.among(WORDS)), law.largest_log_ratio]
    kind = c.among([dc.OptimalSampler, dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
    ways = [None, None, dc.Cells(20), dc.Points(50), dc.Points(50, seed=3), dc.Density(), c.number()]
    sampler = kind(family, epsilon=c.number(), discretisation=c.among(ways))
    client = c.density() if c.below(3) else [c.density() for _ in range(c.below(3))]
    if what == 3:
        law = sampler.output(client)
        assert isinstance(law, dc.mechanisms.OutputLaw)
        return [law.scale, law.mass, law.divergence(c.among(WORDS)), law.pdf(np.zeros((2, family.dim)))]
    if what == 4:
        return sampler.weights(client)
    if what == 5:
        return sampler.risk(c.among(WORDS))
    if what == 6:
        return sampler.points(sampler.release_number(client))
    if what == 7 and isinstance(sampler, dc.OptimalSampler):
        return [sampler.scale(client), sampler.estimation_cost(client, records=c.number())]
    return sampler.release(client)
