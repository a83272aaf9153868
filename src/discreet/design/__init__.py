"""The best private sampler for given clients: a floor, its band, and a certified lower bound for every sampler."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.design._designs import Design, LineDesign, design
    from discreet.design._floors import as_example_clients as as_example_clients
    from discreet.design._learned import Learned, learn
    from discreet.design._minimax import minimax_risk
    from discreet.design._posterior import concentration_law
    from discreet.design._smoothing import (
        ANYBODY as ANYBODY,
        FOLDS as FOLDS,
        HALF as HALF,
        KEEP_SMOOTHED as KEEP_SMOOTHED,
        MARGIN as MARGIN,
        MODEL as MODEL,
        PARTS as PARTS,
        PAYING as PAYING,
        SEEN as SEEN,
        STRAY as STRAY,
        SURELY as SURELY,
        Smoother as Smoother,
        Smoothing,
        several_divergences_of_clients as several_divergences_of_clients,
    )

__all__ = ["Design", "Learned", "LineDesign", "Smoothing", "concentration_law", "design", "learn", "minimax_risk"]
