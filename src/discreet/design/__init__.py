"""The best private sampler for the clients one has: a floor, its band, and a certificate that no sampler whatever does better."""

from discreet.design.designed import Design, design

__all__ = ["Design", "design"]
