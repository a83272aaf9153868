"""Enrolment of clients and gateways by tokens, and agreements signed by the collector's key.

**Tokens.** A token is the name of one client. A gateway sends its token in a header and names its clients itself. The store keeps and looks
up digests of tokens, so the time of a look-up reveals nothing about a token. Enrolment belongs to the store: every service of it takes the
same tokens, and a store that was enrolled once stays so, whatever the options of a service. A revoked client token is rejected at once, a
gateway's within a second. Gateways have separate names: the digest of a client's name includes the gateway's id, so "x" of one gateway
differs from "x" of another and from the holder of a token "x".

Tokens reduce anonymity: a person who distributed them, and has the store or watches requests, can tell which clients took part on which
day. No table contains their samples. Without tokens nobody is known, and anybody can send samples under any number of names.

**Signatures.** A signature states that an agreement, in its collection and after the one it follows, is collected at certain addresses
(`discreet.client._protocol.CollectionStatement`). Devices that have pinned the key accept it. The store keeps it beside the agreement, so
every service of the store shows it, with or without the key. The key itself stays in its file. A store has one key. Another one is taken
only if the operator says so, since devices that have pinned the first reject the second.

**Invitations.** A link opens the page to take part by. After its # stand a person's token and the first digits of the questions' digest,
which browsers send to nobody: they appear in no log of a server. As a QR code it can be printed.
"""

import csv
import hashlib
import html
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from discreet._base.files import atomic_folder, atomic_write, read_private
from discreet.client import (
    MOST_NAME,
    CollectionStatement,
    CollectorKey,
    check_addresses,
    has_valid_signature,
    short_key,
)
from discreet.collect._counting import token_digest
from discreet.collect._pages import TAKE_PART
from discreet.collect._store import Store, choose_agreement, refuse_shared_tokens
from discreet.errors import DiscreetError, check_count, check_texts, need_extra, visible

NAME_PATTERN = re.compile(rf"[!-~]{{1,{MOST_NAME}}}")  # of a client, a key or a token
NAME_RULE = f"1 to {MOST_NAME} visible ASCII characters without a space"
MOST_TOKENS = 10_000_000
_SHORTEST = 16  # characters of a token, too many to guess
_LARGEST_FILE = 1 << 31


def check_no_client_is_gateway(tokens: Iterable[str], gateways: Iterable[str]) -> None:
    """Raise an error for a token in both lists: its client could send samples for many."""
    refuse_shared_tokens(len(set(tokens) & set(gateways)))


def enrol_tokens(store: Store, tokens: Iterable[str] = (), gateways: Iterable[str] = ()) -> int:
    """Add tokens of clients and of gateways to a store, and return how many are new. One that is in both lists is refused."""
    speaking = check_texts("tokens", tokens, "pass a token for each client")
    naming = check_texts("gateways", gateways, "pass a token for each gateway")
    return store.enrol(map(token_digest, speaking), map(token_digest, naming))


def write_tokens(path: str | Path, number: int) -> None:
    """Write fresh tokens, one on each line, to a new file that only its owner may read."""
    check_count("number", number, most=MOST_TOKENS, fix="it is how many clients there are")
    with atomic_write(path, what="file of tokens", private=True) as file:
        for _ in range(number):
            file.write(secrets.token_urlsafe(24).encode() + b"\n")


def read_tokens(path: str | Path) -> list[str]:
    """The tokens in a file, one on each line; an error if others may read it, or if a token is short enough to guess."""
    content = read_private(path, what="file of tokens", most=_LARGEST_FILE, fix="make one with: discreet enrol")
    try:
        lines = content.decode("ascii").split()
    except UnicodeDecodeError:
        raise DiscreetError(f"file of tokens {path} is not ASCII text, one token on each line") from None
    for number, token in enumerate(lines, start=1):
        if len(token) < _SHORTEST or NAME_PATTERN.fullmatch(token) is None:
            raise DiscreetError(
                f"{path}, token {number} is not {NAME_RULE}, at least {_SHORTEST} of them; make them with: discreet enrol"
            )
    if not lines:
        raise DiscreetError(f"{path} holds no token; make some with: discreet enrol")
    if len(set(lines)) < len(lines):
        raise DiscreetError(f"{path} holds a token twice; each is for another client")
    return lines


def sign_agreements(store: Store, key: CollectorKey, addresses: Sequence[str], *, replace_key: bool = False) -> None:
    """Sign every agreement of a store that this key has not yet signed for these addresses.

    Args:
        store: contains the agreements and keeps the signatures.
        key: the collector's.
        addresses: where devices reach the collector.
        replace_key: whether signatures by another key may be replaced.

    Raises:
        DiscreetError: for invalid addresses, and for a store signed by another key that may not be replaced.
    """
    checked = check_addresses(addresses)
    check_key(store, key, replace_key=replace_key)
    for one in store.agreements():
        statement = CollectionStatement(
            agreement=one.agreement.id, collection=one.collection, follows=one.follows, addresses=checked
        )
        if one.signed is None or one.signed.key != key.public or not has_valid_signature(statement, one.signed):
            store.sign(one.agreement.id, key.sign(statement))


def check_key(store: Store, key: CollectorKey | None, *, replace_key: bool) -> None:
    """Raise an error if the store is signed by another key that may not be replaced. None: a key that will be created."""
    own = None if key is None else key.public
    others = sorted({one.signed.key for one in store.agreements() if one.signed is not None} - {own})
    if others and not replace_key:
        named = "a new one" if own is None else short_key(own)
        raise DiscreetError(
            f"the store is signed by another key, {short_key(others[0])}, not by {named}, and devices that have pinned it "
            "would refuse this one; give the file of that key, or replace it with --replace-key"
        )


_DIGITS = 16  # of the questions' digest in a link: too many to find other words for
_MOST_PRINTED = 2_000  # invitations with a picture
_SHEET = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 12pt/1.4 system-ui, sans-serif; margin: 1cm; color: #000; background: #fff; }}
ul {{ list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(8cm, 1fr)); gap: .6cm; }}
li {{ border: 1px dashed #777; padding: .5cm; break-inside: avoid; overflow-wrap: anywhere; }}
svg {{ display: block; width: 5cm; height: 5cm; }}
small {{ font-size: 8pt; }}
</style>
</head>
<body>
<h1>{title}</h1>
<ul>
{cards}
</ul>
</body>
</html>
"""


def invitation_links(
    store: Store, address: str, tokens: Sequence[str] = (), *, agreement: str | None = None, more: str = ""
) -> list[str]:
    """A link for each token, in an order by chance; without tokens one link for everybody.

    Args:
        store: from `open_store`.
        address: where people reach the service, such as "https://example.org".
        tokens: of clients who are enrolled in the store.
        agreement: its id, or 12 or more of its first digits; by default the newest.
        more: further fields of the address, such as "lang=de" or "offline".

    Raises:
        DiscreetError: for a token that is not enrolled, and tokens that are missing where the store is enrolled.
    """
    kept = choose_agreement(store.agreements(), agreement)
    (site,) = check_addresses([address])
    given = check_texts("tokens", tokens, "pass a token for each client")
    digests = [token_digest(token) for token in given]
    if len(store.known_tokens(digests)) < len(set(digests)):
        raise DiscreetError(
            "tokens holds some that are not enrolled in the store; add them first: discreet enrol --add"
        )
    if store.enrolment().needed and not given:
        raise DiscreetError("the store takes samples of enrolled clients only; name their tokens: --tokens FILE")
    secrets.SystemRandom().shuffle(given)
    page = f"{site}{TAKE_PART}?agreement={kept.agreement.id}{f'&{more}' if more else ''}"
    words = (
        [] if kept.questions is None else [f"questions={hashlib.sha256(kept.questions.encode()).hexdigest()[:_DIGITS]}"]
    )
    fragments = ["&".join([*words, f"token={quote(token, safe='')}"]) for token in given] or ["&".join(words)]
    return [f"{page}#{fragment}" if fragment else page for fragment in fragments]


def write_invitations(folder: str | Path, links: Sequence[str], title: str) -> None:
    """Write links as a table and as a sheet of QR codes to a new folder that only its owner may read; it appears whole or not at all."""
    try:
        import segno
    except ImportError as error:
        need_extra("collect", error)
    target = Path(folder)
    if target.exists():
        raise DiscreetError(f"folder = {str(folder)!r} exists; name a new one")
    with atomic_folder(target) as partial:
        with (partial / "links.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["link"])
            rows.writerows([link] for link in links)
        cards = []
        for link in links[:_MOST_PRINTED]:
            picture = segno.make(link, error="m", micro=False).svg_inline(scale=1, omitsize=True, border=4)
            cards.append(f"<li>{picture}<small>{html.escape(link)}</small></li>")
        named = html.escape(visible(title) or "Take part")
        (partial / "invitations.html").write_text(_SHEET.format(title=named, cards="\n".join(cards)), encoding="utf-8")
