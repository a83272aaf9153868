"""`discreet send`: release one private sample for each client of a table, and send it to a collector."""

import os
import ssl
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from discreet._base.files import check_private, error_reason, read_lines
from discreet._base.showing import pluralise
from discreet.cli._ledger import open_ledger
from discreet.cli._options import (
    AgreedDomainFile,
    ClientBudget,
    ClientColumn,
    CountColumn,
    JsonSummary,
    OverBudget,
    Quiet,
    TableSource,
    WeightColumn,
    disable_core_dumps,
    option,
    show_progress,
    stated_domain,
    switch,
)
from discreet.cli._printing import write_json
from discreet.client import Sent, address_of, send_table
from discreet.errors import DiscreetError, visible
from discreet.privacy.tradeoff import LARGE_EPSILON
from discreet.release import read_secret
from discreet.tables import STANDARD, open_source

SentOther = Annotated[
    str | None,
    option(
        "LABEL",
        "The outcome that values outside the domain become, if the agreement names none. [default: the agreement's rule: they are left "
        "out, or moved to the nearest end of an interval]",
    ),
]
SentValues = Annotated[
    list[str],
    option("COLUMN", "Column of values. For a survey, each of its columns: --value region --value age."),
]
SentNulls = Annotated[
    str,
    option(
        "error|drop|other",
        "Null values: an error before anything is sent, or with drop and other alike values outside the domain.",
    ),
]


def send(
    source: TableSource,
    to: Annotated[str, option("URL", "The collector: https://..., or http:// on this machine.")],
    client: ClientColumn,
    value: SentValues,
    secret: Annotated[
        Path,
        option("FILE", "Made by `discreet secret`: fixes samples and names, so that a repeated run sends the same."),
    ],
    round_number: Annotated[int | None, option("R", "The round. [default: the open one]", "--round")] = None,
    agreement: Annotated[
        str | None, option("FILE|ID", "The only agreement to accept. [default: the offered one]")
    ] = None,
    epsilon: Annotated[float, option("E", "The largest epsilon of a sample to accept.")] = LARGE_EPSILON,
    domain: AgreedDomainFile = None,
    other: SentOther = None,
    nulls: SentNulls = "error",
    count: CountColumn = None,
    weight: WeightColumn = None,
    ledger: Annotated[Path | None, option("FOLDER", "Counts what each client spends. [default: SECRET.ledger]")] = None,
    budget: ClientBudget = None,
    over_budget: OverBudget = "refuse",
    gateway_token_file: Annotated[
        Path | None, option("FILE", "File with the gateway's token, for a collection with enrolment (mode 600).")
    ] = None,
    key: Annotated[
        str | None,
        option(
            "KEY",
            "The collector's public key; an agreement without its signature is an error. [default: the first one seen]",
        ),
    ] = None,
    ca_file: Annotated[Path | None, option("FILE", "Certificate authorities to trust, besides the system's.")] = None,
    plain_http: Annotated[
        bool, switch("--plain-http", "Allow unencrypted http to another machine, on a network of your own.")
    ] = False,
    timeout: Annotated[float, option("S", "Seconds to wait for an answer.")] = 60.0,
    patience: Annotated[float, option("S", "Seconds to keep trying, for each batch.")] = 600.0,
    json: JsonSummary = False,
    quiet: Quiet = False,
) -> None:
    """Send one private sample for each client of a table to a collector. If a run fails, run it again: each client is counted once.

    Raw records never leave this machine. Names of clients are derived from the secret: nobody without it can link them to clients.
    """
    disable_core_dumps()
    trusted = _tls_context(ca_file)
    try:
        address_of(to, plain_http=plain_http, tls=trusted)
    except DiscreetError as error:
        raise DiscreetError(str(error).replace("url", "--to", 1)) from None
    held = read_secret(secret)
    token = None if gateway_token_file is None else _read_gateway_token(gateway_token_file)
    labels = stated_domain(domain, None, None, None)
    books = None if ledger is None else open_ledger(ledger, budget, held, quiet=quiet or json)
    with (
        open_source(source) if source == STANDARD else nullcontext(source) as records,
        show_progress("sending_bar", quiet=quiet) as progress,
    ):
        sent = send_table(
            to,
            records,
            client=client,
            value=value[0] if len(value) == 1 else value,
            secret=held,
            count=count,
            weight=weight,
            domain=labels,
            other=other,
            nulls=nulls,
            round=round_number,
            agreement=agreement,
            epsilon=epsilon,
            ledger=books,
            budget=budget if books is None else None,
            over_budget=over_budget,
            token=token,
            key=key,
            timeout=timeout,
            patience=patience,
            plain_http=plain_http,
            tls=trusted,
            progress=progress,
        )
    if json:
        write_json({**asdict(sent), "samples": sent.samples})
    elif not quiet:
        typer.echo("\n".join(map(visible, _summary_lines(sent, to))), err=True)


def _summary_lines(sent: Sent, to: str) -> list[str]:
    lines = [
        f"{pluralise(sent.samples, 'sample')} sent to {to}",
        f"{sent.counted:,} counted, {sent.again:,} were there already, {sent.refused:,} refused",
        f"agreement {sent.agreement}, round {sent.round}",
    ]
    if sent.refused:
        lines.append("refused: clients with another sample in this round already; nothing was changed for them")
    return lines


def _read_gateway_token(path: Path) -> str:
    """The token in a file that only its owner may read."""
    try:
        check_private(path, os.stat(path), what="--gateway-token-file")
    except (OSError, ValueError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise DiscreetError(f"--gateway-token-file {path} cannot be read: {error_reason(error)}") from None
    lines = read_lines(path, "token", each="a token")
    if len(lines) != 1:
        raise DiscreetError(f"--gateway-token-file {path} holds {len(lines)} lines, not the gateway's token alone")
    return lines[0].strip()


def _tls_context(ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ValueError) as error:
        raise DiscreetError(f"--ca-file {ca_file} cannot be read: {error_reason(error)}") from None
    return context
