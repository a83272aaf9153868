"""What accepts any object with the five names of a mechanism: pictures, audits and, for linear laws, estimates."""

import math
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError, OwnSampler, Simplex, estimation, plots
from discreet.audit import black_box_audit, certificate
from discreet.estimation import inverted_population, population
from discreet.mechanisms import Mechanism


class Published:
    """Somebody's code: randomised response in floating point, with a mistake where `honest` is not set."""

    name = "published"

    def __init__(self, honest: bool = True) -> None:
        self.family: Any = Simplex(["a", "b", "c"])
        self.privacy = dc.Pure(1.0)
        self.kept = (math.e - 1) / (math.e + 2) if honest else 0.7
        self.chance = np.random.default_rng(0)

    def output(self, p: Any) -> Any:
        return self.kept * np.asarray(p) + (1 - self.kept) / 3

    def release(self, p: Any, *, rng: Any = None) -> Any:
        laws = np.atleast_2d(self.output(p))
        return (np.cumsum(laws, axis=1) < self.chance.random((len(laws), 1))).sum(axis=1)


def test_five_names_make_a_mechanism() -> None:
    for found in (
        Published(),
        dc.OptimalSampler(Simplex(3), epsilon=1.0),
        OwnSampler.of(Simplex(2), np.full((2, 2), 0.5), epsilon=1.0),
    ):
        assert isinstance(found, Mechanism)
    assert not isinstance(Simplex(3), Mechanism)


def test_a_picture_of_any_mechanism() -> None:
    drawn = plots.output(Published(), [0.7, 0.3, 0.0])
    assert "claimed: 1-LDP" in drawn.axes[0].get_xlabel()
    own = OwnSampler.of(Simplex(3), lambda p: 0.3 * p + 0.7 / 3, floor=0.7 / 3, epsilon=1.0, name="mine")
    label = plots.output(own, [0.7, 0.3, 0.0]).axes[0].get_xlabel()
    assert "one box for every client" in label
    assert "e$^{1}$" in label
    with pytest.raises(DiscreetError, match="has no privacy"):
        plots.output(type("Bare", (), {"name": "x", "family": Simplex(2), "output": 1, "release": 1})(), [0.5, 0.5])
    odd = Published()
    odd.output = lambda p: [1.0]  # type: ignore[method-assign]
    with pytest.raises(DiscreetError, match="has shape"):
        plots.output(odd, [0.7, 0.3, 0.0])


@pytest.mark.slow
def test_an_audit_of_any_mechanism_takes_its_own_claim() -> None:
    assert not black_box_audit(Published(), draws=20_000).is_refuted
    found = black_box_audit(Published(honest=False), draws=20_000)
    assert found.epsilon == 1.0
    assert found.is_refuted
    own = OwnSampler.of(Simplex(["x", "y"]), lambda p: 0.4 * p + 0.3, floor=0.3, epsilon=1.0)
    audit = black_box_audit(own, draws=4_000)
    assert not audit.is_refuted
    assert 0.5 < audit.empirical_epsilon_lower_bound < math.log(7 / 3)
    with pytest.raises(DiscreetError, match="pass two or more densities"):
        black_box_audit(dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0))


def test_floating_point_has_no_certificate() -> None:
    with pytest.raises(DiscreetError, match="has no integers to certify; make it an OwnSampler"):
        certificate(Published())  # type: ignore[arg-type]


def matrix_mechanism() -> OwnSampler:
    """A matrix that is no mixture with one reference: neighbours are confused more often."""
    matrix = np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]])
    return OwnSampler.of(Simplex(["a", "b", "c"]), matrix, epsilon=1.0, name="neighbours")


def test_a_linear_law_is_inverted() -> None:
    truth = np.array([0.6, 0.3, 0.1])
    for mechanism in (matrix_mechanism(), Published()):
        counts = np.round(1_000_000 * np.asarray(mechanism.output(truth))).astype(np.int64)
        found = inverted_population(mechanism, counts=counts)
        assert np.abs(found.share_estimates - truth).max() < 1e-5
        assert ((found.law.low < truth) & (truth < found.law.high)).all()
        assert (found.law.all_low <= found.law.low + 1e-12).all()
        assert found.nearest.sum() == pytest.approx(1.0)


def test_intervals_of_an_inverted_population_cover_clients_that_differ() -> None:
    mechanism, rng = matrix_mechanism(), np.random.default_rng(4)
    clients = rng.dirichlet(np.full(3, 0.3), size=300)
    outputs, truth = mechanism.output(clients), clients.mean(axis=0)
    covered, together = [], []
    for _ in range(100):
        drawn = (np.cumsum(outputs, axis=1) < rng.random((300, 1))).sum(axis=1)
        law = inverted_population(mechanism, counts=np.bincount(drawn, minlength=3)).law
        covered.append((law.low <= truth) & (truth <= law.high))
        together.append(((law.all_low <= truth) & (truth <= law.all_high)).all())
    assert np.mean(covered) >= 0.95
    assert np.mean(together) >= 0.95


def test_it_agrees_with_the_linear_sampler() -> None:
    linear, counts = dc.LinearSampler(Simplex(4), epsilon=1.0), [40, 30, 20, 10]
    assert inverted_population(linear, counts=counts).share_estimates == pytest.approx(
        population(linear, counts=counts).share_estimates
    )


def test_what_cannot_be_inverted_is_refused() -> None:
    with pytest.raises(DiscreetError, match="is not linear in p"):
        inverted_population(dc.OptimalSampler(Simplex(4), epsilon=1.0), counts=[1, 1, 1, 1])
    bent = OwnSampler.of(Simplex(2), lambda p: 0.3 + 0.4 * p**2 / (p**2).sum(), floor=0.3, epsilon=1.0)
    with pytest.raises(DiscreetError, match="does not state a linear law"):
        inverted_population(bent, counts=[1, 1])
    with pytest.raises(DiscreetError, match="cannot be inverted"):
        inverted_population(OwnSampler.of(Simplex(2), np.full((2, 2), 0.5), epsilon=1.0), counts=[1, 1])
    with pytest.raises(DiscreetError, match="there are no samples"):
        inverted_population(matrix_mechanism(), counts=[0, 0, 0])
    own = matrix_mechanism()
    for estimate in (
        lambda: population(own, counts=[1, 1, 1]),
        lambda: estimation.inversion_of(own),
        lambda: estimation.clients_for(own, accuracy=0.1),
        lambda: estimation.estimate_groups(own, counts={"north": [1, 2, 3]}),
    ):
        with pytest.raises(DiscreetError, match="use inverted_population"):
            estimate()
