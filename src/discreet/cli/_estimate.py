"""`discreet estimate`: the population behind a table of private samples, with intervals.

The command reads samples, estimates shares and statistics, writes synthetic tables and pictures, and explains the numbers.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from discreet import plots
from discreet._base.files import check_apart
from discreet._base.showing import pluralise
from discreet.agreement import Agreement, ContinuousTerms
from discreet.cli._groups import Asked, estimate_by_group, estimate_change, estimate_stages, refuse_options
from discreet.cli._options import (
    AgreedDomainFile,
    Confidence,
    Nulls,
    Other,
    PictureFile,
    agreement_of,
    argument,
    client_option,
    mechanism_text,
    option,
    promise_text,
    stated_domain,
    switch,
    value_option,
)
from discreet.cli._printing import empty_table, format_number, print_blocks, safe_text, write_json
from discreet.cli._survey import estimate_survey
from discreet.errors import DiscreetError, check_count
from discreet.estimation import (
    MOST,
    Estimate,
    Liars,
    Population,
    ReportedPopulation,
    ReportLiars,
    ReportTally,
    Reweighted,
    SampleTally,
    agreed_joint_outcomes,
    coding_and_sampler,
    law_fidelities,
    liars,
    liars as what_liars_do,
    liars_per_half_interval,
    notes,
    outlook,
    population,
    record,
    reported_population,
    reported_statistic,
    rounds_cost,
    tally,
    tally_joint,
    tally_reports,
    write_rows,
    write_weighted,
)
from discreet.families import Band, Simplex, serves_everybody
from discreet.mechanisms import SERVING, AnyFamily, JointSampler, OptimalSampler, ReportSampler, Sampler
from discreet.plots import check_picture, promise_label, shorten_name
from discreet.tables import (
    STANDARD,
    Coding,
    Source,
    average_law,
    client_laws,
    file_source,
    format_of,
    is_among_inputs,
    open_source,
)

AnyPopulation = Population | ReportedPopulation
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
    notes = [f"[bold red]Note[/bold red]: {safe_text(doubt)}." for doubt in doubts]
    shown = _listed_outcomes(found, known, top)
    ranked = known is None and _is_ranked(found, shown)
    blocks: list[Any] = [_headline(found, agreed), *notes, _shares(found, known, lies, shown, ranked=ranked)]
    if len(found.counts) > len(shown):
        what = "outcomes" if found.finest is None else "bins"
        blocks.append(f"{len(found.counts) - len(shown):,} more {what}: --top, --json.")
    if ranked:
        blocks.append(_ranking_text(found, shown))
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


def _headline(found: AnyPopulation, agreed: Agreement) -> str:
    of = "" if found.rows is None else f" of {pluralise(found.clients, 'client')}"
    kind = mechanism_text(agreed.mechanism, any_client=serves_everybody(found.sampler.family))
    return (
        f"[bold]{pluralise(found.samples, _release_noun(found))}[/bold]{of}, {kind} on {safe_text(agreed.family.description, most=300)}, "
        f"{promise_text(agreed.promise, agreed.epsilon)} (agreement {agreed.id[:12]})."
    )


def _release_noun(found: AnyPopulation) -> str:
    """What one client released."""
    return "report" if isinstance(found, ReportedPopulation) else "sample"


def _percent(found: AnyPopulation) -> str:
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


def _shares(found: AnyPopulation, known: Any, lies: AnyLiars | None, shown: list[int], *, ranked: bool) -> Table:
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
    made = empty_table("outcome" if found.finest is None else "bin", *columns)
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
        made.add_row(safe_text(found.domain.names[place], most=200), *cells)
    return made


def _share(value: float) -> str:
    return f"{100 * value:.2f}" if value == 0.0 or abs(value) >= 1e-4 else f"{100 * value:.1e}"


def _interval_text(low: float, high: float) -> str:
    return f"{_share(low)} to {_share(high)}"


def _statistics(statistics: list[Estimate], found: AnyPopulation) -> Table:
    cells = any(each.blur for each in statistics)
    reported = isinstance(found, ReportedPopulation)  # a share among reports is no share of clients
    columns = [*([] if reported else ["among samples"]), f"{_percent(found)} interval"]
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
    one, who = liars(found), _release_noun(found) if found.rows is None else "client"
    ends = "" if found.exact else f", and an end of the range that is left for it by {_share(one.band_shift)} %"
    return (
        f"[bold]Liars[/bold]: intervals hold chance, not lies. Each {who} that lies, in place of an honest one or added to them, can shift a "
        f"share by {_share(one.shift)} %{ends}{_many_at_once(found)}; {liars_per_half_interval(found):,} can shift it by half the longest "
        "interval. (--liars M: intervals that hold although M of them lie.)"
    )


def _many_at_once(found: AnyPopulation) -> str:
    """What a lie can do beyond one share."""
    return ", those of a whole block of outcomes at once" if isinstance(found, ReportedPopulation) else ""


def _examples_text(found: Reweighted) -> str:
    return (
        f"[bold]By examples[/bold]: the average of {pluralise(len(found.weights), 'public example')}, weighted so as to explain the samples "
        f"(the examples themselves count like {found.pull:,.0f} samples). It depends on the examples: clients "
        f"unlike all of them are not in it, and not in the intervals."
    )


def _choice(found: AnyPopulation) -> str:
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


def _fidelities(found: AnyPopulation, known: Any) -> Table:
    distance = [] if found.domain.values is None else ["Wasserstein"]
    made = empty_table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, each in law_fidelities(found, known).items():
        parts = [each.tv, each.kl, each.hellinger, each.largest]
        made.add_row(name, *map(format_number, parts if each.wasserstein is None else [*parts, each.wasserstein]))
    return made


def estimate(
    sources: Annotated[
        list[str],
        argument(
            "IN...",
            "Samples, as `discreet sample` writes them: a file, a folder, a glob, or -. Several: stages of other clients "
            "each, which are estimated together.",
        ),
    ],
    agreement: Annotated[
        Path | None,
        option("FILE", "The agreement of the samples. Parquet and Arrow files of `discreet sample` carry it."),
    ] = None,
    domain: AgreedDomainFile = None,
    statistic: Annotated[
        list[str] | None,
        option("NAME", "mean, variance, median, quantile:P or at-most:X; may be repeated. Outcomes must be numbers."),
    ] = None,
    bins: Annotated[
        int | None,
        option("N", "Bins of a continuous family. [default: 4 to 32, growing with the samples]"),
    ] = None,
    confidence: Confidence = 0.95,
    top: Annotated[
        int | None,
        option("N", "Outcomes to list, those with the largest shares first; bins by value. [default: 15, and 32 bins]"),
    ] = None,
    plot: PictureFile = None,
    synthetic: Annotated[
        str | None,
        option("OUT", "Write the samples with weights (or --rows of them): linear ones debiased, others as they are."),
    ] = None,
    rows: Annotated[int | None, option("N", "With --synthetic: write N rows drawn from the estimate instead.")] = None,
    truth: Annotated[
        str | None, option("FILE", "Raw records, if available, to measure the error of the estimate.")
    ] = None,
    examples: Annotated[
        str | None,
        option("FILE", "Public records of other clients: also estimate by weighting them to explain the samples."),
    ] = None,
    value: Annotated[str | None, value_option(", in --truth and --examples")] = None,
    client: Annotated[
        str | None,
        client_option(", in --clients-table, --examples and --truth, where every client then counts the same"),
    ] = None,
    other: Other = None,
    nulls: Nulls = "error",
    sample: Annotated[str, option("COLUMN", "The column that holds the samples (reports: report).")] = "sample",
    rounds: Annotated[
        int | None, option("J", "Every client has J samples, of J rounds: estimate from all of them.")
    ] = None,
    liars: Annotated[int | None, option("M", "Add intervals that hold even if M of the samples are lies.")] = None,
    by: Annotated[
        str | None, option("COLUMN", "Estimate each group of clients: a public column of IN, or of --clients-table.")
    ] = None,
    clients_table: Annotated[
        str | None, option("FILE", "With --by: a table with a row for each client, joined by --client COLUMN.")
    ] = None,
    null_groups: Annotated[
        str | None,
        option(
            "error|drop|group",
            "With --by, clients without a group: an error, left out, or a group of their own. [default: error]",
        ),
    ] = None,
    compare: Annotated[
        str | None, option("FILE", "Samples of another time or of other clients: how shares changed from FILE to IN.")
    ] = None,
    numbered: Annotated[
        bool, switch("--numbered", "With several IN: their clients are numbered rows of exports, not names.")
    ] = False,
    json: Annotated[bool, switch("--json", "Print JSON, with every outcome.")] = False,
) -> None:
    """The population's shares and statistics, from one private sample or report of each client.

    Linear mechanism and reports: unbiased, and intervals are as wide as chance makes them. Optimal and mollifier: several populations can
    lead to the same samples, and an interval holds them all.
    """
    source = sources[0]
    if by is not None or compare is not None or len(sources) > 1:
        asked = Asked(source, agreement, domain, statistic or [], bins, confidence, top, plot, sample, json)
        single = {
            "--synthetic": synthetic, "--rows": rows, "--truth": truth, "--examples": examples, "--value": value, "--other": other,
            "--nulls": None if nulls == "error" else nulls, "--rounds": rounds, "--liars": liars,
        }  # fmt: skip
        if len(sources) > 1:
            others = {"--by": by, "--compare": compare, "--client": client, "--clients-table": clients_table}
            more = {"--null-groups": null_groups, "--statistic": statistic, "--bins": bins, "--plot": plot}
            refuse_options("several IN", {**single, **others, **more})
            estimate_stages(asked, sources, numbered=numbered)
            return
        if by is not None:
            refuse_options("--by", {**single, "--compare": compare})
            estimate_by_group(asked, by, clients_table, client, null_groups)
        elif compare is not None:
            refuse_options(
                "--compare",
                {**single, "--client": client, "--clients-table": clients_table, "--null-groups": null_groups},
            )
            estimate_change(asked, compare)
        return
    if numbered:
        raise DiscreetError("--numbered is for several IN, whose clients must not be the same; leave it out")
    if clients_table is not None or null_groups is not None:
        raise DiscreetError("--clients-table and --null-groups are for groups; say which column with --by COLUMN")
    if top is not None:
        check_count("top", top)
    _check_options(rows, synthetic, truth, examples, value, client, other, nulls)
    _check_written(source, agreement, plot, synthetic, rows, truth, examples)
    with open_source(source) as records:
        agreed = agreement_of(records, agreement)
        if agreed.survey is not None:
            refuse_options(
                "a survey",
                {
                    "--domain": domain, "--statistic": statistic or None, "--bins": bins, "--synthetic": synthetic, "--truth": truth,
                    "--examples": examples, "--rounds": rounds, "--liars": liars,
                },
            )  # fmt: skip
            column = "report" if sample == "sample" else sample
            most = TOP if top is None else top
            estimate_survey(records, agreed, column=column, confidence=confidence, top=most, plot=plot, json=json)
            return
        stated = stated_domain(domain, None, None, None)
        tallied: SampleTally | ReportTally
        if agreed.blocks is None:
            sampler, tallied = _count_samples(records, agreed, stated, sample, rounds)
        else:
            _refuse_for_reports(bins, weighted=synthetic is not None and rows is None)
            column = "report" if sample == "sample" else sample
            keep, each = statistic is not None or examples is not None, _rounds(rounds, agreed)
            tallied = tally_reports(records, agreed, stated, column=column, keep=keep, rounds=each)
    if agreed.joint is not None and (examples is not None or (synthetic is not None and rows is None)):
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is on {agreed.joint.samples} samples of each client drawn together; --examples, and --synthetic "
            "without --rows N, are for one sample of each client: leave them out, or say --rows N"
        )
    public = _public(examples, Coding(tallied.coding.domain, other, nulls), value, client)
    found: AnyPopulation
    if isinstance(tallied, ReportTally):
        kept, counted = tallied.reports, tallied.counts
        whole = kept is None or (kept.ndim == 1 and public is None)
        given: dict[str, Any] = {"counts": counted} if whole else {"reports": kept}
        found = reported_population(counted.sampler, examples=public, confidence=confidence, **given)
        statistics = [reported_statistic(found, name, kept) for name in statistic or ()]
    else:
        if tallied.rows is None:
            found = population(sampler, counts=tallied.counts, bins=bins, examples=public, confidence=confidence)
        else:
            found = population(sampler, samples=tallied.rows, rounds=rounds, examples=public, confidence=confidence)
        statistics = [found.statistic(name) for name in statistic or ()]
    coding = replace(tallied.coding, domain=found.domain)
    known = _truth(truth, replace(coding, other=other, nulls=nulls), value, client)
    doubts = notes(found, agreed, named=tallied.named, distinct=tallied.distinct)
    if synthetic is not None and not found.exact:
        doubts.append(
            "the synthetic table is not debiased: these samples do not determine the average client, so it has the "
            "shares of the samples; "
            "only samples of the linear mechanism can be debiased"
        )
    lies = None if liars is None else _lies(found, liars)
    said = record(found, agreed, doubts, statistics=statistics, truth=known, lies=lies) if json else {}
    blocks: list[Any] = (
        []
        if json
        else estimate_blocks(found, agreed, statistics, known, lies, doubts, top, by_client=client is not None)
    )
    if synthetic is not None:  # first: it is written whole or not at all
        _write_synthetic(found, coding, source, synthetic, rows, sample)
    if plot is not None:
        _draw(found, agreed, known, plot, TOP if top is None else top)
    if json:
        write_json(said)
        return
    written = [str(path) for path in (plot, synthetic) if path is not None]
    if written:
        blocks.append("Written: " + safe_text(", ".join(written)))
    print_blocks(*blocks)


def _count_samples(
    records: Source, agreed: Agreement, domain: Any, sample: str, rounds: int | None
) -> tuple[Sampler[AnyFamily] | JointSampler, SampleTally]:
    """The agreed sampler, and the counts of its samples."""
    if agreed.joint is None:
        coding, sampler = coding_and_sampler(agreed, domain)
        return sampler, tally(records, agreed, coding, sample=sample, rounds=_rounds(rounds, agreed))
    if rounds is not None:
        raise DiscreetError(
            f"--rounds is for samples that were released one at a time; agreement {agreed.id[:12]} is on {agreed.joint.samples} of each "
            "client drawn together: leave it out, and estimate one round at a time"
        )
    coding, joint = agreed_joint_outcomes(agreed, domain)
    return joint, tally_joint(records, agreed, coding, samples=agreed.joint.samples, sample=sample)


def _refuse_for_reports(bins: int | None, *, weighted: bool) -> None:
    """What an estimate from reports cannot do, with what to do instead."""
    if bins is not None:
        raise DiscreetError("--bins is for continuous families, which have no reports; leave it out")
    if weighted:
        raise DiscreetError(
            "--synthetic without --rows N writes samples with weights, and a report is no sample; say --rows N for rows from the estimate"
        )


def _rounds(rounds: int | None, agreed: Agreement) -> int:
    """The number of samples of each client."""
    if rounds is None:
        return 1
    if isinstance(agreed.family, ContinuousTerms):
        raise DiscreetError(
            "--rounds is for outcomes that can be listed; estimate one round of a continuous family at a time"
        )
    return check_count("--rounds", rounds, most=agreed.rounds, fix=f"the agreement has {agreed.rounds:,}")


def _lies(found: AnyPopulation, number: int) -> AnyLiars:
    check_count("--liars", number, least=0, most=found.clients, fix=f"there are {found.clients:,} clients")
    return what_liars_do(found, number)


def _check_options(
    rows: int | None,
    synthetic: str | None,
    truth: str | None,
    examples: str | None,
    value: str | None,
    client: str | None,
    other: str | None,
    nulls: str,
) -> None:
    """Raise an error for options that contradict each other, before anything is read or written."""
    if rows is not None:
        if synthetic is None:
            raise DiscreetError("--rows says how many rows --synthetic OUT is to have; give both")
        check_count("rows", rows, most=10**9 - 1)
    if examples is not None and (value is None or client is None):
        raise DiscreetError("--examples FILE needs --client COLUMN and --value COLUMN: who, and what")
    if (truth is None and examples is None) != (value is None):
        raise DiscreetError("--truth FILE and --value COLUMN go together")
    if (client, other, nulls) != (None, None, "error") and truth is None and examples is None:
        raise DiscreetError(
            "--client, --other and --nulls are about rows of --truth FILE or --examples FILE; give that too"
        )


def _check_written(
    source: str,
    agreement: Path | None,
    plot: Path | None,
    synthetic: str | None,
    rows: int | None,
    truth: str | None,
    examples: str | None,
) -> None:
    """Raise an error for outputs that cannot be written or would replace an input, before anything is written."""
    if plot is not None:
        check_picture(plot)
        check_apart(
            plot,
            {
                "samples": source,
                "agreement": agreement,
                "truth": truth,
                "examples": examples,
                "synthetic table": synthetic,
            },
            what="picture",
        )
    if synthetic is None:
        return
    if synthetic == STANDARD:
        raise DiscreetError("--synthetic - would mix with what is printed; name a file")
    format_of(synthetic)
    if source == STANDARD and rows is None:
        raise DiscreetError("weights need a second look at the samples; give a file instead of -, or --rows N")
    for read in (source, None if agreement is None else str(agreement), truth, examples):
        if read is not None and read != STANDARD and is_among_inputs(read, synthetic):
            raise DiscreetError(f"--synthetic {synthetic} would replace what {read} holds; name another file")


def _truth(truth: str | None, coding: Coding, value: str | None, client: str | None) -> Any:
    if truth is None:
        return None
    assert value is not None
    return average_law(file_source(truth), coding, value=value, client=client)


def _public(examples: str | None, coding: Coding, value: str | None, client: str | None) -> Any:
    """The distributions of the public examples."""
    if examples is None:
        return None
    assert value is not None
    assert client is not None
    return client_laws(file_source(examples), coding, value=value, client=client)


def _write_synthetic(
    found: AnyPopulation, coding: Coding, source: str, output: str, rows: int | None, sample: str
) -> None:
    if rows is None:
        assert isinstance(found, Population)  # of reports rows alone are written
        write_weighted(found, file_source(source), coding, output, sample=sample)
    else:
        write_rows(found, coding, output, rows)


def _draw(found: AnyPopulation, agreed: Agreement, known: Any, path: Path, top: int) -> None:
    of = f"{found.clients:,} private {_release_noun(found)}s {promise_label(agreed.promise, agreed.epsilon)}"
    title = f"{shorten_name(agreed.purpose, 60)}: {of}" if agreed.purpose else None
    plots.save(plots.population(found, truth=known, most=top, title=title), path)
    note = plots.fonts_note(found.domain.labels or ())
    if note is not None:
        typer.echo(note, err=True)
