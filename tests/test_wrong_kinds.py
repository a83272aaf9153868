"""A public function that is given the wrong kind of object says what to pass: a result or one of our errors, for every argument.

Every public function and class has a call in `CALLS`; one that has none fails the test. Each argument of a call is replaced by objects of
other kinds in turn. An error that is raised must be of a kind that `Raises:` of its docstring names.

Two kinds of class have no call, by a rule: records, whose generated constructors check nothing, and interfaces, which cannot be made.
"""

import contextlib
import importlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet import estimation
from discreet.accounting import BoxProfile
from discreet.domain import Bins
from discreet.families import Bounds
from discreet.mechanisms import ReportSampler
from discreet.release import generator
from discreet.research import BoostedSampler, compare
from discreet.survey import Survey, SurveySampler, shares
from tests.public import is_interface, is_record, public_callables, public_modules
from tests.soaking import wide

LINE = dc.GaussianMixtures()
FINITE = dc.OptimalSampler(dc.Simplex(3), epsilon=1.0)
CONTINUOUS = dc.OptimalSampler(LINE, epsilon=1.0, discretisation=dc.Cells(8))
LINEAR = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
REPORTS = ReportSampler(dc.Simplex(3), epsilon=1.0)
SURVEYED = SurveySampler(Survey({"a": 3}, [shares("a")]), epsilon=1.0)
CROSSED = SurveySampler(Survey({"a": 2, "b": 3}, [shares("a", "b")]), epsilon=1.0)
TRANSPORT = dc.TransportSampler([0.0, 1.0, 2.0], epsilon=1.0)
OWN = dc.OwnSampler.of(dc.Simplex(3), np.full((3, 3), 0.25) + 0.25 * np.eye(3), epsilon=1.0)
PROFILE = BoxProfile(epsilon=1.0, alpha=0.1)
LAW = CONTINUOUS.output(stats.norm())
LAWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
REPORTED = REPORTS.release(LAWS)
AGREEMENT = dc.Agreement.of(LINEAR, rounds=3)
POPULATION = estimation.population(LINEAR, counts=[50, 30, 20])
WRONG: list[Any] = [
    10, 1.5, "abc", None, [1, 2], {}, object(), np.ones(3), LINE, dc.Simplex(3), dc.Band([5, 3, 2], lower=0.5, upper=1.5),
    FINITE, CONTINUOUS, BoostedSampler(LINE, epsilon=1.0), PROFILE, stats.norm(), lambda x: x, dc.Simplex, dc.OptimalSampler,
    float("nan"), [FINITE], b"x", 2j, True, LAW,
]  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call that is right, unless `refused` says why there is no right one here.

    `fixed`: arguments that stay as they are. `slow_numbers`: arguments that take their time with any number, and are tried with the rest.
    `few`: the first of the wrong kinds alone, where a call takes its time.
    """

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    refused: str = ""
    fixed: tuple[str, ...] = ()
    slow_numbers: tuple[str, ...] = ()
    few: bool = False


def call(*arguments: Any, **options: Any) -> Call:
    return Call(arguments, options)


def slow_call(*arguments: Any, **options: Any) -> Call:
    return Call(arguments, options, few=True)


FAMILY_CALL = {"epsilon": 1.0, "discretisation": None, "privacy": None}


def _store(folder: Path) -> Any:
    from discreet.collect import open_store

    store = open_store(folder / "store.db")
    store.add(dc.Agreement.of(LINEAR))
    return store


def _secret(folder: Path) -> Path:
    from discreet.tables import write_secret

    path = folder / "secret"
    write_secret(path)
    return path


def _table() -> Any:
    import polars as pl

    return pl.DataFrame({"who": ["a", "a", "b"], "what": ["x", "y", "z"]})


def _request(**other: Any) -> Any:
    from discreet.tables import Request

    return Request(client="who", value="what", domain=["x", "y", "z"], epsilon=1.0, **other)


def _job() -> Any:
    import polars as pl

    return _request().job(pl.Schema({"who": pl.String, "what": pl.String}))


def _file(folder: Path) -> str:
    path = folder / "table.csv"
    path.write_text("who,what\na,x\nb,y\n", encoding="utf-8")
    return str(path)


def _ledger(folder: Path) -> Path:
    from discreet.ledger import Budget, Ledger

    return Ledger.create(folder / "ledger", Budget(epsilon=3.0)).path


def _population_ledger(folder: Path) -> tuple[Path, Path]:
    from discreet.ledger import PopulationLedger

    secret = _secret(folder)
    return PopulationLedger.create(folder / "books", budget=3.0, secret=secret).folder, secret


def _logits() -> Any:
    import torch

    return torch.tensor([0.1, 0.2, 0.3])


def _many_logits() -> Any:
    import torch

    return torch.tensor([[0.1, 0.2, 0.3], [1.0, 0.0, 0.2]])


def _models() -> Any:
    from tests.torch.transformers import models

    return models


def _terms() -> Any:
    from discreet.torch.transformers import TokenTerms

    return TokenTerms(epsilon=1.0, tokens=2, vocabulary=200)


def _budget() -> Any:
    from discreet.ledger import Budget

    return Budget(epsilon=3.0)


def _design() -> Any:
    return dc.design(dc.Simplex(3), epsilon=1.0, clients=LAWS)


def _figure() -> Any:
    from discreet import plots

    return plots.plan(dc.Simplex(3), clients=100, epsilons=[1.0])


SERVING = {
    "follows": None, "host": "127.0.0.1", "port": 0, "rounds": (1,), "tokens": None, "gateways": None, "key": None, "addresses": (),
    "replace_key": False, "seal": None, "least": None, "hosts": (), "origins": (), "patience": 1.0, "workers": 1, "listening": None,
}  # fmt: skip
CALLS: dict[str, Callable[[Path], Call]] = {
    "discreet.Agreement": lambda _: call(
        family=AGREEMENT.family, mechanism="linear", epsilon=1.0, rounds=1, purpose="", privacy=None, reference=None, other=None, joint=None
    ),
    "discreet.Approximate": lambda _: call(1.0, delta=1e-6),
    "discreet.Band": lambda _: call([5, 3, 2], lower=0.5, upper=1.5, labels=None, domain=None, any_client=False),
    "discreet.Cells": lambda _: call(4),
    "discreet.Density": lambda _: call(1e-5, 1e-5),
    "discreet.DensityBand": lambda _: call(stats.norm(), None, lower=0.5, upper=2.0, any_client=False),
    "discreet.FDivergence": lambda _: call(lambda x: (x - 1.0) ** 2, name="f", at_zero=None, slope_at_infinity=None),
    "discreet.Functional": lambda _: call([(0.0, 1.0), (0.2, 0.2), (1.0, 0.0)]),
    "discreet.Gaussian": lambda _: call(1.0),
    "discreet.GaussianMixtures": lambda _: call(1, radius=1.0, scale=1.0, box=None),
    "discreet.Interval": lambda _: call(0.0, 1.0, cells=4),
    "discreet.JointSampler": lambda _: call(dc.Simplex(3), samples=2, epsilon=1.0, privacy=None, around=None, band=None),
    "discreet.Labels": lambda _: call(["a", "b"]),
    "discreet.LaplaceMixtures": lambda _: call(1, radius=1.0, scale=1.0, box=None),
    "discreet.LinearSampler": lambda _: call(LINE, **FAMILY_CALL),
    "discreet.Mixture": lambda _: call([1.0], [0.0], 1.0, kernel="gaussian", covariances=None),
    "discreet.MollifierSampler": lambda _: call(dc.Simplex(3), reference=None, **FAMILY_CALL),
    "discreet.Near": lambda _: call([0.5, 0.3, 0.2], factor=2.0, box=None, labels=None),
    "discreet.Numbers": lambda _: call(3),
    "discreet.OptimalSampler": lambda _: call(dc.Simplex(3), **FAMILY_CALL),
    "discreet.Points": lambda _: call(64, 1),
    "discreet.Preserving": lambda _: call([0.5, 0.5], labels=None),
    "discreet.Pure": lambda _: call(1.0),
    "discreet.Simplex": lambda _: call(3),
    "discreet.TransportSampler": lambda _: call([0.0, 1.0, 2.0], metric=None, norm=None, epsilon=1.0, privacy=None),
    "discreet.design": lambda _: call(
        dc.Simplex(3), epsilon=1.0, clients=LAWS, weights=None, divergence="kl", keep=None, over="mean", smoothing=None, tolerance=None,
        cells=None, progress=None,
    ),
    "discreet.divergence": lambda _: call("kl"),
    "discreet.epsilon_for": lambda _: call(dc.Simplex(3), divergence="tv", risk=0.3, delta=0.0),
    "discreet.minimax_risk": lambda _: call(dc.Simplex(3), epsilon=1.0, privacy=None, divergence="tv", samples=1, bracket=False),
    "discreet.nu_for": lambda _: call(dc.Simplex(3), divergence="tv", risk=0.3),
    "discreet.accounting.BoxProfile": lambda _: call(epsilon=1.0, alpha=0.1, attained=False),
    "discreet.accounting.Odometer": lambda _: call(delta=1e-6, releases=((PROFILE, 2),)),
    "discreet.accounting.compose": lambda _: call([(PROFILE, 2)]),
    "discreet.accounting.epsilon_from_renyi": lambda _: call(PROFILE, samples=3, delta=1e-3),
    "discreet.accounting.epsilon_per_sample": lambda _: call(alpha=0.1, samples=3, epsilon=1.0, delta=1e-3),
    "discreet.accounting.equal_share": lambda _: call(dc.Pure(1.0), samples=3, bounds=Bounds(0.0, 3.0)),
    "discreet.accounting.keeps_together": lambda _: call(dc.Pure(1.0), Fraction(1, 5), Fraction(1, 4), 3),
    "discreet.accounting.profile_of": lambda _: call(FINITE),
    "discreet.accounting.renyi": lambda _: call(PROFILE, order=2.0),
    "discreet.accounting.shuffled_delta": lambda _: call(PROFILE, clients=100, epsilon=0.5),
    "discreet.accounting.shuffled_epsilon": lambda _: call(PROFILE, clients=100, delta=1e-3),
    "discreet.agreement.BlockTerms": lambda _: call("affine", w=None, q=5, t=1, c=2),
    "discreet.agreement.JointTerms": lambda _: call(2, "product"),
    "discreet.agreement.OwnTerms": lambda _: call("name", "package", "1.0", "sha256:" + 64 * "0", {"a": 1}),
    "discreet.agreement.Schedule": lambda _: call("2026-01-01", "day"),
    "discreet.audit.black_box_audit": lambda _: call(
        lambda value, n: np.zeros(n), [0, 1], epsilon=1.0, delta=0.0, privacy=None, draws=400, confidence=0.99
    ),
    "discreet.audit.certificate": lambda _: call(FINITE, epsilon=1.0, privacy=None, most_inputs=4, agreement=None),
    "discreet.audit.certificate_of": lambda _: call([[1, 2], [2, 1]], epsilon=1.0, mechanism="", inputs=()),
    "discreet.audit.empirical_epsilon_lower_bound": lambda _: call(60, 40, draws=100, confidence=0.95, delta=0.0),
    "discreet.audit.verify.main": lambda folder: call([str(folder / "no certificate")]),
    "discreet.audit.verify.problems": lambda _: call({}),
    "discreet.client.Client": lambda folder: call(
        "http://127.0.0.1:1", ledger=folder / "ledger", budget=3.0, agreement=None, identity=None, token=None, key=None, family=None,
        timeout=1.0, patience=1.0, plain_http=False, tls=None,
    ),
    "discreet.client.send_table": lambda folder: Call(
        ("http://127.0.0.1:1", _table()),
        {"client": "who", "value": "what", "secret": _secret(folder), "count": None, "weight": None, "domain": None, "other": None,
         "nulls": "error", "round": None, "agreement": None, "epsilon": 1.0, "ledger": None, "budget": 3.0, "over_budget": "refuse",
         "token": None, "key": None, "timeout": 1.0, "patience": 0.01, "plain_http": False, "tls": None, "progress": None},
        "nobody listens at that address", slow_numbers=("patience", "timeout"),
    ),
    "discreet.collect.close_collection": lambda folder: call(_store(folder), agreement=None),
    "discreet.collect.export": lambda folder: Call(
        (_store(folder), folder / "out.csv"), {"agreement": None, "round": 1, "replace": False}, "the store holds no samples"
    ),
    "discreet.collect.open_store": lambda folder: call(folder / "store.db", create=True, seal=None),
    "discreet.collect.publish": lambda folder: Call(
        (_store(folder), folder / "result"), {"agreement": None, "round": 1, "confidence": 0.95}, "the collection is not closed"
    ),
    "discreet.collect.serve": lambda folder: Call(
        (folder / "nowhere" / "store.db", [AGREEMENT]), SERVING, "its folder is missing; a right call does not return", ("store",)
    ),
    "discreet.collect.service": lambda folder: call(
        _store(folder), rounds=(1,), tokens=None, gateways=None, hosts=None, origins=(), patience=1.0, key=None, addresses=(),
        replace_key=False,
    ),
    "discreet.design.concentration_law": lambda _: call(LAWS),
    "discreet.design.learn": lambda _: slow_call(
        dc.Simplex(3), epsilon=1.0, rounds=[(LINEAR, [50, 30, 20])], spread=None, divergence="kl", keep=None, confidence=0.95
    ),
    "discreet.design.mixtures.minimax_bracket": lambda _: Call(
        (LINE,), {"epsilon": 1.0, "cells": 20}, "so few cells give no bracket"
    ),
    "discreet.divergences.RenyiDivergence": lambda _: call(2.0),
    "discreet.divergences.alpha": lambda _: call(2.0),
    "discreet.divergences.hockey_stick": lambda _: call(2.0),
    "discreet.divergences.renyi": lambda _: call(2.0),
    "discreet.domain.Bins": lambda _: call([0.0, 1.0, 2.0]),
    "discreet.domain.Digested": lambda _: call(2, "sha256:" + 64 * "0"),
    "discreet.domain.as_domain": lambda _: call(3, "domain"),
    "discreet.estimation.change": lambda _: call(POPULATION, POPULATION, confidence=None),
    "discreet.estimation.clients_for": lambda _: call(LINEAR, accuracy=0.1, confidence=0.95, mass=None, together=False),
    "discreet.estimation.epsilon_for_accuracy": lambda _: slow_call(
        dc.LinearSampler, dc.Simplex(3), clients=1000, accuracy=0.1, confidence=0.95, together=False
    ),
    "discreet.estimation.estimate_groups": lambda _: call(
        LINEAR, samples=[0, 1, 2], reports=None, groups=["a", "b", "a"], counts=None, bins=None, confidence=0.95
    ),
    "discreet.estimation.exact_variance": lambda _: call(LINEAR, LAWS, [1.0, 2.0, 3.0]),
    "discreet.estimation.variance_excess": lambda _: call(LINEAR),
    "discreet.estimation.inversion_of": lambda _: call(LINEAR),
    "discreet.estimation.inverted_population": lambda _: call(
        OWN, samples=None, counts=[50, 30, 20], confidence=0.95
    ),
    "discreet.estimation.liars": lambda _: call(POPULATION, 1),
    "discreet.estimation.nearest_law": lambda _: call([0.5, 0.6], 0.0, 1.0),
    "discreet.estimation.outlook": lambda _: call(LINEAR, mechanism="linear", clients=100, confidence=0.95, bins=None),
    "discreet.estimation.population": lambda _: call(
        LINEAR, samples=[0, 1, 2], counts=None, clients=None, rounds=1, edges=None, bins=None, examples=None, confidence=0.95
    ),
    "discreet.estimation.report_liars": lambda _: call(estimation.reported_population(REPORTS, reports=REPORTS.release(LAWS)), 1),
    "discreet.estimation.reported_average": lambda _: call(
        REPORTS, reports=REPORTS.release(LAWS), values=[1.0, 2.0, 3.0], confidence=0.95, name="average"
    ),
    "discreet.estimation.reported_population": lambda _: call(
        REPORTS, reports=REPORTS.release(LAWS), counts=None, examples=None, confidence=0.95
    ),
    "discreet.estimation.reported_statistic": lambda _: call(
        estimation.reported_population(REPORTS, reports=REPORTED), "mean", REPORTED
    ),
    "discreet.estimation.rounds_cost": lambda _: call(AGREEMENT),
    "discreet.estimation.pooled_population": lambda _: call(
        [estimation.population(LINEAR, counts=[50, 30, 20])], confidence=0.95
    ),
    "discreet.estimation.ways_to_spend": lambda _: call(dc.Simplex(3), samples=2, epsilon=1.0, clients=100, examples=None),
    "discreet.families.BoundedDensity": lambda _: call(stats.norm(), cdf=None, error=None, lipschitz=1.0),
    "discreet.families.HistogramFit": lambda _: call(4),
    "discreet.families.KernelFit": lambda _: call(1.0),
    "discreet.families.MixtureFit": lambda _: call(4, 10),
    "discreet.families.Tabulated": lambda _: call([0.0, 1.0], [1.0]),
    "discreet.ledger.Budget": lambda _: call(epsilon=1.0, delta=0.0),
    "discreet.ledger.Ledger": lambda folder: call(_ledger(folder), wait=0.1),
    "discreet.ledger.PopulationLedger": lambda folder: call(*_population_ledger(folder), to=None),
    "discreet.mechanisms.ComposedSampler": lambda _: call(LINEAR, samples=2),
    "discreet.mechanisms.Multisets": lambda _: call(3, 2),
    "discreet.mechanisms.ReportCounts": lambda _: call(REPORTS),
    "discreet.estimation.answer_survey": lambda _: call(SURVEYED, SURVEYED.release_rows([0, 1, 2]), confidence=0.95, among=1),
    "discreet.estimation.answer_groups": lambda _: call(
        SURVEYED, {"a": SURVEYED.release_rows([0, 1, 2])}, confidence=0.95
    ),
    "discreet.estimation.survey_change": lambda _: call(
        SURVEYED, SURVEYED.release_rows([0, 1]), SURVEYED, SURVEYED.release_rows([0, 1]), confidence=0.95
    ),
    "discreet.estimation.shares_within": lambda _: call(
        estimation.answer_survey(CROSSED, CROSSED.release_rows([0, 1, 2])), 0, "a"
    ),
    "discreet.estimation.survey_outlook": lambda _: call(SURVEYED, 100),
    "discreet.survey.Dates": lambda _: call("2026-01-01", "2026-02-01"),
    "discreet.survey.Number": lambda _: call(0.0, 1.0, unit="kg"),
    "discreet.survey.Survey": lambda _: call({"a": 3}, [shares("a")]),
    "discreet.survey.SurveySampler": lambda _: call(SURVEYED.survey, epsilon=1.0, privacy=None, parts=None),
    "discreet.survey.histogram": lambda _: call("a", cells=3, weight=1.0),
    "discreet.survey.linear": lambda _: call([[1.0, 2.0]], "a", weight=1.0),
    "discreet.survey.mean": lambda _: call("a", weight=1.0),
    "discreet.survey.quantiles": lambda _: call("a", at=(0.5,), weight=1.0),
    "discreet.survey.shares": lambda _: call("a", weight=1.0),
    "discreet.mechanisms.ReportSampler": lambda _: call(dc.Simplex(3), epsilon=1.0, privacy=None),
    "discreet.mechanisms.check_mechanism": lambda _: call("linear", "mechanism"),
    "discreet.mechanisms.mechanism_for": lambda _: call("population", None),
    "discreet.mechanisms.population_mechanism": lambda _: call(dc.Simplex(3), dc.Pure(1.0)),
    "discreet.mechanisms.nearest_member": lambda _: call(LINE, stats.norm()),
    "discreet.mechanisms.sampler_named": lambda _: call("mollifier", dc.Simplex(3), reference=None, **FAMILY_CALL),
    "discreet.mechanisms.warm_up.warm_up": lambda _: call(),
    "discreet.plots.audit": lambda _: call(
        dc.audit.black_box_audit(lambda value, n: np.zeros(n), [0, 1], epsilon=1.0, draws=400), ax=None, title=None
    ),
    "discreet.plots.comparison": lambda _: call(
        compare(dc.Simplex(3), LAWS, divergences=["tv"]).records, value="mean", ax=None, title=None, colours=None, labels=None, style=None
    ),
    "discreet.plots.change": lambda _: call(estimation.change(POPULATION, POPULATION), most=12, ax=None, title=None),
    "discreet.plots.frontier": lambda _: call([_design()], others=None, ax=None, title=None),
    "discreet.plots.groups": lambda _: call(
        estimation.estimate_groups(LINEAR, counts={"a": [50, 30, 20], "b": [5, 3, 2]}), most=12, ax=None, title=None
    ),
    "discreet.plots.output": lambda _: call(FINITE, [0.5, 0.3, 0.2], released=None, most=12, ax=None, title=None),
    "discreet.plots.plan": lambda _: slow_call(
        dc.Simplex(3), clients=100, epsilons=[1.0], accuracy=0.05, confidence=0.95, ax=None, title=None
    ),
    "discreet.plots.population": lambda _: call(POPULATION, truth=None, most=12, ax=None, title=None),
    "discreet.plots.survey_groups": lambda _: call(
        estimation.answer_groups(SURVEYED, {"a": SURVEYED.release_rows([0, 1, 2] * 30)}), most=12, ax=None, title=None
    ),
    "discreet.plots.survey_change": lambda _: call(
        estimation.survey_change(
            SURVEYED, SURVEYED.release_rows([0, 1, 2] * 30), SURVEYED, SURVEYED.release_rows([0, 1, 2] * 30)
        ),
        most=12, ax=None, title=None,
    ),
    "discreet.plots.survey": lambda _: call(
        estimation.answer_survey(SURVEYED, SURVEYED.release_rows([0, 1, 2] * 30)), most=12, ax=None, title=None
    ),
    "discreet.plots.save": lambda folder: slow_call(_figure(), folder / "plan.svg"),
    "discreet.plots.tradeoff": lambda _: call(
        dc.Simplex(3), epsilon=[1.0, 2.0], divergences=["kl"], bracket=False, ax=None, title=None
    ),
    "discreet.privacy.chosen_privacy": lambda _: call(1.0, None),
    "discreet.privacy.exp_lower": lambda _: call(1.0),
    "discreet.privacy.exp_nearest": lambda _: call(1.0),
    "discreet.privacy.exp_upper": lambda _: call(1.0),
    "discreet.privacy.expm1_nearest": lambda _: call(1.0),
    "discreet.privacy.extreme_masses": lambda _: call(Fraction(1, 2), Fraction(3)),
    "discreet.privacy.log_bracket": lambda _: call(Fraction(3)),
    "discreet.privacy.stated_decimal": lambda _: call(0.1),
    "discreet.release.SystemEntropy": lambda _: call(),
    "discreet.release.generator": lambda _: call(None),
    "discreet.release.outcome_in_constant_time": lambda _: call(FINITE.lattice, LAWS[0], None, 5),
    "discreet.release.outcomes": lambda _: call(FINITE.lattice, LAWS, None, np.array([5, 7])),
    "discreet.release.seeded_randomness": lambda _: call(generator(None)),
    "discreet.release.weights": lambda _: call(FINITE.lattice, LAWS, None),
    "discreet.projection.jax.output_function": lambda _: Call(
        (None,), {}, refused="JAX is for a process of its own (tests/projection/test_jax.py)", fixed=("sampler",)
    ),
    "discreet.research.BoostedSampler": lambda _: call(LINE, epsilon=1.0, preset="published", training=None, device="cpu"),
    "discreet.research.Training": lambda _: call(3, 10, 5, 750, 0.01, 0.9, 25, 1000, "metropolis"),
    "discreet.research.compare": lambda _: call(
        dc.Simplex(3), LAWS, mechanisms=["optimal"], epsilons=[1.0], divergences=["tv"]
    ),
    "discreet.research.reproduce": lambda folder: Call(("fig2", folder / "runs"), {"quick": False}, fixed=("folder",)),
    "discreet.research.data.destinations": lambda _: call(),
    "discreet.research.data.flights": lambda _: call(),
    "discreet.research.data.logbooks": lambda _: call([1]),
    "discreet.research.data.time_zones": lambda _: call(),
    "discreet.research.data.zone_logbooks": lambda _: call(),
    "discreet.research.warm_up.warm_up": lambda _: call(),
    "discreet.tables.Kernel": lambda _: call(_job()),
    "discreet.tables.Release": lambda _: call(
        _table(), _request(), clients=None, drop_client=False, memory=None, folder=None, ledger=None, over_budget="refuse", progress=None
    ),
    "discreet.tables.Request": lambda _: call(
        client="who", value="what", count=None, weight=None, domain=["x", "y", "z"], other=None, nulls="error", outside="error",
        epsilon=1.0, goal=None, mechanism=None, rounds=None, round=1, purpose=None, family=None, sampler=None, agreement=None, secret=None,
        show_values=False,
    ),
    "discreet.tables.Secret": lambda _: call(bytes(32), None),
    "discreet.tables.dry_run": lambda _: call(_table(), client="who", value="what", domain=["x", "y", "z"], epsilon=1.0),
    "discreet.tables.read_secret": lambda folder: call(_secret(folder), state=None),
    "discreet.tables.sample": lambda _: call(
        _table(), client="who", value="what", domain=["x", "y", "z"], epsilon=1.0, clients=None, drop_client=False, memory=None,
        ledger=None, over_budget="refuse",
    ),
    "discreet.tables.sample_file": lambda folder: slow_call(
        _file(folder), str(folder / "out.csv"), _request(), clients=None, drop_client=False, memory=None, folder=None, output_format=None,
        agreement_file=None, ledger=None, over_budget="refuse", replace=True, keep=None, progress=None,
    ),
    "discreet.tables.write_secret": lambda folder: call(folder / "secret"),
    "discreet.tables.spark.sample": lambda _: Call(
        (object(),), {"client": "who", "value": "what", "domain": ["x", "y", "z"], "epsilon": 1.0, "clients": None, "drop_client": False},
        "a Spark session takes 15 s to start",
    ),
    "discreet.tables.spark.sample_files": lambda folder: Call(
        (str(folder / "in.csv"), str(folder / "out")), {"request": _request(), "clients": None, "drop_client": False,
        "output_format": None, "agreement_file": None}, "a Spark session takes 15 s to start; Spark reads no CSV",
    ),
    "discreet.tables.warm_up.warm_up": lambda _: call(),
    "discreet.torch.fitted_box": lambda _: call(
        epsilon=1.0, logits=_many_logits(), reference=_many_logits(), measure="kl", temperature=1.0
    ),
    "discreet.torch.fitted_upper": lambda _: call(
        epsilon=1.0, logits=_many_logits(), reference=_many_logits(), measure="kl", temperature=1.0
    ),
    **{
        f"discreet.torch.{name}": lambda _: call(
            epsilon=1.0, privacy=None, logits=_logits(), probabilities=None, reference=_logits(), upper=None, temperature=1.0
        )
        for name in ("output", "release", "weights")
    },
    "discreet.torch.transformers.PrivateLogits": lambda _: slow_call(
        _terms(), _models().model(), [[1, 2]], known=2, ends=(), ledger=None
    ),
    "discreet.torch.transformers.TokenStream": lambda _: call(budget=_budget(), vocabulary=200, ledger=None, purpose=""),
    "discreet.torch.transformers.TokenTerms": lambda _: call(
        epsilon=1.0, tokens=2, vocabulary=200, schedule=(), upper=None, delta=1e-6, temperature=1.0, reference_temperature=1.0, top_k=None,
        top_p=None, model="", public="", purpose="",
    ),
    "discreet.torch.transformers.box_for": lambda _: slow_call(
        _models().model(), _models().tokenizer(), public="be", examples=["is better"], epsilon=1.0, tokens=1, temperature=1.0, measure="kl",
        public_model=None,
    ),
    "discreet.torch.transformers.generate": lambda _: slow_call(
        _models().model(), _models().tokenizer(), public="be", private="is better", epsilon=1.0, tokens=1, schedule=(), upper=None,
        delta=1e-6, budget=None, ledger=None, number=1, temperature=1.0, reference_temperature=1.0, top_k=None, top_p=None,
        public_model=None, together=False, model_name="", purpose="",
    ),
    "discreet.torch.transformers.load_model": lambda folder: call(_models().saved(folder / "model"), device="cpu", quiet=False),
}  # fmt: skip

METHODS: dict[str, tuple[Callable[..., Any], Call]] = {
    "nearest_member of laws": (dc.mechanisms.nearest_member, call(dc.Simplex(3), [0.5, 0.5, 0.0])),
    "output": (FINITE.output, call([1.0, 0.0, 0.0])),
    "output of a density": (CONTINUOUS.output, call(stats.norm())),
    "weights": (CONTINUOUS.weights, call(stats.norm())),
    "weights_on_atoms": (FINITE.weights_on_atoms, call([1.0, 0.0, 0.0])),
    "release": (CONTINUOUS.release, call(stats.norm(), rng=None)),
    "release_number": (CONTINUOUS.release_number, call(stats.norm(), rng=None)),
    "points": (CONTINUOUS.points, call(1, rng=None)),
    "risk": (CONTINUOUS.risk, call("kl")),
    "scale": (CONTINUOUS.scale, call(stats.norm())),
    "pdf": (LAW.pdf, call(0.0)),
    "relative": (LAW.relative, call(np.zeros((2, 1)))),
    "divergence": (LAW.divergence, call("kl")),
    "law": (LINE.law, call(records=[0.0], fit=None)),
    "cells": (LINE.cells, call(4)),
    "mixture": (LINE.mixture, call([1.0], [0.0])),
    **{
        f"to_samples of {type(domain).__name__}": (domain.to_samples, call(np.array([0, 1])))
        for domain in (dc.Numbers(3), dc.Labels(["a", "b"]), dc.Interval(0.0, 1.0, cells=4), Bins([0.0, 1.0, 2.0]))
    },
    **{
        f"allows of {type(notion).__name__}": (notion.allows, call(Fraction(1, 5), Fraction(1, 4)))
        for notion in (dc.Pure(1.0), dc.Approximate(1.0, delta=1e-6), dc.Gaussian(1.0), dc.Functional([(0, 1), (0.2, 0.2), (1, 0)]))
    },
    "from_parameters": (dc.TransportSampler.from_parameters, call(TRANSPORT.family, TRANSPORT.privacy, dict(TRANSPORT.parameters))),
}  # fmt: skip

_FEW = 9
SLOW_ROOMS = ("client", "collect", "design", "estimation", "plots", "research", "tables", "torch")
COMMANDS = {"discreet.cli.main"}  # reads the arguments of the process, and ends it


def resolved(name: str) -> Any:
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(module), member)


@pytest.mark.slow
def test_every_public_function_and_class_has_a_call() -> None:
    """A new public name cannot be forgotten here."""
    known = {id(resolved(name)) for name in [*CALLS, *COMMANDS]}
    missing = [
        f"{module}.{name}"
        for module in public_modules()
        for name, thing in public_callables(module).items()
        if id(thing) not in known and not is_record(thing) and not is_interface(thing)
    ]
    assert missing == []


def _slow(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.slow) if name.split(".")[1] in SLOW_ROOMS else name


@pytest.mark.parametrize("name", [_slow(name) for name in CALLS])
def test_every_argument_of_the_wrong_kind_is_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some wrong kinds are good names of files
    function, made = resolved(name), CALLS[name](tmp_path)
    documented = (inspect.getdoc(function) or "").partition("Raises:")[2]
    raised = errors_of(function, made)
    undocumented = {
        error.__name__ for error in raised if not any(f"\n    {kind.__name__}:" in documented for kind in error.__mro__)
    }
    assert undocumented == set(), "Raises: of its docstring does not name these"


@pytest.mark.parametrize("name", METHODS)
def test_every_argument_of_a_method_of_the_wrong_kind_is_told(name: str) -> None:
    errors_of(*METHODS[name])


def errors_of(function: Callable[..., Any], made: Call) -> set[type[dc.DiscreetError]]:
    """The kinds of our errors that wrong kinds of arguments raise; any other error fails the test."""
    names = list(inspect.signature(function).parameters)
    raised: set[type[dc.DiscreetError]] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(dc.DiscreetError) if made.refused else contextlib.nullcontext():
            function(*made.arguments, **made.options)
        for wrong in WRONG[:_FEW] if made.few else wide(WRONG, [*WRONG[:_FEW], FINITE, float("nan"), True, LAW]):
            for place in [*range(len(made.arguments)), *made.options]:
                name = names[place] if isinstance(place, int) else place
                if name in made.fixed or (name in made.slow_numbers and isinstance(wrong, int | float)):
                    continue
                arguments, options = list(made.arguments), dict(made.options)
                if isinstance(place, int):
                    arguments[place] = wrong
                else:
                    options[place] = wrong
                try:
                    function(*arguments, **options)
                except dc.DiscreetError as error:
                    raised.add(type(error))
    return raised


@pytest.mark.parametrize("kind", [dc.OptimalSampler, dc.LinearSampler, dc.MollifierSampler])
@pytest.mark.parametrize("wrong", [10, FINITE, dc.Simplex, dc.GaussianMixtures, PROFILE, LAW], ids=str)
def test_what_is_no_family_is_not_taken_for_one(kind: Any, wrong: Any) -> None:
    """A sampler has bounds too, and so has the class of a family."""
    with pytest.raises(dc.DiscreetError, match="is not a family; pass Simplex"):
        kind(wrong, epsilon=1.0)
    with pytest.raises(dc.DiscreetError, match="is not a family; pass Simplex"):
        dc.mechanisms.nearest_member(wrong, [0.5, 0.5])
