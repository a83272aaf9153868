"""Commands that release, or prepare a release, refuse an epsilon that is too large to be meant, unless somebody says that it is."""

from typing import Annotated

import typer

from discreet.errors import DiscreetError
from discreet.tradeoff import LARGE_EPSILON, large_epsilon

AllowLarge = Annotated[
    bool,
    typer.Option(
        "--allow-large-epsilon", help=f"Take an epsilon above {LARGE_EPSILON:g}, which hides next to nothing."
    ),
]


def refuse_large(epsilon: float | None, *, allowed: bool) -> None:
    """Refuse an epsilon above 10 unless it is allowed."""
    doubt = None if epsilon is None or allowed else large_epsilon(epsilon)
    if doubt is not None:
        raise DiscreetError(f"{doubt}; say --allow-large-epsilon if it is")
