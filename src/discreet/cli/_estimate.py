"""`discreet estimate`: the population behind a table of private samples, with how wrong it can be."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import plots
from discreet._files import check_apart
from discreet._tables._coding import Coding
from discreet._tables._formats import STANDARD
from discreet._tables._outputs import format_of
from discreet._tables._sources import Source, file_source, is_among_inputs, open_source
from discreet.agreement import Agreement, ContinuousTerms
from discreet.cli import _estimated as estimated
from discreet.cli._agreed import agreement_of
from discreet.cli._options import Nulls, Other, client_option, labels_option, stated_domain, value_option
from discreet.cli._printing import plain, say, write_json
from discreet.errors import DiscreetError, check_count
from discreet.estimation import Liars, Population, population
from discreet.estimation import liars as what_liars_do
from discreet.estimation._record import notes, record
from discreet.estimation._synthetic import write_rows, write_weighted
from discreet.estimation._tallies import (
    SampleTally,
    agreed_joint_outcomes,
    average_law,
    client_laws,
    coding_and_sampler,
    tally,
    tally_joint,
)
from discreet.mechanisms import JointSampler
from discreet.mechanisms._sampler import AnyFamily, Sampler
from discreet.plots._formats import check_picture
from discreet.plots._labels import promise_label, shorten_name


def estimate(
    source: Annotated[
        str,
        typer.Argument(metavar="IN", help="Samples, as `discreet sample` writes them: a file, a folder, a glob, or -."),
    ],
    agreement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="What they were released under. Parquet and Arrow files of `discreet sample` carry it."
        ),
    ] = None,
    domain: Annotated[Path | None, labels_option(", where the agreement holds only a digest of them")] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="mean, variance, median, quantile:P or at-most:X; may be repeated. Outcomes must be numbers.",
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Bins of a continuous family. [default: 4 to 32, the more the more samples]",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="C", help="Of every interval.")] = 0.95,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Outcomes to list, those with the largest shares first; bins by value. [default: 15, and 32 bins]",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a picture: .png, .svg or .pdf.")] = None,
    synthetic: Annotated[
        str | None,
        typer.Option(
            metavar="OUT",
            help="Write the samples with weights (or --rows of them): linear ones debiased, others as they are.",
        ),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="Write instead so many rows drawn from the estimate.")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(metavar="FILE", help="Raw records, where they may be known: how near is the estimate?")
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Public records of others: also estimate by weights of them that explain the samples."
        ),
    ] = None,
    value: Annotated[str | None, value_option(", in --truth and --examples")] = None,
    client: Annotated[
        str | None, client_option(", in --examples and --truth, where every client then counts the same")
    ] = None,
    other: Other = None,
    nulls: Nulls = "error",
    sample: Annotated[str, typer.Option(metavar="COLUMN", help="The column that holds the samples.")] = "sample",
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="J", help="Every client comes J times, with samples of J rounds: estimate from all of them."
        ),
    ] = None,
    liars: Annotated[
        int | None,
        typer.Option(metavar="M", help="Add intervals that hold although M of the samples are lies."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with every outcome.")] = False,
) -> None:
    """The population's shares and statistics, from one private sample of each client.

    Linear mechanism: unbiased, and intervals are as wide as chance makes them. Optimal and mollifier: several populations can lead
    to the same samples, and an interval holds them all.
    """
    if top is not None:
        check_count("top", top)
    _check_options(rows, synthetic, truth, examples, value, client, other, nulls)
    _check_written(source, agreement, plot, synthetic, rows, truth, examples)
    with open_source(source) as records:
        agreed = agreement_of(records, agreement)
        sampler, tallied = _tallied(records, agreed, stated_domain(domain, None, None, None), sample, rounds)
    if agreed.joint is not None and (examples is not None or (synthetic is not None and rows is None)):
        raise DiscreetError(
            f"agreement {agreed.id[:12]} is on {agreed.joint.samples} samples of each client drawn at once; --examples, and --synthetic "
            "without --rows N, are for one sample of each client: leave them out, or say --rows N"
        )
    public = _public(examples, Coding(tallied.coding.domain, other, nulls), value, client)
    if tallied.rows is None:
        found = population(sampler, counts=tallied.counts, bins=bins, examples=public, confidence=confidence)
    else:
        found = population(sampler, samples=tallied.rows, rounds=rounds, examples=public, confidence=confidence)
    coding = replace(tallied.coding, domain=found.domain)
    statistics = [found.statistic(name) for name in statistic or ()]
    known = _truth(truth, replace(coding, other=other, nulls=nulls), value, client)
    doubts = notes(found, agreed, named=tallied.named, distinct=tallied.distinct)
    if synthetic is not None and not found.exact:
        doubts.append(
            "the synthetic table is not debiased: these samples do not tell the average client exactly, so it has the shares of the samples; "
            "only samples of the linear mechanism can be debiased"
        )
    lies = None if liars is None else _lies(found, liars)
    said = record(found, agreed, doubts, statistics=statistics, truth=known, lies=lies) if json else {}
    blocks: list[Any] = (
        []
        if json
        else estimated.estimate_blocks(
            found, agreed, statistics, known, lies, doubts, top, by_client=client is not None
        )
    )
    if synthetic is not None:  # whole or not at all, so first
        _write_synthetic(found, coding, source, synthetic, rows, sample)
    if plot is not None:
        _draw(found, agreed, known, plot, estimated.TOP if top is None else top)
    if json:
        write_json(said)
        return
    written = [str(path) for path in (plot, synthetic) if path is not None]
    if written:
        blocks.append("Written: " + plain(", ".join(written)))
    say(*blocks)


def _tallied(
    records: Source, agreed: Agreement, domain: Any, sample: str, rounds: int | None
) -> tuple[Sampler[AnyFamily] | JointSampler, SampleTally]:
    """The sampler agreed on, and what it released."""
    if agreed.joint is None:
        coding, sampler = coding_and_sampler(agreed, domain)
        return sampler, tally(records, agreed, coding, sample=sample, rounds=_rounds(rounds, agreed))
    if rounds is not None:
        raise DiscreetError(
            f"--rounds is for samples that were released one at a time; agreement {agreed.id[:12]} is on {agreed.joint.samples} of each "
            "client drawn at once: leave it out, and estimate one round at a time"
        )
    coding, joint = agreed_joint_outcomes(agreed, domain)
    return joint, tally_joint(records, agreed, coding, samples=agreed.joint.samples, sample=sample)


def _rounds(rounds: int | None, agreed: Agreement) -> int:
    """How many samples of each client there are."""
    if rounds is None:
        return 1
    if isinstance(agreed.family, ContinuousTerms):
        raise DiscreetError(
            "--rounds is for outcomes that can be listed; estimate one round of a continuous family at a time"
        )
    return check_count("--rounds", rounds, most=agreed.rounds, fix=f"the agreement has {agreed.rounds:,}")


def _lies(found: Population, number: int) -> Liars:
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
    """What does not go together, before anything is read or written."""
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
    """What cannot be written, or would replace what is read, before anything is."""
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
    """The laws of the public examples."""
    if examples is None:
        return None
    assert value is not None
    assert client is not None
    return client_laws(file_source(examples), coding, value=value, client=client)


def _write_synthetic(
    found: Population, coding: Coding, source: str, output: str, rows: int | None, sample: str
) -> None:
    if rows is None:
        write_weighted(found, file_source(source), coding, output, sample=sample)
    else:
        write_rows(found, coding, output, rows)


def _draw(found: Population, agreed: Agreement, known: Any, path: Path, top: int) -> None:
    of = f"{found.clients:,} private samples {promise_label(agreed.promise, agreed.epsilon)}"
    title = f"{shorten_name(agreed.purpose, 60)}: {of}" if agreed.purpose else None
    plots.save(plots.population(found, truth=known, most=top, title=title), path)
