"""The ledger of a population on the command line: made or opened for `discreet sample`, summed up by `discreet ledger show`."""

from pathlib import Path

import typer

from discreet.cli._printing import number, plain, say, table, write_json
from discreet.errors import DiscreetError, visible
from discreet.ledger import PopulationLedger
from discreet.ledger._population import population_ledger_exists, runs_in, spent_by_clients
from discreet.release._keyed import Secret


def open_ledger(
    folder: Path | None, budget: float | None, secret: Secret | None, *, quiet: bool
) -> PopulationLedger | None:
    """The ledger that options state, made where it is not there and its budget is given."""
    if folder is None:
        if budget is not None:
            raise DiscreetError("--budget is what each client may spend in a ledger; give --ledger FOLDER too")
        return None

    if secret is None:
        raise DiscreetError(
            "--ledger needs --secret FILE, under which it knows its clients; make one with: discreet secret FILE"
        )
    if budget is None or population_ledger_exists(folder):
        found = PopulationLedger(folder, secret)
        if budget is not None and budget != found.budget.epsilon:
            raise DiscreetError(f"--budget {budget:g} is not the {found.budget} of ledger {folder}; leave it out")
        return found
    made = PopulationLedger.create(folder, budget=budget, secret=secret)
    if not quiet:
        typer.echo(f"made ledger {visible(str(folder))}: {made.budget} for each client, nothing spent so far", err=True)
    return made


def show_population(folder: Path, *, json: bool) -> None:
    """What was charged to each round, and what clients have spent at most."""
    budget, runs = runs_in(folder)
    spent = spent_by_clients(folder, runs)
    most = float(spent.max()) if spent.size else 0.0
    if json:
        write_json({
            "budget": {"epsilon": budget.epsilon},
            "clients": int(spent.size),
            "spent": {"most": most, "mean": float(spent.mean()) if spent.size else 0.0},
            "runs": [
                {
                    "agreement": run.round.agreement, "column": run.round.question.value, "round": run.round.number,
                    "epsilon": run.round.epsilon, "clients": run.clients, "time": run.time,
                }
                for run in runs
            ],
        })  # fmt: skip
        return
    made = table("run", "time", "agreement", "column", "round", "epsilon", "clients", texts=4)
    for place, run in enumerate(runs, start=1):
        asked = run.round
        made.add_row(
            str(place), run.time, asked.agreement[:12], plain(asked.question.value, most=40), str(asked.number),
            f"{asked.epsilon:g}", f"{run.clients:,}",
        )  # fmt: skip
    spend = f"{spent.size:,} clients have spent {number(most)} at most" if runs else "Nothing is spent so far"
    say(*([made] if runs else []), f"Budget {budget} for each client. {spend}.")
