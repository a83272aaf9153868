"""The protocol between a collector and its clients: paths, fields, names of clients, and signatures.

A request names the agreement and round of a sample, the client, and a key. A sample that is sent again has the same key, and gets its
answer again. A collection is named by the agreement that it began with. Agreements that follow it belong to the same collection, and a
client sends one sample in each round of a collection, under any of them. A client's name reveals nothing outside the collection: devices
derive it from a secret that stays on the device, the collection and the collector's address.

    POST /samples   {"agreement": ID, "round": 1, "client": NAME, "key": KEY, "sample": OUTCOME} and spaces up to one length for all
    outcomes
                    {"agreement": ID, "round": 1, "samples": [{"client": NAME, "key": KEY, "sample": OUTCOME}, ...]}
                    or an Arrow stream with the columns client, key, sample, and agreement and round in its schema's metadata; if the
                    metadata have "samples": "numbers", a sample is the number of its outcome, with the same bytes for every outcome
    answered by     {"counted": number of new samples, "again": number known under their key, "refused": [places of clients with another
                    sample]}; a single sample of a client with another sample gets a 409. A problem is {"error": one sentence}. A closed
                    collection answers new samples by a 410, counts none of them, and acknowledges those that it has.
    GET /collection {"collection": ID, "agreement": ID of the newest, "round": the open round, "enrolment": whether names have to be known,
                    "closed": DAY or null; no round of a closed collection is open,
                    "shown": when estimates are shown, "always", "after" or "never",
                    "agreements": [{"agreement": ID, "follows": ID or null, "rounds": J, "open": [open rounds], "purpose": TEXT,
                    "signed": {"addresses": [URL, ...], "key": KEY, "signature": SIGNATURE} or null,
                    "questions": DIGEST of what people are asked in words, or null}, ...],
                    "groups": [IDs of agreements that differ in their purpose alone], "stages": [IDs that /pooled joins],
                    "within": [columns of a survey that /groups takes],
                    "beside": [{"agreement": ID of the newest, "purpose": TEXT}, ...] other collections of the same store}
    GET /estimate   the output of `discreet estimate --json`, and "round": R, "days": [[DAY, number of samples], ...], "liars"
    GET /groups     the output of `discreet estimate --by --json`: of the agreements of the collection that differ in their purpose alone;
                    with by=COLUMN within the private groups of a survey
    GET /pooled     the output of `discreet estimate IN IN --json`: all agreements of the collection together, in a round
    GET /change     the output of `discreet estimate --compare --json`, from one round to another

Samples are sent encrypted; plain http goes only to this machine unless it is explicitly allowed. A sample is private by itself, but an
observer of plain http sees who took part and when, and with a stolen name can send a sample in the client's place.

A collector may have a key (Ed25519). It signs a `CollectionStatement`: this agreement, in this collection, after that one, is collected at
these addresses. Anybody can copy a signature, so a device accepts it only at an address that it names. Ed25519 comes from `cryptography`,
which is maintained and has wheels for every system. Signatures are 64 bytes over a canonical JSON text, so that any implementation can
check them; minisign's format would add a second encoding.
"""

import hashlib
import hmac
import ipaddress
import os
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet._base.files import atomic_write, read_private_file
from discreet.domain import canonical_json
from discreet.errors import DiscreetError, check_flag, check_texts, raise_missing_extra

AGREEMENT = "/agreement"  # the newest, or ?agreement=ID: its text, as in a file
WEIGHTS = "/weights"  # the file beside an agreement, if there are too many to list
COLLECTION = "/collection"
SAMPLES = "/samples"
ESTIMATE = "/estimate"  # ?agreement=ID&round=1&confidence=0.95
GROUPS = "/groups"  # the same, and by=COLUMN of a survey
POOLED = "/pooled"  # as /estimate
CHANGE = "/change"  # the same, and from=ROUND
HEALTH = "/health"
METRICS = "/metrics"

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

MOST_NAME = 200  # characters of a client's name, and of a key
MOST_BATCH = 10_000  # samples of one request


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """A collector's address, checked. `folder`: the prefix of its paths."""

    scheme: str
    host: str
    port: int
    folder: str
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_and_port}{self.folder}"

    @property
    def host_and_port(self) -> str:
        """Host and port as in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_address(url: Any, *, plain_http: bool = False, tls: ssl.SSLContext | None = None) -> Address:
    """The address that a URL names.

    Args:
        url: https://HOST, optionally with a port and a folder; http:// for this machine.
        plain_http: whether to allow plain http to other machines.
        tls: the trusted authorities; by default the system's.

    Returns:
        The address.

    Raises:
        DiscreetError: for an invalid address.
    """
    if not isinstance(url, str):
        raise DiscreetError(f"url = {url!r} is not a text; give the collector's address, such as https://example.org")
    if not url.isprintable() or " " in url:  # urlsplit drops some of them silently
        raise DiscreetError(f"url = {url!r} contains spaces or invisible characters; leave them out")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()  # in ASCII, as on the wire
    except ValueError as error:
        raise DiscreetError(f"url = {url!r} is not an address: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise DiscreetError(
            f"url = {url!r} is not an address; give the collector's, such as https://example.org, or http://127.0.0.1:8000 on this machine"
        )
    if port == 0:
        raise DiscreetError(f"url = {url!r} has port 0, at which nobody listens; give the collector's, or leave it out")
    if parts.username is not None or parts.password is not None:
        raise DiscreetError("url holds a name or a password, which would be kept in logs; leave them out")
    if parts.query or parts.fragment:
        raise DiscreetError(f"url = {url!r} has a query or a fragment; give the collector's address alone")
    if not parts.path.isascii():
        raise DiscreetError(f"url = {url!r} has a folder with characters outside ASCII; escape them")
    if parts.scheme == "http" and not (check_flag("plain_http", plain_http) or is_host_this_machine(host)):
        raise DiscreetError(
            f"url = {url!r} is not encrypted: observers would see who takes part; use https://, or plain_http=True "
            "(--plain-http) on a network of your own"
        )
    context = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"), context)


def is_host_this_machine(host: str) -> bool:
    """Whether `host` is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_name_in_collection(collection: str, secret: bytes, client: str = "", *, address: str = "") -> str:
    """The name of a client in a collection. Without the secret, names of one client in two collections cannot be linked.

    Args:
        collection: the id of the agreement that the collection began with.
        secret: of the device, or of a gateway for many clients.
        client: of the gateway, by its name there.
        address: of the collector, so that a collector that claims another's collection learns no name that is used there. (A browser
            leaves it out for a collector on the page's own site, and for entries that earlier versions made without it.)

    Returns:
        64 hexadecimal digits.
    """
    message = f"discreet client\0{collection}\0{client}" + (f"\0{address}" if address else "")
    return hmac.new(secret, message.encode(), hashlib.sha256).hexdigest()


def sample_idempotency_key(name: str, agreement: str, round: int) -> str:
    """The key of a client's sample under an agreement in a round, the same for every attempt."""
    return hashlib.sha256(f"discreet key\0{name}\0{agreement}\0{round}".encode()).hexdigest()


_STATEMENT = b"discreet statement 1\n"
_KEY_LINE = re.compile(rb"discreet-collector-key-1 ([0-9a-f]{64})\n?\Z")
_KEY_FIX = "give the file that `discreet collect --key` made"
_HEX = {32: re.compile("[0-9a-f]{64}"), 64: re.compile("[0-9a-f]{128}")}
MOST_ADDRESSES = 16


@dataclass(frozen=True, kw_only=True)
class CollectionStatement:
    """The statement that a collector signs: an agreement, its collection, the agreement it follows, and its addresses."""

    agreement: str
    collection: str
    follows: str | None
    addresses: tuple[str, ...]

    @property
    def signed_bytes(self) -> bytes:
        """The signed bytes."""
        terms = {
            "agreement": self.agreement,
            "collection": self.collection,
            "follows": self.follows,
            "addresses": list(self.addresses),
        }
        return _STATEMENT + canonical_json(terms).encode()


@dataclass(frozen=True)
class StatementSignature:
    """A signature as a collection shows it: the key (64 hexadecimal digits) and the addresses."""

    key: str
    signature: str
    addresses: tuple[str, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The signature as a JSON value."""
        return {"addresses": list(self.addresses), "key": self.key, "signature": self.signature}


class CollectorKey:
    """The signing key of a collector. Its repr does not show it."""

    def __init__(self, seed: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError as missing:
            raise_missing_extra("signed", missing)
        self._private = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public(self) -> str:
        """The public key, 64 hexadecimal digits, which devices pin."""
        return self._private.public_key().public_bytes_raw().hex()

    def sign(self, statement: CollectionStatement) -> StatementSignature:
        """The statement's signature."""
        return StatementSignature(self.public, self._private.sign(statement.signed_bytes).hex(), statement.addresses)

    def __repr__(self) -> str:
        return f"<CollectorKey {short_key_text(self.public)}>"


def has_valid_signature(statement: CollectionStatement, signature: StatementSignature) -> bool:
    """Whether the signature is valid for this statement and its key."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as missing:
        raise_missing_extra("signed", missing)
    if statement.addresses != signature.addresses:
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
        public.verify(bytes.fromhex(signature.signature), statement.signed_bytes)
    except (InvalidSignature, ValueError):
        return False
    return True


def signature_from_json_or_none(document: Any) -> StatementSignature | None:
    """The signature that a JSON object states; None if the object is malformed."""
    if not isinstance(document, dict) or document.keys() != {"addresses", "key", "signature"}:
        return None
    key, signature, addresses = document["key"], document["signature"], document["addresses"]
    if not (isinstance(key, str) and _HEX[32].fullmatch(key) and isinstance(signature, str)):
        return None
    if (
        not _HEX[64].fullmatch(signature)
        or not isinstance(addresses, list)
        or not 1 <= len(addresses) <= MOST_ADDRESSES
    ):
        return None
    if not all(isinstance(address, str) and len(address) <= 1000 and address.isprintable() for address in addresses):
        return None
    return StatementSignature(key, signature, tuple(addresses))


def is_public_key(text: Any) -> bool:
    """Whether `text` is the public key of a collector."""
    return isinstance(text, str) and _HEX[32].fullmatch(text) is not None


def short_key_text(key: str) -> str:
    """The first 16 digits of a key in groups of four, for people to compare."""
    return " ".join(key[start : start + 4] for start in range(0, 16, 4))


def create_collector_key_file(path: str | Path) -> None:
    """Write a fresh key to a new file that only its owner may read. An existing file is never replaced."""
    fix = "devices have pinned its key and would refuse another; choose another name"
    with atomic_write(path, what="collector key", private=True, fix=fix) as file:
        file.write(b"discreet-collector-key-1 " + os.urandom(32).hex().encode() + b"\n")


def read_collector_key(path: str | Path) -> CollectorKey:
    """The key in a file; an error if anyone but its owner may read it."""
    match = _KEY_LINE.match(read_private_file(path, what="collector key", most=1024, fix=_KEY_FIX))
    if match is None:
        raise DiscreetError(f"{path} does not hold a collector's key; {_KEY_FIX}")
    return CollectorKey(bytes.fromhex(match[1].decode()))


def normalise_addresses(addresses: Sequence[str]) -> tuple[str, ...]:
    """The addresses of a statement in normal form: lower case, no default port, no slash at the end."""
    urls = check_texts("addresses", addresses, "pass addresses such as https://example.org")
    try:
        normal_forms = tuple(str(parse_address(address, plain_http=True)) for address in urls)
    except DiscreetError as error:
        raise DiscreetError(str(error).replace("url", "address", 1)) from None
    if not 1 <= len(normal_forms) <= MOST_ADDRESSES:
        raise DiscreetError(
            f"a signed collection has 1 to {MOST_ADDRESSES} addresses, not {len(normal_forms)}: --address"
        )
    return normal_forms
