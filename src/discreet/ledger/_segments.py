"""Charges of many clients in one file: columns in order of client, whose digest the ledger's book holds.

A client is two words of a keyed digest of its name; the file never holds the name itself. Files are written once, whole
(`discreet._files`), and never changed: what a file does not hold under the digest in the book is refused.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._files import atomic_write, reason
from discreet.errors import LedgerError

_HEAD = b"discreet charges 1\n"
_DAMAGED = "is damaged; restore it, and do not start a new ledger: what was spent stays spent; no sample was released"


@dataclass(frozen=True)
class ClientDigests:
    """Many clients, each as two words of a keyed digest of its name."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]

    def __len__(self) -> int:
        return self.first.size

    def select(self, places: Any) -> "ClientDigests":
        """Those at the places, or where a mask is true."""
        return ClientDigests(self.first[places], self.second[places])


@dataclass(frozen=True)
class Segment:
    """Clients in order of their first words, and what was released for each; `within` is empty where outcomes are no cells."""

    names: ClientDigests
    outcomes: NDArray[np.uint32]
    within: NDArray[np.float64]

    def places(self, names: ClientDigests) -> NDArray[np.int64]:
        """Where each client stands in the segment; -1 for those that are not in it."""
        at = np.searchsorted(self.names.first, names.first)
        found = np.full(len(names), -1, dtype=np.int64)
        asking = np.arange(len(names))
        while asking.size:  # a second time only for clients that share their first word with another
            asking = asking[at[asking] < len(self.names)]
            asking = asking[self.names.first[at[asking]] == names.first[asking]]
            here = self.names.second[at[asking]] == names.second[asking]
            found[asking[here]] = at[asking[here]]
            asking = asking[~here]
            at[asking] += 1
        return found

    def write(self, path: Path) -> str:
        """Write the columns to a new file; their digest."""
        columns = (
            self.names.first.astype("<u8"),
            self.names.second.astype("<u8"),
            self.outcomes.astype("<u4"),
            self.within.astype("<f8"),
        )
        hashed = hashlib.blake2b(_HEAD, digest_size=32)
        with atomic_write(path, what="charges", private=True) as file:
            file.write(_HEAD)
            for column in columns:
                content = column.tobytes()
                hashed.update(content)
                file.write(content)
        return hashed.hexdigest()

    @classmethod
    def read(cls, path: Path, *, clients: int, cells: bool, digest: str) -> "Segment":
        """The columns in a file, refused unless they are the very ones that were written."""
        kinds = [("<u8", clients), ("<u8", clients), ("<u4", clients), ("<f8", clients if cells else 0)]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise LedgerError(
                f"ledger {path.parent}: {path.name} cannot be read: {reason(error)}; restore it"
            ) from None
        if hashlib.blake2b(content, digest_size=32).hexdigest() != digest or not content.startswith(_HEAD):
            raise LedgerError(f"ledger {path.parent}: {path.name} {_DAMAGED}")
        columns, start = list[NDArray[Any]](), len(_HEAD)
        for kind, number in kinds:
            columns.append(np.frombuffer(content, dtype=kind, count=number, offset=min(start, len(content) - 1)))
            start += columns[-1].nbytes
        return cls(ClientDigests(columns[0], columns[1]), columns[2], columns[3])
