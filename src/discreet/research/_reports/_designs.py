"""The reports on designs: mean costs on unseen clients, distance from the floor, and when a design stops paying.

A second page reports on designs learned privately and on the population behind designed samples. The picture shows each sampler's mean KL
as a multiple of the certified floor, set by set. Everything is read from the records.
"""

import html
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.plots import (
    COLOURS,
    INK,
    QUIET,
    Axes,
    Figure,
    divergence_label,
    empty_figure,
    using_library_style,
    write_panel_title,
)
from discreet.research import _reports as reports
from discreet.research._reports import Finding, Pictures, Runs, Table, titles_with_budgets_text
from discreet.research.experiments import (
    DESIGN_RIVALS,
    PAPER_DIVERGENCES,
    SAFE,
    DesignedSplit,
    KeptAtBudget,
    LearnedRun,
    RecordedRun,
    ReweightedSet,
    ShiftedDesign,
)

SAMPLER_LABELS = {
    "optimal": "Q*",
    "linear": "linear",
    "mollifier": "mollifier",
    "uniform": "best uniform",
    "designed": "designed",
    "elsewhere": "designed elsewhere",
    "home": "designed at home",
}


@dataclass(frozen=True)
class DesignCase:
    """One set at one budget: means over the splits."""

    splits: tuple[DesignedSplit, ...]

    @property
    def title(self) -> str:
        return self.splits[0].title

    @property
    def epsilon(self) -> float:
        return self.splits[0].epsilon

    @property
    def lower_bound(self) -> float:
        """The certified lower bound of the mean KL of any sampler, averaged over the splits."""
        return statistics.fmean(row.floor for row in self.splits)

    @property
    def ratio_to_lower_bound(self) -> float:
        """The design's mean KL as a multiple of the certified lower bound."""
        return self.mean_divergence("designed", "kl") / self.lower_bound

    @property
    def count_of_splits_without_design(self) -> int:
        """The number of splits in which the examples did not support a design."""
        return sum(row.parts is None for row in self.splits)

    def mean_divergence(self, sampler: str, divergence: str) -> float:
        return statistics.fmean(row.means[sampler][divergence] for row in self.splits)

    def design_has_smallest_mean(self, divergence: str) -> bool:
        """Whether the design's mean is smaller than that of every other sampler."""
        return all(
            self.mean_divergence("designed", divergence) < self.mean_divergence(rival, divergence)
            for rival in DESIGN_RIVALS
        )


def design_cases(rows: Sequence[DesignedSplit]) -> list[DesignCase]:
    """Sets in their recorded order, budgets in theirs."""
    groups: dict[tuple[str, float], list[DesignedSplit]] = {}
    for row in rows:
        groups.setdefault((row.set, row.epsilon), []).append(row)
    return [DesignCase(tuple(splits)) for splits in groups.values()]


def design_findings(rows: Sequence[DesignedSplit]) -> list[Finding]:
    """The findings of the comparison, in sentences."""
    cases = design_cases(rows)
    wins = ", ".join(
        f"{divergence_label(f)} {sum(case.design_has_smallest_mean(f) for case in cases)}" for f in PAPER_DIVERGENCES
    )
    losses = [case for case in cases if not all(case.design_has_smallest_mean(f) for f in PAPER_DIVERGENCES)]
    excesses = [case.ratio_to_lower_bound - 1.0 for case in cases]
    far_cases = [case for case in cases if case.ratio_to_lower_bound > 1.1]
    exact = [row.exact_gap for row in rows if row.exact_gap is not None]
    findings = [
        (
            "The smallest mean.",
            "The design is compared with Q*, the linear mechanism, the mollifier and the best uniform floor. It has the smallest mean in "
            f"this number of {len(cases)} cases: {wins}."
            + (f" It does not on {titles_with_budgets_text(losses)}." if losses else ""),
        ),
        (
            "Distance from the lower bound.",
            f"Its mean KL is {statistics.median(excesses):.1%} above the certified floor in the median, and {max(excesses):.0%} at worst"
            + (f". It is more than 10% above on {titles_with_budgets_text(far_cases)}." if far_cases else "."),
        ),
        (
            "Certificates.",
            f"The floors are within {max(row.gap for row in rows):.1e} (relative) of the cost of a design for the "
            f"served clients themselves, in all {len(rows)} splits"
            + (
                f". Computed in rationals, from the integers of the draw, they are within {max(exact):.1e} in the {len(exact)} splits "
                f"that were checked."
                if exact
                else "."
            ),
        ),
        (
            "The worst case.",
            f"The smallest kept share of the best worst case is {min(row.kept for row in rows):.3g}.",
        ),
    ]
    cases_without_design = [case for case in cases if case.count_of_splits_without_design]
    if cases_without_design:
        counts = ", ".join(
            f"{case.title} at ε = {case.epsilon:g}: {case.count_of_splits_without_design}"
            for case in cases_without_design
        )
        findings.append(
            (
                "Where the examples did not support a design.",
                f"In some splits Q* or the best uniform floor was kept. Their number: {counts}.",
            )
        )
    return findings


def design_divergences_table(rows: Sequence[DesignedSplit], divergence: str) -> Table:
    """Mean divergence by sampler, set and budget."""
    cases = design_cases(rows)
    epsilons = sorted({case.epsilon for case in cases})
    body = []
    for title in dict.fromkeys(case.title for case in cases):
        by_epsilon = {case.epsilon: case for case in cases if case.title == title}
        for index, name in enumerate((*DESIGN_RIVALS, "designed")):
            cells = [_four_digits_text(by_epsilon[epsilon].mean_divergence(name, divergence)) for epsilon in epsilons]
            body.append(["" if index else title, SAMPLER_LABELS[name], *cells])
        if divergence == "kl":
            body.append(
                [
                    "",
                    "no sampler is below",
                    *(_four_digits_text(by_epsilon[epsilon].lower_bound, down=True) for epsilon in epsilons),
                ]
            )
    return ["set", "sampler", *(f"ε = {epsilon:g}" for epsilon in epsilons)], body


def gain_by_kept_worst_case_table(rows: Sequence[KeptAtBudget]) -> Table:
    """The gain over Q* in mean KL for each `keep`, the share of the best worst case that is kept, and the largest possible gain."""
    keeps = [entry.keep for entry in rows[0].kept]
    body = []
    for row in rows:
        cells = [
            f"{row.relative_gain_over_optimal(keep):.1%} of at most {row.gain_bound_of_any_sampler(keep) + 5e-4:.1%}"
            for keep in keeps
        ]
        body.append([row.title, f"{row.epsilon:g}", _four_digits_text(row.mean), *cells])
    return ["set", "ε", "mean KL of Q*", *(f"keep = {keep:g}" for keep in keeps)], body


def shifted_clients_table(rows: Sequence[ShiftedDesign]) -> Table:
    """Mean KL on clients of another kind than the examples."""
    names = (*SAFE, "elsewhere", "home")
    body = []
    for row in rows:
        first = row.epsilon == min(other.epsilon for other in rows if other.shift == row.shift)
        titles = [
            f"{row.title}: {row.made_on} ({row.examples:,}), serving {row.kind} ({row.served:,})" if first else ""
        ]
        cells = [_four_digits_text(row.means[name]) for name in names]
        body.append(
            [
                *titles,
                f"{row.epsilon:g}",
                *cells,
                _four_digits_text(row.floor, down=True),
                "yes" if row.is_design_better else "no",
            ]
        )
    return ["made on, serving", "ε", *(SAMPLER_LABELS[name] for name in names), "no sampler is below", "pays"], body


def shifted_clients_findings(rows: Sequence[ShiftedDesign]) -> list[Finding]:
    """Where a design made elsewhere pays, and where it does not."""
    kinds = {row.shift: [other for other in rows if other.shift == row.shift] for row in rows}
    labels = {name: f"{cases[0].title} ({cases[0].made_on}, serving {cases[0].kind})" for name, cases in kinds.items()}
    paying_shifts = [name for name, cases in kinds.items() if all(case.is_design_better for case in cases)]
    failing_shifts = [name for name, cases in kinds.items() if not any(case.is_design_better for case in cases)]
    mixed_shifts = [name for name in kinds if name not in (*paying_shifts, *failing_shifts)]
    findings = []
    if paying_shifts:
        text = "; ".join(f"{labels[name]} {_closed_gap_range_text(kinds[name])}" for name in paying_shifts)
        findings.append(
            (
                "Where a design made elsewhere pays.",
                "The gap lies between the floor and the best of Q*, mollifier and best uniform. The design closes this part of it: "
                f"{text}.",
            )
        )
    if mixed_shifts:
        text = "; ".join(
            f"{labels[name]}, at ε = {', '.join(f'{case.epsilon:g}' for case in kinds[name] if case.is_design_better)} only"
            for name in mixed_shifts
        )
        findings.append(("Where it depends.", f"{text}."))
    if failing_shifts:
        text = "; ".join(f"{labels[name]}: {_relative_cost_range_text(kinds[name])} times" for name in failing_shifts)
        worse = f"Mean KL, compared with the best of Q*, mollifier and best uniform: {text}."
        findings.append(("Where it stops paying.", f"{worse} Privacy is the same; only the mean is worse."))
    return findings


def _relative_cost_range_text(rows: Sequence[ShiftedDesign]) -> str:
    ratios = [row.means["elsewhere"] / row.smallest_mean_kl_without_design for row in rows]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def _closed_gap_range_text(rows: Sequence[ShiftedDesign]) -> str:
    closed_shares = [row.closed_gap_share for row in rows]
    return f"{min(closed_shares):.0%} to {max(closed_shares):.0%}"


def _four_digits_text(value: float, *, down: bool = False) -> str:
    """Four digits; a floor is rounded down."""
    if value < 0.1:
        text = f"{value:.3g}"
        return f"{value * (1 - 5e-3):.3g}" if down and float(text) > value else text
    return f"{value - (5e-4 if down else 0.0):.3f}"


ESTIMATES = {
    "samples": "samples as they are",
    "reweighted": "examples reweighted",
    "debiased": "samples, debiased by them",
    "examples": "examples alone",
    "reports": "block reports",
    "subset": "subset selection",
    "unary": "unary encoding",
    "hashing": "local hashing",
    "linear": "linear samples, inverted",
    "optimal": "Q* samples",
    "mollifier": "mollifier samples",
}
_BY_EXAMPLES = ("samples", "reweighted", "debiased")
_TAUGHT = 1.0  # the smallest epsilon at which a few thousand clients are informative


def closed_gap_table(rows: Sequence[LearnedRun], times: int = 1) -> Table:
    """The closed share of the gap, mean over the orders of clients: a line for each set, a column for each budget."""
    runs = [row for row in rows if row.times == times]
    budgets = sorted({row.epsilon for row in runs})
    body = []
    for name in dict.fromkeys(row.set for row in runs):
        set_runs = [row for row in runs if row.set == name]
        cells = [
            f"{statistics.fmean(row.closed_gap_share for row in set_runs if row.epsilon == e):.0%}" for e in budgets
        ]
        body.append([f"{set_runs[0].title} (n = {set_runs[0].clients:,})", *cells])
    return ["set", *(f"ε = {epsilon:g}" for epsilon in budgets)], body


def learned_design_findings(rows: Sequence[LearnedRun]) -> list[Finding]:
    """How much of the gap is closed, in how many cases none is, and the largest loss."""
    findings = []
    for times in sorted({row.times for row in rows}):
        runs = [row for row in rows if row.times == times]
        cases: dict[tuple[str, float], list[LearnedRun]] = {}
        for row in runs:
            cases.setdefault((row.set, row.epsilon), []).append(row)
        closed_shares = {
            case: statistics.fmean(row.closed_gap_share for row in case_runs) for case, case_runs in cases.items()
        }
        shares = [share for (_, epsilon), share in closed_shares.items() if epsilon >= _TAUGHT]
        undesigned_count = sum(
            not any(batch.published for row in case_runs for batch in row.batches) for case_runs in cases.values()
        )
        worst = max(runs, key=lambda row: row.relative_excess_over_no_design)
        loss = max(worst.relative_excess_over_no_design, 0.0)
        median = f"the median over ε ≥ {_TAUGHT:g} is {statistics.median(shares):.0%}, " if shares else ""
        findings.append(
            (
                "One sample of each client." if times == 1 else f"With {times} times as many clients.",
                f"Share of the gap that is closed: {median}over all {len(closed_shares)} cases "
                f"{statistics.median(closed_shares.values()):.0%}. In {undesigned_count} of them no design was ever published. "
                "The largest loss against the better of Q* and the mollifier in any of "
                f"{len(runs)} runs is {loss:.2%} ({worst.title}, ε = {worst.epsilon:g}).",
            )
        )
    return findings


def reweighted_estimate_errors_table(rows: Sequence[ReweightedSet], skew: str, *, squared: bool = False) -> Table:
    """TV errors by estimate, or mean squared ones in units of 10^-6: a line for each set and budget."""
    body = []
    for row in (row for row in rows if row.drawn == skew):
        cells = [
            f"{1e6 * row.squared[name].mean:,.1f}" if squared else f"{row.errors[name].mean:.3f}" for name in ESTIMATES
        ]
        body.append([row.title, f"{row.epsilon:g}", *cells])
    return ["set", "ε", *ESTIMATES.values()], body


def reweighted_estimate_findings(rows: Sequence[ReweightedSet]) -> list[Finding]:
    """Which estimates are closer to the served clients' average than the best oracle."""
    findings = []
    for skew, headline in (
        ("random", "Examples like the clients."),
        ("skewed", "Examples unlike the clients."),
    ):
        cases = [row for row in rows if row.drawn == skew]
        if not cases:
            continue
        wins = {name: sum(_has_smaller_mean_error_than(row, name, "reports") for row in cases) for name in _BY_EXAMPLES}
        losses = [
            row for row in cases if not any(_has_smaller_mean_error_than(row, name, "reports") for name in _BY_EXAMPLES)
        ]
        unaided_wins = sum(_has_smaller_mean_error_than(row, "examples", "reweighted") for row in cases)
        note = "One of the three is closer than block reports in every case."
        if losses:
            note = f"Block reports are closer than all three on {titles_with_budgets_text(losses)}."
        findings.append(
            (
                headline,
                f"Three estimates are compared with block reports. They are closer in this number of {len(cases)} cases: designed samples "
                f"as they are {wins['samples']}, examples reweighted to explain them {wins['reweighted']}, samples debiased by the examples "
                f"{wins['debiased']}. {note} The examples alone, without any samples, are closer than the reweighted ones in {unaided_wins}.",
            )
        )
    return findings


def _has_smaller_mean_error_than(row: ReweightedSet, name: str, other: str) -> bool:
    return row.errors[name].mean < row.errors[other].mean


def learned_designs_page(runs: Runs, pictures: Pictures) -> str:
    """The page on designs learned privately and on the population behind designed samples; it has no pictures."""
    learned_run, reweighted_run = runs["learned"], runs["reweighted"]
    header = learned_run.header
    findings = [*learned_design_findings(learned_run.rows), *reweighted_estimate_findings(reweighted_run.rows)]
    parts = []
    for times in sorted({row.times for row in learned_run.rows}):
        parts += [
            f"<h2>Share of the gap that was closed, {times} times the clients</h2>",
            reports.html_table(*closed_gap_table(learned_run.rows, times), rule_on=None),
        ]
    for skew in dict.fromkeys(row.drawn for row in reweighted_run.rows):
        parts += [
            f"<h2>TV from the estimate to the average served client, {html.escape(skew)} examples</h2>",
            reports.html_table(*reweighted_estimate_errors_table(reweighted_run.rows, skew), texts=2),
            f"<h2>Mean squared error of a share times 10^6, {html.escape(skew)} examples</h2>",
            reports.html_table(*reweighted_estimate_errors_table(reweighted_run.rows, skew, squared=True), texts=2),
        ]
    return reports.html_page(
        "designs learned privately",
        "Designs learned privately, and what their samples tell",
        f"By discreet {html.escape(header.version)}: {html.escape(header.computes)}.",
        quick="one set, one budget." if header.quick else None,
        findings=reports.findings_as_html_items(findings),
        parts=parts,
    )


_COLOURS = {
    **{name: COLOURS[name] for name in ("optimal", "linear", "mollifier")},
    "uniform": "#E69F00",
    "designed": "#B00020",
}
_ACROSS = 3


def design_figure(run: RecordedRun[DesignedSplit]) -> Figure:
    """One panel for each set; the floor is at 1."""
    cases_by_title: dict[str, list[DesignCase]] = {}
    for case in design_cases(run.rows):
        cases_by_title.setdefault(case.title, []).append(case)
    panel_rows = -(-len(cases_by_title) // _ACROSS)
    with using_library_style():
        figure = empty_figure(11.6, 1.2 + 2.7 * panel_rows)
        reports.set_figure_title(
            figure, "Mean KL of clients that no design has seen, as a multiple of what no private sampler can go below"
        )
        grid = figure.subplots(panel_rows, min(_ACROSS, len(cases_by_title)), squeeze=False, sharex=True)
        panels: list[Axes] = list(grid.flat)
        for axes, (title, cases) in zip(panels, cases_by_title.items(), strict=False):
            _draw_design_panel(axes, title, cases)
        for axes in panels[len(cases_by_title) :]:
            axes.set_visible(False)
        panels[0].legend(frameon=False, fontsize=9, loc="upper left")
        if run.header.quick:
            reports.write_quick_run_mark(figure)
    return figure


def _draw_design_panel(axes: Axes, title: str, cases: Sequence[DesignCase]) -> None:
    cases = sorted(cases, key=lambda case: case.epsilon)
    budgets = [case.epsilon for case in cases]
    axes.axhline(1.0, color=QUIET, linewidth=1.0)
    for name in (*DESIGN_RIVALS, "designed"):
        ratios = [case.mean_divergence(name, "kl") / case.lower_bound for case in cases]
        axes.plot(
            budgets, ratios, color=_COLOURS[name], label=SAMPLER_LABELS[name], marker="o", markersize=3.5,
            linewidth=2.2 if name == "designed" else 1.4, linestyle="--" if name == "linear" else "-",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    highest = max(case.mean_divergence(name, "kl") / case.lower_bound for case in cases for name in DESIGN_RIVALS)
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 40) if tick <= 1.15 * highest]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("ε", color=INK)
    write_panel_title(axes, title)


def design_page(runs: Runs, pictures: Pictures) -> str:
    """The page on designs for unseen clients, with the worst case kept, and for clients of another kind."""
    designs, keeps, shifts = (runs[name] for name in ("designs", "keeps", "shifts"))
    header = designs.header
    parts = [reports.picture_html(pictures, "designs")]
    for f in PAPER_DIVERGENCES:
        parts += [
            f"<h2>{html.escape(divergence_label(f))}, mean over clients that were not used</h2>",
            reports.html_table(*design_divergences_table(designs.rows, f), texts=2, rule_on=None),
        ]
    parts += [
        "<h2>With the worst case kept</h2>",
        "<p class='quiet'>Gain in mean KL over Q*, of the proved largest gain of any sampler.</p>",
        reports.html_table(*gain_by_kept_worst_case_table(keeps.rows), rule_on=None),
        "<h2>Made on one kind of clients, serving another: mean KL</h2>",
        reports.html_table(*shifted_clients_table(shifts.rows), rule_on=None),
    ]
    return reports.html_page(
        "designs",
        "Designs for clients they have not seen",
        f"By discreet {html.escape(header.version)}: {html.escape(header.computes)}.",
        quick="few clients of each set, one split." if header.quick else None,
        findings=reports.findings_as_html_items(
            [*design_findings(designs.rows), *shifted_clients_findings(shifts.rows)]
        ),
        parts=parts,
    )
