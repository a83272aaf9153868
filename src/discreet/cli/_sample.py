"""`discreet sample` and `discreet tokens`: private releases.

`sample` releases one private sample for each client of a table of (client, value) rows. `tokens` releases a text of a language model that
keeps its prompt private.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet._base import placeholders_until_used
from discreet._base.files import error_reason
from discreet._base.showing import pluralise
from discreet.agreement import Agreement, weights_path
from discreet.cli._options import (
    AllowLarge,
    Bounds,
    CellCount,
    ClientBudget,
    ClientColumns,
    CountColumn,
    DomainFile,
    DomainSize,
    EachEpsilon,
    JsonOutput,
    JsonSummary,
    MechanismName,
    NullClients,
    Nulls,
    OptionalValueColumn,
    Other,
    OverBudget,
    Quiet,
    ServedGoal,
    SurveyFile,
    TableSource,
    WeightColumn,
    choose_mechanism_and_note,
    disable_core_dumps,
    domain_from_options,
    flag_option,
    positional_argument,
    refuse_given_options,
    refuse_large_epsilon,
    refuse_large_total_epsilon,
    required_domain_from_options,
    round_schedule_lines,
    using_progress_bars_on_terminal,
    value_option,
)
from discreet.errors import DiscreetError, spell_out_invisible
from discreet.release import read_secret
from discreet.tables import STANDARD, Request, Summary, open_source, sample_file

with placeholders_until_used(globals()):
    # loads rich
    from discreet.cli._printing import print_json, print_json_or_text, safe_text, showing_release_progress
    from discreet.survey import Survey
    from discreet.tables import count_values_outside_domain

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def release_samples_of_table(
    source: TableSource,
    client: ClientColumns,
    value: OptionalValueColumn = None,
    output: Annotated[
        str | None,
        value_option("OUT", "Ends in .parquet, .csv or .arrow; - for standard output.", "--output", "-o"),
    ] = None,
    epsilon: EachEpsilon = None,
    allow_large_epsilon: AllowLarge = False,
    domain: DomainFile = None,
    domain_size: DomainSize = None,
    bounds: Bounds = None,
    cells: CellCount = None,
    survey: SurveyFile = None,
    other: Other = None,
    nulls: Nulls = "error",
    null_clients: NullClients = "error",
    count: CountColumn = None,
    weight: WeightColumn = None,
    clients: Annotated[
        Path | None,
        value_option(
            "FILE",
            "All clients, one on each line (or a table with the client column). Clients without records then "
            "draw from the reference; without the list their absence shows.",
        ),
    ] = None,
    goal: ServedGoal = None,
    mechanism: MechanismName = None,
    drop_client: Annotated[bool, flag_option("--drop-client", "Write only the samples, in random order.")] = False,
    secret: Annotated[
        Path | None,
        value_option(
            "FILE",
            "Made by `discreet secret`. The same data then give the same samples again, and a round released "
            "on other data is an error. Without it each run is a new release and spends epsilon again.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        value_option("FILE", "File that notes the rounds released under --secret. Default: SECRET.rounds."),
    ] = None,
    ledger: Annotated[
        Path | None,
        value_option(
            "FOLDER",
            "Counts what each client spends, over all rounds and agreements under --secret. A repeated round "
            "then gives the stored samples, even if the data changed.",
        ),
    ] = None,
    budget: ClientBudget = None,
    over_budget: OverBudget = "refuse",
    round_number: Annotated[
        str | None,
        value_option(
            "N|DATE",
            "Which of the agreed rounds this is: its number, or a date such as 2026-11-17 if the agreement has a schedule. [default: 1; "
            "with a schedule there is none]",
            "--round",
        ),
    ] = None,
    rounds: Annotated[
        int | None, value_option("N", "Number of agreed rounds (default 1); each spends epsilon.")
    ] = None,
    purpose: Annotated[str | None, value_option("TEXT", "What the samples are for; part of the agreement.")] = None,
    agreement: Annotated[
        Path | None,
        value_option(
            "FILE",
            "Made by `discreet agree`: epsilon, domain, mechanism, rounds and purpose come from it. An option "
            "that contradicts it is an error.",
        ),
    ] = None,
    write_agreement: Annotated[
        Path | None, value_option("FILE", "Write the agreement that the samples were released under.")
    ] = None,
    memory: Annotated[
        str | None,
        value_option("SIZE", "Memory for records before they go to disk, such as 2G. Default: a quarter."),
    ] = None,
    scratch: Annotated[
        Path | None,
        value_option(
            "FOLDER", "Folder for records larger than memory. Its files have no names and end with the command."
        ),
    ] = None,
    force: Annotated[
        bool, flag_option("--force", "Replace OUT if it exists (never an input, a link or a device).")
    ] = False,
    output_format: Annotated[
        str | None,
        value_option("parquet|csv|arrow", "Format of the output, if its name does not tell.", "--format"),
    ] = None,
    show_values: Annotated[
        bool,
        flag_option(
            "--show-values",
            "Errors show some of the values outside the domain. These are private: keep them out of shared logs.",
        ),
    ] = False,
    engine: Annotated[str, value_option("local|spark", "Where to run.")] = "local",
    dry_run: Annotated[
        bool,
        flag_option(
            "--dry-run",
            "Release nothing: list every value outside the domain with its number of rows, and count names of clients in several forms. "
            "THE LIST IS PRIVATE.",
        ),
    ] = False,
    json: JsonSummary = False,
    quiet: Quiet = False,
) -> None:
    """Release one private sample for each client of a table of (client, value) rows.

    Each sample looks drawn from the client's own rows and is epsilon-locally differentially private. The draw is exact, in integers. The
    mechanisms linear and optimal have the smallest possible worst case. The domain is public: you state it, and it is never read from the
    data.

    First choose the goal: estimate the population from the samples, or make each like its own client (--for).
    """
    disable_core_dumps()
    if secret is None:
        refuse_given_options({"--state": state}, "notes the rounds released under --secret FILE; give that too")
    release_secret = None if secret is None else read_secret(secret, state=state)
    domain_options = domain, domain_size, bounds, cells
    terms = None if agreement is None else Agreement.read(agreement)
    has_survey = survey is not None or (terms is not None and terms.survey is not None)
    if survey is not None and terms is not None:
        raise DiscreetError("--survey makes an agreement, and --agreement is one; give one of them")
    if value is None and not has_survey:
        raise DiscreetError("--value is missing: the column of values (a --survey states its own columns)")
    instead = " (or --survey FILE, or --agreement FILE)"
    public_domain = (
        domain_from_options(*domain_options)
        if agreement or has_survey
        else required_domain_from_options(*domain_options, instead=instead)
    )
    note = None
    if agreement is None and not has_survey:
        mechanism, note = choose_mechanism_and_note(
            goal, mechanism, may_ask=not (quiet or dry_run or json) and source != STANDARD
        )
    given_terms: dict[str, Any] = {} if value is None else {"value": value}
    if round_number is not None:
        given_terms["round"] = _parse_round(round_number)
    elif dry_run:
        given_terms["round"] = 1  # nothing is released
    request = Request(
        client=client,
        **given_terms,
        survey=None if survey is None else Survey.read(survey),
        domain=public_domain,
        epsilon=epsilon,
        other=other,
        count=count,
        weight=weight,
        nulls=nulls,
        null_clients=null_clients,
        goal=goal,
        mechanism=mechanism,
        rounds=rounds,
        purpose=purpose,
        secret=release_secret,
        agreement=terms,
        show_values=show_values,
    )
    refuse_large_epsilon(request.epsilon, allowed=allow_large_epsilon)
    refuse_large_total_epsilon(request.doubt_of_rounds, allowed=allow_large_epsilon)
    refuse_large_epsilon(budget, allowed=allow_large_epsilon)
    if dry_run:
        _print_values_outside_domain(source, request, scratch, json=json)
        return
    if output is None:
        raise DiscreetError("there is no output; give --output OUT (-o), or --dry-run")
    if output == STANDARD and output_format != "csv" and sys.stdout.isatty():
        raise DiscreetError("standard output is a terminal, and Arrow is no text; name a file, or say --format csv")
    if json and output == STANDARD:
        raise DiscreetError("--json goes to standard output, and so does --output -; name a file")
    over_budget_or_none = None if over_budget == "refuse" else over_budget
    replaces = force and output != STANDARD and os.path.lexists(output)
    match engine:
        case "local":
            population_ledger = None
            if ledger is None:
                refuse_given_options(
                    {"--over-budget": over_budget_or_none}, "is about the budgets in a --ledger; give that too"
                )
            if (ledger, budget) != (None, None):
                from discreet.cli._gateway import open_or_create_population_ledger  # loaded for a ledger alone

                population_ledger = open_or_create_population_ledger(
                    ledger, budget, release_secret, epsilon=request.epsilon, quiet=quiet
                )
            with using_progress_bars_on_terminal(showing_release_progress, quiet=quiet) as progress:
                summary = sample_file(
                    source,
                    output,
                    request,
                    clients=clients,
                    drop_client=drop_client,
                    memory=_parse_memory_size(memory),
                    folder=scratch,
                    output_format=output_format,
                    agreement_file=write_agreement,
                    ledger=population_ledger,
                    over_budget=over_budget,
                    replace=force,
                    keep={
                        "secret": secret,
                        "list of outcomes": domain,
                        "survey": survey,
                        "agreement that is read": agreement,
                        "weights of the agreement that is read": None if agreement is None else weights_path(agreement),
                    },
                    progress=progress,
                )
        case "spark":
            from discreet.tables.spark import sample_files  # needs Spark

            settings_options = {"--scratch": scratch, "--memory": memory}
            refuse_given_options(settings_options, "is for the local engine; Spark has settings of its own for that")
            refuse_given_options(
                {"--force": force or None},
                "is for the local engine. Spark writes a new folder; remove an old one first",
            )
            refuse_given_options(
                {"--ledger": ledger, "--budget": budget, "--over-budget": over_budget_or_none},
                "is for the local engine. Spark cannot look up a table and append to it in one step, so an interrupted job could spend "
                "twice. Run it locally; files may be larger than memory",
            )
            summary = sample_files(
                source,
                output,
                request,
                clients=None if clients is None else str(clients),
                drop_client=drop_client,
                output_format=output_format,
                agreement_file=write_agreement,
            )
        case _:
            raise DiscreetError(f"engine = {engine!r} is not one of local, spark")
    if json:
        print_json({"output": output, "round": request.round, **summary.record})
    elif not quiet:
        lines = [*_release_summary_lines(summary, request, output, ledger), *([] if note is None else [note])]
        if replaces and release_secret is None:
            lines.append(f"replaced the earlier {output}; if it was a release, what it spent stays spent")
        if (output_format == "csv" or output.lower().endswith(".csv")) and (agreement, write_agreement) == (None, None):
            lines.append(
                "CSV does not carry the agreement: for discreet estimate, `discreet agree` writes it from the same terms"
            )
        typer.echo("\n".join(map(spell_out_invisible, lines)), err=True)


def _parse_round(text: str) -> int | str:
    """The number of a round, or the text of a date."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else text


def _parse_memory_size(size: str | None) -> int | None:
    if size is None:
        return None
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", size.strip(), re.IGNORECASE)
    if not parts:
        raise DiscreetError(f"--memory {size} is not a size such as 500M or 2G")
    return int(Decimal(parts[1]) * _UNITS[parts[2].upper()])


def _release_summary_lines(summary: Summary, request: Request, output: str, ledger: Path | None) -> Iterator[str]:
    """The guarantee, and the numbers of rows and samples that were read, left out and written."""
    agreement = summary.agreement
    noun, target = agreement.release_kind, "standard output" if output == "-" else output
    if agreement.joint is None:
        yield f"{pluralise(summary.clients, noun)} to {target}, {agreement.promise} each"
    else:
        noun, samples = "draw", agreement.joint.samples
        yield (
            f"{pluralise(summary.clients, noun)} of {samples} samples to {target}, {agreement.promise} for all {samples} of a client "
            "together"
        )
    if agreement.learned_from:
        ids = ", ".join(agreement_id[:12] for agreement_id in agreement.learned_from)
        yield f"learned from samples under {ids}: a client with a sample there has now spent a second budget"
    if agreement.rounds > 1:
        yield f"round {request.round} of {agreement.rounds:,}: {agreement.privacy_of_all_rounds} for all {agreement.rounds:,} together"
        yield from round_schedule_lines(agreement, request.round)
        from discreet.estimation import rounds_cost  # loaded where there are rounds alone

        cost = rounds_cost(agreement)
        if cost is not None:
            yield str(cost)
    yield (
        f"read {pluralise(summary.rows, 'row')} of {pluralise(summary.clients - summary.without_records, 'client')} "
        f"in {summary.seconds:.1f} s"
    )
    if len(request.columns.client_columns) > 1:
        names = ", ".join(map(repr, request.columns.client_columns))
        yield f"columns {names} name a client together: whoever has rows in several of these clients spends in each of them"
    if not summary.rows:
        yield f"the table has no rows, so there is no {noun} of a client with records; check that it is the right one"
    if summary.nameless:
        yield f"{pluralise(summary.nameless, 'row')} without a client left out"
    if summary.nulls:
        left_out = f"left out: a client without other values has no {noun}, which reveals it unless --clients lists it"
        yield f"{pluralise(summary.nulls, 'null value')} " + (
            left_out if request.coding.nulls == "drop" else "taken as other"
        )
    if summary.not_numbers:
        yield f"NaN in {pluralise(summary.not_numbers, 'value')} left out, like nulls"
    if summary.outside:
        yield f"{pluralise(summary.outside, 'value')} outside the domain taken as {request.coding.other}"
    if summary.over_budget:
        yield f"{pluralise(summary.over_budget, 'client')} left out: they cannot pay epsilon = {agreement.epsilon:g} any more"
    if summary.without_records:
        verb = "reported as" if noun == "report" else "drew from"
        if request.columns.count_or_weight_column is None:
            yield f"{pluralise(summary.without_records, 'listed client')} without records {verb} the reference"
        else:
            yield f"{pluralise(summary.without_records, 'client')} without records, or with counts of 0 alone, {verb} the reference"
    if summary.spilled_bytes:
        yield f"{summary.spilled_bytes / 1e6:,.0f} MB went through the disk"
    yield f"agreement {agreement.id}"
    if ledger is not None:
        yield f"{summary.known:,} {noun}s were in ledger {ledger} already, {summary.clients - summary.known:,} were charged to it"
        yield f"asking for this round again gives the same {noun}s, whatever the data, and spends nothing more"
    elif request.secret is None:
        yield (
            "no secret was given: running this again, with a secret or without, is a new release and spends epsilon again. Give a secret "
            "from the first run on (discreet secret FILE, --secret FILE)"
        )
    else:
        yield f"with the same secret and data, this round gives the same {noun}s again and spends nothing more; new data are a new round"
        from discreet.ledger import Rounds  # loaded where there is a secret alone

        with suppress(DiscreetError):  # the release is complete
            others = Rounds(request.secret).number_of_questions - 1
            if others > 0:
                yield (
                    f"{pluralise(others, 'other release')} under this secret, by agreement and column: a client there has spent that epsilon "
                    "too (--ledger counts what each client spends)"
                )


def _print_values_outside_domain(source: str, request: Request, scratch: Path | None, *, json: bool) -> None:
    """Print every value outside the domain with its number of rows on standard output, and a note that the list is private."""
    with open_source(source, scratch) as records:
        dry_run = count_values_outside_domain(records, request)
    typer.echo(
        "PRIVATE: what is listed are clients' own values. Keep it out of logs, and do not make a domain of it.",
        err=True,
    )
    if json:
        outside = [{"value": value, "rows": rows} for value, rows in dry_run.outside.items()]
        counts = {
            "rows": dry_run.rows, "nameless": dry_run.nameless, "nulls": dry_run.nulls, "not_numbers": dry_run.not_numbers,
            "names_in_several_forms": dry_run.names_in_several_forms, "labels_in_other_forms": dry_run.labels_in_other_forms,
        }  # fmt: skip
        print_json({**counts, "outside": outside})
        return
    for value, rows in dry_run.outside.items():
        text = spell_out_invisible(str(value))
        typer.echo(f"{rows}\t{text if text == text.strip() else repr(text)}")  # else nobody sees the space
    outside_rows = sum(dry_run.outside.values())
    typer.echo(
        f"dry run, nothing is released: {pluralise(dry_run.rows, 'row')}, {outside_rows:,} of them with "
        f"{pluralise(len(dry_run.outside), 'different value')} outside the domain, {dry_run.nulls:,} without a value, "
        f"{dry_run.not_numbers:,} NaN, {dry_run.nameless:,} without a client"
        + (
            " (no record of nobody is released: filter those rows out, or say --null-clients drop)"
            if dry_run.nameless
            else ""
        ),
        err=True,
    )
    if dry_run.labels_in_other_forms:
        typer.echo(
            f"{pluralise(dry_run.labels_in_other_forms, 'row')} with a value that differs from a label only in case, spaces or width: "
            "correct these records first, since --other would take them for another outcome",
            err=True,
        )
    if dry_run.names_in_several_forms:
        typer.echo(
            f"{dry_run.names_in_several_forms:,} names of clients differ from another only in case, in spaces, or as '1' and '1.0' do: "
            "each is a client with a sample and a budget. If they are one person, give the names one form first",
            err=True,
        )


def generate_private_text(
    model: Annotated[Path, positional_argument("MODEL", "Folder of a causal model, as save_pretrained writes it.")],
    public: Annotated[Path, value_option("FILE", "The public prompt.")],
    private: Annotated[str, value_option("FILE", "The private prompt; - for standard input.")],
    epsilon: Annotated[float, value_option("E", "Budget of one token.")],
    tokens: Annotated[int, value_option("N", "Largest number of tokens.")],
    delta: Annotated[float, value_option("D", "The delta of the guarantee for all tokens together.")] = 1e-6,
    total: Annotated[
        float | None, value_option("E", "Budget of all tokens together at that delta. [default: no limit]")
    ] = None,
    upper: Annotated[
        float | None,
        value_option("U", "Largest ratio of a token's private to its public probability. [default: e^(E/2) + 1]"),
    ] = None,
    examples: Annotated[
        Path | None,
        value_option("FILE", "Instead: public prompts like the private ones, one on each line, to choose the terms."),
    ] = None,
    ledger: Annotated[Path | None, value_option("FILE", "The client's ledger, charged before a token leaves.")] = None,
    number: Annotated[int, value_option("I", "Number of the text under these terms.")] = 1,
    temperature: Annotated[float, value_option("T", "Temperature of both distributions.")] = 1.0,
    reference_temperature: Annotated[
        float | None, value_option("T", "Further temperature of the public one. [default: 1]")
    ] = None,
    top_k: Annotated[int | None, value_option("K", "Only the K likeliest tokens of the public distribution.")] = None,
    top_p: Annotated[
        float | None, value_option("P", "Only the likeliest tokens of the public distribution, with mass P.")
    ] = None,
    purpose: Annotated[str, value_option("TEXT", "What the text is for.")] = "",
    device: Annotated[str | None, value_option("NAME", "Such as cuda or cpu. [default: cuda if there is one]")] = None,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
) -> None:
    """Generate a private text with a language model. Each token is drawn from a box around its distribution under the public prompt."""
    from discreet.ledger import Budget, Ledger
    from discreet.torch import transformers  # needs torch

    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    if examples is not None:
        options = {"--upper": upper, "--reference-temperature": reference_temperature}
        refuse_given_options(options, "and --examples, which chooses it, exclude each other; give one of the two")
    public_prompt = _read_prompt_file(public)
    private_prompt = _read_prompt_of_stdin() if private == STANDARD else _read_prompt_file(Path(private))
    budget = None if total is None else Budget(epsilon=total, delta=delta)
    client_ledger = None if ledger is None else Ledger(ledger)
    language_model = transformers.load_model(model, device=device, quiet=True)
    if examples is not None:
        lines = [line for line in _read_prompt_file(examples).splitlines() if line.strip()]
        box = transformers.box_for(
            language_model.model,
            language_model.tokenizer,
            public=public_prompt,
            examples=lines,
            epsilon=epsilon,
            temperature=temperature,
        )
        upper, reference_temperature = box.upper, box.reference_temperature
    further_temperature = 1.0 if reference_temperature is None else reference_temperature
    text = transformers.generate(
        language_model.model, language_model.tokenizer, public=public_prompt, private=private_prompt, epsilon=epsilon, tokens=tokens,
        upper=upper, delta=delta, budget=budget, ledger=client_ledger, number=number, temperature=temperature,
        reference_temperature=further_temperature, top_k=top_k, top_p=top_p, model_name=language_model.name, purpose=purpose,
    )  # fmt: skip
    assert isinstance(text, transformers.PrivateText)
    record = {
        "text": text.text, "tokens": list(text.tokens), "upper": upper, "reference_temperature": further_temperature,
        "statement": text.statement.document,
    }  # fmt: skip
    print_json_or_text(record, safe_text(text.text, keep="\n"), safe_text(text.statement, keep="\n"), json=json)


def _read_prompt_file(path: Path) -> str:
    """The prompt in a file, without the final line break."""
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except OSError as error:
        raise DiscreetError(f"{path} cannot be read: {error_reason(error)}") from None
    except UnicodeDecodeError:  # its message shows a byte
        raise DiscreetError(f"{path} is not UTF-8 text") from None


def _read_prompt_of_stdin() -> str:
    """The prompt on standard input, read as that of a file."""
    if sys.stdin is None:
        raise DiscreetError("standard input is closed; open it, or name a file")
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise DiscreetError("standard input is not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
