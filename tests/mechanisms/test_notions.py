"""Samplers under every notion of privacy: the published values, what is drawn, who is refused, and that nobody fares worse than linearly."""

import math
import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats

import discreet as dc
from discreet._base.numerics import exp_lower
from discreet.accounting import compose, profile_of
from discreet.audit import certificate
from discreet.mechanisms import nearest_member
from discreet.privacy import Privacy
from discreet.privacy.tradeoff import Risk
from discreet.release import TOTAL
from tests.needed import needed_module
from tests.soaking import wide

distributions = needed_module("dp_accounting.pld.privacy_loss_distribution", "pip install --group trust")

NOTIONS = [dc.Approximate(1.0, delta=1e-6), dc.Approximate(0.3, delta=0.05), dc.Gaussian(1.0), dc.Gaussian(0.2)]
FAMILIES: list[Any] = [dc.Simplex(10), dc.Near([1] * 10, factor=4.0), dc.Band([4, 3, 2, 1], lower=0.5, upper=2.0)]


@pytest.mark.parametrize(
    ("notion", "everybody", "local"),
    [
        (dc.Pure(1.0), (1.46115, 0.76803, 0.51837), (0.32717, 0.39539, 0.08599)),
        (dc.Gaussian(1.0), (1.1117, 0.6710, 0.42642), (0.24504, 0.34072, 0.06499)),
    ],
    ids=str,
)
def test_the_follow_ups_values_on_ten_outcomes(
    notion: Privacy, everybody: tuple[float, ...], local: tuple[float, ...]
) -> None:
    """KL, TV and HALF the squared Hellinger distance, as its code prints it; the local class has gamma = k/2 - 1."""
    for family, published in ((dc.Simplex(10), everybody), (dc.Near([1] * 10, factor=4.0), local)):
        for name, value, halved in zip(("kl", "tv", "hellinger"), published, (1, 1, 2), strict=True):
            for found in (
                dc.minimax_risk(family, privacy=notion, divergence=name),
                dc.OptimalSampler(family, privacy=notion).risk(name),
                dc.LinearSampler(family, privacy=notion).risk(name),
            ):
                assert float(found) / halved == pytest.approx(value, abs=6e-6)
                assert found.tight


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_no_client_fares_worse_than_by_the_published_linear_mechanism(notion: Privacy, family: Any) -> None:
    rng = np.random.default_rng(5)
    optimal, linear = (kind(family, privacy=notion) for kind in (dc.OptimalSampler, dc.LinearSampler))
    laws = nearest_member(family, rng.dirichlet(np.full(family.size, 0.4), 200))
    for name in ("kl", "tv", "hellinger", "chi2", "renyi:2"):
        f = dc.divergence(name)
        ours, theirs = np.asarray(f(laws, optimal.output(laws))), np.asarray(f(laws, linear.output(laws)))
        assert (ours <= theirs + 1e-12).all()
        assert ours.max() <= float(optimal.risk(name)) + 1e-9
    assert (ours < theirs - 1e-6).any()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_what_is_drawn_keeps_the_notion_and_the_pure_budget_that_is_stated(notion: Privacy, family: Any) -> None:
    for sampler in (dc.OptimalSampler(family, privacy=notion), dc.LinearSampler(family, privacy=notion)):
        assert sampler.privacy == notion
        assert sampler.lattice.keeps_privacy(notion)
        assert sampler.lattice.largest_ratio <= exp_lower(sampler.epsilon)
        assert certificate(sampler).holds
        laws = nearest_member(family, np.random.default_rng(0).dirichlet(np.full(family.size, 0.2), 20))
        weights = sampler.weights(laws)
        assert {int(sum(map(int, row))) for row in weights} == {TOTAL}
        assert np.abs(weights / TOTAL - sampler.output(laws)).max() < 1e-12
        assert np.shape(sampler.release(laws)) == (20,)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_profiles_of_what_is_drawn_against_another_accountant(notion: Privacy) -> None:
    """Two extreme clients' integers: dp-accounting finds no delta above what the notion allows, and the promise is used up."""
    sampler = dc.OptimalSampler(dc.Simplex(10), privacy=notion)
    first, second = (sampler.weights(row) / TOTAL for row in np.eye(10)[:2])
    theirs = distributions.from_two_probability_mass_functions(
        dict(enumerate(np.log(second))),
        dict(enumerate(np.log(first))),
        pessimistic_estimate=False,
        value_discretization_interval=1e-4,
    )
    ours, used = profile_of(sampler), 0.0
    for beta in np.linspace(0.0, 1.1 * sampler.epsilon, 23):
        allowed, found = notion.profile(float(beta)), theirs.get_delta_for_epsilon(float(beta))
        assert found <= ours.delta(float(beta)) * (1 + 1e-9) + 1e-15
        assert ours.delta(float(beta)) <= allowed * (1 + 1e-9)
        used = max(used, ours.delta(float(beta)) / allowed)
    if isinstance(notion, dc.Approximate):
        assert ours.delta(notion.epsilon) == pytest.approx(notion.delta, rel=1e-9)
    else:
        assert used > 0.99


def test_gaussian_releases_add_up_below_the_root_of_their_squares() -> None:
    """n releases at nu are sqrt(n) nu-Gaussian; the exact profile of the box never says more."""
    once = profile_of(dc.OptimalSampler(dc.Simplex(10), privacy=dc.Gaussian(0.5)))
    for n in (4, 16):
        together = dc.Gaussian(0.5 * math.sqrt(n))
        for beta in (0.5, 1.0, 2.0, 4.0):
            assert compose([(once, n)]).delta(beta) <= together.profile(beta) * (1 + 1e-9)


def test_a_continuous_client() -> None:
    family = dc.Near(scipy.stats.norm(), factor=3.0, box=(-3.0, 3.0))
    for notion in NOTIONS:
        sampler = dc.OptimalSampler(family, privacy=notion)
        assert sampler.risk("kl").tight
        assert sampler.lattice.keeps_privacy(notion)
        assert np.isfinite(np.asarray(sampler.release(scipy.stats.norm(scale=1.1)), dtype=float))


def test_no_delta_is_pure_epsilon() -> None:
    assert dc.OptimalSampler(dc.Simplex(4), privacy=dc.Approximate(1.0, delta=0.0)) == dc.OptimalSampler(
        dc.Simplex(4), epsilon=1.0
    )
    assert dc.OptimalSampler(dc.Simplex(4), privacy=dc.Pure(1.0)) == dc.OptimalSampler(dc.Simplex(4), epsilon=1.0)


def test_how_samplers_print() -> None:
    assert repr(dc.OptimalSampler(dc.Simplex(4), privacy=dc.Gaussian(0.5))) == (
        "OptimalSampler(Simplex(4), privacy=Gaussian(nu=0.5))"
    )
    assert "0.5-Gaussian LDP" in dc.OptimalSampler(dc.Simplex(4), privacy=dc.Gaussian(0.5))._repr_html_()


def test_one_outcome_has_nothing_to_hide() -> None:
    sampler = dc.OptimalSampler(dc.Simplex(1), privacy=dc.Gaussian(1.0))
    assert sampler.release([1.0]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("family", [dc.Simplex(10), dc.Near([1] * 9, factor=2.0)], ids=repr)
@pytest.mark.parametrize("name", ["kl", "tv", "hellinger"])
def test_budgets_for_a_risk(family: Any, name: str) -> None:
    """The smallest epsilon at a delta and the smallest nu: they keep the promise, and a little less does not."""
    for risk in wide((0.02, 0.08), (0.08,)):
        pure = dc.epsilon_for(family, divergence=name, risk=risk)
        less = dc.epsilon_for(family, divergence=name, risk=risk, delta=0.01)
        nu = dc.nu_for(family, divergence=name, risk=risk)
        assert 0.0 < less < pure

        def lost(notion: Privacy) -> float:
            return float(dc.minimax_risk(family, privacy=notion, divergence=name))

        assert lost(dc.Approximate(less, delta=0.01)) <= risk < lost(dc.Approximate(less * (1 - 1e-9), delta=0.01))
        assert lost(dc.Gaussian(nu)) <= risk < lost(dc.Gaussian(nu * (1 - 1e-9)))


def test_budgets_at_the_ends() -> None:
    near = dc.Near([1] * 9, factor=2.0)
    assert dc.epsilon_for(near, divergence="tv", risk=0.0, delta=0.1) == pytest.approx(math.log(4.0))
    assert dc.OptimalSampler(near, privacy=dc.Gaussian(dc.nu_for(near, divergence="tv", risk=0.0))).identity
    assert dc.nu_for(near, divergence="tv", risk=0.9) == 0.0
    assert dc.epsilon_for(near, divergence="tv", risk=0.2, delta=0.4) == 0.0
    with pytest.raises(dc.ImpossibleError):
        dc.nu_for(dc.Simplex(3), divergence="tv", risk=0.0)
    with pytest.raises(dc.ImpossibleError, match="rarer than 1e-60"):
        dc.nu_for(dc.Simplex(6), divergence="kl", risk=1e-300)
    tiny = dc.nu_for(dc.Simplex(2), divergence="tv", risk=1e-15)  # 1 - m B is below what a float next to 1 shows
    assert float(dc.minimax_risk(dc.Simplex(2), privacy=dc.Gaussian(tiny), divergence="tv")) <= 1e-15
    assert float(dc.minimax_risk(dc.Simplex(2), privacy=dc.Gaussian(tiny * (1 - 1e-9)), divergence="tv")) > 1e-15
    with pytest.raises(dc.DiscreetError, match=r"delta = 1 is not in \[0, 1\)"):
        dc.epsilon_for(near, divergence="tv", risk=0.1, delta=1.0)


WRONG: Any = {"number": 1.0, "class": dc.Gaussian}
BAD: list[tuple[Any, str]] = [
    (lambda: dc.OptimalSampler(dc.Simplex(3)), "epsilon = None and privacy = None: pass one of the two"),
    (
        lambda: dc.LinearSampler(dc.Simplex(3), epsilon=1.0, privacy=dc.Pure(1.0)),
        r"epsilon = 1.0 and privacy = Pure\(.*: pass one",
    ),
    (lambda: dc.minimax_risk(dc.Simplex(3), divergence="tv"), "pass one of the two"),
    (lambda: dc.OptimalSampler(dc.Simplex(3), privacy=WRONG["number"]), "privacy = 1.0 is not a notion of privacy"),
    (lambda: dc.OptimalSampler(dc.Simplex(3), privacy=WRONG["class"]), "is not a notion of privacy"),
    (lambda: dc.MollifierSampler(dc.Simplex(3), privacy=dc.Gaussian(1.0)), "the mollifier is a ball of pure epsilon"),
    (
        lambda: dc.OptimalSampler(dc.Near([1] * 4, factor=3.0), privacy=dc.Approximate(1.0, delta=0.6)),
        r"\(1, 0.6\)-LDP allows raw draws of a client's own data.*take a smaller delta",
    ),
    (lambda: dc.OptimalSampler(dc.Simplex(3), privacy=dc.Functional([(0, 0), (1, 0)])), "allows raw draws"),
    (
        lambda: dc.OptimalSampler(dc.Simplex(3), privacy=dc.Functional([(0, 1), (1, 0)])),
        "allows only draws of the reference",
    ),
    (
        lambda: dc.OptimalSampler(
            dc.Near(scipy.stats.norm(), factor=2.0), privacy=dc.Gaussian(1.0), discretisation=dc.Density()
        ),
        "is for pure epsilon only",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=[message for _, message in BAD])
def test_what_cannot_be_promised_is_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(dc.DiscreetError, match=message):
        wrong()


def test_an_epsilon_that_allows_raw_draws_is_no_matter_of_delta() -> None:
    """c2 <= e^epsilon c1: the identity is private without any delta, and delta does not forbid it."""
    sampler = dc.OptimalSampler(dc.Near([1] * 4, factor=1.5), privacy=dc.Approximate(1.0, delta=1e-6))
    assert sampler.identity
    assert sampler.risk("kl") == Risk(0.0, True)


def _said(promise: Privacy, family: Any = None) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dc.OptimalSampler(dc.Simplex(3) if family is None else family, privacy=promise)
    assert all(issubclass(each.category, dc.LargeEpsilonWarning) for each in told)
    return [str(each.message) for each in told]


@pytest.mark.parametrize(
    ("promise", "family", "says"),
    [
        (dc.Gaussian(4.0), None, "4-Gaussian LDP is a weak guarantee: .* by a factor of e^10, plus 0.2"),
        (dc.Approximate(1.0, delta=0.01), None, "by a factor of e^1, plus 0.01"),
        (dc.Approximate(1.0, delta=0.9), None, "by a factor of e^1, plus 0.9"),
        (dc.Approximate(0.5, delta=0.1), dc.Band([1] * 4, lower=0.5, upper=1.5), "by a factor of e^0.5, plus 0.1"),
    ],
)  # fmt: skip
def test_too_generous_a_notion_warns_of_what_it_states(promise: Privacy, family: Any, says: str) -> None:
    """A delta bounds no odds; nor are they unbounded, since samples come from a box: neither is said."""
    (said,) = _said(promise, family)
    assert re.search(says.replace("^", r"\^"), said)
    assert "no bound on the odds follows from the guarantee alone" in said
    assert "next to nothing" not in said
    assert "22,000" not in said


def test_an_epsilon_beside_a_delta_is_too_large_from_where_it_is_alone() -> None:
    (said,) = _said(dc.Approximate(11.0, delta=1e-6))
    assert "epsilon = 11 hides next to nothing" in said
    for promise in (dc.Approximate(10.0, delta=1e-3), dc.Gaussian(2.0), dc.Approximate(1.0, delta=1e-6)):
        assert _said(promise) == []


def test_weights_obey_the_definition_itself() -> None:
    """P(A) <= e^epsilon P'(A) + delta over every event, in whole numbers, for the very weights of clients."""
    sampler = dc.OptimalSampler(dc.Simplex(6), privacy=dc.Approximate(0.5, delta=1e-3))
    rows = sampler.weights(np.random.default_rng(1).dirichlet(np.full(6, 0.2), 12)).tolist()
    factor, slack = exp_lower(0.5), Fraction(1, 1000) * TOTAL
    for first in rows:
        for second in rows:
            assert sum(max(Fraction(0), w - factor * v) for w, v in zip(first, second, strict=True)) <= slack
