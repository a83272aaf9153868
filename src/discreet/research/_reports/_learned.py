"""What the records of designs learned privately say, and those of the population behind designed samples."""

import html
import statistics
from collections.abc import Sequence

from discreet.research._reports._pages import STYLE, html_table
from discreet.research.experiments._learned import LearnedRun
from discreet.research.experiments._records import RecordedRun
from discreet.research.experiments._reweighted import ReweightedSet

Table = tuple[list[str], list[list[str]]]
Finding = tuple[str, str]

ESTIMATES = {
    "samples": "samples as they are",
    "reweighted": "examples reweighted",
    "debiased": "samples, debiased by them",
    "examples": "examples, nobody asked",
    "subset": "subset selection",
    "unary": "unary encoding",
    "hashing": "local hashing",
}
_TAUGHT = 1.0  # the smallest epsilon that a few thousand clients are expected to teach much at


def learned_table(rows: Sequence[LearnedRun], times: int = 1) -> Table:
    """The share of the gap that was closed, mean over the orders of clients: a line for each set, a column for each budget."""
    those = [row for row in rows if row.times == times]
    budgets = sorted({row.epsilon for row in those})
    body = []
    for name in dict.fromkeys(row.set for row in those):
        mine = [row for row in those if row.set == name]
        cells = [f"{statistics.fmean(row.gap_share for row in mine if row.epsilon == e):.0%}" for e in budgets]
        body.append([f"{mine[0].title} (n = {mine[0].clients:,})", *cells])
    return ["set", *(f"ε = {epsilon:g}" for epsilon in budgets)], body


def learned_findings(rows: Sequence[LearnedRun]) -> list[Finding]:
    """How much of the gap is closed, where nothing is, and how much was ever lost."""
    said = []
    for times in sorted({row.times for row in rows}):
        those = [row for row in rows if row.times == times]
        cases: dict[tuple[str, float], list[LearnedRun]] = {}
        for row in those:
            cases.setdefault((row.set, row.epsilon), []).append(row)
        closed = {case: statistics.fmean(row.gap_share for row in mine) for case, mine in cases.items()}
        taught = [share for (_, epsilon), share in closed.items() if epsilon >= _TAUGHT]
        stayed = sum(not any(batch.published for row in mine for batch in row.batches) for mine in cases.values())
        worst = max(those, key=lambda row: row.worse)
        median = f"the median over ε ≥ {_TAUGHT:g} is {statistics.median(taught):.0%}, " if taught else ""
        said.append(
            (
                "Each client speaks once." if times == 1 else f"With {times} times as many clients.",
                f"Of the gap between the better of Q* and the mollifier and the certified floor, {median}over all {len(closed)} cases "
                f"{statistics.median(closed.values()):.0%}; in {stayed} of them no design was ever published. The largest loss against the "
                f"better of the two in any of {len(those)} runs is {max(worst.worse, 0.0):.2%} ({worst.title}, ε = {worst.epsilon:g}).",
            )
        )
    return said


def reweighted_table(rows: Sequence[ReweightedSet], drawn: str) -> Table:
    """TV errors by estimate: a line for each set and budget."""
    body = [
        [row.title, f"{row.epsilon:g}", *(f"{row.errors[name].mean:.3f}" for name in ESTIMATES)]
        for row in rows
        if row.drawn == drawn
    ]
    return ["set", "ε", *ESTIMATES.values()], body


def reweighted_findings(rows: Sequence[ReweightedSet]) -> list[Finding]:
    """Who is closer to the served clients' average than the best oracle is."""
    said = []
    for drawn, headline in (
        ("random", "Examples like the clients."),
        ("skewed", "Examples unlike the clients."),
    ):
        those = [row for row in rows if row.drawn == drawn]
        if not those:
            continue
        won = {
            name: sum(_beats(row, name, "subset") for row in those) for name in ("samples", "reweighted", "debiased")
        }
        alone = sum(_beats(row, "examples", "reweighted") for row in those)
        said.append(
            (
                headline,
                f"Designed samples beat subset selection in {won['samples']} of {len(those)} cases as they are, in {won['reweighted']} "
                f"when the examples are reweighted to explain them, and in {won['debiased']} when the bias of these is taken off the "
                f"samples. The examples alone, without asking anybody, are closer than reweighted in {alone}.",
            )
        )
    return said


def _beats(row: ReweightedSet, name: str, other: str) -> bool:
    return row.errors[name].mean < row.errors[other].mean


def learned_page(learned: RecordedRun[LearnedRun], reweighted: RecordedRun[ReweightedSet]) -> str:
    """Both as one self-contained page."""
    header = learned.header
    said = [*learned_findings(learned.rows), *reweighted_findings(reweighted.rows)]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>discreet: designs learned privately</title>",
        f"<style>{STYLE}</style><h1>Designs learned privately, and what their samples tell</h1>",
        f"<p>By discreet {html.escape(header.version)}: {html.escape(header.computes)}.</p>",
        "<p class='quick'>QUICK RUN: one set, one budget.</p>" if header.quick else "",
        "<h2>Findings</h2><ol>",
        *(f"<li><b>{html.escape(headline)}</b> {html.escape(text)}</li>" for headline, text in said),
        "</ol>",
    ]
    for times in sorted({row.times for row in learned.rows}):
        parts += [
            f"<h2>Share of the gap that was closed, {times} times the clients</h2>",
            html_table(*learned_table(learned.rows, times), rule_on=None),
        ]
    for drawn in dict.fromkeys(row.drawn for row in reweighted.rows):
        parts += [
            f"<h2>TV from the estimate to the average served client, {html.escape(drawn)} examples</h2>",
            html_table(*reweighted_table(reweighted.rows, drawn), texts=2),
        ]
    return "\n".join(parts) + "</html>\n"
