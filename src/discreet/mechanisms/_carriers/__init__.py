"""What an atom is: an outcome, a cell of a partition, a point of the reference. One carrier a file."""

from discreet.mechanisms._carriers._carrier import Atoms
from discreet.mechanisms._carriers._cells import Cells
from discreet.mechanisms._carriers._density import Density
from discreet.mechanisms._carriers._points import Points

__all__ = ["Atoms", "Cells", "Density", "Points"]
