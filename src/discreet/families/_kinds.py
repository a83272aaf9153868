"""What counts as a family, for everything that is given one."""

from typing import Any

from discreet.errors import DiscreetError
from discreet.families._band import Bounds
from discreet.families._continuous import ContinuousFamily


def check_family(family: Any) -> None:
    """Refuse whatever is not a family: a number of outcomes, a sampler, a class instead of a value."""
    known = isinstance(getattr(family, "bounds", None), Bounds)
    if not known or not (isinstance(family, ContinuousFamily) or isinstance(getattr(family, "size", None), int)):
        raise DiscreetError(f"family = {family!r} is not a family; pass Simplex(...), Band(...) or a continuous one")
