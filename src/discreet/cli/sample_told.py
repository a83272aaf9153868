"""What `discreet sample` tells whoever runs it: how far it has come, what it did, and in a dry run what it would stumble over."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from discreet.cli.printing import Terminal, write_json
from discreet.engines.misfits import misfits
from discreet.engines.request import Request
from discreet.engines.telling import Progress, Summary
from discreet.errors import visible
from discreet.tables.inputs import opened
from discreet.tables.sources import Source


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Any]:
    """A function that makes a progress bar for a source, on a terminal; None elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # loaded for a terminal alone
    from rich.progress import Progress as LiveBars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with LiveBars(*columns, console=Terminal(stderr=True), transient=True) as bars:

        def made(source: Source) -> Progress:
            return _Bars(bars, source.rows)

        yield made


class _Bars:
    """Rows read and clients released, with their speeds."""

    def __init__(self, bars: Any, rows: int | None) -> None:
        self._bars = bars
        self._reading = bars.add_task("reading", total=rows, told="")
        self._releasing: Any = None

    def rows(self, number: int) -> None:
        self._bars.advance(self._reading, number)
        self._tell(self._reading, "rows")

    def clients(self, number: int) -> None:
        if self._releasing is None:
            read = self._bars.tasks[self._reading].completed
            self._bars.update(self._reading, total=read)
            self._releasing = self._bars.add_task("releasing", total=None, told="")
        self._bars.advance(self._releasing, number)
        self._tell(self._releasing, "clients")

    def _tell(self, task: Any, what: str) -> None:
        found = next(each for each in self._bars.tasks if each.id == task)
        speed = found.completed / found.elapsed if found.elapsed else 0.0
        self._bars.update(task, told=f"{int(found.completed):,} {what}, {speed:,.0f}/s")


def tell(summary: Summary, request: Request, output: str, ledger: Path | None, taken: str | None) -> None:
    """The guarantee, what was read, left out and written, and what was `taken` to be meant, for people."""
    told = (*_told(summary, request, output, ledger), *([] if taken is None else [taken]))
    typer.echo("\n".join(map(visible, told)), err=True)


def tell_misfits(source: str, request: Request, scratch: Path | None, *, json: bool) -> None:
    """Every value outside the domain with how many rows hold it, on standard output; and that this is private, beside it."""
    with opened(source, scratch) as records:
        found = misfits(records, request)
    typer.echo(
        "PRIVATE: what is listed are clients' own values. Keep it out of logs, and do not make a domain of it.",
        err=True,
    )
    if json:
        outside = [{"value": value, "rows": rows} for value, rows in found.outside.items()]
        write_json({"rows": found.rows, "nulls": found.nulls, "not_numbers": found.not_numbers, "outside": outside})
        return
    for value, rows in found.outside.items():
        typer.echo(f"{rows}\t{visible(str(value))}")
    many = sum(found.outside.values())
    typer.echo(
        f"dry run, nothing is released: {found.rows:,} rows, {many:,} of them with {len(found.outside):,} different values outside the domain"
        f", {found.nulls:,} without a value, {found.not_numbers:,} NaN",
        err=True,
    )


def _told(summary: Summary, request: Request, output: str, ledger: Path | None) -> Iterator[str]:
    """The guarantee, and what was read, left out and written."""
    agreement = summary.agreement
    total = agreement.rounds * agreement.epsilon
    yield f"{summary.clients:,} samples to {'standard output' if output == '-' else output}, {agreement.promise} each"
    if agreement.rounds > 1:
        yield f"round {request.round} of {agreement.rounds}: {total:g} together"
    yield f"read {summary.rows:,} rows of {summary.clients - summary.without_records:,} clients in {summary.seconds:.1f} s"
    if summary.nulls:
        left_out = "left out: a client with nothing else has no sample, which tells so unless --clients lists it"
        yield f"{summary.nulls:,} null values " + (left_out if request.nulls == "drop" else "taken as other")
    if summary.not_numbers:
        yield f"{summary.not_numbers:,} values that are NaN left out, like nulls"
    if summary.outside:
        yield f"{summary.outside:,} values outside the domain taken as {request.coding.other}"
    if summary.over_budget:
        yield f"{summary.over_budget:,} clients left out: they cannot pay epsilon = {agreement.epsilon:g} any more"
    if summary.without_records:
        yield f"{summary.without_records:,} listed clients without records drew from the reference"
    if summary.spilled_bytes:
        yield f"{summary.spilled_bytes / 1e6:,.0f} MB went through the disk"
    yield f"agreement {agreement.id}"
    if ledger is not None:
        yield f"{summary.known:,} samples were in ledger {ledger} already, {summary.clients - summary.known:,} were charged to it"
        yield "asking for this round again gives the same samples, whatever the data, and spends nothing more"
    elif request.secret is None:
        yield "no secret was given: running this again is a new release and spends epsilon again (see discreet secret)"
    else:
        yield "with the same secret and data, this round gives the same samples again and spends nothing more; new data are a new round"
