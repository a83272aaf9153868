"""Options of several commands, with the same words and the same meaning in each: the public domain, and the columns of a table.

A command declares its parameters with these types and hands what it got to the functions below.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError
from discreet.tables.lines import read_labels
from discreet.tradeoff import LARGE_EPSILON, large_epsilon

AllowLarge = Annotated[
    bool,
    typer.Option(
        "--allow-large-epsilon", help=f"Take an epsilon above {LARGE_EPSILON:g}, which hides next to nothing."
    ),
]


def labels_in(more: str = "") -> Any:
    """The file of labels; `more` says when it is needed."""
    return typer.Option("--domain", metavar="FILE", help=f"The public labels, one on each line{more}.")


def client_in(where: str = "") -> Any:
    """The column that says who; `where`: in which table, if a command reads several."""
    return typer.Option("--client", metavar="COLUMN", help=f"Who{where}: texts or integers.")


def value_in(where: str = "") -> Any:
    """The column that says what."""
    return typer.Option(
        "--value", metavar="COLUMN", help=f"What{where}: labels, integers or numbers, or lists of them."
    )


Client = Annotated[str, client_in()]
Value = Annotated[str, value_in()]
DomainFile = Annotated[Path | None, labels_in()]
DomainSize = Annotated[
    int | None,
    typer.Option("--domain-size", "--outcomes", metavar="K", help="Instead: the numbers 0 to K - 1."),
]
Bounds = Annotated[
    tuple[float, float] | None,
    typer.Option("--bounds", metavar="LO HI", help="Instead: numbers in [LO, HI], cut into --cells."),
]
CellCount = Annotated[int | None, typer.Option("--cells", metavar="N", help="Number of equal cells between --bounds.")]
Other = Annotated[
    str | None,
    typer.Option(
        "--other",
        metavar="LABEL",
        help="The outcome that values outside the domain become (with --bounds: nearest). Default: an error.",
    ),
]
Nulls = Annotated[
    str,
    typer.Option(
        "--nulls",
        metavar="error|drop|other",
        help="Null values: refuse them, leave them out (a client with nothing else is then absent, which tells that), or "
        "take them as --other.",
    ),
]
Count = Annotated[
    str | None, typer.Option("--count", metavar="COLUMN", help="How often each row counts: whole numbers.")
]
Weight = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Or how much: any numbers of at least 0.")
]

_ONCE = "give the public domain once: --domain FILE, --domain-size K, or --bounds LO HI --cells N"


def needed_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None, *, instead: str = ""
) -> Domain:
    """The domain that options state, one way or another; `instead`: what else would do."""
    given = given_domain(file, size, bounds, cells)
    if given is None:
        raise DiscreetError(_ONCE + instead)
    return given


def given_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None
) -> Domain | None:
    """The domain that options state; None where none does."""
    if [file is not None, size is not None, bounds is not None].count(True) > 1:
        raise DiscreetError(_ONCE)
    if (cells is None) != (bounds is None):
        raise DiscreetError("--bounds LO HI and --cells N go together")
    if file is not None:
        return Labels(read_labels(file))
    if size is not None:
        return Numbers(size)
    if bounds is not None and cells is not None:
        return Interval(*bounds, cells=cells)
    return None


def refuse_large(epsilon: float | None, *, allowed: bool) -> None:
    """Refuse an epsilon above 10, which is too large to be meant, unless somebody says that it is."""
    doubt = None if epsilon is None or allowed else large_epsilon(epsilon)
    if doubt is not None:
        raise DiscreetError(f"{doubt}; say --allow-large-epsilon if it is")
