"""Hostile arguments for the methods of samplers, families, agreements, losses, ledgers and results, by a table of calls."""

import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import accounting, audit, estimation, families
from discreet.domain import Bins
from discreet.ledger import Budget, Ledger
from discreet.research import compare
from tests.fuzz.chooser import NUMBERS, WORDS, Chooser
from tests.fuzz.exact import DAYS

ID = "0" * 64


def _notion(c: Chooser) -> Any:
    return c.among([dc.Pure(1.0), dc.Pure(1.0), dc.Gaussian(1.0), dc.Approximate(1.0, delta=1e-6), None, 1.0, dc.Pure])


def _numbers(c: Chooser, below: int) -> Any:
    """Outcome numbers, mostly."""
    if c.below(4) == 0:
        return c.among(
            [[], None, 3, "01", [0.5], [-1], [10**400], [[0, 1], [1, 0]], np.array([True]), np.array(0), c.number()]
        )
    return np.array([c.below(below) for _ in range(c.below(4))], dtype=np.int64)


def _points(c: Chooser) -> Any:
    return c.among([0.3, [0.1, -5.0], [[0.1], [0.2]], np.zeros((2, 1)), [math.nan], [], None, "x", c.number()])


def _of_samplers(c: Chooser) -> Any:
    sampler = c.sampler()
    size = sampler.family.size
    calls: list[Callable[[], Any]] = [
        lambda: sampler.with_privacy(_notion(c)).output(np.full(size, 1.0 / size)),
        lambda: sampler.with_samples(c.among([2, 3, c.number()])).release(c.law(size)),
        lambda: np.asarray(sampler.release_number(c.law(size), constant_time=c.among([False, True, None]))),
        lambda: np.asarray(sampler.points(_numbers(c, size)), dtype=object).size,
        lambda: sampler.weights_on_atoms(c.law(size)),
        lambda: float(sampler.release_reference_number()),
        lambda: [sampler == c.sampler(), repr(sampler), sampler._repr_html_()],
        lambda: dc.Simplex(3).spread(c.among([2.0, c.number()])).size,
    ]
    return c.among(calls)()


def _of_transports(c: Chooser) -> Any:
    sampler = dc.TransportSampler([0.0, 1.0, 2.5], epsilon=c.among([0.5, 2.0]))
    calls: list[Callable[[], Any]] = [
        lambda: sampler.distance(c.law(3), c.law(3)),
        lambda: float(sampler.risk(c.among(WORDS))),
        lambda: sampler.with_privacy(_notion(c)).worst,
        lambda: dc.TransportSampler.from_parameters(
            c.among([dc.Simplex(3), dc.Simplex(2), None]), _notion(c), c.among([dict(sampler.parameters), {}, {"points": [0.0]}, None, 3])
        ).worst,
    ]  # fmt: skip
    return c.among(calls)()


def _of_joint_samplers(c: Chooser) -> Any:
    joint = dc.JointSampler(dc.Simplex(3), samples=2, epsilon=1.0, around=c.among(["envelope", "product"]))
    laws = c.law(3)
    calls: list[Callable[[], Any]] = [
        lambda: [joint.output(laws), joint.output_of_each(laws), joint.release(laws)],
        lambda: joint.points(c.among([_numbers(c, 6), joint.release_number(laws)])),
        lambda: float(joint.risk(c.among(WORDS))),
        lambda: joint.numbers_of_integers(c.among([None, laws]), c.among([np.array([0, 5]), np.array([-1]), [0], None, np.array([0.5])])),
    ]  # fmt: skip
    return c.among(calls)()


def _of_families(c: Chooser) -> Any:
    family = c.continuous_family()
    calls: list[Callable[[], Any]] = [
        lambda: float(family.contains(c.density())),
        lambda: family.log_reference(np.zeros((2, family.dim))),
        lambda: (
            dc.DensityBand.around(
                c.density(), c.among([None, (-1.0, 1.0), c.number()]), factor=c.among([2.0, c.number()])
            ).bounds
        ),
        lambda: dc.Mixture([1.0, 2.0], [0.1, -0.2]).interval_masses(np.array([-1.0, 0.0, 2.0])),
        lambda: families.Tabulated([0.0, 1.0, 2.0], [1.0, 2.0]).mass_between(np.array([0.5]), np.array([1.5])),
    ]
    return c.among(calls)()


def _drawn_without_privacy(law: Any, count: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.NotPrivateWarning)
        return law.sample(count)


def _of_output_laws(c: Chooser) -> Any:
    law = dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0, discretisation=dc.Cells(20)).output(
        c.among([dc.Mixture([1.0], [0.0]), c.density()])
    )
    assert isinstance(law, dc.mechanisms.OutputLaw)
    calls: list[Callable[[], Any]] = [
        lambda: law.pdf(_points(c)),
        lambda: law.relative(_points(c)),
        lambda: law.divergence(c.among(WORDS)),
        lambda: _drawn_without_privacy(law, c.among([0, 3, c.number()])),
        lambda: float(
            law.is_certainly_in(c.among([dc.GaussianMixtures(), dc.GaussianMixtures(2), dc.Simplex(3), None]))
        ),
    ]
    return c.among(calls)()


def _of_agreements(c: Chooser) -> Any:
    sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
    schedule = c.among([None, dc.agreement.Schedule("2026-01-01", "week")])
    made = dc.Agreement.of(sampler, rounds=4, schedule=schedule)
    joint = dc.Agreement.of(dc.JointSampler(dc.Simplex(3), samples=2, epsilon=1.0))
    calls: list[Callable[[], Any]] = [
        lambda: made.round_number(c.among([1, *DAYS, *NUMBERS])),
        lambda: [made.rounds_in_a_year, made.stated_purpose],
        lambda: made.check_record(c.among([made.id, made.id[:12], ID, *NUMBERS])),
        lambda: made.joint_sampler(),
        lambda: made.with_weights(c.among([b"", b"x", b"\x00" * 24, None, "x"])).id,
        lambda: joint.joint_sampler(c.among([None, dc.Simplex(3), dc.Simplex(2), 3])).samples,
    ]  # fmt: skip
    return c.among(calls)()


def _of_losses(c: Chooser) -> Any:
    number = c.number()
    gaussian = accounting.compose([(dc.Gaussian(0.5), 3)])
    found = audit.certificate_of([[1, 2], [2, 1]], epsilon=c.among([0.5, 1.0, number]))
    claim = audit.black_box_audit(lambda value, n: np.full(n, value), [0, 1], epsilon=c.among([0.5, number]), draws=200)
    calls: list[Callable[[], Any]] = [
        lambda: gaussian.delta(number),
        lambda: gaussian.epsilon(c.among([1e-6, number])),
        lambda: [found.holds, found.is_refuted, claim.is_refuted],
        lambda: dc.divergence(c.among(["kl", "tv", "chi2", "alpha:0.5", "renyi:2"])).f(
            c.among([0.0, 1.0, [0.5, 2.0], number])
        ),
    ]
    return c.among(calls)()


def _of_ledgers(c: Chooser) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger", Budget(epsilon=3.0))
        profile = accounting.BoxProfile(epsilon=1.0, alpha=0.5)
        agreement, number = c.among([ID, ID, "x", "", None, 3]), c.among([1, 2, 0, c.number()])
        draw: Any = c.among(
            [lambda: 3, lambda: 0, lambda: None, lambda: -1, lambda: "x", lambda: 10**30, lambda: 1.5, 3]
        )
        sample = ledger.charged_sample(
            agreement, round=number, profile=c.among([profile, profile, None, dc.Pure(1.0)]), draw=draw
        )
        assert sample == ledger.charged_sample(agreement, round=number, profile=profile, draw=lambda: 7)
        assert len(ledger.entries()) == 1
        sampler = dc.LinearSampler(dc.Simplex(3), epsilon=1.0)
        agreed = c.among([dc.Agreement.of(sampler), None, ID])
        return [sample, ledger.released_sample(c.among([sampler, None]), agreement=agreed, round=number)]


def _of_results(c: Chooser) -> Any:
    ways = estimation.ways_to_spend(dc.Simplex(3), samples=2, epsilon=1.0, clients=100)
    compared = compare(dc.Simplex(3), np.eye(3), divergences=["tv"], mechanisms=["optimal", "linear"])
    with tempfile.TemporaryDirectory() as folder:
        path = c.among([None, Path(folder) / "out", Path(folder) / "nowhere/out", Path(folder) / "\x00", 3])
        value = c.among(["mean", "largest", "x", None])
        calls: list[Callable[[], Any]] = [
            lambda: repr(ways.best(c.among(["population", "clients", "x", None, 3]))),
            lambda: compared.to_csv(path),
            lambda: compared.to_latex(path, value=value, digits=c.among([3, 0, c.number()])),
            lambda: compared.to_pgf(path, value=value, divergence=c.among([None, "tv", *WORDS, 3])),
            lambda: len(compared.frame()),
            lambda: Bins([0.0, 1.0, 4.0]).to_samples(
                c.among([np.array([c.below(2), c.below(2)]), [c.number()], c.number(), None])
            ),
            lambda: dc.Labels(["a", "b"]).outcome_numbers_of_labels(c.among([["a"], ["b", "x"], [[]], None, 3])),
        ]
        return c.among(calls)()


OWNERS: list[Callable[[Chooser], Any]] = [
    _of_samplers,
    _of_transports,
    _of_joint_samplers,
    _of_families,
    _of_output_laws,
    _of_agreements,
    _of_losses,
    _of_ledgers,
    _of_results,
]


def methods(c: Chooser) -> Any:
    """A method of something that is right, with arguments that may be wrong."""
    return c.among(OWNERS)(c)
