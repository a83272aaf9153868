"""What goes to a terminal: tables for people, JSON for programs.

Labels, purposes and names of files are other people's texts. `plain` is how they get into what is printed: markup in them is no markup,
and what is no visible character is spelled out (`discreet.errors.visible`), line breaks included, so that none can pass for a line
of ours. Whatever is printed passes through `Terminal` besides, which lets no control character through but line breaks.
"""

import json
import math
import sys
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from discreet.errors import visible


class Terminal(Console):
    """A console for texts of unknown origin: control characters in them are spelled out before anything is laid out."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, soft_wrap=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **how: Any) -> Text:
        """Every text that is printed, alone or in a table, becomes one of rich's here."""
        return super().render_str(visible(text, keep="\n"), **how)


def plain(text: Any, *, most: int | None = None, keep: str = "") -> str:
    """Somebody else's text, to stand in what `say` prints; past `most` characters it is cut, and says so. `keep`: as of `visible`."""
    whole = str(text)
    cut = whole if most is None or len(whole) <= most else f"{whole[:most]}... ({len(whole):,} characters)"
    return escape(visible(cut, keep=keep))


def say(*blocks: Any) -> None:
    """Print texts and tables, a blank line between blocks."""
    console = Terminal()
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


def write_json(record: dict[str, Any]) -> None:
    """One JSON object on stdout, and nothing else."""
    typer.echo(json.dumps(record, indent=2, allow_nan=False))


def write_json_line(record: dict[str, Any]) -> None:
    """The same on one line, and at once: for whoever waits for it while the command goes on."""
    typer.echo(json.dumps(record, allow_nan=False))
    sys.stdout.flush()
