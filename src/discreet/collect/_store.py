"""What a collection keeps: who has spoken, and apart from that how often each outcome was said. No table says who said what.

    spoken    (collection, round, digest of the client's name) -> digest of the key its sample came with
    counted   (agreement, round, outcome) -> how many
    pool      outcomes that are not counted there yet: they wait for others (`discreet.collect._pool`)
    arrived   (agreement, round, day) -> how many
    tokens, gateways, signatures: who may speak, and what was signed (`discreet.collect._registers`)

All change in one transaction, and an answer leaves once that is on disk. So whatever fails, a sample that was acknowledged is counted; a
key that comes again finds itself, and is acknowledged and not counted again; and a client that comes with another key has spoken, and
is refused. An estimate needs counts and pool alone: its cost grows with the outcomes, not with the samples. Days are UTC's, by the clock
of the service, and are written for people: nothing is decided by them, and which outcomes came on which day is not kept.
"""

import enum
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._protocol import StatementSignature
from discreet.agreement import Agreement

DIGEST = 16  # bytes


@dataclass(frozen=True)
class StoredAgreement:
    """An agreement of a collection. `collection`: the id of the agreement that it began with, its own if it follows none.

    `apart`: names that gateways give are those of other clients than the same names from elsewhere; not so in collections that began before
    gateways had ids, in which a client that has spoken would be a new one otherwise.
    """

    agreement: Agreement
    collection: str
    follows: str | None = None
    apart: bool = True
    signed: StatementSignature | None = None


@dataclass(frozen=True)
class Enrolment:
    """Whom samples are taken from. `needed`: from those alone who hold a token. `gateways`: digests of their tokens, and their ids."""

    needed: bool = False
    gateways: Mapping[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """A sample on its way into a store, as the number of its outcome."""

    client: bytes  # digests, 16 bytes each: see `digest`
    key: bytes
    outcome: int


class Verdict(enum.Enum):
    """What became of a sample."""

    COUNTED = "counted"
    AGAIN = "again"  # it had been, under the same key
    SPOKEN = "spoken"  # the client had, under another key: nothing was changed


class Store(Protocol):
    """Where a collection is kept. Each method is one transaction, and safe to call from any thread and beside other processes.

    Whatever the engine says of itself (gone, full, locked for too long) is raised as `StoreError`, and the next call tries anew. Nothing was
    changed then; or, where the engine did not live to say so, all of it was: the same arrivals again are answered by AGAIN.
    """

    def add(self, agreement: Agreement, *, follows: str | None = None) -> None:
        """Keep an agreement; one that is there already is left as it is, and must follow the same one."""

    def agreements(self) -> list[StoredAgreement]:
        """All agreements, in the order they came."""

    def count(self, agreement: str, round: int, arrivals: Sequence[Arrival], day: str) -> list[Verdict]:
        """What becomes of each of these, in their order; durable when it returns. Among them a client may come twice."""

    def settle(self) -> bool:
        """Overwrite what the engine still holds of earlier versions, where it can; whether it need not be called again for that."""

    def counts(self, agreement: str, round: int) -> NDArray[np.int64]:
        """How often each outcome came."""

    def by_day(self, agreement: str, round: int) -> list[tuple[str, int]]:
        """How many samples came on each day, in order."""

    def check_seal(self) -> None:
        """Seal the pool where the store was opened with a key; refuse one that is sealed under another key."""

    def enrol(self, tokens: Iterable[bytes] = (), gateways: Iterable[bytes] = ()) -> int:
        """Add digests of tokens, of clients and of gateways, and return how many are new."""

    def revoke(self, digests: Iterable[bytes]) -> int:
        """Take samples no more from the holders of these tokens, and return how many there were."""

    def replace_gateways(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Give gateways new tokens, (old, new); each keeps its id."""

    def enrolment(self) -> Enrolment:
        """Who may speak by now."""

    def known_tokens(self, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these digests are of clients' tokens that were not revoked."""

    def sign(self, agreement: str, signed: StatementSignature) -> None:
        """Keep the signature of an agreement."""

    def close(self) -> None:
        """Let go of the file or the connections."""


def digest(*parts: str) -> bytes:
    """16 bytes in place of texts that a store does not keep: among 10^12 clients two share them with a chance below 10^-14.

    (Whoever makes two names with one digest, which takes 2^64 tries, can speak under one of them.)
    """
    return hashlib.sha256("\0".join(parts).encode()).digest()[:DIGEST]
