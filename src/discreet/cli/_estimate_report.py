"""The report of `discreet estimate` in words and tables: shares, statistics, and what their intervals hold.

It also says what liars could do, how near an estimate is to a known truth, and which mechanism serves which purpose.
"""

from typing import Any

import numpy as np
from rich.table import Table

from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.cli._options import mechanism_text, promise_text
from discreet.cli._printing import empty_table, format_number, note_lines, safe_text
from discreet.estimation import (
    MOST,
    AnyPopulation,
    Estimate,
    Liars,
    ReportedPopulation,
    ReportLiars,
    Reweighted,
    law_fidelities,
    liars,
    liars_per_half_interval,
    outlook,
    rounds_cost,
)
from discreet.families import Band, Simplex, serves_everybody
from discreet.mechanisms import SERVING, JointSampler, OptimalSampler, ReportSampler

AnyLiars = Liars | ReportLiars
TOP = 15  # outcomes to list where nobody says how many


def estimate_blocks(
    found: AnyPopulation,
    agreed: Agreement,
    statistics: list[Estimate],
    known: Any,
    lies: AnyLiars | None,
    doubts: list[str],
    top: int | None,
    *,
    by_client: bool,
) -> list[Any]:
    """The report as blocks of text."""
    shown = _listed_outcomes(found, known, top)
    ranked = known is None and _is_ranked(found, shown)
    blocks: list[Any] = [
        _headline(found, agreed),
        *note_lines(doubts),
        _share_table(found, known, lies, shown, ranked=ranked),
    ]
    if len(found.counts) > len(shown):
        what = "outcomes" if found.finest is None else "bins"
        blocks.append(f"{len(found.counts) - len(shown):,} more {what}: --top, --json.")
    if ranked:
        blocks.append(_ranking_text(found, shown))
    if statistics:
        blocks.append(_statistics_table(statistics, found))
    blocks += [_interval_notes(found), _liars_text(found)]
    if found.reweighted is not None:
        blocks.append(_examples_text(found.reweighted))
    if known is not None:
        truth = "average client" if by_client else "average of all records (with --client: the average client)"
        blocks += [f"[bold]How near[/bold]: from the true {truth} to", _fidelity_table(found, known)]
    cost = rounds_cost(agreed)
    return [*blocks, _mechanism_advice(found), *([] if cost is None else [f"[bold]Rounds[/bold]: {cost}."])]


def _headline(found: AnyPopulation, agreed: Agreement) -> str:
    of = "" if found.rows is None else f" of {pluralise(found.clients, 'client')}"
    kind = mechanism_text(agreed.mechanism, any_client=serves_everybody(found.sampler.family))
    return (
        f"[bold]{pluralise(found.samples, release_noun(found))}[/bold]{of}, {kind} on {safe_text(agreed.family.description, most=300)}, "
        f"{promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]})."
    )


def release_noun(found: AnyPopulation) -> str:
    """What one client released."""
    return "report" if isinstance(found, ReportedPopulation) else "sample"


def _confidence_text(found: AnyPopulation) -> str:
    return f"{100 * found.confidence:g} %"


def _listed_outcomes(found: AnyPopulation, known: Any, top: int | None) -> list[int]:
    """Which outcomes are listed: those with the largest shares, the largest first; bins in the order of their values."""
    most = (TOP if found.finest is None else MOST) if top is None else top
    largest: list[int] = np.argsort(-(found.law.estimate if known is None else known), kind="stable")[:most].tolist()
    return largest if found.finest is None else sorted(largest)


def _is_ranked(found: AnyPopulation, shown: list[int]) -> bool:
    """Whether outcomes are chosen by their estimates, which are random, or intervals of single ones contradict each other."""
    return len(found.counts) > len(shown) or float(found.law.low[shown].sum()) > 1.0


def _ranking_text(found: AnyPopulation, shown: list[int]) -> str:
    if len(found.counts) == len(shown):
        return (
            "[bold]Ranks[/bold]: this table is sorted by estimate. The intervals of single outcomes have lower ends that add up to more "
            "than 100 %, so the intervals are those that hold for all at once."
        )
    return (
        "[bold]Ranks[/bold]: Listed are the largest estimates, so their intervals are those that hold for all "
        f"{len(found.counts):,} at once, and also for those that chance put first. Their lower ends add up to at most 100 %. An estimate "
        "that ranks first tends to be too high. The interval of one outcome alone (--json) holds for an outcome chosen in advance, not "
        "for one that ranks first."
    )


def _share_table(found: AnyPopulation, known: Any, lies: AnyLiars | None, shown: list[int], *, ranked: bool) -> Table:
    """The listed outcomes; of those that are `ranked` by their estimates, only intervals that hold after ranking."""
    law, together = found.law, f"all {len(found.counts):,} at once"
    columns = ["share, %" if found.exact else "samples, %"]
    columns += (
        [f"{_confidence_text(found)} interval, {together}"]
        if ranked
        else [f"{_confidence_text(found)} interval", together]
    )
    if lies is not None:
        columns.append(f"despite {pluralise(lies.number, 'liar')}")
    if found.exact:
        columns.append("nearest")
    if found.reweighted is not None:
        columns.append("by examples")
    if known is not None:
        columns.append("truth")
    made = empty_table("outcome" if found.finest is None else "bin", *columns)
    for place in shown:
        cells = [_share_text(law.estimate[place])]
        cells += [] if ranked else [_interval_text(law.low[place], law.high[place])]
        cells.append(_interval_text(law.all_low[place], law.all_high[place]))
        if lies is not None:
            ends = (lies.law.all_low, lies.law.all_high) if ranked else (lies.law.low, lies.law.high)
            cells.append(_interval_text(ends[0][place], ends[1][place]))
        if found.exact:
            cells.append(_share_text(found.nearest[place]))
        if found.reweighted is not None:
            cells.append(_share_text(found.reweighted.law[place]))
        if known is not None:
            cells.append(_share_text(known[place]))
        made.add_row(safe_text(found.domain.names[place], most=200), *cells)
    return made


def _share_text(value: float) -> str:
    return f"{100 * value:.2f}" if value == 0.0 or abs(value) >= 1e-4 else f"{100 * value:.1e}"


def _interval_text(low: float, high: float) -> str:
    return f"{_share_text(low)} to {_share_text(high)}"


def _statistics_table(statistics: list[Estimate], found: AnyPopulation) -> Table:
    cells = any(each.blur for each in statistics)
    reported = isinstance(found, ReportedPopulation)  # a share among reports is no share of clients
    columns = [*([] if reported else ["among samples"]), f"{_confidence_text(found)} interval"]
    made = empty_table(
        "statistic", *(["estimate"] if found.exact else []), *columns, *(["of it: cells"] if cells else [])
    )
    for each in statistics:
        row = [] if each.estimate is None else [format_number(each.estimate)]
        row += [
            *([] if reported else [format_number(each.released)]),
            f"{format_number(each.low)} to {format_number(each.high)}",
        ]
        if cells:
            row.append(f"+-{format_number(each.blur)}" if each.blur else "")
        made.add_row(safe_text(each.name), *row)
    return made


def _interval_notes(found: AnyPopulation) -> str:
    whole = isinstance(found.sampler.family, Simplex)
    if isinstance(found, ReportedPopulation) or found.exact:
        cut = "0 and 100 %" if whole else "what clients inside the family can hold"
        return (
            "Shares are unbiased estimates of the average client's, and may be negative; the nearest are a distribution, and biased. "
            f"Intervals hold the noise of sampling, cover the population these clients were drawn from, and are cut at {cut}."
        )
    if serves_everybody(found.sampler.family):
        return (
            "The samples of a designed mechanism are biased towards its reference: their shares are off by at most the mean TV between a "
            "client and its sample (`discreet design --divergence tv` states it for its examples). An interval assumes nothing about these "
            "clients, and so says little."
        )
    who = (
        ""
        if whole
        else f" of clients inside the {'band' if isinstance(found.sampler.family, Band) else 'family'} agreed on"
    )
    return (
        f"No number of these samples determines the average client exactly: an interval covers every "
        f"population{who} that could have given them. The shares among the samples themselves are one of these. (No "
        f"share is off by more than "
        f"the worst-case TV either, +-{found.largest_bias:.2g} before noise: intervals, like those that `discreet plan` foretells, rest on "
        "bounds for each outcome, and are not cut by it.)"
    )


def _liars_text(found: AnyPopulation) -> str:
    one, who = liars(found), release_noun(found) if found.rows is None else "client"
    ends = "" if found.exact else f", and an end of the range that is left for it by {_share_text(one.band_shift)} %"
    others = ", those of a whole block of outcomes at once" if isinstance(found, ReportedPopulation) else ""
    return (
        f"[bold]Liars[/bold]: intervals hold chance, not lies. Each {who} that lies, in place of an honest one or added to them, can shift a "
        f"share by {_share_text(one.shift)} %{ends}{others}; {liars_per_half_interval(found):,} can shift it by half the longest "
        "interval. (--liars M: intervals that hold although M of them lie.)"
    )


def _examples_text(found: Reweighted) -> str:
    return (
        f"[bold]By examples[/bold]: the average of {pluralise(len(found.weights), 'public example')}, weighted so as to explain the samples "
        f"(the examples themselves count like {found.pull:,.0f} samples). It depends on the examples: clients "
        f"unlike all of them are not in it, and not in the intervals."
    )


def _mechanism_advice(found: AnyPopulation) -> str:
    """When to choose which mechanism, in the numbers of this agreement."""
    sampler = found.sampler
    if isinstance(sampler, ReportSampler):
        return (
            "[bold]Which mechanism[/bold]: reports to learn the population and nothing else (here with "
            f"{sampler.excess:.4g} times the least variance of any report); linear where samples are to look like records too, "
            "optimal where each should look like its own client."
        )
    if isinstance(sampler, JointSampler):
        return (
            "[bold]Which mechanism[/bold]: this one where all samples of a client together should look like it; linear, one sample of each "
            "client at the whole budget, to learn the population."
        )
    if serves_everybody(found.sampler.family):
        return (
            "[bold]Which mechanism[/bold]: a designed one where each sample should look like its own client, linear (without a design) to "
            "learn the population."
        )
    if not (found.exact or isinstance(sampler.family, Simplex)):
        return (
            "[bold]Which mechanism[/bold]: this one where each sample should look like its own client; linear to learn the population of a "
            "table, agreed on every distribution on outcomes or on the equal cells of an interval (`discreet agree --bounds LO HI --cells "
            "N`), since on a band it is for members alone."
        )
    promised = {
        name: outlook(
            kind(sampler.family, epsilon=sampler.epsilon, discretisation=sampler.discretisation),
            mechanism=name,
            clients=found.clients,
            confidence=found.confidence,
            bins=None if found.finest is None else len(found.counts),
        )
        for name, kind in SERVING.items()
    }
    risk = float(OptimalSampler(sampler.family, epsilon=sampler.epsilon).risk("tv"))
    return (
        f"[bold]Which mechanism[/bold]: linear to learn the population (here a share to +-{promised['linear'].at_worst:.2g} at worst, "
        f"where optimal leaves +-{promised['optimal'].at_worst:.2g}), optimal where each sample should look like its own client (TV at most "
        f"{risk:.2g} for both; optimal serves every client at least as well)."
    )


def _fidelity_table(found: AnyPopulation, known: Any) -> Table:
    distance = [] if found.domain.values is None else ["Wasserstein"]
    made = empty_table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, each in law_fidelities(found, known).items():
        parts = [each.tv, each.kl, each.hellinger, each.largest]
        made.add_row(name, *map(format_number, parts if each.wasserstein is None else [*parts, each.wasserstein]))
    return made
