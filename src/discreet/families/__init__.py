"""Who the clients may be: a reference measure mu and a band c1 <= dP/dmu <= c2 [paper, eq. (possibleDensityAssumption)]."""

from discreet.families.finite import Band, FiniteFamily, Simplex

__all__ = ["Band", "FiniteFamily", "Simplex"]
