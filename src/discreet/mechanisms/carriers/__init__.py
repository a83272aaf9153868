"""What an atom is: an outcome, a cell of a partition, a point of the reference. One carrier a file."""

from discreet.mechanisms.carriers.carrier import Carrier
from discreet.mechanisms.carriers.cells import Cells
from discreet.mechanisms.carriers.density import Density
from discreet.mechanisms.carriers.points import Points

__all__ = ["Carrier", "Cells", "Density", "Points"]
