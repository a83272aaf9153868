"""What a release tells: how far it has come, and at its end what it read, left out and wrote."""

from dataclasses import dataclass, fields
from typing import Any, Protocol

from discreet.agreement import Agreement


class Progress(Protocol):
    """Hears how far a release has come."""

    def rows(self, number: int) -> None: ...
    def clients(self, number: int) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a release read, left out and wrote. The counts are for whoever runs it: they are not private.

    Attributes:
        agreement: what the samples were released under.
        rows: rows read.
        clients: samples written.
        nulls: values that were null.
        not_numbers: values that were NaN.
        outside: values outside the domain, taken as `other`.
        without_records: listed clients without records, who drew from the reference.
        spilled_bytes: what went through the disk.
        seconds: how long it took.
        known: clients whose sample of this round was in the ledger already.
        over_budget: clients that the ledger left out.
    """

    agreement: Agreement
    rows: int
    clients: int
    nulls: int
    not_numbers: int
    outside: int
    without_records: int
    spilled_bytes: int
    seconds: float
    known: int = 0
    over_budget: int = 0

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON values."""
        agreement = self.agreement
        terms = {name: getattr(agreement, name) for name in ("id", "epsilon", "mechanism", "rounds", "purpose")}
        counts = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "agreement"}
        return {"agreement": terms, **counts}
