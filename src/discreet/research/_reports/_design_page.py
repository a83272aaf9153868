"""Designs on real clients as one self-contained page: findings, a picture, and every mean behind them."""

import base64
import html

from discreet.plots._labels import divergence_label
from discreet.research._reports._designs import (
    design_findings,
    design_table,
    keep_table,
    shift_findings,
    shift_table,
)
from discreet.research._reports._pages import STYLE, html_table
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._design_keeps import KeptAtBudget
from discreet.research.experiments._design_shifts import ShiftedDesign
from discreet.research.experiments._designs import DesignedSplit
from discreet.research.experiments._records import RecordedRun


def design_page(
    designs: RecordedRun[DesignedSplit],
    keeps: RecordedRun[KeptAtBudget],
    shifts: RecordedRun[ShiftedDesign],
    picture: bytes,
) -> str:
    """The page; the picture is the PNG bytes of `design_figure`."""
    header = designs.header
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: designs</title>",
        f"<style>{STYLE}</style><h1>Designs for clients they have not seen</h1>",
        f"<p>By discreet {html.escape(header.version)}: {html.escape(header.computes)}.</p>",
    ]
    if header.quick:
        parts.append("<p class='quick'>QUICK RUN: few clients of each set, one split.</p>")
    said = [*design_findings(designs.rows), *shift_findings(shifts.rows)]
    parts += [
        "<h2>Findings</h2><ol>",
        *(f"<li><b>{html.escape(headline)}</b> {html.escape(text)}</li>" for headline, text in said),
        f"</ol><img alt='designs' src='data:image/png;base64,{base64.b64encode(picture).decode()}'>",
    ]
    for f in PAPER_DIVERGENCES:
        parts += [
            f"<h2>{html.escape(divergence_label(f))}, mean over clients that were not used</h2>",
            html_table(*design_table(designs.rows, f), texts=2, rule_on=None),
        ]
    parts += [
        "<h2>With the worst case kept</h2>",
        "<p class='quiet'>Gain in mean KL over Q*, of the most that any sampler could gain: proved.</p>",
        html_table(*keep_table(keeps.rows), rule_on=None),
        "<h2>Made on one kind of clients, serving another: mean KL</h2>",
        html_table(*shift_table(shifts.rows), rule_on=None),
    ]
    return "\n".join(parts) + "</html>\n"
