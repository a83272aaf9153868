"""`discreet collect`: a service that takes one sample of each client and shows estimates."""

import os
from pathlib import Path
from typing import Annotated

from discreet.agreement import Agreement
from discreet.cli._options import AgreedDomainFile, argument, option, refuse_given, stated_domain, switch
from discreet.cli._printing import print_blocks, safe_text, write_json_line
from discreet.client import read_collector_key
from discreet.collect import SEAL_VARIABLE, collectable, display_name, serve

_NOT_SEALED = "not sealed: the database's dead rows and logs can link clients to their samples; --seal FILE prevents it"


def collect(
    agreements: Annotated[
        list[Path] | None, argument("AGREEMENT...", "Agreements written by `discreet agree`; none to continue a store.")
    ] = None,
    store: Annotated[
        str, option("FILE|URL", "Where samples are kept: a file, or postgresql://USER@HOST/DATABASE.")
    ] = "samples.db",
    port: Annotated[int, option("N", "The port; 0 takes a free one.")] = 8000,
    host: Annotated[str, option("ADDRESS", "Where to listen; by default for this machine only.")] = "127.0.0.1",
    follows: Annotated[
        str | None, option("ID", "The agreement that this one follows: a client sends one sample under both.")
    ] = None,
    groups: Annotated[
        bool,
        switch(
            "--groups",
            "The agreements are those of public groups, named by their purposes: a client sends one sample under one of them.",
        ),
    ] = False,
    round_number: Annotated[
        list[int] | None, option("R", "An open round; may be repeated. [default: 1]", "--round")
    ] = None,
    domain: AgreedDomainFile = None,
    tokens: Annotated[
        Path | None,
        option("FILE", "Add these tokens (`discreet enrol`): only clients with a token may send samples, from now on."),
    ] = None,
    gateways: Annotated[
        Path | None, option("FILE", "Add tokens of gateways, which name their clients themselves.")
    ] = None,
    key: Annotated[
        Path | None, option("FILE", "Sign the agreements with this key, which devices pin; created if missing.")
    ] = None,
    address: Annotated[
        list[str] | None,
        option("URL", "With --key: where devices reach the service; may be repeated. [default: where it listens]"),
    ] = None,
    replace_key: Annotated[bool, switch("--replace-key", "With --key: replace the key that signed before.")] = False,
    seal: Annotated[
        Path | None,
        option(
            "FILE",
            "Encrypt samples that wait to be counted with this key, against readers of the store; created if missing.",
        ),
    ] = None,
    least: Annotated[
        int | None,
        option("N", "Hide the estimates of fewer than N samples, on pages, in /estimate and in exports, from now on."),
    ] = None,
    show: Annotated[
        str | None,
        option(
            "always|after|never",
            "When pages and /estimate show results: always, after a visitor's own sample, or never, from now on.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        option("FILE", "What people are asked in words: title, text, options, languages; a TOML or JSON file."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, option("ORIGIN", "A site whose pages may read and send, https://...; may be repeated.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        option("NAME", "A host name that a proxy uses for the service; may be repeated. [default: this machine's]"),
    ] = None,
    patience: Annotated[float, option("SECONDS", "How long a client may take to send a request.")] = 30.0,
    workers: Annotated[int, option("N", "Number of processes.")] = 1,
    json: Annotated[bool, switch("--json", "Print the address as one line of JSON.")] = False,
) -> None:
    """Take one sample of each client over HTTP, count each client once, and show estimates.

    A sample is acknowledged once it is on disk. No table links a client to its sample. End the service with Ctrl-C or SIGTERM; it first
    writes what it has taken. For TLS, use a reverse proxy.
    """
    labels = stated_domain(domain, None, None, None)
    files = agreements or []
    if len(files) != 1:
        given = {"--follows": follows, "--domain": domain, "--questions": questions}
        refuse_given(given, "is for one agreement; name one file")
    found = [collectable(Agreement.read(file), labels)[0] for file in files]
    made = [path for path in (key, seal) if path is not None and not os.path.lexists(path)]

    def print_address(where: str) -> None:
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
        listening=print_address,
    )
