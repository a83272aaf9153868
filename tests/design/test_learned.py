"""Designs learned from private samples: nothing but samples is used, a design is published when it pays, and else the safe sampler stays."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.design import Learned, concentration_law, learn
from discreet.design._learned import score_client_kinds_on_held_out_samples
from discreet.design._posterior import (
    Clusters,
    RoundCounts,
    draw_dirichlet_clients,
    expected_chance_of_equal_draws,
    fit_posterior,
    softmax,
)
from discreet.mechanisms._sampler import Sampler
from tests.soaking import wide

K = 12
MEAN = np.geomspace(1.0, 0.01, K) / np.geomspace(1.0, 0.01, K).sum()
FAMILY = dc.Simplex(K)
NAMED = [dc.LinearSampler, dc.MollifierSampler, dc.OptimalSampler]
STRANGE = [np.eye(K, dtype=int)[0] * 10**6, np.zeros(K, dtype=int), np.full(K, 10**12), np.eye(K, dtype=int)[0]]
KL = dc.divergence("kl")


def people(number: int, seed: int, concentration: float = 6.0, mean: np.ndarray = MEAN) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return draw_dirichlet_clients(np.tile(mean, (number, 1)), np.full(number, concentration), rng)


def counts(sampler: Sampler[Any], laws: np.ndarray, seed: int) -> np.ndarray:
    q = np.cumsum(sampler.output(laws), axis=1)
    drawn = (q > np.random.default_rng(seed).random((len(q), 1)) * q[:, -1:]).argmax(axis=1)
    return np.bincount(drawn, minlength=laws.shape[1])


def cost(sampler: Sampler[Any], laws: np.ndarray) -> float:
    return float(np.mean(KL(laws, sampler.output(laws))))


def safe(laws: np.ndarray, epsilon: float) -> float:
    kinds = (dc.OptimalSampler, dc.MollifierSampler)
    return min(cost(kind(FAMILY, epsilon=epsilon), laws) for kind in kinds)


def taught(epsilon: float, clients: int, seed: int = 0) -> Learned:
    two, mollifier = dc.OptimalSampler(dc.Simplex(2), epsilon=epsilon), dc.MollifierSampler(FAMILY, epsilon=epsilon)
    spread = counts(two, concentration_law(people(clients // 3, seed)), seed)
    first = counts(mollifier, people(clients, seed + 1), seed + 1)
    return learn(FAMILY, epsilon=epsilon, rounds=[(mollifier, first)], spread=(two, spread))


@pytest.mark.slow
def test_many_samples_teach_nearly_all_that_can_be_gained() -> None:
    found, served = taught(1.0, 30_000), people(2_000, 99)
    assert found.published
    assert found.sampler == found.design.sampler
    gap = safe(served, 1.0) - dc.design(FAMILY, epsilon=1.0, clients=served, keep=0.0).bound
    assert safe(served, 1.0) - cost(found.sampler, served) > 0.8 * gap
    assert "the design costs less" in found.reason


def test_linear_samples_and_bits_tell_mean_and_concentration() -> None:
    linear, two = dc.LinearSampler(FAMILY, epsilon=3.0), dc.OptimalSampler(dc.Simplex(2), epsilon=3.0)
    rounds = [(linear, counts(linear, people(20_000, 1), 1))]
    found = learn(
        FAMILY, epsilon=3.0, rounds=rounds, spread=(two, counts(two, concentration_law(people(20_000, 2)), 2))
    )
    assert np.abs(found.mean - MEAN).sum() / 2 < 0.03
    assert 3.0 < found.concentration < 12.0


@pytest.mark.parametrize(("epsilon", "clients"), [(0.1, 300), (0.5, 30), (4.0, 3)])
def test_few_samples_leave_a_safe_sampler(epsilon: float, clients: int) -> None:
    found = taught(epsilon, clients)
    assert not found.published
    assert found.better < found.confidence
    assert found.sampler in (dc.OptimalSampler(FAMILY, epsilon=epsilon), dc.MollifierSampler(FAMILY, epsilon=epsilon))
    assert "stays" in found.reason


@pytest.mark.slow
def test_without_a_sample_the_prior_decides() -> None:
    small, large = (learn(FAMILY, epsilon=epsilon) for epsilon in (0.5, 8.0))
    assert isinstance(small.sampler, dc.MollifierSampler)
    assert isinstance(large.sampler, dc.OptimalSampler)
    assert not small.published
    assert not large.published
    assert small.samples == 0


@pytest.mark.soak
def test_what_is_published_is_no_worse_than_the_safe_ones() -> None:
    """Twenty populations of very different kinds, few samples: as seldom worse as the confidence says, and never by much."""
    rng = np.random.default_rng(5)
    worse = []
    for seed in range(20):
        mean = rng.dirichlet(np.full(K, rng.choice([0.3, 1.0, 10.0])))
        concentration, epsilon = float(rng.choice([1.0, 5.0, 25.0])), float(rng.choice([0.5, 1.0, 2.0]))
        mollifier, two = dc.MollifierSampler(FAMILY, epsilon=epsilon), dc.OptimalSampler(dc.Simplex(2), epsilon=epsilon)
        first, bits = people(800, seed, concentration, mean), people(200, seed + 100, concentration, mean)
        found = learn(
            FAMILY,
            epsilon=epsilon,
            rounds=[(mollifier, counts(mollifier, first, seed))],
            spread=(two, counts(two, concentration_law(bits), seed)),
        )
        if found.published:
            served = people(2_000, seed + 200, concentration, mean)
            worse.append(cost(found.sampler, served) / safe(served, epsilon) - 1.0)
    assert len(worse) >= 10
    assert np.mean(np.array(worse) > 0.0) <= 1.0 - 0.8
    assert max(worse) < 0.2
    assert np.mean(worse) < -0.1


@pytest.mark.slow
def test_it_is_a_function_of_the_samples() -> None:
    """The same samples give the same design, bit for bit, in whatever order rounds come: nothing else enters."""
    mollifier, linear = dc.MollifierSampler(FAMILY, epsilon=2.0), dc.LinearSampler(FAMILY, epsilon=2.0)
    rounds = [(mollifier, counts(mollifier, people(500, 1), 1)), (linear, counts(linear, people(500, 2), 2))]
    one, two = (learn(FAMILY, epsilon=2.0, rounds=rounds) for _ in range(2))
    assert (one.design.family.weights == two.design.family.weights).all()
    assert one.better == two.better


@pytest.mark.slow
def test_a_round_given_in_two_parts_is_the_same_round() -> None:
    mollifier = dc.MollifierSampler(FAMILY, epsilon=2.0)
    first, second = (counts(mollifier, people(400, seed), seed) for seed in (1, 2))
    whole = learn(FAMILY, epsilon=2.0, rounds=[(mollifier, first + second)])
    parts = learn(FAMILY, epsilon=2.0, rounds=[(mollifier, first), (mollifier, second)])
    assert (whole.design.family.weights == parts.design.family.weights).all()


@pytest.mark.slow
def test_samples_under_a_design_teach_too() -> None:
    """Batch after batch, each under the design of those before."""
    rounds: list[tuple[Sampler[Any], np.ndarray]] = []
    errors = []
    for batch in range(3):
        found = learn(FAMILY, epsilon=2.0, rounds=rounds)
        errors.append(np.abs(found.mean - MEAN).sum() / 2)
        rounds.append((found.sampler, counts(found.sampler, people(1_500, batch), batch)))
    assert errors[2] < errors[1] < errors[0]


def test_the_response_of_the_linear_mechanism_is_exact_and_that_of_others_near() -> None:
    model = people(4_000, 3)
    for kind in (dc.LinearSampler, dc.OptimalSampler, dc.MollifierSampler):
        sampler = kind(FAMILY, epsilon=1.0)
        matrix, offset = RoundCounts(sampler, np.zeros(K)).regress_response(model)
        for concentration in (3.0, 6.0, 12.0):
            others = people(4_000, 4, concentration)
            off = np.abs(matrix @ others.mean(axis=0) + offset - sampler.output(others).mean(axis=0)).max()
            assert off < (1e-12 if kind is dc.LinearSampler else 0.02)


@pytest.mark.soak
def test_the_posterior_covers_the_mean_of_the_clients() -> None:
    """Over 40 populations from linear samples: the mean law lies within two deviations about as often as it should."""
    linear = dc.LinearSampler(FAMILY, epsilon=2.0)
    inside = []
    for seed in range(40):
        laws = people(1_500, seed)
        found = fit_posterior(
            K, [RoundCounts(linear, counts(linear, laws, seed).astype(float))], None, np.random.default_rng(seed)
        )
        means, _ = found.draw_hypotheses(300, np.random.default_rng(seed))
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        truth = laws.mean(axis=0)
        inside.append(((low <= truth) & (truth <= high))[:8].mean())
    assert 0.85 <= np.mean(inside) <= 1.0


def test_agreement_of_two_draws() -> None:
    assert concentration_law(np.eye(3)) == pytest.approx(np.tile([0.0, 1.0], (3, 1)))
    assert concentration_law(np.full((1, 5), 0.2)) == pytest.approx(np.array([[1.0, 0.0]]))
    laws = people(40_000, 6)
    told = concentration_law(laws).mean(axis=0)[1]
    spread = [
        expected_chance_of_equal_draws(MEAN, 6.0 * factor)
        for factor in np.exp(0.5 * np.random.default_rng(1).normal(size=4_000))
    ]
    assert told == pytest.approx(np.mean(spread), abs=0.01)


def test_model_clients_have_the_mean_they_are_drawn_around() -> None:
    laws = people(60_000, 7)
    assert laws.sum(axis=1) == pytest.approx(np.ones(len(laws)))
    assert np.abs(laws.mean(axis=0) - MEAN).max() < 0.005
    assert softmax(np.log(MEAN)) == pytest.approx(MEAN)


BAND = dc.Band(np.ones(K), lower=0.5, upper=2.0)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"family": dc.Simplex(1)}, "2 to 512"),
        ({"family": dc.Simplex(600)}, "merge rare ones"),
        ({"family": BAND}, "is not a Simplex"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"confidence": 1.0}, "confidence"),
        ({"keep": 2.0}, "keep"),
        ({"rounds": [(dc.OptimalSampler(dc.Simplex(3), epsilon=1.0), [1, 2, 3])]}, r"rounds\[0\]"),
        ({"rounds": [(dc.OptimalSampler(BAND, epsilon=1.0), [1] * K)]}, "serve everybody"),
        ({"rounds": [("optimal", [1] * K)]}, "no sampler"),
        ({"rounds": [(dc.OptimalSampler(FAMILY, epsilon=1.0), [1.5] * K)]}, "whole numbers"),
        ({"rounds": [(dc.OptimalSampler(FAMILY, epsilon=1.0), [-1] * K)]}, "whole numbers"),
        ({"rounds": [(dc.OptimalSampler(FAMILY, epsilon=1.0), [1])]}, "12 whole numbers"),
        ({"spread": (dc.OptimalSampler(FAMILY, epsilon=1.0), [1] * K)}, "spread"),
        ({"divergence": "nonsense"}, "nonsense"),
    ],
)
def test_bad_input_is_named(wrong: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"family": FAMILY, "epsilon": 1.0, **wrong}
    with pytest.raises(dc.DiscreetError, match=said):
        learn(**arguments)


@pytest.mark.parametrize(
    ("strange", "epsilon"),
    wide([*itertools.product(STRANGE, (0.01, 1.0, 9.0))], [*zip(STRANGE, itertools.cycle((0.01, 9.0)))]),
)
def test_samples_of_any_kind_give_a_sampler(strange: np.ndarray, epsilon: float) -> None:
    """Samples that no clients could cause, none at all, or too many to be meant."""
    sampler = dc.OptimalSampler(FAMILY, epsilon=epsilon)
    found = learn(FAMILY, epsilon=epsilon, rounds=[(sampler, strange)])
    weights = found.sampler.weights(np.eye(K))
    assert (weights.sum(axis=1) == 2**62).all()
    assert 0.0 <= found.better <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("kind", wide([dc.LinearSampler, dc.MollifierSampler], [dc.LinearSampler]))
def test_clients_of_one_value_each_are_not_served_worse(kind: Any, bits: bool) -> None:
    """Populations of point masses: what is published costs them no more than the better safe sampler."""
    rng = np.random.default_rng(11)
    settings = wide([*itertools.product((1.0, 2.0, 4.0), (1_000, 4_000))], [(1.0, 4_000), (4.0, 1_000)])
    for epsilon, number in settings:
        laws = np.eye(K)[rng.choice(K, number + number // 4, p=rng.dirichlet(np.geomspace(3.0, 0.3, K)))]
        sampler, two = kind(FAMILY, epsilon=epsilon), dc.OptimalSampler(dc.Simplex(2), epsilon=epsilon)
        told = counts(two, concentration_law(laws[number:]), 1)
        found = learn(
            FAMILY,
            epsilon=epsilon,
            rounds=[(sampler, counts(sampler, laws[:number], 2))],
            spread=(two, told) if bits else None,
        )
        if found.published:
            assert cost(found.sampler, laws) <= safe(laws, epsilon)
        if bits and number == 4_000:
            assert found.kinds["of one value each"] > 0.9


def test_linear_samples_cannot_tell_kinds_apart_and_bits_can() -> None:
    """The law of linear samples depends on the mean alone, so what was believed of the kinds before stays."""
    linear, two = dc.LinearSampler(FAMILY, epsilon=2.0), dc.OptimalSampler(dc.Simplex(2), epsilon=2.0)
    rounds = [(linear, counts(linear, people(3_000, 1), 1))]
    alone = learn(FAMILY, epsilon=2.0, rounds=rounds)
    assert alone.kinds["of one value each"] == pytest.approx(0.2, abs=0.02)
    told = learn(FAMILY, epsilon=2.0, rounds=rounds, spread=(two, counts(two, concentration_law(people(1_000, 2)), 2)))
    assert told.kinds["of one value each"] < 1e-6
    assert told.kinds["spread around a mean"] > 0.9


def test_a_design_that_would_harm_a_possible_kind_is_not_published_and_it_says_so() -> None:
    linear = dc.LinearSampler(FAMILY, epsilon=4.0)
    found = learn(FAMILY, epsilon=4.0, rounds=[(linear, counts(linear, people(2_000, 1), 1))], confidence=0.5)
    assert found.better >= found.confidence
    assert found.gain_by_kind["of one value each"] < 0.0
    assert not found.published
    assert "more if clients are of one value each, which the samples leave possible" in found.reason


@pytest.mark.parametrize("groups", [1, 3, K])
def test_clusters_have_the_mean_that_is_asked_for(groups: int) -> None:
    laws = Clusters(groups, K).draw_clients(np.tile(MEAN, (40_000, 1)), np.random.default_rng(0))
    assert np.abs(laws.mean(axis=0) - MEAN).max() < 0.01
    assert laws.sum(axis=1) == pytest.approx(np.ones(len(laws)))
    if groups == K:
        assert (laws.max(axis=1) == 1.0).all()
        assert Clusters(K, K).mean_chance_of_equal_draws(MEAN) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "epsilon"),
    wide([*itertools.product(NAMED, (0.5, 2.0))], [*zip(NAMED, itertools.cycle((0.5, 2.0)))]),
)
def test_samples_that_no_clients_cause_publish_nothing(kind: Any, epsilon: float) -> None:
    """Half the samples on each of two outcomes: no mean law has such shares, and held-out samples say so."""
    impossible = 2_000 * (np.arange(K) < 2)
    found = learn(FAMILY, epsilon=epsilon, rounds=[(kind(FAMILY, epsilon=epsilon), impossible)])
    assert not found.published
    assert found.held_out.refutes_model
    assert "no clients of the model cause" in found.reason or found.better < found.confidence


def test_linear_samples_leave_every_kind_even_far_from_the_uniform_mean() -> None:
    """Clients of whom 97 % hold one outcome: linear samples say the same of all kinds, so every kind judges the design."""
    linear = dc.LinearSampler(FAMILY, epsilon=2.0)
    laws = np.eye(K)[np.random.default_rng(3).choice(K, 4_000, p=[0.97, *[0.03 / (K - 1)] * (K - 1)])]
    found = learn(FAMILY, epsilon=2.0, rounds=[(linear, counts(linear, laws, 1))])
    assert found.held_out.rejected == ()
    assert set(found.better_by_kind) == {"spread around a mean", "in clusters", "of one value each"}
    assert found.kinds["of one value each"] == pytest.approx(0.2, abs=0.02)


@pytest.mark.slow
@pytest.mark.soak
def test_held_out_samples_only_add_conditions() -> None:
    """Whatever is published meets the rule without them: better overall, and harmless to each kind that the posterior leaves."""
    published = 0
    for seed, (kind, epsilon) in enumerate(itertools.product((dc.LinearSampler, dc.MollifierSampler), (0.5, 1.0, 2.0))):
        sampler = kind(FAMILY, epsilon=epsilon)
        for laws in (people(2_000, seed, 10.0), np.eye(K)[np.random.default_rng(seed).choice(K, 2_000, p=MEAN)]):
            found = learn(FAMILY, epsilon=epsilon, rounds=[(sampler, counts(sampler, laws, seed))])
            left = {one for one, likely in found.kinds.items() if likely >= 1e-4}
            assert left | (set(found.kinds) - set(found.held_out.rejected)) == set(found.gain_by_kind)
            if found.published:
                published += 1
                assert min(found.better, *found.better_by_kind.values()) >= found.confidence
                assert min(found.gain_by_kind.values()) >= 0.0
    assert published >= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", wide([dc.LinearSampler, dc.MollifierSampler], [dc.MollifierSampler]))
def test_held_out_samples_seldom_reject_the_truth(kind: Any) -> None:
    """Populations of point masses, whose rejection at level 1 % is proved; linear samples never reject one kind alone."""
    rng = np.random.default_rng(8)
    rejected, populations = 0, wide(60, 20)
    for seed in range(populations):
        sampler = kind(FAMILY, epsilon=float(rng.choice([0.5, 1.0, 4.0])))
        laws = np.eye(K)[rng.choice(K, 1_500, p=rng.dirichlet(np.ones(K)))]
        rounds = [RoundCounts(sampler, counts(sampler, laws, seed).astype(float))]
        found = score_client_kinds_on_held_out_samples(K, rounds, None, np.random.default_rng(seed))
        rejected += "of one value each" in found.rejected
        assert kind is dc.MollifierSampler or len(found.rejected) in (0, 3)
    assert rejected <= wide(3, 2)  # of 60 or 20 at level .01: more has a probability below .004


@pytest.mark.slow
def test_held_out_samples_of_a_projection_or_bits_reject_point_masses() -> None:
    mollifier, linear = dc.MollifierSampler(FAMILY, epsilon=2.0), dc.LinearSampler(FAMILY, epsilon=2.0)
    two = dc.OptimalSampler(dc.Simplex(2), epsilon=2.0)
    released = RoundCounts(mollifier, counts(mollifier, people(8_000, 1, 20.0), 1).astype(float))
    found = score_client_kinds_on_held_out_samples(K, [released], None, np.random.default_rng(0))
    assert "of one value each" in found.rejected
    assert "spread around a mean" not in found.rejected
    assert found.log_likelihood["of one value each"] < found.log_likelihood["spread around a mean"]
    plain = RoundCounts(linear, counts(linear, people(2_000, 2), 2).astype(float))
    bits = RoundCounts(two, counts(two, concentration_law(people(1_000, 3)), 3).astype(float))
    assert score_client_kinds_on_held_out_samples(K, [plain], None, np.random.default_rng(0)).rejected == ()
    assert (
        "of one value each"
        in score_client_kinds_on_held_out_samples(K, [plain], bits, np.random.default_rng(0)).rejected
    )


def test_counts_past_rounding_and_ragged_ones_are_refused() -> None:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=4.0)
    with pytest.raises(dc.DiscreetError, match="counts sum to more than 1,000,000,000,000,000"):
        learn(dc.Simplex(3), epsilon=1.0, rounds=[(sampler, [10**14, 2**62, 0])])
    with pytest.raises(dc.DiscreetError, match="counts are not 3 whole numbers"):
        learn(dc.Simplex(3), epsilon=1.0, rounds=[(sampler, [[1], [1, 2]])])


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
def test_a_design_is_learned_at_an_epsilon_beyond_every_float() -> None:
    sampler = dc.LinearSampler(dc.Simplex(2), epsilon=1.0)
    assert learn(dc.Simplex(2), epsilon=1500.0, rounds=[(sampler, [50, 30])]).sampler.epsilon == 1500.0


def test_where_no_sampler_costs_anything_none_gains() -> None:
    """The hockey stick vanishes for densities of at most 2, so both samplers cost nothing under many hypotheses."""
    sampler = dc.LinearSampler(dc.Simplex(2), epsilon=1.0)
    found = learn(dc.Simplex(2), epsilon=0.01, rounds=[(sampler, [115, 50176])], divergence="hockey_stick:2")
    assert math.isfinite(found.gain)
