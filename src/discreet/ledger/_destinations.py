"""Whom a sample was given to, and which questions are one question: what a ledger remembers so that no collector can tell it otherwise.

A collector says which collection it is, which agreements belong to it and which key it signs with. It may say anything. So a ledger notes
with every sample where it went: the address that was connected to, the key that signed there, and the collection as it was called then.

    one collector   the same address, or the same signing key (which names its addresses itself)
    its key         the one that was noted last for the address: noted for every address that a signature names, before anything is sent
    one question    one collector, one round, and one collection: the same name of it, or an agreement that is said to be of it

What was given to one collector is given to no other. A question that has an answer is answered by that sample, and by no fresh one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import CollectorError

_KEY = "key"


@dataclass(frozen=True)
class Destination:
    """A collection of one collector.

    Args:
        address: where the collector is, as it was connected to.
        key: the public key that signs there, 64 hexadecimal digits; None where nothing is signed.
        collection: the id of the agreement that the collection began with, by the collector's own word.
        agreements: those that it says are of the collection. They are not remembered.
        addresses: all that the key has signed for.
        trusted: whether the owner of the device has named this key, or has said that there is none. It is not remembered.
    """

    address: str
    key: str | None
    collection: str
    agreements: frozenset[str] = field(default=frozenset(), compare=False)
    addresses: tuple[str, ...] = field(default=(), compare=False)
    trusted: bool = field(default=False, compare=False)

    @property
    def document(self) -> dict[str, str | None]:
        """As JSON shows it."""
        return {"address": self.address, "key": self.key, "collection": self.collection}

    @property
    def line(self) -> list[str | None]:
        """As a ledger holds it."""
        return [self.address, self.key, self.collection]

    @classmethod
    def of(cls, line: Any) -> "Destination | None":
        """The destination that a ledger holds; None where a sample was given to nobody in particular."""
        return None if line is None else cls(*line)

    def is_collector_of(self, before: "Destination | None") -> bool:
        """Whether an earlier sample went to this collector."""
        if before is None:
            return False
        return before.address == self.address or (self.key is not None and before.key == self.key)

    def is_question_of(self, before: "Destination | None", agreement: str) -> bool:
        """Whether an earlier sample, under that agreement, answers this collection's question of its round."""
        if before is None or not self.is_collector_of(before):
            return False
        return before.collection == self.collection or agreement in self.agreements or agreement == self.collection

    def note_of_key(self, lines: Iterable[Any]) -> list[Any] | None:
        """The line to add to a ledger with these lines before anything is sent: None where it says nothing new.

        Raises:
            CollectorError: for an address whose key is not the one that was noted for it last, unless its owner trusts the new one.
        """
        noted: dict[str, str | None] = {}
        for line in lines:
            if is_note(line):
                noted |= dict.fromkeys(line[2], line[1])
        known = noted.get(self.address)
        if known is not None and known != self.key and not self.trusted:
            now = "signs nothing now" if self.key is None else f"signs with key {self.key} now"
            raise CollectorError(
                f"the collector at {self.address} signed with key {known} before, and {now}: nothing was sent. Ask whoever runs it by "
                "another way; if the change is meant, name the key to trust, or 'none': key= (--key)"
            )
        addresses = sorted({self.address, *self.addresses})
        if all(noted.get(address) == self.key for address in addresses):
            return None
        return [_KEY, self.key, addresses]


def is_note(line: Any) -> bool:
    """Whether a line of a ledger is about a collector's key, and no charge."""
    return isinstance(line, list) and line[0] == _KEY
