"""The best private sampler for the clients one has: a floor, its band, and a certificate that no sampler whatever does better."""

from discreet.design._designed import Design, design
from discreet.design._learned import Learned, learn
from discreet.design._line import LineDesign
from discreet.design._minimax import minimax_risk
from discreet.design._model import concentration_law
from discreet.design._smoothing import Smoothing

__all__ = ["Design", "Learned", "LineDesign", "Smoothing", "concentration_law", "design", "learn", "minimax_risk"]
