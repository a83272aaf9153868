"""One page that holds everything: our figures inside, our numbers, the published ones, differences, run times, findings."""

import base64
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.plots._labels import divergence_label
from discreet.research import _published as published
from discreet.research._figures._paper import PAPER_LABELS
from discreet.research._reports._pages import STYLE, html_table
from discreet.research._reports._summaries import (
    STATISTICS,
    CostQuantiles,
    client_costs,
    realised_epsilon,
    recorded_epsilons,
    recorded_mechanisms,
)
from discreet.research.experiments._costs import PAPER_DIVERGENCES
from discreet.research.experiments._finite_figures import FiniteLaw, WorstCases
from discreet.research.experiments._mixtures import MixtureClient
from discreet.research.experiments._records import RecordedRun
from discreet.research.experiments._ring import RingLaw

Runs = Mapping[str, RecordedRun[Any]]  # by figure


def report_page(runs: Runs, pictures: Mapping[str, bytes]) -> str:
    """The page, self-contained: pictures are PNG bytes by figure."""
    headers = [run.header for run in runs.values()]
    quick = any(header.quick for header in headers)
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: the paper reproduced</title>",
        f"<style>{STYLE}</style><h1>The paper's figures, reproduced</h1>",
        "<p><em>Exactly Minimax-Optimal Locally Differentially Private Sampling</em> (Park, Asoodeh, Lee; NeurIPS 2024), "
        f"by discreet {html.escape(headers[0].version)}. Squared Hellinger is the text's (1 − √x)² throughout.</p>",
    ]
    if quick:
        parts.append(
            "<p class='quick'>QUICK RUN: fewer clients, less training. The finite figures are exact; the others not comparable.</p>"
        )
    parts.append("<h2>Findings</h2><ol>" + "".join(f"<li>{finding}</li>" for finding in paper_findings(runs)) + "</ol>")
    for name, run in runs.items():
        rows = run.rows
        picture = base64.b64encode(pictures[name]).decode()
        parts.append(
            f"<h2>{name.replace('fig', 'Figure ')}</h2><p class='quiet'>{html.escape(run.header.computes)}</p>"
        )
        parts.append(f"<img alt='{name}' src='data:image/png;base64,{picture}'>")
        match rows[0]:
            case RingLaw():
                parts += [_ring_table(rows)]
            case FiniteLaw():
                parts += [_law_table(rows)]
            case MixtureClient():
                parts += [
                    _cost_table(rows),
                    _first_client_table(rows, quick),
                    _budget_table(rows),
                    _time_line(rows, quick),
                ]
            case _:
                parts += [_worst_case_table(rows)]
    return "\n".join(parts) + "</html>\n"


def paper_findings(runs: Runs) -> list[str]:
    """What these records say beyond the paper, each with its number."""
    found = []
    if "fig4" in runs:
        found += _mixture_findings(runs["fig4"].rows)
    if "fig1" in runs:
        found += _ring_findings(runs["fig1"].rows)
    return found


def _mixture_findings(rows: Sequence[MixtureClient]) -> list[str]:
    said = [*_halved_hellinger(rows)]
    if "boosted" in rows[0].laws:
        said.append(_half_spent_budget(rows))
    for epsilon in recorded_epsilons(rows):
        for name in ("boosted", "mollifier"):
            if name in rows[0].laws:
                said += _where_a_baseline_wins(rows, epsilon, name)
    return said


def _halved_hellinger(rows: Sequence[MixtureClient]) -> list[str]:
    known = [row for row in rows if row.client == 0 and (row.epsilon, "proposed") in published.MIXTURES]
    if not known:
        return []
    row = min(known, key=lambda row: abs(row.epsilon - 1.0))
    ours = row.laws["proposed"].costs["hellinger"]
    theirs = published.MIXTURES[row.epsilon, "proposed"].first_client["hellinger"] / published.text_hellinger(1.0)
    return [
        "<b>The published Hellinger is halved.</b> The text defines (1 − √x)²; the published figures plot 1 − √x. "
        f"First client at ε = {row.epsilon:g}: ours {ours:.6f}, published {theirs:.6f}, ratio {ours / theirs:.4f}."
    ]


def _half_spent_budget(rows: Sequence[MixtureClient]) -> str:
    at = min(recorded_epsilons(rows), key=lambda epsilon: abs(epsilon - 1.0))
    row = next(row for row in rows if row.epsilon == at)
    spent, reached = row.laws["boosted"].largest_possible_log_ratio, realised_epsilon(rows, at, "boosted")
    said = (
        f"<b>The published baseline spends half its budget.</b> At ε = {at:g} the largest log-ratio between two clients' laws "
        f"that it can ever reach is {spent:.3f}; between these clients it reaches {reached:.3f}."
    )
    if "boosted_corrected" in row.laws:
        said += f" With the corrected bounds it can use {row.laws['boosted_corrected'].largest_possible_log_ratio:.3f}."
    return said


def _where_a_baseline_wins(rows: Sequence[MixtureClient], epsilon: float, name: str) -> list[str]:
    ours, theirs = client_costs(rows, epsilon, "proposed", "kl"), client_costs(rows, epsilon, name, "kl")
    if theirs.mean() >= ours.mean():
        return []
    whose = {"boosted": "the boosted baseline", "mollifier": "the exact mollifier, which boosting stands in for,"}[name]
    said = (
        f"<b>Where a baseline wins.</b> At ε = {epsilon:g} {whose} has the better mean KL, {theirs.mean():.4f} against "
        f"{ours.mean():.4f} (medians {np.median(theirs):.4f} and {np.median(ours):.4f}); the largest is {theirs.max():.4f} against "
        f"{ours.max():.4f}. The proposed law promises the best worst case over its class, not the best value on these clients."
    )
    if name == "boosted" and epsilon == min(published.EPSILONS):
        cited = published.MEAN_KL_AT_SMALLEST
        said += f" Published: {cited['boosted']} against {cited['proposed']}."
    return [said]


def _ring_findings(rows: Sequence[RingLaw]) -> list[str]:
    found = {row.unit: row for row in rows}
    loose, tight = found["proposed"], found["tight"]
    (kl, tv, worst), (tight_kl, tight_tv, tight_worst) = (
        (law.costs["kl"], law.costs["tv"], law.facts.worst_case["kl"]) for law in (loose, tight)
    )
    said = [
        f"<b>The ring's class is loose.</b> The published envelope has c₂ = {loose.facts.c2:.3f} where {tight.facts.c2:.3f} is enough. "
        f"The tight class brings KL from {kl:.4f} to {tight_kl:.4f} and TV from {tv:.4f} to {tight_tv:.4f} "
        f"on the ring itself, and the worst-case KL over the class from {worst:.4f} to {tight_worst:.4f}."
    ]
    better = [
        name for name in ("mollifier", "boosted") if name in found and found[name].costs["kl"] < loose.costs["kl"]
    ]
    if better:
        numbers = ", ".join(f"{PAPER_LABELS[name]} {found[name].costs['kl']:.4f}" for name in better)
        said.append(
            f"<b>On this one ring a baseline is closer in KL than the published Q*, {loose.costs['kl']:.4f}</b>: {numbers}. Q* is "
            "optimal for the worst client of its class; the ring lies near the baseline's reference."
        )
    return said


def _cost_table(rows: Sequence[MixtureClient]) -> str:
    body: list[list[object]] = []
    for epsilon in recorded_epsilons(rows):
        for f in PAPER_DIVERGENCES:
            for name in recorded_mechanisms(rows):
                told = CostQuantiles.of(client_costs(rows, epsilon, name, f))
                line: list[object] = [
                    f"{epsilon:g} {divergence_label(f)}",
                    PAPER_LABELS[name],
                    *told.numbers,
                ]
                cited = published.MIXTURES.get((epsilon, name))
                for ours, values in ((told.maximum, cited.maximum), (told.mean, cited.mean)) if cited else ():
                    known = values.get(f)
                    line += [known, ours - known] if known is not None else ["", ""]
                body.append(line + [""] * (10 - len(line)))
    clients = len(rows) // len(recorded_epsilons(rows))
    head = ["ε", "mechanism", *STATISTICS, "published max", "difference", "published mean", "difference"]
    wins = ", ".join(
        f"{int((client_costs(rows, e, 'proposed', 'kl') < client_costs(rows, e, 'boosted', 'kl')).sum())} at ε = {e:g} "
        f"(published {published.BETTER_IN_KL.get(e, '?')} of 100)"
        for e in recorded_epsilons(rows)
    )
    return (
        f"<p>{clients} clients for each ε. The published clients are others, all but the first: differences hold noise.</p>"
        + html_table(head, body, texts=2)
        + f"<p>Clients of {clients} for whom the proposed law has a smaller KL than the boosted baseline: {wins}.</p>"
    )


def _first_client_table(rows: Sequence[MixtureClient], quick: bool) -> str:
    body: list[list[object]] = []
    for row in rows:
        for name in ("proposed", "boosted"):
            cited = published.MIXTURES.get((row.epsilon, name))
            if row.client == 0 and cited:
                for f in PAPER_DIVERGENCES:
                    known = cited.first_client[f]
                    body.append(
                        [
                            f"{row.epsilon:g}",
                            PAPER_LABELS[name],
                            divergence_label(f),
                            row.laws[name].costs[f],
                            known,
                            f"{row.laws[name].costs[f] - known:.1e}",
                        ]
                    )
    note = "" if not quick else " (the boosted one was trained less here)"
    return f"<h3>The first client, the same one as published{note}</h3>" + html_table(
        ["ε", "mechanism", "divergence", "ours", "published", "difference"], body, texts=3
    )


def _budget_table(rows: Sequence[MixtureClient]) -> str:
    body: list[list[object]] = []
    for epsilon in recorded_epsilons(rows):
        for name in recorded_mechanisms(rows):
            possible = next(row.laws[name].largest_possible_log_ratio for row in rows if row.epsilon == epsilon)
            reach = epsilon if possible is None else possible
            body.append([f"{epsilon:g}", PAPER_LABELS[name], reach, realised_epsilon(rows, epsilon, name)])
    return "<h3>The budget that is really spent: largest log-ratio between two clients' laws</h3>" + html_table(
        ["ε", "mechanism", "can reach", "reached by these clients"], body, texts=2
    )


def _time_line(rows: Sequence[MixtureClient], quick: bool) -> str:
    seconds = {name: math.fsum(row.laws[name].seconds for row in rows) for name in recorded_mechanisms(rows)}
    told = ", ".join(f"{PAPER_LABELS[name]} {value:.1f} s" for name, value in seconds.items())
    less = " (this run trained less)" if quick else ""
    return f"<p>Run time: {told}{less}. Published, everything: {published.MIXTURES_SECONDS:,} s in five processes on ten cores.</p>"


def _ring_table(rows: Sequence[RingLaw]) -> str:
    body: list[list[object]] = []
    for row in rows:
        if row.costs:
            label = {"tight": "Q*, tight class", "proposed": "Q*, published class"}.get(row.unit) or PAPER_LABELS[
                row.unit
            ]
            facts = (row.facts.c2, row.facts.scale, row.facts.largest_possible_log_ratio)
            costs_told = [row.costs[f] for f in PAPER_DIVERGENCES]
            facts_told = ["" if fact is None else fact for fact in facts]
            body.append([label, *costs_told, *facts_told, f"{row.seconds:.2f}"])
    return (
        html_table(
            ["mechanism", *map(divergence_label, PAPER_DIVERGENCES), "c₂", "scale r", "can spend", "seconds"],
            body,
            rule_on=None,
        )
        + f"<p>Published scale with the published class: {published.RING_SCALE} (to a tolerance of 1e-5). Published run time: "
        f"{published.RING_SECONDS['proposed']:g} s for Q*, {published.RING_SECONDS['boosted']:g} s for the baseline.</p>"
    )


def _law_table(rows: Sequence[FiniteLaw]) -> str:
    body = [[f"{row.epsilon:g}", *row.optimal, row.scale] for row in rows]
    return html_table(["ε", *(f"Q*({x + 1})" for x in range(len(rows[0].law))), "scale r"], body)


def _worst_case_table(rows: Sequence[WorstCases]) -> str:
    body = [
        [
            f"{row.epsilon:g}",
            divergence_label(f),
            row.risks["optimal"][f],
            row.risks["mollifier"][f],
            row.risks["mollifier"][f] - row.risks["optimal"][f],
        ]
        for row in rows
        for f in PAPER_DIVERGENCES
    ]
    note = "" if not body else "<p class='quiet'>The published bars of squared Hellinger are half of these.</p>"
    return html_table(["ε", "divergence", "proposed", "baseline", "difference"], body, texts=2) + note
