"""`discreet collect`: a service that takes one sample of each client and shows estimates."""

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.agreement import Agreement
from discreet.cli._options import labels_option, stated_domain
from discreet.cli._printing import print_blocks, safe_text, write_json_line
from discreet.client import read_collector_key
from discreet.collect import SEAL_VARIABLE, collectable, display_name, serve
from discreet.errors import DiscreetError

_NOT_SEALED = "not sealed: the database's dead rows and logs can link clients to their samples; --seal FILE prevents it"


def collect(
    agreements: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="AGREEMENT...",
            help="Agreements written by `discreet agree`; none to continue a store.",
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(metavar="FILE|URL", help="Where samples are kept: a file, or postgresql://USER@HOST/DATABASE."),
    ] = "samples.db",
    port: Annotated[int, typer.Option("--port", metavar="N", help="The port; 0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default for this machine only.")
    ] = "127.0.0.1",
    follows: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The agreement that this one follows: a client sends one sample under both."),
    ] = None,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups",
            help="The agreements are those of public groups, named by their purposes: a client sends one sample under one of them.",
        ),
    ] = False,
    round_number: Annotated[
        list[int] | None,
        typer.Option("--round", metavar="R", help="An open round; may be repeated. [default: 1]", show_default=False),
    ] = None,
    domain: Annotated[Path | None, labels_option(", where the agreement holds only a digest of them")] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Add these tokens (`discreet enrol`): only clients with a token may send samples, from now on.",
        ),
    ] = None,
    gateways: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add tokens of gateways, which name their clients themselves.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Sign the agreements with this key, which devices pin; created if missing."),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="With --key: where devices reach the service; may be repeated. [default: where it listens]",
        ),
    ] = None,
    replace_key: Annotated[
        bool, typer.Option("--replace-key", help="With --key: replace the key that signed before.")
    ] = False,
    seal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Encrypt samples that wait to be counted with this key, against readers of the store; created if "
            "missing.",
        ),
    ] = None,
    least: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Hide the estimates of fewer than N samples, on pages, in /estimate and in exports, from now on.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="always|after|never",
            help="When pages and /estimate show results: always, after a visitor's own sample, or never, from now on.",
            show_default=False,
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What people are asked in words: title, text, options, languages; a TOML or JSON file.",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose pages may read and send, https://...; may be repeated."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name that a proxy uses for the service; may be repeated. [default: this machine's]",
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a client may take to send a request.")
    ] = 30.0,
    workers: Annotated[int, typer.Option(metavar="N", help="Number of processes.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the address as one line of JSON.")] = False,
) -> None:
    """Take one sample of each client over HTTP, count each client once, and show estimates.

    A sample is acknowledged once it is on disk. No table links a client to its sample. End the service with Ctrl-C or SIGTERM; it first
    writes what it has taken. For TLS, use a reverse proxy.
    """
    labels = stated_domain(domain, None, None, None)
    files = agreements or []
    for option, given in (("--follows", follows), ("--domain", domain), ("--questions", questions)):
        if given is not None and len(files) != 1:
            raise DiscreetError(f"{option} is for one agreement; name one file")
    found = [collectable(Agreement.read(file), labels)[0] for file in files]
    made = [path for path in (key, seal) if path is not None and not os.path.lexists(path)]

    def listening(where: str) -> None:
        public = None if key is None else read_collector_key(key).public
        if json:
            signed = {} if public is None else {"key": public}
            ids = [each.id for each in found]
            write_json_line({"address": where, "store": display_name(store), "agreements": ids, **signed})
            return
        lines = [f"{where} (Ctrl-C ends it)", *(f"agreement {each.id}" for each in found)]
        lines += [f"made {safe_text(path)} (mode 0600); keep a copy of it" for path in made]
        lines += [] if public is None else [f"signed by {public}"]
        if "://" in store and seal is None and not os.environ.get(SEAL_VARIABLE):
            lines.append(_NOT_SEALED)
        print_blocks("\n".join(lines))

    serve(
        store,
        found,
        follows=follows,
        groups=groups,
        host=host,
        port=port,
        rounds=tuple(round_number or (1,)),
        tokens=tokens,
        gateways=gateways,
        key=key,
        addresses=tuple(address or ()),
        replace_key=replace_key,
        seal=seal,
        least=least,
        shown=show,
        questions=questions,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        patience=patience,
        workers=workers,
        listening=listening,
    )
