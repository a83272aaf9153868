"""`design` as it is used: sparse and dense examples, weights, labels, what it refuses, and the band that serves everybody."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import discreet as dc
from discreet.agreement import Agreement
from discreet.design import Design, design
from discreet.errors import DiscreetError, ImpossibleError
from tests.design.mechanisms import clients
from tests.exact import assert_private


def some(**changes: Any) -> Design:
    settings: dict[str, Any] = {"epsilon": 1.0, "clients": clients(20, 6, 1)}
    return design(dc.Simplex(6), **(settings | changes))


def test_counts_in_a_sparse_matrix_are_laws() -> None:
    counts = np.random.default_rng(0).poisson(0.8, (40, 9)) + np.eye(9, dtype=int)[np.arange(40) % 9]
    dense = design(dc.Simplex(9), epsilon=1.0, clients=dc.Simplex(9).law(counts=counts))
    for matrix in (sparse.csr_array(counts), sparse.coo_matrix(counts), sparse.csc_array(counts.astype(float))):
        before = matrix.toarray()
        found = design(dc.Simplex(9), epsilon=1.0, clients=matrix)
        assert found.value == pytest.approx(dense.value, rel=1e-6)
        assert np.array_equal(matrix.toarray(), before)


@pytest.mark.parametrize("name", ["alpha:0.001", "reverse_kl"])
@pytest.mark.parametrize("shape", [np.array, sparse.csr_array])
def test_masses_that_count_as_zero_are_refused_where_the_bound_would_be_wrong(name: str, shape: Any) -> None:
    laws = shape([[1.0, 1e-285], [1e-285, 1.0]])
    with pytest.raises(DiscreetError, match="probabilities of at most 1e-280, which count as 0"):
        design(dc.Simplex(2), epsilon=0.5, clients=laws, divergence=name)
    with pytest.raises(DiscreetError, match="probabilities of at most 1e-280, which count as 0"):
        design(dc.Simplex(2), epsilon=0.5, clients=laws, divergence=name, over="worst")
    found = design(dc.Simplex(2), epsilon=0.5, clients=laws, divergence="hellinger")
    assert found.bound <= found.value


def test_weights_count_clients_several_times() -> None:
    laws = clients(6, 5, 3)
    twice = design(dc.Simplex(5), epsilon=1.0, clients=laws[[0, 1, 1, 1, 2, 3, 5, 5]])
    weighted = design(dc.Simplex(5), epsilon=1.0, clients=laws, weights=[1, 3, 1, 1, 0, 2])
    assert weighted.value == pytest.approx(twice.value, rel=1e-5)
    assert weighted.examples == 5


def test_a_certificate_is_printed_in_a_few_lines() -> None:
    found = some()
    lines = str(found.certificate).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 100
    assert f"{found.certificate.lower_bound():.8g}" in lines[0]
    assert "epsilon = 1" in lines[1]
    assert "20 on 6 outcomes" in lines[2]
    assert "exact()" in lines[3]
    assert "exact()" not in str(some(divergence="le_cam").certificate)


def test_the_outcomes_keep_their_names() -> None:
    found = design(dc.Simplex(["a", "b", "c"]), epsilon=1.0, clients=[[0.2, 0.8, 0.0], [0.5, 0.5, 0.0]])
    assert found.family.labels == ("a", "b", "c")
    assert found.sampler.release([0.0, 0.0, 1.0]) in ("a", "b", "c")


def test_every_release_is_private_in_integers() -> None:
    found = some(keep=0)
    weights = found.sampler.weights(np.vstack([np.eye(6), clients(20, 6, 9)]))
    for one in weights[:6]:
        for other in weights:
            assert_private(one, other, 1.0)


def test_outcomes_that_no_example_holds_share_one_positive_floor() -> None:
    laws = np.zeros((3, 50))
    laws[:, :3] = [[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]
    for keep in (0.0, 0.1):
        found = design(dc.Simplex(50), epsilon=1.0, clients=laws, keep=keep)
        unseen = np.broadcast_to(found.family.reference, 50)[3:]
        assert unseen.min() > 0.0
        assert np.ptp(unseen) <= 1e-12 * unseen.max()
        assert math.isfinite(found.worst("kl").value)
        assert found.sampler.output(np.eye(50)[-1])[-1] >= keep * math.e / (math.e + 49) * (1 - 1e-9)


def test_a_million_outcomes_and_ten_examples() -> None:
    rng = np.random.default_rng(5)
    rows = np.repeat(np.arange(10), 12)
    counts = sparse.csr_array((rng.integers(1, 9, 120), (rows, rng.integers(0, 10**6, 120))), shape=(10, 10**6))
    found = design(dc.Simplex(10**6), epsilon=3.0, clients=counts, keep=0.1)
    assert found.value - found.bound <= 1e-4 * found.value
    assert found.family.size == 10**6
    assert float(found.worst("tv")) <= 1 - 0.1 * math.exp(3) / (math.exp(3) + 10**6 - 1) + 1e-12


def test_progress_goes_from_nothing_to_all() -> None:
    told: list[float] = []
    design(dc.Simplex(20), epsilon=2.0, clients=spread_laws(0), progress=told.append)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert told == sorted(told)


def spread_laws(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """100 clients on 20 outcomes, of which they hold most: some shares are small."""
    shares = np.arange(1.0, 21.0) ** -1.5
    laws = np.random.default_rng(seed).dirichlet(20.0 * shares / shares.sum(), size=100)
    laws[laws < 2e-3] = 0.0
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def test_clients_that_hardly_count_keep_the_certificate() -> None:
    """The floor runs into their bounds late, when nothing but they stands in the way."""
    laws = spread_laws(0)
    others = np.vstack([np.random.default_rng(seed).permuted(laws, axis=1) for seed in range(5)])
    found = design(
        dc.Simplex(20),
        epsilon=8.0,
        clients=np.vstack([laws, others]),
        weights=np.repeat([1.0, 1e-4], [100, 500]),
        keep=1e-6,
    )
    assert found.value - found.bound <= 1e-4 * found.value


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_clients_that_hold_everything_but_what_nobody_holds_keep_the_certificate(epsilon: float) -> None:
    """What they leave out has a floor next to zero: the difference of two sums would lose it."""
    laws = spread_laws(0) + 1e-4
    laws = np.hstack([laws / laws.sum(axis=1, keepdims=True), np.zeros((100, 1))])
    found = design(dc.Simplex(21), epsilon=epsilon, clients=laws, keep=0.0)
    assert found.value - found.bound <= 1e-4 * found.value


@pytest.mark.parametrize("divergence", ["kl", "tv", "hellinger", "chi2"])
@pytest.mark.parametrize("copies", [1, 4])
def test_one_example_or_many_alike_cost_nothing(divergence: str, copies: int) -> None:
    """A floor near the one law serves it as it is."""
    law = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    found = design(dc.Simplex(5), epsilon=1.0, clients=[law] * copies, divergence=divergence, keep=0)
    assert found.value <= 1e-6
    assert found.bound <= found.value


@pytest.mark.parametrize("over", ["mean", "worst"])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-12, 1e-4, 15.0, 40.0, 1000.0])
def test_budgets_at_both_ends_are_served_as_they_are_said_to_be(epsilon: float, over: str) -> None:
    """Also where floats cannot tell e^epsilon from 1 or from infinity."""
    laws = clients(20, 6, 1)
    found = some(epsilon=epsilon, over=over)
    realised = np.asarray(dc.divergence("kl")(laws, found.sampler.output(laws)))
    assert found.value == pytest.approx(realised.mean() if over == "mean" else realised.max(), rel=1e-6, abs=1e-12)
    assert found.value - found.bound <= max(1e-4 * found.value, 1e-7)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 15.0, 40.0])
def test_no_budget_does_better_with_the_optimal_sampler(epsilon: float) -> None:
    found = some(epsilon=epsilon, keep=0.01)
    optimal = dc.OptimalSampler(dc.Simplex(6), epsilon=epsilon)
    mean = float(np.mean(dc.divergence("kl")(clients(20, 6, 1), optimal.output(clients(20, 6, 1)))))
    assert found.bound <= found.value <= mean + 1e-9
    assert found.value - found.bound <= max(1e-4 * found.value, 1e-7)


def test_nothing_is_gained_where_clients_are_point_masses() -> None:
    """Every outcome as often: Q* is the design, and says so."""
    found = design(dc.Simplex(4), epsilon=0.01, clients=np.eye(4), keep=0)
    optimal = dc.OptimalSampler(dc.Simplex(4), epsilon=0.01)
    assert found.value == pytest.approx(float(optimal.risk("kl")), rel=1e-5)


@pytest.mark.parametrize("small", [1e-12, 1e-100, 1e-250])
def test_masses_far_apart_are_served_as_they_are_said_to_be(small: float) -> None:
    """A client that sits on few outcomes, and next to nothing of it elsewhere, which its projection raises by many powers of ten."""
    laws = np.where(np.random.default_rng(4).random((30, 8)) < 0.3, 1.0, small)
    laws /= laws.sum(axis=1, keepdims=True)
    for name in ("kl", "jensen_shannon", "tv"):
        found = design(dc.Simplex(8), epsilon=0.8, clients=laws, divergence=name)
        realised = np.mean(dc.divergence(name)(laws, found.sampler.output(laws)))
        assert found.value == pytest.approx(realised, rel=1e-9)
        assert found.value - found.bound <= 1e-4 * found.value


def test_ones_own_smooth_divergence() -> None:
    mine = dc.FDivergence(lambda t: (np.sqrt(t) - 1) ** 2, name="mine", at_zero=1.0, slope_at_infinity=1.0)
    found, known = some(divergence=mine, keep=0.05), some(divergence="hellinger", keep=0.05)
    assert found.value == pytest.approx(known.value, rel=1e-4)
    assert found.bound <= known.value
    with pytest.raises(DiscreetError, match="rationals can check kl, tv, hellinger and chi2"):
        found.certificate.exact()


def test_divergences_are_known_by_what_they_are_not_by_their_names() -> None:
    """One's own f may be called like a shipped one; orders 1 and 0 of the alpha divergences are KL and reverse KL."""
    assert some(divergence="alpha:1").value == pytest.approx(some(divergence="kl").value, rel=1e-9)
    for name in ("alpha", "alpha:2", "hockey_stick", "hockey_stick:1"):
        mine = dc.FDivergence(lambda t: (t - 1) ** 2, name=name, at_zero=1.0, slope_at_infinity=math.inf)
        assert some(divergence=mine).value == pytest.approx(some(divergence="chi2").value, rel=1e-4)


def test_clients_outside_the_band_are_its_purpose() -> None:
    """No warning, no refusal: the worst case is stated for them."""
    found = some(keep=0.05)
    assert not found.family.contains(np.eye(6)[0])
    found.sampler.release(np.eye(6))
    served = np.asarray(dc.divergence("tv")(np.eye(6), found.sampler.output(np.eye(6))))
    assert served.max() == pytest.approx(float(found.sampler.risk("tv")), rel=1e-9)
    claimed = dc.Band(found.family.reference, lower=0.0, upper=found.family.bounds.upper)
    assert float(found.sampler.risk("tv")) > float(dc.OptimalSampler(claimed, epsilon=1.0).risk("tv"))
    assert found.sampler.bounds.upper == pytest.approx(1 / float(np.min(found.family.reference)))


def test_the_best_worst_case_of_a_design_is_that_of_everybody() -> None:
    found = some()
    assert dc.minimax_risk(found.family, epsilon=1.0, divergence="kl") == dc.minimax_risk(
        dc.Simplex(6), epsilon=1.0, divergence="kl"
    )
    assert dc.epsilon_for(found.family, divergence="tv", risk=0.3) == dc.epsilon_for(
        dc.Simplex(6), divergence="tv", risk=0.3
    )


def test_the_linear_sampler_is_for_members_alone() -> None:
    with pytest.raises(DiscreetError, match="serves everybody"):
        dc.LinearSampler(some().family, epsilon=1.0)


def test_the_mollifier_around_a_designed_reference_serves_everybody_too() -> None:
    sampler = dc.MollifierSampler(some(keep=0.2).family, epsilon=1.0)
    served = np.asarray(dc.divergence("kl")(np.eye(6), sampler.output(np.eye(6))))
    assert served.max() == pytest.approx(float(sampler.risk("kl")), rel=1e-9)


def test_an_agreement_says_that_everybody_is_served() -> None:
    family = some().family
    claimed = dc.Band(family.reference, lower=0.0, upper=family.bounds.upper)
    agreed = Agreement.of(dc.OptimalSampler(family, epsilon=1.0))
    assert agreed.id != Agreement.of(dc.OptimalSampler(claimed, epsilon=1.0)).id
    again = Agreement.of(dc.OptimalSampler(dc.Simplex(5).spread(2), epsilon=1.0))
    assert again.family.family() == dc.Simplex(5).spread(2)
    assert family != claimed
    assert repr(family).endswith("any_client=True)")


def test_it_shows_what_it_found() -> None:
    text = repr(some(keep=0.3))
    assert text.startswith("Design(<6 outcomes>, epsilon=1, keep=0.3: mean kl 0.")
    assert "over 20 examples, no sampler below 0." in text
    assert "worst case over everybody" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": 1.5}, r"keep = 1.5 is not in \[0, 1\]"),
        ({"keep": -0.1}, r"keep = -0.1 is not in \[0, 1\]"),
        ({"keep": math.nan}, r"keep = nan is not in \[0, 1\]"),
        ({"keep": "most"}, "keep = 'most' is not a number"),
        ({"epsilon": 0.0}, r"epsilon = 0 is not in \(0, inf\)"),
        ({"divergence": "kullback"}, "is not one of kl"),
        ({"clients": []}, "clients"),
        ({"clients": np.zeros((0, 6))}, "n at least 1"),
        ({"clients": np.full(6, 1 / 6)}, "one law a row"),
        ({"clients": np.full((2, 5), 0.2)}, "each of the 6 outcomes"),
        ({"clients": np.ones((2, 6))}, r"clients\[0\] sums to 6, not to 1"),
        ({"clients": [[0.5, 0.5, 0, 0, 0, 0], [1.5, -0.5, 0, 0, 0, 0]]}, r"clients\[1\]\[1\] = -0.5 is negative"),
        ({"clients": [[np.nan, 1, 0, 0, 0, 0]]}, r"clients\[0\] = nan is NaN"),
        ({"clients": sparse.csr_array(np.ones((2, 5)))}, r"shape \(2, 5\); give one row a client, \(n, 6\)"),
        ({"clients": sparse.csr_array([[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]])}, r"clients\[0\] is all zero"),
        (
            {"clients": sparse.csr_array([[1, 0, 0, 0, 0, 0], [1, -2, 0, 0, 0, 0]])},
            r"clients\[1\]\[1\] = -2 is negative",
        ),
        ({"weights": [1.0]}, "give one for each of the 20 clients"),
        ({"weights": np.zeros(20)}, "weights are all zero"),
        ({"weights": [-1.0] + [1.0] * 19}, r"weights\[0\] = -1 is negative"),
        ({"weights": [math.inf] + [1.0] * 19}, r"weights\[0\] = inf is infinite"),
    ],
)
def test_bad_input_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DiscreetError, match=message):
        some(**changes)


def test_what_has_no_design_is_refused() -> None:
    with pytest.raises(DiscreetError, match="is not a Simplex"):
        design(dc.Band([1, 2], lower=0.5, upper=1.5), epsilon=1.0, clients=[[0.5, 0.5]])
    with pytest.raises(DiscreetError, match="1 outcomes; a design is for 2 to"):
        design(dc.Simplex(1), epsilon=1.0, clients=[[1.0]])
    with pytest.raises(ImpossibleError, match="reverse_kl is infinite"):
        some(divergence="reverse_kl")
    wide = sparse.eye_array(9000, format="csr")
    with pytest.raises(DiscreetError, match="9,000 different outcomes, more than 8,192"):
        design(dc.Simplex(9000), epsilon=1.0, clients=wide)


def test_a_divergence_with_infinite_start_needs_full_examples() -> None:
    laws = np.random.default_rng(2).dirichlet(np.full(4, 3.0), 12)
    found = design(dc.Simplex(4), epsilon=1.0, clients=laws, divergence="reverse_kl", keep=0)
    assert np.mean(dc.divergence("reverse_kl")(laws, found.sampler.output(laws))) == pytest.approx(
        found.value, rel=1e-9
    )
    assert found.worst("reverse_kl").value == math.inf
    assert found.value - found.bound <= 1e-4 * found.value


@pytest.mark.parametrize("outcomes", [0.5, 4, 5, math.nan])
def test_a_spread_is_between_one_outcome_and_all(outcomes: float) -> None:
    with pytest.raises(DiscreetError, match=r"outcomes = .* is not in \[1, 4\)"):
        dc.Simplex(4).spread(outcomes)


def test_a_band_for_everybody_claims_nothing() -> None:
    with pytest.raises(DiscreetError, match="any_client=True needs lower=0"):
        dc.Band([1, 2], lower=0.5, upper=1.5, any_client=True)
