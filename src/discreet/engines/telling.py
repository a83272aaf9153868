"""What a release tells: how far it has come, and at its end what it read, left out and wrote."""

from dataclasses import dataclass
from typing import Protocol

from discreet.agreement import Agreement


class Progress(Protocol):
    """Hears how far a release has come."""

    def rows(self, number: int) -> None: ...
    def clients(self, number: int) -> None: ...


class Silent:
    """Hears nothing."""

    def rows(self, number: int) -> None:
        pass

    def clients(self, number: int) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a release read, left out and wrote."""

    agreement: Agreement
    rows: int
    clients: int
    nulls: int
    not_numbers: int
    outside: int
    without_records: int
    spilled_bytes: int
    seconds: float
    known: int = 0  # clients whose sample of this round was in the ledger already
    over_budget: int = 0  # clients that the ledger left out
