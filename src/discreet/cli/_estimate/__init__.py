"""`discreet estimate`: the population behind a table of private samples, with intervals.

The command reads samples, estimates shares and statistics, writes synthetic tables and pictures, and explains the numbers. Samples of a
mechanism of somebody's own are estimated by its matrix, if its law is linear.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet import plots
from discreet._base.files import check_output_path
from discreet._base.showing import confidence_text, pluralise
from discreet.agreement import Agreement, ContinuousTerms
from discreet.cli._estimate._groups import (
    print_change_between_files,
    print_estimate_by_group,
    print_estimate_from_stages,
)
from discreet.cli._estimate._report import TOP, print_survey_estimate, sample_or_report_noun, text_blocks_of_estimate
from discreet.cli._options import (
    AgreedDomainFile,
    Confidence,
    EstimateOptions,
    Nulls,
    Other,
    PictureFile,
    client_column_option,
    domain_from_options,
    flag_option,
    positional_argument,
    privacy_promise_text,
    read_agreement_of_samples,
    refuse_estimate_options_beside,
    value_column_option,
    value_option,
)
from discreet.cli._printing import (
    empty_table,
    notes_as_text_blocks,
    percent_interval_text,
    percent_text,
    print_json,
    print_json_or_text,
    print_text_blocks,
    safe_text,
)
from discreet.domain import Coding
from discreet.errors import DiscreetError, check_count
from discreet.estimation import (
    AnyPopulation,
    InvertedPopulation,
    Population,
    ReportTally,
    SampleTally,
    coding_and_joint_sampler,
    coding_and_sampler,
    inverted_population,
    json_record_of_estimate,
    json_record_of_inverted_estimate,
    liars as liars_of,
    notes_on_estimate,
    notes_on_unverified_records,
    population,
    reported_population,
    reported_statistic,
    tally_joint_samples,
    tally_reports,
    tally_samples,
    write_synthetic_rows,
    write_weighted_samples,
)
from discreet.mechanisms import AnyFamily, JointSampler, OwnSampler, Sampler
from discreet.plots import privacy_label, shorten_name
from discreet.tables import (
    REPLACE_HINT,
    STANDARD,
    Source,
    average_law_of_clients,
    choose_output_format,
    client_laws,
    file_source,
    is_among_inputs,
    open_source,
)

_OF_ONE_FILE = "--synthetic --force --rows --truth --examples --value --other --nulls --rounds --liars"
_NOT_BESIDE = {  # the options that do not go with each kind of estimate
    "several IN": f"{_OF_ONE_FILE} --by --compare --client --clients-table --null-groups --statistic --bins --plot",
    "--by": f"{_OF_ONE_FILE} --compare",
    "--compare": f"{_OF_ONE_FILE} --client --clients-table --null-groups",
    "a survey": "--domain --statistic --bins --synthetic --force --truth --examples --rounds --liars",
    "a mechanism of one's own": "--statistic --bins --synthetic --force --truth --examples --rounds --liars --plot",
}


def print_population_estimate(
    sources: Annotated[
        list[str],
        positional_argument(
            "IN...",
            "Samples, as `discreet sample` writes them: a file, a folder, a glob, or -. Several inputs are stages "
            "with different clients, estimated together.",
        ),
    ],
    agreement: Annotated[
        Path | None,
        value_option("FILE", "The agreement of the samples. Parquet and Arrow files of `discreet sample` carry it."),
    ] = None,
    domain: AgreedDomainFile = None,
    statistic: Annotated[
        list[str] | None,
        value_option(
            "NAME", "mean, variance, median, quantile:P or at-most:X; may be repeated. Outcomes must be numbers."
        ),
    ] = None,
    bins: Annotated[
        int | None,
        value_option("N", "Bins of a continuous family. [default: 4 to 32, growing with the samples]"),
    ] = None,
    confidence: Confidence = 0.95,
    top: Annotated[
        int | None,
        value_option(
            "N", "Outcomes to list, those with the largest shares first; bins by value. [default: 15, and 32 bins]"
        ),
    ] = None,
    plot: PictureFile = None,
    synthetic: Annotated[
        str | None,
        value_option(
            "OUT", "Write the samples with weights (or --rows of them): linear ones debiased, others as they are."
        ),
    ] = None,
    rows: Annotated[
        int | None, value_option("N", "With --synthetic: write N rows drawn from the estimate instead.")
    ] = None,
    force: Annotated[
        bool,
        flag_option("--force", "Replace the file of --synthetic if it exists (never an input, a link or a device)."),
    ] = False,
    truth: Annotated[
        str | None, value_option("FILE", "Raw records, if available, to measure the error of the estimate.")
    ] = None,
    examples: Annotated[
        str | None,
        value_option(
            "FILE", "Public records of other clients: also estimate by weighting them to explain the samples."
        ),
    ] = None,
    value: Annotated[str | None, value_column_option(", in --truth and --examples")] = None,
    client: Annotated[
        str | None,
        client_column_option(", in --clients-table, --examples and --truth, where every client then counts the same"),
    ] = None,
    other: Other = None,
    nulls: Nulls = "error",
    sample: Annotated[str, value_option("COLUMN", "The column that holds the samples (reports: report).")] = "sample",
    rounds: Annotated[
        int | None, value_option("J", "Every client has J samples, of J rounds: estimate from all of them.")
    ] = None,
    liars: Annotated[
        int | None, value_option("M", "Add intervals that hold even if M of the samples are lies.")
    ] = None,
    by: Annotated[
        str | None,
        value_option("COLUMN", "Estimate each group of clients: a public column of IN, or of --clients-table."),
    ] = None,
    clients_table: Annotated[
        str | None, value_option("FILE", "With --by: a table with a row for each client, joined by --client COLUMN.")
    ] = None,
    null_groups: Annotated[
        str | None,
        value_option(
            "error|drop|group",
            "With --by, clients without a group: an error, left out, or a group of their own. [default: error]",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        value_option("FILE", "Samples of another time or of other clients: how shares changed from FILE to IN."),
    ] = None,
    numbered: Annotated[
        bool, flag_option("--numbered", "With several IN: their clients are numbered rows of exports, not names.")
    ] = False,
    json: Annotated[bool, flag_option("--json", "Print JSON, with every outcome.")] = False,
) -> None:
    """The population's shares and statistics, from one private sample or report of each client.

    Linear mechanism and reports: estimates are unbiased, and intervals narrow as the number of clients grows. Optimal and mollifier: several
    populations can lead to the same samples, and an interval contains all of them.
    """
    source = sources[0]
    options = EstimateOptions(
        source=source, agreement=agreement, domain=domain, statistic=statistic or [], bins=bins, confidence=confidence, top=top, plot=plot,
        sample=sample, json=json, synthetic=synthetic, rows=rows, truth=truth, examples=examples, value=value, client=client, other=other,
        nulls=nulls,
    )  # fmt: skip
    flags = {
        "--synthetic": synthetic, "--force": force or None, "--rows": rows, "--truth": truth, "--examples": examples, "--value": value,
        "--other": other,
        "--nulls": None if nulls == "error" else nulls, "--rounds": rounds, "--liars": liars, "--by": by, "--compare": compare,
        "--client": client, "--clients-table": clients_table, "--null-groups": null_groups, "--statistic": statistic or None, "--bins": bins,
        "--plot": plot, "--domain": domain,
    }  # fmt: skip

    def refuse_given_options_beside(what: str) -> None:
        refuse_estimate_options_beside(what, {name: flags[name] for name in _NOT_BESIDE[what].split()})

    if len(sources) > 1:
        refuse_given_options_beside("several IN")
        print_estimate_from_stages(options, sources, numbered=numbered)
        return
    if by is not None:
        refuse_given_options_beside("--by")
        print_estimate_by_group(options, by, clients_table, client, null_groups)
        return
    if compare is not None:
        refuse_given_options_beside("--compare")
        print_change_between_files(options, compare)
        return
    if numbered:
        raise DiscreetError("--numbered is for several IN, whose clients must not be the same; leave it out")
    if clients_table is not None or null_groups is not None:
        raise DiscreetError("--clients-table and --null-groups are for groups; say which column with --by COLUMN")
    if top is not None:
        check_count("top", top)
    _refuse_contradicting_options(options)
    _refuse_unusable_output_files(options, force=force)
    with open_source(source) as records:
        terms = read_agreement_of_samples(records, agreement)
        if terms.survey is not None:
            refuse_given_options_beside("a survey")
            print_survey_estimate(options, records, terms)
            return
        if terms.own is not None:
            refuse_given_options_beside("a mechanism of one's own")
        labels = domain_from_options(domain)
        tally: SampleTally | ReportTally
        if terms.blocks is None:
            sampler, tally = _agreed_sampler_and_sample_counts(records, terms, labels, sample, rounds)
            if isinstance(sampler, OwnSampler):
                limit = TOP if top is None else top
                _print_own_mechanism_estimate(sampler, tally, terms, confidence=confidence, top=limit, json=json)
                return
        else:
            _refuse_options_for_reports(bins, weighted=synthetic is not None and rows is None)
            keep_reports, samples_per_client = (
                statistic is not None or examples is not None,
                _samples_per_client_from_rounds(rounds, terms),
            )
            tally = tally_reports(
                records, terms, labels, column=options.report_column, keep=keep_reports, rounds=samples_per_client
            )
    if terms.joint is not None and (examples is not None or (synthetic is not None and rows is None)):
        raise DiscreetError(
            f"agreement {terms.id[:12]} is on {terms.joint.samples} samples of each client drawn together; --examples, and --synthetic "
            "without --rows N, are for one sample of each client: leave them out, or say --rows N"
        )
    example_laws = None
    if examples is not None and value is not None and client is not None:
        raw_coding = Coding(tally.coding.domain, other, nulls)
        example_laws = client_laws(file_source(examples), raw_coding, value=value, client=client)
    estimate: AnyPopulation
    if isinstance(tally, ReportTally):
        reports, counts = tally.reports, tally.counts
        counts_suffice = reports is None or (reports.ndim == 1 and example_laws is None)
        evidence: dict[str, Any] = {"counts": counts} if counts_suffice else {"reports": reports}
        estimate = reported_population(counts.sampler, examples=example_laws, confidence=confidence, **evidence)
        statistics = [reported_statistic(estimate, name, reports) for name in statistic or ()]
    else:
        if tally.rows is None:
            estimate = population(sampler, counts=tally.counts, bins=bins, examples=example_laws, confidence=confidence)
        else:
            estimate = population(
                sampler, samples=tally.rows, rounds=rounds, examples=example_laws, confidence=confidence
            )
        statistics = [estimate.statistic(name) for name in statistic or ()]
    coding = replace(tally.coding, domain=estimate.domain)
    true_law = None
    if truth is not None and value is not None:
        raw_coding = replace(coding, other=other, nulls=nulls)
        true_law = average_law_of_clients(file_source(truth), raw_coding, value=value, client=client)
    doubts = notes_on_estimate(estimate, terms, named=tally.named, distinct=tally.distinct)
    if synthetic is not None and not estimate.exact:
        doubts.append(
            "the synthetic table is not debiased: these samples do not determine the average client, so it has the shares of the samples; "
            "only samples of the linear mechanism can be debiased"
        )
    lies = None
    if liars is not None:
        check_count("--liars", liars, least=0, most=estimate.clients, fix=f"there are {estimate.clients:,} clients")
        lies = liars_of(estimate, liars)
    record = (
        json_record_of_estimate(estimate, terms, doubts, statistics=statistics, truth=true_law, lies=lies)
        if json
        else {}
    )
    blocks: list[Any] = []
    if not json:
        blocks = text_blocks_of_estimate(
            estimate, terms, statistics, true_law, lies, doubts, top, by_client=client is not None
        )
    if synthetic is not None and rows is not None:  # first: it is written whole or not at all
        write_synthetic_rows(estimate, coding, synthetic, rows, replace=force)
    elif synthetic is not None:
        assert isinstance(estimate, Population)  # of reports rows alone are written
        write_weighted_samples(estimate, file_source(source), coding, synthetic, sample=sample, replace=force)
    if plot is not None:
        _save_population_picture(estimate, terms, true_law, plot, TOP if top is None else top)
    if json:
        print_json(record)
        return
    files = [str(path) for path in (plot, synthetic) if path is not None]
    if files:
        blocks.append("Written: " + safe_text(", ".join(files)))
    print_text_blocks(*blocks)


def _agreed_sampler_and_sample_counts(
    records: Source, agreement: Agreement, domain: Any, sample: str, rounds: int | None
) -> tuple[Sampler[AnyFamily] | JointSampler, SampleTally]:
    """The agreed sampler, and the counts of its samples."""
    if agreement.joint is None:
        coding, sampler = coding_and_sampler(agreement, domain)
        return sampler, tally_samples(
            records, agreement, coding, sample=sample, rounds=_samples_per_client_from_rounds(rounds, agreement)
        )
    if rounds is not None:
        raise DiscreetError(
            f"--rounds is for samples that were released one at a time; agreement {agreement.id[:12]} is on {agreement.joint.samples} "
            "of each client drawn together: leave it out, and estimate one round at a time"
        )
    coding, joint = coding_and_joint_sampler(agreement, domain)
    return joint, tally_joint_samples(records, agreement, coding, samples=agreement.joint.samples, sample=sample)


def _print_own_mechanism_estimate(
    sampler: OwnSampler, tally: SampleTally, agreement: Agreement, *, confidence: float, top: int, json: bool
) -> None:
    """Print shares of the population, or raise the error of a law that tells none."""
    estimate = inverted_population(sampler, counts=tally.counts, confidence=confidence)
    doubts = notes_on_unverified_records(agreement, named=tally.named, distinct=tally.distinct)
    print_json_or_text(
        json_record_of_inverted_estimate(estimate, agreement, doubts),
        *_own_mechanism_text_blocks(estimate, agreement, doubts, top),
        json=json,
    )


def _own_mechanism_text_blocks(
    estimate: InvertedPopulation, agreement: Agreement, doubts: list[str], top: int
) -> list[Any]:
    """The report: shares by the inverse of the matrix, largest first."""
    assert agreement.own is not None
    mechanism, law, size = agreement.own, estimate.law, len(estimate.counts)
    outcomes = sorted(range(size), key=lambda outcome: (-law.estimate[outcome], outcome))[:top]
    interval = f"{confidence_text(estimate.confidence)} interval"
    table = empty_table("outcome", "share, %", f"{interval}, all {size:,} at once", "nearest", "samples")
    for outcome in outcomes:
        table.add_row(
            safe_text(estimate.domain.names[outcome]),
            percent_text(law.estimate[outcome]),
            percent_interval_text(law.all_low[outcome], law.all_high[outcome]),
            percent_text(estimate.nearest[outcome]),
            f"{estimate.counts[outcome]:,}",
        )
    origin = f"{safe_text(mechanism.name)} of {safe_text(mechanism.package)} {safe_text(mechanism.package_version)}"
    blocks: list[Any] = [
        f"[bold]{pluralise(estimate.samples, 'sample')}[/bold], {origin} on {safe_text(agreement.family.description, most=300)}, "
        f"{privacy_promise_text(agreement.promise, agreement.epsilon)} (agreement {agreement.id[:12]}).",
        *notes_as_text_blocks(doubts),
        table,
    ]
    if size > len(outcomes):
        blocks.append(f"{size - len(outcomes):,} more outcomes: --top, --json.")
    blocks.append(
        "[bold]Shares[/bold] are unbiased, by the inverse of the mechanism's matrix, and may fall below 0 by chance. [bold]nearest[/bold] is "
        "the nearest distribution, which is biased."
    )
    blocks.append(f"[bold]Liars[/bold]: one false sample can shift a share by {100 * estimate.liar_shift:.2g} %.")
    return blocks


def _refuse_options_for_reports(bins: int | None, *, weighted: bool) -> None:
    """Raise an error for options that an estimate from reports does not have, with what to do instead."""
    if bins is not None:
        raise DiscreetError("--bins is for continuous families, which have no reports; leave it out")
    if weighted:
        raise DiscreetError(
            "--synthetic without --rows N writes samples with weights, and a report is no sample; say --rows N for rows from the estimate"
        )


def _samples_per_client_from_rounds(rounds: int | None, agreement: Agreement) -> int:
    """The number of samples of each client by --rounds; an error if the agreement does not allow it."""
    if rounds is None:
        return 1
    if isinstance(agreement.family, ContinuousTerms):
        raise DiscreetError(
            "--rounds is for outcomes that can be listed; estimate one round of a continuous family at a time"
        )
    return check_count("--rounds", rounds, most=agreement.rounds, fix=f"the agreement has {agreement.rounds:,}")


def _refuse_contradicting_options(options: EstimateOptions) -> None:
    """Raise an error for options that contradict each other, before anything is read or written."""
    has_raw_records = options.truth is not None or options.examples is not None
    if options.rows is not None:
        if options.synthetic is None:
            raise DiscreetError("--rows says how many rows --synthetic OUT is to have; give both")
        check_count("rows", options.rows, most=10**9 - 1)
    if options.examples is not None and (options.value is None or options.client is None):
        raise DiscreetError("--examples FILE needs --client COLUMN and --value COLUMN: who, and what")
    if has_raw_records != (options.value is not None):
        raise DiscreetError("--truth FILE and --value COLUMN go together")
    if (options.client, options.other, options.nulls) != (None, None, "error") and not has_raw_records:
        raise DiscreetError(
            "--client, --other and --nulls are about rows of --truth FILE or --examples FILE; give that too"
        )


def _refuse_unusable_output_files(options: EstimateOptions, *, force: bool) -> None:
    """Raise an error for outputs that cannot be written or would replace an input, before anything is written."""
    source, synthetic = options.source, options.synthetic
    inputs = {"samples": source, "agreement": options.agreement, "truth": options.truth, "examples": options.examples}
    options.refuse_unusable_picture_path({**inputs, "synthetic table": synthetic})
    if synthetic is None:
        if force:
            raise DiscreetError("--force replaces the file of --synthetic OUT; give both")
        return
    if synthetic == STANDARD:
        raise DiscreetError("--synthetic - would mix with what is printed; name a file")
    choose_output_format(synthetic)
    if source == STANDARD and options.rows is None:
        raise DiscreetError("weights need a second look at the samples; give a file instead of -, or --rows N")
    for path in inputs.values():
        if path is not None and path != STANDARD and is_among_inputs(str(path), synthetic):
            raise DiscreetError(f"--synthetic {synthetic} would replace what {path} holds; name another file")
    check_output_path(synthetic, what="--synthetic", replace=force, fix=REPLACE_HINT)


def _save_population_picture(
    estimate: AnyPopulation, agreement: Agreement, true_law: Any, path: Path, top: int
) -> None:
    samples_text = f"{estimate.clients:,} private {sample_or_report_noun(estimate)}s {privacy_label(agreement.promise, agreement.epsilon)}"
    title = f"{shorten_name(agreement.purpose, 60)}: {samples_text}" if agreement.purpose else None
    plots.save(plots.population(estimate, truth=true_law, most=top, title=title), path)
    note = plots.missing_fonts_note(estimate.domain.labels or ())
    if note is not None:
        typer.echo(note, err=True)
