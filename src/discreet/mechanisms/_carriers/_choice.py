"""Which carrier a family's clients are put on: outcomes where there are finitely many, else cells or points."""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families._continuous import LARGEST_CHARTED
from discreet.mechanisms._carriers._carrier import Carrier
from discreet.mechanisms._carriers._cells import CELLS, CellCarrier, Cells
from discreet.mechanisms._carriers._density import Density, Described
from discreet.mechanisms._carriers._outcomes import OutcomeCarrier
from discreet.mechanisms._carriers._points import PointCarrier, Points

How = Cells | Points | Density


def default_how(family: FiniteFamily | ContinuousFamily) -> How | None:
    """Cells while there are few dimensions, points above; nothing to choose on finitely many outcomes."""
    if not isinstance(family, ContinuousFamily):
        return None
    return Cells(CELLS[family.dim]) if family.dim <= LARGEST_CHARTED else Points()


def chosen_how(family: FiniteFamily | ContinuousFamily, how: How | None) -> How | None:
    """How clients are released, in numbers: the default where nothing is said, or nothing of how many cells."""
    unsaid = isinstance(how, Cells) and how == Cells()
    if how is None or (unsaid and isinstance(family, ContinuousFamily) and family.dim <= LARGEST_CHARTED):
        return default_how(family)
    return how


def carrier_of(
    family: FiniteFamily | ContinuousFamily, how: How | None, members: ContinuousFamily | None = None
) -> Carrier[Any]:
    """The atoms that a way of releasing uses. `members`: the family that clients are of, where the reference is that of another."""
    if not isinstance(family, ContinuousFamily):
        if how is not None:
            raise DiscreetError(f"how = {how!r} is for continuous families; {family!r} is released outcome by outcome")
        return OutcomeCarrier(family)
    match how:
        case Cells():
            return CellCarrier(family, how, whose=members)
        case Points():
            return PointCarrier(family, how, whose=members)
        case Density():
            return Described(family, how, whose=members)
    raise DiscreetError(f"how = {how!r} is not one of Cells(...), Points(...), Density(...)")
