"""`discreet ledger`: make a client's budget, and show what was charged to it."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import AllowLarge, refuse_large
from discreet.cli._population_ledger import show_population
from discreet.cli._printing import number, plain, say, table, write_json
from discreet.ledger import Budget, Ledger

ledger = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@ledger.command(short_help="Make a new ledger with a budget.")
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new ledger; an existing file is never replaced.")],
    epsilon: Annotated[float, typer.Option(metavar="E", help="What all samples of this client may cost together.")],
    delta: Annotated[float, typer.Option(metavar="D", help="Chance with which that may be exceeded.")] = 0.0,
    allow_large_epsilon: AllowLarge = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a new ledger: the budget of one client, in one file."""
    refuse_large(epsilon, allowed=allow_large_epsilon)
    made = Ledger.create(file, Budget(epsilon=epsilon, delta=delta))
    if json:
        write_json({"file": str(file), "budget": {"epsilon": made.budget.epsilon, "delta": made.budget.delta}})
        return
    say(f"{plain(file)}: {made.budget}")


@ledger.command(short_help="Show what was charged and what is left.")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A client's ledger, or the folder of a population's.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was charged to a ledger, in order, and what is left of its budget; of a population's ledger, a summary."""
    if file.is_dir():
        show_population(file, json=json)
        return
    found = Ledger(file)
    entries, spent = found.entries(), found.spent()
    left = found.budget.left(spent)
    if json:
        write_json({
            "budget": {"epsilon": found.budget.epsilon, "delta": found.budget.delta},
            "spent": {"epsilon": spent.epsilon, "basic": float(spent.basic)},
            "left": left,
            "charges": [{**vars(entry), "to": entry.to and entry.to.document} for entry in entries],
        })  # fmt: skip
        return
    made = table("charge", "time", "agreement", "for", "round", "epsilon", texts=4)
    for entry in entries:
        given = "" if entry.to is None else plain(entry.to.address, most=40)
        made.add_row(str(entry.number), entry.time, entry.agreement[:12], given, str(entry.round), f"{entry.epsilon:g}")
    summary = f"Budget {found.budget}. Spent {number(spent.epsilon)}, left {number(left)}."
    if spent.epsilon < float(spent.basic):
        summary += f"\n(The epsilons add up to {number(float(spent.basic))}.)"
    say(*([made] if entries else []), summary)
