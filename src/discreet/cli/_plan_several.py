"""`discreet plan --samples J`: what several samples of each client under one budget cost, against one sample at all of it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from discreet._showing import json_number
from discreet.cli._printing import number, table
from discreet.estimation import Ways, ways
from discreet.families import Simplex

_PURPOSES = {
    "each": "that a sample looks drawn from its client",
    "together": "that all samples of a client look like draws from it",
    "population": "to estimate the population",
}


def several_ways(family: Simplex, budgets: Sequence[float], samples: int, clients: int, laws: Any) -> list[Ways]:
    """The ways to spend each budget."""
    return [ways(family, samples=samples, epsilon=budget, clients=clients, examples=laws) for budget in budgets]


def several_blocks(found: Sequence[Ways]) -> list[Any]:
    """What people read: a table, and for each purpose the way that serves it."""
    first = found[0]
    over = (
        "at worst, over clients that hold 1, 2, ... outcomes alike"
        if first.worst
        else "on average over the example's clients"
    )
    best = {purpose: _best(found, purpose) for purpose in _PURPOSES}
    said = "; ".join(f"{words}: {best[purpose]}" for purpose, words in _PURPOSES.items() if best[purpose])
    return [
        f"[bold]{first.samples} samples of each client under one budget[/bold], or one sample at all of it:",
        _table(found),
        "each: TV distance of one sample's law from its client's; together: of the samples from so many draws of it; both "
        f"{over}. population: expected TV distance of the estimated population, linear. single: one sample; joint: all drawn at once, "
        "release(p, size=...); product: the same around the product, JointSampler(..., around='product'); composed: each with a share of the "
        "budget.",
        f"Serves best, {said}.",
    ]


def _best(found: Sequence[Ways], purpose: str) -> str:
    """The way that serves a purpose best; where that depends on epsilon, each way and where. Nothing where none is for it."""
    budgets: dict[str, list[str]] = {}
    for one in found:
        if any(getattr(way, purpose) is not None for way in one.ways):
            budgets.setdefault(one.best(purpose).name, []).append(f"{one.epsilon:g}")
    if len(budgets) == 1:
        return f"[bold]{next(iter(budgets))}[/bold]"
    return ", ".join(f"[bold]{name}[/bold] at epsilon = {', '.join(where)}" for name, where in budgets.items())


def _table(found: Sequence[Ways]) -> Table:
    made = table("epsilon", "way", "samples", "epsilon each", "each", "together", "population", texts=2)
    for one in found:
        for place, way in enumerate(one.ways):
            share = "" if way.name in ("joint", "product") else f"{way.epsilon:.3g}"
            costs = ("" if cost is None else number(cost, 3) for cost in (way.each, way.together, way.population))
            made.add_row(
                f"{one.epsilon:g}" if not place else "", way.name, str(way.samples), share, *costs,
                end_section=place + 1 == len(one.ways),
            )  # fmt: skip
    return made


def several_record(found: Sequence[Ways]) -> list[dict[str, Any]]:
    """The same as JSON values."""
    return [
        {
            "epsilon": one.epsilon,
            "samples": one.samples,
            "over": "worst" if one.worst else "examples",
            "ways": [
                {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(way).items()}
                for way in one.ways
            ],
        }
        for one in found
    ]
