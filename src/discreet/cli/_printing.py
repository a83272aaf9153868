"""Output on a terminal: tables and progress for people, JSON for programs.

Labels, purposes and names of files are texts from others. `safe_text` makes them safe to print: their markup is not interpreted, and
invisible characters are spelled out (`discreet.errors.spell_out_invisible`). That includes line breaks, so no text can imitate a line of
ours. `Terminal` also removes every control character but line breaks from all output.

Progress bars are of a release, of samples that are sent, and of the stages of a design. They are loaded where there is a terminal.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from discreet._base.showing import json_number_or_null, round_up_to_digits
from discreet.errors import spell_out_invisible

if TYPE_CHECKING:
    from discreet.tables import Progress, Source


class Terminal(Console):
    """A console for texts of unknown origin; control characters are spelled out before layout."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, soft_wrap=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a text, alone or in a table, to one of rich's."""
        return super().render_str(spell_out_invisible(text, keep="\n"), **options)


def safe_text(text: Any, *, most: int | None = None, keep: str = "") -> str:
    """A text from others, safe for `print_text_blocks`. After `most` characters it is cut, with a note.

    `keep`: as in `spell_out_invisible`.
    """
    full_text = str(text)
    short_text = (
        full_text
        if most is None or len(full_text) <= most
        else f"{full_text[:most]}... ({len(full_text):,} characters)"
    )
    return escape(spell_out_invisible(short_text, keep=keep))


def print_text_blocks(*blocks: Any) -> None:
    """Print texts and tables, a blank line between blocks."""
    console = Terminal()
    for index, block in enumerate(blocks):
        if index:
            console.print()
        console.print(block)


def print_json_or_text(record: dict[str, Any], *blocks: Any, json: bool) -> None:
    """Print a result: its record as JSON, or its blocks."""
    if json:
        print_json(record)
    else:
        print_text_blocks(*blocks)


def notes_as_text_blocks(notes: Iterable[str]) -> list[str]:
    """Notes to read before trusting the numbers, as blocks."""
    return [f"[bold red]Note[/bold red]: {safe_text(note)}." for note in notes]


def empty_table(*columns: str, texts: int = 1) -> Table:
    """An empty table. The first `texts` columns are flush left, the numbers flush right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < texts else "right")
    return table


def table_of_records(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """A table of records: `columns` maps the fields that are shown to their titles."""
    table = empty_table(*columns.values(), texts=0)
    for row in rows:
        values = (row[name] for name in columns)
        table.add_row(*(f"{value:,}" if isinstance(value, int) else format_number(value) for value in values))
    return table


def percent_text(share: float, sign: str = "") -> str:
    """A share in percent, to two decimals; a small one to two digits, since it is not 0. `sign`: "+" to write that too."""
    return format(100 * share, f"{sign}.2f" if share == 0.0 or abs(share) >= 1e-4 else f"{sign}.1e")


def percent_interval_text(low: float, high: float, sign: str = "") -> str:
    """An interval of shares, in percent."""
    return f"{percent_text(low, sign)} to {percent_text(high, sign)}"


def interval_text(low: float, high: float) -> str:
    """An interval of numbers."""
    return f"{format_number(low)} to {format_number(high)}"


def margin_text(margin: float, digits: int = 3) -> str:
    """A margin of error as `format_number` writes numbers, but rounded up."""
    if not math.isfinite(margin):
        return format_number(margin, digits)
    is_fixed = _is_written_with_fixed_digits(margin)
    significant_digits = max(digits + 1 + math.floor(math.log10(margin)), 1) if is_fixed and margin else digits
    return format_number(round_up_to_digits(margin, significant_digits), digits)


def format_number(value: float | None, digits: int = 4) -> str:
    """A number for people: fixed digits if that is precise enough, otherwise significant ones; empty if there is none."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "infinite"
    return f"{value:.{digits}f}" if _is_written_with_fixed_digits(value) else f"{value:.{digits}g}"


def _is_written_with_fixed_digits(value: float) -> bool:
    return value == 0.0 or 0.01 <= abs(value) < 10_000


def dataclass_fields_as_json(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON holds them; null stands for infinite."""
    return {
        name: json_number_or_null(value) if isinstance(value, float) else value
        for name, value in asdict(instance).items()
    }


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on stdout, and nothing else."""
    typer.echo(json.dumps(record, indent=2, allow_nan=False))


def print_json_line(record: dict[str, Any]) -> None:
    """Print one JSON object on one line, at once, for readers that wait while the command runs."""
    typer.echo(json.dumps(record, allow_nan=False))
    sys.stdout.flush()


def make_vanishing_progress_bars(before: str, after: str | None = None) -> Any:
    """Progress bars on stderr that vanish at the end: a text, the bar, perhaps another text, and the time."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # loaded for a terminal alone

    texts = [] if after is None else [TextColumn(after)]
    columns = (TextColumn(before), BarColumn(), *texts, TimeElapsedColumn())
    return Progress(*columns, console=Terminal(stderr=True), transient=True)


@contextmanager
def showing_release_progress() -> "Iterator[Callable[[Source], Progress]]":
    """A function that makes the progress bars of a release from a source."""
    with make_vanishing_progress_bars("{task.description}", "{task.fields[speed]}") as bars:
        yield lambda source: _ReleaseBars(bars, source.rows)


class _ReleaseBars:
    """Rows read and clients released, with their speeds."""

    def __init__(self, bars: Any, rows: int | None) -> None:
        self._bars = bars
        self._reading = bars.add_task("reading", total=rows, speed="")
        self._releasing: Any = None

    def rows(self, number: int) -> None:
        self._bars.advance(self._reading, number)
        self._show_speed(self._reading, "rows")

    def clients(self, number: int) -> None:
        if self._releasing is None:
            row_count = self._bars.tasks[self._reading].completed
            self._bars.update(self._reading, total=row_count)
            self._releasing = self._bars.add_task("releasing", total=None, speed="")
        self._bars.advance(self._releasing, number)
        self._show_speed(self._releasing, "clients")

    def _show_speed(self, task_id: Any, noun: str) -> None:
        task = next(candidate for candidate in self._bars.tasks if candidate.id == task_id)
        speed = task.completed / task.elapsed if task.elapsed else 0.0
        self._bars.update(task_id, speed=f"{int(task.completed):,} {noun}, {speed:,.0f}/s")


@contextmanager
def showing_sending_progress() -> Iterator[Callable[[int, int], None]]:
    """A function that shows the number of acknowledged samples."""
    with make_vanishing_progress_bars("sending", "{task.completed:,} of {task.total:,}") as bars:
        task: Any = None

        def show_sent_count(done: int, total: int) -> None:
            nonlocal task
            if task is None:
                task = bars.add_task("", total=total)
            bars.update(task, completed=done)

        yield show_sent_count


class SilentStages:
    """Stages of a command that are not shown."""

    def begin_stage(self, what: str) -> None:
        """Begin the next stage."""

    def show_finished_share(self, share: float) -> None:
        """Show the finished share of the stage."""


class _StageBar(SilentStages):
    """A progress bar for the current stage."""

    def __init__(self, bars: Any) -> None:
        self._bars, self._stage = bars, bars.add_task("", total=None)

    def begin_stage(self, what: str) -> None:
        self._bars.reset(self._stage, total=None, description=safe_text(what))

    def show_finished_share(self, share: float) -> None:
        self._bars.update(self._stage, total=1.0, completed=share)


@contextmanager
def showing_stage_progress(*, quiet: bool) -> Iterator[SilentStages]:
    """A progress bar for stages on a terminal, a silent one elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield SilentStages()
        return
    with make_vanishing_progress_bars("{task.description}") as bars:
        yield _StageBar(bars)
