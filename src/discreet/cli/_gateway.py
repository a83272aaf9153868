"""`discreet secret`, `discreet ledger` and `discreet send`: what a gateway, which holds the records of many clients, keeps and sends.

The secret is the key of repeatable releases. A ledger records what clients have spent; it belongs to one client (a file) or to a population
(a folder). `open_or_create_population_ledger` gives `discreet sample` and `discreet send` a population's ledger. The latter releases one
private sample for each client of a table, and sends it to a collector.
"""

import os
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet._base.files import error_reason, read_lines, refuse_file_open_to_others
from discreet._base.showing import pluralise
from discreet.agreement import Agreement
from discreet.cli._app import print_message
from discreet.cli._options import (
    AgreedDomainFile,
    AllowLarge,
    ClientBudget,
    ClientColumn,
    CountColumn,
    JsonOutput,
    JsonSummary,
    OverBudget,
    Quiet,
    TableSource,
    WeightColumn,
    disable_core_dumps,
    domain_from_options,
    flag_option,
    positional_argument,
    refuse_large_epsilon,
    using_progress_bars_on_terminal,
    value_option,
)
from discreet.cli._printing import (
    empty_table,
    format_number,
    print_json,
    print_json_or_text,
    safe_text,
    showing_sending_progress,
)
from discreet.errors import DiscreetError, spell_out_invisible
from discreet.ledger import (
    Budget,
    Ledger,
    PopulationLedger,
    costs_by_client,
    new_ledger_message,
    population_ledger_exists,
    read_budget_and_runs,
    refuse_budget_below_one_sample,
)
from discreet.privacy.tradeoff import LARGE_EPSILON
from discreet.release import Secret, read_secret, write_secret
from discreet.tables import STANDARD

if TYPE_CHECKING:
    import ssl

    from discreet.client import Sent


def open_or_create_population_ledger(
    folder: Path | None, budget: float | None, secret: Secret | None, *, epsilon: float, quiet: bool
) -> PopulationLedger | None:
    """The ledger stated by options; created if it is missing and its budget is given, which pays for one sample at epsilon at least."""
    if folder is None:
        if budget is not None:
            raise DiscreetError("--budget is what each client may spend in a ledger; give --ledger FOLDER too")
        return None

    if secret is None:
        raise DiscreetError(
            "--ledger needs --secret FILE, under which it knows its clients; make one with: discreet secret FILE"
        )
    if budget is None or population_ledger_exists(folder):
        existing_ledger = PopulationLedger(folder, secret)
        if budget is not None and budget != existing_ledger.budget.epsilon:
            raise DiscreetError(
                f"--budget {budget:g} is not the {existing_ledger.budget} of ledger {folder}, which keeps it; leave it out"
            )
        return existing_ledger
    refuse_budget_below_one_sample(budget, epsilon, folder)
    empty_folder = folder.exists()
    new_ledger = PopulationLedger.create(folder, budget=budget, secret=secret)
    if not quiet:
        print_message(new_ledger_message(new_ledger, empty_folder=empty_folder))
    return new_ledger


def _show_population_ledger(folder: Path, *, json: bool) -> None:
    """Print the charges of each round, and the largest spending of a client."""
    budget, runs = read_budget_and_runs(folder)
    spending = costs_by_client(folder, runs)
    largest = float(spending.max()) if spending.size else 0.0
    record = {
        "budget": {"epsilon": budget.epsilon},
        "clients": int(spending.size),
        "spent": {"most": largest, "mean": float(spending.mean()) if spending.size else 0.0},
        "runs": [
            {
                "agreement": run.round.agreement, "column": run.round.question.value, "round": run.round.number,
                "epsilon": run.round.epsilon, "clients": run.clients, "time": run.time,
            }
            for run in runs
        ],
    }  # fmt: skip
    table = empty_table("run", "time, UTC", "agreement", "column", "round", "epsilon", "clients", texts=4)
    for number, run in enumerate(runs, start=1):
        run_round = run.round
        table.add_row(
            str(number), _time_text(run.time), run_round.agreement[:12], safe_text(run_round.question.value, most=40), str(run_round.number),
            f"{run_round.epsilon:g}", f"{run.clients:,}",
        )  # fmt: skip
    spending_text = (
        f"{spending.size:,} clients have spent {format_number(largest)} at most" if runs else "Nothing is spent so far"
    )
    print_json_or_text(
        record, *([table] if runs else []), f"Budget {budget} for each client. {spending_text}.", json=json
    )


def _time_text(time: str) -> str:
    """A time as people read it. Ledgers write times in UTC; the header says so, and 80 columns hold the row."""
    return safe_text(time.removesuffix("+00:00").replace("T", " "), most=40)


ledger = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@ledger.command("create", short_help="Make a new ledger with a budget.")
def create_ledger(
    file: Annotated[Path, positional_argument("FILE", "The new ledger; an existing file is never replaced.")],
    epsilon: Annotated[float, value_option("E", "Budget of all samples of this client together.")],
    delta: Annotated[float, value_option("D", "The delta of the budget, for all samples together.")] = 0.0,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
) -> None:
    """Make a new ledger: the budget of one client, in one file."""
    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    new_ledger = Ledger.create(file, Budget(epsilon=epsilon, delta=delta))
    record = {"file": str(file), "budget": {"epsilon": new_ledger.budget.epsilon, "delta": new_ledger.budget.delta}}
    print_json_or_text(record, f"{safe_text(file)}: {new_ledger.budget}", json=json)


@ledger.command("show", short_help="Show what was charged and what is left.")
def show_ledger(
    file: Annotated[Path, positional_argument("FILE", "A client's ledger, or the folder of a population's.")],
    json: JsonOutput = False,
) -> None:
    """Show the charges of a client's ledger, in order, and its remaining budget; or a summary of a population's ledger."""
    if file.is_dir():
        _show_population_ledger(file, json=json)
        return
    client_ledger = Ledger(file)
    entries, spending = client_ledger.entries(), client_ledger.spent()
    remainder = client_ledger.budget.left(spending)
    record = {
        "budget": {"epsilon": client_ledger.budget.epsilon, "delta": client_ledger.budget.delta},
        "spent": {"epsilon": spending.epsilon, "basic": float(spending.basic)},
        "left": remainder,
        "charges": [{**vars(entry), "to": entry.to and entry.to.document} for entry in entries],
    }
    table = empty_table("charge", "time, UTC", "agreement", "for", "round", "epsilon", texts=4)
    for entry in entries:
        recipient = "" if entry.to is None else safe_text(entry.to.address, most=40)
        table.add_row(
            str(entry.number),
            _time_text(entry.time),
            entry.agreement[:12],
            recipient,
            str(entry.round),
            f"{entry.epsilon:g}",
        )
    summary = (
        f"Budget {client_ledger.budget}. Spent {format_number(spending.epsilon)}, left {format_number(remainder)}."
    )
    if spending.epsilon < float(spending.basic):
        summary += f"\n(The epsilons add up to {format_number(float(spending.basic))}.)"
    print_json_or_text(record, *([table] if entries else []), summary, json=json)


def make_secret_file(
    file: Annotated[Path, positional_argument(None, "The file to make. An existing file is never replaced.")],
    json: Annotated[bool, flag_option("--json", "Print JSON; the secret itself is never printed.")] = False,
) -> None:
    """Make a secret for `discreet sample --secret`: 32 random bytes in a new file that only you may read.

    With the same secret, data, agreement and round, a release gives the same samples again. Anyone with the secret can undo the privacy of
    every sample made with it. Protect it like the data, and keep it apart from the samples.
    """
    write_secret(file)
    if json:
        print_json({"file": str(file), "mode": "0600"})
        return
    typer.echo(f"wrote {spell_out_invisible(str(file))} (mode 0600); back it up like the data, and never publish it")


SentOther = Annotated[
    str | None,
    value_option(
        "LABEL",
        "The outcome that values outside the domain become, if the agreement names none. [default: the agreement's rule: they are left "
        "out, or moved to the nearest end of an interval]",
    ),
]
SentValues = Annotated[
    list[str],
    value_option("COLUMN", "Column of values. For a survey, each of its columns: --value region --value age."),
]
SentNulls = Annotated[
    str,
    value_option(
        "error|drop|other",
        "Null values: an error before anything is sent, or with drop and other alike values outside the domain.",
    ),
]


def send_samples_of_table(
    source: TableSource,
    to: Annotated[str, value_option("URL", "The collector: https://..., or http:// on this machine.")],
    client: ClientColumn,
    value: SentValues,
    secret: Annotated[
        Path,
        value_option(
            "FILE", "Made by `discreet secret`: fixes samples and names, so that a repeated run sends the same."
        ),
    ],
    round_number: Annotated[int | None, value_option("R", "The round. [default: the open one]", "--round")] = None,
    agreement: Annotated[
        str | None, value_option("FILE|ID", "The only agreement to accept. [default: the offered one]")
    ] = None,
    epsilon: Annotated[float, value_option("E", "The largest epsilon of a sample to accept.")] = LARGE_EPSILON,
    domain: AgreedDomainFile = None,
    other: SentOther = None,
    nulls: SentNulls = "error",
    count: CountColumn = None,
    weight: WeightColumn = None,
    ledger: Annotated[
        Path | None, value_option("FOLDER", "Counts what each client spends. [default: SECRET.ledger]")
    ] = None,
    budget: ClientBudget = None,
    over_budget: OverBudget = "refuse",
    gateway_token_file: Annotated[
        Path | None, value_option("FILE", "File with the gateway's token, for a collection with enrolment (mode 600).")
    ] = None,
    key: Annotated[
        str | None,
        value_option(
            "KEY",
            "The collector's public key; an agreement without its signature is an error. [default: the first one seen]",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None, value_option("FILE", "Certificate authorities to trust, besides the system's.")
    ] = None,
    plain_http: Annotated[
        bool, flag_option("--plain-http", "Allow unencrypted http to another machine, on a network of your own.")
    ] = False,
    timeout: Annotated[float, value_option("S", "Seconds to wait for an answer.")] = 60.0,
    patience: Annotated[float, value_option("S", "Seconds to keep trying, for each batch.")] = 600.0,
    json: JsonSummary = False,
    quiet: Quiet = False,
) -> None:
    """Send one private sample for each client of a table to a collector. If a run fails, run it again with the --round that it names.

    Each client is then counted once, and nothing more is spent.

    Raw records never leave this machine. Names of clients are derived from the secret: nobody without it can link them to clients.
    """
    from discreet.client import parse_address, pinned_agreement_or_id, send_table  # loaded for `send` alone
    from discreet.tables import open_source  # polars

    disable_core_dumps()
    tls = _tls_context(ca_file)
    try:
        parse_address(to, plain_http=plain_http, tls=tls)
    except DiscreetError as error:
        raise DiscreetError(str(error).replace("url", "--to", 1)) from None
    release_secret = read_secret(secret)
    token = None if gateway_token_file is None else _read_gateway_token(gateway_token_file)
    labels = domain_from_options(domain)
    agreement_or_id = pinned_agreement_or_id(agreement)
    least_epsilon = agreement_or_id.epsilon if isinstance(agreement_or_id, Agreement) else 0.0
    population_ledger = (
        None
        if ledger is None
        else open_or_create_population_ledger(
            ledger, budget, release_secret, epsilon=least_epsilon, quiet=quiet or json
        )
    )
    try:
        with (
            open_source(source) if source == STANDARD else nullcontext(source) as records,
            using_progress_bars_on_terminal(showing_sending_progress, quiet=quiet) as progress,
        ):
            summary = send_table(
                to,
                records,
                client=client,
                value=value[0] if len(value) == 1 else value,
                secret=release_secret,
                count=count,
                weight=weight,
                domain=labels,
                other=other,
                nulls=nulls,
                round=round_number,
                agreement=agreement_or_id,
                epsilon=epsilon,
                ledger=population_ledger,
                budget=budget if population_ledger is None else None,
                over_budget=over_budget,
                token=token,
                key=key,
                timeout=timeout,
                patience=patience,
                plain_http=plain_http,
                tls=tls,
                progress=progress,
                notify=None if quiet else print_message,
            )
    except KeyboardInterrupt as interruption:
        if interruption.args:  # with which round to go on
            print_message(str(interruption))
        raise
    if json:
        print_json({**asdict(summary), "samples": summary.samples})
    elif not quiet:
        typer.echo("\n".join(map(spell_out_invisible, _sending_summary_lines(summary, to))), err=True)


def _sending_summary_lines(summary: "Sent", url: str) -> list[str]:
    lines = [
        f"{pluralise(summary.samples, 'sample')} sent to {url}",
        f"{summary.counted:,} counted, {summary.again:,} were there already, {summary.refused:,} refused",
        f"agreement {summary.agreement}, round {summary.round}",
    ]
    if summary.refused:
        lines.append("refused: clients with another sample in this round already; nothing was changed for them")
    if summary.outside:
        lines.append(
            f"{pluralise(summary.outside, 'value')} of the table outside the agreement's domain, or missing: left out, or taken as the "
            "agreement says. The collector cannot tell. Look at them before the next round: discreet sample --dry-run"
        )
    if summary.without_records:
        lines.append(
            f"{pluralise(summary.without_records, 'client')} had no other values: what is drawn for such a client does not depend on its "
            "data, and costs as much"
        )
    return lines


def _read_gateway_token(path: Path) -> str:
    """The token in a file that only its owner may read."""
    try:
        refuse_file_open_to_others(path, os.stat(path), what="--gateway-token-file")
    except (OSError, ValueError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise DiscreetError(f"--gateway-token-file {path} cannot be read: {error_reason(error)}") from None
    lines = read_lines(path, "token", each="a token")
    if len(lines) != 1:
        raise DiscreetError(f"--gateway-token-file {path} holds {len(lines)} lines, not the gateway's token alone")
    return lines[0].strip()


def _tls_context(ca_file: Path | None) -> "ssl.SSLContext | None":
    if ca_file is None:
        return None
    import ssl

    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:
        raise DiscreetError(f"--ca-file {ca_file} cannot be read: {error_reason(error)}") from None
    return context
