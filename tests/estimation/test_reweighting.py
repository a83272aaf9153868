"""Examples reweighted until they explain the samples: a known mixture is found, and what examples cannot explain is said."""

import numpy as np
import pytest
from scipy import sparse

import discreet as dc
from discreet.estimation import population, reported_population
from discreet.estimation._inference._reweighting import PULLS, example_laws, iterate_best_mixtures, reweight_examples
from discreet.mechanisms import ReportCounts
from tests.estimation.test_population import released_counts

K = 8


def kinds(number: int, rng: np.random.Generator) -> np.ndarray:
    """Laws of two kinds of clients, the first of the lower outcomes and the second of the upper."""
    low, high = np.geomspace(1.0, 0.01, K), np.geomspace(0.01, 1.0, K)
    return np.vstack([rng.dirichlet(3 * low, number), rng.dirichlet(3 * high, number)])


@pytest.mark.parametrize("mechanism", [dc.OptimalSampler, dc.MollifierSampler, dc.LinearSampler])
def test_a_known_mixture_is_found(mechanism: type) -> None:
    """Examples hold both kinds in equal parts, clients nine to one: weights move there, and the population with them."""
    rng = np.random.default_rng(1)
    examples = kinds(200, rng)
    clients = kinds(18_000, rng)[: 18_000 + 2_000]
    truth = clients.mean(axis=0)
    sampler = mechanism(dc.Simplex(K), epsilon=2.0)
    found = population(sampler, counts=released_counts(sampler.output(clients), rng), examples=examples).reweighted
    assert found is not None
    assert found.weights[:200].sum() == pytest.approx(0.9, abs=0.05)
    assert np.abs(found.law - truth).sum() / 2 < 0.03
    assert np.abs(examples.mean(axis=0) - truth).sum() / 2 > 0.2
    assert found.explains
    assert found.gap <= 1e-6


def test_the_design_of_the_examples_is_told_apart_from_other_populations() -> None:
    rng = np.random.default_rng(2)
    examples, clients = kinds(100, rng), kinds(6_000, rng)[:8_000]
    designed = dc.design(dc.Simplex(K), epsilon=1.0, clients=examples)
    counts = released_counts(designed.sampler.output(clients), rng)
    found = population(designed.sampler, counts=counts, examples=examples)
    truth = clients.mean(axis=0)
    assert found.reweighted is not None
    off = {
        "as they are": np.abs(found.released_shares.estimate - truth).sum() / 2,
        "examples": np.abs(examples.mean(axis=0) - truth).sum() / 2,
        "reweighted": np.abs(found.reweighted.law - truth).sum() / 2,
    }
    assert off["reweighted"] < 0.5 * min(off["as they are"], off["examples"])
    assert (found.law.all_low <= truth).all()
    assert (truth <= found.law.all_high).all()


@pytest.mark.slow
def test_samples_of_several_agreements_have_one_likelihood() -> None:
    """Each alone says less than both together."""
    rng = np.random.default_rng(3)
    examples, clients = kinds(200, rng), kinds(3_000, rng)[:4_000]
    samplers = [dc.LinearSampler(dc.Simplex(K), epsilon=1.0), dc.MollifierSampler(dc.Simplex(K), epsilon=1.0)]
    errors: list[list[float]] = [[], [], []]
    for _ in range(30):
        rounds = [(sampler, released_counts(sampler.output(clients), rng)) for sampler in samplers]
        for place, some in enumerate((rounds[:1], rounds[1:], rounds)):
            errors[place].append(np.abs(reweight_examples(some, examples).law - clients.mean(axis=0)).sum() / 2)
    one, two, both = (float(np.mean(found)) for found in errors)
    assert both < min(one, two)


def test_few_samples_leave_the_examples_as_they_are() -> None:
    rng = np.random.default_rng(4)
    examples = kinds(50, rng)
    sampler = dc.OptimalSampler(dc.Simplex(K), epsilon=0.5)
    found = reweight_examples([(sampler, released_counts(sampler.output(examples), rng))], examples)
    assert np.abs(found.law - examples.mean(axis=0)).sum() / 2 < 0.05
    with_none = reweight_examples([(sampler, np.eye(K, dtype=np.int64)[0])], examples)
    assert np.abs(with_none.law - examples.mean(axis=0)).sum() / 2 < 0.1


def test_samples_that_no_weights_explain_are_said() -> None:
    """Examples hold the lower half of the outcomes, clients the upper one."""
    rng = np.random.default_rng(5)
    examples, clients = np.zeros((40, K)), np.zeros((5_000, K))
    examples[:, :4], clients[:, 4:] = rng.dirichlet(np.ones(4), 40), rng.dirichlet(np.ones(4), 5_000)
    sampler = dc.OptimalSampler(dc.Simplex(K), epsilon=2.0)
    counts = released_counts(sampler.output(clients), rng)
    found = population(sampler, counts=counts, examples=examples)
    assert found.reweighted is not None
    assert not found.reweighted.explains
    assert any("no weights of the examples explain the samples" in said for said in found.doubts)
    fine = population(sampler, counts=counts, examples=clients[:100])
    assert fine.reweighted is not None
    assert fine.reweighted.explains
    assert not any("examples" in said for said in fine.doubts)


def test_the_strain_of_the_true_mixture_is_that_of_chance() -> None:
    rng = np.random.default_rng(6)
    examples = kinds(30, rng)
    sampler = dc.OptimalSampler(dc.Simplex(K), epsilon=2.0)
    strains = []
    for _ in range(200):
        drawn = rng.multinomial(400, sampler.output(examples).mean(axis=0))
        strains.append(reweight_examples([(sampler, drawn)], examples, pull=1e9).strain)
    assert abs(np.mean(strains)) < 0.25
    assert 0.8 < np.std(strains) < 1.25


def test_sparse_counts_are_the_same_as_laws() -> None:
    rng = np.random.default_rng(7)
    counts = rng.poisson(0.7, (30, K)) + np.eye(30, K, dtype=np.int64)[rng.permutation(30)]
    counts[:, 0] += 1
    laws = dc.Simplex(K).law(counts=counts)
    assert np.allclose(example_laws(dc.OptimalSampler(dc.Simplex(K), epsilon=1.0), sparse.csr_array(counts)), laws)


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        (np.full((3, K + 1), 1 / (K + 1)), "examples"),
        (np.full(K, 1 / K), r"examples has shape \(8,\)"),
        (np.zeros((0, K)), "examples has shape"),
        (np.full((2, K), 0.5), "examples"),
        (np.full((2, K), np.nan), "examples"),
        (sparse.csr_array((2, K)), r"examples\[0\] is all zero"),
        (sparse.csr_array(-np.eye(K)), r"examples\[0\]"),
        (sparse.csr_array((10**7, K)), "take fewer of them"),
        ("nonsense", "examples"),
    ],
)
def test_bad_examples_are_named(examples: object, said: str) -> None:
    sampler = dc.OptimalSampler(dc.Simplex(K), epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match=said):
        population(sampler, counts=np.full(K, 10), examples=examples)


def test_examples_on_a_line_are_laws_on_its_cells() -> None:
    family = dc.GaussianMixtures(dim=1, radius=1.0, scale=1.0, box=(-4.0, 4.0))
    with pytest.raises(dc.DiscreetError, match="which edges= may cut"):
        population(dc.OptimalSampler(family, epsilon=1.0), counts=[1, 1], edges=[-4.0, 0.0, 4.0], examples=np.eye(2))


def test_pulls_fall() -> None:
    assert list(PULLS) == sorted(PULLS, reverse=True)


def test_samples_less_their_bias_are_closer_where_examples_are_unlike_the_clients() -> None:
    """Examples that leave out a kind of client: no weights explain it, but the bias of the others is about its own."""
    rng = np.random.default_rng(4)
    examples, clients = rng.dirichlet([4.0, 2.0, 1.0, 1.0], 200), rng.dirichlet([1.0, 1.0, 2.0, 6.0], 20_000)
    sampler = dc.design(dc.Simplex(4), epsilon=5.0, clients=examples, keep=0.5).sampler
    found = reweight_examples([(sampler, released_counts(sampler.output(clients), rng))], examples)
    truth = clients.mean(axis=0)
    assert np.abs(found.debiased - truth).sum() < 0.5 * np.abs(found.law - truth).sum()
    assert found.debiased.sum() == pytest.approx(1.0)
    assert (found.debiased >= 0.0).all()


def test_several_rounds_are_debiased_in_proportion() -> None:
    rng = np.random.default_rng(5)
    clients = rng.dirichlet([2.0, 1.0, 1.0], 9_000)
    examples = rng.dirichlet([2.0, 1.0, 1.0], 100)
    samplers = [dc.OptimalSampler(dc.Simplex(3), epsilon=epsilon) for epsilon in (1.0, 3.0)]
    counts = [
        released_counts(one.output(some), rng) for one, some in zip(samplers, np.split(clients, [6_000]), strict=True)
    ]
    found = reweight_examples(list(zip(samplers, counts, strict=True)), examples)
    released = [found.weights @ one.output(examples) for one in samplers]
    by_hand = found.law + sum(c / 9_000 - c.sum() / 9_000 * y for c, y in zip(counts, released, strict=True))
    np.testing.assert_allclose(found.debiased, by_hand / by_hand.sum(), atol=1e-9)


@pytest.mark.parametrize("many", [0, 10**6])
def test_reports_are_explained_as_outcomes_on_blocks_are(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the same problem on all blocks, listed; by the matrix of examples and by that of blocks."""
    monkeypatch.setattr("discreet.estimation._inference._reweighting._MANY_OUTCOMES", many)
    rng = np.random.default_rng(8)
    sampler = dc.ReportSampler(dc.Simplex(8), epsilon=1.5)
    examples, held = rng.dirichlet(np.ones(8), 12), rng.integers(0, 3, 400)
    reports = sampler.release_records(held)
    found = reported_population(sampler, reports=reports, examples=examples).reweighted
    assert found is not None
    assert found.gap < 1e-8
    counts = np.array([(reports == each).sum() for each in sampler.reports()])
    pull = [found.pull / 400]
    (direct,) = iterate_best_mixtures(np.asarray(sampler.output(examples)), counts / 400, pull)
    assert found.weights == pytest.approx(direct.weights, abs=1e-6)
    assert found.law == pytest.approx(found.weights @ examples)
    assert found.debiased.sum() == pytest.approx(1.0)


def test_examples_like_the_clients_explain_reports_and_others_do_not() -> None:
    rng = np.random.default_rng(9)
    sampler = dc.ReportSampler(dc.Simplex(30), epsilon=2.0)
    like = rng.dirichlet(np.linspace(2.0, 0.1, 30), 60)
    held = [int(rng.choice(30, p=law)) for law in rng.dirichlet(np.linspace(2.0, 0.1, 30), 3000)]
    reports, truth = sampler.release_records(held), np.bincount(held, minlength=30) / 3000
    plain = reported_population(sampler, reports=reports)
    near, far = (
        reported_population(sampler, reports=reports, examples=each).reweighted for each in (like, like[:, ::-1])
    )
    assert near is not None
    assert far is not None
    assert near.explains
    assert np.abs(near.law - truth).sum() < np.abs(plain.nearest - truth).sum()
    assert not far.explains
    assert np.abs(far.debiased - truth).sum() < np.abs(far.law - truth).sum()
    assert plain.doubts == ()
    (doubt,) = reported_population(sampler, reports=reports, examples=like[:, ::-1]).doubts
    assert doubt.startswith("no weights of the examples explain the reports")
    with pytest.raises(dc.DiscreetError, match="one of each client"):
        reported_population(sampler, reports=reports.reshape(-1, 2), examples=like)
    with pytest.raises(dc.DiscreetError, match="one of each client"):
        reported_population(sampler, counts=ReportCounts(sampler).add(reports), examples=like)
