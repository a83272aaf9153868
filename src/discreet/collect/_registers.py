"""What a store keeps beside samples, by the same statements in every engine: who may speak, and what a collector has signed.

    tokens      digest of a client's token -> whether it was revoked
    gateways    digest of a gateway's token -> the gateway's id, whether the token was revoked
    signatures  agreement -> key, signature and addresses (`discreet._protocol.Signed`)

A store that holds a token is enrolled for good: rows are never removed, and a token that was revoked stays so, even if a file that holds
it is added again. A gateway has an id of its own, drawn at random when its first token is added. It keeps the id when its token is
replaced, so that its clients stay the same clients.
"""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from discreet._protocol import StatementSignature
from discreet._showing import pluralise
from discreet.collect._store import Enrolment
from discreet.errors import DiscreetError

_SIGN = """INSERT INTO signatures SELECT number, ?, ?, ? FROM agreements WHERE id = ?
ON CONFLICT (agreement) DO UPDATE SET signer = excluded.signer, signature = excluded.signature, addresses = excluded.addresses"""


def check_shared(shared: int) -> None:
    """Refuse tokens that are of clients and of gateways: there are so many."""
    if shared:
        raise DiscreetError(
            f"tokens of clients and of gateways share {pluralise(shared, 'token')}, and a gateway may speak for any number of clients; "
            "make others for the gateways with: discreet enrol"
        )


class Registers(ABC):
    """The part of a store that both engines share."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Any]:
        """A transaction that changes the store."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """A transaction that reads it."""

    @abstractmethod
    def _before_writing(self) -> AbstractContextManager[Any]:
        """A transaction that reads it, on the connection that writes: one that reads for long is not waited for."""

    @abstractmethod
    def _sql(self, statement: str) -> str:
        """A statement in the engine's spelling."""

    @abstractmethod
    def _insert(self, database: Any, table: str, columns: Sequence[Sequence[Any]]) -> int:
        """Insert rows that are not there, given by columns, and say how many were new."""

    @abstractmethod
    def _find_tokens(self, database: Any, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these are tokens that were not revoked."""

    def enrol(self, tokens: Iterable[bytes] = (), gateways: Iterable[bytes] = ()) -> int:
        """Add digests of tokens, of clients and of gateways, and return how many are new. From then on the store is enrolled."""
        clients, speakers = sorted(set(tokens)), sorted(set(gateways))
        with self._writing() as database:
            new = self._insert(database, "tokens", [clients, [0] * len(clients)])
            ids = [secrets.token_hex(16) for _ in speakers]
            new += self._insert(database, "gateways", [speakers, ids, [0] * len(speakers)])
            self._check_apart(database)
        return new

    def revoke(self, digests: Iterable[bytes]) -> int:
        """Take samples no more from the holders of these tokens, and return how many there were."""
        found = 0
        with self._writing() as database:
            for digest in digests:
                for table in ("tokens", "gateways"):
                    revoked = self._sql(f"UPDATE {table} SET revoked = 1 WHERE digest = ? AND revoked = 0")
                    found += database.execute(revoked, (digest,)).rowcount
        return found

    def replace_gateways(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Give gateways new tokens, (old, new): each keeps its id, and its clients stay the same clients."""
        with self._writing() as database:
            for number, (old, new) in enumerate(pairs, start=1):
                row = self._sql("SELECT id FROM gateways WHERE digest = ? AND revoked = 0")
                found = database.execute(row, (old,)).fetchone()
                if found is None:
                    raise DiscreetError(f"token {number} is not one of a gateway of this store; nothing was replaced")
                database.execute(self._sql("UPDATE gateways SET revoked = 1 WHERE digest = ?"), (old,))
                if not self._insert(database, "gateways", [[new], [found[0]], [0]]):
                    raise DiscreetError(f"new token {number} is in the store already; nothing was replaced")
            self._check_apart(database)

    def enrolment(self) -> Enrolment:
        """Who may speak by now."""
        with self._reading() as database:
            rows = database.execute(self._sql("SELECT digest, id, revoked FROM gateways")).fetchall()
            (some,) = database.execute(self._sql("SELECT EXISTS (SELECT 1 FROM tokens)")).fetchone()
        return Enrolment(
            bool(some or rows), {bytes(digest): str(name) for digest, name, revoked in rows if not revoked}
        )

    def known_tokens(self, digests: Sequence[bytes]) -> set[bytes]:
        """Which of these digests are of clients' tokens that were not revoked."""
        with self._before_writing() as database:
            return self._find_tokens(database, digests)

    def sign(self, agreement: str, signed: StatementSignature) -> None:
        """Keep the signature of an agreement; it takes the place of an earlier one."""
        row = (signed.key, signed.signature, json.dumps(list(signed.addresses)), agreement)
        with self._writing() as database:
            if not database.execute(self._sql(_SIGN), row).rowcount:
                raise DiscreetError(f"agreement {agreement} is not in the store; add it first")

    def _check_apart(self, database: Any) -> None:
        """Refuse a token of a client that is a gateway's too: its client could speak for any number of clients."""
        both = self._sql("SELECT count(*) FROM gateways JOIN tokens ON gateways.digest = tokens.digest")
        (shared,) = database.execute(both).fetchone()
        check_shared(shared)
