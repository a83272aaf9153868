"""`discreet collect`: a service that takes one sample of each client, and shows what has been learnt so far."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.agreement import Agreement
from discreet.cli._options import given_domain, labels_in
from discreet.cli._printing import say, write_json_line
from discreet.collect import serve
from discreet.collect._catalogue import collectable
from discreet.collect._opening import shown
from discreet.errors import DiscreetError


def collect(
    agreements: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="AGREEMENT...",
            help="What clients agree on, as `discreet agree` writes it; none to go on as before.",
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(metavar="FILE|URL", help="Where samples are kept: a file, or postgresql://USER@HOST/DATABASE."),
    ] = "samples.db",
    port: Annotated[int, typer.Option("--port", metavar="N", help="0: one that is free.")] = 8000,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; unless said, to this machine alone.")
    ] = "127.0.0.1",
    follows: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The agreement that this one follows: a client speaks once under both."),
    ] = None,
    round_number: Annotated[
        list[int] | None,
        typer.Option(
            "--round", metavar="R", help="The round that is open; may be repeated. [default: 1]", show_default=False
        ),
    ] = None,
    domain: Annotated[Path | None, labels_in(", where the agreement holds only a digest of them")] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take samples of those alone who hold one of these tokens (`discreet enrol`)."
        ),
    ] = None,
    gateways: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tokens of gateways, which name their clients themselves.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose pages may read and send, https://...; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name that a proxy calls the service by; may be repeated. [default: this machine's]"
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a client may take to send a request.")
    ] = 30.0,
    workers: Annotated[int, typer.Option(metavar="N", help="How many processes.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the address as one line of JSON.")] = False,
) -> None:
    """Take one sample of each client over HTTP, count each once, and show the estimate so far.

    A sample is acknowledged once it is on disk. No table says who said what. Ctrl-C or SIGTERM ends it: what was taken is written first.
    TLS is a reverse proxy's.
    """
    labels = given_domain(domain, None, None, None)
    files = agreements or []
    for option, given in (("--follows", follows), ("--domain", domain)):
        if given is not None and len(files) != 1:
            raise DiscreetError(f"{option} is about one agreement; name one file")
    found = [collectable(Agreement.read(file), labels)[0] for file in files]

    def listening(address: str) -> None:
        if json:
            write_json_line({"address": address, "store": shown(store), "agreements": [each.id for each in found]})
        else:
            say("\n".join([f"{address} (Ctrl-C ends it)", *(f"agreement {each.id}" for each in found)]))

    serve(
        store,
        found,
        follows=follows,
        host=host,
        port=port,
        rounds=tuple(round_number or (1,)),
        tokens=tokens,
        gateways=gateways,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        patience=patience,
        workers=workers,
        listening=listening,
    )
