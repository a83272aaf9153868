"""What goes to stdout: tables for people, JSON for programs."""

import json
import math
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

INFINITE = None  # JSON has no infinity


def say(*blocks: Any) -> None:
    """Print texts and tables, a blank line between blocks."""
    console = Console(highlight=False, soft_wrap=False)
    for place, block in enumerate(blocks):
        if place:
            console.print()
        console.print(block)


def table(*columns: str, texts: int = 1) -> Table:
    """An empty table: the first `texts` columns flush left, then numbers, flush right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place < texts else "right")
    return made


def number(value: float, digits: int = 4) -> str:
    """A number as people read it: fixed digits where that is precise, otherwise significant ones."""
    if not math.isfinite(value):
        return "infinite"
    return f"{value:.{digits}f}" if value == 0.0 or 0.01 <= abs(value) < 10_000 else f"{value:.{digits}g}"


def counted(count: int, noun: str) -> str:
    """ "1 flight", "2 flights"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def json_number(value: float) -> float | None:
    """The number itself, or null where it is infinite."""
    return float(value) if math.isfinite(value) else INFINITE


def write_json(record: dict[str, Any]) -> None:
    """One JSON object on stdout, and nothing else."""
    typer.echo(json.dumps(record, indent=2, allow_nan=False))
