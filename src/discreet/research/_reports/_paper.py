"""The report on the paper's figures: pictures in the paper's layout, and one page with our numbers beside the published ones.

Everything is drawn from records: images, bars by budget in three panels, bars by outcome, then differences, run times and findings.

The published numbers are from the data files and the appendix "Instructions for Reproducing Results" of Park, Asoodeh, Lee, "Exactly
Minimax-Optimal Locally Differentially Private Sampling" (NeurIPS 2024), https://github.com/phy811/Optimal-LDP-Sampling. Their Hellinger is
half of the text's (1 - sqrt x)^2; it is doubled in `hellinger_from_published_half`, and nowhere else.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.plots import (
    COLOURS,
    INK,
    QUIET,
    Figure,
    divergence_label,
    empty_figure,
    using_library_style,
    write_panel_title,
)
from discreet.research._reports import (
    STATISTICS,
    CostQuantiles,
    Pictures,
    Runs,
    add_common_legend,
    draw_density_image,
    hellinger_from_published_half,
    html_page,
    html_table,
    picture_html,
    published_divergences_by_name,
    realised_epsilon_of_recorded_clients,
    recorded_client_costs,
    recorded_epsilons,
    recorded_mechanisms,
    set_figure_title,
    write_quick_run_mark,
)
from discreet.research.experiments import (
    EPSILONS,
    PAPER_DIVERGENCES,
    FiniteLaw,
    MixtureClient,
    RecordedRun,
    RingLaw,
    WorstCases,
)

RING_SCALE = 1.256399  # r_P of Figure 1 by their code, to a tolerance of 1e-5 in the mass
RING_SECONDS = {"proposed": 664.18, "boosted": 35.19}  # 10-core i9-9900X
MIXTURES_SECONDS = 3 * 3600 + 13 * 60 + 35  # five processes on that machine

# number of 100 clients for which the proposed mechanism has the smaller KL
BETTER_IN_KL = {0.1: 29, 0.5: 57, 1.0: 77, 2.0: 97, 5.0: 100}
MEAN_KL_AT_SMALLEST = {"proposed": 0.138, "boosted": 0.107}  # at epsilon = 0.1, where the baseline has the better mean


@dataclass(frozen=True)
class PublishedCosts:
    """One mechanism at one epsilon over 100 clients, by divergence. Hellinger is the text's."""

    maximum: dict[str, float]
    mean: dict[str, float]
    first_client: dict[str, float]  # the one client that the seed alone reproduces


_PUBLISHED_NUMBERS = (  # epsilon, mechanism; then largest, mean and first client
    (0.5, "proposed", (0.193913, 0.232253, 0.064814), (0.068177, 0.124382), (0.0079194239, 0.037429734, 0.002097856)),
    (0.5, "boosted", (0.455541, 0.366696, 0.107856), (0.090632, 0.138606), (0.0572969, 0.11891254, 0.012769437)),
    (1.0, "proposed", (0.105813, 0.150391, 0.035756), (0.034320, 0.071289), (0.051298214, 0.084864519, 0.016140039)),
    (1.0, "boosted", (0.433046, 0.357398, 0.102766), (0.099341, 0.148252), (0.12329085, 0.1952721, 0.03034182)),
    (
        2.0,
        "proposed",
        (0.022122, 0.036618, 0.007480),
        (0.003414, 0.011242),
        (1.6990612e-05, 0.00020090027, 5.4112438e-06),
    ),
    (2.0, "boosted", (0.347595, 0.321224, 0.083319), (0.074133, 0.128092), (0.0096620809, 0.047606946, 0.0022796115)),
)
PUBLISHED_MIXTURES = {
    (epsilon, mechanism): PublishedCosts(*(published_divergences_by_name(*row) for row in rows))
    for epsilon, mechanism, *rows in _PUBLISHED_NUMBERS
}

PAPER_LABELS = {
    "proposed": "proposed, Q*",
    "optimal": "proposed, Q*",
    "boosted": "boosted baseline, as published",
    "boosted_corrected": "boosted baseline, budget corrected",
    "mollifier": "mollifier, exact projection",
}
_FILL = {
    "proposed": COLOURS["optimal"],
    "optimal": COLOURS["optimal"],
    "boosted": COLOURS["mollifier"],
    "boosted_corrected": "#E69F00",
    "mollifier": COLOURS["linear"],
}
Bars = Mapping[str, Mapping[str, Sequence[float]]]  # heights by mechanism and divergence, one for each budget


def paper_figure(run: RecordedRun[Any]) -> Figure:
    """The figure that an experiment's records stand for."""
    with using_library_style():
        match run.rows[0]:
            case RingLaw():
                figure = _ring_figure(run.rows)
            case FiniteLaw():
                figure = _finite_mechanism_figure(run.rows)
            case MixtureClient():
                figure = _mixtures_figure(run.rows)
            case _:
                figure = _worst_cases_figure(run.rows)
        if run.header.quick and isinstance(run.rows[0], RingLaw | MixtureClient):
            write_quick_run_mark(figure, "QUICK RUN: not the paper's setting")
    return figure


def _ring_figure(rows: Sequence[RingLaw]) -> Figure:
    rows_by_unit = {row.unit: row for row in rows}
    titles = {
        "original": ("original", "the Gaussian ring"),
        "boosted": ("boosted, published", ""),
        "mollifier": ("mollifier, exact", ""),
        "proposed": ("Q*, published class", ""),
        "tight": ("Q*, tight class", ""),
    }
    names = [name for name in titles if name in rows_by_unit]
    figure = empty_figure(2.55 * len(names) + 0.6, 3.5)
    set_figure_title(figure, f"Figure 1: the Gaussian ring and what is sampled instead at ε = {rows[0].epsilon:g}")
    panels = figure.subplots(1, len(names), sharex=True, sharey=True)
    brightest = max(max(rows_by_unit[name].density) for name in names)
    for axes, name in zip(panels, names, strict=True):
        row = rows_by_unit[name]
        image = draw_density_image(axes, row.density, row.half_width, colours="plasma", brightest=brightest)
        subtitle = titles[name][1] or f"KL {row.costs['kl']:.4f}, TV {row.costs['tv']:.4f}"
        write_panel_title(axes, titles[name][0], subtitle)
    figure.colorbar(image, ax=list(panels), shrink=0.8, pad=0.01).outline.set_visible(False)
    return figure


def _finite_mechanism_figure(rows: Sequence[FiniteLaw]) -> Figure:
    figure = empty_figure(7.6, 4.2)
    axes = figure.subplots()
    law = rows[0].law
    positions = np.arange(len(law))
    blues = ("#0B4F8A", COLOURS["optimal"], "#7FB8DC", "#C3DDEF")
    series: list[tuple[str, Sequence[float], str]] = [("P, the client's distribution", law, COLOURS["held"])]
    series += [(f"Q*, ε = {row.epsilon:g}", row.optimal, blues[i % 4]) for i, row in enumerate(rows)]
    width = 0.8 / len(series)
    for i, (label, values, colour) in enumerate(series):
        axes.bar(positions - 0.4 + (i + 0.5) * width, values, 0.92 * width, color=colour, label=label)
    axes.axhline(1 / len(law), color=QUIET, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.annotate(
        "uniform",
        (positions[-1] + 0.45, 1 / len(law)),
        (0, 3),
        textcoords="offset points",
        ha="right",
        color=QUIET,
        fontsize=9,
    )
    axes.set_xticks(positions, [str(position + 1) for position in positions])
    axes.set_xlabel("outcome x")
    axes.set_ylabel("probability")
    axes.legend(frameon=False, ncols=2, loc="upper right", fontsize=9)
    write_panel_title(axes, "Figure 2: the optimal mechanism on five outcomes", "the smaller ε, the closer to uniform")
    return figure


def _worst_cases_figure(rows: Sequence[WorstCases]) -> Figure:
    number = {10: 3, 5: 5, 20: 6, 100: 7}.get(rows[0].outcomes, 0)
    bars = {
        name: {f: [row.risks[name][f] for row in rows] for f in PAPER_DIVERGENCES} for name in ("optimal", "mollifier")
    }
    labels = {"optimal": "proposed", "mollifier": "baseline (mollifier around uniform)"}
    title = f"Figure {number}: worst case over every distribution on k = {rows[0].outcomes} outcomes"
    return _divergence_bars_figure(title, [row.epsilon for row in rows], bars, labels, "worst-case divergence")


def _mixtures_figure(rows: Sequence[MixtureClient]) -> Figure:
    budgets, names = recorded_epsilons(rows), recorded_mechanisms(rows)
    bars = {
        name: {f: [recorded_client_costs(rows, e, name, f).max() for e in budgets] for f in PAPER_DIVERGENCES}
        for name in names
    }
    means = {
        name: {f: [recorded_client_costs(rows, e, name, f).mean() for e in budgets] for f in PAPER_DIVERGENCES}
        for name in names
    }
    clients = len(rows) // len(budgets)
    title = f"Figure 4: {clients} random Gaussian mixtures, the worst (bars) and the mean (dots)"
    return _divergence_bars_figure(title, budgets, bars, PAPER_LABELS, "divergence", means)


def _divergence_bars_figure(
    title: str, budgets: Sequence[float], bars: Bars, labels: dict[str, str], measure: str, dots: Bars | None = None
) -> Figure:
    figure = empty_figure(11.6, 3.9)
    set_figure_title(figure, title)
    panels = figure.subplots(1, 3)
    positions, names = np.arange(len(budgets)), list(bars)
    width = 0.8 / len(names)
    for axes, f in zip(panels, PAPER_DIVERGENCES, strict=True):
        for i, name in enumerate(names):
            x = positions - 0.4 + (i + 0.5) * width
            axes.bar(x, bars[name][f], 0.92 * width, color=_FILL[name], label=labels[name])
            if dots:
                axes.scatter(
                    x, dots[name][f], s=14, color="white", edgecolor=INK, linewidth=0.8, zorder=3, clip_on=False
                )
        write_panel_title(axes, divergence_label(f))
        axes.set_xticks(positions, [f"{epsilon:g}" for epsilon in budgets])
        axes.set_xlabel("privacy budget ε")
        axes.locator_params(axis="y", nbins=6)
    panels[0].set_ylabel(measure)
    add_common_legend(figure, panels[0])
    return figure


def paper_page(runs: Runs, pictures: Pictures) -> str:
    """The page, self-contained: pictures are PNG bytes by figure."""
    headers = [run.header for run in runs.values()]
    quick = any(header.quick for header in headers)
    parts = []
    for name, run in runs.items():
        rows = run.rows
        parts.append(
            f"<h2>{name.replace('fig', 'Figure ')}</h2><p class='quiet'>{html.escape(run.header.computes)}</p>"
        )
        parts.append(picture_html(pictures, name))
        match rows[0]:
            case RingLaw():
                parts += [_ring_html_table(rows)]
            case FiniteLaw():
                parts += [_output_law_html_table(rows)]
            case MixtureClient():
                parts += [
                    _client_costs_html_table(rows),
                    _first_client_costs_html_table(rows, quick),
                    _realised_budget_html_table(rows),
                    _run_time_text(rows, quick),
                ]
            case _:
                parts += [_worst_case_html_table(rows)]
    return html_page(
        "the paper reproduced",
        "The paper's figures, reproduced",
        "<em>Exactly Minimax-Optimal Locally Differentially Private Sampling</em> (Park, Asoodeh, Lee; NeurIPS 2024), "
        f"by discreet {html.escape(headers[0].version)}. Squared Hellinger is the text's (1 − √x)² throughout.",
        quick="fewer clients, less training. The finite figures are exact; the others not comparable."
        if quick
        else None,
        findings=paper_findings(runs),
        parts=parts,
    )


def paper_findings(runs: Runs) -> list[str]:
    """What these records say beyond the paper, each with its number."""
    findings = []
    if "fig4" in runs:
        findings += _mixture_findings(runs["fig4"].rows)
    if "fig1" in runs:
        findings += _ring_findings(runs["fig1"].rows)
    return findings


def _mixture_findings(rows: Sequence[MixtureClient]) -> list[str]:
    findings = [*_halved_hellinger_findings(rows)]
    if "boosted" in rows[0].laws:
        findings.append(_half_spent_budget_finding(rows))
    for epsilon in recorded_epsilons(rows):
        for name in ("boosted", "mollifier"):
            if name in rows[0].laws:
                findings += _baseline_wins_findings(rows, epsilon, name)
    return findings


def _halved_hellinger_findings(rows: Sequence[MixtureClient]) -> list[str]:
    first_clients = [row for row in rows if row.client == 0 and (row.epsilon, "proposed") in PUBLISHED_MIXTURES]
    if not first_clients:
        return []
    row = min(first_clients, key=lambda row: abs(row.epsilon - 1.0))
    ours = row.laws["proposed"].costs["hellinger"]
    theirs = PUBLISHED_MIXTURES[row.epsilon, "proposed"].first_client["hellinger"] / hellinger_from_published_half(1.0)
    return [
        "<b>The published Hellinger is halved.</b> The text defines (1 − √x)²; the published figures plot 1 − √x. "
        f"First client at ε = {row.epsilon:g}: ours {ours:.6f}, published {theirs:.6f}, ratio {ours / theirs:.4f}."
    ]


def _half_spent_budget_finding(rows: Sequence[MixtureClient]) -> str:
    budget = min(recorded_epsilons(rows), key=lambda epsilon: abs(epsilon - 1.0))
    row = next(row for row in rows if row.epsilon == budget)
    limit, largest = (
        row.laws["boosted"].largest_possible_log_ratio,
        realised_epsilon_of_recorded_clients(rows, budget, "boosted"),
    )
    text = (
        f"<b>The published baseline spends half its budget.</b> At ε = {budget:g} the largest possible log-ratio "
        f"between two clients' output distributions is {limit:.3f}; between these clients it reaches {largest:.3f}."
    )
    if "boosted_corrected" in row.laws:
        text += f" With the corrected bounds it can use {row.laws['boosted_corrected'].largest_possible_log_ratio:.3f}."
    return text


def _baseline_wins_findings(rows: Sequence[MixtureClient], epsilon: float, name: str) -> list[str]:
    ours, theirs = (
        recorded_client_costs(rows, epsilon, "proposed", "kl"),
        recorded_client_costs(rows, epsilon, name, "kl"),
    )
    if theirs.mean() >= ours.mean():
        return []
    label = {"boosted": "the boosted baseline", "mollifier": "the exact mollifier, which boosting stands in for,"}[name]
    text = (
        f"<b>Where a baseline wins.</b> At ε = {epsilon:g} {label} has the better mean KL, {theirs.mean():.4f} against "
        f"{ours.mean():.4f} (medians {np.median(theirs):.4f} and {np.median(ours):.4f}); the largest is {theirs.max():.4f} against "
        f"{ours.max():.4f}. The proposed mechanism has the best worst case over its class, not the best value on "
        f"these clients."
    )
    if name == "boosted" and epsilon == min(EPSILONS):
        published_means = MEAN_KL_AT_SMALLEST
        text += f" Published: {published_means['boosted']} against {published_means['proposed']}."
    return [text]


def _ring_findings(rows: Sequence[RingLaw]) -> list[str]:
    rows_by_unit = {row.unit: row for row in rows}
    loose, tight = rows_by_unit["proposed"], rows_by_unit["tight"]
    (kl, tv, worst), (tight_kl, tight_tv, tight_worst) = (
        (law.costs["kl"], law.costs["tv"], law.facts.worst_case["kl"]) for law in (loose, tight)
    )
    findings = [
        f"<b>The ring's class is loose.</b> The published envelope has c₂ = {loose.facts.c2:.3f} where {tight.facts.c2:.3f} is enough. "
        f"The tight class brings KL from {kl:.4f} to {tight_kl:.4f} and TV from {tv:.4f} to {tight_tv:.4f} "
        f"on the ring itself, and the worst-case KL over the class from {worst:.4f} to {tight_worst:.4f}."
    ]
    better = [
        name
        for name in ("mollifier", "boosted")
        if name in rows_by_unit and rows_by_unit[name].costs["kl"] < loose.costs["kl"]
    ]
    if better:
        numbers = ", ".join(f"{PAPER_LABELS[name]} {rows_by_unit[name].costs['kl']:.4f}" for name in better)
        findings.append(
            f"<b>On this one ring a baseline is closer in KL than the published Q*, {loose.costs['kl']:.4f}</b>: {numbers}. Q* is "
            "optimal for the worst client of its class; the ring lies near the baseline's reference."
        )
    return findings


def _client_costs_html_table(rows: Sequence[MixtureClient]) -> str:
    body: list[list[object]] = []
    for epsilon in recorded_epsilons(rows):
        for f in PAPER_DIVERGENCES:
            for name in recorded_mechanisms(rows):
                quantiles = CostQuantiles.from_values(recorded_client_costs(rows, epsilon, name, f))
                cells: list[object] = [
                    f"{epsilon:g} {divergence_label(f)}",
                    PAPER_LABELS[name],
                    *quantiles.as_tuple,
                ]
                published_costs = PUBLISHED_MIXTURES.get((epsilon, name))
                for ours, values in (
                    ((quantiles.maximum, published_costs.maximum), (quantiles.mean, published_costs.mean))
                    if published_costs
                    else ()
                ):
                    reference = values.get(f)
                    cells += [reference, ours - reference] if reference is not None else ["", ""]
                body.append(cells + [""] * (10 - len(cells)))
    clients = len(rows) // len(recorded_epsilons(rows))
    head = ["ε", "mechanism", *STATISTICS, "published max", "difference", "published mean", "difference"]
    wins = ", ".join(
        f"{int((recorded_client_costs(rows, e, 'proposed', 'kl') < recorded_client_costs(rows, e, 'boosted', 'kl')).sum())} at ε = {e:g} "
        f"(published {BETTER_IN_KL.get(e, '?')} of 100)"
        for e in recorded_epsilons(rows)
    )
    return (
        f"<p>{clients} clients for each ε. Only the first client is the published one: differences include noise.</p>"
        + html_table(head, body, texts=2)
        + f"<p>Clients of {clients} for which the proposed mechanism has a smaller KL than the boosted baseline: {wins}.</p>"
    )


def _first_client_costs_html_table(rows: Sequence[MixtureClient], quick: bool) -> str:
    body: list[list[object]] = []
    for row in rows:
        for name in ("proposed", "boosted"):
            published_costs = PUBLISHED_MIXTURES.get((row.epsilon, name))
            if row.client == 0 and published_costs:
                for f in PAPER_DIVERGENCES:
                    reference = published_costs.first_client[f]
                    body.append(
                        [
                            f"{row.epsilon:g}",
                            PAPER_LABELS[name],
                            divergence_label(f),
                            row.laws[name].costs[f],
                            reference,
                            f"{row.laws[name].costs[f] - reference:.1e}",
                        ]
                    )
    note = "" if not quick else " (the boosted one was trained less here)"
    return f"<h3>The first client, the same one as published{note}</h3>" + html_table(
        ["ε", "mechanism", "divergence", "ours", "published", "difference"], body, texts=3
    )


def _realised_budget_html_table(rows: Sequence[MixtureClient]) -> str:
    body: list[list[object]] = []
    for epsilon in recorded_epsilons(rows):
        for name in recorded_mechanisms(rows):
            possible = next(row.laws[name].largest_possible_log_ratio for row in rows if row.epsilon == epsilon)
            reach = epsilon if possible is None else possible
            body.append(
                [f"{epsilon:g}", PAPER_LABELS[name], reach, realised_epsilon_of_recorded_clients(rows, epsilon, name)]
            )
    return "<h3>The realised budget: largest log-ratio between two clients' output distributions</h3>" + html_table(
        ["ε", "mechanism", "can reach", "reached by these clients"], body, texts=2
    )


def _run_time_text(rows: Sequence[MixtureClient], quick: bool) -> str:
    seconds = {name: math.fsum(row.laws[name].seconds for row in rows) for name in recorded_mechanisms(rows)}
    times = ", ".join(f"{PAPER_LABELS[name]} {value:.1f} s" for name, value in seconds.items())
    less = " (this run trained less)" if quick else ""
    return (
        f"<p>Run time: {times}{less}. Published, everything: {MIXTURES_SECONDS:,} s in five processes on ten cores.</p>"
    )


def _ring_html_table(rows: Sequence[RingLaw]) -> str:
    body: list[list[object]] = []
    for row in rows:
        if row.costs:
            label = {"tight": "Q*, tight class", "proposed": "Q*, published class"}.get(row.unit) or PAPER_LABELS[
                row.unit
            ]
            facts = (row.facts.c2, row.facts.scale, row.facts.largest_possible_log_ratio)
            cost_cells = [row.costs[f] for f in PAPER_DIVERGENCES]
            fact_cells = ["" if fact is None else fact for fact in facts]
            body.append([label, *cost_cells, *fact_cells, f"{row.seconds:.2f}"])
    return (
        html_table(
            ["mechanism", *map(divergence_label, PAPER_DIVERGENCES), "c₂", "scale r", "can spend", "seconds"],
            body,
            rule_on=None,
        )
        + f"<p>Published scale with the published class: {RING_SCALE} (to a tolerance of 1e-5). Published run time: "
        f"{RING_SECONDS['proposed']:g} s for Q*, {RING_SECONDS['boosted']:g} s for the baseline.</p>"
    )


def _output_law_html_table(rows: Sequence[FiniteLaw]) -> str:
    body = [[f"{row.epsilon:g}", *row.optimal, row.scale] for row in rows]
    return html_table(["ε", *(f"Q*({x + 1})" for x in range(len(rows[0].law))), "scale r"], body)


def _worst_case_html_table(rows: Sequence[WorstCases]) -> str:
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
