"""A collection: `discreet collect` serves it, and `enrol`, `invite`, `export`, `close` and `publish` manage its store.

`collect` takes one sample of each client and shows estimates. `enrol` makes the tokens by which a collector knows its clients, adds them to
a store and revokes them. `invite` writes links and QR codes to take part by. `export` writes the samples of a collection as a table that
`discreet estimate` reads. `close` ends a collection, and `publish` writes its result as a folder. Only `collect` needs the packages of the
service.
"""

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any

from discreet._base.files import refuse_same_file
from discreet._base.showing import pluralise
from discreet.agreement import Agreement, weights_path
from discreet.cli._options import (
    AgreedDomainFile,
    JsonOutput,
    domain_from_options,
    flag_option,
    positional_argument,
    refuse_given_options,
    value_option,
)
from discreet.cli._printing import print_json_line, print_json_or_text, print_text_blocks, safe_text
from discreet.client import read_collector_key
from discreet.collect import (
    SEAL_VARIABLE,
    add_tokens_to_store,
    close_collection,
    export as export_samples,
    find_agreement_by_prefix,
    invitation_links,
    open_store,
    publish as publish_result,
    read_tokens,
    store_display_name,
    token_digest,
    write_fresh_token_file,
    write_invitation_folder,
)
from discreet.errors import DiscreetError

_NOT_SEALED = "not sealed: the database's dead rows and logs can link clients to their samples; --seal FILE prevents it"

StoreArgument = Annotated[
    str, positional_argument("STORE", "Where samples are kept: a file, or postgresql://USER@HOST/DATABASE.")
]
SampleAgreement = Annotated[
    str | None,
    value_option(
        "ID", "The agreement of the samples: its id, or at least 12 of its first digits. [default: the newest]"
    ),
]
StoreSeal = Annotated[
    Path | None, value_option("FILE", "The key of a store that is sealed (`discreet collect --seal`).")
]


def serve_collection(
    agreements: Annotated[
        list[Path] | None,
        positional_argument("AGREEMENT...", "Agreements written by `discreet agree`; none to continue a store."),
    ] = None,
    store: Annotated[
        str, value_option("FILE|URL", "Where samples are kept: a file, or postgresql://USER@HOST/DATABASE.")
    ] = "samples.db",
    port: Annotated[int, value_option("N", "The port; 0 takes a free one.")] = 8000,
    host: Annotated[str, value_option("ADDRESS", "Where to listen; by default for this machine only.")] = "127.0.0.1",
    follows: Annotated[
        str | None, value_option("ID", "The agreement that this one follows: a client sends one sample under both.")
    ] = None,
    groups: Annotated[
        bool,
        flag_option(
            "--groups",
            "The agreements are those of public groups, named by their purposes: a client sends one sample under one of them.",
        ),
    ] = False,
    round_number: Annotated[
        list[int] | None, value_option("R", "An open round; may be repeated. [default: 1]", "--round")
    ] = None,
    domain: AgreedDomainFile = None,
    tokens: Annotated[
        Path | None,
        value_option(
            "FILE", "Add these tokens (`discreet enrol`): only clients with a token may send samples, from now on."
        ),
    ] = None,
    gateways: Annotated[
        Path | None, value_option("FILE", "Add tokens of gateways, which name their clients themselves.")
    ] = None,
    key: Annotated[
        Path | None, value_option("FILE", "Sign the agreements with this key, which devices pin; created if missing.")
    ] = None,
    address: Annotated[
        list[str] | None,
        value_option(
            "URL", "With --key: where devices reach the service; may be repeated. [default: where it listens]"
        ),
    ] = None,
    replace_key: Annotated[
        bool, flag_option("--replace-key", "With --key: replace the key that signed before.")
    ] = False,
    seal: Annotated[
        Path | None,
        value_option(
            "FILE",
            "Encrypt samples that wait to be counted with this key, against readers of the store; created if missing.",
        ),
    ] = None,
    least: Annotated[
        int | None,
        value_option(
            "N", "Hide the estimates of fewer than N samples, on pages, in /estimate and in exports, from now on."
        ),
    ] = None,
    show: Annotated[
        str | None,
        value_option(
            "always|after|never",
            "When pages and /estimate show results: always, after a visitor's own sample, or never, from now on.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        value_option("FILE", "What people are asked in words: title, text, options, languages; a TOML or JSON file."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, value_option("ORIGIN", "A site whose pages may read and send, https://...; may be repeated.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        value_option(
            "NAME", "A host name that a proxy uses for the service; may be repeated. [default: this machine's]"
        ),
    ] = None,
    patience: Annotated[float, value_option("SECONDS", "How long a client may take to send a request.")] = 30.0,
    workers: Annotated[int, value_option("N", "Number of processes.")] = 1,
    json: Annotated[bool, flag_option("--json", "Print the address as one line of JSON.")] = False,
) -> None:
    """Take one sample of each client over HTTP, count each client once, and show estimates.

    A sample is acknowledged once it is on disk. No table links a client to its sample. End the service with Ctrl-C or SIGTERM; it first
    writes what it has taken. For TLS, use a reverse proxy.
    """
    from discreet.collect import labelled_agreement_coding_and_sampler, serve  # needs the packages of the service

    labels = domain_from_options(domain)
    files = agreements or []
    if len(files) != 1:
        options = {"--follows": follows, "--domain": domain, "--questions": questions}
        refuse_given_options(options, "is for one agreement; name one file")
    terms = [labelled_agreement_coding_and_sampler(Agreement.read(file), labels)[0] for file in files]
    new_files = [path for path in (key, seal) if path is not None and not os.path.lexists(path)]

    def print_collector_address(service_url: str) -> None:
        public_key = None if key is None else read_collector_key(key).public
        if json:
            key_entry = {} if public_key is None else {"key": public_key}
            ids = [agreement.id for agreement in terms]
            print_json_line(
                {"address": service_url, "store": store_display_name(store), "agreements": ids, **key_entry}
            )
            return
        lines = [f"{service_url} (Ctrl-C ends it)", *(f"agreement {agreement.id}" for agreement in terms)]
        lines += [f"made {safe_text(path)} (mode 0600); keep a copy of it" for path in new_files]
        lines += [] if public_key is None else [f"signed by {public_key}"]
        lines += _other_collections_lines(store)
        if "://" in store and seal is None and not os.environ.get(SEAL_VARIABLE):
            lines.append(_NOT_SEALED)
        print_text_blocks("\n".join(lines))

    serve(
        store,
        terms,
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
        listening=print_collector_address,
    )


def _other_collections_lines(store_name: str) -> list[str]:
    """What is collected in the store besides the newest collection, if anything is: devices that name no agreement get the newest."""
    with suppress(DiscreetError), closing(open_store(store_name, create=False)) as store:  # which is served already
        stored_agreements = store.agreements()
        newest = stored_agreements[-1]
        others = {
            stored.collection: stored.agreement for stored in stored_agreements
            if stored.closed is None and stored.collection != newest.collection
        }  # fmt: skip
        if others:
            names = ", ".join(
                agreement.id[:12] + (f" ({safe_text(agreement.purpose, most=60)})" if agreement.purpose else "")
                for agreement in others.values()
            )
            return [
                f"{safe_text(store_display_name(store_name))} also holds {names}: whoever names no agreement gets the newest one, "
                f"{newest.agreement.id[:12]}. To keep collections apart, give each a --store of its own"
            ]
    return []


def make_or_change_tokens(
    number: Annotated[int | None, positional_argument("N", "Number of tokens to make.")] = None,
    output: Annotated[
        Path | None, value_option("FILE", "A new file, one token on each line.", "--output", "-o")
    ] = None,
    store: Annotated[
        str | None,
        value_option("FILE|URL", "A store in which to add, revoke or replace tokens. Services see changes at once."),
    ] = None,
    add: Annotated[Path | None, value_option("FILE", "Add the tokens of clients in this file.")] = None,
    add_gateways: Annotated[Path | None, value_option("FILE", "Add the tokens of gateways in this file.")] = None,
    revoke: Annotated[
        Path | None, value_option("FILE", "Revoke the tokens in this file, of clients and of gateways.")
    ] = None,
    replace_gateways: Annotated[
        tuple[Path, Path] | None,
        value_option("OLD NEW", "Give gateways new tokens, line by line; they stay the same gateways."),
    ] = None,
    json: Annotated[bool, flag_option("--json", "Print JSON; the tokens themselves are never printed.")] = False,
) -> None:
    """Make tokens for a collection, in a new file that only you may read; add them to a store, or revoke them there.

    A client with a token may send one sample in each round. Distribute tokens without noting who got which: such a list would show who took
    part on which day, although no table links a client to its sample. Once a store contains a token, it takes samples only from enrolled
    clients and gateways. Revoking a token is final.
    """
    changes = [change for change in (add, add_gateways, revoke, replace_gateways) if change is not None]
    if (number is None) != (output is None) or (number is None and not changes):
        raise DiscreetError(
            "say how many tokens to make and where, N -o FILE, or what to change in a store: --add FILE"
        )
    if bool(changes) != (store is not None):
        raise DiscreetError("--store names the store that --add, --add-gateways, --revoke or --replace-gateways change")
    record: dict[str, Any] = {}
    if number is not None and output is not None:
        write_fresh_token_file(output, number)
        record |= {"file": str(output), "tokens": number, "mode": "0600"}
    if store is not None:
        record |= _add_revoke_or_replace_tokens(store, add, add_gateways, revoke, replace_gateways)
    lines = [] if number is None else [f"wrote {pluralise(number, 'token')} to {safe_text(output)} (mode 0600)"]
    actions = [action for action in ("added", "revoked", "replaced") if action in record]
    lines += [f"{action} {pluralise(record[action], 'token')}" for action in actions]
    print_json_or_text(record, "\n".join(lines), json=json)


def _add_revoke_or_replace_tokens(
    store_name: str, add: Path | None, gateways: Path | None, revoke: Path | None, replace: tuple[Path, Path] | None
) -> dict[str, Any]:
    """Change the tokens of a store, and return how many were added, revoked and replaced."""
    new_tokens = [[] if path is None else read_tokens(path) for path in (add, gateways)]
    revoked_tokens = [] if revoke is None else read_tokens(revoke)
    old_tokens, replacements = ([], []) if replace is None else (read_tokens(replace[0]), read_tokens(replace[1]))
    if len(old_tokens) != len(replacements):
        raise DiscreetError(
            f"the files of --replace-gateways hold {len(old_tokens):,} and {len(replacements):,} tokens, not as many"
        )
    counts: dict[str, Any] = {}
    with closing(open_store(store_name, create=False)) as store:
        if any(new_tokens):
            counts["added"] = add_tokens_to_store(store, *new_tokens)
        if revoked_tokens:
            counts["revoked"] = store.revoke_token_digests(map(token_digest, revoked_tokens))
            if counts["revoked"] < len(revoked_tokens):
                missing = len(revoked_tokens) - counts["revoked"]
                raise DiscreetError(
                    f"{missing:,} of the {len(revoked_tokens):,} tokens in {revoke} are not in the store or were revoked before; the "
                    "others are revoked"
                )
        if old_tokens:
            store.replace_gateway_tokens(
                [(token_digest(a), token_digest(b)) for a, b in zip(old_tokens, replacements, strict=True)]
            )
            counts["replaced"] = len(old_tokens)
    return counts


def invite_clients(
    store: StoreArgument,
    address: Annotated[str, value_option("URL", "Where people reach the service, https://...")],
    output: Annotated[Path, value_option("FOLDER", "A new folder.", "--output", "-o")],
    tokens: Annotated[
        Path | None, value_option("FILE", "A link for each of these tokens, in random order (`discreet enrol`).")
    ] = None,
    agreement: SampleAgreement = None,
    lang: Annotated[
        str | None, value_option("CODE", "The language of the page, such as de. [default: the browser's]")
    ] = None,
    offline: Annotated[bool, flag_option("--offline", "The page can be opened without a network later.")] = False,
    field: Annotated[bool, flag_option("--field", "For a device that goes from person to person.")] = False,
    json: JsonOutput = False,
) -> None:
    """Write links for taking part, and a sheet of QR codes to print, to a new folder that only you may read.

    Without tokens there is one link for everybody. A token is in the part of its link after the #. Browsers do not send that part, so it is
    in no log. A link also names the digest of the questions: the page then shows no other questions.
    """
    client_tokens = [] if tokens is None else read_tokens(tokens)
    if field and client_tokens:
        raise DiscreetError("--field is for a device of many people, and --tokens for one link each; choose one")
    fields = [
        *([] if lang is None else [f"lang={lang}"]),
        *(["field"] if field else []),
        *(["offline"] if offline else []),
    ]
    if lang is not None and not (lang.replace("-", "").isalnum() and lang.isascii()):
        raise DiscreetError(f"lang = {lang!r} is not a code of a language such as de")
    with closing(open_store(store, create=False)) as sample_store:
        links = invitation_links(sample_store, address, client_tokens, agreement=agreement, more="&".join(fields))
        purpose = find_agreement_by_prefix(sample_store.agreements(), agreement).agreement.purpose
    write_invitation_folder(output, links, purpose)
    print_json_or_text(
        {"folder": str(output), "links": len(links)},
        f"{pluralise(len(links), 'link')} in {safe_text(output)}: links.csv and invitations.html (for you alone)",
        json=json,
    )


def export_collected_samples(
    store: StoreArgument,
    output: Annotated[Path, value_option("OUT", "A file that ends in .parquet, .csv or .arrow.", "--output", "-o")],
    agreement: SampleAgreement = None,
    round_number: Annotated[int, value_option("R", "The round to export.", "--round")] = 1,
    write_agreement: Annotated[
        Path | None, value_option("FILE", "Also write the agreement; Parquet and Arrow files carry it anyway.")
    ] = None,
    seal: StoreSeal = None,
    force: Annotated[
        bool, flag_option("--force", "Replace OUT if it exists (never the store, a link or a device).")
    ] = False,
    json: JsonOutput = False,
) -> None:
    """Write the samples of a collection as a table for `discreet estimate`. For reports, write their table of counts.

    No table of a store links a client to its sample. The rows are made from the counts, in random order; their numbers identify no client.
    The service may keep running.
    """
    with closing(open_store(store, create=False, seal=seal)) as sample_store:
        if write_agreement is not None:
            refuse_same_file(output, {"agreement": write_agreement, "weights": weights_path(write_agreement)})
            terms = find_agreement_by_prefix(sample_store.agreements(), agreement).agreement
            terms.check_file(write_agreement)
        export = export_samples(sample_store, output, agreement=agreement, round=round_number, replace=force)
        if write_agreement is not None:
            export.agreement.write(write_agreement)
    record = {
        "agreement": export.agreement.id,
        "round": export.round,
        f"{export.what}s": export.samples,
        "output": str(output),
        **({} if write_agreement is None else {"agreement_file": str(write_agreement)}),
    }
    samples_text = f"{'' if export.what == 'sample' else 'the table of '}{pluralise(export.samples, export.what)}"
    round_text = f"of round {export.round} under agreement {export.agreement.id[:12]}"
    print_json_or_text(record, f"wrote {samples_text} {round_text} to {safe_text(output)}", json=json)


def close_collection_for_good(
    store: StoreArgument,
    agreement: Annotated[
        str | None,
        value_option(
            "ID",
            "Any agreement of the collection: its id, or at least 12 of its first digits. [default: the only collection]",
        ),
    ] = None,
    json: JsonOutput = False,
) -> None:
    """Close a collection for good: from now on nothing is counted in it.

    Services may keep running. They refuse new samples from this moment on, acknowledge those that were counted, and show the estimate as it
    stays. A collection that is closed cannot be opened again.
    """
    with closing(open_store(store, create=False)) as sample_store:
        stored_agreement, day = close_collection(sample_store, agreement=agreement)
    message = f"closed collection {stored_agreement.collection[:12]} on {day}"
    print_json_or_text({"collection": stored_agreement.collection, "closed": day}, message, json=json)


def publish_closed_collection(
    store: StoreArgument,
    output: Annotated[Path, value_option("FOLDER", "A new folder.", "--output", "-o")],
    agreement: SampleAgreement = None,
    round_number: Annotated[int, value_option("R", "The round to publish.", "--round")] = 1,
    confidence: Annotated[float, value_option("C", "Confidence of every interval.")] = 0.95,
    seal: StoreSeal = None,
    json: JsonOutput = False,
) -> None:
    """Write the result of a closed collection as a folder: a page without scripts, a table, a picture, the estimate and the agreement.

    Every number has all its digits, as `discreet estimate` prints them. The folder needs no service: put it on any web server, or open
    index.html from a disk. Publishing again gives the same bytes.
    """
    with closing(open_store(store, create=False, seal=seal)) as sample_store:
        publication = publish_result(
            sample_store, output, agreement=agreement, round=round_number, confidence=confidence
        )
    record = {
        "agreement": publication.agreement.id,
        "round": publication.round,
        f"{publication.what}s": publication.samples,
        "closed": publication.closed,
        "output": str(output),
    }
    round_text = f"of round {publication.round} under agreement {publication.agreement.id[:12]}"
    message = f"published the result of {pluralise(publication.samples, publication.what)} {round_text} in {safe_text(output)}"
    print_json_or_text(record, message, json=json)
