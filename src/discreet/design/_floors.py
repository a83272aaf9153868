"""A sampler is a floor: the theorems that make the best sampler for given clients a convex problem, with their proofs.

Finite outcomes, E = e^eps, |m| for the mass of a measure m, and F(P; m) = min D_f(P||q) over laws q with m <= q <= E m.

**T1 (one measure).** A sampler Q is eps-LDP exactly when m <= Q(.|P) <= E m for one measure m and all P. *Proof.* Take m(x) = inf_P
Q(x|P): then Q(x|P) <= E Q(x|P') for all P' says Q(x|P) <= E m(x). Conversely two laws between m and E m have ratios at most E.
Hence the least mean sum_j w_j D_f(P_j||Q(.|P_j)) over ALL eps-LDP samplers is min_m sum_j w_j F(P_j; m): Q(.|P_j) competes in the
minimum F, and the minimisers of F form a sampler. F is convex in (P, m) jointly, because q f(p/q) is convex in (p, q) and m <= q <=
E m, |q| = 1 is a convex set; so every local minimum is global. The minimiser is clip(P/r, m, E m) for every f at once [paper, Prop.
C.8].

**A design is a family.** With b = |m|, mu = m/b and alpha = (1/b - 1)/(E - 1), b = 1/(alpha E + 1 - alpha) is the box that Q* of
the band 0 <= dP/dmu <= 1/alpha has, so `OptimalSampler` on that band is the sampler of the floor m. (1/E < b < 1 says 0 < alpha <
1.)

**T2 (everybody).** Let t(m) = min_x min(E m_x, 1 - |m| + m_x). The worst case of the floor m over all laws is t f(1/t) + (1-t) f(0)
for every f: KL -log t, TV 1 - t, squared Hellinger 2 - 2 sqrt t, chi-squared 1/t - 1. *Proof.* F is convex in P, so the worst law
is a point mass, at x say. A law q between m and E m has D_f = q_x f(1/q_x) + (1 - q_x) f(0), which falls in q_x (its derivative
f(s) - s f'(s) - f(0) at s = 1/q_x is minus what f(0) exceeds the tangent at s by), and q_x can be anything up to min(E m_x, 1 - |m|
+ m_x). So "worst case at most that of t0" is the linear condition E m_x >= t0, |m| - m_x <= 1 - t0 for all x. Summed over x these
give t0 <= t* = E/(E + k - 1), with equality only for m_x = 1/(E + k - 1): Q* of the simplex is the only floor with the best worst
case, and whatever is better on average is worse there. `keep` = t0/t*.

**T3 (how spread are clients).** For clients that are uniform on s of the k outcomes and a uniform floor of mass b, such a client's
outcomes are released with the chance t = min(s E b/k, 1 - (k - s) b/k) in all, and D_f = t f(1/t) + (1-t) f(0) falls in t. The
first term rises with b and the second falls, so the best b is where they meet: b = k/(s E + k - s), the box of the band 0 <= dP/dmu
<= k/s, and TV = (k - s)/(s E + k - s). s = 1 is Q* of the simplex. Husain's mollifier has b = e^(-eps/2), which is this b for s =
k/(e^(eps/2) + 1), so it is exactly Q* of the band 0 <= dP/dmu <= e^(eps/2) + 1.

**T4 (no outcome is special).** If permuting the outcomes leaves the set of clients with their weights as it is, the best m is
uniform. *Proof.* The mean V has V(m o pi) = V(m); averaged over all pi, V(average) <= V(m) by convexity, and the average is
uniform. For the same reason outcomes that no client holds share one value of m.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.families import Band
from discreet.families._on_outcomes import FiniteFamily
from discreet.numerics import exp_lower, exp_upper

_INSIDE = 2.0**-40  # how far alpha stays from 0 and 1, where a box holds one law alone


def band_of(floor: NDArray[np.float64], epsilon: float, outcomes: FiniteFamily) -> Band:
    """The band whose Q* at epsilon is the sampler of the floor."""
    alpha = (1.0 / float(floor.sum()) - 1.0) / math.expm1(
        epsilon
    )  # where |m| is lost in 1, a number between 0 and 1 all the same
    alpha = min(max(alpha, _INSIDE), 1.0 - _INSIDE)
    return Band(floor, lower=0.0, upper=1.0 / alpha, domain=outcomes.domain, everybody=True)


@dataclass(frozen=True)
class AllowedFloors:
    """The floors allowed on `size` outcomes at `epsilon` when `keep` of the best worst case must remain."""

    size: int
    epsilon: float
    keep: float

    @property
    def growth(self) -> Fraction:
        """At least e^eps."""
        return exp_upper(self.epsilon)

    def least(self, spread: Fraction, everywhere: Fraction) -> Fraction:
        """At most the least of spread |v| + everywhere y over the floors allowed, by the corners of their polygon."""
        k, high, low = self.size, self.growth, exp_lower(self.epsilon)
        keep = Fraction(self.keep)
        most = 1 - keep * low / (low + k - 1)  # bounds are moved outwards by the width of the bracket of e^eps
        sides = [  # (a, b, c): a |v| + b y >= c
            (Fraction(1), Fraction(0), Fraction(0)),
            (Fraction(0), Fraction(1), keep / (high + k - 1)),
            (Fraction(-1), Fraction(1 - k), -most),
            (Fraction(1), Fraction(k), 1 / high),
            (Fraction(-1), Fraction(-k), Fraction(-1)),
        ]
        values = []
        for (a, b, c), (d, e, f) in itertools.combinations(sides, 2):
            determinant = a * e - b * d
            if determinant:
                v, y = (c * e - b * f) / determinant, (a * f - c * d) / determinant
                if all(p * v + q * y >= r for p, q, r in sides):
                    values.append(spread * v + everywhere * y)
        return min(values)
