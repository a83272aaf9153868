"""Which carrier a family's clients are put on: outcomes where there are finitely many, else cells or points."""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError
from discreet.families import ContinuousFamily, FiniteFamily
from discreet.families._continuous import LARGEST_CHARTED
from discreet.mechanisms._carriers._carrier import Atoms
from discreet.mechanisms._carriers._cells import DEFAULT_CELLS, CellAtoms, Cells
from discreet.mechanisms._carriers._density import Density, NoAtoms
from discreet.mechanisms._carriers._outcomes import OutcomeAtoms
from discreet.mechanisms._carriers._points import PointAtoms, Points

Discretisation = Cells | Points | Density


def default_discretisation(family: FiniteFamily | ContinuousFamily) -> Discretisation | None:
    """Cells while there are few dimensions, points above; nothing to choose on finitely many outcomes."""
    if not isinstance(family, ContinuousFamily):
        return None
    return Cells(DEFAULT_CELLS[family.dim]) if family.dim <= LARGEST_CHARTED else Points()


def chosen_discretisation(family: FiniteFamily | ContinuousFamily, how: Discretisation | None) -> Discretisation | None:
    """How clients are released, in numbers: the default where nothing is said, or nothing of how many cells."""
    unsaid = isinstance(how, Cells) and how == Cells()
    if how is None or (unsaid and isinstance(family, ContinuousFamily) and family.dim <= LARGEST_CHARTED):
        return default_discretisation(family)
    return how


def atoms_of(
    family: FiniteFamily | ContinuousFamily, how: Discretisation | None, members: ContinuousFamily | None = None
) -> Atoms[Any]:
    """The atoms that a way of releasing uses. `members`: the family that clients are of, where the reference is that of another."""
    if not isinstance(family, ContinuousFamily):
        if how is not None:
            raise DiscreetError(f"how = {how!r} is for continuous families; {family!r} is released outcome by outcome")
        return OutcomeAtoms(family)
    match how:
        case Cells():
            return CellAtoms(family, how, whose=members)
        case Points():
            return PointAtoms(family, how, whose=members)
        case Density():
            return NoAtoms(family, how, whose=members)
    raise DiscreetError(f"how = {how!r} is not one of Cells(...), Points(...), Density(...)")
