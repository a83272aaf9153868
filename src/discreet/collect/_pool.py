"""The pool of acknowledged outcomes, which are counted in batches so that counts do not show who sent which outcome.

A store has to contain a sample before it is acknowledged. If the sample were counted at once, two versions of the counts would differ by
one outcome, and the later version would come with one new client. Engines keep versions: PostgreSQL in dead rows, SQLite in its log. A new
outcome therefore goes into the pool of its agreement and round. Once `2 KEPT` outcomes wait, all but `KEPT` of them, chosen at random, are
added to the counts. So the counts change by `KEPT` outcomes or more at a time, and each may belong to any client that waited. (If samples
of more than `MOST_GROUPS` rounds come at a time, the longest waiting round is counted with what it has.) Estimates and exports use counts
and pool together, so nothing is late.

What a reader learns about who sent what:

    a store once              an outcome is one of those in the pool or in a later batch: of at least `KEPT` clients. (While fewer
    (tables, pages)           took part in a round, of those: a store with one client shows that client's sample. In PostgreSQL every
                              process writes to one of a few slots, each with its own pool.)
    its log or dead rows,     SQLite: the same, once the log is emptied; the service does that as soon as no sample waits, and otherwise
    an old snapshot,          tries four times a second; freed bytes are overwritten. PostgreSQL: the pool before and after a
    a replica, a backup       sample, and so the sample. With a seal: only the batches.
    it at several moments     the pool before and after a sample, and so the sample. With a seal: only the batches.

A *seal* is a key in a file outside the store (`discreet collect --seal FILE`). It encrypts the pool (ChaCha20-Poly1305, a fresh nonce each
time). A reader of the store without the file learns only the counts: batches of `KEPT` clients or more. Every service of the store needs
the file, and so does an export. If the file is lost, the outcomes in the pool are lost, fewer than `2 KEPT` of a round (in PostgreSQL: of a
round and a slot); counts stay. A seal hides nothing from the operator of the service.

A batch hides a client among the others in it. An attacker who sent all other samples of a batch learns the last one; enrolment limits that.
A reader of `/estimate` after every sample sees the counts change by one, but not by whom. None of this bounds what a sample reveals: its
epsilon does, against everybody.
"""

import os
import re
import struct
from collections import Counter
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from discreet._base.files import atomic_write, read_private
from discreet.errors import DiscreetError, StoreError, need_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEPT = 32  # outcomes that stay when the others are counted
MOST_GROUPS = 16  # agreements and rounds of a pool; beyond that the longest waiting one is counted
SEAL_VARIABLE = "DISCREET_SEAL"  # names the file if no option does

Group = tuple[int, int]  # an agreement's number in the store, and a round
Pool = dict[Group, list[int]]

_PLAIN, _SEALED = b"\x00", b"\x01"
_HEAD = struct.Struct("<qqq")
_NONCE = 12  # bytes
_ABOUT = b"discreet pool 1"
_LINE = re.compile(rb"discreet-seal-1 ([0-9a-f]{64})\n?\Z")
_FIX = "give the file that `discreet collect --seal` made"
_DAMAGED = "the pool of the store is damaged; restore the store from a copy"


def add_outcomes(pool: Pool, group: Group, outcomes: list[int]) -> dict[Group, list[tuple[int, int]]]:
    """Add outcomes to a pool, and remove and return those to count now.

    Args:
        pool: changed in place.
        group: the agreement and the round of the outcomes.
        outcomes: the new ones.

    Returns:
        For every group to count, (outcome, number) in the order of outcomes.
    """
    waiting = pool.pop(group, []) + outcomes
    counted = {}
    if len(waiting) >= 2 * KEPT:
        kept = set(SystemRandom().sample(range(len(waiting)), KEPT))
        counted[group] = sorted(Counter(one for place, one in enumerate(waiting) if place not in kept).items())
        waiting = [waiting[place] for place in kept]
    pool[group] = sorted(waiting)
    while len(pool) > MOST_GROUPS:
        oldest = next(iter(pool))
        counted[oldest] = sorted(Counter(pool.pop(oldest)).items())
    return counted


class Seal:
    """The encoding of a pool: encrypted under a secret, or plain.

    Args:
        secret: 32 bytes, or None.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret

    @property
    def hides(self) -> bool:
        """Whether there is a secret."""
        return self._secret is not None

    def write(self, pool: Pool) -> bytes:
        """The bytes of a pool in the store."""
        parts = []
        for (agreement, round_number), outcomes in pool.items():
            parts.append(_HEAD.pack(agreement, round_number, len(outcomes)))
            parts.append(struct.pack(f"<{len(outcomes)}q", *outcomes))
        content = b"".join(parts)
        if self._secret is None:
            return _PLAIN + content
        nonce = os.urandom(_NONCE)
        return _SEALED + nonce + _cipher(self._secret).encrypt(nonce, content, _ABOUT)

    def read(self, content: bytes) -> Pool:
        """The pool in the store; an error if it is sealed under another secret."""
        kind, rest = content[:1], content[1:]
        if kind == _SEALED:
            rest = self._decrypt(rest)
        elif kind != _PLAIN:
            raise StoreError(_DAMAGED)
        pool: Pool = {}
        try:
            while rest:
                agreement, round_number, many = _HEAD.unpack_from(rest)
                if many < 0:
                    raise StoreError(_DAMAGED)
                end = _HEAD.size + 8 * many
                pool[agreement, round_number] = list(struct.unpack(f"<{many}q", rest[_HEAD.size : end]))
                rest = rest[end:]
        except struct.error:
            raise StoreError(_DAMAGED) from None
        return pool

    def _decrypt(self, content: bytes) -> bytes:
        if self._secret is None:
            raise StoreError(
                f"the store is sealed, and its key was not given; name the file of it: --seal FILE, or {SEAL_VARIABLE}=FILE"
            )
        from cryptography.exceptions import InvalidTag

        try:
            return _cipher(self._secret).decrypt(content[:_NONCE], content[_NONCE:], _ABOUT)
        except (InvalidTag, ValueError):
            raise StoreError(
                "the store is sealed under another key, or damaged; name the file of its key: --seal FILE"
            ) from None


def _cipher(secret: bytes) -> "ChaCha20Poly1305":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError as missing:
        need_extra("collect", missing)
    return ChaCha20Poly1305(secret)


def write_seal(path: str | Path) -> None:
    """Write a fresh key to a new file that only its owner may read. An existing file is never replaced."""
    fix = "a store may be sealed under its key; choose another name"
    with atomic_write(path, what="seal", private=True, fix=fix) as file:
        file.write(b"discreet-seal-1 " + os.urandom(32).hex().encode() + b"\n")


def read_seal(path: str | Path | None) -> Seal:
    """The seal in a file, refused if anybody but its owner may read it; without a file, the one that DISCREET_SEAL names, or none."""
    if path is None or (isinstance(path, str) and not path):
        path = os.environ.get(SEAL_VARIABLE)
    if path is None or (isinstance(path, str) and not path):
        return Seal()
    found = _LINE.match(read_private(path, what="seal", most=1024, fix=_FIX))
    if found is None:
        raise DiscreetError(f"{path} does not hold the key of a seal; {_FIX}")
    return Seal(bytes.fromhex(found[1].decode()))
