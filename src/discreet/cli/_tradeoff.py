"""`discreet tradeoff`, `discreet account` and `discreet explore`: the cost of privacy, before any data is touched.

`tradeoff` computes the worst-case divergence at an epsilon, and the smallest epsilon that reaches a target. `account` computes the total
loss of several samples of one client, and the gain of shuffling. `explore` serves a page to try both.
"""

import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table

from discreet import divergences, plots
from discreet._base.files import atomic_write
from discreet._base.showing import json_number_or_null, pluralise
from discreet.accounting import BoxProfile, compose, epsilon_from_renyi, epsilon_per_sample, shuffled_epsilon
from discreet.cli._options import JsonOutput, Lower, Upper, family_from_options, flag_option, value_option
from discreet.cli._printing import empty_table, format_number, print_json_or_text, safe_text, table_of_records
from discreet.design import minimax_risk
from discreet.errors import DiscreetError, ImpossibleError, check_count
from discreet.families import Band, Simplex
from discreet.mechanisms import MollifierSampler, OptimalSampler, epsilon_for, mollifier_epsilon_reaching_risk, nu_for
from discreet.plots import USUAL_DIVERGENCES, divergence_label
from discreet.privacy import Approximate, Gaussian, Privacy, Pure
from discreet.privacy.tradeoff import Risk
from discreet.research import Explorer, explorer_page


@dataclass(frozen=True)
class RiskRow:
    """The worst cases of one divergence at one budget, an epsilon or a nu of Gaussian privacy.

    They are the smallest possible, the optimal sampler's and, for an epsilon, the baseline's.
    """

    budget: float
    divergence: str
    optimal: Risk
    attained_risk: Risk
    mollifier: Risk | None = None

    @property
    def baseline_ratio(self) -> float:
        """The baseline's worst case divided by the optimal sampler's; infinite if only the latter is 0."""
        assert self.mollifier is not None
        ours, theirs = float(self.attained_risk), float(self.mollifier)
        return theirs / ours if 0.0 < ours < float("inf") else float("inf") if theirs > ours else 1.0


@dataclass(frozen=True)
class BudgetRow:
    """The smallest epsilon that keeps one divergence at a target, for both mechanisms, and the smallest nu; None if unknown."""

    divergence: str
    risk: float
    optimal: float
    mollifier: float
    nu: float | None


def print_tradeoff(
    outcomes: Annotated[int, value_option("K", "Number of outcomes.")],
    epsilon: Annotated[
        list[str] | None,
        value_option(
            "E | LOW:HIGH:COUNT",
            "Privacy budget; may be repeated. A range is COUNT values from LOW to HIGH, evenly spaced in ratio.",
        ),
    ] = None,
    delta: Annotated[float, value_option("D", "The optimal sampler promises (epsilon, delta)-LDP.")] = 0.0,
    nu: Annotated[
        list[float] | None, value_option("NU", "Also Gaussian privacy with this nu; may be repeated.")
    ] = None,
    divergence: Annotated[
        list[str] | None,
        value_option("NAME", "kl, tv, hellinger, chi2, alpha:0.5, ...; may be repeated. [default: the first four]"),
    ] = None,
    risk: Annotated[
        float | None, value_option("R", "Also find the smallest epsilon whose worst case is at most this.")
    ] = None,
    lower: Lower = None,
    upper: Upper = None,
    bracket: Annotated[
        bool,
        flag_option(
            "--bracket",
            "Where the formula is only an upper bound (--lower, --upper), find the smallest worst case from both sides.",
        ),
    ] = False,
    json: Annotated[bool, flag_option("--json", "Print JSON; null stands for infinite.")] = False,
    plot: Annotated[Path | None, value_option("FILE", "Draw the curves to a .png, .svg or .pdf file.")] = None,
) -> None:
    """Print the exact privacy-utility trade-off on k outcomes, beside the mollifier baseline.

    The trade-off is the worst-case divergence from a client's distribution to its output distribution. --risk asks the reverse question.
    """
    if not epsilon and not nu and risk is None:
        raise DiscreetError(
            "tradeoff needs --nu or --epsilon (what does it cost?) or --risk (which epsilon does it take?)"
        )
    if plot is not None and not epsilon:
        raise DiscreetError("--plot draws the worst case against epsilon; give a range such as --epsilon 0.1:10:50")
    if plot is not None and (delta or nu):
        raise DiscreetError("--plot draws curves of pure epsilon; leave out --delta and --nu")
    if bracket and (delta or nu):
        raise DiscreetError("--bracket is for pure epsilon; leave out --delta and --nu")
    family = family_from_options(outcomes, lower, upper)
    names = [divergences.divergence(name).name for name in divergence or USUAL_DIVERGENCES]
    rows = []
    for budget in _parse_epsilons(epsilon or ()):
        privacy = Approximate(budget, delta=delta) if delta else Pure(budget)
        for name in names:
            baseline = MollifierSampler(family, epsilon=budget).risk(name)
            rows.append(_compute_risk_row(family, privacy, budget, name, baseline, bracket=bracket))
    gaussian = [
        _compute_risk_row(family, Gaussian(budget), budget, name, None) for budget in nu or () for name in names
    ]
    targets = [] if risk is None else [_compute_smallest_budgets(family, name, risk, delta) for name in names]
    if plot is not None:
        title, budgets = f"Worst-case divergence: {_family_text(family)}", sorted({row.budget for row in rows})
        distinct_names = list(dict.fromkeys(names))
        plots.save(
            plots.tradeoff(family, epsilon=budgets, divergences=distinct_names, bracket=bracket, title=title), plot
        )
    print_json_or_text(
        _tradeoff_json_record(family, rows, targets, gaussian, delta),
        *_tradeoff_text_blocks(family, rows, targets, gaussian, delta),
        *([f"Picture: {safe_text(plot)}"] if plot else []),
        json=json,
    )


_MOST_IN_RANGE = 10_000


def _parse_epsilons(texts: Sequence[str]) -> list[float]:
    """Every given epsilon, in order: numbers as they are, LOW:HIGH:COUNT as a geometric range."""
    epsilons: list[float] = []
    for text in texts:
        try:
            low, *more = (float(part) for part in text.split(":"))
            high, count = more or (low, 1.0)
        except ValueError:
            raise DiscreetError(f"--epsilon {text!r} is neither a number nor LOW:HIGH:COUNT, as in 0.1:5:20") from None
        if not more:
            epsilons.append(low)
        elif 0.0 < low < high < float("inf") and 2 <= count <= _MOST_IN_RANGE and count == int(count):
            epsilons.extend(np.geomspace(low, high, int(count)).tolist())
        else:
            raise DiscreetError(
                f"--epsilon {text!r}: a range needs 0 < LOW < HIGH and a whole COUNT of 2 to {_MOST_IN_RANGE:,}"
            )
    return epsilons


def _compute_risk_row(
    family: Simplex | Band, privacy: Privacy, budget: float, name: str, baseline: Risk | None, *, bracket: bool = False
) -> RiskRow:
    optimal = minimax_risk(family, privacy=privacy, divergence=name, bracket=bracket)
    return RiskRow(budget, name, optimal, OptimalSampler(family, privacy=privacy).risk(name), baseline)


def _compute_smallest_budgets(family: Simplex | Band, name: str, risk: float, delta: float) -> BudgetRow:
    return BudgetRow(
        name,
        risk,
        epsilon_for(family, divergence=name, risk=risk, delta=delta),
        mollifier_epsilon_reaching_risk(family, divergence=name, risk=risk),
        _smallest_nu_for_risk(family, name, risk),
    )


def _smallest_nu_for_risk(family: Simplex | Band, name: str, risk: float) -> float | None:
    try:
        return nu_for(family, divergence=name, risk=risk)
    except ImpossibleError:  # undecided for very rare outcomes; a missing epsilon is reported
        return None


def _family_text(family: Simplex | Band) -> str:
    outcomes = pluralise(family.size, "outcome")
    if isinstance(family, Simplex):
        return f"every distribution on {outcomes}"
    return f"distributions on {outcomes} within {family.bounds.lower:g} to {family.bounds.upper:g} times uniform"


def _tradeoff_text_blocks(
    family: Simplex | Band,
    rows: Sequence[RiskRow],
    targets: Sequence[BudgetRow],
    gaussian: Sequence[RiskRow],
    delta: float,
) -> list[str | Table]:
    blocks: list[str | Table] = []
    if rows:
        blocks += [
            f"How far a sample's distribution is from its client's, at worst:\n{_family_text(family)}.",
            _risk_table(rows, "epsilon"),
        ]
    if gaussian:
        blocks += [f"The same under Gaussian privacy:\n{_family_text(family)}.", _risk_table(gaussian, "nu")]
    if targets:
        blocks += [
            f"Smallest epsilon that keeps the worst case at most {targets[0].risk:g}:\n{_family_text(family)}.",
            _smallest_budgets_table(targets),
        ]
    notes = [f"delta = {delta:g}: optimal is (epsilon, delta)-LDP, the mollifier purely epsilon-LDP"] if delta else []
    others = "sampler with the same promise" if delta or gaussian else "epsilon-LDP sampler"
    blocks.append("\n".join(notes + _column_meaning_lines(family, rows, gaussian, others)))
    return blocks


def _risk_table(rows: Sequence[RiskRow], budget: str) -> Table:
    """Worst cases by divergence and budget; of an epsilon, beside the baseline's."""
    with_attained, with_baseline = _needs_column_of_attained_risk(rows), budget == "epsilon"
    columns = ["divergence", budget, "optimal", *(["attained"] if with_attained else [])]
    table = empty_table(*columns, *(["mollifier", "ratio"] if with_baseline else []))
    for index, row in enumerate(rows):
        cells = [divergence_label(row.divergence), f"{row.budget:.6g}", _risk_text(row.optimal)]
        cells += [_attained_risk_text(row)] if with_attained else []
        if row.mollifier is not None:
            ratio = format_number(row.baseline_ratio, 2) if np.isfinite(row.baseline_ratio) else "-"
            cells += [_risk_text(row.mollifier), ratio]
        table.add_row(*cells, end_section=index + 1 == len(rows) or rows[index + 1].budget != row.budget)
    return table


def _needs_column_of_attained_risk(rows: Sequence[RiskRow]) -> bool:
    """Whether the optimal sampler's worst case differs from the smallest one and needs its own column."""
    return any(_attained_risk_text(row) != _risk_text(row.optimal) for row in rows)


def _attained_risk_text(row: RiskRow) -> str:
    return ("" if row.attained_risk.attained else "<= ") + format_number(float(row.attained_risk))


def _smallest_budgets_table(targets: Sequence[BudgetRow]) -> Table:
    table = empty_table("divergence", "optimal", "mollifier", "difference", "Gaussian nu")
    for row in targets:
        budgets = (row.optimal, row.mollifier, row.mollifier - row.optimal)
        nu = format_number(row.nu)
        table.add_row(divergence_label(row.divergence), *map(format_number, budgets), nu)
    return table


def _risk_text(risk: Risk) -> str:
    if risk.least:
        lower, upper = map(format_number, risk.bracket)
        return upper if lower == upper else f"{lower} to {upper}"
    return ("" if risk.tight else "<= ") + format_number(risk.value)


def _column_meaning_lines(
    family: Simplex | Band, rows: Sequence[RiskRow], gaussian: Sequence[RiskRow], others: str
) -> list[str]:
    if family.decomposable:
        notes = [f"optimal: no {others} has a smaller worst case"]
    elif any(row.optimal.least for row in rows):
        notes = [f"optimal: the smallest worst case of any {others}, certified from both sides"]
    else:
        notes = [
            "optimal: the box that is best where sets of mass alpha cover the space evenly;",
            f"  with alpha = {family.bounds.alpha:.4g} none do here, so values marked <= are upper bounds",
            "  of the smallest worst case, and another sampler can be better (--bracket says how much)",
        ]
    if _needs_column_of_attained_risk(rows) or _needs_column_of_attained_risk(gaussian):
        notes.append("attained: the worst case of the optimal sampler itself")
    notes.append("mollifier: the baseline of Husain et al. around the uniform distribution")
    if _needs_column_of_attained_risk(rows):
        notes.append("ratio: mollifier / attained")
    if any(np.isinf(float(row.optimal)) for row in rows):
        notes.append("infinite: f(0) is, and clients may have disjoint supports; no epsilon helps")
    return notes


def _tradeoff_json_record(
    family: Simplex | Band,
    rows: Sequence[RiskRow],
    targets: Sequence[BudgetRow],
    gaussian: Sequence[RiskRow],
    delta: float,
) -> dict[str, Any]:
    bounds = family.bounds
    other: dict[str, Any] = {"delta": delta} if delta else {}
    if gaussian:
        other["gaussian"] = [{"nu": row.budget, **_risk_row_json_record(row)} for row in gaussian]
    return {
        "family": {"outcomes": family.size, "lower": bounds.lower, "upper": bounds.upper, "alpha": bounds.alpha},
        "risks": [{"epsilon": row.budget, **_risk_row_json_record(row)} for row in rows],
        "budgets": [asdict(row) for row in targets],
        **other,
    }


def _risk_row_json_record(row: RiskRow) -> dict[str, Any]:
    attained_value = json_number_or_null(row.attained_risk.value) if row.attained_risk.attained else None
    record = {"divergence": row.divergence, "optimal": _risk_json_record(row.optimal), "attained": attained_value}
    return record if row.mollifier is None else {**record, "mollifier": _risk_json_record(row.mollifier)}


def _risk_json_record(risk: Risk) -> dict[str, Any]:
    least = {"least": json_number_or_null(risk.least)} if risk.least else {}
    return {"value": json_number_or_null(risk.value), "tight": risk.tight, **least}


USUAL_SAMPLES = (1, 4, 16, 64)


def print_total_privacy_loss(
    epsilon: Annotated[float | None, value_option("E", "Budget of each sample.")] = None,
    outcomes: Annotated[int | None, value_option("K", "Number of outcomes, every distribution on them.")] = None,
    alpha: Annotated[
        float | None, value_option("A", "Instead: the mass of an extreme client's support; 1/K for K outcomes.")
    ] = None,
    samples: Annotated[
        list[int] | None, value_option("N", "Samples of one client; may be repeated. [default: 1 4 16 64]")
    ] = None,
    delta: Annotated[float, value_option("D", "The delta at which the total is stated.")] = 1e-6,
    total: Annotated[
        float | None, value_option("E", "Instead of --epsilon: a budget to be split over the samples.")
    ] = None,
    clients: Annotated[int | None, value_option("N", "Also: one sample of each of N clients, shuffled.")] = None,
    json: JsonOutput = False,
) -> None:
    """Print the exact total loss of several samples of one client, beside simpler sums; --total asks the reverse question."""
    if (epsilon is None) == (total is None):
        raise DiscreetError("account needs either --epsilon (of each sample) or --total (to be split), and not both")
    if (outcomes is None) == (alpha is None):
        raise DiscreetError("account needs either --outcomes K or --alpha A, and not both")
    if outcomes is not None:
        alpha = 1.0 / check_count("outcomes", outcomes)
    assert alpha is not None
    counts = samples or list(USUAL_SAMPLES)
    if total is not None:
        if clients is not None:
            raise DiscreetError("--clients counts one sample of each client; give it with --epsilon, not with --total")
        _print_budget_split(alpha, counts, total, delta, json)
        return
    assert epsilon is not None
    profile = BoxProfile(epsilon=epsilon, alpha=alpha, attained=outcomes is not None)
    rows = [_total_loss_json_row(profile, count, delta) for count in counts]
    epsilon_after_shuffling = None if clients is None else shuffled_epsilon(profile, clients=clients, delta=delta)
    record: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "delta": delta, "samples": rows}
    lines = []
    if epsilon_after_shuffling is not None:
        record["shuffled"] = {"clients": clients, "epsilon": epsilon_after_shuffling}
        lines.append(
            f"One sample of each of {clients:,} clients, shuffled: (epsilon, {delta:g})-DP with epsilon at most "
            f"{format_number(epsilon_after_shuffling)}"
        )
    print_json_or_text(
        record,
        f"Samples at epsilon = {epsilon:g} each, alpha = {alpha:.4g}: together (epsilon, {delta:g})-LDP with epsilon",
        table_of_records(rows, {"samples": "samples", "basic": "basic", "renyi": "Renyi", "composed": "exact"}),
        "exact: two clients reach it"
        if profile.attained
        else "exact: for a reference without atoms; else an upper bound",
        *lines,
        json=json,
    )


def _total_loss_json_row(profile: BoxProfile, samples: int, delta: float) -> dict[str, Any]:
    loss = compose([(profile, samples)])
    by_renyi = epsilon_from_renyi(profile, samples=samples, delta=delta) if delta else loss.largest
    row = {"samples": samples, "basic": loss.largest, "renyi": by_renyi, "composed": loss.epsilon(delta)}
    return {**row, "attained": loss.attained}


def _print_budget_split(alpha: float, counts: list[int], total: float, delta: float, json: bool) -> None:
    rows = [
        {
            "samples": count,
            "basic": total / count,
            "epsilon": epsilon_per_sample(alpha=alpha, samples=count, epsilon=total, delta=delta),
        }
        for count in counts
    ]
    print_json_or_text(
        {"total": total, "alpha": alpha, "delta": delta, "samples": rows},
        f"Epsilon of each sample, so that all are ({total:g}, {delta:g})-LDP together, alpha = {alpha:.4g}:",
        table_of_records(rows, {"samples": "samples", "basic": "basic", "epsilon": "best known"}),
        json=json,
    )


def serve_explorer_page(
    output: Annotated[
        Path | None, value_option("FILE", "Write the page to a new file instead of serving it.", "--output", "-o")
    ] = None,
    port: Annotated[int, value_option("N", "Serve at this port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, flag_option("--browser/--no-browser", "Open a browser.")] = True,
    json: Annotated[bool, flag_option("--json", "Print JSON: the file or the address, and the size in bytes.")] = False,
) -> None:
    """Serve a page on which you change a client's distribution and the budget, and see the privacy, its cost and the estimate of the
    population.

    The page is one file and uses no network. It is served to this machine only until you press Ctrl-C, or written with -o. Its second tab
    explains an agreement file in plain words.
    """
    content = explorer_page()
    size = len(content.encode())
    if output is not None:
        if port:
            raise DiscreetError("--port is where the page is served; leave it out with --output")
        with atomic_write(output, what="page", folders=True) as file:
            file.write(content.encode())
        record = {"file": str(output), "bytes": size}
        print_json_or_text(record, f"wrote {safe_text(output)}; open it in a browser", json=json)
        return
    explorer = Explorer(content, port=port)
    message = f"{explorer.address} (this machine alone; Ctrl-C ends it)"
    print_json_or_text({"address": explorer.address, "bytes": size}, message, json=json)
    if browser:
        webbrowser.open(explorer.address)
    with suppress(KeyboardInterrupt):
        explorer.serve()
