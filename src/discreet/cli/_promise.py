"""The options that state a promise: --epsilon alone, with --delta, or --nu."""

from typing import Annotated

import typer

from discreet.errors import DiscreetError
from discreet.privacy import Approximate, Gaussian, Privacy, Pure

Delta = Annotated[
    float | None, typer.Option(metavar="D", help="Promise (epsilon, delta)-LDP in place of epsilon alone.")
]
Nu = Annotated[float | None, typer.Option(metavar="NU", help="Promise Gaussian privacy in place of epsilon.")]


def promise(epsilon: float | None, delta: float | None, nu: float | None, *, missing: str) -> Privacy:
    """What the options promise; `missing` is said where they promise nothing."""
    if nu is not None:
        if epsilon is not None or delta is not None:
            raise DiscreetError("--nu is a promise by itself; leave out --epsilon and --delta")
        return Gaussian(nu)
    if epsilon is None:
        raise DiscreetError(missing)
    return Pure(epsilon) if not delta else Approximate(epsilon, delta=delta)
