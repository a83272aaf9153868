"""Who may speak, and who vouches for a collection: tokens of clients and gateways, and agreements signed by the collector's key.

**Tokens.** A token is the name of one client; a gateway's token goes into a header, and its holder names clients itself. The store keeps
digests of tokens and looks up digests, so the time of a look-up says nothing about a token. The store is enrolled and not a process: every
service of it takes the same tokens, and a store that was enrolled once stays so, whatever options a service is started with. A revoked
token is refused at once, a gateway's after a second at most. What a gateway calls "x" is another client than what another gateway calls so,
and than the holder of a token "x": the digest of its name includes the gateway's id.

What this does to anonymity: whoever handed out the tokens, and holds the store or watches requests, can tell which of them have spoken and
on which day. No table says what they said. Without tokens nobody is known, and anybody can speak under as many names as they like.

**Signatures.** A signature says that an agreement, in its collection and after the one it follows, is collected at certain addresses
(`discreet.client._protocol.CollectionStatement`). Devices that have pinned the key believe it. The store keeps it beside the
agreement, so every service of the store shows it, with the key or without. The key itself stays in its
file. A store has one key: another one is taken only if whoever runs the service says so,
since devices that have pinned the first one refuse the second.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from discreet._base.files import atomic_write, read_private
from discreet.client import (
    MOST_NAME,
    CollectionStatement,
    CollectorKey,
    check_addresses,
    has_valid_signature,
    short_key,
)
from discreet.collect._requests import RequestProblem
from discreet.collect._store import Enrolment, Store, check_shared, digest
from discreet.errors import DiscreetError, StoreError, check_count

NAME_PATTERN = re.compile(rf"[!-~]{{1,{MOST_NAME}}}")  # of a client, a key or a token
NAME_RULE = f"1 to {MOST_NAME} visible ASCII characters without a space"
MOST_TOKENS = 10_000_000
FRESH_SECONDS = 1.0  # for which the list of gateways is taken to be that of the store
_BEARER = "bearer "
_SHORTEST = 16  # characters of a token, which are to be guessed by nobody
_LARGEST_FILE = 1 << 31


def token_digest(token: str) -> bytes:
    """What a store keeps of a token."""
    return digest("discreet token", token)


def check_tokens_apart(tokens: Iterable[str], gateways: Iterable[str]) -> None:
    """Refuse a token that is in both lists: its client could speak for many."""
    check_shared(len(set(tokens) & set(gateways)))


def enrol_tokens(store: Store, tokens: Iterable[str] = (), gateways: Iterable[str] = ()) -> int:
    """Add tokens of clients and of gateways to a store, and return how many are new. One that is in both lists is refused."""
    return store.enrol(map(token_digest, tokens), map(token_digest, gateways))


def gateway_of(enrolment: Enrolment, authorization: list[str]) -> str | None:
    """The id of the gateway that sent these Authorization headers, None where they name none; a token that is no gateway's is refused."""
    tokens = [said[len(_BEARER) :].strip() for said in authorization if said.lower().startswith(_BEARER)]
    if not enrolment.gateways or not tokens:  # what other schemes say is for a proxy
        return None
    found = enrolment.gateways.get(token_digest(tokens[0])) if len(tokens) == 1 and tokens[0].isascii() else None
    if found is None:
        raise RequestProblem(
            401,
            "the Authorization header does not hold a token of a gateway of this collection",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return found


class EnrolmentCache:
    """Who may speak, as the store says it: looked at again when that was a second ago.

    Args:
        store: where it is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found, self._stale = store.enrolment(), time.monotonic() + FRESH_SECONDS

    async def enrolment(self) -> Enrolment:
        """What holds now."""
        if time.monotonic() > self._stale:
            self._stale = time.monotonic() + FRESH_SECONDS
            with suppress(StoreError):  # samples cannot be written then either
                self._found = await asyncio.get_running_loop().run_in_executor(None, self._store.enrolment)
        return self._found


def write_tokens(path: str | Path, number: int) -> None:
    """Write fresh tokens, one on each line, to a new file that its owner alone may read."""
    check_count("number", number, most=MOST_TOKENS, fix="it is how many clients there are")
    with atomic_write(path, what="file of tokens", private=True) as file:
        for _ in range(number):
            file.write(secrets.token_urlsafe(24).encode() + b"\n")


def read_tokens(path: str | Path) -> list[str]:
    """The tokens in a file, one on each line; refused if anybody but its owner may read it, or if one could be guessed."""
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
    """Sign every agreement of a store that this key has not signed for these addresses yet.

    Args:
        store: whose agreements are signed, and where the signatures are kept.
        key: the collector's.
        addresses: where devices reach the collector.
        replace_key: whether signatures by another key may be replaced.

    Raises:
        DiscreetError: for addresses that are none; and for a store that another key has signed, unless that may be replaced.
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
    """Refuse a key that is not the one that a store is signed by, unless that may be replaced. None: a key that is to be made."""
    own = None if key is None else key.public
    others = sorted({one.signed.key for one in store.agreements() if one.signed is not None} - {own})
    if others and not replace_key:
        named = "a new one" if own is None else short_key(own)
        raise DiscreetError(
            f"the store is signed by another key, {short_key(others[0])}, not by {named}, and devices that have pinned it "
            "would refuse this one; give the file of that key, or replace it with --replace-key"
        )
