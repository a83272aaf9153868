"""`discreet secret` makes the key of repeatable releases; `discreet ledger` records what clients have spent.

A ledger belongs to one client (a file) or to a population (a folder). `open_ledger` opens or makes a population's ledger for `discreet
sample` and `discreet send`.
"""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._options import AllowLarge, JsonOutput, argument, option, refuse_large_epsilon, switch
from discreet.cli._printing import empty_table, format_number, print_blocks, safe_text, write_json
from discreet.errors import DiscreetError, visible
from discreet.ledger import Budget, Ledger, PopulationLedger, population_ledger_exists, runs_in, spent_by_clients
from discreet.release import Secret, write_secret


def open_ledger(
    folder: Path | None, budget: float | None, secret: Secret | None, *, quiet: bool
) -> PopulationLedger | None:
    """The ledger stated by options; created if it is missing and its budget is given."""
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
    """Print the charges of each round, and the largest spending of a client."""
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
    made = empty_table("run", "time", "agreement", "column", "round", "epsilon", "clients", texts=4)
    for place, run in enumerate(runs, start=1):
        asked = run.round
        made.add_row(
            str(place), run.time, asked.agreement[:12], safe_text(asked.question.value, most=40), str(asked.number),
            f"{asked.epsilon:g}", f"{run.clients:,}",
        )  # fmt: skip
    spend = f"{spent.size:,} clients have spent {format_number(most)} at most" if runs else "Nothing is spent so far"
    print_blocks(*([made] if runs else []), f"Budget {budget} for each client. {spend}.")


ledger = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@ledger.command(short_help="Make a new ledger with a budget.")
def create(
    file: Annotated[Path, argument("FILE", "The new ledger; an existing file is never replaced.")],
    epsilon: Annotated[float, option("E", "Budget of all samples of this client together.")],
    delta: Annotated[float, option("D", "Probability with which the budget may be exceeded.")] = 0.0,
    allow_large_epsilon: AllowLarge = False,
    json: JsonOutput = False,
) -> None:
    """Make a new ledger: the budget of one client, in one file."""
    refuse_large_epsilon(epsilon, allowed=allow_large_epsilon)
    made = Ledger.create(file, Budget(epsilon=epsilon, delta=delta))
    if json:
        write_json({"file": str(file), "budget": {"epsilon": made.budget.epsilon, "delta": made.budget.delta}})
        return
    print_blocks(f"{safe_text(file)}: {made.budget}")


@ledger.command(short_help="Show what was charged and what is left.")
def show(
    file: Annotated[Path, argument("FILE", "A client's ledger, or the folder of a population's.")],
    json: JsonOutput = False,
) -> None:
    """Show the charges of a client's ledger, in order, and its remaining budget; or a summary of a population's ledger."""
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
    made = empty_table("charge", "time", "agreement", "for", "round", "epsilon", texts=4)
    for entry in entries:
        given = "" if entry.to is None else safe_text(entry.to.address, most=40)
        made.add_row(str(entry.number), entry.time, entry.agreement[:12], given, str(entry.round), f"{entry.epsilon:g}")
    summary = f"Budget {found.budget}. Spent {format_number(spent.epsilon)}, left {format_number(left)}."
    if spent.epsilon < float(spent.basic):
        summary += f"\n(The epsilons add up to {format_number(float(spent.basic))}.)"
    print_blocks(*([made] if entries else []), summary)


def secret(
    file: Annotated[Path, argument(None, "The file to make. An existing file is never replaced.")],
    json: Annotated[bool, switch("--json", "Print JSON; the secret itself is never printed.")] = False,
) -> None:
    """Make a secret for `discreet sample --secret`: 32 random bytes in a new file that only you may read.

    With the same secret, data, agreement and round, a release gives the same samples again. Anyone with the secret can undo the privacy of
    every sample made with it. Protect it like the data, and keep it apart from the samples.
    """
    write_secret(file)
    if json:
        write_json({"file": str(file), "mode": "0600"})
        return
    typer.echo(
        f"wrote {visible(str(file))} (mode 0600); back it up like the data, never publish it, never pass it on a command line"
    )
