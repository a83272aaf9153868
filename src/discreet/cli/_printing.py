"""Output on a terminal: tables for people, JSON for programs.

Labels, purposes and names of files are texts from others. `safe_text` makes them safe to print: their markup is not interpreted, and
invisible characters are spelled out (`discreet.errors.visible`). That includes line breaks, so no text can imitate a line of ours. `Terminal`
also removes every control character but line breaks from all output.
"""

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from discreet._base.showing import json_number
from discreet.errors import visible


class Terminal(Console):
    """A console for texts of unknown origin; control characters are spelled out before layout."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, soft_wrap=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a text, alone or in a table, to one of rich's."""
        return super().render_str(visible(text, keep="\n"), **options)


def safe_text(text: Any, *, most: int | None = None, keep: str = "") -> str:
    """A text from others, safe for `print_blocks`. After `most` characters it is cut, with a note. `keep`: as in `visible`."""
    whole = str(text)
    cut = whole if most is None or len(whole) <= most else f"{whole[:most]}... ({len(whole):,} characters)"
    return escape(visible(cut, keep=keep))


def print_blocks(*blocks: Any) -> None:
    """Print texts and tables, a blank line between blocks."""
    console = Terminal()
    for place, block in enumerate(blocks):
        if place:
            console.print()
        console.print(block)


def note_lines(notes: Iterable[str]) -> list[str]:
    """Notes to read before trusting the numbers, as blocks."""
    return [f"[bold red]Note[/bold red]: {safe_text(note)}." for note in notes]


def empty_table(*columns: str, texts: int = 1) -> Table:
    """An empty table. The first `texts` columns are flush left, the numbers flush right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(columns):
        made.add_column(column, justify="left" if place < texts else "right")
    return made


def format_number(value: float | None, digits: int = 4) -> str:
    """A number for people: fixed digits if that is precise enough, otherwise significant ones; empty if there is none."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "infinite"
    return f"{value:.{digits}f}" if value == 0.0 or 0.01 <= abs(value) < 10_000 else f"{value:.{digits}g}"


def json_values(found: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON holds them; null stands for infinite."""
    return {name: json_number(value) if isinstance(value, float) else value for name, value in asdict(found).items()}


def write_json(record: dict[str, Any]) -> None:
    """Print one JSON object on stdout, and nothing else."""
    typer.echo(json.dumps(record, indent=2, allow_nan=False))


def write_json_line(record: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once, for readers that wait while the command runs."""
    typer.echo(json.dumps(record, allow_nan=False))
    sys.stdout.flush()
