"""A client's budget in one SQLite file: charged durably before a sample leaves, whatever crashes."""

from discreet.ledger.budget import Budget, Spent
from discreet.ledger.file import Entry, Ledger

__all__ = ["Budget", "Entry", "Ledger", "Spent"]
