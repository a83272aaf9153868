"""Compiled code: where it is kept, and when it is worth loading. What it computes, numpy computes too, bit for bit."""

from discreet.kernels.cache import kernel
from discreet.kernels.choice import Code, compiled_alone, compiled_for, frozen, only

__all__ = ["Code", "compiled_alone", "compiled_for", "frozen", "kernel", "only"]
