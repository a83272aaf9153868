"""Tables, picture, page and findings of designs, from records alone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.plots._style import save
from discreet.research._reports._designs import (
    design_cases,
    design_divergences_table,
    design_figure,
    design_findings,
    design_page,
    gain_by_kept_worst_case_table,
    shifted_clients_findings,
    shifted_clients_table,
)
from discreet.research.experiments import Header, RecordedRun
from discreet.research.experiments._designs import DesignedSplit, KeepResult, KeptAtBudget, ShiftedDesign
from tests.pictures import assert_picture

HEADER = Header("designs", "means", "0", 7, quick=True, parameters={})


def split(epsilon: float, number: int, designed: float, *, stays: bool = False) -> DesignedSplit:
    means = {
        name: dict.fromkeys(("kl", "tv", "hellinger"), 0.5) for name in ("optimal", "linear", "mollifier", "uniform")
    }
    means["designed"] = dict.fromkeys(("kl", "tv", "hellinger"), designed)
    return DesignedSplit(
        unit=f"rides/{epsilon:g}/{number}", set="rides", title="train rides", epsilon=epsilon, split=number, examples=20, served=80,
        parts=None if stays else (0.1, 0.0), means=means, floor=0.19, gap=2e-5, exact_gap=3e-5 if number == 0 else None, kept=0.004,
    )  # fmt: skip


ROWS = [split(1.0, 0, 0.2), split(1.0, 1, 0.21), split(8.0, 0, 0.5, stays=True), split(8.0, 1, 0.5, stays=True)]
KEEP = KeptAtBudget("rides/1", "rides", "train rides", 1.0, 0.5, 0.9, (KeepResult(0.9, 0.45, 0.95, 0.4496),))
SHIFT = ShiftedDesign(
    unit="east/1", shift="east", title="train rides", made_on="east", kind="west", epsilon=1.0, examples=40, served=80,
    means={"optimal": 0.5, "mollifier": 0.45, "uniform": 0.4, "elsewhere": 0.25, "home": 0.21}, floor=0.2,
)  # fmt: skip


def test_a_tie_is_no_win_and_all_splits_count() -> None:
    early, late = design_cases(ROWS)
    assert early.mean_divergence("designed", "kl") == pytest.approx(0.205)
    assert early.design_has_smallest_mean("kl")
    assert not late.design_has_smallest_mean("kl")
    assert late.count_of_splits_without_design == 2
    said = dict(design_findings(ROWS))
    assert "total variation 1" in said["The smallest mean."]
    assert "train rides at ε = 8" in said["The smallest mean."]
    assert "163% at worst" in said["Distance from the lower bound."]
    assert "3.0e-05 in the 2" in said["Certificates."]


def test_tables_hold_every_mean_and_floors_are_rounded_down() -> None:
    head, body = design_divergences_table(ROWS, "kl")
    assert head == ["set", "sampler", "ε = 1", "ε = 8"]
    assert ["", "designed", "0.205", "0.500"] in body
    floors = next(line for line in body if line[1] == "no sampler is below")
    assert all(float(cell) <= 0.19 for cell in floors[2:])
    assert gain_by_kept_worst_case_table([KEEP])[1] == [["train rides", "1", "0.500", "10.0% of at most 10.1%"]]
    assert shifted_clients_table([SHIFT])[1][0][-1] == "yes"


def test_it_is_said_where_a_design_stops_paying() -> None:
    worse = replace(SHIFT, shift="north", made_on="north", means={**SHIFT.means, "elsewhere": 0.8})
    said = dict(shifted_clients_findings([SHIFT, worse]))
    assert "75% to 75%" in said["Where a design made elsewhere pays."]
    assert "2.0 to 2.0 times" in said["Where it stops paying."]
    mixed = dict(shifted_clients_findings([SHIFT, replace(worse, shift="east", epsilon=4.0)]))
    assert "at ε = 1 only" in mixed["Where it depends."]


def test_the_page_stands_alone_and_the_picture_is_drawn(tmp_path: Path) -> None:
    designs, keeps, shifts = RecordedRun(HEADER, ROWS), RecordedRun(HEADER, [KEEP]), RecordedRun(HEADER, [SHIFT])
    page = design_page({"designs": designs, "keeps": keeps, "shifts": shifts}, {"designs": b"picture"})
    assert not re.findall(r"(?:src|href)='(?!data:)", page)
    for told in ("QUICK RUN", ">0.205<", "10.0% of at most 10.1%", ">0.250<"):
        assert told in page
    save(design_figure(designs), tmp_path / "designs.png")
    assert_picture(tmp_path / "designs.png")
