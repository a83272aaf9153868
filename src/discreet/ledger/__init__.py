"""Ledgers of privacy budgets: one client's in a file, a population's in a folder. Each charge is durable before its sample leaves."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.ledger._book import Budget, Rounds as Rounds, Spent
    from discreet.ledger._client_ledger import (
        IDENTITY as IDENTITY,
        PASSING as PASSING,
        Destination as Destination,
        Entry,
        Ledger,
        client_ledger_exists as client_ledger_exists,
        refuse_new_ledger_of_used_identity as refuse_new_ledger_of_used_identity,
    )
    from discreet.ledger._population_ledger import (
        ClientDigests as ClientDigests,
        PopulationLedger,
        Round as Round,
        Settlement as Settlement,
        costs_by_client as costs_by_client,
        new_ledger_message as new_ledger_message,
        population_ledger_exists as population_ledger_exists,
        read_budget_and_runs as read_budget_and_runs,
        refuse_budget_below_one_sample as refuse_budget_below_one_sample,
    )

OVER_BUDGET = ("refuse", "drop")  # here: every release checks it, and most have no ledger

__all__ = ["Budget", "Entry", "Ledger", "PopulationLedger", "Spent"]
