"""The report on the follow-up paper: tables, findings, pictures and their page, read from the records.

The pictures show minimax values, random mixtures, four Laplace distributions in the plane, and ordered outcomes of real clients. The
published numbers are those that the scripts of Ghoukasian, Lee, Asoodeh, "Locally Optimal Private Sampling: Beyond the Global Minimax"
(NeurIPS 2025) compute, https://github.com/hradghoukasian/private_sampling, with their Hellinger distance doubled
(`hellinger_from_published_half`).
"""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.plots import (
    COLOURS,
    QUIET,
    Axes,
    Figure,
    divergence_label,
    empty_figure,
    using_library_style,
    write_panel_title,
)
from discreet.research import _reports as reports
from discreet.research._reports import (
    Finding,
    Pictures,
    Runs,
    Table,
    hellinger_from_published_half,
    published_divergences_by_name,
)
from discreet.research.experiments import (
    ORDERED_MECHANISMS,
    PAPER_DIVERGENCES,
    ClassAtBudget,
    FiniteClasses,
    MixtureClasses,
    OrderedSet,
    PlaneLaw,
)

PUBLISHED_FINITE = {  # minimax values on ten outcomes, by notion, budget and class
    ("pure", 1.0, "global"): published_divergences_by_name(1.46115, 0.76803, 0.51837),
    ("pure", 1.0, "local"): published_divergences_by_name(0.32717, 0.39539, 0.08599),
    ("gaussian", 1.0, "global"): published_divergences_by_name(1.1117, 0.6710, 0.42642),
    ("gaussian", 1.0, "local"): published_divergences_by_name(0.24504, 0.34072, 0.06499),
}
PUBLISHED_LAPLACE = {  # the largest of a hundred Laplace mixtures on the line, by notion, budget, class and mechanism
    ("pure", 1.0, "global", "projection"): published_divergences_by_name(0.16180, 0.27251, 0.04166),
    ("pure", 1.0, "local", "projection"): published_divergences_by_name(0.07369, 0.17950, 0.01916),
    ("gaussian", 1.0, "local", "linear"): {"kl": 0.0767},
}
ORDERED_LABELS = {"transport": "transport", "optimal": "Q*", "mollifier": "mollifier", "laplace": "Laplace, clamped"}


def minimax_values_table(rows: Sequence[FiniteClasses], outcomes: int) -> Table:
    """Minimax values on that many outcomes, by the published calibration (none if its weight is 1 or more) and by ours."""
    head = [
        "notion",
        "class",
        *(f"{divergence_label(f)}, {whose}" for f in PAPER_DIVERGENCES for whose in ("theirs", "ours")),
    ]
    body = []
    for row in rows:
        if row.outcomes == outcomes:
            for name, comparison in row.classes.items():
                values = [
                    value
                    for f in PAPER_DIVERGENCES
                    for value in (comparison.published_minimax.get(f), comparison.minimax.get(f))
                ]
                body.append([_notion_label(row), name, *map(_five_digits_text, values)])
    return head, body


def mixture_divergences_table(rows: Sequence[MixtureClasses], divergence: str = "kl") -> Table:
    """The largest and the mean divergence of random mixtures: the published linear mechanism, the projection, and clients that are worse
    off.
    """
    head = ["clients", "notion", "class", "linear, largest", "projection, largest", "linear, mean", "projection, mean"]
    body = []
    for row in rows:
        for name, comparison in row.classes.items():
            costs = comparison.pointwise[divergence]
            numbers = (costs.linear, costs.projection, costs.linear_mean, costs.projection_mean)
            body.append(
                [
                    row.title,
                    _notion_label(row),
                    name,
                    *map(_five_digits_text, numbers),
                    _projection_worse_count_text(comparison),
                ]
            )
    return [*head, "worse off, by any f"], body


def published_numbers_table(finite: Sequence[FiniteClasses], mixtures: Sequence[MixtureClasses]) -> Table:
    """Every published number beside ours; the Hellinger distance halved, as published."""
    body = []
    for row in finite:
        for name, comparison in row.classes.items() if row.outcomes == 10 else ():
            published_values = PUBLISHED_FINITE.get((row.kind, row.budget, name), {})
            body += _rows_of_our_and_published_numbers(
                ["10 outcomes, minimax", _notion_label(row), name], published_values, comparison.minimax
            )
    for mixture in mixtures:
        for name, comparison in mixture.classes.items() if mixture.shape == "laplace" else ():
            for mechanism in ("projection", "linear"):
                published_values = PUBLISHED_LAPLACE.get((mixture.kind, mixture.budget, name, mechanism), {})
                ours = {f: getattr(costs, mechanism) for f, costs in comparison.pointwise.items()}
                case = f"largest of {comparison.clients} mixtures, {mechanism}"
                body += _rows_of_our_and_published_numbers([case, _notion_label(mixture), name], published_values, ours)
    return ["what", "notion", "class", "divergence", "published", "ours"], body


def _rows_of_our_and_published_numbers(
    case: list[str], published_values: Mapping[str, float], ours: Mapping[str, float]
) -> list[list[str]]:
    lines = []
    for f, value in published_values.items():
        divisor = hellinger_from_published_half(1.0) if f == "hellinger" else 1.0
        label = f"half {divergence_label(f)}" if f == "hellinger" else divergence_label(f)
        lines.append([*case, label, f"{value / divisor:.6g}", _five_digits_text(ours[f] / divisor)])
    return lines


def ordered_distances_table(rows: Sequence[OrderedSet]) -> Table:
    """Mean distances in the unit of each set; in brackets the worst client with a single outcome."""
    head = ["set", "ε", *(ORDERED_LABELS[name] for name in ORDERED_MECHANISMS), "no sampler below"]
    body = []
    for row in rows:
        cells = [
            f"{row.distances[name].mean:.4g} ({row.distances[name].single_outcome:.4g})" for name in ORDERED_MECHANISMS
        ]
        body.append([f"{row.title}, {row.measure}", f"{row.epsilon:g}", *cells, f"({row.certified:.4g})"])
    return head, body


def follow_up_findings(runs: Runs) -> list[Finding]:
    """What these records say, each with its number: a headline and a sentence."""
    finite, mixtures = runs["local_finite"].rows, runs["local_mixtures"].rows
    classes = _class_comparisons_of_rows((*finite, *mixtures))
    comparison_count = sum(comparison.clients * len(comparison.pointwise) for comparison in classes)
    worse_count = sum(costs.worse for comparison in classes for costs in comparison.pointwise.values())
    excess = max(costs.excess for comparison in classes for costs in comparison.pointwise.values())
    findings = [
        (
            "The projection is never worse than the published linear mechanism."
            if not worse_count
            else "The projection is worse somewhere.",
            f"In {comparison_count:,} comparisons (client, divergence, class, notion) it is worse in {worse_count}; the largest "
            f"excess is {max(excess, 0.0):.1e}, which is rounding.",
        )
    ]
    ratios = [
        costs.projection / costs.linear
        for comparison in _class_comparisons_of_rows(mixtures)
        if (costs := comparison.pointwise["kl"]).linear > 1e-6
    ]
    findings.append(
        (
            "The gain.",
            f"The largest KL of the random mixtures is {min(ratios):.2f} to {max(ratios):.2f} times the linear "
            f"mechanism's, with median "
            f"{sorted(ratios)[len(ratios) // 2]:.2f}.",
        )
    )
    gaps = [
        _largest_minimax_gap_of_calibrations(comparison)
        for row in finite
        for name, comparison in row.classes.items()
        if name != "wide" and comparison.published_minimax
    ]
    wide_cases = [(row, row.classes["wide"]) for row in finite if row.kind == "gaussian"]
    row, case = max(wide_cases, key=lambda pair: pair[1].weight / pair[1].published_weight)
    findings.append(
        (
            "Both calibrations give one minimax value.",
            f"The published infimum over beta and the two corners of the trade-off function give values that differ by "
            f"at most {max(gaps):.1e} (relative) on outcomes.",
        )
    )
    findings.append(
        (
            "Except for clients spread over more than half of the space.",
            f"There the published weight is smaller than the notion allows. On {row.outcomes} outcomes under {row.notion} it is "
            f"{case.published_weight:.4f}, and {case.weight:.4f} is allowed. The worst KL is {case.published_minimax['kl']:.5f} instead of "
            f"{case.minimax['kl']:.5f}.",
        )
    )
    laws = [row for row in runs["local_plane"].rows if row.published_weight is not None and row.published_weight > 1.0]
    if laws:
        findings.append(
            (
                "A weight above 1.",
                f"In the picture of the plane the published calibration gives the local class under {laws[0].notion} the weight "
                f"{laws[0].published_weight:.4f}, which is not a mixture. We cap it at 1: a raw draw is then allowed, and nothing is lost.",
            )
        )
    findings += _ordered_findings(runs["ordered"].rows)
    return findings


def follow_up_page(runs: Runs, pictures: Pictures) -> str:
    """The page, self-contained; pictures are PNG bytes by experiment."""
    finite, mixtures, ordered_rows = (runs[name].rows for name in ("local_finite", "local_mixtures", "ordered"))
    quick = runs["ordered"].header.quick  # published maxima are over a hundred mixtures: fewer have smaller ones
    parts = [
        "<h2>Published numbers</h2>",
        reports.html_table(*published_numbers_table(finite, [] if quick else mixtures), texts=4),
        "<h2>Finite spaces</h2>",
        reports.picture_html(pictures, "local_finite"),
    ]
    for outcomes in sorted({row.outcomes for row in finite}):
        parts += [
            f"<h3>{outcomes} outcomes, minimax values</h3>",
            reports.html_table(*minimax_values_table(finite, outcomes), texts=2),
        ]
    parts += ["<h2>Random mixtures</h2>", reports.picture_html(pictures, "local_mixtures")]
    for f in PAPER_DIVERGENCES:
        parts += [
            f"<h3>{divergence_label(f)}</h3>",
            reports.html_table(*mixture_divergences_table(mixtures, f), texts=3),
        ]
    parts += [
        "<h2>Four Laplace laws in the plane</h2>",
        reports.picture_html(pictures, "local_plane"),
        _plane_divergences_html_table(runs["local_plane"].rows),
    ]
    parts += [
        "<h2>Ordered outcomes of real clients</h2>",
        reports.picture_html(pictures, "ordered"),
        reports.html_table(*ordered_distances_table(ordered_rows)),
    ]
    return reports.html_page(
        "the follow-up reproduced",
        "The follow-up's figures, theirs and ours",
        "<em>Locally Optimal Private Sampling: Beyond the Global Minimax</em> (Ghoukasian, Lee, Asoodeh; NeurIPS 2025), "
        f"by discreet {html.escape(runs['ordered'].header.version)}. Squared Hellinger is the text's (1 − √x)²; the published code "
        "prints half.",
        quick="fewer clients, budgets and shapes." if quick else None,
        findings=reports.findings_as_html_items(follow_up_findings(runs)),
        parts=parts,
    )


def _plane_divergences_html_table(rows: Sequence[PlaneLaw]) -> str:
    body = [
        [row.notion, row.family, row.mechanism, *(_five_digits_text(row.costs[f]) for f in PAPER_DIVERGENCES)]
        for row in rows
        if row.costs
    ]
    return reports.html_table(
        ["notion", "class", "mechanism", *map(divergence_label, PAPER_DIVERGENCES)], body, texts=3
    )


def _class_comparisons_of_rows(rows: Iterable[FiniteClasses | MixtureClasses]) -> list[ClassAtBudget]:
    return [comparison for row in rows for comparison in row.classes.values()]


def _largest_minimax_gap_of_calibrations(comparison: ClassAtBudget) -> float:
    """The largest relative difference between minimax values by the two calibrations."""
    return max(
        abs(value - comparison.minimax[f]) / comparison.minimax[f] for f, value in comparison.published_minimax.items()
    )


def _projection_worse_count_text(comparison: ClassAtBudget) -> str:
    """The number of clients and divergences for which the projection is worse."""
    return f"{sum(costs.worse for costs in comparison.pointwise.values())} of {comparison.clients * len(comparison.pointwise)}"


def _notion_label(row: FiniteClasses | MixtureClasses) -> str:
    return row.notion if row.kind != "functional" else f"Laplace trade-off, μ = {row.budget:g}"


def _five_digits_text(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _ordered_findings(rows: Sequence[OrderedSet]) -> list[tuple[str, str]]:
    """The mechanism with the smallest mean distance, budget by budget, and with the smallest worst case."""
    lines = []
    for epsilon in sorted({row.epsilon for row in rows}):
        nearest = [_mechanism_with_smallest_distance(row, "mean") for row in rows if row.epsilon == epsilon]
        counts = ", ".join(
            f"{ORDERED_LABELS[name]} on {nearest.count(name)}" for name in ORDERED_MECHANISMS if name in nearest
        )
        lines.append(f"ε = {epsilon:g}: {counts} of {len(nearest)} sets")
    worst = sum(_mechanism_with_smallest_distance(row, "single_outcome") == "transport" for row in rows)
    return [
        (
            f"Ordered data: the transport sampler has the smallest worst case in {worst} of {len(rows)}; the mean depends on the budget.",
            f"Smallest mean distance: {'; '.join(lines)}.",
        )
    ]


def _mechanism_with_smallest_distance(row: OrderedSet, statistic: str) -> str:
    return min(ORDERED_MECHANISMS, key=lambda name: float(getattr(row.distances[name], statistic)))


_COLOURS = {
    "transport": "#B00020",
    "optimal": COLOURS["optimal"],
    "mollifier": COLOURS["mollifier"],
    "laplace": QUIET,
}
_WANTED = ("delays", "cholesterol")
_SHOWN_AT = 2.0  # the budget at which one client is shown, if recorded


def ordered_distances_figure(rows: Sequence[OrderedSet]) -> Figure:
    """Distances against epsilon, and one client, for delays and cholesterol if available."""
    names = [name for name in _WANTED if any(row.set == name for row in rows)]
    figure = empty_figure(11.6, 0.9 + 3.2 * len(names))
    reports.set_figure_title(figure, "Ordered outcomes: how far a sample's law is from the client's own, at equal ε")
    grid = figure.subplots(len(names), 3, squeeze=False, width_ratios=(1.0, 1.0, 1.9))
    for line, name in zip(grid, names, strict=True):
        set_rows = sorted((row for row in rows if row.set == name), key=lambda row: row.epsilon)
        _draw_distance_lines(line[0], set_rows, "mean")
        write_panel_title(
            line[0], f"{set_rows[0].title}: mean", f"Wasserstein-1 of {set_rows[0].clients:,} {set_rows[0].who}"
        )
        _draw_distance_lines(line[1], set_rows, "single_outcome")
        write_panel_title(line[1], "worst client", "with a single outcome")
        _draw_example_client(line[2], min(set_rows, key=lambda row: abs(row.epsilon - _SHOWN_AT)))
    reports.add_common_legend(figure, grid[0][0])
    return figure


def _draw_distance_lines(axes: Axes, rows: Sequence[OrderedSet], statistic: str) -> None:
    budgets = [row.epsilon for row in rows]
    for name in ORDERED_MECHANISMS:
        values = [getattr(row.distances[name], statistic) for row in rows]
        axes.plot(
            budgets, values, color=_COLOURS[name], marker="o", markersize=3.5, label=ORDERED_LABELS[name],
            linewidth=2.2 if name == "transport" else 1.4,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("ε")
    axes.set_ylabel(rows[0].measure)


def _draw_example_client(axes: Axes, row: OrderedSet) -> None:
    positions = np.asarray(row.places)
    axes.bar(positions, row.shown, 0.8 * row.step, color="#DDDDDD", label="what it holds")
    for name in ORDERED_MECHANISMS:
        q = np.asarray(row.shown_outputs[name])
        distance = row.step * np.abs(np.cumsum(q - np.asarray(row.shown))).sum()
        axes.step(
            positions, q, where="mid", color=_COLOURS[name], linewidth=2.0 if name == "transport" else 1.2,
            label=f"{ORDERED_LABELS[name]}: {distance:.3g} {row.measure} off",
        )  # fmt: skip
    axes.set_xlabel(row.measure)
    axes.legend(frameon=False, fontsize=8.5, loc="upper right")
    write_panel_title(
        axes, f"one of the {row.who} at ε = {row.epsilon:g}", "its distribution, and its output distribution"
    )


KIND_LABELS = {
    "pure": ("pure", "ε"),
    "approximate": ("approximate, δ = 0.001", "ε"),
    "gaussian": ("Gaussian", "ν"),
    "functional": ("trade-off of Laplace noise", "μ"),
}
_PALE = {"global": "#9CC6E2", "local": "#F0B48C"}
_FULL = {"global": COLOURS["optimal"], "local": COLOURS["mollifier"]}
_ROUNDING = 1e-15  # below which a divergence is none


def follow_up_figures(runs: Runs) -> dict[str, Figure]:
    """One picture for each experiment."""
    drawers: dict[str, Callable[[Sequence[Any]], Figure]] = {
        "local_finite": _finite_classes_figure,
        "local_mixtures": _mixtures_figure,
        "local_plane": _plane_outputs_figure,
        "ordered": ordered_distances_figure,
    }
    with using_library_style():
        figures = {name: draw(runs[name].rows) for name, draw in drawers.items()}
        for name, figure in figures.items():
            if runs[name].header.quick:
                reports.write_quick_run_mark(figure)
    return figures


def _finite_classes_figure(rows: Sequence[FiniteClasses]) -> Figure:
    """Ten outcomes (or the smallest number recorded): a line of panels for each notion, a panel for each divergence."""
    fewest = min(row.outcomes for row in rows)
    smallest = [row for row in rows if row.outcomes == fewest]
    kinds = [kind for kind in KIND_LABELS if any(row.kind == kind for row in smallest)]
    figure = empty_figure(11.0, 1.0 + 2.3 * len(kinds))
    reports.set_figure_title(
        figure,
        f"The smallest worst case on {fewest} outcomes: all clients (global), clients near uniform (local)",
    )
    grid = figure.subplots(len(kinds), len(PAPER_DIVERGENCES), squeeze=False)
    for line, kind in zip(grid, kinds, strict=True):
        kind_rows = sorted((row for row in smallest if row.kind == kind), key=lambda row: row.budget)
        positions = np.arange(len(kind_rows))
        for axes, f in zip(line, PAPER_DIVERGENCES, strict=True):
            for side, name in ((-0.2, "global"), (0.2, "local")):
                heights = [row.classes[name].minimax[f] for row in kind_rows]
                axes.bar(positions + side, heights, 0.36, color=_FULL[name], label=f"{name}, ours")
                published_values = [row.classes[name].published_minimax.get(f, np.nan) for row in kind_rows]
                axes.scatter(
                    positions + side,
                    published_values,
                    s=16,
                    color="white",
                    edgecolor="#222222",
                    linewidth=0.8,
                    zorder=3,
                    label=_published_calibration_label(name),
                )
            _label_budget_axis(axes, positions, kind_rows, KIND_LABELS[kind][1])
            write_panel_title(axes, KIND_LABELS[kind][0], divergence_label(f))
    reports.add_common_legend(
        figure, grid[0][0], ("global, ours", "local, ours", _published_calibration_label("local"))
    )
    return figure


def _mixtures_figure(rows: Sequence[MixtureClasses]) -> Figure:
    """The largest KL (bars) and the mean (dots): a line for each shape, a panel for each notion; pale: linear, full: projection."""
    shapes = list(dict.fromkeys(row.shape for row in rows))
    kinds = [kind for kind in KIND_LABELS if any(row.kind == kind for row in rows)]
    figure = empty_figure(3.3 * len(kinds) + 0.4, 1.0 + 2.3 * len(shapes))
    reports.set_figure_title(
        figure, "Random mixtures near a public law: the worst client's KL (bars) and the mean (dots)"
    )
    grid = figure.subplots(len(shapes), len(kinds), squeeze=False)
    for line, shape in zip(grid, shapes, strict=True):
        for axes, kind in zip(line, kinds, strict=True):
            panel_rows = sorted(
                (row for row in rows if (row.shape, row.kind) == (shape, kind)), key=lambda row: row.budget
            )
            _draw_mixture_panel(axes, panel_rows)
            _label_budget_axis(axes, np.arange(len(panel_rows)), panel_rows, KIND_LABELS[kind][1])
            write_panel_title(axes, KIND_LABELS[kind][0], panel_rows[0].title)
    reports.add_common_legend(
        figure,
        grid[0][0],
        tuple(f"{name}, {mechanism}" for name in _FULL for mechanism in ("linear, as published", "projection")),
    )
    return figure


def _draw_mixture_panel(axes: Axes, rows: Sequence[MixtureClasses]) -> None:
    positions, width = np.arange(len(rows)), 0.2
    for index, (name, mechanism) in enumerate(
        (name, mechanism) for name in _FULL for mechanism in ("linear", "projection")
    ):
        comparisons = [row.classes[name].pointwise["kl"] for row in rows]
        x = positions + (index - 1.5) * width
        label = f"{name}, {'linear, as published' if mechanism == 'linear' else mechanism}"
        colour = (_PALE if mechanism == "linear" else _FULL)[name]
        axes.bar(
            x, [getattr(comparison, mechanism) for comparison in comparisons], 0.92 * width, color=colour, label=label
        )
        means = [getattr(comparison, f"{mechanism}_mean") for comparison in comparisons]
        axes.scatter(x, means, s=9, color="white", edgecolor="#222222", linewidth=0.7, zorder=3)


def _plane_outputs_figure(rows: Sequence[PlaneLaw]) -> Figure:
    """The client, and its output distributions in lines of panels: pure by projection, Gaussian as published, Gaussian by projection."""
    rows_by_unit = {row.unit: row for row in rows}
    lines = [
        ("pure/{}/projection", "projection"),
        ("gaussian/{}/linear", "linear, as published"),
        ("gaussian/{}/projection", "projection, ours"),
    ]
    figure = empty_figure(9.6, 8.4)
    reports.set_figure_title(figure, "Four Laplace laws in the plane and what is sampled instead")
    grid = figure.subplots(len(lines), 3, sharex=True, sharey=True)
    brightest = max(max(row.density) for row in rows)
    for line, (unit, mechanism) in zip(grid, lines, strict=True):
        panel_rows = [rows_by_unit["client"], *(rows_by_unit[unit.format(name)] for name in ("global", "local"))]
        for axes, row in zip(line, panel_rows, strict=True):
            image = reports.draw_density_image(
                axes, row.density, row.half_width, colours="viridis", brightest=brightest
            )
            if row.costs:
                write_panel_title(
                    axes, f"{row.family}, {row.notion}", f"{mechanism}: KL {max(row.costs['kl'] - _ROUNDING, 0.0):.2g}"
                )
            else:
                write_panel_title(axes, "the client")
    figure.colorbar(image, ax=list(grid.flat), shrink=0.6, pad=0.01).outline.set_visible(False)
    return figure


def _published_calibration_label(name: str) -> str:
    return f"{'both' if name == 'local' else name}, by the published calibration"


def _label_budget_axis(axes: Axes, positions: Any, rows: Sequence[Any], symbol: str) -> None:
    axes.set_xticks(positions, [f"{row.budget:g}" for row in rows])
    axes.set_xlabel(symbol)
    axes.locator_params(axis="y", nbins=5)
