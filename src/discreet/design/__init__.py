"""The best private sampler for the clients one has: a floor, its band, and a certificate that no sampler whatever does better."""

from discreet.design._designs import Design, LineDesign, design
from discreet.design._learned import Learned, learn
from discreet.design._minimax import minimax_risk
from discreet.design._posterior import concentration_law
from discreet.design._smoothing import Smoothing

__all__ = ["Design", "Learned", "LineDesign", "Smoothing", "concentration_law", "design", "learn", "minimax_risk"]
