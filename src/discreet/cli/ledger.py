"""`discreet ledger`: make a client's budget, and show what was charged to it."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.epsilons import AllowLarge, refuse_large
from discreet.cli.printing import number, plain, say, table, write_json
from discreet.ledger import Budget, Ledger
from discreet.ledger.population import runs_in, spent_by_clients

ledger = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@ledger.command(short_help="Make a new ledger with a budget.")
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new ledger; an existing file is never replaced.")],
    epsilon: Annotated[float, typer.Option(metavar="E", help="What all samples of this client may cost together.")],
    delta: Annotated[float, typer.Option(metavar="D", help="Chance with which that may be exceeded.")] = 0.0,
    allow_large_epsilon: AllowLarge = False,
) -> None:
    """Make a new ledger: the budget of one client, in one file."""
    refuse_large(epsilon, allowed=allow_large_epsilon)
    made = Ledger.create(file, Budget(epsilon=epsilon, delta=delta))
    say(f"{plain(file)}: {made.budget}")


@ledger.command(short_help="Show what was charged and what is left.")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A client's ledger, or the folder of a population's.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was charged to a ledger, in order, and what is left of its budget; of a population's ledger, a summary."""
    if file.is_dir():
        _show_population(file, json=json)
        return
    found = Ledger(file)
    entries, spent = found.entries(), found.spent()
    left = found.budget.left(spent)
    if json:
        write_json({
            "budget": {"epsilon": found.budget.epsilon, "delta": found.budget.delta},
            "spent": {"epsilon": spent.epsilon, "basic": float(spent.basic)},
            "left": left,
            "charges": [vars(entry) for entry in entries],
        })  # fmt: skip
        return
    made = table("charge", "time", "agreement", "round", "epsilon", texts=3)
    for entry in entries:
        made.add_row(str(entry.number), entry.time, entry.agreement[:12], str(entry.round), f"{entry.epsilon:g}")
    summary = f"Budget {found.budget}. Spent {number(spent.epsilon)}, left {number(left)}."
    if spent.epsilon < float(spent.basic):
        summary += f"\n(The epsilons add up to {number(float(spent.basic))}.)"
    say(*([made] if entries else []), summary)


def _show_population(folder: Path, *, json: bool) -> None:
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
