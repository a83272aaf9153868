"""Pictures and the page from records alone."""

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.plots._style import save
from discreet.research._boosted import Training
from discreet.research._reports import (
    STATISTICS,
    CostQuantiles,
    realised_epsilon_of_recorded_clients,
    recorded_client_costs,
)
from discreet.research._reports._paper import paper_figure, paper_findings, paper_page
from discreet.research.experiments import FIGURES, named_experiment, read_records, records_path, run_experiment
from discreet.research.experiments._paper_figures import MixtureClient, MixtureExperiment, MixtureLaw, RingExperiment
from tests.pictures import assert_picture
from tests.soaking import wide

TINY = Training(epochs=2, samples=100, batch=50, burn_in=5)


def tiny(name: str) -> Any:
    match name:
        case "fig1":
            return replace(RingExperiment(), is_quick=True, training=TINY)
        case "fig4":
            return replace(MixtureExperiment(), is_quick=True, clients=3, training=TINY)
        case _:
            return named_experiment(name, quick=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("records")
    found = {}
    for name in FIGURES:
        finished = run_experiment(tiny(name), folder)
        found[name] = read_records(records_path(tiny(name), folder), tiny(name).record_type)
        assert found[name] == finished
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(runs: dict[str, Any], name: str, tmp_path: Path) -> None:
    drawn = paper_figure(runs[name])
    for suffix in wide((".png", ".pdf"), (".pdf",) if name == "fig1" else (".png",)):
        save(drawn, tmp_path / f"{name}{suffix}")
        assert_picture(tmp_path / f"{name}{suffix}")
    said = " ".join(text.get_text() for text in drawn.texts)
    assert ("QUICK" in said) == (name in ("fig1", "fig4"))


@pytest.mark.slow
def test_the_page_stands_alone(runs: dict[str, Any]) -> None:
    page = paper_page(runs, dict.fromkeys(FIGURES, b"picture"))
    assert page.count("data:image/png;base64," + base64.b64encode(b"picture").decode()) == len(FIGURES)
    assert not re.findall(r"(?:src|href)='(?!data:)", page)
    assert "QUICK RUN" in page
    assert "4.522" in page
    assert "3.772" in page
    assert "0.496" in page
    for word in ("mean", "median", "90 %", "maximum", "published max"):
        assert f">{word}<" in page


@pytest.mark.slow
def test_findings_carry_their_numbers(runs: dict[str, Any]) -> None:
    told = " ".join(paper_findings(runs))
    rows = runs["fig4"].rows
    half = next(row for row in rows if row.unit == "1/0").laws["proposed"].costs["hellinger"]
    assert f"ours {half:.6f}" in told
    assert "ratio 2.0000" in told
    ours, theirs = recorded_client_costs(rows, 0.1, "proposed", "kl"), recorded_client_costs(rows, 0.1, "boosted", "kl")
    wins = f"At ε = 0.1 the boosted baseline has the better mean KL, {theirs.mean():.4f}"
    assert (wins in told) == (theirs.mean() < ours.mean())


def test_the_page_says_when_the_baseline_does_not_win(runs: dict[str, Any]) -> None:
    worse = []
    for row in runs["fig4"].rows:
        costs = {**row.laws["boosted"].costs, "kl": row.laws["proposed"].costs["kl"] + 1.0}
        worse.append(replace(row, laws={**row.laws, "boosted": replace(row.laws["boosted"], costs=costs)}))
    found = {"fig4": replace(runs["fig4"], rows=worse)}
    assert "boosted baseline has the better mean" not in " ".join(paper_findings(found))


def test_summaries_are_what_they_say() -> None:
    assert dict(zip(STATISTICS, CostQuantiles.from_values(np.arange(11.0)).as_tuple, strict=True)) == {
        "mean": 5.0,
        "median": 5.0,
        "90 %": 9.0,
        "maximum": 10.0,
    }
    logs = ((0.0, 1.0), (0.5, -1.0), (0.2, 0.0))
    rows = [MixtureClient("", 1.0, 0, 1, {"x": MixtureLaw({}, seconds=0.0, log_density=log)}) for log in logs]
    assert realised_epsilon_of_recorded_clients(rows, 1.0, "x") == 2.0
