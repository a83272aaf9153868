"""`discreet estimate`: the population behind a table of private samples, with how wrong it can be."""

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from discreet.agreement import Agreement
from discreet.cli.printing import counted, json_number, number, plain, say, table, write_json
from discreet.errors import DiscreetError, check_count
from discreet.files import check_apart
from discreet.tables.formats import STANDARD

if TYPE_CHECKING:
    from discreet.estimation import Estimate, Population, Reweighted
    from discreet.estimation.fidelity import Fidelity
    from discreet.tables.domains import Domain
    from discreet.tables.sources import Source


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
    domain: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The labels, where the agreement holds a digest of them only.")
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="mean, variance, median, quantile:P or at-most:X; may be repeated. Outcomes must be numbers.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="C", help="Of every interval.")] = 0.95,
    top: Annotated[int, typer.Option(metavar="N", help="Outcomes to list, those with the largest shares first.")] = 15,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a picture: .png, .svg or .pdf.")] = None,
    synthetic: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write the samples with weights that debias them (or --rows of them)."),
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
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="What, in --truth and --examples.")] = None,
    client: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Who, in --examples and --truth, where every client then counts the same."),
    ] = None,
    sample: Annotated[str, typer.Option(metavar="COLUMN", help="The column that holds the samples.")] = "sample",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with every outcome.")] = False,
) -> None:
    """The population's shares and statistics, from one private sample of each client.

    Linear mechanism: unbiased, and intervals are as wide as chance makes them. Optimal and mollifier: several populations can lead
    to the same samples, and an interval holds them all.
    """
    from discreet.estimation import population
    from discreet.estimation.tallies import agreed_outcomes, tally
    from discreet.tables.domains import Cells, read_labels
    from discreet.tables.inputs import file_source, standard_input

    check_count("top", top)
    _check_options(rows, synthetic, truth, examples, value, client)
    _check_written(source, agreement, plot, synthetic, rows, truth, examples)
    with standard_input(None) if source == STANDARD else nullcontext(file_source(source)) as records:
        agreed = _agreed(records, agreement)
        outcomes, sampler = agreed_outcomes(agreed, None if domain is None else read_labels(domain))
        tallied = tally(records, agreed, outcomes, sample=sample)
    edges = tallied.domain.edges if isinstance(tallied.domain, Cells) else None
    public = _public(examples, tallied.domain, value, client)
    found = population(sampler, counts=tallied.counts, edges=edges, examples=public, confidence=confidence)
    statistics = [found.statistic(name) for name in statistic or ()]
    known = _truth(truth, tallied.domain, value, client)
    doubts = [*_doubts(agreed, named=tallied.named, distinct=tallied.distinct), *found.doubts]
    record = _record(found, agreed, statistics, known, doubts) if json else {}
    blocks: list[Any] = (
        [] if json else _told(found, agreed, statistics, known, doubts, top, by_client=client is not None)
    )
    if synthetic is not None:  # whole or not at all, so first
        _write_synthetic(found, tallied.domain, source, synthetic, rows, sample)
    if plot is not None:
        _draw(found, agreed, known, plot, top)
    if json:
        write_json(record)
        return
    written = [str(path) for path in (plot, synthetic) if path is not None]
    if written:
        blocks.append("Written: " + plain(", ".join(written)))
    say(*blocks)


def _told(
    found: "Population",
    agreed: Agreement,
    statistics: list["Estimate"],
    known: Any,
    doubts: list[str],
    top: int,
    *,
    by_client: bool,
) -> list[Any]:
    """What people read."""
    notes = [f"[bold red]Note[/bold red]: {plain(doubt)}." for doubt in doubts]
    blocks: list[Any] = [_headline(found, agreed), *notes, _shares(found, known, top)]
    if len(found.counts) > top:
        blocks.append(f"{len(found.counts) - top:,} more outcomes: --top, --json.")
    if statistics:
        blocks.append(_statistics(statistics, found))
    blocks.append(_reading(found, agreed))
    if found.reweighted is not None:
        blocks.append(_resting(found.reweighted))
    if known is not None:
        truth = "average client" if by_client else "average of all records (with --client: the average client)"
        blocks += [f"[bold]How near[/bold]: from the true {truth} to", _fidelities(found, known)]
    return [*blocks, _choice(found)]


def _doubts(agreed: Agreement, *, named: bool, distinct: bool) -> list[str]:
    """What the records themselves leave open."""
    said = []
    if not named:
        said.append("the records do not say which agreement they were made under; this one is taken on trust")
    if not distinct:
        rounds = f" (the agreement has {agreed.rounds:,} rounds: estimate one at a time)" if agreed.rounds > 1 else ""
        said.append(f"the records do not name their clients; that each of them is another's is taken on trust{rounds}")
    return said


def _check_options(
    rows: int | None,
    synthetic: str | None,
    truth: str | None,
    examples: str | None,
    value: str | None,
    client: str | None,
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
    if client is not None and truth is None and examples is None:
        raise DiscreetError("--client names a column of --truth FILE or --examples FILE; give that too")


def _agreed(records: "Source", agreement: Path | None) -> Agreement:
    """The agreement of a file of its own, or the one that the samples carry."""
    if agreement is not None:
        return Agreement.read(agreement)
    if records.agreement is None:
        raise DiscreetError(
            f"{records.name} does not carry the agreement that its samples were released under; give --agreement FILE (as `discreet agree` "
            "or `discreet sample --write-agreement` wrote it)"
        )
    return Agreement.from_json(records.agreement)


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
    from discreet.tables.inputs import reads
    from discreet.tables.outputs import format_of

    if plot is not None:
        from discreet.plots.style import check_picture

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
        if read is not None and read != STANDARD and reads(read, synthetic):
            raise DiscreetError(f"--synthetic {synthetic} would replace what {read} holds; name another file")


def _truth(truth: str | None, domain: "Domain", value: str | None, client: str | None) -> Any:
    from discreet.estimation.tallies import average_law
    from discreet.tables.inputs import file_source

    if truth is None:
        return None
    assert value is not None
    return average_law(file_source(truth), domain, value=value, client=client)


def _public(examples: str | None, domain: "Domain", value: str | None, client: str | None) -> Any:
    """The laws of the public examples."""
    from discreet.estimation.tallies import client_laws
    from discreet.tables.inputs import file_source

    if examples is None:
        return None
    assert value is not None
    assert client is not None
    return client_laws(file_source(examples), domain, value=value, client=client)


def _write_synthetic(
    found: "Population", domain: "Domain", source: str, output: str, rows: int | None, sample: str
) -> None:
    from discreet.estimation.synthetic import write_rows, write_weighted
    from discreet.tables.inputs import file_source

    if rows is None:
        write_weighted(found, file_source(source), domain, output, sample=sample)
    else:
        write_rows(found, domain, output, rows)


def _headline(found: "Population", agreed: Agreement) -> str:
    return (
        f"[bold]{counted(found.clients, 'sample')}[/bold], {agreed.mechanism} on {counted(agreed.family.size, 'outcome')}, "
        f"epsilon = {agreed.epsilon:g} (agreement {agreed.id[:12]})."
    )


def _percent(found: "Population") -> str:
    return f"{100 * found.confidence:g} %"


def _shares(found: "Population", known: Any, top: int) -> Table:
    law = found.law
    columns = [
        "share, %" if found.exact else "samples, %",
        f"{_percent(found)} interval",
        f"all {len(found.counts):,} at once",
    ]
    if found.exact:
        columns.append("nearest")
    if found.reweighted is not None:
        columns.append("by examples")
    if known is not None:
        columns.append("truth")
    made = table("outcome", *columns)
    for place in np.argsort(-(law.estimate if known is None else known), kind="stable")[:top].tolist():
        cells = [_share(law.estimate[place]), _between(law.low[place], law.high[place])]
        cells.append(_between(law.all_low[place], law.all_high[place]))
        if found.exact:
            cells.append(_share(found.nearest[place]))
        if found.reweighted is not None:
            cells.append(_share(found.reweighted.law[place]))
        if known is not None:
            cells.append(_share(known[place]))
        made.add_row(plain(found.outcomes.names[place], most=200), *cells)
    return made


def _share(value: float) -> str:
    return f"{100 * value:.2f}" if value == 0.0 or abs(value) >= 1e-4 else f"{100 * value:.1e}"


def _between(low: float, high: float) -> str:
    return f"{_share(low)} to {_share(high)}"


def _statistics(statistics: list["Estimate"], found: "Population") -> Table:
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


def _reading(found: "Population", agreed: Agreement) -> str:
    if found.exact:
        return (
            "Shares are unbiased estimates of the average client's, and may be negative; the nearest are a distribution, and biased. "
            "Intervals hold the noise of sampling, cover the population these clients were drawn from, and are cut at 0 and 100 %."
        )
    if agreed.family.everybody:
        return (
            "The samples of a designed mechanism are biased towards its reference: their shares are off by at most the mean TV between a "
            "client and its sample, which `discreet design` states for its examples. An interval assumes nothing about these clients, and so "
            "says little."
        )
    who = " of clients inside the band agreed on" if agreed.family.kind == "band" else ""
    return (
        f"The average client cannot be told exactly from these samples, however many: an interval holds every population{who} that "
        "could have given them. The shares among the samples themselves are one of these. (The worst-case TV alone would allow them "
        f"to be off by +-{found.largest_bias:.2g}.)"
    )


def _resting(found: "Reweighted") -> str:
    return (
        f"[bold]By examples[/bold]: the average of {counted(len(found.weights), 'public example')}, weighted so as to explain the samples "
        f"(the examples themselves count like {found.pull:,.0f} samples). It rests on the examples: what none of them is like is not in it, "
        "and the intervals do not speak of it."
    )


def _choice(found: "Population") -> str:
    """When to choose which mechanism, in the numbers of this agreement."""
    from discreet.estimation import outlook
    from discreet.families import Band
    from discreet.mechanisms import LinearSampler, OptimalSampler

    sampler = found.sampler
    if isinstance(sampler.family, Band) and sampler.family.everybody:
        return (
            "[bold]Which mechanism[/bold]: a designed one where each sample should look like its own client, linear (without a design) to "
            "learn the population."
        )
    kinds = {kind.name: kind for kind in (LinearSampler, OptimalSampler)}
    promised = {
        name: outlook(
            kind(sampler.family, epsilon=sampler.epsilon),
            mechanism=name,
            clients=found.clients,
            confidence=found.confidence,
        )
        for name, kind in kinds.items()
    }
    risk = float(OptimalSampler(sampler.family, epsilon=sampler.epsilon).risk("tv"))
    return (
        f"[bold]Which mechanism[/bold]: linear to learn the population (here a share to +-{promised['linear'].at_worst:.2g} at worst, "
        f"where optimal leaves +-{promised['optimal'].at_worst:.2g}), optimal where each sample should look like its own client (TV at most "
        f"{risk:.2g} for both; optimal serves every client at least as well)."
    )


def _fidelities(found: "Population", known: Any) -> Table:
    distance = [] if found.outcomes.values is None else ["Wasserstein"]
    made = table("", "TV", "KL", "sq. Hellinger", "share off", *distance)
    for name, each in _compared(found, known).items():
        parts = [each.tv, each.kl, each.hellinger, each.largest]
        made.add_row(name, *map(number, parts if each.wasserstein is None else [*parts, each.wasserstein]))
    return made


def _compared(found: "Population", known: Any) -> dict[str, "Fidelity"]:
    from discreet.estimation.fidelity import fidelity

    laws = {"the samples": found.released.estimate}
    if found.exact:
        laws["the nearest law"] = found.nearest
    if found.reweighted is not None:
        laws["the weighted examples"] = found.reweighted.law
    return {name: fidelity(known, law, found.outcomes) for name, law in laws.items()}


def _record(
    found: "Population", agreed: Agreement, statistics: list["Estimate"], known: Any, doubts: list[str]
) -> dict[str, Any]:
    shares = []
    for place in range(len(found.counts)):
        row: dict[str, Any] = {"outcome": found.outcomes.names[place], "samples": int(found.counts[place])}
        for name, part in (("released", found.released), ("law", found.law)):
            row[name] = {key: float(ends[place]) for key, ends in vars(part).items()}
        if found.exact:
            row["nearest"] = float(found.nearest[place])
        if found.reweighted is not None:
            row["reweighted"] = float(found.reweighted.law[place])
        if known is not None:
            row["truth"] = float(known[place])
        shares.append(row)
    record: dict[str, Any] = {
        "samples": found.clients,
        "agreement": agreed.id,
        "mechanism": agreed.mechanism,
        "epsilon": agreed.epsilon,
        "confidence": found.confidence,
        "identifiable": found.exact,
        "largest_bias_of_samples": found.largest_bias,
        "shares": shares,
        "statistics": [asdict(each) for each in statistics],
        "notes": doubts,
    }
    if found.reweighted is not None:
        record["reweighted"] = {
            "examples": len(found.reweighted.weights),
            "counting_as_samples": found.reweighted.pull,
            "gap": found.reweighted.gap,
            "strain": json_number(found.reweighted.strain),
        }
    if known is not None:
        record["fidelity"] = {
            name: {key: None if part is None else json_number(part) for key, part in asdict(each).items()}
            for name, each in _compared(found, known).items()
        }
    return record


def _draw(found: "Population", agreed: Agreement, known: Any, path: Path, top: int) -> None:
    from discreet import plots
    from discreet.plots.labels import short
    from discreet.plots.style import legible

    purpose = legible(short(agreed.purpose, 60), "")
    of = f"{found.clients:,} private samples at ε = {agreed.epsilon:g}"
    title = f"{purpose}: {of}" if purpose else f"The population behind {of}"
    plots.save(plots.population(found, truth=known, most=top, title=title), path)
