"""The population experiment as one self-contained page: findings, pictures, and every number behind them."""

import base64
import html
from collections.abc import Mapping, Sequence

from discreet.plots._labels import divergence_label
from discreet.research._reports._contests import (
    REPORT_LABELS,
    RIVALS,
    SAMPLES,
    SHORT_LABELS,
    by_set,
    describe_set,
    mean_error,
)
from discreet.research._reports._pages import STYLE, html_table
from discreet.research._reports._population_findings import contest_table, fidelity_table, population_findings
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._population import SetAtBudget
from discreet.research.experiments._records import RecordedRun

_MEASURES = {"tv": "TV", "l2": "L2", "max": "largest"}


def population_page(run: RecordedRun[SetAtBudget], pictures: Mapping[str, bytes]) -> str:
    """The page; pictures are PNG bytes under the names of `population_figures`."""
    header, rows = run.header, run.rows
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: real clients</title>",
        f"<style>{STYLE}</style><h1>Real clients: samples and frequency oracles</h1>",
        f"<p>By discreet {html.escape(header.version)}: {html.escape(header.computes)}. "
        "Every domain is public and was written down beforehand.</p>",
    ]
    if header.quick:
        parts.append("<p class='quick'>QUICK RUN: few repetitions, so that more cases are undecided.</p>")
    parts.append("<h2>Findings</h2><ol>")
    parts += [
        f"<li><b>{html.escape(headline)}</b> {html.escape(text)}</li>" for headline, text in population_findings(rows)
    ]
    parts += ["</ol>", _image(pictures, "population"), html_table(*contest_table(rows), rule_on=None)]
    parts.append(
        "<p class='quiet'>TV error of the best kind of sample / of the best oracle, and who is closer by more than three standard "
        "errors. †: less than a tenth closer than the uniform law.</p>"
    )
    parts += [
        "<h3>Total variation of a client, mean (worst)</h3>",
        html_table(*fidelity_table(rows), texts=2, rule_on=None),
    ]
    for name, those in by_set(rows).items():
        parts += [
            f"<h2>{html.escape(describe_set(those[0]))}</h2>",
            f"<p class='quiet'>Domain: {html.escape(those[0].domain)}. Source: {html.escape(those[0].source)}.</p>",
            _image(pictures, f"population-{name}"),
            "<h3>From each client's law to the law it draws from</h3>",
            _cost_table(those),
            f"<h3>From the estimate to the average client's law, mean of {those[0].repetitions} repetitions</h3>",
            _error_table(those),
        ]
    return "\n".join(parts) + "</html>\n"


def _image(pictures: Mapping[str, bytes], name: str) -> str:
    return f"<img alt='{name}' src='data:image/png;base64,{base64.b64encode(pictures[name]).decode()}'>"


def _cost_table(rows: Sequence[SetAtBudget]) -> str:
    statistics = ("mean", "median", "worst", "worst possible")
    head = [
        "ε",
        "mechanism",
        *(f"{divergence_label(f)}, {said}" for f in PAPER_DIVERGENCES for said in statistics),
        "own",
    ]
    body: list[list[object]] = []
    for row in rows:
        for name in SAMPLES:
            costs = [row.realised[name][f] for f in PAPER_DIVERGENCES]
            told = [f"{value:.4f}" for cost in costs for value in (cost.mean, cost.median, cost.worst, cost.worst_case)]
            body.append([f"{row.epsilon:g}", SHORT_LABELS[name], *told, f"{row.own[name]:.1%}"])
    own = "<p class='quiet'>Own: the chance that the released outcome is one that the client holds.</p>"
    return html_table(head, body, texts=2) + own


def _error_table(rows: Sequence[SetAtBudget]) -> str:
    head = [
        "ε",
        "estimate",
        *(f"{said}, {kind}" for said in _MEASURES.values() for kind in ("raw", "projected")),
        "TV of bias",
    ]
    body: list[list[object]] = []
    for row in rows:
        for name in (*RIVALS, "raw"):
            told = [
                f"{mean_error(row, name, measure, projected=after):.4f}"
                for measure in _MEASURES
                for after in (False, True)
            ]
            bias = f"{row.bias[name]:.4f}" if name in ("optimal", "mollifier") else "0"
            body.append([f"{row.epsilon:g}", REPORT_LABELS[name], *told, bias])
        told = [f"{row.uniform[measure]:.4f}" for measure in _MEASURES for _ in range(2)]
        body.append([f"{row.epsilon:g}", "uniform, without data", *told, f"{row.uniform['tv']:.4f}"])
    return html_table(head, body, texts=2)
