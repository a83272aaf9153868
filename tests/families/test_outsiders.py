"""Who is outside a family, and what is said of it: the same rule and the same words for outcomes, cells and points."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet import families
from discreet.mechanisms import MECHANISMS, _atoms as densities, nearest_member
from tests.soaking import wide

BAND = dc.Band([1, 2, 3], lower=0.5, upper=1.5)
INTERVAL = dc.GaussianMixtures(1, box=(-4.0, 4.0))
LAPLACE = dc.LaplaceMixtures(1)
NORMAL = dc.DensityBand(stats.norm(), lower=0.5, upper=2.0)
FAR = stats.norm(0.0, 0.05)

CLIENTS: dict[str, tuple[Any, Any, Any, Any]] = {  # a family, how it is released, a member, an outsider
    "outcomes": (BAND, None, [0.2, 0.3, 0.5], [0.9, 0.05, 0.05]),
    "mixtures by cells": (INTERVAL, dc.Cells(), INTERVAL.mixture([1.0], [0.5]), FAR),
    "mixtures by points": (INTERVAL, dc.Points(4096, seed=1), INTERVAL.mixture([1.0], [0.5]), FAR),
    "Laplace": (LAPLACE, dc.Cells(), LAPLACE.mixture([1.0], [0.5]), FAR),
    "a density band": (NORMAL, dc.Cells(), stats.norm(), FAR),
    "near a law": (dc.Near([1, 2, 3], factor=1.5), None, [0.2, 0.3, 0.5], [0.9, 0.05, 0.05]),
    "near a density": (dc.Near(stats.norm(), factor=2.0), dc.Points(4096, seed=1), stats.norm(), FAR),
    "many dimensions": (
        dc.LaplaceMixtures(5), dc.Points(4096, seed=1), dc.Mixture([1.0], np.zeros((1, 5)), kernel="laplace"),
        stats.multivariate_normal(np.zeros(5), 0.2 * np.eye(5)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", CLIENTS)
def test_families_say_who_is_outside(which: str) -> None:
    family, _, member, outsider = CLIENTS[which]
    assert family.contains(member)
    assert not family.contains(outsider)
    assert family.contains([member, member])
    assert not family.contains([member, outsider])


@pytest.mark.parametrize("which", CLIENTS)
@pytest.mark.parametrize("kind", MECHANISMS.values())
def test_who_projects_warns_and_who_mixes_refuses_in_the_same_words(which: str, kind: Any) -> None:
    family, how, member, outsider = CLIENTS[which]
    sampler = kind(family, epsilon=0.5) if how is None else kind(family, epsilon=0.5, discretisation=how)
    words = r"p\[1\] is outside .*: relative to the reference it runs from \S+ to \S+, the band from \S+ to \S+; "
    for method in (sampler.output, sampler.weights, sampler.release, sampler.release_number):
        method([member, member])  # without a word: warnings are errors
        if kind is dc.LinearSampler:
            with pytest.raises(dc.OutsideFamilyError, match=words + "the law released for it would not be linear"):
                method([member, outsider])
        else:
            with pytest.warns(dc.OutsideFamilyWarning, match=words + "its release is equally private"):
                method([member, outsider])


def samplers_of(which: str) -> list[Any]:
    family, how, *_ = CLIENTS[which]
    given = {} if how is None else {"discretisation": how}
    found = [kind(family, epsilon=0.5, **given) for kind in MECHANISMS.values()]
    own = np.array([0.3, 0.3, 0.4]) if how is None else stats.laplace() if family.dim == 1 else None
    return found if own is None else [*found, dc.MollifierSampler(family, epsilon=0.5, reference=own, **given)]


@pytest.mark.parametrize("which", CLIENTS)
def test_outsiders_are_told_of_once_by_their_number_and_in_one_category(which: str, monkeypatch: Any) -> None:
    """Whatever the family, the mechanism and the method, and however many clients are put on atoms at a time."""
    _, _, member, outsider = CLIENTS[which]
    some = [member, outsider, member, outsider, outsider]
    for sampler, entries in itertools.product(samplers_of(which), (1 << 22, 2 * 4096, 1)):
        monkeypatch.setattr(densities, "_BLOCK", entries)
        methods = (sampler.output, sampler.weights, sampler.release, sampler.release_number)
        for method in methods if entries == 1 << 22 else methods[2:3]:
            if sampler.mixing is not None:
                with pytest.raises(dc.OutsideFamilyError, match=r"p\[1\] .*is outside"):
                    method(some)
                with pytest.raises(dc.OutsideFamilyError, match="p is outside"):
                    method(outsider)
                continue
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                method(some)
                method(outsider)
                method([member, member])
            assert [one.category for one in told] == [dc.OutsideFamilyWarning] * 2
            assert str(told[0].message).startswith("p[1] and 2 more is outside ")
            assert str(told[1].message).startswith("p is outside ")
            assert [Path(one.filename).name for one in told] == [Path(__file__).name] * 2


def test_every_kind_of_family_is_tried() -> None:
    named = [getattr(families, name) for name in families.__all__]
    kinds = {one for one in named if isinstance(one, type) and hasattr(one, "contains")}
    roles = {families.FiniteFamily, families.ContinuousFamily}
    assert kinds - roles - {type(family) for family, *_ in CLIENTS.values()} == {dc.Simplex}, "which has no outsiders"


@pytest.mark.parametrize("family", [dc.Simplex(3), dc.Simplex(["a", "b", "c"]), dc.Preserving([1, 2, 3])])
def test_where_everybody_is_served_nobody_is_told_of(family: Any) -> None:
    corner = [1.0, 0.0, 0.0]
    assert family.contains(corner)
    assert family.contains([corner, [0.2, 0.3, 0.5]])
    for kind in MECHANISMS.values():
        if kind is not dc.LinearSampler or isinstance(family, dc.Simplex):
            kind(family, epsilon=0.5).release([corner, corner])  # without a word: warnings are errors


def test_a_band_that_serves_everybody_has_no_outsiders() -> None:
    everybody = dc.Band([1, 2, 3], lower=0.0, upper=1.5, any_client=True)
    assert not everybody.contains([1.0, 0.0, 0.0])  # it is not in the band ...
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dc.OptimalSampler(everybody, epsilon=1.0).release([1.0, 0.0, 0.0])  # ... which claims nothing about clients


def test_what_is_no_law_is_refused_rather_than_told_to_be_outside() -> None:
    for bad in ([1.5, -0.5, 0.0], [0.9, 0.9, 0.9]):
        with pytest.raises(dc.DiscreetError, match=r"negative|sums to"):
            dc.OptimalSampler(BAND, epsilon=0.5).release(bad)
        with pytest.raises(dc.DiscreetError, match=r"negative|sums to"):
            BAND.contains(bad)
    with pytest.raises(dc.DiscreetError, match="zero mass"):
        INTERVAL.contains(stats.uniform(10.0, 1.0))


def test_rounding_puts_nobody_outside() -> None:
    """Extreme members, computed in floating point, are members."""
    rng = np.random.default_rng(4)
    for _ in range(wide(200, 50)):
        mu = rng.random(rng.integers(2, 9)) + 0.05
        family = dc.Band(mu, lower=float(rng.uniform(0.0, 0.9)), upper=float(rng.uniform(1.1, 4.0)))
        extreme = nearest_member(family, np.eye(family.size))
        assert family.contains(extreme)
        dc.OptimalSampler(family, epsilon=0.7).release(extreme)


@pytest.mark.parametrize("p", [stats.norm(0.5, 0.3), stats.norm(0.5, 0.3).pdf], ids=["known", "bare"])
def test_a_client_with_mass_where_the_reference_has_none_is_outside(p: Any) -> None:
    """Nodes without reference were left out: a client with half of its mass there counted as a member, and its mass as known to 1e-12."""
    gap = dc.DensityBand(lambda x: np.where((x < 0.3) | (x > 0.7), 1.0, 0.0), (0.0, 1.0), lower=0.0, upper=4.0)
    assert not gap.contains(p)
    assert gap.contains(lambda x: np.where((x < 0.3) | (x > 0.7), 1.0 + x, 0.0))
    sampler = dc.OptimalSampler(gap, epsilon=1.0)
    with pytest.warns(dc.OutsideFamilyWarning, match="to inf"):
        sampler.release(p)
    for argument in (p, [p]):
        with pytest.warns(dc.OutsideFamilyWarning, match="to inf"), pytest.warns(dc.errors.UnresolvedWarning):
            law = sampler.output(argument)
        assert float(np.max(law.mass_error)) > 0.4
    with pytest.raises(dc.OutsideFamilyError):
        dc.LinearSampler(gap, epsilon=1.0).release(p)
