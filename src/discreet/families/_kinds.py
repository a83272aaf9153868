"""What counts as a family, and which families claim nothing about clients, for everything that is given one."""

from typing import Any

from discreet.errors import DiscreetError
from discreet.families._band import Bounds
from discreet.families._continuous import ContinuousFamily
from discreet.families._finite import Band


def check_family(family: Any) -> None:
    """Refuse whatever is not a family: a number of outcomes, a sampler, a class instead of a value."""
    known = isinstance(getattr(family, "bounds", None), Bounds)
    if not known or not (isinstance(family, ContinuousFamily) or isinstance(getattr(family, "size", None), int)):
        raise DiscreetError(f"family = {family!r} is not a family; pass Simplex(...), Band(...) or a continuous one")


def serves_everybody(family: Any) -> bool:
    """Whether it is a band that chooses a box and claims nothing about clients, as designs do: risks are stated for every law there is."""
    return isinstance(family, (Band, ContinuousFamily)) and family.everybody
