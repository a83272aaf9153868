"""The report on samples and frequency oracles for real clients: which is closer, by how much, and how certain that is.

Findings, tables, pictures and a self-contained page are computed from the records of `discreet reproduce population`.
"""

import html
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
from discreet.research._reports import (
    Finding,
    Pictures,
    Table,
    draw_named_curves,
    findings_as_html_items,
    html_page,
    html_table,
    picture_html,
    recorded_epsilons,
    set_figure_title,
    titles_with_budgets_text,
    write_quick_run_mark,
)
from discreet.research.experiments import PAPER_DIVERGENCES, RecordedRun, SetAtBudget

SAMPLES = ("optimal", "mollifier", "linear")
ORACLES = ("reports", "subset", "unary", "hashing")
RIVALS = (*SAMPLES, *ORACLES)
_SHOWN = (*ORACLES, "linear", "optimal", "mollifier", "raw")
CERTAIN = 3.0  # standard errors of the difference
WORTH_ASKING = 0.9  # of the uniform distribution's error

REPORT_LABELS = {
    "optimal": "Q* samples",
    "mollifier": "mollifier samples",
    "linear": "linear samples, inverted (= k-RR)",
    "reports": "block reports",
    "subset": "subset selection",
    "unary": "unary encoding",
    "hashing": "local hashing",
    "raw": "raw draws, no privacy",
}
SHORT_LABELS = {
    "optimal": "Q*",
    "mollifier": "mollifier",
    "linear": "linear",
    "reports": "reports",
    "subset": "subset",
    "unary": "unary",
    "hashing": "hashing",
}


def recorded_mean_error(row: SetAtBudget, rival: str, measure: str = "tv", *, projected: bool = True) -> float:
    """A rival's mean error over the repetitions, as it is or projected onto the simplex."""
    errors = row.errors[rival]
    return (errors.projected if projected else errors.raw)[measure].mean


@dataclass(frozen=True)
class SampleOracleContest:
    """The best kind of sample against the best oracle on one set at one budget, by TV error after projection onto the simplex."""

    row: SetAtBudget
    samples: tuple[str, ...] = SAMPLES

    @property
    def best_sampler_name(self) -> str:
        return min(self.samples, key=lambda name: recorded_mean_error(self.row, name))

    @property
    def best_oracle_name(self) -> str:
        return min(ORACLES, key=lambda name: recorded_mean_error(self.row, name))

    @property
    def error_ratio(self) -> float:
        """Error of the sample over error of the oracle: below 1 the sample is closer."""
        return recorded_mean_error(self.row, self.best_sampler_name) / recorded_mean_error(
            self.row, self.best_oracle_name
        )

    @property
    def difference_exceeds_chance(self) -> bool:
        """Whether the difference exceeds chance between repetitions."""
        spread = math.hypot(
            *(
                self.row.errors[name].projected["tv"].standard_error
                for name in (self.best_sampler_name, self.best_oracle_name)
            )
        )
        return (
            abs(
                recorded_mean_error(self.row, self.best_sampler_name)
                - recorded_mean_error(self.row, self.best_oracle_name)
            )
            > CERTAIN * spread
        )

    @property
    def winner(self) -> str | None:
        """ "sample", "oracle", or None if chance could decide either way."""
        if not self.difference_exceeds_chance:
            return None
        return "sample" if self.error_ratio < 1.0 else "oracle"

    @property
    def either_beats_uniform_guess(self) -> bool:
        """Whether the better of the two is at least a tenth closer than the uniform distribution, which needs no data."""
        return self.sample_beats_uniform_guess or self._is_closer_than_uniform(self.best_oracle_name)

    @property
    def sample_beats_uniform_guess(self) -> bool:
        """The same for the sample alone."""
        return self._is_closer_than_uniform(self.best_sampler_name)

    def _is_closer_than_uniform(self, rival: str) -> bool:
        return recorded_mean_error(self.row, rival) < WORTH_ASKING * self.row.uniform["tv"]


def rows_by_set(rows: Sequence[SetAtBudget]) -> dict[str, list[SetAtBudget]]:
    """The rows of each set, smallest budget first, sets in their recorded order."""
    groups: dict[str, list[SetAtBudget]] = {}
    for row in rows:
        groups.setdefault(row.set, []).append(row)
    return {name: sorted(set_rows, key=lambda row: row.epsilon) for name, set_rows in groups.items()}


def set_description_text(row: SetAtBudget) -> str:
    """The set in a few words: arrival delays, 24 outcomes, 4,037 aircraft."""
    return f"{row.title}, {row.outcomes} outcomes, {row.clients:,} {row.who}"


_ALIKE = 1e-9


def population_findings(rows: Sequence[SetAtBudget]) -> list[Finding]:
    """The findings: wins on both sides with reasons and numbers."""
    contests = [SampleOracleContest(row) for row in rows]
    findings = (
        _oracle_wins_finding(contests),
        _sample_wins_finding(contests),
        _oracle_equals_sampler_finding(rows),
        _no_better_than_uniform_finding(contests),
        _raw_sample_bias_finding(rows),
        _oracles_waste_large_budget_finding(rows),
        _best_mechanism_on_average_finding(rows),
        _best_mechanism_for_worst_client_finding(rows),
        _own_outcome_release_rate_finding(rows),
    )
    return [finding for finding in findings if finding is not None]


def best_sample_against_best_oracle_table(rows: Sequence[SetAtBudget]) -> Table:
    """Best sample and best oracle with their TV errors: a line for each set, a column for each budget."""
    head = ["set", *(f"ε = {epsilon:g}" for epsilon in recorded_epsilons(rows))]
    body = []
    for set_rows in rows_by_set(rows).values():
        cells = []
        for contest in map(SampleOracleContest, set_rows):
            mark = {"sample": "sample", "oracle": "oracle", None: "either"}[contest.winner]
            cells.append(
                f"{mark}: {_sampler_and_oracle_errors_text(contest)}"
                + ("" if contest.either_beats_uniform_guess else " †")
            )
        body.append([_set_label_with_sizes(set_rows[0]), *cells])
    return head, body


def estimate_errors_table(rows: Sequence[SetAtBudget], measure: str = "tv") -> Table:
    """The error of every rival after projection: a line for each set and budget; mean squared errors in units of 10^-6."""
    head = ["set", "ε", *(REPORT_LABELS[name] for name in _SHOWN)]
    scale, digits = (1.0, 3) if measure == "tv" else (1e6, 1)
    body = []
    for set_rows in rows_by_set(rows).values():
        for row in set_rows:
            cells = [f"{scale * recorded_mean_error(row, name, measure):,.{digits}f}" for name in _SHOWN]
            body.append([row.title, f"{row.epsilon:g}", *cells])
    return head, body


def client_divergences_table(rows: Sequence[SetAtBudget], divergence: str = "tv") -> Table:
    """Mean (worst) divergence of a client under each mechanism: a line for each set and mechanism, a column for each budget."""
    head = ["set", "mechanism", *(f"ε = {epsilon:g}" for epsilon in recorded_epsilons(rows))]
    body = []
    for set_rows in rows_by_set(rows).values():
        for name in SAMPLES:
            cells = [
                f"{row.realised[name][divergence].mean:.3f} ({row.realised[name][divergence].worst:.3f})"
                for row in set_rows
            ]
            body.append([_set_label_with_sizes(set_rows[0]) if name == SAMPLES[0] else "", SHORT_LABELS[name], *cells])
    return head, body


def raw_sample_bias_table(rows: Sequence[SetAtBudget]) -> Table:
    """Bias and total TV error of raw samples of Q*, at the budget nearest to 1: a line for each set."""
    nearest_rows = _rows_at_nearest_budget(rows, 1.0)
    body = [
        [row.title, f"{row.bias['optimal']:.3f}", f"{recorded_mean_error(row, 'optimal', projected=False):.3f}"]
        for row in nearest_rows
    ]
    return [f"set, ε = {nearest_rows[0].epsilon:g}", "bias", "total error"], body


def recorded_own_outcome_rates_table(rows: Sequence[SetAtBudget]) -> Table:
    """How often a released outcome is one of the client's own, at the budget nearest to 4: a line for each set."""
    nearest_rows = _rows_at_nearest_budget(rows, 4.0)
    body = [[row.title, *(f"{row.own[name]:.0%}" for name in SAMPLES)] for row in nearest_rows]
    return [f"set, ε = {nearest_rows[0].epsilon:g}", *(SHORT_LABELS[name] for name in SAMPLES)], body


def _set_label_with_sizes(row: SetAtBudget) -> str:
    return f"{row.title} (k = {row.outcomes}, n = {row.clients:,})"


def _set_at_budget_text(row: SetAtBudget) -> str:
    return f"{row.title} at ε = {row.epsilon:g}"


def _sampler_and_oracle_errors_text(contest: SampleOracleContest) -> str:
    errors = [recorded_mean_error(contest.row, name) for name in (contest.best_sampler_name, contest.best_oracle_name)]
    return f"{errors[0]:.3f} / {errors[1]:.3f}"


def _named_sampler_and_oracle_errors_text(contest: SampleOracleContest) -> str:
    return (
        f"{REPORT_LABELS[contest.best_sampler_name]} {recorded_mean_error(contest.row, contest.best_sampler_name):.3f}, "
        f"{REPORT_LABELS[contest.best_oracle_name]} {recorded_mean_error(contest.row, contest.best_oracle_name):.3f}"
    )


def _oracle_wins_finding(contests: Sequence[SampleOracleContest]) -> Finding | None:
    wins = [contest for contest in contests if contest.winner == "oracle"]
    if not wins:
        return None
    most = max(wins, key=lambda contest: contest.error_ratio)
    return (
        "Where an oracle wins.",
        f"For the histogram alone an oracle is closer than any sample in {len(wins)} of {len(contests)} cases: "
        f"{titles_with_budgets_text([contest.row for contest in wins])}. The difference is largest on {_set_at_budget_text(most.row)}: "
        f"{_named_sampler_and_oracle_errors_text(most)}.",
    )


def _sample_wins_finding(contests: Sequence[SampleOracleContest]) -> Finding | None:
    wins = [contest for contest in contests if contest.winner == "sample"]
    useful = [contest for contest in wins if contest.either_beats_uniform_guess]
    if not wins:
        return None
    text = f"A sample is closer in {len(wins)} of {len(contests)} cases."
    if useful:
        least = min(useful, key=lambda contest: contest.error_ratio)
        kinds = Counter(SHORT_LABELS[contest.best_sampler_name] for contest in useful)
        text += (
            f" In {len(useful)} of them it also beats the uniform distribution by a tenth or more: "
            f"{titles_with_budgets_text([contest.row for contest in useful])}. "
            f"The best kind is {', '.join(f'{name} in {count}' for name, count in kinds.most_common())}. "
            f"The difference is largest on {_set_at_budget_text(least.row)}: {_named_sampler_and_oracle_errors_text(least)}."
        )
    optimal = [SampleOracleContest(contest.row, ("optimal",)) for contest in contests]
    optimal_wins = [
        contest.row for contest in optimal if contest.winner == "sample" and contest.sample_beats_uniform_guess
    ]
    if optimal_wins:
        text += f" Q* samples alone do both on {titles_with_budgets_text(optimal_wins)}."
    return "Where a sample wins.", text


def _oracle_equals_sampler_finding(rows: Sequence[SetAtBudget]) -> Finding | None:
    alike = [row for row in rows if row.subset_size == 1]
    if not alike:
        return None
    starts = "; ".join(f"{set_rows[0].title} ε ≥ {set_rows[0].epsilon:g}" for set_rows in rows_by_set(alike).values())
    return (
        "Where they are the same.",
        "If subset selection reports a single outcome, it is k-ary randomised response. This is the linear sampler, so the best oracle's "
        f"report is then a sample. It is the case from these budgets on: {starts}.",
    )


def _no_better_than_uniform_finding(contests: Sequence[SampleOracleContest]) -> Finding | None:
    idle = [contest.row for contest in contests if not contest.either_beats_uniform_guess]
    if not idle:
        return None
    return (
        "Where samples hardly help.",
        f"In {len(idle)} cases no private estimate is at least a tenth closer than the uniform distribution, which needs no "
        f"data. They are {titles_with_budgets_text(idle)}. A biased sample that is nearly uniform is then closer than a noisy oracle, "
        f"but neither is informative.",
    )


def _rows_at_nearest_budget(rows: Sequence[SetAtBudget], epsilon: float) -> list[SetAtBudget]:
    """Each set at the recorded budget nearest to the given one."""
    return [min(set_rows, key=lambda row: abs(row.epsilon - epsilon)) for set_rows in rows_by_set(rows).values()]


def _raw_sample_bias_finding(rows: Sequence[SetAtBudget]) -> Finding:
    nearest_rows = sorted(_rows_at_nearest_budget(rows, 1.0), key=lambda row: row.bias["optimal"])
    least, most = (
        (f"{row.bias['optimal']:.3f}", f"{recorded_mean_error(row, 'optimal', projected=False):.3f}", row.title)
        for row in (nearest_rows[0], nearest_rows[-1])
    )
    return (
        "Raw samples of Q* have a bias that no number of clients removes.",
        f"At ε = {nearest_rows[0].epsilon:g} the smallest bias is {least[0]} of a total error of {least[1]}, on {least[2]}. The largest is "
        f"{most[0]} of {most[1]}, on {most[2]}. With enough clients every unbiased estimate is better.",
    )


def _oracles_waste_large_budget_finding(rows: Sequence[SetAtBudget]) -> Finding:
    last = [row for row in rows if row.epsilon == max(recorded_epsilons(rows))]
    ratios = [
        recorded_mean_error(row, name) / recorded_mean_error(row, "raw")
        for row in last
        for name in ("unary", "hashing")
    ]
    best = [min(recorded_mean_error(row, name) for name in SAMPLES) / recorded_mean_error(row, "raw") for row in last]
    return (
        "Unary encoding and local hashing do not use a large budget.",
        f"Their reports hold the client's own outcome with a probability that stays near one half. So at ε = {last[0].epsilon:g} their "
        f"error is {min(ratios):.2f} to {max(ratios):.2f} times that of the raw draws. The best sample's error is {min(best):.2f} to "
        f"{max(best):.2f} times that of the raw draws.",
    )


def _best_mechanism_on_average_finding(rows: Sequence[SetAtBudget]) -> Finding:
    parts = []
    for f in ("tv", "kl", "hellinger"):
        best = Counter(min(SAMPLES, key=lambda name: row.realised[name][f].mean) for row in rows)
        counts = ", ".join(f"{SHORT_LABELS[name]} {best[name]}" for name in SAMPLES)
        parts.append(f"{_capitalise(divergence_label(f))}: {counts}.")
    gain = max(rows, key=lambda row: row.realised["optimal"]["tv"].mean - row.realised["mollifier"]["tv"].mean)
    means = [gain.realised[name]["tv"].mean for name in ("mollifier", "optimal")]
    return (
        "The average client.",
        f"Each mechanism has the smallest mean in this number of {len(rows)} cases. {' '.join(parts)} The difference is largest on "
        f"{_set_at_budget_text(gain)}: mean TV {means[0]:.3f} (mollifier) against {means[1]:.3f} (Q*). Both boxes have the same ratio "
        f"e^ε. The box of Q* is chosen for clients with a single outcome, which gives the smallest worst case. For a client with "
        f"several outcomes a lower floor is better.",
    )


def _best_mechanism_for_worst_client_finding(rows: Sequence[SetAtBudget]) -> Finding:
    leads = {row.unit: row.realised["mollifier"]["tv"].worst - row.realised["optimal"]["tv"].worst for row in rows}
    exceptions = [row for row in rows if leads[row.unit] <= 0.0]
    most = max(rows, key=lambda row: leads[row.unit])
    pairs = [(row.realised["optimal"][f], row.realised["linear"][f]) for row in rows for f in PAPER_DIVERGENCES]
    larger_count = sum(
        more > less + _ALIKE
        for ours, theirs in pairs
        for more, less in ((ours.mean, theirs.mean), (ours.median, theirs.median), (ours.worst, theirs.worst))
    )
    text = f"The largest TV of a client is smaller under Q* than under the mollifier in {len(rows) - len(exceptions)} of {len(rows)} cases"
    if exceptions:
        text += (
            f". It is not on {titles_with_budgets_text(exceptions)}, where the worst client is not the worst possible"
        )
    worst = [most.realised[name]["tv"].worst for name in ("optimal", "mollifier")]
    return (
        "The worst client.",
        f"{text}. The difference is largest on {_set_at_budget_text(most)}: {worst[0]:.3f} against {worst[1]:.3f}. Compared with the "
        f"linear mechanism, the mean, median or worst of any of the three divergences is larger in {larger_count} cases.",
    )


def _own_outcome_release_rate_finding(rows: Sequence[SetAtBudget]) -> Finding:
    nearest_rows = sorted(_rows_at_nearest_budget(rows, 4.0), key=lambda row: row.own["optimal"])
    rates = [f"{row.own['optimal']:.0%} on {row.title}" for row in (nearest_rows[0], nearest_rows[-1])]
    return (
        "A sample is a record; a support is not.",
        f"At ε = {nearest_rows[0].epsilon:g} Q* releases one of the client's own outcomes with a probability between "
        f"{' and '.join(rates)}. "
        f"Single reports ({', '.join(REPORT_LABELS[name] for name in ORACLES)}) become data only after the curator has aggregated them.",
    )


_RIVAL_COLOURS = {
    **{name: COLOURS[name] for name in SAMPLES},
    "reports": "#B00020",
    "subset": "#CC79A7",
    "unary": "#E69F00",
    "hashing": "#8A6100",
    "raw": QUIET,
}
_DASHES: dict[str, Any] = {"hashing": (0, (1.2, 1.6)), "raw": (0, (4, 2))}
_WINNERS = {"sample": "#CFE3F1", "oracle": "#F7DDCB", None: "#F2F2F2"}


def population_figures(run: RecordedRun[SetAtBudget]) -> dict[str, Figure]:
    """The overview under "population", and one picture for each set under "population-NAME"."""
    rows = run.rows
    with using_library_style():
        figures = {"population": _contest_overview_figure(rows)}
        figures |= {f"population-{name}": _client_set_figure(set_rows) for name, set_rows in rows_by_set(rows).items()}
        if run.header.quick:
            for figure in figures.values():
                write_quick_run_mark(figure, "QUICK RUN: few repetitions")
    return figures


def _contest_overview_figure(rows: Sequence[SetAtBudget]) -> Figure:
    sets, budgets = rows_by_set(rows), recorded_epsilons(rows)
    figure = empty_figure(11.6, 1.9 + 0.62 * len(sets))
    set_figure_title(figure, "The population's law from one report of each client: samples or a frequency oracle?")
    axes = figure.subplots()
    for line, set_rows in enumerate(sets.values()):
        for row in set_rows:
            _plot_contest_cell(axes, budgets.index(row.epsilon), line, SampleOracleContest(row))
    axes.set_xlim(-0.5, len(budgets) - 0.5)
    axes.set_ylim(len(sets) - 0.5, -0.5)
    axes.set_xticks(range(len(budgets)), [f"ε = {epsilon:g}" for epsilon in budgets])
    firsts = [set_rows[0] for set_rows in sets.values()]
    axes.set_yticks(range(len(sets)), [f"{row.title}\nk = {row.outcomes}, {row.clients:,} {row.who}" for row in firsts])
    axes.tick_params(length=0, colors=INK)
    axes.xaxis.tick_top()
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(
        "TV error of the best kind of sample / of the best oracle (lower is closer). Blue: a sample is closer; orange: an oracle is; "
        "grey: undecided.\nItalic: the uniform distribution, which takes no data at all, is as close or nearly.",
        fontsize=9, color=QUIET, loc="left",
    )  # fmt: skip
    return figure


def _plot_contest_cell(axes: Axes, x: int, y: int, contest: SampleOracleContest) -> None:
    axes.add_patch(_filled_rectangle((x - 0.48, y - 0.46), 0.96, 0.92, _WINNERS[contest.winner]))
    style = "normal" if contest.either_beats_uniform_guess else "italic"
    names = f"{SHORT_LABELS[contest.best_sampler_name]} / {SHORT_LABELS[contest.best_oracle_name]}"
    values = _sampler_and_oracle_errors_text(contest)
    axes.annotate(names, (x, y), (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8, style=style)
    axes.annotate(values, (x, y), (0, -1), textcoords="offset points", ha="center", va="top", fontsize=9, style=style)


def _filled_rectangle(corner: tuple[float, float], width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor=colour, linewidth=0)


def _client_set_figure(rows: Sequence[SetAtBudget]) -> Figure:
    figure = empty_figure(14.6, 4.9)
    set_figure_title(figure, _capitalise(set_description_text(rows[0])))
    panels = figure.subplots(1, 3)
    for axes, f in zip(panels, ("tv", "kl"), strict=False):
        write_panel_title(
            axes, f"Cost for a client: {divergence_label(f)}", "from its distribution to its output distribution"
        )
        _draw_cost_curves(axes, rows, f)
    write_panel_title(
        panels[2],
        "The curator's error",
        f"total variation to the average client, one report each, {rows[0].repetitions} times",
    )
    _draw_error_curves(panels[2], rows)
    return figure


def _draw_cost_curves(axes: Axes, rows: Sequence[SetAtBudget], f: str) -> None:
    worst = {name: [row.realised[name][f].worst for row in rows] for name in SAMPLES}
    alike = bool(np.allclose(worst["optimal"], worst["linear"], rtol=1e-6))
    lines: dict[str, tuple[list[float], str, Any]] = {}
    for name in ("mollifier", "linear", "optimal"):
        lines[f"{SHORT_LABELS[name]}, mean"] = [row.realised[name][f].mean for row in rows], COLOURS[name], "solid"
        if not (alike and name == "linear"):
            label = "Q* and linear, worst" if alike and name == "optimal" else f"{SHORT_LABELS[name]}, worst"
            lines[label] = worst[name], COLOURS[name], (0, (4, 2))
    draw_named_curves(axes, [row.epsilon for row in rows], lines)


def _draw_error_curves(axes: Axes, rows: Sequence[SetAtBudget]) -> None:
    lines: dict[str, tuple[list[float], str, Any]] = {
        "uniform, without data": ([row.uniform["tv"] for row in rows], "#AAAAAA", (0, (1.2, 1.6)))
    }
    for name in ("raw", *reversed(RIVALS)):
        label = REPORT_LABELS[name] if name == "raw" else REPORT_LABELS[name].split(",")[0]
        lines[label] = (
            [recorded_mean_error(row, name) for row in rows],
            _RIVAL_COLOURS[name],
            _DASHES.get(name, "solid"),
        )
    draw_named_curves(axes, [row.epsilon for row in rows], lines)


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]


_MEASURES = {"tv": "TV", "l2": "L2", "max": "largest"}


def population_page(run: RecordedRun[SetAtBudget], pictures: Pictures) -> str:
    """The page; pictures are PNG bytes under the names of `population_figures`."""
    header, rows = run.header, run.rows
    parts = [
        picture_html(pictures, "population"),
        html_table(*best_sample_against_best_oracle_table(rows), rule_on=None),
        "<p class='quiet'>TV error of the best kind of sample / of the best oracle, and who is closer by more than three standard "
        "errors. †: less than a tenth closer than the uniform law.</p>",
        "<h3>Total variation of a client, mean (worst)</h3>",
        html_table(*client_divergences_table(rows), texts=2, rule_on=None),
        "<h3>Released outcomes that are the client's own</h3>",
        html_table(*recorded_own_outcome_rates_table(rows), rule_on=None),
        "<h3>Bias and total TV error of Q* samples</h3>",
        html_table(*raw_sample_bias_table(rows), rule_on=None),
    ]
    for name, set_rows in rows_by_set(rows).items():
        parts += [
            f"<h2>{html.escape(set_description_text(set_rows[0]))}</h2>",
            f"<p class='quiet'>Domain: {html.escape(set_rows[0].domain)}. Source: {html.escape(set_rows[0].source)}.</p>",
            picture_html(pictures, f"population-{name}"),
            "<h3>From each client's law to the law it draws from</h3>",
            _client_costs_html_table(set_rows),
            f"<h3>From the estimate to the average client, mean of {set_rows[0].repetitions} repetitions</h3>",
            _estimate_errors_html_table(set_rows),
        ]
    return html_page(
        "real clients",
        "Real clients: samples and frequency oracles",
        f"By discreet {html.escape(header.version)}: {html.escape(header.computes)}. "
        "Every domain is public and was written down beforehand.",
        quick="few repetitions, so that more cases are undecided." if header.quick else None,
        findings=findings_as_html_items(population_findings(rows)),
        parts=parts,
    )


def _client_costs_html_table(rows: Sequence[SetAtBudget]) -> str:
    statistics = ("mean", "median", "worst", "worst possible")
    head = [
        "ε",
        "mechanism",
        *(f"{divergence_label(f)}, {statistic}" for f in PAPER_DIVERGENCES for statistic in statistics),
        "own",
    ]
    body: list[list[object]] = []
    for row in rows:
        for name in SAMPLES:
            costs = [row.realised[name][f] for f in PAPER_DIVERGENCES]
            cells = [
                f"{value:.4f}" for cost in costs for value in (cost.mean, cost.median, cost.worst, cost.worst_case)
            ]
            body.append([f"{row.epsilon:g}", SHORT_LABELS[name], *cells, f"{row.own[name]:.1%}"])
    note = "<p class='quiet'>Own: the probability that the released outcome is one of the client's own.</p>"
    return html_table(head, body, texts=2) + note


def _estimate_errors_html_table(rows: Sequence[SetAtBudget]) -> str:
    head = [
        "ε",
        "estimate",
        *(f"{label}, {kind}" for label in _MEASURES.values() for kind in ("raw", "projected")),
        "TV of bias",
    ]
    body: list[list[object]] = []
    for row in rows:
        for name in (*RIVALS, "raw"):
            cells = [
                f"{recorded_mean_error(row, name, measure, projected=is_projected):.4f}"
                for measure in _MEASURES
                for is_projected in (False, True)
            ]
            bias = f"{row.bias[name]:.4f}" if name in ("optimal", "mollifier") else "0"
            body.append([f"{row.epsilon:g}", REPORT_LABELS[name], *cells, bias])
        cells = [f"{row.uniform[measure]:.4f}" for measure in _MEASURES for _ in range(2)]
        body.append([f"{row.epsilon:g}", "uniform, without data", *cells, f"{row.uniform['tv']:.4f}"])
    return html_table(head, body, texts=2)
