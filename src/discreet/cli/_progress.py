"""Progress on a terminal: of a release, of samples that are sent, and of the stages of a design.

`show_progress` in `discreet.cli._options` loads this module where there is a terminal.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress as LiveBars, ProgressColumn, TextColumn, TimeElapsedColumn

from discreet.cli._printing import Terminal, safe_text
from discreet.tables import Progress, Source


@contextmanager
def progress_bars() -> Iterator[Callable[[Source], Progress]]:
    """A function that makes a progress bar for a source."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with _live_bars(*columns) as bars:
        yield lambda source: _ReleaseBars(bars, source.rows)


@contextmanager
def sending_bar() -> Iterator[Callable[[int, int], None]]:
    """A function that shows the number of acknowledged samples."""
    columns = (
        TextColumn("sending"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,}"),
        TimeElapsedColumn(),
    )
    with _live_bars(*columns) as bars:
        task: Any = None

        def show(done: int, total: int) -> None:
            nonlocal task
            if task is None:
                task = bars.add_task("", total=total)
            bars.update(task, completed=done)

        yield show


class SilentStages:
    """Stages of a command that are not shown."""

    def begin(self, what: str) -> None:
        """Begin the next stage."""

    def share(self, done: float) -> None:
        """Set the finished share of the stage."""


class _StageBar(SilentStages):
    """A progress bar for the current stage."""

    def __init__(self, bars: LiveBars) -> None:
        self._bars, self._stage = bars, bars.add_task("", total=None)

    def begin(self, what: str) -> None:
        self._bars.reset(self._stage, total=None, description=safe_text(what))

    def share(self, done: float) -> None:
        self._bars.update(self._stage, total=1.0, completed=done)


@contextmanager
def stage_bar(*, quiet: bool) -> Iterator[SilentStages]:
    """A progress bar for stages on a terminal, a silent one elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield SilentStages()
        return
    with _live_bars(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bars:
        yield _StageBar(bars)


def _live_bars(*columns: ProgressColumn) -> LiveBars:
    return LiveBars(*columns, console=Terminal(stderr=True), transient=True)


class _ReleaseBars:
    """Rows read and clients released, with their speeds."""

    def __init__(self, bars: Any, rows: int | None) -> None:
        self._bars = bars
        self._reading = bars.add_task("reading", total=rows, told="")
        self._releasing: Any = None

    def rows(self, number: int) -> None:
        self._bars.advance(self._reading, number)
        self._show_speed(self._reading, "rows")

    def clients(self, number: int) -> None:
        if self._releasing is None:
            read = self._bars.tasks[self._reading].completed
            self._bars.update(self._reading, total=read)
            self._releasing = self._bars.add_task("releasing", total=None, told="")
        self._bars.advance(self._releasing, number)
        self._show_speed(self._releasing, "clients")

    def _show_speed(self, task: Any, what: str) -> None:
        found = next(each for each in self._bars.tasks if each.id == task)
        speed = found.completed / found.elapsed if found.elapsed else 0.0
        self._bars.update(task, told=f"{int(found.completed):,} {what}, {speed:,.0f}/s")
