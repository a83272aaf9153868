"""How well a floor serves given clients: F(P; m) = D_f(P || clip(P/r, m, e^eps m)) for each, from the outcomes it holds alone.

The mass G(a) = sum_x clip(a p_x, m_x, E m_x) is non-decreasing and piecewise linear in a = 1/r. Newton on all clients at once, kept
inside the largest a known to be too small and the smallest known to be too large, finds the piece on which G = 1. Where G stays
below 1 for every a the client sits on too small a set: it gets E m there, and what is left goes to the outcomes it does not hold.
"""

import numpy as np

from discreet.design._examples import ExampleClients, Floats
from discreet.divergences import FDivergence

_STEPS = 200
_ROUNDING = 1e-14


def floor_outputs(examples: ExampleClients, floor: Floats, total: float, ratio: float) -> tuple[Floats, Floats]:
    """q of every entry, and the mass that each client's law gives to outcomes it does not hold (n,), for a floor of the seen outcomes."""
    low = floor[examples.outcome]
    high = ratio * low
    rest = np.maximum(total - examples.by_client(low), 0.0) * examples.partial
    p, client = examples.mass, examples.client
    at_most = examples.by_client(high) + rest
    lifted = at_most <= 1.0
    too_small = np.minimum.reduceat(low / p, examples.starts)  # there everything is at the floor, and |m| <= 1
    too_large = np.maximum.reduceat(high / p, examples.starts)  # there everything that is held is at the ceiling
    slope = np.clip(1.0, too_small, too_large)
    settled = lifted.copy()
    for _ in range(_STEPS):
        value = slope[client] * p
        q = np.clip(value, low, high)
        middle = examples.by_client(np.where(q == value, p, 0.0))
        excess = examples.by_client(q) + rest - 1.0
        settled |= np.abs(excess) <= _ROUNDING
        if settled.all():
            break
        too_large = np.where(excess > 0.0, np.minimum(slope, too_large), too_large)
        too_small = np.where(excess < 0.0, np.maximum(slope, too_small), too_small)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = slope - excess / middle
        usable = (middle > 0.0) & (step > too_small) & (step < too_large)
        between = np.sqrt(too_small) * np.sqrt(too_large)
        moved = np.where(usable, step, between)
        stuck = np.abs(moved - slope) <= 4e-16 * slope
        settled |= stuck
        slope = np.where(settled, slope, moved)
    q = np.where(lifted[client], high, np.clip(slope[client] * p, low, high))
    return q, np.where(lifted, np.maximum(1.0 - examples.by_client(q), 0.0), rest) * examples.partial


def client_divergences(examples: ExampleClients, f: FDivergence, floor: Floats, total: float, ratio: float) -> Floats:
    """F(P_j; m) of every client (n,)."""
    found = []
    for part in examples.parts():
        q, rest = floor_outputs(part, floor, total, ratio)
        held = part.by_client(np.asarray(f.perspective(part.mass, q)))
        found.append(held + np.asarray(f.perspective(np.zeros(len(rest)), rest)))
    return np.concatenate(found)
