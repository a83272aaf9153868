"""The box around a reference measure, and the projection onto it that is optimal for every f-divergence at once."""

from discreet.projection._box import Affine, Box

__all__ = ["Affine", "Box"]
