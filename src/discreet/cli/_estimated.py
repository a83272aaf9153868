"""What an estimate says to people."""

from typing import Any

import numpy as np
from rich.table import Table

from discreet._showing import pluralise
from discreet.agreement import Agreement
from discreet.cli import _terms_told as terms_told
from discreet.cli._printing import number, plain, table
from discreet.estimation import Estimate, Liars, Population, Reweighted, liars, outlook, rounds_cost
from discreet.estimation._binning import MOST
from discreet.estimation._liars import liars_per_half_interval
from discreet.estimation._record import law_fidelities
from discreet.families import Band, Simplex
from discreet.families._kinds import serves_everybody
from discreet.mechanisms import JointSampler, LinearSampler, OptimalSampler

TOP = 15  # outcomes to list where nobody says how many


def estimate_blocks(
    found: Population,
    agreed: Agreement,
    statistics: list[Estimate],
    known: Any,
    lies: Liars | None,
    doubts: list[str],
    top: int | None,
    *,
    by_client: bool,
) -> list[Any]:
    """What people read."""
    notes = [f"[bold red]Note[/bold red]: {plain(doubt)}." for doubt in doubts]
    shown = _listed_outcomes(found, known, top)
    ranked = known is None and len(found.counts) > len(shown)  # picked by their estimates, which luck has a part in
    blocks: list[Any] = [_headline(found, agreed), *notes, _shares(found, known, lies, shown, ranked=ranked)]
    if len(found.counts) > len(shown):
        what = "outcomes" if found.finest is None else "bins"
        blocks.append(f"{len(found.counts) - len(shown):,} more {what}: --top, --json.")
    if ranked:
        blocks.append(
            f"Listed are the largest estimates, so their intervals are those that hold for all {len(found.counts):,} at once. The interval "
            "of one outcome alone (--json) holds for an outcome that was named before, not for one that luck has put first."
        )
    if statistics:
        blocks.append(_statistics(statistics, found))
    blocks += [_interval_notes(found), _liars_text(found)]
    if found.reweighted is not None:
        blocks.append(_examples_text(found.reweighted))
    if known is not None:
        truth = "average client" if by_client else "average of all records (with --client: the average client)"
        blocks += [f"[bold]How near[/bold]: from the true {truth} to", _fidelities(found, known)]
    cost = rounds_cost(agreed)
    return [*blocks, _choice(found), *([] if cost is None else [f"[bold]Rounds[/bold]: {cost}."])]


def _headline(found: Population, agreed: Agreement) -> str:
    of = "" if found.rows is None else f" of {pluralise(found.clients, 'client')}"
    kind = terms_told.mechanism_text(agreed.mechanism, everybody=serves_everybody(found.sampler.family))
    return (
        f"[bold]{pluralise(found.samples, 'sample')}[/bold]{of}, {kind} on {agreed.family.description}, "
        f"{terms_told.promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]})."
    )


def _percent(found: Population) -> str:
    return f"{100 * found.confidence:g} %"


def _listed_outcomes(found: Population, known: Any, top: int | None) -> list[int]:
    """Which outcomes are listed: those with the largest shares, the largest first; bins in the order of their values."""
    most = (TOP if found.finest is None else MOST) if top is None else top
    largest: list[int] = np.argsort(-(found.law.estimate if known is None else known), kind="stable")[:most].tolist()
    return largest if found.finest is None else sorted(largest)


def _shares(found: Population, known: Any, lies: Liars | None, shown: list[int], *, ranked: bool) -> Table:
    """The listed outcomes; of those that are `ranked` by their estimates, only intervals that hold after ranking."""
    law, together = found.law, f"all {len(found.counts):,} at once"
    columns = ["share, %" if found.exact else "samples, %"]
    columns += [f"{_percent(found)} interval, {together}"] if ranked else [f"{_percent(found)} interval", together]
    if lies is not None:
        columns.append(f"despite {pluralise(lies.number, 'liar')}")
    if found.exact:
        columns.append("nearest")
    if found.reweighted is not None:
        columns.append("by examples")
    if known is not None:
        columns.append("truth")
    made = table("outcome" if found.finest is None else "bin", *columns)
    for place in shown:
        cells = [_share(law.estimate[place])]
        cells += [] if ranked else [_interval_text(law.low[place], law.high[place])]
        cells.append(_interval_text(law.all_low[place], law.all_high[place]))
        if lies is not None:
            ends = (lies.law.all_low, lies.law.all_high) if ranked else (lies.law.low, lies.law.high)
            cells.append(_interval_text(ends[0][place], ends[1][place]))
        if found.exact:
            cells.append(_share(found.nearest[place]))
        if found.reweighted is not None:
            cells.append(_share(found.reweighted.law[place]))
        if known is not None:
            cells.append(_share(known[place]))
        made.add_row(plain(found.domain.names[place], most=200), *cells)
    return made


def _share(value: float) -> str:
    return f"{100 * value:.2f}" if value == 0.0 or abs(value) >= 1e-4 else f"{100 * value:.1e}"


def _interval_text(low: float, high: float) -> str:
    return f"{_share(low)} to {_share(high)}"


def _statistics(statistics: list[Estimate], found: Population) -> Table:
    cells = any(each.blur for each in statistics)
    columns = ["among samples", f"{_percent(found)} interval"]
    made = table("statistic", *(["estimate"] if found.exact else []), *columns, *(["of it: cells"] if cells else []))
    for each in statistics:
        row = [] if each.estimate is None else [number(each.estimate)]
        row += [number(each.released), f"{number(each.low)} to {number(each.high)}"]
        if cells:
            row.append(f"+-{number(each.blur)}" if each.blur else "")
        made.add_row(plain(each.name), *row)
    return made


def _interval_notes(found: Population) -> str:
    whole = isinstance(found.sampler.family, Simplex)
    if found.exact:
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
        f"The average client cannot be told exactly from these samples, however many: an interval holds every population{who} that "
        "could have given them. The shares among the samples themselves are one of these. (No share is off by more than "
        f"the worst-case TV either, +-{found.largest_bias:.2g} before noise: intervals, like those that `discreet plan` foretells, rest on "
        "bounds for each outcome, and are not cut by it.)"
    )


def _liars_text(found: Population) -> str:
    one, who = liars(found), "sample" if found.rows is None else "client"
    ends = "" if found.exact else f", and an end of the range that is left for it by {_share(one.band_shift)} %"
    return (
        f"[bold]Liars[/bold]: intervals hold chance, not lies. Each {who} that lies, in place of an honest one or added to them, can shift a "
        f"share by {_share(one.shift)} %{ends}; {liars_per_half_interval(found):,} can shift it by half the longest interval. (--liars M: "
        "intervals that hold although M of them lie.)"
    )


def _examples_text(found: Reweighted) -> str:
    return (
        f"[bold]By examples[/bold]: the average of {pluralise(len(found.weights), 'public example')}, weighted so as to explain the samples "
        f"(the examples themselves count like {found.pull:,.0f} samples). It rests on the examples: what none of them is like is not in it, "
        "and the intervals do not speak of it."
    )


def _choice(found: Population) -> str:
    """When to choose which mechanism, in the numbers of this agreement."""
    sampler = found.sampler
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
    kinds = {kind.name: kind for kind in (LinearSampler, OptimalSampler)}
    if not (found.exact or isinstance(sampler.family, Simplex)):
        return (
            "[bold]Which mechanism[/bold]: this one where each sample should look like its own client; linear to learn the population of a "
            "table, agreed on every distribution on outcomes or on the equal cells of an interval (`discreet agree --bounds LO HI --cells "
            "N`), since on a band it is for members alone."
        )
    promised = {
        name: outlook(
            kind(sampler.family, epsilon=sampler.epsilon, how=sampler.how),
            mechanism=name,
            clients=found.clients,
            confidence=found.confidence,
            bins=None if found.finest is None else len(found.counts),
        )
        for name, kind in kinds.items()
    }
    risk = float(OptimalSampler(sampler.family, epsilon=sampler.epsilon).risk("tv"))
    return (
        f"[bold]Which mechanism[/bold]: linear to learn the population (here a share to +-{promised['linear'].at_worst:.2g} at worst, "
        f"where optimal leaves +-{promised['optimal'].at_worst:.2g}), optimal where each sample should look like its own client (TV at most "
        f"{risk:.2g} for both; optimal serves every client at least as well)."
    )


def _fidelities(found: Population, known: Any) -> Table:
    distance = [] if found.domain.values is None else ["Wasserstein"]
    made = table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, each in law_fidelities(found, known).items():
        parts = [each.tv, each.kl, each.hellinger, each.largest]
        made.add_row(name, *map(number, parts if each.wasserstein is None else [*parts, each.wasserstein]))
    return made
