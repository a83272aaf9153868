"""Every public object shows itself in a short line; samplers and families show a small table in a notebook, with nothing unescaped."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet import accounting, audit, estimation
from discreet._base.showing import confidence_text, round_up_to_digits
from discreet.tables import Request

LABELS = [f"label number {i}" for i in range(500)]
SIMPLEX = dc.Simplex(LABELS)
UNEVEN = dc.Band(np.arange(1, 501), lower=0.5, upper=2.0, labels=LABELS)
LINEAR = dc.LinearSampler(SIMPLEX, epsilon=2.0)
LINE = dc.GaussianMixtures()
TABLE = dc.families.Tabulated([np.linspace(0.0, 1.0, 1001)], np.ones(1000))
WIDE = dc.LaplaceMixtures(dim=100, box=[(-4.0, 4.0)] * 100)
RECORDS = np.linspace(-1.0, 1.0, 300)


def population() -> estimation.Population:
    return estimation.population(LINEAR, counts=np.arange(500))


MADE: dict[str, Callable[[], Any]] = {
    "Simplex": lambda: SIMPLEX,
    "a long label": lambda: dc.Simplex(["x" * 100_000, "y"]),
    "Band": lambda: UNEVEN,
    "sampler": lambda: LINEAR,
    "box": lambda: dc.OptimalSampler(UNEVEN, epsilon=1.0).box,
    "lattice": lambda: dc.OptimalSampler(UNEVEN, epsilon=1.0).lattice,
    "constants": lambda: LINEAR.constants,
    "agreement": lambda: dc.Agreement.of(LINEAR, purpose="why " * 500),
    "population": population,
    "shares": lambda: population().law,
    "outcomes": lambda: population().domain,
    "inversion": lambda: estimation.inversion_of(LINEAR),
    "outlook": lambda: estimation.outlook(LINEAR, mechanism="linear", clients=1000),
    "certificate": lambda: audit.certificate(dc.OptimalSampler(dc.Simplex(20), epsilon=1.0), epsilon=1.0),
    "profile": lambda: accounting.profile_of(LINEAR),
    "privacy loss": lambda: accounting.compose([(accounting.profile_of(LINEAR), 50)]),
    "design": lambda: dc.design(dc.Simplex(9), epsilon=1.0, clients=np.full((3, 9), 1 / 9)),
    "boosted": lambda: dc.research.BoostedSampler(LINE, epsilon=1.0),
    "family": lambda: LINE,
    "family on a box": lambda: WIDE,
    "density band": lambda: dc.DensityBand(TABLE, lower=0.5, upper=2.0),
    "table": lambda: TABLE,
    "mixture": lambda: dc.Mixture(np.ones(500), np.zeros(500)),
    "histogram": lambda: LINE.law(records=RECORDS, fit=dc.families.HistogramFit()),
    "kernels": lambda: dc.DensityBand(stats.norm(), lower=0.5, upper=2.0).law(
        records=RECORDS, fit=dc.families.KernelFit()
    ),
    "outputs": lambda: dc.OptimalSampler(LINE, epsilon=1.0).output([stats.norm()] * 20),
    "cells": lambda: LINE.cells(1000),
    "nodes": lambda: LINE.nodes,
    "domain": lambda: dc.Labels(tuple(LABELS)),
    "request": lambda: Request(client="c", value="v", domain=LABELS, epsilon=1.0),
}


@pytest.mark.parametrize("name", MADE)
def test_no_line_is_long(name: str) -> None:
    shown = repr(MADE[name]())
    assert len(shown) <= 600
    assert "\n" not in shown
    assert "object at 0x" not in shown


def test_a_few_labels_are_shown_whole() -> None:
    assert repr(dc.Simplex(["red", "green"])) == "Simplex(['red', 'green'])"
    assert repr(SIMPLEX).endswith("'label number 5', ...], 500 outcomes)")


NASTY = "<script>alert(1)</script>\u202e"
SHOWN: list[Any] = [
    dc.Simplex(10),
    SIMPLEX,
    dc.Simplex([NASTY, "b"]),
    dc.Band([1, 2], lower=0.5, upper=1.5, labels=[NASTY, "b"]),
    LINE,
    WIDE,
    dc.DensityBand(TABLE, lower=0.5, upper=2.0),
    dc.OptimalSampler(dc.Simplex([NASTY, "b"]), epsilon=1.0),
    LINEAR,
    dc.MollifierSampler(LINE, epsilon=1.0),
]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: type(shown).__name__)
def test_a_notebook_shows_a_small_table(shown: Any) -> None:
    page = shown._repr_html_()
    assert len(page) < 2000
    assert type(shown).__name__ in page
    assert set(re.findall(r"<(\w+)", page)) == {"b", "table", "tr", "td"}
    assert "\u202e" not in page


def test_a_band_that_serves_everybody_shows_no_claim_about_clients() -> None:
    table = dc.families.Tabulated([0.0, 1.0, 2.0], [0.3, 0.7])
    for claiming, serving in (
        (dc.Band([1, 2], lower=0, upper=1.4), dc.Band([1, 2], lower=0, upper=1.4, any_client=True)),
        (dc.DensityBand(table, lower=0, upper=2), dc.DensityBand(table, lower=0, upper=2, any_client=True)),
    ):
        assert "the client distributions" in claiming._repr_html_()
        assert "most " in claiming._repr_html_()
        assert "it serves everybody" in serving._repr_html_()
        assert "the client distributions" not in serving._repr_html_()
        assert "most " not in serving._repr_html_()


@pytest.mark.parametrize(
    ("confidence", "said"),
    [(0.95, "95 %"), (0.9, "90 %"), (0.29, "29 %"), (0.9999999, "99.99999 %"), (1e-9, "0.0000001 %")],
)
def test_a_confidence_is_never_rounded(confidence: float, said: str) -> None:
    assert confidence_text(confidence) == said


@pytest.mark.parametrize(
    ("number", "digits", "rounded"),
    [(0.0, 2, 0.0), (0.1401, 2, 0.15), (0.1 + 0.2, 2, 0.3), (271.2, 3, 272.0), (1.21e8, 2, 1.3e8), (np.inf, 2, np.inf)],
)
def test_what_is_enough_is_rounded_up_but_for_the_noise_of_floats(number: float, digits: int, rounded: float) -> None:
    assert round_up_to_digits(number, digits) == rounded
