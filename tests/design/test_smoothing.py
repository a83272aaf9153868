"""Rules that see examples alone: what counts how much, and what stands where examples are too few to judge each other."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import discreet as dc
from discreet.design._smoothing import (
    ANYBODY,
    MODEL,
    PARTS,
    STRAY,
    Smoother,
    redraw_outcomes_of_examples,
)
from discreet.research.experiments.client_sets import CLIENT_SETS
from tests.soaking import wide


def test_examples_that_teach_nothing_leave_the_optimal_sampler() -> None:
    """Every example holds another outcome, so those that were held back say that a design would do harm."""
    for epsilon in (1.5, 3.0):  # six examples are enough to judge each other, and are not
        choice = Smoother(epsilon).choose_sampler_and_smoothing(np.eye(6))
        assert (choice.smoothing.rule == "optimal") == (epsilon == 1.5)
        assert float(choice.sampler.risk("tv")) == pytest.approx(
            float(dc.minimax_risk(dc.Simplex(6), epsilon=epsilon, divergence="tv"))
        )


def test_the_others_count_what_they_are_said_to() -> None:
    examples = np.array([[0.7, 0.3, 0.0, 0.0]] * 4)
    parts = (0.2, 0.1)
    bare, smoothed = (Smoother(1.0, 0.0).design_with_smoothing_parts(examples, one) for one in ((0.0, 0.0), parts))
    assert float(smoothed.worst("kl")) < float(bare.worst("kl"))
    groups = (examples, redraw_outcomes_of_examples(examples, np.random.default_rng(0)), np.eye(4))
    mean = sum(
        part * float(np.mean(dc.divergence("kl")(group, smoothed.sampler.output(group))))
        for part, group in zip((1.0 - sum(parts), *parts), groups, strict=True)
    )
    assert smoothed.value == pytest.approx(mean, rel=1e-9)


def test_redrawn_examples_keep_their_masses_and_go_where_others_are() -> None:
    examples = np.repeat([[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [190, 10], axis=0)
    found = redraw_outcomes_of_examples(examples, np.random.default_rng(1))
    assert len(found) >= 1000
    np.testing.assert_array_equal(np.sort(found[:200], axis=1), np.sort(examples, axis=1))
    popular = (found[:, :2] > 0.0).sum() / (found > 0.0).sum()
    assert popular > 0.8
    assert (found[:, 3] > 0.0).any()  # half a client's popularity, so that nothing is impossible


def test_the_best_floor_of_an_outcome_at_a_large_budget() -> None:
    """The least of 1 and e^eps P(sure of x)/P(x is not held), as a share of the largest floor: what the rule rests on."""
    epsilon, rare = 8.0, 1e-4
    laws = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    found = dc.design(dc.Simplex(3), epsilon=epsilon, clients=laws, weights=np.array([1.0 - rare, rare]), keep=0.0)
    total = 1.0 / (1.0 + math.expm1(epsilon) / found.family.bounds.upper)
    floor = total * np.asarray(found.family.reference)
    assert math.exp(epsilon) * floor[2] == pytest.approx(math.exp(epsilon) * rare, rel=0.05)


def test_sure_examples_are_counted_by_popularity_and_not_drawn() -> None:
    """With nobody else, the model's clients are point masses, and its design is that of their weights."""
    examples = np.eye(4)[[0, 0, 0, 1]]
    epsilon = 3.0
    popularity = (1.0 - STRAY) * examples.mean(axis=0) + STRAY / 4
    weights = (1.0 - MODEL) * examples.mean(axis=0) + MODEL * popularity + ANYBODY * math.exp(-epsilon)
    found = Smoother(epsilon).design_for_model(examples)
    same = dc.design(dc.Simplex(4), epsilon=epsilon, clients=np.eye(4), weights=weights, keep=0.001)
    assert found.value == pytest.approx(same.value, rel=1e-6)
    np.testing.assert_allclose(found.sampler.output(np.eye(4)), same.sampler.output(np.eye(4)), rtol=1e-3)


def test_fewer_examples_than_e_to_the_epsilon_do_not_speak_for_themselves() -> None:
    """Twenty examples that never hold the last two outcomes: it does not fall to what such examples would ask for."""
    rng = np.random.default_rng(0)
    examples = np.hstack([rng.dirichlet(np.full(4, 5.0), 20), np.zeros((20, 2))])
    epsilon = 8.0
    choice = Smoother(epsilon).choose_sampler_and_smoothing(examples)
    sampler = choice.sampler
    assert choice.smoothing.rule == "model"
    assert choice.smoothing.redrawn == MODEL
    by_parts = Smoother(epsilon).design_with_smoothing_parts(examples, (0.01, 0.0)).sampler
    assert float(sampler.risk("kl")) < float(by_parts.risk("kl"))
    assert float(np.mean(dc.divergence("kl")(examples, sampler.output(examples)))) < float(
        np.mean(dc.divergence("kl")(examples, dc.OptimalSampler(dc.Simplex(6), epsilon=epsilon).output(examples)))
    )


def test_an_outcome_that_an_example_is_sure_of_has_at_least_half_of_the_largest_floor() -> None:
    examples = np.vstack([np.random.default_rng(1).dirichlet(np.full(5, 8.0), 60), np.eye(5)[:1]])
    epsilon = 8.0
    served = Smoother(epsilon).sampler_between_model_and_seen_shares(examples).output(np.eye(5)[0])
    best = dc.OptimalSampler(dc.Simplex(5), epsilon=epsilon).output(np.eye(5)[0])
    assert served[0] >= 0.5 * best[0]


def test_enough_examples_choose_among_the_parts() -> None:
    examples = np.random.default_rng(2).dirichlet([8.0, 4.0, 1.0, 0.2], 40)
    smoothing = Smoother(2.0).choose_sampler_and_smoothing(examples).smoothing
    assert smoothing.rule == "parts"
    assert (smoothing.redrawn, smoothing.points) in PARTS


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "rule"), wide([(4.0, "parts"), (8.0, "model")], [(8.0, "model")]))
def test_at_a_large_epsilon_smoothing_serves_other_aircraft_better(epsilon: float, rule: str) -> None:
    """Delays of real aircraft. Value and bound are about the examples as they are, and the result says how it was smoothed."""
    laws = next(one for one in CLIENT_SETS if one.name == "delays").laws
    order = np.random.default_rng(3).permutation(len(laws))
    examples, served = laws[order[:100]], laws[order[100:]]
    outcomes = dc.Simplex(laws.shape[1])
    bare = dc.design(outcomes, epsilon=epsilon, clients=examples, keep=0.001)
    found = dc.design(outcomes, epsilon=epsilon, clients=examples, smoothing="auto")
    assert found.keep == bare.keep
    assert found.bound == bare.bound
    assert found.value >= bare.value * (1.0 - 1e-9)
    assert found.value == pytest.approx(
        np.mean(dc.divergence("kl")(examples, found.sampler.output(examples))), rel=1e-9
    )
    costs = [float(np.mean(dc.divergence("kl")(served, one.sampler.output(served)))) for one in (found, bare)]
    assert costs[0] < 0.9 * costs[1]
    assert found.smoothing is not None
    assert found.smoothing.rule == rule
    assert found.smoothing.held_out is not None
    assert f"{found.smoothing.held_out:.4g}" in repr(found)
    assert bare.smoothing is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "epsilon"), wide([*itertools.product((0.0, 0.5, 0.95, 1.0), (1.5, 6.0))], [(0.5, 6.0), (0.95, 1.5)])
)
def test_what_is_kept_is_kept_by_every_rule(keep: float, epsilon: float) -> None:
    examples = np.vstack([np.eye(6), np.random.default_rng(0).dirichlet(np.full(6, 0.3), 14)])
    for laws in (examples, examples[:6], examples[6:7]):
        found = dc.design(dc.Simplex(6), epsilon=epsilon, clients=laws, keep=keep, smoothing="auto")
        best = 1.0 - float(dc.OptimalSampler(dc.Simplex(6), epsilon=epsilon).risk("tv"))
        assert 1.0 - float(found.worst("tv")) >= keep * best * (1.0 - 1e-6)


def test_weights_count_as_repetitions_do() -> None:
    """An example of three times the weight is three examples, as far as designs and standard errors go."""
    laws = np.random.default_rng(1).dirichlet(np.full(4, 0.7), 30)
    smoother = Smoother(1.0)
    weights = np.repeat([3.0, 1.0], 15) / 60.0
    twice = np.vstack([np.repeat(laws[:15], 3, axis=0), laws[15:]])
    for parts in ((0.0, 0.0), (0.0, 0.1)):
        weighted, repeated = (
            smoother.design_with_smoothing_parts(laws, parts, weights),
            smoother.design_with_smoothing_parts(twice, parts),
        )
        assert weighted.value == pytest.approx(repeated.value, rel=1e-4)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"smoothing": "some"}, "smoothing = 'some' is not one of None, 'auto'"),
        ({"smoothing": "auto", "over": "worst"}, "smoothing is for over='mean'"),
        ({"smoothing": "auto", "divergence": "reverse_kl"}, "counts point masses, for which reverse_kl is infinite"),
    ],
)
def test_what_smoothing_refuses(terms: dict[str, str], message: str) -> None:
    laws = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    with pytest.raises(dc.DiscreetError, match=message):
        dc.design(
            dc.Simplex(3), epsilon=1.0, clients=laws, smoothing=terms["smoothing"], over=terms.get("over", "mean"),
            divergence=terms.get("divergence", "kl"),
        )  # fmt: skip
    with pytest.raises(dc.DiscreetError, match="at most 4,194,304 entries"):
        dc.design(dc.Simplex(2**22), epsilon=1.0, clients=_sparse(), smoothing="auto")


def _sparse() -> sparse.csr_array:
    return sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=(2, 2**22))
