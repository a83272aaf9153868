"""What was spent: a client's budget in one file, or that of a whole population in a folder, charged durably before a sample leaves."""

from discreet.ledger._budget import Budget, Spent
from discreet.ledger._client_ledger import Entry, Ledger
from discreet.ledger._population_ledger import PopulationLedger

__all__ = ["Budget", "Entry", "Ledger", "PopulationLedger", "Spent"]
