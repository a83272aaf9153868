"""A certificate states the realised epsilon in exact arithmetic; a script without dependencies re-verifies it."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import (
    Agreement,
    Band,
    Cells,
    DiscreetError,
    Gaussian,
    GaussianMixtures,
    JointSampler,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    Points,
    ReportSampler,
    Simplex,
)
from discreet._base.numerics import log_bracket
from discreet.audit import certificate, certificate_of, verify
from discreet.mechanisms._sampler import Sampler
from tests.soaking import examples
from tests.strategies import bands, epsilons, sizes


@pytest.mark.slow
@given(st.fractions(1, 10**9))
@settings(max_examples=examples(200))
def test_logarithms_are_bracketed(ratio: Fraction) -> None:
    low, high = log_bracket(ratio)
    assert 0 <= low <= high <= low + Fraction(1, 10**50) + low * Fraction(1, 10**50)
    with mpmath.workdps(80):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator <= exact <= mpmath.mpf(high.numerator) / high.denominator


@pytest.mark.parametrize("kind", [OptimalSampler, LinearSampler])
@pytest.mark.parametrize("family", [Simplex(10), Band(np.ones(6), lower=0.5, upper=2.0)])
def test_extreme_clients_realise_all_of_epsilon(kind: type[Sampler[Any]], family: Simplex | Band) -> None:
    found = certificate(kind(family, epsilon=1.0))
    assert found.holds
    assert 1 - Fraction(1, 10**12) < found.realised_epsilon[0] <= found.realised_epsilon[1] < 1
    assert found.largest_epsilon is not None
    assert found.realised_epsilon[0] <= found.largest_epsilon[1] <= 1


@pytest.mark.slow
@given(st.data(), st.sampled_from([OptimalSampler, LinearSampler, MollifierSampler]))
@settings(deadline=None, max_examples=examples(60))
def test_every_sampler_has_a_certificate_that_verifies(data: st.DataObject, kind: type[Sampler[Any]]) -> None:
    family = data.draw(st.one_of(bands(20), sizes(20).map(Simplex)))
    found = certificate(kind(family, epsilon=data.draw(epsilons(1e-3, 40.0))))
    assert found.holds
    assert not found.is_refuted
    assert verify.problems(verify.parse_certificate(found.to_json())) == []


def test_several_samples_have_a_certificate_of_all_of_them() -> None:
    joint = JointSampler(Simplex(3), samples=3, epsilon=1.0)
    found = certificate(joint)
    assert found.holds
    assert len(found.weights[0]) == 10
    assert 1 - Fraction(1, 10**12) < found.realised_epsilon[0] <= found.realised_epsilon[1] < 1
    assert verify.problems(verify.parse_certificate(found.to_json())) == []
    assert not certificate(joint, epsilon=0.999).holds


def test_one_wrong_atom_is_found_exactly(tmp_path: Path) -> None:
    """A mechanism by somebody else, right but for one unit of one weight."""
    right = OptimalSampler(Simplex(3), epsilon=1.0)
    table = right.weights(np.eye(3)).tolist()
    assert certificate_of(table, epsilon=1.0).holds
    table[0][1] -= 10**16
    table[0][2] += 10**16
    wrong = certificate_of(table, epsilon=1.0, mechanism="theirs", inputs=("a", "b", "c"))
    assert wrong.is_refuted
    assert not wrong.holds
    assert wrong.worst[0] == 1
    wrong.write(tmp_path / "wrong.json")
    assert verify.main([str(tmp_path / "wrong.json")]) == 1


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([[1, 2]], "at least two rows"),
        ([[1, 2], [3, 1]], "sum to [3, 4]"),
        ([[0, 3], [2, 1]], "weights[0][0] = 0"),
        ([[1.5, 1.5], [2, 1]], "weights[0][0] = 1.5"),
        ([[math.nan, 1.5], [2, 1]], "weights[0][0] = nan"),
    ],
)
def test_bad_tables_are_refused(weights: list[list[float]], says: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        certificate_of(weights, epsilon=1.0)
    assert says in str(caught.value)


@pytest.mark.parametrize("inputs", [("a", "a"), ("a", ""), ("a", 3), ("a", "b", "c")])
def test_inputs_have_names_of_their_own(inputs: tuple[str, ...]) -> None:
    with pytest.raises(DiscreetError, match="inputs"):
        certificate_of([[1, 2], [2, 1]], epsilon=1.0, inputs=inputs)


@pytest.mark.parametrize("discretisation", [Cells(50), Points(60, seed=1)], ids=str)
@pytest.mark.parametrize("kind", [OptimalSampler, LinearSampler, MollifierSampler])
def test_continuous_samplers_have_certificates_too(kind: type[Sampler[Any]], discretisation: Cells | Points) -> None:
    """Of the cells or points that they release by."""
    sampler = kind(GaussianMixtures(box=(-4.0, 4.0)), epsilon=1.0, discretisation=discretisation)
    found = certificate(sampler, most_inputs=10)
    assert found.holds
    assert len(found.weights) == 10
    assert len(found.weights[0]) == sampler.box.size
    assert (
        found.realised_epsilon[0] > Fraction(9, 10) if kind is not MollifierSampler else found.realised_epsilon[0] > 0
    )
    assert verify.problems(verify.parse_certificate(found.to_json())) == []


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (7, 0.5), (12, 1.0), (104, 1.0), (104, 4.0), (20, 6.0)])
def test_a_certificate_of_reports_says_what_every_single_report_loses(size: int, epsilon: float) -> None:
    """Against the exact probability of every report, or of every class of them where there are too many; for three pairs of outcomes."""
    sampler = ReportSampler(Simplex(size), epsilon=epsilon)
    found = certificate(sampler, agreement=Agreement.of(sampler))
    assert found.holds
    assert found.total == 2**62 * sampler.blocks.block_count * sampler.blocks.width
    every = sampler.reports()
    for pair in {(0, 1), (0, size - 1), (size - 1, size // 2)}:
        if pair[0] == pair[1]:
            continue
        one, other = (sampler.holds(every, [outcome] * len(every)) for outcome in pair)
        classes = [one & other, one & ~other, ~one & other, ~one & ~other]
        sizes = [int(each.sum()) for each in classes if each.any()]
        first = [sampler.probability(int(every[each][0]), pair[0]) for each in classes if each.any()]
        second = [sampler.probability(int(every[each][0]), pair[1]) for each in classes if each.any()]
        for row, single in zip(found.weights, (first, second), strict=True):
            assert [Fraction(weight, found.total) for weight in row] == [
                number * each for number, each in zip(sizes, single, strict=True)
            ]
    assert found.ratio == max(map(Fraction, first, second))
    assert not replace(found, epsilon=epsilon * 0.99).holds


def test_reports_are_certified_for_pure_epsilon_on_two_outcomes_at_least() -> None:
    with pytest.raises(DiscreetError, match="certified for pure epsilon"):
        certificate(ReportSampler(Simplex(9), epsilon=1.0), privacy=Gaussian(1.0))
    with pytest.raises(DiscreetError, match="no two clients to compare"):
        certificate(ReportSampler(Simplex(1), epsilon=1.0))


@pytest.mark.parametrize("epsilon", [0.5, 0.6931471805599453, 0.7, 1e12, 1e300])
def test_a_claim_is_refuted_at_any_epsilon_without_writing_out_its_exponential(epsilon: float) -> None:
    found = certificate_of([[1, 2], [2, 1]], epsilon=epsilon)  # the ratio is 2
    with mpmath.workprec(200):
        assert found.is_refuted == (mpmath.mpf(epsilon) < mpmath.log(2))
    assert not (found.is_refuted and found.holds)
