"""Compiled code: its cache, and when to load it. It computes the same results as numpy, bit for bit."""

from discreet._base.kernels._cache import kernel
from discreet._base.kernels._choice import Code, compiled_alone, compiled_for, read_only_view, use_only

__all__ = ["Code", "compiled_alone", "compiled_for", "kernel", "read_only_view", "use_only"]
