"""Experiments: they compute and write records; pictures are drawn from those records elsewhere."""

from discreet.research.experiments import client_sets

__all__ = ["client_sets"]
