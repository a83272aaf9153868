"""A public function that is given the wrong kind of object says what to pass: a result or one of our errors, for every argument."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet import accounting, audit, estimation
from discreet.accounting import BoxProfile
from discreet.research import BoostedSampler

LINE = dc.GaussianMixtures()
FINITE = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
CONTINUOUS = dc.OptimalSampler(LINE, epsilon=1.0, how=dc.Cells(8))
LINEAR = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
PROFILE = BoxProfile(epsilon=1.0, alpha=0.1)
LAW = CONTINUOUS.output(stats.norm())
WRONG: list[Any] = [
    10, 1.5, "abc", None, [1, 2], {}, object(), np.ones(3), LINE, dc.Simplex(3), dc.Band([5, 3, 2], lower=0.5, upper=1.5),
    FINITE, CONTINUOUS, BoostedSampler(LINE, epsilon=1.0), PROFILE, stats.norm(), lambda x: x, dc.Simplex, dc.OptimalSampler,
    float("nan"), [FINITE], b"x", 2j, True, LAW,
]  # fmt: skip
CALLS: dict[str, tuple[Callable[..., Any], list[Any], dict[str, Any]]] = {
    "nearest_member": (dc.mechanisms.nearest_member, [LINE, stats.norm()], {}),
    "nearest_member of laws": (dc.mechanisms.nearest_member, [dc.Simplex(3), [0.5, 0.5, 0.0]], {}),
    "OptimalSampler": (dc.OptimalSampler, [dc.Simplex(3)], {"epsilon": 1.0, "how": None}),
    "LinearSampler": (dc.LinearSampler, [LINE], {"epsilon": 1.0, "how": None}),
    "MollifierSampler": (dc.MollifierSampler, [dc.Simplex(3)], {"epsilon": 1.0, "how": None, "reference": None}),
    "BoostedSampler": (BoostedSampler, [LINE], {"epsilon": 1.0, "preset": "published", "training": None}),
    "DensityBand": (dc.DensityBand, [stats.norm(), None], {"lower": 0.5, "upper": 2.0}),
    "GaussianMixtures": (dc.GaussianMixtures, [1], {"radius": 1.0, "scale": 1.0, "box": None}),
    "Mixture": (dc.Mixture, [[1.0], [0.0], 1.0], {"kernel": "gaussian"}),
    "Tabulated": (dc.families.Tabulated, [[0.0, 1.0], [1.0]], {}),
    "BoundedDensity": (dc.families.BoundedDensity, [stats.norm()], {"lipschitz": 1.0, "cdf": None, "error": None}),
    "profile_of": (accounting.profile_of, [FINITE], {}),
    "compose": (accounting.compose, [[(PROFILE, 2)]], {}),
    "renyi": (accounting.renyi, [PROFILE], {"order": 2.0}),
    "epsilon_from_renyi": (accounting.epsilon_from_renyi, [PROFILE], {"samples": 3, "delta": 1e-3}),
    "shuffled_delta": (accounting.shuffled_delta, [PROFILE], {"clients": 100, "epsilon": 0.5}),
    "shuffled_epsilon": (accounting.shuffled_epsilon, [PROFILE], {"clients": 100, "delta": 1e-3}),
    "certificate": (audit.certificate, [FINITE], {"epsilon": 1.0, "most_inputs": 4}),
    "certificate_of": (audit.certificate_of, [[[1, 2], [2, 1]]], {"epsilon": 1.0, "mechanism": "", "inputs": ()}),
    "black_box_audit": (audit.black_box_audit, [lambda value, n: np.zeros(n), [0, 1]], {"epsilon": 1.0, "draws": 400}),
    "inversion_of": (estimation.inversion_of, [LINEAR], {}),
    "output": (FINITE.output, [[1.0, 0.0, 0.0]], {}),
    "output of a density": (CONTINUOUS.output, [stats.norm()], {}),
    "weights": (CONTINUOUS.weights, [stats.norm()], {}),
    "weights_on_atoms": (FINITE.weights_on_atoms, [[1.0, 0.0, 0.0]], {}),
    "release": (CONTINUOUS.release, [stats.norm()], {"rng": None}),
    "release_number": (CONTINUOUS.release_number, [stats.norm()], {"rng": None}),
    "points": (CONTINUOUS.points, [1], {"rng": None}),
    "risk": (CONTINUOUS.risk, ["kl"], {}),
    "scale": (CONTINUOUS.scale, [stats.norm()], {}),
    "pdf": (LAW.pdf, [0.0], {}),
    "relative": (LAW.relative, [np.zeros((2, 1))], {}),
    "divergence": (LAW.divergence, ["kl"], {}),
    "law": (LINE.law, [], {"records": [0.0], "fit": None}),
    "cells": (LINE.cells, [4], {}),
    "mixture": (LINE.mixture, [[1.0], [0.0]], {}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_every_argument_of_the_wrong_kind_is_told(name: str) -> None:
    function, arguments, options = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(*arguments, **options)
        for wrong in WRONG:
            for place in range(len(arguments)):
                _tried(function, [*arguments[:place], wrong, *arguments[place + 1 :]], options)
            for option in options:
                _tried(function, arguments, {**options, option: wrong})


def _tried(function: Callable[..., Any], arguments: list[Any], options: dict[str, Any]) -> None:
    with contextlib.suppress(dc.DiscreetError):
        function(*arguments, **options)


@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
@pytest.mark.parametrize("wrong", [10, FINITE, dc.Simplex, dc.GaussianMixtures, PROFILE, LAW], ids=str)
def test_what_is_no_family_is_not_taken_for_one(kind: Any, wrong: Any) -> None:
    """A sampler has bounds too, and so has the class of a family."""
    with pytest.raises(dc.DiscreetError, match="is not a family; pass Simplex"):
        kind(wrong, epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="is not a family; pass Simplex"):
        dc.mechanisms.nearest_member(wrong, [0.5, 0.5])
