"""Experiments: they compute and write records; pictures are drawn from those records elsewhere."""

__all__ = ["client_sets"]
